//! Undo and redo of a change.
//!
//! An undo is a list of steps, each of which turns one known side of a file into another. The sides are blobs whose
//! bytes are checked against their names, so an undo writes only content that was shown. The list is written to a
//! journal and synced before the first file is touched. A file is written beside its place and moved there. When the
//! store is opened again, an unfinished list is completed or discarded, by the side on which each file is.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::beneath::{Beneath, Found};
use crate::changes::SessionChanges;
use crate::error::{Result, WorkspaceError, disk};
use crate::hunks::{PatchHunk, split, without_hunk};
use crate::names::{ObjectName, checked_id, display_path, header_path, read_path};
use crate::scan::UNDO_SUFFIX;
use crate::store::{FolderStore, KEPT_FILE_MAX, replace};
use crate::values::{Comparison, FileSide, LINK, PLACEHOLDER, PathChange};

/// Maximum number of undone changes that a session stores; the oldest are removed, and cannot be redone.
const UNDONE_MAX: usize = 200;
/// The end of the names of the journal's files.
const ENTRY: &str = ".json";

/// A request to undo a change.
#[derive(Clone, Debug)]
pub struct UndoOrder<'a> {
    /// The session.
    pub session: &'a str,
    /// A new identifier for the undone change.
    pub patch_id: &'a str,
    /// The path in the list.
    pub path: &'a [u8],
    /// The digest of the change as it was shown.
    pub digest: &'a str,
    /// The number of a hunk; the whole file if absent.
    pub hunk: Option<usize>,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// A text of the caller that is stored with the record, such as the author as JSON.
    pub note: &'a str,
}

/// The phase of an undone change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Undoing,
    Done,
    Redoing,
}

/// A file of an undone change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoStep {
    /// The path, as [`display_path`] writes it.
    pub path: String,
    /// The side before the undo.
    pub is: Option<FileSide>,
    /// The side after the undo.
    pub to: Option<FileSide>,
}

/// An undone change that can be redone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneFiles {
    /// The identifier.
    pub patch_id: String,
    /// The path in the list, as [`display_path`] writes it.
    pub path: String,
    /// The time of the undo in milliseconds since 1970.
    pub at: i64,
    /// The text that the caller gave.
    pub note: String,
    /// The files.
    pub steps: Vec<UndoStep>,
    phase: Phase,
}

/// The result of an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoResult {
    /// The undone change.
    pub undone: UndoneFiles,
    /// A patch that redoes the change; empty for a file that is not compared by lines.
    pub patch: Vec<u8>,
}

/// The direction in which a list of steps is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Undo,
    Redo,
}

/// The action of one step.
enum Action {
    /// The file is on its new side already.
    None,
    Remove,
    Write(u32, Vec<u8>),
}

impl UndoneFiles {
    /// Returns the steps of a direction: path, the side that the file must be on, and the side that it gets.
    fn ordered(&self, direction: Direction) -> Vec<(Vec<u8>, Option<FileSide>, Option<FileSide>)> {
        let steps = self.steps.iter();
        match direction {
            Direction::Undo => steps.map(|step| (read_path(&step.path), step.is, step.to)).collect(),
            Direction::Redo => steps.rev().map(|step| (read_path(&step.path), step.to, step.is)).collect(),
        }
    }

    fn temporary_name(&self) -> String {
        format!(".{}{UNDO_SUFFIX}", self.patch_id)
    }
}

impl FolderStore {
    /// Undoes a change that `changes` lists, or one hunk of it. No file is changed unless each is exactly as it was shown.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::NoChange`], [`WorkspaceError::ChangedMeanwhile`], [`WorkspaceError::NotUndoable`],
    /// [`WorkspaceError::BadId`], and errors of git and the disk. After an error of the disk, a renamed file may be
    /// half undone; the undone change is listed then.
    pub fn undo(&self, changes: &SessionChanges, order: &UndoOrder<'_>) -> Result<UndoResult> {
        let _turn = self.turn()?;
        let (session, patch_id) = (checked_id(order.session)?, checked_id(order.patch_id)?);
        let file = &changes.at(order.path)?.file;
        if file.digest() != order.digest {
            return Err(WorkspaceError::ChangedMeanwhile);
        }
        let (steps, patch) = self.plan(changes, file, order.hunk)?;
        let sides = steps.iter().flat_map(|step| step.is.iter().chain(&step.to));
        let blobs: BTreeSet<ObjectName> = sides.map(|side| side.name).collect();
        let blobs: Vec<ObjectName> = blobs.into_iter().collect();
        for name in &blobs {
            // Content that is not stored cannot be restored.
            self.blob(*name).map_err(|error| match error {
                WorkspaceError::Git { .. } => {
                    WorkspaceError::NotUndoable("the earlier content of the file is no longer stored".into())
                }
                error => error,
            })?;
        }
        self.keep_objects(session, &blobs)?;
        let (path, note) = (display_path(order.path), order.note.to_owned());
        let patch_id = patch_id.to_owned();
        let mut undone = UndoneFiles { patch_id, path, at: order.at, note, steps, phase: Phase::Undoing };
        self.apply(session, &mut undone, Direction::Undo)?;
        self.forget_oldest(session)?;
        Ok(UndoResult { undone, patch })
    }

