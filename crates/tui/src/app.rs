//! The state of the screen and its changes: `update` is one function of state and message. It passes inputs to the pages, and carries out
//! the steps that they lead to. Pure: the clock, the network and the terminal come in as messages and go out as effects.

mod card;
mod commands;
mod drawing;
mod events;
mod keys;
mod mouse;
mod sheet_drawing;
mod sheets;
mod typing;

use std::collections::BTreeMap;

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use plexus_client::{ClientEvent, calls};
use plexus_protocol::answers::Answerer;
use plexus_protocol::{RequestId, SessionId};
use ratatui::layout::Rect;

use super::agent_lists;
use super::attachments;
use super::card::{ARM_DELAY, CardOutcome};
use super::conversation::Conversation;
use super::help::COMMANDS;
use super::input::{self, Key};
use super::pages::changes::COPY_MAX;
use super::pages::context::{Context, MouseAction, MouseInput, Step};
use super::pages::layout::{self, has_panes};
use super::pages::message::{AfterConfirm, CallTag, Effect, Msg};
use super::pages::shared::{ConnectionView, Overlay, Shared};
use super::pages::{self, PAGES, Page as _, Pages, TuiPage};
use super::reply::CallReply;
use super::sanitize;
use super::settings::SettingChoice;
use super::theme::Theme;
use super::triage::Sense;
use super::view_model::{RequestResult, RequestView, RuntimeItem, SessionItem};

/// Time that a toast stays, in milliseconds.
const TOAST_TIME: i64 = 5_000;
/// Time for a second Ctrl-C, in milliseconds.
const QUIT_WINDOW: i64 = 2_000;
/// Interval at which a list on the screen is read again, in milliseconds.
const REFRESH: i64 = 5_000;
/// Maximum number of closed requests that are retained, so that they stay in their place.
const CLOSED_MAX: usize = 200;
/// Maximum length of a link on the screen, in characters.
const LINK_MAX: usize = 500;
/// Time that a key, a click or a focus event counts as presence, in milliseconds: a focused terminal without input is not watched.
const PRESENCE_TIMEOUT: i64 = 120_000;
/// Number of sessions in a page of older ones.
const SESSIONS_PAGE: usize = 500;
/// Distance of the cursor from the end of the list, in lines, at which older sessions are read.
const SESSIONS_AHEAD: usize = 60;
/// Lines scrolled by a step of the mouse wheel.
const WHEEL_LINES: usize = 3;

/// The state of the screen.
pub(crate) struct App {
    pub(crate) shared: Shared,
    pub(crate) pages: Pages,
    /// `true` if the replay after `hello` has ended.
    live: bool,
    /// `true` if no page was chosen yet.
    no_page_chosen: bool,
    /// `true` if the form of a new session is the first screen when there is no session.
    offers_first_session: bool,
    guard: typing::TypingGuard,
    /// The number of sheets so far: a reply to an earlier one is stale.
    sheets: u64,
    /// The time when Ctrl-C was last pressed.
    interrupted: i64,
    pub(crate) mouse: bool,
    presence: Presence,
    /// The time when the list on the screen was last read.
    refreshed: i64,
}

/// The presence of the user.
struct Presence {
    /// The terminal's focus, if it reports it.
    focused: Option<bool>,
    /// The time when the user last did something in this terminal.
    touched: i64,
    /// The viewed session and the focus, as last reported.
    reported: Option<(Option<String>, bool)>,
}

impl App {
    pub(crate) fn new(theme: Theme, size: (u16, u16), now: i64, viewed_at: BTreeMap<String, i64>) -> Self {
        Self {
            shared: Shared::new(theme, size, now, viewed_at),
            pages: Pages::default(),
            live: false,
            no_page_chosen: false,
            offers_first_session: false,
            guard: typing::TypingGuard::default(),
            sheets: 0,
            interrupted: i64::MIN / 2,
            mouse: false,
            presence: Presence { focused: None, touched: now, reported: None },
            refreshed: 0,
        }
    }

