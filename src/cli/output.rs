//! Output: sanitized text of agents, colour, JSON and tables.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use plexus_protocol::Timestamp;

pub(crate) use plexus_protocol::text::{Cleaner, clean, line};

/// Maximum length of a title in a listing, in characters.
pub(crate) const TITLE: usize = 60;

/// `true` while agents' bytes are printed unchanged.
static RAW: AtomicBool = AtomicBool::new(false);

/// Makes stdout print agents' bytes unchanged, except on a terminal, where hidden characters could deceive.
pub(crate) fn set_raw(raw: bool) {
    let terminal = std::io::stdout().is_terminal();
    if raw && terminal {
        let _ = writeln!(std::io::stderr(), "plexus: --raw has no effect on a terminal, only for a pipe or a file");
    }
    RAW.store(raw && !terminal, Ordering::Relaxed);
}

/// Sanitizes output of agents for stdout: no hidden characters and no control sequences.
pub(crate) struct SanitizedWriter(Option<Cleaner>);

impl SanitizedWriter {
    /// Makes a writer for JSON: hidden characters become `\uXXXX`, which does not change the value.
    pub(crate) fn json() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::json))
    }

    /// Makes a writer for text: hidden characters become `\u{XXXX}`.
    pub(crate) fn text() -> Self {
        Self((!RAW.load(Ordering::Relaxed)).then(Cleaner::default))
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(cleaner) = &mut self.0 else { return out.extend_from_slice(bytes) };
        let mut text = String::with_capacity(bytes.len());
        cleaner.push(bytes, &mut text);
        out.extend_from_slice(text.as_bytes());
    }

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
    pub(crate) fn stdout() -> Self {
        Self { on: has_colours(std::io::stdout().is_terminal()) }
    }

    pub(crate) fn stderr() -> Self {
        Self { on: has_colours(std::io::stderr().is_terminal()) }
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        // Each line is coloured separately, so that no colour crosses a line end.
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| if line.is_empty() { String::new() } else { format!("\x1b[{code}m{line}\x1b[0m") })
            .collect();
        lines.join("\n")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }
}

/// Writes a value as pretty JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_as_json(&serde_json::to_vec_pretty(value).map_err(std::io::Error::from)?)
}

/// Writes a response of the gateway as pretty JSON, with the members that only a newer gateway sends.
pub(crate) fn print_json_text(text: &str) -> anyhow::Result<()> {
    print_json(&serde_json::from_str::<serde_json::Value>(text)?)
}

/// Writes JSON and a newline. Control characters are escaped, which does not change the value.
pub(crate) fn print_as_json(json: &[u8]) -> anyhow::Result<()> {
    let (mut sanitized, mut bytes) = (SanitizedWriter::json(), Vec::with_capacity(json.len() + 1));
    sanitized.push(json, &mut bytes);
    sanitized.finish(&mut bytes);
    bytes.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

/// Writes a value as a line of JSON and flushes, since a script waits for it.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_as_json(&serde_json::to_vec(value)?)
}

/// The name of a value of an enumeration, as on the wire.
pub(crate) fn wire_name(value: impl serde::Serialize) -> String {
    let name = serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned));
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// Writes text and flushes.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a notice to stderr.
pub(crate) fn notice(text: &str) {
    let _ = writeln!(std::io::stderr(), "plexus: {}", clean(text));
}

/// Reports the number of list elements that only newer versions can read.
pub(crate) fn notice_unreadable(count: usize, noun: &str) {
    if let Some(text) = unreadable(count, noun) {
        notice(&text);
    }
}

/// Describes the number of elements that only newer versions can read; `None` if there are none.
pub(crate) fn unreadable(count: usize, noun: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {noun} needs a newer plexus")),
        _ => Some(format!("{count} {noun}s need a newer plexus")),
    }
}

/// Formats the time since `at`: `12 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn age(at: Timestamp) -> String {
    let now = Timestamp::from(SystemTime::now());
    let seconds = now.as_millis().saturating_sub(at.as_millis()).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats rows under headings, in columns as wide as their content.
pub(crate) fn table(paint: Paint, headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let format = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
    let mut out = format!("{}\n", paint.dim(&format(&headings)));
    for row in rows {
        out.push_str(&format(row));
        out.push('\n');
    }
    out
}

fn has_colours(terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_as_wide_as_their_content() {
        let rows = vec![vec!["a".into(), "bb".into()], vec!["cccc".into(), String::new()]];
        assert_eq!(table(Paint::none(), &["X", "YY"], &rows), "X     YY\na     bb\ncccc\n");
    }

    #[test]
    fn ages_are_printed_short() {
        let ago = |seconds: i64| age(Timestamp::from(SystemTime::now()).plus_millis(-seconds * 1000 - 500));
        assert_eq!([ago(5), ago(65), ago(7200), ago(200_000)], ["5 s", "1 min", "2 h", "2 d"]);
        assert_eq!(ago(-100), "0 s");
    }
}
