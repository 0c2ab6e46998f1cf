//! Scans: the state of a folder as one tree.
//!
//! A scan is made of plumbing commands that start no process in a nested repository, as `git add` and `git status` do.
//! A file that is not stored has a placeholder in the tree, so that it differs from an absent one. The placeholder is
//! an entry of the kind that git uses for submodules; its name encodes the reason and changes with the file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, Timespec, Timestamps, accessat, utimensat};
use sha1::{Digest as _, Sha1};

use crate::error::{Result, WorkspaceError, disk};
use crate::names::{ObjectName, display_path};
use crate::project::{RepositoryPaths, is_own, read_regular, repository_of};
use crate::store::{FolderStore, KEPT_FILE_MAX, SCAN, SHORT, replace};
use crate::values::{FolderScan, OmissionReason};

/// Maximum number of files that a scan reads because they are new or have changed; with more, the scan is
/// [`WorkspaceError::TooManyFiles`].
const READ_FILES: usize = 400_000;
/// Maximum number of bytes that a scan adds to the store; further files get placeholders until a later scan.
const READ_BYTES: u64 = 2 << 30;
/// Maximum length of the path of a borrowed index, in bytes; with a longer one no index is borrowed.
const PATH_MAX: usize = 4096;
/// Maximum size of a borrowed index, in bytes.
const INDEX_MAX: u64 = 128 << 20;
/// Maximum size of a file of ignore rules above the folder, in bytes; a longer one has no effect.
const RULES_MAX: u64 = 64 << 10;
/// The name of a file with ignore rules.
const RULES: &str = ".gitignore";
/// Maximum number of names in each list of a scan; further ones are only counted.
const NAMED: usize = 20;
/// Maximum number of attempts of a scan that fails because files vanish.
const ATTEMPTS: usize = 3;
/// Seconds that a caller waits for a scan that it shares; then the call is [`WorkspaceError::Slow`].
const SHARED_WAIT: u64 = 180;
/// The suffix of the temporary files of undo, which scans leave out.
pub(crate) const UNDO_SUFFIX: &str = ".plexus-undo";

/// Ends a scan for all waiting callers, even if the thread panics.
struct Leading<'a> {
    store: &'a FolderStore,
    number: u64,
    found: Result<FolderScan>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut state = self.store.scans.lock();
        (state.running, state.ended, state.last) = (false, self.number, Some(self.found.clone()));
        self.store.scan_ended.notify_all();
    }
}

impl FolderStore {
    /// Stores the state of the folder. Calls that wait at the same moment share one scan; each scan began after the calls that it serves.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Slow`], [`WorkspaceError::TooManyFiles`], and errors of git and the disk.
    pub fn scan(&self) -> Result<FolderScan> {
        let until = Instant::now() + Duration::from_secs(SHARED_WAIT);
        let mut state = self.scans.lock();
        let next = state.started + 1;
        loop {
            if state.ended >= next
                && let Some(last) = &state.last
            {
                return last.clone();
            }
            if !state.running {
                break;
            }
            if self.scan_ended.wait_until(&mut state, until).timed_out() {
                return Err(WorkspaceError::Slow(SHARED_WAIT));
            }
        }
        state.running = true;
        state.started += 1;
        let number = state.started;
        drop(state);
        let mut leading = Leading { store: self, number, found: Err(WorkspaceError::Slow(SCAN)) };
        leading.found = self.scan_now();
        leading.found.clone()
    }

    /// Returns the number of scans that were made since the store was opened.
    pub fn scans_made(&self) -> u64 {
        self.scans.lock().started
    }

