//! The difference of two trees: its files, their counts of lines, and their patches.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use crate::error::{Result, WorkspaceError};
use crate::git::Limits;
use crate::hunks::{PatchHunk, split};
use crate::names::{ObjectName, display_path};
use crate::store::{FolderStore, LIST_MAX, SHORT};
use crate::values::{Comparison, FileSide, PLACEHOLDER, PathChange, PathList, PathStatus, TreeDifference};

/// Maximum number of files in a difference; further ones are only counted.
pub const LISTED_FILES: usize = 2000;
/// Maximum size of a file that is compared by lines, in bytes; a larger one is [`Comparison::Large`].
pub const COMPARED_MAX: u64 = 1 << 20;
/// Maximum size of a file's patch, in bytes; hunks beyond it are left out.
pub const FILE_PATCH_MAX: usize = 512 << 10;
/// Maximum size of the patch of all files, in bytes; further files are named.
pub const WHOLE_PATCH_MAX: usize = 8 << 20;
/// Maximum number of files whose lines are counted by name; with more, those of all files are counted.
const COUNTED_BY_NAME: usize = 200;
/// Maximum number of stored differences; above it all are removed, and computed again.
const REMEMBERED: usize = 8;
/// Maximum number of pairs of blobs whose counts are stored; above it all are removed, and counted again.
const REMEMBERED_COUNTS: usize = 20_000;

/// Options of all comparisons: no program outside of the store runs, and paths have no escapes.
const DIFF_TREE: [&str; 6] = ["diff-tree", "-r", "-M", "-l100", "--no-ext-diff", "--no-textconv"];

/// The patch of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    bytes: Vec<u8>,
    /// `true` if hunks were left out at the end.
    pub truncated: bool,
}

impl FilePatch {
    /// Returns the patch from its `---` line on, in the encoding of the file; empty if there are no hunks.
    pub fn diff(&self) -> &[u8] {
        let (header, hunks) = split(&self.bytes);
        if hunks.is_empty() {
            return &[];
        }
        let at = header.windows(4).rposition(|window| window == b"\n---").map_or(header.len(), |at| at + 1);
        &self.bytes[at..]
    }

    /// Returns the hunks.
    pub fn hunks(&self) -> Vec<PatchHunk<'_>> {
        split(&self.bytes).1
    }

    /// Returns the whole patch, which `git apply` accepts unless it is truncated.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The patch of all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholePatch {
    /// Patches of whole files, which `git apply` accepts; binary files are encoded.
    pub bytes: Vec<u8>,
    /// Files that are not in the patch: they are not stored, or the patch would be longer than [`WHOLE_PATCH_MAX`].
    pub left_out: Vec<Vec<u8>>,
}

