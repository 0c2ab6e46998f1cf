//! One session of Gemini CLI in its terminal. Pure.
//!
//! What happened is read from the transcript, in its order; the hooks say when to read it, and add what it has not yet: that a turn begins
//! and ends, the tool calls that run, and the questions that are open. What a hook says is applied once the transcript is read up to its
//! present end.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::call_tokens::CountedCalls;
use super::super::fnv::{FNV, fnv};
use super::super::link::transcript_path;
use super::super::{AgentRequest, EventDraft, HttpReply, RequestKey, RunEnd, RuntimeEvent, jsonrpc};
use super::asked::{Asked, KeptAsk};
use super::drafts;
use super::env::{AT_TERMINAL, Env, Fetch, keys_outcome, length};
use super::question::{KeysOutcome, Question, TerminalKeys, squeezed};
use super::tail::FileTail;
use super::transcript::{self, AgentMessage, CallStatus, FinishedCall, Line};
use plexus_protocol::{CallDigest, Decision, Kind, RunStatus, TerminalId, Ticket};

/// Who starts a turn that nobody prompted.
const BY_AGENT: &str = "Gemini CLI";

/// How much of an old transcript is shown, in bytes from its end.
const HISTORY_MAX: u64 = 8 << 20;
/// Hooks that wait for the transcript; further ones are not kept, but for questions.
const QUEUE_MAX: usize = 1024;
/// Running tool calls remembered, and of those that are over; the oldest is forgotten first.
const CALLS_MAX: usize = 64;
/// Messages remembered as shown; the oldest is forgotten first. A message comes again until its tool calls are over.
const MESSAGES_MAX: usize = 16;
/// Longest input of a tool call that is kept until it is over, in bytes; of a longer one a question says less.
const INPUT_MAX: usize = 64 << 10;
/// Most open questions of a session; further ones can only be answered at the terminal.
const ASKS_MAX: usize = 64;

/// Ticks (of [`TICK`](super::TICK)) without news after which the transcript is looked at more rarely …
const QUIET_TICKS: u32 = 40;
/// … at every one of so many ticks.
const RARE_TICKS: u32 = 8;
/// Ticks from the hook that says that a turn is over to its end: an error is written after the hook.
const STOP_TICKS: u32 = 1;
/// Ticks that a message of a person is held: it may be an old one, which the transcript says a moment later.
const HOLD_TICKS: u32 = 2;
/// Ticks without news after which a turn of an earlier gateway counts as over, where the agent has answered.
const UNSURE_TICKS: u32 = 20;
/// Ticks between two tries to type a prompt …
const TRY_TICKS: u32 = 2;
/// … and that it waits for an idle terminal.
const PROMPT_TICKS: u32 = 60;
/// Ticks that a typed prompt may take to the transcript.
const TAKEN_TICKS: u32 = 60;
/// Ticks after which a prompt of an earlier gateway, of which the transcript says nothing, is typed.
const UNKNOWN_TICKS: u32 = 12;

