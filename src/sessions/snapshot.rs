//! The snapshot of a session for clients that join late: the newest messages and tool calls within a bound, and the latest event of each
//! kind that counts only by its latest event.

// Every kind is listed here, so that a new one does not compile until its role is decided.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::left_out::shorten;
use super::page_merge::text_range;
use plexus_protocol::api::snapshot::{Snapshot, SnapshotMessage, SnapshotTool};
use plexus_protocol::transcript::{
    Content, EntryBody, EntryKind, Message, MessageKey, Part, Role, Transcript, TranscriptItem, json_size as size,
};
use plexus_protocol::{Cursor, Event, Kind, Position, Request, SessionInfo, Timestamp};

/// Approximate maximum size of messages and tools in a snapshot, in bytes. Older ones are read by pages, from [`Snapshot::before`] back.
pub const WINDOW: usize = if cfg!(test) { 4 << 10 } else { 256 << 10 };
/// Maximum length of a piece of a message's text, in bytes; the window drops whole pieces.
const PIECE_MAX: usize = if cfg!(test) { 256 } else { 8 << 10 };
/// Maximum length of a body in [`Snapshot::latest`], in bytes; a longer one is shortened. The event has all of it.
const LATEST_MAX: usize = 256 << 10;
/// Maximum length of a member of a shortened body, in bytes.
const MEMBER_MAX: usize = 64 << 10;
/// Maximum length of a body that is shortened, in bytes: reading it takes several times its size. A longer one is replaced by its size.
const SHORTENED_MAX: usize = 1 << 20;
/// The members that clients expect to be lists.
const LISTS: [(Kind, &str); 3] = [
    (Kind::Plan, "entries"),
    (Kind::AvailableCommandsUpdate, "availableCommands"),
    (Kind::ConfigOptionUpdate, "configOptions"),
];
/// Approximate size of a message or a tool call without its text, in bytes.
const OVERHEAD: usize = 160;

/// The kinds of which a snapshot has only the latest event.
pub const LATEST: &[Kind] = &[
    Kind::Plan,
    Kind::AvailableCommandsUpdate,
    Kind::CurrentModeUpdate,
    Kind::ConfigOptionUpdate,
    Kind::SessionInfoUpdate,
    Kind::UsageUpdate,
    Kind::RuntimeStatus,
];

/// Folds a session's events, in order, into a snapshot. Pure and bounded: messages and tools beyond the newest [`WINDOW`] bytes
/// are dropped.
#[derive(Default)]
pub(super) struct SnapshotFold {
    latest: BTreeMap<Cow<'static, str>, Box<RawValue>>,
    window: VecDeque<Piece>,
    /// Approximate size of the window, in bytes.
    bytes: usize,
    /// The start of the window, once an older part was dropped.
    start: Option<Position>,
    /// `true` if the first message of the window began before it.
    continued: bool,
    /// The position of the last event of the fold.
    pub(super) at: Position,
    /// The most recently made snapshot, until the next event.
    cached: Option<Arc<SharedSnapshot>>,
}

/// The part of a snapshot that all callers share.
struct SharedSnapshot {
    messages: Arc<Vec<SnapshotMessage>>,
    tools: Arc<Vec<SnapshotTool>>,
    latest: Arc<BTreeMap<Cow<'static, str>, Box<RawValue>>>,
}

type Members = serde_json::Map<String, serde_json::Value>;

/// Adjacent events of the log that were merged: a part of a message, or updates of one tool call.
struct Piece {
    first: Position,
    run_id: String,
    at: Timestamp,
    body: EntryBody,
    bytes: usize,
}

/// Returns whether events of this kind are part of the window.
const fn in_window(kind: Kind) -> bool {
    match EntryKind::from_kind(kind) {
        EntryKind::Message(_) | EntryKind::Tool | EntryKind::Plan | EntryKind::RunStarted | EntryKind::RunEnded => true,
        EntryKind::Latest(_)
        | EntryKind::RunStatus
        | EntryKind::RequestOpened
        | EntryKind::RequestUpdated
        | EntryKind::RequestResolved
        | EntryKind::Surface
        | EntryKind::Note(_) => false,
    }
}

