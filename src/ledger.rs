//! The ledger, in one file so that it is read in one go: who makes the gateway hold how many bytes, and how many they may.
//!
//! Whatever a peer can make grow is charged to an [`Account`] *before* it grows. The [`Charge`] is given back when it is
//! dropped, so it lives beside the bytes it stands for. A charge counts in its account and in every one above it:
//!
//! ```text
//! gateway ─┬─ strangers ─── connection      nobody has proved who they are yet
//!          ├─ clients ─── device ─── connection
//!          └─ agents ─── runtime ─── session
//! ```
//!
//! | at the limit of  | what happens                                                                                     |
//! |------------------|--------------------------------------------------------------------------------------------------|
//! | strangers        | the connection that is without a proof for longest is cut off                                    |
//! | clients, device, connection | a request is refused, `over_limit` (429; 503 where others filled it) with `Retry-After`; a reader is cut off and comes back with its cursor (4008, or the end of the body); a WebSocket's message in assembly ends it (1013) |
//! | agents, runtime  | nothing more is read from the agent until there is room again                                    |
//! | session          | a prompt is refused, `over_limit`                                                                |
//!
//! Clients cannot take what agents need: their limit is below the gateway's by at least [`LedgerLimits::APART`]. And devices that
//! hold much cannot take the last of what clients have together: who asks for little is answered all the same.
//! docs/limits.md lists every buffer with its account. Counters only: nothing here locks but the table of names.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Who holds an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// All together.
    Gateway,
    /// All connections without a proof together.
    Strangers,
    /// All devices together.
    Clients,
    /// One device, over all of its connections.
    Device,
    /// One connection, or one request of it.
    Connection,
    /// All runtimes together.
    Agents,
    /// One runtime, its sessions included.
    Runtime,
    /// One session.
    Session,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Gateway,
        Self::Strangers,
        Self::Clients,
        Self::Device,
        Self::Connection,
        Self::Agents,
        Self::Runtime,
        Self::Session,
    ];

    /// Its name, in metrics, in the configuration and in refusals.
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
        }
    }
}

/// How many bytes each account may have. The defaults keep a gateway on a machine of 1 GiB below 512 MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLimits {
    /// All together.
    pub gateway: usize,
    /// All connections without a proof together.
    pub strangers: usize,
    /// All devices together.
    pub clients: usize,
    /// One device.
    pub device: usize,
    /// One connection.
    pub connection: usize,
    /// All runtimes together.
    pub agents: usize,
    /// One runtime.
    pub runtime: usize,
    /// One session.
    pub session: usize,
}

impl LedgerLimits {
    /// Bytes of the gateway's that clients cannot take from agents.
    pub const APART: usize = 64 << 20;

    /// The limit of each account of a class.
    pub fn of(&self, class: Class) -> usize {
        match class {
            Class::Gateway => self.gateway,
            Class::Strangers => self.strangers,
            Class::Clients => self.clients,
            Class::Device => self.device,
            Class::Connection => self.connection,
            Class::Agents => self.agents,
            Class::Runtime => self.runtime,
            Class::Session => self.session,
        }
    }

    /// With room for what must fit: an agent's line of `line` bytes, and [`APART`](Self::APART).
    #[must_use]
    pub fn with_room_for(self, line: usize) -> Self {
        let runtime = self.runtime.max(line.saturating_add(LINE_MORE));
        let agents = self.agents.max(runtime);
        let clients = self.clients.max(self.strangers);
        Self {
            gateway: self.gateway.max(agents).max(clients.saturating_add(Self::APART)),
            clients,
            agents,
            runtime,
            ..self
        }
    }
}

/// Bytes of a device that holds little. Where clients share, the last [`KEPT`]th part is for such devices.
const MODEST: usize = 1 << 20;
/// See [`MODEST`].
const KEPT: usize = 8;

/// What a line in assembly needs beside its own bytes: the read that its end comes with.
const LINE_MORE: usize = 256 << 10;

impl Default for LedgerLimits {
    fn default() -> Self {
        Self {
            gateway: 192 << 20,
            strangers: 32 << 20,
            clients: 96 << 20,
            device: 64 << 20,
            connection: 24 << 20,
            agents: 96 << 20,
            runtime: 80 << 20,
            session: 32 << 20,
        }
    }
}

/// There is no room in an account.
#[derive(Clone, Debug)]
pub struct LedgerFull {
    /// Whose account it is.
    pub class: Class,
    /// What it may have, in bytes.
    pub limit: usize,
}

impl fmt::Display for LedgerFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}'s limit of {} bytes is reached", self.class.as_str(), self.limit)
    }
}

impl std::error::Error for LedgerFull {}

/// What all accounts of a class come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The class.
    pub class: Class,
    /// Bytes that all its accounts hold.
    pub used: usize,
    /// What each of them may have, in bytes.
    pub limit: usize,
    /// How often one was at its limit.
    pub refusals: u64,
}

