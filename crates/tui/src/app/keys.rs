//! Keys and pasted text that all pages handle in the same way.

use super::*;

impl App {
    /// Handles a key.
    pub(super) fn act(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "C-c" if self.pages.new_session.form.is_none() || self.shared.overlay.is_some() => {
                match self.shared.overlay.take() {
                    Some(Overlay::Pairing(sheet)) => return self.end_pairing(&sheet, effects),
                    Some(_) => return,
                    None => {}
                }
                if self.shared.page == TuiPage::Session
                    && self.shared.writing
                    && !self.pages.session.composer.is_empty()
                {
                    self.pages.session.composer = input::area("");
                    return;
                }
                if self.shared.now - self.interrupted < QUIT_WINDOW {
                    self.shared.quit = true;
                }
                self.interrupted = self.shared.now;
                return self.shared.show_notice("press Ctrl-C again to quit; agents keep running", false);
            }
            "C-z" => return effects.push(Effect::Suspend),
            "C-l" => return effects.push(Effect::Redraw),
            _ => {}
        }
        if self.shared.overlay.is_some() {
            return self.overlay_key(key, effects);
        }
        if self.pages.new_session.form.is_some() {
            return self.with(effects, |pages, cx| pages.new_session.key(key, cx));
        }
        if key.name() == "C-k" {
            return self.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 });
        }
        // No key acts on the page behind the changes.
        if self.pages.shows_changes(&self.shared) {
            return self.with(effects, |pages, cx| pages.changes.key(key, cx));
        }
        let typing = self.shared.card_takes_text();
        if self.pages.session.surface_takes_text(&self.shared) {
            self.with(effects, |pages, cx| pages.session.surface_key(key, cx));
            return;
        }
        if typing && self.card_key(key, effects)
            || self.with(effects, |pages, cx| pages.get_mut(cx.shared.page).early_key(key, cx))
            || !typing && self.card_key(key, effects)
            || self.with(effects, |pages, cx| pages.session.surface_key(key, cx))
            || self.global_key(key, effects)
        {
            return;
        }
        self.with(effects, |pages, cx| pages.get_mut(cx.shared.page).key(key, cx));
    }

    /// Handles a key that is the same on all pages; returns whether it is one.
    fn global_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let in_session = self.shared.page == TuiPage::Session;
        match key.name() {
            "?" => self.shared.overlay = Some(Overlay::Help(0)),
            ":" => self.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            "Esc" if in_session => self.shared.write(),
            "Esc" | "q" => self.back(effects),
            "Tab" | "S-Tab" if has_panes(&self.shared) => self.other_pane(effects),
            "Left" if in_session && has_panes(&self.shared) => self.other_pane(effects),
            "Left" | "Right" => return in_session,
            "Tab" | "S-Tab" => {
                let (page, from) = (self.shared.page, self.shared.previous_page);
                let tab = if in_session { from } else { page };
                let now = PAGES.iter().position(|(page, _)| *page == tab).unwrap_or(0);
                let step = if key.name() == "Tab" { 1 } else { PAGES.len() - 1 };
                self.go(PAGES[(now + step) % PAGES.len()].0, effects);
            }
            "/" => self.go(TuiPage::Search, effects),
            "U" => self.command("usage", effects),
            "," => self.command("settings", effects),
            name => {
                let number = name.parse::<usize>().ok().filter(|_| name.len() == 1);
                let Some((page, _)) = number.and_then(|n| PAGES.get(n.checked_sub(1)?)) else { return false };
                self.go(*page, effects);
            }
        }
        true
    }

    pub(super) fn paste(&mut self, text: &str, effects: &mut Vec<Effect>) {
        // Pasted text is text only: no line is sent, and no key acts.
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.len() > input::TEXT_MAX {
            return self.shared.show_notice("too long to paste", true);
        }
        let single = text.replace('\n', " ");
        match &mut self.shared.overlay {
            Some(Overlay::Palette { area, .. } | Overlay::Input { area, .. }) => {
                area.insert_str(single);
                return;
            }
            Some(_) => return,
            None => {}
        }
        let covered = self.pages.new_session.form.is_some() || self.pages.shows_changes(&self.shared);
        let writing = self.shared.page == TuiPage::Session && self.shared.writing
            || self.pages.session.surface_takes_text(&self.shared);
        if !covered
            && !writing
            && self.shared.card.focused
            && let Some(card) = &mut self.shared.card.card
            && let Some((ask, None)) = self.shared.requests.get(&card.id)
            && card.paste(ask, &text)
        {
            return;
        }
        self.with(effects, |pages, cx| pages.top_mut(cx.shared).paste(&text, cx));
    }

    fn overlay_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(overlay) = self.shared.overlay.take() else { return };
        let scrolled = |scroll: usize| match key.name() {
            "Down" | "j" => Some(scroll.saturating_add(1)),
            "Up" | "k" => Some(scroll.saturating_sub(1)),
            "PageDown" | " " => Some(scroll.saturating_add(10)),
            "PageUp" => Some(scroll.saturating_sub(10)),
            "g" | "Home" => Some(0),
            "G" | "End" => Some(usize::MAX),
            _ => None,
        };
        match overlay {
            Overlay::Help(scroll) => {
                if let Some(scroll) = scrolled(scroll) {
                    self.shared.overlay = Some(Overlay::Help(scroll.min(drawing::help_end(&self.shared))));
                }
            }
            Overlay::TextPage { title, text, scroll } => {
                let end = drawing::text_end(&self.shared, &text);
                if let Some(scroll) = scrolled(scroll.min(end)) {
                    self.shared.overlay = Some(Overlay::TextPage { title, text, scroll: scroll.min(end) });
                }
            }
            Overlay::Several(question) => {
                self.with(effects, |pages, cx| pages.inbox.several_key(*question, key, cx));
            }
            Overlay::Pairing(sheet) => self.pairing_key(*sheet, key, effects),
            Overlay::Usage(sheet) => self.usage_key(*sheet, key, effects),
            Overlay::Confirm { text, then } => match key.name() {
                "y" => self.then(*then, "", effects),
                "n" | "Esc" | "q" => {}
                _ => self.shared.overlay = Some(Overlay::Confirm { text, then }),
            },
            Overlay::Input { label, mut area, then } => match key.name() {
                "Esc" => {}
                "Enter" => {
                    let text = area.lines().join(" ").trim().to_owned();
                    self.then(*then, &text, effects);
                }
                "M-Enter" | "C-j" | "S-Enter" => self.shared.overlay = Some(Overlay::Input { label, area, then }),
                _ => {
                    input::edit(&mut area, key);
                    self.shared.overlay = Some(Overlay::Input { label, area, then });
                }
            },
            Overlay::Palette { mut area, mut at } => {
                let list = self.palette(&area.lines().join(" "));
                match key.name() {
                    "Esc" => return,
                    "Enter" => {
                        if let Some((name, _)) = list.get(at.min(list.len().saturating_sub(1))) {
                            let name = name.clone();
                            self.command(&name, effects);
                        }
                        return;
                    }
                    "Down" | "C-n" | "Tab" => at = (at + 1).min(list.len().saturating_sub(1)),
                    "Up" | "C-p" | "S-Tab" => at = at.saturating_sub(1),
                    "M-Enter" | "C-j" | "S-Enter" => {}
                    _ => {
                        input::edit(&mut area, key);
                        at = 0;
                    }
                }
                self.shared.overlay = Some(Overlay::Palette { area, at });
            }
        }
    }
}
