//! Translates the eight events of the Gemini UI mirror. Pure.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, member, pretty, string};
use super::super::updates::{self, ToolUpdate, text_block};
use super::super::{AgentRequest, EventDraft, RequestKey, RequestSubject, subject};
use super::history::{Role, Turn};
use plexus_protocol::{Choice, Kind, Offer, RequestType};

/// A message of the mirror.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) type_name: Cow<'a, str>,
    pub(super) data: Option<&'a RawValue>,
}

/// Returns the text of `user_message` and `model_output`: `{"text"}`.
pub(super) fn text(data: &RawValue) -> Option<String> {
    member(data, "text")
}

/// The data of `tool_call`: `{"callId","name","args"}`.
#[derive(Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(rename = "callId")]
    pub(super) id: String,
    pub(super) name: String,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

/// The data of `tool_output`: `{"callId","output"}`.
#[derive(Deserialize)]
pub(super) struct ToolOutput<'a> {
    #[serde(rename = "callId")]
    pub(super) id: String,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
}

/// The data of `permission_dialog`: `{"id","type","options"}`.
#[derive(Deserialize)]
pub(super) struct Dialog<'a> {
    #[serde(borrow)]
    pub(super) id: &'a RawValue,
    #[serde(rename = "type", default)]
    pub(super) type_name: String,
    #[serde(default)]
    pub(super) options: Vec<String>,
}

/// The answer to a dialog: `{"id","selection"}`.
#[derive(Deserialize)]
pub(super) struct Selection<'a> {
    #[serde(borrow)]
    pub(super) id: &'a RawValue,
    pub(super) selection: Option<String>,
}

/// Makes the event for a live message chunk.
pub(super) fn chunk(role: Role, text: &str, frame: Option<&Bytes>) -> EventDraft {
    let kind = match role {
        Role::User => Kind::UserMessageChunk,
        Role::Model => Kind::AgentMessageChunk,
    };
    updates::chunk(kind, None, text, frame)
}

/// Makes the event for a message of the history.
pub(super) fn past(turn: &Turn) -> EventDraft {
    chunk(turn.role, &turn.text, None)
}

/// Makes the event for `tool_call`.
pub(super) fn tool_call(call: &ToolCall<'_>, frame: &Bytes) -> EventDraft {
    let update = ToolUpdate {
        title: Some(call.name.clone()),
        kind: Some(tool_kind(&call.name)),
        status: Some("in_progress"),
        raw_input: call.args.map(jsonrpc::owned),
        ..ToolUpdate::new(&call.id)
    };
    update.draft(true, false, Some(frame))
}

/// Makes the event for `tool_output`: the mirror does not report failures.
pub(super) fn tool_output(output: &ToolOutput<'_>, frame: &Bytes) -> EventDraft {
    let text = output.output.map(|raw| string(raw).map_or_else(|| pretty(raw.get()), Cow::into_owned));
    let update = ToolUpdate {
        status: Some("completed"),
        content: text.map(|text| vec![text_block(&text)]),
        raw_output: output.output.map(jsonrpc::owned),
        ..ToolUpdate::new(&output.id)
    };
    update.draft(false, true, Some(frame))
}

/// Makes the event for `hook`, unchanged.
pub(super) fn hook(data: &RawValue, frame: &Bytes) -> EventDraft {
    let body = jsonrpc::slice(frame, data);
    EventDraft { kind: Kind::Hook, body, native: Some(frame.clone()), tool: None, title: None }
}

/// Makes the request for `permission_dialog`: it is shown, but only the user at the UI can answer it. `call` is the
/// only running tool call, which it must be about.
pub(super) fn dialog(
    dialog: &Dialog<'_>,
    key: RequestKey,
    call: Option<(&str, &ToolUnderWay)>,
    data: &RawValue,
    frame: &Bytes,
) -> AgentRequest {
    let purpose = match dialog.type_name.as_str() {
        "file_access" => "to access a file".to_owned(),
        "command_run" => "to run a command".to_owned(),
        "" => "for permission".to_owned(),
        other => format!("for permission: {other}"),
    };
    let subject = match call {
        Some((_, ToolUnderWay { name, args: Some(args) })) => match subject::tool(name, args) {
            RequestSubject::Tool { .. } if tool_kind(name) == "execute" => {
                let reason = "its input has no command that can be identified with certainty";
                RequestSubject::Unreadable { reason, raw: format!("{name} {}", pretty(args.get())) }
            }
            subject => subject,
        },
        Some((_, ToolUnderWay { name, args: None })) => {
            RequestSubject::Unreadable { reason: "the tool's input is unknown", raw: name.clone() }
        }
        None => {
            RequestSubject::Unreadable { reason: "which tool call it is about is unknown", raw: pretty(data.get()) }
        }
    };
    let mut options: Vec<Offer> = Vec::with_capacity(dialog.options.len());
    for label in &dialog.options {
        if !options.iter().any(|offer| offer.id == *label) {
            options.push(Offer { id: label.clone(), label: label.clone(), kind: meaning(label), for_session: false });
        }
    }
    AgentRequest {
        message: Some("It can only be answered there.".to_owned()),
        subject,
        options,
        observe_only: true,
        tool_call_id: call.map(|(id, _)| id.to_owned()),
        ..AgentRequest::new(
            key,
            RequestType::Permission,
            format!("The Gemini UI asks {purpose}"),
            jsonrpc::owned(data),
            frame.clone(),
        )
    }
}

/// A running tool call.
pub(super) struct ToolUnderWay {
    pub(super) name: String,
    pub(super) args: Option<Box<RawValue>>,
}

/// Returns the meaning of an option by its label: the mirror reports no more.
fn meaning(label: &str) -> Choice {
    let label = label.to_lowercase();
    let word = |word: &str| label.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
    let always = word("always") || label.contains("don't ask");
    if word("deny") || word("no") || word("reject") || word("cancel") || word("never") {
        if always || word("never") { Choice::RejectAlways } else { Choice::RejectOnce }
    } else if word("allow") || word("yes") || word("approve") || word("proceed") || always {
        if always { Choice::AllowAlways } else { Choice::AllowOnce }
    } else {
        Choice::Other
    }
}

/// Returns the ACP kind of one of Gemini's tools.
fn tool_kind(tool: &str) -> &'static str {
    match tool {
        "run_shell_command" => "execute",
        "read_file" | "read_many_files" | "list_directory" => "read",
        "glob" | "search_file_content" | "grep_search" => "search",
        "write_file" | "replace" => "edit",
        "web_fetch" | "google_web_search" => "fetch",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_understands_options_by_their_words() {
        let cases = [
            ("Allow", Choice::AllowOnce),
            ("Always Allow", Choice::AllowAlways),
            ("Yes, allow once", Choice::AllowOnce),
            ("Yes, and don't ask again", Choice::AllowAlways),
            ("Deny", Choice::RejectOnce),
            ("No (esc)", Choice::RejectOnce),
            ("Never allow", Choice::RejectAlways),
            ("Modify", Choice::Other),
            ("Now", Choice::Other),
        ];
        for (label, expected) in cases {
            assert_eq!(meaning(label), expected, "{label}");
        }
    }
}
