//! The native WebSocket protocol: the UI protocol (JSON-RPC 2.0) over all sessions at once.

mod answers;
pub(super) mod examples;
mod greeting;
mod methods;
mod params;
mod ui;

pub(super) use greeting::{hello, snapshots};
pub(super) use methods::methods;
use params::UiInitialize;
pub(super) use params::{AnswerParams, UiAnswer};
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use utoipa::ToSchema;

use super::Core;
use super::client_link::{ClientLink, EventFeed, NewSubscription};
use super::context;
use super::error::Problem;
use super::frames::{Framing, Notification, ask, ws_notify};
use super::guard::{DEPTH, deeper_than};
use super::history::{self, HistoryRange};
use super::jsonrpc::{Incoming, RpcError, RpcResult, response, result};
use super::listing::listing;
use super::presence::{PresenceGuard, Viewers};
use super::socket_protocol::{Reply, SocketProtocol};
use super::ui::{Ui, UiSupport};
use super::wire;
use plexus_auth::{Approve, Caller, Grant, Permit, Prompt, Right, Target};
use plexus_metrics::metrics;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::rpc::{
    AttachParams, Attached, CancelParams, Cancelled, CountedEnd, Detached, Focus, History, HistoryParams, Initialize,
    Initialized, ListSessions, PresenceResult, PromptInput, RestartParams, Server, SessionArchive, SessionNew,
    SessionParams, SessionRename, StartRun,
};
use plexus_protocol::api::stream::{NotTaken, PresenceChanged, RuntimeRemoved, RuntimeUpdated, SessionDeleted};
use plexus_protocol::object::{self, Objects};
use plexus_protocol::{
    Answer, Answers, Capability, Cursor, Event, Kind, Origin, Position, Request, RequestId, RunId, RunStatus,
    RuntimeInfo, Scope, SessionId, SessionInfo, server_capabilities, text_block,
};
use plexus_sessions::{AttachVerdict, Filter, Log, OpenSession, SessionError, StartAfter};
use plexus_store::ReadLimit;

/// The supported version of the UI protocol.
pub const PROTOCOL: &str = "0";
/// The capabilities of the UI protocol's specification.
const UI_CAPABILITIES: [Capability; 4] =
    [Capability::Cancel, Capability::Requests, Capability::McpList, Capability::SkillsList];
/// The UI protocol's error code for "the user cancelled".
const USER_CANCELLED: i64 = -32003;
/// Maximum number of sessions that one connection follows by name; `*` follows all.
const ATTACHES: usize = 256;
/// Default number of events in a response of `session.history`.
const HISTORY: usize = 500;
/// Maximum number of events in a response of `session.history`.
const HISTORY_MAX: usize = 5000;
/// Approximate maximum size of the events in a response of `session.history`, in bytes.
const HISTORY_BYTES: usize = 256 << 10;
/// Maximum number of sessions in a hello, most recently updated first. `GET /v1/sessions` lists the others.
const HELLO_SESSIONS: usize = 500;

/// One connection of the native protocol.
pub(super) struct Rpc {
    state: Core,
    caller: Caller,
    link: ClientLink,
    /// `true` if the client can display confirmations; set by `initialize`.
    client: Option<bool>,
    /// The runtimes as last sent to the client.
    runtimes: Vec<Arc<RuntimeInfo>>,
    /// The client's entry in [`Presence`](super::presence::Presence).
    presence: PresenceGuard,
    /// Signals a change of presence.
    presence_changes: watch::Receiver<u64>,
    /// The viewers as last sent to the client.
    sent_viewers: Viewers,
    /// `true` once the client's subscriptions changed.
    follows_changed: Arc<AtomicBool>,
    /// The state of a client that speaks only the UI protocol.
    ui: Option<Box<Ui>>,
}

type PendingResult = Pin<Box<dyn Future<Output = RpcResult> + Send>>;

fn now<T: Send + 'static>(value: T) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(std::future::ready(value))
}

