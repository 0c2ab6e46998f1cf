//! The dialects: the protocols that runtimes speak. A dialect is pure (no I/O, no clock, no tasks), so that each is tested with
//! recordings and fuzzed. One file, since the values refer to each other.
//!
//! A [`Dialect`] is the state of one connection: it takes the frames of a runtime ([`Dialect::feed`]) and the gateway's commands
//! ([`Dialect::command`]), and writes the results into an [`Outbox`]: events for the gateway, bytes for the runtime. A new runtime type is
//! one file here, one line in [`TABLE`], one recording.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use plexus_protocol::{
    AnswerBounds, CallDigest, Capabilities, Decision, Editable, ErrorBody, Item, Kind, NativeId, Offer, RawBody,
    RequestType, RunStatus, RuntimeSpec, SpendReport, Ticket,
};

mod acp;
mod ask_key;
mod client_tools;
mod codelia;
mod codex;
mod fault;
pub mod fnv;
mod gemini_mirror;
mod held;
mod http;
pub mod jsonrpc;
pub mod link;
pub mod listing;
mod mcp_server;
mod opencode;
pub mod prompt_text;
pub mod recording;
#[cfg(any(test, feature = "test-support"))]
pub mod rig;
pub mod subject;
mod updates;

pub use acp::elicitation;
pub use ask_key::RequestKey;
pub use client_tools::{ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork, CommandEnd};
pub use fault::is_uninformative;
pub use http::{HttpBase, HttpReply, HttpRequest};
pub use mcp_server::McpServer;
pub use plexus_protocol::{FolderClaim, RequestSubject};

/// Maximum nesting of a message that is forwarded; a deeper one is stored as `raw` text.
pub const DEPTH_MAX: usize = 128;

/// The state of one connection in one dialect.
pub trait Dialect: Send {
    /// Starts the handshake on an open connection.
    fn open(&mut self, out: &mut Outbox);

    /// Handles a frame of the runtime (NDJSON: one line, without its line feed). Any bytes are accepted: unreadable
    /// ones become a [`RuntimeEvent::Event`] of kind `raw`.
    fn feed(&mut self, frame: Bytes, out: &mut Outbox);

    /// Handles a command of the gateway.
    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox);

    /// Handles the wake-up that was requested with [`Outbox::wake_after`].
    fn wake(&mut self, _out: &mut Outbox) {}

    /// Handles the loss of the connection to an endpoint. It is retried, and [`open`](Self::open) follows: the same
    /// state repeats the handshake and reads what was missed. Never called for programs.
    fn lost(&mut self, _why: &str, _out: &mut Outbox) {}

    /// Returns the path of an `http://` endpoint's event stream (SSE). The data of each event is a frame.
    fn events_path(&self) -> &'static str {
        "/"
    }

    /// Returns the paths to read from an `http://` endpoint without such a stream, to identify it.
    fn probes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns a description of an endpoint without the event stream, and the fix, from the replies to
    /// [`probes`](Self::probes); `None` if unknown.
    fn mistaken(&self, _probed: &[Result<HttpReply, String>]) -> Option<&'static str> {
        None
    }

    /// Handles the reply to an [`HttpRequest`]; called once for each.
    fn reply(&mut self, _id: u64, _reply: Result<HttpReply, String>, _out: &mut Outbox) {}

    /// Handles the result of a [`ClientToolCall`]; called once for each, in any order.
    fn done(&mut self, _id: u64, _done: Result<ClientToolResult, ClientToolError>, _out: &mut Outbox) {}

    /// Returns the state for another gateway process; `None` if that is impossible. Only programs whose dialect can
    /// save its state outlive the gateway process.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Restores a state that [`save`](Self::save) returned, in place of [`open`](Self::open); returns `false` if it is
    /// invalid. A [`wake`](Self::wake) follows at once, since pending wake-ups are lost.
    fn restore(&mut self, _saved: &[u8]) -> bool {
        false
    }

    /// Returns the pending questions, which wait for [`RuntimeCommand::Answer`].
    fn asks(&self) -> Vec<RequestKey> {
        Vec::new()
    }

    /// Returns the total size of the questions that wait until others are closed, in bytes. They are charged to the runtime.
    fn held(&self) -> usize {
        0
    }

    /// Returns the prompts that have not ended.
    fn prompts(&self) -> Vec<Ticket> {
        Vec::new()
    }

    /// Returns the capabilities of the runtime, as far as reported. They are read once it is ready, and again when it
    /// has opened a session.
    fn capabilities(&self) -> Capabilities;

    /// Returns whether commands run in the folder of the runtime's process, whatever the folder of the session is. It
    /// is called once the runtime is ready.
    fn fixed_folder(&self) -> bool {
        false
    }

    /// Returns the reviewer that the runtime asks instead of the user, if it has one. It is called when the runtime has
    /// opened a session or reported a review.
    fn reviewer(&self) -> Option<&'static str> {
        None
    }

    /// Returns the ways to connect to runtimes of this dialect: `command` for programs, and URL schemes of endpoints
    /// (`ws`, `unix`, `http`).
    fn reached_by(&self) -> &'static [&'static str] {
        &["command"]
    }

    /// Returns the limit of sessions on one connection.
    fn sessions(&self) -> SessionLimit {
        SessionLimit::Many
    }
}

