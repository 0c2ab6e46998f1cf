//! Between the terminal UI and the gateway: what each says, and what follows from it, in one state. Pure: orders come out.

mod calls;

use calls::PendingRunStart;
pub(super) use calls::{CallPurpose, NoReply};
use std::collections::{BTreeMap, VecDeque};

use plexus_protocol::{Capabilities, Capability, Request, server_capabilities};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::events::{EventTranslator, Extras, UiMessage};
use super::panels::{PanelAction, PanelQueue, Panels};
use plexus_client::{ClientEvent, Error};

/// The version of the UI protocol that is spoken.
const VERSION: &str = "0";
/// Events of the past that are shown, unless the terminal UI wants fewer; its own default.
const PAST_MAX: usize = 1500;
/// Runs of the past that are shown when the terminal UI wants some; its own default.
const RUNS_MAX: usize = 20;
/// Sessions in a list, unless the terminal UI wants fewer; its own default.
const LIST_MAX: usize = 50;
/// Runs whose events are numbered here at a time; an older one would be numbered from 0 again.
const NUMBERS_MAX: usize = 64;

/// There is no such run.
const RUN_NOT_FOUND: i64 = -32002;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
/// The terminal UI's user wants no part in it.
const USER_CANCELLED: i64 = -32003;
/// The one session of the runtime is there already.
const ONE_SESSION: i64 = plexus_protocol::codes::ONE_SESSION;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// What is to be done.
#[derive(Debug)]
pub(super) enum BridgeAction {
    /// A line for the terminal UI, without its end.
    Say(String),
    /// Follow this session, with as many of its latest runs and events as are wanted; nothing else any more.
    Follow { session: String, runs: usize, events: usize },
    /// A line for those who read the logs.
    Log(String),
    /// Call the gateway; the outcome comes back with `why`. `again`: it may be sent twice.
    Call { why: Box<CallPurpose>, method: String, params: Value, again: bool },
}

/// The session that is followed.
struct Session {
    id: String,
    dialect: String,
    runtime: String,
}

/// The past, while it is told.
struct HistoryReplay {
    told: VecDeque<UiMessage>,
    /// The terminal UI's `session.history` that waits for it.
    id: Option<Value>,
    events: usize,
    most: usize,
    runs: usize,
    truncated: bool,
}

/// What the bridge was started with.
pub(super) struct BridgeTarget {
    /// Session, runtime and dialect.
    pub(super) session: Option<(String, String, String)>,
    /// Where new sessions are opened.
    pub(super) runtime: Option<String>,
    /// What the runtime that will be talked to can do, as far as is known: that is offered.
    pub(super) capabilities: Option<Capabilities>,
    pub(super) cwd: String,
    /// Said once the terminal UI is there.
    pub(super) notice: Option<String>,
    /// What nobody else's idempotency keys begin with.
    pub(super) key: String,
}

pub(super) struct BridgeState {
    aim: BridgeTarget,
    session: Option<Session>,
    teller: EventTranslator,
    asks: PanelQueue,
    past: Option<HistoryReplay>,
    /// `run.start`s that wait until the past is told.
    later: Vec<PendingRunStart>,
    /// `run.start`s that the gateway has not answered.
    starting: usize,
    /// How many were sent.
    started: u64,
    /// A session is being opened.
    opening: bool,
    numbers: BTreeMap<String, u64>,
    order: VecDeque<String>,
    away: bool,
    /// It said `initialize`.
    greeted: bool,
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

#[derive(Deserialize)]
struct ListedSession {
    session_id: String,
    runtime_id: String,
    #[serde(default)]
    dialect: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    open_requests: usize,
    #[serde(default)]
    run_id: Option<String>,
    updated_at: String,
    message_count: Option<u64>,
    last_user_message: Option<String>,
}

impl BridgeState {
    pub(super) fn new(aim: BridgeTarget) -> Self {
        Self {
            aim,
            session: None,
            teller: EventTranslator::default(),
            asks: PanelQueue::default(),
            past: None,
            later: Vec::new(),
            starting: 0,
            started: 0,
            opening: false,
            numbers: BTreeMap::new(),
            order: VecDeque::new(),
            away: false,
            greeted: false,
            extras: Extras::default(),
        }
    }

    /// Whether events may be heard: not before a `run.start` is answered, so that its run is known to be this client's.
    pub(super) fn listens(&self) -> bool {
        self.starting == 0
    }

    #[cfg(test)]
    pub(super) fn shows(&self) -> Option<&str> {
        self.asks.shows()
    }

    // === the terminal UI says something ===

