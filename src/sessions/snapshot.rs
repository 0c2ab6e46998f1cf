//! One file because what goes into a fold and what comes out of it know each other: a session folded to what a newcomer must
//! see, the newest messages and tools within a bound, and the latest of what only the latest matters of.

// Who reads events decides for every kind: a new one has to be named here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::page_merge::text_of;
use plexus_protocol::schema::{JsonObject, words};
use plexus_protocol::transcript::{
    Content, EntryBody, EntryKind, Message, MessageKey, Part, Role, Transcript, TranscriptItem, json_size as size,
    surface_id,
};
use plexus_protocol::{Cursor, Event, Kind, Position, Request, RunId, SessionInfo, Timestamp};

/// Bytes of messages and tools in a snapshot, about: the newest. What comes before is read by pages, from
/// [`Snapshot::before`] back.
pub const WINDOW: usize = if cfg!(test) { 4 << 10 } else { 256 << 10 };
/// Bytes of a message's text that are let go together when it is too much.
const PIECE: usize = if cfg!(test) { 256 } else { 8 << 10 };
/// What a message or a tool call takes beside its text, in bytes, about.
const AROUND: usize = 160;
/// Surfaces kept; the oldest goes when there is one more.
const SURFACES: usize = 64;

/// What a newcomer must see of a session: the newest messages and tool calls, the latest of everything else, and the cursor
/// at which this is exact. The messages and tools are what happened from `before` on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    /// The session.
    pub session: SessionInfo,
    /// Everything up to here is in it; reading on after it misses nothing and repeats nothing.
    pub cursor: Cursor,
    /// The newest messages, in order; the one being said has its text so far.
    pub messages: Arc<Vec<SnapshotMessage>>,
    /// The newest tool calls, in order, each with its latest state.
    pub tools: Arc<Vec<SnapshotTool>>,
    /// The latest body of each kind of which only the latest matters (plan, mode, commands, usage …), by kind.
    #[schema(value_type = BTreeMap<String, JsonObject>)]
    pub latest: Arc<BTreeMap<&'static str, Box<RawValue>>>,
    /// The requests that are open; what is long of them is cut.
    #[serde(serialize_with = "briefly")]
    pub requests: Vec<Arc<Request>>,
    /// The surfaces of the agent, latest.
    #[schema(value_type = Vec<JsonObject>)]
    pub surfaces: Arc<Vec<Box<RawValue>>>,
    /// Whether retention has removed what came before.
    pub trimmed: bool,
    /// Whether there are older messages and tools than these.
    pub truncated: bool,
    /// Where to page back from for what is older; absent unless `truncated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
}

