//! The repository that a folder is in, as gitrepository-layout(5) and gitfile in gitglossary(7) describe it.
//!
//! No setting of a repository is read. Besides `.git` of the folder and of the folders above it, only git's own
//! pointers are followed: the `gitdir:` line of a `.git` file, `commondir`, and the pointer back to a worktree. Only
//! regular files of at most [`FILE_MAX`] bytes are read, and a symbolic link is never opened. A repository counts only
//! if it belongs to the user of this process, as with git's `safe.directory`.

use std::ffi::OsStr;
use std::fs::{Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Maximum size of a file, in bytes; a longer one counts as unusable.
const FILE_MAX: u64 = 4096;
/// Maximum number of folders above the first that are searched; a repository further up is not found.
const ANCESTORS: usize = 128;

/// The project of a folder. Names are as they are on disk, with invalid UTF-8 replaced and nothing escaped or shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderProject {
    /// The last name of the root, without `.git` at its end.
    pub name: String,
    /// The main working tree, the folder of a bare repository, or the folder itself outside of repositories.
    pub root: PathBuf,
    /// The branch that is checked out; absent with a detached HEAD and outside of repositories.
    pub branch: Option<String>,
    /// The name of the linked worktree that the folder is in.
    pub worktree: Option<String>,
}

/// The places of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepositoryPaths {
    /// The top of the working tree that the folder is in.
    pub(crate) top: PathBuf,
    /// The folder with HEAD and the index of this working tree.
    pub(crate) private: PathBuf,
    /// The folder with the objects.
    pub(crate) common: PathBuf,
    root: PathBuf,
    branch: Option<String>,
}

/// The kind of `.git` in a folder.
enum GitEntry {
    /// There is no repository: git searches further up.
    None,
    /// A repository that does not exist, belongs to another user, or is named in a way that is not followed: the search ends.
    Unusable,
    Repository(Box<RepositoryPaths>),
}

/// Reads the project of a folder from the disk. A missing or unreadable folder is a project of its own.
pub fn project_of(folder: &Path) -> FolderProject {
    let Ok(folder) = folder.canonicalize() else { return lone_folder(folder) };
    match nearest(&folder) {
        (folder, GitEntry::Repository(found)) => {
            let worktree = (found.root != folder && found.private != found.common).then(|| name_of(&folder));
            FolderProject { branch: found.branch.clone(), worktree, ..lone_folder(&found.root) }
        }
        (folder, GitEntry::Unusable) => lone_folder(&folder),
        (_, GitEntry::None) => lone_folder(&folder),
    }
}

/// Finds the places of the repository that a folder is in; `None` outside of a usable one.
pub(crate) fn repository_of(folder: &Path) -> Option<RepositoryPaths> {
    match nearest(&folder.canonicalize().ok()?) {
        (_, GitEntry::Repository(found)) => Some(*found),
        _ => None,
    }
}

/// Searches for `.git` in the folder and above it, on the same file system.
fn nearest(folder: &Path) -> (PathBuf, GitEntry) {
    let device = folder.metadata().map(|found| found.dev()).ok();
    for folder in folder.ancestors().take(ANCESTORS) {
        if folder.metadata().map(|found| found.dev()).ok() != device {
            break;
        }
        match entry_of(folder) {
            GitEntry::None => {}
            entry => return (folder.to_owned(), entry),
        }
    }
    (folder.to_owned(), GitEntry::None)
}

/// Builds the project of a folder alone, without slashes at the end of its path.
fn lone_folder(folder: &Path) -> FolderProject {
    let root: PathBuf = folder.components().collect();
    FolderProject { name: name_of(&root), root, branch: None, worktree: None }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    name.strip_suffix(".git").filter(|rest| !rest.is_empty()).unwrap_or(&name).to_owned()
}

/// Returns whether a file or folder is not a link and belongs to the user of this process.
pub(crate) fn is_own(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|found| !found.is_symlink() && found.uid() == user)
}