/// The limit of sessions on one connection of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLimit {
    /// At most one; a second needs another process.
    One,
    /// Any number.
    Many,
}

/// The phase of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Phase {
    #[default]
    Hello,
    Ready,
    Failed,
}

/// The output of a step: events for the gateway, frames for the runtime, a requested wake-up.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Events for the gateway, in order.
    pub events: Vec<RuntimeEvent>,
    /// Frames for the runtime, in order, each complete (with `
    /// ` for NDJSON).
    pub frames: Vec<Bytes>,
    /// HTTP requests to an endpoint; those of one session are sent one after the other in this order.
    pub fetches: Vec<HttpRequest>,
    /// Client tool calls, which run at once and in parallel.
    pub client_tools: Vec<ClientToolCall>,
    /// The time from now until [`Dialect::wake`] is called; the driver uses the earliest of several.
    pub wake_after: Option<Duration>,
}

impl Outbox {
    /// Refuses a command of the gateway, with the error as its outcome.
    fn refuse(&mut self, command: RuntimeCommand, error: RuntimeError) {
        self.events.push(match command {
            RuntimeCommand::Open { ticket, .. } => RuntimeEvent::NotOpened { ticket, error },
            RuntimeCommand::Prompt { ticket, native, .. } => {
                RuntimeEvent::Ended { native, ticket, end: RunEnd::failed(error.full_message()) }
            }
            RuntimeCommand::Call { ticket, notify: false, .. } => RuntimeEvent::Replied { ticket, reply: Err(error) },
            RuntimeCommand::Call { method, native, .. } => {
                let draft = EventDraft::error("not_ready", &format!("{method} was not sent"), None);
                RuntimeEvent::Event { native, draft }
            }
            // No session, so no run to stop and no request to answer.
            RuntimeCommand::Cancel { .. } | RuntimeCommand::Answer { .. } => return,
        });
    }

    /// Returns the sessions with events since `from`, and `more`, each once.
    fn sessions_since(&self, from: usize, more: Option<NativeId>) -> Vec<NativeId> {
        let mut sessions: Vec<NativeId> = more.into_iter().collect();
        for native in self.events.get(from..).unwrap_or_default().iter().filter_map(RuntimeEvent::native) {
            if !sessions.contains(native) {
                sessions.push(native.clone());
            }
        }
        sessions
    }

    /// Refuses a call of a client: in its reply, or in an event if it is a notification.
    fn refuse_call(
        &mut self,
        ticket: Ticket,
        native: Option<NativeId>,
        method: &str,
        notify: bool,
        error: RuntimeError,
    ) {
        self.events.push(match notify {
            true => RuntimeEvent::Event { native, draft: EventDraft::call_refused(method, &error) },
            false => RuntimeEvent::Replied { ticket, reply: Err(error) },
        });
    }
}

