//! The UI protocol, version 0, UI side. One file: a connection's state and every message that changes it.
//!
//! Codelia's runtime speaks it: JSON-RPC 2.0 with string ids, one message a line. `events` reads agent events, `ask` questions.
//!
//! A process has one session, which the first `run.start` creates: opening it needs no message. The runtime does not report the session's
//! own id (it is in a file beside it), so it is called [`SESSION`] here; the process is known by its runtime. `resume` opens earlier
//! conversations.
//!
//! Rules that follow from the runtime's behaviour:
//! - `initialize` is sent once: the last one wins, and one without `supports_confirm` denies every confirm.
//! - `initialize` and `run.cancel` without params would crash the process: params are always an object.
//! - For 20 to 60 ms after a run, `run.start` is refused as busy: it is retried for half a second.
//! - `session.history` replays old events into the live stream: clients may not call it; the gateway's log has the events.
//! - A confirm does not name its tool call; the `permission.ready` right before it does.
//! - A cancel with an open question hangs until it is answered, and an approval would still run the command: every open question is denied
//!   before the cancel is sent.
//! - Picks (approval mode, onboarding) may come before `run.start` is answered and delay the answer for as long as the user takes: only the
//!   retry of a busy start has a time limit.
//! - `run.status` is optional: `final` completes a turn, and an accepted cancel may be the last message of a run. After enough silence such
//!   a run ends (`quiet`), so that none runs forever.
//! - An unanswered call of a client's tool (`client.tool.call`) blocks the run and its cancel. Tools come with `run.start`, and the gateway
//!   declares none, so a call is answered "no such tool" at once. To support them, a prompt would carry its client's tools, the call would
//!   go to that client alone, and the gateway would answer when that client leaves, the time is up (`client.tool.cancel`), or the run is
//!   cancelled.

mod ask;
mod events;
mod resume;
mod saved;
#[cfg(test)]
mod tests;

mod replies;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::jsonrpc::{self, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, RpcMessage, object, string};
use super::{
    Dialect, EventDraft, Outbox, Phase, RequestKey, RunEnd, RuntimeCommand, RuntimeError, RuntimeEvent, SessionLimit,
};
use ask::PendingRequest;
use events::RunContext;
use plexus_protocol::{
    Capabilities, Capability, Decision, Kind, NativeId, RunStatus, RuntimeSpec, Ticket, ui_protocol,
};

/// The supported version of the protocol.
const VERSION: &str = "0";
/// The name of a process's only session.
pub(super) const SESSION: &str = "codelia";
/// The error code of a runtime that is busy with a run, or has not finished the last one.
const BUSY: i64 = -32001;
/// The error code for a run that does not exist.
const RUN_NOT_FOUND: i64 = -32002;
/// The error code for a cancellation by the user. Defined by the protocol, but not observed so far.
const USER_CANCELLED: i64 = -32003;
/// The error code for a session that does not exist.
const SESSION_NOT_FOUND: i64 = -32004;
/// The error code for a session that cannot be read.
const SESSION_LOAD_FAILED: i64 = -32005;
/// The pause before a prompt that was refused as busy is sent again.
const BUSY_WAIT: Duration = Duration::from_millis(50);
/// Maximum number of retries: half a second in total; then the run ends with an error.
const BUSY_TRIES: u32 = 10;
/// The unit of silence, if the end of a run has to be inferred.
const QUIET: Duration = Duration::from_millis(250);
/// Units of silence after `final` that end a run, with a runtime that never sent a status.
const QUIET_AFTER_FINAL: u32 = 8;
/// Units of silence after `final` that end a run, with a runtime that sends statuses, which are late.
const QUIET_BEFORE_STATUS: u32 = 120;
/// Units of silence after a cancel that end a run.
const QUIET_AFTER_CANCEL: u32 = 40;
/// Maximum number of runs whose event numbers are checked; the oldest is removed, and its repeated events count as new.
const RUNS_MAX: usize = 16;
/// Maximum number of pending questions; more are denied at once, and logged.
const ASKS_MAX: usize = 256;
/// Maximum number of client calls that wait for the runtime's reply; more are refused.
const CALLS_MAX: usize = 1024;
/// Methods that clients may not call, with the reason.
const OWNED: [(&str, &str); 4] = [
    ("initialize", "a second one would change the settings that the gateway sent"),
    ("run.start", "the gateway starts runs: prompt the session"),
    ("run.cancel", "the gateway cancels runs: cancel the session"),
    ("session.history", "the gateway's log has the history"),
];

