//! The live sessions and runtimes, which every part of the directory reads.

use dashmap::DashMap;

use super::*;
use crate::projects::Projects;

/// All sessions and runtimes by identifier.
pub(super) struct Registry {
    pub(super) log: Log,
    pub(super) sessions: DashMap<SessionId, SessionHandle>,
    /// The sessions of the open requests.
    pub(super) request_sessions: Arc<DashMap<RequestId, SessionId>>,
    pub(super) runtimes: DashMap<RuntimeId, RuntimeLink>,
    /// The settings that each runtime was started with, for restarts.
    pub(super) specs: DashMap<RuntimeId, RuntimeSpec>,
    pub(super) projects: Projects,
}

impl Registry {
    pub(super) fn new(log: Log) -> Self {
        Self {
            log,
            sessions: DashMap::new(),
            request_sessions: Arc::default(),
            runtimes: DashMap::new(),
            specs: DashMap::new(),
            projects: Projects::default(),
        }
    }

    /// Returns one session in the form that clients see.
    pub(super) fn session(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        self.sessions.get(id).map(|handle| Arc::new(self.session_info(&handle)))
    }

    /// Returns the form of a session that clients see.
    pub(super) fn session_info(&self, handle: &SessionHandle) -> SessionInfo {
        let mut info = handle.info();
        let exited = info.state == plexus_protocol::SessionState::Exited;
        // A user opens a closed terminal again by hand.
        let starts = !plexus_dialects::link::in_terminal(&info.dialect);
        if info.project.is_none() {
            // The session ended in an earlier gateway, which did not read the project.
            info.project = self.projects.cached(&info.cwd);
        }
        info.restartable = exited && starts && self.specs.contains_key(&info.runtime_id);
        info
    }

    pub(super) fn handles(&self, filter: &Filter) -> impl Iterator<Item = SessionHandle> {
        let sessions = &self.sessions;
        let handles: Vec<SessionHandle> = match &filter.sessions {
            Some(ids) => ids.iter().filter_map(|id| Some(sessions.get(id)?.clone())).collect(),
            None => sessions.iter().map(|handle| handle.clone()).collect(),
        };
        handles.into_iter().filter(|handle| filter.takes(&handle.origin))
    }

    pub(super) fn handle(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.sessions.get(id).map(|handle| handle.clone()).ok_or_else(|| SessionError::NoSession(id.clone()))
    }

    /// Returns the command queue of a session's task.
    pub(super) fn commands(&self, id: &SessionId) -> Result<mpsc::Sender<SessionCommand>, SessionError> {
        let handle = self.handle(id)?;
        handle.commands.clone().ok_or_else(|| {
            let link = self.runtimes.get(&handle.origin.runtime_id).map(|link| link.info());
            let reason = link.and_then(|info| info.problem.clone());
            SessionError::RuntimeUnavailable(reason.unwrap_or_else(|| "it has exited; open a new session".into()))
        })
    }
}
