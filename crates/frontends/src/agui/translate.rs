//! Translates a session's log into AG-UI events. Pure. For any log, the events have the order and pairing that `verifyEvents` of
//! `@ag-ui/client` requires.
//!
//! Identifiers come from positions in the log (`m_` a message, `t_` a tool call, `c_` the message that carries it, `r_` its
//! result, `a_` an activity), so that they are the same for all clients at all times.

// Every event kind needs a decision here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::events::{AgUiEvent, ClientView, Id, Patch, Role, is_gateway_id};
use plexus_protocol::transcript::{ChunkTarget, MessageKey, MessageTracker, ToolContent, parent_from_meta};
use plexus_protocol::{Event, Kind, Position, Request, RequestId, RequestType, Risk, RunId, RunStatus};
use plexus_surfaces::{BASIC_CATALOG, Change, Followed, Surface, SurfaceFollower};

/// The supported version of AG-UI.
pub(super) const PROTOCOL: &str = "1.0";
/// Maximum length of the text in one event, in bytes; a longer one is sent in several.
const PIECE: usize = 1 << 20;
/// Maximum size of an event of the log that is sent with its body, in bytes (except for text), since AG-UI clients abort at 10 MB. The
/// log has the whole event.
const EVENT_MAX: usize = 8 << 20;
/// Maximum length of the result of a tool, in bytes; the activity beside it has the whole result.
const RESULT_MAX: usize = 256 << 10;
/// Maximum length of the name of a tool, in bytes.
const NAME_MAX: usize = 256;
/// Maximum number of tool calls of one run that are remembered. Beyond it ended ones are dropped, and an update of one is a new call.
const TOOLS: usize = 4096;
/// Maximum number of activities of surfaces that are remembered by the agent's own ids. Beyond it all are dropped, and an update of one
/// is a new one.
const SURFACES: usize = 1024;
/// Maximum memory of the surfaces that a translation follows, in bytes; of a larger one only its first state is sent, as text.
const SURFACES_MAX: usize = 2 << 20;
/// Maximum size of a surface that is sent as A2UI, in bytes of JSON: each change sends it again as a whole. A larger one is sent as text.
const A2UI_MAX: usize = 128 << 10;
/// Width of a surface's text, in columns.
const SURFACE_COLUMNS: usize = 80;

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) run_id: RunId,
    pub(super) status: RunStatus,
    pub(super) stop_reason: Option<String>,
    pub(super) message: Option<String>,
}

/// The reason why an AG-UI run ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The agent waits for users.
    Interrupt,
    /// The run ended.
    Ended(End),
    /// No run is in progress.
    Idle,
}

#[derive(Clone)]
struct Tool {
    at: Position,
    name: String,
    /// `true` if `TOOL_CALL_START` was sent to this client.
    started: bool,
    /// `true` if `TOOL_CALL_END` was sent.
    closed: bool,
    /// `true` if `TOOL_CALL_RESULT` was sent.
    finished: bool,
    title: String,
    /// The last text that was sent.
    text: String,
}

impl Tool {
    fn id(&self) -> Id {
        format!("t_{}", self.at).into()
    }
}

/// The translation's state for one client. Its size does not grow with the log.
#[derive(Clone)]
pub(super) struct Translator {
    thread: Id,
    /// The AG-UI run in progress in this stream.
    active: Option<Id>,
    /// `true` if the AG-UI run has events between runs.
    between_runs: bool,
    tracker: MessageTracker,
    /// The last message.
    message: Option<Id>,
    /// The message whose start was sent and whose end was not.
    streaming: Option<(Role, Id)>,
    tools: HashMap<String, Tool>,
    surfaces: SurfaceFollower,
    /// The activity of each surface.
    activities: HashMap<String, Id>,
    /// The open requests, in the order they were opened.
    open: Vec<(RequestId, Arc<Request>)>,
    /// The maximum risk that the client's device may allow.
    limit: Option<Risk>,
    /// The requests that the client has left to the user's computer.
    deferred: Vec<RequestId>,
    run: Option<RunId>,
    /// The part of the run: 1, and one more each time the run continued after its requests.
    part: u32,
    queue: Vec<RunId>,
    /// The end of the last run.
    ended: Option<End>,
    /// Messages of users that were sent to the client ahead of the log.
    ahead: Vec<Id>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(rename = "messageId", borrow)]
    message_id: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