/// A runtime's message in the gateway's form.
#[derive(Debug)]
pub enum RuntimeEvent {
    /// The handshake succeeded; sessions can be opened.
    Ready {
        /// The agent's own name and version.
        agent: Option<String>,
    },
    /// The handshake failed; the connection is unusable.
    Failed {
        /// The reason and the fix.
        message: String,
    },
    /// A session was opened.
    Opened {
        /// The ticket of the command.
        ticket: Ticket,
        /// The runtime's identifier of the session.
        native: NativeId,
        /// Events that come with the session (modes, models, options).
        drafts: Vec<EventDraft>,
        /// The conversation that was opened: the requested one or another.
        how: OpenedAs,
    },
    /// A session could not be opened.
    NotOpened {
        /// The ticket of the command.
        ticket: Ticket,
        /// The runtime's error.
        error: RuntimeError,
    },
    /// An event happened.
    Event {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The event.
        draft: EventDraft,
    },
    /// The runtime asks the user a question.
    Asked {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The request.
        ask: Box<AgentRequest>,
    },
    /// The content of an open question changed: an [`RuntimeEvent::Asked`] with the same key came before.
    AskChanged {
        /// The session, if the message named one.
        native: Option<NativeId>,
        /// The whole question in its present form.
        ask: Box<AgentRequest>,
    },
    /// The runtime's own reviewer decided a question instead of the user.
    Reviewed {
        /// The session.
        native: NativeId,
        /// The question.
        ask: Box<AgentRequest>,
        /// The decision.
        review: AgentReview,
    },
    /// The runtime withdrew a question.
    TakenBack {
        /// The session, if known.
        native: Option<NativeId>,
        /// The question's key.
        key: RequestKey,
        /// The answer from outside of the gateway, with its author.
        elsewhere: Option<AnsweredElsewhere>,
    },
    /// The gateway's answer came too late: the question had been answered outside of the gateway.
    AnswerLost {
        /// The session, if known.
        native: Option<NativeId>,
        /// The question's key.
        key: RequestKey,
        /// The answer, with its author.
        elsewhere: AnsweredElsewhere,
    },
    /// A run began that the gateway did not start: another client of the runtime prompted it. It ends with [`RuntimeEvent::Done`], not with
    /// [`RuntimeEvent::Ended`].
    Began {
        /// The session.
        native: NativeId,
        /// The author of the prompt, if known ("another client of Codex").
        by: String,
    },
    /// The run reported with [`RuntimeEvent::Began`] ended.
    Done {
        /// The session.
        native: NativeId,
        /// The end of the run.
        end: RunEnd,
    },
    /// The runtime has a session that the gateway did not open; the gateway may open it with [`RuntimeCommand::Open`].
    Found {
        /// The session.
        native: NativeId,
        /// The working directory, if known.
        cwd: Option<String>,
        /// The title, if known.
        title: Option<String>,
    },
    /// The run started by [`RuntimeCommand::Prompt`] ended.
    Ended {
        /// The session.
        native: NativeId,
        /// The prompt.
        ticket: Ticket,
        /// The end of the run.
        end: RunEnd,
    },
    /// A session ended in the runtime, which continues to run: the terminal of the session was closed.
    Closed {
        /// The session.
        native: NativeId,
        /// The reason, as text.
        reason: String,
    },
    /// The reported part of an endpoint's session, including this step. It is stored in one commit with those events,
    /// and returned with [`ResumeTarget::carried`] when the session is opened again, by this gateway process or the
    /// next.
    Checkpoint {
        /// The session.
        native: NativeId,
        /// The dialect's own data, of bounded length, by which the rest is reported once.
        state: String,
    },
    /// The runtime reported its spending. A replay of the past must not report single steps again; repeated sums do no harm.
    Spent {
        /// The session.
        native: NativeId,
        /// The figures.
        report: SpendReport,
    },
    /// The reply to a [`RuntimeCommand::Call`].
    Replied {
        /// The call.
        ticket: Ticket,
        /// The result, unchanged, or the runtime's error.
        reply: Result<Box<RawValue>, RuntimeError>,
    },
}

