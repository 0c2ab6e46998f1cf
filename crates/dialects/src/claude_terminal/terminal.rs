//! One session of Claude Code in its terminal. Pure.
//!
//! What happened is read from the transcript, in its order; the hooks say when to read it, and add what it has not: the questions that
//! are open, and text line by line. What a hook says is applied once the transcript is read up to its present end.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::call_tokens::CountedCalls;
use super::super::link::{HelperExit, LinkReply, transcript_path};
use super::super::{
    AgentReview, AnsweredElsewhere, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, RunEnd,
    RuntimeEvent, jsonrpc,
};
use super::drafts;
use super::live::{LiveText, ShownLines, TextLines};
use super::permission::{ALLOW, Call, DENY, Permission, PermissionEvent, denied_by_itself};
use super::transcript::{self, Block, DecidedBy, Line, PromptOrigin, ToolResult};
use plexus_protocol::{Decision, Kind, NativeId, RunStatus, Ticket};

/// Who acts at the terminal.
pub(super) const AT_TERMINAL: &str = "the terminal";
/// Who starts a turn that nobody prompted.
const BY_AGENT: &str = "Claude Code";

/// What is read of a transcript at a time, in bytes …
const PART: u64 = 1 << 20;
/// … and for a line that is longer, at most. A longer line is left out, and that is said.
const LINE_MAX: u64 = 64 << 20;
/// How much of an old transcript is shown, in bytes from its end.
const HISTORY_MAX: u64 = 8 << 20;
/// Hooks whose events wait for the transcript …
const QUEUE_MAX: usize = 1024;
/// … and bytes of text in them. What is beyond either is not kept: the transcript has it. Questions always are.
const QUEUE_BYTES: usize = 4 << 20;
/// Running tool calls remembered, to know which one a question is about.
const CALLS_MAX: usize = 256;
/// Most open questions of a session; further ones can only be answered at the terminal.
const ASKS_MAX: usize = 256;

/// Ticks (of [`TICK`](super::TICK)) without news after which the transcript is looked at more rarely …
const QUIET_TICKS: u32 = 40;
/// … at every one of so many ticks.
const RARE_TICKS: u32 = 8;
/// Ticks after the hook that says that a turn is over until it counts as over, where the transcript does not
/// say so.
const STOP_TICKS: u32 = 8;
/// Ticks until a question counts as one that only the terminal can answer, where its hook is gone.
const GONE_TICKS: u32 = 20;
/// Ticks that a prompt waits for the terminal to take it.
const INBOX_TICKS: u32 = 60;
/// Ticks that a prompt may take from there to the transcript.
const TAKEN_TICKS: u32 = 120;
/// Ticks after which a prompt of an earlier gateway, of which the transcript says nothing, counts as not delivered.
const UNKNOWN_TICKS: u32 = 12;

/// A session.
#[derive(Default)]
pub(super) struct Terminal {
    /// The process of the terminal, and when it started.
    pub(super) process: (u32, u64),
    /// The transcript.
    path: String,
    /// The folder.
    pub(super) cwd: String,
    /// Whether the gateway has opened it.
    pub(super) opened: bool,
    /// Up to where the transcript is reported.
    offset: u64,
    /// How much of it is read at a time.
    part: u64,
    /// A line that is too long is being left out.
    skipping: bool,
    /// What is reported is from before the gateway saw the session: its turns are over.
    past: Past,
    /// The read under way.
    reading: Option<u64>,
    /// Whether to read once more after it.
    again: bool,
    /// What hooks said, until the transcript is read, and the bytes of text in it.
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    run: Option<Run>,
    /// A hook said that a turn is under way, and its prompt is not in the transcript yet: that is written a moment later.
    early: bool,
    /// The error that the turn failed with.
    failed: Option<String>,
    live: LiveText,
    /// The running tool calls by their ids, oldest first.
    calls: Vec<(String, Call)>,
    pub(super) asks: BTreeMap<RequestKey, Asked>,
    /// The hook that waits for a prompt.
    pub(super) inbox: Option<u64>,
    prompt: Option<Prompt>,
    /// Ticks since a hook or the transcript had news.
    quiet: u32,
    /// Ticks since a hook said that the turn is over.
    stopped: Option<u32>,
    /// Why the session ends, once its transcript is read.
    pub(super) ending: Option<String>,
    /// It ended, and all of its transcript is reported.
    over: bool,
    /// Whether the session has a title.
    titled: bool,
    /// What is counted of the tokens.
    counted: CountedCalls,
    /// The last checkpoint.
    saved: String,
}

