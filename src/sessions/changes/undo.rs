//! Undoing a change, and bringing it back. A file is written beside and renamed, below the folder and never through a link, after a
//! look that it still is as it was shown.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use plexus_protocol::{Resolver, SessionInfo};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};

use super::analysis::{Change, Contents};
use super::attributes::Attributes;
use super::beneath::Beneath;
use super::objects::ObjectId;
use super::patch::{Side, patch, shown, unshown, without_hunk};
use super::record::{Record, RecordFolder, UndoneFile, UndoneRecord};
use super::repository::LINK;
use super::view::{ChangesError, KeptPatch, UndoneChange};
use super::worktree::{FileState, current};
use super::{Changes, change_at};
use crate::sessions::Log;
use crate::sessions::session::{mint, now};

/// What is to be undone.
#[derive(Clone, Debug)]
pub struct UndoWish {
    /// The file.
    pub path: String,
    /// Its digest when it was shown.
    pub digest: String,
    /// One hunk; all of the file if absent.
    pub hunk: Option<usize>,
    /// Undo although a run is under way.
    pub during_run: bool,
}

impl From<io::Error> for ChangesError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error.to_string())
    }
}

impl From<rustix::io::Errno> for ChangesError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// A file to be written: its path, what must stand there, and what is to.
struct Step {
    path: Vec<u8>,
    is: Option<FileState>,
    to: Option<(u32, Vec<u8>)>,
}

pub(super) fn undo(
    changes: &Changes,
    log: &Log,
    info: &SessionInfo,
    wish: &UndoWish,
    by: Resolver,
) -> Result<UndoneChange, ChangesError> {
    if info.run_id.is_some() && !wish.during_run {
        return Err(ChangesError::RunUnderWay);
    }
    changes.stale(&info.session_id);
    let (seen, change) = change_at(changes, log, info, &wish.path, None)?;
    if change.digest() != wish.digest {
        return Err(ChangesError::ChangedMeanwhile);
    }
    let copies = changes.folder(&info.session_id);
    let contents = Contents::of(&seen.analysis.root, copies.clone())?;
    let (steps, text) = plan(&contents, &change, wish.hunk)?;
    let mut record = copies.as_ref().map(RecordFolder::load).unwrap_or_default();
    let mut files = Vec::new();
    // Before anything is written, what stands there is kept.
    for step in &steps {
        let was = match &step.is {
            None => None,
            Some(state) => {
                let content = raw(&contents.folder, &step.path)?;
                let kept = copies.as_ref().is_some_and(|copies| copies.copy(&mut record, &content));
                if !kept {
                    let why = "there is no room to keep what stands there, so it could not be brought back";
                    return Err(ChangesError::NotUndoable(why.into()));
                }
                Some(FileState { id: ObjectId::of_blob(&content).hex(), ..state.clone() })
            }
        };
        files.push(UndoneFile { path: shown(&step.path), was, is: None });
    }
    for (step, file) in steps.iter().zip(&mut files) {
        write(&contents.folder, step)?;
        file.is = state_now(&contents.folder, &step.path);
    }
    changes.stale(&info.session_id);
    let patch_id = mint("u_");
    let kept = KeptPatch { patch_id: patch_id.clone(), path: shown(&change.path), at: now(), by };
    record.undone.push(UndoneRecord { patch: kept, files });
    record.trim();
    let stored = copies.and_then(|copies| keep(&copies, &record, &patch_id, &text));
    Ok(UndoneChange { path: shown(&change.path), patch_id, patch: text, kept: stored })
}

fn keep(copies: &RecordFolder, record: &Record, patch_id: &str, text: &str) -> Option<String> {
    let name = format!("{patch_id}.patch");
    let kept = copies.store(record).and_then(|()| copies.write(&name, text.as_bytes()));
    kept.inspect_err(|error| tracing::warn!(%error, "an undone change could not be kept")).ok()?;
    Some(copies.path().join(name).display().to_string())
}

/// The bytes at a path; of a link nothing, which is never written.
fn raw(folder: &Beneath, path: &[u8]) -> Result<Vec<u8>, ChangesError> {
    folder.read(path, super::worktree::LARGE).map_err(ChangesError::from)
}

fn state_now(folder: &Beneath, path: &[u8]) -> Option<FileState> {
    current(folder, path, None)
}

