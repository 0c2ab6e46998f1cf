//! The connections of ACP over HTTP: what lives between a client's requests. Owned here, all of them, with their bounds.
//!
//! A connection is a [`Peer`] and its *lanes*, one for each stream: the connection's own and one a session. A lane holds the
//! messages that are in no log, until a stream has them; what is in the log waits there, and a lane without a stream costs
//! a cursor. There is one stream a lane: the newest takes it over. A connection that its client named itself has one lane
//! for everything.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::outgoing::{Lane, Start, Stream};
use super::{Peer, Sent};
use crate::auth::Caller;
use crate::ledger::Charge;
use crate::router::stop::stopping;
use crate::router::{AppState, Problem};
use plexus_protocol::{DeviceId, SessionId};

/// Connections of all devices together; one more is refused, 503.
pub(super) const CONNECTIONS: usize = 256;
/// Connections of one device: one more ends the one of its that is idle for longest; if none is, it is refused, 429.
pub(super) const OF_ONE: usize = 32;
/// How long a connection lives without an open stream and without a request; then it ends.
const IDLE: Duration = Duration::from_secs(300);
/// Requests of one connection that are being worked on, or whose responses wait for a stream; one more is refused, 429.
const IN_FLIGHT: usize = 128;
/// The same for messages of all kinds: notifications and responses are taken where requests are refused no more.
const MESSAGES: usize = 4 * IN_FLIGHT;
/// Bytes of messages that wait for the streams of one connection, about; past it requests are refused, 429.
const WAITING: usize = 4 << 20;
/// Streams of sessions that one connection may have; one more is refused, 429.
const STREAMS: usize = 128;
/// Those among them of sessions that do not exist, or are not for this client: it asks for a stream before it loads the
/// session, and is told then. One more is answered 404.
const AHEAD: usize = 16;

/// How long a stream that was asked for by its connection's name waits for the hello; then it is answered 404.
const HELLO: Duration = Duration::from_secs(30);

/// All connections. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    all: Arc<Mutex<BTreeMap<String, Arc<Connection>>>>,
    /// Told of each that comes.
    entered: Arc<watch::Sender<u64>>,
    /// How long one lives without an open stream and without a request.
    idle: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self::lasting(IDLE)
    }
}

