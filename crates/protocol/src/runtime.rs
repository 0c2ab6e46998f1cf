//! Agent programs and endpoints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Capabilities, RuntimeId, Timestamp};

/// How to reach a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// Start this program and talk over its stdin and stdout: program, then arguments.
    Command(Vec<String>),
    /// Connect to a running endpoint: `ws://…`, `unix:…`, `http://…`.
    Endpoint(String),
}

/// What to do when a runtime dies by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Leave it dead.
    #[default]
    Never,
    /// Start it again, later and later, unless it exited with code 0.
    OnFailure,
    /// Start it again whatever its exit.
    Always,
}

/// Everything needed to start a runtime. Written down for the next gateway, which may be of another version: what it does
/// not know is ignored, what is missing has its default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuntimeSpec {
    /// Its name.
    pub id: RuntimeId,
    /// The dialect it speaks.
    pub dialect: String,
    /// How to reach it.
    pub connect: Connect,
    /// The folder it runs in, and its sessions start in.
    pub cwd: PathBuf,
    /// Variables set on top of the allow-list.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of variables passed through from the gateway's own environment, on top of the allow-list.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// What to do when it dies.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// The ACP authentication method to use without asking.
    #[serde(default)]
    pub auth_method: Option<String>,
    /// `_meta` to send with every ACP `session/new`.
    #[serde(default)]
    pub session_meta: Option<Box<RawValue>>,
    /// Whether a program outlives the gateway, in its holder, and is found again by the next one.
    #[serde(default = "yes")]
    pub outlive: bool,
    /// What an endpoint wants to be told before it talks: a password or a token. Never shown.
    #[serde(default)]
    pub secret: Option<String>,
    /// Where a Gemini UI takes prompts (its remote control), beside the mirror that is connected to.
    #[serde(default)]
    pub remote: Option<String>,
    /// What the gateway does for an ACP agent that asks.
    #[serde(default, deserialize_with = "serve_of_any_version")]
    pub serve: Serve,
}

fn yes() -> bool {
    true
}

/// Reads what another version wrote, which may serve more: what this one does not know it does not do.
fn serve_of_any_version<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Serve, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Any {
        fs: bool,
        terminal: bool,
    }
    Any::deserialize(from).map(|Any { fs, terminal }| Serve { fs, terminal })
}

/// What the gateway does for an ACP agent that asks its client, inside the session's folder. Nothing, unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    /// Reads files (`fs/read_text_file`), and writes them (`fs/write_text_file`) when people say so.
    pub fs: bool,
    /// Runs commands (`terminal/*`) when people say so.
    pub terminal: bool,
}

impl RuntimeSpec {
    /// A runtime with nothing set but what it cannot do without.
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
            secret: None,
            remote: None,
            serve: Serve::default(),
        }
    }
}

/// Where a runtime stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeState {
    /// Spawned; the handshake is under way.
    Starting,
    /// Ready for sessions.
    Ready,
    /// Dead; will be started again.
    Restarting,
    /// Dead.
    Exited,
}

impl RuntimeState {
    /// Every state there is.
    pub const ALL: [Self; 4] = [Self::Starting, Self::Ready, Self::Restarting, Self::Exited];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Exited => "exited",
        }
    }
}

/// A runtime as clients see it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Runtime)]
pub struct RuntimeInfo {
    /// Its name.
    pub runtime_id: RuntimeId,
    /// The dialect it speaks.
    pub dialect: String,
    /// Where it stands.
    pub state: RuntimeState,
    /// The program and its arguments, or the endpoint.
    pub connect: Connect,
    /// The folder it runs in.
    pub cwd: String,
    /// The agent's own name and version, once it said them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it can do, once it said so; more may come with its first session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The process, while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Counts its starts; 0 while a process that an earlier gateway left has not said which one it is.
    pub generation: u64,
    /// Names the process, and no other: random, made for each start. None for endpoints, and before it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Why it is not ready, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The end of what it wrote to stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// Whether somebody stopped it: it is not started again by itself. For the gateway alone.
    #[serde(skip)]
    pub stopped: bool,
    /// Whether it outlives the gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outlives: bool,
    /// When it last said anything: shown a few seconds late at most. A long silence is normal in agents that retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl RuntimeInfo {
    /// A runtime that is about to start for the `generation`th time, in the folder `cwd`.
    pub fn starting(spec: &RuntimeSpec, cwd: String, generation: u64, now: Timestamp) -> Self {
        Self {
            runtime_id: spec.id.clone(),
            dialect: spec.dialect.clone(),
            state: RuntimeState::Starting,
            connect: spec.connect.clone(),
            cwd,
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

    /// A process that an earlier gateway left, of which no more is known than the name of its runtime.
    pub fn unknown(id: RuntimeId, problem: String, now: Timestamp) -> Self {
        Self {
            runtime_id: id,
            dialect: String::new(),
            state: RuntimeState::Starting,
            connect: Connect::Command(Vec::new()),
            cwd: String::new(),
            agent: None,
            capabilities: None,
            pid: None,
            generation: 0,
            instance: None,
            problem: Some(problem),
            stderr_tail: String::new(),
            stopped: false,
            outlives: true,
            heard_at: None,
            updated_at: now,
        }
    }

    /// The same for who may see some of its sessions and nothing of the machine: no command, folder, process or words of
    /// the program's own.
    #[must_use]
    pub fn from_outside(&self) -> Self {
        Self {
            connect: match self.connect {
                Connect::Command(_) => Connect::Command(Vec::new()),
                Connect::Endpoint(_) => Connect::Endpoint(String::new()),
            },
            cwd: String::new(),
            pid: None,
            instance: None,
            problem: None,
            stderr_tail: String::new(),
            ..self.clone()
        }
    }

    /// Whether it runs and this gateway does not speak with it: only stopping it is possible.
    pub fn unattended(&self) -> bool {
        self.state == RuntimeState::Exited && self.generation == 0
    }
}