/// Returns the filter for the events of a session, or of all, that the caller may see.
pub(super) fn filter(caller: &Caller, session: Option<SessionId>) -> Filter {
    match session {
        Some(session) => Filter::session(session),
        None if caller.sees_all() => Filter::all(),
        None => Filter { sessions: None, grant: Some(Arc::new(caller.device().grant.clone())) },
    }
}

impl SocketProtocol for Rpc {
    fn initialized(&self) -> bool {
        self.client.is_some()
    }

    fn cursor(&self) -> Option<Cursor> {
        self.link.following().into_iter().map(|(_, cursor)| cursor).min_by_key(|cursor| cursor.position)
    }

    /// Sends the client every runtime that changed or was removed.
    fn runtimes_changed(&mut self) {
        if self.ui.is_some() {
            return;
        }
        let runtimes = self.runtimes();
        for runtime in &runtimes {
            if !self.runtimes.iter().any(|known| Arc::ptr_eq(known, runtime)) {
                self.link.push(|out| ws_notify(out, &RuntimeUpdated { runtime: Arc::clone(runtime) }));
            }
        }
        for known in &self.runtimes {
            if !runtimes.iter().any(|runtime| runtime.runtime_id == known.runtime_id) {
                let removed = RuntimeRemoved { runtime_id: known.runtime_id.clone() };
                self.link.push(|out| ws_notify(out, &removed));
            }
        }
        self.runtimes = runtimes;
    }

    fn session_deleted(&mut self, session: &Origin) {
        if self.ui.is_none() && self.caller.sees(&session.session_id, &session.runtime_id) {
            let deleted = SessionDeleted { session_id: session.session_id.clone() };
            self.link.push(|out| ws_notify(out, &deleted));
        }
    }

    /// Returns changes of the viewers of followed sessions. A client that does not read gets only the last state.
    fn next_frames(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            if let Some(ui) = &mut self.ui {
                return Some(ui.next_frames().await);
            }
            loop {
                // Both are cleared, since either may bring a change.
                let follows_changed = self.follows_changed.swap(false, Ordering::AcqRel);
                let changed = self.presence_changes.has_changed().unwrap_or(false);
                if follows_changed || changed {
                    self.presence_changes.mark_unchanged();
                    let frames = self.presence_frame();
                    if !frames.is_empty() {
                        return Some(frames);
                    }
                }
                if self.presence_changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                self.presence_changes.mark_changed();
            }
        })
    }

    fn message(&mut self, text: &str) -> Option<Reply> {
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            let failure = RpcError::new(-32700, "parse_error", format!("not JSON: {error}"));
            return Some(now(response("null", &Err(failure))));
        }
        let bad = |id: &str, message: String| {
            Some(now(response(id, &Err(RpcError::new(-32600, "invalid_request", message)))))
        };
        if deeper_than(text.as_bytes(), DEPTH) {
            return bad("null", format!("JSON may be nested at most {DEPTH} levels deep"));
        }
        if text.trim_start().starts_with('[') {
            return bad("null", "send one message per frame: batches are not supported".into());
        }
        let incoming: Incoming<'_> = match object::from_str(text) {
            Ok(incoming) => incoming,
            Err(error) => return bad("null", format!("not a JSON-RPC message: {error}")),
        };
        let id = incoming.id.map(|id| id.get().to_owned());
        let named = id.as_deref().unwrap_or("null");
        if incoming.jsonrpc.as_deref() != Some("2.0") {
            return bad(named, "`jsonrpc` must be \"2.0\"".into());
        }
        let Some(method) = incoming.method else {
            return match (&id, incoming.result, incoming.error) {
                (Some(id), Some(result), None) if self.ui.is_some() => Some(self.ui_answered(id, result)),
                (Some(id), Some(result), None) => Some(self.answered(id, result)),
                (Some(id), None, Some(error)) => Some(self.cancelled(id, error)),
                _ => bad(named, "neither a request nor a response: `method` is missing".into()),
            };
        };
        if self.ui.is_some() && method != "initialize" {
            return self.ui_call(id, &method, incoming.params);
        }
        let outcome = self.call(&method, incoming.params, id.is_none());
        Some(Box::pin(async move {
            let outcome = outcome.await;
            match id {
                Some(id) => response(&id, &outcome),
                None => {
                    if let Err(failure) = outcome {
                        // A notification gets no response.
                        tracing::debug!(code = failure.code, message = failure.message, "a notification had no effect");
                    }
                    Vec::new()
                }
            }
        }))
    }
}

