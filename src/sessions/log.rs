//! The one log: commits through [`CommitQueue`], a ring of the newest events, and reads by cursor.
//!
//! **Stored, then shown.** An event enters the ring only after its commit returned. A reader names a position and gets what
//! comes after it, from the ring or from the store: no reader has a queue.

use parking_lot::RwLock;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::{oneshot, watch};

use super::log_writer::{CommitQueue, WriterJob};
use super::watching::{EventWatch, Watchers};
use plexus_auth::Grant;
use plexus_metrics::metrics;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::{Cursor, Epoch, ErrorBody, Event, Kind, Origin, Position, RunId, Scope, SessionId, Timestamp};
use plexus_store::{
    DamagedBlock, DeviceChange, EventsAcross, PromptChange, PushChange, ReadLimit, RequestRow, RuntimeMark, SessionRow,
    SpendChange, Store, StoreError, SurfaceChange, TextRow, Trim,
};

/// Bytes of events that the ring keeps in memory; older ones are read from the store.
const RING_BYTES: usize = 8 << 20;
/// Events that the ring keeps at most: bounds the bookkeeping when events are tiny.
const RING_EVENTS: usize = 32 << 10;
/// Sessions named by a filter that are read one by one, each from where the page is; more are read together, in the order
/// of the log.
const APART_MAX: usize = 8;

/// The log. Cheap to clone; the writer thread ends when the last clone is gone.
#[derive(Clone)]
pub struct Log {
    shared: Arc<LogShared>,
    queue: CommitQueue,
}

pub(super) struct LogShared {
    pub(super) store: Arc<dyn Store>,
    epoch: Epoch,
    ring: RwLock<Ring>,
    pub(super) head: watch::Sender<Position>,
    /// Per session: the last event, and the last that retention removed.
    marks: DashMap<SessionId, SessionPositions>,
    pub(super) watchers: Watchers,
}

#[derive(Clone)]
struct SessionPositions {
    origin: Arc<Origin>,
    last: Position,
    trimmed: Position,
}

/// Consecutive events, the newest at the back.
#[derive(Default)]
struct Ring {
    /// The position of the first event; the others follow without a gap. `None` was deleted.
    first: Position,
    events: VecDeque<Option<Arc<Event>>>,
    bytes: usize,
    /// When the gateway received each group of runtime output, by the group's last position.
    heard: VecDeque<(Position, Instant)>,
}

impl Ring {
    /// When the group with this position was received.
    fn heard_of(&self, position: Position) -> Option<Instant> {
        let at = self.heard.partition_point(|(last, _)| *last < position);
        self.heard.get(at).map(|(_, heard)| *heard)
    }
}

/// An event that has no position yet.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its number within the run.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The kind.
    pub kind: Kind,
    /// The canonical body.
    pub body: Bytes,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
}

/// Rows that go with a commit.
#[derive(Debug, Default)]
pub struct CommitRows {
    /// Session rows.
    pub sessions: Vec<SessionRow>,
    /// Request rows.
    pub requests: Vec<RequestRow>,
    /// Text to index.
    pub texts: Vec<TextRow>,
    /// Devices.
    pub devices: Vec<DeviceChange>,
    /// Rows of the notifier.
    pub pushes: Vec<PushChange>,
    /// How much of its runtime's output each session has stored.
    pub marks: Vec<(SessionId, RuntimeMark)>,
    /// The content of queued prompts.
    pub prompts: Vec<PromptChange>,
    /// Changes to surfaces.
    pub surfaces: Vec<SurfaceChange>,
    /// What was spent.
    pub spent: Vec<SpendChange>,
}

/// One commit: all of it is stored, or nothing.
pub struct CommitEntry {
    /// Whose events these are.
    pub origin: Arc<Origin>,
    /// The events, in order; they get consecutive positions.
    pub events: Vec<NewEvent>,
    /// Makes the rows, told the position of the first event (or of the next one to come, if there are none). Runs under the
    /// writer's lock: it must be short and must not block.
    pub rows: Option<Box<dyn FnOnce(Position) -> CommitRows + Send>>,
    /// Runs once the entry is stored and before any reader can see it, with the same position: what readers may ask for
    /// beside an event (the session's view) is then never older than the event. Runs under the writer's lock, too.
    pub kept: Option<Box<dyn FnOnce(Position) + Send>>,
    /// When the gateway received the first of it from a runtime: measures the time until every client has it.
    pub heard: Option<Instant>,
    /// Whether it must be on disk before the commit returns.
    pub sync: bool,
}

