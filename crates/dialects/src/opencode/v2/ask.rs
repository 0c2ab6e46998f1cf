//! Questions: permissions and forms, and their answers. One file: the question decides the meaning of an answer.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::super::acp::elicitation::{self, ElicitationForm};
use super::super::super::jsonrpc::{member, object, slice, to_raw};
use super::super::super::{
    AgentRequest, AnsweredElsewhere, EventDraft, HttpReply, Outbox, RequestKey, RequestSubject, RuntimeEvent, held,
    subject,
};
use super::super::ask::{self, AnswerRoute, NO_LONGER_OPEN, PermissionReply, SPREAD, WAITS, count_waits};
use super::super::{ANOTHER, STEP_TIME, escape, refused, reply_body};
use super::{Frame, OpenCode2, Pending, path};
use plexus_protocol::{Decision, NativeId};

/// The suffix of the companion field that takes free text.
const FREE_TEXT: &str = "_custom";

/// A question that waits for its answer, or for the outcome of it.
pub(super) struct PendingRequest {
    /// The session; `None` for a form without one.
    pub(super) native: Option<NativeId>,
    kind: RequestKind,
    /// `true` if the user sees the question, because it is not above the limit of its session.
    pub(super) displayed: bool,
    /// An answer that may not have arrived.
    pub(super) answer: Option<Answer>,
    /// `true` if the question came since the last re-read began.
    pub(super) fresh: bool,
    /// Another client's answer, as the stream reported it.
    replied: Option<Option<String>>,
    /// The number of waits left for the stream to report who was first, if the gateway's answer came too late.
    lost: Option<u8>,
}

enum RequestKind {
    Permission,
    Form {
        /// OpenCode's owner of the form: `global`, or a session.
        owner: String,
        form: ElicitationForm,
        /// The form as an elicitation.
        params: Box<RawValue>,
    },
}

/// An answer to send.
#[derive(Clone)]
pub(super) enum Answer {
    /// The answer to a permission.
    Permission(PermissionReply),
    /// The answer to a form.
    Filled(Value),
    /// The dismissal of a form.
    Dismissed,
}

#[derive(Deserialize)]
struct Form<'a> {
    id: String,
    #[serde(rename = "sessionID")]
    session: String,
    title: Option<String>,
    #[serde(borrow, default)]
    fields: Vec<&'a RawValue>,
    url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    key: String,
    #[serde(rename = "type")]
    type_name: String,
    title: Option<String>,
    description: Option<String>,
    required: Option<bool>,
    when: Option<serde::de::IgnoredAny>,
    options: Option<Vec<FieldOption>>,
    custom: Option<bool>,
    default: Option<Value>,
    format: Option<String>,
    pattern: Option<String>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
}

