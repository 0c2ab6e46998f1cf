//! What changed in a folder: the walk, the record and the commit put together.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use plexus_protocol::RunId;

use super::attributes::Attributes;
use super::beneath::Beneath;
use super::objects::{ObjectError, ObjectId};
use super::patch::{shown, unshown};
use super::record::{Record, RecordFolder, RunRecord};
use super::repository::{FoundRepository, LINK, Repository, TRACKED_MAX, Tracked, find};
use super::told::{ToldEdits, ToldTexts};
use super::view::{ChangeCompared, ChangeStatus, ChangedBy, ChangedRun, ChangesError, ChangesNote, ChangesSource};
use super::worktree::{Committed, FileState, FileStates, LARGE, Scan, is_binary, scan, without_returns};

/// A folder as it was found.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) source: ChangesSource,
    /// The folder, its links resolved.
    pub(super) root: PathBuf,
    /// The commit that it is compared with.
    pub(super) commit: Option<ObjectId>,
    /// What is committed, of the files that a list may name.
    pub(super) tracked: HashMap<Vec<u8>, Tracked>,
    /// Files that are other than committed.
    pub(super) now: FileStates,
    pub(super) left_off: usize,
    pub(super) notes: Vec<ChangesNote>,
    /// The edits that the agent told of; only of [`ChangesSource::Tools`].
    pub(super) told: Option<Arc<Mutex<ToldEdits>>>,
}

fn note(code: &'static str, text: impl Into<String>) -> ChangesNote {
    ChangesNote { code, text: text.into() }
}

/// The code of the note that the folder is the gateway's own.
const PRIVATE: &str = "folder_private";

/// Looks at a folder. `home`: the state folder, which is never looked at.
pub(super) fn analyse(cwd: &Path, record: &Record, home: Option<&Path>) -> Analysis {
    let root = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let mut found = Analysis {
        source: ChangesSource::None,
        root: root.clone(),
        commit: None,
        tracked: HashMap::new(),
        now: FileStates::new(),
        left_off: 0,
        notes: Vec::new(),
        told: None,
    };
    if let Err(why) = read(&mut found, &root, record, home) {
        found.notes.push(why);
    }
    found
}

fn read(found: &mut Analysis, root: &Path, record: &Record, home: Option<&Path>) -> Result<(), ChangesNote> {
    let home = home.and_then(|home| home.canonicalize().ok());
    if home.as_ref().is_some_and(|home| root.starts_with(home)) {
        return Err(note(PRIVATE, "the folder is the gateway's own, whose files are not shown"));
    }
    let never = home.as_ref().and_then(|home| home.strip_prefix(root).ok()).map(|below| {
        use std::os::unix::ffi::OsStrExt as _;
        below.as_os_str().as_bytes().to_owned()
    });
    let folder = Beneath::open(root)
        .map_err(|error| note("folder_unreadable", format!("the folder cannot be read: {error}")))?;
    let repository = match find(root) {
        FoundRepository::Here(repository) => repository,
        FoundRepository::None => {
            let why = "the folder is in no git repository: changes are read from git; `git init` and a commit make them visible";
            return Err(note("no_repository", why));
        }
        FoundRepository::Refused(why) => return Err(note("repository_refused", why)),
    };
    if repository.is_foreign() {
        let why = "the repository has SHA-256 names or a reftable, which are not read";
        return Err(note("repository_format", why));
    }
    found.commit = match &record.base {
        Some(base) => base.commit.as_ref().and_then(|commit| ObjectId::parse(commit.as_bytes())),
        None => repository.head(),
    };
    if repository.objects.has_alternates() {
        let why = "objects that are kept in other repositories (alternates) are not read: their files have no diff";
        found.notes.push(note("alternates_not_read", why));
    }
    let tracked = match found.commit {
        None => HashMap::new(),
        Some(commit) => match repository.files(commit) {
            Ok(Some(files)) => files,
            Ok(None) => {
                let why = format!("the commit has more than {TRACKED_MAX} files or folders, and is not compared");
                return Err(note("too_many_files", why));
            }
            Err(error) => return Err(note("commit_unreadable", format!("the commit cannot be read: {error}"))),
        },
    };
    found.source = ChangesSource::Git;
    let index = repository.index();
    let walked = scan(root, &folder, &Committed { files: &tracked, index: &index }, never.as_deref());
    tracing::debug!(
        files = tracked.len(),
        read = walked.read_files,
        changed = walked.changed.len(),
        "a folder was compared"
    );
    told(found, &walked);
    let noted = record.base.iter().map(|base| &base.states);
    let noted = noted.chain(record.runs.iter().flat_map(|run| std::iter::once(&run.start).chain(run.end.as_ref())));
    let mut named: BTreeSet<Vec<u8>> = noted.flat_map(|states| states.states().into_keys()).collect();
    named.extend(walked.changed.keys().cloned());
    found.tracked = tracked.into_iter().filter(|(path, _)| named.contains(path)).collect();
    found.now = walked.changed;
    Ok(())
}

