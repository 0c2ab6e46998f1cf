//! The agent's text, which comes line by line and, a moment later, as a whole. Pure.
//!
//! A line is shown at once; the whole message adds what the lines lacked. Lines do not name their message in the
//! transcript: it is the first one that begins with them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::terminals::drafts;
use plexus_dialects::EventDraft;
use plexus_dialects::fnv::{FNV, fnv};
use plexus_protocol::Kind;

/// Maximum number of stored messages of each kind; above it the oldest is removed.
const MESSAGES_MAX: usize = 16;
/// Maximum number of stored bytes of a whole message, by which its lines are recognized.
const START_MAX: usize = 4 << 10;
/// Maximum number of lines held back because an earlier one is missing; further ones are shown with the whole message.
const HELD_MAX: usize = 64;
/// Maximum size of the lines held back, in bytes; further ones are shown with the whole message.
const HELD_BYTES: usize = 1 << 20;

/// One or several lines of a message.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TextLines {
    message_id: String,
    index: u64,
    delta: String,
}

impl TextLines {
    /// Returns the length of the lines, in bytes.
    pub(super) fn length(&self) -> usize {
        self.message_id.len() + self.delta.len()
    }
}

/// The messages of a turn, and those of earlier turns whose lines may still come: each line is reported by a hook of
/// its own, which may be slower than the transcript.
#[derive(Default)]
pub(super) struct LiveText {
    /// Messages with shown lines that have not come as a whole.
    messages: VecDeque<DisplayedLines>,
    /// The starts of messages that came as a whole without any line before.
    whole: VecDeque<String>,
    /// The ids of messages that are shown completely.
    complete: VecDeque<String>,
}

/// The part of a message that is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DisplayedLines {
    id: String,
    /// The index of the next line.
    next: u64,
    /// The length of the shown text, without white space at its start.
    bytes: usize,
    /// The FNV-1a hash of that text.
    hash: u64,
    /// Lines that came too early.
    #[serde(skip)]
    held: BTreeMap<u64, String>,
}

impl DisplayedLines {
    fn add(&mut self, text: &str) {
        let text = if self.bytes == 0 { text.trim_start() } else { text };
        self.bytes += text.len();
        self.hash = fnv(self.hash, text);
    }

    /// Returns the rest of a whole message that begins with these lines.
    fn rest<'a>(&self, whole: &'a str) -> Option<&'a str> {
        let (start, rest) = whole.trim_start().split_at_checked(self.bytes)?;
        (fnv(FNV, start) == self.hash).then_some(rest)
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= MESSAGES_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Returns the start of a text, as it is stored.
fn start_of(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.floor_char_boundary(START_MAX)]
}

impl LiveText {
    /// Returns the shown parts of messages that have not come as a whole.
    pub(super) fn saved(&self) -> Vec<DisplayedLines> {
        self.messages.iter().cloned().collect()
    }

    /// Continues from the lines that an earlier gateway process had shown.
    pub(super) fn restored(saved: Vec<DisplayedLines>) -> Self {
        Self { messages: saved.into(), ..Self::default() }
    }

    /// Ends the turn: further lines of its messages are not shown, and do not count as the beginning of another turn.
    pub(super) fn turn_ended(&mut self) {
        for message in std::mem::take(&mut self.messages) {
            push(&mut self.complete, message.id);
        }
    }

    /// Adds lines, and returns the events that show them.
    pub(super) fn lines(&mut self, lines: TextLines) -> Vec<EventDraft> {
        let TextLines { message_id: id, index, delta } = lines;
        if self.complete.contains(&id) {
            return Vec::new();
        }
        let known = self.messages.iter().position(|message| message.id == id);
        if index == 0 && known.is_none_or(|at| self.messages[at].next == 0) {
            let starts_with_delta = |whole: &String| whole.starts_with(start_of(&delta));
            if let Some(at) = self.whole.iter().position(starts_with_delta) {
                self.whole.remove(at);
                self.messages.retain(|message| message.id != id);
                push(&mut self.complete, id);
                return Vec::new();
            }
        }
        if known.is_none() {
            let message = DisplayedLines { id: id.clone(), next: 0, bytes: 0, hash: FNV, held: BTreeMap::new() };
            push(&mut self.messages, message);
        }
        let Some(message) = self.messages.iter_mut().find(|message| message.id == id) else { return Vec::new() };
        let held: usize = message.held.values().map(String::len).sum();
        let fits = index == message.next || (message.held.len() < HELD_MAX && held + delta.len() <= HELD_BYTES);
        if index < message.next || !fits {
            return Vec::new();
        }
        message.held.insert(index, delta);
        let mut drafts = Vec::new();
        while let Some(delta) = message.held.remove(&message.next) {
            message.next += 1;
            message.add(&delta);
            if !delta.is_empty() {
                drafts.push(drafts::chunk(Kind::AgentMessageChunk, &delta, Some(&message.id), None));
            }
        }
        drafts
    }