#[derive(Deserialize)]
struct FieldOption {
    value: String,
    label: String,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Source {
    #[serde(alias = "callID")]
    id: Option<String>,
}

/// Returns a field as a property of a schema, and its companion for free text.
fn property(field: &Field) -> Vec<(String, Value)> {
    let mut property = serde_json::Map::new();
    let options: Vec<Value> = field
        .options
        .iter()
        .flatten()
        .map(|option| {
            let mut choice = serde_json::json!({ "const": option.value, "title": option.label });
            if let Some(text) = &option.description {
                choice["description"] = text.as_str().into();
            }
            choice
        })
        .collect();
    let chooses = !options.is_empty();
    match field.type_name.as_str() {
        "multiselect" => {
            property.insert("type".into(), "array".into());
            property.insert("items".into(), serde_json::json!({ "anyOf": options }));
        }
        type_name => {
            property.insert("type".into(), type_name.into());
            if chooses {
                property.insert("oneOf".into(), options.into());
            }
        }
    }
    let named: [(&str, Option<Value>); 11] = [
        ("title", field.title.clone().map(Value::from)),
        ("description", field.description.clone().map(Value::from)),
        ("default", field.default.clone()),
        ("format", field.format.clone().map(Value::from)),
        ("pattern", field.pattern.clone().map(Value::from)),
        ("minLength", field.min_length.map(Value::from)),
        ("maxLength", field.max_length.map(Value::from)),
        ("minimum", field.minimum.map(Value::from)),
        ("maximum", field.maximum.map(Value::from)),
        ("minItems", field.min_items.map(Value::from)),
        ("maxItems", field.max_items.map(Value::from)),
    ];
    property.extend(named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let mut all = vec![(field.key.clone(), Value::Object(property))];
    if chooses && field.custom == Some(true) {
        all.push((format!("{}{FREE_TEXT}", field.key), serde_json::json!({ "type": "string" })));
    }
    all
}

/// Returns a form as an elicitation, which every client can show; `None` if it cannot be read.
fn elicitation(form: &Form<'_>) -> Option<Box<RawValue>> {
    let title = form.title.clone().unwrap_or_default();
    if let (Some(url), true) = (&form.url, form.fields.is_empty()) {
        return Some(to_raw(
            &serde_json::json!({ "mode": "url", "message": title, "url": url, "elicitationId": form.id }),
        ));
    }
    let fields: Vec<Field> = form.fields.iter().map(|raw| object(raw)).collect::<Option<_>>()?;
    // A conditional field is optional; OpenCode refuses the answer if it was required.
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required == Some(true) && field.when.is_none() && field.custom != Some(true))
        .map(|field| field.key.as_str())
        .collect();
    // The properties are in the order of the form, which a JSON map would not preserve.
    let mut properties = String::new();
    for (name, property) in fields.iter().flat_map(property) {
        let comma = if properties.is_empty() { "" } else { "," };
        write!(properties, "{comma}{}:{property}", Value::from(name)).ok()?;
    }
    let text = format!(
        r#"{{"mode":"form","message":{},"requestedSchema":{{"type":"object","properties":{{{properties}}},"required":{}}}}}"#,
        Value::from(title),
        Value::from(required),
    );
    RawValue::from_string(text).ok()
}

/// Returns the answer in OpenCode's form: free text is in the field itself.
fn own_form_answer(content: serde_json::Map<String, Value>) -> Value {
    let (own, mut answer): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
        content.into_iter().partition(|(name, _)| name.ends_with(FREE_TEXT));
    for (name, value) in own {
        let field = name.trim_end_matches(FREE_TEXT);
        match answer.get_mut(field) {
            Some(Value::Array(chosen)) => chosen.push(value),
            _ => {
                answer.insert(field.to_owned(), value);
            }
        }
    }
    Value::Object(answer)
}

impl OpenCode2 {
    /// Handles a question that the stream reports.
    pub(super) fn question_received(
        &mut self,
        native: Option<&NativeId>,
        frame: &Bytes,
        event: &Frame<'_>,
        out: &mut Outbox,
    ) {
        let read = event.data.and_then(|data| match event.kind.as_str() {
            "form.created" => self.read_form(native, frame, member(data, "form")?),
            _ => self.read_permission(native, frame, data),
        });
        match read {
            Some((ask, kind)) => self.show(native, ask, kind, out),
            None => {
                let draft = EventDraft::raw(frame.clone(), "a question that could not be parsed");
                out.events.push(RuntimeEvent::Event { native: native.cloned(), draft });
            }
        }
    }

    fn read_permission(
        &self,
        native: Option<&NativeId>,
        bytes: &Bytes,
        raw: &RawValue,
    ) -> Option<(AgentRequest, RequestKind)> {
        let (mut ask, _) = ask::permission(bytes, raw, &[AnswerRoute::Api])?.asks.pop()?;
        let source = member(raw, "source").and_then(object::<Source>);
        let tool = source.and_then(|source| source.id);
        // The tool call that waits for the answer has the exact action.
        let tools = native.and_then(|native| Some(&self.sessions.get(native)?.progress.tools));
        let call = tool.as_ref().and_then(|id| tools?.get(id)?.input.as_deref());
        match call.and_then(subject::input) {
            Some(read) => ask.subject = read,
            None => {
                if let (Some(call), RequestSubject::Tool { arguments, .. }) = (call, &mut ask.subject) {
                    arguments.push('\n');
                    arguments.push_str(call.get());
                }
            }
        }
        ask.tool_call_id = tool.or(ask.tool_call_id);
        Some((ask, RequestKind::Permission))
    }

