//! `plexus bridge`: a stdio surface. An editor or a terminal UI starts it as if it were the agent.

use clap::{Args, ValueEnum};

use super::Outcome;

mod acp;

/// What the program that starts the bridge speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// The Agent Client Protocol, as editors speak it: Zed, Neovim, Emacs, acpx, Toad
    Acp,
}

#[derive(Debug, Args)]
pub(crate) struct Bridge {
    /// What the program that starts this speaks
    #[arg(value_enum)]
    pub(crate) dialect: Dialect,
    /// Which session [default: the one that the client asks for, or a new one when it wants one]
    #[arg(long, value_name = "S")]
    pub(crate) session: Option<String>,
    /// Where new sessions are opened [default: the first runtime that is ready]
    #[arg(long, value_name = "R", conflicts_with = "session")]
    pub(crate) runtime: Option<String>,
}

/// Serves the protocol named on stdin and stdout until its client leaves. The agent stays.
pub(crate) async fn bridge(args: Bridge) -> Outcome {
    match args.dialect {
        Dialect::Acp => acp::serve(args).await,
    }
}
