//! Git worktrees for sessions: beside the repository, in `REPOSITORY.worktrees/BRANCH`.
//!
//! A worktree is recorded before it is made, and marked as kept when a session begins in it. One that was not kept is
//! removed by [`FolderWorktrees::recover`] at the next start. Git runs on the repository of the user here, with all
//! settings that run programs overridden; see [`safe_git`].

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{Result, WorkspaceError, disk};
use crate::git::{Git, GitOutput, Limits};
use crate::names::digest_of;
use crate::project::read_regular;
use crate::store::{FolderStores, replace};

/// The file in the state folder that names the worktrees.
const FILE: &str = "folder-worktrees.json";
/// Maximum number of worktrees; one more is [`WorktreeProblem::TooMany`].
const WORKTREES_MAX: usize = 200;
/// Maximum length of the name of a branch or a base, in bytes; a longer one is refused.
const BRANCH_MAX: usize = 200;
/// Maximum number of files and commits that are named in a risk; the numbers count all.
const NAMED_MAX: usize = 20;
/// Maximum number of filters and hooks with names that are turned off; a repository with more is refused.
const SETTINGS_MAX: usize = 500;
/// Limits of a command that only reads.
const GIT_LIMITS: Limits = Limits { seconds: 20, output: 4 << 20 };
/// Limits of a checkout; a worktree that takes longer is removed again.
const CHECKOUT: Limits = Limits { seconds: 110, output: 4 << 20 };

/// Settings that override those of the repository.
#[rustfmt::skip]
const OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("core.askPass", ""), ("core.pager", "cat"),
    ("core.sshCommand", "false"), ("core.gitProxy", ""), ("core.alternateRefsCommand", ""), ("core.editor", "false"),
    ("credential.helper", ""), ("diff.external", ""), ("gc.auto", "0"), ("maintenance.auto", "false"),
    ("log.showSignature", "false"), ("submodule.recurse", "false"), ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"), ("worktree.guessRemote", "false"), ("checkout.workers", "1"),
    // The address space of a child is limited.
    ("core.packedGitWindowSize", "16m"), ("core.packedGitLimit", "128m"), ("core.deltaBaseCacheLimit", "16m"),
    ("core.preloadIndex", "false"), ("index.threads", "1"), ("pack.threads", "1"),
];

/// Variables that turn off features that settings cannot. A partial clone would fetch with programs that its settings name.
#[rustfmt::skip]
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ASKPASS", "false"), ("SSH_ASKPASS", "false"), ("GIT_SSH_COMMAND", "false"), ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"), ("GIT_LFS_SKIP_SMUDGE", "1"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// The reason why a worktree was not made, listed or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeProblem {
    /// The folder is not in a repository.
    #[error("{0} is in no git repository: choose a folder of one, or start without a worktree")]
    NoRepository(PathBuf),
    /// The name cannot be a branch.
    #[error(
        "this cannot be the name of a branch: use letters, digits, `-`, `_`, `.` and `/`, at most {BRANCH_MAX} bytes"
    )]
    BadBranch,
    /// The base is not a commit of the repository.
    #[error(
        "there is no such commit in this repository: give a branch, a tag or a commit that it has, or make a first commit"
    )]
    BadBase,
    /// The branch exists already.
    #[error("there is a branch of this name already: choose another name, or delete it with `git branch -d`")]
    BranchExists,
    /// The folder exists already, or cannot be used.
    #[error("{0} exists already: choose another name, or move it away")]
    FolderExists(PathBuf),
    /// There are too many worktrees.
    #[error("there are {WORKTREES_MAX} worktrees already: remove some")]
    TooMany,
    /// The worktree was not made here.
    #[error("no such worktree was made here: `git worktree remove` removes others")]
    Unknown,
    /// The removal would lose content that was not shown.
    #[error(
        "this would lose changed files or commits that are not saved elsewhere: commit or merge first, or confirm what was shown"
    )]
    Unsaved(Box<WorktreeRisk>),
    /// An error of git, the disk or a limit.
    #[error(transparent)]
    Folder(#[from] WorkspaceError),
}

