//! Waiting for events: a commit wakes only the readers whose filter accepts one of its events.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::Filter;
use plexus_protocol::{Event, SessionId};

/// Notified of events that a filter accepts. For one waiter.
pub struct EventWatch {
    watchers: Arc<Watchers>,
    filter: Filter,
    number: u64,
    notify: Arc<Notify>,
}

impl EventWatch {
    pub(super) fn new(watchers: Arc<Watchers>, filter: Filter) -> Self {
        let notify = Arc::new(Notify::new());
        let number = watchers.lock().insert(&filter, &notify);
        Self { watchers, filter, number, notify }
    }

    /// Waits until there were events since the last call, or until [`wake`](Self::wake) is called. Cancellation safe.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }

    /// Ends a wait, or the next one.
    pub fn wake(&self) {
        self.notify.notify_one();
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        self.watchers.lock().remove(&self.filter, self.number);
    }
}

/// All waiters.
#[derive(Default)]
pub(super) struct Watchers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// Waiters whose filter names sessions.
    by_session: HashMap<SessionId, Vec<Waiting>>,
    /// The waiters whose filter does not name sessions.
    all_sessions: Vec<Waiting>,
}

struct Waiting {
    number: u64,
    filter: Arc<Filter>,
    notify: Arc<Notify>,
}

impl Watchers {
    /// Wakes the waiters whose filter accepts one of these events.
    pub(super) fn notify(&self, events: &[Arc<Event>]) {
        let inner = self.lock();
        for (n, event) in events.iter().enumerate() {
            let origin = &event.origin;
            // Consecutive events are mostly of one session, and one is enough to wake its waiters.
            if n > 0 && events.get(n - 1).is_some_and(|before| Arc::ptr_eq(&before.origin, origin)) {
                continue;
            }
            let waiting = inner.by_session.get(&origin.session_id).into_iter().flatten();
            for waiting in waiting.chain(&inner.all_sessions).filter(|waiting| waiting.filter.takes(origin)) {
                waiting.notify.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}

impl Inner {
    fn insert(&mut self, filter: &Filter, notify: &Arc<Notify>) -> u64 {
        self.next += 1;
        let number = self.next;
        let shared = Arc::new(filter.clone());
        let waiting = || Waiting { number, filter: Arc::clone(&shared), notify: Arc::clone(notify) };
        match &filter.sessions {
            Some(some) => {
                some.iter().for_each(|session| self.by_session.entry(session.clone()).or_default().push(waiting()))
            }
            None => self.all_sessions.push(waiting()),
        }
        number
    }

    fn remove(&mut self, filter: &Filter, number: u64) {
        match &filter.sessions {
            Some(some) => {
                for session in some {
                    if let Some(waiting) = self.by_session.get_mut(session) {
                        waiting.retain(|waiting| waiting.number != number);
                        if waiting.is_empty() {
                            self.by_session.remove(session);
                        }
                    }
                }
            }
            None => self.all_sessions.retain(|waiting| waiting.number != number),
        }
    }
}
