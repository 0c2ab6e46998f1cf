//! What changed, as clients see it.

use plexus_protocol::{Resolver, RunId, SessionId, SessionInfo, Timestamp};
use plexus_workspace::{
    ChangeAuthor, Comparison, FilePatch, FolderLook, NotKept, PathChange, PathStatus, SessionChanges, UndoneFiles,
    WorkspaceError, shown_path,
};
use serde::Serialize;
use utoipa::ToSchema;

/// Names of files in a note; further ones are counted.
const NAMED: usize = 3;
const NO_BASE: &str = "changes are listed from a session's first prompt on, and this session has none yet";
const BASELINE_LATE: &str = "how the folder was at the first prompt was not noted in time: changes from before may be \
    listed, and some of the agent's may not";
const AUTHORS_BOUNDED: &str = "so many files changed at once that the authors of some are not known";

/// Every file that changed since the first prompt of a session.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangesView {
    /// The session.
    pub session_id: SessionId,
    /// Whether changes are known.
    pub source: ChangesSource,
    /// The session's folder.
    pub root: String,
    /// The moment that files are compared with; absent before the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangesSource {
    /// States of the folder that the gateway keeps with git.
    Git,
    /// Nothing: `notes` say why.
    None,
}

/// The moment that files are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ChangesBase {
    /// The time of the look at the folder: before the first prompt, unless the note `baseline_late` is there.
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
    /// Another path, with the same or a similar content.
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
    /// Not: it is a link.
    Link,
    /// Not: it cannot be read, how it was is not kept, or it is a repository of its own.
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
    /// Paths that changed in it; a renamed file has two.
    pub files: usize,
    /// Whether its start was noted after it had begun: some of its changes may count as those of others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
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
    /// The patch; empty for a file that is not compared by lines.
    pub patch: String,
}

/// A patch that brings back what was undone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
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

/// The reason why changes are not shown, or not undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// A call on the folder failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Agents may be writing to the folder; the titles of their sessions.
    #[error(
        "{} under way in this folder ({}): wait for the end, or send `during_run`: true",
        if .0.len() == 1 { "a run is" } else { "runs are" },
        .0.join(", ")
    )]
    RunUnderWay(Vec<String>),
    /// The answer did not come in time.
    #[error("the folder could not be compared in time: try again")]
    Slow,
    /// The gateway itself failed.
    #[error("the files could not be read or written: {0}")]
    Disk(String),
}

impl ChangesNote {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Returns the note of an error that only says that there is nothing to list.
    pub(super) fn of_error(error: &WorkspaceError) -> Option<Self> {
        let code = match error {
            WorkspaceError::GitMissing(_) => "git_missing",
            WorkspaceError::NoBase => return Some(Self::new("no_base", NO_BASE)),
            WorkspaceError::Private => "private_folder",
            WorkspaceError::TooManyFiles => "too_many_files",
            WorkspaceError::Slow(_)
            | WorkspaceError::Git { .. }
            | WorkspaceError::Disk { .. }
            | WorkspaceError::Damaged(_)
            | WorkspaceError::InUse
            | WorkspaceError::BadId(_)
            | WorkspaceError::NoRun
            | WorkspaceError::NoChange
            | WorkspaceError::ChangedMeanwhile
            | WorkspaceError::NotUndoable(_)
            | WorkspaceError::NoPatch => return None,
        };
        Some(Self::new(code, error.to_string()))
    }

    /// Returns the note of files that a look names without keeping them.
    fn of_not_kept((reason, count, names): &(NotKept, usize, Vec<String>)) -> Self {
        let (code, what) = match reason {
            NotKept::Large => ("large_files", "have more than 8 MiB: only that they change is known"),
            NotKept::Unreadable => ("unreadable_files", "cannot be read: only that they change is known"),
            NotKept::Nested => ("nested_repository", "are repositories of their own: their files are not listed"),
            NotKept::Budget => ("bytes_bounded", "were not read, because the folder has too many bytes"),
        };
        let named: Vec<String> = names.iter().take(NAMED).map(|name| name.escape_debug().to_string()).collect();
        let more = if *count > named.len() { ", …" } else { "" };
        Self::new(code, format!("{count} {what} ({}{more})", named.join(", ")))
    }
}

