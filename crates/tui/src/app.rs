//! The state of the screen, and what changes it. One file: `update` is one function of state and message; the keys of each page are a part
//! of it. Pure: the clock, the network and the terminal come in as messages and go out as effects.

mod changes;
mod commands;
mod composer;
mod events;
mod keys;
mod lists;
mod mouse;
mod new_session;
mod sheets;
mod surfaces;
mod triage;
mod typing;

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use plexus_client::{ClientEvent, Envelope};
use plexus_protocol::answers::Answerer;
use ratatui::layout::Rect;
use ratatui_textarea::CursorMove;
use serde_json::{Value, json};

use super::agent_lists;
use super::attachments::{self, Attachment};
use super::card::{ARM_DELAY, Card, CardMode, CardOutcome, LINGER_TIME};
use super::conversation::{Conversation, ConversationEvent, DrawContext, PageOf};
use super::help::COMMANDS;
use super::input::{self, Key};
use super::pages::changes::ChangesPage;
use super::pages::message::{AfterConfirm, CallTag, ChangesCall, Effect, FormCall, Msg, SentPrompt};
use super::pages::new_session::NewSessionPage;
use super::pages::shared::{ConnectionView, ListState, Overlay, Shared};
use super::pages::{PAGES, Pages, TuiPage};
use super::sanitize;
use super::settings::SettingChoice;
use super::theme::Theme;
use super::triage::{InboxRow, Sense};
use super::view;
use super::view_model::{
    DeviceItem, RequestResult, RequestView, RuntimeItem, SearchItem, SessionItem, field, position,
};

/// How long a toast stays, in milliseconds.
const TOAST_TIME: i64 = 5_000;
/// The time for a second Ctrl-C, in milliseconds.
const QUIT_WINDOW: i64 = 2_000;
/// Interval at which a list on the screen is read again, in milliseconds.
const REFRESH: i64 = 5_000;
/// Closed requests remembered, so that they stay in their place.
const CLOSED_MAX: usize = 200;
/// Longest text copied to the clipboard, in bytes; the limit of terminals.
const COPY_MAX: usize = 74_000;
/// Longest link shown, in characters.
const LINK_MAX: usize = 500;
/// How long a key, a click or a focus event counts as presence, in milliseconds: a focused terminal without input is not watched.
const PRESENCE_TIMEOUT: i64 = 120_000;
/// Sessions in a page of older ones.
const SESSIONS_PAGE: usize = 500;
/// Older sessions are read when the cursor is this many lines before the end of the list.
const SESSIONS_AHEAD: usize = 60;
/// Lines scrolled by a step of the mouse wheel.
const WHEEL_LINES: i64 = 3;
/// How long a row is selected before its session is shown beside the list, in milliseconds: moving over a list reads nothing.
const PREVIEW_DELAY: i64 = 300;

/// The state of the screen.
pub(crate) struct App {
    pub(crate) shared: Shared,
    pub(crate) pages: Pages,
    pub(crate) changes: ChangesPage,
    pub(crate) new_session: NewSessionPage,
    /// Whether the replay after `hello` is over.
    live: bool,
    /// Whether no page was chosen yet.
    no_page_chosen: bool,
    /// Whether the form of a new session is the first screen if there is no session.
    offers_first_session: bool,
    guard: typing::TypingGuard,
    /// The number of sheets so far: a reply to an earlier one is stale.
    sheets: u64,
    /// When Ctrl-C was last pressed.
    interrupted: i64,
    pub(crate) mouse: bool,
    presence: Presence,
    /// When the list on the screen was last read.
    refreshed: i64,
}

/// The presence of the user.
struct Presence {
    /// The terminal's focus, if it reports it.
    focused: Option<bool>,
    /// When the user last did something here.
    touched: i64,
    /// The viewed session and the focus, as last reported.
    reported: Option<(Option<String>, bool)>,
}

