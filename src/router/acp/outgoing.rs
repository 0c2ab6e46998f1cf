//! The streams of a connection of ACP over HTTP, and the messages kept for a client without one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connections::Connection;
use super::{Sent, SessionStream};
use crate::frames::sse_data;
use crate::sse::News;
use plexus_protocol::{Cursor, Position, SessionId};

/// Messages of a queue that were passed to the socket and are kept for a client that resumes without them; older ones are
/// forgotten.
const KEPT: usize = 64;
/// About the most bytes of these messages.
const KEPT_BYTES: usize = 1 << 20;
/// The messages of a stream that are not in the log.
#[derive(Default)]
pub(super) struct StreamQueue {
    /// The number of streams so far; only the newest is active.
    pub(super) newest: u64,
    pub(super) open: bool,
    /// The session streams that read the log, in round-robin order: the one that sent last is at the end. Locked by the stream
    /// that reads, so that two never do at once.
    pub(super) streams: Arc<tokio::sync::Mutex<Vec<SessionStream>>>,
    /// The number of messages so far.
    count: u64,
    pub(super) waiting: VecDeque<Message>,
    /// Sent messages, which the client may not have received.
    written: VecDeque<Message>,
    /// The number of the last message that was wholly passed to the socket.
    flushed: u64,
    /// The positions up to which the log was passed to the socket, by session.
    positions: BTreeMap<SessionId, Position>,
}

/// A message that is not in the log.
#[derive(Clone)]
pub(super) struct Message {
    number: u64,
    /// The position up to which the log was sent when the message was written.
    at: Option<Position>,
    pub(super) json: Vec<u8>,
}

impl StreamQueue {
    /// The queue of a session.
    pub(super) fn over(stream: SessionStream) -> Self {
        Self { streams: Arc::new(tokio::sync::Mutex::new(vec![stream])), ..Self::default() }
    }

    /// Bytes kept for the client.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.iter().chain(&self.written).map(|message| message.json.len()).sum()
    }

    /// Queues a message.
    pub(super) fn push(&mut self, json: Vec<u8>) {
        self.count += 1;
        self.waiting.push_back(Message { number: self.count, at: None, json });
    }

    /// Goes back to `start`: later messages will be written again.
    fn rewind(&mut self, start: Start) {
        let lost = |message: &Message| match start {
            Start::Flushed => message.number > self.flushed,
            Start::After { number: Some(number), .. } => message.number > number,
            // Only a cursor: the client has no message after it.
            Start::After { position, number: None } => message.at >= position,
        };
        let first = self.written.iter().position(lost).unwrap_or(self.written.len());
        for message in self.written.split_off(first).into_iter().rev() {
            self.waiting.push_front(message);
        }
    }

    /// Records that everything up to here was passed to the socket.
    fn flushed(&mut self, number: u64, positions: BTreeMap<SessionId, Position>) {
        self.flushed = number;
        self.positions = positions;
        let out = self.written.iter().take_while(|message| message.number <= number);
        let (mut count, mut bytes) = out.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.json.len()));
        while count > KEPT || bytes > KEPT_BYTES {
            let Some(old) = self.written.pop_front() else { break };
            count -= 1;
            bytes -= old.json.len();
        }
    }

    /// Takes the waiting messages, as written after the log up to `at`.
    fn take(&mut self, at: Option<Position>) -> Vec<Message> {
        let mut taken: Vec<Message> = self.waiting.drain(..).collect();
        for message in &mut taken {
            message.at = at;
        }
        self.written.extend(taken.iter().cloned());
        taken
    }
}

/// The start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// After what the previous stream passed to the socket.
    Flushed,
    /// After what the client has: the log up to a position, and the messages up to a number.
    After { position: Option<Position>, number: Option<u64> },
}

/// An open stream.
pub(super) struct Stream {
    connection: Arc<Connection>,
    session: Option<SessionId>,
    /// The stream's number in its queue.
    number: u64,
    streams: Arc<tokio::sync::Mutex<Vec<SessionStream>>>,
    /// Set until the stream has begun.
    start: Option<Start>,
    changed: watch::Receiver<u64>,
    /// The number of the last message written.
    written: u64,
}

