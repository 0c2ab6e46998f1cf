//! OpenCode 2, an endpoint. One file: a connection's state, its reads, and the gateway's commands.
//!
//! The API differs from OpenCode 1's: the routes are under `/api`, and each session has a log of events with sequence numbers
//! (`durable.seq`). Written to the schema of its repository (`packages/protocol` and `packages/schema` of github.com/anomalyco/opencode,
//! November 2026), whose events it accepts under the names of every 2.x release; tested against a double made from that schema, since no
//! package of it is published.
//!
//! How nothing is lost or repeated: `/api/event` has no replay, but everything of importance is in the session's log. After each
//! connection, and wherever a sequence number is missing, the log is read after the last reported number; events of the stream are queued
//! meanwhile, and dropped if the log had them. Deltas are not in the log: for each unfinished text its length and checksum are kept, and
//! its end, which has the full text, reports the rest.

mod ask;
mod events;
#[cfg(test)]
mod tests;

mod catch_up;
mod prompts;

use catch_up::Progress;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::fault::model_name;
use super::super::held::HeldRequests;
use super::super::jsonrpc::{self, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::super::{
    CarriedState, Dialect, EventDraft, HttpReply, HttpRequest, OpenedAs, Outbox, Phase, RequestKey, ResumeTarget,
    RuntimeCommand, RuntimeError, RuntimeEvent,
};
use super::calls::{self, Models};
use super::events::hash;
use super::{
    ANOTHER, REREAD_DELAY, SESSIONS_MAX, STEP_TIME, Stage, ask::CarriedAsks, ask::ClosedRequests, ask::fetch, done,
    escape, health_version, password_failure, reply_body,
};
use ask::PendingRequest;
use events::{Part, Tool, Waiting};
use plexus_protocol::{Capabilities, Capability, NativeId, RuntimeSpec, Ticket};

/// The error message for a server of the first generation.
const PREDECESSOR: &str = "this server is OpenCode 1: set the runtime's `dialect` to \"opencode\"";
/// Pauses of [`STEP_TIME`] that a run may take to continue after a reconnect: OpenCode resumes it by itself after a shutdown.
const UNSURE: u8 = 4;
/// Maximum length of a checkpoint, in bytes: a row of that length is written with every commit. A longer one leaves out
/// the texts of other clients' prompts that were not begun.
const CHECKPOINT_MAX: usize = 64 * 1024;

/// Creates the state of a connection.
pub(crate) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(OpenCode2 {
        folder: spec.cwd.to_string_lossy().into_owned(),
        secret: spec.secret.is_some(),
        ..OpenCode2::default()
    })
}

/// The purpose of a request.
enum Pending {
    /// The check for OpenCode 1.
    Predecessor,
    Health,
    Active,
    Models,
    Info(NativeId),
    /// A read of a session's log; `older`: by the route of the first releases.
    Log {
        native: NativeId,
        older: bool,
    },
    Permissions(NativeId),
    Forms(NativeId),
    Create {
        ticket: Ticket,
        cwd: String,
    },
    Prompt {
        native: NativeId,
        ticket: Ticket,
    },
    Interrupt(NativeId),
    /// The removal of a prompt that was not begun from the inbox.
    Withdraw {
        native: NativeId,
        id: String,
    },
    /// An answer to a question; `older`: by the route of the first releases.
    Answer {
        key: RequestKey,
        older: bool,
    },
    Model {
        ticket: Ticket,
        native: NativeId,
        name: String,
        notify: bool,
    },
    /// The list of sessions, for a client.
    List(Ticket),
}

#[derive(Default)]
struct OpenCode2 {
    folder: String,
    secret: bool,
    phase: Phase,
    connected: bool,
    /// The pending replies of the handshake.
    hello: usize,
    failed_hello: bool,
    agent: Option<String>,
    models: Models,
    /// Active sessions, as the last handshake read them.
    active: HashSet<NativeId>,
    next: u64,
    pending: HashMap<u64, Pending>,
    sessions: BTreeMap<NativeId, Session>,
    asks: BTreeMap<RequestKey, PendingRequest>,
    /// Questions above the limit of their session.
    held: HeldRequests,
    /// Closed questions, which are not asked again.
    closed: ClosedRequests,
}

