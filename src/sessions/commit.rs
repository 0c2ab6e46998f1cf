//! The entries that sessions commit to the log.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use plexus_protocol::{Kind, Origin, Position, RunId, SessionId, Timestamp};
use plexus_store::{
    DeviceChange, PromptChange, PushChange, RequestRow, RuntimeMark, SessionRow, SpendChange, SurfaceChange, TextRow,
};

/// An event that has no position yet.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The run it belongs to.
    pub run_id: RunId,
    /// The number within the run.
    pub seq: u64,
    /// The time of the events.
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
    /// The part of its runtime's output that each session has stored.
    pub marks: Vec<(SessionId, RuntimeMark)>,
    /// The content of queued prompts.
    pub prompts: Vec<PromptChange>,
    /// Changes to surfaces.
    pub surfaces: Vec<SurfaceChange>,
    /// The spending.
    pub spent: Vec<SpendChange>,
}

/// One commit: all of it is stored, or nothing.
pub struct CommitEntry {
    /// The origin of these events.
    pub origin: Arc<Origin>,
    /// The events, in order; they get consecutive positions.
    pub events: Vec<NewEvent>,
    /// Makes the rows, told the position of the first event (or of the next one to come, if there are none). Runs under the
    /// writer's lock: it must be short and must not block.
    pub rows: Option<Box<dyn FnOnce(Position) -> CommitRows + Send>>,
    /// Runs once the entry is stored and before any reader can see it, with the same position: what readers may ask for
    /// beside an event (the session's view) is then never older than the event. Runs under the writer's lock, too.
    pub kept: Option<Box<dyn FnOnce(Position) + Send>>,
    /// The time when the gateway received the first of it from a runtime: measures the time until every client has it.
    pub heard: Option<Instant>,
    /// `true` if it must be on disk before the commit returns.
    pub sync: bool,
}

impl CommitEntry {
    /// Bytes of its events, about.
    pub(super) fn weight(&self) -> usize {
        self.events.iter().map(|event| event.body.len() + event.native.as_ref().map_or(0, Bytes::len) + 64).sum()
    }
}
