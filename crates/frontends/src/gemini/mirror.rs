//! The Gemini UI mirror (`--ui-port`) as a server, for any runtime. One file: the eight events, and the state of the screen from which
//! they are made.
//!
//! A Gemini UI displays one conversation, and so does the mirror: of the runtime's sessions the one on the [`Screen`]. At first that is
//! [`current`], the one last opened or prompted; from then on the mirror follows every beginning run. Each message is
//! `{"type":T,"data":D}` and a NUL byte in a text frame. The protocol has no replay, no input and no messages for thoughts, plans, modes,
//! usage and errors: a new client gets the events from now on, and the questions that are on the screen; earlier messages are in the
//! remote control's `/history`; text that a client sends is read and ignored.
//!
//! An extension of the specification, on request: `/?after=CURSOR` (empty: the oldest stored event) begins after a cursor, and then
//! messages carry theirs as a third member, `cursor`.

// Every kind of event is handled explicitly, so that a new one does not compile before it is.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::PortState;
use plexus_auth::{Caller, Denied, Right};
use plexus_ledger::Charge;
use plexus_metrics::Subscriber;
use plexus_protocol::api::devices::{Grant, Target};
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::transcript::{
    ChunkTarget, Content, EntryBody, EntryKind, MessageKey, MessageTracker, NoteKind, Outcome, Role, ToolCall,
    ToolContent,
};
use plexus_protocol::{
    Cursor, Event, Kind, Offer, Position, Request, RequestId, RunId, RuntimeId, Scope, SessionId, SessionInfo,
    SessionState,
};
use plexus_router::follow::FollowLog;
use plexus_router::frames::ws_text;
use plexus_router::guard::Call;
use plexus_router::socket_protocol::{Reply, SocketProtocol};
use plexus_router::ws;
use plexus_router::{Core, Problem};
use plexus_sessions::{Directory, Filter, StartAfter, initial_run_id};
use plexus_store::ReadLimit;

/// Maximum number of questions whose options are remembered for the answers; for further ones the answer is sent as the option's
/// identifier.
const DIALOGS: usize = 256;
/// Maximum number of tool calls of one run that are remembered for the questions about them.
const TOOLS: usize = 256;
/// Maximum number of waiting prompts that were sent; a further one is sent when it begins.
const EARLY_MAX: usize = 256;
/// Maximum size of the collected pieces of a user's message, in bytes; a longer one is sent in several messages.
const USER_MAX: usize = 32 << 20;

/// Returns the session that a Gemini UI for this runtime would display: of the live sessions in which the caller may do `S`, the one last
/// opened or prompted.
pub(super) fn current<S: Right>(state: &Core, runtime: &RuntimeId, caller: &Caller) -> Option<Arc<SessionInfo>> {
    let mut alive = state.directory.sessions();
    alive.retain(|session| {
        session.runtime_id == *runtime
            && session.state != SessionState::Exited
            && caller.device().grant.covers(S::SCOPE, Target::Session(&session.session_id, runtime))
    });
    alive.into_iter().max_by_key(|session| {
        (session.prompted_at.unwrap_or_default().max(session.created_at), session.session_id.clone())
    })
}

