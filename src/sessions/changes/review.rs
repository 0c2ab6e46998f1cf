//! Comments on changed lines, as one prompt.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plexus_protocol::SessionId;
use plexus_workspace::{Comparison, read_path};

use super::FolderCall;
use super::view::ChangesError;

/// Maximum number of lines that one comment quotes; further ones are counted.
const QUOTED: usize = 20;
/// Maximum length of a quoted line, in characters; the rest is left out.
const LINE: usize = 300;

/// A comment on lines of a file.
#[derive(Clone, Debug)]
pub struct ReviewComment {
    /// The file.
    pub path: String,
    /// `true` if the lines are those before the change.
    pub old: bool,
    /// The first line, from 1.
    pub line: usize,
    /// The last line.
    pub end_line: usize,
    /// The comment.
    pub text: String,
}

/// Both sides of a file.
struct Texts {
    old: String,
    new: String,
}

/// Makes the prompt of a review.
pub(super) fn prompt(
    call: &FolderCall,
    session: &SessionId,
    first: &str,
    comments: &[ReviewComment],
) -> Result<String, ChangesError> {
    let mut texts: BTreeMap<&str, Option<Texts>> = BTreeMap::new();
    let (found, store) = (call.changes(session, None)?, call.store()?);
    let read_texts = |path: &str| {
        let file = &found.at(&read_path(path)).ok()?.file;
        matches!(file.compared, Comparison::Text | Comparison::Uncounted).then_some(())?;
        let content = |side: Option<plexus_workspace::FileSide>| match side {
            Some(side) => Some(String::from_utf8_lossy(&store.content(side).ok()?).into_owned()),
            None => Some(String::new()),
        };
        Some(Texts { old: content(file.old)?, new: content(file.new)? })
    };
    for comment in comments {
        texts.entry(&comment.path).or_insert_with(|| read_texts(&comment.path));
    }
    Ok(composed(first, comments, &texts))
}

fn composed(first: &str, comments: &[ReviewComment], texts: &BTreeMap<&str, Option<Texts>>) -> String {
    let mut out = match first.trim() {
        "" => "I looked at your changes. Please work on these comments.".to_owned(),
        first => first.to_owned(),
    };
    let mut ordered: Vec<&ReviewComment> = comments.iter().collect();
    ordered.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let mut path = None;
    for comment in ordered {
        if path != Some(&comment.path) {
            let _ = write!(out, "\n\n## {}", comment.path.escape_debug());
            path = Some(&comment.path);
        }
        let lines = match comment.line == comment.end_line {
            true => format!("Line {}", comment.line),
            false => format!("Lines {} to {}", comment.line, comment.end_line),
        };
        let side = if comment.old { " (as it was before)" } else { "" };
        let _ = write!(out, "\n\n{lines}{side}:\n");
        let text = texts.get(comment.path.as_str()).and_then(Option::as_ref);
        let text = text.map_or("", |texts| if comment.old { &texts.old } else { &texts.new });
        let count = comment.end_line.saturating_sub(comment.line) + 1;
        let quoted: Vec<&str> = text.lines().skip(comment.line - 1).take(count.min(QUOTED)).collect();
        if quoted.is_empty() {
            out.push_str("(this line is not there any more)\n");
        }
        for line in &quoted {
            let line: String = line.chars().take(LINE).collect();
            let _ = writeln!(out, "> {line}");
        }
        if count > QUOTED {
            let _ = writeln!(out, "> … and {} more lines", count - QUOTED);
        }
        let _ = write!(out, "\n{}", comment.text.trim());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn review_is_one_prompt_by_file_and_line() {
        let comment = |path: &str, old, line, end_line, text: &str| ReviewComment {
            path: path.into(),
            old,
            line,
            end_line,
            text: text.into(),
        };
        let comments = [
            comment("b.rs", false, 2, 3, "Too long.\n"),
            comment("a.rs", false, 99, 99, "Where did it go?"),
            comment("b.rs", true, 1, 1, "This was better."),
        ];
        let of = |old: &str, new: &str| Some(Texts { old: old.into(), new: new.into() });
        let texts = BTreeMap::from([("a.rs", of("", "x\n")), ("b.rs", of("old\n", "one\ntwo\nthree\n"))]);
        let expected = "Look:\n\n## a.rs\n\nLine 99:\n(this line is not there any more)\n\nWhere did it go?\n\n## b.rs\n\n\
                        Line 1 (as it was before):\n> old\n\nThis was better.\n\nLines 2 to 3:\n> two\n> three\n\nToo long.";
        assert_eq!(composed("Look:", &comments, &texts), expected);
        let removed = BTreeMap::new();
        assert!(composed("", &comments, &removed).starts_with("I looked at your changes."));
    }
}
