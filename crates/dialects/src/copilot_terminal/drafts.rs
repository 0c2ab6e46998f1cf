//! The events that Copilot's become. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::object;
use super::super::{EventDraft, ToolCallRef};
use super::events::{ToolEnd, ToolStart};
use plexus_protocol::{ErrorBody, Kind};

/// Longest title of a tool call or a session, in characters.
const TITLE_MAX: usize = 200;

fn draft(kind: Kind, body: &Value, native: Option<&Bytes>) -> EventDraft {
    EventDraft { native: native.cloned(), ..EventDraft::new(kind, body) }
}

/// A piece of a message; pieces with the same `message` are one.
pub(super) fn chunk(kind: Kind, text: &str, message: &str, native: Option<&Bytes>) -> EventDraft {
    let body = json!({
        "sessionUpdate": kind.as_str(),
        "content": { "type": "text", "text": text },
        "messageId": message,
    });
    draft(kind, &body, native)
}

/// An error that people see.
pub(super) fn error(code: &str, message: &str) -> EventDraft {
    EventDraft::new(Kind::Error, &ErrorBody::new(code, message))
}

/// The session's title.
pub(super) fn title(title: String) -> EventDraft {
    let body = json!({ "sessionUpdate": Kind::SessionInfoUpdate.as_str(), "title": title });
    EventDraft { title: Some(title), ..draft(Kind::SessionInfoUpdate, &body, None) }
}

/// A tool was called.
pub(super) fn tool_call(call: &ToolStart<'_>, native: &Bytes) -> EventDraft {
    let input = call.arguments.unwrap_or(RawValue::NULL);
    let mut body = json!({
        "sessionUpdate": Kind::ToolCall.as_str(),
        "toolCallId": call.tool_call_id,
        "title": tool_title(&call.tool_name, input),
        "kind": tool_kind(&call.tool_name),
        "status": "in_progress",
        "rawInput": input,
    });
    if let Some(diff) = diff(&call.tool_name, input) {
        body["content"] = json!([diff]);
    }
    let tool = Some(ToolCallRef::new(call.tool_call_id.clone(), false));
    EventDraft { tool, ..draft(Kind::ToolCall, &body, Some(native)) }
}

/// A tool call is over.
pub(super) fn tool_end(end: &ToolEnd, native: &Bytes) -> EventDraft {
    let mut body = json!({
        "sessionUpdate": Kind::ToolCallUpdate.as_str(),
        "toolCallId": end.tool_call_id,
        "status": if end.success { "completed" } else { "failed" },
    });
    let text = end.result.as_ref().and_then(|result| result.content.as_deref());
    let text = text.or_else(|| end.error.as_ref().and_then(|error| error.message.as_deref()));
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        body["content"] = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    }
    let tool = Some(ToolCallRef::new(end.tool_call_id.clone(), true));
    EventDraft { tool, ..draft(Kind::ToolCallUpdate, &body, Some(native)) }
}

/// The members of a tool's input that are known; none where one of them has another type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownInput {
    command: Option<String>,
    path: Option<String>,
    pattern: Option<String>,
    url: Option<String>,
    query: Option<String>,
    description: Option<String>,
    old_str: Option<String>,
    new_str: Option<String>,
    file_text: Option<String>,
}

/// What a tool call does, in a line.
pub(super) fn tool_title(name: &str, input: &RawValue) -> String {
    let known: KnownInput = object(input).unwrap_or_default();
    let what = match name {
        "bash" | "powershell" => known.command,
        "grep" | "glob" => known.pattern,
        "web_fetch" => known.url,
        "web_search" => known.query,
        "task" => known.description,
        _ => known.path,
    };
    let first = what.as_deref().and_then(|what| what.lines().find(|line| !line.trim().is_empty()));
    let title = match (name, first) {
        ("bash" | "powershell", Some(command)) => command.to_owned(),
        (name, Some(what)) => format!("{name} {what}"),
        (name, None) => name.to_owned(),
    };
    shortened(&title)
}

/// At most [`TITLE_MAX`] characters.
pub(super) fn shortened(text: &str) -> String {
    cut(text, TITLE_MAX)
}

/// At most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// ACP's kind of a tool.
fn tool_kind(name: &str) -> &'static str {
    match name {
        "bash" | "powershell" | "read_bash" | "write_bash" | "stop_bash" => "execute",
        "view" => "read",
        "grep" | "glob" => "search",
        "edit" | "create" | "apply_patch" => "edit",
        "web_fetch" | "web_search" => "fetch",
        "task" => "think",
        _ => "other",
    }
}

/// The change that a tool makes to a file.
fn diff(name: &str, input: &RawValue) -> Option<Value> {
    let known: KnownInput = object(input)?;
    let path = known.path?;
    match name {
        "edit" => Some(json!({ "type": "diff", "path": path, "oldText": known.old_str?, "newText": known.new_str? })),
        "create" => Some(json!({ "type": "diff", "path": path, "newText": known.file_text? })),
        _ => None,
    }
}