#[derive(Default)]
struct Session {
    stage: Stage,
    folder: Option<String>,
    title: Option<String>,
    /// `true` while the log is being read, so that the stream's events are queued.
    reading: bool,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// `true` if the queue overflowed: the log has to be read once more.
    overflowed: bool,
    /// `true` if events are applied without being reported, because the gateway's log has them already.
    is_replaying: bool,
    /// `true` if the events that are read are of the past before the gateway knew the session.
    past: bool,
    /// `true` while the session works.
    busy: bool,
    /// The number of pauses of [`STEP_TIME`] that are left for the session to continue.
    unsure: u8,
    /// The gateway's answer that OpenCode may also apply to other questions.
    spread: Option<&'static str>,
    /// Questions shown by an earlier gateway process, until it is known whether OpenCode still waits for them.
    carried: CarriedAsks,
    progress: Progress,
}

#[derive(Clone, Serialize, Deserialize)]
struct Prompt {
    ticket: Ticket,
    /// The id with which the prompt was sent.
    id: String,
    /// The checksum of the text, to recognize the prompt if the id is lost.
    text: u64,
    /// `true` if the prompt is in OpenCode's inbox.
    taken: bool,
    /// `true` if OpenCode has begun with the prompt.
    seen: bool,
}

impl Session {
    fn new(stage: Stage, folder: Option<String>) -> Self {
        Self { stage, folder, ..Self::default() }
    }
}

/// An event, of the stream or of a session's log.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    durable: Option<Durable>,
    /// The sequence number, on the marker at the end of a log.
    seq: Option<u64>,
}

