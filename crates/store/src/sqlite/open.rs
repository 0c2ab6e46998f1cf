//! The store's files: lock, modes, schema version, and the settings of each connection.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::StoreError;

/// The name of the database in the state directory. SQLite places `-wal` and `-shm` beside it, with its mode.
pub(super) const DATABASE: &str = "plexus.db";
/// The file that is locked with an exclusive `flock` while a store is open; the kernel releases it when the process ends.
pub(super) const LOCK: &str = "plexus.lock";
/// The name of a rewritten copy of the database before it is renamed.
const REWRITTEN: &str = "plexus.db.rewritten";
/// Free space beyond the database's own size that a rewrite needs, in bytes.
const REWRITE_SPARE_BYTES: u64 = 64 << 20;
/// The file that is written and removed at once after a failed write, to determine whether the disk is full.
const PROBE: &str = "plexus.probe";

/// The `PRAGMA application_id` of a store ("Plxs"); a database with another id is foreign and is not changed.
pub(super) const APPLICATION_ID: u32 = 0x506c_7873;
/// The `PRAGMA user_version` of a store; a higher one is [`StoreError::Newer`].
pub(super) const SCHEMA: u32 = 1 + ADDED.len() as u32;

/// Page size in bytes: large enough for several small blocks, small enough that a commit of one event writes little.
const PAGE_SIZE: u32 = 8192;
/// Size of the writer's page cache, in KiB. A transaction that changes more spills into the write-ahead log early.
const WRITER_CACHE_KIB: u32 = 8192;
/// Size of the write-ahead log after which a commit waits for the readers (reads are short) to restart the log, in bytes, so that
/// overlapping reads cannot make it grow without bound; also the size to which the file is truncated.
pub(super) const WAL_BYTES_MAX: u64 = 64 << 20;
/// Maximum time that opening waits for the lock. A child process that a killed gateway was starting holds it until its exec, which takes
/// milliseconds; a store in use is refused with this delay.
const LOCK_WAIT: Duration = Duration::from_millis(250);
/// Pause between two attempts to lock.
const LOCK_RETRY: Duration = Duration::from_millis(5);
/// Maximum time that a commit waits for readers before the write-ahead log can restart. The store's own readers finish sooner; if another
/// program holds a transaction open, the log grows instead.
pub(super) const CHECKPOINT_WAIT: Duration = Duration::from_millis(200);

const TABLES: &str = "
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch TEXT NOT NULL,
    -- The head and the bytes of events as they were at some earlier commit: where counting goes on from.
    head INTEGER NOT NULL DEFAULT 0,
    event_bytes INTEGER NOT NULL DEFAULT 0,
    -- The machine's boot during which commits may have been left to the kernel to write.
    unsynced_boot TEXT
);
CREATE TABLE sessions (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL UNIQUE,
    runtime_id TEXT NOT NULL,
    dialect TEXT NOT NULL,
    as_of INTEGER NOT NULL,
    spare_from INTEGER,
    trimmed INTEGER NOT NULL DEFAULT 0,
    base BLOB,
    state BLOB NOT NULL
);
-- One row a block. key = session's no << 40 | position of its first event; small columns first, so that they are read
-- without the block.
CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL,
    block BLOB NOT NULL
);
CREATE TABLE requests (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    state INTEGER NOT NULL,
    answer_key TEXT,
    body BLOB NOT NULL
);
-- Open requests are few and read often; the others are found newest first, without an index of their own.
CREATE INDEX requests_open ON requests (session_id) WHERE state = 1;
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    session_no INTEGER NOT NULL,
    position INTEGER NOT NULL,
    role TEXT NOT NULL
);
CREATE INDEX passages_by_session ON passages (session_no, position);
CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61');
-- A forgotten passage leaves no words in the index.
INSERT INTO texts (texts, rank) VALUES ('secure-delete', 1);
CREATE TABLE devices (
    device_id TEXT PRIMARY KEY,
    body BLOB NOT NULL
);
";

