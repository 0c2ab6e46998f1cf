//! The requests of agents.

use std::time::{Duration, Instant};

use super::registry::Registry;
use super::*;
use crate::answer_key::AnswerKey;
use crate::state;

/// Maximum number of requests on one page of a listing.
pub const LISTED: usize = 1000;
/// Maximum number of requests read for one page of a listing, including those that the filter drops; then the page ends, full or not.
const LISTING_READS: usize = 16 * LISTED;
/// Number of rows in one read of a listing.
const LISTING_ROWS: usize = 32;
/// Maximum time that an answer waits for the session of its request while that session is being reopened.
const REATTACHING: Duration = Duration::from_secs(5);

/// The requests of all sessions: listed and answered.
pub struct DirectoryRequests {
    pub(super) registry: Arc<Registry>,
}

impl DirectoryRequests {
    /// Returns the open requests that the filter accepts, oldest first. The result is never older than the log.
    pub fn open(&self, filter: &Filter) -> Vec<Arc<Request>> {
        let mut open: Vec<_> =
            self.registry.handles(filter).flat_map(|handle| handle.view.load().open.clone()).collect();
        open.sort_by_key(|request| request.opened_at);
        open
    }

    /// Answers a request. The first valid answer wins; it is on disk before any client sees it. `key`: 1 to [`KEY_MAX`](crate::KEY_MAX)
    /// visible ASCII characters; the same answer of the same device under the same key gets the same receipt again.
    ///
    /// # Errors
    /// [`SessionError::BadKey`], [`SessionError::KeyReused`] (another answer under the key won),
    /// [`SessionError::AlreadyResolved`] with the winner's receipt, [`SessionError::Closed`], [`SessionError::NoRequest`],
    /// [`SessionError::RiskTooHigh`], [`SessionError::StaleDigest`], [`SessionError::BadAnswer`], [`SessionError::Storage`].
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, SessionError> {
        let (by, up_to) = (permit.device().resolver(), permit.device().grant.approve_up_to);
        let key = checked_key(key)?.map(|key| AnswerKey::new(key, by.device_id.clone(), &answer));
        let until = Instant::now() + REATTACHING;
        let outcome = loop {
            let session = self.registry.request_sessions.get(id).map(|session| session.clone());
            let outcome = match session.map(|session| self.registry.commands(&session)) {
                Some(Ok(commands)) => {
                    let (id, key) = (id.clone(), key.clone());
                    let answer = Box::new(answer.clone());
                    let at = Instant::now();
                    let by = by.clone();
                    let command = |reply| SessionCommand::Answer { id, answer, by, up_to, key, at, reply };
                    send_command(&commands, command).await
                }
                Some(Err(error)) => Err(error),
                None => Err(SessionError::NoRequest(id.clone())),
            };
            // The request is not open in any task: it closed before, or its session is being reopened, as after a start of the gateway.
            match outcome {
                Err(
                    error @ (SessionError::NoRequest(_) | SessionError::RuntimeUnavailable(_) | SessionError::Stopping),
                ) => match self.late(id, key.clone(), error).await {
                    Err(SessionError::RuntimeUnavailable(_) | SessionError::Stopping)
                        if self.takes_answers(id, until).await => {}
                    late => break late,
                },
                outcome => break outcome,
            }
        };
        match outcome {
            Err(SessionError::AlreadyResolved(receipt)) if receipt.won => Ok(*receipt),
            Err(SessionError::AlreadyResolved(receipt)) => {
                metrics().double_answers.inc();
                Err(SessionError::AlreadyResolved(receipt))
            }
            outcome => outcome,
        }
    }

    /// Waits until the session of a request has a task; returns `false` if it has none by `until`.
    async fn takes_answers(&self, id: &RequestId, until: Instant) -> bool {
        loop {
            let session = self.registry.request_sessions.get(id).map(|session| session.clone());
            let commands = session.and_then(|session| self.registry.commands(&session).ok());
            if commands.is_some_and(|commands| !commands.is_closed()) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(HANDOVER_WAIT).await;
        }
    }

    /// Returns the result of an answer to a request that no task has: its receipt as an error, or `error` if the request is still open.
    async fn late(&self, id: &RequestId, key: Option<AnswerKey>, error: SessionError) -> Result<Receipt, SessionError> {
        let (log, wanted) = (self.registry.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&wanted)).await?;
        let row = row.ok_or_else(|| SessionError::NoRequest(id.clone()))?;
        let request: Request =
            serde_json::from_slice(&row.body).map_err(|error| SessionError::Storage(error.to_string()))?;
        match request.receipt {
            Some(receipt) => Err(state::late(receipt, row.answer_key.as_deref(), key.as_ref())),
            None => Err(if matches!(error, SessionError::NoRequest(_)) { SessionError::Stopping } else { error }),
        }
    }

    /// Returns requests that the filter accepts, in brief form, newest first; optionally only those of one state, of one session, and
    /// before number `before`. At most `limit`, and at most [`LISTED`]. Also returns the next `before` if there may be more.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn list(
        &self,
        filter: &Filter,
        state: Option<RequestState>,
        session: Option<&SessionId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<Request>, Option<u64>), SessionError> {
        let (log, filter, session) = (self.registry.log.clone(), filter.clone(), session.cloned());
        let limit = limit.clamp(1, LISTED);
        blocking(move || {
            let (mut found, mut before, mut read) = (Vec::new(), before, 0);
            loop {
                let query = RequestQuery { state, session: session.as_ref(), before, limit: LISTING_ROWS };
                let page = log.store().requests(query)?;
                for (no, row) in &page.rows {
                    if found.len() >= limit || read >= LISTING_READS {
                        return Ok((found, before));
                    }
                    (before, read) = (Some(*no), read + 1);
                    let Ok(request) = serde_json::from_slice::<Request>(&row.body) else { continue };
                    let origin = Origin {
                        session_id: request.session_id.clone(),
                        runtime_id: request.runtime_id.clone(),
                        dialect: "".into(),
                    };
                    if filter.takes(&origin) {
                        // A page holds the brief form, however long the request is.
                        let brief = match request.brief() {
                            Cow::Owned(brief) => Some(brief),
                            Cow::Borrowed(_) => None,
                        };
                        found.push(brief.unwrap_or(request));
                    }
                }
                before = page.next;
                if before.is_none() || found.len() >= limit {
                    return Ok((found, before));
                }
            }
        })
        .await
    }

    /// Returns a request by identifier, open or closed.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn get(&self, id: &RequestId) -> Result<Option<Request>, SessionError> {
        let (log, id) = (self.registry.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&id)).await?;
        Ok(row.and_then(|row| serde_json::from_slice(&row.body).ok()))
    }

    /// Returns the session and runtime of a request, to check the permit to answer it.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn target(&self, id: &RequestId) -> Result<Option<(SessionId, RuntimeId)>, SessionError> {
        let session = self.registry.request_sessions.get(id).map(|session| session.clone());
        let handle = session.and_then(|session| self.registry.sessions.get(&session).map(|handle| handle.clone()));
        if let Some(handle) = handle {
            return Ok(Some((handle.origin.session_id.clone(), handle.origin.runtime_id.clone())));
        }
        Ok(self.get(id).await?.map(|request| (request.session_id, request.runtime_id)))
    }
}
