//! A program as a transport: its holder, from the program's start to its exit, and the loop of its starts.
//!
//! The program's pipes belong to its holder, which outlives the gateway. So that the next gateway can continue where this one stops, at
//! any moment, three things are kept consistent:
//! - With every frame for the program the holder gets its cause, both or none: the dialect's whole state, or the step that was made since
//!   the previous state ([`saved_steps`](super::saved_steps)). So the cost of a frame does not depend on the size of the program's
//!   sessions.
//! - Sessions store with their events which part of the output these cover ([`Ack`](plexus_sessions::Ack)).
//! - The holder drops output only up to a state that it has, and only once all sessions have stored the events before it.
//!
//! The next gateway replays the holder's output from the oldest state on, makes the same steps at the same positions, and passes on the
//! events that each session has not stored. The cause of a written frame is stored with it, so nothing is written twice.
//!
//! A lost connection to the holder is not an exit: it is made again ([`holder_reconnect`](super::holder_reconnect)), and meanwhile orders
//! wait.

mod exits;
mod handover;
mod reattach;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use self::exits::{ExitReport, RestartDecision};
pub(super) use self::handover::HandoverState;
use self::handover::SavedOutput;
use self::reattach::HandoverReplay;
pub(super) use self::reattach::{Late, SurvivingProcess, drive_late};
use super::RuntimeSettings;
use super::client_tools::{self, ClientTools};
use super::driver::{AckMode, Admission, CloseReason, Driver, Gates, Intake, StepCause, Transport, never};
use super::holder_reconnect::{self, Rejoin, Rejoined};
use super::line_reader::{self, CutLine, LineReader};
use super::process;
use super::recorder::Recording;
use plexus_dialects::{Dialect, EventDraft, MakeDialect, RuntimeCommand, RuntimeEvent, SessionLimit};
use plexus_holder::{HolderClient, HolderMessage, WriteError, exit};
use plexus_protocol::{Connect, ErrorBody, Kind, RuntimeSpec, RuntimeState, Timestamp};
use plexus_sessions::{AckTracker, DriverEnd, RuntimeExit, RuntimeOrder};

/// Time between two reports of new stderr output: a runtime that writes a lot there must not occupy every client.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// Maximum size of output that is taken from the holder while sessions have no capacity for earlier events, in bytes. So a runtime's exit
/// is noticed although its sessions read nothing; with more, the holder is not read either.
const STASH_MAX: usize = 1024 * 1024;

/// Maximum time for sessions to store their events, when the gateway leaves a runtime to the next one. The next gateway replays the
/// others.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// The start of a driver.
pub(super) enum StartMode {
    /// The driver starts a program.
    New,
    /// The driver takes over a runtime that outlived an earlier gateway.
    Found(Box<SurvivingProcess>),
}

/// Drives a program until it is stopped or not started again, or left to the next gateway.
pub(super) async fn drive(
    spec: RuntimeSpec,
    make: MakeDialect,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    leave: Arc<Notify>,
    mut start: StartMode,
) {
    let mut generation = match &start {
        StartMode::New => 1,
        StartMode::Found(found) => found.generation,
    };
    let mut source = DialectSource::new(make, &settings, &spec, generation);
    let dialect = source.dialect(&spec);
    let mut driver = Driver::new(spec, dialect, end, settings, leave, line_reader::READ);
    driver.generation = generation;
    let mut early_exits = 0;
    loop {
        let start = std::mem::replace(&mut start, StartMode::New);
        let Some(report) = live(&mut driver, source, start).await else { return };
        if report.healthy {
            early_exits = 0;
        }
        let decision = exits::decide(&driver, &report, early_exits);
        early_exits += 1;
        exits::report_exit(&mut driver, report, decision).await;
        match decision {
            RestartDecision::Again(pause) if exits::pause_before_restart(&mut driver, pause).await => generation += 1,
            _ => break,
        }
        source = DialectSource::new(make, &driver.settings, &driver.spec, generation);
        let dialect = source.dialect(&driver.spec);
        driver = driver.restarted(dialect, generation, line_reader::READ);
    }
    exits::close(&mut driver).await;
}

