//! The pipes between a session and its runtime's driver. Sessions own both ends' types, so that the back door depends on
//! the heart and never the other way round.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};

use crate::dialects::{Command, Said};
use crate::model::{RuntimeInfo, RuntimeSpec};

/// Batches from the driver that a session's mailbox holds; when it is full the driver waits, and then the agent does.
pub const INLET: usize = 64;

/// Orders that a runtime's driver holds; when it is full the runtime takes nothing any more: it is stuck, and stopped.
pub const ORDERS: usize = 256;

/// Where a driver puts what a runtime says of one session.
#[derive(Clone, Debug)]
pub struct Inlet {
    tx: mpsc::Sender<FromRuntime>,
}

/// What a session hears of its runtime.
#[derive(Debug)]
pub enum FromRuntime {
    /// What it said, in order: all of one read, so that one commit keeps it.
    Said(Vec<Said>),
    /// The runtime is gone.
    Gone(Exit),
}

/// How a runtime's process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exit {
    /// Its exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that killed it (`SIGKILL` …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The end of what it wrote to stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// What the gateway knows of the cause: "stopped by NAME", "cannot start: …", "took no orders for 10 s".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it was asked to stop.
    pub stopped: bool,
}

impl Inlet {
    /// A new inlet and the end that the session reads.
    pub fn new() -> (Self, mpsc::Receiver<FromRuntime>) {
        let (tx, rx) = mpsc::channel(INLET);
        (Self { tx }, rx)
    }

    /// Puts a batch; waits while the mailbox is full. Cancellation safe: a batch is either put or not. A session that is
    /// gone takes nothing and that is fine: nobody is left to care.
    pub async fn put(&self, batch: FromRuntime) {
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
pub struct Order {
    /// What to do.
    pub command: Command,
    /// Where to put what comes of it; with [`Command::Open`], also where the new session's events go from then on.
    pub inlet: Inlet,
    /// Which start of the runtime it is meant for; a later one ignores it.
    pub generation: u64,
}

/// The gateway's end of a runtime's driver.
#[derive(Clone, Debug)]
pub struct Link {
    orders: mpsc::Sender<Order>,
    stop: Arc<Notify>,
    info: watch::Receiver<Arc<RuntimeInfo>>,
}

/// The driver's end.
#[derive(Debug)]
pub struct LinkEnd {
    /// What the gateway wants. Closed when nobody can want anything any more.
    pub orders: mpsc::Receiver<Order>,
    /// Told once when the runtime is to stop for good.
    pub stop: Arc<Notify>,
    /// Where the driver shows how the runtime stands.
    pub info: watch::Sender<Arc<RuntimeInfo>>,
}

/// The runtime takes no orders: its queue is full, or it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOrders {
    /// [`ORDERS`] wait already: it is stuck.
    Full,
    /// Its driver is gone.
    Gone,
}

impl Link {
    /// A link to a runtime that stands as `info`.
    pub fn new(info: RuntimeInfo) -> (Self, LinkEnd) {
        let (orders, orders_rx) = mpsc::channel(ORDERS);
        let (info_tx, info_rx) = watch::channel(Arc::new(info));
        let stop = Arc::new(Notify::new());
        let end = LinkEnd { orders: orders_rx, stop: Arc::clone(&stop), info: info_tx };
        (Self { orders, stop, info: info_rx }, end)
    }

    /// Gives an order, at once: a session never waits for a runtime.
    ///
    /// # Errors
    /// [`NoOrders`].
    pub fn order(&self, order: Order) -> Result<(), NoOrders> {
        self.orders.try_send(order).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NoOrders::Full,
            mpsc::error::TrySendError::Closed(_) => NoOrders::Gone,
        })
    }

    /// Tells the driver to stop the runtime for good: stdin closed, TERM, KILL, reaped, no restart.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// How the runtime stands.
    pub fn info(&self) -> Arc<RuntimeInfo> {
        Arc::clone(&self.info.borrow())
    }

    /// Told whenever the runtime stands differently; closed when its driver has ended.
    pub fn watch(&self) -> watch::Receiver<Arc<RuntimeInfo>> {
        self.info.clone()
    }
}

/// Starts runtimes: the back door, as the heart sees it.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a driver for `spec` and returns its link at once; the runtime's progress shows in [`Link::info`].
    ///
    /// # Errors
    /// In words with the fix: an unknown dialect, an endpoint kind that is not supported.
    fn launch(&self, spec: RuntimeSpec) -> Result<Link, String>;
}
