//! What is kept of a session's changes on this machine until it is sent: comments on lines, and the files that were viewed. Pure.

use serde_json::{Value, json};

/// Most comments of one review; as the gateway takes.
pub(crate) const COMMENTS_MAX: usize = 200;
/// Most characters of a comment.
pub(crate) const COMMENT_CHARS: usize = 10_000;
/// Most characters of the line that the prompt begins with.
const FIRST_CHARS: usize = 2_000;
/// Most marks of one session; the oldest are dropped.
const VIEWED_MAX: usize = 3_000;

/// A comment that was not sent yet. Its lines are of one side of one version of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedComment {
    /// Its number on this screen.
    pub(crate) id: u64,
    pub(crate) path: String,
    /// `true` if its lines are those from before.
    pub(crate) old: bool,
    pub(crate) line: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
    /// The version of the file.
    pub(crate) digest: String,
}

impl PlacedComment {
    /// The place of the comment as text.
    pub(crate) fn place(&self) -> String {
        place_text(self.old, self.line, self.end)
    }

    fn read(value: &Value, id: u64) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let number = |name: &str| value[name].as_u64().and_then(|n| usize::try_from(n).ok());
        let (line, end) = (number("line")?, number("end_line")?);
        let known = line > 0 && end >= line;
        known.then_some(Self {
            id,
            path: text("path")?,
            old: value["side"] == "old",
            line,
            end,
            text: text("text")?,
            digest: text("digest")?,
        })
    }

    fn wire(&self) -> Value {
        let side = if self.old { "old" } else { "new" };
        json!({ "path": self.path, "side": side, "line": self.line, "end_line": self.end, "text": self.text })
    }
}

/// The lines of a comment, in words.
pub(crate) fn place_text(old: bool, line: usize, end: usize) -> String {
    match (old, line == end) {
        (true, true) => format!("removed line {line}"),
        (true, false) => format!("removed lines {line}–{end}"),
        (false, true) => format!("line {line}"),
        (false, false) => format!("lines {line}–{end}"),
    }
}

/// A review that was not sent yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReviewDraft {
    pub(crate) comments: Vec<PlacedComment>,
    /// The first line of the prompt.
    pub(crate) first: String,
    /// The versions of files that were viewed, oldest mark first: path and digest.
    viewed: Vec<(String, String)>,
    next: u64,
}

impl ReviewDraft {
    pub(crate) fn read(value: &Value) -> Self {
        let mut out = Self::default();
        for one in value["comments"].as_array().into_iter().flatten().take(COMMENTS_MAX) {
            out.comments.extend(PlacedComment::read(one, out.next));
            out.next += 1;
        }
        out.first = value["first"].as_str().unwrap_or_default().chars().take(FIRST_CHARS).collect();
        let marks = value["viewed"].as_array().into_iter().flatten().take(VIEWED_MAX);
        out.viewed = marks.filter_map(|one| Some((one[0].as_str()?.to_owned(), one[1].as_str()?.to_owned()))).collect();
        out
    }

    /// The stored form; null if there is nothing to store.
    pub(crate) fn keep(&self) -> Value {
        if self.comments.is_empty() && self.viewed.is_empty() && self.first.is_empty() {
            return Value::Null;
        }
        let comments = self.comments.iter().map(|one| {
            let mut stored = one.wire();
            stored["digest"] = one.digest.clone().into();
            stored
        });
        json!({ "comments": comments.collect::<Vec<_>>(), "first": self.first, "viewed": self.viewed })
    }

    /// The body of the request, of which the gateway makes one prompt.
    pub(crate) fn wire(&self) -> Value {
        let mut body = json!({ "comments": self.comments.iter().map(PlacedComment::wire).collect::<Vec<_>>() });
        if !self.first.trim().is_empty() {
            body["text"] = self.first.trim().into();
        }
        body
    }

    /// Sets the line that the prompt begins with.
    pub(crate) fn set_first(&mut self, text: &str) {
        self.first = text.chars().take(FIRST_CHARS).collect();
    }

    /// The comments of a file that end at a line.
    pub(crate) fn at(&self, path: &str, place: (bool, usize)) -> impl Iterator<Item = &PlacedComment> {
        self.comments.iter().filter(move |one| (one.old, one.end) == place && one.path == path)
    }

    pub(crate) fn of(&self, path: &str) -> usize {
        self.comments.iter().filter(|one| one.path == path).count()
    }

