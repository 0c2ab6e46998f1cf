//! Translates events of the log into Codelia's. Pure. One file: a table of kinds, and the state between them.
//!
//! A Codelia runtime's own events pass byte for byte. All others become events that its terminal UI can draw:
//! - It draws every `text` and every `reasoning` as a block of its own, so chunks are joined up to the end of a paragraph; the joined
//!   pieces are the message, byte for byte.
//! - It does not draw a `final` that repeats the last `text`: the translator sends one to mark the end.
//! - Prompts of other users are sent as `hidden_user_message`, as in its history.
//! - It has no surfaces: a surface is drawn as a finished call of a tool with its text as the result, and again at the end of a run that
//!   changed it.
//! - It has no event for the gateway's notices. A `tool_call` of a tool `plexus` without an id is drawn as a plain line.

// Exhaustive over the kinds: a new kind does not compile until it is handled here.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plexus_protocol::transcript::{
    Content, EntryBody, LatestKind, NoteKind, Outcome, PlanEntry, Role, ToolCall, ToolContent, context_left_percent,
    current_mode,
};
use plexus_protocol::{ErrorBody, Request, RunBody, RunStatus, RuntimeStatusBody};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use plexus_protocol::Timestamp;
use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::text::clean;
use plexus_protocol::ui_protocol::{self, EventNumbers, Members, RuntimeNotification};
use plexus_surfaces::{Change, Followed, SurfaceFollower};

/// Maximum number of runs that are known to be this client's own; an older one's prompt would be shown as another client's.
const OWN_MAX: usize = 256;
/// Maximum number of runs whose end is stored, for late cancellations; an older one is reported as not found.
const ENDS_MAX: usize = 256;
/// Length from which a paragraph is sent up to its last sentence, in bytes.
const SENTENCE_SPLIT_MIN: usize = 800;
/// Approximate length of the pieces of a text without a paragraph end (a block of code), in bytes.
const PIECE_MAX: usize = 32 << 10;
/// Maximum number of running tool calls; beyond it the oldest ones are dropped, and their ends shown without details.
const TOOLS_MAX: usize = 256;
/// Maximum length of a text that is compared for a diff, in bytes; a longer one is only named.
const DIFF_MAX: usize = 256 << 10;
/// Maximum length of a notice's line: the terminal UI truncates at 160 characters.
const LINE_MAX: usize = 150;
/// Number of context lines in a diff.
const CONTEXT: usize = 3;

/// Maximum size of the followed surfaces in memory, in bytes; changes of a larger one are not shown.
const SURFACES_MAX: usize = 8 << 20;
/// Width of a surface's text, in columns.
const SURFACE_COLUMNS: usize = 76;

/// A message for the terminal UI.
#[derive(Debug)]
pub(super) enum UiMessage {
    /// An `agent.event`: its `event` as JSON, and the other members of a runtime of this protocol.
    Event { run: String, event: String, own: Option<Members>, number: Number },
    /// A `run.status`, with the further members that the runtime sent.
    Status { run: String, status: &'static str, message: Option<String>, more: Members },
    /// A line for the log.
    Log(String),
    /// Another notification: method and params, as JSON.
    Notify { method: &'static str, params: String },
    /// A question that was opened.
    RequestOpened(Box<Request>),
    /// A question that was closed.
    RequestResolved(Outcome),
}

/// The number of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// The next number among the events of its run.
    Next,
    /// The next number, for the entry of a user's message.
    User,
    /// The number that was assigned.
    Fixed(i64),
}

/// The number of an event that is not in the log, but is a notice of the gateway to this client.
const NOTICE: Number = Number::Fixed(-1);

/// Text joined from chunks.
#[derive(Default)]
struct Piece {
    thought: bool,
    message: Option<String>,
    parent: Option<String>,
    text: String,
    /// The start of the unfinished line.
    line: usize,
    fence: bool,
    /// `true` if there is text other than white space before `line`.
    has_text: bool,
    /// `true` if the paragraph is a table, a list or code, which is not split at sentences.
    structured: bool,
}

/// A running tool call.
#[derive(Default)]
struct Tool {
    /// The name under which the call was announced.
    name: String,
    call: ToolCall,
}

/// The surfaces of the session.
struct Surfaces {
    follower: SurfaceFollower,
    /// The entries that changed since they were last shown.
    changed: BTreeSet<String>,
}

impl Default for Surfaces {
    fn default() -> Self {
        Self { follower: SurfaceFollower::new(SURFACES_MAX), changed: BTreeSet::new() }
    }
}

/// Events beyond the protocol's specification that the client supports.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Extras {
    /// Codelia's later events, which its terminal UI draws: the change that a question is about (`permission.*`), the cost of a run
    /// (`run.diagnostics`), and the gateway's notices as tool calls.
    #[serde(default, rename = "supports_permission_preflight_events")]
    pub(super) terminal: bool,
    /// The gateway's own kinds, as `plexus.KIND`.
    #[serde(default, rename = "supports_gateway_events")]
    pub(super) gateway: bool,
}

