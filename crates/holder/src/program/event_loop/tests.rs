use super::peers::{is_own_user, same_user};
use super::*;

#[cfg(target_os = "linux")]
#[test]
fn holder_admits_only_its_owner() {
    use rustix::process::Uid;
    let (we, root, other) = (Uid::from_raw(1000), Uid::from_raw(0), Uid::from_raw(1001));
    assert!(same_user(we, we));
    assert!(!same_user(root, we) && !same_user(other, we) && !same_user(we, root));
    // The kernel reports the peer's user.
    let (one, other) = UnixStream::pair().unwrap();
    assert!(is_own_user(&one) && is_own_user(&other));
}

#[test]
fn holder_folder_is_created_private_and_refused_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("held/x.sock");
    drop(listen(&path).unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o750)).unwrap();
    assert!(listen(&path).unwrap_err().to_string().contains("accessible to its owner only"));
}
