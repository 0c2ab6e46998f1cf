//! Sessions in which something is under way in an endpoint while no gateway is connected to it.

use std::time::Duration;

use super::session::{EndedSession, SessionHandle, env};
use super::state::{Plan, SessionStateMachine};
use super::{Directory, SessionError};
use plexus_protocol::{RuntimeId, SessionId};

/// How long after a gateway's start an endpoint may not be attached at all before the runs of its sessions that were under
/// way are given up.
const UNATTACHED_WAIT: Duration = Duration::from_secs(60);

impl Directory {
    /// The sessions without a task that are in such a state: in an endpoint something may be under way all the same.
    pub(super) fn unattached(
        &self,
        takes: impl Fn(&RuntimeId) -> bool,
        are: impl Fn(&SessionStateMachine) -> bool,
    ) -> Vec<SessionId> {
        let handles = self.shared.sessions.iter();
        let are = |handle: &SessionHandle| handle.ended_state().is_some_and(|parked| are(&parked.state));
        let of = handles.filter(|handle| takes(&handle.origin.runtime_id) && are(handle));
        of.map(|handle| handle.origin.session_id.clone()).collect()
    }

    /// Gives up what these sessions wait for, unless they live again.
    pub(super) async fn abandon(&self, why: &str, takes: impl Fn(&RuntimeId) -> bool) {
        for id in self.unattached(takes, SessionStateMachine::pends) {
            let Some(handle) = self.shared.sessions.get(&id).map(|handle| handle.clone()) else { continue };
            let _opening = handle.opening.lock().await;
            let Some(EndedSession { mut state, died }) = handle.take_ended() else { continue };
            self.void(&handle, &mut state, why).await;
            handle.mark_ended(EndedSession { state, died });
        }
    }

    pub(super) async fn void(&self, handle: &SessionHandle, state: &mut SessionStateMachine, why: &str) {
        let mut plan = Plan::default();
        state.abandon(why, &mut env!(self.shared.rules), &mut plan);
        let mut keeper = self.keeper(handle.clone(), state.spared).knows(state.recalled());
        if let Err(error) = keeper.keep(&plan, state).await {
            tracing::error!(session_id = %state.origin.session_id, %error, "cannot write down that a run ended");
        }
    }

    /// Sees to it that no run waits for ever for an endpoint that nobody connects to any more.
    pub(super) fn abandon_unattached(&self) {
        let this = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(UNATTACHED_WAIT).await;
            let why = "the endpoint of this run is no longer attached: how the run ended is unknown";
            this.abandon(why, |id| !this.shared.runtimes.contains_key(id)).await;
        });
    }

    /// Opens the session of a runtime again that had news last; `None` if there is none.
    pub async fn open_last(&self, runtime: &RuntimeId) -> Option<Result<SessionId, SessionError>> {
        let last = {
            let of = self.shared.sessions.iter().filter(|handle| handle.origin.runtime_id == *runtime);
            of.max_by_key(|handle| handle.rank()).map(|handle| handle.origin.session_id.clone())
        };
        let last = last?;
        Some(self.reopen(&last).await.map(|()| last))
    }
}
