//! `plexus schema`: prints a description of the API.

use std::io::Write as _;

use clap::{Args, ValueEnum};

use crate::cli::failure::{CommandResult, FAILURE};

/// Print a description of the API, as a running gateway serves it
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The description to print
    description: Description,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Description {
    /// The HTTP API
    Openapi,
    /// The native WebSocket protocol
    Asyncapi,
    /// The answers of requests: verbs, order, keys
    Answers,
}

pub(crate) fn run(args: &SchemaArgs) -> CommandResult {
    let version = env!("CARGO_PKG_VERSION");
    let document = match args.description {
        Description::Openapi => plexus::openapi(version),
        Description::Asyncapi => plexus::router::asyncapi(version),
        Description::Answers => plexus_protocol::answers::data(),
    };
    Ok(if writeln!(std::io::stdout(), "{document:#}").is_ok() { 0 } else { FAILURE })
}
