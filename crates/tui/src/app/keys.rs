//! Keys and the mouse, for each page and field.

use super::*;

impl App {
    /// Has a key act.
    pub(super) fn act(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "C-c" if self.new_session.form.is_none() || self.shared.overlay.is_some() => {
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
                return self.shared.say("press Ctrl-C again to quit; agents keep running", false);
            }
            "C-z" => return effects.push(Effect::Suspend),
            "C-l" => return effects.push(Effect::Redraw),
            _ => {}
        }
        if self.shared.overlay.is_some() {
            return self.overlay_key(key, effects);
        }
        if self.new_session.form.is_some() {
            return self.form_key(key, effects);
        }
        if key.name() == "C-k" {
            return self.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 });
        }
        if self.changes_key(key, effects) {
            return;
        }
        let typing = self.shared.card_takes_text();
        if self.surface_takes_text() {
            self.surface_key(key, effects);
            return;
        }
        if typing && self.card_key(key, effects) {
            return;
        }
        match self.shared.page {
            TuiPage::Session if self.shared.writing => return self.writing_key(key, effects),
            TuiPage::Search if self.pages.search.typing => return self.query_key(key, effects),
            TuiPage::Sessions if self.pages.sessions.filtering => return self.filter_key(key, effects),
            TuiPage::Sessions if key.name() == "Esc" && !self.pages.sessions.filter.is_empty() => {
                self.shared.sessions.changed = true;
                return self.pages.sessions.filter = input::area("");
            }
            _ => {}
        }
        if self.shared.page == TuiPage::Inbox && !typing && self.triage_key(key) {
            return;
        }
        if !typing && self.card_key(key, effects) {
            return;
        }
        if self.surface_key(key, effects) {
            return;
        }
        match key.name() {
            "?" => return self.shared.overlay = Some(Overlay::Help(0)),
            ":" => return self.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            "Esc" if self.shared.page == TuiPage::Session => return self.shared.write(),
            "Esc" | "q" => return self.back(effects),
            "Tab" | "S-Tab" if view::has_panes(self) => return self.other_pane(effects),
            "Left" if self.shared.page == TuiPage::Session && view::has_panes(self) => return self.other_pane(effects),
            "Left" | "Right" => return self.fold_key(key.name() == "Right", effects),
            "Tab" | "S-Tab" => {
                let now = PAGES
                    .iter()
                    .position(|(page, _)| {
                        *page == self.shared.page
                            || self.shared.page == TuiPage::Session && *page == self.shared.previous_page
                    })
                    .unwrap_or(0);
                let step = if key.name() == "Tab" { 1 } else { PAGES.len() - 1 };
                return self.go(PAGES[(now + step) % PAGES.len()].0, effects);
            }
            "/" => return self.go(TuiPage::Search, effects),
            "U" => return self.command("usage", effects),
            "," => return self.command("settings", effects),
            name if name.len() == 1 && (b'1'..=b'5').contains(&name.as_bytes()[0]) => {
                return self.go(PAGES[usize::from(name.as_bytes()[0] - b'1')].0, effects);
            }
            _ => {}
        }
        match self.shared.page {
            TuiPage::Inbox => self.inbox_key(key, effects),
            TuiPage::Sessions => self.sessions_key(key, effects),
            TuiPage::Search => self.search_key(key, effects),
            TuiPage::Runtimes => self.runtimes_key(key, effects),
            TuiPage::Devices => self.devices_key(key, effects),
            TuiPage::Session => self.reading_key(key, effects),
        }
    }

    /// Passes a key to the card on the screen; true if the card took it.
    pub(super) fn card_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let Some(area) = view::card_area(self) else { return false };
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
        card.mark_shown(&shape);
        let did = card.key(key, ask, outcome.as_ref(), self.shared.now, shape.rows);
        let id = card.id.clone();
        match did {
            CardOutcome::Nothing => {
                self.shared.card.card = Some(card);
                if matches!(key.name(), "[" | "]") {
                    self.next_request(&id, key.name() == "]");
                    return true;
                }
                return false;
            }
            CardOutcome::Taken => self.shared.card.card = Some(card),
            CardOutcome::Close => {
                card.closed_at = Some(i64::MIN / 2);
                self.pages.inbox.triage.dismiss(&id);
                self.shared.card.card = Some(card);
            }
            CardOutcome::Answer(body) => {
                card.sent = true;
                card.problem.clear();
                self.shared.card.card = Some(card);
                effects.push(triage::answer(id, body));
            }
        }
        true
    }

    fn next_request(&mut self, id: &str, next: bool) {
        let list: Vec<String> = match self.shared.page {
            TuiPage::Inbox => {
                self.row_keys(TuiPage::Inbox).into_iter().filter(|key| self.shared.requests.contains_key(key)).collect()
            }
            _ => self.session_asks().into_iter().filter(|one| one == id || self.shared.is_open(one)).collect(),
        };
        let Some(at) = list.iter().position(|one| one == id) else { return };
        let at = if next { (at + 1) % list.len() } else { (at + list.len() - 1) % list.len() };
        self.pages.inbox.list.chosen = Some(list[at].clone());
        if list[at] != id {
            self.shared.show_card_of(Some(&list[at]));
        }
        self.shared.focus_card();
    }

    fn inbox_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Enter" => return self.open_selected(effects),
            "N" => return self.open_form(None, false, effects),
            _ => {}
        }
        let list = self.row_keys(TuiPage::Inbox);
        let at = self.inbox_at();
        self.pages.inbox.list.step(key.name(), at, &list);
        if matches!(key.name(), "Down" | "j" | "Up" | "k" | "PageDown" | "PageUp" | "Home" | "End" | "g" | "G") {
            self.focus_chosen();
        }
    }

    /// Gives the focus to the card of the row that was chosen.
    pub(super) fn focus_chosen(&mut self) {
        let wanted = self.wanted_request();
        if self.shared.card.card.as_ref().map(|card| &card.id) != wanted.as_ref() {
            self.shared.show_card_of(wanted.as_deref());
        }
        self.shared.focus_card();
    }

    /// Goes from a list to the session beside it, and back.
    fn other_pane(&mut self, effects: &mut Vec<Effect>) {
        match self.shared.page {
            TuiPage::Session => self.go(self.shared.list_page(), effects),
            _ => {
                if let Some(session) = self.selected_session() {
                    self.open(session, effects);
                }
            }
        }
    }

    fn filter_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Esc" => {
                self.pages.sessions.filter = input::area("");
                self.pages.sessions.filtering = false;
                self.shared.sessions.changed = true;
            }
            "Enter" => self.pages.sessions.filtering = false,
            "Up" | "Down" | "PageUp" | "PageDown" | "Tab" | "S-Tab" => {
                self.pages.sessions.filtering = false;
                self.key(key, effects);
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.pages.sessions.filter, key);
                self.shared.sessions.changed = true;
                // The first match, while the filter is typed.
                self.pages.sessions.list = ListState { at: Some(0), chosen: None, ..self.pages.sessions.list };
            }
        }
    }

    fn sessions_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if self.shared.sessions.older.is_some() && std::mem::take(&mut self.shared.sessions.older_failed) {
            self.shared.sessions.reading = false;
        }
        let selected = self.selected_session().and_then(|id| self.shared.sessions.all.get(&id).cloned());
        match key.name() {
            "f" => self.pages.sessions.filtering = true,
            "Enter" => self.open_selected(effects),
            "a" => {
                self.pages.sessions.archived = !self.pages.sessions.archived;
                self.shared.sessions.changed = true;
            }
            "N" => self.command("new", effects),
            // As on the page.
            "r" | "e" => {
                if let Some(session) = selected {
                    let name = if key.name() == "r" { "rename" } else { "archive" };
                    self.session_command(name, &session, effects);
                }
            }
            _ => {
                let list = self.row_keys(TuiPage::Sessions);
                let at = self.session_at();
                self.pages.sessions.list.step(key.name(), at, &list);
            }
        }
    }

    fn query_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Esc" => self.pages.search.typing = false,
            "Down" => self.pages.search.typing = self.pages.search.hits.is_empty(),
            "Tab" | "S-Tab" => {
                self.pages.search.typing = false;
                self.key(key, effects);
            }
            "Enter" => {
                let words = self.pages.search.query.lines().join(" ").trim().to_owned();
                if !words.is_empty() {
                    let q: String = form_urlencoded::byte_serialize(words.as_bytes()).collect();
                    effects.push(Effect::get(CallTag::Search(words), format!("/v1/search?limit=100&q={q}")));
                }
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.pages.search.query, key);
            }
        }
    }

    pub(super) fn search_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list = self.row_keys(TuiPage::Search);
        match key.name() {
            "Enter" => {
                let Some(hit) = self.pages.search.hits.get(self.pages.search.list.index(&list)).cloned() else {
                    self.pages.search.typing = true;
                    return;
                };
                self.open(hit.session, effects);
                self.shared.writing = false;
                if let Some(conversation) = &mut self.pages.session.conversation {
                    let place = position(&hit.cursor);
                    if !conversation.live || !conversation.seek(place) {
                        conversation.seek_target = Some(place);
                    }
                }
            }
            "i" => self.pages.search.typing = true,
            "Up" | "k" if self.pages.search.list.index(&list) == 0 => self.pages.search.typing = true,
            _ => self.pages.search.list.step(key.name(), self.pages.search.list.index(&list), &list),
        }
    }

    fn runtimes_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list: Vec<String> = self.shared.runtimes.iter().map(|runtime| runtime.id.clone()).collect();
        let Some(id) = list.get(self.pages.runtimes.list.index(&list)).cloned() else {
            if key.name() == "N" {
                self.open_form(None, false, effects);
            }
            return;
        };
        match key.name() {
            "N" | "Enter" => self.open_form(Some(&id), false, effects),
            "R" => self.shared.confirm(
                format!("Restart {id}? Its current work is stopped."),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{id} restarts")),
                    method: "POST",
                    path: format!("/v1/runtimes/{id}/restart"),
                    body: None,
                },
            ),
            "x" => self.shared.confirm(
                format!("Stop {id} and everything it started?"),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{id} is stopped")),
                    method: "DELETE",
                    path: format!("/v1/runtimes/{id}"),
                    body: None,
                },
            ),
            "l" => effects.push(Effect::get(CallTag::TextPage("log"), format!("/v1/runtimes/{id}/logs"))),
            "r" => self.refresh(effects),
            _ => self.pages.runtimes.list.step(key.name(), self.pages.runtimes.list.index(&list), &list),
        }
    }

    fn devices_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "p" => return self.command("pair", effects),
            "B" => return self.command("sign out browsers", effects),
            _ => {}
        }
        let list: Vec<String> = self.pages.devices.devices.iter().map(|device| device.id.clone()).collect();
        let Some(device) = self.pages.devices.devices.get(self.pages.devices.list.index(&list)).cloned() else {
            return;
        };
        let path = format!("/v1/devices/{}", device.id);
        match key.name() {
            "x" if device.id == "d_local" => {
                self.shared.say("this machine's own administrator cannot be revoked", true)
            }
            "x" => self.shared.confirm(
                format!("Revoke {}? Its connections are closed at once.", device.name),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{} is revoked", device.name)),
                    method: "DELETE",
                    path,
                    body: None,
                },
            ),
            "R" => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "its name",
                    area: input::area(&device.name),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Notice("renamed".into()),
                        method: "PATCH",
                        path,
                        member: "name",
                    }),
                });
            }
            "r" => self.refresh(effects),
            _ => self.pages.devices.list.step(key.name(), self.pages.devices.list.index(&list), &list),
        }
    }

    fn scroll_key(&mut self, name: &str) -> bool {
        let rows = i64::from(view::conversation_area(self).height).max(2);
        let by = match name {
            "PageUp" | "C-b" => 1 - rows,
            "PageDown" | "C-f" => rows - 1,
            "C-u" => -rows / 2,
            "C-d" => rows / 2,
            "C-Up" | "C-S-Up" => -1,
            "C-Down" | "C-S-Down" => 1,
            _ => return false,
        };
        self.with_conversation(|conversation, pen| conversation.scroll(by, pen));
        true
    }

    fn reading_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if self.end_chord(key, effects) || self.scroll_key(key.name()) {
            return;
        }
        // Whoever reads on does not write after the answer.
        self.shared.card.from_composer = false;
        match key.name() {
            "i" | "Enter" => self.shared.write(),
            "Up" | "k" => self.with_conversation(|conversation, pen| conversation.scroll(-1, pen)),
            "Down" | "j" => self.with_conversation(|conversation, pen| conversation.scroll(1, pen)),
            "g" | "Home" => {
                self.begin_chord();
                self.with_conversation(|conversation, _| conversation.go_to_start());
            }
            "G" | "End" | "f" => self.with_conversation(|conversation, _| conversation.go_to_newest()),
            "J" | "S-Down" => self.with_conversation(|conversation, pen| conversation.choose(true, pen)),
            "K" | "S-Up" => self.with_conversation(|conversation, pen| conversation.choose(false, pen)),
            " " => self.with_conversation(Conversation::toggle_fold),
            "s" => self.open_surface(),
            "L" => self.load_rest(effects),
            "t" => self.command("thoughts", effects),
            "o" => self.command("output", effects),
            // `y` and `u` as on the page.
            "c" | "y" => self.command("copy", effects),
            "u" => self.back(effects),
            "x" => self.command("cancel", effects),
            "R" => self.command("restart", effects),
            "Q" => self.command("unqueue", effects),
            "E" => self.shared.overlay = Some(Overlay::Palette { area: input::area("export "), at: 0 }),
            "{" | "}" => {
                let list = self.session_ids();
                let now = self
                    .pages
                    .session
                    .conversation
                    .as_ref()
                    .and_then(|conversation| list.iter().position(|id| *id == conversation.session))
                    .unwrap_or(0);
                let step = if key.name() == "}" { 1 } else { list.len().saturating_sub(1) };
                if let Some(id) = list.get((now + step) % list.len().max(1)) {
                    self.open(id.clone(), effects);
                    self.shared.writing = false;
                }
            }
            _ => {}
        }
    }

    /// Gives the focus to the request above the composer, or to the conversation if there is none.
    fn leave_composer(&mut self) {
        self.shared.writing = false;
        self.shared.focus_card();
        self.shared.card.from_composer = self.shared.card.focused;
    }

    fn writing_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if matches!(key.name(), "PageUp" | "PageDown" | "C-Up" | "C-Down") {
            self.scroll_key(key.name());
            return;
        }
        if self.pages.session.files.key(key.name(), &mut self.pages.session.composer) {
            return;
        }
        let line = self.pages.session.composer.cursor().0;
        match key.name() {
            "Esc" => self.leave_composer(),
            "C-t" => self.ask_image(),
            "Backspace" if self.drops_image() => {}
            "Tab" | "S-Tab" => match self.slash().first() {
                Some((name, _)) => self.pages.session.composer = input::area(&format!("/{name} ")),
                None if view::has_panes(self) => self.other_pane(effects),
                None if self.shared.card.open().is_some() => self.leave_composer(),
                None => {}
            },
            "Up" if line == 0 => self.recall(true),
            "Down" if self.pages.session.history.is_some() && line + 1 == self.pages.session.composer.lines().len() => {
                self.recall(false)
            }
            "Enter" => self.send(effects),
            _ => {
                input::edit(&mut self.pages.session.composer, key);
            }
        }
    }

    pub(super) fn paste(&mut self, words: &str, effects: &mut Vec<Effect>) {
        // Pasted text is text only: no line is sent, and no key acts.
        let words = words.replace("\r\n", "\n").replace('\r', "\n");
        if words.len() > input::TEXT_MAX {
            return self.shared.say("too long to paste", true);
        }
        let single = words.replace('\n', " ");
        match &mut self.shared.overlay {
            Some(Overlay::Palette { area, .. } | Overlay::Input { area, .. }) => {
                area.insert_str(single);
                return;
            }
            Some(_) => return,
            None => {}
        }
        if self.new_session.form.is_some() {
            return self.form_paste(&words, effects);
        }
        if self.shows_changes() {
            return self.changes_paste(&words);
        }
        let writing = self.shared.page == TuiPage::Session && self.shared.writing || self.surface_takes_text();
        if !writing
            && self.shared.card.focused
            && let Some(card) = &mut self.shared.card.card
            && let Some((ask, None)) = self.shared.requests.get(&card.id)
            && card.paste(ask, &words)
        {
            return;
        }
        match self.shared.page {
            TuiPage::Session if self.surface_is_open() => drop(self.surface_paste(&words)),
            TuiPage::Session => {
                self.shared.write();
                self.paste_prompt(words, effects);
            }
            TuiPage::Search if self.pages.search.typing => {
                self.pages.search.query.insert_str(single);
            }
            TuiPage::Sessions if self.pages.sessions.filtering => {
                self.pages.sessions.filter.insert_str(single);
                self.shared.sessions.changed = true;
            }
            _ => {}
        }
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
                    self.shared.overlay = Some(Overlay::Help(scroll.min(view::help_end(self))));
                }
            }
            Overlay::TextPage { title, words, scroll } => {
                let end = view::text_end(self, &words);
                if let Some(scroll) = scrolled(scroll.min(end)) {
                    self.shared.overlay = Some(Overlay::TextPage { title, words, scroll: scroll.min(end) });
                }
            }
            Overlay::Several(question) => self.several_key(*question, key, effects),
            Overlay::Pairing(sheet) => self.pairing_key(*sheet, key, effects),
            Overlay::Usage(sheet) => self.usage_key(*sheet, key, effects),
            Overlay::Confirm { words, then } => match key.name() {
                "y" => self.then(*then, "", effects),
                "n" | "Esc" | "q" => {}
                _ => self.shared.overlay = Some(Overlay::Confirm { words, then }),
            },
            Overlay::Input { label, mut area, then } => match key.name() {
                "Esc" => {}
                "Enter" => {
                    let words = area.lines().join(" ").trim().to_owned();
                    self.then(*then, &words, effects);
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
