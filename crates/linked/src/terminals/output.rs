//! The output of a step of one terminal. Pure.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use plexus_dialects::link::{HelperExit, LinkReply, process_path};
use plexus_dialects::{
    AgentRequest, AnsweredElsewhere, EventDraft, HttpBase, HttpRequest, Outbox, RequestKey, RunEnd, RuntimeEvent,
    jsonrpc,
};
use plexus_protocol::{NativeId, SpendReport, Ticket};

/// The name of the author for actions at the terminal.
pub(crate) const AT_TERMINAL: &str = "the terminal";

/// Makes the decision of a user at the terminal, with the option if it is known.
pub(crate) fn at_terminal(option_id: Option<&str>) -> AnsweredElsewhere {
    AnsweredElsewhere { by: AT_TERMINAL.into(), option_id: option_id.map(str::to_owned) }
}

/// The purpose of a request to the link endpoint.
#[derive(Debug)]
pub(crate) enum Purpose<R> {
    /// The check whether the process of a restored terminal is alive.
    Process,
    /// A request of the agent.
    Agent(R),
}

/// The pending requests, each with its terminal.
pub(crate) struct PendingRequests<R> {
    last: u64,
    pending: HashMap<u64, (NativeId, Purpose<R>)>,
}

impl<R> Default for PendingRequests<R> {
    fn default() -> Self {
        Self { last: 0, pending: HashMap::new() }
    }
}

impl<R> PendingRequests<R> {
    /// Removes a request that was answered.
    pub(crate) fn take(&mut self, id: u64) -> Option<(NativeId, Purpose<R>)> {
        self.pending.remove(&id)
    }

    /// Removes the requests of a terminal: their replies are ignored.
    pub(crate) fn forget(&mut self, terminal: &NativeId) {
        self.pending.retain(|_, (id, _)| id != terminal);
    }
}

/// The events, requests and replies of a terminal in one step.
pub(crate) struct SessionOutput<'a, R> {
    /// The terminal, as [`LinkedTerminals`](super::dialect::LinkedTerminals) names it.
    pub(crate) id: &'a NativeId,
    /// The session in the terminal, if it is known.
    pub(crate) native: Option<NativeId>,
    pub(crate) requests: &'a mut PendingRequests<R>,
    pub(crate) out: &'a mut Outbox,
}

impl<R> SessionOutput<'_, R> {
    // === events ===

    pub(crate) fn event(&mut self, draft: EventDraft) {
        self.out.events.push(RuntimeEvent::Event { native: self.native.clone(), draft });
    }

    /// Reports an error that the user sees.
    pub(crate) fn error(&mut self, code: &str, message: &str) {
        self.event(EventDraft::error(code, message, None));
    }

    /// Reports agent output from which no event was made.
    pub(crate) fn raw(&mut self, json: &RawValue, reason: &str) {
        self.event(EventDraft::raw(Bytes::copy_from_slice(json.get().as_bytes()), reason));
    }

    /// Reports a session, in this folder if it is absolute.
    pub(crate) fn found(&mut self, cwd: &str) {
        let cwd = Some(cwd.to_owned()).filter(|cwd| cwd.starts_with('/'));
        self.push(|native| RuntimeEvent::Found { native, cwd, title: None });
    }

    pub(crate) fn began(&mut self, by: &str) {
        self.push(|native| RuntimeEvent::Began { native, by: by.into() });
    }

    pub(crate) fn done(&mut self, end: RunEnd) {
        self.push(|native| RuntimeEvent::Done { native, end });
    }

    pub(crate) fn ended(&mut self, ticket: Ticket, end: RunEnd) {
        self.push(|native| RuntimeEvent::Ended { native, ticket, end });
    }

    pub(crate) fn closed(&mut self, reason: String) {
        self.push(|native| RuntimeEvent::Closed { native, reason });
    }

    pub(crate) fn checkpoint(&mut self, state: String) {
        self.push(|native| RuntimeEvent::Checkpoint { native, state });
    }

    /// Reports the tokens of a step, if there are any.
    pub(crate) fn spent(&mut self, report: Option<SpendReport>) {
        if let Some(report) = report {
            self.push(|native| RuntimeEvent::Spent { native, report });
        }
    }

    pub(crate) fn ask(&mut self, ask: AgentRequest) {
        self.out.events.push(RuntimeEvent::Asked { native: self.native.clone(), ask: Box::new(ask) });
    }

    pub(crate) fn ask_changed(&mut self, ask: AgentRequest) {
        self.out.events.push(RuntimeEvent::AskChanged { native: self.native.clone(), ask: Box::new(ask) });
    }

    pub(crate) fn taken_back(&mut self, key: RequestKey, elsewhere: Option<AnsweredElsewhere>) {
        self.out.events.push(RuntimeEvent::TakenBack { native: self.native.clone(), key, elsewhere });
    }

    pub(crate) fn answer_lost(&mut self, key: RequestKey, elsewhere: AnsweredElsewhere) {
        self.out.events.push(RuntimeEvent::AnswerLost { native: self.native.clone(), key, elsewhere });
    }

    /// Adds an event of a session, unless the session is unknown.
    pub(crate) fn push(&mut self, event: impl FnOnce(NativeId) -> RuntimeEvent) {
        self.out.events.extend(self.native.clone().map(event));
    }

    // === helpers ===

    /// Ends a helper that waits, or closes a tunnel.
    pub(crate) fn release(&mut self, connection: u64, exit: HelperExit) {
        self.out.frames.push(jsonrpc::line(&LinkReply { connection, exit }));
    }

    // === requests ===

    pub(crate) fn check_process(&mut self, (pid, started): (u32, u64)) {
        self.request(Purpose::Process, self.id.clone(), "GET", process_path(pid, started), None, false);
    }

    pub(crate) fn get(&mut self, purpose: R, path: String) {
        self.request(Purpose::Agent(purpose), self.id.clone(), "GET", path, None, false);
    }

    /// Sends a request. `decides`: an action of the agent depends on it.
    pub(crate) fn post(&mut self, purpose: R, path: String, body: Option<Bytes>, decides: bool) {
        self.request(Purpose::Agent(purpose), self.id.clone(), "POST", path, body, decides);
    }

    /// Sends a request like [`post`](Self::post), in parallel to the terminal's other requests.
    pub(crate) fn post_parallel(&mut self, purpose: R, queue: &str, path: String, body: Option<Bytes>, decides: bool) {
        let queue = NativeId::from(format!("{} {queue}", self.id).as_str());
        self.request(Purpose::Agent(purpose), queue, "POST", path, body, decides);
    }

    fn request(
        &mut self,
        purpose: Purpose<R>,
        queue: NativeId,
        method: &'static str,
        path: String,
        body: Option<Bytes>,
        decides: bool,
    ) {
        self.requests.last += 1;
        let (id, base, session) = (self.requests.last, HttpBase::Connect, Some(queue));
        self.requests.pending.insert(id, (self.id.clone(), purpose));
        self.out.fetches.push(HttpRequest { id, base, method, path, body, decides, session });
    }
}