impl Piece {
    fn from_event(event: &Event) -> Option<Self> {
        if !in_window(event.kind) {
            return None;
        }
        // The window only needs to know that there was a plan.
        let read = if event.kind == Kind::Plan { "{}".as_bytes() } else { &event.body };
        let mut body = EntryBody::read(event.kind, serde_json::from_slice(read).ok()?);
        let bytes = OVERHEAD
            + match &mut body {
                EntryBody::Message { content: Content::Text(text), .. } => text.len(),
                EntryBody::Plan(_) => 0,
                // The window only needs to know that a run began, and how it ended.
                EntryBody::RunStarted(body) => {
                    *body = serde_json::Value::Null;
                    0
                }
                EntryBody::RunEnded(body) => {
                    *body = serde_json::json!({ "status": body["status"] });
                    0
                }
                EntryBody::Message { content: Content::Block(_), .. } | EntryBody::Tool { .. } => event.body.len(),
                EntryBody::Note(..)
                | EntryBody::Latest(..)
                | EntryBody::Surface { .. }
                | EntryBody::RunStatus(_)
                | EntryBody::RequestOpened(_)
                | EntryBody::RequestUpdated(_)
                | EntryBody::RequestResolved(_) => return None,
            };
        Some(Self { first: event.position, run_id: event.run_id.as_str().to_owned(), at: event.at, body, bytes })
    }

    /// Returns whether `next` continues the same message. A chunk with a message id of its own continues only that message.
    fn continues_with(&self, next: &Self) -> bool {
        matches!((self.message(), next.message()), (Some(before), Some(next)) if next.continues(&before))
    }

    fn message(&self) -> Option<MessageKey<'_>> {
        let EntryBody::Message { role, id, parent, .. } = &self.body else { return None };
        Some(MessageKey::new(*role, &self.run_id, id.as_deref(), parent.as_deref()))
    }

    /// Merges the piece right after this one; returns it if it must remain a piece of its own.
    fn join(&mut self, next: Self) -> Option<Self> {
        let continues = self.continues_with(&next);
        // Terminal output is appended by the transcript: each update has to be applied by itself.
        let outputs = |update: &Members| update.get("_meta").is_some_and(|meta| meta.get("terminal_output").is_some());
        match (&mut self.body, next.body) {
            (
                EntryBody::Message { content: Content::Text(text), .. },
                EntryBody::Message { content: Content::Text(more), .. },
            ) if continues && text.len() < PIECE_MAX => {
                text.push_str(&more);
                self.bytes += more.len();
                None
            }
            (EntryBody::Tool { id, parent, update }, EntryBody::Tool { id: same, parent: named, update: newer })
                if *id == same && !outputs(update) && !outputs(&newer) =>
            {
                let replaced: usize = newer.keys().filter_map(|name| update.get(name)).map(size).sum();
                update.extend(newer);
                *parent = parent.take().or(named);
                self.bytes = (self.bytes + next.bytes).saturating_sub(replaced + OVERHEAD);
                None
            }
            (_, body) => Some(Self { body, ..next }),
        }
    }
}

impl SnapshotFold {
    /// Starts from the [`base`](Self::base) that retention stored for the removed events.
    pub(super) fn from_base(base: &[u8]) -> Self {
        let stored: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(base).unwrap_or_default();
        let latest =
            stored.into_iter().filter_map(|(kind, body)| Some((Kind::from_name(&kind)?.as_str().into(), body)));
        Self { latest: latest.collect(), ..Self::default() }
    }

    /// Returns the part of the fold that later folds need when its events are removed.
    pub(super) fn base(&self) -> Vec<u8> {
        serde_json::to_vec(&self.latest).unwrap_or_default()
    }

    /// Applies the next event.
    pub(super) fn event(&mut self, event: &Event) {
        self.at = event.position;
        self.cached = None;
        self.take_latest(event, true);
        let Some(piece) = Piece::from_event(event) else { return };
        self.bytes += piece.bytes;
        match self.window.back_mut() {
            Some(last) => {
                let before = last.bytes + piece.bytes;
                match last.join(piece) {
                    Some(piece) => self.window.push_back(piece),
                    None => self.bytes = (self.bytes + last.bytes).saturating_sub(before),
                }
            }
            None => self.window.push_back(piece),
        }
        while self.bytes > WINDOW
            && let Some(gone) = self.window.pop_front()
        {
            self.bytes -= gone.bytes.min(self.bytes);
            self.continued = self.window.front().is_some_and(|first| gone.continues_with(first));
            self.start = Some(self.window.front().map_or(event.position.next(), |first| first.first));
        }
    }

