//! The stream of one session to one client: a cursor into the log, and the little state that translating for this client needs. The log
//! is the source; [`ClientSessionState`] records only which messages were sent for the client's own messages.

// Every event kind needs a decision here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::VecDeque;
use std::str::FromStr as _;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use super::Sent;
use super::client_session::{ClientSessionState, Presentation, Role};
use super::question;
use super::shape::{self, ClientSupport};
use super::shared::Shared;
use plexus_metrics::Subscriber;
use plexus_protocol::{Cursor, Event, Kind, Position, Request, RequestId, SessionId};
use plexus_router::Core;
use plexus_router::follow::FollowLog;
use plexus_sessions::Filter;

/// Translates a session's log for one client. At most one is in use for each client and session.
pub(crate) struct SessionStream {
    core: Core,
    shared: Arc<Shared>,
    session: SessionId,
    changed: watch::Receiver<u64>,
    follow: Option<(u64, FollowLog)>,
    /// Events that were read and not sent yet: one page at most.
    page: VecDeque<Arc<Event>>,
    /// The position up to which the page was read.
    read_to: Position,
}

/// The translation of an event.
enum Translation {
    /// The messages to send.
    Messages(Vec<Vec<u8>>),
    /// The translation is delayed: it will soon be known whose run the event belongs to.
    Later,
}

impl SessionStream {
    pub(super) fn new(core: Core, shared: Arc<Shared>, session: SessionId) -> Self {
        let changed = shared.changed();
        let mut stream =
            Self { core, shared, session, changed, follow: None, page: VecDeque::new(), read_to: Position::START };
        stream.changed.mark_changed();
        stream
    }

    /// Returns the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the cursor up to which everything was sent; `None` while the client is not in the session.
    pub(crate) fn cursor(&self) -> Option<Cursor> {
        let position =
            self.shared.with(|tables| tables.sessions.get(&self.session).map(ClientSessionState::position))?;
        Some(self.core.directory.log().cursor(position))
    }

    /// Goes back to `position`, because later messages did not arrive.
    pub(crate) fn rewind(&mut self, position: Position) {
        self.shared.with(|tables| {
            let Some(state) = tables.sessions.get_mut(&self.session) else { return };
            state.position = position;
            state.greeted &= position >= state.entry.live_at;
            state.presented.retain(|presented| presented.at <= position);
            for presented in &mut state.presented {
                presented.ended_at = presented.ended_at.filter(|ended_at| *ended_at <= position);
            }
            for prompt in &mut state.prompts {
                prompt.ended = prompt.ended.filter(|ended| *ended <= position);
            }
        });
        self.follow = None;
        self.page.clear();
    }

    /// Returns the next messages; waits until there are some, also while the client is not in the session. Cancellation safe.
    pub(crate) async fn next(&mut self) -> Vec<Sent> {
        loop {
            self.changed.borrow_and_update();
            let is_member = self.sync_state();
            let mut sent = self.take_queued();
            if is_member {
                sent.append(&mut self.translate_page());
            }
            if !sent.is_empty() {
                return sent;
            }
            let Self { changed, follow, page, read_to, .. } = self;
            tokio::select! {
                // The sender lives as long as `shared`.
                _ = changed.changed() => {}
                read = async {
                    match follow {
                        Some((_, follow)) if page.is_empty() => follow.page().await,
                        _ => std::future::pending().await,
                    }
                } => {
                    *read_to = read.next;
                    page.extend(read.events);
                }
            }
        }
    }

    /// Follows the client's current state. Returns `false` if the client is not in the session.
    fn sync_state(&mut self) -> bool {
        let found = self.shared.with(|tables| {
            let state = tables.sessions.get(&self.session)?;
            Some((state.generation, state.position, state.entry.live_at))
        });
        let Some((generation, position, live_at)) = found else {
            self.follow = None;
            self.page.clear();
            return false;
        };
        if self.follow.as_ref().is_none_or(|(driven, _)| *driven != generation) {
            let filter = Filter::session(self.session.clone());
            let follow = FollowLog::new(self.core.directory.log(), filter, position, Subscriber::Acp).until(live_at);
            self.follow = Some((generation, follow));
            self.page.clear();
            self.read_to = position;
        }
        true
    }

    /// Returns the messages that are not in the log.
    fn take_queued(&self) -> Vec<Sent> {
        let out = self.shared.with(|tables| {
            tables.sessions.get_mut(&self.session).map(|state| std::mem::take(&mut state.out)).unwrap_or_default()
        });
        out.into_iter().map(|json| Sent::to(Some(self.session.clone()), json)).collect()
    }

    /// Accesses the client's state, if its generation is still this stream's: the client may have joined again.
    fn with_state<T>(&self, look: impl FnOnce(&mut ClientSessionState, ClientSupport) -> T) -> Option<T> {
        let driven = self.follow.as_ref().map(|(generation, _)| *generation)?;
        self.shared.with(|tables| {
            let support = tables.client.as_ref().map(|client| client.support).unwrap_or_default();
            let state = tables.sessions.get_mut(&self.session).filter(|state| state.generation == driven)?;
            Some(look(state, support))
        })
    }

