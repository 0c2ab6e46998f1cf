//! Reading many sessions in the order of the log: by the index of the blocks' positions, each block once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use rusqlite::params;

use super::block::{self, Budget};
use super::{
    EventsAcross, Known, Origin, POSITION_BITS, POSITION_MAX, Position, ReadLimit, SqliteStore, Store, StoreError,
    as_sql, position,
};
use crate::DamagedBlock;
use plexus_protocol::Event;

/// Blocks that are looked at for one page, most of them passed over; then the page ends, with events or without.
const LOOKS_MAX: usize = 1 << 16;

impl SqliteStore {
    pub(super) fn across(
        &self,
        wanted: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError> {
        // The head first: of what is committed meanwhile nothing is shown, for its commit may not have returned.
        let head = self.head();
        if after >= head {
            return Ok(EventsAcross { next: after, ..EventsAcross::default() });
        }
        let lookback = self.lookback.load(Ordering::Acquire);
        // Sessions that are passed over cost one look in this map for each block.
        let mut origins: HashMap<i64, Option<(Arc<Origin>, Position)>> = HashMap::new();
        let mut of = |no: i64| {
            let known = || {
                let index = self.index();
                let known = index.of(no).filter(|known| wanted(&known.origin));
                known.map(|Known { origin, trimmed, .. }| (Arc::clone(origin), *trimmed))
            };
            origins.entry(no).or_insert_with(known).clone()
        };
        let mut across = EventsAcross::default();
        // Everything up to here is in `across`.
        let mut whole = head;
        self.reading(|connection| {
            let mut keys = connection.prepare_cached(
                "SELECT key FROM events WHERE key & 1099511627775 >= ifnull(
                     (SELECT key & 1099511627775 FROM events WHERE key & 1099511627775 <= ?1
                      ORDER BY key & 1099511627775 DESC LIMIT 1), 0)
                 ORDER BY key & 1099511627775",
            )?;
            let mut row_of = connection.prepare_cached("SELECT last, block FROM events WHERE key = ?1")?;
            let begin = Position((after.0 + 1).saturating_sub(lookback));
            let mut keys = keys.query(params![as_sql(begin)])?;
            let (mut looks, mut bytes) = (0, 0);
            while let Some(row) = keys.next()? {
                let key: i64 = row.get(0)?;
                let first = position(key & as_sql(Position(POSITION_MAX)));
                if first > whole {
                    break;
                }
                looks += 1;
                let before = Position(first.0.saturating_sub(1));
                let full = across.events.len() >= limit.events || bytes >= limit.bytes;
                if before > after && (looks > LOOKS_MAX || (full && enough(&across.events, before, limit))) {
                    whole = before;
                    break;
                }
                let Some((origin, trimmed)) = of(key >> POSITION_BITS) else { continue };
                let Some((last, block)) = row_of
                    .query_map([key], |row| {
                        let last = position(row.get(0)?);
                        let beyond = last <= after.max(trimmed);
                        let block: &[u8] = if beyond { &[] } else { row.get_ref(1)?.as_blob().unwrap_or_default() };
                        Ok((last, Bytes::copy_from_slice(block)))
                    })?
                    .next()
                    .transpose()?
                else {
                    // Removed since.
                    continue;
                };
                if last <= after.max(trimmed) {
                    continue;
                }
                self.blocks_read.fetch_add(1, Ordering::Relaxed);
                let (so_far, mut budget) = (across.events.len(), Budget::new(limit));
                let wanted = (after.max(trimmed), head);
                if block::decode(&block, &origin, first, wanted, &mut budget, &mut across.events).is_err() {
                    let position = first.max(after.next());
                    across.damaged.push(DamagedBlock { origin, position, last: last.min(head) });
                    continue;
                }
                let new = across.events.get(so_far..).unwrap_or_default();
                bytes += new.iter().map(Event::weight).sum::<usize>();
                if let Some(end) = new.last().filter(|end| end.position < last) {
                    // The rest of it did not fit, and what comes after that is not for this page.
                    whole = whole.min(end.position);
                }
            }
            Ok(())
        })?;
        finish(&mut across, whole, after, limit);
        Ok(across)
    }
}

/// Whether a page is full of what lies before a block that is not read yet.
fn enough(events: &[Event], before: Position, limit: ReadLimit) -> bool {
    let sure = events.iter().filter(|event| event.position <= before);
    let (count, bytes) = sure.fold((0, 0), |(count, bytes), event| (count + 1, bytes + event.weight()));
    count >= limit.events || bytes >= limit.bytes
}

/// Puts a page in order, and cuts it where it is not whole or too long.
fn finish(across: &mut EventsAcross, whole: Position, after: Position, limit: ReadLimit) {
    across.events.retain(|event| event.position <= whole);
    across.events.sort_by_key(|event| event.position);
    across.next = whole;
    let mut budget = Budget::new(limit);
    let fits = across.events.iter().take_while(|event| budget.take(event)).count();
    if fits < across.events.len() {
        across.events.truncate(fits);
        across.next = across.events.last().map_or(after, |event| event.position);
    }
    across.damaged.retain(|damaged| damaged.position <= across.next);
    if let Some(end) = across.damaged.iter().map(|damaged| damaged.last).max() {
        // Told once: read on after it.
        across.next = across.next.max(end);
    }
}
