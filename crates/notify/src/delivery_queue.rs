//! The notifications that wait for one target, one at a time and in order, so that a slow target delays no other. Pure.

use std::collections::VecDeque;

use super::rule::Millis;
use super::sender::PostOutcome;
use super::text::NotificationMessage;

/// Maximum number of notifications that wait for one target; beyond it the oldest is dropped and counted, and is only in the inbox.
const WAITING: usize = 32;
/// Wait after a first failure, in milliseconds; it doubles with each further one.
const BACKOFF: Millis = 1000;
/// Maximum wait between two attempts, in milliseconds.
const BACKOFF_MAX: Millis = 60_000;

/// A notification in the queue.
#[derive(Clone, Debug)]
pub(super) struct QueuedNotification {
    pub(super) message: NotificationMessage,
    /// `true` if the notification withdraws an earlier one of its tag.
    pub(super) withdraws: bool,
    /// The tags of the requests that the target knows once the notification is delivered.
    pub(super) request_tags: Vec<String>,
}

/// The queue of one target.
#[derive(Default)]
pub(super) struct DeliveryQueue {
    queue: VecDeque<QueuedNotification>,
    /// `true` if the first is being sent.
    sending: bool,
    failures: u32,
    since: Millis,
    wait_until: Millis,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// The notification was delivered.
    Delivered(QueuedNotification),
    /// The notification will be tried again.
    Retry,
    /// The notification was dropped, or replaced by a later one of its tag.
    Dropped(QueuedNotification),
    /// The target no longer exists.
    Gone,
}

impl DeliveryQueue {
    /// Adds a notification in place of one of its tag that is not being sent. Returns one that was dropped because the queue was full.
    pub(super) fn push(&mut self, notification: QueuedNotification) -> Option<QueuedNotification> {
        let unsent = usize::from(self.sending);
        let same = |other: &QueuedNotification| other.message.tag == notification.message.tag;
        if let Some(at) = (unsent..self.queue.len()).find(|at| same(&self.queue[*at])) {
            let old = self.queue.remove(at);
            if at == 0 {
                self.failures = 0;
            }
            // A notification that was never sent needs no withdrawal.
            if notification.withdraws && old.is_some_and(|old| !old.withdraws) && !self.queue.iter().any(same) {
                return None;
            }
        }
        self.queue.push_back(notification);
        if self.queue.len() > WAITING { self.queue.remove(unsent) } else { None }
    }

    /// Returns the next notification, if it is due and none is being sent.
    pub(super) fn take(&mut self, now: Millis) -> Option<&QueuedNotification> {
        if self.sending || now < self.wait_until {
            return None;
        }
        let notification = self.queue.front()?;
        self.sending = true;
        if self.failures == 0 {
            self.since = now;
        }
        Some(notification)
    }

