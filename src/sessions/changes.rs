//! What changed in a session's folder since its first prompt, read from git without running anything.
//!
//! An agent wrote what is read here, and may write while it is read. So git's files are parsed by our own code: by position, never
//! mapped, with bounds, without links, without alternates, and without a look at what a repository configures.

mod analysis;
mod attributes;
mod beneath;
mod noting;
mod objects;
mod patch;
mod record;
mod repository;
mod review;
mod told;
mod undo;
mod view;
mod worktree;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Directory, Log};
use crate::auth::{Approve, Permit};
use analysis::{Analysis, Change, Contents, analyse, digest_of};
use attributes::Attributes;
use patch::{PatchText, Side, shown};
use plexus_protocol::{RunId, SessionId, SessionInfo};
use record::{Record, RecordFolder};
pub use review::ReviewComment;
use told::ToldEdits;
pub use undo::UndoWish;
pub use view::{
    ChangeCompared, ChangeDiff, ChangeHunk, ChangeStatus, ChangedBy, ChangedFile, ChangedRun, ChangesBase,
    ChangesError, ChangesNote, ChangesSource, ChangesView, KeptPatch, UndoneChange,
};

/// Most files in a list; further ones are counted.
const FILES: usize = 2000;
/// How long a folder that was compared counts as current; calls within it share one comparison.
const FRESH: Duration = Duration::from_millis(700);
/// Folders whose comparison is kept; beyond it all are dropped, and compared again when they are asked for.
const KEPT: usize = 16;
/// Sessions whose told edits are kept, at most 8 MiB each; beyond it all are dropped, and read again from the log.
const TOLD: usize = 4;
/// Folders compared at a time; others wait. Of one folder only one comparison is made at a time, so that a file system that hangs keeps
/// one of these threads for each of its folders.
const WORKERS: usize = 4;
/// How long a caller waits for its answer; then it is told that the folder is slow.
const WAIT: Duration = Duration::from_secs(20);
/// Bytes of the texts whose lines are counted for one list; further files have no counts.
const COUNTED: usize = 64 << 20;
/// Files whose counts are remembered; beyond it all are forgotten, and counted again.
const COUNTS: usize = 20_000;
/// Most bytes of a patch of all files; further files are named in its first lines.
const PATCH: usize = 8 << 20;
/// Characters of a prompt in the list of runs.
const PROMPT: usize = 120;

/// What is known of the changes of all sessions.
pub(super) struct Changes {
    home: OnceLock<PathBuf>,
    kept: Mutex<HashMap<SessionId, Seen>>,
    /// Held while a session's folder is compared or its record is written: one at a time.
    turns: dashmap::DashMap<SessionId, Arc<tokio::sync::Mutex<()>>>,
    /// Held while a folder is compared: sessions of the same folder wait for each other. Dropped when nobody waits.
    folders: dashmap::DashMap<String, Arc<tokio::sync::Mutex<()>>>,
    workers: Arc<Semaphore>,
    queued: Mutex<noting::QueuedPrompts>,
    /// The edits that agents told of in folders that are in no repository.
    told: Mutex<HashMap<SessionId, Arc<Mutex<ToldEdits>>>>,
    /// The counts of files that were compared, by digest; `None` for one that differs in line ends alone.
    counts: Mutex<HashMap<String, Option<Counts>>>,
}

/// How a file was compared.
#[derive(Clone, Debug)]
struct Counts {
    lines: Option<(usize, usize)>,
    compared: ChangeCompared,
    reason: Option<String>,
}

/// A folder that was compared.
#[derive(Clone)]
struct Seen {
    analysis: Arc<Analysis>,
    record: Arc<Record>,
    at: Instant,
}

impl Default for Changes {
    fn default() -> Self {
        let workers = Arc::new(Semaphore::new(WORKERS));
        Self {
            home: OnceLock::new(),
            kept: Mutex::default(),
            turns: dashmap::DashMap::new(),
            folders: dashmap::DashMap::new(),
            workers,
            counts: Mutex::default(),
            queued: Mutex::default(),
            told: Mutex::default(),
        }
    }
}