/// Creates the state of a connection.
pub(super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Codelia {
        phase: Phase::Hello,
        capabilities: None,
        next: 1,
        pending: HashMap::new(),
        asks: BTreeMap::new(),
        request_count: 0,
        session: None,
        run: None,
        early: None,
        reports_status: false,
        numbers: VecDeque::new(),
        context: RunContext::default(),
        replay: None,
        armed: false,
    })
}

/// The purpose of a pending request. Tickets of sessions and calls are valid for one gateway process: the next one ignores them.
#[derive(Serialize, Deserialize)]
enum Pending {
    Initialize,
    Start,
    /// The start of a cancelled run after a long silence: if the run begins nevertheless, it is stopped.
    Late,
    Cancel {
        run_id: String,
    },
    Call {
        #[serde(skip)]
        ticket: Option<Ticket>,
    },
    /// The check whether there is a session to resume.
    Find {
        #[serde(skip)]
        ticket: Option<Ticket>,
        native: NativeId,
        known: bool,
        cwd: String,
    },
    /// The request for the history of a session.
    History {
        #[serde(skip)]
        ticket: Option<Ticket>,
        native: NativeId,
        cwd: String,
    },
}

/// The session, once it is open.
#[derive(Serialize, Deserialize)]
struct Session {
    native: NativeId,
    cwd: String,
    /// The conversation that the next `run.start` resumes.
    load: Option<String>,
    /// `true` if the log has the history, so that a new conversation may replace it.
    known: bool,
}

/// The current prompt.
#[derive(Serialize, Deserialize)]
struct Run {
    #[serde(with = "saved::ticket")]
    ticket: Ticket,
    input: Box<RawValue>,
    /// The runtime's id of the run, once known.
    id: Option<String>,
    /// `true` while the run is being cancelled.
    cancel: bool,
    /// `true` if the cancel came before the runtime had named the run: then the run counts as never begun.
    #[serde(default)]
    unnamed: bool,
    /// The client's reason for the cancel.
    reason: Option<String>,
    /// The client's metadata of the prompt.
    #[serde(default)]
    around: events::PromptContext,
    /// The number of times that `run.start` was refused as busy.
    tries: u32,
    /// `true` if `run.start` is still to be sent: at the next wake-up, or once the history is replayed.
    #[serde(rename = "waits")]
    is_deferred: bool,
    /// The text of the run's `final`.
    #[serde(rename = "last_words")]
    final_run: Option<String>,
    /// `true` if the runtime got a cancel and has not refused it.
    #[serde(default)]
    stopping: bool,
    /// Units of silence since the last message of the run.
    #[serde(default)]
    quiet: u32,
    /// `true` if a numbered event of the run was received.
    #[serde(default)]
    counted: bool,
}

impl Run {
    fn new(ticket: Ticket, (input, around): (Box<RawValue>, events::PromptContext)) -> Self {
        Self {
            ticket,
            input,
            id: None,
            cancel: false,
            unnamed: false,
            reason: None,
            around,
            tries: 0,
            is_deferred: false,
            final_run: None,
            stopping: false,
            quiet: 0,
            counted: false,
        }
    }

    /// Returns whether the run sent its `final`.
    fn complete(&self) -> bool {
        self.id.is_some() && self.id == self.final_run
    }
}

/// A run that ended before `run.start` was answered.
#[derive(Serialize, Deserialize)]
struct Early {
    run_id: String,
    status: RunStatus,
    message: Option<String>,
    frame: String,
}

