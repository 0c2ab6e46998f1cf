//! The store in one SQLite database: write-ahead log, one writing connection, some reading ones. One file: it is one `impl Store`.

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::block::{self, Budget, Group, POSITION_MAX};
use super::search_words::{self, MARK_END, MARK_START};
use super::{
    Batch, BlockInfo, EventsAcross, ReadLimit, RequestPage, RequestQuery, RequestRow, RuntimeMark, SearchHit,
    SessionEntry, SessionRow, SpendQuery, SpendRow, Store, StoreError, TextRow, Trim, Usage,
};
use plexus_protocol::{
    Epoch, Event, Origin, Position, RequestId, RequestState, RunId, RuntimeId, SessionId, Timestamp,
};

mod across;
mod blocks;
mod checkpoint;
#[cfg(test)]
mod disk_tests;
mod epoch;
mod open;
mod readers;
mod repair;
mod reserve;
mod spending;
mod surfaces;
mod sweep;
mod targets;
#[cfg(test)]
mod tests;

use blocks::{BlockReader, SHORT_BLOCK};
use epoch::{HeadWitness, begin_epoch};
use readers::Readers;
pub use repair::{RepairReport, RepairedTable, repair};
use reserve::Reserve;
use sweep::Sweep;

/// Maximum number of sessions ever created in one store: 23 bits of the key. A commit that would create one more fails.
const SESSION_NO_MAX: i64 = (1 << 23) - 1;
/// Number of bits of a key that hold the position.
const POSITION_BITS: u32 = 40;
/// Number of commits between two writes of the head and the bytes of events. Opening counts the events since: this bounds that work.
const TALLY_EVERY: u32 = 256;
/// Minimum number of bytes that a commit adds to the write-ahead log beside its events: two pages.
const COMMIT_BYTES: u64 = 16 << 10;
/// Maximum size of the encoding buffer that is retained between commits, in bytes; a larger buffer is freed.
const SCRATCH_KEPT: usize = 1 << 20;
/// Number of words of context in a [`SearchHit::snippet`].
const SNIPPET_WORDS: u32 = 24;

/// A limit that allows everything.
const UNLIMITED: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };

/// The moment at which a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the commit: the commit survives `kill -9` of the gateway, but not a power cut. [`Batch::sync`] overrides it.
    #[default]
    Process,
    /// The disk has confirmed the commit (one fsync each).
    Power,
}

/// A store in an SQLite database in a directory, which it locks.
///
/// A commit is one transaction. Events are stored in blocks, one row each, whose key holds session and position, so that a session's events
/// are adjacent and need no further index. Deleted bytes are overwritten: trimming writes about as much as it removes, so trim in small
/// steps where space is short.
pub struct SqliteStore {
    // Fields are dropped in this order: readers close first, so that closing the writer can empty the write-ahead log; the lock is released
    // last.
    readers: Readers,
    writer: Mutex<Writer>,
    index: RwLock<Index>,
    head: AtomicU64,
    /// The widest block, in positions, among commits with overlapping blocks: see `update_lookback`.
    lookback: AtomicU64,
    blocks: BlockReader,
    blocks_read: AtomicU64,
    event_bytes: AtomicU64,
    /// `true` if the next commit also copies the write-ahead log into the database, which syncs both.
    checkpoint_due: AtomicBool,
    spending_since: Timestamp,
    epoch: Epoch,
    reserve: Reserve,
    witness: HeadWitness,
    dir: PathBuf,
    durability: Durability,
    _lock: open::Lock,
}

/// The part of a session's row that reads and commits need.
#[derive(Clone)]
struct KnownSession {
    no: i64,
    origin: Arc<Origin>,
    /// The last event removed by retention. Blocks up to it may still exist, but are not read.
    trimmed: Position,
}

/// The sessions of the store.
#[derive(Default)]
struct Index {
    by_id: HashMap<SessionId, KnownSession>,
    by_no: HashMap<i64, SessionId>,
    /// Deleted sessions whose bytes are not all removed yet.
    being_deleted: HashSet<SessionId>,
}

impl Index {
    fn insert(&mut self, known: KnownSession) {
        self.by_no.insert(known.no, known.origin.session_id.clone());
        self.by_id.insert(known.origin.session_id.clone(), known);
    }