/// Runs one start, from its beginning until the process has ended and all its output is on its way; `None` if it is left to the next
/// gateway.
async fn live(driver: &mut Driver, source: DialectSource, start: StartMode) -> Option<ExitReport> {
    let mut process = match start {
        StartMode::New => match ProcessTransport::start(driver, source).await {
            Ok(process) => process,
            Err(reason) => {
                let exit = RuntimeExit { reason: Some(format!("cannot start: {reason}")), ..RuntimeExit::default() };
                return Some(ExitReport { exit, never_started: true, healthy: false });
            }
        },
        StartMode::Found(found) => ProcessTransport::reattach(driver, source, *found),
    };
    driver.run(&mut process).await;
    if process.left {
        process.wait_until_stored(driver).await;
        process.flush_acks(driver);
        return None;
    }
    if let Some(line) = process.lines.finish() {
        process.line(driver, line);
    }
    driver.flush(&mut process);
    // All output is on its way; the holder no longer has to retain any for this gateway.
    process.wait_until_stored(driver).await;
    process.holder.bye();
    Some(process.exit_report(driver))
}

/// Makes the dialects of one start.
struct DialectSource {
    make: MakeDialect,
    recording: Recording,
}

impl DialectSource {
    fn new(make: MakeDialect, settings: &RuntimeSettings, spec: &RuntimeSpec, generation: u64) -> Self {
        Self { make, recording: Recording::begin(settings, spec, generation) }
    }

    /// Makes a dialect in its initial state.
    fn dialect(&self, spec: &RuntimeSpec) -> Box<dyn Dialect> {
        self.recording.wrap((self.make)(spec))
    }
}

/// One start of a program, behind its holder.
pub(super) struct ProcessTransport {
    holder: HolderClient,
    lines: LineReader,
    source: DialectSource,
    client_tools: ClientTools,
    /// The driver's tracker of stored output.
    acks: Arc<AckTracker>,
    agent: Option<String>,
    /// `true` if the dialect's handshake has ended, in this gateway or an earlier one.
    greeted: bool,
    ending: Option<Ending>,
    /// `true` once the end of the process is published.
    ending_published: bool,
    /// The reason why the gateway ended the process.
    reason: Option<String>,
    /// The exit code, or the signal that killed the process, once it has ended.
    status: Option<(Option<i32>, Option<String>)>,
    /// `true` if the process was killed but has not ended: nothing waits for it.
    given_up: bool,
    /// `true` if the process is left to the next gateway.
    left: bool,
    /// The timer for the next of the deadlines below.
    timer: Pin<Box<Sleep>>,
    handshake: Option<Instant>,
    /// Maximum time for the process to read none of its input.
    stuck: Duration,
    /// The time when the gateway ends the process unless it ends by itself, with the reason.
    exit_deadline: Option<(Instant, &'static str)>,
    stderr_due: Option<Instant>,
    stderr_published_at: Option<Instant>,
    ack_due: Option<Instant>,
    /// The time since which the process has read none of its input, as of this turn.
    stalled: Option<Instant>,
    /// `true` if the holder has so much state that none may be added, as of this turn.
    heavy: bool,
    /// Output that was taken from the holder and waits for the sessions, and its size in bytes.
    stash: VecDeque<Bytes>,
    stashed: usize,
    /// `true` if the process outlives the gateway: only then are the fields below needed.
    outlive: bool,
    saved: SavedOutput,
    replay: HandoverReplay,
    /// The connection to the holder that is being made again.
    rejoin: Option<Rejoin>,
}

/// A process that its holder is ending.
struct Ending {
    /// The time when the gateway takes the next step itself.
    until: Instant,
    killed: bool,
    /// `true` once the process and its holder are ended by their process ids.
    forced: bool,
}

pub(super) enum ProcessEvent {
    Due,
    ClientTool(client_tools::ClientToolOutcome),
    Rejoined(Rejoined),
    /// Sessions may have stored more output.
    Stored,
    Holder(HolderMessage),
}

impl Transport for ProcessTransport {
    type Event = ProcessEvent;

