//! Opens files below a folder, one component at a time and never through a link, so that nothing outside of the folder is reached
//! whatever an agent puts in its place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, openat, statat};

/// Components of one path; a deeper one is refused.
const DEPTH: usize = 256;

/// A folder that is open.
#[derive(Debug)]
pub(super) struct Beneath(OwnedFd);

/// How folders on the way are opened.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// How files are opened: a pipe in their place must not block.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

impl Beneath {
    /// Opens the folder itself; `path` has its links resolved already.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(rustix::fs::CWD, path, FOLDER, Mode::empty())?))
    }

    /// The descriptor of the folder.
    pub(super) const fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// A folder below.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<Self> {
        let mut at = self.0.try_clone()?;
        if path.is_empty() {
            return Ok(Self(at));
        }
        for (depth, name) in path.split(|byte| *byte == b'/').enumerate() {
            at = openat(&at, component(name, depth)?, FOLDER, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// The folder that holds `path`, and the last name of the path.
    pub(super) fn holder<'a>(&self, path: &'a [u8]) -> io::Result<(Self, &'a OsStr)> {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&path[..0], path),
        };
        Ok((self.folder(above)?, component(name, 0)?))
    }

    /// A regular file below, and what the system says of it.
    pub(super) fn file(&self, path: &[u8]) -> io::Result<(File, std::fs::Metadata)> {
        let (above, name) = self.holder(path)?;
        let file = File::from(openat(&above.0, name, FILE, Mode::empty())?);
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(refused("it is no regular file"));
        }
        Ok((file, found))
    }

    /// The bytes of a regular file that has at most `limit` of them.
    pub(super) fn read(&self, path: &[u8], limit: u64) -> io::Result<Vec<u8>> {
        let (file, found) = self.file(path)?;
        read_bounded(file, found.len(), limit)
    }

    /// What is at a path, a link itself.
    pub(super) fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        let (above, name) = self.holder(path)?;
        Ok(statat(&above.0, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The text of a link.
    pub(super) fn link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (above, name) = self.holder(path)?;
        Ok(rustix::fs::readlinkat(&above.0, name, Vec::new())?.into_bytes())
    }
}

/// Reads a file to its end, if that comes within `limit` bytes.
pub(super) fn read_bounded(file: File, told: u64, limit: u64) -> io::Result<Vec<u8>> {
    if told > limit {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(told).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut bytes)?;
    // It may have grown meanwhile.
    if bytes.len() as u64 > limit { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn component(name: &[u8], depth: usize) -> io::Result<&OsStr> {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&0) || name.contains(&b'/') || depth >= DEPTH {
        return Err(refused("the path leads out of the folder, or is too deep"));
    }
    Ok(OsStr::from_bytes(name))
}
