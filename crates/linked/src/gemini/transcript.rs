//! Reads the lines of a transcript of Gemini CLI (`tmp/PROJECT/chats/*.jsonl`). Pure.
//!
//! The file only grows. A line is a message, or `{"$set": ..}`, a change of the file's members about the session. A
//! message is written again, with the same id, when its tool calls have ended. After an interruption Gemini CLI writes
//! the messages that it still has once more, under new ids: messages of the agent without a model, those of the user as
//! if they were new; the `$set` that follows names them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use plexus_dialects::jsonrpc::{member, object, string, token_counts};
use plexus_protocol::Spending;

/// The content of a line.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A message of the user, or one that is written again.
    Person { id: String, text: String },
    /// A message of the agent.
    Agent(AgentMessage<'a>),
    /// The ids of the messages that the session has now.
    Rewritten(Vec<String>),
    /// The user stopped the agent, or denied a call.
    Cancelled,
    /// An error, in the agent's words.
    Failure(String),
    /// The agent's summary of the session.
    Title(String),
}

/// A message of the agent.
#[derive(Debug)]
pub(super) struct AgentMessage<'a> {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) thoughts: Vec<String>,
    /// The tool calls of the message that have ended.
    pub(super) calls: Vec<FinishedCall<'a>>,
    /// The tokens of the model call of the message.
    pub(super) spending: Option<Spending>,
}

/// A tool call that has ended.
#[derive(Debug)]
pub(super) struct FinishedCall<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: &'a RawValue,
    pub(super) status: CallStatus,
    pub(super) output: Option<String>,
}

/// The end of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStatus {
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Deserialize)]
struct Head<'a> {
    id: Option<String>,
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    content: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    thoughts: Option<&'a RawValue>,
    #[serde(rename = "toolCalls", borrow)]
    calls: Option<&'a RawValue>,
    tokens: Option<&'a RawValue>,
    #[serde(rename = "$set", borrow)]
    set: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: String,
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    status: String,
    result: Option<&'a RawValue>,
}

/// The text that Gemini CLI writes when the user stops it.
const CANCELLED: &str = "Request cancelled.";
/// The beginning of the text about the folder that Gemini CLI sends to the model as a message of the user.
const CONTEXT: &str = "<session_context>";

/// Parses a line; empty if it has no content for the user.
///
/// # Errors
/// Returns an error if the line is not JSON or has an unknown form.
pub(super) fn read(line: &[u8]) -> Result<Vec<Line<'_>>, &'static str> {
    let unreadable = "a line of the transcript that could not be parsed";
    let head: Head<'_> = plexus_protocol::object::from_slice(line).map_err(|_| unreadable)?;
    if let Some(set) = head.set {
        return Ok(changed(set));
    }
    let (Some(id), Some(kind)) = (head.id, head.kind) else { return Ok(Vec::new()) };
    let text = head.content.map(text).unwrap_or_default();
    Ok(match kind.as_ref() {
        "user" if text.trim().is_empty() => Vec::new(),
        "user" => vec![Line::Person { id, text }],
        // A message without a model is written again.
        "gemini" if head.model.is_some() => {
            let thoughts = head.thoughts.map(thoughts).unwrap_or_default();
            let calls = head.calls.map(calls).unwrap_or_default();
            let spending = head.tokens.and_then(spending);
            vec![Line::Agent(AgentMessage { id, text, thoughts, calls, spending })]
        }
        "info" if text.trim() == CANCELLED => vec![Line::Cancelled],
        "error" => vec![Line::Failure(text)],
        _ => Vec::new(),
    })
}

/// Reads `tokens` of a message: `input` includes the cache's part, `output` excludes thoughts, and the tokens of tool
/// results are separate.
fn spending(tokens: &RawValue) -> Option<Spending> {
    let names = ["input", "output", "cached", "thoughts", "tool"];
    let [input, output, cached, thoughts, tool] = token_counts(tokens, names)?;
    let input = input.map(|input| input + tool.unwrap_or(0));
    let output = output.map(|output| output + thoughts.unwrap_or(0));
    Some(Spending::new([input, output, cached, None, thoughts], Vec::new()))
}

fn changed(set: &RawValue) -> Vec<Line<'_>> {
    #[derive(Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        messages: Option<&'a RawValue>,
        summary: Option<String>,
    }
    let Some(set) = object::<Set<'_>>(set) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(messages) = set.messages {
        let named: Vec<&RawValue> = serde_json::from_str(messages.get()).unwrap_or_default();
        lines.push(Line::Rewritten(named.into_iter().filter_map(|message| member(message, "id")).collect()));
    }
    lines.extend(set.summary.filter(|summary| !summary.trim().is_empty()).map(Line::Title));
    lines
}

/// Returns the text of a message: a string, or parts of which some are text.
fn text(content: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
        #[serde(default)]
        thought: bool,
    }
    if let Some(text) = string(content) {
        return text.into_owned();
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let parts = parts.into_iter().filter_map(object::<Part>).filter(|part| !part.thought);
    let texts = parts.filter_map(|part| part.text).filter(|text| !text.starts_with(CONTEXT));
    texts.collect::<Vec<_>>().join("\n")
}

fn thoughts(raw: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Thought {
        #[serde(default)]
        subject: String,
        #[serde(default)]
        description: String,
    }
    let all: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = |thought: Thought| match (thought.subject.trim(), thought.description.trim()) {
        ("", description) => description.to_owned(),
        (subject, "") => format!("**{subject}**"),
        (subject, description) => format!("**{subject}**\n{description}"),
    };
    all.into_iter().filter_map(object::<Thought>).map(text).filter(|text| !text.is_empty()).collect()
}

fn calls(raw: &RawValue) -> Vec<FinishedCall<'_>> {
    let all: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let read = |call: Call<'_>| -> Option<(String, String, CallStatus, Option<String>)> {
        let status = match call.status.as_str() {
            "success" => CallStatus::Succeeded,
            "error" => CallStatus::Failed,
            "cancelled" => CallStatus::Cancelled,
            _ => return None,
        };
        Some((call.id, call.name, status, call.result.and_then(output)))
    };
    let finished = |raw| {
        let call = object::<Call<'_>>(raw)?;
        let input = call.args.unwrap_or(RawValue::NULL);
        let (id, name, status, output) = read(call)?;
        Some(FinishedCall { id, name, input, status, output })
    };
    all.into_iter().filter_map(finished).collect()
}

/// Returns the result of a tool, as the model gets it.
fn output(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Response {
        output: Option<String>,
        error: Option<String>,
    }
    let parts: Vec<&RawValue> = serde_json::from_str(result.get()).unwrap_or_default();
    let texts = parts.into_iter().filter_map(|part| {
        let response: Response = member(member(part, "functionResponse")?, "response")?;
        response.error.or(response.output)
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    // The frame around content from outside is for the model.
    let inner =
        text.trim().strip_prefix("<untrusted_context>").and_then(|text| text.strip_suffix("</untrusted_context>"));
    Some(inner.unwrap_or(&text).trim_matches('\n').to_owned()).filter(|text| !text.is_empty())
}
