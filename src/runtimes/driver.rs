//! The task that owns a runtime, from its first start to its last end. One file: the loop and the steps it is made of.
//!
//! The runtime's pipes are its holder's, which outlives the gateway. So that the next gateway can go on where this one
//! stops, at whatever instant, three things are kept in step:
//! - With every frame for the runtime the holder is given what led to it, both or none: the dialect's whole state, or the
//!   step that was made since the state before ([`saved_steps`](super::saved_steps)). So a frame costs what it is, however much the
//!   runtime's sessions know.
//! - Sessions keep with their events how much of the output those cover ([`Ack`](crate::sessions::Ack)).
//! - The holder forgets output only up to a state that it has, and only once all sessions have kept what came before.
//!
//! The next gateway feeds what the holder still has to the oldest state, takes the same steps at the same places, and
//! passes on what each session has not kept. What a frame was written for is known by what went with it, so nothing is
//! written twice.
//!
//! A holder that hangs up is not a death: it is connected to again ([`holder_reconnect`](super::holder_reconnect)), and meanwhile orders wait.

mod exits;
mod process_state;
mod reattach;

use exits::{ExitCause, ExitReport, RestartDecision};
pub(super) use process_state::HandoverState;
use process_state::{Ending, ProcessState};
pub(super) use reattach::{Late, SurvivingProcess, drive_late};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::RuntimeSettings;
use super::client_tools::{self, ClientTools};
use super::failure;
use super::found_sessions::{FoundSessions, too_many};
use super::holder_reconnect::{self, Rejoin, Rejoined};
use super::line_reader::{self, CutLine, LineReader, SkippedLine};
use super::meter::{MeteredRoom, RuntimeMeter};
use super::presets;
use super::process::{self, Stderr};
use super::recorder::Recording;
use super::saved_steps::{self, SavedStep, StepEntry};
use super::session_outbox::SessionOutbox;
use super::session_routes::{SessionRoutes, refusal};
use crate::metrics::metrics;
use crate::sessions::stderr_log::{LogSource, StderrLog};
use crate::sessions::{
    AckTracker, DriverEnd, FoundSession, ReattachedSession, RuntimeExit, RuntimeMessage, RuntimeOrder, SessionSender,
};
use plexus_dialects::{
    Dialect, EventDraft, MakeDialect, Outbox, RequestKey, RuntimeCommand, RuntimeEvent, SessionLimit,
};
use plexus_holder::wire::Welcome;
use plexus_holder::{HolderClient, HolderNews, HolderNotFound};
use plexus_holder::{WriteError, exit};
use plexus_protocol::{
    Capabilities, Connect, Decision, ErrorBody, Kind, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState, Timestamp,
};

/// Sessions that wait to be opened while a runtime starts; more are refused.
const OPENS_MAX: usize = 4096;

/// How often is shown when a runtime was last heard: so old may what is shown be.
const HEARD_EVERY: Duration = Duration::from_secs(5);

/// How often news on stderr is shown: a runtime that writes a lot there does not keep everybody busy.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// How long output waits at most, once it is kept, before its holder is told to forget it …
const SETTLE_EVERY: Duration = Duration::from_millis(500);

/// … and how much of it, in bytes; or as much as a whole state takes, if that is more: so states cost no more than output.
const SETTLE_BYTES: u64 = 256 * 1024;

/// How much steps may weigh until a whole state is given to the holder in their place, in bytes; or as much as such a
/// state, if that is more: so states cost no more than steps.
const JOURNAL_MIN: usize = 64 * 1024;

/// Output that is taken from the holder while sessions have no room for what was said before, in bytes. So the end of a
/// runtime is seen although its sessions hear nothing; with more, the holder is not listened to either.
const STASH_MAX: usize = 1024 * 1024;

/// How long sessions have to keep what was said, when the gateway leaves a runtime to the next one. What is not kept by
/// then, the next one hears again.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// How much of a runtime's last words goes into its problem, in bytes.
const WORDS_SHOWN: usize = 500;

