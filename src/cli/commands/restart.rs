//! `plexus restart`: restarts a runtime.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;

use crate::cli::client::{Client, choose};
use crate::cli::complete::runtime_ids;
use crate::cli::failure::CommandResult;
use crate::cli::output::print;

/// Restart a runtime; its sessions continue
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    runtime: String,
}

pub(crate) async fn run(args: RestartArgs) -> CommandResult {
    let client = Client::find().await?;
    let runtimes = client.runtimes().await?;
    let runtime =
        choose(runtimes, &args.runtime, |runtime| runtime.runtime_id.as_str(), "runtime", "`plexus ls` lists them")?;
    client.run(calls::restart_runtime(&runtime.runtime_id), "restarting the runtime").await?;
    print(&format!("restarted {}\n", runtime.runtime_id))?;
    Ok(0)
}
