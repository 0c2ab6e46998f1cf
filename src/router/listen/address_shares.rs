//! The share of the connections and requests over TLS that each address has.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) peer: SocketAddr,
    /// `true` if the address has a share, as all have except trusted proxies.
    pub(super) shares: bool,
}

/// The number of slots that each address holds.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// A slot of an address.
#[derive(Debug)]
pub(super) struct AddressSlot(Option<(Arc<Addresses>, IpAddr)>);

impl Source {
    /// Takes a slot, if the address's share has a free one.
    pub(super) fn enter(&self, addresses: &Arc<Addresses>, share: usize) -> Option<AddressSlot> {
        if !self.shares {
            return Some(AddressSlot(None));
        }
        let address = subnet(self.peer.ip());
        let mut counts = addresses.counts.lock();
        let count = counts.entry(address).or_insert(0);
        if *count >= share {
            return None;
        }
        *count += 1;
        Some(AddressSlot(Some((Arc::clone(addresses), address))))
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let Some((addresses, address)) = &self.0 else { return };
        let mut counts = addresses.counts.lock();
        if let Some(count) = counts.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(address);
            }
        }
    }
}

/// Returns the address to count: an IPv4 address, or an IPv6 network, as one household has.
fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}
