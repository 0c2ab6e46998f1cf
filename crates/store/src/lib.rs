//! Persistent state. One trait, two stores (SQLite and memory), one contract test suite for both.
//!
//! A [`Store`] is synchronous: one thread at a time commits (the log decides which), any thread reads. It assigns no positions: the
//! events already have them.

use std::sync::Arc;

use plexus_protocol::{
    Epoch, Event, Origin, Position, RequestId, RequestState, RunId, RuntimeId, SessionId, Spending, Timestamp,
};

mod block;
#[cfg(test)]
mod contract;
mod memory;
mod search_words;
mod sqlite;

pub use memory::MemoryStore;
pub use sqlite::{Durability, RepairReport, RepairedTable, SqliteStore, repair};

/// One transaction: stored as a whole, or not at all.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events in increasing order of position, all after the store's head; sessions may be mixed. A session's row comes with or before
    /// its first event.
    pub events: Vec<Arc<Event>>,
    /// Session rows to write.
    pub sessions: Vec<SessionRow>,
    /// Request rows to write.
    pub requests: Vec<RequestRow>,
    /// Text for [`Store::search`].
    pub texts: Vec<TextRow>,
    /// Device rows to write or delete.
    pub devices: Vec<DeviceChange>,
    /// Rows of the notifier to write or delete.
    pub pushes: Vec<PushChange>,
    /// The marks of the runtime output that each session has stored. A session's row comes with or before its first mark.
    pub marks: Vec<(SessionId, RuntimeMark)>,
    /// Queued prompts to write, or to delete once they are reported or cancelled. A session's row comes with or before its first prompt.
    pub prompts: Vec<PromptChange>,
    /// Changes to the surfaces of sessions. A session's row comes with or before its first surface.
    pub surfaces: Vec<SurfaceChange>,
    /// The spending of runs, to be added. A session's row comes with or before its first spending.
    pub spent: Vec<SpendChange>,
    /// `true` if the batch must be on disk (fsync) before [`Store::commit`] returns, regardless of the store's durability.
    pub sync: bool,
    /// `true` if the batch may use the space that is reserved for answers, if the disk is full.
    pub reserved: bool,
}

/// The share of one batch in several that were appended.
#[derive(Clone, Copy, Debug)]
pub struct BatchShare {
    events: usize,
    sessions: usize,
    requests: usize,
    texts: usize,
    devices: usize,
    pushes: usize,
    marks: usize,
    prompts: usize,
    surfaces: usize,
    spent: usize,
    sync: bool,
}

impl Batch {
    /// Appends another batch, whose events follow.
    pub fn append(&mut self, mut other: Self) -> BatchShare {
        let share = BatchShare {
            events: other.events.len(),
            sessions: other.sessions.len(),
            requests: other.requests.len(),
            texts: other.texts.len(),
            devices: other.devices.len(),
            pushes: other.pushes.len(),
            marks: other.marks.len(),
            prompts: other.prompts.len(),
            surfaces: other.surfaces.len(),
            spent: other.spent.len(),
            sync: other.sync,
        };
        self.events.append(&mut other.events);
        self.sessions.append(&mut other.sessions);
        self.requests.append(&mut other.requests);
        self.texts.append(&mut other.texts);
        self.devices.append(&mut other.devices);
        self.pushes.append(&mut other.pushes);
        self.marks.append(&mut other.marks);
        self.prompts.append(&mut other.prompts);
        self.surfaces.append(&mut other.surfaces);
        self.spent.append(&mut other.spent);
        self.sync |= other.sync;
        share
    }

    /// Splits appended batches apart again, in their order.
    pub fn apart(self, shares: &[BatchShare]) -> Vec<Self> {
        let (mut events, mut sessions) = (self.events.into_iter(), self.sessions.into_iter());
        let (mut requests, mut texts) = (self.requests.into_iter(), self.texts.into_iter());
        let (mut devices, mut pushes) = (self.devices.into_iter(), self.pushes.into_iter());
        let (mut marks, mut prompts) = (self.marks.into_iter(), self.prompts.into_iter());
        let (mut surfaces, mut spent) = (self.surfaces.into_iter(), self.spent.into_iter());
        let one = |share: &BatchShare| Self {
            events: events.by_ref().take(share.events).collect(),
            sessions: sessions.by_ref().take(share.sessions).collect(),
            requests: requests.by_ref().take(share.requests).collect(),
            texts: texts.by_ref().take(share.texts).collect(),
            devices: devices.by_ref().take(share.devices).collect(),
            pushes: pushes.by_ref().take(share.pushes).collect(),
            marks: marks.by_ref().take(share.marks).collect(),
            prompts: prompts.by_ref().take(share.prompts).collect(),
            surfaces: surfaces.by_ref().take(share.surfaces).collect(),
            spent: spent.by_ref().take(share.spent).collect(),
            sync: share.sync,
            reserved: false,
        };
        shares.iter().map(one).collect()
    }
}

