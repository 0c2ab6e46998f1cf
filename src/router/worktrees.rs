//! The git worktrees that the gateway made for sessions: listed, and removed on request.

use std::path::Path;

use http::StatusCode;
use plexus_protocol::api::worktrees::{ListedWorktree, ListedWorktrees, RemoveWorktree, WorktreeView};
use plexus_protocol::{SessionId, SessionState};

use super::guard::{Call, Route};
use super::reply::{RouteResult, gateway, json, no_content, within_limit};
use super::routes::{ADMIN, GET, JSON, NOTHING, POST, route};
use super::{Core, Problem};
use plexus_auth::Admin;
use plexus_risk::Effect;
use plexus_sessions::{WorktreeError, Worktrees};

/// The state of worktrees.
#[derive(Clone)]
pub struct WorktreesState {
    /// The kernel.
    pub core: Core,
    /// The git worktrees that were made for sessions.
    pub worktrees: Worktrees,
}

/// The routes of worktrees.
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
    let all = state.worktrees.list().await?;
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
        return Err(Problem::from(WorktreeError::InUse(named)));
    }
    state.worktrees.remove(&path, delete_branch, lost.as_deref()).await?;
    no_content()
}

/// The sessions that work in a folder or below it.
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
