//! Sessions and runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::known_items::known_value;

use super::{CeilingKind, NativeId, Project, RequestId, Resolver, RunId, RuntimeId, SessionId, Timestamp};

/// A permission of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read sessions, events and requests.
    Watch,
    /// Start sessions, prompt and cancel.
    Prompt,
    /// Answer requests.
    Approve,
    /// Administer runtimes, devices and settings.
    Admin,
    /// Type in shared terminals, which allows running any command as the owner. Granted only if it is requested by name.
    Type,
    /// Draw surfaces and ask by them in one session. Only agents have this scope; no device can get it.
    Ui,
}

impl Scope {
    /// Every scope that a device may have, weakest first.
    pub const ALL: [Scope; 5] = [Scope::Watch, Scope::Prompt, Scope::Approve, Scope::Admin, Scope::Type];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Watch => "watch",
            Scope::Prompt => "prompt",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
            Scope::Type => "type",
            Scope::Ui => "ui",
        }
    }
}

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// No run is in progress.
    #[default]
    Idle,
    /// A run is in progress.
    Running,
    /// A run is in progress and waits for an answer.
    Waiting,
    /// The runtime has ended; the session can be read, but not prompted.
    Exited,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl SessionState {
    /// Every state that the gateway sends.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Waiting, Self::Exited];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        }
    }
}

/// The status of a run (the UI protocol's `run.status`, and `queued`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run waits for the previous run.
    Queued,
    /// The agent is working.
    Running,
    /// The run waits for an answer.
    AwaitingUi,
    /// The agent ended the run.
    Completed,
    /// The run failed.
    Error,
    /// The run was cancelled.
    Cancelled,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl RunStatus {
    /// The statuses of a run that has not ended.
    pub const UNFINISHED: [Self; 3] = [Self::Queued, Self::Running, Self::AwaitingUi];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::AwaitingUi => "awaiting_ui",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// A run in the form that clients see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// The run.
    pub run_id: RunId,
    /// The conversation.
    pub session_id: SessionId,
    /// The run's status.
    pub status: RunStatus,
    /// The time when the run began.
    pub started_at: Timestamp,
}

/// A prompt in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Queued)]
pub struct QueuedPrompt {
    /// The run that it will start.
    pub run_id: RunId,
    /// The text, shortened.
    pub text: String,
    /// The device that prompted.
    pub by: Resolver,
    /// The ceiling for which the prompt waits, if one is reached: it starts when a user allows to continue, or when the ceiling is
    /// raised.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingKind>,
}

/// A session in the form that clients see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionInfo {
    /// The conversation.
    pub session_id: SessionId,
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// The dialect of that runtime.
    pub dialect: String,
    /// The runtime's own id of the session.
    #[schema(required)]
    pub native_id: Option<NativeId>,
    /// The session's title.
    #[schema(required)]
    pub title: Option<String>,
    /// The session's working directory.
    pub cwd: String,
    /// The project of the folder; absent while it is not known yet. A session that has ended keeps its last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The session's state.
    pub state: SessionState,
    /// The current run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The current activity: the title of the running tool (the agent's text), or `thinking`, `writing`, `working`; null between runs.
    #[serde(default)]
    #[schema(required)]
    pub doing: Option<String>,
    /// `true` if the session is archived: stored and searchable, but left out of default lists.
    #[serde(default)]
    #[schema(required)]
    pub archived: bool,
    /// The number of open requests.
    pub open_requests: usize,
    /// The open requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// Queued prompts, next one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedPrompt>,
    /// The time when the session was opened.
    pub created_at: Timestamp,
    /// The time when a run last began; absent until the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompted_at: Option<Timestamp>,
    /// The time when the conversation last changed; starts and exits of its runtime do not count.
    pub updated_at: Timestamp,
    /// The number of messages of users and of the agent; absent in sessions stored before messages were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// The beginning of a user's latest message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_user_message: Option<String>,
    /// `true` if the session is in a terminal of its own, which is open on this machine: its user can continue there at any time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked: bool,
    /// `true` if the session ended with its runtime and resumes when the runtime is restarted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restartable: bool,
}
