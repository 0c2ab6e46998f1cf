//! Pairing a device, and links to one session.

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use tokio::sync::watch;

use super::{Auth, AuthShared, NewDeviceEntry};
use crate::device_name::valid_name;
use crate::grants::valid_grant;
use crate::pairing::{self, Collected, Invitation};
use crate::{Admin, AuthError, Device, DeviceKind, Grant, PairingFault, Permit, token};
use plexus_protocol::api::pairing::{PairingState, PairingView, PhoneTicket};
use plexus_protocol::{DeviceId, Scope, SessionId, Timestamp};

/// Number of random bytes of a secret that must not be guessed: over 130 bits.
const SECRET_BYTES: usize = 17;
/// Maximum wait before a deadline is compared with the clock again, since the clock may be set and the machine may sleep.
const RECHECK_EVERY: Duration = Duration::from_secs(60);
/// Maximum lifetime of a link to a session.
pub const SHARE_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A new pairing, in the form for the computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BegunPairing {
    /// The identifier.
    pub pairing_id: String,
    /// The code to type on the phone.
    pub code: String,
    /// The time when the pairing expires.
    pub expires_at: Timestamp,
}

/// The result for a phone's ticket.
#[derive(Clone, Debug)]
pub enum FetchedPairing {
    /// The computer has not confirmed yet.
    Waiting,
    /// The device and its token.
    Given(Arc<Device>, String),
}

/// Returns random bytes for a code; so many that enough of them are usable.
fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Random(error.to_string()))?;
    Ok(bytes)
}

fn no_usable_bytes() -> AuthError {
    AuthError::Random("none of them was usable".into())
}

impl Auth {
    /// Begins a pairing: one device with `grant` may join by the code within two minutes.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] for an invalid grant or name; [`AuthError::Random`].
    pub fn begin_pairing(
        &self,
        _permit: &Permit<Admin>,
        grant: Grant,
        name: Option<&str>,
    ) -> Result<BegunPairing, AuthError> {
        let (grant, name) = (valid_grant(grant)?, name.map(valid_name).transpose()?);
        let code = pairing::code(&random::<64>()?).ok_or_else(no_usable_bytes)?;
        let pairing_id = format!("p_{}", token::random_text::<SECRET_BYTES>()?);
        let mut all = self.shared.pairings.lock();
        all.begin(pairing_id.clone(), &code, grant, name, (Instant::now(), SystemTime::now().into()));
        let expires_at = all.view(&pairing_id, Instant::now())?.expires_at;
        Ok(BegunPairing { pairing_id, code, expires_at })
    }

    /// Returns the pairing that a phone with this code would join.
    ///
    /// # Errors
    /// [`AuthError::BadCode`]; [`AuthError::TooMany`] after too many wrong codes, even for a right one.
    pub fn find(&self, from: IpAddr, code: &str) -> Result<Invitation, AuthError> {
        self.try_code(from, || self.shared.pairings.lock().find(code, Instant::now()))
    }

    /// Joins a phone, which uses up the code. With an `origin` the device is a browser, as in [`redeem`](Self::redeem).
    ///
    /// # Errors
    /// The errors of [`find`](Self::find); [`AuthError::Invalid`] for an invalid name: the code stays valid.
    pub fn join(&self, from: IpAddr, code: &str, name: &str, origin: Option<String>) -> Result<PhoneTicket, AuthError> {
        let name = valid_name(name)?;
        let number = random::<64>()?.into_iter().find_map(pairing::number).ok_or_else(no_usable_bytes)?;
        let secret = (format!("t_{}", token::random_text::<SECRET_BYTES>()?), number);
        let join = || self.shared.pairings.lock().join(code, name, origin, secret, Instant::now());
        let ticket = self.try_code(from, join)?;
        self.paired();
        Ok(ticket)
    }

    /// Tries a short code. Since it could be guessed, no code is accepted for a while after a few wrong ones.
    fn try_code<T>(&self, from: IpAddr, good: impl FnOnce() -> Option<T>) -> Result<T, AuthError> {
        let mut tries = self.shared.tries.lock();
        let now = Instant::now();
        if let Some(wait) = tries.blocked(from, now) {
            return Err(AuthError::TooMany(wait));
        }
        good().ok_or_else(|| tries.failed(from, now).map_or(AuthError::BadCode, AuthError::TooMany))
    }

    /// Returns the state of a pairing; waits up to `wait` until it differs from `known`.
    ///
    /// # Errors
    /// [`AuthError::Pairing`] if there is no such pairing.
    pub async fn pairing(
        &self,
        _permit: &Permit<Admin>,
        id: &str,
        known: PairingState,
        wait: Duration,
    ) -> Result<PairingView, AuthError> {
        let mut changed = self.shared.paired.subscribe();
        let until = tokio::time::Instant::now() + wait;
        loop {
            let view = self.shared.pairings.lock().view(id, Instant::now())?;
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if view.state != known || left.is_zero() || !tick(&mut changed, left).await {
                return Ok(view);
            }
        }
    }

