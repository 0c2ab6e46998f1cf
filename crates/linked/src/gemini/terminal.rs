//! A session of Gemini CLI in its terminal. Pure.
//!
//! Events are read from the transcript, in its order; the hooks report when to read it, and add what is not in it yet:
//! the beginning and end of a turn, the running tool calls, and the open questions. The report of a hook is applied
//! once the transcript is read up to its present end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::calls::{OpenCall, digest};
use super::open_question::{OpenQuestion, StoredQuestion};
use super::question::{KeysOutcome, TerminalKeys, squeezed};
use super::tools::TOOLS;
use super::transcript::{self, AgentMessage, CallStatus, FinishedCall, Line};
use crate::terminals::call_tokens::CountedCalls;
use crate::terminals::dialect::{CLOSED, LinkedTerminals, Message, TerminalAgent, release};
use crate::terminals::drafts;
use crate::terminals::output::{AT_TERMINAL, SessionOutput};
use crate::terminals::session::{OpenedSession, PromptLimits, PromptState, SessionState, Turn};
use crate::terminals::transcript_reader::TranscriptReader;
use plexus_dialects::fnv::{FNV, fnv};
use plexus_dialects::link::{HelperRole, terminal_path};
use plexus_dialects::{EventDraft, HttpReply, Outbox, RequestKey, RunEnd, RuntimeEvent, jsonrpc};
use plexus_protocol::{CallDigest, Capability, Decision, Kind, NativeId, RunStatus, TerminalId, Ticket};

/// The author of a turn without a prompt.
const BY_AGENT: &str = "Gemini CLI";

/// Maximum number of hooks that wait for the transcript; further ones are dropped, except questions.
const QUEUE_MAX: usize = 1024;
/// Maximum number of stored running tool calls, and of ended ones; above it the oldest is removed.
const CALLS_MAX: usize = 64;
/// Maximum number of messages stored as shown; above it the oldest is removed. A message is written again until its
/// tool calls have ended.
const MESSAGES_MAX: usize = 16;
/// Maximum length of the input of a tool call that is stored until the call has ended, in bytes; with a longer one a
/// question has fewer details.
const INPUT_MAX: usize = 64 << 10;

/// Number of ticks from the hook at the end of a turn to the end itself: an error is written after the hook.
const STOP_TICKS: u32 = 1;
/// Number of ticks that a message of the user is held: it may be an old one, which the transcript shows a moment later.
const HOLD_TICKS: u32 = 2;
/// Number of ticks without news after which a turn of an earlier gateway process counts as ended, if the agent has answered.
const UNSURE_TICKS: u32 = 20;
/// Number of ticks between two attempts to type a prompt.
const TRY_TICKS: u32 = 2;
/// Number of ticks until a prompt has failed that waits for an idle terminal, or that was typed.
const PROMPT_LIMITS: PromptLimits = PromptLimits { waiting: 60, sent: 60, unknown: 12 };

/// A terminal in which Gemini CLI runs.
#[derive(Default)]
pub(crate) struct GeminiTerminal {
    pub(super) session: SessionState,
    transcript: TranscriptReader,
    /// The shared terminal in which Gemini CLI runs.
    pub(super) shared: Option<TerminalId>,
    /// The reports of hooks that wait until the transcript is read.
    queue: VecDeque<HookReport>,
    /// The hash of the prompt that a hook announced, until the prompt is in the transcript.
    announced: Option<u64>,
    /// Messages of the user that may be old ones.
    held: Vec<HeldMessage>,
    held_ticks: u32,
    /// `true` if the user stopped the turn.
    cancelled: bool,
    /// The ids of the shown messages.
    shown_messages: VecDeque<String>,
    /// The running tool calls, oldest first.
    pub(super) calls: VecDeque<OpenCall>,
    /// The number of the last tool call that a hook reported.
    last_call: u64,
    /// The ids of tool calls that have ended.
    ended_calls: VecDeque<String>,
    counted: CountedCalls,
    /// Ended tool calls whose hook has not come, but may come later.
    unannounced: VecDeque<CallDigest>,
    pub(super) questions: BTreeMap<RequestKey, OpenQuestion>,
    /// The reason why the last attempt did not type the prompt.
    prompt_refusal: String,
    /// `true` if no hook began the turn, or an earlier gateway process had its hook: then there may be no hook that ends it.
    unsure: bool,
    /// `true` if the agent has answered in this turn.
    answered: bool,
    /// Ticks since a hook reported the end of the turn.
    stopped: Option<u32>,
}

