//! The fold: events in, items out.

// Every kind of event is handled explicitly, so that a new one does not compile before it is.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use serde_json::Value;

use super::{ChunkTarget, Content, EntryBody, MessageTracker, NoteKind, PlanEntry, Role, ToolCall};
use crate::{Position, Timestamp};

/// A session's events, folded into items in the order in which they began.
///
/// The transcript retains all items; the caller bounds it.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    items: Vec<TranscriptItem>,
    tracker: MessageTracker,
    /// The index of the message that begins at a position. The values of the maps below, except `runs`, are indices, too.
    messages: HashMap<Position, usize>,
    tools: HashMap<String, usize>,
    /// The plan of a run.
    plans: HashMap<String, usize>,
    requests: HashMap<String, usize>,
    surfaces: HashMap<String, usize>,
    /// The time when each run began.
    runs: HashMap<String, Timestamp>,
}

/// One item of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptItem {
    /// The position of the item's first event.
    pub first: Position,
    /// The position of the item's last event.
    pub last: Position,
    /// The run of the item.
    pub run_id: String,
    /// The time when the item began.
    pub at: Timestamp,
    /// The parent tool call.
    pub parent: Option<String>,
    /// The content.
    pub part: Part,
}

/// The content of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A message.
    Message(Message),
    /// A tool call.
    Tool {
        /// The runtime's identifier of the call.
        id: String,
        /// The call with its updates merged.
        call: ToolCall,
    },
    /// The current plan of a run.
    Plan(Vec<PlanEntry>),
    /// A request.
    Request {
        /// The identifier.
        id: String,
        /// The latest revision of the request.
        request: Value,
        /// The receipt, once the request is closed.
        receipt: Option<Value>,
    },
    /// The end of a run.
    End {
        /// The body of `run_ended`.
        body: Value,
        /// Duration of the run, in milliseconds, if its beginning is known.
        took: Option<i64>,
    },
    /// The current state of a surface of the agent.
    Surface {
        /// The identifier.
        id: String,
        /// The body of the latest `surface_updated`.
        body: Value,
    },
    /// A cancel of the run: the body of the `run_status`.
    Cancelling(Value),
    /// A note on a line of its own.
    Note {
        /// The subject of the note.
        kind: NoteKind,
        /// The body.
        body: Value,
    },
}

/// A message with its chunks joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The author of the text.
    pub role: Role,
    /// The agent's own identifier.
    pub id: Option<String>,
    /// The text of all chunks.
    pub text: String,
    /// The blocks of the message that are not text.
    pub blocks: Vec<MessageBlock>,
    /// `true` if the message was cut off by the end of its run.
    pub partial: bool,
}

/// A content block that is not text, and its place in the message.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageBlock {
    /// Number of bytes of the message's text before the block.
    pub offset: usize,
    /// ACP's content block.
    pub block: Value,
}

impl Message {
    fn append(&mut self, content: Content) {
        match content {
            Content::Text(text) => self.text.push_str(&text),
            Content::Block(block) => self.blocks.push(MessageBlock { offset: self.text.len(), block }),
        }
    }

    /// Returns the text, with a line break where a block interrupts it.
    pub fn text_in_lines(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + self.blocks.len());
        let mut from = 0;
        for block in &self.blocks {
            out.push_str(self.text.get(from..block.offset).unwrap_or_default());
            from = block.offset;
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }
}

