//! The ledger: the memory that the gateway holds for each peer, and its limits.
//!
//! A buffer that a peer can make grow is charged to an [`Account`] *before* it grows. A [`Charge`] is released when it is dropped, so it
//! is stored beside the bytes it represents. A charge counts in its account and in each of its parents:
//!
//! ```text
//! gateway ─┬─ strangers ─── connection      unauthenticated connections
//!          ├─ clients ─── device ─── connection
//!          └─ agents ─── runtime ─── session
//! exempt                                    one text at a time that is longer than the others allow
//! ```
//!
//! | at the limit of  | what happens                                                                                     |
//! |------------------|--------------------------------------------------------------------------------------------------|
//! | strangers        | the connection that is unauthenticated for longest is closed                                     |
//! | clients, device, connection | a request is refused, `over_limit` (429; 503 if others filled it) with `Retry-After`; a reader is disconnected and resumes with its cursor (4008, or the end of the body); a WebSocket with an incomplete message is closed (1013) |
//! | agents, runtime  | nothing more is read from the agent until its account has space again                            |
//! | session          | a prompt is refused, `over_limit`                                                                |
//!
//! Clients cannot use the memory that agents need: the clients' limit is below the gateway's by at least [`LedgerLimits::APART`]. Devices
//! that hold much cannot use the last part of the clients' limit, so small requests of other devices still succeed. docs/limits.md lists
//! the buffers whose limits peers can notice. Only the table of names takes a lock.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The whole gateway.
    Gateway,
    /// All unauthenticated connections.
    Strangers,
    /// All devices.
    Clients,
    /// One device, with all its connections.
    Device,
    /// One connection, or one request of it.
    Connection,
    /// All runtimes.
    Agents,
    /// One runtime, with its sessions.
    Runtime,
    /// One session.
    Session,
    /// The holder of [`Exempt`].
    Exempt,
}

impl Class {
    /// All variants.
    pub const ALL: [Self; 9] = [
        Self::Gateway,
        Self::Strangers,
        Self::Clients,
        Self::Device,
        Self::Connection,
        Self::Agents,
        Self::Runtime,
        Self::Session,
        Self::Exempt,
    ];

    /// Returns the name in metrics, in the configuration and in refusals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Strangers => "strangers",
            Self::Clients => "clients",
            Self::Device => "device",
            Self::Connection => "connection",
            Self::Agents => "agents",
            Self::Runtime => "runtime",
            Self::Session => "session",
            Self::Exempt => "exempt",
        }
    }
}

/// The limit of each account, in bytes. The defaults are for a machine of 1 GiB; docs/limits.md has the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLimits {
    /// The whole gateway.
    pub gateway: usize,
    /// All unauthenticated connections.
    pub strangers: usize,
    /// All devices.
    pub clients: usize,
    /// One device.
    pub device: usize,
    /// One connection.
    pub connection: usize,
    /// All runtimes.
    pub agents: usize,
    /// One runtime.
    pub runtime: usize,
    /// One session.
    pub session: usize,
    /// The limit of the holder of [`Exempt`]: derived from the maximum line of an agent, and never refused.
    pub exempt: usize,
}

impl LedgerLimits {
    /// Number of bytes of the gateway's limit that clients cannot take from agents.
    pub const APART: usize = 64 << 20;

    /// Returns the limit of each account of a class.
    pub fn for_class(&self, class: Class) -> usize {
        match class {
            Class::Gateway => self.gateway,
            Class::Strangers => self.strangers,
            Class::Clients => self.clients,
            Class::Device => self.device,
            Class::Connection => self.connection,
            Class::Agents => self.agents,
            Class::Runtime => self.runtime,
            Class::Session => self.session,
            Class::Exempt => self.exempt,
        }
    }

    /// Raises the limits so that an agent's line of `line` bytes and [`APART`](Self::APART) fit.
    #[must_use]
    pub fn with_capacity_for(self, line: usize) -> Self {
        let runtime = self.runtime.max(line.saturating_add(READ_AHEAD));
        let agents = self.agents.max(runtime);
        let clients = self.clients.max(self.strangers);
        Self {
            gateway: self.gateway.max(agents).max(clients.saturating_add(Self::APART)),
            clients,
            agents,
            runtime,
            exempt: line.saturating_mul(AGENT_FOOTPRINT),
            ..self
        }
    }
}

/// Number of bytes charged for each byte of an agent's output until it is stored: its line, the value read from it, the event, and the
/// text that the store writes. Measured: a line of 63 MiB takes 209 MiB (docs/limits.md).
pub const AGENT_FOOTPRINT: usize = 4;
/// Number of bytes charged for each byte of a client's body or message until it is processed: its bytes, and the value read from them.
pub const CLIENT_FOOTPRINT: usize = 2;

