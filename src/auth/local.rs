//! Local browsers of this user: the page that signs one in, and when such a sign-in ends.
//!
//! Every user of the machine can read a program's arguments in the process list. So a browser is started with the name of a
//! file that only its owner can read, and the one-time code is in that file.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;

use super::devices::{AuthShared, DeviceEntry};
use super::token::{self, Hash};
use super::{Auth, AuthError, Device};
use plexus_protocol::{DeviceId, Timestamp};

/// The folder of the pages, in the state folder.
const FOLDER: &str = "open";
/// Time after which an unused local sign-in ends, in milliseconds: a week. `plexus open` makes another one.
const UNUSED: i64 = 7 * 24 * 3600 * 1000;
/// Most local sign-ins; a further one replaces the one unused for longest.
const MOST: usize = 8;

/// Writes a page, readable by this user only, that takes a browser to `url` with this code. The gateway removes it when the
/// code is used or expires.
///
/// # Errors
/// [`AuthError::File`] if it cannot be written.
pub fn redirect(home: &Path, url: &str, code: &str) -> Result<PathBuf, AuthError> {
    let folder = home.join(FOLDER);
    let fail = |path: &Path, error: std::io::Error| AuthError::file(path, &error);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|why| fail(&folder, why))?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).map_err(|why| fail(&folder, why))?;
    let file = page(home, &token::hash(code));
    let to = escaped(&format!("{}/#code={code}", url.trim_end_matches('/')));
    let text = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={to}\">\n<title>Plexus</title>\n\
         <p><a href=\"{to}\">Open Plexus</a></p>\n"
    );
    // A new file, so that no other process has it open.
    let mut written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(|why| fail(&file, why))?;
    written.write_all(text.as_bytes()).map_err(|why| fail(&file, why))?;
    Ok(file)
}

/// The path of a code's page, by the code's hash, so that the name does not reveal the code.
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
    /// When the device expires: at its set time, or, for a local sign-in, after a week without use.
    pub(super) fn ends(&self) -> Option<Timestamp> {
        let Device { local, expires_at, .. } = *self.device;
        if !local {
            return expires_at;
        }
        let used = if self.open.load(Ordering::Relaxed) > 0 { Timestamp::from(SystemTime::now()) } else { self.used() };
        let unused = used.plus_millis(UNUSED);
        Some(expires_at.map_or(unused, |at| at.min(unused)))
    }

    /// When the device was last used, as far as known.
    fn used(&self) -> Timestamp {
        let seen = Timestamp::from_millis(self.seen.load(Ordering::Relaxed));
        let kept = self.device.last_seen_at.unwrap_or(self.device.created_at);
        seen.max(kept).max(self.device.created_at)
    }
}

impl Auth {
    /// When a device expires; `None` if it does not, or does not exist.
    pub(super) fn ends(&self, id: &DeviceId) -> Option<Timestamp> {
        self.shared.devices.load().iter().find(|entry| entry.device.device_id == *id)?.ends()
    }

    /// Ends the local sign-in unused for longest, if there are as many as allowed.
    pub(super) async fn make_room(&self) {
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::Arc;

    use super::super::{Admin, DeviceView, Grant, Permit, PersistDevice, Target, read_token};
    use super::*;
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
        let caller = auth.check_cookie(&token, super::super::CookieSite::Origin(ORIGIN)).unwrap();
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
            let device = Device { created_at: days(30), last_seen_at: seen, ..(*device).clone() };
            [serde_json::to_vec(&device).unwrap()]
        };
        let site = super::super::CookieSite::Origin(ORIGIN);
        for (seen, stays) in [(None, false), (Some(days(8)), false), (Some(days(6)), true)] {
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
}
