//! Fan-out: a subscriber is a cursor. One file because the pump and the connections share one order of locks: connection, then tail;
//! never two connections, never a lock across an await.
//!
//! A [`EventFan`] encodes each event once and holds the newest bytes as its *hot tail*. The subscribers in the tail are served straight
//! from it: by the fan's pump as long as the socket accepts everything at once, else by the connection's own task. A subscriber that is
//! behind the tail, or new, is *cold*: its own task reads pages from the log until it reaches the tail. No queue per subscriber, and no
//! event is dropped.

use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::tail::{Batch, ENVELOPE, Fresh, Tail, spanned};
use super::frames::{ActivityStart, Encoder, Framing, Notification, SessionView};
use super::own_frames::OwnFrames;
use plexus_ledger::{Account, Charge};
use plexus_metrics::{Subscribed, Subscriber, metrics};
use plexus_protocol::api::rpc::Projection;
use plexus_protocol::api::stream::{Lag, Live};
use plexus_protocol::{Cursor, Position, SessionId};
use plexus_sessions::{Directory, EventWatch, Filter, Log};
use plexus_store::{ReadLimit, StoreError};

/// Maximum size of a fan's tail while one of its subscribers is behind, in bytes; a subscriber that is further behind reads the log.
pub const HOT_TAIL: usize = 1 << 20;
/// Maximum size of the tail while no subscriber is behind, in bytes: the distance from which a cold subscriber can join the tail.
const QUIET_TAIL: usize = 256 << 10;
/// Maximum size of the events of one batch, in bytes (as frames about twice that, if they are small); one event is never split. A blocked
/// or cold subscriber holds one batch at most.
const BATCH: usize = 32 << 10;
/// Maximum number of events in one batch.
const BATCH_EVENTS: usize = 512;
/// Maximum number of bytes that the pump encodes before it writes: a burst is merged, but a long one does not delay all subscribers.
const GATHER: usize = 512 << 10;
/// Maximum number of slices in one vectored write.
const SLICES: usize = 16;
/// Number of sockets that the pump writes to before it yields to other tasks: about a tenth of a millisecond.
const TURN: usize = 32;
/// Time for which a socket may accept nothing, while there is data for it, before the connection is closed.
pub const STALL: Duration = Duration::from_secs(30);
/// Time that the pump or a connection waits before it reads the store again after a failure.
const STORE_RETRY: Duration = Duration::from_millis(200);

/// The properties of subscribers that see the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FanKey {
    /// The filter of events.
    pub filter: Filter,
    /// The parts of the events.
    pub projection: Projection,
    /// The framing of the transport.
    pub framing: Framing,
}

/// All fans of the gateway. Cheap to clone.
#[derive(Clone)]
pub struct Fans {
    shared: Arc<Registry>,
}

struct Registry {
    log: Log,
    view: SessionView,
    activity_start: ActivityStart,
    stall: Duration,
    fans: Mutex<HashMap<FanKey, Weak<EventFan>>>,
}

impl Fans {
    /// Makes a set without fans, over a directory and its log. A connection whose socket accepts nothing for `stall` ([`STALL`]) is
    /// closed.
    pub fn for_directory(directory: &Directory, stall: Duration) -> Self {
        let (sessions, activities) = (directory.clone(), directory.clone());
        let activity_start = Arc::new(move |id: &SessionId| activities.activity_position(id));
        Self::new(directory.log().clone(), Arc::new(move |id| sessions.session(id)), activity_start, stall)
    }

    /// Makes a set without fans. A connection whose socket accepts nothing for `stall` is closed.
    pub fn new(log: Log, view: SessionView, activity_start: ActivityStart, stall: Duration) -> Self {
        Self { shared: Arc::new(Registry { log, view, activity_start, stall, fans: Mutex::default() }) }
    }

    /// Returns the log that the fans read.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Returns the time for which a client may read nothing while there is data for it.
    pub(super) fn stall(&self) -> Duration {
        self.shared.stall
    }

