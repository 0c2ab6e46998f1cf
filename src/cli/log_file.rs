//! The gateway's log in a rotated file, where no other program rotates it: under launchd, and for a gateway started by `plexus run`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Size above which a log is rotated, in bytes.
const LOG_MAX: u64 = 8 << 20;
/// Number of rotated logs that are kept; `FILE.1` is the newest.
const LOGS_KEPT: u32 = 3;

/// The log file. It is stderr as well, so that panics and messages of libraries are in it too.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    written: u64,
    max: u64,
    is_stderr: bool,
}

impl LogFile {
    /// Opens a file to append to, and makes it stderr.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, LOG_MAX, true)
    }

    fn with_limit(path: &Path, max: u64, is_stderr: bool) -> io::Result<Self> {
        let file = open_append(path, is_stderr)?;
        let written = file.metadata()?.len();
        Ok(Self { path: path.into(), file, written, max, is_stderr })
    }

    fn rotate(&mut self) -> io::Result<()> {
        for n in (1..LOGS_KEPT).rev() {
            // The file does not exist before that many rotations.
            let _ = std::fs::rename(rotated(&self.path, n), rotated(&self.path, n + 1));
        }
        std::fs::rename(&self.path, rotated(&self.path, 1))?;
        self.file = open_append(&self.path, self.is_stderr)?;
        self.written = 0;
        Ok(())
    }
}

fn rotated(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

/// Opens the file with access for its owner only.
fn open_append(path: &Path, as_stderr: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    if as_stderr {
        rustix::stdio::dup2_stderr(&file)?;
    }
    Ok(file)
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.written > 0 && self.written + line.len() as u64 > self.max {
            // If the rotation fails, a log that is too long is better than none.
            let _ = self.rotate();
        }
        self.file.write_all(line)?;
        self.written += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_file_rotates_when_long_and_the_oldest_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plexus.log");
        std::fs::write(&path, "before\n").unwrap();
        let mut log = LogFile::with_limit(&path, 20, false).unwrap();
        for n in 0..10 {
            log.write_all(format!("line {n} ......\n").as_bytes()).unwrap();
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "line 9 ......\n");
        assert_eq!(read(&rotated(&path, 1)), "line 8 ......\n");
        assert_eq!(read(&rotated(&path, LOGS_KEPT)), "line 6 ......\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1 + LOGS_KEPT as usize);

        // A restart continues the log.
        drop(log);
        LogFile::with_limit(&path, 100, false).unwrap().write_all(b"again\n").unwrap();
        assert_eq!(read(&path), "line 9 ......\nagain\n");
    }
}
