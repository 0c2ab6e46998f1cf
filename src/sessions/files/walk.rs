//! Walks a folder, the nearest files first. Ignore rules are those of the crate `ignore`; its own walk is not used, because it
//! opens whatever is called `.gitignore`: a pipe, or a link to a file without an end.

use std::collections::VecDeque;
use std::fs::{DirEntry, OpenOptions, read_dir};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::OFlags;

/// Entries of folders that are looked at; beyond that the walk ends.
const VISITED: usize = 50_000;
/// Entries of one folder that are looked at; the others of it are left out.
const IN_ONE_FOLDER: usize = 10_000;
/// Bytes of all paths; beyond that the walk ends.
const PATHS_BYTES: usize = 8 << 20;
/// How deep folders are walked below the first.
const DEPTH: usize = 32;
/// How long a walk goes on; then it ends with what it has.
const TIME: Duration = Duration::from_secs(2);
/// Most bytes of a file with ignore rules; a longer one has no effect.
const RULES_BYTES: u64 = 64 << 10;
/// Most rules of one file; further ones have no effect.
const RULES: usize = 1000;
/// Folders with rules on the way to a file, those above the first included; rules of further ones have no effect.
const RULED_FOLDERS: usize = 24;
/// Names of files with ignore rules; those of the later one count more.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The files of a folder.
#[derive(Debug, Default)]
pub(super) struct FolderFiles {
    /// Their paths below the folder, the nearest first, in alphabetical order at each depth.
    pub(super) paths: Vec<String>,
    /// Bytes of the paths.
    pub(super) bytes: usize,
    /// Whether a limit ended the walk, or left something out.
    pub(super) truncated: bool,
}

/// The ignore rules of a folder, and of those above it.
pub(in crate::sessions) struct IgnoreRules {
    own: Gitignore,
    above: Option<Arc<IgnoreRules>>,
    depth: usize,
}

/// A folder to walk.
struct Pending {
    folder: PathBuf,
    /// Its path below the first, with a slash at its end unless it is the first.
    below: String,
    depth: usize,
    rules: Option<Arc<IgnoreRules>>,
}

/// The files below a folder.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn files_of(folder: &Path) -> std::io::Result<FolderFiles> {
    let until = Instant::now() + TIME;
    let mut out = FolderFiles::default();
    let mut visited = 0;
    let folder = folder.canonicalize()?;
    read_dir(&folder)?;
    let rules = rules_above(&folder);
    let mut pending = VecDeque::from([Pending { folder, below: String::new(), depth: 0, rules }]);
    while let Some(Pending { folder, below, depth, rules }) = pending.pop_front() {
        let rules = rules_in(&folder, rules);
        // What cannot be read has no files.
        let Ok(entries) = read_dir(&folder) else { continue };
        let mut names: Vec<(String, DirEntry)> = Vec::new();
        for entry in entries.take(IN_ONE_FOLDER + 1) {
            visited += 1;
            if visited > VISITED || Instant::now() >= until {
                out.truncated = true;
                break;
            }
            // A name that is no text cannot be written in a prompt.
            let Some((name, entry)) = entry.ok().and_then(|entry| Some((entry.file_name().into_string().ok()?, entry)))
            else {
                continue;
            };
            if names.len() == IN_ONE_FOLDER {
                out.truncated = true;
            } else if !name.starts_with('.') {
                names.push((name, entry));
            }
        }
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, entry) in names {
            // A rule may be slow to apply.
            if Instant::now() >= until {
                out.truncated = true;
                break;
            }
            // Of the entry itself: links are not followed.
            let Ok(kind) = entry.file_type() else { continue };
            let (is_dir, is_file) = (kind.is_dir(), kind.is_file());
            if (!is_dir && !is_file) || is_ignored(rules.as_deref(), &folder.join(&name), is_dir) {
                continue;
            }
            let path = format!("{below}{name}");
            if is_file {
                out.bytes += path.len();
                out.paths.push(path);
            } else if depth < DEPTH {
                let rules = rules.clone();
                pending.push_back(Pending { folder: entry.path(), below: format!("{path}/"), depth: depth + 1, rules });
            } else {
                out.truncated = true;
            }
        }
        if out.bytes > PATHS_BYTES || visited > VISITED || Instant::now() >= until {
            out.truncated |= !pending.is_empty();
            break;
        }
    }
    Ok(out)
}

/// Whether the nearest rule about a path ignores it.
pub(in crate::sessions) fn is_ignored(rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
    let mut at = rules;
    while let Some(rules) = at {
        match rules.own.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => at = rules.above.as_deref(),
        }
    }
    false
}

/// The rules of the folders above, up to the repository's; none outside of one.
pub(in crate::sessions) fn rules_above(folder: &Path) -> Option<Arc<IgnoreRules>> {
    let above: Vec<&Path> = folder.ancestors().take(RULED_FOLDERS).collect();
    let top = above.iter().position(|place| place.join(".git").symlink_metadata().is_ok())?;
    let root = above[top];
    let exclude = rules_of(root, &[&root.join(".git/info/exclude")]);
    let mut rules = exclude.map(|own| Arc::new(IgnoreRules { own, above: None, depth: 1 }));
    for place in above.iter().take(top + 1).skip(1).rev() {
        rules = rules_in(place, rules);
    }
    rules
}

/// The rules in a folder, beside those above it.
pub(in crate::sessions) fn rules_in(folder: &Path, above: Option<Arc<IgnoreRules>>) -> Option<Arc<IgnoreRules>> {
    let depth = above.as_ref().map_or(0, |above| above.depth) + 1;
    if depth > RULED_FOLDERS {
        return above;
    }
    let files = RULE_FILES.map(|name| folder.join(name));
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    match rules_of(folder, &files) {
        Some(own) => Some(Arc::new(IgnoreRules { own, above, depth })),
        None => above,
    }
}

/// The rules in these files, for what is below a folder; `None` without any.
fn rules_of(folder: &Path, files: &[&Path]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    let mut any = false;
    for text in files.iter().filter_map(|file| read_rules(file)) {
        for line in text.lines().take(RULES) {
            // A rule that makes no sense has no effect, as with git.
            any |= builder.add_line(None, line).is_ok();
        }
    }
    if any { builder.build().ok() } else { None }
}

/// The text of a regular file that is short.
fn read_rules(path: &Path) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > RULES_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(RULES_BYTES).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
