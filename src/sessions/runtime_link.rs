//! The channels between sessions and the drivers of runtimes. The types of both ends are here, so that `runtimes` depends on `sessions`
//! and never the other way round.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc, watch};

use super::StderrLog;
use super::client_calls::ClientRouter;
use plexus_dialects::{RequestKey, RuntimeCommand, RuntimeEvent};
pub use plexus_protocol::RuntimeExit;
use plexus_protocol::{NativeId, RuntimeId, RuntimeInfo, RuntimeSpec, Ticket, Timestamp};
use plexus_store::RuntimeMark;

/// Capacity of the queue to one session, in batches of runtime events; when the queue is full, the driver waits, and so does the agent.
pub const EVENT_BATCHES: usize = 64;

/// Capacity of the queue of a runtime's driver, in orders; when the queue is full, senders wait in order.
pub const ORDERS: usize = 256;

/// Capacity of a runtime's queue of found sessions that are to be opened; further ones are left out until the runtime is attached again.
pub const FOUND: usize = 256;

/// The driver's end of the channel to one session.
#[derive(Clone, Debug)]
pub struct SessionSender {
    tx: mpsc::Sender<RuntimeMessage>,
}

/// A message from a driver to a session.
#[derive(Debug)]
pub enum RuntimeMessage {
    /// The runtime's events of one read, in order, to be stored by one commit; with the position in its output.
    Events(Vec<RuntimeEvent>, Option<Ack>),
    /// A runtime that outlived the gateway was reattached, and all its missed events were sent.
    Found {
        /// The open requests of all its sessions.
        asks: Vec<RequestKey>,
        /// The running prompts of all its sessions.
        prompts: Vec<Ticket>,
    },
    /// The runtime ended.
    Exited(RuntimeExit),
}

/// The end of a batch in the runtime's output. Dropped once the batch is stored, or its session has ended: then the runtime's holder may
/// drop the output up to there.
#[derive(Debug)]
pub struct Ack {
    /// Offset in the output, in bytes from the runtime's start: all output before it is in this batch or an earlier one. Absent if no
    /// holder retains the output for a later gateway.
    pub offset: Option<u64>,
    /// The time when the driver had parsed the batch.
    pub received: Instant,
    from: u64,
    tracker: Arc<AckTracker>,
}

impl Drop for Ack {
    fn drop(&mut self) {
        let mut pending = self.tracker.pending();
        if let Some(count) = pending.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                pending.remove(&self.from);
            }
        }
        drop(pending);
        self.tracker.stored.notify_one();
    }
}

/// The batches of a runtime's output that are not stored yet.
#[derive(Debug, Default)]
pub struct AckTracker {
    /// The offsets at which pending batches begin, with the number of batches at each.
    pending: Mutex<BTreeMap<u64, usize>>,
    /// Notified whenever a batch was stored.
    stored: Notify,
}

impl AckTracker {
    /// Tracks a batch from offset `from` to `offset`. `held`: whether a holder retains the output until the batch is stored.
    pub fn track(self: &Arc<Self>, from: u64, offset: u64, held: bool) -> Ack {
        *self.pending().entry(from).or_default() += 1;
        Ack { offset: held.then_some(offset), received: Instant::now(), from, tracker: Arc::clone(self) }
    }

    /// Returns the offset up to which all output is stored, of the output parsed up to `parsed`.
    pub fn stored_up_to(&self, parsed: u64) -> u64 {
        self.pending().keys().next().map_or(parsed, |first| parsed.min(*first))
    }

    /// Waits until another batch is stored. Cancellation safe.
    pub async fn changed(&self) {
        self.stored.notified().await;
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.pending.lock()
    }
}

impl SessionSender {
    /// Makes a new channel: the sender, and the end that the session reads.
    pub fn new() -> (Self, mpsc::Receiver<RuntimeMessage>) {
        let (tx, rx) = mpsc::channel(EVENT_BATCHES);
        (Self { tx }, rx)
    }

    /// Sends a batch; waits while the queue is full. Cancellation safe: a batch is either sent or not. A batch for a session that has
    /// ended is dropped.
    pub async fn put(&self, batch: RuntimeMessage) {
        let _ = self.tx.send(batch).await;
    }

    /// Returns whether the session's end is closed.
    pub fn is_closed(&self) -> bool {
        self.tx.is_closed()
    }

    /// Returns whether both senders lead to the same session.
    pub fn same(&self, other: &Self) -> bool {
        self.tx.same_channel(&other.tx)
    }
}

