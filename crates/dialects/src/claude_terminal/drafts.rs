//! The events that the lines of a transcript become. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::{object, string};
use super::super::{EventDraft, ToolCallRef};
use super::transcript::ToolResult;
use plexus_protocol::{ErrorBody, Kind};

/// Longest title of a tool call or a session, in characters.
const TITLE_MAX: usize = 200;

fn draft(kind: Kind, body: &Value, line: Option<&Bytes>) -> EventDraft {
    EventDraft { native: line.cloned(), ..EventDraft::new(kind, body) }
}

/// A piece of a message; pieces with the same `message` are one.
pub(super) fn chunk(kind: Kind, text: &str, message: Option<&str>, line: Option<&Bytes>) -> EventDraft {
    let mut body = json!({ "sessionUpdate": kind.as_str(), "content": { "type": "text", "text": text } });
    if let Some(id) = message {
        body["messageId"] = id.into();
    }
    draft(kind, &body, line)
}

/// An error that people see.
pub(super) fn error(code: &str, message: &str) -> EventDraft {
    EventDraft::new(Kind::Error, &ErrorBody::new(code, message))
}

/// The session's title.
pub(super) fn title(title: String, line: &Bytes) -> EventDraft {
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

/// A tool call is over.
pub(super) fn tool_result(result: &ToolResult<'_>, line: &Bytes) -> EventDraft {
    let status = if result.failed { "failed" } else { "completed" };
    let mut body = json!({
        "sessionUpdate": Kind::ToolCallUpdate.as_str(),
        "toolCallId": result.id,
        "status": status,
    });
    let texts = result.content.map(texts).unwrap_or_default();
    if !texts.is_empty() {
        let block = |text: String| json!({ "type": "content", "content": { "type": "text", "text": text } });
        body["content"] = texts.into_iter().map(block).collect();
    }
    let tool = Some(ToolCallRef::new(result.id.clone(), true));
    EventDraft { tool, ..draft(Kind::ToolCallUpdate, &body, Some(line)) }
}

/// The texts of a tool's result; other blocks are named by their type.
fn texts(content: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        sort: String,
        text: Option<String>,
    }
    if let Some(text) = string(content) {
        return Some(text.into_owned()).filter(|text| !text.is_empty()).into_iter().collect();
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(object::<Block>);
    blocks.map(|block| block.text.unwrap_or_else(|| format!("[{}]", block.sort))).collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Known {
    command: Option<String>,
    file_path: Option<String>,
    notebook_path: Option<String>,
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

/// What a tool call does, in a line.
pub(super) fn tool_title(name: &str, input: &RawValue) -> String {
    let known = known(input);
    let what = match name {
        "Bash" => known.command,
        "Grep" | "Glob" => known.pattern,
        "WebFetch" => known.url,
        "WebSearch" => known.query,
        "Task" | "Agent" => known.description,
        _ => known.file_path.or(known.notebook_path).or(known.path),
    };
    let first = what.as_deref().and_then(|what| what.lines().find(|line| !line.trim().is_empty()));
    let title = match (name, first) {
        ("Bash", Some(command)) => command.to_owned(),
        (name, Some(what)) => format!("{name} {what}"),
        (name, None) => name.to_owned(),
    };
    shortened(&title)
}

/// At most [`TITLE_MAX`] characters.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What the agent says that a tool call is for.
pub(super) fn description(input: &RawValue) -> Option<String> {
    known(input).description.filter(|words| !words.trim().is_empty())
}

/// ACP's kind of a tool.
fn tool_kind(name: &str) -> &'static str {
    match name {
        "Bash" | "BashOutput" | "KillShell" => "execute",
        "Read" | "NotebookRead" => "read",
        "Grep" | "Glob" | "LS" => "search",
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => "edit",
        "WebFetch" | "WebSearch" => "fetch",
        "Task" | "Agent" => "think",
        _ => "other",
    }
}

/// The change that a tool makes to a file.
fn diff(name: &str, input: &RawValue) -> Option<Value> {
    let known = known(input);
    let path = known.file_path?;
    match name {
        "Edit" => Some(json!({
            "type": "diff", "path": path, "oldText": known.old_string?, "newText": known.new_string?,
        })),
        "Write" => Some(json!({ "type": "diff", "path": path, "newText": known.content? })),
        _ => None,
    }
}