/// Added by schema 2: the part of its runtime's output that each session has stored. Separate rows, since they are written with nearly
/// every commit.
const MARKS: &str = "
CREATE TABLE marks (
    session_no INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    heard INTEGER NOT NULL
);
";

/// Added by schema 3: the notifier's rows, one for each target.
const PUSHES: &str = "
CREATE TABLE pushes (
    name TEXT PRIMARY KEY,
    body BLOB NOT NULL
);
";

/// Added by schema 4: an index of blocks in log order, regardless of their session; a mark on sessions that are being deleted; rows for
/// queued prompts; an index of closed requests by age. Requests closed earlier count as closed now.
const SWEEPING: &str = "
-- 1099511627775 is the part of a key that is the position.
CREATE INDEX events_by_position ON events (key & 1099511627775);
-- How far before an event its block may begin, where another session's block begins in between: 0 as long as none does.
ALTER TABLE meta ADD COLUMN lookback INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN doomed INTEGER NOT NULL DEFAULT 0;
CREATE TABLE prompts (
    session_no INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (session_no, run_id)
);
ALTER TABLE requests ADD COLUMN closed_at INTEGER;
UPDATE requests SET closed_at = unixepoch() * 1000 WHERE state <> 1;
CREATE INDEX requests_by_session ON requests (session_id);
CREATE INDEX requests_by_closing ON requests (closed_at) WHERE closed_at IS NOT NULL;
";

/// Computes the maximum distance of an event from the beginning of its block, after an upgrade or a repair.
pub(super) const LOOKBACK: &str = "
UPDATE meta SET lookback = ifnull((
    SELECT max(last - first) FROM (
        SELECT key & 1099511627775 AS first, last, lead(key & 1099511627775) OVER (ORDER BY key & 1099511627775) AS next
        FROM events)
    WHERE next <= last), 0);
";

/// Added by schema 5: surfaces, each as a whole row followed by the rows of its changes.
const SURFACES: &str = "
CREATE TABLE surfaces (
    session_no INTEGER NOT NULL,
    surface TEXT NOT NULL,
    rev INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session_no, surface, rev)
);
";

/// Added by schema 6: sums of spending for each run by spans of a quarter of an hour; a row for tokens (without a currency), and one for
/// each currency. Spending before the update is not known, as `spending_since` indicates.
const SPENDING: &str = "
CREATE TABLE spending (
    span INTEGER NOT NULL,
    session_no INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    currency TEXT NOT NULL,
    input INTEGER,
    output INTEGER,
    cached_read INTEGER,
    cached_write INTEGER,
    reasoning INTEGER,
    cost REAL,
    PRIMARY KEY (span, session_no, run_id, currency)
) WITHOUT ROWID;
CREATE INDEX spending_by_session ON spending (session_no, span);
ALTER TABLE meta ADD COLUMN spending_since INTEGER NOT NULL DEFAULT 0;
UPDATE meta SET spending_since = unixepoch() * 1000;
";

/// The additions of each schema after the first, in order: opening an older store applies the missing ones.
const ADDED: [&str; 5] = [MARKS, PUSHES, SWEEPING, SURFACES, SPENDING];

/// The held lock. Dropping it releases it at once, even if a starting child has inherited the descriptor.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file releases the lock, too, only later.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the lock, and checks the version before anything is changed.
///
/// # Errors
/// [`StoreError::Locked`], [`StoreError::Newer`], [`StoreError::Corrupt`], [`StoreError::Io`].
pub(super) fn claim(dir: &Path) -> Result<Lock, StoreError> {
    let lock = lock(dir)?;
    check_version(&dir.join(DATABASE))?;
    Ok(lock)
}