    async fn next(&mut self, intake: Intake) -> ProcessEvent {
        let due = self.due();
        if let Some(at) = due
            && self.timer.deadline() != at
        {
            self.timer.as_mut().reset(at);
        }
        let (living, reading) = (self.status.is_none(), intake.capacity && self.reads());
        tokio::select! {
            biased;
            () = self.timer.as_mut(), if due.is_some() => ProcessEvent::Due,
            outcome = self.client_tools.next(), if living => ProcessEvent::ClientTool(outcome),
            rejoined = holder_reconnect::done(&mut self.rejoin), if living => ProcessEvent::Rejoined(rejoined),
            () = self.acks.changed(), if self.heavy => ProcessEvent::Stored,
            message = self.holder.next(), if reading => ProcessEvent::Holder(message),
            else => std::future::pending().await,
        }
    }

    fn send(&mut self, driver: &mut Driver, cause: &StepCause) {
        self.write(driver, cause);
        let calls = std::mem::take(&mut driver.step.client_tools);
        // The gateway that first made a replayed step also made its calls.
        if !driver.replaying && !driver.closing {
            calls.into_iter().for_each(|call| self.client_tools.start(call));
        }
    }

    fn close(&mut self, driver: &mut Driver, reason: CloseReason) {
        match reason {
            CloseReason::Leaving if self.outlive && driver.stop.is_none() => self.left = true,
            CloseReason::Leaving => {
                driver.stop.get_or_insert(CloseReason::Stopped);
                self.end(driver, CloseReason::Stopped.into_message());
            }
            reason => self.end(driver, reason.into_message()),
        }
    }

    fn prepare(&mut self, driver: &mut Driver) -> Option<Gates> {
        if self.left || self.given_up {
            return None;
        }
        loop {
            if self.status.is_some() && self.stash.is_empty() && driver.out.is_empty() {
                return None;
            }
            self.heavy = self.holder.has_much_state();
            if self.heavy {
                self.flush_acks(driver);
                self.heavy = self.holder.has_much_state();
            }
            if !driver.out.is_empty() {
                break;
            }
            let Some(bytes) = self.stash.pop_front() else { break };
            self.stashed -= bytes.len();
            self.receive(driver, &bytes);
        }
        if self.ending.is_some() && !std::mem::replace(&mut self.ending_published, true) {
            driver.show(|info| info.problem.clone_from(&self.reason));
        }
        if driver.offset > self.saved.stated {
            self.schedule_ack();
        }
        self.stalled = self.holder.stalled().map(Instant::from_std);
        let (living, current) = (self.status.is_none(), self.replay.until.is_none());
        Some(Gates {
            // The replayed state is an old one, and no basis for orders. Orders also wait, in order, for a holder that is being
            // reconnected, for one that retains too much, and for a process that does not read.
            orders: current && self.rejoin.is_none() && !self.heavy && self.stalled.is_none(),
            leave: living && self.ending.is_none(),
            wake: living && current,
            reads: self.reads(),
            held: self.lines.held() + self.stashed,
        })
    }

    fn handle(&mut self, driver: &mut Driver, event: ProcessEvent) {
        match event {
            ProcessEvent::Holder(message) => self.handle_message(driver, message),
            ProcessEvent::Due => self.handle_due(driver),
            ProcessEvent::ClientTool((id, outcome)) => {
                driver.step(self, StepCause::Other, |dialect, out| dialect.done(id, outcome, out));
            }
            ProcessEvent::Rejoined(rejoined) => self.rejoined(driver, rejoined),
            // The next turn flushes acks while the holder is heavy.
            ProcessEvent::Stored => {}
        }
    }

