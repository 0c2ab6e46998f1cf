//! The project that a session works in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The project of a session: the git repository that its folder lies in, else the folder itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Project {
    /// The project's name: the last part of `root`, safe to display.
    pub name: String,
    /// The folder that all sessions of the project have in common: a repository's main working tree (of a bare repository,
    /// the repository), else the session's folder.
    pub root: String,
    /// The branch that is checked out, safe to display; absent if none is, and outside of repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The linked worktree that contains the session's folder, by the name of the worktree's folder, safe to display; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
}
