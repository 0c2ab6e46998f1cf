//! The keys of an open surface. Pure.

use std::collections::BTreeSet;

use plexus_protocol::api::surfaces::SurfaceAction;
use plexus_surfaces::Surface;
use ratatui_textarea::TextArea;
use serde_json::{Value, json};

use super::super::input::{self, Key};
use super::controls::slider_step;
use super::layout::{LayoutContext, layout};
use super::part::{ComponentKey, Control, FocusTarget};
use super::state::{Editing, SurfaceState};

/// Maximum length of one field, in bytes; the gateway accepts 64 KiB of inputs.
const FIELD_MAX: usize = 60 << 10;

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum SurfaceStep {
    /// The key does not belong to the surface.
    Nothing,
    Handled,
    /// Returns to the conversation.
    Close,
    /// Goes to the next or previous surface.
    Next,
    Previous,
    /// Sends this action.
    Press(SurfaceAction),
    /// Copies this address.
    Copy(String),
    /// Shows this text to the user.
    Notice(String),
}

impl SurfaceState {
    pub(super) fn key(&mut self, key: &Key, surface: &Surface, cx: &LayoutContext<'_>, now: i64) -> SurfaceStep {
        self.refresh(surface);
        let targets = layout(self.visible(surface), self, cx).targets;
        let at =
            self.focus.as_ref().and_then(|component| targets.iter().position(|target| target.component == *component));
        let step = match (self.editing.take(), at.map(|at| &targets[at])) {
            (Some(editing), Some(target)) => self.edit(editing, key, target, &targets),
            (_, target) => self.plain_key(key, target, at, &targets, surface, now),
        };
        // A change by the user's own key need not be looked at before the next press.
        self.own = step != SurfaceStep::Nothing;
        step
    }

    /// Handles a key while text is being typed.
    fn edit(&mut self, mut editing: Editing, key: &Key, target: &FocusTarget, targets: &[FocusTarget]) -> SurfaceStep {
        let Control::Text { pointer, many_lines, .. } = &target.control else { return SurfaceStep::Handled };
        match key.name() {
            "Esc" => return SurfaceStep::Handled,
            "Tab" => self.move_focus(targets, true),
            "S-Tab" => self.move_focus(targets, false),
            "Enter" if !many_lines => self.move_focus(targets, true),
            "Up" | "Down" | "M-Enter" | "C-j" | "S-Enter" if !many_lines => self.editing = Some(editing),
            name => {
                let before = editing.area.lines().join("\n");
                if name == "Enter" {
                    editing.area.insert_newline();
                } else {
                    input::edit(&mut editing.area, key);
                }
                let text = editing.area.lines().join("\n");
                if text.len() > FIELD_MAX {
                    editing.area = input::area(&before);
                } else if text != before {
                    self.set_input(pointer, text.into());
                }
                self.editing = Some(editing);
                self.follow = true;
            }
        }
        SurfaceStep::Handled
    }

    fn plain_key(
        &mut self,
        key: &Key,
        target: Option<&FocusTarget>,
        at: Option<usize>,
        targets: &[FocusTarget],
        surface: &Surface,
        now: i64,
    ) -> SurfaceStep {
        // Letters are text if a field has the focus.
        if let Some(FocusTarget { component, control: Control::Text { value, secret, .. }, .. }) = target
            && (key.name().chars().count() == 1 || key.name() == "Backspace")
        {
            let text = if *secret && !self.has_input(target) { "" } else { value.as_str() };
            let editing = Editing { component: component.clone(), area: field(text) };
            return match target {
                Some(target) => self.edit(editing, key, target, targets),
                None => SurfaceStep::Handled,
            };
        }
        match key.name() {
            "Esc" | "q" => return SurfaceStep::Close,
            "]" | "s" => return SurfaceStep::Next,
            "[" => return SurfaceStep::Previous,
            "Tab" => self.move_focus(targets, true),
            "S-Tab" => self.move_focus(targets, false),
            "Enter" | " " => {
                return match target {
                    Some(target) => self.press(target, surface, now),
                    None => SurfaceStep::Handled,
                };
            }
            name => {
                if let Some(target) = target
                    && self.within(target, name)
                {
                    self.follow = true;
                    return SurfaceStep::Handled;
                }
                return self.across(name, at, targets);
            }
        }
        SurfaceStep::Handled
    }

    /// Returns whether the user has already typed into the field of this place.
    fn has_input(&self, target: Option<&FocusTarget>) -> bool {
        matches!(target.map(|target| &target.control), Some(Control::Text { pointer, .. }) if self.inputs.contains_key(pointer))
    }

    /// Moves the focus to the next or previous control; it wraps around.
    fn move_focus(&mut self, targets: &[FocusTarget], next: bool) {
        let at =
            self.focus.as_ref().and_then(|component| targets.iter().position(|target| target.component == *component));
        let to = match (at, next) {
            (None, true) => 0,
            (None, false) => targets.len().saturating_sub(1),
            (Some(at), true) => (at + 1) % targets.len().max(1),
            (Some(at), false) => (at + targets.len().saturating_sub(1)) % targets.len().max(1),
        };
        self.focus = targets.get(to).map(|target| target.component.clone());
        self.follow = true;
    }

