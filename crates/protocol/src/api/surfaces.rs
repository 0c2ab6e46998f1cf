//! Surfaces that agents draw, presses on them, and questions by them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::KnownItems;
use crate::schema::{Json, JsonObject};
use crate::{RequestId, RequestState, RunId, SessionId, Timestamp};

/// The surfaces of a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Surfaces {
    /// The surfaces, each as the A2UI messages that create it, with its revision.
    #[schema(value_type = Vec<JsonObject>)]
    pub surfaces: Vec<Box<RawValue>>,
}

/// A press on a surface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SurfaceAction {
    /// The revision that the screen displays.
    pub rev: u64,
    /// The component.
    pub component: String,
    /// The event.
    pub event: String,
    /// The inputs that the user changed, by the JSON Pointer that each is bound to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = JsonObject)]
    pub inputs: BTreeMap<String, Value>,
    /// The list item, if the component is in a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The selected row of a table, or path of a file tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub item: Option<Value>,
}

/// The result of a press on a surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Acted {
    /// Always true; a refusal is an error.
    pub accepted: bool,
    /// The surface's revision after the press.
    pub rev: u64,
    /// The run whose prompt reports the press to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The request that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drawn {
    /// The surface.
    pub surface: String,
    /// The revision now.
    pub rev: u64,
}

/// The pinned surfaces of all sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinnedSurfaces {
    /// The pinned surfaces without their content, by session and name.
    #[schema(value_type = Vec<PinnedSurface>)]
    pub surfaces: KnownItems<PinnedSurface>,
}

/// A pinned surface, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinnedSurface {
    /// The session.
    pub session_id: SessionId,
    /// The name in the session.
    pub surface: String,
    /// The revision.
    pub rev: u64,
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The time of the last change.
    pub at: Timestamp,
    /// The open request that is answered on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A question by a surface, in the form that its agent gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskView {
    /// The request.
    pub ask_id: RequestId,
    /// `open`, `answered`, `expired`, `withdrawn` or `orphaned`.
    pub state: RequestState,
    /// The pressed component with its context and inputs; null if the user declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub answer: Option<Value>,
    /// The author of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A surface to create: of `components`, or of one page, `html` with `text`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSurface {
    /// The name in the session: 1 to 64 of `A-Z a-z 0-9 _ . -`. A surface of that name is replaced.
    pub surface: String,
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The catalogue of its components; Plexus's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The components, as in A2UI 0.9; one has the id `root`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<JsonObject>>)]
    pub components: Option<Vec<Map<String, Value>>>,
    /// The data model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub data: Option<Map<String, Value>>,
    /// A page of its own, in place of components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The text that is displayed where no page can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The actions that the page may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
    /// The page's height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// `true` if the surface is pinned; unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<bool>,
}

/// The changes of a surface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SurfaceUpdate {
    /// Components that are new or replace those of the same id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<JsonObject>)]
    pub components: Vec<Map<String, Value>>,
    /// Changes of the data model, in order: `path` with `value`, with `append`, or with neither to remove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<JsonObject>)]
    pub data: Vec<DataChange>,
    /// A new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `true` if the surface is pinned; given alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The required current revision of the surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_rev: Option<u64>,
}

/// A question by a surface: by an existing one, or by a new one with `components`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAsk {
    /// The surface; `ask` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The title of a new surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The components of a new surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<JsonObject>>)]
    pub components: Option<Vec<Map<String, Value>>>,
    /// The data model of a new surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub data: Option<Map<String, Value>>,
    /// The buttons that answer, by their ids.
    pub submit: Vec<String>,
    /// The question, for the headline of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// A change of a data model: `value` is put at `path`, `append` extends the list there, and with neither the key is removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataChange {
    /// The place, as a JSON Pointer.
    pub path: String,
    /// The new value.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Items to append to the list there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<Vec<Value>>,
}

/// Reads a value that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