    fn scan_now(&self) -> Result<FolderScan> {
        let _turn = self.turn()?;
        let repository = repository_of(&self.folder);
        self.write_rules(repository.as_ref())?;
        let index = self.directory.join("index");
        let borrows = !index.exists();
        if borrows && repository.is_some_and(|repository| self.borrow(&repository).is_err()) {
            self.borrow_nothing()?;
        }
        match self.scan_once() {
            // A pipe in place of a file with ignore rules blocks git.
            Err(WorkspaceError::Slow(_)) if self.find_blocked_rules() => {
                self.write_rules(repository_of(&self.folder).as_ref())?;
                self.scan_once()
            }
            // A borrowed index, or a crash, left an index or objects that git does not accept. All files are read again.
            Err(WorkspaceError::Git { .. }) => {
                if borrows {
                    self.borrow_nothing()?
                } else {
                    remove(&index)?
                }
                self.scan_once()
            }
            found => found,
        }
    }

    /// Copies the index of the folder's repository and names its objects, if they belong to this user and are not links.
    fn borrow(&self, repository: &RepositoryPaths) -> Result<()> {
        let action = "borrowing the objects of the repository";
        let unsound = |text: &str| WorkspaceError::Git { action, text: text.into() };
        let objects = repository.common.join("objects");
        let line = objects.as_os_str().as_bytes();
        if !is_own(&objects) || !objects.is_dir() || line.contains(&b'\n') || line.starts_with(b"\"") {
            return Ok(());
        }
        replace(&self.directory.join("objects/info/alternates"), &[line, b"\n"].concat()).map_err(disk(action))?;
        let source = repository.private.join("index");
        if repository.top != self.folder || !is_own(&source) {
            return Ok(());
        }
        let found = source.metadata().map_err(disk(action))?;
        let Some(content) = read_regular(&source, INDEX_MAX) else { return Ok(()) };
        let copy = self.directory.join("index");
        fs::write(&copy, content).map_err(disk(action))?;
        // Git compares the times of files with that of the index, to read files again that were written at the same moment.
        let time = Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &copy, &times, AtFlags::empty()).map_err(disk(action))?;
        let listed = self.run(SCAN, &["ls-files", "-s", "-v", "-z"], None)?.checked(action)?;
        let (mut removed, mut unflagged) = (Vec::new(), Vec::new());
        for entry in listed.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let tab = entry.iter().position(|byte| *byte == b'\t').ok_or_else(|| unsound("an entry has no path"))?;
            let (facts, path) = (&entry[..tab], &entry[tab + 1..]);
            if !is_sound(path) {
                return Err(unsound("an entry leads out of the folder"));
            }
            let file = facts.get(2..5).is_some_and(|mode| mode == b"100" || mode == b"120");
            if !file || !facts.ends_with(b" 0") {
                removed.extend([b"0 0000000000000000000000000000000000000000\t", path, b"\0"].concat());
            } else if facts.first() != Some(&b'H') {
                // Entries that the repository marked to be never read.
                unflagged.extend([path, b"\0"].concat());
            }
        }
        self.update(&["-z", "--index-info"], &removed)?;
        self.update(&["-z", "--no-assume-unchanged", "--stdin"], &unflagged)?;
        self.update(&["-z", "--no-skip-worktree", "--stdin"], &unflagged)
    }

    fn borrow_nothing(&self) -> Result<()> {
        remove(&self.directory.join("index"))?;
        // Trees of sessions may need objects that were borrowed before; an unusable one does no harm.
        if fs::read_dir(self.directory.join("sessions")).is_ok_and(|mut found| found.next().is_none()) {
            remove(&self.directory.join("objects/info/alternates"))?;
        }
        Ok(())
    }

    fn update(&self, args: &[&str], input: &[u8]) -> Result<()> {
        if input.is_empty() {
            return Ok(());
        }
        let args: Vec<&str> = std::iter::once("update-index").chain(args.iter().copied()).collect();
        self.run(SCAN, &args, Some(input))?.checked("storing the files of the folder").map(drop)
    }

    fn scan_once(&self) -> Result<FolderScan> {
        let (mut attempt, began) = (0, Instant::now());
        loop {
            attempt += 1;
            match self.gather().and_then(|found| found.tree(self)) {
                Err(WorkspaceError::Git { .. }) if attempt < ATTEMPTS && began.elapsed().as_secs() < SHORT => {}
                found => return found,
            }
        }
    }

    /// Lists the differences from the index and sorts them.
    fn gather(&self) -> Result<Gathered> {
        let action = "looking at the folder";
        let known = self.run(SHORT, &["diff-files", "-z", "--raw", "--ignore-submodules=all"], None)?;
        let blocked = self.blocked_rules();
        let mut others = vec![OsString::from("ls-files"), "-z".into(), "--others".into()];
        if blocked.iter().any(|folder| folder.as_os_str().is_empty()) {
            // The folder's own rules cannot be distinguished from those of the folders below.
            let mut own = OsString::from("--exclude-from=");
            own.push(self.directory.join("info/exclude"));
            others.push(own);
        } else {
            others.push("--exclude-standard".into());
        }
        let others = self.run(SHORT, &others, None)?;
        if known.cut || others.cut {
            return Err(WorkspaceError::TooManyFiles);
        }
        let blocked = blocked.iter().map(|folder| display_path(folder.join(RULES).as_os_str().as_bytes()));
        let unlisted = unlisted(&others.stderr).into_iter().chain(blocked).take(NAMED).collect();
        let mut gathered = Gathered { unlisted, ..Gathered::default() };
        let known = known.checked(action)?.stdout;
        let others = others.checked(action)?.stdout;
        let mut parts = known.split(|byte| *byte == 0);
        while let (Some([b':', ..]), Some(path)) = (parts.next(), parts.next()) {
            gathered.add(self, path, true)?;
        }
        for path in others.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            gathered.add(self, path, false)?;
        }
        Ok(gathered)
    }

    /// Returns the folders, below the first, whose file of ignore rules cannot be read without waiting.
    fn blocked_rules(&self) -> Vec<PathBuf> {
        let mut blocked = self.scans.lock().blocked.clone();
        blocked.retain(|folder| is_blocked(&self.folder.join(folder).join(RULES)));
        blocked
    }

    /// Searches the folder for files of ignore rules that cannot be read without waiting. Returns whether there are new ones.
    fn find_blocked_rules(&self) -> bool {
        let (mut found, mut pending) = (Vec::new(), vec![PathBuf::new()]);
        let until = Instant::now() + Duration::from_secs(SHORT);
        while let Some(below) = pending.pop().filter(|_| Instant::now() < until && found.len() < NAMED) {
            let Ok(entries) = fs::read_dir(self.folder.join(&below)) else { continue };
            for entry in entries.flatten() {
                if entry.file_name() == RULES && is_blocked(&entry.path()) {
                    found.push(below.clone());
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                    pending.push(below.join(entry.file_name()));
                }
            }
        }
        let known = self.blocked_rules();
        found.retain(|folder| !known.contains(folder));
        let any = !found.is_empty();
        self.scans.lock().blocked = known.into_iter().chain(found).take(NAMED).collect();
        any
    }

    /// Writes the ignore rules above the folder, those of its repository, and the gateway's own.
    fn write_rules(&self, repository: Option<&RepositoryPaths>) -> Result<()> {
        let mut rules = String::new();
        if let Some(repository) = repository {
            let exclude = repository.common.join("info/exclude");
            let above = self.folder.ancestors().skip(1).take_while(|directory| directory.starts_with(&repository.top));
            let mut files: Vec<(PathBuf, &Path)> =
                above.map(|directory| (directory.join(".gitignore"), directory)).collect();
            files.push((exclude, &repository.top));
            for (file, counts_from) in files.iter().rev() {
                let below = self.folder.strip_prefix(counts_from).unwrap_or(Path::new("")).to_string_lossy();
                let text = read_regular(file, RULES_MAX).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                rules.extend(text.lines().filter_map(|line| rule_below(line, &below)).map(|line| line + "\n"));
            }
        }
        rules.push_str(&format!("*{UNDO_SUFFIX}\n"));
        let blocked = self.blocked_rules();
        let below = blocked.iter().filter(|folder| !folder.as_os_str().is_empty());
        for left_out in self.private.iter().chain(below) {
            let escaped = |c: char| if c.is_alphanumeric() || c == '/' { vec![c] } else { vec!['\\', c] };
            let path: String = left_out.to_string_lossy().chars().flat_map(escaped).collect();
            rules.push_str(&format!("/{path}/\n"));
        }
        replace(&self.directory.join("info/exclude"), rules.as_bytes()).map_err(disk("writing the ignore rules"))
    }
}

