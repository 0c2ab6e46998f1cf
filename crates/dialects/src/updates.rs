//! The bodies of ACP's `session/update` for agents that speak another protocol. Pure.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{EventDraft, ToolCallRef};
use plexus_protocol::Kind;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a, C> {
    session_update: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    content: C,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Makes an event for a piece of a message's text; pieces with the same `message` are one.
pub(super) fn chunk(kind: Kind, message: Option<&str>, text: &str, native: Option<&Bytes>) -> EventDraft {
    content_chunk(kind, message, TextContent { r#type: "text", text }, native)
}

/// Makes an event for a content block of a message.
pub(super) fn content_chunk(
    kind: Kind,
    message_id: Option<&str>,
    content: impl Serialize,
    native: Option<&Bytes>,
) -> EventDraft {
    let body = Chunk { session_update: kind.as_str(), message_id, content };
    EventDraft { native: native.cloned(), ..EventDraft::new(kind, &body) }
}

/// Makes a text in the content of a tool call.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// A tool call, or an update of one.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUpdate {
    /// The type of the update, set by [`draft`](Self::draft).
    pub(super) session_update: &'static str,
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locations: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_output: Option<Box<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Value>,
}

impl ToolUpdate {
    /// Makes an update of the tool call with this id.
    pub(super) fn new(id: impl Into<String>) -> Self {
        Self { tool_call_id: id.into(), ..Self::default() }
    }

    /// Makes the event: a tool call if it is the `first` of this id.
    pub(super) fn draft(mut self, first: bool, ended: bool, native: Option<&Bytes>) -> EventDraft {
        let kind = if first { Kind::ToolCall } else { Kind::ToolCallUpdate };
        self.session_update = kind.as_str();
        let draft = EventDraft::new(kind, &self);
        EventDraft { native: native.cloned(), tool: Some(ToolCallRef::new(self.tool_call_id, ended)), ..draft }
    }
}
