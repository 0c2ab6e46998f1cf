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

/// Wrong short codes of one address within [`FAILURE_WINDOW`] after which no code from there is good.
pub(super) const TRIES: u32 = 10;
/// Wrong short codes of all addresses together within [`FAILURE_WINDOW`] after which no code is good: with so many in each
/// of two minutes, a guess hits one of sixteen codes in a hundred million such attacks.
pub(super) const ALL_TRIES: u32 = 300;

/// Failures by address.
#[derive(Debug)]
pub(super) struct Limiter {
    counts: HashMap<Option<IpAddr>, (Instant, u32)>,
    most: u32,
}

/// Wrong short codes, by address and together. Unlike a token, a short code can be guessed: so this one stands before the
/// proof.
#[derive(Debug)]
pub(super) struct Tries {
    each: Limiter,
    all: Limiter,
}

impl Default for Tries {
    fn default() -> Self {
        Self { each: Limiter::of(TRIES), all: Limiter::of(ALL_TRIES) }
    }
}

impl Tries {
    /// `Some` says how long until a code from this address counts again.
    pub(super) fn blocked(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        self.each.over(address, now).max(self.all.over(ANYBODY, now))
    }

    /// Counts a wrong one, as [`Limiter::failed`].
    pub(super) fn failed(&mut self, address: IpAddr, now: Instant) -> Option<Duration> {
        self.each.failed(address, now).max(self.all.failed(ANYBODY, now))
    }
}

/// The address that stands for all.
const ANYBODY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

impl Default for Limiter {
    fn default() -> Self {
        Self::of(FAILURES)
    }
}

impl Limiter {
    fn of(most: u32) -> Self {
        Self { counts: HashMap::new(), most }
    }

    /// Whether an address has used up what it may get wrong; if so, how long until it starts anew.
    fn over(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let key = Some(address);
        // A stranger in a full table is one of the rest.
        let (since, count) = self.counts.get(&key).or_else(|| self.counts.get(&None))?;
        let left = FAILURE_WINDOW.saturating_sub(now.duration_since(*since));
        (*count >= self.most && !left.is_zero()).then_some(left)
    }

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
        (*count > self.most).then(|| FAILURE_WINDOW.saturating_sub(now.duration_since(*since)))
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
