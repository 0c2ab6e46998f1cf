//! The one module of this crate that reads and writes: settings files, backups and records.
//!
//! A file is replaced as a whole by a rename in its folder, and only if it has not changed since it was read. A
//! symbolic link stays: its target is edited.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

use crate::settings::document::SETTINGS_MAX;
use crate::settings::error::LinkError;

/// Maximum size of a record, in bytes; a larger one is reported as damaged.
const RECORD_MAX: u64 = 1 << 20;
/// The mode of a new settings file and of a new folder: agents store keys there.
const NEW_FILE: u32 = 0o600;
const NEW_FOLDER: u32 = 0o700;

/// The real place of a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileLocation {
    /// The path that the agent uses.
    pub(crate) path: PathBuf,
    /// The path without symbolic links.
    pub(crate) real: PathBuf,
}

/// The content of a settings file.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    /// The text.
    pub(crate) text: String,
    mode: u32,
    group: u32,
}

fn io(path: &Path, operation: &'static str, reason: std::io::Error) -> LinkError {
    let fix = match reason.kind() {
        ErrorKind::PermissionDenied => "check who may read and write there",
        ErrorKind::StorageFull => "free some space",
        ErrorKind::ReadOnlyFilesystem => "it is on a disk that cannot be written to",
        _ => "correct that, and try again",
    };
    LinkError::Io { path: path.to_owned(), operation, reason, fix }
}

/// Resolves the symbolic links of a path, whose end may not exist yet.
fn resolve(path: &Path) -> Result<PathBuf, LinkError> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                missing.iter().rev().for_each(|part| real.push(part));
                return Ok(real);
            }
            Err(reason) if reason.kind() == ErrorKind::NotFound => {
                if existing.symlink_metadata().is_ok() {
                    return Err(LinkError::LeadsNowhere { path: existing.to_owned() });
                }
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                    return Err(io(path, "found", reason));
                };
                missing.push(name.to_owned());
                existing = parent;
            }
            Err(reason) => return Err(io(existing, "found", reason)),
        }
    }
}

/// Finds a settings file. It must be below one of the `roots`: the home folder, and a folder that a variable names.
pub(crate) fn locate(path: &Path, roots: &[&Path]) -> Result<FileLocation, LinkError> {
    let real = resolve(path)?;
    for root in roots {
        if real.starts_with(resolve(root)?) {
            return Ok(FileLocation { path: path.to_owned(), real });
        }
    }
    Err(LinkError::OutsideHome { path: path.to_owned(), real })
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Reads a settings file; returns `None` if there is none.
pub(crate) fn read(location: &FileLocation) -> Result<Option<Content>, LinkError> {
    let real = &location.real;
    let path = || location.path.clone();
    let mut options = OpenOptions::new();
    // The path was resolved: a link here was made since. A pipe must not block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options.read(true).custom_flags(flags.bits().cast_signed()).open(real) {
        Ok(file) => file,
        Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(None),
        Err(reason) => return Err(io(&location.path, "read", reason)),
    };
    let meta = file.metadata().map_err(|reason| io(&location.path, "read", reason))?;
    if !meta.is_file() {
        return Err(LinkError::NotAFile { path: path() });
    }
    if meta.uid() != own_user() {
        return Err(LinkError::OtherUser { path: real.clone() });
    }
    let mut bytes = Vec::new();
    file.take(SETTINGS_MAX + 1).read_to_end(&mut bytes).map_err(|reason| io(&location.path, "read", reason))?;
    if bytes.len() as u64 > SETTINGS_MAX {
        return Err(LinkError::TooLarge { path: path() });
    }
    let text = String::from_utf8(bytes).map_err(|_| LinkError::NotText { path: path() })?;
    Ok(Some(Content { text, mode: meta.mode() & 0o7777, group: meta.gid() }))
}

/// Refuses a file or folder that must not be written, before any write.
pub(crate) fn writable(location: &FileLocation) -> Result<(), LinkError> {
    let meta = match location.real.symlink_metadata() {
        Ok(meta) => Some(meta),
        Err(reason) if reason.kind() == ErrorKind::NotFound => None,
        Err(reason) => return Err(io(&location.path, "read", reason)),
    };
    if let Some(meta) = meta {
        // The rename would succeed, but the mode shows the user's intention.
        if meta.mode() & 0o200 == 0 {
            return Err(LinkError::ReadOnly { path: location.path.clone() });
        }
        if meta.nlink() > 1 {
            return Err(LinkError::SeveralNames { path: location.path.clone() });
        }
    }
    let folder = location.real.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let meta = folder.metadata().map_err(|reason| io(folder, "read", reason))?;
    if !meta.is_dir() {
        return Err(LinkError::NotAFile { path: folder.to_owned() });
    }
    if meta.uid() != own_user() {
        return Err(LinkError::OtherUser { path: folder.to_owned() });
    }
    if meta.mode() & 0o200 == 0 {
        return Err(LinkError::ReadOnly { path: folder.to_owned() });
    }
    // The mode does not show a disk that is mounted read-only.
    match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(reason) => Err(io(folder, "written to", reason.into())),
    }
}

/// Returns the missing folders above a file, outermost first.
pub(crate) fn missing_folders(location: &FileLocation) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        location.real.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Makes the folders, accessible only to their owner.
pub(crate) fn make_folders(folders: &[PathBuf]) -> Result<(), LinkError> {
    for folder in folders {
        match std::fs::DirBuilder::new().mode(NEW_FOLDER).create(folder) {
            Ok(()) => {}
            Err(reason) if reason.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(reason) => return Err(io(folder, "made", reason)),
        }
    }
    Ok(())
}

