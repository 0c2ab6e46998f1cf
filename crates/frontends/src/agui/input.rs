//! The input of an AG-UI client: `RunAgentInput` (protocol 1.0), its messages as prompts, its `resume` as answers. Pure.

use std::collections::HashSet;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::events::is_gateway_id;
use plexus_protocol::answers::{self, AnswerAction, AnswerRole, Answerer};
use plexus_protocol::object;
use plexus_protocol::schema::JsonObject;
use plexus_protocol::{Answer, Answers, Choice, Request, RequestState, RequestType, Risk, RunId};
use plexus_router::Problem;

/// Maximum length of an identifier made by a client, in bytes.
const ID_MAX: usize = 256;
/// Maximum number of content blocks of one prompt.
const BLOCKS: usize = 256;
/// Maximum number of answers of one resume: as many as requests may be open in a session.
const ENTRIES: usize = 256;

/// AG-UI's `RunAgentInput`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunAgentInput {
    /// The client's id of the conversation; returned unchanged and not used.
    pub(super) thread_id: String,
    /// The client's id of this run; returned unchanged. A repeated POST starts nothing and decides nothing.
    pub(super) run_id: String,
    /// The client's copy of the conversation. The users' messages at its end that the session does not have are the prompt.
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) messages: Vec<Message>,
    /// The client's tools, which are not passed to agents; the response reports that once.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) tools: Vec<Value>,
    /// The client's context, which is not passed to agents; the response reports that once.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    pub(super) context: Vec<Value>,
    /// The state as sent by the gateway; any other state is not passed to agents, and the response reports that.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) state: Value,
    /// `plexus`: `{cursor, follow, cancel, partial}`.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) forwarded_props: Value,
    /// Answers to all open interrupts.
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
}

/// An answer to one interrupt.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    /// The interrupt: a request.
    pub(super) interrupt_id: String,
    /// `resolved` with a payload, or `cancelled`.
    pub(super) status: Status,
    /// The answer, as the interrupt's `responseSchema` describes it.
    #[serde(default)]
    #[schema(value_type = JsonObject)]
    pub(super) payload: Value,
}

/// The client's decision on an interrupt.
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
    /// The cursor to resume after; `Last-Event-ID` takes precedence.
    pub(super) cursor: Option<String>,
    /// `true` if the stream continues over all further runs of any client.
    pub(super) follow: bool,
    /// The run to cancel: the current one, or the named one.
    pub(super) cancel: Cancel,
    /// `true` if the resume may leave interrupts unanswered.
    pub(super) partial: bool,
}

/// The run to cancel.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Cancel {
    /// The current run if `true`, else none.
    UnderWay(bool),
    /// The run with this identifier.
    Run(RunId),
}

impl Default for Cancel {
    fn default() -> Self {
        Self::UnderWay(false)
    }
}

impl Cancel {
    /// Returns whether a run is to be cancelled.
    pub(super) fn requested(&self) -> bool {
        !matches!(self, Self::UnderWay(false))
    }

    /// Returns the named run.
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
    /// Returns `forwardedProps.plexus`, and checks the bounds of the rest.
    ///
    /// # Errors
    /// 422 with the invalid member.
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

    /// Returns the user's message at the end of the conversation, if the client made it.
    pub(super) fn last(&self) -> Option<&Message> {
        self.messages.last().filter(|last| last.role == "user" && !is_gateway_id(&last.id))
    }

    /// Returns users' messages at the end of the conversation that the session does not have, oldest first.
    pub(super) fn new_messages(&self, known: impl Fn(&str) -> bool) -> Vec<&Message> {
        let fresh = |message: &&Message| message.role == "user" && !is_gateway_id(&message.id) && !known(&message.id);
        let mut fresh: Vec<&Message> = self.messages.iter().rev().take_while(fresh).collect();
        fresh.reverse();
        fresh
    }

    /// Returns the parts of the input that are not passed to agents, as text; empty if none.
    pub(super) fn ignored(&self) -> Vec<&'static str> {
        let mut ignored = Vec::new();
        if !self.tools.is_empty() {
            ignored.push("tools");
        }
        if !self.context.is_empty() {
            ignored.push("context");
        }
        // Clients return the state that the gateway sent.
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

