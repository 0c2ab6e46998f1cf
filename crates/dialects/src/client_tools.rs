//! What is done for an agent outside of its dialect: files, commands.

use serde::{Deserialize, Serialize};

use plexus_protocol::{NativeId, Resolver};

/// Something to be done for an agent: ends in [`Dialect::done`](super::Dialect::done).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientToolCall {
    /// Comes back with what came of it.
    pub id: u64,
    /// The session's folder, absolute: nothing outside of it is read or written, and commands start inside.
    pub folder: String,
    /// What is to be done.
    pub work: ClientToolWork,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientToolWork {
    /// Read a text file: [`ClientToolResult::Text`].
    Read {
        /// Which, absolute.
        path: String,
        /// The first line wanted, counting from 1.
        line: Option<u64>,
        /// How many lines are wanted.
        limit: Option<u64>,
    },
    /// Write a text file, if it still holds what people were shown: [`ClientToolResult::Fine`].
    Write {
        /// Which, absolute.
        path: String,
        /// What it held; `None` if there was none.
        before: Option<String>,
        /// What it is to hold.
        text: String,
    },
    /// Run a command in a new terminal: [`ClientToolResult::Fine`] once it runs.
    Run {
        /// The terminal's number, never used before.
        terminal: u64,
        /// One line for a shell, or the program and its arguments.
        argv: Vec<String>,
        /// Variables set on top of the runtime's own.
        env: Vec<(String, String)>,
        /// Where, absolute; `None` is the session's folder.
        cwd: Option<String>,
        /// How many bytes of its output to keep, the last ones.
        keep: Option<u64>,
    },
    /// What a command wrote so far: [`ClientToolResult::Output`].
    Output {
        /// The terminal.
        terminal: u64,
    },
    /// Wait for a command to end: [`ClientToolResult::Ended`].
    Wait {
        /// The terminal.
        terminal: u64,
    },
    /// End a command and its family: [`ClientToolResult::Fine`], before they ended.
    Kill {
        /// The terminal.
        terminal: u64,
    },
    /// Forget a terminal, and end its command if that still runs: [`ClientToolResult::Fine`].
    Release {
        /// The terminal.
        terminal: u64,
    },
    /// Have the client do it whose session it is: [`ClientToolResult::Served`], or [`ClientToolError::Nobody`].
    Errand {
        /// The session.
        native: NativeId,
        /// What the agent asks its client for.
        method: String,
        /// As the agent wrote it: JSON.
        params: String,
    },
}

/// What came of a chore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientToolResult {
    /// The text of a file.
    Text(String),
    /// It was done.
    Fine,
    /// What a command wrote.
    Output {
        /// Its last bytes, as text.
        text: String,
        /// Whether older ones are gone.
        cut: bool,
        /// How it ended, if it did.
        end: Option<CommandEnd>,
    },
    /// A command ended.
    Ended(CommandEnd),
    /// A client was asked.
    Served {
        /// The client that did it.
        by: Resolver,
        /// Its result, as JSON, or its JSON-RPC error: the code, and in words.
        outcome: Result<String, (i64, String)>,
    },
}

/// How a command ended: by itself or by a signal; neither where the system cannot say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// Its exit code.
    pub code: Option<i32>,
    /// The name of the signal that killed it.
    pub signal: Option<String>,
}

/// Why a chore was not done, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientToolError {
    /// There is no such file.
    Missing(String),
    /// Anything else.
    Refused(String),
    /// The device that opened the session is not there, may not do it, or has not offered to.
    Nobody,
}
