//! The mouse: clicks and the wheel, each in the pane under it.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;
use crate::view::Pane;

impl App {
    pub(super) fn mouse(&mut self, event: MouseEvent, effects: &mut Vec<Effect>) {
        let down = match event.kind {
            MouseEventKind::ScrollUp => false,
            MouseEventKind::ScrollDown => true,
            MouseEventKind::Down(MouseButton::Left) => return self.click(event.column, event.row, effects),
            _ => return,
        };
        if self.shared.overlay.is_some() {
            return;
        }
        if self.new_session.form.is_some() {
            return;
        }
        if self.shows_changes() {
            return self.changes_wheel(event.column, event.row, down);
        }
        let by = if down { WHEEL_LINES } else { -WHEEL_LINES };
        let inside = |area: Rect| area.contains((event.column, event.row).into());
        if view::card_area(self).is_some_and(inside)
            && let Some(card) = &mut self.shared.card.card
        {
            let by = usize::try_from(WHEEL_LINES).unwrap_or_default();
            card.scroll = if down { card.scroll + by } else { card.scroll.saturating_sub(by) };
            return;
        }
        match view::pane_at(self, event.column, event.row) {
            Some(Pane::List) => {
                // The selection moves, and the list with it.
                let page = self.shared.list_page();
                let (at, keys) = (self.row_index(page), self.row_keys(page));
                let to = if down { (at + 1).min(keys.len().saturating_sub(1)) } else { at.saturating_sub(1) };
                self.choose_row(page, to, &keys);
            }
            Some(Pane::Middle) if self.surface_is_open() => {
                self.pages.session.conversation.iter_mut().for_each(|conversation| conversation.surfaces.scroll(by));
            }
            Some(Pane::Middle) => self.with_conversation(|conversation, pen| conversation.scroll(by, pen)),
            Some(Pane::Detail) | None => {}
        }
    }

    /// The selected row of a list.
    pub(crate) fn row_index(&self, page: TuiPage) -> usize {
        match page {
            TuiPage::Inbox => self.inbox_at(),
            TuiPage::Sessions => self.session_at(),
            TuiPage::Search => self.pages.search.list.index(&self.row_keys(page)),
            TuiPage::Runtimes => self.pages.runtimes.list.index(&self.row_keys(page)),
            TuiPage::Devices => self.pages.devices.list.index(&self.row_keys(page)),
            TuiPage::Session => 0,
        }
    }

    fn choose_row(&mut self, page: TuiPage, at: usize, keys: &[String]) {
        if self.pages.list_mut(page).is_some_and(|list| list.choose(at, keys)) {
            // Whoever chooses a result does not type what is searched for.
            self.pages.search.typing &= page != TuiPage::Search;
        }
    }

    /// A click selects a row or a pane, and opens what was selected; on a button of a card it is the button's key, with the same rules.
    pub(super) fn click(&mut self, column: u16, row: u16, effects: &mut Vec<Effect>) {
        if self.shared.overlay.is_some() {
            return;
        }
        if self.new_session.form.is_some() {
            return self.form_click(column, row, effects);
        }
        if row == 0
            && let Some(page) = view::tab_at(self, column)
        {
            return self.go(page, effects);
        }
        if self.shows_changes() {
            return self.changes_click(column, row);
        }
        if let Some(letter) = view::option_at(self, column, row) {
            if self.shared.page == TuiPage::Inbox && !self.pages.inbox.triage.selected.is_empty() {
                return self.shared.say("several are selected: a allows once, d denies, X clears the selection", false);
            }
            if let Some(key) = Key::of(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)) {
                // The press is on the answer itself: the guard of its appearance is enough.
                self.shared.card.from_composer |= self.shared.page == TuiPage::Session && self.shared.writing;
                self.shared.writing &= self.shared.page != TuiPage::Session;
                self.shared.card.focused = true;
                self.card_key(&key, effects);
            }
            return;
        }
        if view::card_area(self).is_some_and(|area| area.contains((column, row).into())) {
            // Elsewhere on a card a click only gives it the focus.
            self.shared.card.from_composer |= self.shared.page == TuiPage::Session && self.shared.writing;
            self.shared.focus_card();
            return;
        }
        match view::pane_at(self, column, row) {
            Some(Pane::Middle) if self.shared.page != TuiPage::Session => {
                if let Some(session) = self.selected_session() {
                    self.open(session, effects);
                }
            }
            Some(Pane::List) | None => {
                let Some(at) = view::row_at(self, column, row) else { return };
                let page = self.shared.list_page();
                let keys = self.row_keys(page);
                let typing = page == TuiPage::Search && self.pages.search.typing;
                let again = self.row_index(page) == at && self.shared.page == page && !typing;
                if self.shared.page != page {
                    self.go(page, effects);
                }
                self.choose_row(page, at, &keys);
                if page == TuiPage::Inbox {
                    self.focus_chosen();
                }
                if again && matches!(page, TuiPage::Sessions | TuiPage::Inbox) {
                    self.open_selected(effects);
                } else if again
                    && page == TuiPage::Search
                    && let Some(enter) = Key::of(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE))
                {
                    self.search_key(&enter, effects);
                }
            }
            Some(Pane::Middle | Pane::Detail) => {}
        }
    }
}
