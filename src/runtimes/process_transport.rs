//! A program as a transport: its holder, from the program's start to its exit, and the loop of its starts.
//!
//! The program's pipes are its holder's, which outlives the gateway. So that the next gateway can go on where this one
//! stops, at whatever instant, three things are kept in step:
//! - With every frame for the program the holder is given what led to it, both or none: the dialect's whole state, or the
//!   step that was made since the state before ([`saved_steps`](super::saved_steps)). So a frame costs what it is, however
//!   much the program's sessions know.
//! - Sessions store with their events how much of the output those cover ([`Ack`](plexus_sessions::Ack)).
//! - The holder forgets output only up to a state that it has, and only once all sessions have stored what came before.
//!
//! The next gateway replays what the holder still has from the oldest state on, takes the same steps at the same places,
//! and passes on what each session has not stored. What a frame was written for is known by what went with it, so nothing
//! is written twice.
//!
//! A holder that hangs up is not an exit: it is connected to again ([`holder_reconnect`](super::holder_reconnect)), and
//! meanwhile orders wait.

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
use plexus_holder::{HolderClient, HolderNews, WriteError, exit};
use plexus_protocol::{Connect, ErrorBody, Kind, RuntimeSpec, RuntimeState, Timestamp};
use plexus_sessions::{AckTracker, DriverEnd, RuntimeExit, RuntimeOrder};

/// Time between two reports of news on stderr: a runtime that writes a lot there does not keep every client busy.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// Output that is taken from the holder while sessions have no room for earlier events, in bytes. So a runtime's exit is
/// seen although its sessions read nothing; with more, the holder is not read either.
const STASH_MAX: usize = 1024 * 1024;

