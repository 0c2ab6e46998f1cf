//! The messages of a stream that are not in the log, stored for a client without one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::SessionStream;
use plexus_protocol::{Position, SessionId};

/// Maximum number of messages of a queue that were passed to the socket and are retained for a client that resumes without them; older
/// ones are dropped.
const RETAINED: usize = 64;
/// Approximate maximum size of these messages, in bytes.
const RETAINED_BYTES: usize = 1 << 20;

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
    pub(super) written: VecDeque<Message>,
    /// The number of the last message that was completely passed to the socket.
    flushed: u64,
    /// The positions up to which the log was passed to the socket, by session.
    pub(super) positions: BTreeMap<SessionId, Position>,
}

/// A message that is not in the log.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) number: u64,
    /// The position up to which the log was sent when the message was written.
    at: Option<Position>,
    pub(super) json: Vec<u8>,
}

impl StreamQueue {
    /// Makes the queue of a session.
    pub(super) fn new(stream: SessionStream) -> Self {
        Self { streams: Arc::new(tokio::sync::Mutex::new(vec![stream])), ..Self::default() }
    }

    /// Returns the number of bytes retained for the client.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.iter().chain(&self.written).map(|message| message.json.len()).sum()
    }

    /// Queues a message.
    pub(super) fn push(&mut self, json: Vec<u8>) {
        self.count += 1;
        self.waiting.push_back(Message { number: self.count, at: None, json });
    }

    /// Goes back to `start`: later messages will be written again.
    pub(super) fn rewind(&mut self, start: Start) {
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
    pub(super) fn flushed(&mut self, number: u64, positions: BTreeMap<SessionId, Position>) {
        self.flushed = number;
        self.positions = positions;
        let out = self.written.iter().take_while(|message| message.number <= number);
        let (mut count, mut bytes) = out.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.json.len()));
        while count > RETAINED || bytes > RETAINED_BYTES {
            let Some(old) = self.written.pop_front() else { break };
            count -= 1;
            bytes -= old.json.len();
        }
    }

    /// Takes the waiting messages, as written after the log up to `at`.
    pub(super) fn take(&mut self, at: Option<Position>) -> Vec<Message> {
        let mut taken: Vec<Message> = self.waiting.drain(..).collect();
        for message in &mut taken {
            message.at = at;
        }
        self.written.extend(taken.iter().cloned());
        taken
    }
}

/// The number of a stream in its queue, and the session streams that it reads.
pub(super) type NumberedStream = (u64, Arc<tokio::sync::Mutex<Vec<SessionStream>>>);

/// The start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The end of what the previous stream passed to the socket.
    Flushed,
    /// The end of what the client has: the log up to a position, and the messages up to a number.
    After { position: Option<Position>, number: Option<u64> },
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
        assert_eq!((queue.written.len(), queue.written[0].number), (400 + RETAINED, 37));
        queue.flushed(500, BTreeMap::new());
        assert_eq!((queue.written.len(), queue.written[0].number), (RETAINED, 437));
        let big = vec![b' '; RETAINED_BYTES / 2 + 1];
        queue.push(big.clone());
        queue.push(big);
        queue.take(None);
        queue.flushed(502, BTreeMap::new());
        assert_eq!((queue.written.len(), queue.written[0].number), (1, 502));
    }
}
