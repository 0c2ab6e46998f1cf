//! The entries that sessions commit to the log.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use plexus_protocol::{Kind, Origin, Position, RunId, SessionId, Timestamp};
use plexus_store::{
    DeviceChange, PromptChange, PushChange, RequestRow, RuntimeMark, SessionRow, SpendChange, SurfaceChange, TextRow,
};

/// An event without a position.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The run that the event belongs to.
    pub run_id: RunId,
    /// The number within the run.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of the event.
    pub kind: Kind,
    /// The canonical body.
    pub body: Bytes,
    /// The runtime's own bytes, if the event came from a runtime.
    pub native: Option<Bytes>,
}

/// Rows that go with a commit.
#[derive(Debug, Default)]
pub struct CommitRows {
    /// Changed rows of sessions.
    pub sessions: Vec<SessionRow>,
    /// Changed rows of requests.
    pub requests: Vec<RequestRow>,
    /// Text for the full-text index.
    pub texts: Vec<TextRow>,
    /// Changes of devices.
    pub devices: Vec<DeviceChange>,
    /// Changes of the notifier's rows.
    pub pushes: Vec<PushChange>,
    /// The part of its runtime's output that each session has stored.
    pub marks: Vec<(SessionId, RuntimeMark)>,
    /// The content of queued prompts.
    pub prompts: Vec<PromptChange>,
    /// Changes to surfaces.
    pub surfaces: Vec<SurfaceChange>,
    /// Changes of the spending.
    pub spent: Vec<SpendChange>,
}

/// One commit: it is stored completely, or not at all.
pub struct CommitEntry {
    /// The origin of these events.
    pub origin: Arc<Origin>,
    /// The events, in order; they get consecutive positions.
    pub events: Vec<NewEvent>,
    /// The function that makes the rows. It gets the position of the first event (or of the next event in the log, if the entry has
    /// none). It runs under the writer's lock: it must be short and must not block.
    pub rows: Option<Box<dyn FnOnce(Position) -> CommitRows + Send>>,
    /// The function that runs once the entry is stored and before any reader can see it, with the same position: data that readers may
    /// request beside an event (the session's view) is then never older than the event. It runs under the writer's lock, too.
    pub on_stored: Option<Box<dyn FnOnce(Position) + Send>>,
    /// The time when the gateway received the first byte of the entry from a runtime; measures the time until every client has it.
    pub received: Option<Instant>,
    /// `true` if the entry must be on disk before the commit returns.
    pub sync: bool,
}

impl CommitEntry {
    /// Returns the approximate number of bytes of the entry's events.
    pub(super) fn weight(&self) -> usize {
        self.events.iter().map(|event| event.body.len() + event.native.as_ref().map_or(0, Bytes::len) + 64).sum()
    }
}
