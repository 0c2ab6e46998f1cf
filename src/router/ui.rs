//! The connections of clients that speak only the UI protocol: clients of `/v1/ws` that send `ui_protocol: "0"` in `initialize`. One
//! session at a time, events as AgentEvents, and no message that is not in that protocol. Events and replies are sent in one order.
//!
//! The session is the one that the client last prompted, or whose history it requested. The first `run.start` without a session opens one
//! in the first ready runtime, or joins the session of a runtime that serves only one.

mod past;
mod translator;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Core;
use super::follow::FollowLog;
use super::jsonrpc::{RpcError, response};
use super::wire;
use past::Past;
use plexus_auth::{Caller, Prompt, Target};
use plexus_ledger::Account;
use plexus_metrics::Subscriber;
use plexus_protocol::{Position, Request, RunId, RunStatus, RuntimeInfo, SessionId, SessionInfo, SessionState};
use plexus_sessions::{Filter, OpenSession, SessionError};
use translator::{OWN_DIALECT, Progress, UiFrame, UiTranslator};

/// Default number of sessions in a list.
const LIST: usize = 50;
/// Maximum number of sessions in a list.
const LIST_MAX: usize = 1000;
/// Default number of runs in a history.
const RUNS: usize = 20;
/// Default number of events in a history.
const EVENTS: usize = 1500;
/// Maximum number of events in a history.
const EVENTS_MAX: usize = 5000;
/// Maximum number of waiting calls.
const WAITING: usize = 256;

/// The client's capabilities; absent ones count as supported.
#[derive(Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct UiSupport {
    supports_confirm: bool,
    supports_prompt: bool,
    supports_pick: bool,
}

impl Default for UiSupport {
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
    Started { id: String, outcome: Result<StartedPrompt, RpcError> },
    HistoryRead { id: String, outcome: Result<LoadedHistory, RpcError> },
}

/// An accepted prompt, with the session's state before it.
struct StartedPrompt {
    session: Arc<SessionInfo>,
    run: RunId,
    at: Position,
    open: Vec<Arc<Request>>,
    /// The state that the earlier events of a session leave behind, if the client did not follow it.
    progress: Progress,
}

/// A session's history.
struct LoadedHistory {
    session: Arc<SessionInfo>,
    past: Past,
    at: Position,
    open: Vec<Arc<Request>>,
}

/// A connection of the UI protocol.
pub(super) struct Ui {
    state: Core,
    caller: Caller,
    account: Account,
    session: Option<SessionId>,
    follow: Option<FollowLog>,
    orders: VecDeque<UiCommand>,
    task: Option<JoinHandle<UiResult>>,
    translator: UiTranslator,
}

impl Ui {
    pub(super) fn new(state: Core, caller: Caller, account: Account, support: UiSupport) -> Self {
        let translator = UiTranslator::new(support);
        Self { state, caller, account, session: None, follow: None, orders: VecDeque::new(), task: None, translator }
    }

    /// Returns the client's current session.
    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Returns the end of a run that the client knows, if it ended.
    pub(super) fn ended(&self, run: &RunId) -> Option<RunStatus> {
        self.translator.ended(run)
    }

    /// Returns whether the request was sent as a choice among its options, because yes and no are not enough.
    pub(super) fn as_options(&self, request: &str) -> bool {
        self.translator.as_options(wire::parse_request_name(request).0)
    }

    /// Returns the client's capabilities.
    pub(super) fn support(&self) -> UiSupport {
        self.translator.support()
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
    ) -> Result<(), RpcError> {
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
    ) -> Result<(), RpcError> {
        let runs = runs.unwrap_or(RUNS).clamp(1, EVENTS_MAX);
        let events = events.unwrap_or(EVENTS).clamp(1, EVENTS_MAX);
        self.take(UiCommand::History { id, session, runs, events })
    }

    fn take(&mut self, command: UiCommand) -> Result<(), RpcError> {
        if self.orders.len() >= WAITING {
            return Err(RpcError::new(-32001, "queue_full", "too many requests are already waiting"));
        }
        self.orders.push_back(command);
        Ok(())
    }

