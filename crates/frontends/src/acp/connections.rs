//! The connections of ACP over HTTP, which outlive a client's single requests, and their bounds.
//!
//! A connection is a [`Peer`] with a [`StreamQueue`] for each stream: the connection's own and one for each session. A queue
//! holds messages that are not in the log until a stream has sent them; a queue without an open stream costs only a cursor.
//! Each queue has at most one stream, and a new stream replaces the old one. A connection named by its client has one queue for
//! everything.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::stream_queue::{NumberedStream, StreamQueue};
use super::{Peer, Sent};
use plexus_auth::Caller;
use plexus_ledger::Charge;
use plexus_protocol::{DeviceId, SessionId};
use plexus_router::stop::stopping;
use plexus_router::{Core, Problem};

/// Maximum number of connections of all devices together; a further one is refused with 503.
pub(super) const CONNECTIONS: usize = 256;
/// Maximum number of connections of one device. A further one replaces the one idle for longest; if none is idle, it is refused with 429.
pub(super) const PER_DEVICE: usize = 32;
/// Lifetime of a connection without an open stream and without a request.
const IDLE: Duration = Duration::from_secs(300);
/// Maximum number of requests of one connection in progress or with responses that wait for a stream; a further one is refused with 429.
const IN_FLIGHT: usize = 128;
/// Maximum number of messages of all kinds: notifications and responses are still accepted when requests are refused.
const MESSAGES: usize = 4 * IN_FLIGHT;
/// Approximate maximum size of messages that wait for the streams of one connection, in bytes; beyond it requests are refused with 429.
const WAITING: usize = 4 << 20;
/// Maximum number of session streams of one connection; a further one is refused with 429.
const STREAMS: usize = 128;
/// Maximum number of streams of unknown or hidden sessions, since a client may open a stream before it loads the session. A further one
/// gets 404.
const UNKNOWN_STREAMS_MAX: usize = 16;

/// Maximum time that a stream, opened by its connection's name, waits for `initialize`; then it gets 404.
const INITIALIZE_WAIT: Duration = Duration::from_secs(30);

/// All connections. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    all: Arc<Mutex<BTreeMap<String, Arc<Connection>>>>,
    /// A counter of new connections.
    connection_count: Arc<watch::Sender<u64>>,
    /// Lifetime of a connection without an open stream and without a request.
    idle: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self::with_idle_time(IDLE)
    }
}

impl Connections {
    /// Makes a set without connections; each will live for `idle` without an open stream and without a request.
    pub fn with_idle_time(idle: Duration) -> Self {
        Self { all: Arc::default(), connection_count: Arc::new(watch::Sender::new(0)), idle }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Connection>>> {
        self.all.lock()
    }

    /// Adds an initialized client under a random identifier. With a name, it replaces the device's connection of that name.
    ///
    /// # Errors
    /// 429 or 503 `too_many_connections`.
    pub(super) fn enter(
        &self,
        core: &Core,
        caller: &Caller,
        peer: Peer,
        name: Option<String>,
    ) -> Result<Arc<Connection>, Problem> {
        let mut random = [0; 20];
        getrandom::fill(&mut random).map_err(|error| {
            tracing::error!(%error, "the system provides no random numbers");
            Problem::internal()
        })?;
        let account = core.account(caller);
        let connection = Arc::new(Connection {
            id: data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase(),
            device: caller.device().device_id.clone(),
            name,
            idle: self.idle,
            peer: Mutex::new(Some(peer)),
            inner: Mutex::new(Inner {
                queues: BTreeMap::new(),
                flights: 0,
                charge: account.nothing(),
                streams: 0,
                idle_since: Instant::now(),
            }),
            changed: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        });
        let mut replaced = Vec::new();
        let result = {
            let mut all = self.lock();
            let named = |one: &&Arc<Connection>| one.device == connection.device && one.name == connection.name;
            if connection.name.is_some()
                && let Some(before) = all.values().find(named).map(|before| before.id.clone())
            {
                replaced.extend(all.remove(&before));
            }
            let existing = all.values().filter(|other| other.device == connection.device);
            let mut capacity = Ok(());
            if existing.clone().count() >= PER_DEVICE {
                match existing.filter_map(|other| Some((other.idle_at()?, other.id.clone()))).min() {
                    Some((_, idle)) => replaced.extend(all.remove(&idle)),
                    None => {
                        let message =
                            format!("a device may have at most {PER_DEVICE} connections: end one with DELETE");
                        capacity = Err(too_many(StatusCode::TOO_MANY_REQUESTS, message));
                    }
                }
            }
            if capacity.is_ok() && all.len() >= CONNECTIONS {
                let message = "the gateway has the maximum number of connections: try again later".to_owned();
                capacity = Err(too_many(StatusCode::SERVICE_UNAVAILABLE, message));
            }
            if capacity.is_ok() {
                all.insert(connection.id.clone(), Arc::clone(&connection));
            }
            capacity
        };
        for connection in replaced {
            connection.end();
        }
        result?;
        self.connection_count.send_modify(|count| *count = count.wrapping_add(1));
        let live = live(self.clone(), core.clone(), caller.clone(), Arc::clone(&connection));
        tokio::spawn(live.in_current_span());
        Ok(connection)
    }

    /// Returns the connection with this identifier, if it belongs to this device; others are treated as unknown.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Option<Arc<Connection>> {
        let found = self.lock().get(id).cloned();
        found.filter(|connection| connection.device == caller.device().device_id)
    }

