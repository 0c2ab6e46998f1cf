//! Types keys only if the screen shows the dialog or line that they are for.
//!
//! A client has seen the screen a moment ago, or never. So the holder itself reads the screen when it does not change
//! and no user types, and types in the same step. For a moment afterwards keys of users that could answer a dialog are
//! dropped: they were pressed at the dialog that has just been answered, and would answer the next one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::model::Model;
use crate::screen_match::{ScreenSection, ends_with, sections};
use crate::wire::{TypeIf, TypeIfOutcome};

/// Time that a screen must not have changed before it is read.
const UNCHANGED_TIME: Duration = Duration::from_millis(150);

/// Time for which no user may have typed.
const TYPING_PAUSE: Duration = Duration::from_millis(500);

/// Time for which a user's key may still take effect on the screen: until then it may have answered the question.
const TYPED_EFFECT_TIME: Duration = Duration::from_secs(10);

/// Maximum time of the wait for all conditions; then no key is typed, and the reason is reported.
pub const TYPE_IF_WAIT: Duration = Duration::from_secs(3);

/// Time for which a dialog may stay on the screen after its answer.
const DIALOG_CLOSE_TIME: Duration = Duration::from_secs(3);

/// Time for which other answers are dropped after the dialog was last on the screen.
const AFTER_ANSWER: Duration = Duration::from_secs(1);

/// Time that a screen must not have changed before the following keys are typed again.
const REPEAT_UNCHANGED_TIME: Duration = Duration::from_secs(1);

/// Maximum number of times that they are typed.
const THEN_MAX: u32 = 3;

/// Time between two reads of a screen while keys wait.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(30);

/// The typing of users, as recorded by the tasks that read it.
#[derive(Debug, Default)]
struct Typed {
    last: Option<Instant>,
    answered: Option<Instant>,
}

/// The record of users' typing. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Typing(Arc<Mutex<Typed>>);

impl Typing {
    /// Returns whether input of a user is sent to the program; `false` for a key that would answer a dialog which was just answered.
    pub(super) fn takes(&self, input: &[u8], now: Instant) -> bool {
        let mut typed = self.0.lock();
        let late = typed.answered.is_some_and(|answered| now < answered + AFTER_ANSWER);
        if late && could_answer(input) {
            return false;
        }
        if !is_report(input) {
            typed.last = Some(now);
        }
        true
    }
}

/// A dialog that was answered, and is still on the screen.
#[derive(Debug)]
pub(super) struct AnsweredDialog {
    shows: Vec<ScreenSection>,
    until: Instant,
}

impl AnsweredDialog {
    /// Checks whether the dialog is on the screen: then users' keys are still for it. Returns `false` when the check is no longer needed.
    pub(super) fn check(&self, model: &Model, typing: &Typing, now: Instant) -> bool {
        let is_visible = now < self.until && shows(model, &self.shows);
        if is_visible {
            typing.0.lock().answered = Some(now);
        }
        is_visible
    }
}

fn shows(model: &Model, expected: &[ScreenSection]) -> bool {
    let rows = model.screen().rows(0, model.size().cols).collect::<Vec<_>>();
    ends_with(&sections(rows.iter().map(String::as_str)), expected)
}

/// Returns whether a key chooses in a dialog: a character, Enter, Escape, an arrow.
fn could_answer(input: &[u8]) -> bool {
    matches!(input, [_] | b"\x1b[A" | b"\x1b[B" | b"\x1bOA" | b"\x1bOB" | b"\x1b[13u" | b"\x1b[27u")
}

/// Returns whether a terminal sent this by itself, when its window got or lost the focus.
fn is_report(input: &[u8]) -> bool {
    matches!(input, b"\x1b[I" | b"\x1b[O")
}

