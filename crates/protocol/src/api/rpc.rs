//! Parameters and results of the methods of the native WebSocket.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::KnownItems;
use super::history::{EventEnvelope, PageEnd, ResumeVerdict};
use super::stream::You;
use super::surfaces::{NewAsk, NewSurface, SurfaceAction, SurfaceUpdate};
use crate::schema::{ContentBlock, JsonObject, string_enum};
use crate::{Cursor, RequestId, RunId, RunStatus, RuntimeId, SessionId, object};

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Initialized {
    #[doc = concat!("The version of the protocol, `0`.")]
    pub protocol_version: String,
    #[doc = concat!("The name and version of the server.")]
    pub server: Server,
    #[doc = concat!("The capabilities of the server, by name.")]
    #[schema(value_type = std::collections::BTreeMap<String, bool>)]
    pub server_capabilities: Map<String, Value>,
    #[doc = concat!("The device of the client.")]
    pub you: You,
}

/// The server's name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    #[doc = concat!("`plexus`.")]
    pub name: String,
    #[doc = concat!("The version of the program.")]
    pub version: String,
}

/// The result of `session.attach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attached {
    #[doc = concat!("Always true; a refusal is an error.")]
    pub attached: bool,
    /// The subscription: a session, or `*`.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: String,
    #[doc = concat!("The verdict on the cursor of the call: whether reading can resume there.")]
    pub resume: ResumeVerdict,
    /// Events follow after this cursor.
    pub cursor: Cursor,
    #[doc = concat!("The end of the log.")]
    pub head: Cursor,
}

/// The result of `session.detach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Detached {
    /// `true` if the session was followed.
    pub detached: bool,
}

/// The result of `presence.update`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Looking)]
pub struct PresenceResult {
    #[doc = concat!("`true` if the screen counts as viewed.")]
    pub focused: bool,
}

/// The result of `session.history`: the events, written one by one, then the end.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct History {
    #[doc = concat!("The events in log order.")]
    #[schema(value_type = Vec<EventEnvelope>)]
    pub events: KnownItems<EventEnvelope>,
    #[doc = concat!("The members after the events.")]
    #[serde(flatten)]
    pub end: CountedEnd,
}

/// The end of the result of `session.history`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountedEnd {
    #[doc = concat!("The number of events on the page.")]
    pub events_sent: usize,
    #[doc = concat!("The members after the events.")]
    #[serde(flatten)]
    pub end: PageEnd,
}

/// The result of `run.cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancelled {
    #[doc = concat!("Always true; a refusal is an error.")]
    pub ok: bool,
    #[doc = concat!("The cancelled run.")]
    pub run_id: RunId,
    /// `running` for a run that ends when its runtime reports it; `cancelled` for a queued one, which has ended.
    pub status: RunStatus,
}

/// The parts of an event that a subscriber gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Projection {
    /// The canonical body.
    #[default]
    Canonical,
    /// The canonical body, and the runtime's own message in `native`.
    Native,
}

/// The capabilities of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UiCapabilities)]
pub struct UiCapabilities {
    /// `true` if the client can display confirmations; such clients get requests first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supports_confirm: bool,
}

/// The client's name and capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Initialize {
    #[doc = concat!("The capabilities of the client.")]
    #[serde(default)]
    pub ui_capabilities: UiCapabilities,
    /// `0` if the connection speaks only the UI protocol of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_protocol: Option<String>,
}

/// The subscription, and its start: after a cursor, or from the `start` or `now`; from the start if neither is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttachParams {
    /// A session, or `*` for all.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: String,
    /// A cursor, or `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `start` or `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ends_of_the_log)]
    pub from: Option<String>,
    /// `native` adds the runtime's own message to each event.
    #[serde(default)]
    pub projection: Projection,
}

/// A session; the only one that is followed if absent. Other members are passed to its runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = OfSession)]
pub struct SessionParams {
    #[doc = concat!("The session.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Listing)]
pub struct ListSessions {
    /// The maximum number of sessions on the page, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The `next` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A session to open, or with `native_id` to resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionNew {
    #[doc = concat!("The runtime to open the session in.")]
    pub runtime_id: RuntimeId,
    #[doc = concat!("The working directory, absolute; the folder of the runtime if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/")]
    pub cwd: Option<String>,
    #[doc = concat!("The title.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[doc = concat!("The identifier that the runtime gave a conversation to resume.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// A new title for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRename {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[doc = concat!("The title, 1 to 200 characters.")]
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub title: String,
}

/// A session to archive or to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionArchive {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// `false` to restore the session; `true` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// A page of events; the first 500 by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryParams {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false)]
    pub session_id: Option<SessionId>,
    /// The cursor after which the page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// A cursor: the newest events before it, in the order of the log; `now` or an empty string for the newest of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The maximum number of events, at most 5000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The approximate maximum size of the events, in bytes, up to 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// `true` if events are merged into items.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// With `merge`: the approximate size to which each member of a tool call is shortened, in bytes, at least 1 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
}

