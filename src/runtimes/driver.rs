//! The task that owns a runtime, from its first start to its last end. One file: the loop and the steps it is made of.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::Settings;
use super::lines::{Line, Lines};
use super::outgoing::Outgoing;
use super::process::{self, Stderr, Unwritten, Writer};
use super::routes::{Routes, refusal};
use crate::dialects::{Command, Dialect, Draft, Make, Outbox, Said, Sessions};
use crate::model::{Connect, Decision, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState};
use crate::sessions::{Exit, FromRuntime, Inlet, LinkEnd, Order};

/// Sessions that wait to be opened while a runtime starts; more are refused.
const OPENS_MAX: usize = 256;

/// How often news on stderr is shown: a runtime that writes a lot there does not keep everybody busy.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// How much of a dead runtime's pipe is read, in bytes: what the kernel can hold. More can only come from somebody else.
const LEFT_MAX: usize = 1024 * 1024;

/// How much of a runtime's last words goes into its problem, in bytes.
const WORDS_SHOWN: usize = 500;

/// When nothing is due.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Drives a runtime until it is stopped or dead for good.
pub(super) async fn drive(spec: RuntimeSpec, make: Make, end: LinkEnd, settings: Arc<Settings>) {
    let mut driver = Driver { spec, make, end, settings, opens: VecDeque::new(), out: Outgoing::default(), stop: None };
    let (mut generation, mut early_deaths) = (1, 0);
    loop {
        let death = driver.live(generation).await;
        if death.healthy {
            early_deaths = 0;
        }
        let after = driver.after(&death, early_deaths);
        early_deaths += 1;
        driver.bury(death, after).await;
        match after {
            After::Again(pause) if driver.rest(pause).await => generation += 1,
            _ => break,
        }
    }
    driver.close().await;
}

struct Driver {
    spec: RuntimeSpec,
    make: Make,
    end: LinkEnd,
    settings: Arc<Settings>,
    /// Sessions that wait to be opened.
    opens: VecDeque<Order>,
    out: Outgoing,
    /// It is to stop for good, and why.
    stop: Option<&'static str>,
}

/// What happened next.
enum Next {
    Stop,
    Order(Option<Order>),
    Due,
    Exited(std::io::Result<ExitStatus>),
    Delivered,
    Read(std::io::Result<usize>),
    Stderr,
    Broken,
}

/// How a start ended.
struct Death {
    exit: Exit,
    routes: Routes,
    /// It was never started at all.
    unborn: bool,
    /// Starting it again would not help: it said so itself.
    hopeless: bool,
    /// It was ready for long enough.
    healthy: bool,
}

/// What follows a death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Another start, after a pause.
    Again(Duration),
    /// Nothing: it would only die again.
    GivenUp,
    /// Nothing.
    Rest,
}

