//! The messages of an endpoint or a linked agent.

use super::sse::SseItem;

/// An event of a connection to an endpoint, or of a linked agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EndpointEvent {
    /// A frame, or the beginning of one that is too long.
    Frame(SseItem),
    /// The loss of the connection, with the reason. It is the last event.
    Lost(String),
}