/// The `_meta` that this frontend adds to the content of its prompts, to find them in the log.
#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    plexus: Mark,
}

/// The mark of a prompt in [`Meta`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(super) struct Mark {
    /// The client's id of the message.
    #[serde(default)]
    pub(super) message_id: Option<String>,
}

/// Returns the client's id of the message that a chunk of a user's message belongs to, and the text of the chunk; `None` if it was not
/// sent over this frontend.
pub(super) fn marked_text(body: &[u8]) -> Option<(String, String)> {
    let chunk: Chunk<'_> = serde_json::from_slice(body).ok()?;
    let block: Block<'_> = serde_json::from_str(chunk.content.get()).ok()?;
    let text = block.text.filter(|_| block.kind.as_deref() == Some("text")).unwrap_or_default();
    Some((block.meta?.plexus.message_id?, text.into_owned()))
}

/// Returns the end of a run, from the body of its `run_ended`.
pub(super) fn read_run_end(event: &Event) -> Option<End> {
    #[derive(Deserialize)]
    struct Body {
        status: RunStatus,
        stop_reason: Option<String>,
        message: Option<String>,
    }
    let body: Body = serde_json::from_slice(&event.body).ok()?;
    let Body { status, stop_reason, message } = body;
    Some(End { run_id: event.run_id.clone(), status, stop_reason, message })
}