impl CommitEntry {
    /// Bytes of its events, about.
    pub(super) fn weight(&self) -> usize {
        self.events.iter().map(|event| event.body.len() + event.native.as_ref().map_or(0, Bytes::len) + 64).sum()
    }
}

/// Which events a reader wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// Only these sessions; all if absent.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// Only what a device with this grant may see; everything if absent.
    pub grant: Option<Arc<Grant>>,
}

/// Where a reader wants to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAfter {
    /// From the oldest event kept.
    Oldest,
    /// Only what comes from now on.
    Now,
    /// After this cursor.
    Cursor(Cursor),
}

/// The verdict on an attach.
#[derive(Clone, Debug)]
pub struct AttachVerdict {
    /// Whether reading can resume at the cursor.
    pub resume: ResumeVerdict,
    /// Read on after this; only if `resume` is `Ok`, else after the snapshot's position.
    pub after: Position,
    /// The oldest position from which the filter can be resumed without a gap.
    pub oldest: Position,
    /// The log's end.
    pub head: Position,
}

/// Some events, and where to read on.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events, in order of position.
    pub events: Vec<Arc<Event>>,
    /// Read on after this: everything up to it that the filter lets through is in `events`, or was before them.
    pub next: Position,
    /// When the gateway received the first of them, if it is still in the ring.
    pub heard: Option<Instant>,
}

impl Filter {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// One session.
    pub fn session(session: SessionId) -> Self {
        Self { sessions: Some(BTreeSet::from([session])), grant: None }
    }

    /// Whether events of this origin are wanted.
    pub fn takes(&self, origin: &Origin) -> bool {
        self.sessions.as_ref().is_none_or(|some| some.contains(&origin.session_id))
            && self.grant.as_ref().is_none_or(|grant| {
                let target = plexus_auth::Target::Session(&origin.session_id, &origin.runtime_id);
                grant.covers(Scope::Watch, target)
            })
    }
}

