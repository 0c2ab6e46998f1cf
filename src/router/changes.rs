//! `/v1/sessions/{id}/changes`: what changed in a session's folder.

use std::sync::Arc;

use http::StatusCode;
use plexus_protocol::{RunId, SessionInfo};

use super::guard::Call;
use super::reply::{Outcome, Query, bad_query, body, json, session_of};
use super::{AppState, Problem};
use crate::auth::{AuthError, DeviceKind, Right, Watch};
use crate::sessions::ChangesError;

impl From<ChangesError> for Problem {
    fn from(error: ChangesError) -> Self {
        let (status, code) = match &error {
            ChangesError::NoChange => (StatusCode::NOT_FOUND, "no_change"),
            ChangesError::NoPatch => (StatusCode::NOT_FOUND, "patch_not_found"),
            ChangesError::NoRun => (StatusCode::NOT_FOUND, "run_not_found"),
            ChangesError::ChangedMeanwhile => (StatusCode::CONFLICT, "changed_meanwhile"),
            ChangesError::RunUnderWay => (StatusCode::CONFLICT, "run_under_way"),
            ChangesError::NotUndoable(_) => (StatusCode::CONFLICT, "not_undoable"),
            ChangesError::Slow => (StatusCode::GATEWAY_TIMEOUT, "folder_slow"),
            ChangesError::Disk(_) => (StatusCode::INTERNAL_SERVER_ERROR, "folder_failed"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// The session of the path. A link shows a conversation to anybody who has it; the files of a folder are not part of that.
fn session<S: Right>(state: &AppState, call: &Call) -> Result<Arc<SessionInfo>, Problem> {
    let (session, _) = session_of::<S>(state, call)?;
    if call.caller()?.device().kind == DeviceKind::Share {
        return Err(AuthError::Share("it shows the conversation; changes of files are for paired devices").into());
    }
    Ok(session)
}

fn run(query: &Query) -> Result<Option<RunId>, Problem> {
    let parse = |text: &str| text.parse().map_err(|_| bad_query("`run` is not an identifier".into()));
    query.get("run").map(parse).transpose()
}

pub(super) async fn list(state: AppState, call: Call) -> Outcome {
    let session = session::<Watch>(&state, &call)?;
    let run = run(&Query::of(&call))?;
    json(StatusCode::OK, &state.directory.changes(&session, run).await?)
}

pub(super) async fn file(state: AppState, call: Call) -> Outcome {
    let session = session::<Watch>(&state, &call)?;
    let query = Query::of(&call);
    let path = query.get("path").ok_or_else(|| bad_query("name the file in `path`".into()))?.into();
    let run = run(&query)?;
    json(StatusCode::OK, &state.directory.change_of_file(&session, path, run).await?)
}

pub(super) async fn patch(state: AppState, call: Call) -> Outcome {
    let session = session::<Watch>(&state, &call)?;
    let query = Query::of(&call);
    let (path, run) = (query.get("path").map(Into::into), run(&query)?);
    Ok(body(StatusCode::OK, "text/x-diff; charset=utf-8", state.directory.changes_patch(&session, path, run).await?))
}
