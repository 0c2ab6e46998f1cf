//! WebSockets over our own connection, one message a text frame. This file is the wire: handshake, frames, pings, close
//! codes. What the messages mean is a [`Talk`]'s: [`rpc`](super::rpc) for the native one.
//!
//! One task serves a connection. It reads with tungstenite's protocol state machine, which never writes to the socket
//! itself: what it wants to say goes among the connection's own frames, so that nothing ever lands inside an event's frame.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use tokio::time::Instant;
use tungstenite::Message;
use tungstenite::error::{Error as WsError, ProtocolError};
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::AppState;
use super::error::Problem;
use super::fanout::{Conn, Flow};
use super::frames::{Framing, ws_ping};
use super::guard::WS_PROTOCOL;
use super::listen::{Stream, Upgrade};
use super::rpc::Rpc;
use crate::auth::Caller;
use crate::metrics::metrics;
use crate::model::{Cursor, Origin, Scope};

/// Longest message of a client, in bytes: prompts carry images. A longer one closes the connection, 1009.
const MESSAGE_MAX: usize = 16 << 20;
/// Bytes that an idle connection's reader holds.
const READ_BUFFER: usize = 4 << 10;
/// Requests of one client that are being worked on; past it nothing more is read from it until one is done.
const IN_FLIGHT: usize = 64;
/// Bytes of replies that wait for a client; past it nothing more is read from it until it has taken some.
const BACKLOG: usize = 256 << 10;
/// Messages that are read in one go before anything else gets a turn.
const READ_TURN: usize = 32;
/// Between pings.
const PING: Duration = Duration::from_secs(30);
/// Pings without any sign of life after which the other end is taken for dead.
const PINGS_MISSED: u8 = 2;
/// How long a client may take to say `initialize`; then it is closed, 1008.
const INITIALIZE: Duration = Duration::from_secs(30);
/// How long a closing handshake may take; then the connection is cut.
const CLOSING: Duration = Duration::from_secs(2);

/// Close codes.
mod code {
    pub(super) const NORMAL: u16 = 1000;
    pub(super) const GOING_AWAY: u16 = 1001;
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const TEXT_ONLY: u16 = 1003;
    pub(super) const NOT_UTF8: u16 = 1007;
    pub(super) const POLICY: u16 = 1008;
    pub(super) const TOO_BIG: u16 = 1009;
    pub(super) const REVOKED: u16 = 4001;
    pub(super) const SCOPE: u16 = 4003;
    pub(super) const NO_PROGRESS: u16 = 4008;
}

/// The frames that a message is answered with: none for notifications. Whoever drops it before its end does not undo what
/// was asked.
pub(super) type Reply = BoxFuture<'static, Vec<u8>>;

/// What the messages of a WebSocket mean.
pub(super) trait Talk: Send {
    /// Takes one message. What comes of it is begun when the reply is first polled, and is polled in the order of the
    /// messages; dropping it early does not undo what was asked.
    fn message(&mut self, text: &str) -> Option<Reply>;

    /// Whether the client has said hello. Until then nothing is told to it, and it has [`INITIALIZE`] to say it.
    fn initialized(&self) -> bool;

    /// Some runtime stands differently.
    fn runtimes_changed(&mut self) {}

    /// A session was forgotten.
    fn forgotten(&mut self, _session: &Origin) {}

    /// What the client is shown beside replies, for those that are not a [`Fan`](super::fanout::Fan)'s: whole frames.
    /// Polled only while nothing waits to be written, so that a client that does not read costs a cursor. `None` closes
    /// the connection. Must be cancellation safe.
    fn news(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }

    /// Where a client that is closed for making no progress should come back from.
    fn cursor(&self) -> Option<Cursor>;
}

/// The native WebSocket: answers the handshake and serves the connection from then on.
pub(super) async fn serve(state: AppState, caller: Caller, parts: Parts) -> Response {
    let of = (state.clone(), caller.clone());
    upgrade(state, caller, parts, move |conn| Rpc::new(of.0, of.1, conn))
}

