//! The private repository of a folder: its making, its lock, its references and its objects.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::fs::{FlockOperation, flock};

use crate::error::{Result, WorkspaceError, disk};
use crate::git::{Git, GitOutput, Limits};
use crate::names::{ObjectName, checked_id, digest_of};
use crate::values::{Caches, Records, ScanState};

/// The folder of all stores in the state folder.
const STORES: &str = "workspaces";
/// Maximum size of a file that is stored, in bytes; a larger one is named in scans, and is neither compared nor undone.
pub const KEPT_FILE_MAX: u64 = 8 << 20;
/// Seconds for a command that reads little.
pub(crate) const SHORT: u64 = 20;
/// Seconds for the parts of a scan; a folder that takes longer is [`WorkspaceError::Slow`].
pub(crate) const SCAN: u64 = 60;
/// Seconds for maintenance.
const MAINTENANCE: u64 = 600;
/// Maximum size of a list that git prints, in bytes; a longer one counts as cut.
pub(crate) const LIST_MAX: usize = 32 << 20;
/// Seconds that a call waits for the calls before it on the same store; then it is [`WorkspaceError::Slow`].
const TURN_WAIT: u64 = 60;
/// Time that opening waits for another process to leave the store; then it is [`WorkspaceError::InUse`].
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Settings of a store. Everything that runs programs is off; windows of packs are small, because the address space is limited.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tautocrlf = false\n\tsafecrlf = false\n\tfsmonitor = false\n\
    \thooksPath = /dev/null\n\tbigFileThreshold = 1m\n\tpreloadIndex = false\n\tfsyncMethod = batch\n\
    \tfsync = loose-object,pack,pack-metadata,reference\n\tpackedGitWindowSize = 16m\n\tpackedGitLimit = 128m\n\
    \tdeltaBaseCacheLimit = 16m\n\tquotePath = false\n\tlogAllRefUpdates = false\n\
    [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[index]\n\tversion = 4\n\tthreads = 1\n[submodule]\n\trecurse = false\n\
    [pack]\n\tthreads = 1\n\twindowMemory = 64m\n\tdeltaCacheSize = 16m\n[diff]\n\trenameLimit = 100\n[protocol]\n\tallow = never\n";
/// Attributes of a store: the bytes of files are stored unchanged.
const ATTRIBUTES: &str = "* -text -eol -ident -filter -working-tree-encoding !diff\n";

/// The stores of a state folder. Callers of one folder share its store.
#[derive(Debug)]
pub struct FolderStores {
    home: PathBuf,
    /// A lock for each folder, so that a disk that hangs does not block another folder.
    open: Mutex<HashMap<PathBuf, OpenStore>>,
}

/// The store of a folder while it is in use.
type OpenStore = Arc<Mutex<Weak<FolderStore>>>;

impl FolderStores {
    /// Makes the stores of a state folder; nothing is read or created yet.
    pub fn new(state_folder: &Path) -> Self {
        Self { home: state_folder.to_owned(), open: Mutex::default() }
    }

    /// Opens the store of a folder, or makes it. An undo that a crash interrupted is completed or discarded first.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::GitMissing`], [`WorkspaceError::Private`], [`WorkspaceError::InUse`], and errors of the disk.
    pub fn open(&self, folder: &Path) -> Result<Arc<FolderStore>> {
        let folder = folder.canonicalize().map_err(disk("reading the folder"))?;
        let slot = self.slot(&folder);
        let mut slot = slot.lock();
        if let Some(store) = slot.upgrade() {
            return Ok(store);
        }
        let store = Arc::new(FolderStore::open(&self.home, folder)?);
        *slot = Arc::downgrade(&store);
        Ok(store)
    }
}

impl FolderStores {
    /// Removes a session from the store of a folder, which may no longer exist. No store is made for it.
    ///
    /// # Errors
    /// Returns the errors of [`FolderStore::forget`].
    pub fn forget(&self, folder: &Path, session: &str) -> Result<()> {
        let exists = folder.canonicalize();
        let directory =
            self.home.join(STORES).join(digest_of(exists.as_deref().unwrap_or(folder).as_os_str().as_bytes()));
        let sessions = directory.join("sessions");
        if !sessions.join(checked_id(session)?).is_dir() {
            return Ok(());
        }
        if exists.is_ok() {
            return self.open(folder)?.forget(session);
        }
        let failed = disk("forgetting a session");
        fs::remove_dir_all(sessions.join(session)).map_err(&failed)?;
        // The folder no longer exists, and neither do the objects of its repository: without sessions, the rest is not needed.
        if fs::read_dir(&sessions).is_ok_and(|mut left| left.next().is_none()) {
            fs::remove_dir_all(directory).map_err(failed)?;
        }
        Ok(())
    }

    fn slot(&self, folder: &Path) -> OpenStore {
        let mut open = self.open.lock();
        open.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.lock().strong_count() > 0);
        Arc::clone(open.entry(folder.to_owned()).or_default())
    }

    /// Removes the store of a folder that is about to be deleted, with the moments of all its sessions. A store that is in use stays.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Disk`].
    pub fn remove(&self, folder: &Path) -> Result<()> {
        let folder = folder.canonicalize().map_err(disk("reading the folder"))?;
        let slot = self.slot(&folder);
        let slot = slot.lock();
        if slot.strong_count() > 0 {
            return Ok(());
        }
        let stem = self.home.join(STORES).join(digest_of(folder.as_os_str().as_bytes()));
        for path in [stem.clone(), stem.with_extension("new")] {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(disk("removing a store")(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The store of one folder.
///
/// Calls block, one at a time for each store, and end by themselves: each child of git has a deadline. Dropping the caller's task
/// does not end a call.
#[derive(Debug)]
pub struct FolderStore {
    pub(crate) folder: PathBuf,
    pub(crate) directory: PathBuf,
    /// The state folder below the folder, if it is there; scans leave it out.
    pub(crate) private: Option<PathBuf>,
    pub(crate) git: Git,
    turn: Mutex<()>,
    pub(crate) scans: Mutex<ScanState>,
    pub(crate) scan_ended: Condvar,
    pub(crate) caches: Mutex<Caches>,
    pub(crate) records: Mutex<Records>,
    _lock: Arc<File>,
}

impl FolderStore {
    fn open(home: &Path, folder: PathBuf) -> Result<Self> {
        let making = disk("making the store of the folder");
        let stores = home.join(STORES);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&stores).map_err(&making)?;
        let home = home.canonicalize().map_err(&making)?;
        if folder.starts_with(&home) {
            return Err(WorkspaceError::Private);
        }
        let private = home.strip_prefix(&folder).ok().map(Path::to_owned);
        let stores = home.join(STORES);
        let key = digest_of(folder.as_os_str().as_bytes());
        let lock = Arc::new(locked(&stores.join(format!("{key}.lock")))?);
        let directory = stores.join(&key);
        let git = Git::within(&folder)?.holding(Arc::clone(&lock));
        if !directory.join("HEAD").is_file() {
            make(&git, &directory, &folder)?;
        }
        replace(&directory.join("config"), CONFIG.as_bytes()).map_err(&making)?;
        replace(&directory.join("info/attributes"), ATTRIBUTES.as_bytes()).map_err(&making)?;
        remove_stale(&directory, 0);
        let mut options = vec![OsString::from("--git-dir"), directory.clone().into(), "--work-tree".into()];
        options.extend([folder.clone().into(), "--literal-pathspecs".into(), "--no-replace-objects".into()]);
        let git = git.before(options);
        let store = Self {
            folder,
            directory,
            private,
            git,
            turn: Mutex::default(),
            scans: Mutex::default(),
            scan_ended: Condvar::new(),
            caches: Mutex::default(),
            records: Mutex::default(),
            _lock: lock,
        };
        store.recover()?;
        Ok(store)
    }

    /// Returns the folder, with its links resolved.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for the calls before this one.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        self.turn.try_lock_for(Duration::from_secs(TURN_WAIT)).ok_or(WorkspaceError::Slow(TURN_WAIT))
    }

    /// Runs git on the store.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, seconds: u64, args: &[S], input: Option<&[u8]>) -> Result<GitOutput> {
        self.git.run(Limits { seconds, output: LIST_MAX }, args, input)
    }

    /// Reads a blob of at most [`KEPT_FILE_MAX`] bytes and checks that its bytes have its name.
    pub(crate) fn blob(&self, name: ObjectName) -> Result<Vec<u8>> {
        let max = usize::try_from(KEPT_FILE_MAX).unwrap_or(usize::MAX);
        let limits = Limits { seconds: SHORT, output: max };
        let found = self.git.run(limits, &["cat-file", "blob", &name.to_string()], None)?;
        let found = found.checked("reading the earlier content of a file")?.stdout;
        if ObjectName::from_blob(&found) != name {
            return Err(WorkspaceError::Damaged(format!("the content of {name} does not have that name")));
        }
        Ok(found)
    }

    /// Reads the content of one side of a file.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Git`] for a placeholder and for a blob that is not stored, [`WorkspaceError::Damaged`]
    /// for one whose bytes do not have its name.
    pub fn content(&self, side: crate::FileSide) -> Result<Vec<u8>> {
        let _turn = self.turn()?;
        self.blob(side.name)
    }

    /// Stores bytes as a blob.
    pub(crate) fn keep_blob(&self, bytes: &[u8]) -> Result<ObjectName> {
        let args = ["hash-object", "-w", "--stdin", "--no-filters", "-t", "blob"];
        let action = "storing the content of a file";
        let stored = self.run(SHORT, &args, Some(bytes))?.checked(action)?.line();
        let name = ObjectName::from_blob(bytes);
        if stored != name.to_string() {
            return Err(WorkspaceError::Damaged(format!("git gave {name} another name")));
        }
        Ok(name)
    }

    /// Makes references to objects of a session, so that maintenance retains them.
    pub(crate) fn keep_objects(&self, session: &str, names: &[ObjectName]) -> Result<()> {
        let session = checked_id(session)?;
        let line = |name: &ObjectName| format!("update refs/sessions/{session}/{name} {name}\n");
        let lines: String = names.iter().map(line).collect();
        self.run(SHORT, &["update-ref", "--stdin"], Some(lines.as_bytes()))?
            .checked("storing the state of the folder")?;
        Ok(())
    }

    /// Removes a session: its moments, its undone changes, and the references to its trees. Maintenance then frees the disk.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::BadId`], and errors of git and the disk. A call that failed can be repeated.
    pub fn forget(&self, session: &str) -> Result<()> {
        let _turn = self.turn()?;
        let action = "forgetting a session";
        let prefix = format!("refs/sessions/{}/", checked_id(session)?);
        let named = self.run(SHORT, &["for-each-ref", "--format=delete %(refname)", &prefix], None)?.checked(action)?;
        if !named.stdout.is_empty() {
            self.run(SHORT, &["update-ref", "--stdin"], Some(&named.stdout))?.checked(action)?;
        }
        self.records.lock().remove(session);
        match fs::remove_dir_all(self.session_folder(session)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk(action)(error)),
            _ => Ok(()),
        }
    }

    /// Returns whether a session still has moments here.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::BadId`].
    pub fn has_moments(&self, session: &str) -> Result<bool> {
        Ok(self.session_folder(checked_id(session)?).is_dir())
    }

    pub(crate) fn session_folder(&self, session: &str) -> PathBuf {
        self.directory.join("sessions").join(session)
    }

    /// Makes the store independent of the repository whose objects it borrows, removes objects that no session
    /// references, and packs the rest. It is for idle times: a large repository takes seconds and as many bytes as its
    /// newest state.
    ///
    /// Until this was called, a state of the folder that the repository prunes is lost, and its files are
    /// [`Comparison::Unreadable`](crate::Comparison::Unreadable).
    ///
    /// # Errors
    /// Returns the errors of git; then the store stays as it was.
    pub fn maintain(&self) -> Result<()> {
        let _turn = self.turn()?;
        let action = "packing the store";
        let borrowed = self.directory.join("objects/info/alternates");
        self.run(MAINTENANCE, &["pack-refs", "--all", "--prune"], None)?.checked(action)?;
        self.run(MAINTENANCE, &["repack", "-a", "-d", "-q"], None)?.checked(action)?;
        match fs::remove_file(&borrowed) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(disk(action)(error)),
            _ => {}
        }
        // A scan without a moment may still be marked or undone.
        self.run(MAINTENANCE, &["prune", "--expire=1.hour.ago"], None)?.checked(action)?;
        Ok(())
    }
}

