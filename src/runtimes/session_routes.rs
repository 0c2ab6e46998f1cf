//! Routes a runtime's events to its sessions: one table of native ids, tickets and request keys. Pure: the driver delivers
//! the batches.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;

use plexus_dialects::{EventDraft, OpenedAs, RequestKey, RuntimeCommand, RuntimeError, RuntimeEvent};
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{NativeId, Ticket};
use plexus_sessions::{ReattachedSession, RuntimeOrder, SessionSender};

/// Maximum number of stored events of sessions that are not open yet.
const EARLY_MAX: usize = 1024;

/// Maximum size of these events, in bytes. Beyond either limit the oldest are dropped, and the first session gets a report of their
/// number.
const EARLY_BYTES: usize = 8 * 1024 * 1024;

/// The JSON-RPC code of the gateway's own refusals.
const REFUSED: i64 = -32000;

/// Returns the routes of one start of a runtime.
#[derive(Default)]
pub(super) struct SessionRoutes {
    /// Every session that was opened, oldest first.
    sessions: Vec<SessionSender>,
    natives: HashMap<NativeId, SessionSender>,
    /// Orders that have no outcome yet.
    tickets: HashMap<Ticket, SessionSender>,
    /// The tickets that open a session.
    opening: HashSet<Ticket>,
    /// The session that each request was sent to.
    asks: HashMap<RequestKey, SessionSender>,
    /// The session that was prompted last.
    prompted: Option<SessionSender>,
    early: VecDeque<RuntimeEvent>,
    early_bytes: usize,
    early_dropped: u64,
    batches: Vec<(SessionSender, Vec<RuntimeEvent>)>,
    /// Requests that no session is left to answer.
    abandoned: Vec<RequestKey>,
    /// Sessions that ended in the runtime, with the reason.
    closed: Vec<(SessionSender, String)>,
    /// The offset in the output of the events that are routed now.
    at: u64,
    /// Sessions that received a part of the output in an earlier gateway, and its end.
    covered: Vec<(SessionSender, u64)>,
    /// `true` if an earlier gateway gave some of the orders.
    adopted: bool,
}

impl SessionRoutes {
    /// Stores the destination of the outcome of an order.
    pub(super) fn ordered(&mut self, order: &RuntimeOrder) {
        match &order.command {
            RuntimeCommand::Open { ticket, resume, .. } => {
                // The session's earlier requests are withdrawn, or answered elsewhere, there.
                let carried = resume.iter().filter_map(|resume| resume.carried.as_ref());
                self.asks.extend(carried.flat_map(|it| it.asks.iter().map(|key| (key.clone(), order.sender.clone()))));
                self.opening.insert(*ticket);
                self.tickets.insert(*ticket, order.sender.clone());
            }
            RuntimeCommand::Prompt { ticket, .. } => {
                self.prompted = Some(order.sender.clone());
                self.tickets.insert(*ticket, order.sender.clone());
            }
            RuntimeCommand::Call { ticket, notify: false, .. } => {
                self.tickets.insert(*ticket, order.sender.clone());
            }
            RuntimeCommand::Answer { key, .. } => {
                self.asks.remove(key);
            }
            RuntimeCommand::Call { .. } | RuntimeCommand::Cancel { .. } => {}
        }
    }

    /// Adds a session that continues from an earlier gateway: events of the output that it covers are not repeated.
    pub(super) fn reattach(&mut self, session: ReattachedSession) {
        let ReattachedSession { native, sender, processed, asks, prompt, start: _ } = session;
        self.natives.insert(native, sender.clone());
        self.asks.extend(asks.into_iter().map(|key| (key, sender.clone())));
        self.tickets.extend(prompt.map(|ticket| (ticket, sender.clone())));
        if prompt.is_some() {
            self.prompted = Some(sender.clone());
        }
        self.covered.push((sender.clone(), processed));
        self.adopted = true;
        self.sessions.push(sender);
    }

    /// Sets the offset in the output of the events that are routed from now on.
    pub(super) fn at(&mut self, offset: u64) {
        self.at = offset;
        if !self.covered.is_empty() {
            self.covered.retain(|(_, until)| *until >= offset);
        }
    }

    /// Returns whether a session has this request.
    pub(super) fn has_request(&self, key: &RequestKey) -> bool {
        self.asks.keys().any(|known| known.means(key))
    }

    /// Returns whether a session was opened, or is being opened.
    pub(super) fn has_sessions(&self) -> bool {
        !self.sessions.is_empty() || !self.opening.is_empty()
    }

