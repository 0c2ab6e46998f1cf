//! The user's own terminal: raw mode, size, and cursor position. It is restored when the value is dropped.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::model::TerminalSize;

/// Time that a terminal may take to report its cursor position.
const CURSOR_WAIT: Duration = Duration::from_secs(1);

/// Maximum number of bytes typed meanwhile; above it the question is abandoned.
const TYPED_MAX: usize = 4096;

/// The terminal of stdin and stdout in raw mode, until it is dropped.
pub(crate) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Puts the terminal into raw mode.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let raw_terminal = Self { before };
        raw_terminal.again()?;
        Ok(raw_terminal)
    }

    /// Puts the terminal into raw mode again, after another process has changed it.
    pub(crate) fn again(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
    }

    /// Restores the earlier mode.
    pub(crate) fn restore(&self) {
        // A terminal that no longer exists needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Returns the terminal's size.
pub(crate) fn size() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    TerminalSize { rows: size.ws_row, cols: size.ws_col }.within_limits()
}

/// Asks the terminal for its cursor position (line and column, from 1). Other input from that time is left in `typed`.
pub(crate) fn cursor(typed: &mut Vec<u8>) -> io::Result<Option<(u16, u16)>> {
    io::stdout().write_all(b"\x1b[6n")?;
    io::stdout().flush()?;
    let until = Instant::now() + CURSOR_WAIT;
    let mut buffer = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || typed.len() > TYPED_MAX {
            return Ok(None);
        }
        let left = Timespec::try_from(left).ok();
        let stdin = io::stdin();
        let ready = match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(why) => return Err(why.into()),
        };
        if ready == 0 {
            return Ok(None);
        }
        // The read bypasses Rust's buffer, which the next reader would not see.
        let read = rustix::io::read(&stdin, &mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        typed.extend_from_slice(&buffer[..read]);
        if let Some((from, to, position)) = report(typed) {
            typed.drain(from..to);
            return Ok(Some(position));
        }
    }
}

/// Finds a report of the cursor's position: its range in these bytes, and the position.
fn report(bytes: &[u8]) -> Option<(usize, usize, (u16, u16))> {
    let starts = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"\x1b[").map(|(at, _)| at);
    starts.into_iter().find_map(|from| {
        let end = from + 2 + bytes[from + 2..].iter().position(|byte| *byte == b'R')?;
        let text = std::str::from_utf8(&bytes[from + 2..end]).ok()?;
        let (row, column) = text.split_once(';')?;
        Some((from, end + 1, (row.parse().ok()?, column.parse().ok()?)))
    })
}

/// Reads typed input without Rust's buffer.
pub(crate) fn read(buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(io::stdin(), buffer)?)
}

/// Empties a pipe that does not block.
pub(crate) fn drain(mut pipe: &std::os::unix::net::UnixStream) {
    let mut sink = [0; 64];
    while matches!(pipe.read(&mut sink), Ok(read) if read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_of_the_cursor_is_found_among_what_is_typed() {
        type Found = Option<(usize, usize, (u16, u16))>;
        #[rustfmt::skip] // a case a line
        let cases: &[(&[u8], Found)] = &[
            (b"\x1b[12;40R", Some((0, 8, (12, 40)))),
            (b"ls\n\x1b[1;1Rx", Some((3, 9, (1, 1)))),
            (b"\x1b[A\x1b[2;3R", Some((3, 9, (2, 3)))),
            (b"\x1b[12;4", None),
            (b"\x1b[R", None),
            (b"\x1b[?1;2R", None),
            (b"", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(report(bytes), *expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
