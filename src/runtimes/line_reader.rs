//! Cuts a runtime's stdout into lines, without copying them and without trust in their length.

use bytes::{Bytes, BytesMut};

/// Capacity for one read, in bytes. Lines of one read share its memory.
pub(super) const READ: usize = 64 * 1024;

/// Minimum free capacity of a buffer for a read, in bytes: with less it gets fresh memory, because a read of few bytes costs as much as
/// one of many.
const READ_FREE: usize = 4 * 1024;

/// Length from which on a line gets all the memory that it may need at once, in bytes. Growing by steps copies the received part, and
/// both copies are held meanwhile; unwritten memory costs nothing.
const LONG: usize = 1024 * 1024;

/// Number of retained bytes of a line over the limit; the rest is dropped and counted.
pub(super) const LINE_KEPT: usize = 1024 * 1024;

/// A piece that was cut off the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CutLine {
    /// A line, without its end.
    Whole(Bytes),
    /// A line over the limit: its beginning, and the number of dropped bytes.
    Cut {
        /// The beginning.
        head: Bytes,
        /// Number of dropped bytes.
        dropped: u64,
    },
    /// The bytes before the end of the stream, without an end of line.
    Unfinished(Bytes),
}

/// The state between two reads. Holds at most the limit and one read.
pub(super) struct LineReader {
    buf: BytesMut,
    /// Length of the part of `buf` without a newline.
    scanned: usize,
    /// Maximum length of a line that is passed on whole, in bytes.
    max: usize,
    /// The line that is being skipped.
    skipped: Option<SkippedLine>,
    /// Number of bytes of the stream that are in no later line.
    offset: u64,
}

/// A line that is being skipped.
#[derive(Clone)]
pub(super) struct SkippedLine {
    /// The beginning.
    pub(super) head: Bytes,
    /// Number of bytes dropped so far.
    pub(super) dropped: u64,
}

impl LineReader {
    pub(super) fn new(max: usize) -> Self {
        Self { buf: BytesMut::with_capacity(READ), scanned: 0, max, skipped: None, offset: 0 }
    }

    /// Makes a reader in the middle of a stream: at this offset, and possibly in a line that is being skipped.
    pub(super) fn at(max: usize, offset: u64, skipped: Option<SkippedLine>) -> Self {
        Self { skipped, offset, ..Self::new(max) }
    }

    /// Returns the offset up to which the stream was processed: a reader that starts [`at`](Self::at) this offset continues like this
    /// one.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes held of an incomplete line.
    pub(super) fn held(&self) -> usize {
        self.buf.len()
    }

    /// Returns the line that is being skipped.
    pub(super) fn skipped(&self) -> Option<&SkippedLine> {
        self.skipped.as_ref()
    }

    /// Returns the buffer to read into; its content stays.
    pub(super) fn read_buffer(&mut self) -> &mut BytesMut {
        if self.buf.capacity() - self.buf.len() < READ_FREE {
            let rest = if self.buf.len() > LONG { self.max.saturating_sub(self.buf.len()) } else { 0 };
            self.buf.reserve(rest + READ);
        }
        &mut self.buf
    }

    /// Returns the next complete line of the read bytes. Empty lines are skipped.
    pub(super) fn next(&mut self) -> Option<CutLine> {
        loop {
            let found = memchr::memchr(b'\n', &self.buf[self.scanned..]);
            let Some(at) = found else {
                self.keep_small();
                return None;
            };
            let mut line = self.buf.split_to(self.scanned + at + 1).freeze();
            self.scanned = 0;
            self.offset += line.len() as u64;
            if line.len() > LONG && self.buf.len() <= READ {
                // The line's memory is freed with the line, not with the lines after it.
                self.buf = BytesMut::from(&self.buf[..]);
            }
            line.truncate(line.len() - 1);
            if let Some(skipped) = self.skipped.take() {
                return Some(CutLine::Cut { head: skipped.head, dropped: skipped.dropped + line.len() as u64 });
            }
            if line.len() > self.max {
                let skipped = cut(&line, self.max);
                return Some(CutLine::Cut { head: skipped.head, dropped: skipped.dropped });
            }
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if !line.is_empty() {
                return Some(CutLine::Whole(line));
            }
        }
    }

    /// Returns the rest when the stream has ended.
    pub(super) fn finish(&mut self) -> Option<CutLine> {
        let rest = std::mem::take(&mut self.buf).freeze();
        self.scanned = 0;
        match self.skipped.take() {
            Some(skipped) => Some(CutLine::Cut { head: skipped.head, dropped: skipped.dropped + rest.len() as u64 }),
            None => (!rest.is_empty()).then_some(CutLine::Unfinished(rest)),
        }
    }

