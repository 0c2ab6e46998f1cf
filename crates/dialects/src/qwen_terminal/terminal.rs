//! One terminal with Qwen Code in it. Pure.
//!
//! What happens is read from its dual output, in its order, from where the last checkpoint ends. Of two things the dual output says
//! nothing: that a tool call was cancelled at the terminal, and what was typed into a turn under way. Both are in Qwen Code's own chat
//! file. A part of it is applied once the dual output is read up to its end, so that it never comes before what it is about.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::link::{HelperExit, LinkReply, transcript_path, tunnel_path};
use super::super::{
    AnsweredElsewhere, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, RunEnd, RuntimeEvent, jsonrpc,
};
use super::drafts::{self, ALLOW, DENY};
use super::output::{ChatLine, OutputLine, QwenEvent, chat_line, chat_path, output_line};
use plexus_protocol::{Decision, Kind, NativeId, RunStatus, Ticket};

/// Who acts at the terminal.
const AT_TERMINAL: &str = "the terminal";
/// Who starts a turn that nobody prompted.
const BY_AGENT: &str = "Qwen Code";

/// What is read of a file at a time, in bytes …
const PART: u64 = 1 << 20;
/// … and for a line that is longer, at most. A longer line is left out, and that is said.
const LINE_MAX: u64 = 32 << 20;
/// How much of an old chat file is read, in bytes from its end: what is before it is of earlier terminals.
const CHAT_MAX: u64 = 4 << 20;
/// Lines of the chat file that wait for the dual output; the oldest is dropped for one more.
const HELD_MAX: usize = 256;
/// Running tool calls that are remembered; a turn with more of them ends with the next prompt.
const CALLS_MAX: usize = 256;
/// Most open questions; further ones can only be answered at the terminal.
const ASKS_MAX: usize = 256;
/// Answers that are remembered in case the terminal was first after all.
const GIVEN_MAX: usize = 64;

/// Ticks (of [`TICK`](super::TICK)) without news after which files are looked at more rarely …
const QUIET_TICKS: u32 = 40;
/// … at every one of so many ticks.
const RARE_TICKS: u32 = 8;
/// Ticks without a word, a tool or a question after which a turn counts as stopped: Esc before the first word is not written anywhere.
pub(super) const SILENT_TICKS: u32 = 240;
/// Ticks that a prompt waits for the terminal to take it.
pub(super) const UNSENT_TICKS: u32 = 60;
/// Ticks of an idle terminal that a prompt may take from there into the dual output.
pub(super) const TAKEN_TICKS: u32 = 240;

/// What a request is for.
#[derive(Clone, Debug)]
pub(super) enum FetchFor {
    /// A part of the dual output, from where.
    Output(u64),
    /// A part of the chat file, from where, or its length.
    Chat(u64),
    /// Whether the process lives.
    Process,
    /// An answer.
    Answer(RequestKey),
    /// A prompt.
    Prompt(Ticket),
}

/// The requests under way.
#[derive(Default)]
pub(super) struct TerminalFetches {
    last: u64,
    /// The terminal of each, and what it is for.
    pub(super) pending: HashMap<u64, (String, FetchFor)>,
}

/// What a terminal works with: its name, the requests under way, and the outbox.
pub(super) struct TerminalEnv<'a> {
    pub(super) id: &'a str,
    pub(super) fetches: &'a mut TerminalFetches,
    pub(super) out: &'a mut Outbox,
}

impl TerminalEnv<'_> {
    pub(super) fn fetch(&mut self, of: FetchFor, method: &'static str, path: String, body: Option<Bytes>) {
        self.fetches.last += 1;
        let (id, base, session) = (self.fetches.last, HttpBase::Connect, Some(self.id.into()));
        let decides = matches!(of, FetchFor::Answer(_));
        self.fetches.pending.insert(id, (self.id.to_owned(), of));
        self.out.fetches.push(HttpRequest { id, base, method, path, body, decides, session });
    }
}

/// How the tunnel of a terminal introduces itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TerminalFiles {
    /// The dual output.
    pub(super) output: String,
    /// The folder that has the chat files.
    #[serde(default)]
    pub(super) projects: String,
    /// When the terminal was started, as the chat file writes times.
    #[serde(default)]
    pub(super) since: String,
}

