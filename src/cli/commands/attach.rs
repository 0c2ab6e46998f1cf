//! `plexus attach`: finds the gateway and the session, and hands the terminal to [`plexus_tui`].

use std::io::IsTerminal as _;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult, NOT_PERMITTED, USAGE};

/// Open the full-screen terminal UI: watch, prompt, answer
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The session to open [default: the inbox if something waits, else the list of sessions]
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: Option<String>,
    /// Use the mouse: wheel and clicks (selecting text in the terminal then needs Shift)
    #[arg(long)]
    mouse: bool,
}

pub(crate) async fn run(args: AttachArgs) -> CommandResult {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if dumb || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let fix = "use `plexus tail` for pipes, and `plexus prompt` and `plexus answer` in scripts";
        return Err(
            CommandFailure::new(USAGE, format!("attach needs a terminal that can move its cursor; {fix}")).into()
        );
    }
    let caller = Client::find().await?;
    let session = match &args.session {
        Some(name) => Some(caller.session(name).await?.session_id.to_string()),
        None => {
            // Checks the token while an error can still be printed.
            let _ = caller.runtimes().await?;
            None
        }
    };
    let dir = caller.home.dir().to_owned();
    let options = plexus_tui::AttachOptions { session, mouse: args.mouse, dir, address: caller.running.url };
    match plexus_tui::run(caller.gateway, options).await? {
        plexus_tui::End::Left => Ok(0),
        plexus_tui::End::Signal(number) => Ok(128 + number),
        plexus_tui::End::Refused(reason) => Err(CommandFailure::new(NOT_PERMITTED, reason).into()),
    }
}
