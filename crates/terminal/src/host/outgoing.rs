//! The output that waits for one attachment: a bounded queue, and the task that sends it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::Event;
use crate::wire::FromHost;

/// Maximum number of bytes that wait for an attachment. One that falls further behind gets a snapshot instead, once it reads again.
pub(super) const QUEUE_MAX: usize = 1 << 20;

/// Time without progress after which the connection of an attachment is ended.
const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// The progress of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pace {
    /// The attachment gets all output.
    #[default]
    Current,
    /// The attachment fell behind, and the queued output was dropped.
    Behind,
    /// The attachment has received the rest, and waits for a snapshot.
    Waiting,
}

#[derive(Debug)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    pace: Pace,
    /// `true` if the connection ends once everything is sent.
    closing: bool,
    /// The time of the attachment's last progress.
    progress: Instant,
}

/// The queue of one attachment.
#[derive(Debug)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    wake: Notify,
}

impl Outgoing {
    pub(super) fn new() -> Arc<Self> {
        let queue = Queue {
            messages: VecDeque::new(),
            bytes: 0,
            pace: Pace::Current,
            closing: false,
            progress: Instant::now(),
        };
        Arc::new(Self { queue: Mutex::new(queue), wake: Notify::new() })
    }

    /// Queues a message; returns whether it will be sent. Above the limit, all waiting messages are dropped.
    pub(super) fn push(&self, message: &FromHost) -> bool {
        let mut queue = self.queue.lock();
        if queue.pace != Pace::Current || queue.closing {
            return false;
        }
        let bytes = message.to_bytes();
        // A snapshot may be longer than the limit: it is then the only message.
        if queue.bytes > 0 && queue.bytes + bytes.len() > QUEUE_MAX {
            drop(queue);
            self.fall_behind();
            return false;
        }
        if queue.bytes == 0 {
            queue.progress = Instant::now();
        }
        queue.bytes += bytes.len();
        queue.messages.push_back(bytes);
        drop(queue);
        self.wake.notify_one();
        true
    }

    /// Drops the waiting messages: the attachment gets a snapshot after the message that is being sent.
    pub(super) fn fall_behind(&self) {
        let mut queue = self.queue.lock();
        if queue.pace == Pace::Current {
            queue.messages.clear();
            queue.bytes = 0;
            queue.pace = Pace::Behind;
            drop(queue);
            self.wake.notify_one();
        }
    }

    /// Returns whether the attachment is behind.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.lock().pace != Pace::Current
    }

    /// Resumes sending once the attachment has received the rest: messages pushed from now on are sent again.
    pub(super) fn catch_up(&self) {
        self.queue.lock().pace = Pace::Current;
    }

    /// Returns the number of waiting bytes, and the time of the attachment's last progress.
    pub(super) fn waiting(&self) -> (usize, Instant) {
        let queue = self.queue.lock();
        (queue.bytes, queue.progress)
    }

    /// Ends the connection once everything is sent.
    pub(super) fn close(&self) {
        self.queue.lock().closing = true;
        self.wake.notify_one();
    }

    /// Sends queued messages until the end of the connection. `message_taken` is notified after each sent message.
    pub(super) async fn send(
        self: Arc<Self>,
        id: u64,
        mut stream: OwnedWriteHalf,
        events: mpsc::Sender<Event>,
        message_taken: Arc<Notify>,
    ) {
        loop {
            enum Next {
                Send(Bytes),
                Ask,
                Wait,
                End,
            }
            let next = {
                let mut queue = self.queue.lock();
                match queue.messages.pop_front() {
                    Some(message) => Next::Send(message),
                    None if queue.pace == Pace::Behind => {
                        queue.pace = Pace::Waiting;
                        Next::Ask
                    }
                    None if queue.closing && queue.pace == Pace::Current => Next::End,
                    None => Next::Wait,
                }
            };
            match next {
                Next::Send(mut message) => {
                    let length = message.len();
                    while message.has_remaining() {
                        match timeout(WRITE_TIMEOUT, stream.write(&message)).await {
                            Ok(Ok(written @ 1..)) => {
                                message.advance(written);
                                self.queue.lock().progress = Instant::now();
                            }
                            // Its earlier input is read to the end, which ends the attachment.
                            Ok(_) => return,
                            Err(_) => return drop(events.send(Event::Disconnected(id)).await),
                        }
                    }
                    let mut queue = self.queue.lock();
                    queue.bytes = queue.bytes.saturating_sub(length);
                    drop(queue);
                    message_taken.notify_one();
                }
                Next::Ask => {
                    if events.send(Event::CaughtUp(id)).await.is_err() {
                        return;
                    }
                }
                Next::Wait => self.wake.notified().await,
                Next::End => {
                    let _ = stream.shutdown().await;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: usize) -> FromHost {
        FromHost::Output(vec![b'x'; bytes].into())
    }

    #[tokio::test]
    async fn attachment_that_takes_nothing_holds_a_bounded_queue() {
        let outgoing = Outgoing::new();
        assert!((0..15).all(|_| outgoing.push(&output(64 << 10))));
        assert!(!outgoing.push(&output(128 << 10)), "beyond the bound");
        assert_eq!((outgoing.waiting().0, outgoing.is_behind()), (0, true));
        assert!(!outgoing.push(&output(1)), "nothing but a snapshot is of use now");
        outgoing.catch_up();
        assert!(outgoing.push(&output(4 << 20)), "a snapshot of any length, while nothing waits");
        assert!(!outgoing.push(&output(1)));
    }
}
