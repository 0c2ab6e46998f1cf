//! `plexus bridge`: an agent's stdio that is the running gateway. Editors and TUIs start it as if it were the agent.

use clap::{Args, ValueEnum};

use super::CommandResult;

mod acp;
mod codelia;

/// What the program that starts the bridge speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// The Agent Client Protocol, as editors speak it: Zed, Neovim, Emacs, acpx, Toad
    Acp,
    /// The UI protocol: Codelia's terminal UI
    Codelia,
}

#[derive(Debug, Args)]
pub(crate) struct Bridge {
    /// What the editor or TUI speaks
    #[arg(value_enum)]
    pub(crate) dialect: Dialect,
    /// Join this session where the editor first opens a new one: an identifier, the unique beginning of one, or `last`
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Open new sessions in this runtime [default: the gateway's first]
    #[arg(long, value_name = "RUNTIME")]
    pub(crate) runtime: Option<String>,
    /// Codelia's terminal UI passes this on; the gateway's agents ask as they are set up to, and it is said that they do
    #[arg(long, value_name = "MODE", hide = true)]
    pub(crate) approval_mode: Option<String>,
}

/// Serves the protocol named on stdin and stdout until its client leaves. The agent stays.
pub(crate) async fn bridge(args: Bridge) -> CommandResult {
    match args.dialect {
        Dialect::Acp => acp::serve(args).await,
        Dialect::Codelia => codelia::serve(args).await,
    }
}
