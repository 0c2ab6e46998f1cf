//! Reading the log at a client's own pace: for frontends that hold state for each client and so translate for each (its waiting prompts,
//! the requests that it got), and for connections that hyper writes (`streamed`). On plain connections, frontends that send all clients
//! the same bytes use an [`EventFan`](super::fanout::EventFan).

use std::time::Duration;

use plexus_ledger::{Account, Charge};
use plexus_metrics::{Subscribed, Subscriber};
use plexus_protocol::{Cursor, Position};
use plexus_sessions::{EventPage, EventWatch, Filter, Log};
use plexus_store::ReadLimit;

/// Limit of one read; its events are translated and written before more are read.
const PAGE: ReadLimit = ReadLimit { events: 256, bytes: 64 << 10 };
/// Time until a follower retries after an error of the store.
const STORE_RETRY: Duration = Duration::from_millis(200);

/// A position in the log, with a filter. Holds no events.
pub struct FollowLog {
    log: Log,
    filter: Filter,
    position: Position,
    /// The position whose passing ends a wait, even without events.
    mark: Option<Position>,
    watch: EventWatch,
    /// `true` if the last read used the store.
    cold: bool,
    _counted: Subscribed,
}

impl FollowLog {
    /// Begins after `after`; counted as a subscriber of that kind until dropped.
    pub fn new(log: &Log, filter: Filter, after: Position, kind: Subscriber) -> Self {
        let watch = log.watch_for(&filter);
        Self { log: log.clone(), filter, position: after, mark: None, watch, cold: false, _counted: kind.count() }
    }

    /// Makes [`page`](Self::page) return once the log is read up to `mark`, even without events.
    pub fn until(self, mark: Position) -> Self {
        Self { mark: Some(mark).filter(|mark| *mark > self.position), ..self }
    }

    /// Returns the position up to which the log was read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the [`position`](Self::position) as a cursor for clients.
    pub fn cursor(&self) -> Cursor {
        self.log.cursor(self.position)
    }

    /// Returns the next events; waits until there are some, or until the [mark](Self::until) is reached. Cancellation safe: nothing is
    /// skipped.
    pub async fn page(&mut self) -> EventPage {
        loop {
            if let Some(page) = self.more().await {
                return page;
            }
            self.changed().await;
        }
    }

    /// Waits until there may be more. Cancellation safe.
    pub async fn changed(&self) {
        self.watch.changed().await;
    }

    /// Returns whether the reader is so far behind that its last read was from the store.
    pub fn is_cold(&self) -> bool {
        self.cold
    }

    /// Like [`more`](Self::more), with the charge for the events. Charges first: of many concurrent readers some wait, and the memory for
    /// their events is bounded. Cancellation safe.
    pub async fn more_within(&mut self, account: &Account) -> Option<(EventPage, Charge)> {
        let mut charged = PAGE.bytes;
        loop {
            let mut charge = account.wait(charged).await;
            let before = (self.position, self.mark);
            let page = self.more().await?;
            let bytes = page.events.iter().map(|event| event.weight()).sum();
            if bytes <= charged || charge.resize(bytes).is_ok() {
                return Some((page, charge));
            }
            // One long event: it is read again once it can be charged.
            (self.position, self.mark) = before;
            charged = bytes;
        }
    }

    /// Returns the next events, if there are any yet. Cancellation safe: nothing is skipped.
    pub async fn more(&mut self) -> Option<EventPage> {
        loop {
            let page = match self.log.read_hot(&self.filter, self.position, PAGE) {
                Some(page) => {
                    self.cold = false;
                    Ok(page)
                }
                None => {
                    self.cold = true;
                    Box::pin(self.log.read(&self.filter, self.position, PAGE)).await
                }
            };
            match page {
                Ok(page) if page.next > self.position => {
                    self.position = page.next;
                    let marked = self.mark.take_if(|mark| *mark <= page.next).is_some();
                    if marked || !page.events.is_empty() {
                        return Some(page);
                    }
                }
                Ok(_) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a client is waiting: the log cannot be read");
                    tokio::time::sleep(STORE_RETRY).await;
                }
            }
        }
    }
}
