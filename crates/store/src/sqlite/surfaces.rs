//! The rows of surfaces: the whole state of each, then its changes.

use rusqlite::{Connection, params};

use super::{Failure, text};
use crate::{SurfaceChange, SurfaceWrite};
use plexus_protocol::SessionId;

pub(super) fn put(connection: &Connection, session_no: i64, change: &SurfaceChange) -> Result<(), Failure> {
    let body = match &change.write {
        SurfaceWrite::Change(body) => Some(body),
        SurfaceWrite::Whole(_) | SurfaceWrite::Closed => {
            connection
                .prepare_cached("DELETE FROM surfaces WHERE session_no = ?1 AND surface = ?2")?
                .execute(params![session_no, change.surface])?;
            match &change.write {
                SurfaceWrite::Whole(body) => Some(body),
                _ => None,
            }
        }
    };
    if let Some(body) = body {
        connection
            .prepare_cached("INSERT OR REPLACE INTO surfaces (session_no, surface, rev, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![session_no, change.surface, change.rev.cast_signed(), body])?;
    }
    Ok(())
}

pub(super) fn bodies(connection: &Connection, session_no: i64) -> rusqlite::Result<Vec<Vec<u8>>> {
    let mut statement =
        connection.prepare_cached("SELECT body FROM surfaces WHERE session_no = ?1 ORDER BY surface, rev")?;
    statement.query_map([session_no], |row| row.get(0))?.collect()
}

/// Returns the sessions that have surfaces, with one seek for each session, because a surface may have thousands of rows.
pub(super) fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionId>> {
    let mut statement = connection.prepare_cached(
        "SELECT session_id FROM sessions WHERE doomed = 0 AND EXISTS (SELECT 1 FROM surfaces WHERE session_no = sessions.no)",
    )?;
    statement.query_map([], |row| Ok(SessionId::trusted(text(row, 0)?)))?.collect()
}
