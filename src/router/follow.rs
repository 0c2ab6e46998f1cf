//! The log at a client's own pace: for frontends that keep something about each client and so translate for each (which of
//! its prompts wait, what it was asked), and for connections that hyper writes (`streamed`). On plain
//! connections frontends that show everybody the same bytes use an [`EventFan`](super::fanout::EventFan).

use std::time::Duration;

use plexus_ledger::{Account, Charge};
use plexus_metrics::{Subscribed, Subscriber};
use plexus_protocol::{Cursor, Position};
use plexus_sessions::{EventPage, EventWatch, Filter, Log};
use plexus_store::ReadLimit;

/// Events read at once; they are translated and written before more are read.
const PAGE: ReadLimit = ReadLimit { events: 256, bytes: 64 << 10 };
/// Time until a follower retries after an error of the store.
const STORE_RETRY: Duration = Duration::from_millis(200);

/// A position in the log, with a filter. Holds no events.
pub struct FollowLog {
    log: Log,
    filter: Filter,
    position: Position,
    /// A position whose passing ends a wait, even without events.
    mark: Option<Position>,
    news: EventWatch,
    /// The last read had to ask the store.
    cold: bool,
    _counted: Subscribed,
}

impl FollowLog {
    /// Begins after `after`; counted as a subscriber of that kind until dropped.
    pub fn new(log: &Log, filter: Filter, after: Position, kind: Subscriber) -> Self {
        let news = log.watch_for(&filter);
        Self { log: log.clone(), filter, position: after, mark: None, news, cold: false, _counted: kind.count() }
    }

    /// Makes [`page`](Self::page) return once the log is read up to `mark`, even without events.
    pub fn until(self, mark: Position) -> Self {
        Self { mark: Some(mark).filter(|mark| *mark > self.position), ..self }
    }

    /// The position up to which the log was read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// As [`position`](Self::position), for clients.
    pub fn cursor(&self) -> Cursor {
        self.log.cursor(self.position)
    }

    /// The next events; waits until there are some, or until the [mark](Self::until) is reached. Cancellation safe: nothing is skipped.
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
        self.news.changed().await;
    }

    /// Returns whether it is so far behind that its last read was from the store.
    pub fn is_cold(&self) -> bool {
        self.cold
    }

    /// As [`more`](Self::more), with the charge for what is read. Room first: of many that come at once some wait, and
    /// what is read for them is bounded. Cancellation safe.
    pub async fn more_within(&mut self, account: &Account) -> Option<(EventPage, Charge)> {
        let mut asked = PAGE.bytes;
        loop {
            let mut room = account.wait(asked).await;
            let before = (self.position, self.mark);
            let page = self.more().await?;
            let bytes = page.events.iter().map(|event| event.weight()).sum();
            if bytes <= asked || room.resize(bytes).is_ok() {
                return Some((page, room));
            }
            // One long event: it is read again once there is room for it.
            (self.position, self.mark) = before;
            asked = bytes;
        }
    }

    /// The next events, if there are some by now. Cancellation safe: nothing is skipped.
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
