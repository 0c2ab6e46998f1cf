//! The review of a session's changes, stored on this machine until it is sent: comments on lines, and the viewed files. Pure.

use plexus_protocol::api::changes::{ChangesReview, DiffSide, LineComment};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Maximum number of comments of one review; the gateway's own limit.
pub(crate) const COMMENTS_MAX: usize = 200;
/// Maximum length of a comment, in characters.
pub(crate) const COMMENT_CHARS: usize = 10_000;
/// Maximum length of the line that the prompt begins with, in characters.
const FIRST_CHARS: usize = 2_000;
/// Maximum number of viewed files of one session; the oldest are dropped.
const VIEWED_MAX: usize = 3_000;

/// A comment that was not sent yet. Its lines belong to one side of one version of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DraftComment {
    /// The number of the comment on this screen.
    pub(crate) id: u64,
    pub(crate) path: String,
    /// `true` if its lines are those of the old side.
    pub(crate) old: bool,
    pub(crate) line: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
    /// The version of the file.
    pub(crate) digest: String,
}

impl DraftComment {
    /// The place of the comment as text.
    pub(crate) fn location(&self) -> String {
        location_text(self.old, self.line, self.end)
    }

    fn restore(stored: &StoredComment, id: u64) -> Option<Self> {
        let StoredComment { path, side, line, end_line, text, digest } = stored.clone();
        let is_range = line > 0 && end_line >= line;
        is_range.then_some(Self { id, path, old: side == DiffSide::Old, line, end: end_line, text, digest })
    }

    fn side(&self) -> DiffSide {
        if self.old { DiffSide::Old } else { DiffSide::New }
    }

    fn to_stored(&self) -> StoredComment {
        let Self { path, line, end, text, digest, .. } = self.clone();
        StoredComment { path, side: self.side(), line, end_line: end, text, digest }
    }

    fn to_line_comment(&self) -> LineComment {
        let Self { path, line, end, text, .. } = self.clone();
        LineComment { path, side: self.side(), line, end_line: Some(end), text }
    }
}

/// The lines of a comment as text.
pub(crate) fn location_text(old: bool, line: usize, end: usize) -> String {
    match (old, line == end) {
        (true, true) => format!("removed line {line}"),
        (true, false) => format!("removed lines {line}–{end}"),
        (false, true) => format!("line {line}"),
        (false, false) => format!("lines {line}–{end}"),
    }
}

/// A comment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredComment {
    path: String,
    side: DiffSide,
    line: usize,
    end_line: usize,
    text: String,
    digest: String,
}

/// A review as it is stored. Elements that cannot be read are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredReview {
    #[serde(default, deserialize_with = "readable")]
    comments: Vec<StoredComment>,
    #[serde(default)]
    first: String,
    #[serde(default, deserialize_with = "readable")]
    viewed: Vec<(String, String)>,
}

/// The elements of a list that can be read.
pub(crate) fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(list: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<Box<RawValue>>::deserialize(list)?;
    Ok(all.iter().filter_map(|element| serde_json::from_str(element.get()).ok()).collect())
}

/// A review that was not sent yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReviewDraft {
    pub(crate) comments: Vec<DraftComment>,
    /// The first line of the prompt.
    pub(crate) first: String,
    /// The versions of files that were viewed, oldest mark first: path and digest.
    viewed: Vec<(String, String)>,
    next: u64,
}

impl ReviewDraft {
    pub(crate) fn restore(stored: &StoredReview) -> Self {
        let mut out = Self::default();
        for one in stored.comments.iter().take(COMMENTS_MAX) {
            out.comments.extend(DraftComment::restore(one, out.next));
            out.next += 1;
        }
        out.first = stored.first.chars().take(FIRST_CHARS).collect();
        out.viewed = stored.viewed.iter().take(VIEWED_MAX).cloned().collect();
        out
    }

    /// The stored form; `None` if there is nothing to store.
    pub(crate) fn to_stored(&self) -> Option<StoredReview> {
        if self.comments.is_empty() && self.viewed.is_empty() && self.first.is_empty() {
            return None;
        }
        let comments = self.comments.iter().map(DraftComment::to_stored).collect();
        Some(StoredReview { comments, first: self.first.clone(), viewed: self.viewed.clone() })
    }

