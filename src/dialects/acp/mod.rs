//! The Agent Client Protocol, version 1, client side. One file: a connection's state and every message that changes it.
//!
//! Gemini CLI, OpenCode, codex-acp and claude-agent-acp speak it. Schema:
//! <https://agentclientprotocol.com/protocol/v1/schema>. Questions are read in `ask`, models in `models`, clients' own
//! calls in `calls`.
//!
//! What it holds to, because agents are as they are:
//! - A `session/update` passes as it came: the event's body is a part of the frame.
//! - Every question that is put to people gets one answer, and never a JSON-RPC error (an agent that gets one may never
//!   answer again). A question that cannot be understood is answered `cancelled` at once, and logged.
//! - An agent's request is never taken for an answer to ours: both sides count from 0.
//! - The agent gets no files and no terminals: both are refused, and logged.

mod ask;
mod calls;
mod models;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::jsonrpc::{self, INTERNAL, METHOD_NOT_FOUND, Message, Text, object, string};
use super::{AskKey, Command, Dialect, Draft, Fault, Opening, Outbox, RunEnd, Said, ToolMark};
use crate::model::{Decision, Kind, NativeId, RunStatus, RuntimeSpec, Ticket};
use ask::Asked;
use models::Models;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;
/// ACP: the agent wants `authenticate` first.
const AUTH_REQUIRED: i64 = -32000;
/// ACP: the request was cancelled.
const REQUEST_CANCELLED: i64 = -32800;
/// Questions that may wait at a time on one connection; one more is answered `cancelled` at once, and logged.
const ASKS_MAX: usize = 256;
/// Tool calls remembered as mentioned; past it all are forgotten, and a question may mention one a second time.
const SEEN_MAX: usize = 4096;

/// Makes a connection's state.
pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Acp {
        auth_method: spec.auth_method.clone(),
        session_meta: spec.session_meta.clone(),
        phase: Phase::Hello,
        authenticated: false,
        agent: None,
        methods: Vec::new(),
        next: 0,
        pending: HashMap::new(),
        asks: HashMap::new(),
        models: HashMap::new(),
        seen: HashSet::new(),
        last: None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Hello,
    Ready,
    Failed,
}

/// What a request of ours was for.
enum Pending {
    Initialize,
    Authenticate { then: Option<(Ticket, String)> },
    Open { ticket: Ticket, cwd: String },
    Prompt { ticket: Ticket, native: NativeId },
    Call { ticket: Ticket, native: Option<NativeId>, sets: Option<calls::Sets> },
}

struct AuthMethod {
    id: String,
    name: String,
    /// `env_var`, `terminal`; none for the plain sort.
    sort: Option<String>,
}

struct Acp {
    auth_method: Option<String>,
    session_meta: Option<Box<RawValue>>,
    phase: Phase,
    authenticated: bool,
    agent: Option<String>,
    methods: Vec<AuthMethod>,
    next: u64,
    pending: HashMap<u64, Pending>,
    asks: HashMap<AskKey, Asked>,
    models: HashMap<NativeId, Models>,
    seen: HashSet<(NativeId, String)>,
    last: Option<NativeId>,
}

/// `session/update` read in one pass; anything else fails to be one and is read again as a [`Message`].
#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Text<'a>,
    #[serde(borrow)]
    params: UpdateParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams<'a> {
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    update: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    session_update: Text<'a>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
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
        let params = serde_json::json!({
            "protocolVersion": VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
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
            && let Ok(Update { id: None, method: Text(method), params }) = serde_json::from_str::<Update<'_>>(text)
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

    fn command(&mut self, command: Command, out: &mut Outbox) {
        if self.phase != Phase::Ready {
            return not_ready(command, out);
        }
        match command {
            Command::Open { ticket, cwd, .. } => self.new_session(ticket, cwd, out),
            Command::Prompt { ticket, native, content } => {
                #[derive(Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Params<'a> {
                    session_id: &'a NativeId,
                    prompt: &'a [Box<RawValue>],
                }
                let pending = Pending::Prompt { ticket, native: native.clone() };
                self.request(pending, "session/prompt", &Params { session_id: &native, prompt: &content }, out);
            }
            Command::Cancel { native, .. } => {
                out.frames.push(jsonrpc::notify("session/cancel", &serde_json::json!({ "sessionId": native })));
            }
            Command::Answer { key, decision } => self.answer(&key, &decision, out),
            Command::Call { ticket, native, method, params, notify } => {
                self.call(ticket, native, &method, params.as_deref(), notify, out);
            }
        }
    }
}