impl Rpc {
    pub(super) fn new(state: Core, caller: Caller, link: ClientLink) -> Self {
        let (presence, presence_changes) = (state.presence.enter(&caller), state.presence.changes());
        Self {
            state,
            caller,
            link,
            client: None,
            runtimes: Vec::new(),
            presence,
            presence_changes,
            sent_viewers: Viewers::new(),
            follows_changed: Arc::default(),
            ui: None,
        }
    }

    fn runtimes(&self) -> Vec<Arc<RuntimeInfo>> {
        let grant = &self.caller.device().grant;
        let mut all = self.state.directory.runtimes();
        all.retain(|runtime| grant.covers(Scope::Watch, Target::Runtime(&runtime.runtime_id)));
        all
    }

    /// Returns the capabilities of the runtimes that a client of the UI protocol may use.
    fn server_capabilities(&self) -> Map<String, Value> {
        server_capabilities(self.runtimes().iter().map(|runtime| runtime.capabilities.as_ref()), &UI_CAPABILITIES)
    }

    /// Returns `presence.changed` for every followed session whose viewers differ from those last sent.
    fn presence_frame(&mut self) -> Vec<u8> {
        let following = self.link.following();
        let followed = |id: &SessionId| following.iter().any(|(name, _)| **name == *"*" || **name == *id.as_str());
        let now = self.state.presence.viewers(|id| followed(id) && self.session(id).is_ok());
        let mut frames = Vec::new();
        let removed = self.sent_viewers.keys().filter(|id| !now.contains_key(*id) && followed(id));
        let changed = removed.map(|id| (id, &[][..])).chain(now.iter().map(|(id, viewers)| (id, viewers.as_slice())));
        for (session_id, viewers) in changed {
            if self.sent_viewers.get(session_id).is_none_or(|old| old != viewers) {
                ws_notify(&mut frames, &PresenceChanged { session_id: session_id.clone(), lookers: viewers.to_vec() });
            }
        }
        self.sent_viewers = now;
        frames
    }

    fn call(&mut self, method: &str, params: Option<&RawValue>, notify: bool) -> PendingResult {
        if method != "initialize" && self.client.is_none() {
            return now(Err(RpcError::new(-32600, "not_initialized", "send `initialize` first")));
        }
        if method == "initialize" && speaks_ui(params) {
            return self.ui_begins(params).unwrap_or_else(|failure| now(Err(failure)));
        }
        match self.dispatch(method, params, notify) {
            Ok(later) => later,
            Err(failure) => now(Err(failure)),
        }
    }

    /// Returns a session that the caller may see.
    fn session(&self, id: &SessionId) -> Result<Arc<SessionInfo>, RpcError> {
        let session = self.state.directory.session(id);
        let session = session.filter(|session| self.caller.sees(&session.session_id, &session.runtime_id));
        session.ok_or_else(|| SessionError::NoSession(id.clone()).into())
    }

    /// Returns the named session, else the only one that the client follows.
    fn named(&self, id: Option<SessionId>) -> Result<SessionId, RpcError> {
        let only = || match self.link.following().as_slice() {
            [(name, _)] => SessionId::from_str(name).ok(),
            _ => None,
        };
        let ui = || self.ui.as_ref().and_then(|ui| ui.session().cloned());
        id.or_else(ui).or_else(only).ok_or_else(|| RpcError::params("`session_id` is missing: name a session"))
    }

