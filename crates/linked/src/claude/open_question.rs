//! An open question of a session. Pure.

use bytes::Bytes;

use super::permission::{Call, Permission};
use plexus_dialects::{AgentRequest, RequestKey};
use plexus_protocol::Decision;

/// An open question. By default only its key is known: an earlier gateway process asked it, and its hook has not come again.
#[derive(Default)]
pub(super) struct OpenQuestion {
    /// The hook that waits for the answer.
    pub(super) connection: Option<u64>,
    /// The number of ticks without a hook.
    pub(super) absent_ticks: u32,
    pub(super) permission: Option<Permission>,
    /// The tool call of the question.
    pub(super) call: Option<String>,
    /// `true` once the question is shown.
    pub(super) visible: bool,
    /// `true` once it is shown that only the terminal can answer the question.
    pub(super) only_at_terminal: bool,
    pub(super) native: Bytes,
    /// The answer, until the hook has it.
    pub(super) answer: Option<Decision>,
    /// `true` once the hook has the answer.
    pub(super) answer_sent: bool,
}

impl OpenQuestion {
    pub(super) fn is_about(&self, call: &Call) -> bool {
        self.permission.as_ref().is_some_and(|permission| permission.is_about(call))
    }

    /// Makes the question to the user; `None` if its content is unknown.
    pub(super) fn request(&self, key: &RequestKey) -> Option<AgentRequest> {
        let permission = self.permission.as_ref()?;
        let mut request = permission.request(key.clone(), self.call.clone(), self.native.clone());
        if self.only_at_terminal {
            request.observe_only = true;
            request.message =
                Some("It can only be answered at the terminal: the hook that waited for an answer has ended.".into());
        }
        Some(request)
    }
}
