//! Codex's app-server, client side. One file: a connection's state, and every message that changes it.
//!
//! `codex app-server` speaks it over stdio, and over `ws://` and `unix:` to many clients at once: JSON-RPC 2.0 without the
//! `jsonrpc` member. The shapes are those that `codex app-server generate-ts --experimental` (0.169) prints. Turns and
//! items are read in `items`, conversations joined late in `rejoin`, questions in `ask`, clients' own calls in `calls`.
//!
//! What it holds to, because the server is as it is:
//! - Connecting is not listening: only `thread/resume` (or `thread/start`) brings a thread's events, and with them the
//!   questions that wait, under their old ids.
//! - Its result is a state that the events after it follow without a hole, but for the text of a message under way: that
//!   is missing, and told as a gap; the whole comes with the end of the message.
//! - A turn that was not asked for here is another client's: told with [`RuntimeEvent::Began`] and [`RuntimeEvent::Done`].
//! - A method that the server does not know gets no answer at all, so only known ones are called.
//! - Every question gets one answer, and never a JSON-RPC error. One that another client may know better is left to it:
//!   only a server that was started for the gateway alone is answered no in its place.

mod abilities;
mod ask;
mod calls;
mod checkpoint;
mod items;
mod join;
#[cfg(test)]
mod tests;

mod messages;
mod turns;

use messages::{Params, ThreadHead, TurnHead, answer, error_message, frame, text};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fault::{self, says_nothing};
use super::jsonrpc::{self, INTERNAL, RpcMessage, object, string};
use super::{
    CarriedState, Dialect, EventDraft, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand, RuntimeError,
    RuntimeEvent,
};
use ask::PendingRequest;
use items::Items;
use plexus_protocol::{Capabilities, Capability, Connect, ErrorBody, Kind, NativeId, RunStatus, RuntimeSpec, Ticket};

/// The server has too much to do: the request may be sent again.
const OVERLOADED: i64 = -32001;
/// How long to wait before a refused request is sent again, and between two looks at questions that may be over.
const TICK: Duration = Duration::from_millis(500);
/// How often a request that the server had no time for is sent again: five seconds in all, then the refusal stands.
const TRIES: u32 = 10;
/// Ticks after a thread was joined again within which the server sends its open questions again; one that it did not
/// send by then is over.
const SETTLE: u8 = 4;
/// How often a turn is read, a tick apart, that Codex calls interrupted where nobody here wanted that: a server that is about
/// to write down its end calls it so meanwhile.
const DOUBTS_MAX: u8 = 4;
/// A question whose thread was not joined again yet.
const UNSURE: u8 = u8::MAX;
/// Threads of other clients that are remembered as told of; past it all are forgotten, and one may be told of again.
const FOUND_MAX: usize = 4096;
/// Threads of helper agents that are remembered; past it all are forgotten, and their questions go to whoever is at work.
const HELPERS_MAX: usize = 1024;
/// Turns of a thread that are remembered as told of: more than are asked for at a time, so that a known one is among them.
const TOLD_MAX: usize = 128;
/// Longest title made of a prompt, in characters; the rest is left out.
const TITLE_MAX: usize = 80;
/// Notifications that are not wanted: they repeat what items say, or change with every turn and say nothing of it.
const UNWANTED: [&str; 6] = [
    "turn/diff/updated",
    "thread/readState/changed",
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "rawResponseItem/completed",
    "rawResponse/completed",
];
/// Who else may be at work.
const OTHER: &str = "another client of Codex";

/// What is saved is of this form; that of a later one is not read.
const FORM: u32 = 1;

/// Makes a connection's state.
pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Codex {
        alone: matches!(spec.connect, Connect::Command(_)),
        state: State { form: FORM, ..State::default() },
        named: None,
    })
}

struct Codex {
    /// Whether the server is the gateway's own, so that nobody else answers it.
    alone: bool,
    state: State,
    /// The thread whose turn got its name in this step: nothing is said of that, and it is kept all the same.
    named: Option<NativeId>,
}

