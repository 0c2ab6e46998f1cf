//! The drawing of the screen: the first and the last line around the pages, and the windows over them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::App;
use crate::help::KEYS;
use crate::markdown::wrap;
use crate::pages::draw::{Draw, cell};
use crate::pages::layout::{HEIGHT_MIN, NARROW_TABS, WIDTH_MIN, has_panes, panes, window};
use crate::pages::shared::{ConnectionView, Overlay, Shared};
use crate::pages::{Hint, PAGES, Page as _, TuiPage};
use crate::sanitize;
use crate::view_model::clock;

/// Width of the window with the keys, and of a key in it, in columns.
const HELP_WIDTH: u16 = 78;
const HELP_KEY: usize = 18;

fn tabs(shared: &Shared) -> Vec<(Option<TuiPage>, Span<'static>)> {
    let theme = &shared.theme;
    let (open, danger) = shared.open_asks();
    let (wide, narrow) = (shared.size.0 >= 76, shared.size.0 < NARROW_TABS);
    let mut spans = vec![(None, Span::styled(if narrow { "" } else { " plexus " }, theme.accent))];
    for (n, (page, name)) in PAGES.iter().enumerate() {
        let is_current = shared.page == *page || (shared.page == TuiPage::Session && shared.previous_page == *page);
        let style = if is_current { theme.text.add_modifier(Modifier::BOLD | Modifier::UNDERLINED) } else { theme.dim };
        spans.push((Some(*page), Span::styled(format!(" {}", n + 1), theme.dim)));
        spans.push((Some(*page), Span::raw(" ")));
        let name = if wide || is_current && !narrow { (*name).to_owned() } else { name[..3].to_owned() };
        spans.push((Some(*page), Span::styled(name, style)));
        if *page == TuiPage::Inbox && open > 0 {
            let style = if danger { theme.bad } else { theme.warn };
            let text = if narrow { format!("({open})") } else { format!(" {open}") };
            spans.push((Some(*page), Span::styled(text, style.add_modifier(Modifier::BOLD))));
        }
        if !narrow {
            spans.push((None, Span::raw(" ")));
        }
    }
    spans
}

/// The page whose tab is at a column of the first line.
pub(crate) fn tab_at(shared: &Shared, column: u16) -> Option<TuiPage> {
    let mut at = 0;
    for (page, span) in tabs(shared) {
        at += sanitize::width(&span.content);
        if usize::from(column) < at {
            return page;
        }
    }
    None
}

impl App {
    /// Draws the screen.
    pub(crate) fn draw(&self, buf: &mut Buffer) {
        let area = buf.area;
        if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
            let text = format!("plexus needs {WIDTH_MIN}x{HEIGHT_MIN}");
            buf.set_stringn(0, 0, text, usize::from(area.width), Style::new());
            return;
        }
        let mut draw = Draw { shared: &self.shared, buf };
        draw.top();
        let covered = self.pages.new_session.form.is_some() || self.pages.shows_changes(&self.shared);
        match self.shared.page {
            TuiPage::Inbox | TuiPage::Sessions | TuiPage::Session if !covered => self.draw_panes(&mut draw),
            _ => self.pages.top(&self.shared).draw(&mut draw),
        }
        draw.bottom(self.hints());
        draw.overlay(|text| self.palette(text));
    }

    /// Draws the list, the conversation and the pane beside it: as many of them as there is space for.
    fn draw_panes(&self, draw: &mut Draw<'_>) {
        let panes = panes(&self.shared);
        for x in [panes.middle.x, panes.detail.x] {
            if x > 0 {
                for y in panes.list.y..panes.list.y + panes.list.height {
                    draw.put(x - 1, y, Span::styled("│", self.shared.theme.rule), 1);
                }
            }
        }
        if panes.list.width > 0 {
            self.pages.get(self.shared.list_page()).draw(draw);
        }
        if panes.middle.width > 0 {
            self.pages.session.draw(draw);
        }
        if panes.detail.width > 0 {
            draw.detail(&self.pages.session, panes.detail);
        }
    }

    /// The keys that matter now, for the last line.
    fn hints(&self) -> Vec<Hint> {
        if let Some(overlay) = &self.shared.overlay {
            return overlay_hints(overlay).to_vec();
        }
        let mut hints = self.pages.top(&self.shared).hints(&self.shared);
        let covered = self.pages.new_session.form.is_some() || self.pages.shows_changes(&self.shared);
        let in_session = self.shared.page == TuiPage::Session;
        let keys_go_to_list =
            (!in_session || !self.shared.writing) && !self.pages.session.surface_is_open(&self.shared);
        if !covered && has_panes(&self.shared) && keys_go_to_list {
            hints.insert(1, ("Tab", if in_session { "list" } else { "session" }));
        }
        hints
    }
}

