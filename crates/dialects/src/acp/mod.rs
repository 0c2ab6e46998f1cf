//! The Agent Client Protocol, version 1, client side. One file: the state of a connection and every message that changes it.
//!
//! Gemini CLI, OpenCode, codex-acp and claude-agent-acp speak it. Schema: <https://agentclientprotocol.com/protocol/v1/schema>. The
//! handshake and signing in are in `initialize`, opening and resuming conversations in `open`, lost connections in `lost`, permission
//! requests in `ask`, forms in `elicitation`, models in `models`, calls of clients in `calls`, files and terminals in `client_tools`.
//!
//! Invariants, each because of what agents do:
//! - A `session/update` passes unchanged: the body of the event is a slice of the frame. Only the replay of a conversation's past is
//!   marked as such, or left out.
//! - Every request that is shown to the user gets one answer, and never a JSON-RPC error (an agent that gets one may never answer again).
//!   A request that cannot be understood is answered `cancelled` at once, and logged.
//! - A request of the agent is never taken for a response to the gateway: both sides count from 0.
//! - The agent gets no files and no terminals unless the configuration of the runtime allows it: requests for them are refused, and logged.

mod ask;
mod calls;
mod client_tools;
#[cfg(test)]
mod client_tools_tests;
mod echo;
mod elicit;
pub mod elicitation;
#[cfg(test)]
mod elicitation_tests;
mod initialize;
mod lost;
mod models;
mod open;
#[cfg(test)]
mod open_tests;
mod own_tools;
mod quirks;
mod reading;
#[cfg(test)]
mod reading_tests;
mod saved_state;
#[cfg(test)]
mod saved_state_tests;
#[cfg(any(test, feature = "test-support"))]
pub(super) mod schema_tests;
#[cfg(test)]
mod tests;
mod tool_calls;
mod usage;
#[cfg(test)]
mod usage_tests;

use std::collections::{HashMap, HashSet};

use agent_client_protocol_schema::v1::CancelNotification;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::held::HeldQuestions;
use super::jsonrpc::{self, BorrowedText, INTERNAL, RpcMessage, object, string};
use super::{
    ClientToolError, ClientToolResult, Dialect, EventDraft, McpServer, Outbox, Phase, RequestKey, RunEnd,
    RuntimeCommand, RuntimeError, RuntimeEvent, ToolCallRef,
};
use ask::PendingRequest;
use client_tools::ClientToolJob;
use initialize::{AgentCapabilities, AuthMethod};
use models::SessionModels;
use open::{DeferredLoad, OpenMethod, PastReplay, PendingOpen};
use plexus_protocol::{Capabilities, Connect, Decision, Kind, NativeId, RunStatus, RuntimeSpec, Serve, Ticket};
use tool_calls::{KnownToolCalls, ToolCallState};

/// The code of ACP for a cancelled request.
const REQUEST_CANCELLED: i64 = -32800;
/// Maximum number of tool calls in progress that are stored as mentioned. Above it all are removed, and a permission
/// request may mention one again.
const SEEN_MAX: usize = 4096;

/// Makes the initial state of a connection.
pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Acp {
        auth_method: spec.auth_method.clone(),
        passed: spec.pass_env.clone(),
        session_meta: spec.session_meta.clone(),
        // Only a program on this machine shares the gateway's files.
        serve: if matches!(spec.connect, Connect::Command(_)) { spec.serve } else { Serve::default() },
        taken_over: false,
        phase: Phase::Hello,
        authenticated: false,
        agent: None,
        capabilities: AgentCapabilities::default(),
        methods: Vec::new(),
        next: 0,
        pending: HashMap::new(),
        asks: HashMap::new(),
        held: HeldQuestions::default(),
        withdrawn: HashMap::new(),
        request_count: 0,
        sessions: HashMap::new(),
        lists: models::ModelLists::default(),
        past: HashMap::new(),
        waiting: Vec::new(),
        jobs: HashMap::new(),
        next_job: 0,
        terminals: HashMap::new(),
        next_terminal: 0,
        writable: HashSet::new(),
        seen: HashSet::new(),
        known: KnownToolCalls::default(),
        echoes: HashMap::new(),
        last: None,
    })
}

/// The code of ACP for an agent that requires `authenticate` first.
const AUTH_REQUIRED: i64 = -32000;

