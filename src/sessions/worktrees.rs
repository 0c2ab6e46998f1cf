//! Git worktrees that the gateway makes for new sessions, in the form that clients see. `plexus_workspace` makes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use plexus_workspace::{FolderStores, FolderWorktrees, WorktreeEntry, WorktreeProblem, WorktreeReady, WorktreeRisk};

use super::system::now;
use plexus_protocol::Timestamp;
use plexus_protocol::api::worktrees::{NewWorktree, WorktreeLosses, WorktreeView};
use plexus_risk::label;

/// Maximum length of the displayed name of a file or commit, in bytes; the rest is left out.
const NAME_MAX: usize = 200;
/// Maximum number of worktrees that are examined at a time.
const VIEWS_AT_ONCE: usize = 4;

/// Returns the content that exists only in a worktree, with names that are safe to display.
pub fn losses(risk: WorktreeRisk) -> WorktreeLosses {
    let labels = |names: &[String]| names.iter().map(|name| label(name, NAME_MAX)).collect();
    WorktreeLosses {
        changed: risk.changed,
        files: labels(&risk.files),
        ahead: risk.ahead,
        commits: labels(&risk.commits),
        digest: risk.consent,
    }
}

/// The reason why a worktree was not made, listed or removed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The folder was neither made nor removed.
    #[error(transparent)]
    Problem(#[from] WorktreeProblem),
    /// Sessions work in the worktree.
    #[error("{} in this worktree: archive or delete {} first", worked(.0), if .0.len() == 1 { "it" } else { "them" })]
    InUse(Vec<String>),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

fn worked(sessions: &[String]) -> String {
    let verb = if sessions.len() == 1 { "works" } else { "work" };
    format!("{} {verb}", sessions.join(", "))
}

/// The worktrees that the gateway made. Cheap to clone.
#[derive(Clone)]
pub struct Worktrees {
    all: Arc<FolderWorktrees>,
}

/// A worktree that was just made: removed with this value, unless it is kept.
pub struct MadeWorktree {
    worktrees: Worktrees,
    made: WorktreeReady,
    retained: bool,
}

impl MadeWorktree {
    /// Returns the folder in the worktree for a session: it corresponds to the session's own folder in the repository.
    pub fn cwd(&self) -> &Path {
        &self.made.cwd
    }

    /// Keeps the worktree. If this cannot be stored, its session keeps it at the next start.
    pub async fn keep(mut self) {
        self.retained = true;
        let path = self.made.entry.path.clone();
        if let Err(error) = self.worktrees.blocking(move |all| all.keep(&path)).await {
            tracing::warn!(%error, "a worktree could not be recorded as kept");
        }
    }
}

impl Drop for MadeWorktree {
    fn drop(&mut self) {
        if self.retained {
            return;
        }
        if let Ok(tokio) = tokio::runtime::Handle::try_current() {
            let (worktrees, path) = (self.worktrees.clone(), self.made.entry.path.clone());
            // Spawned, so that it continues if the client has disconnected.
            tokio.spawn(async move {
                if let Err(error) = worktrees.blocking(move |all| all.discard(&path)).await {
                    tracing::warn!(%error, "an unused new worktree is left until the next start");
                }
            });
        }
    }
}

impl Worktrees {
    /// Opens the list of worktrees in the state folder.
    pub fn new(home: &Path, stores: Arc<FolderStores>) -> Self {
        Self { all: Arc::new(FolderWorktrees::new(home, stores)) }
    }

    /// Runs work on a thread that may block. The work is completed even if the caller does not wait for it.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FolderWorktrees) -> Result<T, WorktreeProblem> + Send + 'static,
    ) -> Result<T, WorktreeError> {
        let all = Arc::clone(&self.all);
        let done = tokio::task::spawn_blocking(move || work(&all)).await;
        Ok(done.map_err(|_| WorktreeError::Stopping)??)
    }

    /// Removes the worktrees that a crash left before a session began in them; `in_use` returns whether a session uses one.
    pub async fn recover(&self, in_use: impl Fn(&Path) -> bool + Send + 'static) {
        match self.blocking(move |all| Ok(all.recover(&in_use)?)).await {
            Ok(left) => {
                for entry in left {
                    tracing::warn!(path = ?entry.path, "an unused new worktree cannot be removed; `plexus worktrees` lists it");
                }
            }
            Err(error) => tracing::warn!(%error, "the unused new worktrees cannot be removed"),
        }
    }

    /// Makes a branch and a worktree of it for a session in `folder`.
    ///
    /// # Errors
    /// Every [`WorktreeError`] but those of removal; then nothing was made.
    pub async fn make(&self, folder: &Path, requested: &NewWorktree) -> Result<MadeWorktree, WorktreeError> {
        let (this, folder, requested) = (self.clone(), folder.to_owned(), requested.clone());
        let made = self.blocking(move |all| {
            let made = all.make(&folder, &requested.branch, requested.base.as_deref(), now().as_millis())?;
            // If the caller has stopped waiting, dropping the value removes the worktree.
            Ok(MadeWorktree { worktrees: this, made, retained: false })
        });
        made.await
    }

    /// Lists the worktrees, newest first, each with its state.
    ///
    /// # Errors
    /// [`WorktreeError::Problem`].
    pub async fn list(&self) -> Result<Vec<WorktreeView>, WorktreeError> {
        let all = self.blocking(|all| Ok(all.list()?)).await?;
        let views = futures_util::stream::iter(all).map(|entry| self.view(entry));
        Ok(views.buffered(VIEWS_AT_ONCE).collect().await)
    }

    async fn view(&self, entry: WorktreeEntry) -> WorktreeView {
        let displayed = |path: &PathBuf| path.to_string_lossy().into_owned();
        let mut view = WorktreeView {
            path: displayed(&entry.path),
            root: displayed(&entry.root),
            branch: entry.branch.clone(),
            made_at: Timestamp::from_millis(entry.at),
            missing: false,
            unsaved: None,
            problem: None,
        };
        let inspected =
            self.blocking(move |all| match entry.path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                true => Ok(Some(all.risk(&entry)?)),
                false => Ok(None),
            });
        match inspected.await {
            Ok(Some(risk)) => view.unsaved = Some(losses(risk)),
            Ok(None) => view.missing = true,
            Err(error) => view.problem = Some(error.to_string()),
        }
        view
    }

    /// Removes a worktree, and its branch if `with_branch`. The data that would be lost must have been displayed: `lost` is its digest.
    ///
    /// # Errors
    /// [`WorktreeError::Problem`].
    pub async fn remove(&self, path: &Path, with_branch: bool, lost: Option<&str>) -> Result<(), WorktreeError> {
        let (path, lost) = (path.to_owned(), lost.map(ToOwned::to_owned));
        self.blocking(move |all| all.remove(&path, with_branch, lost.as_deref())).await
    }
}
