//! Removal of sessions, old events and closed requests. First they are marked in one small transaction, after which they are no longer
//! read; then their bytes are removed in small steps, so that a commit waits for at most one step; then free pages are returned to the
//! disk. Removals that a crash interrupted are found when the store is opened.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, params};

use super::{
    BlockInfo, KnownSession, POSITION_BITS, POSITION_MAX, Position, SessionId, SqliteStore, StoreError, Timestamp,
    Trim, Writer, as_sql, count, number, position, write_tally,
};
use super::{open, spending};

/// Maximum number of blocks removed by one step.
const STEP_BLOCKS: usize = 64;
/// Approximate size of the blocks removed by one step, in bytes; a block is never split.
const STEP_BYTES: u64 = 1 << 20;
/// Number of passages removed by one step: each costs an index change for each of its words.
const STEP_PASSAGES: usize = 4;
/// Number of requests removed by one step.
const STEP_REQUESTS: usize = 128;
/// Number of prompts removed by one step.
const STEP_PROMPTS: usize = 4;
/// Number of rows of surfaces removed by one step.
const STEP_SURFACES: usize = 4;
/// Number of rows of spending removed by one step.
const STEP_SPENDING: usize = 256;
/// Number of pages returned to the disk by one step (2 MiB).
const STEP_PAGES: u32 = 256;
/// Number of free pages retained for later commits (4 MiB).
const PAGES_KEPT: u32 = 512;

/// A pending removal in one session.
#[derive(Clone)]
pub(super) struct Sweep {
    pub(super) session_id: SessionId,
    pub(super) no: i64,
    /// The position up to which blocks and texts are removed.
    pub(super) through: Position,
    /// `true` if everything else is removed, too.
    pub(super) deleted: bool,
}

/// The result of one step.
struct Step {
    freed: u64,
    done: bool,
}

