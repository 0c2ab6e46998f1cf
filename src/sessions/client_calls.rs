//! Calls of an agent to its client: files and terminals. The router delivers them to the device that opened the session.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use serde::{Deserialize, Serialize};

use plexus_protocol::{DeviceId, NativeId, Resolver, RuntimeId, SessionId};

/// The device that opened a session, stored with it: the agent's client calls go to no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOwner {
    /// The device's identifier.
    pub device: DeviceId,
    /// The program's own name (`clientInfo.name` of ACP's `initialize`); absent if the session was opened by another protocol. All
    /// programs of this machine are one device: the name distinguishes two editors. It is no proof of identity: a program that claims
    /// another's name has the same device's token anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl SessionOwner {
    /// Returns whether this program of this device is the owner. If the owner names no program, any program of the device is.
    pub fn is(&self, device: &DeviceId, program: &str) -> bool {
        self.device == *device && self.program.as_deref().is_none_or(|owner| owner == program)
    }
}

/// A call of an agent to its client.
#[derive(Clone, Debug)]
pub struct ClientCall {
    /// The session of the call.
    pub session: SessionId,
    /// The session's runtime.
    pub runtime: RuntimeId,
    /// The owner of the session; the call goes to no other client.
    pub owner: SessionOwner,
    /// The method (`fs/read_text_file` …).
    pub method: String,
    /// The agent's parameters, unchanged: the session identifier in them is the runtime's own.
    pub params: Box<RawValue>,
}

/// Delivers client calls to the owners of sessions.
pub trait Clients: Send + Sync {
    /// Sends a call to the session's owner and returns its reply. `None`: the owner is not connected, does not offer the method, or may
    /// not (or no longer) prompt and approve. Bounded in time. If the future is dropped, the client gets a notification that the call is
    /// cancelled.
    fn ask(&self, call: ClientCall) -> BoxFuture<'static, Option<ClientCallReply>>;
}

/// The reply of a client, and the device that sent it.
#[derive(Clone, Debug)]
pub struct ClientCallReply {
    /// The device that replied.
    pub by: Resolver,
    /// The client's result, unchanged, or its error.
    pub outcome: Result<Box<RawValue>, ClientError>,
}

/// The JSON-RPC error of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// JSON-RPC error code.
    pub code: i64,
    /// The client's message.
    pub message: String,
}

/// Finds a session and its owner by runtime and native id.
type FindSession = Box<dyn Fn(&RuntimeId, &NativeId) -> Option<(SessionId, SessionOwner)> + Send + Sync>;

/// The channel from runtimes to the clients of their sessions, once the router is set. Cheap to clone; clones share it.
#[derive(Clone, Default)]
pub struct ClientRouter {
    shared: Arc<OnceLock<(FindSession, Arc<dyn Clients>)>>,
}

impl fmt::Debug for ClientRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToClients").field("there", &self.shared.get().is_some()).finish()
    }
}

impl ClientRouter {
    /// Sets the router's part. Later calls have no effect.
    pub(super) fn set(&self, find: FindSession, clients: Arc<dyn Clients>) {
        let _ = self.shared.set((find, clients));
    }

    /// Like [`Clients::ask`], for the session with this native id. `None` also if no device opened the session.
    pub async fn ask(
        &self,
        runtime: &RuntimeId,
        native: &NativeId,
        method: String,
        params: Box<RawValue>,
    ) -> Option<ClientCallReply> {
        let (find, clients) = self.shared.get()?;
        let (session, owner) = find(runtime, native)?;
        clients.ask(ClientCall { session, runtime: runtime.clone(), owner, method, params }).await
    }
}
