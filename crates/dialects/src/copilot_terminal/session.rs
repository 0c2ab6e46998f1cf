//! A session of Copilot in its terminal. Pure.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::jsonrpc::{object, owned};
use super::super::link::{process_path, tunnel_path};
use super::super::{
    AnsweredElsewhere, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, RunEnd, RuntimeEvent,
};
use super::ask::{CopilotQuestion, FormData, ONCE, REJECT, SESSION, is_id};
use super::events::{
    AnswerTaken, CallUsage, CopilotEvent, MessageDelta, MessageStart, PermissionCompleted, PermissionRequested,
    PromptTaken, QuestionCompleted, ReasoningDelta, SessionFailure, SessionIdle, TitleChanged, ToolEnd, ToolStart,
    UserMessage, WholeMessage,
};
use super::sync::Reported;
use super::text::{ShownText, StreamedText};
use super::{CLOSED, Fetches, UNREACHED, drafts};
use plexus_protocol::{Decision, Kind, NativeId, RunStatus, SpendReport, Ticket};

/// Who acts at the terminal.
pub(super) const AT_TERMINAL: &str = "the terminal";
/// Who starts a turn that nobody prompted.
const BY_AGENT: &str = "Copilot";

/// Most open questions of a session; further ones can only be answered at the terminal.
const ASKS_MAX: usize = 256;
/// Bytes of them; likewise.
const ASKS_BYTES: usize = 16 << 20;
/// Most of an error that is kept, in characters.
const FAILURE_MAX: usize = 4096;
/// Events that wait until what was missed is read …
pub(super) const HELD_MAX: usize = 1024;
/// … and their bytes. With more than either those that wait are dropped, and what Copilot keeps of them is read.
const HELD_BYTES: usize = 4 << 20;

/// Ticks (of [`TICK`](super::TICK)) that a tunnel may stay away before its session ends. An extension connects again twice a second.
pub(super) const ABSENT_MAX: u32 = 20;
/// Ticks that a prompt may take from Copilot's reply to its turn, while Copilot is idle.
const TAKEN_TICKS: u32 = 60;
/// Ticks of idleness after which a prompt of an earlier connection, of which Copilot says nothing, counts as not sent.
const UNKNOWN_TICKS: u32 = 6;

/// What a session works with: its name, the requests under way, and the outbox.
pub(super) struct Env<'a> {
    pub(super) native: &'a NativeId,
    pub(super) fetches: &'a mut Fetches,
    pub(super) out: &'a mut Outbox,
}

/// Who waits for the reply to a request.
#[derive(Clone, Debug)]
pub(super) enum FetchFor {
    /// Whether the process lives.
    Process,
    /// The events since the cursor, by the tunnel with this connection.
    Events(u64),
    /// A prompt.
    Prompt(Ticket),
    /// An answer.
    Answer(RequestKey),
    /// A stop.
    Stop,
}

impl Env<'_> {
    pub(super) fn event(&mut self, draft: EventDraft) {
        self.out.events.push(RuntimeEvent::Event { native: Some(self.native.clone()), draft });
    }

    pub(super) fn fetch(&mut self, what: FetchFor, path: String, body: Option<&Value>) {
        self.fetches.last += 1;
        let decides = matches!(what, FetchFor::Answer(_) | FetchFor::Stop);
        self.fetches.pending.insert(self.fetches.last, (self.native.clone(), what));
        self.out.fetches.push(HttpRequest {
            id: self.fetches.last,
            base: HttpBase::Connect,
            method: if body.is_some() { "POST" } else { "GET" },
            path,
            body: body.map(|body| Bytes::from(body.to_string())),
            decides,
            session: Some(self.native.clone()),
        });
    }
}