/// A folder's turn; the last one to leave drops its entry.
struct FolderTurn {
    held: Option<tokio::sync::OwnedMutexGuard<()>>,
    changes: Arc<Changes>,
    cwd: String,
}

impl Drop for FolderTurn {
    fn drop(&mut self) {
        drop(self.held.take());
        self.changes.folders.remove_if(&self.cwd, |_, folder| Arc::strong_count(folder) == 1);
    }
}

impl Changes {
    fn folder(&self, session: &SessionId) -> Option<RecordFolder> {
        self.home.get().map(|home| RecordFolder::of(home, session))
    }

    fn turn(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.turns.entry(session.clone()).or_default())
    }

    /// Does work for a session, in its turn and its folder's, and on a thread that may block.
    fn work<T: Send + 'static>(
        self: &Arc<Self>,
        session: &SessionId,
        cwd: &str,
        work: impl FnOnce(&Self) -> Result<T, ChangesError> + Send + 'static,
    ) -> impl Future<Output = Result<T, ChangesError>> + Send + 'static {
        let (this, turn, workers) = (Arc::clone(self), self.turn(session), Arc::clone(&self.workers));
        let (session, cwd) = (session.clone(), cwd.to_owned());
        // Spawned, so that it is done whole if the client leaves.
        let done = tokio::spawn(async move {
            let _turn = Arc::clone(&turn).lock_owned().await;
            // The session was deleted meanwhile: a record of it would stay for ever.
            if !this.turns.get(&session).is_some_and(|now| Arc::ptr_eq(now.value(), &turn)) {
                return Err(ChangesError::Slow);
            }
            let folder = Arc::clone(&this.folders.entry(cwd.clone()).or_default());
            let _folder = FolderTurn { held: Some(folder.lock_owned().await), changes: Arc::clone(&this), cwd };
            let _slot = workers.acquire_owned().await.map_err(|_| ChangesError::Slow)?;
            let done = tokio::task::spawn_blocking(move || work(&this)).await;
            done.map_err(|_| ChangesError::Disk("an internal error occurred; see the gateway's log".into()))?
        });
        async move {
            tokio::time::timeout(WAIT, done).await.map_err(|_| ChangesError::Slow)?.map_err(|_| ChangesError::Slow)?
        }
    }

    /// Compares a folder, if that was not done just now. Blocks; the session's turn is held.
    fn seen(&self, log: &Log, session: &SessionId, cwd: &Path) -> Seen {
        if let Some(seen) = self.kept.lock().get(session).filter(|seen| seen.at.elapsed() < FRESH) {
            return seen.clone();
        }
        let record = self.folder(session).map(|folder| folder.load()).unwrap_or_default();
        let mut analysis = analyse(cwd, &record, self.home.get().map(PathBuf::as_path));
        if analysis.wants_told() {
            self.add_told(log, session, cwd, &mut analysis);
        }
        let seen = Seen { analysis: Arc::new(analysis), record: Arc::new(record), at: Instant::now() };
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(session.clone(), seen.clone());
        seen
    }

    /// Where git says nothing, the edits that the agent told of are what changed.
    fn add_told(&self, log: &Log, session: &SessionId, cwd: &Path, analysis: &mut Analysis) {
        let told = {
            let mut all = self.told.lock();
            if all.len() >= TOLD && !all.contains_key(session) {
                all.clear();
            }
            Arc::clone(all.entry(session.clone()).or_default())
        };
        let mut edits = told.lock();
        edits.read(log, session, cwd, &analysis.root);
        if edits.is_empty() {
            return;
        }
        analysis.source = ChangesSource::Tools;
        analysis.notes.extend(edits.notes());
        drop(edits);
        analysis.told = Some(told);
    }

    /// The next look at the folder compares it again.
    fn stale(&self, session: &SessionId) {
        self.kept.lock().remove(session);
    }

    /// The session is gone, and what was kept of it.
    pub(super) async fn forget(&self, session: &SessionId) {
        // What waits for its turn finds that there is none any more; what has its turn is done first.
        let turn = self.turns.remove(session).map(|(_, turn)| turn);
        let _done = match turn {
            Some(turn) => tokio::time::timeout(WAIT, turn.lock_owned()).await.ok(),
            None => None,
        };
        self.stale(session);
        self.told.lock().remove(session);
        if let Some(folder) = self.folder(session) {
            folder.remove();
        }
    }
}

