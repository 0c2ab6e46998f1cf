//! Questions: permissions and OpenCode's own `question` tool, in each generation of its API, and their answers. One file:
//! what is asked decides what an answer means.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{object, owned, pretty};
use super::super::{
    AgentRequest, AnsweredElsewhere, ExpectedAnswer, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey,
    RequestSubject, RuntimeEvent, subject,
};
use super::{ANOTHER, OpenCode, Pending, SOON, escape, in_folder, refused, trouble};
use plexus_protocol::{Choice, Decision, Item, NativeId, Offer, RequestType};

/// Questions that may wait at a time on one connection; one more is rejected at once, and logged.
pub(super) const ASKS_MAX: usize = 256;
/// Who answered where it is not known that anybody did.
pub(super) const NOBODY: &str = "nobody: OpenCode no longer waits for it";
/// How often the stream is waited for to tell who was first. Twice: the first wait may have been under way already.
const WAITS: u8 = 2;
/// What the agent is told where nobody decided.
pub(super) const EXPIRED: &str = "expired, not a user decision";

/// Which route takes an answer to a permission: OpenCode had three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerRoute {
    /// `POST /permission/{id}/reply`.
    Reply,
    /// `POST /session/{session}/permissions/{id}`: carries no reason.
    Session,
    /// `POST /api/session/{session}/permission/{id}/reply`.
    Api,
}

/// A question that waits for its answer, or for what becomes of it.
pub(super) struct PendingRequest {
    pub(super) native: NativeId,
    pub(super) what: RequestKind,
    /// An answer that was given and is not known to have arrived.
    pub(super) answer: Option<PendingAnswer>,
    /// It was asked since the last re-read began.
    pub(super) fresh: bool,
    /// What somebody answered, as the stream told it.
    pub(super) replied: Option<Option<String>>,
    /// The answer came too late; who was first, the stream is about to tell. For so many more waits.
    pub(super) lost: Option<u8>,
}

/// What is asked.
#[derive(Clone)]
pub(super) enum RequestKind {
    /// A permission; the routes to try.
    Permission(Vec<AnswerRoute>),
    /// One of several questions that are answered together: the group's name, and how many there are.
    Question { group: String, count: usize },
}

/// An answer on its way.
#[derive(Clone)]
pub(super) enum PendingAnswer {
    /// To a permission.
    Permission { reply: &'static str, message: Option<String> },
    /// To one question.
    Picked(Vec<String>),
    /// No answer to a question.
    Rejected,
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
    #[serde(borrow)]
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

/// One or several questions as they came: their session, the message that they came up in, and what is to be asked.
pub(super) struct ParsedRequests {
    pub(super) native: NativeId,
    pub(super) message: Option<String>,
    pub(super) asks: Vec<(AgentRequest, RequestKind)>,
}

/// Reads a permission. `routes` in the order in which to try them.
pub(super) fn permission(native: &Bytes, raw: &RawValue, routes: &[AnswerRoute]) -> Option<ParsedRequests> {
    let asked: Permission<'_> = object(raw)?;
    let tool = asked.tool.and_then(object::<ToolRef>);
    let (message, call) = tool.map_or((asked.message, asked.call), |tool| (tool.message, tool.call));
    let sort = asked.permission.unwrap_or_else(|| "permission".into());
    let patterns = asked.patterns.map(strings).unwrap_or_default();
    let always = asked.always.map(strings).unwrap_or_default();
    let subject = match (asked.metadata.and_then(subject::input), asked.metadata.and_then(object::<Metadata>)) {
        (Some(command @ RequestSubject::Command { .. }), _) if sort == "bash" => command,
        (_, Some(Metadata { filepath: Some(path), diff: Some(diff) })) => RequestSubject::Diff { path, diff },
        (Some(subject @ (RequestSubject::Fetch { .. } | RequestSubject::Edits(_))), _) => subject,
        _ if sort == "bash" || asked.metadata.is_none_or(subject::may_run) => RequestSubject::Unreadable {
            why: "it has no command that can be identified with certainty",
            raw: pretty(raw.get()),
        },
        _ => RequestSubject::Tool { name: sort.clone(), arguments: pretty(raw.get()) },
    };
    let title = asked.title.unwrap_or_else(|| match patterns.as_slice() {
        [] => sort.clone(),
        patterns => format!("{sort}: {}", patterns.join(", ")),
    });
    let offer = |id: &str, label: String, kind| Offer { id: id.into(), label, kind };
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
        // The oldest route has no place for one.
        allow_reason: routes.first() != Some(&AnswerRoute::Session),
        tool_call_id: call,
        subject,
        ..plain(RequestKey::unique(asked.id), title, native, raw)
    };
    let asks = vec![(ask, RequestKind::Permission(routes.to_vec()))];
    Some(ParsedRequests { native: asked.session.as_str().into(), message, asks })
}

/// Reads a set of questions: one pick for each, or a prompt where there is nothing to pick from.
pub(super) fn questions(native: &Bytes, raw: &RawValue) -> Option<ParsedRequests> {
    let set: Questions<'_> = object(raw)?;
    let count = set.questions.len();
    let (message, call) = set.tool.map_or((None, None), |tool| (tool.message, tool.call));
    let mut asks = Vec::with_capacity(count);
    for (index, raw) in set.questions.iter().enumerate() {
        let question: Question = object(raw)?;
        let what = RequestKind::Question { group: set.id.clone(), count };
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
        asks.push((ask, what));
    }
    Some(ParsedRequests { native: set.session.as_str().into(), message, asks })
}

fn question_key(group: &str, index: usize) -> RequestKey {
    RequestKey::unique(format!("{group}#{index}"))
}

/// The labels are the identifiers: they are what OpenCode wants back, and it offers none twice.
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
    AgentRequest {
        key,
        kind: RequestType::Permission,
        title,
        message: None,
        subject: RequestSubject::Text(String::new()),
        options: Vec::new(),
        items: Vec::new(),
        multi: false,
        default_value: None,
        multiline: false,
        expects: ExpectedAnswer::default(),
        secret: false,
        danger: false,
        allow_reason: false,
        allow_remember: false,
        observe_only: false,
        editable: None,
        tool_call_id: None,
        first_mention: None,
        params: owned(raw),
        native: native.clone(),
    }
}

