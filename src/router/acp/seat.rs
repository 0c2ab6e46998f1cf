//! One client in one session: a cursor, and the few things that a translation of the log must know of this client. Its
//! truth is the log; what stands here says only what was sent for which of the client's own messages.

use std::collections::VecDeque;
use std::str::FromStr as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::Sent;
use super::peer::Shared;
use super::shape;
use crate::model::{Cursor, Event, Kind, Position, Request, RequestId, RunId, SessionId};
use crate::router::AppState;
use crate::router::follow::Follow;
use crate::sessions::Filter;

/// Prompts of one client in one session that are remembered: those that wait for their end, and the last that found it.
/// A prompt more is refused while all of them wait.
const PROMPTS: usize = 64;
/// Questions that are remembered as asked of one client; past it the oldest that is closed is forgotten, and if none is,
/// the oldest of all: its end is then not told to this client by `$/cancel_request`.
const ASKED: usize = 512;
/// Messages that are in no log and wait for one client in one session; one more is not sent.
const OUT: usize = 64;

/// What a client may do in a session (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// Everything that its scopes allow.
    #[default]
    Controller,
    /// Only watch.
    Observer,
}

/// What a client is shown of what was before it came (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryPolicy {
    /// Everything.
    #[default]
    Full,
    /// What is asked now.
    PendingOnly,
    /// Nothing.
    None,
}

/// How a client came into a session.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) role: Role,
    /// Whether what is open is asked once the past is told.
    pub(super) asks: bool,
    /// It begins after this.
    pub(super) after: Position,
    /// What comes up to here was before it came.
    pub(super) live_at: Position,
    /// The response to be given once the past is told; kept for a stream that comes back from before it.
    pub(super) owed: Option<Vec<u8>>,
    /// Whether the ends of requests are told as RFD #533 has it.
    pub(super) told_ends: bool,
}

/// A prompt of this client.
struct Waiting {
    /// The JSON-RPC id, as it was written.
    id: Box<RawValue>,
    run_id: RunId,
    /// Where its run ended: kept for a stream that comes back from before it.
    ended: Option<Position>,
}

/// A question that this client was asked.
struct Asked {
    id: RequestId,
    at: Position,
    /// The tool call that waits for it.
    tool_call: String,
    /// Whether it was only shown: the client may not answer it.
    card: bool,
    /// Where it was resolved.
    over: Option<Position>,
    /// Whether this client has answered, so that nothing is to be taken back from it.
    answered: bool,
}

/// What is known of a client in a session: all that a seat is while no stream drives it.
pub(super) struct Place {
    /// Counts how often it was entered; whoever drives an older one begins again.
    generation: u64,
    entry: Entry,
    /// Up to here everything was given out.
    position: Position,
    /// Whether what was owed at `live_at` was given out.
    greeted: bool,
    /// Prompts that are being handed over, so that their run is not known yet.
    taking: usize,
    prompts: Vec<Waiting>,
    asked: Vec<Asked>,
    /// Messages that are in no log.
    out: VecDeque<Vec<u8>>,
}

impl Place {
    /// `before`: what the client had here already. Its prompts still wait; what it was asked is asked once more, as all
    /// of the past is told again.
    pub(super) fn new(generation: u64, entry: Entry, before: Option<Self>) -> Self {
        let (taking, prompts, out) = before.map(|old| (old.taking, old.prompts, old.out)).unwrap_or_default();
        Self { generation, position: entry.after, entry, greeted: false, taking, prompts, asked: Vec::new(), out }
    }

    pub(super) fn told_ends(&self) -> bool {
        self.entry.told_ends
    }