    /// Returns an encoder that makes frames of events.
    pub(super) fn encoder(&self, projection: Projection, framing: Framing) -> Encoder {
        let Registry { log, view, activity_start, .. } = &*self.shared;
        let (view, activity_start) = (Arc::clone(view), Arc::clone(activity_start));
        Encoder { epoch: log.epoch().clone(), projection, framing, view, activity_start }
    }

    /// Returns the fan for `key`: the existing one, or a new one that ends when its last handle is dropped.
    pub fn fan(&self, key: FanKey) -> Arc<EventFan> {
        let mut fans = lock(&self.shared.fans);
        if let Some(fan) = fans.get(&key).and_then(Weak::upgrade) {
            return fan;
        }
        let log = self.shared.log.clone();
        // Registered before the head is read, so that no later event is missed.
        let watch = log.watch_for(&key.filter);
        let head = log.head();
        let core = Arc::new(Core {
            filter: key.filter.clone(),
            encoder: self.encoder(key.projection, key.framing),
            log,
            watch,
            joined: AtomicBool::new(false),
            tail: RwLock::new(Tail { start: head, end: head, bytes: 0, batches: VecDeque::new() }),
            members: Mutex::default(),
        });
        let pump = tokio::spawn(pump(Arc::clone(&core))).abort_handle();
        let fan = Arc::new(EventFan { core, key: key.clone(), registry: Arc::downgrade(&self.shared), pump });
        fans.insert(key, Arc::downgrade(&fan));
        fan
    }
}

/// The subscribers of one filter in one projection over one transport.
pub struct EventFan {
    core: Arc<Core>,
    key: FanKey,
    registry: Weak<Registry>,
    pump: tokio::task::AbortHandle,
}

impl Drop for EventFan {
    fn drop(&mut self) {
        self.pump.abort();
        if let Some(registry) = self.registry.upgrade() {
            let mut fans = lock(&registry.fans);
            // A new fan may have been registered since the last handle was dropped.
            if fans.get(&self.key).is_some_and(|fan| fan.strong_count() == 0) {
                fans.remove(&self.key);
            }
        }
    }
}

struct Core {
    filter: Filter,
    encoder: Encoder,
    log: Log,
    /// The signal of events that the fan carries; without one, the pump does not run and the tail stays where it was.
    watch: EventWatch,
    /// `true` if a subscriber joined whose replay ends after the tail's end.
    joined: AtomicBool,
    tail: RwLock<Tail>,
    members: Mutex<Members>,
}

/// The subscribers: those whose answers an agent may wait for, and the rest.
#[derive(Default)]
struct Members {
    answering: Slots,
    watching: Slots,
}

#[derive(Default)]
struct Slots {
    slots: Vec<Option<Arc<Conn>>>,
    free: Vec<usize>,
}

impl Slots {
    fn insert(&mut self, conn: Arc<Conn>) -> usize {
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(conn);
            return slot;
        }
        self.slots.push(Some(conn));
        self.slots.len() - 1
    }

    fn remove(&mut self, slot: usize) {
        if self.slots.get_mut(slot).and_then(Option::take).is_some() {
            self.free.push(slot);
        }
        if self.free.len() == self.slots.len() {
            *self = Self::default();
        }
    }
}

impl Members {
    fn slots_for(&mut self, answers: bool) -> &mut Slots {
        if answers { &mut self.answering } else { &mut self.watching }
    }
}

