//! The events that the lines of a transcript and the hooks become. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::object;
use super::super::{EventDraft, ToolCallRef};
use super::transcript::{CallStatus, FinishedCall};
use plexus_protocol::{ErrorBody, Kind};

/// Longest title of a tool call or a session, in characters; the rest is left out.
const TITLE_MAX: usize = 200;

fn draft(kind: Kind, body: &Value, line: Option<&Bytes>) -> EventDraft {
    EventDraft { native: line.cloned(), ..EventDraft::new(kind, body) }
}

/// A message, or a thought.
pub(super) fn chunk(kind: Kind, text: &str, message: &str, line: &Bytes) -> EventDraft {
    let content = json!({ "type": "text", "text": text });
    let body = json!({ "sessionUpdate": kind.as_str(), "content": content, "messageId": message });
    draft(kind, &body, Some(line))
}

/// An error that people see.
pub(super) fn error(code: &str, message: &str) -> EventDraft {
    EventDraft::new(Kind::Error, &ErrorBody::new(code, message))
}

/// The session's title.
pub(super) fn title(title: &str, line: &Bytes) -> EventDraft {
    let title = shortened(title.trim());
    let body = json!({ "sessionUpdate": Kind::SessionInfoUpdate.as_str(), "title": title });
    EventDraft { title: Some(title), ..draft(Kind::SessionInfoUpdate, &body, Some(line)) }
}

/// A tool was called.
pub(super) fn tool_call(id: &str, name: &str, input: &RawValue, line: &Bytes) -> EventDraft {
    let mut body = json!({
        "sessionUpdate": Kind::ToolCall.as_str(),
        "toolCallId": id,
        "title": tool_title(name, input),
        "kind": tool_kind(name),
        "status": "in_progress",
        "rawInput": input,
    });
    if let Some(diff) = diff(name, input) {
        body["content"] = json!([diff]);
    }
    EventDraft { tool: Some(ToolCallRef::new(id, false)), ..draft(Kind::ToolCall, &body, Some(line)) }
}

/// A tool call is over, which people know by this id.
pub(super) fn tool_result(id: &str, call: &FinishedCall<'_>, line: &Bytes) -> EventDraft {
    let status = if call.status == CallStatus::Succeeded { "completed" } else { "failed" };
    let mut body = json!({ "sessionUpdate": Kind::ToolCallUpdate.as_str(), "toolCallId": id, "status": status });
    if let Some(text) = &call.output {
        body["content"] = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    }
    EventDraft { tool: Some(ToolCallRef::new(id, true)), ..draft(Kind::ToolCallUpdate, &body, Some(line)) }
}

/// The members of a tool's input that are known.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Known {
    pub(super) command: Option<String>,
    pub(super) file_path: Option<String>,
    pub(super) prompt: Option<String>,
    dir_path: Option<String>,
    pattern: Option<String>,
    query: Option<String>,
    description: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    content: Option<String>,
}

/// None of them where one has another type.
pub(super) fn known(input: &RawValue) -> Known {
    object(input).unwrap_or_default()
}

/// What a tool call does, in a line.
pub(super) fn tool_title(name: &str, input: &RawValue) -> String {
    let known = known(input);
    let what = match name {
        SHELL => known.command,
        "grep_search" | "search_file_content" | "glob" => known.pattern,
        "google_web_search" => known.query,
        "web_fetch" => known.prompt,
        _ => known.file_path.or(known.dir_path).or(known.description),
    };
    let first = what.as_deref().and_then(|what| what.lines().find(|line| !line.trim().is_empty()));
    shortened(&match (name, first) {
        (SHELL, Some(command)) => command.to_owned(),
        (name, Some(what)) => format!("{name} {what}"),
        (name, None) => name.to_owned(),
    })
}

/// The tool that runs commands.
pub(super) const SHELL: &str = "run_shell_command";

/// At most [`TITLE_MAX`] characters.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// ACP's kind of a tool.
fn tool_kind(name: &str) -> &'static str {
    match name {
        SHELL => "execute",
        "read_file" | "read_many_files" => "read",
        "grep_search" | "search_file_content" | "glob" | "list_directory" => "search",
        "write_file" | "replace" => "edit",
        "web_fetch" | "google_web_search" => "fetch",
        _ => "other",
    }
}

/// The change that a tool makes to a file.
fn diff(name: &str, input: &RawValue) -> Option<Value> {
    let known = known(input);
    let path = known.file_path?;
    match name {
        "replace" => Some(json!({
            "type": "diff", "path": path, "oldText": known.old_string?, "newText": known.new_string?,
        })),
        "write_file" => Some(json!({ "type": "diff", "path": path, "newText": known.content? })),
        _ => None,
    }
}
