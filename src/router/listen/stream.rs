//! What a connection's bytes go through: a TCP stream, or, behind TLS, one end of a pair within the process. Whoever
//! serves a connection need not know which.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A connection's bytes. Everything but [`local_addr`](Self::local_addr) is as tokio's streams have it.
#[derive(Debug)]
pub enum Stream {
    /// A client's own socket.
    Tcp(TcpStream),
    /// One end of a pair; at the other end is what speaks TLS with the client.
    Inside(UnixStream),
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self::Inside(stream)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Inside(stream) => stream.as_fd(),
        }
    }
}

/// The same call on whichever it is.
macro_rules! on {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self {
            Stream::Tcp($stream) => $call,
            Stream::Inside($stream) => $call,
        }
    };
}

impl Stream {
    /// Our end's address; a pair within the process has none.
    ///
    /// # Errors
    /// The system's, or `Unsupported`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Inside(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Waits until it may be read from. Cancellation safe.
    ///
    /// # Errors
    /// Waits until the socket can be read, as [`TcpStream::readable`](tokio::net::TcpStream::readable).
    pub async fn readable(&self) -> io::Result<()> {
        on!(self, stream => stream.readable().await)
    }

    /// Waits until it may be written to. Cancellation safe.
    ///
    /// # Errors
    /// Waits until the socket can be written, as [`TcpStream::writable`](tokio::net::TcpStream::writable).
    pub async fn writable(&self) -> io::Result<()> {
        on!(self, stream => stream.writable().await)
    }

    /// Waits until it is ready for one of these. Cancellation safe.
    ///
    /// # Errors
    /// Waits for one of these, as [`TcpStream::ready`](tokio::net::TcpStream::ready).
    pub async fn ready(&self, interest: Interest) -> io::Result<tokio::io::Ready> {
        on!(self, stream => stream.ready(interest).await)
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if nothing is there.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        on!(self, stream => stream.try_read(buf))
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if nothing is there.
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        on!(self, stream => stream.try_read_buf(buf))
    }

    /// Writes what it takes.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if it takes nothing.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        on!(self, stream => stream.try_write(buf))
    }

    /// Writes what it takes.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if it takes nothing.
    pub fn try_write_vectored(&self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        on!(self, stream => stream.try_write_vectored(bufs))
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_read_ready(cx))
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_write_ready(cx))
    }
}
