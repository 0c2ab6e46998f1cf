//! The UI protocol to the letter, for clients of `/v1/ws` that send `ui_protocol: "0"` in `initialize`: one session at a time,
//! events as AgentEvents, and no message that is not in that protocol. Events and replies leave in one order.
//!
//! The session is the one that the client last prompted, or whose history it asked for. The first `run.start` without a session
//! opens one in the first ready runtime, or joins the session of a runtime that serves only one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::follow::Follow;
use super::frames::{ws_message, ws_text};
use super::jsonrpc::{Failure, response};
use super::wire;
use super::{AppState, Problem};
use crate::auth::{Caller, Prompt, Target};
use crate::ledger::Account;
use crate::metrics::Subscriber;
use crate::sessions::{Filter, LogPlace, OpenSession, PageItem, PageLimit, SessionError, zero_of};
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{
    Choice, Event, Kind, Offer, Position, Request, RequestId, RequestType, Risk, RunId, RunStatus, RuntimeInfo,
    SessionId, SessionInfo, SessionState,
};

/// Default number of sessions in a list.
const LIST: usize = 50;
/// Most sessions in a list.
const LIST_MAX: usize = 1000;
/// Default number of runs in a history.
const RUNS: usize = 20;
/// Default number of events in a history.
const EVENTS: usize = 1500;
/// Most events in a history.
const EVENTS_MAX: usize = 5000;
const HISTORY_BYTES: usize = 1 << 20;
/// The events read at once, backwards.
const BACK: PageLimit = PageLimit { items: 256, bytes: 256 << 10, merge: false, output: usize::MAX };
/// Most runs whose numbers and ends are remembered.
const KNOWN: usize = 64;
/// Most tool calls whose names are remembered.
const TOOLS: usize = 256;
/// Most bytes of an answer that `final` repeats; of a longer one, the last.
const FINAL: usize = 1 << 20;
/// Most calls that wait.
const WAITING: usize = 256;

/// The client's capabilities; absent ones count as supported.
#[derive(Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Shows {
    supports_confirm: bool,
    supports_prompt: bool,
    supports_pick: bool,
}

impl Default for Shows {
    fn default() -> Self {
        Self { supports_confirm: true, supports_prompt: true, supports_pick: true }
    }
}

/// A call that is handled in order.
enum UiCommand {
    Start { id: String, session: Option<SessionId>, content: Vec<Box<RawValue>> },
    History { id: String, session: SessionId, runs: usize, events: usize },
}

/// The outcome of a [`UiCommand`].
enum UiResult {
    Started { id: String, outcome: Result<StartedPrompt, Failure> },
    Told { id: String, session: SessionId, outcome: Result<LoadedHistory, Failure> },
}

/// An accepted prompt, with the session's state before it.
struct StartedPrompt {
    session: SessionId,
    run: RunId,
    at: Position,
    open: Vec<Arc<Request>>,
}

/// The latest events of a session.
struct LoadedHistory {
    items: Vec<PageItem>,
    runs: usize,
    truncated: bool,
    at: Position,
    open: Vec<Arc<Request>>,
}

/// A connection of the UI protocol.
pub(super) struct Ui {
    state: AppState,
    caller: Caller,
    account: Account,
    session: Option<SessionId>,
    follow: Option<Follow>,
    orders: VecDeque<UiCommand>,
    doing: Option<JoinHandle<UiResult>>,
    translator: UiTranslator,
}

impl Ui {
    pub(super) fn new(state: AppState, caller: Caller, account: Account, shows: Shows) -> Self {
        let translator = UiTranslator { shows, ..UiTranslator::default() };
        Self { state, caller, account, session: None, follow: None, orders: VecDeque::new(), doing: None, translator }
    }

    /// The client's current session.
    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// The end of a run that the client knows, if it ended.
    pub(super) fn ended(&self, run: &RunId) -> Option<RunStatus> {
        self.translator.runs.iter().find(|known| known.id == *run).and_then(|known| known.ended)
    }

    /// Whether the request was sent as a choice among its options, because it needs more than yes and no.
    pub(super) fn as_options(&self, request: &str) -> bool {
        self.translator.options.contains(wire::parse_request_name(request).0)
    }

