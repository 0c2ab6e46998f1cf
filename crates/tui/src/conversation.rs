//! A conversation, folded from its events into blocks, and the scroll position in it. One file, since the kinds of blocks, their drawing
//! and the movement over them depend on each other. Pure.
//!
//! A conversation starts with the newest page of history and keeps only the newest blocks ([`BLOCKS_MAX`], [`BYTES_MAX`]). Older events are read page
//! by page, backwards, when the user scrolls there; one such page is kept.

// Exhaustive over the kinds: a new kind does not compile until it is handled here.
#![deny(clippy::wildcard_enum_match_arm)]

mod blocks;
mod drawing;
mod history;
mod reads;
mod short;
mod surfaces;

use blocks::{Block, BlockBody, ParentCall, ToolPart};
use drawing::parts;
use history::{History, OlderPage};
use reads::{ReadGroup, ReadGroups, only_reads};
use short::CallParts;
pub(crate) use short::WholeCall;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use plexus_protocol::answers::Answerer;
use plexus_protocol::api::history::{EventEnvelope, Page};
use plexus_protocol::api::snapshot::{Snapshot, SnapshotMessage, SnapshotTool};
use plexus_protocol::api::stream::{StreamSnapshots, Viewer};
use plexus_protocol::transcript::{
    ChunkTarget, Content, EntryBody, LatestKind, MessageTracker, NoteKind, PlanEntry, Role, ToolCall, ToolContent,
};
use plexus_protocol::{Cursor, ErrorBody, Kind, Position, Request, RequestHead, RunBody, RunStatus, RuntimeStatusBody};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::diff::diff;
use super::image;
use super::markdown::{markdown, plain};
use super::sanitize;
use super::settings::{self, Settings};
use super::surface::{self, SessionSurfaces};
use super::theme::Theme;
use super::view_model::{FIELD, RequestResult, RequestView, line, optional_line, span};

/// Maximum number of blocks; beyond it the oldest are dropped.
const BLOCKS_MAX: usize = 3000;
/// Maximum size of the text of all blocks, in bytes; beyond it the oldest blocks are dropped.
const BYTES_MAX: usize = 24 << 20;
/// Number of blocks dropped at a time: a page.
const PAGE: usize = 500;
/// Size after which a message continues in another block at the next paragraph, in bytes, so that only the new text is laid out.
const MESSAGE_SPLIT: usize = 24 << 10;
/// Size after which a message without paragraphs continues in another block, in bytes.
const MESSAGE_MAX: usize = 96 << 10;
/// Number of lines of a folded tool output: the last ones.
const OUTPUT_FOLDED: usize = 6;
/// Number of lines of a folded diff: the first ones.
const DIFF_FOLDED: usize = 14;
/// Number of lines of a user's folded message.
const USER_FOLDED: usize = 40;
/// Maximum size of a tool's output or input that is laid out, in bytes, from its end.
const OUTPUT_MAX: usize = 1 << 20;
/// Maximum number of prompts that the composer can recall.
const PROMPTS_MAX: usize = 200;
/// Number of lines of a folded surface in the conversation; the rest is visible after unfolding or opening it.
const SURFACE_FOLDED: usize = 12;
const SURFACE_UNFOLDED: usize = 200;
/// Width of a surface that is copied as text, in columns.
const COPIED_COLUMNS: usize = 100;
/// Maximum number of requests that are stored with their outcomes.
const REQUESTS_MAX: usize = 2000;
/// Maximum number of commands that the composer offers.
const COMMANDS_MAX: usize = 200;
/// Maximum number of off-screen blocks whose lines are cached.
const CACHE_MAX: usize = 400;

/// An item of a snapshot's conversation.
enum SnapshotItem<'a> {
    Message(&'a SnapshotMessage),
    Tool(&'a SnapshotTool),
}

/// The inputs of a block's lines, beside the block.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DrawnFor {
    width: u16,
    /// `true` if an empty line precedes the block, and a line that names its tool call.
    gap: bool,
    named: bool,
    /// The group of calls that only read, and whether it is unfolded.
    group: Option<(ReadGroup, bool)>,
}

/// A block's lines, and the inputs that they were made from.
type Drawn = (DrawnFor, Rc<Vec<Line<'static>>>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScrollPosition {
    /// `true` if the newest line is followed.
    pub(crate) follow: bool,
    /// The block at the top of the screen, and how many of its lines are above it.
    top: (u64, usize),
    /// The block that keys act on.
    pub(crate) chosen: Option<u64>,
}

