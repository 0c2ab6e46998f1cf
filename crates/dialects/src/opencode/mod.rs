//! OpenCode's own server (`opencode serve`), an endpoint. One file: a connection's state, and the gateway's commands.
//!
//! The API is described at `/doc` of each server; tested with 1.18. `/global/event` reports events of all folders; `sync` reads the state
//! by requests, each for one folder. `stream` handles events, `events` translates messages, `ask` handles questions, `calls` clients' own
//! calls, `tools` the gateway's own tools; `checkpoint` keeps what outlives the gateway; `terminal` has the servers inside terminals.
//!
//! Rules that follow from OpenCode's behaviour:
//! - The stream has no replay: after each connection everything is read again, and only unreported parts are reported. Events received
//!   meanwhile are queued, and handled afterwards.
//! - A connection sends `server.connected` before OpenCode listens to its own events: under load, events of the next half second are lost.
//!   So everything is read twice, and once more after the first event, which shows that it listens; the heartbeat comes after ten seconds
//!   at the latest.
//! - The status is read before the messages, and work may begin in between: a run is taken for ended if the messages hold the complete
//!   reply, or if a second read finds the same state.
//! - OpenCode has other clients (its own TUI): their prompts are foreign runs, their answers are answers from elsewhere, and the first
//!   answer wins.
//! - After an abort OpenCode lists the aborted questions forever: a question whose message is complete is closed.
//! - A reverted conversation keeps its messages, and names the revert in its session, until the next prompt: then they are removed. Before
//!   that it can be undone.
//! - Every route takes the session's folder: without it, OpenCode searches another one.

mod ask;
mod calls;
mod checkpoint;
mod events;
mod stream;
mod sync;
pub(super) mod terminal;
#[cfg(test)]
mod terminal_tests;
#[cfg(test)]
mod tests;
mod tools;
pub(super) mod v2;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fault;
use super::held::HeldRequests;
use super::jsonrpc::{self, INTERNAL, object};
use super::{
    Dialect, EventDraft, HttpReply, HttpRequest, McpServer, Outbox, Phase, RequestKey, RuntimeCommand, RuntimeError,
    RuntimeEvent,
};
use ask::PendingRequest;
use calls::Models;
use events::Progress;
use plexus_protocol::{Capabilities, Capability, NativeId, RuntimeSpec, Ticket};

/// The error message for a server of the next generation, which has none of the routes used here.
const SUCCESSOR: &str =
    "this server is OpenCode 2, which has a different API: set the runtime's `dialect` to \"opencode2\"";
/// The author of an action that is not the gateway's.
const ANOTHER: &str = "another client of OpenCode";
/// The author of an action that is not the gateway's, if the server is in the process of a terminal.
const AT_TERMINAL: &str = "the terminal";
/// Number of sessions requested in a page of the list.
const LIST_PAGE: usize = 100;
/// Maximum number of sessions listed. A longer list is reported; its other sessions are found at their next event.
const LIST_MAX: usize = 16 * 1024;
/// Maximum number of folders searched for busy sessions and questions, in addition to those of open sessions, most
/// recently used first: OpenCode starts an instance for each. More folders are reported; their sessions are found at
/// their next event.
const FOLDERS_MAX: usize = 256;
/// Maximum number of messages read of a session; of a longer one the end is reported, and that there is more.
const MESSAGES_READ: usize = 500;
/// Maximum number of known sessions; above it those that are not open are removed until their next event.
const SESSIONS_MAX: usize = 1024;
/// Maximum number of events queued for a session before it is open.
const QUEUE_MAX: usize = 8192;
/// Maximum size of queued events, in bytes. Above either limit the queue is dropped, and the session read again when it is opened.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;
/// The pause before a re-read.
const REREAD_DELAY: Duration = Duration::from_secs(2);
/// Time that OpenCode may take for its own steps: to start after a user's message, to clean up after an abort.
const STEP_TIME: Duration = Duration::from_secs(3);

/// Maximum number of reads that find a session idle with an incomplete reply; after them the reply counts as complete.
const DOUBTS_MAX: u8 = 2;

/// Number of pauses until a prompt that OpenCode reported but never began counts as ended: half a minute on a machine under load.
const UNBEGUN_MAX: u8 = 10;

/// Creates the state of a connection.
pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    let folder = spec.cwd.to_string_lossy().into_owned();
    Box::new(OpenCode { folder, secret: spec.secret.is_some(), ..OpenCode::default() })
}