impl App {
    pub(crate) fn new(theme: Theme, size: (u16, u16), now: i64, viewed_at: BTreeMap<String, i64>) -> Self {
        Self {
            shared: Shared::new(theme, size, now, viewed_at),
            pages: Pages::default(),
            changes: ChangesPage::default(),
            new_session: NewSessionPage::default(),
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

    /// The first effects; opens `session` at once.
    pub(crate) fn start(&mut self, session: Option<String>) -> Vec<Effect> {
        let mut effects =
            vec![Effect::get(CallTag::Me, "/v1/me".into()), Effect::get(CallTag::Runtimes, "/v1/runtimes".into())];
        match session {
            Some(session) => self.open(session, &mut effects),
            None => self.no_page_chosen = true,
        }
        effects
    }

    /// The number of the subscription to the open session.
    pub(crate) fn following(&self) -> u64 {
        self.pages.session.following
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
                if let Some(key) = Key::of(event) {
                    (self.no_page_chosen, self.offers_first_session) = (false, false);
                    self.key(&key, &mut effects);
                }
            }
            Msg::Paste(words) => {
                self.drop_key();
                self.paste(&words, &mut effects);
            }
            Msg::Mouse(event) => {
                self.drop_key();
                self.mouse(event, &mut effects);
            }
            Msg::Resize(width, height) => self.shared.size = (width, height),
            Msg::Focus(on) => {
                self.presence.focused = Some(on);
                if on {
                    self.touch_changes(None);
                }
            }
            Msg::Tick => self.tick(&mut effects),
            Msg::Event(session_event) => self.on_event(&session_event),
            Msg::SessionEvent(of, session_event) if of == self.pages.session.following => {
                self.on_session_event(&session_event)
            }
            Msg::Ended(of, why) if of == self.pages.session.following || of == 0 => {
                self.shared.link = ConnectionView::Lost(now, sanitize::line(&why, 300));
                self.shared.say(&why, true);
            }
            Msg::SessionEvent(..) | Msg::Ended(..) => {}
            Msg::Done(tag, outcome) => self.on_reply(tag, outcome, &mut effects),
            Msg::Opened(of, opening) if of == self.pages.session.following => self.on_opened(opening, &mut effects),
            Msg::Page(of, page) if of == self.pages.session.following => self.on_page(page),
            Msg::Whole(of, block, loaded) if of == self.pages.session.following => self.on_rest(block, loaded),
            Msg::Opened(..) | Msg::Page(..) | Msg::Whole(..) => {}
            Msg::Exported(Ok(path)) => self.shared.say(&format!("written to {path}"), false),
            Msg::Exported(Err(why)) => self.shared.say(&why, true),
            Msg::ImageRead(place, pasted, image) => self.on_image(&place, pasted, image),
            Msg::Edited(done) => self.on_edited(done.err()),
        }
        self.update_derived(&mut effects);
        effects
    }

