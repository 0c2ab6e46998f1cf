//! HTTP requests to an endpoint.

use bytes::Bytes;

use plexus_protocol::NativeId;

/// An HTTP request to an endpoint: ends in [`Dialect::reply`](super::Dialect::reply).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Comes back with the reply.
    pub id: u64,
    /// Where: what is connected to, or its remote control.
    pub base: HttpBase,
    /// `GET`, `POST`, `DELETE`.
    pub method: &'static str,
    /// Path and query, already escaped.
    pub path: String,
    /// JSON to send.
    pub body: Option<Bytes>,
    /// Whether it carries what somebody decided, an answer or a cancel: it overtakes reads, and is sent before the
    /// connection is left.
    pub decides: bool,
    /// The session that it is about: requests about one session are made one after the other, beside those about other
    /// sessions. `None`: it is about the whole endpoint, and is made alone.
    pub session: Option<NativeId>,
}

impl HttpRequest {
    /// Whether it changes nothing there, so that it may be made once more.
    pub fn reads(&self) -> bool {
        self.method == "GET"
    }

    /// Whether it changes something there and is no decision: whatever concerns the same session waits for it.
    pub fn acts(&self) -> bool {
        !self.reads() && !self.decides
    }
}

/// Which of a runtime's two addresses.
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
    /// The body, whole: at most the longest line that is taken from a runtime.
    pub body: Bytes,
}
