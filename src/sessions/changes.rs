//! The changes of sessions: when their folders are scanned, and which changes clients see. `plexus_workspace` handles the folders
//! themselves.

mod noting;
mod review;
mod view;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::system::{mint, now};
use plexus_protocol::api::changes::{ChangeDiff, ChangesView, StoredPatch, UndoneChange};
use plexus_protocol::{Resolver, RunId, SessionId, SessionInfo};
use plexus_workspace::{
    Comparison, FolderScan, FolderStore, FolderStores, SessionChanges, UndoOrder, WorkspaceError, display_path,
    read_path,
};
pub use review::ReviewComment;
pub use view::ChangesError;

/// Time for which the diffs of single files share a scan; a list always scans.
const FRESH: Duration = Duration::from_millis(700);
/// Maximum number of folders whose stores stay open; beyond it unused ones are closed.
const OPEN_FOLDERS: usize = 16;
/// Maximum number of concurrent calls on one folder; others wait. A file system that hangs blocks this many threads for each of its
/// folders.
const CALLS: usize = 8;
/// Maximum time that a caller waits for its result, before it gets [`ChangesError::Slow`].
const WAIT: Duration = Duration::from_secs(20);
/// Time for which a folder that is too large to scan is not scanned again; until then, its list reports the same error.
const TOO_LARGE_WAIT: Duration = Duration::from_secs(30 * 60);
/// Time after which the store of an open folder is packed again.
const MAINTAINED: Duration = Duration::from_secs(24 * 60 * 60);

/// The stores of the folders that sessions work in.
#[derive(Default)]
pub(super) struct Changes {
    stores: OnceLock<Arc<FolderStores>>,
    folders: dashmap::DashMap<String, Arc<OpenFolder>>,
    /// The states of sessions by identifier. A session without an entry was deleted, or was never prompted.
    turns: dashmap::DashMap<SessionId, Arc<SessionTurn>>,
    /// Scans for prompts whose runs have not begun.
    starts: Mutex<HashMap<SessionId, noting::StartScan>>,
    queued: Mutex<noting::QueuedPrompts>,
}

/// The state of recording one session's moments.
#[derive(Default)]
struct SessionTurn {
    /// Held while a moment is recorded, one at a time.
    noting: Arc<tokio::sync::Mutex<()>>,
    /// `true` if the agent sent anything in the current run: its work may have begun.
    acted: AtomicBool,
}

/// A folder in use.
struct OpenFolder {
    calls: Arc<Semaphore>,
    store: Mutex<Option<Arc<FolderStore>>>,
    scanned: Mutex<Option<(FolderScan, Instant)>>,
    /// The end of a scan of a folder that was too large, and its error.
    too_large: Mutex<Option<(WorkspaceError, Instant)>>,
    maintained: Mutex<Instant>,
}

/// The folder of one call.
struct FolderCall {
    cwd: String,
    folder: Arc<OpenFolder>,
    changes: Arc<Changes>,
    _slot: OwnedSemaphorePermit,
}

impl FolderCall {
    /// Opens the store of the folder. Blocks.
    fn store(&self) -> Result<Arc<FolderStore>, WorkspaceError> {
        let mut open = self.folder.store.lock();
        if let Some(store) = &*open {
            return Ok(Arc::clone(store));
        }
        let private = || WorkspaceError::Private;
        let store = self.changes.stores.get().ok_or_else(private)?.open(Path::new(&self.cwd))?;
        *open = Some(Arc::clone(&store));
        Ok(store)
    }

    /// Scans the folder, unless it was just scanned. Blocks.
    fn fresh_scan(&self) -> Result<FolderScan, WorkspaceError> {
        let cached = self.folder.scanned.lock().clone();
        match cached.filter(|(_, at)| at.elapsed() < FRESH) {
            Some((scan, _)) => Ok(scan),
            None => self.scan(),
        }
    }

