//! The pages without panes: search, runtimes, devices.

use super::*;

/// The lines of the list of runtimes, or of devices: the selected one is shown in full below it.
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
        let theme = &app.shared.theme;
        let all = body(app);
        self.put(1, all.y, Span::styled("find ", theme.accent), 6);
        self.field(
            Rect::new(6, all.y, all.width.saturating_sub(7), 1),
            &app.pages.search.query,
            app.pages.search.typing,
        );
        let width = usize::from(all.width);
        let rows: Vec<Vec<Span<'static>>> = app
            .pages
            .search
            .hits
            .iter()
            .map(|hit| {
                let session = app.shared.sessions.all.get(&hit.session).map_or(String::new(), SessionItem::name);
                vec![
                    Span::raw("   "),
                    cell(&session, 19, theme.accent),
                    cell(&hit.role, 7, theme.dim),
                    cell(&hit.words, width.saturating_sub(32), theme.text),
                ]
            })
            .collect();
        let none = match (&app.pages.search.searched, &app.pages.search.problem) {
            (_, Some(why)) => why.clone(),
            (Some(words), _) => format!("No results for “{}”.", sanitize::line(words, 100)),
            (None, _) => "Type words to search for in all sessions.".into(),
        };
        let heads = match &app.pages.search.searched {
            Some(words) if !rows.is_empty() => {
                format!("   “{}” was said {} times", sanitize::line(words, 60), rows.len())
            }
            _ => String::new(),
        };
        let area = Rect { y: all.y + 1, height: all.height - 1, ..all };
        let at = app.pages.search.list.at.unwrap_or_default();
        let at = if app.pages.search.typing { usize::MAX } else { at.min(rows.len().saturating_sub(1)) };
        self.list(area, &heads, rows, at, &none);
    }

    pub(super) fn runtimes(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let all = body(app);
        let width = usize::from(all.width);
        let ids: Vec<String> = app.shared.runtimes.iter().map(|one| one.id.clone()).collect();
        let rows: Vec<Vec<Span<'static>>> = app
            .shared
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
                    Span::styled(format!("{:>7} ", span(app.shared.now - one.updated)), theme.dim),
                ]
            })
            .collect();
        let at = app.pages.runtimes.list.index(&ids);
        let heads = format!("   {:<14}{:<12}{:<14}{}", "RUNTIME", "STATE", "DIALECT", "WHAT IT IS");
        let none = app.pages.runtimes.problem.clone().unwrap_or_else(|| {
            "No agent is attached. `plexus run gemini` starts one; `plexus doctor` lists the installed ones.".into()
        });
        let high = runtimes_height(all);
        self.list(Rect { height: high, ..all }, &heads, rows, at, &none);
        // The selected runtime, in full.
        if let Some(one) = app.shared.runtimes.get(at) {
            let mut lines = vec![("runs", one.connect.clone()), ("in", one.cwd.clone())];
            if one.fixed_folder {
                lines.push(("", "every command runs there, whatever the folder of the session is".into()));
            }
            if !one.unasked.is_empty() {
                lines.push(("acts", format!("without asking; the first time: {}", one.unasked)));
            }
            if !one.reviewer.is_empty() {
                lines.push(("asks", format!("{} in place of people", one.reviewer)));
            }
            if !one.problem.is_empty() {
                lines.push(("why", one.problem.clone()));
            }
            let tail = sanitize::text(&one.stderr);
            if let Some(last) = tail.trim_end().rsplit('\n').next().filter(|last| !last.is_empty()) {
                lines.push(("said", last.to_owned()));
            }
            self.below_list(Rect { y: all.y + high, height: all.height - high, ..all }, lines);
        }
    }

    /// What is selected in a list, in full: names and words.
    fn below_list(&mut self, area: Rect, lines: Vec<(&str, String)>) {
        let theme = &self.app.shared.theme;
        let width = usize::from(area.width);
        self.put(area.x, area.y, Span::styled("─".repeat(width), theme.rule), area.width);
        for (y, (name, words)) in (area.y + 1..area.y + area.height).zip(lines) {
            let words = sanitize::cut(&words, width.saturating_sub(8));
            let spans = vec![Span::styled(format!("{name:<6}"), theme.dim), Span::raw(words)];
            self.put(area.x + 1, y, spans, area.width - 1);
        }
    }

    pub(super) fn devices(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let all = body(app);
        let width = usize::from(all.width);
        let narrow = all.width < NARROW_TABS;
        let may = |one: &DeviceItem| match one.level.as_str() {
            "" => one.scopes.clone(),
            level => format!("{} up to {level}", one.scopes),
        };
        let when = |one: &DeviceItem| match (one.expires, one.seen) {
            (Some(at), _) => format!("ends in {}", span(at - app.shared.now)),
            (None, Some(at)) => format!("seen {}", ago(app.shared.now, at)),
            (None, None) => String::new(),
        };
        let ids: Vec<String> = app.pages.devices.devices.iter().map(|one| one.id.clone()).collect();
        let rows: Vec<Vec<Span<'static>>> = app
            .pages
            .devices
            .devices
            .iter()
            .map(|one| {
                let (mark, style) = if one.online { ("●", theme.ok) } else { ("○", theme.dim) };
                let name = if one.you { format!("{} (you)", one.name) } else { one.name.clone() };
                if narrow {
                    let room = width.saturating_sub(14);
                    return vec![
                        Span::styled(format!(" {mark} "), style),
                        cell(&name, room, theme.text),
                        cell(&one.kind, 9, theme.dim),
                    ];
                }
                vec![
                    Span::styled(format!(" {mark} "), style),
                    cell(&name, 21, theme.text),
                    cell(&one.kind, 8, theme.dim),
                    cell(&may(one), width.saturating_sub(50), theme.text),
                    cell(&when(one), 14, theme.dim),
                ]
            })
            .collect();
        let heads = match narrow {
            true => "   DEVICE".to_owned(),
            false => format!("   {:<22}{:<9}{}", "DEVICE", "KIND", "MAY"),
        };
        let none = app.pages.devices.problem.clone().unwrap_or_else(|| "Looking …".into());
        let at = app.pages.devices.list.index(&ids);
        let high = runtimes_height(all);
        self.list(Rect { height: high, ..all }, &heads, rows, at, &none);
        // The selected device, in full: its permissions on two lines where one is too short.
        if let Some(one) = app.pages.devices.devices.get(at) {
            let may = may(one);
            let (first, rest) = match sanitize::width(&may) > width.saturating_sub(8) {
                true => may.split_at(may.find(" up to ").unwrap_or(may.len())),
                false => (may.as_str(), ""),
            };
            let mut lines = vec![("may", first.to_owned())];
            if !rest.is_empty() {
                lines.push(("", rest.trim_start().to_owned()));
            }
            let when = when(one);
            lines.push(("is", if when.is_empty() { one.kind.clone() } else { format!("{} · {when}", one.kind) }));
            self.below_list(Rect { y: all.y + high, height: all.height - high, ..all }, lines);
        }
    }
}
