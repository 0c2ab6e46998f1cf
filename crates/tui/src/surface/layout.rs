//! Lays a surface out as lines. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plexus_surfaces::limits::DEPTH_MAX;
use plexus_surfaces::{Ask, ComponentResolver, Resolved, Surface, cell_text, icon_text, is_http};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::super::diff::diff;
use super::super::highlight::color;
use super::super::markdown::{markdown, plain, wrap};
use super::super::sanitize;
use super::super::theme::Theme;
use super::part::{ComponentKey, FocusTarget, Part};
use super::state::SurfaceState;

/// Maximum number of lines of a surface that are laid out; a note replaces the rest.
const LINES_MAX: usize = 4_000;
/// Maximum number of lines of a surface in the conversation that are laid out.
const LINES_INLINE: usize = 400;
/// Maximum size of a text that is laid out, in bytes: the end of an output, the beginning of any other text.
const TEXT_MAX: usize = 64 << 10;
/// Maximum length of a label, in columns.
pub(super) const LABEL_MAX: usize = 120;
/// Minimum width of a part that is laid out, in columns.
const NARROW: usize = 8;
/// Maximum number of children of a row that share its width if they do not fit at their own, and the minimum width of each of them, in
/// columns.
const SHARED_MAX: usize = 4;
const SHARE_MIN: usize = 20;
/// Number of columns between the children of a row.
const GAP: usize = 2;

/// The inputs of the layout besides the surface and its state.
#[derive(Debug)]
pub(crate) struct LayoutContext<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) width: usize,
    /// The number of rows on the screen, which limits tables and charts.
    pub(crate) height: usize,
    /// `true` if the surface is a part of the conversation, without keys.
    pub(crate) inline: bool,
}

/// A surface laid out.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) lines: Vec<Line<'static>>,
    pub(super) targets: Vec<FocusTarget>,
}

/// Lays a surface out.
pub(crate) fn layout(surface: &Surface, state: &SurfaceState, cx: &LayoutContext<'_>) -> Layout {
    let left = if cx.inline { LINES_INLINE } else { LINES_MAX };
    let mut drawing = Drawing { resolver: surface.resolver(), state, cx, rev: surface.rev(), ask: surface.ask(), left };
    let mut part = drawing.component("root", "", cx.width, 1);
    if drawing.left == 0 || drawing.resolver.is_exhausted() {
        let text = "… more than can be shown here";
        part.lines.push(Line::from(Span::styled(text, cx.theme.dim)));
    }
    Layout { lines: part.lines, targets: part.targets }
}

pub(super) struct Drawing<'a> {
    pub(super) resolver: ComponentResolver<'a>,
    pub(super) state: &'a SurfaceState,
    pub(super) cx: &'a LayoutContext<'a>,
    pub(super) rev: u64,
    ask: Option<&'a Ask>,
    /// The number of lines that may still be laid out.
    left: usize,
}

/// The properties of a component.
pub(super) type Props<'a> = BTreeMap<&'a str, Cow<'a, Value>>;

