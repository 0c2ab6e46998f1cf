//! Applies events of the gateway and replies to calls.

use super::*;
use plexus_protocol::Kind;

impl App {
    /// Adds a session of a listing, which is ordered newest first: it comes after all known ones.
    fn add_listed(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.places.unwrap_or((i64::MAX, i64::MIN));
        session.place = session.updated.min(oldest.saturating_sub(1));
        self.places = Some((session.place, newest.max(session.place)));
        self.sessions_changed = true;
        self.sessions.insert(session.id.clone(), session);
    }

    /// Applies a session's update: if it has news, it comes before all known ones.
    pub(super) fn apply_update(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.places.unwrap_or((i64::MAX, i64::MIN));
        session.place = match self.sessions.get(&session.id) {
            Some(known) if known.updated == session.updated => known.place,
            _ => session.updated.max(newest.saturating_add(1)),
        };
        self.places = Some((oldest.min(session.place), newest.max(session.place)));
        self.sessions_changed = true;
        self.sessions.insert(session.id.clone(), session);
    }

    pub(super) fn on_event(&mut self, client_event: &ClientEvent) {
        match client_event {
            ClientEvent::Hello(hello) => self.on_hello(hello),
            ClientEvent::Snapshot(_) | ClientEvent::Older => {}
            ClientEvent::Live => {
                self.live = true;
                self.link = ConnectionView::Live;
                self.true_at = self.now;
                self.present = None;
                self.refreshed = 0;
                self.touch_changes(None);
                self.choose_first_page();
            }
            ClientEvent::Lost(why) => {
                self.present = None;
                if !matches!(self.link, ConnectionView::Lost(..)) {
                    self.link = ConnectionView::Lost(self.now, sanitize::line(why, 200));
                }
            }
            ClientEvent::Session(value) => {
                if let Some(session) = SessionItem::read(value).filter(|session| !self.deleted.contains(&session.id)) {
                    if session.state == "idle" || session.state == "exited" {
                        self.doing.remove(&session.id);
                    }
                    self.apply_update(session);
                }
            }
            ClientEvent::Runtime(value) => {
                if let Some(runtime) = RuntimeItem::read(value) {
                    match self.runtimes.iter_mut().find(|one| one.id == runtime.id) {
                        Some(one) => *one = runtime,
                        None => self.runtimes.push(runtime),
                    }
                }
            }
            ClientEvent::SessionGone(id) => {
                if self.sessions.remove(id).is_some()
                    && self.conversation.as_ref().is_some_and(|conversation| conversation.session == *id)
                {
                    self.say("this session was deleted", true);
                }
                self.sessions_changed = true;
                self.doing.remove(id);
                self.unread.remove(id);
                self.deleted.insert(id.clone());
            }
            ClientEvent::RuntimeGone(id) => self.runtimes.retain(|one| one.id != *id),
            ClientEvent::Presence(value) => {
                let list = value["lookers"].as_array().into_iter().flatten().map(|one| field(&one["name"]));
                let list: Vec<String> = list.filter(|name| *name != self.me).take(5).collect();
                if let Some(session) = value["session_id"].as_str() {
                    self.viewers.insert(session.to_owned(), list);
                }
            }
            ClientEvent::Event(event) => self.on_log_event(event),
        }
    }

