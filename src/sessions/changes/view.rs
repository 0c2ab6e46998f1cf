//! What changed, as clients see it.

use plexus_protocol::{Resolver, RunId, SessionId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// Every file that changed since the first prompt of a session.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangesView {
    /// The session.
    pub session_id: SessionId,
    /// What the changes are read from.
    pub source: ChangesSource,
    /// The session's folder.
    pub root: String,
    /// What files are compared with; absent without a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<ChangesBase>,
    /// Another text as soon as anything else here is another.
    pub rev: String,
    /// The files, by path, at most 2,000.
    pub files: Vec<ChangedFile>,
    /// Changed files that are not listed.
    pub left_off: usize,
    /// The runs whose changes are known, oldest first.
    pub runs: Vec<ChangedRun>,
    /// What was left out, and why.
    pub notes: Vec<ChangesNote>,
}

/// What changes are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangesSource {
    /// The git repository of the folder.
    Git,
    /// The edits that the agent's tools told.
    Tools,
    /// Nothing: `notes` say why.
    None,
}

/// What files are compared with: a commit, and what was not committed at the first prompt.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangesBase {
    /// The commit; absent if nothing was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When that was so.
    pub at: Timestamp,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeStatus {
    /// It is new.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another path, and the same content.
    Renamed,
}

/// How a file is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeCompared {
    /// By lines.
    Text,
    /// Not: it is no text.
    Binary,
    /// Not: it is too large.
    Large,
    /// Not: git stores it in another form.
    Filtered,
    /// Not: it is a link.
    Link,
    /// Not: it cannot be read, or how it was is not kept.
    Unreadable,
}

/// Who changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangedBy {
    /// It changed while a run was under way.
    Session,
    /// It changed while none was.
    Others,
    /// It changed in both.
    Both,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangedFile {
    /// Its path below the session's folder; a name that is not UTF-8 as git quotes it.
    pub path: String,
    /// Its path before it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// Lines that came; absent where they are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// Lines that went; absent where they are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// How it is compared.
    pub compared: ChangeCompared,
    /// Why there is no diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Another text once the file changed again.
    pub digest: String,
    /// Who changed it.
    pub by: ChangedBy,
    /// The runs in which it changed.
    pub runs: Vec<RunId>,
}

/// A run, and how many files changed in it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangedRun {
    /// The run.
    pub run_id: RunId,
    /// When it began.
    pub at: Timestamp,
    /// The first 120 characters of its prompt; empty if it was prompted elsewhere.
    pub prompt: String,
    /// Files that changed in it.
    pub files: usize,
}

/// What was left out of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangesNote {
    /// A stable code.
    pub code: &'static str,
    /// What it means.
    pub text: String,
}

/// The diff of a file.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangeDiff {
    /// Its path.
    pub path: String,
    /// Its path before it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// How it is compared.
    pub compared: ChangeCompared,
    /// Why there is no diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Another text once the file changed again.
    pub digest: String,
    /// A unified diff with three lines of context; empty where the file is not compared.
    pub diff: String,
    /// Whether hunks were left out at the end.
    pub truncated: bool,
    /// The hunks that `diff` has.
    pub hunks: Vec<ChangeHunk>,
}

/// Where a hunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangeHunk {
    /// Its number, from 0.
    pub index: usize,
    /// Its first line before.
    pub old_start: usize,
    /// Its lines before.
    pub old_lines: usize,
    /// Its first line now.
    pub new_start: usize,
    /// Its lines now.
    pub new_lines: usize,
}

/// What was undone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct UndoneChange {
    /// The file.
    pub path: String,
    /// Names the patch that brings the change back.
    pub patch_id: String,
    /// The patch.
    pub patch: String,
    /// Where the patch is kept; absent if it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// A patch that brings back what was undone.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, ToSchema)]
pub struct KeptPatch {
    /// Its name.
    pub patch_id: String,
    /// The file.
    pub path: String,
    /// When the change was undone.
    pub at: Timestamp,
    /// The device that did it.
    pub by: Resolver,
}

/// Why changes are not shown, or not undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// Nothing differs there.
    #[error("nothing changed at this path: list the changes again")]
    NoChange,
    /// The file is not as it was shown.
    #[error("the file changed after it was shown: look at it again, then undo")]
    ChangedMeanwhile,
    /// The agent may be writing to the file.
    #[error("a run is under way and may be writing to this file: wait for its end, or send `during_run`: true")]
    RunUnderWay,
    /// It cannot be undone.
    #[error("this change cannot be undone here: {0}")]
    NotUndoable(String),
    /// No such patch.
    #[error("there is no such patch: list what was undone again")]
    NoPatch,
    /// No changes of such a run are known.
    #[error("the changes of this run are not known: it is none of `runs`")]
    NoRun,
    /// The disk did not answer in time.
    #[error("the folder could not be compared in time: try again")]
    Slow,
    /// The disk refused.
    #[error("the files could not be read or written: {0}")]
    Disk(String),
}