impl Translator {
    /// Returns the approximate memory of the surfaces that the translator follows, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.surfaces.memory()
    }

    /// Drops the surfaces, because the memory limit is reached: their next changes are sent as they are logged.
    pub(super) fn forget_surfaces(&mut self) {
        self.surfaces.clear();
    }

    /// Makes a translator from the beginning of the log.
    pub(super) fn new(thread: &str) -> Self {
        Self {
            thread: thread.into(),
            active: None,
            between_runs: false,
            tracker: MessageTracker::default(),
            message: None,
            streaming: None,
            tools: HashMap::new(),
            surfaces: SurfaceFollower::new(SURFACES_MAX),
            activities: HashMap::new(),
            open: Vec::new(),
            limit: None,
            deferred: Vec::new(),
            run: None,
            part: 1,
            queue: Vec::new(),
            ended: None,
            ahead: Vec::new(),
        }
    }

    /// Sets the maximum risk that the client's device may allow, and the requests that the client leaves to the user's computer.
    pub(super) fn for_device(self, limit: Option<Risk>, deferred: Vec<RequestId>) -> Self {
        Self { limit, deferred, ..self }
    }

    /// Folds an event into the snapshot of a new client; nothing is sent.
    pub(super) fn fold(&mut self, event: &Event, view: &mut ClientView) {
        let mut out = Vec::new();
        self.event(event, &mut out);
        out.iter().for_each(|item| view.apply(item));
    }

    /// Ends the fold: from now on events are sent to a client that has not received a start.
    pub(super) fn listen(&mut self, ahead: Vec<Id>) {
        (self.active, self.streaming, self.ended, self.ahead) = (None, None, None, ahead);
        self.tools.values_mut().for_each(|tool| tool.started = false);
    }

    /// Returns whether an AG-UI run is in progress.
    pub(super) fn active(&self) -> bool {
        self.active.is_some()
    }

    /// Returns whether the agent waits for users who can answer here.
    pub(super) fn is_waiting(&self) -> bool {
        self.answerable().next().is_some()
    }

    /// Returns the open requests that the client can answer.
    fn answerable(&self) -> impl Iterator<Item = &Request> {
        let open = self.open.iter().filter(|(id, _)| !self.deferred.contains(id));
        open.map(|(_, request)| &**request).filter(|request| !request.observe_only)
    }

    /// Returns whether no run is in progress or queued.
    pub(super) fn idle(&self) -> bool {
        self.run.is_none() && self.queue.is_empty()
    }

    /// Returns the end of the last run that ended while the client was connected.
    pub(super) fn ended(&self) -> Option<&End> {
        self.ended.as_ref()
    }

    /// Begins an AG-UI run.
    pub(super) fn begin(&mut self, run_id: &str, out: &mut Vec<AgUiEvent>) {
        let run_id: Id = run_id.into();
        self.active = Some(Arc::clone(&run_id));
        self.between_runs = false;
        self.ended = None;
        out.push(AgUiEvent::RunStarted { thread_id: Arc::clone(&self.thread), run_id, protocol_version: PROTOCOL });
    }

    /// Ends the AG-UI run of events between runs when a run begins, regardless of the division of the events into pages. To be called
    /// before [`event`](Self::event).
    pub(super) fn end_between_runs(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        if self.between_runs && event.kind == Kind::RunStarted {
            self.finish(&Outcome::Idle, out);
        }
    }

    /// Begins an AG-UI run for this event if none is in progress: the next part of its own run.
    pub(super) fn ensure_run(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        if self.active.is_some() {
            return;
        }
        match &self.run {
            Some(run) if *run == event.run_id => self.begin(&format!("{run}#{}", self.part), out),
            _ if event.kind == Kind::RunStarted => self.begin(&format!("{}#1", event.run_id), out),
            // Between runs, each sequence of events has an id of its own.
            _ => {
                self.begin(&format!("{}@{}", event.run_id, event.position), out);
                self.between_runs = true;
            }
        }
    }

    /// Ends the AG-UI run.
    pub(super) fn finish(&mut self, outcome: &Outcome, out: &mut Vec<AgUiEvent>) {
        let Some(run_id) = self.active.clone() else { return };
        self.close_text(out);
        self.close_tools(out);
        self.active = None;
        self.between_runs = false;
        let thread_id = Arc::clone(&self.thread);
        out.push(match outcome {
            Outcome::Interrupt => {
                let interrupts: Vec<Value> = self.answerable().map(|request| self.interrupt(request)).collect();
                let outcome = json!({ "type": "interrupt", "interrupts": interrupts });
                AgUiEvent::RunFinished { thread_id, run_id, result: None, outcome }
            }
            Outcome::Idle => {
                AgUiEvent::RunFinished { thread_id, run_id, result: None, outcome: json!({ "type": "success" }) }
            }
            Outcome::Ended(End { status: RunStatus::Error, message, .. }) => {
                let message = message.clone().unwrap_or_else(|| "the run failed".into());
                AgUiEvent::RunError { message, code: "run_failed" }
            }
            Outcome::Ended(End { status: RunStatus::Cancelled, .. }) => {
                AgUiEvent::RunFinished { thread_id, run_id, result: None, outcome: json!({ "type": "cancelled" }) }
            }
            Outcome::Ended(End { run_id: run, stop_reason, .. }) => {
                let result = json!({ "run_id": run, "stop_reason": stop_reason });
                let outcome = json!({ "type": "success" });
                AgUiEvent::RunFinished { thread_id, run_id, result: Some(result), outcome }
            }
        });
    }

    /// Translates one event of the log.
    pub(super) fn event(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        match event.kind {
            Kind::UserMessageChunk => self.chunk(Role::User, event, out),
            Kind::AgentMessageChunk => self.chunk(Role::Assistant, event, out),
            Kind::AgentThoughtChunk => self.chunk(Role::Reasoning, event, out),
            _ if event.body.len() > EVENT_MAX => self.too_large(event, out),
            Kind::ToolCall | Kind::ToolCallUpdate => self.tool(event, out),
            Kind::Plan => {
                self.tracker.plan(event.run_id.as_str());
                state("plan", event, out);
            }
            Kind::AvailableCommandsUpdate => state("commands", event, out),
            Kind::CurrentModeUpdate => state("mode", event, out),
            Kind::ConfigOptionUpdate => state("config_options", event, out),
            Kind::SessionInfoUpdate => state("session_info", event, out),
            Kind::UsageUpdate => state("usage", event, out),
            Kind::RunStarted => self.run_started(event, out),
            Kind::RunStatus => self.run_status(event, out),
            Kind::RunEnded => self.run_ended(event, out),
            Kind::RequestOpened | Kind::RequestUpdated => self.opened(event, out),
            Kind::RequestResolved => self.resolved(event, out),
            Kind::SurfaceUpdated => self.surface(event, out),
            Kind::RuntimeStatus => {
                state("runtime", event, out);
                custom(event, out);
            }
            Kind::Hook | Kind::ClientServed | Kind::ClientJoined | Kind::ClientLeft | Kind::Error => custom(event, out),
            Kind::Raw => raw(event, out),
        }
    }

    /// Ends the message that is being sent.
    fn close_text(&mut self, out: &mut Vec<AgUiEvent>) {
        match self.streaming.take() {
            Some((Role::Reasoning, id)) => {
                out.push(AgUiEvent::ReasoningMessageEnd { message_id: Arc::clone(&id) });
                out.push(AgUiEvent::ReasoningEnd { message_id: id });
            }
            Some((_, id)) => out.push(AgUiEvent::TextMessageEnd { message_id: id }),
            None => {}
        }
    }

    fn chunk(&mut self, role: Role, event: &Event, out: &mut Vec<AgUiEvent>) {
        let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(&event.body) else { return raw(event, out) };
        let block = serde_json::from_str::<Block<'_>>(chunk.content.get()).ok();
        let text = block.as_ref().filter(|block| block.kind.as_deref() == Some("text"));
        let text = text.and_then(|block| block.text.as_deref());
        let Some(text) = text else { return self.content(role, event, chunk.content, out) };
        let client_id = block.as_ref().and_then(|block| block.meta.as_ref()?.plexus.message_id.as_deref());
        let client_id = client_id.filter(|id| role == Role::User && !id.is_empty() && !is_gateway_id(id));
        let named = client_id.or(chunk.message_id.as_deref());
        let parent = chunk.meta.and_then(|meta| parent_from_meta(&mut serde_json::Deserializer::from_str(meta.get())));
        let key = MessageKey::new(role.in_transcript(), event.run_id.as_str(), named, parent.as_deref());
        let target = self.tracker.chunk(&key, event.position);
        let id: Id = match (target, &self.message, client_id) {
            (ChunkTarget::Current(_), Some(id), _) => Arc::clone(id),
            (_, _, Some(client_id)) => client_id.into(),
            (target, ..) => format!("m_{}", target.first(event.position)).into(),
        };
        self.message = Some(Arc::clone(&id));
        if text.is_empty() || (role == Role::User && self.ahead.contains(&id)) {
            return;
        }
        if self.streaming.as_ref().is_none_or(|(_, now)| *now != id) {
            self.close_text(out);
            let message_id = Arc::clone(&id);
            if role == Role::Reasoning {
                out.push(AgUiEvent::ReasoningStart { message_id: Arc::clone(&id) });
                out.push(AgUiEvent::ReasoningMessageStart { message_id, role: role.as_str() });
            } else {
                out.push(AgUiEvent::TextMessageStart { message_id, role: role.as_str() });
            }
            self.streaming = Some((role, Arc::clone(&id)));
        }
        for piece in pieces(text) {
            let (message_id, delta) = (Arc::clone(&id), piece.to_owned());
            out.push(if role == Role::Reasoning {
                AgUiEvent::ReasoningMessageContent { message_id, delta }
            } else {
                AgUiEvent::TextMessageContent { message_id, delta }
            });
        }
        if role == Role::User {
            // A user's message is complete at once, and the agent's reply may come much later.
            self.close_text(out);
        }
    }

    /// Sends a part of a message that is not text.
    fn content(&mut self, role: Role, event: &Event, block: &RawValue, out: &mut Vec<AgUiEvent>) {
        if event.body.len() > EVENT_MAX {
            return self.too_large(event, out);
        }
        let content = json!({ "role": role.as_str(), "run_id": event.run_id, "block": block });
        let Value::Object(content) = content else { return };
        let message_id = format!("a_{}", event.position).into();
        out.push(AgUiEvent::ActivitySnapshot { message_id, activity_type: "content", content, replace: true });
    }

    /// Sends the position of an event that is too large for clients.
    fn too_large(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let (bytes, kind) = (event.body.len(), event.kind.as_str());
        let value = json!({ "run_id": event.run_id, "seq": event.seq, "kind": kind, "bytes": bytes,
            "message": "this event is too large for an AG-UI client: read it from the session's log at this cursor" });
        out.push(AgUiEvent::custom("too_large", value));
    }

    fn tool(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let Ok(mut update) = serde_json::from_slice::<Map<String, Value>>(&event.body) else { return raw(event, out) };
        let Some(native) = update.get("toolCallId").and_then(Value::as_str).map(ToOwned::to_owned) else {
            return raw(event, out);
        };
        // Text after a tool call is another message, unless the agent numbers its messages.
        self.tracker.interrupt();
        self.close_text(out);
        update.remove("sessionUpdate");
        let known = self.tools.contains_key(&native);
        if !known && self.tools.len() >= TOOLS {
            self.tools.retain(|_, tool| !tool.finished);
            if self.tools.len() >= TOOLS {
                self.close_tools(out);
                self.tools.clear();
            }
        }
        let name = cut(update.get("kind").and_then(Value::as_str).unwrap_or("other"), NAME_MAX);
        let fresh = Tool {
            at: event.position,
            name: name.to_owned(),
            started: false,
            closed: false,
            finished: false,
            title: String::new(),
            text: String::new(),
        };
        let tool = self.tools.entry(native).or_insert(fresh);
        let (id, activity): (Id, Id) = (tool.id(), format!("a_{}", tool.at).into());
        if let Some(title) = update.get("title").and_then(Value::as_str) {
            tool.title = cut(title, RESULT_MAX).to_owned();
        }
        let text = tool_text(&update);
        if !text.is_empty() {
            tool.text = text;
        }
        let status = update.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
        let input = update.get("rawInput").filter(|input| !input.is_null()).map(ToString::to_string);
        if known {
            update.remove("toolCallId");
            let plain = |key: &str| key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && key != "__proto__";
            // Clients refuse patches to such members, so the whole update is sent.
            if update.keys().any(|key| !plain(key)) {
                custom(event, out);
            }
            let patch: Vec<Patch> = update
                .into_iter()
                .filter(|(key, _)| plain(key))
                .map(|(key, value)| Patch::add(format!("/{key}"), value))
                .collect();
            if !patch.is_empty() {
                out.push(AgUiEvent::ActivityDelta { message_id: activity, activity_type: "tool_call", patch });
            }
        } else {
            start(tool, out);
            out.push(AgUiEvent::ActivitySnapshot {
                message_id: activity,
                activity_type: "tool_call",
                content: update,
                replace: true,
            });
        }
        let finished = matches!(status.as_str(), "completed" | "failed");
        if input.is_some() || finished || status == "in_progress" {
            close(tool, input, out);
        }
        if finished && !tool.finished {
            tool.finished = true;
            let text = std::mem::take(&mut tool.text);
            let content = if text.is_empty() { status } else { cut(&text, RESULT_MAX).to_owned() };
            let message_id = format!("r_{}", tool.at).into();
            out.push(AgUiEvent::ToolCallResult { message_id, tool_call_id: id, content, role: "tool" });
        }
    }

    /// Ends the arguments of all open calls.
    fn close_tools(&mut self, out: &mut Vec<AgUiEvent>) {
        let mut open: Vec<&mut Tool> = self.tools.values_mut().filter(|tool| !tool.closed).collect();
        open.sort_by_key(|tool| tool.at);
        open.into_iter().for_each(|tool| close(tool, None, out));
    }

    fn run_started(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        self.tracker.interrupt();
        self.close_text(out);
        self.close_tools(out);
        self.tools.retain(|_, tool| !tool.finished);
        (self.run, self.part) = (Some(event.run_id.clone()), 1);
        let waited = self.queue.len();
        self.queue.retain(|run| *run != event.run_id);
        let mut delta = vec![Patch::add("/run", body(event))];
        if self.queue.len() != waited {
            delta.push(Patch::add("/queue", json!(self.queue)));
        }
        out.push(AgUiEvent::StateDelta { delta });
        custom(event, out);
    }

    fn run_status(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let body = body(event);
        let delta = if body["status"] == "queued" {
            if !self.queue.contains(&event.run_id) {
                self.queue.push(event.run_id.clone());
            }
            Patch::add("/queue", json!(self.queue))
        } else {
            Patch::add("/run", body)
        };
        out.push(AgUiEvent::StateDelta { delta: vec![delta] });
    }

    fn run_ended(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let mut delta = Vec::new();
        if self.run.as_ref() == Some(&event.run_id) {
            self.tracker.interrupt();
            self.close_text(out);
            self.close_tools(out);
            self.run = None;
            delta.push(Patch::add("/run", Value::Null));
        }
        let waited = self.queue.len();
        self.queue.retain(|run| *run != event.run_id);
        if self.queue.len() != waited {
            delta.push(Patch::add("/queue", json!(self.queue)));
        }
        if !delta.is_empty() {
            out.push(AgUiEvent::StateDelta { delta });
        }
        self.ended = read_run_end(event);
        custom(event, out);
    }

    fn opened(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let Ok(request) = serde_json::from_slice::<Request>(&event.body) else { return raw(event, out) };
        self.close_text(out);
        let tool = request.tool_call_id.as_ref().and_then(|id| self.tools.get_mut(id));
        if let Some(tool) = tool {
            close(tool, None, out);
        }
        let id = request.request_id.clone();
        let delta = vec![Patch::add(format!("/requests/{id}"), request_value(&request))];
        out.push(AgUiEvent::StateDelta { delta });
        self.open.retain(|(known, _)| *known != id);
        self.open.push((id, Arc::new(Request { native: None, ..request })));
    }

    fn resolved(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        #[derive(Deserialize)]
        struct Resolved {
            request_id: RequestId,
        }
        let Ok(Resolved { request_id }) = serde_json::from_slice::<Resolved>(&event.body) else {
            return raw(event, out);
        };
        let before = self.open.len();
        self.open.retain(|(known, _)| *known != request_id);
        if self.open.len() != before {
            out.push(AgUiEvent::StateDelta { delta: vec![Patch::Remove { path: format!("/requests/{request_id}") }] });
            if self.open.is_empty() {
                self.part = self.part.saturating_add(1);
            }
        }
        custom(event, out);
    }

    /// Sends a surface as the activity that clients with A2UI draw, whole after each change, with its text for others.
    fn surface(&mut self, event: &Event, out: &mut Vec<AgUiEvent>) {
        let Ok(change) = serde_json::from_slice::<Change>(&event.body) else { return raw(event, out) };
        let name = change.surface.as_str();
        let content = match self.surfaces.apply(&change) {
            Followed::Changed => self.surfaces.get(name).map(surface_activity),
            Followed::Missing if change.base.is_none() => {
                Surface::from_wire(body(event)).ok().as_ref().map(surface_activity)
            }
            Followed::Closed(_) => {
                let deleted = json!({ "version": "v0.9", "deleteSurface": { "surfaceId": name } });
                let about = json!({ "surface": name, "rev": change.rev, "closed": true });
                let content = json!({ "a2ui_operations": [deleted], "text": "", "plexus": about });
                // A surface that was not sent cannot be removed.
                content.as_object().filter(|_| self.activities.contains_key(name)).cloned()
            }
            Followed::Known | Followed::Missing => None,
        };
        // Without the state before it, only the change can be sent.
        let Some(content) = content else { return custom(event, out) };
        if self.activities.len() >= SURFACES {
            self.activities.clear();
        }
        let id = self.activities.entry(name.to_owned()).or_insert_with(|| format!("s_{}", event.position).into());
        let message_id = Arc::clone(id);
        if change.closed {
            self.activities.remove(name);
        }
        out.push(AgUiEvent::ActivitySnapshot { message_id, activity_type: "a2ui-surface", content, replace: true });
    }

    /// Returns a request as an interrupt.
    pub(super) fn interrupt(&self, request: &Request) -> Value {
        let reason = match request.kind {
            RequestType::Permission if request.tool_call_id.is_some() => "tool_call",
            RequestType::Permission | RequestType::Confirm => "confirmation",
            RequestType::Prompt | RequestType::Pick | RequestType::Elicitation => "input_required",
        };
        // The gateway's own rendering, to which an answer is bound.
        let message = if request.display.is_empty() { &request.title } else { &request.display };
        let mut interrupt = json!({
            "id": request.request_id, "reason": reason, "message": message,
            "responseSchema": super::input::schema(request, self.limit), "metadata": { "plexus": request_value(request) },
        });
        if let Some(tool) = request.tool_call_id.as_ref().and_then(|id| self.tools.get(id)) {
            interrupt["toolCallId"] = json!(tool.id());
        }
        if let Some(at) = request.expires_at {
            interrupt["expiresAt"] = json!(at);
        }
        interrupt
    }
}

