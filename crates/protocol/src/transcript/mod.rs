//! The transcript of a session: its events folded into the form that users see.
//!
//! [`EntryKind::from_kind`] has a decision for every [`Kind`], and [`EntryBody::read`] reads a body by it. Every consumer of events shares
//! the rules of this module: the message of a chunk ([`MessageTracker`]), the merging of the updates of a tool call ([`ToolCall`]), the end
//! of a request ([`Outcome`]). [`Transcript`] is the whole fold; a consumer that writes events one by one (AG-UI, the mirror, the search
//! index, the command line, the bridges) uses the rules without storing the items.
//!
//! The page folds in TypeScript (`web/src/session/model.ts`). Both are held to the same cases in `tests/golden`.

// Every kind of event is handled explicitly, so that a new one does not compile before it is.
#![deny(clippy::wildcard_enum_match_arm)]

mod fold;
mod latest;
mod message_tracker;
mod nesting;
mod outcome;
mod tool_call;

pub use fold::{Message, MessageBlock, Part, Transcript, TranscriptItem};
pub use latest::{context_left_percent, context_use, current_mode, new_title};
pub use message_tracker::{ChunkTarget, MessageKey, MessageTracker};
pub use nesting::{ParentCall, parent_from_meta, set_parent};
pub use outcome::{Decided, Outcome};
pub use tool_call::{ToolCall, ToolContent, json_size};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Kind;

/// The author of the text of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The agent.
    Agent,
    /// The agent's reasoning.
    Thought,
}

impl Role {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Thought => "thought",
        }
    }

    /// Returns the role that a snapshot's `role` names; an unknown one is the agent's.
    pub fn named(word: &str) -> Self {
        match word {
            "user" => Self::User,
            "thought" => Self::Thought,
            _ => Self::Agent,
        }
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::named(&std::borrow::Cow::<'de, str>::deserialize(from)?))
    }
}

/// The content of a chunk of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text, to be appended.
    Text(String),
    /// Any other ACP content block: an image, a link to a file.
    Block(Value),
}

impl Content {
    /// Reads an ACP content block.
    pub fn read(block: Value) -> Self {
        match block {
            Value::Null => Self::Text(String::new()),
            Value::Object(mut members) if members.get("type").is_none_or(|kind| kind == "text") => {
                match members.remove("text") {
                    Some(Value::String(text)) => Self::Text(text),
                    other => {
                        members.extend(other.map(|text| ("text".into(), text)));
                        Self::Block(Value::Object(members))
                    }
                }
            }
            Value::Object(_) | Value::Array(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                Self::Block(block)
            }
        }
    }

    /// Returns the content as text: of a block `[type name]`, where the name is its URI, its name or its MIME type. The text is not safe
    /// to display.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Block(block) => block_label(block).into(),
        }
    }

    /// Like [`text`](Self::text), without a copy.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Block(block) => block_label(&block),
        }
    }
}

/// Returns a content block that is not text in one line: `[type name]`. The text is not safe to display.
pub fn block_label(block: &Value) -> String {
    let kind = block["type"].as_str().unwrap_or("content");
    match ["uri", "name", "mimeType"].iter().find_map(|name| block[*name].as_str().filter(|name| !name.is_empty())) {
        Some(name) => format!("[{kind} {name}]"),
        None => format!("[{kind}]"),
    }
}

/// One line of an agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// The step of the plan.
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

impl PlanEntry {
    /// Returns the entries of a `plan` event.
    pub fn list(body: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = body["entries"].as_array().into_iter().flatten();
        entries.map(|entry| Self { content: text(&entry["content"]), status: text(&entry["status"]) }).collect()
    }
}

/// A kind of value of which only the latest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatestKind {
    /// The slash commands.
    Commands,
    /// The mode.
    Mode,
    /// The options.
    Options,
    /// The title and other metadata of the session.
    Info,
    /// Tokens and cost.
    Usage,
}

/// An event that has a line of its own in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The runtime started, exited, restarts, or is stuck.
    Runtime,
    /// A client joined.
    ClientJoined,
    /// A client left.
    ClientLeft,
    /// A client served the agent a file or a terminal.
    ClientServed,
    /// An error occurred.
    Error,
    /// A hook of the agent ran.
    Hook,
    /// Input that no dialect understood.
    Raw,
    /// An event whose body does not have the shape of its kind.
    Malformed(Kind),
}

impl NoteKind {
    /// Returns the kind of event.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Runtime => Kind::RuntimeStatus,
            Self::ClientJoined => Kind::ClientJoined,
            Self::ClientLeft => Kind::ClientLeft,
            Self::ClientServed => Kind::ClientServed,
            Self::Error => Kind::Error,
            Self::Hook => Kind::Hook,
            Self::Raw => Kind::Raw,
            Self::Malformed(kind) => kind,
        }
    }
}

/// The place of an event in a transcript, by its kind alone. A new [`Kind`] has to be added here before anything compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A piece of a message.
    Message(Role),
    /// A tool call, or an update of one.
    Tool,
    /// The agent's plan, whole.
    Plan,
    /// A value of which only the latest counts.
    Latest(LatestKind),
    /// A run began.
    RunStarted,
    /// A run waits, runs, or is being cancelled.
    RunStatus,
    /// A run ended.
    RunEnded,
    /// A request was opened.
    RequestOpened,
    /// An open request changed.
    RequestUpdated,
    /// A request ended.
    RequestResolved,
    /// A surface of the agent changed.
    Surface,
    /// A note on a line of its own.
    Note(NoteKind),
}