fn told(found: &mut Analysis, walked: &Scan) {
    found.left_off = walked.left_off;
    if walked.bounded {
        let why =
            "the folder is too large or too slow to be walked to its end: files may have changed that are not listed";
        found.notes.push(note("walk_bounded", why));
    }
    if walked.nested {
        let why = "there are other repositories in the folder, whose files are not listed: submodules, or clones";
        found.notes.push(note("nested_repository", why));
    }
}

/// A file that changed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) path: Vec<u8>,
    /// Its path before, and what stood there; only of a renamed file.
    pub(super) from: Option<Vec<u8>>,
    pub(super) old: Option<FileState>,
    pub(super) new: Option<FileState>,
    pub(super) by: ChangedBy,
    pub(super) runs: Vec<RunId>,
    /// Both texts, where they come from the edits that the agent told of.
    pub(super) told: Option<Arc<ToldTexts>>,
}

impl Change {
    pub(super) const fn status(&self) -> ChangeStatus {
        match (&self.from, &self.old, &self.new) {
            (Some(_), ..) => ChangeStatus::Renamed,
            (None, None, _) => ChangeStatus::Added,
            (None, Some(_), None) => ChangeStatus::Deleted,
            (None, Some(_), Some(_)) => ChangeStatus::Modified,
        }
    }

    /// Another text once the file changed again.
    pub(super) fn digest(&self) -> String {
        let side = |state: &Option<FileState>| {
            state.as_ref().map_or(String::from("-"), |state| format!("{:o}:{}", state.mode, state.id))
        };
        digest_of(&format!("{:?}\n{:?}\n{}\n{}", self.path, self.from, side(&self.old), side(&self.new)))
    }
}

/// A short digest of a text.
pub(super) fn digest_of(text: &str) -> String {
    use sha2::Digest as _;
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(text)[..16])
}

impl Analysis {
    /// Whether the edits that the agent told of are what changed: git says nothing.
    pub(super) fn wants_told(&self) -> bool {
        self.source == ChangesSource::None && self.notes.iter().all(|note| note.code != PRIVATE)
    }

    fn at(&self, states: &FileStates, path: &[u8]) -> Option<FileState> {
        match states.get(path) {
            Some(state) => state.clone(),
            None => self.tracked.get(path).copied().map(FileState::committed),
        }
    }

    /// The changes since the beginning, or of one run; and how many more there are that are not listed.
    pub(super) fn changes(&self, record: &Record, run: Option<&RunId>) -> Result<(Vec<Change>, usize), ChangesError> {
        match self.told.as_ref().map(|told| told.lock()) {
            Some(told) if run.is_some_and(|run| !told.knows(run)) => Err(ChangesError::NoRun),
            Some(told) => Ok(told.changes(&self.root, run, None)),
            None => Ok((self.compared(record, run)?, self.left_off)),
        }
    }

    /// The change at a path.
    pub(super) fn change(&self, record: &Record, run: Option<&RunId>, path: &str) -> Result<Change, ChangesError> {
        let found = match self.told.as_ref().map(|told| told.lock()) {
            Some(told) if run.is_none_or(|run| told.knows(run)) => {
                told.changes(&self.root, run, Some(&unshown(path))).0
            }
            Some(_) => return Err(ChangesError::NoRun),
            None => self.compared(record, run)?,
        };
        found.into_iter().find(|change| shown(&change.path) == path).ok_or(ChangesError::NoChange)
    }