/// Creates the directory if necessary, and takes the lock.
///
/// # Errors
/// [`StoreError::Locked`], [`StoreError::Full`], [`StoreError::Io`].
pub(super) fn lock(dir: &Path) -> Result<Lock, StoreError> {
    if !dir.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| io(dir, &e))?;
    }
    let path = dir.join(LOCK);
    let file = private().create(true).open(&path).map_err(|e| io(&path, &e))?;
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_RETRY),
            Err(Errno::WOULDBLOCK) => return Err(StoreError::Locked),
            Err(error) => return Err(io(&path, &error.into())),
        }
    }
    Ok(Lock(file))
}

/// Opens the database for writing; creates it, with `epoch`, if absent.
pub(super) fn open_writer(dir: &Path, epoch: &str) -> Result<Connection, StoreError> {
    let path = dir.join(DATABASE);
    // Created here and not by SQLite, so that no umask makes it readable to others; `-wal` and `-shm` take its mode.
    let file = private().create(true).open(&path).map_err(|e| io(&path, &e))?;
    file.set_permissions(Permissions::from_mode(0o600)).map_err(|e| io(&path, &e))?;
    drop(file);
    let made = (|| {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(CHECKPOINT_WAIT)?;
        if schema_version(&connection)? == 0 {
            // Set before the file has content. Setting it later would write, and opening must work on a full disk.
            connection.execute_batch(&format!("PRAGMA page_size = {PAGE_SIZE}; PRAGMA auto_vacuum = INCREMENTAL;"))?;
        } else if !can_return_free_pages(&connection)? {
            connection = rewrite(dir, connection, flags)?;
            connection.busy_timeout(CHECKPOINT_WAIT)?;
        }
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA cache_size = -{WRITER_CACHE_KIB};
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA journal_size_limit = {WAL_BYTES_MAX};
             PRAGMA secure_delete = ON;
             PRAGMA temp_store = MEMORY;"
        ))?;
        if schema_version(&connection)? == 0 {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(&ADDED.concat())?;
            transaction
                .execute("INSERT INTO meta (id, epoch, spending_since) VALUES (1, ?1, unixepoch() * 1000)", [epoch])?;
            transaction
                .execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"))?;
            transaction.commit()?;
        } else if let Some(missing @ [_, ..]) = ADDED.get(schema_version(&connection)? as usize - 1..) {
            let transaction = connection.transaction()?;
            transaction.execute_batch(&format!("{} {LOOKBACK} PRAGMA user_version = {SCHEMA};", missing.concat()))?;
            transaction.commit()?;
        }
        Ok(connection)
    })();
    let connection = made.map_err(|e| translate(dir, &e))?;
    // The names of new files must survive a power cut, too.
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| io(dir, &e))?;
    Ok(connection)
}

/// Returns whether free pages of the database can be returned to the disk in small steps.
pub(super) fn can_return_free_pages(connection: &Connection) -> rusqlite::Result<bool> {
    // 2 is INCREMENTAL.
    connection.query_row("PRAGMA auto_vacuum", [], |row| row.get::<_, i64>(0)).map(|mode| mode == 2)
}

/// Rewrites a database of an older version so that free pages can be returned to the disk: once, in time linear in its size, while it is
/// locked. A copy is made beside it and renamed over it. If that fails or space is short, the old database stays in use, its free pages are
/// only reused, and the next opening retries.
fn rewrite(dir: &Path, connection: Connection, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let (path, copy) = (dir.join(DATABASE), dir.join(REWRITTEN));
    let bytes = path.metadata().map_or(0, |meta| meta.len());
    let free = rustix::fs::statvfs(dir).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    if free < bytes.saturating_add(REWRITE_SPARE_BYTES) {
        tracing::warn!(
            bytes,
            free,
            "not enough space to rewrite the database: the space of deleted data is not released"
        );
        return Ok(connection);
    }
    tracing::info!(bytes, "rewriting the database once, to release the space of deleted data");
    let made = (|| {
        let _ = std::fs::remove_file(&copy);
        // Created here for its mode.
        private().create_new(true).open(&copy).map_err(|e| e.to_string())?;
        // The copy must have nothing in its write-ahead log, whose name belongs to the old file.
        let made = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .and_then(|_| connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;"))
            .and_then(|()| connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]));
        made.map_err(|e| e.to_string())?;
        File::open(&copy).and_then(|file| file.sync_all()).map_err(|e| e.to_string())
    })();
    let closed = made.and_then(|()| connection.close().map_err(|(_, e)| e.to_string()));
    let wal = dir.join(format!("{DATABASE}-wal"));
    let done = closed.and_then(|()| match wal.metadata() {
        Ok(left) if left.len() > 0 => Err("the write-ahead log is in use".to_owned()),
        _ => std::fs::rename(&copy, &path).map_err(|e| e.to_string()),
    });
    if let Err(error) = done {
        let _ = std::fs::remove_file(&copy);
        tracing::warn!(%error, "the database could not be rewritten: the space of deleted data is not released");
    }
    Connection::open_with_flags(&path, flags)
}

