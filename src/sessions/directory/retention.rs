//! Deletion of sessions, and retention.

use super::*;
use plexus_clock::WallClock;

impl Directory {
    /// The number of sessions deleted since the start, as a watch.
    pub fn forgotten(&self) -> watch::Receiver<u64> {
        self.shared.forgotten_count.subscribe()
    }

    /// The sessions deleted since the number was `count`, and the number now. `None` if that was too long ago: the caller has to
    /// list all sessions again.
    pub fn forgotten_since(&self, count: u64) -> Option<(Vec<Arc<Origin>>, u64)> {
        let list = self.shared.forgotten.lock();
        let now = *self.shared.forgotten_count.borrow();
        let fresh = usize::try_from(now.saturating_sub(count)).ok().filter(|fresh| *fresh <= list.len())?;
        Some((list.iter().skip(list.len() - fresh).cloned().collect(), now))
    }

    /// Ends a session and deletes it. It is unlisted at once; once it is marked in the store, clients are told and no crash brings
    /// it back. Then its events are removed in small steps; waits for that.
    ///
    /// # Errors
    /// [`SessionError::NoSession`]; [`SessionError::Storage`]: the session has ended but is not deleted.
    pub async fn forget_session(&self, _permit: &Permit<Admin>, id: &SessionId) -> Result<(), SessionError> {
        self.forget(id).await
    }

    /// As [`forget_session`](Self::forget_session).
    pub(crate) async fn forget(&self, id: &SessionId) -> Result<(), SessionError> {
        let (_, handle) = self.shared.sessions.remove(id).ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let this = self.clone();
        // Spawned, so that it goes on if the client leaves.
        let work = tokio::spawn(async move { this.forget_unlisted(handle).await });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn forget_unlisted(&self, mut handle: SessionHandle) -> Result<(), SessionError> {
        let (id, cwd) = (handle.origin.session_id.clone(), handle.info().cwd.clone());
        self.shared.reopening.remove(&id);
        if let Some(commands) = handle.commands.take() {
            // An error means that the task has ended already.
            let _ = send_command(&commands, |reply| SessionCommand::Close { reply }).await;
        }
        match self.shared.log.forget(&id).await {
            Ok(swept) => {
                self.shared.request_sessions.retain(|_, session| *session != id);
                self.shared.folds.forget(&id);
                self.shared.changes.forget(&id, &cwd).await;
                self.report_forgotten(handle.origin);
                // An error means that the gateway stops; the next one continues.
                let _ = swept.await;
                Ok(())
            }
            Err(error) => {
                self.shared.sessions.insert(id, handle);
                Err(SessionError::of_store(&error))
            }
        }
    }

    /// Reports a deleted session to clients.
    pub(crate) fn report_forgotten(&self, session: Arc<Origin>) {
        let mut list = self.shared.forgotten.lock();
        list.push_back(session);
        if list.len() > FORGOTTEN {
            list.pop_front();
        }
        self.shared.forgotten_count.send_modify(|count| *count += 1);
    }

    /// The clock that tells whether events may be removed for their age.
    pub fn clock(&self) -> &WallClock {
        self.shared.ceilings.clock()
    }

    /// Trusts the wall clock as it is: retention goes on, and today is the day that it shows.
    ///
    /// # Errors
    /// [`SessionError::Storage`]: what was spent today cannot be read.
    pub async fn confirm_clock(&self, _permit: &Permit<Admin>) -> Result<(), SessionError> {
        self.clock().confirm();
        self.begin_day().await
    }

    /// Reads again what was spent today, once the clock is trusted again.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn begin_day(&self) -> Result<(), SessionError> {
        let shared = Arc::clone(&self.shared);
        let begin = move || shared.ceilings.begin(shared.log.store().as_ref(), now());
        blocking(begin).await
    }

    /// Runs retention once: removes events beyond the limits, except those that an open request or an unfinished run needs; at most a
    /// tenth of all events, by their bytes, or one block. While the wall clock is not trusted, no event is too old. Returns the number of
    /// sessions that lost events.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn retain(&self, retention: RetentionRules, now: Timestamp) -> Result<usize, SessionError> {
        let log = &self.shared.log;
        let max_age_ms = retention.max_age_ms.filter(|_| self.clock().doubt().is_none());
        let oldest_kept = max_age_ms.map(|ms| now.plus_millis(-i64::try_from(ms).unwrap_or(i64::MAX)));
        let for_choice = log.clone();
        let chosen = blocking(move || choose(&for_choice, oldest_kept, retention.max_bytes)).await?;
        let mut sessions = 0;
        // One at a time: only one session's fold is in memory.
        for (session, through) in chosen {
            let for_trim = log.clone();
            if let Some(trim) = blocking(move || trim_of(&for_trim, session, through)).await? {
                sessions += log.trim(vec![trim]).await.map_err(|error| SessionError::of_store(&error))?;
            }
        }
        while log.retire(oldest_kept, CLOSED_MAX).await.map_err(|error| SessionError::of_store(&error))? {}
        Ok(sessions)
    }
}

/// The trim of a session: up to where to remove events, and the base that later snapshots need.
fn trim_of(log: &Log, session_id: SessionId, through: Position) -> Result<Option<Trim>, StoreError> {
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