    /// Returns the device's connection of that name.
    pub(super) fn named(&self, caller: &Caller, name: &str) -> Option<Arc<Connection>> {
        let same_device = |one: &&Arc<Connection>| one.device == caller.device().device_id;
        self.lock().values().filter(same_device).find(|one| one.name.as_deref() == Some(name)).cloned()
    }

    /// Like [`named`](Self::named), but waits up to [`INITIALIZE_WAIT`] for a connection that is just beginning. Cancellation safe.
    pub(super) async fn expected(&self, caller: &Caller, name: &str) -> Option<Arc<Connection>> {
        let mut connection_count = self.connection_count.subscribe();
        let found = async {
            loop {
                connection_count.borrow_and_update();
                if let Some(found) = self.named(caller, name) {
                    return Some(found);
                }
                connection_count.changed().await.ok()?;
            }
        };
        tokio::time::timeout(INITIALIZE_WAIT, found).await.ok().flatten()
    }

    /// Ends a connection and its streams.
    pub(super) fn end(&self, connection: &Connection) {
        self.lock().remove(&connection.id);
        connection.end();
    }
}

fn too_many(status: StatusCode, message: String) -> Problem {
    Problem::new(status, "too_many_connections", message).retry_after(5)
}

/// Ends a connection when it is idle, revoked, or the gateway stops.
async fn live(all: Connections, core: Core, caller: Caller, connection: Arc<Connection>) {
    let mut revocations = core.auth.revocations();
    // The device may have been revoked since the check.
    revocations.mark_changed();
    let mut stop = core.stop.clone();
    let mut ended = connection.ended.subscribe();
    loop {
        let now = Instant::now();
        let wake_at = connection.idle_at().unwrap_or(now + connection.idle);
        if wake_at <= now {
            tracing::debug!("an idle connection of ACP has ended");
            break;
        }
        tokio::select! {
            changed = revocations.changed() => {
                if changed.is_err() || !core.auth.is_enrolled(&caller) {
                    break;
                }
            }
            () = stopping(&mut stop) => break,
            _ = ended.wait_for(|ended| *ended) => break,
            () = tokio::time::sleep_until(wake_at) => {}
        }
    }
    all.end(&connection);
}

/// One connection.
pub(super) struct Connection {
    id: String,
    device: DeviceId,
    /// The name given by the client.
    name: Option<String>,
    idle: Duration,
    /// `None` once the connection has ended; its client is then in no session.
    peer: Mutex<Option<Peer>>,
    inner: Mutex<Inner>,
    /// A counter of the changes after which streams must check again.
    pub(super) changed: watch::Sender<u64>,
    pub(super) ended: watch::Sender<bool>,
}

pub(super) struct Inner {
    /// The queues; the key `None` is the connection's own stream.
    pub(super) queues: BTreeMap<Option<SessionId>, StreamQueue>,
    /// The number of messages in progress.
    flights: usize,
    /// The charge for the messages in the queues.
    charge: Charge,
    /// The number of open streams.
    pub(super) streams: usize,
    pub(super) idle_since: Instant,
}

