//! The plain form of a surface: for terminals, exports and clients that draw nothing.

mod chart;
mod lines;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::eval::Budget;
use super::functions::{self, is_http, truthy};
use super::json::json_text;
use super::limits::{CALLS_MAX, COPIES_MAX, DEPTH_MAX, TEXT_MAX, VISITS_MAX};
use super::pointer::Pointer;
use super::resolve::Resolved;
use super::surface::Surface;
use chart::Chart;
use lines::{brief, clean, one_line, width, without_ansi, wrap};
pub use table::{cell_text, number_text, row_order};

/// Minimum and maximum number of columns that are drawn, whatever is requested.
const NARROW: usize = 20;
const WIDE: usize = 400;
/// Maximum number of bytes of a label or of a value that are used.
const LABEL: usize = 2_000;

impl Surface {
    /// Returns the surface as text of `columns` columns, without its title: headings, labels with values, buttons as `[
    /// Label ]`, tables as aligned columns, charts as blocks. It is bounded, and has no control characters other than
    /// line feed and tab.
    pub fn text(&self, columns: usize) -> String {
        let budget = Budget::new(20 * CALLS_MAX, 2 * COPIES_MAX);
        let mut drawing = Drawing { surface: self, budget, visits: VISITS_MAX, bytes: TEXT_MAX };
        let lines = drawing.component("root", &Pointer::default(), columns.clamp(NARROW, WIDE), 1);
        let mut out = String::new();
        for line in lines {
            if out.len() + line.len() + 4 > TEXT_MAX {
                out.push('…');
                return out;
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if drawing.visits == 0 || drawing.bytes == 0 {
            out.push('…');
        }
        out.truncate(out.trim_end_matches('\n').len());
        out
    }
}

struct Drawing<'a> {
    surface: &'a Surface,
    budget: Budget,
    /// Components that may still be visited.
    visits: usize,
    /// Bytes that may still be drawn.
    bytes: usize,
}

/// The properties of a component.
type Props<'a> = BTreeMap<&'a str, Cow<'a, Value>>;

impl<'a> Drawing<'a> {
    fn component(&mut self, id: &str, base: &Pointer, columns: usize, depth: usize) -> Vec<String> {
        // Restored state is not checked: it may be deeper than any command allows.
        let Some(component) = self.surface.component(id).filter(|_| depth <= DEPTH_MAX) else { return Vec::new() };
        if self.visits == 0 || self.bytes == 0 {
            return Vec::new();
        }
        self.visits -= 1;
        let resolved = self.surface.resolve_with(component, base, &mut self.budget);
        let lines = match resolved.kind {
            "Row" => self.row(&resolved, columns, depth),
            "Column" | "Card" => self.stacked(&resolved, columns, depth),
            "List" => self.list(&resolved, columns, depth),
            "Tabs" => self.tabs(&resolved, columns, depth),
            "Modal" => self.modal(&resolved, columns, depth),
            "Button" => self.button(&resolved, columns, depth),
            _ => {
                self.visits = self.visits.saturating_sub(cost(&resolved.props));
                let lines = self.leaf(&resolved, columns);
                let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
                self.bytes = self.bytes.saturating_sub(bytes);
                lines
            }
        };
        with_failed_check(&resolved, lines)
    }

    fn child(&mut self, resolved: &Resolved<'_>, at: usize, columns: usize, depth: usize) -> Vec<String> {
        let Some(slot) = resolved.children.get(at) else { return Vec::new() };
        let base = Pointer::absolute(&slot.instance).unwrap_or_default();
        self.component(&slot.id, &base, columns, depth + 1)
    }

    fn stacked(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for at in 0..resolved.children.len() {
            lines.extend(self.child(resolved, at, columns, depth));
        }
        if resolved.more > 0 {
            lines.push(table::more(resolved.more));
        }
        lines
    }

    /// Draws each item behind a mark, so that its lines are distinguished from those of the next.
    fn list(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for at in 0..resolved.children.len() {
            let item = self.child(resolved, at, columns.saturating_sub(2).max(NARROW / 2), depth);
            let mark = |n: usize| if n == 0 { "•" } else { " " };
            lines.extend(item.into_iter().enumerate().map(|(n, line)| format!("{} {line}", mark(n))));
        }
        if resolved.more > 0 {
            lines.push(table::more(resolved.more));
        }
        lines
    }

    /// Draws children side by side if each is one line and all fit, otherwise below each other.
    fn row(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let children: Vec<Vec<String>> =
            (0..resolved.children.len()).map(|at| self.child(resolved, at, columns, depth)).collect();
        let parts = || children.iter().flatten().map(|line| line.trim_end());
        let total: usize = parts().map(|line| width(line) + 2).sum();
        if children.iter().all(|child| child.len() <= 1) && total <= columns + 2 {
            let line = parts().collect::<Vec<_>>().join("  ");
            return if line.is_empty() { Vec::new() } else { vec![line] };
        }
        children.into_iter().flatten().collect()
    }