impl Driver {
    /// One start, from its spawn until the process is gone and all it said is on its way.
    async fn live(&mut self, generation: u64) -> Death {
        self.show(|info| {
            info.state = RuntimeState::Starting;
            info.generation = generation;
            info.problem = None;
            info.agent = None;
            info.stderr_tail = String::new();
        });
        let argv = match &self.spec.connect {
            Connect::Command(argv) => argv.clone(),
            Connect::Endpoint(_) => Vec::new(),
        };
        let started = process::start(&self.spec, &argv, &self.settings.hold_exe, Arc::clone(&self.settings.env)).await;
        let started = match started {
            Ok(started) => started,
            Err(why) => {
                let exit = Exit { reason: Some(format!("cannot start: {why}")), ..Exit::default() };
                return Death { exit, routes: Routes::default(), unborn: true, hopeless: false, healthy: false };
            }
        };
        let pid = started.child.id();
        self.show(|info| info.pid = pid);
        let mut life = Life {
            generation,
            child: started.child,
            stdout: Some(started.stdout),
            lines: Lines::new(self.settings.line_max),
            dialect: (self.make)(&self.spec),
            step: Outbox::default(),
            writer: Writer::new(started.stdin, self.settings.write_max),
            stderr: Stderr::new(started.stderr),
            routes: Routes::default(),
            ready: None,
            hopeless: false,
            broken: false,
            ending: None,
            told: false,
            reason: None,
            status: None,
            left: LEFT_MAX,
            handshake: Some(Instant::now() + self.settings.handshake),
            wake: None,
            doom: None,
            stderr_due: None,
            stderr_shown: None,
        };
        self.step(&mut life, |dialect, out| dialect.open(out));
        let linger = self.settings.linger;
        // Time left to wait for output once the process is gone; only waiting counts, not what keeps us from reading.
        let mut patience = linger;
        let timer = sleep_until(Instant::now() + NEVER);
        tokio::pin!(timer);
        while life.status.is_none() || life.stdout.is_some() || !self.out.is_empty() {
            let reading = life.stdout.is_some() && self.out.is_empty();
            let now = Instant::now();
            let out_of_patience = (life.status.is_some() && reading).then(|| now + patience);
            let due = life.due().into_iter().chain(out_of_patience).min().unwrap_or(now + NEVER);
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            if life.ending.is_some() && !std::mem::replace(&mut life.told, true) {
                self.show(|info| info.problem.clone_from(&life.reason));
            }
            let (living, pushed, quiet) = (life.status.is_none(), life.ending.is_some(), life.stderr_due.is_none());
            let Life { child, stdout, lines, stderr, writer, .. } = &mut life;
            let next = tokio::select! {
                biased;
                () = self.end.stop.notified(), if self.stop.is_none() => Next::Stop,
                order = self.end.orders.recv(), if self.stop != Some(UNUSED) => Next::Order(order),
                () = &mut timer => Next::Due,
                status = child.wait(), if living => Next::Exited(status),
                () = self.out.deliver(), if !self.out.is_empty() => Next::Delivered,
                () = writer.broken(), if living && !pushed => Next::Broken,
                () = stderr.news(), if quiet => Next::Stderr,
                read = read(stdout, lines), if reading => Next::Read(read),
            };
            if out_of_patience.is_some() {
                patience = patience.saturating_sub(now.elapsed());
            }
            match next {
                Next::Stop => self.stop(&mut life, STOPPED),
                Next::Order(Some(order)) => self.order(&mut life, order),
                Next::Order(None) => self.stop(&mut life, UNUSED),
                Next::Delivered => {}
                Next::Read(Ok(read @ 1..)) => {
                    if life.status.is_some() {
                        life.left = life.left.saturating_sub(read);
                    }
                    self.hear(&mut life);
                    if life.left == 0 {
                        self.hang_up(&mut life, true);
                    }
                }
                Next::Read(_) => {
                    self.hang_up(&mut life, false);
                    if life.status.is_none() {
                        life.doom("it closed its stdout", linger);
                    }
                }
                Next::Broken => life.doom("it closed its stdin", linger),
                Next::Stderr => {
                    let after = life.stderr_shown.map(|shown| shown + STDERR_EVERY);
                    life.stderr_due = Some(after.unwrap_or(now).max(now));
                }
                Next::Exited(status) => {
                    life.status = Some(status.ok());
                    life.writer.close();
                    let stopped = self.stop.is_some();
                    self.show(|info| {
                        info.pid = None;
                        if stopped {
                            // Whoever waits for the stop need not wait for what was said before it.
                            info.state = RuntimeState::Exited;
                        }
                    });
                }
                Next::Due if out_of_patience.is_some() && patience.is_zero() => self.hang_up(&mut life, true),
                Next::Due => {
                    if !self.due(&mut life) {
                        break;
                    }
                }
            }
        }
        life.stderr.end(patience).await;
        self.death(life)
    }

    fn death(&self, mut life: Life) -> Death {
        let (code, signal) = life.status.flatten().map_or((None, None), process::ended);
        let reason = life.reason.take().or_else(|| self.stop.map(str::to_owned));
        let reason = reason.or_else(|| {
            let words = life.routes.last_words()?;
            Some(format!("it said: {}", process::shown(&words[..words.len().min(WORDS_SHOWN)])))
        });
        let exit = Exit { code, signal, stderr_tail: life.stderr.tail(), reason, stopped: self.stop.is_some() };
        let healthy = life.ready.is_some_and(|at| at.elapsed() >= self.settings.healthy);
        Death { exit, routes: life.routes, unborn: false, hopeless: life.hopeless, healthy }
    }

