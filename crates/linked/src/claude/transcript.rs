//! Reads the lines of a transcript of Claude Code (`projects/*/SESSION.jsonl`). Pure. The format has no version: a line of an unknown
//! type is Claude Code's own bookkeeping, and is left out.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::terminals::content::{ContentBlock, blocks};
use plexus_dialects::jsonrpc::{member, object, string, token_counts};
use plexus_protocol::Spending;

/// The content of a line.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A message that starts a turn.
    Prompt { text: String, origin: PromptOrigin },
    /// A message that the user typed while the agent worked, and that the agent got then.
    Interjection(String),
    /// A command of the terminal (`/help`), or its output, which is not a turn of the agent.
    Command(String),
    /// A block of the agent's message.
    Block(Block<'a>),
    /// The results of tool calls.
    Results(Vec<ToolResult<'a>>),
    /// The user stopped the agent.
    Interrupted,
    /// An error of the model's service, in the agent's words.
    ServiceError(String),
    /// The turn ended.
    TurnEnd,
    /// The title of the session.
    Title(String),
    /// The tokens of a model call so far. Each block of its message is a line, which repeats them.
    Spent { call: String, spending: Spending },
}

/// The origin of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptOrigin {
    /// The user at the terminal.
    Person,
    /// Claude Code itself: a hook that woke it, or a background task that has ended.
    Agent,
}

/// A block of the agent's message.
#[derive(Debug)]
pub(super) enum Block<'a> {
    Text(String),
    Thought(String),
    ToolUse { id: String, name: String, input: &'a RawValue },
}

/// The result of a tool call.
#[derive(Debug)]
pub(super) struct ToolResult<'a> {
    pub(super) id: String,
    pub(super) failed: bool,
    pub(super) content: Option<&'a RawValue>,
    pub(super) decided: Option<DecidedBy>,
}

/// The origin of the decision on a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecidedBy {
    /// A hook, with an answer of the gateway.
    Hook,
    /// The user at the terminal, who allowed the call or not.
    Person { allowed: bool },
    /// The agent's own rules.
    Rules,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    type_name: Cow<'a, str>,
    subtype: Option<Cow<'a, str>>,
    message: Option<&'a RawValue>,
    attachment: Option<&'a RawValue>,
    origin: Option<&'a RawValue>,
    #[serde(rename = "isSidechain", default)]
    sidechain: bool,
    #[serde(rename = "isMeta", default)]
    meta: bool,
    #[serde(rename = "isApiErrorMessage", default)]
    service_error: bool,
    #[serde(rename = "isCompactSummary", default)]
    summary_of_past: bool,
    #[serde(rename = "permissionDecision", borrow)]
    decision: Option<&'a RawValue>,
    #[serde(rename = "toolDenialKind", borrow)]
    denial: Option<Cow<'a, str>>,
    #[serde(rename = "customTitle", borrow)]
    custom_title: Option<Cow<'a, str>>,
    #[serde(rename = "aiTitle", borrow)]
    ai_title: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
}

/// The types of lines with content for the user; the others are not parsed.
const TYPES: [&str; 6] = ["user", "assistant", "system", "attachment", "custom-title", "ai-title"];

