//! The enrolled devices: checking a token, one-time codes, enrolling, renaming, revoking. All of them work on one list under
//! one lock.

mod agents;
mod enrol;
mod local;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

pub use agents::AGENTS_FOLDER;
use agents::AgentTokens;
pub use enrol::{BegunPairing, FetchedPairing, SHARE_LIFE};
pub use local::{browser_id, redirect};

use super::device_name::valid_name;
use super::grants::valid_grant;
use super::limiter::{Limiter, Tries};
use super::pairing::Pairings;
use super::token::{self, Hash, find};
use super::{Admin, AuthError, Caller, Device, DeviceKind, Grant, Permit, Target};
use plexus_protocol::api::devices::{DeviceView, OneTimeCode};
use plexus_protocol::{DeviceId, Risk, RuntimeId, Scope, Timestamp};
use plexus_store::DeviceChange;

/// Maximum number of devices; a further one is refused until another is revoked. Every check of a token compares with all of them.
const DEVICES: usize = 256;
/// Maximum number of unused one-time codes; a further one replaces the oldest.
const CODES: usize = 32;
/// Maximum number of browsers that one device's token signs in; a further one is refused, so that no device uses up [`DEVICES`].
const BROWSERS: usize = 16;
/// Maximum lifetime of a one-time code; a longer one is reduced to it.
const CODE_LIFE: Duration = Duration::from_secs(120);
/// Number of random bytes of a one-time code: over 130 bits, so that it may be part of a link.
const CODE_BYTES: usize = 17;
/// Minimum time between two stored `last_seen_at` of a device, in milliseconds.
const SEEN_STORED_EVERY: i64 = 600_000;
/// Maximum number of devices that a refusal names.
const NAMED: usize = 5;
/// The identifier of the local administrator, whose token is the file in the state folder.
const LOCAL: &str = "d_local";
/// The identifier of a client that watches without a token; no enrolled device has it.
const SAME_USER: &str = "d_neighbour";

/// Writes or deletes a device's row through the log's writer, the only one that commits. The error is a text for users.
pub type PersistDevice = Arc<dyn Fn(DeviceChange) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The devices and the codes. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Auth {
    pub(super) shared: Arc<AuthShared>,
}

pub(super) struct AuthShared {
    /// The state folder.
    pub(super) home: PathBuf,
    pub(super) devices: ArcSwap<Vec<DeviceEntry>>,
    agents: AgentTokens,
    pub(super) codes: Mutex<Vec<WaitingCode>>,
    pub(super) pairings: Mutex<Pairings>,
    /// A counter of the changes to pairings.
    pub(super) paired: watch::Sender<u64>,
    pub(super) tries: Mutex<Tries>,
    limiter: Mutex<Limiter>,
    revoked: watch::Sender<u64>,
    persist: PersistDevice,
    /// Held while the devices change, including the write. The list has the devices that are revoked but still on disk.
    changing: tokio::sync::Mutex<Vec<DeviceId>>,
}

#[derive(Clone)]
pub(super) struct DeviceEntry {
    hash: Hash,
    pub(super) device: Arc<Device>,
    /// The time when the device was last seen, in milliseconds since the epoch; 0 for never.
    pub(super) seen: Arc<AtomicI64>,
    /// The value of `seen` that was last stored.
    seen_stored: Arc<AtomicI64>,
    /// The number of open streams, sockets and long polls.
    pub(super) open: Arc<AtomicUsize>,
}

/// A stream, socket or long poll of a device; the device is online while there is one.
#[derive(Debug)]
pub struct OnlineGuard(Option<Arc<AtomicUsize>>);

impl Drop for OnlineGuard {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

pub(super) struct WaitingCode {
    hash: Hash,
    grant: Grant,
    until: Instant,
    /// `true` if this user made the code on this machine, for a local browser.
    local: bool,
}

/// The page that sent a cookie.
#[derive(Clone, Copy, Debug)]
pub enum CookieSite<'a> {
    /// A page of this origin.
    Origin(&'a str),
    /// A page over TLS; the browser guarantees that it has the cookie's origin.
    Tls,
}

/// A device to enrol.
pub(super) struct NewDeviceEntry {
    pub(super) name: String,
    pub(super) kind: DeviceKind,
    pub(super) grant: Grant,
    pub(super) origin: Option<String>,
    pub(super) parent: Option<DeviceId>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) local: bool,
}

