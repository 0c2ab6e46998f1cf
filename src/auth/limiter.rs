//! Counts of failed authentications. They slow guessing and keep the log short. They never block a valid token, because they are checked
//! only after a failure.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum number of failures of one address within [`FAILURE_WINDOW`] that get 401; further ones get 429.
pub const FAILURES: u32 = 30;
/// Time after which the count of an address starts again at zero.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses counted separately; further ones share one count.
const ADDRESSES: usize = 1024;

/// Maximum number of wrong short codes of one address within [`FAILURE_WINDOW`]; after them no code from it is accepted.
pub(super) const TRIES: u32 = 10;
/// Maximum number of wrong short codes of all addresses within [`FAILURE_WINDOW`]; after them no code is accepted. With so many in each
/// of two minutes, a guess hits one of sixteen codes in one of a hundred million such attacks.
pub(super) const ALL_TRIES: u32 = 300;

/// Failures by address.
#[derive(Debug)]
pub(super) struct Limiter {
    counts: HashMap<Option<IpAddr>, (Instant, u32)>,
    max: u32,
}

/// Wrong short codes, by address and in all. Unlike a token, a short code can be guessed, so this limit applies before the
/// check.
#[derive(Debug)]
pub(super) struct Tries {
    each: Limiter,
    all: Limiter,
}

impl Default for Tries {
    fn default() -> Self {
        Self { each: Limiter::new(TRIES), all: Limiter::new(ALL_TRIES) }
    }
}

impl Tries {
    /// Returns the time until codes from this address are accepted again, if they are blocked.
    pub(super) fn blocked(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        self.each.blocked_for(address, now).max(self.all.blocked_for(ANYBODY, now))
    }

    /// Counts a wrong code, like [`Limiter::failed`].
    pub(super) fn failed(&mut self, address: IpAddr, now: Instant) -> Option<Duration> {
        self.each.failed(address, now).max(self.all.failed(ANYBODY, now))
    }
}

/// The key for all addresses together.
const ANYBODY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

impl Default for Limiter {
    fn default() -> Self {
        Self::new(FAILURES)
    }
}

impl Limiter {
    fn new(max: u32) -> Self {
        Self { counts: HashMap::new(), max }
    }

    /// Returns the time until the count of an address starts at zero, if it has used up its failures.
    fn blocked_for(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let key = Some(address);
        // An address that is not in the full table shares the common count.
        let (since, count) = self.counts.get(&key).or_else(|| self.counts.get(&None))?;
        let left = FAILURE_WINDOW.saturating_sub(now.duration_since(*since));
        (*count >= self.max && !left.is_zero()).then_some(left)
    }

    /// Counts a failure. Returns the time until the count starts at zero, if the address failed too often.
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
        (*count > self.max).then(|| FAILURE_WINDOW.saturating_sub(now.duration_since(*since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(n).into()
    }

    #[test]
    fn failures_over_the_limit_are_refused_until_the_window_ends() {
        let (mut limiter, now) = (Limiter::default(), Instant::now());
        for _ in 0..FAILURES {
            assert_eq!(limiter.failed(address(1), now), None);
        }
        assert_eq!(limiter.failed(address(1), now), Some(FAILURE_WINDOW));
        assert_eq!(limiter.failed(address(2), now), None, "another address has its own count");
        assert_eq!(limiter.failed(address(1), now + FAILURE_WINDOW), None);
    }

    #[test]
    fn wrong_codes_block_their_address_and_many_block_every_address() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        for _ in 0..TRIES {
            assert_eq!(tries.blocked(address(1), now), None);
            assert_eq!(tries.failed(address(1), now), None);
        }
        assert_eq!(tries.blocked(address(1), now), Some(FAILURE_WINDOW));
        assert_eq!(tries.blocked(address(2), now), None);
        assert_eq!(tries.blocked(address(1), now + FAILURE_WINDOW), None);
        for n in 0..ALL_TRIES {
            tries.failed(address(100 + n), now);
        }
        assert_eq!(tries.blocked(address(2), now), Some(FAILURE_WINDOW));
        assert_eq!(tries.blocked(address(2), now + FAILURE_WINDOW), None);
    }

    #[test]
    fn addresses_cost_a_bounded_amount_of_memory() {
        let (mut limiter, now) = (Limiter::default(), Instant::now());
        for n in 0..10_000 {
            limiter.failed(address(n), now);
        }
        assert!(limiter.counts.len() <= ADDRESSES + 1);
        assert!(limiter.failed(address(99_999), now).is_some(), "the rest share one count");
        assert_eq!(limiter.failed(address(99_999), now + FAILURE_WINDOW), None, "old counts make room");
    }
}
