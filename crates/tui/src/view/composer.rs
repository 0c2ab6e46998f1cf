//! The composer, and what stands above it: the files and commands that are offered, and the images of the prompt.

use super::*;
use plexus_protocol::answers::AnswerRole;

/// Most lines of images.
const IMAGE_LINES: usize = 3;

/// The lines that offers and images take above the composer.
pub(super) fn offer_lines(app: &App) -> usize {
    let files = if app.shared.writing { app.pages.session.files.lines() } else { 0 };
    let offered = if files > 0 { files } else { app.slash().len() };
    offered + app.images_here().len().min(IMAGE_LINES)
}

/// The request that waits above the composer, and the keys that answer it.
fn asks(app: &App) -> Option<String> {
    let card = app.shared.card.open()?;
    let (ask, _) = app.shared.requests.get(&card.id)?;
    Some(
        match ask.actions.iter().find(|action| action.unavailable.is_none()).map(|action| (action.key, action.verb())) {
            _ if ask.observe => format!("{} asks, where it runs", ask.runtime),
            Some((Some(key), verb)) if ask.action(AnswerRole::Send).is_none() => {
                format!("{} asks: Esc, then {key} ({})", ask.runtime, verb.to_lowercase())
            }
            _ => format!("{} asks: Esc, then answer", ask.runtime),
        },
    )
}

impl Draw<'_> {
    /// Draws what is offered, and the images of the prompt.
    pub(super) fn offers(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        let mut lines: Vec<(Vec<Span<'static>>, bool)> = Vec::new();
        if app.shared.writing && app.pages.session.files.lines() > 0 {
            for (n, path) in app.pages.session.files.paths().iter().enumerate() {
                lines.push((self.file_row("  @", path, usize::from(area.width)), n == app.pages.session.files.at));
            }
            if !app.pages.session.files.words.is_empty() {
                let words = sanitize::cut(&app.pages.session.files.words, usize::from(area.width).saturating_sub(3));
                lines.push((vec![Span::styled(format!("  {words}"), theme.dim)], false));
            }
        } else {
            for (name, what) in app.slash() {
                let what = Span::styled(sanitize::cut(&what, 60), theme.dim);
                lines.push((vec![Span::styled(format!("  /{name} "), theme.accent), what], false));
            }
        }
        let images = app.images_here();
        for (n, image) in images.iter().enumerate().take(IMAGE_LINES) {
            let more = match images.len() - IMAGE_LINES.min(images.len()) {
                more if more > 0 && n + 1 == IMAGE_LINES => format!(" and {more} more"),
                _ => String::new(),
            };
            let words = sanitize::cut(&format!("  + {}{more}", image.words()), usize::from(area.width));
            let mut spans = vec![Span::styled(words.clone(), theme.accent)];
            let hint = "  Backspace in the empty field removes it";
            if n + 1 == images.len() && sanitize::width(&words) + hint.len() < usize::from(area.width) {
                spans.push(Span::styled(hint, theme.dim));
            }
            lines.push((spans, false));
        }
        for (y, (spans, chosen)) in (area.y..area.y + area.height).zip(lines) {
            self.put(area.x, y, spans, area.width);
            if chosen {
                self.fill(Rect { y, height: 1, ..area }, theme.selected);
            }
        }
    }

    /// A file that is offered: its name, then its folder.
    pub(super) fn file_row(&self, mark: &str, path: &str, width: usize) -> Vec<Span<'static>> {
        let theme = &self.app.shared.theme;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let name = sanitize::line(name, width / 2);
        let room = width.saturating_sub(sanitize::width(&name) + sanitize::width(mark) + 3);
        vec![
            Span::styled(mark.to_owned(), theme.accent),
            Span::styled(name, theme.text),
            Span::styled(format!("  {}", sanitize::line(folder, room)), theme.dim),
        ]
    }

    pub(super) fn composer(&mut self, area: Rect) {
        let app = self.app;
        let theme = &app.shared.theme;
        if area.height < 2 {
            return;
        }
        let style = if app.shared.writing { theme.accent } else { theme.rule };
        self.put(
            area.x,
            area.y,
            Span::styled("─".repeat(usize::from(area.width)), style.remove_modifier(Modifier::BOLD)),
            area.width,
        );
        if let Some(words) = asks(app).filter(|_| app.shared.writing) {
            let words = sanitize::cut(&words, usize::from(area.width).saturating_sub(6));
            self.put(area.x + 2, area.y, Span::styled(format!(" {words} "), theme.warn), area.width.saturating_sub(2));
        }
        self.put(area.x, area.y + 1, Span::styled(" › ", style), 3);
        let field = Rect::new(area.x + 3, area.y + 1, area.width.saturating_sub(4), area.height - 1);
        if app.pages.session.composer.is_empty() {
            let words = match app
                .pages
                .session
                .conversation
                .as_ref()
                .and_then(|conversation| app.shared.sessions.all.get(&conversation.session))
                .map(|one| one.state.as_str())
            {
                _ if !app.shared.writing => "i: write to the agent",
                Some("running" | "waiting") => "write a prompt: it will be queued",
                _ => "write to the agent",
            };
            let ended_runtime = app.ended_runtime().map(|name| match app.shared.writing {
                true => format!("{name} has ended. Enter: start {name} again and continue"),
                false => format!("{name} has ended. i, Enter: start {name} again and continue"),
            });
            let words = ended_runtime.unwrap_or_else(|| words.to_owned());
            self.put(field.x + u16::from(app.shared.writing), field.y, Span::styled(words, theme.dim), field.width);
            if app.shared.writing {
                self.fill(Rect::new(field.x, field.y, 1, 1), Style::new().add_modifier(Modifier::REVERSED));
            }
            return;
        }
        self.field(field, &app.pages.session.composer, app.shared.writing);
    }
}