/// What outlives the gateway, maybe to one of another version: what is not known to it is ignored, what is missing has its
/// default.
#[derive(Default, Serialize, Deserialize)]
struct State {
    /// The form of what is written; 0 is that of the release 0.1.0.
    #[serde(default)]
    form: u32,
    phase: Phase,
    next: u64,
    #[serde(default)]
    sent: BTreeMap<u64, Sent>,
    #[serde(default)]
    asks: BTreeMap<RequestKey, PendingRequest>,
    /// How many questions were given a key: the next one's occurrence.
    #[serde(default)]
    asked: u64,
    #[serde(default)]
    threads: BTreeMap<NativeId, Thread>,
    /// Threads of helper agents, and the thread that each works for.
    #[serde(default)]
    helpers: BTreeMap<NativeId, NativeId>,
    /// Threads of other clients that were told of, or are being looked at.
    #[serde(default)]
    found: BTreeSet<NativeId>,
    /// Threads that started while one was being asked for: whose they are shows with its name.
    #[serde(default)]
    unclear: Vec<(NativeId, Option<String>, Option<String>)>,
    /// Sessions that were being opened when the connection went.
    #[serde(default)]
    reopen: Vec<(u64, Want)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    #[default]
    Hello,
    Ready,
    Lost,
    Failed,
}

/// A request of ours that has no answer yet.
#[derive(Serialize, Deserialize)]
struct Sent {
    pending: Pending,
    /// The frame, to send it again.
    frame: String,
    tries: u32,
    /// Whether it is to be sent at the next wake.
    waits: bool,
}

/// What a request of ours was for.
#[derive(Clone, Serialize, Deserialize)]
enum Pending {
    Initialize,
    Loaded,
    Look { native: NativeId },
    Open { ticket: u64, want: Want },
    Rejoin { native: NativeId },
    Turn { native: NativeId, ticket: u64 },
    Interrupt { native: NativeId, turn: String },
    Call { ticket: u64, sort: calls::ReplyHandling },
}

/// A session to open.
#[derive(Clone, Serialize, Deserialize)]
struct Want {
    cwd: String,
    /// The thread to resume, and whether the log knows it.
    resume: Option<(NativeId, bool)>,
    /// Where an earlier connection left off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<Box<CarriedState>>,
}

/// A thread that is listened to.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Thread {
    turn: Option<Turn>,
    /// The turns that were told of, oldest first, the last maybe not to its end: a hash of each one's name.
    told: VecDeque<u64>,
    model: Option<String>,
    provider: Option<String>,
    items: Items,
    /// Which of the items of the turn under way were told is not known: see [`checkpoint`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// How often the turn under way was read as interrupted, which nobody here wanted; and whether it is to be read again.
    #[serde(skip)]
    doubts: u8,
    #[serde(skip)]
    doubted: bool,
}

impl Thread {
    /// Whether anything was told of the turn.
    fn knows(&self, turn: &str) -> bool {
        self.told.contains(&items::hash(turn))
    }

    /// The turn is being told of.
    fn tells(&mut self, turn: &str) {
        if self.knows(turn) {
            return;
        }
        self.partial = false;
        self.told.push_back(items::hash(turn));
        if self.told.len() > TOLD_MAX {
            self.told.pop_front();
        }
    }
}

/// The turn under way.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Turn {
    /// Its name, once known.
    id: Option<String>,
    /// The prompt, if it is ours.
    ticket: Option<u64>,
    /// Whether it was told of as another client's.
    began: bool,
    /// Whether `turn/start` waits for its answer, so that a turn that starts now may be ours or not.
    starting: bool,
    /// A turn that ended while it did: its name and its end.
    early: Option<(String, End)>,
    /// Somebody wants it stopped.
    cancel: bool,
    /// Whether our own words came back in it.
    echoed: bool,
    /// The last error that was not to be tried again.
    fault: Option<String>,
}

/// [`RunEnd`], to be kept.
#[derive(Clone, Serialize, Deserialize)]
struct End {
    status: RunStatus,
    word: String,
    message: Option<String>,
    #[serde(skip)]
    native: Option<Bytes>,
}

impl From<End> for RunEnd {
    fn from(end: End) -> Self {
        let End { status, word, message, native } = end;
        Self { status, stop_reason: Some(word), message, native }
    }
}

/// An event that says that something went wrong.
fn trouble(code: &str, message: &str, frame: Option<&Bytes>) -> EventDraft {
    let draft = EventDraft::new(Kind::Error, &ErrorBody::new(code, message));
    EventDraft { native: frame.cloned(), ..draft }
}