/// A session.
#[derive(Default)]
pub(super) struct Terminal {
    /// The process of the terminal, and when it started.
    pub(super) process: (u32, u64),
    /// The shared terminal that it runs in.
    shared: Option<TerminalId>,
    /// The transcript.
    path: String,
    /// The folder.
    pub(super) cwd: String,
    /// Whether the gateway has opened it.
    pub(super) opened: bool,
    tail: FileTail,
    /// What is reported is from before the gateway saw the session: its turns are over.
    past: Past,
    /// A read is under way, and whether to read once more after it.
    reading: bool,
    again: bool,
    /// What hooks said, until the transcript is read.
    queue: VecDeque<Queued>,
    run: Option<Run>,
    /// The prompt that a hook announced (its hash), until it is in the transcript.
    announced: Option<u64>,
    /// Messages of people that may be old ones.
    held: Vec<Held>,
    held_ticks: u32,
    /// The error that the turn failed with.
    failed: Option<String>,
    /// The turn was stopped by a person.
    cancelled: bool,
    /// The messages that are shown, by their ids.
    shown: VecDeque<String>,
    /// The running tool calls, oldest first.
    calls: VecDeque<OpenCall>,
    /// The number of the last tool call that a hook reported.
    last_call: u64,
    /// The ids of tool calls that are over.
    over_calls: VecDeque<String>,
    /// What is counted of the tokens.
    counted: CountedCalls,
    /// Those of them whose hook has not come: it may yet.
    unannounced: VecDeque<CallDigest>,
    pub(super) asks: BTreeMap<RequestKey, Asked>,
    prompt: Option<Prompt>,
    /// Ticks since a hook or the transcript had news.
    quiet: u32,
    /// No hook began the turn, or an earlier gateway heard it: none may be left that ends it.
    unsure: bool,
    /// The agent has answered in this turn.
    answered: bool,
    /// Ticks since a hook said that the turn is over.
    stopped: Option<u32>,
    /// Why the session ends, once its transcript is read.
    pub(super) ending: Option<String>,
    /// It ended, and all of its transcript is reported.
    over: bool,
    titled: bool,
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

/// A message of a person that may be an old one, written again.
struct Held {
    id: String,
    text: String,
    line: Bytes,
    /// Where its line begins.
    at: u64,
}

/// A tool call that a hook reported.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OpenCall {
    /// The id that people know it by; Gemini CLI tells its own only in the end.
    pub(super) id: String,
    pub(super) tool: String,
    digest: Option<CallDigest>,
    #[serde(skip)]
    pub(super) input: Option<Box<RawValue>>,
}

/// A prompt of the gateway's that is not in the transcript yet.
struct Prompt {
    ticket: Ticket,
    text: String,
    state: PromptState,
    ticks: u32,
    /// Why it was not typed at the last try.
    refused: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptState {
    /// It waits for an idle terminal.
    Waits,
    /// It is being typed.
    Typing,
    /// It was typed.
    Sent,
    /// An earlier gateway had it; whether it was typed is unknown.
    Unknown,
}

/// What a hook said.
enum Queued {
    Started { prompt: String },
    Called { tool: String, input: Box<RawValue> },
    Finished { tool: String, input: Box<RawValue> },
    Asked { key: RequestKey, details: Box<RawValue> },
    Stopped,
}

/// The input of a hook, as far as it is used.
#[derive(Deserialize)]
pub(super) struct HookEvent<'a> {
    pub(super) session_id: String,
    pub(super) transcript_path: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) hook_event_name: String,
    pub(super) reason: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    notification_type: Option<String>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

/// What is stored with the session, to go on from it.
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
    /// Whether a turn is under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    announced: Option<u64>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    shown: VecDeque<String>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    calls: VecDeque<OpenCall>,
    last_call: u64,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    over_calls: VecDeque<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestKey, KeptAsk>,
    #[serde(skip_serializing_if = "CountedCalls::is_empty")]
    counted: CountedCalls,
}

/// The process of a session that an earlier gateway had, from its checkpoint.
pub(super) fn restored_process(checkpoint: &str) -> Option<(u32, u64)> {
    serde_json::from_str::<Checkpoint>(checkpoint).ok().map(|kept| kept.process).filter(|(pid, _)| *pid != 0)
}

fn run_end(status: RunStatus, message: Option<String>) -> RunEnd {
    RunEnd { status, stop_reason: None, message, native: None }
}

fn hash(text: &str) -> u64 {
    fnv(FNV, &squeezed(text))
}

/// Adds to a queue of bounded length.
fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn digest(tool: &str, input: &RawValue) -> Option<CallDigest> {
    Some(CallDigest::of(tool, &serde_json::from_str(input.get()).ok()?))
}

impl Terminal {
    // === the session ===

