//! The ACP frontend: a client sees the gateway as one agent over all runtimes. With either transport, a connection is a `Peer`
//! with a `SessionStream` for each session that it follows. This file is the WebSocket transport.
//!
//! Sources: ACP v1 (<https://agentclientprotocol.com/protocol/v1>), its transports (RFD "Streamable HTTP & WebSocket
//! Transport"), and several clients of one session (RFD #533, `session/attach`).

mod calls;
mod client_session;
mod connections;
mod http;
mod outgoing;
mod peer;
mod question;
mod session_registry;
mod session_stream;
mod shape;
mod shared;
mod stream_queue;
#[cfg(test)]
mod tests;

pub use connections::Connections;
pub use session_registry::{AcpSessionRegistry, ForwardedCalls};
pub use shape::Failure;

use peer::Peer;
use session_stream::SessionStream;

use ::http::StatusCode;
use ::http::header::UPGRADE;
use ::http::request::Parts;
use axum::response::Response;
use futures_util::future::BoxFuture;

use plexus_auth::{Caller, Target};
use plexus_protocol::{Cursor, RuntimeId, Scope, SessionId};
use plexus_router::described::{Parameter, id};
use plexus_router::frames::ws_text;
use plexus_router::guard::{Call, Route};
use plexus_router::routes::{DELETE, GET, NOTHING, POST, PROMPT_BODY, WATCH, route};
use plexus_router::schemas::AcpMessage;
use plexus_router::socket_protocol::{Reply, SocketProtocol};
use plexus_router::ws;
use plexus_router::{Core, Problem};

const CONNECTION: Parameter = Parameter::header("Acp-Connection-Id", "From the response to `initialize`", id);
const SESSION: Parameter = Parameter::header("Acp-Session-Id", "For messages that belong to a session", id);
/// The headers of every route of ACP over HTTP.
const HEADERS: &[&Parameter] = &[&CONNECTION, &SESSION];

/// Returns the routes of ACP.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<AcpState>> {
    vec![
        route(GET, "/acp", WATCH, NOTHING, "ACP over a WebSocket: one agent over all runtimes", get)
            .empty(101).with(HEADERS),
        route(GET, "/acp/{runtime_id}", WATCH, NOTHING, "ACP over a WebSocket, for one runtime", get)
            .empty(101).with(HEADERS),
        route(POST, "/acp", WATCH, PROMPT_BODY, "ACP over HTTP: a message", http::post)
            .request::<AcpMessage>().empty(202).with(HEADERS),
        route(POST, "/acp/{runtime_id}", WATCH, PROMPT_BODY, "ACP over HTTP, for one runtime: a message", http::post)
            .request::<AcpMessage>().empty(202).with(HEADERS),
        route(DELETE, "/acp", WATCH, NOTHING, "ACP over HTTP: end a connection", http::delete)
            .empty(202).with(HEADERS),
        route(DELETE, "/acp/{runtime_id}", WATCH, NOTHING, "ACP over HTTP, for one runtime: end a connection", http::delete)
            .empty(202).with(HEADERS),
    ]
}

/// The state of ACP. Cheap to clone.
#[derive(Clone)]
pub struct AcpState {
    /// The kernel.
    pub core: Core,
    /// The ACP clients of each session.
    pub sessions: AcpSessionRegistry,
    /// The connections of ACP over HTTP, which outlive a client's single requests.
    pub connections: Connections,
}

impl AcpState {
    /// Creates the state, without clients.
    pub fn new(core: Core) -> Self {
        Self { core, sessions: AcpSessionRegistry::default(), connections: Connections::default() }
    }
}

/// One JSON-RPC message for the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    /// The session whose stream carries the message; `None` for the connection's own.
    pub(super) session: Option<SessionId>,
    /// The cursor of the last message of a position in the log: the client may resume after it.
    pub(super) cursor: Option<Cursor>,
    /// The message, one line.
    pub(super) json: Vec<u8>,
    /// `true` if the log produces the message again for a client that resumes from before it.
    pub(super) in_log: bool,
}

impl Sent {
    /// Makes a message that is not in the log.
    fn to(session: Option<SessionId>, json: Vec<u8>) -> Self {
        Self { session, cursor: None, json, in_log: false }
    }
}

/// Handles `GET /acp` and `GET /acp/{runtime_id}`.
///
/// # Errors
/// 404 for a runtime that the caller may not see.
async fn get(state: AcpState, call: Call) -> Result<Response, Problem> {
    let caller = call.caller()?.clone();
    let runtime = runtime_param(&state.core, &caller, &call)?;
    if !call.parts.headers.contains_key(UPGRADE) {
        return self::http::get(state, caller, &call.parts).await;
    }
    Ok(serve(state, caller, call.parts, runtime))
}

/// Returns the runtime of the path.
///
/// # Errors
/// 404 if there is none that the caller may see.
pub(super) fn runtime_param(core: &Core, caller: &Caller, call: &Call) -> Result<Option<RuntimeId>, Problem> {
    if call.params.is_empty() {
        return Ok(None);
    }
    let missing = || Problem::new(StatusCode::NOT_FOUND, "runtime_not_found", "there is no such runtime");
    let id: RuntimeId = call.id(missing)?;
    let sees = caller.device().grant.covers(Scope::Watch, Target::Runtime(&id));
    if core.directory.runtime(&id).is_none() || !sees {
        return Err(missing());
    }
    Ok(Some(id))
}

/// Serves ACP over a WebSocket: responds to the handshake and serves the connection from then on.
fn serve(state: AcpState, caller: Caller, parts: Parts, runtime: Option<RuntimeId>) -> Response {
    let core = state.core.clone();
    let peer = Peer::new(state, caller.clone(), runtime);
    ws::upgrade(core, caller, parts, WebSocketConnection { peer, streams: Vec::new() })
}

/// A connection over a WebSocket: all session streams, each at its own pace.
struct WebSocketConnection {
    peer: Peer,
    /// The streams in round-robin order: the one that sent last is at the end.
    streams: Vec<SessionStream>,
}

impl WebSocketConnection {
    /// Holds a stream for each session that the client is in.
    fn sync_streams(&mut self) {
        let sessions = self.peer.sessions();
        self.streams.retain(|stream| sessions.contains(stream.session()));
        for session in sessions {
            if !self.streams.iter().any(|stream| *stream.session() == session) {
                self.streams.push(self.peer.session_stream(session));
            }
        }
    }
}

impl SocketProtocol for WebSocketConnection {
    fn message(&mut self, text: &str) -> Option<Reply> {
        let reply = self.peer.message(text)?;
        Some(Box::pin(async move { frames(&reply.await) }))
    }

    fn initialized(&self) -> bool {
        self.peer.initialized()
    }

    fn next_frames(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            self.sync_streams();
            if self.streams.is_empty() {
                return std::future::pending().await;
            }
            let nexts = self.streams.iter_mut().map(|stream| Box::pin(stream.next()));
            let (sent, n, _) = futures_util::future::select_all(nexts).await;
            let stream = self.streams.remove(n);
            self.streams.push(stream);
            Some(frames(&sent))
        })
    }

    fn cursor(&self) -> Option<Cursor> {
        self.streams.iter().filter_map(SessionStream::cursor).min_by_key(|cursor| cursor.position)
    }
}

/// Returns messages as frames.
fn frames(sent: &[Sent]) -> Vec<u8> {
    let mut frames = Vec::with_capacity(sent.iter().map(|sent| sent.json.len() + 10).sum());
    for sent in sent {
        ws_text(&mut frames, &sent.json);
    }
    frames
}