impl SqliteStore {
    pub(super) fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut writer = self.lock();
        let Some(KnownSession { no, .. }) = self.known(session) else { return Ok(false) };
        self.writing(&mut writer, |connection, _| {
            connection.prepare_cached("UPDATE sessions SET doomed = 1 WHERE no = ?1")?.execute([no])?;
            Ok(())
        })?;
        let mut index = self.index_mut();
        index.by_id.remove(session);
        index.by_no.remove(&no);
        index.being_deleted.insert(session.clone());
        drop(index);
        writer.sweeps.retain(|sweep| sweep.no != no);
        let through = Position(POSITION_MAX);
        writer.sweeps.push_back(Sweep { session_id: session.clone(), no, through, deleted: true });
        Ok(true)
    }

    pub(super) fn mark_trimmed(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError> {
        let mut writer = self.lock();
        let marked = self.writing(&mut writer, |connection, _| {
            let mut marked = Vec::new();
            for trim in trims {
                let Some(KnownSession { no, trimmed, .. }) = self.known(&trim.session_id) else { continue };
                let spare_from: Option<i64> = connection
                    .prepare_cached("SELECT spare_from FROM sessions WHERE no = ?1")?
                    .query_row([no], |row| row.get(0))?;
                let last_removable = spare_from.map_or(POSITION_MAX, |from| position(from).0.saturating_sub(1));
                let through = as_sql(trim.through.min(Position(last_removable)));
                let start = no << POSITION_BITS;
                let last: Option<i64> = connection
                    .prepare_cached(
                        "SELECT last FROM events WHERE key > ?1 AND key <= ?2 AND last <= ?3 ORDER BY key DESC LIMIT 1",
                    )?
                    .query_row(params![start | as_sql(trimmed), start | through, through], |row| row.get(0))
                    .optional()?;
                let Some(last) = last else { continue };
                connection
                    .prepare_cached("UPDATE sessions SET trimmed = ?2, base = ifnull(?3, base) WHERE no = ?1")?
                    .execute(params![no, number(position(last))?, trim.base])?;
                let session_id = trim.session_id.clone();
                marked.push(Sweep { session_id, no, through: position(last), deleted: false });
            }
            Ok(marked)
        })?;
        let mut index = self.index_mut();
        for sweep in &marked {
            if let Some(known) = index.by_id.get_mut(&sweep.session_id) {
                known.trimmed = sweep.through;
            }
        }
        drop(index);
        let lost = marked.iter().map(|sweep| (sweep.session_id.clone(), sweep.through)).collect();
        writer.sweeps.extend(marked);
        Ok(lost)
    }

    pub(super) fn sweep_step(&self) -> Result<bool, StoreError> {
        let mut writer = self.lock();
        let Some(sweep) = writer.sweeps.front().cloned() else { return self.return_free_pages(&mut writer) };
        let (head, event_bytes) = (self.head.load(Ordering::Relaxed), self.event_bytes.load(Ordering::Relaxed));
        let step = self.writing(&mut writer, |connection, _| {
            let step = step(connection, &sweep)?;
            // The removed session may have held the head, which must not decrease.
            write_tally(connection, Position(head), event_bytes.saturating_sub(step.freed))?;
            Ok(step)
        })?;
        self.event_bytes.store(event_bytes.saturating_sub(step.freed), Ordering::Relaxed);
        writer.commits_since_tally = 0;
        if step.done {
            writer.sweeps.pop_front();
            writer.return_free_pages = true;
            // The write-ahead log still holds pages with removed bytes.
            writer.truncate_wal = true;
            self.maintain(&mut writer, step.freed, sweep.deleted);
            if sweep.deleted {
                self.index_mut().being_deleted.remove(&sweep.session_id);
            }
        } else {
            self.maintain(&mut writer, step.freed, false);
        }
        Ok(true)
    }

    /// Returns free pages to the disk, one step of them.
    fn return_free_pages(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        if !writer.return_free_pages || writer.sync_failed {
            return Ok(false);
        }
        let connection = &writer.connection;
        let result = (|| {
            let free: u32 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
            if free <= PAGES_KEPT || !open::can_return_free_pages(connection)? {
                return Ok(false);
            }
            let pages = STEP_PAGES.min(free - PAGES_KEPT);
            // Each result row stands for one returned page: all rows have to be read.
            let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(true)
        })();
        let more = result.map_err(|error: rusqlite::Error| open::translate(&self.dir, &error))?;
        if !more {
            writer.return_free_pages = false;
            // The file shrinks when the write-ahead log is copied into it.
            writer.truncate_wal = true;
        }
        self.maintain(writer, u64::from(STEP_PAGES) << 13, !more);
        Ok(more)
    }

    pub(super) fn retire_step(&self, before: Option<Timestamp>, max: usize) -> Result<bool, StoreError> {
        let mut writer = self.lock();
        let removed = self.writing(&mut writer, |connection, _| {
            // The newest of those beyond `max`; it and all older ones are removed.
            let excess: Option<i64> = connection
                .prepare_cached(
                    "SELECT closed_at FROM requests WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT 1 OFFSET ?1",
                )?
                .query_row([count(max)], |row| row.get(0))
                .optional()?;
            let through = before.map(|before| before.as_millis().saturating_sub(1)).max(excess);
            let Some(through) = through else { return Ok(0) };
            let removed = connection
                .prepare_cached(
                    "DELETE FROM requests WHERE no IN (SELECT no FROM requests
                         WHERE closed_at IS NOT NULL AND closed_at <= ?1 ORDER BY closed_at LIMIT ?2)",
                )?
                .execute(params![through, count(STEP_REQUESTS)])?;
            Ok(removed)
        })?;
        if removed > 0 {
            writer.return_free_pages = true;
            self.maintain(&mut writer, 0, false);
        }
        Ok(removed >= STEP_REQUESTS)
    }

    pub(super) fn oldest_blocks(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, last, at, length(block) FROM events WHERE key & 1099511627775 > ?1
                 ORDER BY key & 1099511627775",
            )?;
            let mut rows = statement.query([as_sql(after)])?;
            let index = self.index();
            let mut blocks = Vec::new();
            while blocks.len() < limit
                && let Some(row) = rows.next()?
            {
                let (key, last): (i64, _) = (row.get(0)?, position(row.get(1)?));
                let Some(known) = index.session(key >> POSITION_BITS).filter(|known| last > known.trimmed) else {
                    continue;
                };
                blocks.push(BlockInfo {
                    session_id: known.origin.session_id.clone(),
                    first: position(key & as_sql(Position(POSITION_MAX))),
                    last,
                    at: Timestamp::from_millis(row.get(2)?),
                    bytes: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                });
            }
            Ok(blocks)
        })
    }
}

