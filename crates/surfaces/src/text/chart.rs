//! Charts and progress as text: bars of blocks, sparklines, and points of braille.

use serde_json::Value;

use super::lines::{cut, one_line, width};
use super::table::{more, number_text};

/// Maximum number of bars of a chart.
const BARS: usize = 20;
/// Maximum width of a sparkline, and of a field of points, in columns.
const WIDE: usize = 60;
/// Height of a field of points, in rows.
const HIGH: usize = 8;
/// Maximum number of bytes of a label that are used.
const LABEL: usize = 200;

/// The texts of a chart, besides its series.
pub(super) struct Chart<'a> {
    pub(super) kind: &'a str,
    pub(super) unit: String,
    pub(super) labels: Vec<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// One series.
struct Series {
    label: String,
    values: Vec<Option<f64>>,
    x: Vec<f64>,
}

/// Draws a chart, at most `columns` wide.
pub(super) fn chart(chart: &Chart<'_>, series: &Value, columns: usize) -> Vec<String> {
    let series: Vec<Series> = series.as_array().into_iter().flatten().map(read).collect();
    match chart.kind {
        "bar" => bars(chart, &series, columns),
        "scatter" => series.iter().flat_map(|series| points(chart, series, columns)).collect(),
        _ => lines(chart, &series, columns),
    }
}

fn read(series: &Value) -> Series {
    let numbers = |key: &str| series.get(key).and_then(Value::as_array).into_iter().flatten();
    Series {
        label: series.get("label").and_then(Value::as_str).map(|label| one_line(label, LABEL)).unwrap_or_default(),
        values: numbers("values").map(|value| value.as_f64().filter(|n| n.is_finite())).collect(),
        x: numbers("x").map(|value| value.as_f64().unwrap_or(0.0)).collect(),
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, n| Some(range.map_or((n, n), |(low, high): (f64, f64)| (low.min(n), high.max(n)))))
}

fn lines(chart: &Chart<'_>, series: &[Series], columns: usize) -> Vec<String> {
    let label = series.iter().map(|series| width(&series.label)).max().unwrap_or(0).min(columns / 3);
    let draw = |series: &Series| {
        let Some((low, high)) = range(series.values.iter().flatten().copied()) else {
            return format!("{}  (no values)", padded(&series.label, label));
        };
        let line = sparkline(
            &series.values,
            chart.min.unwrap_or(low),
            chart.max.unwrap_or(high),
            columns.saturating_sub(label + 30).clamp(8, WIDE),
        );
        let last =
            series.values.iter().rev().flatten().next().map_or_else(String::new, |n| number_text(*n, &chart.unit));
        let (low, high) = (number_text(low, ""), number_text(high, ""));
        format!("{}  {line}  {last} ({low} to {high})", padded(&series.label, label))
    };
    series.iter().map(|series| draw(series).trim_start().to_owned()).collect()
}

fn padded(label: &str, columns: usize) -> String {
    let label = cut(label, columns.max(1));
    let padding = columns.saturating_sub(width(&label));
    format!("{label}{}", " ".repeat(padding))
}

/// Draws values as blocks, at most `columns` wide; each is the mean of its part.
pub(super) fn sparkline(values: &[Option<f64>], low: f64, high: f64, columns: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let count = values.len().min(columns);
    let block = |at: usize| {
        let part = &values[at * values.len() / count..(at + 1) * values.len() / count];
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        if known.is_empty() {
            return ' ';
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let part = share(mean, low, high);
        BLOCKS[((part * 7.0).round() as usize).min(7)]
    };
    (0..count).map(block).collect()
}

/// Returns the position of a number between two, from 0 to 1.
fn share(n: f64, low: f64, high: f64) -> f64 {
    let part = (n - low) / (high - low);
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.5 }
}

fn bars(chart: &Chart<'_>, series: &[Series], columns: usize) -> Vec<String> {
    let values = || series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let Some((_, high)) = range(values()) else { return vec!["(no values)".to_owned()] };
    let (low, high) = (chart.min.unwrap_or(0.0), chart.max.unwrap_or(high));
    let count = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let name = |at: usize| chart.labels.get(at).cloned().unwrap_or_else(|| (at + 1).to_string());
    // The label of a single series is a heading, not part of each line.
    let alone = series.len() == 1;
    let mut out = Vec::new();
    if let (true, Some(series)) = (alone, series.first().filter(|series| !series.label.is_empty())) {
        out.push(series.label.clone());
    }
    let mut rows: Vec<(String, f64)> = Vec::new();
    for at in 0..count.min(BARS) {
        for series in series {
            if let Some(value) = series.values.get(at).copied().flatten() {
                let label = if alone { name(at) } else { format!("{} {}", name(at), series.label) };
                rows.push((label, value));
            }
        }
    }
    let wide = rows.iter().map(|(label, _)| width(label)).max().unwrap_or(0).min(columns / 3);
    let bar_width = columns.saturating_sub(wide + 18).clamp(8, WIDE);
    for (label, value) in rows {
        let bar = "█".repeat((share(value, low, high) * bar_width as f64).round() as usize);
        out.push(format!("{}  {bar} {}", padded(&label, wide), number_text(value, &chart.unit)));
    }
    if count > BARS {
        out.push(more(count - BARS));
    }
    out
}