    /// Returns the next frames. Cancellation safe: calls run in a task of their own, and each outcome is taken once.
    pub(super) async fn next_frames(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            if let Some(task) = &mut self.task {
                let done = task.await;
                self.task = None;
                if let Ok(done) = done {
                    self.done(done, &mut out);
                }
            } else if let Some(command) = self.orders.pop_front() {
                let worker =
                    Worker { state: self.state.clone(), caller: self.caller.clone(), account: self.account.clone() };
                self.task = Some(tokio::spawn(worker.perform(command, self.session.clone())));
            } else if let Some(follow) = &mut self.follow {
                let page = follow.page().await;
                let mut frames = Vec::new();
                page.events.iter().for_each(|event| self.translator.event(event, false, &mut frames));
                write(frames, &mut out);
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
            UiResult::Started { id, outcome: Ok(begun) } => {
                self.translator.own(&begun.run);
                respond(&id, Ok(&json!({ "run_id": begun.run })), out);
                if self.session.as_ref() != Some(&begun.session.session_id) {
                    self.begin(&begun.session, begun.progress, begun.at, &begun.open, out);
                }
            }
            UiResult::HistoryRead { id, outcome: Ok(LoadedHistory { session, past, at, open }) } => {
                out.extend_from_slice(&past.frames);
                let summary = json!({ "runs": past.runs, "events_sent": past.events, "truncated": past.truncated });
                respond(&id, Ok(&summary), out);
                self.begin(&session, past.progress, at, &open, out);
            }
            UiResult::Started { id, outcome: Err(failure) } | UiResult::HistoryRead { id, outcome: Err(failure) } => {
                respond(&id, Err(failure), out);
            }
        }
    }

    /// Follows a session from `at`.
    fn begin(
        &mut self,
        session: &SessionInfo,
        progress: Progress,
        at: Position,
        open: &[Arc<Request>],
        out: &mut Vec<u8>,
    ) {
        let mut frames = Vec::new();
        for request in open {
            self.translator.ask(request, session.dialect == OWN_DIALECT, &mut frames);
        }
        write(frames, out);
        self.translator.resume(progress);
        let id = session.session_id.clone();
        self.follow = Some(FollowLog::new(self.state.directory.log(), Filter::session(id.clone()), at, Subscriber::Ui));
        self.session = Some(id);
    }

    /// Returns the sessions that the client may see.
    ///
    /// # Errors
    /// The list cannot be serialized.
    pub(super) fn list(&self, limit: Option<usize>) -> Result<Box<RawValue>, RpcError> {
        let worker = Worker { state: self.state.clone(), caller: self.caller.clone(), account: self.account.clone() };
        worker.list(limit.unwrap_or(LIST).min(LIST_MAX))
    }
}

/// Returns the message that an answer was not accepted, for the run that waits for it.
pub(super) fn not_accepted(run: &RunId, reason: &str) -> Vec<u8> {
    UiFrame::not_taken(run, reason).bytes
}

/// Returns the frame of a request; empty if the client does not display such a request.
pub(super) fn ask(request: &Request, session: Option<&SessionInfo>, support: UiSupport) -> Vec<u8> {
    let own_dialect = session.is_some_and(|session| session.dialect == OWN_DIALECT);
    translator::question(request, own_dialect, support).map_or_else(Vec::new, |(_, frame)| frame)
}

/// Performs the calls of a client.
struct Worker {
    state: Core,
    caller: Caller,
    account: Account,
}

impl Worker {
    async fn perform(self, command: UiCommand, current: Option<SessionId>) -> UiResult {
        match command {
            UiCommand::Start { id, session, content } => {
                UiResult::Started { id, outcome: self.start(session, current, content).await }
            }
            UiCommand::History { id, session, runs, events } => {
                UiResult::HistoryRead { id, outcome: self.history(&session, runs, events).await }
            }
        }
    }

