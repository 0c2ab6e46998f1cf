//! Whether the other side of a connection lives: both doors of the gateway, and its own clients, ask it when it says nothing.

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

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Without a byte of the other side until it is asked whether it lives.
    pub quiet: Duration,
    /// For its answer; then the connection counts as lost.
    pub answer: Duration,
}

impl Default for Patience {
    /// Five seconds each: what is stopped or cut off is seen within ten.
    fn default() -> Self {
        Self { quiet: Duration::from_secs(5), answer: Duration::from_secs(5) }
    }
}

/// What a silence calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Ask the other side whether it lives.
    Ask,
    /// It was asked, and nothing came.
    Dead,
}

/// Watches one connection. Time in which it is not read is no silence: what was said then waits in it.
#[derive(Debug)]
pub struct LivenessWatch {
    patience: Patience,
    timer: Pin<Box<Sleep>>,
    heard: Instant,
    asked: bool,
    reading: bool,
}

impl LivenessWatch {
    /// Begins now. Must be called within a tokio runtime.
    pub fn new(patience: Patience) -> Self {
        let heard = Instant::now();
        let timer = Box::pin(sleep_until(heard + patience.quiet));
        Self { patience, timer, heard, asked: false, reading: true }
    }

    /// Something came: any byte is a sign of life.
    pub fn on_input(&mut self) {
        (self.heard, self.asked) = (Instant::now(), false);
    }

    /// It is not read any more, until [`poll`](Self::poll) is called again.
    pub fn pause(&mut self) {
        self.reading = false;
    }

    /// Ready when a silence calls for something. Called after all that is there was read.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Silence> {
        if !std::mem::replace(&mut self.reading, true) {
            self.on_input();
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if self.asked {
                return Poll::Ready(Silence::Dead);
            }
            let (now, due) = (Instant::now(), self.heard + self.patience.quiet);
            if due > now {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.asked = true;
            self.timer.as_mut().reset(now + self.patience.answer);
            return Poll::Ready(Silence::Ask);
        }
    }

    /// In words, why a connection was given up.
    pub fn words(&self) -> String {
        let Patience { quiet, answer } = self.patience;
        format!("it stopped responding: {quiet:?} of silence, and no response to a ping within {answer:?}")
    }
}

/// A connection that counts what is read of it.
#[derive(Debug)]
pub struct CountedSocket<S> {
    inner: S,
    read: u64,
}

impl<S> CountedSocket<S> {
    /// Counts from here.
    pub fn new(inner: S) -> Self {
        Self { inner, read: 0 }
    }

    /// Bytes read so far.
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

/// The client's end of a WebSocket, which pings a server that says nothing and ends with an error if that stays silent.
#[derive(Debug)]
pub struct LivenessSocket {
    stream: WebSocketStream<CountedSocket<TcpStream>>,
    watch: LivenessWatch,
    /// Bytes that had come when that was looked at last.
    came: u64,
    /// A ping is to be sent.
    ping: bool,
}

impl LivenessSocket {
    /// Wraps a connection that was just made.
    pub fn new(stream: WebSocketStream<CountedSocket<TcpStream>>, patience: Patience) -> Self {
        Self { stream, watch: LivenessWatch::new(patience), came: 0, ping: false }
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
        // What has come is read first, so that it does not matter how long nobody asked for it.
        let next = self.stream.poll_next_unpin(cx);
        let came = self.stream.get_ref().read();
        if std::mem::replace(&mut self.came, came) != came {
            self.watch.on_input();
        }
        if next.is_ready() {
            return next;
        }
        while let Poll::Ready(silence) = self.watch.poll(cx) {
            match silence {
                Silence::Ask => self.ping = true,
                Silence::Dead => {
                    let why = std::io::Error::new(std::io::ErrorKind::TimedOut, self.watch.words());
                    return Poll::Ready(Some(Err(Error::Io(why))));
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

    const SHORT: Patience = Patience { quiet: Duration::from_millis(2), answer: Duration::from_millis(2) };

    async fn next(watch: &mut LivenessWatch) -> Silence {
        let silence = std::future::poll_fn(|cx| watch.poll(cx));
        tokio::time::timeout(Duration::from_secs(30), silence).await.expect("silence calls for something")
    }

    #[tokio::test]
    async fn a_silent_side_is_asked_and_then_given_up() {
        let mut watch = LivenessWatch::new(SHORT);
        assert_eq!([next(&mut watch).await, next(&mut watch).await], [Silence::Ask, Silence::Dead]);
    }

    #[tokio::test]
    async fn one_that_answers_is_asked_again_and_not_given_up() {
        for (quiet, answer) in [(2, 2), (1, 4), (4, 1)] {
            let [quiet, answer] = [quiet, answer].map(Duration::from_millis);
            let mut watch = LivenessWatch::new(Patience { quiet, answer });
            for _ in 0..5 {
                assert_eq!(next(&mut watch).await, Silence::Ask);
                watch.on_input();
            }
        }
    }

    #[tokio::test]
    async fn time_without_reading_is_no_silence() {
        let mut watch = LivenessWatch::new(SHORT);
        for _ in 0..5 {
            assert_eq!(next(&mut watch).await, Silence::Ask);
            // What it answered has to be read first.
            watch.pause();
            tokio::time::sleep(3 * SHORT.answer).await;
        }
        assert_eq!([next(&mut watch).await, next(&mut watch).await], [Silence::Ask, Silence::Dead]);
    }
}