/// Translates the events of a session.
#[derive(Default)]
pub(super) struct EventTranslator {
    extras: Extras,
    mark_own: VecDeque<String>,
    /// Ended runs, with their final status.
    ends: VecDeque<(String, &'static str)>,
    run: Option<String>,
    awaiting: bool,
    piece: Piece,
    last: String,
    finished: bool,
    tools: BTreeMap<String, Tool>,
    plans: u64,
    surfaces: Surfaces,
    numbers: EventNumbers,
    /// The time of the last event.
    at: Option<Timestamp>,
}

impl EventTranslator {
    /// Assigns numbers to events, and times to generated ones.
    pub(super) fn finish(&mut self, messages: &mut [UiMessage]) {
        for message in messages {
            let UiMessage::Event { run, event, own, number } = message else { continue };
            *number = Number::Fixed(match number {
                Number::Next => self.numbers.next(run, false),
                Number::User => self.numbers.next(run, true),
                Number::Fixed(given) => *given,
            });
            if let (Some(at), None) = (self.at, own) {
                *event = format!(r#"{{"timestamp":{},{}"#, at.as_millis(), &event[1..]);
            }
        }
    }

    /// Marks a run as this client's own, so that its prompt is not echoed.
    pub(super) fn mark_own(&mut self, run: &str) {
        if self.mark_own.len() >= OWN_MAX {
            self.mark_own.pop_front();
        }
        self.mark_own.push_back(run.to_owned());
    }

    /// Sets the events beyond the specification.
    pub(super) fn extras(&mut self, extras: Extras) {
        self.extras = extras;
    }

    /// The final status of a run that has ended.
    pub(super) fn status_at_end(&self, run: &str) -> Option<&'static str> {
        self.ends.iter().find(|(known, _)| known == run).map(|(_, end)| *end)
    }

    /// Ends the shown run with an unknown outcome.
    pub(super) fn forget_run(&mut self, out: &mut Vec<UiMessage>) {
        if let Some(run) = self.run.clone() {
            self.flush(&run, out);
            let message = Some("how this run ended is unknown".to_owned());
            self.ended(&run, (RunStatus::Error, message), None, out);
        }
    }

    /// Resets the state for another session.
    pub(super) fn forget(&mut self) {
        let (mark_own, ends) = (std::mem::take(&mut self.mark_own), std::mem::take(&mut self.ends));
        *self = Self { extras: self.extras, mark_own, ends, ..Self::default() };
    }

    fn is_own(&self, run: &str) -> bool {
        self.mark_own.iter().any(|mark_own| mark_own == run)
    }

    /// The current run and its status, as last sent.
    pub(super) fn current_run(&self) -> Option<(&str, &'static str)> {
        let status = self.unfinished_status().as_str();
        self.run.as_deref().map(|run| (run, status))
    }

    const fn unfinished_status(&self) -> RunStatus {
        if self.awaiting { RunStatus::AwaitingUi } else { RunStatus::Running }
    }

