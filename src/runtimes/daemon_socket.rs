//! The socket of a server that an agent's own terminals share: its location, and whether connecting to it is safe.
//!
//! The process that listens on the socket gets prompts and requests approvals, and there is no token. So the socket must belong to this
//! user, and be in a folder that no other user can write to, and so must the folders of the symbolic links on the path to it.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;

/// Maximum number of symbolic links followed from the well-known path to the socket; a path with more is refused.
const LINKS_MAX: usize = 8;
/// Maximum time for a connection that only tests whether a server listens; after it the server counts as listening, and as slow.
const REACH: Duration = Duration::from_secs(1);
/// Write permission of the group and of all others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The bit of a folder in which only the owner of a file may rename or remove it.
const STICKY: u32 = 0o1000;

/// A socket to which connecting is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSocket {
    /// The socket itself, without symbolic links.
    pub path: PathBuf,
    /// The identity of the socket, which distinguishes it from another one at the same path.
    pub identity: SocketIdentity,
}

/// The identity of a socket, which distinguishes it from a later one at the same path. An inode's number is reused, its time of change is
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketIdentity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl SocketIdentity {
    /// Returns the identity of the file at this path, through symbolic links; `None` if there is none. One system call, because it is
    /// called every second.
    pub fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|meta| Self::from_metadata(&meta))
    }

    fn from_metadata(meta: &std::fs::Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// The reason why connecting to a socket is refused. Each text ends with the fix.
#[derive(Debug, thiserror::Error)]
pub enum UnsafeSocket {
    /// The path names a file of another kind.
    #[error("{0} is not a socket: remove it, and start `codex` again")]
    NotASocket(PathBuf),
    /// The socket belongs to another user.
    #[error("{path} belongs to user {uid}, not to you: remove it, and start `codex` again")]
    OfAnotherUser {
        /// The file or folder.
        path: PathBuf,
        /// The owner.
        uid: u32,
    },
    /// Other users could replace the socket.
    #[error("other users can write to the folder {}: run `chmod go-w '{}'`", .0.display(), .0.display())]
    Writable(PathBuf),
    /// The path has too many links.
    #[error("{0} leads through more than {LINKS_MAX} symbolic links: remove it, and start `codex` again")]
    Links(PathBuf),
    /// The socket cannot be examined.
    #[error("{path} cannot be examined ({error}): check its permissions")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Returns the path of the socket of Codex's shared server: in `$CODEX_HOME`, by default `~/.codex`. `None` without a home folder.
pub fn codex_socket(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("CODEX_HOME").or_else(|| Some(set("HOME")?.join(".codex")))?;
    home.is_absolute().then(|| home.join("app-server-control").join("app-server-control.sock"))
}

/// Returns the socket at a well-known path; `None` if there is none, or only a dangling link.
///
/// # Errors
/// [`UnsafeSocket`]: connecting to it is not safe.
pub fn find(path: &Path) -> Result<Option<DaemonSocket>, UnsafeSocket> {
    let own = rustix::process::geteuid().as_raw();
    let mut at = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Some(meta) = if_exists(&at, std::fs::symlink_metadata)? else { return Ok(None) };
        let Some(folder) = at.parent() else { return Err(UnsafeSocket::NotASocket(at)) };
        // The folder has no links, so that the checked path is the used one.
        let Some(folder) = if_exists(folder, std::fs::canonicalize)? else { return Ok(None) };
        check_folders(&folder, own)?;
        if meta.uid() != own {
            return Err(UnsafeSocket::OfAnotherUser { path: at, uid: meta.uid() });
        }
        let name = at.file_name().map(ToOwned::to_owned).unwrap_or_default();
        if meta.file_type().is_symlink() {
            let Some(target) = if_exists(&at, std::fs::read_link)? else { return Ok(None) };
            at = folder.join(target);
            continue;
        }
        if !meta.file_type().is_socket() {
            return Err(UnsafeSocket::NotASocket(at));
        }
        return Ok(Some(DaemonSocket { path: folder.join(name), identity: SocketIdentity::from_metadata(&meta) }));
    }
    Err(UnsafeSocket::Links(path.to_owned()))
}

/// Returns the result of `read`; `None` if the file does not exist.
fn if_exists<'p, T>(path: &'p Path, read: impl Fn(&'p Path) -> io::Result<T>) -> Result<Option<T>, UnsafeSocket> {
    match read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(UnsafeSocket::Unreadable { path: path.to_owned(), error }),
    }
}

/// Checks that no other user can put another file at a path in `folder`. The folder itself must be the user's; those around it may be the
/// system's, and also writable to all if only owners may rename and remove files in them, as in `/tmp`.
fn check_folders(folder: &Path, own: u32) -> Result<(), UnsafeSocket> {
    for (depth, dir) in folder.ancestors().enumerate() {
        let unreadable = |error| UnsafeSocket::Unreadable { path: dir.to_owned(), error };
        let meta = std::fs::symlink_metadata(dir).map_err(unreadable)?;
        let is_system = depth > 0 && meta.uid() == 0;
        if meta.uid() != own && !is_system {
            return Err(UnsafeSocket::OfAnotherUser { path: dir.to_owned(), uid: meta.uid() });
        }
        let shared = depth > 0 && meta.mode() & STICKY != 0;
        if meta.mode() & WRITABLE_BY_OTHERS != 0 && !shared {
            return Err(UnsafeSocket::Writable(dir.to_owned()));
        }
    }
    Ok(())
}

