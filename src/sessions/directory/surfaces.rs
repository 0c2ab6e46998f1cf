//! Surfaces of sessions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::registry::Registry;
use super::{checked_key, send_command};
use crate::session_handle::SessionCommand;
use crate::surfaces::{AskWork, Press, WaitingCall};
use crate::system::blocking;
use crate::{AskCall, Filter, SessionError, SurfaceCall, SurfacePermits};
use plexus_auth::{Permit, Ui};
use plexus_ledger::{Charge, Ledger};
use plexus_protocol::api::surfaces::{Acted, AskView, Drawn, PinnedSurface, SurfaceAction};
use plexus_protocol::{CallDigest, RequestId, SessionId};

/// Maximum time that the agent's message of a call may arrive after the call itself: they use different channels.
const CALL_SEEN: Duration = Duration::from_secs(10);
/// Time between two checks for that message.
const CALL_LOOK: Duration = Duration::from_millis(25);

/// The surfaces that agents draw in their sessions.
#[derive(Clone)]
pub struct DirectorySurfaces {
    pub(super) registry: Arc<Registry>,
    /// The ledger that accounts for the calls that draw.
    pub(super) ledger: Arc<OnceLock<Ledger>>,
}

impl DirectorySurfaces {
    /// Returns the surfaces of a session in their wire form, by name.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn list(&self, id: &SessionId) -> Result<Vec<Box<RawValue>>, SessionError> {
        let handle = self.registry.handle(id)?;
        handle.surfaces.list(&self.registry.log, id).await
    }

    /// Returns the pinned surfaces of the sessions that the filter accepts, by session and name. Reads only sessions that have surfaces.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn pinned(&self, filter: &Filter) -> Result<Vec<PinnedSurface>, SessionError> {
        let log = &self.registry.log;
        let store = log.clone();
        let mut sessions = blocking(move || store.store().sessions_with_surfaces()).await?;
        sessions.sort_unstable();
        let mut pinned = Vec::new();
        for id in sessions {
            let Ok(handle) = self.registry.handle(&id) else { continue };
            if filter.takes(&handle.origin) {
                pinned.extend_from_slice(&handle.surfaces.pinned(log, &id).await?);
            }
        }
        Ok(pinned)
    }

    /// Handles a press on a surface: it answers the surface's open question, or becomes a prompt for the agent. The first press on an
    /// item at a revision wins.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeUnavailable`], [`SessionError::Action`], [`SessionError::QueueFull`],
    /// [`SessionError::Denied`] if the press needs the other right, [`SessionError::Storage`]; those of an answer.
    pub async fn act(
        &self,
        by: SurfacePermits,
        id: &SessionId,
        surface: String,
        request: SurfaceAction,
    ) -> Result<Acted, SessionError> {
        let commands = self.registry.commands(id)?;
        send_command(&commands, |reply| SessionCommand::Act(Box::new(Press { surface, request, by, reply }))).await
    }

    /// Opens a question by a surface: a request that users answer on the surface, or like any other. The same call under the same key
    /// opens it once. `bytes`: the call's length as JSON.
    ///
    /// # Errors
    /// The errors of [`draw`](Self::draw).
    pub async fn ask(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        call: AskCall,
        bytes: usize,
        key: Option<String>,
    ) -> Result<AskView, SessionError> {
        let (key, commands, call) = (checked_key(key)?, self.registry.commands(id)?, Box::new(call));
        let charge = self.charged(id, bytes, false)?;
        let open = |reply| SessionCommand::Ask(Box::new(AskWork::Open { call, key, charge, reply }));
        send_command(&commands, open).await
    }

    /// Returns the outcome of a question by a surface; waits for its end for at most `wait`. An outcome that is returned counts as
    /// delivered to the agent.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::NoRequest`], [`SessionError::RuntimeUnavailable`], [`SessionError::Storage`].
    pub async fn ask_outcome(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        ask: &RequestId,
        wait: Duration,
    ) -> Result<AskView, SessionError> {
        let commands = self.registry.commands(id)?;
        let fetch = |waits| {
            let id = ask.clone();
            send_command(&commands, move |reply| SessionCommand::Ask(Box::new(AskWork::Fetch { id, waits, reply })))
        };
        match tokio::time::timeout(wait, fetch(true)).await {
            Ok(outcome) => outcome,
            Err(_) => fetch(false).await,
        }
    }

    /// Waits until the session's agent makes a call of one of its tools, for at most ten seconds.
    ///
    /// # Errors
    /// [`SessionError::NoSuchCall`] if it does not; [`SessionError::NoSession`], [`SessionError::RuntimeUnavailable`].
    pub async fn calls_tool(&self, id: &SessionId, call: &CallDigest) -> Result<(), SessionError> {
        let end = Instant::now() + CALL_SEEN;
        loop {
            self.registry.commands(id)?;
            if self.registry.handle(id)?.view.load().own_calls.contains(call) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(SessionError::NoSuchCall);
            }
            tokio::time::sleep(CALL_LOOK).await;
        }
    }

    /// Charges a call to the session's account; a call that `only_frees` a surface has memory reserved for it.
    fn charged(&self, id: &SessionId, bytes: usize, only_frees: bool) -> Result<Option<Charge>, SessionError> {
        let Some(ledger) = self.ledger.get() else { return Ok(None) };
        let runtime = self.registry.handle(id)?.origin.runtime_id.clone();
        let account = ledger.session(id.as_str(), runtime.as_str());
        let charge = match only_frees {
            true => account.charge(bytes).map_err(SessionError::OverLimit),
            false => account.charge_long_lived(bytes).map_err(SessionError::SurfacesFull),
        };
        charge.map(Some)
    }

    /// Draws in a session. Waits until the change is stored, not for any screen; calls that arrive faster than ten a second are merged
    /// into one change. The same call under the same `key` (1 to [`KEY_MAX`](crate::KEY_MAX) visible ASCII characters) draws nothing and
    /// returns its earlier result, also across restarts; a session remembers the last 64 keys. `bytes`: the call's length as JSON.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeUnavailable`], [`SessionError::Surface`], [`SessionError::DrawsTooFast`],
    /// [`SessionError::SurfacesFull`], [`SessionError::BadKey`], [`SessionError::Storage`].
    pub async fn draw(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        call: SurfaceCall,
        bytes: usize,
        key: Option<String>,
    ) -> Result<Drawn, SessionError> {
        let key = checked_key(key)?;
        let commands = self.registry.commands(id)?;
        let charge = self.charged(id, bytes, call.only_frees())?;
        send_command(&commands, |reply| SessionCommand::Draw(Box::new(WaitingCall { call, key, bytes, charge, reply })))
            .await
    }
}
