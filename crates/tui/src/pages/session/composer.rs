//! The composer and the lines above it: the suggested files and commands, and the images of the prompt.

use plexus_client::calls;
use plexus_protocol::answers::AnswerRole;
use plexus_protocol::api::folders::Files;
use plexus_protocol::{RuntimeId, RuntimeState, SessionId, SessionState};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui_textarea::CursorMove;

use super::SessionPage;
use crate::attachments::{Attachment, attach, new_prompt, pasted_path};
use crate::input;
use crate::mention::OFFERS_MAX;
use crate::pages::TuiPage;
use crate::pages::context::Context;
use crate::pages::draw::Draw;
use crate::pages::message::{CallTag, Effect, SentPrompt};
use crate::pages::shared::Shared;
use crate::sanitize;

impl SessionPage {
    /// Recalls an earlier prompt, or the next one.
    pub(crate) fn recall(&mut self, back: bool) {
        let Some(conversation) = &self.conversation else { return };
        let count = conversation.prompts.len();
        let at = match (self.history, back) {
            (None, true) if count > 0 => count - 1,
            (Some(at), true) => at.saturating_sub(1),
            (Some(at), false) => at + 1,
            _ => return,
        };
        if self.history.is_none() {
            self.draft = self.composer.lines().join("\n");
        }
        (self.history, self.composer) = match conversation.prompts.get(at) {
            Some(text) => (Some(at), input::area(text)),
            None => (None, input::area(&self.draft)),
        };
        if back {
            self.composer.move_cursor(CursorMove::Top);
            self.composer.move_cursor(CursorMove::End);
        }
    }

    /// The runtime of the open session, if it has ended and can be restarted from here.
    pub(crate) fn ended_runtime(&self, shared: &Shared) -> Option<String> {
        let session = shared
            .sessions
            .all
            .get(&self.conversation.as_ref()?.session)
            .filter(|session| session.state == SessionState::Exited)?;
        let is_running = shared
            .runtimes
            .iter()
            .any(|runtime| runtime.id == session.runtime && runtime.state != RuntimeState::Exited);
        (!is_running).then(|| session.runtime.clone())
    }

