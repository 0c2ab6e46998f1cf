//! Conversations and runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NativeId, RequestId, Resolver, RunId, RuntimeId, SessionId, Timestamp};

/// What a device may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// See sessions, events and requests.
    Watch,
    /// Start, prompt and cancel.
    Prompt,
    /// Answer requests.
    Approve,
    /// Runtimes, devices, settings.
    Admin,
}

impl Scope {
    /// Every scope, weakest first.
    pub const ALL: [Scope; 4] = [Scope::Watch, Scope::Prompt, Scope::Approve, Scope::Admin];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Watch => "watch",
            Scope::Prompt => "prompt",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing runs.
    #[default]
    Idle,
    /// A run is under way.
    Running,
    /// A run is under way and waits for people.
    Waiting,
    /// The runtime is gone; the session can be read, not prompted.
    Exited,
}

impl SessionState {
    /// Every state there is.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Waiting, Self::Exited];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Exited => "exited",
        }
    }
}

/// Where a run stands (the UI protocol's `run.status`, and `queued`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Waits for the run before it.
    Queued,
    /// The agent works.
    Running,
    /// The agent waits for people.
    AwaitingUi,
    /// Over, as the agent wished.
    Completed,
    /// Over, because something failed.
    Error,
    /// Over, because somebody cancelled it.
    Cancelled,
}

impl RunStatus {
    /// Those of a run that is not over.
    pub const UNFINISHED: [Self; 3] = [Self::Queued, Self::Running, Self::AwaitingUi];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::AwaitingUi => "awaiting_ui",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A run as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// The run.
    pub run_id: RunId,
    /// Its conversation.
    pub session_id: SessionId,
    /// Where it stands.
    pub status: RunStatus,
    /// When it began.
    pub started_at: Timestamp,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Queued)]
pub struct QueuedPrompt {
    /// The run it will be.
    pub run_id: RunId,
    /// Its text, shortened.
    pub text: String,
    /// Who asked.
    pub by: Resolver,
}

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionInfo {
    /// The conversation.
    pub session_id: SessionId,
    /// Its runtime.
    pub runtime_id: RuntimeId,
    /// The dialect of that runtime.
    pub dialect: String,
    /// The runtime's own identifier for it.
    #[schema(required)]
    pub native_id: Option<NativeId>,
    /// Its title.
    #[schema(required)]
    pub title: Option<String>,
    /// The folder it works in.
    pub cwd: String,
    /// Where it stands.
    pub state: SessionState,
    /// The run under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What it does now: the title of the tool that runs, or `thinking`, `writing`, `working`; null between runs. The
    /// agent's words.
    #[serde(default)]
    #[schema(required)]
    pub doing: Option<String>,
    /// Whether it was put away: kept and searchable, out of the way in lists.
    #[serde(default)]
    #[schema(required)]
    pub archived: bool,
    /// How many requests wait for people.
    pub open_requests: usize,
    /// Which ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// Prompts that wait for their turn, first one next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedPrompt>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When a run last began in it, whoever began it; absent until one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompted_at: Option<Timestamp>,
    /// When something last happened in the conversation: not, that its runtime went or came back.
    pub updated_at: Timestamp,
    /// How many messages were exchanged, of people and of the agent; absent of sessions from before they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_count: Option<u64>,
    /// The beginning of what a person said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_user_message: Option<String>,
    /// Whether it ended with its runtime, which can be started again: then it goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restartable: bool,
}