/// A session.
pub(super) struct CopilotSession {
    pub(super) native: NativeId,
    /// The connection of its tunnel, while there is one.
    pub(super) connection: Option<u64>,
    /// The process of its terminal, and when that started.
    pub(super) process: (u32, u64),
    /// Whether the gateway has opened it.
    pub(super) opened: bool,
    /// Why it ends.
    pub(super) ending: Option<String>,
    /// What of Copilot's events is reported.
    pub(super) reported: Reported,
    /// What is reported is from before the gateway saw the session: its turns are over.
    pub(super) past: bool,
    /// A read is under way.
    pub(super) reading: bool,
    /// Events that wait until what was missed is read; `None` once it is.
    pub(super) held: Option<VecDeque<Box<RawValue>>>,
    held_bytes: usize,
    /// Events that waited were dropped.
    pub(super) overflowed: bool,
    /// Ticks since the tunnel was lost.
    absent: u32,
    pub(super) run: Option<Run>,
    /// The error that the turn failed with.
    failed: Option<String>,
    /// The turn was stopped.
    aborted: bool,
    pub(super) text: StreamedText,
    /// Copilot's name of the thoughts that stream.
    thought: Option<String>,
    pub(super) asks: BTreeMap<RequestKey, CopilotAsk>,
    prompt: Option<HeldPrompt>,
    pub(super) title: Option<String>,
    /// The last checkpoint.
    saved: String,
}

/// The turn under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// Not prompted by the gateway.
    Terminal,
    /// Prompted by the gateway.
    Ours(Ticket),
}

/// A prompt of the gateway's whose turn has not begun.
struct HeldPrompt {
    ticket: Ticket,
    text: String,
    state: PromptState,
    /// Copilot's name of it.
    message: Option<String>,
    ticks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptState {
    /// It waits until Copilot is idle.
    Waits,
    /// It is on its way, or Copilot has it.
    Sent,
    /// It was sent, and the tunnel was lost; or an earlier gateway had it.
    Unknown,
}

/// An open question.
#[derive(Default)]
pub(super) struct CopilotAsk {
    /// What it asks; unknown where an earlier gateway asked it and it was not read again.
    question: Option<CopilotQuestion>,
    /// Whether this connection's events told of it.
    pub(super) live: bool,
    /// Whether people see it.
    shown: bool,
    /// A decision that came before what it asks was read again.
    decision: Option<Decision>,
    /// The answer that was given.
    answer: Option<Value>,
    /// Whether the answer is on its way.
    sent: bool,
    /// Whether the answer was the first.
    first: Option<bool>,
    /// It is over: who decided it, if it was a person at the terminal.
    over: Option<Option<AnsweredElsewhere>>,
}

/// What is stored with a session, to go on from it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionCheckpoint {
    pub(super) process: (u32, u64),
    #[serde(skip_serializing_if = "Reported::is_none")]
    reported: Reported,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Whether a turn is under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    aborted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shown: Vec<ShownText>,
}

impl SessionCheckpoint {
    /// Reads the checkpoint of an earlier gateway.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|kept| kept.process.0 != 0)
    }
}

impl CopilotSession {
    pub(super) fn new(native: &NativeId, process: (u32, u64)) -> Self {
        Self {
            native: native.clone(),
            connection: None,
            process,
            opened: false,
            ending: None,
            reported: Reported::default(),
            past: false,
            reading: false,
            held: Some(VecDeque::new()),
            held_bytes: 0,
            overflowed: false,
            absent: 0,
            run: None,
            failed: None,
            aborted: false,
            text: StreamedText::default(),
            thought: None,
            asks: BTreeMap::new(),
            prompt: None,
            title: None,
            saved: String::new(),
        }
    }

    // === the tunnel ===

    pub(super) fn connected(&mut self, connection: u64, process: (u32, u64)) {
        (self.connection, self.process, self.absent) = (Some(connection), process, 0);
        (self.held, self.held_bytes, self.reading) = (Some(VecDeque::new()), 0, false);
    }

