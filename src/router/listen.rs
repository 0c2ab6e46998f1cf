//! The accept loop, and HTTP/1.1 on a connection: the common part of both listeners, plain and TLS.
//!
//! hyper's HTTP/1.1 server with limits disconnects slow, silent and oversize clients, which `axum::serve` does not. Every request carries
//! a [`ConnHandle`]. On a plain connection the handle has the socket as well (`raw`): a streaming frontend writes to it itself. Over TLS
//! ([`tls`], and `h2` for HTTP/2) hyper writes every response.

mod address_shares;
mod h2;
mod raw;
mod stall;
pub mod tls;
mod tls_limits;
pub mod unauthenticated;

use crate::stop::stopping;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tracing::Instrument as _;

pub use self::raw::{FlushWatch, HeldCharge, ListenSocket, RawHandle, take_over};
use self::tls::TlsSocket;
use self::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use plexus_ledger::Ledger;
use plexus_metrics::metrics;
use plexus_metrics::spans;

/// Maximum size of the body of an unauthenticated request, in bytes, on any route; a longer one gets the response 413.
pub const UNAUTHENTICATED_BODY: usize = 4 << 10;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Maximum number of open connections; beyond it new ones wait in the kernel's backlog until one ends.
pub const MAX_CONNECTIONS: usize = 16 << 10;
/// Maximum size of hyper's buffer of one connection, in bytes; a longer request head gets the response 431.
const BUFFER: usize = 32 << 10;
/// Maximum number of headers of one request; more get the response 431.
const HEADERS: usize = 64;
/// Time that accepting pauses when the process has no file descriptor, or the kernel no memory, for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The limits of the listener. The defaults are used in production; tests use shorter times.
#[derive(Clone, Debug)]
pub struct ListenLimits {
    /// Maximum time for the head of a connection's first request, including the first byte.
    pub head: Duration,
    /// Maximum time for each further head, including the wait for it on an idle connection.
    pub idle: Duration,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum time for requests in progress to finish once the gateway stops; then they are aborted.
    pub drain: Duration,
    /// Maximum time that a client may read nothing of a response; then its connection is closed, and waiting data is dropped.
    pub stall: Duration,
    /// The unauthenticated connections; shared by all listeners of a gateway.
    pub strangers: UnauthenticatedConnections,
}

/// Time between two requests of a connection. A client that keeps connections open for longer than the gateway finds some of them closed
/// just as it sends a request; many keep them for 4 to 15 s.
const IDLE: Duration = Duration::from_secs(30);

/// Maximum time that a client may read nothing of a waiting response.
const WRITE_STALL: Duration = Duration::from_secs(30);

impl ListenLimits {
    /// Returns the defaults, with the accounts of `ledger`.
    pub fn with_ledger(ledger: &Ledger) -> Self {
        Self {
            head: Duration::from_secs(5),
            idle: IDLE,
            connections: MAX_CONNECTIONS,
            drain: Duration::from_secs(5),
            stall: WRITE_STALL,
            strangers: UnauthenticatedConnections::new(ledger),
        }
    }
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self::with_ledger(&Ledger::default())
    }
}

/// A connection's place among [`ListenLimits::connections`]; held by the code that serves the connection.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        metrics().connections.inc();
        Self { _permit: permit }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        metrics().connections.dec();
    }
}

/// The connection of a request, in every request's extensions.
#[derive(Clone, Debug)]
pub struct ConnHandle {
    /// The address of the other end. Never a reason for trust.
    pub peer: SocketAddr,
    /// The connection's place among the unauthenticated ones.
    pub stranger: Arc<UnauthenticatedConnection>,
    /// The socket of a plain connection; `None` over TLS.
    pub raw: Option<RawHandle>,
}

/// A byte stream to a client that hyper, or the WebSocket on it, reads and writes.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// An upgraded connection, which hyper no longer uses.
pub struct Upgrade {
    /// The stream of its bytes.
    pub io: UpgradedIo,
    /// The bytes that hyper had read past the request's head: they precede all bytes read from `io`.
    pub read_ahead: Bytes,
}