/// How the past of a session is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Past {
    /// There is none, or it is read.
    #[default]
    Read,
    /// The length of the transcript is asked for: only its end is shown.
    Measured { shown: bool },
    /// It is being read.
    Reading,
}

/// The turn under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// Not prompted by the gateway.
    Terminal,
    /// Prompted by the gateway.
    Ours(Ticket),
}

/// A prompt of the gateway's that is not in the transcript yet.
struct Prompt {
    ticket: Ticket,
    text: String,
    state: PromptState,
    ticks: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptState {
    /// It waits for a hook that takes it.
    Waits,
    /// A hook took it.
    Sent,
    /// An earlier gateway had it; whether a hook took it is unknown.
    Unknown,
}

/// A question.
pub(super) struct Asked {
    /// The hook that waits for the answer.
    connection: Option<u64>,
    /// Ticks without a hook.
    gone: u32,
    /// What it asks; unknown where an earlier gateway asked it and the hook has not come again.
    permission: Option<Permission>,
    /// The tool call that it is about.
    call: Option<String>,
    /// Whether people see it.
    shown: bool,
    /// Whether people see that only the terminal can answer it.
    observed: bool,
    native: Bytes,
    /// The answer, until the hook has it.
    answer: Option<Decision>,
    /// Whether the hook was given the answer.
    given: bool,
}

/// What a hook said.
enum Queued {
    Lines(TextLines),
    Question(RequestKey),
    ToolUse { id: String, call: Call },
    ToolOver { id: Option<String>, call: Option<Call> },
    Stopped { error: Option<String> },
}

/// The input of a hook, as far as it is used.
#[derive(Deserialize)]
pub(super) struct HookEvent<'a> {
    pub(super) session_id: String,
    pub(super) transcript_path: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) hook_event_name: String,
    pub(super) reason: Option<String>,
    #[serde(borrow)]
    tool_name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    error: Option<Value>,
}

/// What is stored with the session, to go on from it.
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
    /// Whether a turn is under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    /// Whether its prompt is not in the transcript yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    early: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shown: Vec<ShownLines>,
    /// The tool call of each open question.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestKey, Option<String>>,
    #[serde(skip_serializing_if = "CountedCalls::is_empty")]
    counted: CountedCalls,
}

/// The process of a session that an earlier gateway had, from its checkpoint.
pub(super) fn restored_process(checkpoint: &str) -> Option<(u32, u64)> {
    serde_json::from_str::<Checkpoint>(checkpoint).ok().map(|kept| kept.process).filter(|(pid, _)| *pid != 0)
}

/// The requests under way, with the session that each is about.
#[derive(Default)]
pub(super) struct Fetches {
    last: u64,
    pub(super) pending: HashMap<u64, NativeId>,
}

/// What a terminal works with: its name, the requests under way, and the outbox.
pub(super) struct Env<'a> {
    pub(super) native: &'a NativeId,
    pub(super) fetches: &'a mut Fetches,
    pub(super) out: &'a mut Outbox,
}

impl Env<'_> {
    fn event(&mut self, draft: EventDraft) {
        self.out.events.push(RuntimeEvent::Event { native: Some(self.native.clone()), draft });
    }

    pub(super) fn fetch(&mut self, path: String) -> u64 {
        self.fetches.last += 1;
        let (id, base) = (self.fetches.last, HttpBase::Connect);
        let session = Some(self.native.clone());
        self.fetches.pending.insert(id, self.native.clone());
        self.out.fetches.push(HttpRequest { id, base, method: "GET", path, body: None, decides: false, session });
        id
    }

    /// Ends a helper.
    pub(super) fn release(&mut self, connection: u64, exit: HelperExit) {
        self.out.frames.push(jsonrpc::line(&LinkReply { connection, exit }));
    }
}

