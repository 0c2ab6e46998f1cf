//! Charts drawn with ratatui's widgets: lines and points of braille, sparklines and bars of blocks.

use plexus_surfaces::{cell_text, number_text};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Sparkline, Widget as _};
use serde_json::Value;

use super::super::sanitize;
use super::super::theme::Depth;
use super::layout::{Drawing, LABEL_MAX, Props, line_of, list, number};
use super::part::drawn;

/// Height of a chart of lines or points, in rows: on the page, and in the conversation.
const HIGH: usize = 12;
const HIGH_INLINE: usize = 6;
/// Maximum width of a chart, in columns.
const WIDE: usize = 120;
/// Maximum number of bars.
const BARS: usize = 40;
/// Maximum number of series.
const SERIES: usize = 16;

struct Series {
    label: String,
    values: Vec<Option<f64>>,
    points: Vec<(f64, f64)>,
}

impl Series {
    fn read(value: &Value) -> Self {
        let numbers = |key: &str| value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let finite = |value: &Value| value.as_f64().filter(|n| n.is_finite());
        let values: Vec<Option<f64>> = numbers("values").iter().map(finite).collect();
        let x = numbers("x");
        let x_value = |at: usize| x.get(at).and_then(finite).unwrap_or(at as f64);
        let points = values.iter().enumerate().filter_map(|(at, y)| Some((x_value(at), (*y)?))).collect();
        let label = value.get("label").map(|label| cell_text(label, "")).unwrap_or_default();
        Self { label: sanitize::line(&label, 40), values, points }
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, n| Some(range.map_or((n, n), |(low, high): (f64, f64)| (low.min(n), high.max(n)))))
}

/// Widens a range that is empty, so that a widget can divide it.
fn wide((low, high): (f64, f64)) -> [f64; 2] {
    let (low, high) = (low.clamp(-1e300, 1e300), high.clamp(-1e300, 1e300));
    if high > low { [low, high] } else { [low - 0.5, low + 0.5 + (low.abs() * 1e-9)] }
}

