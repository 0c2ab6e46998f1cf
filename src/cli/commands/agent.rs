//! `plexus agent`: the built-in agents.

use std::io::Write as _;

use clap::Subcommand;

use crate::cli::demo;
use crate::cli::failure::{CommandResult, FAILURE};

/// Run a built-in agent
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// A scripted ACP agent on stdio, to try Plexus out and for tests
    Demo,
}

pub(crate) fn run(command: &AgentCommand) -> CommandResult {
    match command {
        AgentCommand::Demo => match demo::run() {
            Ok(()) => Ok(0),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "plexus agent demo: {error}");
                Ok(FAILURE)
            }
        },
    }
}
