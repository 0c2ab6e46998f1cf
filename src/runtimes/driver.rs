//! The task that owns a runtime: it steps the runtime's dialect, routes the dialect's events to sessions, and passes on the orders of
//! sessions.
//!
//! A runtime is reached through a [`Transport`]: a program's holder ([`process_transport`](super::process_transport)), or the connections
//! to an endpoint ([`endpoint_transport`](super::endpoint_transport)). [`Transport::next`], [`send`](Transport::send) and
//! [`close`](Transport::close) are the transport itself. The other methods exist because the two differ in more than bytes: an event of a
//! holder (an exit, a handover state that is due) has no meaning for an endpoint, and both have rules of their own for when orders are
//! accepted and for whom. Starts, restarts and ends are part of the transports: each has a `drive` that builds a [`Driver`] and calls
//! [`Driver::run`].
//!
//! The driver never waits for the runtime to read, nor for a session to accept an event: while a session's queue is full, the driver
//! reads nothing more from the runtime, which then waits itself; orders, deadlines and exits are still handled.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::RuntimeSettings;
use super::failure;
use super::found_sessions::{FoundSessions, too_many};
use super::meter::{MeteredCharge, RuntimeMeter};
use super::process::Stderr;
use super::session_outbox::SessionOutbox;
use super::session_routes::{SessionRoutes, one_session, refusal};
use plexus_dialects::{Dialect, EventDraft, Outbox, RuntimeCommand, RuntimeError, RuntimeEvent};
use plexus_metrics::metrics;
use plexus_protocol::api::runtimes::LogSource;
use plexus_protocol::{Capabilities, Connect, Decision, RuntimeInfo, RuntimeSpec, RuntimeState, Ticket};
use plexus_sessions::{AckTracker, DriverEnd, FoundSession, RuntimeExit, RuntimeMessage, RuntimeOrder, SessionSender};

/// Time between two updates of the time when a runtime last sent something: the published time may be this old.
const CONTACT_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of sessions that wait to be opened while a runtime is not ready; more are refused.
const OPENS_MAX: usize = 4096;

/// Maximum size of questions that wait for others to be answered, in bytes; with more, the runtime is not read.
const QUESTIONS_HELD: usize = 1 << 20;
/// Maximum capacity of the event list that the next step of a dialect reuses.
const EVENTS_KEPT: usize = 64;

/// Delay of a timer that is not in use.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns the time of a timer that is reset before use.
pub(super) fn never() -> Instant {
    Instant::now() + NEVER
}

/// The connection to a runtime.
pub(super) trait Transport: Send {
    /// An event of the connection.
    type Event: Send;

    /// Waits for the next event; never returns if there can be none. Cancellation safe.
    fn next(&mut self, intake: Intake) -> impl Future<Output = Self::Event> + Send;

    /// Sends the output of the last step of the dialect in [`Driver::step`]: frames, HTTP requests, client tool calls.
    fn send(&mut self, driver: &mut Driver, cause: &StepCause);

    /// Begins to close the connection. The first reason counts.
    fn close(&mut self, driver: &mut Driver, reason: CloseReason);

    /// Does the work that is possible before the driver waits; `None` once the transport is closed and all its events are handled.
    fn prepare(&mut self, driver: &mut Driver) -> Option<Gates>;

    /// Handles an event that [`next`](Self::next) returned.
    fn handle(&mut self, driver: &mut Driver, event: Self::Event);

    /// Handles the end of the dialect's handshake; [`Driver::ready`] is not set yet, unless a handshake ended before.
    fn ready(&mut self, driver: &mut Driver, agent: Option<&str>);

    /// Returns how an order is handled, now that the runtime is ready.
    fn admit(&self, driver: &Driver, order: &RuntimeOrder) -> Admission;
}

/// The input that a transport may read.
#[derive(Clone, Copy)]
pub(super) struct Intake {
    /// `true` if the runtime's account can hold one more read.
    pub(super) capacity: bool,
    /// `true` if no session delays earlier events.
    pub(super) idle: bool,
}

