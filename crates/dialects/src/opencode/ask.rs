//! Questions: permissions and OpenCode's own `question` tool, in each generation of its API, and their answers. One file: the question
//! decides the meaning of an answer.

use std::collections::{BTreeMap, HashSet, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{object, owned, pretty};
use super::super::{
    AgentRequest, AnsweredElsewhere, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, RequestSubject,
    RuntimeEvent, held, subject,
};
use super::{OpenCode, Pending, STEP_TIME, escape, in_folder, refused};
use plexus_protocol::{Choice, Decision, Item, NativeId, Offer, RequestType};

/// Maximum number of stored closed questions; above it the first is removed, and could be asked again by a re-read.
const CLOSED_MAX: usize = 4096;
/// The author of an answer if it is unknown whether there was one.
pub(super) const NO_LONGER_OPEN: &str = "nobody: OpenCode no longer waits for it";
/// Number of waits for the stream to report who answered first. Two, since the first one may already be running.
pub(super) const WAITS: u8 = 2;
/// The reason that is sent if there was no decision.
const EXPIRED: &str = "expired, not a user decision";

/// The route of an answer to a permission, of which OpenCode has had three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerRoute {
    /// The route `POST /permission/{id}/reply`.
    Reply,
    /// The route `POST /session/{session}/permissions/{id}`, which has no reason.
    Session,
    /// The route `POST /api/session/{session}/permission/{id}/reply`.
    Api,
}

/// A question that waits for its answer, or for the outcome of it.
pub(super) struct PendingRequest {
    pub(super) native: NativeId,
    pub(super) kind: RequestKind,
    /// `true` if the user sees the question, because it is not above the limit of its session.
    pub(super) displayed: bool,
    /// An answer that may not have arrived.
    pub(super) answer: Option<PendingAnswer>,
    /// `true` if the question came since the last re-read began.
    pub(super) fresh: bool,
    /// Another client's answer, as the stream reported it.
    pub(super) replied: Option<Option<String>>,
    /// The number of waits left for the stream to report who was first, if the gateway's answer came too late.
    pub(super) lost: Option<u8>,
}

/// The type of a question.
#[derive(Clone)]
pub(super) enum RequestKind {
    /// A permission, with the routes to try.
    Permission(Vec<AnswerRoute>),
    /// One of several questions that are answered together: the group's id, and their number.
    Question { group: String, count: usize },
}

/// An answer to send.
#[derive(Clone)]
pub(super) enum PendingAnswer {
    /// The answer to a permission.
    Permission(PermissionReply),
    /// The answer to one question.
    Picked(Vec<String>),
    /// The rejection of a question.
    Rejected,
}

/// An answer to a permission.
#[derive(Clone, Serialize)]
pub(super) struct PermissionReply {
    pub(super) reply: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl PermissionReply {
    pub(super) fn new(decision: &Decision) -> Self {
        match decision {
            Decision::Option { id, .. } if id == "once" => Self { reply: "once", message: None },
            Decision::Option { id, .. } if id == "always" => Self { reply: "always", message: None },
            Decision::Option { reason, .. } => Self { reply: "reject", message: reason.clone() },
            // After a rejection with a reason the agent continues; without one its turn ends.
            Decision::Expired => Self { reply: "reject", message: Some(EXPIRED.to_owned()) },
            _ => Self { reply: "reject", message: None },
        }
    }

    /// Returns the answer if OpenCode may also apply it to other questions of the session.
    pub(super) fn spread(&self) -> Option<&'static str> {
        Some(self.reply).filter(|reply| *reply != "once")
    }
}

#[derive(Deserialize)]
struct Permission<'a> {
    id: String,
    #[serde(rename = "sessionID")]
    session: String,
    #[serde(alias = "action", alias = "type")]
    permission: Option<String>,
    #[serde(borrow, alias = "resources", alias = "pattern")]
    patterns: Option<&'a RawValue>,
    title: Option<String>,
    metadata: Option<&'a RawValue>,
    #[serde(borrow, alias = "save")]
    always: Option<&'a RawValue>,
    #[serde(borrow, alias = "source")]
    tool: Option<&'a RawValue>,
    #[serde(rename = "messageID")]
    message: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
}