impl Core {
    fn tail(&self) -> parking_lot::RwLockReadGuard<'_, Tail> {
        self.tail.read()
    }

    fn tail_mut(&self) -> parking_lot::RwLockWriteGuard<'_, Tail> {
        self.tail.write()
    }

    /// Encodes the events of the log after the tail's end, up to [`GATHER`]. Returns the addition to the tail, and the time when the
    /// gateway received the first event in it.
    async fn gather(&self) -> Result<(Option<Fresh>, Option<std::time::Instant>), StoreError> {
        let limit = ReadLimit { events: BATCH_EVENTS, bytes: BATCH };
        let (mut fresh, mut received): (Option<Fresh>, _) = (None, None);
        let (mut end, since) = {
            let tail = self.tail();
            (tail.end, tail.batches.back().map_or(tail.start, |batch| batch.last))
        };
        while fresh.as_ref().is_none_or(|fresh| fresh.bytes < GATHER) {
            let page = match self.log.read_hot(&self.filter, end, limit) {
                Some(page) => page,
                None => Box::pin(self.log.read(&self.filter, end, limit)).await?,
            };
            if page.next <= end {
                break;
            }
            let batch = (!page.events.is_empty()).then(|| Batch::encode(&self.encoder, &page.events, end, page.next));
            end = page.next;
            let mut tail = self.tail_mut();
            tail.end = end;
            received = received.or(page.received);
            if let Some(batch) = batch {
                let fresh = fresh.get_or_insert_with(|| Fresh {
                    since,
                    after: batch.after,
                    last: batch.last,
                    frames: Vec::new(),
                    bytes: 0,
                });
                fresh.bytes += batch.bytes.len();
                fresh.frames.push((batch.last, batch.bytes.clone()));
                fresh.last = batch.last;
                tail.bytes += batch.bytes.len();
                tail.batches.push_back(batch);
                tail.shrink_to(HOT_TAIL);
            }
        }
        Ok((fresh, received))
    }

    /// Writes to every socket that accepts data, first to subscribers that may answer. Returns whether a subscriber in the tail is
    /// behind.
    async fn flush_all(&self, fresh: Option<&Fresh>) -> bool {
        let slices: Vec<IoSlice<'_>> =
            fresh.into_iter().flat_map(|fresh| &fresh.frames).map(|(_, frames)| IoSlice::new(frames)).collect();
        let fresh = fresh.filter(|_| slices.len() <= SLICES);
        let mut behind = false;
        for answers in [true, false] {
            let mut at = 0;
            loop {
                let (some, more) = {
                    let mut members = lock(&self.members);
                    let slots = &members.slots_for(answers).slots;
                    let end = (at + TURN).min(slots.len());
                    let some: Vec<Arc<Conn>> = slots[at.min(end)..end].iter().flatten().cloned().collect();
                    at = end;
                    (some, end < slots.len())
                };
                for conn in &some {
                    let flow = fresh.and_then(|fresh| conn.flush_fresh(self, fresh, &slices));
                    behind |= flow.unwrap_or_else(|| conn.flush(false)) == Flow::Blocked;
                }
                drop(some);
                if !more {
                    break;
                }
                // A request that arrives meanwhile is not delayed by a thousand watchers.
                tokio::task::yield_now().await;
            }
        }
        behind
    }
}

