//! Idempotency keys in the form that clients send.

/// Maximum length of an idempotency key, in bytes; a longer one is refused.
pub const KEY_MAX: usize = 128;

/// Returns whether a text may be an idempotency key.
pub(super) fn is_valid_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= KEY_MAX && key.bytes().all(|byte| byte.is_ascii_graphic())
}