/// A session in its stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session_id: SessionId,
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// The dialect of that runtime.
    pub dialect: String,
    /// The session's own state as JSON; it includes the events up to `as_of`.
    pub state: Vec<u8>,
    /// The last event included in `state`.
    pub as_of: Position,
    /// The position from which on retention keeps the session's events, while a run is unfinished or a request open.
    pub spare_from: Option<Position>,
}

/// A change to the queued prompts of a session, which are stored until its runtime has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptChange {
    /// The session.
    pub session_id: SessionId,
    /// The run that the prompt starts.
    pub run_id: RunId,
    /// The prompt as JSON; `None` deletes it.
    pub content: Option<Vec<u8>>,
}

/// A change to a surface of a session. A surface is stored as its whole state and the changes since, so that a small change to a large
/// surface is a small write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfaceChange {
    /// The session.
    pub session_id: SessionId,
    /// The surface's name, unique in the session.
    pub surface: String,
    /// The surface's revision after the change; increasing.
    pub rev: u64,
    /// The change to write.
    pub write: SurfaceWrite,
}

/// The content of a [`SurfaceChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurfaceWrite {
    /// The whole state as JSON, which replaces all stored data of the surface.
    Whole(Vec<u8>),
    /// A change as JSON, which is added to the stored data.
    Change(Vec<u8>),
    /// The surface was closed: all its stored data is deleted.
    Closed,
}

/// The spending of a run, as of one report.
#[derive(Clone, Debug, PartialEq)]
pub struct SpendChange {
    /// The session.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// The time of the report.
    pub at: Timestamp,
    /// The spending since the previous report.
    pub spending: Spending,
}

/// Length of the time spans by which the sums of spending are stored, in milliseconds: a day of any time zone is a multiple of it.
pub const SPAN_MILLIS: i64 = 15 * 60 * 1000;
/// Length of a day, in milliseconds.
pub const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A query for sums of spending. The sums are stored by spans of [`SPAN_MILLIS`]: `from`, `to` and `offset_millis` are multiples of it.
#[derive(Clone, Copy, Debug)]
pub struct SpendQuery<'a> {
    /// The time from which on reports count.
    pub from: Timestamp,
    /// The time before which reports count.
    pub to: Timestamp,
    /// The session whose reports count; all if absent.
    pub session: Option<&'a SessionId>,
    /// The subject of a row, beside its session.
    pub by: SpendGroup,
    /// The offset of the reader's clock from UTC, in milliseconds; defines the beginning of days.
    pub offset_millis: i64,
}

/// The subject of a [`SpendRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendGroup {
    /// A session.
    Session,
    /// A run.
    Run,
    /// A session on one day.
    Day,
}

/// A sum of spending.
#[derive(Clone, Debug, PartialEq)]
pub struct SpendRow {
    /// The session and its runtime.
    pub origin: Arc<Origin>,
    /// The run; only for [`SpendGroup::Run`].
    pub run_id: Option<RunId>,
    /// The day, in days since the epoch by the reader's clock; only for [`SpendGroup::Day`].
    pub day: Option<i64>,
    /// The beginning of the last time span in the sum.
    pub at: Timestamp,
    /// The sum.
    pub spending: Spending,
}

/// The mark of a session in its runtime's output: the output before it is in the session's events, and no later output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeMark {
    /// The number of the runtime's process, assigned by the sessions.
    pub generation: u64,
    /// The offset in the process's output, in bytes.
    pub offset: u64,
}

/// A session's row and the bounds of its events.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// The row.
    pub row: SessionRow,
    /// The last event stored or trimmed; [`Position::START`] if there is none.
    pub last: Position,
    /// The last event removed by retention; [`Position::START`] if there is none.
    pub trimmed: Position,
    /// The [`Trim::base`] of the last trim.
    pub base: Option<Vec<u8>>,
    /// The part of its runtime's output that is stored.
    pub mark: Option<RuntimeMark>,
}

/// A request in its stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// The request.
    pub request_id: RequestId,
    /// The session.
    pub session_id: SessionId,
    /// The request's state.
    pub state: RequestState,
    /// The whole [`Request`](plexus_protocol::Request), JSON.
    pub body: Vec<u8>,
    /// The `Idempotency-Key` of the answer that won.
    pub answer_key: Option<String>,
    /// The time when the request was resolved, by the gateway's clock; `None` while it is open.
    pub closed_at: Option<Timestamp>,
}

/// Filters and pages a listing of requests, newest first.
#[derive(Clone, Copy, Debug)]
pub struct RequestQuery<'a> {
    /// The state of the requests; any if absent.
    pub state: Option<RequestState>,
    /// The session of the requests; any if absent.
    pub session: Option<&'a SessionId>,
    /// The number before which requests are returned: [`RequestPage::next`] of the previous page; all if absent.
    pub before: Option<u64>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// A page of requests, newest first.