/// The history, while it is replayed.
#[derive(Default, Serialize, Deserialize)]
struct Replay {
    /// The run being replayed.
    run_id: Option<String>,
    /// The replayed events: they come with the session, which is opened once the replay is complete.
    #[serde(skip)]
    drafts: Vec<EventDraft>,
    /// The size of the texts, in bytes.
    #[serde(skip)]
    weight: usize,
}

#[derive(Serialize, Deserialize)]
struct Codelia {
    phase: Phase,
    /// The capabilities that the runtime reported; `None` if it reported nothing.
    #[serde(skip_serializing_if = "Option::is_none", rename = "can")]
    capabilities: Option<Capabilities>,
    next: u64,
    #[serde(default)]
    pending: HashMap<String, Pending>,
    #[serde(default)]
    asks: BTreeMap<RequestKey, PendingRequest>,
    /// The number of questions with a key, which is the occurrence of the next one.
    #[serde(default, rename = "asked")]
    request_count: u64,
    session: Option<Session>,
    run: Option<Run>,
    early: Option<Early>,
    /// `true` if the runtime sends `run.status`.
    #[serde(default, rename = "tells")]
    reports_status: bool,
    /// The id of each of the latest runs, and the expected number of its next event.
    #[serde(default)]
    numbers: VecDeque<(String, i64)>,
    #[serde(rename = "transcript")]
    context: RunContext,
    /// The replay in progress.
    replay: Option<Replay>,
    /// `true` if a wake-up was requested and has not come. A gateway that takes over has requested none.
    #[serde(skip)]
    armed: bool,
}

#[derive(Deserialize)]
struct AgentEvent<'a> {
    run_id: Option<String>,
    seq: Option<i64>,
    event: &'a RawValue,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Started {
    run_id: String,
}

#[derive(Deserialize)]
struct Status {
    run_id: String,
    status: String,
    message: Option<String>,
}

impl Dialect for Codelia {
    fn open(&mut self, out: &mut Outbox) {
        let params = serde_json::json!({
            "protocol_version": VERSION,
            "client": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
            "ui_capabilities": {
                "supports_confirm": true, "supports_prompt": true, "supports_pick": true,
                "supports_permission_preflight_events": true,
                // The page and the terminal UI show Markdown, but no images of an agent.
                "supports_markdown": true, "supports_images": false,
            },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&frame) else { return self.raw(&frame, "not UTF-8", out) };
        match jsonrpc::read(text) {
            Err(reason) => self.raw(&frame, reason, out),
            Ok(message) if jsonrpc::shallow(&frame) => self.message(&frame, message, out),
            Ok(message) => self.too_deep(&frame, message, out),
        }
        self.request_wake(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, cwd, resume, .. } => self.open_session(ticket, cwd, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, &content, out),
            RuntimeCommand::Cancel { ticket: Some(ticket), reason, .. } => self.cancel(ticket, reason, out),
            // Only the gateway starts work in this session.
            RuntimeCommand::Cancel { ticket: None, .. } => {}
            RuntimeCommand::Answer { key, decision } => {
                if let Some(pending) = self.asks.remove(&key) {
                    self.note_activity();
                    out.frames.push(pending.answer(key.id(), &decision));
                }
            }
            RuntimeCommand::Call { ticket, method, params, notify, .. } => {
                self.call(ticket, &method, params.as_deref(), notify, out);
            }
        }
        self.request_wake(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        self.armed = false;
        if self.run.as_ref().is_some_and(|run| run.is_deferred) {
            self.start(out);
        } else {
            self.on_silence(out);
        }
        self.request_wake(out);
    }

    fn save(&self) -> Option<Vec<u8>> {
        saved::save(self)
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        saved::restore(saved).map(|state| *self = state).is_some()
    }

    fn capabilities(&self) -> Capabilities {
        // The protocol's own capabilities, and those of the others that the runtime reports.
        let usual = [Capability::Load, Capability::List, Capability::Reasons, Capability::Models, Capability::Images];
        let reported = Capability::ALL.iter().copied().filter(|one| self.reports(*one));
        usual.into_iter().chain(reported).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.asks.keys().cloned().collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.run.iter().map(|run| run.ticket).collect()
    }

    fn sessions(&self) -> SessionLimit {
        SessionLimit::One
    }

    /// Returns `true`: the protocol has no folder of a session.
    fn fixed_folder(&self) -> bool {
        true
    }
}

/// Returns `{}`.
fn empty() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

fn end(status: RunStatus, message: Option<String>, native: Option<Bytes>) -> RunEnd {
    RunEnd { status, stop_reason: None, message, native }
}

impl Codelia {
    /// Returns whether the runtime reports the capability. One without `server_capabilities` can cancel and ask.
    fn reports(&self, one: Capability) -> bool {
        match &self.capabilities {
            Some(capabilities) => capabilities.has(one),
            None => matches!(one, Capability::Cancel | Capability::Requests),
        }
    }