/// The files that differ from the index.
#[derive(Debug, Default)]
struct Gathered {
    count: usize,
    bytes: u64,
    /// Paths to read, each with a NUL at its end.
    read: Vec<u8>,
    /// Lines that remove entries.
    removed: Vec<u8>,
    placeholders: Vec<(Vec<u8>, OmissionReason, ObjectName)>,
    unlisted: Vec<String>,
}

impl Gathered {
    fn add(&mut self, store: &FolderStore, path: &[u8], is_known: bool) -> Result<()> {
        self.count += 1;
        if self.count > READ_FILES {
            return Err(WorkspaceError::TooManyFiles);
        }
        let (path, nested) = path.strip_suffix(b"/").map_or((path, false), |path| (path, true));
        let full = store.folder.join(OsStr::from_bytes(path));
        let (why, found) = match full.symlink_metadata() {
            Ok(found) if found.is_symlink() => (None, Some(found)),
            Ok(found) if found.is_file() => (self.reason(&full, &found), Some(found)),
            Ok(found) if found.is_dir() && nested => (Some(OmissionReason::Nested), Some(found)),
            // A file that vanished, or an entry that is neither a file nor a link.
            _ => (None, None),
        };
        if why.is_none() && found.is_some() {
            self.read.extend([path, b"\0"].concat());
            return Ok(());
        }
        if is_known {
            self.removed.extend([b"0 0000000000000000000000000000000000000000\t", path, b"\0"].concat());
        }
        if let (Some(why), Some(found)) = (why, found) {
            self.placeholders.push((path.to_vec(), why, placeholder(why, &full, &found)));
        }
        Ok(())
    }

