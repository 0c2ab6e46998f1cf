//! What the log says of a session at the level `debug`: runs that began and ended, requests that opened and closed.

use tracing::{Level, debug, enabled};

use super::state::Plan;
use crate::spans;
use plexus_protocol::Kind;

/// Tells of what was kept. Costs one comparison where nobody reads it.
pub(super) fn kept(plan: &Plan) {
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
