//! A client's connection that hyper or TLS writes, and its subscriptions: a cursor in the log for each, read a page at a time once the
//! client has read the page before it. Over a plain connection [`fanout`](super::fanout) does the same with the socket itself.
//!
//! One task owns the connection: only this task flushes and waits. Order of locks: the state to be written, then the transport; never one
//! across an await.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes};
use futures_util::future::select_all;
use hyper::body::Frame;
use parking_lot::Mutex;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::fanout::{Fans, Flow, put_lag, put_live};
use super::follow::FollowLog;
use super::frames::{Encoder, Framing};
use super::listen::ByteStream;
use super::own_frames::OwnFrames;
use plexus_ledger::{Account, Charge, Charged};
use plexus_metrics::{Subscriber, metrics};
use plexus_protocol::{Cursor, Position};
use plexus_sessions::{EventPage, Filter, Log};

/// Number of bytes read from a client before its message is processed.
const READ: usize = 4 << 10;

/// A client's connection, without the frontend on it.
pub(super) struct Streamed {
    log: Log,
    /// The label of its subscriptions in the metrics.
    kind: Subscriber,
    framing: Framing,
    stall: Duration,
    wakeup: Notify,
    account: Account,
    transport: Transport,
    state: Mutex<State>,
}

enum Transport {
    /// The body of a response: one chunk waits for hyper to take it.
    Body { chunks: mpsc::Sender<Bytes>, cut: Mutex<Option<oneshot::Sender<()>>> },
    /// An upgraded connection; `None` once it is closed.
    Upgraded(Mutex<Option<Wire>>),
}

/// An upgraded connection.
struct Wire {
    io: Box<dyn ByteStream>,
    /// The bytes that were read to determine whether the connection is readable, and the result of that.
    read: Bytes,
    end: Option<io::Result<()>>,
}

struct State {
    /// The rest of a page of events, as frames.
    page: Bytes,
    page_charge: Option<Charge>,
    /// The time when the gateway received the first event of the page.
    received: Option<std::time::Instant>,
    out: OwnFrames,
    subs: Vec<Subscription>,
    blocked: bool,
    dead: bool,
    /// The time when the client last read data, or had none to read.
    progress: Instant,
}

struct Subscription {
    /// The requested name: a session's id, or `*`.
    name: Arc<str>,
    filter: Filter,
    encoder: Encoder,
    /// The position up to which the events are among the frames.
    position: Position,
    /// The end of the replay, after which `live` is sent.
    live_at: Option<Position>,
    /// `true` if `live` carries an id, because no earlier event did.
    live_id: bool,
    /// `true` once the subscription has reached the ring of the log.
    was_hot: bool,
    /// The distance from the head when the subscription had to read the store again.
    lag: Option<u64>,
    reader: Arc<tokio::sync::Mutex<Reader>>,
}

/// The reading position of a subscription.
struct Reader {
    follow: FollowLog,
    /// `true` if there may be more events than were read.
    due: bool,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.lag.is_some() {
            metrics().lagging.dec();
        }
    }
}

impl Subscription {
    fn live(&mut self, log: &Log, framing: Framing, out: &mut Vec<u8>) {
        if let Some(head) = self.live_at.take_if(|at| self.position >= *at) {
            put_live(out, framing, &self.name, log.cursor(head), self.live_id);
        }
    }

    /// Appends a page, with `live` where it is due.
    fn put(&mut self, page: &EventPage, log: &Log, framing: Framing, out: &mut Vec<u8>) {
        let live_at = self.live_at.unwrap_or(Position::START);
        let (replayed, new) = page.events.split_at(page.events.partition_point(|event| event.position <= live_at));
        self.encoder.events(out, replayed, |_, _| {});
        if let Some(first) = new.first() {
            self.position = Position(first.position.0 - 1);
            self.live(log, framing, out);
        }
        self.encoder.events(out, new, |_, _| {});
        self.position = page.next;
        self.live(log, framing, out);
    }

    /// Records whether the log had to be read from the store.
    fn record_lag(&mut self, cold: bool, log: &Log, framing: Framing, out: &mut Vec<u8>) {
        self.was_hot |= !cold;
        if cold && self.was_hot && self.live_at.is_none() && self.lag.is_none() {
            self.lag = Some(log.head().0.saturating_sub(self.position.0));
            metrics().lagging.inc();
        } else if !cold && let Some(behind) = self.lag.take() {
            metrics().lagging.dec();
            put_lag(out, framing, &self.name, log.cursor(log.head()), behind);
        }
    }
}