    fn read_form(
        &self,
        native: Option<&NativeId>,
        bytes: &Bytes,
        raw: &RawValue,
    ) -> Option<(AgentRequest, RequestKind)> {
        let read: Form<'_> = object(raw)?;
        let params = elicitation(&read)?;
        let form = elicitation::parse_form(&params)?;
        let key = RequestKey::unique(read.id.as_str());
        let ask = elicitation::ask(&key, &form, &params, bytes.clone());
        let owner = native.map_or(read.session, |native| native.as_str().to_owned());
        Some((ask, RequestKind::Form { owner, form, params }))
    }

    /// Shows a question to the user, unless it was shown already.
    fn show(&mut self, native: Option<&NativeId>, ask: AgentRequest, kind: RequestKind, out: &mut Outbox) {
        let key = ask.key.clone();
        if self.closed.contains(&key) {
            return;
        }
        if let Some(question) = self.asks.get_mut(&key) {
            question.fresh = true;
            return;
        }
        let session = native.and_then(|native| self.sessions.get_mut(native));
        // The user sees it from an earlier gateway process.
        let early = session.and_then(|session| session.carried.found(&key));
        let known = early.is_some();
        // In the order in which they were asked.
        let displayed = known || (!self.held.waits(native) && self.has_capacity(native));
        let native = native.cloned();
        let question = PendingRequest {
            native: native.clone(),
            kind,
            displayed,
            answer: None,
            fresh: true,
            replied: None,
            lost: None,
        };
        self.asks.insert(key.clone(), question);
        if !displayed {
            return self.held.push(native, ask);
        }
        if known {
            if let Some(decision) = early.flatten() {
                self.answer(&key, decision, out);
            }
            return;
        }
        let native = native.as_ref();
        out.events.push(RuntimeEvent::Asked { native: native.cloned(), ask: Box::new(ask) });
    }

    fn has_capacity(&self, native: Option<&NativeId>) -> bool {
        let open = || self.asks.values().filter(|question| question.displayed && question.answer.is_none());
        held::has_capacity(open().filter(|question| question.native.as_ref() == native).count(), open().count())
    }

    /// Shows the questions that were held back by the limit of open questions, and removes closed ones.
    pub(super) fn open_held(&mut self, out: &mut Outbox) {
        let mut held = std::mem::take(&mut self.held);
        held.retain(|ask| {
            self.asks.get(&ask.key).is_some_and(|question| !question.displayed && question.answer.is_none())
        });
        while let Some((native, ask)) = held.next(|native| self.has_capacity(native)) {
            if let Some(question) = self.asks.get_mut(&ask.key) {
                question.displayed = true;
                out.events.push(RuntimeEvent::Asked { native, ask: Box::new(ask) });
            }
        }
        self.held = held;
    }

    /// Sends a decision to OpenCode.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: Decision, out: &mut Outbox) {
        let Some(question) = self.asks.get_mut(key) else {
            return self.sessions.values_mut().for_each(|session| session.carried.decide(key, &decision));
        };
        if question.answer.is_some() {
            return;
        }
        let withdrawn = matches!(decision, Decision::Withdrawn);
        let answer = match (&question.kind, decision) {
            (RequestKind::Permission, decision) => Answer::Permission(PermissionReply::new(&decision)),
            (RequestKind::Form { form: ElicitationForm::Form(fields), .. }, decision) => {
                match elicitation::filled(fields, &decision) {
                    Ok(Some(content)) => Answer::Filled(own_form_answer(content)),
                    Ok(None) => Answer::Dismissed,
                    Err(reason) => return self.ask_again(key, &reason, &decision, out),
                }
            }
            (RequestKind::Form { .. }, Decision::Option { id, .. }) if id == "accept" => {
                Answer::Filled(serde_json::json!({}))
            }
            (RequestKind::Form { .. }, _) => Answer::Dismissed,
        };
        let session = question.native.as_ref().and_then(|native| self.sessions.get_mut(native));
        if let Answer::Permission(reply) = &answer
            && let (Some(spread), Some(session)) = (reply.spread(), session)
        {
            session.spread = Some(spread);
            session.progress.withdrawn |= withdrawn;
        }
        question.answer = Some(answer);
        self.send_answer(key, false, out);
    }

    /// Opens a form again with the reason why the answer does not fit.
    fn ask_again(&mut self, key: &RequestKey, reason: &str, decision: &Decision, out: &mut Outbox) {
        let Some(question) = self.asks.get_mut(key) else { return };
        let RequestKind::Form { form, params, .. } = &question.kind else { return };
        question.answer = None;
        let ask = elicitation::ask_again(key, form, params, reason, decision);
        out.events.push(RuntimeEvent::Asked { native: question.native.clone(), ask: Box::new(ask) });
    }

