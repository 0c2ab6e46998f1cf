//! The task that owns a runtime, from its first start to its last end. One file: the loop and the steps it is made of.
//!
//! The runtime's pipes are its holder's, which outlives the gateway. So that the next gateway can go on where this one
//! stops, at whatever instant, three things are kept in step:
//! - With every frame for the runtime the holder is given the dialect's state, both or none ([`Held::put`]).
//! - Sessions keep with their events how much of the output those cover ([`Upto`](crate::sessions::Upto)).
//! - The holder forgets output only up to a state that it has, and only once all sessions have kept what came before.
//!
//! The next gateway feeds what the holder still has to the oldest state, and passes on what each session has not kept.
//! What a frame was written for is known by the state that went with it, so nothing is written twice.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Settings;
use super::desk::{self, Desk};
use super::held::wire::Welcome;
use super::held::{Held, News};
use super::lines::{Line, Lines, Over};
use super::outgoing::Outgoing;
use super::process::{self, Stderr, Unwritten};
use super::routes::{Routes, refusal};
use crate::dialects::{AskKey, Command, Dialect, Draft, Make, Outbox, Said, Sessions};
use crate::model::{Connect, Decision, Kind, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState, Timestamp};
use crate::sessions::journal::{Journal, Writer};
use crate::sessions::{Adopted, Exit, Found, FromRuntime, Inlet, Ledger, LinkEnd, Order};

/// Sessions that wait to be opened while a runtime starts; more are refused.
const OPENS_MAX: usize = 256;

/// How often is shown when a runtime was last heard: so old may what is shown be.
const HEARD_EVERY: Duration = Duration::from_secs(5);

/// How often news on stderr is shown: a runtime that writes a lot there does not keep everybody busy.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// How long output waits at most, once it is kept, before its holder is told to forget it …
const SETTLE_EVERY: Duration = Duration::from_millis(500);

/// … and how much of it, in bytes.
const SETTLE_BYTES: u64 = 256 * 1024;

/// Output that is taken from the holder while sessions have no room for what was said before, in bytes. So the end of a
/// runtime is seen although its sessions hear nothing; with more, the holder is not listened to either.
const STASH_MAX: usize = 1024 * 1024;

/// How long sessions have to keep what was said, when the gateway leaves a runtime to the next one. What is not kept by
/// then, the next one hears again.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// How much of a runtime's last words goes into its problem, in bytes.
const WORDS_SHOWN: usize = 500;

/// When nothing is due.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a driver begins.
pub(super) enum Birth {
    /// With a program to start.
    New,
    /// With a runtime that outlived an earlier gateway.
    Found(Box<Survivor>),
}

/// A runtime that outlived an earlier gateway, as its holder and its last state tell of it.
pub(super) struct Survivor {
    pub(super) held: Held,
    pub(super) welcome: Welcome,
    pub(super) generation: u64,
    pub(super) sessions: Vec<Adopted>,
}

/// What the next gateway is left: the holder keeps it with the output it knows of. The dialect's own state follows it.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) spec: RuntimeSpec,
    pub(super) generation: u64,
    ready: bool,
    agent: Option<String>,
    /// The line that is being skipped: its beginning in hex, and how much of it was dropped.
    over: Option<(String, u64)>,
}

