//! The order of HTTP requests to an endpoint.
//!
//! Requests about one session are made one after the other, in their order, and concurrently with those about other sessions. A request
//! about the whole endpoint is made when all before it have ended, and those after it wait for it. A decision (an answer, a cancel) waits
//! for no read, only for earlier changes of its session. Pure: no I/O, no clock.

use std::collections::{HashSet, VecDeque};

use plexus_dialects::HttpRequest;
use plexus_protocol::NativeId;

/// Maximum number of waiting requests; one more is refused.
pub(super) const WAITING_MAX: usize = 4096;

/// Maximum number of concurrent requests, without decisions; more wait for their turn.
pub(super) const UNDER_WAY_MAX: usize = 8;

/// Maximum number of concurrent decisions; more wait for their turn.
pub(super) const DECIDING_MAX: usize = 16;

/// The requests to one endpoint, from their creation until their replies arrive.
#[derive(Debug, Default)]
pub(super) struct FetchQueue {
    waiting: VecDeque<HttpRequest>,
    /// The number of decisions in `waiting`.
    decisions: usize,
    under_way: Vec<UnderWay>,
    /// `true` if no request can begin until one is pushed or has ended.
    stuck: bool,
}

#[derive(Debug)]
struct UnderWay {
    fetch: HttpRequest,
    /// `true` if a decision about the same session was sent after this read began: the reply may be older than the decision.
    overtaken: bool,
}

/// The sessions that some requests are about.
#[derive(Debug, Default)]
struct About<'a> {
    /// `true` if one of the requests is about the whole endpoint.
    all: bool,
    sessions: HashSet<&'a NativeId>,
}

impl<'a> About<'a> {
    fn add(&mut self, fetch: &'a HttpRequest) {
        match &fetch.session {
            Some(session) => _ = self.sessions.insert(session),
            None => self.all = true,
        }
    }

    /// Returns whether a request is about one of these sessions, too.
    fn shares(&self, fetch: &HttpRequest) -> bool {
        match &fetch.session {
            Some(session) => self.all || self.sessions.contains(session),
            None => self.all || !self.sessions.is_empty(),
        }
    }
}