    /// Scans the folder. Blocks.
    fn scan(&self) -> Result<FolderScan, WorkspaceError> {
        let too_large = self.folder.too_large.lock().clone();
        if let Some((error, _)) = too_large.filter(|(_, at)| at.elapsed() < TOO_LARGE_WAIT) {
            return Err(error);
        }
        let begun = Instant::now();
        let scan = self.store()?.scan();
        if let Err(error @ (WorkspaceError::Slow(_) | WorkspaceError::TooManyFiles)) = &scan {
            *self.folder.too_large.lock() = Some((error.clone(), Instant::now()));
        }
        let scan = scan?;
        *self.folder.scanned.lock() = Some((scan.clone(), begun));
        Ok(scan)
    }

    fn changes(&self, session: &SessionId, run: Option<&RunId>) -> Result<SessionChanges, WorkspaceError> {
        let store = self.store()?;
        if !store.has_moments(session.as_str())? {
            return Err(if run.is_some() { WorkspaceError::NoRun } else { WorkspaceError::NoBase });
        }
        store.changes(session.as_str(), run.map(RunId::as_str), &self.fresh_scan()?)
    }
}

impl Changes {
    fn folder(&self, cwd: &str) -> Arc<OpenFolder> {
        if self.folders.len() >= OPEN_FOLDERS && !self.folders.contains_key(cwd) {
            self.folders.retain(|_, folder| Arc::strong_count(folder) > 1);
        }
        let new = || {
            let calls = Arc::new(Semaphore::new(CALLS));
            let maintained = Mutex::new(Instant::now());
            let (store, scanned, too_large) = (Mutex::default(), Mutex::default(), Mutex::default());
            Arc::new(OpenFolder { calls, store, scanned, too_large, maintained })
        };
        Arc::clone(&self.folders.entry(cwd.to_owned()).or_insert_with(new))
    }

    /// Runs work on a folder on a thread that may block.
    fn start<T: Send + 'static>(
        self: &Arc<Self>,
        cwd: &str,
        work: impl FnOnce(&FolderCall) -> Result<T, ChangesError> + Send + 'static,
    ) -> impl Future<Output = Result<T, ChangesError>> + Send + 'static {
        let (changes, cwd) = (Arc::clone(self), cwd.to_owned());
        async move {
            let folder = changes.folder(&cwd);
            let slot = Arc::clone(&folder.calls).acquire_owned().await.map_err(|_| ChangesError::Slow)?;
            let call = FolderCall { cwd, folder, changes, _slot: slot };
            let done = tokio::task::spawn_blocking(move || work(&call)).await;
            done.map_err(|_| ChangesError::Disk("an internal error occurred; see the gateway's log".into()))?
        }
    }

    /// Like [`start`](Self::start), for a caller that waits [`WAIT`] at most. The work is completed even if the caller does not wait for
    /// it.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        cwd: &str,
        work: impl FnOnce(&FolderCall) -> Result<T, ChangesError> + Send + 'static,
    ) -> Result<T, ChangesError> {
        let done = tokio::spawn(self.start(cwd, work));
        tokio::time::timeout(WAIT, done).await.map_err(|_| ChangesError::Slow)?.map_err(|_| ChangesError::Slow)?
    }

    /// Like [`work`](Self::work), after all earlier moments of the session were recorded.
    async fn work_in_session<T: Send + 'static>(
        self: &Arc<Self>,
        info: &SessionInfo,
        work: impl FnOnce(&FolderCall) -> Result<T, ChangesError> + Send + 'static,
    ) -> Result<T, ChangesError> {
        let turn = self.turns.get(&info.session_id).map(|turn| Arc::clone(turn.value()));
        if let Some(turn) = turn {
            drop(tokio::time::timeout(WAIT, turn.noting.lock()).await.map_err(|_| ChangesError::Slow)?);
        }
        self.work(&info.cwd, work).await
    }

    /// Forgets a deleted session.
    pub(super) async fn forget(self: &Arc<Self>, session: &SessionId, cwd: &str) {
        // Moments that wait for their turn are no longer recorded.
        let turn = self.turns.remove(session).map(|(_, turn)| turn);
        let _noted = match turn {
            Some(turn) => tokio::time::timeout(WAIT, Arc::clone(&turn.noting).lock_owned()).await.ok(),
            None => None,
        };
        self.starts.lock().remove(session);
        if self.stores.get().is_none() {
            return;
        }
        let id = session.clone();
        let forgotten = self.work(cwd, move |call| {
            let Some(stores) = call.changes.stores.get() else { return Ok(()) };
            stores.forget(Path::new(&call.cwd), id.as_str())?;
            call.changes.maintain(&call.cwd);
            Ok(())
        });
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, %session, "the stored states of the folder of a deleted session could not be removed");
        }
    }

    /// Packs the store of a folder later, if it is open.
    fn maintain(self: &Arc<Self>, cwd: &str) {
        let work = self.start(cwd, |call| {
            *call.folder.maintained.lock() = Instant::now();
            let open = call.folder.store.lock().clone();
            Ok(open.map_or(Ok(()), |store| store.maintain())?)
        });
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::warn!(%error, "the stored states of a folder could not be packed");
            }
        });
    }
}