/// A worktree that was made here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeEntry {
    /// The folder.
    pub path: PathBuf,
    /// The main folder of the repository.
    pub root: PathBuf,
    /// The branch that was made with it.
    pub branch: String,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The commit at which the branch began.
    begins: String,
    /// `true` if a session began in it.
    kept: bool,
}

/// A worktree that was just made, and the folder in it that corresponds to the session's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeReady {
    /// The worktree.
    pub entry: WorktreeEntry,
    /// The folder for the session.
    pub cwd: PathBuf,
}

/// The content that exists only in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeRisk {
    /// The number of changed and new files that are not committed; ignored files are not counted.
    pub changed: usize,
    /// The first of them, at most 20.
    pub files: Vec<String>,
    /// The number of commits that are on no other branch, remote or tag. They are lost only with the branch.
    pub ahead: usize,
    /// The first lines of the newest of them, at most 20.
    pub commits: Vec<String>,
    /// `true` if no branch is checked out, so that commits are lost even if the branch stays.
    pub detached: bool,
    /// A digest of the content, which changes whenever a file or a commit changes.
    pub consent: String,
}

/// The recorded worktrees of a state folder. Calls block, one at a time.
#[derive(Debug)]
pub struct FolderWorktrees {
    file: PathBuf,
    stores: Arc<FolderStores>,
    turn: Mutex<()>,
}

type Outcome<T> = std::result::Result<T, WorktreeProblem>;

impl FolderWorktrees {
    /// Makes the worktrees of a state folder. `stores` name the content of worktrees.
    pub fn new(state_folder: &Path, stores: Arc<FolderStores>) -> Self {
        Self { file: state_folder.join(FILE), stores, turn: Mutex::default() }
    }

    /// Removes the worktrees that were made and not kept, as a crash leaves them, and keeps those that are in use.
    /// Returns those that could not be removed.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Disk`] if the file of worktrees cannot be read or written.
    pub fn recover(&self, in_use: &dyn Fn(&Path) -> bool) -> Result<Vec<WorktreeEntry>> {
        let _turn = self.turn.lock();
        let mut all = self.read()?;
        all.iter_mut().filter(|entry| !entry.kept).for_each(|entry| entry.kept = in_use(&entry.path));
        let half: Vec<WorktreeEntry> = all.iter().filter(|entry| !entry.kept).cloned().collect();
        self.write(&all)?;
        Ok(half.into_iter().filter(|entry| self.undo_worktree(entry).is_err()).collect())
    }