    /// Lists the undone changes of a session that can be redone, newest first.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::BadId`], [`WorkspaceError::Damaged`], [`WorkspaceError::Disk`].
    pub fn undone(&self, session: &str) -> Result<Vec<UndoneFiles>> {
        let mut all: Vec<UndoneFiles> = Vec::new();
        let entries = match fs::read_dir(self.session_folder(checked_id(session)?).join("undo")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(disk("reading the undone changes")(error)),
        };
        for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(ENTRY)) {
            let text = fs::read(entry.path()).map_err(disk("reading the undone changes"))?;
            let damaged = |error| WorkspaceError::Damaged(format!("{}: {error}", entry.path().display()));
            all.push(serde_json::from_slice(&text).map_err(damaged)?);
        }
        all.sort_by(|a, b| (b.at, &b.patch_id).cmp(&(a.at, &a.patch_id)));
        Ok(all)
    }

    /// Redoes an undone change.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::NoPatch`], [`WorkspaceError::ChangedMeanwhile`], and errors of git and the disk.
    pub fn redo(&self, session: &str, patch_id: &str) -> Result<UndoneFiles> {
        let _turn = self.turn()?;
        let all = self.undone(session)?;
        let mut undone = all.into_iter().find(|known| known.patch_id == patch_id).ok_or(WorkspaceError::NoPatch)?;
        self.apply(session, &mut undone, Direction::Redo)?;
        Ok(undone)
    }

    /// Completes or discards the changes that a crash interrupted in any session.
    pub(crate) fn recover(&self) -> Result<()> {
        let Ok(sessions) = fs::read_dir(self.directory.join("sessions")) else { return Ok(()) };
        for session in sessions.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            for mut undone in self.undone(&session).unwrap_or_default() {
                let direction = match undone.phase {
                    Phase::Done => continue,
                    Phase::Undoing => Direction::Undo,
                    Phase::Redoing => Direction::Redo,
                };
                let folder = Beneath::open(&self.folder).map_err(disk("opening the folder"))?;
                let steps = undone.ordered(direction);
                steps.iter().for_each(|(path, ..)| folder.remove_temporary(path, &undone.temporary_name()));
                let written = steps.iter().filter(|(path, _, to)| self.is_on(&folder, path, *to)).count();
                if written == 0 {
                    // No file was written. Folders that were made for it are removed.
                    steps.iter().for_each(|(path, ..)| folder.remove_empty_above(path));
                    self.finish(
                        &session,
                        &mut undone,
                        if direction == Direction::Undo { None } else { Some(Phase::Done) },
                    )?;
                } else if written == steps.len() || self.apply(&session, &mut undone, direction).is_err() {
                    // A file that was changed since stays unchanged, and the record has the content that was written.
                    steps.iter().for_each(|(path, ..)| folder.remove_empty_above(path));
                    self.finish(
                        &session,
                        &mut undone,
                        if direction == Direction::Undo { Some(Phase::Done) } else { None },
                    )?;
                }
            }
        }
        Ok(())
    }

    fn is_on(&self, folder: &Beneath, path: &[u8], side: Option<FileSide>) -> bool {
        match folder.found(path, KEPT_FILE_MAX) {
            Ok(Found::File(found)) => side == Some(found),
            // A folder at the path of a file that should be absent may have other files.
            Ok(Found::Nothing | Found::Folder) => side.is_none(),
            Ok(Found::Other) | Err(_) => false,
        }
    }

    /// Applies the steps: checks all files, records the intent, writes, and records the result. During the recovery
    /// from a crash, a file that is on its new side already is left.
    fn apply(&self, session: &str, undone: &mut UndoneFiles, direction: Direction) -> Result<()> {
        let folder = Beneath::open(&self.folder).map_err(disk("opening the folder"))?;
        let steps = undone.ordered(direction);
        let is_resumed = undone.phase != Phase::Done && self.entry(session, undone).exists();
        let mut actions = Vec::new();
        for (path, is, to) in &steps {
            if is_resumed && self.is_on(&folder, path, *to) {
                actions.push(Action::None);
                continue;
            }
            if !self.is_on(&folder, path, *is) {
                return Err(WorkspaceError::ChangedMeanwhile);
            }
            actions.push(match to {
                Some(side) => Action::Write(side.mode, self.blob(side.name)?),
                None if is.is_some() => Action::Remove,
                None => Action::None,
            });
        }
        undone.phase = if direction == Direction::Undo { Phase::Undoing } else { Phase::Redoing };
        self.write_entry(session, undone)?;
        checkpoint()?;
        for ((path, is, _), action) in steps.iter().zip(actions) {
            let temporary = undone.temporary_name();
            if let Err(error) = self.act(&folder, path, *is, &temporary, action) {
                if !killed(&error) {
                    folder.remove_temporary(path, &temporary);
                    self.abandon(session, undone, direction, &folder)?;
                }
                return Err(error);
            }
            checkpoint()?;
        }
        self.finish(session, undone, if direction == Direction::Undo { Some(Phase::Done) } else { None })
    }

    /// Writes or removes one file, if it still is on the side `is`.
    fn act(&self, folder: &Beneath, path: &[u8], is: Option<FileSide>, temporary: &str, action: Action) -> Result<()> {
        let refusal = |why: &str| WorkspaceError::NotUndoable(why.into());
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotADirectory => refusal("a file or a link is in the place of its folder: undo that first"),
            ErrorKind::DirectoryNotEmpty => refusal("a folder with other files is in its place: undo those first"),
            _ => disk("writing the files")(error),
        };
        let unchanged = || if self.is_on(folder, path, is) { Ok(()) } else { Err(WorkspaceError::ChangedMeanwhile) };
        match action {
            Action::None => Ok(()),
            Action::Remove => {
                unchanged()?;
                folder.remove(path).map_err(failed)
            }
            Action::Write(mode, content) => {
                folder.make_folders(path).map_err(failed)?;
                checkpoint()?;
                folder.write_temporary(path, temporary, mode, &content).map_err(failed)?;
                checkpoint()?;
                unchanged()?;
                folder.move_temporary(path, temporary).map_err(failed)
            }
        }
    }

    /// Ends a list of which a step failed: it counts as done if a file was written, and otherwise as not begun.
    fn abandon(&self, session: &str, undone: &mut UndoneFiles, direction: Direction, folder: &Beneath) -> Result<()> {
        let steps = undone.ordered(direction);
        steps.iter().for_each(|(path, ..)| folder.remove_empty_above(path));
        let any = steps.iter().any(|(path, _, to)| to.is_some() && self.is_on(folder, path, *to));
        let phase = match (direction, any) {
            (Direction::Undo, false) => None,
            _ => Some(Phase::Done),
        };
        self.finish(session, undone, phase)
    }

    /// Writes the last phase, or removes the record.
    fn finish(&self, session: &str, undone: &mut UndoneFiles, phase: Option<Phase>) -> Result<()> {
        match phase {
            Some(phase) => {
                undone.phase = phase;
                self.write_entry(session, undone)?;
            }
            None => match fs::remove_file(self.entry(session, undone)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(disk("removing the record of an undo")(error));
                }
                _ => {}
            },
        }
        checkpoint()
    }

    fn entry(&self, session: &str, undone: &UndoneFiles) -> std::path::PathBuf {
        self.session_folder(session).join("undo").join(format!("{}{ENTRY}", undone.patch_id))
    }

    fn write_entry(&self, session: &str, undone: &UndoneFiles) -> Result<()> {
        let action = "recording the undo";
        let path = self.entry(session, undone);
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(disk(action))?;
        let text = serde_json::to_vec(undone).map_err(|error| disk(action)(std::io::Error::from(error)))?;
        replace(&path, &text).map_err(disk(action))
    }

    fn forget_oldest(&self, session: &str) -> Result<()> {
        for mut old in self.undone(session)?.into_iter().skip(UNDONE_MAX) {
            self.finish(session, &mut old, None)?;
        }
        Ok(())
    }

    /// Plans the steps of an undo, and the patch that redoes the change.
    fn plan(
        &self,
        changes: &SessionChanges,
        file: &PathChange,
        hunk: Option<usize>,
    ) -> Result<(Vec<UndoStep>, Vec<u8>)> {
        let refusal = |why: &str| WorkspaceError::NotUndoable(why.into());
        for side in file.old.iter().chain(&file.new) {
            match side.mode {
                LINK => return Err(refusal("it is a symbolic link")),
                PLACEHOLDER => {
                    return Err(refusal(
                        "the file is not stored: it is too large, unreadable, or a repository of its own",
                    ));
                }
                _ => {}
            }
        }
        let text = matches!(file.compared, Comparison::Text | Comparison::Uncounted);
        let patch = if text { Some(self.file_patch_between(changes.old, changes.new, file)?) } else { None };
        let path = display_path(&file.path);
        if let Some(nth) = hunk {
            let (Some(_), Some(is), Some(patch)) = (file.old, file.new, &patch) else {
                return Err(refusal("the file is new, deleted, or not compared by lines: undo it as a whole"));
            };
            let hunks = patch.hunks();
            let hunk = hunks.get(nth).ok_or(WorkspaceError::NoChange)?;
            let now = self.blob(is.name)?;
            let back =
                without_hunk(&now, hunk).ok_or_else(|| refusal("the lines of this part are not where they were"))?;
            let to = FileSide { mode: is.mode, name: self.keep_blob(&back)? };
            return Ok((vec![UndoStep { path, is: Some(is), to: Some(to) }], hunk_patch(&file.path, hunk)));
        }
        let patch = patch.filter(|patch| !patch.truncated).map_or_else(Vec::new, |patch| patch.bytes().to_vec());
        let Some(from) = &file.from else {
            return Ok((vec![UndoStep { path, is: file.new, to: file.old }], patch));
        };
        let back = UndoStep { path: display_path(from), is: None, to: file.old };
        Ok((vec![back, UndoStep { path, is: file.new, to: None }], patch))
    }
}

