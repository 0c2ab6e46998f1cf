//! The ways a device comes in that take two sides, or that end by themselves: pairing, and links to one session.

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use tokio::sync::watch;

use super::devices::{AuthShared, NewDeviceEntry, lock, sane, sane_name};
use super::pairing::{self, Collected, Invitation, PairingFault, PairingState, PairingView, PhoneTicket};
use super::{Admin, Auth, AuthError, Device, DeviceKind, Grant, Permit, token};
use plexus_protocol::{DeviceId, Scope, SessionId, Timestamp};

/// Random bytes of what nobody is to guess: 130 bits and more.
const SECRET_BYTES: usize = 17;
/// How often a clock that may have been set, or a machine that may have slept, is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Longest life of a link to a session.
pub const SHARE_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A pairing that has begun, for the computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BegunPairing {
    /// Its identifier.
    pub pairing_id: String,
    /// What the phone types.
    pub code: String,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// What comes of a phone's ticket.
#[derive(Clone, Debug)]
pub enum FetchedPairing {
    /// Nothing in the time it waited.
    Waiting,
    /// The device, and its token.
    Given(Arc<Device>, String),
}

/// Bytes for a code: enough that it is not made of too few usable ones in any life of a gateway.
fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Random(error.to_string()))?;
    Ok(bytes)
}

fn unlucky() -> AuthError {
    AuthError::Random("none of them was usable".into())
}

impl Auth {
    /// Begins a pairing: a device with `grant` may join by the code, once, within two minutes.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if the grant or the name makes no sense; [`AuthError::Random`].
    pub fn begin_pairing(
        &self,
        _permit: &Permit<Admin>,
        grant: Grant,
        name: Option<&str>,
    ) -> Result<BegunPairing, AuthError> {
        let (grant, name) = (sane(grant)?, name.map(sane_name).transpose()?);
        let code = pairing::code(&random::<64>()?).ok_or_else(unlucky)?;
        let pairing_id = format!("p_{}", token::random_text::<SECRET_BYTES>()?);
        let mut all = lock(&self.shared.pairings);
        all.begin(pairing_id.clone(), &code, grant, name, (Instant::now(), SystemTime::now().into()));
        let expires_at = all.view(&pairing_id, Instant::now())?.expires_at;
        Ok(BegunPairing { pairing_id, code, expires_at })
    }

    /// What a phone with this code would join.
    ///
    /// # Errors
    /// [`AuthError::BadCode`]; [`AuthError::TooMany`] after too many wrong ones, whatever this one is.
    pub fn find(&self, from: IpAddr, code: &str) -> Result<Invitation, AuthError> {
        self.try_code(from, || lock(&self.shared.pairings).find(code, Instant::now()))
    }

    /// A phone joins, and uses the code up. With an `origin` it is a browser's, as in [`redeem`](Self::redeem).
    ///
    /// # Errors
    /// As [`look`](Self::find); [`AuthError::Invalid`] if the name will not do: the code stays good.
    pub fn join(&self, from: IpAddr, code: &str, name: &str, origin: Option<String>) -> Result<PhoneTicket, AuthError> {
        let name = sane_name(name)?;
        let number = random::<64>()?.into_iter().find_map(pairing::number).ok_or_else(unlucky)?;
        let secret = (format!("t_{}", token::random_text::<SECRET_BYTES>()?), number);
        let join = || lock(&self.shared.pairings).join(code, name, origin, secret, Instant::now());
        let ticket = self.try_code(from, join)?;
        self.paired();
        Ok(ticket)
    }

    /// A short code is guessed at: past a few wrong ones no code is good for a while, not even a right one.
    fn try_code<T>(&self, from: IpAddr, good: impl FnOnce() -> Option<T>) -> Result<T, AuthError> {
        let mut tries = lock(&self.shared.tries);
        let now = Instant::now();
        if let Some(wait) = tries.blocked(from, now) {
            return Err(AuthError::TooMany(wait));
        }
        good().ok_or_else(|| tries.failed(from, now).map_or(AuthError::BadCode, AuthError::TooMany))
    }

