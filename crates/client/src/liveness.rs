//! Detects the dead peer of a connection, for the gateway's WebSockets and for its clients.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tungstenite::{Error, Message};

/// The timeouts of a silent connection.
#[derive(Clone, Copy, Debug)]
pub struct LivenessTimeouts {
    /// The time without a received byte after which the peer is pinged.
    pub quiet: Duration,
    /// The time for the reply to the ping; after it, the connection counts as lost.
    pub answer: Duration,
}

impl Default for LivenessTimeouts {
    /// Returns five seconds for each timeout: a dead peer is detected within ten seconds.
    fn default() -> Self {
        Self { quiet: Duration::from_secs(5), answer: Duration::from_secs(5) }
    }
}

/// The action that a silent connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The peer has to be pinged.
    Ask,
    /// The peer did not reply to the ping.
    Dead,
}

/// Watches one connection. Time in which the connection is not read does not count, since received bytes may be waiting in it.
#[derive(Debug)]
pub struct LivenessWatch {
    timeouts: LivenessTimeouts,
    timer: Pin<Box<Sleep>>,
    last_input: Instant,
    pinged: bool,
    reading: bool,
}

impl LivenessWatch {
    /// Starts to watch. Must be called within a tokio runtime.
    pub fn new(timeouts: LivenessTimeouts) -> Self {
        let last_input = Instant::now();
        let timer = Box::pin(sleep_until(last_input + timeouts.quiet));
        Self { timeouts, timer, last_input, pinged: false, reading: true }
    }

    /// Records that bytes were received: any byte is a sign of life.
    pub fn on_input(&mut self) {
        (self.last_input, self.pinged) = (Instant::now(), false);
    }

    /// Stops the timer until [`poll`](Self::poll) is called again, since the connection is not read.
    pub fn pause(&mut self) {
        self.reading = false;
    }

    /// Returns ready when the silence has lasted too long. Call it after all available bytes have been read.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Silence> {
        if !std::mem::replace(&mut self.reading, true) {
            self.on_input();
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if self.pinged {
                return Poll::Ready(Silence::Dead);
            }
            let (now, due) = (Instant::now(), self.last_input + self.timeouts.quiet);
            if due > now {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.pinged = true;
            self.timer.as_mut().reset(now + self.timeouts.answer);
            return Poll::Ready(Silence::Ask);
        }
    }

    /// Returns the reason why the connection was given up, as readable text.
    pub fn message(&self) -> String {
        let LivenessTimeouts { quiet, answer } = self.timeouts;
        format!("it stopped responding: {quiet:?} of silence, and no response to a ping within {answer:?}")
    }
}

/// A connection that counts the bytes read from it.
#[derive(Debug)]
pub struct CountedSocket<S> {
    inner: S,
    read: u64,
}

impl<S> CountedSocket<S> {
    /// Wraps `inner`; the count starts at 0.
    pub fn new(inner: S) -> Self {
        Self { inner, read: 0 }
    }

    /// Returns the number of bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.read += (buf.filled().len() - before) as u64;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedSocket<S> {
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

/// The client's end of a WebSocket: pings a silent server and ends with an error if it stays silent.
#[derive(Debug)]
pub struct LivenessSocket {
    stream: WebSocketStream<CountedSocket<TcpStream>>,
    watch: LivenessWatch,
    /// The number of bytes received until the last poll.
    received: u64,
    /// `true` if a ping has to be sent.
    ping: bool,
}

impl LivenessSocket {
    /// Wraps a new connection.
    pub fn new(stream: WebSocketStream<CountedSocket<TcpStream>>, timeouts: LivenessTimeouts) -> Self {
        Self { stream, watch: LivenessWatch::new(timeouts), received: 0, ping: false }
    }

    fn ping(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.ping {
            ready!(self.stream.poll_ready_unpin(cx))?;
            self.ping = false;
            self.stream.start_send_unpin(Message::Ping(Bytes::new()))?;
        }
        self.stream.poll_flush_unpin(cx)
    }
}

impl Stream for LivenessSocket {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Received bytes are read first, so that the time since the last poll does not matter.
        let next = self.stream.poll_next_unpin(cx);
        let received = self.stream.get_ref().read();
        if std::mem::replace(&mut self.received, received) != received {
            self.watch.on_input();
        }
        if next.is_ready() {
            return next;
        }
        while let Poll::Ready(silence) = self.watch.poll(cx) {
            match silence {
                Silence::Ask => self.ping = true,
                Silence::Dead => {
                    let reason = std::io::Error::new(std::io::ErrorKind::TimedOut, self.watch.message());
                    return Poll::Ready(Some(Err(Error::Io(reason))));
                }
            }
        }
        if self.ping
            && let Poll::Ready(Err(error)) = self.ping(cx)
        {
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Pending
    }
}

impl Sink<Message> for LivenessSocket {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stream.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        self.stream.start_send_unpin(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stream.poll_flush_unpin(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stream.poll_close_unpin(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: LivenessTimeouts =
        LivenessTimeouts { quiet: Duration::from_millis(2), answer: Duration::from_millis(2) };

    async fn next(watch: &mut LivenessWatch) -> Silence {
        let silence = std::future::poll_fn(|cx| watch.poll(cx));
        tokio::time::timeout(Duration::from_secs(30), silence).await.expect("silence calls for something")
    }

    #[tokio::test]
    async fn liveness_pings_a_silent_peer_then_gives_up() {
        let mut watch = LivenessWatch::new(SHORT);
        assert_eq!([next(&mut watch).await, next(&mut watch).await], [Silence::Ask, Silence::Dead]);
    }

    #[tokio::test]
    async fn liveness_keeps_a_peer_that_answers() {
        for (quiet, answer) in [(2, 2), (1, 4), (4, 1)] {
            let [quiet, answer] = [quiet, answer].map(Duration::from_millis);
            let mut watch = LivenessWatch::new(LivenessTimeouts { quiet, answer });
            for _ in 0..5 {
                assert_eq!(next(&mut watch).await, Silence::Ask);
                watch.on_input();
            }
        }
    }

    #[tokio::test]
    async fn liveness_ignores_time_in_which_nothing_was_read() {
        let mut watch = LivenessWatch::new(SHORT);
        for _ in 0..5 {
            assert_eq!(next(&mut watch).await, Silence::Ask);
            // The reply has to be read first.
            watch.pause();
            tokio::time::sleep(3 * SHORT.answer).await;
        }
        assert_eq!([next(&mut watch).await, next(&mut watch).await], [Silence::Ask, Silence::Dead]);
    }
}
