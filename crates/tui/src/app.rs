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

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use plexus_client::{ClientEvent, Envelope};
use plexus_protocol::answers::Answerer;
use ratatui::layout::Rect;
use ratatui_textarea::{CursorMove, TextArea};
use serde_json::{Value, json};

use super::agent_lists;
use super::attachments::{self, Attachment};
use super::card::{ARM_DELAY, Card, CardMode, CardOutcome, LINGER_TIME};
use super::changes::ChangesScreen;
use super::conversation::{Conversation, ConversationEvent, DrawContext, PageOf, WholeCall};
use super::facts::SettingsFacts;
use super::help::COMMANDS;
use super::input::{self, Key};
use super::mention::FileOffers;
use super::new_session::NewSessionForm;
use super::pairing::{PairCall, PairingSheet};
use super::sanitize;
use super::session_list::SessionRow;
use super::settings::SettingChoice;
use super::theme::Theme;
use super::triage::{InboxRow, Requests, Sense, Triage};
use super::usage::{UsagePart, UsageSheet};
use super::view;
use super::view_model::{
    DeviceItem, RequestResult, RequestView, RiskView, RuntimeItem, SearchItem, SessionItem, field, position,
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

pub(crate) use changes::{ChangesCall, Reviews};
pub(crate) use commands::AfterConfirm;
pub(crate) use composer::SentPrompt;
pub(crate) use new_session::FormCall;
pub(crate) use triage::SeveralQuestion;

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

/// The pages, in the order of their keys.
pub(crate) const PAGES: [(TuiPage, &str); 5] = [
    (TuiPage::Inbox, "Inbox"),
    (TuiPage::Sessions, "Sessions"),
    (TuiPage::Search, "Search"),
    (TuiPage::Runtimes, "Runtimes"),
    (TuiPage::Devices, "Devices"),
];

/// The state of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConnectionView {
    Connecting,
    Live,
    /// Lost since this time, for this reason.
    Lost(i64, String),
}

/// The purpose of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallTag {
    Me,
    /// A restart of an ended runtime, after which the composed prompt is sent.
    Restart(String),
    /// A page of older sessions, of the `hello` with this number.
    Older(u64),
    /// The open session, if it is not among the newest.
    Session,
    Runtimes,
    Devices,
    Search(String),
    Answer(String),
    /// A whole request of which only the beginning was sent.
    FullRequest(String),
    Prompt(Box<SentPrompt>),
    /// The files that are offered for the prompt, for the question of this number.
    Files(u64),
    TextPage(&'static str),
    /// The MCP servers of a session's agent.
    Servers,
    /// The skills of a session's agent.
    Skills,
    /// A share link to show and copy.
    Link,
    /// A press on a surface of a session.
    Action {
        session: String,
        surface: String,
    },
    /// The surfaces of a session, after a change was missed.
    Surfaces(String),
    /// What the form of a new session asks for.
    Form(FormCall),
    /// What the screen of this session's changes asks for.
    Changes(String, ChangesCall),
    /// What the pairing of this number asks for.
    Pairing(u64, PairCall),
    /// A question of what was spent, of this number.
    Usage(u64, UsagePart),
    /// A ceiling to be set.
    Ceilings,
    /// A session to be archived, in this folder.
    Archived(String),
    /// The worktrees, after the session in this folder was archived.
    Worktrees(String),
    /// The next of the facts of the settings.
    Settings(Box<SettingsFacts>),
    /// Shows this text when the call is done.
    Notice(String),
}