    /// The review that is sent, of which the gateway makes one prompt.
    pub(crate) fn to_review(&self) -> ChangesReview {
        let text = Some(self.first.trim()).filter(|text| !text.is_empty());
        ChangesReview {
            comments: self.comments.iter().map(DraftComment::to_line_comment).collect(),
            text: text.map(str::to_owned),
        }
    }

    /// Sets the line that the prompt begins with.
    pub(crate) fn set_first(&mut self, text: &str) {
        self.first = text.chars().take(FIRST_CHARS).collect();
    }

    /// The comments of a file that end at a line.
    pub(crate) fn at(&self, path: &str, end: (bool, usize)) -> impl Iterator<Item = &DraftComment> {
        self.comments.iter().filter(move |one| (one.old, one.end) == end && one.path == path)
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.comments.iter().filter(|one| one.path == path).count()
    }

    /// Adds a comment, or changes the one with this number. A comment without text is dropped.
    pub(crate) fn put(&mut self, mut comment: DraftComment, id: Option<u64>) {
        comment.text = comment.text.trim().chars().take(COMMENT_CHARS).collect();
        match id {
            Some(id) if comment.text.is_empty() => self.comments.retain(|one| one.id != id),
            Some(id) => {
                if let Some(one) = self.comments.iter_mut().find(|one| one.id == id) {
                    *one = DraftComment { id, ..comment };
                }
            }
            None if comment.text.is_empty() => {}
            None => {
                self.comments.push(DraftComment { id: self.next, ..comment });
                self.next += 1;
            }
        }
    }

    /// Removes sent comments, and the first line if it is still the one that was sent.
    pub(crate) fn sent(&mut self, ids: &[u64], first: &str) {
        self.comments.retain(|one| !ids.contains(&one.id));
        if self.first == first {
            self.first.clear();
        }
    }

    /// Returns whether this version of a file was viewed; `None` if no version was.
    pub(crate) fn viewed(&self, path: &str, digest: &str) -> Option<bool> {
        self.viewed.iter().find(|(one, _)| one == path).map(|(_, seen)| seen == digest)
    }

    /// Marks a version of a file as viewed, or removes the mark; returns whether it has one now.
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
    use serde_json::json;

    use super::*;

    fn comment(path: &str, old: bool, line: usize, end: usize, text: &str) -> DraftComment {
        DraftComment { id: 0, path: path.into(), old, line, end, text: text.into(), digest: "d".into() }
    }

    #[test]
    fn review_draft_is_kept_as_it_was() {
        let mut draft = ReviewDraft::default();
        assert_eq!(draft.to_stored(), None);
        draft.put(comment("a", true, 3, 3, " why? "), None);
        draft.put(comment("b", false, 4, 6, "better"), None);
        draft.put(comment("b", false, 9, 9, "  "), None);
        draft.set_first("Look:");
        assert!(draft.mark("a", "d1"));
        let again = ReviewDraft::restore(&draft.to_stored().unwrap());
        assert_eq!(again, draft);
        let wire = json!({ "text": "Look:", "comments": [
            { "path": "a", "side": "old", "line": 3, "end_line": 3, "text": "why?" },
            { "path": "b", "side": "new", "line": 4, "end_line": 6, "text": "better" }] });
        assert_eq!(json!(draft.to_review()), wire);
        assert_eq!(
            draft.comments.iter().map(DraftComment::location).collect::<Vec<_>>(),
            ["removed line 3", "lines 4–6"]
        );
        let comment = json!({ "path": "a", "side": "new", "line": 0, "end_line": 0, "text": "x", "digest": "d" });
        for odd in [json!({}), json!({ "comments": [{}, comment], "viewed": [1, ["a"]] })] {
            let stored: StoredReview = serde_json::from_value(odd.clone()).unwrap();
            assert_eq!(ReviewDraft::restore(&stored).to_stored(), None, "{odd}");
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