    fn session(&self, no: i64) -> Option<&KnownSession> {
        self.by_id.get(self.by_no.get(&no)?)
    }
}

struct Writer {
    connection: Connection,
    /// The encoding buffer of blocks.
    scratch: Vec<u8>,
    /// Number of commits since the tally was written.
    commits_since_tally: u32,
    /// Number of bytes committed since the last checkpoint.
    bytes_since_checkpoint: u64,
    /// `true` if removed bytes may still be in the write-ahead log.
    truncate_wal: bool,
    /// Pending removals, next one first.
    sweeps: VecDeque<Sweep>,
    /// `true` if there may be free pages to return to the disk.
    return_free_pages: bool,
    /// `true` if an fsync failed: the kernel may then report unwritten data as written, so further commits are refused.
    sync_failed: bool,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.sync_failed {
            return;
        }
        // Commits are synced, then the boot mark is removed. If this fails the mark stays, which at worst makes clients reload after the
        // machine's next start.
        let _ = self.connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE); UPDATE meta SET unsynced_boot = NULL;",
        );
    }
}

impl SqliteStore {
    /// Opens the store in `dir`, which is created with mode 0700 if absent; the files have mode 0600. Takes time linear in the number of
    /// sessions, not of events.
    ///
    /// The epoch is made with the store. It is replaced if events that clients have seen may be lost, and their positions reused: if the
    /// machine stopped while commits were left to the kernel ([`Durability::Process`]), or the database is older than its last commit,
    /// because its write-ahead log was lost.
    ///
    /// On a full disk, the space that is reserved for answers is used to open the store.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if a store in `dir` is already open, in this process or another; [`StoreError::Newer`] if the schema is newer
    /// (nothing is changed); [`StoreError::Full`], [`StoreError::Io`].
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, StoreError> {
        let lock = open::claim(dir)?;
        let fresh = search_words::random_epoch()?;
        let fail = |e: rusqlite::Error| open::translate(dir, &e);
        let begin = || {
            let connection = open::open_writer(dir, &fresh)?;
            let meta = begin_epoch(&connection, durability, &fresh).map_err(fail)?;
            Ok((connection, meta))
        };
        let (connection, (mut epoch, mut head, mut event_bytes)) = match begin() {
            Err(StoreError::Full) if Reserve::release(dir).is_ok() => begin()?,
            result => result?,
        };
        let (index, sweeps) = load(&connection, &mut head, &mut event_bytes).map_err(fail)?;
        let witness = HeadWitness::begin(dir, &connection, head, (&mut epoch, &fresh)).map_err(fail)?;
        let spending_since = spending::since(&connection).map_err(fail)?;
        let lookback = connection.query_row("SELECT lookback FROM meta", [], |row| row.get(0)).map_err(fail)?;
        if durability == Durability::Process {
            connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(fail)?;
        }
        let epoch = Epoch::new(&epoch).map_err(|_| StoreError::Io("the store's epoch is damaged".into()))?;
        Ok(Self {
            readers: Readers::new(dir.join(open::DATABASE)),
            writer: Mutex::new(Writer {
                connection,
                scratch: Vec::new(),
                commits_since_tally: 0,
                bytes_since_checkpoint: 0,
                truncate_wal: false,
                sweeps,
                return_free_pages: true,
                sync_failed: false,
            }),
            index: RwLock::new(index),
            head: AtomicU64::new(head),
            lookback: AtomicU64::new(position(lookback).0),
            blocks: BlockReader::default(),
            blocks_read: AtomicU64::new(0),
            event_bytes: AtomicU64::new(event_bytes),
            checkpoint_due: AtomicBool::new(false),
            spending_since,
            epoch,
            reserve: Reserve::open(dir),
            witness,
            dir: dir.to_owned(),
            durability,
            _lock: lock,
        })
    }

    fn known(&self, session: &SessionId) -> Option<KnownSession> {
        self.index().by_id.get(session).cloned()
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write()
    }