/// One file's comparison; `None` if it differs in line ends alone.
fn compare(contents: &Contents, attributes: &mut Attributes<'_>, change: &Change) -> (Option<Counts>, usize) {
    match contents.texts(change, attributes) {
        Ok(None) => (None, 0),
        Ok(Some(texts)) => {
            let compared = super::diff::diff(&texts.old, &texts.new);
            let lines = Some((compared.added, compared.removed));
            (Some(Counts { lines, compared: ChangeCompared::Text, reason: None }), texts.old.len() + texts.new.len())
        }
        Err((compared, reason)) => (Some(Counts { lines: None, compared, reason: Some(reason) }), 0),
    }
}

fn list(changes: &Changes, log: &Log, info: &SessionInfo, run: Option<&RunId>) -> Result<ChangesView, ChangesError> {
    let session = &info.session_id;
    let Seen { analysis, record, .. } = changes.seen(log, session, Path::new(&info.cwd));
    let mut view = ChangesView {
        session_id: session.clone(),
        source: analysis.source,
        root: info.cwd.clone(),
        base: None,
        rev: String::new(),
        files: Vec::new(),
        left_off: 0,
        runs: Vec::new(),
        notes: analysis.notes.clone(),
    };
    let (found, left_off) = analysis.changes(&record, run)?;
    view.left_off = left_off;
    view.runs = analysis.runs(&record);
    if analysis.source == ChangesSource::Git {
        let at = record.base.as_ref().map_or(info.created_at, |base| base.at);
        view.base = Some(ChangesBase { commit: analysis.commit.map(objects::ObjectId::hex), at });
        let late = "how the folder was at the first prompt was not noted in time: changes from before may be listed, and some of the agent's may not";
        if record.base.as_ref().map_or(info.prompted_at.is_some(), |base| base.late) {
            view.notes.push(ChangesNote { code: "baseline_late", text: late.into() });
        }
    }
    if found.iter().any(|change| change.told.as_ref().is_some_and(|told| told.apart)) {
        let text = "some files are not as the edits left them: the edits are shown one after another, with line numbers of their own";
        view.notes.push(ChangesNote { code: "edits_apart", text: text.into() });
    }
    if analysis.source != ChangesSource::None {
        let contents = Contents::of(&analysis.root, changes.folder(session))?;
        let mut attributes = Attributes::of(&contents.folder);
        let mut budget = COUNTED;
        for change in &found {
            let digest = change.digest();
            let known = changes.counts.lock().get(&digest).cloned();
            let counts = match known {
                Some(known) => known,
                None if view.files.len() >= FILES || budget == 0 => {
                    let reason = "there are too many changes to count the lines of all".to_owned();
                    Some(Counts { lines: None, compared: ChangeCompared::Text, reason: Some(reason) })
                }
                None => {
                    let (counts, bytes) = compare(&contents, &mut attributes, change);
                    budget = budget.saturating_sub(bytes);
                    let mut known = changes.counts.lock();
                    if known.len() >= COUNTS {
                        known.clear();
                    }
                    known.insert(digest.clone(), counts.clone());
                    counts
                }
            };
            let Some(counts) = counts else { continue };
            if view.files.len() >= FILES {
                view.left_off += 1;
            } else {
                view.files.push(file_of(change, digest, counts));
            }
        }
    }
    if record.bounded {
        let text = "some files had no room for a copy: they have no diff against how they were";
        view.notes.push(ChangesNote { code: "copies_bounded", text: text.into() });
    }
    let rest = (&view.runs, &view.notes, &view.base, view.left_off, record.undone.len());
    view.rev = digest_of(&format!("{:?} {rest:?}", view.files));
    Ok(view)
}

