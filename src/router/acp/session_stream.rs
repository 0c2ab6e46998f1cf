//! One client in one session: a cursor, and the few things that a translation of the log must know of this client. Its
//! truth is the log; what stands here says only what was sent for which of the client's own messages.

// Who reads events decides for every kind: a new one has to be named here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::VecDeque;
use std::str::FromStr as _;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use super::Sent;
use super::client_session::{ClientSessionState, Role};
use super::question;
use super::shape::{self, Can};
use super::shared::Shared;
use crate::metrics::Subscriber;
use crate::router::AppState;
use crate::router::follow::Follow;
use crate::sessions::Filter;
use plexus_protocol::{Cursor, Event, Kind, Position, Request, RequestId, SessionId};

/// What drives a session's stream for one client. There is one at a time; a place without one costs what it holds.
pub(in crate::router) struct SessionStream {
    state: AppState,
    shared: Arc<Shared>,
    session: SessionId,
    turned: watch::Receiver<u64>,
    follow: Option<(u64, Follow)>,
    /// Events that were read and are not told yet: one page at most.
    page: VecDeque<Arc<Event>>,
    /// What the page was read up to.
    read_to: Position,
}

/// What an event comes to.
enum Shown {
    /// These messages.
    Told(Vec<Vec<u8>>),
    /// Nothing yet: whose run it is will be known in a moment.
    Later,
}

impl SessionStream {
    pub(super) fn new(state: AppState, shared: Arc<Shared>, session: SessionId) -> Self {
        let turned = shared.turned();
        let mut seat =
            Self { state, shared, session, turned, follow: None, page: VecDeque::new(), read_to: Position::START };
        seat.turned.mark_changed();
        seat
    }

    /// The session.
    pub(in crate::router) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Up to where everything was given out; `None` while the client is not in the session.
    pub(in crate::router) fn cursor(&self) -> Option<Cursor> {
        let position = self.shared.with(|tables| tables.places.get(&self.session).map(ClientSessionState::position))?;
        Some(self.state.directory.log().cursor(position))
    }

    /// Begins again after `position`, because what came later did not arrive.
    pub(in crate::router) fn rewind(&mut self, position: Position) {
        self.shared.with(|tables| {
            let Some(place) = tables.places.get_mut(&self.session) else { return };
            place.position = position;
            place.greeted &= position >= place.entry.live_at;
            place.asked.retain(|asked| asked.at <= position);
            for asked in &mut place.asked {
                asked.over = asked.over.filter(|over| *over <= position);
            }
            for prompt in &mut place.prompts {
                prompt.ended = prompt.ended.filter(|ended| *ended <= position);
            }
        });
        self.follow = None;
        self.page.clear();
    }

