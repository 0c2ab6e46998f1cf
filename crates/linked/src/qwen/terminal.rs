//! A terminal in which Qwen Code runs. Pure.
//!
//! Events are read from its dual output, in order, from the end of the last checkpoint. Two events are not in the dual
//! output, but in Qwen Code's own chat file: the cancellation of a tool call at the terminal, and text that was typed
//! into a turn in progress. A part of the chat file is applied once the dual output is read up to its end, so that it
//! never comes before the events that it refers to.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::output::{ChatLine, OutputLine, QwenEvent, ToolResult, ToolUse, chat_line, chat_path, output_line};
use super::question::{self, ALLOW, DENY, TOOLS};
use crate::terminals::dialect::{CLOSED, LinkedTerminals, Message, TerminalAgent, release};
use crate::terminals::drafts;
use crate::terminals::output::{AT_TERMINAL, SessionOutput, at_terminal};
use crate::terminals::session::{
    OpenedSession, PendingWork, PromptLimits, PromptState, SessionState, Turn, WaitingPrompt,
};
use crate::terminals::tail::FileTail;
use crate::terminals::transcript_reader::length;
use plexus_dialects::jsonrpc::object;
use plexus_dialects::link::{HelperExit, HelperRole, transcript_path, tunnel_path};
use plexus_dialects::{AnsweredElsewhere, EventDraft, HttpReply, Outbox, RequestKey, RunEnd};
use plexus_protocol::{Capability, Decision, Kind, NativeId, RunStatus, Ticket};

/// The author of a turn without a prompt.
const BY_AGENT: &str = "Qwen Code";

/// Maximum length of a line, in bytes. A longer line is left out.
const LINE_MAX: u64 = 32 << 20;
/// Maximum number of bytes of an old chat file that are read, from its end: the rest is of earlier terminals.
const CHAT_MAX: u64 = 4 << 20;
/// Maximum number of lines of the chat file that wait for the dual output; above it the oldest is dropped.
const HELD_MAX: usize = 256;
/// Maximum number of stored running tool calls; a turn with more of them ends with the next prompt.
const CALLS_MAX: usize = 256;
/// Maximum number of open questions; further ones can only be answered at the terminal.
const QUESTIONS_MAX: usize = 256;
/// Maximum number of stored answers, in case the terminal was first after all.
const ANSWERS_MAX: usize = 64;

/// Number of ticks without text, a tool or a question after which a turn counts as stopped: Esc before the first text
/// is not written anywhere.
pub(super) const SILENT_TICKS: u32 = 240;
/// Number of ticks until a prompt has failed that waits for the tunnel, or that the tunnel has written, at an idle terminal.
pub(super) const PROMPT_LIMITS: PromptLimits = PromptLimits { waiting: 60, sent: 240, unknown: u32::MAX };

pub(super) type Output<'a> = SessionOutput<'a, QwenRequest>;

/// The purpose of a request.
#[derive(Clone, Debug)]
pub(crate) enum QwenRequest {
    /// A part of the dual output, from this offset.
    Output(u64),
    /// A part of the chat file from this offset, or its length.
    Chat(u64),
    Answer(RequestKey),
    Prompt(Ticket),
}

/// A message of a tunnel.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TunnelMessage {
    /// The first message: the files of the tunnel, and the number of prompts that it has written.
    Hello {
        #[serde(flatten)]
        files: TerminalFiles,
        submits: u64,
    },
    /// The dual output has grown.
    Grown,
    /// Qwen Code has ended, and the dual output is complete.
    Ended,
}

/// The files of a terminal, as its tunnel names them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TerminalFiles {
    /// The dual output.
    output: String,
    /// The folder that has the chat files.
    #[serde(default)]
    projects: String,
    /// The time at which the terminal was started, in the form of the chat file.
    #[serde(default)]
    since: String,
}