/// How often a holder that did not answer is asked again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// When nothing is due.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a driver begins.
pub(super) enum StartMode {
    /// With a program to start.
    New,
    /// With a runtime that outlived an earlier gateway.
    Found(Box<SurvivingProcess>),
}

/// Drives a runtime until it is stopped or dead for good, or left to the next gateway.
pub(super) async fn drive(
    spec: RuntimeSpec,
    make: MakeDialect,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    leave: Arc<Notify>,
    mut birth: StartMode,
) {
    let mut driver = Driver {
        spec,
        make,
        end,
        settings,
        leave,
        opens: VecDeque::new(),
        out: SessionOutbox::default(),
        stop: None,
        recording: Recording::default(),
    };
    let mut early_deaths = 0;
    let mut generation = match &birth {
        StartMode::New => 1,
        StartMode::Found(found) => found.generation,
    };
    loop {
        let Some(death) = driver.live(generation, std::mem::replace(&mut birth, StartMode::New)).await else { return };
        if death.healthy {
            early_deaths = 0;
        }
        let after = driver.after(&death, early_deaths);
        early_deaths += 1;
        driver.report_exit(death, after).await;
        match after {
            RestartDecision::Again(pause) if driver.pause_before_restart(pause).await => generation += 1,
            _ => break,
        }
    }
    driver.close().await;
}

struct Driver {
    spec: RuntimeSpec,
    make: MakeDialect,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    /// Told once when the gateway stops and the runtime is to stay.
    leave: Arc<Notify>,
    /// Sessions that wait to be opened.
    opens: VecDeque<RuntimeOrder>,
    out: SessionOutbox,
    /// It is to stop for good, and why.
    stop: Option<&'static str>,
    /// Of what is said with the process that runs.
    recording: Recording,
}

/// What happened next.
enum DriverEvent {
    Stop,
    Leave,
    Order(Option<RuntimeOrder>),
    Due,
    Delivered,
    News(HolderNews),
    Done(client_tools::ClientToolOutcome),
    /// More may be kept than before.
    Kept,
    Rejoined(Rejoined),
    /// There is room for more of what it says.
    Room(MeteredRoom),
}