    /// Returns the reason why a regular file is not stored.
    fn reason(&mut self, path: &Path, found: &Metadata) -> Option<OmissionReason> {
        if found.len() > KEPT_FILE_MAX {
            return Some(OmissionReason::Large);
        }
        if accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_err() {
            return Some(OmissionReason::Unreadable);
        }
        self.bytes += found.len();
        (self.bytes > READ_BYTES).then_some(OmissionReason::Budget)
    }

    /// Updates the index and writes the tree.
    fn tree(self, store: &FolderStore) -> Result<FolderScan> {
        let action = "storing the state of the folder";
        store.update(&["-z", "--index-info"], &self.removed)?;
        store.update(&["-z", "--add", "--remove", "--replace", "--stdin"], &self.read)?;
        let mut written = None;
        let mut kinds = BTreeSet::new();
        if !self.placeholders.is_empty() {
            // Placeholders are only in a copy of the index, so that git never takes them for submodules.
            let copy = store.directory.join("index.look");
            remove(&copy)?;
            match fs::copy(store.directory.join("index"), &copy) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(disk(action)(error)),
                _ => {}
            }
            let git = store.git.clone().variable("GIT_INDEX_FILE", copy.as_os_str());
            let mut lines = Vec::new();
            for (path, why, name) in &self.placeholders {
                kinds.insert(*why);
                lines.extend([format!("160000 {name}\t").as_bytes(), path, b"\0"].concat());
            }
            let limits = crate::git::Limits { seconds: SCAN, output: crate::store::LIST_MAX };
            git.run(limits, &["update-index", "-z", "--index-info"], Some(&lines))?.checked(action)?;
            written = Some(git.run(limits, &["write-tree"], None)?);
            remove(&copy)?;
        }
        let written = written.map_or_else(|| store.run(SCAN, &["write-tree"], None), Ok)?.checked(action)?;
        let error = || WorkspaceError::Git { action, text: "the tree has no name".into() };
        let tree = ObjectName::parse(written.stdout.trim_ascii()).ok_or_else(error)?;
        let omitted = kinds.into_iter().map(|kind| {
            let paths =
                || self.placeholders.iter().filter(|(_, why, _)| *why == kind).map(|(path, ..)| display_path(path));
            (kind, paths().count(), paths().take(NAMED).collect())
        });
        Ok(FolderScan { tree, omitted: omitted.collect(), unlisted: self.unlisted })
    }
}

