//! `/v1/sessions/{id}/changes`: the changes in a session's folder.

use std::sync::Arc;

use http::StatusCode;
use plexus_protocol::api::changes::{
    ChangeDiff, ChangesReview, ChangesView, DiffSide, LineComment, RedoChange, StoredPatch, UndoChange, UndoneChange,
    UndoneChanges,
};
use plexus_protocol::api::devices::DeviceKind;
use plexus_protocol::api::sessions::AcceptedPrompt;
use plexus_protocol::{RunId, SessionInfo, text_block};
use plexus_workspace::WorkspaceError;

use plexus_auth::{Approve, AuthError, Permit, Prompt, Right, Watch};
use plexus_risk::Effect;
use plexus_router::described::{PROMPT_KEY, Parameter, id};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{QueryParameters, RouteResult, bad_query, body, idempotency_key, json, session_of};
use plexus_router::routes::{APPROVE, GET, JSON, NOTHING, POST, PROMPTS, WATCH, route};
use plexus_router::{Core, Problem};
use plexus_sessions::{ChangesError, ReviewComment, UndoRequest};
use serde_json::json;

/// Maximum number of comments of one review.
const COMMENTS: usize = 200;
/// Maximum size of all comments of one review, in bytes.
const COMMENTS_BYTES: usize = 64 << 10;

const CHANGES_RUN: Parameter =
    Parameter::query("run", "Only what changed in this run; everything since the first prompt if absent", id);
const CHANGES_PATH: Parameter = Parameter::query(
    "path",
    "Only this file, by its path in the list; all files if absent",
    || json!({ "type": "string" }),
);
const CHANGES_FILE: Parameter =
    Parameter::query("path", "The file, by its path in the list", || json!({ "type": "string" })).required();

/// Returns the routes of changes of files.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/sessions/{id}/changes", WATCH, NOTHING, "Files that changed since a session's first prompt, or in one run", list)
            .response::<ChangesView>(200).with(&[&CHANGES_RUN]),
        route(GET, "/v1/sessions/{id}/changes/file", WATCH, NOTHING, "The diff of a changed file", file)
            .response::<ChangeDiff>(200).with(&[&CHANGES_FILE, &CHANGES_RUN]),
        route(GET, "/v1/sessions/{id}/changes/patch", WATCH, NOTHING, "A patch of what changed, for `git apply`", patch)
            .text(200, &["text/x-diff"]).with(&[&CHANGES_PATH, &CHANGES_RUN]),
        route(POST, "/v1/sessions/{id}/changes/undo", APPROVE, JSON, "Undo a change of a file, or a hunk of it", undo)
            .request::<UndoChange>().response::<UndoneChange>(200).effect(Effect::ChangeFiles),
        route(GET, "/v1/sessions/{id}/changes/undone", WATCH, NOTHING, "What was undone and can be brought back", undone)
            .response::<UndoneChanges>(200),
        route(POST, "/v1/sessions/{id}/changes/redo", APPROVE, JSON, "Bring back what was undone", redo)
            .request::<RedoChange>().response::<StoredPatch>(200).effect(Effect::ChangeFiles),
        route(POST, "/v1/sessions/{id}/changes/review", PROMPTS, JSON, "Comments on changed lines: one prompt is made of them", review)
            .request::<ChangesReview>().response::<AcceptedPrompt>(202).with(&[&PROMPT_KEY]),
    ]
}

/// Returns the problem of changes that cannot be read or undone.
fn problem(error: ChangesError) -> Problem {
    let (status, code) = match &error {
        ChangesError::Workspace(error) => of_workspace(error),
        ChangesError::RunUnderWay(_) => (StatusCode::CONFLICT, "run_under_way"),
        ChangesError::Slow => (StatusCode::GATEWAY_TIMEOUT, "folder_slow"),
        ChangesError::Disk(_) => (StatusCode::INTERNAL_SERVER_ERROR, "folder_failed"),
    };
    Problem::new(status, code, error.to_string())
}

const fn of_workspace(error: &WorkspaceError) -> (StatusCode, &'static str) {
    match error {
        WorkspaceError::NoChange => (StatusCode::NOT_FOUND, "no_change"),
        WorkspaceError::NoPatch => (StatusCode::NOT_FOUND, "patch_not_found"),
        WorkspaceError::NoRun => (StatusCode::NOT_FOUND, "run_not_found"),
        WorkspaceError::NoBase => (StatusCode::NOT_FOUND, "no_base"),
        WorkspaceError::ChangedMeanwhile => (StatusCode::CONFLICT, "changed_meanwhile"),
        WorkspaceError::NotUndoable(_) => (StatusCode::CONFLICT, "not_undoable"),
        WorkspaceError::TooManyFiles => (StatusCode::CONFLICT, "too_many_files"),
        WorkspaceError::Private => (StatusCode::CONFLICT, "private_folder"),
        WorkspaceError::InUse => (StatusCode::CONFLICT, "folder_in_use"),
        WorkspaceError::Slow(_) => (StatusCode::GATEWAY_TIMEOUT, "folder_slow"),
        WorkspaceError::GitMissing(_) => (StatusCode::SERVICE_UNAVAILABLE, "git_missing"),
        WorkspaceError::Git { .. }
        | WorkspaceError::Disk { .. }
        | WorkspaceError::Damaged(_)
        | WorkspaceError::BadId(_) => (StatusCode::INTERNAL_SERVER_ERROR, "folder_failed"),
    }
}