    /// Like [`named`](Self::named), with a permit.
    fn permitted<S: Right>(&self, id: Option<SessionId>) -> Result<(SessionId, Permit<S>), RpcError> {
        let id = self.named(id)?;
        let session = self.session(&id)?;
        let permit = self.caller.permit(Target::Session(&id, &session.runtime_id))?;
        Ok((id, permit))
    }

    fn edit(
        &self,
        id: Option<SessionId>,
        title: Option<String>,
        archived: Option<bool>,
    ) -> Result<PendingResult, RpcError> {
        let (id, permit) = self.permitted::<Prompt>(id)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&*directory.edit_session(&permit, &id, title, archived).await?) }))
    }

    fn attach(&mut self, params: AttachParams) -> Result<PendingResult, RpcError> {
        let after = after(params.after.as_deref(), params.from.as_deref())?;
        let session = match params.session_id.as_str() {
            "*" => None,
            text => {
                let id: SessionId = text.parse().map_err(|error| RpcError::params(format!("`session_id`: {error}")))?;
                Some(self.session(&id)?.session_id.clone())
            }
        };
        let name: Arc<str> = params.session_id.into();
        let filter = filter(&self.caller, session);
        let (state, caller, link) = (self.state.clone(), self.caller.clone(), self.link.clone());
        let follows_changed = Arc::clone(&self.follows_changed);
        let answers = self.client == Some(true) && caller.device().grant.scopes.contains(&Scope::Approve);
        check_capacity(&link, &name)?;
        Ok(Box::pin(async move {
            let log = state.directory.log();
            // The feed is opened first, so that it is never behind the promised head.
            let (raw, framing) = (link.is_raw(), Framing::WebSocket);
            let feed = EventFeed::open(&state.fans, raw, framing, filter.clone(), params.projection);
            let attach = log.attach(&filter, &after);
            let hello = greeting::hello(&state, &caller, &filter, &attach, Some(&name));
            let mut frames = Vec::new();
            ws_notify(&mut frames, &hello);
            let mut position = attach.after;
            if attach.resume != ResumeVerdict::Ok {
                let many = state.directory.snapshots().latest(&filter).await?;
                position = many.at;
                let snapshots = greeting::snapshots(Some(&name), log.cursor(position), many);
                ws_notify(&mut frames, &snapshots);
            }
            if after != StartAfter::Oldest && !hello.requests.is_empty() {
                still_open(log, &filter, position, &hello.requests, &mut frames).await?;
            }
            // Other sessions may have been attached since.
            check_capacity(&link, &name)?;
            let live_at = attach.head.max(position);
            follows_changed.store(true, Ordering::Release);
            let followed = Arc::clone(&name);
            link.subscribe(
                NewSubscription { name: followed, feed, answers, after: position, live_at, live_id: false },
                &frames,
            );
            result(&Attached {
                attached: true,
                session_id: name.to_string(),
                resume: attach.resume,
                cursor: log.cursor(position),
                head: log.cursor(attach.head),
            })
        }))
    }

    fn history(&mut self, params: HistoryParams) -> Result<PendingResult, RpcError> {
        let id = params.session_id.ok_or_else(|| RpcError::params("`session_id` is missing: name a session"))?;
        let session = self.session(&id)?.session_id.clone();
        let range = HistoryRange::read(params.after.as_deref(), params.before.as_deref())?;
        let log = self.state.directory.log().clone();
        let account = self.link.account().clone();
        let bytes = params.max_bytes.unwrap_or(HISTORY_BYTES).clamp(1, HISTORY_BYTES);
        let items = params.limit.unwrap_or(HISTORY).clamp(1, HISTORY_MAX);
        let limit = history::limit(items, Some(bytes), params.merge, params.max_output);
        Ok(Box::pin(async move {
            let lost = |resume: ResumeVerdict, oldest: Position| {
                let detail = "the cursor cannot be resumed from: start without one, or attach to get a snapshot";
                let mut failure = RpcError::new(-32602, "bad_cursor", detail);
                failure.0.data.more.resume = Some(resume);
                failure.0.data.more.oldest = Some(log.cursor(oldest));
                failure
            };
            // Of many concurrent calls, some wait until the client has read the responses of the others. Charges the events and the
            // output made of them: an event longer than a page needs a larger charge and is read again.
            let mut needed = 2 * HISTORY_BYTES;
            let (page, _charge, end) = loop {
                let mut charge = account.wait(needed).await;
                let (page, end) = match range {
                    HistoryRange::Before(ref before) => {
                        let (resume, to) = history::ends(&log, before.clone());
                        if resume != ResumeVerdict::Ok {
                            return Err(lost(resume, log.trimmed(&session)));
                        }
                        let page = log.page_before(&session, to, limit, &mut charge).await.map_err(Problem::from)?;
                        let end = history::back_end(&log, &page);
                        (page, end)
                    }
                    HistoryRange::After(ref after, part) => {
                        let filter = Filter::session(session.clone());
                        let attach = log.attach(&filter, after);
                        if attach.resume != ResumeVerdict::Ok {
                            return Err(lost(attach.resume, attach.oldest));
                        }
                        let from = history::position_after(attach.after, part);
                        let page = log.page_after(&filter, from, limit, &mut charge).await.map_err(Problem::from)?;
                        let end = history::page_end(&log, page.to);
                        (page, end)
                    }
                };
                if history::fits_charge(&mut charge, needed, page.bytes) {
                    break (page, charge, end);
                }
                needed = page.bytes;
            };
            let items = &page.items;
            let json = history::json(&log, items, &CountedEnd { events_sent: items.len(), end })?;
            let json = String::from_utf8(json).map_err(|error| RpcError::new(-32603, "internal", error.to_string()))?;
            RawValue::from_string(json).map_err(|error| RpcError::new(-32603, "internal", error.to_string()))
        }))
    }

    fn start(&mut self, mut params: StartRun) -> Result<PendingResult, RpcError> {
        let (session, key) = (params.session_id.take(), params.idempotency_key.take());
        let content = Self::content(params)?;
        let (id, permit) = self.permitted::<Prompt>(session)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&directory.prompt_once(&permit, &id, content, key).await?) }))
    }

    /// Returns the content blocks of a prompt.
    fn content(params: StartRun) -> Result<Vec<Box<RawValue>>, RpcError> {
        let (ui_context, meta) = (params.ui_context.as_deref(), params.meta.as_deref());
        let context = context::PromptContext::read(ui_context, meta).map_err(RpcError::params)?;
        let context = context.with_extra(params.extra_members.as_deref());
        let content = match params {
            StartRun { content: Some(content), .. } => content,
            StartRun { text: Some(text), .. } | StartRun { input: Some(PromptInput::Text { text }), .. } => {
                vec![text_block(&text)]
            }
            StartRun { input: Some(PromptInput::Parts { ref parts }), .. } => {
                parts.iter().map(|part| block(&acp_block(part)?)).collect::<Result<_, _>>()?
            }
            _ => return Err(RpcError::params("there is nothing to send: use `input`, `text` or `content`")),
        };
        if content.is_empty() {
            return Err(RpcError::params("there is nothing to send: the content is empty"));
        }
        Ok(context.prepend_to(content))
    }

    // === the UI protocol to the letter ===

    fn cancel(&mut self, params: CancelParams) -> Result<PendingResult, RpcError> {
        let session_of_run = |run: &RunId| {
            let runs = self.state.directory.runs(&filter(&self.caller, None));
            runs.into_iter().find(|known| known.run_id == *run).map(|known| known.session_id)
        };
        let id = match (params.session_id, &params.run_id) {
            (Some(id), _) => Some(id),
            (None, Some(run)) => Some(session_of_run(run).ok_or(SessionError::NoRun)?),
            (None, None) => None,
        };
        let (id, permit) = self.permitted::<Prompt>(id)?;
        let directory = self.state.directory.clone();
        let waiting = directory.runs(&Filter::session(id.clone()));
        Ok(Box::pin(async move {
            let run_id = directory.cancel_because(&permit, &id, params.run_id, params.reason).await?;
            // A queued run ends at once; a running one ends when its runtime reports it.
            let queued = waiting.iter().any(|run| run.run_id == run_id && run.status == RunStatus::Queued);
            let status = if queued { RunStatus::Cancelled } else { RunStatus::Running };
            result(&Cancelled { ok: true, run_id, status })
        }))
    }

    /// Handles a JSON-RPC response: the answer to a request of the gateway, or a stray one.
    fn answered(&self, id: &str, result: &RawValue) -> Reply {
        let outcome = self.take_answer(id, result);
        Box::pin(async move { outcome.await.map_or_else(Vec::new, |(request, failure)| not_taken(&request, &failure)) })
    }

    /// Handles an answer. Returns the request and the reason if the answer was refused and no other message reports that.
    fn take_answer(
        &self,
        id: &str,
        result: &RawValue,
    ) -> impl Future<Output = Option<(String, RpcError)>> + Send + 'static + use<> {
        let request: Result<String, _> = serde_json::from_str(id);
        let answer: Result<UiAnswer, _> = object::from_str(result.get());
        let outcome = match (request, answer) {
            (Ok(request), Ok(answer)) => {
                let (name, revision) = wire::parse_request_name(&request);
                let answer = Answer { revision: Some(revision), as_offered: true, ..answer.into() };
                Ok((name.to_owned(), self.answer(name.to_owned(), answer, None)))
            }
            (request, answer) => {
                metrics().stray_answers.inc();
                tracing::debug!(id, "a client answered nothing that was asked, or with something that is no answer");
                let failure = answer.err().map(|error| RpcError::params(format!("not an answer: {error}")));
                Err(request.ok().zip(failure))
            }
        };
        async move {
            let (request, outcome) = match outcome {
                Ok(begun) => begun,
                Err(no_answer) => return no_answer,
            };
            let failure = outcome.await.err()?;
            metrics().stray_answers.inc();
            tracing::debug!(request, code = failure.code, message = failure.message, "an answer was not taken");
            // The client learns the outcome by `ui.request.resolved`, like all others.
            (!matches!(failure.code, -32010 | -32012)).then_some((request, failure))
        }
    }

    fn answer(
        &self,
        request_id: String,
        answer: Answer,
        key: Option<String>,
    ) -> impl Future<Output = Result<plexus_protocol::Receipt, RpcError>> + Send + 'static + use<> {
        let (state, caller) = (self.state.clone(), self.caller.clone());
        async move {
            let missing = |id: &str| RpcError::new(-32016, "request_not_found", format!("there is no request {id}"));
            let id: RequestId = request_id.parse().map_err(|_| missing("with that name"))?;
            let target = state.directory.requests().target(&id).await?;
            let (session, runtime) = target
                .filter(|(session, runtime)| caller.sees(session, runtime))
                .ok_or_else(|| missing(id.as_str()))?;
            let permit = caller.permit::<Approve>(Target::Session(&session, &runtime))?;
            Ok(state.answer(&permit, &id, answer, key).await?)
        }
    }
}