#[derive(Deserialize)]
struct Durable {
    #[serde(rename = "aggregateID")]
    session: String,
    seq: u64,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

#[derive(Deserialize)]
struct Info {
    id: String,
    title: Option<String>,
    location: Option<Location>,
    model: Option<ModelRef>,
}

#[derive(Deserialize)]
struct Location {
    directory: Option<String>,
}

#[derive(Deserialize)]
struct ModelRef {
    id: String,
    #[serde(rename = "providerID")]
    provider: String,
}

/// Returns the path of the list of sessions, newest first.
fn listing(params: Option<&RawValue>) -> String {
    #[derive(Default, Deserialize)]
    struct Listing {
        limit: Option<u32>,
        cursor: Option<String>,
    }
    let Listing { limit, cursor } = params.and_then(object).unwrap_or_default();
    let position = cursor.map_or_else(|| "order=desc".into(), |cursor| format!("cursor={}", escape(&cursor)));
    let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    format!("/api/session?{position}{limit}")
}

/// Returns the `data` of a reply.
fn data<T: for<'de> Deserialize<'de>>(reply: &Result<HttpReply, String>) -> Option<T> {
    Some(plexus_protocol::object::from_slice::<Data<T>>(reply_body(reply)?).ok()?.data)
}

fn path(native: &NativeId, rest: &str) -> String {
    format!("/api/session/{}{rest}", escape(native.as_str()))
}

impl Dialect for OpenCode2 {
    fn open(&mut self, out: &mut Outbox) {
        if self.phase == Phase::Failed {
            return;
        }
        self.connected = true;
        self.start_handshake(out);
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Some(event) = parse(&frame) else {
            let draft = EventDraft::raw(frame, "not an event of OpenCode's");
            return out.events.push(RuntimeEvent::Event { native: None, draft });
        };
        let from = out.events.len();
        self.streamed(&frame, &event, out);
        self.checkpoints(from, None, out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let from = out.events.len();
        let changed = match &command {
            RuntimeCommand::Prompt { native, .. } | RuntimeCommand::Cancel { native, .. } => Some(native.clone()),
            RuntimeCommand::Open { .. } | RuntimeCommand::Answer { .. } | RuntimeCommand::Call { .. } => None,
        };
        let ready = self.connected && self.phase == Phase::Ready;
        match command {
            RuntimeCommand::Call { notify: true, .. } if !ready => {}
            command @ (RuntimeCommand::Open { .. } | RuntimeCommand::Prompt { .. } | RuntimeCommand::Call { .. })
                if !ready =>
            {
                out.refuse(command, RuntimeError::new(INTERNAL, "OpenCode is not connected"));
            }
            RuntimeCommand::Open { ticket, cwd, resume: None, .. } => {
                let body = serde_json::json!({ "location": { "directory": cwd } });
                self.send(Pending::Create { ticket, cwd }, "POST", "/api/session".into(), Some(&body), out);
            }
            RuntimeCommand::Open { ticket, cwd, resume: Some(resume), .. } => self.resume(ticket, cwd, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, &content, out),
            RuntimeCommand::Cancel { native, .. } => {
                if let Some(session) = self.sessions.get_mut(&native) {
                    session.progress.cancelled = true;
                    self.interrupt(&native, out);
                }
            }
            RuntimeCommand::Answer { key, decision } => self.answer(&key, decision, out),
            RuntimeCommand::Call { ticket, native, method, params, notify } => {
                if let Err(error) = self.call(ticket, native.as_ref(), &method, params.as_deref(), notify, out) {
                    out.refuse_call(ticket, native, &method, notify, error);
                }
            }
        }
        self.checkpoints(from, changed, out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        let from = out.events.len();
        if self.connected && std::mem::take(&mut self.failed_hello) {
            self.start_handshake(out);
        }
        self.report_late_losses(out);
        let unsure: Vec<NativeId> = self
            .sessions
            .iter_mut()
            .filter(|(_, session)| session.unsure > 0 && session.stage == Stage::Open && !session.reading)
            .map(|(native, session)| {
                session.unsure -= 1;
                native.clone()
            })
            .collect();
        let unsure = if self.connected { unsure } else { Vec::new() };
        for native in unsure {
            if self.sessions.get(&native).is_some_and(|session| session.unsure == 0) {
                self.given_up(&native, out);
            } else {
                self.read(&native, out);
            }
        }
        self.checkpoints(from, None, out);
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        (self.connected, self.failed_hello) = (false, false);
        // Reads are repeated; other requests still get their replies.
        self.pending.retain(|_, pending| match pending {
            Pending::Create { .. } | Pending::Prompt { .. } | Pending::Answer { .. } => true,
            Pending::Model { .. } | Pending::List(_) => true,
            Pending::Predecessor
            | Pending::Health
            | Pending::Active
            | Pending::Models
            | Pending::Info(_)
            | Pending::Log { .. }
            | Pending::Permissions(_)
            | Pending::Forms(_)
            | Pending::Interrupt(_)
            | Pending::Withdraw { .. } => false,
        });
        self.sessions.retain(|_, session| match session.stage {
            Stage::Open => {
                session.progress.connection_lost();
                session.queue.clear();
                (session.reading, session.queued, session.overflowed, session.unsure) = (true, 0, false, 0);
                true
            }
            Stage::Opening { ticket, .. } => {
                let error = RuntimeError::new(INTERNAL, "the connection to OpenCode was lost");
                out.events.push(RuntimeEvent::NotOpened { ticket, error });
                false
            }
            Stage::Seen | Stage::Found => false,
        });
        let sessions = &self.sessions;
        self.asks.retain(|_, question| question.native.as_ref().is_none_or(|native| sessions.contains_key(native)));
    }

    fn events_path(&self) -> &'static str {
        "/api/event"
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let from = out.events.len();
        match pending {
            Pending::Predecessor => {
                #[derive(Deserialize)]
                struct Healthy {
                    #[serde(rename = "healthy")]
                    _healthy: bool,
                }
                let body = reply_body(&reply).map(|body| plexus_protocol::object::from_slice::<Healthy>(body));
                if matches!(body, Some(Ok(_))) {
                    self.phase = Phase::Failed;
                    return out.events.push(RuntimeEvent::Failed { message: PREDECESSOR.into() });
                }
                self.on_handshake_reply(out);
            }
            Pending::Health => self.health(&reply, out),
            Pending::Active => self.active(&reply, out),
            Pending::Models => {
                self.read_models(&reply);
                self.on_handshake_reply(out);
            }
            Pending::Info(native) => self.info(&native, &reply, out),
            Pending::Log { native, older } => self.log(&native, older, &reply, out),
            Pending::Permissions(native) => self.permissions_read(&native, &reply, out),
            Pending::Forms(native) => self.forms_read(&native, &reply, out),
            Pending::Create { ticket, cwd } => self.created(ticket, cwd, &reply, out),
            Pending::Prompt { native, ticket } => self.prompted(&native, ticket, &reply, out),
            Pending::Interrupt(native) => self.interrupted(&native, &reply, out),
            Pending::Withdraw { native, id } => {
                // Another prompt may have been sent since.
                let prompt = self.sessions.get(&native).and_then(|session| session.progress.prompt.as_ref());
                if prompt.is_some_and(|prompt| prompt.id == id && !prompt.seen) {
                    self.end(&native, None, events::End::Cancelled, out);
                }
            }
            Pending::Answer { key, older } => self.answered(&key, older, &reply, out),
            Pending::List(ticket) => {
                out.events.push(RuntimeEvent::Replied { ticket, reply: calls::result(&reply) });
            }
            Pending::Model { ticket, native, name, notify } => {
                let reply = done(&reply).map_err(|reason| RuntimeError::new(INTERNAL, reason));
                if reply.is_ok() {
                    self.model_is(&native, name.split_once('/'), out);
                }
                let reply = reply.map(|()| jsonrpc::to_raw(&serde_json::json!({ "name": name })));
                if !notify {
                    out.events.push(RuntimeEvent::Replied { ticket, reply });
                }
            }
        }
        self.checkpoints(from, None, out);
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["http"]
    }

    /// Returns the capabilities of the server's routes: the server does not report any.
    fn capabilities(&self) -> Capabilities {
        let all = [Capability::Load, Capability::List, Capability::Cancel, Capability::Requests, Capability::Reasons];
        all.into_iter().chain([Capability::Models, Capability::Images]).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        let open = |question: &PendingRequest| question.displayed && question.answer.is_none();
        self.asks.iter().filter(|(_, question)| open(question)).map(|(key, _)| key.clone()).collect()
    }

    fn held(&self) -> usize {
        self.held.bytes()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.sessions.values().filter_map(|session| Some(session.progress.prompt.as_ref()?.ticket)).collect()
    }
}

/// Parses an event.
fn parse(frame: &Bytes) -> Option<Frame<'_>> {
    let text = std::str::from_utf8(frame).ok().filter(|_| jsonrpc::shallow(frame))?;
    serde_json::from_str::<&RawValue>(text).ok().and_then(object::<Frame<'_>>)
}

impl OpenCode2 {
    fn send(
        &mut self,
        pending: Pending,
        method: &'static str,
        path: String,
        body: Option<&serde_json::Value>,
        out: &mut Outbox,
    ) {
        let decides = matches!(pending, Pending::Answer { .. } | Pending::Interrupt(_) | Pending::Withdraw { .. });
        let session = self.session_of(&pending);
        self.next += 1;
        self.pending.insert(self.next, pending);
        let body = body.map(|body| body.to_string().into());
        out.fetches.push(HttpRequest { decides, session, ..fetch(self.next, method, path, body) });
    }

