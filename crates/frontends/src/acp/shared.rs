//! The state shared by a connection, its session streams and its calls in progress; and the gateway's own calls to a client.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::client_session::{ClientSessionState, Entry};
use super::shape::{self, ClientSupport, Failure};
use plexus_auth::Device;
use plexus_protocol::{DeviceId, Risk, SessionId};

/// Maximum number of sessions that one connection may be in; a further one is refused.
const SESSIONS_MAX: usize = 256;
/// Maximum number of unanswered calls of the gateway to one client, without requests for users, which are in the log; a further one is
/// refused.
const CALLS_MAX: usize = 64;

/// A client's response to a call of the gateway.
pub(super) type Answered = Result<Box<RawValue>, Failure>;

/// A client's description of itself.
pub(super) struct Client {
    pub(super) support: ClientSupport,
    pub(super) name: String,
    pub(super) version: String,
}

/// The state shared by a connection, its session streams and its calls in progress. The lock is not held across an await.
#[derive(Default)]
pub(super) struct Tables {
    /// The client; set by `initialize`.
    pub(super) client: Option<Client>,
    /// The sessions that the client is in.
    pub(super) sessions: BTreeMap<SessionId, ClientSessionState>,
    /// Calls of the gateway that wait for the client's response.
    pub(super) calls: BTreeMap<String, oneshot::Sender<Answered>>,
    call_count: u64,
    entry_count: u64,
    /// `true` if the connection has ended; calls in progress then join no session.
    pub(super) closed: bool,
}

/// Maximum length of the name of a program that is stored with the sessions it opens, in characters.
const PROGRAM_MAX: usize = 100;

/// The shared state of [`Tables`], with the constants of the connection.
pub(super) struct Shared {
    /// The connection's device.
    pub(super) device: DeviceId,
    /// The maximum risk that the device may allow.
    pub(super) limit: Option<Risk>,
    /// An identifier that distinguishes the connection from others of the same device.
    pub(super) client_id: Arc<str>,
    tables: Mutex<Tables>,
    changed: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(device: &Device) -> Self {
        static CLIENTS: AtomicU64 = AtomicU64::new(1);
        let client_id = format!("client_{}", CLIENTS.fetch_add(1, Ordering::Relaxed)).into();
        let (device, limit) = (device.device_id.clone(), device.grant.approve_up_to);
        Self { device, limit, client_id, tables: Mutex::default(), changed: watch::Sender::new(0) }
    }

    /// Accesses the state; short, and never across an await.
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut Tables) -> T) -> T {
        read(&mut self.tables.lock())
    }

    /// Returns the client's capabilities.
    pub(super) fn support(&self) -> ClientSupport {
        self.with(|tables| tables.client.as_ref().map(|client| client.support)).unwrap_or_default()
    }

    /// Returns the client's name, cut to [`PROGRAM_MAX`]; empty if it gave none.
    pub(super) fn program(&self) -> String {
        let name =
            self.with(|tables| tables.client.as_ref().map(|client| client.name.chars().take(PROGRAM_MAX).collect()));
        name.unwrap_or_default()
    }

    /// Returns a counter of the changes after which session streams must check again.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Makes all session streams check again.
    pub(super) fn notify_streams(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits until no prompt is being passed on, so that a cancel knows all runs. Cancellation safe.
    pub(super) async fn wait_for_pending_prompts(&self) {
        let mut changed = self.changed();
        loop {
            changed.borrow_and_update();
            if self.with(|tables| tables.sessions.values().all(|state| state.pending.is_empty())) {
                return;
            }
            // The sender lives as long as `self`.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Calls the client in a session, for a file or a terminal, and waits for its response. Dropping the future withdraws the call.
    ///
    /// # Errors
    /// The client's own error; -32603 if it is not in the session, has too many open calls, or leaves.
    pub(super) async fn ask(
        self: &Arc<Self>,
        session: &SessionId,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, Failure> {
        let refused = |reason: &str| Failure::new(-32603, "client_not_asked", reason);
        let (answer, answered) = oneshot::channel();
        let id = self.with(|tables| {
            if tables.calls.len() >= CALLS_MAX {
                return Err(refused("too many calls to the client at once"));
            }
            let Some(state) = tables.sessions.get_mut(session) else {
                return Err(refused("the client is no longer in this session"));
            };
            tables.call_count += 1;
            let id = format!("c_{}", tables.call_count);
            if !state.queue(shape::request(&id, method, &params)) {
                return Err(refused("the client does not read"));
            }
            tables.calls.insert(id.clone(), answer);
            Ok(id)
        })?;
        self.notify_streams();
        let pending = PendingCall { shared: Arc::clone(self), session: session.clone(), id };
        let outcome = answered.await;
        drop(pending);
        outcome.unwrap_or_else(|_| Err(refused("the client has left")))
    }

    /// Adds the client to a session, replacing an earlier entry; its session stream begins again.
    pub(super) fn enter(&self, session: &SessionId, entry: Entry) -> Result<(), Failure> {
        self.with(|tables| {
            check_member(tables, session)?;
            tables.entry_count += 1;
            let state = ClientSessionState::new(tables.entry_count, entry, tables.sessions.remove(session));
            tables.sessions.insert(session.clone(), state);
            Ok::<_, Failure>(())
        })?;
        self.notify_streams();
        Ok(())
    }

    /// Handles the client's response to a call of the gateway; returns `false` if there is no such call.
    pub(super) fn answer(&self, id: &str, answered: Answered) -> bool {
        let waiting = self.with(|tables| tables.calls.remove(id));
        waiting.is_some_and(|waiting| waiting.send(answered).is_ok())
    }
}

/// A call of the gateway that waits for the client.
struct PendingCall {
    shared: Arc<Shared>,
    session: SessionId,
    id: String,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let withdrawn = self.shared.with(|tables| {
            let open = tables.calls.remove(&self.id).is_some();
            if let Some(state) = tables.sessions.get_mut(&self.session).filter(|_| open) {
                let params = serde_json::json!({ "requestId": self.id });
                return state.queue(shape::notification("$/cancel_request", &params));
            }
            false
        });
        if withdrawn {
            self.shared.notify_streams();
        }
    }
}

/// Checks that the client may be in one more session.
pub(super) fn check_capacity(tables: &Tables) -> Result<(), Failure> {
    if tables.closed {
        return Err(Failure::new(-32800, "gone", "the connection is over"));
    }
    if tables.sessions.len() < SESSIONS_MAX {
        return Ok(());
    }
    let message = format!("a connection may be in at most {SESSIONS_MAX} sessions: close one");
    Err(Failure::new(-32001, "too_many_sessions", message))
}

/// Checks that the client may also be in this session.
pub(super) fn check_member(tables: &Tables, session: &SessionId) -> Result<(), Failure> {
    if tables.sessions.contains_key(session) { Ok(()) } else { check_capacity(tables) }
}
