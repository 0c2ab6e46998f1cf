//! One ACP connection over any transport: parses its messages. The handlers of the methods are in `calls`.

use std::str::FromStr as _;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::{Ctx, Implementation, Meta, parse, session_param};
use super::session_stream::SessionStream;
use super::shape::{self, ClientSupport, Failure, raw};
use super::shared::{Client, Shared};
use super::{AcpState, Sent};
use plexus_auth::Caller;
use plexus_metrics::metrics;
use plexus_protocol::object;
use plexus_protocol::{RequestId, RuntimeId, SessionId};
use plexus_router::guard::{DEPTH, deeper_than};
use plexus_router::jsonrpc::Incoming;
use plexus_router::wire::parse_request_name;

/// The supported version of ACP.
const PROTOCOL: u16 = 1;
/// Maximum length of a client's JSON-RPC id, in bytes; a longer one is refused.
const ID_MAX: usize = 1024;

/// The messages for the client in reply to a message, often none. Dropping it early does not undo the call.
pub(crate) type Reply = BoxFuture<'static, Vec<Sent>>;

/// One ACP connection.
pub(crate) struct Peer {
    ctx: Ctx,
}

impl Drop for Peer {
    fn drop(&mut self) {
        for session in self.sessions() {
            self.ctx.leave(&session);
        }
        // Calls that wait for this client's response end.
        self.ctx.shared.with(|tables| {
            tables.sessions.clear();
            tables.calls.clear();
            tables.closed = true;
        });
    }
}

impl Peer {
    /// Makes a new connection. `runtime`: the runtime of its path.
    pub(crate) fn new(state: AcpState, caller: Caller, runtime: Option<RuntimeId>) -> Self {
        let shared = Arc::new(Shared::new(caller.device()));
        Self { ctx: Ctx { state, caller, runtime, shared } }
    }

    /// Returns whether the client has initialized.
    pub(crate) fn initialized(&self) -> bool {
        self.ctx.shared.with(|tables| tables.client.is_some())
    }

