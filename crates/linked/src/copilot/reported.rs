//! The reported events of a session. Pure.
//!
//! Copilot's events are read from a cursor, and each has an id. The cursor moves with every read; the ids of events
//! that the tunnel reported since are stored as well, so that a read reports only new events.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};

/// Maximum number of events that wait until missed events are read.
pub(super) const HELD_MAX: usize = 1024;
/// Number of events reported since the cursor after which a read moves it.
const SEEN_READ: usize = 32;
/// Maximum number of stored ids of events since the cursor, if reads fail; a read may report older ones again.
const SEEN_MAX: usize = 256;
/// Maximum number of stored ids of events that a read reported: the tunnel reports them, too, if they happened
/// meanwhile. There are more than may wait.
const RECENT_MAX: usize = 2 * HELD_MAX;

/// The reported events of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    /// The cursor: all events before it are reported. `None` before the first read.
    cursor: Option<String>,
    /// The reported events after the cursor (FNV-1a of their ids).
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    seen: VecDeque<u64>,
    /// The events of the last reads.
    #[serde(skip)]
    recent: VecDeque<u64>,
    /// The events of the read in progress.
    #[serde(skip)]
    page: Vec<u64>,
    /// `true` if the past is not shown.
    #[serde(skip)]
    pub(super) hidden: bool,
}

impl Reported {
    /// Returns the path of the request for the events after the cursor.
    pub(super) fn path(&self) -> String {
        match &self.cursor {
            Some(cursor) => format!("/events/{}", data_encoding::HEXLOWER.encode(cursor.as_bytes())),
            None => "/events".to_owned(),
        }
    }

    /// Returns `true` before the first read.
    pub(super) fn is_none(&self) -> bool {
        self.cursor.is_none()
    }

    /// Hides the events before the first read, if the log has them.
    pub(super) fn hide_past(&mut self, hidden: bool) {
        self.hidden = hidden;
    }

    /// Returns whether an event is reported for the first time, and stores its id; `live`, or by a read.
    pub(super) fn is_new(&mut self, id: &str, live: bool) -> bool {
        let id = fnv(FNV, id);
        let new = !self.seen.contains(&id) && !self.recent.contains(&id);
        let remember = |queue: &mut VecDeque<u64>, max| {
            if queue.len() >= max {
                queue.pop_front();
            }
            queue.push_back(id);
        };
        match live {
            true if new => remember(&mut self.seen, SEEN_MAX),
            true => {}
            false => {
                self.page.push(id);
                remember(&mut self.recent, RECENT_MAX);
            }
        }
        new
    }

    /// Returns whether the cursor is far behind.
    pub(super) fn is_long(&self) -> bool {
        self.seen.len() >= SEEN_READ
    }

    /// Completes a read up to this cursor.
    pub(super) fn read_to(&mut self, cursor: String) {
        self.cursor = Some(cursor);
        let page = std::mem::take(&mut self.page);
        self.seen.retain(|id| !page.contains(id));
    }
}