    /// Adds a notice of the gateway.
    pub(super) fn notice(&mut self, text: &str, out: &mut Vec<UiMessage>) {
        if !self.extras.terminal {
            // The specification has a message for a run's status; other notices go to the log.
            out.push(match self.current_run() {
                Some((run, now)) => status(run, now, Some(text.to_owned())),
                None => UiMessage::Log(text.to_owned()),
            });
            return;
        }
        let run = self.run.clone().unwrap_or_default();
        self.flush(&run, out);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut rest = line;
            while !rest.is_empty() {
                let limit = rest.char_indices().nth(LINE_MAX).map_or(rest.len(), |(at, _)| at);
                // The line is split between two words, if possible.
                let word = rest[..limit].rfind(' ').map(|at| at + 1).filter(|_| limit < rest.len());
                let (head, tail) = rest.split_at(word.unwrap_or(limit));
                private_event(&run, &json!({ "type": "tool_call", "tool": "plexus", "args": head }), out);
                rest = tail;
            }
        }
    }

    /// Translates an event of the log. With `past`, it is history, without the interim statuses of runs.
    pub(super) fn translate(&mut self, envelope: &EventEnvelope, past: bool) -> Vec<UiMessage> {
        let mut out = Vec::new();
        let run = envelope.run_id.as_str();
        self.at = Some(envelope.at);
        let native = own_message(envelope);
        let Some(native) = self.verbatim(run, native, past, &mut out) else { return out };
        let Some(entry) = envelope.entry() else {
            self.flush(run, &mut out);
            self.forward(envelope, past, &mut out);
            return out;
        };
        // The start of a long run may precede the replayed history.
        let is_output =
            matches!(entry, EntryBody::Message { role: Role::Agent | Role::Thought, .. } | EntryBody::Tool { .. });
        if past && self.run.is_none() && is_output {
            self.begin_text(run);
        }
        if !matches!(entry, EntryBody::Message { role: Role::Agent | Role::Thought, .. }) {
            self.flush(run, &mut out);
        }
        match entry {
            EntryBody::Message { role: Role::User, content, .. } => {
                if past || !self.is_own(run) {
                    let content = content_text(&content);
                    event(run, &json!({ "type": "hidden_user_message", "content": content }), &mut out);
                } else {
                    // The prompt has its number, although it is not echoed.
                    self.numbers.next(run, true);
                }
            }
            EntryBody::Message { role, id, parent, content } => {
                let message = (id, parent);
                self.chunk(run, role == Role::Thought, message, &content_text(&content), &mut out);
            }
            EntryBody::Tool { id, update, .. } => self.tool(run, &id, update, &mut out),
            EntryBody::Plan(entries) => self.plan(run, &entries, &mut out),
            EntryBody::Latest(LatestKind::Usage, body) => {
                if let Some(percent) = context_left_percent(&body) {
                    let params = json!({ "run_id": run, "context_left_percent": percent });
                    out.push(UiMessage::Notify { method: "run.context", params: params.to_string() });
                }
            }
            EntryBody::Latest(LatestKind::Mode, body) => {
                if let Some(mode) = current_mode(&body).filter(|_| !past) {
                    self.notice(&format!("mode: {mode}"), &mut out);
                }
            }
            EntryBody::RunStarted(body) => self.run_started(run, read(body), past, &mut out),
            EntryBody::RunStatus(body) => {
                let status = read(body).map_or(RunStatus::Unknown, |body: RunBody| body.status);
                self.status(run, status, past, &mut out);
            }
            EntryBody::RunEnded(body) => {
                let body = read::<RunBody>(body);
                let end = body.map_or((RunStatus::Unknown, None), |body| (body.status, body.message));
                self.ended(run, end, native.map(|native| native.params), &mut out);
            }
            EntryBody::RequestOpened(body) | EntryBody::RequestUpdated(body) => {
                if let Some(request) = read::<Request>(body) {
                    self.preview(run, request.tool_call_id.as_deref(), &mut out);
                    out.push(UiMessage::RequestOpened(Box::new(request)));
                }
            }
            EntryBody::RequestResolved(body) => {
                if !past && self.extras.gateway {
                    private_event(run, &json!({ "type": "plexus.request_resolved", "event": body }), &mut out);
                }
                out.push(UiMessage::RequestResolved(Outcome::read(&body)));
            }
            EntryBody::Note(NoteKind::Error, body) => {
                let message = read::<ErrorBody>(body).map(|error| error.message);
                let text = message.as_deref().unwrap_or("something went wrong");
                self.notice(&format!("error: {text}"), &mut out);
            }
            EntryBody::Note(NoteKind::Runtime, body) => {
                self.runtime_status(read(body), &mut out);
            }
            EntryBody::Surface { id, body } => {
                self.forward(envelope, past, &mut out);
                self.surface(run, id, body, &mut out);
            }
            EntryBody::Latest(LatestKind::Commands | LatestKind::Options | LatestKind::Info, _)
            | EntryBody::Note(
                NoteKind::ClientJoined
                | NoteKind::ClientLeft
                | NoteKind::ClientServed
                | NoteKind::Hook
                | NoteKind::Raw
                | NoteKind::Malformed(_),
                _,
            ) => {
                self.forward(envelope, past, &mut out);
            }
        }
        out
    }