impl Stream {
    /// Stream number `number` of a queue.
    pub(super) fn new(
        connection: Arc<Connection>,
        session: Option<SessionId>,
        (number, streams): (u64, Arc<tokio::sync::Mutex<Vec<SessionStream>>>),
        start: Start,
    ) -> Self {
        let changed = connection.changed.subscribe();
        Self { connection, session, number, streams, start: Some(start), changed, written: 0 }
    }

    /// Accesses the queue. `None`: the connection has ended, or a newer stream has replaced this one.
    fn queue<T>(&self, look: impl FnOnce(&mut StreamQueue) -> T) -> Option<T> {
        if *self.connection.ended.borrow() {
            return None;
        }
        let mut inner = self.connection.lock();
        let looked = inner.queues.get_mut(&self.session).filter(|queue| queue.newest == self.number).map(look);
        self.connection.charge_queues(&mut inner);
        looked
    }

    /// Queues messages that are not in the log, for this stream or the next.
    fn keep(&self, messages: Vec<Sent>) {
        let mut inner = self.connection.lock();
        let Some(queue) = inner.queues.get_mut(&self.session) else { return };
        for sent in messages {
            queue.push(sent.json);
        }
        self.connection.charge_queues(&mut inner);
    }

    /// Keeps a session stream for each session that the client is in, if one stream has them all.
    fn sync_streams(&self, streams: &mut Vec<SessionStream>) {
        if self.session.is_none() && self.connection.is_named() {
            let peer = self.connection.peer();
            let Some(peer) = peer.as_ref() else { return };
            let sessions = peer.sessions();
            streams.retain(|stream| sessions.contains(stream.session()));
            for session in sessions {
                if !streams.iter().any(|stream| *stream.session() == session) {
                    streams.push(peer.session_stream(session));
                }
            }
        }
    }

    /// Goes back to the start of the stream.
    fn begin(&self, start: Start, streams: &mut [SessionStream]) -> Option<()> {
        let positions = self.queue(|queue| {
            queue.rewind(start);
            queue.positions.clone()
        })?;
        for stream in streams {
            let position = match start {
                Start::After { position: Some(position), .. } => Some(position),
                _ => positions.get(stream.session()).copied(),
            };
            // Only backwards: a session loaded again begins before the client's old position.
            if let Some(position) = position
                && stream.cursor().is_some_and(|at| position < at.position)
            {
                stream.rewind(position);
            }
        }
        Some(())
    }

    async fn tell(&mut self) -> Option<Vec<u8>> {
        let streams = Arc::clone(&self.streams);
        let mut streams = streams.lock().await;
        if let Some(start) = self.start {
            self.begin(start, &mut streams)?;
            self.start = None;
        } else {
            // The caller asks for more, so everything before was written.
            let at = |stream: &SessionStream| Some((stream.session().clone(), stream.cursor()?.position));
            let positions = streams.iter().filter_map(at).collect();
            self.queue(|queue| queue.flushed(self.written, positions))?;
        }
        loop {
            self.changed.borrow_and_update();
            self.sync_streams(&mut streams);
            let cursor = match (&self.session, &streams[..]) {
                (Some(_), [stream]) => stream.cursor(),
                _ => None,
            };
            let at = cursor.as_ref().map(|cursor| cursor.position);
            let messages = self.queue(|queue| queue.take(at))?;
            if !messages.is_empty() {
                let mut text = Vec::new();
                self.put(&messages, cursor.as_ref(), &mut text);
                return Some(text);
            }
            let next = async {
                if streams.is_empty() {
                    return std::future::pending().await;
                }
                let nexts = streams.iter_mut().map(|stream| Box::pin(stream.next()));
                let (sent, n, _) = futures_util::future::select_all(nexts).await;
                (sent, n)
            };
            let (sent, n) = tokio::select! {
                // The sender lives as long as the connection, which is held here.
                _ = self.changed.changed() => continue,
                next = next => next,
            };
            let stream = streams.remove(n);
            let session = stream.session().clone();
            streams.push(stream);
            let (logged, other): (Vec<Sent>, Vec<Sent>) = sent.into_iter().partition(|sent| sent.in_log);
            let first = logged.iter().find_map(|sent| sent.cursor.as_ref());
            let before = first.map(|first| Position(first.position.0.saturating_sub(1)));
            let mut text = Vec::new();
            self.keep(other);
            let messages = self.queue(|queue| {
                if let Some(before) = before {
                    // The client has nothing of the session yet, or begins again.
                    let position = queue.positions.entry(session).or_insert(before);
                    *position = before.min(*position);
                }
                queue.take(at)
            });
            let Some(messages) = messages else {
                // A newer stream has taken over: it will send these messages.
                if let (Some(stream), Some(before)) = (streams.last_mut(), before) {
                    stream.rewind(before);
                }
                return None;
            };
            self.put(&messages, cursor.as_ref(), &mut text);
            for Sent { cursor, json, .. } in &logged {
                // One cursor does not describe a stream of several sessions, each at its own pace.
                let id = cursor.as_ref().filter(|_| self.session.is_some());
                sse_data(&mut text, id.map(|id| id as _), json);
            }
            return Some(text);
        }
    }