    /// Makes a branch and a worktree of it for a session in `folder`. It stays only if [`FolderWorktrees::keep`] is called.
    ///
    /// # Errors
    /// Returns every [`WorktreeProblem`] except those of removal; then nothing was made.
    pub fn make(&self, folder: &Path, branch: &str, base: Option<&str>, at: i64) -> Outcome<WorktreeReady> {
        let base = base.unwrap_or("HEAD");
        let is_base =
            !base.is_empty() && base.len() <= BRANCH_MAX && !base.starts_with('-') && !base.contains(char::is_control);
        if !is_branch_name(branch) {
            return Err(WorktreeProblem::BadBranch);
        }
        let _turn = self.turn.lock();
        let git = safe_git(folder)?;
        let (root, below) = repository(&git, folder)?;
        let commit = format!("{base}^{{commit}}");
        let found = git.run(GIT_LIMITS, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit], None)?;
        let begins = found.line();
        if !is_base || !found.success || begins.is_empty() || !begins.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WorktreeProblem::BadBase);
        }
        let reference = format!("refs/heads/{branch}");
        if git.run(GIT_LIMITS, &["show-ref", "--verify", "--quiet", &reference], None)?.success {
            return Err(WorktreeProblem::BranchExists);
        }
        let path = free_path(&root, branch)?;
        let entry = WorktreeEntry { path, root, branch: branch.to_owned(), at, begins, kept: false };
        let mut all = self.read()?;
        if all.len() >= WORKTREES_MAX {
            return Err(WorktreeProblem::TooMany);
        }
        all.push(entry.clone());
        self.write(&all)?;
        if let Err(error) = check_out(&git, &entry) {
            // A worktree that stays now is removed at the next start.
            let _ = self.undo_worktree(&entry);
            return Err(error.into());
        }
        let cwd = folder_in(&entry.path, &below);
        Ok(WorktreeReady { entry, cwd })
    }

    /// Keeps a worktree, because a session began in it.
    ///
    /// # Errors
    /// Returns [`WorktreeProblem::Unknown`], [`WorkspaceError::Disk`].
    pub fn keep(&self, path: &Path) -> Outcome<()> {
        let _turn = self.turn.lock();
        let mut all = self.read()?;
        let entry = all.iter_mut().find(|entry| entry.path == path).ok_or(WorktreeProblem::Unknown)?;
        entry.kept = true;
        Ok(self.write(&all)?)
    }

    /// Removes a worktree that is not needed after all, and its branch if it has no new commits.
    ///
    /// # Errors
    /// Returns [`WorktreeProblem::Unknown`], also for one that was kept, and errors of git and the disk.
    pub fn discard(&self, path: &Path) -> Outcome<()> {
        let _turn = self.turn.lock();
        let all = self.read()?;
        let entry = all.iter().find(|entry| entry.path == path && !entry.kept).ok_or(WorktreeProblem::Unknown)?;
        Ok(self.undo_worktree(entry)?)
    }

    /// Lists the worktrees, newest first, including those whose folder no longer exists.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Disk`].
    pub fn list(&self) -> Result<Vec<WorktreeEntry>> {
        let mut all = self.read()?;
        all.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        Ok(all)
    }

    /// Reads the content that would be lost with a worktree.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Disk`] if its folder no longer exists, and errors of git.
    pub fn risk(&self, entry: &WorktreeEntry) -> Result<WorktreeRisk> {
        let action = "looking at the worktree";
        let tree = self.stores.open(&entry.path)?.scan()?.tree;
        let git = safe_git(&entry.path)?;
        // Git would read the settings of submodules to look into them.
        let status = [
            "status",
            "--porcelain=v2",
            "--null",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ];
        let status = git.run(GIT_LIMITS, &status, None)?.checked(action)?.stdout;
        let changed: Vec<&[u8]> = status.split(|byte| *byte == 0).filter(|line| !line.is_empty()).collect();
        let mut files: Vec<String> = changed.iter().filter_map(|line| changed_file(line)).take(NAMED_MAX).collect();
        let mut count = changed.len();
        let private =
            git.run(GIT_LIMITS, &["rev-parse", "--path-format=absolute", "--git-dir"], None)?.checked(action)?;
        if path_of(&private).join("modules").exists() {
            count += 1;
            files.insert(0, "submodules, whose changes are not looked at".into());
        }
        let detached = !git.run(GIT_LIMITS, &["symbolic-ref", "--quiet", "HEAD"], None)?.success;
        let own = format!("refs/heads/{}", entry.branch);
        let own_exists = git.run(GIT_LIMITS, &["show-ref", "--verify", "--quiet", &own], None)?.success;
        let except = format!("--exclude={}", entry.branch);
        // Commits of the worktree's own branch count even while another one is checked out.
        let own = if own_exists { own.as_str() } else { "HEAD" };
        let only = ["HEAD", own, "--not", &except, "--branches", "--remotes", "--tags"];
        let head = git.run(GIT_LIMITS, &["rev-parse", "--verify", "--quiet", "HEAD"], None)?.line();
        let ahead = git.run(GIT_LIMITS, &[&["rev-list", "--count"], &only[..]].concat(), None)?.checked(action)?.line();
        let max = format!("--max-count={NAMED_MAX}");
        let named = ["rev-list", "--no-commit-header", "--format=%s", &max];
        let commits = git.run(GIT_LIMITS, &[&named[..], &only[..]].concat(), None)?.checked(action)?;
        let commits = String::from_utf8_lossy(&commits.stdout).lines().map(str::to_owned).collect();
        let own_head = git.run(GIT_LIMITS, &["rev-parse", "--verify", "--quiet", own], None)?.line();
        let consent = digest_of(format!("{tree}\n{head}\n{own_head}\n{ahead}\n{count}").as_bytes());
        Ok(WorktreeRisk { changed: count, files, ahead: ahead.parse().unwrap_or(0), commits, detached, consent })
    }

    /// Removes a worktree, and its branch if `with_branch`. `consent` is that of the [`WorktreeRisk`] that was shown.
    ///
    /// # Errors
    /// Returns [`WorktreeProblem::Unsaved`] if the content differs from the one of `consent`; then nothing is removed.
    /// Returns [`WorktreeProblem::Unknown`], and errors of git and the disk.
    pub fn remove(&self, path: &Path, with_branch: bool, consent: Option<&str>) -> Outcome<()> {
        let _turn = self.turn.lock();
        let entry = self.read()?.into_iter().find(|entry| entry.path == path).ok_or(WorktreeProblem::Unknown)?;
        let exists = is_folder(&entry.path);
        if exists {
            let risk = self.risk(&entry)?;
            let ahead = if with_branch || risk.detached { risk.ahead } else { 0 };
            if (risk.changed > 0 || ahead > 0) && consent != Some(risk.consent.as_str()) {
                return Err(WorktreeProblem::Unsaved(Box::new(risk)));
            }
        }
        self.remove_worktree(&entry)?;
        // The commits on the branch could not be shown if the folder no longer existed; they are kept.
        if with_branch && exists && is_folder(&entry.root) {
            let git = safe_git(&entry.root)?;
            let reference = format!("refs/heads/{}", entry.branch);
            let found = git.run(GIT_LIMITS, &["show-ref", "--verify", "--hash", &reference], None)?;
            if found.success {
                let delete = ["update-ref", "-d", &reference, &found.line()];
                git.run(GIT_LIMITS, &delete, None)?.checked("deleting the branch")?;
            }
        }
        Ok(self.forget(&entry.path)?)
    }

    /// Removes the parts of a worktree, and its branch if it has no new commits.
    fn undo_worktree(&self, entry: &WorktreeEntry) -> Result<()> {
        self.remove_worktree(entry)?;
        if is_folder(&entry.root) {
            let git = safe_git(&entry.root)?;
            let reference = format!("refs/heads/{}", entry.branch);
            // The branch may not have been made, or may have new commits.
            git.run(GIT_LIMITS, &["update-ref", "-d", &reference, &entry.begins], None)?;
        }
        self.forget(&entry.path)
    }

    /// Removes the folder, git's record of it, and the empty folders above it. A folder that is not a worktree of the repository stays.
    fn remove_worktree(&self, entry: &WorktreeEntry) -> Result<()> {
        let git = if is_folder(&entry.root) { safe_git(&entry.root).ok() } else { None };
        if is_worktree(entry) {
            self.stores.remove(&entry.path)?;
            if let Some(git) = &git {
                // The option, given twice, also removes a locked worktree. An incomplete one is removed below.
                let remove = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new);
                git.run(CHECKOUT, &[&remove[..], &[entry.path.as_os_str()]].concat(), None)?;
            }
            if is_folder(&entry.path) {
                fs::remove_dir_all(&entry.path).map_err(disk("removing the worktree"))?;
            }
        }
        if let Some(git) = &git {
            git.run(GIT_LIMITS, &["worktree", "prune"], None)?;
        }
        let all = worktrees_folder(&entry.root);
        for above in entry.path.ancestors().take_while(|folder| folder.starts_with(&all)) {
            // A folder that is not empty stays. The first may not exist any more.
            if fs::remove_dir(above).is_err() && above.exists() {
                break;
            }
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<WorktreeEntry>> {
        let failed = disk("reading the list of worktrees");
        match fs::read(&self.file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(std::io::Error::from(error))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(error)),
        }
    }

    fn write(&self, all: &[WorktreeEntry]) -> Result<()> {
        let failed = disk("writing the list of worktrees");
        let text = serde_json::to_vec_pretty(all).map_err(|error| failed(std::io::Error::from(error)))?;
        replace(&self.file, &text).map_err(failed)
    }

    fn forget(&self, path: &Path) -> Result<()> {
        let mut all = self.read()?;
        all.retain(|entry| entry.path != path);
        self.write(&all)
    }
}

