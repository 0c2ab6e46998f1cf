//! `plexus attach`: finds the gateway and the session, and hands the terminal to [`plexus_tui`].

use std::io::IsTerminal as _;
use std::sync::Arc;

use plexus_client::{Address, Client, Error};

use super::args;
use super::client::Client as Caller;
use super::{CommandFailure, CommandResult, NOT_PERMITTED, USAGE};

pub(crate) async fn attach(args: args::Attach) -> CommandResult {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if dumb || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let fix = "`plexus tail` follows into a pipe, `plexus prompt` and `plexus answer` are for scripts";
        return Err(
            CommandFailure::new(USAGE, format!("attach needs a terminal that can move its cursor; {fix}")).into()
        );
    }
    let caller = Caller::find().await?;
    let session = match &args.session {
        Some(meant) => Some(caller.session(meant).await?.session_id.to_string()),
        None => {
            // Whether the token is good is found out while words can still be read.
            let _ = caller.runtimes().await?;
            None
        }
    };
    let home = caller.home.clone();
    let dir = home.dir().to_owned();
    // A gateway that was started again may listen elsewhere.
    let client = Client::locating(Arc::new(move || {
        let home = home.clone();
        Box::pin(async move {
            let running = home.running().await.map_err(|why| Error::Unreached(why.to_string()))?;
            let token = home.token().map_err(|why| Error::Refused(why.to_string()))?;
            Ok(Address { url: running.url, token, program: Some("attach".into()) })
        })
    }));
    match plexus_tui::run(client, session, args.mouse, &dir).await? {
        plexus_tui::End::Left => Ok(0),
        plexus_tui::End::Signal(number) => Ok(128 + number),
        plexus_tui::End::Refused(why) => Err(CommandFailure::new(NOT_PERMITTED, why).into()),
    }
}
