//! The layout of the screen. One file: keys and clicks use the same areas as drawing. Pure.

mod card;
mod changes;
mod composer;
mod inbox;
mod new_session;
mod pages;
mod panes;
mod sessions;
mod sheets;
mod surfaces;

pub(crate) use card::option_at;
pub(crate) use changes::{changes_areas, changes_top};
pub(crate) use inbox::several_end;
pub(crate) use new_session::form_hit;
pub(crate) use panes::{Pane, has_panes, list_top, pane_at, row_at};
pub(crate) use sheets::usage_end;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget as _};
use ratatui_textarea::TextArea;

use super::app::App;
use super::card::{Card, CardMode};
use super::conversation::DrawContext;
use super::help::KEYS;
use super::input;
use super::markdown::wrap;
use super::pages::shared::{ConnectionView, Overlay};
use super::pages::{PAGES, TuiPage};
use super::sanitize;
use super::view_model::{DeviceItem, RiskView, SessionItem, ago, clock, span};
use pages::runtimes_height;
use panes::{card_place, panes};

/// Narrowest supported terminal, in columns.
pub(crate) const WIDTH_MIN: u16 = 40;
/// Lowest supported terminal, in lines.
pub(crate) const HEIGHT_MIN: u16 = 12;
/// Columns of the window with the keys, and of a key in it.
const HELP_WIDTH: u16 = 78;
const HELP_KEY: usize = 18;
/// Below this many columns, a list has two lines for each row.
const NARROW: u16 = 72;
/// Below this many lines, a card has the room of what else is there.
const LOW: u16 = 14;
/// Below this many columns, the first line has only what tells the pages apart.
const NARROW_TABS: u16 = 60;
/// Most lines of the composer.
const COMPOSER_MAX: usize = 8;

// === where things are

fn body(app: &App) -> Rect {
    let (width, height) = app.shared.size;
    Rect::new(0, 1, width, height.saturating_sub(2))
}

/// The rows of the session page: header, conversation with card, queued prompts, composer.
struct Rows {
    header: Rect,
    /// The pinned surfaces, if there are any.
    pins: Rect,
    conversation: Rect,
    card: Rect,
    queue: Rect,
    composer: Rect,
}

fn rows(app: &App) -> Rows {
    let panes = panes(app);
    let all = panes.middle;
    let preview = app.shared.page != TuiPage::Session;
    let lines =
        input::rows(&app.pages.session.composer, usize::from(all.width.saturating_sub(5))).clamp(1, COMPOSER_MAX);
    // Where there is little room, a question has that of the empty composer.
    let asked = app.shared.card.open().is_some() && !app.shared.writing;
    let hidden = preview || all.height < LOW && asked && app.pages.session.composer.is_empty();
    let composer = if hidden { 0 } else { u16::try_from(lines).unwrap_or(1) + 1 };
    let session = app
        .pages
        .session
        .conversation
        .as_ref()
        .and_then(|conversation| app.shared.sessions.all.get(&conversation.session));
    let queued = session.filter(|_| !preview).map_or(0, |session| session.queue.len()).min(3);
    let queue = u16::try_from(queued + if preview { 0 } else { composer::offer_lines(app) }).unwrap_or(0);
    let open = app.surface_is_open();
    // An open surface has the room of the composer as well.
    let below = if open { 0 } else { (composer + queue).min(all.height / 2) };
    let queue = below.saturating_sub(composer);
    let pinned =
        app.pages.session.conversation.as_ref().is_some_and(|conversation| !conversation.surfaces.pinned().is_empty());
    let pins = u16::from(pinned && !open);
    let middle = all.height.saturating_sub(1 + pins + below);
    let most = card_max(app, middle);
    let card = match (&app.shared.card.card, app.shared.page) {
        (Some(card), TuiPage::Session | TuiPage::Inbox) if panes.detail.width == 0 => {
            app.shared.requests.get(&card.id).map_or(0, |(ask, _)| {
                u16::try_from(card.shape(ask, all.width, usize::from(most), &app.shared.theme).height).unwrap_or(most)
            })
        }
        _ => 0,
    };
    let at = |y: u16, height: u16| Rect::new(all.x, all.y + y, all.width, height);
    Rows {
        header: at(0, 1),
        pins: at(1, pins),
        conversation: at(1 + pins, middle - card),
        card: at(1 + pins + middle - card, card),
        queue: at(1 + pins + middle, queue),
        composer: at(1 + pins + middle + queue, below - queue),
    }
}

