//! The state between the terminal UI and the gateway, and the actions that result from each message. Pure.

mod calls;

use calls::PendingRunStart;
pub(super) use calls::{CallPurpose, NoReply, RpcError};
use std::collections::VecDeque;

use plexus_protocol::api::KnownItems;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::rpc::{CancelParams, ListSessions, SessionNew, SessionParams, StartRun};
use plexus_protocol::api::stream::StreamHello;
use plexus_protocol::ui_protocol::{
    self, Members, ModelChoice, ModelList, RunCancel, SessionHistory, unknown_start_members,
};
use plexus_protocol::{
    Answer, Capabilities, Capability, Request, RequestId, RunId, RunStatus, RuntimeId, SessionId, SessionInfo,
    server_capabilities,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::events::{EventTranslator, Extras, Number, UiMessage, private_event};
use super::panels::{PanelAction, PanelQueue, PanelReply};
use plexus_client::{ClientEvent, Error};

/// The supported version of the UI protocol.
const VERSION: &str = "0";
/// The dialect of runtimes of this protocol.
const OWN_DIALECT: &str = "codelia";
/// Maximum number of events of history, unless the terminal UI requests fewer; its own default.
const PAST_MAX: usize = 1500;
/// Maximum number of runs of history, unless the terminal UI requests fewer; its own default.
const RUNS_MAX: usize = 20;
/// Maximum number of sessions in a list, unless the terminal UI requests fewer; its own default.
const LIST_MAX: usize = 50;

/// The error code of a run that does not exist.
const RUN_NOT_FOUND: i64 = -32002;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
/// The error code of a cancellation by the terminal UI's user.
const USER_CANCELLED: i64 = -32003;
/// The error code of a second session in a runtime that supports only one.
const ONE_SESSION: i64 = plexus_protocol::codes::ONE_SESSION;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// An action for the bridge.
#[derive(Debug)]
pub(super) enum BridgeAction {
    /// Writes a line to the terminal UI, without its line feed.
    Send(String),
    /// Follows this session instead of the previous one, from its latest runs and events on.
    Follow { session: SessionId, runs: usize, events: usize },
    /// Writes a line to the log.
    Log(String),
    /// Calls the gateway and returns the outcome with `purpose`. With `retry`, the call may be sent twice.
    Call { purpose: Box<CallPurpose>, method: String, params: Value, retry: bool },
}

/// The followed session. The dialect and the runtime are known once the gateway has described it.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) dialect: String,
    pub(super) runtime: Option<RuntimeId>,
}

/// The history while it is being replayed.
struct HistoryReplay {
    messages: VecDeque<UiMessage>,
    /// The id of the terminal UI's `session.history` that waits for the end.
    id: Option<Value>,
    events: usize,
    event_limit: usize,
    runs: usize,
    truncated: bool,
}

/// The arguments of the bridge, resolved.
pub(super) struct BridgeTarget {
    pub(super) session: Option<Session>,
    /// The runtime of new sessions.
    pub(super) runtime: Option<RuntimeId>,
    /// The capabilities of the runtime that will be used, as far as known; the bridge offers these.
    pub(super) capabilities: Option<Capabilities>,
    pub(super) cwd: String,
    /// A notice to show once the terminal UI has sent `initialize`.
    pub(super) notice: Option<String>,
    /// A unique prefix of idempotency keys.
    pub(super) key: String,
}

pub(super) struct BridgeState {
    target: BridgeTarget,
    session: Option<Session>,
    translator: EventTranslator,
    panel_queue: PanelQueue,
    past: Option<HistoryReplay>,
    /// `run.start`s that wait until the history is replayed.
    delayed_starts: Vec<PendingRunStart>,
    /// The number of `run.start`s that the gateway has not answered.
    starting: usize,
    /// The number of `run.start`s sent.
    started: u64,
    /// `true` if a session is being opened.
    opening: bool,
    disconnected: bool,
    /// `true` if the terminal UI has sent `initialize`.
    initialized: bool,
    extras: Extras,
}

