//! Answers to several requests at once: the keys of the selection, the confirmation, and the answers on their way.

use super::*;
use crate::pages::inbox::SeveralAnswers;
use crate::triage::{InboxRow, Sense, SeveralQuestion};

/// Answers on their way at the same time: the gateway stores each before it replies.
const AT_ONCE: usize = 6;

impl App {
    /// Handles a key of the selection in the inbox; true if it took the key.
    pub(super) fn triage_key(&mut self, key: &Key) -> bool {
        let at = self.inbox_at();
        let selected = !self.pages.inbox.triage.selected.is_empty();
        let picks = self.shared.card.focused
            && self
                .shared
                .card
                .card
                .as_ref()
                .is_some_and(|card| matches!(card.mode, CardMode::Pick { .. }) || card.is_form());
        match key.name() {
            "x" => self.pages.inbox.triage.toggle(at, &self.shared.requests),
            " " if !picks => self.pages.inbox.triage.toggle(at, &self.shared.requests),
            "C-a" => self.pages.inbox.triage.select_all(&self.shared.requests),
            "X" if selected => self.pages.inbox.triage.selected.clear(),
            "Esc" if selected => self.pages.inbox.triage.selected.clear(),
            "a" if selected => self.ask_several(Sense::Allow),
            "d" if selected => self.ask_several(Sense::Deny { reason: String::new() }),
            "r" if selected => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "reason of all denials",
                    area: input::area(""),
                    then: Box::new(AfterConfirm::DenySeveral),
                });
            }
            "A" | "N" | "e" | "m" if selected => {
                self.shared.say("several are selected: a allows once, d denies, X clears the selection", false);
            }
            "a" | "d" | "A" | "r" if matches!(self.pages.inbox.triage.rows.get(at), Some(InboxRow::Group { .. })) => {
                self.shared.say("this is a group: x selects its requests, Enter folds it", false);
            }
            _ => return false,
        }
        true
    }

    /// Asks whether to answer all selected requests.
    pub(super) fn ask_several(&mut self, sense: Sense) {
        let meant = self.pages.inbox.triage.meant(&self.shared.requests);
        let plan = self.pages.inbox.triage.plan(&meant, &sense, &self.shared.requests);
        let question = SeveralQuestion { sense, meant, plan, shown: self.shared.now, scroll: 0 };
        self.shared.overlay = Some(Overlay::Several(Box::new(question)));
    }

    /// Handles a key of that question.
    pub(super) fn several_key(&mut self, mut question: SeveralQuestion, key: &Key, effects: &mut Vec<Effect>) {
        let end = view::several_end(self, &question);
        match key.name() {
            "y" if self.shared.now - question.shown >= ARM_DELAY && !question.plan.will.is_empty() => {
                return self.answer_several(&question, effects);
            }
            "n" | "Esc" | "q" => return,
            "Down" | "j" => question.scroll = (question.scroll + 1).min(end),
            "Up" | "k" => question.scroll = question.scroll.saturating_sub(1),
            "PageDown" | " " => question.scroll = (question.scroll + 10).min(end),
            "PageUp" => question.scroll = question.scroll.saturating_sub(10),
            _ => {}
        }
        self.shared.overlay = Some(Overlay::Several(Box::new(question)));
    }

    /// Sends the answers, except to what changed since the question.
    fn answer_several(&mut self, question: &SeveralQuestion, effects: &mut Vec<Effect>) {
        if self.pages.inbox.several.is_some() {
            return self.shared.say("the answers before these are still on their way", true);
        }
        let plan = self.pages.inbox.triage.plan(&question.meant, &question.sense, &self.shared.requests);
        let confirmed: BTreeSet<&String> = question.plan.will.iter().map(|(id, _)| id).collect();
        let queue = plan.will.into_iter().filter(|(id, _)| confirmed.contains(id)).collect();
        self.pages.inbox.several =
            Some(SeveralAnswers { allow: question.sense == Sense::Allow, queue, ..SeveralAnswers::default() });
        self.send_several(effects);
    }

    /// Sends the next answers, and sums up after the last one.
    fn send_several(&mut self, effects: &mut Vec<Effect>) {
        let Some(mut several) = self.pages.inbox.several.take() else { return };
        while several.flying.len() < AT_ONCE
            && let Some((id, body)) = several.queue.pop_front()
        {
            if !self.shared.is_open(&id) {
                several.late += 1;
                continue;
            }
            if let Some(card) = self.shared.card.card.as_mut().filter(|card| card.id == id) {
                card.sent = true;
            }
            several.flying.insert(id.clone());
            effects.push(answer(id, body));
        }
        if !several.flying.is_empty() {
            self.pages.inbox.several = Some(several);
            return;
        }
        let did = if several.allow { "allowed" } else { "denied" };
        let mut words = format!("{did} {}", several.done);
        if several.late > 0 {
            words.push_str(&format!(" · {} answered elsewhere first", several.late));
        }
        let (failed, why) = &several.failed;
        if *failed > 0 {
            words.push_str(&format!(" · {failed} not answered: {why}"));
        }
        self.shared.say(&words, *failed > 0);
    }

    /// Counts the reply to one of several answers; false if it belongs to none.
    pub(super) fn is_triaged(
        &mut self,
        id: &str,
        good: bool,
        late: bool,
        why: &str,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(several) = self.pages.inbox.several.as_mut().filter(|several| several.flying.contains(id)) else {
            return false;
        };
        several.flying.remove(id);
        match (good, late) {
            (true, _) => several.done += 1,
            (false, true) => several.late += 1,
            (false, false) => several.failed = (several.failed.0 + 1, why.to_owned()),
        }
        self.send_several(effects);
        true
    }
}

/// Sends an answer.
pub(super) fn answer(id: String, body: Value) -> Effect {
    let path = format!("/v1/requests/{id}/answer");
    Effect::Call { tag: CallTag::Answer(id), method: "POST", path, body: Some(body), key: true }
}
