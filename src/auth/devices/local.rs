//! Local browsers of this user: the page that signs one in, and the expiry of such a sign-in.
//!
//! Every user of the machine can read a program's arguments in the process list. So a browser is started with the name of a
//! file that only its owner can read, and the one-time code is in that file.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;

use super::{Auth, AuthShared, DeviceEntry};
use crate::device_name::NAME_CHARS;
use crate::token::{self, Hash};
use crate::{Admin, AuthError, Device, Permit};
use plexus_protocol::{DeviceId, Timestamp};

/// The folder of the pages, in the state folder.
const FOLDER: &str = "open";
/// Time after which an unused local sign-in ends, in milliseconds: 30 days. `plexus open` makes another one.
const UNUSED: i64 = 30 * 24 * 3600 * 1000;
/// Maximum number of local sign-ins; a further one replaces the one unused for longest.
const MOST: usize = 8;
/// Length of the identifier that a browser's page stores, in characters: the 128 bits of a UUID, with space for other forms.
const BROWSER_CHARS: std::ops::RangeInclusive<usize> = 16..=64;

/// Writes a page, readable by this user only, that takes a browser to `url` with this code. The gateway removes it when the
/// code is used or expires.
///
/// # Errors
/// [`AuthError::File`] if it cannot be written.
pub fn redirect(home: &Path, url: &str, code: &str) -> Result<PathBuf, AuthError> {
    let folder = home.join(FOLDER);
    let fail = |path: &Path, error: std::io::Error| AuthError::file(path, &error);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| fail(&folder, error))?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).map_err(|error| fail(&folder, error))?;
    let file = page(home, &token::hash(code));
    let to = escaped(&format!("{}/#code={code}", url.trim_end_matches('/')));
    let text = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={to}\">\n<title>Plexus</title>\n\
         <p><a href=\"{to}\">Open Plexus</a></p>\n"
    );
    // A new file, so that no other process has it open.
    let mut written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(|error| fail(&file, error))?;
    written.write_all(text.as_bytes()).map_err(|error| fail(&file, error))?;
    Ok(file)
}

/// Returns the path of a code's page, by the code's hash, so that the name does not reveal the code.
fn page(home: &Path, code: &Hash) -> PathBuf {
    let name = HEXLOWER.encode(&token::hash(&format!("plexus open {}", HEXLOWER.encode(code))));
    home.join(FOLDER).join(format!("{}.html", &name[..32]))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Removes all pages, since no code outlives its gateway.
pub(super) fn clear(home: &Path) {
    if let Err(error) = std::fs::remove_dir_all(home.join(FOLDER))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "pages of earlier one-time codes could not be removed");
    }
}

impl AuthShared {
    /// Removes the page of a code that was used.
    pub(super) fn used(&self, code: &Hash) {
        let _ = std::fs::remove_file(page(&self.home, code));
    }

    /// Removes the page of a code when the code expires.
    pub(super) fn unused_later(self: &std::sync::Arc<Self>, code: Hash, life: Duration) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared: Weak<Self> = std::sync::Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(life).await;
            if let Some(shared) = shared.upgrade() {
                shared.used(&code);
            }
        });
    }
}

impl DeviceEntry {
    /// Returns the time when the device expires: its set time, or, for a local sign-in, 30 days after the last use.
    pub(super) fn ends(&self) -> Option<Timestamp> {
        let Device { local, expires_at, .. } = *self.device;
        if !local {
            return expires_at;
        }
        let used = if self.open.load(Ordering::Relaxed) > 0 { Timestamp::from(SystemTime::now()) } else { self.used() };
        let unused = used.plus_millis(UNUSED);
        Some(expires_at.map_or(unused, |at| at.min(unused)))
    }

    /// Returns the time when the device was last used, as far as known.
    fn used(&self) -> Timestamp {
        let seen = Timestamp::from_millis(self.seen.load(Ordering::Relaxed));
        let stored = self.device.last_seen_at.unwrap_or(self.device.created_at);
        seen.max(stored).max(self.device.created_at)
    }
}