impl NewDeviceEntry {
    pub(super) fn plain(name: String, grant: Grant) -> Self {
        Self { name, kind: DeviceKind::Device, grant, origin: None, parent: None, expires_at: None, local: false }
    }
}

impl AuthShared {
    /// Notifies the handlers that a device or an agent was removed.
    pub(super) fn count_revocation(&self) {
        self.revoked.send_modify(|count| *count += 1);
    }
}

impl Auth {
    /// Opens the token in `home` (made if absent) and reads the devices' rows.
    ///
    /// # Errors
    /// [`AuthError::Unsafe`] and [`AuthError::File`] if the folder or the token cannot be trusted or used;
    /// [`AuthError::BadRow`] if a row is damaged: not starting is better than guessing a device's grant.
    pub fn open(home: &Path, rows: &[Vec<u8>], persist: PersistDevice) -> Result<Self, AuthError> {
        let local = token::open(home)?;
        local::clear(home);
        let mut devices = vec![DeviceEntry::new(
            local.hash,
            Device {
                created_at: local.made_at,
                ..Device::new(
                    DeviceId::trusted(LOCAL),
                    "this machine",
                    DeviceKind::Local,
                    Grant::all(),
                    HEXLOWER.encode(&local.hash),
                )
            },
        )];
        for row in rows {
            let device: Device = serde_json::from_slice(row).map_err(|error| AuthError::BadRow(error.to_string()))?;
            let hash =
                HEXLOWER.decode(device.token_sha256.as_bytes()).ok().and_then(|bytes| Hash::try_from(bytes).ok());
            let hash = hash.ok_or_else(|| AuthError::BadRow(format!("{}: no SHA-256", device.device_id)))?;
            devices.push(DeviceEntry::new(hash, device));
        }
        // After an interrupted revocation: devices signed in by a removed device are removed too.
        let ids: Vec<DeviceId> = devices.iter().map(|entry| entry.device.device_id.clone()).collect();
        devices.retain(|entry| entry.device.parent.as_ref().is_none_or(|parent| ids.contains(parent)));
        let auth = Self {
            shared: Arc::new(AuthShared {
                home: home.into(),
                devices: ArcSwap::from_pointee(devices),
                agents: AgentTokens::open(home),
                codes: Mutex::default(),
                pairings: Mutex::default(),
                paired: watch::Sender::new(0),
                tries: Mutex::default(),
                limiter: Mutex::default(),
                revoked: watch::Sender::new(0),
                persist,
                changing: tokio::sync::Mutex::default(),
            }),
        };
        for entry in auth.shared.devices.load().iter() {
            auth.expire_later(&entry.device);
        }
        Ok(auth)
    }

    /// Returns the caller with this bearer token. Takes the same time for every device and for none.
    pub fn check(&self, bearer: &str) -> Option<Caller> {
        // A cookie is never an agent's token: agents are not browsers.
        self.prove(bearer, |device| device.origin.is_none()).or_else(|| self.shared.agents.check(&token::hash(bearer)))
    }

    /// Returns the caller with this token as a cookie of `site`. A bearer token is not valid as a cookie, nor the reverse.
    pub fn check_cookie(&self, token: &str, site: CookieSite<'_>) -> Option<Caller> {
        self.prove(token, |device| match (&device.origin, site) {
            (Some(bound), CookieSite::Origin(origin)) => bound == origin,
            (Some(bound), CookieSite::Tls) => bound.starts_with("https://"),
            (None, _) => false,
        })
    }

    fn prove(&self, bearer: &str, accepts: impl FnOnce(&Device) -> bool) -> Option<Caller> {
        let devices = self.shared.devices.load();
        let hash = token::hash(bearer);
        let hashes = devices.iter().map(|entry| &entry.hash);
        let now = Timestamp::from(SystemTime::now());
        let accepts = |entry: &&DeviceEntry| entry.ends().is_none_or(|at| now < at) && accepts(&entry.device);
        let entry = devices.get(find(hashes, &hash)?).filter(accepts)?;
        self.seen(entry, now.as_millis());
        Some(Caller::proven(Arc::clone(&entry.device)))
    }

