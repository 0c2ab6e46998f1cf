//! The past of a session by pages: forwards from a place, or backwards from one, each page bounded by items, by bytes and
//! by how much of the log is read for it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::page_merge::{BackwardsCounter, LogPlace, Merger, PageItem, PageUnit};
use super::{Filter, Log};
use crate::ledger::Charge;
use plexus_protocol::{Event, Position, SessionId};
use plexus_store::{ReadLimit, StoreError};

/// What is read of the log in one go.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };
/// Bytes in which the room of a page grows.
const STEP: usize = 64 << 10;
/// Bytes of the log that are read for one page at most, about: a page of long messages in tiny chunks ends here, with what
/// it has, and the next one goes on.
const SCAN: usize = 32 << 20;

/// How much one page may bring. At least one item comes if there is any.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    /// Items at most.
    pub items: usize,
    /// Bytes of items at most, about; a single event that is larger, and is no message's text, comes whole.
    pub bytes: usize,
    /// Whether events are merged.
    pub merge: bool,
}

/// A page of the past.
#[derive(Debug)]
pub struct HistoryPage {
    /// What is on it, in the order of the log.
    pub items: Vec<PageItem>,
    /// Where it begins.
    pub from: LogPlace,
    /// Where it ends.
    pub to: LogPlace,
    /// Whether there is more: before it when it was read backwards, after it when forwards.
    pub more: bool,
    /// What its events hold, and what they take written down, in bytes, about.
    pub bytes: usize,
}

impl PageLimit {
    fn units(self, event: &Arc<Event>) -> Vec<PageUnit> {
        if self.merge { PageUnit::of(event) } else { vec![PageUnit::whole(Arc::clone(event))] }
    }
}

/// Whether there is room to go on with a page whose events hold so much: it grows with them, and without room for more the
/// page ends with what it has.
fn goes_on(room: &mut Charge, held: usize, limit: PageLimit) -> bool {
    // Its text is no longer than its events are.
    let needed = (held + limit.bytes.min(held) + SLICE.bytes).next_multiple_of(STEP);
    needed <= room.bytes() || room.resize(needed).is_ok()
}

/// What a page holds of an event, in bytes.
fn holds(event: &Event) -> usize {
    event.weight() + size_of::<PageUnit>()
}

impl Log {
    /// What comes after `from`. Returns at once, with no items if there are none. `room` is what is charged for the page
    /// already: it grows while the page does, and is less than [`HistoryPage::bytes`] only where a single event is larger.
    /// Cancellation safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn page_after(
        &self,
        filter: &Filter,
        from: LogPlace,
        limit: PageLimit,
        room: &mut Charge,
    ) -> Result<HistoryPage, StoreError> {
        let head = self.head();
        let mut merger = Merger::default();
        let (mut to, mut scanned, mut held) = (from, 0, 0);
        loop {
            let after = Position(to.position.0.saturating_sub(1));
            let page = self.read(filter, after, SLICE).await?;
            for event in &page.events {
                scanned += event.weight();
                let mut holds = holds(event);
                for unit in limit.units(event) {
                    if unit.place() < to {
                        continue;
                    }
                    if !merger.fits(&unit, limit.items, limit.bytes) {
                        let bytes = held + merger.bytes();
                        return Ok(HistoryPage { items: merger.finish(), from, to, more: true, bytes });
                    }
                    held += std::mem::take(&mut holds);
                    to = unit.end();
                    merger.push(unit);
                }
            }
            let done = page.next <= after || page.next >= head;
            to = to.max(LogPlace::after(page.next));
            if done || scanned >= SCAN || !goes_on(room, held, limit) {
                let bytes = held + merger.bytes();
                return Ok(HistoryPage { items: merger.finish(), from, to, more: !done, bytes });
            }
            tokio::task::yield_now().await;
        }
    }

    /// The newest of one session before `to`; `room` as in [`page_after`](Self::page_after). Cancellation safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn page_before(
        &self,
        session: &SessionId,
        to: LogPlace,
        limit: PageLimit,
        room: &mut Charge,
    ) -> Result<HistoryPage, StoreError> {
        // Up to the end, where that is asked for.
        let to = to.min(LogPlace::after(self.head()));
        let mut taken: VecDeque<PageUnit> = VecDeque::new();
        let mut held = 0;
        let (from, more) = self
            .walk_back(session, to, limit, |unit, scanned| {
                if taken.front().is_none_or(|first| first.place().position != unit.place().position) {
                    held += holds(unit.event());
                }
                taken.push_front(unit);
                scanned < SCAN && goes_on(room, held, limit)
            })
            .await?;
        let mut merger = Merger::default();
        taken.into_iter().for_each(|unit| merger.push(unit));
        let bytes = held + merger.bytes();
        Ok(HistoryPage { items: merger.finish(), from, to, more, bytes })
    }

    /// Where the newest of one session before `to` begin that fit the limit, and whether there is more before. Keeps
    /// nothing of it. Cancellation safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn place_before(
        &self,
        session: &SessionId,
        to: LogPlace,
        limit: PageLimit,
    ) -> Result<(LogPlace, bool), StoreError> {
        self.walk_back(session, to.min(LogPlace::after(self.head())), limit, |_, _| true).await
    }

    /// Walks back from `to` over what fits the limit, as long as `take` says yes to what there is and to the bytes of the
    /// log that were read. Where it came to, and whether there is more before.
    async fn walk_back(
        &self,
        session: &SessionId,
        to: LogPlace,
        limit: PageLimit,
        mut take: impl FnMut(PageUnit, usize) -> bool,
    ) -> Result<(LogPlace, bool), StoreError> {
        let mut walk = BackwardsCounter::default();
        let (mut from, mut scanned) = (to, 0);
        loop {
            // A part of an event is read with the whole of it.
            let before = if from.part == 0 { from.position } else { from.position.next() };
            let events = self.read_before(session, before, SLICE).await?;
            if events.is_empty() {
                return Ok((from, false));
            }
            for event in events.iter().rev() {
                scanned += event.weight();
                for unit in limit.units(event).into_iter().rev() {
                    if unit.place() >= from {
                        continue;
                    }
                    if !walk.take(&unit, limit.items, limit.bytes) {
                        return Ok((from, true));
                    }
                    from = unit.place();
                    if !take(unit, scanned) {
                        return Ok((from, true));
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }
}