    fn request(&mut self, pending: Pending, method: &str, params: &impl serde::Serialize, out: &mut Outbox) {
        let id = self.next.to_string();
        self.next += 1;
        out.frames.push(jsonrpc::call(Some(&id), method, params));
        self.pending.insert(id, pending);
    }

    fn native(&self) -> Option<NativeId> {
        self.session.as_ref().map(|session| session.native.clone())
    }

    fn event(&self, draft: EventDraft, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Event { native: self.native(), draft });
    }

    fn raw(&self, frame: &Bytes, reason: &str, out: &mut Outbox) {
        self.event(EventDraft::raw(frame.clone(), reason), out);
    }

    /// Stores a message about the runtime itself under its name.
    fn hook(&self, frame: &Bytes, method: &str, params: Option<&RawValue>, out: &mut Outbox) {
        let params = params.map(jsonrpc::owned);
        let draft = EventDraft::new(Kind::Hook, &serde_json::json!({ "type": method }));
        let body = match params {
            Some(params) => format!(r#"{{"type":"{method}","params":{}}}"#, params.get()).into(),
            None => draft.body.clone(),
        };
        self.event(EventDraft { body, native: Some(frame.clone()), ..draft }, out);
    }

    /// Requests a wake-up for a delayed start, or for an end that may not be reported, unless one is pending.
    fn request_wake(&mut self, out: &mut Outbox) {
        let after = match &self.run {
            Some(run) if run.is_deferred && self.replay.is_none() => BUSY_WAIT,
            Some(run) if self.ends_by_silence(run) => QUIET,
            _ => return,
        };
        if !self.armed {
            self.armed = true;
            out.wake_after = Some(out.wake_after.map_or(after, |other| other.min(after)));
        }
    }

    /// Returns whether silence ends the run: it sent its `final` or was cancelled, and has no open question.
    fn ends_by_silence(&self, run: &Run) -> bool {
        !run.is_deferred && (run.complete() || run.stopping) && self.asks.is_empty()
    }

    /// Records a message of the run.
    fn note_activity(&mut self) {
        if let Some(run) = &mut self.run {
            run.quiet = 0;
        }
    }

    /// Counts a unit of silence, and ends a run that has been silent for long enough.
    fn on_silence(&mut self, out: &mut Outbox) {
        if !self.run.as_ref().is_some_and(|run| self.ends_by_silence(run)) {
            return;
        }
        let reports_status = self.reports_status;
        let Some(run) = &mut self.run else { return };
        run.quiet += 1;
        let (max, status) = match (run.complete(), reports_status) {
            (true, true) => (QUIET_BEFORE_STATUS, RunStatus::Completed),
            (true, false) => (QUIET_AFTER_FINAL, RunStatus::Completed),
            (false, _) => (QUIET_AFTER_CANCEL, RunStatus::Cancelled),
        };
        if run.quiet < max {
            return;
        }
        let named = run.id.is_some();
        for pending in self.pending.values_mut().filter(|pending| !named && matches!(pending, Pending::Start)) {
            *pending = Pending::Late;
        }
        let text = "the runtime got a cancel and did not report the end of the run";
        let message = (status == RunStatus::Cancelled).then(|| text.to_owned());
        self.finish(end(status, message, None), out);
    }

    fn prompt(&mut self, ticket: Ticket, native: NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let problem = match (&self.session, &self.run) {
            (None, _) => Some("no session is open".to_owned()),
            (Some(_), Some(_)) => Some("a run is active".to_owned()),
            (Some(_), None) => None,
        };
        let input = problem.map_or_else(|| events::input(content), Err);
        match input {
            Ok(input) => {
                self.run = Some(Run::new(ticket, input));
                self.early = None;
                if self.replay.is_none() {
                    self.context = RunContext::default();
                }
                self.start(out);
            }
            Err(problem) => {
                let end = end(RunStatus::Error, Some(problem), None);
                out.events.push(RuntimeEvent::Ended { native, ticket, end });
            }
        }
    }

    /// Sends the delayed prompt.
    fn start(&mut self, out: &mut Outbox) {
        let (Some(run), Some(session)) = (&mut self.run, &self.session) else { return };
        // A run must not start during the replay of the history: its events would count as history.
        run.is_deferred = self.replay.is_some();
        if run.is_deferred {
            return;
        }
        let context = run.around.context(&session.cwd);
        let (session_id, meta) = (session.load.as_deref(), run.around.meta.as_deref());
        let mut params = run.around.extra();
        ui_protocol::set(&mut params, "input", &run.input);
        ui_protocol::set(&mut params, "ui_context", &context);
        for (name, value) in
            [("session_id", session_id.map(|id| jsonrpc::to_raw(&id))), ("meta", meta.map(jsonrpc::owned))]
        {
            if let Some(value) = value {
                params.insert(name.into(), value);
            }
        }
        self.request(Pending::Start, "run.start", &params, out);
    }

    fn finish(&mut self, mut end: RunEnd, out: &mut Outbox) {
        let (Some(run), Some(native)) = (self.run.take(), self.native()) else { return };
        self.context.ready = None;
        self.context.just_called = false;
        if run.unnamed && end.status == RunStatus::Completed {
            end.status = RunStatus::Cancelled;
        }
        out.events.push(RuntimeEvent::Ended { native, ticket: run.ticket, end });
    }

    fn cancel(&mut self, ticket: Ticket, reason: Option<String>, out: &mut Outbox) {
        let Some(run) = self.run.as_mut().filter(|run| run.ticket == ticket) else { return };
        run.cancel = true;
        if run.is_deferred {
            // The runtime never accepted it.
            return self.finish(end(RunStatus::Cancelled, None, None), out);
        }
        (run.stopping, run.quiet) = (true, 0);
        run.unnamed |= run.id.is_none();
        run.reason = reason;
        let name = run.id.clone();
        // The session has answered every question that it knows; another one may be on the way.
        for (key, pending) in std::mem::take(&mut self.asks) {
            out.frames.push(pending.answer(key.id(), &Decision::Withdrawn));
            out.events.push(RuntimeEvent::TakenBack { native: self.native(), key, elsewhere: None });
        }
        // While `run.start` is unanswered the run has no id; the cancel is sent after the answer.
        if let Some(run_id) = name {
            self.send_cancel(run_id, out);
        }
    }

    fn send_cancel(&mut self, run_id: String, out: &mut Outbox) {
        let mut params = serde_json::json!({ "run_id": run_id });
        if let Some(reason) = self.run.as_ref().and_then(|run| run.reason.as_deref()) {
            params["reason"] = reason.into();
        }
        self.request(Pending::Cancel { run_id }, "run.cancel", &params, out);
    }

    fn call(&mut self, ticket: Ticket, method: &str, params: Option<&RawValue>, notify: bool, out: &mut Outbox) {
        let params = params.filter(|params| params.get() != "null").unwrap_or(empty());
        let calls = self.pending.values().filter(|pending| matches!(pending, Pending::Call { .. })).count();
        let owner = OWNED.iter().find(|(owned, _)| *owned == method);
        // The only notification that the runtime accepts; it silently ignores all others.
        let context = method == "ui.context.update";
        let problem = if self.phase != Phase::Ready {
            Some(RuntimeError::new(INTERNAL, "the runtime is not ready"))
        } else if let Some((_, reason)) = owner {
            Some(RuntimeError::new(METHOD_NOT_FOUND, format!("{method} can only be called by the gateway: {reason}")))
        } else if !method.contains('.') || method.starts_with("ui.") && !context || notify && !context {
            Some(RuntimeError::new(METHOD_NOT_FOUND, format!("{method}: the runtime does not support this message")))
        } else if !params.get().starts_with('{') {
            Some(RuntimeError::new(INVALID_PARAMS, "params must be an object"))
        } else if calls >= CALLS_MAX && !context {
            Some(RuntimeError::new(BUSY, format!("{CALLS_MAX} calls are already waiting for the runtime's response")))
        } else {
            None
        };
        match problem {
            Some(fault) => out.refuse_call(ticket, self.native(), method, notify, fault),
            None if context => {
                out.frames.push(jsonrpc::notify(method, &params));
                if !notify {
                    out.events.push(RuntimeEvent::Replied { ticket, reply: Ok(jsonrpc::owned(empty())) });
                }
            }
            None if method == "model.set" => {
                let params = session_scoped(params);
                self.request(Pending::Call { ticket: Some(ticket) }, method, &params, out);
            }
            None => self.request(Pending::Call { ticket: Some(ticket) }, method, &params, out),
        }
    }

    fn message(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        match message {
            RpcMessage::Request { id, method, params } => self.request_received(frame, id, &method, params, out),
            RpcMessage::Notification { method, params } => self.notified(frame, &method, params, out),
            RpcMessage::Response { id, reply } => match self.take_pending(id) {
                Some(pending) => self.reply(frame, pending, reply, out),
                None => self.raw(frame, "a response to an unknown request", out),
            },
        }
    }

    /// Takes the gateway's pending request with this id, which is a string.
    fn take_pending(&mut self, id: &RawValue) -> Option<Pending> {
        self.pending.remove(string(id)?.as_ref())
    }

    /// Answers a message that is nested too deep to be forwarded, so that nobody waits forever.
    fn too_deep(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        self.raw(frame, "nested too deeply", out);
        match message {
            RpcMessage::Request { id, method, .. } => out.frames.push(ask::no(id.get(), &method)),
            RpcMessage::Response { id, .. } => {
                if let Some(pending) = self.take_pending(id) {
                    let fault = RuntimeError::new(INTERNAL, "the runtime's response is nested too deeply");
                    self.reply(frame, pending, Err(fault), out);
                }
            }
            RpcMessage::Notification { .. } => {}
        }
    }

    fn notified(&mut self, frame: &Bytes, method: &str, params: Option<&RawValue>, out: &mut Outbox) {
        match method {
            "agent.event" => match params.and_then(object::<AgentEvent<'_>>) {
                Some(event) => self.agent_event(frame, &event, out),
                None => self.raw(frame, "an agent event that could not be parsed", out),
            },
            "run.status" => match params.and_then(object::<Status>) {
                Some(status) => self.status(frame, params, status, out),
                None => self.raw(frame, "a run status that could not be parsed", out),
            },
            "run.context" => match params.and_then(|params| events::usage(frame, params)) {
                Some(draft) => self.event(draft, out),
                None => self.raw(frame, "a run context that could not be parsed", out),
            },
            "run.diagnostics" | "client.tool.cancel" => self.hook(frame, method, params, out),
            _ => self.raw(frame, "unknown notification", out),
        }
    }

    fn agent_event(&mut self, frame: &Bytes, event: &AgentEvent<'_>, out: &mut Outbox) {
        if self.replay.is_some() {
            return self.replayed(frame, event, out);
        }
        // A negative number marks a message that is never numbered: a hidden one.
        if let (Some(run_id), Some(seq @ 0..)) = (&event.run_id, event.seq) {
            let at = self.numbers.iter().position(|(run, _)| run == run_id).unwrap_or_else(|| {
                if self.numbers.len() >= RUNS_MAX {
                    self.numbers.pop_front();
                }
                self.numbers.push_back((run_id.clone(), 0));
                self.numbers.len() - 1
            });
            let own = self.run.as_mut().filter(|run| run.id.as_ref().is_none_or(|id| id == run_id));
            let first = own.is_some_and(|run| !std::mem::replace(&mut run.counted, true));
            if first && seq == 0 {
                // The runtime reused the id of an earlier run: the numbers start again, or the run's events would count as repeated.
                self.numbers[at].1 = 0;
            }
            let expected = self.numbers[at].1;
            if seq < expected {
                // The log already has a repeated event.
                return;
            }
            self.numbers[at].1 = seq.saturating_add(1);
            if seq > expected {
                let message = format!(
                    "gap in the runtime's event numbers: expected event {expected} of run {run_id}, received {seq}"
                );
                self.event(EventDraft::error("runtime_gap", &message, Some(frame)), out);
            }
        }
        if let Some(run) = &mut self.run {
            // Before `run.start` is answered the run has no id: the answer shows whether the event belongs to it.
            let run_id = event.run_id.as_ref().or(run.id.as_ref());
            if run.id.is_none() || run_id == run.id.as_ref() {
                run.quiet = 0;
                if events::is_final(event.event) {
                    run.final_run = run_id.cloned();
                }
            }
        }
        let draft = self.context.read(frame, event.event, event.run_id.as_deref());
        self.event(events::with_meta(draft, event.meta), out);
    }

    fn status(&mut self, frame: &Bytes, params: Option<&RawValue>, status: Status, out: &mut Outbox) {
        self.reports_status = true;
        if self.run.as_ref().is_some_and(|run| run.id.as_ref() == Some(&status.run_id)) {
            self.note_activity();
        }
        // The gateway derives `running` and `awaiting_ui` itself; they are stored as the runtime sent them.
        let Some(ended) = end_status(&status.status) else { return self.hook(frame, "run.status", params, out) };
        match &self.run {
            Some(Run { id: Some(id), .. }) if *id == status.run_id => {
                self.finish(end(ended, status.message, Some(frame.clone())), out);
            }
            Some(Run { id: None, is_deferred: false, .. }) => {
                let frame_text = String::from_utf8_lossy(frame).into_owned();
                let Status { run_id, message, .. } = status;
                self.early = Some(Early { run_id, status: ended, message, frame: frame_text });
                self.hook(frame, "run.status", params, out);
            }
            _ => self.hook(frame, "run.status", params, out),
        }
    }
}

/// Returns the end that the status of a run stands for; `None` for a run that continues.
fn end_status(status: &str) -> Option<RunStatus> {
    match status {
        "completed" => Some(RunStatus::Completed),
        "error" => Some(RunStatus::Error),
        "cancelled" => Some(RunStatus::Cancelled),
        _ => None,
    }
}

/// Returns the params of `model.set` with a scope: without one the runtime may change its configuration.
fn session_scoped(params: &RawValue) -> Box<RawValue> {
    #[derive(Deserialize)]
    struct Scope<'a> {
        #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
        scope: Option<&'a RawValue>,
    }
    let rest = params.get().trim_start_matches('{').trim_start();
    match object::<Scope<'_>>(params) {
        Some(Scope { scope: None }) => {
            let comma = if rest.starts_with('}') { "" } else { "," };
            let scoped = RawValue::from_string(format!(r#"{{"scope":"session"{comma}{rest}"#));
            scoped.unwrap_or_else(|_| params.to_owned())
        }
        _ => params.to_owned(),
    }
}