    /// Takes a prompt; its reply is sent in order with the events.
    ///
    /// # Errors
    /// Too many calls wait.
    pub(super) fn start(
        &mut self,
        id: String,
        session: Option<SessionId>,
        content: Vec<Box<RawValue>>,
    ) -> Result<(), Failure> {
        self.take(UiCommand::Start { id, session, content })
    }

    /// Sends a session's history, and from then on its events.
    ///
    /// # Errors
    /// Too many calls wait.
    pub(super) fn history(
        &mut self,
        id: String,
        session: SessionId,
        runs: Option<usize>,
        events: Option<usize>,
    ) -> Result<(), Failure> {
        let runs = runs.unwrap_or(RUNS).clamp(1, EVENTS_MAX);
        let events = events.unwrap_or(EVENTS).clamp(1, EVENTS_MAX);
        self.take(UiCommand::History { id, session, runs, events })
    }

    fn take(&mut self, command: UiCommand) -> Result<(), Failure> {
        if self.orders.len() >= WAITING {
            return Err(Failure::new(-32001, "queue_full", "too many requests are already waiting"));
        }
        self.orders.push_back(command);
        Ok(())
    }

    /// The next frames. Cancellation safe: calls run in a task of their own, and each outcome is taken once.
    pub(super) async fn news(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            if let Some(doing) = &mut self.doing {
                let done = doing.await;
                self.doing = None;
                if let Ok(done) = done {
                    self.done(done, &mut out);
                }
            } else if let Some(command) = self.orders.pop_front() {
                let asker =
                    Worker { state: self.state.clone(), caller: self.caller.clone(), account: self.account.clone() };
                self.doing = Some(tokio::spawn(asker.perform(command, self.session.clone())));
            } else if let Some(follow) = &mut self.follow {
                let page = follow.page().await;
                page.events.iter().for_each(|event| self.translator.event(event, false, &mut out));
            } else {
                std::future::pending::<()>().await;
            }
            if !out.is_empty() {
                return out;
            }
        }
    }

    fn done(&mut self, done: UiResult, out: &mut Vec<u8>) {
        match done {
            UiResult::Started { id, outcome } => {
                let reply = outcome.map(|begun| {
                    self.translator.own(&begun.run);
                    let joined = self.session.as_ref() != Some(&begun.session);
                    (json!({ "run_id": begun.run }), joined.then_some(begun))
                });
                match reply {
                    Ok((result, joined)) => {
                        say(&id, Ok(&result), out);
                        if let Some(StartedPrompt { session, at, open, .. }) = joined {
                            self.begin(session, at, &open, out);
                        }
                    }
                    Err(failure) => say(&id, Err(failure), out),
                }
            }
            UiResult::Told { id, session, outcome } => match outcome {
                Ok(past) => {
                    let before = self.translator.sent;
                    past.items.iter().for_each(|item| self.translator.event(item.first(), true, out));
                    let sent = self.translator.sent - before;
                    let result = json!({ "runs": past.runs, "events_sent": sent, "truncated": past.truncated });
                    say(&id, Ok(&result), out);
                    self.begin(session, past.at, &past.open, out);
                }
                Err(failure) => say(&id, Err(failure), out),
            },
        }
    }

    /// Follows a session from `at`.
    fn begin(&mut self, session: SessionId, at: Position, open: &[Arc<Request>], out: &mut Vec<u8>) {
        for request in open {
            self.translator.ask(request, out);
        }
        self.follow =
            Some(Follow::new(self.state.directory.log(), Filter::session(session.clone()), at, Subscriber::Ui));
        self.session = Some(session);
    }

    /// The sessions that the client may see.
    ///
    /// # Errors
    /// The list cannot be serialized.
    pub(super) fn list(&self, limit: Option<usize>) -> Result<Box<RawValue>, Failure> {
        let asker = Worker { state: self.state.clone(), caller: self.caller.clone(), account: self.account.clone() };
        asker.list(limit.unwrap_or(LIST).min(LIST_MAX))
    }
}

