//! The limits of a TLS listener.

use std::time::Duration;

use super::ListenLimits;

/// Maximum number of concurrent TLS connections; beyond it new ones wait.
const CONNECTIONS: usize = 1024;

/// The limits of a TLS listener. A gateway serves with the defaults; tests use shorter times.
#[derive(Clone, Debug)]
pub struct TlsLimits {
    /// The limits of HTTP, and the maximum number of connections.
    pub http: ListenLimits,
    /// Maximum number of connections of one address (of IPv6: of its network of 64 bits); further ones are closed.
    pub per_address: usize,
    /// Maximum number of concurrent requests over HTTP/2 of one address; further ones get the response 503.
    pub streams_per_address: usize,
    /// Maximum time for a handshake.
    pub handshake: Duration,
    /// Maximum time without a request of an HTTP/2 client.
    pub idle: Duration,
}

impl TlsLimits {
    /// Returns the defaults, with the parts of `http` that all listeners share.
    pub fn with_http(http: &ListenLimits) -> Self {
        Self {
            http: ListenLimits { connections: CONNECTIONS, ..http.clone() },
            per_address: 64,
            streams_per_address: 256,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(120),
        }
    }
}

impl Default for TlsLimits {
    fn default() -> Self {
        Self::with_http(&ListenLimits::default())
    }
}