impl Auth {
    /// Returns the time when a device expires; `None` if it does not, or does not exist.
    pub(super) fn ends(&self, id: &DeviceId) -> Option<Timestamp> {
        self.shared.devices.load().iter().find(|entry| entry.device.device_id == *id)?.ends()
    }

    /// Removes the local sign-in unused for longest, if there are as many as allowed.
    pub(super) async fn evict_local(&self) {
        let oldest = {
            let devices = self.shared.devices.load();
            let mut local: Vec<&DeviceEntry> = devices.iter().filter(|entry| entry.device.local).collect();
            local.sort_by_key(|entry| (entry.open.load(Ordering::Relaxed) > 0, entry.used()));
            (local.len() >= MOST).then(|| local[0].device.device_id.clone())
        };
        if let Some(oldest) = oldest
            && let Err(error) = self.remove(&oldest).await
        {
            tracing::warn!(device_id = %oldest, %error, "a sign-in on this machine could not be ended");
        }
    }
}

/// Returns `name`, or `name 2`, `name 3` .. if another local browser has it.
fn numbered(name: &str, taken: &[&str]) -> String {
    let free = |name: &String| !taken.contains(&name.as_str());
    let with = |n: usize| {
        let number = format!(" {n}");
        let length = NAME_CHARS.saturating_sub(number.len());
        name.chars().take(length).collect::<String>() + &number
    };
    // One more than there are names in use: one of them is free.
    std::iter::once(name.to_owned()).chain((2..).map(with).take(taken.len())).find(free).unwrap_or_else(|| name.into())
}

