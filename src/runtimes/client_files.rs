//! Text files inside a folder. One file, because every access to a file passes the same checks: nothing outside the folder is read or
//! written, and nothing of the gateway's own, regardless of the path that an agent names.
//!
//! The kernel itself enforces that where it can (`openat2` with `RESOLVE_BENEATH`): a link that leads out is refused even if it is
//! created meanwhile. Elsewhere the path is walked a step at a time and no link is followed at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use plexus_dialects::ClientToolError;
use plexus_sessions::is_inside;

/// Maximum size of a file that is read or written, in bytes; a larger one is refused.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// Maximum number of attempts of the kernel when files are moved while it resolves a path.
const TRIES: usize = 8;

/// Flags for opening files. Opened files are regular ones: opening a pipe must not wait for its other end, nor a terminal become the
/// controlling one.
const CAREFUL: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The folders that bound an agent's access to files.
#[derive(Clone, Debug)]
pub(super) struct FileScope {
    /// The session's folder: nothing outside of it is accessed.
    pub(super) folder: PathBuf,
    /// The gateway's own folder: nothing inside it is accessed, regardless of its location and of links to it.
    pub(super) private: Option<Arc<Path>>,
}

impl FileScope {
    /// Refuses paths that belong to the gateway, or may do so.
    fn check(&self, path: &Path) -> Result<(), ClientToolError> {
        match &self.private {
            Some(private) if is_inside(path, private) != Some(false) => Err(own(path)),
            _ => Ok(()),
        }
    }
}

/// Refuses a call of an agent to its client if a path in it leads into the gateway's own folder. Paths of a client on another machine
/// have another meaning; the few with the same spelling are not served.
///
/// # Errors
/// [`ClientToolError::Refused`].
pub(super) fn check_paths(scope: &FileScope, params: &str) -> Result<(), ClientToolError> {
    #[derive(serde::Deserialize)]
    struct Paths {
        path: Option<PathBuf>,
        cwd: Option<PathBuf>,
    }
    let (Some(private), Ok(paths)) = (&scope.private, plexus_protocol::object::from_str::<Paths>(params)) else {
        return Ok(());
    };
    for path in [paths.path, paths.cwd].iter().flatten() {
        if is_inside(path, private).unwrap_or_else(|| path.is_absolute()) {
            return Err(own(path));
        }
    }
    Ok(())
}

fn own(path: &Path) -> ClientToolError {
    refused(path, "it is in the gateway's own folder")
}

/// Returns the text of a file: `limit` lines from line `line` (counting from 1), line ends unchanged.
///
/// # Errors
/// [`ClientToolError::Missing`] if the file does not exist; [`ClientToolError::Refused`] if it is outside `folder`, not a regular file,
/// larger than 8 MiB, or not UTF-8.
pub(super) fn read(
    scope: &FileScope,
    path: &Path,
    line: Option<u64>,
    limit: Option<u64>,
) -> Result<String, ClientToolError> {
    let file = open(scope, path, OFlags::RDONLY | CAREFUL)?;
    let text = text(&file, path)?;
    if line.is_none() && limit.is_none() {
        return Ok(text);
    }
    let count = |number: Option<u64>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let lines = text.split_inclusive('\n').skip(count(line).unwrap_or(1).saturating_sub(1));
    Ok(lines.take(count(limit).unwrap_or(usize::MAX)).collect())
}

/// Writes a file, if it still contains `before` (`None`: if it still does not exist). Its folder must exist. The new text is written
/// beside the old file and replaces it as a whole, so that a full disk or a kill leaves one or the other; only a file that has other
/// names, or another owner, is written in place.
///
/// # Errors
/// The errors of [`read`]; also [`ClientToolError::Refused`] if the file has other content meanwhile.
pub(super) fn write(scope: &FileScope, path: &Path, before: Option<&str>, new: &str) -> Result<(), ClientToolError> {
    if new.len() as u64 > FILE_MAX {
        return Err(refused(path, &format!("more than {FILE_MAX} bytes")));
    }
    let changed = || refused(path, "it changed after it was asked about");
    let written = match before {
        Some(before) => {
            let mut file = open(scope, path, OFlags::RDWR | CAREFUL)?;
            if text(&file, path)? != before {
                return Err(changed());
            }
            match replaceable_entry(&scope.folder, &file) {
                Some(replaceable_entry) => match replaceable_entry.replace(&file, new) {
                    Ok(true) => Ok(()),
                    Ok(false) => return Err(changed()),
                    Err(error) => Err(error),
                },
                None => file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(new.as_bytes())),
            }
        }
        None => {
            let opened = open(scope, path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | CAREFUL);
            let mut file = match opened {
                Err(ClientToolError::Refused(reason)) if reason.ends_with(&Errno::EXIST.to_string()) => {
                    return Err(changed());
                }
                Err(ClientToolError::Missing(_)) => return Err(refused(path, "the folder for it does not exist")),
                opened => opened?,
            };
            let written = file.write_all(new.as_bytes());
            if let (Err(_), Some(entry)) = (&written, replaceable_entry(&scope.folder, &file)) {
                // The file did not exist before: an incomplete one is worse than none.
                let _ = rustix::fs::unlinkat(&entry.folder, &entry.name, AtFlags::empty());
            }
            written
        }
    };
    written.map_err(|error| refused(path, &error.to_string()))
}

