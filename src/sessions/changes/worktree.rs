//! Which files of a folder are other than what is committed. The system's own word (size, times) decides where the index can be
//! believed; only the rest is read, up to [`LARGE`] bytes a file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use super::beneath::Beneath;
use super::objects::ObjectId;
use super::repository::{Index, Indexed, LINK, Tracked};
use crate::sessions::files::walk::{IgnoreRules, is_ignored, rules_above, rules_in};

/// Bytes of a file that is compared; a larger one is told to have changed when the system says so, and is never read.
pub(super) const LARGE: u64 = 1 << 20;
/// Entries of folders that are looked at; beyond that the walk ends, with a note.
const VISITED: usize = 500_000;
/// Changed files that are remembered; further ones are counted.
const CHANGED: usize = 20_000;
/// Bytes that are read in one walk; further files count as unreadable.
const READ: u64 = 1 << 30;
/// How long a walk goes on; then it ends with what it has, with a note.
const TIME: Duration = Duration::from_secs(10);
/// How deep folders are walked.
const DEPTH: usize = 128;

/// The name of a file's content where it was not read.
const UNREADABLE: &str = "unreadable";

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    /// As git writes it: 100644, 100755 or 120000.
    pub(super) mode: u32,
    /// The name of the blob; of a file that is not read, a text that changes with it.
    pub(super) id: String,
    /// Bytes; 0 where it is not known.
    pub(super) size: u64,
}

impl FileState {
    /// Of what is committed.
    pub(super) fn committed(tracked: Tracked) -> Self {
        Self { mode: tracked.mode, id: tracked.id.hex(), size: 0 }
    }

    /// Whether the two have the same content.
    pub(super) fn same(a: Option<&Self>, b: Option<&Self>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => a.mode == b.mode && a.id == b.id && a.id != UNREADABLE,
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// The blob, if its content was read.
    pub(super) fn blob(&self) -> Option<ObjectId> {
        ObjectId::parse(self.id.as_bytes())
    }

    pub(super) fn is_large(&self) -> bool {
        self.size > LARGE || self.id.starts_with("large:")
    }
}

/// Files by path; `None` where there is none.
pub(super) type FileStates = BTreeMap<Vec<u8>, Option<FileState>>;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files that are other than committed.
    pub(super) changed: FileStates,
    /// Changed files beyond the bound.
    pub(super) left_off: usize,
    /// A bound ended the walk: files may have changed that are not named.
    pub(super) bounded: bool,
    /// There are repositories in the folder, which were not looked at.
    pub(super) nested: bool,
    /// Files whose bytes were read.
    pub(super) read_files: usize,
    read_bytes: u64,
}

/// What a folder is compared with.
pub(super) struct Committed<'a> {
    pub(super) files: &'a HashMap<Vec<u8>, Tracked>,
    pub(super) index: &'a Index,
}

struct Pending {
    path: Vec<u8>,
    depth: usize,
    rules: Option<Arc<IgnoreRules>>,
    ignored: bool,
}

/// Compares a folder with what is committed. `never`: a path below that is not looked at.
pub(super) fn scan(root: &Path, folder: &Beneath, committed: &Committed<'_>, never: Option<&[u8]>) -> Scan {
    let until = Instant::now() + TIME;
    let tracked_folders = folders_of(committed.files.keys());
    let mut scan = Scan::default();
    let mut seen = HashSet::with_capacity(committed.files.len());
    let mut visited = 0;
    let mut pending = vec![Pending { path: Vec::new(), depth: 0, rules: rules_above(root), ignored: false }];
    'walk: while let Some(Pending { path, depth, rules, ignored }) = pending.pop() {
        let Ok(here) = folder.folder(path.strip_suffix(b"/").unwrap_or(&path)) else { continue };
        let Ok(entries) = rustix::fs::Dir::read_from(here.fd()) else { continue };
        let place = root.join(OsStr::from_bytes(&path));
        let rules = rules_in(&place, rules);
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || name == b".git" {
                continue;
            }
            visited += 1;
            if visited > VISITED || Instant::now() >= until {
                scan.bounded = true;
                break 'walk;
            }
            let mut full = [&path, name].concat();
            let Ok(stat) = here.stat(name) else { continue };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let hidden =
                || ignored || is_ignored(rules.as_deref(), &place.join(OsStr::from_bytes(name)), kind.is_dir());
            if kind.is_dir() {
                if never == Some(&full[..]) {
                    continue;
                }
                full.push(b'/');
                let tracked = tracked_folders.contains(&full[..]);
                let hidden = hidden();
                if hidden && !tracked {
                    continue;
                }
                if here.stat(&[name, b"/.git"].concat()).is_ok() {
                    scan.nested = true;
                } else if depth < DEPTH {
                    pending.push(Pending { path: full, depth: depth + 1, rules: rules.clone(), ignored: hidden });
                } else {
                    scan.bounded = true;
                }
                continue;
            }
            let known = committed.files.get(&full[..]).copied();
            if known.is_none() && (hidden() || !(kind.is_file() || kind.is_symlink())) {
                continue;
            }
            if known.is_some() {
                seen.insert(full.clone());
            }
            look(&mut scan, &here, name, &stat, known, (committed.index, full));
        }
    }
    for path in committed.files.keys().filter(|path| !seen.contains(*path)) {
        let skipped = committed.index.files.get(path).is_some_and(|known| known.skipped)
            || committed.index.skipped.iter().any(|folder| path.starts_with(folder));
        // Where the walk ended early, absence is seen only by looking.
        if !skipped && (!scan.bounded || folder.stat(path).is_err()) {
            scan.note(path.clone(), None);
        }
    }
    scan
}