#[derive(Deserialize)]
struct FromUi<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<UiError>,
}

/// An error of the terminal UI.
#[derive(Deserialize)]
struct UiError {
    #[serde(default)]
    code: Option<i64>,
    #[serde(default)]
    message: Option<String>,
}

/// The parameters of the terminal UI's `initialize`.
#[derive(Default, Deserialize)]
struct UiInitialize {
    #[serde(default)]
    ui_capabilities: Option<Box<RawValue>>,
}

/// The parameters of the terminal UI's `session.list`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UiSessionList {
    limit: Option<usize>,
    scope: Option<String>,
}

/// A member of the terminal UI's `run.start` that the gateway does not have.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Compaction {
    force_compaction: bool,
}

/// The result of `session.history` in the UI protocol.
#[derive(Serialize)]
struct HistoryEnd {
    runs: usize,
    events_sent: usize,
    truncated: bool,
}

/// The params of `ui.request.answer`.
#[derive(Serialize)]
struct AnswerParams<'a> {
    request_id: &'a RequestId,
    idempotency_key: String,
    #[serde(flatten)]
    answer: &'a Answer,
}

impl BridgeState {
    pub(super) fn new(target: BridgeTarget) -> Self {
        Self {
            target,
            session: None,
            translator: EventTranslator::default(),
            panel_queue: PanelQueue::default(),
            past: None,
            delayed_starts: Vec::new(),
            starting: 0,
            started: 0,
            opening: false,
            disconnected: false,
            initialized: false,
            extras: Extras::default(),
        }
    }

    /// Returns whether events may be handled: not before a `run.start` is answered, so that its run is known to be this client's.
    pub(super) fn can_take_events(&self) -> bool {
        self.starting == 0
    }

    #[cfg(test)]
    pub(super) fn current_id(&self) -> Option<&str> {
        self.panel_queue.current_id()
    }

    // === messages of the terminal UI ===