/// A command for a runtime, with the destination of its results.
#[derive(Debug)]
pub struct RuntimeOrder {
    /// The command.
    pub command: RuntimeCommand,
    /// The session that gets the results; with [`RuntimeCommand::Open`], it also gets the new session's events from then on.
    pub sender: SessionSender,
    /// The start of the runtime that the command is meant for; a later start ignores it.
    pub generation: u64,
    /// The time when the gateway received the answer that the command carries, for the latency metrics.
    pub answered_at: Option<Instant>,
}

/// Behavior of a runtime, as observed by its sessions.
#[derive(Debug, Default)]
pub struct RuntimeBehavior {
    /// `true` if a user permanently allowed the runtime something, so that it need not ask again.
    always: AtomicBool,
    /// The first action that the runtime took without asking.
    acted: OnceLock<String>,
    changed: Notify,
}

impl RuntimeBehavior {
    /// Records the observations of a session.
    pub fn record(&self, acted: Option<&str>, always: bool) {
        self.always.fetch_or(always, Ordering::Relaxed);
        if let Some(acted) = acted
            && self.acted.get().is_none()
            && self.acted.set(acted.to_owned()).is_ok()
        {
            self.changed.notify_one();
        }
    }

    /// Returns whether a user permanently allowed the runtime something.
    pub fn allowed_always(&self) -> bool {
        self.always.load(Ordering::Relaxed)
    }

    /// Returns the first action that the runtime took without asking.
    pub fn acted_unasked(&self) -> Option<&str> {
        self.acted.get().map(String::as_str)
    }

    /// Waits until the runtime has acted without asking. Cancellation safe.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The gateway's end of a runtime's driver.
#[derive(Clone, Debug)]
pub struct RuntimeLink {
    orders: mpsc::Sender<RuntimeOrder>,
    stop: Arc<Notify>,
    released: Arc<AtomicBool>,
    info: watch::Receiver<Arc<RuntimeInfo>>,
    found: Arc<Mutex<Option<mpsc::Receiver<FoundSession>>>>,
    stderr_log: StderrLog,
    spec: Arc<OnceLock<RuntimeSpec>>,
    was_found: bool,
    behavior: Arc<RuntimeBehavior>,
}

/// A reserved slot for one order in the driver's queue.
pub type OrderPermit = mpsc::OwnedPermit<RuntimeOrder>;

/// A session that another client opened in a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// The session's native id.
    pub native: NativeId,
    /// The session's folder, if known.
    pub cwd: Option<String>,
    /// The session's title, if known.
    pub title: Option<String>,
}

/// The driver's end of a [`RuntimeLink`].
#[derive(Debug)]
pub struct DriverEnd {
    /// The queue of orders; closed when all senders are dropped.
    pub orders: mpsc::Receiver<RuntimeOrder>,
    /// The signal to stop for good, or to release the runtime; notified once.
    pub stop: Arc<Notify>,
    /// `true` if the runtime was released: see [`RuntimeLink::release`].
    pub released: Arc<AtomicBool>,
    /// The channel on which the driver publishes the runtime's state.
    pub info: watch::Sender<Arc<RuntimeInfo>>,
    /// The channel on which the driver reports sessions that other clients opened. When its queue is full, a session is left out with a
    /// warning.
    pub found: mpsc::Sender<FoundSession>,
    /// The runtime's stderr.
    pub stderr_log: StderrLog,
    /// The spec that the runtime was started with, set by the driver if the gateway does not have it.
    pub spec: Arc<OnceLock<RuntimeSpec>>,
    /// Behavior of the runtime, as observed by its sessions.
    pub behavior: Arc<RuntimeBehavior>,
}

/// The reason why an order was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRejected {
    /// The queue already has [`ORDERS`] orders.
    Full,
    /// The runtime's driver has ended.
    Closed,
}

impl RuntimeLink {
    /// Makes a link to a runtime in the state `info`, and the driver's end.
    pub fn new(info: RuntimeInfo) -> (Self, DriverEnd) {
        let (orders, orders_rx) = mpsc::channel(ORDERS);
        let (info_tx, info_rx) = watch::channel(Arc::new(info));
        let (stop, released) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (found, found_rx) = mpsc::channel(FOUND);
        let stderr_log = StderrLog::default();
        let spec = Arc::default();
        let behavior = Arc::<RuntimeBehavior>::default();
        let end = DriverEnd {
            orders: orders_rx,
            stop: Arc::clone(&stop),
            released: Arc::clone(&released),
            info: info_tx,
            found,
            stderr_log: stderr_log.clone(),
            spec: Arc::clone(&spec),
            behavior: Arc::clone(&behavior),
        };
        (
            Self {
                orders,
                stop,
                released,
                info: info_rx,
                found: Arc::new(Mutex::new(Some(found_rx))),
                stderr_log,
                spec,
                was_found: false,
                behavior,
            },
            end,
        )
    }