impl Drawing<'_> {
    pub(super) fn chart(&self, props: &Props<'_>, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let width = width.min(WIDE);
        let mut lines = Vec::new();
        let title = line_of(props, "title", width);
        if !title.is_empty() {
            lines.push(Line::from(Span::styled(title, theme.text.add_modifier(Modifier::BOLD))));
        }
        let series: Vec<Series> = list(props, "series").iter().take(SERIES).map(Series::read).collect();
        if series.iter().all(|series| series.points.is_empty()) {
            lines.push(Line::from(Span::styled("(no values)", theme.dim)));
            return lines;
        }
        let unit = line_of(props, "unit", 20);
        match line_of(props, "kind", LABEL_MAX).as_str() {
            "bar" => lines.extend(self.bars(props, &series, &unit, width)),
            kind @ ("line" | "scatter") if series.len() == 1 || theme.depth != Depth::None => {
                lines.extend(self.field(props, &series, kind == "scatter", width));
                lines.extend(series.iter().enumerate().map(|(n, series)| self.legend(n, series, &unit, width)));
            }
            // Without colour, lines could not be distinguished.
            _ => {
                for (n, series) in series.iter().enumerate() {
                    lines.push(self.legend(n, series, &unit, width));
                    lines.extend(self.sparkline(props, n, series, width));
                }
            }
        }
        lines
    }

    fn series_style(&self, n: usize) -> Style {
        let theme = self.cx.theme;
        let styles = [theme.accent, theme.ok, theme.warn, theme.busy, theme.user, theme.bad];
        styles[n % styles.len()].remove_modifier(Modifier::BOLD)
    }

    /// Formats the legend as "■ p50  4 ms (1 to 4)".
    fn legend(&self, n: usize, series: &Series, unit: &str, width: usize) -> Line<'static> {
        let theme = self.cx.theme;
        let values = || series.points.iter().map(|(_, y)| *y);
        let numbers = match (values().next_back(), range(values())) {
            (Some(last), Some((low, high))) => {
                format!("{} ({} to {})", number_text(last, unit), number_text(low, ""), number_text(high, ""))
            }
            _ => "(no values)".to_owned(),
        };
        let label = sanitize::cut(&series.label, (width / 2).max(8));
        Line::from(vec![
            Span::styled("■ ", self.series_style(n)),
            Span::raw(if label.is_empty() { label } else { format!("{label}  ") }),
            Span::styled(sanitize::cut(&numbers, width.saturating_sub(4)), theme.dim),
        ])
    }

    fn field(&self, props: &Props<'_>, series: &[Series], scatter: bool, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let points = || series.iter().flat_map(|series| series.points.iter().copied());
        let (x, y) =
            (range(points().map(|p| p.0)).unwrap_or_default(), range(points().map(|p| p.1)).unwrap_or_default());
        let y = wide((number(props, "min").unwrap_or(y.0), number(props, "max").unwrap_or(y.1)));
        let x = wide(x);
        let label =
            |n: usize| list(props, "labels").get(n).map(|label| sanitize::line(&cell_text(label, ""), width / 4));
        let count = list(props, "labels").len();
        let ends = match (label(0), label(count.saturating_sub(1))) {
            (Some(first), Some(last)) if count > 1 => vec![first, last],
            _ => vec![number_text(x[0], ""), number_text(x[1], "")],
        };
        let sets: Vec<Dataset<'_>> = series
            .iter()
            .enumerate()
            .map(|(n, series)| {
                let kind = if scatter { GraphType::Scatter } else { GraphType::Line };
                let marker = if scatter && series.points.len() < 50 { Marker::Dot } else { Marker::Braille };
                Dataset::default().marker(marker).graph_type(kind).style(self.series_style(n)).data(&series.points)
            })
            .collect();
        let chart = Chart::new(sets)
            .x_axis(Axis::default().bounds(x).labels(ends).style(theme.dim))
            .y_axis(Axis::default().bounds(y).labels([number_text(y[0], ""), number_text(y[1], "")]).style(theme.dim))
            .legend_position(None);
        let high = if self.cx.inline { HIGH_INLINE } else { HIGH.min(self.cx.height.saturating_sub(4)).max(5) };
        drawn(width, high, |rect, buffer| chart.render(rect, buffer))
    }

    fn sparkline(&self, props: &Props<'_>, n: usize, series: &Series, width: usize) -> Vec<Line<'static>> {
        let Some((low, high)) = range(series.points.iter().map(|(_, y)| *y)) else { return Vec::new() };
        let [low, high] = wide((number(props, "min").unwrap_or(low), number(props, "max").unwrap_or(high)));
        let count = series.values.len().min(width).max(1);
        // Each column is the mean of its part of the values.
        let cell = |at: usize| {
            let part = &series.values[at * series.values.len() / count..(at + 1) * series.values.len() / count];
            let known: Vec<f64> = part.iter().flatten().copied().collect();
            if known.is_empty() {
                return None;
            }
            let share = (known.iter().sum::<f64>() / known.len() as f64 - low) / (high - low);
            let height = (share.clamp(0.0, 1.0) * 980.0) as u64 + 20;
            Some(height)
        };
        let data: Vec<Option<u64>> = (0..count).map(cell).collect();
        let rows = if self.cx.inline { 1 } else { 2 };
        let style = self.series_style(n);
        drawn(count, rows, |rect, buffer| Sparkline::default().data(data).max(1000).style(style).render(rect, buffer))
    }

    fn bars(&self, props: &Props<'_>, series: &[Series], unit: &str, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let values = || series.iter().flat_map(|series| series.values.iter().flatten().copied());
        let Some((min, max)) = range(values()) else { return Vec::new() };
        let (low, high) = (number(props, "min").unwrap_or(min.min(0.0)), number(props, "max").unwrap_or(max));
        let labels = list(props, "labels");
        let name = |at: usize| {
            let label = labels.get(at).map(|label| sanitize::line(&cell_text(label, ""), 30));
            label.unwrap_or_else(|| (at + 1).to_string())
        };
        let count = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let wide = (0..count.min(BARS)).map(|at| sanitize::width(&name(at))).max().unwrap_or(0).min(width / 3);
        let space = width.saturating_sub(wide + 16).clamp(4, 60);
        let mut lines: Vec<Line<'static>> = match series {
            [one] if one.label.is_empty() => Vec::new(),
            _ => {
                let label = |(n, series): (usize, &Series)| {
                    [Span::styled("■ ", self.series_style(n)), Span::styled(format!("{}  ", series.label), theme.dim)]
                };
                vec![Line::from(series.iter().enumerate().flat_map(label).collect::<Vec<_>>())]
            }
        };
        for at in 0..count.min(BARS) {
            for (n, series) in series.iter().enumerate() {
                let Some(value) = series.values.get(at).copied().flatten() else { continue };
                let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
                let cells = (share * space as f64).round() as usize;
                let label = sanitize::cut(&if n == 0 { name(at) } else { String::new() }, wide);
                let pad = " ".repeat(wide.saturating_sub(sanitize::width(&label)) + 1);
                lines.push(Line::from(vec![
                    Span::styled(format!("{label}{pad}"), theme.dim),
                    Span::styled("█".repeat(cells), self.series_style(n)),
                    Span::raw(format!(" {}", number_text(value, unit))),
                ]));
            }
        }
        if count > BARS {
            lines.push(Line::from(Span::styled(format!("… {} more", count - BARS), theme.dim)));
        }
        lines
    }
}