/// Returns git for a folder of the user. The filters and hooks that its settings name are read first and turned off, in
/// the folder in which git then runs: settings may be included by the folder or the branch.
fn safe_git(folder: &Path) -> Result<Git> {
    let action = "reading the settings of the repository";
    let mut git = Git::within(folder)?.before(["--no-pager"]);
    for (name, value) in VARIABLES {
        git = git.variable(name, value);
    }
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            git = git.variable(name, value);
        }
    }
    let known = OVERRIDES.iter().map(|(key, value)| (OsString::from(key), *value));
    let known: Vec<(OsString, &str)> = known.collect();
    let configured = with_settings(git.clone(), &known);
    let listed = configured
        .run(GIT_LIMITS, &["config", "--list", "--name-only", "--null", "--includes"], None)?
        .checked(action)?;
    let error = || WorkspaceError::Git { action, text: "it has too many filters and hooks".into() };
    let named = switched_off(&listed.stdout).ok_or_else(error)?;
    Ok(with_settings(git, &[known, named].concat()))
}

fn with_settings(git: Git, settings: &[(OsString, &str)]) -> Git {
    let git = git.variable("GIT_CONFIG_COUNT", settings.len().to_string());
    settings.iter().enumerate().fold(git, |git, (nth, (key, value))| {
        git.variable(format!("GIT_CONFIG_KEY_{nth}"), key).variable(format!("GIT_CONFIG_VALUE_{nth}"), value)
    })
}