    fn reading<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.readers.with(read).map_err(|e| open::translate(&self.dir, &e))
    }

    /// Runs `change` as one transaction; on an error it is rolled back.
    fn writing<T>(
        &self,
        writer: &mut MutexGuard<'_, Writer>,
        change: impl FnOnce(&Connection, &mut Vec<u8>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if writer.sync_failed {
            return Err(StoreError::Io(
                "an earlier fsync failed, so the disk cannot be trusted: nothing more is written until the gateway \
                 is restarted"
                    .into(),
            ));
        }
        let Writer { connection, scratch, sync_failed, .. } = &mut **writer;
        let done = (|| {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let value = change(connection, scratch)?;
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(value)
        })();
        done.map_err(|failure| {
            if !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
                *sync_failed = true;
            }
            match failure {
                Failure::Refused(error) => error,
                Failure::Sqlite(error) => {
                    *sync_failed |= open::is_failed_sync(&error);
                    open::translate(&self.dir, &error)
                }
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Writes a batch within a transaction. Returns the sessions that are new to the index, and the bytes of events written.
    fn apply(
        &self,
        connection: &Connection,
        scratch: &mut Vec<u8>,
        batch: &Batch,
        groups: &[Group<'_>],
    ) -> Result<(Vec<KnownSession>, u64), Failure> {
        let mut new_sessions: Vec<KnownSession> = Vec::new();
        for row in &batch.sessions {
            if let Some(known) = self.put_session(connection, row, &new_sessions)? {
                new_sessions.push(known);
            }
        }
        let mut bytes = 0;
        for group in groups {
            let known = self.find(group.session_id, &new_sessions).ok_or_else(|| no_session(group.session_id))?;
            block::encode(&group.events, scratch);
            let (key, last) = (key(known.no, group.first())?, number(group.last())?);
            bytes += scratch.len() as u64;
            blocks::put(connection, (key, last, group.at().as_millis()), scratch)?;
        }
        for row in &batch.requests {
            connection
                .prepare_cached(
                    "INSERT INTO requests (request_id, session_id, state, answer_key, body, closed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (request_id) DO UPDATE SET session_id = excluded.session_id, state = excluded.state,
                         answer_key = excluded.answer_key, body = excluded.body, closed_at = excluded.closed_at",
                )?
                .execute(params![
                    row.request_id.as_str(),
                    row.session_id.as_str(),
                    state_code(row.state),
                    row.answer_key,
                    row.body,
                    row.closed_at.map(Timestamp::as_millis)
                ])?;
        }
        for row in &batch.texts {
            let known = self.find(&row.session_id, &new_sessions).ok_or_else(|| no_session(&row.session_id))?;
            put_text(connection, known.no, row)?;
        }
        for change in &batch.prompts {
            let known = self.find(&change.session_id, &new_sessions).ok_or_else(|| no_session(&change.session_id))?;
            let run_id = change.run_id.as_str();
            match &change.content {
                Some(content) => connection
                    .prepare_cached("INSERT OR REPLACE INTO prompts (session_no, run_id, content) VALUES (?1, ?2, ?3)")?
                    .execute(params![known.no, run_id, content])?,
                None => connection
                    .prepare_cached("DELETE FROM prompts WHERE session_no = ?1 AND run_id = ?2")?
                    .execute(params![known.no, run_id])?,
            };
        }
        for change in &batch.surfaces {
            let known = self.find(&change.session_id, &new_sessions).ok_or_else(|| no_session(&change.session_id))?;
            surfaces::put(connection, known.no, change)?;
        }
        for change in &batch.spent {
            let known = self.find(&change.session_id, &new_sessions).ok_or_else(|| no_session(&change.session_id))?;
            spending::add(connection, known.no, change)?;
        }
        for (session, mark) in &batch.marks {
            let known = self.find(session, &new_sessions).ok_or_else(|| no_session(session))?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO marks (session_no, generation, heard) VALUES (?1, ?2, ?3)")?
                .execute(params![known.no, mark.generation.cast_signed(), mark.offset.cast_signed()])?;
        }
        targets::put(connection, batch)?;
        Ok((new_sessions, bytes))
    }

    /// Returns a session as seen by this transaction.
    fn find(&self, session: &SessionId, new_sessions: &[KnownSession]) -> Option<KnownSession> {
        let newest = new_sessions.iter().rev().find(|known| known.origin.session_id == *session).cloned();
        newest.or_else(|| self.known(session))
    }

    /// Writes a session's row; returns the session if it is new to the index.
    fn put_session(
        &self,
        connection: &Connection,
        row: &SessionRow,
        new_sessions: &[KnownSession],
    ) -> Result<Option<KnownSession>, Failure> {
        let as_of = number(row.as_of)?;
        let spare_from = row.spare_from.map(number).transpose()?;
        let origin = || {
            Arc::new(Origin {
                session_id: row.session_id.clone(),
                runtime_id: row.runtime_id.clone(),
                dialect: row.dialect.as_str().into(),
            })
        };
        if self.is_being_deleted(&row.session_id) {
            return Err(no_session(&row.session_id));
        }
        if let Some(KnownSession { no, origin: old, trimmed }) = self.find(&row.session_id, new_sessions) {
            connection
                .prepare_cached(
                    "UPDATE sessions SET runtime_id = ?2, dialect = ?3, as_of = ?4, spare_from = ?5, state = ?6
                     WHERE no = ?1",
                )?
                .execute(params![no, row.runtime_id.as_str(), row.dialect, as_of, spare_from, row.state])?;
            let same = old.runtime_id == row.runtime_id && *old.dialect == *row.dialect;
            return Ok((!same).then(|| KnownSession { no, origin: origin(), trimmed }));
        }
        connection
            .prepare_cached(
                "INSERT INTO sessions (session_id, runtime_id, dialect, as_of, spare_from, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                row.session_id.as_str(),
                row.runtime_id.as_str(),
                row.dialect,
                as_of,
                spare_from,
                row.state
            ])?;
        let no = connection.last_insert_rowid();
        if no > SESSION_NO_MAX {
            return Err(Failure::Refused(StoreError::Io(format!(
                "the store is full: it has the maximum of {SESSION_NO_MAX} sessions"
            ))));
        }
        Ok(Some(KnownSession { no, origin: origin(), trimmed: Position::START }))
    }

    /// Stores how far the blocks of one commit overlap. Most commits have no overlap: a session's events of one commit are consecutive.
    fn update_lookback(&self, connection: &Connection, groups: &[Group<'_>]) -> rusqlite::Result<u64> {
        let (mut end, mut crossed, mut widest) = (Position::START, false, 0);
        for group in groups {
            crossed |= group.first() <= end;
            end = end.max(group.last());
            widest = widest.max(group.last().0 - group.first().0);
        }
        let known = self.lookback.load(Ordering::Relaxed);
        if !crossed || widest <= known {
            return Ok(known);
        }
        connection.execute("UPDATE meta SET lookback = ?1", [as_sql(Position(widest))])?;
        Ok(widest)
    }
}

impl Store for SqliteStore {
    fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }

    fn head(&self) -> Position {
        Position(self.head.load(Ordering::Acquire))
    }

    fn commit_is_quick(&self) -> bool {
        self.durability == Durability::Process && !self.checkpoint_due.load(Ordering::Relaxed)
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut writer = self.lock();
        let groups = block::group(&batch.events, self.head())?;
        let head = batch.events.last().map_or(self.head(), |event| event.position);
        let event_bytes = self.event_bytes.load(Ordering::Relaxed);
        let tally = writer.commits_since_tally + 1 >= TALLY_EVERY;
        // The setting belongs to the connection and cannot change within a transaction.
        let raise = batch.sync && self.durability == Durability::Process;
        if raise {
            let result = writer.connection.execute_batch("PRAGMA synchronous = FULL");
            result.map_err(|e| open::translate(&self.dir, &e))?;
        }
        let mut write = || {
            self.writing(&mut writer, |connection, scratch| {
                let (new_sessions, bytes) = self.apply(connection, scratch, batch, &groups)?;
                if tally {
                    write_tally(connection, head, event_bytes + bytes)?;
                }
                Ok((new_sessions, bytes, self.update_lookback(connection, &groups)?))
            })
        };
        let done = match write() {
            Err(StoreError::Full) if batch.reserved => self.reserve.release_for(write),
            done => done,
        };
        if raise {
            // If this fails, later commits are only slower.
            let _ = writer.connection.execute_batch("PRAGMA synchronous = NORMAL");
        }
        writer.scratch.clear();
        writer.scratch.shrink_to(SCRATCH_KEPT);
        let (new_sessions, bytes, lookback) = done?;
        if !new_sessions.is_empty() {
            let mut index = self.index_mut();
            new_sessions.into_iter().for_each(|known| index.insert(known));
        }
        // Stored before the head: a reader of these events must know how far to look back.
        self.lookback.store(lookback, Ordering::Release);
        self.event_bytes.store(event_bytes + bytes, Ordering::Relaxed);
        self.head.store(head.0, Ordering::Release);
        self.witness.note(head);
        if tally {
            self.reserve.refill();
        }
        writer.commits_since_tally = if tally { 0 } else { writer.commits_since_tally + 1 };
        self.maintain(&mut writer, bytes + COMMIT_BYTES, false);
        Ok(())
    }

    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        // Read first: events that are committed during the read are not returned, since their commit may not have finished.
        let head = self.head();
        let Some(KnownSession { no, origin, trimmed }) = self.known(session) else { return Ok(Vec::new()) };
        let after = after.max(trimmed);
        if after >= head {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        let damaged = self.reading(|connection| {
            // From the last block that begins at or before the first requested event, or else from the session's first block.
            let mut statement = connection.prepare_cached(
                "SELECT key, last, CASE WHEN length(block) <= ?4 THEN block END FROM events
                 WHERE key >= ifnull((SELECT max(key) FROM events WHERE key BETWEEN ?1 AND ?2), ?1) AND key <= ?3
                 ORDER BY key",
            )?;
            let start = no << POSITION_BITS;
            let through = start | as_sql(Position(POSITION_MAX));
            let mut rows = statement.query(params![start, start | as_sql(after.next()), through, SHORT_BLOCK])?;
            let mut budget = Budget::new(limit);
            while !budget.spent()
                && let Some(row) = rows.next()?
            {
                let (key, last) = (row.get::<_, i64>(0)?, position(row.get(1)?));
                let first = position(key - start);
                if first > head {
                    break;
                }
                if last <= after {
                    continue;
                }
                self.blocks_read.fetch_add(1, Ordering::Relaxed);
                let block = self.blocks.get(connection, key, row.get_ref(2)?)?;
                let range = (after, head);
                if block::decode(&block, &origin, first, range, &mut budget, &mut events).is_err() {
                    if !events.is_empty() {
                        break;
                    }
                    let next = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()?;
                    let resume_at = next.map_or(head, |key| Position(position(key - start).0.saturating_sub(1)));
                    return Ok(Some((first, resume_at)));
                }
            }
            Ok(None)
        })?;
        match damaged {
            Some((position, resume_at)) => {
                Err(StoreError::Damaged { session_id: session.clone(), position, resume_at })
            }
            None => Ok(events),
        }
    }

    fn read_before(&self, session: &SessionId, before: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let through = self.head().min(Position(before.0.saturating_sub(1)));
        let Some(KnownSession { no, origin, trimmed }) = self.known(session) else { return Ok(Vec::new()) };
        let mut newest: Vec<Event> = Vec::new();
        let damaged = self.reading(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, CASE WHEN length(block) <= ?3 THEN block END FROM events WHERE key BETWEEN ?1 AND ?2
                 ORDER BY key DESC",
            )?;
            let start = no << POSITION_BITS;
            let mut rows =
                statement.query(params![start | as_sql(trimmed.next()), start | as_sql(through), SHORT_BLOCK])?;
            let mut budget = Budget::new(limit);
            while !budget.spent()
                && let Some(row) = rows.next()?
            {
                let key: i64 = row.get(0)?;
                let first = position(key - start);
                let block = self.blocks.get(connection, key, row.get_ref(1)?)?;
                let (mut unlimited, mut events) = (Budget::new(UNLIMITED), Vec::new());
                let range = (trimmed, through);
                if block::decode(&block, &origin, first, range, &mut unlimited, &mut events).is_err() {
                    if newest.is_empty() {
                        return Ok(Some((first, Position(first.0.saturating_sub(1)))));
                    }
                    break;
                }
                newest.extend(events.into_iter().rev().take_while(|event| !budget.spent() && budget.take(event)));
            }
            Ok(None)
        })?;
        if let Some((position, resume_at)) = damaged {
            return Err(StoreError::Damaged { session_id: session.clone(), position, resume_at });
        }
        newest.reverse();
        Ok(newest)
    }

    fn read_across(
        &self,
        matches: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError> {
        self.across(matches, after, limit)
    }

    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError> {
        self.reading(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("{SESSION_ENTRY} WHERE doomed = 0 ORDER BY sessions.no"))?;
            statement.query_map([], session_entry)?.collect()
        })
    }

    fn session(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        let Some(KnownSession { no, .. }) = self.known(session) else { return Ok(None) };
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(&format!("{SESSION_ENTRY} WHERE sessions.no = ?1"))?;
            statement.query_row([no], session_entry).optional()
        })
    }

    fn holds(&self, session: &SessionId) -> bool {
        self.index().by_id.contains_key(session)
    }

    fn prompts(&self, session: &SessionId) -> Result<Vec<(RunId, Vec<u8>)>, StoreError> {
        let Some(KnownSession { no, .. }) = self.known(session) else { return Ok(Vec::new()) };
        self.reading(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT run_id, content FROM prompts WHERE session_no = ?1")?;
            statement.query_map([no], |row| Ok((RunId::trusted(text(row, 0)?), row.get(1)?)))?.collect()
        })
    }

    fn surfaces(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(KnownSession { no, .. }) = self.known(session) else { return Ok(Vec::new()) };
        self.reading(|connection| surfaces::bodies(connection, no))
    }

    fn sessions_with_surfaces(&self) -> Result<Vec<SessionId>, StoreError> {
        self.reading(surfaces::sessions)
    }

    fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.mark_for_deletion(session)
    }

    fn is_being_deleted(&self, session: &SessionId) -> bool {
        self.index().being_deleted.contains(session)
    }

    fn sweep(&self) -> Result<bool, StoreError> {
        self.sweep_step()
    }

    fn retire(&self, before: Option<Timestamp>, max: usize) -> Result<bool, StoreError> {
        self.retire_step(before, max)
    }

    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        let row = self.reading(|connection| {
            let sql = format!("SELECT {REQUEST_COLUMNS} FROM requests WHERE request_id = ?1");
            connection.prepare_cached(&sql)?.query_row([request.as_str()], request_row).optional()
        })?;
        Ok(row.map(|(_, row)| row).filter(|row| !self.is_being_deleted(&row.session_id)))
    }

    fn requests(&self, query: RequestQuery<'_>) -> Result<RequestPage, StoreError> {
        // The literal 1 is `Open`: SQLite uses a partial index only for a literal.
        let state_filter = match query.state {
            None => "?1 IS NULL",
            Some(RequestState::Open) => "?1 IS NOT NULL AND state = 1",
            Some(_) => "state = ?1",
        };
        let session_filter = if query.session.is_some() { "session_id = ?2" } else { "?2 IS NULL" };
        let before = query.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let mut rows: Vec<(u64, RequestRow)> = self.reading(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {REQUEST_COLUMNS} FROM requests WHERE {state_filter} AND {session_filter} AND no < ?3
                 ORDER BY no DESC LIMIT ?4"
            ))?;
            // One row more than requested shows whether there is a next page.
            let max = count(query.limit.saturating_add(1));
            let params = params![query.state.map(state_code), query.session.map(SessionId::as_str), before, max];
            statement.query_map(params, request_row)?.collect()
        })?;
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next = rows.last().map(|(no, _)| *no).filter(|_| more);
        let index = self.index();
        rows.retain(|(_, row)| !index.being_deleted.contains(&row.session_id));
        Ok(RequestPage { rows, next })
    }

    fn search(&self, search_text: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError> {
        let Some(query) = search_words::match_expression(search_text) else { return Ok(Vec::new()) };
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT sessions.session_id, passages.position, passages.role, snippet(texts, 0, ?2, ?3, '…', ?4)
                 FROM texts JOIN passages ON passages.id = texts.rowid JOIN sessions ON sessions.no = passages.session_no
                 WHERE texts MATCH ?1 AND sessions.doomed = 0 AND passages.position > sessions.trimmed ORDER BY texts.rank LIMIT ?5",
            )?;
            let params = params![query, MARK_START, MARK_END, SNIPPET_WORDS, count(limit)];
            let hits = statement.query_map(params, |row| {
                Ok(SearchHit {
                    session_id: SessionId::trusted(text(row, 0)?),
                    position: position(row.get(1)?),
                    role: row.get(2)?,
                    snippet: row.get(3)?,
                })
            })?;
            hits.collect()
        })
    }

    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection.prepare_cached("SELECT body FROM devices ORDER BY rowid")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection.prepare_cached("SELECT name, body FROM pushes ORDER BY name")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    fn spending(&self, query: SpendQuery<'_>) -> Result<Vec<SpendRow>, StoreError> {
        self.spending_rows(query)
    }

    fn spending_since(&self) -> Timestamp {
        self.spending_since
    }

    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError> {
        self.mark_trimmed(trims)
    }

    fn oldest(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError> {
        self.oldest_blocks(after, limit)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        Ok(Usage {
            event_bytes: self.event_bytes.load(Ordering::Relaxed),
            disk_bytes: ["", "-wal", "-shm"].iter().map(|suffix| self.file_bytes(suffix)).sum(),
            blocks_read: self.blocks_read.load(Ordering::Relaxed),
        })
    }
}

