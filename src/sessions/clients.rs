//! What an agent asks its client to do: files and terminals. The editor whose session it is has them; the front door knows
//! which one that is.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::model::{NativeId, RuntimeId, SessionId};

/// The clients of sessions, as an agent sees them: one, or none.
pub trait Clients: Send + Sync {
    /// Has the client do it whose session it is. `None`: none is there that offered to. Takes as long as that client takes;
    /// `params` are the agent's own, the session in them is the runtime's. Dropped, the client is told that nobody waits.
    fn ask(&self, session: SessionId, method: String, params: Box<RawValue>) -> BoxFuture<'static, Option<Done>>;
}

/// A client's result, untouched, or its error.
pub type Done = Result<Box<RawValue>, ClientError>;

/// Why a client did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The JSON-RPC code.
    pub code: i64,
    /// In words.
    pub message: String,
}

type Find = Box<dyn Fn(&RuntimeId, &NativeId) -> Option<SessionId> + Send + Sync>;

/// How runtimes reach the clients of their sessions, once there is a front door. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct ToClients {
    shared: Arc<OnceLock<(Find, Arc<dyn Clients>)>>,
}

impl fmt::Debug for ToClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToClients").field("there", &self.shared.get().is_some()).finish()
    }
}

impl ToClients {
    /// Says who asks clients. Once; later calls change nothing.
    pub(super) fn set(&self, find: Find, clients: Arc<dyn Clients>) {
        let _ = self.shared.set((find, clients));
    }

    /// As [`Clients::ask`], of the session that the runtime calls `native`.
    pub async fn ask(
        &self,
        runtime: &RuntimeId,
        native: &NativeId,
        method: String,
        params: Box<RawValue>,
    ) -> Option<Done> {
        let (find, clients) = self.shared.get()?;
        let session = find(runtime, native)?;
        clients.ask(session, method, params).await
    }
}