/// Opens the database for reading.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// Refuses a newer or foreign database. Checks the file's own header first, without SQLite; then, read-only, the state in the write-ahead
/// log.
fn check_version(path: &Path) -> Result<(), StoreError> {
    let mut header = Vec::with_capacity(100);
    match File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut header).map_err(|e| io(path, &e))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(path, &error)),
    };
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(foreign_file(path));
    }
    // SQLite file format 1.3: big-endian, user version at 60, application id at 68.
    let word = |at: usize| header[at..at + 4].iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    check_owner(path, word(68), word(60), false)?;
    let seen = (|| {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let application = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0))?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
        Ok((application.cast_unsigned(), schema_version(&connection)?, tables > 0))
    })();
    let (application, version, tables) = seen.map_err(|e: rusqlite::Error| match &e {
        // The file is not a database although the header looks like one.
        rusqlite::Error::SqliteFailure(error, _) if error.code == ErrorCode::NotADatabase => foreign_file(path),
        _ => translate(path.parent().unwrap_or(path), &e),
    })?;
    check_owner(path, application, version, tables)
}

/// Checks the owner of a database. One without the store's id is accepted only while it is empty: a crash before its tables were made
/// leaves it so.
fn check_owner(path: &Path, application: u32, version: u32, tables: bool) -> Result<(), StoreError> {
    match (application, version) {
        (APPLICATION_ID, 0) => Err(foreign_file(path)),
        (APPLICATION_ID, found) if found > SCHEMA => Err(StoreError::Newer { found, known: SCHEMA }),
        (APPLICATION_ID, _) => Ok(()),
        (0, 0) if !tables => Ok(()),
        _ => Err(foreign_file(path)),
    }
}

fn schema_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i32>(0)).map(i32::cast_unsigned)
}

pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

pub(super) fn io(path: &Path, error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Io(format!("{}: {error}", path.display())),
    }
}

fn foreign_file(path: &Path) -> StoreError {
    StoreError::Io(format!("{} is not a plexus store; it was left unchanged", path.display()))
}

/// Translates an SQLite error. `dir` is where to check for free space: SQLite reports "full" only as such, not for a quota or a failed
/// growth of its shared memory.
pub(super) fn translate(dir: &Path, error: &rusqlite::Error) -> StoreError {
    let failure = match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure,
        // A damaged page can have rows of other types than the store's.
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            return StoreError::Corrupt(error.to_string());
        }
        _ => return StoreError::Io(error.to_string()),
    };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(error.to_string()),
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen if is_disk_full(dir) => StoreError::Full,
        _ => StoreError::Io(error.to_string()),
    }
}

/// Returns whether the error means that an fsync or write to disk failed, after which the kernel may report the data as written.
pub(super) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(failure, _)
        if matches!(failure.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

fn is_disk_full(dir: &Path) -> bool {
    let path = dir.join(PROBE);
    let tried = private().create(true).open(&path).and_then(|mut file| {
        file.write_all(&[1; 4 * PAGE_SIZE as usize])?;
        file.sync_data()
    });
    let _ = std::fs::remove_file(&path);
    tried.is_err_and(|e| matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}
