//! The mouse: clicks and the wheel, each in the pane under it.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;
use crate::pages::layout::Pane;

impl App {
    pub(super) fn mouse(&mut self, event: MouseEvent, effects: &mut Vec<Effect>) {
        let action = match event.kind {
            MouseEventKind::ScrollUp => MouseAction::WheelUp,
            MouseEventKind::ScrollDown => MouseAction::WheelDown,
            MouseEventKind::Down(MouseButton::Left) => MouseAction::Click,
            _ => return,
        };
        if self.shared.overlay.is_some() {
            return;
        }
        let mouse = MouseInput { column: event.column, row: event.row, action };
        match action {
            MouseAction::Click => self.click(mouse, effects),
            MouseAction::WheelUp | MouseAction::WheelDown => self.wheel(mouse, effects),
        }
    }

    fn wheel(&mut self, mouse: MouseInput, effects: &mut Vec<Effect>) {
        if self.pages.new_session.form.is_some() || self.pages.shows_changes(&self.shared) {
            return self.with(effects, |pages, cx| pages.top_mut(cx.shared).mouse(mouse, cx));
        }
        let inside = |area: Rect| area.contains((mouse.column, mouse.row).into());
        if self.card_area().is_some_and(inside)
            && let Some(card) = &mut self.shared.card.card
        {
            card.scroll = match mouse.action {
                MouseAction::WheelDown => card.scroll + WHEEL_LINES,
                _ => card.scroll.saturating_sub(WHEEL_LINES),
            };
            return;
        }
        match layout::pane_at(&self.shared, mouse.column, mouse.row) {
            // The selection moves, and the list with it.
            Some(Pane::List) => self.with(effects, |pages, cx| {
                pages.get_mut(cx.shared.list_page()).mouse(mouse, cx);
            }),
            Some(Pane::Middle) => self.with(effects, |pages, cx| pages.session.mouse(mouse, cx)),
            Some(Pane::Detail) | None => {}
        }
    }

    /// Handles a click: it selects a row or a pane, and opens the selected item; on a button of a card it acts as the button's key, with
    /// the same rules.
    fn click(&mut self, mouse: MouseInput, effects: &mut Vec<Effect>) {
        if self.pages.new_session.form.is_some() {
            return self.with(effects, |pages, cx| pages.new_session.mouse(mouse, cx));
        }
        if mouse.row == 0
            && let Some(page) = drawing::tab_at(&self.shared, mouse.column)
        {
            return self.go(page, effects);
        }
        if self.pages.shows_changes(&self.shared) {
            return self.with(effects, |pages, cx| pages.changes.mouse(mouse, cx));
        }
        let in_session = self.shared.page == TuiPage::Session;
        if let Some(letter) = self.card_option_at(mouse.column, mouse.row) {
            if self.shared.page == TuiPage::Inbox && !self.pages.inbox.triage.selected.is_empty() {
                let text = "several are selected: a allows once, d denies, X clears the selection";
                return self.shared.show_notice(text, false);
            }
            if let Some(key) = Key::from_event(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)) {
                // The press is on the answer itself: the guard of its appearance is enough.
                self.shared.card.from_composer |= in_session && self.shared.writing;
                self.shared.writing &= !in_session;
                self.shared.card.focused = true;
                self.card_key(&key, effects);
            }
            return;
        }
        if self.card_area().is_some_and(|area| area.contains((mouse.column, mouse.row).into())) {
            // Elsewhere on a card, a click only gives it the focus.
            self.shared.card.from_composer |= in_session && self.shared.writing;
            self.shared.focus_card();
            return;
        }
        match layout::pane_at(&self.shared, mouse.column, mouse.row) {
            Some(Pane::Middle) if !in_session => self.other_pane(effects),
            Some(Pane::List) | None => self.with(effects, |pages, cx| {
                pages.get_mut(cx.shared.list_page()).mouse(mouse, cx);
            }),
            Some(Pane::Middle | Pane::Detail) => {}
        }
    }
}