    /// Handles a line of the terminal UI. An invalid message gets no reply, as from its own runtime.
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<BridgeAction>) {
        let Ok(FromUi { id, method, params, result, error }) = serde_json::from_str::<FromUi<'_>>(line) else { return };
        let Some(method) = method else {
            let Some(Value::String(id)) = id else { return };
            let mut actions = Vec::new();
            match (error, result) {
                (None, Some(result)) => {
                    self.panel_queue.on_answer(&id, PanelReply::read(result.get()), &mut actions);
                }
                // The error denies every type of question.
                (Some(UiError { code: Some(USER_CANCELLED), .. }), _) => {
                    self.panel_queue.on_answer(&id, PanelReply::Cancelled, &mut actions)
                }
                (Some(error), _) => {
                    let reason = error.message.as_deref().unwrap_or("it answered with an error");
                    self.panel_queue.show_failed(&id, reason, &mut actions);
                }
                (None, None) => {}
            }
            return self.perform_panel_actions(actions, out);
        };
        if !self.initialized && method != "initialize" {
            // Before `initialize` the terminal UI's panels are unknown.
            if let Some(id) = id {
                out.push(refuse(&id, INVALID_REQUEST, "send `initialize` first"));
            }
            return;
        }
        match id {
            Some(id) => self.request(id, &method, params, out),
            // The only notification is used only by a runtime of this protocol.
            None if method == "ui.context.update" => {
                if let Some(session) = self.session.as_ref().filter(|session| session.dialect == OWN_DIALECT) {
                    let purpose = CallPurpose::Pass { id: Value::Null };
                    out.push(call(purpose, &method, &in_session(params, &session.id), false));
                }
            }
            None => {}
        }
    }

    fn request(&mut self, id: Value, method: &str, params: Option<&RawValue>, out: &mut Vec<BridgeAction>) {
        match method {
            "initialize" => self.hello(&id, params, out),
            "run.start" => self.on_run_start(id, params, out),
            "run.cancel" => match (&self.session, read_params::<RunCancel>(params)) {
                (_, None) => out.push(refuse(&id, INVALID_PARAMS, "run.cancel needs {\"run_id\": ..}")),
                (Some(session), Some(RunCancel { run_id, reason })) => {
                    let params =
                        CancelParams { run_id: Some(run_id.clone()), session_id: Some(session.id.clone()), reason };
                    out.push(call(CallPurpose::Cancel { id, run: run_id }, method, &params, true));
                }
                (None, Some(_)) => out.push(refuse(&id, RUN_NOT_FOUND, "run not found: no session is open")),
            },
            "session.list" => {
                let UiSessionList { limit, scope } = parse(params);
                let this_folder = scope.as_deref() == Some("current_workspace");
                let purpose = CallPurpose::List { id, limit: limit.unwrap_or(LIST_MAX), this_folder };
                out.push(call(purpose, method, &ListSessions::default(), true));
            }
            "session.history" => {
                let Some(SessionHistory { session_id, max_runs, max_events }) = read_params(params) else {
                    return out.push(refuse(&id, INVALID_PARAMS, "session.history needs {\"session_id\": ..}"));
                };
                let (event_limit, runs) = (max_events.unwrap_or(PAST_MAX), max_runs.unwrap_or(RUNS_MAX));
                self.follow(session_id, Some(id), event_limit, runs, out);
            }
            "model.list" => match &self.session {
                Some(session) => {
                    out.push(call(CallPurpose::Models { id }, method, &in_session(params, &session.id), true))
                }
                None => out.push(reply(&id, &no_models(self.target.runtime.as_ref()))),
            },
            "model.set" => match &self.session {
                Some(session) if session.dialect == OWN_DIALECT => {
                    out.push(call(CallPurpose::Pass { id }, method, &in_session(params, &session.id), false));
                }
                Some(session) => match parse(params) {
                    choice @ ModelChoice { name: Some(_), .. } => {
                        let params = SessionParams { session_id: Some(session.id.clone()) };
                        out.push(call(CallPurpose::FindModel { id, choice }, "model.list", &params, true));
                    }
                    ModelChoice { name: None, .. } => {
                        let message = "this agent's model cannot be reset: name a model";
                        out.push(refuse(&id, INVALID_PARAMS, message));
                    }
                },
                None => out.push(refuse(&id, INVALID_PARAMS, "no session is open: the first prompt opens one")),
            },
            _ => match &self.session {
                Some(session) => {
                    out.push(call(CallPurpose::Pass { id }, method, &in_session(params, &session.id), false));
                }
                None => {
                    let message = format!("{method}: no session is open yet, so there is no agent to ask");
                    out.push(refuse(&id, METHOD_NOT_FOUND, &message));
                }
            },
        }
    }

    fn hello(&mut self, id: &Value, params: Option<&RawValue>, out: &mut Vec<BridgeAction>) {
        self.initialized = true;
        let UiInitialize { ui_capabilities } = parse(params);
        self.panel_queue.set_panels(parse(ui_capabilities.as_deref()));
        self.extras = parse(ui_capabilities.as_deref());
        self.translator.extras(self.extras);
        // The agent's capabilities, as far as known; a method that a session lacks is then refused with a message.
        let mut can = server_capabilities([self.target.capabilities.as_ref()], Capability::ALL);
        // The bridge itself announces the tool call of a question.
        can.extend(Capability::PermissionPreflight.ui_name().map(|name| (name.to_owned(), true.into())));
        let result = json!({
            "protocol_version": VERSION,
            "server": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
            "server_capabilities": can,
        });
        out.push(reply(id, &result));
        if let Some(notice) = self.target.notice.take() {
            self.notice(&notice, out);
        }
        if let Some(session) = self.target.session.clone().filter(|_| self.session.is_none()) {
            self.follow(session.id.clone(), None, PAST_MAX, usize::MAX, out);
            self.session = Some(session);
        }
    }

    fn on_run_start(&mut self, id: Value, params: Option<&RawValue>, out: &mut Vec<BridgeAction>) {
        if parse::<Compaction>(params).force_compaction {
            let message = "the gateway cannot start a compaction: use the agent's own command";
            return out.push(refuse(&id, METHOD_NOT_FOUND, message));
        }
        let params = params.map_or("{}", RawValue::get);
        match serde_json::from_str::<StartRun>(params) {
            Ok(StartRun { session_id, input, ui_context, meta, .. }) => {
                let extra_members = unknown_start_members(params);
                let start = StartRun { session_id, input, ui_context, meta, extra_members, ..StartRun::default() };
                self.start(PendingRunStart { id, start: Box::new(start) }, out);
            }
            Err(error) => out.push(refuse(&id, INVALID_PARAMS, &format!("run.start: {error}"))),
        }
    }

    fn start(&mut self, PendingRunStart { id, mut start }: PendingRunStart, out: &mut Vec<BridgeAction>) {
        let is_other = |id: &SessionId| self.session.as_ref().is_none_or(|session| session.id != *id);
        if let Some(session) = start.session_id.take().filter(is_other) {
            self.follow(session, None, PAST_MAX, RUNS_MAX, out);
        }
        let pending = PendingRunStart { id, start };
        match &self.session {
            Some(_) if self.past.is_some() => self.delayed_starts.push(pending),
            Some(session) => {
                self.starting += 1;
                self.started += 1;
                let PendingRunStart { id, mut start } = pending;
                start.session_id = Some(session.id.clone());
                // With this key, a prompt is run once, however often it is sent.
                start.idempotency_key = Some(format!("codelia-{}-{}", self.target.key, self.started));
                out.push(call(CallPurpose::Start { id }, "run.start", &start, true));
            }
            None if self.opening => {
                out.push(refuse(&pending.id, -32001, "a session is being opened: try again in a moment"))
            }
            None => {
                self.opening = true;
                match self.target.runtime.clone() {
                    Some(runtime) => self.open(pending, runtime, out),
                    None => {
                        let purpose = CallPurpose::Runtimes { start: pending };
                        out.push(call(purpose, "runtime.list", &json!({}), true));
                    }
                }
            }
        }
    }

    fn open(&mut self, start: PendingRunStart, runtime: RuntimeId, out: &mut Vec<BridgeAction>) {
        let cwd = Some(self.target.cwd.clone());
        let params = SessionNew { runtime_id: runtime.clone(), cwd, title: None, native_id: None };
        out.push(call(CallPurpose::Open { start, runtime }, "session.new", &params, false));
    }

    /// Continues with a prompt in this session, once its history is replayed.
    fn join(&mut self, start: PendingRunStart, session: SessionId, out: &mut Vec<BridgeAction>) {
        self.follow(session, None, PAST_MAX, RUNS_MAX, out);
        self.delayed_starts.push(start);
    }

    fn follow(
        &mut self,
        id: SessionId,
        history: Option<Value>,
        event_limit: usize,
        runs: usize,
        out: &mut Vec<BridgeAction>,
    ) {
        if let Some(HistoryReplay { id: Some(id), .. }) = self.past.take() {
            out.push(refuse(&id, INTERNAL, "another session was requested meanwhile"));
        }
        self.panel_queue.forget();
        self.translator.forget();
        self.past = Some(HistoryReplay {
            messages: VecDeque::new(),
            id: history,
            events: 0,
            event_limit,
            runs,
            truncated: false,
        });
        self.session = Some(Session { id: id.clone(), dialect: String::new(), runtime: None });
        out.push(BridgeAction::Follow { session: id, runs, events: event_limit });
    }

    // === messages of the gateway ===

    /// Handles an event of the followed session.
    pub(super) fn on_event(&mut self, event: ClientEvent, out: &mut Vec<BridgeAction>) {
        match event {
            ClientEvent::Hello(hello) => {
                self.panel_queue.set_limit(hello.you.approve_up_to);
                if let Some(session) = &mut self.session {
                    let listed = hello.sessions.iter().find(|info| info.session_id == session.id);
                    if let Some(info) = listed {
                        (session.dialect, session.runtime) = (info.dialect.clone(), Some(info.runtime_id.clone()));
                        self.panel_queue.set_own_dialect(session.dialect == OWN_DIALECT);
                    }
                }
                if std::mem::take(&mut self.disconnected) {
                    self.notice("the gateway is back", out);
                }
                if hello.resume != ResumeVerdict::Ok {
                    self.resync(&hello, out);
                }
            }
            ClientEvent::Event(event) => {
                let messages = self.translator.translate(&event.envelope, self.past.is_some());
                self.send_messages(messages, out);
            }
            ClientEvent::Live => self.finish_history(out),
            ClientEvent::Lost(reason) => {
                if !std::mem::replace(&mut self.disconnected, true) {
                    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
                    self.notice(&format!("the gateway does not respond{reason}: this continues when it is back"), out);
                }
            }
            ClientEvent::Older => {
                if let Some(past) = &mut self.past {
                    past.truncated = true;
                }
            }
            ClientEvent::SessionDeleted(id) => {
                if self.session.as_ref().is_some_and(|session| session.id == id) {
                    self.notice("the session was deleted", out);
                }
            }
            ClientEvent::Snapshot(_)
            | ClientEvent::Session(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeRemoved(_)
            | ClientEvent::Presence(_) => {}
        }
    }

    /// Updates the state from `hello` after events were lost.
    fn resync(&mut self, hello: &StreamHello, out: &mut Vec<BridgeAction>) {
        let resume = hello.resume.as_str();
        self.notice(
            &format!("some events are missing here ({resume}): `plexus export` has everything that is stored"),
            out,
        );
        let mut started = hello.runs.iter().filter(|run| run.status != RunStatus::Queued);
        let mut messages = Vec::new();
        if let Some((run, _)) = self.translator.current_run()
            && !started.any(|other| other.run_id.as_str() == run)
        {
            self.translator.forget_run(&mut messages);
        }
        self.send_messages(messages, out);
        let ids: Vec<String> = hello.requests.iter().map(|request| request.request_id.to_string()).collect();
        let (is_live, mut actions) = (self.past.is_none(), Vec::new());
        self.panel_queue.close_others(&ids, is_live, &mut actions);
        for request in &hello.requests {
            self.panel_queue.opened(Box::new(Request::clone(request)), is_live, &mut actions);
        }
        self.perform_panel_actions(actions, out);
    }

    /// Reports that the session can no longer be followed.
    pub(super) fn lost(&mut self, reason: &str, out: &mut Vec<BridgeAction>) {
        let session = self.session.take();
        if let Some(HistoryReplay { id: Some(id), .. }) = self.past.take() {
            out.push(refuse(&id, -32004, reason));
        } else {
            self.notice(&format!("error: {reason}"), out);
            if let (Some(run), Some(_)) = (self.translator.current_run().map(|(run, _)| run.to_owned()), session) {
                out.push(status(&run, RunStatus::Error.as_str(), Some("the session is gone")));
            }
        }
        for start in std::mem::take(&mut self.delayed_starts) {
            out.push(refuse(&start.id, -32004, reason));
        }
    }

    /// Ends the replay of the history.
    fn finish_history(&mut self, out: &mut Vec<BridgeAction>) {
        let Some(mut past) = self.past.take() else { return self.history_done(out) };
        let run = self.translator.current_run().map(|(run, status)| (run.to_owned(), status));
        // Codelia's terminal UI gets the available part of an unfinished message; for others, the rest of it would change the numbers of
        // the following events.
        let mut rest = Vec::new();
        if self.extras.terminal {
            self.translator.flush(run.as_ref().map_or("", |(run, _)| run.as_str()), &mut rest);
        }
        self.translator.finish(&mut rest);
        past.add(rest);
        let (runs, events, truncated) = past.limit_runs();
        if truncated && past.id.is_none() {
            self.notice("the beginning is not shown here: `plexus export` has everything", out);
        }
        for message in past.messages {
            self.send_message(message, out);
        }
        self.history_done(out);
        if let Some(id) = &past.id {
            out.push(reply(id, &HistoryEnd { runs, events_sent: events, truncated }));
        }
        if let Some((run, word)) = run {
            out.push(status(&run, word, None));
        }
        let mut actions = Vec::new();
        self.panel_queue.next(&mut actions);
        self.perform_panel_actions(actions, out);
        for start in std::mem::take(&mut self.delayed_starts) {
            self.start(start, out);
        }
    }

    /// Reports the end of the history.
    fn history_done(&mut self, out: &mut Vec<BridgeAction>) {
        if self.extras.gateway {
            let mut messages = Vec::new();
            private_event("", &json!({ "type": "plexus.live" }), &mut messages);
            self.send_messages(messages, out);
        }
    }

    fn send_messages(&mut self, mut messages: Vec<UiMessage>, out: &mut Vec<BridgeAction>) {
        self.translator.finish(&mut messages);
        let is_live = self.past.is_none();
        let mut actions = Vec::new();
        for message in messages {
            match message {
                UiMessage::RequestOpened(request) => self.panel_queue.opened(request, is_live, &mut actions),
                UiMessage::RequestResolved(resolved) => self.panel_queue.resolved(&resolved, is_live, &mut actions),
                message => match &mut self.past {
                    Some(past) => past.add(vec![message]),
                    None => self.send_message(message, out),
                },
            }
            self.perform_panel_actions(std::mem::take(&mut actions), out);
        }
    }

    fn perform_panel_actions(&mut self, actions: Vec<PanelAction>, out: &mut Vec<BridgeAction>) {
        for action in actions {
            match action {
                PanelAction::Ask(id, method, params) => {
                    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                    out.push(BridgeAction::Send(message.to_string()));
                }
                PanelAction::Answer(request, answer) => {
                    // After a lost connection the answer is sent again with the same key.
                    let key = format!("codelia-{}-{request}", self.target.key);
                    let params = AnswerParams { request_id: &request, idempotency_key: key, answer: &answer };
                    let purpose = CallPurpose::Answer { request: request.clone() };
                    out.push(call(purpose, "ui.request.answer", &params, true));
                }
                PanelAction::Notice(text) => self.notice(&text, out),
                PanelAction::Show(text) => {
                    let run = self.translator.current_run().map_or(String::new(), |(run, _)| run.to_owned());
                    let mut messages = Vec::new();
                    private_event(&run, &json!({ "type": "reasoning", "content": text }), &mut messages);
                    self.translator.finish(&mut messages);
                    messages.into_iter().for_each(|message| self.send_message(message, out));
                }
            }
        }
    }

    /// Shows a notice of the gateway.
    fn notice(&mut self, text: &str, out: &mut Vec<BridgeAction>) {
        let mut messages = Vec::new();
        self.translator.notice(text, &mut messages);
        self.translator.finish(&mut messages);
        for message in messages {
            self.send_message(message, out);
        }
    }

    fn send_message(&mut self, message: UiMessage, out: &mut Vec<BridgeAction>) {
        match message {
            UiMessage::Event { run, event, own, number } => {
                let mut params = own.unwrap_or_default();
                ui_protocol::set(&mut params, "run_id", &run);
                if let Number::Fixed(seq) = number {
                    ui_protocol::set(&mut params, "seq", &seq);
                }
                if let Ok(event) = RawValue::from_string(event) {
                    params.insert("event".into(), event);
                }
                out.push(notification("agent.event", &params));
            }
            UiMessage::Status { run, status, message: text, more: mut params } => {
                ui_protocol::set(&mut params, "run_id", &run);
                ui_protocol::set(&mut params, "status", &status);
                if let Some(text) = text {
                    ui_protocol::set(&mut params, "message", &text);
                }
                out.push(notification("run.status", &params));
            }
            UiMessage::Notify { method, params } => {
                out.push(BridgeAction::Send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)));
            }
            UiMessage::Log(text) => out.push(BridgeAction::Log(text)),
            UiMessage::RequestOpened(_) | UiMessage::RequestResolved(_) => {}
        }
    }
}