/// Takes the lock of a store.
fn locked(path: &Path) -> Result<File> {
    let action = "locking the store of the folder";
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).read(true).mode(0o600).open(path).map_err(disk(action))?;
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(WorkspaceError::InUse),
            Err(error) => return Err(disk(action)(error)),
        }
    }
}

/// Makes a store beside its place and moves it there, so that an existing store is complete.
fn make(git: &Git, directory: &Path, folder: &Path) -> Result<()> {
    let action = "making the store of the folder";
    let temporary = directory.with_extension("new");
    for stale in [&temporary, directory] {
        match fs::remove_dir_all(stale) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(disk(action)(error)),
            _ => {}
        }
    }
    let init = ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=none"];
    let mut args: Vec<&OsStr> = init.iter().map(OsStr::new).collect();
    args.extend([OsStr::new("--"), temporary.as_os_str()]);
    git.run(Limits { seconds: SHORT, output: LIST_MAX }, &args, None)?.checked(action)?;
    let fill = || -> std::io::Result<()> {
        fs::create_dir_all(temporary.join("info"))?;
        fs::create_dir_all(temporary.join("sessions"))?;
        replace(&temporary.join("folder"), folder.as_os_str().as_bytes())?;
        fs::rename(&temporary, directory)?;
        sync_folder(directory.parent().unwrap_or(directory))
    };
    fill().map_err(disk(action))
}

/// Removes locks and incomplete files that a killed git left.
fn remove_stale(directory: &Path, depth: usize) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.as_bytes();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < 4 && name != b"pack" {
            remove_stale(&path, depth + 1);
        } else if !is_folder && (name.ends_with(b".lock") || name.starts_with(b"tmp_") || name == b"gc.pid") {
            // A file that stays makes the next command of git fail with its name.
            let _ = fs::remove_file(path);
        }
    }
}

/// Replaces a file, so that a crash leaves the old or the new content.
pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".plexus-new");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Waits until the names in a folder are on disk.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}
