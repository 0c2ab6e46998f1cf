//! Conversations of a runtime that are not open here: offered to the sessions' side one after the other, none left out.

use std::collections::{HashSet, VecDeque};

use tokio::sync::mpsc;

use plexus_protocol::NativeId;
use plexus_sessions::FoundSession;

/// Maximum number of conversations of one runtime that wait to be opened. Beyond it the runtime's further ones are left out, which is
/// reported.
pub(super) const OFFERS_MAX: usize = 16 * 1024;

/// Maximum size of their names, folders and titles, in bytes, which the runtime chooses; beyond it, further ones are left out, too.
const OFFERS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns the text of the problem that some conversations were left out.
pub(super) fn too_many() -> String {
    "it has more conversations than can be offered: the others are left out".into()
}

/// The sessions that wait to be opened, in the order in which they were found.
#[derive(Default)]
pub(super) struct FoundSessions {
    waiting: VecDeque<FoundSession>,
    names: HashSet<NativeId>,
    bytes: usize,
}

/// Returns the size of a session, counted towards [`OFFERS_BYTES_MAX`]; its name is stored twice.
fn size(found: &FoundSession) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    2 * found.native.as_str().len() + text(&found.cwd) + text(&found.title)
}

impl FoundSessions {
    /// Adds a session, unless it waits already; returns `false` if there are too many.
    pub(super) fn push(&mut self, found: FoundSession) -> bool {
        if self.names.contains(&found.native) {
            return true;
        }
        let bytes = self.bytes.saturating_add(size(&found));
        if self.waiting.len() >= OFFERS_MAX || bytes > OFFERS_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.names.insert(found.native.clone());
        self.waiting.push_back(found);
        true
    }

    /// Returns whether no session waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends the next session when the queue has a place. Cancellation safe. Never returns if none waits.
    pub(super) async fn offer(&mut self, to: &mpsc::Sender<FoundSession>) {
        if self.waiting.is_empty() {
            std::future::pending::<()>().await;
        }
        let Ok(room) = to.reserve().await else {
            // The receiver no longer opens them.
            return *self = Self::default();
        };
        if let Some(found) = self.waiting.pop_front() {
            self.names.remove(&found.native);
            self.bytes -= size(&found);
            room.send(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(n: usize) -> FoundSession {
        FoundSession { native: format!("N{n}").as_str().into(), cwd: None, title: None }
    }

    #[tokio::test]
    async fn found_sessions_are_offered_once_each_and_too_many_are_refused() {
        let (to, mut at) = mpsc::channel(2);
        let mut offers = FoundSessions::default();
        for n in (0..OFFERS_MAX).chain(0..5) {
            assert!(offers.push(found(n)), "{n}");
        }
        assert!(!offers.push(found(OFFERS_MAX)));
        for n in 0..OFFERS_MAX {
            offers.offer(&to).await;
            assert_eq!(at.recv().await.unwrap().native.as_str(), format!("N{n}"));
        }
        assert!(offers.is_empty() && offers.push(found(0)));
        drop(at);
        offers.offer(&to).await;
        assert!(offers.is_empty());
    }

    #[tokio::test]
    async fn found_sessions_are_bounded_in_bytes_too() {
        let (to, mut at) = mpsc::channel(1);
        let mut offers = FoundSessions::default();
        let long = |n| FoundSession { title: Some("t".repeat(OFFERS_BYTES_MAX / 2)), ..found(n) };
        assert!(offers.push(long(0)) && !offers.push(long(1)), "names count as well");
        assert!(offers.push(found(2)));
        offers.offer(&to).await;
        assert_eq!(at.recv().await.unwrap().native.as_str(), "N0");
        assert!(offers.push(long(3)), "what was handed over makes room");
    }
}
