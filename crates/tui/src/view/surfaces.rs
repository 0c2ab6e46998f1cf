//! Surfaces on the session's page: the frame, which the agent cannot write to, and the line that names the pinned ones.

use super::*;
use crate::surface::{self, LayoutContext};

impl Draw<'_> {
    /// The open surface in its frame.
    pub(super) fn surface(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        let Some(conversation) = &app.pages.session.conversation else { return };
        let Some(surface) = conversation.surfaces.open() else { return };
        let inside = surface_area(app);
        let (width, height) = (usize::from(inside.width), usize::from(inside.height));
        let cx = LayoutContext { theme, width, height, inline: false };
        Clear.render(area, self.buf);
        Block::bordered().border_style(theme.rule).render(area, self.buf);
        let room = area.width.saturating_sub(4);
        let (at, many) = conversation.surfaces.open_place();
        let mut right = String::new();
        if surface.pinned() {
            right.push_str(" pinned ");
        }
        if many > 1 {
            right.push_str(&format!(" {at} of {many} "));
        }
        let wide = u16::try_from(sanitize::width(&right)).unwrap_or(0).min(room / 2);
        let head = vec![
            Span::styled(format!(" {} draws ", conversation.agent()), theme.dim),
            Span::styled(
                format!("{} ", sanitize::cut(&surface::title(surface), usize::from(room.saturating_sub(wide + 4)))),
                theme.accent,
            ),
        ];
        self.put(area.x + 2, area.y, head, room.saturating_sub(wide));
        self.put(area.x + area.width.saturating_sub(wide + 2), area.y, Span::styled(right, theme.dim), wide);
        let Some((layout, scroll)) = conversation.surfaces.draw_open(&cx) else { return };
        let all = layout.lines.len();
        for (n, line) in (0..inside.height).zip(layout.lines.into_iter().skip(scroll)) {
            self.put(inside.x, inside.y + n, line, inside.width);
        }
        let foot = area.y + area.height.saturating_sub(1);
        if all > height {
            let words = format!(" {}–{} of {all} ", scroll + 1, (scroll + height).min(all));
            let wide = u16::try_from(sanitize::width(&words)).unwrap_or(0);
            self.put(area.x + area.width.saturating_sub(wide + 2), foot, Span::styled(words, theme.dim), wide);
        }
        let problem = conversation.surfaces.open_state().map(|state| state.problem.as_str()).unwrap_or_default();
        let asks = conversation.surfaces.open_ask().is_some();
        let words = match (problem, asks) {
            ("", false) => return,
            ("", true) => " it asks you: press a button that answers ".to_owned(),
            (problem, _) => format!(" {problem} "),
        };
        let most = usize::from(area.width.saturating_sub(if all > height { 22 } else { 4 }));
        self.put(area.x + 2, foot, Span::styled(sanitize::cut(&words, most), theme.warn), room);
    }

    /// The line that names the pinned surfaces.
    pub(super) fn pins(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        let Some(conversation) = app.pages.session.conversation.as_ref().filter(|_| area.height > 0) else { return };
        let titles = conversation.surfaces.pinned().join(" · ");
        let hint = if app.shared.writing { "  Esc s: open" } else { "  s: open" };
        let room = usize::from(area.width).saturating_sub(sanitize::width(hint) + 12);
        let spans = vec![
            Span::styled(" ▣ pinned ", theme.dim),
            Span::styled(sanitize::cut(&titles, room), theme.accent),
            Span::styled(hint, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }
}
