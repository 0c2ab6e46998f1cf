//! The limits of a TLS listener.

use std::time::Duration;

use super::ListenLimits;

/// Connections by TLS at once; past it new ones wait.
const CONNECTIONS: usize = 1024;

/// The limits of a TLS listener. A gateway serves with the defaults; tests use shorter times.
#[derive(Clone, Debug)]
pub struct TlsLimits {
    /// The limits of HTTP, and the number of connections at once.
    pub http: ListenLimits,
    /// Connections of one address at once (of IPv6: of its network of 64 bits); further ones are closed.
    pub per_address: usize,
    /// Requests over HTTP/2 of one address under way at once; further ones are answered 503.
    pub streams_per_address: usize,
    /// Time that a handshake may take.
    pub handshake: Duration,
    /// Time that a client of HTTP/2 may ask for nothing.
    pub idle: Duration,
}

impl TlsLimits {
    /// The defaults, with what `http` shares with the other listeners.
    pub fn over(http: &ListenLimits) -> Self {
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
        Self::over(&ListenLimits::default())
    }
}
