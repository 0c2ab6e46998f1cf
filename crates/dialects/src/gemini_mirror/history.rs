//! The messages of a Gemini UI, and the detection of the new part of its history. The history has no identifiers, so texts are compared.

use std::collections::VecDeque;

use serde::Deserialize;

/// Maximum number of messages requested, stored and compared; of a longer history the end is used.
pub(super) const TURNS_MAX: usize = 256;

/// Maximum size of the stored text, in bytes; the oldest is removed first.
const TEXT_MAX: usize = 4 * 1024 * 1024;

/// The author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Model,
}

/// A turn of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) text: String,
}

/// Turns in order. Consecutive pieces of the model are one turn: the UI may show a message in several pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    turns: VecDeque<Turn>,
    bytes: usize,
    /// The ends of the pieces of the first turn.
    pieces: Vec<usize>,
    /// The number of messages that the turns were read from.
    read: usize,
}

/// Maximum number of stored pieces of the first turn; with more, the history may repeat some.
const PIECES_MAX: usize = 1024;

impl Turns {
    /// Reads the reply to `GET /history`.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let all: Vec<Turn> = plexus_protocol::object::from_slice(body).ok()?;
        let mut turns = Self { read: all.len(), ..Self::default() };
        all.iter().for_each(|turn| turns.add(turn.role, &turn.text));
        Some(turns)
    }

    pub(super) fn add(&mut self, role: Role, text: &str) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        match self.turns.back_mut() {
            Some(last) if role == Role::Model && last.role == Role::Model => last.text.push_str(text),
            _ => self.turns.push_back(Turn { role, text: text.to_owned() }),
        }
        if self.turns.len() == 1 && self.pieces.len() < PIECES_MAX {
            self.pieces.push(self.turns[0].text.len());
        }
        while self.turns.len() > TURNS_MAX || (self.bytes > TEXT_MAX && self.turns.len() > 1) {
            let Some(old) = self.turns.pop_front() else { break };
            self.bytes -= old.text.len();
        }
    }

    /// Returns whether there are as many messages as were requested, so that there may be older ones.
    pub(super) fn full(&self) -> bool {
        self.read >= TURNS_MAX
    }

    /// Returns the part of `history` after everything known, and before the `live` messages received meanwhile. Its
    /// first turn may be the rest of the last known message.
    pub(super) fn missed(&self, history: &Self, live: &Self) -> Vec<Turn> {
        let mut new = self.after(history);
        live.cut(&mut new);
        new
    }

    /// Returns the part of `history` after everything known.
    fn after(&self, history: &Self) -> Vec<Turn> {
        // The longest common subsequence is used, since the UI may omit some of what it mirrored. Of several possible
        // ends the first is used, since everything known is complete from the start.
        let mut row = vec![0usize; history.turns.len() + 1];
        for known in &self.turns {
            let mut before = 0;
            for (at, turn) in history.turns.iter().enumerate() {
                let count = row[at + 1];
                row[at + 1] = if begins(turn, known) { before + 1 } else { count.max(row[at]) };
                before = count;
            }
        }
        let max = row.last().copied().unwrap_or(0);
        let end = row.iter().position(|count| *count == max).unwrap_or(0);
        let mut new: Vec<Turn> = history.turns.iter().skip(end).cloned().collect();
        if let (Some(known), Some(last)) = (self.turns.back(), end.checked_sub(1).map(|last| &history.turns[last]))
            && known.role == Role::Model
            && last.role == Role::Model
            && let Some(rest) = last.text.strip_prefix(known.text.as_str())
            && !rest.trim().is_empty()
        {
            new.insert(0, Turn { role: Role::Model, text: rest.to_owned() });
        }
        new
    }

    /// Removes these messages from the end of `new`.
    fn cut(&self, new: &mut Vec<Turn>) {
        // White space at the end of a known message does not show where the rest begins.
        if self.turns.len() > 1 && self.turns[0].role == Role::Model && self.turns[0].text.trim().is_empty() {
            let rest = Self { turns: self.turns.iter().skip(1).cloned().collect(), ..Self::default() };
            return rest.cut(new);
        }
        let max = new.len().min(self.turns.len());
        let fits = |count: usize| {
            let tail = &new[new.len() - count..];
            tail.iter().zip(&self.turns).enumerate().all(|(at, (old, live))| {
                let (first, last) = (at == 0, at + 1 == count);
                old.role == live.role
                    && (same(&old.text, &live.text)
                        || live.role == Role::Model
                            // The message was received from its middle on, was reported before it was complete, or both.
                            && ((first && old.text.ends_with(live.text.as_str()))
                                || (last && live.text.starts_with(old.text.as_str()))
                                || (first && last && self.overlap(&old.text) > 0)))
            })
        };
        let Some(count) = (1..=max).rev().find(|count| fits(*count)) else { return };
        let at = new.len() - count;
        let (old, live) = (&new[at], &self.turns[0]);
        let head = if old.role == Role::Model && !same(&old.text, &live.text) {
            old.text[..old.text.len() - self.overlap(&old.text)].to_owned()
        } else {
            String::new()
        };
        let role = old.role;
        new.truncate(at);
        if !head.trim().is_empty() {
            new.push(Turn { role, text: head });
        }
    }

    /// Returns the number of bytes at the end of `old` that are the beginning of the first turn here: all of its pieces, or the first few.
    fn overlap(&self, old: &str) -> usize {
        let Some(first) = self.turns.front() else { return 0 };
        let ends = |end: &usize| first.text.get(..*end).is_some_and(|begin| old.ends_with(begin));
        self.pieces.iter().rev().copied().find(ends).unwrap_or(0)
    }
}