/// The input that the driver may accept until something happens.
pub(super) struct Gates {
    /// `true` to accept orders.
    pub(super) orders: bool,
    /// `true` to leave the runtime when the gateway stops.
    pub(super) leave: bool,
    /// `true` to wake the dialect.
    pub(super) wake: bool,
    /// `true` if the transport reads output as soon as the account allows it.
    pub(super) reads: bool,
    /// Number of bytes of output that the transport holds.
    pub(super) held: usize,
}

/// The reason why a transport is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// A user stopped the runtime.
    Stopped,
    /// No caller can send orders any more.
    Unused,
    /// The gateway is stopping.
    Leaving,
    /// The endpoint has ended, and may come back.
    Released,
    /// The runtime, or its dialect, failed.
    Failed(String),
}

impl CloseReason {
    /// Returns the message for users.
    pub(super) fn into_message(self) -> String {
        match self {
            Self::Stopped => "it was stopped".into(),
            Self::Unused => "no longer in use".into(),
            Self::Leaving => {
                "the gateway stopped; the endpoint continues, and so does this session when the gateway is back".into()
            }
            Self::Released => "it ended; this session continues when it is open there again".into(),
            Self::Failed(reason) => reason,
        }
    }
}

/// The handling of an order.
pub(super) enum Admission {
    Admitted,
    /// The session is refused: the runtime can have only one, which is open.
    OneSession,
    /// The order is dropped, because no caller waits for its outcome.
    Dropped,
}

/// The cause of a step of the dialect.
pub(super) enum StepCause {
    /// A frame that the runtime sent.
    Frame,
    /// A command, as JSON; empty if it is not recorded.
    Command(Vec<u8>),
    /// Any other cause: a wake, a finished client tool call, a reply, the greeting.
    Other,
}

/// The tracking of events that sessions have not stored yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AckMode {
    /// A holder retains output until sessions have stored it.
    Holder,
    /// The output is not retained; it is charged to the runtime meanwhile.
    Charged,
    /// No tracking.
    Untracked,
}

/// A runtime's driver. The fields before `generation` last as long as the driver; the others belong to one start.
pub(super) struct Driver {
    pub(super) spec: RuntimeSpec,
    pub(super) end: DriverEnd,
    pub(super) settings: Arc<RuntimeSettings>,
    /// Notified once, when the gateway stops.
    pub(super) leave: Arc<Notify>,
    pub(super) out: SessionOutbox,
    /// Orders that wait until the runtime is ready.
    pub(super) waiting: VecDeque<RuntimeOrder>,
    /// The reason of the stop, if the runtime is stopped for good.
    pub(super) stop: Option<CloseReason>,

    pub(super) generation: u64,
    pub(super) dialect: Box<dyn Dialect>,
    /// `true` if the dialect failed: it gets no more input.
    pub(super) broken: bool,
    /// The output of the last step of the dialect.
    pub(super) step: Outbox,
    pub(super) routes: SessionRoutes,
    /// Sessions that others opened in the runtime, and that wait to be opened here.
    pub(super) offers: FoundSessions,
    pub(super) stderr: Stderr,
    /// The charge for the runtime's output that is not stored yet.
    pub(super) meter: RuntimeMeter,
    pub(super) acks: Arc<AckTracker>,
    pub(super) ack_mode: AckMode,
    /// Number of bytes of output that the dialect has processed.
    pub(super) offset: u64,
    /// Offset up to which the output is on its way to sessions.
    pub(super) passed_on: u64,
    /// The time since which orders are carried out.
    pub(super) ready: Option<Instant>,
    /// `true` if the transport is closing or closed: orders are no longer carried out.
    pub(super) closing: bool,
    /// `true` while output that an earlier gateway handled is replayed: nothing is sent or reported for it.
    pub(super) replaying: bool,
    /// `true` if commands are recorded for the next gateway.
    pub(super) records_commands: bool,
    /// `true` if the runtime reported that starting it again would not help.
    pub(super) restart_is_useless: bool,
    wake: Option<Instant>,
    /// The published time when the runtime last sent something.
    contact: Option<Instant>,
}

