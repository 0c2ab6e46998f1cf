//! Where the panes are: a list at the left, the conversation in the middle, and what belongs to it at the right. On a narrow terminal
//! there is one of them at a time.

use super::*;
use crate::session_list::SessionRow;

/// From this many columns, a list and a session are shown side by side.
const PANES_MIN: u16 = 120;
/// From this many columns, there is a pane at the right of the session too.
const DETAIL_MIN: u16 = 180;
/// The narrowest and the widest list beside a session, in columns.
const LIST_COLUMNS: (u16, u16) = (40, 60);
/// The same for the pane at the right.
const DETAIL_COLUMNS: (u16, u16) = (50, 70);

/// Where each pane is; without columns if it is not on the screen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Panes {
    pub(super) list: Rect,
    pub(super) middle: Rect,
    pub(super) detail: Rect,
}

/// A pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    List,
    Middle,
    Detail,
}

/// Whether a list and a session are side by side.
pub(crate) fn has_panes(app: &App) -> bool {
    app.shared.size.0 >= PANES_MIN
        && app.shared.size.1 >= HEIGHT_MIN
        && matches!(app.shared.page, TuiPage::Inbox | TuiPage::Sessions | TuiPage::Session)
}

/// The panes of the screen.
pub(super) fn panes(app: &App) -> Panes {
    let all = body(app);
    let none = Rect::default();
    if !has_panes(app) {
        return match app.shared.page {
            TuiPage::Session => Panes { middle: all, ..Panes::default() },
            _ => Panes { list: all, ..Panes::default() },
        };
    }
    let share = all.width * 3 / 10;
    let list = Rect { width: share.clamp(LIST_COLUMNS.0, LIST_COLUMNS.1), ..all };
    let wide = if all.width >= DETAIL_MIN { share.clamp(DETAIL_COLUMNS.0, DETAIL_COLUMNS.1) } else { 0 };
    let detail = if wide > 0 { Rect { x: all.width - wide, width: wide, ..all } } else { none };
    // A rule stands between two panes.
    let from = list.width + 1;
    let to = if wide > 0 { detail.x - 1 } else { all.width };
    Panes { list, middle: Rect { x: from, width: to.saturating_sub(from), ..all }, detail }
}

/// The pane at this place of the screen.
pub(crate) fn pane_at(app: &App, column: u16, row: u16) -> Option<Pane> {
    let panes = panes(app);
    let all = [(panes.list, Pane::List), (panes.middle, Pane::Middle), (panes.detail, Pane::Detail)];
    all.into_iter().find_map(|(area, pane)| area.contains((column, row).into()).then_some(pane))
}

/// The area of the list on the screen: on a narrow terminal, the inbox is above the card.
pub(super) fn list_area(app: &App) -> Rect {
    let area = panes(app).list;
    if app.shared.page != TuiPage::Inbox || has_panes(app) || app.pages.inbox.triage.rows.is_empty() {
        return area;
    }
    let most = if area.height < LOW { 3 } else { (area.height * 2 / 5).max(5) };
    let mut height = 1;
    for row in &app.pages.inbox.triage.rows {
        height += row.height();
        if height >= most {
            break;
        }
    }
    Rect { height: height.min(most), ..area }
}

/// Where a card can be: its width, and its greatest height.
pub(super) fn card_place(app: &App) -> Option<Rect> {
    let panes = panes(app);
    match app.shared.page {
        TuiPage::Session | TuiPage::Inbox if panes.detail.width > 0 => {
            let form = app.shared.card.card.as_ref().is_some_and(Card::is_form);
            let height = if form { panes.detail.height } else { panes.detail.height * 8 / 10 };
            Some(Rect { y: panes.detail.y + panes.detail.height - height, height, ..panes.detail })
        }
        TuiPage::Session | TuiPage::Inbox if panes.middle.width > 0 => {
            let rows = rows(app);
            Some(Rect { height: card_max(app, rows.conversation.height + rows.card.height), ..rows.card })
        }
        TuiPage::Inbox => {
            let (all, list) = (panes.list, list_area(app).height);
            Some(Rect { y: all.y + list, height: all.height.saturating_sub(list), ..all })
        }
        _ => None,
    }
}

