//! The files of folders, for prompts that name them.

use super::registry::Registry;
use super::*;
use crate::files::{FILE_QUERY_MAX, FILES_MAX, FolderWalks, FoundFiles};

/// The files of folders, for prompts that name them.
pub struct DirectoryFiles {
    pub(super) registry: Arc<Registry>,
    pub(super) walks: FolderWalks,
}

impl DirectoryFiles {
    /// Returns the files of a session's folder that match `query`, best first, at most `limit` ([`FILES_MAX`]). An empty query matches
    /// all files; those nearest to the folder come first. Hidden and ignored files are left out.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Invalid`].
    pub async fn in_session(
        &self,
        _permit: &Permit<Prompt>,
        id: &SessionId,
        query: String,
        limit: usize,
    ) -> Result<FoundFiles, SessionError> {
        let cwd = self.registry.session(id).ok_or_else(|| SessionError::NoSession(id.clone()))?.cwd.clone();
        self.files_in(cwd, query, limit).await
    }

    /// Like [`in_session`](Self::in_session), for any folder of the machine in which a session may be opened.
    ///
    /// # Errors
    /// [`SessionError::Invalid`].
    pub async fn in_folder(
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
        let Some(found) = self.walks.best(&cwd, query, limit.clamp(1, FILES_MAX)).await else {
            return Ok(FoundFiles { truncated: true, ..FoundFiles::default() });
        };
        found.map_err(|reason| SessionError::Invalid(format!("the folder {cwd:?} cannot be read: {reason}")))
    }
}