/// The columns of a [`SessionEntry`], in the order of [`session_entry`].
const SESSION_ENTRY: &str = "
    SELECT session_id, runtime_id, dialect, state, as_of, spare_from, trimmed, base,
        (SELECT last FROM events WHERE key BETWEEN no << 40 AND no << 40 | 0xffffffffff
         ORDER BY key DESC LIMIT 1), generation, heard
    FROM sessions LEFT JOIN marks ON marks.session_no = sessions.no";
/// The columns of a [`RequestRow`], in the order of [`request_row`].
const REQUEST_COLUMNS: &str = "request_id, session_id, state, body, answer_key, closed_at, no";

fn session_entry(row: &Row<'_>) -> rusqlite::Result<SessionEntry> {
    let trimmed = position(row.get(6)?);
    Ok(SessionEntry {
        row: SessionRow {
            session_id: SessionId::trusted(text(row, 0)?),
            runtime_id: RuntimeId::trusted(text(row, 1)?),
            dialect: row.get(2)?,
            state: row.get(3)?,
            as_of: position(row.get(4)?),
            spare_from: row.get::<_, Option<i64>>(5)?.map(position),
        },
        last: row.get::<_, Option<i64>>(8)?.map_or(trimmed, position).max(trimmed),
        trimmed,
        base: row.get(7)?,
        mark: match (row.get::<_, Option<i64>>(9)?, row.get::<_, Option<i64>>(10)?) {
            (Some(generation), Some(heard)) => {
                Some(RuntimeMark { generation: generation.cast_unsigned(), offset: heard.cast_unsigned() })
            }
            _ => None,
        },
    })
}

