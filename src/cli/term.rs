//! What goes to a terminal: text of agents made harmless, and colour where it is wanted.

use std::io::IsTerminal;

pub(crate) use plexus::model::text::{Cleaner, clean, line};

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
