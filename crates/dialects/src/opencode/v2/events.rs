//! Handles the events of the stream and of a session's log. One file: an event, and its consequences.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::super::jsonrpc::{member, object, owned};
use super::super::super::updates::{chunk, content_chunk, text_block};
use super::super::super::{EventDraft, Outbox, RunEnd, RuntimeEvent, ToolCallRef};
use super::super::events::{Tokens, checksum, gap, plan, spending, stop_reason, tool_kind, usage};
use super::super::{ANOTHER, STEP_TIME};
use super::super::{QUEUE_BYTES, QUEUE_MAX, Stage};
use super::{Frame, ModelRef, OpenCode2, Phase, Progress, UNSURE, parse};
use plexus_protocol::{ErrorBody, Kind, NativeId, RunStatus, SpendReport};

/// Maximum number of items of a session's inbox; above it the oldest is removed, and an event reports that when it is begun.
const INBOX_MAX: usize = 64;
/// Maximum length of the text of an inbox item in a checkpoint, in bytes. For a longer one the next gateway process reports a gap.
const TEXT_STORED_MAX: usize = 4096;
/// Maximum number of unfinished texts and tool calls in a session; above it the first is removed.
const UNDER_WAY_MAX: usize = 256;
/// Maximum length of the input of a tool call that is stored until the call ends, in bytes: a question may be about it.
const INPUT_STORED_MAX: usize = 64 * 1024;

/// An unfinished text.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    /// The number of reported bytes; `sum` is their checksum.
    #[serde(rename = "said")]
    reported_len: usize,
    sum: u64,
    /// `true` if deltas cannot be reported, since the text before them is unknown.
    held: bool,
    /// `true` if the gap was reported.
    gap: bool,
}

/// A running tool call.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tool {
    name: String,
    #[serde(skip)]
    pub(super) input: Option<Box<RawValue>>,
}

/// Another client's item in a session's inbox.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Waiting {
    /// The text; `None` if unknown. A checkpoint, which is written with every chunk, has short texts only.
    #[serde(skip_serializing_if = "is_long")]
    text: Option<String>,
    /// The names of its files.
    files: Vec<String>,
}

fn is_long(text: &Option<String>) -> bool {
    text.as_ref().is_none_or(|text| text.len() > TEXT_STORED_MAX)
}

impl Waiting {
    pub(super) fn unknown() -> Self {
        Self { text: None, files: Vec::new() }
    }
}

/// The end of a run.
pub(super) enum End {
    Completed,
    Cancelled,
    /// The reason, if known.
    Failed(Option<String>),
}

/// The members of events. The first releases name a tool call `callID`, later ones `id`.
#[derive(Deserialize)]
struct Data<'a> {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(rename = "assistantMessageID")]
    message: Option<String>,
    ordinal: Option<u64>,
    delta: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    #[serde(alias = "callID")]
    id: Option<String>,
    name: Option<String>,
    input: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    #[serde(borrow, alias = "structured")]
    metadata: Option<&'a RawValue>,
    error: Option<ErrorIn>,
    finish: Option<String>,
    cost: Option<f64>,
    tokens: Option<Tokens>,
    reason: Option<String>,
    title: Option<String>,
    model: Option<&'a RawValue>,
    #[serde(rename = "inboxID", alias = "inputID")]
    inbox: Option<String>,
    item: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    attempt: Option<u64>,
    at: Option<u64>,
    #[serde(rename = "requestID")]
    request: Option<String>,
    reply: Option<String>,
    form: Option<&'a RawValue>,
    todos: Option<&'a RawValue>,
    #[serde(rename = "parentID")]
    parent: Option<String>,
}

#[derive(Deserialize)]
struct ErrorIn {
    #[serde(rename = "type")]
    type_name: Option<String>,
    message: Option<String>,
}

impl ErrorIn {
    fn into_message(self) -> Option<String> {
        self.message.filter(|message| !message.is_empty()).or(self.type_name)
    }
}

/// An item of the inbox: its text is in `payload`, in `data` or in the item itself, depending on the release.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type")]
    type_name: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InboxContent {
    text: Option<String>,
    #[serde(default)]
    files: Vec<FileIn>,
}

#[derive(Deserialize)]
struct FileIn {
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize)]
struct ToolContent {
    #[serde(rename = "type")]
    type_name: String,
    text: Option<String>,
    name: Option<String>,
    uri: Option<String>,
}