    /// Where a pairing stands; waits up to `wait` for it to be another state than the one that is `known`.
    ///
    /// # Errors
    /// [`AuthError::Pairing`] if there is none of that name.
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
            let view = lock(&self.shared.pairings).view(id, Instant::now())?;
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if view.state != known || left.is_zero() || !tick(&mut changed, left).await {
                return Ok(view);
            }
        }
    }

    /// The computer confirms that both show `number`. The device is enrolled; the phone fetches its token.
    ///
    /// # Errors
    /// [`AuthError::Pairing`]; [`AuthError::Invalid`] and [`AuthError::Storage`] if it cannot be enrolled: try again.
    pub async fn confirm(&self, _permit: &Permit<Admin>, id: &str, number: u8) -> Result<PairingView, AuthError> {
        let approved = lock(&self.shared.pairings).approve(id, number, Instant::now())?;
        // A task of its own: a client that hangs up now leaves nothing half done.
        let (auth, name) = (self.clone(), id.to_owned());
        let enrolled = tokio::spawn(async move {
            let new =
                NewDeviceEntry { origin: approved.origin, ..NewDeviceEntry::plain(approved.name, approved.grant) };
            let enrolled = auth.put(new).await;
            lock(&auth.shared.pairings).enrolment_done(&name, enrolled.as_ref().ok().cloned());
            auth.paired();
            if enrolled.is_ok() {
                tokio::spawn(drop_unfetched(Arc::downgrade(&auth.shared), name));
            }
            enrolled.map(drop)
        });
        enrolled.await.map_err(|error| AuthError::Storage(error.to_string()))??;
        Ok(lock(&self.shared.pairings).view(id, Instant::now())?)
    }

    /// The computer refuses, before or after a phone has joined.
    ///
    /// # Errors
    /// [`AuthError::Pairing`] if there is none of that name, or it is confirmed.
    pub fn refuse(&self, _permit: &Permit<Admin>, id: &str) -> Result<(), AuthError> {
        lock(&self.shared.pairings).refuse(id, Instant::now())?;
        self.paired();
        Ok(())
    }

    /// What came of a phone's joining; waits up to `wait` for it.
    ///
    /// # Errors
    /// [`AuthError::Pairing`]: refused, or too late.
    pub async fn fetch(&self, ticket: &str, wait: Duration) -> Result<FetchedPairing, AuthError> {
        let mut changed = self.shared.paired.subscribe();
        let until = tokio::time::Instant::now() + wait;
        loop {
            match lock(&self.shared.pairings).collect(ticket, Instant::now())? {
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

    /// Makes a link to one session: a device that may watch it, and is gone after `life` (at most 30 days).
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
        let grant = Grant { sessions: Some(vec![session]), ..Grant::of(&[Scope::Watch]) };
        let expires_at = Some(Timestamp::from(SystemTime::now()).plus_millis(millis));
        let kind = DeviceKind::Share;
        self.put(NewDeviceEntry { kind, expires_at, ..NewDeviceEntry::plain(sane_name(name)?, grant) }).await
    }

    /// Removes a device when its time is over, so that what it has open is closed then.
    pub(super) fn expire_later(&self, device: &Device) {
        if device.expires_at.is_none() && !device.local {
            return;
        }
        // Without a runtime nothing is open that could be closed; its token dies all the same.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(expire(Arc::downgrade(&self.shared), device.device_id.clone()));
    }
}

/// Waits for a change, for a second at most: time passes without anybody saying so. False if there will be none.
async fn tick(changed: &mut watch::Receiver<u64>, most: Duration) -> bool {
    let second = Duration::from_secs(1).min(most);
    tokio::time::timeout(second, changed.changed()).await.map_or(true, |changed| changed.is_ok())
}

async fn drop_unfetched(shared: Weak<AuthShared>, pairing: String) {
    tokio::time::sleep(pairing::PAIRING_LIFE + pairing::COLLECT).await;
    let Some(auth) = shared.upgrade().map(|shared| Auth { shared }) else { return };
    let lost = lock(&auth.shared.pairings).drop_unfetched(&pairing);
    if let Some(device) = lost {
        tracing::info!(device_id = %device, "a confirmed device never fetched its token and is removed");
        let _ = auth.remove(&device).await;
    }
}

async fn expire(shared: Weak<AuthShared>, device: DeviceId) {
    loop {
        // One that is used lasts longer by it.
        let at = shared.upgrade().and_then(|shared| Auth { shared }.ends(&device));
        let Some(at) = at else { return };
        let left = at.as_millis() - Timestamp::from(SystemTime::now()).as_millis();
        let Ok(left @ 1..) = u64::try_from(left) else { break };
        tokio::time::sleep(Duration::from_millis(left).min(LOOK_EVERY)).await;
    }
    let Some(auth) = shared.upgrade().map(|shared| Auth { shared }) else { return };
    match auth.remove(&device).await {
        Ok(()) | Err(AuthError::NoDevice(_)) => {}
        // It counts nowhere any more; only its row is still there.
        Err(error) => tracing::warn!(device_id = %device, %error, "an expired device could not be removed"),
    }
}

impl From<PairingFault> for AuthError {
    fn from(fault: PairingFault) -> Self {
        Self::Pairing(fault)
    }
}
