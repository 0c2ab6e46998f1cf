//! The newest frames of a fan, in the form that is written to every subscriber that is up to date.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::super::frames::{Encoder, Projection};
use plexus_protocol::{Event, Position};

/// Approximate number of bytes that an envelope adds to a body: the initial capacity of a batch's buffer, per event.
pub(super) const ENVELOPE: usize = 384;

/// Consecutive events as finished frames.
pub(super) struct Batch {
    /// The position before the first event.
    pub(super) after: Position,
    /// The position of the end: all events up to it that the filter accepts are in the batch.
    pub(super) last: Position,
    pub(super) bytes: Bytes,
    /// The end of each event's frames.
    pub(super) ends: Box<[(Position, u32)]>,
}

impl Batch {
    pub(super) fn encode(encoder: &Encoder, events: &[Arc<Event>], after: Position, last: Position) -> Self {
        let native = encoder.projection == Projection::Native;
        let native_len = |event: &Event| event.native.as_ref().filter(|_| native).map_or(0, Bytes::len);
        let weight: usize = events.iter().map(|event| event.body.len() + native_len(event) + ENVELOPE).sum();
        let (mut bytes, mut ends) = (Vec::with_capacity(weight), Vec::with_capacity(events.len()));
        encoder.events(&mut bytes, events, |position, end| {
            ends.push((position, u32::try_from(end).unwrap_or(u32::MAX)));
        });
        Self { after, last, bytes: bytes.into(), ends: ends.into() }
    }

    /// Returns the range of the frames after `after`, up to `upto`, in the bytes.
    pub(super) fn cut(&self, after: Position, upto: Position) -> std::ops::Range<usize> {
        let end_of = |position: Position| match self.ends.partition_point(|(at, _)| *at <= position) {
            0 => 0,
            n => self.ends[n - 1].1 as usize,
        };
        let from = if after <= self.after { 0 } else { end_of(after) };
        let to = if upto >= self.last { self.bytes.len() } else { end_of(upto) };
        from..to.max(from)
    }
}

/// The newest frames of a fan.
pub(super) struct Tail {
    /// The position from which a reader can follow the tail.
    pub(super) start: Position,
    /// The position up to which the pump has read.
    pub(super) end: Position,
    pub(super) bytes: usize,
    pub(super) batches: VecDeque<Batch>,
}

impl Tail {
    pub(super) fn shrink_to(&mut self, bound: usize) {
        while self.bytes > bound && self.batches.len() > 1 {
            if let Some(old) = self.batches.pop_front() {
                self.bytes -= old.bytes.len();
                self.start = old.last;
            }
        }
        if self.batches.capacity() > 64 && self.batches.len() * 4 < self.batches.capacity() {
            self.batches.shrink_to_fit();
        }
    }
}

/// The addition to the tail by one gather, for the connections that have everything before it.
pub(super) struct Fresh {
    /// The end of the previous batch; there are no frames between it and `after`.
    pub(super) since: Position,
    /// The position after which the addition begins.
    pub(super) after: Position,
    /// The position of the end.
    pub(super) last: Position,
    /// The batches: the end of each, and its bytes.
    pub(super) frames: Vec<(Position, Bytes)>,
    pub(super) bytes: usize,
}

/// Returns the batches of a span (after, up to, first batch), each with the part of it that belongs to the span, without empty parts.
pub(super) fn spanned(
    tail: &Tail,
    (after, upto, from): (Position, Position, usize),
) -> impl Iterator<Item = (&Batch, std::ops::Range<usize>)> {
    tail.batches
        .range(from..)
        .take_while(move |batch| batch.after < upto)
        .map(move |batch| (batch, batch.cut(after, upto)))
        .filter(|(_, range)| !range.is_empty())
}
