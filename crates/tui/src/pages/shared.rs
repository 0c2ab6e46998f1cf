//! The state that all pages share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plexus_protocol::RequestId;
use plexus_protocol::answers::Answerer;
use ratatui_textarea::TextArea;

use super::TuiPage;
use super::message::AfterConfirm;
use crate::card::{Card, CardMode};
use crate::input;
use crate::pairing::PairingSheet;
use crate::sanitize;
use crate::theme::Theme;
use crate::triage::{Requests, SeveralQuestion};
use crate::usage::UsageSheet;
use crate::view_model::{RiskView, RuntimeItem, SessionItem};

/// The state of the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConnectionView {
    Connecting,
    Live,
    /// The connection was lost at this time, for this reason.
    Lost(i64, String),
}

/// A window over the page.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Help(usize),
    Palette {
        area: TextArea<'static>,
        at: usize,
    },
    Confirm {
        text: String,
        then: Box<AfterConfirm>,
    },
    Input {
        label: &'static str,
        area: TextArea<'static>,
        then: Box<AfterConfirm>,
    },
    TextPage {
        title: String,
        text: String,
        scroll: usize,
    },
    /// The question whether to answer several requests.
    Several(Box<SeveralQuestion>),
    /// The pairing of another device.
    Pairing(Box<PairingSheet>),
    Usage(Box<UsageSheet>),
}

/// The working directory of the terminal UI, and its gateway.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// The working directory.
    pub(crate) start_dir: String,
    /// The gateway's address.
    pub(crate) address: String,
    /// The folder of the gateway's state.
    pub(crate) home: String,
}

/// The sessions that the gateway has reported.
#[derive(Debug, Default)]
pub(crate) struct SessionStore {
    pub(crate) all: BTreeMap<String, SessionItem>,
    /// The cursor of the sessions that are not loaded yet; `None` if all are loaded.
    pub(crate) older: Option<String>,
    /// The number of sessions that `hello` left out.
    pub(crate) omitted: usize,
    /// `true` if older sessions are being read, or cannot be read now.
    pub(crate) reading: bool,
    /// `true` if the last page of older sessions could not be read.
    pub(crate) older_failed: bool,
    /// The number of `hello` messages: a reply to a call before the last one is stale.
    pub(crate) greeting: u64,
    /// The session requested by its id.
    pub(crate) requested: Option<String>,
    /// Sessions deleted since the last `hello`: late updates of them are ignored.
    pub(crate) deleted: BTreeSet<String>,
    /// The lowest and the highest position of the known sessions.
    pub(crate) positions: Option<(i64, i64)>,
    /// `true` if a session changed since the rows of the list were made.
    pub(crate) changed: bool,
    pub(crate) activities: HashMap<String, String>,
    /// The number of unseen events, by session.
    pub(crate) unread: HashMap<String, usize>,
    pub(crate) viewed_at: BTreeMap<String, i64>,
    pub(crate) viewers: HashMap<String, Vec<String>>,
}

impl SessionStore {
    /// Adds a session of a listing, which is ordered newest first: it comes after all known ones.
    pub(crate) fn add_listed(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.positions.unwrap_or((i64::MAX, i64::MIN));
        session.position = session.updated.min(oldest.saturating_sub(1));
        self.positions = Some((session.position, newest.max(session.position)));
        self.changed = true;
        self.all.insert(session.id.clone(), session);
    }

    /// Applies a session's update: if it has news, it comes before all known ones.
    pub(crate) fn apply_update(&mut self, mut session: SessionItem) {
        let (oldest, newest) = self.positions.unwrap_or((i64::MAX, i64::MIN));
        session.position = match self.all.get(&session.id) {
            Some(known) if known.updated == session.updated => known.position,
            _ => session.updated.max(newest.saturating_add(1)),
        };
        self.positions = Some((oldest.min(session.position), newest.max(session.position)));
        self.changed = true;
        self.all.insert(session.id.clone(), session);
    }

