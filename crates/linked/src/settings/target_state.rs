//! How much of ours a file has.

/// What a file has of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetState {
    /// Nothing.
    Absent,
    /// All, as this program writes it.
    Current,
    /// What another program or version wrote.
    Outdated(String),
    /// Only a part, or changed.
    Incomplete(String),
}
