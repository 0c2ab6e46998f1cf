//! Our own accept loop. One file: the socket, who may write to it when, and the tests that hold hyper to what that needs.
//!
//! hyper's HTTP/1.1 server with limits cuts slow, silent and oversize clients, which `axum::serve` does not.
//!
//! **One socket, two users.** hyper reads and writes through [`ListenSocket`], which holds the stream in an [`Arc`]. Every
//! request carries a [`ConnHandle`] with the same `Arc`, so that a streaming surface can, once hyper has written the
//! response's head, write to the socket itself: no body type, no chunk per event, no task in between.
//!
//! - *Server-sent events*: answer with a [`ConnHandle::hold`] body and await [`take_over`]. hyper flushes the IO object only
//!   when its own write buffer is empty; so the first flush after hyper has asked the body for data means that the head is
//!   out. From then on hyper writes nothing until the held body ends; it still reads, and so notices when the client leaves.
//!   Wait on the stream with `ready`, `readable` or `writable`: the `poll_*_ready` functions keep one waker each, and they
//!   are hyper's.
//! - *WebSocket*: `hyper::upgrade::on`, then [`Upgrade::from_hyper`], which gives the stream and what hyper had read ahead.
//!
//! **TLS** ([`tls`]) is taken off before all that: what the surfaces write to is then one end of a pair within the process.

mod h2;
mod stream;
pub mod tls;
pub mod unauthenticated;

use crate::router::stop::stopping;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Frame, Incoming};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Sleep;
use tracing::Instrument as _;

pub use self::stream::Stream;
use self::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use crate::ledger::Ledger;
use crate::metrics::metrics;
use crate::spans;

/// Longest body of somebody without a proof, in bytes, whatever the route takes; a longer one is answered 413.
pub const STRANGER_BODY: usize = 4 << 10;
/// Connections at once; past it new ones wait in the kernel's backlog until one ends.
pub const MAX_CONNECTIONS: usize = 16 << 10;
/// Most that hyper buffers of one connection, in bytes; a longer request head is answered 431.
const BUFFER: usize = 32 << 10;
/// Headers of one request; more are answered 431.
const HEADERS: usize = 64;
/// How long accepting pauses when the process has no file descriptor, or the kernel no memory, left for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What the listener allows. The defaults are what is served with; tests use shorter times.
#[derive(Clone, Debug)]
pub struct ListenLimits {
    /// How long a request's head may take, the first byte and the wait for the next request on an idle connection included.
    pub head: Duration,
    /// Connections at once.
    pub connections: usize,
    /// How long requests under way may take to finish once the gateway stops; then they are cut.
    pub drain: Duration,
    /// How long a client may take nothing of a response; then its connection is cut, and what waits for it let go of.
    pub stall: Duration,
    /// Connections without a proof; shared by all listeners of a gateway.
    pub strangers: UnauthenticatedConnections,
}

/// How long a client may take nothing of a response that waits for it.
const WRITE_STALL: Duration = Duration::from_secs(30);

impl ListenLimits {
    /// The defaults, with the accounts of `ledger`.
    pub fn over(ledger: &Ledger) -> Self {
        Self {
            head: Duration::from_secs(5),
            connections: MAX_CONNECTIONS,
            drain: Duration::from_secs(5),
            stall: WRITE_STALL,
            strangers: UnauthenticatedConnections::new(ledger),
        }
    }
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self::over(&Ledger::default())
    }
}

