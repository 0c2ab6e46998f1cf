//! The agent's text, which comes in pieces and then as a whole. Pure.
//!
//! For each message the length of the shown text is known. If pieces were missed (because a gateway was restarted),
//! further ones are left out until the text so far, or the whole text, comes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};

/// Maximum number of messages in progress; above it the oldest is removed.
const MESSAGES_MAX: usize = 16;
/// Maximum number of messages stored as complete; above it the oldest is removed.
const COMPLETE_MAX: usize = 64;
/// The name of the agent's thoughts before a message.
const THOUGHT: &str = "";

/// The messages in progress.
#[derive(Default)]
pub(super) struct StreamedText {
    messages: VecDeque<DisplayedText>,
    complete: VecDeque<String>,
}

/// The part of a message that is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DisplayedText {
    id: String,
    bytes: usize,
    /// The FNV-1a hash of the text.
    hash: u64,
    /// `true` once pieces were missed.
    #[serde(skip, default = "missed")]
    gap: bool,
}

/// Returns `true`, the default for restored state: the gateway did not see the pieces that came meanwhile.
fn missed() -> bool {
    true
}

impl DisplayedText {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), bytes: 0, hash: FNV, gap: false }
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash = fnv(self.hash, text);
    }

    /// Returns the part of a text that is not shown; `None` if the shown part is not its beginning.
    fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (start, rest) = text.split_at_checked(self.bytes)?;
        (fnv(FNV, start) == self.hash).then_some(rest)
    }
}

impl StreamedText {
    /// Returns the shown parts of messages that are not complete.
    pub(super) fn saved(&self) -> Vec<DisplayedText> {
        self.messages.iter().filter(|message| message.bytes > 0).cloned().collect()
    }

    /// Continues from the text that an earlier gateway process had shown.
    pub(super) fn restored(saved: Vec<DisplayedText>) -> Self {
        Self { messages: saved.into(), complete: VecDeque::new() }
    }

    /// Records that pieces may be missed from now on.
    pub(super) fn interrupted(&mut self) {
        self.messages.iter_mut().for_each(|message| message.gap = true);
    }

    /// Ends the turn: messages that have not come as a whole never will.
    pub(super) fn turn_ended(&mut self) {
        for message in std::mem::take(&mut self.messages) {
            self.completed(message.id);
        }
    }

    fn completed(&mut self, id: String) {
        if id == THOUGHT || self.complete.contains(&id) {
            return;
        }
        if self.complete.len() >= COMPLETE_MAX {
            self.complete.pop_front();
        }
        self.complete.push_back(id);
    }

    fn entry(&mut self, id: &str) -> Option<&mut DisplayedText> {
        self.messages.iter_mut().find(|message| message.id == id)
    }

    /// Begins a message.
    pub(super) fn start(&mut self, id: &str) {
        if self.entry(id).is_some() || self.complete.iter().any(|complete| complete == id) {
            return;
        }
        if self.messages.len() >= MESSAGES_MAX {
            self.messages.pop_front();
        }
        self.messages.push_back(DisplayedText::new(id));
    }

    /// Adds a piece of a message; returns whether to show it.
    pub(super) fn piece(&mut self, id: &str, text: &str) -> bool {
        let Some(message) = self.entry(id).filter(|message| !message.gap && !text.is_empty()) else { return false };
        message.add(text);
        true
    }

    /// Adds a piece of the thoughts before a message; returns whether to show it. Thoughts begin without an announcement.
    pub(super) fn thought(&mut self, text: &str) -> bool {
        self.start(THOUGHT);
        self.piece(THOUGHT, text)
    }

