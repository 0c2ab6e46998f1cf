//! The one log: a writer thread that commits in groups, a ring of what is hot, and reads by cursor.
//!
//! **Kept, then shown.** The writer puts an event into the ring only after its commit returned. A reader names a
//! position and gets what comes after it, from the ring or from the store: there is no queue for anybody.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::{mpsc, oneshot, watch};

use crate::auth::Grant;
use crate::metrics::metrics;
use crate::model::{Cursor, Epoch, Event, Kind, Origin, Position, RunId, Scope, SessionId, Timestamp};
use crate::store::{
    Batch, DeviceChange, Mark, PushChange, ReadLimit, RequestRow, SessionRow, Store, StoreError, TextRow, Trim,
};

/// Bytes of events that the ring keeps in memory; older ones are read from the store.
const RING_BYTES: usize = 8 << 20;
/// Events that the ring keeps at most: bounds the bookkeeping when events are tiny.
const RING_EVENTS: usize = 32 << 10;
/// Commits that wait for the writer; when it is full, sessions wait, then drivers, then agents.
const WAITING: usize = 1024;
/// Events of one group commit, about: past it the next group begins.
const GROUP_EVENTS: usize = 4096;
/// Bytes of one group commit, about.
const GROUP_BYTES: usize = 4 << 20;

/// The log. Cheap to clone; the writer thread ends when the last clone is gone.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    writer: mpsc::Sender<Job>,
}

struct Shared {
    store: Arc<dyn Store>,
    epoch: Epoch,
    ring: RwLock<Ring>,
    head: watch::Sender<Position>,
    /// Per session: the last event, and the last that retention removed.
    marks: DashMap<SessionId, Marks>,
}

#[derive(Clone)]
struct Marks {
    origin: Arc<Origin>,
    last: Position,
    trimmed: Position,
}

/// Consecutive events, the newest at the back.
#[derive(Default)]
struct Ring {
    /// The position of the first; the others follow without a hole. `None` was forgotten.
    first: Position,
    events: VecDeque<Option<Arc<Event>>>,
    bytes: usize,
}

/// An event that has no position yet.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its number within the run.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What sort.
    pub kind: Kind,
    /// The canonical body.
    pub body: Bytes,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
}

/// Rows that go with a commit.
#[derive(Debug, Default)]
pub struct Rows {
    /// Session rows.
    pub sessions: Vec<SessionRow>,
    /// Request rows.
    pub requests: Vec<RequestRow>,
    /// Text to index.
    pub texts: Vec<TextRow>,
    /// Devices.
    pub devices: Vec<DeviceChange>,
    /// What the notifier keeps.
    pub pushes: Vec<PushChange>,
    /// How far the sessions have heard their runtimes.
    pub marks: Vec<(SessionId, Mark)>,
}

/// One commit: all of it is kept, or none.
pub struct Entry {
    /// Whose events these are.
    pub origin: Arc<Origin>,
    /// The events, in order; they get consecutive positions.
    pub events: Vec<NewEvent>,
    /// Makes the rows, told the position of the first event (or of the next one to come, if there are none). Runs on the
    /// writer thread: it must be short and must not block.
    pub rows: Option<Box<dyn FnOnce(Position) -> Rows + Send>>,
    /// Runs once the entry is kept and before any reader can see it, told the same position: what readers may ask for
    /// next to an event (the session's view) is then never older than the event. On the writer thread: short, unblocking.
    pub kept: Option<Box<dyn FnOnce(Position) + Send>>,
    /// Whether it must be on disk before the commit returns.
    pub sync: bool,
}

struct Job {
    entry: Entry,
    done: oneshot::Sender<Result<Position, Arc<StoreError>>>,
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
pub enum After {
    /// From the oldest event kept.
    Oldest,
    /// Only what comes from now on.
    Now,
    /// After this cursor.
    Cursor(Cursor),
}

/// What can be promised to a reader that comes with a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resume {
    /// Everything after the cursor follows.
    Ok,
    /// Retention has removed some of what came after the cursor: a snapshot comes first.
    Gap,
    /// The cursor is of another life of the log: a snapshot comes first.
    Reset,
    /// The cursor is past the log's end: a snapshot comes first.
    Ahead,
}

impl Resume {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Gap => "gap",
            Self::Reset => "reset",
            Self::Ahead => "ahead",
        }
    }
}

/// The verdict on an attach.
#[derive(Clone, Debug)]
pub struct Attach {
    /// What can be promised.
    pub resume: Resume,
    /// Read on after this; only if `resume` is `Ok`, else after the snapshot's position.
    pub after: Position,
    /// The oldest place from which the filter can be resumed without a gap.
    pub oldest: Position,
    /// The log's end.
    pub head: Position,
}

