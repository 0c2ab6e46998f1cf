//! Shows the questions of Claude Code to the user, and sends the answers to their hooks. Pure.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::open_question::OpenQuestion;
use super::permission::{ALLOW, DENY, Permission, PermissionEvent};
use super::terminal::{ClaudeTerminal, HookReport, Output};
use super::transcript::DecidedBy;
use crate::terminals::dialect::TerminalAgent;
use crate::terminals::output::at_terminal;
use plexus_dialects::link::HelperExit;
use plexus_dialects::{RequestKey, jsonrpc};

/// Maximum number of open questions of a session; further ones can only be answered at the terminal.
const QUESTIONS_MAX: usize = 256;
/// Number of ticks without its hook until a question counts as one that only the terminal can answer.
const ABSENT_TICKS: u32 = 20;

impl ClaudeTerminal {
    /// Handles a hook that waits for the answer to a question.
    pub(super) fn question(&mut self, key: RequestKey, connection: u64, raw: &RawValue, out: &mut Output<'_>) {
        let Some(event) = jsonrpc::object::<PermissionEvent<'_>>(raw) else {
            out.raw(raw, "a question of Claude Code that could not be read: it can only be answered at the terminal");
            return out.release(connection, HelperExit::default());
        };
        if !self.questions.contains_key(&key) && self.questions.len() >= QUESTIONS_MAX {
            return out.release(connection, HelperExit::default());
        }
        let question = self.questions.entry(key.clone()).or_default();
        question.native = Bytes::copy_from_slice(raw.get().as_bytes());
        question.permission = Some(Permission::new(&event));
        question.absent_ticks = 0;
        if let Some(old) = question.connection.replace(connection) {
            out.release(old, HelperExit::default());
        }
        if std::mem::take(&mut question.only_at_terminal)
            && let Some(request) = question.request(&key)
        {
            out.ask_changed(request);
        }
        self.queue.push_back(HookReport::Question(key));
        self.read(out);
    }

    /// Shows a question, and sends its hook an answer that is known already.
    pub(super) fn ask(&mut self, key: &RequestKey, out: &mut Output<'_>) {
        let Some(question) = self.questions.get(key) else { return };
        if question.call.is_none() {
            let has_question = |id: &String| self.questions.values().any(|other| other.call.as_ref() == Some(id));
            let call = self.calls.iter().find(|(id, call)| question.is_about(call) && !has_question(id));
            if let Some((id, call)) = call.cloned()
                && let Some(question) = self.questions.get_mut(key)
            {
                question.call = Some(id);
                question.permission.iter_mut().for_each(|permission| permission.complete(&call));
            }
        }
        self.begin_before_prompt(out);
        let Some(question) = self.questions.get_mut(key) else { return };
        if !std::mem::replace(&mut question.visible, true)
            && let Some(request) = question.request(key)
        {
            out.ask(request);
        }
        self.send_answer(key, out);
    }

    /// Sends the hook of a question its answer, if both are known.
    pub(super) fn send_answer(&mut self, key: &RequestKey, out: &mut Output<'_>) {
        let Some(question) = self.questions.get_mut(key) else { return };
        let (Some(permission), Some(connection)) = (&question.permission, question.connection) else { return };
        let Some(answer) = question.answer.take() else { return };
        question.connection = None;
        match permission.answer(&answer) {
            Some(stdout) => {
                question.answer_sent = true;
                out.release(connection, HelperExit { stdout, ..HelperExit::default() });
            }
            // The terminal's own dialog decides.
            None => {
                out.release(connection, HelperExit::default());
                self.questions.remove(key);
            }
        }
    }

    /// Resolves the questions of a kind.
    pub(super) fn resolve_all(
        &mut self,
        which: impl Fn(&OpenQuestion) -> bool,
        by: Option<DecidedBy>,
        out: &mut Output<'_>,
    ) {
        let keys = self.questions.iter().filter(|(_, question)| which(question)).map(|(key, _)| key.clone());
        let keys: Vec<RequestKey> = keys.collect();
        keys.into_iter().for_each(|key| self.resolve(key, by, out));
    }

    /// Closes a decided question, with the author of the decision as far as it is known.
    fn resolve(&mut self, key: RequestKey, by: Option<DecidedBy>, out: &mut Output<'_>) {
        let Some(question) = self.questions.remove(&key) else { return };
        if let Some(connection) = question.connection {
            out.release(connection, HelperExit::default());
        }
        let elsewhere = match by {
            Some(DecidedBy::Person { allowed }) => {
                let has_options = question.permission.as_ref().is_some_and(|permission| !permission.questions());
                Some(at_terminal(has_options.then_some(if allowed { ALLOW } else { DENY })))
            }
            Some(DecidedBy::Hook | DecidedBy::Rules) | None => None,
        };
        match (question.answer_sent || question.answer.is_some(), elsewhere) {
            // The terminal was faster than the answer.
            (true, Some(elsewhere)) => out.answer_lost(key, elsewhere),
            (true, None) => {}
            (false, elsewhere) => out.taken_back(key, elsewhere),
        }
    }

    /// Counts the ticks of questions without a hook; in the end it is shown that only the terminal can answer them.
    pub(super) fn tick_questions(&mut self, out: &mut Output<'_>) {
        for (key, question) in &mut self.questions {
            if question.connection.is_some() || question.answer_sent || question.only_at_terminal {
                continue;
            }
            question.absent_ticks += 1;
            if question.absent_ticks >= ABSENT_TICKS && question.visible {
                question.only_at_terminal = true;
                if let Some(request) = question.request(key) {
                    out.ask_changed(request);
                }
            }
        }
    }
}