fn file_of(change: &Change, digest: String, counts: Counts) -> ChangedFile {
    ChangedFile {
        path: shown(&change.path),
        from: change.from.as_deref().map(shown),
        status: change.status(),
        added: counts.lines.map(|lines| lines.0),
        removed: counts.lines.map(|lines| lines.1),
        compared: counts.compared,
        reason: counts.reason,
        digest,
        by: change.by,
        runs: change.runs.clone(),
    }
}

/// The change at a path.
fn change_at(
    changes: &Changes,
    log: &Log,
    info: &SessionInfo,
    path: &str,
    run: Option<&RunId>,
) -> Result<(Seen, Change), ChangesError> {
    let seen = changes.seen(log, &info.session_id, Path::new(&info.cwd));
    let change = seen.analysis.change(&seen.record, run, path)?;
    Ok((seen, change))
}

/// The patch of a change, or why there is none. `Ok(None)`: no change.
fn patch_of(
    contents: &Contents,
    attributes: &mut Attributes<'_>,
    change: &Change,
) -> Result<Option<PatchText>, (ChangeCompared, String)> {
    let Some(texts) = contents.texts(change, attributes)? else { return Ok(None) };
    let side = |path, state: &Option<worktree::FileState>, text| {
        state.as_ref().map(|state| Side { path, mode: state.mode, text })
    };
    let old = side(change.from.as_deref().unwrap_or(&change.path), &change.old, texts.old.as_str());
    Ok(Some(patch::patch(old, side(&change.path, &change.new, texts.new.as_str()), None)))
}

fn file(
    changes: &Changes,
    log: &Log,
    info: &SessionInfo,
    path: &str,
    run: Option<&RunId>,
) -> Result<ChangeDiff, ChangesError> {
    let (seen, change) = change_at(changes, log, info, path, run)?;
    let contents = Contents::of(&seen.analysis.root, changes.folder(&info.session_id))?;
    let mut attributes = Attributes::of(&contents.folder);
    let (text, compared, reason) = match patch_of(&contents, &mut attributes, &change) {
        Ok(None) => return Err(ChangesError::NoChange),
        Ok(Some(text)) => (text, ChangeCompared::Text, None),
        Err((compared, reason)) => (PatchText::default(), compared, Some(reason)),
    };
    // From `---` on: the rest of a patch's header is told by the other members.
    let diff = text.text.find("--- ").map_or_else(String::new, |at| text.text[at..].to_owned());
    let hunk = |(index, ((old_start, old_lines), (new_start, new_lines)))| ChangeHunk {
        index,
        old_start,
        old_lines,
        new_start,
        new_lines,
    };
    Ok(ChangeDiff {
        path: shown(&change.path),
        from: change.from.as_deref().map(shown),
        status: change.status(),
        compared,
        reason,
        digest: change.digest(),
        diff,
        truncated: text.truncated,
        hunks: text.hunks.into_iter().enumerate().map(hunk).collect(),
    })
}

fn whole_patch(
    changes: &Changes,
    log: &Log,
    info: &SessionInfo,
    path: Option<&str>,
    run: Option<&RunId>,
) -> Result<String, ChangesError> {
    let seen = changes.seen(log, &info.session_id, Path::new(&info.cwd));
    let found = match path {
        Some(path) => vec![seen.analysis.change(&seen.record, run, path)?],
        None => seen.analysis.changes(&seen.record, run)?.0,
    };
    let contents = Contents::of(&seen.analysis.root, changes.folder(&info.session_id))?;
    let mut attributes = Attributes::of(&contents.folder);
    let (mut left_out, mut text) = (String::new(), String::new());
    for change in &found {
        let why = match patch_of(&contents, &mut attributes, change) {
            Ok(None) => continue,
            Ok(Some(one)) if one.truncated || text.len() + one.text.len() > PATCH => {
                "the patch would be too long".to_owned()
            }
            Ok(Some(one)) => {
                text.push_str(&one.text);
                continue;
            }
            Err((_, reason)) => reason,
        };
        // A name may have line breaks of its own.
        left_out.push_str(&format!("# left out: {}: {why}\n", shown(&change.path).escape_debug()));
    }
    Ok(left_out + &text)
}