/// Performs the calls of a client.
struct Worker {
    state: AppState,
    caller: Caller,
    account: Account,
}

impl Worker {
    async fn perform(self, command: UiCommand, current: Option<SessionId>) -> UiResult {
        match command {
            UiCommand::Start { id, session, content } => {
                UiResult::Started { id, outcome: self.start(session.or(current), content).await }
            }
            UiCommand::History { id, session, runs, events } => {
                let outcome = self.history(&session, runs, events).await;
                UiResult::Told { id, session, outcome }
            }
        }
    }

    fn session(&self, id: &SessionId) -> Result<Arc<SessionInfo>, Failure> {
        let session = self.state.directory.session(id);
        let session = session.filter(|session| self.caller.sees(&session.session_id, &session.runtime_id));
        session.ok_or_else(|| SessionError::NoSession(id.clone()).into())
    }

    async fn start(&self, session: Option<SessionId>, content: Vec<Box<RawValue>>) -> Result<StartedPrompt, Failure> {
        let session = match session {
            Some(id) => self.session(&id)?,
            None => self.open().await?,
        };
        let id = session.session_id.clone();
        let permit = self.caller.permit::<Prompt>(Target::Session(&id, &session.runtime_id))?;
        let at = self.state.directory.log().head();
        let open = self.state.directory.open_requests(&Filter::session(id.clone()));
        let accepted = self.state.directory.prompt(&permit, &id, content).await?;
        Ok(StartedPrompt { session: id, run: accepted.run_id, at, open })
    }

