//! Translates agent events, and makes the input of a prompt.

use std::collections::HashMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::EventDraft;
use super::super::jsonrpc::{self, member, object, owned, string, to_raw};
use super::super::updates::{ToolUpdate, chunk, text_block};
use plexus_protocol::Kind;
use plexus_protocol::ui_protocol::{Members, START_MEMBERS};

/// Maximum number of tool calls of a run that are stored with their arguments; above it all are removed, and a confirm
/// shows only its message.
const TOOLS_MAX: usize = 256;
/// Maximum size of the arguments of stored tool calls, in bytes; above it all are removed as well.
const ARGUMENTS_MAX: usize = 4 << 20;
/// Maximum length of a stored message, in bytes, to detect a `final` that repeats it; after a longer one a `final` is sent in full.
const TEXT_MAX: usize = 1 << 20;

/// The state of a run that later events refer to.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct RunContext {
    /// The text of the last message.
    text: String,
    /// The start of its last piece.
    piece: usize,
    /// `true` if another event followed, so that more text is a new message.
    closed: bool,
    /// The tool and the arguments of each tool call.
    tools: HashMap<String, (String, Box<RawValue>)>,
    /// The size of the arguments, in bytes.
    weight: usize,
    /// The unfinished tool calls, the latest last.
    #[serde(default)]
    open: Vec<OpenCall>,
    /// `true` if the previous event announced the latest of them.
    #[serde(default)]
    pub(super) just_called: bool,
    /// The tool call that an immediately following confirm is about.
    pub(super) ready: Option<ReadyTool>,
}

/// A tool call that waits for approval.
#[derive(Serialize, Deserialize)]
pub(super) struct ReadyTool {
    pub(super) run_id: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) id: String,
}

/// An unfinished tool call.
#[derive(Serialize, Deserialize)]
pub(super) struct OpenCall {
    pub(super) run_id: Option<String>,
    pub(super) tool: String,
    pub(super) id: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    type_name: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool: Option<String>,
    tool_call_id: Option<String>,
    display_name: Option<String>,
    is_error: Option<bool>,
    args: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    diff: Option<String>,
    summary: Option<String>,
    file_path: Option<String>,
}

