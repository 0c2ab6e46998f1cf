//! One driver a runtime: reads what the agent says, gives it to the sessions it is for, and takes their orders to it. It
//! lives as long as the runtime is attached, over all its restarts.
//!
//! It waits for a session whose mailbox is full, and then the agent waits: a flood is slowed down at its source. Nothing
//! else makes it wait: orders and frames are given at once, or the agent is stuck and stopped.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::process::ChildStdout;
use tokio::time::timeout;

use super::Settings;
use super::lines::{Line, Lines};
use super::process::Process;
use crate::dialects::{AskKey, Command, Dialect, Draft, Fault, Make, Outbox, Said, Sessions};
use crate::model::{Connect, Decision, Kind, NativeId, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState, Ticket};
use crate::sessions::{Exit, FromRuntime, Inlet, LinkEnd, Order};

/// Events kept for the first session while there is none; older ones go, and an event says how many.
const EARLY: usize = 256;
/// How long stdout may stay open after the process has ended: something it started holds on to it.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often what an agent writes to stderr is shown.
const STDERR_EVERY: Duration = Duration::from_secs(1);

/// Drives a runtime until it is stopped, or dead for good.
pub(super) async fn drive(spec: RuntimeSpec, make: Make, mut end: LinkEnd, settings: Arc<Settings>) {
    let mut deaths = 0u32;
    for generation in 1.. {
        show(&end, |info| {
            info.state = RuntimeState::Starting;
            info.generation = generation;
            info.problem = None;
            info.agent = None;
        });
        let began = Instant::now();
        let exit = Life::new(&spec, make, generation, &settings).run(&mut end).await;
        deaths = if began.elapsed() >= settings.healthy { 1 } else { deaths + 1 };
        let problem = exit.reason.clone().unwrap_or_else(|| match (exit.code, &exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (_, Some(signal)) => format!("it was killed by {signal}"),
            _ => "it is gone".into(),
        });
        let again = !exit.stopped
            && !end.orders.is_closed()
            && match spec.restart {
                RestartPolicy::Never => false,
                RestartPolicy::OnFailure => exit.code != Some(0),
                RestartPolicy::Always => true,
            };
        let given_up = again && deaths >= settings.give_up;
        tracing::info!(runtime_id = %spec.id, %problem, again, "a runtime ended");
        show(&end, |info| {
            info.state = if again && !given_up { RuntimeState::Restarting } else { RuntimeState::Exited };
            info.pid = None;
            info.stderr_tail.clone_from(&exit.stderr_tail);
            info.problem = Some(match given_up {
                true => format!("{problem}; it died {deaths} times in a row and is not started again"),
                false => problem.clone(),
            });
        });
        if !again || given_up {
            break;
        }
        let pause = settings.backoff.saturating_mul(1 << (deaths - 1).min(16)).min(settings.backoff_max);
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        let stopped = loop {
            tokio::select! {
                () = &mut pause => break false,
                () = end.stop.notified() => break true,
                order = end.orders.recv() => match order {
                    Some(order) => refuse(order, &problem).await,
                    None => break true,
                },
            }
        };
        if stopped {
            show(&end, |info| info.state = RuntimeState::Exited);
            break;
        }
    }
    let why = end.info.borrow().problem.clone().unwrap_or_else(|| "it has exited".into());
    end.orders.close();
    while let Some(order) = end.orders.recv().await {
        refuse(order, &why).await;
    }
}

fn show(end: &LinkEnd, change: impl FnOnce(&mut RuntimeInfo)) {
    let mut info = RuntimeInfo::clone(&end.info.borrow());
    change(&mut info);
    info.updated_at = SystemTime::now().into();
    end.info.send_replace(Arc::new(info));
}

/// Tells whoever gave an order that nobody is there to take it.
async fn refuse(order: Order, why: &str) {
    let fault = Fault { code: -32000, message: format!("the runtime is not running: {why}"), data: None };
    let said = match order.command {
        Command::Open { ticket, .. } => Said::NotOpened { ticket, error: fault },
        Command::Call { ticket, notify: false, .. } => Said::Replied { ticket, reply: Err(fault) },
        // Whoever prompts, cancels or answers has been told of the end of the runtime.
        _ => return,
    };
    order.inlet.put(FromRuntime::Said(vec![said])).await;
}

/// A session of the runtime.
struct Route {
    native: NativeId,
    inlet: Inlet,
}

