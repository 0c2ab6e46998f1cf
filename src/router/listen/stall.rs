//! The maximum time for which a client may read nothing of the data written to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use plexus_metrics::metrics;

/// Fails writes once they have waited for too long.
#[derive(Debug)]
pub(super) struct Stall {
    limit: Duration,
    /// The timer of a waiting write.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, waiting: None }
    }

    /// Returns the outcome of a write; `TimedOut` in place of a wait that has lasted too long.
    pub(super) fn poll<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let limit = self.limit;
        ready!(self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit))).as_mut().poll(cx));
        metrics().stalled.inc();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// A socket below TLS. Its timeout is disabled for a frontend with a timeout of its own, which sends the client the reason.
#[derive(Debug)]
pub(super) struct StallGuard {
    stream: TcpStream,
    stall: Option<Stall>,
}

impl StallGuard {
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, stall: Some(Stall::new(limit)) }
    }

    pub(super) fn unbounded(&mut self) {
        self.stall = None;
    }

    fn bound<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut self.stall {
            Some(stall) => stall.poll(cx, written),
            None => written,
        }
    }
}

impl AsyncRead for StallGuard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for StallGuard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bound(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bound(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
