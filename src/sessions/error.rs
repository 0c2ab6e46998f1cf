//! Why something that a client asked for was not done.

use crate::auth::Denied;
use crate::ledger::LedgerFull;
use plexus_protocol::{Receipt, RequestId, RequestState, Risk, RuntimeId, SessionId};

/// Why something that a client asked for was not done. Nothing of it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionError {
    /// No such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// No such runtime.
    #[error("there is no runtime {0}")]
    NoRuntime(RuntimeId),
    /// No such request.
    #[error("there is no request {0}")]
    NoRequest(RequestId),
    /// The run's prompt is not kept.
    #[error("the prompt of that run is not stored: {0}")]
    NotKept(&'static str),
    /// No such run, or it is over.
    #[error("no such run is active or queued")]
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
    #[error("{0}")]
    RiskTooHigh(Box<TooRisky>),
    /// The request is not what the client showed.
    #[error("the digest does not match the open request: read the request again before answering")]
    StaleDigest,
    /// The request is too long to be shown unasked, and the client has not shown that it has read all of it.
    #[error(
        "this request was shown in part: fetch it by its id, then allow it with the digest of the complete request"
    )]
    DigestRequired,
    /// The runtime takes no answers from here.
    #[error("this request can only be viewed here: answer it where the agent runs")]
    ObserveOnly,
    /// The answer does not fit the request.
    #[error("{message}")]
    BadAnswer {
        /// Stable: `option_not_offered`, `remember_not_offered`, `reason_not_offered`, `answer_type`, `item_not_offered`, `edit_not_offered`,
        /// `bad_edit`, `answer_missing`, `answer_unfit`.
        code: &'static str,
        /// In words, with what would fit.
        message: String,
        /// Which of the agent's fields it is about, if it is one.
        field: Option<String>,
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
    /// The runtime says nothing.
    #[error("the runtime has not responded for {0} seconds: it may be busy, or hang; restart it with `plexus restart`")]
    RuntimeSilent(u64),
    /// The runtime does not list this.
    #[error("runtime {runtime} cannot list {what}: {why}")]
    ListingUnsupported {
        /// The runtime.
        runtime: RuntimeId,
        /// What it was asked for.
        what: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The queue of prompts is full.
    #[error("{0} prompts are already queued: cancel one, or wait")]
    QueueFull(usize),
    /// The prompt is too long.
    #[error(
        "a prompt may have at most {limit} bytes, and this one has {bytes}: put the rest into a file that the agent \
         can read"
    )]
    PromptTooLarge {
        /// Bytes of its content.
        bytes: usize,
        /// Bytes that it may have.
        limit: usize,
    },
    /// An account has no room for it.
    #[error("{0}")]
    OverLimit(LedgerFull),
    /// An idempotency key that is none.
    #[error("an idempotency key must be 1 to {} visible ASCII characters", super::KEY_MAX)]
    BadKey,
    /// The idempotency key belongs to another prompt, or another answer.
    #[error("this idempotency key was used for another request: use a new key for each prompt and each answer")]
    KeyReused,
    /// A runtime with this name is attached already.
    #[error("a runtime named {0} already exists: choose another id")]
    RuntimeExists(RuntimeId),
    /// What was asked makes no sense; in words, with the fix.
    #[error("{0}")]
    Invalid(String),
    /// The device may not have an agent work in this folder; in words.
    #[error("{0}")]
    Folder(String),
    /// The state cannot be written: no space, or the disk fails. Reading still works.
    #[error("the state cannot be stored now: {0}")]
    Storage(String),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

/// Why a device may not give an answer, and who may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooRisky {
    /// The request's, or danger where a yes is for always.
    pub risk: Risk,
    /// The device's.
    pub up_to: Risk,
    /// Why the risk is what it is, in words.
    pub reasons: Vec<String>,
    /// Names of devices that may, as far as this one may know them.
    pub devices: Vec<String>,
}

/// Most reasons that a refusal's words have.
const REASONS_SAID: usize = 4;

impl std::fmt::Display for TooRisky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (risk, up_to) = (self.risk.as_str(), self.up_to.as_str());
        write!(f, "this is {risk}")?;
        for (n, why) in self.reasons.iter().take(REASONS_SAID).enumerate() {
            write!(f, "{}{why}", if n == 0 { " (" } else { "; " })?;
        }
        f.write_str(if self.reasons.is_empty() { "" } else { ")" })?;
        write!(
            f,
            ", and this device may answer up to {up_to}. Answer it on the machine that Plexus runs on (`plexus attach`, "
        )?;
        write!(f, "`plexus answer`), or on a device that may answer {risk}")?;
        if !self.devices.is_empty() {
            write!(f, ": {}", self.devices.join(", "))?;
        }
        Ok(())
    }
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
