//! Requests, answers and receipts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::known_items::known_value;
use super::schema::Json;
use super::{About, Cursor, DeviceId, Question, RequestId, RunId, RuntimeId, SessionId, Timestamp};

/// The type of a request; it decides which answers are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestType {
    /// Yes or no (UI protocol).
    Confirm,
    /// Free text.
    Prompt,
    /// One or several items of a list.
    Pick,
    /// ACP's `session/request_permission`: one of the offered options.
    Permission,
    /// ACP's `elicitation/create`.
    Elicitation,
}

/// The state of a request. It leaves `Open` once, and never returns to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// The request waits for an answer.
    Open,
    /// A user answered.
    Answered,
    /// The deadline passed: not a user decision.
    Expired,
    /// The run was cancelled or ended, or the runtime withdrew the question.
    Withdrawn,
    /// The runtime that asked has ended.
    Orphaned,
}

/// The harm that an approval could do, as judged by the gateway from the request alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Reads and searches inside the session's folder.
    Low,
    /// Anything between the other two.
    Elevated,
    /// Destroys, escalates privileges, runs downloaded code, hides something, or is dangerous according to the runtime.
    Danger,
}

/// Reads a risk. A risk of another version is read as the worst one.
fn risk_of_any_version<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Risk, D::Error> {
    let name = Cow::<'de, str>::deserialize(from)?;
    Ok(Risk::ALL.into_iter().find(|risk| risk.as_str() == name).unwrap_or_else(Risk::unjudged))
}

impl Risk {
    /// Every risk, lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Elevated, Self::Danger];

    /// Returns the risk of requests that were stored before risks were judged: the worst one.
    const fn unjudged() -> Self {
        Self::Danger
    }

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Elevated => "elevated",
            Self::Danger => "danger",
        }
    }
}

/// The meaning of an option, so that clients can draw it (ACP `PermissionOptionKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Allow this once.
    AllowOnce,
    /// Allow from now on.
    AllowAlways,
    /// Reject this once.
    RejectOnce,
    /// Reject always.
    RejectAlways,
    /// An unknown kind; drawn without emphasis.
    #[serde(other)]
    Other,
}

impl Choice {
    /// Returns whether this option lets the agent proceed.
    pub const fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Returns whether this option rejects the action.
    pub const fn rejects(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

/// One of the options that the runtime offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// The runtime's own id of the option.
    pub id: String,
    /// The text of the button.
    pub label: String,
    /// The meaning of the option.
    pub kind: Choice,
    /// `true` if an option that allows from now on ends with the session, as the runtime's protocol defines it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_session: bool,
}

/// One item of a pick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// The runtime's own id of the item.
    pub id: String,
    /// The name.
    pub label: String,
    /// A longer description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The part of a request that may be edited before it is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Editable {
    /// The name of the part ("Command").
    pub label: String,
    /// The agent's text, unchanged; for an edit field beside `display` only.
    pub value: String,
}

/// A question from a runtime to users, in the form that clients see.
///
/// `title` and `message` are the agent's text, unchanged; `display` is the gateway's own rendering of the exact question, with every
/// deceptive character made visible.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Request {
    /// The identifier.
    pub request_id: RequestId,
    /// The session of the request.
    pub session_id: SessionId,
    /// The run of the request.
    pub run_id: RunId,
    /// The runtime that asks.
    pub runtime_id: RuntimeId,
    /// The number of the runtime's start; an answer never reaches another one.
    pub generation: u64,
    /// The kind of question.
    #[serde(rename = "type")]
    pub kind: RequestType,
    /// The request's state.
    pub state: RequestState,
    /// The agent's headline.
    pub title: String,
    /// The agent's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The subject, for a screen to draw.
    #[serde(default)]
    #[schema(required)]
    pub subject: About,
    /// The exact question, safe to display.
    pub display: String,
    /// `true` if `display` or `message` is cut here; the whole request can be fetched by its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub display_truncated: bool,
    /// The length of the whole `display` in bytes, if it is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_bytes: Option<usize>,
    /// Warnings to read before answering.
    pub warnings: Vec<String>,
    /// The harm that an approval could do.
    #[serde(default = "Risk::unjudged", deserialize_with = "risk_of_any_version")]
    #[schema(required)]
    pub risk: Risk,
    /// The reasons for the risk.
    #[serde(default)]
    #[schema(required)]
    pub risk_reasons: Vec<String>,
    /// The number of changes of the question since it was asked.
    #[serde(default)]
    #[schema(required)]
    pub revision: u64,
    /// `true` if the question has changed, so that a user has to read it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// SHA-256 (hex) of the canonical request: it ties an answer to the displayed question. Empty if `display` is cut, since the whole
    /// question was not displayed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub digest: String,
    /// The options to choose from.
    pub options: Vec<Offer>,
    /// The items to pick from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// `true` if several items may be picked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi: bool,
    /// The initial text of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    /// `true` if a prompt accepts several lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiline: bool,
    /// `true` if the typed text is secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// `true` if the runtime calls the action dangerous.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub danger: bool,
    /// The runtime's own `danger_level`, unchanged (UI protocol: `normal` or `danger`); the gateway's judgement is `risk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger_level: Option<String>,
    /// `true` if the dialect can transmit a reason.
    pub allow_reason: bool,
    /// `true` if the dialect can transmit "remember this".
    pub allow_remember: bool,
    /// `true` if the request is read-only here: its runtime accepts the answer only elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_only: bool,
    /// The part that may be edited before it is allowed: an answer that allows it once may contain `edited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editable: Option<Editable>,
    /// The tool call that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The runtime's message, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub native: Option<Box<RawValue>>,
    /// The time when the request expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The time when the request was opened.
    pub opened_at: Timestamp,
    /// The outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// The members of a request, or of its outcome, that a client needs if only a newer version knows the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RequestHead {
    /// The identifier; `None` if it is absent or invalid.
    #[serde(deserialize_with = "known_value")]
    pub request_id: Option<RequestId>,
    /// The agent's headline.
    pub title: String,
}

