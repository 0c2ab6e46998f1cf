//! Git worktrees that the gateway makes for new sessions: beside the repository, in `REPOSITORY.worktrees/BRANCH`.
//!
//! The gateway remembers those that it made, and removes no others. A worktree is written down before it is made, so one that a
//! crash left is listed, too. Whatever is made half is undone. Nothing that the repository configures is executed; see [`git`].

mod git;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use self::git::{CHECKOUT, LOOK, SafeGit, changed_file, is_base, is_branch_name};
use super::display::label;
use plexus_protocol::Timestamp;

/// The file in the state folder that names the worktrees.
const FILE: &str = "worktrees.json";
/// Most worktrees; one more is refused.
const WORKTREES_MAX: usize = 200;
/// Longest name of a branch, in bytes; a longer one is refused.
const BRANCH_MAX: usize = 200;
/// Most files and commits that are named of what would be lost; the numbers count all.
const NAMED_MAX: usize = 20;
/// Longest name of a file or commit that is shown, in bytes; the rest is left out.
const NAME_MAX: usize = 200;
/// Worktrees that are looked at at a time.
const LOOKS: usize = 4;

/// A worktree to make for a session.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorktree {
    /// The branch to make.
    #[schema(min_length = 1, max_length = 200)]
    pub branch: String,
    /// Where the branch begins: a branch, tag or commit; what is checked out in the session's folder if absent.
    #[schema(min_length = 1, max_length = 200)]
    pub base: Option<String>,
}

/// A worktree that the gateway made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownWorktree {
    path: PathBuf,
    /// The repository's main folder.
    root: PathBuf,
    branch: String,
    made_at: Timestamp,
}

/// A worktree, as it is now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WorktreeView {
    /// Its folder.
    pub path: String,
    /// The repository's main folder.
    pub root: String,
    /// The branch that was made with it.
    pub branch: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// Whether its folder is gone.
    pub missing: bool,
    /// What would be lost with it: changed files, and commits that are on no other branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<WorktreeLosses>,
    /// Why its state cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What is in a worktree only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorktreeLosses {
    /// Changed and new files that are not committed; ignored files are not counted.
    pub changed: usize,
    /// The names of the first of them, at most 20.
    pub files: Vec<String>,
    /// Commits of the branch that are on no other branch, remote or tag. They are lost only with the branch.
    pub ahead: usize,
    /// The first lines of the newest of them, at most 20.
    pub commits: Vec<String>,
    /// Names this state. A removal that gives it as `lost` loses exactly this.
    pub digest: String,
}

/// Why a worktree was not made, listed or removed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The folder is in no repository.
    #[error("{0} is in no git repository: choose a folder of one, or start without a worktree")]
    NoRepository(String),
    /// The name cannot be a branch.
    #[error(
        "{0:?} cannot be the name of a branch: use letters, digits, `-`, `_`, `.` and `/`, at most {BRANCH_MAX} bytes"
    )]
    BadBranch(String),
    /// There is no such base.
    #[error(
        "there is no commit {0:?} in this repository: give a branch, a tag or a commit that it has, or make a first commit"
    )]
    BadBase(String),
    /// The branch is there already.
    #[error("there is a branch {0} already: choose another name, or delete it with `git branch -d`")]
    BranchExists(String),
    /// The folder is there already.
    #[error("{0} exists already: choose another name, or move it away")]
    FolderExists(String),
    /// Too many worktrees.
    #[error("there are {WORKTREES_MAX} worktrees already: remove some (`plexus worktrees`)")]
    TooMany,
    /// The gateway made no such worktree.
    #[error(
        "Plexus made no worktree {0}: `plexus worktrees` lists those that it made; `git worktree remove` removes others"
    )]
    Unknown(String),
    /// Sessions work in it.
    #[error("{} in this worktree: archive or delete {} first", worked(.0), if .0.len() == 1 { "it" } else { "them" })]
    InUse(Vec<String>),
    /// Something would be lost with it.
    #[error("{}", lost_words(.0))]
    Unsaved(Box<WorktreeLosses>),
    /// Git is not there.
    #[error("git cannot be run: {0}; install git, and start the gateway with it on its PATH")]
    NoGit(String),
    /// Git did not end in time; the number is seconds.
    #[error("git did not end within {0} seconds, and was stopped: the repository may be very large, or its disk hangs")]
    Slow(u64),
    /// Git failed.
    #[error("{doing}: git says: {words}")]
    Git {
        /// What was being done.
        doing: &'static str,
        /// Git's own words.
        words: String,
    },
    /// The disk failed.
    #[error("{doing}: {words}")]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// The system's words.
        words: String,
    },
}

