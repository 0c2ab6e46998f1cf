//! Disk space that is reserved for answers, so that they can be stored while the disk is full.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

use super::open;

/// The file that takes the space.
const FILE: &str = "plexus.reserve";
/// Size of the reserved space, in bytes. An answer takes about 100 KiB of write-ahead log.
pub(super) const RESERVED: u64 = 1 << 20;
/// Step by which a part of the reserve is tried, in bytes.
const STEP: u64 = 64 << 10;

/// The reserved space of a store. While it is incomplete, ordinary commits may be refused for which the disk would have space.
#[derive(Debug)]
pub(super) struct Reserve {
    /// Absent if the file cannot be made.
    file: Option<File>,
    whole: AtomicBool,
}

impl Reserve {
    /// Reserves as much of the space as the disk has. A failure is logged: then answers need free space like all other commits.
    pub(super) fn open(dir: &Path) -> Self {
        let file = open::private().create(true).open(dir.join(FILE));
        let file = file.inspect_err(|error| tracing::warn!(%error, "no space could be reserved for answers")).ok();
        let reserve = Self { file, whole: AtomicBool::new(false) };
        reserve.refill();
        reserve
    }

    /// Returns the space to the disk. Called before a store is opened again whose opening failed for lack of space.
    pub(super) fn release(dir: &Path) -> io::Result<()> {
        File::options().write(true).open(dir.join(FILE))?.set_len(0)
    }

    /// Returns the space to the disk, writes, and reserves again what is left.
    pub(super) fn release_for<T>(&self, write: impl FnOnce() -> T) -> T {
        if let Some(file) = &self.file {
            self.whole.store(false, Ordering::Relaxed);
            if let Err(error) = file.set_len(0) {
                tracing::warn!(%error, "the space that is reserved for answers cannot be used");
            }
        }
        let written = write();
        self.refill();
        written
    }

    /// Reserves the missing space, as far as the disk has it.
    pub(super) fn refill(&self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.whole.load(Ordering::Relaxed)) else { return };
        let taken = (1..=RESERVED / STEP).rev().map(|steps| steps * STEP).find(|bytes| take(file, *bytes).is_ok());
        self.whole.store(taken == Some(RESERVED), Ordering::Relaxed);
    }
}

/// Makes a file at least as long as this, with disk blocks for all of it.
fn take(file: &File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() >= bytes {
        return Ok(());
    }
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}
