//! Surfaces that agents draw, and presses on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::schema::{Json, JsonObject};
use crate::{RequestId, RunId};

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