/// The next event of the driver.
enum DriverEvent<E> {
    Close(CloseReason),
    Order(Option<RuntimeOrder>),
    Wake,
    Metered(MeteredCharge),
    Transport(E),
    /// A session observed the behavior of the runtime.
    Behavior,
    /// The conditions of the next turn may have changed.
    Again,
}

impl Driver {
    /// Makes a driver whose transport reads `read` bytes at a time.
    pub(super) fn new(
        spec: RuntimeSpec,
        dialect: Box<dyn Dialect>,
        end: DriverEnd,
        settings: Arc<RuntimeSettings>,
        leave: Arc<Notify>,
        read: usize,
    ) -> Self {
        Self {
            out: SessionOutbox::default(),
            waiting: VecDeque::new(),
            stop: None,
            generation: 1,
            dialect,
            broken: false,
            step: Outbox::default(),
            routes: SessionRoutes::default(),
            offers: FoundSessions::default(),
            stderr: Stderr::new(end.stderr_log.clone()),
            meter: RuntimeMeter::new(&settings.ledger, spec.id.as_str(), read),
            acks: Arc::default(),
            ack_mode: AckMode::Charged,
            offset: 0,
            contact: None,
            passed_on: 0,
            ready: None,
            closing: false,
            replaying: false,
            records_commands: false,
            restart_is_useless: false,
            wake: None,
            spec,
            end,
            settings,
            leave,
        }
    }

    /// Returns the same driver for another start of its runtime.
    pub(super) fn restarted(self, dialect: Box<dyn Dialect>, generation: u64, read: usize) -> Self {
        let Self { spec, end, settings, leave, out, waiting, stop, .. } = self;
        Self { out, waiting, stop, generation, ..Self::new(spec, dialect, end, settings, leave, read) }
    }

    /// Drives the runtime until its transport is closed.
    pub(super) async fn run<T: Transport>(&mut self, transport: &mut T) {
        let timer = sleep_until(never());
        tokio::pin!(timer);
        let behavior = Arc::clone(&self.end.behavior);
        while let Some(gates) = transport.prepare(self) {
            let wake = self.wake.filter(|_| gates.wake);
            if let Some(at) = wake
                && timer.deadline() != at
            {
                timer.as_mut().reset(at);
            }
            // Unstored output, and the output that the transport holds, is charged to the runtime before more is read.
            let (unstored, questions) = (self.unstored_bytes(), self.dialect.held());
            // Too many questions of the runtime wait for users: the runtime waits, too, until one is answered.
            let waits = questions > QUESTIONS_HELD && self.stop.is_none() && !self.closing;
            let intake = Intake {
                capacity: !waits && self.meter.has_capacity(unstored, gates.held.saturating_add(questions)),
                idle: self.out.is_empty(),
            };
            let starved = gates.reads && !waits && !intake.capacity;
            let event = tokio::select! {
                biased;
                () = self.end.stop.notified(), if self.stop.is_none() => DriverEvent::Close(self.stopped()),
                () = self.leave.notified(), if gates.leave => DriverEvent::Close(CloseReason::Leaving),
                order = self.end.orders.recv(), if gates.orders && self.is_used() => DriverEvent::Order(order),
                () = &mut timer, if wake.is_some() => DriverEvent::Wake,
                () = self.out.deliver(), if !intake.idle => DriverEvent::Again,
                () = self.offers.offer(&self.end.found), if !self.offers.is_empty() => DriverEvent::Again,
                metered = self.meter.wait(unstored == 0), if starved => DriverEvent::Metered(metered),
                () = self.acks.changed(), if starved => DriverEvent::Again,
                () = behavior.changed() => DriverEvent::Behavior,
                event = transport.next(intake) => DriverEvent::Transport(event),
            };
            match event {
                DriverEvent::Close(reason) => self.close(transport, reason),
                DriverEvent::Order(Some(order)) => self.order(transport, order),
                DriverEvent::Order(None) => self.close(transport, CloseReason::Unused),
                DriverEvent::Wake => {
                    self.wake = None;
                    self.step(transport, StepCause::Other, |dialect, out| dialect.wake(out));
                }
                DriverEvent::Metered(metered) => self.meter.take(metered),
                DriverEvent::Transport(event) => transport.handle(self, event),
                DriverEvent::Behavior => {
                    self.show(|info| info.acted_unasked = behavior.acted_unasked().map(str::to_owned));
                }
                DriverEvent::Again => {}
            }
        }
    }