/// Answers the handshake, and serves the connection with the [`Talk`] made for it. The caller needs the scope `watch`.
pub(super) fn upgrade<T: Talk + 'static>(
    state: AppState,
    caller: Caller,
    parts: Parts,
    talk: impl FnOnce(Arc<Conn>) -> T + Send + 'static,
) -> Response {
    match accept(&parts) {
        Ok(mut response) => {
            let mut request = http::Request::from_parts(parts, ());
            let upgrade = hyper::upgrade::on(&mut request);
            if offers(request.headers()) {
                response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(WS_PROTOCOL));
            }
            tokio::spawn(async move {
                // It fails if the client leaves in between: nobody is left to tell.
                let Ok(upgraded) = upgrade.await else { return };
                match Upgrade::from_hyper(upgraded) {
                    Some(Upgrade { socket, read_ahead, slot }) => {
                        drop(request);
                        run(state, caller, socket, read_ahead, talk).await;
                        drop(slot);
                    }
                    None => tracing::error!("a WebSocket came over a connection that is not ours"),
                }
            });
            response
        }
        Err(problem) => *problem,
    }
}

/// RFC 6455, 4.2.1: what a handshake must say.
fn accept(parts: &Parts) -> Result<Response, Box<Response>> {
    let bad = |status, detail: &str| Box::new(Problem::new(status, "bad_handshake", detail).into_response());
    if parts.method != Method::GET || parts.version != Version::HTTP_11 {
        return Err(bad(StatusCode::BAD_REQUEST, "a WebSocket begins with GET over HTTP/1.1"));
    }
    if !lists(&parts.headers, &CONNECTION, "upgrade") || !lists(&parts.headers, &UPGRADE, "websocket") {
        let mut response = bad(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket: ask for an upgrade to `websocket`");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        return Err(response);
    }
    let one = |name: &HeaderName| {
        let mut all = parts.headers.get_all(name).iter();
        all.next().filter(|_| all.next().is_none())
    };
    if one(&SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut response = bad(StatusCode::UPGRADE_REQUIRED, "Sec-WebSocket-Version must be 13");
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(response);
    }
    let key = one(&SEC_WEBSOCKET_KEY)
        .filter(|key| data_encoding::BASE64.decode(key.as_bytes()).is_ok_and(|nonce| nonce.len() == 16));
    let Some(key) = key else {
        return Err(bad(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64"));
    };
    let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    match HeaderValue::from_str(&accept) {
        Ok(accept) => headers.insert(SEC_WEBSOCKET_ACCEPT, accept),
        Err(_) => return Err(Box::new(Problem::internal().into_response())),
    };
    Ok(response)
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|one| one.eq_ignore_ascii_case(token))
}

fn offers(headers: &HeaderMap) -> bool {
    tokens(headers, &SEC_WEBSOCKET_PROTOCOL).any(|one| one == WS_PROTOCOL)
}

/// The socket as tungstenite sees it: reads do not wait, writes go to a buffer.
struct Tap<'a> {
    socket: &'a Stream,
    said: Vec<u8>,
}

impl Read for Tap<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.socket.try_read(buf)
    }
}

impl Write for Tap<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.said.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a connection ends.
enum End {
    /// The other end, or the socket, is gone.
    Gone,
    /// It said goodbye; the answer waits among our frames.
    Theirs,
    /// We say goodbye and wait for theirs.
    Ours(u16, String),
    /// It broke the protocol: we say why and hang up.
    Broken(u16, String),
}

/// One client's connection, apart from what its messages mean.
struct Client {
    conn: Arc<Conn>,
    context: WebSocketContext,
    /// tungstenite may hold messages that it has read already, so the socket need not become readable for them.
    more: bool,
    missed: u8,
}

/// Serves an upgraded connection to its end.
async fn run<T: Talk>(
    state: AppState,
    caller: Caller,
    socket: Arc<Stream>,
    read_ahead: bytes::Bytes,
    talk: impl FnOnce(Arc<Conn>) -> T,
) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let mut client = Client {
        conn: Conn::new(&state.fans, socket, Framing::WebSocket),
        context: WebSocketContext::from_partially_read(read_ahead.into(), Role::Server, Some(config)),
        more: true,
        missed: 0,
    };
    let leave = Leave(Arc::clone(&client.conn));
    let mut flights = FuturesUnordered::new();
    let talk = talk(Arc::clone(&client.conn));
    let end = client.talk(&state, &caller, talk, &mut flights).await;
    drop(leave);
    if !flights.is_empty() {
        // What was asked for is done all the same; only nobody hears how it went.
        tokio::spawn(async move { while flights.next().await.is_some() {} });
    }
    Box::pin(client.end(end)).await;
}