    fn after(&self, death: &Death, early_deaths: u32) -> After {
        let again = match self.spec.restart {
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => death.exit.code != Some(0),
            RestartPolicy::Always => true,
        };
        // A program that was never there is a mistake to mend; one that is missing now may be in the middle of an update.
        let mistaken = death.unborn && self.end.info.borrow().generation == 1;
        if self.stop.is_some() || !again || mistaken || death.hopeless {
            After::Rest
        } else if early_deaths + 1 >= self.settings.give_up {
            After::GivenUp
        } else {
            let pause = self.settings.pause_min.saturating_mul(1 << early_deaths.min(16));
            After::Again(pause.min(self.settings.pause_max))
        }
    }

    /// Tells everybody of a death.
    async fn bury(&mut self, mut death: Death, after: After) {
        let exit = &mut death.exit;
        let mut problem = how(exit);
        if let Some(reason) = &exit.reason {
            problem = if death.unborn { reason.clone() } else { format!("{problem}: {reason}") };
        }
        if after == After::GivenUp {
            let deaths = self.settings.give_up;
            problem = format!("{problem}; not started again after {deaths} early deaths in a row");
        }
        self.show(|info| {
            let again = matches!(after, After::Again(_));
            info.state = if again { RuntimeState::Restarting } else { RuntimeState::Exited };
            info.pid = None;
            info.stderr_tail.clone_from(&exit.stderr_tail);
            info.problem = Some(problem.clone());
        });
        let (waiting, sessions) = death.routes.end();
        let tail = exit.stderr_tail.trim_end();
        let why = if tail.is_empty() { problem } else { format!("{problem}; it wrote: {tail}") };
        for (inlet, ticket) in waiting {
            self.out
                .push(inlet, FromRuntime::Said(vec![Said::NotOpened { ticket, error: refusal(why.clone()) }], None));
        }
        for inlet in sessions {
            self.out.push(inlet, FromRuntime::Gone(death.exit.clone()));
        }
        self.refuse_opens(&why);
        self.flush(None).await;
    }

