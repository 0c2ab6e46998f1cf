//! The lines of a file's diff: a unified diff, read leniently. Pure.

use std::ops::Range;

/// Maximum number of lines of a diff that are stored; the rest is counted. The gateway truncates a diff long before.
const ROWS_MAX: usize = 100_000;

/// The kind of a line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffRowKind {
    /// The heading of a part.
    Part,
    Same,
    Added,
    Removed,
    /// A note about the line before it: the file does not end with a line break.
    NoNewline,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiffRow {
    pub(crate) kind: DiffRowKind,
    /// The old and the new line number; 0 where there is none.
    pub(crate) old: usize,
    pub(crate) new: usize,
    text: Range<usize>,
    /// The line that it replaces, or that replaces it.
    pub(crate) counterpart: Option<usize>,
    /// The number of its part.
    pub(crate) part: usize,
}

impl DiffRow {
    /// The place of a comment on the line: `true` for the old side, and the line's number.
    pub(crate) fn anchor(&self) -> Option<(bool, usize)> {
        match self.kind {
            DiffRowKind::Removed => Some((true, self.old)),
            DiffRowKind::Same | DiffRowKind::Added => Some((false, self.new)),
            DiffRowKind::Part | DiffRowKind::NoNewline => None,
        }
    }
}

/// The lines of a diff.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DiffRows {
    text: String,
    pub(crate) rows: Vec<DiffRow>,
    /// The heading of each part.
    pub(crate) parts: Vec<usize>,
    /// The number of lines beyond those that are stored.
    pub(crate) cut: usize,
}

/// The numbers of a heading: the beginning and the length of the part, old and new.
fn numbers(heading: &str) -> Option<[usize; 4]> {
    let inner = heading.strip_prefix("@@ -")?;
    let (old, rest) = inner.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let side = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (side(old)?, side(new)?);
    Some([old_start, old_lines, new_start, new_lines])
}

impl DiffRows {
    /// Reads the unified diff of one file. Lines before its first part are left out.
    pub(crate) fn read(diff: &str) -> Self {
        let mut out = Self { text: diff.to_owned(), ..Self::default() };
        let (mut old, mut new) = (0, 0);
        // Lines of the part that are still to come: a removed line may begin with `--`.
        let (mut old_left, mut new_left) = (0_usize, 0_usize);
        let mut from = 0;
        for whole in diff.split_inclusive('\n') {
            let (begin, line) = (from, whole.strip_suffix('\n').unwrap_or(whole));
            from += whole.len();
            let end = begin + line.len();
            let heading = if old_left == 0 && new_left == 0 { numbers(line) } else { None };
            let (kind, at) = match (heading, line.as_bytes().first()) {
                (Some([old_start, old_lines, new_start, new_lines]), _) => {
                    (old, old_left, new, new_left) = (old_start, old_lines, new_start, new_lines);
                    (DiffRowKind::Part, (0, 0))
                }
                _ if out.parts.is_empty() => continue,
                (None, Some(b'\\')) => (DiffRowKind::NoNewline, (0, 0)),
                (None, Some(b'+')) if new_left > 0 => {
                    (new, new_left) = (new.saturating_add(1), new_left - 1);
                    (DiffRowKind::Added, (0, new - 1))
                }
                (None, Some(b'-')) if old_left > 0 => {
                    (old, old_left) = (old.saturating_add(1), old_left - 1);
                    (DiffRowKind::Removed, (old - 1, 0))
                }
                (None, Some(b' ') | None) if old_left > 0 && new_left > 0 => {
                    (old, new) = (old.saturating_add(1), new.saturating_add(1));
                    (old_left, new_left) = (old_left - 1, new_left - 1);
                    (DiffRowKind::Same, (old - 1, new - 1))
                }
                // Not a line of a part: the diff of one file has none.
                _ => continue,
            };
            if out.rows.len() >= ROWS_MAX {
                out.cut += 1;
                continue;
            }
            if kind == DiffRowKind::Part {
                out.parts.push(out.rows.len());
            }
            let part = out.parts.len() - 1;
            let text = if kind == DiffRowKind::Part || begin == end { begin..end } else { begin + 1..end };
            out.rows.push(DiffRow { kind, old: at.0, new: at.1, text, counterpart: None, part });
        }
        out.pair();
        out
    }

    /// Pairs removed lines with as many added ones after them: each replaces another.
    fn pair(&mut self) {
        let kind = |rows: &[DiffRow], at: usize| rows.get(at).map(|row| row.kind);
        let mut from = 0;
        while from < self.rows.len() {
            let mut added = from;
            while kind(&self.rows, added) == Some(DiffRowKind::Removed) {
                added += 1;
            }
            let mut end = added;
            while kind(&self.rows, end) == Some(DiffRowKind::Added) {
                end += 1;
            }
            if added - from == end - added {
                for n in 0..added - from {
                    self.rows[from + n].counterpart = Some(added + n);
                    self.rows[added + n].counterpart = Some(from + n);
                }
            }
            from = end.max(from + 1);
        }
    }

