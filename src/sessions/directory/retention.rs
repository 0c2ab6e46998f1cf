//! Deletion of sessions, and retention.

use super::*;
use crate::snapshot::SnapshotFold;
use plexus_clock::WallClock;

/// Maximum number of blocks in one read of retention.
const BLOCKS: usize = 1000;
/// Maximum number of closed requests in the store; retention removes the oldest beyond it.
const CLOSED_MAX: usize = 100_000;

/// One round of retention removes at most this part (one tenth) of the stored bytes, so that a mistake is noticed before everything is
/// removed.
const ROUND_SHARE: u64 = 10;

impl Directory {
    /// Ends a session and deletes it. The session is unlisted at once; once it is marked as deleted in the store, clients are notified
    /// and no crash restores it. Then its events are removed in small steps; this function waits for that.
    ///
    /// # Errors
    /// [`SessionError::NoSession`]; [`SessionError::Storage`]: the session has ended but is not deleted.
    pub async fn delete_session(&self, _permit: &Permit<Admin>, id: &SessionId) -> Result<(), SessionError> {
        self.delete(id).await
    }

    /// Like [`delete_session`](Self::delete_session), without a permit.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), SessionError> {
        let (_, handle) =
            self.shared.registry.sessions.remove(id).ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let this = self.clone();
        // Spawned, so that it continues if the client disconnects.
        let work = tokio::spawn(async move { this.delete_unlisted(handle).await });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn delete_unlisted(&self, mut handle: SessionHandle) -> Result<(), SessionError> {
        let (id, cwd) = (handle.origin.session_id.clone(), handle.info().cwd.clone());
        self.shared.reopening.remove(&id);
        if let Some(commands) = handle.commands.take() {
            // An error means that the task has ended already.
            let _ = send_command(&commands, |reply| SessionCommand::Close { reply }).await;
        }
        match self.shared.registry.log.forget(&id).await {
            Ok(swept) => {
                self.shared.registry.request_sessions.retain(|_, session| *session != id);
                self.shared.snapshots.delete(&id);
                self.shared.changes.changes.forget(&id, &cwd).await;
                self.shared.deleted.add(handle.origin);
                // An error means that the gateway stops; the next one continues.
                let _ = swept.await;
                Ok(())
            }
            Err(error) => {
                self.shared.registry.sessions.insert(id, handle);
                Err(SessionError::from_store(&error))
            }
        }
    }

    /// Returns the clock that decides whether events are old enough to be removed.
    pub fn clock(&self) -> &WallClock {
        self.shared.ceilings.book.clock()
    }

    /// Trusts the wall clock as it is: retention continues, and today is the day of the clock.
    ///
    /// # Errors
    /// [`SessionError::Storage`]: the spending of today cannot be read.
    pub async fn confirm_clock(&self, _permit: &Permit<Admin>) -> Result<(), SessionError> {
        self.clock().confirm();
        self.begin_day().await
    }

    /// Reads the spending of today again, once the clock is trusted again.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn begin_day(&self) -> Result<(), SessionError> {
        let (log, book) = (self.log().clone(), Arc::clone(&self.shared.ceilings.book));
        let begin = move || book.begin(log.store().as_ref(), now());
        blocking(begin).await
    }

    /// Runs retention once: removes events beyond the limits, except those that an open request or an unfinished run needs; at most a
    /// tenth of all events, by their bytes, or one block. While the wall clock is not trusted, no event is too old. Returns the number of
    /// sessions that lost events.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn retain(&self, retention: RetentionRules, now: Timestamp) -> Result<usize, SessionError> {
        let log = &self.shared.registry.log;
        let max_age_ms = retention.max_age_ms.filter(|_| self.clock().doubt().is_none());
        let oldest_retained = max_age_ms.map(|ms| now.plus_millis(-i64::try_from(ms).unwrap_or(i64::MAX)));
        let log_to_choose = log.clone();
        let chosen = blocking(move || choose(&log_to_choose, oldest_retained, retention.max_bytes)).await?;
        let mut sessions = 0;
        // One at a time: only one session's fold is in memory.
        for (session, through) in chosen {
            let log_to_trim = log.clone();
            if let Some(trim) = blocking(move || trim(&log_to_trim, session, through)).await? {
                sessions += log.trim(vec![trim]).await.map_err(|error| SessionError::from_store(&error))?;
            }
        }
        while log.retire(oldest_retained, CLOSED_MAX).await.map_err(|error| SessionError::from_store(&error))? {}
        Ok(sessions)
    }
}

/// Returns the trim of a session: the position up to which events are removed, and the base that later snapshots need.
fn trim(log: &Log, session_id: SessionId, through: Position) -> Result<Option<Trim>, StoreError> {
    let Some(entry) = log.store().session(&session_id)? else { return Ok(None) };
    let mut fold = entry.base.as_deref().map_or_else(SnapshotFold::default, SnapshotFold::from_base);
    let filter = Filter::session(session_id.clone());
    let mut after = entry.trimmed;
    while after < through {
        let page = log.read_blocking(&filter, after, PAGE)?;
        page.events.iter().filter(|event| event.position <= through).for_each(|event| fold.event(event));
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    Ok(Some(Trim { session_id, through, base: Some(fold.base()) }))
}

/// Returns the sessions that retention trims, and up to which position: the oldest blocks of all sessions are removed first. Events that
/// an unfinished run or an open request needs stay, and all later events of that session.
fn choose(
    log: &Log,
    oldest_retained: Option<Timestamp>,
    max_bytes: Option<u64>,
) -> Result<BTreeMap<SessionId, Position>, StoreError> {
    let store = log.store();
    let stored = store.usage()?.event_bytes;
    let mut excess = max_bytes.map_or(0, |max| stored.saturating_sub(max));
    let mut allowance = stored / ROUND_SHARE;
    let (mut chosen, mut retained) = (BTreeMap::new(), HashMap::new());
    let mut after = Position::START;
    loop {
        let blocks = store.oldest(after, BLOCKS)?;
        let Some(last) = blocks.last() else { return Ok(chosen) };
        after = last.first;
        for block in blocks {
            if excess == 0 && oldest_retained.is_none_or(|oldest| block.at >= oldest) {
                return Ok(chosen);
            }
            let retain_from = match retained.get(&block.session_id) {
                Some(position) => *position,
                None => {
                    let entry = store.session(&block.session_id)?;
                    let retain_from = entry.map_or(Some(Position::START), |entry| entry.row.spare_from);
                    retained.insert(block.session_id.clone(), retain_from);
                    retain_from
                }
            };
            if retain_from.is_some_and(|from| block.last >= from) {
                continue;
            }
            let bytes = block.bytes as u64;
            if bytes > allowance && !chosen.is_empty() {
                return Ok(chosen);
            }
            (excess, allowance) = (excess.saturating_sub(bytes), allowance.saturating_sub(bytes));
            chosen.insert(block.session_id, block.last);
        }
    }
}
