//! The state of Plexus's entries in a file.

/// The state of Plexus's entries in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetState {
    /// There are no entries.
    Absent,
    /// All entries are there, as this program writes them.
    Current,
    /// The entries are of another program or version.
    Outdated(String),
    /// Only a part of the entries is there, or they were changed.
    Incomplete(String),
}