    /// Sends an answer; if `older`, by the route of the first releases.
    fn send_answer(&mut self, key: &RequestKey, older: bool, out: &mut Outbox) {
        if !self.connected {
            // The re-read after the next connection sends it, if it is still needed.
            return;
        }
        let Some(PendingRequest { native, kind, answer: Some(answer), .. }) = self.asks.get(key) else { return };
        let id = escape(key.id());
        let owner = match kind {
            RequestKind::Form { owner, .. } => owner.clone(),
            RequestKind::Permission => native.as_ref().map(|native| native.as_str().to_owned()).unwrap_or_default(),
        };
        let at = |rest: String| path(&NativeId::from(owner.as_str()), &rest);
        let (method, path, body) = match answer {
            Answer::Permission(answer) => {
                ("POST", at(format!("/permission/{id}/reply")), Some(serde_json::json!(answer)))
            }
            Answer::Filled(answer) => {
                ("POST", at(format!("/form/{id}/reply")), Some(serde_json::json!({ "answer": answer })))
            }
            Answer::Dismissed if older => ("POST", at(format!("/form/{id}/cancel")), Some(serde_json::json!({}))),
            Answer::Dismissed => ("DELETE", at(format!("/form/{id}")), None),
        };
        self.send(Pending::Answer { key: key.clone(), older }, method, path, body.as_ref(), out);
    }

    /// Handles the reply to an answer.
    pub(super) fn answered(
        &mut self,
        key: &RequestKey,
        older: bool,
        reply: &Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let Some(question) = self.asks.get_mut(key) else { return };
        // The answer may have arrived or not: the next re-read shows it.
        let Ok(reply) = reply else { return };
        let page = reply.body.trim_ascii_start().first() == Some(&b'<');
        let text = String::from_utf8_lossy(&reply.body);
        let dismissed = matches!(question.answer, Some(Answer::Dismissed));
        match reply.status {
            200 | 204 if !page => {
                self.asks.remove(key);
                self.closed.insert(key.clone());
            }
            404 | 409 | 410 if text.contains("Error") => {
                // Another client was first.
                if question.replied.is_some() {
                    return self.answer_lost(key, ANOTHER, out);
                }
                question.lost = Some(WAITS);
                out.wake_after = Some(STEP_TIME);
            }
            200 | 404 | 405 if dismissed && !older => self.send_answer(key, true, out),
            400 | 422 if matches!(question.kind, RequestKind::Form { .. }) && !dismissed => {
                let reason = format!("OpenCode does not accept that: {}", refused(reply));
                self.ask_again(key, &reason, &Decision::Value(None), out);
            }
            _ => {
                let native = question.native.clone();
                self.asks.remove(key);
                self.closed.insert(key.clone());
                let kind = format!("OpenCode did not accept the answer: {}", refused(reply));
                out.events
                    .push(RuntimeEvent::Event { native, draft: EventDraft::error("answer_not_taken", &kind, None) });
            }
        }
    }

    /// Handles an answer like [`replied`](Self::replied), if the stream names the question.
    pub(super) fn replied_to(&mut self, question: Option<String>, option: Option<String>, out: &mut Outbox) {
        if let Some(id) = question {
            self.replied(&RequestKey::unique(id), option, out);
        }
    }

    /// Handles an answer that the stream reports.
    pub(super) fn replied(&mut self, key: &RequestKey, option: Option<String>, out: &mut Outbox) {
        let Some(question) = self.asks.get_mut(key) else { return self.closed.insert(key.clone()) };
        question.replied = Some(option);
        if question.answer.is_none() {
            let session = question.native.as_ref().and_then(|native| self.sessions.get(native));
            let own_reply = session.and_then(|session| session.spread);
            let by = match (&question.replied, own_reply) {
                (Some(Some(reply)), Some(own_reply)) if reply == own_reply => SPREAD,
                _ => ANOTHER,
            };
            self.answer_lost(key, by, out);
        } else if question.lost.is_some() {
            self.answer_lost(key, ANOTHER, out);
        }
    }

