//! Bytes into lines, without copying them: every line is a slice of the buffer it was read into.

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes asked for at a time.
const READ: usize = 64 << 10;
/// Bytes of a line over the limit that are kept.
const KEPT: usize = 1 << 20;

/// A line, or what is left of one that was too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, without its end.
    Whole(Bytes),
    /// The beginning of a line over the limit, and how long it was.
    Cut(Bytes, u64),
    /// What came after the last line's end when the stream ended.
    Unfinished(Bytes),
}

/// Reads lines of at most `max` bytes. Memory: the longest line allowed, and one read.
pub(super) struct Lines<R> {
    from: R,
    max: usize,
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no line end.
    scanned: usize,
    /// A line over the limit: what is kept of it, and its bytes so far.
    long: Option<(Bytes, u64)>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, max: usize) -> Self {
        Self { from, max, buffer: BytesMut::new(), scanned: 0, long: None, ended: false }
    }

    /// Reads once and returns the lines that this completed (maybe none); `None` at the end. Cancellation safe: what was
    /// read stays for the next call.
    pub(super) async fn next(&mut self) -> Option<Vec<Line>> {
        if self.ended {
            return None;
        }
        if self.buffer.capacity() - self.buffer.len() < READ / 8 {
            self.buffer.reserve(READ);
        }
        // A read error ends the stream as its end does: the process behind it is what tells why.
        let read = self.from.read_buf(&mut self.buffer).await.unwrap_or(0);
        let mut lines = Vec::new();
        self.take_lines(&mut lines);
        if read == 0 {
            self.ended = true;
            let rest = self.buffer.split().freeze();
            match self.long.take() {
                Some((kept, length)) => lines.push(Line::Cut(kept, length + rest.len() as u64)),
                None if !rest.is_empty() => lines.push(Line::Unfinished(rest)),
                None => {}
            }
        }
        Some(lines)
    }

    fn take_lines(&mut self, lines: &mut Vec<Line>) {
        while let Some(end) = memchr(&self.buffer[self.scanned..]).map(|at| self.scanned + at) {
            let mut line = self.buffer.split_to(end + 1).freeze();
            self.scanned = 0;
            line.truncate(end);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            lines.push(match self.long.take() {
                Some((kept, length)) => Line::Cut(kept, length + end as u64),
                None if line.len() > self.max => {
                    Line::Cut(Bytes::copy_from_slice(&line[..KEPT.min(line.len())]), end as u64)
                }
                None => Line::Whole(line),
            });
        }
        self.scanned = self.buffer.len();
        if let Some((_, length)) = &mut self.long {
            *length += self.buffer.len() as u64;
            self.buffer.clear();
            self.scanned = 0;
        } else if self.buffer.len() > self.max {
            let kept = Bytes::copy_from_slice(&self.buffer[..KEPT.min(self.buffer.len())]);
            self.long = Some((kept, self.buffer.len() as u64));
            // Not only emptied: given back.
            self.buffer = BytesMut::new();
            self.scanned = 0;
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    // A block at a time lets the compiler use wide registers; lines of a mebibyte are looked through in microseconds.
    let mut rest = bytes;
    let mut at = 0;
    while rest.len() >= 32 {
        if rest[..32].iter().fold(false, |found, byte| found | (*byte == b'\n')) {
            break;
        }
        rest.advance(32);
        at += 32;
    }
    rest.iter().position(|byte| *byte == b'\n').map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(pieces: &[&[u8]], max: usize) -> Vec<Line> {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        for piece in pieces {
            tokio::io::AsyncWriteExt::write_all(&mut far, piece).await.unwrap();
        }
        drop(far);
        let mut reader = Lines::new(near, max);
        let mut all = Vec::new();
        while let Some(some) = reader.next().await {
            all.extend(some);
        }
        all
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_are_the_same_wherever_reads_cut_them() {
        let text = "first\nsecond line, a little longer than thirty-two bytes\n\r\nlast\r\nrest".as_bytes();
        let expected = [
            whole("first"),
            whole("second line, a little longer than thirty-two bytes"),
            whole(""),
            whole("last"),
            Line::Unfinished("rest".into()),
        ];
        for cut in 0..=text.len() {
            let mut reader = Lines::new(AsyncReadExt::chain(&text[..cut], &text[cut..]), 1000);
            let mut all = Vec::new();
            while let Some(some) = reader.next().await {
                all.extend(some);
            }
            assert_eq!(all, expected, "cut at {cut}");
        }
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 100_000];
        let got = lines(&[b"a\n", &long, &long, b"\nb\n"], 1000).await;
        assert_eq!(got.len(), 3);
        assert_eq!((&got[0], &got[2]), (&whole("a"), &whole("b")));
        let Line::Cut(kept, length) = &got[1] else { panic!("{got:?}") };
        assert_eq!(*length, 200_000);
        assert!(kept.iter().all(|byte| *byte == b'x'));
    }
}