/// Responds to the handshake and mirrors from then on.
///
/// # Errors
/// 400 for an invalid query (a token is not allowed in one); 403; 410 for a cursor that cannot be resumed.
pub(super) async fn serve(port: PortState, call: Call) -> Result<Response, Problem> {
    let caller = call.caller()?.clone();
    let PortState { core: state, runtime } = port;
    if state.directory.runtime(&runtime).is_none() {
        let message =
            "the runtime of this port was deleted; this port is empty until a runtime with its name exists again";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message).retry_after(1));
    }
    let grant = &caller.device().grant;
    if grant.runtimes.as_ref().is_some_and(|some| !some.contains(&runtime)) {
        return Err(Denied { scope: Scope::Watch, device: caller.device().name.clone() }.into());
    }
    let only = Grant {
        runtimes: Some(vec![runtime.clone()]),
        sessions: grant.sessions.clone(),
        ..Grant::new(&[Scope::Watch])
    };
    let filter = Filter { sessions: None, grant: Some(Arc::new(only)) };
    let log = state.directory.log().clone();
    let after = after(call.parts.uri.query())?;
    let mut screen = Screen { charge: Some(state.account(&caller).nothing()), ..Screen::default() };
    let position = match &after {
        None => {
            let head = log.head();
            if let Some(session) = current::<plexus_auth::Watch>(&state, &runtime, &caller) {
                screen.running.clone_from(&session.run_id);
                let only = Filter::session(session.session_id.clone());
                screen.waiting = state.directory.requests().open(&only);
                screen.session = Some(session.session_id.clone());
            }
            head
        }
        Some(after) => {
            let attach = log.attach(&filter, after);
            if attach.resume != ResumeVerdict::Ok {
                let oldest = log.cursor(attach.oldest);
                let message = format!(
                    "some events after this cursor are no longer stored ({}): start at `oldest`, or without a cursor",
                    attach.resume.as_str()
                );
                return Err(Problem::new(StatusCode::GONE, "cursor_gone", message)
                    .with(ProblemMembers { oldest: Some(oldest), ..ProblemMembers::default() }));
            }
            if let StartAfter::Cursor(_) = after
                && let Some(before) = attach.after.0.checked_sub(1)
            {
                // The last event that the client received determines its screen.
                let one = ReadLimit { events: 1, bytes: 1 };
                let page = log.read(&filter, Position(before), one).await?;
                if let Some(event) = page.events.first().filter(|event| event.position == attach.after) {
                    screen.restore(event);
                }
            }
            attach.after
        }
    };
    let follow = FollowLog::new(&log, filter, position, Subscriber::Mirror);
    let out = Out { frames: Vec::new(), cursors: after.is_some().then(|| log.cursor(position)) };
    let directory = state.directory.clone();
    Ok(ws::upgrade(state, caller, call.parts, Mirror { directory, runtime, follow, screen, out }))
}

/// Returns the start that the client requests, if any. The query must not contain anything else.
fn after(query: Option<&str>) -> Result<Option<StartAfter>, Problem> {
    let mut after = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match (&*name, &*value) {
            ("after", "") => after = Some(StartAfter::Oldest),
            ("after", "now") => after = Some(StartAfter::Now),
            ("after", text) => after = Some(text.parse().map(StartAfter::Cursor).map_err(Problem::bad_cursor)?),
            _ => {
                let message = "the mirror's query accepts only `after`; send a token in the Authorization header, or \
                    as a subprotocol of the handshake";
                return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", message));
            }
        }
    }
    Ok(after)
}

/// A client of the mirror.
struct Mirror {
    directory: Directory,
    runtime: RuntimeId,
    follow: FollowLog,
    screen: Screen,
    out: Out,
}

impl SocketProtocol for Mirror {
    /// Ignores the message, because the mirror has no input.
    fn message(&mut self, _text: &str) -> Option<Reply> {
        None
    }

    fn initialized(&self) -> bool {
        true
    }

    fn close_reason(&self) -> Option<&'static str> {
        self.directory.runtime(&self.runtime).is_none().then_some("the runtime was deleted")
    }

    fn next_frames(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async {
            loop {
                self.screen.send_open_dialogs(&mut self.out);
                // There is no await between reading a page and sending it.
                let page = if self.screen.user.is_some() {
                    // A user's message is one entry of the log, but a page may end in the middle of one.
                    self.follow.more().await
                } else if self.out.frames.is_empty() {
                    Some(self.follow.page().await)
                } else {
                    return Some(std::mem::take(&mut self.out.frames));
                };
                match page {
                    Some(page) => {
                        for event in &page.events {
                            self.screen.event(event, &mut self.out);
                            self.send_waiting(event);
                        }
                    }
                    None => self.screen.flush_user_message(&mut self.out),
                }
            }
        })
    }

    fn cursor(&self) -> Option<Cursor> {
        Some(self.follow.cursor())
    }
}

impl Mirror {
    /// Sends a waiting prompt at once. A client that resumes with its cursor gets it in the order of the log alone, or it would be sent
    /// twice.
    fn send_waiting(&mut self, event: &Event) {
        if event.kind != Kind::RunStatus || self.out.cursors.is_some() || !self.screen.shows(event) {
            return;
        }
        // A prompt that has begun meanwhile is sent at its position.
        let waiting = self.directory.waiting(&event.origin.session_id);
        if let Some((_, prompt)) = waiting.iter().find(|(run, _)| *run == event.run_id) {
            self.screen.send_early(&event.run_id, &typed(prompt), &mut self.out);
        }
    }
}