/// The kind of a server, which decides which of its sessions are read and who its other client is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ServerKind {
    /// An endpoint that listens: sessions of all its folders are read.
    #[default]
    Endpoint,
    /// The process of a terminal: only the sessions of its own folder are read, since OpenCode starts an instance for each folder.
    Terminal,
}

impl ServerKind {
    /// Returns the author of actions that are not the gateway's.
    fn others(self) -> &'static str {
        match self {
            Self::Endpoint => ANOTHER,
            Self::Terminal => AT_TERMINAL,
        }
    }
}

/// The purpose of a request.
enum Pending {
    Health,
    Providers,
    /// A page of the list of sessions.
    List(Page),
    /// The status of a folder; `only` for a session that is being opened.
    Status {
        folder: Option<String>,
        only: Option<NativeId>,
    },
    Permissions {
        folder: Option<String>,
        only: Option<NativeId>,
    },
    Questions {
        folder: Option<String>,
        only: Option<NativeId>,
    },
    Messages(NativeId),
    Create {
        ticket: Ticket,
        cwd: String,
        server: Option<McpServer>,
    },
    /// The list of MCP servers.
    Servers(NativeId),
    AddServer(NativeId),
    /// The tools that a session has.
    Permit(NativeId),
    Resume(NativeId),
    Prompt {
        native: NativeId,
        ticket: Ticket,
    },
    Abort(NativeId),
    Answer {
        key: RequestKey,
        route: usize,
    },
    Call {
        ticket: Ticket,
        notify: bool,
    },
}

/// A part of the list of sessions.
#[derive(Clone, Copy)]
enum Page {
    /// Sessions used most recently before this time, in milliseconds.
    Recent { before: Option<u64>, limit: usize },
    /// The whole list of the older route.
    Old,
}

/// The state of a read of everything, after a connection.
#[derive(Default)]
struct Resync {
    /// The number of pending replies.
    waiting: usize,
    /// Folders whose status, permissions and questions were read.
    folders: HashSet<Option<String>>,
    busy: HashMap<NativeId, Option<String>>,
    listed: HashSet<RequestKey>,
    /// Sessions whose status the stream reported meanwhile, which is newer.
    reported_status: HashSet<NativeId>,
    titles: HashMap<NativeId, (Option<String>, Option<String>)>,
    /// Reverted sessions, and their reverts.
    reverted: HashMap<NativeId, Revert>,
    /// Sessions whose revert the stream reported meanwhile.
    revised: HashSet<NativeId>,
    /// The folders of the listed sessions, most recently used first.
    recent: Vec<String>,
    /// Questions, in their order.
    asks: Vec<ask::ParsedRequests>,
    failed: bool,
}

#[derive(Default)]
struct OpenCode {
    folder: String,
    server_kind: ServerKind,
    secret: bool,
    phase: Phase,
    connected: bool,
    /// `true` if this connection was reported as ready.
    is_reported_ready: bool,
    agent: Option<String>,
    models: Models,
    next: u64,
    pending: HashMap<u64, Pending>,
    sessions: BTreeMap<NativeId, Session>,
    asks: BTreeMap<RequestKey, PendingRequest>,
    /// Questions above the limit of their session.
    held: HeldRequests,
    /// Closed questions, which are not asked again.
    closed: ask::ClosedRequests,
    resync_state: Option<Resync>,
    /// Sessions to find at the next read, also if they are idle.
    named: Vec<NativeId>,
    /// `true` if another read is due.
    again: bool,
    /// `true` if an event came on this connection, which shows that OpenCode listens to its own events.
    listens: bool,
    /// `true` if the server sends `session.status`; older ones send only `session.idle`.
    reports_status: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// The session is active; it is not reported yet.
    #[default]
    Seen,
    /// The session was reported to the gateway.
    Found,
    /// The session is being opened.
    Opening { ticket: Ticket, known: bool, continues: bool },
    /// The session is open here.
    Open,
}

