//! The parameters of the methods.

use super::*;

/// The params of `initialize` of the UI protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct UiInitialize {
    #[serde(deserialize_with = "object::only")]
    pub(super) ui_capabilities: UiSupport,
    /// The session whose runtime's capabilities are reported; beyond the specification.
    pub(super) session_id: Option<SessionId>,
}

/// An answer: exactly one of `option_id`, `ok`, `value`, `ids`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AnswerParams {
    pub(super) request_id: String,
    /// A repeated key returns the same receipt.
    pub(super) idempotency_key: Option<String>,
    #[serde(flatten)]
    pub(super) answer: UiAnswer,
}

/// An answer in the UI protocol; unknown members are ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = Said)]
pub(crate) struct UiAnswer {
    pub(super) option_id: Option<String>,
    pub(super) ok: Option<bool>,
    #[serde(default, deserialize_with = "given_text")]
    #[schema(value_type = Option<String>)]
    pub(super) value: Option<Option<String>>,
    pub(super) ids: Option<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub(super) answers: Option<Answers>,
    pub(super) reason: Option<String>,
    pub(super) remember: Option<bool>,
    pub(super) edited: Option<String>,
    pub(super) digest: Option<String>,
}

fn given_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

impl From<UiAnswer> for Answer {
    fn from(answer: UiAnswer) -> Self {
        let UiAnswer { option_id, ok, value, ids, answers, reason, remember, edited, digest } = answer;
        Self { option_id, ok, value, ids, answers, reason, remember, edited, digest, ..Self::default() }
    }
}