fn failed(message: String, frame: Option<&Bytes>) -> RunEnd {
    RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(message), native: frame.cloned() }
}

/// What the server is told of a prompt, to know it again in what it says.
fn mark(ticket: u64) -> String {
    format!("plexus-{ticket}")
}

impl Dialect for Codex {
    fn open(&mut self, out: &mut Outbox) {
        self.state.phase = Phase::Hello;
        let params = serde_json::json!({
            "clientInfo": { "name": "plexus", "title": "Plexus", "version": env!("CARGO_PKG_VERSION") },
            // Which decisions a question offers is told to such clients alone.
            "capabilities": { "experimentalApi": true, "requestAttestation": false, "optOutNotificationMethods": UNWANTED },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
        self.nudge(out);
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&frame) else { return self.raw(&frame, None, "not UTF-8", out) };
        let from = out.events.len();
        match jsonrpc::read(text) {
            Err(reason) => self.raw(&frame, None, reason, out),
            Ok(message) if jsonrpc::shallow(&frame) => self.message(&frame, message, out),
            Ok(message) => self.too_deep(&frame, message, out),
        }
        let named = self.named.take();
        self.checkpoints(from, named, out);
        self.nudge(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let from = out.events.len();
        let changed = match &command {
            RuntimeCommand::Answer { key, .. } => self.state.asks.get(key).map(|asked| asked.native.clone()),
            RuntimeCommand::Prompt { native, .. } | RuntimeCommand::Cancel { native, .. } => Some(native.clone()),
            RuntimeCommand::Open { .. } | RuntimeCommand::Call { .. } => None,
        };
        match command {
            RuntimeCommand::Answer { key, decision } => self.answered(&key, &decision, out),
            RuntimeCommand::Cancel { ticket, native, .. } => self.cancel(ticket, &native, out),
            command if self.state.phase != Phase::Ready => not_ready(command, out),
            RuntimeCommand::Open { ticket, cwd, resume: Some(ResumeTarget { native, known, carried }) } => {
                self.open_session(ticket.0, Want { cwd, resume: Some((native, known)), carried }, out);
            }
            RuntimeCommand::Open { ticket, cwd, resume: None } => {
                self.open_session(ticket.0, Want { cwd, resume: None, carried: None }, out);
            }
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, &content, out),
            RuntimeCommand::Call { ticket, native, method, params, notify } => {
                self.call(ticket, native, &method, params.as_deref(), notify, out);
            }
        }
        self.checkpoints(from, changed, out);
        self.nudge(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        let from = out.events.len();
        for sent in self.state.sent.values_mut().filter(|sent| sent.waits) {
            sent.waits = false;
            out.frames.push(sent.frame.clone().into());
        }
        let mut over = Vec::new();
        if self.state.phase == Phase::Ready {
            for (key, asked) in &mut self.state.asks {
                if (1..=SETTLE).contains(&asked.stale) {
                    asked.stale -= 1;
                    if asked.stale == 0 {
                        over.push(key.clone());
                    }
                }
            }
        }
        for key in over {
            self.over(&key, None, out);
        }
        if self.state.phase == Phase::Ready {
            let doubted = |(native, thread): (&NativeId, &mut Thread)| {
                std::mem::take(&mut thread.doubted).then(|| native.clone())
            };
            let again: Vec<NativeId> = self.state.threads.iter_mut().filter_map(doubted).collect();
            for native in again {
                self.resume(Pending::Rejoin { native: native.clone() }, &native, out);
            }
        }
        self.checkpoints(from, None, out);
        self.nudge(out);
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        self.state.phase = Phase::Lost;
        for (_, sent) in std::mem::take(&mut self.state.sent) {
            match sent.pending {
                Pending::Open { ticket, want } => self.state.reopen.push((ticket, want)),
                Pending::Call { ticket, .. } => {
                    let fault = RuntimeError::new(INTERNAL, "the connection to Codex was lost before it responded");
                    out.events.push(RuntimeEvent::Replied { ticket: Ticket(ticket), reply: Err(fault) });
                }
                Pending::Look { native } => {
                    self.state.found.remove(&native);
                }
                // Whether it was heard shows when the thread is joined again.
                Pending::Turn { .. } | Pending::Interrupt { .. } => {}
                Pending::Initialize | Pending::Loaded | Pending::Rejoin { .. } => {}
            }
        }
        for thread in self.state.threads.values_mut() {
            thread.items.connection_lost();
        }
        for asked in self.state.asks.values_mut() {
            asked.stale = UNSURE;
        }
        self.state.unclear.clear();
    }

    fn save(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&self.state).ok()
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        match serde_json::from_slice::<State>(saved) {
            Ok(state) if state.form <= FORM => {
                self.state = State { form: FORM, ..state };
                true
            }
            _ => false,
        }
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["command", "ws", "unix"]
    }

    /// The server does not say: this is what its protocol has.
    fn capabilities(&self) -> Capabilities {
        let all = [Capability::Load, Capability::List, Capability::Cancel, Capability::Requests, Capability::Models];
        let more = [Capability::Images, Capability::Audio, Capability::McpList, Capability::SkillsList];
        all.into_iter().chain(more).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        let open = self.state.asks.iter().filter(|(_, asked)| asked.reply.is_none());
        open.map(|(key, _)| key.clone()).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.state.threads.values().filter_map(|thread| Some(Ticket(thread.turn.as_ref()?.ticket?))).collect()
    }
}

/// What a command comes to while the connection is of no use.
fn not_ready(command: RuntimeCommand, out: &mut Outbox) {
    let fault = RuntimeError::new(INTERNAL, "Codex is not ready");
    match command {
        RuntimeCommand::Open { ticket, .. } => out.events.push(RuntimeEvent::NotOpened { ticket, error: fault }),
        RuntimeCommand::Prompt { ticket, native, .. } => {
            out.events.push(RuntimeEvent::Ended { native, ticket, end: failed(fault.message, None) });
        }
        RuntimeCommand::Call { ticket, notify: false, .. } => {
            out.events.push(RuntimeEvent::Replied { ticket, reply: Err(fault) })
        }
        RuntimeCommand::Call { method, native, .. } => {
            out.events.push(RuntimeEvent::Event {
                native,
                draft: trouble("not_ready", &format!("{method} was not sent"), None),
            });
        }
        RuntimeCommand::Cancel { .. } | RuntimeCommand::Answer { .. } => {}
    }
}

impl Codex {
    fn request(&mut self, pending: Pending, method: &str, params: &impl Serialize, out: &mut Outbox) {
        let id = self.state.next;
        self.state.next += 1;
        let frame = frame(Some(id), method, Some(&jsonrpc::to_raw(params)));
        let kept = String::from_utf8_lossy(&frame).into_owned();
        self.state.sent.insert(id, Sent { pending, frame: kept, tries: 0, waits: false });
        out.frames.push(frame);
    }