    /// Handles an answer of another client that was first.
    fn answer_lost(&mut self, key: &RequestKey, by: &str, out: &mut Outbox) {
        let Some(question) = self.asks.remove(key) else { return };
        self.closed.insert(key.clone());
        let elsewhere = AnsweredElsewhere { by: by.into(), option_id: question.replied.flatten() };
        let (native, key) = (question.native, key.clone());
        out.events.push(match question.answer {
            Some(_) => RuntimeEvent::AnswerLost { native, key, elsewhere },
            None => RuntimeEvent::TakenBack { native, key, elsewhere: Some(elsewhere) },
        });
    }

    /// Reports answers that came too late, if the stream did not report who was first.
    pub(super) fn report_late_losses(&mut self, out: &mut Outbox) {
        for key in count_waits(self.asks.iter_mut().map(|(key, question)| (key, &mut question.lost)), out) {
            self.answer_lost(&key, NO_LONGER_OPEN, out);
        }
    }

    /// Closes the questions of a run that has ended.
    pub(super) fn take_back_all(&mut self, native: &NativeId, out: &mut Outbox) {
        let is_pending =
            |question: &PendingRequest| question.native.as_ref() == Some(native) && question.lost.is_none();
        let keys: Vec<RequestKey> =
            self.asks.iter().filter(|(_, question)| is_pending(question)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let open = self.asks.remove(&key).is_some_and(|question| question.answer.is_none());
            self.closed.insert(key.clone());
            if open {
                out.events.push(RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere: None });
            }
        }
    }

    pub(super) fn permissions_read(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        self.listed(native, reply, false, out);
    }

    pub(super) fn forms_read(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        if !self.listed(native, reply, true, out) {
            return;
        }
        // Questions of an earlier gateway that OpenCode no longer waits for.
        let Some(session) = self.sessions.get_mut(native) else { return };
        let busy = session.busy;
        for (key, decided) in session.carried.drain() {
            if decided {
                // Presumably the answer of the earlier gateway process arrived.
                self.closed.insert(key);
                continue;
            }
            let elsewhere = busy.then(|| AnsweredElsewhere { by: ANOTHER.into(), option_id: None });
            self.closed.insert(key.clone());
            out.events.push(RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere });
        }
    }

    /// Handles a session's questions that were read: shows new ones, and closes those that are not listed. Returns
    /// `false` if the read failed: then nothing is closed.
    fn listed(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, forms: bool, out: &mut Outbox) -> bool {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
        }
        let list = reply_body(reply).and_then(|body| Some((body, serde_json::from_slice::<List<'_>>(body).ok()?.data)));
        let Some((body, list)) = list else { return false };
        for raw in list {
            let bytes = slice(body, raw);
            let read = match forms {
                true => self.read_form(Some(native), &bytes, raw),
                false => self.read_permission(Some(native), &bytes, raw),
            };
            match read {
                Some((ask, kind)) => self.show(Some(native), ask, kind, out),
                None => {
                    let draft = EventDraft::raw(bytes, "a question that could not be parsed");
                    out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
                }
            }
        }
        let sent = |key: &RequestKey| {
            self.pending.values().any(|pending| matches!(pending, Pending::Answer { key: sent, .. } if sent == key))
        };
        let is_match = |question: &PendingRequest| {
            question.native.as_ref() == Some(native)
                && matches!(question.kind, RequestKind::Form { .. }) == forms
                && question.lost.is_none()
        };
        let (listed_again, removed): (Vec<_>, Vec<_>) =
            self.asks.iter().filter(|(_, question)| is_match(question)).partition(|(_, question)| question.fresh);
        let keys = |asks: Vec<(&RequestKey, &PendingRequest)>| {
            asks.into_iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        let again: Vec<_> =
            listed_again.into_iter().filter(|(key, question)| question.answer.is_some() && !sent(key)).collect();
        let (again, removed) = (keys(again), keys(removed));
        // An answer that may be lost is sent again.
        for key in again {
            self.send_answer(&key, false, out);
        }
        for key in removed {
            if self.asks.get(&key).is_some_and(|question| question.answer.is_some()) {
                // Presumably the answer arrived before the connection was lost.
                self.asks.remove(&key);
                self.closed.insert(key);
            } else {
                self.answer_lost(&key, ANOTHER, out);
            }
        }
        true
    }
}