/// Returns a surface as the content of an activity.
fn surface_activity(surface: &Surface) -> Map<String, Value> {
    let mut content = Map::new();
    let mut operations = Value::Array(Vec::new());
    if surface.bytes() <= A2UI_MAX {
        operations = serde_json::to_value(surface).map(|mut wire| wire["messages"].take()).unwrap_or_default();
        // A renderer knows the basic catalogue by its name, and refuses others.
        if let Some(catalog) = operations.pointer_mut("/0/createSurface/catalogId").filter(|_| surface.is_basic()) {
            *catalog = BASIC_CATALOG.into();
        }
    }
    let about = json!({
        "surface": surface.name(), "rev": surface.rev(), "title": surface.title(), "pinned": surface.pinned(),
        "at": surface.at(), "ask": surface.ask(),
    });
    content.insert("a2ui_operations".into(), operations);
    content.insert("text".into(), surface.text(SURFACE_COLUMNS).into());
    content.insert("plexus".into(), about);
    content
}

/// Returns a request without the runtime's own message.
fn request_value(request: &Request) -> Value {
    let mut value = serde_json::to_value(Request { native: None, ..request.clone() }).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("generation");
    }
    value
}

/// Sends the start of a call. A client that joined in the middle has the call already and resumes it.
fn start(tool: &mut Tool, out: &mut Vec<AgUiEvent>) {
    if !std::mem::replace(&mut tool.started, true) {
        let parent_message_id = format!("c_{}", tool.at).into();
        out.push(AgUiEvent::ToolCallStart {
            tool_call_id: tool.id(),
            tool_call_name: tool.name.clone(),
            parent_message_id,
        });
    }
}

