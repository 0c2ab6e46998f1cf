//! Connections to endpoints: WebSocket over TCP or over a Unix socket, event streams and requests over HTTP. One file, because all of
//! these share their limits and the messages about an endpoint that exceeds them.
//!
//! Endpoints of this machine only: nothing here is encrypted. No proxy is used, no redirect followed, no name looked up, and every wait
//! is bounded: a port may accept a connection and never respond.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use data_encoding::BASE64;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, header};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::RuntimeSettings;
use super::address::{Address, loopback};
use super::endpoint_event::EndpointEvent;
use super::link::{LinkConnection, LinkHub};
use super::meter::ReplyCharge;
use super::sse::{SseItem, SseReader};
use plexus_client::liveness::{LivenessTimeouts, LivenessWatch, Silence};
use plexus_dialects::{HttpReply, HttpRequest};
use plexus_ledger::Ledger;
use plexus_protocol::RuntimeId;
use plexus_protocol::text::printable;

/// Maximum number of received messages that are handled at once, so that one commit stores them.
const BATCH: usize = 256;

/// Maximum size of messages that are handled at once, in bytes (and one message): a session that does not read delays 64 of these
/// batches.
const BATCH_BYTES: usize = 64 * 1024;

/// Number of bytes that are read from a connection at a time; a longer message takes several reads.
pub(super) const READ: usize = 128 * 1024;

/// Maximum number of displayed bytes of a response that refuses the connection.
const ANSWER_SHOWN: usize = 200;

/// The user name for an HTTP endpoint with a password.
const USER: &str = "opencode";

/// Checks whether a secret can be sent at all.
pub(super) fn check_secret(secret: &str) -> Result<(), String> {
    let valid = !secret.is_empty() && bearer(secret).is_some();
    if valid { Ok(()) } else { Err("the secret is empty, or has characters that are not allowed in a header".into()) }
}