    /// Returns the first effects; opens `session` at once.
    pub(crate) fn start(&mut self, session: Option<String>) -> Vec<Effect> {
        let mut effects = vec![Effect::call(CallTag::OwnDevice, calls::me())];
        self.with(&mut effects, |pages, cx| pages.runtimes.refresh(cx));
        match session {
            Some(session) => self.open(session, &mut effects),
            None => self.no_page_chosen = true,
        }
        effects
    }

    /// The number of the subscription to the open session.
    pub(crate) fn following(&self) -> u64 {
        self.pages.session.following()
    }

    /// Calls `act` with the pages and a context, and carries out the steps that it leads to.
    fn with<T>(&mut self, effects: &mut Vec<Effect>, act: impl FnOnce(&mut Pages, &mut Context<'_>) -> T) -> T {
        let mut cx = Context::new(&mut self.shared, effects);
        let result = act(&mut self.pages, &mut cx);
        let steps = std::mem::take(&mut cx.steps);
        for step in steps {
            self.carry_out(step, effects);
        }
        result
    }

    fn carry_out(&mut self, step: Step, effects: &mut Vec<Effect>) {
        match step {
            Step::Enter(page) => self.enter(page, effects),
            Step::Refresh => self.refresh(effects),
            Step::Back => self.back(effects),
            Step::OtherPane => self.other_pane(effects),
            Step::Open(session) => self.open(session, effects),
            Step::ReadAt(session, place) => {
                self.open(session, effects);
                self.shared.writing = false;
                self.pages.session.seek(place);
            }
            Step::Neighbor(next) => self.open_neighbor(next, effects),
            Step::Answer(session, request) => {
                self.open(session, effects);
                self.shared.writing = false;
                self.shared.show_card(request.as_deref());
                self.shared.focus_card();
                self.shared.card.from_composer = self.shared.card.focused;
            }
            Step::Compose { session, prompt, images, problem } => {
                self.pages.session.put_images(&session, images);
                self.open(session, effects);
                if !problem.is_empty() {
                    self.pages.session.composer = input::area(&prompt);
                    self.shared.show_notice(&problem, true);
                }
            }
            Step::Newest => self.pages.session.conversation.iter_mut().for_each(Conversation::go_to_newest),
            Step::Command(name) => self.command(name, effects),
            Step::SessionCommand(name, session) => self.session_command(name, &session, effects),
            Step::NewSession(agent) => self.open_form(agent.as_deref(), false, effects),
            Step::Key(key) => self.key(&key, effects),
        }
    }

    /// Applies a message; returns the effects.
    pub(crate) fn update(&mut self, msg: Msg, now: i64) -> Vec<Effect> {
        self.shared.now = now;
        if matches!(msg, Msg::Key(_) | Msg::Paste(_) | Msg::Mouse(_) | Msg::Focus(true)) {
            self.presence.touched = now;
        }
        let mut effects = Vec::new();
        match msg {
            Msg::Key(event) => {
                if let Some(key) = Key::from_event(event) {
                    (self.no_page_chosen, self.offers_first_session) = (false, false);
                    self.key(&key, &mut effects);
                }
            }
            Msg::Paste(text) => {
                self.drop_key();
                self.paste(&text, &mut effects);
            }
            Msg::Mouse(event) => {
                self.drop_key();
                self.mouse(event, &mut effects);
            }
            Msg::Resize(width, height) => self.shared.size = (width, height),
            Msg::Focus(on) => {
                self.presence.focused = Some(on);
                if on {
                    self.pages.changes.touch(None, &self.shared);
                }
            }
            Msg::Tick => self.tick(&mut effects),
            Msg::Event(event) => {
                self.on_event(&event);
                self.with(&mut effects, |pages, cx| pages.event(&event, cx));
            }
            Msg::SessionEvent(subscription, session_event) if subscription == self.pages.session.following() => {
                self.pages.session.on_session_event(&session_event)
            }
            Msg::Ended(subscription, why) if subscription == self.pages.session.following() || subscription == 0 => {
                self.shared.link = ConnectionView::Lost(now, sanitize::line(&why, 300));
                self.shared.show_notice(&why, true);
            }
            Msg::SessionEvent(..) | Msg::Ended(..) => {}
            Msg::Done(tag, reply) => self.on_reply(tag, &reply, &mut effects),
            Msg::Set(tag, outcome) => self.on_set(tag, outcome, &mut effects),
            Msg::Opened(subscription, opening) if subscription == self.pages.session.following() => {
                self.with(&mut effects, |pages, cx| pages.session.on_opened(opening.as_deref(), cx));
            }
            Msg::Page(subscription, page) if subscription == self.pages.session.following() => {
                self.pages.session.on_page(page, &mut self.shared)
            }
            Msg::Whole(subscription, block, loaded) if subscription == self.pages.session.following() => {
                self.pages.session.on_rest(block, loaded, &mut self.shared);
            }
            Msg::Opened(..) | Msg::Page(..) | Msg::Whole(..) => {}
            Msg::Exported(Ok(path)) => self.shared.show_notice(&format!("written to {path}"), false),
            Msg::Exported(Err(why)) => self.shared.show_notice(&why, true),
            Msg::ImageRead(place, pasted, image) if place.is_empty() => {
                self.pages.new_session.on_image(pasted, image, &mut self.shared);
            }
            Msg::ImageRead(place, pasted, image) => {
                self.pages.session.on_image(&place, pasted, image, &mut self.shared);
            }
            Msg::Edited(done) => self.pages.changes.on_edited(done.err(), &mut self.shared),
        }
        self.update_derived(&mut effects);
        effects
    }

    /// Derives state that depends on several fields, after any message.
    fn update_derived(&mut self, effects: &mut Vec<Effect>) {
        let on_screen = self.pages.shows_changes(&self.shared);
        self.with(effects, |pages, cx| {
            let Pages { inbox, sessions, session, changes, .. } = pages;
            changes.update(session.id(), on_screen, cx);
            inbox.refresh_rows(cx.shared);
            sessions.refresh_rows(cx.shared);
            let selected = pages.get(cx.shared.list_page()).selected_session(cx.shared);
            pages.session.update_preview(selected, cx);
        });
        self.update_card(effects);
        self.offer_first_session(effects);
        self.with(effects, |pages, cx| pages.new_session.update(cx));
        self.update_focus();
        self.with(effects, |pages, cx| {
            pages.session.update_files(cx);
            pages.session.update_surfaces(cx);
        });
        self.read_older_sessions(effects);
        self.with(effects, |pages, cx| pages.session.update(cx));
        self.update_presence(effects);
    }

    /// Shows the card of the request that should be on the screen, and records which of its lines were on the screen.
    fn update_card(&mut self, effects: &mut Vec<Effect>) {
        // A request that is open again after a restart of the gateway is a new card: its guard begins anew.
        let again =
            self.shared.card.card.as_ref().filter(|card| card.closed_at.is_some() && self.shared.is_open(&card.id));
        if let Some(id) = again.map(|card| card.id.clone()) {
            self.shared.show_card(Some(&id));
        }
        // The card on the screen.
        let request = self.pages.get(self.shared.page).request(&self.shared);
        if self.shared.card.card.as_ref().map(|card| &card.id) != request.as_ref() {
            self.shared.show_card(request.as_deref());
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| !card.fetching && card.closed_at.is_none())
            && self
                .shared
                .requests
                .get(&card.id)
                .is_some_and(|(ask, outcome)| ask.request.display_truncated && outcome.is_none())
        {
            card.fetching = true;
            card.read = false;
            let call = calls::request(&RequestId::trusted(card.id.as_str()));
            effects.push(Effect::call(CallTag::FullRequest(card.id.clone()), call));
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.closed_at.is_none())
            && self.shared.requests.get(&card.id).is_some_and(|(_, outcome)| outcome.is_some())
        {
            card.closed_at = Some(self.shared.now);
            card.sent = false;
            card.mode = super::card::CardMode::Choose;
        }
        if let Some(area) = self.card_area()
            && let Some(mut card) = self.shared.card.card.take()
        {
            if let Some((ask, _)) = self.shared.requests.get(&card.id) {
                let shape = card.shape(ask, area.width, usize::from(area.height), &self.shared.theme);
                card.update_scroll(&shape);
                if card.read && !card.changed && self.shared.now - card.shown_at >= ARM_DELAY {
                    self.pages.inbox.triage.mark_seen(ask);
                }
            }
            self.shared.card.card = Some(card);
        }
    }

    /// Reports the viewed session and the focus, and remembers when sessions were viewed.
    fn update_presence(&mut self, effects: &mut Vec<Effect>) {
        let session = self
            .pages
            .session
            .conversation
            .as_ref()
            .filter(|_| self.shared.page == TuiPage::Session && self.pages.new_session.form.is_none())
            .map(|conversation| conversation.session.clone());
        // A negative difference means that the clock was set back: it counts as idle.
        let touched = (0..PRESENCE_TIMEOUT).contains(&(self.shared.now - self.presence.touched));
        let focused = touched && self.presence.focused.unwrap_or(true);
        if let (Some(id), Some(conversation)) = (&session, &self.pages.session.conversation)
            && conversation.live
            && focused
        {
            self.shared.sessions.unread.remove(id);
            if let Some(one) = self.shared.sessions.all.get(id)
                && self.shared.sessions.viewed_at.get(id) != Some(&one.updated)
            {
                self.shared.sessions.viewed_at.insert(id.clone(), one.updated);
            }
        }
        let present = Some((session, focused));
        if self.presence.reported != present && self.shared.link == ConnectionView::Live {
            if let Some((session, focused)) = &present {
                effects.push(Effect::Presence(session.clone(), *focused));
            }
            self.presence.reported = present;
            effects.push(Effect::SaveViewed(self.shared.sessions.viewed_at.clone()));
        }
    }

    /// Reads older sessions where they are needed: near the end of the list, for a filter, for the palette, or because an older session is
    /// open.
    fn read_older_sessions(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.link != ConnectionView::Live {
            return;
        }
        if self.shared.page == TuiPage::Session
            && let Some(conversation) = &self.pages.session.conversation
            && !self.shared.sessions.all.contains_key(&conversation.session)
            && !self.shared.sessions.deleted.contains(&conversation.session)
            && self.shared.sessions.requested.as_ref() != Some(&conversation.session)
        {
            self.shared.sessions.requested = Some(conversation.session.clone());
            let call = calls::session(&SessionId::trusted(conversation.session.as_str()));
            effects.push(Effect::call(CallTag::Session, call));
        }
        let Some(cursor) = self.shared.sessions.older.clone().filter(|_| !self.shared.sessions.reading) else { return };
        let seek_target = match &self.shared.overlay {
            Some(Overlay::Palette { area, .. }) => !area.lines().concat().trim().is_empty(),
            Some(_) => false,
            None if self.shared.page != TuiPage::Sessions => false,
            None if !self.pages.sessions.filter_terms().is_empty() => true,
            None => self.pages.sessions.selected() + SESSIONS_AHEAD >= self.pages.sessions.rows.len(),
        };
        if seek_target {
            self.shared.sessions.reading = true;
            let call = calls::sessions(Some("all"), Some(SESSIONS_PAGE), Some(&cursor));
            effects.push(Effect::call(CallTag::Older(self.shared.sessions.greeting), call));
        }
    }

    fn tick(&mut self, effects: &mut Vec<Effect>) {
        self.release_key(effects);
        if self.shared.toast.as_ref().is_some_and(|(_, _, at)| self.shared.now - at > TOAST_TIME) {
            self.shared.toast = None;
        }
        self.tick_pairing(effects);
        if self.shared.link == ConnectionView::Live {
            self.shared.data_as_of = self.shared.now;
            if self.shared.now - self.refreshed > REFRESH {
                self.refresh(effects);
            }
        }
    }

    /// Reads the lists of the page again.
    fn refresh(&mut self, effects: &mut Vec<Effect>) {
        self.refreshed = self.shared.now;
        self.with(effects, |pages, cx| pages.get_mut(cx.shared.page).refresh(cx));
    }

    // === navigation

    /// Opens a session.
    pub(crate) fn open(&mut self, id: String, effects: &mut Vec<Effect>) {
        self.no_page_chosen = false;
        if self.shared.page != TuiPage::Session {
            self.shared.previous_page = self.shared.page;
        }
        self.shared.page = TuiPage::Session;
        if self.shared.previous_page != TuiPage::Inbox {
            // The list beside the session selects it.
            self.pages.sessions.list.chosen = Some(id.clone());
        }
        if self.with(effects, |pages, cx| pages.session.open(&id, cx)) {
            self.shared.write();
        }
    }

    /// Opens the next session of the list, or the previous one.
    fn open_neighbor(&mut self, next: bool, effects: &mut Vec<Effect>) {
        let list = self.pages.sessions.session_ids(&self.shared);
        let now = list.iter().position(|id| self.pages.session.id() == Some(id)).unwrap_or(0);
        let step = if next { 1 } else { list.len().saturating_sub(1) };
        if let Some(id) = list.get((now + step) % list.len().max(1)) {
            self.open(id.clone(), effects);
            self.shared.writing = false;
        }
    }

    /// Opens the form of a new session, for `agent` if one is named.
    fn open_form(&mut self, agent: Option<&str>, earlier: bool, effects: &mut Vec<Effect>) {
        self.no_page_chosen = false;
        self.with(effects, |pages, cx| pages.new_session.open(agent, earlier, cx));
    }

    /// Opens the form at the start, if there is neither an agent nor a session.
    fn offer_first_session(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.link != ConnectionView::Live
            || !self.pages.runtimes.read
            || !std::mem::take(&mut self.offers_first_session)
        {
            return;
        }
        if self.shared.sessions.all.is_empty() && !self.shared.runtimes.iter().any(RuntimeItem::takes_sessions) {
            self.open_form(None, false, effects);
        }
    }

    /// Chooses the first page: the inbox if something waits, else the sessions.
    fn choose_first_page(&mut self) {
        if !std::mem::take(&mut self.no_page_chosen) {
            return;
        }
        self.offers_first_session = self.shared.open_asks().0 == 0;
        if !self.offers_first_session {
            (self.shared.page, self.shared.previous_page) = (TuiPage::Inbox, TuiPage::Inbox);
        }
    }

    fn go(&mut self, page: TuiPage, effects: &mut Vec<Effect>) {
        self.with(effects, |_, cx| cx.go(page));
    }

    /// Prepares a page that is on the screen now.
    fn enter(&mut self, page: TuiPage, effects: &mut Vec<Effect>) {
        self.refresh(effects);
        self.pages.get_mut(page).enter();
    }

    /// Moves from a list to the session beside it, and back.
    fn other_pane(&mut self, effects: &mut Vec<Effect>) {
        match self.shared.page {
            TuiPage::Session => self.go(self.shared.list_page(), effects),
            page => {
                if let Some(session) = self.pages.get(page).selected_session(&self.shared) {
                    self.open(session, effects);
                }
            }
        }
    }

    fn back(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.page == TuiPage::Session {
            let from = self.shared.previous_page;
            self.go(if from == TuiPage::Session { TuiPage::Sessions } else { from }, effects);
            self.pages.search.typing = false;
        } else {
            self.shared.quit = true;
        }
    }
}