    fn ready(&mut self, _driver: &mut Driver, agent: Option<&str>) {
        self.handshake = None;
        (self.greeted, self.agent) = (true, agent.map(str::to_owned));
    }

    fn admit(&self, driver: &Driver, order: &RuntimeOrder) -> Admission {
        if !matches!(order.command, RuntimeCommand::Open { .. }) {
            // An order for an earlier start: its session gets a report of that.
            return if order.generation == driver.generation { Admission::Admitted } else { Admission::Dropped };
        }
        if order.sender.is_closed() {
            Admission::Dropped
        } else if driver.dialect.sessions() == SessionLimit::One && driver.routes.has_sessions() {
            Admission::OneSession
        } else {
            Admission::Admitted
        }
    }
}

impl ProcessTransport {
    fn new(driver: &mut Driver, source: DialectSource, holder: HolderClient, outlive: bool) -> Self {
        let settings = &driver.settings;
        holder.set_write_max(settings.write_max);
        driver.ack_mode = if outlive { AckMode::Holder } else { AckMode::Untracked };
        driver.records_commands = outlive && holder.takes_steps();
        let client_tools = ClientTools::new(
            settings.hold_exe.clone(),
            process::environment(&settings.env, &driver.spec),
            driver.spec.id.clone(),
            settings.clients.clone(),
            settings.private.clone(),
        );
        Self {
            holder,
            lines: LineReader::new(settings.line_max),
            source,
            client_tools,
            acks: Arc::clone(&driver.acks),
            agent: None,
            greeted: false,
            ending: None,
            ending_published: false,
            reason: None,
            status: None,
            given_up: false,
            left: false,
            timer: Box::pin(sleep_until(never())),
            handshake: None,
            stuck: settings.stuck,
            exit_deadline: None,
            stderr_due: None,
            stderr_published_at: None,
            ack_due: None,
            stalled: None,
            heavy: false,
            stash: VecDeque::new(),
            stashed: 0,
            outlive,
            saved: SavedOutput::default(),
            replay: HandoverReplay::default(),
            rejoin: None,
        }
    }

    /// Starts the program.
    async fn start(driver: &mut Driver, source: DialectSource) -> Result<Self, String> {
        driver.show(|info| {
            info.state = RuntimeState::Starting;
            info.generation = driver.generation;
            info.problem = None;
            info.agent = None;
            info.capabilities = None;
            info.instance = None;
            info.stderr_tail = String::new();
        });
        let argv = match &driver.spec.connect {
            Connect::Command(argv) => argv.clone(),
            Connect::Endpoint(_) => Vec::new(),
        };
        let outlive = driver.spec.outlive && driver.dialect.save().is_some();
        let settings = &driver.settings;
        // A line of any length that is passed on fits in the holder, with some more output after it.
        let spool_max = settings.line_max.saturating_add(settings.spool_more);
        let program = process::program(&driver.spec, &argv, &settings.env).await?;
        let (holder, welcome) =
            HolderClient::start(&driver.spec, &program, &settings.hold_exe, &settings.holders, spool_max, outlive)
                .await?;
        let mut process = Self::new(driver, source, holder, outlive);
        driver.note(&format!("started, process {}", process.holder.pid()));
        driver.stderr.push(&welcome.stderr);
        driver.show(|info| {
            info.pid = Some(process.holder.pid());
            info.instance = Some(process.holder.instance().to_owned());
        });
        process.handshake = Some(Instant::now() + driver.settings.handshake);
        driver.step(&mut process, StepCause::Other, |dialect, out| dialect.open(out));
        Ok(process)
    }

    /// Returns whether more output is taken from the holder as soon as the account allows it.
    fn reads(&self) -> bool {
        self.status.is_none() && self.stashed < STASH_MAX && (!self.heavy || self.replay.until.is_some())
    }

    /// Waits until sessions have stored all events that were passed on: then the holder may drop the output.
    async fn wait_until_stored(&self, driver: &mut Driver) {
        let all = async {
            while !driver.out.is_empty() {
                driver.out.deliver().await;
            }
            while self.acks.stored_up_to(driver.offset) < driver.offset {
                self.acks.changed().await;
            }
        };
        if self.outlive {
            let _ = tokio::time::timeout(LEAVE_WAIT, all).await;
        }
    }

