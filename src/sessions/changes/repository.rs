//! Finds the repository of a folder, and reads what it has committed.
//!
//! Nothing that a repository configures is read, so nothing that it configures is executed. A `.git` file is followed only where the
//! place that it names points back: otherwise it could make a session show somebody else's repository.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::beneath::Beneath;
use super::objects::{ObjectError, ObjectId, ObjectKind, Objects, entries};

/// Most bytes of a pointer or a reference.
const SMALL: u64 = 4096;
/// Most bytes of `packed-refs`; in a longer one nothing is found.
const PACKED_REFS: u64 = 32 << 20;
/// Most bytes of the index; a longer one is not used, so that files are compared byte by byte.
const INDEX: u64 = 256 << 20;
/// Most bytes of one tree.
const TREE: u64 = 64 << 20;
/// Most files of a commit that are compared; a commit with more is not.
pub(super) const TRACKED_MAX: usize = 400_000;
/// How deep trees are read.
const DEPTH: usize = 200;
/// References on the way to a commit.
const REFERENCES: usize = 5;
/// Folders above a session's that are looked at.
const ANCESTORS: usize = 128;

/// A mode that names a link.
pub(super) const LINK: u32 = 0o120_000;
/// A mode that names a commit of another repository: a submodule.
const SUBMODULE: u32 = 0o160_000;
/// A mode that names a folder.
const FOLDER: u32 = 0o040_000;

/// What is committed at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) mode: u32,
    pub(super) id: ObjectId,
}

/// What the index knows of a file: the object is its content as long as the system says the same of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed {
    /// Seconds and nanoseconds of the last change of the inode, and of the content.
    pub(super) changed: (u32, u32),
    pub(super) modified: (u32, u32),
    pub(super) inode: u32,
    pub(super) size: u32,
    pub(super) mode: u32,
    pub(super) id: ObjectId,
    /// It is left out of the folder on purpose (a sparse checkout).
    pub(super) skipped: bool,
}

/// The index: by path, below the session's folder.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) files: HashMap<Vec<u8>, Indexed>,
    /// Folders that are left out on purpose, each with a slash at its end.
    pub(super) skipped: Vec<Vec<u8>>,
    /// When it was written: a file that changed then or later is compared, whatever its times.
    pub(super) written: (u32, u32),
}

/// A repository, and where in it a session's folder is.
#[derive(Debug)]
pub(super) struct Repository {
    /// Of this working tree: `HEAD` and the index.
    own: Beneath,
    /// Of all working trees: references and objects.
    common: Beneath,
    pub(super) objects: Objects,
    /// The folder's path in the repository, with a slash at its end unless it is its top.
    below: Vec<u8>,
}