    /// Derives state that depends on several fields, after any message.
    fn update_derived(&mut self, effects: &mut Vec<Effect>) {
        self.update_changes(effects);
        self.refresh_rows();
        self.update_preview(effects);
        // A request that is open again, after a gateway came back, is a new card: it arms anew.
        let again =
            self.shared.card.card.as_ref().filter(|card| card.closed_at.is_some() && self.shared.is_open(&card.id));
        if let Some(id) = again.map(|card| card.id.clone()) {
            self.shared.show_card_of(Some(&id));
        }
        // The card on the screen.
        let wanted_request = self.wanted_request();
        if self.shared.card.card.as_ref().map(|card| &card.id) != wanted_request.as_ref() {
            self.shared.show_card_of(wanted_request.as_deref());
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| !card.fetching && card.closed_at.is_none())
            && self.shared.requests.get(&card.id).is_some_and(|(ask, outcome)| ask.partial && outcome.is_none())
        {
            card.fetching = true;
            card.read = false;
            effects.push(Effect::Call {
                tag: CallTag::FullRequest(card.id.clone()),
                method: "GET",
                path: format!("/v1/requests/{}", card.id),
                body: None,
                key: false,
            });
        }
        if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.closed_at.is_none())
            && self.shared.requests.get(&card.id).is_some_and(|(_, outcome)| outcome.is_some())
        {
            card.closed_at = Some(self.shared.now);
            card.sent = false;
            card.mode = super::card::CardMode::Choose;
        }
        if let Some(area) = view::card_area(self)
            && let Some(mut card) = self.shared.card.card.take()
        {
            if let Some((ask, _)) = self.shared.requests.get(&card.id) {
                let shape = card.shape(ask, area.width, usize::from(area.height), &self.shared.theme);
                card.mark_shown(&shape);
                if card.read && !card.changed && self.shared.now - card.shown >= ARM_DELAY {
                    self.pages.inbox.triage.mark_seen(ask);
                }
            }
            self.shared.card.card = Some(card);
        }
        self.update_form(effects);
        self.update_focus();
        self.update_files(effects);
        self.update_surfaces(effects);
        self.read_older_sessions(effects);
        if let Some(id) = &self.pages.session.pending_restart
            && self.shared.sessions.all.get(id).is_some_and(|session| session.state != "exited")
        {
            self.pages.session.pending_restart = None;
            self.send(effects);
        }
        // Reads older events when the user scrolls to the first line.
        let draw_size = view::conversation_area(self);
        if let Some(conversation) = &mut self.pages.session.conversation
            && draw_size.height > 0
            && let Some(before) = conversation.page_wanted()
        {
            conversation.fetching = true;
            effects.push(Effect::Page { session: conversation.session.clone(), before });
        }
        let session = self
            .pages
            .session
            .conversation
            .as_ref()
            .filter(|_| self.shared.page == TuiPage::Session && self.new_session.form.is_none())
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
            effects.push(Effect::Keep(self.shared.sessions.viewed_at.clone()));
        }
    }

    /// Reads older sessions where they are needed: near the end of the list, for a filter, for the palette, or because one of them is open.
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
            effects.push(Effect::get(CallTag::Session, format!("/v1/sessions/{}", conversation.session)));
        }
        let Some(cursor) = self.shared.sessions.older.clone().filter(|_| !self.shared.sessions.reading) else { return };
        let seek_target = match &self.shared.overlay {
            Some(Overlay::Palette { area, .. }) => !area.lines().concat().trim().is_empty(),
            Some(_) => false,
            None if self.shared.page != TuiPage::Sessions => false,
            None if !self.filter_words().is_empty() => true,
            None => self.session_at() + SESSIONS_AHEAD >= self.pages.sessions.rows.len(),
        };
        if seek_target {
            self.shared.sessions.reading = true;
            let path = format!("/v1/sessions?archived=all&limit={SESSIONS_PAGE}&cursor={cursor}");
            effects.push(Effect::get(CallTag::Older(self.shared.sessions.greeting), path));
        }
    }

    /// The request that should be on the screen.
    fn wanted_request(&self) -> Option<String> {
        let lingers = |id: &String| {
            self.shared.card.card.as_ref().is_some_and(|card| {
                &card.id == id && card.closed_at.is_none_or(|at| self.shared.now - at < LINGER_TIME)
            })
        };
        let list = match self.shared.page {
            TuiPage::Inbox => {
                return match self.pages.inbox.triage.rows.get(self.inbox_at())? {
                    InboxRow::Request { id, .. } => Some(id.clone()),
                    InboxRow::Group { .. } => None,
                };
            }
            TuiPage::Session => {
                // What the open surface asks is answered there.
                let open =
                    self.pages.session.conversation.as_ref().and_then(|conversation| conversation.surfaces.open_ask());
                self.session_asks().into_iter().filter(|id| Some(id.as_str()) != open).collect::<Vec<_>>()
            }
            _ => return None,
        };
        // The shown request stays as long as it is open; its outcome gives way to the next one.
        let shown = self.shared.card.card.as_ref().map(|card| card.id.clone()).filter(|id| list.contains(id));
        match shown {
            Some(id) if self.shared.is_open(&id) => Some(id),
            shown => list.into_iter().find(|id| self.shared.is_open(id)).or(shown.filter(lingers)),
        }
    }

    /// The requests of the open session, oldest first.
    pub(crate) fn session_asks(&self) -> Vec<String> {
        let Some(conversation) = &self.pages.session.conversation else { return Vec::new() };
        let mut list: Vec<&RequestView> = self
            .shared
            .requests
            .values()
            .map(|(ask, _)| ask)
            .filter(|ask| ask.session == conversation.session)
            .collect();
        list.sort_by(|a, b| (a.opened, &a.id).cmp(&(b.opened, &b.id)));
        list.into_iter().map(|ask| ask.id.clone()).collect()
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

    fn refresh(&mut self, effects: &mut Vec<Effect>) {
        self.refreshed = self.shared.now;
        match self.shared.page {
            TuiPage::Runtimes => effects.push(Effect::get(CallTag::Runtimes, "/v1/runtimes".into())),
            TuiPage::Devices => effects.push(Effect::get(CallTag::Devices, "/v1/devices".into())),
            _ => {}
        }
    }

    // === going somewhere

    /// Opens a session.
    pub(crate) fn open(&mut self, id: String, effects: &mut Vec<Effect>) {
        self.no_page_chosen = false;
        if self.shared.page != TuiPage::Session {
            self.shared.previous_page = self.shared.page;
        }
        self.shared.page = TuiPage::Session;
        if self.shared.previous_page != TuiPage::Inbox {
            // The list beside the session shows which one it is.
            self.pages.sessions.list.chosen = Some(id.clone());
        }
        if self.pages.session.conversation.as_ref().is_none_or(|conversation| conversation.session != id) {
            self.shared.show_card_of(None);
            self.follow_session(&id, effects);
        } else if !self.pages.session.previewed {
            return;
        }
        self.pages.session.previewed = false;
        self.shared.write();
    }

    /// Reads another session. What was typed is kept with the one before.
    fn follow_session(&mut self, id: &str, effects: &mut Vec<Effect>) {
        if let Some(conversation) = &self.pages.session.conversation {
            self.pages
                .session
                .drafts
                .insert(conversation.session.clone(), self.pages.session.composer.lines().join("\n"));
        }
        self.pages.session.composer = input::area(self.pages.session.drafts.get(id).map_or("", String::as_str));
        self.pages.session.history = None;
        self.pages.session.following += 1;
        self.pages.session.pending_restart = None;
        self.pages.session.conversation = Some(Conversation::new(id));
        effects.push(Effect::Follow(Some(id.to_owned())));
    }

    fn go(&mut self, page: TuiPage, effects: &mut Vec<Effect>) {
        if page != TuiPage::Session {
            self.shared.previous_page = page;
        }
        self.shared.page = page;
        self.shared.card.focused = false;
        self.refreshed = self.shared.now;
        self.refresh(effects);
        if page == TuiPage::Search {
            self.pages.search.typing = true;
        }
    }

    fn back(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.page == TuiPage::Session {
            let from = if self.shared.previous_page == TuiPage::Session {
                TuiPage::Sessions
            } else {
                self.shared.previous_page
            };
            self.go(from, effects);
            self.pages.search.typing = false;
        } else {
            self.shared.quit = true;
        }
    }

    // === keys

    fn with_conversation(&mut self, change: impl FnOnce(&mut Conversation, &DrawContext<'_>)) {
        let area = view::conversation_area(self);
        if let Some(conversation) = &mut self.pages.session.conversation {
            change(
                conversation,
                &DrawContext {
                    theme: &self.shared.theme,
                    width: area.width,
                    height: usize::from(area.height),
                    now: self.shared.now,
                },
            );
        }
    }
}