/// The most lines of a card: some of the conversation stays visible, but only two lines above a form.
fn card_max(app: &App, middle: u16) -> u16 {
    if app.shared.card.card.as_ref().is_some_and(Card::is_form) {
        return middle.saturating_sub(2).max(middle.min(9));
    }
    (middle * 7 / 10).max(middle.min(9))
}

/// The room of a card: its width and greatest height.
pub(crate) fn card_area(app: &App) -> Option<Rect> {
    if app.shared.size.0 < WIDTH_MIN
        || app.shared.size.1 < HEIGHT_MIN
        || app.shared.overlay.is_some()
        || app.new_session.form.is_some()
    {
        return None;
    }
    app.shared.card.card.as_ref().filter(|_| app.changes.screen.is_none())?;
    card_place(app)
}

/// The area of the conversation.
pub(crate) fn conversation_area(app: &App) -> Rect {
    if app.shared.size.0 < WIDTH_MIN || app.shared.size.1 < HEIGHT_MIN || panes(app).middle.width == 0 {
        return Rect::default();
    }
    let area = rows(app).conversation;
    Rect { width: area.width.saturating_sub(1), ..area }
}

/// The room for the content of the open surface, inside its frame.
pub(crate) fn surface_area(app: &App) -> Rect {
    if !app.surface_is_open() || app.shared.size.0 < WIDTH_MIN || app.shared.size.1 < HEIGHT_MIN {
        return Rect::default();
    }
    let frame = rows(app).conversation;
    let (width, height) = (frame.width.saturating_sub(4), frame.height.saturating_sub(2));
    Rect::new(frame.x + 2, frame.y + 1, width, height)
}

fn tabs(app: &App) -> Vec<(Option<TuiPage>, Span<'static>)> {
    let theme = &app.shared.theme;
    let (open, danger) = app.shared.open_asks();
    let (wide, narrow) = (app.shared.size.0 >= 76, app.shared.size.0 < NARROW_TABS);
    let mut spans = vec![(None, Span::styled(if narrow { "" } else { " plexus " }, theme.accent))];
    for (n, (page, name)) in PAGES.iter().enumerate() {
        let here =
            app.shared.page == *page || (app.shared.page == TuiPage::Session && app.shared.previous_page == *page);
        let style = if here { theme.text.add_modifier(Modifier::BOLD | Modifier::UNDERLINED) } else { theme.dim };
        spans.push((Some(*page), Span::styled(format!(" {}", n + 1), theme.dim)));
        spans.push((Some(*page), Span::raw(" ")));
        let name = if wide || here && !narrow { (*name).to_owned() } else { name[..3].to_owned() };
        spans.push((Some(*page), Span::styled(name, style)));
        if *page == TuiPage::Inbox && open > 0 {
            let style = if danger { theme.bad } else { theme.warn };
            let words = if narrow { format!("({open})") } else { format!(" {open}") };
            spans.push((Some(*page), Span::styled(words, style.add_modifier(Modifier::BOLD))));
        }
        if !narrow {
            spans.push((None, Span::raw(" ")));
        }
    }
    spans
}

/// The page whose tab is at this column of the first line.
pub(crate) fn tab_at(app: &App, column: u16) -> Option<TuiPage> {
    let mut at = 0;
    for (page, span) in tabs(app) {
        at += sanitize::width(&span.content);
        if usize::from(column) < at {
            return page;
        }
    }
    None
}

/// The visible lines of a list: how many, and from which.
fn window(many: usize, at: usize, rows: usize) -> (usize, usize) {
    let shown = many.min(rows);
    let first = at.saturating_sub(rows / 2).min(many.saturating_sub(shown));
    (shown, first)
}

// === drawing

struct Draw<'a> {
    app: &'a App,
    buf: &'a mut Buffer,
}

