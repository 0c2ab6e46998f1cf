//! The changes of a session: the differences from its base, their authors, and the differences in one of its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Result, WorkspaceError};
use crate::names::{ObjectName, display_path};
use crate::store::FolderStore;
use crate::values::{FolderScan, Moment, MomentKind, PathChange, TreeDifference};

/// The author of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAuthor {
    /// The file changed only while runs of the session were in progress.
    Session,
    /// The file changed only while no run was in progress.
    Others,
    /// The file changed both during runs and between them.
    Both,
}

/// A file that changed in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// The difference.
    pub file: PathChange,
    /// The author.
    pub by: ChangeAuthor,
    /// The runs in which the file changed, oldest first.
    pub runs: Vec<String>,
}

/// A run and the number of paths that changed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChanges {
    /// The run.
    pub run: String,
    /// The recorded time of its start.
    pub at: i64,
    /// The text that the caller gave with its start.
    pub note: String,
    /// `true` if its start was recorded after it had begun.
    pub late: bool,
    /// The number of paths that differ between its start and its end, or now. A renamed file has two.
    pub files: usize,
}

/// The changes of a session, or of one of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChanges {
    /// The time of the base.
    pub base_at: i64,
    /// `true` if the base was recorded after the session had begun.
    pub late: bool,
    /// The tree before.
    pub old: ObjectName,
    /// The tree after.
    pub new: ObjectName,
    /// The files by path, at most [`LISTED_FILES`](crate::LISTED_FILES).
    pub files: Vec<SessionChange>,
    /// The number of files that are not listed.
    pub left_off: usize,
    /// The runs, oldest first.
    pub runs: Vec<RunChanges>,
    /// `true` if authors may be missing, because a step changed more files than are recorded.
    pub authors_bounded: bool,
}

impl SessionChanges {
    /// Finds the change at a path.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::NoChange`].
    pub fn at(&self, path: &[u8]) -> Result<&SessionChange> {
        self.files.iter().find(|change| change.file.path == path).ok_or(WorkspaceError::NoChange)
    }
}

/// A step between two moments: the run in progress, and the paths that changed.
struct Step<'a> {
    run: Option<&'a str>,
    paths: &'a [String],
}

impl FolderStore {
    /// Lists the changes between the base of a session and a scan, or those of one run.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::NoBase`], [`WorkspaceError::NoRun`], [`WorkspaceError::Damaged`], and errors of git.
    pub fn changes(&self, session: &str, run: Option<&str>, scan: &FolderScan) -> Result<SessionChanges> {
        let moments = self.moments(session)?;
        let (Some(base), Some(last)) = (moments.first(), moments.last()) else { return Err(WorkspaceError::NoBase) };
        let (late_paths, late_cut) = {
            let _turn = self.turn()?;
            self.paths_between(last.tree, scan.tree)?
        };
        let started = |moment: &Moment| match &moment.kind {
            MomentKind::RunStart(run) => Some(run.clone()),
            MomentKind::Base | MomentKind::RunEnd(_) => None,
        };
        let run_ids: Vec<Option<String>> = moments.iter().map(started).collect();
        let following_paths =
            moments.iter().skip(1).map(|moment| moment.paths.as_slice()).chain([late_paths.as_slice()]);
        let steps: Vec<Step<'_>> =
            run_ids.iter().zip(following_paths).map(|(run, paths)| Step { run: run.as_deref(), paths }).collect();
        let runs = moments.iter().zip(&steps).filter_map(|(moment, step)| {
            let (run, note) = (step.run?.to_owned(), moment.note.clone());
            Some(RunChanges { run, at: moment.at, note, late: moment.late, files: step.paths.len() })
        });
        let runs = runs.collect();
        let (old, new) = match run {
            None => (base.tree, scan.tree),
            Some(run) => {
                let at = steps.iter().position(|step| step.run == Some(run)).ok_or(WorkspaceError::NoRun)?;
                (moments[at].tree, moments.get(at + 1).map_or(scan.tree, |next| next.tree))
            }
        };
        let found = self.difference(old, new)?;
        let unknown: BTreeSet<&str> = base.unlisted.iter().map(String::as_str).collect();
        let files = with_authors(&found, &steps, &unknown);
        let authors_bounded = late_cut || moments.iter().any(|moment| moment.left_off);
        let (late, base_at, left_off) = (base.late, base.at, found.left_off);
        Ok(SessionChanges { base_at, late, old, new, files, left_off, runs, authors_bounded })
    }
}

/// Finds the authors of each file. Files below folders that could not be listed at the beginning are left out, because
/// it is unknown whether they are new.
fn with_authors(found: &Arc<TreeDifference>, steps: &[Step<'_>], unknown: &BTreeSet<&str>) -> Vec<SessionChange> {
    let mut authors: BTreeMap<String, (BTreeSet<usize>, bool)> = BTreeMap::new();
    for file in &found.files {
        for path in std::iter::once(&file.path).chain(&file.from) {
            authors.insert(display_path(path), (BTreeSet::new(), false));
        }
    }
    for (at, step) in steps.iter().enumerate() {
        for path in step.paths {
            match authors.get_mut(path) {
                Some((runs, _)) if step.run.is_some() => drop(runs.insert(at)),
                Some((_, others)) => *others = true,
                None => {}
            }
        }
    }
    let listed = |file: &&PathChange| {
        let path = display_path(&file.path);
        file.old.is_some() || !unknown.iter().any(|folder| path.starts_with(folder))
    };
    let one = |file: &PathChange| {
        let (mut runs, mut others) = (BTreeSet::<usize>::new(), false);
        for path in std::iter::once(&file.path).chain(&file.from) {
            if let Some((more, other)) = authors.get(&display_path(path)) {
                runs.extend(more);
                others |= *other;
            }
        }
        let by = match (runs.is_empty(), others) {
            (false, false) => ChangeAuthor::Session,
            (false, true) => ChangeAuthor::Both,
            (true, _) => ChangeAuthor::Others,
        };
        let runs = runs.iter().filter_map(|at| Some(steps[*at].run?.to_owned())).collect();
        SessionChange { file: file.clone(), by, runs }
    };
    found.files.iter().filter(listed).map(one).collect()
}
