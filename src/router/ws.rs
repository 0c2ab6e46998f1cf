//! WebSockets, with one message per text frame. This file handles the wire: handshake, frames, pings, close codes. A [`SocketProtocol`]
//! handles the messages: `rpc` for the native one.
//!
//! One task serves a connection. It reads with tungstenite's protocol state machine, which never writes to the socket itself: its output
//! is appended to the connection's own frames, so that it is never inserted into an event's frame.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use tokio::time::Instant;
use tracing::Instrument as _;
use tungstenite::Message;
use tungstenite::error::{Error as WsError, ProtocolError};
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::Core;
use super::client_link::{ClientLink, Leave};
use super::error::Problem;
use super::fanout::Flow;
use super::frames::ws_ping;
use super::guard::{BODY_STRIDE, LongWork, WS_PROTOCOL};
use super::listen::{Upgrade, UpgradedIo};
use super::rpc::Rpc;
use super::socket_protocol::{Reply, SocketProtocol};
use super::stop::stopping;
use plexus_auth::Caller;
use plexus_ledger::{Account, CLIENT_FOOTPRINT, Charge, LedgerFull};
use plexus_metrics::metrics;
use plexus_protocol::Scope;
use plexus_protocol::codes::close as code;

/// Maximum size of a client's message, in bytes: prompts carry images. A longer one closes the connection with code 1009.
const MESSAGE_MAX: usize = 16 << 20;
/// Size of the buffer of an idle connection's reader, in bytes.
const READ_BUFFER: usize = 1 << 10;
/// Maximum number of requests of one client that are being handled; beyond it reading from the client pauses until one is done.
const IN_FLIGHT: usize = 64;
/// Maximum size of the replies that wait for a client, in bytes; beyond it reading from the client pauses until it has read some.
const BACKLOG: usize = 256 << 10;
/// Number of bytes of an incomplete message that are not charged: an idle connection's reader may hold this many anyway.
const FREE: usize = READ_BUFFER;
/// Size of a client's control frame without its payload, in bytes: the shortest head, and the mask.
const CONTROL: usize = 2 + 4;
/// Maximum number of messages that are read before other work gets a turn.
const READ_TURN: usize = 32;
/// Maximum number of bytes that are read before other work gets a turn: otherwise a client that sends fast would block it until the end
/// of its message.
const READ_TURN_BYTES: usize = 128 << 10;
/// Time between pings.
const PING: Duration = Duration::from_secs(30);
/// Number of pings without a response after which the other end counts as dead.
const PINGS_MISSED: u8 = 2;
/// Maximum time for a client to send `initialize`; then the connection is closed with code 1008.
const INITIALIZE: Duration = Duration::from_secs(30);
/// Maximum time for a closing handshake; then the connection is dropped.
const CLOSING: Duration = Duration::from_secs(2);

/// Serves the native WebSocket: responds to the handshake and serves the connection from then on.
pub(super) async fn serve(state: Core, caller: Caller, parts: Parts) -> Response {
    let (core, device) = (state.clone(), caller.clone());
    upgrade_linked(state, caller, parts, move |link| Rpc::new(core, device, link))
}

/// Responds to the handshake of a WebSocket, and serves the connection with this protocol. The caller needs the scope `watch`.
pub fn upgrade(core: Core, caller: Caller, parts: Parts, protocol: impl SocketProtocol + 'static) -> Response {
    upgrade_linked(core, caller, parts, move |_| protocol)
}