impl Drawing<'_> {
    pub(super) fn component(&mut self, id: &str, instance: &str, width: usize, depth: usize) -> Part {
        if depth > DEPTH_MAX || self.left == 0 {
            return Part::default();
        }
        let Some(resolved) = self.resolver.resolve(id, instance) else { return Part::default() };
        let component = ComponentKey { id: id.to_owned(), instance: instance.to_owned() };
        let width = width.max(NARROW);
        let container = matches!(resolved.kind, "Column" | "List" | "Row" | "Card" | "Tabs" | "Modal");
        let mut part = match resolved.kind {
            "Column" => self.column(&resolved, width, depth),
            "List" => self.list(&resolved, width, depth),
            "Row" => self.row(&resolved, width, depth),
            "Card" => {
                let bar = Span::styled("│ ", self.cx.theme.rule);
                self.column(&resolved, width - 2, depth).indented(&bar, &bar)
            }
            "Tabs" => self.tabs(&resolved, &component, width, depth),
            "Modal" => self.modal(&resolved, &component, width, depth),
            "Button" => self.button(&resolved, &component, width, depth),
            "TextField" | "DateTimeInput" => self.text_field(&resolved, &component, width),
            "CheckBox" => self.check_box(&resolved, &component, width),
            "ChoicePicker" => self.choice(&resolved, &component, width),
            "Slider" => self.slider(&resolved, &component, width),
            "Table" => self.table(&resolved, &component, width),
            "FileTree" => self.tree(&resolved, &component, width),
            "Chart" => Part::new(self.chart(&resolved.props, width)),
            _ => Part::new(self.leaf(&resolved, width)),
        };
        // The failed check of an input is shown once it has a value; that of a button explains why it has no effect.
        let empty = resolved.props.contains_key("value") && raw_text(&resolved.props, "value").is_empty();
        if let Some(message) = resolved.failed_check.as_ref().filter(|_| !empty) {
            let text = [Span::styled(sanitize::line(message, 400), self.cx.theme.warn)];
            let first = Span::styled("  ! ", self.cx.theme.warn);
            part.lines.extend(wrap(&text, &first, &Span::raw("    "), width));
        }
        if !container {
            part.lines.truncate(self.left);
            self.left -= part.lines.len();
        }
        part
    }

    pub(super) fn child(&mut self, resolved: &Resolved<'_>, at: usize, width: usize, depth: usize) -> Part {
        match resolved.children.get(at) {
            Some(slot) => self.component(&slot.id, &slot.instance, width, depth + 1),
            None => Part::default(),
        }
    }

    pub(super) fn has_focus(&self, component: &ComponentKey) -> bool {
        !self.cx.inline && self.state.focus.as_ref() == Some(component)
    }

    /// The cursor of a list with `count` items.
    pub(super) fn cursor(&self, component: &ComponentKey, count: usize) -> usize {
        self.state.cursors.get(component).copied().unwrap_or_default().min(count.saturating_sub(1))
    }

    /// Returns whether this event of a button answers the surface's question.
    pub(super) fn answers(&self, component: &str, event: &str) -> bool {
        self.ask.is_some_and(|ask| ask.submit.iter().any(|name| name == event || name == component))
    }

    fn column(&mut self, resolved: &Resolved<'_>, width: usize, depth: usize) -> Part {
        let mut part = Part::default();
        for at in 0..resolved.children.len() {
            let child = self.child(resolved, at, width, depth);
            part.append(child);
        }
        self.count_more(resolved, &mut part);
        part
    }

    fn list(&mut self, resolved: &Resolved<'_>, width: usize, depth: usize) -> Part {
        if line_of(&resolved.props, "direction", LABEL_MAX) == "horizontal" {
            return self.row(resolved, width, depth);
        }
        let (first, next) = (Span::styled("• ", self.cx.theme.rule), Span::raw("  "));
        let mut part = Part::default();
        for at in 0..resolved.children.len() {
            let child = self.child(resolved, at, width.saturating_sub(2), depth);
            part.append(child.indented(&first, &next));
        }
        self.count_more(resolved, &mut part);
        part
    }

    fn count_more(&self, resolved: &Resolved<'_>, part: &mut Part) {
        if resolved.more > 0 {
            part.lines.push(Line::from(Span::styled(format!("… {} more", resolved.more), self.cx.theme.dim)));
        }
    }

    /// Lays out children side by side if they fit; a few that do not fit share the width, others are stacked.
    fn row(&mut self, resolved: &Resolved<'_>, width: usize, depth: usize) -> Part {
        let count = resolved.children.len();
        let left = self.left;
        let parts: Vec<Part> = (0..count).map(|at| self.child(resolved, at, width, depth)).collect();
        let gaps = GAP * count.saturating_sub(1);
        if parts.iter().map(Part::width).sum::<usize>() + gaps <= width {
            let parts = parts.into_iter().filter(|part| !part.lines.is_empty());
            return Part::side_by_side(
                parts.map(|part| (part.width(), part)).map(|(width, part)| (part, width)).collect(),
                GAP,
            );
        }
        let share = width.saturating_sub(gaps) / count.max(1);
        if (2..=SHARED_MAX).contains(&count) && share >= SHARE_MIN {
            self.left = left;
            let parts = (0..count).map(|at| (self.child(resolved, at, share, depth), share));
            return Part::side_by_side(parts.collect(), GAP);
        }
        let mut out = Part::default();
        parts.into_iter().for_each(|part| out.append(part));
        self.count_more(resolved, &mut out);
        out
    }

    /// Lays out a component without keys and children.
    fn leaf(&mut self, resolved: &Resolved<'_>, width: usize) -> Vec<Line<'static>> {
        let (props, theme) = (&resolved.props, self.cx.theme);
        let none = Span::raw("");
        match resolved.kind {
            "Text" => plain(beginning(&raw_text(props, "text")), text_style(props, theme), &none, width),
            "Markdown" => markdown(beginning(&raw_text(props, "text")), theme, &none, width),
            "Html" => {
                let note = "A page of the agent's own, drawn in a browser. As text:";
                let mut lines = plain(note, theme.dim, &none, width);
                lines.extend(plain(beginning(&raw_text(props, "text")), theme.text, &none, width));
                lines
            }
            "Divider" if line_of(props, "axis", LABEL_MAX) == "vertical" => {
                vec![Line::from(Span::styled("│", theme.rule))]
            }
            "Divider" => vec![Line::from(Span::styled("─".repeat(width.min(60)), theme.rule))],
            "Image" | "Video" | "AudioPlayer" => plain(&media(resolved), theme.dim, &none, width),
            "Icon" => {
                let icon = icon_text(&line_of(props, "name", LABEL_MAX));
                vec![Line::from(Span::styled(sanitize::line(&icon, width), theme.accent))]
            }
            "Code" => self.code(props, width),
            "Diff" => self.diff(props, width),
            "Terminal" => self.terminal(props, width),
            "Progress" => vec![self.progress(props, width)],
            _ => {
                let text = format!("[{}: unknown to this version]", sanitize::line(resolved.kind, LABEL_MAX));
                plain(&text, theme.dim, &none, width)
            }
        }
    }

    fn code(&self, props: &Props<'_>, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let code = raw_text(props, "code");
        let code = sanitize::text(beginning(&code));
        let language = line_of(props, "language", LABEL_MAX).to_lowercase();
        let first = props.get("startLine").and_then(|line| line.as_u64());
        let digits = first.map_or(0, |first| first.saturating_add(code.lines().count() as u64).to_string().len());
        let mut lines = Vec::new();
        for (n, line) in (0..).zip(code.trim_end_matches('\n').split('\n').take(LINES_MAX)) {
            let number = first.map(|first| format!("{:>digits$} ", first.saturating_add(n))).unwrap_or_default();
            let next = Span::styled(format!("{}│ ", " ".repeat(number.len())), theme.rule);
            let number = Span::styled(format!("{number}│ "), theme.rule);
            lines.extend(wrap(&color(line, &language, theme), &number, &next, width));
        }
        lines
    }

    fn diff(&self, props: &Props<'_>, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let mut lines = Vec::new();
        let path = line_of(props, "path", width);
        if !path.is_empty() {
            lines.push(Line::from(Span::styled(path, theme.accent)));
        }
        if props.contains_key("diff") {
            let text = raw_text(props, "diff");
            for line in sanitize::text(beginning(&text)).trim_end_matches('\n').split('\n').take(LINES_MAX) {
                lines.extend(wrap(&color(line, "diff", theme), &Span::raw(""), &Span::raw("  "), width));
            }
        } else {
            let (old, new) = (raw_text(props, "old"), raw_text(props, "new"));
            lines.extend(diff(0, beginning(&old), beginning(&new), theme, &Span::raw(""), width).0);
        }
        lines
    }

    /// Lays out the end of a program's output, with its colours.
    fn terminal(&self, props: &Props<'_>, width: usize) -> Vec<Line<'static>> {
        let theme = self.cx.theme;
        let max = props.get("rows").and_then(|rows| rows.as_u64()).and_then(|rows| usize::try_from(rows).ok());
        let max = max.unwrap_or(24).clamp(1, 200);
        let text = raw_text(props, "text");
        let bar = Span::styled("│ ", theme.rule);
        let rows = sanitize::output(end(&text), theme.text);
        let from = rows.len().saturating_sub(max);
        let mut lines: Vec<Line<'static>> =
            rows[from..].iter().flat_map(|spans| wrap(spans, &bar, &bar, width)).collect();
        lines.drain(..lines.len().saturating_sub(max));
        lines
    }

    fn progress(&self, props: &Props<'_>, width: usize) -> Line<'static> {
        const CELLS: usize = 20;
        let theme = self.cx.theme;
        let (label, state) = (line_of(props, "label", width / 2), line_of(props, "state", 20));
        let style = match state.as_str() {
            "done" => theme.ok,
            "failed" => theme.bad,
            "waiting" => theme.warn,
            _ => theme.busy,
        };
        let mut spans = Vec::new();
        if !label.is_empty() {
            spans.push(Span::raw(format!("{label} ")));
        }
        if let Some(value) = number(props, "value") {
            let value = value.clamp(0.0, 1.0);
            let other_columns = sanitize::width(&label) + sanitize::width(&state) + 9;
            let cells = width.saturating_sub(other_columns).clamp(4, CELLS);
            let full = (value * cells as f64).round() as usize;
            spans.push(Span::styled("█".repeat(full), style));
            spans.push(Span::styled("░".repeat(cells - full.min(cells)), theme.rule));
            spans.push(Span::raw(format!(" {}%", (value * 100.0).round())));
        }
        let state = if state.is_empty() && spans.len() < 2 { "running".to_owned() } else { state };
        if !state.is_empty() {
            spans.push(Span::styled(format!(" ({state})"), style));
        }
        Line::from(spans)
    }
}

/// The style of a text by its variant.
fn text_style(props: &Props<'_>, theme: &Theme) -> Style {
    match line_of(props, "variant", LABEL_MAX).as_str() {
        "h1" | "h2" => theme.accent.add_modifier(Modifier::BOLD),
        "h3" | "h4" | "h5" => theme.text.add_modifier(Modifier::BOLD),
        "caption" => theme.dim,
        _ => theme.text,
    }
}

fn media(resolved: &Resolved<'_>) -> String {
    let name = match resolved.kind {
        "Image" => "picture",
        "Video" => "video",
        _ => "audio",
    };
    let (description, url) = (line_of(&resolved.props, "description", 400), line_of(&resolved.props, "url", 400));
    let url = if is_http(&url) { url } else { String::new() };
    let parts: Vec<String> = [description, url].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { format!("[{name}]") } else { format!("[{name}: {}]", parts.join(" ")) }
}

// === properties

/// A property as text, not sanitized.
pub(super) fn raw_text<'p>(props: &'p Props<'_>, key: &str) -> Cow<'p, str> {
    match props.get(key).map(AsRef::as_ref) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(value) => Cow::Owned(cell_text(value, "")),
        None => Cow::Borrowed(""),
    }
}

/// A property as one sanitized line.
pub(super) fn line_of(props: &Props<'_>, key: &str, max: usize) -> String {
    sanitize::line(&raw_text(props, key), max)
}

pub(super) fn list<'p>(props: &'p Props<'_>, key: &str) -> &'p [Value] {
    props.get(key).and_then(|value| value.as_array()).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn number(props: &Props<'_>, key: &str) -> Option<f64> {
    let value = props.get(key)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|n| n.is_finite())
}

/// Returns whether a property is true.
pub(super) fn flag(props: &Props<'_>, key: &str) -> bool {
    match props.get(key).map(AsRef::as_ref) {
        Some(Value::Bool(on)) => *on,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(_) | Value::Object(_)) => true,
        Some(Value::Null) | None => false,
    }
}

fn beginning(text: &str) -> &str {
    let at = (0..=text.len().min(TEXT_MAX)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..at]
}

fn end(text: &str) -> &str {
    let from = text.len().saturating_sub(TEXT_MAX);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}
