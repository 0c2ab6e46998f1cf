//! What waits to be sent to one place, one at a time and in order, so that a slow place delays nobody but itself. Pure.

use std::collections::VecDeque;

use super::rule::Millis;
use super::sender::PostOutcome;
use super::text::NotificationMessage;

/// Notifications that wait for one place at most; past it the oldest is dropped, counted, and seen in the inbox alone.
const WAITING: usize = 32;
/// What is waited after a first failure; it doubles with each.
const BACKOFF: Millis = 1000;
/// The longest wait between two attempts.
const BACKOFF_MAX: Millis = 60_000;

/// Something on its way.
#[derive(Clone, Debug)]
pub(super) struct QueuedNotification {
    pub(super) message: NotificationMessage,
    /// It takes back an earlier one of its tag.
    pub(super) withdraws: bool,
    /// The requests that a place knows of once it is there.
    pub(super) tells: Vec<String>,
}

/// One place's.
#[derive(Default)]
pub(super) struct DeliveryQueue {
    queue: VecDeque<QueuedNotification>,
    /// Whether the first is being sent.
    flying: bool,
    failures: u32,
    since: Millis,
    wait_until: Millis,
}

/// What became of an attempt.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// It is there.
    There(QueuedNotification),
    /// It will be tried again.
    Again,
    /// It was given up, or overtaken.
    Lost(QueuedNotification),
    /// The place is gone.
    Gone,
}

impl DeliveryQueue {
    /// Adds a letter. What it replaces never leaves. Returns what was dropped for want of room.
    pub(super) fn push(&mut self, letter: QueuedNotification) -> Option<QueuedNotification> {
        let unsent = usize::from(self.flying);
        let same = |other: &QueuedNotification| other.message.tag == letter.message.tag;
        if let Some(at) = (unsent..self.queue.len()).find(|at| same(&self.queue[*at])) {
            let old = self.queue.remove(at);
            if at == 0 {
                self.failures = 0;
            }
            // What nobody was told needs no taking back.
            if letter.withdraws && old.is_some_and(|old| !old.withdraws) && !self.queue.iter().any(same) {
                return None;
            }
        }
        self.queue.push_back(letter);
        if self.queue.len() > WAITING { self.queue.remove(unsent) } else { None }
    }

    /// The next letter, if it is time and none is on its way.
    pub(super) fn take(&mut self, now: Millis) -> Option<&QueuedNotification> {
        if self.flying || now < self.wait_until {
            return None;
        }
        let letter = self.queue.front()?;
        self.flying = true;
        if self.failures == 0 {
            self.since = now;
        }
        Some(letter)
    }

    /// The letter that was taken last went so. Failures are repeated for `give_up` at most.
    pub(super) fn record_attempt(&mut self, outcome: PostOutcome, give_up: Millis, now: Millis) -> AttemptOutcome {
        self.flying = false;
        let retry = match outcome {
            PostOutcome::Later(after) => {
                let backoff = BACKOFF.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
                Some(after.map_or(backoff, |after| after.max(backoff)))
            }
            PostOutcome::Taken(_) | PostOutcome::Gone(_) | PostOutcome::Refused(_) => None,
        };
        let overtaken = |lane: &Self| {
            let tag = lane.queue.front().map(|letter| letter.message.tag.clone());
            (1..lane.queue.len()).find(|at| Some(&lane.queue[*at].message.tag) == tag.as_ref())
        };
        match (outcome, retry) {
            (PostOutcome::Gone(_), _) => {
                self.queue.clear();
                self.failures = 0;
                return AttemptOutcome::Gone;
            }
            (_, Some(wait)) => {
                match overtaken(self) {
                    None if now + wait - self.since <= give_up => {
                        self.failures += 1;
                        self.wait_until = now + wait;
                        return AttemptOutcome::Again;
                    }
                    None => {}
                    // It never came, so that it is over is no news either.
                    Some(at) if self.queue[at].withdraws && !self.queue[0].withdraws => drop(self.queue.remove(at)),
                    Some(_) => {}
                }
                // The place is not well: what comes next waits as long.
                self.wait_until = now + wait;
            }
            _ => {}
        }
        self.failures = 0;
        match (self.queue.pop_front(), outcome) {
            (Some(letter), PostOutcome::Taken(_)) => AttemptOutcome::There(letter),
            (Some(letter), _) => AttemptOutcome::Lost(letter),
            (None, _) => AttemptOutcome::Again,
        }
    }