/// Makes the settings that turn off the filters and hooks that these settings (their names, each with a NUL) define;
/// `None` if there are too many.
fn switched_off(names: &[u8]) -> Option<Vec<(OsString, &'static str)>> {
    let mut found: BTreeSet<(bool, &[u8])> = BTreeSet::new();
    for name in names.split(|byte| *byte == 0) {
        // The section and the variable have no dots; the part between them may.
        let between = |section: &[u8]| {
            let rest = name.strip_prefix(section)?;
            Some(&rest[..rest.iter().rposition(|byte| *byte == b'.')?])
        };
        found.extend(between(b"filter.").map(|filter| (true, filter)));
        found.extend(between(b"hook.").map(|hook| (false, hook)));
        if found.len() > SETTINGS_MAX {
            return None;
        }
    }
    let mut all = Vec::new();
    for (is_filter, name) in found {
        let off: &[(&str, &'static str)] = if is_filter {
            &[("process", ""), ("smudge", ""), ("clean", ""), ("required", "false")]
        } else {
            &[("enabled", "false")]
        };
        let section: &[u8] = if is_filter { b"filter." } else { b"hook." };
        let key = |variable: &str| OsString::from_vec([section, name, b".", variable.as_bytes()].concat());
        all.extend(off.iter().map(|(variable, value)| (key(variable), *value)));
    }
    Some(all)
}

fn path_of(output: &GitOutput) -> PathBuf {
    OsString::from_vec(output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec()).into()
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Returns whether the folder of an entry is a worktree of its repository, even an incomplete one, or an empty folder.
fn is_worktree(entry: &WorktreeEntry) -> bool {
    let git = entry.path.join(".git");
    let pointed = read_regular(&git, 4096).and_then(|text| Some(text.strip_prefix(b"gitdir:")?.trim_ascii().to_vec()));
    let common = [entry.root.join(".git/worktrees"), entry.root.join("worktrees")];
    match pointed {
        Some(private) => {
            let private = Path::new(OsStr::from_bytes(&private));
            let above = private.parent().map(|above| above.canonicalize().unwrap_or_else(|_| above.to_owned()));
            common.iter().any(|common| Some(common.canonicalize().unwrap_or_else(|_| common.clone())) == above)
                || private.parent().is_some_and(|above| above.ends_with("worktrees") && above.starts_with(&entry.root))
        }
        None => fs::read_dir(&entry.path).is_ok_and(|mut found| found.next().is_none()),
    }
}

/// Finds the main folder of the repository that a folder is in, and the path of the folder below the top of its working tree.
fn repository(git: &Git, folder: &Path) -> Outcome<(PathBuf, PathBuf)> {
    let action = "looking for the repository";
    let none = || WorktreeProblem::NoRepository(folder.to_owned());
    let common = git.run(GIT_LIMITS, &["rev-parse", "--path-format=absolute", "--git-common-dir"], None)?;
    if !common.success {
        let text = common.error_text();
        // Git also refuses a repository of another user, and its message has the fix.
        let outside = text.contains("not a git repository");
        return Err(if outside { none() } else { WorkspaceError::Git { action, text }.into() });
    }
    let common = path_of(&common).canonicalize().map_err(disk(action))?;
    let hidden = common.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
    let root = if hidden { common.parent().ok_or_else(none)?.to_owned() } else { common };
    let prefix = git.run(GIT_LIMITS, &["rev-parse", "--show-prefix"], None)?;
    Ok((root, if prefix.success { path_of(&prefix) } else { PathBuf::new() }))
}

/// Returns the folder of all worktrees of a repository.
fn worktrees_folder(root: &Path) -> PathBuf {
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push(".worktrees");
    root.with_file_name(name)
}

/// Returns the folder for the worktree of a branch: it does not exist yet, and no link leads elsewhere.
fn free_path(root: &Path, branch: &str) -> Outcome<PathBuf> {
    let all = worktrees_folder(root);
    let path = all.join(branch);
    if path.symlink_metadata().is_ok() {
        return Err(WorktreeProblem::FolderExists(path));
    }
    for above in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&all)) {
        // A link would lead elsewhere, and a worktree must not be inside another.
        if above.symlink_metadata().is_ok_and(|found| !found.is_dir() || above.join(".git").exists()) {
            return Err(WorktreeProblem::FolderExists(above.to_owned()));
        }
    }
    Ok(path)
}