#[derive(Deserialize)]
struct ToolRef {
    #[serde(rename = "messageID")]
    message: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    filepath: Option<String>,
    diff: Option<String>,
}

#[derive(Deserialize)]
struct Questions<'a> {
    id: String,
    #[serde(rename = "sessionID")]
    session: String,
    #[serde(borrow)]
    questions: Vec<&'a RawValue>,
    tool: Option<ToolRef>,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    header: Option<String>,
    #[serde(default)]
    options: Vec<QuestionOption>,
    multiple: Option<bool>,
    custom: Option<bool>,
}

#[derive(Deserialize)]
struct QuestionOption {
    label: String,
    description: Option<String>,
}

/// Parsed questions: their session, their message, and the requests.
pub(super) struct ParsedRequests {
    pub(super) native: NativeId,
    pub(super) message: Option<String>,
    pub(super) asks: Vec<(AgentRequest, RequestKind)>,
}

/// Parses a permission. `routes` are in the order in which they are tried.
pub(super) fn permission(native: &Bytes, raw: &RawValue, routes: &[AnswerRoute]) -> Option<ParsedRequests> {
    let question: Permission<'_> = object(raw)?;
    let tool = question.tool.and_then(object::<ToolRef>);
    let (message, call) = tool.map_or((question.message, question.call), |tool| (tool.message, tool.call));
    let type_name = question.permission.unwrap_or_else(|| "permission".into());
    let patterns = question.patterns.map(strings).unwrap_or_default();
    let always = question.always.map(strings).unwrap_or_default();
    let subject = match (question.metadata.and_then(subject::input), question.metadata.and_then(object::<Metadata>)) {
        (Some(command @ RequestSubject::Command { .. }), _) if type_name == "bash" => command,
        (_, Some(Metadata { filepath: Some(path), diff: Some(diff) })) => RequestSubject::Diff { path, diff },
        (Some(subject @ (RequestSubject::Fetch { .. } | RequestSubject::Edits(_))), _) => subject,
        _ if type_name == "bash" || question.metadata.is_none_or(subject::may_run) => RequestSubject::Unreadable {
            reason: "it has no command that can be identified with certainty",
            raw: pretty(raw.get()),
        },
        _ => RequestSubject::Tool { name: type_name.clone(), arguments: pretty(raw.get()) },
    };
    let title = question.title.unwrap_or_else(|| match patterns.as_slice() {
        [] => type_name.clone(),
        patterns => format!("{type_name}: {}", patterns.join(", ")),
    });
    let offer = |id: &str, label: String, kind| Offer { id: id.into(), label, kind, for_session: false };
    let remember = match always.as_slice() {
        [] => "Allow always".to_owned(),
        patterns => format!("Allow always: {}", patterns.join(", ")),
    };
    let options = vec![
        offer("once", "Allow once".into(), Choice::AllowOnce),
        offer("always", remember, Choice::AllowAlways),
        offer("reject", "Reject".into(), Choice::RejectOnce),
    ];
    let ask = AgentRequest {
        kind: RequestType::Permission,
        options,
        // The oldest route has no reason.
        allow_reason: routes.first() != Some(&AnswerRoute::Session),
        tool_call_id: call,
        subject,
        ..plain(RequestKey::unique(question.id), title, native, raw)
    };
    let asks = vec![(ask, RequestKind::Permission(routes.to_vec()))];
    Some(ParsedRequests { native: question.session.as_str().into(), message, asks })
}

/// Parses a set of questions: a choice for each, or a text prompt if there are no options.
pub(super) fn questions(native: &Bytes, raw: &RawValue) -> Option<ParsedRequests> {
    let set: Questions<'_> = object(raw)?;
    let count = set.questions.len();
    let (message, call) = set.tool.map_or((None, None), |tool| (tool.message, tool.call));
    let mut asks = Vec::with_capacity(count);
    for (index, raw) in set.questions.iter().enumerate() {
        let question: Question = object(raw)?;
        let kind = RequestKind::Question { group: set.id.clone(), count };
        let mut text = question.question.clone();
        if question.custom != Some(false) && !question.options.is_empty() {
            text.push_str("\n(To answer with your own text, use OpenCode itself.)");
        }
        if count > 1 {
            text.push_str(&format!("\n({} of {count}: the agent continues when all are answered.)", index + 1));
        }
        let title = question.header.filter(|header| !header.is_empty()).unwrap_or_else(|| question.question.clone());
        let ask = AgentRequest {
            kind: if question.options.is_empty() { RequestType::Prompt } else { RequestType::Pick },
            message: Some(text.clone()),
            subject: RequestSubject::Text(text),
            items: items(&question.options),
            multi: question.multiple == Some(true),
            tool_call_id: call.clone(),
            ..plain(question_key(&set.id, index), title, native, raw)
        };
        asks.push((ask, kind));
    }
    Some(ParsedRequests { native: set.session.as_str().into(), message, asks })
}