#[derive(Default)]
struct Session {
    stage: Stage,
    folder: Option<String>,
    title: Option<String>,
    /// The MCP server with the gateway's own tools.
    server: Option<McpServer>,
    /// `true` while the messages are being read, so that events are queued.
    reading: bool,
    queue: Vec<RuntimeEvent>,
    queued: usize,
    progress: Progress,
    busy: bool,
    /// `true` if the stream reported the status since it was requested: a pending reply is older.
    status_is_newer: bool,
    /// `true` if the session was busy while it was not open, or was being read.
    worked: bool,
    /// `true` if the creation of the session was seen: in a terminal, that comes with its first prompt.
    created: bool,
    /// `true` if [`RuntimeEvent::Began`] was sent without its [`RuntimeEvent::Done`].
    began: bool,
    prompt: Option<Prompt>,
    /// The prompt of another client, until it is known whether work follows.
    held_prompt: Vec<EventDraft>,
    /// `true` if the gateway cancelled the run.
    cancelled: bool,
    /// `true` if a question of the run was withdrawn, which OpenCode treats as a rejection that ends its turn.
    withdrawn: bool,
    /// `true` if OpenCode reported the run as aborted.
    aborted: bool,
    error: Option<String>,
    /// `true` if the session is idle, but has not cleaned up.
    ending: bool,
    /// The number of pauses of [`STEP_TIME`] that are left until OpenCode has to begin with the prompt; 0 once it did.
    unbegun: u8,
    /// The model of the next prompts: provider and model.
    model: Option<(String, String)>,
    /// The gateway's answer that OpenCode may also apply to other questions.
    spread: Option<&'static str>,
    /// Questions to show once the messages are read.
    asks: Vec<ask::ParsedRequests>,
    /// Questions shown by an earlier gateway process, until it is known whether OpenCode still waits for them.
    carried: ask::CarriedAsks,
    /// `true` if the progress of unfinished messages is unknown.
    partial: bool,
    /// The reverted state that was reported.
    reverted: Option<Revert>,
    /// `true` if messages of the revert were removed, so that it cannot be undone.
    committed: bool,
    /// The revert that was read, reported together with its messages.
    reread: bool,
    /// The revert that was read.
    reverts: Option<Revert>,
    /// The last message known when its messages were requested.
    newest: Option<String>,
    /// The number of reads that found the session idle with an incomplete reply.
    doubts: u8,
}

#[derive(Clone, Serialize, Deserialize)]
struct Prompt {
    ticket: Ticket,
    /// The checksum of the first text, to recognize the prompt.
    text: Option<u64>,
    /// `true` if OpenCode reported the prompt as a message.
    seen: bool,
    /// `true` if the request was answered.
    taken: bool,
    /// The assistant's last message before the prompt: a later one shows that OpenCode works on it.
    after: Option<String>,
}

impl Session {
    fn new(stage: Stage, folder: Option<String>) -> Self {
        Self { stage, folder, ..Self::default() }
    }

    /// Returns whether events of the session are reported at once.
    fn live(&self) -> bool {
        self.stage == Stage::Open && !self.reading
    }
}

/// An event of the stream: of `/global/event` (with `payload`), or of `/event`, without that wrapper.
#[derive(Deserialize)]
struct Frame<'a> {
    directory: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<String>,
    properties: Option<&'a RawValue>,
}

/// The common members of events.
#[derive(Deserialize)]
struct Properties<'a> {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(rename = "messageID")]
    message: Option<String>,
    #[serde(rename = "partID")]
    part_id: Option<String>,
    field: Option<String>,
    delta: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    info: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    todos: Option<&'a RawValue>,
    diff: Option<&'a RawValue>,
    #[serde(rename = "requestID", alias = "permissionID")]
    request: Option<String>,
    #[serde(alias = "response")]
    reply: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "type")]
    kind: String,
    attempt: Option<u64>,
    message: Option<String>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct SessionInfo {
    id: String,
    directory: Option<String>,
    title: Option<String>,
    time: Option<SessionTime>,
    revert: Option<Revert>,
    permission: Option<serde_json::Value>,
    /// The session whose subagent this one is.
    #[serde(rename = "parentID")]
    parent: Option<String>,
}

/// The revert of a conversation: everything from this message on, or from a part of it. It can be undone until the next prompt, with which
/// OpenCode removes it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Revert {
    #[serde(rename = "messageID")]
    message: String,
    #[serde(rename = "partID")]
    part: Option<String>,
}