/// A prompt: `text`, ACP's `content` blocks, or the UI protocol's `input`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StartRun {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[doc = concat!("The prompt as plain text.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[doc = concat!("The prompt as ACP content blocks.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ContentBlock>>)]
    pub content: Option<Vec<Box<RawValue>>>,
    #[doc = concat!("The prompt as the UI protocol writes it.")]
    #[serde(default, deserialize_with = "object::optional", skip_serializing_if = "Option::is_none")]
    pub input: Option<PromptInput>,
    #[doc = concat!("A repeated call with the same key takes effect once.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The context of the user: the UI protocol's `UiContextSnapshot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub ui_context: Option<Box<RawValue>>,
    /// Metadata, passed to the runtime unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub meta: Option<Box<RawValue>>,
    /// Further members of `run.start`, passed unchanged to a runtime of the UI protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub extra_members: Option<Box<RawValue>>,
}

/// A prompt in the UI protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = Input)]
pub enum PromptInput {
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

/// The run to cancel; the current one if absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelParams {
    #[doc = concat!("The run.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The reason, for users and for runtimes that accept one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The session on the client's screen, and whether the screen has the focus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Focus {
    /// The displayed session; `null` for a page without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// `true` if the screen has the focus: a hidden page and a locked phone do not.
    pub focused: bool,
}

/// The run to repeat; if absent, the current one, else the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestartParams {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[doc = concat!("The run.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[doc = concat!("A repeated call with the same key takes effect once.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// The params of a call that creates a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceShow {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key draws once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The surface.
    pub show: NewSurface,
}

/// The params of a call that changes a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceChanges {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key draws once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The surface.
    pub surface: String,
    /// The changes.
    pub update: SurfaceUpdate,
}

/// The params of a call that removes a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceClose {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The surface.
    pub surface: String,
}

/// The params of a call that asks a question by a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceAsk {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The idempotency key: the same call under the same key asks once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The question.
    pub ask: NewAsk,
}

/// The params of a call that waits for the answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceWait {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The question.
    pub ask_id: RequestId,
    /// Seconds to wait, up to 45; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<u64>,
}

/// The params of a press on a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfacePress {
    #[doc = concat!("The session; the only one that is followed if absent.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The surface.
    pub surface: String,
    #[doc = concat!("The press.")]
    #[serde(flatten)]
    pub action: SurfaceAction,
}

fn ends_of_the_log() -> RefOr<Schema> {
    string_enum(["start", "now"], "From the oldest stored event, or only new events")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn history_is_readable_with_a_snapshot_and_an_unreadable_event() {
        let at = "2026-01-02T03:04:05.000Z";
        let event = json!({
            "session_id": "s_1", "run_id": "r_1", "seq": 0, "cursor": "k3f9:7", "at": at, "kind": "hologram",
            "event": { "amount": 1.50 }, "meta": { "runtime_id": "demo", "dialect": "acp" },
        });
        let session = json!({
            "session_id": "s_1", "runtime_id": "demo", "dialect": "acp", "native_id": null, "title": null, "cwd": "/",
            "state": "hologram", "open_requests": 0, "created_at": at, "updated_at": at,
        });
        let snapshot = json!({
            "session": session, "cursor": "k3f9:9", "messages": [], "tools": [], "latest": { "plan": { "entries": [] } },
            "requests": [], "surfaces": [{ "surface": "a" }], "trimmed": true, "truncated": false,
        });
        let page = json!({
            "events": [event, { "session_id": 1 }], "events_sent": 2, "previous": "k3f9:7+1", "next": "k3f9:9",
            "head": "k3f9:9", "resume": "gap", "snapshot": snapshot,
        });
        let History { events, end } = serde_json::from_str(&page.to_string()).unwrap();
        assert_eq!((events.len(), events.unreadable(), events[0].event.get()), (1, 1, r#"{"amount":1.5}"#));
        assert_eq!((end.events_sent, end.end.previous.as_deref()), (2, Some("k3f9:7+1")));
        let snapshot = end.end.snapshot.unwrap();
        assert_eq!((snapshot.surfaces.len(), snapshot.latest.len(), snapshot.trimmed), (1, 1, true));
    }
}