/// The IO object that hyper holds.
#[derive(Debug)]
pub struct ListenSocket {
    stream: Arc<Stream>,
    flushed: Arc<FlushWatch>,
    slot: Arc<Slot>,
    stall: Duration,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// A connection's place among [`ListenLimits::connections`]; whoever serves the connection keeps it.
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

/// The connection a request came on. In every request's extensions.
#[derive(Clone, Debug)]
pub struct ConnHandle {
    /// The stream. Write to it only after [`take_over`], or after an upgrade.
    pub socket: Arc<Stream>,
    /// Tells when hyper has written the head of a held response.
    pub flushed: Arc<FlushWatch>,
    /// The other end. Never a reason to trust anybody.
    pub peer: SocketAddr,
    /// Keeps the connection counted for as long as somebody serves it.
    pub slot: Arc<Slot>,
    /// Its place among those without a proof.
    pub stranger: Arc<UnauthenticatedConnection>,
}

/// hyper has written nothing of a held response yet, or there is none.
const IDLE: u8 = 0;
/// hyper has asked the held body for data: its head is in the write buffer, or out.
const ARMED: u8 = 1;
/// The write buffer was empty after that: the head is out.
const READY: u8 = 2;
/// hyper has let go of the held body: the client left, or the connection broke.
const GONE: u8 = 3;

/// How far hyper is with a held response.
#[derive(Debug, Default)]
pub struct FlushWatch {
    state: AtomicU8,
    changed: Notify,
}

impl FlushWatch {
    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn flushed(&self) {
        if self.state.compare_exchange(ARMED, READY, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until hyper has let go of the held body: its client left or the connection broke. Cancellation safe.
    pub async fn gone(&self) {
        self.until(|state| state == GONE).await;
    }

    async fn until(&self, done: impl Fn(u8) -> bool) -> u8 {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before looking, so that a change between the two is not missed.
            changed.as_mut().enable();
            let state = self.state.load(Ordering::Acquire);
            if done(state) {
                return state;
            }
            changed.await;
        }
    }
}

impl ConnHandle {
    /// A response body that hyper waits on while somebody else writes the stream, and what ends it: drop [`HeldCharge`] to let
    /// hyper end the response as usual. HTTP/1.1 clients expect chunks (hyper's head says so and hyper writes the last
    /// chunk), so frame what you write accordingly.
    pub fn hold(&self) -> (Body, HeldCharge) {
        self.flushed.set(IDLE);
        let (release, released) = oneshot::channel();
        (Body::new(HeldBody { watch: Arc::clone(&self.flushed), released }), HeldCharge { _release: release })
    }
}

/// Keeps a held response open.
#[derive(Debug)]
pub struct HeldCharge {
    _release: oneshot::Sender<()>,
}

struct HeldBody {
    watch: Arc<FlushWatch>,
    released: oneshot::Receiver<()>,
}

impl hyper::body::Body for HeldBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let armed = self.watch.state.compare_exchange(IDLE, ARMED, Ordering::AcqRel, Ordering::Acquire);
        if armed.is_ok() {
            self.watch.changed.notify_waiters();
        }
        Pin::new(&mut self.released).poll(cx).map(|_| None)
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.watch.set(GONE);
    }
}