/// A terminal in which Qwen Code runs.
#[derive(Default)]
pub(crate) struct QwenTerminal {
    /// The conversation of the dual output at its offset. Until the gateway has it open, nothing more is read.
    session: SessionState,
    /// The connection of the tunnel, while there is one.
    connection: Option<u64>,
    files: TerminalFiles,
    output: FileTail,
    chat: FileTail,
    /// `true` once the beginning in the chat file is known.
    measured: bool,
    /// The offset up to which the chat file is applied.
    chat_applied: u64,
    /// Lines of the chat file that wait until the dual output is read.
    held: VecDeque<ChatLine>,
    reading: bool,
    /// `Some` if another read follows; `true` if the chat file is read, too.
    read_again: Option<bool>,
    /// The offset of the beginning of the message in progress, which names its pieces.
    block: u64,
    /// `true` while no part of the current block is shown.
    block_new: bool,
    calls: Vec<String>,
    questions: BTreeMap<RequestKey, OpenQuestion>,
    /// The questions that were answered here, with the decision if it is known.
    answered: VecDeque<(RequestKey, Option<bool>)>,
    /// The number of prompts that the tunnel has written, without the one that waits.
    submits: u64,
}

/// An open question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct OpenQuestion {
    /// The tool call of the question.
    call: String,
    /// The user's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<bool>,
    /// `true` once the tunnel may have written the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
    /// `true` while the tunnel is requested to write the answer.
    #[serde(skip)]
    sending: bool,
    /// `true` if a yes or a no from outside can answer it.
    options: bool,
}

/// The checkpoint of a session.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    terminal: String,
    process: (u32, u64),
    files: TerminalFiles,
    cwd: String,
    output: FileTail,
    chat: FileTail,
    measured: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    block: u64,
    block_new: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestKey, OpenQuestion>,
    submits: u64,
    titled: bool,
}

impl TerminalAgent for QwenTerminal {
    type Request = QwenRequest;

    const NAME: &'static str = "Qwen Code (terminal)";
    const TICK: Duration = Duration::from_millis(250);
    /// Maximum number of terminals; a further one is disconnected, and tries again.
    const TERMINALS_MAX: usize = 1024;
    /// A turn in a terminal cannot be stopped from outside, and a no has no reason.
    const CAPABILITIES: &'static [Capability] = &[Capability::Requests];
    const HOW_TO_START: &'static str =
        "a terminal is started by hand: run `plexus wrap qwen` in the folder, and its session appears";
    const HOW_TO_RESUME: &'static str =
        "the terminal of this session is not open: run `plexus wrap qwen --resume` in its folder";
    const CHECKS_PROCESS_AGAIN: bool = true;

