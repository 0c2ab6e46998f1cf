//! The reading connections: few, opened on demand, borrowed for one read each.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::path::PathBuf;

use rusqlite::Connection;

use super::open::open_reader;

/// Maximum number of concurrent reads; a further read waits until one is done. Each connection has its own page cache (2 MiB at most).
const READERS_MAX: usize = 4;

/// A bounded pool of read-only connections.
pub(super) struct Readers {
    path: PathBuf,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    in_use: usize,
}

impl Readers {
    /// Makes an empty pool for the database at `path`.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Runs `read` on a connection of the pool; blocks while all are in use.
    pub(super) fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut state = self.state();
        while state.in_use >= READERS_MAX {
            self.freed.wait(&mut state);
        }
        state.in_use += 1;
        let idle = state.idle.pop();
        drop(state);
        // From here on the slot is returned even if `read` panics.
        let mut in_use = BorrowedReader { pool: self, connection: idle };
        let connection = match in_use.connection.take() {
            Some(connection) => connection,
            None => open_reader(&self.path)?,
        };
        read(in_use.connection.insert(connection))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

struct BorrowedReader<'a> {
    pool: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for BorrowedReader<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.in_use -= 1;
        state.idle.extend(self.connection.take());
        drop(state);
        self.pool.freed.notify_one();
    }
}