impl Driver {
    /// One start, from its beginning until the process is gone and all it said is on its way; `None` if it is left to the
    /// next gateway.
    async fn live(&mut self, generation: u64, birth: StartMode) -> Option<ExitReport> {
        let mut life = match birth {
            StartMode::New => match self.begin(generation).await {
                Ok(life) => life,
                Err(why) => {
                    let exit = RuntimeExit { reason: Some(format!("cannot start: {why}")), ..RuntimeExit::default() };
                    let routes = SessionRoutes::default();
                    return Some(ExitReport { exit, routes, unborn: true, hopeless: false, healthy: false });
                }
            },
            StartMode::Found(found) => self.go_on(*found),
        };
        let timer = sleep_until(Instant::now() + NEVER);
        tokio::pin!(timer);
        while life.status.is_none() || !life.stash.is_empty() || !self.out.is_empty() {
            let mut heavy = life.held.heavy();
            if heavy {
                self.flush_acks(&mut life);
                heavy = life.held.heavy();
            }
            if self.out.is_empty()
                && let Some(bytes) = life.stash.pop_front()
            {
                life.stashed -= bytes.len();
                self.received(&mut life, &bytes);
                continue;
            }
            let now = Instant::now();
            let due = life.due().unwrap_or(now + NEVER);
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            if life.ending.is_some() && !std::mem::replace(&mut life.told, true) {
                self.show(|info| info.problem.clone_from(&life.reason));
            }
            let living = life.status.is_none();
            let hearing = living && life.stashed < STASH_MAX && (!heavy || life.behind.is_some());
            // What it said and is not kept yet, and what of a line is here, is charged to it before more is read.
            let held = life.unkept_bytes().saturating_add(life.lines.held() + life.stashed);
            let room = life.meter.room(held);
            let alone = life.unkept_bytes() == 0;
            // What a state of yesterday knows is no ground for orders of today. And orders wait, in order, for a holder
            // that is connected to again, for one that has too much to keep, and for a runtime that does not read.
            let obeying = life.behind.is_none() && life.rejoin.is_none() && !heavy && life.held.stalled().is_none();
            let ledger = Arc::clone(&life.ledger);
            let next = tokio::select! {
                biased;
                () = self.end.stop.notified(), if self.stop.is_none() => DriverEvent::Stop,
                () = self.leave.notified(), if living && life.ending.is_none() => DriverEvent::Leave,
                order = self.end.orders.recv(), if obeying && self.stop != Some(UNUSED) => DriverEvent::Order(order),
                () = &mut timer => DriverEvent::Due,
                () = self.out.deliver(), if !self.out.is_empty() => DriverEvent::Delivered,
                () = life.offers.offer(&self.end.found), if !life.offers.is_empty() => DriverEvent::Delivered,
                done = life.client_tools.next(), if living => DriverEvent::Done(done),
                rejoined = holder_reconnect::done(&mut life.rejoin), if living => DriverEvent::Rejoined(rejoined),
                room = life.meter.wait(alone), if hearing && !room => DriverEvent::Room(room),
                () = ledger.changed(), if heavy || (hearing && !room) => DriverEvent::Kept,
                news = life.held.next(), if hearing && room => DriverEvent::News(news),
            };
            match next {
                DriverEvent::Stop => self.stop(&mut life, STOPPED),
                DriverEvent::Leave if self.can_leave(&life) => {
                    self.leave(life).await;
                    return None;
                }
                DriverEvent::Leave => self.stop(&mut life, STOPPED),
                DriverEvent::Order(Some(order)) => self.order(&mut life, order),
                DriverEvent::Order(None) => self.stop(&mut life, UNUSED),
                DriverEvent::Delivered => {}
                DriverEvent::Room(room) => life.meter.take(room),
                DriverEvent::News(news) => self.news(&mut life, news),
                DriverEvent::Done((id, done)) => {
                    self.step(&mut life, ExitCause::Other, |dialect, out| dialect.done(id, done, out));
                }
                // Settled above, and the room for it is looked at again.
                DriverEvent::Kept => {}
                DriverEvent::Rejoined(rejoined) => self.rejoined(&mut life, rejoined),
                DriverEvent::Due => {
                    if !self.due(&mut life) {
                        break;
                    }
                }
            }
        }
        if let Some(line) = life.lines.finish() {
            self.line(&mut life, line);
        }
        self.send(&mut life);
        // Everything it said is on its way; the holder has nothing left to keep for us.
        self.wait_until_kept(&mut life).await;
        life.held.bye();
        Some(self.death(life))
    }

    /// Starts the program.
    async fn begin(&mut self, generation: u64) -> Result<ProcessState, String> {
        self.show(|info| {
            info.state = RuntimeState::Starting;
            info.generation = generation;
            info.problem = None;
            info.agent = None;
            info.capabilities = None;
            info.instance = None;
            info.stderr_tail = String::new();
        });
        let argv = match &self.spec.connect {
            Connect::Command(argv) => argv.clone(),
            Connect::Endpoint(_) => Vec::new(),
        };
        self.recording = Recording::begin(&self.settings, &self.spec, generation);
        let dialect = self.dialect();
        let outlive = self.spec.outlive && dialect.save().is_some();
        let settings = &self.settings;
        // A line of any length that is passed on fits in the holder, and something after it.
        let spool_max = settings.line_max.saturating_add(settings.spool_more);
        let program = process::program(&self.spec, &argv, &settings.env).await?;
        let held =
            HolderClient::start(&self.spec, &program, &settings.hold_exe, &settings.holders, spool_max, outlive).await;
        let (held, welcome) = held?;
        let mut life = ProcessState::new(
            generation,
            held,
            dialect,
            &self.spec,
            self.settings.as_ref(),
            (outlive, &self.end.journal),
        );
        self.note(&format!("started, process {}", life.held.pid()));
        life.stderr.push(&welcome.stderr);
        self.show(|info| {
            info.pid = Some(life.held.pid());
            info.instance = Some(life.held.instance().to_owned());
        });
        life.handshake = Some(Instant::now() + self.settings.handshake);
        self.step(&mut life, ExitCause::Other, |dialect, out| dialect.open(out));
        Ok(life)
    }