impl FolderStore {
    /// Lists the paths that differ between two trees, without renames, and whether some are omitted.
    pub(crate) fn paths_between(&self, old: ObjectName, new: ObjectName) -> Result<PathList> {
        if old == new {
            return Ok((Vec::new(), false));
        }
        if let Some(known) = self.caches.lock().paths.get(&(old, new)) {
            return Ok((**known).clone());
        }
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &old.to_string(), &new.to_string()];
        let found = self.run(SHORT, &args, None)?;
        let cut = found.cut;
        let found = if cut { found.stdout } else { found.checked("comparing two states of the folder")?.stdout };
        let end = found.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        let paths = found[..end].split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(display_path).collect();
        let mut caches = self.caches.lock();
        if caches.paths.len() >= REMEMBERED {
            caches.paths.clear();
        }
        caches.paths.insert((old, new), Arc::new((paths, cut)));
        drop(caches);
        self.paths_between(old, new)
    }

    /// Compares two trees.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Slow`], and errors of git.
    pub fn difference(&self, old: ObjectName, new: ObjectName) -> Result<Arc<TreeDifference>> {
        if let Some(known) = self.caches.lock().differences.get(&(old, new)) {
            return Ok(Arc::clone(known));
        }
        let _turn = self.turn()?;
        let mut found = TreeDifference::default();
        if old != new {
            let listed = self.compare(&["-z", "--raw", "--no-abbrev"], (old, new), &[], LIST_MAX)?;
            if !listed.cut && !listed.success {
                listed.checked("comparing two states of the folder")?;
                return Ok(Arc::default());
            }
            found = parse_raw(&listed.stdout);
            self.count(&mut found.files, (old, new))?;
        }
        let found = Arc::new(found);
        let mut caches = self.caches.lock();
        if caches.differences.len() >= REMEMBERED {
            caches.differences.clear();
        }
        caches.differences.insert((old, new), Arc::clone(&found));
        Ok(found)
    }

    fn compare(
        &self,
        options: &[&str],
        (old, new): (ObjectName, ObjectName),
        paths: &[&[u8]],
        output: usize,
    ) -> Result<crate::git::GitOutput> {
        let (old, new) = (old.to_string(), new.to_string());
        let mut args: Vec<&OsStr> = DIFF_TREE.iter().chain(options).map(OsStr::new).collect();
        args.extend([OsStr::new(&old), OsStr::new(&new), OsStr::new("--")]);
        args.extend(paths.iter().map(|path| OsStr::from_bytes(path)));
        self.git.run(Limits { seconds: SHORT, output }, &args, None)
    }

    /// Fills in the ways of comparison and the counts of lines.
    fn count(&self, files: &mut [PathChange], trees: (ObjectName, ObjectName)) -> Result<()> {
        let mut unknown = Vec::new();
        {
            let caches = self.caches.lock();
            for (at, file) in files.iter_mut().enumerate() {
                match file.by_mode() {
                    Some(compared) => file.compared = compared,
                    None => match caches.counts.get(&(file.old, file.new)) {
                        Some(known) => (file.compared, file.lines) = *known,
                        None => unknown.push(at),
                    },
                }
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        if !self.count_lines(files, &unknown, trees)? {
            // Git ends at a missing or damaged object. Its file is left out, and the others are counted again.
            self.compare_sizes(files, &unknown)?;
            let again: Vec<usize> =
                unknown.iter().copied().filter(|at| files[*at].compared == Comparison::Uncounted).collect();
            if !again.is_empty() && again.len() < unknown.len().min(COUNTED_BY_NAME) {
                self.count_lines(files, &again, trees)?;
            }
        }
        let mut caches = self.caches.lock();
        if caches.counts.len() + unknown.len() > REMEMBERED_COUNTS {
            caches.counts.clear();
        }
        for file in unknown.iter().map(|at| &files[*at]).filter(|file| file.compared != Comparison::Uncounted) {
            caches.counts.insert((file.old, file.new), (file.compared, file.lines));
        }
        Ok(())
    }

    /// Counts the lines of some files. Returns whether git read all of them.
    fn count_lines(&self, files: &mut [PathChange], which: &[usize], trees: (ObjectName, ObjectName)) -> Result<bool> {
        let mut paths: Vec<&[u8]> = Vec::new();
        if which.len() <= COUNTED_BY_NAME {
            let names = which.iter().flat_map(|at| [Some(&files[*at].path), files[*at].from.as_ref()]);
            paths.extend(names.flatten().map(Vec::as_slice));
        }
        let counted = match self.compare(&["-z", "--numstat", "--ignore-submodules=all"], trees, &paths, LIST_MAX) {
            Ok(output) if output.success => output.stdout,
            // A list without counts is better than none.
            Ok(_) | Err(WorkspaceError::Slow(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let counts = parse_numstat(&counted);
        let mut binary = Vec::new();
        for at in which {
            let file = &mut files[*at];
            match counts.get(file.path.as_slice()) {
                Some(Some(lines)) => (file.compared, file.lines) = (Comparison::Text, Some(*lines)),
                Some(None) => {
                    file.compared = Comparison::Binary;
                    binary.push(*at);
                }
                None => {}
            }
        }
        self.compare_sizes(files, &binary)?;
        Ok(true)
    }

    /// Distinguishes large, missing and binary files by the sizes of their blobs.
    fn compare_sizes(&self, files: &mut [PathChange], which: &[usize]) -> Result<()> {
        let names: Vec<ObjectName> =
            which.iter().flat_map(|at| files[*at].old.iter().chain(&files[*at].new)).map(|side| side.name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let input: String = names.iter().map(|name| format!("{name}\n")).collect();
        let args = ["cat-file", "--batch-check=%(objectsize)"];
        // Git ends at an object that it cannot read; those after it have no size then.
        let sizes = self.run(SHORT, &args, Some(input.as_bytes()))?.stdout;
        let sizes = sizes.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).ok()?.parse().ok());
        let sizes = sizes.chain(std::iter::repeat(None));
        let sizes: HashMap<ObjectName, Option<u64>> = names.into_iter().zip(sizes).collect();
        for at in which {
            let file = &mut files[*at];
            let sides = file.old.iter().chain(&file.new).map(|side| sizes.get(&side.name).copied().flatten());
            let sides: Vec<Option<u64>> = sides.collect();
            if sides.contains(&None) {
                file.compared = Comparison::Unreadable;
            } else if sides.iter().flatten().any(|size| *size > COMPARED_MAX) {
                file.compared = Comparison::Large;
            }
        }
        Ok(())
    }

    /// Makes the patch of a file. A file that is not compared by lines has an empty one.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Slow`], and errors of git.
    pub fn file_patch(&self, old: ObjectName, new: ObjectName, file: &PathChange) -> Result<FilePatch> {
        if !matches!(file.compared, Comparison::Text | Comparison::Uncounted) {
            return Ok(FilePatch::default());
        }
        let _turn = self.turn()?;
        self.file_patch_between(old, new, file)
    }

    pub(crate) fn file_patch_between(&self, old: ObjectName, new: ObjectName, file: &PathChange) -> Result<FilePatch> {
        let paths: Vec<&[u8]> = std::iter::once(&file.path).chain(&file.from).map(Vec::as_slice).collect();
        let options = ["-p", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
        let found = self.compare(&options, (old, new), &paths, FILE_PATCH_MAX)?;
        if !found.cut {
            let bytes = found.checked("comparing a file")?.stdout;
            return Ok(FilePatch { bytes: own_part(bytes, file), truncated: false });
        }
        let (header, hunks) = split(&found.stdout);
        let end = header.len() + hunks.iter().map(|hunk| hunk.bytes.len()).sum::<usize>();
        Ok(FilePatch { bytes: found.stdout[..end].to_vec(), truncated: true })
    }

    /// Makes the patch of all files of a difference, or of one of them.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Slow`], and errors of git.
    pub fn whole_patch(&self, old: ObjectName, new: ObjectName, only: Option<&PathChange>) -> Result<WholePatch> {
        let listed = self.difference(old, new)?;
        let _turn = self.turn()?;
        let paths: Vec<&[u8]> = only
            .map_or_else(Vec::new, |file| std::iter::once(&file.path).chain(&file.from).map(Vec::as_slice).collect());
        let options = ["-p", "--binary", "--full-index", "--no-color", "--ignore-submodules=all"];
        let prefixes = ["--src-prefix=a/", "--dst-prefix=b/"];
        let found = self.compare(&[&options[..], &prefixes].concat(), (old, new), &paths, WHOLE_PATCH_MAX)?;
        let cut = found.cut;
        let mut bytes = if cut { found.stdout } else { found.checked("comparing two states of the folder")?.stdout };
        let starts = |bytes: &[u8]| -> Vec<usize> {
            let inner =
                bytes.windows(12).enumerate().filter(|(_, window)| *window == b"\ndiff --git ").map(|(at, _)| at + 1);
            std::iter::once(0).filter(|_| bytes.starts_with(b"diff --git ")).chain(inner).collect()
        };
        // Lines of content begin with a mark, so a line that begins with `diff --git ` begins a file.
        let mut offsets = starts(&bytes);
        if cut {
            bytes.truncate(offsets.pop().unwrap_or(0));
        }
        let headers: Vec<&[u8]> =
            offsets.iter().map(|at| bytes[*at..].split(|byte| *byte == b'\n').next().unwrap_or_default()).collect();
        let is_requested = |file: &&PathChange| only.is_none_or(|only| only.path == file.path);
        let has = |file: &PathChange| {
            let end = crate::names::header_path(b"b/", &file.path);
            headers.iter().any(|line| line.ends_with(end.as_bytes()))
        };
        let placeholder = |file: &PathChange| file.old.iter().chain(&file.new).any(|side| side.mode == PLACEHOLDER);
        let left = listed.files.iter().filter(is_requested).filter(|file| placeholder(file) || (cut && !has(file)));
        let left_out = left.map(|file| file.path.clone()).collect();
        Ok(WholePatch { bytes, left_out })
    }
}

/// Returns the patch of one path, if git printed those of a removed and an added file.
fn own_part(bytes: Vec<u8>, file: &PathChange) -> Vec<u8> {
    if file.from.is_none() {
        return bytes;
    }
    let second = bytes.windows(12).position(|window| window == b"\ndiff --git ");
    second.map_or(bytes.clone(), |at| bytes[..=at].to_vec())
}

/// Parses the output of `--raw -z`.
fn parse_raw(text: &[u8]) -> TreeDifference {
    let mut out = TreeDifference::default();
    let mut parts = text.split(|byte| *byte == 0);
    while let Some(facts) = parts.next().and_then(|facts| facts.strip_prefix(b":")) {
        let fields: Vec<&[u8]> = facts.split(|byte| *byte == b' ').collect();
        let [old_mode, new_mode, old, new, status] = fields[..] else { break };
        let Some(first) = parts.next() else { break };
        let renamed = matches!(status.first(), Some(b'R' | b'C'));
        let second = if renamed { parts.next() } else { None };
        let side = |mode: &[u8], name: &[u8]| {
            let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok().filter(|mode| *mode != 0)?;
            Some(FileSide { mode, name: ObjectName::parse(name)? })
        };
        let (old, new) = (side(old_mode, old), side(new_mode, new));
        if out.files.len() == LISTED_FILES {
            out.left_off += 1;
            continue;
        }
        let status = match (second, old, new) {
            (Some(_), ..) => PathStatus::Renamed,
            (_, None, _) => PathStatus::Added,
            (_, _, None) => PathStatus::Deleted,
            _ => PathStatus::Modified,
        };
        let (path, from) = second.map_or((first, None), |path| (path, Some(first.to_vec())));
        let compared = Comparison::Uncounted;
        out.files.push(PathChange { path: path.to_vec(), from, status, old, new, compared, lines: None });
    }
    out
}

/// Parses the output of `--numstat -z`: the counts by path, `None` for a file that is not compared by lines.
fn parse_numstat(text: &[u8]) -> BTreeMap<&[u8], Option<(usize, usize)>> {
    let mut out = BTreeMap::new();
    let mut parts = text.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        let mut fields = part.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else { break };
        let path = if path.is_empty() {
            // Both paths of a renamed file come after it.
            let Some(path) = parts.next().and_then(|_| parts.next()) else { break };
            path
        } else {
            path
        };
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
        out.insert(path, number(added).zip(number(removed)));
    }
    out
}
