//! The state of the screen, and what changes it. One file: `update` is one function of state and message, and every page's keys
//! are a part of it. Pure: the clock, the network and the terminal come in as messages and go out as effects.

mod commands;
mod keys;
mod news;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use plexus_client::{ClientEvent, Envelope};
use ratatui::layout::Rect;
use ratatui_textarea::{CursorMove, TextArea};
use serde_json::{Value, json};

use super::agent_lists::{self, PastConversation};
use super::card::{Card, CardMode, CardOutcome, LINGER};
use super::conversation::{Conversation, DrawContext, PageOf};
use super::help::COMMANDS;
use super::input::{self, Key};
use super::sanitize;
use super::settings::SettingChoice;
use super::theme::Theme;
use super::view;
use super::view_model::{
    DeviceItem, RequestResult, RequestView, RiskView, RuntimeItem, SearchItem, SessionItem, field, position,
};

/// How long a word about what was done stays, in milliseconds.
const TOAST: i64 = 5_000;
/// How long a second Ctrl-C may take, in milliseconds.
const AGAIN: i64 = 2_000;
/// How often a list on the screen is read again, in milliseconds.
const REFRESH: i64 = 5_000;
/// Closed requests remembered, so that they can stay in their place.
const CLOSED_MAX: usize = 200;
/// Longest text copied to the clipboard, in bytes; terminals take no more.
const COPY_MAX: usize = 74_000;
/// Longest link shown, in characters.
const LINK_MAX: usize = 500;
/// How long somebody looks after a key, a click or the window's coming to the front, in milliseconds: a terminal that stays in
/// front of an empty chair is looked at by nobody.
const LOOKING: i64 = 120_000;
/// Sessions of one page of older ones.
const SESSIONS_PAGE: usize = 500;
/// Lines before the end of the list at which older sessions are read.
const SESSIONS_AHEAD: usize = 60;
/// Lines of a wheel's step.
const WHEEL: i64 = 3;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TuiPage {
    Inbox,
    Sessions,
    Search,
    Runtimes,
    Devices,
    Session,
}

/// The pages in the order of their keys.
pub(crate) const PAGES: [(TuiPage, &str); 5] = [
    (TuiPage::Inbox, "Inbox"),
    (TuiPage::Sessions, "Sessions"),
    (TuiPage::Search, "Search"),
    (TuiPage::Runtimes, "Runtimes"),
    (TuiPage::Devices, "Devices"),
];

/// What the connection is like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConnectionView {
    Connecting,
    Live,
    /// Since when, and why.
    Lost(i64, String),
}

/// What a call was for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallTag {
    Me,
    /// A runtime that ended starts again, and what is written goes to it.
    Again(String),
    /// A page of older sessions, of this greeting.
    Older(u64),
    /// The session that is open, where it is none of the newest.
    Session,
    Runtimes,
    Devices,
    Search(String),
    Answer(String),
    /// All of a request of which only the beginning was told.
    Whole(String),
    Prompt(String),
    New,
    Words(&'static str),
    /// The MCP servers of a session's agent.
    Servers,
    /// Its skills.
    Skills,
    /// What a runtime could resume.
    Past(String),
    /// A link, to be shown and copied.
    Link,
    /// Said in words when it is done.
    Say(String),
}

/// What is to be done outside.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Open this session: its newest page, then what comes; or none.
    Follow(Option<String>),
    /// Call the gateway.
    Call {
        tag: CallTag,
        method: &'static str,
        path: String,
        body: Option<Value>,
        key: bool,
    },
    /// Ask the gateway, or by it the agent, for something of a session.
    Ask {
        tag: CallTag,
        method: &'static str,
        params: Value,
    },
    /// Follow this session after this cursor: what came before is here.
    Attach {
        session: String,
        after: Option<String>,
    },
    /// Read the page of the session before this cursor.
    Page {
        session: String,
        before: String,
    },
    /// Write a session into a file.
    Export {
        session: String,
        format: &'static str,
        name: String,
    },
    /// Put this on the clipboard.
    Copy(String),
    /// Say where one looks.
    Presence(Option<String>, bool),
    Mouse(bool),
    Suspend,
    Redraw,
    /// Keep when sessions were looked at.
    Keep(BTreeMap<String, i64>),
}

