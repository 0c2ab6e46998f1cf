//! Opens the session, and resumes earlier conversations.
//!
//! A conversation resumes when a `run.start` names it; until then the process has none. `session.list` shows whether it exists. Its history
//! comes from `session.history`, as events on the live channel before the reply: nothing else may run meanwhile, so the session is opened
//! once the history is complete, and comes with it. The history is not checked for gaps (the runtime sends a part) and never holds a
//! question.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{INTERNAL, member};
use super::super::{EventDraft, OpenedAs, Outbox, ResumeTarget, RuntimeError, RuntimeEvent};
use super::events::{self, RunContext};
use super::{AgentEvent, Codelia, Pending, Phase, Replay, SESSION, SESSION_NOT_FOUND, Session};
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{NativeId, Ticket};

/// Maximum number of sessions searched for the one to resume; with a longer list its existence is assumed.
const LISTED: usize = 1000;
/// Maximum number of runs in a history; of a longer conversation the runtime sends the latest, which an event reports.
const RUNS: usize = 200;
/// Maximum number of events in a history; of a longer conversation the runtime sends the latest, which an event reports.
const EVENTS: usize = 10_000;
/// Maximum size of the history that is collected before the session is opened, in bytes; above it the session is opened
/// at once, the rest follows as events, and prompts wait.
const PAST_MAX: usize = 16 << 20;

/// Returns whether the session is in the reply to `session.list`; assumed if the reply is an error.
pub(super) fn listed(reply: Result<&RawValue, RuntimeError>, native: &str) -> bool {
    #[derive(Deserialize)]
    struct One {
        session_id: String,
    }
    match reply.ok().and_then(|reply| member::<Vec<One>>(reply, "sessions")) {
        Some(sessions) => sessions.len() >= LISTED || sessions.iter().any(|session| session.session_id == native),
        None => true,
    }
}

impl Codelia {
    pub(super) fn open_session(&mut self, ticket: Ticket, cwd: String, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let opening = self
            .pending
            .values()
            .any(|pending| matches!(pending, Pending::Find { ticket: Some(_), .. } | Pending::History { .. }));
        let problem = if self.phase != Phase::Ready {
            Some((INTERNAL, "the runtime is not ready"))
        } else if self.session.is_some() || opening {
            Some((ONE_SESSION, "a Codelia process has only one session: start another runtime for another session"))
        } else {
            None
        };
        match (problem, resume) {
            (Some((code, problem)), _) => out.events.push(not_opened(ticket, code, problem)),
            (None, None) => self.opened(ticket, NativeId::from(SESSION), cwd, None, Vec::new(), out),
            // The conversation ended with its process: the runtime never reported its id.
            (None, Some(ResumeTarget { native, known: true, .. })) if native.as_str() == SESSION => {
                self.opened(ticket, native, cwd, None, Vec::new(), out);
            }
            (None, Some(ResumeTarget { native, known, .. })) => {
                let params = serde_json::json!({ "scope": "all", "limit": LISTED });
                let find = Pending::Find { ticket: Some(ticket), native, known, cwd };
                self.request(find, "session.list", &params, out);
            }
        }
    }

    /// Continues once the existence of the session is known.
    pub(super) fn found(
        &mut self,
        ticket: Option<Ticket>,
        native: NativeId,
        known: bool,
        cwd: String,
        exists: bool,
        out: &mut Outbox,
    ) {
        // The gateway process that requested it may have ended.
        let Some(ticket) = ticket else { return };
        match (exists, known) {
            (true, true) => self.opened(ticket, native, cwd, Some(true), Vec::new(), out),
            (true, false) => {
                self.replay = Some(Replay::default());
                let params = serde_json::json!({ "session_id": native, "max_runs": RUNS, "max_events": EVENTS });
                let history = Pending::History { ticket: Some(ticket), native, cwd };
                self.request(history, "session.history", &params, out);
            }
            (false, true) => self.opened(ticket, NativeId::from(SESSION), cwd, None, Vec::new(), out),
            (false, false) => {
                out.events.push(not_opened(ticket, SESSION_NOT_FOUND, "the runtime has no such session"));
            }
        }
    }

