//! A session folded to what a newcomer must see.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Cursor, Request, SessionInfo};

/// What a newcomer must see of a session: whole messages, the latest of everything else, and the cursor at which this is exact.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    /// The session.
    pub session: SessionInfo,
    /// Everything up to here is in it; reading on after it misses nothing and repeats nothing.
    pub cursor: Cursor,
    /// The messages, in order; the one being said has its text so far.
    pub messages: Vec<Message>,
    /// The tool calls, in order, each with its latest state.
    pub tools: Vec<Tool>,
    /// The latest body of each kind of which only the latest matters (plan, mode, commands, usage …), by kind.
    pub latest: std::collections::BTreeMap<&'static str, Box<RawValue>>,
    /// The requests that are open, in full.
    pub requests: Vec<Request>,
    /// The surfaces of the agent, latest.
    pub surfaces: Vec<Box<RawValue>>,
    /// Whether retention has removed what came before.
    pub trimmed: bool,
}

/// One message, whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// `user`, `agent` or `thought`.
    pub role: &'static str,
    /// The run it was said in.
    pub run_id: String,
    /// Its text.
    pub text: String,
    /// What in it is no text: ACP content blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<serde_json::Value>,
    /// Whether it is being said, or was cut off.
    pub partial: bool,
    /// When it began.
    pub at: crate::model::Timestamp,
    /// The place of its first event in the log.
    pub position: u64,
}

/// One tool call, latest state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// The runtime's identifier.
    pub tool_call_id: String,
    /// The run it belongs to.
    pub run_id: String,
    /// The place of its first event in the log.
    pub position: u64,
    /// ACP's tool call, every update merged into it (`title`, `kind`, `status`, `content`, `rawInput`, `rawOutput`, `locations`).
    #[serde(flatten)]
    pub call: serde_json::Map<String, serde_json::Value>,
}