/// What happens.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Focus(bool),
    Tick,
    /// Of all sessions.
    Heard(ClientEvent),
    /// Of the session that is open: which following this is of.
    Talk(u64, ClientEvent),
    /// Following ended for good.
    Ended(u64, String),
    /// An answer to a call: its status and what it says; or why there is none.
    Done(CallTag, Result<(u16, Value), String>),
    /// The session that is open begins with this page and this snapshot, and goes on after the cursor; `None` where they could
    /// not be read, and everything comes as events.
    Opened(u64, Option<(PageOf, Value, String)>),
    /// A page of earlier events.
    Page(u64, Result<PageOf, String>),
    Exported(Result<String, String>),
}

/// What lies over the page.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Help(usize),
    Palette { area: TextArea<'static>, at: usize },
    Confirm { words: String, then: Box<AfterConfirm> },
    Input { label: &'static str, area: TextArea<'static>, then: Box<AfterConfirm> },
    Words { title: String, words: String, scroll: usize },
}

/// What is done after asking.
#[derive(Clone, Debug)]
pub(crate) enum AfterConfirm {
    Call {
        tag: CallTag,
        method: &'static str,
        path: String,
        body: Option<Value>,
    },
    /// With the words that were typed in this member.
    With {
        tag: CallTag,
        method: &'static str,
        path: String,
        member: &'static str,
    },
}

/// Everything.
pub(crate) struct App {
    pub(crate) now: i64,
    pub(crate) size: (u16, u16),
    pub(crate) theme: Theme,
    pub(crate) page: TuiPage,
    pub(crate) from: TuiPage,
    pub(crate) link: ConnectionView,
    /// When everything on the screen was last known to be true.
    pub(crate) true_at: i64,
    pub(crate) me: String,
    pub(crate) sessions: BTreeMap<String, SessionItem>,
    /// The cursor that the sessions not listed yet come after; `None` where all are here.
    older: Option<String>,
    /// How many the gateway had more than it listed.
    pub(crate) omitted: usize,
    /// Older ones were asked for, and did not come yet, or cannot be read now.
    reading: bool,
    /// Counts the greetings: what was asked for before the last one is late.
    greeting: u64,
    /// The session that was asked for by its name.
    sought: Option<String>,
    /// Words that a session has to have to be listed, and whether they are being typed.
    pub(crate) filter: TextArea<'static>,
    pub(crate) filtering: bool,
    /// Sessions that were forgotten since the last greeting: what is still said of them is late.
    forgotten: BTreeSet<String>,
    /// The lowest and the highest place of the sessions that are known.
    places: Option<(i64, i64)>,
    pub(crate) requests: BTreeMap<String, (RequestView, Option<RequestResult>)>,
    live: bool,
    pub(crate) doing: HashMap<String, String>,
    pub(crate) unread: HashMap<String, usize>,
    pub(crate) viewed_at: BTreeMap<String, i64>,
    pub(crate) viewers: HashMap<String, Vec<String>>,
    pub(crate) runtimes: Vec<RuntimeItem>,
    pub(crate) devices: Vec<DeviceItem>,
    pub(crate) trouble: HashMap<&'static str, String>,
    pub(crate) hits: Vec<SearchItem>,
    /// What a runtime could resume, while one is chosen.
    pasts: Vec<PastConversation>,
    pub(crate) searched: Option<String>,
    pub(crate) query: TextArea<'static>,
    pub(crate) query_typing: bool,
    /// Which line each list is on; of the inbox and the sessions, which one by name, for they move.
    pub(crate) at: HashMap<TuiPage, usize>,
    pub(crate) chosen: HashMap<TuiPage, String>,
    pub(crate) archived: bool,
    pub(crate) talk: Option<Conversation>,
    following: u64,
    pub(crate) writing: bool,
    pub(crate) composer: TextArea<'static>,
    history: Option<usize>,
    draft: String,
    /// What is written is sent once the agent of this session lives again.
    again: Option<String>,
    drafts: HashMap<String, String>,
    pub(crate) card: Option<Card>,
    /// What was said so far in forms that are not on the screen, each with the revision that it is of.
    half: HashMap<String, (u64, CardMode)>,
    pub(crate) over: Option<Overlay>,
    pub(crate) toast: Option<(String, bool, i64)>,
    interrupted: i64,
    pub(crate) mouse: bool,
    /// What the terminal says of its focus, if it does.
    focused: Option<bool>,
    /// When somebody last did something here.
    touched: i64,
    present: Option<(Option<String>, bool)>,
    refreshed: i64,
    pub(crate) quit: bool,
}

