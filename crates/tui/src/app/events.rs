//! Applies events of the gateway and replies to calls.

use plexus_protocol::api::devices::{Grant, Me, Share};
use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::api::operation::{Check, Checks, Verdict};
use plexus_protocol::api::runtimes::Logs;
use plexus_protocol::api::sessions::SessionsPage;
use plexus_protocol::api::stream::{PresenceChanged, StreamHello};
use plexus_protocol::api::surfaces::Surfaces;
use plexus_protocol::api::worktrees::ListedWorktrees;
use plexus_protocol::transcript::{EntryBody, ToolCall};
use plexus_protocol::{Kind, Receipt, Request, RequestHead, Scope, SessionInfo, SessionState};

use super::*;
use crate::card::Card;
use crate::pages::message::FormCall;
use crate::pages::session::SessionPage;
use crate::reply::REASON_MAX;
use crate::view_model::line;

/// The code of the refusal of a press on a surface that changed meanwhile.
const STALE_SURFACE: &str = "stale_surface";

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
            ClientEvent::Session(session) => self.on_session(session),
            ClientEvent::Runtime(runtime) => {
                let runtime = RuntimeItem::new(runtime);
                match self.shared.runtimes.iter_mut().find(|one| one.id == runtime.id) {
                    Some(one) => *one = runtime,
                    None => self.shared.runtimes.push(runtime),
                }
            }
            ClientEvent::SessionDeleted(id) => {
                let id = id.as_str();
                if self.shared.sessions.all.remove(id).is_some()
                    && self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.session == id)
                {
                    self.shared.show_notice("this session was deleted", true);
                }
                self.shared.sessions.changed = true;
                self.shared.sessions.activities.remove(id);
                self.shared.sessions.unread.remove(id);
                self.shared.sessions.deleted.insert(id.to_owned());
            }
            ClientEvent::RuntimeRemoved(id) => self.shared.runtimes.retain(|one| one.id != id.as_str()),
            ClientEvent::Presence(PresenceChanged { session_id, lookers }) => {
                let list = lookers.iter().map(|viewer| line(&viewer.name));
                let list: Vec<String> = list.filter(|name| *name != self.shared.device_name).take(5).collect();
                self.shared.sessions.viewers.insert(session_id.to_string(), list);
            }
            ClientEvent::Event(event) => self.on_log_event(&event.envelope),
        }
    }

    /// Applies `hello`: the current state of everything.
    fn on_hello(&mut self, hello: &StreamHello) {
        self.shared.sessions.all.clear();
        self.shared.sessions.changed = true;
        self.shared.requests_changed = true;
        self.shared.sessions.positions = None;
        for session in &hello.sessions {
            self.shared.sessions.add_listed(SessionItem::new(session));
        }
        self.shared.sessions.deleted.clear();
        self.shared.sessions.omitted = hello.sessions_omitted.unwrap_or_default();
        self.shared.sessions.older = (self.shared.sessions.omitted > 0).then(String::new);
        self.shared.sessions.greeting += 1;
        (self.shared.sessions.reading, self.shared.sessions.requested) = (false, None);
        let unreadable = hello.requests.unreadable_items().iter();
        let heads = unreadable.filter_map(|item| serde_json::from_str::<RequestHead>(item.get()).ok());
        self.shared.unreadable_requests = heads.filter_map(|head| head.request_id).collect();
        let open: BTreeMap<String, RequestView> = hello
            .requests
            .iter()
            .filter_map(|request| RequestView::new(Request::clone(request), self.shared.device))
            .map(|ask| (ask.id.clone(), ask))
            .collect();
        // A request that is no longer open was closed while the connection was lost; the replay contains its outcome.
        for (id, (_, outcome)) in &mut self.shared.requests {
            if outcome.is_none() && !open.contains_key(id) {
                *outcome = Some(RequestResult::closed(self.shared.now));
            }
        }
        self.shared.card.drafts.retain(|id, _| open.contains_key(id));
        for ask in open.into_values() {
            self.on_request(ask);
        }
        self.live = false;
    }

    /// Applies an event of any session.
    fn on_log_event(&mut self, event: &EventEnvelope) {
        let session = event.session_id.as_str();
        let kind = event.known_kind();
        match kind {
            Some(Kind::RequestOpened) if self.live => match event.body() {
                Some(request) => {
                    if let Some(ask) = RequestView::new(request, self.shared.device) {
                        self.on_request(ask);
                    }
                }
                None => {
                    let head: RequestHead = event.body().unwrap_or_default();
                    self.shared.unreadable_requests.extend(head.request_id);
                }
            },
            Some(Kind::RequestUpdated) => {
                let ask = event.body().and_then(|request| RequestView::new(request, self.shared.device));
                if let Some(ask) = ask.filter(|ask| self.shared.is_open(&ask.id)) {
                    self.on_request(ask);
                }
            }
            Some(Kind::RequestResolved) => {
                if let Some(RequestHead { request_id: Some(request_id), .. }) = event.body() {
                    let id = request_id.as_str();
                    if let Some((ask, outcome)) = self.shared.requests.get_mut(id) {
                        *outcome = Some(RequestResult::resolved(event.body(), ask, self.shared.now));
                        self.shared.requests_changed = true;
                    }
                    self.shared.card.drafts.remove(id);
                    self.shared.unreadable_requests.remove(id);
                }
                self.forget();
            }
            Some(Kind::ToolCall | Kind::ToolCallUpdate) => {
                if let Some(EntryBody::Tool { update, .. }) = event.entry() {
                    let mut call = ToolCall::default();
                    call.update(update);
                    let title = line(call.title());
                    if call.is_finished() {
                        self.shared.sessions.activities.remove(session);
                    } else if !title.is_empty() {
                        self.shared.sessions.activities.insert(session.to_owned(), title);
                    }
                }
            }
            Some(Kind::AgentThoughtChunk) => {
                self.shared.sessions.activities.insert(session.to_owned(), "thinking".into());
            }
            Some(Kind::AgentMessageChunk) => {
                self.shared.sessions.activities.insert(session.to_owned(), "writing".into());
            }
            Some(Kind::RunEnded) => {
                self.shared.sessions.activities.remove(session);
            }
            _ => {}
        }
        if matches!(kind, Some(Kind::RequestOpened | Kind::RunEnded | Kind::Error)) {
            *self.shared.sessions.unread.entry(session.to_owned()).or_default() += 1;
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
    /// it is on the screen has to be read again.
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

    pub(super) fn on_reply(&mut self, tag: CallTag, reply: &CallReply, effects: &mut Vec<Effect>) {
        match tag {
            CallTag::OwnDevice => {
                if let Ok(me) = reply.read() {
                    self.set_device(&me);
                }
            }
            CallTag::Restart(runtime) => match reply.problem() {
                None => self.shared.show_notice(&format!("{runtime} is restarting; sent when ready"), false),
                Some(why) => {
                    self.pages.session.forget_restart();
                    self.shared.show_notice(&format!("not restarted: {why}"), true);
                }
            },
            CallTag::Older(greeting) if greeting != self.shared.sessions.greeting => {}
            CallTag::Older(_) => match reply.read() {
                Ok(page) => self.add_older_sessions(&page),
                // The next key fetches it again.
                Err(why) => {
                    self.shared.show_notice(&format!("older sessions could not be read: {why}"), true);
                    self.shared.sessions.older_failed = true;
                }
            },
            CallTag::Session => {
                if let Ok(session) = reply.read::<SessionInfo>() {
                    self.add_unlisted(&session);
                }
            }
            CallTag::Page(page, call) => {
                self.with(effects, |pages, cx| pages.get_mut(page).reply(call, reply, cx));
            }
            CallTag::Answer(id) => self.on_answer_reply(&id, reply, effects),
            CallTag::FullRequest(id) => self.on_full_request(&id, reply.read()),
            CallTag::Prompt(sent) => match reply.read() {
                Ok(accepted) => SessionPage::on_accepted(&accepted, &mut self.shared),
                Err(why) => self.pages.session.take_back(*sent, &why, &mut self.shared),
            },
            CallTag::Files(query_id) => self.pages.session.on_files_reply(query_id, reply.read()),
            CallTag::Changes(session, call) => self.with(effects, |pages, cx| {
                pages.changes.on_reply(&session, call, reply, cx);
            }),
            CallTag::Form(call) => self.with(effects, |pages, cx| pages.new_session.on_reply(call, reply, cx)),
            CallTag::Pairing(serial, call) => self.on_pairing_reply((serial, call), reply, effects),
            CallTag::Usage(serial, part) => self.on_usage_reply(serial, part, reply),
            CallTag::Ceilings => self.on_ceilings(reply.problem().as_deref(), effects),
            CallTag::Archived(folder) => self.on_archived(folder, reply.problem().as_deref(), effects),
            // A worktree that cannot be read here is still listed by `plexus worktrees`.
            CallTag::Worktrees(folder) => {
                if let Ok(ListedWorktrees { worktrees }) = reply.read() {
                    self.offer_removal(&folder, &worktrees);
                }
            }
            CallTag::Settings(facts) => self.on_settings_reply(*facts, reply, effects),
            CallTag::Logs | CallTag::Checks | CallTag::Servers | CallTag::Skills => self.on_text_reply(&tag, reply),
            CallTag::Link => match reply.read() {
                Ok(Share { url, .. }) => self.show_link(sanitize::line(&url, LINK_MAX), effects),
                Err(why) => self.shared.show_notice(&format!("no link: {why}"), true),
            },
            CallTag::Action { session, surface } => {
                let stale = reply.refusal().is_some_and(|refusal| refusal.code == STALE_SURFACE);
                self.pages.session.on_action_reply(&session, &surface, reply.problem(), stale, &mut self.shared);
            }
            CallTag::Surfaces(session) => {
                let surfaces = reply.read::<Surfaces>().ok().map(|list| list.surfaces);
                self.pages.session.on_surfaces(&session, surfaces.as_deref());
            }
            CallTag::Notice(text) => self.on_done(&text, reply.problem(), effects),
        }
    }

    /// Applies the outcome of a change of a setting.
    pub(super) fn on_set(&mut self, tag: CallTag, outcome: Result<(), String>, effects: &mut Vec<Effect>) {
        let outcome = outcome.map_err(|why| sanitize::line(&why, REASON_MAX));
        match tag {
            CallTag::Form(FormCall::Setting(attempt)) => {
                self.with(effects, |pages, cx| pages.new_session.on_set(attempt, outcome, cx));
            }
            CallTag::Notice(text) => self.on_done(&text, outcome.err(), effects),
            _ => {}
        }
    }

    /// Shows the notice of a completed call, or the reason why it failed.
    fn on_done(&mut self, text: &str, problem: Option<String>, effects: &mut Vec<Effect>) {
        match problem {
            None => self.shared.show_notice(text, false),
            Some(why) => self.shared.show_notice(&format!("{text}: not done: {why}"), true),
        }
        self.refresh(effects);
    }

    /// Shows the reply to a call whose response is read as text.
    fn on_text_reply(&mut self, tag: &CallTag, reply: &CallReply) {
        let page = match tag {
            CallTag::Servers => {
                let list = reply.read().map(|list| ("MCP servers", agent_lists::servers(&list), 0));
                list.map_err(|why| format!("MCP status unavailable: {why}"))
            }
            CallTag::Skills => {
                let width = usize::from(self.shared.size.0).saturating_sub(6);
                let list = reply.read().map(|list| ("skills", agent_lists::skills(&list, width), 0));
                list.map_err(|why| format!("Skills list unavailable: {why}"))
            }
            CallTag::Logs => reply.read().map(|logs| ("log", log_text(&logs), usize::MAX)),
            _ => reply.read().map(|checks| ("doctor", checks_text(&checks), usize::MAX)),
        };
        match page {
            Ok((title, text, scroll)) => {
                self.shared.overlay = Some(Overlay::TextPage { title: title.to_owned(), text, scroll });
            }
            Err(why) => self.shared.show_notice(&why, true),
        }
    }

    /// Applies the permissions of this device.
    fn set_device(&mut self, me: &Me) {
        self.shared.device_name = line(&me.device.name);
        let Grant { scopes, approve_up_to, .. } = &me.device.grant;
        self.shared.device = Answerer { may_approve: scopes.contains(&Scope::Approve), approve_up_to: *approve_up_to };
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
    fn on_answer_reply(&mut self, id: &str, reply: &CallReply, effects: &mut Vec<Effect>) {
        let (receipt, problem) = match reply.read::<Receipt>() {
            Ok(receipt) => (Some(receipt), None),
            Err(why) => (reply.refusal().and_then(|refusal| refusal.data.receipt), Some(why)),
        };
        if let Some(receipt) = &receipt
            && let Some((ask, outcome @ None)) = self.shared.requests.get_mut(id)
        {
            *outcome = Some(RequestResult::new(receipt, Some(ask)));
            self.shared.requests_changed = true;
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.id == id) {
            card.sent = false;
            if let (None, Some(why)) = (&receipt, &problem) {
                card.problem = format!("not answered: {why}");
            }
        }
        let earlier_answer = receipt.filter(|_| matches!(reply.status(), Some(409 | 410)));
        let why = problem.as_deref().unwrap_or_default();
        if self
            .with(effects, |pages, cx| pages.inbox.is_triaged(id, problem.is_none(), earlier_answer.is_some(), why, cx))
        {
            return;
        }
        if let Some(receipt) = earlier_answer {
            let ask = self.shared.requests.get(id).map(|(ask, _)| ask);
            let text = RequestResult::new(&receipt, ask).text(self.shared.now);
            self.shared.show_notice(&format!("too late: {text}"), false);
        } else if problem.is_some() {
            self.shared.show_notice(&format!("not answered: {why}"), true);
        }
    }

    /// Applies a whole request of which only the beginning was loaded.
    fn on_full_request(&mut self, id: &str, request: Result<Request, String>) {
        let ask = request.map(|request| RequestView::new(request, self.shared.device));
        let why = match ask {
            Ok(Some(ask)) if ask.id == id && !ask.request.display_truncated => {
                if self.shared.is_open(id) {
                    if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.id == id) {
                        card.fetching = false;
                        card.read = false;
                    }
                    self.on_request(ask);
                }
                return;
            }
            Ok(_) => "the gateway sent another one".to_owned(),
            Err(why) => why,
        };
        self.shared.show_notice(&format!("the complete request could not be loaded: {why}"), true);
    }

    /// Applies a page of older sessions.
    fn add_older_sessions(&mut self, page: &SessionsPage) {
        self.shared.sessions.reading = false;
        self.shared.sessions.older.clone_from(&page.next);
        for session in &page.sessions {
            if !self.shared.sessions.deleted.contains(session.session_id.as_str()) {
                self.add_unlisted(session);
            }
        }
    }

    /// Adds a session, unless it is listed: the listed state is newer.
    fn add_unlisted(&mut self, session: &SessionInfo) {
        if !self.shared.sessions.all.contains_key(session.session_id.as_str()) {
            self.shared.sessions.add_listed(SessionItem::new(session));
        }
    }

    /// Applies the state of a session that has changed.
    fn on_session(&mut self, session: &SessionInfo) {
        let session = SessionItem::new(session);
        if self.shared.sessions.deleted.contains(&session.id) {
            return;
        }
        if matches!(session.state, SessionState::Idle | SessionState::Exited) {
            self.shared.sessions.activities.remove(&session.id);
        }
        self.shared.sessions.apply_update(session);
    }
}

/// The stderr output of a runtime as text.
fn log_text(logs: &Logs) -> String {
    let lines: Vec<&str> = logs.lines.iter().map(|line| line.text.as_str()).collect();
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
}

/// The results of the health checks as text.
fn checks_text(checks: &Checks) -> String {
    let paragraph = |check: &Check| {
        let mark = if check.state == Verdict::Ok { "✔" } else { "✘" };
        let fix = check.fix.as_ref().map(|fix| format!("\n    {fix}")).unwrap_or_default();
        format!("{mark} {}: {}{fix}", check.name, check.detail)
    };
    let checks: Vec<String> = checks.checks.iter().map(paragraph).collect();
    if checks.is_empty() { "nothing".to_owned() } else { checks.join("\n") }
}