    fn message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox) {
        let (connection, process) = (message.connection, message.process);
        let id = NativeId::from(message.hello.id.as_str());
        let event = object::<TunnelMessage>(message.event).filter(|_| message.hello.role == HelperRole::Tunnel);
        let is_connected = terminals.get(&id).is_some_and(|terminal| terminal.connection == Some(connection));
        match event {
            // The tunnel of a process that has ended reports late: the session must not come back.
            Some(TunnelMessage::Hello { files, submits })
                if process.1 != 0 && terminals.get_or_create(&id).is_some() =>
            {
                terminals.step(&id, out, |terminal, out| {
                    if !is_connected {
                        terminal.hang_up(out);
                    }
                    terminal.connected(connection, process, files, submits);
                    terminal.read_files(false, out);
                });
            }
            Some(TunnelMessage::Grown) if is_connected => {
                terminals.step(&id, out, |terminal, out| terminal.read_files(false, out));
            }
            Some(TunnelMessage::Ended) if is_connected => {
                terminals.step(&id, out, |terminal, out| terminal.end(CLOSED, out));
            }
            // The beginning was sent on an earlier connection of the driver: the tunnel sends it again.
            _ => release(connection, out),
        }
    }

    fn session(&self) -> &SessionState {
        &self.session
    }

    fn session_mut(&mut self) -> &mut SessionState {
        &mut self.session
    }

    fn open(&mut self, opened: OpenedSession<'_>, out: &mut Output<'_>) {
        // A terminal that continues an old conversation has only the new part of it in its output.
        let is_own = |checkpoint: &Checkpoint| checkpoint.process.0 != 0 && checkpoint.terminal == out.id.as_str();
        let checkpoint = opened.checkpoint.and_then(|text| serde_json::from_str(text).ok());
        if let Some(checkpoint) = checkpoint.filter(is_own) {
            self.restore(checkpoint, opened.pending);
        }
    }

    fn save(&mut self, out: &mut Output<'_>) {
        let checkpoint = Checkpoint {
            terminal: out.id.as_str().to_owned(),
            process: self.session.process,
            files: self.files.clone(),
            cwd: self.session.cwd.clone(),
            output: self.output,
            chat: FileTail { offset: self.chat_applied, ..self.chat },
            measured: self.measured,
            run: self.session.turn.is_some(),
            failed: self.session.failure.clone(),
            block: self.block,
            block_new: self.block_new,
            calls: self.calls.clone(),
            asks: self.questions.clone(),
            submits: self.submits,
            titled: self.session.titled,
        };
        self.session.save(&checkpoint, out);
    }

    fn read(&mut self, out: &mut Output<'_>) {
        self.read_files(true, out);
    }

    fn is_active(&self) -> bool {
        let SessionState { opened, turn, prompt, ending, .. } = &self.session;
        let is_working = turn.is_some() || prompt.is_some() || !self.questions.is_empty();
        *opened && (is_working || ending.is_some() || self.connection.is_none())
    }

    fn tick(&mut self, out: &mut Output<'_>) {
        self.session.quiet = self.session.quiet.saturating_add(1);
        let idle = self.session.turn.is_none();
        let late = if idle { self.session.tick_prompt(&PROMPT_LIMITS) } else { None };
        if let Some(state) = late {
            let reason = if state == PromptState::Waiting {
                "its terminal is not connected: the `plexus wrap` that started it has ended, type it there"
            } else {
                "Qwen Code did not accept the prompt: it may still wait in its terminal"
            };
            self.submits += u64::from(state != PromptState::Waiting);
            self.session.end_prompt(RunStatus::Error, Some(reason), out);
        }
        if self.session.quiet >= SILENT_TICKS && self.calls.is_empty() && self.questions.is_empty() && !idle {
            let message = "Qwen Code was silent for a minute: the turn was stopped at the terminal, most likely";
            self.end_turn(RunStatus::Cancelled, Some(message), out);
        }
        self.send_waiting(out);
        if self.session.is_read_due() {
            self.read(out);
        }
    }

    fn reply(&mut self, request: QwenRequest, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        let written = matches!(reply, Ok(HttpReply { status: 200, .. }));
        match request {
            QwenRequest::Output(offset) => self.output_reply(offset, reply, out),
            QwenRequest::Chat(offset) => self.chat_reply(offset, reply, out),
            QwenRequest::Answer(key) => {
                if let Some(question) = self.questions.get_mut(&key) {
                    // The tunnel writes an answer once, however often it is requested.
                    (question.sending, question.sent) = (false, written);
                }
            }
            QwenRequest::Prompt(ticket) => {
                if let Some(prompt) = self.session.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) {
                    prompt.state = if written { PromptState::Sent } else { PromptState::Waiting };
                }
            }
        }
    }

    fn open_questions(&self) -> Vec<RequestKey> {
        self.questions.keys().cloned().collect()
    }

    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        let Some(question) = self.questions.get_mut(key) else { return };
        match question::allows(decision) {
            Some(allowed) => {
                // The tunnel does not write an answer again.
                (question.answer, question.sent, question.sending) = (Some(allowed), false, false);
                self.send_answers(out);
            }
            // The terminal's own dialog decides.
            None => _ = self.questions.remove(key),
        }
    }

    fn prompt_text(content: &[Box<RawValue>]) -> Result<String, String> {
        let text = plexus_dialects::prompt_text::prompt_text(content, "a terminal")?;
        // Some commands make changes that need no permission.
        if text.trim_start().starts_with('/') {
            return Err(
                "Qwen Code would treat it as a command, because it begins with \"/\": commands are typed at the terminal"
                    .into(),
            );
        }
        Ok(text)
    }

    fn prompt(&mut self, ticket: Ticket, text: String, out: &mut Output<'_>) -> Result<(), String> {
        self.session.set_prompt(ticket, text);
        self.send_waiting(out);
        Ok(())
    }

    /// Takes back a prompt that the terminal does not have yet.
    fn cancel(&mut self, ticket: Option<Ticket>, out: &mut Output<'_>) -> bool {
        let is_waiting = |prompt: &WaitingPrompt| {
            prompt.state == PromptState::Waiting && ticket.is_none_or(|ticket| prompt.ticket == ticket)
        };
        let can_cancel = self.session.prompt.as_ref().is_some_and(is_waiting);
        if can_cancel {
            self.session.end_prompt(RunStatus::Cancelled, None, out);
        }
        can_cancel
    }

    fn disconnected(&mut self, connection: u64) -> bool {
        self.connection.take_if(|own| *own == connection).is_some()
    }

    /// Ends the tunnel, which waits for that to remove the files.
    fn close(&mut self, out: &mut Output<'_>) {
        self.hang_up(out);
    }
}

