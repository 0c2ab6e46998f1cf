//! The values that the store of a folder returns and caches.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::names::{ObjectName, digest_of};

/// The mode of a symbolic link.
pub(crate) const LINK: u32 = 0o120_000;
/// The mode of a placeholder.
pub(crate) const PLACEHOLDER: u32 = 0o160_000;

/// One side of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSide {
    /// The mode as git writes it: 100644, 100755, 120000 of a link, or 160000 of a placeholder, in octal digits.
    pub mode: u32,
    /// The blob, or the name of a placeholder.
    pub name: ObjectName,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// The path is new.
    Added,
    /// The content or the mode differs.
    Modified,
    /// The path was removed.
    Deleted,
    /// The file had another path, and has the same or a similar content.
    Renamed,
}

/// The way in which a file is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The file is compared by lines.
    Text,
    /// The file is compared by lines, but the lines were not counted in time.
    Uncounted,
    /// The file is not compared by lines: a side has a NUL in its first 8,000 bytes.
    Binary,
    /// The file is not compared by lines: a side is larger than [`COMPARED_MAX`](crate::COMPARED_MAX) or was too large to be stored.
    Large,
    /// The file is not compared by lines: a side is a symbolic link.
    Link,
    /// The file is not compared: a side could not be read, or is not stored any more.
    Unreadable,
    /// The file is not compared: a side is a repository of its own.
    Nested,
}

impl Comparison {
    /// Returns the reason why a file has no diff, or no counts of lines.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Text => None,
            Self::Uncounted => Some("its lines could not be counted"),
            Self::Binary => Some("it is binary"),
            Self::Large => Some("it has more than 1 MiB, or was too large to be stored"),
            Self::Link => Some("it is a symbolic link, which is not followed"),
            Self::Unreadable => Some("it cannot be read, or its earlier content is not stored"),
            Self::Nested => Some("it is a repository of its own, whose files are not listed"),
        }
    }
}

/// A path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The path below the folder.
    pub path: Vec<u8>,
    /// The path before, of a renamed file.
    pub from: Option<Vec<u8>>,
    /// The kind.
    pub status: PathStatus,
    /// The side before; absent if there was no file.
    pub old: Option<FileSide>,
    /// The side after; absent if there is no file.
    pub new: Option<FileSide>,
    /// The way in which the file is compared.
    pub compared: Comparison,
    /// The numbers of added and removed lines of a file that is compared as [`Comparison::Text`].
    pub lines: Option<(usize, usize)>,
}

impl PathChange {
    /// Returns a text that names both sides: it changes whenever a side changes.
    pub fn digest(&self) -> String {
        let side =
            |side: &Option<FileSide>| side.map_or(String::from("-"), |side| format!("{:o}:{}", side.mode, side.name));
        digest_of(format!("{:?}\n{:?}\n{}\n{}", self.path, self.from, side(&self.old), side(&self.new)).as_bytes())
    }

    /// Returns the comparison that the modes alone determine, without the content.
    pub(crate) fn by_mode(&self) -> Option<Comparison> {
        let sides = || self.old.iter().chain(&self.new);
        if let Some(placeholder) = sides().find(|side| side.mode == PLACEHOLDER) {
            return Some(match OmissionReason::from_placeholder(placeholder.name) {
                OmissionReason::Large | OmissionReason::Budget => Comparison::Large,
                OmissionReason::Unreadable => Comparison::Unreadable,
                OmissionReason::Nested => Comparison::Nested,
            });
        }
        sides().any(|side| side.mode == LINK).then_some(Comparison::Link)
    }
}

/// The difference of two trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeDifference {
    /// The files by path, at most [`LISTED_FILES`](crate::LISTED_FILES).
    pub files: Vec<PathChange>,
    /// The number of files that are not listed.
    pub left_off: usize,
}

/// Paths, and whether some are omitted.
pub(crate) type PathList = (Vec<String>, bool);

/// A way of comparison, and the numbers of added and removed lines.
pub(crate) type FileCounts = (Comparison, Option<(usize, usize)>);

/// Cached comparisons; a tree never changes, so none becomes outdated.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    pub(crate) differences: HashMap<(ObjectName, ObjectName), Arc<TreeDifference>>,
    pub(crate) paths: HashMap<(ObjectName, ObjectName), Arc<PathList>>,
    pub(crate) counts: HashMap<(Option<FileSide>, Option<FileSide>), FileCounts>,
}

impl std::hash::Hash for FileSide {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.mode, self.name).hash(state);
    }
}

/// The reason why a file is named in a tree, but not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OmissionReason {
    /// The file has more than [`KEPT_FILE_MAX`](crate::KEPT_FILE_MAX) bytes.
    Large,
    /// The file cannot be read by this process.
    Unreadable,
    /// The folder is a repository of its own, of which only the newest change is noticed.
    Nested,
    /// The scan had stored the maximum number of bytes.
    Budget,
}

impl OmissionReason {
    const ALL: [Self; 4] = [Self::Large, Self::Unreadable, Self::Nested, Self::Budget];

    /// Reads the reason from the name of a placeholder.
    pub(crate) fn from_placeholder(placeholder: ObjectName) -> Self {
        Self::ALL.get(usize::from(placeholder.bytes()[0])).copied().unwrap_or(Self::Nested)
    }
}

/// The state of a folder at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderScan {
    /// The tree of all files that are not ignored.
    pub tree: ObjectName,
    /// For each reason, the number of files that are not stored and the first 20 of their paths.
    pub omitted: Vec<(OmissionReason, usize, Vec<String>)>,
    /// Folders below that could not be listed, and files of ignore rules whose folders could not be, at most 20. Files
    /// below them count as unknown, never as absent.
    pub unlisted: Vec<String>,
}

/// The scans that are shared: a call gets the result of a scan that began after the call did.
#[derive(Debug, Default)]
pub(crate) struct ScanState {
    pub(crate) running: bool,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) last: Option<Result<FolderScan>>,
    /// Folders whose file of ignore rules blocked git.
    pub(crate) blocked: Vec<PathBuf>,
}

/// The moments of sessions that were read recently.
pub(crate) type Records = HashMap<String, Arc<Vec<Moment>>>;

/// The kind of a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    /// The session began. Only the first base of a session counts.
    Base,
    /// The run began.
    RunStart(String),
    /// The run ended.
    RunEnd(String),
}

/// The state of the folder at one moment of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The kind.
    pub kind: MomentKind,
    /// The time in milliseconds since 1970, as the caller gave it.
    pub at: i64,
    /// A text of the caller, such as the beginning of the prompt.
    #[serde(default)]
    pub note: String,
    /// The tree.
    pub tree: ObjectName,
    /// `true` if the scan came after the beginning of the work that it should precede.
    #[serde(default)]
    pub late: bool,
    /// The paths that differ from the moment before, as [`display_path`](crate::display_path) writes them.
    pub paths: Vec<String>,
    /// `true` if there were more paths than are stored.
    #[serde(default)]
    pub left_off: bool,
    /// Folders that could not be listed.
    #[serde(default)]
    pub unlisted: Vec<String>,
}