impl Transcript {
    /// Applies the event at `at`, of a run, with the time `time`.
    pub fn apply(&mut self, at: Position, run_id: &str, time: Timestamp, body: EntryBody) {
        let before = self.tracker.current();
        let target = self.tracker.entry(&body, run_id, at);
        let parent = self.tracker.parent(&body).map(|parent| parent.id.to_owned());
        let run = run_id.to_owned();
        let new = |part| TranscriptItem { first: at, last: at, run_id: run, at: time, parent: parent.clone(), part };
        match body {
            EntryBody::Message { role, id, content, .. } => {
                let known = match target {
                    ChunkTarget::New => None,
                    ChunkTarget::Current(first) | ChunkTarget::Earlier(first) => self.messages.get(&first).copied(),
                };
                let index = known.unwrap_or_else(|| {
                    let message = Message { role, id, text: String::new(), blocks: Vec::new(), partial: false };
                    self.messages.insert(at, self.items.len());
                    self.push(new(Part::Message(message)))
                });
                if let Some(Part::Message(message)) = self.part_mut(index, at) {
                    message.append(content);
                }
            }
            EntryBody::Tool { id, update, .. } => {
                let index = self.tools.get(&id).copied().unwrap_or_else(|| {
                    self.tools.insert(id.clone(), self.items.len());
                    self.push(new(Part::Tool { id, call: ToolCall::default() }))
                });
                if let Some(Part::Tool { call, .. }) = self.part_mut(index, at) {
                    call.update(update);
                }
                if let Some(item) = self.items.get_mut(index) {
                    item.parent = parent;
                }
            }
            EntryBody::Plan(entries) => match self.plans.get(run_id).copied() {
                Some(index) => {
                    if let Some(Part::Plan(plan)) = self.part_mut(index, at) {
                        *plan = entries;
                    }
                }
                None => {
                    self.plans.insert(run_id.to_owned(), self.items.len());
                    self.push(new(Part::Plan(entries)));
                }
            },
            EntryBody::RunStarted(_) => {
                self.runs.insert(run_id.to_owned(), time);
            }
            EntryBody::RunStatus(body) if body["cancelling"] == true => {
                self.push(new(Part::Cancelling(body)));
            }
            EntryBody::Latest(..) | EntryBody::RunStatus(_) => {}
            EntryBody::RunEnded(body) => {
                if body["status"] != "completed" {
                    self.cut_off(before, run_id);
                }
                let began = self.runs.remove(run_id);
                let took = began.map(|began| time.as_millis() - began.as_millis()).filter(|took| *took >= 0);
                self.push(new(Part::End { body, took }));
            }
            EntryBody::RequestOpened(request) => {
                let id = request["request_id"].as_str().unwrap_or_default().to_owned();
                if !self.requests.contains_key(&id) {
                    self.requests.insert(id.clone(), self.items.len());
                    let receipt = request.get("receipt").filter(|receipt| !receipt.is_null()).cloned();
                    self.push(new(Part::Request { id, request, receipt }));
                }
            }
            EntryBody::RequestUpdated(newer) => {
                let revision = |request: &Value| request["revision"].as_u64().unwrap_or_default();
                if let Some(Part::Request { request, receipt: None, .. }) = self.request(&newer, at)
                    && revision(&newer) >= revision(request)
                {
                    *request = newer;
                }
            }
            EntryBody::RequestResolved(body) => {
                if let Some(Part::Request { receipt, .. }) = self.request(&body, at) {
                    *receipt = Some(body);
                }
            }
            EntryBody::Surface { id, body } => match self.surfaces.get(&id).copied() {
                Some(index) => {
                    if let Some(Part::Surface { body: known, .. }) = self.part_mut(index, at) {
                        change_surface(known, body);
                    }
                }
                None => {
                    self.surfaces.insert(id.clone(), self.items.len());
                    self.push(new(Part::Surface { id, body }));
                }
            },
            EntryBody::Note(kind, body) => {
                self.push(new(Part::Note { kind, body }));
            }
        }
    }

    /// Marks the message at `first` as cut off, because its run ended without being completed.
    fn cut_off(&mut self, first: Option<Position>, run_id: &str) {
        let index = first.and_then(|first| self.messages.get(&first).copied());
        if let Some(TranscriptItem { run_id: run, part: Part::Message(message), .. }) =
            index.and_then(|n| self.items.get_mut(n))
        {
            message.partial |= run == run_id && message.role == Role::Agent;
        }
    }

    fn push(&mut self, item: TranscriptItem) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }

    /// Returns the part of an item that the event at `at` changes.
    fn part_mut(&mut self, index: usize, at: Position) -> Option<&mut Part> {
        let item = self.items.get_mut(index)?;
        item.last = item.last.max(at);
        Some(&mut item.part)
    }

    /// Returns the request that a body names.
    fn request(&mut self, body: &Value, at: Position) -> Option<&mut Part> {
        let index = self.requests.get(body["request_id"].as_str()?).copied()?;
        self.part_mut(index, at)
    }

    /// Returns the items, in the order in which they began.
    pub fn items(&self) -> &[TranscriptItem] {
        &self.items
    }

    /// Returns the items by value.
    pub fn into_items(self) -> Vec<TranscriptItem> {
        self.items
    }
}

/// Applies a change to the body of a surface. Absent members of a change are unchanged, so a title stays.
fn change_surface(known: &mut Value, body: Value) {
    let title = known["title"].take();
    *known = body;
    if let (Value::Object(body), Value::String(_)) = (known, &title) {
        body.entry("title").or_insert(title);
    }
}
