//! Reads the files of Qwen Code: its dual output, and the chat file beside it. Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::terminals::content::{ContentBlock, blocks};
use plexus_dialects::jsonrpc::{member, object, string, token_counts};
use plexus_protocol::{SpendReport, Spending};

/// The content of a line of the dual output.
#[derive(Debug)]
pub(super) enum QwenEvent<'a> {
    /// A prompt.
    Prompt(String),
    /// The beginning of a block of the agent's text.
    BlockStart,
    /// A piece of text.
    Text(String),
    /// A piece of the agent's thoughts.
    Thought(String),
    /// A whole message of the agent: its text, if it has one, and the tools that it calls.
    Whole { text: Option<String>, calls: Vec<ToolUse<'a>> },
    /// The end of a step of the turn, which is the last one if no tool is running.
    StepEnd,
    /// The end of a tool call.
    Result(ToolResult),
    /// A question whether a tool may run.
    QuestionAsked { id: String, question: ToolUse<'a> },
    /// The decision on a question.
    Decided { id: String, allowed: bool },
    /// An answer without effect.
    Refused { id: String },
}

/// A tool with its input.
#[derive(Debug)]
pub(super) struct ToolUse<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: &'a RawValue,
}

/// The result of a tool call.
#[derive(Debug)]
pub(super) struct ToolResult {
    pub(super) id: String,
    pub(super) failed: bool,
    pub(super) text: Option<String>,
}

/// A line of the dual output.
#[derive(Debug)]
pub(super) struct OutputLine<'a> {
    /// The conversation, if the line names it.
    pub(super) session: Option<String>,
    /// The folder, if the line names it.
    pub(super) cwd: Option<String>,
    pub(super) events: Vec<QwenEvent<'a>>,
    /// The tokens of the model call of the line, which no other line reports.
    pub(super) spent: Option<SpendReport>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    session_id: Option<String>,
    #[serde(borrow)]
    parent_tool_use_id: Option<Cow<'a, str>>,
    data: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    event: Option<&'a RawValue>,
    request_id: Option<String>,
    request: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
}

/// Parses a line of the dual output; `None` if it cannot be read.
pub(super) fn output_line(line: &[u8]) -> Option<OutputLine<'_>> {
    let head: Head<'_> = plexus_protocol::object::from_slice(line).ok()?;
    let mut events = Vec::new();
    // The messages of a subagent belong to the tool call that started it, which is shown.
    if head.parent_tool_use_id.is_none() {
        match head.kind.as_ref() {
            "user" => user(&head, &mut events)?,
            "assistant" => assistant(&head, &mut events)?,
            "stream_event" => events.extend(stream_event(head.event?)),
            "control_request" => events.push(question_event(head.request_id?, head.request?)?),
            "control_response" => events.extend(decided(head.response?)),
            _ => {}
        }
    }
    let cwd = head.data.and_then(|data| member(data, "cwd"));
    let spent = head.message.filter(|_| head.kind == "assistant").and_then(spent);
    Some(OutputLine { session: head.session_id.filter(|id| !id.is_empty()), cwd, events, spent })
}

/// Reads `usage` of an agent's message: `input_tokens` includes the cache's part, and only the total includes all output.
fn spent(message: &RawValue) -> Option<SpendReport> {
    let names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "total_tokens"];
    let [input, output, read, total] = token_counts(member(message, "usage")?, names)?;
    let rest = total.zip(input).and_then(|(total, input)| total.checked_sub(input));
    let spending = Spending::new([input, output.max(rest), read, None, None], Vec::new());
    if spending.is_nothing() { None } else { SpendReport::step(spending) }
}

fn parts<'a>(head: &Head<'a>) -> Option<Vec<ContentBlock<'a>>> {
    let content = member::<&RawValue>(head.message?, "content")?;
    match string(content) {
        Some(text) => {
            let text = Some(text.into_owned());
            Some(vec![ContentBlock { kind: "text".into(), text, ..ContentBlock::default() }])
        }
        None => blocks(content),
    }
}

fn user<'a>(head: &Head<'a>, events: &mut Vec<QwenEvent<'a>>) -> Option<()> {
    let mut texts = Vec::new();
    for part in parts(head)? {
        match part.kind.as_ref() {
            "text" => texts.extend(part.text),
            "tool_result" => {
                let text = part.content.map(content_text).filter(|text| !text.is_empty());
                events.push(QwenEvent::Result(ToolResult { id: part.tool_use_id?, failed: part.is_error, text }));
            }
            other => texts.push(format!("[{other}]")),
        }
    }
    let text = texts.join("\n");
    let text = without_reminders(&text);
    if !text.trim().is_empty() {
        events.push(QwenEvent::Prompt(text.to_owned()));
    }
    Some(())
}

