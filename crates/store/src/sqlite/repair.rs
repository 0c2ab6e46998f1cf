//! Repair of a damaged database: all readable data is copied into a new one, and the damaged files are retained.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params, params_from_iter};

use super::epoch::HeadWitness;
use super::{StoreError, as_sql, open, search_words};
use plexus_protocol::{Position, Timestamp};

/// The folder in which the new database is made.
const WORK: &str = "repair";
/// The tables, each with the column that defines the order of reading.
const TABLES: [(&str, &str); 11] = [
    ("sessions", "no"),
    ("events", "key"),
    ("requests", "no"),
    ("passages", "id"),
    ("texts", "rowid"),
    ("devices", "rowid"),
    ("marks", "session_no"),
    ("pushes", "rowid"),
    ("prompts", "rowid"),
    ("surfaces", "rowid"),
    ("spending", "span"),
];

/// The rows of one table that a repair copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairedTable {
    /// The name of the table.
    pub name: &'static str,
    /// The number of rows that were copied.
    pub rows: u64,
    /// The number of ranges that could not be read. The number of rows in them is not known.
    pub damaged: u64,
}

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// The folder with the damaged files.
    pub copies: PathBuf,
    /// The tables.
    pub tables: Vec<RepairedTable>,
    /// The number of blocks of events that were left out, because the row of their session could not be read.
    pub without_session: u64,
}

/// Makes a new database in `dir` from all readable data of the present one, whose files are retained in a folder beside it. The new
/// database has a new epoch: clients read everything again. Returns `None`, and changes nothing, if SQLite finds no damage.
///
/// Needs about as much free space as the size of the database. After an interruption, the database is either repaired or unchanged,
/// possibly without its write-ahead log; the retained files have all of it.
///
/// # Errors
/// [`StoreError::Locked`] while a gateway runs, [`StoreError::Full`], [`StoreError::Io`]; then the database is unchanged.
pub fn repair(dir: &Path) -> Result<Option<RepairReport>, StoreError> {
    let _lock = open::lock(dir)?;
    let path = dir.join(open::DATABASE);
    let fail = |error: rusqlite::Error| open::translate(dir, &error);
    let disk = |error: std::io::Error| open::io(&path, &error);
    let old = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fail)?;
    old.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    let sound = old.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    if sound.is_ok_and(|found| found == "ok") {
        return Ok(None);
    }

    let tables = old.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
    if !tables.is_ok_and(|tables| tables > 0) {
        return Err(StoreError::Io(format!(
            "the beginning of {} is damaged, and nothing can be read; `.recover` of the sqlite3 program may find more",
            path.display()
        )));
    }

    let work = dir.join(WORK);
    remove_all(&work).map_err(disk)?;
    let epoch = search_words::random_epoch()?;
    fs::create_dir(&work).map_err(disk)?;
    let new = open::open_writer(&work, &epoch)?;
    let copied = new.execute_batch("BEGIN").and_then(|()| {
        let tables = TABLES.iter().map(|(name, key)| salvage(&old, &new, name, key)).collect::<Result<Vec<_>, _>>()?;
        let without_session =
            new.execute("DELETE FROM events WHERE key >> 40 NOT IN (SELECT no FROM sessions)", [])? as u64;
        complete(&old, &new, HeadWitness::open(dir).1)?;
        new.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok((tables, without_session))
    });
    let (tables, without_session) = copied.map_err(|error| open::translate(&work, &error))?;
    new.close().map_err(|(_, error)| fail(error))?;
    old.close().map_err(|(_, error)| fail(error))?;

    let copies = dir.join(format!("damaged-{}", Timestamp::from(SystemTime::now()).as_millis()));
    fs::create_dir(&copies).map_err(disk)?;
    let files = ["", "-wal"].map(|suffix| format!("{}{suffix}", open::DATABASE));
    for file in &files {
        let (from, to) = (dir.join(file), copies.join(file));
        match fs::hard_link(&from, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // The file system does not support links.
            Err(_) => drop(fs::copy(&from, &to).map_err(disk)?),
            Ok(()) => {}
        }
    }
    // The old write-ahead log would be applied to the new database.
    for suffix in ["-wal", "-shm"] {
        remove_file(&dir.join(format!("{}{suffix}", open::DATABASE))).map_err(disk)?;
    }
    fs::rename(work.join(open::DATABASE), &path).map_err(disk)?;
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(disk)?;
    remove_all(&work).map_err(disk)?;
    Ok(Some(RepairReport { copies, tables, without_session }))
}

