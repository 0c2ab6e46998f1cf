//! Changes of folders, stored in private git repositories.
//!
//! [`FolderStores`] opens a [`FolderStore`] for each working folder. [`FolderStore::scan`] stores the state of the
//! folder as a tree, [`FolderStore::mark`] records it as a moment of a session, [`FolderStore::changes`] lists the
//! differences, and [`FolderStore::undo`] undoes a change. The repository of the folder itself is not trusted: none of
//! its settings, hooks or filters has an effect.
//!
//! All calls block, and are for threads that may block. Each ends by itself within minutes; dropping the caller does not end it.

#![forbid(unsafe_code)]

mod beneath;
mod changes;
mod difference;
mod error;
mod git;
mod hunks;
mod names;
mod project;
mod record;
mod scan;
mod search;
mod store;
mod undo;
mod values;
mod worktrees;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod hunks_tests;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod undo_tests;
#[cfg(test)]
mod worktrees_tests;

pub use changes::{ChangeAuthor, RunChanges, SessionChange, SessionChanges};
pub use difference::{COMPARED_MAX, FILE_PATCH_MAX, FilePatch, LISTED_FILES, WHOLE_PATCH_MAX, WholePatch};
pub use error::{Result, WorkspaceError};
pub use hunks::{PatchHunk, without_hunk};
pub use names::{ObjectName, display_path, read_path};
pub use project::{FolderProject, project_of};
pub use record::NewMoment;
pub use search::{CachedWalks, FOUND_MAX, WalkedFiles, files_of};
pub use store::{FolderStore, FolderStores, KEPT_FILE_MAX};
pub use undo::{UndoOrder, UndoResult, UndoStep, UndoneFiles};
pub use values::{
    Comparison, FileSide, FolderScan, Moment, MomentKind, OmissionReason, PathChange, PathStatus, TreeDifference,
};
pub use worktrees::{FolderWorktrees, WorktreeEntry, WorktreeProblem, WorktreeReady, WorktreeRisk};
