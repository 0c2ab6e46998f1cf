//! Surfaces that agents draw, presses on them, and questions by them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
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
