//! The unified diff of an edit: hunks with three lines around each change. Pure, and linear in the size of the texts:
//! if a comparison would cost more, lines are shown as replaced.

use std::collections::HashMap;
use std::fmt::Write as _;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Number of lines shown around a change.
const CONTEXT: usize = 3;
/// Maximum number of bytes between the common beginning and end, of both texts together, that are compared line by
/// line; more is shown as replaced.
const COMPARED_MAX: usize = 4 << 20;
/// Maximum number of comparison steps for each compared line; if more are needed, lines are shown as replaced.
const STEPS_PER_LINE: usize = 64;
/// Maximum size of a diff, in bytes; the rest is cut, with a note.
pub(super) const SHOWN_MAX: usize = 512 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Diff<'a> {
    /// The hunks, in order.
    pub(super) hunks: Vec<Hunk<'a>>,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// Adjacent changes: the first line (from 1) and the number of lines in either text, and the lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    old: (usize, usize),
    new: (usize, usize),
    lines: Vec<(Mark, &'a str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Same,
    Removed,
    Added,
}

/// Consecutive lines that are the same in both texts, or replaced; ranges of line indices.
#[derive(Clone, Copy, Debug)]
struct Run {
    same: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// Compares two texts.
pub(super) fn diff<'a>(old: &'a str, new: &'a str) -> Diff<'a> {
    let (head, tail) = common(old, new);
    let (old_mid, new_mid) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if old_mid.is_empty() && new_mid.is_empty() {
        return Diff::default();
    }
    // Of the common beginning and end only the lines next to a change are shown.
    let before: Vec<&str> = last_lines(&old[..head]);
    let after: Vec<&str> = lines(&old[old.len() - tail..]).take(CONTEXT).collect();
    let first = line_count(&old[..head]);
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (lines(old_mid).collect(), lines(new_mid).collect());
    let runs = if old_mid.len() + new_mid.len() > COMPARED_MAX {
        vec![Run { same: false, old: (0, old_lines.len()), new: (0, new_lines.len()) }]
    } else {
        compare(&old_lines, &new_lines)
    };
    hunks(&runs, (&old_lines, &new_lines), (&before, &after), first)
}

/// Returns the parts of two texts that differ, with the lines next to them, and the number of lines before: everything
/// that a diff of them shows.
pub fn around_changes<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str, usize) {
    let (head, tail) = common(old, new);
    let from = old[..head].rmatch_indices('\n').nth(CONTEXT).map_or(0, |(at, _)| at + 1);
    let after = &old[old.len() - tail..];
    let left = tail - after.match_indices('\n').nth(CONTEXT - 1).map_or(tail, |(at, _)| at + 1);
    (&old[from..old.len() - left], &new[from..new.len() - left], line_count(&old[..from]))
}

