//! Surfaces on the session's page: the frame, which the agent cannot write to, and the line that names the pinned ones.

use plexus_client::calls;
use plexus_protocol::SessionId;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::{Block, Clear, Widget as _};

use serde_json::value::RawValue;

use super::SessionPage;
use crate::conversation::Conversation;
use crate::input::Key;
use crate::pages::TuiPage;
use crate::pages::context::Context;
use crate::pages::draw::Draw;
use crate::pages::message::{CallTag, Effect};
use crate::pages::shared::Shared;
use crate::sanitize;
use crate::surface::{self, LayoutContext, SurfaceStep};

impl SessionPage {
    /// Returns whether a surface fills the page.
    pub(crate) fn surface_is_open(&self, shared: &Shared) -> bool {
        shared.page == TuiPage::Session
            && self.conversation.as_ref().is_some_and(|conversation| conversation.surfaces.open().is_some())
    }

    /// Returns whether text is being typed into a surface: letters are then not answers.
    pub(crate) fn surface_takes_text(&self, shared: &Shared) -> bool {
        self.surface_is_open(shared)
            && self.conversation.as_ref().is_some_and(|conversation| conversation.surfaces.is_typing())
    }

    /// Returns whether a letter begins or continues a text in a surface. A request over it gets the letters first, until text is typed.
    pub(crate) fn surface_has_text_focus(&self, shared: &Shared) -> bool {
        let area = self.surface_area(shared);
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let cx = LayoutContext { theme: &shared.theme, width, height, inline: false };
        let has_request = shared.card.open().is_some();
        self.surface_takes_text(shared)
            || self.surface_is_open(shared)
                && !has_request
                && self.conversation.as_ref().is_some_and(|conversation| conversation.surfaces.has_text_focus(&cx))
    }

    /// Calls `act` with the conversation and the space for its open surface.
    fn with_surface<T>(
        &mut self,
        shared: &Shared,
        change: impl FnOnce(&mut Conversation, &LayoutContext<'_>, i64) -> T,
    ) -> Option<T> {
        let area = self.surface_area(shared);
        let conversation = self.conversation.as_mut()?;
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let cx = LayoutContext { theme: &shared.theme, width, height, inline: false };
        Some(change(conversation, &cx, shared.now))
    }

    /// Updates the surfaces; reads them again if a change was missed.
    pub(crate) fn update_surfaces(&mut self, cx: &mut Context<'_>) {
        let open = self.conversation.as_ref().map(|conversation| conversation.session.as_str());
        let agent = open.and_then(|id| cx.shared.sessions.all.get(id)).map(|session| session.runtime.clone());
        let read = self.with_surface(cx.shared, |conversation, cx, now| {
            conversation.set_agent(agent.as_deref().unwrap_or_default());
            conversation.surfaces.prepare(cx, now);
            (conversation.live && conversation.surfaces.read_again()).then(|| conversation.session.clone())
        });
        if let Some(session) = read.flatten() {
            let call = calls::surfaces(&SessionId::trusted(session.as_str()));
            cx.call(CallTag::Surfaces(session), call);
        }
    }

    /// Opens a surface: the selected one, else the first pinned or the latest one.
    pub(crate) fn open_surface(&mut self, shared: &mut Shared) {
        let now = shared.now;
        let Some(conversation) = self.conversation.as_mut().filter(|_| shared.page == TuiPage::Session) else {
            return shared.show_notice("open a session first", true);
        };
        match conversation.surface_at_hand() {
            Some(name) => {
                conversation.surfaces.show(&name, now);
                shared.writing = false;
            }
            None => shared.show_notice("the agent of this session has drawn nothing", false),
        }
    }

    /// Passes a key to the open surface; returns `true` if it handled the key.
    pub(crate) fn surface_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        if !self.surface_is_open(cx.shared) {
            return false;
        }
        let step = self.with_surface(cx.shared, |conversation, cx, now| conversation.surfaces.key(key, cx, now));
        let Some(conversation) = &mut self.conversation else { return false };
        match step.unwrap_or(SurfaceStep::Nothing) {
            SurfaceStep::Nothing => return false,
            SurfaceStep::Handled => {}
            SurfaceStep::Close => conversation.surfaces.close(),
            SurfaceStep::Next => conversation.surfaces.step(true, cx.shared.now),
            SurfaceStep::Previous => conversation.surfaces.step(false, cx.shared.now),
            SurfaceStep::Press(action) => {
                let session = conversation.session.clone();
                let Some(surface) = conversation.surfaces.open().map(|surface| surface.name().to_owned()) else {
                    return true;
                };
                let call = calls::press_surface(&SessionId::trusted(session.as_str()), &surface, &action);
                cx.effects.push(Effect::keyed_call(CallTag::Action { session, surface }, call));
            }
            SurfaceStep::Copy(url) => {
                cx.shared.show_notice(&format!("copied: {url}"), false);
                cx.effects.push(Effect::Copy(url));
            }
            SurfaceStep::Notice(text) => cx.shared.show_notice(&text, true),
        }
        true
    }