pub(super) type Output<'a> = SessionOutput<'a, GeminiRequest>;

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GeminiRequest {
    Transcript,
    /// The keys of an answer.
    Answer(RequestKey),
    /// The keys of a prompt.
    Prompt(Ticket),
}

/// A message of the user that may be an old one, written again.
struct HeldMessage {
    id: String,
    text: String,
    line: Bytes,
    /// The offset of the line.
    offset: u64,
}

/// The report of a hook.
enum HookReport {
    Started { prompt: String },
    ToolCalled { tool: String, input: Box<RawValue> },
    ToolEnded { tool: String, input: Box<RawValue> },
    Question { key: RequestKey, details: Box<RawValue> },
    Stopped,
}

/// The input of a hook, with the members that are used.
#[derive(Deserialize)]
struct HookEvent<'a> {
    session_id: String,
    transcript_path: Option<String>,
    cwd: Option<String>,
    hook_event_name: String,
    reason: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    notification_type: Option<String>,
    details: Option<&'a RawValue>,
}

/// The checkpoint of a session.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    process: (u32, u64),
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<TerminalId>,
    path: String,
    cwd: String,
    offset: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skipping: bool,
    titled: bool,
    /// `true` while a turn is in progress.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    announced: Option<u64>,
    #[serde(rename = "shown", skip_serializing_if = "VecDeque::is_empty")]
    shown_messages: VecDeque<String>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    calls: VecDeque<OpenCall>,
    last_call: u64,
    #[serde(rename = "over_calls", skip_serializing_if = "VecDeque::is_empty")]
    ended_calls: VecDeque<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestKey, StoredQuestion>,
    #[serde(skip_serializing_if = "CountedCalls::is_empty")]
    counted: CountedCalls,
}

fn hash(text: &str) -> u64 {
    fnv(FNV, &squeezed(text))
}

