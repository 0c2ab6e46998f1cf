//! The state of the screen, and what changes it. One file: `update` is one function of state and message, and every page's keys
//! are a part of it. Pure: the clock, the network and the terminal come in as messages and go out as effects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use plexus_client::ClientEvent;
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

    // === what the gateway says

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

    fn on_event(&mut self, heard: &ClientEvent) {
        match heard {
            ClientEvent::Hello(hello) => {
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
                    self.say("this session was forgotten", true);
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
            ClientEvent::Event(event) => {
                let body = &event.event;
                match event.kind.as_str() {
                    "request_opened" => {
                        if let Some(ask) = RequestView::read(body)
                            && self.live
                        {
                            self.asked(ask);
                        }
                    }
                    "request_updated" => {
                        if let Some(ask) = RequestView::read(body).filter(|ask| self.is_open(&ask.id)) {
                            self.asked(ask);
                        }
                    }
                    "request_resolved" => {
                        if let Some((_, outcome)) = body["request_id"].as_str().and_then(|id| self.requests.get_mut(id))
                        {
                            *outcome = Some(RequestResult::read(body));
                        }
                        if let Some(id) = body["request_id"].as_str() {
                            self.half.remove(id);
                        }
                        self.forget();
                    }
                    "tool_call" | "tool_call_update" => {
                        let title = field(&body["title"]);
                        if body["status"] == "completed" || body["status"] == "failed" {
                            self.doing.remove(&event.session_id);
                        } else if !title.is_empty() {
                            self.doing.insert(event.session_id.clone(), title);
                        }
                    }
                    "agent_thought_chunk" => {
                        self.doing.insert(event.session_id.clone(), "thinking".into());
                    }
                    "agent_message_chunk" => {
                        self.doing.insert(event.session_id.clone(), "writing".into());
                    }
                    "run_ended" => {
                        self.doing.remove(&event.session_id);
                    }
                    _ => {}
                }
                if matches!(event.kind.as_str(), "request_opened" | "run_ended" | "error") {
                    *self.unread.entry(event.session_id.clone()).or_default() += 1;
                }
            }
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

    fn told(&mut self, heard: &ClientEvent) {
        let Some(talk) = &mut self.talk else { return };
        match heard {
            ClientEvent::Event(event) => {
                talk.event(&event.kind, &event.event, &event.cursor, event.at.map_or(0, |at| at.as_millis()));
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
    fn asked(&mut self, ask: RequestView) {
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
    fn opened(&mut self, opening: Option<(PageOf, Value, String)>, effects: &mut Vec<Effect>) {
        let Some(talk) = &mut self.talk else { return };
        let after = opening.map(|(page, snapshot, next)| {
            talk.open(&page, &snapshot);
            next
        });
        effects.push(Effect::Attach { session: talk.session.clone(), after });
    }

    fn earlier(&mut self, page: Result<PageOf, String>) {
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

    fn done(&mut self, tag: CallTag, outcome: Result<(u16, Value), String>, effects: &mut Vec<Effect>) {
        let (status, value) = match outcome {
            Ok(answer) => answer,
            Err(why) => (0, json!({ "detail": why })),
        };
        let good = (200..300).contains(&status);
        let why = match value["detail"].as_str() {
            Some(detail) => sanitize::line(detail, 300),
            None if status == 404 || status == 405 => {
                "this gateway does not know how: is it of an older version?".into()
            }
            None => format!("the gateway answered {status}"),
        };
        match tag {
            CallTag::Me => {
                if good {
                    self.me = field(&value["name"]);
                }
            }
            CallTag::Again(runtime) if good => self.say(&format!("{runtime} starts again; then this is sent"), false),
            CallTag::Again(_) => {
                self.again = None;
                self.say(&format!("not started again: {why}"), true);
            }
            CallTag::Older(greeting) if greeting != self.greeting => {}
            CallTag::Older(_) if good => {
                self.reading = false;
                self.older = value["next"].as_str().map(str::to_owned);
                for session in value["sessions"].as_array().into_iter().flatten().filter_map(SessionItem::read) {
                    // What is known is newer.
                    if !self.forgotten.contains(&session.id) && !self.sessions.contains_key(&session.id) {
                        self.take_listed(session);
                    }
                }
            }
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
                self.trouble.remove("runtimes");
                if good {
                    self.runtimes =
                        value["runtimes"].as_array().into_iter().flatten().filter_map(RuntimeItem::read).collect();
                } else {
                    self.trouble.insert("runtimes", why);
                }
            }
            CallTag::Devices => {
                self.trouble.remove("devices");
                if good {
                    self.devices =
                        value["devices"].as_array().into_iter().flatten().filter_map(DeviceItem::read).collect();
                } else {
                    self.trouble.insert("devices", why);
                }
            }
            CallTag::Search(words) => {
                self.trouble.remove("search");
                if good {
                    self.hits = value["hits"].as_array().into_iter().flatten().filter_map(SearchItem::read).collect();
                    self.at.insert(TuiPage::Search, 0);
                    self.query_typing = self.hits.is_empty();
                } else {
                    self.trouble.insert("search", why);
                }
                self.searched = Some(words);
            }
            CallTag::Answer(id) => {
                // A receipt, mine or the winner's, says what became of it.
                if value.get("resolved_by").is_some()
                    && let Some((_, outcome @ None)) = self.requests.get_mut(&id)
                {
                    *outcome = Some(RequestResult::read(&value));
                }
                if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
                    card.sent = false;
                    if !good && value.get("resolved_by").is_none() {
                        card.problem = format!("not answered: {why}");
                    }
                }
                if (status == 409 || status == 410) && value.get("resolved_by").is_some() {
                    let words = RequestResult::read(&value).words(self.now);
                    self.say(&format!("too late: {words}"), false);
                } else if !good {
                    self.say(&format!("not answered: {why}"), true);
                }
            }
            CallTag::Whole(id) => {
                let whole = RequestView::read(&value).filter(|ask| good && ask.id == id && !ask.partial);
                match whole {
                    Some(ask) if self.is_open(&id) => {
                        if let Some(card) = self.card.as_mut().filter(|card| card.id == id) {
                            card.fetching = false;
                            card.read = false;
                        }
                        self.asked(ask);
                    }
                    Some(_) => {}
                    None => self.say(&format!("all of it could not be read: {why}"), true),
                }
            }
            CallTag::Prompt(words) => {
                if good {
                    if value["queued"] == true {
                        let ahead = value["ahead"].as_u64().unwrap_or_default();
                        self.say(&format!("it waits for its turn: {ahead} before it"), false);
                    }
                } else {
                    if self.composer.is_empty() {
                        self.composer = input::area(&words);
                    }
                    self.say(&format!("not sent: {why}"), true);
                }
            }
            CallTag::New => {
                if let Some(id) = value["session_id"].as_str().filter(|_| good) {
                    if let Some(session) = SessionItem::read(&value) {
                        self.take_updated(session);
                    }
                    self.open(id.to_owned(), effects);
                } else {
                    self.say(&format!("no new session: {why}"), true);
                }
            }
            CallTag::Words(title) => {
                if !good {
                    return self.say(&why, true);
                }
                let lines = value["lines"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|line| line["text"].as_str().unwrap_or_default().to_owned());
                let checks = value["checks"].as_array().into_iter().flatten().map(|check| {
                    let ok = check["ok"] == true || check["state"] == "ok";
                    let fix = check["fix"].as_str().map(|fix| format!("\n    {fix}")).unwrap_or_default();
                    let detail = check["detail"].as_str().unwrap_or_default();
                    format!(
                        "{} {}: {detail}{fix}",
                        if ok { "✔" } else { "✘" },
                        check["name"].as_str().unwrap_or_default()
                    )
                });
                let words: Vec<String> = lines.chain(checks).collect();
                let words = if words.is_empty() { "nothing".into() } else { words.join("\n") };
                self.over = Some(Overlay::Words { title: title.to_owned(), words, scroll: usize::MAX });
            }
            CallTag::Servers | CallTag::Skills => {
                let (title, none) = match tag {
                    CallTag::Servers => ("MCP servers", "MCP status unavailable"),
                    _ => ("skills", "Skills list unavailable"),
                };
                if !good {
                    return self.say(&format!("{none}: {why}"), true);
                }
                let words = match tag {
                    CallTag::Servers => agent_lists::servers(&value),
                    _ => agent_lists::skills(&value, usize::from(self.size.0).saturating_sub(6)),
                };
                self.over = Some(Overlay::Words { title: title.to_owned(), words, scroll: 0 });
            }
            CallTag::Past(runtime) => {
                if !good {
                    return self.say(&why, true);
                }
                self.pasts = agent_lists::pasts(&runtime, &value);
                if self.pasts.is_empty() {
                    return self.say(&format!("{runtime} keeps no conversation that could be resumed"), false);
                }
                self.over = Some(Overlay::Palette { area: input::area("past "), at: 0 });
            }
            CallTag::Link => {
                let Some(url) = value["url"].as_str().filter(|_| good).map(|url| sanitize::line(url, LINK_MAX)) else {
                    return self.say(&format!("no link: {why}"), true);
                };
                let words = format!(
                    "{url}\n\nWhoever has it sees this session, and can do nothing in it. It is copied; under Devices it is revoked."
                );
                effects.push(Effect::Copy(url));
                self.over = Some(Overlay::Words { title: "link".into(), words, scroll: 0 });
            }
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

    fn key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "C-c" => {
                if self.over.take().is_some() {
                    return;
                }
                if self.page == TuiPage::Session && self.writing && !self.composer.is_empty() {
                    self.composer = input::area("");
                    return;
                }
                if self.now - self.interrupted < AGAIN {
                    self.quit = true;
                }
                self.interrupted = self.now;
                return self.say("Ctrl-C again leaves; agents go on", false);
            }
            "C-z" => return effects.push(Effect::Suspend),
            "C-l" => return effects.push(Effect::Redraw),
            _ => {}
        }
        if self.over.is_some() {
            return self.over_key(key, effects);
        }
        if key.name() == "C-k" {
            return self.over = Some(Overlay::Palette { area: input::area(""), at: 0 });
        }
        let typing = self
            .card
            .as_ref()
            .is_some_and(|card| self.requests.get(&card.id).is_some_and(|(ask, _)| card.is_typing(ask)))
            && !(self.page == TuiPage::Session && self.writing);
        if typing && self.card_key(key, effects) {
            return;
        }
        match self.page {
            TuiPage::Session if self.writing => return self.writing_key(key, effects),
            TuiPage::Search if self.query_typing => return self.query_key(key, effects),
            TuiPage::Sessions if self.filtering => return self.filter_key(key, effects),
            TuiPage::Sessions if key.name() == "Esc" && !self.filter.is_empty() => {
                return self.filter = input::area("");
            }
            _ => {}
        }
        if !typing && self.card_key(key, effects) {
            return;
        }
        match key.name() {
            "?" => return self.over = Some(Overlay::Help(0)),
            ":" => return self.over = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            "Esc" | "q" => return self.back(effects),
            "Tab" | "S-Tab" => {
                let now = PAGES
                    .iter()
                    .position(|(page, _)| *page == self.page || self.page == TuiPage::Session && *page == self.from)
                    .unwrap_or(0);
                let step = if key.name() == "Tab" { 1 } else { PAGES.len() - 1 };
                return self.go(PAGES[(now + step) % PAGES.len()].0, effects);
            }
            "/" => return self.go(TuiPage::Search, effects),
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

    /// Gives a key to the card on the screen; true if that took it.
    fn card_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let Some(area) = view::card_area(self) else { return false };
        let Some(mut card) = self.card.take() else { return false };
        let Some((ask, outcome)) = self.requests.get(&card.id) else { return false };
        let shape = card.shape(ask, area.width, usize::from(area.height), &self.theme);
        card.seen(&shape);
        let did = card.key(key, ask, outcome.as_ref(), self.now, shape.rows);
        let id = card.id.clone();
        match did {
            CardOutcome::Nothing => {
                self.card = Some(card);
                if matches!(key.name(), "[" | "]") {
                    self.other_ask(&id, key.name() == "]");
                    return true;
                }
                return false;
            }
            CardOutcome::Taken => self.card = Some(card),
            CardOutcome::Close => {
                card.over = Some(i64::MIN / 2);
                self.card = Some(card);
            }
            CardOutcome::Answer(body) => {
                card.sent = true;
                card.problem.clear();
                self.card = Some(card);
                effects.push(Effect::Call {
                    tag: CallTag::Answer(id.clone()),
                    method: "POST",
                    path: format!("/v1/requests/{id}/answer"),
                    body: Some(body),
                    key: true,
                });
            }
        }
        true
    }

    fn other_ask(&mut self, id: &str, next: bool) {
        let list: Vec<String> = match self.page {
            TuiPage::Inbox => self.inbox(),
            _ => self.session_asks().into_iter().filter(|one| one == id || self.is_open(one)).collect(),
        };
        let Some(at) = list.iter().position(|one| one == id) else { return };
        let at = if next { (at + 1) % list.len() } else { (at + list.len() - 1) % list.len() };
        self.chosen.insert(TuiPage::Inbox, list[at].clone());
        if list[at] != id {
            self.show_card_of(Some(&list[at]));
        }
    }

    /// Puts another card on the screen, or none. What was said in a form is there again when one comes back.
    fn show_card_of(&mut self, id: Option<&str>) {
        if let Some(card) = self.card.take()
            && let Some((ask, None)) = self.requests.get(&card.id)
            && let Some(mode) = card.draft()
        {
            self.half.insert(card.id.clone(), (ask.revision, mode.clone()));
        }
        let Some((ask, _)) = id.and_then(|id| self.requests.get(id)) else { return };
        let mut card = Card::new(ask, self.now);
        if let Some((revision, mode)) = self.half.remove(&ask.id)
            && revision == ask.revision
        {
            card.resume(mode);
        }
        self.card = Some(card);
    }

    fn step(&mut self, page: TuiPage, list: &[String], key: &Key) {
        let now = self.index(page, list);
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
        let list = self.inbox();
        if key.name() == "Enter" {
            let at = self.index(TuiPage::Inbox, &list);
            if let Some((ask, _)) = list.get(at).and_then(|id| self.requests.get(id)) {
                let session = ask.session.clone();
                self.open(session, effects);
                self.writing = false;
            }
            return;
        }
        self.step(TuiPage::Inbox, &list, key);
    }

    fn filter_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "Esc" => {
                self.filter = input::area("");
                self.filtering = false;
            }
            "Enter" => self.filtering = false,
            "Up" | "Down" | "PageUp" | "PageDown" | "Tab" | "S-Tab" => {
                self.filtering = false;
                self.key(key, effects);
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.filter, key);
                // The first that fits, as the words grow.
                self.at.insert(TuiPage::Sessions, 0);
                self.chosen.remove(&TuiPage::Sessions);
            }
        }
    }

    fn sessions_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list: Vec<String> = self.listed().into_iter().map(|session| session.id.clone()).collect();
        if self.older.is_some() && self.trouble.remove("sessions").is_some() {
            self.reading = false;
        }
        match key.name() {
            "f" => self.filtering = true,
            "Enter" | "Right" => {
                if let Some(id) = list.get(self.index(TuiPage::Sessions, &list)) {
                    self.open(id.clone(), effects);
                }
            }
            "a" => self.archived = !self.archived,
            "N" => self.command("new", effects),
            _ => self.step(TuiPage::Sessions, &list, key),
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

    fn search_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list: Vec<String> = self.hits.iter().map(|hit| format!("{} {}", hit.session, hit.cursor)).collect();
        match key.name() {
            "Enter" => {
                let Some(hit) = self.hits.get(self.index(TuiPage::Search, &list)).cloned() else {
                    self.query_typing = true;
                    return;
                };
                self.open(hit.session, effects);
                self.writing = false;
                if let Some(talk) = &mut self.talk {
                    let place = position(&hit.cursor);
                    if !talk.live || !talk.seek(place) {
                        talk.sought = Some(place);
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
        let Some(id) = list.get(self.index(TuiPage::Runtimes, &list)).cloned() else { return };
        match key.name() {
            "N" | "Enter" => effects.push(post(CallTag::New, "/v1/sessions".into(), json!({ "runtime_id": id }))),
            "R" => self.confirm(
                format!("Restart {id}? What it is doing ends."),
                AfterConfirm::Call {
                    tag: CallTag::Say(format!("{id} restarts")),
                    method: "POST",
                    path: format!("/v1/runtimes/{id}/restart"),
                    body: None,
                },
            ),
            "x" => self.confirm(
                format!("Stop {id}? It ends with everything it started."),
                AfterConfirm::Call {
                    tag: CallTag::Say(format!("{id} is stopped")),
                    method: "DELETE",
                    path: format!("/v1/runtimes/{id}"),
                    body: None,
                },
            ),
            "l" => effects.push(get(CallTag::Words("log"), format!("/v1/runtimes/{id}/logs"))),
            "r" => self.refresh(effects),
            _ => self.step(TuiPage::Runtimes, &list, key),
        }
    }

    fn devices_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let list: Vec<String> = self.devices.iter().map(|device| device.id.clone()).collect();
        let Some(device) = self.devices.get(self.index(TuiPage::Devices, &list)).cloned() else { return };
        let path = format!("/v1/devices/{}", device.id);
        match key.name() {
            "x" if device.id == "d_local" => self.say("this machine's own administrator cannot be revoked", true),
            "x" => self.confirm(
                format!("Revoke {}? Its connections are closed at once.", device.name),
                AfterConfirm::Call {
                    tag: CallTag::Say(format!("{} is revoked", device.name)),
                    method: "DELETE",
                    path,
                    body: None,
                },
            ),
            "R" => {
                self.over = Some(Overlay::Input {
                    label: "its name",
                    area: input::area(&device.name),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Say("renamed".into()),
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

    fn confirm(&mut self, words: String, then: AfterConfirm) {
        self.over = Some(Overlay::Confirm { words, then: Box::new(then) });
    }

    fn with_talk(&mut self, change: impl FnOnce(&mut Conversation, &DrawContext<'_>)) {
        let area = view::talk_area(self);
        if let Some(talk) = &mut self.talk {
            change(
                talk,
                &DrawContext { theme: &self.theme, width: area.width, height: usize::from(area.height), now: self.now },
            );
        }
    }

    fn scroll_key(&mut self, name: &str) -> bool {
        let rows = i64::from(view::talk_area(self).height).max(2);
        let by = match name {
            "PageUp" | "C-b" => 1 - rows,
            "PageDown" | "C-f" => rows - 1,
            "C-u" => -rows / 2,
            "C-d" => rows / 2,
            "C-Up" | "C-S-Up" => -1,
            "C-Down" | "C-S-Down" => 1,
            _ => return false,
        };
        self.with_talk(|talk, pen| talk.scroll(by, pen));
        true
    }

    fn reading_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if self.scroll_key(key.name()) {
            return;
        }
        match key.name() {
            "i" | "Enter" => self.writing = true,
            "Up" | "k" => self.with_talk(|talk, pen| talk.scroll(-1, pen)),
            "Down" | "j" => self.with_talk(|talk, pen| talk.scroll(1, pen)),
            "g" | "Home" => self.with_talk(|talk, _| talk.begin()),
            "G" | "End" | "f" => self.with_talk(|talk, _| talk.now()),
            "J" | "S-Down" => self.with_talk(|talk, pen| talk.choose(true, pen)),
            "K" | "S-Up" => self.with_talk(|talk, pen| talk.choose(false, pen)),
            " " => self.with_talk(Conversation::turn),
            "t" => self.command("thoughts", effects),
            "o" => self.command("output", effects),
            "c" => self.command("copy", effects),
            "x" => self.command("cancel", effects),
            "R" => self.command("restart", effects),
            "Q" => self.command("unqueue", effects),
            "E" => self.over = Some(Overlay::Palette { area: input::area("export "), at: 0 }),
            "{" | "}" => {
                let list: Vec<String> = self.listed().into_iter().map(|session| session.id.clone()).collect();
                let now =
                    self.talk.as_ref().and_then(|talk| list.iter().position(|id| *id == talk.session)).unwrap_or(0);
                let step = if key.name() == "}" { 1 } else { list.len().saturating_sub(1) };
                if let Some(id) = list.get((now + step) % list.len().max(1)) {
                    self.open(id.clone(), effects);
                    self.writing = false;
                }
            }
            _ => {}
        }
    }

    /// The agent's commands that the prompt so far may mean.
    pub(crate) fn slash(&self) -> Vec<(String, String)> {
        let lines = self.composer.lines();
        let Some(begun) = lines.first().and_then(|line| line.strip_prefix('/')).filter(|_| lines.len() == 1) else {
            return Vec::new();
        };
        if begun.contains(' ') || !self.writing {
            return Vec::new();
        }
        let all = self.talk.as_ref().map(|talk| talk.commands.clone()).unwrap_or_default();
        all.into_iter().filter(|(name, _)| name.starts_with(begun)).take(6).collect()
    }

    fn writing_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        if matches!(key.name(), "PageUp" | "PageDown" | "C-Up" | "C-Down") {
            self.scroll_key(key.name());
            return;
        }
        let line = self.composer.cursor().0;
        match key.name() {
            "Esc" => self.writing = false,
            "Tab" => {
                if let Some((name, _)) = self.slash().first() {
                    self.composer = input::area(&format!("/{name} "));
                }
            }
            "Up" if line == 0 => self.recall(true),
            "Down" if self.history.is_some() && line + 1 == self.composer.lines().len() => self.recall(false),
            "Enter" => self.send(effects),
            _ => {
                input::edit(&mut self.composer, key);
            }
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
                true => CallTag::Say(format!("{runtime} starts again: write, and it goes on")),
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

    fn paste(&mut self, words: &str) {
        // What is pasted is words: no line of it is sent, no key of it is taken.
        let words = words.replace("\r\n", "\n").replace('\r', "\n");
        if words.len() > input::TEXT_MAX {
            return self.say("that is too long to paste", true);
        }
        let single = words.replace('\n', " ");
        match &mut self.over {
            Some(Overlay::Palette { area, .. } | Overlay::Input { area, .. }) => {
                area.insert_str(single);
                return;
            }
            Some(_) => return,
            None => {}
        }
        let writing = self.page == TuiPage::Session && self.writing;
        if !writing
            && let Some(card) = &mut self.card
            && let Some((ask, None)) = self.requests.get(&card.id)
            && card.paste(ask, &words)
        {
            return;
        }
        match self.page {
            TuiPage::Session => {
                self.writing = true;
                self.composer.insert_str(words);
            }
            TuiPage::Search if self.query_typing => {
                self.query.insert_str(single);
            }
            TuiPage::Sessions if self.filtering => {
                self.filter.insert_str(single);
            }
            _ => {}
        }
    }

    fn mouse(&mut self, event: MouseEvent, effects: &mut Vec<Effect>) {
        let by = match event.kind {
            MouseEventKind::ScrollUp => -WHEEL,
            MouseEventKind::ScrollDown => WHEEL,
            MouseEventKind::Down(MouseButton::Left) => return self.click(event.column, event.row, effects),
            _ => return,
        };
        if self.over.is_some() {
            return;
        }
        let inside = |area: Rect| area.contains((event.column, event.row).into());
        if view::card_area(self).is_some_and(inside) {
            if let Some(card) = &mut self.card {
                let by = usize::try_from(by.unsigned_abs()).unwrap_or_default();
                card.scroll = if event.kind == MouseEventKind::ScrollUp {
                    card.scroll.saturating_sub(by)
                } else {
                    card.scroll + by
                };
            }
        } else if self.page == TuiPage::Session {
            self.with_talk(|talk, pen| talk.scroll(by, pen));
        }
    }

    /// A click goes somewhere; it never answers anything.
    fn click(&mut self, column: u16, row: u16, effects: &mut Vec<Effect>) {
        if self.over.is_some() {
            return;
        }
        if row == 0
            && let Some(page) = view::tab_at(self, column)
        {
            return self.go(page, effects);
        }
        if let Some(at) = view::row_at(self, row) {
            let list: Vec<String> = match self.page {
                TuiPage::Inbox => self.inbox(),
                TuiPage::Sessions => self.listed().into_iter().map(|session| session.id.clone()).collect(),
                TuiPage::Runtimes => self.runtimes.iter().map(|one| one.id.clone()).collect(),
                TuiPage::Devices => self.devices.iter().map(|one| one.id.clone()).collect(),
                _ => return,
            };
            let again = self.index(self.page, &list) == at;
            let Some(id) = list.get(at) else { return };
            self.at.insert(self.page, at);
            self.chosen.insert(self.page, id.clone());
            if again && self.page == TuiPage::Sessions {
                self.open(id.clone(), effects);
            }
        }
    }

    fn over_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(over) = self.over.take() else { return };
        let scrolled = |scroll: usize| match key.name() {
            "Down" | "j" => Some(scroll.saturating_add(1)),
            "Up" | "k" => Some(scroll.saturating_sub(1)),
            "PageDown" | " " => Some(scroll.saturating_add(10)),
            "PageUp" => Some(scroll.saturating_sub(10)),
            "g" | "Home" => Some(0),
            "G" | "End" => Some(usize::MAX),
            _ => None,
        };
        match over {
            Overlay::Help(scroll) => {
                if let Some(scroll) = scrolled(scroll) {
                    self.over = Some(Overlay::Help(scroll.min(view::help_end(self))));
                }
            }
            Overlay::Words { title, words, scroll } => {
                let end = view::words_end(self, &words);
                if let Some(scroll) = scrolled(scroll.min(end)) {
                    self.over = Some(Overlay::Words { title, words, scroll: scroll.min(end) });
                }
            }
            Overlay::Confirm { words, then } => match key.name() {
                "y" => self.then(*then, "", effects),
                "n" | "Esc" | "q" => {}
                _ => self.over = Some(Overlay::Confirm { words, then }),
            },
            Overlay::Input { label, mut area, then } => match key.name() {
                "Esc" => {}
                "Enter" => {
                    let words = area.lines().join(" ").trim().to_owned();
                    self.then(*then, &words, effects);
                }
                "M-Enter" | "C-j" | "S-Enter" => self.over = Some(Overlay::Input { label, area, then }),
                _ => {
                    input::edit(&mut area, key);
                    self.over = Some(Overlay::Input { label, area, then });
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
                self.over = Some(Overlay::Palette { area, at });
            }
        }
    }

    fn then(&mut self, then: AfterConfirm, words: &str, effects: &mut Vec<Effect>) {
        effects.push(match then {
            AfterConfirm::Call { tag, method, path, body } => Effect::Call { tag, method, path, body, key: false },
            AfterConfirm::With { tag, method, path, member } => {
                let mut body = json!({});
                body[member] = words.into();
                Effect::Call { tag, method, path, body: Some(body), key: false }
            }
        });
    }

    /// What the palette offers for these words: commands, then sessions.
    pub(crate) fn palette(&self, words: &str) -> Vec<(String, String)> {
        let words = words.trim().to_lowercase();
        let fits = |name: &str| {
            let mut rest = name.chars().flat_map(char::to_lowercase);
            words.chars().filter(|c| !c.is_whitespace()).all(|c| rest.any(|d| d == c))
        };
        let mut list: Vec<(u8, String, String)> = Vec::new();
        let rank = |name: &str| {
            if name.starts_with(&words) {
                0
            } else if name.contains(&words) {
                1
            } else {
                2
            }
        };
        for (name, what) in COMMANDS {
            if fits(name) {
                list.push((rank(name), (*name).to_owned(), (*what).to_owned()));
            }
        }
        for choice in self.choices() {
            if fits(&choice.command) {
                list.push((rank(&choice.command.to_lowercase()), choice.command, choice.what));
            }
        }
        for session in self.ordered() {
            let name = session.name();
            if fits(&name) {
                list.push((
                    rank(&name.to_lowercase()),
                    format!("go {}", session.id),
                    format!("{name} · {}", session.runtime),
                ));
            }
        }
        if words.starts_with("past") {
            for past in self.pasts.iter().filter(|past| fits(&past.name)) {
                list.push((rank(&past.name.to_lowercase()), past.name.clone(), past.what.clone()));
            }
        }
        for runtime in &self.runtimes {
            let name = format!("resume {}", runtime.id);
            if fits(&name) {
                list.push((rank(&name), name, format!("a past conversation of {}", runtime.id)));
            }
            let name = format!("new {}", runtime.id);
            if fits(&name) {
                list.push((rank(&name), name, format!("a new session in {}", runtime.id)));
            }
        }
        list.sort_by_key(|(rank, ..)| *rank);
        list.into_iter().map(|(_, name, what)| (name, what)).collect()
    }

    /// What the agent of the session on the screen lets one choose.
    fn choices(&self) -> Vec<SettingChoice> {
        let talk = self.talk.as_ref().filter(|_| self.page == TuiPage::Session);
        talk.map(|talk| talk.settings.choices(&talk.session)).unwrap_or_default()
    }

    fn command(&mut self, name: &str, effects: &mut Vec<Effect>) {
        if let Some(choice) = self.choices().into_iter().find(|choice| choice.command == name) {
            let SettingChoice { command, method, params, .. } = choice;
            return effects.push(Effect::Ask { tag: CallTag::Say(command), method, params });
        }
        let here = self.talk.as_ref().filter(|_| self.page == TuiPage::Session).map(|talk| talk.session.clone());
        let session = here.and_then(|id| self.sessions.get(&id).cloned());
        if let Some(id) = name.strip_prefix("go ") {
            return self.open(id.to_owned(), effects);
        }
        if let Some(past) = self.pasts.iter().find(|past| past.name == name).cloned() {
            self.pasts.clear();
            return match past.session {
                Some(session) => self.open(session, effects),
                None => effects.push(post(CallTag::New, "/v1/sessions".into(), past.open)),
            };
        }
        if let Some(runtime) = name.strip_prefix("resume ") {
            return effects.push(pasts_of(runtime));
        }
        if let Some(runtime) = name.strip_prefix("new ") {
            return effects.push(post(CallTag::New, "/v1/sessions".into(), json!({ "runtime_id": runtime })));
        }
        match name {
            "inbox" => self.go(TuiPage::Inbox, effects),
            "sessions" => self.go(TuiPage::Sessions, effects),
            "search" => self.go(TuiPage::Search, effects),
            "runtimes" => self.go(TuiPage::Runtimes, effects),
            "devices" => self.go(TuiPage::Devices, effects),
            "help" => self.over = Some(Overlay::Help(0)),
            "quit" => self.quit = true,
            "mouse" => {
                self.mouse = !self.mouse;
                effects.push(Effect::Mouse(self.mouse));
                self.say(if self.mouse { "mouse on" } else { "mouse off" }, false);
            }
            "doctor" => effects.push(get(CallTag::Words("doctor"), "/v1/doctor".into())),
            "start" => {
                self.over = Some(Overlay::Input {
                    label: "its preset: gemini, codex, claude, opencode …",
                    area: input::area(""),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Say("attached".into()),
                        method: "POST",
                        path: "/v1/runtimes".into(),
                        member: "preset",
                    }),
                });
            }
            "resume" => match self.runtimes.as_slice() {
                [] => self.say("no runtime is attached: `plexus run` attaches one", true),
                [only] => effects.push(pasts_of(&only.id)),
                _ => self.over = Some(Overlay::Palette { area: input::area("resume "), at: 0 }),
            },
            "new" => match self.runtimes.as_slice() {
                [] => self.say("no runtime is attached: `plexus run` attaches one", true),
                [only] => effects.push(post(CallTag::New, "/v1/sessions".into(), json!({ "runtime_id": only.id }))),
                _ => self.over = Some(Overlay::Palette { area: input::area("new "), at: 0 }),
            },
            _ => {
                let Some(session) = session else { return self.say("open a session first", true) };
                self.session_command(name, &session, effects);
            }
        }
    }

    fn session_command(&mut self, name: &str, session: &SessionItem, effects: &mut Vec<Effect>) {
        let path = format!("/v1/sessions/{}", session.id);
        match name {
            "cancel" if session.run.is_empty() => self.say("nothing runs", false),
            "cancel" => self.confirm(
                "Cancel the run? What it asked is withdrawn.".into(),
                AfterConfirm::Call {
                    tag: CallTag::Say("the run is cancelled".into()),
                    method: "POST",
                    path: format!("{path}/cancel"),
                    body: Some(json!({ "run_id": session.run })),
                },
            ),
            "restart" => self.confirm(
                "Run the last prompt again? A run under way is cancelled.".into(),
                AfterConfirm::Call {
                    tag: CallTag::Say("run again".into()),
                    method: "POST",
                    path: format!("{path}/restart"),
                    body: Some(json!({})),
                },
            ),
            "unqueue" => match session.queue.last() {
                Some((run, ..)) => {
                    effects.push(post(
                        CallTag::Say("taken back".into()),
                        format!("{path}/cancel"),
                        json!({ "run_id": run }),
                    ));
                }
                None => self.say("no prompt waits", false),
            },
            "rename" => {
                self.over = Some(Overlay::Input {
                    label: "its title",
                    area: input::area(&session.title),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Say("renamed".into()),
                        method: "PATCH",
                        path,
                        member: "title",
                    }),
                });
            }
            "archive" => {
                let to = !session.archived;
                let words = if to { "archived" } else { "no longer archived" };
                effects.push(Effect::Call {
                    tag: CallTag::Say(words.into()),
                    method: "PATCH",
                    path,
                    body: Some(json!({ "archived": to })),
                    key: false,
                });
            }
            "mcp" => effects.push(get(CallTag::Servers, format!("{path}/mcp"))),
            "skills" => effects.push(get(CallTag::Skills, format!("{path}/skills"))),
            "share" => effects.push(post(CallTag::Link, format!("{path}/shares"), json!({}))),
            "export md" | "export html" | "export ndjson" => {
                let format = if name.ends_with("md") {
                    "md"
                } else if name.ends_with("html") {
                    "html"
                } else {
                    "ndjson"
                };
                effects.push(Effect::Export { session: session.id.clone(), format, name: session.name() });
            }
            "copy" => match self.talk.as_ref().and_then(Conversation::copied) {
                Some(words) if words.len() > COPY_MAX => {
                    self.say("that is too long for a clipboard: export it (E)", true)
                }
                Some(words) => {
                    self.say(&format!("copied {} lines", words.lines().count()), false);
                    effects.push(Effect::Copy(words));
                }
                None => self.say("nothing to copy here", false),
            },
            "thoughts" => self.with_talk(|talk, _| talk.refold(|folds| folds.thoughts = !folds.thoughts)),
            "output" => self.with_talk(|talk, _| talk.refold(|folds| folds.tools = !folds.tools)),
            "now" => self.with_talk(|talk, _| talk.now()),
            _ => {}
        }
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