/// The text that Claude Code writes when the user stops it.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Parses a line; empty if it has no content for the user.
///
/// # Errors
/// Returns an error if the line is not JSON or has an unknown form.
pub(super) fn read(line: &[u8]) -> Result<Vec<Line<'_>>, &'static str> {
    // Most of the bytes are bookkeeping: prompts of the system, whole requests.
    #[derive(Deserialize)]
    struct Sort<'a> {
        #[serde(rename = "type", borrow)]
        type_name: Option<Cow<'a, str>>,
    }
    let unreadable = "a line of the transcript that could not be parsed";
    let type_name = plexus_protocol::object::from_slice::<Sort<'_>>(line).map_err(|_| unreadable)?.type_name;
    if !type_name.is_some_and(|type_name| TYPES.contains(&type_name.as_ref())) {
        return Ok(Vec::new());
    }
    let head: Head<'_> = plexus_protocol::object::from_slice(line).map_err(|_| unreadable)?;
    let message = head.message.and_then(object::<Message<'_>>);
    let spent = message.as_ref().filter(|_| head.type_name == "assistant").and_then(spent);
    if head.sidechain || head.meta || head.summary_of_past {
        return Ok(spent.into_iter().collect());
    }
    let content = message.and_then(|message| message.content);
    match head.type_name.as_ref() {
        "user" => Ok(user(&head, content.ok_or(unreadable)?)),
        "assistant" => {
            let mut lines = assistant(&head, content.ok_or(unreadable)?).ok_or(unreadable)?;
            lines.extend(spent);
            Ok(lines)
        }
        "system" if head.subtype.as_deref() == Some("turn_duration") => Ok(vec![Line::TurnEnd]),
        "attachment" => Ok(head.attachment.and_then(interjection).into_iter().collect()),
        "custom-title" | "ai-title" => {
            let title = head.custom_title.or(head.ai_title).filter(|title| !title.trim().is_empty());
            Ok(title.map(|title| Line::Title(title.into_owned())).into_iter().collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn spent<'a>(message: &Message<'_>) -> Option<Line<'a>> {
    let names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let [input, output, read, written] = token_counts(message.usage?, names)?;
    // `input_tokens` excludes the tokens of the cache.
    let input = input.map(|input| input + read.unwrap_or(0) + written.unwrap_or(0));
    let spending = Spending::new([input, output, read, written, None], Vec::new());
    Some(Line::Spent { call: message.id.clone()?, spending })
}

fn user<'a>(head: &Head<'a>, content: &'a RawValue) -> Vec<Line<'a>> {
    if let Some(text) = string(content) {
        return vec![message(head, text.into_owned())];
    }
    let Some(parts) = blocks(content) else { return Vec::new() };
    let (mut results, mut texts) = (Vec::new(), Vec::new());
    for part in parts {
        match part.kind.as_ref() {
            "tool_result" => {
                let Some(id) = part.tool_use_id else { continue };
                results.push(ToolResult { id, failed: part.is_error, content: part.content, decided: decided(head) });
            }
            "text" => texts.extend(part.text),
            "image" => texts.push("[image]".into()),
            "document" => texts.push("[document]".into()),
            _ => {}
        }
    }
    let mut lines = Vec::new();
    if !results.is_empty() {
        lines.push(Line::Results(results));
    }
    if !texts.is_empty() {
        lines.push(message(head, texts.join("\n")));
    }
    lines
}

fn message<'a>(head: &Head<'_>, text: String) -> Line<'a> {
    let kind = head.origin.and_then(|origin| member::<String>(origin, "kind"));
    let origin = match kind.as_deref() {
        None | Some("human") => PromptOrigin::Person,
        Some(_) => PromptOrigin::Agent,
    };
    let start = text.trim_start();
    if start.starts_with(INTERRUPTED) {
        Line::Interrupted
    } else if start.starts_with("<command-") || start.starts_with("<local-command-") || start.starts_with("<bash-") {
        Line::Command(text)
    } else {
        Line::Prompt { text, origin }
    }
}

fn decided(head: &Head<'_>) -> Option<DecidedBy> {
    #[derive(Deserialize)]
    struct Decision<'a> {
        decision: Option<Cow<'a, str>>,
        source: Option<Cow<'a, str>>,
    }
    if let Some(Decision { decision, source: Some(source) }) = head.decision.and_then(object::<Decision<'_>>) {
        return Some(match source.as_ref() {
            "hook" => DecidedBy::Hook,
            source if source.starts_with("user") => {
                DecidedBy::Person { allowed: decision.as_deref() == Some("accept") }
            }
            _ => DecidedBy::Rules,
        });
    }
    match head.denial.as_deref() {
        Some("user-rejected") => Some(DecidedBy::Person { allowed: false }),
        Some(_) => Some(DecidedBy::Rules),
        None => None,
    }
}

fn assistant<'a>(head: &Head<'a>, content: &'a RawValue) -> Option<Vec<Line<'a>>> {
    if head.service_error {
        let texts: Vec<String> = blocks(content)?.into_iter().filter_map(|part| part.text).collect();
        return Some(vec![Line::ServiceError(texts.join("\n"))]);
    }
    let block = |part: ContentBlock<'a>| {
        let ContentBlock { kind, text, thinking, id, name, input, .. } = part;
        let block = match kind.as_ref() {
            "text" => Block::Text(text.filter(|text| !text.is_empty())?),
            "thinking" => Block::Thought(thinking.filter(|text| !text.is_empty())?),
            "tool_use" => Block::ToolUse { id: id?, name: name?, input: input.unwrap_or(RawValue::NULL) },
            _ => return None,
        };
        Some(Line::Block(block))
    };
    Some(blocks(content)?.into_iter().filter_map(block).collect())
}

fn interjection<'a>(attachment: &RawValue) -> Option<Line<'a>> {
    #[derive(Deserialize)]
    struct Attachment<'a> {
        #[serde(rename = "type", borrow)]
        type_name: Cow<'a, str>,
        prompt: Option<&'a RawValue>,
    }
    let Attachment { type_name, prompt: Some(prompt) } = object(attachment)? else { return None };
    if type_name != "queued_command" {
        return None;
    }
    let text = match string(prompt) {
        Some(text) => text.into_owned(),
        None => blocks(prompt)?.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n"),
    };
    (!text.trim().is_empty()).then_some(Line::Interjection(text))
}