/// Returns the text of a tool's result; other blocks are named by their type.
fn content_text(content: &RawValue) -> String {
    if let Some(text) = string(content) {
        return text.into_owned();
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(object::<ContentBlock<'_>>);
    let texts: Vec<String> =
        blocks.map(|block| block.text.clone().unwrap_or_else(|| format!("[{}]", block.kind))).collect();
    texts.join("\n")
}

/// Returns a prompt without the text that Qwen Code puts before it for the model.
fn without_reminders(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(inner) = rest.strip_prefix("<system-reminder>") {
        let Some((_, after)) = inner.split_once("</system-reminder>") else { break };
        rest = after.trim_start();
    }
    rest
}

fn assistant<'a>(head: &Head<'a>, events: &mut Vec<QwenEvent<'a>>) -> Option<()> {
    let (mut text, mut calls) = (None, Vec::new());
    for part in parts(head)? {
        match part.kind.as_ref() {
            "text" => text = part.text,
            "tool_use" => {
                let input = part.input.unwrap_or(RawValue::NULL);
                calls.push(ToolUse { id: part.id?, name: part.name?, input });
            }
            _ => {}
        }
    }
    events.push(QwenEvent::Whole { text, calls });
    Some(())
}

fn stream_event<'a>(event: &'a RawValue) -> Option<QwenEvent<'a>> {
    #[derive(Deserialize)]
    struct Stream<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        delta: Option<Delta>,
    }
    #[derive(Deserialize)]
    struct Delta {
        text: Option<String>,
        thinking: Option<String>,
    }
    let Stream { kind, delta } = object(event)?;
    match (kind.as_ref(), delta) {
        ("content_block_start", _) => Some(QwenEvent::BlockStart),
        ("content_block_delta", Some(Delta { text: Some(text), .. })) => Some(QwenEvent::Text(text)),
        ("content_block_delta", Some(Delta { thinking: Some(text), .. })) => Some(QwenEvent::Thought(text)),
        ("message_stop", _) => Some(QwenEvent::StepEnd),
        _ => None,
    }
}

fn question_event<'a>(id: String, request: &'a RawValue) -> Option<QwenEvent<'a>> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        subtype: Cow<'a, str>,
        tool_name: String,
        tool_use_id: String,
        input: Option<&'a RawValue>,
    }
    let Request { subtype, tool_name: name, tool_use_id, input } = object(request)?;
    let question = ToolUse { id: tool_use_id, name, input: input.unwrap_or(RawValue::NULL) };
    (subtype == "can_use_tool").then_some(QwenEvent::QuestionAsked { id, question })
}

fn decided<'a>(response: &RawValue) -> Option<QwenEvent<'a>> {
    #[derive(Deserialize)]
    struct Response {
        subtype: String,
        request_id: String,
        response: Option<Outcome>,
    }
    #[derive(Deserialize)]
    struct Outcome {
        allowed: bool,
    }
    let Response { subtype, request_id: id, response } = object(response)?;
    match (subtype.as_str(), response) {
        ("success", Some(Outcome { allowed })) => Some(QwenEvent::Decided { id, allowed }),
        ("error", _) => Some(QwenEvent::Refused { id }),
        _ => None,
    }
}

/// The content of a line that only the chat file has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatLine {
    /// The cancellation of a tool call: it was not allowed, or was stopped.
    Cancelled { call: String },
    /// A prompt that Qwen Code took into the turn in progress.
    Steer { text: String, at: String },
}

/// Parses a line of the chat file; `None` if the dual output has the same content.
pub(super) fn chat_line(line: &[u8]) -> Option<ChatLine> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        subtype: Option<Cow<'a, str>>,
        #[serde(default)]
        timestamp: String,
        #[serde(rename = "toolCallResult", borrow)]
        result: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct ChatResult {
        #[serde(rename = "callId")]
        call: String,
        status: String,
    }
    #[derive(Deserialize)]
    struct Message {
        parts: Vec<Text>,
    }
    #[derive(Deserialize)]
    struct Text {
        text: Option<String>,
    }
    let record: Record<'_> = plexus_protocol::object::from_slice(line).ok()?;
    match (record.kind.as_ref(), record.subtype.as_deref()) {
        ("tool_result", _) => {
            let ChatResult { call, status } = object(record.result?)?;
            (status == "cancelled").then_some(ChatLine::Cancelled { call })
        }
        ("user", Some("mid_turn_user_message")) => {
            let Message { parts } = object(record.message?)?;
            let text: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
            let text = text.join("\n");
            (!text.trim().is_empty()).then_some(ChatLine::Steer { text, at: record.timestamp })
        }
        _ => None,
    }
}

/// Returns the path of the chat file of a conversation, as Qwen Code names it.
pub(super) fn chat_path(projects: &str, cwd: &str, session: &str) -> String {
    // The length is in units of UTF-16, as in JavaScript.
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { "-".repeat(c.len_utf16()) };
    let folder: String = cwd.chars().map(plain).collect();
    format!("{projects}/{folder}/chats/{session}.jsonl")
}