/// What a command comes to while the connection is of no use.
fn not_ready(command: Command, out: &mut Outbox) {
    let fault = Fault::new(INTERNAL, "the agent is not ready");
    match command {
        Command::Open { ticket, .. } => out.said.push(Said::NotOpened { ticket, error: fault }),
        Command::Prompt { ticket, native, .. } => {
            out.said.push(Said::Ended { native, ticket, end: failed(fault, None) })
        }
        Command::Call { ticket, notify: false, .. } => out.said.push(Said::Replied { ticket, reply: Err(fault) }),
        Command::Call { method, native, .. } => {
            out.said.push(Said::Event { native, draft: trouble("not_ready", &format!("{method} was not sent"), None) });
        }
        // No session, so no run to stop and no question to answer.
        Command::Cancel { .. } | Command::Answer { .. } => {}
    }
}

/// An event that says that something went wrong.
fn trouble(code: &str, message: &str, frame: Option<Bytes>) -> Draft {
    let draft = Draft::new(Kind::Error, &serde_json::json!({ "code": code, "message": message }));
    Draft { native: frame, ..draft }
}

/// A run that ended in an error.
fn failed(fault: Fault, native: Option<Bytes>) -> RunEnd {
    RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(fault.message), native }
}

impl Acp {
    fn request(&mut self, pending: Pending, method: &str, params: &impl Serialize, out: &mut Outbox) {
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, pending);
        out.frames.push(jsonrpc::call(Some(&id), method, params));
    }

    /// The session with this name, sharing the memory of the last one named.
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
        out.said.push(Said::Event { native, draft: Draft::raw(frame.clone(), reason) });
    }

    fn see(&mut self, native: &NativeId, tool: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert((native.clone(), tool.to_owned()))
    }

    fn update(&mut self, frame: &Bytes, session: &str, update: &RawValue, out: &mut Outbox) {
        let native = self.native(session);
        let Some(head) = object::<Head<'_>>(update) else {
            return self.raw(frame, Some(native), "a session update without a kind", out);
        };
        // The gateway's own kinds are no updates: an agent must not be able to say that a request was resolved.
        let Some(kind) = Kind::from_name(&head.session_update.0).filter(|kind| kind.is_acp()) else {
            return self.raw(frame, Some(native), "unknown session update", out);
        };
        let (mut tool, mut title) = (None, None);
        match kind {
            Kind::ToolCall | Kind::ToolCallUpdate => {
                let Some(id) = head.tool_call_id.and_then(string) else {
                    return self.raw(frame, Some(native), "a tool call without an identifier", out);
                };
                self.see(&native, &id);
                let over = matches!(head.status.and_then(string).as_deref(), Some("completed" | "failed"));
                tool = Some(ToolMark { id: id.into_owned(), over });
            }
            Kind::SessionInfoUpdate => title = head.title.and_then(string).map(std::borrow::Cow::into_owned),
            Kind::ConfigOptionUpdate => {
                self.models.entry(native.clone()).or_default().options_changed(update);
            }
            _ => {}
        }
        let draft = Draft { kind, body: jsonrpc::slice(frame, update), native: Some(frame.clone()), tool, title };
        out.said.push(Said::Event { native: Some(native), draft });
    }

    fn message(&mut self, frame: &Bytes, message: Message<'_>, out: &mut Outbox) {
        match message {
            Message::Request { id, method, params } => match method.as_ref() {
                "session/request_permission" => self.permission(frame, id, params, out),
                "elicitation/create" => self.elicitation(frame, id, params, out),
                _ => {
                    let native = self.named(params);
                    self.raw(frame, native, "a request that the gateway does not serve: refused", out);
                    out.frames.push(jsonrpc::refuse(id.get(), METHOD_NOT_FOUND, &format!("{method}: not served here")));
                }
            },
            Message::Notification { method, params } => match method.as_ref() {
                "$/cancel_request" => self.taken_back(frame, params, out),
                _ => {
                    let native = self.named(params);
                    self.raw(frame, native, "unknown notification", out);
                }
            },
            Message::Response { id, reply } => match self.settle(id) {
                Some(pending) => self.reply(frame, pending, reply, out),
                None => self.raw(frame, None, "an answer to nothing that was asked", out),
            },
        }
    }

    /// The request of ours that has this id: ours are integers, written without a point.
    fn settle(&mut self, id: &RawValue) -> Option<Pending> {
        self.pending.remove(&id.get().parse::<u64>().ok()?)
    }

    /// Nothing waits for ever because a message was nested too deep to be passed on.
    fn too_deep(&mut self, frame: &Bytes, message: Message<'_>, out: &mut Outbox) {
        self.raw(frame, None, "nested too deep", out);
        match message {
            Message::Request { id, method, .. } => out.frames.push(match method.as_ref() {
                "session/request_permission" => ask::cancelled(id.get()),
                "elicitation/create" => ask::elicited(id.get(), "cancel"),
                _ => jsonrpc::refuse(id.get(), METHOD_NOT_FOUND, &format!("{method}: not served here")),
            }),
            Message::Response { id, .. } => {
                if let Some(pending) = self.settle(id) {
                    let fault = Fault::new(INTERNAL, "the agent's reply is nested too deep");
                    self.reply(frame, pending, Err(fault), out);
                }
            }
            Message::Notification { .. } => {}
        }
    }

    fn reply(&mut self, frame: &Bytes, pending: Pending, reply: Result<&RawValue, Fault>, out: &mut Outbox) {
        match (pending, reply) {
            (Pending::Initialize, Ok(result)) => self.initialized(result, out),
            (Pending::Initialize, Err(fault)) => {
                self.fail(format!("the agent refused the handshake: {} ({})", fault.message, fault.code), out);
            }
            (Pending::Authenticate { then }, Ok(_)) => {
                self.authenticated = true;
                match then {
                    Some((ticket, cwd)) => self.new_session(ticket, cwd, out),
                    None => self.ready(out),
                }
            }
            (Pending::Authenticate { then: None }, Err(fault)) => {
                let method = self.auth_method.clone().unwrap_or_default();
                let offered = self.offered();
                self.fail(format!("the agent refused to sign in by `{method}`: {}. {offered}", fault.message), out);
            }
            (Pending::Authenticate { then: Some((ticket, _)) }, Err(fault)) => {
                let message = format!("signing in failed: {}. {}", fault.message, self.offered());
                out.said.push(Said::NotOpened { ticket, error: Fault { message, ..fault } });
            }
            (Pending::Open { ticket, .. }, Ok(result)) => self.opened(frame, ticket, result, out),
            (Pending::Open { ticket, cwd }, Err(fault)) => self.not_opened(ticket, cwd, fault, out),
            (Pending::Prompt { ticket, native }, Ok(result)) => {
                let end = ended(result, frame);
                out.said.push(Said::Ended { native, ticket, end });
            }
            (Pending::Prompt { ticket, native }, Err(fault)) => {
                let cancelled = fault.code == REQUEST_CANCELLED;
                let mut end = failed(fault, Some(frame.clone()));
                if cancelled {
                    end.status = RunStatus::Cancelled;
                }
                out.said.push(Said::Ended { native, ticket, end });
            }
            (Pending::Call { ticket, native, sets }, reply) => self.called(frame, ticket, native, sets, reply, out),
        }
    }

    fn fail(&mut self, message: String, out: &mut Outbox) {
        self.phase = Phase::Failed;
        out.said.push(Said::Failed { message });
    }

    fn ready(&mut self, out: &mut Outbox) {
        self.phase = Phase::Ready;
        out.said.push(Said::Ready { agent: self.agent.clone() });
    }

    /// The ways to sign in that the agent offers, for a person to read.
    fn offered(&self) -> String {
        if self.methods.is_empty() {
            return "The agent offers no way to sign in: start it once in a terminal and sign in there.".into();
        }
        let named = |m: &AuthMethod| match m.sort.as_deref() {
            Some("terminal") => format!("`{}` ({}, in a terminal)", m.id, m.name),
            _ => format!("`{}` ({})", m.id, m.name),
        };
        let list: Vec<String> = self.methods.iter().map(named).collect();
        format!("Set `auth_method` of the runtime to one of: {}.", list.join(", "))
    }

    fn initialized(&mut self, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello<'a> {
            #[serde(borrow)]
            protocol_version: Option<&'a RawValue>,
            #[serde(borrow)]
            auth_methods: Option<&'a RawValue>,
            #[serde(borrow)]
            agent_info: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Info {
            name: String,
            version: Option<String>,
        }
        #[derive(Deserialize)]
        struct Method {
            id: String,
            name: Option<String>,
            #[serde(rename = "type")]
            sort: Option<String>,
        }
        let Some(hello) = object::<Hello<'_>>(result) else {
            return self.fail("the agent's reply to `initialize` is no ACP".into(), out);
        };
        let version = hello.protocol_version.map_or("none", RawValue::get);
        if version != "1" {
            return self.fail(format!("the agent speaks ACP version {version}; the gateway speaks version 1"), out);
        }
        self.agent = hello.agent_info.and_then(object::<Info>).map(|info| match info.version {
            Some(version) => format!("{} {version}", info.name),
            None => info.name,
        });
        let methods = hello.auth_methods.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        self.methods = methods
            .into_iter()
            .flatten()
            .filter_map(object::<Method>)
            .map(|m| AuthMethod { name: m.name.unwrap_or_else(|| m.id.clone()), id: m.id, sort: m.sort })
            .collect();
        // A method that the agent does not list is not tried: an agent that is signed in already may list none. If it
        // does want a sign-in, opening a session says so, and names the methods.
        let wanted = self
            .auth_method
            .clone()
            .filter(|wanted| self.methods.iter().any(|m| m.id == *wanted && m.sort.as_deref() != Some("terminal")));
        match wanted {
            Some(method) => self.authenticate(&method, None, out),
            None => self.ready(out),
        }
    }

    fn authenticate(&mut self, method: &str, then: Option<(Ticket, String)>, out: &mut Outbox) {
        let params = serde_json::json!({ "methodId": method });
        self.request(Pending::Authenticate { then }, "authenticate", &params, out);
    }

    fn new_session(&mut self, ticket: Ticket, cwd: String, out: &mut Outbox) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            cwd: &'a str,
            mcp_servers: [(); 0],
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<&'a RawValue>,
        }
        let meta = self.session_meta.clone();
        let pending = Pending::Open { ticket, cwd: cwd.clone() };
        let params = Params { cwd: &cwd, mcp_servers: [], meta: meta.as_deref() };
        self.request(pending, "session/new", &params, out);
    }

    fn opened(&mut self, frame: &Bytes, ticket: Ticket, result: &RawValue, out: &mut Outbox) {
        let Some(native) = self.named(Some(result)) else {
            let error = Fault::new(INTERNAL, "the agent opened a session without an identifier");
            return out.said.push(Said::NotOpened { ticket, error });
        };
        let (models, drafts) = Models::of_new_session(frame, result);
        self.models.insert(native.clone(), models);
        out.said.push(Said::Opened { ticket, native, drafts, how: Opening::New });
    }

    fn not_opened(&mut self, ticket: Ticket, cwd: String, fault: Fault, out: &mut Outbox) {
        if fault.code != AUTH_REQUIRED {
            return out.said.push(Said::NotOpened { ticket, error: fault });
        }
        let mut env = self.methods.iter().filter(|method| method.sort.as_deref() == Some("env_var"));
        if let (false, Some(only), None) = (self.authenticated, env.next(), env.next()) {
            // The variable is set or it is not: nothing to ask a person, so try it.
            let method = only.id.clone();
            return self.authenticate(&method, Some((ticket, cwd)), out);
        }
        let message = format!("the agent wants a sign-in: {}. {}", fault.message, self.offered());
        out.said.push(Said::NotOpened { ticket, error: Fault { message, ..fault } });
    }

    fn taken_back(&mut self, frame: &Bytes, params: Option<&RawValue>, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
            request_id: Option<&'a RawValue>,
        }
        let id = params.and_then(object::<Params<'_>>).and_then(|params| params.request_id);
        let key = AskKey(id.map_or_else(String::new, |id| id.get().to_owned()));
        match self.asks.remove(&key) {
            Some(asked) => {
                // A request that was taken back still has an answer: the agent may go on waiting for it.
                out.frames.push(asked.withdrawn(&key));
                out.said.push(Said::TakenBack { native: asked.native().cloned(), key, elsewhere: None });
            }
            None => self.raw(frame, None, "a withdrawal of a question that is not open", out),
        }
    }

    fn answer(&mut self, key: &AskKey, decision: &Decision, out: &mut Outbox) {
        if let Some(asked) = self.asks.remove(key) {
            out.frames.push(asked.answer(key, decision));
        }
    }
}

/// How a run ended, by the reply to `session/prompt`.
fn ended(result: &RawValue, frame: &Bytes) -> RunEnd {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        #[serde(borrow)]
        stop_reason: Option<&'a RawValue>,
    }
    let reason = object::<Result<'_>>(result).and_then(|result| result.stop_reason).and_then(string);
    let status = if reason.as_deref() == Some("cancelled") { RunStatus::Cancelled } else { RunStatus::Completed };
    let stop_reason = reason.map(std::borrow::Cow::into_owned);
    RunEnd { status, stop_reason, message: None, native: Some(frame.clone()) }
}