/// Returns whether these `initialize` parameters select the UI protocol to the letter.
fn speaks_ui(params: Option<&RawValue>) -> bool {
    parse::<Initialize>(params).is_ok_and(|params| params.ui_protocol.as_deref() == Some(PROTOCOL))
}

/// Returns the notification that a client's response to a request was not accepted, since a response has no response.
fn not_taken(request: &str, failure: &RpcError) -> Vec<u8> {
    let mut frame = Vec::new();
    ws_notify(&mut frame, &NotTaken { request_id: request.to_owned(), error: failure.0.clone() });
    frame
}

/// Checks that a connection may also follow `name`: either all sessions or sessions by name, or events would be sent twice.
fn check_capacity(link: &ClientLink, name: &str) -> Result<(), RpcError> {
    let following = link.following();
    if following.iter().any(|(known, _)| **known != *name && (name == "*" || **known == *"*")) {
        return Err(RpcError::params("follow `*` or sessions by name on one connection, not both: detach first"));
    }
    if following.len() >= ATTACHES && !following.iter().any(|(known, _)| **known == *name) {
        return Err(RpcError::params(format!(
            "one connection can follow at most {ATTACHES} sessions by name: follow `*`"
        )));
    }
    Ok(())
}

/// Appends the `ui.*.request` of every open request whose event will not follow, so that a client of the UI protocol gets each
/// request exactly once.
async fn still_open(
    log: &Log,
    filter: &Filter,
    mut after: Position,
    open: &[Arc<Request>],
    frames: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let mut missing: Vec<&Arc<Request>> = open.iter().collect();
    let limit = ReadLimit { events: HISTORY, bytes: HISTORY_BYTES };
    #[derive(Deserialize)]
    struct Opened<'a> {
        #[serde(borrow)]
        request_id: Cow<'a, str>,
        #[serde(default)]
        revision: u64,
    }
    let head = log.head();
    while after < head && !missing.is_empty() {
        let page = log.read(filter, after, limit).await.map_err(Problem::from)?;
        let changes_request = |event: &&Arc<Event>| matches!(event.kind, Kind::RequestOpened | Kind::RequestUpdated);
        for event in page.events.iter().filter(changes_request) {
            if let Ok(Opened { request_id, revision }) = serde_json::from_slice(&event.body) {
                missing.retain(|request| request.request_id.as_str() != request_id || request.revision != revision);
            }
        }
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    for request in missing {
        if let Some(frame) = serde_json::to_vec(&*request.brief()).ok().and_then(|body| ask(&body)) {
            frames.extend_from_slice(&frame);
        }
    }
    Ok(())
}