    fn run_started(&mut self, run: &str, body: Option<RunBody>, past: bool, out: &mut Vec<UiMessage>) {
        self.begin_text(run);
        let by = body.and_then(|body| body.by);
        if let Some(by) = by.filter(|_| !past && !self.is_own(run)) {
            self.notice(&format!("{} prompts:", by.name), out);
        }
        out.push(status(run, RunStatus::Running.as_str(), None));
    }

    fn runtime_status(&mut self, body: Option<RuntimeStatusBody>, out: &mut Vec<UiMessage>) {
        let Some(RuntimeStatusBody { status, message, exit, .. }) = body else { return };
        match message.or_else(|| exit?.reason) {
            Some(reason) => self.notice(&format!("the agent: {status}: {reason}"), out),
            None if status != "attached" => self.notice(&format!("the agent: {status}"), out),
            None => {}
        }
    }

    /// Sends an event without a translation to a client that accepts the gateway's own kinds.
    fn forward(&self, envelope: &EventEnvelope, past: bool, out: &mut Vec<UiMessage>) {
        if !past && self.extras.gateway {
            let kind_name = format!("plexus.{}", envelope.kind);
            private_event(envelope.run_id.as_str(), &json!({ "type": kind_name, "event": envelope.event }), out);
        }
    }

    /// Sends the text joined so far.
    pub(super) fn flush(&mut self, run: &str, out: &mut Vec<UiMessage>) {
        let piece = std::mem::take(&mut self.piece);
        if !piece.text.is_empty() {
            self.send_text(run, piece.thought, &piece.text, out);
        }
    }

    fn send_text(&mut self, run: &str, thought: bool, text: &str, out: &mut Vec<UiMessage>) {
        let kind_name = if thought { "reasoning" } else { "text" };
        event(run, &json!({ "type": kind_name, "content": text }), out);
        if !thought {
            text.clone_into(&mut self.last);
        }
    }

    fn begin_text(&mut self, run: &str) {
        self.run = Some(run.to_owned());
        self.awaiting = false;
        self.finished = false;
        self.last.clear();
        self.tools.clear();
    }

