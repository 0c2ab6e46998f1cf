//! The errors of session operations.

use plexus_auth::Denied;
use plexus_dialects::RuntimeError;
use plexus_ledger::LedgerFull;
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{Receipt, RequestId, RequestState, Risk, RuntimeId, SessionId};
use plexus_store::StoreError;
use plexus_surfaces::{ActionError, SurfaceError};

/// The reason why an operation was refused. A refused operation had no effect.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionError {
    /// The session does not exist.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// The runtime does not exist.
    #[error("there is no runtime {0}")]
    NoRuntime(RuntimeId),
    /// The request does not exist.
    #[error("there is no request {0}")]
    NoRequest(RequestId),
    /// The run's prompt is not stored.
    #[error("the prompt of that run is not stored: {0}")]
    PromptNotStored(&'static str),
    /// The run does not exist, or has ended.
    #[error("no such run is active or queued")]
    NoRun,
    /// The device lacks a scope.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The request was answered before, by another client or under another key.
    #[error("already resolved by {}", .0.resolved_by.name)]
    AlreadyResolved(Box<Receipt>),
    /// The request closed without an answer: expired, withdrawn, or its runtime has ended.
    #[error("the request is closed: {}", closed(.0.state))]
    Closed(Box<Receipt>),
    /// The risk of what the device would allow or do is above its limit.
    #[error("{0}")]
    RiskTooHigh(Box<TooRisky>),
    /// The request changed after the client displayed it.
    #[error("the digest does not match the open request: read the request again before answering")]
    StaleDigest,
    /// The displayed request is incomplete, and the client did not send the digest of the complete request.
    #[error(
        "this request was displayed in part: fetch it by its id, then allow it with the digest of the complete request"
    )]
    DigestRequired,
    /// The runtime accepts no answers from the gateway.
    #[error("this request can only be viewed here: answer it where the agent runs")]
    ObserveOnly,
    /// The answer does not fit the request.
    #[error("{message}")]
    BadAnswer {
        /// A stable code: `option_not_offered`, `remember_not_offered`, `reason_not_offered`, `answer_type`, `item_not_offered`,
        /// `edit_not_offered`, `bad_edit`, `answer_missing`, `answer_unfit`.
        code: &'static str,
        /// The problem, and the valid values.
        message: String,
        /// The agent's form field that the error is about, if any.
        field: Option<String>,
    },
    /// The agent does not offer the mode or the model.
    #[error("{message}")]
    NotOffered {
        /// A stable code: `mode_not_offered`, `model_not_offered`.
        code: &'static str,
        /// The choices that the agent offers.
        message: String,
    },
    /// The runtime of the session has ended.
    #[error("the runtime of this session has ended: {0}")]
    RuntimeUnavailable(String),
    /// The runtime can have only one session, which is open. Contains the message.
    #[error("{0}")]
    OneSession(String),
    /// The runtime refused the call.
    #[error("the runtime refused: {message}")]
    RuntimeRefused {
        /// The runtime's JSON-RPC error code.
        code: i64,
        /// The runtime's message.
        message: String,
        /// The runtime's `data`.
        data: Option<Box<serde_json::value::RawValue>>,
    },
    /// The runtime did not respond in time; the number is the timeout in seconds.
    #[error("the runtime has not responded for {0} seconds: it may be busy, or hang; restart it with `plexus restart`")]
    RuntimeSilent(u64),
    /// The runtime cannot list the requested items.
    #[error("runtime {runtime} cannot list {list}: {reason}")]
    ListingUnsupported {
        /// The runtime's identifier.
        runtime: RuntimeId,
        /// The kind of list that is not supported.
        list: &'static str,
        /// The reason, and an alternative.
        reason: &'static str,
    },
    /// The prompt queue is full; the number is its length.
    #[error("{0} prompts are already queued: cancel one, or wait")]
    QueueFull(usize),
    /// The prompt has too many bytes.
    #[error(
        "a prompt may have at most {limit} bytes, and this one has {bytes}: put the rest into a file that the agent \
         can read"
    )]
    PromptTooLarge {
        /// Size of the prompt's content, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        limit: usize,
    },
    /// A memory limit of the ledger is reached.
    #[error("{0}")]
    OverLimit(LedgerFull),
    /// The memory limit for surfaces is reached.
    #[error("{0}: close a surface that is of no use any more, or show less")]
    SurfacesFull(LedgerFull),
    /// The idempotency key is malformed.
    #[error("an idempotency key must be 1 to {} visible ASCII characters", super::idempotency::KEY_MAX)]
    BadKey,
    /// The idempotency key was used for another prompt or answer.
    #[error("this idempotency key was used for another request: use a new key for each prompt and each answer")]
    KeyReused,
    /// A runtime with this name is attached already.
    #[error("a runtime named {0} already exists: choose another id")]
    RuntimeExists(RuntimeId),
    /// A call of an agent's tools draws nothing. The error contains the fix.
    #[error("{0}")]
    Surface(SurfaceError),
    /// The pressed item of a surface no longer exists, or has another text.
    #[error("{0}")]
    Action(ActionError),
    /// A call that draws in a session was made by the agent of another session.
    #[error("the agent of this session makes no such call now: use the tools of your own session")]
    NoSuchCall,
    /// Too many calls to draw are waiting.
    #[error("{0} calls that draw wait already: send one after the other, and merge small updates")]
    DrawsTooFast(usize),
    /// The arguments are invalid. Contains the fix.
    #[error("{0}")]
    Invalid(String),
    /// The device may not open sessions in this folder. Contains the reason.
    #[error("{0}")]
    Folder(String),
    /// The store cannot be written: no space, or the disk fails. Reading still works.
    #[error("the state cannot be stored now: {0}")]
    Storage(String),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

