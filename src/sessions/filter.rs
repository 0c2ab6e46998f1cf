//! The events that a reader receives.

use std::collections::BTreeSet;
use std::sync::Arc;

use plexus_auth::Grant;
use plexus_protocol::{Origin, Scope, SessionId};

/// A filter for events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// The accepted sessions; all if absent.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// The grant that limits the events to those that its device may see; none are hidden if absent.
    pub grant: Option<Arc<Grant>>,
}

impl Filter {
    /// Returns a filter that accepts everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns a filter that accepts one session.
    pub fn session(session: SessionId) -> Self {
        Self { sessions: Some(BTreeSet::from([session])), grant: None }
    }

    /// Returns whether the filter accepts events of this origin.
    pub fn takes(&self, origin: &Origin) -> bool {
        self.sessions.as_ref().is_none_or(|some| some.contains(&origin.session_id))
            && self.grant.as_ref().is_none_or(|grant| {
                let target = plexus_auth::Target::Session(&origin.session_id, &origin.runtime_id);
                grant.covers(Scope::Watch, target)
            })
    }
}
