//! A session of Copilot in its terminal. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ask::{APPROVE_ONCE, CopilotQuestion, FormData, REJECT, SESSION, is_id};
use super::events::{
    CopilotEvent, ExtensionHello, MessageDelta, MessageStart, PermissionCompleted, PermissionRequested, PromptTaken,
    QuestionCompleted, ReasoningDelta, SessionFailure, SessionIdle, TitleChanged, ToolStart, UserMessage, WholeMessage,
    call_spending,
};
use super::open_question::OpenQuestion;
use super::reported::{HELD_MAX, Reported};
use super::text::{DisplayedText, StreamedText};
use super::tools::{TOOLS, tool_end};
use crate::terminals::dialect::{CLOSED, LinkedTerminals, Message, TerminalAgent, release};
use crate::terminals::drafts;
use crate::terminals::output::{AT_TERMINAL, SessionOutput, at_terminal};
use crate::terminals::session::{OpenedSession, PromptLimits, PromptState, SessionState, Turn, WaitingPrompt};
use plexus_dialects::jsonrpc::{object, owned};
use plexus_dialects::link::{HelperExit, HelperRole, tunnel_path};
use plexus_dialects::{AnsweredElsewhere, EventDraft, HttpReply, Outbox, RequestKey, RunEnd};
use plexus_protocol::{Capability, Decision, Kind, NativeId, RunStatus, SpendReport, Ticket};

/// The author of a turn without a prompt.
const BY_AGENT: &str = "Copilot";
/// The reason for an event that is forwarded unchanged.
const UNREADABLE: &str = "an event of Copilot that could not be read";
/// The reason why a session ends if its terminal runs but does not answer.
const UNREACHED: &str = "its terminal no longer answers";
/// The reason why a session ends if its terminal has another one now.
const SESSION_LEFT: &str = "another session began in its terminal";

/// Maximum length of a stored error, in characters.
const FAILURE_MAX: usize = 4096;
/// Maximum size of the events that wait until missed events are read, in bytes. Above it, or above [`HELD_MAX`] events,
/// the waiting ones are dropped, and read later if Copilot stores them.
const HELD_BYTES: usize = 4 << 20;

/// Number of ticks that a tunnel may be absent before its session ends. An extension reconnects twice a second.
pub(super) const ABSENT_MAX: u32 = 20;
/// Number of ticks that a prompt may take from Copilot's reply to its turn, while Copilot is idle; and after which a
/// prompt of an earlier connection that Copilot does not report counts as not sent.
const PROMPT_LIMITS: PromptLimits = PromptLimits { waiting: u32::MAX, sent: 60, unknown: 6 };

pub(super) type Output<'a> = SessionOutput<'a, CopilotRequest>;

/// The purpose of a request.
#[derive(Clone, Debug)]
pub(crate) enum CopilotRequest {
    /// A read of the events since the cursor, by the tunnel with this connection.
    Events(u64),
    Prompt(Ticket),
    Answer(RequestKey),
    Cancel,
}

/// A terminal in which Copilot runs.
#[derive(Default)]
pub(crate) struct CopilotTerminal {
    pub(super) session: SessionState,
    /// The connection of the tunnel, while there is one.
    pub(super) connection: Option<u64>,
    pub(super) reported: Reported,
    /// `true` while events from before the gateway saw the session are reported, whose turns have ended.
    pub(super) past: bool,
    pub(super) reading: bool,
    /// `true` once missed events are read: further events are applied at once.
    pub(super) live: bool,
    /// Events that wait until missed events are read.
    pub(super) held: VecDeque<Box<RawValue>>,
    held_bytes: usize,
    /// `true` if waiting events were dropped.
    pub(super) overflowed: bool,
    /// Ticks since the tunnel was lost.
    absent_ticks: u32,
    /// `true` if the turn was stopped.
    aborted: bool,
    pub(super) text: StreamedText,
    /// Copilot's name of the thoughts in progress.
    thought: Option<String>,
    pub(super) questions: BTreeMap<RequestKey, OpenQuestion>,
    /// Copilot's name of the gateway's prompt.
    prompt_message: Option<String>,
    pub(super) title: Option<String>,
}