fn worked(sessions: &[String]) -> String {
    let verb = if sessions.len() == 1 { "works" } else { "work" };
    format!("{} {verb}", sessions.join(", "))
}

fn lost_words(lost: &WorktreeLosses) -> String {
    let many = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if lost.changed > 0 {
        parts.push(format!("{} not committed", many(lost.changed, "changed file")));
    }
    if lost.ahead > 0 {
        parts.push(format!("{} on no other branch", many(lost.ahead, "commit")));
    }
    let parts = parts.join(", and ");
    format!("this would lose {parts}: commit or merge first, or remove it with what was shown as `lost`")
}

fn disk(doing: &'static str) -> impl Fn(std::io::Error) -> WorktreeError {
    move |error| WorktreeError::Disk { doing, words: error.to_string() }
}

/// The worktrees that the gateway made. Cheap to clone.
#[derive(Clone)]
pub struct Worktrees {
    shared: Arc<WorktreeTable>,
}

struct WorktreeTable {
    file: PathBuf,
    /// Held while worktrees are made and removed, one at a time.
    turn: Mutex<()>,
}

/// A worktree that was just made: removed with this value, unless it is kept.
pub struct MadeWorktree {
    worktrees: Worktrees,
    known: KnownWorktree,
    /// The commit that its branch begins at; removed again only while it is still there.
    begins: String,
    cwd: PathBuf,
    kept: bool,
}

impl MadeWorktree {
    /// The folder in it for a session: what the session's own folder is in the repository.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Keeps it.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for MadeWorktree {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Ok(tokio) = tokio::runtime::Handle::try_current() {
            let (worktrees, known, begins) = (self.worktrees.clone(), self.known.clone(), self.begins.clone());
            // Spawned, so that it goes on if the client has left.
            tokio.spawn(async move {
                let _turn = worktrees.shared.turn.lock().await;
                worktrees.undo(&known, &begins).await;
            });
        }
    }
}

/// A repository and the place of a folder in it.
struct Repository {
    root: PathBuf,
    /// The folder below the top of the working tree.
    below: PathBuf,
}

impl Worktrees {
    /// The worktrees that are written down in the state folder.
    pub fn new(home: &Path) -> Self {
        Self { shared: Arc::new(WorktreeTable { file: home.join(FILE), turn: Mutex::default() }) }
    }

    /// Makes a branch and a worktree of it for a session in `folder`.
    ///
    /// # Errors
    /// Every [`WorktreeError`] but those of removal; then nothing was made.
    pub async fn make(&self, folder: &Path, wanted: &NewWorktree) -> Result<MadeWorktree, WorktreeError> {
        let (this, folder, wanted) = (self.clone(), folder.to_owned(), wanted.clone());
        // Spawned, so that it is undone also if the client leaves in the middle.
        let work = tokio::spawn(async move { this.make_now(&folder, &wanted).await });
        work.await
            .unwrap_or_else(|error| Err(WorktreeError::Disk { doing: "making a worktree", words: error.to_string() }))
    }