/// What is to be written, and the patch that brings it back.
fn plan(contents: &Contents, change: &Change, hunk: Option<usize>) -> Result<(Vec<Step>, String), ChangesError> {
    let not = |(_, why): (_, String)| ChangesError::NotUndoable(why);
    let sides = [&change.old, &change.new];
    if sides.iter().any(|state| state.as_ref().is_some_and(|state| state.mode == LINK)) {
        return Err(ChangesError::NotUndoable("it is a symbolic link".into()));
    }
    if change.told.as_ref().is_some_and(|told| told.apart) {
        let why = "the file is not as the agent's edits left it, and no repository has it as it was";
        return Err(ChangesError::NotUndoable(why.into()));
    }
    let mut attributes = Attributes::of(&contents.folder);
    if attributes.is_filtered(&change.path) {
        return Err(ChangesError::NotUndoable("git stores it in another form; use `git restore`".into()));
    }
    let from = change.from.as_ref().unwrap_or(&change.path);
    let texts = contents.texts(change, &mut attributes);
    let text_side =
        |path, state: &Option<FileState>, text| state.as_ref().map(|state| Side { path, mode: state.mode, text });
    if let Some(hunk) = hunk {
        let texts = texts.map_err(not)?.ok_or(ChangesError::NoChange)?;
        let (Some(_), Some(new)) = (&change.old, &change.new) else {
            return Err(ChangesError::NotUndoable("the file is all new or gone: undo it as a whole".into()));
        };
        let back = without_hunk(&texts.old, &texts.new, hunk).ok_or(ChangesError::NoChange)?;
        let side = |text| Some(Side { path: &change.path, mode: new.mode, text });
        let text = patch(side(&back), side(&texts.new), None).text;
        let bytes = if texts.returns { back.replace('\n', "\r\n") } else { back };
        let step = Step { path: change.path.clone(), is: change.new.clone(), to: Some((new.mode, bytes.into_bytes())) };
        return Ok((vec![step], text));
    }
    let mut text = format!("# {} is not compared line by line\n", shown(&change.path).escape_debug());
    let mut returns = false;
    match texts {
        Ok(None) => return Err(ChangesError::NoChange),
        Ok(Some(texts)) => {
            text =
                patch(text_side(from, &change.old, &texts.old), text_side(&change.path, &change.new, &texts.new), None)
                    .text;
            returns = texts.returns;
        }
        Err(_) => {}
    }
    let to = match &change.old {
        None => None,
        Some(old) => {
            let content = contents.before(change, old).map_err(not)?;
            let content = match String::from_utf8(content) {
                Ok(text) if returns => text.replace('\n', "\r\n").into_bytes(),
                Ok(text) => text.into_bytes(),
                Err(error) => error.into_bytes(),
            };
            Some((old.mode, content))
        }
    };
    if change.from.is_none() {
        return Ok((vec![Step { path: change.path.clone(), is: change.new.clone(), to }], text));
    }
    let back = Step { path: from.clone(), is: None, to };
    Ok((vec![back, Step { path: change.path.clone(), is: change.new.clone(), to: None }], text))
}

/// Writes one file, if it still is what it was.
fn write(folder: &Beneath, step: &Step) -> Result<(), ChangesError> {
    let as_it_was = || {
        let found = current(folder, &step.path, known(step));
        if FileState::same(found.as_ref(), step.is.as_ref()) { Ok(()) } else { Err(ChangesError::ChangedMeanwhile) }
    };
    let Some((mode, content)) = &step.to else {
        as_it_was()?;
        let (above, name) = folder.holder(&step.path)?;
        return Ok(unlinkat(above.fd(), name, AtFlags::empty())?);
    };
    make_folders(folder, &step.path)?;
    let (above, name) = folder.holder(&step.path)?;
    let beside = format!(".{}.plexus-undo", mint(""));
    let beside = OsStr::from_bytes(beside.as_bytes());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(above.fd(), beside, flags, Mode::from_raw_mode(0o600))?);
    let written = file.write_all(content).map_err(ChangesError::from).and_then(|()| {
        // The permissions that it has, but for whether it can be executed.
        let has = above.stat(name.as_bytes()).map_or(0o644, |stat| stat.st_mode & 0o777);
        let bits = if mode & 0o100 != 0 { has | (has & 0o444) >> 2 } else { has & !0o111 };
        rustix::fs::fchmod(&file, Mode::from_raw_mode(bits))?;
        as_it_was()?;
        Ok(renameat(above.fd(), beside, above.fd(), name)?)
    });
    if written.is_err() {
        let _ = unlinkat(above.fd(), beside, AtFlags::empty());
    }
    written
}

/// What is committed at the path as far as line ends are concerned: they alone make no difference.
fn known(step: &Step) -> Option<super::repository::Tracked> {
    let state = step.is.as_ref()?;
    Some(super::repository::Tracked { mode: state.mode, id: state.blob()? })
}

/// Makes the folders above a path that are missing.
fn make_folders(folder: &Beneath, path: &[u8]) -> Result<(), ChangesError> {
    for end in memchr::memchr_iter(b'/', path) {
        let (above, name) = folder.holder(&path[..end])?;
        match mkdirat(above.fd(), name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

pub(super) fn undone(changes: &Changes, info: &SessionInfo) -> Vec<KeptPatch> {
    let record = changes.folder(&info.session_id).map(|folder| folder.load()).unwrap_or_default();
    record.undone.into_iter().rev().map(|undone| undone.patch).collect()
}

pub(super) fn redo(
    changes: &Changes,
    info: &SessionInfo,
    patch_id: &str,
    during_run: bool,
) -> Result<KeptPatch, ChangesError> {
    if info.run_id.is_some() && !during_run {
        return Err(ChangesError::RunUnderWay);
    }
    let copies = changes.folder(&info.session_id).ok_or(ChangesError::NoPatch)?;
    let mut record = copies.load();
    let at = record.undone.iter().position(|known| known.patch.patch_id == patch_id).ok_or(ChangesError::NoPatch)?;
    let root = Path::new(&info.cwd).canonicalize()?;
    let folder = Beneath::open(&root)?;
    let undone = &record.undone[at];
    let mut steps = Vec::new();
    for file in &undone.files {
        let path = unshown(&file.path);
        if !FileState::same(state_now(&folder, &path).as_ref(), file.is.as_ref()) {
            return Err(ChangesError::ChangedMeanwhile);
        }
        let to = match &file.was {
            None => None,
            Some(was) => {
                let content = was.blob().and_then(|id| copies.copied(id));
                let missing = || io::Error::new(ErrorKind::NotFound, "the copy of the file is gone");
                Some((was.mode, content.ok_or_else(missing)?))
            }
        };
        steps.push(Step { path, is: file.is.clone(), to });
    }
    for step in &steps {
        write(&folder, step)?;
    }
    changes.stale(&info.session_id);
    let done = record.undone.remove(at).patch;
    copies.store(&record)?;
    Ok(done)
}