#[derive(Deserialize)]
struct Input {
    command: Option<String>,
    #[serde(alias = "path")]
    #[serde(rename = "filePath")]
    path: Option<String>,
}

/// Returns the session of an event.
fn session_of(event: &Frame<'_>) -> Option<String> {
    if let Some(durable) = &event.durable {
        return Some(durable.session.clone());
    }
    let data = object::<Data<'_>>(event.data?)?;
    data.session.or_else(|| member(data.form?, "sessionID"))
}

/// Returns whether an event shows that a session works, or asks.
fn is_activity(type_name: &str) -> bool {
    matches!(
        type_name,
        "session.execution.started" | "session.step.started" | "session.text.delta" | "session.reasoning.delta"
    ) || type_name.ends_with(".asked")
        || type_name == "form.created"
}

/// Returns a tool's output in ACP's form.
fn content(raw: Option<&RawValue>, error: Option<String>) -> Vec<serde_json::Value> {
    let items: Vec<&RawValue> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let progress = items.into_iter().filter_map(|raw| {
        let item: ToolContent = object(raw)?;
        match item.type_name.as_str() {
            "text" => item.text.filter(|message| !message.is_empty()),
            _ => Some(format!("[{}]", item.name.or(item.uri).unwrap_or(item.type_name))),
        }
    });
    progress.chain(error).map(|text| text_block(&text)).collect()
}

impl Progress {
    /// Records a lost connection: the next deltas of unfinished texts may not follow.
    pub(super) fn connection_lost(&mut self) {
        for part in self.parts.values_mut() {
            (part.held, part.gap) = (true, false);
        }
    }

    /// Handles a delta of text.
    fn delta(&mut self, kind: Kind, key: &str, message: &str, delta: &str, frame: &Bytes) -> Option<EventDraft> {
        // If the beginning is unknown, the end reports everything.
        let part = self.parts.get_mut(key)?;
        if part.held {
            let first = !std::mem::replace(&mut part.gap, true);
            let message = "a part of a message was missed: the complete text follows when it ends";
            return first.then(|| gap(message, frame));
        }
        (part.reported_len, part.sum) = (part.reported_len + delta.len(), checksum(part.sum, delta));
        Some(chunk(kind, Some(message), delta, Some(frame)))
    }

    /// Handles the end of a text: reports the unreported part.
    fn text(&mut self, kind: Kind, key: &str, message: &str, text: &str, frame: &Bytes) -> Vec<EventDraft> {
        let part = self.parts.remove(key).unwrap_or_default();
        let follows = text.get(..part.reported_len).is_some_and(|progress| checksum(0, progress) == part.sum);
        // At the end of a text OpenCode may trim white space, but changes nothing else: then everything was reported.
        match follows {
            true if text.len() == part.reported_len => Vec::new(),
            true => vec![chunk(kind, Some(message), &text[part.reported_len..], Some(frame))],
            false if text.len() < part.reported_len => Vec::new(),
            false => vec![
                gap("OpenCode changed an earlier message: the message follows completely, as it is now", frame),
                chunk(kind, Some(message), text, Some(frame)),
            ],
        }
    }
}

/// OpenCode's own bookkeeping, without content for the user.
const BOOKKEEPING: &[&str] = &[
    "created",
    "updated",
    "usage.updated",
    "usage.recorded",
    "agent.selected",
    "agent.switched",
    "context.updated",
    "instructions.updated",
    "moved",
    "viewed",
    "step.streamed",
    "inbox.updated",
    "inbox.cancelled",
    "revert.staged",
    "revert.cleared",
    "compaction.delta",
    "compaction.admitted",
    "status",
    "idle",
    "diff",
];

/// Makes an event for a conversation that is shorter than the reported one.
fn taken_back(frame: &Bytes) -> EventDraft {
    let message = "the conversation was reverted in OpenCode: the agent no longer knows the messages after the one that \
        it was reverted to";
    EventDraft::error("taken_back", message, Some(frame))
}

/// Makes an event for a conversation that was forked from another session.
fn forked(parent: &str, frame: &Bytes) -> EventDraft {
    let message = format!("this conversation is a fork: the earlier messages are in the session {parent}");
    EventDraft::error("gap", &message, Some(frame))
}

/// Makes an event for a model that did not answer, so that OpenCode retries.
fn retry(message: Option<String>, attempt: Option<u64>, at: Option<u64>, frame: &Bytes) -> EventDraft {
    let message = message.unwrap_or_else(|| "the model did not answer".into());
    let message = format!("OpenCode is retrying: {message}");
    let body = ErrorBody::new("retry", &message).with("attempt", attempt).with("next", at);
    EventDraft { native: Some(frame.clone()), ..EventDraft::new(Kind::Error, &body) }
}