    /// Returns the message's text.
    pub(super) fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// Returns the messages as ACP content blocks, each marked with the client's id for it, which the log stores.
///
/// # Errors
/// 422 if a part cannot be passed on.
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

/// Returns a part of a message as an ACP content block.
fn block(part: &Value) -> Result<Value, Problem> {
    let kind = part["type"].as_str().unwrap_or_default();
    if kind == "text" {
        let text = part["text"].as_str().ok_or_else(|| Problem::invalid("a text part needs `text`"))?;
        return Ok(json!({ "type": "text", "text": text }));
    }
    if !matches!(kind, "image" | "audio" | "video" | "document" | "binary") {
        return Err(invalid("part_not_carried", format!("parts of type {kind:?} cannot be passed to an agent")));
    }
    // Before 1.0 a `binary` part had these members directly.
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

/// The member of a payload that leaves the request to the user's computer.
const DEFER: &str = "decideAtDesk";

/// Returns the schema of an answer to a request, for clients that draw forms: of the answers that a device with this risk limit may
/// choose.
pub(super) fn schema(request: &Request, limit: Option<Risk>) -> Value {
    let device = Answerer { may_approve: true, approve_up_to: limit };
    let mut actions = answers::actions(request, device);
    actions.retain(|action| action.unavailable.is_none());
    let takes = |role| actions.iter().any(|action| action.role == role);
    let too_risky = takes(AnswerRole::Later);
    let reason = json!({ "type": "string", "description": "Why, for the agent to read" });
    let mut fields = json!({});
    match request.kind {
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            let chosen = |action: &AnswerAction| Some((action.answer.as_ref()?.option_id.clone()?, action.text()));
            let (ids, named): (Vec<String>, Vec<Value>) = actions
                .iter()
                .filter_map(chosen)
                .map(|(id, title)| (id.clone(), json!({ "const": id, "title": title })))
                .unzip();
            fields["approved"] = if too_risky { json!({ "const": false }) } else { json!({ "type": "boolean" }) };
            if !ids.is_empty() {
                fields["optionId"] = json!({ "type": "string", "enum": ids, "oneOf": named });
            }
            if request.allow_remember && limit.is_none_or(|limit| limit == Risk::Danger) {
                fields["remember"] = json!({ "type": "boolean" });
            }
        }
        RequestType::Prompt | RequestType::Pick if too_risky => {}
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
            let max = if request.multi { request.items.len() } else { 1 };
            let item_schema = if named.is_empty() { json!({ "type": "string" }) } else { json!({ "oneOf": named }) };
            fields["ids"] = json!({ "type": "array", "items": item_schema, "maxItems": max });
        }
    }
    if request.allow_reason {
        fields["reason"] = reason;
    }
    if too_risky {
        fields[DEFER] = json!({ "const": true, "title": AnswerRole::Later.rule().verb });
    }
    let alternatives = ["value", "ids", "approved", "optionId", DEFER];
    let required = alternatives.into_iter().filter(|name| fields.get(name).is_some());
    let required: Vec<Value> = required.map(|name| json!({ "required": [name] })).collect();
    json!({ "type": "object", "properties": fields, "anyOf": required, "additionalProperties": false })
}

/// A resume's payload, as described by [`schema`].
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

/// Returns whether an entry leaves the request to the user's computer.
pub(super) fn is_deferred(entry: &ResumeEntry) -> bool {
    entry.status == Status::Resolved && entry.payload == json!({ DEFER: true })
}

/// Returns an entry as an answer; the session checks whether it is valid.
///
/// # Errors
/// 422 `bad_payload`: a member that would be ignored is refused, because it may matter to the user (edited arguments).
pub(super) fn answer(request: &Request, entry: &ResumeEntry) -> Result<Answer, Problem> {
    if entry.status == Status::Cancelled {
        return cancelled(request);
    }
    let bad = |error: &dyn std::fmt::Display| {
        let id = &entry.interrupt_id;
        invalid("bad_payload", format!("the payload for {id:?} does not fit its responseSchema: {error}"))
    };
    let payload = match (&entry.payload, request.kind) {
        // A bare value is a short form.
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
        // Both are allowed if they agree; a contradiction is refused.
        let kind = request.options.iter().find(|offer| offer.id == *option).map_or(Choice::Other, |offer| offer.kind);
        if (kind.allows() && !approved) || (kind.rejects() && approved) {
            return Err(bad(&"`approved` and `optionId` contradict each other"));
        }
    }
    let ok = if option_id.is_some() { None } else { approved };
    let value = value.map(Some);
    Ok(Answer { option_id, ok, value, ids, answers, reason, remember, digest, ..Answer::default() })
}

/// Returns the answer for a cancelled interrupt: the request's form of a denial.
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

/// Checks an entry for a closed request: `None` if it is acceptable (another client answered first, or the client cancels a request that
/// cannot be answered), else the problem.
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
        .then(|| Problem::new(StatusCode::GONE, code, detail).with_interrupt(&entry.interrupt_id))
}