impl SessionInfo {
    /// Returns the time of the last use, in milliseconds.
    fn updated(&self) -> f64 {
        self.time.as_ref().and_then(|time| time.updated).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct SessionTime {
    updated: Option<f64>,
}

#[derive(Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow)]
    info: &'a RawValue,
    parts: Vec<&'a RawValue>,
}

impl Dialect for OpenCode {
    fn open(&mut self, out: &mut Outbox) {
        if self.phase == Phase::Failed {
            return;
        }
        self.connected = true;
        for session in self.sessions.values_mut().filter(|session| session.stage == Stage::Open) {
            session.reading = true;
        }
        self.listens = false;
        self.sync(out);
        self.sync_again(out);
        self.servers_again(out);
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&frame) else {
            return self.raw(&frame, None, "not UTF-8", out);
        };
        if !jsonrpc::shallow(&frame) {
            return self.raw(&frame, None, "nested too deeply", out);
        }
        let whole = serde_json::from_str::<&RawValue>(text).ok().and_then(object::<Frame<'_>>);
        let Some(Frame { directory, payload, kind, properties }) = whole else {
            return self.raw(&frame, None, "not an event of OpenCode's", out);
        };
        let from = out.events.len();
        match (payload.map(object::<Frame<'_>>), kind, properties) {
            (Some(Some(Frame { kind: Some(kind), properties, .. })), ..) | (None, Some(kind), properties) => {
                self.on_event(&frame, directory, &kind, properties, out);
            }
            _ => self.raw(&frame, None, "not an event of OpenCode's", out),
        }
        self.checkpoints(from, None, out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let from = out.events.len();
        let changed = match &command {
            RuntimeCommand::Prompt { native, .. } | RuntimeCommand::Cancel { native, .. } => Some(native.clone()),
            RuntimeCommand::Open { .. } | RuntimeCommand::Answer { .. } | RuntimeCommand::Call { .. } => None,
        };
        let ready = self.connected && self.phase == Phase::Ready;
        match command {
            RuntimeCommand::Call { notify: true, .. } if !ready => {}
            command @ (RuntimeCommand::Open { .. } | RuntimeCommand::Prompt { .. } | RuntimeCommand::Call { .. })
                if !ready =>
            {
                out.refuse(command, RuntimeError::new(INTERNAL, "OpenCode is not connected"));
            }
            RuntimeCommand::Open { ticket, cwd, resume: None, mcp_servers } => {
                let server = tools::own(mcp_servers);
                let path = in_folder("/session", Some(&cwd));
                let body = tools::new_session(server.as_ref());
                self.post(Pending::Create { ticket, cwd, server }, path, &body, out);
            }
            RuntimeCommand::Open { ticket, cwd, resume: Some(resume), mcp_servers } => {
                self.resume(ticket, &cwd, resume, tools::own(mcp_servers), out);
            }
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, &content, out),
            RuntimeCommand::Cancel { native, .. } => {
                if let Some(session) = self.sessions.get_mut(&native) {
                    session.cancelled = true;
                    self.abort(&native, out);
                }
            }
            RuntimeCommand::Answer { key, decision } => self.answer(&key, &decision, out),
            RuntimeCommand::Call { ticket, native, method, params, notify } => {
                self.call(ticket, native, &method, params.as_deref(), notify, out);
            }
        }
        self.checkpoints(from, changed, out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        if self.connected && self.resync_state.is_none() && std::mem::take(&mut self.again) {
            self.sync(out);
            // Too little time may have passed for other timers.
            out.wake_after = Some(STEP_TIME);
            return;
        }
        let from = out.events.len();
        self.report_late_losses(out);
        let natives: Vec<NativeId> = self.sessions.keys().cloned().collect();
        for native in natives {
            self.on_timeout(&native, out);
        }
        self.checkpoints(from, None, out);
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        (self.connected, self.is_reported_ready) = (false, false);
        self.resync_state = None;
        self.again = false;
        // Reads are repeated; other requests still get their replies.
        self.pending.retain(|_, pending| match pending {
            Pending::Create { .. } | Pending::Prompt { .. } | Pending::Answer { .. } | Pending::Call { .. } => true,
            Pending::Health
            | Pending::Providers
            | Pending::List(_)
            | Pending::Status { .. }
            | Pending::Permissions { .. }
            | Pending::Questions { .. }
            | Pending::Messages(_)
            | Pending::Resume(_)
            | Pending::Servers(_)
            | Pending::AddServer(_)
            | Pending::Permit(_)
            | Pending::Abort(_) => false,
        });
        self.sessions.retain(|_, session| match session.stage {
            Stage::Open => {
                session.progress.connection_lost();
                session.reading = true;
                session.ending = false;
                session.doubts = 0;
                session.reread = false;
                session.asks.clear();
                if let Some(prompt) = &mut session.prompt {
                    prompt.taken = false;
                }
                session.worked |= session.busy;
                true
            }
            Stage::Opening { ticket, .. } => {
                let error = RuntimeError::new(INTERNAL, "the connection to OpenCode was lost");
                out.events.push(RuntimeEvent::NotOpened { ticket, error });
                false
            }
            Stage::Seen | Stage::Found => false,
        });
        let sessions = &self.sessions;
        self.asks.retain(|_, question| sessions.contains_key(&question.native));
    }

    fn events_path(&self) -> &'static str {
        "/global/event"
    }

    fn probes(&self) -> &'static [&'static str] {
        &["/global/health", "/api/health"]
    }

