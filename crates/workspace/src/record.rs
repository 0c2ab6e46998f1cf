//! The moments of sessions: the tree at the beginning, and those at the start and end of each run.
//!
//! A moment holds the paths that differ from the moment before, so a list never compares the trees of old runs again. Moments are
//! lines of a file that is only appended to. Each tree gets a reference before its line is written.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use crate::error::{Result, WorkspaceError, disk};
use crate::names::checked_id;
use crate::store::{FolderStore, sync_folder};
use crate::values::{FolderScan, Moment, MomentKind};

/// Maximum number of paths of a moment; above it the list reports the author of further files as unknown.
const PATHS: usize = 5000;
/// Size of a session's file above which moments have no paths, in bytes.
const FILE_SOFT: u64 = 4 << 20;
/// Maximum number of sessions whose moments are cached; above it all are removed, and read again.
const REMEMBERED: usize = 4;
/// The name of the file.
const FILE: &str = "moments";

/// A moment to record.
#[derive(Clone, Debug)]
pub struct NewMoment<'a> {
    /// The kind.
    pub kind: MomentKind,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// A text of the caller that is stored with the moment.
    pub note: &'a str,
    /// `true` if the scan came after the beginning of the work that it should precede.
    pub late: bool,
}

impl FolderStore {
    /// Records a moment of a session. A second base, a second start of a run and a second end of one have no effect. A
    /// session that begins with a run gets a base that is [`Moment::late`].
    ///
    /// # Errors
    /// Returns [`WorkspaceError::BadId`], [`WorkspaceError::Damaged`], and errors of git and the disk; then nothing is recorded.
    pub fn mark(&self, session: &str, moment: NewMoment<'_>, scan: &FolderScan) -> Result<()> {
        let NewMoment { kind, at, note, late } = moment;
        let _turn = self.turn()?;
        if let MomentKind::RunStart(run) | MomentKind::RunEnd(run) = &kind {
            checked_id(run)?;
        }
        let (known, length) = self.read_moments(checked_id(session)?)?;
        let repeated = known.iter().any(|moment| moment.kind == kind);
        if repeated || (kind == MomentKind::Base && !known.is_empty()) {
            return Ok(());
        }
        let last = known.last().map_or(scan.tree, |moment| moment.tree);
        let (mut paths, mut left_off) = (Vec::new(), false);
        if last != scan.tree {
            (paths, left_off) = self.paths_between(last, scan.tree)?;
        }
        if paths.len() > PATHS || length > FILE_SOFT {
            paths.truncate(if length > FILE_SOFT { 0 } else { PATHS });
            left_off = true;
        }
        let late = late || (known.is_empty() && kind != MomentKind::Base);
        let (note, unlisted) = (note.to_owned(), scan.unlisted.clone());
        let moment = Moment { kind, at, note, tree: scan.tree, late, paths, left_off, unlisted };
        self.keep_objects(session, &[scan.tree])?;
        self.append(session, &moment, length).map_err(disk("recording the state of the folder"))?;
        let moments = known.iter().cloned().chain([moment]).collect();
        self.remember(session, Arc::new(moments));
        Ok(())
    }

    /// Reads the moments of a session, oldest first. An unknown session has none.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::BadId`], [`WorkspaceError::Damaged`], [`WorkspaceError::Disk`].
    pub fn moments(&self, session: &str) -> Result<Arc<Vec<Moment>>> {
        if let Some(known) = self.records.lock().get(checked_id(session)?) {
            return Ok(Arc::clone(known));
        }
        let (moments, _) = self.read_moments(session)?;
        self.remember(session, Arc::clone(&moments));
        Ok(moments)
    }

    fn remember(&self, session: &str, moments: Arc<Vec<Moment>>) {
        let mut records = self.records.lock();
        if records.len() >= REMEMBERED {
            records.clear();
        }
        records.insert(session.to_owned(), moments);
    }

    /// Reads the moments, and the length of the file up to the last complete line: a crash may leave an incomplete one.
    fn read_moments(&self, session: &str) -> Result<(Arc<Vec<Moment>>, u64)> {
        let text = match fs::read(self.session_folder(session).join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Arc::default(), 0)),
            Err(error) => return Err(disk("reading the moments of a session")(error)),
        };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut moments = Vec::new();
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let damaged =
                |error| WorkspaceError::Damaged(format!("a moment of session {session} cannot be read: {error}"));
            moments.push(serde_json::from_slice(line).map_err(damaged)?);
        }
        Ok((Arc::new(moments), whole as u64))
    }

    fn append(&self, session: &str, moment: &Moment, length: u64) -> std::io::Result<()> {
        let folder = self.session_folder(session);
        fs::create_dir_all(&folder)?;
        let mut line = serde_json::to_vec(moment)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(FILE))?;
        file.set_len(length)?;
        file.write_all(&line)?;
        file.sync_all()?;
        if length == 0 {
            sync_folder(&folder)?;
            sync_folder(&self.directory.join("sessions"))?;
        }
        Ok(())
    }
}
