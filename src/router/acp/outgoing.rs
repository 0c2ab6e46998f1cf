//! The streams of a connection of ACP over HTTP, and what is kept for the client that they do not reach.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::connections::Connection;
use super::{Sent, SessionStream};
use crate::router::frames::sse_data;
use crate::router::sse::News;
use plexus_protocol::{Cursor, Position, SessionId};

/// Messages a lane that were handed to the socket and are kept for a client that comes back without them; the older are
/// forgotten.
const KEPT: usize = 64;
/// The bytes of these, about.
const KEPT_BYTES: usize = 1 << 20;
/// What a stream shows beside the log.
#[derive(Default)]
pub(super) struct Lane {
    /// Counts the streams; only the last one counts.
    pub(super) streams: u64,
    pub(super) open: bool,
    /// What drives the log's part, if it has one; whoever looks holds it, so that two streams never do at once. The one
    /// that told something last is at the end, so that all get their turn.
    pub(super) seats: Arc<tokio::sync::Mutex<Vec<SessionStream>>>,
    /// Numbers the messages, from 1.
    count: u64,
    pub(super) waiting: VecDeque<Message>,
    /// They went out; whether they arrived only the client knows.
    written: VecDeque<Message>,
    /// Up to which message the last stream has handed all to the socket, whole.
    flushed: u64,
    /// The same for the log, by session.
    told: BTreeMap<SessionId, Position>,
}

/// A message that is in no log.
#[derive(Clone)]
pub(super) struct Message {
    number: u64,
    /// Up to where the log was told when it was written.
    at: Option<Position>,
    pub(super) json: Vec<u8>,
}

impl Lane {
    /// A session's.
    pub(super) fn over(seat: SessionStream) -> Self {
        Self { seats: Arc::new(tokio::sync::Mutex::new(vec![seat])), ..Self::default() }
    }

    /// Bytes that it keeps for the client.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.iter().chain(&self.written).map(|message| message.json.len()).sum()
    }

    /// One more.
    pub(super) fn push(&mut self, json: Vec<u8>) {
        self.count += 1;
        self.waiting.push_back(Message { number: self.count, at: None, json });
    }

    /// Back to `start`: what came after it will be written again.
    fn rewind(&mut self, start: Start) {
        let lost = |message: &Message| match start {
            Start::Flushed => message.number > self.flushed,
            Start::After { number: Some(number), .. } => message.number > number,
            // The cursor alone: nothing was seen since.
            Start::After { position, number: None } => message.at >= position,
        };
        let first = self.written.iter().position(lost).unwrap_or(self.written.len());
        for message in self.written.split_off(first).into_iter().rev() {
            self.waiting.push_front(message);
        }
    }

    /// All up to this is with the socket.
    fn flushed(&mut self, number: u64, told: BTreeMap<SessionId, Position>) {
        self.flushed = number;
        self.told = told;
        let out = self.written.iter().take_while(|message| message.number <= number);
        let (mut count, mut bytes) = out.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.json.len()));
        while count > KEPT || bytes > KEPT_BYTES {
            let Some(old) = self.written.pop_front() else { break };
            count -= 1;
            bytes -= old.json.len();
        }
    }

    /// What waits, as written where the log is told up to `at`.
    fn take(&mut self, at: Option<Position>) -> Vec<Message> {
        let mut taken: Vec<Message> = self.waiting.drain(..).collect();
        for message in &mut taken {
            message.at = at;
        }
        self.written.extend(taken.iter().cloned());
        taken
    }
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// After what the last one has handed to the socket.
    Flushed,
    /// After what the client has: the log up to a position, and the messages up to a number.
    After { position: Option<Position>, number: Option<u64> },
}

/// An open stream.
pub(super) struct Stream {
    connection: Arc<Connection>,
    session: Option<SessionId>,
    /// Which of its lane's.
    number: u64,
    seats: Arc<tokio::sync::Mutex<Vec<SessionStream>>>,
    /// Set until it has begun.
    start: Option<Start>,
    turned: watch::Receiver<u64>,
    /// The last message given out.
    written: u64,
}

impl Stream {
    /// Stream number `number` of a lane.
    pub(super) fn new(
        connection: Arc<Connection>,
        session: Option<SessionId>,
        (number, seats): (u64, Arc<tokio::sync::Mutex<Vec<SessionStream>>>),
        start: Start,
    ) -> Self {
        let turned = connection.turned.subscribe();
        Self { connection, session, number, seats, start: Some(start), turned, written: 0 }
    }

    /// Its lane. `None`: the connection has ended, or another stream has taken this one's place.
    fn lane<T>(&self, look: impl FnOnce(&mut Lane) -> T) -> Option<T> {
        if *self.connection.ended.borrow() {
            return None;
        }
        let mut inner = self.connection.lock();
        let looked = inner.lanes.get_mut(&self.session).filter(|lane| lane.streams == self.number).map(look);
        self.connection.settle(&mut inner);
        looked
    }

    /// Keeps messages that are in no log, whoever will write them.
    fn keep(&self, messages: Vec<Sent>) {
        let mut inner = self.connection.lock();
        let Some(lane) = inner.lanes.get_mut(&self.session) else { return };
        for sent in messages {
            lane.push(sent.json);
        }
        self.connection.settle(&mut inner);
    }

    /// A seat for every session that the client is in, where one stream has them all.
    fn settle(&self, seats: &mut Vec<SessionStream>) {
        if self.session.is_none() && self.connection.is_named() {
            let peer = self.connection.peer();
            let Some(peer) = peer.as_ref() else { return };
            let sessions = peer.sessions();
            seats.retain(|seat| sessions.contains(seat.session()));
            for session in sessions {
                if !seats.iter().any(|seat| *seat.session() == session) {
                    seats.push(peer.session_stream(session));
                }
            }
        }
    }