    /// Passes on a message of a runtime of this protocol, unchanged except for the run and the number. Returns the message if the event is
    /// translated like any other; `None` if it has been handled.
    fn verbatim(
        &mut self,
        run: &str,
        native: Option<RuntimeNotification>,
        past: bool,
        out: &mut Vec<UiMessage>,
    ) -> Option<Option<RuntimeNotification>> {
        #[derive(Deserialize)]
        struct Seen {
            #[serde(rename = "type")]
            kind_name: Option<String>,
            content: Option<Value>,
        }
        let Some(mut native) = native else { return Some(None) };
        match native.method.as_str() {
            "agent.event" => {
                let Some(event) = native.params.remove("event") else { return Some(Some(native)) };
                self.flush(run, out);
                let mut number = Number::Next;
                if let Ok(seen) = serde_json::from_str::<Seen>(event.get()) {
                    match seen.kind_name.as_deref() {
                        Some("final") => self.finished = true,
                        Some("text") => self.last = seen.content.as_ref().and_then(Value::as_str).unwrap_or("").into(),
                        Some("hidden_user_message") => number = Number::User,
                        _ => {}
                    }
                }
                let (event, own) = (event.get().to_owned(), Some(native.params));
                out.push(UiMessage::Event { run: run.to_owned(), event, own, number });
                None
            }
            "run.diagnostics" => {
                if self.extras.terminal {
                    ui_protocol::set(&mut native.params, "run_id", &run);
                    let params = serde_json::to_string(&native.params).unwrap_or_default();
                    out.push(UiMessage::Notify { method: "run.diagnostics", params });
                }
                None
            }
            "run.status" if native.is_status_with_more() => {
                // The last status of a run is sent with its end.
                let is_running = native.text("status").is_some_and(|word| {
                    [RunStatus::Running, RunStatus::AwaitingUi].iter().any(|status| status.as_str() == word)
                });
                if !is_running {
                    return Some(Some(native));
                }
                if !past {
                    ui_protocol::set(&mut native.params, "run_id", &run);
                    let params = serde_json::to_string(&native.params).unwrap_or_default();
                    out.push(UiMessage::Notify { method: "run.status", params });
                }
                None
            }
            _ => Some(Some(native)),
        }
    }

    fn chunk(
        &mut self,
        run: &str,
        thought: bool,
        (message, parent): (Option<String>, Option<String>),
        text: &str,
        out: &mut Vec<UiMessage>,
    ) {
        let other = matches!((&message, &self.piece.message), (Some(a), Some(b)) if a != b);
        if other || self.piece.thought != thought || self.piece.parent != parent {
            self.flush(run, out);
        }
        self.piece.thought = thought;
        (self.piece.message, self.piece.parent) = (message, parent);
        let from = self.piece.text.len();
        self.piece.text.push_str(text);
        for chunk in self.piece.cut(from) {
            self.send_text(run, thought, &chunk, out);
        }
    }

    fn tool(&mut self, run: &str, id: &str, update: Map<String, Value>, out: &mut Vec<UiMessage>) {
        let new = !self.tools.contains_key(id);
        if new && self.tools.len() >= TOOLS_MAX {
            self.tools.pop_first();
        }
        let tool = self.tools.entry(id.to_owned()).or_default();
        tool.call.update(update);
        let not_reported = tool.call.status() == "not_reported";
        if new && !not_reported {
            let (name, args) = tool.name_and_args();
            tool.name.clone_from(&name);
            let call_event = json!({
                "type": "tool_call", "tool": name, "args": args, "tool_call_id": id, "display_name": tool.call.title(),
            });
            event(run, &call_event, out);
        }
        if tool.call.is_finished() {
            // The protocol has two outcomes: a call without an end has neither, and its text states that.
            let failed = tool.call.members().get("status").is_some_and(|status| status == "failed");
            let result = tool.call.reason().map_or_else(|| tool.result(failed), str::to_owned);
            let name = if tool.name.is_empty() { "tool" } else { tool.name.as_str() };
            let result_event = json!({
                "type": "tool_result", "tool": name, "result": result, "is_error": failed, "tool_call_id": id,
            });
            event(run, &result_event, out);
            self.tools.remove(id);
        }
    }

    /// Shows the change of a tool call before the question about it.
    fn preview(&mut self, run: &str, id: Option<&str>, out: &mut Vec<UiMessage>) {
        let Some((id, tool)) = id.and_then(|id| Some((id, self.tools.get(id)?))) else { return };
        if !self.extras.terminal {
            return;
        }
        let (diff, truncated) = tool.diff();
        if diff.is_empty() && !truncated {
            return;
        }
        let path = tool.path();
        let preview = json!({
            "type": "permission.preview", "tool": tool.name, "tool_call_id": id, "file_path": path, "diff": diff,
            "truncated": truncated,
        });
        event(run, &preview, out);
        event(run, &json!({ "type": "permission.ready", "tool": tool.name, "tool_call_id": id }), out);
    }

