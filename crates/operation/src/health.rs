//! Health checks and metrics, for supervisors, load balancers and Prometheus.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use plexus_auth::{Proof, Watch};
use plexus_metrics::{OTHERS, StateGauges, metrics};
use plexus_protocol::api::operation::Ready;
use plexus_protocol::{Origin, Risk, RunStatus, RuntimeId, RuntimeState, SessionId, SessionState};
use plexus_router::described::{Parameter, matching};
use plexus_router::guard::{Call, Policy, Route};
use plexus_router::reply::{QueryParameters, RouteResult, body, gateway, json};
use plexus_router::routes::{GET, NOTHING, WATCH, route};
use plexus_router::{Core, Problem};
use plexus_sessions::{CommitEntry, Filter, SessionError};

/// Maximum time for the log to accept a write in the readiness check.
const READY_WAIT: Duration = Duration::from_secs(2);

/// The state of health checks.
#[derive(Clone)]
pub struct HealthState {
    /// The kernel.
    pub core: Core,
    /// The proof by which the owner's programs recognise this gateway.
    pub proof: Proof,
}

const CHALLENGE: Parameter = Parameter::query(
    "challenge",
    "32 to 128 letters and digits: the response contains their HMAC-SHA256 with the secret in the gateway's file",
    || matching("^[A-Za-z0-9]{32,128}$"),
);

/// Returns the routes of health checks and metrics.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<HealthState>> {
    vec![
        // For supervisors and load balancers: reports only that the gateway runs.
        route(GET, "/healthz", Policy::Public, NOTHING, "Whether the gateway is running; with a challenge, the proof of its identity", healthz)
            .text(200, &["text/plain"]).with(&[&CHALLENGE]),
        route(GET, "/readyz", Policy::Public, NOTHING, "Whether the log can be written", readyz)
            .response::<Ready>(200),
        route(GET, "/metrics", WATCH, NOTHING, "Metrics for Prometheus", metrics_text)
            .text(200, &["text/plain"]),
    ]
}

async fn healthz(state: HealthState, call: Call) -> RouteResult {
    let text = match QueryParameters::from_call(&call).get("challenge") {
        None => "ok\n".to_owned(),
        Some(challenge) => {
            let message = "a challenge must be 32 to 128 ASCII letters and digits";
            let proof = state.proof.answer(challenge);
            let proof = proof.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "bad_challenge", message))?;
            format!("ok {proof}\n")
        }
    };
    Ok(body(StatusCode::OK, "text/plain; charset=utf-8", text))
}

/// Sends the log's writer an empty commit, which proves that the writer runs and that the store accepts a transaction. The response
/// contains nothing else, since it is public.
async fn readyz(state: HealthState, _: Call) -> RouteResult {
    let log = state.core.directory.log();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_none"),
        runtime_id: RuntimeId::trusted("none"),
        dialect: "none".into(),
    });
    let nothing = CommitEntry { origin, events: Vec::new(), rows: None, on_stored: None, received: None, sync: false };
    let not_ready = |detail: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail);
    if *state.core.stop.borrow() {
        return Err(SessionError::Stopping.into());
    }
    match tokio::time::timeout(READY_WAIT, log.commit(nothing)).await {
        Ok(Ok(_)) => json(StatusCode::OK, &Ready { ready: true }),
        Ok(Err(error)) => Err(not_ready(format!("the log cannot be written: {error}"))),
        Err(_) => Err(not_ready("the log cannot be written: its writer does not respond".into())),
    }
}

async fn metrics_text(state: HealthState, call: Call) -> RouteResult {
    gateway::<Watch>(&call)?;
    let text = metrics().text() + &gauges(&state.core).text() + &state.core.ledger.text();
    Ok(body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

/// Returns gauges of the current state.
fn gauges(core: &Core) -> StateGauges {
    let (gauges, all) = (StateGauges::default(), metrics());
    for word in RuntimeState::ALL.map(RuntimeState::as_str) {
        gauges.runtimes.with_label_values(&[word]).set(0);
    }
    for runtime in core.directory.runtimes() {
        gauges.runtimes.with_label_values(&[runtime.state.as_str()]).inc();
        // A runtime without sessions is 0, not absent.
        let label = all.runtime_label(runtime.runtime_id.as_str());
        for word in SessionState::ALL.map(SessionState::as_str) {
            gauges.sessions.with_label_values(&[label, word]).set(0);
        }
        for word in RunStatus::UNFINISHED.map(RunStatus::as_str) {
            gauges.runs.with_label_values(&[label, word]).set(0);
        }
        for word in Risk::ALL.map(Risk::as_str) {
            gauges.requests.with_label_values(&[label, word]).set(0);
        }
    }
    let mut runtimes = BTreeMap::new();
    for session in core.directory.sessions() {
        let label = all.runtime_label(session.runtime_id.as_str());
        gauges.sessions.with_label_values(&[label, session.state.as_str()]).inc();
        if session.run_id.is_some() || session.open_requests > 0 || !session.queue.is_empty() {
            runtimes.insert(session.session_id.clone(), Arc::clone(&session));
        }
    }
    let label = |id: &SessionId| runtimes.get(id).map_or(OTHERS, |one| all.runtime_label(one.runtime_id.as_str()));
    for run in core.directory.runs(&Filter::all()) {
        gauges.runs.with_label_values(&[label(&run.session_id), run.status.as_str()]).inc();
    }
    for request in core.directory.requests().open(&Filter::all()) {
        gauges.requests.with_label_values(&[label(&request.session_id), request.risk.as_str()]).inc();
    }
    gauges
}