/// Returns whether opening a path may wait for another process.
fn is_blocked(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(disk("removing a file of the store")(error)),
        _ => Ok(()),
    }
}

/// Returns whether a path of an index stays below the folder and is not part of a repository.
fn is_sound(path: &[u8]) -> bool {
    let part = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git");
    path.len() <= PATH_MAX && path.split(|byte| *byte == b'/').all(part)
}

/// Returns the name for the state of a file that is not stored: the reason, the size, and a digest of the time of its last change.
fn placeholder(why: OmissionReason, path: &Path, found: &Metadata) -> ObjectName {
    let mut digest = Sha1::new();
    let mut add = |found: &Metadata| {
        digest.update(found.len().to_be_bytes());
        digest.update(found.mtime().to_be_bytes());
        digest.update(found.mtime_nsec().to_be_bytes());
    };
    if why == OmissionReason::Nested {
        // Commits and staged files change these.
        for part in [".git", ".git/HEAD", ".git/index", ".git/logs/HEAD"] {
            path.join(part).symlink_metadata().iter().for_each(&mut add);
        }
    } else {
        add(found);
    }
    let mut name = [0; 20];
    name[0] = why as u8;
    name[1..9].copy_from_slice(&if why == OmissionReason::Nested { 0 } else { found.len() }.to_be_bytes());
    name[9..].copy_from_slice(&digest.finalize()[..11]);
    ObjectName::from_bytes(name)
}

/// Reads the folders that git could not list from its warnings.
fn unlisted(warnings: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(warnings);
    let folder =
        |line: &str| Some(line.strip_prefix("warning: could not open directory '")?.split_once("':")?.0.to_owned());
    text.lines().filter_map(folder).take(NAMED).collect()
}

/// Translates an ignore rule of a folder above into one for a folder `below` it; `None` for a rule without an effect
/// there. A rule that names the path to the folder by wildcards has none.
fn rule_below(line: &str, below: &str) -> Option<String> {
    let line = line.trim_end();
    if line.is_empty() || line.starts_with('#') || below.is_empty() {
        return (below.is_empty() && !line.is_empty()).then(|| line.to_owned());
    }
    let (not, rule) = line.strip_prefix('!').map_or(("", line), |rule| ("!", rule));
    if rule.starts_with("**/") || !rule.trim_end_matches('/').contains('/') {
        return Some(line.to_owned());
    }
    let rest = rule.strip_prefix('/').unwrap_or(rule).strip_prefix(below)?.strip_prefix('/')?;
    (!rest.is_empty()).then(|| format!("{not}/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_above_a_folder_are_translated() {
        for (rule, expected) in [
            ("target", Some("target")),
            ("*.o", Some("*.o")),
            ("!keep.o", Some("!keep.o")),
            ("build/", Some("build/")),
            ("/a/b/out", Some("/out")),
            ("!a/b/out/x", Some("!/out/x")),
            ("**/gen/x", Some("**/gen/x")),
            ("/out", None),
            ("c/out", None),
            ("# comment", None),
            ("", None),
        ] {
            assert_eq!(rule_below(rule, "a/b").as_deref(), expected, "{rule:?}");
        }
        assert_eq!(rule_below("/out", "").as_deref(), Some("/out"));
    }

    #[test]
    fn paths_of_an_index_stay_below() {
        assert!(is_sound(b"a/b") && is_sound(b".gitignore") && is_sound(b"a/..b"));
        for path in [&b"../a"[..], b"a/../b", b"/a", b"a//b", b".git/config", b"a/.GIT/x", b"", &[b'x'; PATH_MAX + 1]] {
            assert!(!is_sound(path), "{:?}", String::from_utf8_lossy(&path[..path.len().min(20)]));
        }
    }
}