/// The default folding of each kind of block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoldDefaults {
    pub(crate) thoughts: bool,
    pub(crate) tools: bool,
}

/// The inputs of drawing.
pub(crate) struct DrawContext<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) width: u16,
    pub(crate) height: usize,
    pub(crate) now: i64,
}

/// The state of the session, as its latest events report it.
#[derive(Debug, Default)]
pub(crate) struct SessionStatus {
    /// The time when the current run began.
    pub(crate) running: Option<i64>,
    /// Tokens used, and the size of the context.
    pub(crate) usage: Option<(u64, u64)>,
    /// The agent's settings.
    pub(crate) settings: Settings,
    /// Slash commands: name and description.
    pub(crate) commands: Vec<(String, String)>,
}

/// The state in which the next event becomes a part of a block.
#[derive(Debug, Default)]
struct Assembly {
    tracker: MessageTracker,
    /// The tool call that the current entry belongs to.
    above: Option<ParentCall>,
    /// The start of the message that the last text block belongs to.
    message: Option<Position>,
    /// The place of the last event that was applied, and whether it belongs to a page.
    applied: (u64, bool),
}

/// The bounds of the blocks.
#[derive(Debug, Default)]
struct Bounds {
    /// The bytes of text in the blocks.
    bytes: usize,
    /// `true` if the start was dropped.
    trimmed: bool,
    /// `true` if the bounds apply.
    applied: bool,
}

/// The blocks that show surfaces.
#[derive(Debug, Default)]
struct DrawnSurfaces {
    /// The block that shows a surface, by its name.
    blocks: HashMap<String, u64>,
    /// `true` if events change the surfaces: those of a page are older than the snapshot.
    follows: bool,
    /// The runtime's name, for frames.
    agent: String,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) session: String,
    blocks: VecDeque<Block>,
    history: History,
    asks: BTreeMap<String, (RequestView, Option<RequestResult>)>,
    tools: HashMap<String, u64>,
    /// The calls that only read, of which one line stands for many.
    reads: ReadGroups,
    next: u64,
    bounds: Bounds,
    /// The cursor of the last event.
    pub(crate) cursor: Option<Cursor>,
    /// `true` if all stored events have been received.
    pub(crate) live: bool,
    pub(crate) events: u64,
    pub(crate) scroll_position: ScrollPosition,
    pub(crate) folds: FoldDefaults,
    pub(crate) status: SessionStatus,
    /// The prompts, oldest first.
    pub(crate) prompts: VecDeque<String>,
    assembly: Assembly,
    /// The place to scroll to once it is loaded.
    pub(crate) seek_target: Option<u64>,
    /// Blocks added while the newest line is not followed.
    pub(crate) unseen: usize,
    /// The surfaces that the agent draws.
    pub(crate) surfaces: SessionSurfaces,
    drawn: DrawnSurfaces,
}