/// A subscription to add.
pub(super) struct Followed {
    pub(super) name: Arc<str>,
    pub(super) filter: Filter,
    pub(super) encoder: Encoder,
    /// The position after which the subscription begins.
    pub(super) after: Position,
    /// The position after which `live` is sent.
    pub(super) live_at: Position,
    /// `true` if `live` carries a cursor of its own.
    pub(super) live_id: bool,
}

impl State {
    fn waits(&self) -> bool {
        !self.page.is_empty() || !self.out.waiting().is_empty()
    }

    /// Records that the client read `taken` bytes.
    fn advance(&mut self, taken: usize) {
        self.progress = Instant::now();
        let from_page = taken.min(self.page.len());
        self.page.advance(from_page);
        if self.page.is_empty() {
            self.page = Bytes::new();
            self.page_charge = None;
        }
        self.out.advance(taken - from_page);
    }

    /// Returns all waiting bytes, in one piece that is charged until it is dropped.
    fn take(&mut self, account: &Account) -> Bytes {
        self.progress = Instant::now();
        if !self.page.is_empty() {
            let charge = self.page_charge.take().unwrap_or_else(|| account.nothing());
            return Bytes::from_owner(Charged::new(std::mem::take(&mut self.page), charge));
        }
        self.out.take(account)
    }
}

impl Streamed {
    /// Makes a connection without subscriptions, whose bytes are the body of a response.
    pub(super) fn body(fans: &Fans, account: Account) -> (Arc<Self>, Body) {
        let (chunks, taken) = mpsc::channel(1);
        let (cut, is_cut) = oneshot::channel();
        let transport = Transport::Body { chunks, cut: Mutex::new(Some(cut)) };
        let body = Body::new(StreamBody { chunks: taken, cut: Some(is_cut) });
        (Self::new(fans, transport, Framing::SseBody, Subscriber::Sse, account), body)
    }

    /// Makes a connection without subscriptions over an upgraded connection.
    pub(super) fn upgraded(fans: &Fans, io: Box<dyn ByteStream>, account: Account) -> Arc<Self> {
        let wire = Wire { io, read: Bytes::new(), end: None };
        let transport = Transport::Upgraded(Mutex::new(Some(wire)));
        Self::new(fans, transport, Framing::WebSocket, Subscriber::WebSocket, account)
    }

