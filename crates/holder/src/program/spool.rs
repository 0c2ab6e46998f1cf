//! The data that a holder retains for gateways: unacknowledged output, saved state, the end of stderr.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use crate::wire::{self, BLOBS_MAX, RECORD_MAX, STATE_MAX, STDERR_KEPT};
use bytes::Bytes;

/// Accounted cost of a record beside its bytes, in bytes: bounds the memory of a runtime that writes byte by byte.
const RECORD_COST: usize = 64;

/// Minimum size of a read that retains its buffer, in bytes; a smaller one is copied, so that it does not hold a large buffer.
const KEEP_BUFFER_MIN: usize = RECORD_MAX / 2;

/// The output from the first unacknowledged byte to the last one read.
pub(super) struct Spool {
    records: VecDeque<Record>,
    /// The offset of the first byte that is still needed.
    acked: u64,
    /// The offset of the next byte.
    end: u64,
    /// The maximum size, in bytes.
    max: usize,
    /// `true` if the spool was full, and a quarter of it is not free yet: see [`Self::full`].
    full: bool,
    /// The buffer of the next read.
    buffer: Vec<u8>,
}

struct Record {
    start: u64,
    bytes: Vec<u8>,
    /// The checksum of offset and bytes, computed when they were read.
    crc: u32,
}

/// A record of output to send.
pub(super) struct SpoolPiece<'a> {
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    pub(super) crc: u32,
}

impl Spool {
    pub(super) fn new(max: usize) -> Self {
        Self { records: VecDeque::new(), acked: 0, end: 0, max, full: false, buffer: Vec::new() }
    }

    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    fn used_bytes(&self) -> usize {
        // The held bytes fit in memory.
        (self.end - self.acked) as usize + self.records.len() * RECORD_COST
    }

    /// Returns whether reading has to stop. Once full, the spool stays full until a quarter of it is free, so that a waiting runtime is
    /// not woken for every line.
    pub(super) fn full(&mut self) -> bool {
        let limit = if self.full { self.max - self.max / 4 } else { self.max };
        self.full = self.used_bytes() >= limit;
        self.full
    }

    /// Returns the number of free bytes.
    pub(super) fn free_bytes(&self) -> usize {
        self.max.saturating_sub(self.used_bytes())
    }

    /// Reads once, at most `limit` bytes and at most one record. The bytes are appended to the newest record if that starts at `sent` or
    /// later, since it was not sent yet.
    pub(super) fn read(&mut self, from: impl AsFd, limit: usize, sent: u64) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; RECORD_MAX];
        }
        let limit = limit.clamp(1, RECORD_MAX);
        let read = rustix::io::read(&from, &mut self.buffer[..limit])?;
        if read > 0 {
            self.append(read, sent);
        }
        Ok(read)
    }

    fn append(&mut self, len: usize, sent: u64) {
        let start = self.end;
        self.end += len as u64;
        if let Some(last) = self.records.back_mut()
            && last.start >= sent
            && last.bytes.len() + len <= RECORD_MAX
        {
            let new = &self.buffer[..len];
            last.crc = wire::out_crc_more(last.crc, new);
            last.bytes.extend_from_slice(new);
            return;
        }
        let bytes = if len >= KEEP_BUFFER_MIN {
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.truncate(len);
            bytes
        } else {
            self.buffer[..len].to_vec()
        };
        let crc = wire::out_crc_more(wire::out_crc(start), &bytes);
        self.records.push_back(Record { start, bytes, crc });
    }

    /// Drops the output before `offset`. Returns `false` if that output was never read.
    pub(super) fn ack(&mut self, offset: u64) -> bool {
        if offset > self.end {
            return false;
        }
        self.acked = self.acked.max(offset);
        while self.records.front().is_some_and(|first| first.start + first.bytes.len() as u64 <= self.acked) {
            self.records.pop_front();
        }
        true
    }

    /// Returns the output from `offset` on, in records.
    pub(super) fn from(&self, offset: u64) -> impl Iterator<Item = SpoolPiece<'_>> {
        let first = self.records.partition_point(|record| record.start + record.bytes.len() as u64 <= offset);
        self.records.range(first..).map(move |record| {
            if record.start >= offset {
                return SpoolPiece { offset: record.start, bytes: &record.bytes, crc: record.crc };
            }
            // Only a gateway that was lost in the middle of a record requests a part of one.
            let bytes = &record.bytes[(offset - record.start) as usize..];
            SpoolPiece { offset, bytes, crc: wire::out_crc_more(wire::out_crc(offset), bytes) }
        })
    }
}