    /// Drops a line that has grown over the limit.
    fn keep_small(&mut self) {
        self.scanned = self.buf.len();
        if let Some(skipped) = &mut self.skipped {
            skipped.dropped += self.buf.len() as u64;
            self.offset += self.buf.len() as u64;
            self.buf.clear();
            self.scanned = 0;
        } else if self.buf.len() > self.max {
            self.skipped = Some(cut(&self.buf, self.max));
            self.offset += self.buf.len() as u64;
            self.buf = BytesMut::with_capacity(READ);
            self.scanned = 0;
        }
    }
}

/// Cuts a line. The beginning is copied, so that it does not hold the whole line's memory.
fn cut(line: &[u8], max: usize) -> SkippedLine {
    let head = &line[..line.len().min(LINE_KEPT).min(max)];
    SkippedLine { head: Bytes::copy_from_slice(head), dropped: (line.len() - head.len()) as u64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fed(max: usize, chunks: &[&[u8]]) -> Vec<CutLine> {
        let (mut lines, mut out) = (LineReader::new(max), Vec::new());
        for chunk in chunks {
            lines.read_buffer().extend_from_slice(chunk);
            while let Some(line) = lines.next() {
                out.push(line);
            }
        }
        out.extend(lines.finish());
        out
    }

    fn whole(text: &'static str) -> CutLine {
        CutLine::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn line_reader_leaves_out_line_ends_and_empty_lines() {
        let got = fed(100, &[b"a\r\n\n\r\nb c\n", b"d", b"e\n"]);
        assert_eq!(got, [whole("a"), whole("b c"), whole("de")]);
    }

    #[test]
    fn line_reader_neither_moves_a_long_line_nor_keeps_its_memory() {
        let max = 64 * LONG;
        let mut lines = LineReader::new(max);
        let (mut moved, mut at) = (0, std::ptr::null());
        while lines.held() < max {
            lines.read_buffer().extend_from_slice(&[b'x'; READ]);
            assert_eq!(lines.next(), None);
            moved += usize::from(lines.held() > 3 * LONG && at != lines.buf.as_ptr());
            at = lines.buf.as_ptr();
        }
        assert_eq!(moved, 0);
        lines.read_buffer().extend_from_slice(b"\nnext");
        assert!(matches!(lines.next(), Some(CutLine::Whole(line)) if line.len() == max));
        assert!(lines.buf.capacity() < LONG, "{}", lines.buf.capacity());
        assert_eq!(lines.finish(), Some(CutLine::Unfinished(Bytes::from_static(b"next"))));
    }

    #[test]
    fn line_reader_tells_an_unfinished_line_apart() {
        assert_eq!(fed(100, &[b"a\nhal", b"f"]), [whole("a"), CutLine::Unfinished(Bytes::from_static(b"half"))]);
    }

    #[test]
    fn line_reader_cuts_and_counts_a_long_line_and_goes_on() {
        let cut = |head: &'static [u8], dropped| CutLine::Cut { head: Bytes::from_static(head), dropped };
        // Inside one read, over several, and without an end.
        assert_eq!(fed(4, &[b"123456\nok\n"]), [cut(b"1234", 2), whole("ok")]);
        assert_eq!(fed(4, &[b"123", b"456", b"78", b"9\nok\n"]), [cut(b"1234", 5), whole("ok")]);
        assert_eq!(fed(4, &[b"12345", b"6"]), [cut(b"1234", 2)]);
        // At the limit it is whole.
        assert_eq!(fed(4, &[b"12", b"34\n"]), [whole("1234")]);
    }

    #[test]
    fn line_reader_spends_no_more_than_the_limit_on_a_long_line() {
        let mut lines = LineReader::new(256 * 1024);
        for _ in 0..1000 {
            lines.read_buffer().extend_from_slice(&[b'x'; READ]);
            assert_eq!(lines.next(), None);
            assert!(lines.buf.capacity() <= 1024 * 1024, "{}", lines.buf.capacity());
        }
    }

    proptest! {
        #[test]
        fn line_reader_returns_the_same_lines_however_input_is_split(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400),
            cuts in proptest::collection::vec(0usize..400, 0..12),
            max in 1usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(fed(max, &chunks), fed(max, &[&text]));
        }
    }
}
