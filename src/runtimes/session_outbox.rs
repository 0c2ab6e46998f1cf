//! The events of a driver that sessions have not received yet.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt as _;

use plexus_sessions::{RuntimeMessage, SessionSender};

/// The events on their way to sessions, in order.
#[derive(Default)]
pub(super) struct SessionOutbox {
    now: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    then: VecDeque<(SessionSender, RuntimeMessage)>,
}

impl SessionOutbox {
    pub(super) fn is_empty(&self) -> bool {
        self.now.is_none() && self.then.is_empty()
    }

    pub(super) fn push(&mut self, sender: SessionSender, batch: RuntimeMessage) {
        self.then.push_back((sender, batch));
    }

    /// Delivers the events for which sessions have capacity now. [`deliver`](Self::deliver) waits for the others.
    pub(super) fn deliver_now(&mut self) {
        let _ = self.deliver().now_or_never();
    }

    /// Delivers everything. Cancellation safe: undelivered events are still on their way.
    pub(super) async fn deliver(&mut self) {
        loop {
            if self.now.is_none() {
                let Some((sender, batch)) = self.then.pop_front() else { return };
                self.now = Some(Box::pin(async move { sender.put(batch).await }));
            }
            if let Some(now) = &mut self.now {
                now.await;
            }
            self.now = None;
        }
    }
}