    /// Updates `last_seen_at` of a device, and stores it occasionally, so that it is approximately right after a restart.
    fn seen(&self, entry: &DeviceEntry, now: i64) {
        entry.seen.store(now, Ordering::Relaxed);
        let stored_at = entry.seen_stored.load(Ordering::Relaxed);
        let local = entry.device.kind == DeviceKind::Local;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if local || now - stored_at < SEEN_STORED_EVERY || !swap(&entry.seen_stored, stored_at, now) {
            return;
        }
        let (auth, id) = (self.clone(), entry.device.device_id.clone());
        runtime.spawn(async move {
            let stored = auth.edit(&id, |device| device.last_seen_at = Some(Timestamp::from_millis(now))).await;
            if let Err(error) = stored {
                tracing::debug!(device_id = %id, %error, "the time when a device was last seen could not be stored");
            }
        });
    }

    /// Marks the caller's device as online until the guard is dropped.
    pub fn online(&self, caller: &Caller) -> OnlineGuard {
        let devices = self.shared.devices.load();
        let entry = devices.iter().find(|entry| entry.device.device_id == caller.device().device_id);
        if let Some(entry) = entry {
            entry.open.fetch_add(1, Ordering::Relaxed);
            entry.seen.store(Timestamp::from(SystemTime::now()).as_millis(), Ordering::Relaxed);
        }
        OnlineGuard(entry.map(|entry| Arc::clone(&entry.open)))
    }

    /// Counts a failed authentication. Returns the time to wait if this address failed too often; a valid token still works.
    pub fn failed(&self, address: IpAddr) -> Option<Duration> {
        self.shared.limiter.lock().failed(address, Instant::now())
    }

