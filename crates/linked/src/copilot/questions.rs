//! Shows the questions of Copilot to the user, and sends the answers to it. Pure.

use super::ask::{CopilotQuestion, is_id};
use super::events::AnswerTaken;
use super::open_question::QuestionEnd;
use super::terminal::{CopilotRequest, CopilotTerminal, Output, problem};
use crate::terminals::output::at_terminal;
use plexus_dialects::{AnsweredElsewhere, HttpReply, RequestKey};
use plexus_protocol::Decision;

/// Maximum number of open questions of a session; further ones can only be answered at the terminal.
const QUESTIONS_MAX: usize = 256;
/// Maximum size of the open questions of a session, in bytes; further ones can only be answered at the terminal.
const QUESTIONS_BYTES: usize = 16 << 20;
impl CopilotTerminal {
    /// Shows an open question: one of an event of this connection (`live`), or one that was read.
    pub(super) fn ask(&mut self, id: &str, question: CopilotQuestion, live: bool, out: &mut Output<'_>) {
        let key = RequestKey::unique(id);
        let known = self.questions.contains_key(&key);
        if !is_id(id) || (!known && self.questions.len() >= QUESTIONS_MAX) {
            return;
        }
        let others = self.questions.iter().filter(|(other, _)| **other != key);
        let bytes: usize = others.filter_map(|(_, open)| Some(open.question.as_ref()?.length())).sum();
        if bytes + question.length() > QUESTIONS_BYTES {
            let message = "a question is too long to be shown: it can only be answered at the terminal";
            return out.error("question_too_long", message);
        }
        if live {
            self.begin_by_agent(out);
        }
        let open = self.questions.entry(key.clone()).or_default();
        open.live |= live;
        if !std::mem::replace(&mut open.visible, true) {
            out.ask(question.request(&key));
        }
        open.question = Some(question);
        match open.decision.take() {
            Some(decision) => self.decide(&key, &decision, out),
            None => self.send_answer(&key, out),
        }
    }

    /// Handles the decision on a question.
    pub(super) fn decide(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        let Some(open) = self.questions.get_mut(key) else { return };
        let Some(question) = &open.question else {
            open.decision = Some(decision.clone());
            return;
        };
        match question.answer(decision) {
            Ok(Some(answer)) => {
                open.answer = Some(answer);
                self.send_answer(key, out);
            }
            // The terminal's own dialog decides.
            Ok(None) => _ = self.questions.remove(key),
            Err(reason) => out.ask(question.ask_again(key, &reason, decision)),
        }
    }

    /// Sends the answer to a question, unless it is on its way.
    fn send_answer(&mut self, key: &RequestKey, out: &mut Output<'_>) {
        let Some(open) = self.questions.get(key) else { return };
        let (Some(question), Some(answer), false) = (&open.question, &open.answer, open.sent) else { return };
        let sent = self.request(CopilotRequest::Answer(key.clone()), &question.path(key), Some(answer), out);
        if let Some(open) = self.questions.get_mut(key) {
            open.sent = sent;
        }
    }

    /// Handles the end of a question, as Copilot reports it.
    pub(super) fn question_ended(&mut self, id: &str, by: Option<AnsweredElsewhere>, out: &mut Output<'_>) {
        let key = RequestKey::unique(id);
        if let Some(open) = self.questions.get_mut(&key) {
            open.end = Some(QuestionEnd { by });
            self.resolve(&key, out);
        }
    }

    /// Reports the end of a question, once it is known who was first.
    fn resolve(&mut self, key: &RequestKey, out: &mut Output<'_>) {
        let Some(open) = self.questions.get(key) else { return };
        let Some(QuestionEnd { by }) = open.end.clone() else { return };
        let is_form = matches!(open.question, Some(CopilotQuestion::Form { .. }));
        match (by, open.answer.is_some(), open.first) {
            (by, false, _) => out.taken_back(key.clone(), by),
            // Copilot reports that the user answered at the terminal; for forms it does not report the author.
            (Some(by), true, first) if !is_form || first == Some(false) => out.answer_lost(key.clone(), by),
            (None, true, Some(false)) => out.answer_lost(key.clone(), at_terminal(None)),
            (_, true, Some(true)) => {}
            // The reply to the answer shows who was first.
            (_, true, _) if open.sent => return,
            (_, true, _) => {}
        }
        self.questions.remove(key);
    }

    /// Handles a question that is no longer open without an event about the decision: either it was answered at the
    /// terminal, or the reply to an answer was lost.
    pub(super) fn question_missing(&mut self, key: RequestKey, out: &mut Output<'_>) {
        if let Some(open) = self.questions.remove(&key).filter(|open| open.answer.is_none()) {
            out.taken_back(key, open.visible.then(|| at_terminal(None)));
        }
    }

    pub(super) fn answer_reply(&mut self, key: &RequestKey, reply: &Result<HttpReply, String>, out: &mut Output<'_>) {
        let is_connected = self.connection.is_some();
        let Some(open) = self.questions.get_mut(key) else { return };
        let taken = reply.as_ref().ok().and_then(|reply| serde_json::from_slice::<AnswerTaken>(&reply.body).ok());
        if let Some(AnswerTaken { success }) = taken {
            open.first = Some(success);
            return self.resolve(key, out);
        }
        open.sent = false;
        if open.end.is_some() {
            return self.resolve(key, out);
        }
        if !is_connected {
            // The answer is sent again when the tunnel is back, if the question is still open.
            return;
        }
        out.error("answer_failed", &format!("Copilot did not accept the answer: {}", problem(reply)));
        open.answer = None;
        if let Some(question) = &open.question {
            out.ask(question.request(key));
        }
    }
}