/// A list of texts, or one text.
fn strings(raw: &RawValue) -> Vec<String> {
    serde_json::from_str::<Vec<String>>(raw.get())
        .or_else(|_| serde_json::from_str::<String>(raw.get()).map(|one| vec![one]))
        .unwrap_or_default()
}

/// What OpenCode said to an answer.
enum AnswerOutcome {
    /// It took it.
    Taken,
    /// Somebody was there before.
    Late,
    /// There is no such route.
    NoRoute,
    /// Something else, in words.
    Refused(String),
}

fn verdict(reply: &HttpReply) -> AnswerOutcome {
    let text = String::from_utf8_lossy(&reply.body);
    match reply.status {
        204 => AnswerOutcome::Taken,
        200 if matches!(text.trim(), "true" | "false") => AnswerOutcome::Taken,
        // Its web page answers every route that it does not know.
        200 | 405 => AnswerOutcome::NoRoute,
        404 if text.contains("NotFoundError") => AnswerOutcome::Late,
        404 => AnswerOutcome::NoRoute,
        _ => AnswerOutcome::Refused(refused(reply)),
    }
}

impl OpenCode {
    /// Puts questions to people, unless they were put already.
    pub(super) fn ask(&mut self, read: ParsedRequests, native: &Bytes, out: &mut Outbox) {
        for (ask, what) in read.asks {
            if self.asks.contains_key(&ask.key) || self.over.contains(&ask.key) {
                continue;
            }
            if self.sessions.get_mut(&read.native).is_some_and(|session| session.carried.remove(&ask.key)) {
                // People have it from an earlier gateway.
                self.asks.insert(ask.key, PendingRequest::new(read.native.clone(), what));
                continue;
            }
            if self.asks.len() >= ASKS_MAX {
                let message = format!("{ASKS_MAX} requests are open already: this one was rejected");
                let draft = trouble("too_many_requests", &message, Some(native.clone()));
                self.say(&read.native, RuntimeEvent::Event { native: Some(read.native.clone()), draft }, out);
                let asked = PendingRequest::new(read.native.clone(), what);
                self.asks.insert(ask.key.clone(), asked);
                self.answer(&ask.key, &Decision::Withdrawn, out);
                continue;
            }
            self.asks.insert(ask.key.clone(), PendingRequest::new(read.native.clone(), what));
            let said = RuntimeEvent::Asked { native: Some(read.native.clone()), ask: Box::new(ask) };
            self.say(&read.native, said, out);
        }
    }

