//! Drawing functions that the pages have in common.

use plexus_protocol::SessionState;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget as _};
use ratatui_textarea::TextArea;

use super::TuiPage;
use super::layout::{has_panes, window};
use super::shared::Shared;
use crate::markdown::wrap;
use crate::sanitize;
use crate::view_model::SessionItem;

/// The screen that is drawn on.
pub(crate) struct Draw<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) buf: &'a mut Buffer,
}

impl Draw<'_> {
    pub(crate) fn put(&mut self, x: u16, y: u16, spans: impl Into<Line<'static>>, width: u16) {
        self.buf.set_line(x, y, &spans.into(), width);
    }

    pub(crate) fn fill(&mut self, area: Rect, style: Style) {
        self.buf.set_style(area, style);
    }

    /// Puts spans at the right edge of an area, in its first line.
    pub(crate) fn right(&mut self, area: Rect, spans: Vec<Span<'static>>, max: u16) {
        let width = spans.iter().map(|span| sanitize::width(&span.content)).sum::<usize>().min(usize::from(max));
        let width = u16::try_from(width).unwrap_or(max);
        self.put((area.x + area.width).saturating_sub(width), area.y, spans, width);
    }

    /// Draws a list: its heading, and the lines that fit.
    pub(crate) fn list(&mut self, area: Rect, heads: &str, rows: Vec<Vec<Span<'static>>>, at: usize, none: &str) {
        self.lines(area, heads, (rows.len(), at), none, |n| rows[n].clone());
    }

    /// Draws a list with a number of lines and a selected one; only the lines that fit are made.
    pub(crate) fn lines(
        &mut self,
        area: Rect,
        heads: &str,
        (count, at): (usize, usize),
        none: &str,
        row: impl Fn(usize) -> Vec<Span<'static>>,
    ) {
        let theme = &self.shared.theme;
        self.put(area.x, area.y, Span::styled(heads.to_owned(), theme.dim), area.width);
        if count == 0 {
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
        let (visible, first) = window(count, at, usize::from(area.height.saturating_sub(1)));
        for n in first..first + visible {
            let y = area.y + 1 + u16::try_from(n - first).unwrap_or(0);
            self.put(area.x, y, row(n), area.width);
            if n == at {
                self.fill(Rect::new(area.x, y, area.width, 1), theme.selected);
            }
        }
    }

    pub(crate) fn scrollbar(&mut self, area: Rect, place: f32, end: bool) {
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
        let style = self.shared.theme.rule;
        self.put(area.x + area.width, area.y + at.min(rows), Span::styled("┃", style), 1);
    }

    pub(crate) fn window(&mut self, width: u16, height: u16, title: &str) -> Rect {
        let (w, h) = self.shared.size;
        let (width, height) = (width.min(w - 2), height.min(h - 2));
        let area = Rect::new((w - width) / 2, (h - height) / 3, width, height);
        Clear.render(area, self.buf);
        let theme = &self.shared.theme;
        Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(theme.accent.remove_modifier(Modifier::BOLD))
            .render(area, self.buf);
        self.put(area.x + 2, area.y, Span::styled(format!(" {title} "), theme.accent), area.width.saturating_sub(4));
        Rect::new(area.x + 2, area.y + 1, area.width - 4, area.height - 2)
    }

    pub(crate) fn field(&mut self, area: Rect, text: &TextArea<'static>, on: bool) {
        let mut text = text.clone();
        if !on {
            text.set_cursor_style(Style::new());
        }
        (&text).render(area, self.buf);
    }

    /// Draws the heading of a list, which shows whether the list has the focus.
    pub(crate) fn list_head(&mut self, area: Rect, text: Vec<Span<'static>>) {
        let focus = has_panes(self.shared) && self.shared.page != TuiPage::Session;
        let mut spans = vec![if focus { Span::styled("▌", self.shared.theme.accent) } else { Span::raw(" ") }];
        spans.extend(text);
        self.put(area.x, area.y, spans, area.width);
    }

    /// Marks the selected row of a list.
    pub(crate) fn mark_row(&mut self, area: Rect) {
        if has_panes(self.shared) && self.shared.page == TuiPage::Session {
            return self.put(area.x, area.y, Span::styled("▸", self.shared.theme.accent), 1);
        }
        self.fill(area, self.shared.theme.selected);
    }

    /// Draws the selected item of a list in full: names and texts.
    pub(crate) fn below_list(&mut self, area: Rect, lines: Vec<(&str, String)>) {
        let theme = &self.shared.theme;
        let width = usize::from(area.width);
        self.put(area.x, area.y, Span::styled("─".repeat(width), theme.rule), area.width);
        for (y, (name, text)) in (area.y + 1..area.y + area.height).zip(lines) {
            let text = sanitize::cut(&text, width.saturating_sub(8));
            let spans = vec![Span::styled(format!("{name:<6}"), theme.dim), Span::raw(text)];
            self.put(area.x + 1, y, spans, area.width - 1);
        }
    }

    /// A suggested file: its name, then its folder.
    pub(crate) fn file_row(&self, mark: &str, path: &str, width: usize) -> Vec<Span<'static>> {
        let theme = &self.shared.theme;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let name = sanitize::line(name, width / 2);
        let space = width.saturating_sub(sanitize::width(&name) + sanitize::width(mark) + 3);
        vec![
            Span::styled(mark.to_owned(), theme.accent),
            Span::styled(name, theme.text),
            Span::styled(format!("  {}", sanitize::line(folder, space)), theme.dim),
        ]
    }
}

/// Sanitized text padded or cut to a column of a table.
pub(crate) fn cell(text: &str, width: usize, style: Style) -> Span<'static> {
    let text = sanitize::cut(text, width);
    let pad = (width + 1).saturating_sub(sanitize::width(&text));
    Span::styled(format!("{text}{}", " ".repeat(pad)), style)
}

/// The mark of a session's state, and its style.
pub(crate) fn state_mark(shared: &Shared, session: &SessionItem) -> (&'static str, Style) {
    let theme = &shared.theme;
    match session.state {
        SessionState::Waiting => ("?", theme.warn),
        SessionState::Running => ("●", theme.busy),
        SessionState::Exited => ("✘", theme.dim),
        SessionState::Idle | SessionState::Unknown => ("○", theme.dim),
    }
}