impl Auth {
    /// Makes a browser that has just signed in the only device of its browser: those that were signed in before with the same `browser`,
    /// the identifier that its page stores, are removed, and its name is numbered if another one has it. Other devices than local
    /// browsers stay unchanged.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] for an identifier of the wrong form; [`AuthError::Storage`].
    pub async fn one_per_browser(&self, device: &Arc<Device>, browser: Option<&str>) -> Result<Arc<Device>, AuthError> {
        if !device.local {
            return Ok(Arc::clone(device));
        }
        let id = &device.device_id;
        let devices = || self.shared.devices.load_full();
        if let Some(browser) = browser {
            let same = |one: &&DeviceEntry| {
                one.device.local && one.device.device_id != *id && one.device.browser.as_deref() == Some(browser)
            };
            let former: Vec<DeviceId> = devices().iter().filter(same).map(|one| one.device.device_id.clone()).collect();
            for one in former {
                match self.remove(&one).await {
                    // The device was revoked meanwhile.
                    Ok(()) | Err(AuthError::NoDevice(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.edit(id, |device| {
            let devices = devices();
            let devices = devices.iter().filter(|one| one.device.local && one.device.device_id != *id);
            let taken: Vec<&str> = devices.map(|one| one.device.name.as_str()).collect();
            device.name = numbered(&device.name, &taken);
            device.browser = browser.map(str::to_owned);
        })
        .await
    }

    /// Signs out all browsers of this user on this machine, and returns how many there were.
    ///
    /// # Errors
    /// [`AuthError::Storage`], as for [`revoke`](Auth::revoke): the call may be repeated.
    pub async fn revoke_local_browsers(&self, _permit: &Permit<Admin>) -> Result<usize, AuthError> {
        let devices = self.shared.devices.load_full();
        let local: Vec<&DeviceId> =
            devices.iter().filter(|one| one.device.local).map(|one| &one.device.device_id).collect();
        let mut count = 0;
        for id in local {
            match self.remove(id).await {
                Ok(()) => count += 1,
                // The device was removed with the device that signed it in, or by another caller.
                Err(AuthError::NoDevice(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

/// Checks and returns the identifier that a browser's page stores.
///
/// # Errors
/// [`AuthError::Invalid`].
pub fn browser_id(text: &str) -> Result<&str, AuthError> {
    let fits = BROWSER_CHARS.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let (least, most) = (BROWSER_CHARS.start(), BROWSER_CHARS.end());
    fits.then_some(text).ok_or_else(|| {
        AuthError::Invalid(format!("`browser` is {least} to {most} letters, digits and `-`, such as a UUID"))
    })
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::{Grant, PersistDevice, Target, read_token};
    use plexus_protocol::api::devices::DeviceView;
    use plexus_store::DeviceChange;

    const ORIGIN: &str = "http://127.0.0.1:7420";

    type Rows = Arc<Mutex<Vec<DeviceChange>>>;

    fn opened(home: &Path, rows: &[Vec<u8>]) -> (Auth, Permit<Admin>, Rows) {
        let kept = Rows::default();
        let to = Arc::clone(&kept);
        let persist: PersistDevice = Arc::new(move |change| {
            to.lock().push(change);
            Box::pin(std::future::ready(Ok(())))
        });
        let auth = Auth::open(home, rows, persist).unwrap();
        let permit = auth.check(&read_token(home).unwrap()).unwrap().permit(Target::Gateway).unwrap();
        (auth, permit, kept)
    }

    fn code(auth: &Auth, permit: &Permit<Admin>) -> String {
        auth.mint_code(permit, Grant::all(), Duration::from_secs(60)).unwrap().code
    }

    fn there(home: &Path) -> usize {
        std::fs::read_dir(home.join(FOLDER)).map_or(0, |folder| folder.count())
    }

    #[tokio::test]
    async fn sign_in_page_is_private_and_removed_with_its_code() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, permit, _) = opened(dir.path(), &[]);
        let used = code(&auth, &permit);
        let file = redirect(dir.path(), "http://127.0.0.1:7420/", &used).unwrap();
        assert!(!file.to_str().unwrap().contains(&used), "{file:?}");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("url=http://127.0.0.1:7420/#code={used}\"")), "{text}");
        assert!(redirect(dir.path(), ORIGIN, &used).is_err(), "nothing that is there already is written to");
        auth.redeem(&used, "browser", Some(ORIGIN.into())).await.unwrap();
        assert!(!file.exists(), "used");

        let late = auth.mint_code(&permit, Grant::all(), Duration::from_millis(50)).unwrap().code;
        redirect(dir.path(), ORIGIN, &late).unwrap();
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while there(dir.path()) > 0 {
            assert!(std::time::Instant::now() < end, "the page of a code that is too old stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        redirect(dir.path(), ORIGIN, &code(&auth, &permit)).unwrap();
        drop(auth);
        opened(dir.path(), &[]);
        assert_eq!(there(dir.path()), 0, "no code outlives its gateway");
    }

    async fn signed_in(auth: &Auth, permit: &Permit<Admin>, name: &str) -> (Arc<Device>, String) {
        auth.redeem(&code(auth, permit), name, Some(ORIGIN.into())).await.unwrap()
    }

    #[tokio::test]
    async fn local_sign_ins_are_bounded_and_the_one_in_use_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, permit, _) = opened(dir.path(), &[]);
        let (first, token) = signed_in(&auth, &permit, "first").await;
        let caller = auth.check_cookie(&token, crate::CookieSite::Origin(ORIGIN)).unwrap();
        let online = auth.online(&caller);
        for n in 0..20 {
            signed_in(&auth, &permit, &format!("n{n}")).await;
        }
        let named = |auth: &Auth| auth.devices(&permit).into_iter().map(|one: DeviceView| one.name).collect::<Vec<_>>();
        let names = named(&auth);
        assert_eq!(names.len(), 1 + MOST, "{names:?}");
        assert!(names.contains(&first.name) && names.contains(&"n19".to_owned()), "{names:?}");
        drop(online);
        // Neither another machine's browser nor what has a token of its own is one of them.
        for origin in [Some("https://plexus.example".to_owned()), None] {
            let (device, _) = auth.redeem(&code(&auth, &permit), "away", origin).await.unwrap();
            assert!(!device.local && auth.ends(&device.device_id).is_none());
        }
        assert_eq!(named(&auth).len(), 1 + MOST + 2);
    }

    #[tokio::test]
    async fn local_sign_in_ends_when_unused_and_stays_when_used() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, permit, _) = opened(dir.path(), &[]);
        let (device, token) = signed_in(&auth, &permit, "browser").await;
        let now = Timestamp::from(SystemTime::now());
        let days = |days: i64| now.plus_millis(-days * 24 * 3600 * 1000);
        let aged = |seen: Option<Timestamp>| {
            let device = Device { created_at: days(90), last_seen_at: seen, ..(*device).clone() };
            [serde_json::to_vec(&device).unwrap()]
        };
        let site = crate::CookieSite::Origin(ORIGIN);
        for (seen, stays) in [(None, false), (Some(days(31)), false), (Some(days(29)), true)] {
            let (auth, _, kept) = opened(dir.path(), &aged(seen));
            assert_eq!(auth.check_cookie(&token, site).is_some(), stays, "{seen:?}");
            let gone = DeviceChange::Delete { device_id: device.device_id.as_str().into() };
            let end = std::time::Instant::now() + Duration::from_secs(30);
            while !stays && !kept.lock().contains(&gone) {
                assert!(std::time::Instant::now() < end, "its row stays");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let listed = auth.devices(&permit);
            assert_eq!(listed.len(), 1 + usize::from(stays), "{listed:?}");
            if stays {
                assert!(listed[1].expires_at.unwrap() > now, "it was used right now, so it lasts on");
            }
        }
    }

    #[test]
    fn numbered_names_are_free_and_short() {
        assert_eq!(numbered("Firefox", &[]), "Firefox");
        assert_eq!(numbered("Firefox", &["Firefox", "Firefox 2", "Chrome"]), "Firefox 3");
        assert_eq!(numbered("Firefox", &["Firefox", "Firefox 3"]), "Firefox 2");
        let long = "é".repeat(NAME_CHARS);
        assert_eq!(numbered(&long, &[&long]).chars().count(), NAME_CHARS);
    }

    #[test]
    fn browser_identifiers_have_one_form() {
        assert!(browser_id("0f8fad5b-d9cb-469f-a165-70867728950e").is_ok());
        for bad in ["", "short", "0f8fad5b_d9cb_469f", &"a".repeat(65), "0f8fad5b d9cb 469f"] {
            assert!(browser_id(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn local_browser_that_signs_in_anew_stays_one_device() {
        const ONE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
        const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
        let dir = tempfile::tempdir().unwrap();
        let (auth, permit, kept) = opened(dir.path(), &[]);
        let mut tokens = Vec::new();
        for browser in [Some(ONE), Some(OTHER), Some(ONE), None, None] {
            let (device, token) = signed_in(&auth, &permit, "Firefox").await;
            auth.one_per_browser(&device, browser).await.unwrap();
            tokens.push(token);
        }
        let site = crate::CookieSite::Origin(ORIGIN);
        let works = |token: &String| auth.check_cookie(token, site).is_some();
        assert_eq!(tokens.iter().map(works).collect::<Vec<_>>(), [false, true, true, true, true]);
        let local = auth.devices(&permit).into_iter().filter(|one| one.local_browser).map(|one| one.name);
        let names: Vec<String> = local.collect();
        assert_eq!(names, ["Firefox 2", "Firefox", "Firefox 3", "Firefox 4"]);
        // A phone is no local browser: it keeps its name.
        let away = Some("https://plexus.example".to_owned());
        let (phone, _) = auth.redeem(&code(&auth, &permit), "Firefox", away).await.unwrap();
        assert_eq!(auth.one_per_browser(&phone, Some(ONE)).await.unwrap().name, "Firefox");
        assert_eq!(auth.revoke_local_browsers(&permit).await.unwrap(), 4);
        assert!(!tokens.iter().any(works));
        assert_eq!(auth.devices(&permit).len(), 2, "this machine and the phone stay");
        let gone = kept.lock().iter().filter(|one| matches!(one, DeviceChange::Delete { .. })).count();
        assert_eq!(gone, 5);
        assert_eq!(auth.revoke_local_browsers(&permit).await.unwrap(), 0);
    }
}
