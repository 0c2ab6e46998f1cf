//! What a client of AG-UI sends: `RunAgentInput` (protocol 1.0), its messages as prompts, its `resume` as answers. Pure.

use std::collections::HashSet;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::translate::is_ours;
use crate::router::Problem;
use plexus_protocol::object;
use plexus_protocol::schema::JsonObject;
use plexus_protocol::{Answer, Answers, Choice, Request, RequestState, RequestType, RunId};

/// Longest identifier of a client's own, in bytes.
const ID_MAX: usize = 256;
/// Content blocks of one prompt.
const BLOCKS: usize = 256;
/// Answers of one resume: as many as requests may be open in a session.
const ENTRIES: usize = 256;

/// What a client sends to run: AG-UI's `RunAgentInput`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct RunAgentInput {
    /// The client's own name for the conversation; said back, and not looked at.
    pub(super) thread_id: String,
    /// The client's own name for this run; said back. The same POST again starts and decides nothing.
    pub(super) run_id: String,
    /// The conversation as the client has it. People's messages at its end that the session does not have are the prompt.
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) messages: Vec<Message>,
    /// Not carried: said so once.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) tools: Vec<Value>,
    /// Not carried: said so once.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) context: Vec<Value>,
    /// What the gateway said; anything else is not carried, and said so.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) state: Value,
    /// `plexus`: `{cursor, follow, cancel, partial}`.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) forwarded_props: Value,
    /// Answers to interrupts, all that are open.
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
}

/// An answer to one interrupt.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ResumeEntry {
    /// The interrupt: a request.
    pub(super) interrupt_id: String,
    /// `resolved` with a payload, or `cancelled`.
    pub(super) status: Status,
    /// As the interrupt's `responseSchema` says.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) payload: Value,
}

/// What became of an interrupt, in the client's words.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ResumeStatus)]
pub(super) enum Status {
    Resolved,
    Cancelled,
}

/// One message of the client's conversation.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    id: String,
    role: String,
    #[serde(default)]
    content: Value,
}

/// `forwardedProps.plexus`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Props {
    /// Everything after this cursor; as `Last-Event-ID`, which beats it.
    pub(super) cursor: Option<String>,
    /// The stream goes on over any number of runs, whoever starts them.
    pub(super) follow: bool,
    /// Stop the run under way, or the one named.
    pub(super) cancel: Cancel,
    /// The resume may leave open what it does not name.
    pub(super) partial: bool,
}

/// What to stop.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Cancel {
    /// The run under way, or nothing.
    UnderWay(bool),
    /// This run.
    Run(RunId),
}

impl Default for Cancel {
    fn default() -> Self {
        Self::UnderWay(false)
    }
}

impl Cancel {
    /// Whether anything is to be stopped.
    pub(super) fn wished(&self) -> bool {
        !matches!(self, Self::UnderWay(false))
    }

    /// The run that is named.
    pub(super) fn run(&self) -> Option<RunId> {
        match self {
            Self::UnderWay(_) => None,
            Self::Run(run) => Some(run.clone()),
        }
    }
}

fn invalid(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
}

impl RunAgentInput {
    /// `forwardedProps.plexus`, and the bounds of the rest.
    ///
    /// # Errors
    /// 422 naming what does not fit.
    pub(super) fn check(&self) -> Result<Props, Problem> {
        for (name, id) in [("threadId", &self.thread_id), ("runId", &self.run_id)] {
            if id.is_empty() || id.len() > ID_MAX {
                return Err(Problem::invalid(format!("`{name}` must have 1 to {ID_MAX} bytes")));
            }
        }
        let entries = self.resume.as_deref().unwrap_or_default();
        if entries.len() > ENTRIES {
            return Err(Problem::invalid(format!("`resume` may have at most {ENTRIES} entries")));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = entries.iter().find(|entry| !seen.insert(&entry.interrupt_id)) {
            let id = &twice.interrupt_id;
            return Err(invalid("resume_twice", format!("`resume` has two answers for {id:?}: give one")));
        }
        match self.forwarded_props.get("plexus") {
            None | Some(Value::Null) => Ok(Props::default()),
            Some(props) => object::from_value(props.clone())
                .map_err(|error| Problem::invalid(format!("`forwardedProps.plexus` does not fit: {error}"))),
        }
    }

    /// The name of the person's message with which the conversation ends, where the client made it.
    pub(super) fn last(&self) -> Option<&str> {
        let last = self.messages.last().filter(|last| last.role == "user" && !is_ours(&last.id));
        last.map(|last| last.id.as_str())
    }

    /// People's messages at the end of the conversation that the session does not have, oldest first.
    pub(super) fn fresh(&self, known: impl Fn(&str) -> bool) -> Vec<&Message> {
        let fresh = |message: &&Message| message.role == "user" && !is_ours(&message.id) && !known(&message.id);
        let mut fresh: Vec<&Message> = self.messages.iter().rev().take_while(fresh).collect();
        fresh.reverse();
        fresh
    }

    /// What came with it that no agent is told of, in words; empty if nothing.
    pub(super) fn ignored(&self) -> Vec<&'static str> {
        let mut ignored = Vec::new();
        if !self.tools.is_empty() {
            ignored.push("tools");
        }
        if !self.context.is_empty() {
            ignored.push("context");
        }
        // Clients send the state back that we gave them.
        let own = |state: &serde_json::Map<String, Value>| state.is_empty() || state.contains_key("session");
        if !self.state.is_null() && !self.state.as_object().is_some_and(own) {
            ignored.push("state");
        }
        if self.forwarded_props.as_object().is_some_and(|props| props.keys().any(|key| key != "plexus")) {
            ignored.push("forwardedProps");
        }
        ignored
    }
}