/// An action for the shell.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Open this session, from its newest page; or close the open one.
    Follow(Option<String>),
    /// Call the gateway.
    Call {
        tag: CallTag,
        method: &'static str,
        path: String,
        body: Option<Value>,
        key: bool,
    },
    /// Open a session, or send its first prompt, under this key: the same again counts once. It can be given up.
    Start {
        tag: CallTag,
        path: String,
        body: Value,
        key: String,
    },
    /// Give up what was started: nothing is left of it.
    GiveUp,
    /// Call the gateway under this key: the same again counts once.
    Once {
        tag: CallTag,
        path: String,
        body: Value,
        key: String,
    },
    /// Read a text of the gateway; it is the member `text` of the reply.
    Text {
        tag: CallTag,
        path: String,
    },
    /// Open a file below this folder in the user's editor.
    Edit {
        root: String,
        path: String,
        line: usize,
    },
    /// Read an image for the prompt of this session, or for that of the form (empty); and what was pasted, if it was.
    ReadImage {
        place: String,
        path: String,
        pasted: Option<String>,
    },
    /// Save the review of a session that was not sent yet; null if there is none any more.
    KeepReview(String, Value),
    /// Call a method of the gateway, or through it of the agent, for a session.
    Ask {
        tag: CallTag,
        method: &'static str,
        params: Value,
    },
    /// Follow this session after this cursor; earlier events have been read.
    Attach {
        session: String,
        after: Option<String>,
    },
    /// Read all of a tool call of which pages left something out.
    Whole {
        session: String,
        call: WholeCall,
    },
    /// Read the page before this cursor.
    Page {
        session: String,
        before: String,
    },
    /// Export a session to a file.
    Export {
        session: String,
        format: &'static str,
        name: String,
    },
    /// Copy to the clipboard.
    Copy(String),
    /// Report the viewed session and the focus.
    Presence(Option<String>, bool),
    Mouse(bool),
    Suspend,
    Redraw,
    /// Save when sessions were last viewed.
    Keep(BTreeMap<String, i64>),
}

/// An input of the state.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Focus(bool),
    Tick,
    /// An event of any session.
    Event(ClientEvent),
    /// An event of the open session, with the number of the subscription.
    SessionEvent(u64, ClientEvent),
    /// A subscription ended for good.
    Ended(u64, String),
    /// The reply to a call: status and body; or an error.
    Done(CallTag, Result<(u16, Value), String>),
    /// The open session's newest page, its snapshot and the next cursor; `None` if they could not be read, and all events are replayed.
    Opened(u64, Option<(PageOf, Value, String)>),
    /// A page of older events.
    Page(u64, Result<PageOf, String>),
    /// All events of the call in this block, and the place of the last one.
    Whole(u64, u64, Result<(Vec<ConversationEvent>, u64), String>),
    Exported(Result<String, String>),
    /// An image was read, as [`Effect::ReadImage`] has it.
    ImageRead(String, Option<String>, Result<Attachment, String>),
    /// The editor has ended, or why it was not started.
    Edited(Result<(), String>),
}

/// What is drawn over the page.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Help(usize),
    Palette {
        area: TextArea<'static>,
        at: usize,
    },
    Confirm {
        words: String,
        then: Box<AfterConfirm>,
    },
    Input {
        label: &'static str,
        area: TextArea<'static>,
        then: Box<AfterConfirm>,
    },
    TextPage {
        title: String,
        words: String,
        scroll: usize,
    },
    /// Whether to answer several requests.
    Several(Box<SeveralQuestion>),
    /// The pairing of another device.
    Pairing(Box<PairingSheet>),
    /// What was spent.
    Usage(Box<UsageSheet>),
}