/// Returns the number of bytes of whole lines that are the same at the beginning and at the end; the two do not overlap.
fn common(old: &str, new: &str) -> (usize, usize) {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let head = match same == a.len() && same == b.len() {
        true => same,
        false => a[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
    };
    let (a, b) = (&a[head..], &b[head..]);
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    // The common end must start at the beginning of a line in both texts.
    let starts = |bytes: &[u8], tail: usize| tail == bytes.len() || bytes[bytes.len() - tail - 1] == b'\n';
    let mut tail = same;
    while tail > 0 && !(starts(a, tail) && starts(b, tail)) {
        tail = match a[a.len() - tail..].iter().position(|byte| *byte == b'\n') {
            Some(end) => tail - end - 1,
            None => 0,
        };
    }
    (head, tail)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

fn last_lines(text: &str) -> Vec<&str> {
    let mut from = text.len();
    for _ in 0..CONTEXT {
        from = text[..from].strip_suffix('\n').unwrap_or(&text[..from]).rfind('\n').map_or(0, |at| at + 1);
    }
    lines(&text[from..]).collect()
}

fn line_count(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the runs of two lists of lines. Lines that occur once in both texts are anchors; the gaps between anchors
/// are compared in full while that is cheap.
fn compare(old: &[&str], new: &[&str]) -> Vec<Run> {
    let mut budget = STEPS_PER_LINE * (old.len() + new.len() + 64);
    let mut runs = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (x, y) in anchors(old, new).into_iter().chain([(old.len(), new.len())]) {
        if x < a || y < b {
            continue;
        }
        compare_gap(old, new, (a, x), (b, y), &mut budget, &mut runs);
        if x < old.len() && y < new.len() {
            runs.push(Run { same: true, old: (x, x + 1), new: (y, y + 1) });
        }
        (a, b) = (x + 1, y + 1);
    }
    runs
}

/// Returns index pairs of lines that occur once in both texts, increasing in both.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let mut seen: HashMap<&str, (u32, usize, u32, usize)> = HashMap::with_capacity(old.len());
    for (n, line) in old.iter().enumerate() {
        let entry = seen.entry(line).or_default();
        (entry.0, entry.1) = (entry.0.saturating_add(1), n);
    }
    for (n, line) in new.iter().enumerate() {
        if let Some(entry) = seen.get_mut(line) {
            (entry.2, entry.3) = (entry.2.saturating_add(1), n);
        }
    }
    let mut pairs: Vec<(usize, usize)> =
        seen.values().filter(|(a, _, b, _)| *a == 1 && *b == 1).map(|(_, x, _, y)| (*x, *y)).collect();
    pairs.sort_unstable();
    // The longest increasing subsequence of the indices in the new text, in n log n.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (n, (_, y)) in pairs.iter().enumerate() {
        let at = tails.partition_point(|tail| pairs[*tail].1 < *y);
        before.push(at.checked_sub(1).map(|at| tails[at]));
        if at == tails.len() {
            tails.push(n);
        } else {
            tails[at] = n;
        }
    }
    let mut chain = Vec::with_capacity(tails.len());
    let mut next = tails.last().copied();
    while let Some(n) = next {
        chain.push(pairs[n]);
        next = before[n];
    }
    chain.reverse();
    chain
}

/// Compares the lines between two anchors.
fn compare_gap(
    old: &[&str],
    new: &[&str],
    (mut a, mut x): (usize, usize),
    (mut b, mut y): (usize, usize),
    budget: &mut usize,
    runs: &mut Vec<Run>,
) {
    let head = (a, b);
    while a < x && b < y && old[a] == new[b] {
        (a, b) = (a + 1, b + 1);
    }
    if a > head.0 {
        runs.push(Run { same: true, old: (head.0, a), new: (head.1, b) });
    }
    let tail = (x, y);
    while a < x && b < y && old[x - 1] == new[y - 1] {
        (x, y) = (x - 1, y - 1);
    }
    // An upper bound of the comparison's steps.
    let cost = (x - a + y - b).saturating_mul(x - a + y - b);
    if a < x && b < y && cost <= *budget {
        *budget -= cost;
        for op in capture_diff_slices(Algorithm::Myers, &old[a..x], &new[b..y]) {
            let (same, (from, to)) = (matches!(op, DiffOp::Equal { .. }), (op.old_range(), op.new_range()));
            runs.push(Run { same, old: (a + from.start, a + from.end), new: (b + to.start, b + to.end) });
        }
    } else if a < x || b < y {
        runs.push(Run { same: false, old: (a, x), new: (b, y) });
    }
    if x < tail.0 {
        runs.push(Run { same: true, old: (x, tail.0), new: (y, tail.1) });
    }
}

/// Groups runs into hunks. `first`: the number of common lines before all runs; `before`: the last of those; `after`: the first
/// common lines after the runs.
fn hunks<'a>(
    runs: &[Run],
    (old, new): (&[&'a str], &[&'a str]),
    (before, after): (&[&'a str], &[&'a str]),
    first: usize,
) -> Diff<'a> {
    let mut diff = Diff::default();
    let mut current: Option<Hunk<'a>> = None;
    // The last common lines since the last change, and the number of all of them.
    let mut same: Vec<&'a str> = before.to_vec();
    let mut unchanged = 0usize;
    for run in runs {
        if run.same {
            let lines = &old[run.old.0..run.old.1];
            if let Some(hunk) = &mut current {
                for line in lines.iter().take(CONTEXT.saturating_sub(unchanged)) {
                    hunk.lines.push((Mark::Same, line));
                }
            }
            unchanged += lines.len();
            // The context of the next hunk, or the lines between two changes of one hunk.
            same.extend(lines.iter().skip(lines.len().saturating_sub(2 * CONTEXT)));
            same.drain(..same.len().saturating_sub(2 * CONTEXT));
            continue;
        }
        if current.as_ref().is_some_and(|_| unchanged > 2 * CONTEXT) {
            diff.hunks.extend(current.take());
        }
        let hunk = match &mut current {
            Some(hunk) => {
                // Lines since the last change that the hunk does not have yet.
                let missing = unchanged.saturating_sub(CONTEXT);
                for line in &same[same.len() - missing..] {
                    hunk.lines.push((Mark::Same, line));
                }
                hunk
            }
            None => {
                let lead = &same[same.len().saturating_sub(CONTEXT)..];
                let (a, b) = (first + run.old.0 - lead.len(), first + run.new.0 - lead.len());
                let lines = lead.iter().map(|line| (Mark::Same, *line)).collect();
                current.insert(Hunk { old: (a + 1, 0), new: (b + 1, 0), lines })
            }
        };
        (unchanged, same) = (0, Vec::new());
        hunk.lines.extend(old[run.old.0..run.old.1].iter().map(|line| (Mark::Removed, *line)));
        hunk.lines.extend(new[run.new.0..run.new.1].iter().map(|line| (Mark::Added, *line)));
        diff.removed += run.old.1 - run.old.0;
        diff.added += run.new.1 - run.new.0;
    }
    if let Some(mut hunk) = current {
        hunk.lines.extend(after.iter().take(CONTEXT.saturating_sub(unchanged)).map(|line| (Mark::Same, *line)));
        diff.hunks.push(hunk);
    }
    for hunk in &mut diff.hunks {
        let count = |not: Mark| hunk.lines.iter().filter(|(mark, _)| *mark != not).count();
        (hunk.old.1, hunk.new.1) = (count(Mark::Added), count(Mark::Removed));
    }
    diff
}