    /// The runs of the prompts that wait, the oldest first.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| prompt.run_id.clone()).collect()
    }

    pub(super) fn role(&self) -> Role {
        self.entry.role
    }

    /// Up to here everything was given out.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// A message that is in no log. False: too many wait, and it is not sent.
    pub(super) fn say(&mut self, json: Vec<u8>) -> bool {
        let fits = self.out.len() < OUT;
        if fits {
            self.out.push_back(json);
        }
        fits
    }

    /// A prompt is about to be handed over: until [`taken`](Self::taken), nothing of a run of this device's is shown.
    /// False: too many wait.
    pub(super) fn take(&mut self) -> bool {
        let waiting = self.prompts.iter().filter(|prompt| prompt.ended.is_none()).count();
        let fits = waiting + self.taking < PROMPTS;
        if fits {
            self.taking += 1;
        }
        fits
    }

    /// The prompt was handed over, and this is its run; or it was refused.
    pub(super) fn taken(&mut self, prompt: Option<(Box<RawValue>, RunId)>) {
        self.taking = self.taking.saturating_sub(1);
        let Some((id, run_id)) = prompt else { return };
        if self.prompts.len() >= PROMPTS
            && let Some(old) = self.prompts.iter().position(|prompt| prompt.ended.is_some())
        {
            self.prompts.remove(old);
        }
        self.prompts.push(Waiting { id, run_id, ended: None });
    }

    /// The run of a prompt that waits, by its JSON-RPC id.
    pub(super) fn run_of(&self, id: &str) -> Option<RunId> {
        let prompt = self.prompts.iter().rev().find(|prompt| prompt.ended.is_none() && prompt.id.get() == id);
        prompt.map(|prompt| prompt.run_id.clone())
    }

    /// Gives the response to a prompt whose run ended where the stream has been already.
    pub(super) fn ended_before(&mut self, run_id: &RunId, at: Position) -> Option<Box<RawValue>> {
        let behind = at <= self.position;
        let prompt = self.prompts.iter_mut().rfind(|prompt| prompt.run_id == *run_id && prompt.ended.is_none())?;
        if !behind {
            return None;
        }
        prompt.ended = Some(at);
        Some(prompt.id.clone())
    }

    /// The JSON-RPC ids of the prompts that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &RawValue> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| &*prompt.id)
    }

    /// Whether the client has answered a question, so that its end is not taken back from it.
    pub(super) fn answered(&mut self, id: &RequestId, answered: bool) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == *id) {
            asked.answered = answered;
        }
    }

    /// Whether the client was asked this, and it is open still.
    fn was_asked(&self, id: &RequestId) -> bool {
        self.asked.iter().any(|asked| asked.id == *id && asked.over.is_none())
    }

    fn ask(&mut self, request: &Request, at: Position, card: bool) {
        if self.asked.len() >= ASKED {
            let old = self.asked.iter().position(|asked| asked.over.is_some()).unwrap_or_default();
            self.asked.remove(old);
        }
        let id = request.request_id.clone();
        let tool_call = request.tool_call_id.clone().unwrap_or_else(|| id.to_string());
        self.asked.push(Asked { id, at, tool_call, card, over: None, answered: false });
    }
}

