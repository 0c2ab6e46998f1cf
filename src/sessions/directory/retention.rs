//! What is forgotten: sessions that are deleted, and what is older or more than is kept.

use super::*;

impl Directory {
    /// Told (how many there were ever) whenever a session is forgotten.
    pub fn forgotten(&self) -> watch::Receiver<u64> {
        self.shared.forgot.subscribe()
    }

    /// The sessions that were forgotten since there were so many, and how many there are now; `None` if that was too long
    /// ago to tell, and who asks has to list them anew.
    pub fn forgotten_since(&self, many: u64) -> Option<(Vec<Arc<Origin>>, u64)> {
        let list = self.shared.forgotten.lock();
        let now = *self.shared.forgot.borrow();
        let fresh = usize::try_from(now.saturating_sub(many)).ok().filter(|fresh| *fresh <= list.len())?;
        Some((list.iter().skip(list.len() - fresh).cloned().collect(), now))
    }

    /// Ends a session and forgets it, bytes and all. From the first moment nobody can reach it; once it is marked in the
    /// store everybody is told, and no crash brings it back; then its bytes go in small steps, which this waits for.
    ///
    /// # Errors
    /// [`SessionError::NoSession`]; [`SessionError::Storage`]: the session has ended and is still there.
    pub async fn forget_session(&self, _permit: &Permit<Admin>, id: &SessionId) -> Result<(), SessionError> {
        self.forget(id).await
    }

    /// As [`forget_session`](Self::forget_session).
    pub(in crate::sessions) async fn forget(&self, id: &SessionId) -> Result<(), SessionError> {
        let (_, handle) = self.shared.sessions.remove(id).ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let this = self.clone();
        // Not cut short by a client that leaves: half deleted is nobody's wish.
        let work = tokio::spawn(async move { this.forget_unlisted(handle).await });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn forget_unlisted(&self, mut handle: SessionHandle) -> Result<(), SessionError> {
        let id = handle.origin.session_id.clone();
        self.shared.reopening.remove(&id);
        if let Some(wants) = handle.wants.take() {
            // Its task may be ending by itself just now.
            let _ = ask(&wants, |reply| SessionCommand::Close { reply }).await;
        }
        match self.shared.log.forget(&id).await {
            Ok(swept) => {
                self.shared.asked.retain(|_, session| *session != id);
                self.shared.folds.forget(&id);
                self.is_forgotten(handle.origin);
                // A gateway that stops goes on with it after its next start.
                let _ = swept.await;
                Ok(())
            }
            Err(error) => {
                self.shared.sessions.insert(id, handle);
                Err(storage(&error))
            }
        }
    }

    /// Tells of it.
    pub(in crate::sessions) fn is_forgotten(&self, session: Arc<Origin>) {
        let mut list = self.shared.forgotten.lock();
        list.push_back(session);
        if list.len() > FORGOTTEN {
            list.pop_front();
        }
        self.shared.forgot.send_modify(|count| *count += 1);
    }

    /// One round of retention: removes what is too old or too much, never what an open request or an unfinished run
    /// still needs. Returns how many sessions lost events.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn retain(&self, retention: RetentionRules, now: Timestamp) -> Result<usize, SessionError> {
        let log = &self.shared.log;
        let oldest_kept = retention.max_age_ms.map(|ms| now.plus_millis(-i64::try_from(ms).unwrap_or(i64::MAX)));
        let for_choice = log.clone();
        let chosen = blocking(move || choose(&for_choice, oldest_kept, retention.max_bytes)).await?;
        let mut sessions = 0;
        // One at a time: what is folded of one session is let go before the next.
        for (session, through) in chosen {
            let for_trim = log.clone();
            if let Some(trim) = blocking(move || trim_of(&for_trim, session, through)).await? {
                sessions += log.trim(vec![trim]).await.map_err(|error| storage(&error))?;
            }
        }
        while log.retire(oldest_kept, CLOSED_MAX).await.map_err(|error| storage(&error))? {}
        Ok(sessions)
    }
}

/// What to remove of a session, and what late readers still need of it.
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