/// Requests, what is long of them cut.
fn briefly<S: serde::Serializer>(requests: &[Arc<Request>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(requests.iter().map(|request| request.brief()))
}

/// One message; the first one of a snapshot that is truncated may be the end of a longer one.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Message)]
pub struct SnapshotMessage {
    /// Whose words it has.
    #[schema(schema_with = roles)]
    pub role: Role,
    /// The run it was said in.
    #[schema(value_type = RunId)]
    pub run_id: String,
    /// Its text.
    pub text: String,
    /// What in it is no text: ACP content blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<JsonObject>)]
    pub content: Vec<serde_json::Value>,
    /// Whether it is being said, or was cut off.
    pub partial: bool,
    /// Whether it began before what the snapshot has: this is its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// When it began.
    pub at: Timestamp,
    /// The place of its first event in the log.
    pub position: u64,
    /// The tool call that it stands under: these are a subagent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

fn roles() -> RefOr<Schema> {
    words([Role::User, Role::Agent, Role::Thought].map(Role::as_str), "Whose words")
}

/// One tool call, latest state.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Tool)]
pub struct SnapshotTool {
    /// The runtime's identifier.
    pub tool_call_id: String,
    /// The run it belongs to.
    #[schema(value_type = RunId)]
    pub run_id: String,
    /// The place of its first event in the log.
    pub position: u64,
    /// The tool call that it stands under: this is what a subagent does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// ACP's tool call, every update merged into it (`title`, `kind`, `status`, `content`, `rawInput`, `rawOutput`, `locations`).
    #[serde(flatten)]
    pub call: serde_json::Map<String, serde_json::Value>,
}

/// The kinds of which only the latest matters to a newcomer.
pub const LATEST: &[Kind] = &[
    Kind::Plan,
    Kind::AvailableCommandsUpdate,
    Kind::CurrentModeUpdate,
    Kind::ConfigOptionUpdate,
    Kind::SessionInfoUpdate,
    Kind::UsageUpdate,
    Kind::RuntimeStatus,
];

/// Folds a session's events, in order, into what a newcomer must see. Pure, and bounded: what is older than the newest
/// [`WINDOW`] bytes falls out.
#[derive(Default)]
pub(super) struct SnapshotFold {
    latest: BTreeMap<&'static str, Box<RawValue>>,
    surfaces: BTreeMap<String, (Position, Box<RawValue>)>,
    window: VecDeque<Piece>,
    /// Bytes of the window, about.
    bytes: usize,
    /// Where the window begins, once something fell out of it.
    start: Option<Position>,
    /// Whether the first message of the window began before it.
    continued: bool,
    /// The last event that is in it.
    pub(super) at: Position,
    /// What was last shown of it, until the next event.
    shown: Option<Arc<SharedSnapshot>>,
}

/// What asking for a snapshot shares with everybody else who asks.
struct SharedSnapshot {
    messages: Arc<Vec<SnapshotMessage>>,
    tools: Arc<Vec<SnapshotTool>>,
    latest: Arc<BTreeMap<&'static str, Box<RawValue>>>,
    surfaces: Arc<Vec<Box<RawValue>>>,
}

/// Events that lie side by side in the log and go together.
type Members = serde_json::Map<String, serde_json::Value>;

struct Piece {
    first: Position,
    run_id: String,
    at: Timestamp,
    body: EntryBody,
    bytes: usize,
}

/// Whether the messages and tool calls of a snapshot come from events of this kind.
const fn in_window(kind: Kind) -> bool {
    match EntryKind::of(kind) {
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
    fn of(event: &Event) -> Option<Self> {
        if !in_window(event.kind) {
            return None;
        }
        let mut body = EntryBody::read(event.kind, serde_json::from_slice(&event.body).ok()?);
        let bytes = AROUND
            + match &mut body {
                EntryBody::Message { content: Content::Text(text), .. } => text.len(),
                // Only that there was a plan, and how a run ended, is of interest here.
                EntryBody::Plan(entries) => {
                    entries.clear();
                    0
                }
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

    /// Whether `next` goes on with the same message: words after anything else are another, unless the agent numbers them.
    fn goes_on(&self, next: &Self) -> bool {
        matches!((self.message(), next.message()), (Some(before), Some(next)) if next.goes_on_with(&before))
    }

    fn message(&self) -> Option<MessageKey<'_>> {
        let EntryBody::Message { role, id, parent, .. } = &self.body else { return None };
        Some(MessageKey::new(*role, &self.run_id, id.as_deref(), parent.as_deref()))
    }

    /// Takes in what comes right after; gives it back where it must stay a piece of its own.
    fn join(&mut self, next: Self) -> Option<Self> {
        let goes_on = self.goes_on(&next);
        // Such output comes piece by piece: each has to be seen by the fold.
        let outputs = |update: &Members| update.get("_meta").is_some_and(|meta| meta.get("terminal_output").is_some());
        match (&mut self.body, next.body) {
            (
                EntryBody::Message { content: Content::Text(text), .. },
                EntryBody::Message { content: Content::Text(more), .. },
            ) if goes_on && text.len() < PIECE => {
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
                self.bytes = (self.bytes + next.bytes).saturating_sub(replaced + AROUND);
                None
            }
            (_, body) => Some(Self { body, ..next }),
        }
    }
}

impl SnapshotFold {
    /// Starts from what retention left of the events that it removed.
    pub(super) fn from_base(base: &[u8]) -> Self {
        let kept: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(base).unwrap_or_default();
        let latest = kept.into_iter().filter_map(|(kind, body)| Some((Kind::from_name(&kind)?.as_str(), body)));
        Self { latest: latest.collect(), ..Self::default() }
    }

    /// What a later fold needs of the events so far when they are removed.
    pub(super) fn base(&self) -> Vec<u8> {
        serde_json::to_vec(&self.latest).unwrap_or_default()
    }

    /// The next event.
    pub(super) fn event(&mut self, event: &Event) {
        self.at = event.position;
        self.shown = None;
        self.take_latest(event, true);
        let Some(piece) = Piece::of(event) else { return };
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
            self.continued = self.window.front().is_some_and(|first| gone.goes_on(first));
            self.start = Some(self.window.front().map_or(event.position.next(), |first| first.first));
        }
    }

    /// Takes note of what only the latest matters of; with `newer` unset, of what nothing newer is known of.
    fn take_latest(&mut self, event: &Event, newer: bool) {
        if LATEST.contains(&event.kind)
            && let Some(body) = raw(event)
        {
            match self.latest.get_mut(event.kind.as_str()) {
                None => {
                    self.latest.insert(event.kind.as_str(), body);
                }
                // Which modes there are is said once; later updates name the one that is set.
                Some(known) if event.kind == Kind::CurrentModeUpdate => {
                    let (new, old) = if newer { (&body, &*known) } else { (&*known, &body) };
                    let with = with_modes(new, old);
                    match with {
                        Some(with) => *known = with,
                        None if newer => *known = body,
                        None => {}
                    }
                }
                Some(known) if newer => *known = body,
                Some(_) => {}
            }
        }
        if event.kind == Kind::SurfaceUpdated {
            let id = serde_json::from_slice(&event.body).ok().and_then(|body| surface_id(&body));
            let (Some(id), Some(body)) = (id, raw(event)) else {
                return;
            };
            if newer || !self.surfaces.contains_key(&id) {
                self.surfaces.insert(id, (event.position, body));
            }
            if self.surfaces.len() > SURFACES
                && let Some(oldest) = self.surfaces.iter().min_by_key(|(_, (at, _))| *at).map(|(id, _)| id.clone())
            {
                self.surfaces.remove(&oldest);
            }
        }
    }

    /// What it takes in memory, in bytes, about: what was last shown of it, too.
    pub(super) fn weight(&self) -> usize {
        let latest: usize = self.latest.values().map(|body| body.get().len()).sum();
        let surfaces: usize = self.surfaces.values().map(|(_, body)| body.get().len()).sum();
        2 * (self.bytes + latest + surfaces) + 1024
    }

    /// The snapshot, exact at `cursor`: `most` bytes of messages and tools at most, about.
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
        let shown = match &self.shown {
            Some(shown) if skip == 0 => Arc::clone(shown),
            _ => Arc::new(self.show(skip)),
        };
        if skip == 0 {
            self.shown = Some(Arc::clone(&shown));
        }
        let start = match skip {
            0 => self.start,
            _ => Some(self.window.get(skip).map_or(cursor.position.next(), |piece| piece.first)),
        };
        let mut snapshot = Snapshot {
            session,
            messages: Arc::clone(&shown.messages),
            tools: Arc::clone(&shown.tools),
            latest: Arc::clone(&shown.latest),
            requests,
            surfaces: Arc::clone(&shown.surfaces),
            trimmed,
            truncated: start.is_some(),
            before: start.map(|position| Cursor { epoch: cursor.epoch.clone(), position }),
            cursor,
        };
        let saying = snapshot.messages.last().is_some_and(|last| {
            let run = snapshot.session.run_id.as_ref();
            !last.partial && last.role != Role::User && run.is_some_and(|run| run.as_str() == last.run_id)
        });
        if saying && let Some(last) = Arc::make_mut(&mut snapshot.messages).last_mut() {
            last.partial = true;
        }
        snapshot
    }

    /// Folds the window, without its first pieces.
    fn show(&self, skip: usize) -> SharedSnapshot {
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
                // The latest plan, the requests and the surfaces stand beside; the rest is on the pages.
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
            _ => self.window.get(skip).is_some_and(|first| self.window[skip - 1].goes_on(first)),
        };
        if continued && let Some(first) = messages.first_mut() {
            first.continued = true;
        }
        SharedSnapshot {
            messages: Arc::new(messages),
            tools: Arc::new(tools),
            latest: Arc::new(self.latest.clone()),
            surfaces: Arc::new(self.surfaces.values().map(|(_, body)| body.clone()).collect()),
        }
    }
}

/// Makes a fold from the newest events backwards, so that it reads of a long session only what it needs.
pub(super) struct BackwardsFold {
    fold: SnapshotFold,
    /// What the window will be made of, the oldest first.
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The window is full, and there is something before it.
    full: bool,
    /// Whether everything that is looked for was found.
    pub(super) done: bool,
}

impl BackwardsFold {
    /// Begins at `head`.
    pub(super) fn from(head: Position) -> Self {
        let fold = SnapshotFold { at: head, ..SnapshotFold::default() };
        Self { fold, events: VecDeque::new(), bytes: 0, full: false, done: false }
    }

    /// The event before all that it was given.
    pub(super) fn event(&mut self, event: &Arc<Event>) {
        self.fold.take_latest(event, false);
        if in_window(event.kind) && !self.full {
            // Enough, and never too much: what is merged takes less than this.
            let text = event.kind.role().and_then(|_| text_of(&event.body)).map(|text| text.len());
            self.bytes += text.unwrap_or(event.body.len() + AROUND);
            // The first that does not fit tells where the window begins.
            self.full = self.bytes > WINDOW + PIECE;
            self.events.push_front(Arc::clone(event));
        }
        let said = |kind: &Kind| {
            let body = self.fold.latest.get(kind.as_str());
            // A mode without the modes that there are is looked for further back.
            body.is_some_and(|body| {
                *kind != Kind::CurrentModeUpdate || MODES.iter().any(|name| body.get().contains(name))
            })
        };
        self.done = self.full && LATEST.iter().all(said);
    }

    /// The fold, over what retention left of the events that it removed.
    pub(super) fn finish(mut self, base: Option<&[u8]>) -> SnapshotFold {
        let head = self.fold.at;
        let (latest, surfaces) = (std::mem::take(&mut self.fold.latest), std::mem::take(&mut self.fold.surfaces));
        let mut fold = base.map_or_else(SnapshotFold::default, SnapshotFold::from_base);
        let first = self.events.front().map(|event| event.position);
        self.events.iter().for_each(|event| fold.event(event));
        if self.full && fold.start.is_none() {
            // There may be more before it, which did not have to be looked at.
            fold.start = first;
        }
        fold.latest.extend(latest);
        fold.surfaces.extend(surfaces);
        fold.at = head;
        fold
    }
}

/// The members of `_meta` in which agents say which modes there are.
const MODES: [&str; 2] = ["modes", "plexus"];

/// A mode update with the modes that only an older one names; `None` where it needs none, or there are none.
fn with_modes(newer: &RawValue, older: &RawValue) -> Option<Box<RawValue>> {
    let names =
        |body: &Members| body.get("_meta").is_some_and(|meta| MODES.iter().any(|name| meta.get(name).is_some()));
    let mut newer: Members = serde_json::from_str(newer.get()).ok().filter(|newer| !names(newer))?;
    let older: Members = serde_json::from_str(older.get()).ok().filter(names)?;
    let meta = newer.entry("_meta").or_insert_with(|| serde_json::json!({}));
    for name in MODES {
        if let Some(said) = older.get("_meta").and_then(|meta| meta.get(name)) {
            meta.as_object_mut()?.insert(name.into(), said.clone());
        }
    }
    serde_json::value::to_raw_value(&newer).ok()
}

fn raw(event: &Event) -> Option<Box<RawValue>> {
    serde_json::from_slice(&event.body).ok()
}