/// Adds an item to a queue of bounded length.
fn push<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() >= max {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Reads the report of a shared terminal's holder on keys.
pub(super) fn keys_outcome(reply: Result<HttpReply, String>) -> Result<KeysOutcome, String> {
    let reply = reply?;
    serde_json::from_slice(&reply.body).map_err(|_| format!("the terminal answered with {}", reply.status))
}

/// Has keys typed. It takes a while: the session's other requests do not wait for it.
pub(super) fn type_keys(request: GeminiRequest, terminal: &TerminalId, keys: &TerminalKeys, out: &mut Output<'_>) {
    let body = serde_json::to_vec(keys).ok().map(Bytes::from);
    out.post_parallel(request, "keys", terminal_path(terminal), body, keys.answers());
}

impl TerminalAgent for GeminiTerminal {
    type Request = GeminiRequest;

    const NAME: &'static str = "Gemini CLI (terminal)";
    const TICK: Duration = Duration::from_millis(250);
    const TERMINALS_MAX: usize = 4096;
    /// A turn in a terminal cannot be stopped from outside.
    const CAPABILITIES: &'static [Capability] = &[Capability::Requests];
    const HOW_TO_START: &'static str =
        "a terminal is started by hand: run `gemini` in the folder, and its session appears";
    const HOW_TO_RESUME: &'static str = "the terminal of this session is not open: run `gemini --resume` in it";

    fn message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox) {
        let Message { connection, hello, process, event: raw } = message;
        if hello.role != HelperRole::Event {
            // No helper of Gemini CLI waits.
            return release(*connection, out);
        }
        let Some(event) = jsonrpc::object::<HookEvent<'_>>(raw).filter(|event| !event.session_id.is_empty()) else {
            let frame = Bytes::copy_from_slice(raw.get().as_bytes());
            let draft = EventDraft::raw(frame, "a hook of Gemini CLI that could not be read");
            return out.events.push(RuntimeEvent::Event { native: None, draft });
        };
        let native = NativeId::from(event.session_id.as_str());
        let end = match (process.1, event.hook_event_name.as_str(), event.reason.as_deref()) {
            // The process has ended meanwhile: a late report must not bring its session back.
            (0, ..) => Some(CLOSED),
            (_, "SessionEnd", Some("clear")) => Some("it was cleared in its terminal: a new session began there"),
            (_, "SessionEnd", _) => Some(CLOSED),
            _ => None,
        };
        if let Some(reason) = end {
            // Gemini CLI reports this several times.
            terminals.step(&native, out, |terminal, out| terminal.end(reason, out));
            return;
        }
        let Some(terminal) = terminals.get_or_create(&native) else { return };
        terminal.session.native = Some(native.clone());
        terminal.set_location(*process, hello.terminal.as_deref(), &event);
        terminal.session.ending = None;
        terminals.step(&native, out, |terminal, out| {
            if !terminal.session.opened {
                out.found(&terminal.session.cwd);
            }
            terminal.hook(&event, &hello.id, out);
        });
    }

    fn session(&self) -> &SessionState {
        &self.session
    }

    fn session_mut(&mut self) -> &mut SessionState {
        &mut self.session
    }

    fn open(&mut self, opened: OpenedSession<'_>, _: &mut Output<'_>) {
        match opened.checkpoint.and_then(|text| serde_json::from_str::<Checkpoint>(text).ok()) {
            Some(checkpoint) => self.restore(checkpoint),
            None => self.transcript.begin(!opened.known),
        }
        let Some(pending) = opened.pending else { return };
        // Questions that were open and are missing now were closed; the session does not have them either.
        self.questions.retain(|key, _| pending.questions.contains(key));
        for key in pending.questions {
            self.questions.entry(key.clone()).or_default();
        }
        if pending.prompt.is_some() {
            self.prompt_refusal.clear();
        }
        self.session.restore_prompt(pending.prompt, PromptState::Unknown);
    }

    fn save(&mut self, out: &mut Output<'_>) {
        let checkpoint = Checkpoint {
            process: self.session.process,
            shared: self.shared.clone(),
            path: self.transcript.path.clone(),
            cwd: self.session.cwd.clone(),
            offset: self.held.first().map_or(self.transcript.tail.offset, |held| held.offset),
            skipping: self.transcript.tail.skipping,
            titled: self.session.titled,
            run: self.session.turn.is_some(),
            answered: self.answered,
            announced: self.announced,
            shown_messages: self.shown_messages.clone(),
            calls: self.calls.clone(),
            last_call: self.last_call,
            ended_calls: self.ended_calls.clone(),
            asks: self.questions.iter().map(|(key, question)| (key.clone(), question.stored())).collect(),
            counted: self.counted.clone(),
        };
        self.session.save(&checkpoint, out);
    }

    fn read(&mut self, out: &mut Output<'_>) {
        if self.session.opened
            && let Some(path) = self.transcript.next_request()
        {
            out.get(GeminiRequest::Transcript, path);
        }
    }

    fn is_active(&self) -> bool {
        let SessionState { opened, turn, prompt, ending, .. } = &self.session;
        let is_working = turn.is_some() || prompt.is_some() || self.stopped.is_some() || ending.is_some();
        *opened && (is_working || !self.held.is_empty() || !self.questions.is_empty())
    }

    fn tick(&mut self, out: &mut Output<'_>) {
        if let Some(ticks) = &mut self.stopped {
            *ticks += 1;
        }
        self.held_ticks = self.held_ticks.saturating_add(1);
        self.session.quiet = self.session.quiet.saturating_add(1);
        let late = if self.session.turn.is_none() { self.session.tick_prompt(&PROMPT_LIMITS) } else { None };
        match late {
            Some(PromptState::Waiting) => {
                let reason = format!("the prompt was not typed in the terminal: {}", self.prompt_refusal);
                self.session.end_prompt(RunStatus::Error, Some(&reason), out);
            }
            Some(_) => self.session.end_prompt(RunStatus::Error, Some("Gemini did not accept the prompt"), out),
            None => {}
        }
        self.send_prompt(out);
        if self.stopped.is_some() || !self.held.is_empty() || self.session.is_read_due() {
            self.read(out);
        }
    }

    fn reply(&mut self, request: GeminiRequest, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        match request {
            GeminiRequest::Transcript => self.transcript_reply(reply, out),
            GeminiRequest::Answer(key) => self.answer_reply(&key, reply, out),
            GeminiRequest::Prompt(ticket) => self.prompt_reply(ticket, reply, out),
        }
    }

    fn open_questions(&self) -> Vec<RequestKey> {
        self.questions.keys().cloned().collect()
    }

    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        self.type_answer(key, decision, out);
    }

    fn prompt(&mut self, ticket: Ticket, text: String, out: &mut Output<'_>) -> Result<(), String> {
        if self.shared.is_none() {
            let fix = "one that is started by `plexus term -- gemini` accepts prompts from here";
            return Err(format!("this terminal accepts prompts only in its own window: type it there ({fix})"));
        }
        TerminalKeys::prompt(&text)?;
        self.session.set_prompt(ticket, text);
        self.prompt_refusal.clear();
        self.send_prompt(out);
        Ok(())
    }
}