    /// The dialect at its beginning.
    fn dialect(&self) -> Box<dyn Dialect> {
        self.recording.of((self.make)(&self.spec))
    }

    fn can_leave(&self, life: &ProcessState) -> bool {
        life.outlive && self.stop.is_none()
    }

    /// Leaves the runtime to the next gateway: what was heard is kept, as far as it can be in time.
    async fn leave(&mut self, mut life: ProcessState) {
        self.wait_until_kept(&mut life).await;
        self.flush_acks(&mut life);
    }

    /// Waits until all that was said is kept: then the holder may forget it.
    async fn wait_until_kept(&mut self, life: &mut ProcessState) {
        let ledger = Arc::clone(&life.ledger);
        let all = async {
            while !self.out.is_empty() {
                self.out.deliver().await;
            }
            while ledger.kept_up_to(life.offset) < life.offset {
                ledger.changed().await;
            }
        };
        if life.outlive {
            let _ = tokio::time::timeout(LEAVE_WAIT, all).await;
        }
    }

    fn news(&mut self, life: &mut ProcessState, news: HolderNews) {
        match news {
            HolderNews::Out { bytes, .. } => {
                if life.heard_at.elapsed() >= HEARD_EVERY {
                    life.heard_at = Instant::now();
                    let now = SystemTime::now().into();
                    self.show(|info| info.heard_at = Some(now));
                }
                if self.out.is_empty() && life.stash.is_empty() {
                    self.received(life, &bytes);
                } else {
                    life.stashed += bytes.len();
                    life.stash.push_back(bytes);
                }
            }
            HolderNews::Err(text) => {
                life.stderr.push(&text);
                if life.stderr_due.is_none() {
                    let now = Instant::now();
                    life.stderr_due = Some(life.stderr_shown.map_or(now, |shown| (shown + STDERR_EVERY).max(now)));
                }
            }
            HolderNews::Full(since) => self.full(life, since),
            HolderNews::Room => {}
            HolderNews::StdinBroken => life.end_within("it closed its stdin", self.settings.linger),
            HolderNews::StdoutClosed => life.end_within("it closed its stdout", self.settings.linger),
            HolderNews::Exited { code, signal } => {
                life.status = Some((code, signal.map(exit::signal_name)));
                let stopped = self.stop.is_some();
                self.show(|info| {
                    info.pid = None;
                    info.stopped = stopped;
                    if stopped {
                        // Whoever waits for the stop need not wait for what was said before it.
                        info.state = RuntimeState::Exited;
                    }
                });
            }
            HolderNews::Gone(why) if life.held.is_live() => {
                self.note(&format!("the connection to its holder was lost: {why}"));
                let problem = format!("the connection to its holder was lost ({why}): reconnecting");
                tracing::warn!(%why, "the connection to a holder was lost: reconnecting");
                self.show(|info| info.problem = Some(problem));
                life.rejoin = Some(Rejoin::start(&life.held, &self.settings));
            }
            HolderNews::Gone(why) => {
                life.reason.get_or_insert(why);
                life.status = Some((None, None));
                self.show(|info| info.pid = None);
            }
        }
    }