impl RunContext {
    /// Translates an agent event.
    pub(super) fn read(&mut self, frame: &Bytes, raw: &RawValue, run_id: Option<&str>) -> EventDraft {
        // A confirm is not about a tool call if another event is between them.
        self.ready = None;
        self.just_called = false;
        let Some(event) = object::<Event<'_>>(raw) else {
            return EventDraft::raw(frame.clone(), "an agent event that could not be parsed");
        };
        let content = event.content.and_then(string);
        match (event.type_name.as_str(), &content) {
            ("text", Some(content)) => {
                if std::mem::take(&mut self.closed) || self.text.len() > TEXT_MAX {
                    self.text.clear();
                }
                self.piece = self.text.len();
                self.text.push_str(content);
                return chunk(Kind::AgentMessageChunk, None, content, Some(frame));
            }
            ("final", Some(content)) => return self.final_text(frame, raw, content),
            _ => {}
        }
        match (event.type_name.as_str(), content, event.tool_call_id) {
            ("reasoning", Some(content), _) => {
                self.closed = true;
                chunk(Kind::AgentThoughtChunk, None, &content, Some(frame))
            }
            ("tool_call", _, Some(id)) => {
                self.closed = true;
                let name = event.tool.unwrap_or_else(|| "tool".into());
                let arguments = event.args.map(owned);
                let draft = ToolUpdate {
                    title: event.display_name.or_else(|| Some(name.clone())),
                    kind: Some(tool_kind(&name)),
                    status: Some("in_progress"),
                    raw_input: arguments.clone(),
                    ..ToolUpdate::new(&id)
                }
                .draft(true, false, Some(frame));
                self.open.retain(|call| call.id != id);
                if self.open.len() >= TOOLS_MAX {
                    self.open.remove(0);
                }
                self.open.push(OpenCall { run_id: run_id.map(str::to_owned), tool: name.clone(), id: id.clone() });
                self.just_called = true;
                self.remember(id, name, arguments.unwrap_or_else(|| RawValue::NULL.to_owned()));
                draft
            }
            ("tool_result", _, Some(id)) => {
                self.closed = true;
                self.open.retain(|call| call.id != id);
                let text = event.result.and_then(string);
                let status = if event.is_error == Some(true) { "failed" } else { "completed" };
                let content = text.map(|text| vec![text_block(&text)]);
                let raw_output = event.result.map(owned);
                ToolUpdate { status: Some(status), content, raw_output, ..ToolUpdate::new(id) }.draft(
                    false,
                    true,
                    Some(frame),
                )
            }
            ("permission.preview", _, id) => {
                self.closed = true;
                let Some(id) = id.or_else(|| self.called(event.tool.as_deref())) else { return hook(frame, raw) };
                let text = event.diff.as_deref().or(event.summary.as_deref());
                // The diff is a unified one: ACP's diff block needs both texts in full, which the runtime does not send.
                let meta = serde_json::json!({ "codelia": {
                    "preview": if event.diff.is_some() { "unified_diff" } else { "summary" }, "filePath": event.file_path,
                }});
                let content = text.map(|text| vec![text_block(text)]);
                ToolUpdate { content, meta: Some(meta), ..ToolUpdate::new(id) }.draft(false, false, Some(frame))
            }
            ("permission.ready", _, id) => {
                self.closed = true;
                let id = id.or_else(|| self.called(event.tool.as_deref()));
                self.ready = id.map(|id| ReadyTool { run_id: run_id.map(str::to_owned), tool: event.tool, id });
                hook(frame, raw)
            }
            (
                "step_start"
                | "step_complete"
                | "llm.retry"
                | "compaction_start"
                | "compaction_complete"
                | "hidden_user_message",
                ..,
            ) => hook(frame, raw),
            _ => EventDraft::raw(frame.clone(), "unknown agent event"),
        }
    }

    /// Returns the running call of this tool: older runtimes do not name the call in the events before a confirm.
    fn called(&self, tool: Option<&str>) -> Option<String> {
        self.open.last().filter(|call| Some(call.tool.as_str()) == tool).map(|call| call.id.clone())
    }

    /// Iterates over the unfinished tool calls, the latest first.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.open.iter().rev()
    }

    /// Returns the tool call that the last event announced, if it is unfinished.
    pub(super) fn just_called(&self) -> Option<&OpenCall> {
        self.open.last().filter(|_| self.just_called)
    }

    fn remember(&mut self, id: String, tool: String, arguments: Box<RawValue>) {
        self.weight += arguments.get().len();
        if self.tools.len() >= TOOLS_MAX || self.weight > ARGUMENTS_MAX {
            self.tools.clear();
            self.weight = arguments.get().len();
        }
        self.tools.insert(id, (tool, arguments));
    }

    /// Returns the tool and the arguments of a tool call.
    pub(super) fn arguments(&self, id: &str) -> Option<(&str, &RawValue)> {
        let (tool, arguments) = self.tools.get(id)?;
        (arguments.get() != "null").then_some((tool.as_str(), arguments))
    }

    /// Makes a tool call event, if a question is the first to mention the tool call.
    pub(super) fn first_mention(&mut self, frame: &Bytes, tool: Option<&str>, id: &str) -> Option<EventDraft> {
        if self.tools.contains_key(id) {
            return None;
        }
        let name = tool.unwrap_or("tool");
        self.remember(id.to_owned(), name.to_owned(), RawValue::NULL.to_owned());
        let (title, kind) = (Some(name.to_owned()), Some(tool_kind(name)));
        let call = ToolUpdate { title, kind, status: Some("pending"), ..ToolUpdate::new(id) };
        Some(call.draft(true, false, Some(frame)))
    }

    /// Handles `final`, which repeats the text of the answer: text that `text` events have sent already is not sent again.
    fn final_text(&mut self, frame: &Bytes, raw: &RawValue, content: &str) -> EventDraft {
        let piece = self.text.get(self.piece..).unwrap_or_default();
        let last = content.trim();
        if last.is_empty() || self.text.trim() == last || piece.trim() == last {
            return hook(frame, raw);
        }
        let rest = if self.closed || self.text.is_empty() { None } else { content.strip_prefix(self.text.as_str()) };
        let draft = chunk(Kind::AgentMessageChunk, None, rest.unwrap_or(content), Some(frame));
        self.text = content.to_owned();
        self.piece = 0;
        self.closed = true;
        draft
    }
}

