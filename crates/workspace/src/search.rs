//! The files of a folder that match a query.
//!
//! The walk reads the nearest files first. Ignore rules are those of the crate `ignore`; its own walk is not used,
//! because it opens anything that is called `.gitignore`: a pipe, or a link to a file without an end.

use std::collections::{HashMap, VecDeque};
use std::fs::{DirEntry, read_dir};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use parking_lot::Mutex;

use crate::project::{read_regular, repository_of};

/// Maximum number of files in one answer; further ones are left out.
pub const FOUND_MAX: usize = 100;
/// Maximum number of entries of folders that are read; above it the walk ends.
const VISITED: usize = 50_000;
/// Maximum number of entries of one folder that are read; further ones are left out.
const ENTRIES_MAX: usize = 10_000;
/// Maximum size of all paths, in bytes; above it the walk ends.
const PATHS_BYTES: usize = 8 << 20;
/// Maximum depth of folders below the first; deeper ones are left out.
const DEPTH: usize = 32;
/// Maximum duration of a walk; then it ends with the files found so far.
const TIME: Duration = Duration::from_secs(2);
/// Maximum size of a file with ignore rules, in bytes; a longer one has no effect.
const RULES_BYTES: u64 = 64 << 10;
/// Maximum number of rules of one file; further ones have no effect.
const RULES: usize = 1000;
/// Maximum number of folders with rules on the path to a file, including those above the first; rules of further ones have no effect.
const RULED_FOLDERS: usize = 24;
/// Names of files with ignore rules; those of the later one take precedence.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Duration for which a walk is used again.
const CACHE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of cached walks; above it the oldest are removed, and made again when they are requested.
const CACHED_FOLDERS: usize = 16;
/// Maximum size of the cached walks, in bytes; above it the oldest are removed.
const CACHED_BYTES: usize = 32 << 20;

/// The files of a folder.
#[derive(Debug, Default)]
pub struct WalkedFiles {
    /// The paths below the folder, the nearest first, in alphabetical order at each depth.
    pub paths: Vec<String>,
    /// `true` if a limit ended the walk, or left files out.
    pub truncated: bool,
    bytes: usize,
}

/// The recent walks.
#[derive(Debug, Default)]
pub struct CachedWalks(Mutex<HashMap<PathBuf, (Arc<WalkedFiles>, Instant)>>);

/// The ignore rules of a folder, and of those above it.
struct Rules {
    own: Gitignore,
    above: Option<Arc<Rules>>,
    depth: usize,
}

/// A folder to walk.
struct Pending {
    folder: PathBuf,
    /// The path below the first folder, with a slash at its end unless it is the first.
    below: String,
    depth: usize,
    rules: Option<Arc<Rules>>,
}