/// The stream of the bytes of an upgraded connection.
pub enum UpgradedIo {
    /// The socket of a plain connection.
    Raw {
        /// The socket, which only the caller uses now.
        socket: Arc<TcpStream>,
        /// The connection's place, to be held while serving.
        slot: Arc<Slot>,
    },
    /// The stream of a TLS connection.
    Streamed(Box<dyn ByteStream>),
}

impl Upgrade {
    /// Removes hyper's wrapper. `None` if the connection did not come through a listener of the gateway.
    pub fn from_hyper(upgraded: Upgraded) -> Option<Self> {
        let upgraded = match upgraded.downcast::<TokioIo<ListenSocket>>() {
            Ok(parts) => {
                let (socket, slot) = parts.io.into_inner().into_parts();
                return Some(Self { io: UpgradedIo::Raw { socket, slot }, read_ahead: parts.read_buf });
            }
            Err(upgraded) => upgraded,
        };
        let parts = upgraded.downcast::<TokioIo<TlsSocket>>().ok()?;
        let stream = parts.io.into_inner().upgraded();
        Some(Self { io: UpgradedIo::Streamed(Box::new(stream)), read_ahead: parts.read_buf })
    }
}

/// Binds a listener.
///
/// # Errors
/// The error of the system.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port of a killed gateway is in TIME_WAIT; the next gateway must not wait for it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The service: axum's router, and in tests any other service.
pub trait ListenApp:
    tower::Service<Request<Incoming>, Response = Response<Body>, Error = std::convert::Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<A> ListenApp for A where
    A: tower::Service<Request<Incoming>, Response = Response<Body>, Error = std::convert::Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Serves `app` on every listener until `stop` becomes `true`; then accepts no more connections, lets requests in progress finish, and
/// aborts those that are unfinished after [`ListenLimits::drain`]. Returns when all connections have ended; if dropped, accepting ends
/// and connections are closed.
pub async fn serve<A: ListenApp>(
    listeners: Vec<TcpListener>,
    app: A,
    limits: ListenLimits,
    stop: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        let (app, stopping, limits) = (app.clone(), stop.clone(), limits.clone());
        let drain = limits.drain;
        let each = move |stream: TcpStream, peer, slot| {
            plain(stream, peer, slot, app.clone(), limits.clone(), stopping.clone())
        };
        accepting.spawn(accept(listener, drain, Arc::clone(&slots), stop.clone(), each));
    }
    // Each task ends by itself on `stop`; a listener that failed has logged it, and the others continue.
    while accepting.join_next().await.is_some() {}
}

async fn accept<F>(
    listener: TcpListener,
    drain: Duration,
    slots: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
    each: impl Fn(TcpStream, SocketAddr, Slot) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = tokio::task::JoinSet::new();
    let mut pausing = false;
    loop {
        // Ended connections are removed, or the set would grow without limit.
        while connections.try_join_next().is_some() {}
        let next = async {
            let permit = Arc::clone(&slots).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = stopping(&mut stop) => break,
        };
        let Ok(permit) = permit else { break };
        match accepted {
            Ok((stream, peer)) => {
                pausing = false;
                connections.spawn(each(stream, peer, Slot::new(permit)).instrument(spans::connection(peer)));
            }
            // The connection was closed in the backlog; others will follow.
            Err(error) if died_early(&error) => {}
            // Without a descriptor or memory, the listener stays readable, so without a pause this would spin.
            Err(error) => {
                if !pausing {
                    tracing::warn!(%error, "no new connection can be accepted now; open connections continue");
                }
                pausing = true;
                tokio::select! {
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    () = stopping(&mut stop) => break,
                }
            }
        }
    }
    drop(listener);
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, finish).await.is_err() {
        tracing::warn!(cut = connections.len(), "connections did not end in time and are closed");
        connections.shutdown().await;
    }
}