/// Where the card is drawn: at the bottom of its place if there is something above it.
pub(super) fn card_rect(app: &App) -> Option<Rect> {
    let place = card_place(app)?;
    let card = app.shared.card.card.as_ref()?;
    let (ask, _) = app.shared.requests.get(&card.id)?;
    let panes = panes(app);
    if panes.middle.width > 0 && panes.detail.width == 0 {
        return Some(rows(app).card);
    }
    let height = card.shape(ask, place.width, usize::from(place.height), &app.shared.theme).height;
    let height = u16::try_from(height).unwrap_or(place.height).min(place.height);
    let y = if panes.detail.width > 0 { place.y + place.height - height } else { place.y };
    Some(Rect { y, height, ..place })
}

/// The lines of a row of a list.
fn row_height(app: &App, page: TuiPage, area: Rect, at: usize) -> u16 {
    match page {
        TuiPage::Inbox => app.pages.inbox.triage.rows.get(at).map_or(1, |row| row.height()),
        TuiPage::Sessions if area.width < NARROW => match app.pages.sessions.rows.get(at) {
            Some(SessionRow::Session { .. }) => 2,
            _ => 1,
        },
        _ => 1,
    }
}

/// The first row on the screen: as before, unless the selected one would not be on it.
pub(crate) fn list_top(app: &App, page: TuiPage) -> usize {
    let area = list_area(app);
    let room = area.height.saturating_sub(1);
    let (at, many, before) = match page {
        TuiPage::Inbox => (app.inbox_at(), app.pages.inbox.triage.rows.len(), app.pages.inbox.list.top),
        _ => (app.session_at(), app.pages.sessions.rows.len(), app.pages.sessions.list.top),
    };
    first_row(before, at, many, room, |n| row_height(app, page, area, n))
}

/// The first of `many` rows such that the one at `at` is within `room` lines, and no line is empty before the end.
fn first_row(before: usize, at: usize, many: usize, room: u16, height: impl Fn(usize) -> u16) -> usize {
    // Up from a row as far as they fit.
    let fits = |last: usize| {
        let (mut first, mut used) = (last, height(last));
        while first > 0 && used + height(first - 1) <= room {
            first -= 1;
            used += height(first);
        }
        first
    };
    if many == 0 {
        return 0;
    }
    let at = at.min(many - 1);
    before.min(at).max(fits(at)).min(fits(many - 1))
}

/// The rows on the screen: each with its first line there, and how many of its lines fit.
pub(super) fn visible_rows(app: &App, page: TuiPage) -> Vec<(usize, Rect)> {
    let area = list_area(app);
    let (many, top) = match page {
        TuiPage::Inbox => (app.pages.inbox.triage.rows.len(), app.pages.inbox.list.top),
        _ => (app.pages.sessions.rows.len(), app.pages.sessions.list.top),
    };
    let (mut y, end) = (area.y + 1, area.y + area.height);
    let mut out = Vec::new();
    for at in top..many {
        if y >= end {
            break;
        }
        let height = row_height(app, page, area, at).min(end - y);
        out.push((at, Rect { y, height, ..area }));
        y += height;
    }
    out
}

/// The row of the list at this place of the screen.
pub(crate) fn row_at(app: &App, column: u16, row: u16) -> Option<usize> {
    let page = app.shared.list_page();
    let all = body(app);
    let chosen = app.row_index(page);
    let (shown, at, area) = match page {
        TuiPage::Inbox | TuiPage::Sessions => {
            let rows = visible_rows(app, page);
            return rows.into_iter().find_map(|(at, area)| area.contains((column, row).into()).then_some(at));
        }
        TuiPage::Runtimes => (app.shared.runtimes.len(), chosen, Rect { height: runtimes_height(all), ..all }),
        TuiPage::Devices => (app.pages.devices.devices.len(), chosen, Rect { height: runtimes_height(all), ..all }),
        TuiPage::Search => (app.pages.search.hits.len(), chosen, Rect { y: all.y + 1, height: all.height - 1, ..all }),
        TuiPage::Session => return None,
    };
    let line = row.checked_sub(area.y + 1).filter(|line| line + 1 < area.height)?;
    let at = window(shown, at, usize::from(area.height - 1)).1 + usize::from(line);
    (at < shown).then_some(at)
}

