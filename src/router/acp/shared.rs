//! What a connection, its seats and its unfinished messages know together; and what the gateway itself asks of a client.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::client_session::{ClientSessionState, Entry};
use super::shape::{self, Can, Failure};
use plexus_protocol::{DeviceId, SessionId};

/// Sessions that one connection may be in; one more is refused.
const PLACES: usize = 256;
/// Requests of the gateway that one client has not answered yet, those for people aside (they stand in the log); one more
/// is refused.
const ASKS: usize = 64;

/// A client's response to a request of the gateway's.
pub(super) type Answered = Result<Box<RawValue>, Failure>;

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
    pub(super) places: BTreeMap<SessionId, ClientSessionState>,
    /// Requests of the gateway's that wait for the client's response.
    pub(super) asks: BTreeMap<String, oneshot::Sender<Answered>>,
    asked: u64,
    entered: u64,
    /// The connection is over; what is still being worked on brings the client nowhere.
    pub(super) over: bool,
}

/// Longest name of a program that is kept with what it opens, in characters.
const PROGRAM_MAX: usize = 100;

/// See [`Tables`].
pub(super) struct Shared {
    /// Whose token the connection came with.
    pub(super) device: DeviceId,
    /// Tells the connection from others of the same device.
    pub(super) client_id: Arc<str>,
    tables: Mutex<Tables>,
    turned: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(device: DeviceId) -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(1);
        let client_id = format!("client_{}", CLIENTS.fetch_add(1, Ordering::Relaxed)).into();
        Self { device, client_id, tables: Mutex::default(), turned: watch::Sender::new(0) }
    }

    /// Looks or changes; short, and never across an await.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Tables) -> T) -> T {
        look(&mut self.tables.lock())
    }

    /// What the client said that it can do.
    pub(super) fn can(&self) -> Can {
        self.with(|tables| tables.client.as_ref().map(|client| client.can)).unwrap_or_default()
    }

    /// The name that the client gave itself, cut to [`PROGRAM_MAX`]; empty if it gave none.
    pub(super) fn program(&self) -> String {
        let name =
            self.with(|tables| tables.client.as_ref().map(|client| client.name.chars().take(PROGRAM_MAX).collect()));
        name.unwrap_or_default()
    }

    /// Told whenever a seat must look again.
    pub(super) fn turned(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// Makes every seat look again.
    pub(super) fn turn(&self) {
        self.turned.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits until no prompt is being handed over, so that whoever cancels knows the run. Cancellation safe.
    pub(super) async fn settled(&self) {
        let mut turned = self.turned();
        loop {
            turned.borrow_and_update();
            if self.with(|tables| tables.places.values().all(|place| place.taking.is_empty())) {
                return;
            }
            // The sender lives as long as this does.
            if turned.changed().await.is_err() {
                return;
            }
        }
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
        let refused = |why: &str| Failure::new(-32603, "client_not_asked", why);
        let (answer, answered) = oneshot::channel();
        let id = self.with(|tables| {
            if tables.asks.len() >= ASKS {
                return Err(refused("too many calls to the client at once"));
            }
            let Some(place) = tables.places.get_mut(session) else {
                return Err(refused("the client is no longer in this session"));
            };
            tables.asked += 1;
            let id = format!("c_{}", tables.asked);
            if !place.say(shape::request(&id, method, &params)) {
                return Err(refused("the client does not read"));
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

    /// Puts the client into a session, in the place where it may be already; its seat begins again.
    pub(super) fn enter(&self, session: &SessionId, entry: Entry) -> Result<(), Failure> {
        self.with(|tables| {
            room(tables, session)?;
            tables.entered += 1;
            let place = ClientSessionState::new(tables.entered, entry, tables.places.remove(session));
            tables.places.insert(session.clone(), place);
            Ok::<_, Failure>(())
        })?;
        self.turn();
        Ok(())
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

/// Whether the client may be in one more session.
pub(super) fn full(tables: &Tables) -> Result<(), Failure> {
    if tables.over {
        return Err(Failure::new(-32800, "gone", "the connection is over"));
    }
    if tables.places.len() < PLACES {
        return Ok(());
    }
    let words = format!("a connection may be in at most {PLACES} sessions: close one");
    Err(Failure::new(-32001, "too_many_sessions", words))
}

/// Whether the client may be in this session too.
pub(super) fn room(tables: &Tables, session: &SessionId) -> Result<(), Failure> {
    if tables.places.contains_key(session) { Ok(()) } else { full(tables) }
}