    /// Returns the session of a request; `None` if it is about everything.
    fn session_of(&self, pending: &Pending) -> Option<NativeId> {
        match pending {
            Pending::Info(native)
            | Pending::Log { native, .. }
            | Pending::Permissions(native)
            | Pending::Forms(native)
            | Pending::Prompt { native, .. }
            | Pending::Interrupt(native)
            | Pending::Withdraw { native, .. }
            | Pending::Model { native, .. } => Some(native.clone()),
            Pending::Answer { key, .. } => self.asks.get(key).and_then(|question| question.native.clone()),
            Pending::Predecessor
            | Pending::Health
            | Pending::Active
            | Pending::Models
            | Pending::Create { .. }
            | Pending::List(_) => None,
        }
    }

    fn get(&mut self, pending: Pending, path: String, out: &mut Outbox) {
        self.send(pending, "GET", path, None, out);
    }

    /// Reads health, active sessions and models.
    fn start_handshake(&mut self, out: &mut Outbox) {
        self.hello = 4;
        self.get(Pending::Predecessor, "/global/health".into(), out);
        self.get(Pending::Health, "/api/health".into(), out);
        let models = format!("/api/model?location%5Bdirectory%5D={}", escape(&self.folder));
        self.get(Pending::Models, models, out);
        self.get(Pending::Active, "/api/session/active".into(), out);
    }

    /// Counts a reply of the handshake.
    fn on_handshake_reply(&mut self, out: &mut Outbox) {
        self.hello = self.hello.saturating_sub(1);
        if self.hello > 0 || self.phase == Phase::Failed {
            return;
        }
        if self.failed_hello {
            out.wake_after = Some(REREAD_DELAY);
            return;
        }
        self.phase = Phase::Ready;
        out.events.push(RuntimeEvent::Ready { agent: self.agent.clone() });
    }

    fn health(&mut self, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        match reply {
            Ok(HttpReply { status: 401 | 403, .. }) => {
                self.phase = Phase::Failed;
                return out.events.push(password_failure(self.secret));
            }
            Err(_) => self.failed_hello = true,
            Ok(_) => {}
        }
        let version = health_version(reply).unwrap_or_else(|| "2".into());
        self.agent = Some(format!("OpenCode {version}"));
        self.on_handshake_reply(out);
    }