    fn mistaken(&self, probed: &[Result<HttpReply, String>]) -> Option<&'static str> {
        let [health, next] = probed else { return None };
        // OpenCode 1 has both routes, or neither; its web page answers a missing one.
        (health.is_ok() && reply_body(health).is_none() && reply_body(next).is_some()).then_some(SUCCESSOR)
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let from = out.events.len();
        match pending {
            Pending::Health => self.health(reply, out),
            Pending::Providers => {
                if let Some(body) = reply_body(&reply) {
                    self.models.read(body);
                }
                self.on_sync_reply(out);
            }
            Pending::List(page) => self.list(page, &reply, out),
            Pending::Status { folder, only } => self.status_read(folder, only, &reply, out),
            Pending::Permissions { folder, only } => self.asks_read(folder, only, &reply, false, out),
            Pending::Questions { folder, only } => self.asks_read(folder, only, &reply, true, out),
            Pending::Messages(native) => self.messages(&native, &reply, out),
            Pending::Create { ticket, cwd, server } => self.created(ticket, cwd, server, &reply, out),
            Pending::Servers(native) => self.servers_read(&native, &reply, out),
            Pending::AddServer(native) => self.server_added(&native, &reply, out),
            Pending::Permit(native) => self.permitted(&native, &reply, out),
            Pending::Resume(native) => self.resumed(&native, &reply, out),
            Pending::Prompt { native, ticket } => self.prompted(&native, ticket, &reply, out),
            Pending::Abort(native) => {
                if let Err(reason) = done(&reply) {
                    let draft = EventDraft::error("not_stopped", &format!("OpenCode did not stop: {reason}"), None);
                    self.emit(&native.clone(), RuntimeEvent::Event { native: Some(native), draft }, out);
                }
                out.wake_after = Some(STEP_TIME);
            }
            Pending::Answer { key, route } => self.answered(&key, route, reply, out),
            Pending::Call { ticket, notify } => {
                if !notify {
                    out.events.push(RuntimeEvent::Replied { ticket, reply: calls::result(&reply) });
                }
            }
        }
        self.checkpoints(from, None, out);
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["http"]
    }

    /// Returns the capabilities of the server's routes: the server does not report any.
    fn capabilities(&self) -> Capabilities {
        let all = [Capability::Load, Capability::List, Capability::Cancel, Capability::Requests, Capability::Reasons];
        all.into_iter().chain([Capability::Models, Capability::Images, Capability::Audio]).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        let open = |question: &PendingRequest| question.displayed && question.answer.is_none();
        self.asks.iter().filter(|(_, question)| open(question)).map(|(key, _)| key.clone()).collect()
    }

    fn held(&self) -> usize {
        self.held.bytes()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.sessions.values().filter_map(|session| Some(session.prompt.as_ref()?.ticket)).collect()
    }
}

/// Escapes text for a segment of a path or a query.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Returns a path with its folder.
fn in_folder(path: &str, folder: Option<&str>) -> String {
    match folder {
        Some(folder) => format!("{path}?directory={}", escape(folder)),
        None => path.to_owned(),
    }
}

/// Returns the body of a successful reply. OpenCode's web page answers unknown routes.
fn reply_body(reply: &Result<HttpReply, String>) -> Option<&Bytes> {
    match reply {
        Ok(HttpReply { status: 200, body }) if matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) => {
            Some(body)
        }
        _ => None,
    }
}

/// Returns the version in the reply of a health route.
fn health_version(reply: &Result<HttpReply, String>) -> Option<String> {
    #[derive(Deserialize)]
    struct Health {
        version: Option<String>,
    }
    plexus_protocol::object::from_slice::<Health>(reply_body(reply)?).ok()?.version
}

/// Makes the failure of a connection without the right password.
fn password_failure(has_secret: bool) -> RuntimeEvent {
    let problem = if has_secret { "refused the" } else { "requires a" };
    let fix = "set the runtime's `secret` to the server's OPENCODE_SERVER_PASSWORD";
    RuntimeEvent::Failed { message: format!("OpenCode {problem} password; {fix}") }
}

