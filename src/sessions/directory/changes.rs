//! The changes in the folders of sessions.

use std::path::Path;

use super::registry::Registry;
use super::*;
use crate::changes::{Changes, ChangesError, ReviewComment, UndoRequest};
use plexus_protocol::api::changes::{ChangeDiff, ChangesView, StoredPatch, UndoneChange};
use plexus_workspace::FolderStores;

/// The changes in the folders of sessions: listed, undone and reviewed.
pub struct DirectoryChanges {
    pub(super) registry: Arc<Registry>,
    pub(super) changes: Arc<Changes>,
}

impl DirectoryChanges {
    /// Sets where the states of folders are stored. Later calls have no effect.
    pub fn keep_in(&self, stores: Arc<FolderStores>) {
        self.changes.keep_in(stores);
    }

    /// Lists the changes in a session's folder since its first prompt, or in one of its runs.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn list(&self, info: &Arc<SessionInfo>, run: Option<RunId>) -> Result<ChangesView, ChangesError> {
        self.changes.list(info, run).await
    }

    /// Returns the diff of one file.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn file(
        &self,
        info: &Arc<SessionInfo>,
        path: String,
        run: Option<RunId>,
    ) -> Result<ChangeDiff, ChangesError> {
        self.changes.file(info, path, run).await
    }

    /// Returns a patch of one file or of all, which `git apply` accepts. Its bytes have the encodings of the files.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn patch(
        &self,
        info: &Arc<SessionInfo>,
        path: Option<String>,
        run: Option<RunId>,
    ) -> Result<Vec<u8>, ChangesError> {
        self.changes.patch(info, path, run).await
    }

    /// Returns the sessions with running runs whose folder contains this one, or is within it.
    fn running_in(&self, cwd: &str) -> Vec<String> {
        let folder = Path::new(cwd);
        let touches = |other: &Path| other.starts_with(folder) || folder.starts_with(other);
        let infos = self.registry.sessions.iter().map(|handle| handle.info());
        let running = infos.filter(|info| info.run_id.is_some() && touches(Path::new(&info.cwd)));
        running.map(|info| info.title.clone().unwrap_or_else(|| info.session_id.to_string())).collect()
    }

    fn refuse_while_running(&self, info: &SessionInfo, during_run: bool) -> Result<(), ChangesError> {
        let running = if during_run { Vec::new() } else { self.running_in(&info.cwd) };
        if running.is_empty() { Ok(()) } else { Err(ChangesError::RunUnderWay(running)) }
    }

    /// Undoes a change of a file, or a hunk of it.
    ///
    /// # Errors
    /// [`ChangesError`]; then nothing was written, except as [`FolderStore::undo`](plexus_workspace::FolderStore::undo) describes for
    /// disk errors.
    pub async fn undo(
        &self,
        permit: &Permit<Approve>,
        info: &Arc<SessionInfo>,
        request: UndoRequest,
    ) -> Result<UndoneChange, ChangesError> {
        self.refuse_while_running(info, request.during_run)?;
        self.changes.undo(info, request, permit.device().resolver()).await
    }

    /// Lists the undone changes that can be restored, newest first.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn undone(&self, info: &Arc<SessionInfo>) -> Result<Vec<StoredPatch>, ChangesError> {
        self.changes.undone(info).await
    }

    /// Restores an undone change.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn redo(
        &self,
        _permit: &Permit<Approve>,
        info: &Arc<SessionInfo>,
        patch_id: String,
        during_run: bool,
    ) -> Result<StoredPatch, ChangesError> {
        self.refuse_while_running(info, during_run)?;
        self.changes.redo(info, patch_id).await
    }

    /// Makes one prompt from comments on changed lines.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub async fn review_prompt(
        &self,
        info: &Arc<SessionInfo>,
        first: String,
        comments: Vec<ReviewComment>,
    ) -> Result<String, ChangesError> {
        self.changes.review_prompt(info, first, comments).await
    }
}
