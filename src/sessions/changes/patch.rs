//! Patches that `git apply` takes. Pure.

use std::fmt::Write as _;

use crate::sessions::diff::{HunkText, diff, hunk_texts};

/// Most bytes of a file's diff; hunks beyond it are left out.
pub(super) const DIFF_MAX: usize = 512 << 10;

/// A path as clients see it: as it is, or as git quotes it where it is not UTF-8.
pub(super) fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.starts_with('"') => text.to_owned(),
        _ => quoted(b"", path),
    }
}

/// A path in a header of a patch.
fn header(prefix: &[u8], path: &[u8]) -> String {
    let plain = path.iter().all(|byte| !matches!(byte, 0..=31 | b'"' | b'\\' | 127..=255));
    if plain { String::from_utf8_lossy(&[prefix, path].concat()).into_owned() } else { quoted(prefix, path) }
}

fn quoted(prefix: &[u8], path: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in prefix.iter().chain(path) {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0..=31 | 127..=255 => drop(write!(out, "\\{byte:03o}")),
            _ => out.push(char::from(*byte)),
        }
    }
    out.push('"');
    out
}

/// The path that [`shown`] wrote.
pub(super) fn unshown(text: &str) -> Vec<u8> {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return text.as_bytes().to_vec();
    };
    let (mut out, mut rest) = (Vec::new(), inner.as_bytes());
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        match rest {
            [b'n', more @ ..] => (rest, _) = (more, out.push(b'\n')),
            [b't', more @ ..] => (rest, _) = (more, out.push(b'\t')),
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..] => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = more;
            }
            [other, more @ ..] => (rest, _) = (more, out.push(*other)),
            [] => {}
        }
    }
    out
}

/// One side of a file: its path, its mode and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) path: &'a [u8],
    pub(super) mode: u32,
    pub(super) text: &'a str,
}

/// A diff, its hunks, and whether some were left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PatchText {
    pub(super) text: String,
    pub(super) hunks: Vec<((usize, usize), (usize, usize))>,
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) truncated: bool,
}

/// The patch of a file; a side is absent where there is no file. `only`: one hunk of it.
pub(super) fn patch(old: Option<Side<'_>>, new: Option<Side<'_>>, only: Option<usize>) -> PatchText {
    let mut out = PatchText::default();
    let (Some(from), Some(to)) = (old.or(new), new.or(old)) else { return out };
    let (a, b) = (header(b"a/", from.path), header(b"b/", to.path));
    let _ = writeln!(out.text, "diff --git {a} {b}");
    match (old, new) {
        (None, Some(new)) => drop(writeln!(out.text, "new file mode {:06o}", new.mode)),
        (Some(old), None) => drop(writeln!(out.text, "deleted file mode {:06o}", old.mode)),
        _ if from.mode != to.mode && only.is_none() => {
            let _ = writeln!(out.text, "old mode {:06o}\nnew mode {:06o}", from.mode, to.mode);
        }
        _ => {}
    }
    if from.path != to.path {
        let (from, to) = (header(b"", from.path), header(b"", to.path));
        let _ = writeln!(out.text, "rename from {from}\nrename to {to}");
    }
    let compared = diff(old.map_or("", |side| side.text), new.map_or("", |side| side.text));
    (out.added, out.removed) = (compared.added, compared.removed);
    let hunks = hunk_texts(&compared);
    if hunks.is_empty() {
        return out;
    }
    // A name with blanks ends where the tab is.
    let ended = |name: String| if name.contains(' ') { name + "\t" } else { name };
    let name = |side: Option<Side<'_>>, name: String| side.map_or_else(|| "/dev/null".to_owned(), |_| ended(name));
    let _ = writeln!(out.text, "--- {}\n+++ {}", name(old, a), name(new, b));
    for (at, HunkText { old, new, text }) in hunks.into_iter().enumerate() {
        if only.is_some_and(|only| only != at) {
            continue;
        }
        if out.text.len() + text.len() > DIFF_MAX && only.is_none() {
            out.truncated = true;
            break;
        }
        out.hunks.push((old, new));
        out.text.push_str(&text);
    }
    out
}

/// The new text with one hunk as it was in the old; `None` if there is no such hunk.
pub(super) fn without_hunk(old: &str, new: &str, hunk: usize) -> Option<String> {
    let compared = diff(old, new);
    let hunks = hunk_texts(&compared);
    let HunkText { old: (old_start, old_lines), new: (new_start, new_lines), .. } = hunks.into_iter().nth(hunk)?;
    // A side without lines names the line before it.
    let first = |start: usize, lines: usize| if lines == 0 { start } else { start - 1 };
    let (old_first, new_first) = (first(old_start, old_lines), first(new_start, new_lines));
    let (old, new) = (old.split_inclusive('\n'), new.split_inclusive('\n'));
    let before = new.clone().take(new_first);
    let back = old.skip(old_first).take(old_lines);
    Some(before.chain(back).chain(new.skip(new_first + new_lines)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_paths_are_quoted_and_read_back() {
        let names: [&[u8]; 7] =
            [b"a.rs", b"a b.rs", b"\"q\"", b"line\nbreak", b"esc\x1b[31m", b"no\xffutf8", "dünn".as_bytes()];
        for name in names {
            assert_eq!(unshown(&shown(name)), name, "{name:?}");
        }
        assert_eq!(header(b"a/", b"a\xff\nb"), "\"a/a\\377\\nb\"");
    }

    #[test]
    fn patch_of_one_hunk_undoes_only_that() {
        let old: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 3\n", "three\n").replace("line 30\n", "");
        assert_eq!(without_hunk(&old, &new, 0).unwrap(), old.replace("line 30\n", ""));
        assert_eq!(without_hunk(&old, &new, 1).unwrap(), old.replace("line 3\n", "three\n"));
        assert_eq!(without_hunk(&old, &new, 2), None);
        assert_eq!(without_hunk("", "a\nb", 0).unwrap(), "");
        assert_eq!(without_hunk("a\nb", "", 0).unwrap(), "a\nb");
    }

    #[test]
    fn patch_has_the_headers_of_git() {
        let side = |path: &'static str, mode, text| Some(Side { path: path.as_bytes(), mode, text });
        let added = patch(None, side("a b", 0o100_755, "x"), None);
        let text = "diff --git a/a b b/a b\nnew file mode 100755\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n";
        assert_eq!((added.text.as_str(), added.added, added.removed), (text, 1, 0));
        let moved = patch(side("a", 0o100_644, "x\n"), side("b", 0o100_644, "x\n"), None);
        assert_eq!(moved.text, "diff --git a/a b/b\nrename from a\nrename to b\n");
    }
}