    /// Where its process, transcript, folder and shared terminal are, by its latest hook.
    pub(super) fn located(&mut self, process: (u32, u64), shared: Option<&str>, event: &HookEvent<'_>) {
        self.process = process;
        self.shared = shared.and_then(|id| id.parse().ok());
        if let Some(path) = &event.transcript_path {
            if self.path != *path && !self.path.is_empty() {
                self.tail = FileTail::default();
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
        self.tail = FileTail::default();
        let Some(kept) = checkpoint.and_then(|text| serde_json::from_str::<Checkpoint>(text).ok()) else {
            self.past = Past::Measured { shown: !known };
            return;
        };
        if self.path.is_empty() {
            (self.path, self.cwd, self.process, self.shared) = (kept.path, kept.cwd, kept.process, kept.shared);
        }
        (self.tail.offset, self.tail.skipping, self.titled) = (kept.offset, kept.skipping, kept.titled);
        (self.run, self.announced) = (kept.run.then_some(Run::Terminal), kept.announced);
        (self.shown, self.calls, self.over_calls) = (kept.shown, kept.calls, kept.over_calls);
        (self.last_call, self.answered, self.unsure) = (kept.last_call, kept.answered, kept.run);
        self.counted = kept.counted;
        for (key, ask) in kept.asks {
            self.asks.entry(key).or_insert_with(|| Asked::from(ask));
        }
    }

    /// The work that an earlier gateway had under way in it.
    pub(super) fn carry(&mut self, asks: &[RequestKey], prompt: Option<(Ticket, String)>) {
        // What was open and is not any more is over; the session does not have it either.
        self.asks.retain(|key, _| asks.contains(key));
        for key in asks {
            self.asks.entry(key.clone()).or_default();
        }
        if let Some((ticket, text)) = prompt {
            if self.run.is_some() {
                self.run = Some(Run::Ours(ticket));
            } else {
                let state = PromptState::Unknown;
                self.prompt = Some(Prompt { ticket, text, state, ticks: 0, refused: String::new() });
            }
        }
    }

    /// Stores how far it is reported, if that is news.
    pub(super) fn checkpoint(&mut self, env: &mut Env<'_>) {
        if !self.opened {
            return;
        }
        let kept = Checkpoint {
            process: self.process,
            shared: self.shared.clone(),
            path: self.path.clone(),
            cwd: self.cwd.clone(),
            offset: self.held.first().map_or(self.tail.offset, |held| held.at),
            skipping: self.tail.skipping,
            titled: self.titled,
            run: self.run.is_some(),
            answered: self.answered,
            announced: self.announced,
            shown: self.shown.clone(),
            calls: self.calls.clone(),
            last_call: self.last_call,
            over_calls: self.over_calls.clone(),
            asks: self.asks.iter().map(|(key, asked)| (key.clone(), asked.kept())).collect(),
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
        let works = self.run.is_some() || self.prompt.is_some() || self.stopped.is_some() || self.ending.is_some();
        self.opened && (works || !self.held.is_empty() || !self.asks.is_empty())
    }

    // === the transcript ===

    /// Reads what is new in the transcript.
    pub(super) fn read(&mut self, env: &mut Env<'_>) {
        if !self.opened {
            return;
        }
        if std::mem::replace(&mut self.reading, true) {
            self.again = true;
            return;
        }
        let offset = if matches!(self.past, Past::Measured { .. }) { u64::MAX } else { self.tail.offset };
        env.read(Fetch::Transcript, transcript_path(&self.path, offset, self.tail.part));
    }

    /// A part of the transcript.
    pub(super) fn read_reply(&mut self, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        self.reading = false;
        let mut more = std::mem::take(&mut self.again);
        match (reply, self.past) {
            (Ok(HttpReply { status: 416, body }), Past::Measured { shown }) => {
                let length = length(&body);
                self.past = Past::Reading;
                self.tail.offset = if shown { length.saturating_sub(HISTORY_MAX) } else { length };
                self.tail.skipping = shown && self.tail.offset > 0;
                let lost = match shown {
                    true if self.tail.offset > 0 => Some("older messages of this session are not shown"),
                    false if length > 0 => Some("messages from the time when no gateway was running may be missing"),
                    _ => None,
                };
                lost.iter().for_each(|lost| env.event(drafts::error("gap", lost)));
                more = true;
            }
            (Ok(HttpReply { status: 200, body }), _) => {
                let part = self.tail.take(&body);
                if !part.lines.is_empty() {
                    (self.quiet, self.held_ticks) = (0, 0);
                }
                for (at, line) in &part.lines {
                    self.line(*at, line, env);
                }
                part.gap.iter().for_each(|gap| env.event(drafts::error("gap", gap)));
                more |= part.more;
            }
            (Ok(HttpReply { status: 416, body }), _) => {
                self.tail = FileTail { offset: length(&body), ..FileTail::default() };
                let message = "the transcript was replaced by a shorter one: some messages may be missing";
                env.event(drafts::error("gap", message));
            }
            // Gemini CLI deletes that of a session without messages.
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

    /// The transcript is reported up to its present end.
    fn caught_up(&mut self, env: &mut Env<'_>) {
        if self.held_ticks >= HOLD_TICKS || self.ending.is_some() {
            self.release_held(env);
        }
        if std::mem::replace(&mut self.past, Past::Read) != Past::Read
            && let Some(run) = self.run.take()
        {
            self.unsure = true;
            self.begin(run, AT_TERMINAL, env);
        }
        for queued in std::mem::take(&mut self.queue) {
            self.apply(queued, env);
        }
        let ended = self.stopped.is_some_and(|ticks| ticks >= STOP_TICKS);
        let at_rest = self.answered && self.asks.is_empty() && self.calls.is_empty();
        let silent = self.unsure && at_rest && self.quiet >= UNSURE_TICKS;
        if ended || self.cancelled || silent {
            self.end_run(RunStatus::Completed, env);
        }
        if self.ending.is_some() {
            self.end_run(RunStatus::Cancelled, env);
            self.over = true;
        }
    }

    fn line(&mut self, at: u64, line: &Bytes, env: &mut Env<'_>) {
        let lines = match transcript::read(line) {
            Ok(lines) => lines,
            Err(why) => return env.event(EventDraft::raw(line.clone(), why)),
        };
        for said in lines {
            match said {
                Line::Person { id, text } if self.announced == Some(hash(&text)) => {
                    self.release_held(env);
                    self.prompted(&id, &text, line, env);
                }
                Line::Person { id, text } => self.held.push(Held { id, text, line: line.clone(), at }),
                Line::Rewritten(ids) => {
                    self.held.retain(|held| !ids.contains(&held.id));
                    self.release_held(env);
                }
                Line::Title(title) => {
                    self.titled = true;
                    env.event(drafts::title(&title, line));
                }
                Line::Agent(message) => {
                    self.release_held(env);
                    let spent = message.spending.as_ref().and_then(|spent| self.counted.told(&message.id, spent));
                    self.message(message, line, env);
                    // What was spent before the gateway saw the session does not count.
                    let (spent, native) = (spent.filter(|_| self.past == Past::Read), env.native.clone());
                    env.out.events.extend(spent.map(|report| RuntimeEvent::Spent { native, report }));
                }
                Line::Cancelled => {
                    self.release_held(env);
                    if self.past == Past::Read {
                        self.cancelled = self.run.is_some();
                    } else {
                        self.end_run(RunStatus::Cancelled, env);
                    }
                }
                Line::Failure(message) => {
                    self.release_held(env);
                    (self.failed, self.answered) = (Some(message), true);
                }
            }
        }
    }

    /// Shows the messages that are no old ones.
    fn release_held(&mut self, env: &mut Env<'_>) {
        for held in std::mem::take(&mut self.held) {
            self.prompted(&held.id, &held.text, &held.line, env);
        }
    }

    /// A message of a person.
    fn prompted(&mut self, id: &str, text: &str, line: &Bytes, env: &mut Env<'_>) {
        // The hook has begun its turn, if it came.
        let announced = self.announced.take_if(|announced| *announced == hash(text)).is_some();
        if !announced {
            self.end_run(RunStatus::Completed, env);
            self.started(text, env);
            self.unsure = true;
        }
        if !matches!(self.run, Some(Run::Ours(_))) {
            env.event(drafts::chunk(Kind::UserMessageChunk, text, id, line));
        }
        if !std::mem::replace(&mut self.titled, true) {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            env.event(drafts::title(first, line));
        }
    }

    fn message(&mut self, message: AgentMessage<'_>, line: &Bytes, env: &mut Env<'_>) {
        let AgentMessage { id, text, thoughts, calls, .. } = message;
        if self.run.is_none() && !self.shown.contains(&id) {
            self.begin(Run::Terminal, BY_AGENT, env);
        }
        if !self.shown.contains(&id) {
            let thought = |thought: &String| drafts::chunk(Kind::AgentThoughtChunk, thought, &id, line);
            thoughts.iter().map(thought).for_each(|draft| env.event(draft));
            self.answered = !text.is_empty();
            if self.answered {
                env.event(drafts::chunk(Kind::AgentMessageChunk, &text, &id, line));
            }
            push(&mut self.shown, id, MESSAGES_MAX);
        }
        calls.iter().for_each(|call| self.finished(call, line, env));
    }

    // === tools ===

    fn called(&mut self, tool: String, input: Box<RawValue>, env: &mut Env<'_>) {
        let digest = digest(&tool, &input);
        if let Some(place) = self.unannounced.iter().position(|over| Some(*over) == digest) {
            self.unannounced.remove(place);
            return;
        }
        self.begin_early(env);
        self.last_call += 1;
        let id = format!("call-{}", self.last_call);
        let native = Bytes::copy_from_slice(input.get().as_bytes());
        env.event(drafts::tool_call(&id, &tool, &input, &native));
        let input = (input.get().len() <= INPUT_MAX).then_some(input);
        push(&mut self.calls, OpenCall { id, tool, digest, input }, CALLS_MAX);
    }

    /// The running call with this input, or else the only one of the tool: a person may have changed the input.
    fn running(&self, tool: &str, input: &RawValue) -> Option<usize> {
        let digest = digest(tool, input);
        let same = |call: &OpenCall| call.digest.is_some() && call.digest == digest;
        self.calls.iter().position(same).or_else(|| {
            let mut of_tool = self.calls.iter().enumerate().filter(|(_, call)| call.tool == tool);
            of_tool.next().filter(|_| of_tool.next().is_none()).map(|(place, _)| place)
        })
    }

    /// A tool call is over, and in the transcript.
    fn finished(&mut self, call: &FinishedCall<'_>, line: &Bytes, env: &mut Env<'_>) {
        if self.over_calls.contains(&call.id) {
            return;
        }
        push(&mut self.over_calls, call.id.clone(), CALLS_MAX);
        let known = self.running(&call.name, call.input).and_then(|place| self.calls.remove(place));
        let id = match known {
            Some(known) => known.id,
            None => {
                let digest = digest(&call.name, call.input);
                digest.into_iter().for_each(|digest| push(&mut self.unannounced, digest, CALLS_MAX));
                env.event(drafts::tool_call(&call.id, &call.name, call.input, line));
                call.id.clone()
            }
        };
        env.event(drafts::tool_result(&id, call, line));
        self.settle_about(&id, call.status != CallStatus::Cancelled, env);
    }

    // === turns ===

    fn begin(&mut self, run: Run, by: &str, env: &mut Env<'_>) {
        self.run = Some(run);
        if self.past == Past::Read && run == Run::Terminal {
            env.out.events.push(RuntimeEvent::Began { native: env.native.clone(), by: by.into() });
        }
    }

    /// A turn begins with this prompt, which may be one of ours.
    fn started(&mut self, text: &str, env: &mut Env<'_>) {
        (self.answered, self.failed, self.cancelled) = (false, None, false);
        self.over_calls.clear();
        let ours = self.prompt.take_if(|prompt| squeezed(text) == squeezed(&prompt.text));
        match ours {
            Some(prompt) => self.begin(Run::Ours(prompt.ticket), AT_TERMINAL, env),
            None => self.begin(Run::Terminal, AT_TERMINAL, env),
        }
    }

    /// A hook says that a turn is under way.
    fn begin_early(&mut self, env: &mut Env<'_>) {
        if self.run.is_none() {
            self.begin(Run::Terminal, AT_TERMINAL, env);
        }
    }

    fn end_run(&mut self, status: RunStatus, env: &mut Env<'_>) {
        (self.stopped, self.unsure, self.announced) = (None, false, None);
        self.calls.clear();
        self.unannounced.clear();
        let (failed, cancelled) = (self.failed.take(), std::mem::take(&mut self.cancelled));
        let Some(run) = self.run.take() else { return };
        let keys: Vec<RequestKey> = self.asks.keys().cloned().collect();
        keys.iter().for_each(|key| self.settled(key, None, env));
        let status = if cancelled { RunStatus::Cancelled } else { status };
        let status = if failed.is_some() && status == RunStatus::Completed { RunStatus::Error } else { status };
        let end = run_end(status, failed);
        match run {
            Run::Ours(ticket) => env.ended(ticket, end),
            Run::Terminal if self.past == Past::Read => {
                env.out.events.push(RuntimeEvent::Done { native: env.native.clone(), end });
            }
            Run::Terminal => {}
        }
    }

    // === hooks ===

    /// A hook reports something; it is applied once the transcript is read. `name` is that of the helper.
    pub(super) fn hook(&mut self, event: &HookEvent<'_>, name: &str, env: &mut Env<'_>) {
        let tool = || Some((event.tool_name.clone()?, jsonrpc::owned(event.tool_input?)));
        let queued = match event.hook_event_name.as_str() {
            "BeforeAgent" => event.prompt.clone().map(|prompt| Queued::Started { prompt }),
            "AfterAgent" => Some(Queued::Stopped),
            "BeforeTool" => tool().map(|(tool, input)| Queued::Called { tool, input }),
            "AfterTool" => tool().map(|(tool, input)| Queued::Finished { tool, input }),
            "Notification" if event.notification_type.as_deref() == Some("ToolPermission") => {
                let key = RequestKey::unique(name);
                event.details.map(|details| Queued::Asked { key, details: jsonrpc::owned(details) })
            }
            _ => None,
        };
        let asks = matches!(queued, Some(Queued::Asked { .. }));
        if let Some(queued) = queued.filter(|_| asks || self.queue.len() < QUEUE_MAX) {
            self.queue.push_back(queued);
        }
        (self.quiet, self.unsure) = (0, false);
        self.read(env);
    }

    fn apply(&mut self, queued: Queued, env: &mut Env<'_>) {
        match queued {
            Queued::Started { prompt } => {
                // Its message may have been read already, and be held.
                let announced = hash(&prompt);
                let place = self.held.iter().position(|held| hash(&held.text) == announced);
                let held = place.map(|place| self.held.remove(place));
                self.release_held(env);
                self.end_run(RunStatus::Completed, env);
                self.started(&prompt, env);
                self.announced = Some(announced);
                if let Some(Held { id, text, line, .. }) = held {
                    self.prompted(&id, &text, &line, env);
                }
            }
            Queued::Called { tool, input } => self.called(tool, input, env),
            Queued::Finished { tool, input } => {
                if let Some(id) = self.running(&tool, &input).and_then(|place| self.calls.get(place)) {
                    let id = id.id.clone();
                    self.settle_about(&id, true, env);
                }
            }
            Queued::Asked { key, details } => self.ask(key, &details, env),
            Queued::Stopped => self.stopped = self.run.is_some().then_some(0),
        }
    }

    // === questions ===

    fn ask(&mut self, key: RequestKey, details: &RawValue, env: &mut Env<'_>) {
        let Some(question) = Question::new(details).filter(|_| self.asks.len() < ASKS_MAX) else {
            let native = Bytes::copy_from_slice(details.get().as_bytes());
            return env
                .event(EventDraft::raw(native, "Gemini CLI asks at its terminal, in a way that could not be read"));
        };
        self.begin_early(env);
        let taken = |id: &String| self.asks.values().any(|other| other.call.as_ref() == Some(id));
        let mut free = self.calls.iter().filter(|call| !taken(&call.id));
        let call = free.clone().find(|call| question.is_about(call));
        // The hook of its tool came before it.
        let call = call.or_else(|| free.next().filter(|_| free.next().is_none())).map(|call| call.id.clone());
        self.asks.insert(key.clone(), Asked { question: Some(question), call, ..Asked::default() });
        self.show(&key, env);
    }

    fn show(&self, key: &RequestKey, env: &mut Env<'_>) {
        if let Some(ask) = self.request(key) {
            env.out.events.push(RuntimeEvent::Asked { native: Some(env.native.clone()), ask: Box::new(ask) });
        }
    }

    fn request(&self, key: &RequestKey) -> Option<AgentRequest> {
        let asked = self.asks.get(key)?;
        let call = asked.call.as_ref().and_then(|id| self.calls.iter().find(|call| call.id == *id));
        Some(asked.question.as_ref()?.request(key.clone(), call, self.shared.is_some()))
    }

    /// The decision on a question: its keys are typed, if its dialog is still on the screen.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, env: &mut Env<'_>) {
        let Some(asked) = self.asks.get(key).filter(|asked| asked.answer.is_none()) else { return };
        let Decision::Option { id, .. } = decision else {
            // Withdrawn, or expired: the terminal's own dialog decides.
            self.asks.remove(key);
            return;
        };
        let alike = |other: &Asked| match (&asked.question, &other.question) {
            (Some(one), Some(other)) => one.looks_like(other),
            _ => false,
        };
        let keys = match (&asked.question, &self.shared) {
            _ if self.asks.iter().any(|(other, it)| other != key && it.answer.is_none() && alike(it)) => {
                Err("another question of this terminal looks the same")
            }
            (Some(question), Some(shared)) => {
                question.keys(decision).map(|keys| (keys, shared.clone())).ok_or("Plexus does not know its dialog")
            }
            _ => Err("it does not run in a shared terminal any more"),
        };
        match keys {
            Ok((keys, shared)) => {
                if let Some(asked) = self.asks.get_mut(key) {
                    asked.answer = Some(id.clone());
                }
                env.type_keys(Fetch::Answer(key.clone()), &shared, &keys);
            }
            Err(why) => self.not_taken(key, why, env),
        }
    }

    /// What became of the keys of an answer.
    pub(super) fn answered(&mut self, key: &RequestKey, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        let Some(asked) = self.asks.get_mut(key) else { return };
        let refused = match keys_outcome(reply) {
            Ok(KeysOutcome { typed: true, .. }) => {
                asked.given = true;
                if asked.decided.is_some() {
                    self.asks.remove(key);
                }
                return;
            }
            Ok(KeysOutcome { refused, .. }) => refused.unwrap_or_default(),
            Err(why) => why,
        };
        match asked.decided.take() {
            // The terminal was faster.
            Some(elsewhere) => {
                self.asks.remove(key);
                let native = Some(env.native.clone());
                env.out.events.push(RuntimeEvent::AnswerLost { native, key: key.clone(), elsewhere });
            }
            None => self.not_taken(key, &refused, env),
        }
    }

    /// An answer was not typed: the question is asked again.
    fn not_taken(&mut self, key: &RequestKey, why: &str, env: &mut Env<'_>) {
        let Some(asked) = self.asks.remove(key) else { return };
        let message = format!("the answer was not given to Gemini: {why}. Answer it in the terminal, or try again");
        env.event(drafts::error("answer_not_taken", &message));
        let again = asked.again();
        let key = RequestKey::unique(format!("{}~{}", key.id().split('~').next().unwrap_or_default(), again.tries));
        self.asks.insert(key.clone(), again);
        self.show(&key, env);
    }

    fn settle_about(&mut self, call: &str, allowed: bool, env: &mut Env<'_>) {
        let about = self.asks.iter().filter(|(_, asked)| asked.call.as_deref() == Some(call));
        let keys: Vec<RequestKey> = about.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.settled(key, Some(allowed), env));
    }

    /// A question is decided: how, as far as it is known.
    fn settled(&mut self, key: &RequestKey, allowed: Option<bool>, env: &mut Env<'_>) {
        let Some(asked) = self.asks.get_mut(key) else { return };
        let elsewhere = asked.elsewhere(allowed);
        if asked.answer.is_some() && !asked.given {
            // Whether the keys were first is known in a moment.
            asked.decided = Some(elsewhere);
            return;
        }
        let given = asked.given;
        self.asks.remove(key);
        if !given {
            let (native, key) = (Some(env.native.clone()), key.clone());
            let elsewhere = allowed.map(|_| elsewhere);
            env.out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere });
        }
    }

    // === prompts ===

    /// A prompt of the gateway's.
    ///
    /// # Errors
    /// Why it cannot be given to this terminal.
    pub(super) fn start(&mut self, ticket: Ticket, text: String, env: &mut Env<'_>) -> Result<(), String> {
        if self.shared.is_none() {
            let fix = "one that is started by `plexus term -- gemini` takes prompts from here";
            return Err(format!("this terminal takes prompts only where it is: type it there ({fix})"));
        }
        TerminalKeys::prompt(&text)?;
        let state = PromptState::Waits;
        self.prompt = Some(Prompt { ticket, text, state, ticks: 0, refused: String::new() });
        self.deliver(env);
        Ok(())
    }

    /// Has a waiting prompt typed, if the terminal is idle.
    fn deliver(&mut self, env: &mut Env<'_>) {
        let idle = self.run.is_none() && self.stopped.is_none() && self.asks.is_empty() && self.held.is_empty();
        let (Some(prompt), Some(shared)) = (self.prompt.as_mut().filter(|_| idle), &self.shared) else { return };
        if prompt.state != PromptState::Waits || !prompt.ticks.is_multiple_of(TRY_TICKS) {
            return;
        }
        if let Ok(keys) = TerminalKeys::prompt(&prompt.text) {
            prompt.state = PromptState::Typing;
            env.type_keys(Fetch::Prompt(prompt.ticket), shared, &keys);
        }
    }

    /// What became of the keys of a prompt.
    pub(super) fn prompt_typed(&mut self, ticket: Ticket, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        let Some(prompt) = self.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) else { return };
        match keys_outcome(reply) {
            Ok(KeysOutcome { refused: None, .. }) => (prompt.state, prompt.ticks) = (PromptState::Sent, 0),
            Ok(KeysOutcome { typed: false, refused: Some(why) }) => {
                (prompt.state, prompt.refused) = (PromptState::Waits, why);
            }
            Ok(KeysOutcome { refused: Some(why), .. }) | Err(why) => self.prompt_failed(why, env),
        }
    }