/// Returns a prompt in the form in which a user would have typed it at a Gemini UI.
pub(super) fn typed(prompt: &[Box<RawValue>]) -> String {
    let blocks = prompt.iter().filter_map(|block| serde_json::from_str(block.get()).ok());
    blocks.map(|block| typed_content(Content::read(block))).collect::<Vec<_>>().join("\n")
}

/// Returns one block of a prompt as text.
fn typed_content(content: Content) -> String {
    match content {
        Content::Text(text) => text,
        Content::Block(block) => typed_block(&block),
    }
}

fn typed_block(block: &Value) -> String {
    match block["uri"].as_str() {
        Some(uri) => format!("@{}", uri.strip_prefix("file://").unwrap_or(uri)),
        None => format!("[{}]", block["type"].as_str().unwrap_or_default()),
    }
}

/// The whole frames that were not sent yet.
struct Out {
    frames: Vec<u8>,
    /// The position up to which messages were sent, if the client requested cursors.
    cursors: Option<Cursor>,
}

#[derive(Serialize)]
struct Message<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    data: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a Cursor>,
}

impl Out {
    /// Appends a message about the event at `at`: a client that resumes after it does not get it again. Without `at` it belongs to
    /// another message.
    fn send<T: Serialize>(&mut self, at: Option<Position>, kind: &'static str, data: &T) {
        if let (Some(cursor), Some(at)) = (&mut self.cursors, at) {
            cursor.position = at;
        }
        let mut json = Vec::with_capacity(128);
        // Writing to memory and serializing these types cannot fail.
        if serde_json::to_writer(&mut json, &Message { kind, data, cursor: self.cursors.as_ref() }).is_ok() {
            json.push(0);
            ws_text(&mut self.frames, &json);
        }
    }
}

/// The data of `user_message` and `model_output`.
#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct ToolStart<'a> {
    #[serde(rename = "callId")]
    id: &'a str,
    name: &'a str,
    args: Args<'a>,
}

/// A tool's arguments in the agent's form; an empty object if they are unknown.
struct Args<'a>(Option<&'a RawValue>);

impl Serialize for Args<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(raw) => raw.serialize(to),
            None => Empty {}.serialize(to),
        }
    }
}

#[derive(Serialize)]
struct ToolOutput<'a> {
    #[serde(rename = "callId")]
    id: &'a str,
    output: Output<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Other(&'a RawValue),
}

/// The data of `idle`.
#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Dialog<'a> {
    id: &'a RequestId,
    #[serde(rename = "type")]
    kind: &'a str,
    options: Vec<&'a str>,
}

#[derive(Serialize)]
struct Selection<'a> {
    id: &'a RequestId,
    selection: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hook<'a> {
    hook_name: &'a str,
    event_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
}

/// The mirrored screen: the part of the past on which the text of the next event depends.
#[derive(Default)]
struct Screen {
    /// The displayed session; the first with an event, if `None`.
    session: Option<SessionId>,
    /// The current run, whose end is the next `idle`.
    running: Option<RunId>,
    tracker: MessageTracker,
    /// A user's message so far, and its position: it arrives in pieces, and the mirror sends it whole.
    user: Option<(String, Position)>,
    /// The charge for that message, if an account is charged.
    charge: Option<Charge>,
    /// The ACP kinds of the session's tool calls.
    tools: BTreeMap<String, String>,
    /// The questions: identifiers and labels of their options.
    dialogs: BTreeMap<RequestId, Vec<(String, String)>>,
    /// Questions that were not sent to a new client.
    waiting: Vec<Arc<Request>>,
    /// Runs whose prompt was sent while it waited.
    sent_early: BTreeSet<RunId>,
}

/// Reads an event's body as the transcript does.
fn entry(event: &Event) -> EntryBody {
    EntryBody::read(event.kind, serde_json::from_slice(&event.body).unwrap_or_default())
}

impl Screen {
    /// Sends a new client the questions that are on the screen.
    fn send_open_dialogs(&mut self, out: &mut Out) {
        for request in std::mem::take(&mut self.waiting) {
            self.dialog(&request, None, out);
        }
    }

    /// Returns whether the event is of the displayed session.
    fn shows(&self, event: &Event) -> bool {
        self.session.as_ref() == Some(&event.origin.session_id)
    }

