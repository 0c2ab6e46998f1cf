//! The event log: commits through [`CommitQueue`], a ring of the newest events, and reads by cursor.
//!
//! **Stored before visible.** An event enters the ring only after its commit returned. A reader names a position and gets the events
//! after it, from the ring or from the store: no reader has a queue.

use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::{oneshot, watch};

use super::log_shared::{EventPage, LogShared, SessionPositions};
use super::log_writer::{CommitQueue, WriterJob};
use super::watching::{EventWatch, Watchers};
use super::{CommitEntry, Filter};
use plexus_metrics::metrics;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::{Cursor, Epoch, Event, Origin, Position, SessionId, Timestamp};
use plexus_store::{ReadLimit, Store, StoreError, Trim};

/// The log. Cheap to clone; the writer thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct Log {
    shared: Arc<LogShared>,
    queue: CommitQueue,
}

/// The requested start of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAfter {
    /// The oldest stored event.
    Oldest,
    /// The end of the log: only new events.
    Now,
    /// The event after this cursor.
    Cursor(Cursor),
}

/// The result of an attach.
#[derive(Clone, Debug)]
pub struct AttachVerdict {
    /// The verdict on the cursor: whether reading can resume there.
    pub resume: ResumeVerdict,
    /// The position after which to read on, if `resume` is `Ok`; else reading starts after the snapshot's position.
    pub after: Position,
    /// The oldest position from which the filter can be resumed without a gap.
    pub oldest: Position,
    /// The log's end.
    pub head: Position,
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
            watchers: Arc::new(Watchers::default()),
            store,
        });
        let queue = CommitQueue::start(Arc::clone(&shared))
            .map_err(|error| StoreError::Io(format!("cannot start the log's writer: {error}")))?;
        Ok(Self { shared, queue })
    }

    /// Returns the log's epoch.
    pub fn epoch(&self) -> &Epoch {
        &self.shared.epoch
    }

    /// Returns the position of the last event.
    pub fn head(&self) -> Position {
        *self.shared.head.borrow()
    }

    /// Returns a position as the text that clients store.
    pub fn cursor(&self, position: Position) -> Cursor {
        Cursor { epoch: self.shared.epoch.clone(), position }
    }

    /// Returns a watch that is notified whenever the head moves.
    pub fn watch(&self) -> watch::Receiver<Position> {
        self.shared.head.subscribe()
    }

    /// Returns a watch that is notified of events that the filter accepts, and of nothing else.
    pub fn watch_for(&self, filter: &Filter) -> EventWatch {
        EventWatch::new(Arc::clone(&self.shared.watchers), filter.clone())
    }

    /// Returns the head if the filter accepts nothing after `after`: a reader at that position has everything. `None` if it does, or if
    /// the filter names no sessions, so that the log would have to be searched.
    pub fn level(&self, filter: &Filter, after: Position) -> Option<Position> {
        let sessions = filter.sessions.as_ref()?;
        // The head first: marks are updated before the head moves.
        let head = self.head();
        let last = |session| self.shared.marks.get(session).map_or(Position::START, |mark| mark.last);
        (after <= head && sessions.iter().all(|session| last(session) <= after)).then_some(head)
    }

    /// Returns the time since which spending is recorded.
    pub fn spending_since(&self) -> Timestamp {
        self.shared.store.spending_since()
    }

    /// Returns the underlying store, for reads of other data than events.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Stores an entry and publishes its events. Returns the position of its first event. Once this returns, readers may have seen them.
    /// If the future is dropped, the entry may or may not be stored.
    ///
    /// # Errors
    /// [`StoreError`]: nothing of the entry was stored; callers that must not lose it hold a copy.
    /// [`StoreError::NoSession`] if its session was deleted: then it will never be stored.
    pub async fn commit(&self, entry: CommitEntry) -> Result<Position, Arc<StoreError>> {
        self.queue.commit(entry).await
    }

    /// Returns the verdict for a reader that begins at `after`.
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

    /// Returns the events after `after`, if they are all still in the ring; never blocks. If it returns `None`, use [`read`](Self::read).
    pub fn read_hot(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Option<EventPage> {
        let ring = self.shared.ring.read();
        if ring.events.is_empty() {
            // Nothing was committed since the start: enough only for a reader at the head.
            return (after >= self.head()).then_some(EventPage { events: Vec::new(), next: after, received: None });
        }
        let first = ring.first;
        if after.next() < first {
            drop(ring);
            // The filter may accept nothing after `after`.
            return self.level(filter, after).map(|head| EventPage {
                events: Vec::new(),
                next: head.max(after),
                received: None,
            });
        }
        let from = usize::try_from(after.0 + 1 - first.0).unwrap_or(usize::MAX).min(ring.events.len());
        let mut page = EventPage { events: Vec::new(), next: after, received: None };
        let mut bytes = 0;
        for (n, event) in ring.events.range(from..).enumerate() {
            if let Some(event) = event.as_ref().filter(|event| filter.takes(&event.origin)) {
                if !page.events.is_empty() && (page.events.len() >= limit.events || bytes >= limit.bytes) {
                    return Some(page);
                }
                bytes += event.weight();
                if page.events.is_empty() {
                    page.received = ring.received_at(event.position);
                }
                page.events.push(Arc::clone(event));
            }
            page.next = Position(first.0 + (from + n) as u64);
        }
        Some(page)
    }

    /// Returns the events after `after`: from the ring, else from the store on a thread that may block. Returns at once, with
    /// no events if there are none. Cancellation safe.
    ///
    /// # Errors
    /// [`StoreError`]. A damaged block causes no error: it is skipped, and an event of kind `error` takes its place.
    pub async fn read(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        if let Some(page) = self.read_hot(filter, after, limit) {
            return Ok(page);
        }
        let (shared, filter) = (Arc::clone(&self.shared), filter.clone());
        tokio::task::spawn_blocking(move || shared.read_cold(&filter, after, limit))
            .await
            .map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// Like [`read`](Self::read), for threads that may block.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_blocking(&self, filter: &Filter, after: Position, limit: ReadLimit) -> Result<EventPage, StoreError> {
        match self.read_hot(filter, after, limit) {
            Some(page) => Ok(page),
            None => self.shared.read_cold(filter, after, limit),
        }
    }

    /// Returns the newest events of one session before `before`, in order: as many as the limit allows, at least one if there is any.
    /// Cancellation safe.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
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

    /// Like [`read_before`](Self::read_before), for threads that may block.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_before_blocking(
        &self,
        session: &SessionId,
        before: Position,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        self.shared.read_before(session, before, limit)
    }

    /// Returns the position of the last event of a session that retention removed; [`Position::START`] if none was, or if the session
    /// does not exist.
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

    /// Removes some closed requests: see [`Store::retire`]. Returns whether there are more to remove.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn retire(&self, before: Option<Timestamp>, max: usize) -> Result<bool, Arc<StoreError>> {
        self.queue.order(|done| WriterJob::Retire { before, max, done }).await?
    }

    /// Deletes a session. Once this returns, nothing of it can be read or stored, also after a crash. The receiver is notified when its
    /// bytes were removed, which happens in small steps between commits.
    ///
    /// # Errors
    /// [`StoreError`]: the session is as it was.
    pub async fn forget(&self, session: &SessionId) -> Result<oneshot::Receiver<()>, Arc<StoreError>> {
        let (removed, swept) = oneshot::channel();
        let session = session.clone();
        self.queue.order(|done| WriterJob::Forget { session, removed, done }).await??;
        Ok(swept)
    }
}