/// The checkpoint of a session.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    process: (u32, u64),
    #[serde(skip_serializing_if = "Reported::is_none")]
    reported: Reported,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// `true` while a turn is in progress.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    aborted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(rename = "shown", skip_serializing_if = "Vec::is_empty")]
    messages: Vec<DisplayedText>,
}

impl Checkpoint {
    fn read(text: &str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|checkpoint| checkpoint.process.0 != 0)
    }
}

impl TerminalAgent for CopilotTerminal {
    type Request = CopilotRequest;

    const NAME: &'static str = "Copilot (terminal)";
    const TICK: Duration = Duration::from_millis(500);
    const TERMINALS_MAX: usize = 256;
    const CAPABILITIES: &'static [Capability] = &[Capability::Cancel, Capability::Requests, Capability::Reasons];
    const HOW_TO_START: &'static str =
        "a terminal is started by hand: run `copilot` in the folder, and its session appears";
    const HOW_TO_RESUME: &'static str = "the terminal of this session is not open: run `copilot --resume` in it";

    fn message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox) {
        let Message { connection, hello, process, event } = message;
        let (connection, process) = (*connection, *process);
        if let Some(id) = terminals.find(|terminal| terminal.connection == Some(connection)) {
            terminals.step(&id, out, |terminal, out| terminal.tunnel_event(event, out));
            return;
        }
        let opening = object::<ExtensionHello>(event).filter(|_| hello.role == HelperRole::Tunnel);
        let opening = opening.filter(|opening| !opening.session.is_empty() && process.1 != 0);
        let Some(ExtensionHello { session, cwd }) = opening else {
            // The beginning was sent on an earlier connection of the driver: the extension sends it again.
            return release(connection, out);
        };
        let native = NativeId::from(session.as_str());
        if !terminals.has_capacity_for(&native) {
            return release(connection, out);
        }
        // A terminal shows one session at a time: the extension of the previous one has ended.
        let is_left = |terminal: &Self| {
            let SessionState { process: of, native: other, .. } = &terminal.session;
            *of == process && terminal.connection.is_none() && other.as_ref() != Some(&native)
        };
        terminals.end_all(is_left, SESSION_LEFT, out);
        terminals.finish_step(out);
        let Some(terminal) = terminals.get_or_create(&native) else { return release(connection, out) };
        terminal.session.native = Some(native.clone());
        terminals.step(&native, out, |terminal, out| {
            if let Some(old) = terminal.connection {
                out.release(old, HelperExit::default());
                terminal.tunnel_lost();
            }
            terminal.connected(connection, process);
            if terminal.session.opened {
                terminal.read(out);
            } else {
                out.found(&cwd);
            }
        });
    }

    fn session(&self) -> &SessionState {
        &self.session
    }

    fn session_mut(&mut self) -> &mut SessionState {
        &mut self.session
    }

    fn open(&mut self, opened: OpenedSession<'_>, _: &mut Output<'_>) {
        self.hold_events();
        self.reading = false;
        match opened.checkpoint.and_then(Checkpoint::read) {
            Some(checkpoint) => {
                (self.reported, self.title) = (checkpoint.reported, checkpoint.title);
                (self.aborted, self.session.failure) = (checkpoint.aborted, checkpoint.failed);
                self.past = self.reported.is_none();
                self.text = StreamedText::restored(checkpoint.messages);
                self.session.turn = checkpoint.run.then_some(Turn::Terminal);
            }
            None => {
                self.past = true;
                self.reported.hide_past(opened.known);
            }
        }
        let Some(pending) = opened.pending else { return };
        for key in pending.questions {
            self.questions.entry(key.clone()).or_default().visible = true;
        }
        if pending.prompt.is_some() {
            self.prompt_message = None;
        }
        self.session.restore_prompt(pending.prompt, PromptState::Unknown);
    }

    fn save(&mut self, out: &mut Output<'_>) {
        let checkpoint = Checkpoint {
            process: self.session.process,
            reported: self.reported.clone(),
            title: self.title.clone(),
            run: self.session.turn.is_some(),
            aborted: self.aborted,
            failed: self.session.failure.clone(),
            messages: self.text.saved(),
        };
        self.session.save(&checkpoint, out);
    }

    /// Reads the events since the cursor, unless a read is in progress.
    fn read(&mut self, out: &mut Output<'_>) {
        let Some(connection) = self.connection.filter(|_| self.session.opened && !self.reading) else { return };
        self.reading = self.request(CopilotRequest::Events(connection), &self.reported.path(), None, out);
    }

    fn is_active(&self) -> bool {
        self.session.opened && (self.connection.is_none() || !self.live || self.session.prompt.is_some())
    }

    /// Returns `true` also while the session is not open: the tunnel may be absent.
    fn needs_ticks(&self) -> bool {
        true
    }

    fn tick(&mut self, out: &mut Output<'_>) {
        if self.connection.is_none() {
            self.absent_ticks += 1;
            if self.absent_ticks > ABSENT_MAX {
                self.end(UNREACHED, out);
            }
            return;
        }
        if !self.live {
            return self.read(out);
        }
        if self.session.turn.is_none() && self.session.tick_prompt(&PROMPT_LIMITS).is_some() {
            self.session.end_prompt(RunStatus::Error, Some("Copilot removed the prompt from its queue"), out);
        }
        self.send_prompt(out);
    }

    fn reply(&mut self, request: CopilotRequest, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        match request {
            CopilotRequest::Events(connection) => {
                // A request of an earlier connection has been made again since.
                if self.connection == Some(connection) {
                    self.page(reply, out);
                }
            }
            CopilotRequest::Prompt(ticket) => self.prompt_reply(ticket, &reply, out),
            CopilotRequest::Answer(key) => self.answer_reply(&key, &reply, out),
            CopilotRequest::Cancel => {
                if !matches!(reply, Ok(HttpReply { status: 200, .. })) {
                    out.error("cannot_cancel", &format!("the turn was not stopped: {}", problem(&reply)));
                }
            }
        }
    }

    fn open_questions(&self) -> Vec<RequestKey> {
        let is_waiting =
            |question: &OpenQuestion| question.visible && question.answer.is_none() && question.decision.is_none();
        self.questions.iter().filter(|(_, question)| is_waiting(question)).map(|(key, _)| key.clone()).collect()
    }

    fn has_question(&self, key: &RequestKey) -> bool {
        self.questions.contains_key(key)
    }

    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        self.decide(key, decision, out);
    }

    fn prompt(&mut self, ticket: Ticket, text: String, out: &mut Output<'_>) -> Result<(), String> {
        self.session.set_prompt(ticket, text);
        self.prompt_message = None;
        self.send_prompt(out);
        Ok(())
    }

    /// Stops the turn in progress, or takes back the prompt that waits.
    fn cancel(&mut self, ticket: Option<Ticket>, out: &mut Output<'_>) -> bool {
        let prompt = self.session.prompt.as_ref();
        if prompt.is_some_and(|prompt| Some(prompt.ticket) == ticket && prompt.state == PromptState::Waiting) {
            self.session.end_prompt(RunStatus::Cancelled, None, out);
        } else if !self.request(CopilotRequest::Cancel, "/abort", Some(&json!({})), out) {
            out.error("cannot_cancel", "the terminal is not connected: press Esc in it");
        }
        true
    }

    fn disconnected(&mut self, connection: u64) -> bool {
        let own = self.connection == Some(connection);
        if own {
            self.tunnel_lost();
        }
        own
    }

    fn process_missing(&mut self, out: &mut Output<'_>) {
        if self.connection.is_none() {
            self.end(CLOSED, out);
        }
    }

    /// Ends the session: events that the tunnel did not report are lost.
    fn end(&mut self, reason: &str, _: &mut Output<'_>) {
        self.session.ending.get_or_insert_with(|| reason.to_owned());
        self.session.finished = true;
    }

    fn close(&mut self, out: &mut Output<'_>) {
        if self.session.opened {
            self.end_turn(RunStatus::Cancelled, out);
            let reason = "its terminal was closed before it accepted the prompt";
            self.session.end_prompt(RunStatus::Error, Some(reason), out);
        }
        if let Some(connection) = self.connection {
            out.release(connection, HelperExit::default());
        }
    }
}

