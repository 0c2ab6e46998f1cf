//! The inbox: the requests of all sessions.

mod several;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::context::{Context, MouseAction, MouseInput, Step};
use super::draw::{Draw, cell};
use super::layout::{LOW, card_rect, first_row, has_panes, panes, row_at, shows_list, visible_rows};
use super::shared::{ListState, Shared};
use super::{Hint, Page, TuiPage};
use crate::input::Key;
use crate::markdown::wrap;
use crate::sanitize;
use crate::triage::{InboxRow, Triage, headline};
use crate::view_model::{RequestResult, RequestView, RiskView, SessionItem, span};
use several::SeveralAnswers;
pub(crate) use several::answer;

#[derive(Debug, Default)]
pub(crate) struct InboxPage {
    /// The rows and the selection.
    pub(crate) triage: Triage,
    pub(crate) list: ListState,
    /// `true` if the list was on the screen.
    on_screen: bool,
    /// Answers to several requests that are being sent.
    several: Option<SeveralAnswers>,
}

impl InboxPage {
    /// The selected row.
    pub(crate) fn selected(&self) -> usize {
        let named = self.list.chosen.as_ref().and_then(|key| self.triage.at(key, self.list.at));
        let last = self.triage.rows.len().saturating_sub(1);
        named.unwrap_or_else(|| self.list.at.map_or_else(|| self.triage.first(), |at| at.min(last)))
    }

    /// The area of the list: on a narrow terminal, it is above the card.
    pub(crate) fn list_area(&self, shared: &Shared) -> Rect {
        let area = panes(shared).list;
        if shared.page != TuiPage::Inbox || has_panes(shared) || self.triage.rows.is_empty() {
            return area;
        }
        let max = if area.height < LOW { 3 } else { (area.height * 2 / 5).max(5) };
        let mut height = 1;
        for row in &self.triage.rows {
            height += row.height();
            if height >= max {
                break;
            }
        }
        Rect { height: height.min(max), ..area }
    }

    /// The space for a card below the list.
    pub(crate) fn card_space(&self, shared: &Shared) -> Rect {
        let (all, list) = (panes(shared).list, self.list_area(shared).height);
        Rect { y: all.y + list, height: all.height.saturating_sub(list), ..all }
    }

    fn row_height(&self, at: usize) -> u16 {
        self.triage.rows.get(at).map_or(1, InboxRow::height)
    }

    /// The first row on the screen: unchanged, unless the selected one would not be visible.
    pub(crate) fn first_visible(&self, shared: &Shared) -> usize {
        let lines = self.list_area(shared).height.saturating_sub(1);
        first_row(self.list.top, self.selected(), self.triage.rows.len(), lines, |at| self.row_height(at))
    }

    /// The rows on the screen: each with its first line there, and how many of its lines fit.
    pub(crate) fn visible_rows(&self, shared: &Shared) -> Vec<(usize, Rect)> {
        let rows = self.list.top..self.triage.rows.len();
        visible_rows(self.list_area(shared), rows, |at| self.row_height(at))
    }

    fn keys(&self) -> Vec<String> {
        self.triage.rows.iter().map(|row| row.key().to_owned()).collect()
    }

    /// The requests of the rows, in their order.
    pub(crate) fn request_ids(&self, shared: &Shared) -> Vec<String> {
        self.keys().into_iter().filter(|key| shared.requests.contains_key(key)).collect()
    }

    /// Builds the rows again if their content has changed. The selected row stays where it is on the screen.
    pub(crate) fn refresh_rows(&mut self, shared: &mut Shared) {
        let visible = shows_list(shared, TuiPage::Inbox);
        if std::mem::take(&mut shared.requests_changed) || visible != self.on_screen {
            self.triage.touch();
        }
        if visible && self.triage.is_stale(shared.now) {
            let at = self.selected();
            let after: Vec<String> = self.triage.rows.iter().skip(at).map(|row| row.key().to_owned()).collect();
            self.triage.rebuild(&shared.requests, self.on_screen, shared.now);
            let at_now = match after.iter().find_map(|key| self.triage.at(key, None)) {
                Some(found) => found,
                None if after.is_empty() => self.triage.first(),
                None => self.triage.rows.len().saturating_sub(1),
            };
            self.put_at(at, at_now);
        }
        self.on_screen = visible;
        if visible {
            self.list.top = self.first_visible(shared);
        }
    }

    /// Moves the selection to a row whose index has changed.
    fn put_at(&mut self, before: usize, now: usize) {
        self.list.follow(before, now);
        self.list.chosen = self.triage.rows.get(now).map(|row| row.key().to_owned());
    }

    /// Gives the focus to the card of the row that was chosen.
    fn focus_chosen(&self, shared: &mut Shared) {
        let request = self.request(shared);
        if shared.card.card.as_ref().map(|card| &card.id) != request.as_ref() {
            shared.show_card(request.as_deref());
        }
        shared.focus_card();
    }