/// Like [`upgrade`], with a protocol that uses the link of the connection itself.
fn upgrade_linked<T: SocketProtocol + 'static>(
    state: Core,
    caller: Caller,
    parts: Parts,
    protocol: impl FnOnce(ClientLink) -> T + Send + 'static,
) -> Response {
    match accept(&parts) {
        Ok(mut response) => {
            let mut request = http::Request::from_parts(parts, ());
            let upgrade = hyper::upgrade::on(&mut request);
            if offers(request.headers()) {
                response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(WS_PROTOCOL));
            }
            let serve = async move {
                // The upgrade fails if the client disconnects meanwhile.
                let Ok(upgraded) = upgrade.await else { return };
                match Upgrade::from_hyper(upgraded) {
                    Some(Upgrade { io, read_ahead }) => {
                        drop(request);
                        let slot = match &io {
                            UpgradedIo::Raw { slot, .. } => Some(Arc::clone(slot)),
                            UpgradedIo::Streamed(_) => None,
                        };
                        run(state, caller, io, read_ahead, protocol).await;
                        drop(slot);
                    }
                    None => tracing::error!("a WebSocket was requested over a connection of another listener"),
                }
            };
            tokio::spawn(serve.in_current_span());
            response
        }
        Err(problem) => *problem,
    }
}

/// Checks the requirements of RFC 6455, 4.2.1, for a handshake.
fn accept(parts: &Parts) -> Result<Response, Box<Response>> {
    let bad = |status, detail: &str| Box::new(Problem::new(status, "bad_handshake", detail).into_response());
    if parts.method != Method::GET || parts.version != Version::HTTP_11 {
        return Err(bad(StatusCode::BAD_REQUEST, "a WebSocket handshake needs GET over HTTP/1.1"));
    }
    if !lists(&parts.headers, &CONNECTION, "upgrade") || !lists(&parts.headers, &UPGRADE, "websocket") {
        let mut response =
            bad(StatusCode::UPGRADE_REQUIRED, "this route is a WebSocket: request an upgrade to `websocket`");
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

/// The connection as tungstenite uses it: reads do not wait, writes go to a buffer.
struct Tap<'a> {
    link: &'a ClientLink,
    written: Vec<u8>,
    assembly: &'a mut Assembly,
    /// Number of bytes that may be read before other work gets a turn.
    left: &'a mut usize,
}

impl Read for Tap<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if *self.left == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.assembly.charge_bytes(buf.len()).map_err(io::Error::other)?;
        let read = self.link.try_read(buf)?;
        *self.left = self.left.saturating_sub(read);
        self.assembly.bytes += read;
        self.assembly.since.get_or_insert_with(Instant::now);
        Ok(read)
    }
}

/// The received part of an incomplete message.
struct Assembly {
    bytes: usize,
    /// The charge for all but the first [`FREE`] of the bytes.
    charge: Charge,
    /// The time when the first byte arrived.
    since: Option<Instant>,
}

impl Assembly {
    fn new(account: &Account) -> Self {
        Self { bytes: 0, charge: account.nothing(), since: None }
    }

    /// Charges the bytes that are about to be read.
    fn charge_bytes(&mut self, more: usize) -> Result<(), LedgerFull> {
        let needed = (self.bytes + more).saturating_sub(FREE).saturating_mul(CLIENT_FOOTPRINT);
        // In steps, because a message takes many reads.
        if needed > self.charge.bytes() { self.charge.resize(needed.next_multiple_of(FREE)) } else { Ok(()) }
    }

    /// Completes a message: returns its charge, for the code that handles it.
    fn complete(&mut self, account: &Account) -> Charge {
        std::mem::replace(self, Self::new(account)).charge
    }

    /// Subtracts the bytes of a control frame, which may come between the frames of a message.
    fn subtract(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.bytes == 0 {
            self.since = None;
            // Reducing a charge always succeeds.
            let _ = self.charge.resize(0);
        }
    }

    /// Returns the time at which an incomplete message is abandoned: it has the time that a body over HTTP has.
    fn until(&self, per_stride: Duration) -> Option<Instant> {
        let strides = u32::try_from(self.bytes / BODY_STRIDE).unwrap_or(u32::MAX);
        self.since.map(|since| since + per_stride.saturating_mul(strides.saturating_add(1)))
    }
}

impl Write for Tap<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end of a connection.
enum End {
    /// The other end has disconnected, or the connection has failed.
    Disconnected,
    /// The client sent Close; our Close frame is queued.
    ClosedByClient,
    /// The gateway sends Close and waits for that of the client.
    Close(u16, String),
    /// The client violated the protocol: it gets the reason, and the connection is closed.
    Broken(u16, String),
}