    fn new(fans: &Fans, transport: Transport, framing: Framing, kind: Subscriber, account: Account) -> Arc<Self> {
        Arc::new(Self {
            log: fans.log().clone(),
            kind,
            framing,
            stall: fans.stall(),
            wakeup: Notify::new(),
            transport,
            state: Mutex::new(State {
                page: Bytes::new(),
                page_charge: None,
                received: None,
                out: OwnFrames::new(&account),
                subs: Vec::new(),
                blocked: false,
                dead: false,
                progress: Instant::now(),
            }),
            account,
        })
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn is_over_limit(&self) -> bool {
        self.state.lock().out.is_over_limit()
    }

    pub(super) fn stalls_at(&self) -> Instant {
        self.state.lock().progress + self.stall
    }

    pub(super) fn backlog(&self) -> usize {
        self.state.lock().out.waiting().len()
    }

    pub(super) fn push(&self, frames: impl FnOnce(&mut Vec<u8>)) {
        self.state.lock().out.push(frames);
    }

    pub(super) fn subscribe(&self, followed: Followed, hello: &[u8]) {
        let Followed { name, filter, encoder, after, live_at, live_id } = followed;
        self.unsubscribe(&name);
        let follow = FollowLog::new(&self.log, filter.clone(), after, self.kind).until(live_at);
        let reader = Arc::new(tokio::sync::Mutex::new(Reader { follow, due: true }));
        let live_at = Some(live_at.max(after));
        let mut sub = Subscription {
            name,
            filter,
            encoder,
            position: after,
            live_at,
            live_id,
            was_hot: false,
            lag: None,
            reader,
        };
        self.push(|out| {
            out.extend_from_slice(hello);
            sub.live(&self.log, self.framing, out);
        });
        self.state.lock().subs.push(sub);
        self.wakeup.notify_one();
    }

    pub(super) fn unsubscribe(&self, name: &str) -> bool {
        let mut state = self.state.lock();
        let Some(at) = state.subs.iter().position(|sub| &*sub.name == name) else { return false };
        state.subs.remove(at);
        true
    }

    pub(super) fn leave(&self) {
        self.state.lock().subs.clear();
    }

    pub(super) fn following(&self) -> Vec<(Arc<str>, Cursor)> {
        let state = self.state.lock();
        let position_of = |sub: &Subscription| match sub.live_at {
            // The subscription had no events since: it has everything up to the head.
            None => self.log.level(&sub.filter, sub.position).unwrap_or(sub.position),
            Some(_) => sub.position,
        };
        state.subs.iter().map(|sub| (Arc::clone(&sub.name), self.log.cursor(position_of(sub)))).collect()
    }

    /// Sends as much as the transport accepts. Never waits.
    pub(super) async fn flush(&self) -> Flow {
        poll_fn(|cx| Poll::Ready(self.poll_flush(cx))).await
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Flow {
        let mut state = self.state.lock();
        let flow = if state.dead { Flow::Dead } else { self.write(&mut state, cx) };
        // The time that a slow client takes is no measure of the gateway.
        if let Some(received) = state.received.take()
            && state.page.is_empty()
        {
            metrics().delivery.observe(received.elapsed().as_secs_f64());
        }
        if flow == Flow::Blocked && !std::mem::replace(&mut state.blocked, true) {
            state.progress = Instant::now();
        }
        state.blocked = flow == Flow::Blocked;
        state.dead |= flow == Flow::Dead;
        state.out.update_charge();
        flow
    }

    fn write(&self, state: &mut State, cx: &mut Context<'_>) -> Flow {
        match &self.transport {
            Transport::Body { chunks, .. } => match chunks.try_reserve() {
                Ok(_) if !state.waits() => Flow::Done,
                Ok(permit) => {
                    permit.send(state.take(&self.account));
                    Flow::Blocked
                }
                Err(mpsc::error::TrySendError::Full(())) => Flow::Blocked,
                Err(mpsc::error::TrySendError::Closed(())) => Flow::Dead,
            },
            Transport::Upgraded(wire) => {
                let mut wire = wire.lock();
                let Some(Wire { io, .. }) = &mut *wire else { return Flow::Dead };
                while state.waits() {
                    let next = if state.page.is_empty() { state.out.waiting() } else { &state.page[..] };
                    match Pin::new(&mut *io).poll_write(cx, next) {
                        Poll::Ready(Ok(taken)) if taken > 0 => state.advance(taken),
                        Poll::Ready(_) => return Flow::Dead,
                        Poll::Pending => return Flow::Blocked,
                    }
                }
                match Pin::new(io).poll_flush(cx) {
                    Poll::Ready(Ok(())) => Flow::Done,
                    Poll::Ready(Err(_)) => Flow::Dead,
                    Poll::Pending => Flow::Blocked,
                }
            }
        }
    }

    /// Waits until [`flush`](Self::flush), which returned `flow`, can make progress again. Cancellation safe.
    pub(super) async fn wait(&self, flow: Flow) {
        let ready = async {
            if flow != Flow::Blocked {
                return self.read_page().await;
            }
            match &self.transport {
                // The flush detects an error.
                Transport::Body { chunks, .. } => drop(chunks.reserve().await),
                Transport::Upgraded(_) => {
                    poll_fn(|cx| match self.poll_flush(cx) {
                        Flow::Blocked => Poll::Pending,
                        _ => Poll::Ready(()),
                    })
                    .await;
                }
            }
        };
        tokio::select! {
            () = ready => {}
            () = self.wakeup.notified() => {}
        }
    }

    /// Reads the next page of a subscription, once there is one.
    async fn read_page(&self) {
        loop {
            let readers: Vec<_> = {
                let state = self.state.lock();
                if state.waits() {
                    // A subscription's first frames come before its events.
                    return;
                }
                state.subs.iter().map(|sub| Arc::clone(&sub.reader)).collect()
            };
            if readers.is_empty() {
                return std::future::pending().await;
            }
            // One after the other: a connection that resumes reads one page at a time.
            for reader in &readers {
                let mut locked = reader.lock().await;
                if locked.due {
                    let read = locked.follow.more_within(&self.account).await;
                    locked.due = read.is_some();
                    if self.take_page(reader, read, &locked.follow) {
                        return;
                    }
                }
            }
            let changes = readers.iter().map(|reader| {
                Box::pin(async move {
                    let mut reader = reader.lock().await;
                    reader.follow.changed().await;
                    reader.due = true;
                })
            });
            select_all(changes).await;
        }
    }

    /// Makes frames of the read events. Returns whether there are any.
    fn take_page(
        &self,
        reader: &Arc<tokio::sync::Mutex<Reader>>,
        read: Option<(EventPage, Charge)>,
        follow: &FollowLog,
    ) -> bool {
        let mut state = self.state.lock();
        let Some(at) = state.subs.iter().position(|sub| Arc::ptr_eq(&sub.reader, reader)) else { return false };
        let mut frames = Vec::new();
        let sub = &mut state.subs[at];
        sub.record_lag(follow.is_cold(), &self.log, self.framing, &mut frames);
        let Some((page, mut charge)) = read else {
            // No events for the subscription up to there.
            sub.position = follow.cursor().position;
            state.out.push(|out| out.extend_from_slice(&frames));
            return !frames.is_empty();
        };
        sub.put(&page, &self.log, self.framing, &mut frames);
        if frames.len() < charge.bytes() {
            // Reducing a charge always succeeds.
            let _ = charge.resize(frames.len());
        }
        // All subscriptions get their turn.
        state.subs[at..].rotate_left(1);
        state.page = frames.into();
        state.page_charge = Some(charge);
        state.received = page.received;
        true
    }

    /// Waits until the client has dropped the response. Cancellation safe.
    pub(super) async fn disconnected(&self) {
        match &self.transport {
            Transport::Body { chunks, .. } => chunks.closed().await,
            Transport::Upgraded(_) => std::future::pending().await,
        }
    }

    /// Waits until the connection is readable. Cancellation safe.
    pub(super) async fn readable(&self) -> io::Result<()> {
        let Transport::Upgraded(wire) = &self.transport else { return std::future::pending().await };
        poll_fn(|cx| {
            let mut wire = wire.lock();
            let Some(wire) = &mut *wire else { return Poll::Ready(Err(ErrorKind::NotConnected.into())) };
            if wire.read.is_empty() && wire.end.is_none() {
                let mut buffer = [0; READ];
                let mut read = ReadBuf::new(&mut buffer);
                match Pin::new(&mut wire.io).poll_read(cx, &mut read) {
                    Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                        wire.read = Bytes::copy_from_slice(read.filled());
                    }
                    Poll::Ready(end) => wire.end = Some(end),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Reads the available bytes; `WouldBlock` if there are none. After that, [`readable`](Self::readable) has to be awaited.
    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let Transport::Upgraded(wire) = &self.transport else { return Err(ErrorKind::Unsupported.into()) };
        let mut wire = wire.lock();
        let Some(wire) = &mut *wire else { return Ok(0) };
        if !wire.read.is_empty() {
            let n = wire.read.len().min(buf.len());
            wire.read.copy_to_slice(&mut buf[..n]);
            return Ok(n);
        }
        if let Some(end) = wire.end.take() {
            return end.map(|()| 0);
        }
        let mut read = ReadBuf::new(buf);
        match Pin::new(&mut wire.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut read) {
            Poll::Ready(end) => end.map(|()| read.filled().len()),
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Closes the write half. Cancellation safe.
    pub(super) async fn close_write(&self) {
        let Transport::Upgraded(wire) = &self.transport else { return };
        let _ = poll_fn(|cx| match &mut *wire.lock() {
            Some(Wire { io, .. }) => Pin::new(io).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        })
        .await;
    }

    /// Aborts a response, so that it does not look complete.
    pub(super) fn cut(&self) {
        if let Transport::Body { cut, .. } = &self.transport
            && let Some(cut) = cut.lock().take()
        {
            // Sending fails if hyper has dropped the body.
            let _ = cut.send(());
        }
    }

    /// Closes an upgraded connection.
    pub(super) fn close(&self) {
        if let Transport::Upgraded(wire) = &self.transport {
            *wire.lock() = None;
        }
    }
}

/// A response's body, whose chunks a frontend makes.
struct StreamBody {
    chunks: mpsc::Receiver<Bytes>,
    /// The signal to abort; `None` once nothing can send it.
    cut: Option<oneshot::Receiver<()>>,
}

/// The error of an incomplete response: its client did not read it, or the waiting data exceeds the account.
#[derive(Debug, thiserror::Error)]
#[error("a stream of events was cut")]
struct Cut;

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(cut) = &mut self.cut
            && let Poll::Ready(cut) = Pin::new(cut).poll(cx)
        {
            self.cut = None;
            if cut.is_ok() {
                return Poll::Ready(Some(Err(Cut)));
            }
        }
        self.chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

#[cfg(test)]
mod tests;