/// Returns a digest of text, as 32 hexadecimal digits.
fn text_digest(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text)[..16])
}

fn list(call: &FolderCall, info: &SessionInfo, run: Option<&RunId>) -> Result<ChangesView, ChangesError> {
    let mut view = view::empty(info);
    // A user may just have written to the folder. Requests for single files afterwards share this scan.
    *call.folder.scanned.lock() = None;
    let found = call.changes(&info.session_id, run).and_then(|found| Ok((found, call.fresh_scan()?)));
    let (found, scan) = match found {
        Ok(found) => found,
        // These are no failures: the list contains the fix.
        Err(error) => {
            view.notes.push(view::error_note(&error).ok_or(error)?);
            view.rev = text_digest(&format!("{view:?}"));
            return Ok(view);
        }
    };
    view::add(&mut view, &found, &scan);
    view.rev = text_digest(&format!("{view:?}"));
    Ok(view)
}

fn file(call: &FolderCall, info: &SessionInfo, path: &str, run: Option<&RunId>) -> Result<ChangeDiff, ChangesError> {
    let found = call.changes(&info.session_id, run)?;
    let change = &found.at(&read_path(path))?.file;
    let patch = call.store()?.file_patch(found.old, found.new, change)?;
    Ok(view::diff(change, &patch))
}

fn whole_patch(
    call: &FolderCall,
    info: &SessionInfo,
    path: Option<&str>,
    run: Option<&RunId>,
) -> Result<Vec<u8>, ChangesError> {
    let found = match call.changes(&info.session_id, run) {
        // Nothing was prompted, so nothing changed.
        Err(WorkspaceError::NoBase) if path.is_none() => return Ok(Vec::new()),
        found => found?,
    };
    let only = path.map(|path| found.at(&read_path(path))).transpose()?.map(|change| &change.file);
    let patch = call.store()?.whole_patch(found.old, found.new, only)?;
    let reason = |path: &[u8]| {
        let change = found.at(path).ok().map(|change| change.file.compared);
        match change {
            Some(Comparison::Text | Comparison::Uncounted | Comparison::Binary | Comparison::Link) | None => {
                "the patch would be too long"
            }
            Some(other) => other.reason().unwrap_or_default(),
        }
    };
    // A name may have line breaks of its own.
    let line = |path: &Vec<u8>| format!("# left out: {}: {}\n", display_path(path).escape_debug(), reason(path));
    let head: String = patch.left_out.iter().map(line).collect();
    Ok([head.into_bytes(), patch.bytes].concat())
}

/// A request to undo a change.
#[derive(Clone, Debug)]
pub struct UndoRequest {
    /// The path of the file in the list.
    pub path: String,
    /// The digest of the change that the client displayed.
    pub digest: String,
    /// The number of one hunk; the whole file if absent.
    pub hunk: Option<usize>,
    /// `true` if the undo is allowed while runs are in progress.
    pub during_run: bool,
}