/// A terminal.
#[derive(Default)]
pub(super) struct QwenTerminal {
    /// The connection of its tunnel, while there is one.
    pub(super) connection: Option<u64>,
    /// Its process, and when that started.
    pub(super) process: (u32, u64),
    pub(super) files: TerminalFiles,
    /// The conversation that the dual output is about at `offset`.
    pub(super) native: Option<NativeId>,
    /// Whether the gateway has it open; until then nothing more is read.
    pub(super) opened: bool,
    /// The folder.
    cwd: String,
    output: FileCursor,
    chat: FileCursor,
    /// Whether it is known where to begin in the chat file.
    measured: bool,
    /// Up to where the chat file is applied.
    chat_applied: u64,
    /// What the chat file says, until the dual output is read.
    held: VecDeque<ChatLine>,
    reading: bool,
    /// Whether to read once more after it, and the chat file, too.
    again: Option<bool>,
    run: Option<Turn>,
    /// The error that the turn failed with.
    failed: Option<String>,
    /// Where the message under way begins: the name of its pieces.
    block: u64,
    /// Whether nothing of the block under way is shown yet.
    block_new: bool,
    calls: Vec<String>,
    pub(super) asks: BTreeMap<RequestKey, OpenQuestion>,
    given: VecDeque<(RequestKey, Option<bool>)>,
    prompt: Option<WaitingPrompt>,
    /// The prompts that the tunnel has written, without the one that waits.
    submits: u64,
    /// Ticks without news.
    quiet: u32,
    /// Why the session ends, once all is read.
    pub(super) ending: Option<String>,
    /// It ended, and all of it is reported.
    pub(super) over: bool,
    titled: bool,
    saved: String,
}

/// How far a file is read.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct FileCursor {
    offset: u64,
    /// A line that is too long is being left out.
    skipping: bool,
    /// How much is read at a time, where that is not [`PART`].
    #[serde(skip)]
    part: Option<u64>,
}

impl FileCursor {
    fn part(&self) -> u64 {
        self.part.unwrap_or(PART)
    }

    /// The end of the whole lines in a part. Without one: whether there is more to read, and whether a line is left out from now on.
    fn whole(&mut self, body: &[u8]) -> Result<usize, (bool, bool)> {
        if let Some(end) = memchr::memrchr(b'\n', body) {
            self.part = None;
            return Ok(end + 1);
        }
        if (body.len() as u64) < self.part() {
            return Err((false, false));
        }
        if self.part() < LINE_MAX && !self.skipping {
            self.part = Some((self.part() * 4).min(LINE_MAX));
            return Err((true, false));
        }
        let first = !std::mem::replace(&mut self.skipping, true);
        self.offset += body.len() as u64;
        self.part = None;
        Err((true, first))
    }
}

/// The turn under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Not prompted by the gateway.
    Terminal,
    /// Prompted by the gateway.
    Ours(Ticket),
}

/// A prompt of the gateway's that the dual output does not have yet.
struct WaitingPrompt {
    ticket: Ticket,
    text: String,
    state: PromptStep,
    ticks: u32,
    /// An earlier gateway had it: the terminal may have it already.
    carried: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptStep {
    /// It waits for an idle terminal that is connected.
    Waits,
    /// The tunnel is asked to write it.
    Asked,
    /// The tunnel has written it.
    Sent,
}

/// A question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenQuestion {
    /// The tool call that it is about.
    call: String,
    /// The answer that people gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<bool>,
    /// Whether the tunnel may have written it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sent: bool,
    /// Whether the tunnel is being asked to write it.
    #[serde(skip)]
    asked: bool,
    /// Whether it can be answered from outside, with a yes or a no.
    options: bool,
}

/// What is stored with the session, to go on from it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct QwenCheckpoint {
    pub(super) terminal: String,
    pub(super) process: (u32, u64),
    files: TerminalFiles,
    cwd: String,
    output: FileCursor,
    chat: FileCursor,
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
    pub(super) submits: u64,
    titled: bool,
}

impl QwenTerminal {
    // === the session ===

    /// Its tunnel is there. `submits` are the prompts that it has written.
    pub(super) fn connected(&mut self, connection: u64, process: (u32, u64), files: TerminalFiles, submits: u64) {
        (self.connection, self.process, self.files) = (Some(connection), process, files);
        if self.prompt.is_none() {
            self.submits = submits;
        }
    }

