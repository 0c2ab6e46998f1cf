//! The settings shared by all sessions.

use super::prompts::PROMPT_MAX;

/// Settings of all sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionRules {
    /// Time after which an open request expires, in milliseconds.
    pub expire_ms: Option<u64>,
    /// Maximum number of queued prompts of a session; one more is refused.
    pub queue: usize,
    /// Maximum size of a prompt, in bytes of its content; a longer one is refused.
    pub prompt_max: usize,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { expire_ms: None, queue: 64, prompt_max: PROMPT_MAX }
    }
}
