//! Questions above the limit of a session. They stay unanswered, so that the agent waits, until another question is closed.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use plexus_protocol::NativeId;
use serde::{Deserialize, Serialize};

use super::AgentRequest;

/// Number of questions that a session may have open, however many the other sessions of its connection have.
pub(super) const SHARE: usize = 16;
/// Maximum number of open questions on a connection; above it each session may have only [`SHARE`].
pub(super) const ASKS_MAX: usize = 256;

/// Returns whether a session may open one more question, if it has `own` open, and its connection `all`.
pub(super) fn has_capacity(own: usize, all: usize) -> bool {
    own < SHARE || all < ASKS_MAX
}

/// Returns the index of the first question whose session may open one more; each session is checked once.
fn first_allowed<'a>(
    sessions: impl Iterator<Item = Option<&'a NativeId>>,
    is_allowed: impl Fn(Option<&NativeId>) -> bool,
) -> Option<usize> {
    let mut full: BTreeSet<Option<&NativeId>> = BTreeSet::new();
    for (at, native) in sessions.enumerate() {
        if full.contains(&native) {
            continue;
        }
        if is_allowed(native) {
            return Some(at);
        }
        full.insert(native);
    }
    None
}

/// The waiting questions, in the order in which they were asked.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct HeldQuestions(VecDeque<HeldQuestion>);

/// A waiting question.
#[derive(Serialize, Deserialize)]
struct HeldQuestion {
    /// The session, if the question names one.
    native: Option<NativeId>,
    /// The runtime's id of the question.
    id: String,
    /// The runtime's message, which is read again when the question is opened.
    frame: String,
}

impl HeldQuestions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the total size of the waiting messages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|held| held.frame.len()).sum()
    }

    /// Returns whether a question with this id waits.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|held| held.id == id)
    }

    /// Returns whether a question of this session waits.
    pub(super) fn waits(&self, native: Option<&NativeId>) -> bool {
        self.0.iter().any(|held| held.native.as_ref() == native)
    }

    /// Adds a question. Its message is one that was read as JSON, thus UTF-8.
    pub(super) fn push(&mut self, native: Option<NativeId>, id: &str, frame: &[u8]) {
        let frame = String::from_utf8_lossy(frame).into_owned();
        self.0.push_back(HeldQuestion { native, id: id.to_owned(), frame });
    }

    /// Takes the first question whose session may open one more.
    pub(super) fn next(&mut self, is_allowed: impl Fn(Option<&NativeId>) -> bool) -> Option<Bytes> {
        let at = first_allowed(self.0.iter().map(|held| held.native.as_ref()), is_allowed)?;
        self.0.remove(at).map(|held| held.frame.into())
    }

    /// Removes the question with this id, and returns its message.
    pub(super) fn remove(&mut self, id: &str) -> Option<Bytes> {
        let at = self.0.iter().position(|held| held.id == id)?;
        self.0.remove(at).map(|held| held.frame.into())
    }

    /// Removes the questions of a session, and returns their messages.
    pub(super) fn drop_session(&mut self, native: &NativeId) -> Vec<Bytes> {
        let (removed, remaining) =
            std::mem::take(&mut self.0).into_iter().partition(|held| held.native.as_ref() == Some(native));
        self.0 = remaining;
        let removed: VecDeque<HeldQuestion> = removed;
        removed.into_iter().map(|held| held.frame.into()).collect()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Waiting questions in parsed form, for an endpoint that lists its questions again after a lost connection.
#[derive(Default)]
pub(super) struct HeldRequests(VecDeque<(Option<NativeId>, AgentRequest)>);

impl HeldRequests {
    /// Returns the total size of the waiting messages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, ask)| ask.native.len()).sum()
    }

    /// Returns whether a question of this session waits.
    pub(super) fn waits(&self, native: Option<&NativeId>) -> bool {
        self.0.iter().any(|(session, _)| session.as_ref() == native)
    }

    pub(super) fn push(&mut self, native: Option<NativeId>, ask: AgentRequest) {
        self.0.push_back((native, ask));
    }

    /// Takes the first question whose session may open one more.
    pub(super) fn next(
        &mut self,
        is_allowed: impl Fn(Option<&NativeId>) -> bool,
    ) -> Option<(Option<NativeId>, AgentRequest)> {
        let at = first_allowed(self.0.iter().map(|(native, _)| native.as_ref()), is_allowed)?;
        self.0.remove(at)
    }

    /// Removes the questions that were closed.
    pub(super) fn retain(&mut self, is_open: impl Fn(&AgentRequest) -> bool) {
        self.0.retain(|(_, ask)| is_open(ask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_questions_open_in_order_where_their_session_has_room() {
        let (a, b) = (NativeId::from("a"), NativeId::from("b"));
        let mut held = HeldQuestions::default();
        for (native, id) in [(&a, "1"), (&a, "2"), (&b, "3"), (&a, "4")] {
            held.push(Some(native.clone()), id, id.as_bytes());
        }
        let saved = serde_json::to_vec(&held).unwrap();
        let mut held: HeldQuestions = serde_json::from_slice(&saved).unwrap();
        assert_eq!((held.bytes(), held.has("3"), held.has("5")), (4, true, false));
        assert_eq!(held.next(|native| native == Some(&b)).as_deref(), Some(&b"3"[..]));
        assert!(!held.waits(Some(&b)) && held.waits(Some(&a)));
        assert_eq!(held.next(|_| true).as_deref(), Some(&b"1"[..]));
        assert_eq!(held.next(|_| false), None);
        assert_eq!(held.remove("4").as_deref(), Some(&b"4"[..]));
        assert_eq!(held.drop_session(&a), ["2"]);
        assert!(held.is_empty());
    }

    #[test]
    fn held_share_comes_before_the_sum() {
        assert!(has_capacity(0, 10_000) && has_capacity(SHARE - 1, 10_000));
        assert!(!has_capacity(SHARE, ASKS_MAX) && has_capacity(SHARE, ASKS_MAX - 1));
    }
}
