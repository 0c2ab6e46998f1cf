//! HTTP requests to an endpoint.

use bytes::Bytes;

use plexus_protocol::NativeId;

/// An HTTP request to an endpoint: ends in [`Dialect::reply`](super::Dialect::reply).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Comes back with the reply.
    pub id: u64,
    /// The address: the endpoint, or its remote control.
    pub base: HttpBase,
    /// `GET`, `POST`, `DELETE`.
    pub method: &'static str,
    /// Path and query, already escaped.
    pub path: String,
    /// The JSON body.
    pub body: Option<Bytes>,
    /// `true` if it carries a decision, an answer or a cancel: it overtakes reads, and is sent before the connection is closed.
    pub decides: bool,
    /// The session that it is about: requests of one session are sent one after the other, in parallel to those of other sessions. `None`:
    /// it is about the whole endpoint, and is sent alone.
    pub session: Option<NativeId>,
}

impl HttpRequest {
    /// Returns whether it changes nothing, so that it may be retried.
    pub fn reads(&self) -> bool {
        self.method == "GET"
    }

    /// Returns whether it changes something and is no decision: later requests of the session wait for it.
    pub fn acts(&self) -> bool {
        !self.reads() && !self.decides
    }
}

/// One of a runtime's two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpBase {
    /// [`Connect::Endpoint`](plexus_protocol::Connect::Endpoint).
    Connect,
    /// [`RuntimeSpec::remote`](plexus_protocol::RuntimeSpec::remote).
    Remote,
}

/// The reply to a [`HttpRequest`], whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The HTTP status.
    pub status: u16,
    /// The whole body, at most as long as the longest line of a runtime.
    pub body: Bytes,
}