/// The state of the screen.
pub(crate) struct App {
    pub(crate) now: i64,
    pub(crate) size: (u16, u16),
    pub(crate) theme: Theme,
    pub(crate) page: TuiPage,
    pub(crate) from: TuiPage,
    pub(crate) link: ConnectionView,
    /// When the data on the screen was last current.
    pub(crate) true_at: i64,
    pub(crate) me: String,
    pub(crate) sessions: BTreeMap<String, SessionItem>,
    /// The cursor of the sessions that are not listed yet; `None` if all are here.
    older: Option<String>,
    /// The number of sessions that `hello` left out.
    pub(crate) omitted: usize,
    /// Whether older sessions are being read, or cannot be read now.
    reading: bool,
    /// Counts `hello` messages: a reply to a call before the last one is stale.
    greeting: u64,
    /// The session requested by its id.
    seek_target: Option<String>,
    /// The filter of the session list, and whether it is being typed.
    pub(crate) filter: TextArea<'static>,
    pub(crate) filtering: bool,
    /// Sessions deleted since the last `hello`: late updates of them are ignored.
    deleted: BTreeSet<String>,
    /// The lowest and the highest place of the known sessions.
    places: Option<(i64, i64)>,
    pub(crate) requests: Requests,
    /// The rows of the inbox, and what is selected in it.
    pub(crate) triage: Triage,
    /// Whether the inbox was on the screen.
    inbox_here: bool,
    /// Answers to several requests that are on their way.
    several: Option<triage::SeveralAnswers>,
    live: bool,
    pub(crate) doing: HashMap<String, String>,
    pub(crate) unread: HashMap<String, usize>,
    pub(crate) viewed_at: BTreeMap<String, i64>,
    pub(crate) viewers: HashMap<String, Vec<String>>,
    pub(crate) runtimes: Vec<RuntimeItem>,
    pub(crate) devices: Vec<DeviceItem>,
    pub(crate) list_errors: HashMap<&'static str, String>,
    pub(crate) hits: Vec<SearchItem>,
    pub(crate) searched: Option<String>,
    pub(crate) query: TextArea<'static>,
    pub(crate) query_typing: bool,
    /// The selected line of each list; in the inbox and the session list, the selected id, since lines move.
    pub(crate) at: HashMap<TuiPage, usize>,
    pub(crate) chosen: HashMap<TuiPage, String>,
    /// The first row on the screen of the inbox and of the session list.
    pub(crate) tops: HashMap<TuiPage, usize>,
    /// The rows of the session list, and whether what they show has changed.
    pub(crate) session_rows: Vec<SessionRow>,
    sessions_changed: bool,
    /// The folded projects of the session list.
    folded: BTreeSet<String>,
    pub(crate) archived: bool,
    pub(crate) conversation: Option<Conversation>,
    following: u64,
    /// The session that is shown beside the list next, and since when it is selected.
    preview_due: Option<(String, i64)>,
    /// Whether the conversation was opened only as a preview.
    previewed: bool,
    /// Whether no page was chosen yet.
    undecided: bool,
    pub(crate) writing: bool,
    /// Whether the user gave the focus to the card of a request, and whether it came from the composer.
    pub(crate) card_focus: bool,
    from_composer: bool,
    guard: typing::TypingGuard,
    /// The permissions of this device.
    pub(crate) device: Answerer,
    pub(crate) composer: TextArea<'static>,
    /// The files that are offered for the composer, and the images of the prompts that are written, by their sessions.
    pub(crate) files: FileOffers,
    images: HashMap<String, Vec<Attachment>>,
    history: Option<usize>,
    draft: String,
    /// The session whose composed prompt is sent once its runtime has restarted.
    pending_restart: Option<String>,
    drafts: HashMap<String, String>,
    pub(crate) card: Option<Card>,
    /// Unfinished forms that are not on the screen, each with the revision of its request.
    form_drafts: HashMap<String, (u64, CardMode)>,
    /// The form of a new session, while it is on the screen.
    pub(crate) form: Option<NewSessionForm>,
    /// The prompt of a form that was closed, and its images.
    form_prompt: String,
    form_images: Vec<Attachment>,
    /// The changes of the open session, while they are on the screen.
    pub(crate) changes: Option<Box<ChangesScreen>>,
    pub(crate) reviews: Reviews,
    /// The starts so far.
    attempts: u64,
    /// The folder that the screen was started in.
    pub(crate) here: String,
    /// The gateway's address, and the folder of its state.
    pub(crate) address: String,
    pub(crate) home: String,
    /// The questions of sheets so far.
    sheets: u64,
    /// Whether the runtimes were read, and whether the form is the first screen if there are none.
    runtimes_read: bool,
    first: bool,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) toast: Option<(String, bool, i64)>,
    interrupted: i64,
    pub(crate) mouse: bool,
    /// The terminal's focus, if it reports it.
    focused: Option<bool>,
    /// When the user last did something here.
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
    pub(crate) fn new(theme: Theme, size: (u16, u16), now: i64, viewed: BTreeMap<String, i64>) -> Self {
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
            seek_target: None,
            filter: input::area(""),
            filtering: false,
            deleted: BTreeSet::new(),
            places: None,
            requests: Requests::new(),
            triage: Triage::default(),
            inbox_here: false,
            several: None,
            live: false,
            doing: HashMap::new(),
            unread: HashMap::new(),
            viewed_at: viewed,
            viewers: HashMap::new(),
            runtimes: Vec::new(),
            devices: Vec::new(),
            list_errors: HashMap::new(),
            hits: Vec::new(),
            searched: None,
            query: input::area(""),
            query_typing: true,
            at: HashMap::new(),
            chosen: HashMap::new(),
            tops: HashMap::new(),
            session_rows: Vec::new(),
            sessions_changed: true,
            folded: BTreeSet::new(),
            archived: false,
            conversation: None,
            following: 0,
            preview_due: None,
            previewed: false,
            undecided: false,
            writing: false,
            card_focus: false,
            from_composer: false,
            guard: typing::TypingGuard::default(),
            device: Answerer::UNLIMITED,
            composer: input::area(""),
            files: FileOffers::default(),
            images: HashMap::new(),
            history: None,
            draft: String::new(),
            pending_restart: None,
            drafts: HashMap::new(),
            card: None,
            form_drafts: HashMap::new(),
            form: None,
            form_prompt: String::new(),
            form_images: Vec::new(),
            changes: None,
            reviews: Reviews::default(),
            attempts: 0,
            here: String::new(),
            address: String::new(),
            home: String::new(),
            sheets: 0,
            runtimes_read: false,
            first: false,
            overlay: None,
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

    /// The first effects; opens `session` at once.
    pub(crate) fn start(&mut self, session: Option<String>) -> Vec<Effect> {
        let mut effects = vec![get(CallTag::Me, "/v1/me".into()), get(CallTag::Runtimes, "/v1/runtimes".into())];
        match session {
            Some(session) => self.open(session, &mut effects),
            None => self.undecided = true,
        }
        effects
    }

    /// The number of the subscription to the open session.
    pub(crate) fn following(&self) -> u64 {
        self.following
    }

    /// Applies a message; returns the effects.
    pub(crate) fn update(&mut self, msg: Msg, now: i64) -> Vec<Effect> {
        self.now = now;
        if matches!(msg, Msg::Key(_) | Msg::Paste(_) | Msg::Mouse(_) | Msg::Focus(true)) {
            self.touched = now;
        }
        let mut effects = Vec::new();
        match msg {
            Msg::Key(event) => {
                if let Some(key) = Key::of(event) {
                    (self.undecided, self.first) = (false, false);
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
            Msg::Resize(width, height) => self.size = (width, height),
            Msg::Focus(on) => {
                self.focused = Some(on);
                if on {
                    self.touch_changes(None);
                }
            }
            Msg::Tick => self.tick(&mut effects),
            Msg::Event(session_event) => self.on_event(&session_event),
            Msg::SessionEvent(of, session_event) if of == self.following => self.on_session_event(&session_event),
            Msg::Ended(of, why) if of == self.following || of == 0 => {
                self.link = ConnectionView::Lost(now, sanitize::line(&why, 300));
                self.say(&why, true);
            }
            Msg::SessionEvent(..) | Msg::Ended(..) => {}
            Msg::Done(tag, outcome) => self.on_reply(tag, outcome, &mut effects),
            Msg::Opened(of, opening) if of == self.following => self.on_opened(opening, &mut effects),
            Msg::Page(of, page) if of == self.following => self.on_page(page),
            Msg::Whole(of, block, loaded) if of == self.following => self.on_rest(block, loaded),
            Msg::Opened(..) | Msg::Page(..) | Msg::Whole(..) => {}
            Msg::Exported(Ok(path)) => self.say(&format!("written to {path}"), false),
            Msg::Exported(Err(why)) => self.say(&why, true),
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
        let again = self.card.as_ref().filter(|card| card.closed_at.is_some() && self.is_open(&card.id));
        if let Some(id) = again.map(|card| card.id.clone()) {
            self.show_card_of(Some(&id));
        }
        // The card on the screen.
        let wanted_request = self.wanted_request();
        if self.card.as_ref().map(|card| &card.id) != wanted_request.as_ref() {
            self.show_card_of(wanted_request.as_deref());
        }
        if let Some(card) = self.card.as_mut().filter(|card| !card.fetching && card.closed_at.is_none())
            && self.requests.get(&card.id).is_some_and(|(ask, outcome)| ask.partial && outcome.is_none())
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
        if let Some(card) = self.card.as_mut().filter(|card| card.closed_at.is_none())
            && self.requests.get(&card.id).is_some_and(|(_, outcome)| outcome.is_some())
        {
            card.closed_at = Some(self.now);
            card.sent = false;
            card.mode = super::card::CardMode::Choose;
        }
        if let Some(area) = view::card_area(self)
            && let Some(mut card) = self.card.take()
        {
            if let Some((ask, _)) = self.requests.get(&card.id) {
                let shape = card.shape(ask, area.width, usize::from(area.height), &self.theme);
                card.mark_shown(&shape);
                if card.read && !card.changed && self.now - card.shown >= ARM_DELAY {
                    self.triage.mark_seen(ask);
                }
            }
            self.card = Some(card);
        }
        self.update_form(effects);
        self.update_focus();
        self.update_files(effects);
        self.update_surfaces(effects);
        self.read_older_sessions(effects);
        if let Some(id) = &self.pending_restart
            && self.sessions.get(id).is_some_and(|session| session.state != "exited")
        {
            self.pending_restart = None;
            self.send(effects);
        }
        // Reads older events when the user scrolls to the first line.
        let draw_size = view::conversation_area(self);
        if let Some(conversation) = &mut self.conversation
            && draw_size.height > 0
            && let Some(before) = conversation.page_wanted()
        {
            conversation.fetching = true;
            effects.push(Effect::Page { session: conversation.session.clone(), before });
        }
        let session = self
            .conversation
            .as_ref()
            .filter(|_| self.page == TuiPage::Session && self.form.is_none())
            .map(|conversation| conversation.session.clone());
        // A negative difference means that the clock was set back: it counts as idle.
        let touched = (0..PRESENCE_TIMEOUT).contains(&(self.now - self.touched));
        let focused = touched && self.focused.unwrap_or(true);
        if let (Some(id), Some(conversation)) = (&session, &self.conversation)
            && conversation.live
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

    /// Reads older sessions where they are needed: near the end of the list, for a filter, for the palette, or because one of them is open.
    fn read_older_sessions(&mut self, effects: &mut Vec<Effect>) {
        if self.link != ConnectionView::Live {
            return;
        }
        if self.page == TuiPage::Session
            && let Some(conversation) = &self.conversation
            && !self.sessions.contains_key(&conversation.session)
            && !self.deleted.contains(&conversation.session)
            && self.seek_target.as_ref() != Some(&conversation.session)
        {
            self.seek_target = Some(conversation.session.clone());
            effects.push(get(CallTag::Session, format!("/v1/sessions/{}", conversation.session)));
        }
        let Some(cursor) = self.older.clone().filter(|_| !self.reading) else { return };
        let seek_target = match &self.overlay {
            Some(Overlay::Palette { area, .. }) => !area.lines().concat().trim().is_empty(),
            Some(_) => false,
            None if self.page != TuiPage::Sessions => false,
            None if !self.filter_words().is_empty() => true,
            None => self.session_at() + SESSIONS_AHEAD >= self.session_rows.len(),
        };
        if seek_target {
            self.reading = true;
            let path = format!("/v1/sessions?archived=all&limit={SESSIONS_PAGE}&cursor={cursor}");
            effects.push(get(CallTag::Older(self.greeting), path));
        }
    }

    /// Whether older sessions are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading && self.older.is_some()
    }

    /// The request that should be on the screen.
    fn wanted_request(&self) -> Option<String> {
        let lingers = |id: &String| {
            self.card
                .as_ref()
                .is_some_and(|card| &card.id == id && card.closed_at.is_none_or(|at| self.now - at < LINGER_TIME))
        };
        let list = match self.page {
            TuiPage::Inbox => {
                return match self.triage.rows.get(self.inbox_at())? {
                    InboxRow::Request { id, .. } => Some(id.clone()),
                    InboxRow::Group { .. } => None,
                };
            }
            TuiPage::Session => {
                // What the open surface asks is answered there.
                let open = self.conversation.as_ref().and_then(|conversation| conversation.surfaces.open_ask());
                self.session_asks().into_iter().filter(|id| Some(id.as_str()) != open).collect::<Vec<_>>()
            }
            _ => return None,
        };
        // The shown request stays as long as it is open; its outcome gives way to the next one.
        let shown = self.card.as_ref().map(|card| card.id.clone()).filter(|id| list.contains(id));
        match shown {
            Some(id) if self.is_open(&id) => Some(id),
            shown => list.into_iter().find(|id| self.is_open(id)).or(shown.filter(lingers)),
        }
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.requests.get(id).is_some_and(|(_, outcome)| outcome.is_none())
    }

    /// The requests of the open session, oldest first.
    pub(crate) fn session_asks(&self) -> Vec<String> {
        let Some(conversation) = &self.conversation else { return Vec::new() };
        let mut list: Vec<&RequestView> =
            self.requests.values().map(|(ask, _)| ask).filter(|ask| ask.session == conversation.session).collect();
        list.sort_by(|a, b| (a.opened, &a.id).cmp(&(b.opened, &b.id)));
        list.into_iter().map(|ask| ask.id.clone()).collect()
    }

    /// The selected line of a list whose lines move.
    pub(crate) fn index(&self, page: TuiPage, list: &[String]) -> usize {
        let named = self.chosen.get(&page).and_then(|id| list.iter().position(|one| one == id));
        named.unwrap_or_else(|| self.at.get(&page).copied().unwrap_or_default().min(list.len().saturating_sub(1)))
    }

    /// A session's name and folder.
    pub(crate) fn session_label(&self, id: &str) -> String {
        match self.sessions.get(id) {
            Some(session) => format!("{} · {}", session.name(), session.cwd),
            None => sanitize::line(id, 40),
        }
    }

    pub(crate) fn say(&mut self, words: &str, bad: bool) {
        self.toast = Some((sanitize::line(words, 300), bad, self.now));
    }

    fn tick(&mut self, effects: &mut Vec<Effect>) {
        self.release_key(effects);
        if self.toast.as_ref().is_some_and(|(_, _, at)| self.now - at > TOAST_TIME) {
            self.toast = None;
        }
        self.tick_pairing(effects);
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
        self.undecided = false;
        if self.page != TuiPage::Session {
            self.from = self.page;
        }
        self.page = TuiPage::Session;
        if self.from != TuiPage::Inbox {
            // The list beside the session shows which one it is.
            self.chosen.insert(TuiPage::Sessions, id.clone());
        }
        if self.conversation.as_ref().is_none_or(|conversation| conversation.session != id) {
            self.show_card_of(None);
            self.follow_session(&id, effects);
        } else if !self.previewed {
            return;
        }
        self.previewed = false;
        self.write();
    }

    /// Reads another session. What was typed is kept with the one before.
    fn follow_session(&mut self, id: &str, effects: &mut Vec<Effect>) {
        if let Some(conversation) = &self.conversation {
            self.drafts.insert(conversation.session.clone(), self.composer.lines().join("\n"));
        }
        self.composer = input::area(self.drafts.get(id).map_or("", String::as_str));
        self.history = None;
        self.following += 1;
        self.pending_restart = None;
        self.conversation = Some(Conversation::new(id));
        effects.push(Effect::Follow(Some(id.to_owned())));
    }

    fn go(&mut self, page: TuiPage, effects: &mut Vec<Effect>) {
        if page != TuiPage::Session {
            self.from = page;
        }
        self.page = page;
        self.card_focus = false;
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

    fn with_conversation(&mut self, change: impl FnOnce(&mut Conversation, &DrawContext<'_>)) {
        let area = view::conversation_area(self);
        if let Some(conversation) = &mut self.conversation {
            change(
                conversation,
                &DrawContext { theme: &self.theme, width: area.width, height: usize::from(area.height), now: self.now },
            );
        }
    }

    /// The number of open requests, and whether one is dangerous.
    pub(crate) fn open_asks(&self) -> (usize, bool) {
        let open = self.requests.values().filter(|(_, outcome)| outcome.is_none());
        open.fold((0, false), |(many, danger), (ask, _)| (many + 1, danger || ask.risk == RiskView::Danger))
    }

    /// The number of unseen events of a session.
    pub(crate) fn is_unread(&self, session: &SessionItem) -> usize {
        match self.unread.get(&session.id) {
            Some(many) => *many,
            None => usize::from(self.viewed_at.get(&session.id).is_some_and(|at| *at != session.updated)),
        }
    }
}

fn get(tag: CallTag, path: String) -> Effect {
    Effect::Call { tag, method: "GET", path, body: None, key: false }
}

fn post(tag: CallTag, path: String, body: Value) -> Effect {
    Effect::Call { tag, method: "POST", path, body: Some(body), key: false }
}

/// The names of a session's viewers, without repeats.
pub(crate) fn viewers(app: &App, session: &str) -> Vec<String> {
    let names: BTreeSet<&String> = app.viewers.get(session).into_iter().flatten().collect();
    names.into_iter().cloned().collect()
}