impl GeminiTerminal {
    // === the session ===

    /// Stores the process, transcript, folder and shared terminal of the latest hook.
    fn set_location(&mut self, process: (u32, u64), shared: Option<&str>, event: &HookEvent<'_>) {
        self.session.process = process;
        self.shared = shared.and_then(|id| id.parse().ok());
        event.transcript_path.iter().for_each(|path| self.transcript.set_path(path));
        event.cwd.iter().for_each(|cwd| self.session.cwd.clone_from(cwd));
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        if self.transcript.path.is_empty() {
            (self.transcript.path, self.session.cwd) = (checkpoint.path, checkpoint.cwd);
            (self.session.process, self.shared) = (checkpoint.process, checkpoint.shared);
        }
        self.transcript.restore(checkpoint.offset, checkpoint.skipping);
        self.session.titled = checkpoint.titled;
        self.session.turn = checkpoint.run.then_some(Turn::Terminal);
        (self.announced, self.shown_messages) = (checkpoint.announced, checkpoint.shown_messages);
        (self.calls, self.ended_calls) = (checkpoint.calls, checkpoint.ended_calls);
        (self.last_call, self.answered, self.unsure) = (checkpoint.last_call, checkpoint.answered, checkpoint.run);
        self.counted = checkpoint.counted;
        for (key, question) in checkpoint.asks {
            self.questions.entry(key).or_insert_with(|| OpenQuestion::from(question));
        }
    }

    // === the transcript ===

    fn transcript_reply(&mut self, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        let part = self.transcript.reply(reply);
        if !part.lines.is_empty() {
            (self.session.quiet, self.held_ticks) = (0, 0);
        }
        for (offset, line) in &part.lines {
            self.line(*offset, line, out);
        }
        part.gap.iter().for_each(|gap| out.error("gap", gap));
        if part.more {
            return self.read(out);
        }
        self.caught_up(out);
    }

    /// Handles the end of a read up to the present end of the transcript.
    fn caught_up(&mut self, out: &mut Output<'_>) {
        if self.held_ticks >= HOLD_TICKS || self.session.ending.is_some() {
            self.release_held(out);
        }
        if self.transcript.finish_past()
            && let Some(turn) = self.session.turn
        {
            self.unsure = true;
            self.begin(turn, AT_TERMINAL, out);
        }
        for report in std::mem::take(&mut self.queue) {
            self.apply(report, out);
        }
        let stopped = self.stopped.is_some_and(|ticks| ticks >= STOP_TICKS);
        let at_rest = self.answered && self.questions.is_empty() && self.calls.is_empty();
        let is_quiet = self.unsure && at_rest && self.session.quiet >= UNSURE_TICKS;
        if stopped || self.cancelled || is_quiet {
            self.end_turn(RunStatus::Completed, out);
        }
        if self.session.ending.is_some() {
            self.end_turn(RunStatus::Cancelled, out);
            self.session.finished = true;
        }
    }

