//! The pages without panes: search, runtimes, devices.

use super::*;

/// The lines of the list of runtimes: the selected one is shown in full below it.
pub(super) fn runtimes_height(all: Rect) -> u16 {
    all.height.saturating_sub(6)
}

impl Draw<'_> {
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
        let high = runtimes_height(all);
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