    /// Adds a whole message, and returns the event for the part that is not shown yet.
    pub(super) fn whole(&mut self, text: String, line: &Bytes) -> Option<EventDraft> {
        let found = self.messages.iter().enumerate().find_map(|(at, message)| {
            (message.next > 0).then(|| message.rest(&text)).flatten().map(|rest| (at, rest.to_owned()))
        });
        if let Some((at, rest)) = found {
            let id = self.messages.remove(at).map(|message| message.id).unwrap_or_default();
            let draft =
                (!rest.is_empty()).then(|| drafts::chunk(Kind::AgentMessageChunk, &rest, Some(&id), Some(line)));
            push(&mut self.complete, id);
            return draft;
        }
        let draft = drafts::chunk(Kind::AgentMessageChunk, &text, None, Some(line));
        push(&mut self.whole, start_of(&text).to_owned());
        Some(draft)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn text(draft: &EventDraft) -> String {
        let body: Value = serde_json::from_slice(&draft.body).unwrap();
        body["content"]["text"].as_str().unwrap().to_owned()
    }

    fn line(id: &str, index: u64, delta: &str) -> TextLines {
        TextLines { message_id: id.into(), index, delta: delta.into() }
    }

    #[test]
    fn live_text_shows_each_part_once_whatever_comes_first() {
        let mut live = LiveText::default();
        let line_of = Bytes::from_static(b"{}");
        // Lines, then the whole.
        assert_eq!(text(&live.lines(line("a", 0, "one\n"))[0]), "one\n");
        assert_eq!(text(&live.whole("one\ntwo".into(), &line_of).unwrap()), "two");
        assert!(live.lines(line("a", 1, "two")).is_empty(), "it is shown already");
        // The whole, then its lines.
        assert_eq!(text(&live.whole("three\nfour".into(), &line_of).unwrap()), "three\nfour");
        assert!(live.lines(line("b", 0, "three\n")).is_empty() && live.lines(line("b", 1, "four")).is_empty());
        // A line is missing: nothing is shown out of order, and the whole has the rest.
        assert_eq!(live.lines(line("c", 0, "five\n")).len(), 1);
        assert!(live.lines(line("c", 2, "seven")).is_empty());
        assert_eq!(text(&live.whole("five\nsix\nseven".into(), &line_of).unwrap()), "six\nseven");
        // Lines that come after the end of the turn, of messages that came whole, in part, or not at all.
        assert_eq!(text(&live.whole("ten".into(), &line_of).unwrap()), "ten");
        assert_eq!(live.lines(line("e", 0, "eleven\n")).len(), 1);
        live.turn_ended();
        assert!(live.lines(line("f", 0, "ten")).is_empty() && live.lines(line("e", 1, "twelve")).is_empty());
        assert!(live.lines(line("c", 3, "late")).is_empty());
        assert_eq!(live.lines(line("g", 0, "of the next turn")).len(), 1);
        // Of a long message only the start is stored; its first line may be longer.
        let long = "é".repeat(START_MAX);
        assert_eq!(text(&live.whole(long.clone(), &line_of).unwrap()), long);
        assert!(live.whole.iter().all(|start| start.len() <= START_MAX));
        assert!(live.lines(line("h", 0, &long)).is_empty());
        // Another gateway process continues.
        assert_eq!(live.lines(line("d", 0, "  eight\n")).len(), 1);
        let mut next = LiveText::restored(serde_json::from_value(serde_json::to_value(live.saved()).unwrap()).unwrap());
        assert_eq!(text(&next.whole("eight\nnine".into(), &line_of).unwrap()), "nine");
    }

    proptest! {
        #[test]
        fn live_text_is_complete_in_any_order(
            parts in prop::collection::vec("[a-c \u{e9}]{0,4}\n", 1..6),
            order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(),
            lost in prop::collection::vec(any::<bool>(), 6),
            whole_at in 0..7usize,
        ) {
            let whole: String = parts.concat();
            let (mut live, mut out) = (LiveText::default(), String::new());
            for step in 0..=parts.len().max(whole_at) {
                if step == whole_at.min(parts.len()) {
                    out.extend(live.whole(whole.clone(), &Bytes::new()).iter().map(text));
                }
                let at = order.iter().copied().filter(|at| *at < parts.len()).nth(step);
                if let Some(at) = at.filter(|at| !lost[*at]) {
                    out.extend(live.lines(line("m", at as u64, &parts[at])).iter().map(text));
                }
            }
            // Nothing is lost; what came late is shown once.
            prop_assert_eq!(out.trim_start(), whole.trim_start());
        }
    }
}
