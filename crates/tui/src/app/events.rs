//! Applies events of the gateway and replies to calls.

use super::*;
use crate::card::Card;
use crate::pages::session::SessionPage;
use plexus_protocol::Kind;

impl App {
    pub(super) fn on_event(&mut self, client_event: &ClientEvent) {
        match client_event {
            ClientEvent::Hello(hello) => self.on_hello(hello),
            ClientEvent::Snapshot(_) | ClientEvent::Older => {}
            ClientEvent::Live => {
                self.live = true;
                self.shared.link = ConnectionView::Live;
                self.shared.data_as_of = self.shared.now;
                self.presence.reported = None;
                self.refreshed = 0;
                self.choose_first_page();
            }
            ClientEvent::Lost(why) => {
                self.presence.reported = None;
                if !matches!(self.shared.link, ConnectionView::Lost(..)) {
                    self.shared.link = ConnectionView::Lost(self.shared.now, sanitize::line(why, 200));
                }
            }
            ClientEvent::Session(value) => {
                if let Some(session) =
                    SessionItem::read(value).filter(|session| !self.shared.sessions.deleted.contains(&session.id))
                {
                    if session.state == "idle" || session.state == "exited" {
                        self.shared.sessions.doing.remove(&session.id);
                    }
                    self.shared.sessions.apply_update(session);
                }
            }
            ClientEvent::Runtime(value) => {
                if let Some(runtime) = RuntimeItem::read(value) {
                    match self.shared.runtimes.iter_mut().find(|one| one.id == runtime.id) {
                        Some(one) => *one = runtime,
                        None => self.shared.runtimes.push(runtime),
                    }
                }
            }
            ClientEvent::SessionGone(id) => {
                if self.shared.sessions.all.remove(id).is_some()
                    && self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.session == *id)
                {
                    self.shared.say("this session was deleted", true);
                }
                self.shared.sessions.changed = true;
                self.shared.sessions.doing.remove(id);
                self.shared.sessions.unread.remove(id);
                self.shared.sessions.deleted.insert(id.clone());
            }
            ClientEvent::RuntimeGone(id) => self.shared.runtimes.retain(|one| one.id != *id),
            ClientEvent::Presence(value) => {
                let list = value["lookers"].as_array().into_iter().flatten().map(|one| field(&one["name"]));
                let list: Vec<String> = list.filter(|name| *name != self.shared.device_name).take(5).collect();
                if let Some(session) = value["session_id"].as_str() {
                    self.shared.sessions.viewers.insert(session.to_owned(), list);
                }
            }
            ClientEvent::Event(event) => self.on_log_event(event),
        }
    }

    /// Applies `hello`: the current state of everything.
    fn on_hello(&mut self, hello: &Value) {
        self.shared.sessions.all.clear();
        self.shared.sessions.changed = true;
        self.shared.requests_changed = true;
        self.shared.sessions.positions = None;
        for session in hello["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            self.shared.sessions.add_listed(session);
        }
        self.shared.sessions.deleted.clear();
        self.shared.sessions.omitted =
            hello["sessions_omitted"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        self.shared.sessions.older = (self.shared.sessions.omitted > 0).then(String::new);
        self.shared.sessions.greeting += 1;
        (self.shared.sessions.reading, self.shared.sessions.requested) = (false, None);
        let open: BTreeMap<String, RequestView> = hello["requests"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| RequestView::read(one, self.shared.device))
            .map(|ask| (ask.id.clone(), ask))
            .collect();
        // A request that is no longer open was closed while the connection was lost; the replay says how.
        for (id, (_, outcome)) in &mut self.shared.requests {
            if outcome.is_none() && !open.contains_key(id) {
                let receipt = json!({ "state": "closed" });
                *outcome = Some(RequestResult { at: self.shared.now, ..RequestResult::read(&receipt, None) });
            }
        }
        self.shared.card.drafts.retain(|id, _| open.contains_key(id));
        for ask in open.into_values() {
            self.on_request(ask);
        }
        self.live = false;
    }

    /// Applies an event of any session.
    fn on_log_event(&mut self, event: &Envelope) {
        let body = &event.event;
        let kind = Kind::from_name(&event.kind);
        match kind {
            Some(Kind::RequestOpened) => {
                if let Some(ask) = RequestView::read(body, self.shared.device)
                    && self.live
                {
                    self.on_request(ask);
                }
            }
            Some(Kind::RequestUpdated) => {
                if let Some(ask) =
                    RequestView::read(body, self.shared.device).filter(|ask| self.shared.is_open(&ask.id))
                {
                    self.on_request(ask);
                }
            }
            Some(Kind::RequestResolved) => {
                if let Some((ask, outcome)) =
                    body["request_id"].as_str().and_then(|id| self.shared.requests.get_mut(id))
                {
                    *outcome = Some(RequestResult::read(body, Some(ask)));
                    self.shared.requests_changed = true;
                }
                if let Some(id) = body["request_id"].as_str() {
                    self.shared.card.drafts.remove(id);
                }
                self.forget();
            }
            Some(Kind::ToolCall | Kind::ToolCallUpdate) => {
                let title = field(&body["title"]);
                if body["status"] == "completed" || body["status"] == "failed" {
                    self.shared.sessions.doing.remove(&event.session_id);
                } else if !title.is_empty() {
                    self.shared.sessions.doing.insert(event.session_id.clone(), title);
                }
            }
            Some(Kind::AgentThoughtChunk) => {
                self.shared.sessions.doing.insert(event.session_id.clone(), "thinking".into());
            }
            Some(Kind::AgentMessageChunk) => {
                self.shared.sessions.doing.insert(event.session_id.clone(), "writing".into());
            }
            Some(Kind::RunEnded) => {
                self.shared.sessions.doing.remove(&event.session_id);
            }
            _ => {}
        }
        if matches!(kind, Some(Kind::RequestOpened | Kind::RunEnded | Kind::Error)) {
            *self.shared.sessions.unread.entry(event.session_id.clone()).or_default() += 1;
        }
    }

    /// Drops the oldest closed requests.
    fn forget(&mut self) {
        let mut closed: Vec<(i64, String)> = self
            .shared
            .requests
            .iter()
            .filter_map(|(id, (_, outcome))| Some((outcome.as_ref()?.at, id.clone())))
            .collect();
        if closed.len() > CLOSED_MAX {
            closed.sort();
            for (_, id) in closed.drain(..CLOSED_MAX / 2) {
                self.shared.requests.remove(&id);
            }
        }
    }

    /// Applies an open request: the newest revision counts, and the whole request rather than its beginning. A request that changes while
    /// it is shown has to be read again.
    pub(super) fn on_request(&mut self, ask: RequestView) {
        if let Some((known, None)) = self.shared.requests.get(&ask.id) {
            let is_repeated_part = ask.request.revision == known.request.revision
                && ask.request.display_truncated
                && !known.request.display_truncated;
            if ask.request.revision < known.request.revision || is_repeated_part {
                return;
            }
            if let Some(card) = self
                .shared
                .card
                .card
                .as_mut()
                .filter(|card| card.id == ask.id && ask.request.revision > known.request.revision)
            {
                *card = Card::new(&ask, self.shared.now);
                card.changed = true;
            }
        }
        self.shared.requests.insert(ask.id.clone(), (ask, None));
        self.shared.requests_changed = true;
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
            CallTag::Restart(runtime) if good => {
                self.shared.say(&format!("{runtime} is restarting; sent when ready"), false)
            }
            CallTag::Restart(_) => {
                self.pages.session.forget_restart();
                self.shared.say(&format!("not restarted: {why}"), true);
            }
            CallTag::Older(greeting) if greeting != self.shared.sessions.greeting => {}
            CallTag::Older(_) if good => self.add_older_sessions(&value),
            // The next key asks for it again.
            CallTag::Older(_) => {
                self.shared.say(&format!("older sessions could not be read: {why}"), true);
                self.shared.sessions.older_failed = true;
            }
            CallTag::Session => {
                if let Some(session) = SessionItem::read(&value).filter(|_| good)
                    && !self.shared.sessions.all.contains_key(&session.id)
                {
                    self.shared.sessions.add_listed(session);
                }
            }
            CallTag::Page(page, call) => {
                let reply = good.then_some(&value).ok_or(&*why);
                self.with(effects, |pages, cx| pages.get_mut(page).reply(call, reply, cx));
            }
            CallTag::Answer(id) => self.on_answer_reply(&id, status, &value, &why, effects),
            CallTag::FullRequest(id) => {
                self.on_full_request(&id, RequestView::read(&value, self.shared.device).filter(|_| good), &why);
            }
            CallTag::Prompt(_) if good => SessionPage::on_prompt_reply(&value, &mut self.shared),
            CallTag::Prompt(sent) => self.pages.session.take_back(*sent, &why, &mut self.shared),
            CallTag::Files(query_id) => {
                self.pages.session.on_files_reply(query_id, good.then_some(&value).ok_or(&*why))
            }
            CallTag::Changes(session, call) => self.with(effects, |pages, cx| {
                pages.changes.on_reply(&session, call, (good, &value), &why, cx);
            }),
            CallTag::Form(call) => {
                self.with(effects, |pages, cx| pages.new_session.on_reply(call, (status, &value), &why, cx));
            }
            CallTag::Pairing(serial, call) => self.on_pairing_reply((serial, call), (status, &value), &why, effects),
            CallTag::Usage(serial, part) => self.on_usage_reply(serial, part, good.then_some(&value).ok_or(&*why)),
            CallTag::Ceilings => self.on_ceilings((!good).then_some(&*why), effects),
            CallTag::Archived(folder) => self.on_archived(folder, (!good).then_some(&*why), effects),
            CallTag::Worktrees(folder) if good => self.offer_removal(&folder, &value),
            // It is still listed by `plexus worktrees`.
            CallTag::Worktrees(_) => {}
            CallTag::Settings(facts) => self.on_settings_reply(*facts, good.then_some(value).ok_or(why), effects),
            CallTag::TextPage(_) | CallTag::Servers | CallTag::Skills => {
                self.on_text_reply(&tag, good.then_some(&value).ok_or(&*why));
            }
            CallTag::Link => match value["url"].as_str().filter(|_| good) {
                Some(url) => self.show_link(sanitize::line(url, LINK_MAX), effects),
                None => self.shared.say(&format!("no link: {why}"), true),
            },
            CallTag::Action { session, surface } => {
                let stale = value["code"] == "stale_surface";
                let refused = (!good).then_some(why);
                self.pages.session.on_action_reply(&session, &surface, refused, stale, &mut self.shared);
            }
            CallTag::Surfaces(session) => self.pages.session.on_surfaces(&session, good.then_some(&value["surfaces"])),
            CallTag::Notice(text) => {
                if good {
                    self.shared.say(&text, false);
                } else {
                    self.shared.say(&format!("{text}: not done: {why}"), true);
                }
                self.refresh(effects);
            }
        }
    }

    /// Shows the reply to a call whose reply is read as text.
    fn on_text_reply(&mut self, tag: &CallTag, reply: Result<&Value, &str>) {
        match (tag, reply) {
            (CallTag::TextPage(title), Ok(value)) => self.show_text(title, value),
            (CallTag::Servers, Ok(value)) => self.show_list("MCP servers", agent_lists::servers(value)),
            (CallTag::Servers, Err(why)) => self.shared.say(&format!("MCP status unavailable: {why}"), true),
            (CallTag::Skills, Ok(value)) => {
                let text = agent_lists::skills(value, usize::from(self.shared.size.0).saturating_sub(6));
                self.show_list("skills", text);
            }
            (CallTag::Skills, Err(why)) => self.shared.say(&format!("Skills list unavailable: {why}"), true),
            (_, Err(why)) => self.shared.say(why, true),
            (_, Ok(_)) => {}
        }
    }

    /// Applies the permissions of this device.
    fn set_device(&mut self, me: &Value) {
        self.shared.device_name = field(&me["name"]);
        let scopes = me["scopes"].as_array();
        self.shared.device = Answerer {
            may_approve: scopes.is_none_or(|all| all.iter().any(|scope| scope == "approve")),
            approve_up_to: serde_json::from_value(me["approve_up_to"].clone()).ok(),
        };
        self.shared.requests.values_mut().for_each(|(ask, _)| ask.set_device(self.shared.device));
    }

    /// Shows and copies a share link.
    fn show_link(&mut self, url: String, effects: &mut Vec<Effect>) {
        let notice = format!(
            "{url}\n\nAnyone with this link can watch this session, but not act in it. The link was copied. Revoke \
             it under Devices."
        );
        effects.push(Effect::Copy(url));
        self.shared.overlay = Some(Overlay::TextPage { title: "link".into(), text: notice, scroll: 0 });
    }

    /// Applies the reply to an answer: a receipt, of this client or the winner, or a refusal.
    fn on_answer_reply(&mut self, id: &str, status: u16, value: &Value, why: &str, effects: &mut Vec<Effect>) {
        let good = (200..300).contains(&status);
        if value.get("resolved_by").is_some()
            && let Some((ask, outcome @ None)) = self.shared.requests.get_mut(id)
        {
            *outcome = Some(RequestResult::read(value, Some(ask)));
            self.shared.requests_changed = true;
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.id == id) {
            card.sent = false;
            if !good && value.get("resolved_by").is_none() {
                card.problem = format!("not answered: {why}");
            }
        }
        let late = (status == 409 || status == 410) && value.get("resolved_by").is_some();
        if self.with(effects, |pages, cx| pages.inbox.is_triaged(id, good, late, why, cx)) {
            return;
        }
        if late {
            let text =
                RequestResult::read(value, self.shared.requests.get(id).map(|(ask, _)| ask)).text(self.shared.now);
            self.shared.say(&format!("too late: {text}"), false);
        } else if !good {
            self.shared.say(&format!("not answered: {why}"), true);
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
        let text: Vec<String> = lines.chain(checks).collect();
        let text = if text.is_empty() { "nothing".into() } else { text.join("\n") };
        self.shared.overlay = Some(Overlay::TextPage { title: title.to_owned(), text, scroll: usize::MAX });
    }

    /// Applies a whole request of which only the beginning was known.
    fn on_full_request(&mut self, id: &str, ask: Option<RequestView>, why: &str) {
        match ask.filter(|ask| ask.id == id && !ask.request.display_truncated) {
            Some(ask) if self.shared.is_open(id) => {
                if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.id == id) {
                    card.fetching = false;
                    card.read = false;
                }
                self.on_request(ask);
            }
            Some(_) => {}
            None => self.shared.say(&format!("the complete request could not be loaded: {why}"), true),
        }
    }

    fn show_list(&mut self, title: &str, text: String) {
        self.shared.overlay = Some(Overlay::TextPage { title: title.to_owned(), text, scroll: 0 });
    }

    /// Applies a page of older sessions.
    fn add_older_sessions(&mut self, value: &Value) {
        self.shared.sessions.reading = false;
        self.shared.sessions.older = value["next"].as_str().map(str::to_owned);
        for session in value["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
            // The known state is newer.
            if !self.shared.sessions.deleted.contains(&session.id)
                && !self.shared.sessions.all.contains_key(&session.id)
            {
                self.shared.sessions.add_listed(session);
            }
        }
    }
}