/// Keys that wait for the right moment.
#[derive(Debug)]
pub(super) struct PendingKeys {
    /// The attachment that sent the request.
    pub(super) attachment: u64,
    request: TypeIf,
    /// The time when the first keys were typed.
    began: Instant,
    /// The time when keys were last typed, and the number of attempts of those that follow.
    typed_at: Option<(Instant, u32)>,
    until: Instant,
}

impl PendingKeys {
    pub(super) fn new(attachment: u64, request: TypeIf, now: Instant) -> Self {
        Self { attachment, request, began: now, typed_at: None, until: now + TYPE_IF_WAIT }
    }

    /// Returns the dialog that the keys answered.
    pub(super) fn answered(&self, now: Instant) -> Option<AnsweredDialog> {
        let answers = self.request.answers;
        answers.then(|| AnsweredDialog { shows: self.request.shows.clone(), until: now + DIALOG_CLOSE_TIME })
    }

    /// Reads the screen, and types if all conditions hold. `last_output` is the time of the screen's last change;
    /// `all_read` is `true` if no output waits to be handled. Returns the outcome once it is decided.
    pub(super) fn check(
        &mut self,
        model: &Model,
        (last_output, all_read): (Instant, bool),
        typing: &Typing,
        input: &mpsc::Sender<Bytes>,
        now: Instant,
    ) -> Option<TypeIfOutcome> {
        // The lock is held until the keys are typed, so that no other keys come in between.
        let mut typed = typing.0.lock();
        let is_visible = shows(model, &self.request.shows);
        let is_unchanged = all_read && now >= last_output + UNCHANGED_TIME;
        let is_expired = now >= self.until;
        if let Some((at, tries)) = self.typed_at {
            let done = |why: Option<&str>| Some(TypeIfOutcome { typed: true, refused: why.map(str::to_owned) });
            let Some(then) = &self.request.then else { return done(None) };
            let is_ready = shows(model, &then.shows);
            let may_repeat = is_unchanged
                && now >= last_output.max(at) + if tries > 0 { REPEAT_UNCHANGED_TIME } else { UNCHANGED_TIME };
            return match (is_ready, tries) {
                _ if typed.last.is_some_and(|last| last >= self.began) => {
                    done(Some("a user types at the terminal: the sent text is in its line"))
                }
                (false, 1..) if is_unchanged => done(None),
                (true, 0..THEN_MAX) if may_repeat => match input.try_send(then.keys.clone().into_bytes().into()) {
                    Ok(()) => {
                        (self.typed_at, self.until) = (Some((now, tries + 1)), now + TYPE_IF_WAIT);
                        None
                    }
                    Err(_) => done(Some("the program reads nothing")),
                },
                _ if is_expired => done(Some("the program did not accept the sent text: it is in its line")),
                _ => None,
            };
        }
        let refused = |why: &str| Some(TypeIfOutcome { typed: false, refused: Some(why.to_owned()) });
        let typing_now = typed
            .last
            .is_some_and(|last| now < last + TYPING_PAUSE || (last >= last_output && now < last + TYPED_EFFECT_TIME));
        if is_unchanged && is_visible && !typing_now {
            if input.try_send(self.request.keys.clone().into_bytes().into()).is_err() {
                return refused("the program reads nothing");
            }
            if self.request.answers {
                typed.answered = Some(now);
            }
            if self.request.then.is_none() {
                return Some(TypeIfOutcome { typed: true, refused: None });
            }
            (self.began, self.typed_at, self.until) = (now, Some((now, 0)), now + TYPE_IF_WAIT);
            return None;
        }
        match (is_expired, typing_now, is_unchanged) {
            (false, ..) => None,
            (true, true, _) => refused("a user is typing at the terminal"),
            (true, false, false) => refused("its screen does not come to rest"),
            (true, false, true) => refused("its screen does not show that, or not all of it"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::TerminalSize;
    use crate::wire::ThenKeys;

    struct Bench {
        model: Model,
        typing: Typing,
        input: mpsc::Sender<Bytes>,
        program: mpsc::Receiver<Bytes>,
        start: Instant,
        last_output: Instant,
    }

    fn bench(screen: &str) -> Bench {
        let mut model = Model::new(TerminalSize { rows: 10, cols: 40 }, 0);
        model.feed(screen.replace('\n', "\r\n").as_bytes());
        let (input, program) = mpsc::channel(4);
        let start = Instant::now();
        Bench { model, typing: Typing::default(), input, program, start, last_output: start }
    }

    impl Bench {
        /// Returns the outcome after so many milliseconds.
        fn check(&self, pending: &mut PendingKeys, at: u64) -> Option<TypeIfOutcome> {
            let now = self.start + Duration::from_millis(at);
            pending.check(&self.model, (self.last_output, true), &self.typing, &self.input, now)
        }

        fn pending(&self, then: Option<&str>) -> PendingKeys {
            let holds = |text: &str| ScreenSection { holds: Some(text.into()), ..ScreenSection::default() };
            let following = then.map(|keys| ThenKeys { shows: vec![holds("taken")], keys: keys.into() });
            let shows = vec![holds("Allowtoucha?")];
            PendingKeys::new(
                7,
                TypeIf { shows, keys: "1".into(), then: following, answers: then.is_none() },
                self.start,
            )
        }

        fn typed(&mut self) -> Vec<Bytes> {
            std::iter::from_fn(|| self.program.try_recv().ok()).collect()
        }
    }

    fn refused(outcome: Option<TypeIfOutcome>) -> String {
        outcome.unwrap().refused.unwrap()
    }

    #[test]
    fn keys_are_typed_once_the_screen_is_at_rest_and_shows_what_they_are_for() {
        let mut bench = bench("Allow\ntouch a?\n1. yes");
        let mut pending = bench.pending(None);
        assert_eq!(bench.check(&mut pending, 149), None, "it may be drawn just now");
        let done = TypeIfOutcome { typed: true, refused: None };
        assert_eq!(bench.check(&mut pending, 150), Some(done));
        assert_eq!(bench.typed(), ["1"]);
    }

    #[test]
    fn keys_are_not_typed_at_another_screen() {
        for screen in ["", "Allow touch b?", "touch a?", "Allow touch a?\n────\nanother question"] {
            let mut bench = bench(screen);
            let mut pending = bench.pending(None);
            assert_eq!(bench.check(&mut pending, 2_999), None, "it may come yet");
            assert!(refused(bench.check(&mut pending, 3_000)).contains("does not show that"), "{screen}");
            assert!(bench.typed().is_empty());
        }
        // It scrolled off.
        let mut bench = bench(&format!("Allow\ntouch a?{}", "\nx".repeat(9)));
        let mut pending = bench.pending(None);
        assert!(refused(bench.check(&mut pending, 3_000)).contains("does not show that"));
        assert!(bench.typed().is_empty());
    }

    #[test]
    fn keys_wait_while_somebody_types() {
        let mut bench = bench("Allow touch a?");
        let mut pending = bench.pending(None);
        assert!(bench.typing.takes(b"x", bench.start + Duration::from_millis(100)));
        assert!(bench.typing.takes(b"\x1b[I", bench.start + Duration::from_millis(400)), "nobody typed that");
        bench.last_output = bench.start + Duration::from_millis(120);
        assert_eq!(bench.check(&mut pending, 599), None);
        assert!(bench.check(&mut pending, 600).unwrap().typed);
        bench.typed();
        // It may have answered what is asked, and the program is slow.
        let mut pending = bench.pending(None);
        bench.last_output = bench.start;
        assert!(refused(bench.check(&mut pending, 3_000)).contains("a user is typing"));
        let mut pending = bench.pending(None);
        assert!(bench.typing.takes(b"xy", bench.start + Duration::from_millis(2_900)));
        assert!(refused(bench.check(&mut pending, 3_000)).contains("a user is typing"));
        assert!(bench.typed().is_empty());
    }

    #[test]
    fn keys_of_people_that_come_just_after_an_answer_answer_nothing() {
        let bench = bench("Allow touch a?");
        let mut pending = bench.pending(None);
        assert!(bench.check(&mut pending, 200).unwrap().typed);
        let start = bench.start;
        let at = |after: u64| start + Duration::from_millis(200 + after);
        for key in ["1", "\r", "\x1b", "\x1b[A"] {
            assert!(!bench.typing.takes(key.as_bytes(), at(1)), "{key:?}");
        }
        assert!(bench.typing.takes(b"\x1b[3;4R", at(1)), "a terminal's answer");
        assert!(bench.typing.takes(b"1", at(1_000)), "it is for what is on the screen now");
        // As long as the dialog is there.
        let mut bench = bench;
        let dialog = pending.answered(at(0)).unwrap();
        assert!(dialog.check(&bench.model, &bench.typing, at(2_000)));
        assert!(!bench.typing.takes(b"1", at(2_900)) && bench.typing.takes(b"1", at(3_000)));
        assert!(!dialog.check(&bench.model, &bench.typing, at(3_000)), "for no longer than that");
        bench.model.feed(b"\x1b[H\x1b[2J");
        assert!(!dialog.check(&bench.model, &bench.typing, at(2_700)));
    }

    #[test]
    fn keys_that_follow_wait_until_the_first_were_taken() {
        let done = |why: Option<&str>| Some(TypeIfOutcome { typed: true, refused: why.map(str::to_owned) });
        let mut bench = bench("Allow touch a?");
        let mut pending = bench.pending(Some("\r"));
        assert_eq!(bench.check(&mut pending, 200), None);
        assert_eq!(bench.check(&mut pending, 900), None, "the first are not taken");
        assert_eq!(bench.typed(), ["1"]);
        bench.model.feed(b"\x1b[H\x1b[2Jtaken");
        assert_eq!(bench.check(&mut pending, 1_000), None);
        assert_eq!(bench.typed(), ["\r"]);
        // Once more, where nothing came of it.
        assert_eq!(bench.check(&mut pending, 1_900), None);
        assert!(bench.typed().is_empty());
        assert_eq!(bench.check(&mut pending, 2_000), None);
        assert_eq!(bench.typed(), ["\r"]);
        bench.model.feed(b"\x1b[H\x1b[2Jsent");
        assert_eq!(bench.check(&mut pending, 2_100), done(None));
        // Somebody goes on typing where they stand.
        let mut bench = self::bench("Allow touch a?");
        let mut pending = bench.pending(Some("\r"));
        assert_eq!(bench.check(&mut pending, 200), None);
        assert!(bench.typing.takes(b"x", bench.start + Duration::from_millis(300)));
        bench.model.feed(b"\x1b[H\x1b[2Jtaken");
        let outcome = bench.check(&mut pending, 900).unwrap();
        assert!(outcome.typed && outcome.refused.unwrap().contains("a user types"));
        assert_eq!(bench.typed(), ["1"]);
        // Never taken, and something else came: nothing more is typed.
        let mut bench = self::bench("Allow touch a?");
        let mut pending = bench.pending(Some("\r"));
        assert_eq!(bench.check(&mut pending, 200), None);
        bench.model.feed(b"\x1b[H\x1b[2Jmay I?");
        assert!(refused(bench.check(&mut pending, 3_300)).contains("did not accept"));
        assert_eq!(bench.typed(), ["1"]);
        // Taken, and never sent.
        let mut bench = self::bench("Allow touch a?");
        let mut pending = bench.pending(Some("\r"));
        assert_eq!(bench.check(&mut pending, 200), None);
        bench.model.feed(b"\x1b[H\x1b[2Jtaken");
        let outcome = (4..200).find_map(|tenth| bench.check(&mut pending, tenth * 100));
        assert!(refused(outcome).contains("did not accept"));
        assert_eq!(bench.typed(), ["1", "\r", "\r", "\r"]);
    }
}
