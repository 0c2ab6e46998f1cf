//! Keys and the mouse, for each page and field.

use super::*;

impl App {
    /// Has a key act.
    pub(super) fn act(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "C-c" if self.form.is_none() || self.overlay.is_some() => {
                match self.overlay.take() {
                    Some(Overlay::Pairing(sheet)) => return self.end_pairing(&sheet, effects),
                    Some(_) => return,
                    None => {}
                }
                if self.page == TuiPage::Session && self.writing && !self.composer.is_empty() {
                    self.composer = input::area("");
                    return;
                }
                if self.now - self.interrupted < QUIT_WINDOW {
                    self.quit = true;
                }
                self.interrupted = self.now;
                return self.say("press Ctrl-C again to quit; agents keep running", false);
            }
            "C-z" => return effects.push(Effect::Suspend),
            "C-l" => return effects.push(Effect::Redraw),
            _ => {}
        }
        if self.overlay.is_some() {
            return self.overlay_key(key, effects);
        }
        if self.form.is_some() {
            return self.form_key(key, effects);
        }
        if key.name() == "C-k" {
            return self.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 });
        }
        if self.changes_key(key, effects) {
            return;
        }
        let typing = self.card_takes_text();
        if self.surface_takes_text() {
            self.surface_key(key, effects);
            return;
        }
        if typing && self.card_key(key, effects) {
            return;
        }
        match self.page {
            TuiPage::Session if self.writing => return self.writing_key(key, effects),
            TuiPage::Search if self.query_typing => return self.query_key(key, effects),
            TuiPage::Sessions if self.filtering => return self.filter_key(key, effects),
            TuiPage::Sessions if key.name() == "Esc" && !self.filter.is_empty() => {
                self.sessions_changed = true;
                return self.filter = input::area("");
            }
            _ => {}
        }
        if self.page == TuiPage::Inbox && !typing && self.triage_key(key) {
            return;
        }
        if !typing && self.card_key(key, effects) {
            return;
        }
        if self.surface_key(key, effects) {
            return;
        }
        match key.name() {
            "?" => return self.overlay = Some(Overlay::Help(0)),
            ":" => return self.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            "Esc" if self.page == TuiPage::Session => return self.write(),
            "Esc" | "q" => return self.back(effects),
            "Tab" | "S-Tab" if view::has_panes(self) => return self.other_pane(effects),
            "Left" if self.page == TuiPage::Session && view::has_panes(self) => return self.other_pane(effects),
            "Left" | "Right" => return self.fold_key(key.name() == "Right", effects),
            "Tab" | "S-Tab" => {
                let now = PAGES
                    .iter()
                    .position(|(page, _)| *page == self.page || self.page == TuiPage::Session && *page == self.from)
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
        match self.page {
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
        let open = self.card.as_ref().is_some_and(|card| card.closed_at.is_none());
        if open && !self.card_focus {
            // The first press only chooses the request.
            let card = self.card.as_ref();
            if card.is_some_and(|card| self.requests.get(&card.id).is_some_and(|(ask, _)| card.means(key.name(), ask)))
            {
                self.focus_card();
                return true;
            }
            if !matches!(key.name(), "[" | "]" | "PageDown" | "PageUp" | "c") {
                return false;
            }
        }
        let Some(mut card) = self.card.take() else { return false };
        let Some((ask, outcome)) = self.requests.get(&card.id) else { return false };
        let shape = card.shape(ask, area.width, usize::from(area.height), &self.theme);
        card.mark_shown(&shape);
        let did = card.key(key, ask, outcome.as_ref(), self.now, shape.rows);
        let id = card.id.clone();
        match did {
            CardOutcome::Nothing => {
                self.card = Some(card);
                if matches!(key.name(), "[" | "]") {
                    self.next_request(&id, key.name() == "]");
                    return true;
                }
                return false;
            }
            CardOutcome::Taken => self.card = Some(card),
            CardOutcome::Close => {
                card.closed_at = Some(i64::MIN / 2);
                self.triage.dismiss(&id);
                self.card = Some(card);
            }
            CardOutcome::Answer(body) => {
                card.sent = true;
                card.problem.clear();
                self.card = Some(card);
                effects.push(triage::answer(id, body));
            }
        }
        true
    }

    fn next_request(&mut self, id: &str, next: bool) {
        let list: Vec<String> = match self.page {
            TuiPage::Inbox => {
                self.row_keys(TuiPage::Inbox).into_iter().filter(|key| self.requests.contains_key(key)).collect()
            }
            _ => self.session_asks().into_iter().filter(|one| one == id || self.is_open(one)).collect(),
        };
        let Some(at) = list.iter().position(|one| one == id) else { return };
        let at = if next { (at + 1) % list.len() } else { (at + list.len() - 1) % list.len() };
        self.chosen.insert(TuiPage::Inbox, list[at].clone());
        if list[at] != id {
            self.show_card_of(Some(&list[at]));
        }
        self.focus_card();
    }

    /// Shows another card, or none. An unfinished form is restored when its card comes back.
    pub(super) fn show_card_of(&mut self, id: Option<&str>) {
        if let Some(card) = self.card.take()
            && let Some((ask, None)) = self.requests.get(&card.id)
            && let Some(mode) = card.draft()
        {
            self.form_drafts.insert(card.id.clone(), (ask.revision, mode.clone()));
        }
        let Some((ask, _)) = id.and_then(|id| self.requests.get(id)) else { return };
        let mut card = Card::new(ask, self.now);
        if let Some((revision, mode)) = self.form_drafts.remove(&ask.id)
            && revision == ask.revision
        {
            card.resume(mode);
        }
        self.card = Some(card);
    }

    pub(super) fn step(&mut self, page: TuiPage, list: &[String], key: &Key) {
        self.step_from(page, self.index(page, list), list, key);
    }

    fn step_from(&mut self, page: TuiPage, now: usize, list: &[String], key: &Key) {
        let last = list.len().saturating_sub(1);
        let at = match key.name() {
            "Down" | "j" => (now + 1).min(last),
            "Up" | "k" => now.saturating_sub(1),
            "Home" | "g" => 0,
            "End" | "G" => last,
            "PageDown" => (now + 10).min(last),
            "PageUp" => now.saturating_sub(10),
            _ => return,
        };
        self.at.insert(page, at);
        match list.get(at) {
            Some(id) => self.chosen.insert(page, id.clone()),
            None => self.chosen.remove(&page),
        };
    }

    fn inbox_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Enter" => return self.open_selected(effects),
            "N" => return self.open_form(None, false, effects),
            _ => {}
        }
        let list = self.row_keys(TuiPage::Inbox);
        self.step_from(TuiPage::Inbox, self.inbox_at(), &list, key);
        if matches!(key.name(), "Down" | "j" | "Up" | "k" | "PageDown" | "PageUp" | "Home" | "End" | "g" | "G") {
            self.focus_chosen();
        }
    }

    /// Gives the focus to the card of the row that was chosen.
    pub(super) fn focus_chosen(&mut self) {
        let wanted = self.wanted_request();
        if self.card.as_ref().map(|card| &card.id) != wanted.as_ref() {
            self.show_card_of(wanted.as_deref());
        }
        self.focus_card();
    }

    /// Goes from a list to the session beside it, and back.
    fn other_pane(&mut self, effects: &mut Vec<Effect>) {
        match self.page {
            TuiPage::Session => self.go(self.list_page(), effects),
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
                self.filter = input::area("");
                self.filtering = false;
                self.sessions_changed = true;
            }
            "Enter" => self.filtering = false,
            "Up" | "Down" | "PageUp" | "PageDown" | "Tab" | "S-Tab" => {
                self.filtering = false;
                self.key(key, effects);
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.filter, key);
                self.sessions_changed = true;
                // The first match, while the filter is typed.
                self.at.insert(TuiPage::Sessions, 0);
                self.chosen.remove(&TuiPage::Sessions);
            }
        }
    }

    fn sessions_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if self.older.is_some() && self.list_errors.remove("sessions").is_some() {
            self.reading = false;
        }
        let selected = self.selected_session().and_then(|id| self.sessions.get(&id).cloned());
        match key.name() {
            "f" => self.filtering = true,
            "Enter" => self.open_selected(effects),
            "a" => {
                self.archived = !self.archived;
                self.sessions_changed = true;
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
                self.step_from(TuiPage::Sessions, self.session_at(), &list, key);
            }
        }
    }

    fn query_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Esc" => self.query_typing = false,
            "Down" => self.query_typing = self.hits.is_empty(),
            "Tab" | "S-Tab" => {
                self.query_typing = false;
                self.key(key, effects);
            }
            "Enter" => {
                let words = self.query.lines().join(" ").trim().to_owned();
                if !words.is_empty() {
                    let q: String = form_urlencoded::byte_serialize(words.as_bytes()).collect();
                    effects.push(get(CallTag::Search(words), format!("/v1/search?limit=100&q={q}")));
                }
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.query, key);
            }
        }
    }

    pub(super) fn search_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list = self.row_keys(TuiPage::Search);
        match key.name() {
            "Enter" => {
                let Some(hit) = self.hits.get(self.index(TuiPage::Search, &list)).cloned() else {
                    self.query_typing = true;
                    return;
                };
                self.open(hit.session, effects);
                self.writing = false;
                if let Some(conversation) = &mut self.conversation {
                    let place = position(&hit.cursor);
                    if !conversation.live || !conversation.seek(place) {
                        conversation.seek_target = Some(place);
                    }
                }
            }
            "i" => self.query_typing = true,
            "Up" | "k" if self.index(TuiPage::Search, &list) == 0 => self.query_typing = true,
            _ => self.step(TuiPage::Search, &list, key),
        }
    }

    fn runtimes_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list: Vec<String> = self.runtimes.iter().map(|runtime| runtime.id.clone()).collect();
        let Some(id) = list.get(self.index(TuiPage::Runtimes, &list)).cloned() else {
            if key.name() == "N" {
                self.open_form(None, false, effects);
            }
            return;
        };
        match key.name() {
            "N" | "Enter" => self.open_form(Some(&id), false, effects),
            "R" => self.confirm(
                format!("Restart {id}? Its current work is stopped."),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{id} restarts")),
                    method: "POST",
                    path: format!("/v1/runtimes/{id}/restart"),
                    body: None,
                },
            ),
            "x" => self.confirm(
                format!("Stop {id} and everything it started?"),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{id} is stopped")),
                    method: "DELETE",
                    path: format!("/v1/runtimes/{id}"),
                    body: None,
                },
            ),
            "l" => effects.push(get(CallTag::TextPage("log"), format!("/v1/runtimes/{id}/logs"))),
            "r" => self.refresh(effects),
            _ => self.step(TuiPage::Runtimes, &list, key),
        }
    }

    fn devices_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "p" => return self.command("pair", effects),
            "B" => return self.command("sign out browsers", effects),
            _ => {}
        }
        let list: Vec<String> = self.devices.iter().map(|device| device.id.clone()).collect();
        let Some(device) = self.devices.get(self.index(TuiPage::Devices, &list)).cloned() else { return };
        let path = format!("/v1/devices/{}", device.id);
        match key.name() {
            "x" if device.id == "d_local" => self.say("this machine's own administrator cannot be revoked", true),
            "x" => self.confirm(
                format!("Revoke {}? Its connections are closed at once.", device.name),
                AfterConfirm::Call {
                    tag: CallTag::Notice(format!("{} is revoked", device.name)),
                    method: "DELETE",
                    path,
                    body: None,
                },
            ),
            "R" => {
                self.overlay = Some(Overlay::Input {
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
            _ => self.step(TuiPage::Devices, &list, key),
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
        self.from_composer = false;
        match key.name() {
            "i" | "Enter" => self.write(),
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
            "E" => self.overlay = Some(Overlay::Palette { area: input::area("export "), at: 0 }),
            "{" | "}" => {
                let list = self.session_ids();
                let now = self
                    .conversation
                    .as_ref()
                    .and_then(|conversation| list.iter().position(|id| *id == conversation.session))
                    .unwrap_or(0);
                let step = if key.name() == "}" { 1 } else { list.len().saturating_sub(1) };
                if let Some(id) = list.get((now + step) % list.len().max(1)) {
                    self.open(id.clone(), effects);
                    self.writing = false;
                }
            }
            _ => {}
        }
    }

    /// Gives the focus to the request above the composer, or to the conversation if there is none.
    fn leave_composer(&mut self) {
        self.writing = false;
        self.focus_card();
        self.from_composer = self.card_focus;
    }

    fn writing_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if matches!(key.name(), "PageUp" | "PageDown" | "C-Up" | "C-Down") {
            self.scroll_key(key.name());
            return;
        }
        if self.files.key(key.name(), &mut self.composer) {
            return;
        }
        let line = self.composer.cursor().0;
        match key.name() {
            "Esc" => self.leave_composer(),
            "C-t" => self.ask_image(),
            "Backspace" if self.drops_image() => {}
            "Tab" | "S-Tab" => match self.slash().first() {
                Some((name, _)) => self.composer = input::area(&format!("/{name} ")),
                None if view::has_panes(self) => self.other_pane(effects),
                None if self.card.as_ref().is_some_and(|card| card.closed_at.is_none()) => self.leave_composer(),
                None => {}
            },
            "Up" if line == 0 => self.recall(true),
            "Down" if self.history.is_some() && line + 1 == self.composer.lines().len() => self.recall(false),
            "Enter" => self.send(effects),
            _ => {
                input::edit(&mut self.composer, key);
            }
        }
    }

    pub(super) fn paste(&mut self, words: &str, effects: &mut Vec<Effect>) {
        // Pasted text is text only: no line is sent, and no key acts.
        let words = words.replace("\r\n", "\n").replace('\r', "\n");
        if words.len() > input::TEXT_MAX {
            return self.say("too long to paste", true);
        }
        let single = words.replace('\n', " ");
        match &mut self.overlay {
            Some(Overlay::Palette { area, .. } | Overlay::Input { area, .. }) => {
                area.insert_str(single);
                return;
            }
            Some(_) => return,
            None => {}
        }
        if self.form.is_some() {
            return self.form_paste(&words, effects);
        }
        if self.shows_changes() {
            return self.changes_paste(&words);
        }
        let writing = self.page == TuiPage::Session && self.writing || self.surface_takes_text();
        if !writing
            && self.card_focus
            && let Some(card) = &mut self.card
            && let Some((ask, None)) = self.requests.get(&card.id)
            && card.paste(ask, &words)
        {
            return;
        }
        match self.page {
            TuiPage::Session if self.surface_is_open() => drop(self.surface_paste(&words)),
            TuiPage::Session => {
                self.write();
                self.paste_prompt(words, effects);
            }
            TuiPage::Search if self.query_typing => {
                self.query.insert_str(single);
            }
            TuiPage::Sessions if self.filtering => {
                self.filter.insert_str(single);
                self.sessions_changed = true;
            }
            _ => {}
        }
    }

    fn overlay_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(overlay) = self.overlay.take() else { return };
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
                    self.overlay = Some(Overlay::Help(scroll.min(view::help_end(self))));
                }
            }
            Overlay::TextPage { title, words, scroll } => {
                let end = view::text_end(self, &words);
                if let Some(scroll) = scrolled(scroll.min(end)) {
                    self.overlay = Some(Overlay::TextPage { title, words, scroll: scroll.min(end) });
                }
            }
            Overlay::Several(question) => self.several_key(*question, key, effects),
            Overlay::Pairing(sheet) => self.pairing_key(*sheet, key, effects),
            Overlay::Usage(sheet) => self.usage_key(*sheet, key, effects),
            Overlay::Confirm { words, then } => match key.name() {
                "y" => self.then(*then, "", effects),
                "n" | "Esc" | "q" => {}
                _ => self.overlay = Some(Overlay::Confirm { words, then }),
            },
            Overlay::Input { label, mut area, then } => match key.name() {
                "Esc" => {}
                "Enter" => {
                    let words = area.lines().join(" ").trim().to_owned();
                    self.then(*then, &words, effects);
                }
                "M-Enter" | "C-j" | "S-Enter" => self.overlay = Some(Overlay::Input { label, area, then }),
                _ => {
                    input::edit(&mut area, key);
                    self.overlay = Some(Overlay::Input { label, area, then });
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
                self.overlay = Some(Overlay::Palette { area, at });
            }
        }
    }
}
