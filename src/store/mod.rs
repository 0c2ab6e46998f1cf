//! What is kept. One trait, two stores (SQLite, memory), one contract suite that both pass.
//!
//! A [`Store`] is plain and synchronous: one thread commits (the log's writer, which groups what arrives), any thread
//! reads. It assigns nothing: positions come with the events.

use std::sync::Arc;

use crate::model::{Epoch, Event, Position, RequestId, RequestState, RuntimeId, SessionId, Timestamp};

mod block;
#[cfg(test)]
mod contract;
mod memory;
mod sqlite;
mod words;

pub use memory::MemoryStore;
pub use sqlite::{Durability, SqliteStore};

/// One transaction: all of it is kept, or none.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events in rising order of position, all after the store's head; any number of sessions mixed. A session's row
    /// comes with or before its first event.
    pub events: Vec<Arc<Event>>,
    /// Session rows to write whole.
    pub sessions: Vec<SessionRow>,
    /// Request rows to write whole.
    pub requests: Vec<RequestRow>,
    /// Text to be found by [`Store::search`].
    pub texts: Vec<TextRow>,
    /// Device rows to write whole, or to delete.
    pub devices: Vec<DeviceChange>,
    /// Rows of the notifier's to write whole, or to delete.
    pub pushes: Vec<PushChange>,
    /// How far sessions have heard their runtimes. A session's row comes with or before its first mark.
    pub marks: Vec<(SessionId, Mark)>,
    /// Whether the batch must be on disk (fsync) before [`Store::commit`] returns, whatever the store's durability.
    pub sync: bool,
}

/// A session as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The conversation.
    pub session_id: SessionId,
    /// Its runtime.
    pub runtime_id: RuntimeId,
    /// The dialect of that runtime.
    pub dialect: String,
    /// The session's own state, JSON; its events up to `as_of` are in it.
    pub state: Vec<u8>,
    /// The last event that `state` knows.
    pub as_of: Position,
    /// Whether a run is unfinished or a request open: retention spares the session's events from `spare_from` on.
    pub spare_from: Option<Position>,
}

/// How far a session has heard its runtime: what a runtime said up to here is in the session's events, and nothing after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Which start of the runtime.
    pub generation: u64,
    /// Bytes of its output.
    pub offset: u64,
}

/// A session's row and the bounds of its events, as [`Store::sessions`] finds them.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// The row.
    pub row: SessionRow,
    /// The last event kept (or trimmed) of it; [`Position::START`] if there is none.
    pub last: Position,
    /// The last event of it that retention removed; [`Position::START`] if none was.
    pub trimmed: Position,
    /// What [`Trim::base`] left when events were removed.
    pub base: Option<Vec<u8>>,
    /// How far it has heard its runtime.
    pub mark: Option<Mark>,
}

/// A request as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// The request.
    pub request_id: RequestId,
    /// Its conversation.
    pub session_id: SessionId,
    /// Where it stands.
    pub state: RequestState,
    /// The whole [`Request`](crate::model::Request), JSON.
    pub body: Vec<u8>,
    /// The `Idempotency-Key` of the answer that won.
    pub answer_key: Option<String>,
}

/// A passage that full-text search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRow {
    /// The conversation.
    pub session_id: SessionId,
    /// The event where the passage ends.
    pub position: Position,
    /// Whose words: `user`, `agent`, `tool`.
    pub role: &'static str,
    /// The passage.
    pub text: String,
}

/// A passage found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The conversation.
    pub session_id: SessionId,
    /// The event where the passage ends.
    pub position: Position,
    /// Whose words.
    pub role: String,
    /// The passage around the match, matches between U+0002 and U+0003.
    pub snippet: String,
}

/// A change to the enrolled devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// Write the device's row whole.
    Put {
        /// Its identifier.
        device_id: String,
        /// The device, JSON.
        body: Vec<u8>,
    },
    /// Delete it.
    Delete {
        /// Its identifier.
        device_id: String,
    },
}