impl Draw<'_> {
    /// Draws the list, the conversation, and what belongs to it: as many of them as there is room for.
    pub(super) fn panes(&mut self) {
        let app = self.app;
        let panes = panes(app);
        for x in [panes.middle.x, panes.detail.x] {
            if x > 0 {
                for y in panes.list.y..panes.list.y + panes.list.height {
                    self.put(x - 1, y, Span::styled("│", app.shared.theme.rule), 1);
                }
            }
        }
        if panes.list.width > 0 {
            match app.shared.list_page() {
                TuiPage::Inbox => self.inbox(),
                _ => self.sessions(),
            }
        }
        if panes.middle.width > 0 {
            self.session();
        }
        if panes.detail.width > 0 {
            self.detail(panes.detail);
        }
    }

    /// The heading of a list, which shows whether the keys go there.
    pub(super) fn list_head(&mut self, area: Rect, words: Vec<Span<'static>>) {
        let focus = has_panes(self.app) && self.app.shared.page != TuiPage::Session;
        let mut spans = vec![if focus { Span::styled("▌", self.app.shared.theme.accent) } else { Span::raw(" ") }];
        spans.extend(words);
        self.put(area.x, area.y, spans, area.width);
    }

    /// Marks the selected row of a list.
    pub(super) fn mark_row(&mut self, area: Rect) {
        if has_panes(self.app) && self.app.shared.page == TuiPage::Session {
            return self.put(area.x, area.y, Span::styled("▸", self.app.shared.theme.accent), 1);
        }
        self.fill(area, self.app.shared.theme.selected);
    }

    /// The pane at the right: the session, its plan and its latest tool calls, and the open card.
    fn detail(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        let card = card_rect(app);
        let end = card.map_or(area.y + area.height, |card| card.y);
        let (x, width) = (area.x + 1, area.width.saturating_sub(2));
        let mut lines = Vec::new();
        if let Some(conversation) = &app.pages.session.conversation {
            if let Some(session) = app.shared.sessions.all.get(&conversation.session) {
                let name = sanitize::cut(&session.name(), usize::from(width));
                lines.push(Line::from(Span::styled(name, theme.text.add_modifier(Modifier::BOLD))));
                lines.push(Line::from(Span::styled(sanitize::cut(&session.cwd, usize::from(width)), theme.dim)));
                let mut words = vec![session.runtime.clone()];
                words.extend(Some(session.branch.clone()).filter(|branch| !branch.is_empty()));
                words.extend(conversation.settings.current_names());
                let words = sanitize::cut(&words.join(" · "), usize::from(width));
                lines.push(Line::from(Span::styled(words, theme.dim)));
            }
            let room = usize::from(end.saturating_sub(area.y)).saturating_sub(lines.len());
            let cx = DrawContext { theme, width, height: room, now: app.shared.now };
            lines.extend(conversation.detail(&cx));
        }
        for (y, line) in (area.y..end).zip(lines) {
            self.put(x, y, line, width);
        }
        if let Some(card) = card {
            self.card(card);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_row_keeps_the_screen_still_and_the_selected_row_on_it() {
        let two = |_: usize| 2;
        // Ten rows of two lines, on six lines: three rows.
        for (before, at, top) in
            [(0, 0, 0), (0, 2, 0), (0, 3, 1), (5, 5, 5), (5, 4, 4), (5, 7, 5), (5, 8, 6), (9, 9, 7)]
        {
            assert_eq!(first_row(before, at, 10, 6, two), top, "{before} {at}");
        }
        assert_eq!(first_row(3, 9, 0, 6, two), 0, "no rows");
        assert_eq!(first_row(7, 1, 2, 6, two), 0, "all fit");
        assert_eq!(first_row(0, 4, 10, 1, two), 4, "a row that does not fit is at the top");
    }
}
