//! Runtimes: agent programs and endpoints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Capabilities, RuntimeId, Timestamp};

/// Prefix of the address of a runtime whose sessions begin in terminals of their own: `link:AGENT`.
pub const LINK_SCHEME: &str = "link:";

/// The connection of the gateway to a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// A program to start, which communicates over its stdin and stdout: the program, then its arguments.
    Command(Vec<String>),
    /// A running endpoint to connect to: `ws://…`, `unix:…`, `http://…`.
    Endpoint(String),
}

/// The reaction to an exit of a runtime that was not stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Do not restart.
    #[default]
    Never,
    /// Restart with growing delays, unless it exited with code 0.
    OnFailure,
    /// Restart regardless of the exit code.
    Always,
}

/// The settings of a runtime. They are passed to the next gateway, which may be of another version: unknown fields are ignored, missing
/// fields have defaults.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuntimeSpec {
    /// The name.
    pub id: RuntimeId,
    /// The runtime's dialect.
    pub dialect: String,
    /// The connection to the runtime.
    pub connect: Connect,
    /// The working directory, of the program and of new sessions.
    pub cwd: PathBuf,
    /// Variables set on top of the allow-list.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of variables passed through from the gateway's own environment, on top of the allow-list.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// The condition of a restart.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// The ACP authentication method to use without asking.
    #[serde(default)]
    pub auth_method: Option<String>,
    /// `_meta` to send with every ACP `session/new`.
    #[serde(default)]
    pub session_meta: Option<Box<RawValue>>,
    /// `true` if the program outlives the gateway in its holder, so that the next gateway can take it over.
    #[serde(default = "enabled")]
    pub outlive: bool,
    /// The password or token of an endpoint. Never displayed.
    #[serde(default)]
    pub secret: Option<String>,
    /// The remote control of a Gemini UI, which accepts prompts besides the mirror.
    #[serde(default)]
    pub remote: Option<String>,
    /// `true` if its agents get the gateway's tools for surfaces and questions.
    #[serde(default = "enabled")]
    pub ui: bool,
    /// The client tools that the gateway serves to an ACP agent.
    #[serde(default, deserialize_with = "serve_of_any_version")]
    pub serve: Serve,
}

fn enabled() -> bool {
    true
}

/// Reads the client tools that another version wrote: unknown ones are not served.
fn serve_of_any_version<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Serve, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Any {
        fs: bool,
        terminal: bool,
    }
    Any::deserialize(from).map(|Any { fs, terminal }| Serve { fs, terminal })
}

/// The client tools that the gateway serves to an ACP agent, inside the session's folder. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    /// Reads files (`fs/read_text_file`), and writes them (`fs/write_text_file`) after an approval.
    pub fs: bool,
    /// Runs commands (`terminal/*`) after an approval.
    pub terminal: bool,
}

impl RuntimeSpec {
    /// Makes a runtime with default settings.
    pub fn new(id: RuntimeId, dialect: &str, connect: Connect, cwd: impl Into<PathBuf>) -> Self {
        Self {
            id,
            dialect: dialect.to_owned(),
            connect,
            cwd: cwd.into(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            restart: RestartPolicy::Never,
            auth_method: None,
            session_meta: None,
            outlive: true,
            ui: true,
            secret: None,
            remote: None,
            serve: Serve::default(),
        }
    }
}

/// The runtime of the terminals in which users start Codex by hand.
pub const CODEX_TERMINAL: &str = "codex-terminal";

/// The state of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeState {
    /// The runtime was started; the handshake is in progress.
    Starting,
    /// The runtime is ready for sessions.
    Ready,
    /// The runtime exited and will be started again.
    Restarting,
    /// The runtime exited.
    Exited,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl RuntimeState {
    /// Every state that the gateway sends.
    pub const ALL: [Self; 4] = [Self::Starting, Self::Ready, Self::Restarting, Self::Exited];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        }
    }
}

/// A runtime in the form that clients see.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Runtime)]
pub struct RuntimeInfo {
    /// The name.
    pub runtime_id: RuntimeId,
    /// The runtime's dialect.
    pub dialect: String,
    /// The runtime's state.
    pub state: RuntimeState,
    /// The program and its arguments, or the endpoint.
    pub connect: Connect,
    /// The folder of the runtime.
    pub cwd: String,
    /// `true` if the runtime's commands run in `cwd`, regardless of the session's folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed_folder: bool,
    /// The first action that the runtime took without asking, in a session in which it has never asked and no user has allowed it to act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_unasked: Option<String>,
    /// The reviewer of its own that the runtime asks instead of users ("Codex's reviewer").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The agent's own name and version, once reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The runtime's capabilities, once reported; its first session may add more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The process id, while the process runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The number of starts; 0 for a process of an earlier gateway until its number is known.
    pub generation: u64,
    /// A random name of this process, made for each start. Absent for endpoints, and before the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The reason why the runtime is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The end of the runtime's output on stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// `true` if the runtime was stopped on request: it is not restarted. Not on the wire.
    #[serde(skip)]
    pub stopped: bool,
    /// `true` if the runtime outlives the gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outlives: bool,
    /// The time when the runtime last sent anything; published with a delay of a few seconds at most. A long silence is normal in agents
    /// that retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// The time of the runtime's last change.
    pub updated_at: Timestamp,
}

