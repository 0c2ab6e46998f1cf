//! Snapshots of sessions, for clients that join late.

use super::registry::Registry;
use super::surfaces::DirectorySurfaces;
use super::*;
use crate::snapshot::{SnapshotFold, WINDOW};
use crate::snapshot_cache::SnapshotCache;
use plexus_protocol::api::snapshot::Snapshot;

/// Maximum number of sessions in one response with snapshots.
const SNAPSHOTS: usize = 64;
/// Approximate maximum size of messages and tools in one response with several snapshots, in bytes.
const SNAPSHOTS_BYTES: usize = 1 << 20;
/// Maximum size of the surfaces in the snapshots of several sessions, in bytes; the surfaces of a session that exceed its share are left
/// out.
const SNAPSHOTS_SURFACES_BYTES: usize = 4 << 20;

/// The snapshots of several sessions, all exact at one position.
#[derive(Debug)]
pub struct Snapshots {
    /// The position of all snapshots; reading continues after it.
    pub at: Position,
    /// The snapshots of the most recently changed sessions.
    pub snapshots: Vec<Snapshot>,
    /// The number of further sessions; their snapshots can be read one by one.
    pub omitted: usize,
}

/// The snapshots of sessions.
pub struct DirectorySnapshots {
    pub(super) registry: Arc<Registry>,
    pub(super) surfaces: DirectorySurfaces,
    pub(super) cache: SnapshotCache,
}

impl DirectorySnapshots {
    /// Returns the snapshot of a session, with at most [`WINDOW`] bytes of messages and tools.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn get(&self, id: &SessionId) -> Result<Snapshot, SessionError> {
        self.within(id, WINDOW).await
    }

    /// Returns the snapshot of a session, with at most `max` bytes of messages and tools.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn within(&self, id: &SessionId, max: usize) -> Result<Snapshot, SessionError> {
        let handle = self.registry.handle(id)?;
        let log = &self.registry.log;
        let fold = self.cache.fold_up_to(log, id, log.head()).await;
        let mut fold = fold.map_err(|error| SessionError::from_store(&error))?;
        let snapshot = fold.fold().map(|fold| self.make_snapshot(fold, &handle, max));
        drop(fold);
        let snapshot = snapshot.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        Ok(Snapshot { surfaces: self.surfaces.list(id).await?, ..snapshot })
    }

    /// Returns the snapshots of the 64 most recently changed sessions, all exact at one position.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn latest(&self, filter: &Filter) -> Result<Snapshots, SessionError> {
        let log = &self.registry.log;
        let mut handles: Vec<SessionHandle> = self.registry.handles(filter).collect();
        handles.sort_by_cached_key(|handle| std::cmp::Reverse(handle.rank()));
        let omitted = handles.len().saturating_sub(SNAPSHOTS);
        handles.truncate(SNAPSHOTS);
        let max = WINDOW.min(SNAPSHOTS_BYTES / handles.len().max(1));
        // Locked in one order, so that concurrent callers do not deadlock.
        handles.sort_by(|a, b| a.origin.session_id.cmp(&b.origin.session_id));
        for handle in &handles {
            // Slow work is done before any fold is locked.
            self.cache
                .fold_up_to(log, &handle.origin.session_id, log.head())
                .await
                .map_err(|e| SessionError::from_store(&e))?;
        }
        let mut at = log.head();
        let mut locked = Vec::with_capacity(handles.len());
        for handle in &handles {
            let mut fold = self
                .cache
                .fold_up_to(log, &handle.origin.session_id, at)
                .await
                .map_err(|e| SessionError::from_store(&e))?;
            at = at.max(fold.fold().map_or(at, |fold| fold.at));
            locked.push(fold);
        }
        let mut snapshots = Vec::with_capacity(handles.len());
        for (handle, fold) in handles.iter().zip(locked) {
            let fold = self.cache.advance(fold, log, &handle.origin.session_id, at).await;
            let mut fold = fold.map_err(|error| SessionError::from_store(&error))?;
            snapshots.extend(fold.fold().map(|fold| self.make_snapshot(fold, handle, max)));
        }
        let rank =
            |snapshot: &Snapshot| self.registry.sessions.get(&snapshot.session.session_id).map(|handle| handle.rank());
        snapshots.sort_by_cached_key(|snapshot| std::cmp::Reverse(rank(snapshot)));
        let max = SNAPSHOTS_SURFACES_BYTES / snapshots.len().max(1);
        for snapshot in &mut snapshots {
            match self.surfaces.list(&snapshot.session.session_id).await {
                Ok(surfaces) => {
                    let bytes: usize = surfaces.iter().map(|surface| surface.get().len()).sum();
                    snapshot.surfaces_omitted = bytes > max;
                    snapshot.surfaces = if snapshot.surfaces_omitted { Vec::new() } else { surfaces };
                }
                // The session was deleted meanwhile.
                Err(SessionError::NoSession(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Snapshots { at, snapshots, omitted })
    }

    fn make_snapshot(&self, fold: &mut SnapshotFold, handle: &SessionHandle, max: usize) -> Snapshot {
        let log = &self.registry.log;
        let requests = handle.view.load().open.clone();
        let trimmed = log.trimmed(&handle.origin.session_id) > Position::START;
        fold.snapshot(self.registry.session_info(handle), requests, log.cursor(fold.at), trimmed, max)
    }

    /// Drops the fold of a deleted session.
    pub(super) fn delete(&self, id: &SessionId) {
        self.cache.forget(id);
    }
}