    /// Returns whether older sessions are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading && self.older.is_some()
    }

    /// The number of unseen events of a session.
    pub(crate) fn is_unread(&self, session: &SessionItem) -> usize {
        match self.unread.get(&session.id) {
            Some(count) => *count,
            None => usize::from(self.viewed_at.get(&session.id).is_some_and(|at| *at != session.updated)),
        }
    }

    /// A session's name and folder.
    pub(crate) fn label(&self, id: &str) -> String {
        match self.all.get(id) {
            Some(session) => format!("{} · {}", session.name(), session.cwd),
            None => sanitize::line(id, 40),
        }
    }

    /// The names of a session's viewers, without repeats.
    pub(crate) fn viewer_names(&self, session: &str) -> Vec<String> {
        let names: BTreeSet<&String> = self.viewers.get(session).into_iter().flatten().collect();
        names.into_iter().cloned().collect()
    }
}

/// The card of a request on the screen, and its focus.
#[derive(Debug, Default)]
pub(crate) struct CardPane {
    pub(crate) card: Option<Card>,
    /// `true` if the user gave the focus to the card.
    pub(crate) focused: bool,
    /// `true` if the focus came from the composer, which gets it again.
    pub(crate) from_composer: bool,
    /// Unfinished forms that are not on the screen, each with the revision of its request.
    pub(crate) drafts: HashMap<String, (u64, CardMode)>,
}

impl CardPane {
    /// The card, if its request is open.
    pub(crate) fn open(&self) -> Option<&Card> {
        self.card.as_ref().filter(|card| card.closed_at.is_none())
    }

    /// Shows another card, or none. An unfinished form is restored when its card comes back.
    pub(crate) fn show(&mut self, id: Option<&str>, requests: &Requests, now: i64) {
        if let Some(card) = self.card.take()
            && let Some((ask, None)) = requests.get(&card.id)
            && let Some(mode) = card.draft()
        {
            self.drafts.insert(card.id.clone(), (ask.request.revision, mode.clone()));
        }
        let Some((ask, _)) = id.and_then(|id| requests.get(id)) else { return };
        let mut card = Card::new(ask, now);
        if let Some((revision, mode)) = self.drafts.remove(&ask.id)
            && revision == ask.request.revision
        {
            card.resume(mode);
        }
        self.card = Some(card);
    }
}

/// The selection and the position of a list.
#[derive(Debug, Default)]
pub(crate) struct ListState {
    /// The index of the selected row, if one was selected.
    pub(crate) at: Option<usize>,
    /// The key of the selected row, which finds it after rows have moved.
    pub(crate) chosen: Option<String>,
    /// The first row on the screen.
    pub(crate) top: usize,
}

impl ListState {
    /// The index of the selected row in a list with these keys.
    pub(crate) fn index(&self, keys: &[String]) -> usize {
        let named = self.chosen.as_ref().and_then(|id| keys.iter().position(|one| one == id));
        named.unwrap_or_else(|| self.at.unwrap_or_default().min(keys.len().saturating_sub(1)))
    }

    /// Moves the selection from `now` by a key.
    pub(crate) fn step(&mut self, key: &str, now: usize, keys: &[String]) {
        let last = keys.len().saturating_sub(1);
        let at = match key {
            "Down" | "j" => (now + 1).min(last),
            "Up" | "k" => now.saturating_sub(1),
            "Home" | "g" => 0,
            "End" | "G" => last,
            "PageDown" => (now + 10).min(last),
            "PageUp" => now.saturating_sub(10),
            _ => return,
        };
        self.at = Some(at);
        self.chosen = keys.get(at).cloned();
    }

    /// Follows the selected row from `before` to `now`: it stays where it is on the screen. Without a chosen row, the list begins at its
    /// top.
    pub(crate) fn follow(&mut self, before: usize, now: usize) {
        let top = (self.top + now).saturating_sub(before);
        self.top = if self.chosen.is_some() { top } else { 0 };
        self.at = Some(now);
    }

    /// Selects the row at `at`, if there is one.
    pub(crate) fn choose(&mut self, at: usize, keys: &[String]) -> bool {
        let Some(key) = keys.get(at) else { return false };
        self.at = Some(at);
        self.chosen = Some(key.clone());
        true
    }
}