/// Maximum number of bytes of a device that counts as small. The last part (one in [`RESERVED_PART`]) of the clients' limit is reserved
/// for such devices.
const SMALL_DEVICE: usize = 1 << 20;
/// Divisor of the clients' limit: that part is reserved for devices below [`SMALL_DEVICE`].
const RESERVED_PART: usize = 8;

/// Number of bytes that an incomplete line needs besides its own: the read that brings its end.
const READ_AHEAD: usize = 256 << 10;

impl Default for LedgerLimits {
    fn default() -> Self {
        Self {
            gateway: 192 << 20,
            strangers: 32 << 20,
            clients: 96 << 20,
            device: 64 << 20,
            connection: 36 << 20,
            agents: 96 << 20,
            runtime: 80 << 20,
            session: 32 << 20,
            exempt: AGENT_FOOTPRINT * (64 << 20),
        }
    }
}

/// The error that an account is full.
#[derive(Clone, Debug)]
pub struct LedgerFull {
    /// The kind of the account.
    pub class: Class,
    /// The account's limit, in bytes.
    pub limit: usize,
}

impl fmt::Display for LedgerFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}'s limit of {} bytes is reached", self.class.as_str(), self.limit)
    }
}

impl std::error::Error for LedgerFull {}

/// The sum over all accounts of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The class.
    pub class: Class,
    /// Number of bytes that the accounts of the class hold.
    pub used: usize,
    /// The limit of each account, in bytes.
    pub limit: usize,
    /// The number of charges that were refused or had to wait.
    pub refusals: u64,
}

/// An account that is near its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The account's class.
    pub class: Class,
    /// The account's name; empty if the class has one account.
    pub name: Box<str>,
    /// Number of bytes charged.
    pub used: usize,
    /// The limit, in bytes.
    pub limit: usize,
}

/// All accounts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    shared: Arc<LedgerShared>,
}

#[derive(Debug)]
struct LedgerShared {
    limits: LedgerLimits,
    classes: Arc<[ClassCounters; Class::ALL.len()]>,
    strangers: Account,
    clients: Account,
    agents: Account,
    exempt: Account,
    exemption: Arc<Semaphore>,
    named: Mutex<NamedAccounts>,
}

/// Accounts that are shared by name: a device's, a runtime's. An account without a holder no longer exists.
type NamedAccounts = HashMap<(Class, Box<str>), Weak<Node>>;

/// The counters of a class.
#[derive(Debug, Default)]
struct ClassCounters {
    used: AtomicUsize,
    refusals: AtomicU64,
}

#[derive(Debug)]
struct Node {
    class: Class,
    name: Box<str>,
    limit: usize,
    used: AtomicUsize,
    freed: Notify,
    classes: Arc<[ClassCounters; Class::ALL.len()]>,
    parent: Option<Account>,
}

/// An account. Cheap to clone: all clones are one account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Node>);

/// Bytes charged to an account, until dropped.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(LedgerLimits::default())
    }
}

impl Ledger {
    /// Makes a ledger with empty accounts.
    pub fn new(limits: LedgerLimits) -> Self {
        let classes: Arc<[ClassCounters; Class::ALL.len()]> = Arc::default();
        let one = |class, parent| Account::new(class, "", limits.for_class(class), &classes, parent);
        let gateway = one(Class::Gateway, None);
        let strangers = one(Class::Strangers, Some(gateway.clone()));
        let clients = one(Class::Clients, Some(gateway.clone()));
        let agents = one(Class::Agents, Some(gateway));
        let exempt = one(Class::Exempt, None);
        Self {
            shared: Arc::new(LedgerShared {
                classes,
                strangers,
                clients,
                agents,
                exempt,
                exemption: Arc::new(Semaphore::new(1)),
                named: Mutex::default(),
                limits,
            }),
        }
    }

    /// Returns the limits of all accounts.
    pub fn limits(&self) -> &LedgerLimits {
        &self.shared.limits
    }

    /// Returns the account of all unauthenticated connections.
    pub fn strangers(&self) -> &Account {
        &self.shared.strangers
    }

    /// Makes a new account for a connection, or for a request, of the device of that name.
    pub fn connection(&self, device: &str) -> Account {
        self.child_account(Class::Connection, device, self.named(Class::Device, device, &self.shared.clients))
    }

    /// Returns the account of the runtime of that name.
    pub fn runtime(&self, name: &str) -> Account {
        self.named(Class::Runtime, name, &self.shared.agents)
    }

    /// Returns the account of a session of a runtime.
    pub fn session(&self, name: &str, runtime: &str) -> Account {
        self.named(Class::Session, name, &self.runtime(runtime))
    }

