//! The files of a session's folder, for prompts that name them. They are found by `plexus_workspace`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::SessionId;
pub use plexus_workspace::FOUND_MAX as FILES_MAX;
use plexus_workspace::KeptWalks;
use tokio::sync::Semaphore;

use super::{Directory, SessionError};
use plexus_auth::{Admin, Permit, Prompt};

/// Longest query, in characters; a longer one is refused.
pub const FILE_QUERY_MAX: usize = 200;
/// Folders walked at a time; others wait. A file system that hangs keeps this many threads.
const WALKS: usize = 2;
/// Time that a caller waits for a walk; then the answer is empty, and says that it is not complete.
const WALK_WAIT: Duration = Duration::from_secs(5);

/// Files that fit a query.
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// Their paths below the session's folder, best first.
    pub paths: Vec<String>,
    /// Whether the folder has more than was looked at.
    pub truncated: bool,
}

/// The files of folders that were walked of late.
pub(super) struct FolderWalks {
    kept: Arc<KeptWalks>,
    walks: Arc<Semaphore>,
}

impl Default for FolderWalks {
    fn default() -> Self {
        Self { kept: Arc::default(), walks: Arc::new(Semaphore::new(WALKS)) }
    }
}

impl FolderWalks {
    /// The best files of a folder. `None` if it is not walked in time.
    async fn best(&self, cwd: &str, query: String, limit: usize) -> Option<std::io::Result<FoundFiles>> {
        let slot = tokio::time::timeout(WALK_WAIT, Arc::clone(&self.walks).acquire_owned()).await.ok()?.ok()?;
        let (kept, folder) = (Arc::clone(&self.kept), cwd.to_owned());
        let walk = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let files = kept.files(Path::new(&folder))?;
            Ok(FoundFiles { paths: files.best(&query, limit), truncated: files.truncated })
        });
        tokio::time::timeout(WALK_WAIT, walk).await.ok()?.ok()
    }
}

impl Directory {
    /// The files of a session's folder that fit `query`, best first, at most `limit` ([`FILES_MAX`]). All fit an empty one,
    /// those nearest to the folder first. Hidden and ignored files are left out.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Invalid`].
    pub async fn files(
        &self,
        _permit: &Permit<Prompt>,
        id: &SessionId,
        query: String,
        limit: usize,
    ) -> Result<FoundFiles, SessionError> {
        let cwd = self.session(id).ok_or_else(|| SessionError::NoSession(id.clone()))?.cwd.clone();
        self.files_in(cwd, query, limit).await
    }

    /// The same of any folder of the machine, where a session may begin.
    ///
    /// # Errors
    /// [`SessionError::Invalid`].
    pub async fn folder_files(
        &self,
        _permit: &Permit<Admin>,
        folder: String,
        query: String,
        limit: usize,
    ) -> Result<FoundFiles, SessionError> {
        self.files_in(folder, query, limit).await
    }

    async fn files_in(&self, cwd: String, query: String, limit: usize) -> Result<FoundFiles, SessionError> {
        if query.chars().count() > FILE_QUERY_MAX {
            return Err(SessionError::Invalid(format!("the query may have at most {FILE_QUERY_MAX} characters")));
        }
        let Some(found) = self.shared.folder_walks.best(&cwd, query, limit.clamp(1, FILES_MAX)).await else {
            return Ok(FoundFiles { truncated: true, ..FoundFiles::default() });
        };
        found.map_err(|why| SessionError::Invalid(format!("the folder {cwd:?} cannot be read: {why}")))
    }
}
