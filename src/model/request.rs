//! Questions, answers, receipts.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Cursor, DeviceId, RequestId, RunId, RuntimeId, SessionId, Timestamp};

/// What sort of question a request is; it decides which answers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestType {
    /// Yes or no, from the UI protocol.
    Confirm,
    /// Free text.
    Prompt,
    /// One or several of a list.
    Pick,
    /// ACP's `session/request_permission`: one of the offered options.
    Permission,
    /// ACP's `elicitation/create`.
    Elicitation,
}

/// Where a request stands. It leaves `Open` once, and never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waiting for people.
    Open,
    /// Somebody answered.
    Answered,
    /// Its deadline passed: not a user decision.
    Expired,
    /// The run was cancelled, ended, or the runtime took the question back.
    Withdrawn,
    /// The runtime that asked is gone.
    Orphaned,
}

/// How much harm a yes could do, by the gateway's own judgement of what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It reads and searches, inside the session's folder.
    Low,
    /// Anything that is neither of the others.
    Elevated,
    /// It destroys, escalates, runs what it fetches, hides something, or the runtime itself says so.
    Danger,
}

impl Risk {
    /// Requests from before there was a judgement: the worst is assumed.
    const fn unjudged() -> Self {
        Self::Danger
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Elevated => "elevated",
            Self::Danger => "danger",
        }
    }
}

/// What an option means, so that clients can draw it (ACP `PermissionOptionKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This once.
    AllowOnce,
    /// From now on.
    AllowAlways,
    /// Not this once.
    RejectOnce,
    /// Never.
    RejectAlways,
    /// A kind that we do not know; drawn plainly.
    #[serde(other)]
    Other,
}

impl Choice {
    /// Whether choosing it lets the agent go ahead.
    pub const fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Whether choosing it tells the agent no.
    pub const fn rejects(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

/// One of the answers that the runtime offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The runtime's own identifier for it.
    pub id: String,
    /// What to write on the button.
    pub label: String,
    /// What it means.
    pub kind: Choice,
}

/// One of the things that a pick offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The runtime's own identifier for it.
    pub id: String,
    /// Its name.
    pub label: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A question from a runtime to people, as every client sees it.
///
/// `title` and `message` are the agent's words, untouched; `display` is the gateway's own rendering of exactly what is
/// asked, with every deceptive character made visible.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Its identifier.
    pub request_id: RequestId,
    /// The conversation it came up in.
    pub session_id: SessionId,
    /// The run it came up in.
    pub run_id: RunId,
    /// The runtime that asks.
    pub runtime_id: RuntimeId,
    /// Which start of the runtime asks; an answer never reaches another.
    pub generation: u64,
    /// What sort of question.
    #[serde(rename = "type")]
    pub kind: RequestType,
    /// Where it stands.
    pub state: RequestState,
    /// The agent's headline.
    pub title: String,
    /// The agent's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What is asked, safe to show.
    pub display: String,
    /// What a person should know before answering.
    pub warnings: Vec<String>,
    /// How much harm a yes could do.
    #[serde(default = "Risk::unjudged")]
    pub risk: Risk,
    /// SHA-256 (hex) of the canonical request: what is shown is what is decided.
    pub digest: String,
    /// The answers offered.
    pub options: Vec<Offer>,
    /// The things to pick from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// Whether several may be picked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi: bool,
    /// What a prompt starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    /// Whether a prompt takes several lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiline: bool,
    /// Whether what is typed must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Whether the runtime calls it dangerous.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub danger: bool,
    /// Whether the runtime's dialect can carry a reason.
    pub allow_reason: bool,
    /// Whether the runtime's dialect can carry "remember this".
    pub allow_remember: bool,
    /// Whether it can only be watched here: its runtime takes the answer elsewhere alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_only: bool,
    /// The tool call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What the runtime sent, untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Box<RawValue>>,
    /// When it closes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was asked.
    pub opened_at: Timestamp,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What a client says to a request. Exactly one of `option_id`, `ok`, `value`, `ids` is given (`value: null` and
/// `ids: []` mean "cancelled").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// One of the request's options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Text; the outer `None` is "not given", the inner one "cancelled".
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub value: Option<Option<String>>,
    /// What was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Why, for the agent to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to remember the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<bool>,
    /// The digest of what the client showed; a stale one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Tells `null` (given, and null) from absent.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

/// A decision in the form the runtime's dialect writes down; only made from a validated answer, or by the gateway itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// One of the offered options, and why.
    Option {
        /// The runtime's own identifier of it.
        id: String,
        /// What it means.
        kind: Choice,
        /// Why, if the dialect can carry it.
        reason: Option<String>,
    },
    /// Text, or `None` for "cancelled".
    Value(Option<String>),
    /// What was picked; empty for "cancelled".
    Ids(Vec<String>),
    /// The deadline passed: told to the agent as "expired, not a user decision".
    Expired,
    /// The run is being cancelled.
    Withdrawn,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolver {
    /// The device, or `gateway` for a decision of the gateway's own.
    pub device_id: DeviceId,
    /// Its name.
    pub name: String,
}

impl Resolver {
    /// The gateway itself: expiry, cancel, a runtime's death.
    pub fn gateway() -> Self {
        Self { device_id: DeviceId::trusted("gateway"), name: "gateway".into() }
    }

    /// Somebody past the gateway: another client of the same runtime, as far as it is known.
    pub fn elsewhere(name: impl Into<String>) -> Self {
        Self { device_id: DeviceId::trusted("elsewhere"), name: name.into() }
    }
}

/// The durable record of what became of a request, and who won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The request.
    pub request_id: RequestId,
    /// How it ended.
    pub state: RequestState,
    /// The option chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Whether the choice lets the agent go ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The text given (never for a secret prompt).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Why, in the words of whoever answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who decided.
    pub resolved_by: Resolver,
    /// When.
    pub at: Timestamp,
    /// The place of the `request_resolved` event in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Whether the reader of this receipt is the one who decided.
    #[serde(default)]
    pub won: bool,
}