impl QwenTerminal {
    // === the session ===

    fn connected(&mut self, connection: u64, process: (u32, u64), files: TerminalFiles, submits: u64) {
        (self.connection, self.session.process, self.files) = (Some(connection), process, files);
        if self.session.prompt.is_none() {
            self.submits = submits;
        }
    }

    fn restore(&mut self, checkpoint: Checkpoint, pending: Option<PendingWork<'_>>) {
        if self.connection.is_none() {
            (self.session.process, self.files, self.submits) =
                (checkpoint.process, checkpoint.files, checkpoint.submits);
        }
        (self.session.cwd, self.session.titled) = (checkpoint.cwd, checkpoint.titled);
        (self.output, self.chat, self.measured) = (checkpoint.output, checkpoint.chat, checkpoint.measured);
        self.chat_applied = checkpoint.chat.offset;
        self.session.turn = checkpoint.run.then_some(Turn::Terminal);
        self.session.failure = checkpoint.failed;
        (self.block, self.block_new) = (checkpoint.block, checkpoint.block_new);
        (self.calls, self.questions) = (checkpoint.calls, checkpoint.asks);
        let Some(PendingWork { questions, prompt }) = pending else { return };
        self.questions.retain(|key, question| questions.contains(key) || question.sent);
        if prompt.is_some() && self.session.turn.is_none() {
            // If the tunnel has written the prompt already, it does not write it again.
            self.submits = checkpoint.submits;
        }
        self.session.restore_prompt(prompt, PromptState::Waiting);
    }

    // === reading ===

    /// Reads the new part of the dual output, and before it that of the chat file.
    fn read_files(&mut self, chat: bool, out: &mut Output<'_>) {
        if self.session.native.is_some() && !self.session.opened {
            // Reading continues once the gateway has opened the conversation.
            return;
        }
        if self.reading {
            self.read_again = Some(self.read_again.unwrap_or_default() || chat);
            return;
        }
        self.reading = true;
        if chat && self.session.opened && !self.files.projects.is_empty() {
            self.read_chat(out);
        } else {
            self.read_output(out);
        }
    }

    fn read_output(&mut self, out: &mut Output<'_>) {
        let path = transcript_path(&self.files.output, self.output.offset, self.output.part);
        out.get(QwenRequest::Output(self.output.offset), path);
    }

