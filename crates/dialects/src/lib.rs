//! The protocols that runtimes speak, one file, since the values that they turn into refer to each other. Bytes in, values out: a dialect does no I/O, has no clock and starts no task, so
//! that each is tested from recordings and fuzzed.
//!
//! A [`Dialect`] is one connection's state: it is fed the frames that a runtime sends ([`Dialect::feed`]) and the
//! commands that the gateway has for it ([`Dialect::command`]), and puts what follows into an [`Outbox`]: values for the
//! gateway, bytes for the runtime. Adding a runtime kind is one file here, one line in [`TABLE`], one recording.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use plexus_protocol::{
    Capabilities, Decision, Editable, Fits, Item, Kind, NativeId, Offer, Question, RawBody, RequestType, RunStatus,
    RuntimeSpec, Ticket,
};

mod acp;
mod ask_key;
mod client_tools;
mod codelia;
mod codex;
mod fault;
mod gemini_mirror;
mod http;
mod jsonrpc;
pub mod listing;
mod opencode;
pub mod recording;
#[cfg(test)]
mod rig;
mod subject;

pub use ask_key::RequestKey;
pub use client_tools::{ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork, CommandEnd};
pub use fault::says_nothing;
pub use http::{HttpBase, HttpReply, HttpRequest};

/// Deepest nesting of a message that is passed on; a deeper one is kept as `raw` text.
pub const DEPTH_MAX: usize = 128;

/// One connection's state in one dialect.
pub trait Dialect: Send {
    /// The connection is open: say hello.
    fn open(&mut self, out: &mut Outbox);

    /// One frame from the runtime (NDJSON: one line, without its end). Any bytes are fine: what cannot be understood
    /// becomes [`RuntimeEvent::Event`] of kind `raw`.
    fn feed(&mut self, frame: Bytes, out: &mut Outbox);

    /// Something the gateway wants of the runtime.
    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox);

    /// The time asked for with [`Outbox::wake_after`] has passed.
    fn wake(&mut self, _out: &mut Outbox) {}

    /// The connection to an endpoint is lost. It is tried again, and [`open`](Self::open) follows: the same state says
    /// hello again and finds out what happened meanwhile. Never called for programs.
    fn lost(&mut self, _why: &str, _out: &mut Outbox) {}

    /// Where an `http://` endpoint tells what happens: the path of its event stream (SSE). The data of each of its events
    /// is a frame.
    fn events_path(&self) -> &'static str {
        "/"
    }

    /// What is read from an `http://` endpoint that has no such event stream, to find out what it is instead: paths.
    fn probes(&self) -> &'static [&'static str] {
        &[]
    }

    /// What an endpoint without the event stream is, and what to do, by what came of each of [`probes`](Self::probes);
    /// `None` where that is not known.
    fn mistaken(&self, _probed: &[Result<HttpReply, String>]) -> Option<&'static str> {
        None
    }

    /// What came of a [`HttpRequest`]: once for each.
    fn reply(&mut self, _id: u64, _reply: Result<HttpReply, String>, _out: &mut Outbox) {}

    /// What came of a [`ClientToolCall`]: once for each, in any order.
    fn done(&mut self, _id: u64, _done: Result<ClientToolResult, ClientToolError>, _out: &mut Outbox) {}

    /// The whole state, for another gateway to go on with; `None` where it cannot be had. Programs outlive the gateway
    /// only in dialects that can.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes over a state that [`save`](Self::save) wrote, in place of [`open`](Self::open); false if it is none. A
    /// [`wake`](Self::wake) follows at once: what the dialect had asked to be woken for is not known any more.
    fn restore(&mut self, _saved: &[u8]) -> bool {
        false
    }

    /// The questions that wait for [`RuntimeCommand::Answer`].
    fn asks(&self) -> Vec<RequestKey> {
        Vec::new()
    }

    /// The prompts that have not ended.
    fn prompts(&self) -> Vec<Ticket> {
        Vec::new()
    }

    /// What the runtime can do through this dialect, as far as it said so. Asked for once it is ready, and again when it has
    /// opened a session.
    fn capabilities(&self) -> Capabilities;

    /// How its runtimes are reached: `command` for programs, and the schemes of endpoints (`ws`, `unix`, `http`).
    fn reached_by(&self) -> &'static [&'static str] {
        &["command"]
    }

    /// How many sessions one connection carries.
    fn sessions(&self) -> SessionLimit {
        SessionLimit::Many
    }
}

