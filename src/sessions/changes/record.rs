//! What is remembered of a session: what it began with, and what was not committed when its runs began and ended. Kept below the
//! state folder, one folder a session, readable by its owner alone.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use plexus_protocol::{RunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::objects::ObjectId;
use super::patch::{shown, unshown};
use super::view::KeptPatch;
use super::worktree::{FileState, FileStates};

/// Runs that are remembered; beyond it the oldest are forgotten, and what they changed counts as changed by the next.
const RUNS: usize = 100;
/// Files of one note of what is not committed; further ones are as they are committed, with a note.
pub(super) const STATES: usize = 2000;
/// Bytes of one file that is copied; a larger one has no diff against how it was.
pub(super) const COPY: u64 = 256 << 10;
/// Bytes of all copies of a session; beyond it further files have no copy.
const COPIES: u64 = 64 << 20;
/// Undone changes that are kept; beyond it the oldest are forgotten.
const UNDONE: usize = 200;
/// Most bytes of a record that is read; a longer one counts as none.
const RECORD: u64 = 256 << 20;

/// What is remembered of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// What it began with; absent before the first prompt.
    pub(super) base: Option<BaseRecord>,
    #[serde(default)]
    pub(super) runs: Vec<RunRecord>,
    /// The note of a prompt whose run has not begun yet.
    #[serde(default)]
    pub(super) pending: Option<PendingRun>,
    #[serde(default)]
    pub(super) undone: Vec<UndoneRecord>,
    /// Bytes of the copies.
    #[serde(default)]
    pub(super) copied: u64,
    /// Whether files were left without a copy, or out of a note.
    #[serde(default)]
    pub(super) bounded: bool,
}

/// What a session began with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BaseRecord {
    /// The commit; absent if nothing was committed.
    pub(super) commit: Option<String>,
    pub(super) at: Timestamp,
    /// Files that were other than committed.
    pub(super) states: StatesRecord,
    /// The agent may have begun before it was noted.
    pub(super) late: bool,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) run_id: RunId,
    pub(super) at: Timestamp,
    pub(super) prompt: String,
    pub(super) start: StatesRecord,
    pub(super) end: Option<StatesRecord>,
}

/// How the folder was when a prompt was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PendingRun {
    pub(super) at: Timestamp,
    pub(super) prompt: String,
    pub(super) start: StatesRecord,
}

/// A change that was undone: what stood there before and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UndoneRecord {
    pub(super) patch: KeptPatch,
    /// What stands at each path since, and what stood there.
    pub(super) files: Vec<UndoneFile>,
}

/// A file of an undone change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UndoneFile {
    pub(super) path: String,
    pub(super) was: Option<FileState>,
    pub(super) is: Option<FileState>,
}

/// Files that were other than committed, by path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StatesRecord(BTreeMap<String, Option<FileState>>);

impl StatesRecord {
    /// Of what a walk found; and whether it is all of it.
    pub(super) fn of(states: &FileStates) -> (Self, bool) {
        let kept = states.iter().take(STATES).map(|(path, state)| (shown(path), state.clone()));
        (Self(kept.collect()), states.len() <= STATES)
    }

    pub(super) fn states(&self) -> FileStates {
        self.0.iter().map(|(path, state)| (unshown(path), state.clone())).collect()
    }
}

impl Record {
    /// Forgets what is beyond the bounds.
    pub(super) fn trim(&mut self) {
        let over = self.runs.len().saturating_sub(RUNS);
        self.runs.drain(..over);
        let over = self.undone.len().saturating_sub(UNDONE);
        self.undone.drain(..over);
    }
}

/// The folder of a session's record.
#[derive(Clone, Debug)]
pub(super) struct RecordFolder(PathBuf);

impl RecordFolder {
    pub(super) fn of(home: &Path, session: &SessionId) -> Self {
        Self(home.join("changes").join(session.as_str()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn load(&self) -> Record {
        let read = || {
            let file = std::fs::File::open(self.0.join("record.json")).ok()?;
            let told = file.metadata().ok()?.len();
            serde_json::from_slice(&super::beneath::read_bounded(file, told, RECORD).ok()?).ok()
        };
        read().unwrap_or_default()
    }

    pub(super) fn store(&self, record: &Record) -> std::io::Result<()> {
        self.write("record.json", &serde_json::to_vec(record)?)
    }

    /// Writes a file whole or not at all.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let beside = self.0.join(format!("{name}.new"));
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(content)?;
        std::fs::rename(beside, self.0.join(name))
    }

    /// Keeps a copy; says whether there is one.
    pub(super) fn copy(&self, record: &mut Record, content: &[u8]) -> bool {
        let id = ObjectId::of_blob(content).hex();
        let length = content.len() as u64;
        if self.0.join(&id).exists() {
            return true;
        }
        if length > COPY || record.copied + length > COPIES || self.write(&id, content).is_err() {
            record.bounded = true;
            return false;
        }
        record.copied += length;
        true
    }

    /// Whether there is a copy of a content.
    pub(super) fn has(&self, id: ObjectId) -> bool {
        self.0.join(id.hex()).exists()
    }

    /// The copy of a content.
    pub(super) fn copied(&self, id: ObjectId) -> Option<Vec<u8>> {
        let content = std::fs::read(self.0.join(id.hex())).ok()?;
        (ObjectId::of_blob(&content) == id).then_some(content)
    }

    pub(super) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
