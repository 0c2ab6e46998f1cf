//! AG-UI's events (protocol 1.0, `@ag-ui/core`), their serialization, and the fold that a client makes of them. The same fold makes the
//! snapshots, so that a snapshot equals the state of a client that has received all events. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use plexus_protocol::{Cursor, Timestamp};

/// An identifier: of a message, a tool call, an activity.
pub(super) type Id = Arc<str>;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    User,
    Assistant,
    Reasoning,
}

impl Role {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
        }
    }

    /// Returns the role in the gateway's transcript.
    pub(super) const fn in_transcript(self) -> plexus_protocol::transcript::Role {
        use plexus_protocol::transcript::Role;
        match self {
            Self::User => Role::User,
            Self::Assistant => Role::Agent,
            Self::Reasoning => Role::Thought,
        }
    }
}

/// A step of a JSON Patch (RFC 6902); `add` also replaces.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(super) enum Patch {
    Add { path: String, value: Value },
    Remove { path: String },
}

impl Patch {
    pub(super) fn add(path: impl Into<String>, value: Value) -> Self {
        Self::Add { path: path.into(), value }
    }
}

/// One event.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum AgUiEvent {
    RunStarted {
        thread_id: Id,
        run_id: Id,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: Id,
        run_id: Id,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Value,
    },
    RunError {
        message: String,
        code: &'static str,
    },
    MessagesSnapshot {
        messages: Vec<Value>,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Vec<Patch>,
    },
    TextMessageStart {
        message_id: Id,
        role: &'static str,
    },
    TextMessageContent {
        message_id: Id,
        delta: String,
    },
    TextMessageEnd {
        message_id: Id,
    },
    ReasoningStart {
        message_id: Id,
    },
    ReasoningMessageStart {
        message_id: Id,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: Id,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: Id,
    },
    ReasoningEnd {
        message_id: Id,
    },
    ToolCallStart {
        tool_call_id: Id,
        tool_call_name: String,
        parent_message_id: Id,
    },
    ToolCallArgs {
        tool_call_id: Id,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: Id,
    },
    ToolCallResult {
        message_id: Id,
        tool_call_id: Id,
        content: String,
        role: &'static str,
    },
    ActivitySnapshot {
        message_id: Id,
        activity_type: &'static str,
        content: Map<String, Value>,
        replace: bool,
    },
    ActivityDelta {
        message_id: Id,
        activity_type: &'static str,
        patch: Vec<Patch>,
    },
    Raw {
        event: Box<RawValue>,
        source: String,
    },
    Custom {
        name: String,
        value: Value,
    },
}

impl AgUiEvent {
    /// Makes a `CUSTOM` event of the gateway.
    pub(super) fn custom(name: &str, value: Value) -> Self {
        Self::Custom { name: format!("plexus.{name}"), value }
    }

    /// Appends the event as an event of a server-sent stream. `id:` and `metadata.plexus.cursor` have its cursor; both, since AG-UI
    /// client libraries do not expose the `id:`.
    pub(super) fn write(&self, out: &mut Vec<u8>, cursor: Option<&Cursor>, at: Option<Timestamp>) {
        use std::io::Write as _;
        let mut json = Vec::with_capacity(256);
        if let Err(error) = serde_json::to_writer(&mut json, self) {
            tracing::error!(%error, "an AG-UI event cannot be written as JSON");
            return;
        }
        json.pop();
        // Writing to memory does not fail.
        if let Some(at) = at {
            let _ = write!(json, ",\"timestamp\":{}", at.as_millis());
        }
        if let Some(cursor) = cursor {
            let _ = write!(json, ",\"metadata\":{{\"plexus\":{{\"cursor\":\"{cursor}\"}}}}");
        }
        json.push(b'}');
        plexus_router::frames::sse_data(out, cursor.map(|cursor| cursor as _), &json);
    }
}

/// The conversation of a client after the events so far (`defaultApplyEvents` of `@ag-ui/client`).
#[derive(Clone, Debug, Default)]
pub(super) struct ClientView {
    messages: Vec<Value>,
    index: HashMap<Id, usize>,
    calls: HashMap<Id, usize>,
    /// The state document.
    pub(super) state: Map<String, Value>,
}