    /// Its tunnel is gone: it may come back.
    pub(super) fn disconnected(&mut self) {
        self.connection = None;
    }

    /// An earlier gateway had it.
    pub(super) fn restore(&mut self, kept: QwenCheckpoint) {
        if self.connection.is_none() {
            (self.process, self.files) = (kept.process, kept.files);
        }
        (self.cwd, self.output, self.chat, self.measured) = (kept.cwd, kept.output, kept.chat, kept.measured);
        self.chat_applied = kept.chat.offset;
        (self.run, self.failed) = (kept.run.then_some(Turn::Terminal), kept.failed);
        (self.block, self.block_new) = (kept.block, kept.block_new);
        (self.calls, self.asks, self.titled) = (kept.calls, kept.asks, kept.titled);
        if self.connection.is_none() {
            self.submits = kept.submits;
        }
    }

    /// The work that an earlier gateway had under way in it. `submits` is as it was then.
    pub(super) fn carry(&mut self, asks: &[RequestKey], prompt: Option<(Ticket, String)>, submits: u64) {
        self.asks.retain(|key, asked| asks.contains(key) || asked.sent);
        if let Some((ticket, text)) = prompt {
            if self.run.is_some() {
                self.run = Some(Turn::Ours(ticket));
            } else {
                // If the tunnel has written it already, it does not write it again.
                self.submits = submits;
                self.prompt = Some(WaitingPrompt { ticket, text, state: PromptStep::Waits, ticks: 0, carried: true });
            }
        }
    }

    /// The gateway has opened its conversation.
    pub(super) fn open(&mut self, native: NativeId, env: &mut TerminalEnv<'_>) {
        (self.native, self.opened) = (Some(native), true);
        self.read(true, env);
    }

    /// Stores how far it is reported, if that is news.
    pub(super) fn checkpoint(&mut self, env: &mut TerminalEnv<'_>) {
        let Some(native) = self.native.clone().filter(|_| self.opened) else { return };
        let kept = QwenCheckpoint {
            terminal: env.id.to_owned(),
            process: self.process,
            files: self.files.clone(),
            cwd: self.cwd.clone(),
            output: self.output,
            chat: FileCursor { offset: self.chat_applied, ..self.chat },
            measured: self.measured,
            run: self.run.is_some(),
            failed: self.failed.clone(),
            block: self.block,
            block_new: self.block_new,
            calls: self.calls.clone(),
            asks: self.asks.clone(),
            submits: self.submits,
            titled: self.titled,
        };
        let state = serde_json::to_string(&kept).unwrap_or_default();
        if state != self.saved {
            self.saved.clone_from(&state);
            env.out.events.push(RuntimeEvent::Checkpoint { native, state });
        }
    }

    /// The prompts that have not ended.
    pub(super) fn prompts(&self) -> impl Iterator<Item = Ticket> {
        let running = self.run.and_then(|run| if let Turn::Ours(ticket) = run { Some(ticket) } else { None });
        running.into_iter().chain(self.prompt.as_ref().map(|prompt| prompt.ticket))
    }

    /// Whether something is to be looked at again soon.
    pub(super) fn active(&self) -> bool {
        let works = self.run.is_some() || self.prompt.is_some() || !self.asks.is_empty();
        self.opened && (works || self.ending.is_some() || self.connection.is_none())
    }

    fn event(&self, draft: EventDraft, env: &mut TerminalEnv<'_>) {
        env.out.events.push(RuntimeEvent::Event { native: self.native.clone(), draft });
    }

    // === reading ===

    /// Reads what is new in the dual output, and in the chat file before.
    pub(super) fn read(&mut self, chat: bool, env: &mut TerminalEnv<'_>) {
        if self.native.is_some() && !self.opened {
            // It goes on once the gateway has opened the conversation.
            return;
        }
        if self.reading {
            self.again = Some(self.again.unwrap_or_default() || chat);
            return;
        }
        self.reading = true;
        if chat && self.opened && !self.files.projects.is_empty() {
            self.read_chat(env);
        } else {
            self.read_output(env);
        }
    }

    fn read_output(&mut self, env: &mut TerminalEnv<'_>) {
        let path = transcript_path(&self.files.output, self.output.offset, self.output.part());
        env.fetch(FetchFor::Output(self.output.offset), "GET", path, None);
    }

