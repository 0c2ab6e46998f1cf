//! The events of a session that are reported. Pure.
//!
//! Copilot reads its events from a cursor, and each has an id. The cursor moves with every read; the ids of what was reported since by the
//! tunnel are kept beside it, so that a read reports only what is new.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};

/// Events that wait until what was missed is read.
pub(super) const HELD_MAX: usize = 1024;
/// Events reported since the cursor after which a read moves it.
const SEEN_READ: usize = 32;
/// Most of them that are remembered, where reads fail; of older ones a read may report some twice.
const SEEN_MAX: usize = 256;
/// Events remembered that a read reported: the tunnel tells of them, too, if they happened meanwhile. More than may wait.
const RECENT_MAX: usize = 2 * HELD_MAX;

/// The events of a session that are reported.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    /// All up to here. None before the first read.
    cursor: Option<String>,
    /// The events after it that are reported (FNV-1a of their ids).
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    seen: VecDeque<u64>,
    /// The events of the last reads.
    #[serde(skip)]
    recent: VecDeque<u64>,
    /// The events of the read under way.
    #[serde(skip)]
    page: Vec<u64>,
    /// The past is not to be shown.
    #[serde(skip)]
    pub(super) hidden: bool,
}

impl Reported {
    /// The path of the request for the events after the cursor.
    pub(super) fn path(&self) -> String {
        match &self.cursor {
            Some(cursor) => format!("/events/{}", data_encoding::HEXLOWER.encode(cursor.as_bytes())),
            None => "/events".to_owned(),
        }
    }

    /// Returns true before the first read.
    pub(super) fn is_none(&self) -> bool {
        self.cursor.is_none()
    }

    /// Hides the events before the first read, if the log has them.
    pub(super) fn hide_past(&mut self, hidden: bool) {
        self.hidden = hidden;
    }

    /// Returns true if an event is reported for the first time, and remembers it; `live`, or by a read.
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

    /// Returns true if the cursor is far behind.
    pub(super) fn is_long(&self) -> bool {
        self.seen.len() >= SEEN_READ
    }

    /// A read is over up to this cursor.
    pub(super) fn read_to(&mut self, cursor: String) {
        self.cursor = Some(cursor);
        let page = std::mem::take(&mut self.page);
        self.seen.retain(|id| !page.contains(id));
    }
}
