//! Sessions: lists, prompts, runs, requests, search, and conversations to resume.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::KnownItems;
use super::runtimes::StartRuntime;
use super::worktrees::NewWorktree;
use crate::request::serialize_brief;
use crate::schema::ContentBlock;
use crate::{Cursor, NativeId, Request, RunId, RunStatus, RuntimeId, SessionId, SessionInfo, Timestamp};

/// A page of sessions, most recently updated first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Sessions)]
pub struct SessionsPage {
    /// The sessions.
    #[schema(value_type = Vec<SessionInfo>)]
    pub sessions: KnownItems<Arc<SessionInfo>>,
    /// The `cursor` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[0-9]{1,20}\.[0-9]{1,20}\.-?[0-9]{1,20}\.[A-Za-z0-9_.:-]{1,128}$")]
    pub next: Option<String>,
}

/// An accepted prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Accepted)]
pub struct AcceptedPrompt {
    /// The run of the prompt.
    pub run_id: RunId,
    /// `true` if the prompt is queued.
    pub queued: bool,
    /// The number of runs before it.
    pub ahead: usize,
    /// The end of the run, if the prompt was sent before under the same key and its run has ended. The run's last event is stored by
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunOutcome>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Ended)]
pub struct RunOutcome {
    /// `completed`, `error` or `cancelled`.
    pub status: RunStatus,
    /// The agent's own stop reason, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The reason why the run failed or never began, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Changes to a session; absent members stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSession {
    /// The new title; the agent no longer changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub title: Option<String>,
    /// `true` if the session is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// A prompt: `text` or `content`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPrompt {
    /// The prompt as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// ACP content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ContentBlock>>, min_items = 1, max_items = 256)]
    pub content: Option<Vec<Box<RawValue>>>,
}

/// The run to cancel; the current one if absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The reason, for users and for runtimes that accept one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
pub struct RunReference {
    /// The run.
    pub run_id: RunId,
}

/// The run to repeat; if absent, the current run, else the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartRun {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// A session to open: in the runtime `runtime_id`, or in an agent to `start`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The session's runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<RuntimeId>,
    /// The agent to start, in place of `runtime_id`; the response is sent when it is ready and the session open. An agent that runs
    /// already is used. Starting one needs `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartRuntime>,
    /// The session's working folder; the runtime's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/")]
    pub cwd: Option<String>,
    /// The session's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The mode in which the agent begins: the identifier of one that it offers. Needs `approve`, as it decides when the agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model with which the agent begins: the identifier of one that it offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The runtime's identifier of a conversation to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<NativeId>,
    /// A new git branch and worktree for the session, made from the repository of `cwd`. Needs `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
}

/// A page of requests, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Requests)]
pub struct RequestsPage {
    /// The requests; long texts in them are cut.
    #[serde(serialize_with = "serialize_brief")]
    #[schema(value_type = Vec<Request>)]
    pub requests: KnownItems<Arc<Request>>,
    /// The `before` of the next page; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{1,20}$")]
    pub next: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hits {
    /// The best passages.
    #[schema(value_type = Vec<Hit>)]
    pub hits: KnownItems<Hit>,
}

/// A passage that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// The session of the passage.
    pub session_id: SessionId,
    /// The event at which the passage ends.
    pub cursor: Cursor,
    /// The role of the author.
    pub role: String,
    /// The passage around the match; matches stand between U+0002 and U+0003.
    pub snippet: String,
}

/// A conversation that a runtime could resume. Members that the runtime does not report are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Resumable)]
pub struct ResumableConversation {
    /// The runtime's identifier: the `native_id` of a session to open.
    pub native_id: NativeId,
    /// The title or its beginning.
    #[schema(required)]
    pub title: Option<String>,
    /// The folder.
    #[schema(required)]
    pub cwd: Option<String>,
    /// The time of the conversation's last change.
    #[schema(required)]
    pub updated_at: Option<Timestamp>,
    /// The session of the gateway in which the conversation is open already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// A page of a runtime's resumable conversations, in the runtime's order. A conversation that changes meanwhile may be listed twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResumablePage {
    /// The conversations of the page.
    #[schema(value_type = Vec<ResumableConversation>)]
    pub resumable: KnownItems<ResumableConversation>,
    /// The start of the next page, to be given as `cursor`; absent if this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[0-9]{1,5}(\.[A-Za-z0-9_-]{2,2800})?$")]
    pub next: Option<String>,
}
