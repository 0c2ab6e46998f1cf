//! A session of Claude Code in its terminal. Pure.
//!
//! Events are read from the transcript, in its order; the hooks report when to read it, and add what is missing in it:
//! open questions, and text line by line. The report of a hook is applied once the transcript is read up to its present
//! end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::live::{DisplayedLines, LiveText, TextLines};
use super::open_question::OpenQuestion;
use super::permission::{Call, automatic_denial};
use super::tools::{TOOLS, command_text, result_texts};
use super::transcript::{self, Block, Line, PromptOrigin, ToolResult};
use crate::terminals::call_tokens::CountedCalls;
use crate::terminals::dialect::{CLOSED, LinkedTerminals, Message, TerminalAgent, release};
use crate::terminals::drafts;
use crate::terminals::output::{AT_TERMINAL, SessionOutput};
use crate::terminals::session::{OpenedSession, PromptLimits, PromptState, SessionState, Turn};
use crate::terminals::transcript_reader::TranscriptReader;
use plexus_dialects::link::{HelperExit, HelperRole};
use plexus_dialects::{AgentReview, EventDraft, HttpReply, Outbox, RequestKey, RunEnd, RuntimeEvent, jsonrpc};
use plexus_protocol::{Capability, Decision, Kind, NativeId, RunStatus, Ticket};

/// The author of a turn without a prompt.
const BY_AGENT: &str = "Claude Code";

/// Maximum length of a prompt, in characters: Claude Code cuts the text of a hook at 100,000 (observed with 2.1.316).
const PROMPT_MAX: usize = 90_000;

/// Maximum number of hook reports that wait for the transcript.
const QUEUE_MAX: usize = 1024;
/// Maximum size of the text in waiting hook reports, in bytes. Above either limit a report is dropped, because the
/// transcript has its content; questions are always queued.
const QUEUE_BYTES: usize = 4 << 20;
/// Maximum number of stored running tool calls, by which the tool call of a question is found.
const CALLS_MAX: usize = 256;

/// Number of ticks from the hook at the end of a turn until the turn counts as ended, if the transcript does not report the end.
const STOP_TICKS: u32 = 8;

/// Number of ticks until a prompt has failed that waits for a hook, or that a hook has taken.
const PROMPT_LIMITS: PromptLimits = PromptLimits { waiting: 60, sent: 120, unknown: 12 };

/// A terminal in which Claude Code runs.
#[derive(Default)]
pub(crate) struct ClaudeTerminal {
    pub(super) session: SessionState,
    transcript: TranscriptReader,
    /// The reports of hooks that wait until the transcript is read; `queued_bytes` is the size of their text.
    pub(super) queue: VecDeque<HookReport>,
    queued_bytes: usize,
    /// `true` if a hook began the turn, and its prompt is not in the transcript yet, which is written a moment later.
    prompt_not_in_transcript: bool,
    live: LiveText,
    /// The running tool calls with their ids, oldest first.
    pub(super) calls: Vec<(String, Call)>,
    pub(super) questions: BTreeMap<RequestKey, OpenQuestion>,
    /// The hook that waits for a prompt.
    inbox: Option<u64>,
    /// Ticks since a hook reported the end of the turn.
    stopped: Option<u32>,
    counted: CountedCalls,
}

pub(super) type Output<'a> = SessionOutput<'a, TranscriptRead>;

/// The only kind of request: a read of a part of the transcript.
#[derive(Debug)]
pub(crate) struct TranscriptRead;

/// The report of a hook.
pub(super) enum HookReport {
    Lines(TextLines),
    Question(RequestKey),
    ToolCalled { id: String, call: Call },
    ToolEnded { call: Option<Call> },
    Stopped { error: Option<String> },
}

/// The input of a hook, with the members that are used.
#[derive(Deserialize)]
struct HookEvent<'a> {
    session_id: String,
    transcript_path: Option<String>,
    cwd: Option<String>,
    hook_event_name: String,
    reason: Option<String>,
    tool_name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    error: Option<Value>,
}