    /// Queues an order without waiting, because a session never waits for a runtime.
    ///
    /// # Errors
    /// [`OrderRejected`], with the order.
    pub fn order(&self, order: RuntimeOrder) -> Result<(), (OrderRejected, Box<RuntimeOrder>)> {
        self.orders.try_send(order).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(order) => (OrderRejected::Full, Box::new(order)),
            mpsc::error::TrySendError::Closed(order) => (OrderRejected::Closed, Box::new(order)),
        })
    }

    /// Waits in line for a slot in the driver's queue; `None` if the driver has ended.
    pub fn reserve(&self) -> impl Future<Output = Option<OrderPermit>> + Send + 'static {
        let orders = self.orders.clone();
        async move { orders.reserve_owned().await.ok() }
    }

    /// Marks the runtime as one that an earlier gateway left.
    pub fn found_again(self) -> Self {
        Self { was_found: true, ..self }
    }

    /// Returns whether an earlier gateway left the runtime.
    pub fn was_found(&self) -> bool {
        self.was_found
    }

    /// Returns the spec that the runtime was started with, if the driver had to determine it.
    pub fn spec(&self) -> Option<&RuntimeSpec> {
        self.spec.get()
    }

    /// Requests the driver to stop the runtime for good: stdin closed, TERM, KILL, reaped, no restart.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Requests the driver of an endpoint to release it, because the endpoint has ended. Its sessions end, and continue when the endpoint
    /// is attached again: their runs and requests wait for that. A program is stopped.
    pub fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
        self.stop.notify_one();
    }

    /// Returns the sessions that other clients open in the runtime. `None` after the first call.
    pub fn take_found(&self) -> Option<mpsc::Receiver<FoundSession>> {
        self.found.lock().take()
    }

    /// Returns the behavior of the runtime, as observed by its sessions.
    pub fn behavior(&self) -> &RuntimeBehavior {
        &self.behavior
    }

    /// Returns the last lines of the runtime's stderr.
    pub fn stderr_log(&self) -> &StderrLog {
        &self.stderr_log
    }

    /// Returns the runtime's state.
    pub fn info(&self) -> Arc<RuntimeInfo> {
        Arc::clone(&self.info.borrow())
    }

    /// Waits until the driver has ended: it then neither accepts orders nor responds to earlier ones. Cancellation safe.
    pub async fn ended(&self) {
        let mut info = self.watch();
        while info.changed().await.is_ok() {}
    }

    /// Returns a watch of the runtime's state; closed when its driver has ended.
    pub fn watch(&self) -> watch::Receiver<Arc<RuntimeInfo>> {
        self.info.clone()
    }
}

/// Starts runtimes. Implemented by the `runtimes` module.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a driver for `spec` and returns its link at once; [`RuntimeLink::info`] returns the runtime's progress.
    ///
    /// # Errors
    /// A message with the fix: an unknown dialect, an endpoint kind that is not supported.
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String>;

    /// Checks that `spec` can be started: its folder and its program exist.
    ///
    /// # Errors
    /// A message with the fix.
    fn check_start<'a>(
        &'a self,
        _spec: &'a RuntimeSpec,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the channel from the runtimes to the clients of their sessions.
    fn clients(&self) -> ClientRouter {
        ClientRouter::default()
    }

    /// Returns the gateway's own folder: no session works in it, and nothing in it is read or written for an agent.
    fn private_folder(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the runtimes that outlived an earlier gateway. Called once; each of them has to be [taken over](Self::reattach),
    /// [ended](Self::dismiss), or left alone and reported.
    fn left(&self) -> Pin<Box<dyn Future<Output = Vec<OrphanedRuntime>> + Send + '_>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Takes over a runtime that [`left`](Self::left) returned, with the sessions that continue in it.
    ///
    /// # Errors
    /// A message: the runtime has ended meanwhile.
    fn reattach(&self, left: &OrphanedRuntime, _sessions: Vec<ReattachedSession>) -> Result<RuntimeLink, String> {
        Err(format!("there is no runtime {} to take over", left.id))
    }

    /// Ends a runtime that [`left`](Self::left) returned. Returns at once.
    fn dismiss(&self, _left: &OrphanedRuntime) {}

    /// Ends all processes that earlier gateways left under this runtime's name, so that a start or stop of the runtime leaves no
    /// second one. To be called while the runtime has no driver.
    fn clear<'a>(&'a self, _id: &'a RuntimeId) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

/// A runtime that outlived an earlier gateway.
#[derive(Clone, Debug)]
pub struct OrphanedRuntime {
    /// The runtime's identifier.
    pub id: RuntimeId,
    /// Distinguishes runtimes with the same identifier.
    pub index: usize,
    /// The known state of the process.
    pub state: OrphanState,
}

/// The known state of the process of an [`OrphanedRuntime`].
#[derive(Clone, Debug)]
pub enum OrphanState {
    /// The holder responded.
    All {
        /// The spec that the runtime was started with.
        spec: Box<RuntimeSpec>,
        /// The start of the runtime that is alive.
        generation: u64,
        /// The name of the process.
        instance: String,
        /// `true` if the holder is of release 0.1.0: sessions refer to the process by generation until they were taken over once.
        nameless: bool,
        /// The process id.
        pid: u32,
        /// The time when the process was started.
        started_at: Timestamp,
    },
    /// The holder has not responded yet. Contains the reason. A gateway that takes the runtime over waits for the holder.
    Late(String),
    /// The holder cannot be used. Contains the reason.
    Unusable(String),
}

/// The runtime process that a session runs in, as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStart {
    /// The name of the process; `None` if release 0.1.0 stored the session.
    pub instance: Option<String>,
    /// The start of the runtime.
    pub generation: u64,
    /// The output that the session has processed.
    pub mark: Option<RuntimeMark>,
}