#[derive(Debug, Default)]
pub struct RequestPage {
    /// The rows, each with its number: newer requests have higher numbers.
    pub rows: Vec<(u64, RequestRow)>,
    /// The start of the next page; `None` on the last.
    pub next: Option<u64>,
}

/// A passage for full-text search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRow {
    /// The session.
    pub session_id: SessionId,
    /// The event at which the passage ends.
    pub position: Position,
    /// The author: `user`, `agent`, `tool`.
    pub role: &'static str,
    /// The passage.
    pub text: String,
}

/// A search result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The session.
    pub session_id: SessionId,
    /// The event at which the passage ends.
    pub position: Position,
    /// The author.
    pub role: String,
    /// The text around the match; matches are enclosed in U+0002 and U+0003.
    pub snippet: String,
}

/// A change to the enrolled devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// Writes the device's row.
    Put {
        /// The identifier.
        device_id: String,
        /// The device, JSON.
        body: Vec<u8>,
    },
    /// Deletes the device's row.
    Delete {
        /// The identifier.
        device_id: String,
    },
}

/// A change to the notifier's row of one target: a device's push subscription, a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushChange {
    /// The target: a device's identifier, or the name of a channel.
    pub name: String,
    /// The row, JSON; `None` deletes it.
    pub body: Option<Vec<u8>>,
}

/// The limits of one read. It returns at least one event if there is any.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// Maximum number of events.
    pub events: usize,
    /// Maximum size of the events, in bytes, by [`Event::weight`].
    pub bytes: usize,
}

/// The events that retention removes from one session.
#[derive(Clone, Debug)]
pub struct Trim {
    /// The session.
    pub session_id: SessionId,
    /// The last event to remove; the store removes whole blocks only, so it may remove fewer.
    pub through: Position,
    /// JSON that replaces the removed events for late readers.
    pub base: Option<Vec<u8>>,
}

/// A block of events, for retention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The session.
    pub session_id: SessionId,
    /// The first event.
    pub first: Position,
    /// The last event.
    pub last: Position,
    /// The time of the last event.
    pub at: Timestamp,
    /// The size in bytes.
    pub bytes: usize,
}

/// Events of many sessions, in the order of the log.
#[derive(Debug, Default)]
pub struct EventsAcross {
    /// The events.
    pub events: Vec<Event>,
    /// Damaged blocks of the page.
    pub damaged: Vec<DamagedBlock>,
    /// The position after which to continue: every matching event up to it is in `events`, or damaged, or was before the page.
    pub next: Position,
}

/// A block with a wrong checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlock {
    /// The origin of the block's events.
    pub origin: Arc<Origin>,
    /// The first requested event.
    pub position: Position,
    /// The last event.
    pub last: Position,
}

/// The size of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Size of the events, in bytes.
    pub event_bytes: u64,
    /// Size of the files, including the write-ahead log, in bytes.
    pub disk_bytes: u64,
    /// Number of blocks read since the store was opened, as a measure of read cost.
    pub blocks_read: u64,
}

/// The reason why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space is left. Nothing of the batch was stored; the same batch may be retried later.
    #[error("no space is left on the disk that holds the state")]
    Full,
    /// Reading or writing failed. Nothing of the batch was stored.
    #[error("the store failed: {0}")]
    Io(String),
    /// The database is damaged.
    #[error(
        "the database is damaged ({0}): stop the gateway and run `plexus repair`, which keeps the damaged files and \
         makes a new database of what can be read"
    )]
    Corrupt(String),
    /// The store was written by a newer version. It was not changed.
    #[error(
        "the state was written by a newer plexus (schema {found}; this version supports up to {known}): update \
         plexus, or set PLEXUS_HOME to another folder"
    )]
    Newer {
        /// The schema of the store.
        found: u32,
        /// The newest supported schema.
        known: u32,
    },
    /// Another process uses the store.
    #[error("another gateway uses this state")]
    Locked,
    /// The session has no row, or is being deleted. None of its data is stored.
    #[error("the session {0} does not exist, or was deleted")]
    NoSession(SessionId),
    /// A block is damaged. The others can still be read.
    #[error("the record at {position} of {session_id} is damaged; other records are not affected")]
    Damaged {
        /// The session.
        session_id: SessionId,
        /// The first event of the damaged block.
        position: Position,
        /// The position after which to continue reading: the next readable event follows it.
        resume_at: Position,
    },
}