    /// Asks to be woken while something waits for it.
    fn nudge(&self, out: &mut Outbox) {
        let ready = self.state.phase == Phase::Ready;
        let stale = ready && self.state.asks.values().any(|asked| (1..=SETTLE).contains(&asked.stale));
        let doubted = ready && self.state.threads.values().any(|thread| thread.doubted);
        if stale || doubted || self.state.sent.values().any(|sent| sent.waits) {
            out.wake_after = Some(out.wake_after.map_or(TICK, |other| other.min(TICK)));
        }
    }

    fn raw(&self, frame: &Bytes, native: Option<NativeId>, reason: &str, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Event { native, draft: EventDraft::raw(frame.clone(), reason) });
    }

    fn event(&self, native: &NativeId, draft: EventDraft, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
    }

    fn message(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        match message {
            RpcMessage::Request { id, method, params } => self.asked(frame, id, &method, params, out),
            RpcMessage::Notification { method, params } => self.notified(frame, &method, params, out),
            RpcMessage::Response { id, reply } => self.response(frame, id, reply, out),
        }
    }

    /// Nothing waits for ever because a message was nested too deep to be passed on.
    fn too_deep(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        self.raw(frame, None, "nested too deeply", out);
        match message {
            RpcMessage::Request { id, method, .. } => self.refuse(id.get(), &method, out),
            RpcMessage::Response { id, .. } => {
                let fault = RuntimeError::new(INTERNAL, "Codex's response is nested too deeply");
                self.response(frame, id, Err(fault), out);
            }
            RpcMessage::Notification { .. } => {}
        }
    }

