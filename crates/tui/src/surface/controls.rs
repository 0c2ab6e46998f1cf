//! The inputs and buttons of a surface, and their lines.

use plexus_surfaces::{Resolved, is_http};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;
use serde_json::Value;

use super::super::input;
use super::super::sanitize;
use super::layout::{Drawing, LABEL_MAX, flag, line_of, list, number, raw_text};
use super::part::{ComponentKey, Control, FocusTarget, Part, drawn};

/// Maximum and minimum width of a text field, in columns.
const FIELD_WIDE: usize = 40;
const FIELD_NARROW: usize = 8;
/// Height of a text field while it is edited, in rows.
const FIELD_ROWS: usize = 6;
/// Maximum and minimum width of a slider, in columns.
const SLIDER: usize = 20;
const SLIDER_NARROW: usize = 4;
/// Number of steps from one end of a slider to the other.
const STEPS: f64 = 20.0;

/// The step of a slider: a whole number if both ends are.
pub(super) fn slider_step(min: f64, max: f64) -> f64 {
    let step = (max - min) / STEPS;
    let whole = min.fract() == 0.0 && max.fract() == 0.0 && max - min >= 1.0;
    if whole { step.round().max(1.0) } else { step }
}

impl Drawing<'_> {
    fn marker(&self, component: &ComponentKey) -> (Span<'static>, bool) {
        let on = self.has_focus(component);
        (Span::styled(if on { "▸" } else { " " }, self.cx.theme.accent), on)
    }

    /// The style of a control: reversed while it has the focus, so that the focus is visible without colour too.
    fn style(&self, base: Style, on: bool) -> Style {
        if on { base.add_modifier(Modifier::REVERSED) } else { base }
    }

    pub(super) fn focus_target(
        &self,
        component: &ComponentKey,
        part: &Part,
        control: Control,
        meaning: String,
    ) -> FocusTarget {
        FocusTarget { component: component.clone(), lines: 0..part.lines.len(), control, meaning }
    }

    pub(super) fn button(
        &mut self,
        resolved: &Resolved<'_>,
        component: &ComponentKey,
        width: usize,
        depth: usize,
    ) -> Part {
        let label = self.child(resolved, 0, width, depth).text();
        let label = if label.is_empty() { sanitize::line(resolved.id, LABEL_MAX) } else { label };
        let label = sanitize::cut(&label, width.saturating_sub(8).max(4));
        let action = resolved.props.get("action");
        let event = action.and_then(|action| action.pointer("/event/name")).and_then(Value::as_str);
        let url = action.and_then(|action| action.pointer("/functionCall/args/url")).and_then(Value::as_str);
        let url = url.filter(|url| is_http(url)).map(|url| sanitize::line(url, LABEL_MAX));
        let (marker, on) = self.marker(component);
        let theme = self.cx.theme;
        let blocked = resolved.failed_check.is_some();
        let base = match line_of(&resolved.props, "variant", LABEL_MAX).as_str() {
            _ if blocked => theme.dim,
            "primary" => theme.accent,
            _ => theme.text.add_modifier(Modifier::BOLD),
        };
        let sending = self.state.sent.as_ref() == Some(component);
        let mut spans = vec![marker, Span::styled(format!("[ {label} ]"), self.style(base, on))];
        if sending {
            spans.push(Span::styled(" sending …", theme.dim));
        } else if event.is_some_and(|event| self.answers(resolved.id, event)) {
            spans.push(Span::styled(" answers", theme.warn));
        }
        if let Some(url) = &url {
            spans.push(Span::styled(
                format!(" {}", sanitize::cut(url, width.saturating_sub(label.len() + 8))),
                theme.dim,
            ));
        }
        let mut part = Part::line(spans);
        let meaning = format!("{label}\n{}\n{}", event.unwrap_or_default(), url.clone().unwrap_or_default());
        let control = Control::Button { event: event.map(str::to_owned), url, blocked };
        part.targets.push(self.focus_target(component, &part, control, meaning));
        part
    }

    pub(super) fn text_field(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let props = &resolved.props;
        let theme = self.cx.theme;
        let variant = line_of(props, "variant", LABEL_MAX);
        let (many_lines, secret) = (variant == "longText", variant == "obscured");
        let value = raw_text(props, "value").into_owned();
        let (marker, on) = self.marker(component);
        let label = sanitize::cut(&line_of(props, "label", LABEL_MAX), width.saturating_sub(4));
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        let is_side_by_side = sanitize::width(&label) + FIELD_NARROW + 4 <= width;
        let taken = if is_side_by_side { sanitize::width(&label) } else { 0 };
        let columns = width.saturating_sub(taken + 4).clamp(FIELD_NARROW, FIELD_WIDE);
        let editing = self.state.editing.as_ref().filter(|editing| editing.component == *component);
        let field: Vec<Line<'static>> = match editing {
            Some(editing) => {
                let rows = if many_lines { input::rows(&editing.area, columns).clamp(1, FIELD_ROWS) } else { 1 };
                let mut area = editing.area.clone();
                if secret {
                    area.set_mask_char('•');
                }
                drawn(columns, rows, |rect, buffer| (&area).render(rect, buffer))
            }
            None => {
                let hint = if value.is_empty() { date_hint(resolved) } else { "" };
                let value_text = match (secret, value.is_empty()) {
                    (_, true) => hint.to_owned(),
                    (true, false) => "••••••".to_owned(),
                    (false, false) => sanitize::line(&value, columns),
                };
                let space = columns.saturating_sub(sanitize::width(&value_text));
                let base = if value.is_empty() { theme.dim } else { theme.text };
                let style = self.style(base.add_modifier(Modifier::UNDERLINED), on);
                vec![Line::from(Span::styled(format!("{value_text}{}", " ".repeat(space)), style))]
            }
        };
        let mut part = Part::default();
        let head = vec![marker, Span::styled(label, theme.dim)];
        let mut lines = field.into_iter();
        if is_side_by_side {
            let mut spans = head;
            spans.push(Span::raw("["));
            spans.extend(lines.next().unwrap_or_default().spans);
            spans.push(Span::raw("]"));
            part.lines.push(Line::from(spans));
        } else {
            part.lines.push(Line::from(head));
        }
        let margin = " ".repeat(1 + taken);
        for line in lines {
            let mut spans = vec![Span::raw(margin.clone()), Span::raw("[")];
            spans.extend(line.spans);
            spans.push(Span::raw("]"));
            part.lines.push(Line::from(spans));
        }
        if let Some(pointer) = resolved.bound.clone() {
            let control = Control::Text { pointer, value, many_lines, secret };
            part.targets.push(self.focus_target(component, &part, control, String::new()));
        }
        part
    }

    pub(super) fn check_box(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let on = flag(&resolved.props, "value");
        let (marker, focused) = self.marker(component);
        let label = sanitize::cut(&line_of(&resolved.props, "label", LABEL_MAX), width.saturating_sub(5));
        let text = format!("[{}] {label}", if on { "x" } else { " " });
        let mut part = Part::line(vec![marker, Span::styled(text, self.style(self.cx.theme.text, focused))]);
        if let Some(pointer) = resolved.bound.clone() {
            part.targets.push(self.focus_target(component, &part, Control::Check { pointer, on }, String::new()));
        }
        part
    }

    pub(super) fn choice(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let props = &resolved.props;
        let theme = self.cx.theme;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let options = list(props, "options");
        let values: Vec<String> = options.iter().map(|option| text(option, "value")).collect();
        let chosen: Vec<String> = list(props, "value").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let multiple = line_of(props, "variant", LABEL_MAX) == "multipleSelection";
        let at = self.cursor(component, values.len());
        let (marker, on) = self.marker(component);
        let label = sanitize::cut(&line_of(props, "label", LABEL_MAX), width.saturating_sub(3));
        let mut part = Part::default();
        if !label.is_empty() {
            part.lines.push(Line::from(vec![marker.clone(), Span::styled(format!("{label}:"), theme.dim)]));
        }
        let mut cursor_line = 0;
        for (n, option) in options.iter().enumerate() {
            let is_chosen = values.get(n).is_some_and(|value| chosen.contains(value));
            let mark = match (multiple, is_chosen) {
                (true, true) => "[x]",
                (true, false) => "[ ]",
                (false, true) => "(•)",
                (false, false) => "( )",
            };
            let is_current = on && n == at;
            let notice = plexus_surfaces::cell_text(option.get("label").unwrap_or(&Value::Null), "");
            let notice = sanitize::line(&notice, width.saturating_sub(8));
            let spans = vec![
                Span::styled(if is_current { " ▸ " } else { "   " }, theme.accent),
                Span::styled(format!("{mark} {notice}"), self.style(theme.text, is_current)),
            ];
            if n == at {
                cursor_line = part.lines.len();
            }
            part.lines.push(Line::from(spans));
        }
        if let Some(pointer) = resolved.bound.clone().filter(|_| !values.is_empty()) {
            let control = Control::Choice { pointer, values, chosen, multiple, at };
            let target = self.focus_target(component, &part, control, String::new());
            // The label is visible with the first options; a long list shows those around the cursor.
            let first = if cursor_line < 6 { 0 } else { cursor_line };
            part.targets.push(FocusTarget { lines: first..cursor_line + 1, ..target });
        }
        part
    }

    pub(super) fn slider(&mut self, resolved: &Resolved<'_>, component: &ComponentKey, width: usize) -> Part {
        let props = &resolved.props;
        let theme = self.cx.theme;
        let (min, max) = (number(props, "min").unwrap_or(0.0), number(props, "max").unwrap_or(1.0));
        let max = max.max(min);
        let value = number(props, "value").unwrap_or(min).clamp(min, max);
        let (marker, on) = self.marker(component);
        let label = sanitize::cut(&line_of(props, "label", LABEL_MAX), (width / 2).max(8));
        let label = if label.is_empty() { label } else { format!("{label}: ") };
        let share = if max > min { (value - min) / (max - min) } else { 0.0 };
        let text = |n: f64| plexus_surfaces::number_text(n, "");
        let (value_text, ends) = (format!(" {} ", text(value)), format!("({} to {})", text(min), text(max)));
        let taken = 1 + sanitize::width(&label) + value_text.len() + ends.len();
        let columns = width.saturating_sub(taken).clamp(SLIDER_NARROW, SLIDER);
        let at = ((share * (columns - 1) as f64).round() as usize).min(columns - 1);
        let bar = format!("{}●{}", "━".repeat(at), "─".repeat(columns - 1 - at));
        let mut part = Part::line(vec![
            marker,
            Span::styled(label, theme.dim),
            Span::styled(bar, self.style(theme.text, on)),
            Span::raw(value_text),
            Span::styled(ends, theme.dim),
        ]);
        if let Some(pointer) = resolved.bound.clone() {
            part.targets.push(self.focus_target(
                component,
                &part,
                Control::Slider { pointer, min, max, value },
                String::new(),
            ));
        }
        part
    }

    pub(super) fn tabs(
        &mut self,
        resolved: &Resolved<'_>,
        component: &ComponentKey,
        width: usize,
        depth: usize,
    ) -> Part {
        let theme = self.cx.theme;
        let tabs = list(&resolved.props, "tabs");
        let count = resolved.children.len();
        let at = self.cursor(component, count);
        let (marker, on) = self.marker(component);
        let title = |n: usize| {
            let title = tabs.get(n).and_then(|tab| tab.get("title")).unwrap_or(&Value::Null);
            sanitize::line(&plexus_surfaces::cell_text(title, ""), 30)
        };
        let mut rows = vec![vec![marker]];
        let mut used = 1;
        for n in 0..count {
            let text = if n == at { format!("[{}]", title(n)) } else { format!(" {} ", title(n)) };
            let style = match n == at {
                true => self.style(theme.accent, on),
                false => theme.dim,
            };
            let wide = sanitize::width(&text) + 1;
            if used + wide > width && used > 1 {
                rows.push(vec![Span::raw(" ")]);
                used = 1;
            }
            used += wide;
            if let Some(row) = rows.last_mut() {
                row.push(Span::styled(text, style));
                row.push(Span::raw(" "));
            }
        }
        let mut part = Part::new(rows.into_iter().map(Line::from).collect());
        part.targets.push(self.focus_target(component, &part, Control::Tabs { count, at }, String::new()));
        part.lines.push(Line::from(Span::styled("─".repeat(width.min(60)), theme.rule)));
        let child = self.child(resolved, at, width, depth);
        part.append(child);
        part
    }

    /// The text of a modal's trigger. A button as the trigger only opens the modal.
    fn trigger(&mut self, resolved: &Resolved<'_>, width: usize, depth: usize) -> String {
        let Some(slot) = resolved.children.first() else { return String::new() };
        match self.resolver.resolve(&slot.id, &slot.instance) {
            Some(button) if button.kind == "Button" => self.child(&button, 0, width, depth + 1).text(),
            _ => self.child(resolved, 0, width, depth).text(),
        }
    }

    pub(super) fn modal(
        &mut self,
        resolved: &Resolved<'_>,
        component: &ComponentKey,
        width: usize,
        depth: usize,
    ) -> Part {
        let theme = self.cx.theme;
        let open = self.state.opened.contains(component);
        let (marker, on) = self.marker(component);
        let label = sanitize::cut(&self.trigger(resolved, width, depth), width.saturating_sub(6));
        let text = format!("{} {label}", if open { "▾" } else { "▸" });
        let style = self.style(theme.text.add_modifier(Modifier::BOLD), on);
        let mut part = Part::line(vec![marker, Span::styled(text, style)]);
        part.targets.push(self.focus_target(component, &part, Control::Modal, String::new()));
        if open {
            let bar = Span::styled("  │ ", theme.rule);
            let content = self.child(resolved, 1, width.saturating_sub(4), depth);
            part.append(content.indented(&bar, &bar));
        }
        part
    }
}

/// The text of an empty date field.
fn date_hint(resolved: &Resolved<'_>) -> &'static str {
    if resolved.kind != "DateTimeInput" {
        return "";
    }
    let on = |key: &str| flag(&resolved.props, key);
    match (on("enableDate"), on("enableTime")) {
        (true, false) => "YYYY-MM-DD",
        (false, true) => "HH:MM",
        _ => "YYYY-MM-DDTHH:MM",
    }
}