fn bearer(secret: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {secret}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn basic(secret: &str) -> Option<HeaderValue> {
    let pair = BASE64.encode(format!("{USER}:{secret}").as_bytes());
    let mut value = HeaderValue::try_from(format!("Basic {pair}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Connects to one endpoint and its remote control, repeatedly.
#[derive(Clone)]
pub(super) struct EndpointTarget {
    address: Address,
    remote: Option<String>,
    secret: Option<String>,
    http: reqwest::Client,
    connect: Duration,
    answer: Duration,
    fetch: Duration,
    read: Duration,
    liveness: LivenessTimeouts,
    silence: Duration,
    line_max: usize,
    write_max: usize,
    ledger: Ledger,
    runtime: RuntimeId,
    links: LinkHub,
}

impl EndpointTarget {
    /// # Errors
    /// A text for users: an address that [`Address::parse`] refuses, or a failure to make an HTTP client.
    pub(super) fn new(
        runtime: &RuntimeId,
        at: &str,
        remote: Option<&str>,
        secret: Option<&str>,
        settings: &RuntimeSettings,
    ) -> Result<Self, String> {
        let remote = match remote.map(Address::parse).transpose()? {
            Some(Address::Http(remote)) => Some(remote),
            Some(_) => return Err("remote must be http://host:port".into()),
            None => None,
        };
        let localhost: Vec<SocketAddr> =
            loopback("localhost").into_iter().flatten().map(|host| SocketAddr::new(host, 0)).collect();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .resolve_to_addrs("localhost", &localhost)
            .connect_timeout(settings.connect)
            // A connection that was idle may be closed just when a request is sent on it, and its outcome would be unknown; on this
            // machine a new one costs nothing.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| format!("no HTTP client: {}", chain(&error)))?;
        Ok(Self {
            address: Address::parse(at)?,
            remote,
            secret: secret.map(str::to_owned),
            http,
            connect: settings.connect,
            answer: settings.answer,
            fetch: settings.fetch,
            read: settings.read,
            liveness: settings.liveness,
            silence: settings.silence,
            line_max: settings.line_max,
            write_max: settings.write_max,
            ledger: settings.ledger.clone(),
            runtime: runtime.clone(),
            links: settings.links.clone(),
        })
    }

    /// Connects; `events` is the path of an HTTP endpoint's event stream. Cancellation safe: dropping the future ends the attempt.
    ///
    /// # Errors
    /// The reason, in words.
    pub(super) async fn connect(self, events: &'static str) -> Result<EndpointConnection, String> {
        match &self.address {
            Address::Ws { at, url } => {
                let stream = match timeout(self.connect, TcpStream::connect(at.as_slice())).await {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return Err(error.to_string()),
                    Err(_) => return Err(format!("no connection within {:?}", self.connect)),
                };
                // Frames are small and each is awaited: none waits for the next to fill a packet.
                let _ = stream.set_nodelay(true);
                self.upgrade(Box::new(stream), url).await
            }
            Address::Unix(path) => {
                let stream = match timeout(self.connect, UnixStream::connect(path)).await {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return Err(error.to_string()),
                    Err(_) => return Err(format!("no connection within {:?}", self.connect)),
                };
                self.upgrade(Box::new(stream), "ws://localhost/").await
            }
            Address::Http(base) => self.events(&format!("{base}{events}")).await,
            Address::Link(agent) => Ok(EndpointConnection::Link(self.links.connect(agent).await)),
        }
    }

    async fn upgrade(&self, stream: Box<dyn Duplex>, url: &str) -> Result<EndpointConnection, String> {
        let mut request = url.into_client_request().map_err(|error| error.to_string())?;
        if let Some(value) = self.secret.as_deref().and_then(bearer) {
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let config =
            WebSocketConfig::default().max_message_size(Some(self.line_max)).max_frame_size(Some(self.line_max));
        // The response to the handshake has a bound of its own.
        let stream = Metered { inner: stream, allowance: READ, held: 0, received: 0 };
        match timeout(self.answer, client_async_with_config(request, stream, Some(config))).await {
            Ok(Ok((stream, _))) => Ok(EndpointConnection::Socket(Box::new(Socket {
                stream,
                waiting: VecDeque::new(),
                bytes: 0,
                write_max: self.write_max,
                line_max: self.line_max,
                flushed: true,
                lost: None,
                watch: LivenessWatch::new(self.liveness),
                received: 0,
                ping: false,
            }))),
            Ok(Err(WsError::Http(answer))) => Err(refused(answer.status().as_u16(), answer.body().as_deref())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(self.timeout_message()),
        }
    }

    async fn events(&self, url: &str) -> Result<EndpointConnection, String> {
        let request = self.http.get(url).header(header::ACCEPT, "text/event-stream");
        let answer = match timeout(self.answer, self.signed(request).send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(chain(&error)),
            Err(_) => return Err(self.timeout_message()),
        };
        if answer.status().as_u16() != 200 {
            return Err(refused(answer.status().as_u16(), None));
        }
        let content_type = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !content_type.get(..17).is_some_and(|content_type| content_type.eq_ignore_ascii_case(b"text/event-stream")) {
            return Err(format!("it answered with {:?} instead of an event stream", printable(content_type)));
        }
        let (watch, last) = (LivenessWatch::new(self.liveness), Instant::now());
        let again = self.signed(self.http.get(url).header(header::ACCEPT, "text/event-stream"));
        let (sse, silence) = (SseReader::new(self.line_max), self.silence);
        Ok(EndpointConnection::Events(Box::new(Events { answer, sse, watch, last, silence, again, probe: None })))
    }

    /// Makes a request; `remote` sends it to the remote control. Ends within the bound of a fetch. Not cancellation safe: after a
    /// cancellation it is unknown whether the request was made. The reply is charged to the runtime first.
    ///
    /// # Errors
    /// The reason why there is no reply, in words.
    pub(super) async fn fetch(self, fetch: HttpRequest, remote: bool) -> Result<(HttpReply, ReplyCharge), String> {
        if let Address::Link(agent) = &self.address {
            let charge = ReplyCharge::new(&self.ledger, self.runtime.as_str());
            let within = if fetch.reads() { self.read.min(self.fetch) } else { self.fetch };
            return self.links.fetch(agent, &fetch, within, charge).await;
        }
        let base = match (&self.address, &self.remote) {
            (_, Some(remote_base)) if remote => remote_base,
            (_, None) if remote => return Err("no remote is set for this runtime".into()),
            (Address::Http(base), _) => base,
            (other, _) => return Err(format!("a {} endpoint does not accept HTTP requests", other.scheme())),
        };
        // A read can be repeated, so there is no waiting for it during silence.
        let silence = if fetch.reads() { self.read.min(self.fetch) } else { self.fetch };
        let method = reqwest::Method::from_bytes(fetch.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut request = self.http.request(method, format!("{base}{}", fetch.path));
        request = request.header(header::ACCEPT, "application/json");
        if let Some(body) = fetch.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let request = match (remote, &self.address) {
            // The remote control requires the secret as the endpoint does: it is the same server.
            (true, Address::Ws { url, .. }) if same_host(url, base) => match self.secret.as_deref().and_then(bearer) {
                Some(value) => request.header(header::AUTHORIZATION, value),
                None => request,
            },
            // A remote control elsewhere is another server, which must not get the secret.
            (true, _) => request,
            (false, _) => self.signed(request),
        };
        let reply = async {
            let no_response = |_| format!("no response within {silence:?}");
            let sent = timeout(silence, request.send()).await.map_err(no_response)?;
            let mut answer = sent.map_err(|error| chain(&error))?;
            let status = answer.status().as_u16();
            let (mut body, mut charge) = (BytesMut::new(), ReplyCharge::new(&self.ledger, self.runtime.as_str()));
            while let Some(chunk) =
                timeout(silence, answer.chunk()).await.map_err(no_response)?.map_err(|error| chain(&error))?
            {
                if body.len() + chunk.len() > self.line_max {
                    return Err(format!("the response is over the limit of {} bytes", self.line_max));
                }
                charge.grow(chunk.len()).await;
                body.extend_from_slice(&chunk);
            }
            Ok((HttpReply { status, body: body.freeze() }, charge))
        };
        match timeout(self.fetch, reply).await {
            Ok(reply) => reply,
            Err(_) => Err(format!("no response within {:?}", self.fetch)),
        }
    }

    fn signed(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match self.secret.as_deref().and_then(basic) {
            Some(value) => request.header(header::AUTHORIZATION, value),
            None => request,
        }
    }

    fn timeout_message(&self) -> String {
        format!("it accepted the connection but did not answer within {:?}", self.answer)
    }
}

/// Returns whether two addresses name the same host and port in the same spelling.
fn same_host(one: &str, other: &str) -> bool {
    let host_and_port = |text: &str| {
        let uri: http::Uri = text.parse().ok()?;
        Some((uri.host()?.to_ascii_lowercase(), uri.port_u16().unwrap_or(80)))
    };
    host_and_port(one).is_some_and(|one| host_and_port(other) == Some(one))
}

fn refused(status: u16, body: Option<&[u8]>) -> String {
    let fix = if matches!(status, 401 | 403) { "; check the runtime's secret" } else { "" };
    let body = body.unwrap_or_default();
    let message = printable(&body[..body.len().min(ANSWER_SHOWN)]);
    let message = message.trim();
    if message.is_empty() {
        format!("it answered {status}{fix}")
    } else {
        format!("it answered {status}{fix}: {message}")
    }
}

/// Returns an error and its causes: reqwest's own text omits the causes.
fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// The stream that a WebSocket runs over.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// An open connection.
pub(super) enum EndpointConnection {
    Socket(Box<Socket>),
    Events(Box<Events>),
    Link(LinkConnection),
}

impl EndpointConnection {
    /// Sends waiting frames and, if `reading`, returns the received events: some, or none while a message that is longer than [`READ`] is
    /// incomplete. Cancellation safe: nothing is lost.
    pub(super) async fn next(&mut self, reading: bool) -> Vec<EndpointEvent> {
        match self {
            Self::Socket(socket) => std::future::poll_fn(|cx| socket.poll(cx, reading)).await,
            Self::Events(events) if reading => events.next().await,
            Self::Events(events) => {
                events.pause();
                std::future::pending().await
            }
            Self::Link(link) if reading => link.next(BATCH, BATCH_BYTES).await,
            Self::Link(_) => std::future::pending().await,
        }
    }

    /// Returns the number of bytes held of an incomplete message.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Socket(socket) => socket.stream.get_ref().held,
            Self::Events(events) => events.sse.held(),
            Self::Link(_) => 0,
        }
    }

    /// Queues a frame, which later calls of [`next`](Self::next) send. An event stream accepts none.
    pub(super) fn send(&mut self, frame: Bytes) {
        match self {
            Self::Socket(socket) => socket.send(frame),
            Self::Link(link) => link.send(&frame),
            Self::Events(_) => {}
        }
    }

    /// Sends waiting frames and a close message. Takes `within` at most.
    pub(super) async fn close(self, within: Duration) {
        if let Self::Socket(mut socket) = self {
            let closing = async {
                while socket.lost.is_none() && !(socket.waiting.is_empty() && socket.flushed) {
                    std::future::poll_fn(|cx| match socket.write(cx) {
                        Err(reason) => {
                            socket.lost = Some(reason);
                            Poll::Ready(())
                        }
                        Ok(()) if socket.waiting.is_empty() && socket.flushed => Poll::Ready(()),
                        Ok(()) => Poll::Pending,
                    })
                    .await;
                }
                let _ = socket.stream.close(None).await;
            };
            let _ = timeout(within, closing).await;
        }
    }
}

/// A connection with a limit on the bytes to read, and a count of the bytes read.
struct Metered {
    inner: Box<dyn Duplex>,
    /// Number of bytes that may still be read; the last read may exceed it.
    allowance: usize,
    /// Number of bytes received since the last complete message.
    held: usize,
    /// Total number of bytes received.
    received: u64,
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        // The reader checks `may`, and polls again.
        if self.allowance == 0 {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let received = buf.filled().len() - before;
        self.allowance = self.allowance.saturating_sub(received);
        self.held += received;
        self.received += received as u64;
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A WebSocket. Reading and writing proceed independently: neither waits for the other.
pub(super) struct Socket {
    stream: WebSocketStream<Metered>,
    waiting: VecDeque<Bytes>,
    /// Size of the waiting frames, in bytes.
    bytes: usize,
    write_max: usize,
    line_max: usize,
    flushed: bool,
    lost: Option<String>,
    watch: LivenessWatch,
    /// Number of received bytes at the last check.
    received: u64,
    /// `true` if a ping has to be sent.
    ping: bool,
}

impl Socket {
    fn send(&mut self, mut frame: Bytes) {
        if frame.last() == Some(&b'\n') {
            frame.truncate(frame.len() - 1);
        }
        if self.bytes > self.write_max {
            self.lost.get_or_insert_with(|| "it does not read its input".to_owned());
            return;
        }
        self.bytes += frame.len();
        self.waiting.push_back(frame);
    }

    fn poll(&mut self, cx: &mut Context<'_>, reading: bool) -> Poll<Vec<EndpointEvent>> {
        if let Some(reason) = self.lost.take() {
            return Poll::Ready(vec![EndpointEvent::Lost(reason)]);
        }
        let written = self.write(cx);
        let (mut events, mut bytes) = (Vec::new(), 0);
        self.stream.get_mut().allowance = READ;
        while reading && events.len() < BATCH && bytes < BATCH_BYTES {
            match self.stream.poll_next_unpin(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(message @ (Message::Text(_) | Message::Binary(_))))) => {
                    let data = message.into_data();
                    self.stream.get_mut().held = 0;
                    bytes += data.len();
                    events.push(EndpointEvent::Frame(SseItem::Data(data)));
                }
                Poll::Ready(Some(Ok(Message::Close(close)))) => {
                    let reason = close.map_or_else(String::new, |close| {
                        format!(" ({} {})", u16::from(close.code), printable(close.reason.as_bytes()))
                    });
                    events.push(EndpointEvent::Lost(format!("it closed the connection{reason}")));
                    return Poll::Ready(events);
                }
                Poll::Ready(Some(Ok(other))) => {
                    let stream = self.stream.get_mut();
                    stream.held = stream.held.saturating_sub(other.len());
                    // The next read or flush sends the response to a ping.
                    self.flushed = false;
                }
                Poll::Ready(Some(Err(WsError::Capacity(error)))) => {
                    // The bytes of the message were not read, and the next message cannot be found: only a new connection can recover.
                    let reason = format!("it sent a message over the limit of {} bytes", self.line_max);
                    let dropped = match error {
                        CapacityError::MessageTooLong { size, .. } => size as u64,
                        CapacityError::TooManyHeaders => 0,
                    };
                    events.push(EndpointEvent::Frame(SseItem::Cut { head: Bytes::new(), dropped }));
                    events.push(EndpointEvent::Lost(reason));
                    return Poll::Ready(events);
                }
                Poll::Ready(Some(Err(error))) => {
                    events.push(EndpointEvent::Lost(error.to_string()));
                    return Poll::Ready(events);
                }
                Poll::Ready(None) => {
                    events.push(EndpointEvent::Lost("it closed the connection".into()));
                    return Poll::Ready(events);
                }
            }
        }
        if let Some(silence) = self.watched(cx, reading) {
            events.push(EndpointEvent::Lost(silence));
            return Poll::Ready(events);
        }
        match written {
            // Its last messages come first: they may contain the reason for a broken pipe.
            Err(reason) if events.is_empty() => Poll::Ready(vec![EndpointEvent::Lost(reason)]),
            Err(reason) => {
                self.lost = Some(reason);
                Poll::Ready(events)
            }
            Ok(()) if events.is_empty() && (!reading || self.stream.get_ref().allowance > 0) => Poll::Pending,
            Ok(()) => Poll::Ready(events),
        }
    }

    /// Checks that the other side is alive; returns the reason if it counts as lost.
    fn watched(&mut self, cx: &mut Context<'_>, reading: bool) -> Option<String> {
        if !reading {
            self.watch.pause();
            return None;
        }
        let received = self.stream.get_ref().received;
        if std::mem::replace(&mut self.received, received) != received {
            self.watch.on_input();
        }
        while let Poll::Ready(silence) = self.watch.poll(cx) {
            match silence {
                Silence::Ask => self.ping = true,
                Silence::Dead => return Some(self.watch.message()),
            }
            // If the ping cannot be written now, the endpoint does not read other frames either.
            self.write(cx).err().map(|reason| self.lost.get_or_insert(reason));
        }
        None
    }

    /// Writes as much as possible without waiting.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        while !self.waiting.is_empty() {
            match self.stream.poll_ready_unpin(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            let Some(frame) = self.waiting.pop_front() else { break };
            self.bytes -= frame.len();
            self.flushed = false;
            let message = match Utf8Bytes::try_from(frame.clone()) {
                Ok(text) => Message::Text(text),
                Err(_) => Message::Binary(frame),
            };
            self.stream.start_send_unpin(message).map_err(|error| error.to_string())?;
        }
        if self.ping {
            match self.stream.poll_ready_unpin(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            (self.ping, self.flushed) = (false, false);
            self.stream.start_send_unpin(Message::Ping(Bytes::new())).map_err(|error| error.to_string())?;
        }
        if !self.flushed {
            match self.stream.poll_flush_unpin(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// An event stream.
pub(super) struct Events {
    answer: reqwest::Response,
    sse: SseReader,
    watch: LivenessWatch,
    /// The time when something last arrived, or could have arrived.
    last: Instant,
    silence: Duration,
    /// The request that the stream is the response to: if the server is alive, it also responds to another one.
    again: reqwest::RequestBuilder,
    probe: Option<Probe>,
}

/// A request to test the server; `true` if there is any response.
type Probe = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Events {
    async fn next(&mut self) -> Vec<EndpointEvent> {
        let mut frames = Vec::new();
        loop {
            let (watch, probe) = (&mut self.watch, &mut self.probe);
            // Cancellation safe: a chunk is received and processed without an await in between.
            tokio::select! {
                biased;
                chunk = self.answer.chunk() => match chunk {
                    Ok(Some(chunk)) => {
                        self.watch.on_input();
                        self.last = Instant::now();
                        self.sse.feed(&chunk, &mut frames);
                        return frames.into_iter().map(EndpointEvent::Frame).collect();
                    }
                    Ok(None) => return vec![EndpointEvent::Lost("its event stream ended".into())],
                    Err(error) => return vec![EndpointEvent::Lost(chain(&error))],
                },
                lives = probed(probe) => {
                    self.probe = None;
                    if lives && self.last.elapsed() < self.silence {
                        self.watch.on_input();
                    }
                }
                silence = std::future::poll_fn(|cx| watch.poll(cx)) => match silence {
                    // The beginning of the response is enough; the rest is never read.
                    Silence::Ask => {
                        let probe = self.again.try_clone().map(|again| async move { again.send().await.is_ok() });
                        self.probe = probe.map(|probe| Box::pin(probe) as Probe);
                    }
                    Silence::Dead if self.last.elapsed() >= self.silence => {
                        return vec![EndpointEvent::Lost(format!("its event stream has been silent for {:?}", self.silence))];
                    }
                    Silence::Dead => return vec![EndpointEvent::Lost(self.watch.message())],
                },
            }
        }
    }

    /// Pauses the watch while the connection is not read: no silence is counted.
    fn pause(&mut self) {
        self.watch.pause();
        (self.last, self.probe) = (Instant::now(), None);
    }
}

/// Returns the result of a probe; never returns if none is in progress. Cancellation safe.
async fn probed(probe: &mut Option<Probe>) -> bool {
    match probe {
        Some(probe) => probe.await,
        None => std::future::pending().await,
    }
}

/// A request in progress.
pub(super) type Fetching = Pin<Box<dyn Future<Output = (u64, Result<(HttpReply, ReplyCharge), String>)> + Send>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_secret_is_sent_to_a_remote_at_the_same_place_only() {
        for (one, other, same) in [
            ("ws://127.0.0.1:7431/", "http://127.0.0.1:7431", true),
            ("ws://localhost:7431/", "http://LOCALHOST:7431/x", true),
            ("ws://127.0.0.1/", "http://127.0.0.1:80", true),
            ("ws://127.0.0.1:7431/", "http://127.0.0.1:7432", false),
            ("ws://localhost:7431/", "http://127.0.0.1:7431", false),
            ("ws://[::1]:7431/", "http://127.0.0.1:7431", false),
            ("ws://127.0.0.1:7431/", "no address", false),
        ] {
            assert_eq!(same_host(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn endpoint_secret_is_sent_in_a_header_or_refused() {
        assert_eq!(bearer("s3cret").unwrap(), "Bearer s3cret");
        assert_eq!(basic("pass:word").unwrap(), "Basic b3BlbmNvZGU6cGFzczp3b3Jk");
        assert!(check_secret("ok").is_ok());
        assert!(check_secret("a\r\nb").is_err() && check_secret("").is_err());
    }
}
