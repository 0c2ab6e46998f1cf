//! The message that a chunk belongs to.

use std::collections::VecDeque;

use serde_json::Value;

use super::nesting::Nesting;
use super::{EntryBody, ParentCall, Role};
use crate::Position;

/// Maximum number of remembered messages with an identifier of the agent's; a chunk of an older one begins another message.
const NAMED_MAX: usize = 64;
/// Maximum number of runs whose plan is remembered.
const PLANS_MAX: usize = 64;
/// Maximum number of bytes of such an identifier that distinguish messages.
const ID_MAX: usize = 256;

/// The identity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageKey<'a> {
    role: Role,
    run_id: &'a str,
    id: Option<&'a str>,
    parent: Option<&'a str>,
}

impl<'a> MessageKey<'a> {
    /// Makes the key of a chunk; `id` is the agent's own identifier of the message, `parent` the parent tool call.
    pub fn new(role: Role, run_id: &'a str, id: Option<&'a str>, parent: Option<&'a str>) -> Self {
        Self { role, run_id, id: id.map(|id| &id[..id.floor_char_boundary(ID_MAX)]), parent }
    }

    /// Returns whether a chunk continues the message `before`, whose last chunk is right before it.
    pub fn continues(&self, before: &MessageKey<'_>) -> bool {
        self.role == before.role
            && self.run_id == before.run_id
            && self.parent == before.parent
            && (self.id.is_none() || self.id == before.id)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct TrackedMessage {
    role: Role,
    run_id: String,
    id: Option<String>,
    parent: Option<String>,
    first: Position,
}

impl TrackedMessage {
    fn key(&self) -> MessageKey<'_> {
        let (id, parent) = (self.id.as_deref(), self.parent.as_deref());
        MessageKey { role: self.role, run_id: &self.run_id, id, parent }
    }
}

/// The message that a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkTarget {
    /// The chunk begins a message.
    New,
    /// The chunk continues the message of the chunk before it.
    Current(Position),
    /// The chunk continues the message that begins at this position, after other chunks in between.
    Earlier(Position),
}

impl ChunkTarget {
    /// Returns the beginning of the chunk's message; the chunk itself is at `at`.
    pub const fn first(self, at: Position) -> Position {
        match self {
            Self::New => at,
            Self::Current(first) | Self::Earlier(first) => first,
        }
    }
}

/// Finds the message of each chunk of a session, and the parent tool call of each entry. Its size is bounded.
///
/// A chunk continues the previous message if that has the same role, run and parent, and the agent gives no other identifier. A tool
/// call, a run's first plan, and a run's beginning and end interrupt: text after them is another message, unless the agent's identifier
/// names an earlier one.
#[derive(Clone, Debug, Default)]
pub struct MessageTracker {
    current: Option<TrackedMessage>,
    named: VecDeque<TrackedMessage>,
    /// Runs that have a plan.
    planned: VecDeque<String>,
    nesting: Nesting,
}

impl MessageTracker {
    /// Applies an entry of the run: places a chunk of a message, and interrupts the message for other entries that do so.
    pub fn entry(&mut self, body: &EntryBody, run_id: &str, at: Position) -> ChunkTarget {
        match body {
            EntryBody::Message { role, id, parent, .. } => {
                return self.chunk(&MessageKey::new(*role, run_id, id.as_deref(), parent.as_deref()), at);
            }
            EntryBody::Tool { id, parent, update } => {
                self.interrupt();
                self.nesting.tool(id, parent.as_deref(), update.get("title").and_then(Value::as_str));
            }
            EntryBody::RunStarted(_) | EntryBody::RunEnded(_) => self.interrupt(),
            EntryBody::Plan(_) => self.plan(run_id),
            EntryBody::Latest(..)
            | EntryBody::RunStatus(_)
            | EntryBody::RequestOpened(_)
            | EntryBody::RequestUpdated(_)
            | EntryBody::RequestResolved(_)
            | EntryBody::Surface { .. }
            | EntryBody::Note(..) => {}
        }
        ChunkTarget::New
    }

    /// Returns the parent of an entry that was applied.
    pub fn parent(&self, body: &EntryBody) -> Option<ParentCall<'_>> {
        match body {
            EntryBody::Message { parent, .. } => self.nesting.parent_call(parent.as_deref()?),
            EntryBody::Tool { id, .. } => self.nesting.tool_parent(id),
            EntryBody::Plan(_)
            | EntryBody::Latest(..)
            | EntryBody::RunStarted(_)
            | EntryBody::RunStatus(_)
            | EntryBody::RunEnded(_)
            | EntryBody::RequestOpened(_)
            | EntryBody::RequestUpdated(_)
            | EntryBody::RequestResolved(_)
            | EntryBody::Surface { .. }
            | EntryBody::Note(..) => None,
        }
    }

    /// Places the chunk at `at`.
    pub fn chunk(&mut self, key: &MessageKey<'_>, at: Position) -> ChunkTarget {
        if let Some(current) = &self.current
            && key.continues(&current.key())
        {
            return ChunkTarget::Current(current.first);
        }
        let MessageKey { role, run_id, id, parent } = *key;
        if id.is_some()
            && let Some(known) = self
                .named
                .iter()
                .rev()
                .find(|known| known.role == role && known.id.as_deref() == id && known.parent.as_deref() == parent)
        {
            let first = known.first;
            self.current = Some(known.clone());
            return ChunkTarget::Earlier(first);
        }
        let (id, parent) = (id.map(str::to_owned), parent.map(str::to_owned));
        let new = TrackedMessage { role, run_id: run_id.to_owned(), id, parent, first: at };
        if new.id.is_some() {
            if self.named.len() >= NAMED_MAX {
                self.named.pop_front();
            }
            self.named.push_back(new.clone());
        }
        self.current = Some(new);
        ChunkTarget::New
    }

    /// Interrupts the current message, because another entry follows it.
    pub fn interrupt(&mut self) {
        self.current = None;
    }

    /// Applies a plan of a run: the first one interrupts, updates of it do not.
    pub fn plan(&mut self, run_id: &str) {
        if self.planned.iter().any(|run| run == run_id) {
            return;
        }
        if self.planned.len() >= PLANS_MAX {
            self.planned.pop_front();
        }
        self.planned.push_back(run_id.to_owned());
        self.interrupt();
    }

    /// Returns the beginning of the message that the next chunk may continue.
    pub fn current(&self) -> Option<Position> {
        self.current.as_ref().map(|current| current.first)
    }
}