/// Makes a patch of one hunk, whose old side is the file after the undo.
fn hunk_patch(path: &[u8], hunk: &PatchHunk<'_>) -> Vec<u8> {
    let first = |lines: usize| match (lines, hunk.new_lines) {
        (0, 0) => hunk.new_start,
        (0, _) => hunk.new_start - 1,
        (_, 0) => hunk.new_start + 1,
        _ => hunk.new_start,
    };
    let (a, b) = (header_path(b"a/", path), header_path(b"b/", path));
    // A name with blanks ends where the tab is.
    let ended = |name: &str| if name.contains(' ') { format!("{name}\t") } else { name.to_owned() };
    let header = format!("diff --git {a} {b}\n--- {}\n+++ {}\n", ended(&a), ended(&b));
    let (old_start, old_lines) = (first(hunk.old_lines), hunk.old_lines);
    let range = format!("@@ -{old_start},{old_lines} +{},{} @@\n", hunk.new_start, hunk.new_lines);
    let lines = hunk.bytes.iter().position(|byte| *byte == b'\n').map_or(&[][..], |at| &hunk.bytes[at + 1..]);
    debug_assert!(split(hunk.bytes).1.len() == 1);
    [header.as_bytes(), range.as_bytes(), lines].concat()
}

/// Stops here in tests that kill the process at each step.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
const fn checkpoint() -> Result<()> {
    Ok(())
}

#[cfg(not(test))]
const fn killed(_: &WorkspaceError) -> bool {
    false
}

#[cfg(test)]
pub(crate) use tests_support::KILL_AFTER;
#[cfg(test)]
use tests_support::{checkpoint, killed};

#[cfg(test)]
mod tests_support {
    use super::{Result, WorkspaceError};

    thread_local! {
        /// The number of checkpoints that pass before the process counts as killed.
        pub(crate) static KILL_AFTER: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
    }

    pub(crate) fn checkpoint() -> Result<()> {
        KILL_AFTER.with(|left| match left.get() {
            Some(0) => Err(WorkspaceError::InUse),
            Some(more) => {
                left.set(Some(more - 1));
                Ok(())
            }
            None => Ok(()),
        })
    }

    pub(crate) fn killed(error: &WorkspaceError) -> bool {
        *error == WorkspaceError::InUse
    }
}
