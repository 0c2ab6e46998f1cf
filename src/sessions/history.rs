//! Pages of a session's past, read forwards or backwards from a place in the log. Each page is bounded by items, by bytes and by the
//! bytes of the log that are read for it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::page_merge::{BackwardsCounter, LogPosition, Merger, PageItem, PageUnit};
use super::{Filter, Log};
use plexus_ledger::Charge;
use plexus_protocol::{Event, Position, SessionId};
use plexus_store::{ReadLimit, StoreError};

/// Limit of one read of the log.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };
/// Step by which a page's charge grows, in bytes.
const STEP: usize = 64 << 10;
/// Approximate maximum of the bytes of the log read for one page. A page of long messages in tiny chunks ends here, and the next one
/// continues.
const SCAN: usize = 32 << 20;

/// The limits of one page. A page has at least one item if there is any.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    /// Maximum number of items.
    pub items: usize,
    /// Approximate maximum size of the items, in bytes; a single larger event that is not a message's text is returned whole.
    pub bytes: usize,
    /// `true` if the chunks of a message and the updates of a tool call are merged.
    pub merge: bool,
    /// Approximate maximum size of each member of a tool call in a merged page, in bytes; longer members are shortened. With
    /// `usize::MAX`, none is.
    pub output: usize,
}

/// One page of a session's past.
#[derive(Debug)]
pub struct HistoryPage {
    /// The items, in the order of the log.
    pub items: Vec<PageItem>,
    /// The start of the page.
    pub from: LogPosition,
    /// The end of the page.
    pub to: LogPosition,
    /// `true` if the log has more: before the page if the page was read backwards, after it if forwards.
    pub more: bool,
    /// Approximate size in memory of the page's events and its serialized form, in bytes.
    pub bytes: usize,
}

impl PageLimit {
    fn units(self, event: &Arc<Event>) -> Vec<PageUnit> {
        if self.merge { PageUnit::from_event(event, self.output) } else { vec![PageUnit::whole(Arc::clone(event))] }
    }
}

/// Returns whether a page whose events have `bytes_read` bytes may continue. Grows the charge with them; when the ledger is full, the page
/// ends with the items read so far.
fn may_continue(charge: &mut Charge, bytes_read: usize, limit: PageLimit) -> bool {
    // The serialized page is no longer than its events.
    let needed = (bytes_read + limit.bytes.min(bytes_read) + SLICE.bytes).next_multiple_of(STEP);
    needed <= charge.bytes() || charge.resize(needed).is_ok()
}

/// Returns the size of an event in a page, in bytes of memory.
fn memory_bytes(event: &Event) -> usize {
    event.weight() + size_of::<PageUnit>()
}

impl Log {
    /// Returns the page after `from`. Returns at once, without items if there are none. `charge` grows with the page, and is less than
    /// [`HistoryPage::bytes`] only where a single event is larger. Cancellation safe.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub async fn page_after(
        &self,
        filter: &Filter,
        from: LogPosition,
        limit: PageLimit,
        charge: &mut Charge,
    ) -> Result<HistoryPage, StoreError> {
        let head = self.head();
        let mut merger = Merger::default();
        let (mut to, mut scanned, mut bytes_read) = (from, 0, 0);
        loop {
            let after = Position(to.position.0.saturating_sub(1));
            let page = self.read(filter, after, SLICE).await?;
            for event in &page.events {
                scanned += event.weight();
                let mut event_bytes = memory_bytes(event);
                for unit in limit.units(event) {
                    if unit.start() < to {
                        continue;
                    }
                    if !merger.fits(&unit, limit.items, limit.bytes) {
                        let bytes = bytes_read + merger.bytes();
                        return Ok(HistoryPage { items: merger.finish(), from, to, more: true, bytes });
                    }
                    bytes_read += std::mem::take(&mut event_bytes);
                    to = unit.end();
                    merger.push(unit);
                }
            }
            let done = page.next <= after || page.next >= head;
            to = to.max(LogPosition::after(page.next));
            if done || scanned >= SCAN || !may_continue(charge, bytes_read, limit) {
                let bytes = bytes_read + merger.bytes();
                return Ok(HistoryPage { items: merger.finish(), from, to, more: !done, bytes });
            }
            tokio::task::yield_now().await;
        }
    }

    /// Returns the page of one session right before `to`; for `charge` see [`page_after`](Self::page_after). Cancellation safe.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub async fn page_before(
        &self,
        session: &SessionId,
        to: LogPosition,
        limit: PageLimit,
        charge: &mut Charge,
    ) -> Result<HistoryPage, StoreError> {
        // A place beyond the log's end means the end.
        let to = to.min(LogPosition::after(self.head()));
        let mut taken: VecDeque<PageUnit> = VecDeque::new();
        let mut bytes_read = 0;
        let (from, more) = self
            .walk_back(session, to, limit, |unit, scanned| {
                if taken.front().is_none_or(|first| first.start().position != unit.start().position) {
                    bytes_read += memory_bytes(unit.event());
                }
                taken.push_front(unit);
                scanned < SCAN && may_continue(charge, bytes_read, limit)
            })
            .await?;
        let mut merger = Merger::default();
        taken.into_iter().for_each(|unit| merger.push(unit));
        let bytes = bytes_read + merger.bytes();
        Ok(HistoryPage { items: merger.finish(), from, to, more, bytes })
    }

    /// Returns the start of the page before `to`, and whether the log has more before that. Holds no events in memory.
    /// Cancellation safe.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub async fn position_before(
        &self,
        session: &SessionId,
        to: LogPosition,
        limit: PageLimit,
    ) -> Result<(LogPosition, bool), StoreError> {
        self.walk_back(session, to.min(LogPosition::after(self.head())), limit, |_, _| true).await
    }

    /// Walks back from `to` while units fit the limit and `take` (which gets each unit, and the bytes read so far) returns `true`.
    /// Returns where the walk ended, and whether the log has more before that.
    async fn walk_back(
        &self,
        session: &SessionId,
        to: LogPosition,
        limit: PageLimit,
        mut take: impl FnMut(PageUnit, usize) -> bool,
    ) -> Result<(LogPosition, bool), StoreError> {
        let mut walk = BackwardsCounter::default();
        let (mut from, mut scanned) = (to, 0);
        loop {
            // To read a part of an event, the whole event is read.
            let before = if from.part == 0 { from.position } else { from.position.next() };
            let events = self.read_before(session, before, SLICE).await?;
            if events.is_empty() {
                return Ok((from, false));
            }
            for event in events.iter().rev() {
                scanned += event.weight();
                for unit in limit.units(event).into_iter().rev() {
                    if unit.start() >= from {
                        continue;
                    }
                    if !walk.take(&unit, limit.items, limit.bytes) {
                        return Ok((from, true));
                    }
                    from = unit.start();
                    if !take(unit, scanned) {
                        return Ok((from, true));
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }
}