    /// Like [`has_sessions`](Self::taken), but a closed session does not count.
    pub(super) fn has_open_sessions(&self) -> bool {
        self.sessions.iter().any(|session| !session.is_closed()) || !self.opening.is_empty()
    }

    /// Returns whether a session is open under this name.
    pub(super) fn is_open(&self, native: &NativeId) -> bool {
        self.natives.get(native).is_some_and(|sender| !sender.is_closed())
    }

    /// Adds an event to the batches of its sessions.
    pub(super) fn route(&mut self, event: RuntimeEvent) {
        match event {
            // The driver handles these.
            RuntimeEvent::Ready { .. } | RuntimeEvent::Failed { .. } | RuntimeEvent::Found { .. } => {}
            RuntimeEvent::Opened { ticket, native, drafts, how } => self.opened(ticket, native, drafts, how),
            RuntimeEvent::NotOpened { ticket, error } => {
                self.opening.remove(&ticket);
                match self.tickets.remove(&ticket) {
                    Some(sender) => self.put(&sender, RuntimeEvent::NotOpened { ticket, error }),
                    // The caller was a client of an earlier gateway.
                    None if self.adopted => {}
                    None => self.report(format!("refused a session that was not requested: {}", error.message)),
                }
                self.deliver_early();
            }
            RuntimeEvent::Event { native, draft } => self.event(native, draft),
            RuntimeEvent::Asked { native, ask } => {
                let session = native.as_ref().and_then(|native| self.natives.get(native));
                // A session that the agent opened itself (a helper's) asks through the session at work.
                let sender = match (session, self.early_for(native.as_ref())) {
                    (Some(sender), _) => Some(sender.clone()),
                    (None, true) => return self.keep(RuntimeEvent::Asked { native, ask }),
                    (None, false) => self.working(),
                };
                match sender.filter(|sender| !sender.is_closed()) {
                    Some(sender) => {
                        self.asks.insert(ask.key.clone(), sender.clone());
                        self.put(&sender, RuntimeEvent::Asked { native, ask });
                    }
                    None => self.abandoned.push(ask.key),
                }
            }
            RuntimeEvent::AskChanged { native, ask } => {
                if let Some(sender) = self.asks.get(&ask.key).cloned() {
                    self.put(&sender, RuntimeEvent::AskChanged { native, ask });
                } else if self
                    .early
                    .iter()
                    .any(|event| matches!(event, RuntimeEvent::Asked { ask: other, .. } if other.key == ask.key))
                {
                    self.keep(RuntimeEvent::AskChanged { native, ask });
                }
            }
            RuntimeEvent::TakenBack { native, key, elsewhere } => {
                let early = self
                    .early
                    .iter()
                    .position(|event| matches!(event, RuntimeEvent::Asked { ask, .. } if ask.key == key));
                let known = self.asks.keys().find(|known| known.means(&key)).cloned();
                if let Some(sender) = known.and_then(|known| self.asks.remove(&known)) {
                    self.put(&sender, RuntimeEvent::TakenBack { native, key, elsewhere });
                } else if early.is_some() {
                    self.keep(RuntimeEvent::TakenBack { native, key, elsewhere });
                }
                // Otherwise the request was answered meanwhile: it has ended on both sides.
            }
            RuntimeEvent::AnswerLost { native, key, elsewhere } => {
                let session = native.as_ref().and_then(|native| self.natives.get(native)).cloned();
                if let Some(sender) = session.or_else(|| self.working()) {
                    self.put(&sender, RuntimeEvent::AnswerLost { native, key, elsewhere });
                }
            }
            RuntimeEvent::Closed { native, reason } => {
                if let Some(sender) = self.natives.remove(&native) {
                    self.sessions.retain(|session| !session.same(&sender));
                    self.asks.retain(|_, asker| !asker.same(&sender));
                    self.closed.push((sender, reason));
                }
            }
            RuntimeEvent::Checkpoint { native, state } => {
                // A checkpoint of a session that is not open is not needed.
                if let Some(sender) = self.natives.get(&native).cloned() {
                    self.put(&sender, RuntimeEvent::Checkpoint { native, state });
                }
            }
            RuntimeEvent::Began { ref native, .. }
            | RuntimeEvent::Reviewed { ref native, .. }
            | RuntimeEvent::Spent { ref native, .. }
            | RuntimeEvent::Done { ref native, .. } => match self.natives.get(native).cloned() {
                Some(sender) => self.put(&sender, event),
                None => self.keep(event),
            },
            RuntimeEvent::Ended { native, ticket, end } => {
                let by_ticket = self.tickets.remove(&ticket);
                match by_ticket.or_else(|| self.natives.get(&native).cloned()) {
                    Some(sender) => self.put(&sender, RuntimeEvent::Ended { native, ticket, end }),
                    // The session was released by an earlier gateway.
                    None if self.adopted => {}
                    None => self.report(format!("ended work that was not requested, in its session {native}")),
                }
            }
            RuntimeEvent::Replied { ticket, reply } => match self.tickets.remove(&ticket) {
                Some(sender) => self.put(&sender, RuntimeEvent::Replied { ticket, reply }),
                // The caller was a client of an earlier gateway.
                None if self.adopted => {}
                None => self.report("responded to an unknown call".into()),
            },
        }
    }