    fn plan(&mut self, run: &str, entries: &[PlanEntry], out: &mut Vec<UiMessage>) {
        self.plans += 1;
        let id = format!("plan-{}", self.plans);
        let mut text = String::from("Todo plan:");
        for (n, entry) in entries.iter().enumerate() {
            let mark = match entry.status.as_str() {
                "completed" => 'x',
                "in_progress" => '>',
                _ => ' ',
            };
            let entry_text = entry.content.replace('\n', " ");
            text.push_str(&format!("\n{}. [{mark}] {entry_text}", n + 1));
        }
        event(run, &json!({ "type": "tool_call", "tool": "todo_read", "args": {}, "tool_call_id": id }), out);
        let read = json!({
            "type": "tool_result", "tool": "todo_read", "result": text, "is_error": false, "tool_call_id": id,
        });
        event(run, &read, out);
    }

    fn surface(&mut self, run: &str, name: String, body: Value, out: &mut Vec<UiMessage>) {
        let Some(change) = read::<Change>(body) else { return };
        match self.surfaces.follower.apply(&change) {
            Followed::Changed if change.base.is_none() => self.show_surface(run, &name, out),
            Followed::Changed => drop(self.surfaces.changed.insert(name)),
            Followed::Closed(_) | Followed::Missing => drop(self.surfaces.changed.remove(&name)),
            Followed::Known => {}
        }
    }

    fn show_surface(&mut self, run: &str, name: &str, out: &mut Vec<UiMessage>) {
        self.surfaces.changed.remove(name);
        let Some(surface) = self.surfaces.follower.get(name) else { return };
        let title = clean(surface.title().unwrap_or(name)).replace(['\n', '\t'], " ");
        let (tool, id) = (format!("Surface: {title}"), format!("surface-{name}-{}", surface.rev()));
        event(run, &json!({ "type": "tool_call", "tool": tool, "args": "", "tool_call_id": id }), out);
        let text = surface.text(SURFACE_COLUMNS);
        let result =
            json!({ "type": "tool_result", "tool": tool, "result": text, "is_error": false, "tool_call_id": id });
        event(run, &result, out);
    }

    fn status(&mut self, run: &str, reported: RunStatus, past: bool, out: &mut Vec<UiMessage>) {
        match reported {
            RunStatus::Queued => {
                if self.is_own(run) && !past {
                    self.notice("queued: it starts when the previous run has ended", out);
                }
                return;
            }
            RunStatus::AwaitingUi => self.awaiting = true,
            RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Error
            | RunStatus::Cancelled
            | RunStatus::Unknown => self.awaiting = false,
        }
        if self.run.as_deref() != Some(run) {
            let awaiting = self.awaiting;
            self.begin_text(run);
            self.awaiting = awaiting;
        }
        out.push(status(run, self.unfinished_status().as_str(), None));
    }

    fn ended(
        &mut self,
        run: &str,
        (end, message): (RunStatus, Option<String>),
        own: Option<Members>,
        out: &mut Vec<UiMessage>,
    ) {
        for name in std::mem::take(&mut self.surfaces.changed) {
            self.show_surface(run, &name, out);
        }
        let current = self.run.as_deref() == Some(run);
        let end = match end {
            RunStatus::Cancelled | RunStatus::Error => end.as_str(),
            RunStatus::Queued
            | RunStatus::Running
            | RunStatus::AwaitingUi
            | RunStatus::Completed
            | RunStatus::Unknown => RunStatus::Completed.as_str(),
        };
        // A cancelled or failed run has no `final`; neither has one that never started.
        if end == RunStatus::Completed.as_str() && current && !self.finished {
            event(run, &json!({ "type": "final", "content": self.last }), out);
        }
        let failed = || "the agent gave no reason".to_owned();
        let message = if end == RunStatus::Error.as_str() { message.or_else(|| Some(failed())) } else { message };
        let more = own.unwrap_or_default();
        out.push(UiMessage::Status { run: run.into(), status: end, message, more });
        if self.ends.len() >= ENDS_MAX {
            self.ends.pop_front();
        }
        self.ends.push_back((run.to_owned(), end));
        if current {
            self.run = None;
            self.tools.clear();
            self.last.clear();
            self.awaiting = false;
        } else if let Some((run, now)) = self.current_run() {
            // The terminal UI interprets any end as the end of the run that it shows.
            out.push(status(run, now, None));
        }
    }
}

