//! The messages of the extension: Copilot's events, and its replies. Pure. The shapes are those of Copilot 1.0.102; members that are not
//! used are left out.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use plexus_protocol::{Spending, lenient_tokens};

/// An event of Copilot, or the first one of the extension.
#[derive(Deserialize)]
pub(super) struct CopilotEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) sort: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    /// Set if Copilot does not keep it.
    #[serde(default)]
    pub(super) ephemeral: bool,
    /// The subagent that it is about.
    #[serde(rename = "agentId", borrow)]
    pub(super) agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

/// The members of any event's data that name a subagent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parented<'a> {
    #[serde(borrow)]
    parent_tool_call_id: Option<Cow<'a, str>>,
}

impl CopilotEvent<'_> {
    /// Returns true for a piece of the message with this id.
    pub(super) fn is_piece_of(&self, id: &str) -> bool {
        let piece = || self.data.and_then(plexus_dialects::jsonrpc::object::<MessageDelta>);
        self.sort == "assistant.message_delta" && piece().is_some_and(|piece| piece.message_id == id)
    }

    /// Returns true for an event of a subagent.
    pub(super) fn of_subagent(&self) -> bool {
        let parent = || self.data.and_then(plexus_dialects::jsonrpc::object::<Parented<'_>>)?.parent_tool_call_id;
        let named = |name: &Cow<'_, str>| !name.is_empty();
        self.agent.as_ref().is_some_and(named) || parent().as_ref().is_some_and(named)
    }
}

/// The first event of the extension.
#[derive(Deserialize)]
pub(super) struct ExtensionHello {
    pub(super) session: String,
    pub(super) cwd: String,
}

/// `user.message`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserMessage {
    pub(super) content: String,
    pub(super) message_id: Option<String>,
    /// `idle`, `queued`, or `steering`: put into the run under way.
    pub(super) delivery: Option<String>,
    /// The author, if no person.
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) is_autopilot_continuation: bool,
}

/// `assistant.message`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WholeMessage {
    pub(super) message_id: String,
    #[serde(default)]
    pub(super) content: String,
    pub(super) reasoning_text: Option<String>,
}

/// `assistant.message_start`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStart {
    pub(super) message_id: String,
}

/// `assistant.message_delta`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDelta {
    pub(super) message_id: String,
    pub(super) delta_content: String,
}

/// `assistant.usage`: the tokens of a model call. Its `cost` is a multiplier of Copilot's plans, no money.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallUsage {
    #[serde(default, deserialize_with = "lenient_tokens")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    pub(super) cache_read_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    pub(super) cache_write_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    pub(super) reasoning_tokens: Option<u64>,
}

impl CallUsage {
    /// The tokens of the call. Copilot does not say whether the cache's part is in `inputTokens`; it is, unless it is the larger one.
    pub(super) fn spending(&self) -> Spending {
        let Self { output_tokens: output, cache_read_tokens: read, cache_write_tokens: written, .. } = *self;
        let cached = read.unwrap_or(0) + written.unwrap_or(0);
        let input = self.input_tokens.map(|input| if input < cached { input + cached } else { input });
        Spending::of([input, output, read, written, self.reasoning_tokens], Vec::new())
    }
}

/// `assistant.reasoning_delta`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta {
    pub(super) reasoning_id: String,
    pub(super) delta_content: String,
}

/// `tool.execution_start`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolStart<'a> {
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// `tool.execution_complete`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolEnd {
    pub(super) tool_call_id: String,
    pub(super) success: bool,
    pub(super) result: Option<ToolText>,
    pub(super) error: Option<ToolError>,
}

/// The result of a tool.
#[derive(Deserialize)]
pub(super) struct ToolText {
    pub(super) content: Option<String>,
}

/// The reason why a tool failed.
#[derive(Deserialize)]
pub(super) struct ToolError {
    pub(super) message: Option<String>,
}

/// `permission.requested`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequested<'a> {
    pub(super) request_id: String,
    /// The content of the terminal's dialog.
    #[serde(borrow)]
    pub(super) prompt_request: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) permission_request: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) resolved_by_hook: bool,
}

/// `permission.completed`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionCompleted {
    pub(super) request_id: String,
    pub(super) result: Option<PermissionOutcome>,
    /// `human_response`: a person at the terminal.
    pub(super) decision_source: Option<String>,
}

/// The decision.
#[derive(Deserialize)]
pub(super) struct PermissionOutcome {
    pub(super) kind: String,
}

/// `elicitation.completed`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QuestionCompleted {
    pub(super) request_id: String,
}

/// `session.idle`
#[derive(Default, Deserialize)]
pub(super) struct SessionIdle {
    #[serde(default)]
    pub(super) aborted: bool,
}

/// `session.error`
#[derive(Deserialize)]
pub(super) struct SessionFailure {
    pub(super) message: String,
}

/// `session.title_changed`
#[derive(Deserialize)]
pub(super) struct TitleChanged {
    pub(super) title: String,
}

/// The reply to a read of the events.
#[derive(Deserialize)]
pub(super) struct EventsPage<'a> {
    #[serde(borrow)]
    pub(super) events: Vec<&'a RawValue>,
    /// The position of the next read.
    pub(super) cursor: String,
    /// Set if older events were left out.
    #[serde(default)]
    pub(super) older: bool,
    /// Set if the position to read from is gone.
    #[serde(default)]
    pub(super) expired: bool,
    /// Set if there are more events.
    #[serde(default)]
    pub(super) more: bool,
    /// The state of the session after the last of them.
    #[serde(borrow)]
    pub(super) state: Option<SessionStanding<'a>>,
}

/// The state of a session.
#[derive(Deserialize)]
pub(super) struct SessionStanding<'a> {
    pub(super) title: Option<String>,
    /// Set while it is at work.
    #[serde(default)]
    pub(super) processing: bool,
    /// The permissions that are asked for.
    #[serde(borrow, default)]
    pub(super) pending: Vec<PendingPermission<'a>>,
    /// The questions that are open.
    #[serde(borrow, default)]
    pub(super) questions: Vec<&'a RawValue>,
    /// The text that streams.
    pub(super) partial: Option<PartialText>,
}

/// A permission that is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingPermission<'a> {
    pub(super) request_id: String,
    #[serde(borrow)]
    pub(super) request: &'a RawValue,
}

/// The text of a message up to now.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialText {
    pub(super) message_id: String,
    pub(super) text: String,
}

/// The reply to an answer.
#[derive(Deserialize)]
pub(super) struct AnswerTaken {
    /// Set if it was the first.
    pub(super) success: bool,
}

/// The reply to a prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptTaken {
    pub(super) message_id: String,
}