/// State that gateways save for the next one: whole states, and steps, each of which adds to the previous state.
#[derive(Default)]
pub(super) struct SavedStates {
    blobs: VecDeque<SavedState>,
    bytes: usize,
}

struct SavedState {
    offset: u64,
    step: bool,
    bytes: Bytes,
}

impl SavedStates {
    /// Stores a whole state. Returns `false` if there is too much already; then it is not stored.
    pub(super) fn put(&mut self, offset: u64, state: &[u8], acked: u64) -> bool {
        if self.blobs.len() >= BLOBS_MAX || self.bytes + state.len() > STATE_MAX {
            return false;
        }
        self.push(offset, false, state);
        self.prune(acked);
        true
    }

    /// Stores a step. Returns `false` if there is too much already, or no state to add to; then it is not stored.
    pub(super) fn add(&mut self, offset: u64, entry: &[u8]) -> bool {
        let fits = self.blobs.len() < BLOBS_MAX && self.bytes + entry.len() <= STATE_MAX;
        if fits && !self.blobs.is_empty() {
            self.push(offset, true, entry);
        }
        fits && !self.blobs.is_empty()
    }

    fn push(&mut self, offset: u64, step: bool, bytes: &[u8]) {
        self.bytes += bytes.len();
        // Copied, so that it does not hold the whole read buffer.
        self.blobs.push_back(SavedState { offset, step, bytes: Bytes::copy_from_slice(bytes) });
    }

    /// Drops everything older than the newest whole state that covers no more output than `acked`.
    pub(super) fn prune(&mut self, acked: u64) {
        let newest = self.blobs.iter().rposition(|blob| !blob.step && blob.offset <= acked);
        for blob in self.blobs.drain(..newest.unwrap_or(0)) {
            self.bytes -= blob.bytes.len();
        }
    }

    /// Returns whether there are steps, which version 1 does not know.
    pub(super) fn has_steps(&self) -> bool {
        self.blobs.iter().any(|blob| blob.step)
    }

    /// Returns all blobs, oldest first.
    pub(super) fn all(&self) -> Vec<(u64, Bytes)> {
        self.blobs.iter().map(|blob| (blob.offset, blob.bytes.clone())).collect()
    }
}

/// The end of stderr.
#[derive(Default)]
pub(super) struct StderrTail {
    text: VecDeque<u8>,
    /// The offset of the end of the text.
    end: u64,
}