/// The folder of a file, and the file's name in it.
struct FileEntry {
    folder: OwnedFd,
    name: std::ffi::OsString,
}

/// Returns the folder and name of an open file, if another file can replace it without further changes: it has this one name, the
/// gateway's user owns it, and its folder can be opened beneath `root`.
fn replaceable_entry(root: &Path, file: &File) -> Option<FileEntry> {
    let meta = file.metadata().ok()?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if meta.nlink() != 1 || meta.uid() != user || meta.gid() != group {
        return None;
    }
    let real = real_name(file)?;
    let relative = real.parent()?.strip_prefix(root.canonicalize().ok()?).ok()?;
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, flags, Mode::empty()).ok()?;
    let folder = open_beneath(&root, relative, flags).ok()?;
    // A file may be writable although its folder is not.
    rustix::fs::accessat(&folder, ".", rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).ok()?;
    Some(FileEntry { folder, name: real.file_name()?.to_owned() })
}

impl FileEntry {
    /// Replaces `old` by a file with this text and the same name and mode; returns `false` and changes nothing if `old` is no longer
    /// there.
    fn replace(&self, old: &File, text: &str) -> std::io::Result<bool> {
        let meta = old.metadata()?;
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let new = format!(".plexus-{}", data_encoding::HEXLOWER.encode(&random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.folder, &*new, flags, Mode::RUSR | Mode::WUSR)?);
        let mut put = || {
            file.write_all(text.as_bytes())?;
            file.set_permissions(meta.permissions())?;
            file.sync_data()?;
            let current = rustix::fs::statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
            // The types of these two fields differ between systems.
            #[allow(clippy::unnecessary_cast)]
            let same =
                current.is_ok_and(|current| (current.st_dev as u64, current.st_ino as u64) == (meta.dev(), meta.ino()));
            if same {
                rustix::fs::renameat(&self.folder, &*new, &self.folder, &*self.name)?;
            }
            Ok(same)
        };
        let outcome: std::io::Result<bool> = put();
        if !matches!(outcome, Ok(true)) {
            let _ = rustix::fs::unlinkat(&self.folder, &*new, AtFlags::empty());
        }
        outcome
    }
}

/// Returns the name of an open file without links, if the system reports it.
fn real_name(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok().filter(|path| path.is_absolute())
}

/// Returns a folder inside `folder`, or `folder` itself, by a name without links.
///
/// # Errors
/// The errors of [`read`].
pub(super) fn inside(scope: &FileScope, path: &Path) -> Result<PathBuf, ClientToolError> {
    let folder = &scope.folder;
    scope.check(path)?;
    let real = |path: &Path| path.canonicalize().map_err(|error| failed(path, &error));
    let (folder, found) = (real(folder)?, real(path)?);
    match found.starts_with(&folder) && found.is_dir() {
        true => Ok(found),
        false => Err(refused(path, "not a folder inside of the session's folder")),
    }
}

