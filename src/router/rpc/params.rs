//! The parameters of the methods.

use utoipa::openapi::{RefOr, Schema};

use super::*;
use crate::surfaces::{NewAsk, NewSurface, SurfaceUpdate};
use plexus_protocol::api::surfaces::SurfaceAction;
use plexus_protocol::schema::{ContentBlock, JsonObject, words};

/// The client's name and capabilities.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Initialize {
    #[serde(default)]
    pub(super) ui_capabilities: Capabilities,
    /// `0`: this connection speaks only the UI protocol of that version, to the letter.
    pub(super) ui_protocol: Option<String>,
}

/// The params of `initialize` of the UI protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct UiInitialize {
    #[serde(deserialize_with = "object::only")]
    pub(super) ui_capabilities: Shows,
    /// The session whose runtime's capabilities are reported; beyond the specification.
    pub(super) session_id: Option<SessionId>,
}

/// `session.history` of the UI protocol.
#[derive(Deserialize)]
pub(super) struct UiHistory {
    pub(super) session_id: SessionId,
    pub(super) max_runs: Option<usize>,
    pub(super) max_events: Option<usize>,
}

/// `run.cancel` of the UI protocol.
#[derive(Deserialize)]
pub(super) struct UiCancel {
    pub(super) run_id: RunId,
    pub(super) reason: Option<String>,
}

fn ends_of_the_log() -> RefOr<Schema> {
    words(["start", "now"], "From the oldest stored event, or only new events")
}

/// The subscription, and where it begins: after a cursor, or from the `start` or `now`; from the start if neither is given.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AttachParams {
    /// A session, or `*` for all.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: String,
    /// A cursor, or `now`.
    #[serde(default)]
    pub(super) after: Option<String>,
    /// `start` or `now`.
    #[serde(default)]
    #[schema(schema_with = ends_of_the_log)]
    pub(super) from: Option<String>,
    /// `native` adds the runtime's own message to each event.
    #[serde(default)]
    pub(super) projection: Projection,
}

/// A session; if absent, the only one that is followed. Other members go to its runtime.
#[derive(Deserialize, ToSchema)]
pub(crate) struct OfSession {
    pub(super) session_id: Option<SessionId>,
}

/// A page of a listing.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Listing {
    /// Most sessions on the page, up to 1000.
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<String>,
}

/// A session to open, or with `native_id` to resume.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SessionNew {
    pub(super) runtime_id: RuntimeId,
    #[schema(pattern = "^/")]
    pub(super) cwd: Option<String>,
    pub(super) title: Option<String>,
    pub(super) native_id: Option<String>,
}

/// A new title for a session.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SessionRename {
    pub(super) session_id: Option<SessionId>,
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub(super) title: String,
}

/// A surface to show.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceShow {
    pub(super) session_id: Option<SessionId>,
    /// The same call under the same key draws once.
    pub(super) idempotency_key: Option<String>,
    /// The surface.
    pub(super) show: NewSurface,
}

/// A surface to change.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceChanges {
    pub(super) session_id: Option<SessionId>,
    /// The same call under the same key draws once.
    pub(super) idempotency_key: Option<String>,
    /// The surface.
    pub(super) surface: String,
    /// The changes.
    pub(super) update: SurfaceUpdate,
}

/// A surface to take down.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceClose {
    pub(super) session_id: Option<SessionId>,
    /// The surface.
    pub(super) surface: String,
}

/// A question to ask by a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceAsk {
    pub(super) session_id: Option<SessionId>,
    /// The same call under the same key asks once.
    pub(super) idempotency_key: Option<String>,
    /// The question.
    pub(super) ask: NewAsk,
}

/// A question whose answer is waited for.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfaceWait {
    pub(super) session_id: Option<SessionId>,
    /// The question.
    pub(super) ask_id: RequestId,
    /// Seconds to wait, up to 45; none if absent.
    pub(super) wait_s: Option<u64>,
}

/// The press on a surface.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SurfacePress {
    pub(super) session_id: Option<SessionId>,
    /// The surface.
    pub(super) surface: String,
    #[serde(flatten)]
    pub(super) action: SurfaceAction,
}

/// A session to archive or to restore.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SessionArchive {
    pub(super) session_id: Option<SessionId>,
    /// False restores; true if absent.
    pub(super) archived: Option<bool>,
}

/// A page of events; the first 500 by default.
#[derive(Deserialize, ToSchema)]
pub(crate) struct HistoryParams {
    #[schema(required, nullable = false)]
    pub(super) session_id: Option<SessionId>,
    /// A cursor.
    #[serde(default)]
    pub(super) after: Option<String>,
    /// A cursor: the newest events before it, in the order of the log; `now` or an empty string for the newest of all.
    pub(super) before: Option<String>,
    /// At most 5000.
    pub(super) limit: Option<usize>,
    /// About the most bytes of events, up to 256 KiB.
    pub(super) max_bytes: Option<usize>,
    /// `true` if events are merged into items.
    #[serde(default)]
    pub(super) merge: bool,
    /// With `merge`: the members of a tool call are shortened to about this many bytes each, at least 1 KiB.
    pub(super) max_output: Option<usize>,
}

/// A prompt: `text`, ACP's `content` blocks, or the UI protocol's `input`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct StartRun {
    pub(super) session_id: Option<SessionId>,
    pub(super) text: Option<String>,
    #[schema(value_type = Option<Vec<ContentBlock>>)]
    pub(super) content: Option<Vec<Box<RawValue>>>,
    #[serde(default, deserialize_with = "object::optional")]
    pub(super) input: Option<Input>,
    pub(super) idempotency_key: Option<String>,
    /// The place where the user works: the UI protocol's `UiContextSnapshot`.
    #[schema(value_type = Option<JsonObject>)]
    pub(super) ui_context: Option<Box<RawValue>>,
    /// Passed to the runtime unchanged.
    #[schema(value_type = Option<JsonObject>)]
    pub(super) meta: Option<Box<RawValue>>,
    /// Further members of `run.start`, passed unchanged to a runtime of the UI protocol.
    #[schema(value_type = Option<JsonObject>)]
    pub(super) extra_members: Option<Box<RawValue>>,
}

/// A prompt in the UI protocol.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Input {
    /// A prompt of plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Text, images, and ACP's own blocks.
    Parts {
        /// ACP content blocks.
        #[schema(value_type = Vec<ContentBlock>)]
        parts: Vec<Value>,
    },
}

/// The run to cancel: the current one if absent.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CancelParams {
    pub(super) run_id: Option<RunId>,
    pub(super) session_id: Option<SessionId>,
    /// The reason, for people and for runtimes that take one.
    pub(super) reason: Option<String>,
}

/// The session on the client's screen, and whether the screen has the focus.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Focus {
    /// The session shown; `null` for a page without one.
    pub(super) session_id: Option<SessionId>,
    /// `true` if the screen has the focus: a hidden page and a locked phone do not.
    pub(super) focused: bool,
}

/// The run to repeat: if absent, the current one, else the last.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RestartParams {
    pub(super) session_id: Option<SessionId>,
    pub(super) run_id: Option<RunId>,
    pub(super) idempotency_key: Option<String>,
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