impl Message {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The message's text.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// The messages as ACP content blocks, each marked with the client's name for it, so that the log knows.
///
/// # Errors
/// 422 if a part cannot be carried.
pub(super) fn blocks(messages: &[&Message]) -> Result<Vec<Box<RawValue>>, Problem> {
    let mut blocks = Vec::new();
    for message in messages {
        if message.id.is_empty() || message.id.len() > ID_MAX {
            return Err(Problem::invalid(format!("the `id` of a message must have 1 to {ID_MAX} bytes")));
        }
        let parts = match &message.content {
            Value::String(text) => vec![json!({ "type": "text", "text": text })],
            Value::Array(parts) => parts.iter().map(block).collect::<Result<_, _>>()?,
            _ => return Err(Problem::invalid("the `content` of a user message must be text or a list of parts")),
        };
        if parts.iter().all(|part| part["text"].as_str().is_some_and(|text| text.trim().is_empty())) {
            return Err(Problem::invalid("the prompt is empty"));
        }
        for mut part in parts {
            part["_meta"] = json!({ "plexus": { "message_id": message.id } });
            blocks.push(to_raw_value(&part).map_err(|error| Problem::invalid(error.to_string()))?);
        }
    }
    if blocks.len() > BLOCKS {
        return Err(Problem::invalid(format!("a prompt may have at most {BLOCKS} parts")));
    }
    Ok(blocks)
}

/// A part of a message as an ACP content block.
fn block(part: &Value) -> Result<Value, Problem> {
    let kind = part["type"].as_str().unwrap_or_default();
    if kind == "text" {
        let text = part["text"].as_str().ok_or_else(|| Problem::invalid("a text part needs `text`"))?;
        return Ok(json!({ "type": "text", "text": text }));
    }
    if !matches!(kind, "image" | "audio" | "video" | "document" | "binary") {
        return Err(invalid("part_not_carried", format!("parts of type {kind:?} cannot be passed to an agent")));
    }
    // Before 1.0 a `binary` part had these members itself.
    let source = if kind == "binary" { part } else { &part["source"] };
    let mime = source["mimeType"].as_str();
    let (data, url) = match source["type"].as_str() {
        Some("data") => (source["value"].as_str(), None),
        Some("url") => (None, source["value"].as_str()),
        _ => (source["data"].as_str(), source["url"].as_str()),
    };
    match (data, url) {
        (Some(data), _) => {
            let mime = mime.ok_or_else(|| Problem::invalid("a part with data needs a `mimeType`"))?;
            Ok(if mime.starts_with("image/") {
                json!({ "type": "image", "data": data, "mimeType": mime })
            } else if mime.starts_with("audio/") {
                json!({ "type": "audio", "data": data, "mimeType": mime })
            } else {
                let uri = format!("attachment:{}", part["id"].as_str().unwrap_or("1"));
                json!({ "type": "resource", "resource": { "uri": uri, "blob": data, "mimeType": mime } })
            })
        }
        (None, Some(url)) => {
            let name = url.rsplit('/').find(|part| !part.is_empty()).unwrap_or(url);
            let mut link = json!({ "type": "resource_link", "uri": url, "name": name });
            if let Some(mime) = mime {
                link["mimeType"] = mime.into();
            }
            Ok(link)
        }
        (None, None) => Err(invalid(
            "part_not_carried",
            "a part whose data is stored by a provider cannot be passed on: send data or a url",
        )),
    }
}

/// What an answer to a request must look like, for clients that draw forms.
pub(super) fn schema(request: &Request) -> Value {
    let reason = json!({ "type": "string", "description": "Why, for the agent to read" });
    let mut fields = json!({});
    match request.kind {
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            let ids: Vec<&str> = request.options.iter().map(|offer| offer.id.as_str()).collect();
            let named = request.options.iter().map(|offer| json!({ "const": offer.id, "title": offer.label }));
            let named: Vec<Value> = named.collect();
            fields["approved"] = json!({ "type": "boolean" });
            if !ids.is_empty() {
                fields["optionId"] = json!({ "type": "string", "enum": ids, "oneOf": named });
            }
            if request.allow_remember {
                fields["remember"] = json!({ "type": "boolean" });
            }
        }
        RequestType::Prompt => {
            let mut value = json!({ "type": "string" });
            if let Some(default) = &request.default_value {
                value["default"] = default.as_str().into();
            }
            if request.secret {
                value["writeOnly"] = true.into();
            }
            fields["value"] = value;
        }
        RequestType::Pick => {
            let named = request.items.iter().map(|item| json!({ "const": item.id, "title": item.label }));
            let named: Vec<Value> = named.collect();
            let most = if request.multi { request.items.len() } else { 1 };
            let of = if named.is_empty() { json!({ "type": "string" }) } else { json!({ "oneOf": named }) };
            fields["ids"] = json!({ "type": "array", "items": of, "maxItems": most });
        }
    }
    if request.allow_reason {
        fields["reason"] = reason;
    }
    let required = match request.kind {
        RequestType::Prompt => json!([{ "required": ["value"] }]),
        RequestType::Pick => json!([{ "required": ["ids"] }]),
        _ if request.options.is_empty() => json!([{ "required": ["approved"] }]),
        _ => json!([{ "required": ["approved"] }, { "required": ["optionId"] }]),
    };
    json!({ "type": "object", "properties": fields, "anyOf": required, "additionalProperties": false })
}

