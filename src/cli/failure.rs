//! Exit codes, and failures of commands.

use std::io::Write as _;

use super::output::clean;

/// Exit code of a general failure.
pub(crate) const FAILURE: u8 = 1;
/// Exit code of an invalid command line; clap's code too.
pub(crate) const USAGE: u8 = 2;
/// Exit code of an invalid configuration.
pub(crate) const BAD_CONFIG: u8 = 64;
/// Exit code if no gateway is running.
pub(crate) const NO_GATEWAY: u8 = 69;
/// Exit code if the caller is not permitted.
pub(crate) const NOT_PERMITTED: u8 = 77;

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) code: u8,
    /// The operation, the reason and the fix.
    pub(crate) message: String,
}

impl CommandFailure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failure with exit code 1, as an error.
    pub(crate) fn plain(message: impl Into<String>) -> anyhow::Error {
        Self::new(FAILURE, message).into()
    }
}

impl std::fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandFailure {}

/// The result of a command: an exit code, or an error to print.
pub(crate) type CommandResult = anyhow::Result<u8>;

/// Prints an error and returns the exit code. A closed pipe on stdout is not an error.
pub(crate) fn exit_code(result: CommandResult) -> u8 {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let is_broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(is_broken_pipe) {
        return 0;
    }
    // Errors may contain text of the gateway and of agents.
    let message = clean(&format!("{error:#}"));
    let _ = writeln!(std::io::stderr(), "plexus: {message}");
    error.downcast_ref::<CommandFailure>().map_or(FAILURE, |failure| failure.code)
}