fn after(after: Option<&str>, from: Option<&str>) -> Result<StartAfter, RpcError> {
    match (after.filter(|after| !after.is_empty()), from) {
        (None | Some("now"), Some("now")) | (Some("now"), None) => Ok(StartAfter::Now),
        (None, None | Some("start")) => Ok(StartAfter::Oldest),
        (None, Some(other)) => Err(RpcError::params(format!("`from` must be \"start\" or \"now\", not {other:?}"))),
        (Some(text), None) => text.parse().map(StartAfter::Cursor).map_err(|error| Problem::bad_cursor(error).into()),
        (Some(_), Some(_)) => Err(RpcError::params("give `after` or `from`, not both")),
    }
}

fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(RpcError::params("`params` must be an object"));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(Objects(&mut parser)).map_err(|error| {
        let at = error.path().to_string();
        let cause = error.into_inner();
        RpcError::params(if at == "." { cause.to_string() } else { format!("`{at}`: {cause}") })
    })
}

fn block(value: &Value) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(-32603, "internal", error.to_string()))
}

/// Converts a part of the UI protocol's input to an ACP content block.
fn acp_block(part: &Value) -> Result<Value, RpcError> {
    match part["type"].as_str() {
        Some("image_url") => {
            let url = part["image_url"]["url"]
                .as_str()
                .or_else(|| part["image_url"].as_str())
                .or_else(|| part["url"].as_str());
            let url = url.ok_or_else(|| RpcError::params("an `image_url` part needs `image_url.url`"))?;
            let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
            Ok(match inline {
                Some((mime, data)) => json!({ "type": "image", "mimeType": mime, "data": data }),
                None => json!({ "type": "resource_link", "uri": url, "name": url }),
            })
        }
        // Text and ACP's own blocks are the same in both protocols.
        Some(_) => Ok(part.clone()),
        None => Err(RpcError::params("every part needs a `type`")),
    }
}