    /// Takes a decision to OpenCode.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outbox) {
        let Some(asked) = self.asks.get_mut(key).filter(|asked| asked.answer.is_none()) else { return };
        let answer = match (&asked.what, decision) {
            (RequestKind::Permission(_), Decision::Option { id, reason, .. }) => {
                let reply = match id.as_str() {
                    "once" => "once",
                    "always" => "always",
                    _ => "reject",
                };
                PendingAnswer::Permission { reply, message: reason.clone().filter(|_| reply == "reject") }
            }
            // With a reason the agent goes on; without one its turn ends.
            (RequestKind::Permission(_), Decision::Expired) => {
                PendingAnswer::Permission { reply: "reject", message: Some(EXPIRED.to_owned()) }
            }
            (RequestKind::Permission(_), _) => PendingAnswer::Permission { reply: "reject", message: None },
            (RequestKind::Question { .. }, Decision::Ids(ids)) if !ids.is_empty() => PendingAnswer::Picked(ids.clone()),
            (RequestKind::Question { .. }, Decision::Value(Some(text))) => PendingAnswer::Picked(vec![text.clone()]),
            (RequestKind::Question { .. }, _) => PendingAnswer::Rejected,
        };
        if let (PendingAnswer::Permission { reply: spread @ ("always" | "reject"), .. }, Some(session)) =
            (&answer, self.sessions.get_mut(&asked.native))
        {
            session.spread = Some((*spread).to_owned());
            session.withdrawn |= matches!(decision, Decision::Withdrawn);
        }
        asked.answer = Some(answer);
        self.send_answer(key, 0, out);
    }

    /// Sends an answer that was given, by the `route`th route.
    pub(super) fn send_answer(&mut self, key: &RequestKey, route: usize, out: &mut Outbox) {
        if !self.connected {
            // The re-read after the next connection sends it, if it is still waited for.
            return;
        }
        let Some(PendingRequest { native, what, answer: Some(answer), .. }) = self.asks.get(key) else { return };
        let folder = self.sessions.get(native).and_then(|session| session.folder.clone());
        let session = escape(native.as_str());
        let (path, body) = match (what.clone(), answer.clone()) {
            (RequestKind::Permission(routes), PendingAnswer::Permission { reply, message }) => {
                let id = escape(key.id());
                let mut body = serde_json::json!({ "reply": reply });
                if let Some(message) = message {
                    body["message"] = message.into();
                }
                match routes.get(route) {
                    Some(AnswerRoute::Reply) => (format!("/permission/{id}/reply"), body),
                    Some(AnswerRoute::Session) => {
                        (format!("/session/{session}/permissions/{id}"), serde_json::json!({ "response": reply }))
                    }
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
                    // They go together, once all are there.
                    let Some(answers) = (0..count).map(picked).collect::<Option<Vec<_>>>() else { return };
                    (format!("/question/{id}/reply"), serde_json::json!({ "answers": answers }))
                }
            }
            (RequestKind::Permission(_), _) => return,
        };
        let path = in_folder(&path, folder.as_deref());
        self.post(Pending::Answer { key: key.clone(), route }, path, &body, out);
    }

    /// What came of an answer.
    pub(super) fn answered(
        &mut self,
        key: &RequestKey,
        route: usize,
        reply: Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let Some(asked) = self.asks.get(key) else { return };
        let native = asked.native.clone();
        let verdict = match &reply {
            Ok(reply) => verdict(reply),
            Err(_) => {
                // It may have arrived or not: the next look tells.
                self.sync_again(out);
                return;
            }
        };
        match verdict {
            AnswerOutcome::Taken => {
                let siblings = matches!(&asked.what, RequestKind::Question { .. }) && !self.settled(key);
                for key in self.group(key) {
                    let given = self.asks.remove(&key).is_some_and(|asked| asked.answer.is_some());
                    self.mark_over(key.clone());
                    // One "no" answers the whole set.
                    if siblings && !given {
                        let said = RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere: None };
                        self.say(&native, said, out);
                    }
                }
            }
            AnswerOutcome::Late => {
                for key in self.group(key) {
                    match self.asks.get_mut(&key) {
                        Some(asked) if asked.replied.is_none() => {
                            asked.lost = Some(WAITS);
                            out.wake_after = Some(SOON);
                        }
                        _ => self.answer_lost(&key, ANOTHER, out),
                    }
                }
            }
            AnswerOutcome::NoRoute if matches!(&asked.what, RequestKind::Permission(routes) if routes.len() > route + 1) =>
            {
                self.send_answer(key, route + 1, out);
            }
            AnswerOutcome::NoRoute => self.not_taken(key, "this version of OpenCode has no route for it", out),
            AnswerOutcome::Refused(why) => self.not_taken(key, &why, out),
        }
    }

    /// Somebody was first with an answer.
    fn answer_lost(&mut self, key: &RequestKey, by: &str, out: &mut Outbox) {
        let Some(asked) = self.asks.remove(key) else { return };
        self.mark_over(key.clone());
        let elsewhere = AnsweredElsewhere { by: by.into(), option_id: asked.replied.flatten() };
        let (native, key) = (Some(asked.native.clone()), key.clone());
        let said = match asked.answer {
            Some(_) => {
                if let Some(session) = self.sessions.get_mut(&asked.native) {
                    session.withdrawn = false;
                }
                RuntimeEvent::AnswerLost { native, key, elsewhere }
            }
            None => RuntimeEvent::TakenBack { native, key, elsewhere: Some(elsewhere) },
        };
        self.say(&asked.native, said, out);
    }

    /// Time has passed, and the stream does not tell who was first.
    pub(super) fn report_late_losses(&mut self, out: &mut Outbox) {
        let mut over = Vec::new();
        for (key, asked) in &mut self.asks {
            match &mut asked.lost {
                Some(waits @ 2..) => {
                    *waits -= 1;
                    out.wake_after = Some(SOON);
                }
                Some(_) => over.push(key.clone()),
                None => {}
            }
        }
        for key in over {
            self.answer_lost(&key, NOBODY, out);
        }
    }

    /// Whether all questions of the key's set have answers.
    fn settled(&self, key: &RequestKey) -> bool {
        self.group(key).iter().all(|key| self.asks.get(key).is_some_and(|asked| asked.answer.is_some()))
    }

    fn not_taken(&mut self, key: &RequestKey, why: &str, out: &mut Outbox) {
        for key in self.group(key) {
            if let Some(asked) = self.asks.remove(&key) {
                self.mark_over(key);
                let draft = trouble("answer_not_taken", &format!("OpenCode did not accept the answer: {why}"), None);
                let said = RuntimeEvent::Event { native: Some(asked.native.clone()), draft };
                self.say(&asked.native, said, out);
            }
        }
    }

    /// The questions that are answered together with this one, itself included, as far as they wait.
    fn group(&self, key: &RequestKey) -> Vec<RequestKey> {
        match self.asks.get(key).map(|asked| &asked.what) {
            Some(RequestKind::Question { group, count, .. }) => (0..*count).map(|i| question_key(group, i)).collect(),
            _ => vec![key.clone()],
        }
    }

    /// Somebody answered, says the stream.
    pub(super) fn replied(&mut self, id: &str, option: Option<String>, out: &mut Outbox) {
        let mut keys: Vec<RequestKey> = vec![RequestKey::unique(id)];
        keys.extend(
            self.asks.keys().filter(|key| key.id().strip_prefix(id).is_some_and(|r| r.starts_with('#'))).cloned(),
        );
        for key in keys {
            let Some(asked) = self.asks.get_mut(&key) else {
                self.mark_over(key);
                continue;
            };
            if asked.answer.is_some() {
                // Ours or another's: the reply to our answer tells.
                asked.replied = Some(option.clone());
                if asked.lost.is_some() {
                    self.answer_lost(&key, ANOTHER, out);
                }
                continue;
            }
            let native = asked.native.clone();
            self.asks.remove(&key);
            self.mark_over(key.clone());
            let ours = self.sessions.get(&native).and_then(|session| session.spread.as_deref());
            let by = if ours.is_some() && ours == option.as_deref() { SPREAD } else { ANOTHER };
            let elsewhere = Some(AnsweredElsewhere { by: by.into(), option_id: option.clone() });
            let said = RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere };
            self.say(&native, said, out);
        }
    }

    /// Questions that nobody waits for any more.
    pub(super) fn take_back(&mut self, keys: Vec<RequestKey>, out: &mut Outbox) {
        for key in keys {
            // Of one that was lost the stream may yet say to whom.
            if self.asks.get(&key).is_some_and(|asked| asked.lost.is_some()) {
                continue;
            }
            if let Some(asked) = self.asks.remove(&key) {
                self.mark_over(key.clone());
                if asked.answer.is_none() {
                    let said = RuntimeEvent::TakenBack { native: Some(asked.native.clone()), key, elsewhere: None };
                    self.say(&asked.native, said, out);
                }
            }
        }
    }
}

/// OpenCode answers other questions of a session by itself when one is rejected, or allowed for always.
pub(super) const SPREAD: &str = "OpenCode, by the answer to another question";

impl PendingRequest {
    fn new(native: NativeId, what: RequestKind) -> Self {
        Self { native, what, answer: None, fresh: true, replied: None, lost: None }
    }
}

/// The request for `path`.
pub(super) fn fetch(id: u64, method: &'static str, path: String, body: Option<Bytes>) -> HttpRequest {
    HttpRequest { id, base: HttpBase::Connect, method, path, body, decides: false, session: None }
}
