//! `plexus logs`: prints the gateway's own log.

use clap::Args;

use crate::cli::failure::CommandResult;
use crate::cli::home::{GatewayState, Home};
use crate::cli::log_source::{LogFacts, LogSource, stderr_file};
use crate::cli::service::installed_service;

/// Print the gateway's own log
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Print new lines as they are written
    #[arg(short, long)]
    pub(super) follow: bool,
    /// The number of lines from the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    pub(super) lines: u32,
}

pub(crate) async fn run(args: LogsArgs) -> CommandResult {
    let home = Home::find()?;
    let running = match home.gateway().await? {
        GatewayState::Up(running) => Some(running.pid),
        GatewayState::Down(_) => None,
    };
    let service = installed_service().await;
    let is_service = |pid| service.as_ref().is_some_and(|(_, service)| service.runs(pid));
    let facts = LogFacts {
        gateway: running.map(|pid| (pid, is_service(pid))),
        service: service.map(|(manager, _)| LogSource::for_service(manager)).transpose()?,
        stderr: match running {
            Some(pid) => stderr_file(pid).await,
            None => None,
        },
        detached: Some(home.dir().join("gateway.log")).filter(|file| file.is_file()),
    };
    facts.source()?.print(args.lines, args.follow).await
}
