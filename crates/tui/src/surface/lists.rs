//! Tables and trees of files: only the rows around the cursor are laid out.

use std::collections::{BTreeMap, BTreeSet};

use plexus_surfaces::{Resolved, cell_text};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::super::sanitize;
use super::layout::{Drawing, LABEL_MAX, line_of, list};
use super::part::{ComponentKey, Control, Part};

/// Maximum width of a cell, in columns.
const CELL_MAX: usize = 40;
/// Maximum number of columns of a table that are laid out.
const COLUMNS_MAX: usize = 32;
/// Minimum number of rows on the screen, and maximum number in the conversation.
const ROWS_MIN: usize = 4;
const ROWS_INLINE: usize = 6;
/// Number of lines of the page that a table or tree leaves for other parts.
const OTHER_LINES: usize = 6;
/// Number of columns between two cells.
const GAP: usize = 2;

/// An entry of a tree: a folder, or the index of a file.
#[derive(Clone, Debug, PartialEq)]
struct TreeRow {
    depth: usize,
    name: String,
    path: String,
    /// `true` if the entry is a folded folder; `None` for a file.
    folder: Option<bool>,
    entry: Option<usize>,
}

impl Drawing<'_> {
    /// The rows on the screen: the first one, and their number.
    fn window(&self, count: usize, at: usize) -> (usize, usize) {
        let rows = if self.cx.inline { ROWS_INLINE } else { self.cx.height.saturating_sub(OTHER_LINES).max(ROWS_MIN) };
        let visible = count.min(rows);
        (at.saturating_sub(rows / 2).min(count - visible), visible)
    }

    pub(super) fn table(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let (props, theme) = (&resolved.props, self.cx.theme);
        let heads: Vec<&Value> = list(props, "columns").iter().take(COLUMNS_MAX).collect();
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let keys: Vec<String> = heads.iter().map(|head| text(head, "key")).collect();
        let rows = list(props, "rows");
        let default = props.get("sort").and_then(|sort| {
            let descending = sort.get("descending").and_then(Value::as_bool).unwrap_or_default();
            Some((sort.get("key")?.as_str()?.to_owned(), descending))
        });
        let sort = self.state.sorts.get(component).cloned().unwrap_or(default);
        let order = self.state.order(component, self.rev, rows, sort.as_ref());
        let at = self.cursor(component, order.len());
        let column = self.state.columns.get(component).copied().unwrap_or_default().min(keys.len().saturating_sub(1));
        let on = self.has_focus(component);
        let (first, visible) = self.window(order.len(), at);
        let cells: Vec<Vec<String>> = order[first..first + visible]
            .iter()
            .map(|row| {
                let cell = |head: &&Value| {
                    let value = rows[*row].get(text(head, "key")).unwrap_or(&Value::Null);
                    sanitize::line(&cell_text(value, &text(head, "format")), CELL_MAX)
                };
                heads.iter().map(cell).collect()
            })
            .collect();
        let mark = |key: &str| match &sort {
            Some((sorted, descending)) if sorted == key => {
                if *descending {
                    " ▼"
                } else {
                    " ▲"
                }
            }
            _ => "",
        };
        let labels: Vec<String> = heads
            .iter()
            .map(|head| format!("{}{}", sanitize::line(&text(head, "label"), CELL_MAX), mark(&text(head, "key"))))
            .collect();
        let widths = widths(&labels, &cells, width.saturating_sub(2));
        let mut part = Part::default();
        let label = line_of(props, "label", width);
        if !label.is_empty() {
            part.lines.push(Line::from(Span::styled(label, theme.text.add_modifier(Modifier::BOLD))));
        }
        let head_style = |n: usize| {
            let style = theme.dim.add_modifier(Modifier::BOLD);
            if on && n == column { style.add_modifier(Modifier::REVERSED | Modifier::UNDERLINED) } else { style }
        };
        part.lines.push(row_line(&labels, &heads, &widths, Span::raw("  "), head_style));
        let rule = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        part.lines.push(Line::from(Span::styled(format!("  {}", "─".repeat(rule)), theme.rule)));
        let top = part.lines.len();
        for (n, cells) in cells.iter().enumerate() {
            let cursor_line = on && first + n == at;
            let marker = Span::styled(if cursor_line { "▸ " } else { "  " }, theme.accent);
            let style = if cursor_line { theme.text.add_modifier(Modifier::REVERSED) } else { theme.text };
            part.lines.push(row_line(cells, &heads, &widths, marker, |_| style));
        }
        if rows.is_empty() {
            part.lines.push(Line::from(Span::styled("  (no rows)", theme.dim)));
        } else if order.len() > visible {
            let notice = format!("  rows {}–{} of {}", first + 1, first + visible, order.len());
            part.lines.push(Line::from(Span::styled(notice, theme.dim)));
        }
        let event = event_of(resolved);
        let item = order.get(at).copied();
        let meaning = cells.get(at.saturating_sub(first)).map(|cells| cells.join("\t")).unwrap_or_default();
        let control = Control::Table { rows: order.len(), at, columns: keys, column, sort, item, event };
        let mut target = self.focus_target(component, &part, control, meaning);
        let cursor_line = top + at.saturating_sub(first);
        target.lines = if on && cursor_line > top + 2 {
            cursor_line..cursor_line + 1
        } else {
            0..(cursor_line + 1).min(part.lines.len())
        };
        part.targets.push(target);
        part
    }

    pub(super) fn tree(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let theme = self.cx.theme;
        let entries = list(&resolved.props, "entries");
        let none = BTreeSet::new();
        let all = tree_rows(entries, self.state.folded.get(component).unwrap_or(&none));
        let at = self.cursor(component, all.len());
        let on = self.has_focus(component);
        let (first, visible) = self.window(all.len(), at);
        let mut part = Part::default();
        for (n, row) in all.iter().enumerate().skip(first).take(visible) {
            let cursor_line = on && n == at;
            let text = |key: &str| {
                let entry = row.entry.and_then(|entry| entries.get(entry));
                entry.and_then(|entry| entry.get(key)).and_then(Value::as_str).unwrap_or_default()
            };
            let fold = match row.folder {
                Some(true) => "▸ ",
                Some(false) => "▾ ",
                None => "  ",
            };
            let (status, style) = match text("status") {
                "added" => (" (added)", theme.ok),
                "modified" => (" (modified)", theme.warn),
                "deleted" => (" (deleted)", theme.bad.remove_modifier(Modifier::BOLD)),
                "renamed" => (" (renamed)", theme.busy),
                _ => ("", theme.text),
            };
            let style = if cursor_line { style.add_modifier(Modifier::REVERSED) } else { style };
            let indent = "  ".repeat(row.depth.min(width / 8));
            let space = width.saturating_sub(4 + indent.len() + status.len()).max(4);
            let name = if row.folder.is_some() { format!("{}/", row.name) } else { row.name.clone() };
            let mut spans = vec![
                Span::styled(if cursor_line { "▸ " } else { "  " }, theme.accent),
                Span::styled(format!("{indent}{fold}"), theme.rule),
                Span::styled(sanitize::line(&name, space), style),
                Span::styled(status, style.remove_modifier(Modifier::REVERSED)),
            ];
            let note = sanitize::line(text("note"), LABEL_MAX);
            if !note.is_empty() {
                let used = spans.iter().map(|span| sanitize::width(&span.content)).sum::<usize>();
                spans.push(Span::styled(
                    format!(" – {}", sanitize::cut(&note, width.saturating_sub(used + 3))),
                    theme.dim,
                ));
            }
            part.lines.push(Line::from(spans));
        }
        if all.is_empty() {
            part.lines.push(Line::from(Span::styled("  (no files)", theme.dim)));
        } else if all.len() > visible {
            let notice = format!("  {}–{} of {}", first + 1, first + visible, all.len());
            part.lines.push(Line::from(Span::styled(notice, theme.dim)));
        }
        let item = all.get(at).map(|row| (row.path.clone(), row.folder.is_some()));
        let meaning = item.as_ref().map(|(path, _)| path.clone()).unwrap_or_default();
        let control = Control::Tree { rows: all.len(), at, item, event: event_of(resolved) };
        let mut target = self.focus_target(component, &part, control, meaning);
        let cursor_line = at.saturating_sub(first);
        target.lines = cursor_line..(cursor_line + 1).min(part.lines.len());
        part.targets.push(target);
        part
    }
}