/// Returns the session of the path. A link to a session grants access to its conversation, but not to the files of its folder.
fn session<S: Right>(state: &Core, call: &Call) -> Result<(Arc<SessionInfo>, Permit<S>), Problem> {
    let (session, permit) = session_of::<S>(state, call)?;
    if call.caller()?.device().kind == DeviceKind::Share {
        return Err(AuthError::Share("it shows the conversation; changes of files are for paired devices").into());
    }
    Ok((session, permit))
}

fn run(query: &QueryParameters) -> Result<Option<RunId>, Problem> {
    let parse = |text: &str| text.parse().map_err(|_| bad_query("`run` is not an identifier".into()));
    query.get("run").map(parse).transpose()
}

async fn list(state: Core, call: Call) -> RouteResult {
    let (session, _) = session::<Watch>(&state, &call)?;
    let run = run(&QueryParameters::from_call(&call))?;
    json(StatusCode::OK, &state.directory.changes().list(&session, run).await.map_err(problem)?)
}

async fn file(state: Core, call: Call) -> RouteResult {
    let (session, _) = session::<Watch>(&state, &call)?;
    let query = QueryParameters::from_call(&call);
    let path = query.get("path").ok_or_else(|| bad_query("name the file in `path`".into()))?.into();
    let run = run(&query)?;
    json(StatusCode::OK, &state.directory.changes().file(&session, path, run).await.map_err(problem)?)
}

async fn patch(state: Core, call: Call) -> RouteResult {
    let (session, _) = session::<Watch>(&state, &call)?;
    let query = QueryParameters::from_call(&call);
    let (path, run) = (query.get("path").map(Into::into), run(&query)?);
    Ok(body(
        StatusCode::OK,
        "text/x-diff",
        state.directory.changes().patch(&session, path, run).await.map_err(problem)?,
    ))
}

async fn undo(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session::<Approve>(&state, &call)?;
    let UndoChange { path, digest, hunk, during_run } = call.json()?;
    let request = UndoRequest { path, digest, hunk, during_run };
    json(StatusCode::OK, &state.directory.changes().undo(&permit, &session, request).await.map_err(problem)?)
}

async fn undone(state: Core, call: Call) -> RouteResult {
    let (session, _) = session::<Watch>(&state, &call)?;
    json(
        StatusCode::OK,
        &UndoneChanges { undone: state.directory.changes().undone(&session).await.map_err(problem)?.into() },
    )
}

async fn redo(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session::<Approve>(&state, &call)?;
    let RedoChange { patch_id, during_run } = call.json()?;
    json(
        StatusCode::OK,
        &state.directory.changes().redo(&permit, &session, patch_id, during_run).await.map_err(problem)?,
    )
}

async fn review(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session::<Prompt>(&state, &call)?;
    let key = idempotency_key(&call)?;
    let ChangesReview { comments, text } = call.json()?;
    let text = text.unwrap_or_default();
    let bytes = text.len() + comments.iter().map(|comment| comment.text.len() + comment.path.len()).sum::<usize>();
    if comments.is_empty() || comments.len() > COMMENTS || bytes > COMMENTS_BYTES {
        let detail = format!("a review has 1 to {COMMENTS} comments and at most {} KiB of text", COMMENTS_BYTES >> 10);
        return Err(Problem::invalid(detail));
    }
    let mut checked = Vec::with_capacity(comments.len());
    for LineComment { path, side, line, end_line, text } in comments {
        let end_line = end_line.unwrap_or(line);
        if line == 0 || end_line < line || text.trim().is_empty() {
            return Err(Problem::invalid(
                "a comment has a text, a `line` from 1, and an `end_line` that is not before it",
            ));
        }
        checked.push(ReviewComment { path, old: side == DiffSide::Old, line, end_line, text });
    }
    let prompt = state.directory.changes().review_prompt(&session, text, checked).await.map_err(problem)?;
    let accepted = state.directory.prompt_once(&permit, &session.session_id, vec![text_block(&prompt)], key).await?;
    json(StatusCode::ACCEPTED, &accepted)
}