impl RuntimeInfo {
    /// Makes a runtime that is about to start for the `generation`th time, in the folder `cwd`.
    pub fn starting(spec: &RuntimeSpec, cwd: String, generation: u64, now: Timestamp) -> Self {
        Self {
            runtime_id: spec.id.clone(),
            dialect: spec.dialect.clone(),
            state: RuntimeState::Starting,
            connect: spec.connect.clone(),
            cwd,
            fixed_folder: false,
            acted_unasked: None,
            reviewer: None,
            agent: None,
            capabilities: None,
            pid: None,
            generation,
            instance: None,
            problem: None,
            stderr_tail: String::new(),
            stopped: false,
            outlives: spec.outlive && matches!(spec.connect, Connect::Command(_)),
            heard_at: None,
            updated_at: now,
        }
    }

    /// Makes a process of an earlier gateway of which only the runtime's name is known.
    pub fn unknown(id: RuntimeId, problem: String, now: Timestamp) -> Self {
        let spec = RuntimeSpec::new(id, "", Connect::Command(Vec::new()), "");
        Self { problem: Some(problem), outlives: true, ..Self::starting(&spec, String::new(), 0, now) }
    }

    /// Returns the runtime for a device that may see only some of its sessions: without command, folder, process and the program's own
    /// output.
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self {
            connect: match self.connect {
                Connect::Command(_) => Connect::Command(Vec::new()),
                Connect::Endpoint(_) => Connect::Endpoint(String::new()),
            },
            cwd: String::new(),
            acted_unasked: None,
            pid: None,
            instance: None,
            problem: None,
            stderr_tail: String::new(),
            ..self.clone()
        }
    }

    /// Returns the runtime for a new session of a client that names none: the first that is ready, else the first. The runtime of users'
    /// own terminals, which the gateway attaches by itself, comes after those that a user has attached and that have not ended; one whose
    /// sessions all begin in their terminals comes last.
    pub fn preferred<R: AsRef<Self>>(all: &[R]) -> Option<&R> {
        let order = |info: &Self| {
            let terminals = info.runtime_id.as_str() == CODEX_TERMINAL;
            let is_linked = matches!(&info.connect, Connect::Endpoint(at) if at.starts_with(LINK_SCHEME));
            (is_linked, info.state == RuntimeState::Exited, terminals, info.state != RuntimeState::Ready)
        };
        all.iter().min_by_key(|one| order((*one).as_ref()))
    }

    /// Returns the folder of the runtime's commands, if that is the process's own. The folder of an endpoint's process is unknown.
    pub fn command_folder(&self) -> Option<String> {
        let known = self.fixed_folder && matches!(self.connect, Connect::Command(_));
        known.then(|| self.cwd.clone())
    }

    /// Returns whether the process runs without a connection to this gateway: it can only be stopped.
    pub fn unattended(&self) -> bool {
        self.state == RuntimeState::Exited && self.generation == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn usual_runtime_is_one_that_somebody_attached() {
        let info = |id: &str, state| {
            let spec = RuntimeSpec::new(RuntimeId::trusted(id), "acp", Connect::Command(Vec::new()), "/");
            let starting = RuntimeInfo::starting(&spec, "/".into(), 1, std::time::SystemTime::UNIX_EPOCH.into());
            Arc::new(RuntimeInfo { state, ..starting })
        };
        use RuntimeState::{Exited, Ready, Starting};
        for (all, expected) in [
            (vec![], None),
            (vec![("a", Starting), ("b", Ready)], Some("b")),
            (vec![("a", Exited), ("b", Starting)], Some("b")),
            (vec![("a", Exited)], Some("a")),
            (vec![(CODEX_TERMINAL, Ready)], Some(CODEX_TERMINAL)),
            (vec![(CODEX_TERMINAL, Ready), ("gemini", Starting)], Some("gemini")),
            (vec![(CODEX_TERMINAL, Ready), ("gemini", Exited)], Some(CODEX_TERMINAL)),
        ] {
            let all: Vec<_> = all.into_iter().map(|(id, state)| info(id, state)).collect();
            assert_eq!(RuntimeInfo::preferred(&all).map(|info| info.runtime_id.as_str()), expected, "{all:?}");
        }
    }
}