impl Piece {
    /// Splits off the finished pieces; the text from `new` on is new.
    fn cut(&mut self, new: usize) -> Vec<String> {
        let mut pieces = Vec::new();
        while let Some(at) = self.text.as_bytes()[self.line..].iter().position(|byte| *byte == b'\n') {
            let next = self.line + at + 1;
            let line = self.text[self.line..next].trim();
            if line.starts_with("```") || line.starts_with("~~~") {
                self.fence = !self.fence;
                self.structured = true;
            }
            let result_event = line.is_empty() && !self.fence && self.has_text;
            self.structured |=
                line.starts_with(['|', '-', '*', '#', '>']) || line.starts_with(|c: char| c.is_ascii_digit());
            self.has_text |= !line.is_empty();
            self.line = next;
            if result_event || self.line >= PIECE_MAX {
                pieces.push(self.take(next));
            }
        }
        if self.text.len() >= PIECE_MAX {
            pieces.push(self.take(self.text.len()));
        } else if self.text.len() >= SENTENCE_SPLIT_MIN
            && self.line == 0
            && self.text.trim_start().starts_with(char::is_alphabetic)
        {
            let from =
                self.text.floor_char_boundary(new.saturating_sub(pieces.iter().map(String::len).sum::<usize>() + 2));
            if let Some(at) = self.text.get(from..).and_then(|tail| tail.rfind(". ")) {
                pieces.push(self.take(from + at + 2));
            }
        }
        pieces
    }

    fn take(&mut self, at: usize) -> String {
        let rest = self.text.split_off(at);
        self.line = self.line.saturating_sub(at);
        (self.has_text, self.structured) = (false, self.fence);
        std::mem::replace(&mut self.text, rest)
    }
}

impl Tool {
    /// The diffs of the call: path, old text, new text.
    fn diffs(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.call.content().filter_map(|content| match content {
            ToolContent::Diff { path, old, new } => Some((path, old.unwrap_or_default(), new)),
            ToolContent::Text(_) | ToolContent::Block(_) | ToolContent::Terminal(_) | ToolContent::Other(_) => None,
        })
    }

    /// The first file that the call changes.
    fn path(&self) -> Option<&str> {
        self.diffs().next().map(|(path, ..)| path)
    }

    /// The text content, or else the raw output.
    fn output(&self) -> String {
        let mut output = String::new();
        for content in self.call.content() {
            match content {
                ToolContent::Text(text) | ToolContent::Terminal(Some(text)) => output.push_str(text),
                ToolContent::Block(block) => output.push_str(&content_text(&Content::Block(block.clone()))),
                ToolContent::Diff { .. } | ToolContent::Terminal(None) | ToolContent::Other(_) => {}
            }
        }
        match self.call.raw_output() {
            Some(raw) if output.is_empty() => raw.as_str().map_or_else(|| raw.to_string(), str::to_owned),
            _ => output,
        }
    }

    /// The tool's name and arguments in the form that the terminal UI draws best.
    fn name_and_args(&self) -> (String, Value) {
        let input = self.call.input().unwrap_or(&Value::Null);
        let args = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str());
        let path = || args(&["file_path", "path", "filePath", "abs_path"]).or(self.path());
        let title = || self.call.title().lines().next().unwrap_or_default().to_owned();
        match self.call.kind() {
            "execute" => {
                let arguments = input["command"]
                    .as_array()
                    .map(|arguments| arguments.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
                let command = arguments.or_else(|| args(&["command", "cmd"]).map(str::to_owned)).unwrap_or_else(title);
                ("bash".into(), json!({ "command": command }))
            }
            "read" if path().is_some() => ("read".into(), json!({ "file_path": path() })),
            "edit" | "delete" | "move" if path().is_some() => ("edit".into(), json!({ "file_path": path() })),
            "fetch" if args(&["url"]).is_some() => ("webfetch".into(), json!({ "url": args(&["url"]) })),
            kind => {
                let name = if self.call.title().is_empty() { kind.to_owned() } else { title() };
                let name = if name.is_empty() { "tool".to_owned() } else { name };
                (name, if input.is_null() { "".into() } else { input.clone() })
            }
        }
    }

