//! ACP: a client sees the gateway as one agent over all runtimes. Whatever the transport, a connection is a `Peer`, and
//! each session that it follows a `SessionStream`; this file is the WebSocket.
//!
//! Sources: ACP v1 (<https://agentclientprotocol.com/protocol/v1>), its transports (RFD "Streamable HTTP & WebSocket
//! Transport"), and several clients of one session (RFD #533, `session/attach`).

mod calls;
mod client_session;
mod connections;
pub(super) mod http;
mod outgoing;
mod peer;
mod question;
mod session_registry;
mod session_stream;
mod shape;
mod shared;
#[cfg(test)]
mod tests;

pub use connections::Connections;
pub use session_registry::{AcpSessionRegistry, Errands};
pub use shape::Failure;

pub(super) use peer::Peer;
pub(super) use session_stream::SessionStream;

use ::http::StatusCode;
use ::http::header::UPGRADE;
use ::http::request::Parts;
use axum::response::Response;
use futures_util::future::BoxFuture;

use super::frames::ws_text;
use super::guard::Call;
use super::talk::{self, Talk};
use super::ws;
use super::{AppState, Problem};
use crate::auth::{Caller, Target};
use plexus_protocol::{Cursor, RuntimeId, Scope, SessionId};

/// One JSON-RPC message for the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    /// The session whose stream it belongs to; `None`: the connection's own.
    pub(super) session: Option<SessionId>,
    /// Set on the last message of a place in the log: who has it may come back after it.
    pub(super) cursor: Option<Cursor>,
    /// The message, one line.
    pub(super) json: Vec<u8>,
    /// Whether the log brings it again to who comes back from before it.
    pub(super) in_log: bool,
}

impl Sent {
    /// A message that is in no log.
    fn to(session: Option<SessionId>, json: Vec<u8>) -> Self {
        Self { session, cursor: None, json, in_log: false }
    }
}

/// `GET /acp` and `GET /acp/{runtime_id}`.
///
/// # Errors
/// 404 for a runtime that the caller may not see.
pub(super) async fn get(state: AppState, call: Call) -> Result<Response, Problem> {
    let caller = call.caller()?.clone();
    let runtime = runtime_of(&state, &caller, &call)?;
    if !call.parts.headers.contains_key(UPGRADE) {
        return self::http::get(state, caller, &call.parts).await;
    }
    Ok(serve(state, caller, call.parts, runtime))
}

/// The runtime of the path.
///
/// # Errors
/// 404 if there is none, or none that the caller may see.
pub(super) fn runtime_of(state: &AppState, caller: &Caller, call: &Call) -> Result<Option<RuntimeId>, Problem> {
    if call.params.is_empty() {
        return Ok(None);
    }
    let missing = || Problem::new(StatusCode::NOT_FOUND, "runtime_not_found", "there is no such runtime");
    let id: RuntimeId = call.id(missing)?;
    let sees = caller.device().grant.covers(Scope::Watch, Target::Runtime(&id));
    if state.directory.runtime(&id).is_none() || !sees {
        return Err(missing());
    }
    Ok(Some(id))
}

/// ACP over a WebSocket: answers the handshake and serves the connection from then on.
fn serve(state: AppState, caller: Caller, parts: Parts, runtime: Option<RuntimeId>) -> Response {
    let peer = Peer::new(state.clone(), caller.clone(), runtime);
    ws::upgrade(state, caller, parts, move |_| Line { peer, seats: Vec::new() })
}

/// A connection that is one stream for everything: all seats, each at its own pace.
struct Line {
    peer: Peer,
    /// The one that told something last is at the end, so that all get their turn.
    seats: Vec<SessionStream>,
}

impl Line {
    /// A seat for every session that the client is in.
    fn settle(&mut self) {
        let sessions = self.peer.sessions();
        self.seats.retain(|seat| sessions.contains(seat.session()));
        for session in sessions {
            if !self.seats.iter().any(|seat| *seat.session() == session) {
                self.seats.push(self.peer.session_stream(session));
            }
        }
    }
}

impl Talk for Line {
    fn message(&mut self, text: &str) -> Option<talk::Reply> {
        let reply = self.peer.message(text)?;
        Some(Box::pin(async move { frames(&reply.await) }))
    }

    fn initialized(&self) -> bool {
        self.peer.initialized()
    }

    fn news(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            self.settle();
            if self.seats.is_empty() {
                return std::future::pending().await;
            }
            let nexts = self.seats.iter_mut().map(|seat| Box::pin(seat.next()));
            let (sent, n, _) = futures_util::future::select_all(nexts).await;
            let told = self.seats.remove(n);
            self.seats.push(told);
            Some(frames(&sent))
        })
    }

    fn cursor(&self) -> Option<Cursor> {
        self.seats.iter().filter_map(SessionStream::cursor).min_by_key(|cursor| cursor.position)
    }
}

/// Messages as frames.
fn frames(sent: &[Sent]) -> Vec<u8> {
    let mut frames = Vec::with_capacity(sent.iter().map(|sent| sent.json.len() + 10).sum());
    for sent in sent {
        ws_text(&mut frames, &sent.json);
    }
    frames
}