/// Time that sessions have to store what was passed on, when the gateway leaves a runtime to the next one. What is not
/// stored by then, the next gateway replays.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// The start of a driver.
pub(super) enum StartMode {
    /// With a program to start.
    New,
    /// With a runtime that outlived an earlier gateway.
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

/// One start, from its beginning until the process is gone and all its output is on its way; `None` if it is left to the
/// next gateway.
async fn live(driver: &mut Driver, source: DialectSource, start: StartMode) -> Option<ExitReport> {
    let mut process = match start {
        StartMode::New => match ProcessTransport::start(driver, source).await {
            Ok(process) => process,
            Err(why) => {
                let exit = RuntimeExit { reason: Some(format!("cannot start: {why}")), ..RuntimeExit::default() };
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
    // All output is on its way; the holder has nothing left to keep for this gateway.
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

    /// A dialect at its beginning.
    fn dialect(&self, spec: &RuntimeSpec) -> Box<dyn Dialect> {
        self.recording.of((self.make)(spec))
    }
}

/// One start of a program, behind its holder.
pub(super) struct ProcessTransport {
    holder: HolderClient,
    lines: LineReader,
    source: DialectSource,
    client_tools: ClientTools,
    /// The driver's.
    acks: Arc<AckTracker>,
    agent: Option<String>,
    /// The dialect's handshake is over, in this gateway or an earlier one.
    greeted: bool,
    ending: Option<Ending>,
    /// Set once it is shown that the process is being ended.
    ending_shown: bool,
    /// The reason why it was made to end.
    reason: Option<String>,
    /// The exit code, or the signal that killed it, once it is gone.
    status: Option<(Option<i32>, Option<String>)>,
    /// Set if the process was killed, and the kernel does not let it go: nothing waits for it.
    given_up: bool,
    /// Set if the process is left to the next gateway.
    left: bool,
    /// Fires at the next of the deadlines that follow.
    timer: Pin<Box<Sleep>>,
    handshake: Option<Instant>,
    /// Time that it may take none of its input.
    stuck: Duration,
    /// The time when the process is made to end unless it ends by itself, with the reason.
    exit_deadline: Option<(Instant, &'static str)>,
    stderr_due: Option<Instant>,
    stderr_shown: Option<Instant>,
    ack_due: Option<Instant>,
    /// Since when it takes none of its input, as of this turn.
    stalled: Option<Instant>,
    /// The holder keeps so much state that none may be added, as of this turn.
    heavy: bool,
    /// Output that was taken from the holder and waits for room in the sessions, and its bytes.
    stash: VecDeque<Bytes>,
    stashed: usize,
    /// Set if the process outlives the gateway: only then is what follows needed.
    outlive: bool,
    saved: SavedOutput,
    replay: HandoverReplay,
    /// While the connection to the holder is made again.
    rejoin: Option<Rejoin>,
}

/// A process on its way out: its holder ends it.
struct Ending {
    /// The time when the gateway takes the next step itself.
    until: Instant,
    killed: bool,
    /// Set once the process and its holder are ended by their numbers.
    forced: bool,
}

pub(super) enum ProcessEvent {
    Due,
    ClientTool(client_tools::ClientToolOutcome),
    Rejoined(Rejoined),
    /// More may be stored than before.
    Stored,
    News(HolderNews),
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
        let (living, reading) = (self.status.is_none(), intake.room && self.reads());
        tokio::select! {
            biased;
            () = self.timer.as_mut(), if due.is_some() => ProcessEvent::Due,
            outcome = self.client_tools.next(), if living => ProcessEvent::ClientTool(outcome),
            rejoined = holder_reconnect::done(&mut self.rejoin), if living => ProcessEvent::Rejoined(rejoined),
            () = self.acks.changed(), if self.heavy => ProcessEvent::Stored,
            news = self.holder.next(), if reading => ProcessEvent::News(news),
            else => std::future::pending().await,
        }
    }

    fn send(&mut self, driver: &mut Driver, cause: &StepCause) {
        self.write(driver, cause);
        let calls = std::mem::take(&mut driver.step.client_tools);
        // The calls of a replayed step were made by the gateway that made it first.
        if !driver.replaying && !driver.closing {
            calls.into_iter().for_each(|call| self.client_tools.start(call));
        }
    }

    fn close(&mut self, driver: &mut Driver, why: CloseReason) {
        match why {
            CloseReason::Leaving if self.outlive && driver.stop.is_none() => self.left = true,
            CloseReason::Leaving => {
                driver.stop.get_or_insert(CloseReason::Stopped);
                self.end(driver, CloseReason::Stopped.into_words());
            }
            why => self.end(driver, why.into_words()),
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
            self.heavy = self.holder.heavy();
            if self.heavy {
                self.flush_acks(driver);
                self.heavy = self.holder.heavy();
            }
            if !driver.out.is_empty() {
                break;
            }
            let Some(bytes) = self.stash.pop_front() else { break };
            self.stashed -= bytes.len();
            self.receive(driver, &bytes);
        }
        if self.ending.is_some() && !std::mem::replace(&mut self.ending_shown, true) {
            driver.show(|info| info.problem.clone_from(&self.reason));
        }
        if driver.offset > self.saved.stated {
            self.schedule_ack();
        }
        self.stalled = self.holder.stalled().map(Instant::from_std);
        let (living, current) = (self.status.is_none(), self.replay.until.is_none());
        Some(Gates {
            // The state that is replayed is an old one, and no ground for orders. And orders wait, in order, for a holder
            // that is connected to again, for one that has too much to keep, and for a process that does not read.
            orders: current && self.rejoin.is_none() && !self.heavy && self.stalled.is_none(),
            leave: living && self.ending.is_none(),
            wake: living && current,
            reads: self.reads(),
            held: self.lines.held() + self.stashed,
        })
    }

    fn handle(&mut self, driver: &mut Driver, event: ProcessEvent) {
        match event {
            ProcessEvent::News(news) => self.news(driver, news),
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
            // One for a start that is over: its session hears of that.
            return if order.generation == driver.generation { Admission::Admitted } else { Admission::Dropped };
        }
        if order.sender.is_closed() {
            Admission::Dropped
        } else if driver.dialect.sessions() == SessionLimit::One && driver.routes.taken() {
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
            ending_shown: false,
            reason: None,
            status: None,
            given_up: false,
            left: false,
            timer: Box::pin(sleep_until(never())),
            handshake: None,
            stuck: settings.stuck,
            exit_deadline: None,
            stderr_due: None,
            stderr_shown: None,
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
        // A line of any length that is passed on fits in the holder, and something after it.
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

    /// Returns whether more is taken from the holder as soon as there is room for it.
    fn reads(&self) -> bool {
        self.status.is_none() && self.stashed < STASH_MAX && (!self.heavy || self.replay.until.is_some())
    }

    /// Waits until sessions have stored all that was passed on: then the holder may forget it.
    async fn wait_until_stored(&self, driver: &mut Driver) {
        let all = async {
            while !driver.out.is_empty() {
                driver.out.deliver().await;
            }
            while self.acks.kept_up_to(driver.offset) < driver.offset {
                self.acks.changed().await;
            }
        };
        if self.outlive {
            let _ = tokio::time::timeout(LEAVE_WAIT, all).await;
        }
    }

    // === output ===

    fn news(&mut self, driver: &mut Driver, news: HolderNews) {
        match news {
            HolderNews::Out { bytes, .. } => {
                driver.heard();
                if driver.out.is_empty() && self.stash.is_empty() {
                    self.receive(driver, &bytes);
                } else {
                    self.stashed += bytes.len();
                    self.stash.push_back(bytes);
                }
            }
            HolderNews::Err(text) => {
                driver.stderr.push(&text);
                if self.stderr_due.is_none() {
                    let now = Instant::now();
                    self.stderr_due = Some(self.stderr_shown.map_or(now, |shown| (shown + STDERR_EVERY).max(now)));
                }
            }
            HolderNews::Full(since) => self.report_full(driver, since),
            HolderNews::Room => {}
            HolderNews::StdinBroken => self.end_within("it closed its stdin", driver.settings.linger),
            HolderNews::StdoutClosed => self.end_within("it closed its stdout", driver.settings.linger),
            HolderNews::Exited { code, signal } => {
                self.exited(driver, code, signal.map(exit::signal_name));
                let stopped = driver.stop.is_some();
                driver.show(|info| {
                    info.pid = None;
                    info.stopped = stopped;
                    if stopped {
                        // Who waits for the stop need not wait for what the process wrote before it.
                        info.state = RuntimeState::Exited;
                    }
                });
            }
            HolderNews::Gone(why) if self.holder.is_live() => {
                driver.note(&format!("the connection to its holder was lost: {why}"));
                let problem = format!("the connection to its holder was lost ({why}): reconnecting");
                tracing::warn!(%why, "the connection to a holder was lost: reconnecting");
                driver.show(|info| info.problem = Some(problem));
                self.rejoin = Some(Rejoin::start(&self.holder, &driver.settings));
            }
            HolderNews::Gone(why) => self.lost(driver, why),
        }
    }

    /// The holder was full and did not read the process: people are told why it stood still.
    fn report_full(&mut self, driver: &mut Driver, since: SystemTime) {
        let since: Timestamp = since.into();
        let message = "its output exceeded what its holder stores while no gateway reads it, so it had to wait";
        let body = ErrorBody::new("held_back", message).with("since", since.to_string());
        driver.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::Error, &body) });
        driver.flush(self);
    }

    /// Passes on what the process wrote.
    fn receive(&mut self, driver: &mut Driver, bytes: &Bytes) {
        self.lines.room().extend_from_slice(bytes);
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

    /// The next deadline.
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
            (self.stderr_due, self.stderr_shown) = (None, Some(now));
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
            && let Some((_, why)) = self.exit_deadline.take()
        {
            self.end(driver, why.to_owned());
        }
        if passed(&self.ack_due) {
            self.flush_acks(driver);
        }
        if self.holder.stalled().is_some_and(|since| since.elapsed() >= self.stuck) {
            self.end(driver, format!("it is stuck: it has not read its stdin for {:?}", self.stuck));
        }
        self.end_harder(driver, now);
    }

    /// Begins the end: stdin is closed; the holder does the rest.
    fn end(&mut self, driver: &mut Driver, why: String) {
        if driver.closing {
            return;
        }
        driver.closing = true;
        self.reason = Some(why);
        self.exit_deadline = None;
        self.handshake = None;
        let settings = &driver.settings;
        self.holder.stop(settings.stop_stdin, settings.stop_term);
        let until = Instant::now() + settings.stop_stdin + settings.stop_term + settings.linger;
        self.ending = Some(Ending { until, killed: false, forced: false });
    }

    /// Gives the process a moment to end by itself.
    fn end_within(&mut self, why: &'static str, linger: Duration) {
        if self.ending.is_none() && self.exit_deadline.is_none() {
            self.exit_deadline = Some((Instant::now() + linger, why));
        }
    }

    /// Kills a process that has not ended in time, then forces it and its holder, then gives it up.
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
            // Its holder does not do it, or cannot be told to.
            holder_reconnect::force(self.holder.processes(), settings);
            ending.until = now + settings.linger + 2 * settings.stop_kill;
            return;
        }
        let reason = self.reason.take().unwrap_or_default();
        self.reason = Some(format!("{reason}; it was killed but did not exit"));
        self.given_up = true;
    }

    /// The process is gone, or nobody knows of it any more.
    fn exited(&mut self, driver: &mut Driver, code: Option<i32>, signal: Option<String>) {
        self.status = Some((code, signal));
        driver.closing = true;
    }

    /// There is no holder any more that could say how the process ended.
    fn lost(&mut self, driver: &mut Driver, why: String) {
        self.reason.get_or_insert(why);
        self.exited(driver, None, None);
        driver.show(|info| info.pid = None);
    }
}