/// Serializes requests with long texts cut, in the form for lists.
pub(crate) fn serialize_brief<S: Serializer>(requests: &[Arc<Request>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(requests.iter().map(|request| request.brief()))
}

/// Maximum length of `display` and `message` in events, lists, `hello` and snapshots, in bytes; longer ones are cut there.
pub const SHOWN_MAX: usize = 16 << 10;
/// Maximum length of `native` in these messages, in bytes; a longer one is left out.
pub const NATIVE_MAX: usize = 64 << 10;

/// The id of the question of a request that is answered with `ids`, `value` or an option.
pub const SINGLE_QUESTION: &str = "answer";

impl Request {
    /// Returns whether `display` or `message` is too long for events and lists.
    pub fn is_long(&self) -> bool {
        self.display.len() > SHOWN_MAX || self.message.as_ref().is_some_and(|message| message.len() > SHOWN_MAX)
    }

    /// Returns the time until the request expires, by this reading of the wall clock: never more than it had when it opened. `None` if it
    /// does not expire.
    pub fn time_left(&self, now: Timestamp) -> Option<std::time::Duration> {
        let (expires_at, opened_at) = (self.expires_at?.as_millis(), self.opened_at.as_millis());
        let whole = expires_at.saturating_sub(opened_at).max(0);
        Some(std::time::Duration::from_millis(
            expires_at.saturating_sub(now.as_millis()).clamp(0, whole).unsigned_abs(),
        ))
    }

    /// Returns the questions that are answered together, with `answers`; empty for any other request, such as one of a single question.
    pub fn form(&self) -> &[Question] {
        match &self.subject {
            About::Question { questions } => match questions.as_slice() {
                [one] if one.id == SINGLE_QUESTION => &[],
                questions => questions,
            },
            _ => &[],
        }
    }

    /// Returns the request in the form for events, lists, `hello` and snapshots: long text is cut, and then the digest is left out, so
    /// that only a client that fetched the whole request can allow it.
    pub fn brief(&self) -> Cow<'_, Self> {
        let long_native = self.native.as_ref().is_some_and(|native| native.get().len() > NATIVE_MAX);
        if self.display_truncated || !(self.is_long() || long_native) {
            return Cow::Borrowed(self);
        }
        let cut = |text: &str| match text.len() {
            0..=SHOWN_MAX => text.to_owned(),
            _ => {
                let head = &text[..text.floor_char_boundary(SHOWN_MAX)];
                // Whole lines, unless one is very long.
                let end = head.rfind('\n').filter(|end| *end > SHOWN_MAX / 2).unwrap_or(head.len());
                head[..end].to_owned()
            }
        };
        let long = self.is_long();
        Cow::Owned(Self {
            display: cut(&self.display),
            message: self.message.as_deref().map(cut),
            display_truncated: long,
            display_bytes: long.then_some(self.display.len()),
            digest: if long { String::new() } else { self.digest.clone() },
            native: self.native.clone().filter(|_| !long_native),
            ..self.without_long_fields()
        })
    }

    /// Returns a copy without the fields that may be long.
    fn without_long_fields(&self) -> Self {
        Self {
            request_id: self.request_id.clone(),
            session_id: self.session_id.clone(),
            run_id: self.run_id.clone(),
            runtime_id: self.runtime_id.clone(),
            generation: self.generation,
            kind: self.kind,
            state: self.state,
            title: self.title.clone(),
            message: None,
            subject: self.subject.clone(),
            display: String::new(),
            display_truncated: false,
            display_bytes: None,
            warnings: self.warnings.clone(),
            risk: self.risk,
            risk_reasons: self.risk_reasons.clone(),
            revision: self.revision,
            changed: self.changed,
            digest: String::new(),
            options: self.options.clone(),
            items: self.items.clone(),
            multi: self.multi,
            default_value: self.default_value.clone(),
            multiline: self.multiline,
            secret: self.secret,
            danger: self.danger,
            danger_level: self.danger_level.clone(),
            allow_reason: self.allow_reason,
            allow_remember: self.allow_remember,
            observe_only: self.observe_only,
            editable: self.editable.clone(),
            tool_call_id: self.tool_call_id.clone(),
            native: None,
            expires_at: self.expires_at,
            opened_at: self.opened_at,
            receipt: self.receipt.clone(),
        }
    }
}

