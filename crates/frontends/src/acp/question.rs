//! Translates requests into ACP's questions, and clients' responses into answers. Pure.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::shape::{self, ClientSupport, Members, notification, own_update, raw};
use plexus_protocol::answers::{self, AnswerRole, Answerer, LABEL_MAX};
use plexus_protocol::object;
use plexus_protocol::text::line;
use plexus_protocol::{Answer, Cursor, Request, RequestId, RequestState, RequestType, Resolver, Risk, SessionId};
use plexus_router::wire::request_name;

/// The option that accepts the proposed default.
const AS_PROPOSED: &str = "plexus:default";
/// The field of a form made by the gateway.
const FIELD: &str = "answer";

/// Returns whether a request is riskier than the device with this limit may allow.
pub(super) fn is_too_risky(request: &Request, limit: Option<Risk>) -> bool {
    limit.is_some_and(|limit| request.risk > limit)
}

/// Returns a request as `session/request_permission`, or as `elicitation/create` if it fits and the client supports it. Every request has
/// a form, so that a client can at least display a request that it cannot answer. A client with a risk limit is offered only permitted
/// answers.
pub(super) fn question(request: &Request, cursor: &Cursor, support: ClientSupport, limit: Option<Risk>) -> Vec<u8> {
    let native: Option<Members<'_>> =
        request.native.as_deref().and_then(|native| serde_json::from_str(native.get()).ok());
    let native = native.unwrap_or(Members(Vec::new()));
    let mut meta: Map<String, Value> =
        native.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    let mut own_members = json!({
        "request_id": request.request_id, "cursor": cursor, "title": request.title, "display": request.display,
        "warnings": request.warnings, "risk": request.risk, "risk_reasons": request.risk_reasons, "digest": request.digest,
        "subject": request.subject, "revision": request.revision, "changed": request.changed,
    });
    if let Some(editable) = &request.editable {
        own_members["editable"] = json!(editable);
    }
    if let Some(at) = request.expires_at {
        own_members["expires_at"] = json!(at);
    }
    meta.insert("plexus".into(), own_members);
    let (session, meta) = (raw(&request.session_id), raw(&meta));
    let own_members: [(&str, &RawValue); 2] = [("sessionId", &session), ("_meta", &meta)];
    let id = &*request_name(request.request_id.as_str(), request.revision);
    // The agent's own message, if the agent uses ACP.
    if request.kind == RequestType::Permission && native.get("toolCall").is_some() && native.get("options").is_some() {
        // Clients may display only this tool call, so it must contain the whole request.
        let call = native.get("toolCall").and_then(|call| with_display_text(call, request));
        let call = call.as_ref().map(|call| ("toolCall", &**call));
        let options = raw(&options(request, &native, limit));
        let own_members: Vec<(&str, &RawValue)> =
            own_members.into_iter().chain(call).chain([("options", &*options)]).collect();
        return shape::request(id, "session/request_permission", &native.with(&own_members, &[]));
    }
    // A form and a page have no place for "Decide at the desk".
    let support = if is_too_risky(request, limit) { ClientSupport::default() } else { support };
    if (support.forms && native.get("requestedSchema").is_some()) || (support.pages && native.get("url").is_some()) {
        // The elicitation belongs to the gateway's session now, not to a request of the agent's connection.
        return shape::request(id, "elicitation/create", &native.with(&own_members, &["requestId"]));
    }
    if support.forms && matches!(request.kind, RequestType::Prompt | RequestType::Pick) {
        let params = Members(Vec::new()).with(
            &[
                own_members[0],
                own_members[1],
                ("mode", &raw(&"form")),
                ("message", &raw(&request.display)),
                ("requestedSchema", &raw(&form(request))),
            ],
            &[],
        );
        return shape::request(id, "elicitation/create", &params);
    }
    let call = json!({
        "toolCallId": request.tool_call_id.as_deref().unwrap_or(id), "title": request.title, "kind": "other",
        "status": "pending", "content": [text(&request.display)],
    });
    let params = Members(Vec::new()).with(
        &[
            own_members[0],
            own_members[1],
            ("toolCall", &raw(&call)),
            ("options", &raw(&options(request, &native, limit))),
        ],
        &[],
    );
    shape::request(id, "session/request_permission", &params)
}

