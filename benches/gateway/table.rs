//! Rows and their table.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The target of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// At most this many times the floor.
    Times(f64),
    /// At most this value.
    AtMost(f64),
    /// At least this value.
    AtLeast(f64),
    /// No target; for information.
    Told,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) floor: Option<f64>,
    pub(crate) plexus: f64,
    pub(crate) target: Target,
}

/// A row, and the same one of an earlier build, measured in the same run.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) before: Option<Row>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.floor.filter(|floor| *floor > 0.0).map(|floor| self.plexus / floor)
    }

    fn passes(&self) -> Option<bool> {
        match self.target {
            Target::Times(most) => Some(self.ratio().is_some_and(|ratio| ratio <= most)),
            Target::AtMost(most) => Some(self.plexus <= most),
            Target::AtLeast(least) => Some(self.plexus >= least),
            Target::Told => None,
        }
    }

    /// The text of each column.
    fn cells(&self, before: Option<&Row>) -> [String; 7] {
        let with_unit = |value: f64| format!("{} {}", number(value), self.unit);
        [
            self.name.clone(),
            self.floor.map_or("-".into(), with_unit),
            with_unit(self.plexus),
            before.map_or(String::new(), |before| {
                before.ratio().map_or_else(|| with_unit(before.plexus), |ratio| format!("{ratio:.2}x"))
            }),
            self.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}x")),
            match self.target {
                Target::Times(most) => format!("<= {most}x"),
                Target::AtMost(most) => format!("<= {}", with_unit(most)),
                Target::AtLeast(least) => format!(">= {}", with_unit(least)),
                Target::Told => "-".into(),
            },
            match self.passes() {
                Some(true) => "pass".into(),
                Some(false) => "MISS".into(),
                None => "-".into(),
            },
        ]
    }
}

/// A number with three significant digits and a thousands separator.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        let places = if value.abs() < 1.0 { 3 } else { 2 };
        return format!("{value:.places$}");
    }
    let whole = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

const HEAD: [&str; 7] = ["row", "floor", "plexus", BEFORE, "ratio", "target", ""];
/// Shown only where an earlier build was measured.
const BEFORE: &str = "before";

/// The table in Markdown, its columns aligned so that it can be read as text.
pub(crate) fn markdown(rows: &[Measured]) -> String {
    let compared = rows.iter().any(|measured| measured.before.is_some());
    let columns: Vec<usize> = (0..HEAD.len()).filter(|column| compared || HEAD[*column] != BEFORE).collect();
    let lines: Vec<[String; 7]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(rows.iter().map(|measured| measured.row.cells(measured.before.as_ref())))
        .collect();
    let widths: Vec<usize> =
        (0..HEAD.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        for &column in &columns {
            let (cell, width) = (&line[column], widths[column]);
            // Numbers are right-aligned.
            let _ = match column {
                1..=5 => write!(out, "| {cell:>width$} "),
                _ => write!(out, "| {cell:<width$} "),
            };
        }
        out.push_str("|\n");
        if at == 0 {
            for &column in &columns {
                let width = widths[column];
                let _ = match column {
                    1..=5 => write!(out, "|{:->1$}:", "", width + 1),
                    _ => write!(out, "|{:->1$}", "", width + 2),
                };
            }
            out.push_str("|\n");
        }
    }
    out
}

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// Puts `text` between the markers of the file.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let old = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let (before, rest) = old.split_once(BEGIN).with_context(|| format!("{} has no {BEGIN}", path.display()))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{} has no {END}", path.display()))?;
    std::fs::write(path, format!("{before}{BEGIN}\n{text}{END}{after}"))?;
    Ok(())
}

/// The median.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that this share of the samples (0 to 1) does not exceed.
pub(crate) fn percentile(samples: &mut [u64], share: f64) -> f64 {
    samples.sort_unstable();
    let at = (samples.len() as f64 * share) as usize;
    samples.get(at.min(samples.len().saturating_sub(1))).map_or(f64::NAN, |nanos| *nanos as f64)
}
