//! What the gateway tells: news of what is followed, and what calls came to.

use super::*;
use plexus_protocol::Kind;

impl App {
    /// Takes a session of a listing, whose order is newest first: it comes after all that are known.
    fn take_listed(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.places.unwrap_or((i64::MAX, i64::MIN));
        session.place = session.updated.min(oldest.saturating_sub(1));
        self.places = Some((session.place, newest.max(session.place)));
        self.sessions.insert(session.id.clone(), session);
    }

    /// Takes what a session is now: where it has news, it comes before all that are known.
    fn take_updated(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.places.unwrap_or((i64::MAX, i64::MIN));
        session.place = match self.sessions.get(&session.id) {
            Some(known) if known.updated == session.updated => known.place,
            _ => session.updated.max(newest.saturating_add(1)),
        };
        self.places = Some((oldest.min(session.place), newest.max(session.place)));
        self.sessions.insert(session.id.clone(), session);
    }

    pub(super) fn on_event(&mut self, heard: &ClientEvent) {
        match heard {
            ClientEvent::Hello(hello) => self.greeted(hello),
            ClientEvent::Snapshot(_) | ClientEvent::Older => {}
            ClientEvent::Live => {
                self.live = true;
                self.link = ConnectionView::Live;
                self.true_at = self.now;
                self.present = None;
                self.refreshed = 0;
            }
            ClientEvent::Lost(why) => {
                self.present = None;
                if !matches!(self.link, ConnectionView::Lost(..)) {
                    self.link = ConnectionView::Lost(self.now, sanitize::line(why, 200));
                }
            }
            ClientEvent::Session(value) => {
                if let Some(session) = SessionItem::read(value).filter(|session| !self.forgotten.contains(&session.id))
                {
                    if session.state == "idle" || session.state == "exited" {
                        self.doing.remove(&session.id);
                    }
                    self.take_updated(session);
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
                if self.sessions.remove(id).is_some() && self.talk.as_ref().is_some_and(|talk| talk.session == *id) {
                    self.say("this session was deleted", true);
                }
                self.doing.remove(id);
                self.unread.remove(id);
                self.forgotten.insert(id.clone());
            }
            ClientEvent::RuntimeGone(id) => self.runtimes.retain(|one| one.id != *id),
            ClientEvent::Presence(value) => {
                let list = value["lookers"].as_array().into_iter().flatten().map(|one| field(&one["name"]));
                let list: Vec<String> = list.filter(|name| *name != self.me).take(5).collect();
                if let Some(session) = value["session_id"].as_str() {
                    self.viewers.insert(session.to_owned(), list);
                }
            }
            ClientEvent::Event(event) => self.happened(event),
        }
    }

    /// The gateway's greeting: everything as it stands now.
    fn greeted(&mut self, hello: &Value) {
        self.sessions.clear();
        self.places = None;
        for session in hello["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            self.take_listed(session);
        }
        self.forgotten.clear();
        self.omitted = hello["sessions_omitted"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        self.older = (self.omitted > 0).then(String::new);
        self.greeting += 1;
        (self.reading, self.sought) = (false, None);
        let open: BTreeMap<String, RequestView> = hello["requests"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(RequestView::read)
            .map(|ask| (ask.id.clone(), ask))
            .collect();
        // What was open and is not any more was closed while we were away; the replay says how.
        for (id, (_, outcome)) in &mut self.requests {
            if outcome.is_none() && !open.contains_key(id) {
                let words = json!({ "state": "closed" });
                *outcome = Some(RequestResult { at: self.now, ..RequestResult::read(&words) });
            }
        }
        self.half.retain(|id, _| open.contains_key(id));
        for ask in open.into_values() {
            self.asked(ask);
        }
        self.live = false;
    }

    /// An event of whatever session.
    fn happened(&mut self, event: &Envelope) {
        let body = &event.event;
        let kind = Kind::from_name(&event.kind);
        match kind {
            Some(Kind::RequestOpened) => {
                if let Some(ask) = RequestView::read(body)
                    && self.live
                {
                    self.asked(ask);
                }
            }
            Some(Kind::RequestUpdated) => {
                if let Some(ask) = RequestView::read(body).filter(|ask| self.is_open(&ask.id)) {
                    self.asked(ask);
                }
            }
            Some(Kind::RequestResolved) => {
                if let Some((_, outcome)) = body["request_id"].as_str().and_then(|id| self.requests.get_mut(id)) {
                    *outcome = Some(RequestResult::read(body));
                }
                if let Some(id) = body["request_id"].as_str() {
                    self.half.remove(id);
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

    /// Forgets the oldest requests that are closed.
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

    pub(super) fn told(&mut self, heard: &ClientEvent) {
        let Some(talk) = &mut self.talk else { return };
        match heard {
            ClientEvent::Event(event) => {
                let at = event.at.map_or(0, |at| at.as_millis());
                talk.event(&event.kind, &event.event, &event.run_id, &event.cursor, at);
            }
            ClientEvent::Snapshot(value) => talk.snapshot(value),
            ClientEvent::Live => {
                talk.live = true;
                if let Some(place) = talk.sought.take() {
                    talk.seek(place);
                }
            }
            ClientEvent::Hello(_) | ClientEvent::Lost(_) => talk.live = false,
            ClientEvent::Older
            | ClientEvent::Session(_)
            | ClientEvent::SessionGone(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeGone(_)
            | ClientEvent::Presence(_) => {}
        }
    }

    /// What is told of an open request: the newest of it counts, and all of it rather than its beginning. One that changes
    /// while it is on the screen has to be read again.
    pub(super) fn asked(&mut self, ask: RequestView) {
        if let Some((known, None)) = self.requests.get(&ask.id) {
            let told_in_part_again = ask.revision == known.revision && ask.partial && !known.partial;
            if ask.revision < known.revision || told_in_part_again {
                return;
            }
            if let Some(card) = self.card.as_mut().filter(|card| card.id == ask.id && ask.revision > known.revision) {
                *card = Card::new(&ask, self.now);
                card.changed = true;
            }
        }
        self.requests.insert(ask.id.clone(), (ask, None));
    }

    /// The session that is open begins.
    pub(super) fn opened(&mut self, opening: Option<(PageOf, Value, String)>, effects: &mut Vec<Effect>) {
        let Some(talk) = &mut self.talk else { return };
        let after = opening.map(|(page, snapshot, next)| {
            talk.open(&page, &snapshot);
            next
        });
        effects.push(Effect::Attach { session: talk.session.clone(), after });
    }

    pub(super) fn earlier(&mut self, page: Result<PageOf, String>) {
        let area = view::talk_area(self);
        let Some(talk) = &mut self.talk else { return };
        match page {
            Ok(page) => {
                let pen = DrawContext {
                    theme: &self.theme,
                    width: area.width,
                    height: usize::from(area.height),
                    now: self.now,
                };
                talk.page(&page, usize::from(area.height), &pen);
            }
            Err(why) => {
                talk.fetching = false;
                talk.look.follow = false;
                self.say(&why, true);
            }
        }
    }

    pub(super) fn done(&mut self, tag: CallTag, outcome: Result<(u16, Value), String>, effects: &mut Vec<Effect>) {
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
            CallTag::Me => {
                if good {
                    self.me = field(&value["name"]);
                }
            }
            CallTag::Again(runtime) if good => self.say(&format!("{runtime} is restarting; sent when ready"), false),
            CallTag::Again(_) => {
                self.again = None;
                self.say(&format!("not restarted: {why}"), true);
            }
            CallTag::Older(greeting) if greeting != self.greeting => {}
            CallTag::Older(_) if good => self.take_older(&value),
            // Asked for again with the next key.
            CallTag::Older(_) => {
                self.say(&format!("older sessions could not be read: {why}"), true);
                self.trouble.insert("sessions", why);
            }
            CallTag::Session => {
                if let Some(session) = SessionItem::read(&value).filter(|_| good)
                    && !self.sessions.contains_key(&session.id)
                {
                    self.take_listed(session);
                }
            }
            CallTag::Runtimes => {
                if let Some(all) = self.list_of("runtimes", &value["runtimes"], good, why, RuntimeItem::read) {
                    self.runtimes = all;
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
            CallTag::Answer(id) => self.answered(&id, status, &value, &why),
            CallTag::Whole(id) => self.read_whole(&id, RequestView::read(&value).filter(|_| good), &why),
            CallTag::Prompt(_) if good => self.prompted(&value),
            CallTag::Prompt(words) => {
                if self.composer.is_empty() {
                    self.composer = input::area(&words);
                }
                self.say(&format!("not sent: {why}"), true);
            }
            CallTag::New if good && value["session_id"].is_string() => self.opened_new(&value, effects),
            CallTag::New => self.say(&format!("no new session: {why}"), true),
            CallTag::Words(title) if good => self.show_words(title, &value),
            CallTag::Words(_) => self.say(&why, true),
            CallTag::Servers if good => self.show_list("MCP servers", agent_lists::servers(&value)),
            CallTag::Servers => self.say(&format!("MCP status unavailable: {why}"), true),
            CallTag::Skills if good => {
                let words = agent_lists::skills(&value, usize::from(self.size.0).saturating_sub(6));
                self.show_list("skills", words);
            }
            CallTag::Skills => self.say(&format!("Skills list unavailable: {why}"), true),
            CallTag::Past(runtime) => {
                if !good {
                    return self.say(&why, true);
                }
                self.pasts = agent_lists::pasts(&runtime, &value);
                if self.pasts.is_empty() {
                    return self.say(&format!("{runtime} has no conversation that can be resumed"), false);
                }
                self.over = Some(Overlay::Palette { area: input::area("past "), at: 0 });
            }
            CallTag::Link => match value["url"].as_str().filter(|_| good) {
                Some(url) => self.show_link(sanitize::line(url, LINK_MAX), effects),
                None => self.say(&format!("no link: {why}"), true),
            },
            CallTag::Say(words) => {
                if good {
                    self.say(&words, false);
                } else {
                    self.say(&format!("{words}: not done: {why}"), true);
                }
                self.refresh(effects);
            }
        }
    }

    /// The items of a list that a page shows, unless it could not be had: then the page says why.
    fn list_of<T>(
        &mut self,
        page: &'static str,
        list: &Value,
        good: bool,
        why: String,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        if good {
            self.trouble.remove(page);
            return Some(list.as_array().into_iter().flatten().filter_map(read).collect());
        }
        self.trouble.insert(page, why);
        None
    }

    /// A session was opened from here: it is gone to.
    fn opened_new(&mut self, value: &Value, effects: &mut Vec<Effect>) {
        if let Some(session) = SessionItem::read(value) {
            self.take_updated(session);
        }
        self.open(value["session_id"].as_str().unwrap_or_default().to_owned(), effects);
    }

    /// A link for sharing was made.
    fn show_link(&mut self, url: String, effects: &mut Vec<Effect>) {
        let words = format!(
            "{url}\n\nAnyone with this link can watch this session, but not act in it. The link was copied. Revoke \
             it under Devices."
        );
        effects.push(Effect::Copy(url));
        self.over = Some(Overlay::Words { title: "link".into(), words, scroll: 0 });
    }

    /// What became of an answer: a receipt, mine or the winner's, or a refusal.
    fn answered(&mut self, id: &str, status: u16, value: &Value, why: &str) {
        let good = (200..300).contains(&status);
        if value.get("resolved_by").is_some()
            && let Some((_, outcome @ None)) = self.requests.get_mut(id)
        {
            *outcome = Some(RequestResult::read(value));
        }
        if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
            card.sent = false;
            if !good && value.get("resolved_by").is_none() {
                card.problem = format!("not answered: {why}");
            }
        }
        if (status == 409 || status == 410) && value.get("resolved_by").is_some() {
            let words = RequestResult::read(value).words(self.now);
            self.say(&format!("too late: {words}"), false);
        } else if !good {
            self.say(&format!("not answered: {why}"), true);
        }
    }

    /// Shows what a runtime wrote, or what its checks found.
    fn show_words(&mut self, title: &str, value: &Value) {
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
        self.over = Some(Overlay::Words { title: title.to_owned(), words, scroll: usize::MAX });
    }

    /// A prompt was taken.
    fn prompted(&mut self, value: &Value) {
        if value["queued"] == true {
            let ahead = value["ahead"].as_u64().unwrap_or_default();
            self.say(&format!("queued: {ahead} before it"), false);
        }
    }

    /// All of a request that was told in part.
    fn read_whole(&mut self, id: &str, ask: Option<RequestView>, why: &str) {
        match ask.filter(|ask| ask.id == id && !ask.partial) {
            Some(ask) if self.is_open(id) => {
                if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
                    card.fetching = false;
                    card.read = false;
                }
                self.asked(ask);
            }
            Some(_) => {}
            None => self.say(&format!("the complete request could not be loaded: {why}"), true),
        }
    }

    fn show_list(&mut self, title: &str, words: String) {
        self.over = Some(Overlay::Words { title: title.to_owned(), words, scroll: 0 });
    }

    /// A page of older sessions.
    fn take_older(&mut self, value: &Value) {
        self.reading = false;
        self.older = value["next"].as_str().map(str::to_owned);
        for session in value["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            // What is known is newer.
            if !self.forgotten.contains(&session.id) && !self.sessions.contains_key(&session.id) {
                self.take_listed(session);
            }
        }
    }
}
