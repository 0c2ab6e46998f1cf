//! The composer: earlier prompts, the files and images that a prompt names, and sending.

use super::*;
use crate::attachments::{has_room, pasted_path, prompt_body};
use crate::mention::OFFERS_MAX;

impl App {
    /// Shows an earlier prompt, or the next one.
    pub(super) fn recall(&mut self, back: bool) {
        let Some(conversation) = &self.pages.session.conversation else { return };
        let many = conversation.prompts.len();
        let at = match (self.pages.session.history, back) {
            (None, true) if many > 0 => many - 1,
            (Some(at), true) => at.saturating_sub(1),
            (Some(at), false) => at + 1,
            _ => return,
        };
        if self.pages.session.history.is_none() {
            self.pages.session.draft = self.pages.session.composer.lines().join("\n");
        }
        (self.pages.session.history, self.pages.session.composer) = match conversation.prompts.get(at) {
            Some(words) => (Some(at), input::area(words)),
            None => (None, input::area(&self.pages.session.draft)),
        };
        if back {
            self.pages.session.composer.move_cursor(CursorMove::Top);
            self.pages.session.composer.move_cursor(CursorMove::End);
        }
    }

    /// The runtime of the open session, if it has ended and can be restarted from here.
    pub(crate) fn ended_runtime(&self) -> Option<String> {
        let session = self
            .shared
            .sessions
            .all
            .get(&self.pages.session.conversation.as_ref()?.session)
            .filter(|session| session.state == "exited")?;
        let lives =
            self.shared.runtimes.iter().any(|runtime| runtime.id == session.runtime && runtime.state != "exited");
        (!lives).then(|| session.runtime.clone())
    }

    /// Sends the prompt; of an agent that has ended, it starts the agent first.
    pub(super) fn send(&mut self, effects: &mut Vec<Effect>) {
        let words = self.pages.session.composer.lines().join("\n");
        let blank = words.trim().is_empty() && self.images_here().is_empty();
        if let Some(runtime) = self.ended_runtime() {
            let path = format!("/v1/runtimes/{runtime}/restart");
            let tag = match blank {
                true => CallTag::Notice(format!("{runtime} is restarting: send a prompt to continue")),
                false => CallTag::Restart(runtime),
            };
            self.pages.session.pending_restart = self
                .pages
                .session
                .conversation
                .as_ref()
                .filter(|_| !blank)
                .map(|conversation| conversation.session.clone());
            return effects.push(Effect::Call { tag, method: "POST", path, body: None, key: false });
        }
        let Some(conversation) = self.pages.session.conversation.as_mut().filter(|_| !blank) else { return };
        conversation.go_to_newest();
        let session = conversation.session.clone();
        let images = self.pages.session.images.remove(&session).unwrap_or_default();
        let path = format!("/v1/sessions/{session}/prompt");
        let body = Some(prompt_body(&words, &images));
        let tag = CallTag::Prompt(Box::new(SentPrompt { session, words, images }));
        effects.push(Effect::Call { tag, method: "POST", path, body, key: true });
        self.pages.session.composer = input::area("");
        self.pages.session.history = None;
    }

    /// A prompt was not sent: it is where it was written, unless something else is there by now.
    pub(super) fn take_back(&mut self, sent: SentPrompt, why: &str) {
        let here =
            self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.session == sent.session);
        let draft = self.pages.session.drafts.entry(sent.session.clone()).or_default();
        if here && self.pages.session.composer.is_empty() {
            self.pages.session.composer = input::area(&sent.words);
        } else if !here && draft.is_empty() {
            *draft = sent.words;
        }
        self.pages.session.images.entry(sent.session).or_default().splice(0..0, sent.images);
        self.shared.say(&format!("not sent: {why}"), true);
    }

    // === files

    /// Looks for the files that are named in the composer.
    pub(super) fn update_files(&mut self, effects: &mut Vec<Effect>) {
        let session = self.pages.session.conversation.as_ref().map(|conversation| conversation.session.clone());
        let Some(session) = session.filter(|_| self.shared.page == TuiPage::Session && self.shared.writing) else {
            return self.pages.session.files.close();
        };
        self.pages.session.files.follow(&self.pages.session.composer, self.shared.now);
        if let Some((asked, query)) = self.pages.session.files.due(self.shared.now) {
            effects.push(Effect::get(CallTag::Files(asked), files_path(&session, &query)));
        }
    }

    // === images

    /// The images of the prompt that is being written.
    pub(crate) fn images_here(&self) -> &[Attachment] {
        let conversation = self.pages.session.conversation.as_ref();
        conversation
            .and_then(|conversation| self.pages.session.images.get(&conversation.session))
            .map_or(&[], Vec::as_slice)
    }

    /// Asks for the path of an image.
    pub(super) fn ask_image(&mut self) {
        let open = self.pages.session.conversation.as_ref().filter(|_| self.shared.page == TuiPage::Session);
        let place = match (&self.new_session.form, open) {
            (Some(_), _) => String::new(),
            (None, Some(conversation)) => conversation.session.clone(),
            (None, None) => return self.shared.say("open a session first", true),
        };
        if self.new_session.form.is_none() {
            self.shared.write();
        }
        self.shared.overlay = Some(Overlay::Input {
            label: "path of an image (PNG, JPEG, GIF, WebP)",
            area: input::area(""),
            then: Box::new(AfterConfirm::Image(place)),
        });
    }

    /// At the beginning of the text, Backspace removes the last image.
    pub(super) fn drops_image(&mut self) -> bool {
        let cursor = self.pages.session.composer.cursor();
        let session = self.pages.session.conversation.as_ref().map(|conversation| &conversation.session);
        let images = session.and_then(|session| self.pages.session.images.get_mut(session));
        (cursor.0, cursor.1) == (0, 0) && images.and_then(Vec::pop).is_some()
    }

    /// Text that is pasted into the composer: the path of an image attaches it.
    pub(super) fn paste_prompt(&mut self, words: String, effects: &mut Vec<Effect>) {
        let session = self.pages.session.conversation.as_ref().map(|conversation| conversation.session.clone());
        match (pasted_path(&words), session) {
            (Some(path), Some(place)) => effects.push(Effect::ReadImage { place, path, pasted: Some(words) }),
            _ => drop(self.pages.session.composer.insert_str(words)),
        }
    }

    /// An image was read. What was pasted and is none is text.
    pub(super) fn on_image(&mut self, place: &str, pasted: Option<String>, image: Result<Attachment, String>) {
        let images = match (place.is_empty(), &mut self.new_session.form) {
            (true, Some(form)) => &mut form.images,
            (true, None) => &mut self.new_session.images,
            (false, _) => self.pages.session.images.entry(place.to_owned()).or_default(),
        };
        let done = image.and_then(|image| {
            has_room(images)?;
            let words = format!("attached {}", image.words());
            images.push(image);
            Ok(words)
        });
        let here = self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.session == place);
        match (done, pasted) {
            (Ok(words), _) => self.shared.say(&words, false),
            (Err(why), pasted) => {
                match (pasted, &mut self.new_session.form) {
                    (Some(words), Some(form)) if place.is_empty() => form.paste(&words, self.shared.now),
                    (Some(words), _) if here => drop(self.pages.session.composer.insert_str(words)),
                    _ => {}
                }
                self.shared.say(&why, true);
            }
        }
    }
}

/// The question for files of a session's folder.
pub(super) fn files_path(session: &str, query: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("/v1/sessions/{session}/files?limit={OFFERS_MAX}&query={query}")
}