    /// Handles a key that moves within the control; returns `false` if it is at the end.
    fn within(&mut self, target: &FocusTarget, name: &str) -> bool {
        let component = &target.component;
        match &target.control {
            Control::Choice { values, at, .. } => self.move_cursor(component, *at, values.len(), name, 1),
            Control::Table { rows, at, columns, column, sort, .. } => match name {
                "Left" | "h" => self.set_column(component, column.checked_sub(1)),
                "Right" | "l" => self.set_column(component, Some(column + 1).filter(|next| *next < columns.len())),
                "o" => {
                    self.sort(component, columns.get(*column), sort.as_ref());
                    true
                }
                _ => self.move_cursor(component, *at, *rows, name, self.page()),
            },
            Control::Tree { rows, at, item, .. } => match (name, item) {
                ("Left" | "h", Some((path, true))) => self.fold(component, path, true),
                ("Right" | "l", Some((path, true))) => self.fold(component, path, false),
                _ => self.move_cursor(component, *at, *rows, name, self.page()),
            },
            Control::Tabs { count, at } => {
                let to = match name {
                    "Left" | "h" => at.checked_sub(1),
                    "Right" | "l" => Some(at + 1).filter(|next| next < count),
                    _ => return false,
                };
                if let Some(to) = to {
                    self.cursors.insert(component.clone(), to);
                }
                true
            }
            Control::Slider { pointer, min, max, value } => {
                let step = slider_step(*min, *max);
                let to = match name {
                    "Left" | "h" | "-" => value - step,
                    "Right" | "l" | "+" => value + step,
                    "Home" => *min,
                    "End" => *max,
                    _ => return false,
                };
                let to = to.clamp(*min, *max);
                let to = if to.fract() == 0.0 && to.abs() < 1e15 { json!(to as i64) } else { json!(to) };
                self.set_input(pointer, to);
                true
            }
            Control::Button { .. } | Control::Text { .. } | Control::Check { .. } | Control::Modal => false,
        }
    }

    fn move_cursor(&mut self, component: &ComponentKey, at: usize, count: usize, name: &str, page: usize) -> bool {
        let last = count.saturating_sub(1);
        let to = match name {
            "Down" | "j" if at < last => at + 1,
            "Up" | "k" if at > 0 => at - 1,
            "PageDown" if page > 1 && at < last => (at + page).min(last),
            "PageUp" if page > 1 && at > 0 => at.saturating_sub(page),
            "Home" | "g" if page > 1 => 0,
            "End" | "G" if page > 1 => last,
            _ => return false,
        };
        self.cursors.insert(component.clone(), to);
        true
    }

    fn set_column(&mut self, component: &ComponentKey, column: Option<usize>) -> bool {
        if let Some(column) = column {
            self.columns.insert(component.clone(), column);
        }
        true
    }

    /// Sorts by a column: ascending, descending, in the agent's order.
    fn sort(&mut self, component: &ComponentKey, key: Option<&String>, now: Option<&(String, bool)>) {
        let Some(key) = key else { return };
        let to = match now {
            Some((sorted, false)) if sorted == key => Some((key.clone(), true)),
            Some((sorted, true)) if sorted == key => None,
            _ => Some((key.clone(), false)),
        };
        self.sorts.insert(component.clone(), to);
        self.cursors.remove(component);
    }

    fn fold(&mut self, component: &ComponentKey, path: &str, fold: bool) -> bool {
        let folded = self.folded.entry(component.clone()).or_default();
        if fold {
            folded.insert(path.to_owned())
        } else {
            folded.remove(path)
        };
        true
    }

    /// Handles a key that moves between controls, or scrolls.
    fn across(&mut self, name: &str, at: Option<usize>, targets: &[FocusTarget]) -> SurfaceStep {
        let page = i64::try_from(self.page()).unwrap_or(i64::MAX);
        match (name, at) {
            ("Down" | "j", Some(at)) if at + 1 < targets.len() => self.move_focus(targets, true),
            ("Up" | "k", Some(at)) if at > 0 => self.move_focus(targets, false),
            ("Down" | "j" | "C-Down", _) => self.scroll_by(1),
            ("Up" | "k" | "C-Up", _) => self.scroll_by(-1),
            ("PageDown" | "C-f", _) => self.scroll_by(page),
            ("PageUp" | "C-b", _) => self.scroll_by(-page),
            ("C-d", _) => self.scroll_by((page / 2).max(1)),
            ("C-u", _) => self.scroll_by(-(page / 2).max(1)),
            ("Home" | "g", _) => self.scroll_by(i64::MIN + 1),
            ("End" | "G", _) => self.scroll_by(i64::MAX),
            _ => return SurfaceStep::Nothing,
        }
        SurfaceStep::Handled
    }

