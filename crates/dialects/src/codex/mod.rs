//! Codex's app-server, client side. One file: a connection's state, and every message that changes it.
//!
//! `codex app-server` speaks it over stdio, and over `ws://` and `unix:` to many clients at once: JSON-RPC 2.0 without the `jsonrpc`
//! member. The shapes are those that `codex app-server generate-ts --experimental` (0.169) prints. `items` reads turns and items, `join`
//! joins conversations, `unwritten` opens those that cannot be joined yet, `ask` handles questions, `calls` clients' own calls.
//!
//! Rules that follow from the server's behaviour:
//! - Connecting does not subscribe: only `thread/resume` (or `thread/start`) brings a thread's events, and with them its open questions,
//!   under their old ids.
//! - The events after its result follow without a gap, except the text of a message in progress: it is missing and reported as a gap; the
//!   full text comes with the end of the message.
//! - A turn that was not started here is another client's: reported with [`RuntimeEvent::Began`] and [`RuntimeEvent::Done`].
//! - Which clients show a thread is not on the wire, so neither is whether its terminal is open. Only of a thread that nobody has joined is
//!   the end reported (`thread/closed`, a minute after its last client left).
//! - The server never answers an unknown method, so only known ones are called.
//! - Every question gets one answer, and never a JSON-RPC error. A question that cannot be shown is left to other clients: only a server
//!   that the gateway started for itself gets a denial.

mod abilities;
mod ask;
mod calls;
mod checkpoint;
mod items;
mod join;
#[cfg(test)]
mod tests;

mod messages;
mod reviews;
mod turns;
mod unwritten;

use messages::{Params, ThreadHead, TurnHead, answer, error_message, frame, text};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fault::{self, is_uninformative};
use super::held::HeldQuestions;
use super::jsonrpc::{self, INTERNAL, RpcMessage, member, object, string};
use super::{
    CarriedState, Dialect, EventDraft, McpServer, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand,
    RuntimeError, RuntimeEvent,
};
use ask::PendingRequest;
use items::Items;
use plexus_protocol::{Capabilities, Capability, Connect, NativeId, RunStatus, RuntimeSpec, Ticket};

/// The error code of a server that is overloaded: the request may be retried.
const OVERLOADED: i64 = -32001;
/// The pause before a refused request is retried, and between two checks of questions that may be closed.
const TICK: Duration = Duration::from_millis(500);
/// Maximum number of retries of a request that an overloaded server refused: five seconds in total, then the refusal is final.
const TRIES: u32 = 10;
/// Ticks after a thread was joined again in which the server sends its open questions again; then a question that was not sent is closed.
const SETTLE: u8 = 4;
/// Maximum number of times, a tick apart, that a turn is read again if Codex calls it interrupted without a cancel: a
/// server that is about to write the end of a turn calls it so for a moment.
const DOUBTS_MAX: u8 = 4;
/// The value for a question whose thread was not joined again yet.
const UNSURE: u8 = u8::MAX;
/// Maximum number of threads of other clients stored as reported; above it all are removed, and one may be reported again.
const FOUND_MAX: usize = 4096;
/// Maximum number of stored helper threads; above it all are removed, and their questions are asked in the active thread.
const HELPERS_MAX: usize = 1024;
/// Maximum number of turns of a thread stored as reported: more than are requested at a time, so that a known one is among them.
const REPORTED_MAX: usize = 128;
/// Maximum length of a title made from a prompt, in characters.
const TITLE_MAX: usize = 80;
/// Notifications that are ignored: they repeat items, or come with every turn without a change.
const UNWANTED: [&str; 6] = [
    "turn/diff/updated",
    "thread/readState/changed",
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "rawResponseItem/completed",
    "rawResponse/completed",
];
/// The name of any other client.
const OTHER: &str = "another client of Codex";

/// The version of the saved format; later versions are not read.
const FORM: u32 = 1;

/// Creates the state of a connection.
pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Codex {
        alone: matches!(spec.connect, Connect::Command(_)),
        state: State { form: FORM, ..State::default() },
        named: None,
    })
}

