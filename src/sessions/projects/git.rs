//! Finds the repository that a folder lies in, as gitrepository-layout(5) and gitfile in gitglossary(7) describe it.
//!
//! Nothing that a repository configures is read, let alone executed. Besides `.git` of the folder and of the folders above
//! it, only git's own pointers are followed: the `gitdir:` line of a `.git` file, `commondir`, and the pointer back to a
//! worktree. What is read are regular files of at most [`FILE_MAX`] bytes; a symbolic link is never opened.

use std::ffi::OsStr;
use std::fs::{Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plexus_protocol::Project;
use rustix::fs::OFlags;

use crate::sessions::display::label;

/// Most bytes of a file that is read; a longer one counts as unusable.
const FILE_MAX: u64 = 4096;
/// Folders above a session's that are looked at; a repository further up is not found.
const ANCESTORS: usize = 128;
/// Longest name that is shown, in bytes; the rest is left out.
const NAME_MAX: usize = 200;

/// What `.git` in a folder says.
enum GitEntry {
    /// Nothing, or a folder that is no repository: git looks further up.
    None,
    /// It names a repository that is not there, or in a way that is not followed: git stops here, and so does this.
    Unusable,
    /// A repository.
    Repository {
        /// Its main working tree, or the folder of a bare one.
        root: PathBuf,
        branch: Option<String>,
        /// Whether the folder is a linked worktree of it.
        linked: bool,
    },
}

/// The project of a folder, read from the disk.
pub(super) fn project_of(cwd: &str) -> Project {
    // A folder that is missing, or that may not be read, is its own project.
    let Ok(folder) = Path::new(cwd).canonicalize() else { return itself(Path::new(cwd)) };
    let Ok(device) = folder.metadata().map(|found| found.dev()) else { return itself(&folder) };
    for place in folder.ancestors().take(ANCESTORS) {
        // As git: a repository on another file system does not count.
        if place.metadata().map_or(true, |found| found.dev() != device) {
            break;
        }
        match entry_of(place) {
            GitEntry::None => {}
            GitEntry::Unusable => return itself(place),
            GitEntry::Repository { root, branch, linked } => {
                let worktree = linked.then(|| name_of(place));
                return Project { branch, worktree, ..itself(&root) };
            }
        }
    }
    itself(&folder)
}

/// A folder as a project of its own.
fn itself(folder: &Path) -> Project {
    // Without trailing slashes.
    let folder: PathBuf = folder.components().collect();
    let name = name_of(&folder);
    Project { name, root: folder.to_string_lossy().into_owned(), branch: None, worktree: None }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    // A bare repository is called `name.git`.
    label(name.strip_suffix(".git").filter(|rest| !rest.is_empty()).unwrap_or(&name), NAME_MAX)
}

fn entry_of(place: &Path) -> GitEntry {
    let git = place.join(".git");
    let Ok(found) = git.symlink_metadata() else { return GitEntry::None };
    if found.is_dir() {
        return match head_of(&git) {
            Some(branch) => GitEntry::Repository { root: place.to_owned(), branch, linked: false },
            None => GitEntry::None,
        };
    }
    pointed(place, &git, &found).unwrap_or(GitEntry::Unusable)
}

/// The repository that a `.git` file points to: of a linked worktree, a submodule, or one that is kept elsewhere.
fn pointed(place: &Path, git: &Path, found: &Metadata) -> Option<GitEntry> {
    if !found.is_file() {
        return None;
    }
    let private = pointer(place, read_small(git)?.strip_prefix(b"gitdir:")?)?.canonicalize().ok()?;
    let branch = head_of(&private)?;
    let Some(common) = read_small(&private.join("commondir")) else {
        return Some(GitEntry::Repository { root: place.to_owned(), branch, linked: false });
    };
    // Only a worktree that its repository knows is a part of it: anybody can write a `.git` file.
    let back = pointer(&private, &read_small(&private.join("gitdir"))?)?;
    if back.file_name() != Some(OsStr::new(".git")) || back.parent()?.canonicalize().ok()? != place {
        return None;
    }
    let common = pointer(&private, &common)?.canonicalize().ok()?;
    head_of(&common)?;
    let hidden = common.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
    // `.git` lies in the main working tree. A bare repository that is hidden, as `.bare`, lies among its worktrees.
    let root = if hidden { common.parent()?.to_owned() } else { common };
    let linked = root != place;
    Some(GitEntry::Repository { root, branch, linked })
}

/// The path in a pointer, from the folder that the pointer counts from.
fn pointer(from: &Path, text: &[u8]) -> Option<PathBuf> {
    let text = text.trim_ascii();
    let sound = !text.is_empty() && !text.contains(&b'\n') && !text.contains(&0);
    sound.then(|| from.join(OsStr::from_bytes(text)))
}

/// The branch that is checked out, if one is; `None` if the folder has no `HEAD` of a repository.
fn head_of(repository: &Path) -> Option<Option<String>> {
    const BRANCHES: &[u8] = b"refs/heads/";
    let head = repository.join("HEAD");
    let found = head.symlink_metadata().ok()?;
    let target = if found.is_symlink() {
        // As git once wrote it: the link's text is the reference.
        let target = head.read_link().ok()?.into_os_string();
        Some(target.as_bytes().strip_prefix(b"refs/").map(|_| target.as_bytes().to_owned())?)
    } else {
        let text = read_small(&head)?;
        match text.strip_prefix(b"ref:") {
            Some(target) => Some(target.trim_ascii().to_owned()),
            None => {
                let commit = text.trim_ascii();
                // SHA-1 or SHA-256.
                return ([40, 64].contains(&commit.len()) && commit.iter().all(u8::is_ascii_hexdigit)).then_some(None);
            }
        }
    };
    let branch = target.as_deref().and_then(|target| target.strip_prefix(BRANCHES));
    // With reftable, HEAD is a placeholder.
    let branch = branch.filter(|name| !name.is_empty() && *name != b".invalid");
    Some(branch.map(|name| label(&String::from_utf8_lossy(name), NAME_MAX)))
}

/// A regular file that is short.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    // A pipe in its place must not block, and a link leads elsewhere.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > FILE_MAX {
        return None;
    }
    let mut text = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= FILE_MAX).then_some(text)
}