/// The purpose of a request of the gateway.
#[derive(Serialize, Deserialize)]
enum Pending {
    Initialize,
    Authenticate {
        then: Option<PendingOpen>,
    },
    Open {
        #[serde(rename = "wish")]
        opening: PendingOpen,
        by: OpenMethod,
    },
    /// The change of a new conversation out of the mode in which its agent never asks; `opened` is the response that opened it.
    Mode {
        #[serde(rename = "wish")]
        opening: PendingOpen,
        opened: Box<RawValue>,
        mode: String,
    },
    Rejoin {
        native: NativeId,
    },
    Prompt {
        ticket: Ticket,
        native: NativeId,
    },
    Call {
        ticket: Ticket,
        native: Option<NativeId>,
        sets: Option<calls::SettingChange>,
    },
}

/// An open session.
struct Session {
    cwd: String,
    /// MCP servers, named again whenever the session is opened again.
    mcp_servers: Vec<McpServer>,
    models: SessionModels,
}

/// The state of a connection. Everything except the part from the spec is saved: the next gateway, perhaps of another
/// version, continues with the same agent. It ignores unknown members, and missing ones have their defaults.
#[derive(Serialize, Deserialize)]
struct Acp {
    #[serde(skip)]
    auth_method: Option<String>,
    /// The names of the environment variables that are passed to the agent.
    #[serde(skip)]
    passed: Vec<String>,
    #[serde(skip)]
    session_meta: Option<Box<RawValue>>,
    #[serde(skip)]
    serve: Serve,
    /// `true` after the state of another gateway was taken over, until the first wake-up.
    #[serde(skip)]
    taken_over: bool,
    phase: Phase,
    #[serde(default)]
    authenticated: bool,
    agent: Option<String>,
    #[serde(default, rename = "can")]
    capabilities: AgentCapabilities,
    #[serde(default)]
    methods: Vec<AuthMethod>,
    next: u64,
    #[serde(default)]
    pending: HashMap<u64, Pending>,
    #[serde(default)]
    asks: HashMap<RequestKey, PendingRequest>,
    /// Requests above the limit of their session.
    #[serde(default, skip_serializing_if = "HeldQuestions::is_empty")]
    held: HeldQuestions,
    /// Sessions with a run in which a request was withdrawn; `true` if the run was cancelled after that.
    #[serde(default)]
    withdrawn: HashMap<NativeId, bool>,
    /// The number of requests of the agent that were given a key, which is the occurrence of the next one. A request is
    /// counted where it is read, so that the number is the same when the agent's output is read again.
    #[serde(default, rename = "asked")]
    request_count: u64,
    /// The open sessions; saved separately.
    #[serde(skip)]
    sessions: HashMap<NativeId, Session>,
    #[serde(skip)]
    lists: models::ModelLists,
    /// Conversations whose past may still be replayed.
    #[serde(default)]
    past: HashMap<NativeId, PastReplay>,
    /// Conversations that are loaded later.
    #[serde(default)]
    waiting: Vec<DeferredLoad>,
    /// Calls of client tools in progress.
    #[serde(default)]
    jobs: HashMap<u64, ClientToolJob>,
    #[serde(default)]
    next_job: u64,
    /// The agent's terminals, and the session of each.
    #[serde(default)]
    terminals: HashMap<u64, NativeId>,
    #[serde(default)]
    next_terminal: u64,
    /// Sessions in which all writes are allowed.
    #[serde(default)]
    writable: HashSet<NativeId>,
    /// Tool calls in progress that were reported to clients.
    #[serde(default)]
    seen: HashSet<(NativeId, String)>,
    /// The known state of the tool calls in progress.
    #[serde(default, skip_serializing_if = "KnownToolCalls::is_empty")]
    known: KnownToolCalls,
    /// The prompts in progress that the agent may echo.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    echoes: HashMap<NativeId, echo::Echo>,
    /// The session that was named last, so that consecutive events share its memory.
    #[serde(skip)]
    last: Option<NativeId>,
}

/// A `session/update`, parsed in one pass; any other message fails to parse as one and is parsed again as an [`RpcMessage`].
#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
    id: Option<&'a RawValue>,
    method: BorrowedText<'a>,
    params: UpdateParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams<'a> {
    #[serde(borrow)]
    session_id: BorrowedText<'a>,
    update: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    session_update: BorrowedText<'a>,
    tool_call_id: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    title: Option<&'a RawValue>,
}

/// The session that some params name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
}