impl Conversation {
    pub(crate) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            blocks: VecDeque::new(),
            history: History::default(),
            asks: BTreeMap::new(),
            tools: HashMap::new(),
            reads: ReadGroups::default(),
            next: 1,
            cursor: None,
            live: false,
            events: 0,
            scroll_position: ScrollPosition { follow: true, top: (0, 0), chosen: None },
            folds: FoldDefaults::default(),
            status: SessionStatus::default(),
            prompts: VecDeque::new(),
            assembly: Assembly::default(),
            seek_target: None,
            unseen: 0,
            bounds: Bounds { bytes: 0, trimmed: false, applied: true },
            surfaces: SessionSurfaces::default(),
            drawn: DrawnSurfaces { follows: true, ..DrawnSurfaces::default() },
        }
    }

    /// The number of blocks and bytes kept.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.blocks.len(), self.bounds.bytes)
    }

    /// Sets whether an older page is being fetched.
    pub(crate) fn set_fetching(&mut self, fetching: bool) {
        self.history.fetching = fetching;
    }

    // === events

    /// Starts with the newest page of history, and the latest values of a snapshot. Further events follow.
    pub(crate) fn open(&mut self, page: &Page, snapshot: &Snapshot) {
        self.history.previous.clone_from(&page.end.previous);
        self.bounds.trimmed = snapshot.trimmed;
        for (kind, body) in &*snapshot.latest {
            // Plans and runtime states are blocks, at the place of their event.
            let is_block = [Kind::Plan, Kind::RuntimeStatus].iter().any(|block| block.as_str() == kind);
            if !is_block && !page.events.iter().any(|event| event.kind == *kind) {
                self.apply(kind, body, "", (0, 0), (0, 0));
            }
        }
        self.drawn.follows = false;
        self.surfaces.replace(&snapshot.surfaces);
        page.events.iter().for_each(|event| self.page_event(event));
        self.drawn.follows = true;
        // Open requests may have been opened before the page.
        self.open_requests(&snapshot.requests);
    }

    /// Starts anew from a snapshot, which replaces the dropped events.
    pub(crate) fn snapshot(&mut self, snapshots: &StreamSnapshots) {
        let session = self.session.as_str();
        let Some(snapshot) = snapshots.snapshots.iter().find(|one| one.session.session_id.as_str() == session) else {
            return;
        };
        self.blocks.clear();
        self.history.older = None;
        self.tools.clear();
        self.reads = ReadGroups::default();
        self.drawn.blocks.clear();
        self.surfaces.replace(&snapshot.surfaces);
        self.bounds.bytes = 0;
        self.bounds.trimmed = snapshot.trimmed;
        (self.assembly.tracker, self.assembly.message) = (MessageTracker::default(), None);
        self.history.previous = snapshot.before.as_ref().map(ToString::to_string);
        let messages = snapshot.messages.iter().map(|message| (message.position, SnapshotItem::Message(message)));
        let tools = snapshot.tools.iter().map(|tool| (tool.position, SnapshotItem::Tool(tool)));
        let mut items: Vec<_> = messages.chain(tools).collect();
        items.sort_by_key(|(position, _)| *position);
        for (position, item) in items {
            match item {
                SnapshotItem::Message(message) => {
                    // The next event may continue the message, but the message itself is complete.
                    self.assembly.tracker.interrupt();
                    let (content, at) = (Content::Text(message.text.clone()), message.at.as_millis());
                    let parent = message.parent_tool_call_id.clone();
                    let entry = EntryBody::Message { role: message.role, id: None, parent, content };
                    self.entry(entry, &message.run_id, position, (at, at));
                }
                SnapshotItem::Tool(tool) => {
                    let (id, parent) = (tool.tool_call_id.clone(), tool.parent_tool_call_id.clone());
                    let entry = EntryBody::Tool { id, parent, update: tool.call.clone() };
                    self.entry(entry, &tool.run_id, position, (0, 0));
                }
            }
        }
        let position = snapshots.cursor.position.0;
        for (kind, body) in &*snapshot.latest {
            self.apply(kind, body, "", (position, position), (0, 0));
        }
        self.cursor = Some(snapshots.cursor.clone());
        self.open_requests(&snapshot.requests);
    }

    /// Applies the next event.
    pub(crate) fn event(&mut self, event: &EventEnvelope) {
        let first = event.cursor_first.as_ref().unwrap_or(&event.cursor).position.0;
        let (at, at_last) = (event.at.as_millis(), event.at_last.unwrap_or(event.at).as_millis());
        let positions = (first, event.position().0);
        self.apply(&event.kind, &event.event, event.run_id.as_str(), positions, (at, at_last));
        self.cursor = Some(event.cursor.clone());
    }

    /// Applies an event of a page.
    fn page_event(&mut self, event: &EventEnvelope) {
        self.assembly.applied.1 = true;
        self.event(event);
        self.assembly.applied.1 = false;
    }

    /// Applies the body of an event, or of several merged ones: the positions and times are those of the first and of the last.
    fn apply(&mut self, kind: &str, body: &RawValue, run: &str, (first, last): (u64, u64), at: (i64, i64)) {
        self.events += 1;
        self.assembly.applied.0 = last;
        self.assembly.above = None;
        let body = json_value(body);
        match Kind::from_name(kind) {
            Some(kind) => self.entry(EntryBody::read(kind, body), run, first, at),
            // A kind that only newer versions know is shown as JSON.
            None => self.note(false, sanitize::line(&format!("{kind} {body}"), 300), first),
        }
    }

    fn entry(&mut self, entry: EntryBody, run: &str, position: u64, (at, last): (i64, i64)) {
        let target = self.assembly.tracker.entry(&entry, run, Position(position));
        self.assembly.above = self.assembly.tracker.parent(&entry).map(|parent| {
            let title = if parent.title.is_empty() { parent.id } else { parent.title };
            ParentCall { id: parent.id.to_owned(), title: sanitize::line(title, FIELD), depth: parent.depth }
        });
        match entry {
            EntryBody::Message { role, content, .. } => match content {
                Content::Text(text) => self.add_text(role, target, &text, position),
                Content::Block(block) => {
                    self.add_text(role, target, &image::label(&block), position);
                }
            },
            EntryBody::Tool { id, update, .. } => self.tool(id, update, (at, last), position),
            EntryBody::Plan(entries) => self.plan(entries, position),
            EntryBody::RunStarted(_) => self.status.running = Some(at),
            EntryBody::RunStatus(body) => {
                if let Ok(RunBody { cancelling: true, by, .. }) = RunBody::deserialize(body) {
                    let name = name_or_default(by.map(|by| by.name).as_deref());
                    self.note(false, format!("{name} cancels the run"), position);
                }
            }
            EntryBody::RunEnded(body) => {
                let took = self.status.running.take().map_or(-1, |from| at - from);
                let body = RunBody::deserialize(body).ok();
                let (status, reasons) = body
                    .map_or((RunStatus::Unknown, [None, None]), |body| (body.status, [body.stop_reason, body.message]));
                let reasons = reasons.iter().flatten().map(|text| line(text));
                let reasons: Vec<String> = reasons.filter(|text| !text.is_empty() && text != "end_turn").collect();
                self.push(BlockBody::Ended { status, text: reasons.join(", "), took }, position);
            }
            EntryBody::RequestOpened(body) => {
                // A request that only a newer gateway has is not shown here; the inbox counts it.
                if let Ok(request) = serde_json::from_value(body) {
                    self.open_request(request, position);
                }
            }
            EntryBody::RequestUpdated(body) => {
                if let Some(ask) = serde_json::from_value(body).ok().and_then(request_view)
                    && let Some((known, None)) = self.asks.get_mut(&ask.id)
                    && ask.request.revision >= known.request.revision
                {
                    *known = ask;
                }
            }
            EntryBody::RequestResolved(body) => {
                if let Ok(RequestHead { request_id: Some(request_id), .. }) = RequestHead::deserialize(&body)
                    && let Some((ask, outcome)) = self.asks.get_mut(request_id.as_str())
                {
                    *outcome = Some(RequestResult::resolved(serde_json::from_value(body).ok(), ask, last));
                }
            }
            EntryBody::Latest(kind, body) => self.latest(kind, &body),
            EntryBody::Surface { id, body } => self.surface(id, body, position),
            EntryBody::Note(kind, body) => self.log_line(kind, &body, position),
        }
    }

    /// Adds the open requests of a snapshot, at the last event.
    fn open_requests(&mut self, requests: &[Arc<Request>]) {
        let position = self.cursor.as_ref().map_or(0, |cursor| cursor.position.0);
        for request in requests {
            self.events += 1;
            self.assembly.applied.0 = position;
            self.assembly.above = None;
            self.open_request(Request::clone(request), position);
        }
    }

    /// Adds an open request.
    fn open_request(&mut self, request: Request, position: u64) {
        let Some(ask) = request_view(request) else { return };
        if let Some(call) = &ask.request.tool_call_id {
            self.mark_requested(call);
        }
        let id = ask.id.clone();
        let known = self.asks.insert(id.clone(), (ask, None)).is_some();
        if !known {
            self.push(BlockBody::Request(id), position);
        }
        while self.asks.len() > REQUESTS_MAX {
            self.asks.pop_first();
        }
    }

    /// Applies a kind of which only the latest value counts.
    fn latest(&mut self, kind: LatestKind, body: &Value) {
        match kind {
            LatestKind::Mode => self.status.settings.take_mode(body),
            LatestKind::Options => self.status.settings.take_options(body),
            LatestKind::Usage => {
                if let (Some(used), Some(size)) = (body["used"].as_u64(), body["size"].as_u64()) {
                    self.status.usage = Some((used, size));
                }
            }
            LatestKind::Commands => {
                self.status.commands = settings::commands(body).take(COMMANDS_MAX).collect();
            }
            // The session list shows the title.
            LatestKind::Info => {}
        }
    }

    /// Adds a one-line block.
    fn log_line(&mut self, kind: NoteKind, body: &Value, position: u64) {
        let name = || name_or_default(Viewer::deserialize(body).ok().map(|viewer| viewer.name).as_deref());
        match kind {
            NoteKind::Runtime => {
                if let Ok(body) = RuntimeStatusBody::deserialize(body) {
                    self.runtime_status(&body, position);
                }
            }
            NoteKind::Error => {
                let message = ErrorBody::deserialize(body).map(|body| line(&body.message)).unwrap_or_default();
                self.note(true, message, position);
            }
            NoteKind::ClientJoined => self.note(false, format!("{} joined", name()), position),
            NoteKind::ClientLeft => self.note(false, format!("{} left", name()), position),
            NoteKind::ClientServed | NoteKind::Hook | NoteKind::Raw | NoteKind::Malformed(_) => {
                self.note(false, sanitize::line(&format!("{} {body}", kind.kind().as_str()), 300), position);
            }
        }
    }

    /// Adds a block with the state of the runtime.
    fn runtime_status(&mut self, body: &RuntimeStatusBody, position: u64) {
        let (status, message) = (line(&body.status), optional_line(body.message.as_deref()));
        let bad = matches!(&*body.status, "exited" | "stuck" | "unasked");
        let exit = body.exit.as_ref().filter(|_| bad);
        let stderr = exit.map(|exit| sanitize::text(&exit.stderr_tail)).unwrap_or_default();
        let parts = [message, stderr].into_iter().filter(|text| !text.trim().is_empty());
        let text = parts.collect::<Vec<_>>().join("\n");
        let text = if text.is_empty() { String::new() } else { format!(": {text}") };
        let (text, attached) = (format!("runtime {status}{text}"), body.status == "attached");
        self.push(BlockBody::Note { bad, text, attached }, position);
    }

    fn push(&mut self, body: BlockBody, position: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        let above = self.assembly.above.clone();
        let block = Block { id, position, body, above, toggled: false, drawn: RefCell::default() };
        self.bounds.bytes += block.bytes();
        self.blocks.push_back(block);
        if !self.scroll_position.follow {
            self.unseen += 1;
        }
        if self.bounds.applied && (self.blocks.len() > BLOCKS_MAX || self.bounds.bytes > BYTES_MAX) {
            self.evict();
        }
        id
    }

    /// Drops the oldest blocks: whole events, so that the rest begins where the previous page ends.
    fn evict(&mut self) {
        let last = self.blocks.len().saturating_sub(1);
        let (mut dropped, mut at) = (0, None);
        while dropped < last {
            let is_event_start = self.blocks.front().map(|block| block.position) != at;
            if dropped >= PAGE && is_event_start {
                break;
            }
            let Some(block) = self.blocks.pop_front() else { break };
            self.bounds.bytes -= block.bytes().min(self.bounds.bytes);
            at = Some(block.position);
            dropped += 1;
        }
        let Some((first, position)) = self.blocks.front().map(|block| (block.id, block.position)) else { return };
        self.history.previous = self.cursor.as_ref().map(|cursor| format!("{}:{position}", cursor.epoch));
        self.tools.retain(|_, id| *id >= first);
        self.reads.drop_before(first);
        // A scroll position in the dropped blocks moves to the first remaining block.
        if !self.scroll_position.follow && self.history.older.is_none() && self.scroll_position.top.0 < first {
            self.scroll_position.top = (first, 0);
        }
    }

    fn note(&mut self, bad: bool, text: String, position: u64) {
        self.push(BlockBody::Note { bad, text, attached: false }, position);
    }

    fn add_text(&mut self, who: Role, target: ChunkTarget, text: &str, position: u64) {
        let first = target.first(Position(position));
        let last =
            matches!(&self.blocks.back(), Some(Block { body: BlockBody::Text { who: last, .. }, .. }) if *last == who);
        if target == ChunkTarget::New || !last || self.assembly.message != Some(first) {
            // After another block, a message continues in a new block.
            self.push(BlockBody::Text { who, text: String::new(), continued: false }, position);
        }
        self.assembly.message = Some(first);
        if who == Role::User {
            self.remember(text, target == ChunkTarget::New);
        }
        let mut rest = text;
        loop {
            let continued = match self.blocks.back_mut() {
                Some(Block { body: BlockBody::Text { who: same, text: add_text, .. }, drawn, .. }) if *same == who => {
                    let space = MESSAGE_MAX.saturating_sub(add_text.len());
                    let mut cut = rest.len().min(space);
                    while !rest.is_char_boundary(cut) {
                        cut -= 1;
                    }
                    add_text.push_str(&rest[..cut]);
                    self.bounds.bytes += cut;
                    *drawn.borrow_mut() = None;
                    rest = &rest[cut..];
                    if add_text.len() >= MESSAGE_SPLIT && who == Role::Agent && rest.is_empty() {
                        // Between two paragraphs, outside of code, a block may end without changing the look.
                        if add_text.ends_with("\n\n") && add_text.matches("```").count() % 2 == 0 {
                            self.push(BlockBody::Text { who, text: String::new(), continued: true }, position);
                        }
                        return;
                    }
                    if rest.is_empty() {
                        return;
                    }
                    true
                }
                _ => false,
            };
            self.push(BlockBody::Text { who, text: String::new(), continued }, position);
        }
    }

    fn remember(&mut self, text: &str, new: bool) {
        if text.len() > MESSAGE_SPLIT {
            return;
        }
        match self.prompts.back_mut().filter(|_| !new) {
            Some(last) => last.push_str(text),
            None => self.prompts.push_back(text.to_owned()),
        }
        if self.prompts.len() > PROMPTS_MAX {
            self.prompts.pop_front();
        }
    }

    fn tool(&mut self, key: String, update: Map<String, Value>, (at, last): (i64, i64), position: u64) {
        let id = match self.tools.get(&key) {
            Some(id) => *id,
            None => {
                let parts = CallParts::new(&key);
                let call = ToolCall::default();
                let id = self.push(BlockBody::Tool { call, from: at, until: 0, requested: false, parts }, position);
                self.tools.insert(key, id);
                id
            }
        };
        let above = self.assembly.above.clone();
        let (end, paged) = self.assembly.applied;
        let Some(block) = self.block_mut(id) else { return };
        let before = block.bytes();
        block.above = above;
        if let BlockBody::Tool { call, until, parts, .. } = &mut block.body {
            parts.add(&update, (position, end.max(position)), paged);
            call.update(update);
            if call.is_finished() && *until == 0 {
                *until = last;
            }
        }
        *block.drawn.borrow_mut() = None;
        let after = block.bytes();
        self.bounds.bytes = (self.bounds.bytes + after).saturating_sub(before);
        self.regroup(id);
    }

    fn plan(&mut self, entries: Vec<PlanEntry>, position: u64) {
        // The plan of this run is updated in its place.
        let run = self.blocks.iter_mut().rev().take_while(|block| !matches!(block.body, BlockBody::Ended { .. }));
        for block in run {
            if let BlockBody::Plan(old) = &mut block.body {
                *old = entries;
                *block.drawn.borrow_mut() = None;
                return;
            }
        }
        self.push(BlockBody::Plan(entries), position);
    }

    // === older pages

    /// The `before` of the page to fetch, so that the user can scroll further up, or to a place that is not loaded.
    pub(crate) fn due_page(&mut self) -> Option<String> {
        if self.history.fetching {
            return None;
        }
        if let Some(position) = self.history.jump.take() {
            let epoch = &self.cursor.as_ref()?.epoch;
            return Some(format!("{epoch}:{}", position.saturating_add(1)));
        }
        if self.scroll_position.follow {
            return None;
        }
        let first = self.list().front()?;
        if self.scroll_position.top.0 != first.id || self.scroll_position.top.1 > 0 {
            return None;
        }
        self.history.older.as_ref().map_or(&self.history.previous, |older| &older.previous).clone()
    }

    /// Shows an older page, from its end.
    pub(crate) fn page(&mut self, page: &Page, height: usize, cx: &DrawContext<'_>) {
        // A user who scrolled elsewhere meanwhile stays there.
        if !std::mem::take(&mut self.history.fetching) {
            return;
        }
        let mut other = Self::new(&self.session);
        (other.bounds.applied, other.drawn.follows) = (false, false);
        // Their ids are below all others.
        other.next = 0;
        page.events.iter().for_each(|event| other.page_event(event));
        if other.blocks.is_empty() {
            // Nothing in this page is visible, but the page before it may be.
            let previous = self.history.older.as_mut().map_or(&mut self.history.previous, |older| &mut older.previous);
            previous.clone_from(&page.end.previous);
            return;
        }
        for (id, known) in other.asks {
            self.asks.entry(id).or_insert(known);
        }
        self.history.fetched += 1;
        let base = u64::MAX - 1_000_000 * (self.history.fetched % 1000 + 1);
        for block in &mut other.blocks {
            block.id += base;
        }
        let reads = other.reads.shifted(base);
        self.history.older = Some(OlderPage { blocks: other.blocks, reads, previous: page.end.previous.clone() });
        self.end(height, cx);
        self.scroll_position.follow = false;
    }

    /// Returns whether an older page is shown.
    pub(crate) fn is_older(&self) -> bool {
        self.history.older.is_some()
    }

    /// Scrolls to the newest line.
    pub(crate) fn go_to_newest(&mut self) {
        self.history.older = None;
        self.history.fetching = false;
        self.scroll_position.follow = true;
        self.scroll_position.chosen = None;
        self.unseen = 0;
    }

    fn list(&self) -> &VecDeque<Block> {
        self.history.older.as_ref().map_or(&self.blocks, |older| &older.blocks)
    }

    fn at(&self, id: u64) -> usize {
        let list = self.list();
        let first = list.front().map_or(0, |block| block.id);
        let at = id.checked_sub(first).and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
        at.min(list.len().saturating_sub(1))
    }

    // === moving

    /// The scroll position at which the last line is at the bottom.
    fn end_top(&self, height: usize, cx: &DrawContext<'_>) -> (usize, usize) {
        let mut left = height;
        for at in (0..self.list().len()).rev() {
            let lines = self.lines(at, cx).len();
            if lines >= left {
                return (at, lines - left);
            }
            left -= lines;
        }
        (0, 0)
    }

    fn top(&self, cx: &DrawContext<'_>) -> (usize, usize) {
        let end = self.end_top(cx.height, cx);
        if self.scroll_position.follow {
            return end;
        }
        let at = self.at(self.scroll_position.top.0);
        let offset = self.scroll_position.top.1.min(self.lines_of(at, cx).saturating_sub(1));
        (at, offset).min(end)
    }

    fn lines_of(&self, at: usize, cx: &DrawContext<'_>) -> usize {
        if at < self.list().len() { self.lines(at, cx).len() } else { 0 }
    }

    fn end(&mut self, height: usize, cx: &DrawContext<'_>) {
        let (at, offset) = self.end_top(height, cx);
        self.scroll_position.top = (self.list().get(at).map_or(0, |block| block.id), offset);
    }

    /// Scrolls by lines; negative is up.
    pub(crate) fn scroll(&mut self, by: i64, cx: &DrawContext<'_>) {
        if self.list().is_empty() {
            return;
        }
        let (mut at, mut offset) = self.top(cx);
        let mut left = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        if by < 0 {
            while left > 0 {
                if offset >= left {
                    (offset, left) = (offset - left, 0);
                } else if at == 0 {
                    (offset, left) = (0, 0);
                } else {
                    left -= offset;
                    at -= 1;
                    offset = self.lines_of(at, cx);
                }
            }
            self.scroll_position.follow = false;
        } else {
            let end = self.end_top(cx.height, cx);
            if self.scroll_position.follow {
                return;
            }
            let was_end = (at, offset) >= end;
            while left > 0 && (at, offset) < end {
                let lines = self.lines_of(at, cx);
                if offset + left < lines {
                    (offset, left) = (offset + left, 0);
                } else {
                    left -= (lines - offset).min(left);
                    (at, offset) = (at + 1, 0);
                }
            }
            (at, offset) = (at, offset).min(end);
            if (at, offset) >= end {
                match &self.history.older {
                    None => return self.go_to_newest(),
                    // The newest part follows an older page.
                    Some(_) if was_end => return self.after_older(),
                    Some(_) => {}
                }
            }
        }
        self.scroll_position.top = (self.list().get(at).map_or(0, |block| block.id), offset);
    }

    /// Scrolls from an older page to the start of the newest part. (Pages between are reached from below.)
    fn after_older(&mut self) {
        self.history.older = None;
        self.scroll_position.top = (self.blocks.front().map_or(0, |block| block.id), 0);
    }

    /// Restores a scroll position; a page that is being fetched for another one has no effect.
    pub(crate) fn put_back(&mut self, at: ScrollPosition) {
        self.history.fetching = false;
        self.scroll_position = at;
    }

    /// Scrolls to the first loaded line.
    pub(crate) fn go_to_start(&mut self) {
        self.scroll_position.follow = false;
        self.scroll_position.top = (self.list().front().map_or(0, |block| block.id), 0);
    }

    /// Scrolls to the block at a place of the log; returns `true` if it is loaded.
    pub(crate) fn seek(&mut self, position: u64) -> bool {
        self.history.older = None;
        let Some(at) = self.blocks.iter().rposition(|block| block.position <= position) else {
            // An event older than the first block is fetched, if the gateway has it.
            self.history.jump = self.history.previous.as_ref().map(|_| position);
            return self.history.jump.is_some();
        };
        let id = self.blocks[at].id;
        if self.is_absorbed(at) {
            self.reads.toggle(id);
        }
        self.scroll_position = ScrollPosition { follow: false, top: (id, 0), chosen: Some(id) };
        true
    }

    /// Selects the next foldable block, up or down.
    pub(crate) fn choose(&mut self, down: bool, cx: &DrawContext<'_>) {
        let list = self.list();
        let now = self.scroll_position.chosen.map(|id| self.at(id));
        let (top, _) = self.top(cx);
        let found = if down {
            let from = now.map_or(top, |at| at + 1);
            (from..list.len()).find(|at| self.can_fold(*at))
        } else {
            let from = now.unwrap_or(list.len());
            (0..from).rev().find(|at| self.can_fold(*at))
        };
        let Some(at) = found else { return };
        let id = list[at].id;
        self.scroll_position.chosen = Some(id);
        if !self.visible(at, cx) {
            self.scroll_position.follow = false;
            self.scroll_position.top = (id, 0);
        }
    }

    /// The source text of the selected block, or of the agent's last message.
    pub(crate) fn copied(&self) -> Option<String> {
        let list = self.list();
        let block = match self.scroll_position.chosen {
            Some(id) => list.get(self.at(id))?,
            None => list.iter().rev().find(
                |block| matches!(&block.body, BlockBody::Text { who: Role::Agent, text, .. } if !text.is_empty()),
            )?,
        };
        if let Some(group) = self.folded_at(self.at(block.id)) {
            let lines = self.group_calls(&group).map(|call| sanitize::line(call.title(), FIELD));
            return Some(lines.collect::<Vec<_>>().join("\n"));
        }
        Some(match &block.body {
            BlockBody::Text { text, .. } | BlockBody::Note { text, .. } => text.clone(),
            BlockBody::Tool { call, parts: whole, .. } => {
                let mut all = format!("**{}**\n", sanitize::line(call.title(), FIELD));
                if whole.left_out > 0 {
                    all.push_str(&format!("\n({} are left out here)\n", image::size_text(whole.left_out)));
                }
                for part in parts(call) {
                    let (name, text) = match part {
                        ToolPart::Output(text) => ("", text.to_owned()),
                        ToolPart::Other(text) => ("", text),
                        ToolPart::Diff { path, old, new, .. } => {
                            let diff = similar::TextDiff::from_lines(old, new);
                            ("diff", diff.unified_diff().header(&path, &path).to_string())
                        }
                    };
                    all.push_str(&format!("\n````{name}\n{text}\n````\n"));
                }
                all
            }
            BlockBody::Surface(name) => self.surfaces.get(name)?.text(COPIED_COLUMNS),
            BlockBody::Plan(_) | BlockBody::Request(_) | BlockBody::Ended { .. } => return None,
        })
    }
}

fn request_view(request: Request) -> Option<RequestView> {
    RequestView::new(request, Answerer::UNLIMITED)
}

/// The sanitized name of a device, or `somebody`.
fn name_or_default(name: Option<&str>) -> String {
    Some(optional_line(name)).filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}

/// The body of an event as a JSON value: most bodies are the agents' own.
fn json_value(body: &RawValue) -> Value {
    serde_json::from_str(body.get()).unwrap_or_default()
}