    /// Sends the prompt; if the agent has ended, it is started first.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) {
        let text = self.composer.lines().join("\n");
        let blank = text.trim().is_empty() && self.composer_images().is_empty();
        if let Some(runtime) = self.ended_runtime(cx.shared) {
            let call = calls::restart_runtime(&RuntimeId::trusted(runtime.as_str()));
            let tag = match blank {
                true => CallTag::Notice(format!("{runtime} is restarting: send a prompt to continue")),
                false => CallTag::Restart(runtime),
            };
            self.pending_restart =
                self.conversation.as_ref().filter(|_| !blank).map(|conversation| conversation.session.clone());
            return cx.effects.push(Effect::call(tag, call));
        }
        let Some(conversation) = self.conversation.as_mut().filter(|_| !blank) else { return };
        conversation.go_to_newest();
        let session = conversation.session.clone();
        let images = self.images.remove(&session).unwrap_or_default();
        let call = calls::prompt(&SessionId::trusted(session.as_str()), &new_prompt(&text, &images));
        let tag = CallTag::Prompt(Box::new(SentPrompt { session, text, images }));
        cx.effects.push(Effect::keyed_call(tag, call));
        self.composer = input::area("");
        self.history = None;
    }

    /// Restores a prompt that was not sent to its composer, unless it contains another text by now.
    pub(crate) fn take_back(&mut self, sent: SentPrompt, why: &str, shared: &mut Shared) {
        let is_open = self.conversation.as_ref().is_some_and(|conversation| conversation.session == sent.session);
        let draft = self.drafts.entry(sent.session.clone()).or_default();
        if is_open && self.composer.is_empty() {
            self.composer = input::area(&sent.text);
        } else if !is_open && draft.is_empty() {
            *draft = sent.text;
        }
        self.images.entry(sent.session).or_default().splice(0..0, sent.images);
        shared.show_notice(&format!("not sent: {why}"), true);
    }

    // === files

    /// Searches for the files that are named in the composer.
    pub(crate) fn update_files(&mut self, cx: &mut Context<'_>) {
        let session = self.conversation.as_ref().map(|conversation| conversation.session.clone());
        let Some(session) = session.filter(|_| cx.shared.page == TuiPage::Session && cx.shared.writing) else {
            return self.files.close();
        };
        self.files.follow(&self.composer, cx.shared.now);
        if let Some((query_id, query)) = self.files.due(cx.shared.now) {
            let call = calls::session_files(&SessionId::trusted(session), &query, OFFERS_MAX);
            cx.call(CallTag::Files(query_id), call);
        }
    }

    /// Applies the files for the query of this number.
    pub(crate) fn on_files_reply(&mut self, query_id: u64, reply: Result<Files, String>) {
        self.files.on_reply(query_id, reply);
    }

    // === images

    /// The images of the prompt in the composer.
    pub(crate) fn composer_images(&self) -> &[Attachment] {
        let conversation = self.conversation.as_ref();
        conversation.and_then(|conversation| self.images.get(&conversation.session)).map_or(&[], Vec::as_slice)
    }

    /// Asks for the path of an image for the prompt.
    pub(crate) fn ask_image(&self, shared: &mut Shared) {
        let Some(session) = self.id().filter(|_| shared.page == TuiPage::Session) else {
            return shared.show_notice("open a session first", true);
        };
        shared.write();
        shared.ask_image(session.to_owned());
    }

    /// Removes the last image, for Backspace at the beginning of the text; returns whether it did.
    pub(crate) fn drops_image(&mut self) -> bool {
        let cursor = self.composer.cursor();
        let session = self.conversation.as_ref().map(|conversation| &conversation.session);
        let images = session.and_then(|session| self.images.get_mut(session));
        (cursor.0, cursor.1) == (0, 0) && images.and_then(Vec::pop).is_some()
    }

    /// Pastes text into the composer; the path of an image attaches it.
    pub(crate) fn paste_prompt(&mut self, text: String, cx: &mut Context<'_>) {
        let session = self.conversation.as_ref().map(|conversation| conversation.session.clone());
        match (pasted_path(&text), session) {
            (Some(path), Some(target)) => cx.effects.push(Effect::ReadImage { target, path, pasted: Some(text) }),
            _ => drop(self.composer.insert_str(text)),
        }
    }

    /// Attaches an image that was read to the prompt of a session. A pasted text that names no image is inserted as text.
    pub(crate) fn on_image(
        &mut self,
        session: &str,
        pasted: Option<String>,
        image: Result<Attachment, String>,
        shared: &mut Shared,
    ) {
        let images = self.images.entry(session.to_owned()).or_default();
        match attach(images, image) {
            Ok(text) => shared.show_notice(&text, false),
            Err(why) => {
                if let Some(text) = pasted.filter(|_| self.id() == Some(session)) {
                    self.composer.insert_str(text);
                }
                shared.show_notice(&why, true);
            }
        }
    }

    /// Moves a prompt's images from a form into the composer.
    pub(crate) fn put_images(&mut self, session: &str, images: Vec<Attachment>) {
        if !images.is_empty() {
            self.images.insert(session.to_owned(), images);
        }
    }
}

/// Maximum number of lines of images.
const IMAGE_LINES: usize = 3;

/// The number of lines of suggestions and images above the composer.
pub(super) fn offer_lines(shared: &Shared, page: &SessionPage) -> usize {
    let files = if shared.writing { page.files.lines() } else { 0 };
    let offered = if files > 0 { files } else { page.slash(shared).len() };
    offered + page.composer_images().len().min(IMAGE_LINES)
}

