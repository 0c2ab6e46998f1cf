//! The session list: the sessions of each project below its heading.

use super::panes::{list_area, visible_rows};
use super::*;
use crate::session_list::SessionRow;

impl Draw<'_> {
    pub(super) fn sessions(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let area = list_area(app);
        let filtered = !app.pages.sessions.filter.is_empty() || app.pages.sessions.filtering;
        if app.pages.sessions.rows.is_empty() {
            let none = match app.shared.link {
                ConnectionView::Live if filtered && app.shared.sessions.is_reading() => "Reading older sessions …",
                ConnectionView::Live if filtered => "No matching sessions. Esc shows all sessions.",
                ConnectionView::Live => {
                    "No sessions yet. N starts one with an attached agent; `plexus run demo` starts an agent."
                }
                _ => "Connecting …",
            };
            self.list(area, "", Vec::new(), 0, none);
        } else {
            self.session_heads(area);
            let at = app.session_at();
            for (n, area) in visible_rows(app, TuiPage::Sessions) {
                match app.pages.sessions.rows.get(n) {
                    Some(SessionRow::Project { name, sessions, waiting, folded, .. }) => {
                        self.project(area, name, (*sessions, *waiting), *folded);
                    }
                    Some(SessionRow::Session { id }) => {
                        if let Some(session) = app.shared.sessions.all.get(id) {
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
            let more = if app.shared.sessions.is_reading() { " …" } else { "" };
            let found = app.pages.sessions.rows.iter().filter(|row| matches!(row, SessionRow::Session { .. })).count();
            let many = format!(" {found}{more} ");
            let wide = u16::try_from(sanitize::width(&many)).unwrap_or(0);
            self.put(area.x, area.y, " ".repeat(usize::from(area.width)), area.width);
            self.put(area.x + 1, area.y, Span::styled("filter ", theme.accent), 8);
            let field = Rect::new(area.x + 8, area.y, area.width.saturating_sub(8 + wide), 1);
            self.field(field, &app.pages.sessions.filter, app.pages.sessions.filtering);
            self.right(area, vec![Span::styled(many, theme.dim)], wide);
        }
    }

    /// The columns of a wide list: the title, what the session does now, and the rest of the line.
    fn session_columns(area: Rect) -> (usize, usize) {
        let flexible = usize::from(area.width).saturating_sub(3 + 11 + 11 + 5 + 9);
        let title = (flexible * 5 / 9).max(10);
        (title, flexible.saturating_sub(title))
    }

    fn session_heads(&mut self, area: Rect) {
        let theme = &self.app.shared.theme;
        if area.width < NARROW {
            let sessions =
                self.app.pages.sessions.rows.iter().filter(|row| matches!(row, SessionRow::Session { .. })).count();
            let words = format!("{sessions} session{}", if sessions == 1 { "" } else { "s" });
            return self.list_head(area, vec![Span::styled(words, theme.dim)]);
        }
        let (title, doing) = Self::session_columns(area);
        let heads =
            format!("  {:<title$}{:<11}{:<doing$}{:<11}{:>4}{:>9}", "SESSION", "STATE", "NOW", "AGENT", "NEWS", "AGE");
        self.list_head(area, vec![Span::styled(heads, theme.dim)]);
    }

    fn project(&mut self, area: Rect, name: &str, (sessions, waiting): (usize, usize), folded: bool) {
        let theme = &self.app.shared.theme;
        let wait = if waiting > 0 { format!("?{waiting} ") } else { String::new() };
        let count = format!("{sessions} ");
        let room = usize::from(area.width).saturating_sub(4 + count.len() + wait.len());
        let spans = vec![
            Span::styled(if folded { " ▸ " } else { " ▾ " }, theme.dim),
            cell(name, room.saturating_sub(1), theme.accent),
            Span::styled(wait, theme.warn.add_modifier(Modifier::BOLD)),
            Span::styled(count, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }

    fn session_row(&mut self, area: Rect, session: &SessionItem) {
        let app = self.app;
        let theme = &app.shared.theme;
        let width = usize::from(area.width);
        let (mark, style) = state_mark(app, session);
        let unread = app.shared.sessions.is_unread(session);
        let name = session.name();
        let name_style = if unread > 0 { theme.text.add_modifier(Modifier::BOLD) } else { theme.text };
        let doing = match (&session.state, app.shared.sessions.doing.get(&session.id)) {
            (state, Some(doing)) if state == "running" => doing.clone(),
            _ if !session.doing.is_empty() => session.doing.clone(),
            (state, _) if state == "waiting" => "asks you".into(),
            _ if session.archived => "archived".into(),
            _ if session.linked => "terminal open".into(),
            _ => String::new(),
        };
        let badge = match (session.open, unread) {
            (0, 0) => Span::raw("     "),
            (0, many) => Span::styled(format!("{:>4} ", format!("•{}", many.min(99))), theme.accent),
            (open, _) => Span::styled(format!("{:>4} ", format!("?{open}")), theme.warn.add_modifier(Modifier::BOLD)),
        };
        let age = span(app.shared.now - session.updated);
        let mark = Span::styled(format!(" {mark} "), style);
        if area.width < NARROW {
            let first = vec![
                mark,
                cell(&name, width.saturating_sub(3 + 1 + 5 + 7), name_style),
                badge,
                Span::styled(format!("{age:>6}"), theme.dim),
            ];
            self.put(area.x, area.y, first, area.width);
            let words = [&session.state, &session.runtime, &session.branch, &doing];
            let words: Vec<&str> = words.into_iter().map(String::as_str).filter(|words| !words.is_empty()).collect();
            let second = sanitize::cut(&words.join(" · "), width.saturating_sub(4));
            if area.height > 1 {
                self.put(area.x + 3, area.y + 1, Span::styled(second, theme.dim), area.width.saturating_sub(3));
            }
            return;
        }
        let (title, room) = Self::session_columns(area);
        // The branch takes a part of the name's column.
        let branch = match session.branch.as_str() {
            "" => String::new(),
            branch => format!("[{}] ", sanitize::cut(branch, title / 3)),
        };
        let spans = vec![
            mark,
            cell(&name, title.saturating_sub(1 + sanitize::width(&branch)), name_style),
            Span::styled(branch, theme.dim),
            cell(&session.state, 10, style),
            cell(&doing, room.saturating_sub(1), theme.dim),
            cell(&session.runtime, 10, theme.dim),
            badge,
            Span::styled(format!("{age:>8} "), theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }
}
