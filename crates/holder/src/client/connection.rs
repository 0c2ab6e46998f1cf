//! What is on its way to a holder: written at once when there is room, else queued.

use super::*;

/// What is on its way to a holder. It is written at once when there is room, and else by [`pump`].
pub(super) struct HolderConnection {
    pub(super) write: OwnedWriteHalf,
    pub(super) queue: Mutex<Queue>,
    /// There is something to pump, or nothing will come any more.
    pub(super) more: Notify,
    /// Too much waits.
    pub(super) stuck: Notify,
}

pub(super) struct Queue {
    /// Messages that wait until the runtime has taken more of its input, and the bytes of input in them.
    pub(super) gated: VecDeque<Message>,
    pub(super) gated_bytes: usize,
    /// When the runtime last took input, or some had to wait for the first time.
    pub(super) moved: Instant,
    /// Input that the runtime has not taken, as far as is known: where it ends, and itself.
    pub(super) unconfirmed: VecDeque<(u64, Bytes)>,
    /// What the holder keeps of what was given.
    pub(super) deposits: QueueWeights,
    pub(super) pieces: VecDeque<Bytes>,
    /// Their bytes.
    pub(super) waiting: usize,
    /// The last piece is an acknowledgement, and no part of it was written if others stand before it.
    pub(super) ack_last: bool,
    pub(super) acked: u64,
    /// Input sent since the runtime was started, in bytes …
    pub(super) put: u64,
    /// … and how much of it waits no more.
    pub(super) taken: u64,
    pub(super) write_max: u64,
    /// No input any more.
    pub(super) closed: bool,
    /// Nobody uses the connection any more.
    pub(super) dropped: bool,
    /// It failed: what is sent goes nowhere. The reading side says so.
    pub(super) failed: bool,
}

/// A message, and how much input is in it, in bytes.
pub(super) struct Message {
    pub(super) pieces: [Bytes; 3],
    pub(super) input: usize,
}

/// What a holder keeps of the state that was given to it: the holder's own rules, over lengths alone.
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

    /// The newest whole state does not count: there is always one.
    pub(super) fn heavy(&self) -> bool {
        let newest = self.each.iter().rev().find(|(_, _, step)| !step).map_or(0, |(_, len, _)| *len);
        self.bytes - newest > DEPOSITS_MAX || self.each.len() > wire::BLOBS_MAX / 2
    }
}

impl HolderConnection {
    pub(super) fn new(write: OwnedWriteHalf) -> Self {
        let queue = Queue {
            gated: VecDeque::new(),
            gated_bytes: 0,
            moved: Instant::now(),
            unconfirmed: VecDeque::new(),
            deposits: QueueWeights::default(),
            pieces: VecDeque::new(),
            waiting: 0,
            ack_last: false,
            acked: 0,
            put: 0,
            taken: 0,
            write_max: wire::STDIN_MAX as u64,
            closed: false,
            dropped: false,
            failed: false,
        };
        Self { write, queue: Mutex::new(queue), more: Notify::new(), stuck: Notify::new() }
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Sends a message, or lets it wait: for room for its input, and for its turn.
    pub(super) fn pass(&self, queue: &mut Queue, message: Message) {
        if queue.failed {
            return;
        }
        if queue.gated.is_empty() && (message.input == 0 || queue.has_room(message.input)) {
            return self.send(queue, message.pieces);
        }
        if queue.gated.is_empty() {
            queue.moved = Instant::now();
        }
        queue.gated_bytes += message.input;
        queue.gated.push_back(message);
    }

    /// The runtime has taken so much of its input.
    pub(super) fn took(&self, total: u64) {
        let mut queue = self.queue();
        if total > queue.taken {
            queue.moved = Instant::now();
        }
        queue.taken = total;
        while queue.unconfirmed.front().is_some_and(|(end, _)| *end <= total) {
            queue.unconfirmed.pop_front();
        }
        while let Some(first) = queue.gated.front()
            && (first.input == 0 || queue.has_room(0))
            && let Some(message) = queue.gated.pop_front()
        {
            queue.gated_bytes -= message.input;
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
            // An empty piece would look like a write of nothing.
            if !piece.is_empty() {
                queue.waiting += piece.len();
                queue.pieces.push_back(piece);
            }
        }
        if idle {
            self.write(queue);
        }
        if queue.waiting > QUEUE_MAX {
            queue.fail();
            self.stuck.notify_one();
        } else if idle && !queue.pieces.is_empty() {
            self.more.notify_one();
        }
    }

    /// Writes what fits.
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
    /// Whether the holder may be given more input, beside what waits and the `new` bytes that are counted as put already.
    fn has_room(&self, new: usize) -> bool {
        let sent = self.put.saturating_sub(self.gated_bytes as u64 + new as u64);
        sent.saturating_sub(self.taken) < self.write_max
    }

    pub(super) fn written(&mut self, mut bytes: usize) {
        self.waiting -= bytes;
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
        self.waiting = 0;
        self.pieces.clear();
        self.gated.clear();
        self.gated_bytes = 0;
    }
}

/// Writes what could not be written at once, until the connection is used no more.
pub(super) async fn pump(way: Arc<HolderConnection>) {
    loop {
        way.more.notified().await;
        let dropped = way.queue().dropped;
        let all = async {
            while !way.queue().pieces.is_empty() {
                if way.write.writable().await.is_err() {
                    way.queue().fail();
                }
                way.write(&mut way.queue());
            }
        };
        if dropped {
            let _ = timeout(LAST_WORDS, all).await;
            return;
        }
        tokio::select! {
            () = all => {}
            // Woken again: it was dropped meanwhile, or there is more, which it would find anyway.
            () = way.more.notified() => way.more.notify_one(),
        }
    }
}
