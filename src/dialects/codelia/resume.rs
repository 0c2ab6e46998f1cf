//! Opening the session, and conversations that the runtime has already.
//!
//! A conversation goes on when a `run.start` names it; until then the process has none. Whether there is one is asked of
//! `session.list`. Its past comes from `session.history`, as events on the live channel before the reply: nothing else
//! may be under way meanwhile, and a prompt waits. What is told there is not checked for holes (the runtime tells a part)
//! and never holds a question.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{INTERNAL, object};
use super::super::{Draft, Fault, Opening, Outbox, Resume, Said};
use super::events::{self, Transcript};
use super::{AgentEvent, Codelia, Pending, Phase, Replay, SESSION, SESSION_NOT_FOUND, Session, trouble};
use crate::model::{NativeId, Ticket};

/// Sessions that are looked through for the one to open again; where there are more, its name is taken on trust.
const LISTED: usize = 1000;
/// Runs of a conversation that are told; of a longer one the runtime tells the latest, and an event says so.
const RUNS: usize = 200;
/// Events of them, likewise.
const EVENTS: usize = 10_000;

/// Whether the session is in the reply to `session.list`; a reply that says nothing of it is taken for a yes.
pub(super) fn listed(reply: Result<&RawValue, Fault>, native: &str) -> bool {
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
    pub(super) fn open_session(&mut self, ticket: Ticket, cwd: String, resume: Option<Resume>, out: &mut Outbox) {
        let opening = self.pending.values().any(|pending| matches!(pending, Pending::Find { ticket: Some(_), .. }));
        let problem = if self.phase != Phase::Ready {
            Some("the runtime is not ready")
        } else if self.session.is_some() || opening {
            Some("a Codelia process has one session: start another runtime for another")
        } else {
            None
        };
        match (problem, resume) {
            (Some(problem), _) => out.said.push(not_opened(ticket, INTERNAL, problem)),
            (None, None) => self.opened(ticket, NativeId::from(SESSION), cwd, None, out),
            // It ended with its process: the runtime never said its name.
            (None, Some(Resume { native, known: true })) if native.as_str() == SESSION => {
                self.opened(ticket, native, cwd, None, out);
            }
            (None, Some(Resume { native, known })) => {
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
            (true, _) => self.opened(ticket, native, cwd, Some(known), out),
            (false, true) => self.opened(ticket, NativeId::from(SESSION), cwd, None, out),
            (false, false) => {
                out.said.push(not_opened(ticket, SESSION_NOT_FOUND, "the runtime has no such session"));
            }
        }
    }

    /// Opens the session. `resumed`: it is to go on, and whether the log has its past.
    fn opened(&mut self, ticket: Ticket, native: NativeId, cwd: String, resumed: Option<bool>, out: &mut Outbox) {
        let load = resumed.map(|_| native.as_str().to_owned());
        let how = if resumed.is_some() { Opening::Resumed } else { Opening::New };
        self.session = Some(Session { native: native.clone(), cwd, load, known: resumed == Some(true) });
        out.said.push(Said::Opened { ticket, native: native.clone(), drafts: Vec::new(), how });
        if resumed == Some(false) {
            self.replay = Some(Replay::default());
            let params = serde_json::json!({ "session_id": native, "max_runs": RUNS, "max_events": EVENTS });
            self.request(Pending::History, "session.history", &params, out);
        }
    }

    /// One event of the past.
    pub(super) fn replayed(&mut self, frame: &Bytes, event: &AgentEvent<'_>, out: &mut Outbox) {
        if let Some(replay) = &mut self.replay
            && replay.run_id != event.run_id
        {
            replay.run_id.clone_from(&event.run_id);
            self.transcript = Transcript::default();
        }
        let draft = events::user_message(frame, event.event)
            .unwrap_or_else(|| self.transcript.read(frame, event.event, event.run_id.as_deref()));
        self.event(draft, out);
    }

    /// The past is told: a prompt that waited begins.
    pub(super) fn told(&mut self, frame: &Bytes, reply: Result<&RawValue, Fault>, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Told {
            truncated: Option<bool>,
        }
        self.replay = None;
        self.transcript = Transcript::default();
        let draft = |code, message: &str| -> Draft { trouble(code, message, Some(frame)) };
        match reply.map(object::<Told>) {
            Ok(Some(Told { truncated: Some(true) })) => {
                self.event(draft("history_cut", "the runtime told the latest part of this conversation only"), out);
            }
            Ok(_) => {}
            Err(fault) => {
                let message = format!("the runtime does not tell what was said before: {}", fault.message);
                self.event(draft("history_failed", &message), out);
            }
        }
        if self.run.as_ref().is_some_and(|run| run.waits) {
            self.start(out);
        }
    }

    /// The conversation cannot be gone on with. Where the log has its past, a new one takes its place, and an event says
    /// so; else false.
    pub(super) fn start_anew(&mut self, frame: &Bytes, fault: &Fault, out: &mut Outbox) -> bool {
        let Some(session) = self.session.as_mut().filter(|session| session.known) else { return false };
        let Some(lost) = session.load.take() else { return false };
        let message = format!(
            "the runtime cannot go on with conversation {lost} ({}): it knows nothing of what was said before",
            fault.message
        );
        self.event(trouble("conversation_lost", &message, Some(frame)), out);
        self.start(out);
        true
    }
}

fn not_opened(ticket: Ticket, code: i64, problem: &str) -> Said {
    Said::NotOpened { ticket, error: Fault::new(code, problem) }
}
