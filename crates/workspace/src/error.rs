//! The error of all calls on a folder.

use std::io;

/// The reason why a call on a folder failed. Nothing was written to the folder, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// The git program does not exist, or cannot be started.
    #[error(
        "git cannot be run: {0}; install it (`apt install git`, `dnf install git` or `brew install git`) and start the gateway with it on its PATH"
    )]
    GitMissing(String),
    /// Git did not end in time, or the store was busy for that long; the number is seconds.
    #[error("the folder could not be read within {0} seconds: it may be very large, or its disk hangs; try again")]
    Slow(u64),
    /// Git failed.
    #[error("{action}: git reports: {text}")]
    Git {
        /// The action that failed.
        action: &'static str,
        /// The error output of git, shortened.
        text: String,
    },
    /// The system refused to read or write.
    #[error("{action}: {text}")]
    Disk {
        /// The action that failed.
        action: &'static str,
        /// The error text of the system.
        text: String,
    },
    /// A file of the store does not have the content that its name promises.
    #[error("the store of this folder is damaged: {0}")]
    Damaged(String),
    /// The folder has more files than a scan may read.
    #[error(
        "the folder has too many files that are neither ignored nor known: add a .gitignore, or start in a folder below"
    )]
    TooManyFiles,
    /// The folder is in the state folder, which is never read.
    #[error("the folder is in the gateway's own state folder")]
    Private,
    /// Another process has the store open.
    #[error("another process uses the store of this folder")]
    InUse,
    /// An identifier has characters or a length that the store does not accept.
    #[error("{0:?} is not an identifier of a session, a run or a patch")]
    BadId(String),
    /// The base of the session is unknown.
    #[error("the state of the folder at the beginning of this session is unknown")]
    NoBase,
    /// The moments of the run are unknown.
    #[error("the changes of this run are not known")]
    NoRun,
    /// There is no difference at the path.
    #[error("nothing changed at this path: list the changes again")]
    NoChange,
    /// The file on disk has neither the content that was shown nor the one that it would get.
    #[error("the file changed after it was shown: look at it again, then undo")]
    ChangedMeanwhile,
    /// The change cannot be undone.
    #[error("this change cannot be undone here: {0}")]
    NotUndoable(String),
    /// The undone change is unknown.
    #[error("there is no such patch: list the undone changes again")]
    NoPatch,
}

/// The result of a call on a folder.
pub type Result<T> = std::result::Result<T, WorkspaceError>;

/// Makes a function that converts an error of the system into one that names the action.
pub(crate) fn disk<E: Into<io::Error>>(action: &'static str) -> impl Fn(E) -> WorkspaceError {
    move |error| WorkspaceError::Disk { action, text: error.into().to_string() }
}