impl RuntimeEvent {
    /// Returns the session of the event, if it names one that is open.
    fn native(&self) -> Option<&NativeId> {
        match self {
            Self::Opened { native, .. }
            | Self::Began { native, .. }
            | Self::Done { native, .. }
            | Self::Closed { native, .. }
            | Self::Spent { native, .. }
            | Self::Reviewed { native, .. }
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

/// The conversation that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedAs {
    /// A new conversation.
    New,
    /// The requested conversation, with its history.
    Resumed,
}

/// The author and the content of an answer from outside of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredElsewhere {
    /// The name, if known ("another client of Codex").
    pub by: String,
    /// The chosen option, if known.
    pub option_id: Option<String>,
}

/// The decision of a runtime's own reviewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReview {
    /// The reviewer ("Codex's reviewer").
    pub by: String,
    /// `true` if the action was allowed.
    pub allowed: bool,
    /// The reviewer's reason, in its own words.
    pub reason: Option<String>,
}

/// An event before it is logged.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// The kind.
    pub kind: Kind,
    /// The canonical body: see [`Event::body`](plexus_protocol::Event::body).
    pub body: Bytes,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
    /// The tool call of a `tool_call` event or an update, and whether the call has ended. The gateway closes calls that never end.
    pub tool: Option<ToolCallRef>,
    /// The new title, for a changed title.
    pub title: Option<String>,
}

impl EventDraft {
    /// Makes a draft with a body of the gateway.
    pub fn new(kind: Kind, body: &impl serde::Serialize) -> Self {
        // The gateway's own body types can always be written as JSON; if one cannot, the event says so.
        let body = serde_json::to_vec(body).unwrap_or_else(|_| br#"{"problem":"unwritable body"}"#.to_vec());
        Self { kind, body: body.into(), native: None, tool: None, title: None }
    }

    /// Makes an error that the user sees.
    pub fn error(code: &str, message: &str, native: Option<&Bytes>) -> Self {
        Self { native: native.cloned(), ..Self::new(Kind::Error, &ErrorBody::new(code, message)) }
    }

    /// Makes an error for a notification of a client that was not sent.
    fn call_refused(method: &str, error: &RuntimeError) -> Self {
        Self::error("call_refused", &format!("{method} was not sent: {}", error.full_message()), None)
    }

    /// Makes an event for a changed title of a session.
    pub fn title(title: Option<String>, native: Option<&Bytes>) -> Self {
        let body = serde_json::json!({ "sessionUpdate": Kind::SessionInfoUpdate.as_str(), "title": title });
        Self { native: native.cloned(), title, ..Self::new(Kind::SessionInfoUpdate, &body) }
    }

    /// Makes a draft of a frame that no dialect understood: it is stored and shown, never dropped. The body is
    /// `{"reason", "message"}` if the frame is JSON of reasonable depth, otherwise `{"reason", "text"}` (lossy UTF-8).
    pub fn raw(frame: Bytes, reason: &str) -> Self {
        let one_line = !frame.iter().any(|b| matches!(b, b'\r' | b'\n'));
        // The body wraps the frame in one level.
        let message = if one_line && depth(&frame) < DEPTH_MAX { serde_json::from_slice(&frame).ok() } else { None };
        let text = message.is_none().then(|| String::from_utf8_lossy(&frame));
        let draft = Self::new(Kind::Raw, &RawBody { reason, message, text });
        Self { native: Some(frame), ..draft }
    }
}

/// The tool call of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallRef {
    /// The runtime's identifier of the tool call.
    pub id: String,
    /// `true` if the call has ended (completed or failed).
    pub ended: bool,
    /// The digest of a call of one of the gateway's own tools, if the agent's server shares its tools among sessions.
    pub own: Option<CallDigest>,
}