/// Draws points in a field of braille, two wide and four high in each character.
fn points(chart: &Chart<'_>, series: &Series, columns: usize) -> Vec<String> {
    let pairs: Vec<(f64, f64)> = series
        .values
        .iter()
        .enumerate()
        .filter_map(|(at, y)| Some((series.x.get(at).copied().unwrap_or(at as f64), (*y)?)))
        .collect();
    let (Some((left, right)), Some((low, high))) = (range(pairs.iter().map(|p| p.0)), range(pairs.iter().map(|p| p.1)))
    else {
        return vec![format!("{}  (no values)", series.label).trim_start().to_owned()];
    };
    let (low, high) = (chart.min.unwrap_or(low), chart.max.unwrap_or(high));
    let wide = columns.clamp(8, WIDE);
    let mut cells = vec![vec![0u32; wide]; HIGH];
    for (x, y) in &pairs {
        let column = (share(*x, left, right) * (wide * 2 - 1) as f64).round() as usize;
        let row = HIGH * 4 - 1 - (share(*y, low, high) * (HIGH * 4 - 1) as f64).round() as usize;
        const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        cells[row / 4][column / 2] |= DOTS[row % 4][column % 2];
    }
    let number = |n: f64| number_text(n, "");
    let mut out =
        vec![format!("{}  {} to {} {}", series.label, number(low), number(high), chart.unit).trim().to_owned()];
    // An empty cell is a space: the braille one is invisible, and readers escape invisible characters.
    let dots = |dots: &u32| if *dots == 0 { ' ' } else { char::from_u32(0x2800 + dots).unwrap_or(' ') };
    out.extend(cells.iter().map(|row| row.iter().map(dots).collect()));
    out.push(format!("x: {} to {}", number(left), number(right)));
    out
}

/// Draws progress: "Build [█████░░░░░] 50% (running)".
pub(super) fn progress(value: Option<f64>, label: &str, state: &str) -> String {
    const CELLS: usize = 20;
    let part = value.map(|n| n.clamp(0.0, 1.0));
    let bar = part.map(|part| {
        let full = (part * CELLS as f64).round() as usize;
        format!("[{}{}] {}%", "█".repeat(full), "░".repeat(CELLS - full), (part * 100.0).round())
    });
    let state = if state.is_empty() && bar.is_none() { "running" } else { state };
    let state = if state.is_empty() { String::new() } else { format!("({state})") };
    let parts = [label.to_owned(), bar.unwrap_or_default(), state];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(kind: &str) -> Chart<'_> {
        Chart { kind, unit: "ms".to_owned(), labels: vec!["Mon".to_owned(), "Tue".to_owned()], min: None, max: None }
    }

    #[test]
    fn chart_lines_bars_and_points() {
        let series = json!([{"label": "p50", "values": [1, 2, null, 4]}]);
        assert_eq!(chart(&spec("line"), &series, 80), ["p50  ▁▃ █  4 ms (1 to 4)"]);
        let bars = chart(&spec("bar"), &json!([{"label": "Load", "values": [5, 10]}]), 40);
        assert_eq!(bars[0], "Load");
        assert!(bars[1].starts_with("Mon  █") && bars[1].ends_with(" 5 ms"), "{bars:?}");
        let points = chart(&spec("scatter"), &json!([{"label": "s", "values": [0, 1], "x": [0, 9]}]), 20);
        assert_eq!(points.len(), HIGH + 2);
        assert!(points[1].ends_with('⠈') && points[HIGH].starts_with('⡀'), "{points:?}");
    }

    #[test]
    fn chart_of_nothing_or_of_one_value_is_drawn() {
        for kind in ["bar", "line", "scatter", "sparkline"] {
            for series in [
                json!([]),
                json!([{"label": "", "values": []}]),
                json!([{"values": [null]}]),
                json!([{"values": [1e308, -1e308, 5]}]),
            ] {
                assert!(chart(&spec(kind), &series, 10).iter().all(|line| width(line) < 200));
            }
        }
        assert_eq!(progress(Some(0.5), "Build", "running"), "Build [██████████░░░░░░░░░░] 50% (running)");
        assert_eq!(progress(None, "Wait", ""), "Wait (running)");
    }
}