    /// The holder was full and did not read the runtime: people are told why it stood still.
    fn full(&mut self, life: &mut ProcessState, since: SystemTime) {
        let since: Timestamp = since.into();
        let message = "its output exceeded what its holder stores while no gateway reads it, so it had to wait";
        let body = ErrorBody::new("held_back", message).with("since", since.to_string());
        life.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::Error, &body) });
        self.send(life);
    }

    /// Passes on what the runtime wrote.
    fn received(&mut self, life: &mut ProcessState, bytes: &Bytes) {
        life.lines.room().extend_from_slice(bytes);
        while let Some(line) = life.lines.next() {
            life.offset = life.lines.offset();
            life.routes.at(life.offset);
            self.line(life, line);
            self.catch_up(life);
        }
        life.offset = life.lines.offset();
        self.send(life);
        if life.offset - life.stated >= SETTLE_BYTES.max(life.whole as u64) {
            self.flush_acks(life);
        }
    }

    /// Gives the holder the state that goes with what was heard, and lets it forget what all sessions have kept.
    fn flush_acks(&mut self, life: &mut ProcessState) {
        life.settle_due = None;
        if !life.replay.is_empty() || life.broken || life.rejoin.is_some() {
            return;
        }
        if !life.outlive {
            life.held.ack(life.offset);
            life.stated = life.offset;
            return;
        }
        // What is needed no more first: it makes room for what is added.
        life.acknowledge();
        if life.offset > life.stated || (life.journal > 0 && life.held.heavy()) {
            let state = life.state(&self.spec);
            life.whole(state.len());
            life.held.state(life.offset, state);
        }
        life.acknowledge();
        if !life.states.is_empty() {
            life.settle_due = Some(Instant::now() + SETTLE_EVERY);
        }
    }

    /// Writes down what the gateway itself knows.
    fn note(&self, text: &str) {
        tracing::debug!(text, "noted");
        self.end.journal.add(SystemTime::now().into(), LogSource::Gateway, text);
    }

    /// Carries out what is on its way, without a process: until `until` if given, else until all is delivered.
    async fn flush(&mut self, until: Option<Instant>) {
        let timer = sleep_until(until.unwrap_or_else(|| Instant::now() + NEVER));
        tokio::pin!(timer);
        loop {
            if if until.is_some() { self.stop.is_some() } else { self.out.is_empty() } {
                return;
            }
            tokio::select! {
                biased;
                () = self.end.stop.notified(), if self.stop.is_none() => self.stop = Some(STOPPED),
                () = self.leave.notified(), if self.stop.is_none() => self.stop = Some(STOPPED),
                order = self.end.orders.recv(), if self.stop != Some(UNUSED) => match order {
                    Some(order) => self.wait_to_open(order),
                    None => self.stop = Some(UNUSED),
                },
                () = self.out.deliver(), if !self.out.is_empty() => {}
                () = &mut timer => return,
            }
        }
    }

    /// The end of the driver.
    async fn close(&mut self) {
        let problem = self.end.info.borrow().problem.clone();
        let why = problem.unwrap_or_else(|| STOPPED.to_owned());
        // It may have been stopped while it rested.
        self.show(|info| info.state = RuntimeState::Exited);
        self.end.orders.close();
        while let Some(order) = self.end.orders.recv().await {
            self.wait_to_open(order);
        }
        self.refuse_opens(&why);
        while !self.out.is_empty() {
            self.out.deliver().await;
        }
    }

    // === orders ===

    fn order(&mut self, life: &mut ProcessState, order: RuntimeOrder) {
        let dead = life.ending.is_some() || life.status.is_some();
        if matches!(order.command, RuntimeCommand::Open { .. }) {
            if dead || life.ready.is_none() { self.wait_to_open(order) } else { self.open(life, order) }
        } else if order.generation == life.generation && !dead {
            life.routes.ordered(&order);
            self.command(life, order.command);
            if let Some(came) = order.pressed {
                metrics().answered(self.spec.id.as_str(), came);
            }
            self.send(life);
        }
        // Anything else was meant for a start that is over, and its session is told so.
    }

    /// Keeps an order to open a session for later. Others have nobody to go to, and their session hears of that.
    fn wait_to_open(&mut self, order: RuntimeOrder) {
        let RuntimeCommand::Open { ticket, .. } = order.command else { return };
        if self.opens.len() < OPENS_MAX {
            self.opens.push_back(order);
        } else {
            self.refuse(order.inlet, ticket, format!("{OPENS_MAX} sessions are already waiting for this runtime"));
        }
    }

    fn open(&mut self, life: &mut ProcessState, order: RuntimeOrder) {
        let RuntimeCommand::Open { ticket, .. } = order.command else { return };
        if order.inlet.is_closed() {
            return;
        }
        if life.dialect.sessions() == SessionLimit::One && life.routes.taken() {
            let why = "this runtime supports only one session: start another runtime for another session";
            return self.refuse(order.inlet, ticket, why.into());
        }
        life.routes.ordered(&order);
        self.command(life, order.command);
        self.send(life);
    }

    /// Gives the dialect a command; what was said is not on its way yet.
    fn command(&mut self, life: &mut ProcessState, command: RuntimeCommand) {
        if matches!(command, RuntimeCommand::Open { .. } | RuntimeCommand::Prompt { .. }) {
            life.stderr.mark();
        }
        // What somebody typed is given to the runtime and written down nowhere.
        let typed = matches!(&command, RuntimeCommand::Answer { decision: Decision::Value(Some(_)), .. });
        let steps = life.outlive && life.held.takes_steps() && !typed;
        // Plain values of our own: they always can be written.
        let entry = if steps { serde_json::to_vec(&command).unwrap_or_default() } else { Vec::new() };
        self.step_quietly(life, ExitCause::Command(entry), |dialect, out| dialect.command(command, out));
    }

    fn refuse(&mut self, inlet: SessionSender, ticket: plexus_protocol::Ticket, why: String) {
        self.out.push(inlet, RuntimeMessage::Said(vec![RuntimeEvent::NotOpened { ticket, error: refusal(why) }], None));
    }

    fn refuse_opens(&mut self, why: &str) {
        for order in std::mem::take(&mut self.opens) {
            if let RuntimeCommand::Open { ticket, .. } = order.command {
                self.refuse(order.inlet, ticket, why.to_owned());
            }
        }
    }

    // === what the runtime says ===

    fn line(&mut self, life: &mut ProcessState, line: CutLine) {
        let (frame, reason) = match line {
            CutLine::Whole(frame) if life.broken => (frame, "the gateway failed on an earlier message".to_owned()),
            CutLine::Whole(frame) => {
                return self.step_quietly(life, ExitCause::Heard, |dialect, out| dialect.feed(frame, out));
            }
            CutLine::Cut { head, dropped } => {
                let max = self.settings.line_max;
                (head, format!("line over the limit of {max} bytes; {dropped} bytes dropped"))
            }
            CutLine::Unfinished(rest) => (rest, "the runtime's output ended in the middle of a line".to_owned()),
        };
        life.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::raw(frame, &reason) });
    }

    /// One step of the dialect, and all that follows from it.
    fn step(&mut self, life: &mut ProcessState, cause: ExitCause, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        self.step_quietly(life, cause, step);
        self.send(life);
    }

    /// One step of the dialect; what was said is not on its way yet.
    fn step_quietly(
        &mut self,
        life: &mut ProcessState,
        cause: ExitCause,
        step: impl FnOnce(&mut dyn Dialect, &mut Outbox),
    ) {
        // A runtime's words must not be able to end its driver, which would leave its sessions waiting for ever.
        let (dialect, out) = (&mut life.dialect, &mut life.step);
        if catch_unwind(AssertUnwindSafe(|| step(dialect.as_mut(), out))).is_err() {
            let dialect = &self.spec.dialect;
            life.broken = true;
            life.end(
                format!("the gateway's {dialect} dialect failed on its output: this is a bug in Plexus"),
                &self.settings,
            );
        }
        if let Some(after) = life.step.wake_after.take() {
            let at = Instant::now() + after;
            life.wake = Some(life.wake.map_or(at, |wake| wake.min(at)));
        }
        self.write(life, &cause);
        let chores = std::mem::take(&mut life.step.client_tools);
        // What is heard again was seen to by the gateway that heard it first.
        if life.replay.is_empty() && life.ending.is_none() && life.status.is_none() {
            chores.into_iter().for_each(|chore| life.client_tools.start(chore));
        }
        for mut said in std::mem::take(&mut life.step.events) {
            let words = failure::explain(&mut said, || life.stderr.since());
            if let Some(words) = words.filter(|_| life.replay.is_empty()) {
                self.note(&words);
            }
            match said {
                RuntimeEvent::Ready { agent } => {
                    life.ready.get_or_insert_with(Instant::now);
                    life.handshake = None;
                    (life.kept_ready, life.agent) = (true, agent.clone());
                    if life.ending.is_none() && life.status.is_none() {
                        let capabilities = life.dialect.capabilities();
                        self.show(|info| {
                            info.state = RuntimeState::Ready;
                            info.agent = agent;
                            info.capabilities = Some(capabilities);
                        });
                    }
                }
                RuntimeEvent::Failed { message } => {
                    life.hopeless = true;
                    life.handshake = None;
                    life.end(message, &self.settings);
                }
                RuntimeEvent::Found { native, cwd, title } => {
                    if !life.offers.push(FoundSession { native, cwd, title }) {
                        self.show(|info| info.problem = Some(too_many()));
                    }
                }
                said => {
                    let opened = matches!(said, RuntimeEvent::Opened { .. });
                    life.routes.route(said);
                    if opened && life.replay.is_empty() {
                        // Some agents say only then what there is to choose from.
                        self.show_capabilities(life.dialect.capabilities());
                    }
                }
            }
        }
    }

    /// Writes what the step wants written, with what leads to it for the next gateway.
    fn write(&mut self, life: &mut ProcessState, cause: &ExitCause) {
        let mut frames = std::mem::take(&mut life.step.frames);
        if !life.replay.is_empty() {
            // What is heard again was answered by the gateway that heard it first.
            life.muted = saved_steps::checksum(&frames);
            return;
        }
        if life.ending.is_some() || life.status.is_some() {
            return;
        }
        let keeps = life.outlive && !life.broken;
        let step = match cause {
            _ if !keeps || !life.based || !life.held.takes_steps() => None,
            ExitCause::Heard => Some(saved_steps::heard(&frames)),
            ExitCause::Command(command) if !command.is_empty() => Some(saved_steps::command(&frames, command)),
            // What it does is known by a whole state alone.
            ExitCause::Command(_) | ExitCause::Other => {
                life.based = false;
                None
            }
        };
        if frames.is_empty() && (matches!(cause, ExitCause::Heard) || step.is_none()) {
            return;
        }
        let wrote = match step {
            Some(step) if life.journal + step.len() <= life.whole.max(JOURNAL_MIN) => {
                life.journal += step.len();
                let frame = if frames.len() == 1 { frames.swap_remove(0) } else { frames.concat().into() };
                life.held.step(life.offset, step, frame)
            }
            _ => {
                let state = if keeps { life.state(&self.spec) } else { Bytes::new() };
                life.whole(state.len());
                let frame = if frames.len() == 1 { frames.swap_remove(0) } else { frames.concat().into() };
                life.held.put(life.offset, state, frame)
            }
        };
        if life.outlive {
            life.settle_due.get_or_insert_with(|| Instant::now() + SETTLE_EVERY);
        }
        self.wrote(life, wrote);
    }

    fn put(&mut self, life: &mut ProcessState, state: Bytes, frame: Bytes) {
        let wrote = life.held.put(life.offset, state, frame);
        self.wrote(life, wrote);
    }

    fn wrote(&mut self, life: &mut ProcessState, wrote: Result<(), WriteError>) {
        match wrote {
            Ok(()) => {}
            Err(WriteError::Full) => life.end("it does not read its stdin".into(), &self.settings),
            Err(WriteError::Closed) => life.end_within("it closed its stdin", self.settings.linger),
        }
    }

    /// Sends off what was said, and does what can be done now.
    fn send(&mut self, life: &mut ProcessState) {
        while life.ready.is_some() && life.ending.is_none() && life.status.is_none() {
            let Some(order) = self.opens.pop_front() else { break };
            self.open(life, order);
        }
        for key in life.routes.abandoned_requests() {
            self.command(life, RuntimeCommand::Answer { key, decision: Decision::Withdrawn });
        }
        let (from, to) = (life.lent, life.offset);
        for (inlet, said) in life.routes.take() {
            let upto = match life.outlive {
                true => life.ledger.track(from, to, true),
                false => Arc::<AckTracker>::default().track(from, to, false),
            };
            self.out.push(inlet, RuntimeMessage::Said(said, Some(upto)));
        }
        life.lent = to;
        if life.offset > life.stated {
            life.settle_due.get_or_insert_with(|| Instant::now() + SETTLE_EVERY);
        }
    }

    // === time and ends ===

    fn stop(&mut self, life: &mut ProcessState, why: &'static str) {
        self.stop.get_or_insert(why);
        if why == UNUSED {
            // Nobody is left to give orders: the queue is not asked again.
            self.stop = Some(UNUSED);
        }
        life.end(why.to_owned(), &self.settings);
    }

    /// Does what is due; false if the process is to be waited for no longer.
    fn due(&mut self, life: &mut ProcessState) -> bool {
        let now = Instant::now();
        let passed = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(&life.wake) {
            life.wake = None;
            self.step(life, ExitCause::Other, |dialect, out| dialect.wake(out));
        }
        if passed(&life.stderr_due) {
            (life.stderr_due, life.stderr_shown) = (None, Some(now));
            let tail = life.stderr.tail();
            self.show(|info| info.stderr_tail = tail);
        }
        if life.status.is_some() {
            return true;
        }
        if passed(&life.handshake) {
            let after = self.settings.handshake;
            life.handshake = None;
            life.end(format!("it did not finish its handshake within {after:?}"), &self.settings);
        }
        if life.doom.as_ref().is_some_and(|(at, _)| *at <= now)
            && let Some((_, why)) = life.doom.take()
        {
            life.end(why.to_owned(), &self.settings);
        }
        if passed(&life.settle_due) {
            self.flush_acks(life);
        }
        if life.held.stalled().is_some_and(|since| since.elapsed() >= self.settings.stuck) {
            let why = format!("it is stuck: it has not read its stdin for {:?}", self.settings.stuck);
            life.end(why, &self.settings);
        }
        let Some(ending) = &mut life.ending else { return true };
        if ending.until > now {
            return true;
        }
        if !ending.killed {
            life.held.kill();
            *ending = Ending { killed: true, until: now + self.settings.stop_kill, ..*ending };
            if life.rejoin.is_none() {
                return true;
            }
        }
        if !std::mem::replace(&mut ending.forced, true) {
            // Its holder does not do it, or cannot be told to.
            holder_reconnect::force(life.held.processes(), &self.settings);
            ending.until = now + self.settings.linger + 2 * self.settings.stop_kill;
            return true;
        }
        let reason = life.reason.take().unwrap_or_default();
        life.reason = Some(format!("{reason}; it was killed but did not exit"));
        false
    }

    /// Shows what it can do, where that is news.
    fn show_capabilities(&self, now: Capabilities) {
        if self.end.info.borrow().capabilities.as_ref() != Some(&now) {
            self.show(|info| info.capabilities = Some(now));
        }
    }

    /// Shows how the runtime stands.
    fn show(&self, change: impl FnOnce(&mut RuntimeInfo)) {
        let mut info = RuntimeInfo::clone(&self.end.info.borrow());
        change(&mut info);
        info.updated_at = SystemTime::now().into();
        self.end.info.send_replace(Arc::new(info));
    }
}

/// Why a runtime stops for good: somebody said so …
const STOPPED: &str = "it was stopped";
/// … or nobody can want anything of it any more.
const UNUSED: &str = "no longer in use";