/// Compares one file.
fn look(
    scan: &mut Scan,
    here: &Beneath,
    name: &[u8],
    stat: &Stat,
    known: Option<Tracked>,
    (index, path): (&Index, Vec<u8>),
) {
    let indexed = index.files.get(&path).filter(|indexed| is_current(indexed, stat, index.written));
    let found = match indexed {
        Some(indexed) => {
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            Some(FileState { mode: indexed.mode, id: indexed.id.hex(), size })
        }
        None => state_of(scan, here, name, stat, known),
    };
    if !FileState::same(found.as_ref(), known.map(FileState::committed).as_ref()) {
        scan.note(path, found);
    }
}

impl Scan {
    fn note(&mut self, path: Vec<u8>, state: Option<FileState>) {
        if self.changed.len() < CHANGED {
            self.changed.insert(path, state);
        } else {
            self.left_off += 1;
        }
    }
}

/// What is at a path now.
fn state_of(scan: &mut Scan, here: &Beneath, name: &[u8], stat: &Stat, known: Option<Tracked>) -> Option<FileState> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if kind.is_symlink() {
        let id = here.link(name).map_or_else(|_| UNREADABLE.to_owned(), |text| ObjectId::of_blob(&text).hex());
        return Some(FileState { mode: LINK, id, size });
    }
    let mode = if stat.st_mode & 0o100 != 0 { 0o100_755 } else { 0o100_644 };
    if !kind.is_file() {
        return Some(FileState { mode, id: UNREADABLE.to_owned(), size: 0 });
    }
    if size > LARGE {
        let id = format!("large:{size}:{}:{}:{}", stat.st_mtime, stat.st_mtime_nsec, stat.st_ino);
        return Some(FileState { mode, id, size });
    }
    scan.read_files += 1;
    scan.read_bytes += size;
    let content = if scan.read_bytes > READ { None } else { here.read(name, LARGE).ok() };
    let Some(content) = content else { return Some(FileState { mode, id: UNREADABLE.to_owned(), size }) };
    let mut id = ObjectId::of_blob(&content);
    // As git compares where line ends are converted: a difference in them alone is none.
    if let Some(known) = known.filter(|known| known.id != id)
        && let Some(plain) = without_returns(&content)
        && ObjectId::of_blob(&plain) == known.id
    {
        id = known.id;
    }
    Some(FileState { mode, id: id.hex(), size })
}

/// What is at a path below a folder now, whatever is committed.
pub(super) fn current(folder: &Beneath, path: &[u8], known: Option<Tracked>) -> Option<FileState> {
    let (above, _) = folder.holder(path).ok()?;
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let stat = above.stat(name).ok()?;
    state_of(&mut Scan::default(), &above, name, &stat, known)
}

/// The text with plain line ends; `None` if it has no others, or is binary.
pub(super) fn without_returns(content: &[u8]) -> Option<Vec<u8>> {
    if memchr::memmem::find(content, b"\r\n").is_none() || is_binary(content) {
        return None;
    }
    let mut plain = Vec::with_capacity(content.len());
    for (at, byte) in content.iter().enumerate() {
        if *byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
            plain.push(*byte);
        }
    }
    Some(plain)
}

/// Bytes at the beginning of a file in which a NUL makes it binary, as git has it.
const BINARY_HEAD: usize = 8000;

pub(super) fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, &content[..content.len().min(BINARY_HEAD)]).is_some()
}

/// Whether the system says of a file what the index has of it, and could not say so of another content.
fn is_current(known: &Indexed, stat: &Stat, written: (u32, u32)) -> bool {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the index keeps the low 32 bits
    let (changed, modified, inode, size) = (
        (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        stat.st_ino as u32,
        stat.st_size as u32,
    );
    let mode = if FileType::from_raw_mode(stat.st_mode).is_symlink() {
        LINK
    } else if stat.st_mode & 0o100 != 0 {
        0o100_755
    } else {
        0o100_644
    };
    let times = known.changed == changed && known.modified == modified;
    times && known.inode == inode && known.size == size && known.mode == mode && modified < written
}

/// All folders above files, each with a slash at its end.
fn folders_of<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> HashSet<&'a [u8]> {
    let mut folders = HashSet::new();
    for path in paths {
        for at in memchr::memrchr_iter(b'/', path) {
            if !folders.insert(&path[..=at]) {
                break;
            }
        }
    }
    folders
}