/// How many sessions one connection of a dialect carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLimit {
    /// One at most; a second needs another process.
    One,
    /// Any number.
    Many,
}

/// What came of a step: values for the gateway, frames for the runtime, a wish to be woken.
#[derive(Debug, Default)]
pub struct Outbox {
    /// For the gateway, in order.
    pub events: Vec<RuntimeEvent>,
    /// For the runtime, in order, each a whole frame with its end (`\n` for NDJSON).
    pub frames: Vec<Bytes>,
    /// HTTP requests to an endpoint; those about one session are made one after another in this order.
    pub fetches: Vec<HttpRequest>,
    /// Things to be done for an agent outside of its dialect, at once and side by side.
    pub client_tools: Vec<ClientToolCall>,
    /// When to call [`Dialect::wake`], from now; the driver keeps the soonest.
    pub wake_after: Option<Duration>,
}

/// What a runtime said, in the gateway's words.
#[derive(Debug)]
pub enum RuntimeEvent {
    /// The handshake is over; sessions can be opened.
    Ready {
        /// The agent's own name and version.
        agent: Option<String>,
    },
    /// The handshake failed; the connection is of no use.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// A session was opened.
    Opened {
        /// The command that asked for it.
        ticket: Ticket,
        /// The runtime's identifier of the session.
        native: NativeId,
        /// Events that come with it (modes, models, options).
        drafts: Vec<EventDraft>,
        /// Whether it is the conversation that was asked for.
        how: OpenedAs,
    },
    /// A session could not be opened.
    NotOpened {
        /// The command that asked for it.
        ticket: Ticket,
        /// The runtime's error.
        error: RuntimeError,
    },
    /// Something happened.
    Event {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The event.
        draft: EventDraft,
    },
    /// The runtime asks people something.
    Asked {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The request.
        ask: Box<AgentRequest>,
    },
    /// More is known of what an open question asks: an [`RuntimeEvent::Asked`] with the same key came before.
    AskChanged {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The whole question, as it stands now.
        ask: Box<AgentRequest>,
    },
    /// The runtime took a question back.
    TakenBack {
        /// The session, if known.
        native: Option<NativeId>,
        /// Which question.
        key: RequestKey,
        /// Where somebody answered it past the gateway: who, and what.
        elsewhere: Option<AnsweredElsewhere>,
    },
    /// An answer that the gateway gave came too late: somebody had answered past the gateway.
    AnswerLost {
        /// The session, if known.
        native: Option<NativeId>,
        /// Which question.
        key: RequestKey,
        /// Who answered it, and what.
        elsewhere: AnsweredElsewhere,
    },
    /// Work began that the gateway did not ask for: another client of the runtime prompted it. No [`RuntimeEvent::Ended`]
    /// follows, but [`RuntimeEvent::Done`].
    Began {
        /// The session.
        native: NativeId,
        /// Who prompted it, as far as is known ("another client of Codex").
        by: String,
    },
    /// The work told of with [`RuntimeEvent::Began`] is over.
    Done {
        /// The session.
        native: NativeId,
        /// How it ended.
        end: RunEnd,
    },
    /// The runtime has a session that the gateway did not open; the gateway opens it with [`RuntimeCommand::Open`].
    Found {
        /// The session.
        native: NativeId,
        /// The folder it works in, where known.
        cwd: Option<String>,
        /// Its title, where known.
        title: Option<String>,
    },
    /// The work asked for with [`RuntimeCommand::Prompt`] is over.
    Ended {
        /// The session.
        native: NativeId,
        /// The prompt.
        ticket: Ticket,
        /// How it ended.
        end: RunEnd,
    },
    /// How far a session of an endpoint was told, after all that this step said of it: kept with that, in one commit. It
    /// comes back with [`ResumeTarget::carried`] when the session is opened again, in this gateway or the next.
    Checkpoint {
        /// The session.
        native: NativeId,
        /// What the dialect needs to tell the rest once: its own words, bounded by it.
        state: String,
    },
    /// The reply to a [`RuntimeCommand::Call`].
    Replied {
        /// The call.
        ticket: Ticket,
        /// The result, untouched, or the runtime's error.
        reply: Result<Box<RawValue>, RuntimeError>,
    },
}

