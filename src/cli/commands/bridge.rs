//! `plexus bridge`: finds the gateway, the session and the runtime, and passes stdin and stdout to [`plexus_bridges`].

use clap::{Args, ValueEnum};
use plexus_protocol::RuntimeId;

use crate::cli::client::{Client, choose, failure};
use crate::cli::failure::CommandResult;

/// The protocol of the program that starts the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// The Agent Client Protocol, as editors speak it: Zed, Neovim, Emacs, acpx, Toad
    Acp,
    /// The Codelia UI protocol, as its terminal UI speaks it
    Codelia,
}

/// Act as an agent on stdio, for editors and terminal UIs
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// The protocol of the editor or terminal UI
    #[arg(value_enum)]
    pub(crate) dialect: Dialect,
    /// Join this session when the editor first opens a new one: an identifier, a unique prefix of one, or `last`
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Open new sessions in this runtime [default: the gateway's first]
    #[arg(long, value_name = "RUNTIME")]
    pub(crate) runtime: Option<String>,
    /// Accepted for Codelia's terminal UI; it has no effect, because agents ask according to their own settings
    #[arg(long, value_name = "MODE", hide = true)]
    pub(crate) approval_mode: Option<String>,
}

/// Serves a protocol on stdin and stdout until the client disconnects. The agent keeps running.
pub(crate) async fn run(args: BridgeArgs) -> CommandResult {
    match args.dialect {
        Dialect::Acp => acp(args).await,
        Dialect::Codelia => match codelia_target(args).await {
            Ok((client, target)) => bridge_result(plexus_bridges::codelia::serve(client.gateway, target).await),
            Err(error) => {
                plexus_bridges::codelia::show_error(&error).await;
                Err(error)
            }
        },
    }
}

async fn acp(args: BridgeArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = match &args.session {
        Some(name) => Some(client.session(name).await?.session_id),
        None => None,
    };
    let runtime = runtime(&client, args.runtime.as_deref()).await?;
    bridge_result(plexus_bridges::acp::serve(client.gateway, session, runtime).await)
}

async fn codelia_target(args: BridgeArgs) -> anyhow::Result<(Client, plexus_bridges::codelia::CodeliaTarget)> {
    let client = Client::find().await?;
    let notice = args
        .approval_mode
        .map(|mode| format!("--approval-mode {mode} has no effect here: agents ask according to their own settings"));
    let runtime = runtime(&client, args.runtime.as_deref()).await?;
    let session = match &args.session {
        Some(name) => Some(client.session(name).await?),
        None => None,
    };
    Ok((client, plexus_bridges::codelia::CodeliaTarget { session, runtime, notice }))
}

/// The runtime with this name.
async fn runtime(client: &Client, name: Option<&str>) -> anyhow::Result<Option<RuntimeId>> {
    let Some(name) = name else { return Ok(None) };
    let all = client.runtimes().await?;
    let runtime = choose(all, name, |runtime| runtime.runtime_id.as_str(), "runtime", "`plexus ls` lists them")?;
    Ok(Some(runtime.runtime_id.clone()))
}

/// The result of a bridge; errors of the client library have exit codes of their own.
fn bridge_result(outcome: anyhow::Result<()>) -> CommandResult {
    match outcome {
        Ok(()) => Ok(0),
        Err(error) => match error.downcast::<plexus_client::Error>() {
            Ok(error) => Err(failure("bridging", &error).into()),
            Err(error) => Err(error),
        },
    }
}