/// Returns the agent's tool call with the missing text added; `None` if it has its own.
fn with_display_text(call: &RawValue, request: &Request) -> Option<Box<RawValue>> {
    let mut call: Map<String, Value> = serde_json::from_str(call.get()).ok()?;
    // Empty members count as absent.
    call.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
    if call.contains_key("content") || call.contains_key("rawInput") {
        return None;
    }
    if !call.contains_key("title") {
        call.insert("title".into(), request.title.as_str().into());
    }
    if !call.contains_key("toolCallId") {
        call.insert("toolCallId".into(), request.tool_call_id.as_deref().unwrap_or(request.request_id.as_str()).into());
    }
    call.insert("content".into(), json!([text(&request.display)]));
    Some(raw(&call))
}

fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// Returns the form for a prompt or a pick.
fn form(request: &Request) -> Value {
    let titled = |item: &plexus_protocol::Item| json!({ "const": item.id, "title": item.label });
    let items: Vec<Value> = request.items.iter().map(titled).collect();
    let mut field = match (request.kind, request.multi) {
        (RequestType::Pick, true) => json!({ "type": "array", "items": { "anyOf": items } }),
        (RequestType::Pick, false) => json!({ "type": "string", "oneOf": items }),
        _ => json!({ "type": "string" }),
    };
    field["title"] = request.title.as_str().into();
    if let (RequestType::Prompt, Some(start)) = (request.kind, &request.default_value) {
        field["default"] = start.as_str().into();
    }
    json!({ "type": "object", "properties": { FIELD: field }, "required": [FIELD] })
}

/// Returns the options of a request as permission options: the answers that a device with this limit may give. The verbs are the
/// gateway's; an agent's own label is quoted beside its verb, and its other members of an option are retained.
fn options(request: &Request, native: &Members<'_>, limit: Option<Risk>) -> Vec<Value> {
    let own: Vec<Map<String, Value>> =
        native.get("options").and_then(|own| serde_json::from_str(own.get()).ok()).unwrap_or_default();
    let option = |id: &str, name: String, kind: &str| {
        let own = own.iter().find(|own| own.get("optionId").is_some_and(|own| own == id));
        let mut option = own.cloned().unwrap_or_default();
        option.extend(
            [("optionId", json!(id)), ("name", json!(name)), ("kind", json!(kind))].map(|(k, v)| (k.into(), v)),
        );
        Value::Object(option)
    };
    let answered = |label: &str| format!("{} “{}”", AnswerRole::Choose.rule().verb, line(label, LABEL_MAX));
    let device = Answerer { may_approve: true, approve_up_to: limit };
    let mut options = Vec::new();
    for action in answers::actions(request, device).iter().filter(|action| action.unavailable.is_none()) {
        let offered = action.answer.as_ref().and_then(|answer| answer.option_id.as_deref());
        match (action.role, offered) {
            (role, Some(id)) => options.push(option(id, action.text(), option_kind(role))),
            // A permission has no field for a text: the proposed one, or an item.
            (AnswerRole::Send, None) => {
                let start = request.default_value.iter().filter(|_| !request.secret);
                options.extend(start.map(|start| option(AS_PROPOSED, answered(start), "allow_once")));
                options.extend(request.items.iter().map(|item| option(&item.id, answered(&item.label), "allow_once")));
            }
            (role, None) => options.push(option(&own_id(role), action.text(), option_kind(role))),
        }
    }
    options
}

/// Returns the kind in which ACP clients know an answer. An answer that is none of the four kinds must not be read as allowing.
fn option_kind(role: AnswerRole) -> &'static str {
    match role {
        AnswerRole::AllowOnce => "allow_once",
        AnswerRole::AllowAlways | AnswerRole::AllowSession => "allow_always",
        AnswerRole::DenyAlways => "reject_always",
        AnswerRole::Deny | AnswerRole::Skip | AnswerRole::Later | AnswerRole::Choose | AnswerRole::Send => {
            "reject_once"
        }
    }
}