impl Terminal {
    // === the session ===

    /// Where its process, transcript and folder are, by its latest hook.
    pub(super) fn located(&mut self, process: (u32, u64), event: &HookEvent<'_>) {
        self.process = process;
        if let Some(path) = &event.transcript_path {
            if self.path != *path && !self.path.is_empty() {
                (self.offset, self.skipping) = (0, false);
            }
            self.path.clone_from(path);
        }
        if let Some(cwd) = &event.cwd {
            self.cwd.clone_from(cwd);
        }
    }

    /// The gateway opened it. `checkpoint` is what an earlier gateway left, `known` whether the log has its past.
    pub(super) fn open(&mut self, checkpoint: Option<&str>, known: bool) {
        self.opened = true;
        self.part = PART;
        let Some(kept) = checkpoint.and_then(|text| serde_json::from_str::<Checkpoint>(text).ok()) else {
            self.past = Past::Measured { shown: !known };
            return;
        };
        if self.path.is_empty() {
            (self.path, self.cwd, self.process) = (kept.path, kept.cwd, kept.process);
        }
        (self.offset, self.skipping, self.titled) = (kept.offset, kept.skipping, kept.titled);
        self.live = LiveText::restored(kept.shown);
        self.counted = kept.counted;
        (self.run, self.early) = (kept.run.then_some(Run::Terminal), kept.early);
        for (key, call) in kept.asks {
            self.asks.entry(key).or_insert_with(Asked::unknown).call = call;
        }
    }

    /// The work that an earlier gateway had under way in it.
    pub(super) fn carry(&mut self, asks: &[RequestKey], prompt: Option<(Ticket, String)>) {
        // What was open and is not any more is over; the session does not have it either.
        self.asks.retain(|key, asked| asks.contains(key) || asked.connection.is_some());
        for key in asks {
            self.asks.entry(key.clone()).or_insert_with(Asked::unknown).shown = true;
        }
        if let Some((ticket, text)) = prompt {
            if self.run.is_some() {
                self.run = Some(Run::Ours(ticket));
            } else {
                self.prompt = Some(Prompt { ticket, text, state: PromptState::Unknown, ticks: 0 });
            }
        }
    }

    /// Stores how far it is reported, if that is news.
    pub(super) fn checkpoint(&mut self, env: &mut Env<'_>) {
        if !self.opened {
            return;
        }
        let asks = self.asks.iter().filter(|(_, asked)| asked.shown);
        let kept = Checkpoint {
            process: self.process,
            path: self.path.clone(),
            cwd: self.cwd.clone(),
            offset: self.offset,
            skipping: self.skipping,
            titled: self.titled,
            run: self.run.is_some(),
            early: self.early,
            shown: self.live.saved(),
            asks: asks.map(|(key, asked)| (key.clone(), asked.call.clone())).collect(),
            counted: self.counted.clone(),
        };
        let state = serde_json::to_string(&kept).unwrap_or_default();
        if state != self.saved {
            self.saved.clone_from(&state);
            env.out.events.push(RuntimeEvent::Checkpoint { native: env.native.clone(), state });
        }
    }

    /// The prompts that have not ended.
    pub(super) fn prompts(&self) -> impl Iterator<Item = Ticket> {
        let running = self.run.and_then(|run| if let Run::Ours(ticket) = run { Some(ticket) } else { None });
        running.into_iter().chain(self.prompt.as_ref().map(|prompt| prompt.ticket))
    }

    /// Whether it ended, and nothing more is to be reported.
    pub(super) fn is_over(&self) -> bool {
        self.over || (self.ending.is_some() && !self.opened)
    }

    /// Whether something is to be looked at again soon.
    pub(super) fn active(&self) -> bool {
        self.opened
            && (self.run.is_some()
                || self.prompt.is_some()
                || self.stopped.is_some()
                || self.ending.is_some()
                || !self.asks.is_empty())
    }

    // === the transcript ===

    /// Reads what is new in the transcript.
    pub(super) fn read(&mut self, env: &mut Env<'_>) {
        if !self.opened {
            return;
        }
        if self.reading.is_some() {
            self.again = true;
            return;
        }
        let offset = if matches!(self.past, Past::Measured { .. }) { u64::MAX } else { self.offset };
        self.reading = Some(env.fetch(transcript_path(&self.path, offset, self.part)));
    }

