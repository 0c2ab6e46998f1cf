//! The messages of the extension: Copilot's events, and its replies. Pure. The shapes are those of Copilot 1.0.102,
//! without the members that are not used.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use plexus_dialects::jsonrpc::token_counts;
use plexus_protocol::Spending;

/// An event of Copilot, or the first one of the extension.
#[derive(Deserialize)]
pub(super) struct CopilotEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) type_name: Cow<'a, str>,
    pub(super) id: Option<Cow<'a, str>>,
    /// `true` if Copilot does not store the event.
    #[serde(default)]
    pub(super) ephemeral: bool,
    /// The subagent of the event.
    #[serde(rename = "agentId", borrow)]
    pub(super) agent: Option<Cow<'a, str>>,
    pub(super) data: Option<&'a RawValue>,
}

/// The members of any event's data that name a subagent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parented<'a> {
    parent_tool_call_id: Option<Cow<'a, str>>,
}

impl CopilotEvent<'_> {
    /// Returns whether the event is a piece of the message with this id.
    pub(super) fn is_piece_of(&self, id: &str) -> bool {
        let piece = || self.data.and_then(plexus_dialects::jsonrpc::object::<MessageDelta>);
        self.type_name == "assistant.message_delta" && piece().is_some_and(|piece| piece.message_id == id)
    }

    /// Returns whether the event is of a subagent.
    pub(super) fn is_from_subagent(&self) -> bool {
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

/// The data of `user.message`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserMessage {
    pub(super) content: String,
    pub(super) message_id: Option<String>,
    /// The delivery: `idle`, `queued`, or `steering`, for a message into the run in progress.
    pub(super) delivery: Option<String>,
    /// The author, if it is not the user.
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) is_autopilot_continuation: bool,
}

/// The data of `assistant.message`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WholeMessage {
    pub(super) message_id: String,
    #[serde(default)]
    pub(super) content: String,
    pub(super) reasoning_text: Option<String>,
}

/// The data of `assistant.message_start`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStart {
    pub(super) message_id: String,
}

/// The data of `assistant.message_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDelta {
    pub(super) message_id: String,
    pub(super) delta_content: String,
}

/// Returns the tokens of a model call, from the data of `assistant.usage`. Its `cost` is a multiplier of Copilot's plans,
/// not money. Copilot does not document whether `inputTokens` includes the cache's part; here it does, unless the
/// cache's part is larger.
pub(super) fn call_spending(data: &RawValue) -> Option<Spending> {
    let names = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"];
    let [input, output, read, written, reasoning] = token_counts(data, names)?;
    let cached = read.unwrap_or(0) + written.unwrap_or(0);
    let input = input.map(|input| if input < cached { input + cached } else { input });
    Some(Spending::new([input, output, read, written, reasoning], Vec::new()))
}

/// The data of `assistant.reasoning_delta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta {
    pub(super) reasoning_id: String,
    pub(super) delta_content: String,
}

/// The data of `tool.execution_start`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolStart<'a> {
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// The data of `tool.execution_complete`.
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

/// The data of `permission.requested`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequested<'a> {
    pub(super) request_id: String,
    /// The content of the terminal's dialog.
    #[serde(borrow)]
    pub(super) prompt_request: Option<&'a RawValue>,
    pub(super) permission_request: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) resolved_by_hook: bool,
}

/// The data of `permission.completed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionCompleted {
    pub(super) request_id: String,
    pub(super) result: Option<PermissionOutcome>,
    /// The source of the decision: `human_response` is the user at the terminal.
    pub(super) decision_source: Option<String>,
}

/// The decision.
#[derive(Deserialize)]
pub(super) struct PermissionOutcome {
    pub(super) kind: String,
}

/// The data of `elicitation.completed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QuestionCompleted {
    pub(super) request_id: String,
}

/// The data of `session.idle`.
#[derive(Default, Deserialize)]
pub(super) struct SessionIdle {
    #[serde(default)]
    pub(super) aborted: bool,
}

/// The data of `session.error`.
#[derive(Deserialize)]
pub(super) struct SessionFailure {
    pub(super) message: String,
}

/// The data of `session.title_changed`.
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
    /// `true` if older events were left out.
    #[serde(default)]
    pub(super) older: bool,
    /// `true` if the position to read from no longer exists.
    #[serde(default)]
    pub(super) expired: bool,
    /// `true` if there are more events.
    #[serde(default)]
    pub(super) more: bool,
    /// The state of the session after the last event.
    pub(super) state: Option<SessionSnapshot<'a>>,
}

/// The state of a session.
#[derive(Deserialize)]
pub(super) struct SessionSnapshot<'a> {
    pub(super) title: Option<String>,
    /// `true` while the session works.
    #[serde(default)]
    pub(super) processing: bool,
    /// The permissions that are requested.
    #[serde(borrow, default)]
    pub(super) pending: Vec<PendingPermission<'a>>,
    /// The questions that are open.
    #[serde(borrow, default)]
    pub(super) questions: Vec<&'a RawValue>,
    /// The text of the message in progress.
    pub(super) partial: Option<PartialText>,
}

/// A permission that is requested.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingPermission<'a> {
    pub(super) request_id: String,
    #[serde(borrow)]
    pub(super) request: &'a RawValue,
}

/// The text of a message so far.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialText {
    pub(super) message_id: String,
    pub(super) text: String,
}

/// The reply to an answer.
#[derive(Deserialize)]
pub(super) struct AnswerTaken {
    /// `true` if the answer was the first.
    pub(super) success: bool,
}

/// The reply to a prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptTaken {
    pub(super) message_id: String,
}