    /// Translates the page.
    fn translate_page(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(event) = self.page.front() {
            let event = Arc::clone(event);
            self.greet(event.position, &mut sent);
            match self.translate(&event) {
                Translation::Messages(mut messages) => {
                    // Joined with the messages of the same position, so that no client resumes between the two.
                    messages
                        .extend(self.greeting(event.position.next()).into_iter().flat_map(|(_, greeting)| greeting));
                    self.put(event.position, messages, &mut sent);
                }
                Translation::Later => return sent,
            }
            self.page.pop_front();
        }
        let read_to = self.read_to;
        self.greet(read_to.next(), &mut sent);
        self.with_state(|state, _| state.position = state.position.max(read_to));
        sent
    }

    /// Appends the messages of one position in the log, the last of them with its cursor.
    fn put(&self, position: Position, messages: Vec<Vec<u8>>, sent: &mut Vec<Sent>) {
        let last = messages.len();
        for (n, json) in messages.into_iter().enumerate() {
            let cursor = (n + 1 == last).then(|| self.core.directory.log().cursor(position));
            sent.push(Sent { session: Some(self.session.clone()), cursor, json, in_log: true });
        }
        self.with_state(|state, _| state.position = state.position.max(position));
    }

    /// Sends the greeting before the first event that is new to the client.
    fn greet(&self, next: Position, sent: &mut Vec<Sent>) {
        if let Some((live_at, messages)) = self.greeting(next) {
            self.put(live_at, messages, sent);
        }
    }

    /// Returns the due response and the open requests, once, after the history. `next`: the first position after it.
    fn greeting(&self, next: Position) -> Option<(Position, Vec<Vec<u8>>)> {
        let (live_at, due_response, sends_requests) = self.with_state(|state, _| {
            if state.greeted || next <= state.entry.live_at {
                return None;
            }
            state.greeted = true;
            Some((state.entry.live_at, state.entry.due_response.clone(), state.entry.sends_requests))
        })??;
        let mut messages = Vec::new();
        let open = sends_requests.then(|| self.core.directory.requests().open(&Filter::session(self.session.clone())));
        if let Some((id, result)) = due_response {
            let result = match &open {
                // A reconnecting client closes the dialogs of all other requests.
                Some(open) => question::with_open(&result, open),
                None => result,
            };
            messages.push(shape::response(id.get(), Ok(&result)));
        }
        // The open requests are never older than the log, so none has closed before `live_at`.
        for request in open.iter().flatten() {
            messages.extend(self.ask(request, live_at));
        }
        Some((live_at, messages))
    }

    /// Returns the request for the client, once; as a tool call if the client may not answer.
    fn ask(&self, request: &Request, at: Position) -> Option<Vec<u8>> {
        self.with_state(|state, support| {
            if state.is_presented(&request.request_id) {
                return None;
            }
            let limit = self.shared.limit;
            let presentation = match state.entry.role == Role::Observer || request.observe_only {
                // A client that accepts events gets the request by an event.
                true if support.events => Presentation::Event,
                true => Presentation::ToolCall,
                false if state.is_deferred(&request.request_id) && question::is_too_risky(request, limit) => {
                    Presentation::Deferred
                }
                false => Presentation::Question,
            };
            state.ask(request, at, presentation);
            let cursor = self.core.directory.log().cursor(at);
            match presentation {
                Presentation::Event => None,
                Presentation::ToolCall => Some(question::card(request)),
                Presentation::Deferred => Some(question::deferred_card(request)),
                Presentation::Question => Some(question::question(request, &cursor, support, limit)),
            }
        })?
    }

    fn translate(&self, event: &Event) -> Translation {
        if matches!(event.kind, Kind::RunStarted | Kind::RunStatus) && self.may_be_own_run(event) {
            return Translation::Later;
        }
        let log = self.core.directory.log();
        let mut messages = Vec::new();
        if event.kind.is_acp() {
            if !self.is_own_prompt(event) {
                messages.push(shape::update(event, log.epoch()));
            }
            return Translation::Messages(messages);
        }
        let support = self.shared.support();
        if support.events {
            messages.push(shape::event(event, log.epoch()));
        }
        match event.kind {
            Kind::RequestOpened => messages.extend(self.opened(event)),
            Kind::RequestUpdated => messages.extend(self.changed(event)),
            Kind::RequestResolved => messages.extend(self.resolved(event)),
            Kind::RunEnded => messages.extend(self.ended(event)),
            // A client that accepts events gets the surface by one.
            Kind::SurfaceUpdated if !support.events => messages.extend(shape::surface(event)),
            // The update of ACP's own kinds is sent above; ACP has no message for the gateway's other kinds.
            Kind::UserMessageChunk
            | Kind::AgentMessageChunk
            | Kind::AgentThoughtChunk
            | Kind::ToolCall
            | Kind::ToolCallUpdate
            | Kind::Plan
            | Kind::AvailableCommandsUpdate
            | Kind::CurrentModeUpdate
            | Kind::ConfigOptionUpdate
            | Kind::SessionInfoUpdate
            | Kind::UsageUpdate
            | Kind::RunStarted
            | Kind::RunStatus
            | Kind::SurfaceUpdated
            | Kind::Hook
            | Kind::RuntimeStatus
            | Kind::ClientJoined
            | Kind::ClientLeft
            | Kind::ClientServed
            | Kind::Error
            | Kind::Raw => {}
        }
        Translation::Messages(messages)
    }