/// Checks that a request succeeded.
///
/// # Errors
/// Returns the error as a message.
fn done(reply: &Result<HttpReply, String>) -> Result<(), String> {
    match reply {
        Ok(HttpReply { status: 204, .. }) => Ok(()),
        Ok(HttpReply { status: 200, body }) if body.trim_ascii_start().first() != Some(&b'<') => Ok(()),
        Ok(reply) => Err(refused(reply)),
        Err(reason) => Err(reason.clone()),
    }
}

/// Returns a refusal as a message.
fn refused(reply: &HttpReply) -> String {
    if reply.status == 200 {
        return "this version of OpenCode has no such route".into();
    }
    let json = std::str::from_utf8(&reply.body).ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let message = json.map(|json| events::error_text(json).1).filter(|message| !message.is_empty());
    let body = || fault::join_details(&format!("HTTP {}", reply.status), &String::from_utf8_lossy(&reply.body));
    message.unwrap_or_else(body)
}

/// Returns the share of the queue's limit that an event takes.
fn weight(event: &RuntimeEvent) -> usize {
    match event {
        RuntimeEvent::Event { draft, .. } => draft.body.len() + draft.native.as_ref().map_or(0, Bytes::len),
        RuntimeEvent::Asked { ask, .. } => ask.native.len() + ask.params.get().len(),
        _ => 0,
    }
}

impl OpenCode {
    fn get(&mut self, pending: Pending, path: String, out: &mut Outbox) {
        let session = self.session_of(&pending);
        let id = self.pend(pending);
        out.fetches.push(HttpRequest { session, ..ask::fetch(id, "GET", path, None) });
    }

    fn post(&mut self, pending: Pending, path: String, body: &serde_json::Value, out: &mut Outbox) {
        self.change("POST", pending, path, body, out);
    }

    fn change(
        &mut self,
        method: &'static str,
        pending: Pending,
        path: String,
        body: &serde_json::Value,
        out: &mut Outbox,
    ) {
        let decides = matches!(pending, Pending::Answer { .. } | Pending::Abort(_));
        let session = self.session_of(&pending);
        let id = self.pend(pending);
        let fetch = ask::fetch(id, method, path, Some(body.to_string().into()));
        out.fetches.push(HttpRequest { decides, session, ..fetch });
    }

    /// Returns the session of a request; `None` if it is about everything.
    fn session_of(&self, pending: &Pending) -> Option<NativeId> {
        match pending {
            Pending::Messages(native)
            | Pending::Resume(native)
            | Pending::Servers(native)
            | Pending::AddServer(native)
            | Pending::Permit(native)
            | Pending::Prompt { native, .. }
            | Pending::Abort(native) => Some(native.clone()),
            Pending::Status { only, .. } | Pending::Permissions { only, .. } | Pending::Questions { only, .. } => {
                only.clone()
            }
            Pending::Answer { key, .. } => self.asks.get(key).map(|question| question.native.clone()),
            Pending::Health | Pending::Providers | Pending::List(_) | Pending::Create { .. } | Pending::Call { .. } => {
                None
            }
        }
    }

    fn pend(&mut self, pending: Pending) -> u64 {
        self.next += 1;
        self.pending.insert(self.next, pending);
        self.next
    }

    fn raw(&mut self, frame: &Bytes, native: Option<NativeId>, reason: &str, out: &mut Outbox) {
        let event = RuntimeEvent::Event { native: native.clone(), draft: EventDraft::raw(frame.clone(), reason) };
        match native {
            Some(native) => self.emit(&native, event, out),
            None => out.events.push(event),
        }
    }

    /// Reports an event of a session, now or once it is open and read.
    fn emit(&mut self, native: &NativeId, event: RuntimeEvent, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        if session.live() {
            return out.events.push(event);
        }
        session.queued += weight(&event);
        session.queue.push(event);
        if session.queue.len() > QUEUE_MAX || session.queued > QUEUE_BYTES {
            // The session is read completely when it is opened.
            session.queue.clear();
            session.queued = 0;
            session.progress.connection_lost();
            if session.stage != Stage::Open {
                session.progress = Progress::default();
            }
            self.asks.retain(|_, question| question.native != *native || question.answer.is_some());
        }
    }

    /// Removes a session that is followed elsewhere.
    fn forget(&mut self, native: &NativeId) {
        self.sessions.remove(native);
        self.asks.retain(|_, question| question.native != *native);
    }
}
