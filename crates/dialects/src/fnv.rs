//! FNV-1a, which recognizes text that was reported before without storing it.

/// The hash of empty text.
pub const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues `hash` with `text`.
pub fn fnv(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
