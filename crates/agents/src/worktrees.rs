//! The git worktrees that the gateway made for sessions: listed, and removed on request.

use std::path::Path;

use http::StatusCode;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::api::worktrees::{ListedWorktree, ListedWorktrees, RemoveWorktree, WorktreeView};
use plexus_protocol::{SessionId, SessionState};

use plexus_auth::Admin;
use plexus_risk::Effect;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, gateway, json, no_content, within_limit};
use plexus_router::routes::{ADMIN, GET, JSON, NOTHING, POST, route};
use plexus_router::{Core, Problem};
use plexus_sessions::{WorktreeError, Worktrees, losses};
use plexus_workspace::{WorkspaceError, WorktreeProblem};

/// The state of worktrees.
#[derive(Clone)]
pub struct WorktreesState {
    /// The kernel.
    pub core: Core,
    /// The git worktrees that were made for sessions.
    pub worktrees: Worktrees,
}

/// Returns the routes of worktrees.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<WorktreesState>> {
    vec![
        route(GET, "/v1/worktrees", ADMIN, NOTHING, "The git worktrees that were made for sessions, and what is in each only", list)
            .response::<ListedWorktrees>(200),
        route(POST, "/v1/worktrees/remove", ADMIN, JSON, "Remove a worktree that no session works in; what would be lost must have been shown", remove)
            .request::<RemoveWorktree>().empty(204).effect(Effect::ChangeWorktree),
    ]
}

/// Lists worktrees.
async fn list(state: WorktreesState, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let all = state.worktrees.list().await.map_err(problem)?;
    let listed = |worktree: WorktreeView| {
        let sessions = sessions_in(&state.core, worktree.path.as_ref());
        ListedWorktree { worktree, sessions }
    };
    json(StatusCode::OK, &ListedWorktrees { worktrees: all.into_iter().map(listed).collect() })
}

/// Removes a worktree.
async fn remove(state: WorktreesState, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let RemoveWorktree { path, delete_branch, lost } = call.json()?;
    if delete_branch || lost.is_some() {
        within_limit(&call, Effect::LoseWork)?;
    }
    let sessions = sessions_in(&state.core, &path);
    if !sessions.is_empty() {
        let named = sessions.iter().map(ToString::to_string).collect();
        return Err(problem(WorktreeError::InUse(named)));
    }
    state.worktrees.remove(&path, delete_branch, lost.as_deref()).await.map_err(problem)?;
    no_content()
}

/// Returns the sessions that work in a folder or below it.
fn sessions_in(core: &Core, path: &Path) -> Vec<SessionId> {
    let works = |session: &plexus_protocol::SessionInfo| {
        !session.archived && session.state != SessionState::Exited && Path::new(&session.cwd).starts_with(path)
    };
    let all = core.directory.sessions();
    let mut ids: Vec<SessionId> =
        all.iter().filter(|session| works(session)).map(|session| session.session_id.clone()).collect();
    ids.sort();
    ids
}

/// Returns the problem of a worktree that cannot be made, listed or removed.
pub(crate) fn problem(error: WorktreeError) -> Problem {
    let message = error.to_string();
    let (status, code) = match &error {
        WorktreeError::Problem(problem) => match problem {
            WorktreeProblem::NoRepository(_) => (StatusCode::UNPROCESSABLE_ENTITY, "no_repository"),
            WorktreeProblem::BadBranch | WorktreeProblem::BadBase => (StatusCode::UNPROCESSABLE_ENTITY, "bad_branch"),
            WorktreeProblem::BranchExists | WorktreeProblem::FolderExists(_) => {
                (StatusCode::CONFLICT, "worktree_exists")
            }
            WorktreeProblem::TooMany => (StatusCode::CONFLICT, "too_many_worktrees"),
            WorktreeProblem::Unknown => (StatusCode::NOT_FOUND, "worktree_not_found"),
            WorktreeProblem::Unsaved(_) => (StatusCode::CONFLICT, "worktree_unsaved"),
            WorktreeProblem::Folder(WorkspaceError::Slow(_)) => (StatusCode::GATEWAY_TIMEOUT, "git_slow"),
            WorktreeProblem::Folder(_) => (StatusCode::BAD_GATEWAY, "git_failed"),
        },
        WorktreeError::InUse(_) => (StatusCode::CONFLICT, "worktree_in_use"),
        WorktreeError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    let unsaved = match error {
        WorktreeError::Problem(WorktreeProblem::Unsaved(risk)) => Some(losses(*risk)),
        _ => None,
    };
    Problem::new(status, code, message).with(ProblemMembers { unsaved, ..ProblemMembers::default() })
}
