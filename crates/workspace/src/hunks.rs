//! Hunks of a patch, and the bytes of a file without one of them. Pure.
//!
//! A hunk moves bytes: line ends belong to their lines, and the bytes of other hunks stay as they are.

/// Maximum length of a hunk header, in bytes; a longer one makes the hunk unusable.
const HEADER_MAX: usize = 512;

/// One hunk of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchHunk<'a> {
    /// The first line before, from 1; the line above if there are no lines before.
    pub old_start: usize,
    /// The number of lines before.
    pub old_lines: usize,
    /// The first line now, from 1; the line above if there are no lines now.
    pub new_start: usize,
    /// The number of lines now.
    pub new_lines: usize,
    /// The hunk with its header.
    pub bytes: &'a [u8],
}

/// The sides of a line of a hunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Both,
    Old,
    New,
}

/// Splits the patch of a file into its header and its hunks. A hunk that the end of `patch` cuts is left out.
pub(crate) fn split(patch: &[u8]) -> (&[u8], Vec<PatchHunk<'_>>) {
    let mut at = match patch.starts_with(b"@@ -") {
        true => 0,
        false => memfind(patch, b"\n@@ -").map_or(patch.len(), |at| at + 1),
    };
    let header = &patch[..at];
    let mut hunks = Vec::new();
    while let Some(hunk) = one(&patch[at..]) {
        at += hunk.bytes.len();
        hunks.push(hunk);
    }
    (header, hunks)
}

/// Returns `new` with a hunk as it was before; `None` if the lines of the hunk are not at their place in `new`.
pub fn without_hunk(new: &[u8], hunk: &PatchHunk<'_>) -> Option<Vec<u8>> {
    let (old_side, new_side) = (side(hunk.bytes, Mark::Old), side(hunk.bytes, Mark::New));
    let skipped = if hunk.new_lines == 0 { hunk.new_start } else { hunk.new_start.checked_sub(1)? };
    let at = line_offset(new, skipped)?;
    let rest = new[at..].strip_prefix(new_side.as_slice())?;
    Some([&new[..at], &old_side, rest].concat())
}

/// Parses the hunk at the beginning of `text`.
fn one(text: &[u8]) -> Option<PatchHunk<'_>> {
    let end = text.iter().take(HEADER_MAX).position(|byte| *byte == b'\n')? + 1;
    let mut ranges = text.strip_prefix(b"@@ -")?[..end - 4].split(|byte| *byte == b' ');
    let (old_start, old_lines) = range(ranges.next()?)?;
    let (new_start, new_lines) = range(ranges.next()?.strip_prefix(b"+")?)?;
    let (mut old_left, mut new_left, mut at) = (old_lines, new_lines, end);
    while old_left > 0 || new_left > 0 {
        let length = text[at..].iter().position(|byte| *byte == b'\n')? + 1;
        match text[at] {
            b' ' => (old_left, new_left) = (old_left.checked_sub(1)?, new_left.checked_sub(1)?),
            b'-' => old_left = old_left.checked_sub(1)?,
            b'+' => new_left = new_left.checked_sub(1)?,
            b'\\' => {}
            _ => return None,
        }
        at += length;
    }
    if text[at..].starts_with(b"\\") {
        at += text[at..].iter().position(|byte| *byte == b'\n')? + 1;
    }
    Some(PatchHunk { old_start, old_lines, new_start, new_lines, bytes: &text[..at] })
}

fn range(text: &[u8]) -> Option<(usize, usize)> {
    let mut numbers = std::str::from_utf8(text).ok()?.splitn(2, ',');
    let start = numbers.next()?.parse().ok()?;
    Some((start, numbers.next().map_or(Some(1), |lines| lines.parse().ok())?))
}

/// Collects the bytes of one side of a hunk.
fn side(hunk: &[u8], wanted: Mark) -> Vec<u8> {
    let (mut out, mut last) = (Vec::with_capacity(hunk.len()), Mark::Both);
    for line in hunk.split_inclusive(|byte| *byte == b'\n').skip(1) {
        let mark = match line[0] {
            b'-' => Mark::Old,
            b'+' => Mark::New,
            b'\\' => {
                // The line before has no line end.
                if last == Mark::Both || last == wanted {
                    out.pop();
                }
                continue;
            }
            _ => Mark::Both,
        };
        if mark == Mark::Both || mark == wanted {
            out.extend_from_slice(&line[1..]);
        }
        last = mark;
    }
    out
}

/// Returns the offset of the line after `lines` lines.
fn line_offset(text: &[u8], lines: usize) -> Option<usize> {
    if lines == 0 {
        return Some(0);
    }
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // The last line may have no line end.
    let last = (!text.ends_with(b"\n") && !text.is_empty()).then_some(text.len());
    ends.chain(last).nth(lines - 1)
}

fn memfind(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