    /// Goes back to where the stream is to begin.
    fn begin(&self, start: Start, seats: &mut [SessionStream]) -> Option<()> {
        let told = self.lane(|lane| {
            lane.rewind(start);
            lane.told.clone()
        })?;
        for seat in seats {
            let position = match start {
                Start::After { position: Some(position), .. } => Some(position),
                _ => told.get(seat.session()).copied(),
            };
            // Only ever back: a session that was loaded again since begins before what the client once had.
            if let Some(position) = position
                && seat.cursor().is_some_and(|at| position < at.position)
            {
                seat.rewind(position);
            }
        }
        Some(())
    }

    async fn tell(&mut self) -> Option<Vec<u8>> {
        let seats = Arc::clone(&self.seats);
        let mut seats = seats.lock().await;
        if let Some(start) = self.start {
            self.begin(start, &mut seats)?;
            self.start = None;
        } else {
            // Asked for more: all before is out.
            let at = |seat: &SessionStream| Some((seat.session().clone(), seat.cursor()?.position));
            let told = seats.iter().filter_map(at).collect();
            self.lane(|lane| lane.flushed(self.written, told))?;
        }
        loop {
            self.turned.borrow_and_update();
            self.settle(&mut seats);
            let cursor = match (&self.session, &seats[..]) {
                (Some(_), [seat]) => seat.cursor(),
                _ => None,
            };
            let at = cursor.as_ref().map(|cursor| cursor.position);
            let messages = self.lane(|lane| lane.take(at))?;
            if !messages.is_empty() {
                let mut text = Vec::new();
                self.put(&messages, cursor.as_ref(), &mut text);
                return Some(text);
            }
            let next = async {
                if seats.is_empty() {
                    return std::future::pending().await;
                }
                let nexts = seats.iter_mut().map(|seat| Box::pin(seat.next()));
                let (sent, n, _) = futures_util::future::select_all(nexts).await;
                (sent, n)
            };
            let (sent, n) = tokio::select! {
                // The sender lives as long as the connection, which we hold.
                _ = self.turned.changed() => continue,
                next = next => next,
            };
            let told = seats.remove(n);
            let session = told.session().clone();
            seats.push(told);
            let (logged, other): (Vec<Sent>, Vec<Sent>) = sent.into_iter().partition(|sent| sent.in_log);
            let first = logged.iter().find_map(|sent| sent.cursor.as_ref());
            let before = first.map(|first| Position(first.position.0.saturating_sub(1)));
            let mut text = Vec::new();
            self.keep(other);
            let messages = self.lane(|lane| {
                if let Some(before) = before {
                    // So far the client has nothing of the session, or begins anew: before the first is as good as nothing.
                    let told = lane.told.entry(session).or_insert(before);
                    *told = before.min(*told);
                }
                lane.take(at)
            });
            let Some(messages) = messages else {
                // Another stream's turn: what was given out is for it.
                if let (Some(seat), Some(before)) = (seats.last_mut(), before) {
                    seat.rewind(before);
                }
                return None;
            };
            self.put(&messages, cursor.as_ref(), &mut text);
            for Sent { cursor, json, .. } in &logged {
                // A cursor is not the whole truth of a stream of many sessions, each at its own pace.
                let id = cursor.as_ref().filter(|_| self.session.is_some());
                sse_data(&mut text, id.map(|id| id as _), json);
            }
            return Some(text);
        }
    }

    /// Appends messages that are in no log; `cursor` is where the log was told up to.
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
        let Some(lane) = inner.lanes.get_mut(&self.session).filter(|lane| lane.streams == self.number) else { return };
        lane.open = false;
        // Nobody comes back for the rest of a session that there is no place in.
        let empty = lane.waiting.is_empty() && lane.written.is_empty() && lane.told.is_empty();
        if empty && self.session.is_some() {
            inner.lanes.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(messages: &[Message]) -> Vec<u64> {
        messages.iter().map(|message| message.number).collect()
    }

    fn lane(count: u64) -> Lane {
        let mut lane = Lane::default();
        (0..count).for_each(|_| lane.push(b"{}".to_vec()));
        lane
    }

    #[test]
    fn what_a_client_has_not_comes_again_and_what_it_has_does_not() {
        let mut lane = lane(2);
        assert_eq!(numbers(&lane.take(Some(Position(5)))), [1, 2]);
        lane.push(b"{}".to_vec());
        assert_eq!(numbers(&lane.take(Some(Position(7)))), [3]);
        lane.flushed(2, BTreeMap::new());
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
            lane.rewind(start);
            // Written again where they were, for the next.
            let taken = lane.take(None);
            assert_eq!(numbers(&taken), again, "{start:?}");
            for message in &mut lane.written {
                message.at = Some(Position(if message.number == 3 { 7 } else { 5 }));
            }
        }
    }

    #[test]
    fn only_what_is_with_the_socket_is_ever_forgotten() {
        let mut lane = lane(500);
        lane.take(None);
        assert_eq!(lane.written.len(), 500);
        lane.flushed(100, BTreeMap::new());
        assert_eq!((lane.written.len(), lane.written[0].number), (400 + KEPT, 37));
        lane.flushed(500, BTreeMap::new());
        assert_eq!((lane.written.len(), lane.written[0].number), (KEPT, 437));
        let big = vec![b' '; KEPT_BYTES / 2 + 1];
        lane.push(big.clone());
        lane.push(big);
        lane.take(None);
        lane.flushed(502, BTreeMap::new());
        assert_eq!((lane.written.len(), lane.written[0].number), (1, 502));
    }
}
