//! The pipes between a session and its runtime's driver. Sessions own both ends' types, so that the back door depends on
//! the heart and never the other way round.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
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

/// Batches from the driver that a session's mailbox holds; when it is full the driver waits, and then the agent does.
pub const INLET: usize = 64;

/// Orders that a runtime's driver holds; when it is full, further ones wait with who gives them, in order.
pub const ORDERS: usize = 256;

/// Sessions found in a runtime that wait to be opened; further ones are left out until the runtime is attached again.
pub const FOUND: usize = 256;

/// Where a driver puts what a runtime says of one session.
#[derive(Clone, Debug)]
pub struct SessionSender {
    tx: mpsc::Sender<RuntimeMessage>,
}

/// What a session hears of its runtime.
#[derive(Debug)]
pub enum RuntimeMessage {
    /// What it said, in order: all of one read, so that one commit keeps it. With it, where a runtime that may outlive
    /// the gateway stood then.
    Said(Vec<RuntimeEvent>, Option<Ack>),
    /// A runtime that outlived the gateway was found again, and has said all that was missed: what it still waits for.
    Found {
        /// Questions of any of its sessions.
        asks: Vec<RequestKey>,
        /// Prompts of any of its sessions.
        prompts: Vec<Ticket>,
    },
    /// The runtime is gone.
    Gone(RuntimeExit),
}

/// Up to where a batch goes in a runtime's output. Dropped once the batch is kept (or its session is gone): what the
/// runtime's holder keeps of it is then needed no more.
#[derive(Debug)]
pub struct Ack {
    /// Bytes of output, from the runtime's start: what was said by then is in this batch or an earlier one. Absent where
    /// nobody keeps that output for a gateway that comes after this one.
    pub offset: Option<u64>,
    /// When the driver had understood it.
    pub heard: Instant,
    from: u64,
    ledger: Arc<AckTracker>,
}

impl Drop for Ack {
    fn drop(&mut self) {
        let mut lent = self.ledger.under_way();
        if let Some(count) = lent.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                lent.remove(&self.from);
            }
        }
        drop(lent);
        self.ledger.news.notify_one();
    }
}

/// What of a runtime's output is on its way to sessions and not kept yet.
#[derive(Debug, Default)]
pub struct AckTracker {
    /// Where batches under way begin, and how many begin there.
    under_way: Mutex<BTreeMap<u64, usize>>,
    news: Notify,
}

impl AckTracker {
    /// A batch that goes from one offset to another is on its way. `held`: a holder keeps what was said until this is.
    pub fn track(self: &Arc<Self>, from: u64, offset: u64, held: bool) -> Ack {
        *self.under_way().entry(from).or_default() += 1;
        Ack { offset: held.then_some(offset), heard: Instant::now(), from, ledger: Arc::clone(self) }
    }

    /// Up to where everything is kept, of what was heard up to `heard`.
    pub fn kept_up_to(&self, heard: u64) -> u64 {
        self.under_way().keys().next().map_or(heard, |first| heard.min(*first))
    }

    /// Waits until more may be kept than the last time. Cancellation safe.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.under_way.lock()
    }
}

impl SessionSender {
    /// A new inlet and the end that the session reads.
    pub fn new() -> (Self, mpsc::Receiver<RuntimeMessage>) {
        let (tx, rx) = mpsc::channel(INLET);
        (Self { tx }, rx)
    }

    /// Puts a batch; waits while the mailbox is full. Cancellation safe: a batch is either put or not. A session that is
    /// gone takes nothing and that is fine: nobody is left to care.
    pub async fn put(&self, batch: RuntimeMessage) {
        let _ = self.tx.send(batch).await;
    }

    /// Whether nobody reads it any more.
    pub fn is_closed(&self) -> bool {
        self.tx.is_closed()
    }

    /// Whether both lead to the same session.
    pub fn same(&self, other: &Self) -> bool {
        self.tx.same_channel(&other.tx)
    }
}

/// An order for a runtime.
#[derive(Debug)]
pub struct RuntimeOrder {
    /// What to do.
    pub command: RuntimeCommand,
    /// Where to put what comes of it; with [`RuntimeCommand::Open`], also where the new session's events go from then on.
    pub inlet: SessionSender,
    /// Which start of the runtime it is meant for; a later one ignores it.
    pub generation: u64,
    /// When the answer came that it passes on.
    pub pressed: Option<Instant>,
}

