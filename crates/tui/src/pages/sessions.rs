//! The session list: the sessions of each project below its heading.

use std::collections::BTreeSet;

use plexus_protocol::SessionState;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Span;
use ratatui_textarea::TextArea;

use super::context::{Context, MouseAction, MouseInput, Step};
use super::draw::{Draw, cell, state_mark};
use super::layout::{NARROW, first_row, panes, row_at, shows_list, visible_rows};
use super::shared::{ConnectionView, ListState, Shared};
use super::{Hint, Page, TuiPage};
use crate::input::{self, Key};
use crate::sanitize;
use crate::session_list::{SessionRow, session_rows};
use crate::view_model::{SessionItem, span};

/// The page of all sessions.
#[derive(Debug)]
pub(crate) struct SessionsPage {
    pub(crate) rows: Vec<SessionRow>,
    pub(crate) list: ListState,
    /// The filter, and whether the user is typing it.
    pub(crate) filter: TextArea<'static>,
    pub(crate) filtering: bool,
    /// The folded projects.
    pub(crate) folded: BTreeSet<String>,
    /// `true` if archived sessions are listed.
    pub(crate) archived: bool,
}

impl Default for SessionsPage {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            list: ListState::default(),
            filter: input::area(""),
            filtering: false,
            folded: BTreeSet::new(),
            archived: false,
        }
    }
}

impl SessionsPage {
    /// The selected row.
    pub(crate) fn selected(&self) -> usize {
        let hint = self.list.at.unwrap_or_default();
        let named = self.list.chosen.as_ref().and_then(|key| {
            let same = self.rows.get(hint).is_some_and(|row| row.key() == key);
            if same { Some(hint) } else { self.rows.iter().position(|row| row.key() == key) }
        });
        named.unwrap_or_else(|| hint.min(self.rows.len().saturating_sub(1)))
    }

    /// The lines of a row.
    fn row_height(&self, width: u16, at: usize) -> u16 {
        let two = width < NARROW && matches!(self.rows.get(at), Some(SessionRow::Session { .. }));
        if two { 2 } else { 1 }
    }

    /// The first row on the screen: unchanged, unless the selected one would not be visible.
    pub(crate) fn first_visible(&self, shared: &Shared) -> usize {
        let area = panes(shared).list;
        let lines = area.height.saturating_sub(1);
        first_row(self.list.top, self.selected(), self.rows.len(), lines, |at| self.row_height(area.width, at))
    }

    /// The rows on the screen: each with its first line there, and how many of its lines fit.
    pub(crate) fn visible_rows(&self, shared: &Shared) -> Vec<(usize, Rect)> {
        let area = panes(shared).list;
        visible_rows(area, self.list.top..self.rows.len(), |at| self.row_height(area.width, at))
    }

    /// The words of the filter, in lower case.
    pub(crate) fn filter_terms(&self) -> Vec<String> {
        self.filter.lines().iter().flat_map(|line| line.split_whitespace()).map(str::to_lowercase).collect()
    }