impl Draw<'_> {
    fn top(&mut self) {
        let theme = &self.shared.theme;
        let width = self.shared.size.0;
        self.fill(Rect::new(0, 0, width, 1), theme.bar);
        let spans: Vec<Span<'static>> = tabs(self.shared).into_iter().map(|(_, span)| span).collect();
        self.put(0, 0, spans, width);
        let narrow = width < NARROW_TABS;
        let link = match &self.shared.link {
            ConnectionView::Live if narrow => vec![Span::styled(" ● ", theme.ok)],
            ConnectionView::Connecting if narrow => vec![Span::styled(" ○ ", theme.warn)],
            ConnectionView::Live => vec![Span::styled(" ● live ", theme.ok)],
            ConnectionView::Connecting => vec![Span::styled(" ○ connecting ", theme.warn)],
            ConnectionView::Lost(..) => vec![Span::styled(" ○ offline ", theme.bad.add_modifier(Modifier::REVERSED))],
        };
        self.right(Rect::new(0, 0, width, 1), link, 16);
    }

    fn bottom(&mut self, hints: Vec<Hint>) {
        let shared = self.shared;
        let theme = &shared.theme;
        let (width, height) = shared.size;
        let y = height - 1;
        self.fill(Rect::new(0, y, width, 1), theme.bar);
        if let Some((text, bad, _)) = &shared.toast {
            let style = if *bad { theme.bad } else { theme.ok };
            return self.put(1, y, Span::styled(sanitize::cut(text, usize::from(width) - 2), style), width - 1);
        }
        if let ConnectionView::Lost(at, why) = &shared.link {
            let text = format!(
                "No gateway since {}. This data is from {}. Reconnecting … ({why})",
                clock(*at),
                clock(shared.data_as_of)
            );
            return self.put(1, y, Span::styled(sanitize::cut(&text, usize::from(width) - 2), theme.warn), width - 1);
        }
        let mut spans = vec![Span::raw(" ")];
        let mut left = usize::from(width).saturating_sub(2);
        for (key, what) in hints {
            let wide = sanitize::width(key) + sanitize::width(what) + 3;
            if wide > left {
                break;
            }
            left -= wide;
            spans.push(Span::styled(key, theme.accent));
            spans.push(Span::styled(format!(" {what}  "), theme.dim));
        }
        self.put(0, y, spans, width);
    }

    fn overlay(&mut self, palette: impl Fn(&str) -> Vec<(String, String)>) {
        let shared = self.shared;
        let theme = &shared.theme;
        match &shared.overlay {
            None => {}
            Some(Overlay::Help(scroll)) => {
                let inside = self.window(HELP_WIDTH, shared.size.1, "Keys · ↑↓ scroll · Esc");
                for (n, line) in (0..inside.height).zip(help_lines(shared).into_iter().skip(*scroll)) {
                    self.put(inside.x, inside.y + n, line, inside.width);
                }
            }
            Some(Overlay::TextPage { title, text, scroll }) => {
                let inside = self.window(shared.size.0, shared.size.1, &format!("{title} · ↑↓ scroll · Esc"));
                let scroll = (*scroll).min(text_end(shared, text));
                let text = sanitize::text(text);
                for (n, line) in (0..inside.height).zip(text.split('\n').skip(scroll)) {
                    self.put(
                        inside.x,
                        inside.y + n,
                        Span::raw(sanitize::cut(line, usize::from(inside.width))),
                        inside.width,
                    );
                }
            }
            Some(Overlay::Several(question)) => self.several(question),
            Some(Overlay::Pairing(sheet)) => self.pairing(sheet),
            Some(Overlay::Usage(sheet)) => self.usage(sheet),
            Some(Overlay::Confirm { text, .. }) => {
                let width = 64.min(shared.size.0.saturating_sub(2));
                let space = usize::from(width.saturating_sub(4));
                let (none, text) = (Span::raw(""), [Span::raw(sanitize::line(text, space * 4))]);
                let lines = wrap(&text, &none, &none, space);
                let count = u16::try_from(lines.len()).unwrap_or(1);
                let inside = self.window(width, count + 4, "Really?");
                for (n, line) in (0..count).zip(lines) {
                    self.put(inside.x, inside.y + n, line, inside.width);
                }
                let spans = vec![
                    Span::styled(" y ", theme.warn.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                    Span::raw(" yes   "),
                    Span::styled(" n ", theme.text.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                    Span::raw(" no"),
                ];
                self.put(inside.x, inside.y + count + 1, spans, inside.width);
            }
            Some(Overlay::Input { label, area, .. }) => {
                let inside = self.window(64, 4, label);
                self.field(Rect { height: 1, ..inside }, area, true);
                self.put(inside.x, inside.y + 1, Span::styled("Enter accepts · Esc back", theme.dim), inside.width);
            }
            Some(Overlay::Palette { area, at }) => {
                let list = palette(&area.lines().join(" "));
                let inside = self.window(70, shared.size.1.saturating_sub(4).min(18), "Commands");
                self.put(inside.x, inside.y, Span::styled("› ", theme.accent), 2);
                self.field(Rect::new(inside.x + 2, inside.y, inside.width - 2, 1), area, true);
                let at = (*at).min(list.len().saturating_sub(1));
                let (visible, first) = window(list.len(), at, usize::from(inside.height - 1));
                for (n, (name, what)) in list.into_iter().enumerate().skip(first).take(visible) {
                    let y = inside.y + 1 + u16::try_from(n - first).unwrap_or(0);
                    let name = if name.starts_with("go ") { "go to".to_owned() } else { name };
                    let spans = vec![
                        cell(&name, 17, theme.accent),
                        Span::styled(sanitize::cut(&what, usize::from(inside.width) - 18), theme.text),
                    ];
                    self.put(inside.x, y, spans, inside.width);
                    if n == at {
                        self.fill(Rect::new(inside.x, y, inside.width, 1), theme.selected);
                    }
                }
            }
        }
    }
}

/// The keys of the window over the page.
fn overlay_hints(overlay: &Overlay) -> &'static [(&'static str, &'static str)] {
    match overlay {
        Overlay::Help(_) | Overlay::TextPage { .. } => {
            &[("↑↓", "scroll"), ("Esc", "close"), ("g G", "first, last line")]
        }
        Overlay::Palette { .. } => &[("↑↓", "move"), ("Enter", "do it"), ("Esc", "close")],
        Overlay::Confirm { .. } => &[("y", "yes"), ("n", "no")],
        Overlay::Input { .. } => &[("Enter", "accept"), ("Esc", "close")],
        Overlay::Several(_) => &[("y", "yes"), ("n", "no"), ("↑↓", "scroll")],
        Overlay::Pairing(_) => &[("Esc", "close")],
        Overlay::Usage(sheet) if sheet.ceilings.is_some() => &[
            ("←→", "days"),
            ("Tab", "rows"),
            ("m", "bars"),
            ("d s", "ceilings"),
            ("r", "read again"),
            ("Esc", "close"),
        ],
        Overlay::Usage(_) => &[("←→", "days"), ("Tab", "rows"), ("m", "bars"), ("r", "read again"), ("Esc", "close")],
    }
}

fn help_lines(shared: &Shared) -> Vec<Line<'static>> {
    let theme = &shared.theme;
    // The width within the window's border and its spaces.
    let width = usize::from(HELP_WIDTH.min(shared.size.0.saturating_sub(2)).saturating_sub(4));
    let below = Span::raw(" ".repeat(HELP_KEY + 1));
    let mut lines = Vec::new();
    for (n, (heading, keys)) in KEYS.iter().enumerate() {
        if n > 0 {
            lines.push(Line::default());
        }
        lines.push(Line::from(Span::styled(*heading, theme.accent)));
        for (key, what) in *keys {
            let key = cell(key, HELP_KEY, theme.text.add_modifier(Modifier::BOLD));
            lines.extend(wrap(&[Span::styled(*what, theme.dim)], &key, &below, width));
        }
    }
    lines
}

/// The last line to which the help can be scrolled.
pub(crate) fn help_end(shared: &Shared) -> usize {
    help_lines(shared).len().saturating_sub(usize::from(shared.size.1.saturating_sub(4)))
}

/// The last line to which a text can be scrolled.
pub(crate) fn text_end(shared: &Shared, text: &str) -> usize {
    text.split('\n').count().saturating_sub(usize::from(shared.size.1.saturating_sub(4)))
}