/// Makes an event about the runtime itself, unchanged.
fn hook(frame: &Bytes, raw: &RawValue) -> EventDraft {
    EventDraft {
        kind: Kind::Hook,
        body: jsonrpc::slice(frame, raw),
        native: Some(frame.clone()),
        tool: None,
        title: None,
    }
}

/// Returns the ACP kind of a tool.
fn tool_kind(tool: &str) -> &'static str {
    match tool {
        "bash" | "shell" | "shell_exec" | "exec" => "execute",
        "read" | "read_file" | "view_image" | "tool_output_cache" | "skill_load" => "read",
        "write" | "edit" | "apply_patch" | "write_file" | "edit_file" => "edit",
        "grep" | "glob" | "glob_search" | "search" | "skill_search" => "search",
        "webfetch" | "web_fetch" | "fetch" => "fetch",
        _ => "other",
    }
}

/// Returns whether the tool's input is a command to run.
pub(super) fn runs_commands(tool: &str) -> bool {
    tool_kind(tool) == "execute"
}

/// Returns whether an agent event completes the turn.
pub(super) fn is_final(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Sort<'a> {
        #[serde(borrow, rename = "type")]
        type_name: std::borrow::Cow<'a, str>,
    }
    object::<Sort<'_>>(raw).is_some_and(|event| event.type_name == "final")
}

/// Translates a user's message of a replayed history: text, or parts of which some are text.
pub(super) fn user_message(frame: &Bytes, raw: &RawValue) -> Option<EventDraft> {
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }
    let Event { type_name, content, .. } = object(raw)?;
    let content = content.filter(|_| type_name == "hidden_user_message")?;
    let text = match string(content) {
        Some(text) => text.into_owned(),
        None => {
            let parts: Vec<Part> = plexus_protocol::object::from_str(content.get()).ok()?;
            parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n")
        }
    };
    Some(chunk(Kind::UserMessageChunk, None, &text, Some(frame)))
}

/// Makes the event for the use of the context window.
pub(super) fn usage(frame: &Bytes, params: &RawValue) -> Option<EventDraft> {
    let left: serde_json::Number = member(params, "context_left_percent")?;
    let body = serde_json::json!({
        "sessionUpdate": "usage_update", "contextLeftPercent": left,
        "_meta": { "codelia": { "context_left_percent": left } },
    });
    Some(EventDraft { native: Some(frame.clone()), ..EventDraft::new(Kind::UsageUpdate, &body) })
}

/// Adds the runtime's `meta` to an event, as `_meta.codelia`.
pub(super) fn with_meta(draft: EventDraft, meta: Option<&RawValue>) -> EventDraft {
    let Some(meta) = meta.filter(|meta| meta.get().starts_with('{')) else { return draft };
    let read =
        |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).ok().filter(serde_json::Value::is_object);
    let (Some(mut body), Some(meta)) = (read(&draft.body), read(meta.get().as_bytes())) else { return draft };
    if !body["_meta"].is_object() {
        body["_meta"] = serde_json::json!({});
    }
    if !body["_meta"]["codelia"].is_object() {
        body["_meta"]["codelia"] = serde_json::json!({});
    }
    body["_meta"]["codelia"]["meta"] = meta;
    EventDraft { body: body.to_string().into(), ..draft }
}

/// The metadata that a client of this protocol sent with a prompt.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct PromptContext {
    ui_context: Option<Box<RawValue>>,
    pub(super) meta: Option<Box<RawValue>>,
    /// Further members of `run.start`.
    extra: Option<Box<RawValue>>,
}