/// One client's connection, without the protocol of its messages.
struct Client {
    link: ClientLink,
    context: WebSocketContext,
    assembly: Assembly,
    /// `true` if tungstenite may hold messages that it has read already, so that the socket need not become readable for them.
    more: bool,
    /// Number of bytes that may be read from it in this turn.
    left: usize,
    missed: u8,
    long_work: LongWork,
}

/// Serves an upgraded connection to its end.
async fn run<T: SocketProtocol>(
    state: Core,
    caller: Caller,
    io: UpgradedIo,
    read_ahead: bytes::Bytes,
    protocol: impl FnOnce(ClientLink) -> T,
) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let account = state.account(&caller);
    let mut client = Client {
        assembly: Assembly::new(&account),
        link: ClientLink::websocket(&state.fans, io, account),
        context: WebSocketContext::from_partially_read(read_ahead.into(), Role::Server, Some(config)),
        more: true,
        left: READ_TURN_BYTES,
        missed: 0,
        long_work: state.long_work.clone(),
    };
    let leave = Leave(client.link.clone());
    let mut in_flight = FuturesUnordered::new();
    let protocol = protocol(client.link.clone());
    let end = client.run(&state, &caller, protocol, &mut in_flight).await;
    drop(leave);
    if !in_flight.is_empty() {
        // The requests are completed, although no client receives the results.
        tokio::spawn(async move { while in_flight.next().await.is_some() {} });
    }
    let link = client.link.clone();
    Box::pin(client.end(end)).await;
    // The tasks of pending requests hold the connection, too.
    link.close();
}

impl Client {
    async fn run(
        &mut self,
        state: &Core,
        caller: &Caller,
        mut protocol: impl SocketProtocol,
        in_flight: &mut FuturesUnordered<Reply>,
    ) -> End {
        if !caller.device().grant.scopes.contains(&Scope::Watch) {
            return End::Close(code::SCOPE, "the device lacks the scope `watch`".into());
        }
        let mut revocations = state.auth.revocations();
        let mut runtimes = state.directory.runtimes_changed();
        let mut forgotten = state.directory.deleted().watch();
        let mut seen_deletions = *forgotten.borrow_and_update();
        let mut stop = state.stop.clone();
        // The device may have been revoked between the handshake and here.
        revocations.mark_changed();
        let _online = state.auth.online(caller);
        let began = Instant::now();
        let mut ping_at = began + PING;
        loop {
            let flow = self.link.flush().await;
            if flow == Flow::Dead {
                return End::Disconnected;
            }
            if self.link.is_over_limit() {
                return End::Close(code::NO_PROGRESS, resume_cursor(&protocol));
            }
            if let Some(reason) = protocol.close_reason() {
                return End::Close(code::GOING_AWAY, reason.into());
            }
            // Reading depends on the backlog, because the data that waits for the client is bounded.
            let takes = self.link.backlog() < BACKLOG;
            let reading = in_flight.len() < IN_FLIGHT && takes;
            let mut wake_at = ping_at;
            if let Some(until) = self.assembly.until(state.limits.body).filter(|_| reading) {
                wake_at = wake_at.min(until);
            }
            if flow == Flow::Blocked {
                wake_at = wake_at.min(self.link.stalls_at());
            }
            if !protocol.initialized() {
                wake_at = wake_at.min(began + INITIALIZE);
            }
            tokio::select! {
                ready = self.link.readable(), if reading && !self.more => match ready {
                    Ok(()) => self.more = true,
                    Err(_) => return End::Disconnected,
                },
                () = tokio::task::yield_now(), if reading && self.more => {}
                () = self.link.wait(flow) => {}
                Some(reply) = in_flight.next(), if takes && !in_flight.is_empty() => {
                    self.link.push(|out| out.extend_from_slice(&reply));
                }
                changed = revocations.changed() => {
                    if changed.is_err() || !state.auth.is_enrolled(caller) {
                        return End::Close(code::REVOKED, "this device was revoked".into());
                    }
                }
                changed = runtimes.changed(), if protocol.initialized() => {
                    if changed.is_err() {
                        return End::Close(code::GOING_AWAY, "the gateway is stopping".into());
                    }
                    protocol.runtimes_changed();
                }
                changed = forgotten.changed(), if protocol.initialized() => {
                    if changed.is_err() {
                        return End::Close(code::GOING_AWAY, "the gateway is stopping".into());
                    }
                    let Some((deleted, now)) = state.directory.deleted().since(seen_deletions) else {
                        // The client missed some: it gets the list when it reconnects.
                        return End::Close(code::NO_PROGRESS, resume_cursor(&protocol));
                    };
                    seen_deletions = now;
                    deleted.iter().for_each(|session| protocol.session_deleted(session));
                }
                frames = protocol.next_frames(), if flow == Flow::Done && protocol.initialized() => match frames {
                    Some(frames) => self.link.push(|out| out.extend_from_slice(&frames)),
                    None => return End::Close(code::NORMAL, String::new()),
                },
                () = stopping(&mut stop) => return End::Close(code::GOING_AWAY, "the gateway is stopping".into()),
                () = tokio::time::sleep_until(wake_at) => {
                    let initialize = (!protocol.initialized()).then_some(began + INITIALIZE);
                    if let Some(end) = self.due(flow, reading, initialize, state.limits.body, &mut ping_at) {
                        return match end {
                            End::Close(code::NO_PROGRESS, _) => End::Close(code::NO_PROGRESS, resume_cursor(&protocol)),
                            end => end,
                        };
                    }
                }
            }
            if self.more
                && let Some(end) = self.listen(&mut protocol, in_flight)
            {
                return end;
            }
        }
    }

