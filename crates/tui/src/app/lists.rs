//! The inbox and the session list: their rows, what is selected in them, and the preview beside them.

use super::*;
use crate::session_list::{SessionRow, session_rows};
use crate::triage::InboxRow;

impl App {
    /// The list of the left pane: also beside an open session.
    pub(crate) fn list_page(&self) -> TuiPage {
        match self.page {
            TuiPage::Session if self.from == TuiPage::Inbox => TuiPage::Inbox,
            TuiPage::Session => TuiPage::Sessions,
            page => page,
        }
    }

    /// Whether this list is on the screen.
    fn shows_list(&self, page: TuiPage) -> bool {
        self.page == page || self.page == TuiPage::Session && self.list_page() == page && view::has_panes(self)
    }

    /// Makes the rows of the list on the screen again, if what they show has changed. The selected row stays where it is.
    pub(super) fn refresh_rows(&mut self) {
        let here = self.shows_list(TuiPage::Inbox);
        if here != self.inbox_here {
            self.triage.touch();
        }
        if here && self.triage.is_stale(self.now) {
            let at = self.inbox_at();
            let after: Vec<String> = self.triage.rows.iter().skip(at).map(|row| row.key().to_owned()).collect();
            self.triage.rebuild(&self.requests, self.inbox_here, self.now);
            let at_now = match after.iter().find_map(|key| self.triage.at(key, None)) {
                Some(found) => found,
                None if after.is_empty() => self.triage.first(),
                None => self.triage.rows.len().saturating_sub(1),
            };
            self.put_at(TuiPage::Inbox, at, at_now);
        }
        self.inbox_here = here;
        if self.sessions_changed && self.shows_list(TuiPage::Sessions) {
            self.sessions_changed = false;
            let at = self.session_at();
            let chosen = self.chosen.get(&TuiPage::Sessions).cloned();
            self.session_rows = session_rows(&self.listed(), &self.folded, !self.filter_words().is_empty());
            // Without a chosen row the first session is selected, whichever it becomes.
            let at_now = match chosen.as_ref().map(|key| self.session_rows.iter().position(|row| row.key() == key)) {
                Some(Some(found)) => found,
                Some(None) => at.min(self.session_rows.len().saturating_sub(1)),
                None => self.session_rows.iter().position(|row| matches!(row, SessionRow::Session { .. })).unwrap_or(0),
            };
            // The selected row stays where it is on the screen; the first rows begin at the top.
            let top = self.tops.get(&TuiPage::Sessions).copied().unwrap_or_default();
            let top = if chosen.is_some() { (top + at_now).saturating_sub(at) } else { 0 };
            self.tops.insert(TuiPage::Sessions, top);
            self.at.insert(TuiPage::Sessions, at_now);
        }
        for page in [TuiPage::Inbox, TuiPage::Sessions] {
            if self.shows_list(page) {
                let top = view::list_top(self, page);
                self.tops.insert(page, top);
            }
        }
    }

    /// Selects a row of the inbox that was at another place before.
    fn put_at(&mut self, page: TuiPage, before: usize, now: usize) {
        let top = self.tops.get(&page).copied().unwrap_or_default();
        let was_shown = self.chosen.contains_key(&page);
        self.tops.insert(page, if was_shown { (top + now).saturating_sub(before) } else { 0 });
        self.at.insert(page, now);
        match self.triage.rows.get(now) {
            Some(row) => self.chosen.insert(page, row.key().to_owned()),
            None => self.chosen.remove(&page),
        };
    }

    /// The selected row of the inbox.
    pub(crate) fn inbox_at(&self) -> usize {
        let (chosen, hint) = (self.chosen.get(&TuiPage::Inbox), self.at.get(&TuiPage::Inbox));
        let named = chosen.and_then(|key| self.triage.at(key, hint.copied()));
        let last = self.triage.rows.len().saturating_sub(1);
        named.unwrap_or_else(|| self.at.get(&TuiPage::Inbox).map_or_else(|| self.triage.first(), |at| (*at).min(last)))
    }

    /// The selected row of the session list.
    pub(crate) fn session_at(&self) -> usize {
        let hint = self.at.get(&TuiPage::Sessions).copied().unwrap_or_default();
        let named = self.chosen.get(&TuiPage::Sessions).and_then(|key| {
            let same = self.session_rows.get(hint).is_some_and(|row| row.key() == key);
            if same { Some(hint) } else { self.session_rows.iter().position(|row| row.key() == key) }
        });
        let last = self.session_rows.len().saturating_sub(1);
        named.unwrap_or_else(|| self.at.get(&TuiPage::Sessions).copied().unwrap_or_default().min(last))
    }

    /// The keys of the rows of a list, by which they are selected.
    pub(super) fn row_keys(&self, page: TuiPage) -> Vec<String> {
        match page {
            TuiPage::Inbox => self.triage.rows.iter().map(|row| row.key().to_owned()).collect(),
            TuiPage::Sessions => self.session_rows.iter().map(|row| row.key().to_owned()).collect(),
            TuiPage::Runtimes => self.runtimes.iter().map(|one| one.id.clone()).collect(),
            TuiPage::Devices => self.devices.iter().map(|one| one.id.clone()).collect(),
            TuiPage::Search => self.hits.iter().map(|hit| format!("{} {}", hit.session, hit.cursor)).collect(),
            TuiPage::Session => Vec::new(),
        }
    }

