//! What a protocol over a WebSocket implements; [`ws`](super::ws) carries it.

use futures_util::future::BoxFuture;
use plexus_protocol::{Cursor, Origin};

/// The frames that a message is answered with: none for notifications. Whoever drops it before its end does not undo what
/// was asked.
pub(super) type Reply = BoxFuture<'static, Vec<u8>>;

/// What the messages of a WebSocket mean.
pub(super) trait Talk: Send {
    /// Takes one message. What comes of it is begun when the reply is first polled, and is polled in the order of the
    /// messages; dropping it early does not undo what was asked.
    fn message(&mut self, text: &str) -> Option<Reply>;

    /// Whether the client has said hello. Until then nothing is told to it, and it has ten seconds to say it.
    fn initialized(&self) -> bool;

    /// Some runtime stands differently.
    fn runtimes_changed(&mut self) {}

    /// Why there is nothing more to talk about, if there is not: the connection is closed as going away.
    fn over(&self) -> Option<&'static str> {
        None
    }

    /// A session was forgotten.
    fn forgotten(&mut self, _session: &Origin) {}

    /// What the client is shown beside replies, for those that are not a [`EventFan`](super::fanout::EventFan)'s: whole frames.
    /// Polled only while nothing waits to be written, so that a client that does not read costs a cursor. `None` closes
    /// the connection. Must be cancellation safe.
    fn news(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }

    /// Where a client that is closed for making no progress should come back from.
    fn cursor(&self) -> Option<Cursor>;
}
