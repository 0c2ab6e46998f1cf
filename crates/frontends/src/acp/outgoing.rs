//! The streams of a connection of ACP over HTTP.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connections::Connection;
use super::stream_queue::{Message, NumberedStream, Start, StreamQueue};
use super::{Sent, SessionStream};
use plexus_protocol::{Cursor, Position, SessionId};
use plexus_router::frames::sse_data;
use plexus_router::sse::ExtraEvents;

/// An open stream.
pub(super) struct Stream {
    connection: Arc<Connection>,
    session: Option<SessionId>,
    /// The stream's number in its queue.
    number: u64,
    streams: Arc<tokio::sync::Mutex<Vec<SessionStream>>>,
    /// The start of the stream, until the stream has begun.
    start: Option<Start>,
    changed: watch::Receiver<u64>,
    /// The number of the last message written.
    written: u64,
}

impl Stream {
    /// Makes stream number `number` of a queue.
    pub(super) fn new(
        connection: Arc<Connection>,
        session: Option<SessionId>,
        (number, streams): NumberedStream,
        start: Start,
    ) -> Self {
        let changed = connection.changed.subscribe();
        Self { connection, session, number, streams, start: Some(start), changed, written: 0 }
    }

    /// Accesses the queue. Returns `None` if the connection has ended, or a newer stream has replaced this one.
    fn queue<T>(&self, read: impl FnOnce(&mut StreamQueue) -> T) -> Option<T> {
        if *self.connection.ended.borrow() {
            return None;
        }
        let mut inner = self.connection.lock();
        let result = inner.queues.get_mut(&self.session).filter(|queue| queue.newest == self.number).map(read);
        self.connection.charge_queues(&mut inner);
        result
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

    /// Holds a session stream for each session that the client is in, if one stream has them all.
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

    async fn next_messages(&mut self) -> Option<Vec<u8>> {
        let streams = Arc::clone(&self.streams);
        let mut streams = streams.lock().await;
        if let Some(start) = self.start {
            self.begin(start, &mut streams)?;
            self.start = None;
        } else {
            // The caller requests more, so everything before was written.
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
                    // The client has received nothing of the session yet, or begins again.
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

impl ExtraEvents for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(self.next_messages())
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
        // The queue of a session that the client has left is no longer needed.
        let empty = queue.waiting.is_empty() && queue.written.is_empty() && queue.positions.is_empty();
        if empty && self.session.is_some() {
            inner.queues.remove(&self.session);
        }
    }
}