impl OpenCode2 {
    /// Handles an event of the stream: the next one is applied, others are queued until the log was read.
    pub(super) fn streamed(&mut self, frame: &Bytes, event: &Frame<'_>, out: &mut Outbox) {
        if event.kind.starts_with("server.") {
            return;
        }
        let Some(name) = session_of(event) else {
            // Events about the server itself, such as plugins, files and terminals, concern no conversation.
            return;
        };
        let native = NativeId::from(name.as_str());
        let Some(session) = self.sessions.get_mut(&native) else {
            if event.kind == "form.created" && !name.starts_with("ses") {
                // A form of a tool server without a session is shown in all sessions.
                return self.question_received(None, frame, event, out);
            }
            if is_activity(&event.kind) && self.phase != Phase::Failed {
                self.on_active(&native, out);
            }
            return;
        };
        if !matches!(session.stage, Stage::Open | Stage::Opening { .. }) {
            // The session is read when it is opened.
            return;
        }
        let missed = match (&event.durable, session.progress.seq) {
            (Some(durable), Some(progress)) if !session.reading => {
                if durable.seq <= progress {
                    return;
                }
                durable.seq - 1 > progress
            }
            _ => false,
        };
        if !session.reading && !missed {
            return self.logged(&native, frame, event, true, out);
        }
        session.queued += frame.len();
        session.queue.push_back(frame.clone());
        if session.queue.len() > QUEUE_MAX || session.queued > QUEUE_BYTES {
            session.queue.clear();
            session.progress.connection_lost();
            (session.queued, session.overflowed) = (0, true);
        }
        if missed {
            self.read(&native, out);
        }
    }

    /// Returns the first queued sequence number of the log: from there on the stream suffices.
    pub(super) fn queued_from(&self, native: &NativeId) -> Option<u64> {
        let session = self.sessions.get(native)?;
        session.queue.iter().find_map(|frame| Some(parse(frame)?.durable?.seq))
    }

