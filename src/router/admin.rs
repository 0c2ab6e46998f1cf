//! Administration over HTTP: restarting runs and runtimes, and reading a runtime's stderr.

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::guard::Call;
use super::reply::{idempotency_key, json, runtime_of, session_of};
use super::{AppState, Problem};
use plexus_auth::{Admin, Prompt};
use plexus_protocol::RunId;
use plexus_sessions::StderrLine;

type Outcome = Result<Response, Problem>;

/// The run to repeat; if absent, the current run, else the last one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestartRun {
    /// The run.
    run_id: Option<RunId>,
}

pub(super) async fn restart_run(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let key = idempotency_key(&call)?;
    let RestartRun { run_id } = call.json()?;
    json(StatusCode::ACCEPTED, &state.directory.restart(&permit, &session.session_id, run_id, key).await?)
}

pub(super) async fn restart_runtime(state: AppState, call: Call) -> Outcome {
    let (id, permit) = runtime_of::<Admin>(&state, &call)?;
    json(StatusCode::OK, &*state.directory.restart_runtime(&permit, &id).await?)
}

/// The latest stderr lines of a runtime.
#[derive(Serialize, ToSchema)]
pub(super) struct Logs {
    lines: Vec<StderrLine>,
}

pub(super) async fn logs(state: AppState, call: Call) -> Outcome {
    let (id, permit) = runtime_of::<Admin>(&state, &call)?;
    json(StatusCode::OK, &Logs { lines: state.directory.stderr_log(&permit, &id)? })
}
