//! `GET /v1/agents`: the agents that the gateway knows how to start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use http::StatusCode;
use plexus_protocol::api::runtimes::{Agents, KnownAgent, StartRuntime};
use plexus_protocol::{Connect, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState};

use plexus_auth::Admin;
use plexus_risk::Effect;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, created, gateway, json, within_limit};
use plexus_router::routes::{ADMIN, GET, JSON, NOTHING, POST, route};
use plexus_router::{Core, Problem};

/// Returns the routes of agents that the gateway knows how to start.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<AgentsState>> {
    vec![
        route(POST, "/v1/runtimes", ADMIN, JSON, "Start a runtime", start_runtime)
            .request::<StartRuntime>().response::<RuntimeInfo>(201).effect(Effect::StartAgent),
        route(GET, "/v1/agents", ADMIN, NOTHING, "The agents that the gateway knows how to start: which are installed, and how to install the others", list)
            .response::<Agents>(200),
    ]
}

/// The settings that a client adds to a preset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresetChanges {
    /// The runtime's name; the preset's if absent.
    pub id: Option<RuntimeId>,
    /// The folder to run in.
    pub cwd: Option<PathBuf>,
    /// Environment variables added to the preset's.
    pub env: BTreeMap<String, String>,
}

/// Makes the spec of a runtime from a preset's name and the client's settings; passed in, since a feature may not import the
/// presets. The error is a text for users, with the fix.
pub type Presets = Arc<dyn Fn(&str, &PresetChanges) -> Result<RuntimeSpec, String> + Send + Sync>;

/// Searches the program of every preset; passed in as well. Reads the disk.
pub type FindAgents = Arc<dyn Fn() -> Vec<KnownAgent> + Send + Sync>;

/// Maximum number of names tried for a runtime without one: `gemini`, `gemini-2` …
const NAMES: usize = 1000;

/// The state of agents.
#[derive(Clone)]
pub struct AgentsState {
    /// The kernel.
    pub core: Core,
    /// Presets.
    pub presets: Presets,
    /// The function that finds the agents of the presets.
    pub find: FindAgents,
}

/// Lists the agents.
async fn list(state: AgentsState, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let find = Arc::clone(&state.find);
    let mut agents = tokio::task::spawn_blocking(move || find()).await.map_err(|_| Problem::internal())?;
    let runtimes = state.core.directory.runtimes();
    for agent in &mut agents {
        let connect = Connect::Command(agent.command.clone());
        let running =
            runtimes.iter().find(|one| one.state != RuntimeState::Exited && runs(one, &agent.dialect, &connect));
        agent.runtime_id = running.map(|running| running.runtime_id.clone());
    }
    json(StatusCode::OK, &Agents { agents: agents.into() })
}

/// Returns the effect of starting a runtime.
pub(crate) fn start_effect(start: &StartRuntime) -> Effect {
    let named = start.command.is_some() || !start.env.is_empty();
    if named { Effect::RunProgram } else { Effect::StartAgent }
}

async fn start_runtime(state: AgentsState, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let request: StartRuntime = call.json()?;
    within_limit(&call, start_effect(&request))?;
    let named = request.id.is_some();
    let mut spec = start_spec(&state.presets, request)?;
    if !named {
        spec.id = free_name(&state.core, spec.id);
    }
    let runtime = state.core.directory.start_runtime(&permit, spec).await?;
    created(&format!("/v1/runtimes/{}", runtime.runtime_id), &*runtime)
}

/// Returns the settings of the requested runtime; its name may be in use.
pub(crate) fn start_spec(presets: &Presets, request: StartRuntime) -> Result<RuntimeSpec, Problem> {
    if let Some(cwd) = request.cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        return Err(Problem::invalid(format!("`cwd` must be an absolute path, not {cwd:?}")));
    }
    // Without `..`: a new member does not compile until it has an effect.
    let StartRuntime {
        preset,
        dialect,
        command,
        connect,
        cwd,
        env,
        pass_env,
        id,
        restart,
        auth_method,
        session_meta,
        outlive,
        ui,
        secret,
        remote,
        serve,
    } = request;
    let changes = PresetChanges { id, cwd, env };
    let spec = match preset {
        Some(_) if dialect.is_some() || command.is_some() || connect.is_some() => {
            return Err(Problem::invalid("a `preset` defines `dialect`, `command` and `connect`: leave them out"));
        }
        Some(preset) => presets(&preset, &changes).map_err(Problem::invalid)?,
        None => custom_spec(dialect, command, connect, changes)?,
    };
    Ok(RuntimeSpec {
        pass_env: spec.pass_env.into_iter().chain(pass_env).collect(),
        restart: restart.unwrap_or(spec.restart),
        auth_method: auth_method.or(spec.auth_method),
        session_meta: session_meta.or(spec.session_meta),
        outlive: outlive.unwrap_or(spec.outlive),
        ui: ui.unwrap_or(spec.ui),
        secret: secret.or(spec.secret),
        remote: remote.or(spec.remote),
        serve: serve.unwrap_or(spec.serve),
        ..spec
    })
}

