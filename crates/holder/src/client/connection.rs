//! The queue to a holder: messages are written at once if possible, else queued.

use super::*;

/// The writing half of a connection. Messages are written at once if possible, else by [`pump`].
pub(super) struct HolderConnection {
    pub(super) write: OwnedWriteHalf,
    pub(super) queue: Mutex<Queue>,
    /// The signal for [`pump`] that there is something to write, or that the client was dropped.
    pub(super) wake: Notify,
    /// The signal for the reader that the queue is too long.
    pub(super) stuck: Notify,
}

pub(super) struct Queue {
    /// Messages that wait until the runtime has read more of its input, and the number of bytes of input in them.
    pub(super) blocked: VecDeque<Message>,
    pub(super) blocked_bytes: usize,
    /// The time when the runtime last read input, or when input was first queued.
    pub(super) last_progress: Instant,
    /// Input that the runtime has not read, as far as known: its end offset, and its bytes.
    pub(super) unconfirmed: VecDeque<(u64, Bytes)>,
    /// The sizes of the state that the holder retains.
    pub(super) deposits: QueueWeights,
    pub(super) pieces: VecDeque<Bytes>,
    /// Number of bytes of `pieces`.
    pub(super) queued_bytes: usize,
    /// `true` if the last piece is an acknowledgement that may still be replaced.
    pub(super) ack_last: bool,
    pub(super) acked: u64,
    /// Number of bytes of input sent since the runtime was started.
    pub(super) put: u64,
    /// Number of bytes of input that no longer wait.
    pub(super) taken: u64,
    pub(super) write_max: u64,
    /// `true` if the runtime accepts no more input.
    pub(super) closed: bool,
    /// `true` if the client was dropped.
    pub(super) dropped: bool,
    /// `true` if the connection failed: messages are discarded. The reader reports it.
    pub(super) failed: bool,
}

/// A message, and the number of bytes of input in it.
pub(super) struct Message {
    pub(super) pieces: [Bytes; 3],
    pub(super) input: usize,
}

/// The sizes of the state that a holder retains: the holder's own rules, applied to lengths.
#[derive(Default)]
pub(super) struct QueueWeights {
    pub(super) each: VecDeque<(u64, usize, bool)>,
    pub(super) bytes: usize,
}

impl QueueWeights {
    pub(super) fn push(&mut self, offset: u64, len: usize, step: bool) {
        self.each.push_back((offset, len, step));
        self.bytes += len;
    }

    pub(super) fn prune(&mut self, acked: u64) {
        let newest = self.each.iter().rposition(|(offset, _, step)| !step && *offset <= acked);
        for (_, len, _) in self.each.drain(..newest.unwrap_or(0)) {
            self.bytes -= len;
        }
    }

    /// Returns whether the holder has too much state. Excludes the newest whole state, which always exists.
    pub(super) fn has_much_state(&self) -> bool {
        let newest = self.each.iter().rev().find(|(_, _, step)| !step).map_or(0, |(_, len, _)| *len);
        self.bytes - newest > DEPOSITS_MAX || self.each.len() > wire::BLOBS_MAX / 2
    }
}

impl HolderConnection {
    pub(super) fn new(write: OwnedWriteHalf) -> Self {
        let queue = Queue {
            blocked: VecDeque::new(),
            blocked_bytes: 0,
            last_progress: Instant::now(),
            unconfirmed: VecDeque::new(),
            deposits: QueueWeights::default(),
            pieces: VecDeque::new(),
            queued_bytes: 0,
            ack_last: false,
            acked: 0,
            put: 0,
            taken: 0,
            write_max: wire::STDIN_MAX as u64,
            closed: false,
            dropped: false,
            failed: false,
        };
        Self { write, queue: Mutex::new(queue), wake: Notify::new(), stuck: Notify::new() }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Sends a message, or queues it until the holder can accept its input.
    pub(super) fn send_or_block(&self, queue: &mut Queue, message: Message) {
        if queue.failed {
            return;
        }
        if queue.blocked.is_empty() && (message.input == 0 || queue.has_capacity(message.input)) {
            return self.send(queue, message.pieces);
        }
        if queue.blocked.is_empty() {
            queue.last_progress = Instant::now();
        }
        queue.blocked_bytes += message.input;
        queue.blocked.push_back(message);
    }

    /// Records that the runtime has read `total` bytes of its input.
    pub(super) fn record_taken(&self, total: u64) {
        let mut queue = self.queue();
        if total > queue.taken {
            queue.last_progress = Instant::now();
        }
        queue.taken = total;
        while queue.unconfirmed.front().is_some_and(|(end, _)| *end <= total) {
            queue.unconfirmed.pop_front();
        }
        while let Some(first) = queue.blocked.front()
            && (first.input == 0 || queue.has_capacity(0))
            && let Some(message) = queue.blocked.pop_front()
        {
            queue.blocked_bytes -= message.input;
            self.send(&mut queue, message.pieces);
        }
    }

    pub(super) fn send<const N: usize>(&self, queue: &mut Queue, pieces: [Bytes; N]) {
        if queue.failed {
            return;
        }
        let idle = queue.pieces.is_empty();
        queue.ack_last = false;
        for piece in pieces {
            // An empty piece would look like a write of zero bytes.
            if !piece.is_empty() {
                queue.queued_bytes += piece.len();
                queue.pieces.push_back(piece);
            }
        }
        if idle {
            self.write(queue);
        }
        if queue.queued_bytes > QUEUE_MAX {
            queue.fail();
            self.stuck.notify_one();
        } else if idle && !queue.pieces.is_empty() {
            self.wake.notify_one();
        }
    }

    /// Writes as much as the socket accepts.
    pub(super) fn write(&self, queue: &mut Queue) {
        while !queue.pieces.is_empty() {
            let slices: Vec<IoSlice<'_>> = queue.pieces.iter().take(64).map(|piece| IoSlice::new(piece)).collect();
            match self.write.try_write_vectored(&slices) {
                Ok(written) => queue.written(written),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => queue.fail(),
            }
        }
    }
}

impl Queue {
    /// Returns whether the holder can accept more input, beside the queue and `new` bytes that are already counted in `put`.
    fn has_capacity(&self, new: usize) -> bool {
        let sent = self.put.saturating_sub(self.blocked_bytes as u64 + new as u64);
        sent.saturating_sub(self.taken) < self.write_max
    }

    pub(super) fn written(&mut self, mut bytes: usize) {
        self.queued_bytes -= bytes;
        while bytes > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let part = piece.len().min(bytes);
            piece.advance(part);
            bytes -= part;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.queued_bytes = 0;
        self.pieces.clear();
        self.blocked.clear();
        self.blocked_bytes = 0;
    }
}

/// Writes queued messages until the client is dropped.
pub(super) async fn pump(connection: Arc<HolderConnection>) {
    loop {
        connection.wake.notified().await;
        let dropped = connection.queue().dropped;
        let write_all = async {
            while !connection.queue().pieces.is_empty() {
                if connection.write.writable().await.is_err() {
                    connection.queue().fail();
                }
                connection.write(&mut connection.queue());
            }
        };
        if dropped {
            let _ = timeout(FLUSH_TIMEOUT, write_all).await;
            return;
        }
        tokio::select! {
            () = write_all => {}
            // Woken again: the client was dropped, or there is more to write.
            () = connection.wake.notified() => connection.wake.notify_one(),
        }
    }
}