/// Returns the id of an option that the gateway adds.
fn own_id(role: AnswerRole) -> String {
    format!("plexus:{}", json!(role).as_str().unwrap_or_default())
}

/// Returns a request that the client may not answer as a tool call.
pub(super) fn card(request: &Request) -> Vec<u8> {
    let update = json!({
        "sessionUpdate": "tool_call", "toolCallId": request.request_id, "title": request.title, "kind": "other",
        "status": "pending", "content": [text(&request.display)],
    });
    own_update(&request.session_id, &update)
}

/// Returns a request that the client has left to the user's computer as a tool call.
pub(super) fn deferred_card(request: &Request) -> Vec<u8> {
    let note = text("Waits for your computer: it is too risky to be allowed here, and stays open.");
    let update = json!({
        "sessionUpdate": "tool_call", "toolCallId": request.request_id, "title": request.title, "kind": "other",
        "status": "pending", "content": [note, text(&request.display)],
    });
    own_update(&request.session_id, &update)
}

/// Returns the end of such a tool call.
pub(super) fn card_ended(session: &SessionId, id: &RequestId, receipt: &Resolved) -> Vec<u8> {
    let status =
        if receipt.ok == Some(false) || receipt.state != RequestState::Answered { "failed" } else { "completed" };
    own_update(session, &json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status }))
}

/// Returns the result of joining a session, with the names of its open requests in `_meta.plexus.requests`.
pub(super) fn with_open(result: &RawValue, open: &[Arc<Request>]) -> Box<RawValue> {
    let Ok(result) = serde_json::from_str::<Members<'_>>(result.get()) else { return result.to_owned() };
    let mut meta: Value =
        result.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    let names = open.iter().map(|request| request_name(request.request_id.as_str(), request.revision));
    meta["plexus"]["requests"] = names.collect();
    result.with(&[("_meta", &raw(&meta))], &[])
}

/// Withdraws a request that was answered elsewhere or has closed.
pub(super) fn retracted(id: &RequestId, revision: u64) -> Vec<u8> {
    notification("$/cancel_request", &json!({ "requestId": request_name(id.as_str(), revision) }))
}

/// The end of a request in the log.
#[derive(Deserialize)]
pub(super) struct Resolved {
    pub(super) state: RequestState,
    option_id: Option<String>,
    ok: Option<bool>,
    reason: Option<String>,
    resolved_by: Resolver,
}

/// Returns the end of a request in the form of RFD #533.
pub(super) fn permission_resolved(session: &SessionId, tool_call: &str, receipt: &Resolved, meta: Value) -> Vec<u8> {
    let kind = match receipt.state {
        RequestState::Answered => "selected",
        RequestState::Expired => "expired",
        RequestState::Open | RequestState::Withdrawn | RequestState::Orphaned => "cancelled",
    };
    let mut outcome = json!({ "kind": kind });
    if let Some(option) = &receipt.option_id {
        outcome["optionId"] = option.as_str().into();
    }
    if let Some(reason) = &receipt.reason {
        outcome["reason"] = reason.as_str().into();
    }
    let update = json!({
        "sessionUpdate": "permission_resolved", "toolCallId": tool_call, "chosenOptionId": receipt.option_id,
        "outcome": outcome, "resolvedBy": { "name": receipt.resolved_by.name, "version": "" },
        "_meta": { "plexus": meta },
    });
    own_update(session, &update)
}

/// A client's response to a request.
pub(super) enum Reply {
    Answer(Box<Answer>),
    /// There is no answer. `cancelled` is not an answer either, since clients also send it when they cancel their turn, which must not
    /// decide the request for others.
    NoAnswer,
    /// The request is left to the user's computer.
    Deferred,
}