fn custom_spec(
    dialect: Option<String>,
    command: Option<Vec<String>>,
    connect: Option<String>,
    changes: PresetChanges,
) -> Result<RuntimeSpec, Problem> {
    let dialect = dialect.ok_or_else(|| Problem::invalid("give a `preset`, or a `dialect`"))?;
    let connect = match (command, connect) {
        (Some(command), None) if command.first().is_some_and(|program| !program.is_empty()) => {
            Connect::Command(command)
        }
        (None, Some(endpoint)) if !endpoint.is_empty() => Connect::Endpoint(endpoint),
        _ => {
            return Err(Problem::invalid(
                "give either `command`, a program and its arguments, or `connect`, an endpoint",
            ));
        }
    };
    let program = match &connect {
        Connect::Command(command) => command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default(),
        Connect::Endpoint(_) => &dialect,
    };
    let id = changes.id.or_else(|| program.parse().ok()).unwrap_or_else(|| RuntimeId::trusted("runtime"));
    let cwd = changes.cwd.ok_or_else(|| Problem::invalid("give `cwd`, the folder to run in"))?;
    Ok(RuntimeSpec { env: changes.env, ..RuntimeSpec::new(id, &dialect, connect, cwd) })
}

/// Returns the name, or the first free one of `NAME-2` …
pub(crate) fn free_name(core: &Core, id: RuntimeId) -> RuntimeId {
    let others = (2..NAMES).filter_map(|n| format!("{id}-{n}").parse().ok());
    let mut free = std::iter::once(id.clone()).chain(others).filter(|name| core.directory.runtime(name).is_none());
    free.next().unwrap_or(id)
}

/// Returns whether the runtime runs this agent: the same program, regardless of its folder, with the same arguments, or the same
/// endpoint.
pub(crate) fn runs(runtime: &RuntimeInfo, dialect: &str, connect: &Connect) -> bool {
    let same = match (&runtime.connect, connect) {
        (Connect::Command(one), Connect::Command(other)) => {
            one.get(1..) == other.get(1..) && !other.is_empty() && program_name(one) == program_name(other)
        }
        (one, other) => one == other,
    };
    same && runtime.dialect == dialect
}

fn program_name(command: &[String]) -> Option<&str> {
    command.first().and_then(|program| program.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_is_the_same_wherever_its_program_was_found() {
        let command = |words: &str| Connect::Command(words.split(' ').map(str::to_owned).collect());
        let info = |connect: &Connect| {
            let spec = RuntimeSpec::new(RuntimeId::trusted("r"), "acp", connect.clone(), "/");
            RuntimeInfo::starting(&spec, "/".into(), 1, std::time::SystemTime::UNIX_EPOCH.into())
        };
        let endpoint = |at: &str| Connect::Endpoint(at.to_owned());
        for (one, other, same) in [
            (command("/usr/bin/gemini --acp"), command("gemini --acp"), true),
            (command("gemini --acp"), command("gemini"), false),
            (command("gemini --acp"), command("qwen --acp"), false),
            (endpoint("ws://127.0.0.1:1/"), endpoint("ws://127.0.0.1:1/"), true),
            (endpoint("ws://127.0.0.1:1/"), endpoint("ws://127.0.0.1:2/"), false),
            (Connect::Command(Vec::new()), Connect::Command(Vec::new()), false),
        ] {
            assert_eq!(runs(&info(&one), "acp", &other), same, "{one:?} {other:?}");
        }
        assert!(!runs(&info(&command("gemini")), "codex", &command("gemini")));
    }
}
