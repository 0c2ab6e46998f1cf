//! The inbox: its rows, and the question whether to answer several requests.

use super::panes::{card_rect, list_area, visible_rows};
use super::*;
use crate::triage::{InboxRow, Sense, SeveralQuestion, asked};
use crate::view_model::{RequestResult, RequestView};

/// The mark of a request's risk, or of its end.
fn risk_mark(app: &App, ask: &RequestView, outcome: Option<&RequestResult>) -> (&'static str, Style) {
    let theme = &app.shared.theme;
    match (outcome, ask.risk) {
        (Some(_), _) => ("✔", theme.dim),
        (None, RiskView::Danger) => ("▲", theme.bad),
        (None, RiskView::Elevated) => ("◆", theme.warn),
        (None, RiskView::Low) => ("•", theme.ok),
    }
}

/// The most lines of the question about several requests that are on the screen.
fn several_rows(app: &App, question: &SeveralQuestion) -> u16 {
    let most = app.shared.size.1.saturating_sub(8).clamp(2, 20);
    u16::try_from(several_lines(question)).unwrap_or(most).clamp(1, most)
}

/// All lines of that question.
fn several_lines(question: &SeveralQuestion) -> usize {
    let headings = usize::from(!question.plan.out.is_empty());
    question.plan.will.len() + question.plan.out.len() + headings
}

/// How far that question can be scrolled.
pub(crate) fn several_end(app: &App, question: &SeveralQuestion) -> usize {
    several_lines(question).saturating_sub(usize::from(several_rows(app, question)))
}

