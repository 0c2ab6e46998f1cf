//! Distinguishes commands from typing, outside of text fields: a letter is a command if no other letter follows it at once. Pure: the clock
//! is [`App::now`](super::App).

use super::*;

/// Time that a letter waits for another one before it takes effect, in milliseconds.
const HOLD: i64 = 400;
/// Time after a typed letter in which the next one still belongs to the text, in milliseconds.
const PAUSE: i64 = 1_500;
/// Keys that only move, and so take effect without the wait.
const MOVES: &[&str] = &["j", "k", "J", "K", "g", "G", "[", "]"];
/// Keys that only move while a text is read.
const READING_MOVES: &[&str] = &["j", "k", "g", "G", " "];
/// Keys that only move in the changes of a session.
const CHANGES_MOVES: &[&str] = &["n", "p"];

/// The letters that were pressed last.
#[derive(Debug, Default)]
pub(crate) struct TypingGuard {
    /// The letter that waits, and the time when it was pressed.
    pending: Option<(Key, i64)>,
    /// The letters before it that followed each other at once.
    run: String,
    /// The time when the last letter was pressed.
    last: i64,
    /// `true` if the last letter belongs to a text.
    typing: bool,
}

impl App {
    /// Handles a key: a letter outside of a text field waits until it is known to be a command.
    pub(super) fn key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let (now, text) = (self.shared.now, self.takes_text());
        // A negative difference means that the clock was set back.
        let within = |since: i64, max: i64| (0..max).contains(&(now - since));
        if !key.is_letter() {
            let pending = self.guard.pending.take();
            if !text && matches!(key.name(), "Enter" | "Backspace") {
                if pending.is_some() {
                    self.typed_outside();
                }
                // In a session, the text is now in the composer.
                let is_dropped = self.guard.typing && within(self.guard.last, PAUSE) && !self.takes_text();
                return if is_dropped { self.guard.last = now } else { self.act(key, effects) };
            }
            if let Some((pending, at)) = pending {
                self.act_at(&pending, at, effects);
            }
            self.guard.typing = false;
            return self.act(key, effects);
        }
        let (before, typing) = (self.guard.last, self.guard.typing);
        self.guard.last = now;
        if text {
            self.guard.typing = true;
            return self.act(key, effects);
        }
        if typing && within(before, PAUSE) {
            self.guard.run = key.name().to_owned();
            return self.typed_outside();
        }
        self.guard.typing = false;
        if !within(before, HOLD) {
            self.guard.run.clear();
        }
        self.guard.run.push_str(key.name());
        match self.guard.pending.take() {
            Some((_, at)) if within(at, HOLD) => self.typed_outside(),
            Some((pending, at)) => {
                self.act_at(&pending, at, effects);
                self.key(key, effects);
            }
            None if self.moves(key) => self.act(key, effects),
            None => self.guard.pending = Some((key.clone(), now)),
        }
    }

    /// Executes the letter that no other one followed.
    pub(super) fn release_key(&mut self, effects: &mut Vec<Effect>) {
        let now = self.shared.now;
        if let Some((key, at)) = self.guard.pending.take_if(|(_, at)| !(0..HOLD).contains(&(now - *at))) {
            self.act_at(&key, at, effects);
        }
    }

    /// Drops a letter that waits, since another input came.
    pub(super) fn drop_key(&mut self) {
        self.guard.pending = None;
        self.guard.typing = false;
    }

    /// Executes a key as of the time of the press: an item that has appeared since does not get the key.
    fn act_at(&mut self, key: &Key, at: i64, effects: &mut Vec<Effect>) {
        let now = std::mem::replace(&mut self.shared.now, at);
        self.act(key, effects);
        self.shared.now = now;
    }

    /// Handles letters as text: in a session they go to the composer; elsewhere they are dropped.
    fn typed_outside(&mut self) {
        self.guard.typing = true;
        let run = std::mem::take(&mut self.guard.run);
        let composer = self.shared.page == TuiPage::Session
            && self.shared.overlay.is_none()
            && !self.pages.shows_changes(&self.shared)
            && !self.pages.session.surface_is_open(&self.shared);
        if composer {
            self.shared.write();
            self.pages.session.composer.insert_str(run);
        } else {
            self.shared.show_notice("letters typed in a row are not commands here; ? lists the keys", false);
        }
    }

    /// Returns whether a letter only moves on the current page.
    fn moves(&self, key: &Key) -> bool {
        let name = key.name();
        let reads = matches!(self.shared.overlay, Some(Overlay::Help(_) | Overlay::TextPage { .. }));
        match &self.shared.overlay {
            Some(_) if reads => READING_MOVES.contains(&name),
            Some(_) => MOVES.contains(&name),
            None if self.pages.shows_changes(&self.shared) => MOVES.contains(&name) || CHANGES_MOVES.contains(&name),
            // A slash in a session may begin a command of the agent.
            None => MOVES.contains(&name) || name == "/" && self.shared.page != TuiPage::Session,
        }
    }

    /// Returns whether letters go into a text field.
    fn takes_text(&self) -> bool {
        match &self.shared.overlay {
            Some(Overlay::Palette { .. } | Overlay::Input { .. }) => return true,
            Some(
                Overlay::Help(_)
                | Overlay::TextPage { .. }
                | Overlay::Confirm { .. }
                | Overlay::Several(_)
                | Overlay::Pairing(_)
                | Overlay::Usage(_),
            ) => return false,
            None => {}
        }
        let page = self.pages.top(&self.shared);
        let covered = self.pages.new_session.form.is_some() || self.pages.shows_changes(&self.shared);
        page.takes_text(&self.shared) || !covered && self.shared.card_takes_text()
    }

    /// Executes the letter that waits at once.
    #[cfg(test)]
    pub(crate) fn settle(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some((key, at)) = self.guard.pending.take() {
            self.act_at(&key, at, &mut effects);
            self.update_derived(&mut effects);
        }
        effects
    }
}
