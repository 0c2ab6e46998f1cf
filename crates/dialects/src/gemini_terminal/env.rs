//! What a terminal works with: the requests under way and the outbox. Pure.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::link::terminal_path;
use super::super::{
    AnsweredElsewhere, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, RunEnd, RuntimeEvent,
};
use super::question::{KeysOutcome, TerminalKeys};
use plexus_protocol::{NativeId, TerminalId, Ticket};

/// Who acts at the terminal.
pub(super) const AT_TERMINAL: &str = "the terminal";

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    Transcript,
    Process,
    /// The keys of an answer.
    Answer(RequestKey),
    /// Those of a prompt.
    Prompt(Ticket),
}

/// The requests under way, with the session that each is about.
#[derive(Default)]
pub(super) struct Fetches {
    last: u64,
    pub(super) pending: HashMap<u64, (NativeId, Fetch)>,
}

/// What a terminal works with: its name, the requests under way, and the outbox.
pub(super) struct Env<'a> {
    pub(super) native: &'a NativeId,
    pub(super) fetches: &'a mut Fetches,
    pub(super) out: &'a mut Outbox,
}

impl Env<'_> {
    pub(super) fn event(&mut self, draft: EventDraft) {
        self.out.events.push(RuntimeEvent::Event { native: Some(self.native.clone()), draft });
    }

    pub(super) fn read(&mut self, what: Fetch, path: String) {
        self.fetch(
            what,
            HttpRequest {
                id: 0,
                base: HttpBase::Connect,
                method: "GET",
                path,
                body: None,
                decides: false,
                session: Some(self.native.clone()),
            },
        );
    }

    /// Has keys typed. It takes a while: what the session reads meanwhile does not wait for it.
    pub(super) fn type_keys(&mut self, what: Fetch, terminal: &TerminalId, keys: &TerminalKeys) {
        let session = Some(NativeId::from(format!("{} keys", self.native).as_str()));
        let body = serde_json::to_vec(keys).ok().map(Bytes::from);
        self.fetch(
            what,
            HttpRequest {
                id: 0,
                base: HttpBase::Connect,
                method: "POST",
                path: terminal_path(terminal),
                body,
                decides: keys.answers(),
                session,
            },
        );
    }

    fn fetch(&mut self, what: Fetch, request: HttpRequest) {
        self.fetches.last += 1;
        let id = self.fetches.last;
        self.fetches.pending.insert(id, (self.native.clone(), what));
        self.out.fetches.push(HttpRequest { id, ..request });
    }

    pub(super) fn ended(&mut self, ticket: Ticket, end: RunEnd) {
        self.out.events.push(RuntimeEvent::Ended { native: self.native.clone(), ticket, end });
    }
}

/// What the terminal's holder says of keys.
pub(super) fn keys_outcome(reply: Result<HttpReply, String>) -> Result<KeysOutcome, String> {
    let reply = reply?;
    serde_json::from_slice(&reply.body).map_err(|_| format!("the terminal answered with {}", reply.status))
}

/// The length of a transcript, from the reply that says it.
pub(super) fn length(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Who decided at the terminal, and how.
pub(super) fn at_terminal(option_id: Option<&str>) -> AnsweredElsewhere {
    AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: option_id.map(str::to_owned) }
}
