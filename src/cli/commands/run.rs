//! `plexus run`: attaches an agent, opens a session and follows it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus::runtimes::presets;
use plexus_client::calls;
use plexus_protocol::api::runtimes::StartRuntime;
use plexus_protocol::api::sessions::NewSession;
use plexus_protocol::{Connect, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState};

use crate::cli::agent_start::{
    AGENT_START, AgentChoice, AgentEnvironmentArgs, POLL_EVERY, keep_if_opened, runtime_spec,
};
use crate::cli::client::Client;
use crate::cli::complete::{dialect_names, preset_names};
use crate::cli::failure::{CommandFailure, CommandResult, USAGE};
use crate::cli::follow_session::follow_opened;
use crate::cli::gateway_start::running_or_started;
use crate::cli::output::{line, print};

fn known_agents() -> String {
    let names: Vec<&str> = presets::presets().iter().map(|preset| preset.name).collect();
    format!("A known agent: {}", names.join(", "))
}

/// Start an agent, open a session and follow it here; starts a gateway if none is running
#[derive(Debug, Args)]
#[command(override_usage = "plexus run PRESET [OPTIONS]\n       plexus run --dialect D [OPTIONS] -- CMD [ARGS]...")]
pub(crate) struct RunArgs {
    #[arg(help = known_agents(), add = ArgValueCandidates::new(preset_names), required_unless_present = "cmd", conflicts_with_all = ["cmd", "dialect"])]
    preset: Option<String>,
    /// The protocol of CMD: acp, codelia or codex
    #[arg(long, value_name = "D", requires = "cmd", required_unless_present = "preset", add = ArgValueCandidates::new(dialect_names))]
    dialect: Option<String>,
    /// The runtime's name [default: the name of the preset or program]
    #[arg(long)]
    id: Option<String>,
    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The first prompt; without a terminal, also the only one: exits when it is done (0) or failed (1)
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The session's title
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    environment: AgentEnvironmentArgs,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    cmd: Vec<String>,
}

pub(crate) async fn run(args: RunArgs) -> CommandResult {
    let choice = AgentChoice {
        preset: args.preset.as_deref(),
        dialect: args.dialect.as_deref(),
        command: &args.cmd,
        cwd: args.cwd.as_deref(),
        environment: &args.environment,
    };
    let spec = runtime_spec(&choice)?;
    let id: Option<RuntimeId> = match &args.id {
        Some(id) => Some(id.parse().map_err(|error| CommandFailure::new(USAGE, format!("--id {id}: {error}")))?),
        None => None,
    };
    let client = running_or_started().await?;
    let attached = attach(&client, &spec, id, args.preset.as_deref(), args.environment.given_option()).await?;
    let request = NewSession {
        runtime_id: Some(attached.runtime.runtime_id.clone()),
        cwd: Some(spec.cwd.display().to_string()),
        title: args.title,
        ..NewSession::default()
    };
    let opened = client.run(calls::open_session(&request), "opening a session").await;
    let started = attached.is_new.then_some(&attached.runtime.runtime_id);
    let session = keep_if_opened(&client, started, opened).await?;
    follow_opened(client, session, args.prompt).await
}

/// A runtime for a session.
struct AttachedRuntime {
    runtime: Arc<RuntimeInfo>,
    /// `true` if the runtime was started now, and its name was not listed before.
    is_new: bool,
}