impl SessionError {
    /// Converts an error of the store to the error that callers get.
    pub(super) fn from_store(error: &StoreError) -> Self {
        match error {
            StoreError::NoSession(session) => Self::NoSession(session.clone()),
            error => Self::Storage(error.to_string()),
        }
    }

    /// Converts an error response of a runtime.
    pub(super) fn from_runtime(error: RuntimeError) -> Self {
        if error.code == ONE_SESSION {
            return Self::OneSession(error.message);
        }
        Self::RuntimeRefused { code: error.code, message: error.message, data: error.data }
    }
}

/// An action that a device may not take because of its risk limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Allowing a request.
    Allowing,
    /// Allowing a request permanently.
    AllowingAlways,
    /// An action with the effect of an approved command.
    Acting,
}

/// The reason why a device may not allow or do something, and which devices may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooRisky {
    /// The refused action.
    pub refused: Refused,
    /// The risk of the request or action; danger for an "always" answer.
    pub risk: Risk,
    /// The highest risk that the device may allow.
    pub up_to: Risk,
    /// The reasons for the risk.
    pub reasons: Vec<String>,
    /// Names of devices that may, as far as the calling device may see them.
    pub devices: Vec<String>,
}

impl TooRisky {
    /// Makes a value without names of devices.
    pub(super) fn new(refused: Refused, risk: Risk, up_to: Risk, reasons: Vec<String>) -> Self {
        Self { refused, risk, up_to, reasons, devices: Vec::new() }
    }
}

impl From<TooRisky> for SessionError {
    fn from(too: TooRisky) -> Self {
        Self::RiskTooHigh(Box::new(too))
    }
}

/// Maximum number of reasons in the message of a [`TooRisky`].
const REASONS_SHOWN: usize = 4;

impl std::fmt::Display for TooRisky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (risk, up_to) = (self.risk.as_str(), self.up_to.as_str());
        write!(f, "too risky for this device: this is {risk}")?;
        for (n, reason) in self.reasons.iter().take(REASONS_SHOWN).enumerate() {
            write!(f, "{}{reason}", if n == 0 { " (" } else { "; " })?;
        }
        f.write_str(if self.reasons.is_empty() { "" } else { ")" })?;
        let fix = match self.refused {
            Refused::Allowing => "Deny here, or allow at your computer (`plexus attach`, `plexus answer`)",
            Refused::AllowingAlways => "Allow once or deny here, or allow always at your computer (`plexus attach`)",
            Refused::Acting => "Do it at your computer",
        };
        write!(f, ", and the limit of this device is {up_to}. {fix}, or on a device that may allow {risk}")?;
        if !self.devices.is_empty() {
            write!(f, ": {}", self.devices.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the reason why a request is closed.
fn closed(state: RequestState) -> &'static str {
    match state {
        RequestState::Expired => "its deadline passed",
        RequestState::Withdrawn => "it was withdrawn",
        RequestState::Orphaned => "the runtime that asked has ended",
        RequestState::Answered => "it was answered",
        RequestState::Open => "it is open",
    }
}