    /// Records an event of a kind that counts only by its latest event. Without `newer`, events are applied backwards: an event that is
    /// already recorded stays.
    fn take_latest(&mut self, event: &Event, newer: bool) {
        if LATEST.contains(&event.kind)
            && let Some(body) = latest_body(event)
        {
            match self.latest.get_mut(event.kind.as_str()) {
                None => {
                    self.latest.insert(event.kind.as_str().into(), body);
                }
                // The available modes are sent once; later updates name only the current mode.
                Some(current) if event.kind == Kind::CurrentModeUpdate => {
                    let (new, old) = if newer { (&body, &*current) } else { (&*current, &body) };
                    let merged = with_modes(new, old);
                    match merged {
                        Some(merged) => *current = merged,
                        None if newer => *current = body,
                        None => {}
                    }
                }
                Some(current) if newer => *current = body,
                Some(_) => {}
            }
        }
    }

    /// Returns the approximate size in memory, including the cached snapshot, in bytes.
    pub(super) fn weight(&self) -> usize {
        let latest: usize = self.latest.values().map(|body| body.get().len()).sum();
        2 * (self.bytes + latest) + 1024
    }

    /// Returns the snapshot, exact at `cursor`, with about `most` bytes of messages and tools at most.
    pub(super) fn snapshot(
        &mut self,
        session: SessionInfo,
        requests: Vec<Arc<Request>>,
        cursor: Cursor,
        trimmed: bool,
        most: usize,
    ) -> Snapshot {
        let mut skip = 0;
        let mut bytes = self.bytes;
        while bytes > most && skip < self.window.len() {
            bytes -= self.window[skip].bytes.min(bytes);
            skip += 1;
        }
        let shared = match &self.cached {
            Some(cached) if skip == 0 => Arc::clone(cached),
            _ => Arc::new(self.fold_window(skip)),
        };
        if skip == 0 {
            self.cached = Some(Arc::clone(&shared));
        }
        let start = match skip {
            0 => self.start,
            _ => Some(self.window.get(skip).map_or(cursor.position.next(), |piece| piece.first)),
        };
        let mut snapshot = Snapshot {
            session,
            messages: Arc::clone(&shared.messages),
            tools: Arc::clone(&shared.tools),
            latest: Arc::clone(&shared.latest),
            requests: requests.into(),
            surfaces: Vec::new(),
            surfaces_omitted: false,
            trimmed,
            truncated: start.is_some(),
            before: start.map(|position| Cursor { epoch: cursor.epoch.clone(), position }),
            cursor,
        };
        let unfinished = snapshot.messages.last().is_some_and(|last| {
            let run = snapshot.session.run_id.as_ref();
            !last.partial && last.role != Role::User && run.is_some_and(|run| run.as_str() == last.run_id)
        });
        if unfinished && let Some(last) = Arc::make_mut(&mut snapshot.messages).last_mut() {
            last.partial = true;
        }
        snapshot
    }

    /// Folds the window without its first `skip` pieces.
    fn fold_window(&self, skip: usize) -> SharedSnapshot {
        let mut transcript = Transcript::default();
        for piece in self.window.iter().skip(skip) {
            transcript.apply(piece.first, &piece.run_id, piece.at, piece.body.clone());
        }
        let (mut messages, mut tools) = (Vec::new(), Vec::new());
        for TranscriptItem { first, run_id, at, parent, part, .. } in transcript.into_items() {
            match part {
                Part::Message(Message { role, text, blocks, partial, .. }) => messages.push(SnapshotMessage {
                    role,
                    run_id,
                    text,
                    content: blocks.into_iter().map(|block| block.block).collect(),
                    partial,
                    continued: false,
                    at,
                    position: first.0,
                    parent_tool_call_id: parent,
                }),
                Part::Tool { id, call } => {
                    let call = call.into_members();
                    let (tool_call_id, position, parent_tool_call_id) = (id, first.0, parent);
                    tools.push(SnapshotTool { tool_call_id, run_id, position, parent_tool_call_id, call });
                }
                // Plan, requests and surfaces are members of their own; the rest is on the pages.
                Part::Plan(_)
                | Part::Request { .. }
                | Part::End { .. }
                | Part::Surface { .. }
                | Part::Cancelling(_)
                | Part::Note { .. } => {}
            }
        }
        let continued = match skip {
            0 => self.continued,
            _ => self.window.get(skip).is_some_and(|first| self.window[skip - 1].continues_with(first)),
        };
        if continued && let Some(first) = messages.first_mut() {
            first.continued = true;
        }
        SharedSnapshot { messages: Arc::new(messages), tools: Arc::new(tools), latest: Arc::new(self.latest.clone()) }
    }
}