    fn read_chat(&mut self, out: &mut Output<'_>) {
        let session = self.session.native.as_ref().map_or("", NativeId::as_str);
        // The name becomes part of a path.
        if !session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return self.read_output(out);
        }
        let offset = self.chat_offset();
        let path = chat_path(&self.files.projects, &self.session.cwd, session);
        out.get(QwenRequest::Chat(offset), transcript_path(&path, offset, self.chat.part));
    }

    /// Returns the offset of the next part of the chat file. A request beyond its end returns its length.
    fn chat_offset(&self) -> u64 {
        if self.measured { self.chat.offset } else { u64::MAX }
    }

    /// Handles a part of the chat file, or its length.
    fn chat_reply(&mut self, offset: u64, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        if offset != self.chat_offset() {
            return self.read_anew(out);
        }
        match reply {
            Ok(HttpReply { status: 416, body }) => {
                let length = length(&body);
                let offset = if self.measured { length } else { length.saturating_sub(CHAT_MAX) };
                let skipping = !self.measured && offset > 0;
                self.chat = FileTail { offset, skipping, ..FileTail::default() };
                if !std::mem::replace(&mut self.measured, true) {
                    return self.read_chat(out);
                }
            }
            Ok(HttpReply { status: 200, body }) => {
                let part = self.chat.take(&body, LINE_MAX);
                for line in part.lines.iter().filter_map(|(_, line)| chat_line(line)) {
                    if self.held.len() >= HELD_MAX {
                        self.held.pop_front();
                    }
                    self.held.push_back(line);
                }
                if part.more {
                    return self.read_chat(out);
                }
            }
            // The chat file is made with the first prompt. Without it the dual output has less, but nothing wrong.
            Ok(_) | Err(_) => {}
        }
        self.read_output(out);
    }

    /// Repeats a read that was requested before it was known how far the files are reported.
    fn read_anew(&mut self, out: &mut Output<'_>) {
        (self.reading, self.read_again) = (false, None);
        self.read_files(true, out);
    }

    /// Handles a part of the dual output.
    fn output_reply(&mut self, offset: u64, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        if offset != self.output.offset {
            return self.read_anew(out);
        }
        self.reading = false;
        let mut more = false;
        match reply {
            Ok(HttpReply { status: 200, body }) => more = self.output_part(&body, out),
            Ok(HttpReply { status: 416, body }) => {
                self.output = FileTail { offset: length(&body), ..FileTail::default() };
                out.error(
                    "gap",
                    "the file that Qwen Code writes for Plexus was replaced: some messages may be missing",
                );
            }
            Ok(HttpReply { status: 404, .. }) if self.session.ending.is_some() && self.session.opened => {
                let message = "the terminal was closed while no gateway was running: its last messages may be missing";
                out.error("gap", message);
            }
            // The tunnel reports when there is more; the end of the process ends the output.
            Ok(_) | Err(_) => {}
        }
        if self.session.native.is_some() && !self.session.opened {
            return;
        }
        if more {
            self.reading = true;
            return self.read_output(out);
        }
        if let Some(chat) = self.read_again.take() {
            return self.read_files(chat, out);
        }
        self.caught_up(out);
    }

    /// Applies the complete lines of a part; returns whether there is more to read.
    fn output_part(&mut self, body: &Bytes, out: &mut Output<'_>) -> bool {
        let part = self.output.take(body, LINE_MAX);
        if part.left_out {
            out.error("gap", &format!("a line of Qwen Code is longer than {LINE_MAX} bytes and is left out"));
        }
        let end = self.output.offset;
        if !part.lines.is_empty() {
            self.session.quiet = 0;
        }
        for (offset, line) in &part.lines {
            self.output.offset = *offset;
            if !self.line(line, out) {
                // The line begins the next conversation, and is read again once that is open.
                return false;
            }
        }
        self.output.offset = end;
        part.more
    }

    /// Handles the end of a read up to the present end of the dual output.
    fn caught_up(&mut self, out: &mut Output<'_>) {
        for line in std::mem::take(&mut self.held) {
            match line {
                ChatLine::Cancelled { call } => self.cancelled_call(&call, out),
                ChatLine::Steer { text, at } if at >= self.files.since => self.steered(&text, out),
                ChatLine::Steer { .. } => {}
            }
        }
        self.chat_applied = self.chat.offset;
        if let Some(chat) = self.read_again.take() {
            return self.read_files(chat, out);
        }
        if self.session.ending.is_some() {
            self.end_turn(RunStatus::Cancelled, None, out);
            self.session.finished = true;
            return;
        }
        self.send_waiting(out);
    }

    /// Applies a line; returns `false` if it is of another conversation, and so not applied.
    fn line(&mut self, line: &Bytes, out: &mut Output<'_>) -> bool {
        let Some(OutputLine { session, cwd, events, spent }) = output_line(line) else {
            out.event(EventDraft::raw(line.clone(), "a line of Qwen Code that could not be read"));
            return true;
        };
        let is_other = |session: &String| self.session.native.as_ref().is_none_or(|now| now.as_str() != session);
        if let Some(session) = session.filter(is_other) {
            self.next_conversation(NativeId::from(session.as_str()), cwd, out);
            return false;
        }
        if let Some(cwd) = cwd {
            self.session.cwd = cwd;
        }
        if !self.session.opened {
            return self.session.native.is_none();
        }
        events.into_iter().for_each(|event| self.event(event, line, out));
        out.spent(spent);
        true
    }

    /// Handles the beginning of another conversation in the terminal.
    fn next_conversation(&mut self, native: NativeId, cwd: Option<String>, out: &mut Output<'_>) {
        if self.session.opened {
            self.end_turn(RunStatus::Cancelled, None, out);
            self.save(out);
            if let Some(prompt) = &self.session.prompt {
                self.submits += u64::from(prompt.state != PromptState::Waiting);
            }
            let reason = Some("another conversation began in the terminal");
            self.session.end_prompt(RunStatus::Error, reason, out);
            out.closed("another conversation began in its terminal".into());
        }
        if let Some(cwd) = cwd {
            self.session.cwd = cwd;
        }
        (self.session.opened, self.session.titled, self.measured) = (false, false, false);
        (self.chat, self.chat_applied) = (FileTail::default(), 0);
        self.session.forget_checkpoint();
        self.held.clear();
        self.answered.clear();
        self.session.native = Some(native.clone());
        out.native = Some(native);
        out.found(&self.session.cwd);
    }

    fn event(&mut self, event: QwenEvent<'_>, line: &Bytes, out: &mut Output<'_>) {
        match event {
            QwenEvent::Prompt(text) => self.prompt_line(&text, line, out),
            QwenEvent::BlockStart => (self.block, self.block_new) = (self.output.offset, true),
            QwenEvent::Text(text) => {
                let first = std::mem::take(&mut self.block_new);
                if first && text.starts_with("[API Error") && text.ends_with(']') {
                    self.session.failure = Some(text);
                } else {
                    self.chunk(Kind::AgentMessageChunk, &text, line, out);
                }
            }
            QwenEvent::Thought(text) => self.chunk(Kind::AgentThoughtChunk, &text, line, out),
            QwenEvent::Whole { text, calls } => {
                if text.is_some() || !calls.is_empty() {
                    self.begin_by_agent(out);
                }
                for ToolUse { id, name, input } in calls {
                    out.event(TOOLS.call(&id, &name, input, line));
                    if self.calls.len() < CALLS_MAX {
                        self.calls.push(id);
                    }
                }
            }
            QwenEvent::StepEnd if self.calls.is_empty() => self.end_turn(RunStatus::Completed, None, out),
            QwenEvent::StepEnd => {}
            QwenEvent::Result(ToolResult { id, failed, text }) => {
                if let Some(index) = self.calls.iter().position(|call| *call == id) {
                    self.calls.remove(index);
                    out.event(drafts::tool_result(&id, failed, text, Some(line)));
                }
                self.resolve_about(&id, None, out);
            }
            QwenEvent::QuestionAsked { id, question } => self.ask(RequestKey::unique(id), &question, line, out),
            QwenEvent::Decided { id, allowed } => self.resolve(&RequestKey::unique(id), Some(allowed), out),
            QwenEvent::Refused { id } => self.answer_refused(&RequestKey::unique(id), out),
        }
    }

    fn chunk(&mut self, kind: Kind, text: &str, line: &Bytes, out: &mut Output<'_>) {
        self.begin_by_agent(out);
        let message = format!("qwen-{}", self.block);
        out.event(drafts::chunk(kind, text, Some(&message), Some(line)));
    }

    // === turns ===

    /// Begins a turn of the agent, unless one is in progress.
    fn begin_by_agent(&mut self, out: &mut Output<'_>) {
        if self.session.turn.is_none() {
            self.session.begin_turn(BY_AGENT, false, out);
        }
    }

    fn prompt_line(&mut self, text: &str, line: &Bytes, out: &mut Output<'_>) {
        // Qwen Code did not report that the last turn was stopped.
        self.end_turn(RunStatus::Cancelled, None, out);
        if !std::mem::replace(&mut self.session.titled, true) {
            let title = drafts::shortened(drafts::first_line(text).trim());
            out.event(EventDraft::title(Some(title), Some(line)));
        }
        if !self.is_gateway_prompt(text) {
            self.session.begin_turn(AT_TERMINAL, false, out);
            out.event(drafts::chunk(Kind::UserMessageChunk, text, None, Some(line)));
        }
    }

    /// Handles a prompt that was taken into the turn in progress.
    fn steered(&mut self, text: &str, out: &mut Output<'_>) {
        if !self.is_gateway_prompt(text) {
            out.event(drafts::chunk(Kind::UserMessageChunk, text, None, Some(&Bytes::new())));
        }
    }

    /// Returns whether Qwen Code has taken the gateway's prompt; then the turn is that of the prompt.
    fn is_gateway_prompt(&mut self, text: &str) -> bool {
        let is_prompt = |prompt: &mut WaitingPrompt| {
            (prompt.restored || prompt.state != PromptState::Waiting) && text.contains(prompt.text.trim())
        };
        let Some(prompt) = self.session.prompt.take_if(is_prompt) else { return false };
        self.submits += 1;
        self.session.turn = Some(Turn::Gateway(prompt.ticket));
        true
    }

    fn end_turn(&mut self, status: RunStatus, message: Option<&str>, out: &mut Output<'_>) {
        self.calls.clear();
        let failure = self.session.failure.take();
        if self.session.native.is_none() {
            return;
        }
        let keys: Vec<RequestKey> = self.questions.keys().cloned().collect();
        // The dual output would have reported an allowed call.
        keys.iter().for_each(|key| self.resolve(key, Some(false), out));
        let Some(turn) = self.session.turn.take() else { return };
        let status = if failure.is_some() { RunStatus::Error } else { status };
        let message = failure.or_else(|| message.map(str::to_owned));
        SessionState::report_end(turn, RunEnd::new(status, message), false, out);
        // The text that was typed into the turn is in the chat file.
        self.read_again = Some(true);
    }

    /// Handles a cancelled tool call: it was not allowed, or was stopped.
    fn cancelled_call(&mut self, call: &str, out: &mut Output<'_>) {
        let Some(index) = self.calls.iter().position(|known| known == call) else { return };
        self.calls.remove(index);
        out.event(drafts::tool_result(call, true, None, Some(&Bytes::new())));
        self.resolve_about(call, Some(false), out);
        if self.calls.is_empty() {
            self.end_turn(RunStatus::Cancelled, None, out);
        }
    }

    // === questions ===

    fn ask(&mut self, key: RequestKey, tool: &ToolUse<'_>, line: &Bytes, out: &mut Output<'_>) {
        if self.questions.len() >= QUESTIONS_MAX || self.questions.contains_key(&key) {
            return;
        }
        self.begin_by_agent(out);
        let request = question::request(key.clone(), tool, line.clone());
        let options = !request.options.is_empty();
        out.ask(request);
        self.questions.insert(key, OpenQuestion { call: tool.id.clone(), options, ..OpenQuestion::default() });
    }

    /// Has the tunnel write the answers that it has not written.
    fn send_answers(&mut self, out: &mut Output<'_>) {
        let Some(connection) = self.connection else { return };
        for (key, question) in &mut self.questions {
            let Some(allowed) = question.answer.filter(|_| !question.sending && !question.sent) else { continue };
            (question.sending, question.sent) = (true, true);
            let line = json!({ "type": "confirmation_response", "request_id": key.id(), "allowed": allowed });
            let body = json!({ "once": key.id(), "line": line }).to_string();
            let path = tunnel_path(connection, "/input");
            out.post(QwenRequest::Answer(key.clone()), path, Some(body.into()), true);
        }
    }

    /// Resolves the questions about a tool call.
    fn resolve_about(&mut self, call: &str, allowed: Option<bool>, out: &mut Output<'_>) {
        let about = self.questions.iter().filter(|(_, question)| question.call == call);
        let keys: Vec<RequestKey> = about.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.resolve(key, allowed, out));
    }

    /// Closes a decided question; `allowed` is `None` if the decision is unknown.
    fn resolve(&mut self, key: &RequestKey, allowed: Option<bool>, out: &mut Output<'_>) {
        let Some(question) = self.questions.remove(key) else { return };
        let (key, elsewhere) = (key.clone(), elsewhere(allowed.filter(|_| question.options)));
        match question.answer {
            None => out.taken_back(key, Some(elsewhere)),
            // If the terminal was first with the same answer, the refusal of the gateway's answer shows it.
            Some(answer) if question.sent && allowed.is_none_or(|allowed| allowed == answer) => {
                if self.answered.len() >= ANSWERS_MAX {
                    self.answered.pop_front();
                }
                self.answered.push_back((key, allowed));
            }
            Some(_) => out.answer_lost(key, elsewhere),
        }
    }

    /// Handles an answer that came too late.
    fn answer_refused(&mut self, key: &RequestKey, out: &mut Output<'_>) {
        if let Some(question) = self.questions.get_mut(key) {
            // The dual output would have reported an allowed call.
            question.sent = false;
            let call = question.call.clone();
            self.resolve(key, Some(false), out);
            return self.cancelled_call(&call, out);
        }
        if let Some(index) = self.answered.iter().position(|(answered, _)| answered == key)
            && let Some((_, allowed)) = self.answered.remove(index)
        {
            out.answer_lost(key.clone(), elsewhere(allowed));
        }
    }

    // === the tunnel ===

    /// Has the tunnel write the waiting prompt and answers.
    fn send_waiting(&mut self, out: &mut Output<'_>) {
        self.send_answers(out);
        let SessionState { turn, ending, prompt, .. } = &mut self.session;
        // While Qwen Code works, it would take a prompt into the turn in progress.
        let Some(connection) = self.connection.filter(|_| turn.is_none() && ending.is_none()) else { return };
        let Some(prompt) = prompt.as_mut().filter(|prompt| prompt.state == PromptState::Waiting) else { return };
        (prompt.state, prompt.ticks) = (PromptState::Sending, 0);
        let line = json!({ "type": "submit", "text": prompt.text });
        let body = json!({ "submit": self.submits, "line": line }).to_string();
        let path = tunnel_path(connection, "/input");
        out.post(QwenRequest::Prompt(prompt.ticket), path, Some(body.into()), false);
    }

    fn hang_up(&mut self, out: &mut Output<'_>) {
        if let Some(connection) = self.connection.take() {
            out.release(connection, HelperExit::default());
        }
    }
}

/// Returns the decision of a user at the terminal.
fn elsewhere(allowed: Option<bool>) -> AnsweredElsewhere {
    at_terminal(allowed.map(|allowed| if allowed { ALLOW } else { DENY }))
}