    /// Pastes into the open surface; returns `false` if none is open.
    pub(crate) fn surface_paste(&mut self, text: &str, shared: &Shared) -> bool {
        if !self.surface_is_open(shared) {
            return false;
        }
        self.with_surface(shared, |conversation, cx, _| conversation.surfaces.paste(text, cx));
        true
    }

    /// Applies the reply to a press on a surface.
    pub(crate) fn on_action_reply(
        &mut self,
        session: &str,
        surface: &str,
        refused: Option<String>,
        stale: bool,
        shared: &mut Shared,
    ) {
        let conversation = self.conversation.as_mut().filter(|conversation| conversation.session == session);
        let Some(state) = conversation.and_then(|conversation| conversation.surfaces.state_mut(surface)) else {
            return;
        };
        let text = match &refused {
            None => "sent".to_owned(),
            Some(_) if stale => "not sent: it has changed. Check it again".to_owned(),
            Some(why) => format!("not sent: {why}"),
        };
        state.replied(refused.is_some().then(|| text.clone()));
        shared.show_notice(&text, refused.is_some());
    }

    /// Applies the surfaces that were read again; `None` if they could not be read.
    pub(crate) fn on_surfaces(&mut self, session: &str, list: Option<&[Box<RawValue>]>) {
        let Some(conversation) = self.conversation.as_mut().filter(|one| one.session == session) else {
            return;
        };
        match list {
            // A snapshot that arrived meanwhile is newer.
            Some(list) if conversation.surfaces.is_reading() => conversation.replace_surfaces(list),
            Some(_) => {}
            None => conversation.surfaces.end_reading(),
        }
    }
}

impl Draw<'_> {
    /// Draws the open surface in its frame.
    pub(super) fn surface(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some(conversation) = &page.conversation else { return };
        let Some(surface) = conversation.surfaces.open() else { return };
        let inside = page.surface_area(shared);
        let (width, height) = (usize::from(inside.width), usize::from(inside.height));
        let cx = LayoutContext { theme, width, height, inline: false };
        Clear.render(area, self.buf);
        Block::bordered().border_style(theme.rule).render(area, self.buf);
        let space = area.width.saturating_sub(4);
        let (at, count) = conversation.surfaces.open_position();
        let mut right = String::new();
        if surface.pinned() {
            right.push_str(" pinned ");
        }
        if count > 1 {
            right.push_str(&format!(" {at} of {count} "));
        }
        let wide = u16::try_from(sanitize::width(&right)).unwrap_or(0).min(space / 2);
        let head = vec![
            Span::styled(format!(" {} draws ", conversation.agent()), theme.dim),
            Span::styled(
                format!("{} ", sanitize::cut(&surface::title(surface), usize::from(space.saturating_sub(wide + 4)))),
                theme.accent,
            ),
        ];
        self.put(area.x + 2, area.y, head, space.saturating_sub(wide));
        self.put(area.x + area.width.saturating_sub(wide + 2), area.y, Span::styled(right, theme.dim), wide);
        let Some((layout, scroll)) = conversation.surfaces.draw_open(&cx) else { return };
        let all = layout.lines.len();
        for (n, line) in (0..inside.height).zip(layout.lines.into_iter().skip(scroll)) {
            self.put(inside.x, inside.y + n, line, inside.width);
        }
        let foot = area.y + area.height.saturating_sub(1);
        if all > height {
            let text = format!(" {}–{} of {all} ", scroll + 1, (scroll + height).min(all));
            let wide = u16::try_from(sanitize::width(&text)).unwrap_or(0);
            self.put(area.x + area.width.saturating_sub(wide + 2), foot, Span::styled(text, theme.dim), wide);
        }
        let problem = conversation.surfaces.open_state().map(|state| state.problem.as_str()).unwrap_or_default();
        let asks = conversation.surfaces.open_ask().is_some();
        let text = match (problem, asks) {
            ("", false) => return,
            ("", true) => " it asks you: press a button that answers ".to_owned(),
            (problem, _) => format!(" {problem} "),
        };
        let max = usize::from(area.width.saturating_sub(if all > height { 22 } else { 4 }));
        self.put(area.x + 2, foot, Span::styled(sanitize::cut(&text, max), theme.warn), space);
    }

    /// Draws the line that names the pinned surfaces.
    pub(super) fn pins(&mut self, page: &SessionPage, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let Some(conversation) = page.conversation.as_ref().filter(|_| area.height > 0) else { return };
        let titles = conversation.surfaces.pinned().join(" · ");
        let hint = if shared.writing { "  Esc s: open" } else { "  s: open" };
        let space = usize::from(area.width).saturating_sub(sanitize::width(hint) + 12);
        let spans = vec![
            Span::styled(" ▣ pinned ", theme.dim),
            Span::styled(sanitize::cut(&titles, space), theme.accent),
            Span::styled(hint, theme.dim),
        ];
        self.put(area.x, area.y, spans, area.width);
    }
}