    /// Sends a waiting prompt, once.
    fn send_early(&mut self, run: &RunId, text: &str, out: &mut Out) {
        if self.sent_early.len() < EARLY_MAX && self.sent_early.insert(run.clone()) {
            out.send(None, "user_message", &Text { text });
        }
    }

    /// Restores the state of a client that resumes.
    fn restore(&mut self, event: &Event) {
        self.session = Some(event.origin.session_id.clone());
        let ended = event.kind == Kind::RunEnded || event.run_id == initial_run_id(&event.origin);
        self.running = (!ended).then(|| event.run_id.clone());
    }

    /// Handles the next event of the runtime's sessions.
    fn event(&mut self, event: &Event, out: &mut Out) {
        if self.session.as_ref() != Some(&event.origin.session_id) {
            if self.session.is_some() && event.kind != Kind::RunStarted {
                return;
            }
            // A user turned to another conversation. The previous one is no longer on the screen.
            self.flush_user_message(out);
            if self.running.take().is_some() {
                out.send(None, "idle", &Empty {});
            }
            let (session, charge) = (Some(event.origin.session_id.clone()), self.charge.take());
            *self = Self { session, charge, ..Self::default() };
        }
        let kind = EntryKind::from_kind(event.kind);
        if kind != EntryKind::Message(Role::User) {
            self.flush_user_message(out);
        }
        let at = Some(event.position);
        match kind {
            EntryKind::RunStarted => self.running = Some(event.run_id.clone()),
            EntryKind::Message(Role::User) if self.sent_early.contains(&event.run_id) => {}
            EntryKind::Message(Role::User) => self.user(event, out),
            EntryKind::Message(Role::Agent) => {
                if let EntryBody::Message { content: Content::Text(text), .. } = entry(event)
                    && !text.is_empty()
                {
                    out.send(at, "model_output", &Text { text: &text });
                    self.idle_between_runs(event, out);
                }
            }
            EntryKind::Tool => self.tool(event, out),
            // A run that was cancelled in the queue never kept the screen busy.
            EntryKind::RunEnded if self.running.as_ref() != Some(&event.run_id) => {
                self.sent_early.remove(&event.run_id);
            }
            EntryKind::RunEnded => {
                self.sent_early.remove(&event.run_id);
                self.running = None;
                self.tools.clear();
                out.send(at, "idle", &Empty {});
            }
            EntryKind::RequestOpened => {
                if let Ok(request) = serde_json::from_slice::<Request>(&event.body)
                    && !self.dialogs.contains_key(&request.request_id)
                {
                    self.dialog(&request, at, out);
                }
            }
            // The same dialog again, in its current form.
            EntryKind::RequestUpdated => {
                if let Ok(request) = serde_json::from_slice::<Request>(&event.body)
                    && self.dialogs.remove(&request.request_id).is_some()
                {
                    self.dialog(&request, at, out);
                }
            }
            EntryKind::RequestResolved => self.resolved(event, out),
            EntryKind::Note(NoteKind::Hook) => hook(event, out),
            // The protocol has no message for these.
            EntryKind::Message(Role::Thought)
            | EntryKind::Plan
            | EntryKind::Latest(_)
            | EntryKind::RunStatus
            | EntryKind::Surface
            | EntryKind::Note(
                NoteKind::Runtime
                | NoteKind::ClientJoined
                | NoteKind::ClientLeft
                | NoteKind::ClientServed
                | NoteKind::Error
                | NoteKind::Raw
                | NoteKind::Malformed(_),
            ) => {}
        }
    }

    /// Ends a message outside of runs (an agent's late message, a replayed past), which has no other end.
    fn idle_between_runs(&self, event: &Event, out: &mut Out) {
        if self.running.is_none() && event.run_id == initial_run_id(&event.origin) {
            out.send(None, "idle", &Empty {});
        }
    }