    /// Handles Enter or Space on a control.
    fn press(&mut self, target: &FocusTarget, surface: &Surface, now: i64) -> SurfaceStep {
        let component = &target.component;
        match &target.control {
            Control::Text { value, secret, .. } => {
                let text = if *secret && !self.has_input(Some(target)) { "" } else { value.as_str() };
                self.editing = Some(Editing { component: component.clone(), area: field(text) });
            }
            Control::Check { pointer, on } => self.set_input(pointer, json!(!on)),
            Control::Choice { pointer, values, chosen, multiple, at } => {
                let Some(value) = values.get(*at) else { return SurfaceStep::Handled };
                let mut to: Vec<String> = if *multiple { chosen.clone() } else { Vec::new() };
                match to.iter().position(|one| one == value) {
                    Some(known) => drop(to.remove(known)),
                    None => to.push(value.clone()),
                }
                self.set_input(pointer, json!(to));
            }
            Control::Tabs { count, at } => {
                self.cursors.insert(component.clone(), (at + 1) % (*count).max(1));
            }
            Control::Modal => {
                if !self.opened.remove(component) {
                    self.opened.insert(component.clone());
                }
            }
            Control::Tree { item: Some((path, true)), .. } => {
                let is_folded = self.folded.get(component).is_some_and(|folded| folded.contains(path));
                self.fold(component, path, !is_folded);
            }
            Control::Slider { .. } => {}
            Control::Button { event: None, url: Some(url), .. } => return SurfaceStep::Copy(url.clone()),
            Control::Button { event: Some(event), blocked, .. } => {
                if *blocked {
                    return SurfaceStep::Notice("a check of the form fails".into());
                }
                return self.send(target, event, None, surface, now);
            }
            Control::Table { item: Some(item), event: Some(event), .. } => {
                return self.send(target, event, Some(json!(item)), surface, now);
            }
            Control::Tree { item: Some((path, false)), event: Some(event), .. } => {
                return self.send(target, event, Some(json!(path)), surface, now);
            }
            Control::Button { .. } | Control::Table { .. } | Control::Tree { .. } => {}
        }
        SurfaceStep::Handled
    }

    /// The action of a press. A press that was meant for an earlier control at this place has no effect.
    fn send(
        &mut self,
        target: &FocusTarget,
        event: &str,
        item: Option<Value>,
        surface: &Surface,
        now: i64,
    ) -> SurfaceStep {
        if self.sent.is_some() || !self.is_armed(now) {
            return SurfaceStep::Handled;
        }
        let ComponentKey { id, instance } = &target.component;
        let bound = bound(surface);
        let inputs = self.inputs.iter().filter(|(pointer, _)| bound.contains(*pointer));
        let action = SurfaceAction {
            rev: surface.rev(),
            component: id.clone(),
            event: event.to_owned(),
            inputs: inputs.map(|(pointer, value)| (pointer.clone(), value.clone())).collect(),
            instance: Some(instance.clone()).filter(|instance| !instance.is_empty()),
            item,
        };
        self.sent = Some(target.component.clone());
        self.problem.clear();
        SurfaceStep::Press(action)
    }

    /// Inserts pasted text into the field with the focus; returns `false` if none has it.
    pub(super) fn paste(&mut self, text: &str, surface: &Surface, cx: &LayoutContext<'_>) -> bool {
        self.refresh(surface);
        let targets = layout(self.visible(surface), self, cx).targets;
        let target =
            self.focus.as_ref().and_then(|component| targets.iter().find(|target| target.component == *component));
        let Some(FocusTarget { component, control: Control::Text { pointer, value, many_lines, secret }, .. }) = target
        else {
            return false;
        };
        let text = if *many_lines { text.to_owned() } else { text.replace('\n', " ") };
        let given = if *secret && !self.has_input(target) { "" } else { value.as_str() };
        let mut area: TextArea<'static> = match self.editing.take() {
            Some(editing) => editing.area,
            None => field(given),
        };
        let space = FIELD_MAX.saturating_sub(area.lines().iter().map(|line| line.len() + 1).sum());
        if text.len() <= space {
            area.insert_str(text);
            self.set_input(pointer, area.lines().join("\n").into());
        }
        self.editing = Some(Editing { component: component.clone(), area });
        (self.follow, self.own) = (true, true);
        true
    }
}

fn field(text: &str) -> TextArea<'static> {
    input::area(if text.len() > FIELD_MAX { "" } else { text })
}

/// The pointers that inputs of the surface are bound to, on all tabs: typed values of other pointers are not sent.
fn bound(surface: &Surface) -> BTreeSet<String> {
    let mut resolver = surface.resolver();
    let mut pointers = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut left = vec![("root".to_owned(), String::new())];
    while let Some((id, instance)) = left.pop() {
        if !seen.insert((id.clone(), instance.clone())) {
            continue;
        }
        let Some(resolved) = resolver.resolve(&id, &instance) else { continue };
        if matches!(resolved.kind, "TextField" | "CheckBox" | "ChoicePicker" | "Slider" | "DateTimeInput") {
            pointers.extend(resolved.bound);
        }
        left.extend(resolved.children.into_iter().map(|slot| (slot.id, slot.instance)));
    }
    pointers
}