async fn pump(core: Arc<Core>) {
    loop {
        // Read before the log: a subscriber that joins after that wakes the pump once more.
        let joined = core.joined.swap(false, Ordering::AcqRel);
        match core.gather().await {
            Ok((fresh, received)) => {
                let grown = fresh.is_some();
                if (grown || joined) && !core.flush_all(fresh.as_ref()).await {
                    core.tail_mut().shrink_to(QUIET_TAIL);
                }
                if let Some(received) = received {
                    metrics().delivery.observe(received.elapsed().as_secs_f64());
                }
                if !grown {
                    core.watch.changed().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "subscribers are waiting: the log cannot be read");
                core.joined.fetch_or(joined, Ordering::AcqRel);
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
}

/// The state of a connection after a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Everything is written.
    Done,
    /// The socket accepts no more data at present.
    Blocked,
    /// A subscription must read the log: [`Conn::catch_up`].
    Cold,
    /// The connection has failed.
    Dead,
}

/// A client's socket and its subscriptions.
///
/// The task that serves a connection calls [`flush`](Self::flush) with `own` set whenever `needs_attention` returns, until it gets
/// [`Flow::Done`]; [`leave`](Self::leave) at the end removes the connection from its fans.
pub struct Conn {
    socket: Arc<TcpStream>,
    log: Log,
    framing: Framing,
    /// The label of its subscriptions in the metrics.
    transport: Subscriber,
    stall: Duration,
    wakeup: Notify,
    account: Account,
    state: Mutex<State>,
}

struct State {
    /// The unwritten rest of a batch.
    rest: Bytes,
    /// The charge for the rest of a page that was read for this connection alone; the tail's batches are shared.
    page: Option<Charge>,
    out: OwnFrames,
    subs: Vec<SubscriberState>,
    /// `true` if the connection's own task writes, and not the pump.
    own: bool,
    dead: bool,
    /// The time when the socket last accepted data, or had none to accept.
    progress: Instant,
}

struct SubscriberState {
    /// The requested name: a session's id, or `*`.
    name: Arc<str>,
    fan: Arc<EventFan>,
    slot: usize,
    answers: bool,
    position: Position,
    /// The end of the replay, after which `live` is sent.
    live_at: Option<Position>,
    /// `true` if `live` carries an id, because no earlier event did.
    live_id: bool,
    /// `true` if the subscriber reads the log. `fell`: its distance from the head when it fell behind the tail.
    cold: bool,
    fell: Option<u64>,
    _counted: Subscribed,
}

impl Notification for Live {
    const METHOD: &'static str = "gateway.live";
}

impl Notification for Lag {
    const METHOD: &'static str = "gateway.lag";
}

/// Appends `live`; `with_id`: the cursor is the event's id as well.
pub(super) fn put_live(out: &mut Vec<u8>, framing: Framing, name: &str, head: Cursor, with_id: bool) {
    let id = with_id.then(|| head.clone());
    framing.notify(out, id.as_ref(), "live", &Live { session_id: name.to_owned(), head });
}

/// Appends `lag`.
pub(super) fn put_lag(out: &mut Vec<u8>, framing: Framing, name: &str, head: Cursor, behind: u64) {
    framing.notify(out, None, "lag", &Lag { session_id: name.to_owned(), head, behind });
}

/// A subscription to add.
pub struct Subscribe {
    /// The requested name: a session's id, or `*`.
    pub name: Arc<str>,
    /// The fan to subscribe to.
    pub fan: Arc<EventFan>,
    /// `true` if the client can and may answer requests: it is served first.
    pub answers: bool,
    /// The position after which the subscription begins.
    pub after: Position,
    /// The position after which `live` is sent.
    pub live_at: Position,
    /// `true` if `live` carries a cursor of its own on transports that have one.
    pub live_id: bool,
}

impl Conn {
    /// Makes a connection without subscriptions. Frames that wait for its client are charged to `account`.
    pub fn new(fans: &Fans, socket: Arc<TcpStream>, framing: Framing, account: Account) -> Arc<Self> {
        let transport = match framing {
            Framing::WebSocket => Subscriber::WebSocket,
            Framing::Sse | Framing::SseBody => Subscriber::Sse,
        };
        Arc::new(Self {
            socket,
            log: fans.shared.log.clone(),
            framing,
            transport,
            stall: fans.shared.stall,
            wakeup: Notify::new(),
            state: Mutex::new(State {
                rest: Bytes::new(),
                page: None,
                out: OwnFrames::new(&account),
                subs: Vec::new(),
                own: false,
                dead: false,
                progress: Instant::now(),
            }),
            account,
        })
    }

    /// Returns the connection's account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns whether the unsent frames exceed the account's limit: the connection is then closed, and the client resumes at its cursor.
    pub fn is_over_limit(&self) -> bool {
        lock(&self.state).out.is_over_limit()
    }

    /// Returns the socket.
    pub fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Waits until the connection's own task has work to do.
    pub async fn needs_attention(&self) {
        self.wakeup.notified().await;
    }

    /// Wakes the connection's own task.
    pub fn wake(&self) {
        self.wakeup.notify_one();
    }

    /// Returns the time at which the connection is closed if the socket accepts nothing until then.
    pub fn stalls_at(&self) -> Instant {
        lock(&self.state).progress + self.stall
    }

    /// Returns the size of the connection's own frames that wait, in bytes.
    pub fn backlog(&self) -> usize {
        lock(&self.state).out.waiting().len()
    }

    /// Appends the connection's own frames (whole ones) and does not write yet.
    pub fn push(&self, frames: impl FnOnce(&mut Vec<u8>)) {
        lock(&self.state).out.push(frames);
    }

    /// Adds a subscription. `hello` (whole frames) comes first. The subscription is cold until the own task has flushed.
    pub fn subscribe(self: &Arc<Self>, subscribe: Subscribe, hello: &[u8]) {
        self.unsubscribe(&subscribe.name);
        let Subscribe { name, fan, answers, after, live_at, live_id } = subscribe;
        let mut state = lock(&self.state);
        state.out.push(|out| out.extend_from_slice(hello));
        state.own = true;
        let slot = lock(&fan.core.members).slots_for(answers).insert(Arc::clone(self));
        let core = Arc::clone(&fan.core);
        state.subs.push(SubscriberState {
            name,
            fan,
            slot,
            answers,
            position: after,
            live_at: Some(live_at.max(after)),
            live_id,
            cold: false,
            fell: None,
            _counted: self.transport.count(),
        });
        drop(state);
        if core.tail().end < live_at {
            // The fan had no events for a while: its pump advances to where this replay ends.
            core.joined.store(true, Ordering::Release);
            core.watch.wake();
        }
        self.wake();
    }

    /// Removes the subscription `name`. Returns whether there was one. A partly written frame is completed first.
    pub fn unsubscribe(&self, name: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(at) = state.subs.iter().position(|sub| &*sub.name == name) else { return false };
        let sub = state.subs.swap_remove(at);
        drop(state);
        self.part(&sub);
        true
    }

    /// Removes all subscriptions.
    pub fn leave(&self) {
        let subs = std::mem::take(&mut lock(&self.state).subs);
        for sub in &subs {
            self.part(sub);
        }
    }

    fn part(&self, sub: &SubscriberState) {
        lock(&sub.fan.core.members).slots_for(sub.answers).remove(sub.slot);
        if sub.fell.is_some() {
            metrics().lagging.dec();
        }
    }

    /// Returns the names of the subscriptions, and the position of each.
    pub fn following(&self) -> Vec<(Arc<str>, Cursor)> {
        let state = lock(&self.state);
        let position_of = |sub: &SubscriberState| match sub.live_at {
            // The fan had no events since: the subscriber has everything up to the head.
            None => self.log.level(&sub.fan.core.filter, sub.position).unwrap_or(sub.position),
            Some(_) => sub.position,
        };
        state.subs.iter().map(|sub| (Arc::clone(&sub.name), self.log.cursor(position_of(sub)))).collect()
    }

    /// Returns the number of subscriptions.
    pub fn subscriptions(&self) -> usize {
        lock(&self.state).subs.len()
    }

    /// Writes as much as the socket accepts. The pump (`own` unset) skips a connection whose own task writes.
    pub fn flush(&self, own: bool) -> Flow {
        let mut state = lock(&self.state);
        if state.own && !own {
            // A subscriber in the tail counts as behind, so that the tail is retained for it; a cold one does not use the tail.
            let is_behind = |sub: &SubscriberState| sub.cold || sub.position < sub.fan.core.tail().start;
            return if state.subs.iter().all(is_behind) { Flow::Cold } else { Flow::Blocked };
        }
        let flow = if state.dead { Flow::Dead } else { self.write(&mut state, own) };
        let unfinished = flow != Flow::Done;
        if unfinished && !state.own {
            state.progress = Instant::now();
            self.wake();
        }
        state.own = unfinished;
        state.dead |= flow == Flow::Dead;
        state.out.update_charge();
        flow
    }

    /// Writes the addition to the fan's tail, if this connection has everything before it and nothing else to write: the usual case.
    /// Otherwise returns `None` and does nothing.
    fn flush_fresh(&self, core: &Core, fresh: &Fresh, slices: &[IoSlice<'_>]) -> Option<Flow> {
        let mut state = lock(&self.state);
        let State { rest, out, subs, own, dead, .. } = &mut *state;
        let [sub] = &mut subs[..] else { return None };
        let level = sub.live_at.is_none() && sub.position >= fresh.since && sub.position <= fresh.after;
        let same_fan = std::ptr::eq(Arc::as_ptr(&sub.fan.core), core);
        if *own || *dead || !level || !same_fan || !rest.is_empty() || !out.waiting().is_empty() {
            return None;
        }
        let written = match slices {
            // The kernel takes one buffer a little faster than a list of one.
            [one] => self.socket.try_write(one),
            some => self.socket.try_write_vectored(some),
        };
        let mut left = written.unwrap_or(0);
        if left == fresh.bytes {
            sub.position = fresh.last;
            return Some(Flow::Done);
        }
        for (last, frames) in &fresh.frames {
            if left == 0 {
                break;
            }
            sub.position = *last;
            if left < frames.len() {
                *rest = frames.slice(left..);
                break;
            }
            left -= frames.len();
        }
        // The socket is full, or has failed: the own task determines which.
        state.own = true;
        state.progress = Instant::now();
        self.wake();
        Some(Flow::Blocked)
    }

    fn write(&self, state: &mut State, own: bool) -> Flow {
        loop {
            let (next, cold) = self.choose(state);
            let fan = next.map(|n| Arc::clone(&state.subs[n].fan));
            let tail = fan.as_ref().map(|fan| fan.core.tail());
            let State { rest, page, out, subs, progress, .. } = &mut *state;
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (mut used, mut offered) = (0, 0);
            for own_bytes in [&rest[..], out.waiting()] {
                if !own_bytes.is_empty() {
                    slices[used] = IoSlice::new(own_bytes);
                    used += 1;
                    offered += own_bytes.len();
                }
            }
            let mut sub = next.map(|n| &mut subs[n]);
            let mut span = (Position::START, Position::START, 0);
            if let (Some(sub), Some(tail)) = (&mut sub, &tail) {
                if sub.position < tail.start {
                    // The subscriber fell out of the tail since it was chosen.
                    continue;
                }
                let upto = sub.live_at.unwrap_or(Position(u64::MAX)).min(tail.end);
                span = (sub.position, upto, tail.batches.partition_point(|batch| batch.last <= sub.position));
                for (batch, range) in spanned(tail, span) {
                    if used == SLICES {
                        break;
                    }
                    slices[used] = IoSlice::new(&batch.bytes[range.clone()]);
                    used += 1;
                    offered += range.len();
                }
            }
            if offered == 0 {
                return if cold { Flow::Cold } else { Flow::Done };
            }
            let written = match &slices[..used] {
                // The usual case; the kernel takes one buffer a little faster than a list of one.
                [one] => self.socket.try_write(one),
                some => self.socket.try_write_vectored(some),
            };
            let taken = match written {
                Ok(0) => return Flow::Dead,
                Ok(taken) => taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Flow::Blocked,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Flow::Dead,
            };
            let mut left = taken;
            let from_rest = left.min(rest.len());
            rest.advance(from_rest);
            left -= from_rest;
            if rest.is_empty() {
                // An empty slice of a batch would keep the whole batch in memory.
                *rest = Bytes::new();
                *page = None;
            }
            let from_out = left.min(out.waiting().len());
            out.advance(from_out);
            left -= from_out;
            let mut level = false;
            if let (Some(sub), Some(tail)) = (sub, &tail) {
                for (batch, range) in spanned(tail, span) {
                    if left == 0 {
                        break;
                    }
                    sub.position = batch.last.min(span.1);
                    if left < range.len() {
                        *rest = batch.bytes.slice(range.start + left..range.end);
                        break;
                    }
                    left -= range.len();
                }
                level = sub.live_at.is_none() && sub.position >= tail.end;
            }
            if level && taken == offered && subs.len() == 1 {
                // The usual case: everything is written, and the connection has no other subscription.
                return Flow::Done;
            }
            if own {
                *progress = Instant::now();
            } else if taken < offered {
                // The socket is full: the own task checks that again.
                return Flow::Blocked;
            }
        }
    }

    /// Returns the first subscription that has data in its tail, and whether any must read the log. Sends `live` and `lag` when they are
    /// due.
    fn choose(&self, state: &mut State) -> (Option<usize>, bool) {
        let State { subs, out, .. } = state;
        let out = out.uncharged();
        let mut cold = false;
        for (n, sub) in subs.iter_mut().enumerate() {
            self.say_live(sub, out);
            let fan = Arc::clone(&sub.fan);
            let tail = fan.core.tail();
            if sub.position < tail.start {
                cold = true;
                if !sub.cold {
                    sub.cold = true;
                    if sub.live_at.is_none() {
                        sub.fell = Some(tail.end.0 - sub.position.0);
                        metrics().lagging.inc();
                    }
                }
                continue;
            }
            sub.cold = false;
            if let Some(behind) = sub.fell.take() {
                metrics().lagging.dec();
                put_lag(out, self.framing, &sub.name, self.log.cursor(tail.end), behind);
            }
            loop {
                let upto = sub.live_at.unwrap_or(Position(u64::MAX)).min(tail.end);
                if sub.position >= upto {
                    break;
                }
                let from = tail.batches.partition_point(|batch| batch.last <= sub.position);
                if spanned(&tail, (sub.position, upto, from)).next().is_some() {
                    return (Some(n), cold);
                }
                // No events for the subscription up to there.
                sub.position = upto;
                self.say_live(sub, out);
            }
        }
        (None, cold)
    }

    fn say_live(&self, sub: &mut SubscriberState, out: &mut Vec<u8>) {
        let Some(head) = sub.live_at.filter(|&at| sub.position >= at) else { return };
        sub.live_at = None;
        put_live(out, self.framing, &sub.name, self.log.cursor(head), sub.live_id);
    }

    /// Reads one page of the log for a cold subscription; the next [`flush`](Self::flush) writes it. Waits for a charge to the
    /// connection's account. Only the own task calls it. Cancellation safe.
    ///
    /// # Errors
    /// [`StoreError`]: nothing changed, and the call can be repeated.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let cold = {
            let state = lock(&self.state);
            // A page or own frames are still waiting.
            if !state.rest.is_empty() || !state.out.waiting().is_empty() {
                return Ok(());
            }
            state.subs.iter().find(|sub| sub.cold).map(|sub| {
                let end = sub.fan.core.tail().end;
                (Arc::clone(&sub.fan), sub.position, sub.live_at.unwrap_or(end).min(end))
            })
        };
        let Some((fan, after, upto)) = cold else { return Ok(()) };
        let core = &fan.core;
        let limit = ReadLimit { events: BATCH_EVENTS, bytes: BATCH };
        let mut charged = BATCH;
        // Charged first: of many concurrent subscribers some wait, and the memory for pages is bounded.
        let mut charge = self.account.wait(BATCH).await;
        let page = loop {
            let page = Box::pin(core.log.read(&core.filter, after, limit)).await?;
            let bytes: usize = page.events.iter().map(|event| event.body.len() + ENVELOPE).sum();
            if bytes <= charged || charge.resize(bytes).is_ok() {
                break page;
            }
            // One long event: it is read again once it can be charged.
            drop((page, charge));
            charge = self.account.wait(bytes).await;
            charged = bytes;
        };
        // Not past the fan's own end, so that the tail's next batch repeats nothing.
        let next = page.next.min(upto);
        if next <= after {
            return Err(StoreError::Io(format!("nothing can be read after {after}")));
        }
        let events = &page.events[..page.events.partition_point(|event| event.position <= next)];
        let batch = Batch::encode(&core.encoder, events, after, next);
        let mut state = lock(&self.state);
        let State { rest, page, subs, progress, .. } = &mut *state;
        let sub = subs.iter_mut().find(|sub| Arc::ptr_eq(&sub.fan, &fan) && sub.position == after);
        if let Some(sub) = sub.filter(|_| rest.is_empty()) {
            sub.position = next;
            *rest = batch.bytes;
            *page = Some(charge);
            *progress = Instant::now();
        }
        Ok(())
    }

    /// Reads pages until [`flush`](Self::flush) can make progress; waits between failures of the store. Cancellation safe.
    pub async fn catch_up_or_wait(&self) {
        if let Err(error) = Box::pin(self.catch_up()).await {
            tracing::warn!(%error, "a client is waiting: the log cannot be read");
            tokio::time::sleep(STORE_RETRY).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

mod tail;
#[cfg(test)]
pub(super) mod tests;