impl FetchQueue {
    /// Adds a request; returns it if [`WAITING_MAX`] of them wait.
    pub(super) fn push(&mut self, fetch: HttpRequest) -> Result<(), HttpRequest> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(fetch);
        }
        self.decisions += usize::from(fetch.decides);
        self.waiting.push_back(fetch);
        self.stuck = false;
        Ok(())
    }

    /// Returns a request whose turn it is; it is in progress until [`finish`](Self::finish) is called for it.
    pub(super) fn next(&mut self) -> Option<HttpRequest> {
        if self.stuck {
            return None;
        }
        let Some(index) = self.next_index() else {
            self.stuck = true;
            return None;
        };
        let fetch = self.waiting.remove(index)?;
        if fetch.decides {
            self.decisions -= 1;
            for other in self.under_way.iter_mut().filter(|other| other.fetch.reads()) {
                other.overtaken |= match (&other.fetch.session, &fetch.session) {
                    (Some(read), Some(decided)) => read == decided,
                    _ => true,
                };
            }
        }
        self.under_way.push(UnderWay { fetch: fetch.clone(), overtaken: false });
        Some(fetch)
    }

    /// Returns the index of the first request that may begin now.
    fn next_index(&self) -> Option<usize> {
        let deciding = self.under_way.iter().filter(|one| one.fetch.decides).count();
        let may_decide = self.decisions > 0 && deciding < DECIDING_MAX;
        let may_others = self.under_way.len() - deciding < UNDER_WAY_MAX;
        if !may_decide && !may_others {
            return None;
        }
        // The sessions of all earlier requests, and of those that change something.
        let (mut before, mut changes) = (About::default(), About::default());
        for fetch in self.under_way.iter().map(|one| &one.fetch) {
            before.add(fetch);
            if fetch.acts() {
                changes.add(fetch);
            }
        }
        for (index, fetch) in self.waiting.iter().enumerate() {
            let begins =
                if fetch.decides { may_decide && !changes.shares(fetch) } else { may_others && !before.shares(fetch) };
            if begins {
                return Some(index);
            }
            before.add(fetch);
            if fetch.acts() {
                changes.add(fetch);
            }
            if changes.all || (!may_decide && before.all) {
                return None;
            }
        }
        None
    }

    /// Ends a request. Returns `false` if its reply, which arrived if `replied`, must not be used: a decision overtook the request, and
    /// it is made once more.
    pub(super) fn finish(&mut self, id: u64, replied: bool) -> bool {
        self.stuck = false;
        let Some(index) = self.under_way.iter().position(|one| one.fetch.id == id) else { return true };
        let one = self.under_way.swap_remove(index);
        let again = one.overtaken && replied;
        if again {
            self.waiting.push_front(one.fetch);
        }
        !again
    }

    /// Returns the decisions that have not been sent; other waiting requests are dropped.
    pub(super) fn into_decisions(self) -> impl Iterator<Item = HttpRequest> {
        self.waiting.into_iter().filter(|fetch| fetch.decides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_dialects::HttpBase;

    /// `read A`, `act A`, `decide A`, where `*` is the whole endpoint.
    fn fetch(id: u64, words: &str) -> HttpRequest {
        let (what, about) = words.split_once(' ').unwrap();
        HttpRequest {
            id,
            base: HttpBase::Connect,
            method: if what == "read" { "GET" } else { "POST" },
            path: words.into(),
            body: None,
            decides: what == "decide",
            session: (about != "*").then(|| about.into()),
        }
    }

    fn queue(wanted: &[&str]) -> FetchQueue {
        let mut queue = FetchQueue::default();
        for (id, words) in (1..).zip(wanted) {
            queue.push(fetch(id, words)).unwrap();
        }
        queue
    }

    /// Begins the requests that may begin now, and returns them.
    fn begun(queue: &mut FetchQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.next()).map(|fetch| fetch.id).collect()
    }

    #[test]
    fn fetch_queue_begins_what_waits_for_nothing_before_it() {
        for (wanted, now) in [
            (&["read A", "read B", "read A", "read C"][..], &[1, 2, 4][..]),
            (&["read A", "read *", "read B"], &[1]),
            (&["read *", "read A", "read *"], &[1]),
            (&["act A", "act B", "read A", "act B"], &[1, 2]),
            (&["read A", "read *", "decide B", "decide A"], &[1, 3, 4]),
            (&["act A", "decide A", "decide B", "decide *"], &[1, 3]),
            (&["read A", "act A", "decide A", "decide B"], &[1, 4]),
            (&["act *", "decide A"], &[1]),
            (&["decide A", "read A", "read B", "decide A"], &[1, 3, 4]),
        ] {
            assert_eq!(begun(&mut queue(wanted)), now, "{wanted:?}");
        }
    }

    #[test]
    fn fetch_queue_keeps_its_bounds_and_the_order_of_a_session() {
        let sessions: Vec<String> = (0..20).map(|n| format!("read {}", n % 10)).collect();
        let mut queue = queue(&sessions.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(begun(&mut queue), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(queue.finish(3, true));
        assert_eq!(begun(&mut queue), [9]);
        assert!(queue.finish(1, false));
        assert_eq!(begun(&mut queue), [10], "the session's next waits for no session that comes first in the queue");
        assert!(queue.finish(10, true) && queue.finish(9, true));
        assert_eq!(begun(&mut queue), [11, 13]);
        for id in 0..DECIDING_MAX as u64 + 4 {
            queue.push(fetch(100 + id, "decide 1")).unwrap();
        }
        assert_eq!(begun(&mut queue).len(), DECIDING_MAX);
        let ended: Vec<u64> = queue.into_decisions().map(|fetch| fetch.id).collect();
        assert_eq!(ended, [116, 117, 118, 119]);
    }

    #[test]
    fn fetch_queue_reads_again_what_a_decision_of_its_session_overtook() {
        let mut queue = queue(&["read A", "read B", "decide A", "read A"]);
        assert_eq!(begun(&mut queue), [1, 2, 3]);
        assert!(queue.finish(2, true), "it was about another session");
        assert!(queue.finish(3, true));
        assert!(!queue.finish(1, true));
        assert_eq!(begun(&mut queue), [1], "again, and before what came later");
        assert!(queue.finish(1, true));
        assert_eq!(begun(&mut queue), [4]);
        queue.push(fetch(5, "decide *")).unwrap();
        assert_eq!(begun(&mut queue), [5]);
        assert!(queue.finish(4, false), "a failure is told: nothing was read");
    }

    #[test]
    fn fetch_queue_refuses_what_there_is_no_room_for() {
        let mut queue = FetchQueue::default();
        for id in 0..WAITING_MAX as u64 {
            queue.push(fetch(id, "read *")).unwrap();
        }
        assert_eq!(queue.push(fetch(9999, "read A")).unwrap_err().id, 9999);
    }
}