    /// Returns a counter of revocations, as a watch. A handler that serves a device calls [`is_enrolled`](Self::is_enrolled) after a
    /// change, and closes if the device was removed.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.shared.revoked.subscribe()
    }

    /// Returns the caller for a process of this user without a token: it may watch this runtime, and nothing else. The calling code must
    /// have checked the process's owner.
    pub fn same_user_caller(&self, runtime: &RuntimeId) -> Caller {
        let grant = Grant { runtimes: Some(vec![runtime.clone()]), ..Grant::new(&[Scope::Watch]) };
        let id = DeviceId::trusted(SAME_USER);
        let name = "a process on this machine";
        Caller::proven(Arc::new(Device::new(id, name, DeviceKind::Device, grant, String::new())))
    }

    /// Returns whether the caller's device is still enrolled with the same token. Always `true` for a
    /// [`same_user_caller`](Self::same_user_caller).
    pub fn is_enrolled(&self, caller: &Caller) -> bool {
        let device = caller.device();
        if device.device_id.as_str() == SAME_USER && device.token_sha256.is_empty() {
            return true;
        }
        if device.kind == DeviceKind::Agent {
            return self.shared.agents.holds(device);
        }
        let same = |entry: &DeviceEntry| {
            entry.device.device_id == device.device_id && entry.device.token_sha256 == device.token_sha256
        };
        device.expires_at.is_none_or(|at| Timestamp::from(SystemTime::now()) < at)
            && self.shared.devices.load().iter().any(same)
    }

    /// Makes a one-time code that enrols one device with `grant`. It is valid for `life` (at most 120 s) and stored in memory only.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] for an invalid grant; [`AuthError::Random`].
    pub fn mint_code(&self, permit: &Permit<Admin>, grant: Grant, life: Duration) -> Result<OneTimeCode, AuthError> {
        let (grant, life) = (valid_grant(grant)?, life.min(CODE_LIFE));
        let code = token::random_text::<CODE_BYTES>()?;
        let (hash, now) = (token::hash(&code), Instant::now());
        let mut codes = self.shared.codes.lock();
        codes.retain(|waiting| waiting.until > now);
        if codes.len() >= CODES {
            self.shared.used(&codes.remove(0).hash);
        }
        let local = permit.device().device_id.as_str() == LOCAL;
        codes.push(WaitingCode { hash, grant, until: now + life, local });
        self.shared.unused_later(hash, life);
        let millis = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
        Ok(OneTimeCode { code, expires_at: Timestamp::from(SystemTime::now()).plus_millis(millis) })
    }

    /// Uses up a one-time code for a browser that is enrolled already, if the code would make an equal device.
    pub fn redeem_again(&self, caller: &Caller, code: &str) -> bool {
        let hash = token::hash(code);
        let mut codes = self.shared.codes.lock();
        let Some(found) = find(codes.iter().map(|waiting| &waiting.hash), &hash) else { return false };
        let device = caller.device();
        let same = codes[found].until > Instant::now()
            && codes[found].grant == device.grant
            && device.kind == DeviceKind::Device
            && device.parent.is_none();
        if same {
            codes.remove(found);
            self.shared.used(&hash);
        }
        same
    }

    /// Enrols a device by a one-time code and returns its token, which is not stored. The code is used up even if the device
    /// cannot be stored. With an `origin` the device is a browser, and the token is valid only as its cookie.
    ///
    /// # Errors
    /// [`AuthError::BadCode`]; [`AuthError::Invalid`] for an invalid name (the code stays valid);
    /// [`AuthError::Storage`].
    pub async fn redeem(
        &self,
        code: &str,
        name: &str,
        origin: Option<String>,
    ) -> Result<(Arc<Device>, String), AuthError> {
        let name = valid_name(name)?;
        let hash = token::hash(code);
        let waiting = {
            let mut codes = self.shared.codes.lock();
            let found = find(codes.iter().map(|waiting| &waiting.hash), &hash).ok_or(AuthError::BadCode)?;
            codes.remove(found)
        };
        self.shared.used(&hash);
        if waiting.until <= Instant::now() {
            return Err(AuthError::BadCode);
        }
        // The plain listener serves only this machine; a browser over TLS may be on any machine.
        let local = waiting.local && origin.as_deref().is_some_and(|origin| origin.starts_with("http://"));
        if local {
            self.evict_local().await;
        }
        self.put(NewDeviceEntry { origin, local, ..NewDeviceEntry::plain(name, waiting.grant) }).await
    }

    /// Signs a browser in by a device's token. The browser becomes a device with the same grant, removed with that one.
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Random`], [`AuthError::Storage`].
    pub async fn sign_in(
        &self,
        caller: &Caller,
        name: &str,
        origin: String,
    ) -> Result<(Arc<Device>, String), AuthError> {
        let device = caller.device();
        if device.kind == DeviceKind::Share {
            return Err(AuthError::Share("open the link itself in each browser"));
        }
        let parent = Some(device.device_id.clone()).filter(|id| id.as_str() != LOCAL);
        let local = device.local || (device.kind == DeviceKind::Local && origin.starts_with("http://"));
        if local {
            self.evict_local().await;
        }
        let (origin, expires_at) = (Some(origin), device.expires_at);
        self.put(NewDeviceEntry {
            origin,
            parent,
            expires_at,
            local,
            ..NewDeviceEntry::plain(valid_name(name)?, device.grant.clone())
        })
        .await
    }

    /// Enrols a device and returns its token, which is not stored.
    ///
    /// # Errors
    /// [`AuthError::Invalid`], [`AuthError::Random`], [`AuthError::Storage`].
    pub async fn enrol(
        &self,
        _permit: &Permit<Admin>,
        name: &str,
        grant: Grant,
    ) -> Result<(Arc<Device>, String), AuthError> {
        self.put(NewDeviceEntry::plain(valid_name(name)?, valid_grant(grant)?)).await
    }

    pub(super) async fn put(&self, new: NewDeviceEntry) -> Result<(Arc<Device>, String), AuthError> {
        let _changing = self.shared.changing.lock().await;
        if self.shared.devices.load().len() > DEVICES {
            return Err(AuthError::Invalid(format!("{DEVICES} devices are enrolled: revoke one first")));
        }
        let NewDeviceEntry { name, kind, grant, origin, parent, expires_at, local } = new;
        if let Some(by) = &parent {
            let all = self.shared.devices.load();
            if !all.iter().any(|entry| entry.device.device_id == *by) {
                return Err(AuthError::NoDevice(by.clone()));
            }
            if all.iter().filter(|entry| entry.device.parent == parent).count() >= BROWSERS {
                return Err(AuthError::Invalid(format!(
                    "this token has signed in {BROWSERS} browsers: revoke one first"
                )));
            }
        }
        let token = token::new_token()?;
        let hash = token::hash(&token);
        let id = DeviceId::trusted(format!("d_{}", &token::random_text::<CODE_BYTES>()?[..26]));
        let device =
            Device { origin, parent, expires_at, local, ..Device::new(id, &name, kind, grant, HEXLOWER.encode(&hash)) };
        self.keep(&device).await?;
        let entry = DeviceEntry::new(hash, device);
        let device = Arc::clone(&entry.device);
        self.change(|devices| devices.push(entry));
        self.expire_later(&device);
        Ok((device, token))
    }

    /// Renames a device, or sets whether it may answer from a notification.
    ///
    /// # Errors
    /// [`AuthError::NoDevice`], [`AuthError::Invalid`], [`AuthError::Storage`].
    pub async fn alter(
        &self,
        _permit: &Permit<Admin>,
        id: &DeviceId,
        name: Option<&str>,
        lock_screen: Option<bool>,
    ) -> Result<Arc<Device>, AuthError> {
        let name = name.map(valid_name).transpose()?;
        local_stays(id, "changed")?;
        self.edit(id, |device| {
            device.name = name.unwrap_or_else(|| std::mem::take(&mut device.name));
            device.grant.lock_screen = lock_screen.unwrap_or(device.grant.lock_screen);
        })
        .await
    }

    /// Changes a device; its row first.
    pub(super) async fn edit(&self, id: &DeviceId, edit: impl FnOnce(&mut Device)) -> Result<Arc<Device>, AuthError> {
        let _changing = self.shared.changing.lock().await;
        let found = self.shared.devices.load().iter().find(|entry| entry.device.device_id == *id).cloned();
        let entry = found.ok_or_else(|| AuthError::NoDevice(id.clone()))?;
        let mut device = (*entry.device).clone();
        edit(&mut device);
        self.keep(&device).await?;
        let device = Arc::new(device);
        self.change(|devices| {
            if let Some(entry) = devices.iter_mut().find(|entry| entry.device.device_id == *id) {
                entry.device = Arc::clone(&device);
            }
        });
        Ok(device)
    }

    /// Revokes a device. Before this returns, even with an error, its token is invalid and the handlers that serve it know.
    ///
    /// # Errors
    /// [`AuthError::NoDevice`]; [`AuthError::Invalid`] for the local administrator; [`AuthError::Storage`]: the device is revoked
    /// now but would return after a restart, so the caller should retry.
    pub async fn revoke(&self, _permit: &Permit<Admin>, id: &DeviceId) -> Result<(), AuthError> {
        self.remove(id).await
    }

    /// Removes a browser's old device after its cookie was replaced. A failure to store that is ignored: no client has the old token any
    /// more.
    pub async fn replaced(&self, caller: &Caller) {
        if let Err(error) = self.leave(caller).await {
            tracing::debug!(%error, "a browser's former device was not removed");
        }
    }

    /// Signs a device out at its own request.
    ///
    /// # Errors
    /// The errors of [`revoke`](Self::revoke).
    pub async fn leave(&self, caller: &Caller) -> Result<(), AuthError> {
        if caller.device().kind == DeviceKind::Share {
            return Err(AuthError::Share("others may be using it too; close the page instead"));
        }
        self.remove(&caller.device().device_id).await
    }

    pub(super) async fn remove(&self, id: &DeviceId) -> Result<(), AuthError> {
        local_stays(id, "revoked; to replace its token, stop the gateway and delete the file `token`")?;
        let mut unsaved = self.shared.changing.lock().await;
        let known = self.shared.devices.load().iter().any(|entry| entry.device.device_id == *id);
        if !known && !unsaved.contains(id) {
            return Err(AuthError::NoDevice(id.clone()));
        }
        if known {
            let is_removed = |device: &Device| device.device_id == *id || device.parent.as_ref() == Some(id);
            self.change(|devices| {
                unsaved.extend(
                    devices
                        .iter()
                        .map(|entry| &entry.device)
                        .filter(|device| is_removed(device))
                        .map(|device| device.device_id.clone()),
                );
                devices.retain(|entry| !is_removed(&entry.device));
            });
            self.shared.count_revocation();
        }
        // Also devices whose removal could not be stored before.
        while let Some(removed) = unsaved.last() {
            let delete = DeviceChange::Delete { device_id: removed.as_str().into() };
            (self.shared.persist)(delete).await.map_err(|error| {
                AuthError::Storage(format!(
                    "{error}; the device is revoked until the next restart of the gateway: try again to make this \
                     permanent"
                ))
            })?;
            unsaved.pop();
        }
        Ok(())
    }

    /// Returns an enrolled device, for work on its behalf while it is not connected.
    pub fn device(&self, id: &DeviceId) -> Option<Arc<Device>> {
        let devices = self.shared.devices.load();
        let now = Timestamp::from(SystemTime::now());
        let is_valid = |device: &Device| device.device_id == *id && device.expires_at.is_none_or(|at| now < at);
        devices.iter().find(|entry| is_valid(&entry.device)).map(|entry| Arc::clone(&entry.device))
    }

    /// Returns names of devices that may answer a request of this `risk` about `target`, for a device that may not. At most five,
    /// connected ones first. Empty unless the asking device belongs to the owner and sees the whole gateway.
    pub fn answering(&self, asks: &Device, target: Target<'_>, risk: Risk) -> Vec<String> {
        let unlimited = asks.grant.runtimes.is_none() && asks.grant.sessions.is_none();
        if asks.kind != DeviceKind::Device || !unlimited || !asks.grant.scopes.contains(&Scope::Approve) {
            return Vec::new();
        }
        let (devices, now) = (self.shared.devices.load(), Timestamp::from(SystemTime::now()));
        let may = |entry: &&DeviceEntry| {
            let Device { device_id, kind, grant, expires_at, .. } = &*entry.device;
            *kind == DeviceKind::Device
                && *device_id != asks.device_id
                && expires_at.is_none_or(|at| now < at)
                && grant.covers(Scope::Approve, target)
                && grant.approve_up_to.is_none_or(|max| risk <= max)
        };
        let (here, away): (Vec<&DeviceEntry>, Vec<&DeviceEntry>) =
            devices.iter().filter(may).partition(|entry| entry.open.load(Ordering::Relaxed) > 0);
        let mut names: Vec<String> = Vec::new();
        for entry in here.into_iter().chain(away) {
            if names.len() < NAMED && !names.contains(&entry.device.name) {
                names.push(entry.device.name.clone());
            }
        }
        names
    }

    /// Returns all devices, the local administrator first.
    pub fn devices(&self, permit: &Permit<Admin>) -> Vec<DeviceView> {
        let viewer = &permit.device().device_id;
        self.shared.devices.load().iter().map(|entry| entry.view(viewer)).collect()
    }

    async fn keep(&self, device: &Device) -> Result<(), AuthError> {
        let body = serde_json::to_vec(device).map_err(|error| AuthError::Storage(error.to_string()))?;
        let put = DeviceChange::Put { device_id: device.device_id.as_str().into(), body };
        (self.shared.persist)(put).await.map_err(AuthError::Storage)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<DeviceEntry>)) {
        // The caller holds `changing`, so no change is lost between load and store.
        let mut devices = Vec::clone(&self.shared.devices.load());
        change(&mut devices);
        self.shared.devices.store(Arc::new(devices));
    }
}

impl DeviceEntry {
    fn new(hash: Hash, device: Device) -> Self {
        // The first time is stored at once, so that it survives a restart.
        let seen = device.last_seen_at.map_or(0, Timestamp::as_millis);
        let seen_stored = Arc::new(AtomicI64::new(seen));
        Self { hash, device: Arc::new(device), seen: Arc::default(), seen_stored, open: Arc::default() }
    }

    fn view(&self, viewer: &DeviceId) -> DeviceView {
        let seen = self.seen.load(Ordering::Relaxed);
        DeviceView {
            device_id: self.device.device_id.clone(),
            name: self.device.name.clone(),
            grant: self.device.grant.clone(),
            created_at: self.device.created_at,
            kind: self.device.kind,
            last_seen_at: (seen != 0).then(|| Timestamp::from_millis(seen)).or(self.device.last_seen_at),
            expires_at: self.ends(),
            online: self.open.load(Ordering::Relaxed) > 0,
            you: self.device.device_id == *viewer,
            local: self.device.device_id.as_str() == LOCAL,
            local_browser: self.device.local,
        }
    }
}

/// Replaces `old` by `new`; returns `false` if the value was not `old`.
fn swap(value: &AtomicI64, old: i64, new: i64) -> bool {
    value.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

fn local_stays(id: &DeviceId, what: &'static str) -> Result<(), AuthError> {
    if id.as_str() == LOCAL {
        return Err(AuthError::Local(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