    /// The listed sessions: all, or those that match the filter.
    pub(crate) fn listed<'a>(&self, shared: &'a Shared) -> Vec<&'a SessionItem> {
        let text = self.filter_terms();
        let mut list = self.ordered(shared);
        if !text.is_empty() {
            list.retain(|session| {
                let fields = [
                    &*session.name(),
                    &*session.cwd,
                    &*session.project,
                    &*session.branch,
                    &*session.runtime,
                    session.state.as_str(),
                ];
                let all = fields.join(" ").to_lowercase();
                text.iter().all(|word| all.contains(word.as_str()))
            });
        }
        list
    }

    /// The sessions in the order of the list: those that wait for an answer, those that run, others by their latest news, ended ones.
    pub(crate) fn ordered<'a>(&self, shared: &'a Shared) -> Vec<&'a SessionItem> {
        let mut list: Vec<&SessionItem> =
            shared.sessions.all.values().filter(|session| self.archived || !session.archived).collect();
        let rank = |session: &SessionItem| match session.state {
            _ if session.archived => 4,
            SessionState::Waiting => 0,
            SessionState::Running => 1,
            SessionState::Idle | SessionState::Unknown => 2,
            SessionState::Exited => 3,
        };
        list.sort_by(|a, b| (rank(a), -a.position, &a.id).cmp(&(rank(b), -b.position, &b.id)));
        list
    }

    /// The ids of the listed sessions, in the order of their rows.
    pub(crate) fn session_ids(&self, shared: &Shared) -> Vec<String> {
        let rows = session_rows(&self.listed(shared), &self.folded, true);
        let ids = rows.into_iter().filter_map(|row| match row {
            SessionRow::Session { id } => Some(id),
            SessionRow::Project { .. } => None,
        });
        ids.collect()
    }

    /// Builds the rows again if their content has changed. The selected row stays where it is on the screen.
    pub(crate) fn refresh_rows(&mut self, shared: &mut Shared) {
        if !shows_list(shared, TuiPage::Sessions) {
            return;
        }
        if std::mem::take(&mut shared.sessions.changed) {
            let at = self.selected();
            self.rows = session_rows(&self.listed(shared), &self.folded, !self.filter_terms().is_empty());
            // Without a chosen row the first session is selected, even if it changes.
            let position = |key: &String| self.rows.iter().position(|row| row.key() == key);
            let at_now = match self.list.chosen.as_ref().map(position) {
                Some(Some(found)) => found,
                Some(None) => at.min(self.rows.len().saturating_sub(1)),
                None => self.rows.iter().position(|row| matches!(row, SessionRow::Session { .. })).unwrap_or(0),
            };
            self.list.follow(at, at_now);
        }
        self.list.top = self.first_visible(shared);
    }

    fn keys(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.key().to_owned()).collect()
    }

    /// Opens the session of the selected row, or folds the selected project.
    fn open_selected(&mut self, cx: &mut Context<'_>) {
        match self.rows.get(self.selected()).cloned() {
            Some(SessionRow::Project { key, folded, .. }) => self.fold(&key, !folded, cx.shared),
            Some(SessionRow::Session { id }) => cx.then(Step::Open(id)),
            None => {}
        }
    }

    fn fold(&mut self, key: &str, fold: bool, shared: &mut Shared) {
        shared.sessions.changed = true;
        self.list.chosen = Some(key.to_owned());
        if fold {
            self.folded.insert(key.to_owned());
        } else {
            self.folded.remove(key);
        }
    }

    /// Handles Left and Right, which fold and unfold a project; Right on a session opens it.
    fn fold_key(&mut self, right: bool, cx: &mut Context<'_>) {
        let at = self.selected();
        match (self.rows.get(at).cloned(), right) {
            (Some(SessionRow::Project { key, .. }), _) => self.fold(&key, !right, cx.shared),
            (Some(_), true) => self.open_selected(cx),
            (Some(_), false) => {
                let rows = self.rows.iter().take(at);
                let heading = rows.rev().find(|row| matches!(row, SessionRow::Project { .. }));
                if let Some(key) = heading.map(|row| row.key().to_owned()) {
                    self.list.chosen = Some(key);
                }
            }
            (None, _) => {}
        }
    }

    fn filter_key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "Esc" => {
                self.filter = input::area("");
                self.filtering = false;
                cx.shared.sessions.changed = true;
            }
            "Enter" => self.filtering = false,
            "Up" | "Down" | "PageUp" | "PageDown" | "Tab" | "S-Tab" => {
                self.filtering = false;
                cx.then(Step::Key(key.clone()));
            }
            "M-Enter" | "C-j" | "S-Enter" => {}
            _ => {
                input::edit(&mut self.filter, key);
                cx.shared.sessions.changed = true;
                // The first match is selected while the filter is typed.
                (self.list.at, self.list.chosen) = (Some(0), None);
            }
        }
    }
}