impl Log {
    /// Opens the log over a store and starts its writer.
    ///
    /// # Errors
    /// [`StoreError`] if the sessions' marks cannot be read, or no thread can be started.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let marks = DashMap::new();
        for entry in store.sessions()? {
            let row = entry.row;
            let origin = Arc::new(Origin {
                session_id: row.session_id.clone(),
                runtime_id: row.runtime_id,
                dialect: row.dialect.into(),
            });
            marks.insert(row.session_id, SessionPositions { origin, last: entry.last, trimmed: entry.trimmed });
        }
        let shared = Arc::new(LogShared {
            epoch: store.epoch(),
            ring: RwLock::default(),
            head: watch::Sender::new(store.head()),
            marks,
            watchers: Watchers::default(),
            store,
        });
        let queue = CommitQueue::start(Arc::clone(&shared))
            .map_err(|error| StoreError::Io(format!("cannot start the log's writer: {error}")))?;
        Ok(Self { shared, queue })
    }

    /// The log's epoch.
    pub fn epoch(&self) -> &Epoch {
        &self.shared.epoch
    }

    /// The position of the last event.
    pub fn head(&self) -> Position {
        *self.shared.head.borrow()
    }

    /// A position as the text that clients keep.
    pub fn cursor(&self, position: Position) -> Cursor {
        Cursor { epoch: self.shared.epoch.clone(), position }
    }

    /// Notified whenever the head moves.
    pub fn watch(&self) -> watch::Receiver<Position> {
        self.shared.head.subscribe()
    }

    /// Notified of events that the filter lets through, and of nothing else.
    pub fn watch_for(&self, filter: &Filter) -> EventWatch {
        EventWatch::new(Arc::clone(&self.shared), filter.clone())
    }

    /// The head, if the filter lets through nothing after `after`: a reader that is there has everything. `None` if it does, or
    /// if the filter names no sessions, so that only a search could tell.
    pub fn level(&self, filter: &Filter, after: Position) -> Option<Position> {
        let sessions = filter.sessions.as_ref()?;
        // The head first: marks are updated before the head moves.
        let head = self.head();
        let last = |session| self.shared.marks.get(session).map_or(Position::START, |mark| mark.last);
        (after <= head && sessions.iter().all(|session| last(session) <= after)).then_some(head)
    }

    /// Since when spending is kept.
    pub fn spending_since(&self) -> Timestamp {
        self.shared.store.spending_since()
    }

    /// The store below, for reads that are no events.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Stores an entry and shows its events. Returns the position of its first event. Once this returns, readers may have
    /// seen them. If the future is dropped, the entry may or may not be stored.
    ///
    /// # Errors
    /// [`StoreError`]: nothing of the entry was stored; callers that must not lose it keep a copy.
    /// [`StoreError::Gone`] if its session was deleted: then it never will be stored.
    pub async fn commit(&self, entry: CommitEntry) -> Result<Position, Arc<StoreError>> {
        self.queue.commit(entry).await
    }

    /// What can be promised to a reader that begins at `after`.
    pub fn attach(&self, filter: &Filter, after: &StartAfter) -> AttachVerdict {
        let head = self.head();
        let oldest = match &filter.sessions {
            Some(some) => some
                .iter()
                .filter_map(|session| self.shared.marks.get(session))
                .filter(|mark| filter.takes(&mark.origin))
                .map(|mark| mark.trimmed)
                .max(),
            None => {
                let marks = self.shared.marks.iter().filter(|mark| filter.takes(&mark.origin));
                marks.map(|mark| mark.trimmed).max()
            }
        };
        let oldest = oldest.unwrap_or(Position::START);
        let (resume, after) = match after {
            StartAfter::Oldest => (ResumeVerdict::Ok, Position::START),
            StartAfter::Now => (ResumeVerdict::Ok, head),
            StartAfter::Cursor(cursor) if cursor.epoch != self.shared.epoch => (ResumeVerdict::Reset, head),
            StartAfter::Cursor(cursor) if cursor.position > head => (ResumeVerdict::Ahead, head),
            StartAfter::Cursor(cursor) if cursor.position < oldest => (ResumeVerdict::Gap, head),
            StartAfter::Cursor(cursor) => (ResumeVerdict::Ok, cursor.position),
        };
        metrics().attaches.with_label_values(&[resume.as_str()]).inc();
        AttachVerdict { resume, after, oldest, head }
    }

    /// What comes after `after`, if it is all still in the ring: never blocks. `None`: ask [`read`](Self::read).
    pub fn read_hot(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Option<EventPage> {
        let ring = self.shared.ring.read();
        if ring.events.is_empty() {
            // Nothing was committed since the start: enough only for a reader at the head.
            return (after >= self.head()).then_some(EventPage { events: Vec::new(), next: after, heard: None });
        }
        let first = ring.first;
        if after.next() < first {
            drop(ring);
            // The filter may let through nothing after it.
            return self.level(filter, after).map(|head| EventPage {
                events: Vec::new(),
                next: head.max(after),
                heard: None,
            });
        }
        let from = usize::try_from(after.0 + 1 - first.0).unwrap_or(usize::MAX).min(ring.events.len());
        let mut page = EventPage { events: Vec::new(), next: after, heard: None };
        let mut bytes = 0;
        for (n, event) in ring.events.range(from..).enumerate() {
            if let Some(event) = event.as_ref().filter(|event| filter.takes(&event.origin)) {
                if !page.events.is_empty() && (page.events.len() >= limit.events || bytes >= limit.bytes) {
                    return Some(page);
                }
                bytes += event.weight();
                if page.events.is_empty() {
                    page.heard = ring.heard_of(event.position);
                }
                page.events.push(Arc::clone(event));
            }
            page.next = Position(first.0 + (from + n) as u64);
        }
        Some(page)
    }

    /// What comes after `after`: from the ring, else from the store on a thread that may block. Returns at once, with
    /// no events if there are none. Cancellation safe.
    ///
    /// # Errors
    /// [`StoreError`]. A damaged block is not one: it is stepped over, after an event of kind `error` in its place.
    pub async fn read(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        if let Some(page) = self.read_hot(filter, after, limit) {
            return Ok(page);
        }
        let (shared, filter) = (Arc::clone(&self.shared), filter.clone());
        tokio::task::spawn_blocking(move || shared.read_cold(&filter, after, limit))
            .await
            .map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// As [`read`](Self::read), for threads that may block.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_blocking(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        match self.read_hot(filter, after, limit) {
            Some(page) => Ok(page),
            None => self.shared.read_cold(filter, after, limit),
        }
    }

    /// The newest events of one session before `before`, in order: as many as the limit takes, at least one if there is
    /// any. Cancellation safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_before(
        &self,
        session: &SessionId,
        before: Position,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        tokio::task::spawn_blocking(move || shared.read_before(&session, before, limit))
            .await
            .map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// As [`read_before`](Self::read_before), for threads that may block.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_before_blocking(
        &self,
        session: &SessionId,
        before: Position,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        self.shared.read_before(session, before, limit)
    }

    /// The last event of a session that retention removed; [`Position::START`] if none was, or there is no such session.
    pub fn trimmed(&self, session: &SessionId) -> Position {
        self.shared.marks.get(session).map_or(Position::START, |marks| marks.trimmed)
    }

    /// Applies retention: the trimmed events cannot be read once this returns. Their bytes are removed in small steps between
    /// commits.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was removed.
    pub async fn trim(&self, trims: Vec<Trim>) -> Result<usize, Arc<StoreError>> {
        self.queue.order(|done| WriterJob::Trim { trims, done }).await?
    }

    /// Removes some closed requests: see [`Store::retire`]. Returns whether there is more to do.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn retire(&self, before: Option<Timestamp>, most: usize) -> Result<bool, Arc<StoreError>> {
        self.queue.order(|done| WriterJob::Retire { before, most, done }).await?
    }

    /// Deletes a session. Once this returns, nothing of it can be read or stored, also after a crash. The receiver is notified
    /// when its bytes are gone, which are removed in small steps between commits.
    ///
    /// # Errors
    /// [`StoreError`]: the session is as it was.
    pub async fn forget(&self, session: &SessionId) -> Result<oneshot::Receiver<()>, Arc<StoreError>> {
        let (gone, swept) = oneshot::channel();
        let session = session.clone();
        self.queue.order(|done| WriterJob::Forget { session, gone, done }).await??;
        Ok(swept)
    }
}