struct Codex {
    /// `true` if the server is the gateway's own, so that no other client answers it.
    alone: bool,
    state: State,
    /// The thread whose turn got its id in this step, which changes the checkpoint although it is not an event.
    named: Option<NativeId>,
}

/// The state that outlives the gateway process; another version may read it: unknown fields are ignored, missing ones have defaults.
#[derive(Default, Serialize, Deserialize)]
struct State {
    /// The version of the format; 0 is that of the release 0.1.0.
    #[serde(default)]
    form: u32,
    phase: Phase,
    next: u64,
    #[serde(default)]
    sent: BTreeMap<u64, Sent>,
    #[serde(default)]
    asks: BTreeMap<RequestKey, PendingRequest>,
    /// `true` if a reviewer of Codex answers in place of the user.
    #[serde(default)]
    reviewed: bool,
    /// Questions above the limit of their thread.
    #[serde(default, skip_serializing_if = "HeldQuestions::is_empty")]
    held: HeldQuestions,
    /// The number of questions with a key, which is the occurrence of the next one.
    #[serde(default, rename = "asked")]
    request_count: u64,
    #[serde(default)]
    threads: BTreeMap<NativeId, Thread>,
    /// Helper threads, with the thread that each works for.
    #[serde(default)]
    helpers: BTreeMap<NativeId, NativeId>,
    /// Threads of other clients that were reported, or are being read.
    #[serde(default)]
    found: BTreeSet<NativeId>,
    /// Threads that started while one was being opened: the reply shows which one it is.
    #[serde(default)]
    unclear: Vec<(NativeId, Option<String>, Option<String>)>,
    /// Sessions that were being opened when the connection was lost.
    #[serde(default)]
    reopen: Vec<(u64, OpenRequest)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    #[default]
    Hello,
    Ready,
    Lost,
    Failed,
}

/// A request without a reply.
#[derive(Serialize, Deserialize)]
struct Sent {
    pending: Pending,
    /// The frame, for a retry.
    frame: String,
    tries: u32,
    /// `true` if the request is sent at the next wake-up.
    #[serde(rename = "waits")]
    is_deferred: bool,
}

/// The purpose of a request.
#[derive(Clone, Serialize, Deserialize)]
enum Pending {
    Initialize,
    Loaded,
    #[serde(rename = "Look")]
    ReadThread {
        native: NativeId,
    },
    Open {
        ticket: u64,
        #[serde(rename = "want")]
        request: OpenRequest,
    },
    /// The request that reads a thread which could not be resumed.
    Unwritten {
        ticket: u64,
        #[serde(rename = "want")]
        request: OpenRequest,
        refusal: unwritten::Refusal,
    },
    Rejoin {
        native: NativeId,
    },
    Turn {
        native: NativeId,
        ticket: u64,
    },
    Interrupt {
        native: NativeId,
        turn: String,
    },
    Call {
        ticket: u64,
        #[serde(rename = "sort")]
        kind: calls::ReplyHandling,
    },
}

/// A session to open.
#[derive(Clone, Serialize, Deserialize)]
struct OpenRequest {
    cwd: String,
    /// The thread to resume, and whether the log has its history.
    resume: Option<(NativeId, bool)>,
    /// The state that an earlier connection left.
    #[serde(skip_serializing_if = "Option::is_none")]
    carried: Option<Box<CarriedState>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mcp_servers: Vec<McpServer>,
}