/// One start of a runtime, from spawn to exit.
struct Life<'a> {
    spec: &'a RuntimeSpec,
    settings: &'a Settings,
    generation: u64,
    dialect: Box<dyn Dialect>,
    routes: Vec<Route>,
    /// The session that was prompted last: questions that name none are most likely its.
    latest: usize,
    /// Where the outcome of a command goes.
    tickets: HashMap<Ticket, Inlet>,
    /// Sessions to open once the handshake is over.
    opens: Vec<Order>,
    ready: bool,
    opened: usize,
    early: VecDeque<Draft>,
    early_lost: usize,
    wake: Option<tokio::time::Instant>,
}

impl<'a> Life<'a> {
    fn new(spec: &'a RuntimeSpec, make: Make, generation: u64, settings: &'a Settings) -> Self {
        Self {
            spec,
            settings,
            generation,
            dialect: make(spec),
            routes: Vec::new(),
            latest: 0,
            tickets: HashMap::new(),
            opens: Vec::new(),
            ready: false,
            opened: 0,
            early: VecDeque::new(),
            early_lost: 0,
            wake: None,
        }
    }

    async fn run(mut self, end: &mut LinkEnd) -> Exit {
        let Connect::Command(command) = &self.spec.connect else {
            return Exit { reason: Some("it has no command".into()), ..Exit::default() };
        };
        let (mut process, stdout) = match Process::start(self.spec, command, self.settings, Arc::clone(&end.stop)) {
            Ok(started) => started,
            // Trying again would not install it.
            Err(why) => return self.over(Exit { reason: Some(why), stopped: true, ..Exit::default() }).await,
        };
        show(end, |info| info.pid = Some(process.pid));
        let mut lines = Lines::new(stdout, self.settings.line_max);
        let mut out = Outbox::default();
        self.dialect.open(&mut out);
        self.carry_out(out, &process, end).await;
        let handshake = tokio::time::sleep(self.settings.handshake);
        tokio::pin!(handshake);
        let mut look = tokio::time::interval(STDERR_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let exit = loop {
            let wake = async {
                match self.wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                more = lines.next() => match more {
                    Some(some) => self.hear(some, &process, end).await,
                    None => {
                        // It said its last word; if it does not end by itself now, it is ended.
                        if let Ok(exit) = timeout(self.settings.after_eof, process.ended()).await {
                            break exit;
                        }
                        process.stop("it closed its stdout and stayed");
                        break process.ended().await;
                    }
                },
                order = end.orders.recv() => match order {
                    Some(order) => self.order(order, &process, end).await,
                    None => {
                        process.stop("nobody needs it any more");
                        let exit = process.ended().await;
                        self.last_words(&mut lines, &process, end).await;
                        break Exit { stopped: true, ..exit };
                    }
                },
                exit = process.ended() => {
                    self.last_words(&mut lines, &process, end).await;
                    break exit;
                }
                () = wake => {
                    self.wake = None;
                    let mut out = Outbox::default();
                    self.dialect.wake(&mut out);
                    self.carry_out(out, &process, end).await;
                }
                _ = look.tick() => if let Some(tail) = process.stderr_news() {
                    show(end, |info| info.stderr_tail = tail);
                },
                () = &mut handshake, if !self.ready => {
                    process.stop(&format!("it did not shake hands within {} s", self.settings.handshake.as_secs()));
                    handshake.as_mut().reset(tokio::time::Instant::now() + self.settings.handshake);
                }
            }
        };
        self.over(exit).await
    }

    /// The process is gone; what it wrote before that is still in the pipe.
    async fn last_words(&mut self, lines: &mut Lines<ChildStdout>, process: &Process, end: &LinkEnd) {
        let all = async {
            while let Some(some) = lines.next().await {
                self.hear(some, process, end).await;
            }
        };
        let _ = timeout(LAST_WORDS, all).await;
    }

    /// Nothing follows: whoever waits is told.
    async fn over(self, exit: Exit) -> Exit {
        let mut message = exit.reason.clone().unwrap_or_else(|| match (exit.code, &exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (_, Some(signal)) => format!("it was killed by {signal}"),
            _ => "it is gone".into(),
        });
        if !exit.stderr_tail.trim().is_empty() {
            message = format!("{message}; it wrote: {}", exit.stderr_tail.trim());
        }
        for order in self.opens {
            refuse(order, &message).await;
        }
        for route in &self.routes {
            route.inlet.put(FromRuntime::Gone(exit.clone())).await;
        }
        // A session on its way, asked for and not yet opened.
        for inlet in self.tickets.values().filter(|inlet| !self.routes.iter().any(|route| route.inlet.same(inlet))) {
            inlet.put(FromRuntime::Gone(exit.clone())).await;
        }
        exit
    }

    async fn order(&mut self, order: Order, process: &Process, end: &LinkEnd) {
        let opens = matches!(order.command, Command::Open { .. });
        if opens && !self.ready {
            self.opens.push(order);
            return;
        }
        if order.generation != self.generation && !opens {
            return refuse(order, "it was started anew since").await;
        }
        let mut out = Outbox::default();
        match &order.command {
            Command::Open { ticket, .. } => {
                if self.dialect.sessions() == Sessions::One && self.opened > 0 {
                    let why = "this agent carries one session a process: attach another runtime for a second one";
                    return refuse(order, why).await;
                }
                self.opened += 1;
                self.tickets.insert(*ticket, order.inlet);
            }
            Command::Prompt { native, .. } => {
                self.latest = self.routes.iter().position(|route| route.native == *native).unwrap_or(self.latest);
            }
            Command::Call { ticket, notify: false, .. } => {
                self.tickets.insert(*ticket, order.inlet);
            }
            _ => {}
        }
        self.dialect.command(order.command, &mut out);
        self.carry_out(out, process, end).await;
    }

    /// Lines of one read: all of them are understood before anything is delivered, so that one commit keeps them.
    async fn hear(&mut self, lines: Vec<Line>, process: &Process, end: &LinkEnd) {
        let mut out = Outbox::default();
        for line in lines {
            let raw = |draft| Said::Event { native: None, draft };
            match line {
                Line::Whole(line) => self.dialect.feed(line, &mut out),
                Line::Unfinished(line) => {
                    out.said.push(raw(Draft::raw(line, "the agent stopped in the middle of this line")));
                }
                Line::Cut(kept, length) => {
                    let reason = format!(
                        "a line of {length} bytes is over the limit of {}; its first {} bytes are kept",
                        self.settings.line_max,
                        kept.len()
                    );
                    out.said.push(raw(Draft::raw(kept, &reason)));
                }
            }
        }
        self.carry_out(out, process, end).await;
    }

    /// Does what the dialect wants: frames to the agent, then what it said to the sessions.
    async fn carry_out(&mut self, first: Outbox, process: &Process, end: &LinkEnd) {
        let mut outs = VecDeque::from([first]);
        while let Some(out) = outs.pop_front() {
            for frame in out.frames {
                if process.send(frame).is_err() {
                    process.stop("it does not read its stdin");
                }
            }
            if let Some(after) = out.wake_after {
                let at = tokio::time::Instant::now() + after;
                self.wake = Some(self.wake.map_or(at, |sooner| sooner.min(at)));
            }
            let mut mail: Vec<(Inlet, Vec<Said>)> = Vec::new();
            for said in out.said {
                self.sort(said, &mut mail, &mut outs, process, end);
            }
            for (inlet, said) in mail {
                inlet.put(FromRuntime::Said(said)).await;
            }
        }
    }

    /// Finds whom something that the runtime said is for.
    fn sort(
        &mut self,
        said: Said,
        mail: &mut Vec<(Inlet, Vec<Said>)>,
        outs: &mut VecDeque<Outbox>,
        process: &Process,
        end: &LinkEnd,
    ) {
        match said {
            Said::Ready { agent } => {
                self.ready = true;
                show(end, |info| {
                    info.state = RuntimeState::Ready;
                    info.agent = agent;
                });
                for order in std::mem::take(&mut self.opens) {
                    let mut out = Outbox::default();
                    if let Command::Open { ticket, .. } = &order.command {
                        if self.dialect.sessions() == Sessions::One && self.opened > 0 {
                            let message = "this agent carries one session a process: attach another runtime".into();
                            let error = Fault { code: -32000, message, data: None };
                            push(mail, &order.inlet, Said::NotOpened { ticket: *ticket, error });
                            continue;
                        }
                        self.opened += 1;
                        self.tickets.insert(*ticket, order.inlet);
                    }
                    self.dialect.command(order.command, &mut out);
                    outs.push_back(out);
                }
            }
            Said::Failed { message } => process.stop(&message),
            Said::Opened { ticket, native, drafts } => {
                let Some(inlet) = self.tickets.remove(&ticket) else { return };
                self.routes.retain(|route| route.native != native && !route.inlet.is_closed());
                self.latest = self.routes.len();
                self.routes.push(Route { native: native.clone(), inlet: inlet.clone() });
                push(mail, &inlet, Said::Opened { ticket, native, drafts });
                if self.early_lost > 0 {
                    let message = format!("{} earlier messages were not kept", std::mem::take(&mut self.early_lost));
                    let body = serde_json::json!({ "code": "too_early", "message": message });
                    push(mail, &inlet, Said::Event { native: None, draft: Draft::new(Kind::Error, &body) });
                }
                for draft in self.early.drain(..) {
                    push(mail, &inlet, Said::Event { native: None, draft });
                }
            }
            Said::NotOpened { ticket, .. } => {
                self.opened = self.opened.saturating_sub(1);
                if let Some(inlet) = self.tickets.remove(&ticket) {
                    push(mail, &inlet, said);
                }
            }
            Said::Replied { ticket, .. } => {
                if let Some(inlet) = self.tickets.remove(&ticket) {
                    push(mail, &inlet, said);
                }
            }
            Said::Ended { ref native, .. } => {
                if let Some(inlet) = self.inlet_of(native) {
                    push(mail, &inlet, said);
                }
            }
            Said::TakenBack { native: Some(ref native), .. } => {
                if let Some(inlet) = self.inlet_of(native) {
                    push(mail, &inlet, said);
                }
            }
            Said::TakenBack { native: None, key } => {
                for route in &self.routes {
                    push(mail, &route.inlet, Said::TakenBack { native: None, key: key.clone() });
                }
            }
            Said::Asked { native, ask } => {
                let inlet = match &native {
                    Some(native) => self.inlet_of(native),
                    None => self.routes.get(self.latest).or(self.routes.first()).map(|route| route.inlet.clone()),
                };
                match inlet {
                    Some(inlet) => push(mail, &inlet, Said::Asked { native, ask }),
                    None => self.nobody_to_ask(ask.key, ask.native, mail, outs),
                }
            }
            Said::Event { native: Some(native), draft } => match self.inlet_of(&native) {
                Some(inlet) => push(mail, &inlet, Said::Event { native: Some(native), draft }),
                None => {
                    let frame = draft.native.unwrap_or(draft.body);
                    self.everybody(Draft::raw(frame, "for a session that the gateway did not open"), mail);
                }
            },
            Said::Event { native: None, draft } => self.everybody(draft, mail),
        }
    }

    fn inlet_of(&self, native: &NativeId) -> Option<Inlet> {
        let route = match self.routes.get(self.latest) {
            Some(latest) if latest.native == *native => Some(latest),
            _ => self.routes.iter().find(|route| route.native == *native),
        };
        route.map(|route| route.inlet.clone())
    }

    /// What names no session is for every session; if there is none yet, for the first one.
    fn everybody(&mut self, draft: Draft, mail: &mut Vec<(Inlet, Vec<Said>)>) {
        for route in &self.routes {
            push(mail, &route.inlet, Said::Event { native: None, draft: draft.clone() });
        }
        if self.routes.is_empty() {
            if self.early.len() == EARLY {
                self.early.pop_front();
                self.early_lost += 1;
            }
            self.early.push_back(draft);
        }
    }

    /// A question that no person can see must not leave the agent waiting.
    fn nobody_to_ask(
        &mut self,
        key: AskKey,
        frame: bytes::Bytes,
        mail: &mut Vec<(Inlet, Vec<Said>)>,
        outs: &mut VecDeque<Outbox>,
    ) {
        let mut out = Outbox::default();
        self.dialect.command(Command::Answer { key, decision: Decision::Withdrawn }, &mut out);
        outs.push_back(out);
        self.everybody(Draft::raw(frame, "a question of a session that the gateway did not open: withdrawn"), mail);
    }
}

fn push(mail: &mut Vec<(Inlet, Vec<Said>)>, inlet: &Inlet, said: Said) {
    match mail.iter_mut().find(|(there, _)| there.same(inlet)) {
        Some((_, batch)) => batch.push(said),
        None => mail.push((inlet.clone(), vec![said])),
    }
}