    fn child_account(&self, class: Class, name: &str, parent: Account) -> Account {
        Account::new(class, name, self.shared.limits.for_class(class), &self.shared.classes, Some(parent))
    }

    /// Returns the account of that name. It exists as long as a handle of it or a charge to it.
    fn named(&self, class: Class, name: &str, parent: &Account) -> Account {
        let mut named = self.shared.named.lock();
        if let Some(node) = named.get(&(class, name.into())).and_then(Weak::upgrade) {
            return Account(node);
        }
        if named.len() == named.capacity() {
            named.retain(|_, node| node.strong_count() > 0);
        }
        let account = self.child_account(class, name, parent.clone());
        named.insert((class, name.into()), Arc::downgrade(&account.0));
        account
    }

    /// Waits for the exemption, which one holder at a time has: an agent until its line is stored, because several agents in the middle
    /// of long lines would wait for each other forever; or an export while it folds an event that is longer than its account.
    /// Cancellation safe.
    pub async fn exempt(&self) -> Exempt {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.shared.exemption).acquire_owned().await.ok();
        Exempt { charge: self.shared.exempt.nothing(), _permit: permit }
    }

    /// Returns the sums of all classes.
    pub fn sums(&self) -> Vec<Sum> {
        let sum = |class: Class| {
            let ClassCounters { used, refusals } = &self.shared.classes[class as usize];
            let (used, refusals) = (used.load(Ordering::Relaxed), refusals.load(Ordering::Relaxed));
            Sum { class, used, limit: self.shared.limits.for_class(class), refusals }
        };
        Class::ALL.into_iter().map(sum).collect()
    }

    /// Returns the accounts that have used at least `percent` of their limit. Connections are left out, since their device counts them.
    pub fn near(&self, percent: usize) -> Vec<Near> {
        let LedgerShared { strangers, clients, agents, named, .. } = &*self.shared;
        let mut all: Vec<Arc<Node>> = [strangers, clients, agents].map(|account| Arc::clone(&account.0)).into();
        all.extend(agents.0.parent.as_ref().map(|gateway| Arc::clone(&gateway.0)));
        all.extend(named.lock().values().filter_map(Weak::upgrade));
        let near = |node: Arc<Node>| {
            let (used, limit) = (node.used.load(Ordering::Relaxed), node.limit);
            (used / percent.max(1) >= limit / 100).then(|| Near {
                class: node.class,
                name: node.name.clone(),
                used,
                limit,
            })
        };
        all.into_iter().filter_map(near).collect()
    }

    /// Returns the sums in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let sums = self.sums();
        let mut metric = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Sum) -> u64| {
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            for sum in &sums {
                text.push_str(&format!("{name}{{account=\"{}\"}} {}\n", sum.class.as_str(), value(sum)));
            }
        };
        metric("plexus_ledger_bytes", "gauge", "Bytes that the gateway holds for its peers", &|sum| sum.used as u64);
        metric("plexus_ledger_limit_bytes", "gauge", "Limit of each account, in bytes", &|sum| sum.limit as u64);
        metric("plexus_ledger_refusals_total", "counter", "Charges refused because an account was full", &|sum| {
            sum.refusals
        });
        text
    }
}

impl Account {
    fn new(
        class: Class,
        name: &str,
        limit: usize,
        classes: &Arc<[ClassCounters; Class::ALL.len()]>,
        parent: Option<Self>,
    ) -> Self {
        let (used, freed, classes) = (AtomicUsize::new(0), Notify::new(), Arc::clone(classes));
        Self(Arc::new(Node { class, name: name.into(), limit, used, freed, classes, parent }))
    }

    /// Returns this account and its parents.
    fn chain(&self) -> impl Iterator<Item = &Arc<Node>> {
        std::iter::successors(Some(&self.0), |node| node.parent.as_ref().map(|parent| &parent.0))
    }

    /// Returns the number of bytes charged now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the maximum that this account can ever hold, in bytes: the lowest of its limit and its parents' limits.
    pub fn max(&self) -> usize {
        self.chain().map(|node| node.limit_for(true)).fold(usize::MAX, usize::min)
    }

