//! Files that a session changed: lists, diffs, undo and reviews.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::{Resolver, RunId, SessionId, Timestamp};

/// Every file that changed since the first prompt of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesView {
    /// The session.
    pub session_id: SessionId,
    /// Whether changes are known.
    pub source: ChangesSource,
    /// The session's folder.
    pub root: String,
    /// The moment that files are compared with; absent before the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<ChangesBase>,
    /// A digest of all other members.
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

/// The source of a list of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangesSource {
    /// States of the folder that the gateway keeps with git.
    Git,
    /// Nothing: `notes` say why.
    None,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The moment that files are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesBase {
    /// The time of the look at the folder: before the first prompt, unless the note `baseline_late` is there.
    pub at: Timestamp,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeStatus {
    /// It is new.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
    /// Another path, with the same or a similar content.
    Renamed,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How a file is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeCompared {
    /// By lines.
    Text,
    /// Not: it is no text.
    Binary,
    /// Not: it is too large.
    Large,
    /// Not: it is a link.
    Link,
    /// Not: it cannot be read, how it was is not kept, or it is a repository of its own.
    Unreadable,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// Who changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangedBy {
    /// It changed while a run was under way.
    Session,
    /// It changed while none was.
    Others,
    /// It changed in both.
    Both,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    /// Its path below the session's folder; a name that is not UTF-8 as git quotes it.
    pub path: String,
    /// Its path before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// Lines that came; absent where they are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// Lines that went; absent where they are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// How it is compared.
    pub compared: ChangeCompared,
    /// Why there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Another text once the file changed again.
    pub digest: String,
    /// Who changed it.
    pub by: ChangedBy,
    /// The runs in which it changed.
    pub runs: Vec<RunId>,
}

/// A run, and how many files changed in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedRun {
    /// The run.
    pub run_id: RunId,
    /// When it began.
    pub at: Timestamp,
    /// The first 120 characters of its prompt; empty if it was prompted elsewhere.
    pub prompt: String,
    /// Paths that changed in it; a renamed file has two.
    pub files: usize,
    /// Whether its start was noted after it had begun: some of its changes may count as those of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// What was left out of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangesNote {
    /// A stable code.
    pub code: String,
    /// What it means.
    pub text: String,
}

/// The diff of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeDiff {
    /// Its path.
    pub path: String,
    /// Its path before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// How it is compared.
    pub compared: ChangeCompared,
    /// Why there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoneChange {
    /// The file.
    pub path: String,
    /// Names the patch that brings the change back.
    pub patch_id: String,
    /// The patch; empty for a file that is not compared by lines.
    pub patch: String,
}

/// A patch that brings back what was undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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

/// A change to undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoChange {
    /// The file, by its path in the list.
    pub path: String,
    /// Its digest in the list: nothing is undone if the file is another meanwhile.
    pub digest: String,
    /// The number of a hunk; all of the file if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// Undo although a run is under way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub during_run: bool,
}

/// What was undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UndoneChanges {
    /// Newest first; at most 200.
    #[schema(value_type = Vec<KeptPatch>)]
    pub undone: KnownItems<KeptPatch>,
}

/// A change to bring back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedoChange {
    /// What was undone.
    pub patch_id: String,
    /// Bring it back although a run is under way.
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
    /// What the prompt begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A comment on lines of a changed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    /// The file, by its path in the list.
    pub path: String,
    /// Which side the lines are of.
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
    /// The file as it is.
    New,
    /// The file as it was.
    Old,
}
