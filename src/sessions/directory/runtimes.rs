//! Starting, stopping and restarting runtimes.

use super::opening::Reopening;
use super::*;

impl Directory {
    /// Returns all runtimes, by identifier.
    pub fn runtimes(&self) -> Vec<Arc<RuntimeInfo>> {
        let mut all: Vec<_> = self.shared.registry.runtimes.iter().map(|link| link.info()).collect();
        all.sort_by(|a, b| a.runtime_id.cmp(&b.runtime_id));
        all
    }

    /// Returns one runtime.
    pub fn runtime(&self, id: &RuntimeId) -> Option<Arc<RuntimeInfo>> {
        self.shared.registry.runtimes.get(id).map(|link| link.info())
    }

    /// Returns a watch of a counter that is incremented whenever the state of a runtime changes.
    pub fn runtimes_changed(&self) -> watch::Receiver<u64> {
        self.shared.runtime_changes.subscribe()
    }

    /// Starts a runtime and returns at once; [`runtime`](Self::runtime) returns its progress. Nothing is started if its folder or its
    /// program does not exist.
    ///
    /// # Errors
    /// [`SessionError::RuntimeExists`], [`SessionError::Invalid`].
    pub async fn start_runtime(
        &self,
        _permit: &Permit<Admin>,
        spec: RuntimeSpec,
    ) -> Result<Arc<RuntimeInfo>, SessionError> {
        self.shared.launcher.check_start(&spec).await.map_err(SessionError::Invalid)?;
        self.launch(spec)
    }

    /// Like [`start_runtime`](Self::start_runtime), for the gateway's own configuration.
    ///
    /// # Errors
    /// The errors of [`start_runtime`](Self::start_runtime).
    pub fn launch(&self, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, SessionError> {
        self.launch_and_reopen(spec, Reopening::Left)
    }

    /// Like [`launch`](Self::launch), for a server that others share, and that holds its open sessions in memory: of the sessions that
    /// earlier gateways left there, those are reopened that have pending work, and those that the server reports as open.
    /// # Errors
    /// The errors of [`start_runtime`](Self::start_runtime).
    pub fn launch_shared(&self, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, SessionError> {
        self.launch_and_reopen(spec, Reopening::Pending)
    }

    fn launch_and_reopen(&self, spec: RuntimeSpec, which: Reopening) -> Result<Arc<RuntimeInfo>, SessionError> {
        let id = spec.id.clone();
        let link = match self.shared.registry.runtimes.entry(id.clone()) {
            dashmap::Entry::Occupied(there)
                if there.get().info().state != RuntimeState::Exited || there.get().info().unattended() =>
            {
                return Err(SessionError::RuntimeExists(id));
            }
            there => {
                let link = self.shared.launcher.launch(spec.clone()).map_err(SessionError::Invalid)?;
                if let dashmap::Entry::Occupied(before) = &there {
                    link.stderr_log().prepend(before.get().stderr_log());
                }
                there.insert(link.clone());
                self.shared.registry.specs.insert(id.clone(), spec);
                link
            }
        };
        self.watch_runtime(id, link.clone(), which);
        Ok(link.info())
    }

    /// Stops a runtime for good (stdin closed, TERM, KILL) and unlists it. Returns once it has ended.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`].
    pub async fn stop_runtime(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<(), SessionError> {
        let link = self.shared.registry.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        stop_and_wait(&link).await;
        self.shared.launcher.clear(id).await;
        if self.shared.registry.runtimes.remove_if(id, |_, there| there.info().state == RuntimeState::Exited).is_some()
        {
            self.shared.registry.specs.remove(id);
            let is_in_runtime = |session: &SessionId| {
                self.shared.registry.sessions.get(session).is_none_or(|handle| handle.origin.runtime_id == *id)
            };
            self.shared.reopening.retain(|session| !is_in_runtime(session));
            let reason = "the endpoint was detached: how this ended is unknown";
            self.abandon_sessions(reason, |runtime| runtime == id).await;
        }
        self.shared.runtime_changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Releases an endpoint that has ended, for the gateway itself, and unlists it. Its sessions end; their runs and requests stay open
    /// for a minute and continue if the endpoint is launched again by then under the same identifier.
    pub async fn release_runtime(&self, id: &RuntimeId) {
        let Some(link) = self.shared.registry.runtimes.get(id).map(|link| link.clone()) else { return };
        link.release();
        link.ended().await;
        // A launch that follows finds the sessions to reopen among those that have ended.
        let runs = |handle: &SessionHandle| handle.origin.runtime_id == *id && handle.commands.is_some();
        for _ in 0..HANDOVER_TRIES {
            if !self.shared.registry.sessions.iter().any(|handle| runs(&handle)) {
                break;
            }
            tokio::time::sleep(HANDOVER_WAIT).await;
        }
        if self.shared.registry.runtimes.remove_if(id, |_, there| there.info().state == RuntimeState::Exited).is_some()
        {
            self.shared.registry.specs.remove(id);
            self.abandon_unattached_later();
        }
        self.shared.runtime_changes.send_modify(|count| *count += 1);
    }

    /// Stops a runtime and starts it again with the same settings. Its sessions are reopened once it is ready; their runs and open
    /// requests end.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::Invalid`], [`SessionError::Stopping`].
    pub async fn restart_runtime(
        &self,
        _permit: &Permit<Admin>,
        id: &RuntimeId,
    ) -> Result<Arc<RuntimeInfo>, SessionError> {
        let (this, id) = (self.clone(), id.clone());
        // Spawned, so that it continues if the client disconnects.
        let work = tokio::spawn(async move {
            let _alone = this.shared.restarting.lock().await;
            let link = this.shared.registry.runtimes.get(&id).map(|link| link.clone());
            let Some(link) = link else { return Err(SessionError::NoRuntime(id)) };
            let spec = this.shared.registry.specs.get(&id).map(|spec| spec.clone()).or_else(|| link.spec().cloned());
            let Some(spec) = spec else {
                let reason = "its start settings are unknown: stop it, and start it again";
                return Err(SessionError::Invalid(reason.into()));
            };
            let reopening = |session: &SessionId| this.shared.reopening.contains(session);
            let is_live = |handle: &SessionHandle| {
                handle.origin.runtime_id == id && (handle.commands.is_some() || reopening(&handle.origin.session_id))
            };
            let handles = this.shared.registry.sessions.iter();
            let live: Vec<SessionId> =
                handles.filter(|handle| is_live(handle)).map(|handle| handle.origin.session_id.clone()).collect();
            stop_and_wait(&link).await;
            this.shared.launcher.clear(&id).await;
            let info = this.launch(spec)?;
            this.reopen_later(live);
            Ok(info)
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    /// Returns the last lines of a runtime's stderr, the oldest first.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`].
    pub fn stderr_log(
        &self,
        _permit: &Permit<Admin>,
        id: &RuntimeId,
    ) -> Result<Vec<plexus_protocol::api::runtimes::StderrLine>, SessionError> {
        let link = self.shared.registry.runtimes.get(id).ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        Ok(link.stderr_log().lines())
    }
}