impl std::hash::Hash for TuiPage {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
    }
}

impl App {
    pub(crate) fn new(theme: Theme, size: (u16, u16), now: i64, looked: BTreeMap<String, i64>) -> Self {
        Self {
            now,
            size,
            theme,
            page: TuiPage::Sessions,
            from: TuiPage::Sessions,
            link: ConnectionView::Connecting,
            true_at: now,
            me: String::new(),
            sessions: BTreeMap::new(),
            older: None,
            omitted: 0,
            reading: false,
            greeting: 0,
            sought: None,
            filter: input::area(""),
            filtering: false,
            forgotten: BTreeSet::new(),
            places: None,
            requests: BTreeMap::new(),
            live: false,
            doing: HashMap::new(),
            unread: HashMap::new(),
            viewed_at: looked,
            viewers: HashMap::new(),
            runtimes: Vec::new(),
            devices: Vec::new(),
            trouble: HashMap::new(),
            hits: Vec::new(),
            pasts: Vec::new(),
            searched: None,
            query: input::area(""),
            query_typing: true,
            at: HashMap::new(),
            chosen: HashMap::new(),
            archived: false,
            talk: None,
            following: 0,
            writing: false,
            composer: input::area(""),
            history: None,
            draft: String::new(),
            again: None,
            drafts: HashMap::new(),
            card: None,
            half: HashMap::new(),
            over: None,
            toast: None,
            interrupted: i64::MIN / 2,
            mouse: false,
            focused: None,
            touched: now,
            present: None,
            refreshed: 0,
            quit: false,
        }
    }

    /// What is done first; a session opens at once.
    pub(crate) fn start(&mut self, session: Option<String>) -> Vec<Effect> {
        let mut effects = vec![get(CallTag::Me, "/v1/me".into()), get(CallTag::Runtimes, "/v1/runtimes".into())];
        if let Some(session) = session {
            self.open(session, &mut effects);
        }
        effects
    }

    /// Which following messages of the open session must be of.
    pub(crate) fn following(&self) -> u64 {
        self.following
    }

    /// Takes in what happens; says what is to be done.
    pub(crate) fn update(&mut self, msg: Msg, now: i64) -> Vec<Effect> {
        self.now = now;
        if matches!(msg, Msg::Key(_) | Msg::Paste(_) | Msg::Mouse(_) | Msg::Focus(true)) {
            self.touched = now;
        }
        let mut effects = Vec::new();
        match msg {
            Msg::Key(event) => {
                if let Some(key) = Key::of(event) {
                    self.key(&key, &mut effects);
                }
            }
            Msg::Paste(words) => self.paste(&words),
            Msg::Mouse(event) => self.mouse(event, &mut effects),
            Msg::Resize(width, height) => self.size = (width, height),
            Msg::Focus(on) => self.focused = Some(on),
            Msg::Tick => self.tick(&mut effects),
            Msg::Heard(heard) => self.on_event(&heard),
            Msg::Talk(of, heard) if of == self.following => self.told(&heard),
            Msg::Ended(of, why) if of == self.following || of == 0 => {
                self.link = ConnectionView::Lost(now, sanitize::line(&why, 300));
                self.say(&why, true);
            }
            Msg::Talk(..) | Msg::Ended(..) => {}
            Msg::Done(tag, outcome) => self.done(tag, outcome, &mut effects),
            Msg::Opened(of, opening) if of == self.following => self.opened(opening, &mut effects),
            Msg::Page(of, page) if of == self.following => self.earlier(page),
            Msg::Opened(..) | Msg::Page(..) => {}
            Msg::Exported(Ok(path)) => self.say(&format!("written to {path}"), false),
            Msg::Exported(Err(why)) => self.say(&why, true),
        }
        self.update_derived(&mut effects);
        effects
    }