    fn result(&self, failed: bool) -> String {
        let (diff, truncated) = self.diff();
        if self.name == "edit" && !diff.is_empty() && !failed {
            let path = self.path().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            return json!({ "summary": name, "diff": diff, "file_path": path, "truncated": truncated }).to_string();
        }
        let output = self.output();
        if output.is_empty() && !failed { "(no output)".into() } else { output }
    }

    /// Joins all changes into one unified diff; also returns whether some were too long to compare.
    fn diff(&self) -> (String, bool) {
        let (mut all, mut truncated) = (String::new(), false);
        for (path, old, new) in self.diffs() {
            if old.len() + new.len() > DIFF_MAX {
                truncated = true;
            } else {
                all.push_str(&unified(path, old, new));
            }
        }
        (all, truncated)
    }
}

/// Makes a unified diff with one hunk: from the first line that differs to the last.
pub(super) fn unified(path: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let limit = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(limit).take_while(|(a, b)| a == b).count();
    if same == old.len() && same == new.len() {
        return String::new();
    }
    let from = same.saturating_sub(CONTEXT);
    let after = tail.min(CONTEXT);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let count = |end: usize| end + after - from;
    let start = |end: usize| if count(end) == 0 { from } else { from + 1 };
    let path = path.trim_start_matches('/');
    let mut diff = format!("--- a/{path}\n+++ b/{path}\n");
    diff.push_str(&format!("@@ -{},{} +{},{} @@\n", start(old_end), count(old_end), start(new_end), count(new_end)));
    let mut put = |mark: char, lines: &[&str]| {
        for line in lines {
            diff.push(mark);
            diff.push_str(line);
            diff.push('\n');
        }
    };
    put(' ', &old[from..same]);
    put('-', &old[same..old_end]);
    put('+', &new[same..new_end]);
    put(' ', &old[old_end..old_end + after]);
    diff
}

/// Sends an agent event of the log.
fn event(run: &str, event: &Value, out: &mut Vec<UiMessage>) {
    let number = if event["type"] == "hidden_user_message" { Number::User } else { Number::Next };
    out.push(UiMessage::Event { run: run.to_owned(), event: event.to_string(), own: None, number });
}

/// Sends an agent event to this client alone.
pub(super) fn private_event(run: &str, event: &Value, out: &mut Vec<UiMessage>) {
    out.push(UiMessage::Event { run: run.to_owned(), event: event.to_string(), own: None, number: NOTICE });
}

fn status(run: &str, status: &'static str, message: Option<String>) -> UiMessage {
    UiMessage::Status { run: run.to_owned(), status, message, more: Members::new() }
}

/// The message of a runtime of this protocol that contained an event. An error about a message precedes that message.
fn own_message(envelope: &EventEnvelope) -> Option<RuntimeNotification> {
    let native =
        envelope.native.as_deref().filter(|_| envelope.meta.dialect == "codelia" && envelope.kind != "error")?;
    RuntimeNotification::read(native.get().as_bytes())
}

/// The text of a content block; other content is named.
fn content_text(content: &Content) -> String {
    let block = match content {
        Content::Text(text) => return text.clone(),
        Content::Block(block) => block,
    };
    let uri = block["uri"].as_str().or(block["resource"]["uri"].as_str());
    uri.map_or_else(|| format!("[{}]", block["type"].as_str().unwrap_or("content")), str::to_owned)
}

/// Reads a body; `None` if only a newer gateway has its form.
fn read<T: DeserializeOwned>(body: Value) -> Option<T> {
    serde_json::from_value(body).ok()
}