    /// Returns the number of bytes that the dialect has processed and sessions have not stored yet.
    fn unstored_bytes(&self) -> usize {
        usize::try_from(self.offset.saturating_sub(self.acks.stored_up_to(self.offset))).unwrap_or(usize::MAX)
    }

    /// Returns the reason of a stop.
    fn stopped(&self) -> CloseReason {
        let released = self.end.released.load(Ordering::Relaxed) && matches!(self.spec.connect, Connect::Endpoint(_));
        if released { CloseReason::Released } else { CloseReason::Stopped }
    }

    /// Returns whether a caller can still send orders.
    pub(super) fn is_used(&self) -> bool {
        self.stop != Some(CloseReason::Unused)
    }

    /// Closes the transport, for good if users or the gateway want it.
    pub(super) fn close<T: Transport>(&mut self, transport: &mut T, reason: CloseReason) {
        match reason {
            CloseReason::Stopped | CloseReason::Released => _ = self.stop.get_or_insert(reason.clone()),
            // The queue of orders is not read again.
            CloseReason::Unused => self.stop = Some(CloseReason::Unused),
            CloseReason::Leaving | CloseReason::Failed(_) => {}
        }
        transport.close(self, reason);
    }

    // === orders ===

    fn order<T: Transport>(&mut self, transport: &mut T, order: RuntimeOrder) {
        if self.ready.is_none() || self.closing {
            return self.wait_until_ready(order);
        }
        self.carry_out(transport, order);
        self.flush(transport);
    }

    /// Queues an order for later. If the transport closes, only orders to open a session wait for the next start: other orders are meant
    /// for this start, and their sessions are notified of its end.
    pub(super) fn wait_until_ready(&mut self, order: RuntimeOrder) {
        match order.command {
            RuntimeCommand::Open { ticket, .. } if self.waiting.len() >= OPENS_MAX => {
                self.refuse(order.sender, ticket, format!("{OPENS_MAX} sessions are already waiting for this runtime"));
            }
            RuntimeCommand::Open { .. } => self.waiting.push_back(order),
            _ if self.closing => {}
            _ => self.waiting.push_back(order),
        }
    }

    fn carry_out<T: Transport>(&mut self, transport: &mut T, order: RuntimeOrder) {
        match transport.admit(self, &order) {
            Admission::Dropped => return,
            Admission::OneSession => {
                if let RuntimeCommand::Open { ticket, .. } = order.command {
                    self.refuse_with(order.sender, ticket, one_session());
                }
                return;
            }
            Admission::Admitted => {}
        }
        self.routes.ordered(&order);
        self.command(transport, order.command);
        if let Some(answered_at) = order.answered_at {
            metrics().answered(self.spec.id.as_str(), answered_at);
        }
    }