impl StderrTail {
    pub(super) fn add(&mut self, text: &[u8]) {
        self.end += text.len() as u64;
        self.text.extend(text);
        let old = self.text.len().saturating_sub(STDERR_KEPT);
        self.text.drain(..old);
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the retained text from `offset` on.
    pub(super) fn from(&self, offset: u64) -> Bytes {
        let new = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX).min(self.text.len());
        self.text.range(self.text.len() - new..).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn fed(spool: &mut Spool, bytes: &[u8], sent: u64) {
        let (read, mut write) = std::io::pipe().unwrap();
        write.write_all(bytes).unwrap();
        assert_eq!(spool.read(&read, usize::MAX, sent).unwrap(), bytes.len());
    }

    fn pieces(spool: &Spool, offset: u64) -> Vec<(u64, String)> {
        let pieces = spool.from(offset).map(|piece| {
            let crc = wire::out_crc_more(wire::out_crc(piece.offset), piece.bytes);
            assert_eq!(piece.crc, crc, "at {}", piece.offset);
            (piece.offset, String::from_utf8(piece.bytes.to_vec()).unwrap())
        });
        pieces.collect()
    }

    fn at(offset: u64, text: &str) -> (u64, String) {
        (offset, text.to_owned())
    }

    #[test]
    fn spool_joins_unread_records_only() {
        let mut spool = Spool::new(1000);
        fed(&mut spool, b"ab", 0);
        fed(&mut spool, b"cd", 0);
        assert_eq!(pieces(&spool, 0), [at(0, "abcd")]);
        fed(&mut spool, b"ef", 4);
        assert_eq!(pieces(&spool, 0), [at(0, "abcd"), at(4, "ef")]);
        // From within a record, from between two, from the end.
        assert_eq!(pieces(&spool, 1), [at(1, "bcd"), at(4, "ef")]);
        assert_eq!(pieces(&spool, 4), [at(4, "ef")]);
        assert_eq!(pieces(&spool, 6), []);
    }

    #[test]
    fn spool_keeps_large_reads_and_bounds_records() {
        let mut spool = Spool::new(1 << 20);
        let big = vec![b'x'; KEEP_BUFFER_MIN];
        for _ in 0..3 {
            fed(&mut spool, &big, 0);
        }
        fed(&mut spool, b"y", 0);
        let lens: Vec<usize> = pieces(&spool, 0).iter().map(|(_, text)| text.len()).collect();
        assert_eq!(lens, [RECORD_MAX, KEEP_BUFFER_MIN + 1]);
    }

    #[test]
    fn spool_drops_acknowledged_output_and_refuses_other_acks() {
        let mut spool = Spool::new(1000);
        fed(&mut spool, b"abcd", 0);
        fed(&mut spool, b"ef", 4);
        assert!(spool.ack(3));
        assert_eq!((spool.acked(), pieces(&spool, 3)), (3, vec![at(3, "d"), at(4, "ef")]));
        assert!(spool.ack(1), "late, and harmless");
        assert_eq!(spool.acked(), 3);
        assert!(spool.ack(6));
        assert_eq!((spool.records.len(), spool.used_bytes()), (0, 0));
        assert!(!spool.ack(7));
    }

    #[test]
    fn spool_is_full_until_a_quarter_is_free() {
        let mut spool = Spool::new(1000);
        fed(&mut spool, &[b'x'; 1000 - RECORD_COST], 0);
        assert_eq!((spool.full(), spool.free_bytes()), (true, 0));
        assert!(spool.ack(200));
        assert!(spool.full());
        assert!(spool.ack(251));
        assert!(!spool.full());
    }

    #[test]
    fn spool_keeps_state_until_newer_state_is_acknowledged() {
        let mut deposits = SavedStates::default();
        let offsets = |deposits: &SavedStates| deposits.all().iter().map(|(offset, _)| *offset).collect::<Vec<_>>();
        for offset in [0, 10, 10, 20, 30] {
            assert!(deposits.put(offset, b"12", 0));
        }
        deposits.prune(9);
        assert_eq!(offsets(&deposits), [0, 10, 10, 20, 30]);
        deposits.prune(10);
        assert_eq!(offsets(&deposits), [10, 20, 30]);
        deposits.prune(29);
        assert_eq!(offsets(&deposits), [20, 30]);
        assert!(deposits.put(29, b"12", 29));
        assert_eq!((offsets(&deposits), deposits.bytes), (vec![29], 2));
    }

    #[test]
    fn spool_keeps_steps_as_long_as_their_state() {
        let mut deposits = SavedStates::default();
        let all = |deposits: &SavedStates| {
            deposits.all().iter().map(|(offset, bytes)| (*offset, bytes.len())).collect::<Vec<_>>()
        };
        assert!(!deposits.add(0, b"1"), "nothing that it could add to");
        assert!(deposits.put(10, b"state", 10));
        assert!(deposits.add(10, b"1") && deposits.add(12, b"12"));
        assert!(deposits.has_steps());
        // Whatever is acknowledged: steps without their state are useless.
        deposits.prune(12);
        assert_eq!(all(&deposits), [(10, 5), (10, 1), (12, 2)]);
        assert!(deposits.put(12, b"state2", 12));
        assert!(deposits.add(12, b"123"));
        assert_eq!((all(&deposits), deposits.bytes), (vec![(12, 6), (12, 3)], 9));
    }

    #[test]
    fn spool_refuses_too_much_state_and_drops_nothing() {
        let mut deposits = SavedStates::default();
        let half = vec![0; STATE_MAX / 2];
        assert!(deposits.put(1, &half, 0) && deposits.put(2, &half, 0));
        assert!(!deposits.put(3, b"1", 0));
        assert_eq!(deposits.all().len(), 2);
        let mut deposits = SavedStates::default();
        assert!((0..BLOBS_MAX).all(|_| deposits.put(1, b"", 0)));
        assert!(!deposits.put(1, b"", 0));
    }

    #[test]
    fn spool_keeps_the_end_of_stderr() {
        let mut tail = StderrTail::default();
        tail.add(b"first ");
        assert_eq!(tail.from(2), "rst ");
        tail.add(&[b'x'; STDERR_KEPT]);
        assert_eq!((tail.end(), tail.from(0).len()), (STDERR_KEPT as u64 + 6, STDERR_KEPT));
        tail.add(b"last");
        assert_eq!((tail.from(tail.end() - 4), tail.from(tail.end())), (Bytes::from("last"), Bytes::new()));
    }
}