impl ProcessStart {
    /// Returns whether the session runs in this process.
    pub fn belongs(&self, instance: &str, nameless: bool, generation: u64) -> bool {
        match &self.instance {
            Some(expected) => expected == instance,
            None => nameless && self.generation == generation,
        }
    }

    /// Returns the offset up to which the session has processed the output of this process, in which it runs.
    pub fn last_stop(&self, instance: &str, nameless: bool) -> u64 {
        let same_process = |mark: &RuntimeMark| {
            mark.generation == number(Some(instance), 0) || (nameless && mark.generation == self.generation)
        };
        self.mark.filter(same_process).map_or(0, |mark| mark.offset)
    }
}

/// Returns the number of a process in marks: a hash of its instance, or the generation for processes of release 0.1.0. The two do not
/// collide: hashes have the second highest bit set, generations count from 1. The number fits in 63 bits.
pub fn number(instance: Option<&str>, generation: u64) -> u64 {
    let Some(instance) = instance else { return generation };
    let digest = Sha256::digest(instance);
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    (u64::from_be_bytes(first) >> 2) | 1 << 62
}

/// A session that continues in a runtime that outlived the gateway.
#[derive(Debug)]
pub struct ReattachedSession {
    /// The session's native id.
    pub native: NativeId,
    /// The channel to the session.
    pub sender: SessionSender,
    /// The process that the session runs in.
    pub start: ProcessStart,
    /// The offset in the output up to which the session has processed it.
    pub processed: u64,
    /// The session's requests, open or answered.
    pub asks: Vec<RequestKey>,
    /// The session's running prompt.
    pub prompt: Option<Ticket>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_start_belongs_to_the_named_process_only() {
        let start = |instance: Option<&str>, generation, mark| ProcessStart {
            instance: instance.map(str::to_owned),
            generation,
            mark,
        };
        let named = start(Some("i_a"), 1, None);
        assert!(named.belongs("i_a", false, 1) && named.belongs("i_a", false, 7));
        assert!(!named.belongs("i_b", false, 1), "the same generation is no proof");
        // A session stored by the release 0.1.0 matches only holders of that release.
        let old = start(None, 2, None);
        assert!(old.belongs("p_7_100", true, 2));
        assert!(!old.belongs("p_7_100", true, 1) && !old.belongs("i_a", false, 2));
    }

    #[test]
    fn process_start_ignores_marks_of_other_processes() {
        let mark = |generation| Some(RuntimeMark { generation, offset: 99 });
        let start = |instance: &str, mark| ProcessStart { instance: Some(instance.into()), generation: 1, mark };
        let of = |instance| number(Some(instance), 1);
        assert_eq!(start("i_a", mark(of("i_a"))).last_stop("i_a", false), 99);
        assert_eq!(start("i_a", mark(of("i_b"))).last_stop("i_a", false), 0);
        assert_eq!(start("i_a", mark(1)).last_stop("i_a", false), 0);
        // Taken over from the release 0.1.0 a moment ago: the row may be newer than the mark.
        assert_eq!(start("p_7_100", mark(1)).last_stop("p_7_100", true), 99);
        assert!(of("i_a") > u64::from(u32::MAX) && i64::try_from(of("i_a")).is_ok());
        assert_eq!(number(None, 3), 3);
    }
}
