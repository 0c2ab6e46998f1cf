//! The form of changes that clients see.

use plexus_protocol::api::KnownItems;
use plexus_protocol::api::changes::{
    ChangeCompared, ChangeDiff, ChangeHunk, ChangeStatus, ChangedBy, ChangedFile, ChangedRun, ChangesBase, ChangesNote,
    ChangesSource, ChangesView, StoredPatch,
};
use plexus_protocol::{Resolver, RunId, SessionInfo, Timestamp};
use plexus_workspace::{
    ChangeAuthor, Comparison, FilePatch, FolderScan, OmissionReason, PathChange, PathStatus, SessionChanges,
    UndoneFiles, WorkspaceError, display_path,
};

/// Maximum number of file names in a note; further ones are counted.
const NAMED: usize = 3;
const NO_BASE: &str = "changes are listed from a session's first prompt on, and this session has none yet";
const BASELINE_LATE: &str = "how the folder was at the first prompt was not noted in time: changes from before may be \
    listed, and some of the agent's may not";
const AUTHORS_BOUNDED: &str = "so many files changed at once that the authors of some are not known";

/// The reason why changes are not listed, or not undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// A call on the folder failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Agents may be writing to the folder. Contains the titles of their sessions.
    #[error(
        "{} under way in this folder ({}): wait for the end, or send `during_run`: true",
        if .0.len() == 1 { "a run is" } else { "runs are" },
        .0.join(", ")
    )]
    RunUnderWay(Vec<String>),
    /// The result did not arrive in time.
    #[error("the folder could not be compared in time: try again")]
    Slow,
    /// The gateway failed to read or write its own files.
    #[error("the files could not be read or written: {0}")]
    Disk(String),
}

fn note(code: &'static str, text: impl Into<String>) -> ChangesNote {
    ChangesNote { code: code.to_owned(), text: text.into() }
}