    /// Returns the next action on the connection: an end, or a ping that is due. `initialize`: the deadline for the client's hello.
    fn due(
        &mut self,
        flow: Flow,
        reading: bool,
        initialize: Option<Instant>,
        body: Duration,
        ping_at: &mut Instant,
    ) -> Option<End> {
        let now = Instant::now();
        if flow == Flow::Blocked && self.link.stalls_at() <= now {
            metrics().stalled.inc();
            return Some(End::Close(code::NO_PROGRESS, String::new()));
        }
        if initialize.is_some_and(|by| now >= by) {
            return Some(End::Close(code::POLICY, "no `initialize` was received".into()));
        }
        if reading && !self.more && self.assembly.until(body).is_some_and(|until| until <= now) {
            return Some(End::Close(code::POLICY, "a message took too long".into()));
        }
        if now >= *ping_at {
            // The gateway does not read from a client that does not read its replies, so the client's silence means nothing.
            if reading && self.missed >= PINGS_MISSED {
                return Some(End::Disconnected);
            }
            self.missed = self.missed.saturating_add(1);
            *ping_at = now + PING;
            if flow == Flow::Done {
                self.link.push(ws_ping);
            }
        }
        None
    }

    /// Handles received messages, a limited number, and none while the backlog of replies is full.
    fn listen(&mut self, protocol: &mut impl SocketProtocol, in_flight: &mut FuturesUnordered<Reply>) -> Option<End> {
        self.left = READ_TURN_BYTES;
        for _ in 0..READ_TURN {
            if in_flight.len() >= IN_FLIGHT || self.link.backlog() >= BACKLOG {
                return None;
            }
            match self.read() {
                Ok(Message::Text(text)) => {
                    self.missed = 0;
                    let charge = self.assembly.complete(self.link.account());
                    if let Some(mut reply) = self.long_work.run(text.len(), || protocol.message(&text)) {
                        // Started at once, so that a client's requests take effect in the order in which it sent them.
                        match futures_util::FutureExt::now_or_never(&mut reply) {
                            Some(reply) => self.link.push(|out| out.extend_from_slice(&reply)),
                            None if charge.bytes() == 0 => in_flight.push(reply),
                            None => in_flight.push(Box::pin(async move {
                                let reply = reply.await;
                                drop(charge);
                                reply
                            })),
                        }
                    }
                }
                Ok(Message::Binary(_)) => {
                    return Some(End::Close(code::TEXT_ONLY, "send one JSON-RPC message per text frame".into()));
                }
                Ok(Message::Close(_)) => {
                    // The next read makes tungstenite write its response.
                    let _ = self.read();
                    return Some(End::ClosedByClient);
                }
                Ok(Message::Ping(payload) | Message::Pong(payload)) => {
                    self.missed = 0;
                    self.assembly.subtract(CONTROL + payload.len());
                }
                Ok(Message::Frame(_)) => self.missed = 0,
                Err(WsError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    // There may be more to read, which continues in the next turn.
                    self.more = self.left == 0;
                    return None;
                }
                Err(error) => return Some(ended(error)),
            }
        }
        None
    }

