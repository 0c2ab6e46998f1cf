//! The inbox and the session list: their rows, what is selected in them, and the preview beside them.

use super::*;
use crate::session_list::{SessionRow, session_rows};
use crate::triage::InboxRow;

impl App {
    /// Whether this list is on the screen.
    fn shows_list(&self, page: TuiPage) -> bool {
        self.shared.page == page
            || self.shared.page == TuiPage::Session && self.shared.list_page() == page && view::has_panes(self)
    }

    /// Makes the rows of the list on the screen again, if what they show has changed. The selected row stays where it is.
    pub(super) fn refresh_rows(&mut self) {
        let here = self.shows_list(TuiPage::Inbox);
        if here != self.pages.inbox.on_screen {
            self.pages.inbox.triage.touch();
        }
        if here && self.pages.inbox.triage.is_stale(self.shared.now) {
            let at = self.inbox_at();
            let after: Vec<String> =
                self.pages.inbox.triage.rows.iter().skip(at).map(|row| row.key().to_owned()).collect();
            self.pages.inbox.triage.rebuild(&self.shared.requests, self.pages.inbox.on_screen, self.shared.now);
            let at_now = match after.iter().find_map(|key| self.pages.inbox.triage.at(key, None)) {
                Some(found) => found,
                None if after.is_empty() => self.pages.inbox.triage.first(),
                None => self.pages.inbox.triage.rows.len().saturating_sub(1),
            };
            self.put_at(at, at_now);
        }
        self.pages.inbox.on_screen = here;
        if self.shared.sessions.changed && self.shows_list(TuiPage::Sessions) {
            self.shared.sessions.changed = false;
            let at = self.session_at();
            let chosen = self.pages.sessions.list.chosen.clone();
            self.pages.sessions.rows =
                session_rows(&self.listed(), &self.pages.sessions.folded, !self.filter_words().is_empty());
            // Without a chosen row the first session is selected, whichever it becomes.
            let at_now =
                match chosen.as_ref().map(|key| self.pages.sessions.rows.iter().position(|row| row.key() == key)) {
                    Some(Some(found)) => found,
                    Some(None) => at.min(self.pages.sessions.rows.len().saturating_sub(1)),
                    None => self
                        .pages
                        .sessions
                        .rows
                        .iter()
                        .position(|row| matches!(row, SessionRow::Session { .. }))
                        .unwrap_or(0),
                };
            // The selected row stays where it is on the screen; the first rows begin at the top.
            let top = self.pages.sessions.list.top;
            let top = if chosen.is_some() { (top + at_now).saturating_sub(at) } else { 0 };
            self.pages.sessions.list.top = top;
            self.pages.sessions.list.at = Some(at_now);
        }
        for page in [TuiPage::Inbox, TuiPage::Sessions] {
            if self.shows_list(page) {
                let top = view::list_top(self, page);
                self.pages.list_mut(page).into_iter().for_each(|list| list.top = top);
            }
        }
    }

    /// Selects a row of the inbox that was at another place before.
    fn put_at(&mut self, before: usize, now: usize) {
        let inbox = &mut self.pages.inbox;
        let top = (inbox.list.top + now).saturating_sub(before);
        inbox.list.top = if inbox.list.chosen.is_some() { top } else { 0 };
        inbox.list.at = Some(now);
        inbox.list.chosen = inbox.triage.rows.get(now).map(|row| row.key().to_owned());
    }

    /// The selected row of the inbox.
    pub(crate) fn inbox_at(&self) -> usize {
        let list = &self.pages.inbox.list;
        let named = list.chosen.as_ref().and_then(|key| self.pages.inbox.triage.at(key, list.at));
        let last = self.pages.inbox.triage.rows.len().saturating_sub(1);
        named.unwrap_or_else(|| list.at.map_or_else(|| self.pages.inbox.triage.first(), |at| at.min(last)))
    }