/// An account that is near its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its class.
    pub class: Class,
    /// Whose it is; empty where there is one of the class.
    pub name: Box<str>,
    /// Bytes that it has.
    pub used: usize,
    /// Bytes that it may have.
    pub limit: usize,
}

/// All accounts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    books: Arc<Books>,
}

#[derive(Debug)]
struct Books {
    limits: LedgerLimits,
    classes: Arc<[Tally; Class::ALL.len()]>,
    strangers: Account,
    clients: Account,
    agents: Account,
    exempt: Arc<Semaphore>,
    named: Mutex<Named>,
}

/// Accounts that are shared by a name: a device's, a runtime's. One that nobody holds any more is gone.
type Named = HashMap<(Class, Box<str>), Weak<Node>>;

/// What the accounts of a class come to.
#[derive(Debug, Default)]
struct Tally {
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
    classes: Arc<[Tally; Class::ALL.len()]>,
    above: Option<Account>,
}

/// Somebody's account. Cheap to clone: all clones are one account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Node>);

/// Bytes that are charged to an account; dropped, they are given back.
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
    /// Empty accounts.
    pub fn new(limits: LedgerLimits) -> Self {
        let classes: Arc<[Tally; Class::ALL.len()]> = Arc::default();
        let one = |class, above| Account::new(class, "", limits.of(class), &classes, above);
        let gateway = one(Class::Gateway, None);
        let strangers = one(Class::Strangers, Some(gateway.clone()));
        let clients = one(Class::Clients, Some(gateway.clone()));
        let agents = one(Class::Agents, Some(gateway));
        Self {
            books: Arc::new(Books {
                classes,
                strangers,
                clients,
                agents,
                exempt: Arc::new(Semaphore::new(1)),
                named: Mutex::default(),
                limits,
            }),
        }
    }

    /// What each account may have.
    pub fn limits(&self) -> &LedgerLimits {
        &self.books.limits
    }

    /// The account of all connections without a proof.
    pub fn strangers(&self) -> &Account {
        &self.books.strangers
    }

    /// An account for a connection of the device of that name, or for a request of it.
    pub fn connection(&self, device: &str) -> Account {
        self.below(Class::Connection, device, self.named(Class::Device, device, &self.books.clients))
    }

    /// The account of the runtime of that name.
    pub fn runtime(&self, name: &str) -> Account {
        self.named(Class::Runtime, name, &self.books.agents)
    }

    /// The account of a session of a runtime's.
    pub fn session(&self, name: &str, runtime: &str) -> Account {
        self.named(Class::Session, name, &self.runtime(runtime))
    }

    fn below(&self, class: Class, name: &str, above: Account) -> Account {
        Account::new(class, name, self.books.limits.of(class), &self.books.classes, Some(above))
    }

    /// The one account of that name: it exists as long as somebody has it, or a charge to it.
    fn named(&self, class: Class, name: &str, above: &Account) -> Account {
        let mut named = self.books.named.lock();
        if let Some(node) = named.get(&(class, name.into())).and_then(Weak::upgrade) {
            return Account(node);
        }
        if named.len() == named.capacity() {
            named.retain(|_, node| node.strong_count() > 0);
        }
        let account = self.below(class, name, above.clone());
        named.insert((class, name.into()), Arc::downgrade(&account.0));
        account
    }

    /// Waits for the one place in which an agent goes on without room, with [`Account::force`], until what it is in the
    /// middle of is whole: several that are each in the middle of a long line would else wait for each other for ever.
    /// Cancellation safe.
    pub async fn exempt(&self) -> Exempt {
        // It is never closed.
        Exempt { _permit: Arc::clone(&self.books.exempt).acquire_owned().await.ok() }
    }

    /// What each class comes to.
    pub fn sums(&self) -> Vec<Sum> {
        let sum = |class: Class| {
            let Tally { used, refusals } = &self.books.classes[class as usize];
            let (used, refusals) = (used.load(Ordering::Relaxed), refusals.load(Ordering::Relaxed));
            Sum { class, used, limit: self.books.limits.of(class), refusals }
        };
        Class::ALL.into_iter().map(sum).collect()
    }

    /// The accounts that have used `percent` of their limit or more, connections left out: their device's counts them.
    pub fn near(&self, percent: usize) -> Vec<Near> {
        let Books { strangers, clients, agents, named, .. } = &*self.books;
        let mut all: Vec<Arc<Node>> = [strangers, clients, agents].map(|account| Arc::clone(&account.0)).into();
        all.extend(agents.0.above.as_ref().map(|gateway| Arc::clone(&gateway.0)));
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

    /// The sums in Prometheus' text format.
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
        classes: &Arc<[Tally; Class::ALL.len()]>,
        above: Option<Self>,
    ) -> Self {
        let (used, freed, classes) = (AtomicUsize::new(0), Notify::new(), Arc::clone(classes));
        Self(Arc::new(Node { class, name: name.into(), limit, used, freed, classes, above }))
    }

    /// This account and those above it.
    fn chain(&self) -> impl Iterator<Item = &Arc<Node>> {
        std::iter::successors(Some(&self.0), |node| node.above.as_ref().map(|above| &above.0))
    }

    /// Bytes that it has now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The most that it can ever have, in bytes: the least of its limit and of those above it.
    pub fn most(&self) -> usize {
        self.chain().map(|node| node.limit_for(true)).fold(usize::MAX, usize::min)
    }

    /// Nothing yet, to be grown.
    pub fn nothing(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    /// Charges `bytes` more.
    ///
    /// # Errors
    /// [`LedgerFull`] if this account or one above it has no room: then nothing is charged.
    pub fn charge(&self, bytes: usize) -> Result<Charge, LedgerFull> {
        self.take(bytes).map_err(|(full, _)| {
            full.tally().refusals.fetch_add(1, Ordering::Relaxed);
            LedgerFull { class: full.class, limit: full.limit }
        })?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Charges `bytes` whether there is room or not, for the one who is [`Exempt`].
    pub fn force(&self, bytes: usize) -> Charge {
        for node in self.chain() {
            node.used.fetch_add(bytes, Ordering::AcqRel);
            node.tally().used.fetch_add(bytes, Ordering::Relaxed);
        }
        Charge { account: self.clone(), bytes }
    }

    /// Charges `bytes`, as soon as there is room; what could never fit is charged as the limit. Nobody may wait who holds
    /// charges that others wait for. Cancellation safe.
    pub async fn wait(&self, bytes: usize) -> Charge {
        let bytes = bytes.min(self.most());
        let mut waited = false;
        loop {
            let (full, limit) = match self.take(bytes) {
                Ok(()) => return Charge { account: self.clone(), bytes },
                Err(full) => full,
            };
            if !std::mem::replace(&mut waited, true) {
                full.tally().refusals.fetch_add(1, Ordering::Relaxed);
            }
            let mut freed = std::pin::pin!(full.freed.notified());
            // Registered before looking again, so that what is given back between the two is not missed.
            freed.as_mut().enable();
            if full.used.load(Ordering::Acquire).saturating_add(bytes) > limit {
                freed.await;
            }
        }
    }

    /// Charges it, or says which account has no room, and what this one may fill it up to.
    fn take(&self, bytes: usize) -> Result<(), (Arc<Node>, usize)> {
        let mut much = false;
        for (n, node) in self.chain().enumerate() {
            let limit = node.limit_for(much);
            let room = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
            let Ok(before) = node.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room) else {
                self.chain().take(n).for_each(|node| node.give(bytes));
                return Err((Arc::clone(node), limit));
            };
            much |= node.class == Class::Device && before + bytes > MODEST;
            node.tally().used.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Node {
    /// What it may have, given whether this is for a device that holds much.
    fn limit_for(&self, much: bool) -> usize {
        let kept = if much && self.class == Class::Clients { self.limit / KEPT } else { 0 };
        self.limit - kept
    }

    fn tally(&self) -> &Tally {
        &self.classes[self.class as usize]
    }

    fn give(&self, bytes: usize) {
        self.tally().used.fetch_sub(bytes, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        self.freed.notify_waiters();
    }
}

impl Charge {
    /// Bytes that are charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it `bytes` in all, more or fewer than before.
    ///
    /// # Errors
    /// [`LedgerFull`] if there is no room for more: then it stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), LedgerFull> {
        if bytes > self.bytes {
            let more = self.account.charge(bytes - self.bytes)?;
            // Both are one now.
            self.bytes += more.keep();
        } else {
            let less = self.bytes - bytes;
            self.bytes = bytes;
            self.account.chain().filter(|_| less > 0).for_each(|node| node.give(less));
        }
        Ok(())
    }

    /// Adds another charge to the same account to this one.
    pub fn join(&mut self, other: Self) {
        self.bytes += other.keep();
    }

    /// Takes `bytes` of it out, or as many as there are, as a charge of their own.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { account: self.account.clone(), bytes }
    }

    fn keep(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.account.chain().filter(|_| bytes > 0).for_each(|node| node.give(bytes));
    }
}

/// The place of the one who goes on without room.
#[derive(Debug)]
pub struct Exempt {
    _permit: Option<OwnedSemaphorePermit>,
}

/// Bytes with the charge for them: one lives as long as the other.
#[derive(Debug)]
pub struct Charged<T> {
    bytes: T,
    _charge: Charge,
}

impl<T> Charged<T> {
    /// Binds them.
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