impl ClientView {
    /// Applies the next event.
    pub(super) fn apply(&mut self, event: &AgUiEvent) {
        match event {
            AgUiEvent::TextMessageStart { message_id, role }
            | AgUiEvent::ReasoningMessageStart { message_id, role } => {
                self.message(message_id, || json!({ "id": message_id, "role": role, "content": "" }));
            }
            AgUiEvent::TextMessageContent { message_id, delta }
            | AgUiEvent::ReasoningMessageContent { message_id, delta } => {
                let message = self.index.get(message_id).and_then(|n| self.messages.get_mut(*n));
                if let Some(Value::String(text)) = message.and_then(|message| message.get_mut("content")) {
                    text.push_str(delta);
                }
            }
            AgUiEvent::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
                let function = json!({ "name": tool_call_name, "arguments": "" });
                let call = json!({ "id": tool_call_id, "type": "function", "function": function });
                let at = self.message(
                    parent_message_id,
                    || json!({ "id": parent_message_id, "role": "assistant", "toolCalls": [call] }),
                );
                self.calls.insert(Arc::clone(tool_call_id), at);
            }
            AgUiEvent::ToolCallArgs { tool_call_id, delta } => {
                let message = self.calls.get(tool_call_id).and_then(|n| self.messages.get_mut(*n));
                let arguments = message.and_then(|message| message.pointer_mut("/toolCalls/0/function/arguments"));
                if let Some(Value::String(text)) = arguments {
                    text.push_str(delta);
                }
            }
            AgUiEvent::ToolCallResult { message_id, tool_call_id, content, role } => {
                let result = json!({ "id": message_id, "role": role, "toolCallId": tool_call_id, "content": content });
                self.message(message_id, || result);
            }
            AgUiEvent::ActivitySnapshot { message_id, activity_type, content, .. } => {
                let activity =
                    json!({ "id": message_id, "role": "activity", "activityType": activity_type, "content": content });
                let n = self.message(message_id, || activity.clone());
                if let Some(message) = self.messages.get_mut(n) {
                    *message = activity;
                }
            }
            AgUiEvent::ActivityDelta { message_id, patch: patches, .. } => {
                let message = self.index.get(message_id).and_then(|n| self.messages.get_mut(*n));
                if let Some(Value::Object(content)) = message.and_then(|message| message.get_mut("content")) {
                    patches.iter().for_each(|one| patch(content, one));
                }
            }
            AgUiEvent::StateDelta { delta } => delta.iter().for_each(|one| patch(&mut self.state, one)),
            _ => {}
        }
    }

    fn message(&mut self, id: &Id, make: impl FnOnce() -> Value) -> usize {
        if let Some(n) = self.index.get(id) {
            return *n;
        }
        self.messages.push(make());
        self.index.insert(Arc::clone(id), self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// Returns whether there is a message with this identifier.
    pub(super) fn has(&self, id: &str) -> bool {
        self.index.contains_key(id)
    }

    /// Returns the messages in order, of about `max` bytes: the oldest are left out, and the state reports that. A tool's result follows
    /// its call directly, as clients and models expect.
    pub(super) fn messages(&mut self, max: usize) -> Vec<Value> {
        let mut ordered: Vec<Value> = Vec::with_capacity(self.messages.len());
        let mut results: HashMap<String, Value> = HashMap::new();
        for message in &mut self.messages {
            if message["role"] == "tool"
                && let Some(call) = message["toolCallId"].as_str().map(ToOwned::to_owned)
            {
                results.insert(call, message.take());
            }
        }
        for message in std::mem::take(&mut self.messages) {
            if message.is_null() {
                continue;
            }
            let call = message.pointer("/toolCalls/0/id").and_then(Value::as_str).map(ToOwned::to_owned);
            ordered.push(message);
            ordered.extend(call.and_then(|call| results.remove(&call)));
        }
        let (mut bytes, mut from) = (0, ordered.len());
        for (n, message) in ordered.iter().enumerate().rev() {
            bytes += weight(message);
            if bytes > max {
                break;
            }
            from = n;
        }
        if from > 0 {
            self.state.insert("trimmed".into(), true.into());
        }
        ordered.split_off(from)
    }
}

/// Returns the approximate size of a value as JSON, in bytes.
fn weight(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// Applies a step of a patch; the gateway's paths are at most two members deep.
fn patch(object: &mut Map<String, Value>, step: &Patch) {
    let (Patch::Add { path, .. } | Patch::Remove { path }) = step;
    let mut parts = path.trim_start_matches('/').split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let (Some(first), second) = (parts.next(), parts.next()) else { return };
    let inner = match second {
        None => Some((object, first)),
        Some(second) => object.get_mut(&first).and_then(Value::as_object_mut).map(|inner| (inner, second)),
    };
    match (inner, step) {
        (Some((object, key)), Patch::Add { value, .. }) => {
            object.insert(key, value.clone());
        }
        (Some((object, key)), Patch::Remove { .. }) => {
            object.remove(&key);
        }
        (None, _) => {}
    }
}

/// Returns whether an identifier has the form of the gateway's own.
pub(super) fn is_gateway_id(id: &str) -> bool {
    let (Some(first), Some(rest)) = (id.get(..2), id.get(2..)) else { return false };
    matches!(first, "m_" | "t_" | "c_" | "r_" | "a_" | "s_")
        && !rest.is_empty()
        && rest.bytes().all(|b| b.is_ascii_digit())
}
