//! The events and questions that Qwen Code's output becomes. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::{self, object};
use super::super::{AgentRequest, EventDraft, ExpectedAnswer, RequestKey, RequestSubject, ToolCallRef, subject};
use super::output::{ToolOver, ToolUse};
use plexus_protocol::{Choice, Decision, ErrorBody, Kind, Offer, RequestType};

/// The option that allows a tool call.
pub(super) const ALLOW: &str = "allow";
/// The option that does not, and so ends the turn.
pub(super) const DENY: &str = "deny";

/// The tool that asks people for answers.
const QUESTION: &str = "ask_user_question";
/// The tool that asks whether a plan is carried out.
const PLAN: &str = "exit_plan_mode";

/// Longest title of a tool call or a session, in characters.
const TITLE_MAX: usize = 200;

fn draft(kind: Kind, body: &Value, line: Option<&Bytes>) -> EventDraft {
    EventDraft { native: line.cloned(), ..EventDraft::new(kind, body) }
}

/// A piece of a message; pieces with the same `message` are one.
pub(super) fn chunk(kind: Kind, text: &str, message: Option<&str>, line: &Bytes) -> EventDraft {
    let mut body = json!({ "sessionUpdate": kind.as_str(), "content": { "type": "text", "text": text } });
    if let Some(id) = message {
        body["messageId"] = id.into();
    }
    draft(kind, &body, Some(line))
}

/// An error that people see.
pub(super) fn error(code: &str, message: &str) -> EventDraft {
    EventDraft::new(Kind::Error, &ErrorBody::new(code, message))
}

/// The title of a session: the first line of its first prompt.
pub(super) fn title(prompt: &str, line: &Bytes) -> EventDraft {
    let title = shortened(first_line(prompt));
    let body = json!({ "sessionUpdate": Kind::SessionInfoUpdate.as_str(), "title": title });
    EventDraft { title: Some(title), ..draft(Kind::SessionInfoUpdate, &body, Some(line)) }
}

/// A tool was called.
pub(super) fn tool_call(call: &ToolUse<'_>, line: &Bytes) -> EventDraft {
    let mut body = json!({
        "sessionUpdate": Kind::ToolCall.as_str(),
        "toolCallId": call.id,
        "title": tool_title(&call.name, call.input),
        "kind": tool_kind(&call.name),
        "status": "in_progress",
        "rawInput": call.input,
    });
    if let Some(diff) = diff(&call.name, call.input) {
        body["content"] = json!([diff]);
    }
    EventDraft { tool: Some(ToolCallRef::new(&call.id, false)), ..draft(Kind::ToolCall, &body, Some(line)) }
}

/// A tool call is over.
pub(super) fn tool_over(over: &ToolOver, line: &Bytes) -> EventDraft {
    let status = if over.failed { "failed" } else { "completed" };
    let mut body = json!({
        "sessionUpdate": Kind::ToolCallUpdate.as_str(),
        "toolCallId": over.id,
        "status": status,
    });
    if let Some(text) = &over.text {
        body["content"] = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    }
    EventDraft { tool: Some(ToolCallRef::new(&over.id, true)), ..draft(Kind::ToolCallUpdate, &body, Some(line)) }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Known {
    command: Option<String>,
    file_path: Option<String>,
    path: Option<String>,
    pattern: Option<String>,
    url: Option<String>,
    query: Option<String>,
    description: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    content: Option<String>,
}

/// The members of a tool's input that are known; none where one of them has another type.
fn known(input: &RawValue) -> Known {
    object(input).unwrap_or_default()
}

fn tool_title(name: &str, input: &RawValue) -> String {
    let known = known(input);
    let what = match name {
        "run_shell_command" => known.command.as_deref(),
        "agent" | "task" => known.description.as_deref(),
        _ => [&known.file_path, &known.pattern, &known.url, &known.query, &known.path]
            .into_iter()
            .flatten()
            .next()
            .map(String::as_str),
    };
    match (name, what.map(first_line).filter(|what| !what.is_empty())) {
        ("run_shell_command", Some(command)) => shortened(command),
        (name, Some(what)) => shortened(&format!("{name} {what}")),
        (name, None) => shortened(name),
    }
}

/// The first line that is not blank.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// At most [`TITLE_MAX`] characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// ACP's kind of a tool.
fn tool_kind(name: &str) -> &'static str {
    match name {
        "run_shell_command" => "execute",
        "read_file" | "read_many_files" => "read",
        "glob" | "grep_search" | "list_directory" => "search",
        "edit" | "write_file" | "notebook_edit" => "edit",
        "web_fetch" | "web_search" => "fetch",
        "agent" | "task" | "todo_write" => "think",
        _ => "other",
    }
}

/// The change that a tool makes to a file.
fn diff(name: &str, input: &RawValue) -> Option<Value> {
    let known = known(input);
    let path = known.file_path?;
    match name {
        "edit" => Some(json!({
            "type": "diff", "path": path, "oldText": known.old_string?, "newText": known.new_string?,
        })),
        "write_file" => Some(json!({ "type": "diff", "path": path, "newText": known.content? })),
        _ => None,
    }
}

/// A question for people.
pub(super) fn question(key: RequestKey, asked: &ToolUse<'_>, line: Bytes) -> AgentRequest {
    let offer = |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind, for_session: false };
    let mut ask = AgentRequest {
        key,
        kind: RequestType::Permission,
        title: tool_title(&asked.name, asked.input),
        message: known(asked.input).description.filter(|words| !words.trim().is_empty()),
        subject: subject::tool(&asked.name, asked.input),
        options: Vec::new(),
        items: Vec::new(),
        multi: false,
        default_value: None,
        multiline: false,
        expects: ExpectedAnswer::default(),
        secret: false,
        danger_level: None,
        // The terminal takes a yes or a no from outside, and no words.
        allow_reason: false,
        allow_remember: false,
        observe_only: false,
        editable: None,
        tool_call_id: Some(asked.id.clone()),
        first_mention: None,
        params: jsonrpc::owned(asked.input),
        native: line,
    };
    if asked.name == QUESTION || matches!(ask.subject, RequestSubject::Questions { .. }) {
        // A yes from outside would answer it with nothing.
        "Qwen Code asks".clone_into(&mut ask.title);
        (ask.kind, ask.observe_only) = (RequestType::Prompt, true);
        ask.message = Some("It can only be answered at the terminal.".into());
        return ask;
    }
    let (yes, no) = if asked.name == PLAN {
        ("Yes, carry out the plan", "No, keep planning")
    } else {
        ("Yes, allow once", "No, and stop")
    };
    ask.options = vec![offer(ALLOW, yes, Choice::AllowOnce), offer(DENY, no, Choice::RejectOnce)];
    ask
}

/// Whether a decision allows the call; `None` if it says nothing about it: the terminal's own dialog decides.
pub(super) fn allows(decision: &Decision) -> Option<bool> {
    match decision {
        Decision::Option { id, .. } if id == ALLOW => Some(true),
        Decision::Option { id, .. } if id == DENY => Some(false),
        _ => None,
    }
}
