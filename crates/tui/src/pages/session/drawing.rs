//! The drawing of the open session, and the areas of its parts.

use plexus_protocol::SessionState;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::SessionPage;
use super::composer::offer_lines;
use crate::card::Card;
use crate::conversation::DrawContext;
use crate::input;
use crate::pages::TuiPage;
use crate::pages::draw::{Draw, state_mark};
use crate::pages::layout::{LOW, card_rect, detail_card_space, fits, has_panes, panes};
use crate::pages::shared::{ConnectionView, Shared};
use crate::sanitize;
use crate::view_model::{QueuedItem, span};

/// Maximum number of lines of the composer.
const COMPOSER_MAX: usize = 8;

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

impl SessionPage {
    fn rows(&self, shared: &Shared) -> Rows {
        let panes = panes(shared);
        let all = panes.middle;
        let preview = shared.page != TuiPage::Session;
        let lines = input::rows(&self.composer, usize::from(all.width.saturating_sub(5))).clamp(1, COMPOSER_MAX);
        // On a low screen, a request takes the space of the empty composer.
        let has_request = shared.card.open().is_some() && !shared.writing;
        let hidden = preview || all.height < LOW && has_request && self.composer.is_empty();
        let composer = if hidden { 0 } else { u16::try_from(lines).unwrap_or(1) + 1 };
        let session =
            self.conversation.as_ref().and_then(|conversation| shared.sessions.all.get(&conversation.session));
        let queued = session.filter(|_| !preview).map_or(0, |session| session.queue.len()).min(3);
        let queue = u16::try_from(queued + if preview { 0 } else { offer_lines(shared, self) }).unwrap_or(0);
        let open = self.surface_is_open(shared);
        // An open surface takes the space of the composer as well.
        let below = if open { 0 } else { (composer + queue).min(all.height / 2) };
        let queue = below.saturating_sub(composer);
        let pinned = self.conversation.as_ref().is_some_and(|conversation| !conversation.surfaces.pinned().is_empty());
        let pins = u16::from(pinned && !open);
        let middle = all.height.saturating_sub(1 + pins + below);
        let max = card_max(shared, middle);
        let card = match (&shared.card.card, shared.page) {
            (Some(card), TuiPage::Session | TuiPage::Inbox) if panes.detail.width == 0 => {
                shared.requests.get(&card.id).map_or(0, |(ask, _)| {
                    u16::try_from(card.shape(ask, all.width, usize::from(max), &shared.theme).height).unwrap_or(max)
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

    /// The space for a card on the page: its width and maximum height.
    pub(crate) fn card_space(&self, shared: &Shared) -> Rect {
        let rows = self.rows(shared);
        Rect { height: card_max(shared, rows.conversation.height + rows.card.height), ..rows.card }
    }

    /// The area of the card.
    pub(crate) fn card_rect(&self, shared: &Shared) -> Rect {
        self.rows(shared).card
    }

    pub(crate) fn conversation_area(&self, shared: &Shared) -> Rect {
        if !fits(shared) || panes(shared).middle.width == 0 {
            return Rect::default();
        }
        let area = self.rows(shared).conversation;
        Rect { width: area.width.saturating_sub(1), ..area }
    }

    /// The area of the open surface's content, inside its frame.
    pub(crate) fn surface_area(&self, shared: &Shared) -> Rect {
        if !self.surface_is_open(shared) || !fits(shared) {
            return Rect::default();
        }
        let frame = self.rows(shared).conversation;
        let (width, height) = (frame.width.saturating_sub(4), frame.height.saturating_sub(2));
        Rect::new(frame.x + 2, frame.y + 1, width, height)
    }
}

/// The maximum height of a card: a part of the conversation remains visible, but only two lines above a form.
fn card_max(shared: &Shared, middle: u16) -> u16 {
    if shared.card.card.as_ref().is_some_and(Card::is_form) {
        return middle.saturating_sub(2).max(middle.min(9));
    }
    (middle * 7 / 10).max(middle.min(9))
}

impl Draw<'_> {
    pub(crate) fn session(&mut self, page: &SessionPage) {
        let shared = self.shared;
        let theme = &shared.theme;
        let rows = page.rows(shared);
        let Some(conversation) = &page.conversation else {
            // With three panes, the card is in the third.
            if rows.card.height > 0 {
                self.card(rows.card);
            }
            return;
        };
        self.header(page, rows.header);
        if page.surface_is_open(shared) {
            self.surface(page, rows.conversation);
            // A request is drawn over the surface of an agent.
            if rows.card.height > 0 {
                self.card(rows.card);
            }
            return;
        }
        self.pins(page, rows.pins);
        let area = page.conversation_area(shared);
        let cx = DrawContext { theme, width: area.width, height: usize::from(area.height), now: shared.now };
        let lines = conversation.screen(&cx);
        let preview = shared.page != TuiPage::Session;
        if lines.is_empty() && area.height > 2 {
            let text = match (conversation.live, &shared.link) {
                (true, _) if preview => "No messages yet.".to_owned(),
                (true, _) => "No messages yet. Write a prompt below.".to_owned(),
                (false, ConnectionView::Live) => format!("reading … {} events", conversation.events),
                _ => "connecting …".to_owned(),
            };
            self.put(area.x + 2, area.y + 1, Span::styled(text, theme.dim), area.width.saturating_sub(2));
        }
        for (n, (line, chosen)) in (0..).zip(lines) {
            self.put(area.x, area.y + n, line, area.width);
            if chosen {
                self.put(area.x, area.y + n, Span::styled("┃", theme.accent), 1);
            }
        }
        self.scrollbar(
            area,
            conversation.scroll_fraction(&cx),
            conversation.scroll_position.follow && !conversation.is_older(),
        );
        if let Some(text) = conversation.before().filter(|_| !conversation.scroll_position.follow) {
            let spans =
                vec![Span::styled(format!(" ↑ {text} "), theme.dim.add_modifier(Modifier::REVERSED)), Span::raw(" ")];
            self.right(area, spans, area.width);
        }
        if !conversation.live && conversation.events > 0 && shared.link == ConnectionView::Live {
            let text = format!(" reading … {} events ", conversation.events);
            let spans = vec![Span::styled(text, theme.warn.add_modifier(Modifier::REVERSED)), Span::raw(" ")];
            self.right(area, spans, area.width);
        }
        if !conversation.scroll_position.follow && area.height > 3 {
            let text = match conversation.unseen {
                0 => " ↓ G: to now ".to_owned(),
                count => format!(" ↓ {count} new · G: to now "),
            };
            let spans = vec![Span::styled(text, theme.accent.add_modifier(Modifier::REVERSED)), Span::raw("  ")];
            self.right(Rect { y: area.y + area.height - 1, ..area }, spans, area.width);
        }
        if rows.card.height > 0 {
            self.card(rows.card);
        }
        let session = shared.sessions.all.get(&conversation.session);
        let mut y = rows.queue.y;
        for (n, QueuedItem { text, author, .. }) in
            session.into_iter().flat_map(|session| session.queue.iter()).take(3).enumerate()
        {
            if y + u16::try_from(offer_lines(shared, page)).unwrap_or(0) >= rows.composer.y {
                break;
            }
            let space = usize::from(rows.queue.width).saturating_sub(14 + author.chars().count().clamp(12, 60));
            let text = sanitize::cut(text, space);
            let spans = vec![
                Span::styled(format!("  waits {} ", n + 1), theme.warn),
                Span::raw(text),
                Span::styled(format!(" · {author}"), theme.dim),
            ];
            self.put(rows.queue.x, y, spans, rows.queue.width);
            y += 1;
        }
        self.offers(page, Rect { y, height: rows.composer.y.saturating_sub(y), ..rows.queue });
        self.composer(page, rows.composer);
    }

    fn header(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some(conversation) = &page.conversation else { return };
        let mut right = Vec::new();
        let mut add = |text: String, style: Style| {
            if !text.is_empty() {
                right.push(Span::styled(" · ", theme.rule));
                right.push(Span::styled(text, style));
            }
        };
        let names = shared.sessions.viewer_names(&conversation.session);
        let width = usize::from(area.width);
        let focus = has_panes(shared) && shared.page == TuiPage::Session;
        let mut left = vec![if focus { Span::styled("▌", theme.accent) } else { Span::raw(" ") }];
        if let Some(session) = shared.sessions.all.get(&conversation.session) {
            let (mark, style) = state_mark(shared, session);
            left.push(Span::styled(format!("{mark} "), style));
            left.push(Span::styled(sanitize::cut(&session.name(), width / 2), theme.text.add_modifier(Modifier::BOLD)));
            left.push(Span::styled(format!("  {} ", session.runtime), theme.dim));
            if shared.runtimes.iter().any(|one| one.id == session.runtime && !one.acted_unasked.is_empty()) {
                left.push(Span::styled("acts without asking ", theme.warn));
            }
            if width > 100 {
                left.push(Span::styled(sanitize::cut(&session.cwd, 40), theme.dim));
            }
            let took = match conversation.status.running {
                Some(at) if at > 0 && session.state != SessionState::Idle => format!(" {}", span(shared.now - at)),
                _ => String::new(),
            };
            add(format!("{}{took}", session.state.as_str()), style);
            let activity = shared
                .sessions
                .activities
                .get(&session.id)
                .filter(|_| width > 90 && session.state == SessionState::Running);
            add(activity.map(|activity| sanitize::cut(activity, 30)).unwrap_or_default(), theme.dim);
        } else {
            left.push(Span::styled(sanitize::line(&conversation.session, 40), theme.dim));
        }
        for text in conversation.status.settings.current_names() {
            add(sanitize::cut(&text, 24), theme.dim);
        }
        if let Some((used, size)) = conversation.status.usage.filter(|(_, size)| *size > 0) {
            let left = 100 - (used.saturating_mul(100) / size).min(100);
            add(format!("{left}% context left"), if left < 15 { theme.warn } else { theme.dim });
        }
        if !names.is_empty() && width > 70 {
            add(format!("with {}", sanitize::cut(&names.join(", "), 20)), theme.dim);
        }
        let mut right = right.split_off(right.len().min(1));
        right.push(Span::raw(" "));
        // The name and the agent are cut, but not the activity of the session.
        let max = area.width / 2 + 8;
        let wide = right.iter().map(|span| sanitize::width(&span.content)).sum::<usize>().min(usize::from(max));
        self.put(area.x, area.y, left, area.width.saturating_sub(u16::try_from(wide).unwrap_or(max) + 1));
        self.right(area, right, max);
    }

    /// Draws the pane at the right: the session, its plan and its latest tool calls, and the open card.
    pub(crate) fn detail(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let card = detail_card_space(shared).and_then(|space| card_rect(shared, space));
        let end = card.map_or(area.y + area.height, |card| card.y);
        let (x, width) = (area.x + 1, area.width.saturating_sub(2));
        let mut lines = Vec::new();
        if let Some(conversation) = &page.conversation {
            if let Some(session) = shared.sessions.all.get(&conversation.session) {
                let name = sanitize::cut(&session.name(), usize::from(width));
                lines.push(Line::from(Span::styled(name, theme.text.add_modifier(Modifier::BOLD))));
                lines.push(Line::from(Span::styled(sanitize::cut(&session.cwd, usize::from(width)), theme.dim)));
                let mut text = vec![session.runtime.clone()];
                text.extend(Some(session.branch.clone()).filter(|branch| !branch.is_empty()));
                text.extend(conversation.status.settings.current_names());
                let text = sanitize::cut(&text.join(" · "), usize::from(width));
                lines.push(Line::from(Span::styled(text, theme.dim)));
            }
            let space = usize::from(end.saturating_sub(area.y)).saturating_sub(lines.len());
            let cx = DrawContext { theme, width, height: space, now: shared.now };
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