    /// The runs whose changes are known, oldest first.
    pub(super) fn runs(&self, record: &Record) -> Vec<ChangedRun> {
        if let Some(told) = &self.told {
            return told.lock().runs();
        }
        let one = |run: &RunRecord| {
            let files = self.compared(record, Some(&run.run_id)).map_or(0, |changes| changes.len());
            ChangedRun { run_id: run.run_id.clone(), at: run.at, prompt: run.prompt.clone(), files }
        };
        record.runs.iter().map(one).collect()
    }

    fn compared(&self, record: &Record, run: Option<&RunId>) -> Result<Vec<Change>, ChangesError> {
        let steps = self.steps(record);
        let range = match run {
            None => 0..steps.len() - 1,
            Some(run) => {
                let at = steps.iter().position(|step| step.run.as_ref() == Some(run)).ok_or(ChangesError::NoRun)?;
                at..at + 1
            }
        };
        let mut paths: BTreeSet<&Vec<u8>> = BTreeSet::new();
        paths.extend(steps[range.start].states.keys().chain(steps[range.end].states.keys()));
        let mut found = Vec::new();
        for path in paths {
            let sides = [range.start, range.end].map(|at| self.at(&steps[at].states, path));
            let [old, new] = sides;
            if FileState::same(old.as_ref(), new.as_ref()) {
                continue;
            }
            let (mut runs, mut others) = (Vec::new(), false);
            for pair in steps.windows(2) {
                let before = self.at(&pair[0].states, path);
                if !FileState::same(before.as_ref(), self.at(&pair[1].states, path).as_ref()) {
                    match &pair[0].run {
                        Some(run) => runs.push(run.clone()),
                        None => others = true,
                    }
                }
            }
            let by = match (runs.is_empty(), others) {
                (false, false) => ChangedBy::Session,
                (false, true) => ChangedBy::Both,
                (true, _) => ChangedBy::Others,
            };
            found.push(Change { path: path.clone(), from: None, old, new, by, runs, told: None });
        }
        Ok(renamed(found))
    }

    /// What stood in the folder at each known moment, and the run that was under way from then to the next.
    fn steps(&self, record: &Record) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(base) = &record.base {
            steps.push(Step { states: base.states.states(), run: None });
        } else {
            steps.push(Step { states: FileStates::new(), run: None });
        }
        for run in &record.runs {
            steps.push(Step { states: run.start.states(), run: Some(run.run_id.clone()) });
            if let Some(end) = &run.end {
                steps.push(Step { states: end.states(), run: None });
            }
        }
        steps.push(Step { states: self.now.clone(), run: None });
        steps
    }
}

struct Step {
    states: FileStates,
    run: Option<RunId>,
}

/// Files that went and came with the same content are one that was renamed.
fn renamed(found: Vec<Change>) -> Vec<Change> {
    let mut gone: HashMap<String, usize> = HashMap::new();
    for (at, change) in found.iter().enumerate() {
        if let (Some(old), None) = (&change.old, &change.new)
            && old.blob().is_some()
        {
            gone.entry(old.id.clone()).or_insert(at);
        }
    }
    let mut taken = BTreeSet::new();
    let mut out = found.clone();
    for change in &mut out {
        if let (None, Some(new)) = (&change.old, &change.new)
            && new.size > 0
            && let Some(at) = gone.remove(&new.id)
        {
            change.from = Some(found[at].path.clone());
            change.old.clone_from(&found[at].old);
            taken.insert(at);
        }
    }
    out.into_iter().enumerate().filter(|(at, _)| !taken.contains(at)).map(|(_, change)| change).collect()
}

/// Where the contents of files are read.
pub(super) struct Contents {
    pub(super) folder: Beneath,
    repository: Option<Box<Repository>>,
    pub(super) copies: Option<RecordFolder>,
}

/// The two texts of a file; `returns`: the file on the disk has CRLF where the text has not.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) returns: bool,
}

/// Why there are no texts.
pub(super) type NotCompared = (ChangeCompared, String);

impl Contents {
    pub(super) fn of(root: &Path, copies: Option<RecordFolder>) -> Result<Self, ChangesError> {
        let folder = Beneath::open(root).map_err(|error| ChangesError::Disk(error.to_string()))?;
        let repository = match find(root) {
            FoundRepository::Here(repository) => Some(repository),
            FoundRepository::None | FoundRepository::Refused(_) => None,
        };
        Ok(Self { folder, repository, copies })
    }