    /// A part of the transcript.
    pub(super) fn read_reply(&mut self, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        self.reading = None;
        let mut more = std::mem::take(&mut self.again);
        match (reply, self.past) {
            (Ok(HttpReply { status: 416, body }), Past::Measured { shown }) => {
                let length = length(&body);
                self.past = Past::Reading;
                self.offset = if shown { length.saturating_sub(HISTORY_MAX) } else { length };
                self.skipping = shown && self.offset > 0;
                let lost = match shown {
                    true if self.offset > 0 => Some("older messages of this session are not shown"),
                    false if length > 0 => Some("messages from the time when no gateway was running may be missing"),
                    _ => None,
                };
                lost.iter().for_each(|lost| env.event(drafts::error("gap", lost)));
                more = true;
            }
            (Ok(HttpReply { status: 200, body }), _) => more |= self.part(&body, env),
            (Ok(HttpReply { status: 416, body }), _) => {
                (self.offset, self.skipping) = (length(&body), false);
                let message = "the transcript was replaced by a shorter one: some messages may be missing";
                env.event(drafts::error("gap", message));
            }
            // It is written with the first message.
            (Ok(HttpReply { status: 404, .. }), _) => self.past = Past::Read,
            (Ok(HttpReply { status, .. }), _) => self.unread(&format!("it was answered with {status}"), env),
            (Err(why), _) => self.unread(&why, env),
        }
        if more {
            return self.read(env);
        }
        self.caught_up(env);
    }

    fn unread(&mut self, why: &str, env: &mut Env<'_>) {
        if self.past != Past::Read {
            self.past = Past::Read;
            env.event(drafts::error("gap", &format!("the transcript cannot be read: {why}")));
        }
    }