impl ToolCallRef {
    /// Makes the tool call of an event, which is not a call of the gateway's own tools.
    pub fn new(id: impl Into<String>, ended: bool) -> Self {
        Self { id: id.into(), ended, own: None }
    }
}

/// A question from a runtime, from which the gateway makes a request.
#[derive(Debug)]
pub struct AgentRequest {
    /// The key.
    pub key: RequestKey,
    /// The type of the question.
    pub kind: RequestType,
    /// The agent's headline.
    pub title: String,
    /// The agent's text.
    pub message: Option<String>,
    /// The exact action, for `display`.
    pub subject: RequestSubject,
    /// The options that the dialect can send back, in the runtime's order. For a confirm: `allow`, maybe `allow_always`, `deny`.
    pub options: Vec<Offer>,
    /// The items to pick from.
    pub items: Vec<Item>,
    /// `true` if several items may be picked.
    pub multi: bool,
    /// The initial text of a prompt.
    pub default_value: Option<String>,
    /// `true` if a prompt takes several lines.
    pub multiline: bool,
    /// The expected answer to a prompt or pick.
    pub expects: ExpectedAnswer,
    /// `true` if the typed text is secret.
    pub secret: bool,
    /// The runtime's own term for the danger of the action.
    pub danger_level: Option<String>,
    /// `true` if a reason can be sent back.
    pub allow_reason: bool,
    /// `true` if "remember this" can be sent back.
    pub allow_remember: bool,
    /// `true` if no answer can be sent back: the question is shown here and answered elsewhere.
    pub observe_only: bool,
    /// The part that may be edited before it is allowed, if the dialect can send the edit.
    pub editable: Option<Editable>,
    /// The tool call that waits for the answer.
    pub tool_call_id: Option<String>,
    /// A tool call event to log first, if the question is the first mention of the tool call.
    pub first_mention: Option<EventDraft>,
    /// The request's `params`, unchanged.
    pub params: Box<RawValue>,
    /// The runtime's own bytes.
    pub native: Bytes,
}

impl AgentRequest {
    /// Makes a request without options or text beside its title: the base of struct update syntax.
    pub fn new(
        key: RequestKey,
        kind: RequestType,
        title: impl Into<String>,
        params: Box<RawValue>,
        native: Bytes,
    ) -> Self {
        Self {
            key,
            kind,
            title: title.into(),
            message: None,
            subject: RequestSubject::Text(String::new()),
            options: Vec::new(),
            items: Vec::new(),
            multi: false,
            default_value: None,
            multiline: false,
            expects: ExpectedAnswer::default(),
            secret: false,
            danger_level: None,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            editable: None,
            tool_call_id: None,
            first_mention: None,
            params,
            native,
        }
    }
}

/// The expected answer to a prompt or a pick, checked before it is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedAnswer {
    /// The agent's name of the field.
    pub field: Option<String>,
    /// `true` if an empty answer is allowed.
    pub optional: bool,
    /// The bounds of the text, or of the number of choices.
    pub fits: AnswerBounds,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The status: `Completed`, `Error` or `Cancelled`.
    pub status: RunStatus,
    /// The runtime's own stop reason (`end_turn`, `max_tokens`, `refusal` …).
    pub stop_reason: Option<String>,
    /// The error message.
    pub message: Option<String>,
    /// The runtime's own bytes.
    pub native: Option<Bytes>,
}

impl RunEnd {
    /// Makes the end of a run that no message of the runtime reported.
    pub fn new(status: RunStatus, message: Option<String>) -> Self {
        Self { status, stop_reason: None, message, native: None }
    }

    /// Makes the end of a run that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(RunStatus::Error, Some(message.into()))
    }
}