/// Copies the rows of a table, except the ranges that cannot be read.
fn salvage(old: &Connection, new: &Connection, table: &'static str, key: &str) -> rusqlite::Result<RepairedTable> {
    let mut found = RepairedTable { name: table, rows: 0, damaged: 0 };
    let Some(rows) = TableRows::prepare(old, new, table, key)? else {
        return Ok(RepairedTable { damaged: 1, ..found });
    };
    let mut from = 0;
    while let Some(last) = rows.copy(old, new, (from, i64::MAX), "ASC", &mut found.rows)? {
        found.damaged += 1;
        let after = last.max(from).saturating_add(1);
        let Some(next) = rows.readable_from(old, after) else { break };
        // The rows between the damage and the next readable row.
        rows.copy(old, new, (after, next.saturating_sub(1)), "DESC", &mut found.rows)?;
        from = next;
    }
    Ok(found)
}

/// The statements that copy a table.
struct TableRows<'a> {
    table: &'a str,
    key: &'a str,
    columns: String,
    insert: String,
}

impl<'a> TableRows<'a> {
    /// Prepares the statements for a table; returns `None` if its definition cannot be read.
    fn prepare(old: &Connection, new: &Connection, table: &'a str, key: &'a str) -> rusqlite::Result<Option<Self>> {
        let column_names = |connection: &Connection| {
            let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        };
        let Ok(existing) = column_names(old) else { return Ok(None) };
        // A database of an older version lacks some columns.
        let mut columns: Vec<String> = column_names(new)?.into_iter().filter(|name| existing.contains(name)).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        if table == "texts" {
            columns.insert(0, "rowid".into());
        }
        let placeholders = vec!["?"; columns.len()].join(", ");
        let columns = columns.join(", ");
        let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({placeholders})");
        Ok(Some(Self { table, key, columns, insert }))
    }

    /// Copies the rows of a range until one cannot be read. Returns the key of the row before it, or -1; `None` if the whole range was
    /// read.
    ///
    /// # Errors
    /// The errors of writing.
    fn copy(
        &self,
        old: &Connection,
        new: &Connection,
        (from, to): (i64, i64),
        order: &str,
        rows: &mut u64,
    ) -> rusqlite::Result<Option<i64>> {
        let Self { table, key, columns, .. } = self;
        let select =
            format!("SELECT {key}, {columns} FROM {table} WHERE {key} BETWEEN ?1 AND ?2 ORDER BY {key} {order}");
        let mut last = -1;
        let Ok(mut select) = old.prepare(&select) else { return Ok(Some(last)) };
        let count = select.column_count();
        let Ok(mut read) = select.query([from, to]) else { return Ok(Some(last)) };
        let mut insert = new.prepare_cached(&self.insert)?;
        loop {
            let row = match read.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(None),
                Err(_) => return Ok(Some(last)),
            };
            let values: rusqlite::Result<Vec<Value>> = (1..count).map(|column| row.get(column)).collect();
            let (Ok(at), Ok(values)) = (row.get(0), values) else { return Ok(Some(last)) };
            last = at;
            match insert.execute(params_from_iter(values)) {
                Ok(added) => *rows += added as u64,
                // A row of other types than the store's, from a damaged page.
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Finds the first row that can be read at or after a key, in steps that double.
    fn readable_from(&self, old: &Connection, key: i64) -> Option<i64> {
        let Self { table, key: column, .. } = self;
        let first = format!("SELECT {column} FROM {table} WHERE {column} >= ?1 ORDER BY {column} LIMIT 1");
        for step in std::iter::once(0).chain((0..62).map(|power| 1i64 << power)) {
            match old.query_row(&first, [key.checked_add(step)?], |row| row.get(0)) {
                Ok(found) => return Some(found),
                Err(rusqlite::Error::QueryReturnedNoRows) => return None,
                Err(_) => {}
            }
        }
        None
    }
}

/// Writes the sums, and lets positions continue after all that clients may have seen.
fn complete(old: &Connection, new: &Connection, seen: u64) -> rusqlite::Result<()> {
    let since = old.query_row("SELECT spending_since FROM meta", [], |row| row.get::<_, i64>(0));
    let (last, included, bytes) = new.query_row(
        "SELECT (SELECT ifnull(max(last), 0) FROM events), (SELECT ifnull(max(as_of), 0) FROM sessions),
                (SELECT ifnull(sum(length(block)), 0) FROM events)",
        [],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
    )?;
    let head = last.max(included).max(as_sql(Position(seen)));
    new.execute("UPDATE meta SET head = ?1, event_bytes = ?2", params![head, bytes])?;
    new.execute_batch(open::LOOKBACK)?;
    if let Ok(since) = since {
        new.execute("UPDATE meta SET spending_since = ?1", [since])?;
    }
    Ok(())
}

fn remove_all(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