/// Reads a client's response to a request.
pub(super) fn reply(request: &Request, result: &RawValue) -> Result<Reply, String> {
    #[derive(Deserialize)]
    struct Response {
        outcome: Option<Outcome>,
        action: Option<String>,
        content: Option<Map<String, Value>>,
        #[serde(rename = "_meta")]
        meta: Option<Value>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Outcome {
        outcome: String,
        option_id: Option<String>,
    }
    let response: Response = object::from_str(result.get()).map_err(|error| format!("not an answer: {error}"))?;
    // The gateway's own options first, so that no option of an agent can imitate one.
    let own = |id: &str| AnswerRole::ALL.into_iter().find(|role| own_id(*role) == id);
    let own_answer = |role: AnswerRole| {
        let all = answers::actions(request, Answerer::UNLIMITED).into_iter().filter(|action| action.role == role);
        all.filter_map(|action| action.answer).find(|answer| answer.option_id.is_none())
    };
    let edited = response.meta.as_ref().and_then(|meta| meta["plexus"]["edited"].as_str()).map(str::to_owned);
    let chosen = |id: String| {
        let answer = match (own(&id).and_then(own_answer), request.kind) {
            (Some(answer), _) => answer,
            (None, RequestType::Prompt) if id == AS_PROPOSED => {
                Answer { value: Some(request.default_value.clone()), ..Answer::default() }
            }
            (None, RequestType::Pick) => Answer { ids: Some(vec![id]), ..Answer::default() },
            (None, _) => Answer { option_id: Some(id), edited: edited.clone(), ..Answer::default() },
        };
        Reply::Answer(Box::new(answer))
    };
    match (response.outcome, response.action.as_deref()) {
        (Some(Outcome { outcome, option_id: Some(id) }), _)
            if outcome == "selected" && own(&id) == Some(AnswerRole::Later) =>
        {
            Ok(Reply::Deferred)
        }
        (Some(Outcome { outcome, option_id: Some(id) }), _) if outcome == "selected" => Ok(chosen(id)),
        (Some(Outcome { outcome, .. }), _) if outcome == "cancelled" => Ok(Reply::NoAnswer),
        (Some(Outcome { outcome, .. }), _) => {
            Err(format!("an outcome is `selected` with an `optionId`, or `cancelled`; not {outcome:?}"))
        }
        (None, Some("accept")) => {
            filled(request, response.content.unwrap_or_default()).map(|answer| Reply::Answer(Box::new(answer)))
        }
        (None, Some("decline")) => Ok(chosen(match request.kind {
            RequestType::Elicitation => "decline".into(),
            _ => own_id(AnswerRole::Skip),
        })),
        (None, Some("cancel")) => Ok(Reply::NoAnswer),
        (None, _) => Err("not an answer: `outcome` or `action` is missing".into()),
    }
}

/// Reads a completed form.
fn filled(request: &Request, content: Map<String, Value>) -> Result<Answer, String> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let one = match content.len() {
        1 => content.values().next(),
        _ => None,
    };
    match (request.kind, one) {
        (RequestType::Elicitation | RequestType::Confirm | RequestType::Permission, _) => {
            Ok(Answer { option_id: Some("accept".into()), ..Answer::default() })
        }
        (RequestType::Pick, Some(Value::Array(ids))) => {
            Ok(Answer { ids: Some(ids.iter().map(plain).collect()), ..Answer::default() })
        }
        (RequestType::Pick, Some(id)) => Ok(Answer { ids: Some(vec![plain(id)]), ..Answer::default() }),
        (RequestType::Pick, None) => Ok(Answer { ids: Some(Vec::new()), ..Answer::default() }),
        (RequestType::Prompt, one) => {
            // The answer to a form of several fields is a JSON object.
            let text = match one.filter(|_| field_count(request) <= 1) {
                Some(value) => plain(value),
                None => Value::Object(content).to_string(),
            };
            Ok(Answer { value: Some(Some(text)), ..Answer::default() })
        }
    }
}

/// Returns the number of fields of the agent's form; one for a form of the gateway.
fn field_count(request: &Request) -> usize {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Native {
        requested_schema: Schema,
    }
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: Map<String, Value>,
    }
    let native = request.native.as_deref().and_then(|native| serde_json::from_str::<Native>(native.get()).ok());
    native.map_or(1, |native| native.requested_schema.properties.len())
}
