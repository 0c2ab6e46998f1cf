//! The bodies of the gateway's own event kinds. The bodies of ACP's kinds are the agent's JSON, unchanged, and have no type.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::known_items::known_value;
use super::schema::Json;
use super::{AnsweredBy, Answers, RequestId, RequestState, Resolver, RunId, RunStatus, RuntimeId, Spending, Timestamp};

/// The state of a run: the body of `run_started`, `run_status` and `run_ended`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunBody {
    /// The run.
    pub run_id: RunId,
    /// The run's status.
    pub status: RunStatus,
    /// The device that prompted or cancels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Resolver>,
    /// The idempotency key of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The agent's own stop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The reason why the run failed or is being cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `true` if the run is being cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelling: bool,
    /// The spending of the run, as far as the agent reported it; absent before the end of the run.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Spending>,
}

impl RunBody {
    /// Makes a body with a status and no other detail.
    pub fn new(run_id: &RunId, status: RunStatus) -> Self {
        let run_id = run_id.clone();
        Self { run_id, status, by: None, key: None, stop_reason: None, message: None, cancelling: false, usage: None }
    }
}

/// The outcome of a request: the body of `request_resolved`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Resolution<'a> {
    /// The session of the request.
    #[schema(value_type = super::SessionId)]
    pub session_id: &'a str,
    /// The request.
    pub request_id: &'a RequestId,
    /// The final state.
    pub state: RequestState,
    /// The option chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_id: Option<&'a str>,
    /// `true` if the choice lets the agent go ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The text of the answer (never for a secret prompt).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a str>,
    /// The ids of the picked items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<&'a [String]>,
    /// The answer to each question.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Vec<String>>>)]
    pub answers: Option<&'a Answers>,
    /// The reason of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The edited text that was allowed in place of the requested one, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<&'a str>,
    /// The text `edited`, safe to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_display: Option<&'a str>,
    /// Warnings about `edited`.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub edited_warnings: &'a [String],
    /// The client or rule that decided.
    pub resolved_by: &'a Resolver,
    /// The kind of answerer: a user, a rule or the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// The time of the answer.
    pub at: Timestamp,
}

/// A change of a runtime's state: the body of `runtime_status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RuntimeStatus)]
pub struct RuntimeStatusBody {
    /// The status: `attached`, `reattached`, `lost`, `exited`, `stuck`, or `unasked` if the agent acts without asking.
    pub status: Cow<'static, str>,
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// The number of the runtime's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// `true` if the runtime resumes an earlier conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The cause, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The exit of the runtime's process.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RuntimeExit)]
    pub exit: Option<RuntimeExit>,
}

impl RuntimeStatusBody {
    /// Makes a body with a status and no other detail.
    pub fn new(runtime_id: &RuntimeId, status: &'static str) -> Self {
        let (status, runtime_id) = (status.into(), runtime_id.clone());
        Self { status, runtime_id, generation: None, resumed: false, message: None, exit: None }
    }
}

/// The exit of a runtime's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeExit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that killed the process (`SIGKILL` …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The end of the runtime's output on stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// The cause, as far as the gateway knows it: "stopped by NAME", "cannot start: …", "took no orders for 10 s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `true` if the stop of the runtime was requested; absent unless the status is `exited`.
    #[serde(default)]
    #[schema(required = false)]
    pub stopped: bool,
    /// `true` if only the gateway stops: the runtime is an endpoint that keeps running, and the next gateway reconnects to it.
    #[serde(skip)]
    pub left: bool,
}

/// The body of `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// A stable error code.
    pub code: String,
    /// The error message.
    pub message: String,
    /// Further members.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl ErrorBody {
    /// Makes an error without further members.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), more: Map::new() }
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
    /// The reason why the frame was not understood.
    pub reason: &'a str,
    /// The frame, if it is JSON of reasonable depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub message: Option<&'a RawValue>,
    /// The frame as text, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
}

/// A file or terminal call that an agent made to its client, and the outcome: the body of `client_served`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientServed<'a> {
    /// ACP's method name.
    pub method: &'a str,
    /// The client that served the call.
    pub by: &'a Resolver,
    /// `done` or `failed`.
    pub status: &'static str,
    /// The file's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The terminal, by the client's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_id: Option<String>,
    /// The size of the client's response, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The client's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The client's error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
