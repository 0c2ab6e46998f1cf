//! The card of a request on the screen: its place, its keys, and its focus.

use super::*;

impl App {
    /// The space for a card, unless something covers it: its width and maximum height.
    pub(super) fn card_area(&self) -> Option<Rect> {
        let covered = self.shared.overlay.is_some()
            || self.pages.new_session.form.is_some()
            || self.pages.changes.screen.is_some();
        if !layout::fits(&self.shared) || covered || self.shared.card.card.is_none() {
            return None;
        }
        self.card_space()
    }

    /// The space for a card: its width and maximum height.
    fn card_space(&self) -> Option<Rect> {
        let middle = layout::panes(&self.shared).middle;
        match self.shared.page {
            TuiPage::Session | TuiPage::Inbox => layout::detail_card_space(&self.shared).or_else(|| {
                Some(match middle.width {
                    0 => self.pages.inbox.card_space(&self.shared),
                    _ => self.pages.session.card_space(&self.shared),
                })
            }),
            _ => None,
        }
    }

    /// The key of the card's button at a place of the screen.
    pub(super) fn card_option_at(&self, column: u16, row: u16) -> Option<char> {
        self.card_area()?;
        let panes = layout::panes(&self.shared);
        let area = match panes.middle.width > 0 && panes.detail.width == 0 {
            true => self.pages.session.card_rect(&self.shared),
            false => layout::card_rect(&self.shared, self.card_space()?)?,
        };
        pages::option_at(&self.shared, area, column, row)
    }

    /// Passes a key to the card on the screen; true if the card took it.
    pub(super) fn card_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let Some(area) = self.card_area() else { return false };
        let open = self.shared.card.open().is_some();
        if open && !self.shared.card.focused {
            // The first press only chooses the request.
            let card = self.shared.card.card.as_ref();
            if card.is_some_and(|card| {
                self.shared.requests.get(&card.id).is_some_and(|(ask, _)| card.means(key.name(), ask))
            }) {
                self.shared.focus_card();
                return true;
            }
            if !matches!(key.name(), "[" | "]" | "PageDown" | "PageUp" | "c") {
                return false;
            }
        }
        let Some(mut card) = self.shared.card.card.take() else { return false };
        let Some((ask, outcome)) = self.shared.requests.get(&card.id) else { return false };
        let shape = card.shape(ask, area.width, usize::from(area.height), &self.shared.theme);
        card.update_scroll(&shape);
        let action = card.key(key, ask, outcome.as_ref(), self.shared.now, shape.rows);
        let id = card.id.clone();
        match action {
            CardOutcome::Nothing => {
                self.shared.card.card = Some(card);
                if matches!(key.name(), "[" | "]") {
                    self.next_request(&id, key.name() == "]");
                    return true;
                }
                return false;
            }
            CardOutcome::Handled => self.shared.card.card = Some(card),
            CardOutcome::Close => {
                card.closed_at = Some(i64::MIN / 2);
                self.pages.inbox.triage.dismiss(&id);
                self.shared.card.card = Some(card);
            }
            CardOutcome::Answer(answer) => {
                card.sent = true;
                card.problem.clear();
                self.shared.card.card = Some(card);
                effects.push(pages::inbox::answer(id, &answer));
            }
        }
        true
    }

    fn next_request(&mut self, id: &str, next: bool) {
        let list: Vec<String> = match self.shared.page {
            TuiPage::Inbox => self.pages.inbox.request_ids(&self.shared),
            _ => self.pages.session.requests(&self.shared),
        };
        let open = |one: &String| self.shared.page == TuiPage::Inbox || one == id || self.shared.is_open(one);
        let list: Vec<String> = list.into_iter().filter(open).collect();
        let Some(at) = list.iter().position(|one| one == id) else { return };
        let at = if next { (at + 1) % list.len() } else { (at + list.len() - 1) % list.len() };
        self.pages.inbox.list.chosen = Some(list[at].clone());
        if list[at] != id {
            self.shared.show_card(Some(&list[at]));
        }
        self.shared.focus_card();
    }

    /// Takes the focus from a card that was removed. An answered card gives it to the next one; after the last one, the composer gets it if
    /// it came from there.
    pub(super) fn update_focus(&mut self) {
        let has_cards =
            matches!(self.shared.page, TuiPage::Session | TuiPage::Inbox) && self.pages.new_session.form.is_none();
        let open = self.shared.card.open().is_some();
        if has_cards && (open || !self.shared.card.focused) {
            return;
        }
        // A key meant for the request does not get into the next prompt.
        let closed = self.shared.card.card.as_ref().and_then(|card| card.closed_at);
        if has_cards && closed.is_some_and(|at| (0..ARM_DELAY).contains(&(self.shared.now - at))) {
            return;
        }
        self.shared.card.focused = false;
        self.shared.writing |= self.shared.page == TuiPage::Session
            && std::mem::take(&mut self.shared.card.from_composer)
            && !self.pages.session.surface_is_open(&self.shared);
    }
}
