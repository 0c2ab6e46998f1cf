//! Blocks: the stored form of one session's events out of one commit, and the grouping that both stores share.
//!
//! ```text
//! version u8 | crc32 of all that follows, u32 LE | length of the index, varint | index | payload
//! index:   count, first position, number of runs, runs (length, text), then per event:
//!          position - previous, run, seq - expected (zigzag), at - previous (zigzag), kind, shape, lengths
//! payload: the events' bytes, in order; `body` is a range of `native` where it was one when written
//! ```
//! Numbers are LEB128 varints. A decoded event's bytes are slices of the block: nothing is copied.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{ReadLimit, StoreError};
use plexus_protocol::{Event, Kind, Origin, Position, RunId, SessionId, Timestamp};

/// The version of the layout above. Another version counts as a damaged block: a newer layout comes with a newer schema, which is refused
/// when the store is opened.
const VERSION: u8 = 1;

/// Weight of events from which on a block is closed, in bytes: it bounds what a reader copies at once, and what a damaged record can
/// cost. A heavier event is a block of its own.
pub(super) const BLOCK_BYTES: usize = 256 * 1024;

/// Maximum position that the store can hold: 40 bits of the key. At a million events a second it lasts twelve days, at a thousand
/// thirty-four years; beyond it commits fail.
pub(super) const POSITION_MAX: u64 = (1 << 40) - 1;

/// Number of bytes before the index: version and checksum.
const HEADER: usize = 5;

/// The error for damaged bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// The events of one session out of one batch that fit one block; never empty.
pub(super) struct Group<'a> {
    /// The session.
    pub(super) session_id: &'a SessionId,
    /// The events, in order.
    pub(super) events: Vec<&'a Arc<Event>>,
}

impl Group<'_> {
    /// Returns the first event's position.
    pub(super) fn first(&self) -> Position {
        self.events.first().map_or(Position::START, |event| event.position)
    }

    /// Returns the last event's position.
    pub(super) fn last(&self) -> Position {
        self.events.last().map_or(Position::START, |event| event.position)
    }

    /// Returns the last event's time.
    pub(super) fn at(&self) -> Timestamp {
        self.events.last().map_or_else(Timestamp::default, |event| event.at)
    }
}

/// Groups a batch's events into blocks.
///
/// # Errors
/// [`StoreError::Io`] unless the positions increase from after `head` and fit the store.
pub(super) fn group(events: &[Arc<Event>], head: Position) -> Result<Vec<Group<'_>>, StoreError> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut open: HashMap<&SessionId, (usize, usize)> = HashMap::new();
    let mut last = head;
    for event in events {
        if event.position <= last || event.position.0 > POSITION_MAX {
            return Err(StoreError::Io(format!("position {} cannot follow {last}", event.position)));
        }
        last = event.position;
        let session_id = &event.origin.session_id;
        let (at, weight) = open.entry(session_id).or_insert((usize::MAX, 0));
        match groups.get_mut(*at) {
            Some(group) if *weight + event.weight() <= BLOCK_BYTES => {
                group.events.push(event);
                *weight += event.weight();
            }
            _ => {
                (*at, *weight) = (groups.len(), event.weight());
                groups.push(Group { session_id, events: vec![event] });
            }
        }
    }
    Ok(groups)
}

/// The unused part of a [`ReadLimit`]. The first event always fits.
pub(super) struct Budget {
    limit: ReadLimit,
    events: usize,
    bytes: usize,
    full: bool,
}

impl Budget {
    /// Makes an unused budget.
    pub(super) fn new(limit: ReadLimit) -> Self {
        Self { limit, events: 0, bytes: 0, full: false }
    }

    /// Returns whether the budget is exhausted: an event did not fit, or none fits. A smaller event after that is refused, too, so that a
    /// page has no gap.
    pub(super) fn spent(&self) -> bool {
        self.full || self.events > 0 && (self.events >= self.limit.events || self.bytes >= self.limit.bytes)
    }