    /// Passes a command to the dialect; [`flush`](Self::flush) has to follow.
    pub(super) fn command<T: Transport>(&mut self, transport: &mut T, command: RuntimeCommand) {
        if matches!(command, RuntimeCommand::Open { .. } | RuntimeCommand::Prompt { .. }) {
            self.stderr.mark();
        }
        // Text that a user typed is sent to the runtime and stored nowhere.
        let typed = matches!(&command, RuntimeCommand::Answer { decision: Decision::Value(Some(_)), .. });
        // Plain values, which always serialize.
        let record =
            if self.records_commands && !typed { serde_json::to_vec(&command).unwrap_or_default() } else { Vec::new() };
        self.step_quietly(transport, StepCause::Command(record), |dialect, out| dialect.command(command, out));
    }

    pub(super) fn refuse(&mut self, sender: SessionSender, ticket: Ticket, reason: String) {
        self.refuse_with(sender, ticket, refusal(reason));
    }

    fn refuse_with(&mut self, sender: SessionSender, ticket: Ticket, error: RuntimeError) {
        self.out.push(sender, RuntimeMessage::Events(vec![RuntimeEvent::NotOpened { ticket, error }], None));
    }

    /// Refuses every session that waits to be opened.
    pub(super) fn refuse_waiting(&mut self, reason: &str) {
        for order in std::mem::take(&mut self.waiting) {
            if let RuntimeCommand::Open { ticket, .. } = order.command {
                self.refuse(order.sender, ticket, reason.to_owned());
            }
        }
    }

    /// Accepts no further orders; those that were queued wait.
    pub(super) async fn close_orders(&mut self) {
        self.end.orders.close();
        while let Some(order) = self.end.orders.recv().await {
            self.wait_until_ready(order);
        }
    }

    /// Notifies the sessions of this start of its end, and refuses those that it should open.
    pub(super) fn report_end(&mut self, exit: &RuntimeExit, reason: &str) {
        let (opening, sessions) = self.routes.end();
        for (sender, ticket) in opening {
            self.refuse(sender, ticket, reason.to_owned());
        }
        for sender in sessions {
            self.out.push(sender, RuntimeMessage::Exited(exit.clone()));
        }
        self.refuse_waiting(reason);
    }

    // === the dialect ===

    /// Makes one step of the dialect, and all that follows from it.
    pub(super) fn step<T: Transport>(
        &mut self,
        transport: &mut T,
        cause: StepCause,
        step: impl FnOnce(&mut dyn Dialect, &mut Outbox),
    ) {
        self.step_quietly(transport, cause, step);
        self.flush(transport);
    }