fn question_key(group: &str, index: usize) -> RequestKey {
    RequestKey::unique(format!("{group}#{index}"))
}

/// Returns the options as items. The labels serve as ids: OpenCode expects labels back, and its options are unique.
fn items(options: &[QuestionOption]) -> Vec<Item> {
    let mut seen = HashSet::new();
    let item = |option: &QuestionOption| Item {
        id: option.label.clone(),
        label: option.label.clone(),
        detail: option.description.clone().filter(|text| !text.is_empty()),
    };
    options.iter().filter(|option| seen.insert(option.label.as_str())).map(item).collect()
}

fn plain(key: RequestKey, title: String, native: &Bytes, raw: &RawValue) -> AgentRequest {
    AgentRequest::new(key, RequestType::Permission, title, owned(raw), native.clone())
}

/// Reads a list of texts, or one text.
fn strings(raw: &RawValue) -> Vec<String> {
    serde_json::from_str::<Vec<String>>(raw.get())
        .or_else(|_| serde_json::from_str::<String>(raw.get()).map(|one| vec![one]))
        .unwrap_or_default()
}

/// OpenCode's reply to an answer.
enum AnswerOutcome {
    /// OpenCode accepted the answer.
    Taken,
    /// Another client was first.
    Late,
    /// The route does not exist.
    NoRoute,
    /// Another error, with a message.
    Refused(String),
}

fn answer_outcome(reply: &HttpReply) -> AnswerOutcome {
    let text = String::from_utf8_lossy(&reply.body);
    match reply.status {
        204 => AnswerOutcome::Taken,
        200 if matches!(text.trim(), "true" | "false") => AnswerOutcome::Taken,
        // The web page of OpenCode answers every unknown route.
        200 | 405 => AnswerOutcome::NoRoute,
        404 if text.contains("NotFoundError") => AnswerOutcome::Late,
        404 => AnswerOutcome::NoRoute,
        _ => AnswerOutcome::Refused(refused(reply)),
    }
}

/// The questions shown by an earlier gateway process, until it is known whether OpenCode still waits for them. The user
/// may answer one before it was read again: the decision is stored until then.
#[derive(Default)]
pub(super) struct CarriedAsks(BTreeMap<RequestKey, Option<Decision>>);

impl CarriedAsks {
    pub(super) fn new(keys: &[RequestKey]) -> Self {
        Self(keys.iter().map(|key| (key.clone(), None)).collect())
    }

    /// Stores the first decision on a question, if it is one of these.
    pub(super) fn decide(&mut self, key: &RequestKey, decision: &Decision) {
        if let Some(kept) = self.0.get_mut(key) {
            kept.get_or_insert_with(|| decision.clone());
        }
    }

    /// Removes a question that OpenCode still waits for, and returns its decision; `None` if it is not one of these.
    pub(super) fn found(&mut self, key: &RequestKey) -> Option<Option<Decision>> {
        self.0.remove(key)
    }

    /// Removes all questions, because OpenCode no longer waits for them. Returns each with whether it was decided.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RequestKey, bool)> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(key, decision)| (key, decision.is_some()))
    }
}

/// Closed questions, which are not asked again.
#[derive(Default)]
pub(super) struct ClosedRequests {
    keys: HashSet<RequestKey>,
    order: VecDeque<RequestKey>,
}

impl ClosedRequests {
    pub(super) fn contains(&self, key: &RequestKey) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn insert(&mut self, key: RequestKey) {
        if self.keys.insert(key.clone()) {
            self.order.push_back(key);
        }
        while self.order.len() > CLOSED_MAX {
            if let Some(old) = self.order.pop_front() {
                self.keys.remove(&old);
            }
        }
    }
}

