//! The composer: earlier prompts, the files and images that a prompt names, and sending.

use super::*;
use crate::attachments::{has_room, pasted_path, prompt_body};
use crate::mention::OFFERS_MAX;

/// A prompt that is on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentPrompt {
    pub(crate) session: String,
    pub(crate) words: String,
    pub(crate) images: Vec<Attachment>,
}

impl App {
    /// Shows an earlier prompt, or the next one.
    pub(super) fn recall(&mut self, back: bool) {
        let Some(conversation) = &self.conversation else { return };
        let many = conversation.prompts.len();
        let at = match (self.history, back) {
            (None, true) if many > 0 => many - 1,
            (Some(at), true) => at.saturating_sub(1),
            (Some(at), false) => at + 1,
            _ => return,
        };
        if self.history.is_none() {
            self.draft = self.composer.lines().join("\n");
        }
        (self.history, self.composer) = match conversation.prompts.get(at) {
            Some(words) => (Some(at), input::area(words)),
            None => (None, input::area(&self.draft)),
        };
        if back {
            self.composer.move_cursor(CursorMove::Top);
            self.composer.move_cursor(CursorMove::End);
        }
    }

    /// The runtime of the open session, if it has ended and can be restarted from here.
    pub(crate) fn ended_runtime(&self) -> Option<String> {
        let session =
            self.sessions.get(&self.conversation.as_ref()?.session).filter(|session| session.state == "exited")?;
        let lives = self.runtimes.iter().any(|runtime| runtime.id == session.runtime && runtime.state != "exited");
        (!lives).then(|| session.runtime.clone())
    }

    /// Sends the prompt; of an agent that has ended, it starts the agent first.
    pub(super) fn send(&mut self, effects: &mut Vec<Effect>) {
        let words = self.composer.lines().join("\n");
        let blank = words.trim().is_empty() && self.images_here().is_empty();
        if let Some(runtime) = self.ended_runtime() {
            let path = format!("/v1/runtimes/{runtime}/restart");
            let tag = match blank {
                true => CallTag::Notice(format!("{runtime} is restarting: send a prompt to continue")),
                false => CallTag::Restart(runtime),
            };
            self.pending_restart =
                self.conversation.as_ref().filter(|_| !blank).map(|conversation| conversation.session.clone());
            return effects.push(Effect::Call { tag, method: "POST", path, body: None, key: false });
        }
        let Some(conversation) = self.conversation.as_mut().filter(|_| !blank) else { return };
        conversation.go_to_newest();
        let session = conversation.session.clone();
        let images = self.images.remove(&session).unwrap_or_default();
        let path = format!("/v1/sessions/{session}/prompt");
        let body = Some(prompt_body(&words, &images));
        let tag = CallTag::Prompt(Box::new(SentPrompt { session, words, images }));
        effects.push(Effect::Call { tag, method: "POST", path, body, key: true });
        self.composer = input::area("");
        self.history = None;
    }

    /// A prompt was not sent: it is where it was written, unless something else is there by now.
    pub(super) fn take_back(&mut self, sent: SentPrompt, why: &str) {
        let here = self.conversation.as_ref().is_some_and(|conversation| conversation.session == sent.session);
        let draft = self.drafts.entry(sent.session.clone()).or_default();
        if here && self.composer.is_empty() {
            self.composer = input::area(&sent.words);
        } else if !here && draft.is_empty() {
            *draft = sent.words;
        }
        self.images.entry(sent.session).or_default().splice(0..0, sent.images);
        self.say(&format!("not sent: {why}"), true);
    }

    // === files

    /// Looks for the files that are named in the composer.
    pub(super) fn update_files(&mut self, effects: &mut Vec<Effect>) {
        let session = self.conversation.as_ref().map(|conversation| conversation.session.clone());
        let Some(session) = session.filter(|_| self.page == TuiPage::Session && self.writing) else {
            return self.files.close();
        };
        self.files.follow(&self.composer, self.now);
        if let Some((asked, query)) = self.files.due(self.now) {
            effects.push(get(CallTag::Files(asked), files_path(&session, &query)));
        }
    }

    // === images

    /// The images of the prompt that is being written.
    pub(crate) fn images_here(&self) -> &[Attachment] {
        let conversation = self.conversation.as_ref();
        conversation.and_then(|conversation| self.images.get(&conversation.session)).map_or(&[], Vec::as_slice)
    }

    /// Asks for the path of an image.
    pub(super) fn ask_image(&mut self) {
        let open = self.conversation.as_ref().filter(|_| self.page == TuiPage::Session);
        let place = match (&self.form, open) {
            (Some(_), _) => String::new(),
            (None, Some(conversation)) => conversation.session.clone(),
            (None, None) => return self.say("open a session first", true),
        };
        if self.form.is_none() {
            self.write();
        }
        self.overlay = Some(Overlay::Input {
            label: "path of an image (PNG, JPEG, GIF, WebP)",
            area: input::area(""),
            then: Box::new(AfterConfirm::Image(place)),
        });
    }

    /// At the beginning of the text, Backspace removes the last image.
    pub(super) fn drops_image(&mut self) -> bool {
        let cursor = self.composer.cursor();
        let session = self.conversation.as_ref().map(|conversation| &conversation.session);
        let images = session.and_then(|session| self.images.get_mut(session));
        (cursor.0, cursor.1) == (0, 0) && images.and_then(Vec::pop).is_some()
    }

    /// Text that is pasted into the composer: the path of an image attaches it.
    pub(super) fn paste_prompt(&mut self, words: String, effects: &mut Vec<Effect>) {
        let session = self.conversation.as_ref().map(|conversation| conversation.session.clone());
        match (pasted_path(&words), session) {
            (Some(path), Some(place)) => effects.push(Effect::ReadImage { place, path, pasted: Some(words) }),
            _ => drop(self.composer.insert_str(words)),
        }
    }

    /// An image was read. What was pasted and is none is text.
    pub(super) fn on_image(&mut self, place: &str, pasted: Option<String>, image: Result<Attachment, String>) {
        let images = match (place.is_empty(), &mut self.form) {
            (true, Some(form)) => &mut form.images,
            (true, None) => &mut self.form_images,
            (false, _) => self.images.entry(place.to_owned()).or_default(),
        };
        let done = image.and_then(|image| {
            has_room(images)?;
            let words = format!("attached {}", image.words());
            images.push(image);
            Ok(words)
        });
        let here = self.conversation.as_ref().is_some_and(|conversation| conversation.session == place);
        match (done, pasted) {
            (Ok(words), _) => self.say(&words, false),
            (Err(why), pasted) => {
                match (pasted, &mut self.form) {
                    (Some(words), Some(form)) if place.is_empty() => form.paste(&words, self.now),
                    (Some(words), _) if here => drop(self.composer.insert_str(words)),
                    _ => {}
                }
                self.say(&why, true);
            }
        }
    }
}

/// The question for files of a session's folder.
pub(super) fn files_path(session: &str, query: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    format!("/v1/sessions/{session}/files?limit={OFFERS_MAX}&query={query}")
}
