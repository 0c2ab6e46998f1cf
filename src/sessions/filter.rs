//! The events that a reader receives.

use std::collections::BTreeSet;
use std::sync::Arc;

use plexus_auth::Grant;
use plexus_protocol::{Origin, Scope, SessionId};

/// The events that a reader wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// Only these sessions; all if absent.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// Only what a device with this grant may see; everything if absent.
    pub grant: Option<Arc<Grant>>,
}

impl Filter {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// One session.
    pub fn session(session: SessionId) -> Self {
        Self { sessions: Some(BTreeSet::from([session])), grant: None }
    }

    /// Returns whether events of this origin are wanted.
    pub fn takes(&self, origin: &Origin) -> bool {
        self.sessions.as_ref().is_none_or(|some| some.contains(&origin.session_id))
            && self.grant.as_ref().is_none_or(|grant| {
                let target = plexus_auth::Target::Session(&origin.session_id, &origin.runtime_id);
                grant.covers(Scope::Watch, target)
            })
    }
}
