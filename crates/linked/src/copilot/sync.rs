//! The reading of a session's missed events. Pure.

use serde_json::value::RawValue;

use super::ask::{CopilotQuestion, FormData};
use super::events::{CopilotEvent, EventsPage, PartialText, SessionSnapshot};
use super::terminal::{CopilotTerminal, Output};
use crate::terminals::dialect::TerminalAgent;
use crate::terminals::drafts;
use crate::terminals::output::AT_TERMINAL;
use plexus_dialects::jsonrpc::{object, owned};
use plexus_dialects::{HttpReply, RequestKey};
use plexus_protocol::{Kind, RunStatus};

/// Maximum length of a cursor, in bytes. With a longer one nothing is read.
const CURSOR_MAX: usize = 1024;

/// Reads an open form, and its id.
fn form_question(data: &RawValue) -> Option<(String, CopilotQuestion)> {
    let id = object::<FormData>(data)?.request_id;
    Some((id, CopilotQuestion::Form { data: owned(data) }))
}

impl CopilotTerminal {
    /// Handles a page of events.
    pub(super) fn page(&mut self, reply: Result<HttpReply, String>, out: &mut Output<'_>) {
        self.reading = false;
        let body = match reply {
            Ok(HttpReply { status: 200, body }) => body,
            // The page is read again with the next tick, or when the tunnel is back.
            _ => return,
        };
        let page = serde_json::from_slice::<EventsPage<'_>>(&body).ok();
        let Some(page) = page.filter(|page| page.cursor.len() <= CURSOR_MAX) else {
            return out.error("gap", "Copilot's events cannot be read: some messages may be missing");
        };
        let first = self.reported.is_none();
        let lost = match () {
            () if page.expired => Some("some messages may be missing: Copilot no longer has their position"),
            () if first && self.reported.hidden && !page.events.is_empty() => {
                Some("messages from the time when no gateway was running may be missing")
            }
            () if first && page.older && !self.reported.hidden => Some("older messages of this session are not shown"),
            () => None,
        };
        lost.iter().for_each(|lost| out.error("gap", lost));
        for raw in &page.events {
            if first && self.reported.hidden {
                if let Some(id) = object::<CopilotEvent<'_>>(raw).and_then(|event| event.id) {
                    self.reported.is_new(&id, false);
                }
                continue;
            }
            self.event(raw, false, out);
        }
        self.reported.read_to(page.cursor);
        match page.state {
            // Dropped events are read, if Copilot stores them.
            Some(_) if std::mem::take(&mut self.overflowed) => self.read(out),
            Some(state) if !page.more => self.caught_up(state, out),
            _ => self.read(out),
        }
    }

    /// Handles the end of a read: all missed events are reported.
    fn caught_up(&mut self, state: SessionSnapshot<'_>, out: &mut Output<'_>) {
        if std::mem::replace(&mut self.live, true) {
            // The read only moved the cursor.
            return;
        }
        let was_past = std::mem::take(&mut self.past);
        if was_past && self.session.turn.take().is_some() && state.processing {
            self.begin(AT_TERMINAL, out);
        }
        let partial = state.partial.as_ref().map(|partial| partial.message_id.as_str());
        let mut idle = false;
        for raw in std::mem::take(&mut self.held) {
            let Some(event) = object::<CopilotEvent<'_>>(&raw) else { continue };
            idle |= event.type_name == "session.idle";
            // These pieces are in the text so far.
            let is_shown = partial.is_some_and(|id| event.is_piece_of(id));
            if !is_shown {
                self.event(&raw, true, out);
            }
        }
        if !state.processing {
            self.end_turn(RunStatus::Completed, out);
        } else if self.session.turn.is_none() && !idle {
            self.begin(AT_TERMINAL, out);
        }
        if let Some(title) = &state.title {
            self.set_title(title, out);
        }
        if let Some(PartialText { message_id, text }) = &state.partial
            && !idle
            && let Some(rest) = self.text.up_to_now(message_id, text)
        {
            out.event(drafts::chunk(Kind::AgentMessageChunk, rest, Some(message_id), None));
        }
        self.reconcile(&state, out);
        self.send_prompt(out);
    }

    /// Compares the open questions with those of Copilot.
    fn reconcile(&mut self, state: &SessionSnapshot<'_>, out: &mut Output<'_>) {
        let mut open = Vec::new();
        for pending in &state.pending {
            open.push(RequestKey::unique(pending.request_id.as_str()));
            let question = CopilotQuestion::Permission { prompt: owned(pending.request) };
            self.ask(&pending.request_id, question, false, out);
        }
        for data in &state.questions {
            let Some((id, question)) = form_question(data) else { continue };
            open.push(RequestKey::unique(id.as_str()));
            self.ask(&id, question, false, out);
        }
        // A question from the events of this connection is newer than the read.
        let missing = self.questions.iter().filter(|(key, question)| !question.live && !open.contains(key));
        let missing: Vec<RequestKey> = missing.map(|(key, _)| key.clone()).collect();
        missing.into_iter().for_each(|key| self.question_missing(key, out));
    }
}
