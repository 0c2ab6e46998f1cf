//! `GET /v1/agents`: the agents that the gateway knows how to start.

use std::sync::Arc;

use http::StatusCode;
use plexus_protocol::{Connect, RuntimeId, RuntimeInfo, RuntimeState};
use serde::Serialize;
use utoipa::ToSchema;

use super::guard::Call;
use super::reply::{Outcome, gateway, json};
use super::{AppState, Problem};
use plexus_auth::Admin;

/// An agent that has a preset.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct KnownAgent {
    /// The name of its preset.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The dialect it speaks.
    pub dialect: &'static str,
    /// Whether its program was found.
    pub installed: bool,
    /// Where its program was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How to install it; absent for what is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<&'static str>,
    /// The variable of the gateway's environment that it signs in by. Without one it uses its own login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'static str>,
    /// The runtime that runs it, if one is ready or about to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<RuntimeId>,
    /// The program and its arguments. Not on the wire.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// Looks for the program of every preset; passed in, since the router may not import the presets. Reads the disk.
pub type FindAgents = Arc<dyn Fn() -> Vec<KnownAgent> + Send + Sync>;

/// The agents, in the order of the presets.
#[derive(Serialize, ToSchema)]
pub(super) struct Agents {
    /// The agents.
    agents: Vec<KnownAgent>,
}

/// Lists the agents.
pub(super) async fn list(state: AppState, call: Call) -> Outcome {
    gateway::<Admin>(&call)?;
    let find = Arc::clone(&state.agents);
    let mut agents = tokio::task::spawn_blocking(move || find()).await.map_err(|_| Problem::internal())?;
    let runtimes = state.directory.runtimes();
    for agent in &mut agents {
        let connect = Connect::Command(agent.command.clone());
        let there = runtimes.iter().find(|one| one.state != RuntimeState::Exited && runs(one, agent.dialect, &connect));
        agent.runtime_id = there.map(|there| there.runtime_id.clone());
    }
    json(StatusCode::OK, &Agents { agents })
}

/// Whether the runtime runs this agent: the same program, wherever it was found, with the same arguments, or the same endpoint.
pub(super) fn runs(runtime: &RuntimeInfo, dialect: &str, connect: &Connect) -> bool {
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
    use plexus_protocol::RuntimeSpec;

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
