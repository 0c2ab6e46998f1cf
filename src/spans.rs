//! The spans of the log: what each line is about, by its identifiers.
//!
//! A span is put on a task or on a call, never on an event. All are at the level of errors: whatever `PLEXUS_LOG` lets
//! through, a line that is written names its context. A task that lives longer than what began it has a span of its own
//! without a parent.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_protocol::{Origin, RequestId, RunId, RuntimeId};
use tracing::{Span, error_span};

/// What a driver does.
pub(crate) fn runtime(id: &RuntimeId) -> Span {
    error_span!(parent: None, "runtime", runtime_id = %id)
}

/// What a session's task does.
pub(crate) fn session(origin: &Origin) -> Span {
    error_span!(parent: None, "session", runtime_id = %origin.runtime_id, session_id = %origin.session_id)
}

/// What concerns one run of the session whose span is entered.
pub(crate) fn run(id: &RunId) -> Span {
    error_span!("run", run_id = %id)
}

/// What concerns one request of the session whose span is entered.
pub(crate) fn request(id: &RequestId) -> Span {
    error_span!("request", request_id = %id)
}

/// A client's connection. The number counts the connections that this gateway has taken.
pub(crate) fn connection(peer: SocketAddr) -> Span {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let connection = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    error_span!(parent: None, "connection", connection, %peer)
}

/// A call by HTTP: its route, never its path, its query or its headers, which may hold secrets.
pub(crate) fn http(method: &'static str, route: &str) -> Span {
    error_span!("http", method, route)
}
