//! Who is in which session by ACP now. Not kept: a connection's end is the end of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::peer::Shared;
use crate::model::SessionId;

/// The clients in each session. Cheap to clone.
#[derive(Clone, Default)]
pub struct Rooms {
    rooms: Arc<Mutex<BTreeMap<SessionId, Vec<Guest>>>>,
}

/// A client in a session.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) client_id: Arc<str>,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) role: super::seat::Role,
    /// Whether it opened the session: files and terminals are asked of it first.
    pub(super) opened: bool,
    pub(super) shared: Weak<Shared>,
}

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Vec<Guest>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client comes in, in the place of itself if it was there. Returns who else is there.
    pub(super) fn enter(&self, session: &SessionId, guest: Guest) -> Vec<Guest> {
        let mut rooms = self.lock();
        let room = rooms.entry(session.clone()).or_default();
        room.retain(|there| there.client_id != guest.client_id);
        let others = room.clone();
        room.push(guest);
        others
    }

    /// A client leaves. Returns who stays.
    pub(super) fn leave(&self, session: &SessionId, client_id: &str) -> Vec<Guest> {
        let mut rooms = self.lock();
        let Some(room) = rooms.get_mut(session) else { return Vec::new() };
        room.retain(|there| &*there.client_id != client_id);
        let left = room.clone();
        if left.is_empty() {
            rooms.remove(session);
        }
        left
    }
}
