//! What of a session's events is reported, and the reading of those that were missed. Pure.
//!
//! Copilot reads its events from a cursor, and each has an id. The cursor moves with every read; the ids of what was reported since by the
//! tunnel are kept beside it, so that a read reports only what is new.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::fnv::{FNV, fnv};
use super::super::jsonrpc::{object, owned};
use super::super::{AnsweredElsewhere, HttpReply, RequestKey};
use super::ask::CopilotQuestion;
use super::drafts;
use super::events::{CopilotEvent, EventsPage, PartialText, SessionStanding};
use super::session::{AT_TERMINAL, CopilotSession, Env, FetchFor, HELD_MAX, form_question};
use plexus_protocol::{Kind, RunStatus};

/// Longest cursor, in bytes. Without one that can be kept nothing is read.
const CURSOR_MAX: usize = 1024;
/// Events reported since the cursor after which a read moves it.
const SEEN_READ: usize = 32;
/// Most of them that are remembered, where reads fail; of older ones a read may report some twice.
const SEEN_MAX: usize = 256;
/// Events remembered that a read reported: the tunnel tells of them, too, if they happened meanwhile. More than may wait.
const RECENT_MAX: usize = 2 * HELD_MAX;

/// What of a session's events is reported.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    /// All up to here. None before the first read.
    cursor: Option<String>,
    /// Those after it that are reported (FNV-1a of their ids).
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    seen: VecDeque<u64>,
    /// Those of the last reads.
    #[serde(skip)]
    recent: VecDeque<u64>,
    /// Those of the read under way.
    #[serde(skip)]
    page: Vec<u64>,
    /// The past is not to be shown.
    #[serde(skip)]
    hidden: bool,
}

impl Reported {
    /// Whether nothing was read yet.
    pub(super) fn is_none(&self) -> bool {
        self.cursor.is_none()
    }

    /// What was before the first read is not shown, if the log has it.
    pub(super) fn hide_past(&mut self, hidden: bool) {
        self.hidden = hidden;
    }

    /// Whether an event is reported now for the first time, which is remembered; `live`, or by a read.
    pub(super) fn is_new(&mut self, id: &str, live: bool) -> bool {
        let id = fnv(FNV, id);
        let new = !self.seen.contains(&id) && !self.recent.contains(&id);
        let remember = |queue: &mut VecDeque<u64>, max| {
            if queue.len() >= max {
                queue.pop_front();
            }
            queue.push_back(id);
        };
        match live {
            true if new => remember(&mut self.seen, SEEN_MAX),
            true => {}
            false => {
                self.page.push(id);
                remember(&mut self.recent, RECENT_MAX);
            }
        }
        new
    }

    /// Whether the cursor is far behind.
    pub(super) fn is_long(&self) -> bool {
        self.seen.len() >= SEEN_READ
    }

    /// A read is over up to this cursor.
    fn read_to(&mut self, cursor: String) {
        self.cursor = Some(cursor);
        let page = std::mem::take(&mut self.page);
        self.seen.retain(|id| !page.contains(id));
    }
}

impl CopilotSession {
    /// Reads the events since the cursor, unless that is under way.
    pub(super) fn read(&mut self, env: &mut Env<'_>) {
        let Some(connection) = self.connection.filter(|_| self.opened && !self.reading) else { return };
        let path = match &self.reported.cursor {
            Some(cursor) => format!("/events/{}", data_encoding::HEXLOWER.encode(cursor.as_bytes())),
            None => "/events".to_owned(),
        };
        self.reading = self.request(FetchFor::Events(connection), &path, None, env);
    }

    /// A page of events.
    pub(super) fn page(&mut self, reply: Result<HttpReply, String>, env: &mut Env<'_>) {
        self.reading = false;
        let body = match reply {
            Ok(HttpReply { status: 200, body }) => body,
            // It is read again with the next tick, or when the tunnel is back.
            _ => return,
        };
        let page = serde_json::from_slice::<EventsPage<'_>>(&body).ok();
        let Some(page) = page.filter(|page| page.cursor.len() <= CURSOR_MAX) else {
            return env.event(drafts::error("gap", "Copilot's events cannot be read: some messages may be missing"));
        };
        let first = self.reported.is_none();
        let lost = match () {
            () if page.expired => Some("some messages may be missing: Copilot no longer has their place"),
            () if first && self.reported.hidden && !page.events.is_empty() => {
                Some("messages from the time when no gateway was running may be missing")
            }
            () if first && page.older && !self.reported.hidden => Some("older messages of this session are not shown"),
            () => None,
        };
        lost.iter().for_each(|lost| env.event(drafts::error("gap", lost)));
        for raw in &page.events {
            if first && self.reported.hidden {
                if let Some(id) = object::<CopilotEvent<'_>>(raw).and_then(|event| event.id) {
                    self.reported.is_new(&id, false);
                }
                continue;
            }
            self.event(raw, false, env);
        }
        self.reported.read_to(page.cursor);
        match page.state {
            // What was dropped is read, if Copilot keeps it.
            Some(_) if std::mem::take(&mut self.overflowed) => self.read(env),
            Some(state) if !page.more => self.caught_up(state, env),
            _ => self.read(env),
        }
    }

    /// All that was missed is reported.
    fn caught_up(&mut self, state: SessionStanding<'_>, env: &mut Env<'_>) {
        let Some(held) = self.held.take() else {
            // The cursor was moved, no more.
            return;
        };
        let was_past = std::mem::take(&mut self.past);
        if was_past && self.run.take().is_some() && state.processing {
            self.begin(AT_TERMINAL, env);
        }
        let partial = state.partial.as_ref().map(|partial| partial.message_id.as_str());
        let mut idle = false;
        for raw in held {
            let Some(event) = object::<CopilotEvent<'_>>(&raw) else { continue };
            idle |= event.sort == "session.idle";
            // The text up to now has these pieces.
            let told = partial.is_some_and(|id| event.is_piece_of(id));
            if !told {
                self.event(&raw, true, env);
            }
        }
        if !state.processing {
            self.end_run(RunStatus::Completed, env);
        } else if self.run.is_none() && !idle {
            self.begin(AT_TERMINAL, env);
        }
        if let Some(title) = &state.title {
            self.titled(title, env);
        }
        if let Some(PartialText { message_id, text }) = &state.partial
            && !idle
            && let Some(rest) = self.text.up_to_now(message_id, text)
        {
            env.event(drafts::chunk(Kind::AgentMessageChunk, rest, message_id, None));
        }
        self.reconcile(&state, env);
        self.deliver(env);
    }

    /// Compares the open questions with those of Copilot.
    fn reconcile(&mut self, state: &SessionStanding<'_>, env: &mut Env<'_>) {
        let mut open = Vec::new();
        for pending in &state.pending {
            open.push(RequestKey::unique(pending.request_id.as_str()));
            let question = CopilotQuestion::Permission { prompt: owned(pending.request) };
            self.ask(&pending.request_id, question, false, env);
        }
        for data in &state.questions {
            let Some((id, question)) = form_question(data) else { continue };
            open.push(RequestKey::unique(id.as_str()));
            self.ask(&id, question, false, env);
        }
        // One that this connection's events told of is newer than that.
        let gone = self.asks.iter().filter(|(key, ask)| !ask.live && !open.contains(key));
        let gone: Vec<RequestKey> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            // No event told who decided it: only the terminal can have, or an answer that was lost on its way back.
            let by = AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: None };
            self.gone(&key, by, env);
        }
    }
}
