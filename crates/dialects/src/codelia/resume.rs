//! Opening the session, and conversations that the runtime has already.
//!
//! A conversation goes on when a `run.start` names it; until then the process has none. Whether there is one is asked of
//! `session.list`. Its past comes from `session.history`, as events on the live channel before the reply: nothing else
//! may be under way meanwhile, so the session is opened when all of it is told, and comes with it. What is told there is
//! not checked for holes (the runtime tells a part) and never holds a question.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{INTERNAL, object};
use super::super::{EventDraft, OpenedAs, Outbox, ResumeTarget, RuntimeError, RuntimeEvent};
use super::events::{self, RunContext};
use super::{AgentEvent, Codelia, Pending, Phase, Replay, SESSION, SESSION_NOT_FOUND, Session, trouble};
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{NativeId, Ticket};

/// Sessions that are looked through for the one to open again; where there are more, its name is taken on trust.
const LISTED: usize = 1000;
/// Runs of a conversation that are told; of a longer one the runtime tells the latest, and an event says so.
const RUNS: usize = 200;
/// Events of them, likewise.
const EVENTS: usize = 10_000;
/// What of the past waits for its end, in bytes; with more the session is opened at once, the rest comes as it is told,
/// and prompts wait.
const PAST_MAX: usize = 16 << 20;

/// Whether the session is in the reply to `session.list`; a reply that says nothing of it is taken for a yes.
pub(super) fn listed(reply: Result<&RawValue, RuntimeError>, native: &str) -> bool {
    #[derive(Deserialize)]
    struct List {
        sessions: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        session_id: String,
    }
    match reply.ok().and_then(object::<List>) {
        Some(List { sessions }) => {
            sessions.len() >= LISTED || sessions.iter().any(|session| session.session_id == native)
        }
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
            Some((ONE_SESSION, "a Codelia process has one session: start another runtime for another"))
        } else {
            None
        };
        match (problem, resume) {
            (Some((code, problem)), _) => out.events.push(not_opened(ticket, code, problem)),
            (None, None) => self.opened(ticket, NativeId::from(SESSION), cwd, None, Vec::new(), out),
            // It ended with its process: the runtime never said its name.
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

    /// Whether there is a session to go on with is known.
    pub(super) fn found(
        &mut self,
        ticket: Option<Ticket>,
        native: NativeId,
        known: bool,
        cwd: String,
        there: bool,
        out: &mut Outbox,
    ) {
        // Whoever asked for it may be gone, with the gateway that it asked.
        let Some(ticket) = ticket else { return };
        match (there, known) {
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

    /// Opens the session. `resumed`: it is to go on, and whether the log has its past.
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

    /// One event of the past.
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

    /// Puts something to the past that is being told.
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

    /// The past is told: the session is opened with it, and a prompt that waited begins.
    pub(super) fn told(
        &mut self,
        frame: &Bytes,
        ticket: Option<Ticket>,
        native: NativeId,
        cwd: String,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        #[derive(Deserialize)]
        struct Told {
            truncated: Option<bool>,
        }
        match reply.map(object::<Told>) {
            Ok(Some(Told { truncated: Some(true) })) => {
                let message = "the runtime told the latest part of this conversation only";
                self.past(trouble("history_cut", message, Some(frame)), out);
            }
            Ok(_) => {}
            Err(fault) => {
                let message = format!("the runtime does not tell what was said before: {}", fault.words());
                self.past(trouble("history_failed", &message, Some(frame)), out);
            }
        }
        self.context = RunContext::default();
        let drafts = self.replay.take().map(|replay| replay.drafts).unwrap_or_default();
        // Without a ticket it was opened before, or whoever asked for it is gone.
        if let (Some(ticket), None) = (ticket, &self.session) {
            self.opened(ticket, native, cwd, Some(false), drafts, out);
        }
        if self.run.as_ref().is_some_and(|run| run.waits) {
            self.start(out);
        }
    }

    /// The conversation cannot be gone on with. Where the log has its past, a new one takes its place, and an event says
    /// so; else false.
    pub(super) fn start_anew(&mut self, frame: &Bytes, fault: &RuntimeError, out: &mut Outbox) -> bool {
        let Some(session) = self.session.as_mut().filter(|session| session.known) else { return false };
        let Some(lost) = session.load.take() else { return false };
        let message = format!(
            "the runtime cannot go on with conversation {lost} ({}): it knows nothing of what was said before",
            fault.words()
        );
        self.event(trouble("conversation_lost", &message, Some(frame)), out);
        self.start(out);
        true
    }
}

fn not_opened(ticket: Ticket, code: i64, problem: &str) -> RuntimeEvent {
    RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(code, problem) }
}
