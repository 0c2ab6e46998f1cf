//! Debug output of a session: runs that begin and end, requests that open and close.

use tracing::{Level, debug, enabled};

use super::state::Plan;
use plexus_metrics::spans;
use plexus_protocol::Kind;

/// Writes a stored plan to the debug output. Costs one comparison if `debug` is off.
pub(super) fn record(plan: &Plan) {
    if !enabled!(Level::DEBUG) {
        return;
    }
    for event in &plan.events {
        match event.kind {
            Kind::RunStarted => spans::run(&event.run_id).in_scope(|| debug!("a run began")),
            Kind::RunEnded => spans::run(&event.run_id).in_scope(|| debug!("a run ended")),
            _ => {}
        }
    }
    for change in &plan.requests {
        let state = change.request.state;
        spans::request(&change.request.request_id).in_scope(|| debug!(?state, "a request changed"));
    }
}