    /// Adds a comment, or changes the one with this number. Without a text it is dropped.
    pub(crate) fn put(&mut self, mut comment: PlacedComment, id: Option<u64>) {
        comment.text = comment.text.trim().chars().take(COMMENT_CHARS).collect();
        match id {
            Some(id) if comment.text.is_empty() => self.comments.retain(|one| one.id != id),
            Some(id) => {
                if let Some(one) = self.comments.iter_mut().find(|one| one.id == id) {
                    *one = PlacedComment { id, ..comment };
                }
            }
            None if comment.text.is_empty() => {}
            None => {
                self.comments.push(PlacedComment { id: self.next, ..comment });
                self.next += 1;
            }
        }
    }

    /// These comments were sent, after this first line.
    pub(crate) fn sent(&mut self, ids: &[u64], first: &str) {
        self.comments.retain(|one| !ids.contains(&one.id));
        if self.first == first {
            self.first.clear();
        }
    }

    /// Returns whether this version of a file was viewed; `None` if none was.
    pub(crate) fn viewed(&self, path: &str, digest: &str) -> Option<bool> {
        self.viewed.iter().find(|(one, _)| one == path).map(|(_, seen)| seen == digest)
    }

    /// Marks a version of a file as viewed, or takes the mark away; whether it has one now.
    pub(crate) fn mark(&mut self, path: &str, digest: &str) -> bool {
        let was = self.viewed(path, digest) == Some(true);
        self.viewed.retain(|(one, _)| one != path);
        if !was {
            self.viewed.push((path.to_owned(), digest.to_owned()));
            let excess = self.viewed.len().saturating_sub(VIEWED_MAX);
            self.viewed.drain(..excess);
        }
        !was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(path: &str, old: bool, line: usize, end: usize, text: &str) -> PlacedComment {
        PlacedComment { id: 0, path: path.into(), old, line, end, text: text.into(), digest: "d".into() }
    }

    #[test]
    fn review_draft_is_kept_as_it_was() {
        let mut draft = ReviewDraft::default();
        assert_eq!(draft.keep(), Value::Null);
        draft.put(comment("a", true, 3, 3, " why? "), None);
        draft.put(comment("b", false, 4, 6, "better"), None);
        draft.put(comment("b", false, 9, 9, "  "), None);
        draft.set_first("Look:");
        assert!(draft.mark("a", "d1"));
        let again = ReviewDraft::read(&draft.keep());
        assert_eq!(again, draft);
        let wire = json!({ "text": "Look:", "comments": [
            { "path": "a", "side": "old", "line": 3, "end_line": 3, "text": "why?" },
            { "path": "b", "side": "new", "line": 4, "end_line": 6, "text": "better" }] });
        assert_eq!(draft.wire(), wire);
        assert_eq!(
            draft.comments.iter().map(PlacedComment::place).collect::<Vec<_>>(),
            ["removed line 3", "lines 4–6"]
        );
        for odd in
            [json!(null), json!({ "comments": [{}, { "path": "a", "line": 0, "end_line": 0 }], "viewed": [1, ["a"]] })]
        {
            assert_eq!(ReviewDraft::read(&odd).keep(), Value::Null, "{odd}");
        }
    }

    #[test]
    fn review_draft_keeps_what_was_added_while_it_was_sent() {
        let mut draft = ReviewDraft::default();
        draft.put(comment("a", false, 1, 1, "one"), None);
        let ids: Vec<u64> = draft.comments.iter().map(|one| one.id).collect();
        draft.put(comment("a", false, 2, 2, "two"), None);
        draft.put(comment("a", false, 2, 2, "two, better"), Some(1));
        draft.set_first("more");
        draft.sent(&ids, "");
        assert_eq!((draft.comments.len(), &*draft.comments[0].text, &*draft.first), (1, "two, better", "more"));
        draft.put(comment("a", false, 2, 2, ""), Some(1));
        assert!(draft.comments.is_empty(), "an empty text drops a comment");
    }

    #[test]
    fn review_draft_marks_one_version_of_a_file() {
        let mut draft = ReviewDraft::default();
        assert_eq!(draft.viewed("a", "1"), None);
        draft.mark("a", "1");
        assert_eq!((draft.viewed("a", "1"), draft.viewed("a", "2")), (Some(true), Some(false)));
        assert!(draft.mark("a", "2") && !draft.mark("a", "2"));
        for n in 0..VIEWED_MAX + 5 {
            draft.mark(&n.to_string(), "1");
        }
        assert_eq!((draft.viewed.len(), draft.viewed("4", "1")), (VIEWED_MAX, None));
    }
}