    /// Opens the session. `resumed`: whether the log has the history of a session to resume.
    fn opened(
        &mut self,
        ticket: Ticket,
        native: NativeId,
        cwd: String,
        resumed: Option<bool>,
        drafts: Vec<EventDraft>,
        out: &mut Outbox,
    ) {
        let load = resumed.map(|_| native.as_str().to_owned());
        let how = if resumed.is_some() { OpenedAs::Resumed } else { OpenedAs::New };
        self.session = Some(Session { native: native.clone(), cwd, load, known: resumed == Some(true) });
        out.events.push(RuntimeEvent::Opened { ticket, native, drafts, how });
    }

    /// Handles an event of the history.
    pub(super) fn replayed(&mut self, frame: &Bytes, event: &AgentEvent<'_>, out: &mut Outbox) {
        if let Some(replay) = &mut self.replay
            && replay.run_id != event.run_id
        {
            replay.run_id.clone_from(&event.run_id);
            self.context = RunContext::default();
        }
        let draft = events::user_message(frame, event.event)
            .unwrap_or_else(|| self.context.read(frame, event.event, event.run_id.as_deref()));
        self.past(draft, out);
    }

    /// Adds an event to the history.
    fn past(&mut self, draft: EventDraft, out: &mut Outbox) {
        let Some(replay) = self.replay.as_mut().filter(|_| self.session.is_none()) else {
            return self.event(draft, out);
        };
        replay.weight += draft.body.len() + draft.native.as_ref().map_or(0, Bytes::len);
        replay.drafts.push(draft);
        if replay.weight <= PAST_MAX {
            return;
        }
        let drafts = std::mem::take(&mut replay.drafts);
        let opening = self.pending.values_mut().find_map(|pending| match pending {
            Pending::History { ticket, native, cwd } => Some((ticket.take()?, native.clone(), cwd.clone())),
            _ => None,
        });
        if let Some((ticket, native, cwd)) = opening {
            self.opened(ticket, native, cwd, Some(false), drafts, out);
        }
    }

    /// Handles the end of the history: opens the session with it, and sends a delayed prompt.
    pub(super) fn history_read(
        &mut self,
        frame: &Bytes,
        ticket: Option<Ticket>,
        native: NativeId,
        cwd: String,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        match reply.map(|reply| member(reply, "truncated")) {
            Ok(Some(true)) => {
                let message = "the runtime replayed only the latest part of this conversation";
                self.past(EventDraft::error("history_cut", message, Some(frame)), out);
            }
            Ok(_) => {}
            Err(fault) => {
                let message = format!("the runtime does not replay earlier messages: {}", fault.full_message());
                self.past(EventDraft::error("history_failed", &message, Some(frame)), out);
            }
        }
        self.context = RunContext::default();
        let drafts = self.replay.take().map(|replay| replay.drafts).unwrap_or_default();
        // Without a ticket the session was opened before, or the gateway process that requested it has ended.
        if let (Some(ticket), None) = (ticket, &self.session) {
            self.opened(ticket, native, cwd, Some(false), drafts, out);
        }
        if self.run.as_ref().is_some_and(|run| run.is_deferred) {
            self.start(out);
        }
    }

    /// Handles a conversation that cannot be resumed. If the log has its history, a new one replaces it, which an event
    /// reports; otherwise returns `false`.
    pub(super) fn start_anew(&mut self, frame: &Bytes, fault: &RuntimeError, out: &mut Outbox) -> bool {
        let Some(session) = self.session.as_mut().filter(|session| session.known) else { return false };
        let Some(lost) = session.load.take() else { return false };
        let message = format!(
            "the runtime cannot continue conversation {lost} ({}): it does not know the previous messages",
            fault.full_message()
        );
        self.event(EventDraft::error("conversation_lost", &message, Some(frame)), out);
        self.start(out);
        true
    }
}

fn not_opened(ticket: Ticket, code: i64, problem: &str) -> RuntimeEvent {
    RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(code, problem) }
}
