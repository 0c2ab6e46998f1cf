//! Surfaces of sessions.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{Directory, checked_key, send_command};
use crate::auth::{Permit, Ui};
use crate::sessions::session::SessionCommand;
use crate::sessions::surfaces::{AskWork, Press, WaitingCall};
use crate::sessions::{Acted, AskCall, AskView, Drawn, Filter, Presser, SessionError, SurfaceCall};
use plexus_protocol::{RequestId, RequestState, SessionId};
use plexus_surfaces::ActionRequest;

impl Directory {
    /// The surfaces of a session in their wire form, by name.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn surfaces(&self, id: &SessionId) -> Result<Vec<Box<RawValue>>, SessionError> {
        let handle = self.handle(id)?;
        handle.surfaces.list(&self.shared.log, id, handle.commands.is_some()).await
    }

    /// Presses something on a surface: it answers the question that is open on it, or the agent is told by a prompt. The first
    /// press of what a screen shows wins.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeGone`], [`SessionError::Action`], [`SessionError::QueueFull`],
    /// [`SessionError::Denied`] if the press needs the other right, [`SessionError::Storage`]; those of an answer.
    pub async fn act(
        &self,
        by: Presser,
        id: &SessionId,
        surface: String,
        request: ActionRequest,
    ) -> Result<Acted, SessionError> {
        let commands = self.commands(id)?;
        send_command(&commands, |reply| SessionCommand::Act(Box::new(Press { surface, request, by, reply }))).await
    }

    /// Opens a question by a surface: a request that people answer on the surface, or like any other. The same call under the
    /// same key opens it once.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    pub async fn ask(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        call: AskCall,
        key: Option<String>,
    ) -> Result<AskView, SessionError> {
        let (key, commands, call) = (checked_key(key)?, self.commands(id)?, Box::new(call));
        send_command(&commands, |reply| SessionCommand::Ask(Box::new(AskWork::Open { call, key, reply }))).await
    }

    /// What became of a question by a surface; waits for its end for at most `wait`. Once it has ended, the agent has it by this.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::NoRequest`], [`SessionError::RuntimeGone`], [`SessionError::Storage`].
    pub async fn ask_outcome(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        ask: &RequestId,
        wait: Duration,
    ) -> Result<AskView, SessionError> {
        let until = tokio::time::Instant::now() + wait;
        // Before it is looked at: what comes after that is not missed.
        let news = self.shared.log.watch_for(&Filter::session(id.clone()));
        loop {
            let (commands, ask) = (self.commands(id)?, ask.clone());
            let fetch = |reply| SessionCommand::Ask(Box::new(AskWork::Fetch { id: ask, reply }));
            let view = send_command(&commands, fetch).await?;
            if view.state != RequestState::Open || tokio::time::timeout_at(until, news.changed()).await.is_err() {
                return Ok(view);
            }
        }
    }

    /// Draws in a session. Waits until it is stored, not for any screen; of calls that come faster than ten a second, several
    /// become one change. The same call under the same `key` (1 to [`KEY_MAX`](super::KEY_MAX) visible ASCII characters) draws
    /// nothing and returns what it did before, also across restarts; a session remembers the last 64 keys. `bytes`: the call's
    /// length as JSON.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeGone`], [`SessionError::Surface`], [`SessionError::DrawsTooFast`],
    /// [`SessionError::OverLimit`], [`SessionError::BadKey`], [`SessionError::Storage`].
    pub async fn draw(
        &self,
        _permit: &Permit<Ui>,
        id: &SessionId,
        call: SurfaceCall,
        bytes: usize,
        key: Option<String>,
    ) -> Result<Drawn, SessionError> {
        let key = checked_key(key)?;
        let commands = self.commands(id)?;
        let runtime = self.handle(id)?.origin.runtime_id.clone();
        let account = self.shared.ledger.get().map(|ledger| ledger.session(id.as_str(), runtime.as_str()));
        let charge = account.map(|account| account.charge(bytes)).transpose().map_err(SessionError::OverLimit)?;
        send_command(&commands, |reply| SessionCommand::Draw(Box::new(WaitingCall { call, key, bytes, charge, reply })))
            .await
    }
}