impl Diff<'_> {
    /// Writes the hunks, each line through `escape`. Returns whether the diff was cut.
    pub(super) fn write(&self, out: &mut String, mut escape: impl FnMut(&str, &mut String)) -> bool {
        let end = out.len() + SHOWN_MAX;
        let (mut added, mut removed) = (0usize, 0usize);
        for hunk in &self.hunks {
            let at = |(start, count): (usize, usize)| (if count == 0 { start - 1 } else { start }, count);
            let ((a, x), (b, y)) = (at(hunk.old), at(hunk.new));
            let _ = write!(out, "\n@@ -{a},{x} +{b},{y} @@");
            for (mark, line) in &hunk.lines {
                let text = line.strip_suffix('\n');
                if out.len() + line.len() > end {
                    let (more, less) = (self.added - added, self.removed - removed);
                    let _ = write!(out, "\n… cut here: {more} more lines come and {less} more go");
                    return true;
                }
                out.push('\n');
                out.push(match mark {
                    Mark::Same => ' ',
                    Mark::Removed => '-',
                    Mark::Added => '+',
                });
                match mark {
                    Mark::Same => {}
                    Mark::Removed => removed += 1,
                    Mark::Added => added += 1,
                }
                escape(text.unwrap_or(line), out);
                if text.is_none() {
                    out.push_str("\n\\ no line end at the end of the file");
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let mut out = String::new();
        diff(old, new).write(&mut out, |line, out| out.push_str(line));
        out
    }

    /// Applies a diff to the old text.
    fn patched(old: &str, diff: &Diff<'_>) -> String {
        let old: Vec<&str> = lines(old).collect();
        let (mut out, mut at) = (String::new(), 0);
        for hunk in &diff.hunks {
            let start = hunk.old.0 - 1;
            out.extend(old[at..start].iter().copied());
            at = start;
            for (mark, line) in &hunk.lines {
                match mark {
                    Mark::Added => out.push_str(line),
                    Mark::Removed | Mark::Same => {
                        assert_eq!(old[at], *line);
                        if *mark == Mark::Same {
                            out.push_str(line);
                        }
                        at += 1;
                    }
                }
            }
        }
        out.extend(old[at..].iter().copied());
        out
    }

    fn numbered(range: std::ops::Range<usize>) -> String {
        range.map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn diff_of_one_word_is_one_short_hunk() {
        let old = numbered(1..601);
        let new = old.replace("line 300\n", "line THREE HUNDRED\n");
        let text = shown(&old, &new);
        assert_eq!(
            text,
            "\n@@ -297,7 +297,7 @@\n line 297\n line 298\n line 299\n-line 300\n+line THREE HUNDRED\n line 301\n line 302\n line 303"
        );
    }

    #[test]
    fn diff_merges_touching_hunks_and_splits_distant_ones() {
        let old = numbered(1..41);
        let near = old.replace("line 10\n", "A\n").replace("line 17\n", "B\n");
        assert_eq!(diff(&old, &near).hunks.len(), 1);
        let far = old.replace("line 10\n", "A\n").replace("line 18\n", "B\n");
        assert_eq!(diff(&old, &far).hunks.len(), 2);
        assert_eq!(patched(&old, &diff(&old, &far)), far);
    }

    #[test]
    fn diff_marks_missing_line_end() {
        assert_eq!(shown("a", "a\n"), "\n@@ -1,1 +1,1 @@\n-a\n\\ no line end at the end of the file\n+a");
        assert_eq!(shown("", "a\n"), "\n@@ -0,0 +1,1 @@\n+a");
        assert_eq!(shown("a\n", ""), "\n@@ -1,1 +0,0 @@\n-a");
        assert_eq!(shown("a\n", "a\n"), "");
    }

    #[test]
    fn diff_too_long_is_cut_and_counts_the_rest() {
        let new = numbered(0..100_000);
        let mut out = String::new();
        assert!(diff("", &new).write(&mut out, |line, out| out.push_str(line)));
        assert!(out.len() < SHOWN_MAX + 200);
        let shown = out.lines().filter(|line| line.starts_with('+')).count();
        assert!(out.ends_with(&format!("{} more lines come and 0 more go", 100_000 - shown)));
    }

    #[test]
    fn diff_too_costly_to_compare_is_shown_as_replaced() {
        // Lines that occur many times in both texts are hard for a plain comparison.
        let old: String = (0..200_000).map(|n| format!("{}\n", n % 7)).collect();
        let new: String = (0..200_000).map(|n| format!("{}\n", n % 5)).collect();
        let changed = diff(&old, &new);
        assert_eq!(patched(&old, &changed), new);
        // One change in a very long text is found.
        let old = "x".repeat(30 << 20) + "\n" + &numbered(0..1_000_000) + "end\n";
        let new = old.replace("line 500000\n", "here\n");
        let changed = diff(&old, &new);
        assert_eq!((changed.added, changed.removed, changed.hunks.len()), (1, 1, 1));
    }

    proptest! {
        #[test]
        fn diff_applied_to_old_text_gives_new_text(old in "([abc]{0,2}\n?){0,30}", new in "([abc]{0,2}\n?){0,30}") {
            let changed = diff(&old, &new);
            prop_assert_eq!(patched(&old, &changed), new.clone());
            prop_assert_eq!(changed.hunks.is_empty(), old == new);
            for hunk in &changed.hunks {
                let around = hunk.lines.iter().take_while(|(mark, _)| *mark == Mark::Same).count();
                prop_assert!(around <= CONTEXT);
            }
        }
    }
}