    /// The selected row of the session list.
    pub(crate) fn session_at(&self) -> usize {
        let list = &self.pages.sessions.list;
        let hint = list.at.unwrap_or_default();
        let named = list.chosen.as_ref().and_then(|key| {
            let same = self.pages.sessions.rows.get(hint).is_some_and(|row| row.key() == key);
            if same { Some(hint) } else { self.pages.sessions.rows.iter().position(|row| row.key() == key) }
        });
        let last = self.pages.sessions.rows.len().saturating_sub(1);
        named.unwrap_or_else(|| hint.min(last))
    }

    /// The keys of the rows of a list, by which they are selected.
    pub(super) fn row_keys(&self, page: TuiPage) -> Vec<String> {
        match page {
            TuiPage::Inbox => self.pages.inbox.triage.rows.iter().map(|row| row.key().to_owned()).collect(),
            TuiPage::Sessions => self.pages.sessions.rows.iter().map(|row| row.key().to_owned()).collect(),
            TuiPage::Runtimes => self.shared.runtimes.iter().map(|one| one.id.clone()).collect(),
            TuiPage::Devices => self.pages.devices.devices.iter().map(|one| one.id.clone()).collect(),
            TuiPage::Search => {
                self.pages.search.hits.iter().map(|hit| format!("{} {}", hit.session, hit.cursor)).collect()
            }
            TuiPage::Session => Vec::new(),
        }
    }

    /// The session of the selected row of the list on the screen.
    pub(crate) fn selected_session(&self) -> Option<String> {
        match self.shared.list_page() {
            TuiPage::Inbox => match self.pages.inbox.triage.rows.get(self.inbox_at())? {
                InboxRow::Group { session: false, .. } => None,
                row => Some(self.shared.requests.get(row.ids().first()?)?.0.session.clone()),
            },
            TuiPage::Sessions => match self.pages.sessions.rows.get(self.session_at())? {
                SessionRow::Session { id } => Some(id.clone()),
                SessionRow::Project { .. } => None,
            },
            _ => None,
        }
    }

    /// Shows the selected session beside the list, once the selection rests.
    pub(super) fn update_preview(&mut self, effects: &mut Vec<Effect>) {
        let beside = view::has_panes(self) && matches!(self.shared.page, TuiPage::Inbox | TuiPage::Sessions);
        let wanted = self.selected_session().filter(|_| beside && self.shared.link == ConnectionView::Live);
        let shown = self.pages.session.conversation.as_ref().map(|conversation| &conversation.session);
        let Some(id) = wanted.filter(|id| Some(id) != shown) else {
            self.pages.session.preview_due = None;
            return;
        };
        match &self.pages.session.preview_due {
            Some((due, since)) if *due == id => {
                // A clock that was set back counts as time enough.
                if !(0..PREVIEW_DELAY).contains(&(self.shared.now - since)) {
                    self.pages.session.preview_due = None;
                    self.pages.session.previewed = true;
                    self.follow_session(&id, effects);
                }
            }
            _ => self.pages.session.preview_due = Some((id, self.shared.now)),
        }
    }

    /// Chooses the first page: the inbox if something waits, else the sessions.
    pub(super) fn choose_first_page(&mut self) {
        if !std::mem::take(&mut self.no_page_chosen) {
            return;
        }
        self.offers_first_session = self.shared.open_asks().0 == 0;
        if !self.offers_first_session {
            (self.shared.page, self.shared.previous_page) = (TuiPage::Inbox, TuiPage::Inbox);
        }
    }