impl EntryKind {
    /// Returns the place of events of this kind in a transcript.
    pub const fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::UserMessageChunk => Self::Message(Role::User),
            Kind::AgentMessageChunk => Self::Message(Role::Agent),
            Kind::AgentThoughtChunk => Self::Message(Role::Thought),
            Kind::ToolCall | Kind::ToolCallUpdate => Self::Tool,
            Kind::Plan => Self::Plan,
            Kind::AvailableCommandsUpdate => Self::Latest(LatestKind::Commands),
            Kind::CurrentModeUpdate => Self::Latest(LatestKind::Mode),
            Kind::ConfigOptionUpdate => Self::Latest(LatestKind::Options),
            Kind::SessionInfoUpdate => Self::Latest(LatestKind::Info),
            Kind::UsageUpdate => Self::Latest(LatestKind::Usage),
            Kind::RunStarted => Self::RunStarted,
            Kind::RunStatus => Self::RunStatus,
            Kind::RunEnded => Self::RunEnded,
            Kind::RequestOpened => Self::RequestOpened,
            Kind::RequestUpdated => Self::RequestUpdated,
            Kind::RequestResolved => Self::RequestResolved,
            Kind::SurfaceUpdated => Self::Surface,
            Kind::RuntimeStatus => Self::Note(NoteKind::Runtime),
            Kind::ClientJoined => Self::Note(NoteKind::ClientJoined),
            Kind::ClientLeft => Self::Note(NoteKind::ClientLeft),
            Kind::ClientServed => Self::Note(NoteKind::ClientServed),
            Kind::Error => Self::Note(NoteKind::Error),
            Kind::Hook => Self::Note(NoteKind::Hook),
            Kind::Raw => Self::Note(NoteKind::Raw),
        }
    }
}

impl Kind {
    /// Returns the author of a message chunk; `None` for kinds that are not chunks.
    pub const fn role(self) -> Option<Role> {
        if let EntryKind::Message(role) = EntryKind::from_kind(self) { Some(role) } else { None }
    }
}

/// An event's body, by its role in a transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryBody {
    /// A piece of a message.
    Message {
        /// The author of the text.
        role: Role,
        /// The agent's own identifier of the message, where it gives one.
        id: Option<String>,
        /// The parent tool call that the event names, if a subagent wrote the text.
        parent: Option<String>,
        /// The content of the piece.
        content: Content,
    },
    /// A tool call, or an update of one.
    Tool {
        /// The runtime's identifier of the call.
        id: String,
        /// The parent tool call that the event names, if a subagent made the call.
        parent: Option<String>,
        /// The members of the update: ACP's tool call without `toolCallId` and `sessionUpdate`.
        update: Map<String, Value>,
    },
    /// The agent's plan, whole.
    Plan(Vec<PlanEntry>),
    /// A value of which only the latest of its kind counts.
    Latest(LatestKind, Value),
    /// A run began.
    RunStarted(Value),
    /// A run waits, runs, or is being cancelled.
    RunStatus(Value),
    /// A run ended.
    RunEnded(Value),
    /// A request was opened: the whole request.
    RequestOpened(Value),
    /// An open request changed: the whole request.
    RequestUpdated(Value),
    /// A request ended: the receipt.
    RequestResolved(Value),
    /// A surface of the agent changed.
    Surface {
        /// The surface's name, unique in its session.
        id: String,
        /// The whole body.
        body: Value,
    },
    /// A note on a line of its own.
    Note(NoteKind, Value),
}

impl EntryBody {
    /// Reads the body of an event of this kind. A body without the shape of its kind is [`NoteKind::Malformed`].
    pub fn read(kind: Kind, body: Value) -> Self {
        match EntryKind::from_kind(kind) {
            EntryKind::Message(role) => Self::message(role, kind, body),
            EntryKind::Tool => Self::tool(kind, body),
            EntryKind::Plan => Self::Plan(PlanEntry::list(&body)),
            EntryKind::Latest(latest) => Self::Latest(latest, body),
            EntryKind::RunStarted => Self::RunStarted(body),
            EntryKind::RunStatus => Self::RunStatus(body),
            EntryKind::RunEnded => Self::RunEnded(body),
            EntryKind::RequestOpened => Self::RequestOpened(body),
            EntryKind::RequestUpdated => Self::RequestUpdated(body),
            EntryKind::RequestResolved => Self::RequestResolved(body),
            EntryKind::Surface => match surface_id(&body) {
                Some(id) => Self::Surface { id, body },
                None => Self::Note(NoteKind::Malformed(kind), body),
            },
            EntryKind::Note(note) => Self::Note(note, body),
        }
    }

    fn message(role: Role, kind: Kind, body: Value) -> Self {
        let Value::Object(mut members) = body else { return Self::Note(NoteKind::Malformed(kind), body) };
        let id = match members.remove("messageId") {
            Some(Value::String(id)) => Some(id),
            _ => None,
        };
        let parent = members.get("_meta").and_then(parent_from_meta);
        Self::Message { role, id, parent, content: Content::read(members.remove("content").unwrap_or_default()) }
    }

    fn tool(kind: Kind, body: Value) -> Self {
        let Value::Object(mut update) = body else { return Self::Note(NoteKind::Malformed(kind), body) };
        match update.remove("toolCallId") {
            Some(Value::String(id)) if !id.is_empty() => {
                update.remove("sessionUpdate");
                let parent = update.get("_meta").and_then(parent_from_meta);
                Self::Tool { id, parent, update }
            }
            other => {
                update.extend(other.map(|id| ("toolCallId".into(), id)));
                Self::Note(NoteKind::Malformed(kind), Value::Object(update))
            }
        }
    }
}

/// Returns the name of the surface that a `surface_updated` is about.
pub fn surface_id(body: &Value) -> Option<String> {
    body["surface"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