impl CachedWalks {
    /// Returns the files of a folder, from a walk of the last seconds or a new one. Blocks for about two seconds at
    /// most, unless the disk hangs.
    ///
    /// # Errors
    /// Returns the error of the system if the folder cannot be read.
    pub fn files(&self, folder: &Path) -> io::Result<Arc<WalkedFiles>> {
        let fresh = |entry: &(Arc<WalkedFiles>, Instant)| entry.1.elapsed() < CACHE_TIME;
        if let Some((files, _)) = self.0.lock().get(folder).filter(|entry| fresh(entry)) {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(files_of(folder)?);
        let mut walks = self.0.lock();
        walks.retain(|_, entry| fresh(entry));
        walks.insert(folder.to_owned(), (Arc::clone(&files), Instant::now()));
        while walks.len() > 1
            && (walks.len() > CACHED_FOLDERS
                || walks.values().map(|(files, _)| files.bytes).sum::<usize>() > CACHED_BYTES)
        {
            let oldest = walks.iter().min_by_key(|(_, (_, at))| *at).map(|(folder, _)| folder.clone());
            walks.remove(&oldest.unwrap_or_default());
        }
        Ok(files)
    }
}

impl WalkedFiles {
    /// Returns the paths that match `query` best, at most `limit` and [`FOUND_MAX`]. All match an empty one.
    pub fn best(&self, query: &str, limit: usize) -> Vec<String> {
        let (query, limit) = (query.trim(), limit.clamp(1, FOUND_MAX));
        if query.is_empty() {
            return self.paths.iter().take(limit).cloned().collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let mut chars = Vec::new();
        let mut score = |path: &String| pattern.score(Utf32Str::new(path, &mut chars), &mut matcher);
        let mut fit: Vec<_> = self.paths.iter().filter_map(|path| Some((score(path)?, path))).collect();
        // Of equal matches the shorter path is first.
        fit.sort_unstable_by(|(a, x), (b, y)| b.cmp(a).then(x.len().cmp(&y.len())).then(x.cmp(y)));
        fit.into_iter().take(limit).map(|(_, path)| path.clone()).collect()
    }
}

/// Walks a folder. Hidden and ignored files are left out, and links are not followed.
///
/// # Errors
/// Returns the error of the system if the folder cannot be read.
pub fn files_of(folder: &Path) -> io::Result<WalkedFiles> {
    let until = Instant::now() + TIME;
    let (mut out, mut visited) = (WalkedFiles::default(), 0);
    let folder = folder.canonicalize()?;
    read_dir(&folder)?;
    let rules = rules_above(&folder);
    let mut pending = VecDeque::from([Pending { folder, below: String::new(), depth: 0, rules }]);
    while let Some(Pending { folder, below, depth, rules }) = pending.pop_front() {
        let rules = rules_in(&folder, rules);
        // A folder that cannot be read has no files.
        let Ok(entries) = read_dir(&folder) else { continue };
        for (name, entry) in sorted_names(entries, &mut visited, until, &mut out.truncated) {
            // A rule may be slow to apply.
            if Instant::now() >= until {
                out.truncated = true;
                break;
            }
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
                let (folder, below, rules) = (entry.path(), format!("{path}/"), rules.clone());
                pending.push_back(Pending { folder, below, depth: depth + 1, rules });
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

/// Reads the visible names of a folder, within the limits of the walk.
fn sorted_names(
    entries: std::fs::ReadDir,
    visited: &mut usize,
    until: Instant,
    truncated: &mut bool,
) -> Vec<(String, DirEntry)> {
    let mut names: Vec<(String, DirEntry)> = Vec::new();
    for entry in entries.take(ENTRIES_MAX + 1) {
        *visited += 1;
        if *visited > VISITED || Instant::now() >= until {
            *truncated = true;
            break;
        }
        // A name that is not UTF-8 cannot be written in a prompt.
        let named = entry.ok().and_then(|entry| Some((entry.file_name().into_string().ok()?, entry)));
        let Some((name, entry)) = named else { continue };
        if names.len() == ENTRIES_MAX {
            *truncated = true;
        } else if !name.starts_with('.') {
            names.push((name, entry));
        }
    }
    names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    names
}

/// Returns whether the nearest rule about a path ignores it.
fn is_ignored(rules: Option<&Rules>, path: &Path, is_dir: bool) -> bool {
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

/// Reads the rules of the folders above, up to the top of the repository; `None` outside of one that belongs to this user.
fn rules_above(folder: &Path) -> Option<Arc<Rules>> {
    let repository = repository_of(folder)?;
    let above: Vec<&Path> =
        folder.ancestors().skip(1).take_while(|folder| folder.starts_with(&repository.top)).collect();
    let exclude = rules_of(&repository.top, &[repository.common.join("info/exclude")]);
    let first = exclude.map(|own| Arc::new(Rules { own, above: None, depth: 1 }));
    above.into_iter().take(RULED_FOLDERS).rev().fold(first, |rules, folder| rules_in(folder, rules))
}

/// Reads the rules in a folder, in addition to those above it.
fn rules_in(folder: &Path, above: Option<Arc<Rules>>) -> Option<Arc<Rules>> {
    let depth = above.as_ref().map_or(0, |above| above.depth) + 1;
    if depth > RULED_FOLDERS {
        return above;
    }
    match rules_of(folder, &RULE_FILES.map(|name| folder.join(name))) {
        Some(own) => Some(Arc::new(Rules { own, above, depth })),
        None => above,
    }
}

/// Reads the rules in these files, for paths below a folder; `None` without any.
fn rules_of(folder: &Path, files: &[PathBuf]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    let mut any = false;
    for text in files.iter().filter_map(|file| read_regular(file, RULES_BYTES)) {
        for line in String::from_utf8_lossy(&text).lines().take(RULES) {
            // An invalid rule has no effect, as with git.
            any |= builder.add_line(None, line).is_ok();
        }
    }
    if any { builder.build().ok() } else { None }
}
