//! The surfaces of the open session: opening one, its keys, and the gateway's replies to a press.

use super::*;
use crate::surface::{LayoutContext, SurfaceStep};

impl App {
    /// Whether a surface fills the page.
    pub(crate) fn surface_is_open(&self) -> bool {
        self.shared.page == TuiPage::Session
            && self
                .pages
                .session
                .conversation
                .as_ref()
                .is_some_and(|conversation| conversation.surfaces.open().is_some())
    }

    /// Whether text is being typed into a surface: letters are then no answers.
    pub(crate) fn surface_takes_text(&self) -> bool {
        self.surface_is_open()
            && self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.surfaces.is_typing())
    }

    /// Whether a letter begins or continues a text in a surface. A request over it has the letters first, until text is typed.
    pub(super) fn surface_takes_letters(&self) -> bool {
        let area = view::surface_area(self);
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let cx = LayoutContext { theme: &self.shared.theme, width, height, inline: false };
        let asked = self.shared.card.open().is_some();
        self.surface_takes_text()
            || self.surface_is_open()
                && !asked
                && self
                    .pages
                    .session
                    .conversation
                    .as_ref()
                    .is_some_and(|conversation| conversation.surfaces.takes_letters(&cx))
    }

    /// Calls with the conversation and the room for its open surface.
    fn with_surface<T>(&mut self, change: impl FnOnce(&mut Conversation, &LayoutContext<'_>, i64) -> T) -> Option<T> {
        let area = view::surface_area(self);
        let conversation = self.pages.session.conversation.as_mut()?;
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let cx = LayoutContext { theme: &self.shared.theme, width, height, inline: false };
        Some(change(conversation, &cx, self.shared.now))
    }

    /// Brings the surfaces in line with what has changed; reads them again if a change was missed.
    pub(super) fn update_surfaces(&mut self, effects: &mut Vec<Effect>) {
        let open = self.pages.session.conversation.as_ref().map(|conversation| conversation.session.as_str());
        let agent = open.and_then(|id| self.shared.sessions.all.get(id)).map(|session| session.runtime.clone());
        let read = self.with_surface(|conversation, cx, now| {
            conversation.set_agent(agent.as_deref().unwrap_or_default());
            conversation.surfaces.prepare(cx, now);
            (conversation.live && conversation.surfaces.read_again()).then(|| conversation.session.clone())
        });
        if let Some(session) = read.flatten() {
            let path = format!("/v1/sessions/{session}/surfaces");
            effects.push(Effect::get(CallTag::Surfaces(session), path));
        }
    }

    /// Opens a surface: the selected one, else the first pinned or the latest one.
    pub(super) fn open_surface(&mut self) {
        let now = self.shared.now;
        let Some(conversation) =
            self.pages.session.conversation.as_mut().filter(|_| self.shared.page == TuiPage::Session)
        else {
            return self.shared.say("open a session first", true);
        };
        match conversation.surface_at_hand() {
            Some(name) => {
                conversation.surfaces.show(&name, now);
                self.shared.writing = false;
            }
            None => self.shared.say("the agent of this session has drawn nothing", false),
        }
    }

    /// Passes a key to the open surface; true if it took the key.
    pub(super) fn surface_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        if !self.surface_is_open() {
            return false;
        }
        let step = self.with_surface(|conversation, cx, now| conversation.surfaces.key(key, cx, now));
        let Some(conversation) = &mut self.pages.session.conversation else { return false };
        match step.unwrap_or(SurfaceStep::Nothing) {
            SurfaceStep::Nothing => return false,
            SurfaceStep::Taken => {}
            SurfaceStep::Close => conversation.surfaces.close(),
            SurfaceStep::Next => conversation.surfaces.step(true, self.shared.now),
            SurfaceStep::Previous => conversation.surfaces.step(false, self.shared.now),
            SurfaceStep::Press(body) => {
                let session = conversation.session.clone();
                let Some(surface) = conversation.surfaces.open().map(|surface| surface.name().to_owned()) else {
                    return true;
                };
                let path = format!("/v1/sessions/{session}/surfaces/{surface}/action");
                let tag = CallTag::Action { session, surface };
                effects.push(Effect::Call { tag, method: "POST", path, body: Some(body), key: true });
            }
            SurfaceStep::Copy(url) => {
                self.shared.say(&format!("copied: {url}"), false);
                effects.push(Effect::Copy(url));
            }
            SurfaceStep::Say(words) => self.shared.say(&words, true),
        }
        true
    }

    /// Pastes into the open surface; false if none is open.
    pub(super) fn surface_paste(&mut self, words: &str) -> bool {
        if !self.surface_is_open() {
            return false;
        }
        self.with_surface(|conversation, cx, _| conversation.surfaces.paste(words, cx));
        true
    }

    /// The gateway replied to a press on a surface.
    pub(super) fn on_action_reply(&mut self, session: &str, surface: &str, refused: Option<String>, stale: bool) {
        let conversation =
            self.pages.session.conversation.as_mut().filter(|conversation| conversation.session == session);
        let Some(state) = conversation.and_then(|conversation| conversation.surfaces.state_mut(surface)) else {
            return;
        };
        let words = match &refused {
            None => "sent".to_owned(),
            Some(_) if stale => "not sent: it has changed. Look at it again".to_owned(),
            Some(why) => format!("not sent: {why}"),
        };
        state.replied(refused.is_some().then(|| words.clone()));
        self.shared.say(&words, refused.is_some());
    }

    /// The surfaces were read again.
    pub(super) fn on_surfaces(&mut self, session: &str, list: Option<&Value>) {
        let Some(conversation) = self.pages.session.conversation.as_mut().filter(|one| one.session == session) else {
            return;
        };
        match list {
            // A snapshot that came meanwhile is newer.
            Some(list) if conversation.surfaces.is_reading() => conversation.replace_surfaces(list),
            Some(_) => {}
            None => conversation.surfaces.not_read(),
        }
    }
}