/// The state that all pages share.
pub(crate) struct Shared {
    pub(crate) now: i64,
    pub(crate) size: (u16, u16),
    pub(crate) theme: Theme,
    pub(crate) page: TuiPage,
    /// The page that an open session was opened from.
    pub(crate) previous_page: TuiPage,
    pub(crate) link: ConnectionView,
    /// The time when the data on the screen was last current.
    pub(crate) data_as_of: i64,
    pub(crate) device_name: String,
    /// The permissions of this device.
    pub(crate) device: Answerer,
    pub(crate) sessions: SessionStore,
    pub(crate) requests: Requests,
    /// The open requests that only a newer version can read.
    pub(crate) unreadable_requests: BTreeSet<RequestId>,
    /// `true` if a request changed since the rows of the inbox were made.
    pub(crate) requests_changed: bool,
    pub(crate) runtimes: Vec<RuntimeItem>,
    pub(crate) card: CardPane,
    /// `true` if the composer of the open session has the focus.
    pub(crate) writing: bool,
    pub(crate) overlay: Option<Overlay>,
    /// A notice in the last line: its text, whether it is an error, and the time since when it is shown.
    pub(crate) toast: Option<(String, bool, i64)>,
    pub(crate) environment: Environment,
    pub(crate) quit: bool,
}

impl Shared {
    pub(crate) fn new(theme: Theme, size: (u16, u16), now: i64, viewed_at: BTreeMap<String, i64>) -> Self {
        Self {
            now,
            size,
            theme,
            page: TuiPage::Sessions,
            previous_page: TuiPage::Sessions,
            link: ConnectionView::Connecting,
            data_as_of: now,
            device_name: String::new(),
            device: Answerer::UNLIMITED,
            sessions: SessionStore { changed: true, viewed_at, ..SessionStore::default() },
            requests: Requests::new(),
            unreadable_requests: BTreeSet::new(),
            requests_changed: false,
            runtimes: Vec::new(),
            card: CardPane::default(),
            writing: false,
            overlay: None,
            toast: None,
            environment: Environment::default(),
            quit: false,
        }
    }

    /// Shows a notice in the last line.
    pub(crate) fn show_notice(&mut self, text: &str, bad: bool) {
        self.toast = Some((sanitize::line(text, 300), bad, self.now));
    }

    /// Shows the question for a confirmation.
    pub(crate) fn confirm(&mut self, text: String, then: AfterConfirm) {
        self.overlay = Some(Overlay::Confirm { text, then: Box::new(then) });
    }

    /// Shows the field for the path of an image, for the prompt of this session, or for that of the form (empty).
    pub(crate) fn ask_image(&mut self, target: String) {
        self.overlay = Some(Overlay::Input {
            label: "path of an image (PNG, JPEG, GIF, WebP)",
            area: input::area(""),
            then: Box::new(AfterConfirm::Image(target)),
        });
    }

    /// The page whose list is in the left pane, also beside an open session.
    pub(crate) fn list_page(&self) -> TuiPage {
        match self.page {
            TuiPage::Session if self.previous_page == TuiPage::Inbox => TuiPage::Inbox,
            TuiPage::Session => TuiPage::Sessions,
            page => page,
        }
    }

    /// Returns whether this request is open.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.requests.get(id).is_some_and(|(_, outcome)| outcome.is_none())
    }

    /// The number of open requests, and whether one of them is dangerous.
    pub(crate) fn open_asks(&self) -> (usize, bool) {
        let open = self.requests.values().filter(|(_, outcome)| outcome.is_none());
        open.fold((0, false), |(count, danger), (ask, _)| (count + 1, danger || ask.risk == RiskView::Danger))
    }

    /// Shows the card of another request, or none.
    pub(crate) fn show_card(&mut self, id: Option<&str>) {
        self.card.show(id, &self.requests, self.now);
    }

    /// Shows the card again after it was covered: its guard begins anew.
    pub(crate) fn rearm_card(&mut self) {
        if let Some(id) = self.card.card.as_ref().map(|card| card.id.clone()) {
            self.show_card(Some(&id));
        }
    }

    /// Gives the focus to the composer.
    pub(crate) fn write(&mut self) {
        self.writing = true;
        self.card.focused = false;
    }

    /// Gives the focus to the card on the screen, if it is open: its guard begins anew.
    pub(crate) fn focus_card(&mut self) {
        self.writing &= self.page != TuiPage::Session;
        if let Some(card) = self.card.card.as_mut().filter(|card| card.closed_at.is_none())
            && !std::mem::replace(&mut self.card.focused, true)
        {
            card.focus(self.now);
        }
    }

    /// Returns whether the card has the focus and letters go into a text on it.
    pub(crate) fn card_takes_text(&self) -> bool {
        let typing = |card: &Card| self.requests.get(&card.id).is_some_and(|(ask, _)| card.is_typing(ask));
        self.card.focused && self.card.card.as_ref().is_some_and(typing)
    }
}
