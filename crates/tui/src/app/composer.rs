//! The composer: earlier prompts, and sending.

use super::*;

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
        let blank = words.trim().is_empty();
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
        let path = format!("/v1/sessions/{}/prompt", conversation.session);
        effects.push(Effect::Call {
            tag: CallTag::Prompt(words.clone()),
            method: "POST",
            path,
            body: Some(json!({ "text": words })),
            key: true,
        });
        self.composer = input::area("");
        self.history = None;
    }
}
