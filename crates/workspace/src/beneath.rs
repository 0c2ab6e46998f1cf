//! Files below a folder, opened one component at a time and never through a link, so that no path leads out of the
//! folder whatever an agent puts in its place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, mkdirat, openat, renameat, statat, unlinkat};

use crate::names::ObjectName;
use crate::values::FileSide;

/// Maximum number of components of a path; a deeper one is refused.
const DEPTH: usize = 256;

/// Flags for opening the folders of a path.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// Flags for opening a file: a pipe in its place must not block.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// Flags for creating a file.
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Beneath(OwnedFd);

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Folder,
    File(FileSide),
    /// A link, a pipe, or a file that is too large or cannot be read.
    Other,
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

impl Beneath {
    /// Opens the folder itself; the links of `path` have been resolved.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(rustix::fs::CWD, path, FOLDER, Mode::empty())?))
    }

    fn folder(&self, path: &[u8]) -> io::Result<Self> {
        let mut at = self.0.try_clone()?;
        if path.is_empty() {
            return Ok(Self(at));
        }
        for (depth, name) in path.split(|byte| *byte == b'/').enumerate() {
            at = openat(&at, component(name, depth)?, FOLDER, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// Opens the folder that holds `path`; returns it with the last name of the path.
    fn holder<'a>(&self, path: &'a [u8]) -> io::Result<(Self, &'a OsStr)> {
        let at = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = at.map_or((&path[..0], path), |at| (&path[..at], &path[at + 1..]));
        Ok((self.folder(above)?, component(name, 0)?))
    }

    fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        let (above, name) = self.holder(path)?;
        Ok(statat(&above.0, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Reads a regular file of at most `max` bytes at a path, to name its content.
    pub(crate) fn found(&self, path: &[u8], max: u64) -> io::Result<Found> {
        let kind = match self.stat(path) {
            Ok(found) => FileType::from_raw_mode(found.st_mode),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Found::Nothing);
            }
            // A component of the path is a link.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Ok(Found::Other);
            }
            Err(error) => return Err(error),
        };
        match kind {
            FileType::Directory => Ok(Found::Folder),
            FileType::RegularFile => Ok(self.read(path, max).map_or(Found::Other, |(bytes, mode)| {
                let mode = if mode & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
                Found::File(FileSide { mode, name: ObjectName::from_blob(&bytes) })
            })),
            _ => Ok(Found::Other),
        }
    }

    fn read(&self, path: &[u8], max: u64) -> io::Result<(Vec<u8>, u32)> {
        let (above, name) = self.holder(path)?;
        let file = File::from(openat(&above.0, name, FILE, Mode::empty())?);
        let found = file.metadata()?;
        if !found.is_file() || found.len() > max {
            return Err(refused("it is no regular file, or too large"));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
        (&file).take(max + 1).read_to_end(&mut bytes)?;
        // The file may have grown meanwhile.
        if bytes.len() as u64 > max {
            return Err(ErrorKind::FileTooLarge.into());
        }
        Ok((bytes, std::os::unix::fs::MetadataExt::mode(&found)))
    }

    /// Makes the missing folders above a path.
    pub(crate) fn make_folders(&self, path: &[u8]) -> io::Result<()> {
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let (above, name) = self.holder(&path[..end])?;
            match mkdirat(&above.0, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a file under the name `temporary` next to `path`. Its permissions are those of the file at `path`, or 0644, with the
    /// execute bits of `mode`.
    pub(crate) fn write_temporary(&self, path: &[u8], temporary: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let (above, name) = self.holder(path)?;
        let mut file = File::from(openat(&above.0, temporary, NEW_FILE, Mode::from_raw_mode(0o600))?);
        file.write_all(content)?;
        let has = statat(&above.0, name, AtFlags::SYMLINK_NOFOLLOW).map_or(0o644, |stat| stat.st_mode & 0o777);
        let bits = if mode & 0o100 != 0 { has | (has & 0o444) >> 2 } else { has & !0o111 };
        fchmod(&file, Mode::from_raw_mode(bits))?;
        file.sync_all()
    }

    /// Moves the file `temporary` to `path`, and replaces an empty folder there.
    pub(crate) fn move_temporary(&self, path: &[u8], temporary: &str) -> io::Result<()> {
        let (above, name) = self.holder(path)?;
        match unlinkat(&above.0, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
        renameat(&above.0, temporary, &above.0, name)?;
        above.sync()
    }

    /// Removes the file that an interrupted [`Beneath::write_temporary`] left.
    pub(crate) fn remove_temporary(&self, path: &[u8], temporary: &str) {
        if let Ok((above, _)) = self.holder(path) {
            // Usually there is no file to remove.
            let _ = unlinkat(&above.0, temporary, AtFlags::empty());
        }
    }

    /// Removes a file, and the folders above it that become empty.
    pub(crate) fn remove(&self, path: &[u8]) -> io::Result<()> {
        let (above, name) = self.holder(path)?;
        unlinkat(&above.0, name, AtFlags::empty())?;
        above.sync()?;
        self.remove_empty_above(path);
        Ok(())
    }

    /// Removes the empty folders above a path.
    pub(crate) fn remove_empty_above(&self, path: &[u8]) {
        let mut path = path;
        while let Some(at) = path.iter().rposition(|byte| *byte == b'/') {
            path = &path[..at];
            let Ok((above, name)) = self.holder(path) else { return };
            // A folder that is not empty stays, and those above it.
            if unlinkat(&above.0, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

fn component(name: &[u8], depth: usize) -> io::Result<&OsStr> {
    let sound = !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !name.contains(&b'/');
    if !sound || depth >= DEPTH || name.eq_ignore_ascii_case(b".git") {
        return Err(refused("the path leads out of the folder or into a repository, or is too deep"));
    }
    Ok(OsStr::from_bytes(name))
}
