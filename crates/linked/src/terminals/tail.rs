//! Reads a growing file in parts. Pure.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Number of bytes that are read at a time.
const PART: u64 = 1 << 20;
/// Maximum length of a line of a transcript, in bytes: more is read at a time for a long line. A longer line is left out.
pub(crate) const LINE_MAX: u64 = 64 << 20;

/// The position in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct FileTail {
    pub(crate) offset: u64,
    /// `true` while a line is skipped that is too long, or whose beginning was not read.
    pub(crate) skipping: bool,
    /// The number of bytes that are read at a time.
    #[serde(skip, default = "part")]
    pub(crate) part: u64,
}

fn part() -> u64 {
    PART
}

impl Default for FileTail {
    fn default() -> Self {
        Self { offset: 0, skipping: false, part: PART }
    }
}

/// A part of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TailPart {
    /// Complete lines, each with its position in the file.
    pub(crate) lines: Vec<(u64, Bytes)>,
    /// `true` if there may be more to read at once.
    pub(crate) more: bool,
    /// `true` if a line begins that is longer than the limit and is left out.
    pub(crate) left_out: bool,
}

impl FileTail {
    /// Adds the part from [`offset`](Self::offset). Lines of more than `line_max` bytes are left out.
    pub(crate) fn take(&mut self, body: &Bytes, line_max: u64) -> TailPart {
        let full = body.len() as u64 >= self.part;
        let Some(end) = memchr::memrchr(b'\n', body) else {
            if !full {
                return TailPart::default();
            }
            let grows = self.part < line_max && !self.skipping;
            let left_out = !grows && !self.skipping;
            if grows {
                self.part = (self.part * 4).min(line_max);
            } else {
                (self.skipping, self.offset, self.part) = (true, self.offset + body.len() as u64, PART);
            }
            return TailPart { more: true, left_out, ..TailPart::default() };
        };
        let (mut start, mut lines) = (0, Vec::new());
        for at in memchr::memchr_iter(b'\n', &body[..=end]) {
            if !std::mem::take(&mut self.skipping) && at > start {
                lines.push((self.offset + start as u64, body.slice(start..at)));
            }
            start = at + 1;
        }
        self.offset += start as u64;
        self.part = PART;
        TailPart { lines, more: full, left_out: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(tail: &mut FileTail, file: &[u8]) -> TailPart {
        let start = usize::try_from(tail.offset).unwrap_or(usize::MAX).min(file.len());
        let length = usize::try_from(tail.part).unwrap_or(usize::MAX).min(file.len() - start);
        tail.take(&Bytes::copy_from_slice(&file[start..start + length]), LINE_MAX)
    }

    #[test]
    fn tail_gives_each_whole_line_once() {
        let mut tail = FileTail::default();
        let part = take(&mut tail, b"one\n\ntwo\nthr");
        assert_eq!(part.lines, [(0, Bytes::from_static(b"one")), (5, Bytes::from_static(b"two"))]);
        assert!(!part.more && take(&mut tail, b"one\n\ntwo\nthr") == TailPart::default());
        assert_eq!(take(&mut tail, b"one\n\ntwo\nthree\n").lines, [(9, Bytes::from_static(b"three"))]);
    }

    #[test]
    fn tail_reads_long_lines_and_leaves_out_what_is_not_wanted() {
        let long = [vec![b'x'; 3 << 20], b"\nend\n".to_vec()].concat();
        let (mut tail, mut lines) = (FileTail::default(), Vec::new());
        loop {
            let part = take(&mut tail, &long);
            lines.extend(part.lines.into_iter().map(|(_, line)| line.len()));
            if !part.more {
                break;
            }
        }
        assert_eq!(lines, [3 << 20, 3]);
        let mut tail = FileTail { offset: 2, skipping: true, ..FileTail::default() };
        assert_eq!(take(&mut tail, b"first\nlast\n").lines, [(6, Bytes::from_static(b"last"))]);
    }
}