    /// The next messages; waits until there are some, also while the client is not in the session. Cancellation safe:
    /// nothing is lost.
    pub(in crate::router) async fn next(&mut self) -> Vec<Sent> {
        loop {
            self.turned.borrow_and_update();
            let there = self.sync_state();
            let mut sent = self.say();
            if there {
                sent.append(&mut self.translate_page());
            }
            if !sent.is_empty() {
                return sent;
            }
            let Self { turned, follow, page, read_to, .. } = self;
            tokio::select! {
                // The sender lives as long as `shared`.
                _ = turned.changed() => {}
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

    /// Follows the place as it is now. False: the client is not in the session.
    fn sync_state(&mut self) -> bool {
        let found = self.shared.with(|tables| {
            let place = tables.places.get(&self.session)?;
            Some((place.generation, place.position, place.entry.live_at))
        });
        let Some((generation, position, live_at)) = found else {
            self.follow = None;
            self.page.clear();
            return false;
        };
        if self.follow.as_ref().is_none_or(|(driven, _)| *driven != generation) {
            let filter = Filter::session(self.session.clone());
            let follow = Follow::new(self.state.directory.log(), filter, position, Subscriber::Acp).until(live_at);
            self.follow = Some((generation, follow));
            self.page.clear();
            self.read_to = position;
        }
        true
    }

    /// What is in no log.
    fn say(&self) -> Vec<Sent> {
        let out = self.shared.with(|tables| {
            tables.places.get_mut(&self.session).map(|place| std::mem::take(&mut place.out)).unwrap_or_default()
        });
        out.into_iter().map(|json| Sent::to(Some(self.session.clone()), json)).collect()
    }

    /// Looks at the place, if it is the one that is driven: the client may just have come in anew.
    fn mine<T>(&self, look: impl FnOnce(&mut ClientSessionState, Can) -> T) -> Option<T> {
        let driven = self.follow.as_ref().map(|(generation, _)| *generation)?;
        self.shared.with(|tables| {
            let can = tables.client.as_ref().map(|client| client.can).unwrap_or_default();
            let place = tables.places.get_mut(&self.session).filter(|place| place.generation == driven)?;
            Some(look(place, can))
        })
    }

    /// What the page comes to.
    fn translate_page(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(event) = self.page.front() {
            let event = Arc::clone(event);
            self.greet(event.position, &mut sent);
            match self.show(&event) {
                Shown::Told(mut messages) => {
                    // One with what is said at the same place, so that nobody comes back between the two.
                    messages
                        .extend(self.greeting(event.position.next()).into_iter().flat_map(|(_, greeting)| greeting));
                    self.put(event.position, messages, &mut sent);
                }
                Shown::Later => return sent,
            }
            self.page.pop_front();
        }
        let read_to = self.read_to;
        self.greet(read_to.next(), &mut sent);
        self.mine(|place, _| place.position = place.position.max(read_to));
        sent
    }

    /// Messages of one place in the log, the last of them with its cursor.
    fn put(&self, position: Position, messages: Vec<Vec<u8>>, sent: &mut Vec<Sent>) {
        let last = messages.len();
        for (n, json) in messages.into_iter().enumerate() {
            let cursor = (n + 1 == last).then(|| self.state.directory.log().cursor(position));
            sent.push(Sent { session: Some(self.session.clone()), cursor, json, in_log: true });
        }
        self.mine(|place, _| place.position = place.position.max(position));
    }

    /// Greets the client before the first event that is new to it.
    fn greet(&self, next: Position, sent: &mut Vec<Sent>) {
        if let Some((live_at, messages)) = self.greeting(next) {
            self.put(live_at, messages, sent);
        }
    }

    /// The response that the client waits for, and what is open; once, when the past is told: `next` is the first place
    /// that is not.
    fn greeting(&self, next: Position) -> Option<(Position, Vec<Vec<u8>>)> {
        let (live_at, owed, asks) = self.mine(|place, _| {
            if place.greeted || next <= place.entry.live_at {
                return None;
            }
            place.greeted = true;
            Some((place.entry.live_at, place.entry.owed.clone(), place.entry.asks))
        })??;
        let mut messages: Vec<Vec<u8>> = owed.into_iter().collect();
        if asks {
            // Never older than the log: what closed before `live_at` is not among them.
            for request in self.state.directory.open_requests(&Filter::session(self.session.clone())) {
                messages.extend(self.ask(&request, live_at));
            }
        }
        Some((live_at, messages))
    }

    /// Asks the client, once; shows it the question where it may not answer.
    fn ask(&self, request: &Request, at: Position) -> Option<Vec<u8>> {
        self.mine(|place, can| {
            if place.was_asked(&request.request_id) {
                return None;
            }
            let card = place.entry.role == Role::Observer || request.observe_only;
            place.ask(request, at, card);
            match card {
                // Who takes events has it from there.
                true if can.events => None,
                true => Some(question::card(request)),
                false => Some(question::question(request, &self.state.directory.log().cursor(at), can)),
            }
        })?
    }

    fn show(&self, event: &Event) -> Shown {
        if matches!(event.kind, Kind::RunStarted | Kind::RunStatus) && self.is_being_taken(event) {
            return Shown::Later;
        }
        let log = self.state.directory.log();
        let mut messages = Vec::new();
        if event.kind.is_acp() {
            if !self.is_own_prompt(event) {
                messages.push(shape::update(event, log.epoch()));
            }
            return Shown::Told(messages);
        }
        let can = self.shared.can();
        if can.events {
            messages.push(shape::event(event, log.epoch()));
        }
        match event.kind {
            Kind::RequestOpened => messages.extend(self.opened(event)),
            Kind::RequestUpdated => messages.extend(self.changed(event)),
            Kind::RequestResolved => messages.extend(self.resolved(event)),
            Kind::RunEnded => messages.extend(self.ended(event)),
            // Of ACP's own kinds the update is told above; for the gateway's other kinds ACP has no word.
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
        Shown::Told(messages)
    }

    /// Whether the event may be the first of a run whose prompt this client is just handing over.
    fn is_being_taken(&self, event: &Event) -> bool {
        let unknown = self.mine(|place, _| !place.taking.is_empty() && !place.runs_own(&event.run_id));
        unknown == Some(true) && shape::prompted_by(event).is_some_and(|by| by.device_id == self.shared.device)
    }

    /// An editor has drawn its user's own prompt already.
    fn is_own_prompt(&self, event: &Event) -> bool {
        let own =
            |place: &mut ClientSessionState, _| event.position > place.entry.live_at && place.runs_own(&event.run_id);
        event.kind == Kind::UserMessageChunk && self.mine(own) == Some(true)
    }

    fn opened(&self, event: &Event) -> Option<Vec<u8>> {
        let live = self.mine(|place, _| event.position > place.entry.live_at)?;
        // The session's view is never older than the log: what is not open now has closed since.
        let id = request_of(event).filter(|_| live)?;
        let open = self.state.directory.open_requests(&Filter::session(self.session.clone()));
        let request = open.iter().find(|request| request.request_id == id)?;
        self.ask(request, event.position)
    }

    /// What was asked before is taken back, and asked as it is now.
    fn changed(&self, event: &Event) -> Vec<Vec<u8>> {
        let Some(id) = request_of(event) else { return Vec::new() };
        let taken_back = self.mine(|place, can| {
            let asked = place.asked.iter_mut().find(|asked| asked.id == id && asked.over.is_none())?;
            asked.over = Some(event.position);
            match asked.card {
                true if can.events => None,
                // A card is drawn anew in its place.
                true => None,
                false => Some(question::retracted(&id, asked.shown.0)),
            }
        });
        taken_back.flatten().into_iter().chain(self.opened(event)).collect()
    }

    fn resolved(&self, event: &Event) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let read = serde_json::from_slice::<question::Resolved>(&event.body).ok();
        let (Some(id), Some(end)) = (request_of(event), read) else { return messages };
        let log = self.state.directory.log();
        self.mine(|place, can| {
            let told_ends = place.entry.told_ends;
            let Some(asked) = place.asked.iter_mut().find(|asked| asked.id == id && asked.over.is_none()) else {
                if place.entry.resumed && event.position <= place.entry.live_at {
                    messages.push(question::retracted(&id, 0));
                }
                return;
            };
            asked.over = Some(event.position);
            match (asked.card, asked.answered) {
                (true, _) if can.events => {}
                (true, _) => messages.push(question::card_ended(&self.session, &id, &end)),
                (false, false) => messages.push(question::retracted(&id, asked.shown.0)),
                (false, true) => {}
            }
            if told_ends {
                let meta = serde_json::json!({ "request_id": id, "cursor": log.cursor(event.position) });
                messages.push(question::permission_resolved(&self.session, &asked.tool_call, &end, meta));
            }
        });
        messages
    }

    /// The responses to the prompts of this client that the run was.
    fn ended(&self, event: &Event) -> Vec<Vec<u8>> {
        let epoch = self.state.directory.log().epoch();
        let ended = self.mine(|place, _| {
            let mut waiting: Vec<_> = place.prompts.iter_mut().collect();
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

/// The request that an event is about.
fn request_of(event: &Event) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Of<'a> {
        #[serde(borrow)]
        request_id: std::borrow::Cow<'a, str>,
    }
    let of: Of<'_> = serde_json::from_slice(&event.body).ok()?;
    RequestId::from_str(&of.request_id).ok()
}
