//! The state of a session for a client that joins late.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::KnownItems;
use crate::request::serialize_brief;
use crate::schema::{JsonObject, string_enum};
use crate::transcript::Role;
use crate::{Cursor, Kind, Request, RunId, SessionInfo, Timestamp};

/// The view of a session for a client that joins late: the newest messages and tool calls, the latest values of everything else, and the
/// cursor at which the view is exact. The messages and tools are those from `before` on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// The session.
    pub session: SessionInfo,
    /// The last position that the snapshot covers; reading on after it misses and repeats nothing.
    pub cursor: Cursor,
    /// The newest messages, in order; an unfinished one has its text so far.
    pub messages: Arc<Vec<SnapshotMessage>>,
    /// The newest tool calls, in order, each with its latest state.
    pub tools: Arc<Vec<SnapshotTool>>,
    /// The latest body of each kind that counts only by its latest event (plan, mode, commands, usage …), by kind. A body that is longer
    /// than 256 KiB is shortened or left out: `_meta.plexus.left_out` is the number of missing bytes, and `_meta.plexus.position` the
    /// position of the event that has them.
    #[schema(value_type = BTreeMap<String, JsonObject>)]
    pub latest: Arc<BTreeMap<Cow<'static, str>, Box<RawValue>>>,
    /// The open requests; long ones are cut.
    #[serde(serialize_with = "serialize_brief")]
    #[schema(value_type = Vec<Request>)]
    pub requests: KnownItems<Arc<Request>>,
    /// The agent's surfaces, each with its revision: at the cursor or later. A change that a surface contains already is not applied
    /// again, so that the events after the cursor lead to the same state.
    #[schema(value_type = Vec<JsonObject>)]
    pub surfaces: Vec<Box<RawValue>>,
    /// `true` if `surfaces` is empty because they are large, which is possible when several sessions are requested at once: then `GET
    /// /v1/sessions/{id}/surfaces` returns them. Absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surfaces_omitted: bool,
    /// `true` if retention has removed older events.
    pub trimmed: bool,
    /// `true` if the log has older messages and tools than these.
    pub truncated: bool,
    /// The cursor from which to page back to older ones; absent unless `truncated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
}

impl Snapshot {
    /// Reads the latest body of a kind; `None` if there is none, or if it is no `T`.
    pub fn latest_body<T: DeserializeOwned>(&self, kind: Kind) -> Option<T> {
        serde_json::from_str(self.latest.get(kind.as_str())?.get()).ok()
    }
}

fn roles() -> RefOr<Schema> {
    string_enum([Role::User, Role::Agent, Role::Thought].map(Role::as_str), "Whose words")
}

/// One message. The first one of a truncated snapshot may be the end of a longer message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Message)]
pub struct SnapshotMessage {
    /// The author.
    #[schema(schema_with = roles)]
    pub role: Role,
    /// The run of the message.
    #[schema(value_type = RunId)]
    pub run_id: String,
    /// The text.
    pub text: String,
    /// The content that is not text: ACP content blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<JsonObject>)]
    pub content: Vec<Value>,
    /// `true` if the message is unfinished, or was cut off.
    pub partial: bool,
    /// `true` if this is the end of a message that began before the snapshot's window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// The time when the message began.
    pub at: Timestamp,
    /// The position of the message's first event.
    pub position: u64,
    /// The parent tool call, if a subagent wrote the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

/// One tool call in its latest state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tool)]
pub struct SnapshotTool {
    /// The runtime's identifier.
    pub tool_call_id: String,
    /// The run of the tool call.
    #[schema(value_type = RunId)]
    pub run_id: String,
    /// The position of the tool call's first event.
    pub position: u64,
    /// The parent tool call, if a subagent made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// ACP's tool call with all updates merged (`title`, `kind`, `status`, `content`, `rawInput`, `rawOutput`, `locations`).
    #[serde(flatten)]
    pub call: Map<String, Value>,
}