/// Returns whether a turn of the history equals a known one, or begins like it.
fn begins(turn: &Turn, known: &Turn) -> bool {
    turn.role == known.role
        && (same(&turn.text, &known.text)
            || (turn.role == Role::Model && !known.text.is_empty() && turn.text.starts_with(known.text.as_str())))
}

/// Returns whether two texts are equal except for white space, which a UI may trim or fold.
pub(super) fn same(a: &str, b: &str) -> bool {
    let black = |text: &'_ str| -> Vec<char> { text.chars().filter(|c| !c.is_whitespace()).collect() };
    a == b || (a.len().abs_diff(b.len()) <= a.len().max(b.len()) / 2 + 16 && black(a) == black(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses lines `u:` and `m:`.
    fn turns(text: &str) -> Turns {
        let mut turns = Turns::default();
        for turn in text.split('|').filter(|turn| !turn.is_empty()) {
            match turn.split_at(2) {
                ("u:", text) => turns.add(Role::User, text),
                (_, text) => turns.add(Role::Model, text),
            }
        }
        turns
    }

    fn missed(known: &str, history: &str, live: &str) -> String {
        let new = turns(known).missed(&turns(history), &turns(live));
        let word = |turn: &Turn| format!("{}:{}", if turn.role == Role::User { "u" } else { "m" }, turn.text);
        new.iter().map(word).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn mirror_history_reports_only_new_turns() {
        let cases = [
            // Nothing is known yet: all of it is new.
            ("", "u:hi|m:hello", "", "u:hi|m:hello"),
            // Live messages are not repeated.
            ("", "u:hi|m:hello", "u:hi|m:hello", ""),
            ("", "u:hi|m:hello|u:go|m:on", "u:go|m:on and on", "u:hi|m:hello"),
            ("", "u:hi|m:hello", "u:hi", "u:hi|m:hello"),
            ("", "u:hi", "u:hi|m:hello", ""),
            // Connected in the middle of a message.
            ("", "u:hi|m:hello world", "m:world", "u:hi|m:hello "),
            ("", "u:hi|m:hello wor", "m:o |m:wor|m:ld", "u:hi|m:hell"),
            ("", "u:hi|m:hel", "m:lo", "u:hi|m:hel"),
            ("", "u:hi", "m:lo", "u:hi"),
            ("u:hi|m:hello", "u:hi|m:hello |u:go", "m: |u:go", ""),
            // Connected again.
            ("u:hi|m:hello", "u:hi|m:hello", "", ""),
            ("u:hi|m:hel", "u:hi|m:hello", "", "m:lo"),
            ("u:hi|m:hel", "u:hi|m:hello there", "m: there", "m:lo"),
            ("u:hi|m:hel", "u:hi|m:hello|u:more|m:yes", "", "m:lo|u:more|m:yes"),
            ("u:hi|m:hello", "u:hi|m:hello|u:hi|m:hello", "", "u:hi|m:hello"),
            ("u:hi|m:hello", "u:hi|m:hello|u:hi|m:hello", "u:hi", "u:hi|m:hello"),
            // A command that the history omits, white space that it drops.
            ("u:hi|m:hello|u:/help|u: more ", "u:hi|m:hello|u:more|m:yes", "", "m:yes"),
            ("u:a|m:b", "u:a|m:b |u:c", "", "u:c"),
            // Only the end of the history is returned.
            ("u:a|m:b|u:c|m:d", "u:c|m:d|u:e", "", "u:e"),
            // It was cleared.
            ("u:a|m:b", "", "", ""),
            ("u:a|m:b", "u:new|m:talk", "", "u:new|m:talk"),
        ];
        for (known, history, live, expected) in cases {
            assert_eq!(missed(known, history, live), expected, "{known} / {history} / {live}");
        }
    }

    #[test]
    fn mirror_history_joins_model_pieces_in_bounded_memory() {
        assert_eq!(turns("m:a|m:b").turns, turns("m:ab").turns);
        assert_ne!(turns("u:a|u:b").turns, turns("u:ab").turns);
        let mut many = Turns::default();
        for n in 0..10_000 {
            many.add(Role::User, &n.to_string());
        }
        assert_eq!((many.turns.len(), many.turns[0].text.as_str()), (TURNS_MAX, "9744"));
        many.add(Role::User, &"x".repeat(TEXT_MAX + 1));
        assert_eq!(many.turns.len(), 1);
        assert_eq!(many.bytes, TEXT_MAX + 1);
    }

    #[test]
    fn mirror_history_is_read_or_refused() {
        let body = br#"[{"role":"user","text":"Hello"},{"role":"model","text":"Hi there!","more":1}]"#;
        assert_eq!(Turns::read(body).unwrap().turns, turns("u:Hello|m:Hi there!").turns);
        assert_eq!(Turns::read(b"[]"), Some(Turns::default()));
        let many = serde_json::to_vec(&vec![serde_json::json!({ "role": "model", "text": "x" }); TURNS_MAX]).unwrap();
        assert!(Turns::read(&many).unwrap().full() && !Turns::read(body).unwrap().full());
        for bad in [&b"{}"[..], b"", b"[1]", br#"[{"role":"robot","text":"x"}]"#] {
            assert_eq!(Turns::read(bad), None);
        }
    }

    proptest::proptest! {
        /// However the stream is divided into known, history-only and live parts, every byte is reported once.
        #[test]
        fn mirror_history_reports_each_turn_once(
            texts in proptest::collection::vec("[a-z]{1,8}", 1..8), known in 0usize..60, live in 0usize..60,
        ) {
            // A conversation without repeats: each letter depends on its place.
            let whole: Vec<Turn> = texts.iter().enumerate().map(|(n, text)| Turn {
                role: if n.is_multiple_of(2) { Role::User } else { Role::Model },
                text: text.bytes().enumerate().map(|(at, c)| format!("{n}{}{at} ", c as char)).collect(),
            }).collect();
            let flat: Vec<(usize, char)> =
                whole.iter().enumerate().flat_map(|(n, turn)| turn.text.chars().map(move |c| (n, c))).collect();
            // People's messages are complete; the model's can be split anywhere.
            let place = |at: usize| {
                let at = at.min(flat.len());
                let mut at = at;
                while at > 0 && at < flat.len() && flat[at].0 == flat[at - 1].0 && flat[at].0.is_multiple_of(2) { at += 1; }
                at
            };
            let (first, second) = (place(known.min(live)), place(known.max(live)));
            let gather = |part: &[(usize, char)]| {
                let mut turns = Turns::default();
                let mut last = None;
                for (n, c) in part {
                    let role = if n.is_multiple_of(2) { Role::User } else { Role::Model };
                    if role == Role::User && last == Some(*n) {
                        if let Some(turn) = turns.turns.back_mut() { turn.text.push(*c); turns.bytes += 1; }
                    } else {
                        turns.add(role, &c.to_string());
                    }
                    last = Some(*n);
                }
                turns
            };
            let new = gather(&flat[..first]).missed(&gather(&flat), &gather(&flat[second..]));
            let text: String = new.iter().map(|turn| turn.text.as_str()).collect();
            let expected: String = flat[first..second].iter().map(|(_, c)| *c).collect();
            proptest::prop_assert_eq!(text.trim(), expected.trim());
        }
    }
}