/// Builds a fold from the newest events backwards, so that only the end of a long session is read.
pub(super) struct BackwardsFold {
    fold: SnapshotFold,
    /// Events of the window, the oldest first.
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// `true` if the window is full.
    full: bool,
    /// `true` if the window is full and the latest event of every kind in [`LATEST`] was found.
    pub(super) done: bool,
}

impl BackwardsFold {
    /// Makes an empty fold at `head`.
    pub(super) fn from(head: Position) -> Self {
        let fold = SnapshotFold { at: head, ..SnapshotFold::default() };
        Self { fold, events: VecDeque::new(), bytes: 0, full: false, done: false }
    }

    /// Applies the event before those applied so far.
    pub(super) fn event(&mut self, event: &Arc<Event>) {
        self.fold.take_latest(event, false);
        if in_window(event.kind) && !self.full {
            // An upper bound: merged events take less.
            let text = event.kind.role().and_then(|_| text_range(&event.body)).map(|text| text.len());
            self.bytes += text.unwrap_or(event.body.len() + OVERHEAD);
            self.full = self.bytes > WINDOW + PIECE_MAX;
            self.events.push_front(Arc::clone(event));
        }
        let found = |kind: &Kind| {
            let body = self.fold.latest.get(kind.as_str());
            // A mode update without the available modes: an older one has them.
            body.is_some_and(|body| {
                *kind != Kind::CurrentModeUpdate || MODES.iter().any(|name| body.get().contains(name))
            })
        };
        self.done = self.full && LATEST.iter().all(found);
    }

    /// Returns the fold, on top of the [`base`](SnapshotFold::base) that retention stored.
    pub(super) fn finish(mut self, base: Option<&[u8]>) -> SnapshotFold {
        let head = self.fold.at;
        let latest = std::mem::take(&mut self.fold.latest);
        let mut fold = base.map_or_else(SnapshotFold::default, SnapshotFold::from_base);
        let first = self.events.front().map(|event| event.position);
        self.events.iter().for_each(|event| fold.event(event));
        if self.full && fold.start.is_none() {
            // Older events were not read.
            fold.start = first;
        }
        fold.latest.extend(latest);
        fold.at = head;
        fold
    }
}

/// The members of `_meta` in which agents send the available modes.
const MODES: [&str; 2] = ["modes", "plexus"];

/// Returns a mode update with the available modes of an older one; `None` if it has them itself, or the older one has none.
fn with_modes(newer: &RawValue, older: &RawValue) -> Option<Box<RawValue>> {
    let has_modes =
        |body: &Members| body.get("_meta").is_some_and(|meta| MODES.iter().any(|name| meta.get(name).is_some()));
    let mut newer: Members = serde_json::from_str(newer.get()).ok().filter(|newer| !has_modes(newer))?;
    let older: Members = serde_json::from_str(older.get()).ok().filter(has_modes)?;
    let meta = newer.entry("_meta").or_insert_with(|| serde_json::json!({}));
    for name in MODES {
        if let Some(modes) = older.get("_meta").and_then(|meta| meta.get(name)) {
            meta.as_object_mut()?.insert(name.into(), modes.clone());
        }
    }
    serde_json::value::to_raw_value(&newer).ok()
}

