//! What goes to a terminal: text of agents made harmless, and colour where it is wanted.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use plexus_protocol::text::{Cleaner, clean, line};

/// Whether agents' bytes go out as they are.
static RAW: AtomicBool = AtomicBool::new(false);

/// Says that stdout is to have agents' bytes as they are. Not on a terminal: nobody reads there what they cannot see.
pub(crate) fn raw(wanted: bool) {
    let terminal = std::io::stdout().is_terminal();
    if wanted && terminal {
        let _ = writeln!(std::io::stderr(), "plexus: --raw has no effect on a terminal, only for a pipe or a file");
    }
    RAW.store(wanted && !terminal, Ordering::Relaxed);
}

/// What agents said, on its way to stdout in the form it came in: nothing in it hides, or changes how the rest is drawn.
pub(crate) struct SanitizedWriter(Option<Cleaner>);

impl SanitizedWriter {
    /// JSON: what would hide is written as `\uXXXX`, and means the same.
    pub(crate) fn json() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::json))
    }

    /// Text: what would hide is shown as `\u{XXXX}`.
    pub(crate) fn text() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::default))
    }

    /// The next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(cleaner) = &mut self.0 else { return out.extend_from_slice(bytes) };
        let mut text = String::with_capacity(bytes.len());
        cleaner.push(bytes, &mut text);
        out.extend_from_slice(text.as_bytes());
    }

    /// The last.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let Some(cleaner) = &mut self.0 else { return };
        let mut text = String::new();
        cleaner.finish(&mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For stdout.
    pub(crate) fn stdout() -> Self {
        Self { on: wanted(std::io::stdout().is_terminal()) }
    }

    /// For stderr.
    pub(crate) fn stderr() -> Self {
        Self { on: wanted(std::io::stderr().is_terminal()) }
    }

    /// None.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    /// Whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        // A line at a time, so that no colour crosses a line end.
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| if line.is_empty() { String::new() } else { format!("\x1b[{code}m{line}\x1b[0m") })
            .collect();
        lines.join("\n")
    }

    /// Less important.
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// More important.
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Good.
    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Wants attention.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Bad.
    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }
}

fn wanted(terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}