    // === output ===

    fn handle_message(&mut self, driver: &mut Driver, message: HolderMessage) {
        match message {
            HolderMessage::Out { bytes, .. } => {
                driver.record_contact();
                if driver.out.is_empty() && self.stash.is_empty() {
                    self.receive(driver, &bytes);
                } else {
                    self.stashed += bytes.len();
                    self.stash.push_back(bytes);
                }
            }
            HolderMessage::Err(text) => {
                driver.stderr.push(&text);
                if self.stderr_due.is_none() {
                    let now = Instant::now();
                    self.stderr_due = Some(self.stderr_published_at.map_or(now, |last| (last + STDERR_EVERY).max(now)));
                }
            }
            HolderMessage::Full(since) => self.report_full(driver, since),
            HolderMessage::HasSpace => {}
            HolderMessage::StdinBroken => self.end_within("it closed its stdin", driver.settings.linger),
            HolderMessage::StdoutClosed => self.end_within("it closed its stdout", driver.settings.linger),
            HolderMessage::Exited { code, signal } => {
                self.exited(driver, code, signal.map(exit::signal_name));
                let stopped = driver.stop.is_some();
                driver.show(|info| {
                    info.pid = None;
                    info.stopped = stopped;
                    if stopped {
                        // Callers that wait for the stop need not wait for the earlier output of the process.
                        info.state = RuntimeState::Exited;
                    }
                });
            }
            HolderMessage::Lost(reason) if self.holder.is_live() => {
                driver.note(&format!("the connection to its holder was lost: {reason}"));
                let problem = format!("the connection to its holder was lost ({reason}): reconnecting");
                tracing::warn!(why = %reason, "the connection to a holder was lost: reconnecting");
                driver.show(|info| info.problem = Some(problem));
                self.rejoin = Some(Rejoin::start(&self.holder, &driver.settings));
            }
            HolderMessage::Lost(reason) => self.lost(driver, reason),
        }
    }

