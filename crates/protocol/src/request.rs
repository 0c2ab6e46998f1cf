//! Questions, answers, receipts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::schema::Json;
use super::{About, Cursor, DeviceId, RequestId, RunId, RuntimeId, SessionId, Timestamp};

/// What sort of question a request is; it decides which answers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
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
    /// Every risk there is, the least first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Elevated, Self::Danger];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// The runtime's own identifier for it.
    pub id: String,
    /// What to write on the button.
    pub label: String,
    /// What it means.
    pub kind: Choice,
}

/// One of the things that a pick offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Item {
    /// The runtime's own identifier for it.
    pub id: String,
    /// Its name.
    pub label: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What of a request may be changed before it is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Editable {
    /// What it is ("Command").
    pub label: String,
    /// As the agent wants it, untouched: show it only in a place to edit, beside `display`.
    pub value: String,
}

/// A question from a runtime to people, as every client sees it.
///
/// `title` and `message` are the agent's words, untouched; `display` is the gateway's own rendering of exactly what is
/// asked, with every deceptive character made visible.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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
    /// What it is about, for a screen to draw.
    #[serde(default)]
    #[schema(required)]
    pub subject: About,
    /// What is asked, safe to show.
    pub display: String,
    /// Whether `display` or `message` is cut here; the whole request is had by its identifier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub display_truncated: bool,
    /// How long the whole `display` is, in bytes, where it is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_bytes: Option<usize>,
    /// What a person should know before answering.
    pub warnings: Vec<String>,
    /// How much harm a yes could do.
    #[serde(default = "Risk::unjudged")]
    #[schema(required)]
    pub risk: Risk,
    /// Why it is judged so, in plain words.
    #[serde(default)]
    #[schema(required)]
    pub risk_reasons: Vec<String>,
    /// How often what is asked has changed since it was asked.
    #[serde(default)]
    #[schema(required)]
    pub revision: u64,
    /// Whether it has: whoever read it before has to read it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// SHA-256 (hex) of the canonical request: what is shown is what is decided. Empty where `display` is cut: who has
    /// not read all of it has nothing to show for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
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
    /// What of it may be changed before it is allowed: an answer that allows it once may bring `edited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editable: Option<Editable>,
    /// The tool call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What the runtime sent, untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
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

/// Longest `display` and `message` in events, lists, `hello` and snapshots, in bytes; longer ones are cut there.
pub const SHOWN_MAX: usize = 16 << 10;
/// Longest `native` there, in bytes; a longer one is left out.
pub const NATIVE_MAX: usize = 64 << 10;

impl Request {
    /// Whether its words are too long to be sent unasked.
    pub fn is_long(&self) -> bool {
        self.display.len() > SHOWN_MAX || self.message.as_ref().is_some_and(|message| message.len() > SHOWN_MAX)
    }

    /// The request as it stands in events, lists, `hello` and snapshots: long words are cut and the digest is left out
    /// then, so that an answer which allows it comes only from somebody who fetched the whole.
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
            ..self.without_words()
        })
    }

    /// Everything but what may be long.
    fn without_words(&self) -> Self {
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

/// The answers to several questions, by each one's id: ids or labels of options, or words of one's own.
pub type Answers = BTreeMap<String, Vec<String>>;

/// What a client says to a request. Exactly one of `option_id`, `ok`, `value`, `ids`, `answers` is given (`value: null`,
/// `ids: []` and `answers: {}` mean "cancelled").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// One of the request's options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Text; given as `null` it means "cancelled".
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub value: Option<Option<String>>,
    /// What was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// What is said to each of the questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub answers: Option<Answers>,
    /// Why, for the agent to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to remember the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<bool>,
    /// What is to be done instead of the request's `editable.value`; only with a yes for this once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The digest of what the client showed; a stale one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether `reason` and `remember` count only where they were offered, as in the UI protocol; else they make it no
    /// answer. Never on the wire.
    #[serde(skip)]
    pub as_offered: bool,
    /// The revision that a surface showed, where its protocol carries no digest; never on the wire.
    #[serde(skip)]
    pub revision: Option<u64>,
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
    /// One of the options that allow it once, with something else in place of what may be edited.
    Edited {
        /// The runtime's own identifier of the option.
        id: String,
        /// What is to be done instead.
        text: String,
        /// Why, if the dialect can carry it.
        reason: Option<String>,
    },
    /// Text, or `None` for "cancelled".
    Value(Option<String>),
    /// What was picked; empty for "cancelled".
    Ids(Vec<String>),
    /// What was said to each question: ids of its options, or words of one's own. Checked against the questions.
    Answers(Answers),
    /// The deadline passed: told to the agent as "expired, not a user decision".
    Expired,
    /// The run is being cancelled.
    Withdrawn,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// What was said to each question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub answers: Option<Answers>,
    /// Why, in the words of whoever answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was allowed in place of what was asked, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The same, safe to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_display: Option<String>,
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited_warnings: Vec<String>,
    /// Who decided.
    pub resolved_by: Resolver,
    /// When it was answered.
    pub at: Timestamp,
    /// The place of the `request_resolved` event in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Whether the reader of this receipt is the one who decided.
    #[serde(default)]
    #[schema(required)]
    pub won: bool,
}