/// Counts a wait for the stream to report who answered first. Returns the questions whose waits are over.
pub(super) fn count_waits<'a>(
    lost: impl Iterator<Item = (&'a RequestKey, &'a mut Option<u8>)>,
    out: &mut Outbox,
) -> Vec<RequestKey> {
    let mut late = Vec::new();
    for (key, waits) in lost {
        match waits {
            Some(waits @ 2..) => {
                *waits -= 1;
                out.wake_after = Some(STEP_TIME);
            }
            Some(_) => late.push(key.clone()),
            None => {}
        }
    }
    late
}

impl OpenCode {
    /// Shows questions to the user, unless they were shown already.
    pub(super) fn ask(&mut self, read: ParsedRequests, out: &mut Outbox) {
        for (ask, kind) in read.asks {
            if self.asks.contains_key(&ask.key) || self.closed.contains(&ask.key) {
                continue;
            }
            if let Some(early) = self.sessions.get_mut(&read.native).and_then(|session| session.carried.found(&ask.key))
            {
                // The user sees it from an earlier gateway process.
                self.asks.insert(ask.key.clone(), PendingRequest::new(read.native.clone(), kind));
                if let Some(decision) = early {
                    self.answer(&ask.key, &decision, out);
                }
                continue;
            }
            // In the order in which they were asked.
            let displayed = !self.held.waits(Some(&read.native)) && self.has_capacity(Some(&read.native));
            let question = PendingRequest { displayed, ..PendingRequest::new(read.native.clone(), kind) };
            self.asks.insert(ask.key.clone(), question);
            if !displayed {
                self.held.push(Some(read.native.clone()), ask);
                continue;
            }
            let event = RuntimeEvent::Asked { native: Some(read.native.clone()), ask: Box::new(ask) };
            self.emit(&read.native, event, out);
        }
    }

    fn has_capacity(&self, native: Option<&NativeId>) -> bool {
        let open = || self.asks.values().filter(|question| question.displayed && question.answer.is_none());
        held::has_capacity(open().filter(|question| Some(&question.native) == native).count(), open().count())
    }

    /// Shows the questions that were held back by the limit of open questions, and removes closed ones.
    pub(super) fn open_held(&mut self, out: &mut Outbox) {
        let mut held = std::mem::take(&mut self.held);
        held.retain(|ask| {
            self.asks.get(&ask.key).is_some_and(|question| !question.displayed && question.answer.is_none())
        });
        while let Some((native, ask)) = held.next(|native| self.has_capacity(native)) {
            if let (Some(question), Some(session)) = (self.asks.get_mut(&ask.key), native.clone()) {
                question.displayed = true;
                self.emit(&session, RuntimeEvent::Asked { native, ask: Box::new(ask) }, out);
            }
        }
        self.held = held;
    }