    /// Makes one step of the dialect; [`flush`](Self::flush) has to follow.
    pub(super) fn step_quietly<T: Transport>(
        &mut self,
        transport: &mut T,
        cause: StepCause,
        step: impl FnOnce(&mut dyn Dialect, &mut Outbox),
    ) {
        if self.broken {
            return;
        }
        // A runtime's output must not be able to end its driver, which would leave its sessions waiting forever.
        let (dialect, out) = (&mut self.dialect, &mut self.step);
        if catch_unwind(AssertUnwindSafe(|| step(dialect.as_mut(), out))).is_err() {
            let reason =
                format!("the gateway's {} dialect failed on its output: this is a bug in Plexus", self.spec.dialect);
            self.broken = true;
            self.close(transport, CloseReason::Failed(reason));
        }
        if let Some(after) = self.step.wake_after.take() {
            let at = Instant::now() + after;
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
        transport.send(self, &cause);
        let mut events = std::mem::take(&mut self.step.events);
        for event in events.drain(..) {
            self.event(transport, event);
        }
        if events.capacity() <= EVENTS_KEPT {
            self.step.events = events;
        }
    }

    fn event<T: Transport>(&mut self, transport: &mut T, mut event: RuntimeEvent) {
        let problem = failure::explain(&mut event, || self.stderr.since());
        if let Some(problem) = problem.filter(|_| !self.replaying) {
            self.note(&problem);
        }
        match event {
            RuntimeEvent::Ready { agent } => {
                transport.ready(self, agent.as_deref());
                self.ready.get_or_insert_with(Instant::now);
                if !self.closing {
                    self.show_ready(agent);
                }
            }
            RuntimeEvent::Failed { message } => {
                self.restart_is_useless = true;
                self.close(transport, CloseReason::Failed(message));
            }
            RuntimeEvent::Found { native, cwd, title } => {
                if !self.routes.is_open(&native) && !self.offers.push(FoundSession { native, cwd, title }) {
                    self.show(|info| info.problem = Some(too_many()));
                }
            }
            event => {
                let opened = matches!(event, RuntimeEvent::Opened { .. } | RuntimeEvent::Reviewed { .. });
                self.routes.route(event);
                if opened && !self.replaying {
                    // Some agents report only then what there is to choose from.
                    self.show_capabilities(self.dialect.capabilities());
                }
            }
        }
    }

    /// Reports to every session a frame that the dialect cannot process.
    pub(super) fn raw(&mut self, frame: Bytes, reason: &str) {
        self.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::raw(frame, reason) });
    }

    /// Carries out the waiting orders, and sends sessions the events that the dialect has reported since the last time.
    pub(super) fn flush<T: Transport>(&mut self, transport: &mut T) {
        while self.ready.is_some() && !self.closing {
            let Some(order) = self.waiting.pop_front() else { break };
            self.carry_out(transport, order);
        }
        for key in self.routes.abandoned_requests() {
            self.command(transport, RuntimeCommand::Answer { key, decision: Decision::Withdrawn });
        }
        let (from, to) = (self.passed_on, self.offset);
        for (sender, batch) in self.routes.batches() {
            let ack = match self.ack_mode {
                AckMode::Holder => self.acks.track(from, to, true),
                AckMode::Charged => self.acks.track(from, to, false),
                AckMode::Untracked => Arc::<AckTracker>::default().track(from, to, false),
            };
            self.out.push(sender, RuntimeMessage::Events(batch, Some(ack)));
        }
        for (sender, reason) in self.routes.closed() {
            let exit = RuntimeExit { reason: Some(reason), stopped: true, ..RuntimeExit::default() };
            self.out.push(sender, RuntimeMessage::Exited(exit));
        }
        self.passed_on = to;
        self.out.deliver_now();
    }

    // === published state ===

    /// Publishes a change of the runtime's state.
    pub(super) fn show(&self, change: impl FnOnce(&mut RuntimeInfo)) {
        let mut info = RuntimeInfo::clone(&self.end.info.borrow());
        change(&mut info);
        info.updated_at = SystemTime::now().into();
        self.end.info.send_replace(Arc::new(info));
    }

    /// Records that the runtime sent something.
    pub(super) fn record_contact(&mut self) {
        if self.contact.is_none_or(|at| at.elapsed() >= CONTACT_EVERY) {
            self.contact = Some(Instant::now());
            self.show(|info| info.heard_at = Some(SystemTime::now().into()));
        }
    }

    fn show_ready(&self, agent: Option<String>) {
        let (capabilities, fixed_folder) = (self.dialect.capabilities(), self.dialect.fixed_folder());
        self.show(|info| {
            info.state = RuntimeState::Ready;
            info.problem = None;
            info.capabilities = Some(capabilities);
            info.fixed_folder = fixed_folder;
            if agent.is_some() {
                info.agent = agent;
            }
        });
    }

    /// Publishes the runtime's capabilities, if they changed.
    fn show_capabilities(&self, now: Capabilities) {
        let reviewer = self.dialect.reviewer();
        let current = self.end.info.borrow();
        let changed = current.capabilities.as_ref() != Some(&now) || current.reviewer.as_deref() != reviewer;
        drop(current);
        if changed {
            self.show(|info| (info.capabilities, info.reviewer) = (Some(now), reviewer.map(str::to_owned)));
        }
    }

    /// Adds a message of the gateway to the runtime's log.
    pub(super) fn note(&self, text: &str) {
        tracing::debug!(text, "noted");
        self.end.stderr_log.add(SystemTime::now().into(), LogSource::Gateway, text);
    }
}