    /// Applies the whole lines of a part; whether there is more to read.
    fn part(&mut self, body: &Bytes, env: &mut Env<'_>) -> bool {
        let full = body.len() as u64 >= self.part;
        let Some(end) = memchr::memrchr(b'\n', body) else {
            if !full {
                return false;
            }
            if self.part < LINE_MAX && !self.skipping {
                self.part = (self.part * 4).min(LINE_MAX);
            } else {
                if !self.skipping {
                    let message = format!("a line of the transcript is longer than {LINE_MAX} bytes and is left out");
                    env.event(drafts::error("gap", &message));
                }
                (self.skipping, self.offset, self.part) = (true, self.offset + body.len() as u64, PART);
            }
            return true;
        };
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &body[..=end]) {
            if !std::mem::take(&mut self.skipping) && at > start {
                self.line(&body.slice(start..at), env);
            }
            start = at + 1;
        }
        self.offset += start as u64;
        (self.part, self.quiet) = (PART, 0);
        full
    }

    /// The transcript is reported up to its present end.
    fn caught_up(&mut self, env: &mut Env<'_>) {
        if std::mem::replace(&mut self.past, Past::Read) != Past::Read && self.run.is_some() {
            self.run = None;
            self.begin(Run::Terminal, AT_TERMINAL, env);
        }
        self.queued_bytes = 0;
        for queued in std::mem::take(&mut self.queue) {
            self.apply(queued, env);
        }
        if self.stopped.is_some_and(|ticks| ticks >= STOP_TICKS) {
            self.end_run(RunStatus::Completed, env);
        }
        if self.ending.is_some() {
            self.end_run(RunStatus::Cancelled, env);
            self.over = true;
        }
    }

    fn line(&mut self, line: &Bytes, env: &mut Env<'_>) {
        let lines = match transcript::read(line) {
            Ok(lines) => lines,
            Err(why) => return env.event(EventDraft::raw(line.clone(), why)),
        };
        for said in lines {
            match said {
                Line::Prompt { text, origin } => self.prompted(text, origin, line, env),
                Line::Interjection(text) => {
                    env.event(drafts::chunk(Kind::UserMessageChunk, &text, None, Some(line)));
                }
                Line::Command(text) => {
                    if let Some(text) = command_text(&text) {
                        env.event(drafts::chunk(Kind::UserMessageChunk, &text, None, Some(line)));
                    }
                }
                Line::Block(block) => self.block(block, line, env),
                Line::Results(results) => results.iter().for_each(|result| self.result(result, line, env)),
                Line::Interrupted => self.end_run(RunStatus::Cancelled, env),
                Line::ServiceError(message) => self.failed = Some(message),
                Line::TurnEnd => self.end_run(RunStatus::Completed, env),
                Line::Title(title) => {
                    self.titled = true;
                    env.event(drafts::title(title, line));
                }
                Line::Spent { call, spending } => {
                    // What was spent before the gateway saw the session does not count.
                    let report = self.counted.told(&call, &spending).filter(|_| self.past == Past::Read);
                    let native = env.native.clone();
                    env.out.events.extend(report.map(|report| RuntimeEvent::Spent { native, report }));
                }
            }
        }
    }

    fn prompted(&mut self, text: String, origin: PromptOrigin, line: &Bytes, env: &mut Env<'_>) {
        if !std::mem::take(&mut self.early) {
            self.end_run(RunStatus::Completed, env);
        }
        let ours = self.prompt.take_if(|prompt| origin == PromptOrigin::Agent && text.contains(prompt.text.trim()));
        if let Some(prompt) = ours {
            self.run = Some(Run::Ours(prompt.ticket));
            return;
        }
        if self.run.is_none() {
            let by = if origin == PromptOrigin::Person { AT_TERMINAL } else { BY_AGENT };
            self.begin(Run::Terminal, by, env);
        }
        env.event(drafts::chunk(Kind::UserMessageChunk, &text, None, Some(line)));
        if origin == PromptOrigin::Person && !std::mem::replace(&mut self.titled, true) {
            // As in Claude Code's own list of sessions, until it has a title.
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            env.event(drafts::title(drafts::shortened(first.trim()), line));
        }
    }

    fn block(&mut self, block: Block<'_>, line: &Bytes, env: &mut Env<'_>) {
        if self.run.is_none() {
            self.begin(Run::Terminal, BY_AGENT, env);
        }
        match block {
            Block::Text(text) => {
                if let Some(draft) = self.live.whole(text, line) {
                    env.event(draft);
                }
            }
            Block::Thought(text) => env.event(drafts::chunk(Kind::AgentThoughtChunk, &text, None, Some(line))),
            Block::ToolUse { id, name, input } => {
                env.event(drafts::tool_call(&id, &name, input, line));
                self.called(id, Call::new(&name, input));
            }
        }
    }

    fn called(&mut self, id: String, call: Call) {
        if self.calls.len() < CALLS_MAX && !self.calls.iter().any(|(known, _)| *known == id) {
            self.calls.push((id, call));
        }
    }

    fn result(&mut self, result: &ToolResult<'_>, line: &Bytes, env: &mut Env<'_>) {
        self.calls.retain(|(id, _)| *id != result.id);
        env.event(drafts::tool_result(result, line));
        let about = |asked: &Asked| asked.call.as_deref() == Some(&result.id);
        let keys: Vec<RequestKey> =
            self.asks.iter().filter(|(_, asked)| about(asked)).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.settled(key, result.decided, env));
    }

    // === turns ===

    fn begin(&mut self, run: Run, by: &str, env: &mut Env<'_>) {
        self.run = Some(run);
        if self.past == Past::Read {
            env.out.events.push(RuntimeEvent::Began { native: env.native.clone(), by: by.into() });
        }
    }

    /// A hook says that a turn is under way.
    fn begin_early(&mut self, env: &mut Env<'_>) {
        if self.run.is_none() {
            self.begin(Run::Terminal, AT_TERMINAL, env);
            self.early = true;
        }
    }

    fn end_run(&mut self, status: RunStatus, env: &mut Env<'_>) {
        (self.stopped, self.early) = (None, false);
        self.live.turn_ended();
        self.calls.clear();
        let failed = self.failed.take();
        let keys: Vec<RequestKey> =
            self.asks.iter().filter(|(_, asked)| asked.shown).map(|(key, _)| key.clone()).collect();
        let Some(run) = self.run.take() else { return };
        keys.iter().for_each(|key| self.settled(key, None, env));
        let status = if failed.is_some() { RunStatus::Error } else { status };
        let end = RunEnd { status, stop_reason: None, message: failed, native: None };
        let native = env.native.clone();
        match run {
            Run::Ours(ticket) => env.out.events.push(RuntimeEvent::Ended { native, ticket, end }),
            Run::Terminal if self.past == Past::Read => env.out.events.push(RuntimeEvent::Done { native, end }),
            Run::Terminal => {}
        }
    }

    // === hooks ===

    /// A hook reports something; it is applied once the transcript is read.
    pub(super) fn hook(&mut self, event: &HookEvent<'_>, raw: &RawValue, env: &mut Env<'_>) {
        if event.hook_event_name == "PermissionDenied"
            && let Some(ask) = denied_by_itself(raw, event.tool_use_id.clone())
        {
            let (native, reason) = (env.native.clone(), event.reason.clone());
            let review = AgentReview { by: "Claude Code's auto mode".into(), allowed: false, reason };
            env.out.events.push(RuntimeEvent::Reviewed { native, ask: Box::new(ask), review });
        }
        let call = || Some(Call::new(event.tool_name.as_deref()?, event.tool_input?));
        let queued = match event.hook_event_name.as_str() {
            "MessageDisplay" => jsonrpc::object::<TextLines>(raw).map(Queued::Lines),
            "PreToolUse" => event.tool_use_id.clone().zip(call()).map(|(id, call)| Queued::ToolUse { id, call }),
            "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
                Some(Queued::ToolOver { id: event.tool_use_id.clone(), call: call() })
            }
            "Stop" => Some(Queued::Stopped { error: None }),
            "StopFailure" => {
                let error = event.error.as_ref().map(|error| error.as_str().map_or(error.to_string(), str::to_owned));
                Some(Queued::Stopped { error: Some(error.unwrap_or_else(|| "Claude Code reports a failure".into())) })
            }
            _ => None,
        };
        if let Some(queued) = queued {
            let bytes = if let Queued::Lines(lines) = &queued { lines.length() } else { 0 };
            if self.queue.len() < QUEUE_MAX && self.queued_bytes + bytes <= QUEUE_BYTES {
                self.queued_bytes += bytes;
                self.queue.push_back(queued);
            }
        }
        self.quiet = 0;
        self.read(env);
    }

    /// A hook waits for the answer to a question.
    pub(super) fn question(&mut self, key: RequestKey, connection: u64, raw: &RawValue, env: &mut Env<'_>) {
        let Some(event) = jsonrpc::object::<PermissionEvent<'_>>(raw) else {
            env.event(EventDraft::raw(
                Bytes::copy_from_slice(raw.get().as_bytes()),
                "a question of Claude Code that could not be read: it can only be answered at the terminal",
            ));
            return env.release(connection, HelperExit::default());
        };
        if !self.asks.contains_key(&key) && self.asks.len() >= ASKS_MAX {
            return env.release(connection, HelperExit::default());
        }
        let asked = self.asks.entry(key.clone()).or_insert_with(Asked::unknown);
        asked.native = Bytes::copy_from_slice(raw.get().as_bytes());
        asked.permission = Some(Permission::new(&event));
        asked.gone = 0;
        if let Some(old) = asked.connection.replace(connection) {
            env.release(old, HelperExit::default());
        }
        if asked.observed {
            asked.observed = false;
            let ask = asked.request(&key);
            let native = Some(env.native.clone());
            env.out.events.extend(ask.map(|ask| RuntimeEvent::AskChanged { native, ask: Box::new(ask) }));
        }
        self.queue.push_back(Queued::Question(key));
        self.read(env);
    }

    /// A helper's connection is gone.
    pub(super) fn disconnected(&mut self, connection: u64) {
        self.inbox.take_if(|inbox| *inbox == connection);
        for asked in self.asks.values_mut() {
            asked.connection.take_if(|waits| *waits == connection);
        }
    }

    fn apply(&mut self, queued: Queued, env: &mut Env<'_>) {
        match queued {
            Queued::Lines(lines) => {
                let drafts = self.live.lines(lines);
                if !drafts.is_empty() {
                    self.begin_early(env);
                }
                drafts.into_iter().for_each(|draft| env.event(draft));
            }
            Queued::ToolUse { id, call } => self.called(id, call),
            Queued::ToolOver { id, call } => {
                let about = |asked: &Asked| match (&asked.call, &id) {
                    // The transcript says who decided.
                    (Some(_), _) => false,
                    (None, _) => call.as_ref().is_some_and(|call| asked.is_about(call)),
                };
                let keys: Vec<RequestKey> =
                    self.asks.iter().filter(|(_, asked)| about(asked)).map(|(key, _)| key.clone()).collect();
                keys.iter().for_each(|key| self.settled(key, None, env));
            }
            Queued::Stopped { error } => {
                self.failed = self.failed.take().or(error);
                self.stopped = self.run.is_some().then_some(0);
            }
            Queued::Question(key) => self.ask(&key, env),
        }
    }

    // === questions ===

    /// Shows a question, and gives its hook an answer that is there already.
    fn ask(&mut self, key: &RequestKey, env: &mut Env<'_>) {
        let Some(asked) = self.asks.get(key) else { return };
        if asked.call.is_none() {
            let taken = |id: &String| self.asks.values().any(|other| other.call.as_ref() == Some(id));
            let call = self.calls.iter().find(|(id, call)| asked.is_about(call) && !taken(id));
            let call = call.map(|(id, _)| id.clone());
            if let (Some(asked), Some((id, call))) =
                (self.asks.get_mut(key), self.calls.iter().find(|(id, _)| call.as_ref() == Some(id)))
            {
                asked.call = Some(id.clone());
                asked.permission.iter_mut().for_each(|permission| permission.complete(call));
            }
        }
        self.begin_early(env);
        let Some(asked) = self.asks.get_mut(key) else { return };
        if !std::mem::replace(&mut asked.shown, true)
            && let Some(ask) = asked.request(key)
        {
            env.out.events.push(RuntimeEvent::Asked { native: Some(env.native.clone()), ask: Box::new(ask) });
        }
        self.give(key, env);
    }

    /// The decision on a question.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: Decision, env: &mut Env<'_>) {
        if let Some(asked) = self.asks.get_mut(key) {
            asked.answer = Some(decision);
            self.give(key, env);
        }
    }

    /// Gives the hook of a question its answer, if both are there.
    fn give(&mut self, key: &RequestKey, env: &mut Env<'_>) {
        let Some(asked) = self.asks.get_mut(key) else { return };
        let (Some(permission), Some(connection)) = (&asked.permission, asked.connection) else { return };
        let Some(answer) = asked.answer.take() else { return };
        asked.connection = None;
        match permission.answer(&answer) {
            Some(stdout) => {
                asked.given = true;
                env.release(connection, HelperExit { stdout, ..HelperExit::default() });
            }
            // The terminal's own dialog decides.
            None => {
                env.release(connection, HelperExit::default());
                self.asks.remove(key);
            }
        }
    }

    /// A question is decided: by whom, as far as it is known.
    fn settled(&mut self, key: &RequestKey, by: Option<DecidedBy>, env: &mut Env<'_>) {
        let Some(asked) = self.asks.remove(key) else { return };
        if let Some(connection) = asked.connection {
            env.release(connection, HelperExit::default());
        }
        let native = Some(env.native.clone());
        let elsewhere = match by {
            Some(DecidedBy::Person { allowed }) => {
                let option_id = asked.permission.as_ref().filter(|permission| !permission.questions());
                let option_id = option_id.map(|_| if allowed { ALLOW } else { DENY }.to_owned());
                Some(AnsweredElsewhere { by: AT_TERMINAL.into(), option_id })
            }
            Some(DecidedBy::Hook | DecidedBy::Rules) | None => None,
        };
        let key = key.clone();
        match (asked.given || asked.answer.is_some(), elsewhere) {
            // The terminal was faster than the answer.
            (true, Some(elsewhere)) => env.out.events.push(RuntimeEvent::AnswerLost { native, key, elsewhere }),
            (true, None) => {}
            (false, elsewhere) => env.out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere }),
        }
    }

    // === prompts ===

    /// A prompt of the gateway's.
    pub(super) fn start(&mut self, ticket: Ticket, text: String, env: &mut Env<'_>) {
        self.prompt = Some(Prompt { ticket, text, state: PromptState::Waits, ticks: 0 });
        self.deliver(env);
    }

    /// A hook waits for a prompt from now on.
    pub(super) fn inbox(&mut self, connection: u64, env: &mut Env<'_>) {
        if let Some(old) = self.inbox.replace(connection) {
            env.release(old, HelperExit::default());
        }
        self.deliver(env);
    }

    /// Hands a waiting prompt to the hook that takes it: its text wakes Claude Code.
    fn deliver(&mut self, env: &mut Env<'_>) {
        let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.state == PromptState::Waits) else { return };
        let Some(connection) = self.inbox.take_if(|_| self.run.is_none()) else { return };
        (prompt.state, prompt.ticks) = (PromptState::Sent, 0);
        env.release(connection, HelperExit { stderr: prompt.text.clone(), code: 2, ..HelperExit::default() });
    }

    // === time ===

    /// Time has passed.
    pub(super) fn tick(&mut self, env: &mut Env<'_>) {
        if let Some(ticks) = &mut self.stopped {
            *ticks += 1;
        }
        for (key, asked) in &mut self.asks {
            if asked.connection.is_some() || asked.given || asked.observed {
                continue;
            }
            asked.gone += 1;
            if asked.gone >= GONE_TICKS && asked.shown {
                asked.observed = true;
                let native = Some(env.native.clone());
                env.out
                    .events
                    .extend(asked.request(key).map(|ask| RuntimeEvent::AskChanged { native, ask: Box::new(ask) }));
            }
        }
        if let Some(prompt) = &mut self.prompt {
            prompt.ticks += 1;
            let why = match prompt.state {
                PromptState::Waits if prompt.ticks >= INBOX_TICKS => {
                    "the terminal takes no prompts: type it there, or start a new one with a linked Claude Code"
                }
                PromptState::Sent if prompt.ticks >= TAKEN_TICKS => "Claude Code did not take the prompt",
                PromptState::Unknown if prompt.ticks >= UNKNOWN_TICKS => {
                    (prompt.state, prompt.ticks) = (PromptState::Waits, 0);
                    ""
                }
                _ => "",
            };
            if !why.is_empty() {
                let ticket = prompt.ticket;
                self.prompt = None;
                let end =
                    RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(why.into()), native: None };
                env.out.events.push(RuntimeEvent::Ended { native: env.native.clone(), ticket, end });
            }
        }
        self.deliver(env);
        self.quiet = self.quiet.saturating_add(1);
        if self.quiet < QUIET_TICKS || self.quiet.is_multiple_of(RARE_TICKS) {
            self.read(env);
        }
    }
}