    /// Confirms for the computer that both display `number`. The device is enrolled; the phone fetches its token.
    ///
    /// # Errors
    /// [`AuthError::Pairing`]; [`AuthError::Invalid`] and [`AuthError::Storage`] if the device cannot be enrolled: retry.
    pub async fn confirm(&self, _permit: &Permit<Admin>, id: &str, number: u8) -> Result<PairingView, AuthError> {
        let approved = self.shared.pairings.lock().approve(id, number, Instant::now())?;
        // A task of its own: a client that disconnects now does not interrupt the enrolment.
        let (auth, name) = (self.clone(), id.to_owned());
        let enrolled = tokio::spawn(async move {
            let new =
                NewDeviceEntry { origin: approved.origin, ..NewDeviceEntry::plain(approved.name, approved.grant) };
            let enrolled = auth.put(new).await;
            auth.shared.pairings.lock().enrolment_done(&name, enrolled.as_ref().ok().cloned());
            auth.paired();
            if enrolled.is_ok() {
                tokio::spawn(drop_unfetched(Arc::downgrade(&auth.shared), name));
            }
            enrolled.map(drop)
        });
        enrolled.await.map_err(|error| AuthError::Storage(error.to_string()))??;
        Ok(self.shared.pairings.lock().view(id, Instant::now())?)
    }

    /// Refuses for the computer, before or after a phone joined.
    ///
    /// # Errors
    /// [`AuthError::Pairing`] if there is no such pairing, or it is confirmed.
    pub fn refuse(&self, _permit: &Permit<Admin>, id: &str) -> Result<(), AuthError> {
        self.shared.pairings.lock().refuse(id, Instant::now())?;
        self.paired();
        Ok(())
    }

    /// Returns the outcome for a phone that joined; waits up to `wait` for it.
    ///
    /// # Errors
    /// [`AuthError::Pairing`] if the pairing was refused or has expired.
    pub async fn fetch(&self, ticket: &str, wait: Duration) -> Result<FetchedPairing, AuthError> {
        let mut changed = self.shared.paired.subscribe();
        let until = tokio::time::Instant::now() + wait;
        loop {
            match self.shared.pairings.lock().collect(ticket, Instant::now())? {
                Collected::Given(device, token) => return Ok(FetchedPairing::Given(device, token)),
                Collected::Waiting => {}
            }
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() || !tick(&mut changed, left).await {
                return Ok(FetchedPairing::Waiting);
            }
        }
    }

    fn paired(&self) {
        self.shared.paired.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Makes a link to one session: a device that may watch it and expires after `life` (at most 30 days).
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Random`], [`AuthError::Storage`].
    pub async fn share(
        &self,
        _permit: &Permit<Admin>,
        session: SessionId,
        name: &str,
        life: Duration,
    ) -> Result<(Arc<Device>, String), AuthError> {
        let millis = i64::try_from(life.min(SHARE_LIFE).as_millis()).unwrap_or(i64::MAX);
        let grant = Grant { sessions: Some(vec![session]), ..Grant::new(&[Scope::Watch]) };
        let expires_at = Some(Timestamp::from(SystemTime::now()).plus_millis(millis));
        let kind = DeviceKind::Share;
        self.put(NewDeviceEntry { kind, expires_at, ..NewDeviceEntry::plain(valid_name(name)?, grant) }).await
    }

    /// Removes a device when it expires, so that its connections are closed then.
    pub(super) fn expire_later(&self, device: &Device) {
        if device.expires_at.is_none() && !device.local {
            return;
        }
        // Without a Tokio runtime there are no connections to close; the token expires anyway.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(expire(Arc::downgrade(&self.shared), device.device_id.clone()));
    }
}

/// Waits for a change, at most `max` or a second, since time may change the state too. Returns `false` if no change can come.
async fn tick(changed: &mut watch::Receiver<u64>, max: Duration) -> bool {
    let second = Duration::from_secs(1).min(max);
    tokio::time::timeout(second, changed.changed()).await.map_or(true, |changed| changed.is_ok())
}

async fn drop_unfetched(shared: Weak<AuthShared>, pairing: String) {
    tokio::time::sleep(pairing::PAIRING_LIFE + pairing::COLLECT).await;
    let Some(auth) = shared.upgrade().map(|shared| Auth { shared }) else { return };
    let lost = auth.shared.pairings.lock().drop_unfetched(&pairing);
    if let Some(device) = lost {
        tracing::info!(device_id = %device, "a confirmed device never fetched its token and is removed");
        let _ = auth.remove(&device).await;
    }
}

async fn expire(shared: Weak<AuthShared>, device: DeviceId) {
    loop {
        // Use of the device delays its expiry.
        let at = shared.upgrade().and_then(|shared| Auth { shared }.ends(&device));
        let Some(at) = at else { return };
        let left = at.as_millis() - Timestamp::from(SystemTime::now()).as_millis();
        let Ok(left @ 1..) = u64::try_from(left) else { break };
        tokio::time::sleep(Duration::from_millis(left).min(RECHECK_EVERY)).await;
    }
    let Some(auth) = shared.upgrade().map(|shared| Auth { shared }) else { return };
    match auth.remove(&device).await {
        Ok(()) | Err(AuthError::NoDevice(_)) => {}
        // The device is removed from memory; only its row remains.
        Err(error) => tracing::warn!(device_id = %device, %error, "an expired device could not be removed"),
    }
}

impl From<PairingFault> for AuthError {
    fn from(fault: PairingFault) -> Self {
        Self::Pairing(fault)
    }
}