    /// Takes the events to be delivered: one batch for each session, in order.
    pub(super) fn batches(&mut self) -> std::vec::Drain<'_, (SessionSender, Vec<RuntimeEvent>)> {
        self.batches.drain(..)
    }

    /// Takes the sessions that ended in the runtime, to be notified after their [`batches`](Self::batches).
    pub(super) fn closed(&mut self) -> Vec<(SessionSender, String)> {
        std::mem::take(&mut self.closed)
    }

    /// Takes the requests that no session is left to answer: the runtime must not wait forever.
    pub(super) fn abandoned_requests(&mut self) -> Vec<RequestKey> {
        std::mem::take(&mut self.abandoned)
    }

    /// Returns the last output that no session received, for the report of a start that never had a session.
    pub(super) fn last_output(&self) -> Option<&Bytes> {
        self.early.iter().rev().find_map(|event| match event {
            RuntimeEvent::Event { draft, .. } => draft.native.as_ref(),
            _ => None,
        })
    }

    /// Ends the routes, because the runtime has ended. Returns the sessions that wait to be opened, and those that are open.
    pub(super) fn end(&mut self) -> (Vec<(SessionSender, Ticket)>, Vec<SessionSender>) {
        let routes = std::mem::take(self);
        let waiting = routes.opening.iter();
        let waiting = waiting.filter_map(|ticket| Some((routes.tickets.get(ticket)?.clone(), *ticket))).collect();
        (waiting, routes.sessions)
    }

    fn opened(&mut self, ticket: Ticket, native: NativeId, drafts: Vec<EventDraft>, how: OpenedAs) {
        self.opening.remove(&ticket);
        let Some(sender) = self.tickets.remove(&ticket) else {
            // An earlier gateway requested it: the session exists here already, if that gateway stored it.
            if !self.adopted {
                self.report(format!("opened a session that was not requested: {native}"));
            }
            return;
        };
        if self.natives.get(&native).is_some_and(|sender| !sender.is_closed()) {
            let error = refusal(format!("the runtime used the session id {native} twice"));
            self.put(&sender, RuntimeEvent::NotOpened { ticket, error });
            return self.deliver_early();
        }
        self.natives.insert(native.clone(), sender.clone());
        self.sessions.retain(|session| !session.is_closed());
        self.sessions.push(sender.clone());
        self.put(&sender, RuntimeEvent::Opened { ticket, native, drafts, how });
        self.deliver_early();
    }

    fn event(&mut self, native: Option<NativeId>, draft: EventDraft) {
        if self.early_for(native.as_ref()) {
            return self.keep(RuntimeEvent::Event { native, draft });
        }
        match native {
            Some(named) => match self.natives.get(&named).cloned() {
                Some(sender) => self.put(&sender, RuntimeEvent::Event { native: Some(named), draft }),
                None => {
                    let Some(sender) = self.working() else { return };
                    let reason = format!("belongs to a session that this gateway did not open: {named}");
                    let draft = EventDraft::raw(draft.native.unwrap_or(draft.body), &reason);
                    self.put(&sender, RuntimeEvent::Event { native: None, draft });
                }
            },
            None => {
                for sender in self.sessions.clone() {
                    self.put(&sender, RuntimeEvent::Event { native: None, draft: draft.clone() });
                }
            }
        }
    }

    /// Returns whether an event of `native` has to wait for a session to be opened.
    fn early_for(&self, native: Option<&NativeId>) -> bool {
        match native {
            // A dropped session may be the one that is being opened: its history comes before the reply.
            Some(native) if self.natives.get(native).is_some_and(|sender| !sender.is_closed()) => false,
            Some(_) => self.sessions.is_empty() || !self.opening.is_empty(),
            None => self.sessions.is_empty(),
        }
    }

    /// Returns the session at work: the last prompted one, or else the oldest one.
    fn working(&self) -> Option<SessionSender> {
        let living = |sender: &&SessionSender| !sender.is_closed();
        self.prompted.as_ref().filter(living).or_else(|| self.sessions.iter().find(living)).cloned()
    }

    fn put(&mut self, sender: &SessionSender, event: RuntimeEvent) {
        if self.covered.iter().any(|(to, until)| *until >= self.at && to.same(sender)) {
            return;
        }
        match self.batches.iter_mut().find(|(to, _)| to.same(sender)) {
            Some((_, batch)) => batch.push(event),
            None => self.batches.push((sender.clone(), vec![event])),
        }
    }

    /// Reports an invalid message to every session.
    fn report(&mut self, message: String) {
        self.event(None, EventDraft::raw(Bytes::from(message), "the runtime sent something unexpected"));
    }

    fn keep(&mut self, event: RuntimeEvent) {
        self.early_bytes += weight(&event);
        self.early.push_back(event);
        while self.early.len() > EARLY_MAX || (self.early_bytes > EARLY_BYTES && self.early.len() > 1) {
            let Some(old) = self.early.pop_front() else { break };
            self.early_bytes -= weight(&old);
            self.early_dropped += 1;
            if let RuntimeEvent::Asked { ask, .. } = old {
                self.abandoned.push(ask.key);
            }
        }
    }

    /// Routes the events that have waited for a session, now that one more is known.
    fn deliver_early(&mut self) {
        if self.sessions.is_empty() || (self.early.is_empty() && self.early_dropped == 0) {
            return;
        }
        let dropped = std::mem::take(&mut self.early_dropped);
        if dropped > 0 {
            let message =
                format!("{dropped} messages arrived before any session was open and were dropped, oldest first");
            self.event(None, EventDraft::raw(Bytes::from(message), "too many early messages"));
        }
        self.early_bytes = 0;
        for event in std::mem::take(&mut self.early) {
            // An event of a session that is still being opened is stored again.
            self.route(event);
        }
    }
}