    /// Takes an event's share; returns `false` if it does not fit.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        let bytes = self.bytes.saturating_add(event.weight());
        if self.events > 0 && (self.events >= self.limit.events || bytes > self.limit.bytes) {
            self.full = true;
            return false;
        }
        self.events += 1;
        self.bytes = bytes;
        true
    }
}

/// Writes a block into `out` and replaces its content.
pub(super) fn encode(events: &[&Arc<Event>], out: &mut Vec<u8>) {
    let mut index = Vec::with_capacity(16 + events.len() * 16);
    let mut runs: Vec<(&RunId, u64)> = Vec::new();
    let mut entries = Vec::with_capacity(events.len() * 16);
    let first = events.first().map_or(0, |event| event.position.0);
    let (mut position, mut at, mut payload) = (first, 0i64, 0);
    for event in events {
        // Neighbouring events mostly share their run, so the search starts at the newest.
        let run = runs.iter().rposition(|(id, _)| **id == event.run_id).unwrap_or_else(|| {
            runs.push((&event.run_id, 0));
            runs.len() - 1
        });
        let expected = &mut runs[run].1;
        put_varint(&mut entries, event.position.0.wrapping_sub(position));
        put_varint(&mut entries, run as u64);
        put_varint(&mut entries, zigzag(event.seq.wrapping_sub(*expected).cast_signed()));
        put_varint(&mut entries, zigzag(event.at.as_millis().wrapping_sub(at)));
        *expected = event.seq.wrapping_add(1);
        position = event.position.0;
        at = event.at.as_millis();
        entries.push(event.kind.code());
        payload += match (&event.native, event.body_in_native()) {
            (Some(native), Some(range)) => {
                entries.push(Shape::Within as u8);
                put_varint(&mut entries, native.len() as u64);
                put_varint(&mut entries, range.start as u64);
                put_varint(&mut entries, range.len() as u64);
                native.len()
            }
            (Some(native), None) => {
                entries.push(Shape::Beside as u8);
                put_varint(&mut entries, native.len() as u64);
                put_varint(&mut entries, event.body.len() as u64);
                native.len() + event.body.len()
            }
            (None, _) => {
                entries.push(Shape::Alone as u8);
                put_varint(&mut entries, event.body.len() as u64);
                event.body.len()
            }
        };
    }
    put_varint(&mut index, events.len() as u64);
    put_varint(&mut index, first);
    put_varint(&mut index, runs.len() as u64);
    for (run, _) in &runs {
        put_varint(&mut index, run.as_str().len() as u64);
        index.extend_from_slice(run.as_str().as_bytes());
    }
    index.extend_from_slice(&entries);

    out.clear();
    out.reserve(HEADER + 10 + index.len() + payload);
    out.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    put_varint(out, index.len() as u64);
    out.extend_from_slice(&index);
    for event in events {
        let within = event.body_in_native().is_some();
        if let Some(native) = &event.native {
            out.extend_from_slice(native);
        }
        if !within {
            out.extend_from_slice(&event.body);
        }
    }
    seal(out);
}