fn entry_of(folder: &Path) -> GitEntry {
    let git = folder.join(".git");
    let Ok(found) = git.symlink_metadata() else { return GitEntry::None };
    if found.is_dir() {
        return match head_of(&git) {
            None => GitEntry::None,
            Some(_) if !is_own(&git) => GitEntry::Unusable,
            Some(branch) => {
                let root = folder.to_owned();
                let (top, common) = (root.clone(), git.clone());
                GitEntry::Repository(Box::new(RepositoryPaths { top, private: git, common, root, branch }))
            }
        };
    }
    linked_repository(folder, &git, &found).map_or(GitEntry::Unusable, |found| GitEntry::Repository(Box::new(found)))
}

/// Reads the repository that a `.git` file points to: of a linked worktree, a submodule, or one in another place.
fn linked_repository(folder: &Path, git: &Path, found: &Metadata) -> Option<RepositoryPaths> {
    if !found.is_file() || !is_own(git) {
        return None;
    }
    let private = pointer(folder, read_small(git)?.strip_prefix(b"gitdir:")?)?.canonicalize().ok()?;
    let branch = head_of(&private)?;
    let top = folder.to_owned();
    let paths = match read_small(&private.join("commondir")) {
        None => RepositoryPaths { root: top.clone(), top, common: private.clone(), private, branch },
        Some(common) => {
            // Anybody can write a `.git` file: only a worktree that its repository knows is part of it.
            let back = pointer(&private, &read_small(&private.join("gitdir"))?)?;
            if back.file_name() != Some(OsStr::new(".git")) || back.parent()?.canonicalize().ok()? != folder {
                return None;
            }
            let common = pointer(&private, &common)?.canonicalize().ok()?;
            head_of(&common)?;
            let hidden = common.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
            // `.git` is in the main working tree. A bare repository with a hidden name is among its worktrees.
            let root = if hidden { common.parent()?.to_owned() } else { common.clone() };
            RepositoryPaths { root, top, private, common, branch }
        }
    };
    (is_own(&paths.private) && is_own(&paths.common)).then_some(paths)
}

/// Reads the path in a pointer, relative to the folder `from`.
fn pointer(from: &Path, text: &[u8]) -> Option<PathBuf> {
    let text = text.trim_ascii();
    let sound = !text.is_empty() && !text.contains(&b'\n') && !text.contains(&0);
    sound.then(|| from.join(OsStr::from_bytes(text)))
}

/// Reads the checked-out branch, if there is one; `None` if the folder has no `HEAD` of a repository.
fn head_of(repository: &Path) -> Option<Option<String>> {
    const BRANCHES: &[u8] = b"refs/heads/";
    let head = repository.join("HEAD");
    let target = if head.symlink_metadata().ok()?.is_symlink() {
        // Old versions of git wrote a link whose text is the reference.
        let target = head.read_link().ok()?.into_os_string();
        Some(target.as_bytes().strip_prefix(b"refs/").map(|_| target.as_bytes().to_owned())?)
    } else {
        let text = read_small(&head)?;
        match text.strip_prefix(b"ref:") {
            Some(target) => Some(target.trim_ascii().to_owned()),
            None => {
                let commit = text.trim_ascii();
                // 40 digits of SHA-1 or 64 of SHA-256.
                return ([40, 64].contains(&commit.len()) && commit.iter().all(u8::is_ascii_hexdigit)).then_some(None);
            }
        }
    };
    let branch = target.as_deref().and_then(|target| target.strip_prefix(BRANCHES));
    // A repository with a reftable has a placeholder in HEAD.
    let branch = branch.filter(|name| !name.is_empty() && *name != b".invalid");
    Some(branch.map(|name| String::from_utf8_lossy(name).into_owned()))
}

/// Reads a short regular file.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    read_regular(path, FILE_MAX)
}

/// Reads a regular file of at most `max` bytes, without following a link or waiting for a pipe.
pub(crate) fn read_regular(path: &Path, max: u64) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > max {
        return None;
    }
    let mut text = Vec::new();
    file.take(max + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= max).then_some(text)
}
