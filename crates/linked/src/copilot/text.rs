//! The agent's text, as it comes by pieces and then whole. Pure.
//!
//! Of each message it is known how much is shown. Where pieces were missed (a gateway was restarted), further ones are left out until the
//! text up to now, or the whole, is there.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};

/// Messages that stream at a time; the oldest is forgotten first.
const MESSAGES_MAX: usize = 16;
/// Messages remembered as complete; likewise.
const COMPLETE_MAX: usize = 64;
/// The name that the agent's thoughts before a message have here.
const THOUGHT: &str = "";

/// The messages that stream.
#[derive(Default)]
pub(super) struct StreamedText {
    shown: VecDeque<ShownText>,
    complete: VecDeque<String>,
}

/// The part of a message that is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ShownText {
    id: String,
    bytes: usize,
    /// FNV-1a of the text.
    hash: u64,
    /// Set once pieces were missed.
    #[serde(skip, default = "missed")]
    gap: bool,
}

/// Another gateway did not see what came meanwhile.
fn missed() -> bool {
    true
}

impl ShownText {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), bytes: 0, hash: FNV, gap: false }
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash = fnv(self.hash, text);
    }

    /// The part of a text that is not shown; `None` if the shown part is not its beginning.
    fn rest<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (start, rest) = text.split_at_checked(self.bytes)?;
        (fnv(FNV, start) == self.hash).then_some(rest)
    }
}

impl StreamedText {
    /// The shown parts of messages that are not complete.
    pub(super) fn saved(&self) -> Vec<ShownText> {
        self.shown.iter().filter(|shown| shown.bytes > 0).cloned().collect()
    }

    /// Goes on from what an earlier gateway had shown.
    pub(super) fn restored(saved: Vec<ShownText>) -> Self {
        Self { shown: saved.into(), complete: VecDeque::new() }
    }

    /// Pieces may be missed from now on.
    pub(super) fn interrupted(&mut self) {
        self.shown.iter_mut().for_each(|shown| shown.gap = true);
    }

    /// The turn is over: what has not come whole never will.
    pub(super) fn turn_ended(&mut self) {
        for shown in std::mem::take(&mut self.shown) {
            self.completed(shown.id);
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

    fn entry(&mut self, id: &str) -> Option<&mut ShownText> {
        self.shown.iter_mut().find(|shown| shown.id == id)
    }

    /// A message begins.
    pub(super) fn start(&mut self, id: &str) {
        if self.entry(id).is_some() || self.complete.iter().any(|complete| complete == id) {
            return;
        }
        if self.shown.len() >= MESSAGES_MAX {
            self.shown.pop_front();
        }
        self.shown.push_back(ShownText::new(id));
    }

    /// A piece of a message; whether to show it.
    pub(super) fn piece(&mut self, id: &str, text: &str) -> bool {
        let Some(shown) = self.entry(id).filter(|shown| !shown.gap && !text.is_empty()) else { return false };
        shown.add(text);
        true
    }

    /// A piece of the thoughts before a message; whether to show it. They begin without being announced.
    pub(super) fn thought(&mut self, text: &str) -> bool {
        self.start(THOUGHT);
        self.piece(THOUGHT, text)
    }

    /// The text of a message up to now: what of it to show.
    pub(super) fn up_to_now<'a>(&mut self, id: &str, text: &'a str) -> Option<&'a str> {
        self.start(id);
        let shown = self.entry(id)?;
        let rest = shown.rest(text)?;
        shown.gap = false;
        shown.add(rest);
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// A message is there as a whole: what of it to show.
    pub(super) fn whole<'a>(&mut self, id: &str, text: &'a str) -> Option<&'a str> {
        if self.complete.iter().any(|complete| complete == id) {
            return None;
        }
        let at = self.shown.iter().position(|shown| shown.id == id);
        let shown = at.and_then(|at| self.shown.remove(at));
        self.completed(id.to_owned());
        let rest = match shown {
            // White space at its end was cut off.
            Some(shown) if text.len() <= shown.bytes => None,
            // Of a text that is another than its pieces, all is shown again: nothing is lost.
            Some(shown) => Some(shown.rest(text).unwrap_or(text)),
            None => Some(text),
        };
        rest.filter(|rest| !rest.is_empty())
    }

    /// The thoughts before a message, as a whole: what of them to show.
    pub(super) fn whole_thought<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let at = self.shown.iter().position(|shown| shown.id == THOUGHT);
        let rest = match at.and_then(|at| self.shown.remove(at)) {
            // Several thoughts are joined in another way: those are shown already.
            Some(shown) => shown.rest(text).unwrap_or_default(),
            None => text,
        };
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// No more thoughts come before this message.
    pub(super) fn end_thought(&mut self) {
        self.shown.retain(|shown| shown.id != THOUGHT);
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
