//! What is kept. One trait, two stores (SQLite, memory), one contract suite that both pass.
//!
//! A [`Store`] is plain and synchronous: one thread at a time commits (the log decides which), any thread
//! reads. It assigns nothing: positions come with the events.

use std::sync::Arc;

use plexus_protocol::{
    Epoch, Event, Origin, Position, RequestId, RequestState, RunId, RuntimeId, SessionId, Timestamp,
};

mod block;
#[cfg(test)]
mod contract;
mod memory;
mod search_words;
mod sqlite;

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
    pub marks: Vec<(SessionId, RuntimeMark)>,
    /// What was asked in prompts that wait, to write, or to delete once it is told or cancelled. A session's row comes
    /// with or before its first prompt.
    pub prompts: Vec<PromptChange>,
    /// Whether the batch must be on disk (fsync) before [`Store::commit`] returns, whatever the store's durability.
    pub sync: bool,
}

/// How much of a batch that several made together one of them brought.
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
    sync: bool,
}

impl Batch {
    /// Appends another batch, whose events come after these.
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
        self.sync |= other.sync;
        share
    }

    /// The batches again that were appended, in their order.
    pub fn apart(self, shares: &[BatchShare]) -> Vec<Self> {
        let (mut events, mut sessions) = (self.events.into_iter(), self.sessions.into_iter());
        let (mut requests, mut texts) = (self.requests.into_iter(), self.texts.into_iter());
        let (mut devices, mut pushes) = (self.devices.into_iter(), self.pushes.into_iter());
        let (mut marks, mut prompts) = (self.marks.into_iter(), self.prompts.into_iter());
        let one = |share: &BatchShare| Self {
            events: events.by_ref().take(share.events).collect(),
            sessions: sessions.by_ref().take(share.sessions).collect(),
            requests: requests.by_ref().take(share.requests).collect(),
            texts: texts.by_ref().take(share.texts).collect(),
            devices: devices.by_ref().take(share.devices).collect(),
            pushes: pushes.by_ref().take(share.pushes).collect(),
            marks: marks.by_ref().take(share.marks).collect(),
            prompts: prompts.by_ref().take(share.prompts).collect(),
            sync: share.sync,
        };
        shares.iter().map(one).collect()
    }
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

/// A change to the prompts of a session that are kept until its runtime has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptChange {
    /// The conversation.
    pub session_id: SessionId,
    /// The run that the prompt is, or will be.
    pub run_id: RunId,
    /// What was asked, JSON; `None` deletes it.
    pub content: Option<Vec<u8>>,
}

/// How far a session has heard its runtime: what a runtime said up to here is in the session's events, and nothing after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeMark {
    /// Which process of the runtime, as a number, which the sessions give it.
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
    pub mark: Option<RuntimeMark>,
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
    /// The whole [`Request`](plexus_protocol::Request), JSON.
    pub body: Vec<u8>,
    /// The `Idempotency-Key` of the answer that won.
    pub answer_key: Option<String>,
    /// When it closed, by the gateway's clock; `None` while it is open.
    pub closed_at: Option<Timestamp>,
}

/// Which requests to list, newest first.
#[derive(Clone, Copy, Debug)]
pub struct RequestQuery<'a> {
    /// Of this state alone.
    pub state: Option<RequestState>,
    /// Of this session alone.
    pub session: Option<&'a SessionId>,
    /// Only those that came before this one: [`RequestPage::next`] of the page before.
    pub before: Option<u64>,
    /// Rows at most.
    pub limit: usize,
}