    /// Rests before the next start; false if there is to be none.
    async fn rest(&mut self, pause: Duration) -> bool {
        self.flush(Some(Instant::now() + pause)).await;
        self.stop.is_none()
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

    fn order(&mut self, life: &mut Life, order: Order) {
        let dead = life.ending.is_some() || life.status.is_some();
        if matches!(order.command, Command::Open { .. }) {
            if dead || life.ready.is_none() { self.wait_to_open(order) } else { self.open(life, order) }
        } else if order.generation == life.generation && !dead {
            life.routes.ordered(&order);
            self.step(life, |dialect, out| dialect.command(order.command, out));
        }
        // Anything else was meant for a start that is over, and its session is told so.
    }

    /// Keeps an order to open a session for later. Others have nobody to go to, and their session hears of that.
    fn wait_to_open(&mut self, order: Order) {
        let Command::Open { ticket, .. } = order.command else { return };
        if self.opens.len() < OPENS_MAX {
            self.opens.push_back(order);
        } else {
            self.refuse(order.inlet, ticket, format!("{OPENS_MAX} sessions wait for this runtime already"));
        }
    }

    fn open(&mut self, life: &mut Life, order: Order) {
        let Command::Open { ticket, .. } = order.command else { return };
        if order.inlet.is_closed() {
            return;
        }
        if life.dialect.sessions() == Sessions::One && life.routes.taken() {
            let why = "this runtime carries one session only: start another runtime for another session";
            return self.refuse(order.inlet, ticket, why.into());
        }
        life.routes.ordered(&order);
        self.step(life, |dialect, out| dialect.command(order.command, out));
    }

    fn refuse(&mut self, inlet: Inlet, ticket: crate::model::Ticket, why: String) {
        self.out.push(inlet, FromRuntime::Said(vec![Said::NotOpened { ticket, error: refusal(why) }], None));
    }

    fn refuse_opens(&mut self, why: &str) {
        for order in std::mem::take(&mut self.opens) {
            if let Command::Open { ticket, .. } = order.command {
                self.refuse(order.inlet, ticket, why.to_owned());
            }
        }
    }

    // === what the runtime says ===

    /// Passes on the lines of a read, and then what they said.
    fn hear(&mut self, life: &mut Life) {
        while let Some(line) = life.lines.next() {
            self.line(life, line);
        }
        self.send(life);
    }

    /// Reads no more. `held` if somebody else still holds the pipe.
    fn hang_up(&mut self, life: &mut Life, held: bool) {
        life.stdout = None;
        if held && life.reason.is_none() {
            life.reason = Some("another process still holds its stdout; what that says is not heard".into());
        }
        if let Some(line) = life.lines.finish() {
            self.line(life, line);
        }
        self.send(life);
    }

    fn line(&mut self, life: &mut Life, line: Line) {
        let (frame, reason) = match line {
            Line::Whole(frame) if life.broken => (frame, "the gateway failed on an earlier message".to_owned()),
            Line::Whole(frame) => return self.step_quietly(life, |dialect, out| dialect.feed(frame, out)),
            Line::Cut { head, dropped } => {
                let max = self.settings.line_max;
                (head, format!("line over the limit of {max} bytes; {dropped} bytes dropped"))
            }
            Line::Unfinished(rest) => (rest, "the runtime's output ended in the middle of a line".to_owned()),
        };
        life.routes.said(Said::Event { native: None, draft: Draft::raw(frame, &reason) });
    }

    /// One step of the dialect, and all that follows from it.
    fn step(&mut self, life: &mut Life, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        self.step_quietly(life, step);
        self.send(life);
    }

    /// One step of the dialect; what was said is not on its way yet.
    fn step_quietly(&mut self, life: &mut Life, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        // A runtime's words must not be able to end its driver, which would leave its sessions waiting for ever.
        let (dialect, out) = (&mut life.dialect, &mut life.step);
        if catch_unwind(AssertUnwindSafe(|| step(dialect.as_mut(), out))).is_err() {
            let dialect = &self.spec.dialect;
            life.broken = true;
            life.end(format!("the gateway's own {dialect} dialect failed on its words: a bug"), &self.settings);
        }
        if let Some(after) = life.step.wake_after.take() {
            let at = Instant::now() + after;
            life.wake = Some(life.wake.map_or(at, |wake| wake.min(at)));
        }
        for frame in std::mem::take(&mut life.step.frames) {
            life.write(frame, &self.settings);
        }
        for said in std::mem::take(&mut life.step.said) {
            match said {
                Said::Ready { agent } => {
                    life.ready.get_or_insert_with(Instant::now);
                    life.handshake = None;
                    if life.ending.is_none() && life.status.is_none() {
                        self.show(|info| {
                            info.state = RuntimeState::Ready;
                            info.agent = agent;
                        });
                    }
                }
                Said::Failed { message } => {
                    life.hopeless = true;
                    life.handshake = None;
                    life.end(message, &self.settings);
                }
                said => life.routes.said(said),
            }
        }
    }

    /// Sends off what was said, and does what can be done now.
    fn send(&mut self, life: &mut Life) {
        while life.ready.is_some() && life.ending.is_none() && life.status.is_none() {
            let Some(order) = self.opens.pop_front() else { break };
            self.open(life, order);
        }
        for key in life.routes.unheard() {
            self.step_quietly(life, |dialect, out| {
                dialect.command(Command::Answer { key, decision: Decision::Withdrawn }, out);
            });
        }
        for (inlet, batch) in life.routes.take() {
            self.out.push(inlet, batch);
        }
    }

    // === time and ends ===

    fn stop(&mut self, life: &mut Life, why: &'static str) {
        self.stop.get_or_insert(why);
        if why == UNUSED {
            // Nobody is left to give orders: the queue is not asked again.
            self.stop = Some(UNUSED);
        }
        life.end(why.to_owned(), &self.settings);
    }

    /// Does what is due; false if the process is to be waited for no longer.
    fn due(&mut self, life: &mut Life) -> bool {
        let now = Instant::now();
        let passed = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(&life.wake) {
            life.wake = None;
            self.step(life, |dialect, out| dialect.wake(out));
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
        let Some(ending) = &mut life.ending else { return true };
        if ending.until > now {
            return true;
        }
        match ending.phase {
            Phase::Stdin => {
                process::terminate(&life.child);
                *ending = Ending { phase: Phase::Term, until: now + self.settings.stop_term };
            }
            Phase::Term => {
                process::kill(&life.child);
                *ending = Ending { phase: Phase::Kill, until: now + self.settings.stop_kill };
            }
            Phase::Kill => {
                let reason = life.reason.take().unwrap_or_default();
                life.reason = Some(format!("{reason}; it was killed and the kernel did not let it go"));
                self.hang_up(life, false);
                return false;
            }
        }
        true
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
const UNUSED: &str = "nobody uses it any more";

/// One start of the process, and what is known of it.
struct Life {
    generation: u64,
    child: Child,
    /// `None` once it has ended, or is not waited for any more.
    stdout: Option<ChildStdout>,
    lines: Lines,
    dialect: Box<dyn Dialect>,
    step: Outbox,
    writer: Writer,
    stderr: Stderr,
    routes: Routes,
    /// Since when sessions can be opened.
    ready: Option<Instant>,
    hopeless: bool,
    /// The dialect failed: what is still said is shown as it is.
    broken: bool,
    ending: Option<Ending>,
    /// Whether everybody was shown that it is being ended.
    told: bool,
    /// Why it was made to end.
    reason: Option<String>,
    /// Some once the process is gone; the inner one is missing if the system could not say how.
    status: Option<Option<ExitStatus>>,
    /// Bytes still to be read once the process is gone.
    left: usize,
    handshake: Option<Instant>,
    wake: Option<Instant>,
    /// When it is made to end unless it ends by itself, and why.
    doom: Option<(Instant, &'static str)>,
    stderr_due: Option<Instant>,
    stderr_shown: Option<Instant>,
}

/// How far a process on its way out has been pushed.
struct Ending {
    phase: Phase,
    /// When to push harder.
    until: Instant,
}

enum Phase {
    Stdin,
    Term,
    Kill,
}

impl Life {
    /// The next deadline.
    fn due(&self) -> Option<Instant> {
        let living = self.status.is_none();
        let doom = self.doom.as_ref().map(|(at, _)| *at).filter(|_| living && self.ending.is_none());
        let ending = self.ending.as_ref().map(|ending| ending.until).filter(|_| living);
        let handshake = self.handshake.filter(|_| living);
        let wake = self.wake.filter(|_| living);
        [doom, ending, handshake, wake, self.stderr_due].into_iter().flatten().min()
    }

    /// Begins the end: stdin is closed.
    fn end(&mut self, why: String, settings: &Settings) {
        if self.ending.is_some() || self.status.is_some() {
            return;
        }
        self.reason = Some(why);
        self.doom = None;
        self.handshake = None;
        self.writer.close();
        self.ending = Some(Ending { phase: Phase::Stdin, until: Instant::now() + settings.stop_stdin });
    }

    /// Gives it a moment to end by itself.
    fn doom(&mut self, why: &'static str, linger: Duration) {
        if self.ending.is_none() && self.doom.is_none() {
            self.doom = Some((Instant::now() + linger, why));
        }
    }

    fn write(&mut self, frame: Bytes, settings: &Settings) {
        if self.ending.is_some() || self.status.is_some() {
            return;
        }
        match self.writer.put(frame) {
            Ok(()) => {}
            Err(Unwritten::Full) => self.end("it does not read its stdin".into(), settings),
            Err(Unwritten::Closed) => self.doom("it closed its stdin", settings.linger),
        }
    }
}

/// Reads once. Cancellation safe.
async fn read(stdout: &mut Option<ChildStdout>, lines: &mut Lines) -> std::io::Result<usize> {
    match stdout {
        Some(stdout) => stdout.read_buf(lines.room()).await,
        None => std::future::pending().await,
    }
}

/// How a process ended, in words.
fn how(exit: &Exit) -> String {
    match (exit.code, &exit.signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("killed by {signal}"),
        (None, None) => "ended".into(),
    }
}
