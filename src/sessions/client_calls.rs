//! What an agent asks its client to do: files and terminals. The device that opened the session has them; the front door
//! knows where it is.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use serde::{Deserialize, Serialize};

use plexus_protocol::{DeviceId, NativeId, Resolver, RuntimeId, SessionId};

/// Who opened a session, kept with it: its agent's files and terminals are asked of nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOwner {
    /// The device.
    pub device: DeviceId,
    /// The program, by the name that it gave itself (`clientInfo.name` of ACP's `initialize`); absent if it opened the
    /// session by another door. All programs of this machine are one device: this tells two editors apart. It proves
    /// nothing, for whoever could take another's name has that device's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl SessionOwner {
    /// Whether a program of this name on this device is it. Any program of the device is, where none is named.
    pub fn is(&self, device: &DeviceId, program: &str) -> bool {
        self.device == *device && self.program.as_deref().is_none_or(|owner| owner == program)
    }
}

/// Something that an agent asks its client to do.
#[derive(Clone, Debug)]
pub struct ClientCall {
    /// The session that the agent asks in.
    pub session: SessionId,
    /// Its runtime.
    pub runtime: RuntimeId,
    /// Who opened the session: nobody else is asked.
    pub owner: SessionOwner,
    /// What it asks for (`fs/read_text_file` …).
    pub method: String,
    /// The agent's own parameters; the session in them is the runtime's.
    pub params: Box<RawValue>,
}

/// The clients of sessions, as an agent sees them: one, or none.
pub trait Clients: Send + Sync {
    /// Has the session's owner do it. `None`: it is not there, has not offered to, or may not prompt and approve (any
    /// more). Bounded in time; dropped, the client is told that nobody waits.
    fn ask(&self, errand: ClientCall) -> BoxFuture<'static, Option<ClientCallReply>>;
}

/// Who was asked, and what it said.
#[derive(Clone, Debug)]
pub struct ClientCallReply {
    /// The device.
    pub by: Resolver,
    /// Its result, untouched, or its error.
    pub outcome: Result<Box<RawValue>, ClientError>,
}

/// Why a client did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The JSON-RPC code.
    pub code: i64,
    /// In words.
    pub message: String,
}

/// Finds a session by its runtime's name for it, and who opened it.
type FindSession = Box<dyn Fn(&RuntimeId, &NativeId) -> Option<(SessionId, SessionOwner)> + Send + Sync>;

/// How runtimes reach the clients of their sessions, once there is a front door. Cheap to clone; all clones are one.
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
    /// Says who asks clients. Once; later calls change nothing.
    pub(super) fn set(&self, find: FindSession, clients: Arc<dyn Clients>) {
        let _ = self.shared.set((find, clients));
    }

    /// As [`Clients::ask`], in the session that the runtime calls `native`. A session that no device opened has no owner.
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
