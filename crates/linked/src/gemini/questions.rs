//! Shows the questions of Gemini CLI to the user, and has the keys of the answers typed. Pure.

use serde_json::value::RawValue;

use super::open_question::OpenQuestion;
use super::question::{ALLOW, DENY, KeysOutcome, Question};
use super::terminal::{GeminiRequest, GeminiTerminal, Output, keys_outcome, type_keys};
use crate::terminals::output::at_terminal;
use plexus_dialects::{AgentRequest, HttpReply, RequestKey};
use plexus_protocol::Decision;

/// Maximum number of open questions of a session; further ones can only be answered at the terminal.
const QUESTIONS_MAX: usize = 64;

impl GeminiTerminal {
    pub(super) fn ask(&mut self, key: RequestKey, details: &RawValue, out: &mut Output<'_>) {
        let Some(question) = Question::new(details).filter(|_| self.questions.len() < QUESTIONS_MAX) else {
            return out.raw(details, "Gemini CLI asks at its terminal, in a way that could not be read");
        };
        self.begin_by_hook(out);
        let has_question = |id: &String| self.questions.values().any(|other| other.call.as_ref() == Some(id));
        let mut free = self.calls.iter().filter(|call| !has_question(&call.id));
        let call = free.clone().find(|call| question.is_about(call));
        // The hook of the tool came before that of the question.
        let call = call.or_else(|| free.next().filter(|_| free.next().is_none())).map(|call| call.id.clone());
        self.questions.insert(key.clone(), OpenQuestion { question: Some(question), call, ..OpenQuestion::default() });
        self.show(&key, out);
    }

    fn show(&self, key: &RequestKey, out: &mut Output<'_>) {
        if let Some(request) = self.request(key) {
            out.ask(request);
        }
    }

    fn request(&self, key: &RequestKey) -> Option<AgentRequest> {
        let open = self.questions.get(key)?;
        let call = open.call.as_ref().and_then(|id| self.calls.iter().find(|call| call.id == *id));
        Some(open.question.as_ref()?.request(key.clone(), call, self.shared.is_some()))
    }

    /// Has the keys of an answer typed, if its dialog is still on the screen.
    pub(super) fn type_answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Output<'_>) {
        let Some(open) = self.questions.get(key).filter(|open| open.answer.is_none()) else { return };
        let Decision::Option { id, .. } = decision else {
            // The answer was withdrawn or has expired: the terminal's own dialog decides.
            self.questions.remove(key);
            return;
        };
        let looks_like = |other: &OpenQuestion| match (&open.question, &other.question) {
            (Some(one), Some(other)) => one.looks_like(other),
            _ => false,
        };
        let others = || self.questions.iter().filter(|(other, _)| *other != key).map(|(_, other)| other);
        let keys = match (&open.question, &self.shared) {
            _ if others().any(|other| other.answer.is_none() && looks_like(other)) => {
                Err("another question of this terminal looks the same")
            }
            (Some(question), Some(shared)) => {
                question.keys(decision).map(|keys| (keys, shared.clone())).ok_or("Plexus does not know its dialog")
            }
            _ => Err("it does not run in a shared terminal any more"),
        };
        match keys {
            Ok((keys, shared)) => {
                if let Some(open) = self.questions.get_mut(key) {
                    open.answer = Some(id.clone());
                }
                type_keys(GeminiRequest::Answer(key.clone()), &shared, &keys, out);
            }
            Err(reason) => self.answer_not_typed(key, reason, out),
        }
    }

    /// Handles the report whether the keys of an answer were typed.
    pub(super) fn answer_reply(&mut self, key: &RequestKey, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        let Some(open) = self.questions.get_mut(key) else { return };
        let refused = match keys_outcome(reply) {
            Ok(KeysOutcome { typed: true, .. }) => {
                open.answer_typed = true;
                if open.decided.is_some() {
                    self.questions.remove(key);
                }
                return;
            }
            Ok(KeysOutcome { refused, .. }) => refused.unwrap_or_default(),
            Err(reason) => reason,
        };
        match open.decided.take() {
            // The terminal was faster.
            Some(elsewhere) => {
                self.questions.remove(key);
                out.answer_lost(key.clone(), elsewhere);
            }
            None => self.answer_not_typed(key, &refused, out),
        }
    }

    /// Asks a question again whose answer was not typed.
    fn answer_not_typed(&mut self, key: &RequestKey, reason: &str, out: &mut Output<'_>) {
        let Some(open) = self.questions.remove(key) else { return };
        let message = format!("the answer was not given to Gemini: {reason}. Answer it in the terminal, or try again");
        out.error("answer_not_taken", &message);
        let again = open.again();
        let key = RequestKey::unique(format!("{}~{}", key.id().split('~').next().unwrap_or_default(), again.tries));
        self.questions.insert(key.clone(), again);
        self.show(&key, out);
    }

    /// Resolves the questions about a tool call.
    pub(super) fn resolve_about(&mut self, call: &str, allowed: bool, out: &mut Output<'_>) {
        let about = self.questions.iter().filter(|(_, open)| open.call.as_deref() == Some(call));
        let keys: Vec<RequestKey> = about.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.resolve(key, Some(allowed), out));
    }

    /// Resolves all questions with unknown decisions.
    pub(super) fn resolve_all(&mut self, out: &mut Output<'_>) {
        let keys: Vec<RequestKey> = self.questions.keys().cloned().collect();
        keys.iter().for_each(|key| self.resolve(key, None, out));
    }

    /// Closes a decided question, with the decision as far as it is known.
    fn resolve(&mut self, key: &RequestKey, allowed: Option<bool>, out: &mut Output<'_>) {
        let Some(open) = self.questions.get_mut(key) else { return };
        let elsewhere = at_terminal(allowed.map(|allowed| if allowed { ALLOW } else { DENY }));
        if open.answer.is_some() && !open.answer_typed {
            // The report on the keys will show whether they were first.
            open.decided = Some(elsewhere);
            return;
        }
        let answered_here = open.answer_typed;
        self.questions.remove(key);
        if !answered_here {
            out.taken_back(key.clone(), allowed.map(|_| elsewhere));
        }
    }
}