    /// What follows from the state, whatever changed it.
    fn update_derived(&mut self, effects: &mut Vec<Effect>) {
        // The card that is on the screen.
        let wanted = self.wanted();
        if self.card.as_ref().map(|card| &card.id) != wanted.as_ref() {
            self.show_card_of(wanted.as_deref());
        }
        if let Some(card) = self.card.as_mut().filter(|card| !card.fetching && card.over.is_none())
            && self.requests.get(&card.id).is_some_and(|(ask, outcome)| ask.partial && outcome.is_none())
        {
            card.fetching = true;
            card.read = false;
            effects.push(Effect::Call {
                tag: CallTag::Whole(card.id.clone()),
                method: "GET",
                path: format!("/v1/requests/{}", card.id),
                body: None,
                key: false,
            });
        }
        if let Some(card) = self.card.as_mut().filter(|card| card.over.is_none())
            && self.requests.get(&card.id).is_some_and(|(_, outcome)| outcome.is_some())
        {
            card.over = Some(self.now);
            card.sent = false;
            card.mode = super::card::CardMode::Choose;
        }
        if let (Some(area), Some(mut card)) = (view::card_area(self), self.card.take()) {
            if let Some((ask, _)) = self.requests.get(&card.id) {
                let shape = card.shape(ask, area.width, usize::from(area.height), &self.theme);
                card.seen(&shape);
            }
            self.card = Some(card);
        }
        self.read_on(effects);
        if let Some(id) = &self.again
            && self.sessions.get(id).is_some_and(|session| session.state != "exited")
        {
            self.again = None;
            self.send(effects);
        }
        // Earlier events, where one scrolled to the first that is here.
        let pen_size = view::talk_area(self);
        if let Some(talk) = &mut self.talk
            && pen_size.height > 0
            && let Some(before) = talk.wants()
        {
            talk.fetching = true;
            effects.push(Effect::Page { session: talk.session.clone(), before });
        }
        let session = self.talk.as_ref().filter(|_| self.page == TuiPage::Session).map(|talk| talk.session.clone());
        // A clock that was set back says nothing of how long it is.
        let touched = (0..LOOKING).contains(&(self.now - self.touched));
        let focused = touched && self.focused.unwrap_or(true);
        if let (Some(id), Some(talk)) = (&session, &self.talk)
            && talk.live
            && focused
        {
            self.unread.remove(id);
            if let Some(one) = self.sessions.get(id)
                && self.viewed_at.get(id) != Some(&one.updated)
            {
                self.viewed_at.insert(id.clone(), one.updated);
            }
        }
        let present = Some((session, focused));
        if self.present != present && self.link == ConnectionView::Live {
            if let Some((session, focused)) = &present {
                effects.push(Effect::Presence(session.clone(), *focused));
            }
            self.present = present;
            effects.push(Effect::Keep(self.viewed_at.clone()));
        }
    }

