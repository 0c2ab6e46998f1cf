//! The git worktrees that the gateway made for sessions: listed, and removed on request.

use std::path::{Path, PathBuf};

use http::StatusCode;
use plexus_protocol::{SessionId, SessionState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::guard::Call;
use super::reply::{Outcome, gateway, json, no_content, within_limit};
use super::{AppState, Problem};
use plexus_auth::Admin;
use plexus_risk::Effect;
use plexus_sessions::{WorktreeError, WorktreeView};

/// A worktree, and who works in it.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedWorktree {
    #[serde(flatten)]
    worktree: WorktreeView,
    /// The sessions that work in it: neither ended nor archived.
    sessions: Vec<SessionId>,
}

/// Worktrees.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedWorktrees {
    /// The worktrees, newest first.
    worktrees: Vec<ListedWorktree>,
}

/// A worktree to remove.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveWorktree {
    /// Its folder, as listed.
    #[schema(value_type = String, pattern = "^/")]
    path: PathBuf,
    /// Whether its branch is deleted, too; it is kept if absent.
    #[serde(default)]
    delete_branch: bool,
    /// The `digest` of what was shown that would be lost; without it nothing is lost.
    lost: Option<String>,
}

/// Lists worktrees.
pub(super) async fn list(state: AppState, call: Call) -> Outcome {
    gateway::<Admin>(&call)?;
    let all = state.worktrees.list().await?;
    let listed = |worktree: WorktreeView| {
        let sessions = sessions_in(&state, worktree.path.as_ref());
        ListedWorktree { worktree, sessions }
    };
    json(StatusCode::OK, &ListedWorktrees { worktrees: all.into_iter().map(listed).collect() })
}

/// Removes a worktree.
pub(super) async fn remove(state: AppState, call: Call) -> Outcome {
    gateway::<Admin>(&call)?;
    let RemoveWorktree { path, delete_branch, lost } = call.json()?;
    if delete_branch || lost.is_some() {
        within_limit(&call, Effect::LoseWork)?;
    }
    let sessions = sessions_in(&state, &path);
    if !sessions.is_empty() {
        let named = sessions.iter().map(ToString::to_string).collect();
        return Err(Problem::from(WorktreeError::InUse(named)));
    }
    state.worktrees.remove(&path, delete_branch, lost.as_deref()).await?;
    no_content()
}

/// The sessions that work in a folder or below it.
fn sessions_in(state: &AppState, path: &Path) -> Vec<SessionId> {
    let works = |session: &plexus_protocol::SessionInfo| {
        !session.archived && session.state != SessionState::Exited && Path::new(&session.cwd).starts_with(path)
    };
    let all = state.directory.sessions();
    let mut ids: Vec<SessionId> =
        all.iter().filter(|session| works(session)).map(|session| session.session_id.clone()).collect();
    ids.sort();
    ids
}
