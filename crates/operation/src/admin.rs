//! Administration over HTTP: restarting runs and runtimes, and reading a runtime's stderr.

use http::StatusCode;

use plexus_auth::{Admin, Prompt};
use plexus_protocol::RuntimeInfo;
use plexus_protocol::api::runtimes::Logs;
use plexus_protocol::api::sessions::{AcceptedPrompt, RestartRun};
use plexus_router::Core;
use plexus_router::described::Parameter;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, idempotency_key, json, runtime_of, session_of};
use plexus_router::routes::{ADMIN, GET, NOTHING, OPTIONAL_JSON, POST, PROMPTS, route};

const RESTART_KEY: Parameter = Parameter::idempotency_key(
    "A repeated request with the same key is executed once: 1 to 128 visible ASCII characters",
);

/// Returns the routes of restarts and of the output of runtimes.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(POST, "/v1/runtimes/{id}/restart", ADMIN, NOTHING, "Restart a runtime", restart_runtime)
            .response::<RuntimeInfo>(200),
        route(GET, "/v1/runtimes/{id}/logs", ADMIN, NOTHING, "The recent stderr output of a runtime", logs)
            .response::<Logs>(200),
        route(POST, "/v1/sessions/{id}/restart", PROMPTS, OPTIONAL_JSON, "Send a run's prompt again; the run is cancelled first", restart_run)
            .request::<RestartRun>().response::<AcceptedPrompt>(202).with(&[&RESTART_KEY]),
    ]
}

async fn restart_run(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let key = idempotency_key(&call)?;
    let RestartRun { run_id } = call.json()?;
    json(StatusCode::ACCEPTED, &state.directory.restart(&permit, &session.session_id, run_id, key).await?)
}

async fn restart_runtime(state: Core, call: Call) -> RouteResult {
    let (id, permit) = runtime_of::<Admin>(&state, &call)?;
    json(StatusCode::OK, &*state.directory.restart_runtime(&permit, &id).await?)
}

async fn logs(state: Core, call: Call) -> RouteResult {
    let (id, permit) = runtime_of::<Admin>(&state, &call)?;
    json(StatusCode::OK, &Logs { lines: state.directory.stderr_log(&permit, &id)?.into() })
}
