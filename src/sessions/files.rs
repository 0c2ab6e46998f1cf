//! The files of a session's folder, for prompts that name them. `plexus_workspace` finds them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plexus_workspace::CachedWalks;
pub use plexus_workspace::FOUND_MAX as FILES_MAX;
use tokio::sync::Semaphore;

/// Maximum length of a query, in characters; a longer one is refused.
pub const FILE_QUERY_MAX: usize = 200;
/// Maximum number of folders walked at a time; others wait. A file system that hangs blocks this many threads.
const WALKS: usize = 2;
/// Maximum time that a caller waits for a walk; after it the result is empty and marked as incomplete.
const WALK_WAIT: Duration = Duration::from_secs(5);

/// Files that match a query.
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// The paths below the session's folder, best match first.
    pub paths: Vec<String>,
    /// `true` if the folder has more files than were visited.
    pub truncated: bool,
}

/// The files of recently walked folders.
pub(super) struct FolderWalks {
    cache: Arc<CachedWalks>,
    walks: Arc<Semaphore>,
}

impl Default for FolderWalks {
    fn default() -> Self {
        Self { cache: Arc::default(), walks: Arc::new(Semaphore::new(WALKS)) }
    }
}

impl FolderWalks {
    /// Returns the files of a folder that match best. `None` if the folder is not walked in time.
    pub(super) async fn best(&self, cwd: &str, query: String, limit: usize) -> Option<std::io::Result<FoundFiles>> {
        let slot = tokio::time::timeout(WALK_WAIT, Arc::clone(&self.walks).acquire_owned()).await.ok()?.ok()?;
        let (cache, folder) = (Arc::clone(&self.cache), cwd.to_owned());
        let walk = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let files = cache.files(Path::new(&folder))?;
            Ok(FoundFiles { paths: files.best(&query, limit), truncated: files.truncated })
        });
        tokio::time::timeout(WALK_WAIT, walk).await.ok()?.ok()
    }
}