/// What was found where a repository may be.
#[derive(Debug)]
pub(super) enum FoundRepository {
    /// One that is read.
    Here(Box<Repository>),
    /// None.
    None,
    /// One that is not read, and why.
    Refused(&'static str),
}

/// The repository of a folder, whose path has its links resolved.
pub(super) fn find(folder: &Path) -> FoundRepository {
    let Ok(device) = folder.metadata().map(|found| found.dev()) else { return FoundRepository::None };
    for place in folder.ancestors().take(ANCESTORS) {
        if place.metadata().map_or(true, |found| found.dev() != device) {
            break;
        }
        let git = place.join(".git");
        let Ok(found) = git.symlink_metadata() else { continue };
        if found.is_symlink() {
            return FoundRepository::Refused("`.git` is a link, which is not followed");
        }
        let pair = if found.is_dir() { Some((git.clone(), git)) } else { pointed(place, &git) };
        let Some((own, common)) = pair else {
            let why = "`.git` names a repository elsewhere that does not name this folder, so it is not read";
            return FoundRepository::Refused(why);
        };
        let (Ok(own), Ok(common)) = (Beneath::open(&own), Beneath::open(&common)) else { continue };
        // Without these it is no repository for git either.
        let (Ok(objects), Ok(_)) = (common.folder(b"objects"), own.stat(b"HEAD")) else { continue };
        let mut below =
            folder.strip_prefix(place).map(|path| path.as_os_str().as_bytes().to_owned()).unwrap_or_default();
        if !below.is_empty() {
            below.push(b'/');
        }
        return FoundRepository::Here(Box::new(Repository { own, common, objects: Objects::open(objects), below }));
    }
    FoundRepository::None
}

/// The folders that a `.git` file names: of a linked worktree, or of a submodule of a repository above.
fn pointed(place: &Path, git: &Path) -> Option<(PathBuf, PathBuf)> {
    let beside = Beneath::open(place).ok()?;
    let text = beside.read(b".git", SMALL).ok()?;
    let own = pointer(place, text.strip_prefix(b"gitdir:")?)?.canonicalize().ok()?;
    let opened = Beneath::open(&own).ok()?;
    if let Ok(back) = opened.read(b"gitdir", SMALL) {
        // `git worktree add` writes both ends, and the common folder is the one two steps above.
        let back = pointer(&own, &back)?;
        if back.parent()?.canonicalize().ok()? != *place || back.file_name() != git.file_name() {
            return None;
        }
        let worktrees = own.parent()?;
        let common = worktrees.parent()?;
        return (worktrees.file_name() == Some(OsStr::new("worktrees"))).then(|| (own.clone(), common.to_owned()));
    }
    let modules = place.ancestors().skip(1).take(ANCESTORS).map(|above| above.join(".git/modules"));
    let known = modules.into_iter().any(|modules| own.starts_with(&modules) && own != modules);
    known.then(|| (own.clone(), own))
}

fn pointer(from: &Path, text: &[u8]) -> Option<PathBuf> {
    let text = text.trim_ascii();
    let sound = !text.is_empty() && !text.contains(&b'\n') && !text.contains(&0);
    sound.then(|| from.join(OsStr::from_bytes(text)))
}

impl Repository {
    /// The commit that is checked out; `None` where nothing is committed yet, or it is written in a way that is not read.
    pub(super) fn head(&self) -> Option<ObjectId> {
        let mut text = self.own.read(b"HEAD", SMALL).ok()?;
        for _ in 0..REFERENCES {
            let line = text.trim_ascii();
            let Some(name) = line.strip_prefix(b"ref:") else { return ObjectId::parse(line) };
            let name = name.trim_ascii().to_owned();
            if !name.starts_with(b"refs/") {
                return None;
            }
            text = match self.common.read(&name, SMALL) {
                Ok(text) => text,
                Err(_) => return self.packed(&name),
            };
        }
        None
    }

    fn packed(&self, name: &[u8]) -> Option<ObjectId> {
        let text = self.common.read(b"packed-refs", PACKED_REFS).ok()?;
        let lines = text.split(|byte| *byte == b'\n');
        let found =
            lines.filter_map(|line| line.split_at_checked(41)).find(|(_, known)| known.trim_ascii_end() == name);
        found.and_then(|(id, _)| ObjectId::parse(&id[..40]))
    }

    /// Whether its objects have names of another kind than are read (SHA-256).
    pub(super) fn is_foreign(&self) -> bool {
        self.own.read(b"HEAD", SMALL).is_ok_and(|text| text.trim_ascii().len() == 64)
            || self.common.stat(b"reftable").is_ok()
    }