impl RuntimeEvent {
    /// The session that it is of, as far as it names one that is open.
    fn native(&self) -> Option<&NativeId> {
        match self {
            Self::Opened { native, .. }
            | Self::Began { native, .. }
            | Self::Done { native, .. }
            | Self::Ended { native, .. } => Some(native),
            Self::Event { native, .. }
            | Self::Asked { native, .. }
            | Self::AskChanged { native, .. }
            | Self::TakenBack { native, .. }
            | Self::AnswerLost { native, .. } => native.as_ref(),
            Self::Ready { .. }
            | Self::Failed { .. }
            | Self::NotOpened { .. }
            | Self::Found { .. }
            | Self::Checkpoint { .. }
            | Self::Replied { .. } => None,
        }
    }
}

/// Which conversation was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedAs {
    /// A new one.
    New,
    /// The one that was asked for, with all it knows.
    Resumed,
}

/// Somebody who answered a question past the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredElsewhere {
    /// Who, as far as is known ("another client of Codex").
    pub by: String,
    /// Which of the offered options, where known.
    pub option_id: Option<String>,
}

/// An event on its way into the log.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// What sort.
    pub kind: Kind,
    /// The canonical body: see [`Event::body`](plexus_protocol::Event::body).
    pub body: Bytes,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
    /// For tool calls and their updates: which tool call, and whether it is over. The gateway closes the ones left dangling.
    pub tool: Option<ToolCallRef>,
    /// For a title that changed: the new one.
    pub title: Option<String>,
}

impl EventDraft {
    /// A draft with a body of the gateway's own making.
    pub fn new(kind: Kind, body: &impl serde::Serialize) -> Self {
        // Our own body types hold nothing that cannot be written as JSON; were one to, the event still says so.
        let body = serde_json::to_vec(body).unwrap_or_else(|_| br#"{"problem":"unwritable body"}"#.to_vec());
        Self { kind, body: body.into(), native: None, tool: None, title: None }
    }

    /// A frame that no dialect understood: kept, shown, never dropped. The body is `{"reason", "message"}` where the
    /// frame is JSON of reasonable depth, `{"reason", "text"}` (lossy UTF-8) where it is not.
    pub fn raw(frame: Bytes, reason: &str) -> Self {
        let one_line = !frame.iter().any(|b| matches!(b, b'\r' | b'\n'));
        // The body wraps the frame, one level.
        let message = if one_line && depth(&frame) < DEPTH_MAX { serde_json::from_slice(&frame).ok() } else { None };
        let text = message.is_none().then(|| String::from_utf8_lossy(&frame));
        let draft = Self::new(Kind::Raw, &RawBody { reason, message, text });
        Self { native: Some(frame), ..draft }
    }
}

/// Which tool call an event speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallRef {
    /// The runtime's identifier of the tool call.
    pub id: String,
    /// Whether the event says that the call is over (completed or failed).
    pub over: bool,
}