    /// When something can be sent next.
    pub(super) fn next(&self) -> Option<Millis> {
        (!self.flying && !self.queue.is_empty()).then_some(self.wait_until)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::text::Urgency;
    use super::*;

    fn letter(tag: &str, withdraws: bool) -> QueuedNotification {
        let message = NotificationMessage { tag: tag.into(), payload: json!({}), urgency: Urgency::High, ttl: 1 };
        QueuedNotification { message, withdraws, tells: Vec::new() }
    }

    fn taken(lane: &mut DeliveryQueue, now: Millis) -> Option<String> {
        lane.take(now).map(|letter| format!("{}{}", if letter.withdraws { "-" } else { "" }, letter.message.tag))
    }

    const FAILED: PostOutcome = PostOutcome::Later(None);
    const GIVE_UP: Millis = 10_000;

    #[test]
    fn one_at_a_time_in_order() {
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.push(letter("b", false));
        assert_eq!(taken(&mut lane, 0).as_deref(), Some("a"));
        assert_eq!(taken(&mut lane, 0), None, "one is on its way");
        assert!(
            matches!(lane.record_attempt(PostOutcome::Taken(201), GIVE_UP, 5), AttemptOutcome::There(letter) if letter.message.tag == "a")
        );
        assert_eq!(taken(&mut lane, 5).as_deref(), Some("b"));
        assert!(matches!(lane.record_attempt(PostOutcome::Refused(400), GIVE_UP, 5), AttemptOutcome::Lost(_)));
        assert_eq!((lane.len(), lane.next()), (0, None));
    }

    #[test]
    fn a_failure_is_repeated_ever_later_and_then_given_up() {
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.push(letter("b", false));
        let (mut now, mut times) = (0, Vec::new());
        loop {
            assert_eq!(taken(&mut lane, now).as_deref(), Some("a"));
            times.push(now);
            match lane.record_attempt(FAILED, GIVE_UP, now) {
                AttemptOutcome::Again => now = lane.next().unwrap(),
                AttemptOutcome::Lost(letter) => break assert_eq!(letter.message.tag, "a"),
                other => panic!("{other:?}"),
            }
            assert_eq!(taken(&mut lane, now - 1), None);
        }
        assert_eq!(times, [0, 1000, 3000, 7000]);
        assert!(lane.next().unwrap() > now, "the next is not hurried after it");
        // What the other end says counts, if it is longer.
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.take(0);
        lane.record_attempt(PostOutcome::Later(Some(5000)), GIVE_UP, 0);
        assert_eq!(lane.next(), Some(5000));
    }

    #[test]
    fn what_never_came_is_not_taken_back_and_what_came_is() {
        // Still waiting.
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.push(letter("a", true));
        assert_eq!(lane.len(), 0);
        // On its way, and lost.
        lane.push(letter("a", false));
        lane.take(0);
        lane.push(letter("a", true));
        assert!(matches!(lane.record_attempt(FAILED, GIVE_UP, 0), AttemptOutcome::Lost(_)));
        assert_eq!(lane.len(), 0);
        // On its way, and there.
        lane.push(letter("a", false));
        assert!(lane.take(100_000).is_some());
        lane.push(letter("a", true));
        assert!(matches!(lane.record_attempt(PostOutcome::Taken(201), GIVE_UP, 100_000), AttemptOutcome::There(_)));
        assert_eq!(taken(&mut lane, 100_000).as_deref(), Some("-a"));
        // Failed before, and waiting to be tried again.
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.take(0);
        assert!(matches!(lane.record_attempt(FAILED, GIVE_UP, 0), AttemptOutcome::Again));
        lane.push(letter("a", true));
        assert_eq!((lane.len(), lane.next()), (0, None));
    }

    #[test]
    fn a_place_that_is_gone_gets_nothing_more_and_a_full_lane_drops_its_oldest() {
        let mut lane = DeliveryQueue::default();
        lane.push(letter("a", false));
        lane.push(letter("b", false));
        lane.take(0);
        assert!(matches!(lane.record_attempt(PostOutcome::Gone(410), GIVE_UP, 0), AttemptOutcome::Gone));
        assert_eq!(lane.len(), 0);
        lane.push(letter("first", false));
        lane.take(0);
        for n in 0..WAITING - 1 {
            assert!(lane.push(letter(&n.to_string(), false)).is_none());
        }
        let dropped = lane.push(letter("last", false));
        assert_eq!(dropped.map(|letter| letter.message.tag).as_deref(), Some("0"), "not the one that is on its way");
        assert_eq!(lane.len(), WAITING);
    }
}
