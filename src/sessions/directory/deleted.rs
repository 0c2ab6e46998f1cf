//! The recently deleted sessions, for clients that follow the list of sessions.

use std::collections::VecDeque;

use super::*;

/// Maximum number of deleted sessions that are remembered; a client that is further behind lists all sessions again.
pub(crate) const REMEMBERED: usize = 256;

/// The last `REMEMBERED` deleted sessions.
pub struct DeletedSessions {
    last: Mutex<VecDeque<Arc<Origin>>>,
    /// The number of sessions deleted since the start.
    count: watch::Sender<u64>,
}

impl Default for DeletedSessions {
    fn default() -> Self {
        Self { last: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl DeletedSessions {
    /// Returns the number of sessions deleted since the start, as a watch.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Returns the sessions deleted since the number was `count`, and the current number. `None` if that was too long ago: the caller has
    /// to list all sessions again.
    pub fn since(&self, count: u64) -> Option<(Vec<Arc<Origin>>, u64)> {
        let last = self.last.lock();
        let now = *self.count.borrow();
        let new = usize::try_from(now.saturating_sub(count)).ok().filter(|new| *new <= last.len())?;
        Some((last.iter().skip(last.len() - new).cloned().collect(), now))
    }

    /// Reports a deleted session to clients.
    pub(crate) fn add(&self, session: Arc<Origin>) {
        let mut last = self.last.lock();
        last.push_back(session);
        if last.len() > REMEMBERED {
            last.pop_front();
        }
        self.count.send_modify(|count| *count += 1);
    }
}