/// What drives a session's stream for one client. There is one at a time; a place without one costs what it holds.
pub(in crate::router) struct Seat {
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

impl Seat {
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
        let position = self.shared.with(|tables| tables.places.get(&self.session).map(Place::position))?;
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
            let there = self.settle();
            let mut sent = self.say();
            if there {
                sent.append(&mut self.tell());
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
    fn settle(&mut self) -> bool {
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
            let follow = Follow::new(self.state.directory.log(), filter, position).until(live_at);
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
        out.into_iter().map(|json| Sent { session: Some(self.session.clone()), cursor: None, json }).collect()
    }

    /// What the page comes to.
    fn tell(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(event) = self.page.front() {
            let event = Arc::clone(event);
            self.greet(event.position, &mut sent);
            match self.show(&event) {
                Shown::Told(messages) => self.put(event.position, messages, &mut sent),
                Shown::Later => return sent,
            }
            self.page.pop_front();
        }
        let read_to = self.read_to;
        self.greet(read_to.next(), &mut sent);
        self.shared.with(|tables| {
            if let Some(place) = tables.places.get_mut(&self.session) {
                place.position = place.position.max(read_to);
            }
        });
        sent
    }

    /// Messages of one place in the log, the last of them with its cursor.
    fn put(&self, position: Position, messages: Vec<Vec<u8>>, sent: &mut Vec<Sent>) {
        let last = messages.len();
        for (n, json) in messages.into_iter().enumerate() {
            let cursor = (n + 1 == last).then(|| self.state.directory.log().cursor(position));
            sent.push(Sent { session: Some(self.session.clone()), cursor, json });
        }
        self.shared.with(|tables| {
            if let Some(place) = tables.places.get_mut(&self.session) {
                place.position = place.position.max(position);
            }
        });
    }

    /// Before the first event that is new to the client: the response that it waits for, and what is open.
    fn greet(&mut self, next: Position, sent: &mut Vec<Sent>) {
        let greeting = self.shared.with(|tables| {
            let place = tables.places.get_mut(&self.session)?;
            if place.greeted || next <= place.entry.live_at {
                return None;
            }
            place.greeted = true;
            Some((place.entry.live_at, place.entry.owed.clone(), place.entry.asks))
        });
        let Some((live_at, owed, asks)) = greeting else { return };
        let mut messages: Vec<Vec<u8>> = owed.into_iter().collect();
        if asks {
            // Never older than the log: what closed before `live_at` is not among them.
            for request in self.state.directory.open_requests(&Filter::session(self.session.clone())) {
                messages.extend(self.ask(&request, live_at));
            }
        }
        self.put(live_at, messages, sent);
    }

    /// Asks the client, once; shows it the question where it may not answer.
    fn ask(&self, request: &Request, at: Position) -> Option<Vec<u8>> {
        self.shared.with(|tables| {
            let can = tables.client.as_ref().map(|client| client.can).unwrap_or_default();
            let place = tables.places.get_mut(&self.session)?;
            if place.was_asked(&request.request_id) {
                return None;
            }
            let card = place.entry.role == Role::Observer || request.observe_only;
            place.ask(request, at, card);
            match card {
                // Who takes events has it from there.
                true if can.events => None,
                true => Some(shape::card(request)),
                false => Some(shape::question(request, &self.state.directory.log().cursor(at), can)),
            }
        })
    }

    fn show(&self, event: &Event) -> Shown {
        match event.kind {
            Kind::RunStarted | Kind::RunStatus if self.is_being_taken(event) => return Shown::Later,
            _ => {}
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
            Kind::RequestResolved => messages.extend(self.resolved(event)),
            Kind::RunEnded => messages.extend(self.ended(event)),
            _ => {}
        }
        Shown::Told(messages)
    }

    /// Whether the event may be the first of a run whose prompt this client is just handing over.
    fn is_being_taken(&self, event: &Event) -> bool {
        let unknown = self.shared.with(|tables| {
            tables.places.get(&self.session).is_some_and(|place| {
                place.taking > 0 && !place.prompts.iter().any(|prompt| prompt.run_id == event.run_id)
            })
        });
        unknown && shape::prompted_by(event).is_some_and(|by| by.device_id == self.shared.device)
    }

    /// An editor has drawn its user's own prompt already.
    fn is_own_prompt(&self, event: &Event) -> bool {
        event.kind == Kind::UserMessageChunk
            && self.shared.with(|tables| {
                tables.places.get(&self.session).is_some_and(|place| {
                    event.position > place.entry.live_at
                        && place.prompts.iter().any(|prompt| prompt.run_id == event.run_id)
                })
            })
    }

    fn opened(&self, event: &Event) -> Option<Vec<u8>> {
        let live = self
            .shared
            .with(|tables| tables.places.get(&self.session).is_some_and(|place| event.position > place.entry.live_at));
        // The session's view is never older than the log: what is not open now has closed since.
        let id = request_of(event).filter(|_| live)?;
        let open = self.state.directory.open_requests(&Filter::session(self.session.clone()));
        let request = open.iter().find(|request| request.request_id == id)?;
        self.ask(request, event.position)
    }

    fn resolved(&self, event: &Event) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let read = serde_json::from_slice::<shape::Resolved>(&event.body).ok();
        let (Some(id), Some(end)) = (request_of(event), read) else { return messages };
        let log = self.state.directory.log();
        self.shared.with(|tables| {
            let can = tables.client.as_ref().map(|client| client.can).unwrap_or_default();
            let Some(place) = tables.places.get_mut(&self.session) else { return };
            let told_ends = place.entry.told_ends;
            let Some(asked) = place.asked.iter_mut().find(|asked| asked.id == id && asked.over.is_none()) else {
                return;
            };
            asked.over = Some(event.position);
            match (asked.card, asked.answered) {
                (true, _) if can.events => {}
                (true, _) => messages.push(shape::card_ended(&self.session, &id, &end)),
                (false, false) => messages.push(shape::retracted(&id)),
                (false, true) => {}
            }
            if told_ends {
                let meta = serde_json::json!({ "request_id": id, "cursor": log.cursor(event.position) });
                messages.push(shape::permission_resolved(&self.session, &asked.tool_call, &end, meta));
            }
        });
        messages
    }

    /// The responses to the prompts of this client that the run was.
    fn ended(&self, event: &Event) -> Vec<Vec<u8>> {
        let ended: Option<Vec<_>> = self.shared.with(|tables| {
            let place = tables.places.get_mut(&self.session)?;
            let waiting =
                place.prompts.iter_mut().filter(|prompt| prompt.run_id == event.run_id && prompt.ended.is_none());
            let epoch = self.state.directory.log().epoch();
            let ended = waiting.map(|prompt| {
                prompt.ended = Some(event.position);
                shape::prompt_ended(prompt.id.get(), event, epoch)
            });
            Some(ended.collect())
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