    fn read_chat(&mut self, env: &mut TerminalEnv<'_>) {
        let session = self.native.as_ref().map_or("", NativeId::as_str);
        // It becomes part of a path.
        if !session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return self.read_output(env);
        }
        let offset = self.chat_from();
        let path = chat_path(&self.files.projects, &self.cwd, session);
        env.fetch(FetchFor::Chat(offset), "GET", transcript_path(&path, offset, self.chat.part()), None);
    }

    /// Where the next part of the chat file begins; what is beyond its end asks for its length.
    fn chat_from(&self) -> u64 {
        if self.measured { self.chat.offset } else { u64::MAX }
    }

    /// A part of the chat file, or its length.
    pub(super) fn chat_reply(&mut self, from: u64, reply: Result<HttpReply, String>, env: &mut TerminalEnv<'_>) {
        if from != self.chat_from() {
            return self.read_anew(env);
        }
        match reply {
            Ok(HttpReply { status: 416, body }) => {
                let length = length(&body);
                let offset = if self.measured { length } else { length.saturating_sub(CHAT_MAX) };
                self.chat = FileCursor { offset, skipping: !self.measured && offset > 0, part: None };
                if !std::mem::replace(&mut self.measured, true) {
                    return self.read_chat(env);
                }
            }
            Ok(HttpReply { status: 200, body }) => match self.chat.whole(&body) {
                Ok(end) => {
                    for line in body[..end].split(|byte| *byte == b'\n') {
                        if std::mem::take(&mut self.chat.skipping) {
                            continue;
                        }
                        if let Some(said) = chat_line(line) {
                            if self.held.len() >= HELD_MAX {
                                self.held.pop_front();
                            }
                            self.held.push_back(said);
                        }
                    }
                    self.chat.offset += end as u64;
                    if body.len() as u64 >= PART {
                        return self.read_chat(env);
                    }
                }
                Err((true, _)) => return self.read_chat(env),
                Err((false, _)) => {}
            },
            // It is made with the first prompt. Without it the dual output says less, and nothing wrong.
            Ok(_) | Err(_) => {}
        }
        self.read_output(env);
    }

    /// What was asked for is of a time when it was not known yet how far the files are reported.
    fn read_anew(&mut self, env: &mut TerminalEnv<'_>) {
        (self.reading, self.again) = (false, None);
        self.read(true, env);
    }

    /// A part of the dual output.
    pub(super) fn output_reply(&mut self, from: u64, reply: Result<HttpReply, String>, env: &mut TerminalEnv<'_>) {
        if from != self.output.offset {
            return self.read_anew(env);
        }
        self.reading = false;
        let mut more = false;
        match reply {
            Ok(HttpReply { status: 200, body }) => more = self.part(&body, env),
            Ok(HttpReply { status: 416, body }) => {
                self.output = FileCursor { offset: length(&body), ..FileCursor::default() };
                let message = "what Qwen Code writes for Plexus was replaced: some messages may be missing";
                self.event(drafts::error("gap", message), env);
            }
            Ok(HttpReply { status: 404, .. }) if self.ending.is_some() && self.opened => {
                let message = "the terminal was closed while no gateway was running: its last messages may be missing";
                self.event(drafts::error("gap", message), env);
            }
            // The tunnel says when there is more; the process says when there is no more.
            Ok(_) | Err(_) => {}
        }
        if self.native.is_some() && !self.opened {
            return;
        }
        if more {
            self.reading = true;
            return self.read_output(env);
        }
        if let Some(chat) = self.again.take() {
            return self.read(chat, env);
        }
        self.caught_up(env);
    }

    /// Applies the whole lines of a part; whether there is more to read.
    fn part(&mut self, body: &Bytes, env: &mut TerminalEnv<'_>) -> bool {
        let end = match self.output.whole(body) {
            Ok(end) => end,
            Err((more, left_out)) => {
                if left_out {
                    let message = format!("a line of Qwen Code is longer than {LINE_MAX} bytes and is left out");
                    self.event(drafts::error("gap", &message), env);
                }
                return more;
            }
        };
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &body[..end]) {
            let line = body.slice(start..at);
            if !std::mem::take(&mut self.output.skipping) && !line.is_empty() && !self.line(&line, env) {
                // The next conversation: it begins with this line once it is open.
                return false;
            }
            start = at + 1;
            self.output.offset += line.len() as u64 + 1;
        }
        self.quiet = 0;
        body.len() as u64 >= PART
    }

    /// The dual output is reported up to its present end.
    fn caught_up(&mut self, env: &mut TerminalEnv<'_>) {
        for said in std::mem::take(&mut self.held) {
            match said {
                ChatLine::Cancelled { call } => self.cancelled(&call, env),
                ChatLine::Steer { text, at } if at >= self.files.since => self.steered(&text, env),
                ChatLine::Steer { .. } => {}
            }
        }
        self.chat_applied = self.chat.offset;
        if let Some(chat) = self.again.take() {
            return self.read(chat, env);
        }
        if self.ending.is_some() {
            self.end_run(RunStatus::Cancelled, None, env);
            self.over = true;
            return;
        }
        self.deliver(env);
    }

    /// Applies a line; false if it is of another conversation, and so not applied.
    fn line(&mut self, line: &Bytes, env: &mut TerminalEnv<'_>) -> bool {
        let Some(OutputLine { session, cwd, said, spent }) = output_line(line) else {
            self.event(EventDraft::raw(line.clone(), "a line of Qwen Code that could not be read"), env);
            return true;
        };
        if let Some(session) = session.filter(|session| self.native.as_ref().is_none_or(|now| now.as_str() != session))
        {
            self.next_conversation(NativeId::from(session.as_str()), cwd, env);
            return false;
        }
        if let Some(cwd) = cwd {
            self.cwd = cwd;
        }
        if !self.opened {
            return self.native.is_none();
        }
        said.into_iter().for_each(|said| self.said(said, line, env));
        if let (Some(report), Some(native)) = (spent, self.native.clone()) {
            env.out.events.push(RuntimeEvent::Spent { native, report });
        }
        true
    }

    /// Another conversation begins in the terminal.
    fn next_conversation(&mut self, native: NativeId, cwd: Option<String>, env: &mut TerminalEnv<'_>) {
        if self.opened {
            self.end_run(RunStatus::Cancelled, None, env);
            self.checkpoint(env);
            if let Some(prompt) = self.prompt.take() {
                let message = Some("another conversation began in the terminal".to_owned());
                let end = RunEnd { status: RunStatus::Error, stop_reason: None, message, native: None };
                let native = self.native.clone().unwrap_or_else(|| native.clone());
                env.out.events.push(RuntimeEvent::Ended { native, ticket: prompt.ticket, end });
                self.submits += u64::from(prompt.state != PromptStep::Waits);
            }
            if let Some(native) = self.native.take() {
                let why = "another conversation began in its terminal".into();
                env.out.events.push(RuntimeEvent::Closed { native, why });
            }
        }
        self.cwd = cwd.unwrap_or_else(|| std::mem::take(&mut self.cwd));
        (self.opened, self.titled, self.measured) = (false, false, false);
        (self.chat, self.chat_applied, self.saved) = (FileCursor::default(), 0, String::new());
        self.held.clear();
        self.given.clear();
        self.native = Some(native.clone());
        let cwd = Some(self.cwd.clone()).filter(|cwd| cwd.starts_with('/'));
        env.out.events.push(RuntimeEvent::Found { native, cwd, title: None });
    }

    fn said(&mut self, said: QwenEvent<'_>, line: &Bytes, env: &mut TerminalEnv<'_>) {
        match said {
            QwenEvent::Prompt(text) => self.prompted(&text, line, env),
            QwenEvent::BlockStart => (self.block, self.block_new) = (self.output.offset, true),
            QwenEvent::Text(text) => {
                let first = std::mem::take(&mut self.block_new);
                if first && text.starts_with("[API Error") && text.ends_with(']') {
                    self.failed = Some(text);
                } else {
                    self.chunk(Kind::AgentMessageChunk, &text, line, env);
                }
            }
            QwenEvent::Thought(text) => self.chunk(Kind::AgentThoughtChunk, &text, line, env),
            QwenEvent::Whole { text, calls } => {
                if self.run.is_none() && (text.is_some() || !calls.is_empty()) {
                    self.begin(Turn::Terminal, BY_AGENT, env);
                }
                for call in calls {
                    self.event(drafts::tool_call(&call, line), env);
                    if self.calls.len() < CALLS_MAX {
                        self.calls.push(call.id);
                    }
                }
            }
            QwenEvent::StepEnd if self.calls.is_empty() => self.end_run(RunStatus::Completed, None, env),
            QwenEvent::StepEnd => {}
            QwenEvent::Result(over) => {
                if let Some(at) = self.calls.iter().position(|call| *call == over.id) {
                    self.calls.remove(at);
                    self.event(drafts::tool_over(&over, line), env);
                }
                self.call_decided(&over.id, None, env);
            }
            QwenEvent::Asks { id, question } => self.ask(RequestKey::unique(id), &question, line, env),
            QwenEvent::Decided { id, allowed } => self.decided(&RequestKey::unique(id), Some(allowed), env),
            QwenEvent::Refused { id } => self.refused(&RequestKey::unique(id), env),
        }
    }

    fn chunk(&mut self, kind: Kind, text: &str, line: &Bytes, env: &mut TerminalEnv<'_>) {
        if self.run.is_none() {
            self.begin(Turn::Terminal, BY_AGENT, env);
        }
        let message = format!("qwen-{}", self.block);
        self.event(drafts::chunk(kind, text, Some(&message), line), env);
    }

    // === turns ===

    fn begin(&mut self, run: Turn, by: &str, env: &mut TerminalEnv<'_>) {
        self.run = Some(run);
        if let Some(native) = self.native.clone() {
            env.out.events.push(RuntimeEvent::Began { native, by: by.into() });
        }
    }

    fn prompted(&mut self, text: &str, line: &Bytes, env: &mut TerminalEnv<'_>) {
        // Qwen Code did not say that the last turn was stopped.
        self.end_run(RunStatus::Cancelled, None, env);
        if !std::mem::replace(&mut self.titled, true) {
            self.event(drafts::title(text, line), env);
        }
        if !self.taken(text) {
            self.begin(Turn::Terminal, AT_TERMINAL, env);
            self.event(drafts::chunk(Kind::UserMessageChunk, text, None, line), env);
        }
    }

    /// A prompt was taken into the turn under way.
    fn steered(&mut self, text: &str, env: &mut TerminalEnv<'_>) {
        if !self.taken(text) {
            self.event(drafts::chunk(Kind::UserMessageChunk, text, None, &Bytes::new()), env);
        }
    }

    /// Whether Qwen Code has taken the gateway's prompt: the turn is its own then.
    fn taken(&mut self, text: &str) -> bool {
        let ours = |prompt: &mut WaitingPrompt| {
            (prompt.carried || prompt.state != PromptStep::Waits) && text.contains(prompt.text.trim())
        };
        let Some(prompt) = self.prompt.take_if(ours) else { return false };
        self.submits += 1;
        self.run = Some(Turn::Ours(prompt.ticket));
        true
    }

    fn end_run(&mut self, status: RunStatus, message: Option<&str>, env: &mut TerminalEnv<'_>) {
        self.calls.clear();
        let failed = self.failed.take();
        let Some(native) = self.native.clone() else { return };
        let keys: Vec<RequestKey> = self.asks.keys().cloned().collect();
        // A call that was allowed would have said so.
        keys.iter().for_each(|key| self.decided(key, Some(false), env));
        let Some(run) = self.run.take() else { return };
        let status = if failed.is_some() { RunStatus::Error } else { status };
        let message = failed.or_else(|| message.map(str::to_owned));
        let end = RunEnd { status, stop_reason: None, message, native: None };
        env.out.events.push(match run {
            Turn::Ours(ticket) => RuntimeEvent::Ended { native, ticket, end },
            Turn::Terminal => RuntimeEvent::Done { native, end },
        });
        // What was typed into it.
        self.again = Some(true);
    }

    /// A tool call was cancelled: nobody allowed it, or it was stopped.
    fn cancelled(&mut self, call: &str, env: &mut TerminalEnv<'_>) {
        let Some(at) = self.calls.iter().position(|known| known == call) else { return };
        self.calls.remove(at);
        let over = super::output::ToolOver { id: call.to_owned(), failed: true, text: None };
        self.event(drafts::tool_over(&over, &Bytes::new()), env);
        self.call_decided(call, Some(false), env);
        if self.calls.is_empty() {
            self.end_run(RunStatus::Cancelled, None, env);
        }
    }

    // === questions ===

    fn ask(&mut self, key: RequestKey, asked: &super::output::ToolUse<'_>, line: &Bytes, env: &mut TerminalEnv<'_>) {
        if self.asks.len() >= ASKS_MAX || self.asks.contains_key(&key) {
            return;
        }
        if self.run.is_none() {
            self.begin(Turn::Terminal, BY_AGENT, env);
        }
        let ask = Box::new(drafts::question(key.clone(), asked, line.clone()));
        let options = !ask.options.is_empty();
        env.out.events.push(RuntimeEvent::Asked { native: self.native.clone(), ask });
        self.asks.insert(key, OpenQuestion { call: asked.id.clone(), options, ..OpenQuestion::default() });
    }

    /// What people decided.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, env: &mut TerminalEnv<'_>) {
        let Some(asked) = self.asks.get_mut(key) else { return };
        match drafts::allows(decision) {
            Some(allowed) => {
                // What the tunnel may have written already, it does not write again.
                (asked.answer, asked.sent, asked.asked) = (Some(allowed), false, false);
                self.give(env);
            }
            // The terminal's own dialog decides.
            None => _ = self.asks.remove(key),
        }
    }

    /// Has the tunnel write the answers that it has not written.
    fn give(&mut self, env: &mut TerminalEnv<'_>) {
        let Some(connection) = self.connection else { return };
        for (key, asked) in &mut self.asks {
            let Some(allowed) = asked.answer.filter(|_| !asked.asked) else { continue };
            if asked.sent {
                continue;
            }
            (asked.asked, asked.sent) = (true, true);
            let line = json!({ "type": "confirmation_response", "request_id": key.id(), "allowed": allowed });
            let body = json!({ "once": key.id(), "line": line }).to_string();
            env.fetch(FetchFor::Answer(key.clone()), "POST", tunnel_path(connection, "/input"), Some(body.into()));
        }
    }

    /// Whether the tunnel has written an answer.
    pub(super) fn answer_reply(&mut self, key: &RequestKey, written: bool) {
        if let Some(asked) = self.asks.get_mut(key) {
            // It writes an answer once, however often it is asked to.
            (asked.asked, asked.sent) = (false, written);
        }
    }

    /// The questions about a tool call are decided.
    fn call_decided(&mut self, call: &str, allowed: Option<bool>, env: &mut TerminalEnv<'_>) {
        let about = self.asks.iter().filter(|(_, asked)| asked.call == call);
        let keys: Vec<RequestKey> = about.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.decided(key, allowed, env));
    }

    /// A question is decided: it was allowed or not, as far as that is known.
    fn decided(&mut self, key: &RequestKey, allowed: Option<bool>, env: &mut TerminalEnv<'_>) {
        let Some(asked) = self.asks.remove(key) else { return };
        let (native, key) = (self.native.clone(), key.clone());
        let elsewhere = elsewhere(allowed.filter(|_| asked.options));
        match asked.answer {
            None => env.out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere: Some(elsewhere) }),
            // If the terminal was first with the same answer, the refusal of ours says so.
            Some(ours) if asked.sent && allowed.is_none_or(|allowed| allowed == ours) => {
                if self.given.len() >= GIVEN_MAX {
                    self.given.pop_front();
                }
                self.given.push_back((key, allowed));
            }
            Some(_) => env.out.events.push(RuntimeEvent::AnswerLost { native, key, elsewhere }),
        }
    }

    /// An answer came too late.
    fn refused(&mut self, key: &RequestKey, env: &mut TerminalEnv<'_>) {
        if let Some(asked) = self.asks.get_mut(key) {
            // Of a call that was allowed the dual output would have said so.
            asked.sent = false;
            let call = asked.call.clone();
            self.decided(key, Some(false), env);
            return self.cancelled(&call, env);
        }
        if let Some(at) = self.given.iter().position(|(given, _)| given == key)
            && let Some((_, allowed)) = self.given.remove(at)
        {
            let (native, key) = (self.native.clone(), key.clone());
            env.out.events.push(RuntimeEvent::AnswerLost { native, key, elsewhere: elsewhere(allowed) });
        }
    }

    // === prompts ===

    /// A prompt of the gateway's.
    pub(super) fn start(&mut self, ticket: Ticket, text: String, env: &mut TerminalEnv<'_>) {
        self.prompt = Some(WaitingPrompt { ticket, text, state: PromptStep::Waits, ticks: 0, carried: false });
        self.deliver(env);
    }

    /// A prompt is not wanted any more; whether that could be.
    pub(super) fn withdraw(&mut self, ticket: Option<Ticket>, env: &mut TerminalEnv<'_>) -> bool {
        let waits = |prompt: &mut WaitingPrompt| {
            prompt.state == PromptStep::Waits && ticket.is_none_or(|ticket| prompt.ticket == ticket)
        };
        let Some(prompt) = self.prompt.take_if(waits) else { return false };
        self.prompt_over(prompt.ticket, RunStatus::Cancelled, None, env);
        true
    }

    fn prompt_over(&self, ticket: Ticket, status: RunStatus, message: Option<&str>, env: &mut TerminalEnv<'_>) {
        let end = RunEnd { status, stop_reason: None, message: message.map(str::to_owned), native: None };
        if let Some(native) = self.native.clone() {
            env.out.events.push(RuntimeEvent::Ended { native, ticket, end });
        }
    }

    /// Has the tunnel write what waits for it.
    pub(super) fn deliver(&mut self, env: &mut TerminalEnv<'_>) {
        self.give(env);
        // While Qwen Code works, it would take a prompt into the turn under way.
        let Some(connection) = self.connection.filter(|_| self.run.is_none() && self.ending.is_none()) else { return };
        let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.state == PromptStep::Waits) else { return };
        (prompt.state, prompt.ticks) = (PromptStep::Asked, 0);
        let line = json!({ "type": "submit", "text": prompt.text });
        let body = json!({ "submit": self.submits, "line": line }).to_string();
        env.fetch(FetchFor::Prompt(prompt.ticket), "POST", tunnel_path(connection, "/input"), Some(body.into()));
    }

    /// Whether the tunnel has written a prompt.
    pub(super) fn prompt_reply(&mut self, ticket: Ticket, written: bool) {
        if let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) {
            prompt.state = if written { PromptStep::Sent } else { PromptStep::Waits };
        }
    }

    // === time ===

    /// Time has passed.
    pub(super) fn tick(&mut self, env: &mut TerminalEnv<'_>) {
        self.quiet = self.quiet.saturating_add(1);
        let idle = self.run.is_none();
        if let Some(prompt) = self.prompt.as_mut().filter(|_| idle) {
            prompt.ticks += 1;
            let why = match prompt.state {
                PromptStep::Waits if prompt.ticks >= UNSENT_TICKS => {
                    Some("its terminal is not connected: the `plexus wrap` that started it is gone, type it there")
                }
                PromptStep::Sent if prompt.ticks >= TAKEN_TICKS => {
                    Some("Qwen Code did not take the prompt: it may still wait in its terminal")
                }
                _ => None,
            };
            if let Some(why) = why {
                let (ticket, sent) = (prompt.ticket, prompt.state != PromptStep::Waits);
                self.prompt = None;
                self.submits += u64::from(sent);
                self.prompt_over(ticket, RunStatus::Error, Some(why), env);
            }
        }
        if self.quiet >= SILENT_TICKS && self.calls.is_empty() && self.asks.is_empty() && !idle {
            let message = "Qwen Code said nothing for a minute: the turn was stopped at the terminal, most likely";
            self.end_run(RunStatus::Cancelled, Some(message), env);
        }
        self.deliver(env);
        if self.quiet < QUIET_TICKS || self.quiet.is_multiple_of(RARE_TICKS) {
            self.read(true, env);
        }
    }

    /// Hangs up on its tunnel.
    pub(super) fn hang_up(&mut self, env: &mut TerminalEnv<'_>) {
        if let Some(connection) = self.connection.take() {
            env.out.frames.push(jsonrpc::line(&LinkReply { connection, exit: HelperExit::default() }));
        }
    }
}

/// Who decided a question that people did not answer here.
fn elsewhere(allowed: Option<bool>) -> AnsweredElsewhere {
    let option_id = allowed.map(|allowed| if allowed { ALLOW } else { DENY }.to_owned());
    AnsweredElsewhere { by: AT_TERMINAL.into(), option_id }
}

/// The length of a file, from the reply that says it.
fn length(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