/// A runtime's error: JSON-RPC code, message, data.
#[derive(Clone, Debug)]
pub struct RuntimeError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Further data, unchanged.
    pub data: Option<Box<RawValue>>,
}

/// A command to a runtime. It is saved for the next gateway process: its names are fixed.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum RuntimeCommand {
    /// Opens a session; ends in [`RuntimeEvent::Opened`] or [`RuntimeEvent::NotOpened`].
    Open {
        /// The ticket that is returned with the outcome.
        ticket: Ticket,
        /// The working directory, absolute.
        cwd: String,
        /// An existing conversation of the runtime.
        resume: Option<ResumeTarget>,
        /// MCP servers for the session's agent. Dialects that cannot name any for a single session ignore them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mcp_servers: Vec<McpServer>,
    },
    /// Starts a run; ends in [`RuntimeEvent::Ended`]. A session has at most one at a time.
    Prompt {
        /// The ticket that is returned with the end.
        ticket: Ticket,
        /// The session.
        native: NativeId,
        /// ACP content blocks, each a JSON object.
        content: Vec<Box<RawValue>>,
    },
    /// Cancels a run, which still ends in [`RuntimeEvent::Ended`] or [`RuntimeEvent::Done`]. Open questions were answered before.
    Cancel {
        /// The prompt to cancel; `None` for a run that the gateway did not start.
        ticket: Option<Ticket>,
        /// The session.
        native: NativeId,
        /// The reason given with the cancel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answers a question. It is sent at most once for a key; a key that is not open is ignored.
    Answer {
        /// The question's key.
        key: RequestKey,
        /// The decision.
        decision: Decision,
    },
    /// Calls one of the runtime's own methods; ends in [`RuntimeEvent::Replied`].
    Call {
        /// The ticket that is returned with the reply.
        ticket: Ticket,
        /// The session to name in the call, if the dialect's methods name one.
        native: Option<NativeId>,
        /// The method, as the client wrote it.
        method: String,
        /// The parameters, unchanged.
        params: Option<Box<RawValue>>,
        /// `true` if it is a notification, which has no reply.
        notify: bool,
    },
}

/// A conversation to resume.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResumeTarget {
    /// The runtime's own id of the conversation.
    pub native: NativeId,
    /// `true` if the log has the history: then the runtime's replay is dropped, and a new conversation replaces one
    /// that the runtime cannot resume. Otherwise the replay becomes events, and no new conversation is opened.
    pub known: bool,
    /// The state that an earlier connection to the endpoint left, if the log has it: then only later events are reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<CarriedState>>,
}

impl ResumeTarget {
    /// Makes a target without carried state.
    pub fn new(native: NativeId, known: bool) -> Self {
        Self { native, known, carried: None }
    }
}

/// The state of an endpoint's session that survives a disconnected gateway.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CarriedState {
    /// The last [`RuntimeEvent::Checkpoint`].
    pub checkpoint: String,
    /// The prompt that the session still waits for, which may or may not have reached the endpoint.
    pub prompt: Option<Ticket>,
    /// The content of that prompt, to recognize it in the endpoint: ACP content blocks, as JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
    /// The questions of the session: open, or decided with an answer that may be lost.
    pub asks: Vec<RequestKey>,
}

/// A constructor of the state of a connection.
pub type MakeDialect = fn(&RuntimeSpec) -> Box<dyn Dialect>;

/// Every dialect of this crate. A runtime may also use those of `plexus-linked`.
pub const TABLE: &[(&str, MakeDialect)] = &[
    ("acp", acp::make),
    ("codelia", codelia::make),
    ("codex", codex::make),
    ("gemini-mirror", gemini_mirror::make),
    ("opencode", opencode::make),
    ("opencode-terminal", opencode::terminal::make),
    ("opencode2", opencode::v2::make),
];

/// Returns the constructor of the dialect with this name.
pub fn find(name: &str) -> Option<MakeDialect> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
}

/// Returns the nesting depth of `json`, outside of strings. One pass, no allocation; the text may be invalid.
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