    /// Applies the next event, of the log or of the stream (`live`).
    pub(super) fn logged(&mut self, native: &NativeId, frame: &Bytes, event: &Frame<'_>, live: bool, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        if let Some(durable) = &event.durable {
            if session.progress.seq.is_some_and(|progress| durable.seq <= progress) {
                return;
            }
            session.progress.seq = Some(durable.seq);
        }
        if session.is_replaying {
            // The state is updated, but nothing is reported.
            let mut unsaid = Outbox::default();
            return self.on_event(native, frame, event, live, &mut unsaid);
        }
        self.on_event(native, frame, event, live, out);
    }

    fn on_event(&mut self, native: &NativeId, frame: &Bytes, event: &Frame<'_>, live: bool, out: &mut Outbox) {
        let to_event = |draft| RuntimeEvent::Event { native: Some(native.clone()), draft };
        let Some(data) = event.data.and_then(object::<Data<'_>>) else {
            return out.events.push(to_event(EventDraft::raw(frame.clone(), "an event that could not be parsed")));
        };
        let Some(session) = self.sessions.get_mut(native) else { return };
        let counts = live || !session.past;
        let progress = &mut session.progress;
        let message = data.message.unwrap_or_default();
        let part = |type_name: &str| format!("{message}/{type_name}/{}", data.ordinal.unwrap_or_default());
        match event.kind.strip_prefix("session.").unwrap_or(&event.kind) {
            type_name @ ("text.started" | "reasoning.started") => {
                if progress.parts.len() >= UNDER_WAY_MAX {
                    progress.parts.pop_first();
                }
                let fresh = Part { held: !live, ..Part::default() };
                progress.parts.insert(part(&type_name[..4]), fresh);
            }
            type_name @ ("text.delta" | "reasoning.delta") => {
                let delta = data.delta.unwrap_or_default();
                let draft = progress.delta(kind_of(type_name), &part(&type_name[..4]), &message, &delta, frame);
                out.events.extend(draft.map(to_event));
            }
            type_name @ ("text.ended" | "reasoning.ended") => {
                let text = data.text.unwrap_or_default();
                let drafts = progress.text(kind_of(type_name), &part(&type_name[..4]), &message, &text, frame);
                out.events.extend(drafts.into_iter().map(to_event));
            }
            "step.started" => (progress.finish, progress.error) = (None, None),
            "step.ended" => {
                progress.finish = data.finish;
                if let Some(tokens) = &data.tokens {
                    let model = progress.model.as_ref().map(|(provider, model)| format!("{provider}/{model}"));
                    let draft = usage(frame, tokens, data.cost, self.models.context(model.as_deref()));
                    out.events.push(to_event(draft));
                    if counts {
                        let report = SpendReport::step(spending(Some(tokens), data.cost));
                        out.events.extend(report.map(|report| RuntimeEvent::Spent { native: native.clone(), report }));
                    }
                }
            }
            "step.failed" => progress.error = data.error.and_then(ErrorIn::into_message),
            type_name if type_name.starts_with("tool.") => {
                let call = Call { id: data.id.unwrap_or_default(), name: data.name, input: data.input };
                let draft = progress.tool(type_name, call, data.content, data.metadata, data.error, frame);
                out.events.extend(draft.map(to_event));
            }
            "inbox.enqueued" | "input.admitted" | "prompt.admitted" => {
                if let Some(id) = data.inbox {
                    progress.enqueued(id, data.item.or(data.input).or(data.prompt));
                }
            }
            "inbox.delivered" | "input.promoted" | "prompt.promoted" => {
                if let Some(id) = data.inbox {
                    self.delivered(native, &id, frame, out);
                }
            }
            "execution.started" => self.begins(native, live, out),
            "execution.succeeded" => self.stops(native, frame, End::Completed, out),
            "execution.failed" => {
                self.stops(native, frame, End::Failed(data.error.and_then(ErrorIn::into_message)), out);
            }
            "execution.interrupted" => match data.reason.as_deref() {
                // The session continues by itself, soon or when OpenCode is restarted.
                Some("shutdown" | "superseded") => {
                    (session.busy, session.unsure) = (false, UNSURE);
                    out.wake_after = Some(STEP_TIME);
                }
                _ => self.stops(native, frame, End::Cancelled, out),
            },
            "retry.scheduled" => {
                let message = data.error.and_then(ErrorIn::into_message);
                out.events.push(to_event(retry(message, data.attempt, data.at, frame)));
            }
            "renamed" => {
                session.title = data.title.or_else(|| session.title.take());
                let draft = session.title.clone().map(|title| EventDraft::title(Some(title), Some(frame)));
                out.events.extend(draft.map(to_event));
            }
            "model.selected" => {
                if let Some(model) = data.model.and_then(object::<ModelRef>) {
                    self.model_is(native, Some((&model.provider, &model.id)), out);
                }
            }
            "deleted" => self.deleted(native, frame, out),
            "revert.committed" => out.events.push(to_event(taken_back(frame))),
            "forked" => out.events.push(to_event(forked(data.parent.as_deref().unwrap_or_default(), frame))),
            "permission.asked" | "permission.v2.asked" | "form.created" => {
                self.question_received(Some(native), frame, event, out);
            }
            "permission.replied" | "permission.v2.replied" => self.replied_to(data.request, data.reply, out),
            "form.replied" | "form.cancelled" => self.replied_to(data.id, None, out),
            "todo.updated" => {
                let draft = data.todos.and_then(|todos| plan(frame, todos));
                out.events.extend(draft.map(to_event));
            }
            type_name if BOOKKEEPING.contains(&type_name) => {}
            _ => out.events.push(to_event(EventDraft::raw(frame.clone(), "an event that only OpenCode shows"))),
        }
    }

    /// Handles a session that begins to work.
    fn begins(&mut self, native: &NativeId, live: bool, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        (session.busy, session.unsure) = (true, 0);
        if session.progress.prompt.is_none() && !session.progress.began {
            session.progress.begin();
            out.events.push(RuntimeEvent::Began { native: native.clone(), by: ANOTHER.into() });
        }
        if session.progress.cancelled && live {
            // The prompt was cancelled before it had begun.
            self.interrupt(native, out);
        }
    }

    /// Handles the delivery of an item of a session's inbox, with which a run begins.
    fn delivered(&mut self, native: &NativeId, id: &str, frame: &Bytes, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.unsure = 0;
        if let Some(prompt) = session.progress.prompt.as_mut().filter(|prompt| prompt.id == id) {
            (prompt.taken, prompt.seen) = (true, true);
            return;
        }
        let to_event = |draft| RuntimeEvent::Event { native: Some(native.clone()), draft };
        let Some(waiting) = session.progress.inbox.remove(id) else {
            let message = "a prompt of another client of OpenCode was missed";
            return out.events.push(to_event(gap(message, frame)));
        };
        if session.progress.prompt.is_none() && !session.progress.began {
            session.progress.begin();
            out.events.push(RuntimeEvent::Began { native: native.clone(), by: ANOTHER.into() });
        }
        if let Some(text) = waiting.text {
            out.events.push(to_event(chunk(Kind::UserMessageChunk, Some(id), &text, Some(frame))));
        }
        for name in waiting.files {
            let link = serde_json::json!({ "type": "resource_link", "uri": name, "name": name });
            out.events.push(to_event(content_chunk(Kind::UserMessageChunk, Some(id), link, Some(frame))));
        }
    }

    /// Handles a session that stops working.
    fn stops(&mut self, native: &NativeId, frame: &Bytes, end: End, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.busy = false;
        let progress = &session.progress;
        if let Some(prompt) = progress.prompt.as_ref().filter(|prompt| !prompt.seen) {
            // The work was another client's, and the prompt is still queued, or was withdrawn with it.
            if progress.cancelled && prompt.taken {
                let id = prompt.id.clone();
                self.withdraw(native, &id, out);
            }
            return;
        }
        self.end(native, Some(frame), end, out);
    }

    /// Ends the run.
    pub(super) fn end(&mut self, native: &NativeId, frame: Option<&Bytes>, end: End, out: &mut Outbox) {
        self.take_back_all(native, out);
        let Some(session) = self.sessions.get_mut(native) else { return };
        let progress = &mut session.progress;
        session.unsure = 0;
        progress.parts.clear();
        progress.tools.clear();
        // A question that was withdrawn for a cancel counts as the cancel.
        let stopped = std::mem::take(&mut progress.cancelled) & std::mem::take(&mut progress.withdrawn);
        let (error, finish) = (progress.error.take(), progress.finish.take());
        let (status, stop_reason, message) = match end {
            End::Completed if !stopped => (RunStatus::Completed, Some(stop_reason(finish.as_deref()).to_owned()), None),
            End::Completed | End::Cancelled => (RunStatus::Cancelled, Some("cancelled".to_owned()), None),
            End::Failed(reason) => {
                let reason = reason.or(error).unwrap_or_else(|| "OpenCode reports an error".into());
                (RunStatus::Error, None, Some(reason))
            }
        };
        let end = RunEnd { status, stop_reason, message, native: frame.cloned() };
        let began = std::mem::take(&mut progress.began);
        match progress.prompt.take() {
            Some(prompt) => out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket: prompt.ticket, end }),
            None if began => out.events.push(RuntimeEvent::Done { native: native.clone(), end }),
            None => {}
        }
    }

    fn deleted(&mut self, native: &NativeId, frame: &Bytes, out: &mut Outbox) {
        let message = "this session was deleted in OpenCode";
        let Some(session) = self.sessions.get(native) else { return };
        if session.progress.prompt.is_some() || session.progress.began {
            self.end(native, Some(frame), End::Failed(Some(message.into())), out);
        }
        self.take_back_all(native, out);
        let draft = EventDraft::error("session_deleted", message, Some(frame));
        out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
        self.sessions.remove(native);
    }
}