impl ChangesView {
    /// A list without changes.
    pub(super) fn empty(info: &SessionInfo) -> Self {
        Self {
            session_id: info.session_id.clone(),
            source: ChangesSource::None,
            root: info.cwd.clone(),
            base: None,
            rev: String::new(),
            files: Vec::new(),
            left_off: 0,
            runs: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, found: &SessionChanges, look: &FolderLook) {
        self.source = ChangesSource::Git;
        self.base = Some(ChangesBase { at: Timestamp::from_millis(found.base_at) });
        self.left_off = found.left_off;
        let run = |run: &plexus_workspace::RunChanges| ChangedRun {
            run_id: RunId::trusted(run.run.as_str()),
            at: Timestamp::from_millis(run.at),
            prompt: run.note.clone(),
            files: run.files,
            late: run.late,
        };
        self.runs = found.runs.iter().map(run).collect();
        let file = |change: &plexus_workspace::SessionChange| {
            let by = match change.by {
                ChangeAuthor::Session => ChangedBy::Session,
                ChangeAuthor::Others => ChangedBy::Others,
                ChangeAuthor::Both => ChangedBy::Both,
            };
            let runs = change.runs.iter().map(|run| RunId::trusted(run.as_str())).collect();
            ChangedFile::of(&change.file, by, runs)
        };
        self.files = found.files.iter().map(file).collect();
        if found.late {
            self.notes.push(ChangesNote::new("baseline_late", BASELINE_LATE));
        }
        if found.authors_bounded {
            self.notes.push(ChangesNote::new("authors_bounded", AUTHORS_BOUNDED));
        }
        self.notes.extend(look.not_kept.iter().map(ChangesNote::of_not_kept));
        if !look.unlisted.is_empty() {
            let names: Vec<String> = look.unlisted.iter().map(|name| name.escape_debug().to_string()).collect();
            let text = format!("some folders cannot be listed, and their files are unknown: {}", names.join(", "));
            self.notes.push(ChangesNote::new("unlisted_folders", text));
        }
    }
}

impl ChangedFile {
    fn of(file: &PathChange, by: ChangedBy, runs: Vec<RunId>) -> Self {
        Self {
            path: shown_path(&file.path),
            from: file.from.as_deref().map(shown_path),
            status: file.status.into(),
            added: file.lines.map(|lines| lines.0),
            removed: file.lines.map(|lines| lines.1),
            compared: file.compared.into(),
            reason: file.compared.reason().map(Into::into),
            digest: file.digest(),
            by,
            runs,
        }
    }
}

impl ChangeDiff {
    pub(super) fn of(file: &PathChange, patch: &FilePatch) -> Self {
        let hunk = |(index, hunk): (usize, plexus_workspace::PatchHunk<'_>)| ChangeHunk {
            index,
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
        };
        let compared = ChangeCompared::from(file.compared);
        Self {
            path: shown_path(&file.path),
            from: file.from.as_deref().map(shown_path),
            status: file.status.into(),
            compared,
            reason: file.compared.reason().filter(|_| compared != ChangeCompared::Text).map(Into::into),
            digest: file.digest(),
            diff: String::from_utf8_lossy(patch.diff()).into_owned(),
            truncated: patch.truncated,
            hunks: patch.hunks().into_iter().enumerate().map(hunk).collect(),
        }
    }
}

impl From<PathStatus> for ChangeStatus {
    fn from(status: PathStatus) -> Self {
        match status {
            PathStatus::Added => Self::Added,
            PathStatus::Modified => Self::Modified,
            PathStatus::Deleted => Self::Deleted,
            PathStatus::Renamed => Self::Renamed,
        }
    }
}

impl From<Comparison> for ChangeCompared {
    fn from(compared: Comparison) -> Self {
        match compared {
            Comparison::Text | Comparison::Uncounted => Self::Text,
            Comparison::Binary => Self::Binary,
            Comparison::Large => Self::Large,
            Comparison::Link => Self::Link,
            Comparison::Unreadable | Comparison::Nested => Self::Unreadable,
        }
    }
}

impl KeptPatch {
    pub(super) fn of(undone: &UndoneFiles) -> Self {
        // The record was written by this gateway or an earlier one.
        let by = serde_json::from_str(&undone.note).unwrap_or_else(|_| Resolver::gateway());
        let (patch_id, path) = (undone.patch_id.clone(), undone.path.clone());
        Self { patch_id, path, at: Timestamp::from_millis(undone.at), by }
    }
}