    fn session(&self, id: &SessionId) -> Result<Arc<SessionInfo>, RpcError> {
        let session = self.state.directory.session(id);
        let session = session.filter(|session| self.caller.sees(&session.session_id, &session.runtime_id));
        session.ok_or_else(|| SessionError::NoSession(id.clone()).into())
    }

    async fn start(
        &self,
        session: Option<SessionId>,
        current: Option<SessionId>,
        content: Vec<Box<RawValue>>,
    ) -> Result<StartedPrompt, RpcError> {
        let session = match session.or_else(|| current.clone()) {
            Some(id) => self.session(&id)?,
            None => self.open().await?,
        };
        let id = session.session_id.clone();
        let permit = self.caller.permit::<Prompt>(Target::Session(&id, &session.runtime_id))?;
        let log = self.state.directory.log();
        let at = log.head();
        let open = self.state.directory.requests().open(&Filter::session(id.clone()));
        // The numbers of the current run's events continue.
        let progress = match current.as_ref() != Some(&id) && session.run_id.is_some() {
            true => past::read(log, &self.account, &id, at, (1, 1)).await?.progress,
            false => Progress::default(),
        };
        let accepted = self.state.directory.prompt(&permit, &id, content).await?;
        Ok(StartedPrompt { session, run: accepted.run_id, at, open, progress })
    }

    /// Returns a new session in the first ready runtime, or the existing one if the runtime serves only one.
    async fn open(&self) -> Result<Arc<SessionInfo>, RpcError> {
        let mut all = self.state.directory.runtimes();
        all.retain(|runtime| self.caller.permit::<Prompt>(Target::Runtime(&runtime.runtime_id)).is_ok());
        let detail = "the gateway has no agent that this device may prompt: start one with `plexus run`";
        let runtime_id = RuntimeInfo::preferred(&all).map(|runtime| runtime.runtime_id.clone());
        let runtime_id = runtime_id.ok_or_else(|| RpcError::new(-32015, "runtime_not_found", detail))?;
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
            Err(refusal @ SessionError::OneSession(_)) => {
                let mut sessions = self.state.directory.sessions();
                sessions.retain(|one| {
                    one.runtime_id == runtime_id
                        && one.state != SessionState::Exited
                        && self.caller.sees(&one.session_id, &one.runtime_id)
                });
                sessions.into_iter().max_by_key(|one| one.updated_at).ok_or_else(|| refusal.into())
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Returns the latest `runs` and `events` of a session.
    async fn history(&self, id: &SessionId, runs: usize, events: usize) -> Result<LoadedHistory, RpcError> {
        let session = self.session(id)?;
        let log = self.state.directory.log();
        let (at, open) = (log.head(), self.state.directory.requests().open(&Filter::session(id.clone())));
        let past = past::read(log, &self.account, id, at, (runs, events)).await?;
        Ok(LoadedHistory { session, past, at, open })
    }

    /// Returns the sessions that the client may see, most recently updated first.
    fn list(&self, limit: usize) -> Result<Box<RawValue>, RpcError> {
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
            if let Some(text) = &session.last_user_message {
                row["last_user_message"] = text.as_str().into();
            }
            row
        };
        let rows: Vec<Value> = all.iter().take(limit).map(|(_, session)| row(session)).collect();
        serde_json::value::to_raw_value(&json!({ "sessions": rows }))
            .map_err(|error| RpcError::new(-32603, "internal", error.to_string()))
    }
}

fn respond(id: &str, outcome: Result<&Value, RpcError>, out: &mut Vec<u8>) {
    let outcome = outcome.and_then(|result| {
        serde_json::value::to_raw_value(result).map_err(|error| RpcError::new(-32603, "internal", error.to_string()))
    });
    out.extend_from_slice(&response(id, &outcome));
}

fn write(frames: Vec<UiFrame>, out: &mut Vec<u8>) {
    frames.into_iter().for_each(|frame| out.extend_from_slice(&frame.bytes));
}