    /// Reads sessions that are not here, where they are looked for: near the end of the list, by a filter, by the palette, or
    /// because one of them is open.
    fn read_on(&mut self, effects: &mut Vec<Effect>) {
        if self.link != ConnectionView::Live {
            return;
        }
        if self.page == TuiPage::Session
            && let Some(talk) = &self.talk
            && !self.sessions.contains_key(&talk.session)
            && !self.forgotten.contains(&talk.session)
            && self.sought.as_ref() != Some(&talk.session)
        {
            self.sought = Some(talk.session.clone());
            effects.push(get(CallTag::Session, format!("/v1/sessions/{}", talk.session)));
        }
        let Some(cursor) = self.older.clone().filter(|_| !self.reading) else { return };
        let sought = match &self.over {
            Some(Overlay::Palette { area, .. }) => !area.lines().concat().trim().is_empty(),
            Some(_) => false,
            None if self.page != TuiPage::Sessions => false,
            None if !self.filter_words().is_empty() => true,
            None => {
                let list = self.listed();
                let chosen = self.chosen.get(&TuiPage::Sessions);
                let at = chosen.and_then(|id| list.iter().position(|session| session.id == *id));
                let at = at.or(self.at.get(&TuiPage::Sessions).copied()).unwrap_or_default();
                at + SESSIONS_AHEAD >= list.len()
            }
        };
        if sought {
            self.reading = true;
            let path = format!("/v1/sessions?archived=all&limit={SESSIONS_PAGE}&cursor={cursor}");
            effects.push(get(CallTag::Older(self.greeting), path));
        }
    }

    /// The words of the filter, in small letters.
    fn filter_words(&self) -> Vec<String> {
        self.filter.lines().iter().flat_map(|line| line.split_whitespace()).map(str::to_lowercase).collect()
    }

    /// The sessions of the list: all, or those that the filter lets through.
    pub(crate) fn listed(&self) -> Vec<&SessionItem> {
        let words = self.filter_words();
        let mut list = self.ordered();
        if !words.is_empty() {
            list.retain(|session| {
                let all =
                    [&*session.name(), &*session.cwd, &*session.runtime, &*session.state].join(" ").to_lowercase();
                words.iter().all(|word| all.contains(word.as_str()))
            });
        }
        list
    }

