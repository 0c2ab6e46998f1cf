//! The number of repetitions of long tests, and random moments for the stories with kills, from a seed that is printed.

use std::time::Duration;

/// A generator (xorshift64); `PLEXUS_SEED` repeats a run.
pub struct Moments(u64);

impl Moments {
    pub fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let given = std::env::var("PLEXUS_SEED").ok().map(|seed| seed.parse().expect("PLEXUS_SEED is a number"));
        let seed: u64 = given.unwrap_or(u64::from(now.subsec_nanos())).max(1);
        eprintln!("PLEXUS_SEED={seed}");
        Self(seed)
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    /// Waits a random time below `most_ms` milliseconds.
    pub async fn pass(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.below(most_ms))).await;
    }
}

/// The number of repetitions of a long test: `small` by default, `full` with `PLEXUS_ROUNDS=full`, as in `just full`. Each use
/// is printed.
///
/// # Panics
/// `PLEXUS_ROUNDS` is neither `full` nor `small`.
pub fn rounds<N: std::fmt::Display>(what: &str, small: N, full: N) -> N {
    match std::env::var("PLEXUS_ROUNDS").as_deref() {
        Ok("full") => {
            println!("PLEXUS_ROUNDS=full: {full} {what}");
            full
        }
        Ok("small") | Err(_) => {
            println!("{small} {what}; {full} with PLEXUS_ROUNDS=full");
            small
        }
        Ok(other) => panic!("PLEXUS_ROUNDS={other}: it is `full` or `small`"),
    }
}

/// Polls until a condition holds.
///
/// # Panics
/// The condition does not hold within two minutes, in which a real agent starts on a busy machine.
pub async fn until_so(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while !so().await {
        assert!(std::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The number of kills of each side in the stories of attached servers: `PLEXUS_KILLS`, else by [`rounds`].
pub fn kills() -> u64 {
    let given = std::env::var("PLEXUS_KILLS").ok().map(|kills| kills.parse().expect("PLEXUS_KILLS is a number"));
    given.unwrap_or_else(|| rounds("kills of each side", 2, 50))
}
