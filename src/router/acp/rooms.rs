//! Who is in which session by ACP now. Not kept: a connection's end is the end of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::place::Role;
use super::shape::{Failure, Members, raw};
use super::shared::Shared;
use crate::model::SessionId;
use crate::sessions::{ClientError, Clients, Done};

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
    pub(super) role: Role,
    /// Whether it opened the session: files and terminals are asked of it first.
    pub(super) opened: bool,
    pub(super) shared: Weak<Shared>,
}

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Vec<Guest>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client comes in, in the place of itself if it was there. Returns everybody who is there now.
    pub(super) fn enter(&self, session: &SessionId, mut guest: Guest) -> Vec<Guest> {
        let mut rooms = self.lock();
        let room = rooms.entry(session.clone()).or_default();
        guest.opened |= room.iter().any(|there| there.client_id == guest.client_id && there.opened);
        // Somebody may have gone while it was still coming in.
        room.retain(|there| there.client_id != guest.client_id && there.shared.strong_count() > 0);
        room.push(guest);
        room.clone()
    }

    /// A client leaves. Returns it, if it was there, and who stays.
    pub(super) fn leave(&self, session: &SessionId, client_id: &str) -> (Option<Guest>, Vec<Guest>) {
        let mut rooms = self.lock();
        let Some(room) = rooms.get_mut(session) else { return (None, Vec::new()) };
        let at = room.iter().position(|there| *there.client_id == *client_id);
        let gone = at.map(|at| room.remove(at));
        let stay = room.clone();
        if stay.is_empty() {
            rooms.remove(session);
        }
        (gone, stay)
    }

    /// Asks what only one client can do for an agent (`fs/*`, `terminal/*`): whoever opened the session, else the first that
    /// came, of those that said they can; `None` if none did. Waits for its response, however long it takes; dropped, the
    /// client is told `$/cancel_request`. `params` are the agent's own, the `sessionId` aside.
    ///
    /// # Errors
    /// The client's own error; -32603 if the client leaves or is asked too much.
    pub async fn ask(
        &self,
        session: &SessionId,
        method: &str,
        params: &RawValue,
    ) -> Option<Result<Box<RawValue>, Failure>> {
        let mut guests = self.lock().get(session).cloned().unwrap_or_default();
        guests.retain(|guest| guest.role == Role::Controller);
        guests.sort_by_key(|guest| !guest.opened);
        let mut able = guests.iter().filter_map(|guest| guest.shared.upgrade());
        let owner = able.find(|shared| shared.can().does(method))?;
        let members: Result<Members<'_>, _> = serde_json::from_str(params.get());
        Some(match members {
            Ok(params) => owner.ask(session, method, &params.with(&[("sessionId", &raw(session))], &[])).await,
            Err(error) => Err(Failure::params(error.to_string())),
        })
    }
}

impl Clients for Rooms {
    fn ask(&self, session: SessionId, method: String, params: Box<RawValue>) -> BoxFuture<'static, Option<Done>> {
        let rooms = self.clone();
        Box::pin(async move {
            let done = Self::ask(&rooms, &session, &method, &params).await?;
            Some(done.map_err(|Failure { code, message, .. }| ClientError { code, message }))
        })
    }
}