/// A resume's payload, as [`schema`] says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    approved: Option<bool>,
    option_id: Option<String>,
    value: Option<String>,
    ids: Option<Vec<String>>,
    answers: Option<Answers>,
    reason: Option<String>,
    remember: Option<bool>,
    digest: Option<String>,
}

/// An entry as an answer; whether it fits is for the session to judge.
///
/// # Errors
/// 422 `bad_payload`: a member that would be ignored is refused, because a person meant something by it (edited arguments).
pub(super) fn answer(request: &Request, entry: &ResumeEntry) -> Result<Answer, Problem> {
    if entry.status == Status::Cancelled {
        return cancelled(request);
    }
    let bad = |error: &dyn std::fmt::Display| {
        let id = &entry.interrupt_id;
        invalid("bad_payload", format!("the payload for {id:?} does not fit its responseSchema: {error}"))
    };
    let payload = match (&entry.payload, request.kind) {
        // A bare answer says enough.
        (Value::Bool(approved), _) => json!({ "approved": approved }),
        (Value::String(value), RequestType::Prompt) => json!({ "value": value }),
        (Value::String(id), RequestType::Pick) => json!({ "ids": [id] }),
        (Value::String(id), _) => json!({ "optionId": id }),
        (Value::Array(ids), RequestType::Pick) => json!({ "ids": ids }),
        (Value::Object(_), _) => entry.payload.clone(),
        _ => return Err(bad(&"an object was expected")),
    };
    let Payload { approved, option_id, value, ids, answers, reason, remember, digest } =
        object::from_value(payload).map_err(|error| bad(&error))?;
    if let (Some(approved), Some(option)) = (approved, &option_id) {
        // Both may be said if they agree; one that says yes and no decides nothing.
        let kind = request.options.iter().find(|offer| offer.id == *option).map_or(Choice::Other, |offer| offer.kind);
        if (kind.allows() && !approved) || (kind.rejects() && approved) {
            return Err(bad(&"`approved` and `optionId` contradict each other"));
        }
    }
    let ok = if option_id.is_some() { None } else { approved };
    let value = value.map(Some);
    Ok(Answer { option_id, ok, value, ids, answers, reason, remember, digest, ..Answer::default() })
}

/// The answer for "I do not answer": a refusal, in the form that the request has for it.
fn cancelled(request: &Request) -> Result<Answer, Problem> {
    match request.kind {
        RequestType::Prompt => Ok(Answer { value: Some(None), ..Answer::default() }),
        RequestType::Pick => Ok(Answer { ids: Some(Vec::new()), ..Answer::default() }),
        _ => {
            let reject = request.options.iter().find(|offer| offer.kind == Choice::RejectOnce);
            let reject = reject.or_else(|| request.options.iter().find(|offer| offer.kind.rejects()));
            let id = &request.request_id;
            let none = || {
                invalid("option_not_offered", format!("{id} cannot be declined: choose an option, or cancel the run"))
            };
            Ok(Answer { option_id: Some(reject.ok_or_else(none)?.id.clone()), ..Answer::default() })
        }
    }
}

/// What an entry says to a request that is closed already: `None` if it may stand (somebody answered first, or the client
/// gives up what nobody can answer), else why not.
pub(super) fn late(entry: &ResumeEntry, request: &Request) -> Option<Problem> {
    let code = match request.state {
        RequestState::Open | RequestState::Answered => return None,
        RequestState::Expired => "expired",
        RequestState::Withdrawn => "withdrawn",
        RequestState::Orphaned => "orphaned",
    };
    let detail = format!(
        "the interrupt {} is {code} and cannot be answered: resume it as `cancelled`, or leave it out",
        request.request_id
    );
    (entry.status == Status::Resolved)
        .then(|| Problem::new(StatusCode::GONE, code, detail).of_interrupt(&entry.interrupt_id))
}
