//! Key names and text input. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui_textarea::{CursorMove, Input, TextArea, WrapMode};

/// Maximum length of a text that is pasted or stored in a field, in bytes; the gateway's own limit of a prompt is larger.
pub(crate) const TEXT_MAX: usize = 4 << 20;

/// A key by its name: `a`, `A`, `Enter`, `C-k` (Ctrl), `M-Enter` (Alt), `S-Tab`.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    name: String,
    event: KeyEvent,
}

impl Key {
    pub(crate) fn from_event(event: KeyEvent) -> Option<Self> {
        if event.kind == crossterm::event::KeyEventKind::Release {
            return None;
        }
        let base = match event.code {
            KeyCode::Char(c) => c.to_string(),
            KeyCode::Enter => "Enter".into(),
            KeyCode::Esc => "Esc".into(),
            KeyCode::Tab => "Tab".into(),
            KeyCode::BackTab => "S-Tab".into(),
            KeyCode::Backspace => "Backspace".into(),
            KeyCode::Delete => "Delete".into(),
            KeyCode::Up => "Up".into(),
            KeyCode::Down => "Down".into(),
            KeyCode::Left => "Left".into(),
            KeyCode::Right => "Right".into(),
            KeyCode::PageUp => "PageUp".into(),
            KeyCode::PageDown => "PageDown".into(),
            KeyCode::Home => "Home".into(),
            KeyCode::End => "End".into(),
            KeyCode::F(n) => format!("F{n}"),
            _ => return None,
        };
        let mut name = String::new();
        if event.modifiers.contains(KeyModifiers::CONTROL) {
            name.push_str("C-");
        }
        if event.modifiers.contains(KeyModifiers::ALT) {
            name.push_str("M-");
        }
        if event.modifiers.contains(KeyModifiers::SHIFT)
            && matches!(event.code, KeyCode::Up | KeyCode::Down | KeyCode::Enter)
        {
            name.push_str("S-");
        }
        name.push_str(&base);
        Some(Self { name, event })
    }

    /// Returns whether the key is one character, without Ctrl or Alt.
    pub(crate) fn is_letter(&self) -> bool {
        matches!(self.event.code, KeyCode::Char(_))
            && !self.event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Makes a text field with this content, the cursor at its end.
pub(crate) fn area(text: &str) -> TextArea<'static> {
    let text = if text.len() > TEXT_MAX { "" } else { text };
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_cursor_line_style(Style::new());
    area.set_cursor_style(Style::new().add_modifier(Modifier::REVERSED));
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// The approximate number of lines of a field at this width.
pub(crate) fn rows(area: &TextArea<'_>, width: usize) -> usize {
    let rows = |line: &String| (super::sanitize::width(line) + 1).div_ceil(width.max(1)).max(1);
    area.lines().iter().take(100).map(rows).sum()
}

/// Applies a key to a text field; returns `true` if the field handled it.
pub(crate) fn edit(area: &mut TextArea<'static>, key: &Key) -> bool {
    match key.name() {
        "M-Enter" | "C-j" | "S-Enter" => {
            area.insert_newline();
            return true;
        }
        // Keys that could insert an agent's text are not passed on.
        "C-c" | "C-x" | "C-v" => return false,
        _ => {}
    }
    use ratatui_textarea::Key as K;
    let code = match key.event.code {
        KeyCode::Char(c) => K::Char(c),
        KeyCode::Enter => K::Enter,
        KeyCode::Backspace => K::Backspace,
        KeyCode::Delete => K::Delete,
        KeyCode::Left => K::Left,
        KeyCode::Right => K::Right,
        KeyCode::Up => K::Up,
        KeyCode::Down => K::Down,
        KeyCode::Home => K::Home,
        KeyCode::End => K::End,
        _ => return false,
    };
    let on = |modifier| key.event.modifiers.contains(modifier);
    area.input(Input {
        key: code,
        ctrl: on(KeyModifiers::CONTROL),
        alt: on(KeyModifiers::ALT),
        shift: on(KeyModifiers::SHIFT),
    });
    true
}