fn no_session(session: &SessionId) -> Failure {
    Failure::Refused(StoreError::NoSession(session.clone()))
}

/// The reason why a transaction was rolled back.
enum Failure {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Loads the sessions and their pending removals, and brings head and bytes up to date: by seeks for each session, never by a scan.
fn load(connection: &Connection, head: &mut u64, bytes: &mut u64) -> rusqlite::Result<(Index, VecDeque<Sweep>)> {
    let tallied = as_sql(Position(*head));
    let mut statement = connection.prepare(
        "SELECT no, session_id, runtime_id, dialect, trimmed,
             (SELECT last FROM events WHERE key BETWEEN no << 40 AND no << 40 | 0xffffffffff ORDER BY key DESC LIMIT 1),
             (SELECT sum(length(block)) FROM events WHERE key > no << 40 | ?1 AND key <= no << 40 | 0xffffffffff),
             doomed,
             EXISTS (SELECT 1 FROM events WHERE key BETWEEN no << 40 AND no << 40 | trimmed)
             OR EXISTS (SELECT 1 FROM passages WHERE session_no = no AND position <= trimmed)
         FROM sessions",
    )?;
    let mut rows = statement.query([tallied])?;
    let (mut index, mut sweeps) = (Index::default(), VecDeque::new());
    while let Some(row) = rows.next()? {
        let trimmed = position(row.get(4)?);
        let last = row.get::<_, Option<i64>>(5)?.map_or(trimmed, position).max(trimmed);
        *head = (*head).max(last.0);
        *bytes += position(row.get::<_, Option<i64>>(6)?.unwrap_or(0)).0;
        let origin = Origin {
            session_id: SessionId::trusted(text(row, 1)?),
            runtime_id: RuntimeId::trusted(text(row, 2)?),
            dialect: text(row, 3)?,
        };
        let (no, deleted, left) = (row.get(0)?, row.get::<_, bool>(7)?, row.get::<_, bool>(8)?);
        if deleted || left {
            let through = if deleted { Position(POSITION_MAX) } else { trimmed };
            sweeps.push_back(Sweep { session_id: origin.session_id.clone(), no, through, deleted });
        }
        if deleted {
            index.being_deleted.insert(origin.session_id);
        } else {
            index.insert(KnownSession { no, origin: Arc::new(origin), trimmed });
        }
    }
    Ok((index, sweeps))
}

fn write_tally(connection: &Connection, head: Position, event_bytes: u64) -> rusqlite::Result<()> {
    let bytes = i64::try_from(event_bytes).unwrap_or(i64::MAX);
    connection.prepare_cached("UPDATE meta SET head = ?1, event_bytes = ?2")?.execute(params![as_sql(head), bytes])?;
    Ok(())
}

fn put_text(connection: &Connection, session_no: i64, row: &TextRow) -> Result<(), Failure> {
    connection
        .prepare_cached("INSERT INTO passages (session_no, position, role) VALUES (?1, ?2, ?3)")?
        .execute(params![session_no, number(row.position)?, row.role])?;
    connection
        .prepare_cached("INSERT INTO texts (rowid, text) VALUES (?1, ?2)")?
        .execute(params![connection.last_insert_rowid(), search_words::without_marks(&row.text)])?;
    Ok(())
}

fn request_row(row: &Row<'_>) -> rusqlite::Result<(u64, RequestRow)> {
    let code: i64 = row.get(2)?;
    let state = state_from_code(code).ok_or(rusqlite::Error::IntegralValueOutOfRange(2, code))?;
    let request = RequestRow {
        request_id: RequestId::trusted(text(row, 0)?),
        session_id: SessionId::trusted(text(row, 1)?),
        state,
        body: row.get(3)?,
        answer_key: row.get(4)?,
        closed_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
    };
    Ok((row.get::<_, i64>(6)?.cast_unsigned(), request))
}

/// Returns the stored number of a state; never reused for another state.
const fn state_code(state: RequestState) -> i64 {
    match state {
        RequestState::Open => 1,
        RequestState::Answered => 2,
        RequestState::Expired => 3,
        RequestState::Withdrawn => 4,
        RequestState::Orphaned => 5,
    }
}

const fn state_from_code(code: i64) -> Option<RequestState> {
    Some(match code {
        1 => RequestState::Open,
        2 => RequestState::Answered,
        3 => RequestState::Expired,
        4 => RequestState::Withdrawn,
        5 => RequestState::Orphaned,
        _ => return None,
    })
}

/// Returns a text column as a shared string.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Arc<str>> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

/// Converts a caller's position to an SQL integer.
fn number(position: Position) -> Result<i64, Failure> {
    if position.0 > POSITION_MAX {
        return Err(Failure::Refused(StoreError::Io(format!("position {position} is past what the store can keep"))));
    }
    Ok(as_sql(position))
}

fn key(no: i64, position: Position) -> Result<i64, Failure> {
    Ok(no << POSITION_BITS | number(position)?)
}

/// Converts a position to an SQL integer, saturating.
fn as_sql(position: Position) -> i64 {
    position.0.min(POSITION_MAX).cast_signed()
}

fn position(number: i64) -> Position {
    Position(u64::try_from(number).unwrap_or(0))
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