    /// The session of the selected row of the list on the screen.
    pub(crate) fn selected_session(&self) -> Option<String> {
        match self.list_page() {
            TuiPage::Inbox => match self.triage.rows.get(self.inbox_at())? {
                InboxRow::Group { session: false, .. } => None,
                row => Some(self.requests.get(row.ids().first()?)?.0.session.clone()),
            },
            TuiPage::Sessions => match self.session_rows.get(self.session_at())? {
                SessionRow::Session { id } => Some(id.clone()),
                SessionRow::Project { .. } => None,
            },
            _ => None,
        }
    }

    /// Shows the selected session beside the list, once the selection rests.
    pub(super) fn update_preview(&mut self, effects: &mut Vec<Effect>) {
        let beside = view::has_panes(self) && matches!(self.page, TuiPage::Inbox | TuiPage::Sessions);
        let wanted = self.selected_session().filter(|_| beside && self.link == ConnectionView::Live);
        let shown = self.conversation.as_ref().map(|conversation| &conversation.session);
        let Some(id) = wanted.filter(|id| Some(id) != shown) else {
            self.preview_due = None;
            return;
        };
        match &self.preview_due {
            Some((due, since)) if *due == id => {
                // A clock that was set back counts as time enough.
                if !(0..PREVIEW_DELAY).contains(&(self.now - since)) {
                    self.preview_due = None;
                    self.previewed = true;
                    self.follow_session(&id, effects);
                }
            }
            _ => self.preview_due = Some((id, self.now)),
        }
    }

    /// Chooses the first page: the inbox if something waits, else the sessions.
    pub(super) fn choose_first_page(&mut self) {
        if !std::mem::take(&mut self.undecided) {
            return;
        }
        self.first = self.open_asks().0 == 0;
        if !self.first {
            (self.page, self.from) = (TuiPage::Inbox, TuiPage::Inbox);
        }
    }

    /// Opens the session of the selected row, or folds the group that is selected.
    pub(super) fn open_selected(&mut self, effects: &mut Vec<Effect>) {
        match self.page {
            TuiPage::Inbox => match self.triage.rows.get(self.inbox_at()).cloned() {
                Some(InboxRow::Group { key, folded, .. }) => self.triage.fold(&key, !folded),
                Some(InboxRow::Request { .. }) => {
                    if let Some(session) = self.selected_session() {
                        let id = self.card.as_ref().map(|card| card.id.clone());
                        self.open(session, effects);
                        self.writing = false;
                        self.show_card_of(id.as_deref());
                        self.focus_card();
                        self.from_composer = self.card_focus;
                    }
                }
                None => {}
            },
            TuiPage::Sessions => match self.session_rows.get(self.session_at()).cloned() {
                Some(SessionRow::Project { key, folded, .. }) => self.fold_project(&key, !folded),
                Some(SessionRow::Session { id }) => self.open(id, effects),
                None => {}
            },
            _ => {}
        }
    }

    fn fold_project(&mut self, key: &str, fold: bool) {
        self.sessions_changed = true;
        self.chosen.insert(TuiPage::Sessions, key.to_owned());
        if fold {
            self.folded.insert(key.to_owned());
        } else {
            self.folded.remove(key);
        }
    }

    /// Left or Right in a list: folds and unfolds a group; Right on anything else opens it.
    pub(super) fn fold_key(&mut self, right: bool, effects: &mut Vec<Effect>) {
        match self.page {
            TuiPage::Inbox => {
                let at = self.inbox_at();
                match (self.triage.rows.get(at).cloned(), right) {
                    (Some(InboxRow::Group { key, .. }), _) => self.triage.fold(&key, !right),
                    (Some(_), true) => self.open_selected(effects),
                    (Some(_), false) => {
                        if let Some(heading) = self.triage.heading(at) {
                            self.put_at(TuiPage::Inbox, heading, heading);
                        }
                    }
                    (None, _) => {}
                }
            }
            TuiPage::Sessions => {
                let at = self.session_at();
                match (self.session_rows.get(at).cloned(), right) {
                    (Some(SessionRow::Project { key, .. }), _) => self.fold_project(&key, !right),
                    (Some(_), true) => self.open_selected(effects),
                    (Some(_), false) => {
                        let rows = self.session_rows.iter().take(at);
                        let heading = rows.rev().find(|row| matches!(row, SessionRow::Project { .. }));
                        if let Some(key) = heading.map(|row| row.key().to_owned()) {
                            self.chosen.insert(TuiPage::Sessions, key);
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
        let rows = session_rows(&self.listed(), &self.folded, true);
        let ids = rows.into_iter().filter_map(|row| match row {
            SessionRow::Session { id } => Some(id),
            SessionRow::Project { .. } => None,
        });
        ids.collect()
    }

    /// The words of the filter, in lower case.
    pub(super) fn filter_words(&self) -> Vec<String> {
        self.filter.lines().iter().flat_map(|line| line.split_whitespace()).map(str::to_lowercase).collect()
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
}