    /// Whether sessions are on their way.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading && self.older.is_some()
    }

    /// Which request is on the screen.
    fn wanted(&self) -> Option<String> {
        let lingers = |id: &String| {
            self.card.as_ref().is_some_and(|card| &card.id == id && card.over.is_none_or(|at| self.now - at < LINGER))
        };
        let list = match self.page {
            TuiPage::Inbox => {
                let list = self.inbox();
                let at = self.index(TuiPage::Inbox, &list);
                return list.get(at).cloned();
            }
            TuiPage::Session => self.session_asks(),
            _ => return None,
        };
        // The one that is there stays there while it is of interest.
        if let Some(card) = &self.card
            && list.contains(&card.id)
            && (self.is_open(&card.id) || lingers(&card.id))
        {
            return Some(card.id.clone());
        }
        list.into_iter().find(|id| self.is_open(id))
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.requests.get(id).is_some_and(|(_, outcome)| outcome.is_none())
    }

    /// The requests of the session that is open, oldest first.
    pub(crate) fn session_asks(&self) -> Vec<String> {
        let Some(talk) = &self.talk else { return Vec::new() };
        let mut list: Vec<&RequestView> =
            self.requests.values().map(|(ask, _)| ask).filter(|ask| ask.session == talk.session).collect();
        list.sort_by(|a, b| (a.opened, &a.id).cmp(&(b.opened, &b.id)));
        list.into_iter().map(|ask| ask.id.clone()).collect()
    }

    /// The requests of the inbox: the most dangerous first, then the newest. One that was answered stays for a moment.
    pub(crate) fn inbox(&self) -> Vec<String> {
        let stays = |id: &str, outcome: &Option<RequestResult>| match outcome {
            None => true,
            Some(_) => {
                self.page == TuiPage::Inbox
                    && self
                        .card
                        .as_ref()
                        .is_some_and(|card| card.id == id && card.over.is_none_or(|at| self.now - at < LINGER))
            }
        };
        let mut list: Vec<&RequestView> =
            self.requests.values().filter(|(ask, outcome)| stays(&ask.id, outcome)).map(|(ask, _)| ask).collect();
        list.sort_by(|a, b| (b.risk, b.opened, &b.id).cmp(&(a.risk, a.opened, &a.id)));
        list.into_iter().map(|ask| ask.id.clone()).collect()
    }

    /// The sessions in their order: those that wait for people, those at work, the others by their news, the ended ones.
    pub(crate) fn ordered(&self) -> Vec<&SessionItem> {
        let mut list: Vec<&SessionItem> =
            self.sessions.values().filter(|session| self.archived || !session.archived).collect();
        let rank = |session: &SessionItem| match session.state.as_str() {
            _ if session.archived => 4,
            "waiting" => 0,
            "running" => 1,
            "exited" => 3,
            _ => 2,
        };
        list.sort_by(|a, b| (rank(a), -a.place, &a.id).cmp(&(rank(b), -b.place, &b.id)));
        list
    }

    /// Which line a list is on whose lines move.
    pub(crate) fn index(&self, page: TuiPage, list: &[String]) -> usize {
        let named = self.chosen.get(&page).and_then(|id| list.iter().position(|one| one == id));
        named.unwrap_or_else(|| self.at.get(&page).copied().unwrap_or_default().min(list.len().saturating_sub(1)))
    }

    /// The session by its name, for lines of ours.
    pub(crate) fn session_words(&self, id: &str) -> String {
        match self.sessions.get(id) {
            Some(session) => format!("{} · {}", session.name(), session.cwd),
            None => sanitize::line(id, 40),
        }
    }

    pub(crate) fn say(&mut self, words: &str, bad: bool) {
        self.toast = Some((sanitize::line(words, 300), bad, self.now));
    }

    fn tick(&mut self, effects: &mut Vec<Effect>) {
        if self.toast.as_ref().is_some_and(|(_, _, at)| self.now - at > TOAST) {
            self.toast = None;
        }
        if self.link == ConnectionView::Live {
            self.true_at = self.now;
            if self.now - self.refreshed > REFRESH {
                self.refresh(effects);
            }
        }
    }

    fn refresh(&mut self, effects: &mut Vec<Effect>) {
        self.refreshed = self.now;
        match self.page {
            TuiPage::Runtimes => effects.push(get(CallTag::Runtimes, "/v1/runtimes".into())),
            TuiPage::Devices => effects.push(get(CallTag::Devices, "/v1/devices".into())),
            _ => {}
        }
    }

    // === going somewhere

    /// Opens a session.
    pub(crate) fn open(&mut self, id: String, effects: &mut Vec<Effect>) {
        if self.page != TuiPage::Session {
            self.from = self.page;
        }
        self.page = TuiPage::Session;
        if self.talk.as_ref().is_some_and(|talk| talk.session == id) {
            return;
        }
        if let Some(talk) = &self.talk {
            self.drafts.insert(talk.session.clone(), self.composer.lines().join("\n"));
        }
        self.composer = input::area(self.drafts.get(&id).map_or("", String::as_str));
        self.history = None;
        self.following += 1;
        self.again = None;
        self.show_card_of(None);
        self.writing = !self.requests.values().any(|(ask, outcome)| ask.session == id && outcome.is_none());
        self.talk = Some(Conversation::new(&id));
        effects.push(Effect::Follow(Some(id)));
    }

    fn go(&mut self, page: TuiPage, effects: &mut Vec<Effect>) {
        if page != TuiPage::Session {
            self.from = page;
        }
        self.page = page;
        self.refreshed = self.now;
        self.refresh(effects);
        if page == TuiPage::Search {
            self.query_typing = true;
        }
    }

    fn back(&mut self, effects: &mut Vec<Effect>) {
        if self.page == TuiPage::Session {
            let from = if self.from == TuiPage::Session { TuiPage::Sessions } else { self.from };
            self.go(from, effects);
            self.query_typing = false;
        } else {
            self.quit = true;
        }
    }

    // === keys

    fn with_talk(&mut self, change: impl FnOnce(&mut Conversation, &DrawContext<'_>)) {
        let area = view::talk_area(self);
        if let Some(talk) = &mut self.talk {
            change(
                talk,
                &DrawContext { theme: &self.theme, width: area.width, height: usize::from(area.height), now: self.now },
            );
        }
    }

    fn recall(&mut self, back: bool) {
        let Some(talk) = &self.talk else { return };
        let many = talk.prompts.len();
        let at = match (self.history, back) {
            (None, true) if many > 0 => many - 1,
            (Some(at), true) => at.saturating_sub(1),
            (Some(at), false) => at + 1,
            _ => return,
        };
        if self.history.is_none() {
            self.draft = self.composer.lines().join("\n");
        }
        (self.history, self.composer) = match talk.prompts.get(at) {
            Some(words) => (Some(at), input::area(words)),
            None => (None, input::area(&self.draft)),
        };
        if back {
            self.composer.move_cursor(CursorMove::Top);
            self.composer.move_cursor(CursorMove::End);
        }
    }

    /// The runtime of the open session, where that has ended and can be started again from here.
    pub(crate) fn ended(&self) -> Option<String> {
        let session = self.sessions.get(&self.talk.as_ref()?.session).filter(|session| session.state == "exited")?;
        let lives = self.runtimes.iter().any(|runtime| runtime.id == session.runtime && runtime.state != "exited");
        (!lives).then(|| session.runtime.clone())
    }

    fn send(&mut self, effects: &mut Vec<Effect>) {
        let words = self.composer.lines().join("\n");
        let blank = words.trim().is_empty();
        if let Some(runtime) = self.ended() {
            let path = format!("/v1/runtimes/{runtime}/restart");
            let tag = match blank {
                true => CallTag::Say(format!("{runtime} is restarting: send a prompt to continue")),
                false => CallTag::Again(runtime),
            };
            self.again = self.talk.as_ref().filter(|_| !blank).map(|talk| talk.session.clone());
            return effects.push(Effect::Call { tag, method: "POST", path, body: None, key: false });
        }
        let Some(talk) = self.talk.as_mut().filter(|_| !blank) else { return };
        talk.now();
        let path = format!("/v1/sessions/{}/prompt", talk.session);
        effects.push(Effect::Call {
            tag: CallTag::Prompt(words.clone()),
            method: "POST",
            path,
            body: Some(json!({ "text": words })),
            key: true,
        });
        self.composer = input::area("");
        self.history = None;
    }

    /// How many requests are open, and whether one is dangerous.
    pub(crate) fn open_asks(&self) -> (usize, bool) {
        let open = self.requests.values().filter(|(_, outcome)| outcome.is_none());
        open.fold((0, false), |(many, danger), (ask, _)| (many + 1, danger || ask.risk == RiskView::Danger))
    }

    /// Sessions with news that were not looked at.
    pub(crate) fn is_unread(&self, session: &SessionItem) -> usize {
        match self.unread.get(&session.id) {
            Some(many) => *many,
            None => usize::from(self.viewed_at.get(&session.id).is_some_and(|at| *at != session.updated)),
        }
    }
}

/// Asks for what a runtime could resume.
fn pasts_of(runtime: &str) -> Effect {
    get(CallTag::Past(runtime.to_owned()), format!("/v1/runtimes/{runtime}/resumable?limit=1000"))
}

fn get(tag: CallTag, path: String) -> Effect {
    Effect::Call { tag, method: "GET", path, body: None, key: false }
}

fn post(tag: CallTag, path: String, body: Value) -> Effect {
    Effect::Call { tag, method: "POST", path, body: Some(body), key: false }
}

/// The names of those who look, without repeats.
pub(crate) fn viewers(app: &App, session: &str) -> Vec<String> {
    let names: BTreeSet<&String> = app.viewers.get(session).into_iter().flatten().collect();
    names.into_iter().cloned().collect()
}
