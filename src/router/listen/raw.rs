//! **One socket, two users**: a plain connection's socket, to which hyper and a streaming frontend write in turn.
//!
//! hyper reads and writes through [`ListenSocket`], which holds the stream in an [`Arc`]. Every request of a plain connection carries a
//! [`RawHandle`] with the same `Arc`, so that a streaming frontend can write to the socket itself once hyper has written the response's
//! head: no body type, no chunk per event, no task in between.
//!
//! - *Server-sent events*: answer with a [`RawHandle::hold`] body and await [`take_over`]. hyper flushes the IO object only
//!   when its own write buffer is empty; so the first flush after hyper has asked the body for data means that the head is
//!   out. From then on hyper writes nothing until the held body ends; it still reads, and so notices when the client leaves.
//!   Wait on the stream with `ready`, `readable` or `writable`: the `poll_*_ready` functions keep one waker each, and they
//!   are hyper's.
//! - *WebSocket*: `hyper::upgrade::on`, then [`Upgrade::from_hyper`](super::Upgrade::from_hyper), which gives the stream and
//!   what hyper had read ahead.
//!
//! The tests of [`listen`](super) hold hyper to this.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

use super::Slot;
use super::stall::Stall;

/// The IO object that hyper uses.
#[derive(Debug)]
pub struct ListenSocket {
    stream: Arc<TcpStream>,
    flushed: Arc<FlushWatch>,
    slot: Arc<Slot>,
    stall: Stall,
}

/// The socket of a plain connection, beside hyper's use of it.
#[derive(Clone, Debug)]
pub struct RawHandle {
    /// The stream. Write to it only after [`take_over`], or after an upgrade.
    pub socket: Arc<TcpStream>,
    /// The signal that hyper has written the head of a held response.
    flushed: Arc<FlushWatch>,
    /// The connection's place, which counts it while it is served.
    _slot: Arc<Slot>,
}

/// The state before hyper has written anything of a held response, or without one.
const IDLE: u8 = 0;
/// The state after hyper has polled the held body: its head is in the write buffer, or written.
const ARMED: u8 = 1;
/// The state after the write buffer was empty: the head is written.
const READY: u8 = 2;
/// The state after hyper has dropped the held body: the client disconnected, or the connection failed.
const DROPPED: u8 = 3;

/// The progress of hyper with a held response.
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

    async fn until(&self, done: impl Fn(u8) -> bool) -> u8 {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that a change between the two is not missed.
            changed.as_mut().enable();
            let state = self.state.load(Ordering::Acquire);
            if done(state) {
                return state;
            }
            changed.await;
        }
    }
}

impl RawHandle {
    /// Returns a response body that hyper waits on while other code writes the stream, and the value that ends it: drop [`HeldCharge`] to
    /// let hyper end the response as usual. HTTP/1.1 clients expect chunks (hyper's head declares them and hyper writes the last chunk),
    /// so the written data must be framed accordingly.
    pub fn hold(&self) -> (Body, HeldCharge) {
        self.flushed.set(IDLE);
        let (release, released) = oneshot::channel();
        (Body::new(HeldBody { watch: Arc::clone(&self.flushed), released }), HeldCharge { _release: release })
    }

    /// Waits until hyper has dropped the held body: its client disconnected or the connection failed. Cancellation safe.
    pub async fn disconnected(&self) {
        self.flushed.until(|state| state == DROPPED).await;
    }
}

/// Holds a response open until it is dropped.
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
        self.watch.set(DROPPED);
    }
}

/// Waits until hyper has written the whole head of a response whose body is [`held`](RawHandle::hold); from then until [`HeldCharge`] is
/// dropped, only the caller writes to the stream. Cancellation safe.
///
/// # Errors
/// `BrokenPipe` if the client disconnected, or the connection failed, before that.
pub async fn take_over(handle: &RawHandle) -> io::Result<Arc<TcpStream>> {
    match handle.flushed.until(|state| state >= READY).await {
        READY => Ok(Arc::clone(&handle.socket)),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

impl ListenSocket {
    pub(super) fn new(stream: TcpStream, slot: Arc<Slot>, stall: Duration) -> (Self, RawHandle) {
        let (stream, flushed) = (Arc::new(stream), Arc::<FlushWatch>::default());
        let handle = RawHandle { socket: Arc::clone(&stream), flushed: Arc::clone(&flushed), _slot: Arc::clone(&slot) };
        (Self { stream, flushed, slot, stall: Stall::new(stall) }, handle)
    }

    pub(super) fn into_parts(self) -> (Arc<TcpStream>, Arc<Slot>) {
        (self.stream, self.slot)
    }

    fn poll_try<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        while self.stream.poll_write_ready(cx)?.is_ready() {
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return self.stall.poll(cx, Poll::Ready(outcome)),
            }
        }
        self.stall.poll(cx, Poll::Pending)
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

    /// hyper flushes only with an empty write buffer: see the documentation of the module.
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
