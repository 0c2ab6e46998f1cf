//! HTTP requests to an endpoint.

use bytes::Bytes;

use plexus_protocol::NativeId;

/// An HTTP request to an endpoint, which ends in [`Dialect::reply`](super::Dialect::reply).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The id that is returned with the reply.
    pub id: u64,
    /// The address: the endpoint, or its remote control.
    pub base: HttpBase,
    /// The method: `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// Path and query, already escaped.
    pub path: String,
    /// The JSON body.
    pub body: Option<Bytes>,
    /// `true` for a decision, an answer or a cancel, which overtakes reads and is sent before the connection is closed.
    pub decides: bool,
    /// The session of the request: requests of one session are sent one after the other, in parallel to those of other
    /// sessions. A request with `None` concerns the whole endpoint, and is sent alone.
    pub session: Option<NativeId>,
}

impl HttpRequest {
    /// Returns whether the request changes nothing, so that it may be retried.
    pub fn reads(&self) -> bool {
        self.method == "GET"
    }

    /// Returns whether the request changes something and is no decision: later requests of the session wait for it.
    pub fn acts(&self) -> bool {
        !self.reads() && !self.decides
    }
}

/// One of a runtime's two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpBase {
    /// The address of [`Connect::Endpoint`](plexus_protocol::Connect::Endpoint).
    Connect,
    /// The address of [`RuntimeSpec::remote`](plexus_protocol::RuntimeSpec::remote).
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
