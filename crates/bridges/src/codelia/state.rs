//! The state between the terminal UI and the gateway, and the actions that result from each message. Pure.

mod calls;

use calls::PendingRunStart;
pub(super) use calls::{CallPurpose, NoReply, RpcError};
use std::collections::VecDeque;

use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::stream::StreamHello;
use plexus_protocol::ui_protocol::{self, Members, START_MEMBERS};
use plexus_protocol::{Answer, Capabilities, Capability, Request, RequestId, RunStatus, server_capabilities};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::events::{EventTranslator, Extras, Number, UiMessage, private_event};
use super::panels::{PanelAction, PanelQueue, Panels};
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
    Follow { session: String, runs: usize, events: usize },
    /// Writes a line to the log.
    Log(String),
    /// Calls the gateway and returns the outcome with `purpose`. With `retry`, the call may be sent twice.
    Call { purpose: Box<CallPurpose>, method: String, params: Value, retry: bool },
}

/// The followed session.
struct Session {
    id: String,
    dialect: String,
    runtime: String,
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
    /// Session, runtime and dialect.
    pub(super) session: Option<(String, String, String)>,
    /// The runtime of new sessions.
    pub(super) runtime: Option<String>,
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
    #[serde(default)]
    params: Option<Value>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
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
    pub(super) fn shown_id(&self) -> Option<&str> {
        self.panel_queue.shown_id()
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
                    self.panel_queue.on_answer(
                        &id,
                        &serde_json::from_str(result.get()).unwrap_or_default(),
                        &mut actions,
                    );
                }
                // The error denies every type of question.
                (Some(error), _) if error["code"] == USER_CANCELLED => {
                    self.panel_queue.on_answer(&id, &Value::Null, &mut actions)
                }
                (Some(error), _) => {
                    let why = error["message"].as_str().unwrap_or("it answered with an error");
                    self.panel_queue.not_shown(&id, why, &mut actions);
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
        let params = params.filter(Value::is_object).unwrap_or_else(|| json!({}));
        match id {
            Some(id) => self.request(id, &method, params, out),
            // The only notification is used only by a runtime of this protocol.
            None if method == "ui.context.update" => {
                if let Some(session) = self.session.as_ref().filter(|session| session.dialect == OWN_DIALECT) {
                    let params = in_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        purpose: Box::new(CallPurpose::Pass { id: Value::Null }),
                        method,
                        params,
                        retry: false,
                    });
                }
            }
            None => {}
        }
    }

    fn request(&mut self, id: Value, method: &str, params: Value, out: &mut Vec<BridgeAction>) {
        match method {
            "initialize" => self.hello(&id, &params, out),
            "run.start" => self.start(id, params, out),
            "run.cancel" => match (&self.session, params["run_id"].as_str()) {
                (_, None) => out.push(refuse(&id, INVALID_PARAMS, "run.cancel needs {\"run_id\": ..}")),
                (Some(session), Some(run)) => {
                    let reason = &params["reason"];
                    let params = json!({ "session_id": session.id, "run_id": run, "reason": reason });
                    let purpose = CallPurpose::Cancel { id, run: run.to_owned() };
                    out.push(BridgeAction::Call {
                        purpose: Box::new(purpose),
                        method: method.into(),
                        params,
                        retry: true,
                    });
                }
                (None, Some(_)) => out.push(refuse(&id, RUN_NOT_FOUND, "run not found: no session is open")),
            },
            "session.list" => {
                let limit =
                    params["limit"].as_u64().map_or(LIST_MAX, |limit| usize::try_from(limit).unwrap_or(LIST_MAX));
                let this_folder = params["scope"] == "current_workspace";
                let purpose = CallPurpose::List { id, limit, this_folder };
                out.push(BridgeAction::Call {
                    purpose: Box::new(purpose),
                    method: method.into(),
                    params: json!({}),
                    retry: true,
                });
            }
            "session.history" => {
                let Some(session) = params["session_id"].as_str() else {
                    return out.push(refuse(&id, INVALID_PARAMS, "session.history needs {\"session_id\": ..}"));
                };
                let number_or = |name: &str, other| {
                    params[name].as_u64().map_or(other, |number_or| usize::try_from(number_or).unwrap_or(other))
                };
                let (event_limit, runs) = (number_or("max_events", PAST_MAX), number_or("max_runs", RUNS_MAX));
                self.follow(session.to_owned(), Some(id), event_limit, runs, out);
            }
            "model.list" => match &self.session {
                Some(session) => {
                    let params = in_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        purpose: Box::new(CallPurpose::Models { id }),
                        method: method.into(),
                        params,
                        retry: true,
                    });
                }
                None => out.push(reply(&id, &no_models(self.target.runtime.as_deref()))),
            },
            "model.set" => match &self.session {
                Some(session) if session.dialect == OWN_DIALECT => {
                    let params = in_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        purpose: Box::new(CallPurpose::Pass { id }),
                        method: method.into(),
                        params,
                        retry: false,
                    });
                }
                Some(session) => {
                    if params["name"].as_str().is_none() {
                        return out.push(refuse(
                            &id,
                            INVALID_PARAMS,
                            "this agent's model cannot be reset: name a model",
                        ));
                    }
                    let listing = json!({ "session_id": session.id });
                    let purpose = CallPurpose::FindModel { id, params };
                    out.push(BridgeAction::Call {
                        purpose: Box::new(purpose),
                        method: "model.list".into(),
                        params: listing,
                        retry: true,
                    });
                }
                None => out.push(refuse(&id, INVALID_PARAMS, "no session is open: the first prompt opens one")),
            },
            _ => match &self.session {
                Some(session) => {
                    let params = in_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        purpose: Box::new(CallPurpose::Pass { id }),
                        method: method.into(),
                        params,
                        retry: false,
                    });
                }
                None => {
                    let message = format!("{method}: no session is open yet, so there is no agent to ask");
                    out.push(refuse(&id, METHOD_NOT_FOUND, &message));
                }
            },
        }
    }

    fn hello(&mut self, id: &Value, params: &Value, out: &mut Vec<BridgeAction>) {
        self.initialized = true;
        let panels = Panels::deserialize(&params["ui_capabilities"]).unwrap_or_default();
        self.panel_queue.set_panels(panels);
        self.extras = Extras::deserialize(&params["ui_capabilities"]).unwrap_or_default();
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
        if let Some((session, runtime, dialect)) = self.target.session.clone().filter(|_| self.session.is_none()) {
            self.follow(session.clone(), None, PAST_MAX, usize::MAX, out);
            self.session = Some(Session { id: session, runtime, dialect });
        }
    }

    fn start(&mut self, id: Value, params: Value, out: &mut Vec<BridgeAction>) {
        if params["force_compaction"] == true {
            let message = "the gateway cannot start a compaction: use the agent's own command";
            return out.push(refuse(&id, METHOD_NOT_FOUND, message));
        }
        let requested = params["session_id"].as_str().map(str::to_owned);
        let start = PendingRunStart { id, params };
        if let Some(id) = requested.filter(|id| self.session.as_ref().is_none_or(|session| session.id != *id)) {
            self.follow(id, None, PAST_MAX, RUNS_MAX, out);
        }
        match &self.session {
            Some(_) if self.past.is_some() => self.delayed_starts.push(start),
            Some(session) => {
                self.starting += 1;
                self.started += 1;
                // With this key, a prompt is run once, however often it is sent.
                let key = format!("codelia-{}-{}", self.target.key, self.started);
                let mut params =
                    json!({ "session_id": session.id, "input": start.params["input"], "idempotency_key": key });
                for name in ["ui_context", "meta"] {
                    if !start.params[name].is_null() {
                        params[name] = start.params[name].clone();
                    }
                }
                let all = start.params.as_object().into_iter().flatten();
                let unknown: Map<String, Value> = all
                    .filter(|(name, _)| !START_MEMBERS.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                if !unknown.is_empty() {
                    params["extra_members"] = unknown.into();
                }
                let purpose = CallPurpose::Start { id: start.id };
                out.push(BridgeAction::Call {
                    purpose: Box::new(purpose),
                    method: "run.start".into(),
                    params,
                    retry: true,
                });
            }
            None if self.opening => {
                out.push(refuse(&start.id, -32001, "a session is being opened: try again in a moment"))
            }
            None => {
                self.opening = true;
                match self.target.runtime.clone() {
                    Some(runtime) => self.open(start, &runtime, out),
                    None => {
                        let purpose = CallPurpose::Runtimes { start };
                        out.push(BridgeAction::Call {
                            purpose: Box::new(purpose),
                            method: "runtime.list".into(),
                            params: json!({}),
                            retry: true,
                        });
                    }
                }
            }
        }
    }

    fn open(&mut self, start: PendingRunStart, runtime: &str, out: &mut Vec<BridgeAction>) {
        let params = json!({ "runtime_id": runtime, "cwd": self.target.cwd });
        out.push(BridgeAction::Call {
            purpose: Box::new(CallPurpose::Open { start, runtime: runtime.to_owned() }),
            method: "session.new".into(),
            params,
            retry: false,
        });
    }

    /// Continues with a prompt in this session, once its history is replayed.
    fn join(&mut self, start: PendingRunStart, session: String, out: &mut Vec<BridgeAction>) {
        self.follow(session, None, PAST_MAX, RUNS_MAX, out);
        self.delayed_starts.push(start);
    }

    fn follow(
        &mut self,
        id: String,
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
        self.session = Some(Session { id: id.clone(), dialect: String::new(), runtime: String::new() });
        out.push(BridgeAction::Follow { session: id, runs, events: event_limit });
    }

    // === messages of the gateway ===

    /// Handles an event of the followed session.
    pub(super) fn on_event(&mut self, event: ClientEvent, out: &mut Vec<BridgeAction>) {
        match event {
            ClientEvent::Hello(hello) => {
                self.panel_queue.set_limit(hello.you.approve_up_to);
                if let Some(session) = &mut self.session {
                    let listed = hello.sessions.iter().find(|info| info.session_id.as_str() == session.id);
                    if let Some(info) = listed {
                        (session.dialect, session.runtime) = (info.dialect.clone(), info.runtime_id.to_string());
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
            ClientEvent::Lost(why) => {
                if !std::mem::replace(&mut self.disconnected, true) {
                    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
                    self.notice(&format!("the gateway does not respond{why}: this continues when it is back"), out);
                }
            }
            ClientEvent::Older => {
                if let Some(past) = &mut self.past {
                    past.truncated = true;
                }
            }
            ClientEvent::SessionGone(id) => {
                if self.session.as_ref().is_some_and(|session| session.id == id.as_str()) {
                    self.notice("the session was deleted", out);
                }
            }
            ClientEvent::Snapshot(_)
            | ClientEvent::Session(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeGone(_)
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
        let mut begun = hello.runs.iter().filter(|run| run.status != RunStatus::Queued);
        let mut messages = Vec::new();
        if let Some((run, _)) = self.translator.current_run()
            && !begun.any(|other| other.run_id.as_str() == run)
        {
            self.translator.lose_run(&mut messages);
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
    pub(super) fn lost(&mut self, why: &str, out: &mut Vec<BridgeAction>) {
        let session = self.session.take();
        if let Some(HistoryReplay { id: Some(id), .. }) = self.past.take() {
            out.push(refuse(&id, -32004, why));
        } else {
            self.notice(&format!("error: {why}"), out);
            if let (Some(run), Some(_)) = (self.translator.current_run().map(|(run, _)| run.to_owned()), session) {
                out.push(status(&run, "error", Some("the session is gone")));
            }
        }
        for start in std::mem::take(&mut self.delayed_starts) {
            out.push(refuse(&start.id, -32004, why));
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
            out.push(reply(id, &json!({ "runs": runs, "events_sent": events, "truncated": truncated })));
        }
        if let Some((run, word)) = run {
            out.push(status(&run, word, None));
        }
        let mut actions = Vec::new();
        self.panel_queue.next(&mut actions);
        self.perform_panel_actions(actions, out);
        for start in std::mem::take(&mut self.delayed_starts) {
            let mut params = start.params;
            params["session_id"] = Value::Null;
            self.start(start.id, params, out);
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
                    let params = json!(AnswerParams { request_id: &request, idempotency_key: key, answer: &answer });
                    let purpose = CallPurpose::Answer { request: request.to_string() };
                    out.push(BridgeAction::Call {
                        purpose: Box::new(purpose),
                        method: "ui.request.answer".into(),
                        params,
                        retry: true,
                    });
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
                if let Number::Given(seq) = number {
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

fn no_models(provider: Option<&str>) -> Value {
    json!({ "provider": provider.filter(|name| !name.is_empty()).unwrap_or("plexus"), "models": [] })
}

fn in_session(mut params: Value, session: &str) -> Value {
    params["session_id"] = session.into();
    params
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

fn reply(id: &Value, result: &Value) -> BridgeAction {
    BridgeAction::Send(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}

fn refuse(id: &Value, code: i64, message: &str) -> BridgeAction {
    fail(id, &RpcError::new(code, message))
}

fn fail(id: &Value, error: &RpcError) -> BridgeAction {
    BridgeAction::Send(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
}