/// The checkpoint of a session.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    process: (u32, u64),
    path: String,
    cwd: String,
    offset: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skipping: bool,
    titled: bool,
    /// `true` while a turn is in progress.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(rename = "early", skip_serializing_if = "std::ops::Not::not")]
    prompt_not_in_transcript: bool,
    #[serde(rename = "shown", skip_serializing_if = "Vec::is_empty")]
    messages: Vec<DisplayedLines>,
    /// The tool call of each open question.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestKey, Option<String>>,
    #[serde(skip_serializing_if = "CountedCalls::is_empty")]
    counted: CountedCalls,
}

impl TerminalAgent for ClaudeTerminal {
    type Request = TranscriptRead;

    const NAME: &'static str = "Claude Code (terminal)";
    const TICK: Duration = Duration::from_millis(250);
    const TERMINALS_MAX: usize = 4096;
    /// A turn in a terminal cannot be stopped from outside.
    const CAPABILITIES: &'static [Capability] = &[Capability::Requests, Capability::Reasons];
    const HOW_TO_START: &'static str =
        "a terminal is started by hand: run `claude` in the folder, and its session appears";
    const HOW_TO_RESUME: &'static str = "the terminal of this session is not open: run `claude --resume` in it";

    fn message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox) {
        let (connection, role) = (message.connection, message.hello.role);
        let needs_reply = role != HelperRole::Event;
        if !Self::hook_message(terminals, message, out) && needs_reply {
            release(connection, out);
        }
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
        self.questions.retain(|key, question| pending.questions.contains(key) || question.connection.is_some());
        for key in pending.questions {
            self.questions.entry(key.clone()).or_default().visible = true;
        }
        self.session.restore_prompt(pending.prompt, PromptState::Unknown);
    }

    fn save(&mut self, out: &mut Output<'_>) {
        let questions = self.questions.iter().filter(|(_, question)| question.visible);
        let checkpoint = Checkpoint {
            process: self.session.process,
            path: self.transcript.path.clone(),
            cwd: self.session.cwd.clone(),
            offset: self.transcript.tail.offset,
            skipping: self.transcript.tail.skipping,
            titled: self.session.titled,
            run: self.session.turn.is_some(),
            prompt_not_in_transcript: self.prompt_not_in_transcript,
            messages: self.live.saved(),
            asks: questions.map(|(key, question)| (key.clone(), question.call.clone())).collect(),
            counted: self.counted.clone(),
        };
        self.session.save(&checkpoint, out);
    }

    fn read(&mut self, out: &mut Output<'_>) {
        if self.session.opened
            && let Some(path) = self.transcript.next_request()
        {
            out.get(TranscriptRead, path);
        }
    }

    fn is_active(&self) -> bool {
        let SessionState { opened, turn, prompt, ending, .. } = &self.session;
        let is_working = turn.is_some() || prompt.is_some() || self.stopped.is_some() || ending.is_some();
        *opened && (is_working || !self.questions.is_empty())
    }

    fn tick(&mut self, out: &mut Output<'_>) {
        if let Some(ticks) = &mut self.stopped {
            *ticks += 1;
        }
        self.tick_questions(out);
        let reason = match self.session.tick_prompt(&PROMPT_LIMITS) {
            Some(PromptState::Waiting) => {
                Some("the terminal accepts no prompts: type it there, or start a new one with a linked Claude Code")
            }
            Some(_) => Some("Claude Code did not accept the prompt"),
            None => None,
        };
        if reason.is_some() {
            self.session.end_prompt(RunStatus::Error, reason, out);
        }
        self.send_prompt(out);
        self.session.quiet = self.session.quiet.saturating_add(1);
        if self.session.is_read_due() {
            self.read(out);
        }
    }

    fn reply(&mut self, _: TranscriptRead, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        let part = self.transcript.reply(reply);
        if !part.lines.is_empty() {
            self.session.quiet = 0;
        }
        part.lines.iter().for_each(|(_, line)| self.line(line, out));
        part.gap.iter().for_each(|gap| out.error("gap", gap));
        if part.more {
            return self.read(out);
        }
        self.caught_up(out);
    }

    fn open_questions(&self) -> Vec<RequestKey> {
        self.questions.keys().cloned().collect()
    }

    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        if let Some(question) = self.questions.get_mut(key) {
            question.answer = Some(decision.clone());
            self.send_answer(key, out);
        }
    }

    fn prompt_text(content: &[Box<RawValue>]) -> Result<String, String> {
        let text = plexus_dialects::prompt_text::prompt_text(content, "a terminal")?;
        if text.encode_utf16().count() > PROMPT_MAX {
            let fix = "put the text into a file and name it in the prompt";
            return Err(format!(
                "Claude Code accepts at most {PROMPT_MAX} characters from outside of its terminal: {fix}"
            ));
        }
        Ok(text)
    }

    fn prompt(&mut self, ticket: Ticket, text: String, out: &mut Output<'_>) -> Result<(), String> {
        self.session.set_prompt(ticket, text);
        self.send_prompt(out);
        Ok(())
    }

    fn disconnected(&mut self, connection: u64) -> bool {
        let mut was_waiting = self.inbox.take_if(|inbox| *inbox == connection).is_some();
        for question in self.questions.values_mut() {
            was_waiting |= question.connection.take_if(|waiting| *waiting == connection).is_some();
        }
        was_waiting
    }
}