    /// Makes an empty charge, to be grown.
    pub fn nothing(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    /// Charges `bytes` more.
    ///
    /// # Errors
    /// [`LedgerFull`] if this account or a parent is full; then nothing is charged.
    pub fn charge(&self, bytes: usize) -> Result<Charge, LedgerFull> {
        self.try_charge(bytes).map_err(|(full, _)| {
            full.counters().refusals.fetch_add(1, Ordering::Relaxed);
            LedgerFull { class: full.class, limit: full.limit }
        })?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Charges `bytes` that may stay for as long as the peer wants: only the first half of each account below the gateway's is for such
    /// charges, so that short-lived ones always fit.
    ///
    /// # Errors
    /// [`LedgerFull`] with half of the account's limit; then nothing is charged.
    pub fn charge_long_lived(&self, bytes: usize) -> Result<Charge, LedgerFull> {
        let half = |node: &&Arc<Node>| {
            node.class != Class::Gateway && node.used.load(Ordering::Acquire).saturating_add(bytes) > node.limit / 2
        };
        if let Some(full) = self.chain().find(half) {
            full.counters().refusals.fetch_add(1, Ordering::Relaxed);
            return Err(LedgerFull { class: full.class, limit: full.limit / 2 });
        }
        self.charge(bytes)
    }

    /// Charges `bytes` as soon as they fit; more than the limit is charged as the limit. The caller must not hold a charge that others
    /// wait for. Cancellation safe.
    pub async fn wait(&self, bytes: usize) -> Charge {
        let bytes = bytes.min(self.max());
        let mut waited = false;
        loop {
            let (full, limit) = match self.try_charge(bytes) {
                Ok(()) => return Charge { account: self.clone(), bytes },
                Err(full) => full,
            };
            if !std::mem::replace(&mut waited, true) {
                full.counters().refusals.fetch_add(1, Ordering::Relaxed);
            }
            let mut freed = std::pin::pin!(full.freed.notified());
            // Registered before the second check, so that a release between the two is not missed.
            freed.as_mut().enable();
            if full.used.load(Ordering::Acquire).saturating_add(bytes) > limit {
                freed.await;
            }
        }
    }

    /// Charges `bytes`, or returns the full account and its limit for this account.
    fn try_charge(&self, bytes: usize) -> Result<(), (Arc<Node>, usize)> {
        let mut large_device = false;
        for (n, node) in self.chain().enumerate() {
            let limit = node.limit_for(large_device);
            let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
            let Ok(before) = node.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) else {
                self.chain().take(n).for_each(|node| node.release(bytes));
                return Err((Arc::clone(node), limit));
            };
            large_device |= node.class == Class::Device && before + bytes > SMALL_DEVICE;
            node.counters().used.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Node {
    /// Returns the limit, for a device above [`SMALL_DEVICE`] (`large_device`) or for all others.
    fn limit_for(&self, large_device: bool) -> usize {
        let reserved = if large_device && self.class == Class::Clients { self.limit / RESERVED_PART } else { 0 };
        self.limit - reserved
    }

    fn counters(&self) -> &ClassCounters {
        &self.classes[self.class as usize]
    }

    fn release(&self, bytes: usize) {
        self.counters().used.fetch_sub(bytes, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        self.freed.notify_waiters();
    }
}

impl Charge {
    /// Returns the number of bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the charge to `bytes` in all.
    ///
    /// # Errors
    /// [`LedgerFull`] if there is no space for more; then the charge is unchanged.
    pub fn resize(&mut self, bytes: usize) -> Result<(), LedgerFull> {
        if bytes > self.bytes {
            let more = self.account.charge(bytes - self.bytes)?;
            // `more` is part of this charge now.
            self.bytes += more.into_bytes();
        } else {
            let less = self.bytes - bytes;
            self.bytes = bytes;
            self.account.chain().filter(|_| less > 0).for_each(|node| node.release(less));
        }
        Ok(())
    }

    /// Adds another charge to the same account to this one.
    pub fn join(&mut self, other: Self) {
        self.bytes += other.into_bytes();
    }

    /// Splits off a charge of `bytes`, or of the whole charge if it is smaller.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { account: self.account.clone(), bytes }
    }

    fn into_bytes(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.account.chain().filter(|_| bytes > 0).for_each(|node| node.release(bytes));
    }
}

/// The exemption from the limits; one at a time. Its bytes are in no other account: an agent that stops in the middle of a long line
/// takes nothing from clients and other agents.
#[derive(Debug)]
pub struct Exempt {
    charge: Charge,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Exempt {
    /// Returns the number of bytes charged.
    pub fn bytes(&self) -> usize {
        self.charge.bytes
    }

    /// Changes the charge to `bytes` in all, regardless of the limit.
    pub fn resize(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.charge.bytes);
        if more == 0 {
            // Reducing a charge always succeeds.
            let _ = self.charge.resize(bytes);
            return;
        }
        self.charge.bytes += more;
        let node = &self.charge.account.0;
        node.used.fetch_add(more, Ordering::AcqRel);
        node.counters().used.fetch_add(more, Ordering::Relaxed);
    }
}

/// Bytes with the charge for them.
#[derive(Debug)]
pub struct Charged<T> {
    bytes: T,
    _charge: Charge,
}

impl<T> Charged<T> {
    /// Makes a value of bytes and their charge.
    pub fn new(bytes: T, charge: Charge) -> Self {
        Self { bytes, _charge: charge }
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests;
