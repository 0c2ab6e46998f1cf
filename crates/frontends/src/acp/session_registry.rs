//! The ACP clients that are in each session, held in memory only.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::client_session::Role;
use super::shape::{Failure, Members, raw};
use super::shared::Shared;
use plexus_auth::{Auth, Target};
use plexus_protocol::object;
use plexus_protocol::{DeviceId, Scope, SessionId};
use plexus_sessions::{ClientCall, ClientCallReply, ClientError, Clients, SessionOwner};

/// The clients in each session. Cheap to clone.
#[derive(Clone, Default)]
pub struct AcpSessionRegistry {
    sessions: Arc<Mutex<BTreeMap<SessionId, Vec<SessionMember>>>>,
}

/// A client in a session.
#[derive(Clone)]
pub(super) struct SessionMember {
    pub(super) client_id: Arc<str>,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) role: Role,
    /// The client's device.
    pub(super) device: DeviceId,
    /// The program's name as given by its connection: see [`SessionOwner::program`].
    pub(super) program: String,
    /// `true` if the client opened the session; calls for files and terminals go to it first.
    pub(super) opened: bool,
    pub(super) shared: Weak<Shared>,
}

impl AcpSessionRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Vec<SessionMember>>> {
        self.sessions.lock()
    }

    /// Adds a client, replacing its earlier entry. Returns all clients in the session.
    pub(super) fn enter(&self, session: &SessionId, mut member: SessionMember) -> Vec<SessionMember> {
        let mut sessions = self.lock();
        let members = sessions.entry(session.clone()).or_default();
        member.opened |= members.iter().any(|other| other.client_id == member.client_id && other.opened);
        // A client may have disconnected while it was being added.
        members.retain(|other| other.client_id != member.client_id && other.shared.strong_count() > 0);
        members.push(member);
        members.clone()
    }

    /// Removes a client. Returns it, if it was there, and the remaining ones.
    pub(super) fn leave(&self, session: &SessionId, client_id: &str) -> (Option<SessionMember>, Vec<SessionMember>) {
        let mut sessions = self.lock();
        let Some(members) = sessions.get_mut(session) else { return (None, Vec::new()) };
        let at = members.iter().position(|other| *other.client_id == *client_id);
        let removed = at.map(|at| members.remove(at));
        let remaining = members.clone();
        if remaining.is_empty() {
            sessions.remove(session);
        }
        (removed, remaining)
    }

    /// Returns the owner's client in a session that supports `method`: the one that opened the session, else the newest.
    fn find_client(&self, session: &SessionId, owner: &SessionOwner, method: &str) -> Option<Arc<Shared>> {
        let mut members = self.lock().get(session).cloned().unwrap_or_default();
        members.retain(|member| owner.is(&member.device, &member.program) && member.role == Role::Controller);
        members.reverse();
        members.sort_by_key(|member| !member.opened);
        let mut clients = members.iter().filter_map(|member| member.shared.upgrade());
        clients.find(|shared| shared.support().supports(method))
    }
}

/// Maximum time for a client to handle a file, or to start, inspect or end a command.
const CALL_TIME: Duration = Duration::from_secs(60);
/// Maximum time for a command that the agent waits for; then the agent may request it again.
const WAIT_TIME: Duration = Duration::from_secs(60 * 60);
/// The JSON-RPC code for an agent whose client took too long.
const TIMED_OUT: i64 = -32001;

/// Forwards agents' calls of client tools to the program that opened the session, and to no other client. Cheap to clone.
#[derive(Clone)]
pub struct ForwardedCalls {
    sessions: AcpSessionRegistry,
    auth: Auth,
    time: Duration,
}

impl ForwardedCalls {
    /// Forwards calls to the clients in this registry whose devices may prompt and approve at that time.
    pub fn new(sessions: AcpSessionRegistry, auth: Auth) -> Self {
        Self { sessions, auth, time: CALL_TIME }
    }

    /// Sets another timeout, except for waiting for a command.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    async fn serve(&self, call: ClientCall) -> Option<ClientCallReply> {
        let ClientCall { session, runtime, owner, method, params } = call;
        // The device's current grant: it may have been revoked or reduced since it joined.
        let device = self.auth.device(&owner.device)?;
        let target = Target::Session(&session, &runtime);
        if ![Scope::Prompt, Scope::Approve].iter().all(|scope| device.grant.covers(*scope, target)) {
            return None;
        }
        let client = self.sessions.find_client(&session, &owner, &method)?;
        let time = if method == "terminal/wait_for_exit" { WAIT_TIME } else { self.time };
        let outcome = match object::from_str::<Members<'_>>(params.get()) {
            Ok(members) => {
                let params = members.with(&[("sessionId", &raw(&session))], &[]);
                let reply = client.ask(&session, &method, &params);
                tokio::time::timeout(time, reply).await.unwrap_or_else(|_| {
                    let message = format!("{} did not answer {method} within {} seconds", device.name, time.as_secs());
                    Err(Failure::new(TIMED_OUT, "client_timed_out", message))
                })
            }
            Err(error) => Err(Failure::params(error.to_string())),
        };
        let outcome = outcome.map_err(|Failure { code, message, .. }| ClientError { code, message });
        Some(ClientCallReply { by: device.resolver(), outcome })
    }
}

impl Clients for ForwardedCalls {
    fn ask(&self, call: ClientCall) -> BoxFuture<'static, Option<ClientCallReply>> {
        let this = self.clone();
        Box::pin(async move { this.serve(call).await })
    }
}