impl Dialect for Acp {
    fn open(&mut self, out: &mut Outbox) {
        self.hello(out);
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&frame) else {
            return self.raw(&frame, None, "not UTF-8", out);
        };
        let shallow = jsonrpc::shallow(&frame);
        if shallow
            && let Ok(Update { id: None, method: BorrowedText(method), params }) =
                plexus_protocol::object::from_str::<Update<'_>>(text)
            && method == "session/update"
        {
            return self.update(&frame, &params.session_id.0, params.update, out);
        }
        match jsonrpc::read(text) {
            Err(reason) => self.raw(&frame, None, reason, out),
            Ok(message) if shallow => self.message(&frame, message, out),
            Ok(message) => self.too_deep(&frame, message, out),
        }
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        if self.phase != Phase::Ready {
            if let RuntimeCommand::Answer { key, .. } = &command {
                // Nobody receives the answer; the request is closed nevertheless.
                self.asks.remove(key);
            }
            return out.refuse(command, RuntimeError::new(INTERNAL, "the agent is not ready"));
        }
        match command {
            RuntimeCommand::Open { ticket, cwd, resume, mcp_servers } => {
                self.open_session(PendingOpen { ticket, cwd, resume, mcp_servers, instead: None }, out);
            }
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, native, content, out),
            RuntimeCommand::Cancel { native, .. } if self.drop_prompt(&native, out) => {}
            RuntimeCommand::Cancel { native, .. } => {
                if let Some(stopped) = self.withdrawn.get_mut(&native) {
                    *stopped = true;
                }
                self.withdraw_held(&native, out);
                out.frames.push(jsonrpc::notify("session/cancel", &CancelNotification::new(native.to_string())));
            }
            RuntimeCommand::Answer { key, decision } => {
                let native = self.asks.get(&key).and_then(PendingRequest::native).cloned();
                if let Some(native) = native.filter(|native| decision == Decision::Withdrawn && self.prompted(native)) {
                    self.withdrawn.insert(native, false);
                }
                self.answer(&key, &decision, out);
                // A withdrawal is followed by the end of the run, which also withdraws the others.
                if decision != Decision::Withdrawn {
                    self.open_held(out);
                }
            }
            RuntimeCommand::Call { ticket, native, method, params, notify } => {
                self.call(ticket, native, &method, params.as_deref(), notify, out);
            }
        }
    }

    fn lost(&mut self, reason: &str, out: &mut Outbox) {
        self.disconnected(reason, out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        if std::mem::take(&mut self.taken_over) {
            self.give_up_jobs(out);
        }
        self.tick(out);
    }

    fn done(&mut self, id: u64, done: Result<ClientToolResult, ClientToolError>, out: &mut Outbox) {
        self.worked(id, done, out);
    }

    fn save(&self) -> Option<Vec<u8>> {
        saved_state::save(self)
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        let Some(state) = saved_state::restore(saved) else { return false };
        let (auth_method, session_meta) = (self.auth_method.take(), self.session_meta.take());
        let passed = std::mem::take(&mut self.passed);
        *self = Self { auth_method, passed, session_meta, serve: self.serve, taken_over: true, ..state };
        true
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.capabilities()
    }

    fn fixed_folder(&self) -> bool {
        quirks::fixed_folder(self.agent.as_deref())
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.asks.keys().cloned().collect()
    }

    fn held(&self) -> usize {
        self.held.bytes()
    }

    fn prompts(&self) -> Vec<Ticket> {
        let sent = self.pending.values().filter_map(|pending| match pending {
            Pending::Prompt { ticket, .. } => Some(*ticket),
            _ => None,
        });
        sent.chain(self.past.values().filter_map(PastReplay::held)).collect()
    }
}

/// Makes an error event.
fn error_event(code: &str, message: &str, frame: Option<Bytes>) -> EventDraft {
    EventDraft::error(code, message, frame.as_ref())
}