    /// Applies `hello`: the current state of everything.
    fn on_hello(&mut self, hello: &Value) {
        self.sessions.clear();
        self.sessions_changed = true;
        self.triage.touch();
        self.places = None;
        for session in hello["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            self.add_listed(session);
        }
        self.deleted.clear();
        self.omitted = hello["sessions_omitted"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        self.older = (self.omitted > 0).then(String::new);
        self.greeting += 1;
        (self.reading, self.seek_target) = (false, None);
        let open: BTreeMap<String, RequestView> = hello["requests"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| RequestView::read(one, self.device))
            .map(|ask| (ask.id.clone(), ask))
            .collect();
        // A request that is no longer open was closed while the connection was lost; the replay says how.
        for (id, (_, outcome)) in &mut self.requests {
            if outcome.is_none() && !open.contains_key(id) {
                let words = json!({ "state": "closed" });
                *outcome = Some(RequestResult { at: self.now, ..RequestResult::read(&words, None) });
            }
        }
        self.form_drafts.retain(|id, _| open.contains_key(id));
        for ask in open.into_values() {
            self.on_request(ask);
        }
        self.live = false;
    }

    /// Applies an event of any session.
    fn on_log_event(&mut self, event: &Envelope) {
        let body = &event.event;
        let kind = Kind::from_name(&event.kind);
        // What may change files.
        if matches!(kind, Some(Kind::RunStarted | Kind::RunEnded | Kind::ToolCall | Kind::ToolCallUpdate)) {
            self.touch_changes(Some(&event.session_id));
        }
        match kind {
            Some(Kind::RequestOpened) => {
                if let Some(ask) = RequestView::read(body, self.device)
                    && self.live
                {
                    self.on_request(ask);
                }
            }
            Some(Kind::RequestUpdated) => {
                if let Some(ask) = RequestView::read(body, self.device).filter(|ask| self.is_open(&ask.id)) {
                    self.on_request(ask);
                }
            }
            Some(Kind::RequestResolved) => {
                if let Some((ask, outcome)) = body["request_id"].as_str().and_then(|id| self.requests.get_mut(id)) {
                    *outcome = Some(RequestResult::read(body, Some(ask)));
                    self.triage.touch();
                }
                if let Some(id) = body["request_id"].as_str() {
                    self.form_drafts.remove(id);
                }
                self.forget();
            }
            Some(Kind::ToolCall | Kind::ToolCallUpdate) => {
                let title = field(&body["title"]);
                if body["status"] == "completed" || body["status"] == "failed" {
                    self.doing.remove(&event.session_id);
                } else if !title.is_empty() {
                    self.doing.insert(event.session_id.clone(), title);
                }
            }
            Some(Kind::AgentThoughtChunk) => {
                self.doing.insert(event.session_id.clone(), "thinking".into());
            }
            Some(Kind::AgentMessageChunk) => {
                self.doing.insert(event.session_id.clone(), "writing".into());
            }
            Some(Kind::RunEnded) => {
                self.doing.remove(&event.session_id);
            }
            _ => {}
        }
        if matches!(kind, Some(Kind::RequestOpened | Kind::RunEnded | Kind::Error)) {
            *self.unread.entry(event.session_id.clone()).or_default() += 1;
        }
    }

    /// Drops the oldest closed requests.
    fn forget(&mut self) {
        let mut closed: Vec<(i64, String)> =
            self.requests.iter().filter_map(|(id, (_, outcome))| Some((outcome.as_ref()?.at, id.clone()))).collect();
        if closed.len() > CLOSED_MAX {
            closed.sort();
            for (_, id) in closed.drain(..CLOSED_MAX / 2) {
                self.requests.remove(&id);
            }
        }
    }

    pub(super) fn on_session_event(&mut self, client_event: &ClientEvent) {
        let Some(conversation) = &mut self.conversation else { return };
        match client_event {
            ClientEvent::Event(event) => {
                let at = event.at.map_or(0, |at| at.as_millis());
                conversation.event(&event.kind, &event.event, &event.run_id, &event.cursor, at);
            }
            ClientEvent::Snapshot(value) => conversation.snapshot(value),
            ClientEvent::Live => {
                conversation.live = true;
                if let Some(place) = conversation.seek_target.take() {
                    conversation.seek(place);
                }
            }
            ClientEvent::Hello(_) | ClientEvent::Lost(_) => conversation.live = false,
            ClientEvent::Older
            | ClientEvent::Session(_)
            | ClientEvent::SessionGone(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeGone(_)
            | ClientEvent::Presence(_) => {}
        }
    }

    /// Applies an open request: the newest revision counts, and the whole request rather than its beginning. A request that changes while
    /// it is shown has to be read again.
    pub(super) fn on_request(&mut self, ask: RequestView) {
        if let Some((known, None)) = self.requests.get(&ask.id) {
            let is_repeated_part = ask.revision == known.revision && ask.partial && !known.partial;
            if ask.revision < known.revision || is_repeated_part {
                return;
            }
            if let Some(card) = self.card.as_mut().filter(|card| card.id == ask.id && ask.revision > known.revision) {
                *card = Card::new(&ask, self.now);
                card.changed = true;
            }
        }
        self.requests.insert(ask.id.clone(), (ask, None));
        self.triage.touch();
    }

    /// The open session's first page has arrived.
    pub(super) fn on_opened(&mut self, opening: Option<(PageOf, Value, String)>, effects: &mut Vec<Effect>) {
        let Some(conversation) = &mut self.conversation else { return };
        let after = opening.map(|(page, snapshot, next)| {
            conversation.open(&page, &snapshot);
            next
        });
        effects.push(Effect::Attach { session: conversation.session.clone(), after });
    }

    pub(super) fn on_page(&mut self, page: Result<PageOf, String>) {
        let area = view::conversation_area(self);
        let Some(conversation) = &mut self.conversation else { return };
        match page {
            Ok(page) => {
                let pen = DrawContext {
                    theme: &self.theme,
                    width: area.width,
                    height: usize::from(area.height),
                    now: self.now,
                };
                conversation.page(&page, usize::from(area.height), &pen);
            }
            Err(why) => {
                conversation.fetching = false;
                conversation.scroll_position.follow = false;
                self.say(&why, true);
            }
        }
    }

    pub(super) fn on_reply(&mut self, tag: CallTag, outcome: Result<(u16, Value), String>, effects: &mut Vec<Effect>) {
        let (status, value) = match outcome {
            Ok(answer) => answer,
            Err(why) => (0, json!({ "detail": why })),
        };
        let good = (200..300).contains(&status);
        let why = match value["detail"].as_str() {
            Some(detail) => sanitize::line(detail, 300),
            None if status == 404 || status == 405 => {
                "the gateway does not support this: is it an older version?".into()
            }
            None => format!("the gateway answered {status}"),
        };
        match tag {
            CallTag::Me if good => self.set_device(&value),
            CallTag::Me => {}
            CallTag::Restart(runtime) if good => self.say(&format!("{runtime} is restarting; sent when ready"), false),
            CallTag::Restart(_) => {
                self.pending_restart = None;
                self.say(&format!("not restarted: {why}"), true);
            }
            CallTag::Older(greeting) if greeting != self.greeting => {}
            CallTag::Older(_) if good => self.add_older_sessions(&value),
            // The next key asks for it again.
            CallTag::Older(_) => {
                self.say(&format!("older sessions could not be read: {why}"), true);
                self.list_errors.insert("sessions", why);
            }
            CallTag::Session => {
                if let Some(session) = SessionItem::read(&value).filter(|_| good)
                    && !self.sessions.contains_key(&session.id)
                {
                    self.add_listed(session);
                }
            }
            CallTag::Runtimes => {
                if let Some(all) = self.list_of("runtimes", &value["runtimes"], good, why, RuntimeItem::read) {
                    self.runtimes = all;
                    self.runtimes_read = true;
                }
            }
            CallTag::Devices => {
                if let Some(all) = self.list_of("devices", &value["devices"], good, why, DeviceItem::read) {
                    self.devices = all;
                }
            }
            CallTag::Search(words) => {
                if let Some(hits) = self.list_of("search", &value["hits"], good, why, SearchItem::read) {
                    self.hits = hits;
                    self.at.insert(TuiPage::Search, 0);
                    self.query_typing = self.hits.is_empty();
                }
                self.searched = Some(words);
            }
            CallTag::Answer(id) => self.on_answer_reply(&id, status, &value, &why, effects),
            CallTag::FullRequest(id) => {
                self.on_full_request(&id, RequestView::read(&value, self.device).filter(|_| good), &why);
            }
            CallTag::Prompt(_) if good => self.on_prompt_reply(&value),
            CallTag::Prompt(sent) => self.take_back(*sent, &why),
            CallTag::Files(asked) => self.files.on_reply(asked, good.then_some(&value).ok_or(&*why)),
            CallTag::Changes(session, call) => self.on_changes_reply(&session, call, (good, &value), &why, effects),
            CallTag::Form(call) => self.on_form_reply(call, (status, &value), &why, effects),
            CallTag::Pairing(serial, call) => self.on_pairing_reply((serial, call), (status, &value), &why, effects),
            CallTag::Usage(serial, part) => self.on_usage_reply(serial, part, good.then_some(&value).ok_or(&*why)),
            CallTag::Ceilings => self.on_ceilings((!good).then_some(&*why), effects),
            CallTag::Archived(folder) => self.on_archived(folder, (!good).then_some(&*why), effects),
            CallTag::Worktrees(folder) if good => self.offer_removal(&folder, &value),
            // It is still listed by `plexus worktrees`.
            CallTag::Worktrees(_) => {}
            CallTag::Settings(facts) => self.on_settings_reply(*facts, good.then_some(value).ok_or(why), effects),
            CallTag::TextPage(title) if good => self.show_text(title, &value),
            CallTag::TextPage(_) => self.say(&why, true),
            CallTag::Servers if good => self.show_list("MCP servers", agent_lists::servers(&value)),
            CallTag::Servers => self.say(&format!("MCP status unavailable: {why}"), true),
            CallTag::Skills if good => {
                let words = agent_lists::skills(&value, usize::from(self.size.0).saturating_sub(6));
                self.show_list("skills", words);
            }
            CallTag::Skills => self.say(&format!("Skills list unavailable: {why}"), true),
            CallTag::Link => match value["url"].as_str().filter(|_| good) {
                Some(url) => self.show_link(sanitize::line(url, LINK_MAX), effects),
                None => self.say(&format!("no link: {why}"), true),
            },
            CallTag::Action { session, surface } => {
                let stale = value["code"] == "stale_surface";
                self.on_action_reply(&session, &surface, (!good).then_some(why), stale);
            }
            CallTag::Surfaces(session) => self.on_surfaces(&session, good.then_some(&value["surfaces"])),
            CallTag::Notice(words) => {
                if good {
                    self.say(&words, false);
                } else {
                    self.say(&format!("{words}: not done: {why}"), true);
                }
                self.refresh(effects);
            }
        }
    }

    /// Applies the permissions of this device.
    fn set_device(&mut self, me: &Value) {
        self.me = field(&me["name"]);
        let scopes = me["scopes"].as_array();
        self.device = Answerer {
            may_approve: scopes.is_none_or(|all| all.iter().any(|scope| scope == "approve")),
            approve_up_to: serde_json::from_value(me["approve_up_to"].clone()).ok(),
        };
        self.requests.values_mut().for_each(|(ask, _)| ask.set_device(self.device));
    }

    /// The items of a page's list; on an error the page shows the message.
    fn list_of<T>(
        &mut self,
        page: &'static str,
        list: &Value,
        good: bool,
        why: String,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        if good {
            self.list_errors.remove(page);
            return Some(list.as_array().into_iter().flatten().filter_map(read).collect());
        }
        self.list_errors.insert(page, why);
        None
    }

    /// Shows and copies a share link.
    fn show_link(&mut self, url: String, effects: &mut Vec<Effect>) {
        let words = format!(
            "{url}\n\nAnyone with this link can watch this session, but not act in it. The link was copied. Revoke \
             it under Devices."
        );
        effects.push(Effect::Copy(url));
        self.overlay = Some(Overlay::TextPage { title: "link".into(), words, scroll: 0 });
    }

    /// Applies the reply to an answer: a receipt, of this client or the winner, or a refusal.
    fn on_answer_reply(&mut self, id: &str, status: u16, value: &Value, why: &str, effects: &mut Vec<Effect>) {
        let good = (200..300).contains(&status);
        if value.get("resolved_by").is_some()
            && let Some((ask, outcome @ None)) = self.requests.get_mut(id)
        {
            *outcome = Some(RequestResult::read(value, Some(ask)));
            self.triage.touch();
        }
        if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
            card.sent = false;
            if !good && value.get("resolved_by").is_none() {
                card.problem = format!("not answered: {why}");
            }
        }
        let late = (status == 409 || status == 410) && value.get("resolved_by").is_some();
        if self.is_triaged(id, good, late, why, effects) {
            return;
        }
        if late {
            let words = RequestResult::read(value, self.requests.get(id).map(|(ask, _)| ask)).words(self.now);
            self.say(&format!("too late: {words}"), false);
        } else if !good {
            self.say(&format!("not answered: {why}"), true);
        }
    }

    /// Shows a runtime's stderr, or the results of its checks.
    fn show_text(&mut self, title: &str, value: &Value) {
        let lines = value["lines"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|line| line["text"].as_str().unwrap_or_default().to_owned());
        let checks = value["checks"].as_array().into_iter().flatten().map(|check| {
            let ok = check["ok"] == true || check["state"] == "ok";
            let fix = check["fix"].as_str().map(|fix| format!("\n    {fix}")).unwrap_or_default();
            let detail = check["detail"].as_str().unwrap_or_default();
            format!("{} {}: {detail}{fix}", if ok { "✔" } else { "✘" }, check["name"].as_str().unwrap_or_default())
        });
        let words: Vec<String> = lines.chain(checks).collect();
        let words = if words.is_empty() { "nothing".into() } else { words.join("\n") };
        self.overlay = Some(Overlay::TextPage { title: title.to_owned(), words, scroll: usize::MAX });
    }

    /// A prompt was accepted.
    fn on_prompt_reply(&mut self, value: &Value) {
        if value["queued"] == true {
            let ahead = value["ahead"].as_u64().unwrap_or_default();
            self.say(&format!("queued: {ahead} before it"), false);
        }
    }

    /// Applies a whole request of which only the beginning was known.
    fn on_full_request(&mut self, id: &str, ask: Option<RequestView>, why: &str) {
        match ask.filter(|ask| ask.id == id && !ask.partial) {
            Some(ask) if self.is_open(id) => {
                if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
                    card.fetching = false;
                    card.read = false;
                }
                self.on_request(ask);
            }
            Some(_) => {}
            None => self.say(&format!("the complete request could not be loaded: {why}"), true),
        }
    }

