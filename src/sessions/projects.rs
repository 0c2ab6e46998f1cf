//! The projects of sessions: read when a session opens, when its runs begin and end, and when sessions are listed.
//!
//! Reads are shared: sessions in the same folder cost one. They run on threads that may block, few at a time, so that a file system that
//! hangs delays nothing but updates of projects.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use plexus_protocol::Project;
use plexus_risk::label;

/// Time for which a read project counts as current for a list.
const FRESH: Duration = Duration::from_secs(3);
/// Maximum time that opening a session waits for its project; after it the session has none until its next run or the next list.
const OPENING_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of concurrent reads; others wait. A file system that hangs blocks this many threads; then projects stay as they were.
const READS: usize = 4;
/// Maximum time that any caller waits for a read; after it the project stays as it was.
const READ_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of folders that are remembered; beyond it those that were read longest ago are dropped, and read again when needed.
const FOLDERS: usize = 4096;

/// Maximum length of a displayed name, in bytes; the rest is left out.
const NAME_MAX: usize = 200;

/// The projects of the folders that sessions work in. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct Projects {
    cache: Arc<RwLock<HashMap<String, CachedProject>>>,
    reads: Arc<Semaphore>,
    /// The time when all sessions' folders were last read.
    listed: Arc<Mutex<Option<Instant>>>,
}

struct CachedProject {
    project: Project,
    read_at: Instant,
}

impl Default for Projects {
    fn default() -> Self {
        Self { cache: Arc::default(), reads: Arc::new(Semaphore::new(READS)), listed: Arc::default() }
    }
}

impl Projects {
    /// Returns the project of a folder as of its last read.
    pub(super) fn cached(&self, cwd: &str) -> Option<Project> {
        self.cache.read().get(cwd).map(|entry| entry.project.clone())
    }

    pub(super) fn is_fresh(&self, cwd: &str) -> bool {
        self.cache.read().get(cwd).is_some_and(|entry| entry.read_at.elapsed() < FRESH)
    }

    /// Returns whether the folders of all sessions are due to be read for a list; if so, they count as read now.
    pub(super) fn list_is_due(&self) -> bool {
        let mut listed = self.listed.lock();
        if listed.is_some_and(|at| at.elapsed() < FRESH) {
            return false;
        }
        *listed = Some(Instant::now());
        true
    }

    /// Reads folders, one after the other. `None` if that takes longer than [`READ_WAIT`].
    pub(super) async fn read(&self, folders: Vec<String>) -> Option<Vec<Project>> {
        tokio::time::timeout(READ_WAIT, self.read_in_turn(folders)).await.ok()?
    }

    async fn read_in_turn(&self, folders: Vec<String>) -> Option<Vec<Project>> {
        let slot = Arc::clone(&self.reads).acquire_owned().await.ok()?;
        let cache = Arc::clone(&self.cache);
        let work = move || {
            let _slot = slot;
            let read = |cwd: String| {
                let project = read_project(&cwd);
                let mut cache = cache.write();
                cache.insert(cwd, CachedProject { project: project.clone(), read_at: Instant::now() });
                if cache.len() > FOLDERS {
                    forget_oldest(&mut cache);
                }
                project
            };
            folders.into_iter().map(read).collect()
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Reads the folder of a session that is being opened, unless it was just read.
    pub(super) async fn for_opening(&self, cwd: &str) -> Option<Project> {
        if !self.is_fresh(cwd) {
            let read = tokio::time::timeout(OPENING_WAIT, self.read(vec![cwd.to_owned()])).await;
            return read.ok().flatten()?.pop();
        }
        self.cached(cwd)
    }
}

/// Reads the project of a folder from the disk, with names that are safe to display.
fn read_project(cwd: &str) -> Project {
    let found = plexus_workspace::project_of(Path::new(cwd));
    let displayed = |name: String| label(&name, NAME_MAX);
    Project {
        name: displayed(found.name),
        root: found.root.to_string_lossy().into_owned(),
        branch: found.branch.map(displayed),
        worktree: found.worktree.map(displayed),
    }
}

/// Drops the older half.
fn forget_oldest(cache: &mut HashMap<String, CachedProject>) {
    let mut times: Vec<Instant> = cache.values().map(|entry| entry.read_at).collect();
    let middle = times.len() / 2;
    let (_, limit, _) = times.select_nth_unstable(middle);
    let limit = *limit;
    cache.retain(|_, entry| entry.read_at > limit);
}