impl Kept {
    /// Writes it, and the dialect's state after it.
    fn write(&self, dialect: &[u8]) -> Bytes {
        // Plain values of our own: they always can be written. An empty one is no state, and says so when it is read.
        let head = serde_json::to_vec(self).unwrap_or_default();
        let mut all = Vec::with_capacity(4 + head.len() + dialect.len());
        all.extend_from_slice(&u32::try_from(head.len()).unwrap_or_default().to_be_bytes());
        all.extend_from_slice(&head);
        all.extend_from_slice(dialect);
        all.into()
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(super) fn read(blob: &[u8]) -> Option<(Self, &[u8])> {
        let (len, rest) = blob.split_first_chunk::<4>()?;
        let (head, dialect) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        Some((serde_json::from_slice(head).ok()?, dialect))
    }
}

/// Drives a runtime until it is stopped or dead for good, or left to the next gateway.
pub(super) async fn drive(
    spec: RuntimeSpec,
    make: Make,
    end: LinkEnd,
    settings: Arc<Settings>,
    leave: Arc<Notify>,
    mut birth: Birth,
) {
    let mut driver =
        Driver { spec, make, end, settings, leave, opens: VecDeque::new(), out: Outgoing::default(), stop: None };
    let mut early_deaths = 0;
    let mut generation = match &birth {
        Birth::New => 1,
        Birth::Found(found) => found.generation,
    };
    loop {
        let Some(death) = driver.live(generation, std::mem::replace(&mut birth, Birth::New)).await else { return };
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
    /// Told once when the gateway stops and the runtime is to stay.
    leave: Arc<Notify>,
    /// Sessions that wait to be opened.
    opens: VecDeque<Order>,
    out: Outgoing,
    /// It is to stop for good, and why.
    stop: Option<&'static str>,
}

/// What happened next.
enum Next {
    Stop,
    Leave,
    Order(Option<Order>),
    Due,
    Delivered,
    News(News),
    Done(desk::Outcome),
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
    /// One start, from its beginning until the process is gone and all it said is on its way; `None` if it is left to the
    /// next gateway.
    async fn live(&mut self, generation: u64, birth: Birth) -> Option<Death> {
        let mut life = match birth {
            Birth::New => match self.begin(generation).await {
                Ok(life) => life,
                Err(why) => {
                    let exit = Exit { reason: Some(format!("cannot start: {why}")), ..Exit::default() };
                    let routes = Routes::default();
                    return Some(Death { exit, routes, unborn: true, hopeless: false, healthy: false });
                }
            },
            Birth::Found(found) => self.go_on(*found),
        };
        let timer = sleep_until(Instant::now() + NEVER);
        tokio::pin!(timer);
        while life.status.is_none() || !life.stash.is_empty() || !self.out.is_empty() {
            if self.out.is_empty()
                && let Some(bytes) = life.stash.pop_front()
            {
                life.stashed -= bytes.len();
                self.heard(&mut life, &bytes);
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
            let hearing = living && life.stashed < STASH_MAX;
            // What a state of yesterday knows is no ground for orders of today.
            let caught_up = life.behind.is_none();
            let next = tokio::select! {
                biased;
                () = self.end.stop.notified(), if self.stop.is_none() => Next::Stop,
                () = self.leave.notified(), if living && life.ending.is_none() => Next::Leave,
                order = self.end.orders.recv(), if caught_up && self.stop != Some(UNUSED) => Next::Order(order),
                () = &mut timer => Next::Due,
                () = self.out.deliver(), if !self.out.is_empty() => Next::Delivered,
                done = life.desk.next(), if living => Next::Done(done),
                news = life.held.next(), if hearing => Next::News(news),
            };
            match next {
                Next::Stop => self.stop(&mut life, STOPPED),
                Next::Leave if self.can_leave(&life) => {
                    self.leave(life).await;
                    return None;
                }
                Next::Leave => self.stop(&mut life, STOPPED),
                Next::Order(Some(order)) => self.order(&mut life, order),
                Next::Order(None) => self.stop(&mut life, UNUSED),
                Next::Delivered => {}
                Next::News(news) => self.news(&mut life, news),
                Next::Done((id, done)) => self.step(&mut life, |dialect, out| dialect.done(id, done, out)),
                Next::Due => {
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
        self.settled(&mut life).await;
        life.held.bye();
        Some(self.death(life))
    }

    /// Starts the program.
    async fn begin(&mut self, generation: u64) -> Result<Life, String> {
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
        let dialect = (self.make)(&self.spec);
        let outlive = self.spec.outlive && dialect.save().is_some();
        let settings = &self.settings;
        let env = Arc::clone(&settings.env);
        // A line of any length that is passed on fits in the holder, and something after it.
        let spool_max = settings.line_max.saturating_add(settings.spool_more);
        let held = Held::start(&self.spec, &argv, &settings.hold_exe, env, &settings.holders, spool_max, outlive).await;
        let (held, welcome) = held?;
        let mut life =
            Life::new(generation, held, dialect, &self.spec, self.settings.as_ref(), (outlive, &self.end.journal));
        self.note(&format!("started, process {}", life.held.pid()));
        life.stderr.push(&welcome.stderr);
        self.show(|info| info.pid = Some(life.held.pid()));
        life.handshake = Some(Instant::now() + self.settings.handshake);
        self.step(&mut life, |dialect, out| dialect.open(out));
        Ok(life)
    }

    /// Goes on with a runtime that outlived an earlier gateway.
    fn go_on(&mut self, found: Survivor) -> Life {
        let Survivor { held, mut welcome, generation, sessions } = found;
        let mut life = Life::new(
            generation,
            held,
            (self.make)(&self.spec),
            &self.spec,
            self.settings.as_ref(),
            (true, &self.end.journal),
        );
        self.note(&format!("found again, process {}", life.held.pid()));
        life.stderr.push(&welcome.stderr);
        life.sessions = sessions.iter().map(|session| session.inlet.clone()).collect();
        // Only what the sessions heard, and what was answered, is heard again: after that all is news.
        life.behind = sessions.iter().map(|session| session.heard).max().or(Some(0));
        for session in sessions {
            life.routes.adopt(session);
        }
        life.replay = welcome.blobs.drain(..).collect();
        life.lines = Lines::at(self.settings.line_max, welcome.acked, None);
        (life.offset, life.lent, life.stated) = (welcome.acked, welcome.acked, welcome.acked);
        self.show(|info| {
            info.pid = Some(life.held.pid());
            info.stderr_tail = life.stderr.tail();
        });
        if let Some(since) = welcome.full_since {
            self.full(&mut life, since);
        }
        self.catch_up(&mut life);
        life
    }

    /// Takes over the states that were left, up to where the output was heard; after the last one this gateway knows all
    /// that the one before it did.
    fn catch_up(&mut self, life: &mut Life) {
        let Some(until) = life.behind else { return };
        let mut state = None;
        while life.replay.front().is_some_and(|(offset, _)| *offset <= life.offset) {
            state = life.replay.pop_front();
        }
        let mut dialect = (self.make)(&self.spec);
        match state.map(|(_, blob)| blob) {
            None => {}
            Some(blob)
                if let Some((kept, saved)) = Kept::read(&blob)
                    && dialect.restore(saved) =>
            {
                life.dialect = dialect;
                if let Some((head, dropped)) = kept.over
                    && let Ok(head) = data_encoding::HEXLOWER.decode(head.as_bytes())
                {
                    life.lines =
                        Lines::at(self.settings.line_max, life.offset, Some(Over { head: head.into(), dropped }));
                }
                (life.agent, life.kept_ready) = (kept.agent, kept.ready);
            }
            Some(_) => {
                life.replay.clear();
                life.hopeless = true;
                life.end("the state that an earlier gateway left of it cannot be read".into(), &self.settings);
            }
        }
        if !life.replay.is_empty() || life.offset < until {
            return;
        }
        life.behind = None;
        if life.kept_ready {
            life.ready = Some(Instant::now());
            let agent = life.agent.clone();
            self.show(|info| {
                info.state = RuntimeState::Ready;
                info.agent = agent;
            });
        } else {
            life.handshake = Some(Instant::now() + self.settings.handshake);
        }
        self.send(life);
        let (asks, prompts) = (life.dialect.asks(), life.dialect.prompts());
        let nobodys: Vec<AskKey> = asks.iter().filter(|key| !life.routes.asked(key)).cloned().collect();
        for key in nobodys {
            // Its session is gone; whoever waits for an answer gets one.
            self.step_quietly(life, |dialect, out| {
                dialect.command(Command::Answer { key, decision: Decision::Withdrawn }, out);
            });
        }
        for inlet in std::mem::take(&mut life.sessions) {
            self.out.push(inlet, FromRuntime::Found { asks: asks.clone(), prompts: prompts.clone() });
        }
        // Whatever it wanted to be woken for, it is now.
        self.step(life, |dialect, out| dialect.wake(out));
    }

    fn can_leave(&self, life: &Life) -> bool {
        life.outlive && self.stop.is_none()
    }

    /// Leaves the runtime to the next gateway: what was heard is kept, as far as it can be in time.
    async fn leave(&mut self, mut life: Life) {
        self.settled(&mut life).await;
        self.settle(&mut life);
    }

    /// Waits until all that was said is kept: then the holder may forget it.
    async fn settled(&mut self, life: &mut Life) {
        let ledger = Arc::clone(&life.ledger);
        let all = async {
            while !self.out.is_empty() {
                self.out.deliver().await;
            }
            while ledger.kept(life.offset) < life.offset {
                ledger.news().await;
            }
        };
        if life.outlive {
            let _ = tokio::time::timeout(LEAVE_WAIT, all).await;
        }
    }

    fn news(&mut self, life: &mut Life, news: News) {
        match news {
            News::Out { bytes, .. } => {
                if life.heard_at.elapsed() >= HEARD_EVERY {
                    life.heard_at = Instant::now();
                    let now = SystemTime::now().into();
                    self.show(|info| info.heard_at = Some(now));
                }
                if self.out.is_empty() && life.stash.is_empty() {
                    self.heard(life, &bytes);
                } else {
                    life.stashed += bytes.len();
                    life.stash.push_back(bytes);
                }
            }
            News::Err(text) => {
                life.stderr.push(&text);
                if life.stderr_due.is_none() {
                    let now = Instant::now();
                    life.stderr_due = Some(life.stderr_shown.map_or(now, |shown| (shown + STDERR_EVERY).max(now)));
                }
            }
            News::Full(since) => self.full(life, since),
            News::Room => {}
            News::StdinBroken => life.doom("it closed its stdin", self.settings.linger),
            News::StdoutClosed => life.doom("it closed its stdout", self.settings.linger),
            News::Exited { code, signal } => {
                life.status = Some((code, signal.map(process::signal_name)));
                let stopped = self.stop.is_some();
                self.show(|info| {
                    info.pid = None;
                    if stopped {
                        // Whoever waits for the stop need not wait for what was said before it.
                        info.state = RuntimeState::Exited;
                    }
                });
            }
            News::Gone(why) => {
                life.reason.get_or_insert(why);
                life.status = Some((None, None));
                self.show(|info| info.pid = None);
            }
        }
    }

    /// The holder was full and did not read the runtime: people are told why it stood still.
    fn full(&mut self, life: &mut Life, since: SystemTime) {
        let since: Timestamp = since.into();
        let message = "it said more than its holder keeps for a gateway that does not take it, and had to wait";
        let body = serde_json::json!({ "code": "held_back", "message": message, "since": since });
        life.routes.said(Said::Event { native: None, draft: Draft::new(Kind::Error, &body) });
        self.send(life);
    }

    /// Passes on what the runtime wrote.
    fn heard(&mut self, life: &mut Life, bytes: &Bytes) {
        life.lines.room().extend_from_slice(bytes);
        while let Some(line) = life.lines.next() {
            life.offset = life.lines.offset();
            life.routes.at(life.offset);
            self.line(life, line);
            self.catch_up(life);
        }
        life.offset = life.lines.offset();
        self.send(life);
        if life.offset - life.stated >= SETTLE_BYTES {
            self.settle(life);
        }
    }

    /// Gives the holder the state that goes with what was heard, and lets it forget what all sessions have kept.
    fn settle(&mut self, life: &mut Life) {
        life.settle_due = None;
        if !life.replay.is_empty() || life.broken {
            return;
        }
        if !life.outlive {
            life.held.ack(life.offset);
            life.stated = life.offset;
            return;
        }
        if life.offset > life.stated {
            let state = life.state(&self.spec);
            life.held.state(life.offset, state);
            life.states.push_back(life.offset);
            life.stated = life.offset;
        }
        let kept = life.ledger.kept(life.offset);
        let mut safe = None;
        while life.states.front().is_some_and(|offset| *offset <= kept) {
            safe = life.states.pop_front();
        }
        if let Some(offset) = safe {
            life.held.ack(offset);
        }
        if !life.states.is_empty() {
            life.settle_due = Some(Instant::now() + SETTLE_EVERY);
        }
    }

    /// Writes down what the gateway itself knows.
    fn note(&self, text: &str) {
        self.end.journal.add(SystemTime::now().into(), Writer::Gateway, text);
    }

    fn death(&self, mut life: Life) -> Death {
        life.stderr.finish();
        let (code, signal) = life.status.take().unwrap_or_default();
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
        self.note(&problem);
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
        self.write(life);
        let chores = std::mem::take(&mut life.step.chores);
        // What is heard again was seen to by the gateway that heard it first.
        if life.replay.is_empty() && life.ending.is_none() && life.status.is_none() {
            chores.into_iter().for_each(|chore| life.desk.start(chore));
        }
        for said in std::mem::take(&mut life.step.said) {
            match said {
                Said::Ready { agent } => {
                    life.ready.get_or_insert_with(Instant::now);
                    life.handshake = None;
                    (life.kept_ready, life.agent) = (true, agent.clone());
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
                Said::Found { native, cwd, title } => {
                    if self.end.found.try_send(Found { native, cwd, title }).is_err() {
                        self.show(|info| info.problem = Some("it has more sessions than could be opened here".into()));
                    }
                }
                said => life.routes.said(said),
            }
        }
    }

    /// Writes what the step wants written, with the state that knows of it.
    fn write(&mut self, life: &mut Life) {
        let mut frames = std::mem::take(&mut life.step.frames);
        // What is heard again was answered by the gateway that heard it first.
        let answered = !life.replay.is_empty();
        if frames.is_empty() || answered || life.ending.is_some() || life.status.is_some() {
            return;
        }
        let frame = if frames.len() == 1 { frames.swap_remove(0) } else { frames.concat().into() };
        let state = if life.outlive && !life.broken { life.state(&self.spec) } else { Bytes::new() };
        match life.held.put(life.offset, state, frame) {
            Ok(()) => {
                if life.outlive {
                    life.stated = life.offset;
                    life.states.push_back(life.offset);
                    life.settle_due.get_or_insert_with(|| Instant::now() + SETTLE_EVERY);
                }
            }
            Err(Unwritten::Full) => life.end("it does not read its stdin".into(), &self.settings),
            Err(Unwritten::Closed) => life.doom("it closed its stdin", self.settings.linger),
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
        let (from, to) = (life.lent, life.offset);
        for (inlet, said) in life.routes.take() {
            let upto = life.outlive.then(|| life.ledger.lend(from, to));
            self.out.push(inlet, FromRuntime::Said(said, upto));
        }
        life.lent = to;
        if life.offset > life.stated {
            life.settle_due.get_or_insert_with(|| Instant::now() + SETTLE_EVERY);
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
        if passed(&life.settle_due) {
            self.settle(life);
        }
        let Some(ending) = &mut life.ending else { return true };
        if ending.until > now {
            return true;
        }
        if !ending.killed {
            life.held.kill();
            *ending = Ending { killed: true, until: now + self.settings.stop_kill };
            return true;
        }
        let reason = life.reason.take().unwrap_or_default();
        life.reason = Some(format!("{reason}; it was killed and the kernel did not let it go"));
        false
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
    held: Held,
    lines: Lines,
    dialect: Box<dyn Dialect>,
    desk: Desk,
    step: Outbox,
    stderr: Stderr,
    routes: Routes,
    /// Since when sessions can be opened.
    ready: Option<Instant>,
    agent: Option<String>,
    kept_ready: bool,
    hopeless: bool,
    /// The dialect failed: what is still said is shown as it is.
    broken: bool,
    ending: Option<Ending>,
    /// Whether everybody was shown that it is being ended.
    told: bool,
    /// Why it was made to end.
    reason: Option<String>,
    /// Its exit code, or the signal that killed it, once it is gone.
    status: Option<(Option<i32>, Option<String>)>,
    handshake: Option<Instant>,
    wake: Option<Instant>,
    /// When it is made to end unless it ends by itself, and why.
    doom: Option<(Instant, &'static str)>,
    stderr_due: Option<Instant>,
    stderr_shown: Option<Instant>,
    /// When it last said something, as was shown.
    heard_at: Instant,
    /// Output that was taken from the holder and waits for room in the sessions, and its bytes.
    stash: VecDeque<Bytes>,
    stashed: usize,
    /// Whether it outlives the gateway: only then is what follows needed.
    outlive: bool,
    /// How much of its output was heard, in whole lines.
    offset: u64,
    /// Up to where it is on its way to sessions.
    lent: u64,
    ledger: Arc<Ledger>,
    /// Up to where the holder has a state, and all states that it has, but the one it goes back to.
    stated: u64,
    states: VecDeque<u64>,
    settle_due: Option<Instant>,
    /// States of an earlier gateway that are still to be taken over.
    replay: VecDeque<(u64, Bytes)>,
    /// Up to where at least is heard again what an earlier gateway heard; `None` once it was.
    behind: Option<u64>,
    /// Sessions to be told when that is done.
    sessions: Vec<Inlet>,
}

/// A process on its way out: its holder pushes it.
struct Ending {
    /// When to push harder ourselves.
    until: Instant,
    killed: bool,
}

impl Life {
    fn new(
        generation: u64,
        held: Held,
        dialect: Box<dyn Dialect>,
        spec: &RuntimeSpec,
        settings: &Settings,
        (outlive, journal): (bool, &Journal),
    ) -> Self {
        held.set_write_max(settings.write_max);
        let env = process::environment(&settings.env, spec);
        let desk = Desk::new(settings.hold_exe.clone(), env, spec.id.clone(), settings.clients.clone());
        Self {
            generation,
            held,
            lines: Lines::new(settings.line_max),
            dialect,
            desk,
            step: Outbox::default(),
            stderr: Stderr::new(journal.clone()),
            routes: Routes::default(),
            ready: None,
            agent: None,
            kept_ready: false,
            hopeless: false,
            broken: false,
            ending: None,
            told: false,
            reason: None,
            status: None,
            handshake: None,
            wake: None,
            doom: None,
            stderr_due: None,
            stderr_shown: None,
            heard_at: Instant::now() - HEARD_EVERY,
            stash: VecDeque::new(),
            stashed: 0,
            outlive,
            offset: 0,
            lent: 0,
            ledger: Arc::default(),
            stated: 0,
            states: VecDeque::new(),
            settle_due: None,
            replay: VecDeque::new(),
            behind: None,
            sessions: Vec::new(),
        }
    }

    /// What the next gateway needs, as of now.
    fn state(&self, spec: &RuntimeSpec) -> Bytes {
        let over = self.lines.over();
        let kept = Kept {
            spec: spec.clone(),
            generation: self.generation,
            ready: self.kept_ready,
            agent: self.agent.clone(),
            over: over.map(|over| (data_encoding::HEXLOWER.encode(&over.head), over.dropped)),
        };
        kept.write(&self.dialect.save().unwrap_or_default())
    }

    /// The next deadline.
    fn due(&self) -> Option<Instant> {
        let living = self.status.is_none();
        let doom = self.doom.as_ref().map(|(at, _)| *at).filter(|_| living && self.ending.is_none());
        let ending = self.ending.as_ref().map(|ending| ending.until).filter(|_| living);
        let handshake = self.handshake.filter(|_| living);
        let wake = self.wake.filter(|_| living && self.behind.is_none());
        let settle = self.settle_due.filter(|_| living);
        [doom, ending, handshake, wake, settle, self.stderr_due].into_iter().flatten().min()
    }

    /// Begins the end: stdin is closed; the holder sees to the rest.
    fn end(&mut self, why: String, settings: &Settings) {
        if self.ending.is_some() || self.status.is_some() {
            return;
        }
        self.reason = Some(why);
        self.doom = None;
        self.handshake = None;
        self.held.stop(settings.stop_stdin, settings.stop_term);
        let until = Instant::now() + settings.stop_stdin + settings.stop_term + settings.linger;
        self.ending = Some(Ending { until, killed: false });
    }

    /// Gives it a moment to end by itself.
    fn doom(&mut self, why: &'static str, linger: Duration) {
        if self.ending.is_none() && self.doom.is_none() {
            self.doom = Some((Instant::now() + linger, why));
        }
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
