//! The card of a request.

use plexus_protocol::answers::AnswerAction;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Span;
use ratatui::widgets::{Block, BorderType, Clear, Widget as _};

use super::TuiPage;
use super::draw::{Draw, cell};
use super::layout::{NARROW_TABS, window};
use super::shared::Shared;
use crate::card::{Card, CardMode, MENU_ROWS, card_text, option_positions};
use crate::input;
use crate::sanitize;
use crate::view_model::{RequestView, RiskView};

/// The key of the card's button at a place of the screen, on the card in this area.
pub(crate) fn option_at(shared: &Shared, area: Rect, column: u16, row: u16) -> Option<char> {
    let card = shared.card.card.as_ref()?;
    let (ask, None) = shared.requests.get(&card.id)? else { return None };
    let (lines, positions) = option_positions(card, ask, usize::from(area.width).saturating_sub(4));
    let first = (area.y + area.height).checked_sub(2 + u16::try_from(lines).ok()?)?;
    let line = usize::from(row.checked_sub(first)?);
    let column = usize::from(column.checked_sub(area.x + 2)?);
    let position =
        positions.into_iter().find(|position| position.line == line && position.columns.contains(&column))?;
    position.key.chars().next()
}

impl Draw<'_> {
    pub(crate) fn card(&mut self, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some(card) = &shared.card.card else { return };
        let Some((ask, outcome)) = shared.requests.get(&card.id) else { return };
        let shape = card.shape(ask, area.width, usize::from(area.height), theme);
        let mut from = shared.sessions.label(&ask.session);
        let names = shared.sessions.viewer_names(&ask.session);
        if !names.is_empty() {
            from = format!("{from} · also here: {}", names.join(", "));
        }
        let inner_width = usize::from(area.width).saturating_sub(4);
        let mut text = card_text(card, ask, outcome.as_ref(), &from, (theme, inner_width, shared.now));
        if !shared.card.focused && outcome.is_none() && !ask.request.observe_only {
            let (key, hint) = match (shared.page == TuiPage::Session && shared.writing, area.width < NARROW_TABS) {
                (true, true) => ("Esc", " answers it: you are writing"),
                (true, false) => ("Esc", " answers it: letters go into your prompt now"),
                (false, _) => ("a", " chooses it; then the keys answer"),
            };
            text.hint = vec![Span::styled(key, theme.accent), Span::styled(hint, theme.dim)];
        }
        let style = match (outcome, ask.risk) {
            (Some(_), _) => theme.rule,
            (None, RiskView::Danger) => theme.bad.remove_modifier(Modifier::BOLD),
            (None, _) => theme.warn,
        };
        Clear.render(area, self.buf);
        Block::bordered().border_type(BorderType::Rounded).border_style(style).render(area, self.buf);
        let waiting = shared.open_asks().0;
        let more = match waiting - usize::from(outcome.is_none() && waiting > 0) {
            0 => String::new(),
            count if area.width < NARROW_TABS => format!(" +{count} ] "),
            count => format!(" {count} more: ] "),
        };
        let wide = u16::try_from(sanitize::width(&more)).unwrap_or(0);
        let space = usize::from(area.width).saturating_sub(4 + usize::from(wide));
        let mut head = text.head;
        // The last parts, its age and its expiry, are left out first.
        while head.len() > 2 && head.iter().map(|span| sanitize::width(&span.content)).sum::<usize>() > space {
            head.pop();
        }
        self.put(area.x + 2, area.y, head, u16::try_from(space).unwrap_or(0));
        if !more.is_empty() {
            self.put(area.x + area.width.saturating_sub(wide + 2), area.y, Span::styled(more, theme.dim), wide);
        }
        let x = area.x + 2;
        let width = area.width.saturating_sub(4);
        let mut y = area.y + 1;
        let end = area.y + area.height.saturating_sub(1);
        if !shape.compact {
            self.put(x, y, Span::styled(sanitize::cut(&text.from, inner_width), theme.dim), width);
            y += 1;
        }
        let count = shape.content.len();
        for line in shape.content.into_iter().skip(card.scroll).take(shape.rows) {
            if y < end {
                self.put(x, y, line, width);
                y += 1;
            }
        }
        if count > shape.rows {
            let text = format!(" {}–{} of {count} ", card.scroll + 1, (card.scroll + shape.rows).min(count));
            let wide = u16::try_from(sanitize::width(&text)).unwrap_or(0);
            self.put(
                area.x + area.width.saturating_sub(wide + 2),
                end,
                Span::styled(text, if card.read { theme.dim } else { theme.warn }),
                wide,
            );
        }
        if outcome.is_none() {
            y = self.card_input(Rect::new(x, y, width, end.saturating_sub(y)), card, ask);
        }
        let high = u16::try_from(text.options.len()).unwrap_or(0);
        let mut y = end.saturating_sub(1 + high).max(y);
        for line in text.options {
            if y < end {
                self.put(x, y, line, width);
                y += 1;
            }
        }
        if y < end {
            self.put(x, y, text.hint, width);
        }
    }

    /// Draws the text or choice on the card; returns the first line below it.
    fn card_input(&mut self, area: Rect, card: &Card, ask: &RequestView) -> u16 {
        let shared = self.shared;
        let theme = &shared.theme;
        let (x, width, end, inner_width) = (area.x, area.width, area.y + area.height, usize::from(area.width));
        let mut y = area.y;
        match &card.mode {
            CardMode::Reason(text) | CardMode::Edit(text) | CardMode::Text(text) => {
                let high = u16::try_from(input::rows(text, inner_width.saturating_sub(3)).clamp(1, 6)).unwrap_or(1);
                self.put(x, y, Span::styled("› ", theme.accent), 2);
                self.field(
                    Rect::new(x + 2, y, width.saturating_sub(2), high.min(area.height)),
                    text,
                    shared.card.focused,
                );
                y += high;
            }
            CardMode::Menu { at } => {
                let (visible, first) = window(ask.actions.len(), *at, MENU_ROWS);
                let space = usize::from(end.saturating_sub(y));
                for (n, action) in ask.actions.iter().enumerate().skip(first).take(visible.min(space)) {
                    let style = if action.unavailable.is_none() { theme.text } else { theme.dim };
                    let spans = vec![
                        cell(action.verb(), 18, style),
                        Span::styled(sanitize::cut(&quoted(action), inner_width.saturating_sub(20)), theme.dim),
                    ];
                    self.put(x, y, spans, width);
                    if n == *at {
                        self.fill(Rect::new(x, y, width, 1), theme.selected);
                    }
                    y += 1;
                }
            }
            CardMode::Pick { at, picked } => {
                let (visible, first) = window(ask.items.len(), *at, MENU_ROWS);
                for (n, item) in ask.items.iter().enumerate().skip(first).take(visible) {
                    let mark = match (ask.request.multi, picked.contains(&n)) {
                        (true, true) => "[x] ",
                        (true, false) => "[ ] ",
                        _ => "  ",
                    };
                    if y < end {
                        let spans = vec![
                            Span::styled(mark, theme.accent),
                            Span::raw(item.label.clone()),
                            Span::styled(format!("  {}", item.detail), theme.dim),
                        ];
                        self.put(x, y, spans, width);
                        if n == *at {
                            self.fill(Rect::new(x, y, width, 1), theme.selected);
                        }
                        y += 1;
                    }
                }
            }
            CardMode::Choose | CardMode::ConfirmRule { .. } | CardMode::TypeYes { .. } | CardMode::Form(_) => {}
        }
        y
    }
}

/// The agent's label, or the reason why this device may not give the answer.
fn quoted(action: &AnswerAction) -> String {
    match action.unavailable {
        Some(why) => why.text().to_owned(),
        None if action.label.is_empty() => String::new(),
        None => format!("“{}”", action.label),
    }
}