    /// Sends a decision to OpenCode.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outbox) {
        let Some(question) = self.asks.get_mut(key) else {
            return self.sessions.values_mut().for_each(|session| session.carried.decide(key, decision));
        };
        if question.answer.is_some() {
            return;
        }
        let answer = match (&question.kind, decision) {
            (RequestKind::Permission(_), _) => PendingAnswer::Permission(PermissionReply::new(decision)),
            (RequestKind::Question { .. }, Decision::Ids(ids)) if !ids.is_empty() => PendingAnswer::Picked(ids.clone()),
            (RequestKind::Question { .. }, Decision::Value(Some(text))) => PendingAnswer::Picked(vec![text.clone()]),
            (RequestKind::Question { .. }, _) => PendingAnswer::Rejected,
        };
        if let PendingAnswer::Permission(reply) = &answer
            && let (Some(spread), Some(session)) = (reply.spread(), self.sessions.get_mut(&question.native))
        {
            session.spread = Some(spread);
            session.withdrawn |= matches!(decision, Decision::Withdrawn);
        }
        question.answer = Some(answer);
        self.send_answer(key, 0, out);
    }

    /// Sends an answer by the route with the index `route`.
    pub(super) fn send_answer(&mut self, key: &RequestKey, route: usize, out: &mut Outbox) {
        if !self.connected {
            // The re-read after the next connection sends it, if it is still needed.
            return;
        }
        let Some(PendingRequest { native, kind, answer: Some(answer), .. }) = self.asks.get(key) else { return };
        let folder = self.sessions.get(native).and_then(|session| session.folder.clone());
        let session = escape(native.as_str());
        let (path, body) = match (kind.clone(), answer.clone()) {
            (RequestKind::Permission(routes), PendingAnswer::Permission(answer)) => {
                let (id, body) = (escape(key.id()), serde_json::json!(answer));
                match routes.get(route) {
                    Some(AnswerRoute::Reply) => (format!("/permission/{id}/reply"), body),
                    Some(AnswerRoute::Session) => (
                        format!("/session/{session}/permissions/{id}"),
                        serde_json::json!({ "response": answer.reply }),
                    ),
                    Some(AnswerRoute::Api) => (format!("/api/session/{session}/permission/{id}/reply"), body),
                    None => return,
                }
            }
            (RequestKind::Question { group, count, .. }, answer) => {
                let id = escape(&group);
                if matches!(answer, PendingAnswer::Rejected) {
                    (format!("/question/{id}/reject"), serde_json::json!({}))
                } else {
                    let picked = |index| match self.asks.get(&question_key(&group, index))?.answer.as_ref()? {
                        PendingAnswer::Picked(labels) => Some(labels.clone()),
                        _ => None,
                    };
                    // They are sent together, once all are answered.
                    let Some(answers) = (0..count).map(picked).collect::<Option<Vec<_>>>() else { return };
                    (format!("/question/{id}/reply"), serde_json::json!({ "answers": answers }))
                }
            }
            (RequestKind::Permission(_), _) => return,
        };
        let path = in_folder(&path, folder.as_deref());
        self.post(Pending::Answer { key: key.clone(), route }, path, &body, out);
    }

    /// Handles the reply to an answer.
    pub(super) fn answered(
        &mut self,
        key: &RequestKey,
        route: usize,
        reply: Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let Some(question) = self.asks.get(key) else { return };
        let native = question.native.clone();
        let outcome = match &reply {
            Ok(reply) => answer_outcome(reply),
            Err(_) => {
                // The answer may have arrived or not: the next re-read shows it.
                self.sync_again(out);
                return;
            }
        };
        match outcome {
            AnswerOutcome::Taken => {
                let siblings = matches!(&question.kind, RequestKind::Question { .. }) && !self.is_answered(key);
                for key in self.group(key) {
                    let given = self.asks.remove(&key).is_some_and(|question| question.answer.is_some());
                    self.closed.insert(key.clone());
                    // One rejection answers the whole set.
                    if siblings && !given {
                        let event = RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere: None };
                        self.emit(&native, event, out);
                    }
                }
            }
            AnswerOutcome::Late => {
                for key in self.group(key) {
                    match self.asks.get_mut(&key) {
                        Some(question) if question.replied.is_none() => {
                            question.lost = Some(WAITS);
                            out.wake_after = Some(STEP_TIME);
                        }
                        _ => self.answer_lost(&key, self.server_kind.others(), out),
                    }
                }
            }
            AnswerOutcome::NoRoute if matches!(&question.kind, RequestKind::Permission(routes) if routes.len() > route + 1) =>
            {
                self.send_answer(key, route + 1, out);
            }
            AnswerOutcome::NoRoute => self.not_taken(key, "this version of OpenCode has no route for it", out),
            AnswerOutcome::Refused(reason) => self.not_taken(key, &reason, out),
        }
    }

    /// Handles an answer of another client that was first.
    fn answer_lost(&mut self, key: &RequestKey, by: &str, out: &mut Outbox) {
        let Some(question) = self.asks.remove(key) else { return };
        self.closed.insert(key.clone());
        let elsewhere = AnsweredElsewhere { by: by.into(), option_id: question.replied.flatten() };
        let (native, key) = (Some(question.native.clone()), key.clone());
        let event = match question.answer {
            Some(_) => {
                if let Some(session) = self.sessions.get_mut(&question.native) {
                    session.withdrawn = false;
                }
                RuntimeEvent::AnswerLost { native, key, elsewhere }
            }
            None => RuntimeEvent::TakenBack { native, key, elsewhere: Some(elsewhere) },
        };
        self.emit(&question.native, event, out);
    }

    /// Reports answers that came too late, if the stream did not report who was first.
    pub(super) fn report_late_losses(&mut self, out: &mut Outbox) {
        for key in count_waits(self.asks.iter_mut().map(|(key, question)| (key, &mut question.lost)), out) {
            self.answer_lost(&key, NO_LONGER_OPEN, out);
        }
    }

    /// Returns whether all questions of the key's set are answered.
    fn is_answered(&self, key: &RequestKey) -> bool {
        self.group(key).iter().all(|key| self.asks.get(key).is_some_and(|question| question.answer.is_some()))
    }

    fn not_taken(&mut self, key: &RequestKey, reason: &str, out: &mut Outbox) {
        for key in self.group(key) {
            if let Some(question) = self.asks.remove(&key) {
                self.closed.insert(key);
                let draft = EventDraft::error(
                    "answer_not_taken",
                    &format!("OpenCode did not accept the answer: {reason}"),
                    None,
                );
                let event = RuntimeEvent::Event { native: Some(question.native.clone()), draft };
                self.emit(&question.native, event, out);
            }
        }
    }

    /// Returns the pending questions of the same set, including this one.
    fn group(&self, key: &RequestKey) -> Vec<RequestKey> {
        match self.asks.get(key).map(|question| &question.kind) {
            Some(RequestKind::Question { group, count, .. }) => (0..*count).map(|i| question_key(group, i)).collect(),
            _ => vec![key.clone()],
        }
    }

    /// Handles an answer that the stream reports.
    pub(super) fn replied(&mut self, id: &str, option: Option<String>, out: &mut Outbox) {
        let mut keys: Vec<RequestKey> = vec![RequestKey::unique(id)];
        keys.extend(
            self.asks.keys().filter(|key| key.id().strip_prefix(id).is_some_and(|r| r.starts_with('#'))).cloned(),
        );
        for key in keys {
            let Some(question) = self.asks.get_mut(&key) else {
                self.closed.insert(key);
                continue;
            };
            if question.answer.is_some() {
                // The answer is the gateway's or another client's: the reply to the gateway's answer shows it.
                question.replied = Some(option.clone());
                if question.lost.is_some() {
                    self.answer_lost(&key, self.server_kind.others(), out);
                }
                continue;
            }
            let native = question.native.clone();
            self.asks.remove(&key);
            self.closed.insert(key.clone());
            let own_reply = self.sessions.get(&native).and_then(|session| session.spread);
            let by =
                if own_reply.is_some() && own_reply == option.as_deref() { SPREAD } else { self.server_kind.others() };
            let elsewhere = Some(AnsweredElsewhere { by: by.into(), option_id: option.clone() });
            let event = RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere };
            self.emit(&native, event, out);
        }
    }

    /// Closes questions that OpenCode no longer waits for.
    pub(super) fn take_back(&mut self, keys: Vec<RequestKey>, out: &mut Outbox) {
        for key in keys {
            // The stream may still report who answered the question first.
            if self.asks.get(&key).is_some_and(|question| question.lost.is_some()) {
                continue;
            }
            if let Some(question) = self.asks.remove(&key) {
                self.closed.insert(key.clone());
                if question.answer.is_none() {
                    let event = RuntimeEvent::TakenBack { native: Some(question.native.clone()), key, elsewhere: None };
                    self.emit(&question.native, event, out);
                }
            }
        }
    }
}

/// The author of an answer that OpenCode gave itself: it answers other questions of a session when one is rejected, or always allowed.
pub(super) const SPREAD: &str = "OpenCode, by the answer to another question";

impl PendingRequest {
    fn new(native: NativeId, kind: RequestKind) -> Self {
        Self { native, kind, displayed: true, answer: None, fresh: true, replied: None, lost: None }
    }
}

/// Makes the request for `path`.
pub(super) fn fetch(id: u64, method: &'static str, path: String, body: Option<Bytes>) -> HttpRequest {
    HttpRequest { id, base: HttpBase::Connect, method, path, body, decides: false, session: None }
}