    /// A new session in the first ready runtime, or the existing one if the runtime serves only one.
    async fn open(&self) -> Result<Arc<SessionInfo>, Failure> {
        let mut all = self.state.directory.runtimes();
        all.retain(|runtime| self.caller.permit::<Prompt>(Target::Runtime(&runtime.runtime_id)).is_ok());
        let words = "the gateway has no agent that this device may prompt: start one with `plexus run`";
        let runtime_id = RuntimeInfo::usual(&all).map(|runtime| runtime.runtime_id.clone());
        let runtime_id = runtime_id.ok_or_else(|| Failure::new(-32015, "runtime_not_found", words))?;
        let permit = self.caller.permit::<Prompt>(Target::Runtime(&runtime_id))?;
        let open = OpenSession {
            runtime_id: runtime_id.clone(),
            cwd: None,
            title: None,
            native_id: None,
            program: None,
            mcp_servers: Vec::new(),
        };
        match self.state.directory.open_session(&permit, open).await {
            Ok(session) => Ok(session),
            Err(refusal @ SessionError::RuntimeRefused { code: ONE_SESSION, .. }) => {
                let mut there = self.state.directory.sessions();
                there.retain(|one| {
                    one.runtime_id == runtime_id
                        && one.state != SessionState::Exited
                        && self.caller.sees(&one.session_id, &one.runtime_id)
                });
                there.into_iter().max_by_key(|one| one.updated_at).ok_or_else(|| refusal.into())
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// The latest `runs` and `events` of a session, read from the end.
    async fn history(&self, id: &SessionId, runs: usize, events: usize) -> Result<LoadedHistory, Failure> {
        let session = self.session(id)?;
        let log = self.state.directory.log();
        let (at, open) = (log.head(), self.state.directory.open_requests(&Filter::session(session.session_id.clone())));
        let mut room = self.account.wait(HISTORY_BYTES).await;
        let (mut to, mut named) = (LogPlace::after(at), BTreeSet::new());
        let (mut items, mut sent, mut bytes, mut truncated) = (Vec::new(), 0, 0, false);
        'back: loop {
            let page = log.page_before(id, to, BACK, &mut room).await.map_err(Problem::from)?;
            for item in page.items.into_iter().rev() {
                let event = item.first();
                let new = event.run_id != zero_of(&event.origin) && !named.contains(&event.run_id);
                sent += usize::from(is_agent_event(event.kind));
                bytes += event.weight();
                if sent > events || bytes > HISTORY_BYTES || (new && named.len() == runs) {
                    truncated = true;
                    break 'back;
                }
                if new {
                    named.insert(event.run_id.clone());
                }
                items.push(item);
            }
            if !page.more {
                break;
            }
            to = page.from;
        }
        items.reverse();
        Ok(LoadedHistory { items, runs: named.len(), truncated, at, open })
    }

    /// The sessions that the client may see, most recently updated first.
    fn list(&self, limit: usize) -> Result<Box<RawValue>, Failure> {
        let mut all = self.state.directory.ranked();
        all.retain(|(_, session)| self.caller.sees(&session.session_id, &session.runtime_id));
        let row = |session: &SessionInfo| {
            let mut row = json!({ "session_id": session.session_id, "updated_at": session.updated_at });
            if let Some(run) = &session.run_id {
                row["run_id"] = run.as_str().into();
            }
            if let Some(count) = session.message_count {
                row["message_count"] = count.into();
            }
            if let Some(words) = &session.last_user_message {
                row["last_user_message"] = words.as_str().into();
            }
            row
        };
        let rows: Vec<Value> = all.iter().take(limit).map(|(_, session)| row(session)).collect();
        serde_json::value::to_raw_value(&json!({ "sessions": rows }))
            .map_err(|error| Failure::new(-32603, "internal", error.to_string()))
    }
}

/// Whether events of a kind usually become AgentEvents.
fn is_agent_event(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::UserMessageChunk
            | Kind::AgentMessageChunk
            | Kind::AgentThoughtChunk
            | Kind::ToolCall
            | Kind::ToolCallUpdate
            | Kind::RunEnded
    )
}

fn say(id: &str, outcome: Result<&Value, Failure>, out: &mut Vec<u8>) {
    let outcome = outcome.and_then(|result| {
        serde_json::value::to_raw_value(result).map_err(|error| Failure::new(-32603, "internal", error.to_string()))
    });
    out.extend_from_slice(&response(id, &outcome));
}

fn text_of(content: &Value) -> String {
    match (content["text"].as_str(), content["uri"].as_str(), content["type"].as_str()) {
        (Some(text), ..) => text.to_owned(),
        (None, Some(uri), _) => uri.to_owned(),
        (None, None, sort) => format!("[{}]", sort.unwrap_or("content")),
    }
}

/// A run that the client knows.
struct KnownRun {
    id: RunId,
    /// The number of the run's next event.
    next: u64,
    /// Whether the client's own prompt began the run.
    own: bool,
    /// The agent's text since the last tool call.
    text: String,
    /// Whether `final` was sent.
    complete: bool,
    ended: Option<RunStatus>,
}

/// Translates events of the log into the UI protocol.
#[derive(Default)]
struct UiTranslator {
    shows: Shows,
    runs: VecDeque<KnownRun>,
    /// The names of tool calls.
    tools: BTreeMap<String, String>,
    /// The requests that were sent, by revision.
    asked: BTreeSet<(RequestId, u64)>,
    /// The requests that were sent as a choice among options.
    options: BTreeSet<String>,
    /// The number of AgentEvents sent.
    sent: usize,
}

#[derive(Serialize)]
struct Status<'a> {
    run_id: &'a RunId,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl UiTranslator {
    fn run(&mut self, id: &RunId) -> &mut KnownRun {
        let place = self.runs.iter().position(|known| known.id == *id).unwrap_or_else(|| {
            if self.runs.len() >= KNOWN {
                self.runs.pop_front();
            }
            let id = id.clone();
            self.runs.push_back(KnownRun {
                id,
                next: 0,
                own: false,
                text: String::new(),
                complete: false,
                ended: None,
            });
            self.runs.len() - 1
        });
        &mut self.runs[place]
    }

    fn own(&mut self, run: &RunId) {
        self.run(run).own = true;
    }

