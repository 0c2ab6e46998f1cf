//! What a runtime wrote to stderr of late, a line each with its time, for whoever wants to know what ails it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use plexus_protocol::Timestamp;

/// Lines that are kept of a runtime; with one more the oldest goes.
pub const LINES: usize = 1000;
/// Longest line that is kept, in bytes; what is longer is cut into several.
pub const LINE_MAX: usize = 2000;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The runtime, to its stderr.
    Runtime,
    /// The gateway: starts, ends, lost connections.
    Gateway,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LogLine)]
pub struct StderrLine {
    /// When it was heard.
    pub at: Timestamp,
    /// It, fit to be shown.
    pub text: String,
    /// Who wrote it.
    pub by: LogSource,
}

/// The last lines of a runtime; the same for whoever has a copy. It outlives the runtime's starts, not the gateway.
#[derive(Clone, Debug, Default)]
pub struct StderrLog {
    lines: Arc<Mutex<VecDeque<StderrLine>>>,
}

impl StderrLog {
    /// Adds a line. `text` is fit to be shown, and at most [`LINE_MAX`] bytes; a longer one is cut.
    pub fn add(&self, at: Timestamp, by: LogSource, text: &str) {
        let cut = (0..=text.len().min(LINE_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let text = text.get(..cut).unwrap_or_default().to_owned();
        let mut lines = self.lock();
        lines.push_back(StderrLine { at, text, by });
        if lines.len() > LINES {
            lines.pop_front();
        }
    }

    /// All that are kept, the oldest first.
    pub fn lines(&self) -> Vec<StderrLine> {
        self.lock().iter().cloned().collect()
    }

    /// Puts the lines of the same runtime's earlier life before these.
    pub fn after(&self, earlier: &Self) {
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
        let (journal, at) = (StderrLog::default(), Timestamp::default());
        for n in 0..LINES + 5 {
            journal.add(at, LogSource::Runtime, &n.to_string());
        }
        let lines = journal.lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "5"));
        let next = StderrLog::default();
        next.add(at, LogSource::Gateway, &"ü".repeat(LINE_MAX));
        next.after(&journal);
        let lines = next.lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "6"));
        assert_eq!(lines[LINES - 1].text.len(), LINE_MAX, "cut between characters");
    }
}