/// The event that selecting an item sends.
fn event_of(resolved: &Resolved<'_>) -> Option<String> {
    let event = resolved.props.get("onSelect")?.pointer("/event/name")?.as_str()?;
    Some(event.to_owned())
}

/// The width of each cell: that of its text if it fits; else the widest are cut.
fn widths(labels: &[String], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = labels.iter().map(|label| sanitize::width(label)).collect();
    for row in rows {
        for (columns, cell) in widths.iter_mut().zip(row) {
            *columns = (*columns).max(sanitize::width(cell));
        }
    }
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 3 => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn row_line(
    cells: &[String],
    heads: &[&Value],
    widths: &[usize],
    marker: Span<'static>,
    style: impl Fn(usize) -> Style,
) -> Line<'static> {
    let mut spans = vec![marker];
    for (n, (cell, columns)) in cells.iter().zip(widths).enumerate() {
        let cell = sanitize::cut(cell, *columns);
        let space = columns.saturating_sub(sanitize::width(&cell));
        let text = |key: &str| heads.get(n).and_then(|head| head.get(key)).and_then(Value::as_str);
        let numeric = matches!(text("format"), Some("number" | "bytes" | "percent" | "duration"));
        let (before, after) = match text("align") {
            Some("end") => (space, 0),
            Some("center") => (space / 2, space - space / 2),
            None if numeric => (space, 0),
            _ => (0, space),
        };
        if n > 0 {
            spans.push(Span::styled(" ".repeat(GAP), Style::new()));
        }
        spans.push(Span::styled(format!("{}{cell}{}", " ".repeat(before), " ".repeat(after)), style(n)));
    }
    Line::from(spans)
}