    /// Appends an AgentEvent.
    fn agent_event(&mut self, run_id: &RunId, event: &RawValue, meta: Option<&RawValue>, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Params<'a> {
            run_id: &'a RunId,
            seq: u64,
            event: &'a RawValue,
            #[serde(skip_serializing_if = "Option::is_none")]
            meta: Option<&'a RawValue>,
        }
        let run = self.run(run_id);
        let seq = run.next;
        run.next += 1;
        self.sent += 1;
        ws_message(out, "agent.event", &Params { run_id, seq, event, meta });
    }

    fn say(&mut self, event: &Event, sent: &Value, out: &mut Vec<u8>) {
        let mut sent = sent.clone();
        sent["timestamp"] = event.at.as_millis().into();
        if let Ok(raw) = serde_json::value::to_raw_value(&sent) {
            self.agent_event(&event.run_id, &raw, None, out);
        }
    }

    /// Translates an event of the log; `past`: as history, without status messages.
    fn event(&mut self, event: &Event, past: bool, out: &mut Vec<u8>) {
        if &*event.origin.dialect == "codelia" && self.verbatim(event, out) {
            return;
        }
        let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
        match event.kind {
            Kind::AgentMessageChunk => {
                let content = text_of(&body["content"]);
                let run = self.run(&event.run_id);
                if run.text.len() + content.len() <= FINAL {
                    run.text.push_str(&content);
                }
                self.say(event, &json!({ "type": "text", "content": content }), out);
            }
            Kind::AgentThoughtChunk => {
                self.say(event, &json!({ "type": "reasoning", "content": text_of(&body["content"]) }), out);
            }
            Kind::UserMessageChunk if past || !self.run(&event.run_id).own => {
                let said = json!({ "type": "hidden_user_message", "content": text_of(&body["content"]) });
                self.say(event, &said, out);
            }
            Kind::ToolCall | Kind::ToolCallUpdate => self.tool(event, &body, out),
            Kind::RunStarted => self.status(event, RunStatus::Running, None, past, out),
            Kind::RunStatus => match body["status"].as_str() {
                Some("awaiting_ui") => self.status(event, RunStatus::AwaitingUi, None, past, out),
                Some("running") => self.status(event, RunStatus::Running, None, past, out),
                _ => {}
            },
            Kind::RunEnded => {
                let status = serde_json::from_value(body["status"].clone()).unwrap_or(RunStatus::Error);
                let run = self.run(&event.run_id);
                run.ended = Some(status);
                let (complete, text) = (std::mem::replace(&mut run.complete, true), std::mem::take(&mut run.text));
                if status == RunStatus::Completed && !complete {
                    self.say(event, &json!({ "type": "final", "content": text }), out);
                }
                self.status(event, status, body["message"].as_str(), past, out);
            }
            Kind::UsageUpdate if !past => {
                if let Some(left) = left(&body) {
                    let params = json!({ "run_id": event.run_id, "context_left_percent": left });
                    ws_message(out, "run.context", &params);
                }
            }
            Kind::RequestOpened | Kind::RequestUpdated if !past => {
                if let Ok(request) = serde_json::from_slice::<Request>(&event.body) {
                    self.ask(&request, out);
                }
            }
            _ => {}
        }
    }

    fn status(&self, event: &Event, status: RunStatus, message: Option<&str>, past: bool, out: &mut Vec<u8>) {
        if !past {
            ws_message(out, "run.status", &Status { run_id: &event.run_id, status, message });
        }
    }

    /// Passes the message of a runtime of this protocol unchanged; false if it is none.
    fn verbatim(&mut self, event: &Event, out: &mut Vec<u8>) -> bool {
        #[derive(Deserialize)]
        struct Native<'a> {
            method: String,
            #[serde(borrow)]
            params: Params<'a>,
        }
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            event: &'a RawValue,
            #[serde(borrow, default)]
            meta: Option<&'a RawValue>,
        }
        let native = event.native.as_deref().and_then(|native| serde_json::from_slice::<Native<'_>>(native).ok());
        let Some(Native { params, .. }) = native.filter(|native| native.method == "agent.event") else { return false };
        let sort: Value = serde_json::from_str(params.event.get()).unwrap_or_default();
        if sort["type"] == "final" {
            self.run(&event.run_id).complete = true;
        }
        self.agent_event(&event.run_id, params.event, params.meta, out);
        true
    }

    fn tool(&mut self, event: &Event, body: &Value, out: &mut Vec<u8>) {
        let Some(id) = body["toolCallId"].as_str() else { return };
        self.run(&event.run_id).text.clear();
        if !self.tools.contains_key(id) {
            if self.tools.len() >= TOOLS {
                self.tools.pop_first();
            }
            let name = body["title"].as_str().or(body["kind"].as_str()).unwrap_or("tool").to_owned();
            self.tools.insert(id.to_owned(), name.clone());
            let args = if body["rawInput"].is_null() { json!({}) } else { body["rawInput"].clone() };
            self.say(event, &json!({ "type": "tool_call", "tool": name, "args": args, "tool_call_id": id }), out);
        }
        let status = body["status"].as_str();
        if matches!(status, Some("completed" | "failed"))
            && let Some(name) = self.tools.remove(id)
        {
            let parts = body["content"].as_array().into_iter().flatten();
            let texts: Vec<String> =
                parts.filter(|part| part["type"] == "content").map(|part| text_of(&part["content"])).collect();
            let result = match (texts.is_empty(), &body["rawOutput"]) {
                (true, Value::String(text)) => text.clone(),
                (true, Value::Null) => String::new(),
                (true, raw) => raw.to_string(),
                (false, _) => texts.join("\n"),
            };
            let over = json!({
                "type": "tool_result", "tool": name, "result": result, "is_error": status == Some("failed"),
                "tool_call_id": id,
            });
            self.say(event, &over, out);
        }
    }

    /// Appends a request once, in the protocol's form.
    fn ask(&mut self, request: &Request, out: &mut Vec<u8>) {
        let offer = |kind| request.options.iter().find(|offer: &&Offer| offer.kind == kind);
        let no = offer(Choice::RejectOnce).or_else(|| offer(Choice::RejectAlways));
        let words = [request.display.as_str(), request.message.as_deref().unwrap_or_default()];
        let message = words.into_iter().find(|words| !words.trim().is_empty()).unwrap_or_default();
        let items = |options: &[Offer]| -> Vec<Value> {
            options.iter().map(|offer| json!({ "id": offer.id, "label": offer.label })).collect()
        };
        let danger = request.danger || request.risk == Risk::Danger;
        let (method, shown, mut params) = match (request.kind, offer(Choice::AllowOnce), no) {
            (RequestType::Prompt, ..) => (
                "ui.prompt.request",
                self.shows.supports_prompt,
                json!({ "message": message, "multiline": request.multiline, "secret": request.secret }),
            ),
            (RequestType::Pick, ..) => {
                ("ui.pick.request", self.shows.supports_pick, json!({ "items": request.items, "multi": request.multi }))
            }
            (_, Some(yes), Some(no)) => (
                "ui.confirm.request",
                self.shows.supports_confirm,
                json!({
                    "message": message, "confirm_label": yes.label, "cancel_label": no.label,
                    "danger_level": if danger { "danger" } else { "normal" },
                    "allow_remember": request.allow_remember, "allow_reason": request.allow_reason,
                }),
            ),
            _ => (
                "ui.pick.request",
                self.shows.supports_pick,
                json!({ "items": items(&request.options), "multi": false }),
            ),
        };
        let options = method == "ui.pick.request" && request.kind != RequestType::Pick;
        let once = self.asked.insert((request.request_id.clone(), request.revision));
        if !once || !shown || request.observe_only || (options && request.options.is_empty()) {
            return;
        }
        if options {
            self.options.insert(request.request_id.as_str().to_owned());
        }
        params["run_id"] = request.run_id.as_str().into();
        params["title"] = request.title.as_str().into();
        if let Some(text) = &request.default_value {
            params["default_value"] = text.as_str().into();
        }
        let id = wire::request_name(request.request_id.as_str(), request.revision);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        ws_text(out, message.to_string().as_bytes());
    }
}

/// The part of the context that is left, in whole percent.
fn left(body: &Value) -> Option<u64> {
    if let Some(percent) = body["contextLeftPercent"].as_f64() {
        return Some(percent.clamp(0.0, 100.0) as u64);
    }
    let (used, size) = (body["used"].as_u64()?, body["size"].as_u64().filter(|size| *size > 0)?);
    Some(100 - used.min(size).saturating_mul(100) / size)
}