/// Returns the body of an event for [`Snapshot::latest`]: the whole body, or its beginning. Lists are cut between elements.
fn latest_body(event: &Event) -> Option<Box<RawValue>> {
    if event.body.len() <= LATEST_MAX {
        return serde_json::from_slice(&event.body).ok();
    }
    let mut body = Members::new();
    if event.body.len() <= SHORTENED_MAX {
        body = serde_json::from_slice(&event.body).ok()?;
    } else if let Some((_, name)) = LISTS.iter().find(|(kind, _)| *kind == event.kind) {
        body.insert((*name).into(), serde_json::json!([]));
    }
    for value in body.values_mut() {
        let Some(elements) = value.as_array_mut() else { continue };
        let mut left = MEMBER_MAX;
        let fits = elements.iter().take_while(|element| {
            let bytes = size(element) + 1;
            left = left.saturating_sub(bytes);
            left > 0
        });
        let fits = fits.count();
        elements.truncate(fits);
    }
    shorten(&mut body, MEMBER_MAX);
    let missing = event.body.len().saturating_sub(body.values().map(size).sum());
    let meta = body.entry("_meta").or_insert_with(|| serde_json::json!({})).as_object_mut()?;
    let plexus = meta.entry("plexus").or_insert_with(|| serde_json::json!({})).as_object_mut()?;
    plexus.insert("left_out".into(), missing.into());
    plexus.insert("position".into(), event.position.0.into());
    serde_json::value::to_raw_value(&body).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use plexus_protocol::{Origin, RunId, RuntimeId, SessionId};
    use serde_json::{Value, json};

    fn event(kind: Kind, body: &Value) -> Event {
        let origin = Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        };
        Event {
            position: Position(7),
            origin: Arc::new(origin),
            run_id: RunId::trusted("r_1"),
            seq: 0,
            at: Timestamp::from_millis(1),
            kind,
            body: serde_json::to_vec(body).unwrap().into(),
            native: None,
        }
    }

    fn latest(kind: Kind, body: &Value) -> Value {
        let mut fold = SnapshotFold::default();
        fold.event(&event(kind, body));
        serde_json::from_str(fold.latest[kind.as_str()].get()).unwrap()
    }

    #[test]
    fn snapshot_has_a_part_of_a_long_plan_title_or_command_list() {
        let entry = |text: &str| json!({ "content": text, "priority": "medium", "status": "pending" });
        let short = json!({ "sessionUpdate": "plan", "entries": [entry("one"), entry("two")] });
        assert_eq!(latest(Kind::Plan, &short), short);
        for length in [300 << 10, 8 << 20] {
            let long =
                json!({ "sessionUpdate": "plan", "entries": [entry("one"), entry(&"x".repeat(length)), entry("two")] });
            let shown = latest(Kind::Plan, &long);
            let entries = shown["entries"].as_array().unwrap();
            assert_eq!(entries.len(), usize::from(length < 1 << 20), "whole entries: {entries:?}");
            let meta = &shown["_meta"]["plexus"];
            assert!(meta["left_out"].as_u64().unwrap() >= length as u64 && meta["position"] == 7, "{meta}");
        }
        let commands: Vec<Value> =
            (0..4000).map(|n| json!({ "name": format!("c{n}"), "description": "x".repeat(100) })).collect();
        let shown = latest(Kind::AvailableCommandsUpdate, &json!({ "availableCommands": commands }));
        let kept = shown["availableCommands"].as_array().unwrap();
        assert!(kept.len() > 400 && kept[..] == commands[..kept.len()], "{}", kept.len());
        let shown = latest(Kind::SessionInfoUpdate, &json!({ "title": "ä".repeat(200 << 10) }));
        assert!(shown["title"].as_str().unwrap().len() <= MEMBER_MAX && shown.to_string().len() < LATEST_MAX);
    }

    #[test]
    fn snapshot_keeps_the_choices_of_300_models() {
        let model = |n: usize| json!({ "value": format!("provider/model-{n}"), "name": format!("Model {n}"), "description": "x".repeat(300) });
        let option = json!({ "id": "model", "name": "Model", "type": "select", "options": (0..300).map(model).collect::<Vec<_>>() });
        let body = json!({ "sessionUpdate": "config_option_update", "configOptions": [option] });
        assert_eq!(latest(Kind::ConfigOptionUpdate, &body), body);
    }
}