impl PromptContext {
    /// Returns the client's members of `run.start` that this dialect does not write itself.
    pub(super) fn extra(&self) -> Members {
        let mut members: Members = self.extra.as_deref().and_then(object).unwrap_or_default();
        members.retain(|name, _| !START_MEMBERS.contains(&name.as_str()));
        members
    }

    fn is_empty(&self) -> bool {
        self.ui_context.is_none() && self.meta.is_none() && self.extra.is_none()
    }

    /// Returns the `ui_context` of `run.start`: the client's, with the session's folder unless it names one.
    pub(super) fn context(&self, cwd: &str) -> Box<RawValue> {
        #[derive(Deserialize)]
        struct Where {
            cwd: Option<String>,
        }
        let own = to_raw(&serde_json::json!({ "cwd": cwd }));
        let Some(blocks) = &self.ui_context else { return own };
        if !matches!(object(blocks), Some(Where { cwd: None })) {
            return blocks.clone();
        }
        let rest = blocks.get().trim_start_matches('{').trim_start();
        let comma = if rest.starts_with('}') { "" } else { "," };
        let own = own.get().trim_end_matches('}');
        RawValue::from_string(format!("{own}{comma}{rest}")).unwrap_or_else(|_| blocks.clone())
    }
}

#[derive(Deserialize)]
struct Mark {
    ui_context: Option<Box<RawValue>>,
    meta: Option<Box<RawValue>>,
    extra: Option<Box<RawValue>>,
    #[serde(rename = "of")]
    origin: Option<String>,
}

/// Returns the `input` of `run.start` for ACP content blocks, and the client's metadata.
///
/// # Errors
/// Returns a message with the reason why a block cannot be sent.
pub(super) fn input(content: &[Box<RawValue>]) -> Result<(Box<RawValue>, PromptContext), String> {
    let mut around = PromptContext::default();
    let mut blocks: Vec<&RawValue> = Vec::with_capacity(content.len());
    for block in content {
        let mark = member(block, "_meta").and_then(|meta| member::<Mark>(meta, "plexus"));
        match mark {
            // Other agents get the files of the context as links; for Codelia they are in the context.
            Some(Mark { origin: Some(origin), .. }) if origin == "ui_context" => continue,
            Some(Mark { ui_context, meta, extra, .. }) if around.is_empty() => {
                around = PromptContext { ui_context, meta, extra };
            }
            _ => {}
        }
        blocks.push(block);
    }
    Ok((input_blocks(&blocks)?, around))
}

fn input_blocks(content: &[&RawValue]) -> Result<Box<RawValue>, String> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Content {
        Text {
            text: String,
        },
        Image {
            data: String,
            #[serde(rename = "mimeType")]
            mime_type: String,
        },
        ResourceLink {
            uri: String,
        },
        Resource {
            resource: Resource,
        },
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    struct Resource {
        uri: String,
        text: Option<String>,
    }
    let mut parts = Vec::with_capacity(content.len());
    let mut images = false;
    for block in content {
        let text = match object::<Content>(block) {
            Some(Content::Text { text }) => text,
            Some(Content::ResourceLink { uri }) => uri,
            Some(Content::Resource { resource: Resource { uri, text: Some(text) } }) => format!("{uri}\n{text}"),
            Some(Content::Image { data, mime_type }) => {
                images = true;
                let url = format!("data:{mime_type};base64,{data}");
                let image = serde_json::json!({ "url": url, "media_type": mime_type });
                parts.push(serde_json::json!({ "type": "image_url", "image_url": image }));
                continue;
            }
            Some(Content::Resource { .. } | Content::Other) => {
                return Err("Codelia accepts text, links and images; the prompt contains something else".into());
            }
            None => return Err("the prompt contains a content block that is not ACP's".into()),
        };
        parts.push(serde_json::json!({ "type": "text", "text": text }));
    }
    if images {
        return Ok(to_raw(&serde_json::json!({ "type": "parts", "parts": parts })));
    }
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    Ok(to_raw(&serde_json::json!({ "type": "text", "text": texts.join("\n") })))
}
