//! Hunks against git and against a reference.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use similar::{Algorithm, capture_diff_slices};

use crate::hunks::{split, without_hunk};
use crate::rig::{apply_reverse, user_git};

/// Generates a text of lines with ends of any kind, possibly without one at the end.
fn text(lines: usize) -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")];
    let line =
        (prop_oneof![Just(String::new()), "[ab@+\\\\-]{1,2}", "[a-z]{1,8}"], end).prop_map(|(line, end)| line + end);
    (proptest::collection::vec(line, 0..lines), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.concat();
        if ended { text.into_bytes() } else { text.trim_end_matches(['\r', '\n']).as_bytes().to_vec() }
    })
}

/// Generates an old text, and a new one made from it by a few edits.
fn edited(lines: usize) -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), 0..3_usize, text(4)), 0..6);
    (text(lines), edits).prop_map(|(old, edits)| {
        let mut new: Vec<Vec<u8>> = old.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for (at, removed, added) in edits {
            let at = at.index(new.len() + 1);
            let end = (at + removed).min(new.len());
            new.splice(at..end, [added]);
        }
        (old, new.concat())
    })
}

/// Makes a patch as git writes it, with one hunk for each change and `context` lines around it, and the text without each hunk.
fn patch(old: &[u8], new: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect::<Vec<&[u8]>>();
    let (a, b) = (lines(old), lines(new));
    let ops = capture_diff_slices(Algorithm::Myers, &a, &b);
    let (mut out, mut without) = (b"--- a/f\n+++ b/f\n".to_vec(), Vec::new());
    for group in similar::group_diff_ops(ops, 3) {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let (x, y) = (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        let start = |range: &std::ops::Range<usize>| if range.is_empty() { range.start } else { range.start + 1 };
        out.extend(format!("@@ -{},{} +{},{} @@ f()\n", start(&x), x.len(), start(&y), y.len()).bytes());
        let mut line = |mark: u8, line: &[u8]| {
            out.push(mark);
            out.extend(line);
            if !line.ends_with(b"\n") {
                out.extend(b"\n\\ No newline at end of file\n");
            }
        };
        for op in &group {
            if matches!(op, similar::DiffOp::Equal { .. }) {
                a[op.old_range()].iter().for_each(|same| line(b' ', same));
            } else {
                a[op.old_range()].iter().for_each(|old| line(b'-', old));
                b[op.new_range()].iter().for_each(|new| line(b'+', new));
            }
        }
        without.push([&b[..y.start], &a[x], &b[y.end..]].concat().concat());
    }
    (out, without)
}

#[test]
fn hunk_taken_back_leaves_all_other_bytes() {
    let mut runner = TestRunner::new(Config { cases: 10_000, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&edited(40), |(old, new)| {
        let (patch, without) = patch(&old, &new);
        let (header, hunks) = split(&patch);
        prop_assert_eq!(header, b"--- a/f\n+++ b/f\n");
        prop_assert_eq!(hunks.len(), without.len());
        for (hunk, expected) in hunks.iter().zip(&without) {
            let found = without_hunk(&new, hunk);
            // A line without an end cannot stand before others; git has no such hunk either.
            prop_assert_eq!(found.as_ref(), Some(expected));
        }
        // From the last one on, all hunks together give the old text.
        let back = hunks.iter().rev().try_fold(new, |text, hunk| without_hunk(&text, hunk));
        prop_assert_eq!(back, Some(old));
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn hunk_of_git_taken_back_equals_git_apply() {
    let dir = tempfile::tempdir().unwrap();
    user_git(dir.path(), &["init", "-q", "."]);
    std::fs::write(dir.path().join(".git/info/attributes"), "* -text\n").unwrap();
    let mut runner = TestRunner::new(Config { cases: 120, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&edited(60), |(old, new)| {
        compare_with_git(dir.path(), &old, &new);
        Ok(())
    });
    checked.unwrap();
    let long = |nth: usize| format!("line {nth}{}\n", if nth.is_multiple_of(7) { "\r" } else { "" });
    let old: String = (0..10_000).map(long).collect();
    let new: String = (0..10_000).map(|nth| if nth % 900 == 5 { "other\r\n".into() } else { long(nth) }).collect();
    compare_with_git(dir.path(), old.as_bytes(), new.as_bytes());
    compare_with_git(dir.path(), b"", b"one");
    compare_with_git(dir.path(), b"latin \xe4\n", b"latin \xf6\r\n\xff");
}

fn compare_with_git(folder: &std::path::Path, old: &[u8], new: &[u8]) {
    std::fs::write(folder.join("f"), old).unwrap();
    user_git(folder, &["add", "f"]);
    std::fs::write(folder.join("f"), new).unwrap();
    let patch = user_git(folder, &["diff", "--no-color", "--no-ext-diff", "--text", "f"]);
    let (header, hunks) = split(&patch);
    for hunk in &hunks {
        let expected = apply_reverse(folder, "f", new, &[header, hunk.bytes].concat());
        let found = without_hunk(new, hunk).map(|found| String::from_utf8_lossy(&found).into_owned());
        assert_eq!(
            found.as_deref(),
            Some(&*String::from_utf8_lossy(&expected)),
            "{}",
            String::from_utf8_lossy(hunk.bytes)
        );
    }
    let all = hunks.iter().rev().try_fold(new.to_vec(), |text, hunk| without_hunk(&text, hunk));
    assert_eq!(all.as_deref(), Some(old));
}

#[test]
fn hunk_that_does_not_fit_changes_nothing() {
    let patch = b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    let (_, hunks) = split(patch);
    assert_eq!(without_hunk(b"a\nc\nd\n", &hunks[0]).unwrap(), b"a\nb\nd\n");
    for other in [&b"a\nC\nd\n"[..], b"x\na\nc\n", b"", b"a\n", b"a\nc"] {
        assert_eq!(without_hunk(other, &hunks[0]), None, "{}", String::from_utf8_lossy(other));
    }
    for half in 17..patch.len() {
        assert!(split(&patch[..half]).1.is_empty(), "{half}");
    }
    assert!(split(b"@@ -1,9999999999999999999999 +1 @@\n+a\n").1.is_empty());
}
