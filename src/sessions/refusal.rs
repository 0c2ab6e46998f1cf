//! Why something that a client asked for was not done.

use crate::auth::Denied;
use crate::model::{Receipt, RequestId, RequestState, Risk, RuntimeId, SessionId};

/// Why something that a client asked for was not done. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// No such runtime.
    #[error("there is no runtime {0}")]
    NoRuntime(RuntimeId),
    /// No such request.
    #[error("there is no request {0}")]
    NoRequest(RequestId),
    /// No such run, or it is over.
    #[error("there is no such run under way or queued")]
    NoRun,
    /// The device lacks a scope.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// Somebody else, or this client with another key, has answered before.
    #[error("already resolved by {}", .0.resolved_by.name)]
    AlreadyResolved(Box<Receipt>),
    /// The request closed without an answer: expired, withdrawn, or its runtime is gone.
    #[error("the request is closed: {}", closed(.0.state))]
    Closed(Box<Receipt>),
    /// What is asked is riskier than the device may answer.
    #[error("this needs a device that may answer {}, and this one may up to {}", .risk.as_str(), .up_to.as_str())]
    RiskTooHigh {
        /// The request's, or danger where a yes is for always.
        risk: Risk,
        /// The device's.
        up_to: Risk,
    },
    /// The request is not what the client showed.
    #[error("the digest is not that of the open request: show it again before answering")]
    StaleDigest,
    /// The runtime takes no answers from here.
    #[error("this request can only be watched here: answer it where the agent runs")]
    ObserveOnly,
    /// The answer does not fit the request.
    #[error("{message}")]
    BadAnswer {
        /// Stable: `option_not_offered`, `remember_not_offered`, `reason_not_offered`, `answer_type`, `item_not_offered`.
        code: &'static str,
        /// In words, with what would fit.
        message: String,
    },
    /// The runtime of the session is gone.
    #[error("the runtime of this session is gone: {0}")]
    RuntimeGone(String),
    /// The runtime said no.
    #[error("the runtime refused: {message}")]
    RuntimeRefused {
        /// The runtime's JSON-RPC code.
        code: i64,
        /// The runtime's words.
        message: String,
        /// The runtime's data.
        data: Option<Box<serde_json::value::RawValue>>,
    },
    /// The queue of prompts is full.
    #[error("{0} prompts wait already: cancel one, or wait")]
    QueueFull(usize),
    /// An idempotency key that is none.
    #[error("an idempotency key is 1 to {} visible ASCII characters", super::KEY_MAX)]
    BadKey,
    /// The idempotency key belongs to another prompt.
    #[error("this idempotency key was used for another prompt: give each prompt a key of its own")]
    KeyReused,
    /// A runtime with this name is attached already.
    #[error("a runtime named {0} is attached already: choose another id")]
    RuntimeExists(RuntimeId),
    /// What was asked makes no sense; in words, with the fix.
    #[error("{0}")]
    Invalid(String),
    /// The state cannot be written: no space, or the disk fails. Reading still works.
    #[error("the state cannot be written now: {0}")]
    Storage(String),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

fn closed(state: RequestState) -> &'static str {
    match state {
        RequestState::Expired => "its deadline passed",
        RequestState::Withdrawn => "it was withdrawn",
        RequestState::Orphaned => "the runtime that asked is gone",
        RequestState::Answered => "it was answered",
        RequestState::Open => "it is open",
    }
}