/// A joined thread.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Thread {
    turn: Option<Turn>,
    /// The reported turns, oldest first, the last one maybe not to its end: a hash of each id.
    #[serde(rename = "told")]
    reported_turns: VecDeque<u64>,
    model: Option<String>,
    provider: Option<String>,
    items: Items,
    /// `true` if it is unknown which items of the current turn were reported: see [`checkpoint`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// `true` if nobody has written in the thread: it is not joined yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unwritten: bool,
    /// `true` if the thread has no title: the first message becomes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untitled: bool,
    /// The number of refused requests to join the thread.
    #[serde(skip)]
    joins: u8,
    /// The number of times that the current turn was read as interrupted without a cancel; `doubted` is `true` if it is read again.
    #[serde(skip)]
    doubts: u8,
    #[serde(skip)]
    doubted: bool,
    /// MCP servers, named again whenever the thread is joined again. The client that opens the thread names them, so they are not saved.
    #[serde(skip)]
    mcp_servers: Vec<McpServer>,
}

impl Thread {
    /// Returns whether any event of the turn was reported.
    fn contains(&self, turn: &str) -> bool {
        self.reported_turns.contains(&items::hash(turn))
    }

    /// Marks the turn as reported.
    fn mark_reported(&mut self, turn: &str) {
        if self.contains(turn) {
            return;
        }
        self.partial = false;
        self.reported_turns.push_back(items::hash(turn));
        if self.reported_turns.len() > REPORTED_MAX {
            self.reported_turns.pop_front();
        }
    }
}

/// The current turn.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Turn {
    /// The id, once known.
    id: Option<String>,
    /// The ticket of the prompt, if it is the gateway's.
    ticket: Option<u64>,
    /// `true` if the turn was reported as another client's.
    began: bool,
    /// `true` if `turn/start` is unanswered, so that a turn that starts now may or may not be the gateway's.
    starting: bool,
    /// A turn that ended meanwhile: its id and its end.
    early: Option<(String, End)>,
    /// `true` while the turn is being cancelled.
    cancel: bool,
    /// `true` if the gateway's prompt was echoed in the turn.
    echoed: bool,
    /// The last error that is not retried.
    fault: Option<String>,
}

/// A storable [`RunEnd`].
#[derive(Clone, Serialize, Deserialize)]
struct End {
    status: RunStatus,
    word: String,
    message: Option<String>,
    /// The frame that reported the end, for the log: it survives a takeover too.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "checkpoint::frame_text")]
    native: Option<Bytes>,
}

impl From<End> for RunEnd {
    fn from(end: End) -> Self {
        let End { status, word, message, native } = end;
        Self { status, stop_reason: Some(word), message, native }
    }
}

/// Returns the mark of a prompt, by which it is recognized in the server's items.
fn mark(ticket: u64) -> String {
    format!("plexus-{ticket}")
}