impl Draw<'_> {
    pub(super) fn inbox(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let area = list_area(app);
        if app.pages.inbox.triage.rows.is_empty() {
            let none = "Nothing waits for you. Requests of agents appear here and on every other screen; the first answer \
                        counts.";
            return self.list(area, "", Vec::new(), 0, none);
        }
        let (open, _) = app.shared.open_asks();
        let danger =
            app.shared.requests.values().filter(|(ask, outcome)| outcome.is_none() && ask.risk == RiskView::Danger);
        let danger = danger.count();
        let mut head = vec![Span::styled(format!("{open} waiting"), theme.dim)];
        if danger > 0 {
            head.push(Span::styled(format!(" · {danger} dangerous"), theme.bad));
        }
        let selected = app.pages.inbox.triage.selected.len();
        if selected > 0 {
            head.push(Span::styled(format!(" · {selected} selected"), theme.accent));
        }
        self.list_head(area, head);
        let at = app.inbox_at();
        for (n, area) in visible_rows(app, TuiPage::Inbox) {
            let Some(row) = app.pages.inbox.triage.rows.get(n) else { continue };
            match row {
                InboxRow::Group { session, ids, folded, .. } => self.inbox_group(area, *session, ids, *folded),
                InboxRow::Request { id, grouped } => self.inbox_request(area, id, *grouped),
            }
            if n == at {
                self.mark_row(area);
            }
        }
        if has_panes(app) {
            return;
        }
        match card_rect(app) {
            Some(card) => self.card(card),
            None => {
                let area = Rect { y: area.y + area.height, ..area };
                let words = "A group: x selects its requests, a and d then answer all of them; Enter folds it.";
                let margin = Span::raw("  ");
                let room = usize::from(area.width).saturating_sub(2);
                for (y, line) in (area.y + 1..).zip(wrap(&[Span::styled(words, theme.dim)], &margin, &margin, room)) {
                    if y + 1 < app.shared.size.1 {
                        self.put(area.x, y, line, area.width);
                    }
                }
            }
        }
    }

    fn inbox_group(&mut self, area: Rect, session: bool, ids: &[String], folded: bool) {
        let app = self.app;
        let theme = &app.shared.theme;
        let Some((ask, _)) = ids.first().and_then(|id| app.shared.requests.get(id)) else { return };
        let words = match session {
            true => app.shared.sessions.all.get(&ask.session).map_or_else(|| ask.runtime.clone(), SessionItem::name),
            false => asked(ask),
        };
        let chosen = ids.iter().filter(|id| app.pages.inbox.triage.selected.contains(*id)).count();
        let count = match chosen {
            0 => format!("{} ", ids.len()),
            _ => format!("{chosen} of {} selected ", ids.len()),
        };
        let fold = if folded { "▸" } else { "▾" };
        let room = usize::from(area.width).saturating_sub(5 + sanitize::width(&count));
        let spans = vec![
            Span::styled(if chosen > 0 { "✓" } else { " " }, theme.accent),
            Span::styled(format!("{fold} "), theme.dim),
            cell(&words, room, theme.text.add_modifier(Modifier::BOLD)),
            Span::styled(count, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }

    /// A request in two lines: what it asks; its risk and the first reason, its agent, its project and its age.
    fn inbox_request(&mut self, area: Rect, id: &str, grouped: bool) {
        let app = self.app;
        let theme = &app.shared.theme;
        let Some((ask, outcome)) = app.shared.requests.get(id) else { return };
        let (mark, style) = risk_mark(app, ask, outcome.as_ref());
        let width = usize::from(area.width);
        let indent = if grouped { "  " } else { "" };
        let session = app.shared.sessions.all.get(&ask.session);
        // In a group, the session tells the requests apart.
        let words = match session.filter(|_| grouped) {
            Some(session) => format!("{} · {}", asked(ask), session.name()),
            None => asked(ask),
        };
        let line = vec![
            Span::styled(if app.pages.inbox.triage.selected.contains(id) { "✓" } else { " " }, theme.accent),
            Span::styled(format!("{indent}{mark} "), style),
            Span::styled(
                sanitize::cut(&words, width.saturating_sub(4 + indent.len())),
                if outcome.is_none() { theme.text } else { theme.dim },
            ),
        ];
        self.put(area.x, area.y, line, area.width);
        if area.height < 2 {
            return;
        }
        let room = width.saturating_sub(4 + indent.len());
        let project = session.map_or("", |session| session.project.as_str());
        let age = span(app.shared.now - ask.opened);
        let (what, what_style) = match outcome {
            Some(outcome) => (outcome.words(app.shared.now), theme.dim),
            None if !ask.rated => ("risk not known".to_owned(), theme.warn),
            None => match ask.reasons.first() {
                Some(reason) => (format!("{}  {reason}", ask.risk.name()), style),
                None => (ask.risk.name().to_owned(), style),
            },
        };
        // The reason stays whole as long as there is room for it: first the project, then the agent gives way, and the age is last.
        let whence = match project {
            "" => vec![format!(" · {} · {age}", ask.runtime), format!(" · {age}")],
            project => vec![
                format!(" · {} · {project} · {age}", ask.runtime),
                format!(" · {} · {age}", ask.runtime),
                format!(" · {age}"),
            ],
        };
        let left = room.saturating_sub(sanitize::width(&what));
        let whence = whence.into_iter().find(|words| sanitize::width(words) <= left).unwrap_or_default();
        let what = sanitize::cut(&what, room);
        let line = vec![
            Span::raw(format!("   {indent}")),
            Span::styled(what, what_style.remove_modifier(Modifier::BOLD)),
            Span::styled(whence, theme.dim),
        ];
        self.put(area.x, area.y + 1, line, area.width);
    }

    /// The question whether to answer several requests: which of them, and which not and why.
    pub(super) fn several(&mut self, question: &SeveralQuestion) {
        let app = self.app;
        let theme = &app.shared.theme;
        let (will, out) = (&question.plan.will, &question.plan.out);
        let allow = question.sense == Sense::Allow;
        let title = match (allow, will.len()) {
            (_, 0) => "None of them can be answered together".to_owned(),
            (true, 1) => "Allow 1 request once?".to_owned(),
            (true, many) => format!("Allow {many} requests once?"),
            (false, 1) => "Deny 1 request?".to_owned(),
            (false, many) => format!("Deny {many} requests?"),
        };
        let rows = several_rows(app, question);
        let inside = self.window(76, rows + 5, &title);
        let width = usize::from(inside.width);
        let describe = |id: &str, why: &str| {
            let Some((ask, outcome)) = app.shared.requests.get(id) else { return Line::default() };
            let (mark, style) = risk_mark(app, ask, outcome.as_ref());
            let session =
                app.shared.sessions.all.get(&ask.session).map_or_else(|| ask.runtime.clone(), SessionItem::name);
            let tail = if why.is_empty() { format!(" · {session}") } else { format!(" · {why}") };
            let tail = sanitize::cut(&tail, width * 2 / 3);
            let room = width.saturating_sub(3 + sanitize::width(&tail));
            Line::from(vec![
                Span::styled(format!("{mark} "), style),
                Span::styled(sanitize::cut(&asked(ask), room), theme.text),
                Span::styled(tail, if why.is_empty() { theme.dim } else { theme.warn }),
            ])
        };
        let many = several_lines(question);
        for (y, n) in (inside.y..).zip(question.scroll..many.min(question.scroll + usize::from(rows))) {
            let line = match n.checked_sub(will.len()) {
                None => describe(&will[n].0, ""),
                Some(0) => Line::from(Span::styled(format!("{} left out:", out.len()), theme.dim)),
                Some(after) => describe(&out[after - 1].0, out[after - 1].1),
            };
            self.put(inside.x, y, line, inside.width);
        }
        let more = many.saturating_sub(question.scroll + usize::from(rows));
        let foot = inside.y + inside.height - 1;
        if more > 0 {
            self.put(inside.x, foot - 1, Span::styled(format!("{more} more: ↓"), theme.dim), inside.width);
        }
        let yes = match (will.len(), allow) {
            (0, _) => return self.put(inside.x, foot, Span::styled("Esc back", theme.dim), inside.width),
            (many, true) => format!(" allow {many}   "),
            (many, false) => format!(" deny {many}   "),
        };
        let spans = vec![
            Span::styled(" y ", theme.warn.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
            Span::raw(yes),
            Span::styled(" n ", theme.text.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
            Span::raw(" no"),
        ];
        self.put(inside.x, foot, spans, inside.width);
    }
}
