//! Presence: the session that each screen displays, and whether the screen has the focus. Held in memory, one entry for each connection,
//! removed with it. An open socket alone does not count as viewing.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use plexus_auth::{Caller, Device};
use plexus_protocol::SessionId;
use plexus_protocol::api::stream::Viewer;

/// All focused screens. Cheap to clone; clones share everything. Bounded by the number of connections.
#[derive(Clone, Default)]
pub struct Presence {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    screens: Mutex<BTreeMap<u64, Screen>>,
    next: AtomicU64,
    changed: watch::Sender<u64>,
}

/// A focused screen.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The device, with its grant at the beginning of the connection.
    pub device: Arc<Device>,
    /// The displayed session; `None` for a page without one, such as the inbox.
    pub session: Option<SessionId>,
}

/// The viewers of each session.
pub type Viewers = BTreeMap<SessionId, Vec<Viewer>>;

impl Presence {
    /// Adds the entry of one connection, which views nothing yet.
    pub fn enter(&self, caller: &Caller) -> PresenceGuard {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        PresenceGuard { presence: self.clone(), id, device: Arc::clone(caller.device()) }
    }

    /// Returns a counter of the changes of viewed sessions, as a watch.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Returns all focused screens.
    pub fn screens(&self) -> Vec<Screen> {
        self.lock().values().cloned().collect()
    }

    /// Returns the viewers of the sessions that `sees` allows, without sessions that have none. A device with several screens is listed
    /// once.
    pub fn viewers(&self, sees: impl Fn(&SessionId) -> bool) -> Viewers {
        let mut all = Viewers::new();
        for screen in self.lock().values() {
            let Some(session) = screen.session.as_ref().filter(|session| sees(session)) else { continue };
            let viewers = all.entry(session.clone()).or_default();
            if !viewers.iter().any(|viewer| viewer.device_id == screen.device.device_id) {
                viewers.push(Viewer { device_id: screen.device.device_id.clone(), name: screen.device.name.clone() });
            }
        }
        for viewers in all.values_mut() {
            viewers.sort_by(|a, b| a.device_id.cmp(&b.device_id));
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Screen>> {
        self.shared.screens.lock()
    }
}

/// A connection's entry in [`Presence`], removed when dropped.
pub struct PresenceGuard {
    presence: Presence,
    id: u64,
    device: Arc<Device>,
}

impl PresenceGuard {
    /// Sets the displayed session and whether the screen has the focus. Others are notified only of a change.
    pub fn update(&self, session: Option<SessionId>, focused: bool) {
        let new = focused.then(|| Screen { device: Arc::clone(&self.device), session });
        let mut screens = self.presence.lock();
        let old = match &new {
            Some(screen) => screens.insert(self.id, screen.clone()),
            None => screens.remove(&self.id),
        };
        drop(screens);
        let same = match (&old, &new) {
            (Some(old), Some(new)) => old.session == new.session,
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.presence.shared.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        self.update(None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_auth::Auth;

    fn caller() -> (Caller, tempfile::TempDir) {
        let home = tempfile::tempdir().unwrap();
        let auth = Auth::open(home.path(), &[], Arc::new(|_| Box::pin(std::future::ready(Ok(()))))).unwrap();
        (auth.check(&plexus_auth::read_token(home.path()).unwrap()).unwrap(), home)
    }

    fn session(name: &str) -> SessionId {
        SessionId::trusted(name)
    }

    #[test]
    fn viewer_needs_focus_and_ends_with_its_connection() {
        let presence = Presence::default();
        let (caller, _home) = caller();
        let mut changes = presence.changes();
        let guard = presence.enter(&caller);
        guard.update(Some(session("s_1")), false);
        assert!(presence.screens().is_empty());
        assert!(!changes.has_changed().unwrap(), "a socket is no news");
        guard.update(Some(session("s_1")), true);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        guard.update(Some(session("s_1")), true);
        assert!(!changes.has_changed().unwrap(), "the same again is no news");
        assert_eq!(presence.viewers(|_| true).len(), 1);
        guard.update(None, true);
        assert!(presence.viewers(|_| true).is_empty(), "the inbox is no session");
        assert_eq!(presence.screens().len(), 1, "but somebody looks");
        drop(guard);
        assert!(presence.screens().is_empty());
    }

    #[test]
    fn viewers_name_a_device_once_and_only_where_visible() {
        let presence = Presence::default();
        let (caller, _home) = caller();
        let guards = [presence.enter(&caller), presence.enter(&caller), presence.enter(&caller)];
        for (guard, name) in guards.iter().zip(["s_1", "s_1", "s_2"]) {
            guard.update(Some(session(name)), true);
        }
        let all = presence.viewers(|_| true);
        assert_eq!(all[&session("s_1")].len(), 1);
        assert_eq!(all.len(), 2);
        let some = presence.viewers(|id| id.as_str() == "s_2");
        assert_eq!(some.keys().collect::<Vec<_>>(), [&session("s_2")]);
    }
}