/// Starts the runtime, or uses one that is already attached.
async fn attach(
    client: &Client,
    spec: &RuntimeSpec,
    id: Option<RuntimeId>,
    preset: Option<&str>,
    environment_option: Option<&str>,
) -> anyhow::Result<AttachedRuntime> {
    let name = id.as_ref().map(ToString::to_string).or_else(|| preset.map(str::to_owned));
    // One process of these dialects serves any number of sessions, so a second one is not needed; a process of Codelia serves one.
    if matches!(spec.dialect.as_str(), "acp" | "codex")
        && let Some(name) = &name
        && let Some(runtime) = client.runtimes().await?.into_iter().find(|runtime| {
            runtime.runtime_id.as_str() == name
                && runtime.state == RuntimeState::Ready
                && runtime.connect == spec.connect
        })
    {
        if let Some(option) = environment_option {
            let reason =
                format!("{option}: {name} is already running, and an agent gets its environment when it starts");
            let fix = format!("use --id OTHER to start another one, or stop it first: plexus stop {name}");
            return Err(CommandFailure::new(USAGE, format!("{reason}; {fix}")).into());
        }
        print(&format!("{name} is already running\n"))?;
        return Ok(AttachedRuntime { runtime, is_new: false });
    }
    let mut request = start_body(spec);
    let taken = client.runtimes().await?;
    match &id {
        Some(id) => request.id = Some(id.clone()),
        // If the preset's name is taken, the next one is used: gemini, gemini-2, etc. An ended runtime with the same spec is started again.
        None => {
            if let Some(preset) = preset {
                let differs = |runtime: &RuntimeInfo| {
                    let cwd = spec.cwd.display().to_string();
                    runtime.state != RuntimeState::Exited
                        || runtime.unattended()
                        || runtime.connect != spec.connect
                        || runtime.cwd != cwd
                };
                let free = std::iter::once(preset.to_owned()).chain((2..).map(|n| format!("{preset}-{n}")));
                let mut free = free.filter(|name| {
                    !taken.iter().any(|runtime| runtime.runtime_id.as_str() == name && differs(runtime))
                });
                request.id = free.next().map(RuntimeId::trusted);
            }
        }
    }
    let label = request.id.as_ref().map(ToString::to_string).or_else(|| match &spec.connect {
        Connect::Command(command) => command.first().cloned(),
        Connect::Endpoint(endpoint) => Some(endpoint.clone()),
    });
    let label = line(&label.unwrap_or_default(), 200);
    print(&format!("starting {label} … "))?;
    let start = Instant::now();
    let runtime_id = match client.run(calls::start_runtime(&request), "starting the agent").await {
        Ok(started) => started.runtime_id,
        Err(error) => {
            print("failed\n")?;
            return Err(error);
        }
    };
    let is_new = !taken.iter().any(|runtime| runtime.runtime_id == runtime_id);
    let problem = match wait_until_ready(client, &runtime_id, start).await? {
        Ok(runtime) => return Ok(AttachedRuntime { runtime, is_new }),
        Err(problem) => problem,
    };
    print("failed\n")?;
    // A runtime that was never ready is removed from the list.
    if problem.ended && is_new {
        let _ = client.run(calls::stop_runtime(&runtime_id), "removing the agent").await;
    }
    Err(CommandFailure::plain(format!("{label} did not start: {}", problem.reason)))
}

/// The request that starts this runtime, without its name.
fn start_body(spec: &RuntimeSpec) -> StartRuntime {
    let (command, connect) = match spec.connect.clone() {
        Connect::Command(command) => (Some(command), None),
        Connect::Endpoint(endpoint) => (None, Some(endpoint)),
    };
    StartRuntime {
        dialect: Some(spec.dialect.clone()),
        command,
        connect,
        cwd: Some(spec.cwd.clone()),
        env: spec.env.clone(),
        pass_env: spec.pass_env.clone(),
        auth_method: spec.auth_method.clone(),
        session_meta: spec.session_meta.clone(),
        ..StartRuntime::default()
    }
}

/// The reason why a runtime did not start.
struct StartProblem {
    reason: String,
    /// `true` if the runtime has ended and is still in the list.
    ended: bool,
}

/// Waits until a runtime is ready or has ended.
async fn wait_until_ready(
    client: &Client,
    runtime_id: &RuntimeId,
    start: Instant,
) -> anyhow::Result<Result<Arc<RuntimeInfo>, StartProblem>> {
    loop {
        let listed = client.runtimes().await?.into_iter().find(|runtime| runtime.runtime_id == *runtime_id);
        let ended = listed.as_ref().is_some_and(|runtime| runtime.state == RuntimeState::Exited);
        let reason = match listed {
            Some(runtime) if runtime.state == RuntimeState::Ready => {
                let agent =
                    runtime.agent.as_deref().map(|agent| format!(" ({})", line(agent, 100))).unwrap_or_default();
                print(&format!("ready in {:.1} s{agent}\n", start.elapsed().as_secs_f64()))?;
                return Ok(Ok(runtime));
            }
            Some(runtime) if runtime.state == RuntimeState::Exited => {
                let reason = runtime.problem.clone().unwrap_or_else(|| "it ended".into());
                let tail = runtime.stderr_tail.trim_end();
                if tail.is_empty() { reason } else { format!("{reason}; its output:\n{tail}") }
            }
            None => "it has ended".into(),
            Some(_) if start.elapsed() > AGENT_START => {
                "it is not ready after a long time; `plexus stop` stops it".into()
            }
            Some(_) => {
                tokio::time::sleep(POLL_EVERY).await;
                continue;
            }
        };
        return Ok(Err(StartProblem { reason, ended }));
    }
}
