//! Who is in which session by ACP now. Not kept: a connection's end is the end of it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::client_session::Role;
use super::shape::{Failure, Members, raw};
use super::shared::Shared;
use crate::auth::{Auth, Target};
use crate::sessions::{ClientCall, ClientCallReply, ClientError, Clients, SessionOwner};
use plexus_protocol::object;
use plexus_protocol::{DeviceId, Scope, SessionId};

/// The clients in each session. Cheap to clone.
#[derive(Clone, Default)]
pub struct AcpSessionRegistry {
    rooms: Arc<Mutex<BTreeMap<SessionId, Vec<Guest>>>>,
}

/// A client in a session.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) client_id: Arc<str>,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) role: Role,
    /// The device that it is of.
    pub(super) device: DeviceId,
    /// The program that it is, by the name that it gave its connection: see [`SessionOwner::program`].
    pub(super) program: String,
    /// Whether it opened the session: of its owner's clients, files and terminals are asked of it first.
    pub(super) opened: bool,
    pub(super) shared: Weak<Shared>,
}

impl AcpSessionRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Vec<Guest>>> {
        self.rooms.lock()
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

    /// The owner's clients in a session that can do this: the one that opened it first, then the last that came.
    fn able(&self, session: &SessionId, owner: &SessionOwner, method: &str) -> Option<Arc<Shared>> {
        let mut guests = self.lock().get(session).cloned().unwrap_or_default();
        guests.retain(|guest| owner.is(&guest.device, &guest.program) && guest.role == Role::Controller);
        guests.reverse();
        guests.sort_by_key(|guest| !guest.opened);
        let mut there = guests.iter().filter_map(|guest| guest.shared.upgrade());
        there.find(|shared| shared.can().does(method))
    }
}

/// How long a client may take for a file, or to start, look at or end a command.
const ERRAND_TIME: Duration = Duration::from_secs(60);
/// How long a client may let a command run that the agent waits for; then the agent may ask again.
const WAIT_TIME: Duration = Duration::from_secs(60 * 60);
/// The JSON-RPC code that an agent gets when its client took longer.
const TIMED_OUT: i64 = -32001;

/// What agents ask of their client, put to the program that opened the session: never to anybody else who is there.
/// Cheap to clone.
#[derive(Clone)]
pub struct Errands {
    rooms: AcpSessionRegistry,
    auth: Auth,
    time: Duration,
}

impl Errands {
    /// Errands to the clients in these rooms, as far as their devices may now prompt and approve.
    pub fn new(rooms: AcpSessionRegistry, auth: Auth) -> Self {
        Self { rooms, auth, time: ERRAND_TIME }
    }

    /// The same, with another bound for all but the wait for a command.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    async fn served(&self, errand: ClientCall) -> Option<ClientCallReply> {
        let ClientCall { session, runtime, owner, method, params } = errand;
        // As it stands now: it may have been revoked or cut down since it came in.
        let device = self.auth.device(&owner.device)?;
        let target = Target::Session(&session, &runtime);
        if ![Scope::Prompt, Scope::Approve].iter().all(|scope| device.grant.covers(*scope, target)) {
            return None;
        }
        let client = self.rooms.able(&session, &owner, &method)?;
        let time = if method == "terminal/wait_for_exit" { WAIT_TIME } else { self.time };
        let outcome = match object::from_str::<Members<'_>>(params.get()) {
            Ok(members) => {
                let params = members.with(&[("sessionId", &raw(&session))], &[]);
                let asked = client.ask(&session, &method, &params);
                tokio::time::timeout(time, asked).await.unwrap_or_else(|_| {
                    let words = format!("{} did not answer {method} within {} seconds", device.name, time.as_secs());
                    Err(Failure::new(TIMED_OUT, "client_timed_out", words))
                })
            }
            Err(error) => Err(Failure::params(error.to_string())),
        };
        let outcome = outcome.map_err(|Failure { code, message, .. }| ClientError { code, message });
        Some(ClientCallReply { by: device.resolver(), outcome })
    }
}

impl Clients for Errands {
    fn ask(&self, errand: ClientCall) -> BoxFuture<'static, Option<ClientCallReply>> {
        let this = self.clone();
        Box::pin(async move { this.served(errand).await })
    }
}
