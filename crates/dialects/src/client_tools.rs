//! The client tools: files and commands that an agent requests from its client.

use serde::{Deserialize, Serialize};

use plexus_protocol::{NativeId, Resolver};

/// A call of a client tool, which ends in [`Dialect::done`](super::Dialect::done).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientToolCall {
    /// The id that is returned with the result.
    pub id: u64,
    /// The session's folder, absolute: nothing outside of it is read or written, and commands start inside.
    pub folder: String,
    /// The operation.
    pub work: ClientToolWork,
}

/// The operation of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientToolWork {
    /// Reads a text file: [`ClientToolResult::Text`].
    Read {
        /// The absolute path.
        path: String,
        /// The first line to read, from 1.
        line: Option<u64>,
        /// The number of lines to read.
        limit: Option<u64>,
    },
    /// Writes a text file, if it still has the content that the user was shown: [`ClientToolResult::Done`].
    Write {
        /// The absolute path.
        path: String,
        /// The expected content; `None` if there must be no file.
        before: Option<String>,
        /// The new content.
        text: String,
    },
    /// Runs a command in a new terminal: [`ClientToolResult::Done`] once it runs.
    Run {
        /// The number of the terminal, which is never reused.
        terminal: u64,
        /// A shell line as one element, or the program and its arguments.
        argv: Vec<String>,
        /// Variables set in addition to the runtime's own.
        env: Vec<(String, String)>,
        /// The working directory, absolute; `None` is the session's folder.
        cwd: Option<String>,
        /// The number of bytes of the output to retain, from the end.
        keep: Option<u64>,
    },
    /// Reads the output of a command so far: [`ClientToolResult::Output`].
    Output {
        /// The terminal.
        terminal: u64,
    },
    /// Waits for a command to end: [`ClientToolResult::Ended`].
    Wait {
        /// The terminal.
        terminal: u64,
    },
    /// Ends a command and its process tree: [`ClientToolResult::Done`], before they have ended.
    Kill {
        /// The terminal.
        terminal: u64,
    },
    /// Removes a terminal, and ends its command if it still runs: [`ClientToolResult::Done`].
    Release {
        /// The terminal.
        terminal: u64,
    },
    /// Forwards the call to the client that opened the session: [`ClientToolResult::Served`], or [`ClientToolError::NoClient`].
    Errand {
        /// The session.
        native: NativeId,
        /// The client method that the agent calls.
        method: String,
        /// The parameters as the agent wrote them: JSON.
        params: String,
    },
}

/// The result of a client tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientToolResult {
    /// The text of a file.
    Text(String),
    /// Success without a value.
    #[serde(rename = "Fine")]
    Done,
    /// A command's output.
    Output {
        /// The last bytes, as text.
        text: String,
        /// `true` if older bytes were dropped.
        cut: bool,
        /// The end of the command, once it has ended.
        end: Option<CommandEnd>,
    },
    /// The end of a command.
    Ended(CommandEnd),
    /// The response of a client.
    Served {
        /// The client.
        by: Resolver,
        /// The result, as JSON, or its JSON-RPC error: code and message.
        outcome: Result<String, (i64, String)>,
    },
}

/// The end of a command: its code or its signal; neither if the system did not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The exit code.
    pub code: Option<i32>,
    /// The name of the signal that ended it.
    pub signal: Option<String>,
}

/// The reason why a client tool call failed, with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientToolError {
    /// The file does not exist.
    Missing(String),
    /// Any other reason.
    Refused(String),
    /// The device that opened the session is not connected, lacks the permission, or does not support the call.
    #[serde(rename = "Nobody")]
    NoClient,
}