    /// A line of the terminal UI's. What is no message gets no reply, as with its own runtime.
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<BridgeAction>) {
        let Ok(FromUi { id, method, params, result, error }) = serde_json::from_str::<FromUi<'_>>(line) else { return };
        let Some(method) = method else {
            let Some(Value::String(id)) = id else { return };
            let mut acts = Vec::new();
            match (error, result) {
                (None, Some(result)) => {
                    self.asks.on_answer(&id, &serde_json::from_str(result.get()).unwrap_or_default(), &mut acts);
                }
                // A no in every sort of question.
                (Some(error), _) if error["code"] == USER_CANCELLED => {
                    self.asks.on_answer(&id, &Value::Null, &mut acts)
                }
                (Some(error), _) => {
                    let why = error["message"].as_str().unwrap_or("it answered with an error");
                    self.asks.not_shown(&id, why, &mut acts);
                }
                (None, None) => {}
            }
            return self.act(acts, out);
        };
        if !self.greeted && method != "initialize" {
            // Before it nobody knows what the terminal UI can show.
            if let Some(id) = id {
                out.push(refuse(&id, INVALID_REQUEST, "send `initialize` first"));
            }
            return;
        }
        let params = params.filter(Value::is_object).unwrap_or_else(|| json!({}));
        match id {
            Some(id) => self.request(id, &method, params, out),
            // The only notification there is; only a runtime of this protocol has a use for it.
            None if method == "ui.context.update" => {
                if let Some(session) = self.session.as_ref().filter(|session| session.dialect == "codelia") {
                    let params = of_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        why: Box::new(CallPurpose::Pass { id: Value::Null }),
                        method,
                        params,
                        again: false,
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
                    let why = CallPurpose::Cancel { id, run: run.to_owned() };
                    out.push(BridgeAction::Call { why: Box::new(why), method: method.into(), params, again: true });
                }
                (None, Some(_)) => out.push(refuse(&id, RUN_NOT_FOUND, "run not found: no session is open")),
            },
            "session.list" => {
                let limit =
                    params["limit"].as_u64().map_or(LIST_MAX, |limit| usize::try_from(limit).unwrap_or(LIST_MAX));
                let here = params["scope"] == "current_workspace";
                let why = CallPurpose::List { id, limit, here };
                out.push(BridgeAction::Call {
                    why: Box::new(why),
                    method: method.into(),
                    params: json!({}),
                    again: true,
                });
            }
            "session.history" => {
                let Some(session) = params["session_id"].as_str() else {
                    return out.push(refuse(&id, INVALID_PARAMS, "session.history needs {\"session_id\": ..}"));
                };
                let number = |name: &str, other| {
                    params[name].as_u64().map_or(other, |number| usize::try_from(number).unwrap_or(other))
                };
                let (most, runs) = (number("max_events", PAST_MAX), number("max_runs", RUNS_MAX));
                self.follow(session.to_owned(), Some(id), most, runs, out);
            }
            "model.list" => match &self.session {
                Some(session) => {
                    let params = of_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        why: Box::new(CallPurpose::Models { id }),
                        method: method.into(),
                        params,
                        again: true,
                    });
                }
                None => out.push(reply(&id, &no_models(self.aim.runtime.as_deref()))),
            },
            "model.set" => match &self.session {
                Some(session) if session.dialect == "codelia" => {
                    let params = of_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        why: Box::new(CallPurpose::Pass { id }),
                        method: method.into(),
                        params,
                        again: false,
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
                    let why = CallPurpose::Mean { id, params };
                    out.push(BridgeAction::Call {
                        why: Box::new(why),
                        method: "model.list".into(),
                        params: listing,
                        again: true,
                    });
                }
                None => out.push(refuse(&id, INVALID_PARAMS, "no session is open: the first prompt opens one")),
            },
            _ => match &self.session {
                Some(session) => {
                    let params = of_session(params, &session.id);
                    out.push(BridgeAction::Call {
                        why: Box::new(CallPurpose::Pass { id }),
                        method: method.into(),
                        params,
                        again: false,
                    });
                }
                None => {
                    let words = format!("{method}: no session is open yet, so there is no agent to ask");
                    out.push(refuse(&id, METHOD_NOT_FOUND, &words));
                }
            },
        }
    }

    fn hello(&mut self, id: &Value, params: &Value, out: &mut Vec<BridgeAction>) {
        self.greeted = true;
        let panels = Panels::deserialize(&params["ui_capabilities"]).unwrap_or_default();
        self.asks.has(panels);
        self.extras = Extras::deserialize(&params["ui_capabilities"]).unwrap_or_default();
        self.teller.extras(self.extras);
        // What the agent behind it has, as far as is known; what a session cannot do is then said, not hidden.
        let mut can = server_capabilities([self.aim.capabilities.as_ref()], Capability::ALL);
        // The bridge itself tells which tool call a question is about.
        can.extend(Capability::PermissionPreflight.ui_name().map(|name| (name.to_owned(), true.into())));
        let result = json!({
            "protocol_version": VERSION,
            "server": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
            "server_capabilities": can,
        });
        out.push(reply(id, &result));
        if let Some(notice) = self.aim.notice.take() {
            self.notice(&notice, out);
        }
        if let Some((session, runtime, dialect)) = self.aim.session.clone().filter(|_| self.session.is_none()) {
            self.follow(session.clone(), None, PAST_MAX, usize::MAX, out);
            self.session = Some(Session { id: session, runtime, dialect });
        }
    }

    fn start(&mut self, id: Value, params: Value, out: &mut Vec<BridgeAction>) {
        if params["force_compaction"] == true {
            let words = "the gateway cannot start a compaction: use the agent's own command";
            return out.push(refuse(&id, METHOD_NOT_FOUND, words));
        }
        let around = [params["ui_context"].clone(), params["meta"].clone()];
        let start = PendingRunStart { id, input: params["input"].clone(), around };
        if let Some(wanted) = params["session_id"].as_str()
            && self.session.as_ref().is_none_or(|session| session.id != wanted)
        {
            self.follow(wanted.to_owned(), None, PAST_MAX, RUNS_MAX, out);
        }
        match &self.session {
            Some(_) if self.past.is_some() => self.later.push(start),
            Some(session) => {
                self.starting += 1;
                self.started += 1;
                // Under its key a prompt is run once, however often it is sent.
                let key = format!("codelia-{}-{}", self.aim.key, self.started);
                let mut params = json!({ "session_id": session.id, "input": start.input, "idempotency_key": key });
                for (name, value) in ["ui_context", "meta"].into_iter().zip(start.around) {
                    if !value.is_null() {
                        params[name] = value;
                    }
                }
                let why = CallPurpose::Start { id: start.id };
                out.push(BridgeAction::Call { why: Box::new(why), method: "run.start".into(), params, again: true });
            }
            None if self.opening => {
                out.push(refuse(&start.id, -32001, "a session is being opened: try again in a moment"))
            }
            None => {
                self.opening = true;
                match self.aim.runtime.clone() {
                    Some(runtime) => self.open(start, &runtime, out),
                    None => {
                        let why = CallPurpose::Runtimes { start };
                        out.push(BridgeAction::Call {
                            why: Box::new(why),
                            method: "runtime.list".into(),
                            params: json!({}),
                            again: true,
                        });
                    }
                }
            }
        }
    }

    fn open(&mut self, start: PendingRunStart, runtime: &str, out: &mut Vec<BridgeAction>) {
        let params = json!({ "runtime_id": runtime, "cwd": self.aim.cwd });
        out.push(BridgeAction::Call {
            why: Box::new(CallPurpose::Open { start, runtime: runtime.to_owned() }),
            method: "session.new".into(),
            params,
            again: false,
        });
    }

    /// Goes on with a prompt in this session, once its past is told.
    fn join(&mut self, start: PendingRunStart, session: String, out: &mut Vec<BridgeAction>) {
        self.follow(session, None, PAST_MAX, RUNS_MAX, out);
        self.later.push(start);
    }

    fn follow(&mut self, id: String, history: Option<Value>, most: usize, runs: usize, out: &mut Vec<BridgeAction>) {
        if let Some(HistoryReplay { id: Some(id), .. }) = self.past.take() {
            out.push(refuse(&id, INTERNAL, "another session was requested meanwhile"));
        }
        self.asks.forget();
        self.teller.forget();
        self.past = Some(HistoryReplay { told: VecDeque::new(), id: history, events: 0, most, runs, truncated: false });
        self.session = Some(Session { id: id.clone(), dialect: String::new(), runtime: String::new() });
        out.push(BridgeAction::Follow { session: id, runs, events: most });
    }

    // === the gateway says something ===

    /// Something of the session that is followed.
    pub(super) fn on_event(&mut self, heard: ClientEvent, out: &mut Vec<BridgeAction>) {
        match heard {
            ClientEvent::Hello(hello) => {
                if let Some(session) = &mut self.session {
                    let mut listed = hello["sessions"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|one| ListedSession::deserialize(one).ok());
                    if let Some(info) = listed.find(|info| info.session_id == session.id) {
                        (session.dialect, session.runtime) = (info.dialect, info.runtime_id);
                    }
                }
                if std::mem::take(&mut self.away) {
                    self.notice("the gateway is back", out);
                }
                let resume = hello["resume"].as_str().unwrap_or("ok");
                if resume != "ok" {
                    self.missed(resume, &hello, out);
                }
            }
            ClientEvent::Event(envelope) => {
                let told = self.teller.translate(&envelope, self.past.is_some());
                self.send_messages(told, out);
            }
            ClientEvent::Live => self.live(out),
            ClientEvent::Lost(why) => {
                if !std::mem::replace(&mut self.away, true) {
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
                if self.session.as_ref().is_some_and(|session| session.id == id) {
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

    /// Some of what happened cannot be told any more: how things stand now is in the greeting.
    fn missed(&mut self, resume: &str, hello: &Value, out: &mut Vec<BridgeAction>) {
        self.notice(
            &format!("some events are missing here ({resume}): `plexus export` has everything that is stored"),
            out,
        );
        let runs = hello["runs"].as_array().into_iter().flatten();
        let mut on = runs.filter(|run| run["status"] != "queued").filter_map(|run| run["run_id"].as_str());
        let mut told = Vec::new();
        if let Some((run, _)) = self.teller.now()
            && !on.any(|other| other == run)
        {
            self.teller.lose_run(&mut told);
        }
        self.send_messages(told, out);
        let requests = hello["requests"].as_array().into_iter().flatten();
        let open: Vec<Request> = requests.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect();
        let ids: Vec<String> = open.iter().map(|request| request.request_id.as_str().to_owned()).collect();
        let (live, mut acts) = (self.past.is_none(), Vec::new());
        self.asks.only(&ids, live, &mut acts);
        for request in open {
            self.asks.opened(Box::new(request), live, &mut acts);
        }
        self.act(acts, out);
    }

    /// The session cannot be followed any more.
    pub(super) fn lost(&mut self, why: &str, out: &mut Vec<BridgeAction>) {
        let session = self.session.take();
        if let Some(HistoryReplay { id: Some(id), .. }) = self.past.take() {
            out.push(refuse(&id, -32004, why));
        } else {
            self.notice(&format!("error: {why}"), out);
            if let (Some(run), Some(_)) = (self.teller.now().map(|(run, _)| run.to_owned()), session) {
                out.push(status(&run, "error", Some("the session is gone")));
            }
        }
        for start in std::mem::take(&mut self.later) {
            out.push(refuse(&start.id, -32004, why));
        }
    }

    /// The past is told.
    fn live(&mut self, out: &mut Vec<BridgeAction>) {
        let Some(mut past) = self.past.take() else { return self.here(out) };
        let run = self.teller.now().map(|(run, status)| (run.to_owned(), status));
        // Whoever joins in the middle of a message sees what there is of it.
        let mut rest = Vec::new();
        self.teller.flush(run.as_ref().map_or("", |(run, _)| run.as_str()), &mut rest);
        past.take(rest);
        let (runs, events, truncated) = past.cut();
        if truncated && past.id.is_none() {
            self.notice("the beginning is not shown here: `plexus export` has everything", out);
        }
        for told in past.told {
            self.say(told, out);
        }
        self.here(out);
        if let Some(id) = &past.id {
            out.push(reply(id, &json!({ "runs": runs, "events_sent": events, "truncated": truncated })));
        }
        if let Some((run, word)) = run {
            out.push(status(&run, word, None));
        }
        let mut acts = Vec::new();
        self.asks.next(&mut acts);
        self.act(acts, out);
        for start in std::mem::take(&mut self.later) {
            let [ui_context, meta] = start.around;
            self.start(start.id, json!({ "input": start.input, "ui_context": ui_context, "meta": meta }), out);
        }
    }

    /// All of the past is told.
    fn here(&mut self, out: &mut Vec<BridgeAction>) {
        if self.extras.gateway {
            self.say(
                UiMessage::Event { run: String::new(), event: r#"{"type":"plexus.live"}"#.into(), meta: None },
                out,
            );
        }
    }

    fn send_messages(&mut self, told: Vec<UiMessage>, out: &mut Vec<BridgeAction>) {
        let live = self.past.is_none();
        let mut acts = Vec::new();
        for told in told {
            match told {
                UiMessage::Asked(request) => self.asks.opened(request, live, &mut acts),
                UiMessage::Resolved(resolved) => self.asks.resolved(&resolved, live, &mut acts),
                told => match &mut self.past {
                    Some(past) => past.take(vec![told]),
                    None => self.say(told, out),
                },
            }
            self.act(std::mem::take(&mut acts), out);
        }
    }

    fn act(&mut self, acts: Vec<PanelAction>, out: &mut Vec<BridgeAction>) {
        for act in acts {
            match act {
                PanelAction::Ask(id, method, params) => {
                    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                    out.push(BridgeAction::Say(message.to_string()));
                }
                PanelAction::Answer(request, mut params) => {
                    // Sent again after a lost connection it is the same answer.
                    params["idempotency_key"] = format!("codelia-{}-{request}", self.aim.key).into();
                    let why = CallPurpose::Answer { request };
                    out.push(BridgeAction::Call {
                        why: Box::new(why),
                        method: "ui.request.answer".into(),
                        params,
                        again: true,
                    });
                }
                PanelAction::Notice(text) => self.notice(&text, out),
                PanelAction::Show(text) => {
                    let run = self.teller.now().map_or(String::new(), |(run, _)| run.to_owned());
                    let event = json!({ "type": "reasoning", "content": text }).to_string();
                    self.say(UiMessage::Event { run, event, meta: None }, out);
                }
            }
        }
    }

    /// A line of the gateway's own, now.
    fn notice(&mut self, text: &str, out: &mut Vec<BridgeAction>) {
        let mut told = Vec::new();
        self.teller.notice(text, &mut told);
        for told in told {
            self.say(told, out);
        }
    }

    fn say(&mut self, told: UiMessage, out: &mut Vec<BridgeAction>) {
        match told {
            UiMessage::Event { run, event, meta } => {
                if !self.numbers.contains_key(&run) {
                    if self.order.len() >= NUMBERS_MAX
                        && let Some(oldest) = self.order.pop_front()
                    {
                        self.numbers.remove(&oldest);
                    }
                    self.order.push_back(run.clone());
                }
                let next = self.numbers.entry(run.clone()).or_default();
                let (run, seq) = (json!(run), *next);
                *next += 1;
                let meta = meta.map_or_else(String::new, |meta| format!(r#","meta":{meta}"#));
                out.push(BridgeAction::Say(format!(
                    r#"{{"jsonrpc":"2.0","method":"agent.event","params":{{"run_id":{run},"seq":{seq},"event":{event}{meta}}}}}"#
                )));
            }
            UiMessage::Status { run, status: word, message } => out.push(status(&run, word, message.as_deref())),
            UiMessage::Notify { method, params } => {
                out.push(BridgeAction::Say(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)));
            }
            UiMessage::Log(text) => out.push(BridgeAction::Log(text)),
            UiMessage::Asked(_) | UiMessage::Resolved(_) => {}
        }
    }
}

impl HistoryReplay {
    fn take(&mut self, told: Vec<UiMessage>) {
        for told in told {
            match &told {
                UiMessage::Event { .. } => self.events += 1,
                // How a run stood then is nothing to show now.
                UiMessage::Status { .. } | UiMessage::Log(_) => continue,
                _ => {}
            }
            self.told.push_back(told);
            while self.events > self.most.max(1) {
                self.truncated = true;
                self.drop_first();
            }
        }
    }

    fn drop_first(&mut self) {
        if let Some(UiMessage::Event { .. }) = self.told.pop_front() {
            self.events -= 1;
        }
    }

    /// Cuts it to the runs wanted: how many runs and events are left, and whether there were more.
    fn cut(&mut self) -> (usize, usize, bool) {
        loop {
            let mut runs: Vec<&str> = Vec::new();
            for told in &self.told {
                if let UiMessage::Event { run, .. } = told
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
            while self.told.front().is_some_and(|told| !matches!(told, UiMessage::Event { run, .. } if *run != first)) {
                self.drop_first();
            }
        }
    }
}

fn no_models(provider: Option<&str>) -> Value {
    json!({ "provider": provider.filter(|name| !name.is_empty()).unwrap_or("plexus"), "models": [] })
}

fn of_session(mut params: Value, session: &str) -> Value {
    params["session_id"] = session.into();
    params
}

fn status(run: &str, word: &str, message: Option<&str>) -> BridgeAction {
    let mut params = json!({ "run_id": run, "status": word });
    if let Some(message) = message {
        params["message"] = message.into();
    }
    BridgeAction::Say(json!({ "jsonrpc": "2.0", "method": "run.status", "params": params }).to_string())
}

fn reply(id: &Value, result: &Value) -> BridgeAction {
    BridgeAction::Say(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}

fn refuse(id: &Value, code: i64, message: &str) -> BridgeAction {
    fail(id, &json!({ "code": code, "message": message }))
}

fn fail(id: &Value, error: &Value) -> BridgeAction {
    BridgeAction::Say(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
}
