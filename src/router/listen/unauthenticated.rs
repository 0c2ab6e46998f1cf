//! Connections that have not authenticated yet. They share one small account. When it is full, a new connection replaces the oldest
//! connection of the address that has the most. A connection leaves the account shortly after its client has sent a token. Thus many idle
//! connections lock out no client, and those of one address close no connection of another. Before a connection is closed, the new one
//! waits for a moment: in a burst of connections whose requests are all in transit, each has its turn.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::BUFFER;
use super::UNAUTHENTICATED_BODY;
use plexus_ledger::{Account, Charge, Ledger};

/// Maximum number of bytes that an unauthenticated connection may hold: hyper's buffer, and the body of one request.
const EACH: usize = BUFFER + UNAUTHENTICATED_BODY;
/// Maximum time that a new connection waits for a place before another one is closed for it. Its data is not read meanwhile.
const WAIT: Duration = Duration::from_millis(250);

/// All unauthenticated connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UnauthenticatedConnections {
    account: Account,
    queue: Arc<Mutex<ConnectionQueue>>,
}

/// The connections in order of their arrival.
#[derive(Debug, Default)]
struct ConnectionQueue {
    next: u64,
    all: BTreeMap<u64, ConnectionEntry>,
    /// The number of connections of each address.
    by_address: HashMap<IpAddr, usize>,
}

impl ConnectionQueue {
    fn remove(&mut self, number: u64) -> Option<ConnectionEntry> {
        let entry = self.all.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&entry.address);
            }
        }
        Some(entry)
    }

    /// Returns the oldest connection of the address that has the most. In a tie the address of the new connection loses.
    fn max(&self, newcomer: IpAddr) -> Option<u64> {
        let count = |address: &IpAddr| (self.by_address.get(address).map_or(0, |count| *count), *address == newcomer);
        let busiest = *self.by_address.keys().max_by_key(|address| count(address))?;
        self.all.iter().find(|(_, entry)| entry.address == busiest).map(|(number, _)| *number)
    }
}

#[derive(Debug)]
struct ConnectionEntry {
    address: IpAddr,
    cut: Arc<Notify>,
    _charge: Option<Charge>,
}

/// A connection's place among the unauthenticated ones, until it is dropped or its client has authenticated.
#[derive(Debug)]
pub struct UnauthenticatedConnection {
    number: u64,
    cut: Arc<Notify>,
    queue: Arc<Mutex<ConnectionQueue>>,
}

impl UnauthenticatedConnections {
    /// Makes a set without connections.
    pub fn new(ledger: &Ledger) -> Self {
        Self { account: ledger.strangers().clone(), queue: Arc::default() }
    }

    /// Adds a new connection from this address, once there is a place, or after [`WAIT`]. Cancellation safe.
    pub(super) async fn admit(&self, address: IpAddr) -> UnauthenticatedConnection {
        let charge = tokio::time::timeout(WAIT, self.account.wait(EACH)).await.ok();
        self.enter(address, charge)
    }

    /// Adds a new connection from this address, whose `charge` may be made already. If the account is full, others are closed until it
    /// has a place, or none is left.
    fn enter(&self, address: IpAddr, mut charge: Option<Charge>) -> UnauthenticatedConnection {
        let address = network(address);
        let mut queue = lock(&self.queue);
        let charge = loop {
            if let Some(charge) = charge.take() {
                break Some(charge);
            }
            match self.account.charge(EACH) {
                Ok(charge) => break Some(charge),
                Err(_) => match queue.max(address).and_then(|number| queue.remove(number)) {
                    // Its place is free at once; its connection ends a moment later.
                    Some(oldest) => oldest.cut.notify_one(),
                    None => break None,
                },
            }
        };
        let (number, cut) = (queue.next, Arc::new(Notify::new()));
        queue.next += 1;
        queue.all.insert(number, ConnectionEntry { address, cut: Arc::clone(&cut), _charge: charge });
        *queue.by_address.entry(address).or_default() += 1;
        UnauthenticatedConnection { number, cut, queue: Arc::clone(&self.queue) }
    }
}

impl UnauthenticatedConnection {
    /// Records that the client of this connection has authenticated.
    pub(crate) fn proved(&self) {
        lock(&self.queue).remove(self.number);
    }