/// Removes the empty folders, innermost first.
pub(crate) fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        // A folder that is not empty stays, and so do those above it.
        if std::fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Replaces the content of a settings file, if it has not changed since it was read; `None` stands for no file.
pub(crate) fn change(location: &FileLocation, before: Option<&Content>, after: Option<&str>) -> Result<(), LinkError> {
    let changed = || LinkError::Changed { path: location.path.clone() };
    match after {
        Some(after) => {
            let (mode, group) = before.map_or((NEW_FILE, None), |before| (before.mode, Some(before.group)));
            let new = TempFile::write(&location.real, after.as_bytes(), mode, group)?;
            check_unchanged(location, before)?;
            if before.is_some() {
                new.rename()
            } else {
                // A file that was created at this moment must not be replaced.
                new.name().map_err(|reason| {
                    if reason.kind() == ErrorKind::AlreadyExists {
                        changed()
                    } else {
                        io(&location.path, "made", reason)
                    }
                })
            }
        }
        None => {
            check_unchanged(location, before)?;
            std::fs::remove_file(&location.real).map_err(|reason| io(&location.path, "deleted", reason))?;
            sync_folder(&location.real);
            Ok(())
        }
    }
}

/// Checks that the file has not changed since it was read.
fn check_unchanged(location: &FileLocation, before: Option<&Content>) -> Result<(), LinkError> {
    let changed = || LinkError::Changed { path: location.path.clone() };
    // A link may have been created there, or changed since.
    if resolve(&location.path).ok().as_ref() != Some(&location.real) {
        return Err(changed());
    }
    let now = read(location)?;
    let is_same = match (&now, before) {
        (None, None) => true,
        (Some(now), Some(before)) => now.text == before.text && now.mode == before.mode,
        _ => false,
    };
    if is_same { Ok(()) } else { Err(changed()) }
}

/// A temporary file that is renamed when it is complete, and removed if it is not.
struct TempFile {
    at: PathBuf,
    to: PathBuf,
}

impl TempFile {
    fn write(to: &Path, bytes: &[u8], mode: u32, group: Option<u32>) -> Result<Self, LinkError> {
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(|reason| io(to, "written", std::io::Error::other(reason.to_string())))?;
        let name = format!(".plexus-link-{}.tmp", data_encoding::HEXLOWER.encode(&random));
        let this = Self { at: to.with_file_name(name), to: to.to_owned() };
        this.fill(bytes, mode, group).map_err(|reason| io(to, "written", reason))?;
        Ok(this)
    }

    fn fill(&self, bytes: &[u8], mode: u32, group: Option<u32>) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(NEW_FILE).open(&self.at)?;
        file.write_all(bytes)?;
        if let Some(group) = group.filter(|group| file.metadata().is_ok_and(|meta| meta.gid() != *group)) {
            rustix::fs::fchown(&file, None, Some(rustix::fs::Gid::from_raw(group)))?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    }

    /// Replaces a file by the temporary one.
    fn rename(&self) -> Result<(), LinkError> {
        std::fs::rename(&self.at, &self.to).map_err(|reason| io(&self.to, "replaced", reason))?;
        sync_folder(&self.to);
        Ok(())
    }

    /// Moves the temporary file to its path, which must not exist yet.
    fn name(&self) -> std::io::Result<()> {
        std::fs::hard_link(&self.at, &self.to)?;
        sync_folder(&self.to);
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.at);
    }
}

/// Makes a rename durable. Some file systems cannot; there it becomes durable a moment later.
fn sync_folder(of: &Path) {
    if let Some(folder) = of.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

/// Returns whether a program can be started.
pub(crate) fn runs(program: &Path) -> bool {
    std::fs::metadata(program).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

/// Reads a file for display; returns `None` if it does not exist, or is not text of a usual size.
pub(crate) fn read_if_small(path: &Path) -> Option<String> {
    let flags = OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(SETTINGS_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

// === the folder of records and backups ===

/// The folder for the records of linking.
#[derive(Clone, Debug)]
pub(crate) struct RecordFolder(pub(crate) PathBuf);

/// The lock of the `plexus link` that writes.
#[derive(Debug)]
pub(crate) struct LinkLock {
    _file: File,
}

impl RecordFolder {
    pub(crate) fn lock(&self) -> Result<LinkLock, LinkError> {
        let make = std::fs::DirBuilder::new().recursive(true).mode(NEW_FOLDER).create(&self.0);
        make.map_err(|reason| io(&self.0, "made", reason))?;
        let path = self.0.join("lock");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(NEW_FILE).open(&path);
        let file = file.map_err(|reason| io(&path, "opened", reason))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(LinkLock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LinkError::Busy),
            Err(reason) => Err(io(&path, "locked", reason.into())),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, LinkError> {
        let path = self.0.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(None),
            Err(reason) => return Err(io(&path, "read", reason)),
        };
        let mut bytes = Vec::new();
        file.take(RECORD_MAX.max(SETTINGS_MAX) + 1)
            .read_to_end(&mut bytes)
            .map_err(|reason| io(&path, "read", reason))?;
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| LinkError::Record { path, reason: "it is not text".into() })
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), LinkError> {
        TempFile::write(&self.0.join(name), text.as_bytes(), NEW_FILE, None)?.rename()
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), LinkError> {
        let path = self.0.join(name);
        match std::fs::remove_file(&path) {
            Err(reason) if reason.kind() != ErrorKind::NotFound => Err(io(&path, "deleted", reason)),
            _ => Ok(()),
        }
    }
}
