//! The bodies of the event kinds that are the gateway's own. Those of ACP's kinds are the agent's JSON as it came, and have
//! no type.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::schema::Json;
use super::{Answers, RequestId, RequestState, Resolver, RunId, RunStatus, Timestamp};

/// How a run stands: the body of `run_started`, `run_status` and `run_ended`.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunBody<'a> {
    /// The run.
    pub run_id: &'a RunId,
    /// Where it stands.
    pub status: RunStatus,
    /// Who prompted, or who cancels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'a Resolver>,
    /// The idempotency key of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    /// The agent's own word for how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<&'a str>,
    /// Why, where it failed or is being cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// Whether it is being cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelling: bool,
}

impl<'a> RunBody<'a> {
    /// A run that stands so, and nothing more.
    pub const fn new(run_id: &'a RunId, status: RunStatus) -> Self {
        Self { run_id, status, by: None, key: None, stop_reason: None, message: None, cancelling: false }
    }
}

/// How a request ended, the same for everybody: the body of `request_resolved`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Resolution<'a> {
    /// The session it came up in.
    #[schema(value_type = super::SessionId)]
    pub session_id: &'a str,
    /// The request.
    pub request_id: &'a RequestId,
    /// How it ended.
    pub state: RequestState,
    /// The option chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_id: Option<&'a str>,
    /// Whether the choice lets the agent go ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The text given (never for a secret prompt).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a str>,
    /// What was picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<&'a [String]>,
    /// What was said to each question.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Vec<String>>>)]
    pub answers: Option<&'a Answers>,
    /// Why, in the words of whoever answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// What was allowed in place of what was asked, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<&'a str>,
    /// The same, safe to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_display: Option<&'a str>,
    /// What a person should know of it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub edited_warnings: &'a [String],
    /// Who decided.
    pub resolved_by: &'a Resolver,
    /// When it was answered.
    pub at: Timestamp,
}

/// What happened to the runtime: the body of `runtime_status`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = RuntimeStatus)]
pub struct RuntimeStatusBody<'a> {
    /// `attached`, `reattached`, `lost`, `exited` or `stuck`.
    pub status: &'static str,
    /// The runtime.
    #[schema(value_type = super::RuntimeId)]
    pub runtime_id: &'a str,
    /// Which start of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Whether it goes on with an earlier conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// How its process ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RuntimeExit)]
    pub exit: Option<&'a RuntimeExit>,
}

/// How a runtime's process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuntimeExit {
    /// Its exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that killed it (`SIGKILL` …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The end of what it wrote to stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// What the gateway knows of the cause: "stopped by NAME", "cannot start: …", "took no orders for 10 s".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it was asked to stop; absent of statuses other than `exited`.
    #[schema(required = false)]
    pub stopped: bool,
    /// Whether only the gateway goes: the runtime is an endpoint, which goes on, and the next gateway connects to it again.
    #[serde(skip)]
    pub left: bool,
}

/// Something went wrong: the body of `error`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody<'a> {
    /// What, stable.
    pub code: &'a str,
    /// What happened this time, in words.
    pub message: &'a str,
    /// What else is known of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl<'a> ErrorBody<'a> {
    /// An error of which no more is known.
    #[must_use]
    pub fn new(code: &'a str, message: &'a str) -> Self {
        Self { code, message, more: Map::new() }
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }
}

/// A frame that no dialect understood: the body of `raw`.
#[derive(Debug, Serialize, ToSchema)]
pub struct RawBody<'a> {
    /// Why it was not understood.
    pub reason: &'a str,
    /// The frame, where it is JSON of reasonable depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub message: Option<&'a RawValue>,
    /// The frame as text, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<std::borrow::Cow<'a, str>>,
}

/// A file or a terminal that an agent asked its client for, and what came of it: the body of `client_served`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientServed<'a> {
    /// ACP's method.
    pub method: &'a str,
    /// The client that served it.
    pub by: &'a Resolver,
    /// `done` or `failed`.
    pub status: &'static str,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The terminal, by the client's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_id: Option<String>,
    /// How many bytes the client answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The client's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The client's error, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