    /// Records the outcome of the notification that was taken last. Failures are retried for `give_up` milliseconds.
    pub(super) fn record_attempt(&mut self, outcome: PostOutcome, give_up: Millis, now: Millis) -> AttemptOutcome {
        self.sending = false;
        let retry = match outcome {
            PostOutcome::Later(after) => {
                let backoff = BACKOFF.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
                Some(after.map_or(backoff, |after| after.max(backoff)))
            }
            PostOutcome::Taken(_) | PostOutcome::Gone(_) | PostOutcome::Refused(_) => None,
        };
        let overtaken = |queue: &Self| {
            let tag = queue.queue.front().map(|notification| notification.message.tag.clone());
            (1..queue.queue.len()).find(|at| Some(&queue.queue[*at].message.tag) == tag.as_ref())
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
                        return AttemptOutcome::Retry;
                    }
                    None => {}
                    // The notification was never delivered, so it needs no withdrawal.
                    Some(at) if self.queue[at].withdraws && !self.queue[0].withdraws => drop(self.queue.remove(at)),
                    Some(_) => {}
                }
                // The target is failing: the next notification waits as long.
                self.wait_until = now + wait;
            }
            _ => {}
        }
        self.failures = 0;
        match (self.queue.pop_front(), outcome) {
            (Some(notification), PostOutcome::Taken(_)) => AttemptOutcome::Delivered(notification),
            (Some(notification), _) => AttemptOutcome::Dropped(notification),
            (None, _) => AttemptOutcome::Retry,
        }
    }

    /// Returns the time when the next one can be sent.
    pub(super) fn next(&self) -> Option<Millis> {
        (!self.sending && !self.queue.is_empty()).then_some(self.wait_until)
    }

    /// Returns the number of waiting notifications.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::text::Urgency;
    use super::*;

    fn notification(tag: &str, withdraws: bool) -> QueuedNotification {
        let message = NotificationMessage { tag: tag.into(), payload: json!({}), urgency: Urgency::High, ttl: 1 };
        QueuedNotification { message, withdraws, request_tags: Vec::new() }
    }

    fn taken(queue: &mut DeliveryQueue, now: Millis) -> Option<String> {
        queue.take(now).map(|notification| {
            format!("{}{}", if notification.withdraws { "-" } else { "" }, notification.message.tag)
        })
    }

    const FAILED: PostOutcome = PostOutcome::Later(None);
    const GIVE_UP: Millis = 10_000;

    #[test]
    fn push_queue_sends_one_at_a_time_in_order() {
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.push(notification("b", false));
        assert_eq!(taken(&mut queue, 0).as_deref(), Some("a"));
        assert_eq!(taken(&mut queue, 0), None, "one is being sent");
        assert!(
            matches!(queue.record_attempt(PostOutcome::Taken(201), GIVE_UP, 5), AttemptOutcome::Delivered(notification) if notification.message.tag == "a")
        );
        assert_eq!(taken(&mut queue, 5).as_deref(), Some("b"));
        assert!(matches!(queue.record_attempt(PostOutcome::Refused(400), GIVE_UP, 5), AttemptOutcome::Dropped(_)));
        assert_eq!((queue.len(), queue.next()), (0, None));
    }

    #[test]
    fn push_queue_retries_with_backoff_and_then_gives_up() {
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.push(notification("b", false));
        let (mut now, mut times) = (0, Vec::new());
        loop {
            assert_eq!(taken(&mut queue, now).as_deref(), Some("a"));
            times.push(now);
            match queue.record_attempt(FAILED, GIVE_UP, now) {
                AttemptOutcome::Retry => now = queue.next().unwrap(),
                AttemptOutcome::Dropped(notification) => break assert_eq!(notification.message.tag, "a"),
                other => panic!("{other:?}"),
            }
            assert_eq!(taken(&mut queue, now - 1), None);
        }
        assert_eq!(times, [0, 1000, 3000, 7000]);
        assert!(queue.next().unwrap() > now, "the next one waits as well");
        // `Retry-After` counts where it is longer.
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.take(0);
        queue.record_attempt(PostOutcome::Later(Some(5000)), GIVE_UP, 0);
        assert_eq!(queue.next(), Some(5000));
    }

    #[test]
    fn push_queue_withdraws_only_what_was_delivered() {
        // Still waiting.
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.push(notification("a", true));
        assert_eq!(queue.len(), 0);
        // Being sent, and dropped.
        queue.push(notification("a", false));
        queue.take(0);
        queue.push(notification("a", true));
        assert!(matches!(queue.record_attempt(FAILED, GIVE_UP, 0), AttemptOutcome::Dropped(_)));
        assert_eq!(queue.len(), 0);
        // Being sent, and delivered.
        queue.push(notification("a", false));
        assert!(queue.take(100_000).is_some());
        queue.push(notification("a", true));
        assert!(matches!(
            queue.record_attempt(PostOutcome::Taken(201), GIVE_UP, 100_000),
            AttemptOutcome::Delivered(_)
        ));
        assert_eq!(taken(&mut queue, 100_000).as_deref(), Some("-a"));
        // Failed before, and waiting to be tried again.
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.take(0);
        assert!(matches!(queue.record_attempt(FAILED, GIVE_UP, 0), AttemptOutcome::Retry));
        queue.push(notification("a", true));
        assert_eq!((queue.len(), queue.next()), (0, None));
    }

    #[test]
    fn push_queue_is_emptied_for_a_gone_target_and_drops_its_oldest_when_full() {
        let mut queue = DeliveryQueue::default();
        queue.push(notification("a", false));
        queue.push(notification("b", false));
        queue.take(0);
        assert!(matches!(queue.record_attempt(PostOutcome::Gone(410), GIVE_UP, 0), AttemptOutcome::Gone));
        assert_eq!(queue.len(), 0);
        queue.push(notification("first", false));
        queue.take(0);
        for n in 0..WAITING - 1 {
            assert!(queue.push(notification(&n.to_string(), false)).is_none());
        }
        let dropped = queue.push(notification("last", false));
        assert_eq!(
            dropped.map(|notification| notification.message.tag).as_deref(),
            Some("0"),
            "not the one that is being sent"
        );
        assert_eq!(queue.len(), WAITING);
    }
}