impl CopilotTerminal {
    // === the tunnel ===

    /// Holds events back until missed events are read.
    fn hold_events(&mut self) {
        (self.live, self.held_bytes) = (false, 0);
        self.held.clear();
    }

    fn connected(&mut self, connection: u64, process: (u32, u64)) {
        (self.connection, self.session.process, self.absent_ticks) = (Some(connection), process, 0);
        self.hold_events();
        self.reading = false;
    }

    /// Handles the loss of the tunnel, which may come back.
    fn tunnel_lost(&mut self) {
        (self.connection, self.absent_ticks, self.reading) = (None, 0, false);
        self.hold_events();
        self.text.interrupted();
        self.questions.values_mut().for_each(|question| (question.live, question.sent) = (false, false));
        if let Some(prompt) = self.session.prompt.as_mut().filter(|prompt| prompt.state == PromptState::Sent) {
            (prompt.state, prompt.ticks) = (PromptState::Unknown, 0);
        }
    }

    /// Sends a request to the extension. Returns whether it is connected.
    pub(super) fn request(
        &self,
        purpose: CopilotRequest,
        path: &str,
        body: Option<&Value>,
        out: &mut Output<'_>,
    ) -> bool {
        let Some(connection) = self.connection else { return false };
        let path = tunnel_path(connection, path);
        match body {
            None => out.get(purpose, path),
            Some(body) => {
                let decides = matches!(purpose, CopilotRequest::Answer(_) | CopilotRequest::Cancel);
                out.post(purpose, path, Some(body.to_string().into()), decides);
            }
        }
        true
    }

