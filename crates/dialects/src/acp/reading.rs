//! The effect of a tool call, read from everything known about it. Pure.
//!
//! The fields in which an agent sends the command are in [`quirks`]; the general rules apply to every other agent, and
//! to a command that is in none of these fields. A tool call that cannot be read reliably is
//! [`RequestSubject::Unreadable`].

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object, pretty, string};
use super::super::{FolderClaim, RequestSubject, subject};
use super::quirks::{self, CommandField};
use super::tool_calls::ToolCallState;

const GENERAL: &[CommandField] = &[CommandField::Input, CommandField::Text];

/// A content block of a tool call.
enum Block {
    Diff(Diff),
    Content(Inner),
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Diff {
    path: String,
    old_text: Option<String>,
    new_text: String,
}

#[derive(Deserialize)]
struct Inner {
    text: Option<String>,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    text: Option<String>,
}

/// Reads the blocks of `content`; `None` if one of them cannot be read.
fn blocks(call: &ToolCallState) -> Option<Vec<Block>> {
    let Some(content) = &call.content else { return Some(Vec::new()) };
    let all: Vec<&RawValue> = serde_json::from_str(content.raw()?.get()).ok()?;
    all.into_iter().map(block).collect()
}

fn block(raw: &RawValue) -> Option<Block> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Content {
        content: Inner,
    }
    // The type is read separately, because a tagged enum of serde buffers the value and accepts arrays for objects.
    Some(match &*object::<Head<'_>>(raw)?.kind {
        "diff" => Block::Diff(object(raw)?),
        "content" => Block::Content(object::<Content>(raw)?.content),
        _ => Block::Other,
    })
}

fn texts(blocks: &[Block]) -> impl Iterator<Item = &str> {
    blocks.iter().filter_map(|block| match block {
        Block::Content(Inner { text, resource }) => {
            text.as_deref().or_else(|| resource.as_ref().and_then(|resource| resource.text.as_deref()))
        }
        _ => None,
    })
}

fn word(part: Option<&super::tool_calls::RawPart>) -> Option<String> {
    Some(string(part?.raw()?)?.into_owned())
}

/// Returns the agent's own text about a request: the text of its content.
pub(super) fn message(call: &ToolCallState) -> Option<String> {
    let blocks = blocks(call)?;
    Some(texts(&blocks).collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
}

/// Returns the effect of a tool call. `announced` is its state before the request, and `call` includes the request;
/// `agent` is the agent's name.
pub(super) fn about(announced: Option<&ToolCallState>, call: &ToolCallState, agent: Option<&str>) -> RequestSubject {
    let unreadable = |reason| RequestSubject::Unreadable { reason, raw: pretty(&call.json()) };
    if call.lost() || announced.is_some_and(ToolCallState::lost) {
        return unreadable("a part of it was too long to be stored across the restart of the gateway");
    }
    let Some(blocks) = blocks(call) else { return unreadable("a part of it has an unknown form") };
    let (kind, title) = (word(call.kind.as_ref()), word(call.title.as_ref()));
    let executes = kind.as_deref() == Some("execute");
    let input = call.input.as_ref().and_then(|input| input.raw());
    let edits: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Diff(Diff { path, old_text, new_text }) => Some((path.clone(), old_text.clone(), new_text.clone())),
            _ => None,
        })
        .collect();
    let command = |subject: &RequestSubject| matches!(subject, RequestSubject::Command { .. });
    let from_input = input.and_then(input_subject);
    if !edits.is_empty() {
        // With a command beside them, the edits are not the complete effect.
        let unread = || from_input.is_none() && input.is_some_and(subject::may_run);
        let is_mixed = executes || from_input.as_ref().is_some_and(command) || unread();
        return if is_mixed {
            unreadable("it is a command and a file change at once")
        } else {
            RequestSubject::Edits(edits)
        };
    }
    let plans = kind.as_deref() == Some("switch_mode");
    for field in quirks::command_fields(agent).unwrap_or_default().iter().chain(GENERAL) {
        let found = match field {
            CommandField::Input => from_input.clone(),
            // An input that cannot be read is not replaced by text.
            _ if input.is_some_and(|input| input.get().starts_with('{') && subject::may_run(input)) => None,
            CommandField::Text => in_texts(&texts(&blocks).collect::<Vec<_>>(), executes)
                .or_else(|| announced.and_then(|call| before(call, executes))),
            CommandField::Title => title.clone().filter(|_| executes).map(|line| {
                let cwd = texts(&blocks).find_map(folder).map(FolderClaim::Text);
                RequestSubject::Command { argv: vec![line], cwd }
            }),
        };
        if let Some(found) = found.filter(|found| !plans || !command(found)) {
            return with_folder(found, announced);
        }
    }
    if plans && let Some(plan) = message(call).or_else(|| announced.and_then(message)) {
        return RequestSubject::Plan(plan);
    }
    match (input, title) {
        (Some(input), _) if executes || subject::may_run(input) => {
            unreadable("its input has no command that can be identified with certainty")
        }
        (Some(input), Some(name)) => RequestSubject::Tool { name, arguments: pretty(input.get()) },
        (Some(input), None) => {
            RequestSubject::Tool { name: kind.unwrap_or_else(|| "tool".into()), arguments: pretty(input.get()) }
        }
        (None, _) => unreadable("the agent did not send the tool's input"),
    }
}