    /// Waits until the connection has to be closed. Cancellation safe.
    pub(super) async fn cut(&self) {
        self.cut.notified().await;
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.proved();
    }
}

/// Returns the network that counts as one address: of IPv6 the network of 64 bits, since the owner of one address has all of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        four => four,
    }
}

fn lock(queue: &Mutex<ConnectionQueue>) -> MutexGuard<'_, ConnectionQueue> {
    queue.lock()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use plexus_ledger::LedgerLimits;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn address_with_many_cuts_off_its_own_and_nobody_elses() {
        let ledger = Ledger::new(LedgerLimits { strangers: 8 * EACH, ..LedgerLimits::default() });
        let strangers = UnauthenticatedConnections::new(&ledger);
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let quiet = [strangers.enter(at("192.0.2.1"), None), strangers.enter(at("2001:db8:1::1"), None)];
        let crowd: Vec<UnauthenticatedConnection> = (0..60)
            .map(|n| {
                strangers.enter(if n % 2 == 0 { at("192.0.2.7") } else { at(&format!("2001:db8:2::{n:x}")) }, None)
            })
            .collect();
        assert!(quiet.iter().all(|one| one.cut().now_or_never().is_none()), "they were here first, and are few");
        let cut = crowd.iter().filter(|one| one.cut().now_or_never().is_some()).count();
        assert_eq!(cut, 60 - 6);
        // A newcomer from elsewhere takes a place of the crowd's.
        let late = strangers.enter(at("192.0.2.2"), None);
        assert!(quiet.iter().chain([&late]).all(|one| one.cut().now_or_never().is_none()));
        drop((quiet, crowd, late));
        assert!(lock(&strangers.queue).by_address.is_empty());
    }

    #[test]
    fn oldest_stranger_makes_room_and_who_has_proved_themselves_never_does() {
        let ledger = Ledger::new(LedgerLimits { strangers: 3 * EACH, ..LedgerLimits::default() });
        let strangers = UnauthenticatedConnections::new(&ledger);
        let old: Vec<UnauthenticatedConnection> = (0..3).map(|_| strangers.enter(HERE, None)).collect();
        old[0].proved();
        let new: Vec<UnauthenticatedConnection> = (0..2).map(|_| strangers.enter(HERE, None)).collect();
        let cut: Vec<bool> = old.iter().chain(&new).map(|one| one.cut().now_or_never().is_some()).collect();
        assert_eq!(cut, [false, true, false, false, false]);
        assert_eq!(ledger.strangers().used(), 3 * EACH);
        drop((old, new));
        assert_eq!(ledger.strangers().used(), 0);
    }

    #[tokio::test]
    async fn burst_of_connections_whose_requests_are_on_their_way_cuts_off_none() {
        let ledger = Ledger::new(LedgerLimits { strangers: 4 * EACH, ..LedgerLimits::default() });
        let strangers = UnauthenticatedConnections::new(&ledger);
        let one = async || {
            let stranger = strangers.admit(HERE).await;
            // Its request is read a little later than others come in.
            tokio::task::yield_now().await;
            stranger.proved();
            stranger.cut().now_or_never().is_none()
        };
        let stayed = futures_util::future::join_all((0..64).map(|_| one())).await;
        assert!(stayed.into_iter().all(|stayed| stayed));
        assert_eq!(ledger.strangers().used(), 0);
        // Those who prove nothing make room for a newcomer, a moment later.
        let crowd = futures_util::future::join_all((0..5).map(|_| strangers.admit(HERE))).await;
        assert_eq!(crowd.iter().filter(|one| one.cut().now_or_never().is_some()).count(), 1);
    }

    #[test]
    fn stranger_comes_in_where_others_have_all_the_room() {
        let ledger = Ledger::new(LedgerLimits { strangers: EACH, ..LedgerLimits::default() });
        let _held = ledger.strangers().charge(EACH).unwrap();
        let strangers = UnauthenticatedConnections::new(&ledger);
        let first = strangers.enter(HERE, None);
        let _second = strangers.enter(HERE, None);
        assert!(first.cut().now_or_never().is_some(), "one at a time");
    }
}
