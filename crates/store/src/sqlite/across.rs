//! Reads of many sessions in log order: by the index of the blocks' positions, each block once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::params;

use super::block::{self, Budget};
use super::{
    EventsAcross, KnownSession, Origin, POSITION_BITS, POSITION_MAX, Position, ReadLimit, SHORT_BLOCK, SqliteStore,
    Store, StoreError, as_sql, position,
};
use crate::DamagedBlock;
use plexus_protocol::Event;

/// Maximum number of blocks checked for one page, most of them skipped; then the page ends, even without events.
const CHECKED_MAX: usize = 1 << 16;

impl SqliteStore {
    pub(super) fn across(
        &self,
        matches: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError> {
        // Read first: events that are committed during the read are not returned, since their commit may not have finished.
        let head = self.head();
        if after >= head {
            return Ok(EventsAcross { next: after, ..EventsAcross::default() });
        }
        let lookback = self.lookback.load(Ordering::Acquire);
        // A skipped session costs one lookup in this map for each block.
        let mut origins: HashMap<i64, Option<(Arc<Origin>, Position)>> = HashMap::new();
        let mut origin_after = |no: i64| {
            let known = || {
                let index = self.index();
                let known = index.session(no).filter(|known| matches(&known.origin));
                known.map(|KnownSession { origin, trimmed, .. }| (Arc::clone(origin), *trimmed))
            };
            origins.entry(no).or_insert_with(known).clone()
        };
        let mut across = EventsAcross::default();
        // Every event up to here is in `across`.
        let mut complete_to = head;
        self.reading(|connection| {
            let mut keys = connection.prepare_cached(
                "SELECT key FROM events WHERE key & 1099511627775 >= ifnull(
                     (SELECT key & 1099511627775 FROM events WHERE key & 1099511627775 <= ?1
                      ORDER BY key & 1099511627775 DESC LIMIT 1), 0)
                 ORDER BY key & 1099511627775",
            )?;
            let mut select_block = connection.prepare_cached(
                "SELECT last, CASE WHEN length(block) <= ?2 AND last > ?3 THEN block END FROM events WHERE key = ?1",
            )?;
            let begin = Position((after.0 + 1).saturating_sub(lookback));
            let mut keys = keys.query(params![as_sql(begin)])?;
            let (mut checked, mut bytes) = (0, 0);
            while let Some(row) = keys.next()? {
                let key: i64 = row.get(0)?;
                let first = position(key & as_sql(Position(POSITION_MAX)));
                if first > complete_to {
                    break;
                }
                checked += 1;
                let before = Position(first.0.saturating_sub(1));
                let full = across.events.len() >= limit.events || bytes >= limit.bytes;
                if before > after && (checked > CHECKED_MAX || (full && is_full(&across.events, before, limit))) {
                    complete_to = before;
                    break;
                }
                let Some((origin, trimmed)) = origin_after(key >> POSITION_BITS) else { continue };
                let range = (after.max(trimmed), head);
                let mut rows = select_block.query(params![key, SHORT_BLOCK, as_sql(range.0)])?;
                // Without a row, the block was removed meanwhile.
                let Some(row) = rows.next()? else { continue };
                let last = position(row.get(0)?);
                if last <= range.0 {
                    continue;
                }
                let block = self.blocks.get(connection, key, row.get_ref(1)?)?;
                self.blocks_read.fetch_add(1, Ordering::Relaxed);
                let (read_before, mut budget) = (across.events.len(), Budget::new(limit));
                if block::decode(&block, &origin, first, range, &mut budget, &mut across.events).is_err() {
                    let position = first.max(after.next());
                    across.damaged.push(DamagedBlock { origin, position, last: last.min(head) });
                    continue;
                }
                let new = across.events.get(read_before..).unwrap_or_default();
                bytes += new.iter().map(Event::weight).sum::<usize>();
                if let Some(end) = new.last().filter(|end| end.position < last) {
                    // The rest of the block did not fit, and later events are not part of this page.
                    complete_to = complete_to.min(end.position);
                }
            }
            Ok(())
        })?;
        finish_page(&mut across, complete_to, after, limit);
        Ok(across)
    }
}

/// Returns whether the page is full with events before a block that is not read yet.
fn is_full(events: &[Event], before: Position, limit: ReadLimit) -> bool {
    let before_block = events.iter().filter(|event| event.position <= before);
    let (count, bytes) = before_block.fold((0, 0), |(count, bytes), event| (count + 1, bytes + event.weight()));
    count >= limit.events || bytes >= limit.bytes
}

/// Sorts a page, and cuts it where it is incomplete or too long.
fn finish_page(across: &mut EventsAcross, complete_to: Position, after: Position, limit: ReadLimit) {
    across.events.retain(|event| event.position <= complete_to);
    across.events.sort_by_key(|event| event.position);
    across.next = complete_to;
    let mut budget = Budget::new(limit);
    let count = across.events.iter().take_while(|event| budget.take(event)).count();
    if count < across.events.len() {
        across.events.truncate(count);
        across.next = across.events.last().map_or(after, |event| event.position);
    }
    across.damaged.retain(|damaged| damaged.position <= across.next);
    if let Some(end) = across.damaged.iter().map(|damaged| damaged.last).max() {
        // Damage is reported once: continue after it.
        across.next = across.next.max(end);
    }
}