    fn line(&mut self, offset: u64, line: &Bytes, out: &mut Output<'_>) {
        let lines = match transcript::read(line) {
            Ok(lines) => lines,
            Err(reason) => return out.event(EventDraft::raw(line.clone(), reason)),
        };
        for part in lines {
            match part {
                Line::Person { id, text } if self.announced == Some(hash(&text)) => {
                    self.release_held(out);
                    self.prompt_line(&id, &text, line, out);
                }
                Line::Person { id, text } => self.held.push(HeldMessage { id, text, line: line.clone(), offset }),
                Line::Rewritten(ids) => {
                    self.held.retain(|held| !ids.contains(&held.id));
                    self.release_held(out);
                }
                Line::Title(title) => {
                    self.session.titled = true;
                    out.event(title_draft(&title, line));
                }
                Line::Agent(message) => {
                    self.release_held(out);
                    let spent = message.spending.as_ref().and_then(|spent| self.counted.count(&message.id, spent));
                    self.message_line(message, line, out);
                    // Tokens from before the gateway saw the session do not count.
                    out.spent(spent.filter(|_| !self.transcript.is_past()));
                }
                Line::Cancelled => {
                    self.release_held(out);
                    if self.transcript.is_past() {
                        self.end_turn(RunStatus::Cancelled, out);
                    } else {
                        self.cancelled = self.session.turn.is_some();
                    }
                }
                Line::Failure(message) => {
                    self.release_held(out);
                    (self.session.failure, self.answered) = (Some(message), true);
                }
            }
        }
    }

    /// Shows the held messages that are not old ones.
    fn release_held(&mut self, out: &mut Output<'_>) {
        for held in std::mem::take(&mut self.held) {
            self.prompt_line(&held.id, &held.text, &held.line, out);
        }
    }

    fn prompt_line(&mut self, id: &str, text: &str, line: &Bytes, out: &mut Output<'_>) {
        // The hook, if it came, has begun the turn.
        let announced = self.announced.take_if(|announced| *announced == hash(text)).is_some();
        if !announced {
            self.end_turn(RunStatus::Completed, out);
            self.begin_prompt(text, out);
            self.unsure = true;
        }
        if !matches!(self.session.turn, Some(Turn::Gateway(_))) {
            out.event(drafts::chunk(Kind::UserMessageChunk, text, Some(id), Some(line)));
        }
        if !std::mem::replace(&mut self.session.titled, true) {
            out.event(title_draft(drafts::first_line(text), line));
        }
    }

    fn message_line(&mut self, message: AgentMessage<'_>, line: &Bytes, out: &mut Output<'_>) {
        let AgentMessage { id, text, thoughts, calls, .. } = message;
        if self.session.turn.is_none() && !self.shown_messages.contains(&id) {
            self.begin(Turn::Terminal, BY_AGENT, out);
        }
        if !self.shown_messages.contains(&id) {
            let mut show = |kind, text: &str| out.event(drafts::chunk(kind, text, Some(&id), Some(line)));
            thoughts.iter().for_each(|thought| show(Kind::AgentThoughtChunk, thought));
            self.answered = !text.is_empty();
            if self.answered {
                show(Kind::AgentMessageChunk, &text);
            }
            push(&mut self.shown_messages, id, MESSAGES_MAX);
        }
        calls.into_iter().for_each(|call| self.finished_call(call, line, out));
    }

    // === tools ===

