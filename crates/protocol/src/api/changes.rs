//! Files that a session changed: lists, diffs, undo and reviews.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::{Resolver, RunId, SessionId, Timestamp};

/// The changed files since the first prompt of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesView {
    /// The session.
    pub session_id: SessionId,
    /// The source of the changes; `none` if no changes are known.
    pub source: ChangesSource,
    /// The session's folder.
    pub root: String,
    /// The state that files are compared with; absent before the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<ChangesBase>,
    /// A digest of all other members.
    pub rev: String,
    /// The files, by path, at most 2,000.
    #[schema(value_type = Vec<ChangedFile>)]
    pub files: KnownItems<ChangedFile>,
    /// The number of changed files that are not listed.
    pub left_off: usize,
    /// The runs whose changes are known, oldest first.
    #[schema(value_type = Vec<ChangedRun>)]
    pub runs: KnownItems<ChangedRun>,
    /// The parts that were left out, with the reason.
    #[schema(value_type = Vec<ChangesNote>)]
    pub notes: KnownItems<ChangesNote>,
}

/// The source of a list of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangesSource {
    /// States of the folder that the gateway stores with git.
    Git,
    /// No source: `notes` contain the reason.
    None,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The state that files are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesBase {
    /// The time of the scan of the folder: before the first prompt, unless the note `baseline_late` is present.
    pub at: Timestamp,
}

/// The change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeStatus {
    /// The file is new.
    Added,
    /// The file has other content.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file has another path, with the same or a similar content.
    Renamed,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The kind of comparison of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeCompared {
    /// The file is compared by lines.
    Text,
    /// The file is not compared, because it is not text.
    Binary,
    /// The file is not compared, because it is too large.
    Large,
    /// The file is not compared, because it is a link.
    Link,
    /// The file is not compared, because it cannot be read, its earlier content is not stored, or it is a repository of its own.
    Unreadable,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The author of a change, as far as the time of the change shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangedBy {
    /// The file changed while a run was in progress.
    Session,
    /// The file changed while no run was in progress.
    Others,
    /// The file changed both during a run and outside of one.
    Both,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    /// The path below the session's folder; a name that is not UTF-8 as git quotes it.
    pub path: String,
    /// The path before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The change of the file.
    pub status: ChangeStatus,
    /// The number of added lines; absent if the lines are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// The number of removed lines; absent if the lines are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// The kind of comparison of the file.
    pub compared: ChangeCompared,
    /// The reason why there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A digest of the change; it differs once the file changes again.
    pub digest: String,
    /// The author of the change.
    pub by: ChangedBy,
    /// The runs in which the file changed.
    pub runs: Vec<RunId>,
}

/// A run, and the number of files that changed in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedRun {
    /// The run.
    pub run_id: RunId,
    /// The time when the run began.
    pub at: Timestamp,
    /// The first 120 characters of its prompt; empty if the prompt was sent elsewhere.
    pub prompt: String,
    /// The number of paths that changed in the run; a renamed file has two.
    pub files: usize,
    /// `true` if the start was recorded after the run had begun: some of its changes may count as those of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// A note about a part that was left out of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangesNote {
    /// A stable code.
    pub code: String,
    /// The note, for users.
    pub text: String,
}

/// The diff of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeDiff {
    /// The path.
    pub path: String,
    /// The path before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The change of the file.
    pub status: ChangeStatus,
    /// The kind of comparison of the file.
    pub compared: ChangeCompared,
    /// The reason why there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A digest of the change; it differs once the file changes again.
    pub digest: String,
    /// A unified diff with three lines of context; empty if the file is not compared.
    pub diff: String,
    /// `true` if hunks were left out at the end.
    pub truncated: bool,
    /// The hunks that `diff` has.
    pub hunks: Vec<ChangeHunk>,
}

/// The lines of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeHunk {
    /// The number, from 0.
    pub index: usize,
    /// The first line before the change.
    pub old_start: usize,
    /// The number of lines before the change.
    pub old_lines: usize,
    /// The first line after the change.
    pub new_start: usize,
    /// The number of lines after the change.
    pub new_lines: usize,
}

/// A change that was undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoneChange {
    /// The file.
    pub path: String,
    /// The identifier of the patch that restores the change.
    pub patch_id: String,
    /// The patch; empty for a file that is not compared by lines.
    pub patch: String,
}

/// A patch that restores an undone change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = KeptPatch)]
pub struct StoredPatch {
    /// The identifier.
    pub patch_id: String,
    /// The file.
    pub path: String,
    /// The time when the change was undone.
    pub at: Timestamp,
    /// The device that undid the change.
    pub by: Resolver,
}

/// A change to undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoChange {
    /// The file, by its path in the list.
    pub path: String,
    /// The digest in the list: nothing is undone if the file has changed meanwhile.
    pub digest: String,
    /// The number of a hunk; the whole file if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// `true` to undo although a run is in progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub during_run: bool,
}

/// The result of an undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoneChanges {
    /// The undone changes, newest first; at most 200.
    #[schema(value_type = Vec<StoredPatch>)]
    pub undone: KnownItems<StoredPatch>,
}

/// A change to restore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedoChange {
    /// The identifier of the undone changes.
    pub patch_id: String,
    /// `true` to restore although a run is in progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub during_run: bool,
}

/// Comments on changed lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesReview {
    /// The comments, at most 200, with at most 64 KiB of text.
    #[schema(min_items = 1, max_items = 200)]
    pub comments: Vec<LineComment>,
    /// The beginning of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A comment on lines of a changed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    /// The file, by its path in the list.
    pub path: String,
    /// The side of the diff that the lines belong to.
    pub side: DiffSide,
    /// The first line, from 1.
    #[schema(minimum = 1)]
    pub line: usize,
    /// The last line; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<usize>,
    /// The comment.
    pub text: String,
}

/// A side of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiffSide {
    /// The file after the change.
    New,
    /// The file before the change.
    Old,
}