/// Sends a call's arguments and their end.
fn close(tool: &mut Tool, input: Option<String>, out: &mut Vec<AgUiEvent>) {
    if std::mem::replace(&mut tool.closed, true) {
        return;
    }
    start(tool, out);
    let id = tool.id();
    let input = input.unwrap_or_else(|| json!({ "title": tool.title }).to_string());
    tool.title = String::new();
    for piece in pieces(&input) {
        out.push(AgUiEvent::ToolCallArgs { tool_call_id: Arc::clone(&id), delta: piece.to_owned() });
    }
    out.push(AgUiEvent::ToolCallEnd { tool_call_id: id });
}

/// Returns the text of a tool's result: its content, else its output.
fn tool_text(update: &Map<String, Value>) -> String {
    let mut parts: Vec<Cow<'_, str>> = Vec::new();
    for entry in update.get("content").and_then(Value::as_array).into_iter().flatten() {
        parts.push(match ToolContent::read(entry) {
            ToolContent::Text(text) => text.into(),
            ToolContent::Block(block) => block.to_string().into(),
            ToolContent::Diff { path: "", .. } => "changed a file".into(),
            ToolContent::Diff { path, .. } => format!("changed {path}").into(),
            ToolContent::Terminal(_) | ToolContent::Other(_) => entry.to_string().into(),
        });
    }
    if parts.is_empty() {
        match update.get("rawOutput") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => parts.push(text.into()),
            Some(other) => parts.push(other.to_string().into()),
        }
    }
    cut(&parts.join("\n"), RESULT_MAX).to_owned()
}