    fn read(&mut self) -> Result<Message, WsError> {
        let mut tap = Tap { link: &self.link, written: Vec::new(), assembly: &mut self.assembly, left: &mut self.left };
        let outcome = self.context.read(&mut tap);
        let written = tap.written;
        if !written.is_empty() {
            self.link.push(|out| out.extend_from_slice(&written));
        }
        outcome
    }

    /// Sends Close, waits for that of the other end, and closes the connection. Takes [`CLOSING`] at most.
    async fn end(mut self, end: End) {
        let mut wait_for_close = false;
        match end {
            End::Disconnected => return,
            End::ClosedByClient => {}
            End::Close(code, reason) => {
                self.send_close(code, reason);
                wait_for_close = true;
            }
            End::Broken(code, reason) => self.send_close(code, reason),
        }
        let until = Instant::now() + CLOSING;
        let _ = tokio::time::timeout_at(until, async {
            loop {
                let flow = self.link.flush().await;
                match flow {
                    Flow::Dead => return,
                    Flow::Blocked => {}
                    Flow::Done | Flow::Cold if wait_for_close => {}
                    Flow::Done | Flow::Cold => break,
                }
                tokio::select! {
                    () = self.link.wait(flow) => {}
                    readable = self.link.readable(), if wait_for_close => {
                        if readable.is_err() {
                            return;
                        }
                        self.left = usize::MAX;
                        loop {
                            match self.read() {
                                Ok(_) => {}
                                Err(WsError::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                                Err(_) => {
                                    wait_for_close = false;
                                    break;
                                }
                            }
                        }
                    }
                }
            }
            // Closing over unread bytes would reset the connection and might discard the last frames.
            self.link.close_write().await;
            let mut sink = [0; 1024];
            loop {
                match self.link.try_read(&mut sink) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if self.link.readable().await.is_err() {
                            return;
                        }
                    }
                    Err(_) => return,
                }
            }
        })
        .await;
    }

    fn send_close(&mut self, code: u16, reason: String) {
        let mut reason = reason;
        // A control frame's payload is 125 bytes, two of them the code.
        reason.truncate(reason.floor_char_boundary(123));
        let mut tap = Tap { link: &self.link, written: Vec::new(), assembly: &mut self.assembly, left: &mut self.left };
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        // The buffer accepts everything; an error only means that the other end closed before.
        let _ = self.context.close(&mut tap, Some(frame));
        let written = tap.written;
        self.link.push(|out| out.extend_from_slice(&written));
    }
}

/// Returns the cursor at which a client resumes after its connection is closed; empty if it follows nothing.
fn resume_cursor(protocol: &impl SocketProtocol) -> String {
    protocol.cursor().map(|cursor| cursor.to_string()).unwrap_or_default()
}

/// Returns the end that an error of a read implies.
fn ended(error: WsError) -> End {
    match error {
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Disconnected,
        WsError::Protocol(error) => End::Broken(code::PROTOCOL, error.to_string()),
        WsError::Utf8(_) => End::Broken(code::NOT_UTF8, "text must be UTF-8".into()),
        WsError::Capacity(_) => End::Broken(code::TOO_BIG, format!("a message may have at most {MESSAGE_MAX} bytes")),
        WsError::ConnectionClosed => End::ClosedByClient,
        WsError::Io(error) if error.get_ref().is_some_and(|cause| cause.is::<LedgerFull>()) => {
            End::Broken(code::TRY_LATER, format!("over_limit: {error}"))
        }
        _ => End::Disconnected,
    }
}
