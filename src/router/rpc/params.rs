//! The parameters of the methods.

use super::*;
use crate::surfaces::{NewAsk, NewSurface, SurfaceUpdate};
use plexus_protocol::api::surfaces::SurfaceAction;

/// The params of `initialize` of the UI protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct UiInitialize {
    #[serde(deserialize_with = "object::only")]
    pub(super) ui_capabilities: Shows,
    /// The session whose runtime's capabilities are reported; beyond the specification.
    pub(super) session_id: Option<SessionId>,
}

/// The params of a call that creates a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceShow {
    pub(super) session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key draws once.
    pub(super) idempotency_key: Option<String>,
    /// The surface.
    pub(super) show: NewSurface,
}

/// The params of a call that changes a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceChanges {
    pub(super) session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key draws once.
    pub(super) idempotency_key: Option<String>,
    /// The surface.
    pub(super) surface: String,
    /// The changes.
    pub(super) update: SurfaceUpdate,
}

/// The params of a call that removes a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceClose {
    pub(super) session_id: Option<SessionId>,
    /// The surface.
    pub(super) surface: String,
}

/// The params of a call that asks a question by a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceAsk {
    pub(super) session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key asks once.
    pub(super) idempotency_key: Option<String>,
    /// The question.
    pub(super) ask: NewAsk,
}

/// The params of a call that waits for the answer to a question.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceWait {
    pub(super) session_id: Option<SessionId>,
    /// The question.
    pub(super) ask_id: RequestId,
    /// Seconds to wait, up to 45; none if absent.
    pub(super) wait_s: Option<u64>,
}

/// The params of a press on a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfacePress {
    pub(super) session_id: Option<SessionId>,
    /// The surface.
    pub(super) surface: String,
    #[serde(flatten)]
    pub(super) action: SurfaceAction,
}

/// An answer: exactly one of `option_id`, `ok`, `value`, `ids`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AnswerParams {
    pub(super) request_id: String,
    /// A repeated key returns the same receipt.
    pub(super) idempotency_key: Option<String>,
    #[serde(flatten)]
    pub(super) said: Said,
}

/// An answer in the UI protocol; unknown members are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Said {
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

impl From<Said> for Answer {
    fn from(said: Said) -> Self {
        let Said { option_id, ok, value, ids, answers, reason, remember, edited, digest } = said;
        Self { option_id, ok, value, ids, answers, reason, remember, edited, digest, ..Self::default() }
    }
}
