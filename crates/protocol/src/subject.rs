//! The subject of a request.

use crate::about::Question;

/// A folder that a runtime names for a command. The gateway compares it with the session's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderClaim {
    /// A field of the command: the runtime runs the command there.
    Field(String),
    /// A sentence beside the command, which may be about something else, such as the runtime's process.
    Text(String),
}

impl FolderClaim {
    /// Returns the folder as the runtime wrote it; it may be relative to the session's folder.
    pub fn path(&self) -> &str {
        match self {
            Self::Field(path) | Self::Text(path) => path,
        }
    }
}

/// The action of a request: what an answer allows, as the runtime described it.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestSubject {
    /// A command line, as the runtime will run it.
    Command {
        /// The shell line as one element, or the program and its arguments.
        argv: Vec<String>,
        /// The working directory, if the runtime names one.
        cwd: Option<FolderClaim>,
    },
    /// Changes to files: path, text before, text after.
    Edits(Vec<(String, Option<String>, String)>),
    /// A change to a file of which the runtime sends only a diff.
    Diff {
        /// The file.
        path: String,
        /// The diff, as the runtime made it.
        diff: String,
    },
    /// A fetch from an address.
    Fetch {
        /// The address.
        url: String,
        /// Further members of the input, as JSON.
        more: String,
    },
    /// A call of a tool.
    Tool {
        /// The name.
        name: String,
        /// The arguments, as JSON.
        arguments: String,
    },
    /// A plan that waits for approval.
    Plan(String),
    /// Questions to a user.
    Questions {
        /// The questions, in the order of display.
        questions: Vec<Question>,
        /// The questions as text.
        text: String,
    },
    /// Text for a user: an approval has no effect by itself.
    Text(String),
    /// A yes-or-no question whose action the runtime describes in text only; the text may be a shell command.
    Confirm {
        /// The headline.
        title: String,
        /// The text below the headline; may be empty.
        message: String,
    },
    /// An action that cannot be read.
    Unreadable {
        /// The reason.
        reason: &'static str,
        /// The complete message of the runtime.
        raw: String,
    },
}