    fn called(&mut self, tool: String, input: Box<RawValue>, out: &mut Output<'_>) {
        let digest = digest(&tool, &input);
        if let Some(index) = self.unannounced.iter().position(|ended| Some(*ended) == digest) {
            self.unannounced.remove(index);
            return;
        }
        self.begin_by_hook(out);
        self.last_call += 1;
        let id = format!("call-{}", self.last_call);
        let native = Bytes::copy_from_slice(input.get().as_bytes());
        out.event(TOOLS.call(&id, &tool, &input, &native));
        let input = (input.get().len() <= INPUT_MAX).then_some(input);
        push(&mut self.calls, OpenCall { id, tool, digest, input }, CALLS_MAX);
    }

    /// Returns the running call with this input, or else the only one of the tool: the user may have changed the input.
    fn running(&self, tool: &str, input: &RawValue) -> Option<usize> {
        let digest = digest(tool, input);
        let same = |call: &OpenCall| call.digest.is_some() && call.digest == digest;
        self.calls.iter().position(same).or_else(|| {
            let mut candidates = self.calls.iter().enumerate().filter(|(_, call)| call.tool == tool);
            candidates.next().filter(|_| candidates.next().is_none()).map(|(index, _)| index)
        })
    }

    /// Handles a tool call that has ended, and is in the transcript.
    fn finished_call(&mut self, call: FinishedCall<'_>, line: &Bytes, out: &mut Output<'_>) {
        if self.ended_calls.contains(&call.id) {
            return;
        }
        push(&mut self.ended_calls, call.id.clone(), CALLS_MAX);
        let known = self.running(&call.name, call.input).and_then(|index| self.calls.remove(index));
        let id = match known {
            Some(known) => known.id,
            None => {
                let digest = digest(&call.name, call.input);
                digest.into_iter().for_each(|digest| push(&mut self.unannounced, digest, CALLS_MAX));
                out.event(TOOLS.call(&call.id, &call.name, call.input, line));
                call.id
            }
        };
        out.event(drafts::tool_result(&id, call.status != CallStatus::Succeeded, call.output, Some(line)));
        self.resolve_about(&id, call.status != CallStatus::Cancelled, out);
    }

    // === turns ===

    fn begin(&mut self, turn: Turn, by: &str, out: &mut Output<'_>) {
        match turn {
            Turn::Gateway(_) => self.session.turn = Some(turn),
            Turn::Terminal => self.session.begin_turn(by, self.transcript.is_past(), out),
        }
    }

    /// Begins a turn with this prompt, which may be one of the gateway's.
    fn begin_prompt(&mut self, text: &str, out: &mut Output<'_>) {
        (self.answered, self.session.failure, self.cancelled) = (false, None, false);
        self.ended_calls.clear();
        let gateway_prompt = self.session.prompt.take_if(|prompt| squeezed(text) == squeezed(&prompt.text));
        let turn = gateway_prompt.map_or(Turn::Terminal, |prompt| Turn::Gateway(prompt.ticket));
        self.begin(turn, AT_TERMINAL, out);
    }

    /// Begins a turn that a hook reports.
    pub(super) fn begin_by_hook(&mut self, out: &mut Output<'_>) {
        if self.session.turn.is_none() {
            self.begin(Turn::Terminal, AT_TERMINAL, out);
        }
    }

    fn end_turn(&mut self, status: RunStatus, out: &mut Output<'_>) {
        (self.stopped, self.unsure, self.announced) = (None, false, None);
        self.calls.clear();
        self.unannounced.clear();
        let (failure, cancelled) = (self.session.failure.take(), std::mem::take(&mut self.cancelled));
        let Some(turn) = self.session.turn.take() else { return };
        self.resolve_all(out);
        let status = if cancelled { RunStatus::Cancelled } else { status };
        let status = if failure.is_some() && status == RunStatus::Completed { RunStatus::Error } else { status };
        SessionState::report_end(turn, RunEnd::new(status, failure), self.transcript.is_past(), out);
    }

    // === hooks ===