/// Makes a refusal of the gateway's own, in the form of a runtime's.
pub(super) fn refusal(message: String) -> RuntimeError {
    RuntimeError { code: REFUSED, message, data: None }
}

/// Makes the refusal of a second session by a runtime that can have only one.
pub(super) fn one_session() -> RuntimeError {
    let message = "this runtime supports only one session, which is open: use it, or start another runtime";
    RuntimeError { code: ONE_SESSION, message: message.into(), data: None }
}

fn weight(said: &RuntimeEvent) -> usize {
    size_of::<RuntimeEvent>()
        + match said {
            RuntimeEvent::Event { draft, .. } => draft.body.len() + draft.native.as_ref().map_or(0, Bytes::len),
            RuntimeEvent::Asked { ask, .. } | RuntimeEvent::AskChanged { ask, .. } => {
                ask.native.len() + ask.params.get().len()
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::Receiver;

    use super::*;
    use plexus_protocol::Kind;
    use plexus_sessions::RuntimeMessage;

    struct Session {
        sender: SessionSender,
        _rx: Receiver<RuntimeMessage>,
    }

    fn session() -> Session {
        let (sender, rx) = SessionSender::new();
        Session { sender, _rx: rx }
    }

    fn open(routes: &mut SessionRoutes, session: &Session, ticket: u64) {
        let command =
            RuntimeCommand::Open { ticket: Ticket(ticket), cwd: "/".into(), resume: None, mcp_servers: Vec::new() };
        routes.ordered(&RuntimeOrder { command, sender: session.sender.clone(), generation: 1, answered_at: None });
    }

    fn opened(routes: &mut SessionRoutes, ticket: u64, native: &str) {
        routes.route(RuntimeEvent::Opened {
            ticket: Ticket(ticket),
            native: native.into(),
            drafts: Vec::new(),
            how: OpenedAs::New,
        });
    }

    fn event(native: Option<&str>, text: &'static str) -> RuntimeEvent {
        let draft = EventDraft { native: Some(text.into()), ..EventDraft::new(Kind::AgentMessageChunk, &text) };
        RuntimeEvent::Event { native: native.map(NativeId::from), draft }
    }

    fn received(routes: &mut SessionRoutes, session: &Session) -> Vec<String> {
        let mut all = Vec::new();
        for (sender, batch) in &routes.batches {
            if sender.same(&session.sender) {
                all.extend(batch.iter().map(|said| match said {
                    RuntimeEvent::Opened { native, .. } => format!("opened {native}"),
                    RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
                    RuntimeEvent::Event { draft, .. } => {
                        let native = draft.native.clone().unwrap_or_default();
                        format!("{} {}", draft.kind.as_str(), String::from_utf8_lossy(&native))
                    }
                    other => format!("{other:?}"),
                }));
            }
        }
        all
    }

    #[tokio::test]
    async fn routes_keep_the_past_of_a_forgotten_session_until_it_is_open_again() {
        let (mut routes, gone, other, again) = (SessionRoutes::default(), session(), session(), session());
        open(&mut routes, &gone, 1);
        opened(&mut routes, 1, "A");
        open(&mut routes, &other, 2);
        opened(&mut routes, 2, "B");
        drop(gone);
        open(&mut routes, &again, 3);
        routes.route(event(Some("A"), "1"));
        opened(&mut routes, 3, "A");
        assert_eq!(received(&mut routes, &again), ["opened A", "agent_message_chunk 1"]);
        assert_eq!(received(&mut routes, &other), ["opened B"]);
    }

    #[tokio::test]
    async fn routes_send_events_to_the_session_they_name_and_nameless_ones_to_all() {
        let (mut routes, a, b) = (SessionRoutes::default(), session(), session());
        open(&mut routes, &a, 1);
        open(&mut routes, &b, 2);
        opened(&mut routes, 2, "B");
        opened(&mut routes, 1, "A");
        for said in [event(Some("A"), "1"), event(Some("B"), "2"), event(None, "3"), event(Some("A"), "4")] {
            routes.route(said);
        }
        let chunk = |n: u8| format!("agent_message_chunk {n}");
        assert_eq!(received(&mut routes, &a), ["opened A".into(), chunk(1), chunk(3), chunk(4)]);
        assert_eq!(received(&mut routes, &b), ["opened B".into(), chunk(2), chunk(3)]);
        assert_eq!(routes.batches().len(), 2, "one batch a session");
    }

    #[tokio::test]
    async fn routes_keep_early_events_for_their_session() {
        let (mut routes, a, b) = (SessionRoutes::default(), session(), session());
        open(&mut routes, &a, 1);
        routes.route(event(None, "hello"));
        routes.route(event(Some("A"), "for A"));
        routes.route(event(Some("B"), "for B"));
        open(&mut routes, &b, 2);
        opened(&mut routes, 1, "A");
        opened(&mut routes, 2, "B");
        let chunk = |text: &str| format!("agent_message_chunk {text}");
        assert_eq!(received(&mut routes, &a), ["opened A".into(), chunk("hello"), chunk("for A")]);
        assert_eq!(received(&mut routes, &b), ["opened B".into(), chunk("for B")]);
    }

    #[tokio::test]
    async fn routes_show_no_session_what_an_earlier_gateway_asked_for() {
        let (mut routes, a) = (SessionRoutes::default(), session());
        let start = plexus_sessions::ProcessStart { instance: None, generation: 1, mark: None };
        let sender = a.sender.clone();
        routes.reattach(ReattachedSession {
            native: "A".into(),
            sender,
            start,
            processed: 5,
            asks: Vec::new(),
            prompt: None,
        });
        routes.at(10);
        opened(&mut routes, 7, "B");
        routes.route(RuntimeEvent::NotOpened { ticket: Ticket(8), error: refusal("no".into()) });
        routes.route(event(Some("A"), "mine"));
        assert_eq!(received(&mut routes, &a), ["agent_message_chunk mine"]);
    }

    #[tokio::test]
    async fn routes_show_events_of_an_unknown_session_raw() {
        let (mut routes, a) = (SessionRoutes::default(), session());
        open(&mut routes, &a, 1);
        routes.route(event(Some("stranger"), "early"));
        opened(&mut routes, 1, "A");
        routes.route(event(Some("stranger"), "late"));
        assert_eq!(received(&mut routes, &a), ["opened A", "raw early", "raw late"]);
    }

    #[tokio::test]
    async fn routes_count_dropped_early_events() {
        let (mut routes, a) = (SessionRoutes::default(), session());
        for _ in 0..EARLY_MAX + 5 {
            routes.route(event(None, "x"));
        }
        open(&mut routes, &a, 1);
        opened(&mut routes, 1, "A");
        let received = received(&mut routes, &a);
        assert!(received[1].starts_with("raw 5 messages arrived before"), "{}", received[1]);
        assert_eq!(received.len(), EARLY_MAX + 2);
    }

    #[tokio::test]
    async fn routes_give_a_native_id_to_one_session() {
        let (mut routes, a, b) = (SessionRoutes::default(), session(), session());
        open(&mut routes, &a, 1);
        open(&mut routes, &b, 2);
        opened(&mut routes, 1, "A");
        opened(&mut routes, 2, "A");
        assert_eq!(received(&mut routes, &b), ["not opened: the runtime used the session id A twice"]);
    }
}