    fn active(&mut self, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        match data::<HashMap<String, serde::de::IgnoredAny>>(reply) {
            Some(active) => {
                self.active = active.keys().map(|id| NativeId::from(id.as_str())).collect();
                // The sessions are not read earlier, because only this list distinguishes a session that works in
                // silence from one that stopped.
                let open = self.sessions.iter().filter(|(_, session)| session.stage == Stage::Open);
                let open: Vec<NativeId> = open.map(|(native, _)| native.clone()).collect();
                open.iter().for_each(|native| self.read(native, out));
                let unknown: Vec<NativeId> =
                    self.active.iter().filter(|native| !self.sessions.contains_key(*native)).cloned().collect();
                for native in unknown {
                    self.on_active(&native, out);
                }
            }
            None => self.failed_hello = true,
        }
        self.on_handshake_reply(out);
    }

    /// Handles an unknown session that is active.
    fn on_active(&mut self, native: &NativeId, out: &mut Outbox) {
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.retain(|_, session| matches!(session.stage, Stage::Open | Stage::Opening { .. }));
        }
        self.sessions.insert(native.clone(), Session::new(Stage::Seen, None));
        self.get(Pending::Info(native.clone()), path(native, ""), out);
    }

    /// Handles a session's info that was read: reports or opens the session.
    fn info(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let info = data::<Info>(reply);
        let Some(session) = self.sessions.get_mut(native) else { return };
        let Some(info) = info else {
            if let Stage::Opening { ticket, .. } = session.stage {
                let reason = done(reply).err().unwrap_or_else(|| "its response could not be parsed".into());
                let error = RuntimeError::new(INTERNAL, format!("OpenCode has no such session: {reason}"));
                out.events.push(RuntimeEvent::NotOpened { ticket, error });
            }
            self.sessions.remove(native);
            return;
        };
        session.folder = info.location.and_then(|location| location.directory).or_else(|| session.folder.take());
        session.title = info.title.or_else(|| session.title.take());
        session.progress.model =
            info.model.map(|model| (model.provider, model.id)).or_else(|| session.progress.model.take());
        match session.stage {
            Stage::Seen => {
                session.stage = Stage::Found;
                let (cwd, title) = (session.folder.clone(), session.title.clone());
                out.events.push(RuntimeEvent::Found { native: native.clone(), cwd, title });
            }
            Stage::Opening { .. } => self.read(native, out),
            Stage::Found | Stage::Open => {}
        }
    }