/// The visible rows of a tree: folders first in each folder, in the order of their names.
fn tree_rows(entries: &[Value], folded: &BTreeSet<String>) -> Vec<TreeRow> {
    /// The folders of a folder, and its files with their indexes.
    #[derive(Default)]
    struct Folder {
        folders: BTreeMap<String, Folder>,
        files: BTreeMap<(String, usize), usize>,
    }
    /// Maximum depth of folders; deeper ones become a part of the name.
    const DEEP: usize = 32;
    let mut root = Folder::default();
    for (n, entry) in entries.iter().enumerate().take(plexus_surfaces::limits::ROWS_MAX) {
        let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
        let mut parts: Vec<&str> = path.splitn(DEEP, '/').filter(|part| !part.is_empty()).collect();
        let name = parts.pop().unwrap_or_default().to_owned();
        let folder =
            parts.into_iter().fold(&mut root, |folder, part| folder.folders.entry(part.to_owned()).or_default());
        folder.files.insert((name, n), n);
    }
    fn walk(
        folder: &Folder,
        prefix: &str,
        depth: usize,
        folded: &BTreeSet<String>,
        entries: &[Value],
        out: &mut Vec<TreeRow>,
    ) {
        for (name, inner) in &folder.folders {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let is_folded = folded.contains(&path);
            out.push(TreeRow { depth, name: name.clone(), path: path.clone(), folder: Some(is_folded), entry: None });
            if !is_folded {
                walk(inner, &path, depth + 1, folded, entries, out);
            }
        }
        for ((name, _), entry) in &folder.files {
            let path =
                entries.get(*entry).and_then(|entry| entry.get("path")).and_then(Value::as_str).unwrap_or_default();
            out.push(TreeRow { depth, name: name.clone(), path: path.to_owned(), folder: None, entry: Some(*entry) });
        }
    }
    let mut out = Vec::new();
    walk(&root, "", 0, folded, entries, &mut out);
    out
}
