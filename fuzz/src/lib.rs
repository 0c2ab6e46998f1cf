//! What every target does: bytes against one dialect. The bench, and what it holds a dialect to, is that of the tests.

// The one file outside of this folder: the tests' own, so that both hold a dialect to the same.
#[path = "../../tests/common/decoder.rs"]
mod decoder;

use decoder::Bench;

/// The first byte says where the connection stands, before or after its handshake; the rest is what happens, a line each.
pub fn run(dialect: &str, data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut bench = if first % 2 == 0 { Bench::ready(dialect) } else { Bench::new(dialect) };
    bench.run(rest);
    assert!(bench.asks_agree());
}

/// A target for a dialect.
#[macro_export]
macro_rules! target {
    ($dialect:literal) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| plexus_fuzz::run($dialect, data));
    };
}