/// Returns the subject of an input: an object by the general rules, a command line, or a program with its arguments.
fn input_subject(raw: &RawValue) -> Option<RequestSubject> {
    if let Some(text) = string(raw) {
        let text = text.trim();
        return match text.starts_with('{') {
            true => subject::input(&RawValue::from_string(text.to_owned()).ok()?),
            false => subject::in_text(text, false),
        };
    }
    match serde_json::from_str::<Vec<String>>(raw.get()) {
        Ok(argv) if !argv.is_empty() => Some(RequestSubject::Command { argv, cwd: None }),
        _ => subject::input(raw),
    }
}

/// Returns the only subject that texts have; `None` if they have several.
fn in_texts(texts: &[&str], executes: bool) -> Option<RequestSubject> {
    let mut found: Vec<RequestSubject> = texts.iter().filter_map(|text| subject::in_text(text, executes)).collect();
    found.dedup();
    if found.len() == 1 { found.pop() } else { None }
}

fn before(call: &ToolCallState, executes: bool) -> Option<RequestSubject> {
    in_texts(&texts(&blocks(call)?).collect::<Vec<_>>(), executes)
}

/// Returns the folder in a text: `[current working directory /w]` is that of the agent's process, `[in sub]` the tool's.
fn folder(text: &str) -> Option<String> {
    let named = text.strip_prefix("[current working directory ").or_else(|| text.strip_prefix("[in "))?;
    let (folder, _) = named.split_once(']')?;
    Some(folder.to_owned())
}

/// Returns the subject with the announced folder, if the request has the command without one.
fn with_folder(subject: RequestSubject, announced: Option<&ToolCallState>) -> RequestSubject {
    let RequestSubject::Command { argv, cwd: None } = subject else { return subject };
    let input = announced.and_then(|call| call.input.as_ref()?.raw());
    let cwd = match input.and_then(input_subject) {
        Some(RequestSubject::Command { argv: before, cwd }) if before == argv => cwd,
        // The folder was announced before the command was known.
        None => input.and_then(subject::folder).map(FolderClaim::Field),
        _ => None,
    };
    RequestSubject::Command { argv, cwd }
}

/// Returns whether a tool call is a plan that waits for approval.
pub(super) fn is_plan(call: &ToolCallState, agent: Option<&str>) -> bool {
    matches!(about(None, call, agent), RequestSubject::Plan(_))
}

/// Returns the id of a `toolCall`, if it has one.
pub(super) fn tool_call_id_in(tool_call: &RawValue) -> Option<String> {
    member(tool_call, "toolCallId")
}