fn died_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Serves a plain connection until it ends.
async fn plain<A: ListenApp>(
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
    app: A,
    limits: ListenLimits,
    stop: watch::Receiver<bool>,
) {
    // If the system refuses, only latency suffers.
    let _ = stream.set_nodelay(true);
    let (socket, raw) = ListenSocket::new(stream, Arc::new(slot), limits.stall);
    connection(socket, peer, Some(raw), app, limits, stop).await;
}

/// Serves one connection of HTTP/1.1 until it ends, or is upgraded.
async fn connection<I, A>(
    io: I,
    peer: SocketAddr,
    raw: Option<RawHandle>,
    app: A,
    limits: ListenLimits,
    mut stop: watch::Receiver<bool>,
) where
    I: ByteStream + 'static,
    A: ListenApp,
{
    let stranger = Arc::new(limits.strangers.admit(peer.ip()).await);
    let handle = ConnHandle { peer, stranger: Arc::clone(&stranger), raw };
    let requested = Arc::new(Notify::new());
    let (first_request, head) = (Arc::clone(&requested), limits.head);
    let no_request = async move {
        if tokio::time::timeout(head, first_request.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        requested.notify_one();
        request.extensions_mut().insert(handle.clone());
        tower::ServiceExt::oneshot(app.clone(), request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stranger.cut() => return,
        () = no_request => return,
        () = stopping(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients often disconnect early; this is not worth a line of the log each.
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A wait that only a failure uses up.
    const LONG: Duration = Duration::from_secs(20);

    struct Served {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        done: tokio::task::JoinHandle<()>,
    }

    async fn served(app: axum::Router, limits: ListenLimits) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        Served { address, stop, done: tokio::spawn(serve(vec![listener], app, limits, stopped)) }
    }

    fn short() -> ListenLimits {
        let short = Duration::from_millis(300);
        ListenLimits { head: short, idle: short, drain: short, ..ListenLimits::default() }
    }

    /// No timeouts that a test could meet by accident.
    fn patient() -> ListenLimits {
        ListenLimits { head: LONG, idle: LONG, drain: LONG, ..ListenLimits::default() }
    }

    async fn client(served: &Served, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn rest(stream: &mut TcpStream) -> Vec<u8> {
        let mut all = Vec::new();
        // A reset is an end, too.
        let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut all)).await.expect("the connection was not closed");
        all
    }

    async fn until(stream: &mut TcpStream, end: &str) -> String {
        let mut all = Vec::new();
        let read = async {
            while !all.ends_with(end.as_bytes()) {
                let mut byte = [0];
                assert_eq!(stream.read(&mut byte).await.unwrap(), 1, "{}", String::from_utf8_lossy(&all));
                all.push(byte[0]);
            }
        };
        tokio::time::timeout(LONG, read).await.expect("it never came");
        String::from_utf8(all).unwrap()
    }

    const OK: &str = "GET /ok HTTP/1.1\r\nhost: x\r\n\r\n";

    fn ok() -> axum::Router {
        axum::Router::new().route("/ok", get(|| async { "fine" }))
    }

    #[tokio::test]
    async fn listener_cuts_who_is_silent_slow_or_idle_and_nobody_else() {
        let served = served(ok(), short()).await;
        let mut cut = Vec::new();
        for text in ["", "G", "GET /ok HTTP/1.1\r\nhost: x\r\n", OK] {
            cut.push(client(&served, text).await);
        }
        let mut dripping = client(&served, "GET /ok HTTP/1.1\r\nx: ").await;
        let drip = async {
            // Ends when the other side has closed.
            while dripping.write_all(b"y").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, drip).await.expect("a dripping head is cut");
        for (n, mut stream) in cut.into_iter().enumerate() {
            let text = rest(&mut stream).await;
            assert_eq!(text.ends_with(b"fine"), n == 3, "{}", String::from_utf8_lossy(&text));
        }
        let mut good = client(&served, OK).await;
        assert!(until(&mut good, "fine").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn request_head_too_long_or_with_too_many_headers_is_refused() {
        let served = served(ok(), patient()).await;
        let long = format!("GET /ok HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "y".repeat(70 << 10));
        let many = format!("GET /ok HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(HEADERS));
        for text in [long, many] {
            let mut stream = TcpStream::connect(served.address).await.unwrap();
            // It may close before it has read all of it.
            let _ = stream.write_all(text.as_bytes()).await;
            let answer = rest(&mut stream).await;
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
        }
        let fitting = format!("GET /ok HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(HEADERS - 1));
        assert!(until(&mut client(&served, &fitting).await, "fine").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn plain_listener_does_not_speak_http_2() {
        let served = served(ok(), patient()).await;
        let mut stream = client(&served, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        assert!(!rest(&mut stream).await.starts_with(b"HTTP/1.1 2"));
    }

    #[tokio::test]
    async fn connections_past_the_limit_wait_for_others_to_end() {
        let served = served(ok(), ListenLimits { connections: 1, ..patient() }).await;
        let mut first = client(&served, OK).await;
        until(&mut first, "fine").await;
        let mut second = client(&served, OK).await;
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(200), second.read(&mut byte)).await;
        assert!(early.is_err(), "there is a place for one");
        drop(first);
        until(&mut second, "fine").await;
    }

    #[tokio::test]
    async fn stop_lets_requests_finish_closes_idle_connections_and_cuts_what_hangs() {
        let (go, gate) = watch::channel(false);
        let slow = move || {
            let mut gate = gate.clone();
            async move {
                let _ = gate.wait_for(|go| *go).await;
                "done"
            }
        };
        let app = ok().route("/slow", get(slow)).route("/hang", get(std::future::pending::<&str>));
        let served = served(app, ListenLimits { drain: Duration::from_secs(1), ..patient() }).await;
        let mut idle = client(&served, OK).await;
        until(&mut idle, "fine").await;
        let mut slow = client(&served, "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut hung = client(&served, "GET /hang HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // A second exchange on the idle connection: by then the two before it are under way.
        idle.write_all(OK.as_bytes()).await.unwrap();
        until(&mut idle, "fine").await;
        served.stop.send(true).unwrap();
        assert!(rest(&mut idle).await.is_empty());
        go.send(true).unwrap();
        assert!(rest(&mut slow).await.ends_with(b"done"));
        assert!(rest(&mut hung).await.is_empty());
        tokio::time::timeout(LONG, served.done).await.expect("serving ends").unwrap();
        assert!(TcpStream::connect(served.address).await.is_err(), "nothing is accepted any more");
    }

    const HELD: &str = "GET /held HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Writes one chunk to the stream itself, then lets hyper end the response.
    fn held() -> axum::Router {
        let hold = |axum::Extension(handle): axum::Extension<ConnHandle>| async move {
            let handle = handle.raw.unwrap();
            let (body, held) = handle.hold();
            tokio::spawn(async move {
                let stream = take_over(&handle).await.unwrap();
                let mut rest: &[u8] = b"5\r\nhello\r\n";
                while !rest.is_empty() {
                    stream.writable().await.unwrap();
                    if let Ok(n) = stream.try_write(rest) {
                        rest = &rest[n..];
                    }
                }
                drop(held);
            });
            Response::new(body)
        };
        ok().route("/held", get(hold))
    }

    #[tokio::test]
    async fn raw_bytes_come_between_the_head_and_the_end() {
        let served = served(held(), patient()).await;
        let mut stream = client(&served, HELD).await;
        // Twice on one connection, and an ordinary request after it.
        for _ in 0..2 {
            let text = until(&mut stream, "0\r\n\r\n").await;
            assert!(text.starts_with("HTTP/1.1 200") && text.contains("transfer-encoding: chunked"), "{text}");
            assert!(text.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{text}");
            stream.write_all(HELD.as_bytes()).await.unwrap();
        }
        until(&mut stream, "0\r\n\r\n").await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        until(&mut stream, "fine").await;
    }

    #[tokio::test]
    async fn raw_socket_is_taken_over_once_the_head_is_out() {
        // Less than hyper buffers, so that it asks the body at once; more than the two small kernel buffers take.
        const PAD: usize = 28 << 10;
        let (told, mut tell) = tokio::sync::mpsc::channel(1);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
                socket2::SockRef::from(&*handle.raw.as_ref().unwrap().socket).set_send_buffer_size(4 << 10).unwrap();
                let handle = handle.raw.unwrap();
                let (body, held) = handle.hold();
                tokio::spawn(async move {
                    take_over(&handle).await.unwrap();
                    told.send(()).await.unwrap();
                    drop(held);
                });
                Response::builder().header("pad", "p".repeat(PAD)).body(body).unwrap()
            }
        };
        let served = served(axum::Router::new().route("/held", get(hold)), patient()).await;
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        let mut stream = socket.connect(served.address).await.unwrap();
        stream.write_all(HELD.as_bytes()).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(200), tell.recv()).await;
        assert!(early.is_err(), "the head cannot be out: nobody reads it");
        let text = until(&mut stream, "0\r\n\r\n").await;
        assert!(text.contains(&"p".repeat(PAD)) && text.ends_with("\r\n\r\n0\r\n\r\n"));
        assert_eq!(tokio::time::timeout(LONG, tell.recv()).await.unwrap(), Some(()));
    }

    #[tokio::test]
    async fn raw_response_tells_that_its_client_left() {
        let (told, mut tell) = tokio::sync::mpsc::channel(2);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
                let handle = handle.raw.unwrap();
                let (body, held) = handle.hold();
                tokio::spawn(async move {
                    take_over(&handle).await.unwrap();
                    told.send("over").await.unwrap();
                    handle.disconnected().await;
                    drop(held);
                    told.send("gone").await.unwrap();
                });
                Response::new(body)
            }
        };
        let served = served(axum::Router::new().route("/held", get(hold)), patient()).await;
        let stream = client(&served, HELD).await;
        assert_eq!(tell.recv().await, Some("over"));
        drop(stream);
        assert_eq!(tokio::time::timeout(LONG, tell.recv()).await.unwrap(), Some("gone"));
    }

    #[tokio::test]
    async fn raw_socket_is_not_taken_over_for_a_response_without_a_body() {
        let (told, mut tell) = tokio::sync::mpsc::channel(1);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
                let handle = handle.raw.unwrap();
                let (body, held) = handle.hold();
                tokio::spawn(async move {
                    told.send(take_over(&handle).await.is_err()).await.unwrap();
                    drop(held);
                });
                Response::new(body)
            }
        };
        let served = served(axum::Router::new().route("/held", get(hold)), patient()).await;
        let _stream = client(&served, "HEAD /held HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert_eq!(tokio::time::timeout(LONG, tell.recv()).await.unwrap(), Some(true));
    }

    #[tokio::test]
    async fn upgrade_gives_the_stream_and_what_was_read_ahead() {
        let upgrade = |mut request: axum::extract::Request| async move {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let Upgrade { io, read_ahead } = Upgrade::from_hyper(upgrade.await.unwrap()).unwrap();
                let UpgradedIo::Raw { socket, slot } = io else { panic!("it is a plain connection") };
                let mut got = read_ahead.to_vec();
                while !got.ends_with(b"!") {
                    socket.readable().await.unwrap();
                    let _ = socket.try_read_buf(&mut got);
                }
                socket.writable().await.unwrap();
                socket.try_write(&got).unwrap();
                drop(slot);
            });
            Response::builder()
                .status(101)
                .header("upgrade", "x")
                .header("connection", "upgrade")
                .body(Body::empty())
                .unwrap()
        };
        let served = served(axum::Router::new().route("/up", get(upgrade)), patient()).await;
        let head = "GET /up HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nearly, ";
        let mut stream = client(&served, head).await;
        until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"late!").await.unwrap();
        assert_eq!(until(&mut stream, "!").await, "early, late!");
    }
}
