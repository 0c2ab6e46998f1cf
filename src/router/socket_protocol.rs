//! The trait that a protocol over a WebSocket implements; [`ws`](super::ws) runs it.

use futures_util::future::BoxFuture;
use plexus_protocol::{Cursor, Origin};

/// The frames of the response to a message; none for a notification. Dropping it early does not undo the call.
pub type Reply = BoxFuture<'static, Vec<u8>>;

/// A protocol over a WebSocket.
pub trait SocketProtocol: Send {
    /// Handles one message. The call begins when the reply is first polled; replies are polled in the order of the messages.
    /// Dropping a reply early does not undo the call.
    fn message(&mut self, text: &str) -> Option<Reply>;

    /// Returns whether the client has initialized. Before that it gets no messages, and it has ten seconds to do so.
    fn initialized(&self) -> bool;

    /// Handles a change of a runtime.
    fn runtimes_changed(&mut self) {}

    /// Returns the reason to close the connection as going away, if there is one.
    fn close_reason(&self) -> Option<&'static str> {
        None
    }

    /// Handles the deletion of a session.
    fn session_deleted(&mut self, _session: &Origin) {}

    /// Returns the next frames besides replies and those of an [`EventFan`](super::fanout::EventFan). Polled only while nothing waits to
    /// be written, so that a client that does not read costs only a cursor. `None` closes the connection. Must be cancellation safe.
    fn next_frames(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }

    /// Returns the cursor for a client whose connection is closed because it makes no progress.
    fn cursor(&self) -> Option<Cursor>;
}