/// The storage of events, sessions, requests, devices and the notifier's rows.
///
/// Once [`commit`](Store::commit) returns, the batch survives `kill -9`; with `sync` (or power durability), a power cut. An event is
/// visible to [`read`](Store::read) once its commit returned, not before.
pub trait Store: Send + Sync + 'static {
    /// Returns the epoch of the log: random, made with the store.
    fn epoch(&self) -> Epoch;

    /// Returns the last committed position.
    fn head(&self) -> Position;

    /// Stores a batch. Called by one thread at a time.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch was stored and the store remains usable.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Returns whether the next commit of a small batch without [`Batch::sync`] only copies memory: it waits neither for the disk nor for
    /// readers, so that an async task may make it. Does no I/O.
    fn commit_is_quick(&self) -> bool;

    /// Returns events of one session after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the first block to read fails its checksum; earlier reads returned the events before it. Continue from
    /// `resume_at`.
    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError>;

    /// Returns the newest events of one session before `before`, in order: as many as the limit allows, counted from the newest. Blocks
    /// are read whole, so a call reads at most one block more than it returns.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the newest block to read fails its checksum; continue before its `position`.
    fn read_before(&self, session: &SessionId, before: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError>;

    /// Returns events after `after` of every session whose origin `matches`, in order. Reads each block of a wanted session, and one
    /// index entry for each other block; after many of the latter the page ends without events.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Damage is not an error: see [`EventsAcross::damaged`].
    fn read_across(
        &self,
        matches: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError>;

    /// Returns every session, in the order of creation.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError>;

    /// Returns one session; `None` if it has no row or is being deleted.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn session(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError>;

    /// Returns whether a session has a row and is not being deleted. Does no I/O.
    fn holds(&self, session: &SessionId) -> bool;

    /// Returns the queued prompts of a session, with their runs.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn prompts(&self, session: &SessionId) -> Result<Vec<(RunId, Vec<u8>)>, StoreError>;

    /// Returns the stored surfaces of a session: for each, by name, its whole state and then the changes since, by revision.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn surfaces(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Deletes a session: from now on, and after a crash, it is in no list, and none of its data is read or written. Its bytes are
    /// removed by [`sweep`](Store::sweep). Returns whether the session existed.
    ///
    /// # Errors
    /// The errors of [`commit`](Store::commit).
    fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError>;

    /// Returns whether a session was deleted and its bytes are not all removed yet.
    fn is_being_deleted(&self, session: &SessionId) -> bool;

    /// Makes one small step of removing the data of [`mark_for_deletion`](Store::mark_for_deletion) and [`trim`](Store::trim), and then
    /// of returning free pages to the disk. Returns whether there is more to do.
    ///
    /// # Errors
    /// The errors of [`commit`](Store::commit); the step may be retried.
    fn sweep(&self) -> Result<bool, StoreError>;

    /// Deletes a session at once: its row, events, requests, prompts, surfaces and texts.
    ///
    /// # Errors
    /// The errors of [`commit`](Store::commit).
    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.mark_for_deletion(session)?;
        while self.is_being_deleted(session) {
            self.sweep()?;
        }
        Ok(())
    }

    /// Returns the sessions with stored surfaces, without those being deleted; in no particular order.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn sessions_with_surfaces(&self) -> Result<Vec<SessionId>, StoreError>;

    /// Returns one request.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError>;

    /// Returns requests, newest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn requests(&self, query: RequestQuery<'_>) -> Result<RequestPage, StoreError>;

    /// Makes one small step of removing closed requests: those closed before `before`, and the oldest beyond `max`. Returns whether
    /// there is more to do.
    ///
    /// # Errors
    /// The errors of [`commit`](Store::commit).
    fn retire(&self, before: Option<Timestamp>, max: usize) -> Result<bool, StoreError>;

    /// Returns passages that contain every word of `text` (the last one as a prefix), best first.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Any text is valid: it has no query syntax.
    fn search(&self, text: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError>;

    /// Returns every device's row.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the notifier's rows, by name.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Returns sums of spending, in no particular order. Reads the rows of the requested time, and no events; a sum outlives the events
    /// that reported it, and is deleted with its session.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn spending(&self, query: SpendQuery<'_>) -> Result<Vec<SpendRow>, StoreError>;

    /// Returns the time since which spending is stored: the creation of the store, or its update to a version that stores spending.
    fn spending_since(&self) -> Timestamp;

    /// Removes old events, whole blocks at a time, never at or after a session's `spare_from`, and their texts. None of them is read any
    /// more, also after a crash; the bytes are removed by [`sweep`](Store::sweep). A [`Trim::base`] of `None` retains the one of an
    /// earlier trim. Returns the last removed position of each session that lost events.
    ///
    /// # Errors
    /// The errors of [`commit`](Store::commit).
    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError>;

    /// Returns, for retention, the oldest blocks of all sessions that begin after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn oldest(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError>;

    /// Returns the size of the store.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn usage(&self) -> Result<Usage, StoreError>;
}
