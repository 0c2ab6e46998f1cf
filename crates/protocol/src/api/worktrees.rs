//! Git worktrees that are made for sessions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::{SessionId, Timestamp};

/// A worktree to make for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorktree {
    /// The branch to make.
    #[schema(min_length = 1, max_length = 200)]
    pub branch: String,
    /// The start of the branch: a branch, tag or commit; the checked-out commit of the session's folder if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub base: Option<String>,
}

/// A worktree, and the sessions that work in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedWorktree {
    #[doc = concat!("The worktree.")]
    #[serde(flatten)]
    pub worktree: WorktreeView,
    /// The sessions that work in the worktree: neither ended nor archived.
    pub sessions: Vec<SessionId>,
}

/// Worktrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedWorktrees {
    /// The worktrees, newest first.
    #[schema(value_type = Vec<ListedWorktree>)]
    pub worktrees: KnownItems<ListedWorktree>,
}

/// A worktree to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveWorktree {
    /// The folder, as listed.
    #[schema(value_type = String, pattern = "^/")]
    pub path: PathBuf,
    /// `true` if its branch is deleted, too; the branch remains if absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_branch: bool,
    /// The `digest` of the displayed losses; without it, a worktree with losses is not removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// The current state of a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorktreeView {
    /// The folder.
    pub path: String,
    /// The repository's main folder.
    pub root: String,
    /// The branch that was made with the worktree.
    pub branch: String,
    /// The time when the worktree was made.
    pub made_at: Timestamp,
    /// `true` if the worktree's folder no longer exists.
    pub missing: bool,
    /// The changed files, and the commits that are on no other branch: a removal loses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<WorktreeLosses>,
    /// The reason why the state cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The content that exists only in a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorktreeLosses {
    /// The number of changed and new files that are not committed; ignored files are not counted.
    pub changed: usize,
    /// The names of the first of them, at most 20.
    pub files: Vec<String>,
    /// The number of commits of the branch that are on no other branch, remote or tag. They are lost only with the branch.
    pub ahead: usize,
    /// The first lines of the newest of these commits, at most 20.
    pub commits: Vec<String>,
    /// A digest of this state, including the content of each file. A removal with it as `lost` loses exactly this.
    pub digest: String,
}
