//! The errors of linking an agent, each with the reason and the fix.

use std::path::PathBuf;

use crate::settings::document::{SETTINGS_MAX, SettingsError};
use crate::settings::version::GateError;

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The text of a settings file cannot be edited.
    #[error("{}: {reason}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The reason, with the fix.
        reason: SettingsError,
    },
    /// The version of the agent is not linked.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The system refused a call.
    #[error("{} cannot be {operation}: {reason}; {fix}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation that failed, as a participle.
        operation: &'static str,
        /// The system's reason.
        reason: std::io::Error,
        /// The fix.
        fix: &'static str,
    },
    /// The path exists, but is not a file.
    #[error("{} is not a file; move it, so that the agent's settings can be there", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than any settings are.
    #[error("{} is larger than {} KiB; make it smaller, or edit it by hand (docs/native.md)", path.display(), SETTINGS_MAX >> 10)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("{} is not UTF-8 text; save it as UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The file or folder belongs to another user.
    #[error("{} belongs to another user; make it yours (chown), or link as that user", path.display())]
    OtherUser {
        /// The file or folder.
        path: PathBuf,
    },
    /// A symbolic link leads out of the home folder.
    #[error("{} leads to {}, outside of your home folder; put the file into your home folder", path.display(), real.display())]
    OutsideHome {
        /// The path of the settings.
        path: PathBuf,
        /// The target of the link.
        real: PathBuf,
    },
    /// The target of a symbolic link does not exist.
    #[error("{} is a symbolic link whose target does not exist; remove it or create the target", path.display())]
    LeadsNowhere {
        /// The link.
        path: PathBuf,
    },
    /// The file or folder is read-only.
    #[error("{} is read-only; allow yourself to write (chmod u+w), if it is meant to be changed", path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file has several names, and a replacement would be a copy.
    #[error("{} has several names (hard links), and only one of them would change; use a symbolic link", path.display())]
    SeveralNames {
        /// The file.
        path: PathBuf,
    },
    /// A file of the user is in the place of one of Plexus.
    #[error("{} exists and was not made by Plexus; move it to another name", path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// The file was changed while the change was prepared.
    #[error("{} was changed meanwhile, so it was not touched; try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The path of this program cannot be written into settings.
    #[error("{} cannot be the command of a hook: {reason}; put plexus at another path", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// A variable that names a folder is not absolute.
    #[error(
        "{variable} is {value:?}, which depends on the folder that the agent is started in; set it to an absolute path"
    )]
    NotAbsolute {
        /// The variable.
        variable: &'static str,
        /// The value.
        value: String,
    },
    /// Another `plexus link` runs.
    #[error("another `plexus link` is at work; wait until it has ended")]
    Busy,
    /// The record of the link cannot be read.
    #[error("{} is damaged ({reason}); `plexus link --remove` works without it: delete it", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}