    fn tabs(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for at in 0..resolved.children.len() {
            let title = resolved.props.get("tabs").and_then(|tabs| tabs.get(at)).and_then(|tab| tab.get("title"));
            lines.push(format!("── {} ──", one_line(&brief(title.unwrap_or(&Value::Null)), LABEL)));
            lines.extend(self.child(resolved, at, columns, depth));
        }
        lines
    }

    fn modal(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let mut lines = self.child(resolved, 0, columns, depth);
        let content = self.child(resolved, 1, columns.saturating_sub(2), depth);
        lines.extend(content.into_iter().map(|line| format!("│ {line}")));
        lines
    }

    fn button(&mut self, resolved: &Resolved<'_>, columns: usize, depth: usize) -> Vec<String> {
        let label = self.child(resolved, 0, columns, depth).join(" ");
        let label = one_line(&label, LABEL);
        let url = resolved.props.get("action").and_then(|action| action.pointer("/functionCall/args/url"));
        let url = url.and_then(Value::as_str).filter(|url| is_http(url));
        let url = url.map(|url| format!(" {}", one_line(url, LABEL))).unwrap_or_default();
        vec![format!("[ {label} ]{url}")]
    }

    fn leaf(&mut self, resolved: &Resolved<'_>, columns: usize) -> Vec<String> {
        let props = &resolved.props;
        match resolved.kind {
            "Text" => heading(&block(props, "text"), &line(props, "variant"), columns),
            "Markdown" => wrap(&block(props, "text"), columns),
            "Html" => wrap(&block(props, "text"), columns),
            "Divider" => vec!["─".repeat(columns.min(40))],
            "Image" | "Video" | "AudioPlayer" => vec![media(resolved)],
            "Icon" => vec![icon_text(&line(props, "name"))],
            "TextField" | "DateTimeInput" | "Slider" | "CheckBox" | "ChoicePicker" => input(resolved),
            "Table" => {
                let mut lines = label_line(props, "label");
                let null = Value::Null;
                let columns_spec = props.get("columns").map_or(&null, |columns| columns.as_ref());
                lines.extend(table::table(
                    columns_spec,
                    list(props, "rows"),
                    props.get("sort").map(AsRef::as_ref),
                    columns,
                ));
                lines
            }
            "FileTree" => table::file_tree(list(props, "entries"), columns),
            "Chart" => {
                let mut lines = label_line(props, "title");
                let number = |key: &str| props.get(key).and_then(|n| n.as_f64());
                let labels = list(props, "labels").iter().take(1_000);
                let spec = Chart {
                    kind: &line(props, "kind"),
                    unit: line(props, "unit"),
                    labels: labels.map(|label| one_line(&brief(label), 200)).collect(),
                    min: number("min"),
                    max: number("max"),
                };
                lines.extend(chart::chart(&spec, props.get("series").map_or(&Value::Null, |series| series), columns));
                lines
            }
            "Progress" => {
                let value = props.get("value").and_then(|value| functions::number(value));
                vec![chart::progress(value, &line(props, "label"), &line(props, "state"))]
            }
            "Terminal" => {
                let text = props.get("text").and_then(|text| text.as_str()).unwrap_or_default();
                // A terminal shows the end.
                let from = text.len().saturating_sub(TEXT_MAX / 2);
                let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                clean(&without_ansi(&text[from..]), TEXT_MAX).lines().map(str::to_owned).collect()
            }
            "Code" => numbered(&block(props, "code"), props.get("startLine").and_then(|line| line.as_u64())),
            "Diff" => {
                let mut lines = label_line(props, "path");
                if props.contains_key("diff") {
                    lines.extend(block(props, "diff").lines().map(str::to_owned));
                } else {
                    lines.extend(table::differing(&block(props, "old"), &block(props, "new")));
                }
                lines
            }
            kind => {
                let raw = self.surface.component(resolved.id).map(|component| Value::Object(component.raw.clone()));
                let raw = json_text(&raw.unwrap_or_default(), LABEL);
                wrap(&clean(&format!("{}: {raw}", one_line(kind, LABEL)), LABEL), columns)
            }
        }
    }
}

/// Returns the cost of drawing a component in addition to a visit: long lists are sorted, long text is read.
fn cost(props: &Props<'_>) -> usize {
    let cost = props.values().map(|value| match value.as_ref() {
        Value::String(text) => text.len() / 4_096,
        Value::Array(items) => items.len() / 100,
        _ => 0,
    });
    cost.sum()
}

fn with_failed_check(resolved: &Resolved<'_>, mut lines: Vec<String>) -> Vec<String> {
    // The check of a button explains why it has no effect; that of an input is shown once it has a value.
    let empty = resolved.props.get("value").is_some_and(|value| !truthy(value));
    if let Some(message) = resolved.failed_check.as_ref().filter(|_| !empty) {
        lines.push(format!("  ! {}", one_line(message, LABEL)));
    }
    lines
}

fn list<'p>(props: &'p Props<'_>, key: &str) -> &'p [Value] {
    props.get(key).and_then(|value| value.as_array()).map(Vec::as_slice).unwrap_or_default()
}

/// Returns a property as text of several lines.
fn block(props: &Props<'_>, key: &str) -> String {
    match props.get(key).map(AsRef::as_ref) {
        Some(Value::String(text)) => clean(text, TEXT_MAX),
        Some(value) => clean(&brief(value), LABEL),
        None => String::new(),
    }
}

/// Returns a property as one line.
fn line(props: &Props<'_>, key: &str) -> String {
    match props.get(key).map(AsRef::as_ref) {
        Some(Value::String(text)) => one_line(text, LABEL),
        Some(value) => one_line(&brief(value), LABEL),
        None => String::new(),
    }
}

fn label_line(props: &Props<'_>, key: &str) -> Vec<String> {
    let label = line(props, key);
    if label.is_empty() { Vec::new() } else { vec![label] }
}

/// Returns lines of code, with their numbers if the first one is given.
fn numbered(code: &str, first: Option<u64>) -> Vec<String> {
    let Some(first) = first else { return code.lines().map(str::to_owned).collect() };
    let last = first.saturating_add(code.lines().count() as u64);
    let digits = last.to_string().len();
    (first..).zip(code.lines()).map(|(number, line)| format!("{number:>digits$} │ {line}")).collect()
}

fn heading(text: &str, variant: &str, columns: usize) -> Vec<String> {
    let marks = match variant {
        "h1" => "# ",
        "h2" => "## ",
        "h3" => "### ",
        "h4" => "#### ",
        "h5" => "##### ",
        _ => "",
    };
    let marks = if text.starts_with('#') { "" } else { marks };
    wrap(&format!("{marks}{text}"), columns)
}

fn media(resolved: &Resolved<'_>) -> String {
    let name = match resolved.kind {
        "Image" => "picture",
        "Video" => "video",
        _ => "audio",
    };
    let (description, url) = (line(&resolved.props, "description"), line(&resolved.props, "url"));
    let url = if is_http(&url) { url } else { String::new() };
    let parts = [description, url].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if parts.is_empty() { format!("[{name}]") } else { format!("[{name}: {parts}]") }
}

/// Returns an icon of the basic catalogue, or a word in its place.
pub fn icon_text(name: &str) -> String {
    let known = [
        ("check", "✓"),
        ("close", "✗"),
        ("error", "✗"),
        ("warning", "⚠"),
        ("star", "★"),
        ("favorite", "♥"),
        ("info", "ℹ"),
    ];
    let glyph = known.iter().find(|(known, _)| *known == name).map(|(_, glyph)| (*glyph).to_owned());
    glyph.unwrap_or_else(|| {
        if name.is_empty() || name.starts_with('{') { "(icon)".to_owned() } else { format!("({name})") }
    })
}

fn input(resolved: &Resolved<'_>) -> Vec<String> {
    let props = &resolved.props;
    let label = line(props, "label");
    let labelled = |text: String| if label.is_empty() { text } else { format!("{label}: {text}") };
    let value = line(props, "value");
    match resolved.kind {
        "CheckBox" => {
            let on = props.get("value").is_some_and(|value| truthy(value));
            vec![format!("[{}] {label}", if on { "x" } else { " " })]
        }
        "Slider" => {
            let bound =
                |key: &str, or: &str| Some(line(props, key)).filter(|text| !text.is_empty()).unwrap_or(or.to_owned());
            vec![labelled(format!("{value} ({} to {})", bound("min", "0"), bound("max", "")))]
        }
        "ChoicePicker" => {
            let chosen = list(props, "value");
            let many = line(props, "variant") == "multipleSelection";
            let option = |option: &Value| {
                let on = option.get("value").is_some_and(|value| chosen.contains(value));
                let mark = match (many, on) {
                    (true, true) => "[x]",
                    (true, false) => "[ ]",
                    (false, true) => "(•)",
                    (false, false) => "( )",
                };
                format!("  {mark} {}", one_line(&brief(option.get("label").unwrap_or(&Value::Null)), LABEL))
            };
            let head = (!label.is_empty()).then(|| format!("{label}:"));
            head.into_iter().chain(list(props, "options").iter().map(option)).collect()
        }
        // Hidden input is never shown.
        "TextField" if line(props, "variant") == "obscured" && !value.is_empty() => vec![labelled("••••••".to_owned())],
        _ if value.is_empty() => vec![labelled("______".to_owned())],
        _ => vec![labelled(value)],
    }
}