impl Acp {
    fn request(&mut self, pending: Pending, method: &str, params: &impl Serialize, out: &mut Outbox) {
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, pending);
        out.frames.push(jsonrpc::call(Some(&id), method, params));
    }

    /// Returns whether a prompt of the session has no reply yet.
    pub(super) fn prompted(&self, native: &NativeId) -> bool {
        self.pending.values().any(|pending| matches!(pending, Pending::Prompt { native: at, .. } if at == native))
    }

    /// Returns a key for a request of the agent that was just read, different from that of every earlier one with the same id.
    fn key(&mut self, id: &str) -> RequestKey {
        self.request_count += 1;
        RequestKey::nth(id, self.request_count)
    }

    /// Returns the session with this name; it shares memory with the last one named.
    fn native(&mut self, session: &str) -> NativeId {
        match &self.last {
            Some(last) if last.as_str() == session => last.clone(),
            _ => self.last.insert(session.into()).clone(),
        }
    }

    fn named(&mut self, params: Option<&RawValue>) -> Option<NativeId> {
        let Named { session_id } = object(params?)?;
        let session = string(session_id?)?;
        Some(self.native(&session))
    }

    fn raw(&mut self, frame: &Bytes, native: Option<NativeId>, reason: &str, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Event { native, draft: EventDraft::raw(frame.clone(), reason) });
    }

    fn see(&mut self, native: &NativeId, tool: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert((native.clone(), tool.to_owned()))
    }

    /// Records that a tool call is in progress, or has ended.
    fn follow(&mut self, native: &NativeId, tool: &str, ended: bool) {
        if ended {
            self.seen.remove(&(native.clone(), tool.to_owned()));
        } else {
            self.see(native, tool);
        }
    }

    fn update(&mut self, frame: &Bytes, session: &str, update: &RawValue, out: &mut Outbox) {
        let native = self.native(session);
        let Some(head) = object::<Head<'_>>(update) else {
            return self.raw(frame, Some(native), "a session update without a type", out);
        };
        // The gateway's own kinds are not updates: an agent must not be able to report that a request was resolved.
        let Some(kind) = Kind::from_name(&head.session_update.0).filter(|kind| kind.is_acp()) else {
            return self.raw(frame, Some(native), "unknown session update", out);
        };
        let Some(replayed) = self.is_past(&native, kind) else { return };
        let (mut tool, mut title, mut news) = (None, None, None);
        match kind {
            Kind::ToolCall | Kind::ToolCallUpdate => {
                let Some(id) = head.tool_call_id.and_then(string) else {
                    return self.raw(frame, Some(native), "a tool call without an identifier", out);
                };
                let ended = matches!(head.status.and_then(string).as_deref(), Some("completed" | "failed"));
                self.follow(&native, &id, ended);
                if ended || replayed {
                    self.known.remove(&native, &id);
                } else if let Some(update) = ToolCallState::read(frame, update) {
                    news = Some((native.clone(), id.to_string(), update));
                }
                tool = Some(ToolCallRef::new(id.into_owned(), ended));
            }
            Kind::SessionInfoUpdate => title = head.title.and_then(string).map(std::borrow::Cow::into_owned),
            Kind::ConfigOptionUpdate => {
                if let Some(session) = self.sessions.get_mut(&native) {
                    session.models.options_changed(update);
                    self.lists.share(&mut session.models);
                }
            }
            _ => {}
        }
        let body = match kind {
            _ if replayed => open::marked(update),
            Kind::UserMessageChunk => match self.chunk_body(frame, &native, update) {
                Some(body) => body,
                None => return,
            },
            _ => jsonrpc::slice(frame, update),
        };
        let draft = EventDraft { kind, body, native: Some(frame.clone()), tool, title };
        let spent = match kind {
            Kind::UsageUpdate => usage::update_report(update),
            Kind::AgentMessageChunk if !replayed && quirks::spends_in_chunks(self.agent.as_deref()) => {
                usage::chunk_report(update)
            }
            _ => None,
        };
        out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
        out.events.extend(spent.map(|report| RuntimeEvent::Spent { native, report }));
        if let Some((native, tool, update)) = news {
            self.known.record(&native, &tool, update);
            self.report_again(frame, &native, &tool, out);
        }
    }

    fn message(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        match message {
            RpcMessage::Request { id, method, params } => match method.as_ref() {
                "session/request_permission" => self.permission(frame, id, params, out),
                "elicitation/create" => self.elicitation(frame, id, params, out),
                method if self.serves(method) => self.serve(frame, (id, method, params), out),
                _ => {
                    let native = self.named(params);
                    self.raw(frame, native, "an unsupported request: refused", out);
                    out.frames.push(client_tools::unsupported(id.get(), &method));
                }
            },
            RpcMessage::Notification { method, params } => match method.as_ref() {
                "$/cancel_request" => self.taken_back(frame, params, out),
                "elicitation/complete" => self.page_done(frame, params, out),
                method if quirks::repeats(self.agent.as_deref(), method, params) => {}
                _ => {
                    let native = self.named(params);
                    self.raw(frame, native, "unknown notification", out);
                }
            },
            RpcMessage::Response { id, reply } => match self.take_pending(id) {
                Some(pending) => self.reply(frame, pending, reply, out),
                None => self.raw(frame, None, "a response to an unknown request", out),
            },
        }
    }

    /// Takes the gateway's pending request with this id: such ids are integers, written without a decimal point.
    fn take_pending(&mut self, id: &RawValue) -> Option<Pending> {
        self.pending.remove(&id.get().parse::<u64>().ok()?)
    }

    /// Answers or ends a message that is nested too deep to be forwarded, so that nobody waits for it.
    fn too_deep(&mut self, frame: &Bytes, message: RpcMessage<'_>, out: &mut Outbox) {
        self.raw(frame, None, "nested too deeply", out);
        match message {
            RpcMessage::Request { id, method, .. } => out.frames.push(
                ask::withdrawn(id.get(), &method).unwrap_or_else(|| client_tools::unsupported(id.get(), &method)),
            ),
            RpcMessage::Response { id, .. } => {
                if let Some(pending) = self.take_pending(id) {
                    let fault = RuntimeError::new(INTERNAL, "the agent's response is nested too deeply");
                    self.reply(frame, pending, Err(fault), out);
                }
            }
            RpcMessage::Notification { .. } => {}
        }
    }

    fn reply(&mut self, frame: &Bytes, pending: Pending, reply: Result<&RawValue, RuntimeError>, out: &mut Outbox) {
        match (pending, reply) {
            (Pending::Initialize, reply) => self.initialized(reply, out),
            (Pending::Authenticate { then }, reply) => self.signed_in(then, reply, out),
            (Pending::Open { opening, by }, Ok(result)) => self.opened(frame, opening, by, result, out),
            (Pending::Mode { opening, opened, mode }, reply) => {
                self.mode_set(frame, opening, &opened, mode, reply, out)
            }
            (Pending::Rejoin { native }, reply) => self.rejoined(frame, native, reply, out),
            (Pending::Open { opening, by }, Err(fault)) => self.not_opened(frame, opening, by, fault, out),
            (Pending::Prompt { ticket, native }, Ok(result)) => {
                self.echoes.remove(&native);
                self.seen.retain(|(session, _)| *session != native);
                self.known.turn_over(&native);
                let stopped = self.withdrawn.remove(&native).unwrap_or_default();
                if let Some(report) = usage::turn_report(self.agent.as_deref(), result) {
                    out.events.push(RuntimeEvent::Spent { native: native.clone(), report });
                }
                let end = ended(result, frame, stopped);
                self.withdraw_held(&native, out);
                out.events.push(RuntimeEvent::Ended { native, ticket, end });
            }
            (Pending::Prompt { ticket, native }, Err(mut fault)) => {
                self.withdrawn.remove(&native);
                self.echoes.remove(&native);
                self.seen.retain(|(session, _)| *session != native);
                self.known.turn_over(&native);
                if fault.code == AUTH_REQUIRED {
                    let message = self.sign_in_message(&fault);
                    fault = RuntimeError::new(fault.code, message);
                }
                let cancelled = fault.code == REQUEST_CANCELLED;
                let mut end = RunEnd { native: Some(frame.clone()), ..RunEnd::failed(fault.full_message()) };
                if cancelled {
                    end.status = RunStatus::Cancelled;
                }
                self.withdraw_held(&native, out);
                out.events.push(RuntimeEvent::Ended { native, ticket, end });
            }
            (Pending::Call { ticket, native, sets }, reply) => self.called(frame, ticket, native, sets, reply, out),
        }
    }
}

/// Returns the end of a run, from the response to `session/prompt`. `stopped`: the run was cancelled with a request
/// open. Some agents end the turn on the answer `cancelled` before they read `session/cancel`, and report an ordinary
/// end.
fn ended(result: &RawValue, frame: &Bytes, stopped: bool) -> RunEnd {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        #[serde(borrow)]
        stop_reason: Option<&'a RawValue>,
    }
    let reason = object::<Result<'_>>(result).and_then(|result| result.stop_reason).and_then(string);
    let status = match reason.as_deref() {
        Some("cancelled") => RunStatus::Cancelled,
        Some("end_turn") if stopped => RunStatus::Cancelled,
        _ => RunStatus::Completed,
    };
    let stop_reason = reason.map(std::borrow::Cow::into_owned);
    RunEnd { status, stop_reason, message: None, native: Some(frame.clone()) }
}
