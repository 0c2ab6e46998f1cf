use super::*;
use crate::{Target, read_token};

type Kept = Arc<Mutex<Vec<DeviceChange>>>;

struct Fixture {
    auth: Auth,
    local: Caller,
    kept: Kept,
    full: Arc<std::sync::atomic::AtomicBool>,
    home: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let kept = Kept::default();
        let full = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (to, disk_full) = (Arc::clone(&kept), Arc::clone(&full));
        let persist: PersistDevice = Arc::new(move |change| {
            let outcome = if disk_full.load(Ordering::SeqCst) {
                Err("no space".to_owned())
            } else {
                to.lock().push(change);
                Ok(())
            };
            Box::pin(std::future::ready(outcome))
        });
        let auth = Auth::open(home.path(), &[], persist).unwrap();
        let local = auth.check(&read_token(home.path()).unwrap()).unwrap();
        Self { auth, local, kept, full, home }
    }

    fn admin(&self) -> Permit<Admin> {
        self.local.permit(Target::Gateway).unwrap()
    }
}

fn watcher() -> Grant {
    Grant::new(&[Scope::Watch])
}

#[test]
fn token_proves_a_device_only_when_whole() {
    let fixture = Fixture::new();
    let token = read_token(fixture.home.path()).unwrap();
    let mut wrong = vec![
        String::new(),
        token[..token.len() - 1].into(),
        format!("{token}a"),
        format!(" {token}"),
        format!("{token}\n"),
        token.to_ascii_uppercase(),
        token.trim_start_matches("plx_").into(),
    ];
    // Whichever byte differs, the first, the last or one between.
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] ^= 1;
        wrong.push(String::from_utf8(bytes).unwrap());
    }
    for token in wrong {
        assert!(fixture.auth.check(&token).is_none(), "{token:?}");
    }
    assert!(fixture.auth.check(&token).is_some());
}

#[test]
fn token_comparison_reads_every_byte() {
    let wanted = [7; 32];
    for at in 0..32 {
        let mut other = wanted;
        other[at] ^= 0x80;
        assert_eq!(find([&other].into_iter(), &wanted), None, "byte {at}");
        assert_eq!(find([&other, &wanted, &other].into_iter(), &wanted), Some(1));
    }
}

#[tokio::test]
async fn code_works_once_and_its_device_survives_a_restart() {
    let fixture = Fixture::new();
    let code = fixture.auth.mint_code(&fixture.admin(), watcher(), Duration::from_secs(60)).unwrap();
    assert!(code.code.len() >= 26, "at least 130 bits");
    assert!(matches!(fixture.auth.redeem("wrong", "phone", None).await, Err(AuthError::BadCode)));
    assert!(matches!(fixture.auth.redeem(&code.code, "\u{202e}", None).await, Err(AuthError::Invalid(_))));
    let (device, token) = fixture.auth.redeem(&code.code, "phone", None).await.unwrap();
    assert!(matches!(fixture.auth.redeem(&code.code, "phone", None).await, Err(AuthError::BadCode)), "single use");
    assert_eq!(fixture.auth.check(&token).unwrap().device().device_id, device.device_id);
    assert!(fixture.auth.check(&token).unwrap().permit::<Admin>(Target::Gateway).is_err());

    let rows: Vec<Vec<u8>> = fixture
        .kept
        .lock()
        .iter()
        .filter_map(|change| match change {
            DeviceChange::Put { body, .. } => Some(body.clone()),
            DeviceChange::Delete { .. } => None,
        })
        .collect();
    assert!(!String::from_utf8_lossy(&rows.concat()).contains(&token), "the token itself is kept nowhere");
    let again = Auth::open(fixture.home.path(), &rows, Arc::clone(&fixture.auth.shared.persist)).unwrap();
    assert_eq!(again.check(&token).unwrap().device().name, "phone");
    assert!(Auth::open(fixture.home.path(), &[b"{".to_vec()], Arc::clone(&fixture.auth.shared.persist)).is_err());
}