    fn response(&mut self, frame: &Bytes, id: &RawValue, reply: Result<&RawValue, RuntimeError>, out: &mut Outbox) {
        let id = id.get().parse::<u64>().ok().filter(|id| self.state.sent.contains_key(id));
        let Some(mut sent) = id.and_then(|id| self.state.sent.remove(&id)) else {
            return self.raw(frame, None, "a response to an unknown request", out);
        };
        if let (Err(RuntimeError { code: OVERLOADED, .. }), Some(id)) = (&reply, id)
            && sent.tries < TRIES
        {
            sent.tries += 1;
            sent.waits = true;
            self.state.sent.insert(id, sent);
            return;
        }
        self.on_reply(frame, sent.pending, reply, out);
    }

    fn on_reply(&mut self, frame: &Bytes, pending: Pending, reply: Result<&RawValue, RuntimeError>, out: &mut Outbox) {
        match (pending, reply) {
            (Pending::Initialize, Ok(result)) => self.initialized(result, out),
            (Pending::Initialize, Err(fault)) => {
                self.state.phase = Phase::Failed;
                let message = format!("Codex refused the handshake: {} ({})", fault.words(), fault.code);
                out.events.push(RuntimeEvent::Failed { message });
            }
            (Pending::Loaded, Ok(result)) => self.loaded(result, out),
            // An older server: threads are found when they start.
            (Pending::Loaded, Err(_)) => {}
            (Pending::Look { native }, Ok(result)) => self.resynced(&native, result, out),
            // It is gone again.
            (Pending::Look { native }, Err(_)) => {
                self.state.found.remove(&native);
            }
            (Pending::Open { ticket, want }, Ok(result)) => {
                self.opened(frame, ticket, want, result, out);
                self.clarify(out);
            }
            (Pending::Open { ticket, want: Want { cwd, resume: Some((_, true)), .. } }, Err(_)) => {
                // What was said in it is in the log; Codex goes on with a new one.
                self.open_session(ticket, Want { cwd, resume: None, carried: None }, out);
            }
            (Pending::Open { ticket, want }, Err(error)) => {
                if let Some((native, _)) = want.resume {
                    // It may be too young to be joined: it is told of again when it is at work.
                    self.state.found.remove(&native);
                }
                out.events.push(RuntimeEvent::NotOpened { ticket: Ticket(ticket), error });
                self.clarify(out);
            }
            (Pending::Rejoin { native }, Ok(result)) => self.rejoined(frame, &native, result, out),
            (Pending::Rejoin { native }, Err(fault)) => self.not_rejoined(frame, &native, &fault, out),
            (Pending::Turn { native, ticket }, Ok(result)) => self.turn_taken(frame, &native, ticket, result, out),
            (Pending::Turn { native, ticket }, Err(fault)) => self.turn_refused(frame, native, ticket, fault, out),
            (Pending::Interrupt { .. }, Ok(_)) => {}
            (Pending::Interrupt { native, turn }, Err(fault)) => {
                // It ended by itself meanwhile, unless it is still there.
                let thread = self.state.threads.get(&native);
                if thread.and_then(|thread| thread.turn.as_ref()).is_some_and(|now| now.id.as_deref() == Some(&turn)) {
                    let message = format!("Codex did not stop the turn: {}", fault.words());
                    self.event(&native, trouble("cancel_refused", &message, Some(frame)), out);
                }
            }
            (Pending::Call { ticket, sort }, reply) => {
                out.events.push(RuntimeEvent::Replied { ticket: Ticket(ticket), reply: sort.reply(reply) });
            }
        }
    }