impl HistoryReplay {
    fn add(&mut self, messages: Vec<UiMessage>) {
        for message in messages {
            match &message {
                UiMessage::Event { .. } => self.events += 1,
                // The status of a past run is not shown.
                UiMessage::Status { .. } | UiMessage::Log(_) => continue,
                _ => {}
            }
            self.messages.push_back(message);
            while self.events > self.event_limit.max(1) {
                self.truncated = true;
                self.drop_oldest();
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(UiMessage::Event { .. }) = self.messages.pop_front() {
            self.events -= 1;
        }
    }

    /// Drops all but the requested runs; returns the remaining numbers of runs and events, and whether some were dropped.
    fn limit_runs(&mut self) -> (usize, usize, bool) {
        loop {
            let mut runs: Vec<&str> = Vec::new();
            for message in &self.messages {
                if let UiMessage::Event { run, .. } = message
                    && !runs.contains(&run.as_str())
                {
                    runs.push(run);
                }
            }
            if runs.len() <= self.runs.max(1) {
                return (runs.len(), self.events, self.truncated);
            }
            let first = runs[0].to_owned();
            self.truncated = true;
            while self
                .messages
                .front()
                .is_some_and(|message| !matches!(message, UiMessage::Event { run, .. } if *run != first))
            {
                self.drop_oldest();
            }
        }
    }
}

/// A call of the gateway; `retry`: it may be sent twice.
fn call(purpose: CallPurpose, method: &str, params: &impl Serialize, retry: bool) -> BridgeAction {
    // Plain JSON, which always can be written.
    let params = serde_json::to_value(params).unwrap_or_default();
    BridgeAction::Call { purpose: Box::new(purpose), method: method.to_owned(), params, retry }
}

/// Reads a message of the terminal UI; what it does not have, or has in another form, is the default.
fn parse<T: DeserializeOwned + Default>(json: Option<&RawValue>) -> T {
    read_params(json).unwrap_or_default()
}

/// Reads the parameters of the terminal UI; `None` if they do not fit.
fn read_params<T: DeserializeOwned>(json: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(json?.get()).ok()
}

fn no_models(provider: Option<&RuntimeId>) -> ModelList {
    let provider = provider.map_or("plexus", RuntimeId::as_str).to_owned();
    ModelList { provider: Some(provider), models: KnownItems::default() }
}

/// The parameters with the followed session in place of the terminal UI's.
fn in_session(params: Option<&RawValue>, session: &SessionId) -> Members {
    let mut members = parse::<Members>(params);
    ui_protocol::set(&mut members, "session_id", session);
    members
}

fn notification(method: &str, params: &Members) -> BridgeAction {
    // Plain JSON can always be serialized.
    let params = serde_json::to_string(params).unwrap_or_default();
    BridgeAction::Send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
}

fn status(run: &str, word: &str, message: Option<&str>) -> BridgeAction {
    let mut params = json!({ "run_id": run, "status": word });
    if let Some(message) = message {
        params["message"] = message.into();
    }
    BridgeAction::Send(json!({ "jsonrpc": "2.0", "method": "run.status", "params": params }).to_string())
}

fn reply(id: &Value, result: &impl Serialize) -> BridgeAction {
    BridgeAction::Send(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}

fn refuse(id: &Value, code: i64, message: &str) -> BridgeAction {
    fail(id, &RpcError::new(code, message))
}

fn fail(id: &Value, error: &RpcError) -> BridgeAction {
    BridgeAction::Send(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
}