/// A question from a runtime to people, before the gateway made a request of it.
#[derive(Debug)]
pub struct AgentRequest {
    /// How the runtime names it.
    pub key: RequestKey,
    /// What sort of question.
    pub kind: RequestType,
    /// The agent's headline.
    pub title: String,
    /// The agent's text.
    pub message: Option<String>,
    /// Exactly what is to be done, for the `display` form.
    pub subject: RequestSubject,
    /// The answers that the dialect can carry back, in the runtime's order. For a confirm: `allow`, maybe
    /// `allow_always`, `deny`.
    pub options: Vec<Offer>,
    /// The things to pick from.
    pub items: Vec<Item>,
    /// Whether several may be picked.
    pub multi: bool,
    /// What a prompt starts with.
    pub default_value: Option<String>,
    /// Whether a prompt takes several lines.
    pub multiline: bool,
    /// What is expected of a prompt or pick.
    pub expects: ExpectedAnswer,
    /// Whether what is typed must not be shown.
    pub secret: bool,
    /// Whether the runtime calls it dangerous.
    pub danger: bool,
    /// Whether a reason can be carried back.
    pub allow_reason: bool,
    /// Whether "remember this" can be carried back.
    pub allow_remember: bool,
    /// Whether no answer can be carried back at all: people see it here and answer it elsewhere.
    pub observe_only: bool,
    /// What of it people may change before they allow it, where the dialect can carry the change.
    pub editable: Option<Editable>,
    /// The tool call that waits for it.
    pub tool_call_id: Option<String>,
    /// A tool call event to log first, when the question is the first mention of the tool call.
    pub first_mention: Option<EventDraft>,
    /// The request's `params`, untouched.
    pub params: Box<RawValue>,
    /// The runtime's own bytes.
    pub native: Bytes,
}

/// What is expected of the answer to a prompt or a pick, so that it can be checked before it is forwarded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedAnswer {
    /// What the agent calls what it asks for.
    pub field: Option<String>,
    /// Whether nothing is an answer, too.
    pub optional: bool,
    /// What words, or how many choices, fit.
    pub fits: Fits,
}

/// Exactly what a question is about.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestSubject {
    /// A command line, as the runtime will run it.
    Command {
        /// The line for a shell, or the program and its arguments one by one.
        argv: Vec<String>,
        /// The folder, where the runtime names one.
        cwd: Option<String>,
    },
    /// Changes to files: path, text before, text after.
    Edits(Vec<(String, Option<String>, String)>),
    /// A change to a file of which the runtime shows the difference alone.
    Diff {
        /// The file.
        path: String,
        /// The difference, as the runtime made it.
        diff: String,
    },
    /// Something is fetched.
    Fetch {
        /// The address.
        url: String,
        /// What is said besides, as JSON.
        more: String,
    },
    /// A tool is called.
    Tool {
        /// Its name.
        name: String,
        /// What it is told, as JSON.
        arguments: String,
    },
    /// A plan, to be carried out.
    Plan(String),
    /// Questions to a person, and the words around them.
    Questions {
        /// The questions, in the order they are shown.
        questions: Vec<Question>,
        /// As text.
        words: String,
    },
    /// Words to a person: a yes to them does nothing by itself.
    Text(String),
    /// It cannot be told what would be done.
    Unreadable {
        /// Why, in words.
        why: &'static str,
        /// All that the runtime sent.
        raw: String,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// `Completed`, `Error` or `Cancelled`.
    pub status: RunStatus,
    /// The runtime's own word (`end_turn`, `max_tokens`, `refusal` …).
    pub stop_reason: Option<String>,
    /// The error, in words.
    pub message: Option<String>,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
}

/// A runtime's error: JSON-RPC code, message, data.
#[derive(Clone, Debug)]
pub struct RuntimeError {
    /// The JSON-RPC code.
    pub code: i64,
    /// In words.
    pub message: String,
    /// More, untouched.
    pub data: Option<Box<RawValue>>,
}