    fn tunnel_event(&mut self, raw: &RawValue, out: &mut Output<'_>) {
        if self.live {
            return self.event(raw, true, out);
        }
        if !self.session.opened {
            // The whole session is read when it is opened.
            return;
        }
        if self.held.len() >= HELD_MAX || self.held_bytes + raw.get().len() > HELD_BYTES {
            self.held.clear();
            (self.held_bytes, self.overflowed) = (0, true);
            self.text.interrupted();
        }
        self.held_bytes += raw.get().len();
        self.held.push_back(owned(raw));
    }

    // === events ===

    /// Applies an event, `live` or read. An event that Copilot stores is applied once.
    pub(super) fn event(&mut self, raw: &RawValue, live: bool, out: &mut Output<'_>) {
        let native = Bytes::copy_from_slice(raw.get().as_bytes());
        let Some(event) = object::<CopilotEvent<'_>>(raw) else {
            return out.event(EventDraft::raw(native, UNREADABLE));
        };
        if let Some(id) = event.id.as_deref().filter(|_| !event.ephemeral)
            && !self.reported.is_new(id, live)
        {
            return;
        }
        if self.apply(&event, live, &native, out).is_none() {
            out.event(EventDraft::raw(native, UNREADABLE));
        }
        if live && self.reported.is_long() {
            self.read(out);
        }
    }

    /// Applies an event; returns `None` if it could not be read.
    fn apply(&mut self, event: &CopilotEvent<'_>, live: bool, native: &Bytes, out: &mut Output<'_>) -> Option<()> {
        let data = event.data.unwrap_or(RawValue::NULL);
        match event.type_name.as_ref() {
            "permission.requested" => {
                let requested = object::<PermissionRequested<'_>>(data)?;
                let prompt = requested.prompt_request.or(requested.permission_request)?;
                // After a read, the requests that are still open are reported with the state of the session.
                if live && !requested.resolved_by_hook {
                    let question = CopilotQuestion::Permission { prompt: owned(prompt) };
                    self.ask(&requested.request_id, question, true, out);
                }
            }
            "permission.completed" => {
                let completed = object::<PermissionCompleted>(data)?;
                self.question_ended(&completed.request_id, decided_by(&completed), out);
            }
            "elicitation.requested" => {
                let question = CopilotQuestion::Form { data: owned(data) };
                self.ask(&object::<FormData>(data)?.request_id, question, true, out);
            }
            "elicitation.completed" => {
                let completed = object::<QuestionCompleted>(data)?;
                // The question can only have been answered at the terminal, or by the gateway.
                self.question_ended(&completed.request_id, Some(at_terminal(None)), out);
            }
            "session.idle" => self.idle(object::<SessionIdle>(data).unwrap_or_default().aborted, out),
            "session.title_changed" => self.set_title(&object::<TitleChanged>(data)?.title, out),
            "session.error" => {
                let failure = object::<SessionFailure>(data)?;
                if self.session.turn.is_some() {
                    self.session.failure = Some(drafts::cut(&failure.message, FAILURE_MAX));
                } else if !self.past {
                    out.error("copilot", &failure.message);
                }
            }
            "abort" => self.aborted = self.session.turn.is_some(),
            "assistant.usage" => out.spent(SpendReport::step(call_spending(data)?)),
            // The events of a subagent are not shown, except its questions.
            _ if event.is_from_subagent() => {}
            "user.message" => self.prompt_event(object(data)?, native, out),
            kind => return self.agent_event(kind, data, native, out),
        }
        Some(())
    }

    /// Applies the text and tool calls of the agent; returns `None` if they could not be read.
    fn agent_event(&mut self, kind: &str, data: &RawValue, native: &Bytes, out: &mut Output<'_>) -> Option<()> {
        match kind {
            "assistant.message_start" => {
                self.text.start(&object::<MessageStart>(data).filter(|start| is_id(&start.message_id))?.message_id);
            }
            "assistant.message_delta" => {
                let MessageDelta { message_id, delta_content } = object(data)?;
                if self.text.piece(&message_id, &delta_content) {
                    self.begin_by_agent(out);
                    out.event(drafts::chunk(Kind::AgentMessageChunk, &delta_content, Some(&message_id), None));
                }
            }
            "assistant.reasoning_delta" => {
                let ReasoningDelta { reasoning_id, delta_content } = object(data)?;
                if !is_id(&reasoning_id) {
                    return None;
                }
                if self.text.thought(&delta_content) {
                    self.begin_by_agent(out);
                    out.event(drafts::chunk(Kind::AgentThoughtChunk, &delta_content, Some(&reasoning_id), None));
                    self.thought = Some(reasoning_id);
                }
            }
            "assistant.message" => {
                let WholeMessage { message_id, content, reasoning_text } = object(data)?;
                if !is_id(&message_id) {
                    return None;
                }
                self.begin_by_agent(out);
                let thought = self.thought.take().unwrap_or_else(|| format!("{message_id}-thoughts"));
                if let Some(rest) = reasoning_text.as_deref().and_then(|text| self.text.whole_thought(text)) {
                    out.event(drafts::chunk(Kind::AgentThoughtChunk, rest, Some(&thought), Some(native)));
                }
                self.text.end_thought();
                if let Some(rest) = self.text.whole(&message_id, &content) {
                    out.event(drafts::chunk(Kind::AgentMessageChunk, rest, Some(&message_id), Some(native)));
                }
            }
            "tool.execution_start" => {
                self.begin_by_agent(out);
                let ToolStart { tool_call_id, tool_name, arguments } = object(data)?;
                out.event(TOOLS.call(&tool_call_id, &tool_name, arguments.unwrap_or(RawValue::NULL), native));
            }
            "tool.execution_complete" => out.event(tool_end(object(data)?, native)),
            _ => {}
        }
        Some(())
    }

    pub(super) fn set_title(&mut self, title: &str, out: &mut Output<'_>) {
        let title = drafts::shortened(drafts::first_line(title).trim());
        if !title.is_empty() && self.title.as_ref() != Some(&title) {
            self.title = Some(title.clone());
            out.event(EventDraft::title(Some(title), None));
        }
    }

    // === turns ===

    fn prompt_event(&mut self, message: UserMessage, native: &Bytes, out: &mut Output<'_>) {
        let is_own = |prompt: &mut WaitingPrompt| match (&self.prompt_message, &message.message_id) {
            _ if prompt.state == PromptState::Waiting => false,
            (Some(sent), Some(begun)) => sent == begun,
            // The reply is on its way, or was lost.
            _ => prompt.text.trim() == message.content.trim(),
        };
        if let Some(prompt) = self.session.prompt.take_if(is_own) {
            self.end_turn(RunStatus::Completed, out);
            self.session.turn = Some(Turn::Gateway(prompt.ticket));
            return;
        }
        // Hidden messages (of skills, of Copilot itself) are for the agent alone.
        let is_from_person = message.source.as_deref().is_none_or(|source| source == "user");
        let is_from_person = is_from_person && !message.is_autopilot_continuation;
        if message.delivery.as_deref() != Some("steering") {
            self.end_turn(RunStatus::Completed, out);
        }
        if self.session.turn.is_none() {
            self.begin(if is_from_person { AT_TERMINAL } else { BY_AGENT }, out);
        }
        if is_from_person {
            let id = message.message_id.unwrap_or_default();
            out.event(drafts::chunk(Kind::UserMessageChunk, &message.content, Some(&id), Some(native)));
        }
    }

    /// Begins a turn of the agent, unless one is in progress.
    pub(super) fn begin_by_agent(&mut self, out: &mut Output<'_>) {
        if self.session.turn.is_none() {
            self.begin(BY_AGENT, out);
        }
    }

    pub(super) fn begin(&mut self, by: &str, out: &mut Output<'_>) {
        self.session.begin_turn(by, self.past, out);
    }

    /// Handles the agent's report that it waits for a prompt.
    fn idle(&mut self, aborted: bool, out: &mut Output<'_>) {
        self.aborted |= aborted;
        self.end_turn(RunStatus::Completed, out);
        self.send_prompt(out);
    }

    pub(super) fn end_turn(&mut self, status: RunStatus, out: &mut Output<'_>) {
        let (failure, aborted) = (self.session.failure.take(), std::mem::take(&mut self.aborted));
        let Some(turn) = self.session.turn.take() else { return };
        self.text.turn_ended();
        let status = match (&failure, aborted) {
            (_, true) => RunStatus::Cancelled,
            (Some(_), false) => RunStatus::Error,
            (None, false) => status,
        };
        SessionState::report_end(turn, RunEnd::new(status, failure), self.past, out);
    }

    // === prompts ===

    /// Sends a waiting prompt, once Copilot is idle.
    pub(super) fn send_prompt(&mut self, out: &mut Output<'_>) {
        if self.session.turn.is_some() || !self.live {
            return;
        }
        let prompt = self.session.prompt.as_ref();
        let Some(prompt) = prompt.filter(|prompt| prompt.state == PromptState::Waiting) else { return };
        let body = json!({ "prompt": prompt.text });
        if self.request(CopilotRequest::Prompt(prompt.ticket), "/send", Some(&body), out)
            && let Some(prompt) = &mut self.session.prompt
        {
            (prompt.state, prompt.ticks) = (PromptState::Sent, 0);
        }
    }

    fn prompt_reply(&mut self, ticket: Ticket, reply: &Result<HttpReply, String>, out: &mut Output<'_>) {
        if self.session.prompt.as_ref().is_none_or(|prompt| prompt.ticket != ticket) {
            return;
        }
        let taken = reply.as_ref().ok().and_then(|reply| serde_json::from_slice::<PromptTaken>(&reply.body).ok());
        match (taken, self.connection) {
            (Some(PromptTaken { message_id }), _) => self.prompt_message = Some(message_id),
            // Copilot may have the prompt.
            (None, None) => {}
            (None, Some(_)) => {
                let reason = format!("Copilot did not accept the prompt: {}", problem(reply));
                self.session.end_prompt(RunStatus::Error, Some(&reason), out);
            }
        }
    }
}

/// Returns the decision on a permission, if the user made it at the terminal.
fn decided_by(completed: &PermissionCompleted) -> Option<AnsweredElsewhere> {
    if completed.decision_source.as_deref() != Some("human_response") {
        return None;
    }
    Some(at_terminal(match completed.result.as_ref()?.kind.as_str() {
        "approved" => Some(APPROVE_ONCE),
        "approved-for-session" => Some(SESSION),
        "denied-interactively-by-user" => Some(REJECT),
        _ => None,
    }))
}

/// Returns the reason why a reply is not the expected one.
pub(super) fn problem(reply: &Result<HttpReply, String>) -> String {
    match reply {
        Ok(HttpReply { status: 200, .. }) => "its reply could not be read".into(),
        Ok(HttpReply { status, .. }) => format!("the extension answered with {status}"),
        Err(reason) => reason.clone(),
    }
}
