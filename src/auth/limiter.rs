//! Counts failed proofs. It slows guessing and the log's noise; it never stands in the way of a good token, because it is
//! asked only after the proof failed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures of one address within [`FAILURE_WINDOW`] that are told 401; further ones are told 429.
pub const FAILURES: u32 = 30;
/// After this long an address starts anew.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Addresses counted at once; past it, all the others share one count.
const ADDRESSES: usize = 1024;

/// Failures by address.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    counts: HashMap<Option<IpAddr>, (Instant, u32)>,
}

impl Limiter {
    /// Counts a failure. `Some` says how long until the address starts anew, if it has failed too often.
    pub(super) fn failed(&mut self, address: IpAddr, now: Instant) -> Option<Duration> {
        let mut key = Some(address);
        if !self.counts.contains_key(&key) && self.counts.len() >= ADDRESSES {
            self.counts.retain(|_, (since, _)| now.duration_since(*since) < FAILURE_WINDOW);
            if self.counts.len() >= ADDRESSES {
                key = None;
            }
        }
        let (since, count) = self.counts.entry(key).or_insert((now, 0));
        if now.duration_since(*since) >= FAILURE_WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        (*count > FAILURES).then(|| FAILURE_WINDOW.saturating_sub(now.duration_since(*since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(n).into()
    }

    #[test]
    fn too_many_failures_are_told_so_until_the_window_is_over() {
        let (mut limiter, now) = (Limiter::default(), Instant::now());
        for _ in 0..FAILURES {
            assert_eq!(limiter.failed(address(1), now), None);
        }
        assert_eq!(limiter.failed(address(1), now), Some(FAILURE_WINDOW));
        assert_eq!(limiter.failed(address(2), now), None, "another address has its own count");
        assert_eq!(limiter.failed(address(1), now + FAILURE_WINDOW), None);
    }

    #[test]
    fn a_crowd_of_addresses_costs_a_bounded_amount_of_memory() {
        let (mut limiter, now) = (Limiter::default(), Instant::now());
        for n in 0..10_000 {
            limiter.failed(address(n), now);
        }
        assert!(limiter.counts.len() <= ADDRESSES + 1);
        assert!(limiter.failed(address(99_999), now).is_some(), "the rest share one count");
        assert_eq!(limiter.failed(address(99_999), now + FAILURE_WINDOW), None, "old counts make room");
    }
}
