//! The folds of sessions that somebody asked for, shared by all who ask: each is brought up to date from the log's end, by
//! one task, however many wait for it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::snapshot::{BackwardsFold, SnapshotFold};
use super::{Filter, Log};
use plexus_protocol::{Position, SessionId};
use plexus_store::{ReadLimit, StoreError};

/// Sessions whose fold is kept; beyond it the one that was asked for longest ago goes.
const FOLDS: usize = 256;
/// Bytes of all folds kept, about; beyond it the one that was asked for longest ago goes.
const FOLDS_BYTES: usize = 48 << 20;
/// Folds that are made anew at once; others wait.
const COLD: usize = 2;
/// What is read of a session in one go while its fold is made, on a thread that may block.
const COLD_SLICE: ReadLimit = ReadLimit { events: 16 << 10, bytes: 2 << 20 };
/// What is read in one go while a fold is brought up to date.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };

/// A session's fold, once it was made.
#[derive(Default)]
pub(super) struct CachedFold {
    fold: Option<SnapshotFold>,
    /// What retention had removed when it was made.
    trimmed: Position,
}

impl CachedFold {
    /// The fold; `None` before it was brought up to date.
    pub(super) fn fold(&mut self) -> Option<&mut SnapshotFold> {
        self.fold.as_mut()
    }
}

/// All of them. Cheap to clone.
#[derive(Clone)]
pub(super) struct SnapshotCache {
    table: Arc<Mutex<Table>>,
    cold: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    slots: HashMap<SessionId, Slot>,
    bytes: usize,
    /// Counts what is asked for.
    asked: u64,
}

struct Slot {
    shared: Arc<tokio::sync::Mutex<CachedFold>>,
    used: u64,
    bytes: usize,
}

impl Default for SnapshotCache {
    fn default() -> Self {
        Self { table: Arc::default(), cold: Arc::new(Semaphore::new(COLD)) }
    }
}

impl SnapshotCache {
    /// The fold of a session, with its events up to `upto` at least, held until the guard is dropped. Whoever stops
    /// waiting leaves the work that was begun to the next.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub(super) async fn fold_up_to(
        &self,
        log: &Log,
        session: &SessionId,
        upto: Position,
    ) -> Result<OwnedMutexGuard<CachedFold>, StoreError> {
        let guard = self.slot(session).lock_owned().await;
        self.held_upto(guard, log, session, upto).await
    }

    /// The same, of a fold that is held already.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub(super) async fn held_upto(
        &self,
        mut guard: OwnedMutexGuard<CachedFold>,
        log: &Log,
        session: &SessionId,
        upto: Position,
    ) -> Result<OwnedMutexGuard<CachedFold>, StoreError> {
        let fresh = guard.fold.as_ref().is_some_and(|fold| fold.at >= upto) && guard.trimmed == log.trimmed(session);
        if fresh {
            return Ok(guard);
        }
        let (folds, log, session) = (self.clone(), log.clone(), session.clone());
        let work = tokio::spawn(async move {
            let outcome = folds.bring(&mut guard, &log, &session, upto).await;
            folds.weigh(&session, guard.fold.as_ref().map_or(0, SnapshotFold::weight));
            outcome.map(|()| guard)
        });
        work.await.map_err(|error| StoreError::Io(error.to_string()))?
    }

    /// Lets a session's fold go.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut table = self.table();
        if let Some(slot) = table.slots.remove(session) {
            table.bytes -= slot.bytes;
        }
    }

    /// How many there are, and their bytes.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let table = self.table();
        (table.slots.len(), table.bytes)
    }

    fn table(&self) -> parking_lot::MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn slot(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<CachedFold>> {
        let mut table = self.table();
        table.asked += 1;
        let used = table.asked;
        let slot =
            table.slots.entry(session.clone()).or_insert_with(|| Slot { shared: Arc::default(), used, bytes: 0 });
        slot.used = used;
        Arc::clone(&slot.shared)
    }

    /// Notes what a fold takes, and lets others go where that is too much.
    fn weigh(&self, session: &SessionId, bytes: usize) {
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

    async fn bring(
        &self,
        shared: &mut CachedFold,
        log: &Log,
        session: &SessionId,
        upto: Position,
    ) -> Result<(), StoreError> {
        let trimmed = log.trimmed(session);
        if shared.fold.is_none() || shared.trimmed != trimmed {
            // What was removed is shown to nobody any more.
            shared.fold = None;
            let _turn = self.cold.acquire().await;
            shared.fold = Some(cold(log, session, upto).await?);
            shared.trimmed = trimmed;
        }
        let Some(fold) = &mut shared.fold else { return Ok(()) };
        let filter = Filter::session(session.clone());
        while fold.at < upto {
            let page = log.read(&filter, fold.at, SLICE).await?;
            let next = page.next.min(upto);
            page.events.iter().filter(|event| event.position <= upto).for_each(|event| fold.event(event));
            if next <= fold.at && page.events.is_empty() {
                break;
            }
            fold.at = fold.at.max(next);
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Makes a fold, exact at `head`: a slice at a time, the newest first.
async fn cold(log: &Log, session: &SessionId, head: Position) -> Result<SnapshotFold, StoreError> {
    let mut making = BackwardsFold::from(head);
    let mut before = head.next();
    while !making.done {
        let (of, id) = (log.clone(), session.clone());
        let step = tokio::task::spawn_blocking(move || {
            let events = of.read_before_blocking(&id, before, COLD_SLICE)?;
            let first = events.first().map(|event| event.position);
            events.iter().rev().for_each(|event| making.event(event));
            Ok::<_, StoreError>((making, first))
        });
        let (more, first) = step.await.map_err(|error| StoreError::Io(error.to_string()))??;
        making = more;
        let Some(first) = first else { break };
        before = first;
    }
    let (of, id) = (log.clone(), session.clone());
    let made = tokio::task::spawn_blocking(move || {
        let base = of.store().session(&id)?.and_then(|entry| entry.base);
        Ok(making.finish(base.as_deref()))
    });
    made.await.map_err(|error| StoreError::Io(error.to_string()))?
}