    fn user(&mut self, event: &Event, out: &mut Out) {
        let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
        // The gateway's own pieces are the blocks of a prompt; an agent's are pieces of one text.
        let block = !body["_meta"]["plexus"].is_null();
        let EntryBody::Message { role, id, parent, content } = EntryBody::read(event.kind, body) else { return };
        let key = MessageKey::new(role, event.run_id.as_str(), id.as_deref(), parent.as_deref());
        if !matches!(self.tracker.chunk(&key, event.position), ChunkTarget::Current(_)) {
            self.flush_user_message(out);
        }
        let piece = typed_content(content);
        let whole = self.user.as_ref().map_or(0, |(text, _)| text.len()) + piece.len();
        let is_charged = self.charge.as_mut().is_none_or(|charge| charge.resize(whole).is_ok());
        if self.user.is_some() && (whole > USER_MAX || !is_charged) {
            self.flush_user_message(out);
        }
        match &mut self.user {
            Some((text, at)) => {
                if block {
                    text.push('\n');
                }
                text.push_str(&piece);
                *at = event.position;
            }
            None => self.user = Some((piece, event.position)),
        }
        // If the first piece cannot be charged, the message does not wait for the others.
        let bytes = self.user.as_ref().map_or(0, |(text, _)| text.len());
        if self.charge.as_mut().is_some_and(|charge| charge.resize(bytes).is_err()) {
            self.flush_user_message(out);
        }
        if self.running.is_none() && event.run_id == initial_run_id(&event.origin) {
            self.flush_user_message(out);
            out.send(None, "idle", &Empty {});
        }
    }

    /// Sends a user's message, of which all pieces have arrived.
    fn flush_user_message(&mut self, out: &mut Out) {
        if let Some((text, at)) = self.user.take() {
            out.send(Some(at), "user_message", &Text { text: &text });
        }
        if let Some(charge) = &mut self.charge {
            // Reducing a charge always succeeds.
            let _ = charge.resize(0);
        }
    }

    fn tool(&mut self, event: &Event, out: &mut Out) {
        /// The parts that are passed on as the agent wrote them.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Verbatim<'a> {
            #[serde(borrow, default)]
            raw_input: Option<&'a RawValue>,
            #[serde(borrow, default)]
            raw_output: Option<&'a RawValue>,
        }
        let Ok(verbatim) = serde_json::from_slice::<Verbatim<'_>>(&event.body) else { return };
        let EntryBody::Tool { id, update, .. } = entry(event) else { return };
        let mut call = ToolCall::default();
        call.update(update);
        if !call.kind().is_empty() && (self.tools.len() < TOOLS || self.tools.contains_key(&id)) {
            self.tools.insert(id.clone(), call.kind().to_owned());
        }
        let ended = call.is_finished();
        let at = Some(event.position);
        if event.kind == Kind::ToolCall {
            let name = [call.title(), call.kind()].into_iter().find(|name| !name.is_empty()).unwrap_or("tool");
            let args = Args(verbatim.raw_input.filter(|args| args.get() != "null"));
            out.send(at.filter(|_| !ended), "tool_call", &ToolStart { id: &id, name, args });
        }
        if ended {
            out.send(at, "tool_output", &ToolOutput { id: &id, output: output(&call, verbatim.raw_output) });
        }
        if ended || event.kind == Kind::ToolCall {
            self.idle_between_runs(event, out);
        }
    }

    fn dialog(&mut self, request: &Request, at: Option<Position>, out: &mut Out) {
        let offers = labels(request);
        let kind = dialog_type(request, &self.tools);
        let options = offers.iter().map(|(_, label)| label.as_str()).collect();
        out.send(at, "permission_dialog", &Dialog { id: &request.request_id, kind: &kind, options });
        if self.dialogs.len() < DIALOGS {
            self.dialogs.insert(request.request_id.clone(), offers);
        }
    }

    fn resolved(&mut self, event: &Event, out: &mut Out) {
        let outcome = Outcome::read(&serde_json::from_slice(&event.body).unwrap_or_default());
        let Ok(id) = outcome.request_id.parse::<RequestId>() else { return };
        let offers = self.dialogs.remove(&id).unwrap_or_default();
        let label = |id: &String| {
            let known = offers.iter().find(|(other, _)| other == id);
            known.map_or_else(|| id.clone(), |(_, label)| label.clone())
        };
        let selection = match &outcome.option {
            Some(option) => label(option),
            None if !outcome.items.is_empty() => outcome.items.iter().map(label).collect::<Vec<_>>().join(", "),
            // Nobody chose, or the typed text is not one of the options: the state is sent instead.
            None => outcome.decided.state().to_owned(),
        };
        out.send(Some(event.position), "permission_selection", &Selection { id: &id, selection: &selection });
    }
}

