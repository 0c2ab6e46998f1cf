//! The spans of the log: the identifiers that each line refers to.
//!
//! A span belongs to a task or a call, never to an event. All have the level of errors, so a line names its context regardless of
//! `PLEXUS_LOG`. A task that outlives its caller has a span without a parent.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_protocol::{Origin, RequestId, RunId, RuntimeId};
use tracing::{Span, error_span};

/// Returns the span of a runtime's driver.
pub fn runtime(id: &RuntimeId) -> Span {
    error_span!(parent: None, "runtime", runtime_id = %id)
}

/// Returns the span of a session's task.
pub fn session(origin: &Origin) -> Span {
    error_span!(parent: None, "session", runtime_id = %origin.runtime_id, session_id = %origin.session_id)
}

/// Returns the span of one run, inside its session's span.
pub fn run(id: &RunId) -> Span {
    error_span!("run", run_id = %id)
}

/// Returns the span of one request, inside its session's span.
pub fn request(id: &RequestId) -> Span {
    error_span!("request", request_id = %id)
}

/// Returns the span of a client's connection. The number counts the connections that this gateway has accepted.
pub fn connection(peer: SocketAddr) -> Span {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let connection = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    error_span!(parent: None, "connection", connection, %peer)
}

/// Returns the span of an HTTP call. It has the route, never the path, query or headers, which may contain secrets.
pub fn http(method: &'static str, route: &str) -> Span {
    error_span!("http", method, route)
}
