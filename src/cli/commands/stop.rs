//! `plexus stop`: stops a runtime, also one that outlived its gateway.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;

use crate::cli::client::{Client, choose};
use crate::cli::complete::runtime_ids;
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::home::Home;
use crate::cli::output::{TITLE, line, print};

/// Stop a runtime
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    runtime: String,
}

pub(crate) async fn run(args: StopArgs) -> CommandResult {
    let client = match Client::find().await {
        Ok(client) => client,
        // A runtime that outlived its gateway can be stopped without one.
        Err(error) => return stop_without_gateway(&args.runtime).await.unwrap_or(Err(error)),
    };
    let runtimes = client.runtimes().await?;
    let runtime =
        choose(runtimes, &args.runtime, |runtime| runtime.runtime_id.as_str(), "runtime", "`plexus ls` lists them")?;
    client.run(calls::stop_runtime(&runtime.runtime_id), "stopping the runtime").await?;
    print(&format!("stopped {}\n", runtime.runtime_id))?;
    Ok(0)
}

/// Stops a runtime that a gateway left running; `None` if there is none of this name.
async fn stop_without_gateway(runtime: &str) -> Option<CommandResult> {
    let (home, runtime) = (Home::find().ok()?, runtime.to_owned());
    let (dir, name) = (home.dir().join(plexus::HOLDERS), runtime.clone());
    match tokio::task::spawn_blocking(move || plexus::runtimes::stop_left(&dir, &name)).await.ok()?? {
        Ok(()) => Some(print(&format!("stopped {}\n", line(&runtime, TITLE))).map(|()| 0)),
        Err(error) => {
            Some(Err(CommandFailure::new(FAILURE, format!("stopping {}: {error}", line(&runtime, TITLE))).into()))
        }
    }
}