/// Returns the note for an error that only means that there is nothing to list.
pub(super) fn error_note(error: &WorkspaceError) -> Option<ChangesNote> {
    let code = match error {
        WorkspaceError::GitMissing(_) => "git_missing",
        WorkspaceError::NoBase => return Some(note("no_base", NO_BASE)),
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
    Some(note(code, error.to_string()))
}

/// Returns the note about files that a scan names without storing them.
fn left_out_note((reason, count, names): &(OmissionReason, usize, Vec<String>)) -> ChangesNote {
    let (code, description) = match reason {
        OmissionReason::Large => ("large_files", "have more than 8 MiB: only that they change is known"),
        OmissionReason::Unreadable => ("unreadable_files", "cannot be read: only that they change is known"),
        OmissionReason::Nested => ("nested_repository", "are repositories of their own: their files are not listed"),
        OmissionReason::Budget => ("bytes_bounded", "were not read, because the folder has too many bytes"),
    };
    let named: Vec<String> = names.iter().take(NAMED).map(|name| name.escape_debug().to_string()).collect();
    let more = if *count > named.len() { ", …" } else { "" };
    note(code, format!("{count} {description} ({}{more})", named.join(", ")))
}

/// Returns a list without changes.
pub(super) fn empty(info: &SessionInfo) -> ChangesView {
    ChangesView {
        session_id: info.session_id.clone(),
        source: ChangesSource::None,
        root: info.cwd.clone(),
        base: None,
        rev: String::new(),
        files: KnownItems::default(),
        left_off: 0,
        runs: KnownItems::default(),
        notes: KnownItems::default(),
    }
}

/// Adds the changes that were found, and what the scan of the folder left out.
pub(super) fn add(view: &mut ChangesView, found: &SessionChanges, scan: &FolderScan) {
    view.source = ChangesSource::Git;
    view.base = Some(ChangesBase { at: Timestamp::from_millis(found.base_at) });
    view.left_off = found.left_off;
    let run = |run: &plexus_workspace::RunChanges| ChangedRun {
        run_id: RunId::trusted(run.run.as_str()),
        at: Timestamp::from_millis(run.at),
        prompt: run.note.clone(),
        files: run.files,
        late: run.late,
    };
    view.runs = found.runs.iter().map(run).collect();
    let file = |change: &plexus_workspace::SessionChange| {
        let by = match change.by {
            ChangeAuthor::Session => ChangedBy::Session,
            ChangeAuthor::Others => ChangedBy::Others,
            ChangeAuthor::Both => ChangedBy::Both,
        };
        let runs = change.runs.iter().map(|run| RunId::trusted(run.as_str())).collect();
        changed_file(&change.file, by, runs)
    };
    view.files = found.files.iter().map(file).collect();
    if found.late {
        view.notes.push(note("baseline_late", BASELINE_LATE));
    }
    if found.authors_bounded {
        view.notes.push(note("authors_bounded", AUTHORS_BOUNDED));
    }
    view.notes.extend(scan.omitted.iter().map(left_out_note));
    if !scan.unlisted.is_empty() {
        let names: Vec<String> = scan.unlisted.iter().map(|name| name.escape_debug().to_string()).collect();
        let text = format!("some folders cannot be listed, and their files are unknown: {}", names.join(", "));
        view.notes.push(note("unlisted_folders", text));
    }
}

fn changed_file(file: &PathChange, by: ChangedBy, runs: Vec<RunId>) -> ChangedFile {
    ChangedFile {
        path: display_path(&file.path),
        from: file.from.as_deref().map(display_path),
        status: change_status(file.status),
        added: file.lines.map(|lines| lines.0),
        removed: file.lines.map(|lines| lines.1),
        compared: change_compared(file.compared),
        reason: file.compared.reason().map(Into::into),
        digest: file.digest(),
        by,
        runs,
    }
}

/// Returns the diff of a file, with names that are safe to display.
pub(super) fn diff(file: &PathChange, patch: &FilePatch) -> ChangeDiff {
    let hunk = |(index, hunk): (usize, plexus_workspace::PatchHunk<'_>)| ChangeHunk {
        index,
        old_start: hunk.old_start,
        old_lines: hunk.old_lines,
        new_start: hunk.new_start,
        new_lines: hunk.new_lines,
    };
    let compared = change_compared(file.compared);
    ChangeDiff {
        path: display_path(&file.path),
        from: file.from.as_deref().map(display_path),
        status: change_status(file.status),
        compared,
        reason: file.compared.reason().filter(|_| compared != ChangeCompared::Text).map(Into::into),
        digest: file.digest(),
        diff: String::from_utf8_lossy(patch.diff()).into_owned(),
        truncated: patch.truncated,
        hunks: patch.hunks().into_iter().enumerate().map(hunk).collect(),
    }
}

const fn change_status(status: PathStatus) -> ChangeStatus {
    match status {
        PathStatus::Added => ChangeStatus::Added,
        PathStatus::Modified => ChangeStatus::Modified,
        PathStatus::Deleted => ChangeStatus::Deleted,
        PathStatus::Renamed => ChangeStatus::Renamed,
    }
}

const fn change_compared(compared: Comparison) -> ChangeCompared {
    match compared {
        Comparison::Text | Comparison::Uncounted => ChangeCompared::Text,
        Comparison::Binary => ChangeCompared::Binary,
        Comparison::Large => ChangeCompared::Large,
        Comparison::Link => ChangeCompared::Link,
        Comparison::Unreadable | Comparison::Nested => ChangeCompared::Unreadable,
    }
}

/// Returns the patch that restores what was undone.
pub(super) fn stored_patch(undone: &UndoneFiles) -> StoredPatch {
    // The record was written by this gateway or an earlier one.
    let by = serde_json::from_str(&undone.note).unwrap_or_else(|_| Resolver::gateway());
    let (patch_id, path) = (undone.patch_id.clone(), undone.path.clone());
    StoredPatch { patch_id, path, at: Timestamp::from_millis(undone.at), by }
}