    fn initialized(&mut self, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello<'a> {
            #[serde(borrow)]
            user_agent: Option<&'a RawValue>,
        }
        let Some(Hello { user_agent: Some(agent) }) = object::<Hello<'_>>(result) else {
            self.state.phase = Phase::Failed;
            let message = "the response to `initialize` is not that of a Codex app-server".to_owned();
            return out.events.push(RuntimeEvent::Failed { message });
        };
        self.state.phase = Phase::Ready;
        out.frames.push(frame(None, "initialized", None));
        // `plexus/0.169.0 (Debian 12.0.0; x86_64) unknown (plexus; 0.1.0)`: its version under our name.
        let agent = string(agent);
        let version = agent.as_deref().and_then(|agent| agent.split(['/', ' ']).nth(1)).unwrap_or_default();
        out.events.push(RuntimeEvent::Ready { agent: Some(format!("codex {version}").trim().to_owned()) });
        let threads: Vec<_> = self.state.threads.keys().cloned().collect();
        for native in threads {
            self.resume(Pending::Rejoin { native: native.clone() }, &native, out);
        }
        for (ticket, want) in std::mem::take(&mut self.state.reopen) {
            self.open_session(ticket, want, out);
        }
        if !self.alone {
            self.request(Pending::Loaded, "thread/loaded/list", &serde_json::json!({}), out);
        }
    }

    fn open_session(&mut self, ticket: u64, want: Want, out: &mut Outbox) {
        match want.resume.clone() {
            Some((native, _)) => self.resume(Pending::Open { ticket, want }, &native, out),
            None => {
                let params = serde_json::json!({ "cwd": want.cwd });
                self.request(Pending::Open { ticket, want }, "thread/start", &params, out);
            }
        }
    }

    fn loaded(&mut self, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Loaded {
            data: Vec<String>,
        }
        for id in object::<Loaded>(result).map(|loaded| loaded.data).unwrap_or_default() {
            self.resync(id.as_str().into(), out);
        }
    }

    /// Asks about a thread that is not ours, once.
    fn resync(&mut self, native: NativeId, out: &mut Outbox) {
        if self.new_to_us(&native) {
            let params = serde_json::json!({ "threadId": native, "includeTurns": false });
            self.request(Pending::Look { native }, "thread/read", &params, out);
        }
    }

    /// Whether a thread is to be told of; it is counted as told of from now on.
    fn new_to_us(&mut self, native: &NativeId) -> bool {
        if self.state.threads.contains_key(native) || self.state.helpers.contains_key(native) {
            return false;
        }
        if self.state.found.len() >= FOUND_MAX {
            self.state.found.clear();
        }
        self.state.found.insert(native.clone())
    }

    fn resynced(&mut self, native: &NativeId, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            thread: &'a RawValue,
        }
        let Some(head) = object::<Read<'_>>(result).and_then(|read| object::<ThreadHead<'_>>(read.thread)) else {
            return;
        };
        if self.helper(&head) || self.state.threads.contains_key(native) {
            return;
        }
        if head.hidden() {
            // It stays among those that were told of, so that nobody asks about it again.
            return;
        }
        // A thread in which nothing was said yet cannot be joined: it is looked at again when it is at work.
        let active = head.status.is_some_and(|status| status.get().contains("\"active\""));
        if head.title().is_none() && !active {
            self.state.found.remove(native);
            return;
        }
        out.events.push(RuntimeEvent::Found { native: native.clone(), cwd: head.cwd(), title: head.title() });
    }

    /// Whether the thread is a helper agent's: what it does is told in the thread that it works for, and its questions
    /// are asked there.
    fn helper(&mut self, head: &ThreadHead<'_>) -> bool {
        let Some(parent) = head.parent() else { return false };
        if self.state.helpers.len() >= HELPERS_MAX {
            self.state.helpers.clear();
        }
        self.state.helpers.insert(head.id.as_str().into(), parent.as_str().into());
        true
    }

    fn thread_started(&mut self, head: &ThreadHead<'_>, out: &mut Outbox) {
        let native = NativeId::from(head.id.as_str());
        if self.state.threads.contains_key(&native) || self.helper(head) {
            return;
        }
        if head.hidden() {
            self.new_to_us(&native);
            return;
        }
        if head.title().is_none() {
            return;
        }
        let opening = |sent: &Sent| matches!(&sent.pending, Pending::Open { want: Want { resume: None, .. }, .. });
        if self.state.unclear.len() < FOUND_MAX && self.state.sent.values().any(opening) {
            self.state.unclear.push((native, head.cwd(), head.title()));
        } else if self.new_to_us(&native) {
            out.events.push(RuntimeEvent::Found { native, cwd: head.cwd(), title: head.title() });
        }
    }

    /// Tells of the threads that turned out to be others'.
    fn clarify(&mut self, out: &mut Outbox) {
        for (native, cwd, title) in std::mem::take(&mut self.state.unclear) {
            if self.new_to_us(&native) {
                out.events.push(RuntimeEvent::Found { native, cwd, title });
            }
        }
    }
}
