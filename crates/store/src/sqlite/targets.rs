//! The rows of devices, and of the notifier's targets.

use rusqlite::{Connection, params};

use crate::{Batch, DeviceChange};

pub(super) fn put(connection: &Connection, batch: &Batch) -> rusqlite::Result<()> {
    for change in &batch.devices {
        match change {
            DeviceChange::Put { device_id, body } => connection
                .prepare_cached(
                    "INSERT INTO devices (device_id, body) VALUES (?1, ?2)
                     ON CONFLICT (device_id) DO UPDATE SET body = excluded.body",
                )?
                .execute(params![device_id, body])?,
            DeviceChange::Delete { device_id } => {
                connection.prepare_cached("DELETE FROM devices WHERE device_id = ?1")?.execute([device_id])?
            }
        };
    }
    for change in &batch.pushes {
        match &change.body {
            Some(body) => connection
                .prepare_cached("INSERT OR REPLACE INTO pushes (name, body) VALUES (?1, ?2)")?
                .execute(params![change.name, body])?,
            None => connection.prepare_cached("DELETE FROM pushes WHERE name = ?1")?.execute([&change.name])?,
        };
    }
    Ok(())
}