    /// Adds the text of a message so far, and returns the part to show.
    pub(super) fn up_to_now<'a>(&mut self, id: &str, text: &'a str) -> Option<&'a str> {
        self.start(id);
        let message = self.entry(id)?;
        let rest = message.rest(text)?;
        message.gap = false;
        message.add(rest);
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Adds a whole message, and returns the part to show.
    pub(super) fn whole<'a>(&mut self, id: &str, text: &'a str) -> Option<&'a str> {
        if self.complete.iter().any(|complete| complete == id) {
            return None;
        }
        let at = self.messages.iter().position(|message| message.id == id);
        let message = at.and_then(|at| self.messages.remove(at));
        self.completed(id.to_owned());
        let rest = match message {
            // White space at the end was cut off.
            Some(message) if text.len() <= message.bytes => None,
            // A text that differs from its pieces is shown again as a whole, so that nothing is lost.
            Some(message) => Some(message.rest(text).unwrap_or(text)),
            None => Some(text),
        };
        rest.filter(|rest| !rest.is_empty())
    }

    /// Adds the whole thoughts before a message, and returns the part to show.
    pub(super) fn whole_thought<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let at = self.messages.iter().position(|message| message.id == THOUGHT);
        let rest = match at.and_then(|at| self.messages.remove(at)) {
            // Several thoughts are joined in another way: they are shown already.
            Some(message) => message.rest(text).unwrap_or_default(),
            None => text,
        };
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Ends the thoughts: no more come before this message.
    pub(super) fn end_thought(&mut self) {
        self.messages.retain(|message| message.id != THOUGHT);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn again(text: &StreamedText) -> StreamedText {
        StreamedText::restored(serde_json::from_value(serde_json::to_value(text.saved()).unwrap()).unwrap())
    }

    #[test]
    fn copilot_text_is_shown_once_whatever_is_missed() {
        let mut text = StreamedText::default();
        assert!(!text.piece("a", "no start"), "its start was missed");
        assert_eq!(text.whole("a", "no start was seen"), Some("no start was seen"));
        assert_eq!(text.whole("a", "no start was seen"), None, "twice");
        text.start("b");
        assert!(text.piece("b", "one ") && text.piece("b", "two "));
        assert_eq!(text.whole("b", "one two"), None, "white space at the end is cut off");
        text.start("c");
        assert!(text.piece("c", "one "));
        let mut next = again(&text);
        assert!(!next.piece("c", "three "), "two was missed");
        assert_eq!(next.up_to_now("c", "one two three "), Some("two three "));
        assert!(next.piece("c", "four"));
        assert_eq!(next.whole("c", "one two three four"), None);
        assert_eq!(next.up_to_now("c", "one"), None, "it is complete");
        let mut other = again(&text);
        assert_eq!(other.whole("c", "one two three four"), Some("two three four"));
        text.turn_ended();
        assert_eq!(text.whole("c", "one two"), None, "the turn was stopped");
    }

    #[test]
    fn copilot_thoughts_are_shown_once() {
        let mut text = StreamedText::default();
        assert!(text.thought("a ") && text.thought("b "));
        assert_eq!(text.whole_thought("a b c"), Some("c"));
        assert_eq!(text.whole_thought("x"), Some("x"));
        assert!(text.thought("a "));
        assert_eq!(text.whole_thought("other"), None);
    }

    proptest! {
        #[test]
        fn copilot_text_is_whole_wherever_a_gateway_is_killed(
            pieces in prop::collection::vec("[a-c \u{e9}]{1,4}", 1..8),
            killed in prop::collection::vec(any::<(bool, bool)>(), 8),
        ) {
            let (mut text, mut out) = (StreamedText::default(), String::new());
            text.start("m");
            for (at, piece) in pieces.iter().enumerate() {
                let (dies, reports) = killed[at];
                if dies {
                    text = again(&text);
                } else if text.piece("m", piece) {
                    out.push_str(piece);
                }
                if reports {
                    let now = pieces[..=at].concat();
                    out.push_str(text.up_to_now("m", &now).unwrap_or_default());
                }
            }
            let whole = pieces.concat();
            out.push_str(text.whole("m", &whole).unwrap_or_default());
            prop_assert_eq!(out, whole);
        }
    }
}