fn text(mut file: &File, path: &Path) -> Result<String, ClientToolError> {
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(refused(path, &format!("larger than {FILE_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused(path, "no UTF-8 text"))
}

fn open(scope: &FileScope, path: &Path, flags: OFlags) -> Result<File, ClientToolError> {
    let folder = &scope.folder;
    let relative = relative(folder, path)?;
    scope.check(path)?;
    let error = |errno: Errno| match errno {
        Errno::XDEV | Errno::LOOP => refused(path, "it leads out of the session's folder"),
        // The file is a pipe without a reader.
        Errno::NXIO => refused(path, "not a regular file"),
        errno => failed(path, &errno.into()),
    };
    let root = rustix::fs::openat(CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let file = File::from(open_beneath(&root.map_err(error)?, &relative, flags).map_err(error)?);
    // A link may have been swapped since: the opened file counts.
    if let Some(real) = real_name(&file) {
        scope.check(&real)?;
    }
    match file.metadata() {
        Ok(meta) if meta.is_file() => Ok(file),
        Ok(_) => Err(refused(path, "not a regular file")),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Returns the path from the folder to the file, by the path's text alone.
fn relative(folder: &Path, path: &Path) -> Result<PathBuf, ClientToolError> {
    if !path.is_absolute() {
        return Err(refused(path, "the path must be absolute"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(refused(path, "the path must not contain `..`"));
    }
    // Agents request their folder from the system, which names it without links.
    let relative = path.strip_prefix(folder).map(Path::to_owned).or_else(|no| match folder.canonicalize() {
        Ok(real) => path.strip_prefix(real).map(Path::to_owned),
        Err(_) => Err(no),
    });
    match relative {
        Ok(relative) if relative.components().next().is_some() => Ok(relative),
        Ok(_) => Err(refused(path, "not a regular file")),
        Err(_) => Err(refused(path, "it is outside of the session's folder")),
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let mode = if flags.contains(OFlags::CREATE) { NEW } else { Mode::empty() };
    for _ in 0..TRIES {
        match openat2(root, relative, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::AGAIN) => {}
            // An old kernel, or a sandbox that does not support the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_each(root, relative, flags),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_each(root, relative, flags)
}

/// The mode of a new file, without the umask.
const NEW: Mode = Mode::from_raw_mode(0o666);

/// Opens a file step by step; no step follows a link.
fn open_each(root: &OwnedFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut steps = relative.components().peekable();
    let mut at = root.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    while let Some(step) = steps.next() {
        let Component::Normal(name) = step else { return Err(Errno::XDEV) };
        at = match steps.peek() {
            // The system reports a link as not a folder: a better error is needed.
            Some(_) => rustix::fs::openat(&at, name, folder, Mode::empty())
                .map_err(|errno| if errno == Errno::NOTDIR && is_link(&at, name) { Errno::LOOP } else { errno })?,
            None => rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, NEW)?,
        };
    }
    Ok(at)
}

fn is_link(at: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::readlinkat(at, name, Vec::new()).is_ok()
}

fn refused(path: &Path, reason: &str) -> ClientToolError {
    ClientToolError::Refused(format!("{}: {reason}", path.display()))
}

fn failed(path: &Path, error: &std::io::Error) -> ClientToolError {
    match error.kind() {
        std::io::ErrorKind::NotFound => ClientToolError::Missing(path.display().to_string()),
        _ => ClientToolError::Refused(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `w/{a, sub/b, in -> sub/b, dirin -> sub, out -> ../secret, dirout -> .., abs -> SECRET, pipe}` and `secret`.
    struct Site {
        _dir: tempfile::TempDir,
        root: PathBuf,
        secret: PathBuf,
    }

    fn site() -> Site {
        let dir = tempfile::tempdir().unwrap();
        let (root, secret) = (dir.path().join("w"), dir.path().join("secret"));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(&secret, "secret").unwrap();
        std::fs::write(root.join("a"), "one\ntwo\r\nthree").unwrap();
        std::fs::write(root.join("sub/b"), "b").unwrap();
        symlink("sub/b", root.join("in")).unwrap();
        symlink("sub", root.join("dirin")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("..", root.join("dirout")).unwrap();
        symlink(&secret, root.join("abs")).unwrap();
        rustix::fs::mknodat(CWD, root.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Site { _dir: dir, root, secret }
    }

    fn in_folder(folder: &Path) -> FileScope {
        FileScope { folder: folder.to_owned(), private: None }
    }

    fn read(folder: &Path, path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<String, ClientToolError> {
        super::read(&in_folder(folder), path, line, limit)
    }

    fn write(folder: &Path, path: &Path, before: Option<&str>, new: &str) -> Result<(), ClientToolError> {
        super::write(&in_folder(folder), path, before, new)
    }

    fn inside(folder: &Path, path: &Path) -> Result<PathBuf, ClientToolError> {
        super::inside(&in_folder(folder), path)
    }

    fn reason<T: std::fmt::Debug>(done: Result<T, ClientToolError>) -> String {
        match done {
            Err(ClientToolError::Refused(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn client_files_count_lines_from_one_and_keep_them_as_they_are() {
        let Site { root, _dir, .. } = site();
        for (line, limit, text) in [
            (None, None, "one\ntwo\r\nthree"),
            (Some(2), None, "two\r\nthree"),
            (Some(2), Some(1), "two\r\n"),
            (None, Some(2), "one\ntwo\r\n"),
            (Some(0), Some(1), "one\n"),
            (Some(9), None, ""),
            (None, Some(0), ""),
            (Some(u64::MAX), Some(u64::MAX), ""),
        ] {
            assert_eq!(read(&root, &root.join("a"), line, limit), Ok(text.into()), "{line:?} {limit:?}");
        }
    }

    #[test]
    fn client_files_follow_no_path_out_of_the_folder() {
        let Site { root, secret, _dir } = site();
        let paths = [
            secret.clone(),
            root.join("../secret"),
            root.join("sub/../../secret"),
            root.join("out"),
            root.join("abs"),
            root.join("dirout/secret"),
            root.join("dirout/w/a"),
            PathBuf::from("a"),
            PathBuf::from("/etc/passwd"),
            PathBuf::from("/proc/self/cwd/w/a"),
            PathBuf::from(format!("{}x/a", root.display())),
        ];
        for path in &paths {
            reason(read(&root, path, None, None));
            reason(write(&root, path, Some("secret"), "mine"));
            reason(write(&root, path, None, "mine"));
        }
        reason(write(&root, &root.join("dirout/new"), None, "mine"));
        assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
        assert!(!root.parent().unwrap().join("new").exists());
    }

    #[test]
    fn client_files_have_the_kernel_follow_links_that_stay_inside() {
        let Site { root, _dir, .. } = site();
        if cfg!(target_os = "linux") {
            assert_eq!(read(&root, &root.join("in"), None, None), Ok("b".into()));
            assert_eq!(read(&root, &root.join("dirin/b"), None, None), Ok("b".into()));
        }
        let fd = OwnedFd::from(File::open(&root).unwrap());
        let flags = OFlags::RDONLY | CAREFUL;
        for (relative, error) in [
            ("in", Errno::LOOP),
            ("dirin/b", Errno::LOOP),
            ("out", Errno::LOOP),
            ("dirout/secret", Errno::LOOP),
            ("../secret", Errno::XDEV),
            ("no/b", Errno::NOENT),
            ("a/b", Errno::NOTDIR),
        ] {
            assert_eq!(open_each(&fd, relative.as_ref(), flags).map(|_| ()), Err(error), "{relative}");
        }
        assert!(open_each(&fd, "sub/b".as_ref(), flags).is_ok());
        assert!(open_each(&fd, "new".as_ref(), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | CAREFUL).is_ok());
    }

    #[test]
    fn client_files_are_safe_from_a_link_swapped_in_while_they_are_read() {
        let Site { root, secret, _dir } = site();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (sub, aside, bait) = (root.join("sub"), root.join("aside"), root.join("bait"));
                symlink(root.parent().unwrap(), &bait).unwrap();
                std::fs::write(secret.with_file_name("b"), "secret").unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(&sub, &aside).unwrap();
                    std::fs::rename(&bait, &sub).unwrap();
                    std::fs::rename(&sub, &bait).unwrap();
                    std::fs::rename(&aside, &sub).unwrap();
                }
            });
            let path = root.join("sub/b");
            let led_out = (0..2000).any(|_| read(&root, &path, None, None) == Ok("secret".into()));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(!led_out);
        });
    }

    #[test]
    fn client_files_refuse_what_is_no_text_file_and_wait_for_no_pipe() {
        let Site { root, _dir, .. } = site();
        std::fs::write(root.join("bytes"), b"\xff").unwrap();
        File::create(root.join("large")).unwrap().set_len(FILE_MAX + 1).unwrap();
        for name in ["pipe", "sub", "bytes", "large", ""] {
            reason(read(&root, &root.join(name), None, None));
        }
        reason(write(&root, &root.join("pipe"), Some(""), "x"));
        assert!(matches!(read(&root, &root.join("none"), None, None), Err(ClientToolError::Missing(_))));
        assert!(matches!(read(&root, &root.join("none/b"), None, None), Err(ClientToolError::Missing(_))));
        reason(write(&root, &root.join("none/b"), None, "x"));
    }

    #[test]
    fn client_files_replace_only_what_was_shown() {
        let Site { root, _dir, .. } = site();
        let path = root.join("sub/b");
        assert!(reason(write(&root, &path, Some("not b"), "new")).contains("changed"));
        assert!(reason(write(&root, &path, None, "new")).contains("changed"), "there is one by now");
        assert_eq!(std::fs::read(&path).unwrap(), b"b");
        let longer = "b, and more";
        for (before, new) in [("b", longer), (longer, "c"), ("c", "")] {
            assert_eq!(write(&root, &path, Some(before), new), Ok(()));
            assert_eq!(std::fs::read(&path).unwrap(), new.as_bytes());
        }
        assert_eq!(write(&root, &root.join("sub/new"), None, "new"), Ok(()));
        assert_eq!(read(&root, &root.join("sub/new"), None, None), Ok("new".into()));
        let gone = write(&root, &root.join("gone"), Some("was there"), "new");
        assert!(matches!(gone, Err(ClientToolError::Missing(_))), "{gone:?}");
        // Nor does a script lose what it may be done with.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(write(&root, &path, Some(""), "x"), Ok(()));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn client_files_take_both_names_of_a_linked_folder() {
        let Site { root, _dir, .. } = site();
        let alias = root.with_file_name("alias");
        symlink(&root, &alias).unwrap();
        for (folder, path) in [(&alias, alias.join("a")), (&alias, root.join("a"))] {
            assert!(read(folder, &path, None, Some(1)).is_ok(), "{folder:?} {path:?}");
        }
        assert_eq!(inside(&alias, &root.join("sub")), Ok(root.canonicalize().unwrap().join("sub")));
        reason(inside(&root, &root.join("dirout")));
        reason(inside(&root, &root.join("a")));
    }

    #[test]
    fn client_files_touch_nothing_in_the_gateways_own_folder() {
        let Site { root, _dir, .. } = site();
        // It may lie inside of the session's folder, and be reached by links.
        let own = root.join("own");
        std::fs::create_dir_all(own.join("holders")).unwrap();
        std::fs::write(own.join("token"), "secret").unwrap();
        symlink("own", root.join("alias")).unwrap();
        symlink("own/token", root.join("link")).unwrap();
        symlink("own/new", root.join("dangling")).unwrap();
        for private in [own.clone(), root.join("alias")] {
            let scope = FileScope { folder: root.clone(), private: Some(private.into()) };
            for name in ["own/token", "alias/token", "link", "dangling", "own/new", "alias/new", "own/holders/new"] {
                let path = root.join(name);
                assert!(reason(super::read(&scope, &path, None, None)).contains("own folder"), "{name}");
                assert!(reason(super::write(&scope, &path, Some("secret"), "mine")).contains("own folder"), "{name}");
                assert!(reason(super::write(&scope, &path, None, "mine")).contains("own folder"), "{name}");
                let params = serde_json::json!({ "path": path, "content": "mine" }).to_string();
                assert!(reason(check_paths(&scope, &params)).contains("own folder"), "{name}");
            }
            for name in ["own", "alias", "own/holders", "alias/holders"] {
                let path = root.join(name);
                assert!(reason(super::inside(&scope, &path)).contains("own folder"), "{name}");
                let params = serde_json::json!({ "command": "ls", "cwd": path }).to_string();
                assert!(reason(check_paths(&scope, &params)).contains("own folder"), "{name}");
            }
            assert!(super::read(&scope, &root.join("a"), None, None).is_ok());
            assert_eq!(check_paths(&scope, r#"{"path":"C:\\file"}"#), Ok(()), "of another machine");
        }
        assert_eq!(std::fs::read(own.join("token")).unwrap(), b"secret");
        assert!(!own.join("new").exists());
    }

    #[test]
    fn client_files_are_replaced_whole() {
        use std::os::unix::fs::MetadataExt;
        let Site { root, _dir, .. } = site();
        let path = root.join("sub/b");
        // Somebody has it open: they go on with the old one, whole.
        let mut old = File::open(&path).unwrap();
        let before = old.metadata().unwrap().ino();
        assert_eq!(write(&root, &root.join("in"), Some("b"), "by a link"), Ok(()));
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(text, "b");
            assert_ne!(std::fs::metadata(&path).unwrap().ino(), before);
        }
        assert!(root.join("in").is_symlink(), "the link stays one");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "by a link");
        // One that has two names keeps them.
        std::fs::hard_link(&path, root.join("twin")).unwrap();
        assert_eq!(write(&root, &path, Some("by a link"), "both"), Ok(()));
        assert_eq!(std::fs::read_to_string(root.join("twin")).unwrap(), "both");
        let names: Vec<_> = std::fs::read_dir(root.join("sub")).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "nothing is left beside it: {names:?}");
    }
}