/// Returns whether a server of this user listens on the socket. One that is too busy to accept the connection counts as listening.
pub async fn listens(socket: &Path) -> bool {
    match tokio::time::timeout(REACH, UnixStream::connect(socket)).await {
        Ok(Ok(stream)) => stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw()),
        Ok(Err(error)) => !matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The socket in the form of Codex: `control/sock`, a link to `daemon/ID`.
    struct Folders {
        _root: tempfile::TempDir,
        control: PathBuf,
        daemon: PathBuf,
        link: PathBuf,
        real: PathBuf,
    }

    impl Folders {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let (control, daemon) = (root.path().join("control"), root.path().join("daemon"));
            for dir in [&control, &daemon] {
                std::fs::create_dir(dir).unwrap();
                std::fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
            }
            let (link, real) = (control.join("sock"), daemon.join("id"));
            symlink(&real, &link).unwrap();
            Self { _root: root, control, daemon, link, real }
        }

        fn refused(&self) -> String {
            find(&self.link).unwrap_err().to_string()
        }
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn socket_is_where_codex_puts_it() {
        for (codex_home, home, expected) in [
            (Some("/c"), Some("/h"), Some("/c")),
            (Some(""), Some("/h"), Some("/h/.codex")),
            (None, Some("/h"), Some("/h/.codex")),
            (Some("relative"), Some("/h"), None),
            (None, None, None),
        ] {
            let env = |name: &str| if name == "HOME" { home } else { codex_home }.map(OsString::from);
            let expected = expected.map(|home| Path::new(home).join("app-server-control/app-server-control.sock"));
            assert_eq!(codex_socket(env), expected, "{codex_home:?} {home:?}");
        }
    }

    #[tokio::test]
    async fn own_socket_is_found_through_its_link_and_told_from_the_next_one() {
        let folders = Folders::new();
        assert_eq!(find(&folders.link).unwrap(), None, "a link to nothing");
        assert_eq!(find(&folders.control.join("none/sock")).unwrap(), None);
        let listener = UnixListener::bind(&folders.real).unwrap();
        let first = find(&folders.link).unwrap().unwrap();
        assert_eq!(first.path, folders.real.canonicalize().unwrap());
        assert_eq!(SocketIdentity::at(&folders.link), Some(first.identity));
        assert!(listens(&first.path).await);
        drop(listener);
        assert!(!listens(&first.path).await, "a socket that a killed server left");
        std::fs::remove_file(&folders.real).unwrap();
        assert_eq!(SocketIdentity::at(&folders.link), None);
        let _listener = UnixListener::bind(&folders.real).unwrap();
        assert_ne!(find(&folders.link).unwrap().unwrap().identity, first.identity);
    }

    #[test]
    fn socket_that_others_could_replace_is_refused_with_the_fix() {
        let folders = Folders::new();
        let _listener = UnixListener::bind(&folders.real).unwrap();
        for (folder, open) in [
            (&folders.daemon, 0o777),
            (&folders.daemon, 0o770),
            (&folders.daemon, 0o1777),
            (&folders.control, 0o722),
            (&folders.control, 0o1777),
        ] {
            mode(folder, open);
            let reason = folders.refused();
            assert!(reason.contains("other users can write") && reason.contains("chmod go-w"), "{open:o}: {reason}");
            assert!(reason.contains(&*folder.file_name().unwrap().to_string_lossy()), "{reason}");
            mode(folder, 0o755);
            assert!(find(&folders.link).unwrap().is_some(), "others may read");
            mode(folder, 0o700);
        }
        // A folder around it that is writable is worse still; one like /tmp is not.
        let root = folders.control.parent().unwrap();
        mode(root, 0o777);
        assert!(folders.refused().contains("other users can write"));
        mode(root, 0o1777);
        assert!(find(&folders.link).unwrap().is_some());
    }

    #[test]
    fn socket_must_be_a_socket_and_at_the_end_of_few_links() {
        let folders = Folders::new();
        std::fs::write(&folders.real, "").unwrap();
        assert!(folders.refused().contains("is not a socket"));
        std::fs::remove_file(&folders.real).unwrap();
        symlink(&folders.link, &folders.real).unwrap();
        assert!(folders.refused().contains("symbolic links"));
    }

    #[test]
    fn socket_of_another_user_is_refused() {
        let folders = Folders::new();
        let _listener = UnixListener::bind(&folders.real).unwrap();
        // Only root can make one; for everybody else the system's own folders stand in for it.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&folders.real, Some(12345), None).unwrap();
            assert!(folders.refused().contains("belongs to user 12345"));
            std::os::unix::fs::lchown(&folders.real, Some(0), None).unwrap();
            std::os::unix::fs::lchown(&folders.link, Some(12345), None).unwrap();
            assert!(folders.refused().contains("belongs to user 12345"));
            std::os::unix::fs::lchown(&folders.link, Some(0), None).unwrap();
            std::os::unix::fs::chown(&folders.daemon, Some(12345), None).unwrap();
            assert!(folders.refused().contains("belongs to user 12345"));
        } else {
            assert!(find(Path::new("/dev/null")).unwrap_err().to_string().contains("belongs to user 0"));
        }
    }
}