impl ClaudeTerminal {
    // === the session ===

    /// Handles the message of a hook. Returns `false` if a hook that waits is not expected.
    fn hook_message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox) -> bool {
        let Message { connection, hello, process, event: raw } = message;
        if hello.role == HelperRole::Tunnel {
            return false;
        }
        let Some(event) = jsonrpc::object::<HookEvent<'_>>(raw).filter(|event| !event.session_id.is_empty()) else {
            let frame = Bytes::copy_from_slice(raw.get().as_bytes());
            let draft = EventDraft::raw(frame, "a hook of Claude Code that could not be read");
            out.events.push(RuntimeEvent::Event { native: None, draft });
            return false;
        };
        let native = NativeId::from(event.session_id.as_str());
        if process.1 == 0 {
            // The process has ended meanwhile: a late report must not bring its session back.
            terminals.step(&native, out, |terminal, out| terminal.end(CLOSED, out));
            return false;
        }
        let Some(terminal) = terminals.get_or_create(&native) else { return false };
        terminal.session.native = Some(native.clone());
        terminal.set_location(*process, &event);
        terminals.step(&native, out, |terminal, out| {
            if !terminal.session.opened {
                out.found(&terminal.session.cwd);
            }
            match hello.role {
                HelperRole::Event if event.hook_event_name == "SessionEnd" => {
                    terminal.session.ending = Some(match event.reason.as_deref() {
                        Some("clear") => "it was cleared in its terminal: a new session began there".into(),
                        _ => CLOSED.into(),
                    });
                    terminal.read(out);
                }
                HelperRole::Event => {
                    terminal.session.ending = None;
                    terminal.hook(&event, raw, out);
                }
                HelperRole::Question => {
                    terminal.question(RequestKey::unique(hello.id.as_str()), *connection, raw, out);
                }
                HelperRole::Inbox => terminal.set_inbox(*connection, out),
                HelperRole::Tunnel => {}
            }
        });
        true
    }

    /// Stores the process, transcript and folder of the latest hook.
    fn set_location(&mut self, process: (u32, u64), event: &HookEvent<'_>) {
        self.session.process = process;
        event.transcript_path.iter().for_each(|path| self.transcript.set_path(path));
        event.cwd.iter().for_each(|cwd| self.session.cwd.clone_from(cwd));
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        if self.transcript.path.is_empty() {
            (self.transcript.path, self.session.cwd) = (checkpoint.path, checkpoint.cwd);
            self.session.process = checkpoint.process;
        }
        self.transcript.restore(checkpoint.offset, checkpoint.skipping);
        self.session.titled = checkpoint.titled;
        self.live = LiveText::restored(checkpoint.messages);
        self.counted = checkpoint.counted;
        self.session.turn = checkpoint.run.then_some(Turn::Terminal);
        self.prompt_not_in_transcript = checkpoint.prompt_not_in_transcript;
        for (key, call) in checkpoint.asks {
            self.questions.entry(key).or_default().call = call;
        }
    }

    // === the transcript ===

    /// Handles the end of a read up to the present end of the transcript.
    fn caught_up(&mut self, out: &mut Output<'_>) {
        if self.transcript.finish_past() && self.session.turn.is_some() {
            self.begin(AT_TERMINAL, out);
        }
        self.queued_bytes = 0;
        for report in std::mem::take(&mut self.queue) {
            self.apply(report, out);
        }
        if self.stopped.is_some_and(|ticks| ticks >= STOP_TICKS) {
            self.end_turn(RunStatus::Completed, out);
        }
        if self.session.ending.is_some() {
            self.end_turn(RunStatus::Cancelled, out);
            self.session.finished = true;
        }
    }

    fn line(&mut self, line: &Bytes, out: &mut Output<'_>) {
        let lines = match transcript::read(line) {
            Ok(lines) => lines,
            Err(reason) => return out.event(EventDraft::raw(line.clone(), reason)),
        };
        let message = |text: &str| drafts::chunk(Kind::UserMessageChunk, text, None, Some(line));
        for part in lines {
            match part {
                Line::Prompt { text, origin } => self.prompt_line(&text, origin, line, out),
                Line::Interjection(text) => out.event(message(&text)),
                Line::Command(text) => command_text(&text).iter().for_each(|text| out.event(message(text))),
                Line::Block(block) => self.block(block, line, out),
                Line::Results(results) => results.into_iter().for_each(|result| self.result(result, line, out)),
                Line::Interrupted => self.end_turn(RunStatus::Cancelled, out),
                Line::ServiceError(message) => self.session.failure = Some(message),
                Line::TurnEnd => self.end_turn(RunStatus::Completed, out),
                Line::Title(title) => {
                    self.session.titled = true;
                    out.event(EventDraft::title(Some(title), Some(line)));
                }
                Line::Spent { call, spending } => {
                    // Tokens from before the gateway saw the session do not count.
                    let report = self.counted.count(&call, &spending);
                    out.spent(report.filter(|_| !self.transcript.is_past()));
                }
            }
        }
    }

    fn prompt_line(&mut self, text: &str, origin: PromptOrigin, line: &Bytes, out: &mut Output<'_>) {
        if !std::mem::take(&mut self.prompt_not_in_transcript) {
            self.end_turn(RunStatus::Completed, out);
        }
        let prompt = &mut self.session.prompt;
        let gateway_prompt =
            prompt.take_if(|prompt| origin == PromptOrigin::Agent && text.contains(prompt.text.trim()));
        if let Some(prompt) = gateway_prompt {
            self.session.turn = Some(Turn::Gateway(prompt.ticket));
            return;
        }
        if self.session.turn.is_none() {
            self.begin(if origin == PromptOrigin::Person { AT_TERMINAL } else { BY_AGENT }, out);
        }
        out.event(drafts::chunk(Kind::UserMessageChunk, text, None, Some(line)));
        if origin == PromptOrigin::Person && !std::mem::replace(&mut self.session.titled, true) {
            // Like in Claude Code's own list of sessions, until it has a title.
            let title = drafts::shortened(drafts::first_line(text).trim());
            out.event(EventDraft::title(Some(title), Some(line)));
        }
    }

    fn block(&mut self, block: Block<'_>, line: &Bytes, out: &mut Output<'_>) {
        if self.session.turn.is_none() {
            self.begin(BY_AGENT, out);
        }
        match block {
            Block::Text(text) => {
                if let Some(draft) = self.live.whole(text, line) {
                    out.event(draft);
                }
            }
            Block::Thought(text) => out.event(drafts::chunk(Kind::AgentThoughtChunk, &text, None, Some(line))),
            Block::ToolUse { id, name, input } => {
                out.event(TOOLS.call(&id, &name, input, line));
                self.add_call(id, Call::new(&name, input));
            }
        }
    }

    fn add_call(&mut self, id: String, call: Call) {
        if self.calls.len() < CALLS_MAX && !self.calls.iter().any(|(known, _)| *known == id) {
            self.calls.push((id, call));
        }
    }

    fn result(&mut self, result: ToolResult<'_>, line: &Bytes, out: &mut Output<'_>) {
        self.calls.retain(|(id, _)| *id != result.id);
        let texts = result.content.map(result_texts).unwrap_or_default();
        out.event(drafts::tool_result(&result.id, result.failed, texts, Some(line)));
        self.resolve_all(|question| question.call.as_deref() == Some(&result.id), result.decided, out);
    }

    // === turns ===

    fn begin(&mut self, by: &str, out: &mut Output<'_>) {
        self.session.begin_turn(by, self.transcript.is_past(), out);
    }

    /// Handles the report of a hook that a turn is in progress.
    pub(super) fn begin_before_prompt(&mut self, out: &mut Output<'_>) {
        if self.session.turn.is_none() {
            self.begin(AT_TERMINAL, out);
            self.prompt_not_in_transcript = true;
        }
    }

    fn end_turn(&mut self, status: RunStatus, out: &mut Output<'_>) {
        (self.stopped, self.prompt_not_in_transcript) = (None, false);
        self.live.turn_ended();
        self.calls.clear();
        let failure = self.session.failure.take();
        let Some(turn) = self.session.turn.take() else { return };
        self.resolve_all(|question| question.visible, None, out);
        let status = if failure.is_some() { RunStatus::Error } else { status };
        SessionState::report_end(turn, RunEnd::new(status, failure), self.transcript.is_past(), out);
    }

    // === hooks ===

    /// Queues the report of a hook, which is applied once the transcript is read.
    fn hook(&mut self, event: &HookEvent<'_>, raw: &RawValue, out: &mut Output<'_>) {
        if event.hook_event_name == "PermissionDenied"
            && let Some(ask) = automatic_denial(raw, event.tool_use_id.clone())
        {
            let reason = event.reason.clone();
            let review = AgentReview { by: "Claude Code's auto mode".into(), allowed: false, reason };
            out.push(|native| RuntimeEvent::Reviewed { native, ask: Box::new(ask), review });
        }
        let call = || Some(Call::new(event.tool_name.as_deref()?, event.tool_input?));
        let report = match event.hook_event_name.as_str() {
            "MessageDisplay" => jsonrpc::object::<TextLines>(raw).map(HookReport::Lines),
            "PreToolUse" => event.tool_use_id.clone().zip(call()).map(|(id, call)| HookReport::ToolCalled { id, call }),
            "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => Some(HookReport::ToolEnded { call: call() }),
            "Stop" => Some(HookReport::Stopped { error: None }),
            "StopFailure" => {
                let error = event.error.as_ref().map(|error| error.as_str().map_or(error.to_string(), str::to_owned));
                let error = error.unwrap_or_else(|| "Claude Code reports a failure".into());
                Some(HookReport::Stopped { error: Some(error) })
            }
            _ => None,
        };
        if let Some(report) = report {
            let bytes = if let HookReport::Lines(lines) = &report { lines.length() } else { 0 };
            if self.queue.len() < QUEUE_MAX && self.queued_bytes + bytes <= QUEUE_BYTES {
                self.queued_bytes += bytes;
                self.queue.push_back(report);
            }
        }
        self.session.quiet = 0;
        self.read(out);
    }

    fn apply(&mut self, report: HookReport, out: &mut Output<'_>) {
        match report {
            HookReport::Lines(lines) => {
                let drafts = self.live.lines(lines);
                if !drafts.is_empty() {
                    self.begin_before_prompt(out);
                }
                drafts.into_iter().for_each(|draft| out.event(draft));
            }
            HookReport::ToolCalled { id, call } => self.add_call(id, call),
            HookReport::ToolEnded { call: Some(call) } => {
                // The author of the decision on a question whose call is known is in the transcript.
                self.resolve_all(|question| question.call.is_none() && question.is_about(&call), None, out);
            }
            HookReport::ToolEnded { call: None } => {}
            HookReport::Stopped { error } => {
                self.session.failure = self.session.failure.take().or(error);
                self.stopped = self.session.turn.is_some().then_some(0);
            }
            HookReport::Question(key) => self.ask(&key, out),
        }
    }

    // === prompts ===

    /// Sets the hook that waits for a prompt from now on.
    fn set_inbox(&mut self, connection: u64, out: &mut Output<'_>) {
        if let Some(old) = self.inbox.replace(connection) {
            out.release(old, HelperExit::default());
        }
        self.send_prompt(out);
    }

    /// Sends a waiting prompt to the hook for it: the text wakes Claude Code.
    fn send_prompt(&mut self, out: &mut Output<'_>) {
        let SessionState { prompt, turn, .. } = &mut self.session;
        let Some(prompt) = prompt.as_mut().filter(|prompt| prompt.state == PromptState::Waiting) else { return };
        let Some(connection) = self.inbox.take_if(|_| turn.is_none()) else { return };
        (prompt.state, prompt.ticks) = (PromptState::Sent, 0);
        out.release(connection, HelperExit { stderr: prompt.text.clone(), code: 2, ..HelperExit::default() });
    }
}