/// Takes a connection out of its fans, also when its task is cut.
pub(super) struct Leave(pub(super) Arc<Conn>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Client {
    async fn talk(
        &mut self,
        state: &AppState,
        caller: &Caller,
        mut talk: impl Talk,
        flights: &mut FuturesUnordered<Reply>,
    ) -> End {
        if !caller.device().grant.scopes.contains(&Scope::Watch) {
            return End::Ours(code::SCOPE, "the device lacks the scope `watch`".into());
        }
        let mut revocations = state.auth.revocations();
        let mut runtimes = state.directory.runtimes_changed();
        let mut forgotten = state.directory.forgotten();
        let mut forgot = *forgotten.borrow_and_update();
        let mut stop = state.stop.clone();
        // Whoever was revoked between the handshake and here.
        revocations.mark_changed();
        let _online = state.auth.online(caller);
        let began = Instant::now();
        let mut ping_at = began + PING;
        loop {
            let flow = self.conn.flush(true);
            if flow == Flow::Dead {
                return End::Gone;
            }
            let reading = flights.len() < IN_FLIGHT && self.conn.backlog() < BACKLOG;
            let mut wake_at = ping_at;
            if flow == Flow::Blocked {
                wake_at = wake_at.min(self.conn.stalls_at());
            }
            if !talk.initialized() {
                wake_at = wake_at.min(began + INITIALIZE);
            }
            tokio::select! {
                ready = self.conn.socket().readable(), if reading && !self.more => match ready {
                    Ok(()) => self.more = true,
                    Err(_) => return End::Gone,
                },
                () = tokio::task::yield_now(), if reading && self.more => {}
                _ = self.conn.socket().writable(), if flow == Flow::Blocked => {}
                () = self.conn.catch_up_or_wait(), if flow == Flow::Cold => {}
                () = self.conn.kick() => {}
                Some(reply) = flights.next(), if !flights.is_empty() => {
                    self.conn.push(|out| out.extend_from_slice(&reply));
                }
                changed = revocations.changed() => {
                    if changed.is_err() || !state.auth.stands(caller) {
                        return End::Ours(code::REVOKED, "this device was revoked".into());
                    }
                }
                changed = runtimes.changed(), if talk.initialized() => {
                    if changed.is_err() {
                        return End::Ours(code::GOING_AWAY, "the gateway is stopping".into());
                    }
                    talk.runtimes_changed();
                }
                changed = forgotten.changed(), if talk.initialized() => {
                    if changed.is_err() {
                        return End::Ours(code::GOING_AWAY, "the gateway is stopping".into());
                    }
                    let Some((gone, now)) = state.directory.forgotten_since(forgot) else {
                        // It missed some: coming back, it hears which there are.
                        return End::Ours(code::NO_PROGRESS, come_back(&talk));
                    };
                    forgot = now;
                    gone.iter().for_each(|session| talk.forgotten(session));
                }
                news = talk.news(), if flow == Flow::Done && talk.initialized() => match news {
                    Some(frames) => self.conn.push(|out| out.extend_from_slice(&frames)),
                    None => return End::Ours(code::NORMAL, String::new()),
                },
                () = stopping(&mut stop) => return End::Ours(code::GOING_AWAY, "the gateway is stopping".into()),
                () = tokio::time::sleep_until(wake_at) => {
                    let now = Instant::now();
                    if flow == Flow::Blocked && self.conn.stalls_at() <= now {
                        metrics().stalled.inc();
                        return End::Ours(code::NO_PROGRESS, come_back(&talk));
                    }
                    if !talk.initialized() && now >= began + INITIALIZE {
                        return End::Ours(code::POLICY, "no `initialize` came".into());
                    }
                    if now >= ping_at {
                        // Nothing is read from a client that does not take its replies, so its silence means nothing.
                        if reading && self.missed >= PINGS_MISSED {
                            return End::Gone;
                        }
                        self.missed = self.missed.saturating_add(1);
                        ping_at = now + PING;
                        if flow == Flow::Done {
                            self.conn.push(ws_ping);
                        }
                    }
                }
            }
            if self.more
                && flights.len() < IN_FLIGHT
                && self.conn.backlog() < BACKLOG
                && let Some(end) = self.listen(&mut talk, flights)
            {
                return end;
            }
        }
    }

    /// Takes what has come, some messages at most.
    fn listen(&mut self, talk: &mut impl Talk, flights: &mut FuturesUnordered<Reply>) -> Option<End> {
        for _ in 0..READ_TURN {
            if flights.len() >= IN_FLIGHT {
                return None;
            }
            match self.read() {
                Ok(Message::Text(text)) => {
                    self.missed = 0;
                    if let Some(mut reply) = talk.message(&text) {
                        // Begun at once, so that a client's requests take effect in the order it sent them.
                        match futures_util::FutureExt::now_or_never(&mut reply) {
                            Some(reply) => self.conn.push(|out| out.extend_from_slice(&reply)),
                            None => flights.push(reply),
                        }
                    }
                }
                Ok(Message::Binary(_)) => {
                    return Some(End::Ours(code::TEXT_ONLY, "one JSON-RPC message a text frame".into()));
                }
                Ok(Message::Close(_)) => {
                    // The next read is what makes tungstenite say its answer.
                    let _ = self.read();
                    return Some(End::Theirs);
                }
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => self.missed = 0,
                Err(WsError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    self.more = false;
                    return None;
                }
                Err(error) => return Some(ended(error)),
            }
        }
        None
    }

    fn read(&mut self) -> Result<Message, WsError> {
        let mut tap = Tap { socket: self.conn.socket(), said: Vec::new() };
        let outcome = self.context.read(&mut tap);
        if !tap.said.is_empty() {
            self.conn.push(|out| out.extend_from_slice(&tap.said));
        }
        outcome
    }

    /// Says goodbye, waits for the other end's, and hangs up. Takes [`CLOSING`] at most.
    async fn end(mut self, end: End) {
        let mut wait_for_theirs = false;
        match end {
            End::Gone => return,
            End::Theirs => {}
            End::Ours(code, reason) => {
                self.say_close(code, reason);
                wait_for_theirs = true;
            }
            End::Broken(code, reason) => self.say_close(code, reason),
        }
        let until = Instant::now() + CLOSING;
        let _ = tokio::time::timeout_at(until, async {
            loop {
                match self.conn.flush(true) {
                    Flow::Dead => return,
                    Flow::Blocked => {}
                    Flow::Done | Flow::Cold if wait_for_theirs => {}
                    Flow::Done | Flow::Cold => break,
                }
                tokio::select! {
                    _ = self.conn.socket().writable(), if self.conn.backlog() > 0 => {}
                    readable = self.conn.socket().readable(), if wait_for_theirs => {
                        if readable.is_err() {
                            return;
                        }
                        loop {
                            match self.read() {
                                Ok(_) => {}
                                Err(WsError::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                                Err(_) => {
                                    wait_for_theirs = false;
                                    break;
                                }
                            }
                        }
                    }
                }
            }
            // Hanging up over unread bytes would reset the connection and might swallow what we said last.
            let socket = self.conn.socket();
            let _ = socket2::SockRef::from(&**socket).shutdown(std::net::Shutdown::Write);
            let mut sink = [0; 1024];
            loop {
                match socket.try_read(&mut sink) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if socket.readable().await.is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                }
            }
        })
        .await;
    }

    fn say_close(&mut self, code: u16, reason: String) {
        let mut reason = reason;
        // A control frame's payload is 125 bytes, two of them the code.
        reason.truncate(reason.floor_char_boundary(123));
        let mut tap = Tap { socket: self.conn.socket(), said: Vec::new() };
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        // Its buffer takes everything; an error only says that the other end closed before.
        let _ = self.context.close(&mut tap, Some(frame));
        self.conn.push(|out| out.extend_from_slice(&tap.said));
    }
}

/// From where a client that is closed comes back; empty if it follows nothing.
fn come_back(talk: &impl Talk) -> String {
    talk.cursor().map(|cursor| cursor.to_string()).unwrap_or_default()
}

/// What a failure to read means.
fn ended(error: WsError) -> End {
    match error {
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
        WsError::Protocol(error) => End::Broken(code::PROTOCOL, error.to_string()),
        WsError::Utf8(_) => End::Broken(code::NOT_UTF8, "text must be UTF-8".into()),
        WsError::Capacity(_) => End::Broken(code::TOO_BIG, format!("a message may have {MESSAGE_MAX} bytes")),
        WsError::ConnectionClosed => End::Theirs,
        _ => End::Gone,
    }
}

/// Waits until the gateway stops. Cancellation safe.
pub(super) async fn stopping(stop: &mut tokio::sync::watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stop.wait_for(|stop| *stop).await.map(|_| ());
}
