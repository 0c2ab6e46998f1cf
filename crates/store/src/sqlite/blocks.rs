//! The rows of blocks. SQLite holds two copies of a value to write it, and one to return it. The caller's copy of a long block is therefore
//! freed before the block is written, and a long block is read in its place in the file (<https://sqlite.org/c3ref/blob_open.html>).

use bytes::Bytes;
use parking_lot::Mutex;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB};

/// Maximum size of a block that is part of a statement, in bytes. Statements that read blocks return null in place of a longer one.
pub(super) const SHORT_BLOCK: i64 = 1 << 20;

/// Writes the block `key`, whose last event is `last`, of the time `at`. The buffer of a long block is freed.
pub(super) fn put(
    connection: &Connection,
    (key, last, at): (i64, i64, i64),
    block: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO events (key, last, at, block) VALUES (?1, ?2, ?3, ?4)")?;
    for (n, number) in [key, last, at].into_iter().enumerate() {
        insert.raw_bind_parameter(n + 1, number)?;
    }
    insert.raw_bind_parameter(4, block.as_slice())?;
    if block.len() > SHORT_BLOCK as usize {
        *block = Vec::new();
    }
    insert.raw_execute().map(drop)
}

/// Reads blocks.
#[derive(Default)]
pub(super) struct BlockReader {
    /// Held while a long block is read.
    long_read: Mutex<()>,
}

impl BlockReader {
    /// Returns the bytes of the block `key`, of which a statement returned `short`. Long blocks are read one at a time, because a reader
    /// learns the length, and is charged for it, only afterwards. Empty if the column is damaged.
    pub(super) fn get(&self, connection: &Connection, key: i64, short: ValueRef<'_>) -> rusqlite::Result<Bytes> {
        if short != ValueRef::Null {
            return Ok(Bytes::copy_from_slice(short.as_blob().unwrap_or_default()));
        }
        let _one = self.long_read.lock();
        let blob = match connection.blob_open(MAIN_DB, "events", "block", key, true) {
            Ok(blob) => blob,
            // A value of another type.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => return Ok(Bytes::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; blob.len()];
        blob.read_at_exact(&mut bytes, 0)?;
        Ok(bytes.into())
    }
}