    /// Opens the session of the selected row, or folds the selected group.
    fn open_selected(&mut self, cx: &mut Context<'_>) {
        match self.triage.rows.get(self.selected()).cloned() {
            Some(InboxRow::Group { key, folded, .. }) => self.triage.fold(&key, !folded),
            Some(InboxRow::Request { .. }) => {
                if let Some(session) = self.selected_session(cx.shared) {
                    let id = cx.shared.card.card.as_ref().map(|card| card.id.clone());
                    cx.then(Step::Answer(session, id));
                }
            }
            None => {}
        }
    }

    /// Handles Left and Right, which fold and unfold a group; Right on a request opens its session.
    fn fold_key(&mut self, right: bool, cx: &mut Context<'_>) {
        let at = self.selected();
        match (self.triage.rows.get(at).cloned(), right) {
            (Some(InboxRow::Group { key, .. }), _) => self.triage.fold(&key, !right),
            (Some(_), true) => self.open_selected(cx),
            (Some(_), false) => {
                if let Some(heading) = self.triage.heading(at) {
                    self.put_at(heading, heading);
                }
            }
            (None, _) => {}
        }
    }
}

impl Page for InboxPage {
    fn early_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        !cx.shared.card_takes_text() && self.triage_key(key, cx.shared)
    }

    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "Left" | "Right" => return self.fold_key(key.name() == "Right", cx),
            "Enter" => return self.open_selected(cx),
            "N" => return cx.then(Step::NewSession(None)),
            _ => {}
        }
        self.list.step(key.name(), self.selected(), &self.keys());
        if matches!(key.name(), "Down" | "j" | "Up" | "k" | "PageDown" | "PageUp" | "Home" | "End" | "g" | "G") {
            self.focus_chosen(cx.shared);
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let (keys, selected) = (self.keys(), self.selected());
        if mouse.action != MouseAction::Click {
            self.list.choose(mouse.moved(selected, keys.len()), &keys);
            return;
        }
        let Some(at) = row_at(&self.visible_rows(cx.shared), mouse) else { return };
        let again = cx.shared.page == TuiPage::Inbox && selected == at;
        if cx.shared.page != TuiPage::Inbox {
            cx.go(TuiPage::Inbox);
        }
        self.list.choose(at, &keys);
        self.focus_chosen(cx.shared);
        if again {
            self.open_selected(cx);
        }
    }

    fn request(&self, _shared: &Shared) -> Option<String> {
        match self.triage.rows.get(self.selected())? {
            InboxRow::Request { id, .. } => Some(id.clone()),
            InboxRow::Group { .. } => None,
        }
    }

    fn selected_session(&self, shared: &Shared) -> Option<String> {
        match self.triage.rows.get(self.selected())? {
            InboxRow::Group { session: false, .. } => None,
            row => Some(shared.requests.get(row.ids().first()?)?.0.session.clone()),
        }
    }

    fn hints(&self, _shared: &Shared) -> Vec<Hint> {
        if !self.triage.selected.is_empty() {
            return vec![
                ("a", "allow once"),
                ("d", "deny"),
                ("r", "deny with a reason"),
                ("x", "select"),
                ("X", "clear"),
                ("?", "keys"),
            ];
        }
        vec![
            ("↑↓", "move"),
            ("a", "allow once"),
            ("d", "deny"),
            ("x", "select"),
            ("Enter", "open session"),
            ("?", "keys"),
            ("q", "quit"),
        ]
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        draw.inbox(self);
    }
}

/// The text about requests that only a newer version can show, with their number.
fn unreadable_text(shared: &Shared) -> Option<String> {
    match shared.unreadable_requests.len() {
        0 => None,
        1 => Some("1 request needs a newer plexus".to_owned()),
        count => Some(format!("{count} requests need a newer plexus")),
    }
}

/// The mark of a request's risk or outcome.
fn risk_mark(shared: &Shared, ask: &RequestView, outcome: Option<&RequestResult>) -> (&'static str, Style) {
    let theme = &shared.theme;
    match (outcome, ask.risk) {
        (Some(_), _) => ("✔", theme.dim),
        (None, RiskView::Danger) => ("▲", theme.bad),
        (None, RiskView::Elevated) => ("◆", theme.warn),
        (None, RiskView::Low) => ("•", theme.ok),
    }
}