/// A change to what the notifier keeps of one place that it sends to: a device's subscription, a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushChange {
    /// The place: a device's identifier, or the name of another.
    pub name: String,
    /// The row, JSON; `None` deletes it.
    pub body: Option<Vec<u8>>,
}

/// How much one read may bring. At least one event comes if there is any.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// Events at most.
    pub events: usize,
    /// Bytes at most, by [`Event::weight`].
    pub bytes: usize,
}

/// What retention removes from one session.
#[derive(Clone, Debug)]
pub struct Trim {
    /// The conversation.
    pub session_id: SessionId,
    /// Events up to and including this one may go; the store removes whole blocks only, so it may remove fewer.
    pub through: Position,
    /// Kept in their place: whatever a late reader still needs of them, JSON.
    pub base: Option<Vec<u8>>,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of events.
    pub event_bytes: u64,
    /// Bytes of the files, the write-ahead log among them.
    pub disk_bytes: u64,
}

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space is left. Nothing of the batch was kept; the same batch may be tried again later.
    #[error("no space is left on the disk that holds the state")]
    Full,
    /// Reading or writing failed. Nothing of the batch was kept.
    #[error("the store failed: {0}")]
    Io(String),
    /// The store was written by a newer version. It was not touched.
    #[error(
        "the state was written by a newer plexus (schema {found}, this one knows {known}): update plexus, or point PLEXUS_HOME elsewhere"
    )]
    Newer {
        /// The schema found.
        found: u32,
        /// The newest schema known.
        known: u32,
    },
    /// Another process uses the store.
    #[error("another gateway uses this state")]
    Locked,
    /// A record is damaged. The others can still be read.
    #[error("the record at {position} of {session_id} is damaged; its neighbours are fine")]
    Damaged {
        /// The conversation.
        session_id: SessionId,
        /// The first event of the damaged block.
        position: Position,
        /// The last event that can be read again is after this one: read on from here.
        resume_at: Position,
    },
}

/// Where events, sessions, requests, devices and what the notifier keeps lie.
///
/// Once [`commit`](Store::commit) returns, the batch survives `kill -9`; with `sync` (or power durability), a power cut.
/// An event is visible to [`read`](Store::read) once its commit returned, not before.
pub trait Store: Send + Sync + 'static {
    /// The log's life: random, made with the store.
    fn epoch(&self) -> Epoch;

    /// The last position committed.
    fn head(&self) -> Position;

    /// Keeps a batch. Called by one thread at a time.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch was kept and the store still works.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Events of one session after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the first block to read fails its checksum; events before it were returned by earlier
    /// reads, and reading on from `resume_at` works.
    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError>;

    /// Every session, in the order of their first rows.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError>;

    /// Forgets a session: its row, events, requests and texts.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn forget(&self, session: &SessionId) -> Result<(), StoreError>;

    /// One request.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError>;

    /// Requests, newest first: of one state if named, of one session if named, `limit` at most.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn requests(
        &self,
        state: Option<RequestState>,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<RequestRow>, StoreError>;

    /// Passages that hold every word of `text` (the last one as a prefix), best first.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Any text is fine: it is words, not a query language.
    fn search(&self, text: &str, limit: usize) -> Result<Vec<Hit>, StoreError>;

    /// Every device's row.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// What the notifier keeps, by name.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Removes old events, whole blocks at a time, never at or past a session's `spare_from`, and the texts found there.
    /// A [`Trim::base`] of `None` leaves the one of an earlier trim. Returns, for each session that lost any, the last
    /// position it lost.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError>;

    /// For retention: per session (oldest blocks first) the last position and time of each block, and its bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn blocks(&self, session: &SessionId, limit: usize) -> Result<Vec<(Position, Timestamp, usize)>, StoreError>;

    /// How much is kept.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn usage(&self) -> Result<Usage, StoreError>;
}