/// Returns the output of a tool: its own text, else the text in its content, else any output.
fn output<'a>(call: &ToolCall, raw: Option<&'a RawValue>) -> Output<'a> {
    if let Some(text) = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        return Output::Text(text);
    }
    let lines = call.content().filter_map(|content| match content {
        ToolContent::Text(text) => Some(text.to_owned()),
        ToolContent::Block(block) => Some(typed_block(block)),
        ToolContent::Diff { path, .. } => Some(path.to_owned()),
        ToolContent::Other(entry) => entry["content"]["text"].as_str().or(entry["path"].as_str()).map(str::to_owned),
        ToolContent::Terminal(_) => None,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match raw.filter(|raw| raw.get() != "null") {
        Some(raw) if text.is_empty() => Output::Other(raw),
        _ => Output::Text(text),
    }
}

/// Returns identifiers and labels of the options. A label that occurs twice is extended by its identifier.
fn labels(request: &Request) -> Vec<(String, String)> {
    let offers = request.options.iter().map(|Offer { id, label, .. }| (id, label));
    let items = request.items.iter().map(|item| (&item.id, &item.label));
    let mut all: Vec<(String, String)> = Vec::new();
    for (id, label) in offers.chain(items) {
        let twice = all.iter().any(|(_, other)| other == label);
        all.push((id.clone(), if twice { format!("{label} ({id})") } else { label.clone() }));
    }
    all
}

/// Returns the subject of a question, in the mirror's terms, by the tool call that waits for it: `command_run` or `file_access`. Any
/// other has the request's own type.
fn dialog_type<'a>(request: &'a Request, tools: &BTreeMap<String, String>) -> Cow<'a, str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Native<'a> {
        #[serde(borrow, default)]
        tool_call: Option<Kinded<'a>>,
        #[serde(rename = "type", borrow, default)]
        kind: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Kinded<'a> {
        #[serde(borrow, default)]
        kind: Option<Cow<'a, str>>,
    }
    let native = request.native.as_ref().and_then(|raw| serde_json::from_str::<Native<'_>>(raw.get()).ok());
    let (call, own) = native.map_or((None, None), |native| (native.tool_call.and_then(|call| call.kind), native.kind));
    let known = request.tool_call_id.as_ref().and_then(|id| tools.get(id)).map(String::as_str);
    match (call.as_deref().or(known), own.as_deref()) {
        (Some("execute"), _) | (None, Some("command_run")) => "command_run".into(),
        (Some("read" | "edit" | "delete" | "move"), _) | (None, Some("file_access")) => "file_access".into(),
        _ => serde_json::to_value(request.kind)
            .ok()
            .and_then(|word| word.as_str().map(ToOwned::to_owned))
            .map_or("permission".into(), Cow::Owned),
    }
}

/// Sends a `hook`: as a Gemini UI sent it, or in its form if the agent names a hook of its own that begins or ends. The protocol has no
/// message for the gateway's other reports of hooks.
fn hook(event: &Event, out: &mut Out) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct HookBody<'a> {
        #[serde(borrow, default)]
        hook_name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        event_name: Option<Cow<'a, str>>,
        #[serde(default)]
        success: Option<bool>,
        #[serde(rename = "type", borrow, default)]
        kind: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        params: Option<Params<'a>>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default)]
        run: Option<Run<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Run<'a> {
        #[serde(borrow, default)]
        event_name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        status: Option<Cow<'a, str>>,
    }
    let Ok(body) = serde_json::from_slice::<HookBody<'_>>(&event.body) else { return };
    let (name, event_name, failed) = match (body.hook_name, body.event_name, body.kind.as_deref()) {
        (Some(name), Some(event_name), _) => (name, event_name, false),
        (None, None, Some(kind)) => {
            let Some(("hook", moment)) = kind.split_once('/') else { return };
            let run = body.params.and_then(|params| params.run);
            let failed = run.as_ref().and_then(|run| run.status.as_deref()).is_some_and(|status| status != "completed");
            let ends = matches!(moment, "completed" | "ended" | "finished" | "end");
            let name = run.and_then(|run| run.event_name).unwrap_or_else(|| kind.to_owned().into());
            (name, if ends { "hook_end" } else { "hook_start" }.into(), failed)
        }
        _ => return,
    };
    // Only the end of a hook has an outcome.
    let success = (event_name == "hook_end").then(|| body.success.unwrap_or(!failed));
    out.send(Some(event.position), "hook", &Hook { hook_name: &name, event_name: &event_name, success });
}

#[cfg(test)]
mod tests;