impl Connections {
    /// None yet; each will live `idle` without an open stream and without a request. The default is what is served with.
    pub fn lasting(idle: Duration) -> Self {
        Self { all: Arc::default(), entered: Arc::new(watch::Sender::new(0)), idle }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Connection>>> {
        self.all.lock()
    }

    /// Takes in a client that has said hello, under an identifier that nobody guesses. If it gave itself a name, it takes
    /// the place of the one of that device's that had it.
    ///
    /// # Errors
    /// 429 or 503 `too_many_connections`.
    pub(super) fn enter(
        &self,
        state: &AppState,
        caller: &Caller,
        peer: Peer,
        name: Option<String>,
    ) -> Result<Arc<Connection>, Problem> {
        let mut random = [0; 20];
        getrandom::fill(&mut random).map_err(|error| {
            tracing::error!(%error, "the system provides no random numbers");
            Problem::internal()
        })?;
        let account = state.account(caller);
        let connection = Arc::new(Connection {
            id: data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase(),
            device: caller.device().device_id.clone(),
            name,
            idle: self.idle,
            peer: Mutex::new(Some(peer)),
            inner: Mutex::new(Inner {
                lanes: BTreeMap::new(),
                flights: 0,
                charge: account.nothing(),
                streams: 0,
                idle_since: Instant::now(),
            }),
            turned: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        });
        let mut over = Vec::new();
        let entered = {
            let mut all = self.lock();
            let named = |one: &&Arc<Connection>| one.device == connection.device && one.name == connection.name;
            if connection.name.is_some()
                && let Some(before) = all.values().find(named).map(|before| before.id.clone())
            {
                over.extend(all.remove(&before));
            }
            let mine = all.values().filter(|other| other.device == connection.device);
            let mut room = Ok(());
            if mine.clone().count() >= OF_ONE {
                match mine.filter_map(|other| Some((other.idle_at()?, other.id.clone()))).min() {
                    Some((_, idle)) => over.extend(all.remove(&idle)),
                    None => {
                        let words = format!("a device may have at most {OF_ONE} connections: end one with DELETE");
                        room = Err(too_many(StatusCode::TOO_MANY_REQUESTS, words));
                    }
                }
            }
            if room.is_ok() && all.len() >= CONNECTIONS {
                let words = "the gateway has the maximum number of connections: try again later".to_owned();
                room = Err(too_many(StatusCode::SERVICE_UNAVAILABLE, words));
            }
            if room.is_ok() {
                all.insert(connection.id.clone(), Arc::clone(&connection));
            }
            room
        };
        for connection in over {
            connection.end();
        }
        entered?;
        self.entered.send_modify(|count| *count = count.wrapping_add(1));
        let live = live(self.clone(), state.clone(), caller.clone(), Arc::clone(&connection));
        tokio::spawn(live.in_current_span());
        Ok(connection)
    }

    /// The connection of that name, if it is this device's: of others' it is not told that they exist.
    pub(super) fn find(&self, caller: &Caller, id: &str) -> Option<Arc<Connection>> {
        let found = self.lock().get(id).cloned();
        found.filter(|connection| connection.device == caller.device().device_id)
    }

    /// The connection that this device has given that name.
    pub(super) fn named(&self, caller: &Caller, name: &str) -> Option<Arc<Connection>> {
        let mine = |one: &&Arc<Connection>| one.device == caller.device().device_id;
        self.lock().values().filter(mine).find(|one| one.name.as_deref() == Some(name)).cloned()
    }

    /// As [`named`](Self::named); waits [`HELLO`] for one that is just beginning. Cancellation safe.
    pub(super) async fn expected(&self, caller: &Caller, name: &str) -> Option<Arc<Connection>> {
        let mut entered = self.entered.subscribe();
        let found = async {
            loop {
                entered.borrow_and_update();
                if let Some(found) = self.named(caller, name) {
                    return Some(found);
                }
                entered.changed().await.ok()?;
            }
        };
        tokio::time::timeout(HELLO, found).await.ok().flatten()
    }

    /// Ends a connection and its streams.
    pub(super) fn end(&self, connection: &Connection) {
        self.lock().remove(&connection.id);
        connection.end();
    }
}

fn too_many(status: StatusCode, words: String) -> Problem {
    Problem::new(status, "too_many_connections", words).retry_after(5)
}

/// Ends a connection when its time has come.
async fn live(all: Connections, state: AppState, caller: Caller, connection: Arc<Connection>) {
    let mut revocations = state.auth.revocations();
    // Whoever was revoked between the check and here.
    revocations.mark_changed();
    let mut stop = state.stop.clone();
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
                if changed.is_err() || !state.auth.is_enrolled(&caller) {
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
    /// What its client calls it.
    name: Option<String>,
    idle: Duration,
    /// `None` once it has ended: then its client is in no session any more, whatever its streams still do.
    peer: Mutex<Option<Peer>>,
    inner: Mutex<Inner>,
    /// Told whenever a stream must look again.
    pub(super) turned: watch::Sender<u64>,
    pub(super) ended: watch::Sender<bool>,
}

pub(super) struct Inner {
    /// `None`: the connection's own.
    pub(super) lanes: BTreeMap<Option<SessionId>, Lane>,
    /// Messages that are being worked on.
    flights: usize,
    /// For what the lanes keep for the client.
    charge: Charge,
    /// Streams that are open.
    pub(super) streams: usize,
    pub(super) idle_since: Instant,
}

impl Connection {
    /// Its identifier on the wire.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether one stream has everything.
    pub(super) fn is_named(&self) -> bool {
        self.name.is_some()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn turn(&self) {
        self.turned.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn end(&self) {
        self.ended.send_replace(true);
        let peer = self.peer().take();
        drop(peer);
        self.turn();
    }

    pub(super) fn peer(&self) -> MutexGuard<'_, Option<Peer>> {
        self.peer.lock()
    }

    /// When it ends unless something happens; `None` while it is in use.
    fn idle_at(&self) -> Option<Instant> {
        let inner = self.lock();
        (inner.streams == 0 && inner.flights == 0).then(|| inner.idle_since + self.idle)
    }

    /// Takes one message, a request or not. What comes of it is begun before this returns, so that messages are taken in
    /// their order; what it comes to will be on a stream. `charge` is kept until then.
    ///
    /// # Errors
    /// 404 `connection_not_found` if it has ended just now; 429 `stream_not_open` if too many responses wait to be read, `busy` if too much is asked at once.
    pub(super) fn message(self: &Arc<Self>, text: &str, is_request: bool, charge: Charge) -> Result<(), Problem> {
        {
            let mut inner = self.lock();
            let waiting: usize = inner.lanes.values().map(|lane| lane.waiting.len()).sum();
            let bytes: usize = inner.lanes.values().flat_map(|lane| &lane.waiting).map(|one| one.json.len()).sum();
            let full = if is_request { waiting + inner.flights >= IN_FLIGHT || bytes >= WAITING } else { false };
            if full || inner.flights + waiting >= MESSAGES {
                let busy = |code, words| Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, code, words).retry_after(1));
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
        let reply = self.peer().as_mut().ok_or_else(super::http::no_connection)?.message(text);
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

    /// Puts responses where the client reads: on the session's stream if it is open, else on the connection's.
    fn deliver(&self, sent: Vec<Sent>) {
        {
            let mut inner = self.lock();
            for Sent { session, json, .. } in sent {
                let open = session.is_some() && inner.lanes.get(&session).is_some_and(|lane| lane.open);
                let lane = if open { session } else { None };
                inner.lanes.entry(lane).or_default().push(json);
            }
            self.settle(&mut inner);
        }
        // Also where there is none: the client may be in another session now.
        self.turn();
    }

    /// Charges what the lanes have come to keep, and gives back what they have let go of. A connection whose client leaves
    /// more waiting than it may ends; the client begins again, and its sessions go on from its cursors.
    pub(super) fn settle(&self, inner: &mut Inner) {
        let kept = inner.lanes.values().map(Lane::bytes).sum();
        if kept != inner.charge.bytes() && inner.charge.resize(kept).is_err() {
            tracing::debug!("an ACP connection is closed: too much output is waiting for its client");
            self.ended.send_replace(true);
        }
    }

    /// A stream: the connection's own, or a session's; `known` says whether the client may see that session.
    ///
    /// # Errors
    /// 404 `session_not_found` or `connection_not_found`, 429 `too_many_streams`.
    pub(super) fn stream(
        self: &Arc<Self>,
        session: Option<SessionId>,
        known: bool,
        start: Start,
    ) -> Result<Stream, Problem> {
        let seat = {
            let peer = self.peer();
            let peer = peer.as_ref().ok_or_else(super::http::no_connection)?;
            session.clone().map(|session| (peer.sessions(), peer.session_stream(session)))
        };
        let mut inner = self.lock();
        if let Some((sessions, seat)) = seat
            && !inner.lanes.contains_key(&session)
        {
            if inner.lanes.len() > STREAMS {
                // Sessions that the client has left need none.
                inner.lanes.retain(|of, lane| lane.open || of.as_ref().is_none_or(|of| sessions.contains(of)));
            }
            if inner.lanes.len() > STREAMS {
                let words = format!("a connection may have the streams of at most {STREAMS} sessions");
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", words));
            }
            let ahead = inner.lanes.keys().flatten().filter(|of| !sessions.contains(of)).count();
            if !known && ahead >= AHEAD {
                return Err(super::http::no_session());
            }
            inner.lanes.insert(session.clone(), Lane::over(seat));
        }
        inner.streams += 1;
        let lane = inner.lanes.entry(session.clone()).or_default();
        lane.streams += 1;
        lane.open = true;
        let of_lane = (lane.streams, Arc::clone(&lane.seats));
        drop(inner);
        // Whoever had it before looks, and ends.
        self.turn();
        Ok(Stream::new(Arc::clone(self), session, of_lane, start))
    }
}

/// A message that is being worked on.
struct Flight {
    connection: Arc<Connection>,
    /// For what it says.
    _charge: Charge,
}

impl Flight {
    /// It has come to this.
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
