//! Random moments for the stories in which something is killed, drawn from a seed that is printed.

use std::time::Duration;

/// A generator (xorshift64); `PLEXUS_SEED` has a round again.
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

    /// Waits for less than so many milliseconds.
    pub async fn pass(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.below(most_ms))).await;
    }
}

/// How many kills of each side: few in CI, many by `PLEXUS_KILLS`.
pub fn kills() -> u64 {
    std::env::var("PLEXUS_KILLS").map_or(2, |kills| kills.parse().expect("PLEXUS_KILLS is a number"))
}