/// A tool call as an event names it.
struct Call<'a> {
    id: String,
    name: Option<String>,
    input: Option<&'a RawValue>,
}

fn kind_of(type_name: &str) -> Kind {
    if type_name.starts_with("reasoning") { Kind::AgentThoughtChunk } else { Kind::AgentMessageChunk }
}

impl super::Prompt {
    /// Returns whether one of these events shows that OpenCode has the prompt.
    pub(super) fn is_in(&self, frames: impl Iterator<Item = Bytes>) -> bool {
        let mut progress = Progress { prompt: Some(self.clone()), ..Progress::default() };
        frames.into_iter().any(|frame| {
            let Some((event, data)) =
                parse(&frame).and_then(|event| Some((event.kind, object::<Data<'_>>(event.data?)?)))
            else {
                return false;
            };
            match (event.strip_prefix("session.").unwrap_or(&event), data.inbox) {
                ("inbox.enqueued" | "input.admitted" | "prompt.admitted", Some(id)) => {
                    progress.enqueued(id, data.item.or(data.input).or(data.prompt));
                }
                ("inbox.delivered" | "input.promoted" | "prompt.promoted", Some(id)) if id == self.id => return true,
                _ => {}
            }
            progress.prompt.as_ref().is_some_and(|prompt| prompt.taken)
        })
    }
}

impl Progress {
    /// Begins a run that the gateway did not start.
    fn begin(&mut self) {
        self.began = true;
        (self.cancelled, self.withdrawn, self.error, self.finish) = (false, false, None, None);
    }

    /// Adds an item to the inbox.
    fn enqueued(&mut self, id: String, item: Option<&RawValue>) {
        let item = item.and_then(|raw| Some((raw, object::<Item<'_>>(raw)?)));
        let Some((raw, item)) = item else { return };
        if item.type_name.as_deref().is_some_and(|type_name| type_name != "user") {
            return;
        }
        let Some(content) = object::<InboxContent>(item.payload.or(item.data).unwrap_or(raw)) else { return };
        let text = content.text.unwrap_or_default();
        if let Some(prompt) = &mut self.prompt
            && (prompt.id == id || (prompt.id.is_empty() && prompt.text == checksum(0, &text)))
        {
            (prompt.id, prompt.taken) = (id, true);
            return;
        }
        if self.inbox.len() >= INBOX_MAX {
            self.inbox.pop_first();
        }
        let files = content.files.into_iter().filter_map(|file| {
            // A data URL would be shown as unreadable text.
            file.name.or(file.uri.filter(|uri| !uri.starts_with("data:"))).or_else(|| Some("file".to_owned()))
        });
        let waiting = Waiting { text: Some(text).filter(|text| !text.is_empty()), files: files.collect() };
        self.inbox.insert(id, waiting);
    }

    /// Handles a change of a tool call.
    fn tool(
        &mut self,
        type_name: &str,
        call: Call<'_>,
        output: Option<&RawValue>,
        metadata: Option<&RawValue>,
        error: Option<ErrorIn>,
        frame: &Bytes,
    ) -> Option<EventDraft> {
        let status = match type_name {
            "tool.input.started" => "pending",
            "tool.called" | "tool.progress" => "in_progress",
            "tool.success" => "completed",
            "tool.failed" => "failed",
            // The input while it is written is not reported: it follows in full.
            _ => return None,
        };
        let ended = matches!(status, "completed" | "failed");
        let known = self.tools.get_mut(&call.id);
        let first = known.is_none();
        let name = known.as_ref().map(|tool| tool.name.clone()).or(call.name).unwrap_or_else(|| "tool".into());
        let content = content(output, error.and_then(ErrorIn::into_message));
        if type_name == "tool.progress" && content.is_empty() {
            return None;
        }
        match known {
            _ if ended => {
                self.tools.remove(&call.id);
            }
            Some(tool) => {
                if let Some(input) = call.input.filter(|input| input.get().len() <= INPUT_STORED_MAX) {
                    tool.input = Some(owned(input));
                }
            }
            None => {
                if self.tools.len() >= UNDER_WAY_MAX {
                    self.tools.pop_first();
                }
                let input = call.input.filter(|input| input.get().len() <= INPUT_STORED_MAX).map(owned);
                self.tools.insert(call.id.clone(), Tool { name: name.clone(), input });
            }
        }
        let input = call.input.and_then(object::<Input>);
        let title = match input.as_ref() {
            Some(Input { command: Some(command), .. }) => Some(command.clone()),
            Some(Input { path: Some(path), .. }) => Some(format!("{name} {path}")),
            _ => first.then(|| name.clone()),
        };
        let mut body = serde_json::json!({
            "sessionUpdate": if first { "tool_call" } else { "tool_call_update" },
            "toolCallId": call.id, "status": status,
        });
        if let Some(title) = title {
            body["title"] = title.into();
        }
        if first {
            body["kind"] = tool_kind(&name).into();
        }
        if !content.is_empty() {
            body["content"] = content.into();
        }
        if let Some(path) = input.and_then(|input| input.path) {
            body["locations"] = serde_json::json!([{ "path": path }]);
        }
        let value = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get()).ok();
        if let Some(input) = call.input.and_then(value) {
            body["rawInput"] = input;
        }
        if let Some(output) = metadata.filter(|_| ended).and_then(value) {
            body["rawOutput"] = output;
        }
        let kind = if first { Kind::ToolCall } else { Kind::ToolCallUpdate };
        let tool = Some(ToolCallRef::new(call.id, ended));
        Some(EventDraft { native: Some(frame.clone()), tool, ..EventDraft::new(kind, &body) })
    }
}