    /// Returns whether the event may be the first of a run whose prompt this client is just sending.
    fn may_be_own_run(&self, event: &Event) -> bool {
        let unknown = self.with_state(|state, _| !state.pending.is_empty() && !state.runs_own(&event.run_id));
        unknown == Some(true) && shape::prompted_by(event).is_some_and(|by| by.device_id == self.shared.device)
    }

    /// Returns whether the event is this client's own prompt, which an editor has drawn already.
    fn is_own_prompt(&self, event: &Event) -> bool {
        let own =
            |state: &mut ClientSessionState, _| event.position > state.entry.live_at && state.runs_own(&event.run_id);
        event.kind == Kind::UserMessageChunk && self.with_state(own) == Some(true)
    }

    fn opened(&self, event: &Event) -> Option<Vec<u8>> {
        let live = self.with_state(|state, _| event.position > state.entry.live_at)?;
        // The session's state is never older than the log: a request that is not open now has closed since.
        let id = read_request_id(event).filter(|_| live)?;
        let open = self.core.directory.requests().open(&Filter::session(self.session.clone()));
        let request = open.iter().find(|request| request.request_id == id)?;
        self.ask(request, event.position)
    }

    /// Withdraws a changed request and sends it again.
    fn changed(&self, event: &Event) -> Vec<Vec<u8>> {
        let Some(id) = read_request_id(event) else { return Vec::new() };
        let revision = read_revision(event);
        let withdrawn = self.with_state(|state, _| {
            let mut presented = state.presented.iter_mut();
            // Not sent if this revision, or a later one, was sent to the client already.
            let presented = presented.find(|presented| {
                presented.id == id && presented.ended_at.is_none() && presented.version.0 < revision
            })?;
            presented.ended_at = Some(event.position);
            match presented.presentation {
                Presentation::Question => Some(question::retracted(&id, presented.version.0)),
                // A tool call is updated in place.
                Presentation::ToolCall | Presentation::Deferred | Presentation::Event => None,
            }
        });
        withdrawn.flatten().into_iter().chain(self.opened(event)).collect()
    }

    fn resolved(&self, event: &Event) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let read = serde_json::from_slice::<question::Resolved>(&event.body).ok();
        let (Some(id), Some(end)) = (read_request_id(event), read) else { return messages };
        let log = self.core.directory.log();
        self.with_state(|state, _| {
            let receives_ends = state.entry.receives_ends;
            let Some(presented) =
                state.presented.iter_mut().find(|presented| presented.id == id && presented.ended_at.is_none())
            else {
                // The client may display the request since an earlier connection. It was no longer open when this client requested it,
                // even if it closed after the client had joined.
                if state.entry.resumed {
                    messages.push(question::retracted(&id, 0));
                }
                return;
            };
            presented.ended_at = Some(event.position);
            match presented.presentation {
                Presentation::ToolCall | Presentation::Deferred => {
                    messages.push(question::card_ended(&self.session, &id, &end));
                }
                Presentation::Question if !presented.answered => {
                    messages.push(question::retracted(&id, presented.version.0))
                }
                Presentation::Question | Presentation::Event => {}
            }
            if receives_ends {
                let meta = serde_json::json!({ "request_id": id, "cursor": log.cursor(event.position) });
                messages.push(question::permission_resolved(&self.session, &presented.tool_call, &end, meta));
            }
        });
        messages
    }

    /// Returns the responses to this client's prompts whose run ended.
    fn ended(&self, event: &Event) -> Vec<Vec<u8>> {
        let epoch = self.core.directory.log().epoch();
        let ended = self.with_state(|state, _| {
            let mut waiting: Vec<_> = state.prompts.iter_mut().collect();
            waiting.retain(|prompt| prompt.run_id == event.run_id && prompt.ended.is_none());
            let ended = waiting.into_iter().map(|prompt| {
                prompt.ended = Some(event.position);
                shape::prompt_ended(prompt.id.get(), event, epoch)
            });
            ended.collect()
        });
        ended.unwrap_or_default()
    }
}

/// Returns the revision that a request has after an event.
fn read_revision(event: &Event) -> u64 {
    #[derive(Deserialize)]
    struct Body {
        revision: u64,
    }
    serde_json::from_slice::<Body>(&event.body).map_or(u64::MAX, |body| body.revision)
}

/// Returns the request that an event is about.
fn read_request_id(event: &Event) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        request_id: std::borrow::Cow<'a, str>,
    }
    let body: Body<'_> = serde_json::from_slice(&event.body).ok()?;
    RequestId::from_str(&body.request_id).ok()
}