/// Some requests, newest first.
#[derive(Debug, Default)]
pub struct RequestPage {
    /// Each with its number: a newer request has a higher one.
    pub rows: Vec<(u64, RequestRow)>,
    /// Where the next page begins; `None` if there is no more.
    pub next: Option<u64>,
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
pub struct SearchHit {
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

/// A block of events, as retention sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The conversation.
    pub session_id: SessionId,
    /// Its first event.
    pub first: Position,
    /// Its last event.
    pub last: Position,
    /// When that was.
    pub at: Timestamp,
    /// Bytes that it takes.
    pub bytes: usize,
}

/// Events of many sessions, in the order of the log.
#[derive(Debug, Default)]
pub struct EventsAcross {
    /// The events.
    pub events: Vec<Event>,
    /// Blocks among them that are damaged.
    pub damaged: Vec<DamagedBlock>,
    /// Read on after this: everything wanted up to it is in `events`, or damaged, or was before them.
    pub next: Position,
}

/// A block that fails its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlock {
    /// Whose events it held.
    pub origin: Arc<Origin>,
    /// The first of them that was wanted.
    pub position: Position,
    /// The last.
    pub last: Position,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of events.
    pub event_bytes: u64,
    /// Bytes of the files, the write-ahead log among them.
    pub disk_bytes: u64,
    /// Blocks of events that were read since the store was opened: what reading costs.
    pub blocks_read: u64,
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
    /// The session has no row, or is being deleted. Nothing for it is kept.
    #[error("the session {0} is not there, or was deleted")]
    Gone(SessionId),
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

    /// Whether the next commit of a small batch without [`Batch::sync`] only copies memory: it waits neither for the disk nor
    /// for readers, so that an async task may make it. Reads nothing.
    fn commit_is_quick(&self) -> bool;

    /// Events of one session after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the first block to read fails its checksum; events before it were returned by earlier
    /// reads, and reading on from `resume_at` works.
    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError>;

    /// The newest events of one session before `before`, in order: as many as the limit takes, counted from the newest.
    /// A block is read whole, so that a call costs at most one block more than it brings.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the newest block to read fails its checksum; reading on before its `position` works.
    fn read_before(&self, session: &SessionId, before: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError>;

    /// Events of every session whose origin is `wanted`, after `after`, in order. Costs a block's read for each block that
    /// is wanted, and a step in an index for each that is not; after many of these the page ends without events.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Damage is no error: [`EventsAcross::damaged`] tells of it.
    fn read_across(
        &self,
        wanted: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError>;

    /// Every session, in the order of their first rows.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError>;

    /// One session; `None` if it has no row or is being deleted.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn session(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError>;

    /// Whether a session has a row and is not being deleted. Reads nothing.
    fn holds(&self, session: &SessionId) -> bool;

    /// The prompts kept of a session, with what they asked.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn prompts(&self, session: &SessionId) -> Result<Vec<(RunId, Vec<u8>)>, StoreError>;

    /// Deletes a session: from now on, and after a crash, it is in no list, and nothing of it is read or kept. Its bytes
    /// go by [`sweep`](Store::sweep). Returns whether there was one.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError>;

    /// Whether a session was deleted and bytes of it are still there.
    fn is_being_deleted(&self, session: &SessionId) -> bool;

    /// One small step of removing what [`doom`](Store::mark_for_deletion) and [`trim`](Store::trim) left, and then of giving the disk
    /// back what is free. Returns whether there is more to do.
    ///
    /// # Errors
    /// As [`commit`](Store::commit); the step may be tried again.
    fn sweep(&self) -> Result<bool, StoreError>;

    /// Forgets a session at once: its row, events, requests, prompts and texts.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.mark_for_deletion(session)?;
        while self.is_being_deleted(session) {
            self.sweep()?;
        }
        Ok(())
    }

    /// One request.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError>;

    /// Requests, newest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn requests(&self, query: RequestQuery<'_>) -> Result<RequestPage, StoreError>;

    /// One small step of removing closed requests: those that closed before `before`, and the oldest beyond `most`.
    /// Returns whether there is more to do.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn retire(&self, before: Option<Timestamp>, most: usize) -> Result<bool, StoreError>;

    /// Passages that hold every word of `text` (the last one as a prefix), best first.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Any text is fine: it is words, not a query language.
    fn search(&self, text: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError>;

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

    /// Removes old events, whole blocks at a time, never at or past a session's `spare_from`, and the texts found there:
    /// none of it is read any more, also after a crash; the bytes go by [`sweep`](Store::sweep). A [`Trim::base`] of
    /// `None` leaves the one of an earlier trim. Returns, for each session that lost any, the last position it lost.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError>;

    /// For retention: the oldest blocks of all sessions that begin after `after`, in order.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn oldest(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError>;

    /// How much is kept.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn usage(&self) -> Result<Usage, StoreError>;
}