    fn created(&mut self, ticket: Ticket, cwd: String, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let Some(info) = data::<Info>(reply) else {
            let reason = done(reply).err().unwrap_or_else(|| "its response could not be parsed".into());
            let error = RuntimeError::new(INTERNAL, format!("OpenCode opened no session: {reason}"));
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        let native = NativeId::from(info.id.as_str());
        let folder = info.location.and_then(|location| location.directory).or(Some(cwd));
        let mut session = Session::new(Stage::Open, folder);
        session.title = info.title;
        session.progress.model = info.model.map(|model| (model.provider, model.id));
        let drafts = self.models.draft(session.progress.model.as_ref()).into_iter().collect();
        self.sessions.insert(native.clone(), session);
        out.events.push(RuntimeEvent::Opened { ticket, native: native.clone(), drafts, how: OpenedAs::New });
        // The first events of the session may have been missed.
        self.read(&native, out);
    }

    fn resume(&mut self, ticket: Ticket, cwd: String, resume: ResumeTarget, out: &mut Outbox) {
        let ResumeTarget { native, known, carried } = resume;
        if self.sessions.get(&native).is_some_and(|session| matches!(session.stage, Stage::Opening { .. })) {
            let error = RuntimeError::new(INTERNAL, "this session is being opened already");
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        }
        self.asks.retain(|_, question| question.native.as_ref() != Some(&native));
        let mut session = Session::new(Stage::Seen, Some(cwd).filter(|cwd| !cwd.is_empty()));
        let continues = carried.is_some_and(|carried| session.restored(&carried));
        session.stage = Stage::Opening { ticket, known, continues };
        session.reading = true;
        self.sessions.insert(native.clone(), session);
        let path = path(&native, "");
        self.get(Pending::Info(native), path, out);
    }

    fn read_models(&mut self, reply: &Result<HttpReply, String>) {
        #[derive(Deserialize)]
        struct Model {
            id: String,
            #[serde(rename = "providerID")]
            provider: String,
            name: Option<String>,
            limit: Option<Limit>,
        }
        #[derive(Deserialize)]
        struct Limit {
            context: Option<f64>,
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // tokens: whole, not negative, far below 2^53
        let tokens = |limit: Limit| limit.context.map(|tokens| tokens.max(0.0) as u64);
        let Some(models) = data::<Vec<Model>>(reply) else { return };
        let offered = models.into_iter().map(|Model { id, provider, name, limit }| {
            (format!("{provider}/{id}"), name.unwrap_or(id), limit.and_then(tokens))
        });
        self.models = Models::new(offered.collect());
    }

    /// Handles a change of a session's model.
    fn model_is(&mut self, native: &NativeId, model: Option<(&str, &str)>, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let model = model.map(|(provider, model)| (provider.to_owned(), model.to_owned()));
        if session.progress.model == model {
            return;
        }
        session.progress.model = model;
        if let Some(draft) = self.models.draft(session.progress.model.as_ref()).filter(|_| !session.is_replaying) {
            out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
        }
    }

    /// Sends a client's call; returns the error if it is refused.
    fn call(
        &mut self,
        ticket: Ticket,
        native: Option<&NativeId>,
        method: &str,
        params: Option<&RawValue>,
        notify: bool,
        out: &mut Outbox,
    ) -> Result<(), RuntimeError> {
        let session = native.and_then(|native| Some((native.clone(), self.sessions.get(native)?)));
        match method {
            "model.list" => {
                let set = session.as_ref().and_then(|(_, session)| session.progress.model.as_ref());
                match self.models.list(set) {
                    Ok(list) if !notify => out.events.push(RuntimeEvent::Replied { ticket, reply: Ok(list) }),
                    Ok(_) => {}
                    Err(fault) => return Err(fault),
                }
            }
            "model.set" => {
                let name = model_name(params)?;
                let Some((provider, model)) = name.split_once('/').filter(|_| self.models.has(&name)) else {
                    let message = format!("no such model: {name}; model.list lists them");
                    return Err(RuntimeError::new(INVALID_PARAMS, message));
                };
                let Some((native, _)) = session else {
                    return Err(RuntimeError::new(INVALID_PARAMS, "model.set is for a session"));
                };
                let body = serde_json::json!({ "model": { "id": model, "providerID": provider } });
                let path = path(&native, "/model");
                let name = name.clone();
                self.send(Pending::Model { ticket, native, name, notify }, "POST", path, Some(&body), out);
            }
            "session.list" if !notify => self.get(Pending::List(ticket), listing(params), out),
            _ => {
                return Err(RuntimeError::new(
                    METHOD_NOT_FOUND,
                    format!("{method}: the gateway does not pass this method on to OpenCode"),
                ));
            }
        }
        Ok(())
    }
}

impl Session {
    /// Continues from a checkpoint; returns `false` if it cannot be read.
    fn restored(&mut self, carried: &CarriedState) -> bool {
        let Ok(progress) = serde_json::from_str::<Progress>(&carried.checkpoint) else { return false };
        self.progress = progress;
        self.progress.connection_lost();
        self.carried = CarriedAsks::new(&carried.asks);
        self.progress.prompt = carried.prompt.map(|ticket| {
            let prompt = self.progress.prompt.take().filter(|prompt| prompt.ticket == ticket);
            // The log shows whether OpenCode has the prompt.
            prompt.unwrap_or_else(|| {
                let blocks = carried.content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
                let (text, _) = input(&blocks.collect::<Vec<_>>());
                Prompt { ticket, id: String::new(), text: hash(&text), taken: false, seen: false }
            })
        });
        self.progress.began &= self.progress.prompt.is_none();
        self.busy = self.progress.began || self.progress.prompt.as_ref().is_some_and(|prompt| prompt.seen);
        true
    }
}

/// Returns a prompt's content in OpenCode's form: one text, and files.
fn input(content: &[Box<RawValue>]) -> (String, Vec<serde_json::Value>) {
    let (parts, _) = calls::parts(content);
    let (mut text, mut files) = (Vec::new(), Vec::new());
    for part in parts {
        match (part["text"].as_str(), part["url"].as_str()) {
            (Some(part_text), _) => text.push(part_text.to_owned()),
            (None, Some(url)) => {
                let mut file = serde_json::json!({ "uri": url });
                for (from, to) in [("filename", "name"), ("mime", "mime")] {
                    if let Some(value) = part.get(from) {
                        file[to] = value.clone();
                    }
                }
                files.push(file);
            }
            (None, None) => {}
        }
    }
    (text.join("\n"), files)
}