impl Asked {
    /// A question of which only the key is known.
    fn unknown() -> Self {
        Self {
            connection: None,
            gone: 0,
            permission: None,
            call: None,
            shown: false,
            observed: false,
            native: Bytes::new(),
            answer: None,
            given: false,
        }
    }

    fn is_about(&self, call: &Call) -> bool {
        self.permission.as_ref().is_some_and(|permission| permission.is_about(call))
    }

    /// The question for people; `None` if its content is unknown.
    fn request(&self, key: &RequestKey) -> Option<super::super::AgentRequest> {
        let permission = self.permission.as_ref()?;
        let mut ask = permission.request(key.clone(), self.call.clone(), self.native.clone());
        if self.observed {
            ask.observe_only = true;
            ask.message =
                Some("It can only be answered at the terminal: the hook that waited for an answer is gone.".into());
        }
        Some(ask)
    }
}

/// The length of a transcript, from the reply that says it.
fn length(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A command of the terminal, or its output, without Claude Code's own tags; `None` if nothing is left.
fn command_text(text: &str) -> Option<String> {
    let inner = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim()).filter(|inner| !inner.is_empty())
    };
    let parts = ["command-name", "command-args", "bash-input", "bash-stdout", "bash-stderr", "local-command-stdout"];
    let parts: Vec<&str> = parts.iter().filter_map(|tag| inner(tag)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