impl LogShared {
    fn read_cold(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        let some = match &filter.sessions {
            Some(some) if some.len() <= APART_MAX => some,
            _ => return self.read_across(filter, after, limit),
        };
        // The head first: events committed during the read come with the next page, so that nothing is skipped.
        let head = *self.head.borrow();
        let behind: Vec<(Arc<Origin>, Position)> = some
            .iter()
            .filter_map(|session| self.marks.get(session))
            .filter(|mark| mark.last > after && filter.takes(&mark.origin))
            .map(|mark| (Arc::clone(&mark.origin), mark.last))
            .collect();
        let each = ReadLimit {
            events: (limit.events / behind.len().max(1)).max(64).min(limit.events),
            bytes: (limit.bytes / behind.len().max(1)).max(64 << 10).min(limit.bytes),
        };
        let mut events = Vec::new();
        let mut next = head;
        for (origin, last) in behind {
            let (some, read_to) = self.read_session(&origin, after, each)?;
            if read_to < last {
                next = next.min(read_to);
            }
            events.extend(some);
        }
        events.retain(|event: &Arc<Event>| event.position <= next);
        events.sort_by_key(|event| event.position);
        let mut bytes = 0;
        let fits = events
            .iter()
            .enumerate()
            .take_while(|(n, event)| {
                let fits = *n == 0 || (*n < limit.events && bytes < limit.bytes);
                bytes += event.weight();
                fits
            })
            .count();
        if fits < events.len() {
            events.truncate(fits);
            next = events.last().map_or(after, |event| event.position);
        }
        Ok(EventPage { events, next, heard: None })
    }

    fn read_across(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        let head = *self.head.borrow();
        let EventsAcross { events, damaged, next } =
            self.store.read_across(&|origin| filter.takes(origin), after, limit)?;
        let mut events: Vec<Arc<Event>> = events.into_iter().map(Arc::new).collect();
        if !damaged.is_empty() {
            events.extend(damaged.into_iter().map(|block| Arc::new(damage(block))));
            events.sort_by_key(|event| event.position);
        }
        // The store may be a commit ahead of what is shown.
        let next = next.min(head).max(after);
        events.retain(|event| event.position <= next);
        Ok(EventPage { events, next, heard: None })
    }

