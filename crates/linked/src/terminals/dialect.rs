//! The terminals of an agent: the part of the dialect that is the same for every agent. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::terminals::output::{PendingRequests, Purpose, SessionOutput};
use crate::terminals::session::{OpenedSession, PendingWork, SessionState};
use plexus_dialects::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND, line};
use plexus_dialects::link::{HelperExit, HelperHello, HelperMessage, LinkFrame, LinkReply};
use plexus_dialects::{
    Dialect, EventDraft, HttpReply, OpenedAs, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand, RuntimeError,
    RuntimeEvent,
};
use plexus_protocol::{Capabilities, Capability, Decision, NativeId, RuntimeSpec, Ticket};

/// The reason why a session ends with its terminal.
pub(crate) const CLOSED: &str = "its terminal was closed";

/// A message of a helper.
pub(crate) struct Message<'a> {
    pub(crate) connection: u64,
    pub(crate) hello: HelperHello,
    /// The process of the agent, and the time at which it started: 0 if it has ended meanwhile.
    pub(crate) process: (u32, u64),
    /// The agent's own JSON.
    pub(crate) event: &'a RawValue,
}

/// An agent in its own terminals. A value is one terminal, with the session in it.
///
/// Steps write into a [`SessionOutput`]; a checkpoint is stored after each.
pub(crate) trait TerminalAgent: Default + Send + 'static {
    /// The purpose of a request to the link endpoint.
    type Request: Send;

    /// The name of the runtime's agent.
    const NAME: &'static str;
    /// The time between two ticks while a terminal is active.
    const TICK: Duration;
    /// Maximum number of terminals at a time.
    const TERMINALS_MAX: usize;
    const CAPABILITIES: &'static [Capability];
    /// The answer to a request for a new session.
    const HOW_TO_START: &'static str;
    /// The answer to a request for a session whose terminal is absent.
    const HOW_TO_RESUME: &'static str;
    /// `true` if the process of a checkpoint is checked even if its terminal is connected.
    const CHECKS_PROCESS_AGAIN: bool = false;

    /// Handles a message of a helper.
    fn message(terminals: &mut LinkedTerminals<Self>, message: &Message<'_>, out: &mut Outbox);

    fn session(&self) -> &SessionState;

    fn session_mut(&mut self) -> &mut SessionState;

    /// Continues from the checkpoint of a session that the gateway has opened. [`read`](Self::read) follows.
    fn open(&mut self, opened: OpenedSession<'_>, out: &mut SessionOutput<'_, Self::Request>);

    /// Stores a checkpoint with the reported part of the session.
    fn save(&mut self, out: &mut SessionOutput<'_, Self::Request>);

    /// Reads new content.
    fn read(&mut self, out: &mut SessionOutput<'_, Self::Request>);

    /// Returns true while ticks are needed.
    fn is_active(&self) -> bool;

    /// Returns whether this terminal takes ticks.
    fn needs_ticks(&self) -> bool {
        self.is_active()
    }

    /// Handles a tick.
    fn tick(&mut self, out: &mut SessionOutput<'_, Self::Request>);

    /// Handles the reply to a request.
    fn reply(
        &mut self,
        request: Self::Request,
        reply: Result<HttpReply, String>,
        out: &mut SessionOutput<'_, Self::Request>,
    );

    /// Returns the questions that wait for an answer.
    fn open_questions(&self) -> Vec<RequestKey>;

    /// Returns true if the terminal has this question.
    fn has_question(&self, key: &RequestKey) -> bool {
        self.open_questions().contains(key)
    }

    /// Handles the decision on a question of this terminal.
    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut SessionOutput<'_, Self::Request>);

    /// Returns the text of a prompt from ACP content blocks.
    ///
    /// # Errors
    /// Returns a message with the reason why it cannot be sent.
    fn prompt_text(content: &[Box<RawValue>]) -> Result<String, String> {
        plexus_dialects::prompt_text::prompt_text(content, "a terminal")
    }

    /// Accepts a prompt of the gateway.
    ///
    /// # Errors
    /// Returns a message with the reason why this terminal accepts none.
    fn prompt(
        &mut self,
        ticket: Ticket,
        text: String,
        out: &mut SessionOutput<'_, Self::Request>,
    ) -> Result<(), String>;

    /// Cancels a run. Returns `false` if it can only be stopped at the terminal.
    fn cancel(&mut self, _ticket: Option<Ticket>, _out: &mut SessionOutput<'_, Self::Request>) -> bool {
        false
    }

    /// Handles a closed connection of a helper. Returns whether it was of this terminal.
    fn disconnected(&mut self, _connection: u64) -> bool {
        false
    }

    /// Handles the end of the process of a restored terminal.
    fn process_missing(&mut self, out: &mut SessionOutput<'_, Self::Request>) {
        self.end(CLOSED, out);
    }

    /// Ends the session, once the rest of it is read.
    fn end(&mut self, reason: &str, out: &mut SessionOutput<'_, Self::Request>) {
        self.session_mut().ending.get_or_insert_with(|| reason.to_owned());
        self.read(out);
    }

    /// Closes the open requests of a session that has ended.
    fn close(&mut self, _out: &mut SessionOutput<'_, Self::Request>) {}
}

/// The terminals of an agent, which are one runtime.
pub(crate) struct LinkedTerminals<A: TerminalAgent> {
    /// The terminals by their session, or by their tunnel if they can have several sessions.
    terminals: BTreeMap<NativeId, A>,
    requests: PendingRequests<A::Request>,
    /// The terminals that this step changed.
    touched: BTreeSet<NativeId>,
}

impl<A: TerminalAgent> Default for LinkedTerminals<A> {
    fn default() -> Self {
        Self { terminals: BTreeMap::new(), requests: PendingRequests::default(), touched: BTreeSet::new() }
    }
}

impl<A: TerminalAgent> Dialect for LinkedTerminals<A> {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some(A::NAME.into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, message, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame)
        else {
            return;
        };
        match message {
            Some(HelperMessage { hello, event }) => {
                let process = (hello.pid, started);
                A::message(self, &Message { connection, hello, process, event }, out);
            }
            None => {
                let mut terminals = self.terminals.iter_mut();
                let id = terminals.find_map(|(id, terminal)| terminal.disconnected(connection).then_some(id));
                self.touched.extend(id.cloned());
            }
        }
        if let Some(pid) = ended {
            self.end_all(|terminal| terminal.session().process.0 == pid, CLOSED, out);
        }
        self.finish_step(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, resume, .. } => self.open_session(ticket, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, &native, &content, out),
            RuntimeCommand::Cancel { ticket, native, .. } => self.cancel(ticket, native, out),
            RuntimeCommand::Answer { key, decision } => {
                if let Some(id) = self.find(|terminal| terminal.has_question(&key)) {
                    self.step(&id, out, |terminal, out| terminal.answer(&key, &decision, out));
                }
            }
            RuntimeCommand::Call { ticket, method, notify, .. } => {
                if !notify {
                    let reason = format!("{method}: a terminal does not support method calls");
                    let reply = Err(RuntimeError::new(METHOD_NOT_FOUND, reason));
                    out.events.push(RuntimeEvent::Replied { ticket, reply });
                }
            }
        }
        self.finish_step(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        for id in self.find_all(A::needs_ticks) {
            self.step(&id, out, A::tick);
        }
        self.finish_step(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        match self.requests.take(id) {
            Some((id, Purpose::Agent(request))) => {
                self.step(&id, out, |terminal, out| terminal.reply(request, reply, out));
            }
            Some((id, Purpose::Process)) if matches!(reply, Ok(HttpReply { status: 404, .. })) => {
                self.step(&id, out, A::process_missing);
            }
            Some((_, Purpose::Process)) | None => {}
        }
        self.finish_step(out);
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.terminals.values().flat_map(A::open_questions).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.terminals.values().flat_map(|terminal| terminal.session().prompts()).collect()
    }

    fn capabilities(&self) -> Capabilities {
        A::CAPABILITIES.iter().copied().collect()
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }
}

impl<A: TerminalAgent> LinkedTerminals<A> {
    pub(crate) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
        Box::new(Self::default())
    }

    // === terminals ===

    pub(crate) fn get(&self, id: &NativeId) -> Option<&A> {
        self.terminals.get(id)
    }

    /// Returns whether there is a terminal with this name, or one more is allowed.
    pub(crate) fn has_capacity_for(&self, id: &NativeId) -> bool {
        self.terminals.contains_key(id) || self.terminals.len() < A::TERMINALS_MAX
    }

    /// Returns the terminal with this name; `None` if there are too many for a new one.
    pub(crate) fn get_or_create(&mut self, id: &NativeId) -> Option<&mut A> {
        self.has_capacity_for(id).then(|| self.terminals.entry(id.clone()).or_default())
    }

    pub(crate) fn find(&self, predicate: impl Fn(&A) -> bool) -> Option<NativeId> {
        self.terminals.iter().find(|(_, terminal)| predicate(terminal)).map(|(id, _)| id.clone())
    }

    fn find_all(&self, predicate: impl Fn(&A) -> bool) -> Vec<NativeId> {
        self.terminals.iter().filter(|(_, terminal)| predicate(terminal)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the terminal of a session: the one where it is open, if there are several.
    fn terminal_of(&self, native: &NativeId) -> Option<NativeId> {
        let has_session = |terminal: &A| terminal.session().native.as_ref() == Some(native);
        self.find(|terminal| has_session(terminal) && terminal.session().opened).or_else(|| self.find(has_session))
    }

    /// Runs a step of a terminal; returns `None` if there is no such terminal.
    pub(crate) fn step<T>(
        &mut self,
        id: &NativeId,
        out: &mut Outbox,
        step: impl FnOnce(&mut A, &mut SessionOutput<'_, A::Request>) -> T,
    ) -> Option<T> {
        let terminal = self.terminals.get_mut(id)?;
        let native = terminal.session().native.clone();
        let result = step(terminal, &mut SessionOutput { id, native, requests: &mut self.requests, out });
        self.touched.insert(id.clone());
        Some(result)
    }

    /// Ends the sessions of these terminals.
    pub(crate) fn end_all(&mut self, which: impl Fn(&A) -> bool, reason: &str, out: &mut Outbox) {
        for id in self.find_all(which) {
            self.step(&id, out, |terminal, out| terminal.end(reason, out));
        }
    }

    /// Completes a step: stores checkpoints, removes terminals whose session has ended, and requests the next tick.
    pub(crate) fn finish_step(&mut self, out: &mut Outbox) {
        for id in std::mem::take(&mut self.touched) {
            let Some(terminal) = self.terminals.get_mut(&id) else { continue };
            let (native, finished) = (terminal.session().native.clone(), terminal.session().is_finished());
            let mut session_out = SessionOutput { id: &id, native, requests: &mut self.requests, out };
            if finished {
                terminal.close(&mut session_out);
            }
            if terminal.session().opened {
                terminal.save(&mut session_out);
                if finished {
                    session_out.closed(terminal.session_mut().ending.take().unwrap_or_default());
                }
            }
            if finished {
                self.terminals.remove(&id);
                self.requests.forget(&id);
            }
        }
        if self.terminals.values().any(A::is_active) {
            out.wake_after = Some(A::TICK);
        }
    }

    // === commands ===

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let refused =
            |message: &str| RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(INVALID_PARAMS, message) };
        let Some(ResumeTarget { native, known, carried }) = resume else {
            return out.events.push(refused(A::HOW_TO_START));
        };
        let current = self.terminal_of(&native);
        let restored = carried.as_ref().and_then(|carried| restored_terminal(&native, &carried.checkpoint));
        let restored = restored.filter(|(restored, _)| current.as_ref().is_none_or(|id| id == restored));
        let Some(id) = current.or_else(|| restored.as_ref().map(|(id, _)| id.clone())) else {
            return out.events.push(refused(A::HOW_TO_RESUME));
        };
        let is_new = !self.terminals.contains_key(&id);
        let session = self.terminals.entry(id.clone()).or_default().session_mut();
        (session.native, session.opened) = (Some(native.clone()), true);
        let mut process = restored.map(|(_, process)| process);
        if is_new {
            // An earlier gateway process had it. If the process of the terminal is alive, its helpers come again.
            session.process = process.unwrap_or_default();
        } else if !A::CHECKS_PROCESS_AGAIN {
            process = None;
        }
        let pending = carried.as_deref().map(|carried| {
            let blocks = carried.content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
            let text = A::prompt_text(&blocks.collect::<Vec<_>>()).unwrap_or_default();
            PendingWork { questions: &carried.asks, prompt: carried.prompt.map(|ticket| (ticket, text)) }
        });
        let checkpoint = carried.as_deref().map(|carried| carried.checkpoint.as_str());
        self.step(&id, out, |terminal, out| {
            if let Some(process) = process {
                out.check_process(process);
            }
            terminal.open(OpenedSession { known, checkpoint, pending }, out);
            let opened = RuntimeEvent::Opened { ticket, native, drafts: Vec::new(), how: OpenedAs::Resumed };
            out.out.events.push(opened);
            terminal.read(out);
        });
    }

    fn prompt(&mut self, ticket: Ticket, native: &NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let started = match (self.terminal_of(native), A::prompt_text(content)) {
            (None, _) => Err("its terminal is not open".to_owned()),
            (_, Err(reason)) => Err(reason),
            (Some(id), Ok(text)) => {
                self.step(&id, out, |terminal, out| terminal.prompt(ticket, text, out)).unwrap_or(Ok(()))
            }
        };
        if let Err(reason) = started {
            let end = RunEnd::failed(reason);
            out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
        }
    }

    fn cancel(&mut self, ticket: Option<Ticket>, native: NativeId, out: &mut Outbox) {
        let id = self.terminal_of(&native);
        let cancelled = id.and_then(|id| self.step(&id, out, |terminal, out| terminal.cancel(ticket, out)));
        if cancelled != Some(true) && !A::CAPABILITIES.contains(&Capability::Cancel) {
            let draft =
                EventDraft::error("cannot_cancel", "a turn in a terminal is stopped there: press Esc in it", None);
            out.events.push(RuntimeEvent::Event { native: Some(native), draft });
        }
    }
}

/// Returns the terminal that a checkpoint of this session names, and its process; `None` if it names no process.
fn restored_terminal(native: &NativeId, checkpoint: &str) -> Option<(NativeId, (u32, u64))> {
    #[derive(Deserialize)]
    struct Checkpoint {
        process: (u32, u64),
        terminal: Option<String>,
    }
    let Checkpoint { process, terminal } = serde_json::from_str(checkpoint).ok()?;
    let id = terminal.map_or_else(|| native.clone(), |terminal| terminal.as_str().into());
    (process.0 != 0).then_some((id, process))
}

/// Ends a helper that is not expected to send anything.
pub(crate) fn release(connection: u64, out: &mut Outbox) {
    out.frames.push(line(&LinkReply { connection, exit: HelperExit::default() }));
}
