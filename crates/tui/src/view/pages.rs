//! The pages beside a session: inbox, sessions, search, runtimes, devices.

use super::*;

impl Draw<'_> {
    pub(super) fn inbox(&mut self) {
        let app = self.app;
        let theme = &app.theme;
        let all = body(app);
        let ids = app.inbox();
        let width = usize::from(all.width);
        let narrow = all.width < NARROW;
        let room = if narrow { width.saturating_sub(3 + 11 + 6) } else { width.saturating_sub(42) };
        let rows: Vec<Vec<Span<'static>>> = ids
            .iter()
            .filter_map(|id| app.requests.get(id))
            .map(|(ask, outcome)| {
                let (mark, style) = match (outcome, ask.risk) {
                    (Some(_), _) => ("✔", theme.dim),
                    (None, RiskView::Danger) => ("▲", theme.bad),
                    (None, RiskView::Elevated) => ("◆", theme.warn),
                    (None, RiskView::Low) => ("•", theme.ok),
                };
                let session = app.sessions.get(&ask.session).map_or(String::new(), SessionItem::name);
                let words = match outcome {
                    Some(outcome) => outcome.words(app.now),
                    None => sanitize::line(ask.display.split('\n').next().unwrap_or(&ask.title), 400),
                };
                let asked = if outcome.is_none() { theme.text } else { theme.dim };
                if narrow {
                    return vec![
                        Span::styled(format!(" {mark} "), style),
                        cell(&words, room.saturating_sub(1), asked),
                        cell(&session, 10, theme.dim),
                        Span::styled(format!("{:>6}", span(app.now - ask.opened)), theme.dim),
                    ];
                }
                vec![
                    Span::styled(format!(" {mark} "), style),
                    cell(&ask.runtime, 9, theme.dim),
                    cell(&words, room.saturating_sub(1), asked),
                    cell(&session, 19, theme.dim),
                    Span::styled(format!("{:>8} ", span(app.now - ask.opened)), theme.dim),
                ]
            })
            .collect();
        let at = app.index(TuiPage::Inbox, &ids);
        let high = inbox_rows(app) + 1;
        let heads = match narrow {
            true => format!("   {:<room$}{:<11}{:>6}", "ASKS", "SESSION", "AGE"),
            false => format!("   {:<10}{:<room$}{:<20}{:>8}", "AGENT", "ASKS", "SESSION", "AGE"),
        };
        let none =
            "No pending requests. Requests of agents appear here and on every other screen; the first answer counts.";
        if ids.is_empty() {
            return self.list(all, "", Vec::new(), 0, none);
        }
        self.list(Rect { height: high, ..all }, &heads, rows, at, none);
        if let Some(area) = card_area(app) {
            let height = app.card.as_ref().and_then(|card| {
                let (ask, _) = app.requests.get(&card.id)?;
                u16::try_from(card.shape(ask, area.width, usize::from(area.height), theme).height).ok()
            });
            self.card(Rect { height: height.unwrap_or(area.height).min(area.height), ..area });
        }
    }

    pub(super) fn sessions(&mut self) {
        let app = self.app;
        let theme = &app.theme;
        let all = body(app);
        let list = app.listed();
        let ids: Vec<String> = list.iter().map(|session| session.id.clone()).collect();
        let width = usize::from(all.width);
        let narrow = all.width < NARROW;
        let flexible = width.saturating_sub(3 + 11 + 11 + 5 + 9);
        let title_width = (flexible * 5 / 9).max(10);
        let doing_width = flexible.saturating_sub(title_width);
        let row = |session: &SessionItem| {
            let (mark, style) = state_mark(app, session);
            let unread = app.is_unread(session);
            let name = session.name();
            let name_style = if unread > 0 { theme.text.add_modifier(Modifier::BOLD) } else { theme.text };
            let doing = match (&session.state, app.doing.get(&session.id)) {
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
                (open, _) => {
                    Span::styled(format!("{:>4} ", format!("?{open}")), theme.warn.add_modifier(Modifier::BOLD))
                }
            };
            if narrow {
                return vec![
                    Span::styled(format!(" {mark} "), style),
                    cell(&name, width.saturating_sub(24), name_style),
                    cell(&session.state, 8, style),
                    badge,
                    Span::styled(format!("{:>6}", span(app.now - session.updated)), theme.dim),
                ];
            }
            vec![
                Span::styled(format!(" {mark} "), style),
                cell(&name, title_width - 1, name_style),
                cell(&session.state, 10, style),
                cell(&doing, doing_width.saturating_sub(1), theme.dim),
                cell(&session.runtime, 10, theme.dim),
                badge,
                Span::styled(format!("{:>8} ", span(app.now - session.updated)), theme.dim),
            ]
        };
        let heads = match narrow {
            true => format!("   {:<1$}{2:<9}{3:>4}{4:>7}", "SESSION", width.saturating_sub(23), "STATE", "NEWS", "AGE"),
            false => format!(
                "   {:<title_width$}{:<11}{:<doing_width$}{:<11}{:>4}{:>9}",
                "SESSION", "STATE", "NOW", "AGENT", "NEWS", "AGE"
            ),
        };
        let filtered = !app.filter.is_empty() || app.filtering;
        let none = match app.link {
            ConnectionView::Live if filtered && app.is_reading() => "Reading older sessions …",
            ConnectionView::Live if filtered => "No matching sessions. Esc shows all sessions.",
            ConnectionView::Live => {
                "No sessions yet. N starts one with an attached agent; `plexus run demo` starts an agent."
            }
            _ => "Connecting …",
        };
        let at = app.index(TuiPage::Sessions, &ids);
        self.lines(all, &heads, (list.len(), at), none, |n| row(list[n]));
        if filtered {
            let more = if app.is_reading() { " …" } else { "" };
            let many = format!(" {}{more} ", list.len());
            let wide = u16::try_from(sanitize::width(&many)).unwrap_or(0);
            self.put(0, all.y, " ".repeat(width), all.width);
            self.put(1, all.y, Span::styled("filter ", theme.accent), 8);
            let field = Rect::new(8, all.y, all.width.saturating_sub(8 + wide), 1);
            self.field(field, &app.filter, app.filtering);
            self.right(all.y, vec![Span::styled(many, theme.dim)], wide);
        }
    }

    pub(super) fn field(&mut self, area: Rect, text: &TextArea<'static>, on: bool) {
        let mut text = text.clone();
        if !on {
            text.set_cursor_style(Style::new());
        }
        (&text).render(area, self.buf);
    }

    pub(super) fn search(&mut self) {
        let app = self.app;
        let theme = &app.theme;
        let all = body(app);
        self.put(1, all.y, Span::styled("find ", theme.accent), 6);
        self.field(Rect::new(6, all.y, all.width.saturating_sub(7), 1), &app.query, app.query_typing);
        let width = usize::from(all.width);
        let rows: Vec<Vec<Span<'static>>> = app
            .hits
            .iter()
            .map(|hit| {
                let session = app.sessions.get(&hit.session).map_or(String::new(), SessionItem::name);
                vec![
                    Span::raw("   "),
                    cell(&session, 19, theme.accent),
                    cell(&hit.role, 7, theme.dim),
                    cell(&hit.words, width.saturating_sub(32), theme.text),
                ]
            })
            .collect();
        let none = match (&app.searched, app.list_errors.get("search")) {
            (_, Some(why)) => why.clone(),
            (Some(words), _) => format!("No results for “{}”.", sanitize::line(words, 100)),
            (None, _) => "Type words to search for in all sessions.".into(),
        };
        let heads = match &app.searched {
            Some(words) if !rows.is_empty() => {
                format!("   “{}” was said {} times", sanitize::line(words, 60), rows.len())
            }
            _ => String::new(),
        };
        let area = Rect { y: all.y + 1, height: all.height - 1, ..all };
        let at = app.at.get(&TuiPage::Search).copied().unwrap_or_default();
        let at = if app.query_typing { usize::MAX } else { at.min(rows.len().saturating_sub(1)) };
        self.list(area, &heads, rows, at, &none);
    }

    pub(super) fn runtimes(&mut self) {
        let app = self.app;
        let theme = &app.theme;
        let all = body(app);
        let width = usize::from(all.width);
        let ids: Vec<String> = app.runtimes.iter().map(|one| one.id.clone()).collect();
        let rows: Vec<Vec<Span<'static>>> = app
            .runtimes
            .iter()
            .map(|one| {
                let style = match one.state.as_str() {
                    "ready" => theme.ok,
                    "exited" => theme.bad,
                    _ => theme.warn,
                };
                let what = if one.problem.is_empty() { &one.agent } else { &one.problem };
                vec![
                    Span::styled(" ● ", style),
                    cell(&one.id, 13, theme.text.add_modifier(Modifier::BOLD)),
                    cell(&one.state, 11, style),
                    cell(&one.dialect, 13, theme.dim),
                    cell(what, width.saturating_sub(65), if one.problem.is_empty() { theme.text } else { theme.warn }),
                    cell(&one.pid.map(|pid| format!("pid {pid}")).unwrap_or_default(), 11, theme.dim),
                    Span::styled(format!("{:>7} ", span(app.now - one.updated)), theme.dim),
                ]
            })
            .collect();
        let at = app.index(TuiPage::Runtimes, &ids);
        let heads = format!("   {:<14}{:<12}{:<14}{}", "RUNTIME", "STATE", "DIALECT", "WHAT IT IS");
        let none = app.list_errors.get("runtimes").cloned().unwrap_or_else(|| {
            "No agent is attached. `plexus run gemini` starts one; `plexus doctor` lists the installed ones.".into()
        });
        let high = all.height.saturating_sub(6);
        self.list(Rect { height: high, ..all }, &heads, rows, at, &none);
        // The selected runtime, in full.
        if let Some(one) = app.runtimes.get(at) {
            let y = all.y + high;
            self.put(0, y, Span::styled("─".repeat(width), theme.rule), all.width);
            let mut lines = vec![("runs", one.connect.clone()), ("in", one.cwd.clone())];
            if !one.problem.is_empty() {
                lines.push(("why", one.problem.clone()));
            }
            let tail = sanitize::text(&one.stderr);
            if let Some(last) = tail.trim_end().rsplit('\n').next().filter(|last| !last.is_empty()) {
                lines.push(("said", last.to_owned()));
            }
            for (n, (name, words)) in (1..).zip(lines) {
                let words = sanitize::cut(&words, width.saturating_sub(8));
                self.put(
                    1,
                    y + n,
                    vec![Span::styled(format!("{name:<6}"), theme.dim), Span::raw(words)],
                    all.width - 1,
                );
            }
        }
    }

    pub(super) fn devices(&mut self) {
        let app = self.app;
        let theme = &app.theme;
        let all = body(app);
        let width = usize::from(all.width);
        let ids: Vec<String> = app.devices.iter().map(|one| one.id.clone()).collect();
        let rows: Vec<Vec<Span<'static>>> = app
            .devices
            .iter()
            .map(|one| {
                let (mark, style) = if one.online { ("●", theme.ok) } else { ("○", theme.dim) };
                let level = if one.level.is_empty() { String::new() } else { format!(" up to {}", one.level) };
                let when = match (one.expires, one.seen) {
                    (Some(at), _) => format!("ends in {}", span(at - app.now)),
                    (None, Some(at)) => format!("seen {}", ago(app.now, at)),
                    (None, None) => String::new(),
                };
                let name = if one.you { format!("{} (you)", one.name) } else { one.name.clone() };
                vec![
                    Span::styled(format!(" {mark} "), style),
                    cell(&name, 21, theme.text),
                    cell(&one.kind, 8, theme.dim),
                    cell(&format!("{}{level}", one.scopes), width.saturating_sub(50), theme.text),
                    cell(&when, 14, theme.dim),
                ]
            })
            .collect();
        let heads = format!("   {:<22}{:<9}{}", "DEVICE", "KIND", "MAY");
        let none = app.list_errors.get("devices").cloned().unwrap_or_else(|| "Looking …".into());
        self.list(all, &heads, rows, app.index(TuiPage::Devices, &ids), &none);
    }
}