    fn read_session(
        &self,
        origin: &Arc<Origin>,
        after: Position,
        limit: ReadLimit,
    ) -> Result<(Vec<Arc<Event>>, Position), StoreError> {
        match self.store.read(&origin.session_id, after, limit) {
            Ok(events) => {
                let read_to = events.last().map_or(Position(u64::MAX), |event| event.position);
                Ok((events.into_iter().map(Arc::new).collect(), read_to))
            }
            Err(StoreError::Damaged { position, resume_at, .. }) => {
                let position = position.max(after.next());
                let event = damage(DamagedBlock { origin: Arc::clone(origin), position, last: resume_at });
                Ok((vec![Arc::new(event)], resume_at))
            }
            Err(other) => Err(other),
        }
    }

    fn read_before(
        &self,
        session: &SessionId,
        before: Position,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let Some(origin) = self.marks.get(session).map(|marks| Arc::clone(&marks.origin)) else {
            return Ok(Vec::new());
        };
        // Events that are stored but not shown yet are not read.
        let before = before.min(self.head.borrow().next());
        match self.store.read_before(session, before, limit) {
            Ok(events) => Ok(events.into_iter().map(Arc::new).collect()),
            Err(StoreError::Damaged { position, .. }) => {
                let last = Position(before.0.saturating_sub(1));
                Ok(vec![Arc::new(damage(DamagedBlock { origin, position, last }))])
            }
            Err(other) => Err(other),
        }
    }

    /// Removes a deleted session from the ring.
    pub(super) fn forget_session(&self, session: &SessionId) {
        self.marks.remove(session);
        let mut ring = self.ring.write();
        let Ring { events, bytes, .. } = &mut *ring;
        for slot in events {
            if let Some(event) = slot.take_if(|event| event.origin.session_id == *session) {
                *bytes -= event.weight();
            }
        }
    }

    /// Retention removed these sessions' events up to there.
    pub(super) fn trimmed(&self, lost: &[(SessionId, Position)]) {
        for (session, through) in lost {
            if let Some(mut mark) = self.marks.get_mut(session) {
                mark.trimmed = mark.trimmed.max(*through);
            }
        }
    }

    /// Shows stored events, in the order of their positions. A position that is missing among them was refused.
    pub(super) fn show(&self, events: &[Arc<Event>], heard: Option<Instant>) {
        let Some(last) = events.last() else { return };
        for event in events {
            self.marks
                .entry(event.origin.session_id.clone())
                .and_modify(|mark| mark.last = event.position)
                .or_insert_with(|| SessionPositions {
                    origin: Arc::clone(&event.origin),
                    last: event.position,
                    trimmed: Position::START,
                });
        }
        let mut ring = self.ring.write();
        for event in events {
            if ring.events.is_empty() {
                ring.first = event.position;
            }
            while ring.first.0 + (ring.events.len() as u64) < event.position.0 {
                ring.events.push_back(None);
            }
            ring.bytes += event.weight();
            ring.events.push_back(Some(Arc::clone(event)));
        }
        while ring.events.len() > 1 && (ring.bytes > RING_BYTES || ring.events.len() > RING_EVENTS) {
            if let Some(old) = ring.events.pop_front() {
                ring.first = ring.first.next();
                ring.bytes -= old.map_or(0, |old| old.weight());
            }
        }
        if let Some(heard) = heard {
            ring.heard.push_back((last.position, heard));
        }
        while ring.heard.front().is_some_and(|(last, _)| *last < ring.first) {
            ring.heard.pop_front();
        }
        // Under the ring's lock: a reader that comes back with the cursor of an event from the ring is not ahead of the log.
        self.head.send_replace(last.position);
        drop(ring);
        self.watchers.notify(events);
    }
}

/// The event that takes the place of a damaged block.
fn damage(block: DamagedBlock) -> Event {
    let DamagedBlock { origin, position, last } = block;
    let session_id = origin.session_id.clone();
    let text = StoreError::Damaged { position, resume_at: last, session_id }.to_string();
    Event {
        position,
        origin,
        run_id: RunId::trusted("r_damaged"),
        seq: 0,
        at: Timestamp::default(),
        kind: Kind::Error,
        body: serde_json::to_vec(&ErrorBody::new("damaged", &text)).unwrap_or_default().into(),
        native: None,
    }
}
