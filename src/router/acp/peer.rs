//! One ACP connection, whatever its transport: what a client's messages mean.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::Sent;
use super::seat::{Place, Seat};
use super::shape::{self, Can, Failure};
use crate::auth::Caller;
use crate::model::{RuntimeId, SessionId};
use crate::router::AppState;

/// Requests of the gateway that one client has not answered yet, those for people aside (they stand in the log); one more
/// is refused.
const ASKS: usize = 64;

/// What a message comes to: messages for the client, often none. Dropping it early does not undo what was asked.
pub(in crate::router) type Reply = BoxFuture<'static, Vec<Sent>>;

/// A client's response to a request of the gateway's.
type Answered = Result<Box<RawValue>, Failure>;

/// What the client said of itself.
pub(super) struct Client {
    pub(super) can: Can,
    pub(super) name: String,
    pub(super) version: String,
}

/// What a connection, its seats and its unfinished messages know together. No lock is held across an await.
#[derive(Default)]
pub(super) struct Tables {
    /// Set by `initialize`.
    pub(super) client: Option<Client>,
    /// The sessions that the client is in.
    pub(super) places: BTreeMap<SessionId, Place>,
    /// Requests of the gateway's that wait for the client's response.
    asks: BTreeMap<String, oneshot::Sender<Answered>>,
    asked: u64,
    entered: u64,
}

/// See [`Tables`].
pub(super) struct Shared {
    tables: Mutex<Tables>,
    turned: watch::Sender<u64>,
}

impl Shared {
    fn new() -> Self {
        Self { tables: Mutex::default(), turned: watch::Sender::new(0) }
    }

    /// Looks or changes; short, and never across an await.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Tables) -> T) -> T {
        look(&mut self.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Told whenever a seat must look again.
    pub(super) fn turned(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// Makes every seat look again.
    pub(super) fn turn(&self) {
        self.turned.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Asks the client something in a session: a file, a terminal. Waits for its response; dropped, the question is taken
    /// back.
    ///
    /// # Errors
    /// The client's own error; -32603 if it is not in the session, too much is asked of it, or it leaves.
    pub(super) async fn ask(
        self: &Arc<Self>,
        session: &SessionId,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, Failure> {
        let refused = |why: &str| Failure { code: -32603, message: why.into(), data: Value::Null };
        let (answer, answered) = oneshot::channel();
        let id = self.with(|tables| {
            if tables.asks.len() >= ASKS {
                return Err(refused("the client is asked too much at once"));
            }
            let Some(place) = tables.places.get_mut(session) else {
                return Err(refused("the client is not in this session any more"));
            };
            tables.asked += 1;
            let id = format!("c_{}", tables.asked);
            if !place.say(shape::request(&id, method, &params)) {
                return Err(refused("the client takes nothing"));
            }
            tables.asks.insert(id.clone(), answer);
            Ok(id)
        })?;
        self.turn();
        let asking = Asking { shared: Arc::clone(self), session: session.clone(), id };
        let outcome = answered.await;
        drop(asking);
        outcome.unwrap_or_else(|_| Err(refused("the client has left")))
    }

    /// The client's response to a request of ours, if it is one.
    pub(super) fn answer(&self, id: &str, answered: Answered) -> bool {
        let waiting = self.with(|tables| tables.asks.remove(id));
        waiting.is_some_and(|waiting| waiting.send(answered).is_ok())
    }
}

/// A request of ours that waits for the client.
struct Asking {
    shared: Arc<Shared>,
    session: SessionId,
    id: String,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let taken_back = self.shared.with(|tables| {
            let open = tables.asks.remove(&self.id).is_some();
            if let Some(place) = tables.places.get_mut(&self.session).filter(|_| open) {
                let params = serde_json::json!({ "requestId": self.id });
                return place.say(shape::notification("$/cancel_request", &params));
            }
            false
        });
        if taken_back {
            self.shared.turn();
        }
    }
}

/// One ACP connection.
pub(in crate::router) struct Peer {
    state: AppState,
    caller: Caller,
    /// The runtime that its path names.
    runtime: Option<RuntimeId>,
    shared: Arc<Shared>,
}

impl Peer {
    /// A connection over which nothing was said yet. `runtime`: the one that its path names.
    pub(in crate::router) fn new(state: AppState, caller: Caller, runtime: Option<RuntimeId>) -> Self {
        Self { state, caller, runtime, shared: Arc::new(Shared::new()) }
    }

    /// Whether the client has said hello.
    pub(in crate::router) fn initialized(&self) -> bool {
        self.shared.with(|tables| tables.client.is_some())
    }

    /// Takes one message, whatever it is. What comes of it is begun when the reply is first polled; dropping it early does
    /// not undo what was asked. Every reply belongs to the connection, or to the session that it names.
    pub(in crate::router) fn message(&mut self, text: &str) -> Option<Reply> {
        let _ = (text, &self.caller, &self.runtime);
        None
    }

    /// The sessions that the client is in.
    pub(in crate::router) fn sessions(&self) -> Vec<SessionId> {
        self.shared.with(|tables| tables.places.keys().cloned().collect())
    }

    /// What drives a session's stream; it waits while the client is not in that session. One at a time for each session.
    pub(in crate::router) fn seat(&self, session: SessionId) -> Seat {
        Seat::new(self.state.clone(), Arc::clone(&self.shared), session)
    }
}