impl Directory {
    /// Sets the state folder, where what sessions began with is kept. Later calls have no effect.
    pub fn keep_changes_in(&self, home: PathBuf) {
        let _ = self.shared.changes.home.set(home);
    }

    /// What changed in a session's folder since its first prompt, or in one of its runs.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn changes(&self, info: &Arc<SessionInfo>, run: Option<RunId>) -> Result<ChangesView, ChangesError> {
        let (log, of) = (self.shared.log.clone(), Arc::clone(info));
        self.shared
            .changes
            .work(&info.session_id, &info.cwd, move |changes| list(changes, &log, &of, run.as_ref()))
            .await
    }

    /// The diff of one file.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn change_of_file(
        &self,
        info: &Arc<SessionInfo>,
        path: String,
        run: Option<RunId>,
    ) -> Result<ChangeDiff, ChangesError> {
        let (log, of) = (self.shared.log.clone(), Arc::clone(info));
        self.shared
            .changes
            .work(&info.session_id, &info.cwd, move |changes| file(changes, &log, &of, &path, run.as_ref()))
            .await
    }

    /// A patch of one file or of all, which `git apply` takes.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn changes_patch(
        &self,
        info: &Arc<SessionInfo>,
        path: Option<String>,
        run: Option<RunId>,
    ) -> Result<String, ChangesError> {
        let (log, of) = (self.shared.log.clone(), Arc::clone(info));
        self.shared
            .changes
            .work(&info.session_id, &info.cwd, move |changes| {
                whole_patch(changes, &log, &of, path.as_deref(), run.as_ref())
            })
            .await
    }

    /// Undoes a change of a file, or a hunk of it.
    ///
    /// # Errors
    /// [`ChangesError`]; nothing was written, but for a file that was renamed, of which the old one may be back already.
    pub async fn undo_change(
        &self,
        permit: &Permit<Approve>,
        info: &Arc<SessionInfo>,
        wish: UndoWish,
    ) -> Result<UndoneChange, ChangesError> {
        let (log, of, by) = (self.shared.log.clone(), Arc::clone(info), permit.device().resolver());
        self.shared
            .changes
            .work(&info.session_id, &info.cwd, move |changes| undo::undo(changes, &log, &of, &wish, by))
            .await
    }

    /// What was undone and can be brought back, newest first.
    ///
    /// # Errors
    /// [`ChangesError::Slow`].
    pub async fn undone_changes(&self, info: &Arc<SessionInfo>) -> Result<Vec<KeptPatch>, ChangesError> {
        let of = Arc::clone(info);
        self.shared.changes.work(&info.session_id, &info.cwd, move |changes| Ok(undo::undone(changes, &of))).await
    }

    /// Brings back what was undone.
    ///
    /// # Errors
    /// [`ChangesError`]
    pub async fn redo_change(
        &self,
        _permit: &Permit<Approve>,
        info: &Arc<SessionInfo>,
        patch_id: String,
        during_run: bool,
    ) -> Result<KeptPatch, ChangesError> {
        let of = Arc::clone(info);
        self.shared
            .changes
            .work(&info.session_id, &info.cwd, move |changes| undo::redo(changes, &of, &patch_id, during_run))
            .await
    }

    /// The prompt that comments on changed lines make.
    ///
    /// # Errors
    /// [`ChangesError`]
    pub async fn review_prompt(
        &self,
        info: &Arc<SessionInfo>,
        first: String,
        comments: Vec<ReviewComment>,
    ) -> Result<String, ChangesError> {
        let (log, of) = (self.shared.log.clone(), Arc::clone(info));
        let work = move |changes: &Changes| review::prompt(changes, &log, &of, &first, &comments);
        self.shared.changes.work(&info.session_id, &info.cwd, work).await
    }
}
