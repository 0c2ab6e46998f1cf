//! The state that readers of the log share: the ring of the newest events, the head, and reads of older events from the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::watch;

use super::Filter;
use super::watching::Watchers;
use plexus_protocol::{Epoch, ErrorBody, Event, Kind, Origin, Position, RunId, SessionId, Timestamp};
use plexus_store::{DamagedBlock, EventsAcross, ReadLimit, Store, StoreError};

/// Maximum size of the events that the ring holds in memory, in bytes; older ones are read from the store.
const RING_BYTES: usize = 8 << 20;
/// Maximum number of events in the ring: bounds the bookkeeping when events are tiny.
const RING_EVENTS: usize = 32 << 10;
/// Maximum number of sessions in a filter that are read one by one, each from the start of the page; more are read together, in the order
/// of the log.
const APART_MAX: usize = 8;

/// The part of the log that readers share.
pub(super) struct LogShared {
    pub(super) store: Arc<dyn Store>,
    pub(super) epoch: Epoch,
    pub(super) ring: RwLock<Ring>,
    pub(super) head: watch::Sender<Position>,
    /// The last event of each session, and the last one that retention removed.
    pub(super) marks: DashMap<SessionId, SessionPositions>,
    pub(super) watchers: Arc<Watchers>,
}

#[derive(Clone)]
pub(super) struct SessionPositions {
    pub(super) origin: Arc<Origin>,
    pub(super) last: Position,
    pub(super) trimmed: Position,
}

/// Consecutive events, the newest at the back.
#[derive(Default)]
pub(super) struct Ring {
    /// The position of the first event; the others follow without a gap. A `None` entry is a deleted event.
    pub(super) first: Position,
    pub(super) events: VecDeque<Option<Arc<Event>>>,
    bytes: usize,
    /// The time when the gateway received each group of runtime output, by the group's last position.
    received: VecDeque<(Position, Instant)>,
}

impl Ring {
    /// Returns the time when the group with this position was received.
    pub(super) fn received_at(&self, position: Position) -> Option<Instant> {
        let at = self.received.partition_point(|(last, _)| *last < position);
        self.received.get(at).map(|(_, received)| *received)
    }
}

/// Some events, and the position after which to read on.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events, in order of position.
    pub events: Vec<Arc<Event>>,
    /// The position after which to read on: all events up to it that the filter accepts are in `events` or in earlier pages.
    pub next: Position,
    /// The time when the gateway received the first of them, if it is still in the ring.
    pub received: Option<Instant>,
}

impl LogShared {
    pub(super) fn read_cold(
        &self,
        filter: &Filter,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventPage, StoreError> {
        let some = match &filter.sessions {
            Some(some) if some.len() <= APART_MAX => some,
            _ => return self.read_across(filter, after, limit),
        };
        // The head is read first: events committed during the read are in the next page, so that nothing is skipped.
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
        let count = events
            .iter()
            .enumerate()
            .take_while(|(n, event)| {
                let is_within = *n == 0 || (*n < limit.events && bytes < limit.bytes);
                bytes += event.weight();
                is_within
            })
            .count();
        if count < events.len() {
            events.truncate(count);
            next = events.last().map_or(after, |event| event.position);
        }
        Ok(EventPage { events, next, received: None })
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
        // The store may be a commit ahead of the ring.
        let next = next.min(head).max(after);
        events.retain(|event| event.position <= next);
        Ok(EventPage { events, next, received: None })
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

    pub(super) fn read_before(
        &self,
        session: &SessionId,
        before: Position,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let Some(origin) = self.marks.get(session).map(|marks| Arc::clone(&marks.origin)) else {
            return Ok(Vec::new());
        };
        // Events that are stored but not published yet are not read.
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

    /// Records up to which position retention removed the events of these sessions.
    pub(super) fn trimmed(&self, lost: &[(SessionId, Position)]) {
        for (session, through) in lost {
            if let Some(mut mark) = self.marks.get_mut(session) {
                mark.trimmed = mark.trimmed.max(*through);
            }
        }
    }

    /// Publishes stored events, in the order of their positions. A position that is missing among them was refused.
    pub(super) fn show(&self, events: &[Arc<Event>], received: Option<Instant>) {
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
        if let Some(received) = received {
            ring.received.push_back((last.position, received));
        }
        while ring.received.front().is_some_and(|(last, _)| *last < ring.first) {
            ring.received.pop_front();
        }
        // Under the ring's lock: a reader with the cursor of an event from the ring must not be ahead of the head.
        self.head.send_replace(last.position);
        drop(ring);
        self.watchers.notify(events);
    }
}

/// Makes the event that takes the place of a damaged block.
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