    /// Reports that the holder was full and did not read the process, so that users learn why it paused.
    fn report_full(&mut self, driver: &mut Driver, since: SystemTime) {
        let since: Timestamp = since.into();
        let message = "its output exceeded what its holder stores while no gateway reads it, so it had to wait";
        let body = ErrorBody::new("held_back", message).with("since", since.to_string());
        driver.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::Error, &body) });
        driver.flush(self);
    }

    /// Passes on output of the process.
    fn receive(&mut self, driver: &mut Driver, bytes: &Bytes) {
        self.lines.read_buffer().extend_from_slice(bytes);
        while let Some(line) = self.lines.next() {
            driver.offset = self.lines.offset();
            driver.routes.at(driver.offset);
            self.line(driver, line);
            self.catch_up(driver);
        }
        driver.offset = self.lines.offset();
        driver.flush(self);
        if self.saved.is_due(driver.offset) {
            self.flush_acks(driver);
        }
    }

    fn line(&mut self, driver: &mut Driver, line: CutLine) {
        match line {
            CutLine::Whole(frame) if driver.broken => {
                driver.raw(frame, "the gateway failed on an earlier message");
            }
            CutLine::Whole(frame) => {
                driver.step_quietly(self, StepCause::Frame, |dialect, out| dialect.feed(frame, out));
            }
            CutLine::Cut { head, dropped } => {
                let max = driver.settings.line_max;
                driver.raw(head, &format!("line over the limit of {max} bytes; {dropped} bytes dropped"));
            }
            CutLine::Unfinished(rest) => driver.raw(rest, "the runtime's output ended in the middle of a line"),
        }
    }

    fn wrote(&mut self, driver: &mut Driver, wrote: Result<(), WriteError>) {
        match wrote {
            Ok(()) => {}
            Err(WriteError::Full) => self.end(driver, "it does not read its stdin".into()),
            Err(WriteError::Closed) => self.end_within("it closed its stdin", driver.settings.linger),
        }
    }

    // === deadlines and exits ===

    /// Returns the next deadline.
    fn due(&self) -> Option<Instant> {
        if self.status.is_some() {
            return self.stderr_due;
        }
        let (exit, stuck) = match &self.ending {
            Some(ending) => (Some(ending.until), None),
            None => (self.exit_deadline.map(|(at, _)| at), self.stalled.map(|since| since + self.stuck)),
        };
        [exit, stuck, self.handshake, self.ack_due, self.stderr_due].into_iter().flatten().min()
    }

    fn handle_due(&mut self, driver: &mut Driver) {
        let now = Instant::now();
        let passed = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(&self.stderr_due) {
            (self.stderr_due, self.stderr_published_at) = (None, Some(now));
            let tail = driver.stderr.tail();
            driver.show(|info| info.stderr_tail = tail);
        }
        if self.status.is_some() {
            return;
        }
        if passed(&self.handshake) {
            let after = driver.settings.handshake;
            self.handshake = None;
            self.end(driver, format!("it did not finish its handshake within {after:?}"));
        }
        if self.exit_deadline.is_some_and(|(at, _)| at <= now)
            && let Some((_, reason)) = self.exit_deadline.take()
        {
            self.end(driver, reason.to_owned());
        }
        if passed(&self.ack_due) {
            self.flush_acks(driver);
        }
        if self.holder.stalled().is_some_and(|since| since.elapsed() >= self.stuck) {
            self.end(driver, format!("it is stuck: it has not read its stdin for {:?}", self.stuck));
        }
        self.end_harder(driver, now);
    }

    /// Begins to end the process: stdin is closed; the holder does the rest.
    fn end(&mut self, driver: &mut Driver, reason: String) {
        if driver.closing {
            return;
        }
        driver.closing = true;
        self.reason = Some(reason);
        self.exit_deadline = None;
        self.handshake = None;
        let settings = &driver.settings;
        self.holder.stop(settings.stop_stdin, settings.stop_term);
        let until = Instant::now() + settings.stop_stdin + settings.stop_term + settings.linger;
        self.ending = Some(Ending { until, killed: false, forced: false });
    }

    /// Gives the process a moment to end by itself.
    fn end_within(&mut self, reason: &'static str, linger: Duration) {
        if self.ending.is_none() && self.exit_deadline.is_none() {
            self.exit_deadline = Some((Instant::now() + linger, reason));
        }
    }

    /// Kills a process that has not ended in time, then its holder too, then stops waiting for it.
    fn end_harder(&mut self, driver: &Driver, now: Instant) {
        let settings = &driver.settings;
        let Some(ending) = self.ending.as_mut().filter(|ending| ending.until <= now) else { return };
        if !ending.killed {
            self.holder.kill();
            *ending = Ending { killed: true, until: now + settings.stop_kill, ..*ending };
            if self.rejoin.is_none() {
                return;
            }
        }
        if !std::mem::replace(&mut ending.forced, true) {
            // Its holder does not do it, or cannot be reached.
            holder_reconnect::force(self.holder.processes(), settings);
            ending.until = now + settings.linger + 2 * settings.stop_kill;
            return;
        }
        let reason = self.reason.take().unwrap_or_default();
        self.reason = Some(format!("{reason}; it was killed but did not exit"));
        self.given_up = true;
    }

    /// Records that the process has ended, or that no holder knows it any more.
    fn exited(&mut self, driver: &mut Driver, code: Option<i32>, signal: Option<String>) {
        self.status = Some((code, signal));
        driver.closing = true;
    }

    /// Records that no holder is left that could report how the process ended.
    fn lost(&mut self, driver: &mut Driver, reason: String) {
        self.reason.get_or_insert(reason);
        self.exited(driver, None, None);
        driver.show(|info| info.pid = None);
    }
}