/// The gateway's end of a runtime's driver.
#[derive(Clone, Debug)]
pub struct RuntimeLink {
    orders: mpsc::Sender<RuntimeOrder>,
    stop: Arc<Notify>,
    info: watch::Receiver<Arc<RuntimeInfo>>,
    found: Arc<Mutex<Option<mpsc::Receiver<FoundSession>>>>,
    journal: StderrLog,
    spec: Arc<OnceLock<RuntimeSpec>>,
    was_found: bool,
}

/// Room for one order.
pub type OrderPermit = mpsc::OwnedPermit<RuntimeOrder>;

/// A session that somebody else opened in a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// The runtime's name for it.
    pub native: NativeId,
    /// The folder it works in, where known.
    pub cwd: Option<String>,
    /// Its title, where known.
    pub title: Option<String>,
}

/// The driver's end.
#[derive(Debug)]
pub struct DriverEnd {
    /// What the gateway wants. Closed when nobody can want anything any more.
    pub orders: mpsc::Receiver<RuntimeOrder>,
    /// Told once when the runtime is to stop for good.
    pub stop: Arc<Notify>,
    /// Where the driver shows how the runtime stands.
    pub info: watch::Sender<Arc<RuntimeInfo>>,
    /// Where it puts the sessions that others opened. When it is full, one is left out, and said to be.
    pub found: mpsc::Sender<FoundSession>,
    /// Where it writes down what the runtime says to stderr.
    pub journal: StderrLog,
    /// What the runtime was started with, where only its driver finds that out.
    pub spec: Arc<OnceLock<RuntimeSpec>>,
}

/// The runtime takes no orders: its queue is full, or it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRejected {
    /// [`ORDERS`] wait already.
    Full,
    /// Its driver is gone.
    Gone,
}

impl RuntimeLink {
    /// A link to a runtime that stands as `info`.
    pub fn new(info: RuntimeInfo) -> (Self, DriverEnd) {
        let (orders, orders_rx) = mpsc::channel(ORDERS);
        let (info_tx, info_rx) = watch::channel(Arc::new(info));
        let stop = Arc::new(Notify::new());
        let (found, found_rx) = mpsc::channel(FOUND);
        let journal = StderrLog::default();
        let spec = Arc::default();
        let end = DriverEnd {
            orders: orders_rx,
            stop: Arc::clone(&stop),
            info: info_tx,
            found,
            journal: journal.clone(),
            spec: Arc::clone(&spec),
        };
        (
            Self {
                orders,
                stop,
                info: info_rx,
                found: Arc::new(Mutex::new(Some(found_rx))),
                journal,
                spec,
                was_found: false,
            },
            end,
        )
    }

    /// Gives an order, at once: a session never waits for a runtime.
    ///
    /// # Errors
    /// [`OrderRejected`], and the order.
    pub fn order(&self, order: RuntimeOrder) -> Result<(), (OrderRejected, Box<RuntimeOrder>)> {
        self.orders.try_send(order).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(order) => (OrderRejected::Full, Box::new(order)),
            mpsc::error::TrySendError::Closed(order) => (OrderRejected::Gone, Box::new(order)),
        })
    }

    /// Waits for room for an order, behind all who wait already; `None` if its driver is gone.
    pub fn room(&self) -> impl Future<Output = Option<OrderPermit>> + Send + 'static {
        let orders = self.orders.clone();
        async move { orders.reserve_owned().await.ok() }
    }

    /// Marks it as one to a runtime that an earlier gateway left.
    pub fn found_again(self) -> Self {
        Self { was_found: true, ..self }
    }

    /// Whether its runtime was left by an earlier gateway.
    pub fn was_found(&self) -> bool {
        self.was_found
    }

    /// What the runtime was started with, where its driver had to find that out.
    pub fn spec(&self) -> Option<&RuntimeSpec> {
        self.spec.get()
    }

    /// Tells the driver to stop the runtime for good: stdin closed, TERM, KILL, reaped, no restart.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// The sessions that others open in the runtime, for the one who asks first.
    pub fn take_found(&self) -> Option<mpsc::Receiver<FoundSession>> {
        self.found.lock().take()
    }

    /// What the runtime wrote to stderr of late.
    pub fn journal(&self) -> &StderrLog {
        &self.journal
    }

    /// How the runtime stands.
    pub fn info(&self) -> Arc<RuntimeInfo> {
        Arc::clone(&self.info.borrow())
    }

    /// Returns once its driver is gone: nobody takes an order any more, nobody answers one that was given. Cancellation safe.
    pub async fn ended(&self) {
        let mut info = self.watch();
        while info.changed().await.is_ok() {}
    }

    /// Told whenever the runtime stands differently; closed when its driver has ended.
    pub fn watch(&self) -> watch::Receiver<Arc<RuntimeInfo>> {
        self.info.clone()
    }
}