/// Some events, and where to read on.
#[derive(Clone, Debug)]
pub struct Page {
    /// The events, in order of position.
    pub events: Vec<Arc<Event>>,
    /// Read on after this: everything up to it that the filter lets through is in `events`, or was before them.
    pub next: Position,
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
                let target = crate::auth::Target::Session(&origin.session_id, &origin.runtime_id);
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
            marks.insert(row.session_id, Marks { origin, last: entry.last, trimmed: entry.trimmed });
        }
        let shared = Arc::new(Shared {
            epoch: store.epoch(),
            ring: RwLock::default(),
            head: watch::Sender::new(store.head()),
            marks,
            store,
        });
        let (writer, jobs) = mpsc::channel(WAITING);
        let for_writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || write_groups(&for_writer, jobs))
            .map_err(|error| StoreError::Io(format!("cannot start the log's writer: {error}")))?;
        Ok(Self { shared, writer })
    }

    /// The log's life.
    pub fn epoch(&self) -> &Epoch {
        &self.shared.epoch
    }

    /// The last event kept.
    pub fn head(&self) -> Position {
        *self.shared.head.borrow()
    }

    /// A position as the text that clients keep.
    pub fn cursor(&self, position: Position) -> Cursor {
        Cursor { epoch: self.shared.epoch.clone(), position }
    }

    /// Told whenever the head moves.
    pub fn watch(&self) -> watch::Receiver<Position> {
        self.shared.head.subscribe()
    }

    /// The store below, for reads that are no events.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Keeps an entry and shows its events. Returns the position of its first event. Once this returns, readers may have
    /// seen them. If the future is dropped the entry may or may not be kept.
    ///
    /// # Errors
    /// [`StoreError`]: nothing of the entry was kept; it is gone, so whoever must not lose it keeps a copy.
    pub async fn commit(&self, entry: Entry) -> Result<Position, Arc<StoreError>> {
        let gone = || Arc::new(StoreError::Io("the log's writer is gone".into()));
        let (done, outcome) = oneshot::channel();
        self.writer.send(Job { entry, done }).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// What can be promised to a reader that begins at `after`.
    pub fn attach(&self, filter: &Filter, after: &After) -> Attach {
        let head = self.head();
        let oldest = self
            .shared
            .marks
            .iter()
            .filter(|mark| filter.takes(&mark.origin))
            .map(|mark| mark.trimmed)
            .max()
            .unwrap_or(Position::START);
        let (resume, after) = match after {
            After::Oldest => (Resume::Ok, Position::START),
            After::Now => (Resume::Ok, head),
            After::Cursor(cursor) if cursor.epoch != self.shared.epoch => (Resume::Reset, head),
            After::Cursor(cursor) if cursor.position > head => (Resume::Ahead, head),
            After::Cursor(cursor) if cursor.position < oldest => (Resume::Gap, head),
            After::Cursor(cursor) => (Resume::Ok, cursor.position),
        };
        metrics().attaches.with_label_values(&[resume.as_str()]).inc();
        Attach { resume, after, oldest, head }
    }

    /// What comes after `after`, if it is all still in the ring: never blocks. `None`: ask [`read`](Self::read).
    pub fn read_hot(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Option<Page> {
        let ring = self.shared.ring.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if ring.events.is_empty() {
            // Nothing was committed since the start: hot only for who has everything.
            return (after >= self.head()).then_some(Page { events: Vec::new(), next: after });
        }
        let first = ring.first;
        if after.next() < first {
            return None;
        }
        let from = usize::try_from(after.0 + 1 - first.0).unwrap_or(usize::MAX).min(ring.events.len());
        let mut page = Page { events: Vec::new(), next: after };
        let mut bytes = 0;
        for (n, event) in ring.events.range(from..).enumerate() {
            if let Some(event) = event.as_ref().filter(|event| filter.takes(&event.origin)) {
                if !page.events.is_empty() && (page.events.len() >= limit.events || bytes >= limit.bytes) {
                    return Some(page);
                }
                bytes += event.weight();
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
    pub async fn read(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<Page, StoreError> {
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
    pub fn read_blocking(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<Page, StoreError> {
        match self.read_hot(filter, after, limit) {
            Some(page) => Ok(page),
            None => self.shared.read_cold(filter, after, limit),
        }
    }

    /// Applies retention's decision and remembers what is gone.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was removed.
    pub fn trim(&self, trims: &[Trim]) -> Result<usize, StoreError> {
        let gone = self.shared.store.trim(trims)?;
        for (session, through) in &gone {
            if let Some(mut mark) = self.shared.marks.get_mut(session) {
                mark.trimmed = mark.trimmed.max(*through);
            }
        }
        Ok(gone.len())
    }

    /// Forgets a session, bytes and all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.shared.store.forget(session)?;
        self.shared.marks.remove(session);
        let mut ring = self.shared.ring.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Ring { events, bytes, .. } = &mut *ring;
        for slot in events {
            if let Some(event) = slot.take_if(|event| event.origin.session_id == *session) {
                *bytes -= event.weight();
            }
        }
        Ok(())
    }
}

impl Shared {
    fn read_cold(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<Page, StoreError> {
        // The head first: whatever is committed while we read comes with the next page, so that nothing is skipped.
        let head = *self.head.borrow();
        let behind: Vec<(Arc<Origin>, Position)> = self
            .marks
            .iter()
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
        Ok(Page { events, next })
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
            Err(StoreError::Damaged { position, resume_at, session_id }) => {
                let text = StoreError::Damaged { position, resume_at, session_id }.to_string();
                let body = serde_json::json!({ "code": "damaged", "message": text }).to_string();
                let event = Event {
                    position: position.max(after.next()),
                    origin: Arc::clone(origin),
                    run_id: RunId::trusted("r_damaged"),
                    seq: 0,
                    at: Timestamp::default(),
                    kind: Kind::Error,
                    body: body.into(),
                    native: None,
                };
                Ok((vec![Arc::new(event)], resume_at))
            }
            Err(other) => Err(other),
        }
    }

    fn show(&self, events: &[Arc<Event>]) {
        let Some(last) = events.last() else { return };
        for event in events {
            self.marks
                .entry(event.origin.session_id.clone())
                .and_modify(|mark| mark.last = event.position)
                .or_insert_with(|| Marks {
                    origin: Arc::clone(&event.origin),
                    last: event.position,
                    trimmed: Position::START,
                });
        }
        let mut ring = self.ring.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        for event in events {
            if ring.events.is_empty() {
                ring.first = event.position;
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
        drop(ring);
        self.head.send_replace(last.position);
    }
}

/// The writer thread: takes what has arrived since the last group, keeps it in one transaction, shows it, and tells whoever waits.
fn write_groups(shared: &Shared, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![first];
        let weigh = |job: &Job| job.entry.events.iter().map(|event| event.body.len() + 64).sum::<usize>();
        let (mut events, mut bytes) = (group[0].entry.events.len(), weigh(&group[0]));
        while events < GROUP_EVENTS && bytes < GROUP_BYTES {
            let Ok(job) = jobs.try_recv() else { break };
            events += job.entry.events.len();
            bytes += weigh(&job);
            group.push(job);
        }
        let mut head = *shared.head.borrow();
        let mut batch = Batch { events: Vec::with_capacity(events), ..Batch::default() };
        let mut told = Vec::with_capacity(group.len());
        for Job { entry, done } in group {
            let first = head.next();
            batch.sync |= entry.sync;
            for event in entry.events {
                head = head.next();
                batch.events.push(Arc::new(Event {
                    position: head,
                    origin: Arc::clone(&entry.origin),
                    run_id: event.run_id,
                    seq: event.seq,
                    at: event.at,
                    kind: event.kind,
                    body: event.body,
                    native: event.native,
                }));
            }
            if let Some(rows) = entry.rows {
                let rows = rows(first);
                batch.sessions.extend(rows.sessions);
                batch.requests.extend(rows.requests);
                batch.texts.extend(rows.texts);
                batch.devices.extend(rows.devices);
                batch.pushes.extend(rows.pushes);
                batch.marks.extend(rows.marks);
            }
            told.push((done, entry.kept, first));
        }
        let began = Instant::now();
        let outcome = shared.store.commit(&batch);
        metrics().store_commit.observe(began.elapsed().as_secs_f64());
        match outcome {
            Ok(()) => {
                metrics().events.inc_by(batch.events.len() as u64);
                metrics().event_bytes.inc_by(bytes as u64);
                metrics().store_group.observe(batch.events.len() as f64);
                let mut waiting = Vec::with_capacity(told.len());
                for (done, kept, first) in told {
                    if let Some(kept) = kept {
                        kept(first);
                    }
                    waiting.push((done, first));
                }
                shared.show(&batch.events);
                for (done, first) in waiting {
                    let _ = done.send(Ok(first));
                }
            }
            Err(error) => {
                metrics().store_failures.inc();
                tracing::warn!(%error, events = batch.events.len(), "nothing of a group was kept");
                let error = Arc::new(error);
                for (done, ..) in told {
                    let _ = done.send(Err(Arc::clone(&error)));
                }
            }
        }
    }
}