    /// Appends messages that are not in the log; `cursor`: the position up to which the log was sent.
    fn put(&mut self, messages: &[Message], cursor: Option<&Cursor>, text: &mut Vec<u8>) {
        for Message { number, json, .. } in messages {
            self.written = *number;
            let id = match (&self.session, cursor) {
                (None, _) => number.to_string(),
                (Some(_), Some(cursor)) => format!("{cursor}+{number}"),
                (Some(_), None) => format!("+{number}"),
            };
            sse_data(text, Some(&id), json);
        }
    }
}

impl News for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(self.tell())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut inner = self.connection.lock();
        inner.streams -= 1;
        inner.idle_since = Instant::now();
        let Some(queue) = inner.queues.get_mut(&self.session).filter(|queue| queue.newest == self.number) else {
            return;
        };
        queue.open = false;
        // The queue of a session that the client has left is not needed any more.
        let empty = queue.waiting.is_empty() && queue.written.is_empty() && queue.positions.is_empty();
        if empty && self.session.is_some() {
            inner.queues.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(messages: &[Message]) -> Vec<u64> {
        messages.iter().map(|message| message.number).collect()
    }

    fn queue(count: u64) -> StreamQueue {
        let mut queue = StreamQueue::default();
        (0..count).for_each(|_| queue.push(b"{}".to_vec()));
        queue
    }

    #[test]
    fn messages_come_again_unless_the_client_has_them() {
        let mut queue = queue(2);
        assert_eq!(numbers(&queue.take(Some(Position(5)))), [1, 2]);
        queue.push(b"{}".to_vec());
        assert_eq!(numbers(&queue.take(Some(Position(7)))), [3]);
        queue.flushed(2, BTreeMap::new());
        let after = |position, number| Start::After { position: Some(Position(position)), number };
        for (start, again) in [
            (Start::Flushed, vec![3]),
            (after(4, None), vec![1, 2, 3]),
            // Of what was written where the log was told up to 5, who has only that has nothing.
            (after(5, None), vec![1, 2, 3]),
            (after(6, None), vec![3]),
            (after(8, None), vec![]),
            (after(5, Some(1)), vec![2, 3]),
            (after(7, Some(3)), vec![]),
            (Start::After { position: None, number: Some(0) }, vec![1, 2, 3]),
        ] {
            queue.rewind(start);
            // Written again where they were, for the next.
            let taken = queue.take(None);
            assert_eq!(numbers(&taken), again, "{start:?}");
            for message in &mut queue.written {
                message.at = Some(Position(if message.number == 3 { 7 } else { 5 }));
            }
        }
    }

    #[test]
    fn messages_are_forgotten_only_once_the_socket_has_them() {
        let mut queue = queue(500);
        queue.take(None);
        assert_eq!(queue.written.len(), 500);
        queue.flushed(100, BTreeMap::new());
        assert_eq!((queue.written.len(), queue.written[0].number), (400 + KEPT, 37));
        queue.flushed(500, BTreeMap::new());
        assert_eq!((queue.written.len(), queue.written[0].number), (KEPT, 437));
        let big = vec![b' '; KEPT_BYTES / 2 + 1];
        queue.push(big.clone());
        queue.push(big);
        queue.take(None);
        queue.flushed(502, BTreeMap::new());
        assert_eq!((queue.written.len(), queue.written[0].number), (1, 502));
    }
}