    /// Opens the session of the selected row, or folds the group that is selected.
    pub(super) fn open_selected(&mut self, effects: &mut Vec<Effect>) {
        match self.shared.page {
            TuiPage::Inbox => match self.pages.inbox.triage.rows.get(self.inbox_at()).cloned() {
                Some(InboxRow::Group { key, folded, .. }) => self.pages.inbox.triage.fold(&key, !folded),
                Some(InboxRow::Request { .. }) => {
                    if let Some(session) = self.selected_session() {
                        let id = self.shared.card.card.as_ref().map(|card| card.id.clone());
                        self.open(session, effects);
                        self.shared.writing = false;
                        self.shared.show_card_of(id.as_deref());
                        self.shared.focus_card();
                        self.shared.card.from_composer = self.shared.card.focused;
                    }
                }
                None => {}
            },
            TuiPage::Sessions => match self.pages.sessions.rows.get(self.session_at()).cloned() {
                Some(SessionRow::Project { key, folded, .. }) => self.fold_project(&key, !folded),
                Some(SessionRow::Session { id }) => self.open(id, effects),
                None => {}
            },
            _ => {}
        }
    }

    fn fold_project(&mut self, key: &str, fold: bool) {
        self.shared.sessions.changed = true;
        self.pages.sessions.list.chosen = Some(key.to_owned());
        if fold {
            self.pages.sessions.folded.insert(key.to_owned());
        } else {
            self.pages.sessions.folded.remove(key);
        }
    }

    /// Left or Right in a list: folds and unfolds a group; Right on anything else opens it.
    pub(super) fn fold_key(&mut self, right: bool, effects: &mut Vec<Effect>) {
        match self.shared.page {
            TuiPage::Inbox => {
                let at = self.inbox_at();
                match (self.pages.inbox.triage.rows.get(at).cloned(), right) {
                    (Some(InboxRow::Group { key, .. }), _) => self.pages.inbox.triage.fold(&key, !right),
                    (Some(_), true) => self.open_selected(effects),
                    (Some(_), false) => {
                        if let Some(heading) = self.pages.inbox.triage.heading(at) {
                            self.put_at(heading, heading);
                        }
                    }
                    (None, _) => {}
                }
            }
            TuiPage::Sessions => {
                let at = self.session_at();
                match (self.pages.sessions.rows.get(at).cloned(), right) {
                    (Some(SessionRow::Project { key, .. }), _) => self.fold_project(&key, !right),
                    (Some(_), true) => self.open_selected(effects),
                    (Some(_), false) => {
                        let rows = self.pages.sessions.rows.iter().take(at);
                        let heading = rows.rev().find(|row| matches!(row, SessionRow::Project { .. }));
                        if let Some(key) = heading.map(|row| row.key().to_owned()) {
                            self.pages.sessions.list.chosen = Some(key);
                        }
                    }
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }

    /// The ids of the listed sessions, in the order of their rows.
    pub(super) fn session_ids(&self) -> Vec<String> {
        let rows = session_rows(&self.listed(), &self.pages.sessions.folded, true);
        let ids = rows.into_iter().filter_map(|row| match row {
            SessionRow::Session { id } => Some(id),
            SessionRow::Project { .. } => None,
        });
        ids.collect()
    }

    /// The words of the filter, in lower case.
    pub(super) fn filter_words(&self) -> Vec<String> {
        self.pages
            .sessions
            .filter
            .lines()
            .iter()
            .flat_map(|line| line.split_whitespace())
            .map(str::to_lowercase)
            .collect()
    }

    /// The listed sessions: all, or those that match the filter.
    pub(crate) fn listed(&self) -> Vec<&SessionItem> {
        let words = self.filter_words();
        let mut list = self.ordered();
        if !words.is_empty() {
            list.retain(|session| {
                let fields = [
                    &*session.name(),
                    &*session.cwd,
                    &*session.project,
                    &*session.branch,
                    &*session.runtime,
                    &*session.state,
                ];
                let all = fields.join(" ").to_lowercase();
                words.iter().all(|word| all.contains(word.as_str()))
            });
        }
        list
    }

    /// The sessions in list order: waiting for an answer, running, others by their latest news, ended.
    pub(crate) fn ordered(&self) -> Vec<&SessionItem> {
        let mut list: Vec<&SessionItem> = self
            .shared
            .sessions
            .all
            .values()
            .filter(|session| self.pages.sessions.archived || !session.archived)
            .collect();
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
}
