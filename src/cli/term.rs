//! Output to a terminal: sanitized text of agents, and colour.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use plexus_protocol::text::{Cleaner, clean, line};

/// Whether agents' bytes are printed unchanged.
static RAW: AtomicBool = AtomicBool::new(false);

/// Makes stdout print agents' bytes unchanged, except on a terminal, where hidden characters could deceive.
pub(crate) fn raw(wanted: bool) {
    let terminal = std::io::stdout().is_terminal();
    if wanted && terminal {
        let _ = writeln!(std::io::stderr(), "plexus: --raw has no effect on a terminal, only for a pipe or a file");
    }
    RAW.store(wanted && !terminal, Ordering::Relaxed);
}

/// Sanitizes output of agents for stdout: no hidden characters and no control sequences.
pub(crate) struct SanitizedWriter(Option<Cleaner>);

impl SanitizedWriter {
    /// For JSON: hidden characters become `\uXXXX`, which does not change the value.
    pub(crate) fn json() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::json))
    }

    /// For text: hidden characters become `\u{XXXX}`.
    pub(crate) fn text() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::default))
    }

    /// Sanitizes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(cleaner) = &mut self.0 else { return out.extend_from_slice(bytes) };
        let mut text = String::with_capacity(bytes.len());
        cleaner.push(bytes, &mut text);
        out.extend_from_slice(text.as_bytes());
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let Some(cleaner) = &mut self.0 else { return };
        let mut text = String::new();
        cleaner.finish(&mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

/// Colours, if enabled.
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

    /// Without colours.
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

    /// Needs attention.
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
