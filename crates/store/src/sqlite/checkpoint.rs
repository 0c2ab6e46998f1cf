//! Checkpoints: they copy the write-ahead log into the database, and limit its length.

use std::sync::atomic::Ordering;

use super::{SqliteStore, Writer, open};

/// Approximate number of committed bytes after which a commit also copies the write-ahead log into the database and checks its size.
const CHECKPOINT_BYTES: u64 = 8 << 20;

impl SqliteStore {
    /// Limits the length of the write-ahead log and removes deleted bytes from it. Called between transactions, with the number of bytes
    /// that the last one wrote. A failure is retried at the next checkpoint.
    ///
    /// A checkpoint that becomes due is left to the next call, so that [`commit_is_quick`](Store::commit_is_quick) can announce it.
    /// Truncating waits for readers ([`open::CHECKPOINT_WAIT`] at most): only at a checkpoint, or with `now`.
    pub(super) fn maintain(&self, writer: &mut Writer, committed: u64, now: bool) {
        let due = self.checkpoint_due.load(Ordering::Relaxed);
        writer.bytes_since_checkpoint = if due { 0 } else { writer.bytes_since_checkpoint.saturating_add(committed) };
        self.checkpoint_due.store(writer.bytes_since_checkpoint >= CHECKPOINT_BYTES, Ordering::Relaxed);
        writer.truncate_wal |= due && self.file_bytes("-wal") >= open::WAL_BYTES_MAX;
        if writer.sync_failed || !(due || now) {
            return;
        }
        if writer.truncate_wal {
            let busy = writer.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
            writer.truncate_wal = !matches!(busy, Ok(0));
        } else if due {
            let _ = writer.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    pub(super) fn file_bytes(&self, suffix: &str) -> u64 {
        let path = self.dir.join(format!("{}{suffix}", open::DATABASE));
        path.metadata().map_or(0, |meta| meta.len())
    }
}