    /// Queues the report of a hook, which is applied once the transcript is read. `helper` is the name of the hook's helper.
    fn hook(&mut self, event: &HookEvent<'_>, helper: &str, out: &mut Output<'_>) {
        let tool = || Some((event.tool_name.clone()?, jsonrpc::owned(event.tool_input?)));
        let report = match event.hook_event_name.as_str() {
            "BeforeAgent" => event.prompt.clone().map(|prompt| HookReport::Started { prompt }),
            "AfterAgent" => Some(HookReport::Stopped),
            "BeforeTool" => tool().map(|(tool, input)| HookReport::ToolCalled { tool, input }),
            "AfterTool" => tool().map(|(tool, input)| HookReport::ToolEnded { tool, input }),
            "Notification" if event.notification_type.as_deref() == Some("ToolPermission") => {
                let key = RequestKey::unique(helper);
                event.details.map(|details| HookReport::Question { key, details: jsonrpc::owned(details) })
            }
            _ => None,
        };
        let is_question = matches!(report, Some(HookReport::Question { .. }));
        if let Some(report) = report.filter(|_| is_question || self.queue.len() < QUEUE_MAX) {
            self.queue.push_back(report);
        }
        (self.session.quiet, self.unsure) = (0, false);
        self.read(out);
    }

    fn apply(&mut self, report: HookReport, out: &mut Output<'_>) {
        match report {
            HookReport::Started { prompt } => {
                // The message may have been read already, and be held.
                let announced = hash(&prompt);
                let index = self.held.iter().position(|held| hash(&held.text) == announced);
                let held = index.map(|index| self.held.remove(index));
                self.release_held(out);
                self.end_turn(RunStatus::Completed, out);
                self.begin_prompt(&prompt, out);
                self.announced = Some(announced);
                if let Some(HeldMessage { id, text, line, .. }) = held {
                    self.prompt_line(&id, &text, &line, out);
                }
            }
            HookReport::ToolCalled { tool, input } => self.called(tool, input, out),
            HookReport::ToolEnded { tool, input } => {
                if let Some(call) = self.running(&tool, &input).and_then(|index| self.calls.get(index)) {
                    let id = call.id.clone();
                    self.resolve_about(&id, true, out);
                }
            }
            HookReport::Question { key, details } => self.ask(key, &details, out),
            HookReport::Stopped => self.stopped = self.session.turn.is_some().then_some(0),
        }
    }

    // === prompts ===

    /// Has a waiting prompt typed, if the terminal is idle.
    fn send_prompt(&mut self, out: &mut Output<'_>) {
        let SessionState { prompt, turn, .. } = &mut self.session;
        let idle = turn.is_none() && self.stopped.is_none() && self.questions.is_empty() && self.held.is_empty();
        let (Some(prompt), Some(shared)) = (prompt.as_mut().filter(|_| idle), &self.shared) else { return };
        if prompt.state != PromptState::Waiting || !prompt.ticks.is_multiple_of(TRY_TICKS) {
            return;
        }
        if let Ok(keys) = TerminalKeys::prompt(&prompt.text) {
            prompt.state = PromptState::Sending;
            type_keys(GeminiRequest::Prompt(prompt.ticket), shared, &keys, out);
        }
    }

    /// Handles the report whether the keys of a prompt were typed.
    fn prompt_reply(&mut self, ticket: Ticket, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        let Some(prompt) = self.session.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) else { return };
        match keys_outcome(reply) {
            Ok(KeysOutcome { refused: None, .. }) => (prompt.state, prompt.ticks) = (PromptState::Sent, 0),
            Ok(KeysOutcome { typed: false, refused: Some(reason) }) => {
                (prompt.state, self.prompt_refusal) = (PromptState::Waiting, reason);
            }
            Ok(KeysOutcome { refused: Some(reason), .. }) | Err(reason) => {
                self.session.end_prompt(RunStatus::Error, Some(&reason), out);
            }
        }
    }
}

fn title_draft(title: &str, line: &Bytes) -> EventDraft {
    EventDraft::title(Some(drafts::shortened(title.trim())), Some(line))
}