/// Draws the screen.
pub(crate) fn draw(app: &App, buf: &mut Buffer) {
    let area = buf.area;
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let words = format!("plexus needs {WIDTH_MIN}x{HEIGHT_MIN}");
        buf.set_stringn(0, 0, words, usize::from(area.width), Style::new());
        return;
    }
    let mut draw = Draw { app, buf };
    draw.top();
    match app.shared.page {
        _ if app.new_session.form.is_some() => app.new_session.form.iter().for_each(|form| draw.form(form)),
        TuiPage::Session if app.changes.screen.is_some() => {
            app.changes.screen.iter().for_each(|screen| draw.changes(screen))
        }
        TuiPage::Search => draw.search(),
        TuiPage::Runtimes => draw.runtimes(),
        TuiPage::Devices => draw.devices(),
        TuiPage::Inbox | TuiPage::Sessions | TuiPage::Session => draw.panes(),
    }
    draw.bottom();
    draw.overlay();
}

impl Draw<'_> {
    fn put(&mut self, x: u16, y: u16, spans: impl Into<Line<'static>>, width: u16) {
        self.buf.set_line(x, y, &spans.into(), width);
    }

    fn fill(&mut self, area: Rect, style: Style) {
        self.buf.set_style(area, style);
    }

    /// Puts spans at the right edge of an area, in its first line.
    fn right(&mut self, area: Rect, spans: Vec<Span<'static>>, most: u16) {
        let width = spans.iter().map(|span| sanitize::width(&span.content)).sum::<usize>().min(usize::from(most));
        let width = u16::try_from(width).unwrap_or(most);
        self.put((area.x + area.width).saturating_sub(width), area.y, spans, width);
    }

    fn top(&mut self) {
        let theme = &self.app.shared.theme;
        let width = self.app.shared.size.0;
        self.fill(Rect::new(0, 0, width, 1), theme.bar);
        let spans: Vec<Span<'static>> = tabs(self.app).into_iter().map(|(_, span)| span).collect();
        self.put(0, 0, spans, width);
        let narrow = width < NARROW_TABS;
        let link = match &self.app.shared.link {
            ConnectionView::Live if narrow => vec![Span::styled(" ● ", theme.ok)],
            ConnectionView::Connecting if narrow => vec![Span::styled(" ○ ", theme.warn)],
            ConnectionView::Live => vec![Span::styled(" ● live ", theme.ok)],
            ConnectionView::Connecting => vec![Span::styled(" ○ connecting ", theme.warn)],
            ConnectionView::Lost(..) => vec![Span::styled(" ○ offline ", theme.bad.add_modifier(Modifier::REVERSED))],
        };
        self.right(Rect::new(0, 0, width, 1), link, 16);
    }

    fn bottom(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let (width, height) = app.shared.size;
        let y = height - 1;
        self.fill(Rect::new(0, y, width, 1), theme.bar);
        if let Some((words, bad, _)) = &app.shared.toast {
            let style = if *bad { theme.bad } else { theme.ok };
            return self.put(1, y, Span::styled(sanitize::cut(words, usize::from(width) - 2), style), width - 1);
        }
        if let ConnectionView::Lost(at, why) = &app.shared.link {
            let words = format!(
                "No gateway since {}. This data is from {}. Reconnecting … ({why})",
                clock(*at),
                clock(app.shared.data_as_of)
            );
            return self.put(1, y, Span::styled(sanitize::cut(&words, usize::from(width) - 2), theme.warn), width - 1);
        }
        let mut spans = vec![Span::raw(" ")];
        let mut left = usize::from(width).saturating_sub(2);
        for (key, what) in hints(app) {
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

    /// A list: its heading, and the lines that fit.
    fn list(&mut self, area: Rect, heads: &str, rows: Vec<Vec<Span<'static>>>, at: usize, none: &str) {
        self.lines(area, heads, (rows.len(), at), none, |n| rows[n].clone());
    }

    /// A list with a number of lines and a selected one; only the lines that fit are made.
    fn lines(
        &mut self,
        area: Rect,
        heads: &str,
        (many, at): (usize, usize),
        none: &str,
        row: impl Fn(usize) -> Vec<Span<'static>>,
    ) {
        let theme = &self.app.shared.theme;
        self.put(area.x, area.y, Span::styled(heads.to_owned(), theme.dim), area.width);
        if many == 0 {
            let lines = wrap(
                &[Span::styled(none.to_owned(), theme.dim)],
                &Span::raw("  "),
                &Span::raw("  "),
                usize::from(area.width).saturating_sub(2),
            );
            for (n, line) in (2..).zip(lines) {
                if n < area.height {
                    self.put(area.x, area.y + n, line, area.width);
                }
            }
            return;
        }
        let (shown, first) = window(many, at, usize::from(area.height.saturating_sub(1)));
        for n in first..first + shown {
            let y = area.y + 1 + u16::try_from(n - first).unwrap_or(0);
            self.put(area.x, y, row(n), area.width);
            if n == at {
                self.fill(Rect::new(area.x, y, area.width, 1), theme.selected);
            }
        }
    }

    fn session(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        let rows = rows(app);
        let Some(conversation) = &app.pages.session.conversation else {
            // With three panes it is in the third.
            if rows.card.height > 0 {
                self.card(rows.card);
            }
            return;
        };
        self.header(rows.header);
        if app.surface_is_open() {
            self.surface(rows.conversation);
            // A request is drawn over what an agent draws.
            if rows.card.height > 0 {
                self.card(rows.card);
            }
            return;
        }
        self.pins(rows.pins);
        let area = conversation_area(app);
        let cx = DrawContext { theme, width: area.width, height: usize::from(area.height), now: app.shared.now };
        let lines = conversation.screen(&cx);
        let preview = app.shared.page != TuiPage::Session;
        if lines.is_empty() && area.height > 2 {
            let words = match (conversation.live, &app.shared.link) {
                (true, _) if preview => "No messages yet.".to_owned(),
                (true, _) => "No messages yet. Write a prompt below.".to_owned(),
                (false, ConnectionView::Live) => format!("reading … {} events", conversation.events),
                _ => "connecting …".to_owned(),
            };
            self.put(area.x + 2, area.y + 1, Span::styled(words, theme.dim), area.width.saturating_sub(2));
        }
        for (n, (line, chosen)) in (0..).zip(lines) {
            self.put(area.x, area.y + n, line, area.width);
            if chosen {
                self.put(area.x, area.y + n, Span::styled("┃", theme.accent), 1);
            }
        }
        self.scrollbar(area, conversation.place(&cx), conversation.scroll_position.follow && !conversation.is_older());
        if let Some(words) = conversation.before().filter(|_| !conversation.scroll_position.follow) {
            let spans =
                vec![Span::styled(format!(" ↑ {words} "), theme.dim.add_modifier(Modifier::REVERSED)), Span::raw(" ")];
            self.right(area, spans, area.width);
        }
        if !conversation.live && conversation.events > 0 && app.shared.link == ConnectionView::Live {
            let words = format!(" reading … {} events ", conversation.events);
            let spans = vec![Span::styled(words, theme.warn.add_modifier(Modifier::REVERSED)), Span::raw(" ")];
            self.right(area, spans, area.width);
        }
        if !conversation.scroll_position.follow && area.height > 3 {
            let words = match conversation.unseen {
                0 => " ↓ G: to now ".to_owned(),
                many => format!(" ↓ {many} new · G: to now "),
            };
            let spans = vec![Span::styled(words, theme.accent.add_modifier(Modifier::REVERSED)), Span::raw("  ")];
            self.right(Rect { y: area.y + area.height - 1, ..area }, spans, area.width);
        }
        if rows.card.height > 0 {
            self.card(rows.card);
        }
        let session = app.shared.sessions.all.get(&conversation.session);
        let mut y = rows.queue.y;
        for (n, (_, words, by)) in session.into_iter().flat_map(|session| session.queue.iter()).take(3).enumerate() {
            if y + u16::try_from(composer::offer_lines(app)).unwrap_or(0) >= rows.composer.y {
                break;
            }
            let room = usize::from(rows.queue.width).saturating_sub(14 + by.chars().count().clamp(12, 60));
            let words = sanitize::cut(words, room);
            let spans = vec![
                Span::styled(format!("  waits {} ", n + 1), theme.warn),
                Span::raw(words),
                Span::styled(format!(" · {by}"), theme.dim),
            ];
            self.put(rows.queue.x, y, spans, rows.queue.width);
            y += 1;
        }
        self.offers(Rect { y, height: rows.composer.y.saturating_sub(y), ..rows.queue });
        self.composer(rows.composer);
    }

    fn header(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        let Some(conversation) = &app.pages.session.conversation else { return };
        let mut right = Vec::new();
        let mut say = |words: String, style: Style| {
            if !words.is_empty() {
                right.push(Span::styled(" · ", theme.rule));
                right.push(Span::styled(words, style));
            }
        };
        let names = app.shared.sessions.viewer_names(&conversation.session);
        let width = usize::from(area.width);
        let focus = has_panes(app) && app.shared.page == TuiPage::Session;
        let mut left = vec![if focus { Span::styled("▌", theme.accent) } else { Span::raw(" ") }];
        if let Some(session) = app.shared.sessions.all.get(&conversation.session) {
            let (mark, style) = state_mark(app, session);
            left.push(Span::styled(format!("{mark} "), style));
            left.push(Span::styled(sanitize::cut(&session.name(), width / 2), theme.text.add_modifier(Modifier::BOLD)));
            left.push(Span::styled(format!("  {} ", session.runtime), theme.dim));
            if app.shared.runtimes.iter().any(|one| one.id == session.runtime && !one.unasked.is_empty()) {
                left.push(Span::styled("acts without asking ", theme.warn));
            }
            if width > 100 {
                left.push(Span::styled(sanitize::cut(&session.cwd, 40), theme.dim));
            }
            let took = match conversation.running {
                Some(at) if at > 0 && session.state != "idle" => format!(" {}", span(app.shared.now - at)),
                _ => String::new(),
            };
            say(format!("{}{took}", session.state), style);
            let doing = app.shared.sessions.doing.get(&session.id).filter(|_| width > 90 && session.state == "running");
            say(doing.map(|doing| sanitize::cut(doing, 30)).unwrap_or_default(), theme.dim);
        } else {
            left.push(Span::styled(sanitize::line(&conversation.session, 40), theme.dim));
        }
        for words in conversation.settings.current_names() {
            say(sanitize::cut(&words, 24), theme.dim);
        }
        if let Some((used, size)) = conversation.usage.filter(|(_, size)| *size > 0) {
            let left = 100 - (used.saturating_mul(100) / size).min(100);
            say(format!("{left}% context left"), if left < 15 { theme.warn } else { theme.dim });
        }
        if !names.is_empty() && width > 70 {
            say(format!("with {}", sanitize::cut(&names.join(", "), 20)), theme.dim);
        }
        let mut right = right.split_off(right.len().min(1));
        right.push(Span::raw(" "));
        // The name and the agent are cut, and not what the session does now.
        let most = area.width / 2 + 8;
        let wide = right.iter().map(|span| sanitize::width(&span.content)).sum::<usize>().min(usize::from(most));
        self.put(area.x, area.y, left, area.width.saturating_sub(u16::try_from(wide).unwrap_or(most) + 1));
        self.right(area, right, most);
    }

    fn scrollbar(&mut self, area: Rect, place: f32, end: bool) {
        if area.height < 4 {
            return;
        }
        let rows = area.height - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place on a scroll bar, between its ends"
        )]
        let at = if end { rows } else { (place * f32::from(rows)) as u16 };
        let style = self.app.shared.theme.rule;
        self.put(area.x + area.width, area.y + at.min(rows), Span::styled("┃", style), 1);
    }

    fn window(&mut self, width: u16, height: u16, title: &str) -> Rect {
        let (w, h) = self.app.shared.size;
        let (width, height) = (width.min(w - 2), height.min(h - 2));
        let area = Rect::new((w - width) / 2, (h - height) / 3, width, height);
        Clear.render(area, self.buf);
        let theme = &self.app.shared.theme;
        Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(theme.accent.remove_modifier(Modifier::BOLD))
            .render(area, self.buf);
        self.put(area.x + 2, area.y, Span::styled(format!(" {title} "), theme.accent), area.width.saturating_sub(4));
        Rect::new(area.x + 2, area.y + 1, area.width - 4, area.height - 2)
    }

    fn overlay(&mut self) {
        let app = self.app;
        let theme = &app.shared.theme;
        match &app.shared.overlay {
            None => {}
            Some(Overlay::Help(scroll)) => {
                let inside = self.window(HELP_WIDTH, app.shared.size.1, "Keys · ↑↓ scroll · Esc");
                for (n, line) in (0..inside.height).zip(help_lines(app).into_iter().skip(*scroll)) {
                    self.put(inside.x, inside.y + n, line, inside.width);
                }
            }
            Some(Overlay::TextPage { title, words, scroll }) => {
                let inside = self.window(app.shared.size.0, app.shared.size.1, &format!("{title} · ↑↓ scroll · Esc"));
                let scroll = (*scroll).min(text_end(app, words));
                let words = sanitize::text(words);
                for (n, line) in (0..inside.height).zip(words.split('\n').skip(scroll)) {
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
            Some(Overlay::Confirm { words, .. }) => {
                let width = 64.min(app.shared.size.0.saturating_sub(2));
                let room = usize::from(width.saturating_sub(4));
                let (none, words) = (Span::raw(""), [Span::raw(sanitize::line(words, room * 4))]);
                let lines = wrap(&words, &none, &none, room);
                let many = u16::try_from(lines.len()).unwrap_or(1);
                let inside = self.window(width, many + 4, "Really?");
                for (n, line) in (0..many).zip(lines) {
                    self.put(inside.x, inside.y + n, line, inside.width);
                }
                let spans = vec![
                    Span::styled(" y ", theme.warn.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                    Span::raw(" yes   "),
                    Span::styled(" n ", theme.text.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                    Span::raw(" no"),
                ];
                self.put(inside.x, inside.y + many + 1, spans, inside.width);
            }
            Some(Overlay::Input { label, area, .. }) => {
                let inside = self.window(64, 4, label);
                self.field(Rect { height: 1, ..inside }, area, true);
                self.put(inside.x, inside.y + 1, Span::styled("Enter accepts · Esc back", theme.dim), inside.width);
            }
            Some(Overlay::Palette { area, at }) => {
                let list = app.palette(&area.lines().join(" "));
                let inside = self.window(70, app.shared.size.1.saturating_sub(4).min(18), "Commands");
                self.put(inside.x, inside.y, Span::styled("› ", theme.accent), 2);
                self.field(Rect::new(inside.x + 2, inside.y, inside.width - 2, 1), area, true);
                let at = (*at).min(list.len().saturating_sub(1));
                let (shown, first) = window(list.len(), at, usize::from(inside.height - 1));
                for (n, (name, what)) in list.into_iter().enumerate().skip(first).take(shown) {
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

/// The keys that matter now, for the last line.
fn hints(app: &App) -> Vec<(&'static str, &'static str)> {
    if let Some(overlay) = &app.shared.overlay {
        return overlay_hints(overlay).to_vec();
    }
    if let Some(form) = &app.new_session.form {
        return new_session::form_hints(app, form);
    }
    if let Some(screen) = app.changes.screen.as_ref().filter(|_| app.shared.page == TuiPage::Session) {
        return changes::changes_hints(app, screen).to_vec();
    }
    let hints: &[(&'static str, &'static str)] = match app.shared.page {
        TuiPage::Inbox if !app.pages.inbox.triage.selected.is_empty() => &[
            ("a", "allow once"),
            ("d", "deny"),
            ("r", "deny with a reason"),
            ("x", "select"),
            ("X", "clear"),
            ("?", "keys"),
        ],
        TuiPage::Inbox => &[
            ("↑↓", "move"),
            ("a", "allow once"),
            ("d", "deny"),
            ("x", "select"),
            ("Enter", "open session"),
            ("?", "keys"),
            ("q", "quit"),
        ],
        TuiPage::Sessions if app.pages.sessions.filtering => &[("Enter", "list"), ("Esc", "all sessions")],
        TuiPage::Sessions => &[
            ("↑↓", "move"),
            ("Enter", "open"),
            ("←→", "fold"),
            ("f", "filter"),
            ("N", "new"),
            ("a", "archived"),
            (":", "commands"),
            ("?", "keys"),
            ("q", "quit"),
        ],
        TuiPage::Search if app.pages.search.typing => &[("Enter", "search"), ("Esc", "list"), ("Tab", "next page")],
        TuiPage::Search => &[("↑↓", "move"), ("Enter", "open"), ("i", "new search"), ("?", "keys"), ("q", "quit")],
        TuiPage::Runtimes => &[
            ("↑↓", "move"),
            ("N", "new session"),
            ("R", "restart"),
            ("x", "stop"),
            ("l", "log"),
            ("?", "keys"),
            ("q", "quit"),
        ],
        TuiPage::Devices => {
            &[("p", "pair a device"), ("↑↓", "move"), ("R", "rename"), ("x", "revoke"), ("?", "keys"), ("q", "quit")]
        }
        TuiPage::Session if app.surface_takes_text() => {
            &[("Esc", "end of the text"), ("Tab", "next field"), ("Ctrl-K", "commands")]
        }
        TuiPage::Session if app.surface_is_open() => {
            &[("Tab", "next"), ("↑↓", "move"), ("Enter", "press"), ("[ ]", "surfaces"), ("Esc", "back"), ("?", "keys")]
        }
        TuiPage::Session if app.shared.writing && app.shared.card.open().is_some() => {
            &[("Esc", "answer the request"), ("Enter", "send"), ("Alt-Enter", "new line")]
        }
        TuiPage::Session if app.shared.writing => {
            &[("Enter", "send"), ("Alt-Enter", "new line"), ("↑", "earlier"), ("Esc", "read"), ("Ctrl-K", "commands")]
        }
        TuiPage::Session if app.shared.card.focused => {
            &[("a", "allow once"), ("d", "deny"), ("Esc", "write"), ("?", "keys"), ("q", "back")]
        }
        TuiPage::Session => &[
            ("Esc", "write"),
            ("↑↓", "scroll"),
            ("G", "now"),
            ("Space", "unfold"),
            ("x", "cancel"),
            ("c", "copy"),
            ("E", "export"),
            ("?", "keys"),
            ("q", "back"),
        ],
    };
    let mut hints = hints.to_vec();
    if has_panes(app) && (app.shared.page != TuiPage::Session || !app.shared.writing) && !app.surface_is_open() {
        hints.insert(1, ("Tab", if app.shared.page == TuiPage::Session { "list" } else { "session" }));
    }
    hints
}

/// The keys of what is drawn over the page.
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

/// Sanitized text padded or cut to a column of a table.
fn cell(words: &str, width: usize, style: Style) -> Span<'static> {
    let words = sanitize::cut(words, width);
    let pad = (width + 1).saturating_sub(sanitize::width(&words));
    Span::styled(format!("{words}{}", " ".repeat(pad)), style)
}

fn state_mark(app: &App, session: &SessionItem) -> (&'static str, Style) {
    let theme = &app.shared.theme;
    match session.state.as_str() {
        "waiting" => ("?", theme.warn),
        "running" => ("●", theme.busy),
        "exited" => ("✘", theme.dim),
        _ => ("○", theme.dim),
    }
}

fn help_lines(app: &App) -> Vec<Line<'static>> {
    let theme = &app.shared.theme;
    // Within the window's border and its spaces.
    let width = usize::from(HELP_WIDTH.min(app.shared.size.0.saturating_sub(2)).saturating_sub(4));
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

/// How far the help can be scrolled.
pub(crate) fn help_end(app: &App) -> usize {
    help_lines(app).len().saturating_sub(usize::from(app.shared.size.1.saturating_sub(4)))
}

/// How far this text can be scrolled.
pub(crate) fn text_end(app: &App, words: &str) -> usize {
    words.split('\n').count().saturating_sub(usize::from(app.shared.size.1.saturating_sub(4)))
}