fn undo(
    call: &FolderCall,
    session: &SessionId,
    request: &UndoRequest,
    by: &Resolver,
) -> Result<UndoneChange, ChangesError> {
    let store = call.store()?;
    let scan = call.scan()?;
    let found = store.changes(session.as_str(), None, &scan)?;
    let (patch_id, note) = (mint("u_"), serde_json::to_string(by).unwrap_or_default());
    let order = UndoOrder {
        session: session.as_str(),
        patch_id: &patch_id,
        path: &read_path(&request.path),
        digest: &request.digest,
        hunk: request.hunk,
        at: now().as_millis(),
        note: &note,
    };
    let undone = store.undo(&found, &order);
    *call.folder.scanned.lock() = None;
    let undone = undone?;
    let patch = String::from_utf8_lossy(&undone.patch).into_owned();
    Ok(UndoneChange { path: undone.undone.path, patch_id, patch })
}

impl Changes {
    /// Sets where the states of folders are stored. Later calls have no effect.
    pub(super) fn keep_in(&self, stores: Arc<FolderStores>) {
        let _ = self.stores.set(stores);
    }

    /// Lists the changes in a session's folder since its first prompt, or in one of its runs.
    pub(super) async fn list(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        run: Option<RunId>,
    ) -> Result<ChangesView, ChangesError> {
        let session = Arc::clone(info);
        self.work_in_session(info, move |call| list(call, &session, run.as_ref())).await
    }

    /// Returns the diff of one file.
    pub(super) async fn file(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        path: String,
        run: Option<RunId>,
    ) -> Result<ChangeDiff, ChangesError> {
        let session = Arc::clone(info);
        self.work_in_session(info, move |call| file(call, &session, &path, run.as_ref())).await
    }

    /// Returns a patch of one file or of all.
    pub(super) async fn patch(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        path: Option<String>,
        run: Option<RunId>,
    ) -> Result<Vec<u8>, ChangesError> {
        let session = Arc::clone(info);
        self.work_in_session(info, move |call| whole_patch(call, &session, path.as_deref(), run.as_ref())).await
    }

    /// Undoes a change of a file, or a hunk of it.
    pub(super) async fn undo(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        request: UndoRequest,
        by: Resolver,
    ) -> Result<UndoneChange, ChangesError> {
        let session = info.session_id.clone();
        self.work_in_session(info, move |call| undo(call, &session, &request, &by)).await
    }

    /// Lists the undone changes that can be restored, newest first.
    pub(super) async fn undone(self: &Arc<Self>, info: &Arc<SessionInfo>) -> Result<Vec<StoredPatch>, ChangesError> {
        let session = info.session_id.clone();
        let undone = move |call: &FolderCall| match call.store() {
            Ok(store) => Ok(store.undone(session.as_str())?.iter().map(view::stored_patch).collect()),
            // Without a store nothing was undone, either.
            Err(WorkspaceError::GitMissing(_) | WorkspaceError::Private) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        };
        self.work_in_session(info, undone).await
    }

    /// Restores an undone change.
    pub(super) async fn redo(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        patch_id: String,
    ) -> Result<StoredPatch, ChangesError> {
        let session = info.session_id.clone();
        let redo = move |call: &FolderCall| {
            let redone = call.store()?.redo(session.as_str(), &patch_id);
            *call.folder.scanned.lock() = None;
            Ok(view::stored_patch(&redone?))
        };
        self.work_in_session(info, redo).await
    }

    /// Makes one prompt from comments on changed lines.
    pub(super) async fn review_prompt(
        self: &Arc<Self>,
        info: &Arc<SessionInfo>,
        first: String,
        comments: Vec<ReviewComment>,
    ) -> Result<String, ChangesError> {
        let session = info.session_id.clone();
        self.work_in_session(info, move |call| review::prompt(call, &session, &first, &comments)).await
    }
}