/// Makes the branch and the worktree, at first without its files, because its settings are read in its folder.
fn check_out(git: &Git, entry: &WorktreeEntry) -> Result<()> {
    let action = "making the worktree";
    fs::create_dir_all(entry.path.parent().unwrap_or(&entry.path)).map_err(disk(action))?;
    let options = ["worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", &entry.branch, "--"];
    let mut add: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    add.extend([entry.path.as_os_str(), OsStr::new(&entry.begins)]);
    git.run(GIT_LIMITS, &add, None)?.checked(action)?;
    let inside = safe_git(&entry.path)?;
    let top = path_of(&inside.run(GIT_LIMITS, &["rev-parse", "--show-toplevel"], None)?.checked(action)?);
    if top.canonicalize().ok() != entry.path.canonicalize().ok() {
        return Err(WorkspaceError::Git { action, text: format!("its settings lead to {}", top.display()) });
    }
    let fill = ["reset", "--hard", "--quiet", "--no-recurse-submodules"];
    inside.run(CHECKOUT, &fill, None)?.checked("checking out the files")?;
    Ok(())
}

/// Returns the session's folder in the worktree, if the worktree has it.
fn folder_in(path: &Path, below: &Path) -> PathBuf {
    let inside = path.join(below);
    match (path.canonicalize(), inside.canonicalize()) {
        // The path is collected without the slash at its end.
        (Ok(top), Ok(folder)) if folder.starts_with(&top) && folder.is_dir() => inside.components().collect(),
        _ => path.to_owned(),
    }
}

/// Returns whether a text can name a branch, by git-check-ref-format(1), and is not an option.
fn is_branch_name(name: &str) -> bool {
    let bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c) || ('\u{200e}'..='\u{206f}').contains(&c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let parts = !name.contains("..") && !name.contains("@{") && !name.contains(bad) && name.split('/').all(part);
    parts && name.len() <= BRANCH_MAX && !name.starts_with('-') && name != "@" && name != "HEAD" && !name.ends_with('.')
}

/// Parses the path of a changed file in a line of `git status --porcelain=v2 --null --no-renames`.
fn changed_file(line: &[u8]) -> Option<String> {
    let fields = match line.first()? {
        b'1' => 9,
        b'u' => 11,
        b'?' => 2,
        _ => return None,
    };
    let path = line.splitn(fields, |byte| *byte == b' ').nth(fields - 1)?;
    Some(String::from_utf8_lossy(path).into_owned())
}