    fn show_list(&mut self, title: &str, words: String) {
        self.overlay = Some(Overlay::TextPage { title: title.to_owned(), words, scroll: 0 });
    }

    /// Applies a page of older sessions.
    fn add_older_sessions(&mut self, value: &Value) {
        self.reading = false;
        self.older = value["next"].as_str().map(str::to_owned);
        for session in value["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            // The known state is newer.
            if !self.deleted.contains(&session.id) && !self.sessions.contains_key(&session.id) {
                self.add_listed(session);
            }
        }
    }

    /// Loads the rest of a tool call.
    pub(super) fn load_rest(&mut self, effects: &mut Vec<Effect>) {
        let mut wanted = Err("open a session first");
        self.with_conversation(|conversation, pen| wanted = conversation.load_rest(pen));
        match (wanted, &self.conversation) {
            (Ok(call), Some(conversation)) => {
                effects.push(Effect::Whole { session: conversation.session.clone(), call });
            }
            (Err(why), _) => self.say(why, false),
            (Ok(_), None) => {}
        }
    }

    /// The rest of a tool call was loaded, or why it was not.
    pub(super) fn on_rest(&mut self, block: u64, loaded: Result<(Vec<ConversationEvent>, u64), String>) {
        if let Err(why) = &loaded {
            self.say(why, true);
        }
        self.with_conversation(|conversation, _| conversation.on_rest(block, loaded.ok()));
    }
}
