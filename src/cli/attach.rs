//! `plexus attach`: finds the gateway and the session, and hands the terminal to [`plexus_tui`].

use std::io::IsTerminal as _;

use super::args;
use super::client::Client;
use super::{CommandFailure, CommandResult, NOT_PERMITTED, USAGE};

pub(crate) async fn attach(args: args::Attach) -> CommandResult {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if dumb || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let fix = "use `plexus tail` for pipes, and `plexus prompt` and `plexus answer` in scripts";
        return Err(
            CommandFailure::new(USAGE, format!("attach needs a terminal that can move its cursor; {fix}")).into()
        );
    }
    let caller = Client::find().await?;
    let session = match &args.session {
        Some(meant) => Some(caller.session(meant).await?.session_id.to_string()),
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
        plexus_tui::End::Refused(why) => Err(CommandFailure::new(NOT_PERMITTED, why).into()),
    }
}