#[tokio::test]
async fn codes_expire_and_their_number_is_bounded() {
    let fixture = Fixture::new();
    let dead = fixture.auth.mint_code(&fixture.admin(), watcher(), Duration::ZERO).unwrap();
    assert!(matches!(fixture.auth.redeem(&dead.code, "phone", None).await, Err(AuthError::BadCode)));
    let long = fixture.auth.mint_code(&fixture.admin(), watcher(), Duration::from_secs(9999)).unwrap();
    assert!(fixture.auth.shared.codes.lock()[0].until <= Instant::now() + CODE_LIFE);
    for _ in 0..CODES {
        fixture.auth.mint_code(&fixture.admin(), watcher(), Duration::from_secs(60)).unwrap();
    }
    assert_eq!(fixture.auth.shared.codes.lock().len(), CODES);
    assert!(matches!(fixture.auth.redeem(&long.code, "phone", None).await, Err(AuthError::BadCode)), "the oldest went");
}

#[tokio::test]
async fn revoked_device_is_refused_at_once_even_on_a_full_disk() {
    let fixture = Fixture::new();
    let (device, token) = fixture.auth.enrol(&fixture.admin(), "phone", watcher()).await.unwrap();
    let caller = fixture.auth.check(&token).unwrap();
    let told = fixture.auth.revocations();
    fixture.auth.alter(&fixture.admin(), &device.device_id, Some("old phone"), Some(true)).await.unwrap();
    assert!(fixture.auth.is_enrolled(&caller) && !told.has_changed().unwrap(), "a new name revokes nothing");

    fixture.full.store(true, Ordering::SeqCst);
    let revoked = fixture.auth.revoke(&fixture.admin(), &device.device_id).await;
    assert!(matches!(revoked, Err(AuthError::Storage(_))));
    assert!(told.has_changed().unwrap() && !fixture.auth.is_enrolled(&caller));
    assert!(fixture.auth.check(&token).is_none());
    fixture.full.store(false, Ordering::SeqCst);
    fixture.auth.revoke(&fixture.admin(), &device.device_id).await.unwrap();
    let delete = DeviceChange::Delete { device_id: device.device_id.as_str().into() };
    assert_eq!(fixture.kept.lock().last(), Some(&delete), "asking again wrote it down");
    let gone = fixture.auth.revoke(&fixture.admin(), &device.device_id).await;
    assert!(matches!(gone, Err(AuthError::NoDevice(_))));
}

#[tokio::test]
async fn local_administrator_is_permanent_and_grants_are_checked() {
    let fixture = Fixture::new();
    let local = DeviceId::trusted(LOCAL);
    assert!(matches!(fixture.auth.revoke(&fixture.admin(), &local).await, Err(AuthError::Local(_))));
    for grant in
        [Grant::new(&[]), Grant { runtimes: Some(vec![]), ..watcher() }, Grant { sessions: Some(vec![]), ..watcher() }]
    {
        assert!(matches!(fixture.auth.enrol(&fixture.admin(), "x", grant).await, Err(AuthError::Invalid(_))));
    }
    for n in 0..DEVICES {
        fixture.auth.enrol(&fixture.admin(), &format!("n{n}"), watcher()).await.unwrap();
    }
    assert!(fixture.auth.enrol(&fixture.admin(), "one more", watcher()).await.is_err());
    let devices = fixture.auth.devices(&fixture.admin());
    assert_eq!(devices.len(), DEVICES + 1);
    assert!(devices[0].local && !serde_json::to_string(&devices).unwrap().contains("sha256"));
}

#[tokio::test]
async fn device_that_cannot_be_stored_is_not_enrolled() {
    let fixture = Fixture::new();
    fixture.full.store(true, Ordering::SeqCst);
    assert!(matches!(fixture.auth.enrol(&fixture.admin(), "x", watcher()).await, Err(AuthError::Storage(_))));
    assert_eq!(fixture.auth.devices(&fixture.admin()).len(), 1);
}