/// The answers to several questions, by question id: ids or labels of options, or free text.
pub type Answers = BTreeMap<String, Vec<String>>;

/// A client's answer to a request. Exactly one of `option_id`, `ok`, `value`, `ids`, `answers` is given (`value: null`, `ids: []` and
/// `answers: {}` mean "cancelled").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The id of the chosen option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The text; `null` means "cancelled".
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub value: Option<Option<String>>,
    /// The ids of the picked items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// The answer to each question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub answers: Option<Answers>,
    /// A reason for the agent to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `true` to remember the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<bool>,
    /// The text to use instead of the request's `editable.value`; only with an option that allows it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The digest of the displayed request; a stale one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// `true` if a `reason` or `remember` that was not offered is ignored, as in the UI protocol, instead of refused. Never on the wire.
    #[serde(skip)]
    pub as_offered: bool,
    /// The revision that a client displayed, if its protocol has no digest. Never on the wire.
    #[serde(skip)]
    pub revision: Option<u64>,
}

/// Distinguishes `null` from an absent member.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

/// A decision in the form that the dialect sends; only made from a validated answer, or by the gateway itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// One of the offered options.
    Option {
        /// The runtime's own id of the option.
        id: String,
        /// The meaning of the option.
        kind: Choice,
        /// The reason, if the dialect can transmit it.
        reason: Option<String>,
    },
    /// An option that allows the action once, with an edited text.
    Edited {
        /// The runtime's own id of the option.
        id: String,
        /// The edited text.
        text: String,
        /// The reason, if the dialect can transmit it.
        reason: Option<String>,
    },
    /// Text, or `None` for "cancelled".
    Value(Option<String>),
    /// The picked items; empty for "cancelled".
    Ids(Vec<String>),
    /// The answer to each question: ids of its options, or free text. Checked against the questions.
    Answers(Answers),
    /// The deadline passed: reported to the agent as "expired, not a user decision".
    Expired,
    /// The run is being cancelled.
    Withdrawn,
}

/// The device that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resolver {
    /// The device, or `gateway` for the gateway's own decision.
    pub device_id: DeviceId,
    /// The device's name.
    pub name: String,
}

impl Resolver {
    /// Returns the gateway itself: an expiry, a cancel, a runtime that ended.
    pub fn gateway() -> Self {
        Self { device_id: DeviceId::trusted("gateway"), name: "gateway".into() }
    }

    /// Returns another client of the same runtime, by its name if known.
    pub fn elsewhere(name: impl Into<String>) -> Self {
        Self { device_id: DeviceId::trusted("elsewhere"), name: name.into() }
    }
}

/// The kind of answerer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A user, on a device of the gateway or at the agent itself.
    Person,
    /// A rule that a user gave the gateway.
    Rule,
    /// The agent: it asked a reviewer of its own instead of users.
    Agent,
}

/// The durable record of a request's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The request.
    pub request_id: RequestId,
    /// The final state.
    pub state: RequestState,
    /// The option chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// `true` if the choice lets the agent proceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The text of the answer (never for a secret prompt).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The ids of the picked items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// The answer to each question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub answers: Option<Answers>,
    /// The reason of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The edited text that was allowed, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The text `edited`, safe to display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_display: Option<String>,
    /// Warnings about `edited`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited_warnings: Vec<String>,
    /// The client or rule that decided.
    pub resolved_by: Resolver,
    /// The kind of answerer: a user, a rule or the agent. Absent if nobody answered, or if it was not recorded.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    /// The time of the answer.
    pub at: Timestamp,
    /// The position of the `request_resolved` event in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// `true` if the reader of this receipt made the decision.
    #[serde(default)]
    #[schema(required)]
    pub won: bool,
}

impl Receipt {
    /// The receipt of a request that ended in this state, without a choice.
    pub fn new(request_id: RequestId, state: RequestState, resolved_by: Resolver, at: Timestamp) -> Self {
        Self {
            request_id,
            state,
            option_id: None,
            ok: None,
            value: None,
            ids: None,
            answers: None,
            reason: None,
            edited: None,
            edited_display: None,
            edited_warnings: Vec::new(),
            resolved_by,
            answered_by: None,
            at,
            cursor: None,
            won: false,
        }
    }
}
