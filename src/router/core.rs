//! The kernel's handles, which every feature gets.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use super::fanout::Fans;
use super::guard::{Gate, GateLimits, Hosts, LongWork};
use super::presence::Presence;
use super::public_address::PublicAddresses;
use plexus_auth::{Approve, Auth, Caller, Device, Permit, Target};
use plexus_ledger::{Account, Ledger};
use plexus_protocol::{Answer, Epoch, Receipt, RequestId, RuntimeId, Timestamp};
use plexus_sessions::{Directory, SessionError};

/// The handles that the kernel offers to every feature. A feature's state is a `Core` and the parts that only this feature needs. Cheap
/// to clone.
///
/// `Core` is a struct and not a trait: there is one kernel, so a trait would have one implementation and only make every handler generic.
#[derive(Clone)]
pub struct Core {
    /// Sessions, requests, runtimes, the log and the clock.
    pub directory: Directory,
    /// The fan-out of events to subscribers.
    pub fans: Fans,
    /// Devices.
    pub auth: Auth,
    /// The accounts of the memory that the gateway holds for peers.
    pub ledger: Ledger,
    /// The sessions that focused screens display.
    pub presence: Presence,
    /// The host names and origins of the gateway.
    pub hosts: Arc<Hosts>,
    /// The addresses by which other machines reach the gateway, and the private CA.
    pub public_addresses: Arc<PublicAddresses>,
    /// The gateway's address on this machine.
    pub url: Arc<str>,
    /// The time of the gateway's start.
    pub started_at: Timestamp,
    /// The gateway's version.
    pub version: &'static str,
    /// Signals the stop of the gateway with `true`; long polls then return at once.
    pub stop: watch::Receiver<bool>,
    /// The guard's limits.
    pub limits: GateLimits,
    /// The turn of long work on clients' bytes.
    pub long_work: LongWork,
}

impl Core {
    /// Returns the log's epoch.
    pub fn epoch(&self) -> &Epoch {
        self.directory.log().epoch()
    }

    /// Returns the origin of links to the gateway.
    pub fn base(&self) -> String {
        self.public_addresses.url().unwrap_or_else(|| self.url.to_string()).trim_end_matches('/').to_owned()
    }

    /// Answers a request of [`Directory::requests`]. A refusal because of the risk names the devices that may answer.
    ///
    /// # Errors
    /// The refusals of the session that owns the request.
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, SessionError> {
        match self.directory.requests().answer(permit, id, answer, key).await {
            Err(refusal) => Err(self.with_approvers(permit.device(), id, refusal).await),
            receipt => receipt,
        }
    }

    /// Adds the names of the devices that may answer to a refusal, as far as this device may know them.
    pub async fn with_approvers(&self, device: &Device, id: &RequestId, mut refusal: SessionError) -> SessionError {
        if let SessionError::RiskTooHigh(too) = &mut refusal
            && let Ok(Some((session, runtime))) = self.directory.requests().target(id).await
        {
            too.devices = self.auth.answering(device, Target::Session(&session, &runtime), too.risk);
        }
        refusal
    }

    /// Returns an account for a connection or a request of the caller's device.
    pub fn account(&self, caller: &Caller) -> Account {
        self.ledger.connection(caller.device().device_id.as_str())
    }

    /// Returns the guard of the gateway's main service.
    pub fn gate(&self) -> Gate {
        Gate {
            auth: self.auth.clone(),
            hosts: Arc::clone(&self.hosts),
            public_addresses: Arc::clone(&self.public_addresses),
            same_user: None,
            limits: self.limits,
            ledger: self.ledger.clone(),
            long_work: self.long_work.clone(),
        }
    }

    /// Returns the guard of another port. It has its own host names and origins: requests with those of another port, and pages served by
    /// another port, are refused. Processes of this user may watch the runtime `same_user` without a token.
    pub fn gate_at(&self, address: SocketAddr, same_user: Option<RuntimeId>) -> Gate {
        Gate { hosts: Arc::new(Hosts::new(&[address], &[])), same_user, ..self.gate() }
    }
}
