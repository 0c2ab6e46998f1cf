//! The files of a session's folder, for prompts that name them.
//!
//! What an agent wrote is walked, so everything is bounded, no symbolic link is followed, and of all files only short regular
//! ones with ignore rules are opened.

pub(super) mod walk;
#[cfg(test)]
mod walk_tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Directory, SessionError};
use crate::auth::{Admin, Permit, Prompt};
use plexus_protocol::SessionId;
use walk::FolderFiles;

/// Most files in one answer.
pub const FILES_MAX: usize = 100;
/// Longest query, in characters; a longer one is refused.
pub const FILE_QUERY_MAX: usize = 200;
/// How long what was found in a folder is used again.
const KEPT: Duration = Duration::from_secs(10);
/// Folders whose files are kept; beyond that the oldest are dropped, and walked again when they are asked for.
const KEPT_FOLDERS: usize = 16;
/// Bytes of all that is kept; beyond that the oldest are dropped.
const KEPT_BYTES: usize = 32 << 20;
/// Folders walked at a time; others wait. A file system that hangs keeps this many threads.
const WALKS: usize = 2;
/// How long a caller waits for a walk; then the answer is empty, and says that it is not complete.
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
    kept: Mutex<HashMap<String, KeptFiles>>,
    walks: Arc<Semaphore>,
}

struct KeptFiles {
    files: Arc<FolderFiles>,
    walked_at: Instant,
}

impl Default for FolderWalks {
    fn default() -> Self {
        Self { kept: Mutex::default(), walks: Arc::new(Semaphore::new(WALKS)) }
    }
}

impl FolderWalks {
    fn kept(&self, cwd: &str) -> Option<Arc<FolderFiles>> {
        let kept = self.kept.lock();
        kept.get(cwd).filter(|kept| kept.walked_at.elapsed() < KEPT).map(|kept| Arc::clone(&kept.files))
    }

    fn keep(&self, cwd: String, files: &Arc<FolderFiles>) {
        let mut kept = self.kept.lock();
        kept.retain(|_, kept| kept.walked_at.elapsed() < KEPT);
        kept.insert(cwd, KeptFiles { files: Arc::clone(files), walked_at: Instant::now() });
        let bytes = |kept: &HashMap<String, KeptFiles>| kept.values().map(|kept| kept.files.bytes).sum::<usize>();
        while kept.len() > KEPT_FOLDERS || (kept.len() > 1 && bytes(&kept) > KEPT_BYTES) {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.walked_at).map(|(cwd, _)| cwd.clone());
            kept.remove(&oldest.unwrap_or_default());
        }
    }

    /// The files of a folder. `None` if it is not walked in time.
    async fn files(&self, cwd: &str) -> Option<Result<Arc<FolderFiles>, std::io::Error>> {
        if let Some(files) = self.kept(cwd) {
            return Some(Ok(files));
        }
        let slot = tokio::time::timeout(WALK_WAIT, Arc::clone(&self.walks).acquire_owned()).await.ok()?.ok()?;
        // Somebody else may have walked it meanwhile.
        if let Some(files) = self.kept(cwd) {
            return Some(Ok(files));
        }
        let folder = cwd.to_owned();
        let walk = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            walk::files_of(folder.as_ref())
        });
        match tokio::time::timeout(WALK_WAIT, walk).await.ok()?.ok()? {
            Ok(files) => {
                let files = Arc::new(files);
                self.keep(cwd.to_owned(), &files);
                Some(Ok(files))
            }
            Err(error) => Some(Err(error)),
        }
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
        let Some(walked) = self.shared.folder_walks.files(&cwd).await else {
            return Ok(FoundFiles { truncated: true, ..FoundFiles::default() });
        };
        let unreadable = |why| SessionError::Invalid(format!("the folder {cwd:?} cannot be read: {why}"));
        let files = walked.map_err(unreadable)?;
        let limit = limit.clamp(1, FILES_MAX);
        let best = tokio::task::spawn_blocking(move || {
            let paths = best(&files.paths, &query, limit);
            FoundFiles { paths, truncated: files.truncated }
        });
        best.await.map_err(|_| SessionError::Stopping)
    }
}

/// The paths that fit best.
fn best(paths: &[String], query: &str, limit: usize) -> Vec<String> {
    let query = query.trim();
    if query.is_empty() {
        return paths.iter().take(limit).cloned().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
    let mut chars = Vec::new();
    let mut score = |path: &String| pattern.score(Utf32Str::new(path, &mut chars), &mut matcher);
    let mut fit: Vec<_> = paths.iter().filter_map(|path| Some((score(path)?, path))).collect();
    // Of equal ones the shorter path.
    fit.sort_unstable_by(|(a, x), (b, y)| b.cmp(a).then(x.len().cmp(&y.len())).then(x.cmp(y)));
    fit.into_iter().take(limit).map(|(_, path)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_fit_best_come_first() {
        let paths = [
            "README.md",
            "src/main.rs",
            "src/sessions/mod.rs",
            "docs/maintenance.md",
            "src/Main.java",
            "zz/readme.txt",
        ];
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        for (query, found) in [
            ("", vec!["README.md", "src/main.rs", "src/sessions/mod.rs"]),
            ("  ", vec!["README.md", "src/main.rs", "src/sessions/mod.rs"]),
            ("main", vec!["src/main.rs", "src/Main.java", "docs/maintenance.md"]),
            ("Main", vec!["src/Main.java"]),
            ("srcmain", vec!["src/main.rs", "src/Main.java"]),
            ("sesmod", vec!["src/sessions/mod.rs"]),
            ("src main", vec!["src/main.rs", "src/Main.java"]),
            ("^!'$x", vec![]),
        ] {
            assert_eq!(best(&paths, query, 3), found, "{query:?}");
        }
    }

    #[tokio::test]
    async fn files_of_folders_are_kept_within_bounds() {
        let walks = FolderWalks::default();
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().to_str().unwrap();
        std::fs::write(dir.path().join("one"), "").unwrap();
        let paths = |files: Option<Result<Arc<FolderFiles>, _>>| files.unwrap().unwrap().paths.clone();
        assert_eq!(paths(walks.files(cwd).await), ["one"]);
        std::fs::write(dir.path().join("two"), "").unwrap();
        assert_eq!(paths(walks.files(cwd).await), ["one"], "it was walked just now");
        for n in 0..KEPT_FOLDERS + 4 {
            walks.keep(format!("/{n}"), &Arc::new(FolderFiles { bytes: 1, ..FolderFiles::default() }));
        }
        assert_eq!(walks.kept.lock().len(), KEPT_FOLDERS);
        assert_eq!(paths(walks.files(cwd).await), ["one", "two"], "it was dropped, and is walked again");
        walks.keep("/large".into(), &Arc::new(FolderFiles { bytes: KEPT_BYTES + 1, ..FolderFiles::default() }));
        assert_eq!(walks.kept.lock().len(), 1);
        assert!(walks.files("/not/there").await.unwrap().is_err());
    }
}
