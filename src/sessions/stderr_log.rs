//! The last lines that a runtime wrote to stderr, with times, for finding the cause of its problems.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

use plexus_protocol::Timestamp;
use plexus_protocol::api::runtimes::{LogSource, StderrLine};

/// Maximum number of stored lines of a runtime; beyond it the oldest are dropped.
pub const LINES: usize = 1000;
/// Maximum length of a stored line, in bytes. The reader of stderr splits longer ones.
pub const LINE_MAX: usize = 2000;

/// The last lines of a runtime; clones share them. They outlive restarts of the runtime, but not of the gateway.
#[derive(Clone, Debug, Default)]
pub struct StderrLog {
    lines: Arc<Mutex<VecDeque<StderrLine>>>,
}

impl StderrLog {
    /// Adds a line. `text` must be safe to display; it is cut after [`LINE_MAX`] bytes.
    pub fn add(&self, at: Timestamp, by: LogSource, text: &str) {
        let cut = (0..=text.len().min(LINE_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let text = text.get(..cut).unwrap_or_default().to_owned();
        let mut lines = self.lock();
        lines.push_back(StderrLine { at, text, by });
        if lines.len() > LINES {
            lines.pop_front();
        }
    }

    /// Returns the stored lines, the oldest first.
    pub fn lines(&self) -> Vec<StderrLine> {
        self.lock().iter().cloned().collect()
    }

    /// Puts the lines of the runtime's earlier link before these.
    pub fn prepend(&self, earlier: &Self) {
        let earlier = earlier.lines();
        let mut lines = self.lock();
        for line in earlier.into_iter().rev() {
            if lines.len() >= LINES {
                break;
            }
            lines.push_front(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<StderrLine>> {
        self.lines.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_log_keeps_the_last_lines_after_earlier_ones() {
        let (log, at) = (StderrLog::default(), Timestamp::default());
        for n in 0..LINES + 5 {
            log.add(at, LogSource::Runtime, &n.to_string());
        }
        let lines = log.lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "5"));
        let next = StderrLog::default();
        next.add(at, LogSource::Gateway, &"ü".repeat(LINE_MAX));
        next.prepend(&log);
        let lines = next.lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "6"));
        assert_eq!(lines[LINES - 1].text.len(), LINE_MAX, "cut between characters");
    }
}
