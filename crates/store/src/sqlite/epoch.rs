//! The epoch: the check that positions still refer to the events that clients have seen at them.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use plexus_protocol::Position;
use rusqlite::{Connection, params};

use super::{Durability, open, position};

/// The name of the file: eight bytes, little-endian, written in place, so that it needs no space of a full disk.
const WITNESS: &str = "plexus.head";

/// A record of the newest position that clients may have seen. Without a file, it records nothing.
#[derive(Debug)]
pub(super) struct HeadWitness(Option<File>);

impl HeadWitness {
    /// Opens the witness, and reads the position; 0 if it is new.
    pub(super) fn open(dir: &Path) -> (Self, u64) {
        let file = open::private().create(true).open(dir.join(WITNESS));
        let file = file.inspect_err(|error| tracing::warn!(%error, "a lost write-ahead log will not be noticed")).ok();
        let mut seen = [0; 8];
        let read = file.as_ref().is_some_and(|file| file.read_exact_at(&mut seen, 0).is_ok());
        (Self(file), if read { u64::from_le_bytes(seen) } else { 0 })
    }

    /// Compares a database that was just opened with the witness. If the database is older, its write-ahead log was lost or cut, and
    /// `epoch` is replaced by `fresh`.
    pub(super) fn begin(
        dir: &Path,
        connection: &Connection,
        head: u64,
        (epoch, fresh): (&mut String, &str),
    ) -> rusqlite::Result<Self> {
        let (witness, seen) = Self::open(dir);
        if seen > head {
            tracing::error!(seen, head, "the newest events are gone: the database's write-ahead log was lost or cut");
            connection.execute("UPDATE meta SET epoch = ?1", [fresh])?;
            fresh.clone_into(epoch);
        }
        witness.note(Position(head));
        Ok(witness)
    }

    /// Records the newest position after a commit.
    pub(super) fn note(&self, head: Position) {
        let Some(file) = &self.0 else { return };
        if let Err(error) = file.write_all_at(&head.0.to_le_bytes(), 0) {
            tracing::debug!(%error, "the newest position could not be noted");
        }
    }
}

/// Reads epoch, head and bytes as last tallied; makes a new epoch if the end of the log may be lost; and records whether that can happen
/// from now on.
pub(super) fn begin_epoch(
    connection: &Connection,
    durability: Durability,
    fresh: &str,
) -> rusqlite::Result<(String, u64, u64)> {
    let (epoch, head, bytes, marked) =
        connection.query_row("SELECT epoch, head, event_bytes, unsynced_boot FROM meta", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, Option<String>>(3)?))
        })?;
    let boot = boot_id();
    let lost = matches!((&marked, &boot), (Some(marked), Some(boot)) if marked != boot);
    let epoch: String = if lost { fresh.into() } else { epoch };
    let mark = boot.filter(|_| durability == Durability::Process);
    if lost || mark != marked {
        connection.execute("UPDATE meta SET epoch = ?1, unsynced_boot = ?2", params![epoch, mark])?;
    }
    Ok((epoch, position(head).0, position(bytes).0))
}

/// Returns the id of the machine's boot, on Linux. Elsewhere a power cut is not detected.
pub(super) fn boot_id() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().into())
}