impl Draw<'_> {
    pub(crate) fn inbox(&mut self, page: &InboxPage) {
        let shared = self.shared;
        let theme = &shared.theme;
        let area = page.list_area(shared);
        if page.triage.rows.is_empty() {
            let none = "Nothing waits for you. Requests of agents appear here and on every other screen; the first answer \
                        counts.";
            let unreadable = unreadable_text(shared);
            return self.list(area, "", Vec::new(), 0, unreadable.as_deref().unwrap_or(none));
        }
        let (open, _) = shared.open_asks();
        let danger =
            shared.requests.values().filter(|(ask, outcome)| outcome.is_none() && ask.risk == RiskView::Danger);
        let danger = danger.count();
        let mut head = vec![Span::styled(format!("{open} waiting"), theme.dim)];
        if danger > 0 {
            head.push(Span::styled(format!(" · {danger} dangerous"), theme.bad));
        }
        let selected = page.triage.selected.len();
        if selected > 0 {
            head.push(Span::styled(format!(" · {selected} selected"), theme.accent));
        }
        if let Some(unreadable) = unreadable_text(shared) {
            head.push(Span::styled(format!(" · {unreadable}"), theme.warn));
        }
        self.list_head(area, head);
        let at = page.selected();
        for (n, area) in page.visible_rows(shared) {
            let Some(row) = page.triage.rows.get(n) else { continue };
            match row {
                InboxRow::Group { session, ids, folded, .. } => self.inbox_group(page, area, *session, ids, *folded),
                InboxRow::Request { id, grouped } => self.inbox_request(page, area, id, *grouped),
            }
            if n == at {
                self.mark_row(area);
            }
        }
        if has_panes(shared) {
            return;
        }
        match card_rect(shared, page.card_space(shared)) {
            Some(card) => self.card(card),
            None => {
                let area = Rect { y: area.y + area.height, ..area };
                let text = "A group: x selects its requests, a and d then answer all of them; Enter folds it.";
                let margin = Span::raw("  ");
                let space = usize::from(area.width).saturating_sub(2);
                for (y, line) in (area.y + 1..).zip(wrap(&[Span::styled(text, theme.dim)], &margin, &margin, space)) {
                    if y + 1 < shared.size.1 {
                        self.put(area.x, y, line, area.width);
                    }
                }
            }
        }
    }

    fn inbox_group(&mut self, page: &InboxPage, area: Rect, session: bool, ids: &[String], folded: bool) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some((ask, _)) = ids.first().and_then(|id| shared.requests.get(id)) else { return };
        let text = match session {
            true => shared.sessions.all.get(&ask.session).map_or_else(|| ask.runtime.clone(), SessionItem::name),
            false => headline(ask),
        };
        let chosen = ids.iter().filter(|id| page.triage.selected.contains(*id)).count();
        let count = match chosen {
            0 => format!("{} ", ids.len()),
            _ => format!("{chosen} of {} selected ", ids.len()),
        };
        let fold = if folded { "▸" } else { "▾" };
        let space = usize::from(area.width).saturating_sub(5 + sanitize::width(&count));
        let spans = vec![
            Span::styled(if chosen > 0 { "✓" } else { " " }, theme.accent),
            Span::styled(format!("{fold} "), theme.dim),
            cell(&text, space, theme.text.add_modifier(Modifier::BOLD)),
            Span::styled(count, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }

    /// Draws a request in two lines: its question; its risk and the first reason, its agent, its project and its age.
    fn inbox_request(&mut self, page: &InboxPage, area: Rect, id: &str, grouped: bool) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some((ask, outcome)) = shared.requests.get(id) else { return };
        let (mark, style) = risk_mark(shared, ask, outcome.as_ref());
        let width = usize::from(area.width);
        let indent = if grouped { "  " } else { "" };
        let session = shared.sessions.all.get(&ask.session);
        // In a group, the session distinguishes the requests.
        let text = match session.filter(|_| grouped) {
            Some(session) => format!("{} · {}", headline(ask), session.name()),
            None => headline(ask),
        };
        let line = vec![
            Span::styled(if page.triage.selected.contains(id) { "✓" } else { " " }, theme.accent),
            Span::styled(format!("{indent}{mark} "), style),
            Span::styled(
                sanitize::cut(&text, width.saturating_sub(4 + indent.len())),
                if outcome.is_none() { theme.text } else { theme.dim },
            ),
        ];
        self.put(area.x, area.y, line, area.width);
        if area.height < 2 {
            return;
        }
        let space = width.saturating_sub(4 + indent.len());
        let project = session.map_or("", |session| session.project.as_str());
        let age = span(shared.now - ask.opened);
        let (text, text_style) = match outcome {
            Some(outcome) => (outcome.text(shared.now), theme.dim),
            None => match ask.reasons.first() {
                Some(reason) => (format!("{}  {reason}", ask.risk.name()), style),
                None => (ask.risk.name().to_owned(), style),
            },
        };
        // The reason is not cut as long as it fits: first the project is left out, then the agent, and finally the age.
        let origin = match project {
            "" => vec![format!(" · {} · {age}", ask.runtime), format!(" · {age}")],
            project => vec![
                format!(" · {} · {project} · {age}", ask.runtime),
                format!(" · {} · {age}", ask.runtime),
                format!(" · {age}"),
            ],
        };
        let left = space.saturating_sub(sanitize::width(&text));
        let origin = origin.into_iter().find(|text| sanitize::width(text) <= left).unwrap_or_default();
        let text = sanitize::cut(&text, space);
        let line = vec![
            Span::raw(format!("   {indent}")),
            Span::styled(text, text_style.remove_modifier(Modifier::BOLD)),
            Span::styled(origin, theme.dim),
        ];
        self.put(area.x, area.y + 1, line, area.width);
    }
}
