//! `plexus mcp`: finds the gateway for [`plexus_bridges::mcp`].

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plexus_bridges::mcp::{FindGateway, McpOptions};
use plexus_protocol::SessionId;

use crate::cli::failure::CommandResult;
use crate::cli::home::{GatewayState, Home};

/// Serve a session's drawing tools to its agent on stdio, by the Model Context Protocol (started by agents)
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The session that the agent works in
    #[arg(long, value_name = "ID")]
    pub(crate) session: SessionId,
    /// The gateway's state folder [default: $PLEXUS_HOME, or else the platform's]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Check that this session makes each call: the agent has this server as NAME for other sessions too
    #[arg(long, value_name = "NAME")]
    pub(crate) shared: Option<String>,
}

/// Serves the agent until it closes stdin.
pub(crate) fn run(args: McpArgs) -> CommandResult {
    let home = match args.home {
        Some(dir) => Home::at(&dir),
        None => Home::find()?,
    };
    let options =
        McpOptions { session: args.session, home: home.dir().to_owned(), find: find(home), shared: args.shared };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(plexus_bridges::mcp::serve(options));
    // A thread that waits for a line on stdin must not keep the program running.
    runtime.shutdown_background();
    outcome.map(|()| 0)
}

/// The gateway has to prove that it wrote `gateway.json` before it gets the session's token.
fn find(home: Home) -> FindGateway {
    Arc::new(move || {
        let home = home.clone();
        Box::pin(async move {
            match home.gateway().await {
                Ok(GatewayState::Up(running)) => Ok(running.url),
                Ok(GatewayState::Down(reason)) => Err(format!("no gateway is running: {reason}")),
                Err(error) => Err(error.to_string()),
            }
        })
    })
}
