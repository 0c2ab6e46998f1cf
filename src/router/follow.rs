//! Reading the log at a client's own pace, for frontends that translate for each client, because they keep state about it:
//! which prompts wait, which requests were sent. Frontends that send all clients the same bytes use an
//! [`EventFan`](super::fanout::EventFan).

use std::time::Duration;

use crate::metrics::{Subscribed, Subscriber};
use crate::sessions::{EventPage, EventWatch, Filter, Log};
use plexus_protocol::{Cursor, Position};
use plexus_store::ReadLimit;

/// Events read at once; they are translated and written before more are read.
const PAGE: ReadLimit = ReadLimit { events: 256, bytes: 64 << 10 };
/// Time until a follower retries after an error of the store.
const STORE_RETRY: Duration = Duration::from_millis(200);

/// A position in the log, with a filter. Holds no events.
pub(super) struct Follow {
    log: Log,
    filter: Filter,
    position: Position,
    /// A position whose passing ends a wait, even without events.
    mark: Option<Position>,
    news: EventWatch,
    _counted: Subscribed,
}

impl Follow {
    /// Begins after `after`; counted as a subscriber of that kind until dropped.
    pub(super) fn new(log: &Log, filter: Filter, after: Position, kind: Subscriber) -> Self {
        let news = log.watch_for(&filter);
        Self { log: log.clone(), filter, position: after, mark: None, news, _counted: kind.count() }
    }

    /// Makes [`page`](Self::page) return once the log is read up to `mark`, even without events.
    pub(super) fn until(self, mark: Position) -> Self {
        Self { mark: Some(mark).filter(|mark| *mark > self.position), ..self }
    }

    /// The position up to which the log was read.
    pub(super) fn cursor(&self) -> Cursor {
        self.log.cursor(self.position)
    }

    /// The next events; waits until there are some, or until the [mark](Self::until) is reached. Cancellation safe: nothing is skipped.
    pub(super) async fn page(&mut self) -> EventPage {
        loop {
            if let Some(page) = self.more().await {
                return page;
            }
            self.news.changed().await;
        }
    }

    /// The next events, if there are some by now. Cancellation safe: nothing is skipped.
    pub(super) async fn more(&mut self) -> Option<EventPage> {
        loop {
            let page = match self.log.read_hot(&self.filter, self.position, PAGE) {
                Some(page) => Ok(page),
                None => Box::pin(self.log.read(&self.filter, self.position, PAGE)).await,
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