impl Dialect for Codex {
    fn open(&mut self, out: &mut Outbox) {
        self.state.phase = Phase::Hello;
        let params = serde_json::json!({
            "clientInfo": { "name": "plexus", "title": "Plexus", "version": env!("CARGO_PKG_VERSION") },
            // Only clients with this capability get the decisions of a question.
            "capabilities": { "experimentalApi": true, "requestAttestation": false, "optOutNotificationMethods": UNWANTED },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
        self.request_wake(out);
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
        self.request_wake(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let from = out.events.len();
        let changed = match &command {
            RuntimeCommand::Answer { key, .. } => self.state.asks.get(key).map(|request| request.native.clone()),
            RuntimeCommand::Prompt { native, .. } | RuntimeCommand::Cancel { native, .. } => Some(native.clone()),
            RuntimeCommand::Open { .. } | RuntimeCommand::Call { .. } => None,
        };
        match command {
            RuntimeCommand::Answer { key, decision } => self.answered(&key, &decision, out),
            RuntimeCommand::Cancel { ticket, native, .. } => self.cancel(ticket, &native, out),
            command if self.state.phase != Phase::Ready => {
                out.refuse(command, RuntimeError::new(INTERNAL, "Codex is not ready"));
            }
            RuntimeCommand::Open {
                ticket,
                cwd,
                resume: Some(ResumeTarget { native, known, carried }),
                mcp_servers,
            } => {
                let resume = Some((native, known));
                self.open_session(ticket.0, OpenRequest { cwd, resume, carried, mcp_servers }, out);
            }
            RuntimeCommand::Open { ticket, cwd, resume: None, mcp_servers } => {
                self.open_session(ticket.0, OpenRequest { cwd, resume: None, carried: None, mcp_servers }, out);
            }
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, &content, out),
            RuntimeCommand::Call { ticket, native, method, params, notify } => {
                self.call(ticket, native, &method, params.as_deref(), notify, out);
            }
        }
        self.checkpoints(from, changed, out);
        self.request_wake(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        let from = out.events.len();
        for sent in self.state.sent.values_mut().filter(|sent| sent.is_deferred) {
            sent.is_deferred = false;
            out.frames.push(sent.frame.clone().into());
        }
        let mut closed = Vec::new();
        if self.state.phase == Phase::Ready {
            for (key, request) in &mut self.state.asks {
                if (1..=SETTLE).contains(&request.stale) {
                    request.stale -= 1;
                    if request.stale == 0 {
                        closed.push(key.clone());
                    }
                }
            }
        }
        for key in closed {
            self.close_question(&key, None, out);
        }
        if self.state.phase == Phase::Ready {
            let doubted = |(native, thread): (&NativeId, &mut Thread)| {
                std::mem::take(&mut thread.doubted).then(|| native.clone())
            };
            let again: Vec<NativeId> = self.state.threads.iter_mut().filter_map(doubted).collect();
            for native in again {
                self.rejoin(&native, out);
            }
        }
        self.checkpoints(from, None, out);
        self.request_wake(out);
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        self.state.phase = Phase::Lost;
        // The server sends open questions again.
        self.state.held.clear();
        for (_, sent) in std::mem::take(&mut self.state.sent) {
            match sent.pending {
                Pending::Open { ticket, request } | Pending::Unwritten { ticket, request, .. } => {
                    self.state.reopen.push((ticket, request));
                }
                Pending::Call { ticket, .. } => {
                    let fault = RuntimeError::new(INTERNAL, "the connection to Codex was lost before it responded");
                    out.events.push(RuntimeEvent::Replied { ticket: Ticket(ticket), reply: Err(fault) });
                }
                Pending::ReadThread { native } => {
                    self.state.found.remove(&native);
                }
                // The thread shows whether the request arrived when it is joined again.
                Pending::Turn { .. } | Pending::Interrupt { .. } => {}
                Pending::Initialize | Pending::Loaded | Pending::Rejoin { .. } => {}
            }
        }
        for thread in self.state.threads.values_mut() {
            thread.items.connection_lost();
        }
        for request in self.state.asks.values_mut() {
            request.stale = UNSURE;
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

    /// Returns the capabilities of the protocol: the server does not report any.
    fn capabilities(&self) -> Capabilities {
        let all = [Capability::Load, Capability::List, Capability::Cancel, Capability::Requests, Capability::Models];
        let more = [Capability::Images, Capability::Audio, Capability::McpList, Capability::SkillsList];
        all.into_iter().chain(more).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        let open = self.state.asks.iter().filter(|(_, request)| request.reply.is_none());
        open.map(|(key, _)| key.clone()).collect()
    }

    fn held(&self) -> usize {
        self.state.held.bytes()
    }

    fn reviewer(&self) -> Option<&'static str> {
        self.state.reviewed.then_some(reviews::REVIEWER)
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.state.threads.values().filter_map(|thread| Some(Ticket(thread.turn.as_ref()?.ticket?))).collect()
    }
}

impl Codex {
    fn request(&mut self, pending: Pending, method: &str, params: &impl Serialize, out: &mut Outbox) {
        let id = self.state.next;
        self.state.next += 1;
        let frame = frame(Some(id), method, Some(&jsonrpc::to_raw(params)));
        let text = String::from_utf8_lossy(&frame).into_owned();
        self.state.sent.insert(id, Sent { pending, frame: text, tries: 0, is_deferred: false });
        out.frames.push(frame);
    }

    /// Requests a wake-up while something waits for time.
    fn request_wake(&self, out: &mut Outbox) {
        let ready = self.state.phase == Phase::Ready;
        let stale = ready && self.state.asks.values().any(|request| (1..=SETTLE).contains(&request.stale));
        let doubted = ready && self.state.threads.values().any(|thread| thread.doubted);
        if stale || doubted || self.state.sent.values().any(|sent| sent.is_deferred) {
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
            RpcMessage::Request { id, method, params } => self.request_received(frame, id, &method, params, out),
            RpcMessage::Notification { method, params } => self.notified(frame, &method, params, out),
            RpcMessage::Response { id, reply } => self.response(frame, id, reply, out),
        }
    }

    /// Answers a message that is nested too deep to be forwarded, so that nobody waits forever.
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
            sent.is_deferred = true;
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
                let message = format!("Codex refused the handshake: {} ({})", fault.full_message(), fault.code);
                out.events.push(RuntimeEvent::Failed { message });
            }
            (Pending::Loaded, Ok(result)) => self.loaded(result, out),
            // An older server: threads are found when they start.
            (Pending::Loaded, Err(_)) => {}
            (Pending::ReadThread { native }, Ok(result)) => self.resynced(&native, result, out),
            // The thread has ended again.
            (Pending::ReadThread { native }, Err(_)) => {
                self.state.found.remove(&native);
            }
            (Pending::Open { ticket, request }, Ok(result)) => {
                self.note_reviewer(result);
                self.opened(frame, ticket, request, result, out);
                self.clarify(out);
            }
            (Pending::Open { ticket, request }, Err(error)) if self.may_be_unwritten(&request) => {
                self.read_unwritten(ticket, request, error, out);
            }
            (Pending::Open { ticket, request }, Err(_)) if request.resume.as_ref().is_some_and(|(_, known)| *known) => {
                // The log has the history; Codex continues with a new conversation.
                self.open_session(ticket, OpenRequest { resume: None, carried: None, ..request }, out);
            }
            (Pending::Open { ticket, request }, Err(error)) => self.not_opened(ticket, request, error, out),
            (Pending::Unwritten { ticket, request, refusal }, reply) => {
                self.unwritten_read(ticket, request, refusal, reply.ok(), out);
            }
            (Pending::Rejoin { native }, Err(_)) if self.joins_later(&native) => {}
            (Pending::Rejoin { native }, Ok(result)) => self.rejoined(frame, &native, result, out),
            (Pending::Rejoin { native }, Err(fault)) => self.not_rejoined(frame, &native, &fault, out),
            (Pending::Turn { native, ticket }, Ok(result)) => self.turn_taken(frame, &native, ticket, result, out),
            (Pending::Turn { native, ticket }, Err(fault)) => self.turn_refused(frame, native, ticket, fault, out),
            (Pending::Interrupt { .. }, Ok(_)) => {}
            (Pending::Interrupt { native, turn }, Err(fault)) => {
                // The turn ended meanwhile, unless it is still the current one.
                let thread = self.state.threads.get(&native);
                if thread.and_then(|thread| thread.turn.as_ref()).is_some_and(|now| now.id.as_deref() == Some(&turn)) {
                    let message = format!("Codex did not stop the turn: {}", fault.full_message());
                    self.event(&native, EventDraft::error("cancel_refused", &message, Some(frame)), out);
                }
            }
            (Pending::Call { ticket, kind }, reply) => {
                out.events.push(RuntimeEvent::Replied { ticket: Ticket(ticket), reply: kind.reply(reply) });
            }
        }
    }

    fn initialized(&mut self, result: &RawValue, out: &mut Outbox) {
        let Some(agent) = member::<&RawValue>(result, "userAgent") else {
            self.state.phase = Phase::Failed;
            let message = "the response to `initialize` is not that of a Codex app-server".to_owned();
            return out.events.push(RuntimeEvent::Failed { message });
        };
        self.state.phase = Phase::Ready;
        out.frames.push(frame(None, "initialized", None));
        // `plexus/0.169.0 (Debian 12.0.0; x86_64) unknown (plexus; 0.1.0)`: the server's version under the gateway's name.
        let agent = string(agent);
        let version = agent.as_deref().and_then(|agent| agent.split(['/', ' ']).nth(1)).unwrap_or_default();
        out.events.push(RuntimeEvent::Ready { agent: Some(format!("codex {version}").trim().to_owned()) });
        let threads: Vec<_> =
            self.state.threads.iter().map(|(native, thread)| (native.clone(), thread.unwritten)).collect();
        for (native, unwritten) in threads {
            if unwritten {
                self.read_thread(native, out);
            } else {
                self.rejoin(&native, out);
            }
        }
        for (ticket, request) in std::mem::take(&mut self.state.reopen) {
            self.open_session(ticket, request, out);
        }
        if !self.alone {
            self.request(Pending::Loaded, "thread/loaded/list", &serde_json::json!({}), out);
        }
    }

    fn open_session(&mut self, ticket: u64, request: OpenRequest, out: &mut Outbox) {
        match request.resume.clone() {
            Some((native, _)) => {
                let servers = request.mcp_servers.clone();
                self.resume(Pending::Open { ticket, request }, &native, &servers, out);
            }
            None => {
                let mut params = serde_json::json!({ "cwd": request.cwd });
                if let Some(config) = join::config(&request.mcp_servers) {
                    params["config"] = config;
                }
                self.request(Pending::Open { ticket, request }, "thread/start", &params, out);
            }
        }
    }

    fn loaded(&mut self, result: &RawValue, out: &mut Outbox) {
        for id in member::<Vec<String>>(result, "data").unwrap_or_default() {
            self.resync(id.as_str().into(), out);
        }
    }

    /// Reads a thread of another client, once.
    fn resync(&mut self, native: NativeId, out: &mut Outbox) {
        if self.remember_found(&native) {
            self.read_thread(native, out);
        }
    }

    fn read_thread(&mut self, native: NativeId, out: &mut Outbox) {
        let params = serde_json::json!({ "threadId": native, "includeTurns": false });
        self.request(Pending::ReadThread { native }, "thread/read", &params, out);
    }

    /// Returns whether a thread has to be reported, and marks it as reported.
    fn remember_found(&mut self, native: &NativeId) -> bool {
        if self.state.threads.contains_key(native) || self.state.helpers.contains_key(native) {
            return false;
        }
        if self.state.found.len() >= FOUND_MAX {
            self.state.found.clear();
        }
        self.state.found.insert(native.clone())
    }

    fn resynced(&mut self, native: &NativeId, result: &RawValue, out: &mut Outbox) {
        let Some(head) = member(result, "thread").and_then(object::<ThreadHead<'_>>) else {
            return;
        };
        if self.helper(&head) || self.state.threads.contains_key(native) {
            return self.join_if_active(native, head.status, out);
        }
        if head.hidden() {
            // The thread stays among the reported ones, so that it is not read again.
            return;
        }
        out.events.push(RuntimeEvent::Found { native: native.clone(), cwd: head.cwd(), title: head.title() });
    }

    /// Returns whether this is a helper thread: its work is reported in the thread that it works for, and its questions are asked there.
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
            self.remember_found(&native);
            return;
        }
        let opening =
            |sent: &Sent| matches!(&sent.pending, Pending::Open { request: OpenRequest { resume: None, .. }, .. });
        if self.state.unclear.len() < FOUND_MAX && self.state.sent.values().any(opening) {
            self.state.unclear.push((native, head.cwd(), head.title()));
        } else if self.remember_found(&native) {
            out.events.push(RuntimeEvent::Found { native, cwd: head.cwd(), title: head.title() });
        }
    }

    /// Reports the threads that turned out to belong to other clients.
    fn clarify(&mut self, out: &mut Outbox) {
        for (native, cwd, title) in std::mem::take(&mut self.state.unclear) {
            if self.remember_found(&native) {
                out.events.push(RuntimeEvent::Found { native, cwd, title });
            }
        }
    }
}