    /// The files of a commit below the session's folder, by their paths from there. `None`: more than are compared.
    pub(super) fn files(&self, commit: ObjectId) -> Result<Option<HashMap<Vec<u8>, Tracked>>, ObjectError> {
        let (kind, text) = self.objects.read(commit, TREE)?;
        let first = text.strip_prefix(b"tree ").filter(|_| kind == ObjectKind::Commit).and_then(|text| text.get(..40));
        let mut tree = first.and_then(ObjectId::parse).ok_or(ObjectError::Damaged("a commit names no tree"))?;
        let mut files = HashMap::new();
        for name in self.below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let (_, text) = self.objects.read(tree, TREE)?;
            match entries(&text)?.into_iter().find(|entry| entry.name == name && entry.mode == FOLDER) {
                Some(entry) => tree = entry.id,
                None => return Ok(Some(files)),
            }
        }
        let mut pending = vec![(tree, Vec::new(), 0)];
        let mut trees = 0;
        while let Some((tree, below, depth)) = pending.pop() {
            trees += 1;
            let (_, text) = self.objects.read(tree, TREE)?;
            for entry in entries(&text)? {
                if files.len() >= TRACKED_MAX || trees + pending.len() > TRACKED_MAX || depth > DEPTH {
                    return Ok(None);
                }
                // No repository has such a name, unless somebody wants its configuration to be written.
                if entry.name.eq_ignore_ascii_case(b".git") {
                    continue;
                }
                let mut path: Vec<u8> = [&below, entry.name].concat();
                match entry.mode {
                    FOLDER => {
                        path.push(b'/');
                        pending.push((entry.id, path, depth + 1));
                    }
                    SUBMODULE => {}
                    mode => drop(files.insert(path, Tracked { mode: canonical(mode), id: entry.id })),
                }
            }
        }
        Ok(Some(files))
    }

    /// The index; an empty one where it is not read, which costs comparisons and nothing else.
    pub(super) fn index(&self) -> Index {
        let Ok((file, found)) = self.own.file(b"index") else { return Index::default() };
        let Ok(bytes) = super::beneath::read_bounded(file, found.len(), INDEX) else { return Index::default() };
        let low = |number: i64| u32::try_from(number & 0xffff_ffff).unwrap_or_default();
        let written = (low(found.mtime()), low(found.mtime_nsec()));
        parse_index(&bytes, &self.below).map(|index| Index { written, ..index }).unwrap_or_default()
    }
}

/// A file is executable or it is not.
const fn canonical(mode: u32) -> u32 {
    match mode {
        LINK => LINK,
        mode if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// Reads an index of version 2, 3 or 4, as gitformat-index(5) describes them.
fn parse_index(bytes: &[u8], below: &[u8]) -> Option<Index> {
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (version, count) = (word(4)?, word(8)?);
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut index = Index::default();
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..count {
        let start = at;
        let flags = half(at + 60)?;
        at += 62;
        let mut skipped = false;
        if flags & 0x4000 != 0 {
            skipped = half(at)? & 0x4000 != 0;
            at += 2;
        }
        if version == 4 {
            let (mut byte, mut back) = (*bytes.get(at)?, 0usize);
            at += 1;
            back |= usize::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *bytes.get(at)?;
                at += 1;
                back = back.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
            }
            path.truncate(path.len().checked_sub(back)?);
        } else {
            path.clear();
        }
        let name = &bytes[at..at + memchr::memchr(0, bytes.get(at..)?)?];
        path.extend_from_slice(name);
        at += name.len() + 1;
        if version != 4 {
            // One to eight zeros end an entry.
            at = start + (at - start).div_ceil(8) * 8;
        }
        let Some(inside) = path.strip_prefix(below) else { continue };
        let mode = word(start + 24)?;
        if mode == FOLDER && skipped {
            index.skipped.push(inside.to_owned());
        } else if flags & 0x3000 == 0 {
            let id = ObjectId(bytes.get(start + 40..start + 60)?.try_into().ok()?);
            let (changed, modified) = ((word(start)?, word(start + 4)?), (word(start + 8)?, word(start + 12)?));
            let (inode, size) = (word(start + 20)?, word(start + 36)?);
            let known = Indexed { changed, modified, inode, size, mode: canonical(mode), id, skipped };
            index.files.insert(inside.to_owned(), known);
        }
    }
    Some(index)
}