impl Connection {
    /// Returns the identifier on the wire.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether one stream has the messages of all sessions.
    pub(super) fn is_named(&self) -> bool {
        self.name.is_some()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn notify_streams(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn end(&self) {
        self.ended.send_replace(true);
        let peer = self.peer().take();
        drop(peer);
        self.notify_streams();
    }

    pub(super) fn peer(&self) -> MutexGuard<'_, Option<Peer>> {
        self.peer.lock()
    }

    /// Returns the time when the connection ends as idle; `None` while it is in use.
    fn idle_at(&self) -> Option<Instant> {
        let inner = self.lock();
        (inner.streams == 0 && inner.flights == 0).then(|| inner.idle_since + self.idle)
    }

    /// Handles one message. Its call begins before this returns, so that messages are handled in order; the response is sent on a stream.
    /// `charge` is held until then.
    ///
    /// # Errors
    /// 404 `connection_not_found` if the connection has ended; 429 `stream_not_open` if too many responses wait to be read, `busy`
    /// if too many calls are in progress.
    pub(super) fn message(self: &Arc<Self>, text: &str, is_request: bool, charge: Charge) -> Result<(), Problem> {
        {
            let mut inner = self.lock();
            let waiting: usize = inner.queues.values().map(|queue| queue.waiting.len()).sum();
            let bytes: usize = inner.queues.values().flat_map(|queue| &queue.waiting).map(|one| one.json.len()).sum();
            let full = if is_request { waiting + inner.flights >= IN_FLIGHT || bytes >= WAITING } else { false };
            if full || inner.flights + waiting >= MESSAGES {
                let busy =
                    |code, message| Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, code, message).retry_after(1));
                return if waiting > 0 {
                    busy(
                        "stream_not_open",
                        "too many responses are waiting to be read: open the connection's stream with GET and read it",
                    )
                } else {
                    busy("busy", "too many requests at once: wait for responses")
                };
            }
            inner.flights += 1;
            inner.idle_since = Instant::now();
        }
        let flight = Flight { connection: Arc::clone(self), _charge: charge };
        let reply = self.peer().as_mut().ok_or_else(no_connection)?.message(text);
        if let Some(mut reply) = reply {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match reply.as_mut().poll(&mut context) {
                Poll::Ready(sent) => flight.deliver(sent),
                // Polled again at once, with a waker.
                Poll::Pending => drop(tokio::spawn(async move { flight.deliver(reply.await) })),
            }
        }
        Ok(())
    }

    /// Queues responses where the client reads: on the session's stream if it is open, else on the connection's.
    fn deliver(&self, sent: Vec<Sent>) {
        {
            let mut inner = self.lock();
            for Sent { session, json, .. } in sent {
                let open = session.is_some() && inner.queues.get(&session).is_some_and(|queue| queue.open);
                let queue = if open { session } else { None };
                inner.queues.entry(queue).or_default().push(json);
            }
            self.charge_queues(&mut inner);
        }
        // Even without a message: the client may have joined a session.
        self.notify_streams();
    }

    /// Adjusts the charge to the size of the queues. A connection above its limit ends; its client reconnects and resumes its sessions
    /// from its cursors.
    pub(super) fn charge_queues(&self, inner: &mut Inner) {
        let bytes = inner.queues.values().map(StreamQueue::bytes).sum();
        if bytes != inner.charge.bytes() && inner.charge.resize(bytes).is_err() {
            tracing::debug!("an ACP connection is closed: too much output is waiting for its client");
            self.ended.send_replace(true);
        }
    }

    /// Opens a stream: the connection's own or a session's. `known`: whether the client may see that session.
    ///
    /// # Errors
    /// 404 `session_not_found` or `connection_not_found`, 429 `too_many_streams`.
    pub(super) fn stream(&self, session: Option<SessionId>, known: bool) -> Result<NumberedStream, Problem> {
        let stream = {
            let peer = self.peer();
            let peer = peer.as_ref().ok_or_else(no_connection)?;
            session.clone().map(|session| (peer.sessions(), peer.session_stream(session)))
        };
        let mut inner = self.lock();
        if let Some((sessions, stream)) = stream
            && !inner.queues.contains_key(&session)
        {
            if inner.queues.len() > STREAMS {
                // Sessions that the client has left need no queue.
                inner.queues.retain(|session, queue| {
                    queue.open || session.as_ref().is_none_or(|session| sessions.contains(session))
                });
            }
            if inner.queues.len() > STREAMS {
                let message = format!("a connection may have the streams of at most {STREAMS} sessions");
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message));
            }
            let unknown = inner.queues.keys().flatten().filter(|session| !sessions.contains(session)).count();
            if !known && unknown >= UNKNOWN_STREAMS_MAX {
                return Err(no_session());
            }
            inner.queues.insert(session.clone(), StreamQueue::new(stream));
        }
        inner.streams += 1;
        let queue = inner.queues.entry(session).or_default();
        queue.newest += 1;
        queue.open = true;
        let numbered = (queue.newest, Arc::clone(&queue.streams));
        drop(inner);
        // The previous stream notices the new one and ends.
        self.notify_streams();
        Ok(numbered)
    }
}

/// Returns the problem of a connection that the device does not have.
pub(super) fn no_connection() -> Problem {
    let message = "there is no such connection (any more): start again with `initialize`";
    Problem::new(StatusCode::NOT_FOUND, "connection_not_found", message)
}

/// Returns the problem of a session that the client does not have.
pub(super) fn no_session() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "session_not_found", "there is no such session")
}

/// A message in progress.
struct Flight {
    connection: Arc<Connection>,
    /// The charge for the message.
    _charge: Charge,
}

impl Flight {
    /// Delivers the responses.
    fn deliver(self, sent: Vec<Sent>) {
        self.connection.deliver(sent);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut inner = self.connection.lock();
        inner.flights -= 1;
        inner.idle_since = Instant::now();
    }
}