impl Page for SessionsPage {
    fn early_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        if self.filtering {
            self.filter_key(key, cx);
            return true;
        }
        let clears_filter = key.name() == "Esc" && !self.filter.is_empty();
        if clears_filter {
            cx.shared.sessions.changed = true;
            self.filter = input::area("");
        }
        clears_filter
    }

    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        if matches!(key.name(), "Left" | "Right") {
            return self.fold_key(key.name() == "Right", cx);
        }
        let store = &mut cx.shared.sessions;
        if store.older.is_some() && std::mem::take(&mut store.older_failed) {
            store.reading = false;
        }
        match key.name() {
            "f" => self.filtering = true,
            "Enter" => self.open_selected(cx),
            "a" => {
                self.archived = !self.archived;
                cx.shared.sessions.changed = true;
            }
            "N" => cx.command("new"),
            // The same keys as on the web page.
            "r" | "e" => {
                let selected = self.selected_session(cx.shared);
                if let Some(session) = selected.and_then(|id| cx.shared.sessions.all.get(&id).cloned()) {
                    let name = if key.name() == "r" { "rename" } else { "archive" };
                    cx.then(Step::SessionCommand(name, Box::new(session)));
                }
            }
            name => self.list.step(name, self.selected(), &self.keys()),
        }
    }

    fn paste(&mut self, text: &str, cx: &mut Context<'_>) {
        if self.filtering {
            self.filter.insert_str(text.replace('\n', " "));
            cx.shared.sessions.changed = true;
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let (keys, selected) = (self.keys(), self.selected());
        if mouse.action != MouseAction::Click {
            self.list.choose(mouse.moved(selected, keys.len()), &keys);
            return;
        }
        let Some(at) = row_at(&self.visible_rows(cx.shared), mouse) else { return };
        let again = cx.shared.page == TuiPage::Sessions && selected == at;
        if cx.shared.page != TuiPage::Sessions {
            cx.go(TuiPage::Sessions);
        }
        self.list.choose(at, &keys);
        if again {
            self.open_selected(cx);
        }
    }

    fn takes_text(&self, _shared: &Shared) -> bool {
        self.filtering
    }

    fn selected_session(&self, _shared: &Shared) -> Option<String> {
        match self.rows.get(self.selected())? {
            SessionRow::Session { id } => Some(id.clone()),
            SessionRow::Project { .. } => None,
        }
    }

    fn hints(&self, _shared: &Shared) -> Vec<Hint> {
        if self.filtering {
            return vec![("Enter", "list"), ("Esc", "all sessions")];
        }
        vec![
            ("↑↓", "move"),
            ("Enter", "open"),
            ("←→", "fold"),
            ("f", "filter"),
            ("N", "new"),
            ("a", "archived"),
            (":", "commands"),
            ("?", "keys"),
            ("q", "quit"),
        ]
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        draw.sessions(self);
    }
}