/// Writes a block's checksum into its header.
fn seal(block: &mut [u8]) {
    let sum = crc32fast::hash(&block[HEADER..]);
    block[1..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// Appends a block's events after `after` up to `through`, as many as fit `budget`.
///
/// # Errors
/// [`Damaged`] if the checksum or the layout is wrong, or the block does not begin at `first`; then nothing was appended.
pub(super) fn decode(
    block: &Bytes,
    origin: &Arc<Origin>,
    first: Position,
    (after, through): (Position, Position),
    budget: &mut Budget,
    out: &mut Vec<Event>,
) -> Result<(), Damaged> {
    let before = out.len();
    read_block(block, origin, first, (after, through), budget, out).ok_or(Damaged).inspect_err(|_| out.truncate(before))
}

/// Reads a block like [`decode`], but returns `None` for damage. The checksum is verified first; even then every number in the block is
/// bounds-checked.
fn read_block(
    block: &Bytes,
    origin: &Arc<Origin>,
    first: Position,
    (after, through): (Position, Position),
    budget: &mut Budget,
    out: &mut Vec<Event>,
) -> Option<()> {
    let (head, rest) = block.split_at_checked(HEADER)?;
    let sum = u32::from_le_bytes(head.get(1..HEADER)?.try_into().ok()?);
    if head[0] != VERSION || crc32fast::hash(rest) != sum {
        return None;
    }
    let mut input = Input(rest);
    let length = input.length()?;
    let mut index = Input(input.bytes(length)?);
    let mut payload = block.len() - input.0.len();

    let count = index.length()?;
    let mut position = index.number()?;
    if position != first.0 {
        return None;
    }
    let mut runs = Vec::new();
    for _ in 0..index.length()? {
        let length = index.length()?;
        let text = std::str::from_utf8(index.bytes(length)?).ok()?;
        runs.push((RunId::trusted(text), 0u64));
    }
    let mut at = 0i64;
    for nth in 0..count {
        let step = index.number()?;
        if (step == 0) != (nth == 0) {
            return None;
        }
        position = position.checked_add(step).filter(|&p| p <= POSITION_MAX)?;
        let (run_id, expected) = runs.get_mut(index.length()?)?;
        let seq = expected.wrapping_add(unzigzag(index.number()?).cast_unsigned());
        *expected = seq.wrapping_add(1);
        at = at.wrapping_add(unzigzag(index.number()?));
        let kind = Kind::from_code(index.byte()?)?;
        let mut slice = |length: usize| -> Option<Bytes> {
            let end = payload.checked_add(length).filter(|&end| end <= block.len())?;
            Some(block.slice(std::mem::replace(&mut payload, end)..end))
        };
        let (native, body) = match index.byte()? {
            shape if shape == Shape::Alone as u8 => (None, slice(index.length()?)?),
            shape if shape == Shape::Beside as u8 => {
                let native = slice(index.length()?)?;
                (Some(native), slice(index.length()?)?)
            }
            shape if shape == Shape::Within as u8 => {
                let native = slice(index.length()?)?;
                let start = index.length()?;
                let end = start.checked_add(index.length()?).filter(|&end| end <= native.len())?;
                let body = native.slice(start..end);
                (Some(native), body)
            }
            _ => return None,
        };
        let position = Position(position);
        if position > through {
            return Some(());
        }
        if position > after {
            let event = Event {
                position,
                origin: Arc::clone(origin),
                run_id: run_id.clone(),
                seq,
                at: Timestamp::from_millis(at),
                kind,
                body,
                native,
            };
            if !budget.take(&event) {
                return Some(());
            }
            out.push(event);
        }
    }
    (index.0.is_empty() && payload == block.len()).then_some(())
}

/// The place of an event's bytes in the payload.
#[derive(Clone, Copy)]
enum Shape {
    /// The body alone.
    Alone = 0,
    /// The native bytes, then the body.
    Beside = 1,
    /// The native bytes; the body is a range of them.
    Within = 2,
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small numbers of either sign to small unsigned numbers.
const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// The unread rest of a block.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use plexus_protocol::RuntimeId;

    const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };

    fn origin() -> Arc<Origin> {
        Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        })
    }

    prop_compose! {
        fn any_event()(
            step in 1..1000u64,
            run in 0..4u8,
            seq in any::<u64>(),
            at in any::<i64>(),
            kind in 0..Kind::ALL.len(),
            native in proptest::option::of(vec(any::<u8>(), 0..80)),
            own in vec(any::<u8>(), 0..80),
            range in proptest::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        ) -> Event {
            let native = native.map(Bytes::from);
            let body = match (&native, range) {
                (Some(native), Some((a, b))) if !native.is_empty() => {
                    let (a, b) = (a.index(native.len()), b.index(native.len()));
                    native.slice(a.min(b)..a.max(b))
                }
                _ => Bytes::from(own),
            };
            Event {
                position: Position(step),
                origin: origin(),
                run_id: RunId::trusted(format!("r_{run}")),
                seq,
                at: Timestamp::from_millis(at),
                kind: Kind::ALL[kind],
                body,
                native,
            }
        }
    }

    fn any_events() -> impl Strategy<Value = Vec<Arc<Event>>> {
        vec(any_event(), 1..20).prop_map(|mut events| {
            let mut position = 0;
            for event in &mut events {
                position += event.position.0;
                event.position = Position(position);
            }
            events.into_iter().map(Arc::new).collect()
        })
    }

    fn encoded(events: &[Arc<Event>]) -> Vec<u8> {
        let mut block = Vec::new();
        encode(&events.iter().collect::<Vec<_>>(), &mut block);
        block
    }

    fn decoded(block: &Bytes, first: Position, after: Position, limit: ReadLimit) -> Result<Vec<Event>, Damaged> {
        let mut out = Vec::new();
        decode(block, &origin(), first, (after, Position(POSITION_MAX)), &mut Budget::new(limit), &mut out)?;
        Ok(out)
    }

    proptest! {
        #[test]
        fn block_round_trips(events in any_events()) {
            let block = Bytes::from(encoded(&events));
            let back = decoded(&block, events[0].position, Position::START, ALL).unwrap();
            prop_assert_eq!(back.len(), events.len());
            for (back, event) in back.iter().zip(&events) {
                prop_assert_eq!(back, &**event);
                prop_assert_eq!(back.weight(), event.weight());
                if !event.body.is_empty() {
                    prop_assert_eq!(back.body_in_native(), event.body_in_native());
                    prop_assert!(block.as_ptr_range().contains(&back.body.as_ptr()), "copied");
                }
            }
            let middle = events[events.len() / 2].position;
            let rest = decoded(&block, events[0].position, middle, ALL).unwrap();
            prop_assert_eq!(rest.len(), events.len() - events.len() / 2 - 1);
            let one = decoded(&block, events[0].position, Position::START, ReadLimit { events: 0, bytes: 0 }).unwrap();
            prop_assert_eq!(one.len(), 1);
        }

        #[test]
        fn block_checksum_detects_any_flipped_or_missing_bit(events in any_events(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let first = events[0].position;
            let block = encoded(&events);
            let mut flipped = block.clone();
            let place = at.index(block.len());
            flipped[place] ^= 1 << bit;
            prop_assert_eq!(decoded(&flipped.into(), first, Position::START, ALL), Err(Damaged));
            let cut = Bytes::from(block).slice(..place);
            prop_assert_eq!(decoded(&cut, first, Position::START, ALL), Err(Damaged));
        }

        // A valid checksum does not make the content valid: decoding sealed junk must not panic.
        #[test]
        fn block_decoder_survives_sealed_junk(
            events in any_events(),
            flips in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            junk in vec(any::<u8>(), HEADER..200),
        ) {
            let first = events[0].position;
            let mut block = encoded(&events);
            for (at, byte) in flips {
                let place = at.index(block.len());
                block[place] = byte;
            }
            block[0] = VERSION;
            seal(&mut block);
            if let Ok(back) = decoded(&block.into(), first, Position::START, ALL) {
                prop_assert!(back.is_sorted_by(|a, b| a.position < b.position));
            }
            let mut junk = junk;
            junk[0] = VERSION;
            seal(&mut junk);
            let _ = decoded(&junk.into(), first, Position::START, ALL);
        }

        #[test]
        fn block_numbers_round_trip(number in any::<u64>(), signed in any::<i64>()) {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            let mut input = Input(&out);
            prop_assert_eq!(input.number(), Some(number));
            prop_assert!(input.0.is_empty());
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }

    #[test]
    fn block_under_another_key_is_damaged() {
        let events = vec![Arc::new(Event {
            position: Position(7),
            origin: origin(),
            run_id: RunId::trusted("r_0"),
            seq: 0,
            at: Timestamp::from_millis(0),
            kind: Kind::Raw,
            body: Bytes::from_static(b"{}"),
            native: None,
        })];
        let block = Bytes::from(encoded(&events));
        assert_eq!(decoded(&block, Position(7), Position::START, ALL).unwrap().len(), 1);
        assert_eq!(decoded(&block, Position(8), Position::START, ALL), Err(Damaged));
    }
}
