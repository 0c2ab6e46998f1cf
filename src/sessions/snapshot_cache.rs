//! Snapshot folds of sessions, shared by all callers: one task per session builds the fold or updates it, however many callers wait for
//! it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::snapshot::{BackwardsFold, SnapshotFold};
use super::{Filter, Log};
use plexus_protocol::{Position, SessionId};
use plexus_store::{ReadLimit, StoreError};

/// Maximum number of cached folds; beyond it the least recently used one is dropped.
const FOLDS: usize = 256;
/// Approximate maximum size of all cached folds, in bytes; beyond it the least recently used one is dropped.
const FOLDS_BYTES: usize = 48 << 20;
/// Maximum number of folds built at a time; others wait.
const BUILDS: usize = 2;
/// Limit of one read while a fold is built, on a thread that may block.
const BUILD_SLICE: ReadLimit = ReadLimit { events: 16 << 10, bytes: 2 << 20 };
/// Limit of one read while a fold is updated.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };

/// The cache entry of a session's fold.
#[derive(Default)]
pub(super) struct CachedFold {
    fold: Option<SnapshotFold>,
    /// The position up to which retention had removed events when the fold was built.
    trimmed: Position,
}

impl CachedFold {
    /// Returns the fold; `None` before it was built.
    pub(super) fn fold(&mut self) -> Option<&mut SnapshotFold> {
        self.fold.as_mut()
    }
}

/// The folds of all sessions. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct SnapshotCache {
    table: Arc<Mutex<Table>>,
    builds: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    slots: HashMap<SessionId, Slot>,
    bytes: usize,
    /// The number of lookups so far; defines the order of use.
    lookups: u64,
}

struct Slot {
    shared: Arc<tokio::sync::Mutex<CachedFold>>,
    used: u64,
    bytes: usize,
}

impl Default for SnapshotCache {
    fn default() -> Self {
        Self { table: Arc::default(), builds: Arc::new(Semaphore::new(BUILDS)) }
    }
}

impl SnapshotCache {
    /// Returns the fold of a session with its events up to `up_to` at least, locked until the guard is dropped. If the future is dropped,
    /// the work continues for the next caller.
    ///
    /// # Errors
    /// The errors of [`Log::read`].
    pub(super) async fn fold_up_to(
        &self,
        log: &Log,
        session: &SessionId,
        up_to: Position,
    ) -> Result<OwnedMutexGuard<CachedFold>, StoreError> {
        let guard = self.slot(session).lock_owned().await;
        self.advance(guard, log, session, up_to).await
    }

    /// Like [`fold_up_to`](Self::fold_up_to), for a fold that is locked already.
    ///
    /// # Errors
    /// The errors of [`Log::read`].
    pub(super) async fn advance(
        &self,
        mut guard: OwnedMutexGuard<CachedFold>,
        log: &Log,
        session: &SessionId,
        up_to: Position,
    ) -> Result<OwnedMutexGuard<CachedFold>, StoreError> {
        let fresh = guard.fold.as_ref().is_some_and(|fold| fold.at >= up_to) && guard.trimmed == log.trimmed(session);
        if fresh {
            return Ok(guard);
        }
        let (folds, log, session) = (self.clone(), log.clone(), session.clone());
        let work = tokio::spawn(async move {
            let outcome = folds.update(&mut guard, &log, &session, up_to).await;
            folds.record_size(&session, guard.fold.as_ref().map_or(0, SnapshotFold::weight));
            outcome.map(|()| guard)
        });
        work.await.map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// Drops a session's fold.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut table = self.table();
        if let Some(slot) = table.slots.remove(session) {
            table.bytes -= slot.bytes;
        }
    }

    /// Returns the number of folds, and their size in bytes.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        let table = self.table();
        (table.slots.len(), table.bytes)
    }

    fn table(&self) -> parking_lot::MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn slot(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<CachedFold>> {
        let mut table = self.table();
        table.lookups += 1;
        let used = table.lookups;
        let slot =
            table.slots.entry(session.clone()).or_insert_with(|| Slot { shared: Arc::default(), used, bytes: 0 });
        slot.used = used;
        Arc::clone(&slot.shared)
    }

    /// Records the size of a fold, and drops others if all together are too large.
    fn record_size(&self, session: &SessionId, bytes: usize) {
        let mut table = self.table();
        let Some(slot) = table.slots.get_mut(session) else { return };
        let before = std::mem::replace(&mut slot.bytes, bytes);
        table.bytes = table.bytes + bytes - before;
        while table.slots.len() > FOLDS || (table.bytes > FOLDS_BYTES && table.slots.len() > 1) {
            let others = table.slots.iter().filter(|(id, _)| *id != session);
            let Some(oldest) = others.min_by_key(|(_, slot)| slot.used).map(|(id, _)| id.clone()) else { break };
            if let Some(slot) = table.slots.remove(&oldest) {
                table.bytes -= slot.bytes;
            }
        }
    }

    async fn update(
        &self,
        shared: &mut CachedFold,
        log: &Log,
        session: &SessionId,
        up_to: Position,
    ) -> Result<(), StoreError> {
        let trimmed = log.trimmed(session);
        if shared.fold.is_none() || shared.trimmed != trimmed {
            // The fold may contain events that retention removed.
            shared.fold = None;
            let _permit = self.builds.acquire().await;
            shared.fold = Some(build(log, session, up_to).await?);
            shared.trimmed = trimmed;
        }
        let Some(fold) = &mut shared.fold else { return Ok(()) };
        let filter = Filter::session(session.clone());
        while fold.at < up_to {
            let page = log.read(&filter, fold.at, SLICE).await?;
            let next = page.next.min(up_to);
            page.events.iter().filter(|event| event.position <= up_to).for_each(|event| fold.event(event));
            if next <= fold.at && page.events.is_empty() {
                break;
            }
            fold.at = fold.at.max(next);
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Builds a fold that is exact at `head`, a slice at a time, the newest first.
async fn build(log: &Log, session: &SessionId, head: Position) -> Result<SnapshotFold, StoreError> {
    let mut fold = BackwardsFold::from(head);
    let mut before = head.next();
    while !fold.done {
        let (log, id) = (log.clone(), session.clone());
        let step = tokio::task::spawn_blocking(move || {
            let events = log.read_before_blocking(&id, before, BUILD_SLICE)?;
            let first = events.first().map(|event| event.position);
            events.iter().rev().for_each(|event| fold.event(event));
            Ok::<_, StoreError>((fold, first))
        });
        let (next, first) = step.await.map_err(|error| StoreError::Io(error.to_string()))??;
        fold = next;
        let Some(first) = first else { break };
        before = first;
    }
    let (log, id) = (log.clone(), session.clone());
    let built = tokio::task::spawn_blocking(move || {
        let base = log.store().session(&id)?.and_then(|entry| entry.base);
        Ok(fold.finish(base.as_deref()))
    });
    built.await.map_err(|error| StoreError::Io(error.to_string()))?
}