impl Draw<'_> {
    fn sessions(&mut self, page: &SessionsPage) {
        let shared = self.shared;
        let theme = &shared.theme;
        let area = panes(shared).list;
        let filtered = !page.filter.is_empty() || page.filtering;
        if page.rows.is_empty() {
            let none = match shared.link {
                ConnectionView::Live if filtered && shared.sessions.is_reading() => "Reading older sessions …",
                ConnectionView::Live if filtered => "No matching sessions. Esc shows all sessions.",
                ConnectionView::Live => {
                    "No sessions yet. N starts one with an attached agent; `plexus run demo` starts an agent."
                }
                _ => "Connecting …",
            };
            self.list(area, "", Vec::new(), 0, none);
        } else {
            self.session_heads(page, area);
            let at = page.selected();
            for (n, area) in page.visible_rows(shared) {
                match page.rows.get(n) {
                    Some(SessionRow::Project { name, sessions, waiting, folded, .. }) => {
                        self.project(area, name, (*sessions, *waiting), *folded);
                    }
                    Some(SessionRow::Session { id }) => {
                        if let Some(session) = shared.sessions.all.get(id) {
                            self.session_row(area, session);
                        }
                    }
                    None => {}
                }
                if n == at {
                    self.mark_row(area);
                }
            }
        }
        if filtered {
            let more = if shared.sessions.is_reading() { " …" } else { "" };
            let found = page.rows.iter().filter(|row| matches!(row, SessionRow::Session { .. })).count();
            let count = format!(" {found}{more} ");
            let wide = u16::try_from(sanitize::width(&count)).unwrap_or(0);
            self.put(area.x, area.y, " ".repeat(usize::from(area.width)), area.width);
            self.put(area.x + 1, area.y, Span::styled("filter ", theme.accent), 8);
            let field = Rect::new(area.x + 8, area.y, area.width.saturating_sub(8 + wide), 1);
            self.field(field, &page.filter, page.filtering);
            self.right(area, vec![Span::styled(count, theme.dim)], wide);
        }
    }

    /// The columns of a wide list: the title, the current activity, and the rest of the line.
    fn session_columns(area: Rect) -> (usize, usize) {
        let flexible = usize::from(area.width).saturating_sub(3 + 11 + 11 + 5 + 9);
        let title = (flexible * 5 / 9).max(10);
        (title, flexible.saturating_sub(title))
    }

    fn session_heads(&mut self, page: &SessionsPage, area: Rect) {
        let theme = &self.shared.theme;
        if area.width < NARROW {
            let sessions = page.rows.iter().filter(|row| matches!(row, SessionRow::Session { .. })).count();
            let text = format!("{sessions} session{}", if sessions == 1 { "" } else { "s" });
            return self.list_head(area, vec![Span::styled(text, theme.dim)]);
        }
        let (title, activity) = Self::session_columns(area);
        let heads = format!(
            "  {:<title$}{:<11}{:<activity$}{:<11}{:>4}{:>9}",
            "SESSION", "STATE", "NOW", "AGENT", "NEWS", "AGE"
        );
        self.list_head(area, vec![Span::styled(heads, theme.dim)]);
    }

    fn project(&mut self, area: Rect, name: &str, (sessions, waiting): (usize, usize), folded: bool) {
        let theme = &self.shared.theme;
        let wait = if waiting > 0 { format!("?{waiting} ") } else { String::new() };
        let count = format!("{sessions} ");
        let space = usize::from(area.width).saturating_sub(4 + count.len() + wait.len());
        let spans = vec![
            Span::styled(if folded { " ▸ " } else { " ▾ " }, theme.dim),
            cell(name, space.saturating_sub(1), theme.accent),
            Span::styled(wait, theme.warn.add_modifier(Modifier::BOLD)),
            Span::styled(count, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }

    fn session_row(&mut self, area: Rect, session: &SessionItem) {
        let shared = self.shared;
        let theme = &shared.theme;
        let width = usize::from(area.width);
        let (mark, style) = state_mark(shared, session);
        let unread = shared.sessions.is_unread(session);
        let name = session.name();
        let name_style = if unread > 0 { theme.text.add_modifier(Modifier::BOLD) } else { theme.text };
        let activity = match (session.state, shared.sessions.activities.get(&session.id)) {
            (SessionState::Running, Some(activity)) => activity.clone(),
            _ if !session.activity.is_empty() => session.activity.clone(),
            (SessionState::Waiting, _) => "asks you".into(),
            _ if session.archived => "archived".into(),
            _ if session.linked => "terminal open".into(),
            _ => String::new(),
        };
        let badge = match (session.open, unread) {
            (0, 0) => Span::raw("     "),
            (0, count) => Span::styled(format!("{:>4} ", format!("•{}", count.min(99))), theme.accent),
            (open, _) => Span::styled(format!("{:>4} ", format!("?{open}")), theme.warn.add_modifier(Modifier::BOLD)),
        };
        let age = span(shared.now - session.updated);
        let mark = Span::styled(format!(" {mark} "), style);
        if area.width < NARROW {
            let first = vec![
                mark,
                cell(&name, width.saturating_sub(3 + 1 + 5 + 7), name_style),
                badge,
                Span::styled(format!("{age:>6}"), theme.dim),
            ];
            self.put(area.x, area.y, first, area.width);
            let text = [session.state.as_str(), &session.runtime, &session.branch, &activity];
            let text: Vec<&str> = text.into_iter().filter(|text| !text.is_empty()).collect();
            let second = sanitize::cut(&text.join(" · "), width.saturating_sub(4));
            if area.height > 1 {
                self.put(area.x + 3, area.y + 1, Span::styled(second, theme.dim), area.width.saturating_sub(3));
            }
            return;
        }
        let (title, space) = Self::session_columns(area);
        // The branch takes a part of the name's column.
        let branch = match session.branch.as_str() {
            "" => String::new(),
            branch => format!("[{}] ", sanitize::cut(branch, title / 3)),
        };
        let spans = vec![
            mark,
            cell(&name, title.saturating_sub(1 + sanitize::width(&branch)), name_style),
            Span::styled(branch, theme.dim),
            cell(session.state.as_str(), 10, style),
            cell(&activity, space.saturating_sub(1), theme.dim),
            cell(&session.runtime, 10, theme.dim),
            badge,
            Span::styled(format!("{age:>8} "), theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }
}