/// Removes one step's worth of blocks, or else of the other rows.
fn step(connection: &Connection, sweep: &Sweep) -> rusqlite::Result<Step> {
    let (start, through) = (sweep.no << POSITION_BITS, as_sql(sweep.through));
    let (mut freed, mut last_key) = (0u64, None);
    {
        let mut blocks = connection.prepare_cached(
            "SELECT key, length(block) FROM events WHERE key BETWEEN ?1 AND ?2 AND last <= ?3 ORDER BY key LIMIT ?4",
        )?;
        let mut rows = blocks.query(params![start, start | through, through, count(STEP_BLOCKS)])?;
        while freed < STEP_BYTES
            && let Some(row) = rows.next()?
        {
            last_key = Some(row.get::<_, i64>(0)?);
            freed += u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        }
    }
    if let Some(last_key) = last_key {
        connection
            .prepare_cached("DELETE FROM events WHERE key BETWEEN ?1 AND ?2 AND last <= ?3")?
            .execute(params![start, last_key, through])?;
        return Ok(Step { freed, done: false });
    }
    let passages: Vec<i64> = connection
        .prepare_cached("SELECT id FROM passages WHERE session_no = ?1 AND position <= ?2 LIMIT ?3")?
        // A text may be stored later than its event: of a deleted session all texts are removed.
        .query_map(params![sweep.no, if sweep.deleted { i64::MAX } else { through }, count(STEP_PASSAGES)], |row| {
            row.get(0)
        })?
        .collect::<rusqlite::Result<_>>()?;
    for id in &passages {
        connection.prepare_cached("DELETE FROM texts WHERE rowid = ?1")?.execute([id])?;
        connection.prepare_cached("DELETE FROM passages WHERE id = ?1")?.execute([id])?;
    }
    if !passages.is_empty() || !sweep.deleted {
        return Ok(Step { freed: 0, done: passages.is_empty() });
    }
    let requests = connection
        .prepare_cached("DELETE FROM requests WHERE no IN (SELECT no FROM requests WHERE session_id = ?1 LIMIT ?2)")?
        .execute(params![sweep.session_id.as_str(), count(STEP_REQUESTS)])?;
    let prompts = connection
        .prepare_cached(
            "DELETE FROM prompts WHERE rowid IN (SELECT rowid FROM prompts WHERE session_no = ?1 LIMIT ?2)",
        )?
        .execute(params![sweep.no, count(STEP_PROMPTS)])?;
    let surfaces = connection
        .prepare_cached(
            "DELETE FROM surfaces WHERE rowid IN (SELECT rowid FROM surfaces WHERE session_no = ?1 LIMIT ?2)",
        )?
        .execute(params![sweep.no, count(STEP_SURFACES)])?;
    let spending = spending::remove(connection, sweep.no, STEP_SPENDING)?;
    if requests + prompts + surfaces + spending > 0 {
        return Ok(Step { freed: 0, done: false });
    }
    connection.prepare_cached("DELETE FROM marks WHERE session_no = ?1")?.execute([sweep.no])?;
    connection.prepare_cached("DELETE FROM sessions WHERE no = ?1")?.execute([sweep.no])?;
    Ok(Step { freed: 0, done: true })
}