/// Something the gateway wants of a runtime. Written down for the next gateway: its names are kept.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum RuntimeCommand {
    /// Open a session: ends in [`RuntimeEvent::Opened`] or [`RuntimeEvent::NotOpened`].
    Open {
        /// Comes back with the outcome.
        ticket: Ticket,
        /// The folder it works in, absolute.
        cwd: String,
        /// A conversation that the runtime has already.
        resume: Option<ResumeTarget>,
    },
    /// Start work: ends in [`RuntimeEvent::Ended`]. At most one at a time in a session.
    Prompt {
        /// Comes back with the end.
        ticket: Ticket,
        /// The session.
        native: NativeId,
        /// ACP content blocks, each a JSON object.
        content: Vec<Box<RawValue>>,
    },
    /// Stop the work; the end still comes as [`RuntimeEvent::Ended`] or [`RuntimeEvent::Done`]. Open questions were answered before.
    Cancel {
        /// The prompt to stop; `None` for work that the gateway did not ask for.
        ticket: Option<Ticket>,
        /// The session.
        native: NativeId,
        /// Why, in the words of whoever wants it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answer a question. Given once at most for a key; a key that is not open is ignored.
    Answer {
        /// How the runtime named the question.
        key: RequestKey,
        /// What was decided.
        decision: Decision,
    },
    /// Call a method of the runtime's own: ends in [`RuntimeEvent::Replied`].
    Call {
        /// Comes back with the reply.
        ticket: Ticket,
        /// The session to name in the call, if the dialect's methods name one.
        native: Option<NativeId>,
        /// The method, as the client wrote it.
        method: String,
        /// Its parameters, untouched.
        params: Option<Box<RawValue>>,
        /// Whether no reply is wanted (a notification): then nothing comes back.
        notify: bool,
    },
}

/// A conversation to open again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResumeTarget {
    /// The runtime's own name for it.
    pub native: NativeId,
    /// Whether the log has what was said in it: then the runtime's replay of it is left out, and if the runtime cannot
    /// open it again a new one is opened in its place. Else the replay becomes events, and there is no new one.
    pub known: bool,
    /// Where an earlier connection to the endpoint left off, if the log has that: then what came after it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<CarriedState>>,
}

impl ResumeTarget {
    /// A conversation of which nothing was carried over.
    pub fn new(native: NativeId, known: bool) -> Self {
        Self { native, known, carried: None }
    }
}

/// What of a session of an endpoint lives on while no gateway is connected to it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CarriedState {
    /// The last [`RuntimeEvent::Checkpoint`].
    pub checkpoint: String,
    /// The prompt that the session still waits for: the endpoint may have taken it or not.
    pub prompt: Option<Ticket>,
    /// What was asked in that prompt, to know it again in the endpoint: ACP content blocks, as JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
    /// The questions that the session has: open, or decided and maybe not heard.
    pub asks: Vec<RequestKey>,
}

/// Makes a connection's state.
pub type MakeDialect = fn(&RuntimeSpec) -> Box<dyn Dialect>;

/// Every dialect that a runtime can speak.
pub const TABLE: &[(&str, MakeDialect)] = &[
    ("acp", acp::make),
    ("codelia", codelia::make),
    ("codex", codex::make),
    ("gemini-mirror", gemini_mirror::make),
    ("opencode", opencode::make),
    ("opencode2", opencode::v2::make),
];

/// The maker of the dialect with this name.
pub fn find(name: &str) -> Option<MakeDialect> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
}

/// How deep `json` nests, counting outside strings only. Cheap: one pass, no allocation; the text need not be valid.
pub fn depth(json: &[u8]) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => {
                    now += 1;
                    most = most.max(now);
                }
                b'}' | b']' => now = now.saturating_sub(1),
                _ => {}
            }
        }
    }
    most
}
