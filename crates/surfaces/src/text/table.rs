//! Tables, file trees and diffs as text.

use std::cmp::Ordering;

use serde_json::Value;

use super::super::format::{self, plain, rounded};
use super::super::limits::ROWS_MAX;
use super::lines::{brief, cut, one_line, width};

/// Maximum number of rows that are shown.
const ROWS: usize = 20;
/// Maximum number of files of a tree that are shown.
const FILES: usize = 60;
/// Maximum width of a cell, in columns.
const CELL: usize = 40;
/// Maximum number of bytes of a cell that are used.
const CELL_BYTES: usize = 400;

/// Draws a table, at most `columns` wide.
pub(super) fn table(spec: &Value, rows: &[Value], sort: Option<&Value>, columns: usize) -> Vec<String> {
    let heads = spec.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |column: &Value, key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let order = order(rows, sort);
    let visible_rows: Vec<Vec<String>> = order
        .iter()
        .take(ROWS)
        .map(|row| {
            let row = &rows[*row];
            let cell = |column: &Value| {
                cell_text(row.get(text(column, "key")).unwrap_or(&Value::Null), &text(column, "format"))
            };
            heads.iter().map(cell).collect()
        })
        .collect();
    let labels: Vec<String> = heads.iter().map(|column| one_line(&text(column, "label"), CELL_BYTES)).collect();
    let mut widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = visible_rows.iter().map(|row| width(&row[at]));
            cells.chain([width(&labels[at])]).max().unwrap_or(0).min(CELL)
        })
        .collect();
    let gaps = 2 * heads.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns.max(gaps + heads.len()) {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
    let line = |cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(at, cell)| {
            let cell = cut(cell, widths[at]);
            let padding = widths[at].saturating_sub(width(&cell));
            match heads[at].get("align").and_then(Value::as_str).or_else(|| usual_align(&heads[at])) {
                Some("end") => format!("{}{cell}", " ".repeat(padding)),
                Some("center") => format!("{}{cell}{}", " ".repeat(padding / 2), " ".repeat(padding - padding / 2)),
                _ => format!("{cell}{}", " ".repeat(padding)),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule: Vec<String> = widths.iter().map(|columns| "─".repeat(*columns)).collect();
    let mut lines = vec![line(&labels), rule.join("  ")];
    lines.extend(visible_rows.iter().map(|row| line(row)));
    if rows.len() > ROWS {
        lines.push(more(rows.len() - ROWS));
    }
    if rows.is_empty() {
        lines.push("(no rows)".to_owned());
    }
    lines
}

fn usual_align(column: &Value) -> Option<&'static str> {
    let format = column.get("format").and_then(Value::as_str)?;
    matches!(format, "number" | "bytes" | "percent" | "duration").then_some("end")
}

/// Returns the line for omitted rows: "… 9,980 more".
pub(super) fn more(count: usize) -> String {
    format!("… {} more", rounded(count as f64, Some(0), 0, true))
}

/// Returns the order of the rows by the `sort` of a table.
fn order(rows: &[Value], sort: Option<&Value>) -> Vec<usize> {
    let descending = sort.and_then(|sort| sort.get("descending")).and_then(Value::as_bool).unwrap_or_default();
    let key = sort.and_then(|sort| sort.get("key")).and_then(Value::as_str);
    row_order(rows, key.map(|key| (key, descending)))
}

/// Returns the indices of a table's rows, at most [`ROWS_MAX`], in the order of the values of a column (its key, and
/// whether the greatest is first); without a column in their own order.
pub fn row_order(rows: &[Value], sort: Option<(&str, bool)>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len().min(ROWS_MAX)).collect();
    if let Some((key, descending)) = sort {
        let value = |row: &usize| rows[*row].get(key).unwrap_or(&Value::Null);
        order.sort_by(|a, b| {
            let order = compare(value(a), value(b));
            if descending { order.reverse() } else { order }
        });
    }
    order
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a.as_f64(), b.as_f64(), a.as_str(), b.as_str()) {
        (Some(a), Some(b), ..) => a.total_cmp(&b),
        (Some(_), None, ..) => Ordering::Less,
        (None, Some(_), ..) => Ordering::Greater,
        (.., Some(a), Some(b)) => a.cmp(b),
        (.., a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// Formats a value for its column, on one line and without control characters.
pub fn cell_text(value: &Value, format: &str) -> String {
    let number = if value.is_number() { value.as_f64() } else { None };
    match (format, number) {
        ("number", Some(n)) => rounded(n, None, 3, true),
        ("bytes", Some(n)) => bytes(n),
        ("percent", Some(n)) => format!("{}%", rounded(n * 100.0, None, 1, true)),
        ("duration", Some(n)) => duration(n),
        ("datetime", _) => {
            let at = format::moment(value);
            at.map_or_else(|| one_line(&brief(value), CELL_BYTES), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
        }
        _ => one_line(&brief(value), CELL_BYTES),
    }
}

fn bytes(n: f64) -> String {
    let mut scaled = n;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1024.0 {
            return format!("{} {unit}", rounded(scaled, None, 1, true));
        }
        scaled /= 1024.0;
    }
    format!("{} TiB", rounded(scaled, None, 1, true))
}

/// Formats seconds, in two units.
fn duration(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    let total = seconds.abs();
    if total < 60.0 {
        return format!("{sign}{} s", rounded(total, None, if total < 10.0 { 2 } else { 1 }, false));
    }
    let whole = total.min(1e15) as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{sign}{minutes}m {rest:02}s"),
        hours if hours < 48 => format!("{sign}{hours}h {minutes:02}m"),
        hours => format!("{sign}{}d {:02}h", hours / 24, hours % 24),
    }
}

/// Draws files as a tree.
pub(super) fn file_tree(entries: &[Value], columns: usize) -> Vec<String> {
    let text = |entry: &Value, key: &str| {
        entry.get(key).and_then(Value::as_str).map(|text| one_line(text, CELL_BYTES)).unwrap_or_default()
    };
    let mut files: Vec<(String, &Value)> =
        entries.iter().take(ROWS_MAX).map(|entry| (text(entry, "path"), entry)).collect();
    files.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    let mut lines = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for (path, entry) in files.iter().take(FILES) {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(32).collect();
        let name = parts.pop().unwrap_or_default();
        let same = open.iter().zip(&parts).take_while(|(a, b)| a == *b).count();
        open.truncate(same);
        for part in &parts[same..] {
            lines.push(cut(&format!("{}{part}/", "  ".repeat(open.len())), columns));
            open.push((*part).to_owned());
        }
        let mark = match text(entry, "status").as_str() {
            "added" => " (added)",
            "modified" => " (modified)",
            "deleted" => " (deleted)",
            "renamed" => " (renamed)",
            _ => "",
        };
        let note = text(entry, "note");
        let note = if note.is_empty() { note } else { format!(" – {note}") };
        lines.push(cut(&format!("{}{name}{mark}{note}", "  ".repeat(open.len())), columns));
    }
    if entries.len() > FILES {
        lines.push(more(entries.len() - FILES));
    }
    lines
}

/// Returns the lines in which two texts differ, without their common beginning and end.
pub(super) fn differing(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let context = start.saturating_sub(2)..start;
    let mut lines: Vec<String> = old[context].iter().map(|line| format!(" {line}")).collect();
    lines.extend(old[start..old.len() - end].iter().map(|line| format!("-{line}")));
    lines.extend(new[start..new.len() - end].iter().map(|line| format!("+{line}")));
    lines.extend(old[old.len() - end..].iter().take(2).map(|line| format!(" {line}")));
    lines
}

/// Returns a number with its unit, if that is not empty.
pub fn number_text(n: f64, unit: &str) -> String {
    let number = if n.abs() < 1e15 { rounded(n, None, 2, true) } else { plain(n) };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table_cells_have_the_format_of_their_column() {
        for (value, format, text) in [
            (json!(1234567), "number", "1,234,567"),
            (json!(1536), "bytes", "1.5 KiB"),
            (json!(0.256), "percent", "25.6%"),
            (json!(75), "duration", "1m 15s"),
            (json!(7300), "duration", "2h 01m"),
            (json!(0.25), "duration", "0.25 s"),
            (json!("2025-01-02T03:04:05Z"), "datetime", "2025-01-02 03:04:05"),
            (json!("soon"), "datetime", "soon"),
            (json!("x\ny"), "text", "x y"),
            (json!(null), "", ""),
            (json!([1]), "", "[1]"),
        ] {
            assert_eq!(cell_text(&value, format), text);
        }
    }

    #[test]
    fn table_is_aligned_sorted_and_cut() {
        let spec = json!([{"key": "n", "label": "Name"}, {"key": "s", "label": "Size", "format": "number"}]);
        let rows = vec![json!({"n": "b", "s": 2}), json!({"n": "a", "s": 1000})];
        let sort = json!({"key": "s", "descending": true});
        assert_eq!(table(&spec, &rows, Some(&sort), 80), ["Name   Size", "────  ─────", "a     1,000", "b         2"]);
        let many: Vec<Value> = (0..10_000).map(|n| json!({"n": "x".repeat(100), "s": n})).collect();
        let lines = table(&spec, &many, None, 30);
        assert_eq!((lines.len(), lines.last().unwrap().as_str()), (23, "… 9,980 more"));
        assert!(lines.iter().all(|line| width(line) <= 30));
    }

    #[test]
    fn table_of_files_is_a_tree() {
        let entries = json!([{"path": "src/b.rs", "status": "added"}, {"path": "README.md"}, {"path": "src/a/x.rs", "note": "why"}]);
        let lines = file_tree(entries.as_array().unwrap(), 80);
        assert_eq!(lines, ["README.md", "src/", "  a/", "    x.rs – why", "  b.rs (added)"]);
        assert_eq!(differing("a\nb\nc\n", "a\nB\nc\n"), [" a", "-b", "+B", " c"]);
    }
}