/// Starts runtimes: the back door, as the heart sees it.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a driver for `spec` and returns its link at once; the runtime's progress shows in [`RuntimeLink::info`].
    ///
    /// # Errors
    /// In words with the fix: an unknown dialect, an endpoint kind that is not supported.
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String>;

    /// How its runtimes reach the clients of their sessions.
    fn clients(&self) -> ClientRouter {
        ClientRouter::default()
    }

    /// The gateway's own folder: no session works in it, and nothing in it is read or written for an agent.
    fn private_folder(&self) -> Option<PathBuf> {
        None
    }

    /// The runtimes that outlived an earlier gateway: each is to be [taken over](Self::reattach), or
    /// [ended](Self::dismiss), or left alone and said to be; once.
    fn left(&self) -> Pin<Box<dyn Future<Output = Vec<OrphanedRuntime>> + Send + '_>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Takes over a runtime that [`left`](Self::left) named, with the sessions that go on in it.
    ///
    /// # Errors
    /// In words: it is gone meanwhile.
    fn reattach(&self, left: &OrphanedRuntime, _sessions: Vec<ReattachedSession>) -> Result<RuntimeLink, String> {
        Err(format!("there is no runtime {} to take over", left.id))
    }

    /// Ends a runtime that [`left`](Self::left) named and nobody goes on with. Returns at once.
    fn dismiss(&self, _left: &OrphanedRuntime) {}

    /// Ends whatever still runs under this name from before, so that a start or an end of the runtime leaves nothing
    /// beside it. To be called while none is driven under it.
    fn clear<'a>(&'a self, _id: &'a RuntimeId) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

/// A runtime that outlived an earlier gateway.
#[derive(Clone, Debug)]
pub struct OrphanedRuntime {
    /// Its name.
    pub id: RuntimeId,
    /// Tells it from others of the same name.
    pub place: usize,
    /// What is known of it.
    pub known: OrphanState,
}

/// What is known of a runtime that outlived an earlier gateway.
#[derive(Clone, Debug)]
pub enum OrphanState {
    /// All that there is to know.
    All {
        /// What it was started with.
        spec: Box<RuntimeSpec>,
        /// Which start of it lives.
        generation: u64,
        /// Names its process.
        instance: String,
        /// Its holder is of the release 0.1.0: sessions know it by its generation, until they were taken over once.
        nameless: bool,
        /// Its process.
        pid: u32,
        /// When that was started.
        started_at: Timestamp,
    },
    /// Its holder has not answered yet, and why; it is waited for once it is taken over.
    Late(String),
    /// It cannot be spoken with, and why.
    Unusable(String),
}

/// Which process a session belongs to, as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStart {
    /// Names the process; `None` if the release 0.1.0 kept it.
    pub instance: Option<String>,
    /// Which start of the runtime it is.
    pub generation: u64,
    /// Up to where the session has heard it.
    pub mark: Option<RuntimeMark>,
}

impl ProcessStart {
    /// Whether it is this process.
    pub fn belongs(&self, instance: &str, nameless: bool, generation: u64) -> bool {
        match &self.instance {
            Some(known) => known == instance,
            None => nameless && self.generation == generation,
        }
    }

    /// Up to where the session has heard this process, to which it belongs.
    pub fn last_stop(&self, instance: &str, nameless: bool) -> u64 {
        let of = |mark: &RuntimeMark| {
            mark.generation == number(Some(instance), 0) || (nameless && mark.generation == self.generation)
        };
        self.mark.filter(of).map_or(0, |mark| mark.offset)
    }
}

/// A process as a number, for marks: made of its instance, or the generation where the release 0.1.0 knew no more. The
/// two never meet: one has the second highest bit set, the other counts from 1. Fits in 63 bits.
pub fn number(instance: Option<&str>, generation: u64) -> u64 {
    let Some(instance) = instance else { return generation };
    let digest = Sha256::digest(instance);
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    (u64::from_be_bytes(first) >> 2) | 1 << 62
}

/// A session that goes on in a runtime that outlived the gateway.
#[derive(Debug)]
pub struct ReattachedSession {
    /// The runtime's name for it.
    pub native: NativeId,
    /// Where to put what is said of it.
    pub inlet: SessionSender,
    /// Which process it belongs to.
    pub start: ProcessStart,
    /// What was said up to here it has heard.
    pub heard: u64,
    /// The questions it knows, open or answered.
    pub asks: Vec<RequestKey>,
    /// The prompt it waits for.
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
        // One that the release 0.1.0 kept belongs to holders of that release alone.
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