/// Returns the first `max` bytes of a text, cut at a character boundary.
fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// Returns a text in pieces of at most [`PIECE`] bytes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = cut(rest, PIECE);
        rest = rest.get(piece.len()..).unwrap_or_default();
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the body without the member that names its kind.
fn body(event: &Event) -> Value {
    let mut body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("sessionUpdate");
    }
    body
}

/// Sends a changed part of the state.
fn state(name: &str, event: &Event, out: &mut Vec<AgUiEvent>) {
    let body = body(event);
    if body.is_object() {
        out.push(AgUiEvent::StateDelta { delta: vec![Patch::add(format!("/{name}"), body)] });
    } else {
        raw(event, out);
    }
}

/// Sends an event that AG-UI does not have, under the gateway's own name.
fn custom(event: &Event, out: &mut Vec<AgUiEvent>) {
    let value = json!({ "run_id": event.run_id, "seq": event.seq, "at": event.at, "event": body(event) });
    out.push(AgUiEvent::custom(event.kind.as_str(), value));
}

/// Sends an event that was not understood, unchanged.
fn raw(event: &Event, out: &mut Vec<AgUiEvent>) {
    let native = event.native.as_ref().unwrap_or(&event.body);
    let bytes = if native.len() > EVENT_MAX { &event.body } else { native };
    let whole = serde_json::from_slice::<Box<RawValue>>(bytes).ok();
    // A line break inside JSON is white space between tokens, but would end the line of a stream.
    let whole = whole.filter(|whole| !whole.get().contains(['\r', '\n']) && whole.get() != "null");
    let whole = whole.or_else(|| serde_json::value::to_raw_value(&String::from_utf8_lossy(bytes)).ok());
    if let Some(whole) = whole {
        out.push(AgUiEvent::Raw { event: whole, source: event.origin.runtime_id.as_str().to_owned() });
    }
}