/// Waits until hyper has written the whole head of a response whose body is [`held`](ConnHandle::hold); from then until
/// [`HeldCharge`] is dropped the stream is the caller's to write. Cancellation safe.
///
/// # Errors
/// `BrokenPipe` if the client left, or the connection broke, before that.
pub async fn take_over(handle: &ConnHandle) -> io::Result<Arc<Stream>> {
    match handle.flushed.until(|state| state >= READY).await {
        READY => Ok(Arc::clone(&handle.socket)),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// An upgraded connection, hyper out of the way.
#[derive(Debug)]
pub struct Upgrade {
    /// The stream, all the caller's.
    pub socket: Arc<Stream>,
    /// What hyper had read past the request's head: comes before anything read from the stream.
    pub read_ahead: Bytes,
    /// Keep it while serving.
    pub slot: Arc<Slot>,
}

impl Upgrade {
    /// Takes hyper's wrapping off. `None` if the connection did not come through this listener.
    pub fn from_hyper(upgraded: Upgraded) -> Option<Self> {
        let parts = upgraded.downcast::<TokioIo<ListenSocket>>().ok()?;
        let socket = parts.io.into_inner();
        Some(Self { socket: socket.stream, read_ahead: parts.read_buf, slot: socket.slot })
    }
}

impl AsyncRead for ListenSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_buf(buf) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl ListenSocket {
    fn poll_try<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&Stream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        while self.stream.poll_write_ready(cx)?.is_ready() {
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => {
                    self.stalled = None;
                    return Poll::Ready(outcome);
                }
            }
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        ready!(stalled.as_mut().poll(cx));
        metrics().stalled.inc();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for ListenSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper comes here only with an empty write buffer: see the module's first lines.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match socket2::SockRef::from(&*self.stream).shutdown(std::net::Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// What is served: axum's router, and in tests whatever answers.
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

/// Serves `app` on every listener until `stop` turns true; then accepts nothing more, lets what is under way finish, and
/// cuts what is not done after [`ListenLimits::drain`]. Returns when all is over; if dropped, accepting ends and connections are cut.
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
            // Only latency is lost if the system refuses.
            let _ = stream.set_nodelay(true);
            connection(stream.into(), peer, Arc::new(slot), app.clone(), limits.clone(), stopping.clone())
        };
        accepting.spawn(accept(listener, drain, Arc::clone(&slots), stop.clone(), each));
    }
    // Each ends by itself once told to stop; a listener that broke has said so, and the others go on.
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
        // Whatever has ended is let go of, or the set would grow for ever.
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
            // The connection died in the backlog; there will be others.
            Err(error) if died_early(&error) => {}
            // No descriptor or memory left: the listener stays readable, so without a pause this would spin.
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

/// Serves one connection of HTTP/1.1 until it ends. Both ends of a pair within the process are served as sockets are.
async fn connection<A: ListenApp>(
    stream: Stream,
    peer: SocketAddr,
    slot: Arc<Slot>,
    app: A,
    limits: ListenLimits,
    mut stop: watch::Receiver<bool>,
) {
    let stranger = Arc::new(limits.strangers.admit(peer.ip()).await);
    let handle =
        ConnHandle { socket: Arc::new(stream), flushed: Arc::default(), peer, slot, stranger: Arc::clone(&stranger) };
    let socket = ListenSocket {
        stream: Arc::clone(&handle.socket),
        flushed: Arc::clone(&handle.flushed),
        slot: Arc::clone(&handle.slot),
        stall: limits.stall,
        stalled: None,
    };
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(handle.clone());
        tower::ServiceExt::oneshot(app.clone(), request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stranger.cut() => return,
        () = stopping(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients leave in the middle all the time; what they sent is not worth a line each.
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
        ListenLimits { head: Duration::from_millis(300), drain: Duration::from_millis(300), ..ListenLimits::default() }
    }

    /// No timeouts that a test could meet by accident.
    fn patient() -> ListenLimits {
        ListenLimits { head: LONG, drain: LONG, ..ListenLimits::default() }
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
    async fn whoever_is_silent_slow_or_idle_is_cut_and_nobody_else() {
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
    async fn a_head_too_long_or_with_too_many_headers_is_refused() {
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
    async fn http_2_is_not_spoken() {
        let served = served(ok(), patient()).await;
        let mut stream = client(&served, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        assert!(!rest(&mut stream).await.starts_with(b"HTTP/1.1 2"));
    }

    #[tokio::test]
    async fn past_the_limit_new_connections_wait_for_others_to_end() {
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
    async fn a_stop_lets_requests_finish_closes_idle_connections_and_cuts_what_hangs() {
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
    async fn what_a_surface_writes_itself_comes_between_the_head_and_the_end() {
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
    async fn a_surface_waits_until_the_head_is_out() {
        // Less than hyper buffers, so that it asks the body at once; more than the two small kernel buffers take.
        const PAD: usize = 28 << 10;
        let (told, mut tell) = tokio::sync::mpsc::channel(1);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
                socket2::SockRef::from(&*handle.socket).set_send_buffer_size(4 << 10).unwrap();
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
    async fn a_surface_learns_that_its_client_left() {
        let (told, mut tell) = tokio::sync::mpsc::channel(2);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
                let (body, held) = handle.hold();
                tokio::spawn(async move {
                    take_over(&handle).await.unwrap();
                    told.send("over").await.unwrap();
                    handle.flushed.gone().await;
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
    async fn no_stream_is_taken_over_for_a_response_that_has_no_body() {
        let (told, mut tell) = tokio::sync::mpsc::channel(1);
        let hold = move |axum::Extension(handle): axum::Extension<ConnHandle>| {
            let told = told.clone();
            async move {
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
    async fn an_upgrade_gives_the_stream_and_what_was_read_ahead() {
        let upgrade = |mut request: axum::extract::Request| async move {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let Upgrade { socket, read_ahead, slot } = Upgrade::from_hyper(upgrade.await.unwrap()).unwrap();
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