    /// Returns the sessions that the client is in.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.ctx.shared.with(|tables| tables.sessions.keys().cloned().collect())
    }

    /// Returns the stream of a session; it waits while the client is not in that session. At most one for each session may be in use.
    pub(crate) fn session_stream(&self, session: SessionId) -> SessionStream {
        SessionStream::new(self.ctx.state.core.clone(), Arc::clone(&self.ctx.shared), session)
    }

    /// Handles one message of any kind. Its call begins when the reply is first polled; dropping the reply early does not undo the
    /// call. Each message of the reply names the session whose stream carries it.
    pub(crate) fn message(&mut self, text: &str) -> Option<Reply> {
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            return bad("null", Failure::new(-32700, "parse_error", format!("not JSON: {error}")));
        }
        let invalid = |id: &str, message: String| bad(id, Failure::new(-32600, "invalid_request", message));
        if deeper_than(text.as_bytes(), DEPTH) {
            return invalid("null", format!("JSON may be nested at most {DEPTH} levels deep"));
        }
        if text.trim_start().starts_with('[') {
            return invalid("null", "JSON-RPC batches are not supported: one message at a time".into());
        }
        let incoming: Incoming<'_> = match object::from_str(text) {
            Ok(incoming) => incoming,
            Err(error) => return invalid("null", format!("not a JSON-RPC message: {error}")),
        };
        let id = incoming.id.map(RawValue::get);
        if let Some(id) = id
            && (id.len() > ID_MAX || id.starts_with(['{', '[', 't', 'f']))
        {
            return invalid("null", format!("an id must be a string, a number or null, with at most {ID_MAX} bytes"));
        }
        if incoming.jsonrpc.as_deref() != Some("2.0") {
            return invalid(id.unwrap_or("null"), "`jsonrpc` must be \"2.0\"".into());
        }
        match (incoming.method, id, incoming.result, incoming.error) {
            (Some(method), Some(id), ..) => self.request(&method, id, incoming.params),
            (Some(method), None, ..) => self.notified(&method, incoming.params),
            (None, Some(id), Some(result), None) => self.answered(id, result),
            (None, Some(id), None, Some(error)) => {
                self.refused(id, error);
                None
            }
            _ => invalid(id.unwrap_or("null"), "neither a request nor a response: `method` is missing".into()),
        }
    }

    fn request(&mut self, method: &str, id: &str, params: Option<&RawValue>) -> Option<Reply> {
        if method == "initialize" {
            let outcome = self.initialize(params);
            return done(None, shape::response(id, outcome.as_deref()));
        }
        if !self.initialized() {
            return bad(id, Failure::new(-32600, "not_initialized", "send `initialize` first"));
        }
        let session = params.and_then(session_param);
        let ctx = self.ctx.clone();
        if matches!(method, "session/close" | "session/detach") {
            return Some(Box::pin(std::future::ready(ctx.detach(id, params))));
        }
        let id = raw_text(id);
        match ctx.call(method, id.clone(), params) {
            Ok(later) => Some(Box::pin(async move {
                match later.await {
                    Ok(Some(result)) => vec![Sent::to(session, shape::response(id.get(), Ok(&result)))],
                    Ok(None) => Vec::new(),
                    Err(failure) => vec![Sent::to(session, shape::response(id.get(), Err(&failure)))],
                }
            })),
            Err(failure) => done(session, shape::response(id.get(), Err(&failure))),
        }
    }

    fn notified(&mut self, method: &str, params: Option<&RawValue>) -> Option<Reply> {
        if !self.initialized() {
            return None;
        }
        let ctx = self.ctx.clone();
        let later = match method {
            "session/cancel" => ctx.cancel(params),
            "$/cancel_request" => ctx.cancel_request(params),
            // Notifications have no response; their effects arrive as events.
            method => ctx.pass(method, params, true),
        };
        match later {
            Ok(later) => Some(Box::pin(async move {
                if let Err(failure) = later.await {
                    tracing::debug!(code = failure.code, message = failure.message, "a notification had no effect");
                }
                Vec::new()
            })),
            Err(failure) => {
                tracing::debug!(code = failure.code, message = failure.message, method, "a notification had no effect");
                None
            }
        }
    }

    fn initialize(&mut self, params: Option<&RawValue>) -> Result<Box<RawValue>, Failure> {
        if self.initialized() {
            return Err(Failure::new(
                -32600,
                "already_initialized",
                "`initialize` was already sent on this connection",
            ));
        }
        let params: Initialize = parse(params)?;
        let ClientCapabilities { elicitation, session, fs, terminal, meta } =
            params.client_capabilities.unwrap_or_default();
        let fs = fs.unwrap_or_default();
        let elicitation = elicitation.unwrap_or_default();
        let plexus = meta.and_then(|meta| meta.plexus).unwrap_or_default();
        let support = ClientSupport {
            events: plexus.events,
            forms: given(&elicitation.form),
            pages: given(&elicitation.url),
            attach: plexus.attach || session.is_some_and(|session| given(&session.attach)),
            reads: fs.read_text_file,
            writes: fs.write_text_file,
            terminals: terminal.unwrap_or_default(),
        };
        let info = params.client_info.unwrap_or_default();
        let client = Client { support, name: info.name, version: info.version };
        self.ctx.shared.with(|tables| tables.client = Some(client));
        let core = &self.ctx.state.core;
        let device = self.ctx.caller.device();
        Ok(raw(&json!({
            // A client that does not support this version closes the connection.
            "protocolVersion": PROTOCOL,
            "agentInfo": { "name": "plexus", "title": "Plexus", "version": core.version },
            "agentCapabilities": {
                "loadSession": true,
                // Blocks pass unchanged; a runtime refuses those that it does not support.
                "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "attach": { "roles": ["controller", "observer"] } },
                "_meta": { "plexus": { "events": true, "resume_after": true, "prompt_key": true } },
            },
            "authMethods": [],
            "_meta": { "plexus": {
                "version": core.version,
                "epoch": core.epoch().as_str(),
                "cursor": core.directory.log().cursor(core.directory.log().head()),
                "client_id": &*self.ctx.shared.client_id,
                "you": { "device_id": device.device_id, "name": device.name, "scopes": device.grant.scopes },
                "runtimes": self.ctx.runtimes().iter().map(|runtime| json!({
                    "runtime_id": runtime.runtime_id, "dialect": runtime.dialect, "state": runtime.state,
                })).collect::<Vec<_>>(),
            } },
        })))
    }

    /// Handles a response of the client: an answer to an agent's request, a response to a call of the gateway, or a stray one.
    fn answered(&self, id: &str, result: &RawValue) -> Option<Reply> {
        let report_stray = || {
            metrics().stray_answers.inc();
            tracing::debug!(id, "a client answered nothing that was asked");
        };
        let Ok(name) = serde_json::from_str::<String>(id) else {
            report_stray();
            return None;
        };
        if self.ctx.shared.answer(&name, Ok(result.to_owned())) {
            return None;
        }
        let (name, revision) = parse_request_name(&name);
        let Ok(request) = RequestId::from_str(name) else {
            report_stray();
            return None;
        };
        let (ctx, result) = (self.ctx.clone(), result.to_owned());
        Some(Box::pin(async move {
            if let Err(failure) = ctx.answer(&request, revision, &result).await {
                metrics().stray_answers.inc();
                tracing::debug!(%request, code = failure.code, message = failure.message, "an answer was not taken");
                return ctx.not_taken(&request, &failure).await;
            }
            Vec::new()
        }))
    }

    /// Handles an error in response to a request. For a request to users it is not an answer: the request stays open for this client and
    /// the others.
    fn refused(&self, id: &str, error: &RawValue) {
        let Ok(name) = serde_json::from_str::<String>(id) else { return };
        let no_error = || Failure { code: -32603, message: "an error that is none".into(), data: Value::Null };
        let failure = object::from_str(error.get()).unwrap_or_else(|_| no_error());
        if !self.ctx.shared.answer(&name, Err(failure)) {
            tracing::debug!(id, error = error.get(), "a client answered with an error");
        }
    }
}

fn bad(id: &str, failure: Failure) -> Option<Reply> {
    done(None, shape::response(id, Err(&failure)))
}

fn done(session: Option<SessionId>, json: Vec<u8>) -> Option<Reply> {
    Some(Box::pin(std::future::ready(vec![Sent::to(session, json)])))
}

fn raw_text(id: &str) -> Box<RawValue> {
    RawValue::from_string(id.to_owned()).unwrap_or_default()
}

fn given(value: &Option<Value>) -> bool {
    value.as_ref().is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    #[serde(rename = "protocolVersion")]
    _protocol_version: u16,
    client_capabilities: Option<ClientCapabilities>,
    client_info: Option<Implementation>,
}

#[derive(Default, Deserialize)]
struct ClientCapabilities {
    elicitation: Option<Elicitation>,
    session: Option<SessionCapabilities>,
    fs: Option<Files>,
    terminal: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<Meta<PlexusCapabilities>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Files {
    read_text_file: bool,
    write_text_file: bool,
}

#[derive(Default, Deserialize)]
struct Elicitation {
    form: Option<Value>,
    url: Option<Value>,
}

#[derive(Default, Deserialize)]
struct SessionCapabilities {
    attach: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlexusCapabilities {
    events: bool,
    attach: bool,
}
