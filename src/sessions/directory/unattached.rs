//! Sessions that continue in an endpoint while the gateway is not connected to it.

use std::time::Duration;

use super::Directory;
use crate::SessionError;
use crate::session::decision_env;
use crate::session_handle::{EndedSession, SessionHandle};
use crate::state::{Plan, SessionStateMachine};
use plexus_protocol::{RuntimeId, SessionId};

/// Time that an endpoint may stay unattached after the gateway's start, or after its release; then the pending runs of its sessions end.
const UNATTACHED_WAIT: Duration = Duration::from_secs(60);

impl Directory {
    /// Returns the sessions without a task, by runtime and state.
    pub(super) fn ended_sessions(
        &self,
        filter: impl Fn(&RuntimeId) -> bool,
        in_state: impl Fn(&SessionStateMachine) -> bool,
    ) -> Vec<SessionId> {
        let handles = self.shared.registry.sessions.iter();
        let in_state = |handle: &SessionHandle| handle.ended_state().is_some_and(|ended| in_state(&ended.state));
        let found = handles.filter(|handle| filter(&handle.origin.runtime_id) && in_state(handle));
        found.map(|handle| handle.origin.session_id.clone()).collect()
    }

    /// Ends the pending work of the sessions without a task, of all runtimes that `filter` accepts.
    pub(super) async fn abandon_sessions(&self, reason: &str, filter: impl Fn(&RuntimeId) -> bool) {
        for id in self.ended_sessions(filter, SessionStateMachine::has_pending_work) {
            let Some(handle) = self.shared.registry.sessions.get(&id).map(|handle| handle.clone()) else { continue };
            let _opening = handle.opening.lock().await;
            let Some(EndedSession { mut state, died }) = handle.take_ended() else { continue };
            self.abandon_session(&handle, &mut state, reason).await;
            handle.mark_ended(EndedSession { state, died });
        }
    }

    /// Ends the pending work of a session that has no task, and stores that.
    pub(super) async fn abandon_session(&self, handle: &SessionHandle, state: &mut SessionStateMachine, reason: &str) {
        let mut plan = Plan::default();
        state.abandon(reason, &mut decision_env!(self.shared.rules), &mut plan);
        let mut persister =
            self.persister(handle.clone(), state.retain_from).with_stored_prompts(state.stored_prompts());
        if let Err(error) = persister.keep(&plan, state).await {
            tracing::error!(session_id = %state.origin.session_id, %error, "cannot write down that a run ended");
        }
        if !state.asks_about_day() {
            self.shared.ceilings.book.release(&state.origin.session_id);
        }
    }

    /// Waits for [`UNATTACHED_WAIT`], then ends the pending work of sessions whose endpoint is not attached.
    pub(super) fn abandon_unattached_later(&self) {
        let this = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(UNATTACHED_WAIT).await;
            let reason = "the endpoint of this run is no longer attached: how the run ended is unknown";
            this.abandon_sessions(reason, |id| !this.shared.registry.runtimes.contains_key(id)).await;
        });
    }

    /// Reopens the most recently changed session of a runtime; `None` if the runtime has no session.
    pub async fn open_last(&self, runtime: &RuntimeId) -> Option<Result<SessionId, SessionError>> {
        let last = {
            let sessions = self.shared.registry.sessions.iter().filter(|handle| handle.origin.runtime_id == *runtime);
            sessions.max_by_key(|handle| handle.rank()).map(|handle| handle.origin.session_id.clone())
        };
        let last = last?;
        Some(self.reopen(&last).await.map(|()| last))
    }
}