    /// The tunnel is lost: it may come back.
    pub(super) fn disconnected(&mut self) {
        (self.connection, self.absent, self.reading) = (None, 0, false);
        (self.held, self.held_bytes) = (Some(VecDeque::new()), 0);
        self.text.interrupted();
        self.asks.values_mut().for_each(|ask| (ask.live, ask.sent) = (false, false));
        if let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.state == PromptState::Sent) {
            (prompt.state, prompt.ticks) = (PromptState::Unknown, 0);
        }
    }

    /// Asks whether the process of its terminal lives.
    pub(super) fn look_for_process(&self, env: &mut Env<'_>) {
        env.fetch(FetchFor::Process, process_path(self.process.0, self.process.1), None);
    }

    /// A request to the extension, if it is connected.
    pub(super) fn request(&self, what: FetchFor, path: &str, body: Option<&Value>, env: &mut Env<'_>) -> bool {
        let Some(connection) = self.connection else { return false };
        env.fetch(what, tunnel_path(connection, path), body);
        true
    }

    /// An event of the tunnel.
    pub(super) fn heard(&mut self, raw: &RawValue, env: &mut Env<'_>) {
        let Some(held) = &mut self.held else { return self.event(raw, true, env) };
        if !self.opened {
            // All of it is read when it is opened.
            return;
        }
        if held.len() >= HELD_MAX || self.held_bytes + raw.get().len() > HELD_BYTES {
            held.clear();
            (self.held_bytes, self.overflowed) = (0, true);
            self.text.interrupted();
        }
        self.held_bytes += raw.get().len();
        held.push_back(owned(raw));
    }

    // === the session ===

    /// The gateway opened it. `known` is whether the log has its past.
    pub(super) fn open(&mut self, checkpoint: Option<SessionCheckpoint>, known: bool) {
        self.opened = true;
        (self.held, self.held_bytes, self.reading) = (Some(VecDeque::new()), 0, false);
        let Some(kept) = checkpoint else {
            self.past = true;
            self.reported.hide_past(known);
            return;
        };
        (self.reported, self.title) = (kept.reported, kept.title);
        (self.aborted, self.failed) = (kept.aborted, kept.failed);
        self.past = self.reported.is_none();
        self.text = StreamedText::restored(kept.shown);
        self.run = kept.run.then_some(Run::Terminal);
    }

    /// The work that an earlier gateway had under way in it.
    pub(super) fn carry(&mut self, asks: &[RequestKey], prompt: Option<(Ticket, String)>) {
        for key in asks {
            self.asks.entry(key.clone()).or_default().shown = true;
        }
        if let Some((ticket, text)) = prompt {
            if self.run.is_some() {
                self.run = Some(Run::Ours(ticket));
            } else {
                let state = PromptState::Unknown;
                self.prompt = Some(HeldPrompt { ticket, text, state, message: None, ticks: 0 });
            }
        }
    }

    /// Stores how far it is reported, if that is news.
    pub(super) fn checkpoint(&mut self, env: &mut Env<'_>) {
        if !self.opened {
            return;
        }
        let kept = SessionCheckpoint {
            process: self.process,
            reported: self.reported.clone(),
            title: self.title.clone(),
            run: self.run.is_some(),
            aborted: self.aborted,
            failed: self.failed.clone(),
            shown: self.text.saved(),
        };
        let state = serde_json::to_string(&kept).unwrap_or_default();
        if state != self.saved {
            self.saved.clone_from(&state);
            env.out.events.push(RuntimeEvent::Checkpoint { native: env.native.clone(), state });
        }
    }

    /// The session is over.
    pub(super) fn close(&mut self, env: &mut Env<'_>) {
        self.end_run(RunStatus::Cancelled, env);
        if let Some(prompt) = self.prompt.take() {
            self.end_prompt(prompt.ticket, "its terminal was closed before it took the prompt", env);
        }
    }

    /// The keys of the questions that wait for an answer.
    pub(super) fn open_asks(&self) -> impl Iterator<Item = RequestKey> {
        self.asks
            .iter()
            .filter(|(_, ask)| ask.shown && ask.answer.is_none() && ask.decision.is_none())
            .map(|(key, _)| key.clone())
    }

    /// The prompts that have not ended.
    pub(super) fn prompts(&self) -> impl Iterator<Item = Ticket> {
        let running = self.run.and_then(|run| if let Run::Ours(ticket) = run { Some(ticket) } else { None });
        running.into_iter().chain(self.prompt.as_ref().map(|prompt| prompt.ticket))
    }

    /// Whether it is to be looked at again.
    pub(super) fn waits(&self) -> bool {
        self.opened && (self.connection.is_none() || self.held.is_some() || self.prompt.is_some())
    }

    // === events ===

    /// Applies an event. One that Copilot keeps is applied once, `live` or read.
    pub(super) fn event(&mut self, raw: &RawValue, live: bool, env: &mut Env<'_>) {
        let native = Bytes::copy_from_slice(raw.get().as_bytes());
        let Some(event) = object::<CopilotEvent<'_>>(raw) else {
            return env.event(EventDraft::raw(native, "an event of Copilot that could not be read"));
        };
        let kept = !event.ephemeral;
        if let Some(id) = event.id.as_deref().filter(|_| kept)
            && !self.reported.is_new(id, live)
        {
            return;
        }
        if self.apply(&event, live, &native, env).is_none() {
            env.event(EventDraft::raw(native, "an event of Copilot that could not be read"));
        }
        if live && self.reported.is_long() {
            self.read(env);
        }
    }

    /// Applies an event; `None` if it could not be read.
    fn apply(&mut self, event: &CopilotEvent<'_>, live: bool, native: &Bytes, env: &mut Env<'_>) -> Option<()> {
        let data = event.data.unwrap_or(RawValue::NULL);
        match event.sort.as_ref() {
            "permission.requested" => {
                let asked = object::<PermissionRequested<'_>>(data)?;
                let prompt = asked.prompt_request.or(asked.permission_request)?;
                // Of those that were read, the ones that are still open are told with how the session stands.
                if live && !asked.resolved_by_hook {
                    let question = CopilotQuestion::Permission { prompt: owned(prompt) };
                    self.ask(&asked.request_id, question, true, env);
                }
            }
            "permission.completed" => {
                let done = object::<PermissionCompleted>(data)?;
                self.over(&done.request_id, decided_by(&done), env);
            }
            "elicitation.requested" => {
                let question = CopilotQuestion::Form { data: owned(data) };
                self.ask(&object::<FormData>(data)?.request_id, question, true, env);
            }
            "elicitation.completed" => {
                let done = object::<QuestionCompleted>(data)?;
                // Only the terminal can have answered it, or the gateway.
                let by = AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: None };
                self.over(&done.request_id, Some(by), env);
            }
            "session.idle" => self.idle(object::<SessionIdle>(data).unwrap_or_default().aborted, env),
            "session.title_changed" => self.titled(&object::<TitleChanged>(data)?.title, env),
            "session.error" => {
                let failure = object::<SessionFailure>(data)?;
                if self.run.is_some() {
                    self.failed = Some(drafts::cut(&failure.message, FAILURE_MAX));
                } else if !self.past {
                    env.event(drafts::error("copilot", &failure.message));
                }
            }
            "abort" => self.aborted = self.run.is_some(),
            "assistant.usage" => {
                let (report, native) = (SpendReport::step(object::<CallUsage>(data)?.spending()), env.native.clone());
                env.out.events.extend(report.map(|report| RuntimeEvent::Spent { native, report }));
            }
            // What a subagent does is Copilot's own affair, except for what it asks.
            _ if event.of_subagent() => {}
            "user.message" => self.prompted(object(data)?, native, env),
            sort => return self.said(sort, data, native, env),
        }
        Some(())
    }

    /// Applies what the agent says and does; `None` if it could not be read.
    fn said(&mut self, sort: &str, data: &RawValue, native: &Bytes, env: &mut Env<'_>) -> Option<()> {
        match sort {
            "assistant.message_start" => {
                self.text.start(&object::<MessageStart>(data).filter(|start| is_id(&start.message_id))?.message_id);
            }
            "assistant.message_delta" => {
                let MessageDelta { message_id, delta_content } = object(data)?;
                if self.text.piece(&message_id, &delta_content) {
                    self.working(env);
                    env.event(drafts::chunk(Kind::AgentMessageChunk, &delta_content, &message_id, None));
                }
            }
            "assistant.reasoning_delta" => {
                let ReasoningDelta { reasoning_id, delta_content } = object(data)?;
                if !is_id(&reasoning_id) {
                    return None;
                }
                if self.text.thought(&delta_content) {
                    self.working(env);
                    env.event(drafts::chunk(Kind::AgentThoughtChunk, &delta_content, &reasoning_id, None));
                    self.thought = Some(reasoning_id);
                }
            }
            "assistant.message" => {
                let WholeMessage { message_id, content, reasoning_text } = object(data)?;
                if !is_id(&message_id) {
                    return None;
                }
                self.working(env);
                let thought = self.thought.take().unwrap_or_else(|| format!("{message_id}-thoughts"));
                if let Some(rest) = reasoning_text.as_deref().and_then(|text| self.text.whole_thought(text)) {
                    env.event(drafts::chunk(Kind::AgentThoughtChunk, rest, &thought, Some(native)));
                }
                self.text.end_thought();
                if let Some(rest) = self.text.whole(&message_id, &content) {
                    env.event(drafts::chunk(Kind::AgentMessageChunk, rest, &message_id, Some(native)));
                }
            }
            "tool.execution_start" => {
                self.working(env);
                env.event(drafts::tool_call(&object::<ToolStart<'_>>(data)?, native));
            }
            "tool.execution_complete" => env.event(drafts::tool_end(&object::<ToolEnd>(data)?, native)),
            _ => {}
        }
        Some(())
    }

    pub(super) fn titled(&mut self, title: &str, env: &mut Env<'_>) {
        let title = drafts::shortened(title.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim());
        if !title.is_empty() && self.title.as_ref() != Some(&title) {
            self.title = Some(title.clone());
            env.event(drafts::title(title));
        }
    }

    // === turns ===

    fn prompted(&mut self, message: UserMessage, native: &Bytes, env: &mut Env<'_>) {
        let ours = |prompt: &mut HeldPrompt| match (&prompt.message, &message.message_id) {
            _ if prompt.state == PromptState::Waits => false,
            (Some(sent), Some(begun)) => sent == begun,
            // Its reply is on its way, or was lost.
            _ => prompt.text.trim() == message.content.trim(),
        };
        if let Some(prompt) = self.prompt.take_if(ours) {
            self.end_run(RunStatus::Completed, env);
            self.run = Some(Run::Ours(prompt.ticket));
            return;
        }
        // Hidden messages (of skills, of Copilot itself) are said to the agent alone.
        let by_person = message.source.as_deref().is_none_or(|source| source == "user");
        let by_person = by_person && !message.is_autopilot_continuation;
        if message.delivery.as_deref() != Some("steering") {
            self.end_run(RunStatus::Completed, env);
        }
        if self.run.is_none() {
            self.begin(if by_person { AT_TERMINAL } else { BY_AGENT }, env);
        }
        if by_person {
            let id = message.message_id.unwrap_or_default();
            env.event(drafts::chunk(Kind::UserMessageChunk, &message.content, &id, Some(native)));
        }
    }

    /// The agent does something: a turn is under way.
    fn working(&mut self, env: &mut Env<'_>) {
        if self.run.is_none() {
            self.begin(BY_AGENT, env);
        }
    }

    pub(super) fn begin(&mut self, by: &str, env: &mut Env<'_>) {
        self.run = Some(Run::Terminal);
        if !self.past {
            env.out.events.push(RuntimeEvent::Began { native: env.native.clone(), by: by.into() });
        }
    }

    /// The agent waits for a prompt.
    fn idle(&mut self, aborted: bool, env: &mut Env<'_>) {
        self.aborted |= aborted;
        self.end_run(RunStatus::Completed, env);
        self.deliver(env);
    }

    pub(super) fn end_run(&mut self, status: RunStatus, env: &mut Env<'_>) {
        let (failed, aborted) = (self.failed.take(), std::mem::take(&mut self.aborted));
        let Some(run) = self.run.take() else { return };
        self.text.turn_over();
        let status = match (&failed, aborted) {
            (_, true) => RunStatus::Cancelled,
            (Some(_), false) => RunStatus::Error,
            (None, false) => status,
        };
        let end = RunEnd { status, stop_reason: None, message: failed, native: None };
        let native = env.native.clone();
        match run {
            Run::Ours(ticket) => env.out.events.push(RuntimeEvent::Ended { native, ticket, end }),
            Run::Terminal if !self.past => env.out.events.push(RuntimeEvent::Done { native, end }),
            Run::Terminal => {}
        }
    }

    // === prompts ===

    /// A prompt of the gateway's.
    pub(super) fn start(&mut self, ticket: Ticket, text: String, env: &mut Env<'_>) {
        let state = PromptState::Waits;
        self.prompt = Some(HeldPrompt { ticket, text, state, message: None, ticks: 0 });
        self.deliver(env);
    }

    /// Sends a waiting prompt, once Copilot is idle.
    pub(super) fn deliver(&mut self, env: &mut Env<'_>) {
        if self.run.is_some() || self.held.is_some() {
            return;
        }
        let Some(prompt) = self.prompt.as_ref().filter(|prompt| prompt.state == PromptState::Waits) else { return };
        let body = serde_json::json!({ "prompt": prompt.text });
        if self.request(FetchFor::Prompt(prompt.ticket), "/send", Some(&body), env)
            && let Some(prompt) = &mut self.prompt
        {
            (prompt.state, prompt.ticks) = (PromptState::Sent, 0);
        }
    }

    fn end_prompt(&self, ticket: Ticket, why: &str, env: &mut Env<'_>) {
        let end = RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(why.into()), native: None };
        env.out.events.push(RuntimeEvent::Ended { native: env.native.clone(), ticket, end });
    }

    /// Stops the turn under way, or takes back the prompt that waits.
    pub(super) fn cancel(&mut self, ticket: Option<Ticket>, env: &mut Env<'_>) {
        let waits = |prompt: &mut HeldPrompt| Some(prompt.ticket) == ticket && prompt.state == PromptState::Waits;
        if let Some(prompt) = self.prompt.take_if(waits) {
            let end = RunEnd { status: RunStatus::Cancelled, stop_reason: None, message: None, native: None };
            let native = env.native.clone();
            return env.out.events.push(RuntimeEvent::Ended { native, ticket: prompt.ticket, end });
        }
        if !self.request(FetchFor::Stop, "/abort", Some(&serde_json::json!({})), env) {
            env.event(drafts::error("cannot_cancel", "the terminal is not connected: press Esc in it"));
        }
    }

    // === questions ===

    /// A question is open.
    pub(super) fn ask(&mut self, id: &str, question: CopilotQuestion, live: bool, env: &mut Env<'_>) {
        let key = RequestKey::unique(id);
        let known = self.asks.contains_key(&key);
        if !is_id(id) || (!known && self.asks.len() >= ASKS_MAX) {
            return;
        }
        let others = self.asks.iter().filter(|(other, _)| **other != key);
        let bytes: usize = others.filter_map(|(_, ask)| Some(ask.question.as_ref()?.length())).sum();
        if bytes + question.length() > ASKS_BYTES {
            let message = "a question is too long to be shown: it can only be answered at the terminal";
            return env.event(drafts::error("question_too_long", message));
        }
        if live {
            self.working(env);
        }
        let ask = self.asks.entry(key.clone()).or_default();
        ask.live |= live;
        if !std::mem::replace(&mut ask.shown, true) {
            let asked = Box::new(question.request(&key));
            env.out.events.push(RuntimeEvent::Asked { native: Some(env.native.clone()), ask: asked });
        }
        ask.question = Some(question);
        match ask.decision.take() {
            Some(decision) => self.answer(&key, &decision, env),
            None => self.give(&key, env),
        }
    }

    /// The decision on a question.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, env: &mut Env<'_>) {
        let Some(ask) = self.asks.get_mut(key) else { return };
        let Some(question) = &ask.question else {
            ask.decision = Some(decision.clone());
            return;
        };
        match question.answer(decision) {
            Ok(Some(answer)) => {
                ask.answer = Some(answer);
                self.give(key, env);
            }
            // The terminal's own dialog decides.
            Ok(None) => _ = self.asks.remove(key),
            Err(why) => {
                let ask = Box::new(question.once_more(key, &why, decision));
                env.out.events.push(RuntimeEvent::Asked { native: Some(env.native.clone()), ask });
            }
        }
    }

    /// Sends an answer that was given.
    pub(super) fn give(&mut self, key: &RequestKey, env: &mut Env<'_>) {
        let Some(ask) = self.asks.get(key) else { return };
        let (Some(question), Some(answer), false) = (&ask.question, &ask.answer, ask.sent) else { return };
        let sent = self.request(FetchFor::Answer(key.clone()), &question.path(key), Some(answer), env);
        if let Some(ask) = self.asks.get_mut(key) {
            ask.sent = sent;
        }
    }

    /// A question is over.
    pub(super) fn over(&mut self, id: &str, by: Option<AnsweredElsewhere>, env: &mut Env<'_>) {
        let key = RequestKey::unique(id);
        if let Some(ask) = self.asks.get_mut(&key) {
            ask.over = Some(by);
            self.settle(&key, env);
        }
    }

    /// Reports the end of a question, once it is known who was first.
    pub(super) fn settle(&mut self, key: &RequestKey, env: &mut Env<'_>) {
        let Some(ask) = self.asks.get(key) else { return };
        let form = matches!(ask.question, Some(CopilotQuestion::Form { .. }));
        let (native, key) = (Some(env.native.clone()), key.clone());
        let end = match (&ask.over, ask.answer.is_some(), ask.first) {
            (Some(elsewhere), false, _) => {
                let elsewhere = elsewhere.clone();
                Some(RuntimeEvent::TakenBack { native, key: key.clone(), elsewhere })
            }
            // Copilot says that it was a person at the terminal; of forms it does not say who it was.
            (Some(Some(elsewhere)), true, first) if !form || first == Some(false) => {
                Some(RuntimeEvent::AnswerLost { native, key: key.clone(), elsewhere: elsewhere.clone() })
            }
            (Some(None), true, Some(false)) => {
                let elsewhere = AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: None };
                Some(RuntimeEvent::AnswerLost { native, key: key.clone(), elsewhere })
            }
            (Some(_), true, Some(true)) => None,
            // The reply to the answer says who was first.
            (Some(_), true, _) if ask.sent => return,
            (Some(_), true, _) => None,
            (None, _, _) => return,
        };
        self.asks.remove(&key);
        env.out.events.extend(end);
    }

    /// A question is no longer open, and no event told who decided it.
    pub(super) fn gone(&mut self, key: &RequestKey, by: AnsweredElsewhere, env: &mut Env<'_>) {
        // An answer that was sent was taken: its reply was lost.
        if let Some(ask) = self.asks.remove(key).filter(|ask| ask.answer.is_none()) {
            let (native, key) = (Some(env.native.clone()), key.clone());
            let elsewhere = Some(by).filter(|_| ask.shown);
            env.out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere });
        }
    }

    // === replies ===

    /// The reply to a request.
    pub(super) fn replied(&mut self, what: FetchFor, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        match what {
            FetchFor::Process => {
                if matches!(reply, Ok(HttpReply { status: 404, .. })) && self.connection.is_none() {
                    self.ending.get_or_insert_with(|| CLOSED.to_owned());
                }
            }
            FetchFor::Events(connection) => {
                // One of an earlier connection has been asked again since.
                if self.connection == Some(connection) {
                    self.page(reply, env);
                }
            }
            FetchFor::Prompt(ticket) => self.prompt_taken(ticket, reply, env),
            FetchFor::Answer(key) => self.answer_taken(&key, reply, env),
            FetchFor::Stop => {
                if let Some(why) = problem(&reply) {
                    env.event(drafts::error("cannot_cancel", &format!("the turn was not stopped: {why}")));
                }
            }
        }
    }

    fn prompt_taken(&mut self, ticket: Ticket, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) else { return };
        let taken = reply.as_ref().ok().and_then(|reply| serde_json::from_slice::<PromptTaken>(&reply.body).ok());
        match (taken, self.connection) {
            (Some(PromptTaken { message_id }), _) => prompt.message = Some(message_id),
            // It may have it.
            (None, None) => {}
            (None, Some(_)) => {
                let why = problem(&reply).unwrap_or_else(|| "its reply could not be read".into());
                self.prompt = None;
                self.end_prompt(ticket, &format!("Copilot did not take the prompt: {why}"), env);
            }
        }
    }

    fn answer_taken(&mut self, key: &RequestKey, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        let connected = self.connection.is_some();
        let Some(ask) = self.asks.get_mut(key) else { return };
        let taken = reply.as_ref().ok().and_then(|reply| serde_json::from_slice::<AnswerTaken>(&reply.body).ok());
        match taken {
            Some(AnswerTaken { success }) => {
                ask.first = Some(success);
                self.settle(key, env);
            }
            None => {
                ask.sent = false;
                if ask.over.is_some() {
                    return self.settle(key, env);
                }
                if !connected {
                    // It is sent again when the tunnel is back, if the question is still open.
                    return;
                }
                let why = problem(&reply).unwrap_or_else(|| "its reply could not be read".into());
                env.event(drafts::error("answer_failed", &format!("Copilot did not take the answer: {why}")));
                ask.answer = None;
                if let Some(question) = &ask.question {
                    let asked = Box::new(question.request(key));
                    env.out.events.push(RuntimeEvent::Asked { native: Some(env.native.clone()), ask: asked });
                }
            }
        }
    }

    // === time ===

    /// Time has passed.
    pub(super) fn tick(&mut self, env: &mut Env<'_>) {
        if self.connection.is_none() {
            self.absent += 1;
            if self.absent > ABSENT_MAX {
                self.ending.get_or_insert_with(|| UNREACHED.to_owned());
            }
            return;
        }
        if self.held.is_some() {
            return self.read(env);
        }
        let idle = self.run.is_none();
        if let Some(prompt) = self.prompt.as_mut().filter(|_| idle) {
            prompt.ticks += 1;
            match prompt.state {
                PromptState::Sent if prompt.ticks >= TAKEN_TICKS => {
                    let ticket = prompt.ticket;
                    self.prompt = None;
                    self.end_prompt(ticket, "Copilot took the prompt back out of its queue", env);
                }
                PromptState::Unknown if prompt.ticks >= UNKNOWN_TICKS => {
                    (prompt.state, prompt.ticks) = (PromptState::Waits, 0);
                }
                _ => {}
            }
        }
        self.deliver(env);
    }
}

/// Who decided on a permission, if it was a person at the terminal.
fn decided_by(done: &PermissionCompleted) -> Option<AnsweredElsewhere> {
    if done.decision_source.as_deref() != Some("human_response") {
        return None;
    }
    let option = match done.result.as_ref()?.kind.as_str() {
        "approved" => Some(ONCE),
        "approved-for-session" => Some(SESSION),
        "denied-interactively-by-user" => Some(REJECT),
        _ => None,
    };
    Some(AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: option.map(Into::into) })
}

/// What is wrong with a reply, in words.
fn problem(reply: &Result<HttpReply, String>) -> Option<String> {
    match reply {
        Ok(HttpReply { status: 200, .. }) => None,
        Ok(HttpReply { status, .. }) => Some(format!("the extension answered with {status}")),
        Err(why) => Some(why.clone()),
    }
}

/// A form that is open, and its id.
pub(super) fn form_question(data: &RawValue) -> Option<(String, CopilotQuestion)> {
    let id = object::<FormData>(data)?.request_id;
    Some((id, CopilotQuestion::Form { data: owned(data) }))
}