    async fn make_now(&self, folder: &Path, wanted: &NewWorktree) -> Result<MadeWorktree, WorktreeError> {
        let branch = wanted.branch.as_str();
        if !is_branch_name(branch) {
            return Err(WorktreeError::BadBranch(label(branch, NAME_MAX)));
        }
        let _turn = self.shared.turn.lock().await;
        let git = SafeGit::within(folder).await.map_err(|error| match error {
            WorktreeError::Git { .. } if !folder.is_dir() => WorktreeError::NoRepository(folder.display().to_string()),
            error => error,
        })?;
        let repository = repository(&git, folder).await?;
        let base = wanted.base.as_deref().unwrap_or("HEAD");
        let bad_base = || WorktreeError::BadBase(label(base, NAME_MAX));
        if !is_base(base) {
            return Err(bad_base());
        }
        let commit = format!("{base}^{{commit}}");
        let found = git.run(LOOK, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await?;
        let begins = found.line();
        if !found.success || begins.is_empty() || !begins.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad_base());
        }
        let reference = format!("refs/heads/{branch}");
        if git.run(LOOK, &["show-ref", "--verify", "--quiet", &reference]).await?.success {
            return Err(WorktreeError::BranchExists(label(branch, NAME_MAX)));
        }
        let path = place(&repository.root, branch)?;
        let made_at = std::time::SystemTime::now().into();
        let known = KnownWorktree { path, root: repository.root, branch: branch.to_owned(), made_at };
        let mut all = self.read()?;
        if all.len() >= WORKTREES_MAX {
            return Err(WorktreeError::TooMany);
        }
        all.push(known.clone());
        self.write(&all)?;
        match checked_out(&git, &known, &begins).await {
            Ok(()) => {
                let cwd = folder_in(&known.path, &repository.below);
                Ok(MadeWorktree { worktrees: self.clone(), known, begins, cwd, kept: false })
            }
            Err(error) => {
                self.undo(&known, &begins).await;
                Err(error)
            }
        }
    }

    /// Removes what was made of a worktree just now; nothing was in its place before.
    async fn undo(&self, known: &KnownWorktree, begins: &str) {
        let undone = async {
            take_down(known).await?;
            let git = SafeGit::within(&known.root).await?;
            // Only if nothing was committed to it meanwhile. It may not have come to a branch.
            let reference = format!("refs/heads/{}", known.branch);
            git.run(LOOK, &["update-ref", "-d", &reference, begins]).await?;
            self.forget(&known.path)
        };
        if let Err(error) = undone.await {
            tracing::warn!(%error, path = %known.path.display(), "a worktree that was made in vain is left; `plexus worktrees` lists it");
        }
    }

    /// The worktrees, newest first, each with its state.
    ///
    /// # Errors
    /// [`WorktreeError::Disk`].
    pub async fn list(&self) -> Result<Vec<WorktreeView>, WorktreeError> {
        let mut all = self.read()?;
        all.sort_by_key(|known| std::cmp::Reverse(known.made_at));
        let views = futures_util::stream::iter(all).map(|known| async move { view(&known).await });
        Ok(views.buffered(LOOKS).collect().await)
    }

    /// Removes a worktree, and its branch if `with_branch`. What would be lost must have been shown: `lost` is its digest.
    ///
    /// # Errors
    /// [`WorktreeError::Unknown`], [`WorktreeError::Unsaved`], and those of git and the disk.
    pub async fn remove(&self, path: &Path, with_branch: bool, lost: Option<&str>) -> Result<(), WorktreeError> {
        let _turn = self.shared.turn.lock().await;
        let unknown = || WorktreeError::Unknown(label(&path.to_string_lossy(), NAME_MAX));
        let known = self.read()?.into_iter().find(|known| known.path == path).ok_or_else(unknown)?;
        let state = if is_there(&known.path) { Some(state_of(&known).await?) } else { None };
        if let Some((losses, detached)) = &state {
            // With its branch kept, commits are not lost.
            let ahead = if with_branch || *detached { losses.ahead } else { 0 };
            let at_risk = losses.changed > 0 || ahead > 0;
            if at_risk && lost != Some(losses.digest.as_str()) {
                let commits = if ahead > 0 { losses.commits.clone() } else { Vec::new() };
                return Err(WorktreeError::Unsaved(Box::new(WorktreeLosses { ahead, commits, ..losses.clone() })));
            }
        }
        take_down(&known).await?;
        if with_branch && is_there(&known.root) {
            let git = SafeGit::within(&known.root).await?;
            let reference = format!("refs/heads/{}", known.branch);
            let there = git.run(LOOK, &["show-ref", "--verify", "--hash", &reference]).await?;
            // A folder that was missing could not be shown: what is on its branch only is kept.
            if there.success && state.is_some() {
                git.run(LOOK, &["update-ref", "-d", &reference, &there.line()])
                    .await?
                    .checked("deleting the branch")?;
            }
        }
        self.forget(&known.path)
    }

    fn read(&self) -> Result<Vec<KnownWorktree>, WorktreeError> {
        let doing = "reading which worktrees there are";
        match std::fs::read(&self.shared.file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| WorktreeError::Disk {
                doing,
                words: format!("{}: {error}", self.shared.file.display()),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(disk(doing)(error)),
        }
    }

    fn write(&self, all: &[KnownWorktree]) -> Result<(), WorktreeError> {
        let write = || -> std::io::Result<()> {
            let whole = self.shared.file.with_extension("json.new");
            let mut file = std::fs::File::create(&whole)?;
            file.write_all(&serde_json::to_vec_pretty(all)?)?;
            file.sync_all()?;
            std::fs::rename(&whole, &self.shared.file)
        };
        write().map_err(disk("writing down which worktrees there are"))
    }

    fn forget(&self, path: &Path) -> Result<(), WorktreeError> {
        let mut all = self.read()?;
        all.retain(|known| known.path != path);
        self.write(&all)
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// The repository that a folder is in.
async fn repository(git: &SafeGit, folder: &Path) -> Result<Repository, WorktreeError> {
    let none = || WorktreeError::NoRepository(folder.display().to_string());
    let common = git.run(LOOK, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
    if !common.success {
        let words = common.words();
        // Git also refuses a repository of another user: then its own words say what to do.
        return Err(if words.contains("not a git repository") {
            none()
        } else {
            WorktreeError::Git { doing: "looking for the repository", words }
        });
    }
    let common = common.path().canonicalize().map_err(disk("looking for the repository"))?;
    let hidden = common.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let root = if hidden { common.parent().ok_or_else(none)?.to_owned() } else { common };
    let prefix = git.run(LOOK, &["rev-parse", "--show-prefix"]).await?;
    let below = if prefix.success { prefix.path() } else { PathBuf::new() };
    Ok(Repository { root, below })
}

/// Where the worktree of a branch is made: nothing is there, and no link leads elsewhere.
fn place(root: &Path, branch: &str) -> Result<PathBuf, WorktreeError> {
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push(".worktrees");
    let all = root.with_file_name(name);
    let path = all.join(branch);
    let taken = |place: &Path| WorktreeError::FolderExists(place.display().to_string());
    if path.symlink_metadata().is_ok() {
        return Err(taken(&path));
    }
    let above = path.ancestors().skip(1).take_while(|place| place.starts_with(&all));
    for place in above {
        // A link would lead elsewhere, and a worktree may not lie in another.
        let usable = place.symlink_metadata().map_or(true, |found| found.is_dir() && !place.join(".git").exists());
        if !usable {
            return Err(taken(place));
        }
    }
    Ok(path)
}

/// Makes the branch and the worktree, without its files first: its settings are read where it is.
async fn checked_out(git: &SafeGit, known: &KnownWorktree, begins: &str) -> Result<(), WorktreeError> {
    if let Some(above) = known.path.parent() {
        std::fs::create_dir_all(above).map_err(disk("making the folder of the worktree"))?;
    }
    let options = ["worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", &known.branch, "--"];
    let mut add: Vec<&std::ffi::OsStr> = options.iter().map(|word| (*word).as_ref()).collect();
    add.extend([known.path.as_os_str(), begins.as_ref()]);
    git.run(LOOK, &add).await?.checked("making the worktree")?;
    let inside = SafeGit::within(&known.path).await?;
    let top = inside.run(LOOK, &["rev-parse", "--show-toplevel"]).await?.checked("looking at the worktree")?.path();
    if top.canonicalize().ok() != known.path.canonicalize().ok() {
        let words = format!("its settings lead to {}", top.display());
        return Err(WorktreeError::Git { doing: "looking at the worktree", words });
    }
    let fill = ["reset", "--hard", "--quiet", "--no-recurse-submodules"];
    inside.run(CHECKOUT, &fill).await?.checked("checking out the files")?;
    Ok(())
}

/// The session's folder in the worktree, if it has it.
fn folder_in(path: &Path, below: &Path) -> PathBuf {
    let inside = path.join(below);
    let real = |place: &Path| place.canonicalize().ok();
    match (real(path), real(&inside)) {
        (Some(top), Some(folder)) if folder.starts_with(&top) && folder.is_dir() => {
            // Without the slash at its end.
            inside.components().collect()
        }
        _ => path.to_owned(),
    }
}

/// Removes the folder and git's own notes of it, and the empty folders above it.
async fn take_down(known: &KnownWorktree) -> Result<(), WorktreeError> {
    let repository = if is_there(&known.root) { SafeGit::within(&known.root).await.ok() } else { None };
    if let Some(git) = &repository {
        // Twice: also if it is locked.
        let remove = ["worktree", "remove", "--force", "--force", "--"].map(std::ffi::OsStr::new);
        let remove: Vec<&std::ffi::OsStr> = remove.into_iter().chain([known.path.as_os_str()]).collect();
        // It may not have come to a worktree; then the folder is removed below.
        git.run(CHECKOUT, &remove).await?;
    }
    let path = known.path.clone();
    let rest = tokio::task::spawn_blocking(move || match path.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
        _ => Ok(()),
    });
    rest.await
        .map_err(|error| std::io::Error::other(error.to_string()))
        .flatten()
        .map_err(disk("removing the worktree"))?;
    if let Some(git) = &repository {
        git.run(LOOK, &["worktree", "prune"]).await?;
    }
    let mut all = known.root.file_name().unwrap_or_default().to_owned();
    all.push(".worktrees");
    let all = known.root.with_file_name(all);
    for above in known.path.ancestors().skip(1).take_while(|place| place.starts_with(&all)) {
        // One that is not empty stays.
        if std::fs::remove_dir(above).is_err() {
            break;
        }
    }
    Ok(())
}

async fn view(known: &KnownWorktree) -> WorktreeView {
    let missing = !is_there(&known.path);
    let state = if missing { None } else { Some(state_of(known).await) };
    let (unsaved, problem) = match state {
        None => (None, None),
        Some(Ok((losses, _))) => (Some(losses), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    WorktreeView {
        path: known.path.to_string_lossy().into_owned(),
        root: known.root.to_string_lossy().into_owned(),
        branch: known.branch.clone(),
        made_at: known.made_at,
        missing,
        unsaved,
        problem,
    }
}

/// What is in a worktree only, and whether no branch is checked out.
async fn state_of(known: &KnownWorktree) -> Result<(WorktreeLosses, bool), WorktreeError> {
    let doing = "looking at the worktree";
    let git = SafeGit::within(&known.path).await?;
    // Of submodules, only the commit is looked at: git would read their own settings.
    let status =
        ["status", "--porcelain=v2", "--null", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let status = git.run(LOOK, &status).await?.checked(doing)?;
    let changed: Vec<&[u8]> = status.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty()).collect();
    let mut files: Vec<String> = changed
        .iter()
        .filter_map(|line| changed_file(line))
        .take(NAMED_MAX)
        .map(|file| label(&file, NAME_MAX))
        .collect();
    let mut count = changed.len();
    let private = git.run(LOOK, &["rev-parse", "--path-format=absolute", "--git-dir"]).await?.checked(doing)?.path();
    if private.join("modules").exists() {
        count += 1;
        files.insert(0, "submodules, whose changes are not looked at".into());
    }
    let head = git.run(LOOK, &["rev-parse", "--verify", "--quiet", "HEAD"]).await?.line();
    let detached = !git.run(LOOK, &["symbolic-ref", "--quiet", "HEAD"]).await?.success;
    let own = format!("refs/heads/{}", known.branch);
    let own_is_there = git.run(LOOK, &["show-ref", "--verify", "--quiet", &own]).await?.success;
    let except = format!("--exclude={}", known.branch);
    // What is on the worktree's own branch counts also while another one is checked out.
    let only =
        ["HEAD", if own_is_there { &own } else { "HEAD" }, "--not", &except, "--branches", "--remotes", "--tags"];
    let counted = git.run(LOOK, &[&["rev-list", "--count"], only.as_slice()].concat()).await?.checked(doing)?;
    let ahead = counted.line().parse().unwrap_or(0);
    let most = format!("--max-count={NAMED_MAX}");
    let named = ["rev-list", "--no-commit-header", "--format=%s", &most];
    let commits = git.run(LOOK, &[named.as_slice(), only.as_slice()].concat()).await?.checked(doing)?;
    let commits = String::from_utf8_lossy(&commits.stdout).lines().map(|line| label(line, NAME_MAX)).collect();
    let mut digest = Sha256::new();
    digest.update(&status.stdout);
    digest.update(head.as_bytes());
    digest.update(counted.stdout.as_slice());
    let digest = data_encoding::HEXLOWER.encode(&digest.finalize()[..16]);
    Ok((WorktreeLosses { changed: count, files, ahead, commits, digest }, detached))
}