    fn prompt_failed(&mut self, why: String, env: &mut Env<'_>) {
        if let Some(prompt) = self.prompt.take() {
            env.ended(prompt.ticket, run_end(RunStatus::Error, Some(why)));
        }
    }

    // === time ===

    /// Time has passed.
    pub(super) fn tick(&mut self, env: &mut Env<'_>) {
        if let Some(ticks) = &mut self.stopped {
            *ticks += 1;
        }
        self.held_ticks = self.held_ticks.saturating_add(1);
        self.quiet = self.quiet.saturating_add(1);
        let idle = self.run.is_none();
        if let Some(prompt) = self.prompt.as_mut().filter(|_| idle) {
            prompt.ticks += 1;
            let failed = match prompt.state {
                PromptState::Waits if prompt.ticks >= PROMPT_TICKS => {
                    Some(format!("the prompt was not typed in the terminal: {}", prompt.refused))
                }
                PromptState::Sent if prompt.ticks >= TAKEN_TICKS => Some("Gemini did not take the prompt".into()),
                PromptState::Unknown if prompt.ticks >= UNKNOWN_TICKS => {
                    (prompt.state, prompt.ticks) = (PromptState::Waits, 0);
                    None
                }
                _ => None,
            };
            if let Some(why) = failed {
                self.prompt_failed(why, env);
            }
        }
        self.deliver(env);
        let soon = self.stopped.is_some() || !self.held.is_empty();
        if soon || self.quiet < QUIET_TICKS || self.quiet.is_multiple_of(RARE_TICKS) {
            self.read(env);
        }
    }
}
