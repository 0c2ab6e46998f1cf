//! The entries of ours in a file.

/// The entries of ours in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetState {
    /// Nothing.
    Absent,
    /// All, as this program writes it.
    Current,
    /// The entries of another program or version.
    Outdated(String),
    /// Only a part, or changed.
    Incomplete(String),
}