    /// The text of a line, as in the file.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.rows.get(at).and_then(|row| self.text.get(row.text.clone())).unwrap_or_default()
    }

    /// The index of the line with this number on a side.
    pub(crate) fn find(&self, old: bool, line: usize) -> Option<usize> {
        self.rows.iter().position(|row| row.anchor() == Some((old, line)))
    }

    /// The first changed line of a part: an added one if it has any.
    pub(crate) fn enter(&self, part: usize) -> Option<usize> {
        let from = *self.parts.get(part)?;
        let rows = || self.rows.iter().enumerate().skip(from).take_while(|(_, row)| row.part == part);
        let first = |kind| rows().find(|(_, row)| row.kind == kind).map(|(at, _)| at);
        first(DiffRowKind::Added).or_else(|| first(DiffRowKind::Removed))
    }

    /// The next line that can be chosen, from `from` downwards or, if `down` is false, upwards.
    pub(crate) fn choosable(&self, from: usize, down: bool) -> Option<usize> {
        let is = |at: &usize| self.rows.get(*at).is_some_and(|row| row.anchor().is_some());
        match down {
            true => (from..self.rows.len()).find(is),
            false => (0..self.rows.len().min(from + 1)).rev().find(is),
        }
    }

    /// The lines that a comment on these rows is about: the side of the first one, and the lines of that side.
    pub(crate) fn lines(&self, anchor: usize, row: usize) -> Option<(bool, usize, usize)> {
        let (old, _) = self.rows.get(anchor)?.anchor()?;
        let anchors = self.rows.get(anchor.min(row)..=anchor.max(row))?.iter().filter_map(DiffRow::anchor);
        let lines = anchors.filter(|(side, _)| *side == old).map(|(_, line)| line);
        let (first, last) = lines.fold((usize::MAX, 0), |(first, last), line| (first.min(line), last.max(line)));
        Some((old, first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn head()\n one\n-two\n--- three\n+2\n++++ 3\n\
                        @@ -10 +10,2 @@\n-last\n\\ No newline at end of file\n+last\n+more\n";

    #[test]
    fn diff_rows_have_their_numbers_and_their_parts() {
        let diff = DiffRows::read(DIFF);
        let rows: Vec<(DiffRowKind, usize, usize, &str)> =
            diff.rows.iter().enumerate().map(|(at, row)| (row.kind, row.old, row.new, diff.text(at))).collect();
        use DiffRowKind::{Added, NoNewline, Part, Removed, Same};
        let expected = [
            (Part, 0, 0, "@@ -1,3 +1,3 @@ fn head()"),
            (Same, 1, 1, "one"),
            (Removed, 2, 0, "two"),
            (Removed, 3, 0, "-- three"),
            (Added, 0, 2, "2"),
            (Added, 0, 3, "+++ 3"),
            (Part, 0, 0, "@@ -10 +10,2 @@"),
            (Removed, 10, 0, "last"),
            (NoNewline, 0, 0, " No newline at end of file"),
            (Added, 0, 10, "last"),
            (Added, 0, 11, "more"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(
            (diff.rows[2].counterpart, diff.rows[5].counterpart, diff.rows[7].counterpart),
            (Some(4), Some(3), None)
        );
        assert_eq!((diff.enter(0), diff.enter(1), diff.enter(2)), (Some(4), Some(9), None));
        assert_eq!((diff.find(true, 3), diff.find(false, 11), diff.find(true, 99)), (Some(3), Some(10), None));
        assert_eq!(
            (diff.choosable(0, true), diff.choosable(6, true), diff.choosable(6, false)),
            (Some(1), Some(7), Some(5))
        );
        assert_eq!((diff.lines(4, 1), diff.lines(2, 5)), (Some((false, 1, 2)), Some((true, 2, 3))));
        assert_eq!(diff.lines(0, 5), None, "a heading is no line");
    }

    #[test]
    fn diff_rows_of_any_text_are_bounded_and_in_order() {
        for odd in ["", "no diff", "@@ -1,1 +1,1 @@", "@@ -x +y @@\n+a\n", "@@ -1,9999999 +1,1 @@\n a\n b\nc\n"] {
            let diff = DiffRows::read(odd);
            assert!(diff.rows.len() <= 3 && diff.enter(0).is_none(), "{odd:?}: {diff:?}");
        }
        let count = ROWS_MAX + 10;
        let long = format!("@@ -0,0 +1,{count} @@\n{}", "+x\n".repeat(count));
        let diff = DiffRows::read(&long);
        assert_eq!((diff.rows.len(), diff.cut), (ROWS_MAX, 11));
        assert_eq!(DiffRows::read("@@ -18446744073709551615,2 +18446744073709551615,2 @@\n a\n b\n").rows.len(), 3);
    }
}