    /// The content that a file had or has.
    pub(super) fn content(&self, path: &[u8], state: &FileState) -> Result<Vec<u8>, NotCompared> {
        let large = || (ChangeCompared::Large, format!("it has more than {} MiB", LARGE >> 20));
        if state.is_large() {
            return Err(large());
        }
        let unreadable = || (ChangeCompared::Unreadable, "it cannot be read".to_owned());
        let id = state.blob().ok_or_else(unreadable)?;
        if state.mode != LINK
            && let Ok(content) = self.folder.read(path, LARGE)
        {
            if ObjectId::of_blob(&content) == id {
                return Ok(content);
            }
            if let Some(plain) = without_returns(&content).filter(|plain| ObjectId::of_blob(plain) == id) {
                return Ok(plain);
            }
        }
        match self.repository.as_ref().map(|repository| repository.objects.read(id, LARGE)) {
            Some(Ok((_, content))) => return Ok(content),
            Some(Err(ObjectError::TooLarge(_))) => return Err(large()),
            _ => {}
        }
        let kept = self.copies.as_ref().and_then(|copies| copies.copied(id));
        kept.ok_or_else(|| {
            (ChangeCompared::Unreadable, "how it was is not kept: the file was too large, or kept elsewhere".to_owned())
        })
    }

    /// What a change began with.
    pub(super) fn before(&self, change: &Change, old: &FileState) -> Result<Vec<u8>, NotCompared> {
        match change.told.as_ref().and_then(|told| told.old.as_ref()) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.content(change.from.as_ref().unwrap_or(&change.path), old),
        }
    }

    /// Both texts of a change. `Ok(None)`: they differ in line ends alone, which is no change.
    pub(super) fn texts(&self, change: &Change, attributes: &mut Attributes<'_>) -> Result<Option<Texts>, NotCompared> {
        if let Some(told) = &change.told {
            let text = |side: &Option<String>| side.clone().unwrap_or_default();
            let (old, new) = (text(&told.old), text(&told.new));
            if is_binary(old.as_bytes()) || is_binary(new.as_bytes()) {
                return Err((ChangeCompared::Binary, "it is binary".into()));
            }
            return Ok(Some(Texts { old, new, returns: told.returns }));
        }
        let sides = [(&change.from, &change.old), (&None, &change.new)];
        if sides.iter().any(|(_, state)| state.as_ref().is_some_and(|state| state.mode == LINK)) {
            return Err((ChangeCompared::Link, "it is a symbolic link, which is not followed".into()));
        }
        let filtered =
            || (ChangeCompared::Filtered, "git stores it in another form (a filter, an encoding, or LFS)".to_owned());
        if attributes.is_filtered(&change.path) {
            return Err(filtered());
        }
        let mut texts = [String::new(), String::new()];
        for (into, (from, state)) in texts.iter_mut().zip(sides) {
            let Some(state) = state else { continue };
            let content = self.content(from.as_ref().unwrap_or(&change.path), state)?;
            if content.starts_with(b"version https://git-lfs.github.com/spec/") {
                return Err(filtered());
            }
            if is_binary(&content) {
                return Err((ChangeCompared::Binary, "it is binary".into()));
            }
            *into = String::from_utf8(content).map_err(|_| (ChangeCompared::Binary, "it is not UTF-8".to_owned()))?;
        }
        let [old, mut new] = texts;
        let mut returns = false;
        if change.old.is_some() && change.new.is_some() && old != new && !old.contains("\r\n") && new.contains("\r\n") {
            new = new.replace("\r\n", "\n");
            returns = true;
        } else if change.old.is_some()
            && change.new.is_some()
            && old.contains("\r\n")
            && !new.contains("\r\n")
            && old.replace("\r\n", "\n") == new
        {
            new.clone_from(&old);
        }
        let modes = change.old.as_ref().map(|state| state.mode) == change.new.as_ref().map(|state| state.mode);
        let same = change.from.is_none() && modes && old == new && change.old.is_some() && change.new.is_some();
        Ok((!same).then_some(Texts { old, new, returns }))
    }
}