/// The request that waits above the composer, and the keys that answer it, as text.
fn request_hint(shared: &Shared) -> Option<String> {
    let card = shared.card.open()?;
    let (ask, _) = shared.requests.get(&card.id)?;
    Some(
        match ask.actions.iter().find(|action| action.unavailable.is_none()).map(|action| (action.key, action.verb())) {
            _ if ask.request.observe_only => format!("{} asks, where it runs", ask.runtime),
            Some((Some(key), verb)) if ask.action(AnswerRole::Send).is_none() => {
                format!("{} asks: Esc, then {key} ({})", ask.runtime, verb.to_lowercase())
            }
            _ => format!("{} asks: Esc, then answer", ask.runtime),
        },
    )
}

impl Draw<'_> {
    /// Draws the suggestions and the images of the prompt.
    pub(super) fn offers(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let mut lines: Vec<(Vec<Span<'static>>, bool)> = Vec::new();
        if shared.writing && page.files.lines() > 0 {
            for (n, path) in page.files.paths().iter().enumerate() {
                lines.push((self.file_row("  @", path, usize::from(area.width)), n == page.files.at));
            }
            if !page.files.text.is_empty() {
                let text = sanitize::cut(&page.files.text, usize::from(area.width).saturating_sub(3));
                lines.push((vec![Span::styled(format!("  {text}"), theme.dim)], false));
            }
        } else {
            for (name, description) in page.slash(shared) {
                let description = Span::styled(sanitize::cut(&description, 60), theme.dim);
                lines.push((vec![Span::styled(format!("  /{name} "), theme.accent), description], false));
            }
        }
        let images = page.composer_images();
        for (n, image) in images.iter().enumerate().take(IMAGE_LINES) {
            let more = match images.len() - IMAGE_LINES.min(images.len()) {
                more if more > 0 && n + 1 == IMAGE_LINES => format!(" and {more} more"),
                _ => String::new(),
            };
            let text = sanitize::cut(&format!("  + {}{more}", image.text()), usize::from(area.width));
            let mut spans = vec![Span::styled(text.clone(), theme.accent)];
            let hint = "  Backspace in the empty field removes it";
            if n + 1 == images.len() && sanitize::width(&text) + hint.len() < usize::from(area.width) {
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

    pub(super) fn composer(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        if area.height < 2 {
            return;
        }
        let style = if shared.writing { theme.accent } else { theme.rule };
        self.put(
            area.x,
            area.y,
            Span::styled("─".repeat(usize::from(area.width)), style.remove_modifier(Modifier::BOLD)),
            area.width,
        );
        if let Some(text) = request_hint(shared).filter(|_| shared.writing) {
            let text = sanitize::cut(&text, usize::from(area.width).saturating_sub(6));
            self.put(area.x + 2, area.y, Span::styled(format!(" {text} "), theme.warn), area.width.saturating_sub(2));
        }
        self.put(area.x, area.y + 1, Span::styled(" › ", style), 3);
        let field = Rect::new(area.x + 3, area.y + 1, area.width.saturating_sub(4), area.height - 1);
        if page.composer.is_empty() {
            let text = match page
                .conversation
                .as_ref()
                .and_then(|conversation| shared.sessions.all.get(&conversation.session))
                .map(|one| one.state)
            {
                _ if !shared.writing => "i: write to the agent",
                Some(SessionState::Running | SessionState::Waiting) => "write a prompt: it will be queued",
                _ => "write to the agent",
            };
            let ended_runtime = page.ended_runtime(shared).map(|name| match shared.writing {
                true => format!("{name} has ended. Enter: start {name} again and continue"),
                false => format!("{name} has ended. i, Enter: start {name} again and continue"),
            });
            let text = ended_runtime.unwrap_or_else(|| text.to_owned());
            self.put(field.x + u16::from(shared.writing), field.y, Span::styled(text, theme.dim), field.width);
            if shared.writing {
                self.fill(Rect::new(field.x, field.y, 1, 1), Style::new().add_modifier(Modifier::REVERSED));
            }
            return;
        }
        self.field(field, &page.composer, shared.writing);
    }
}
