//! The task that owns the connection to an endpoint. One file: every arm of its one loop changes the same state.
//!
//! It connects, and connects again when the connection is lost, for as long as somebody wants it. The endpoint is
//! another's: it is never started, stopped or waited for.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::RuntimeSettings;
use super::endpoint::{self, EndpointConnection, EndpointEvent, EndpointTarget, Fetching};
use super::failure;
use super::fetch_queue::{FetchQueue, WAITING_MAX};
use super::found_sessions::{FoundSessions, too_many};
use super::meter::{MeteredRoom, ReplyCharge, RuntimeMeter};
use super::recorder::Recording;
use super::session_outbox::SessionOutbox;
use super::session_routes::{SessionRoutes, refusal};
use super::sse::SseItem;
use crate::metrics::metrics;
use crate::sessions::stderr_log::LogSource;
use crate::sessions::{AckTracker, DriverEnd, FoundSession, RuntimeExit, RuntimeMessage, RuntimeOrder, SessionSender};
use plexus_dialects::{
    Dialect, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RuntimeCommand, RuntimeEvent, SessionLimit,
};
use plexus_protocol::{
    Capabilities, Connect, Decision, Kind, RuntimeInfo, RuntimeSpec, RuntimeState, RuntimeStatusBody, Ticket,
};

/// Orders that wait until the endpoint is ready; then its queue fills, and when that is full too it is stuck, and left.
const HELD_MAX: usize = 256;

/// When nothing is due.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why it is left: the gateway stops, and connects to it again when it is back …
const AWAY: &str = "the gateway stopped; the endpoint continues, and so does this session when the gateway is back";
/// … or for good: somebody said so …
const STOPPED: &str = "it was stopped";
/// … or nobody can want anything of it any more.
const UNUSED: &str = "no longer in use";

/// Drives an endpoint until it is left for good.
pub(super) async fn drive(
    spec: RuntimeSpec,
    reach: EndpointTarget,
    dialect: Box<dyn Dialect>,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    leave: Arc<Notify>,
) {
    let at = match &spec.connect {
        Connect::Endpoint(at) => at.clone(),
        Connect::Command(_) => String::new(),
    };
    let dialect = Recording::begin(&settings, &spec, 1).of(dialect);
    let driver = Attached {
        at,
        meter: RuntimeMeter::new(&settings.ledger, spec.id.as_str(), endpoint::READ),
        acks: Arc::default(),
        heard: 0,
        lent: 0,
        spec,
        reach,
        dialect,
        end,
        settings,
        leave,
        step: Outbox::default(),
        routes: SessionRoutes::default(),
        out: SessionOutbox::default(),
        offers: FoundSessions::default(),
        held: VecDeque::new(),
        fetches: FetchQueue::default(),
        fetching: FuturesUnordered::new(),
        deciding: FuturesUnordered::new(),
        refused: VecDeque::new(),
        wake: None,
        ready: false,
        was_ready: false,
        failures: 0,
        over: None,
    };
    driver.live().await;
}

struct Attached {
    /// The endpoint, as people wrote it.
    at: String,
    spec: RuntimeSpec,
    reach: EndpointTarget,
    dialect: Box<dyn Dialect>,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    /// Told when the gateway stops.
    leave: Arc<Notify>,
    step: Outbox,
    routes: SessionRoutes,
    out: SessionOutbox,
    /// For what it said that is here and not kept yet.
    meter: RuntimeMeter,
    /// What of that is on its way to sessions.
    acks: Arc<AckTracker>,
    /// Bytes that it said, and up to where they are on their way.
    heard: u64,
    lent: u64,
    /// Conversations that were found there and wait to be opened here.
    offers: FoundSessions,
    /// Orders that wait until it is ready.
    held: VecDeque<RuntimeOrder>,
    /// Requests that wait for their turn or are under way.
    fetches: FetchQueue,
    /// The replies of those under way …
    fetching: FuturesUnordered<Fetching>,
    /// … and of the decisions among them, which are taken whatever waits to be delivered.
    deciding: FuturesUnordered<Fetching>,
    /// Requests that there was no room for.
    refused: VecDeque<u64>,
    wake: Option<Instant>,
    /// The handshake on this connection is over.
    ready: bool,
    /// It has been ready before.
    was_ready: bool,
    /// Connections in a row that never got ready.
    failures: u32,
    /// It is left for good: why, and whether people said so.
    over: Option<(String, bool)>,
}

/// The connection.
enum ConnectionState {
    Connecting(std::pin::Pin<Box<dyn Future<Output = Result<EndpointConnection, ConnectFailure>> + Send>>),
    /// It is there; the handshake is over by then, if not yet.
    Open(EndpointConnection, Option<Instant>),
    /// It is tried again at this time.
    Resting(Instant),
}

/// Why there is no connection, and what the dialect wanted to know of what is there instead.
struct ConnectFailure {
    why: String,
    probed: Vec<Result<HttpReply, String>>,
}

/// A request that looks at what is there.
fn probe(path: &str) -> HttpRequest {
    HttpRequest {
        id: 0,
        base: HttpBase::Connect,
        method: "GET",
        path: path.into(),
        body: None,
        decides: false,
        session: None,
    }
}

/// What happened next.
enum AttachedEvent {
    Leave,
    Stop,
    Order(Option<RuntimeOrder>),
    Due,
    Delivered,
    Offered,
    Room(MeteredRoom),
    Kept,
    Fetched(u64, Result<(HttpReply, ReplyCharge), String>),
    Refused,
    Connected(Result<EndpointConnection, ConnectFailure>),
    Heard(Vec<EndpointEvent>),
}

impl Attached {
    async fn live(mut self) {
        let mut line = self.dial();
        let timer = sleep_until(Instant::now() + NEVER);
        tokio::pin!(timer);
        while self.over.is_none() {
            let own = match &line {
                ConnectionState::Connecting(_) => None,
                ConnectionState::Open(_, handshake) => handshake.filter(|_| !self.ready),
                ConnectionState::Resting(until) => Some(*until),
            };
            let due = own.into_iter().chain(self.wake).min().unwrap_or_else(|| Instant::now() + NEVER);
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            self.fetch_next();
            // While a session has no room, or the endpoint's account has none, nothing more is taken from it; what is to be
            // sent still is.
            let quiet = self.out.is_empty();
            let unkept = usize::try_from(self.heard - self.acks.kept_up_to(self.heard)).unwrap_or(usize::MAX);
            let held = if let ConnectionState::Open(wire, _) = &line { wire.held() } else { 0 };
            let room = self.meter.room(unkept.saturating_add(held));
            let said = Arc::clone(&self.acks);
            let next = tokio::select! {
                biased;
                () = self.leave.notified() => AttachedEvent::Leave,
                () = self.end.stop.notified() => AttachedEvent::Stop,
                order = self.end.orders.recv(), if self.held.len() < HELD_MAX => AttachedEvent::Order(order),
                () = &mut timer => AttachedEvent::Due,
                Some((id, reply)) = self.deciding.next() => AttachedEvent::Fetched(id, reply),
                () = self.out.deliver(), if !quiet => AttachedEvent::Delivered,
                Some((id, reply)) = self.fetching.next(), if quiet => AttachedEvent::Fetched(id, reply),
                () = self.offers.offer(&self.end.found), if !self.offers.is_empty() => AttachedEvent::Offered,
                room = self.meter.wait(unkept == 0), if !room => AttachedEvent::Room(room),
                () = said.changed(), if !room => AttachedEvent::Kept,
                next = progress(&mut line, quiet && room) => next,
                () = std::future::ready(()), if !self.refused.is_empty() => AttachedEvent::Refused,
            };
            match next {
                AttachedEvent::Leave => self.over = Some((AWAY.into(), true)),
                AttachedEvent::Stop => self.over = Some((STOPPED.into(), true)),
                AttachedEvent::Order(None) => self.over = Some((UNUSED.into(), true)),
                AttachedEvent::Order(Some(order)) => {
                    self.order(order);
                    self.send();
                }
                AttachedEvent::Due => {
                    let now = Instant::now();
                    if self.wake.is_some_and(|at| at <= now) {
                        self.wake = None;
                        self.step(|dialect, out| dialect.wake(out));
                    }
                    match &line {
                        ConnectionState::Resting(until) if *until <= now => line = self.dial(),
                        ConnectionState::Open(_, Some(by)) if !self.ready && *by <= now => {
                            let why = format!("it did not finish its handshake within {:?}", self.settings.handshake);
                            line = self.lost(&why);
                        }
                        _ => {}
                    }
                }
                AttachedEvent::Delivered | AttachedEvent::Offered | AttachedEvent::Kept => {}
                AttachedEvent::Room(room) => self.meter.take(room),
                AttachedEvent::Fetched(id, reply) => {
                    if self.fetches.over(id, reply.is_ok()) {
                        self.replied(id, reply);
                    }
                }
                AttachedEvent::Refused => {
                    if let Some(id) = self.refused.pop_front() {
                        let why = format!("{WAITING_MAX} requests are already waiting");
                        self.step(|dialect, out| dialect.reply(id, Err(why), out));
                    }
                }
                AttachedEvent::Connected(Ok(wire)) => {
                    line = ConnectionState::Open(wire, Some(Instant::now() + self.settings.handshake));
                    self.step(|dialect, out| dialect.open(out));
                }
                AttachedEvent::Connected(Err(ConnectFailure { why, probed })) => {
                    let what = if probed.is_empty() { None } else { self.dialect.mistaken(&probed) };
                    line = self.unreached(what.unwrap_or(&why));
                }
                AttachedEvent::Heard(heard) => {
                    if let Some(why) = self.receive(heard) {
                        line = self.lost(&why);
                    }
                }
            }
            self.transmit(&mut line);
        }
        self.leave(line).await;
    }

    fn dial(&self) -> ConnectionState {
        let (reach, events, probes) = (self.reach.clone(), self.dialect.events_path(), self.dialect.probes());
        ConnectionState::Connecting(Box::pin(async move {
            let why = match reach.clone().connect(events).await {
                Ok(wire) => return Ok(wire),
                Err(why) => why,
            };
            let mut probed = Vec::with_capacity(probes.len());
            for path in probes {
                probed.push(reach.clone().fetch(probe(path), false).await.map(|(reply, _charge)| reply));
            }
            Err(ConnectFailure { why, probed })
        }))
    }

    // === requests ===

    /// Sends the requests whose turn it is.
    fn fetch_next(&mut self) {
        while let Some(fetch) = self.fetches.next() {
            let to = if fetch.decides { &self.deciding } else { &self.fetching };
            to.push(self.begin(fetch));
        }
    }

    fn begin(&self, fetch: HttpRequest) -> Fetching {
        let (reach, id, remote) = (self.reach.clone(), fetch.id, fetch.base == HttpBase::Remote);
        Box::pin(async move { (id, reach.fetch(fetch, remote).await) })
    }

    fn replied(&mut self, id: u64, reply: Result<(HttpReply, ReplyCharge), String>) {
        // Its charge is the meter's, once what it says is on its way.
        let (reply, _charge) = reply.map_or_else(|why| (Err(why), None), |(reply, charge)| (Ok(reply), Some(charge)));
        self.heard += reply.as_ref().map_or(0, |reply| reply.body.len() as u64);
        self.step(|dialect, out| dialect.reply(id, reply, out));
    }

    /// Sends what was decided before the endpoint is left: its receipts say that it was.
    async fn send_decisions(&mut self, line: &mut ConnectionState) {
        for order in std::mem::take(&mut self.held) {
            match order.command {
                RuntimeCommand::Answer { .. } | RuntimeCommand::Cancel { .. } if self.ready => {
                    self.step_quietly(|dialect, out| dialect.command(order.command, out));
                }
                _ => self.held.push_back(order),
            }
        }
        self.transmit(line);
        for fetch in std::mem::take(&mut self.fetches).into_decisions() {
            self.deciding.push(self.begin(fetch));
        }
        let all = async {
            while let Some((id, reply)) = self.deciding.next().await {
                if let Err(why) = reply {
                    tracing::warn!(request = id, %why, "an answer may not have been delivered");
                }
            }
        };
        if tokio::time::timeout(self.settings.decided, all).await.is_err() {
            tracing::warn!("answers may not have been delivered: the endpoint does not respond");
        }
    }

    /// Hands over what is to be sent. Without a connection it goes nowhere: the dialect knows, and says it all again.
    fn transmit(&mut self, line: &mut ConnectionState) {
        for frame in std::mem::take(&mut self.step.frames) {
            if let ConnectionState::Open(wire, _) = line {
                wire.send(frame);
            }
        }
    }

    /// The end of the driver: everybody is told, and what is on its way delivered.
    async fn leave(mut self, mut line: ConnectionState) {
        let (why, stopped) = self.over.take().unwrap_or_else(|| (STOPPED.into(), true));
        self.end.orders.close();
        while let Some(order) = self.end.orders.recv().await {
            self.held.push_back(order);
        }
        if stopped || why == UNUSED {
            self.send_decisions(&mut line).await;
        }
        self.show(|info| {
            info.state = RuntimeState::Exited;
            info.problem = Some(why.clone());
        });
        let (waiting, sessions) = self.routes.end();
        for (inlet, ticket) in waiting {
            self.refuse(inlet, ticket, why.clone());
        }
        for inlet in sessions {
            let exit = RuntimeExit { reason: Some(why.clone()), stopped, left: why == AWAY, ..RuntimeExit::default() };
            self.out.push(inlet, RuntimeMessage::Gone(exit));
        }
        for order in std::mem::take(&mut self.held) {
            if let RuntimeCommand::Open { ticket, .. } = order.command {
                self.refuse(order.inlet, ticket, why.clone());
            }
        }
        let (linger, out) = (self.settings.linger, &mut self.out);
        let goodbye = async move {
            if let ConnectionState::Open(wire, _) = line {
                wire.close(linger).await;
            }
        };
        tokio::join!(goodbye, out.deliver());
    }

    // === the connection ===

    /// It could not be reached.
    fn unreached(&mut self, why: &str) -> ConnectionState {
        let at = &self.at;
        let problem = if self.was_ready {
            format!("lost the connection to {at}; reconnecting: {why}")
        } else {
            format!("cannot connect to {at}: {why}; retrying")
        };
        self.show_problem(problem);
        self.pause_before_reconnect()
    }

    /// The connection is gone.
    fn lost(&mut self, why: &str) -> ConnectionState {
        let problem = format!("lost the connection to {}: {why}; reconnecting", self.at);
        if std::mem::take(&mut self.ready) {
            self.report_status("lost", Some(&problem));
        }
        self.show_problem(problem);
        self.step(|dialect, out| dialect.lost(why, out));
        self.pause_before_reconnect()
    }

    fn pause_before_reconnect(&mut self) -> ConnectionState {
        let pause = self.settings.pause_min.saturating_mul(1 << self.failures.min(16)).min(self.settings.pause_max);
        self.failures += 1;
        ConnectionState::Resting(Instant::now() + pause)
    }

    /// Shows what it can do, where that is news.
    fn show_capabilities(&self, now: Capabilities) {
        if self.end.info.borrow().capabilities.as_ref() != Some(&now) {
            self.show(|info| info.capabilities = Some(now));
        }
    }

    /// Shows how the endpoint stands.
    fn show(&self, change: impl FnOnce(&mut RuntimeInfo)) {
        let mut info = RuntimeInfo::clone(&self.end.info.borrow());
        change(&mut info);
        info.updated_at = SystemTime::now().into();
        self.end.info.send_replace(Arc::new(info));
    }

    fn show_problem(&self, problem: String) {
        tracing::debug!(problem, "noted");
        self.end.journal.add(SystemTime::now().into(), LogSource::Gateway, &problem);
        let state = if self.was_ready { RuntimeState::Restarting } else { RuntimeState::Starting };
        let same = {
            let info = self.end.info.borrow();
            info.state == state && info.problem.as_ref() == Some(&problem)
        };
        if !same {
            self.show(|info| {
                info.state = state;
                info.problem = Some(problem);
            });
        }
    }

    /// Tells every open session how the connection stands.
    fn report_status(&mut self, status: &'static str, message: Option<&str>) {
        if self.routes.taken() {
            let runtime_id = self.spec.id.as_str();
            let body = RuntimeStatusBody { status, runtime_id, message, ..RuntimeStatusBody::default() };
            self.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::RuntimeStatus, &body) });
        }
    }

    // === orders ===

    fn order(&mut self, order: RuntimeOrder) {
        if !self.ready {
            return self.held.push_back(order);
        }
        if order.inlet.is_closed() {
            return;
        }
        if let RuntimeCommand::Open { ticket, .. } = order.command
            && self.dialect.sessions() == SessionLimit::One
            && self.routes.taken_still()
        {
            let why = "this runtime supports only one session, which is already open";
            return self.refuse(order.inlet, ticket, why.into());
        }
        self.routes.ordered(&order);
        self.step_quietly(|dialect, out| dialect.command(order.command, out));
        if let Some(came) = order.pressed {
            metrics().answered(self.spec.id.as_str(), came);
        }
    }

    fn refuse(&mut self, inlet: SessionSender, ticket: Ticket, why: String) {
        self.out.push(inlet, RuntimeMessage::Said(vec![RuntimeEvent::NotOpened { ticket, error: refusal(why) }], None));
    }

    // === what the endpoint says ===

    /// Passes on what was heard at once, and then what it meant; why the connection is gone, if it is.
    fn receive(&mut self, heard: Vec<EndpointEvent>) -> Option<String> {
        let mut lost = None;
        for heard in heard {
            match heard {
                EndpointEvent::Told(SseItem::Data(frame)) => {
                    self.heard += frame.len() as u64;
                    self.step_quietly(|dialect, out| dialect.feed(frame, out));
                }
                EndpointEvent::Told(SseItem::Cut { head, dropped }) => self.cut(head, dropped),
                EndpointEvent::Lost(why) => lost = Some(why),
            }
        }
        self.send();
        lost
    }

    fn cut(&mut self, head: Bytes, dropped: u64) {
        let max = self.settings.line_max;
        let reason = format!("message over the limit of {max} bytes; {dropped} bytes dropped");
        self.routes.route(RuntimeEvent::Event { native: None, draft: EventDraft::raw(head, &reason) });
    }

    /// One step of the dialect, and all that follows from it.
    fn step(&mut self, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        self.step_quietly(step);
        self.send();
    }

    /// One step of the dialect; what was said is not on its way yet.
    fn step_quietly(&mut self, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        if self.over.is_some() {
            return;
        }
        // An endpoint's words must not be able to end its driver, which would leave its sessions waiting for ever.
        let (dialect, out) = (&mut self.dialect, &mut self.step);
        if catch_unwind(AssertUnwindSafe(|| step(dialect.as_mut(), out))).is_err() {
            let why =
                format!("the gateway's {} dialect failed on its output: this is a bug in Plexus", self.spec.dialect);
            self.over = Some((why, false));
        }
        if let Some(after) = self.step.wake_after.take() {
            let at = Instant::now() + after;
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
        for mut said in std::mem::take(&mut self.step.events) {
            if let Some(words) = failure::explain(&mut said, String::new) {
                self.end.journal.add(SystemTime::now().into(), LogSource::Gateway, &words);
            }
            match said {
                RuntimeEvent::Ready { agent } => self.got_ready(agent),
                RuntimeEvent::Failed { message } => self.over = Some((message, false)),
                RuntimeEvent::Found { native, cwd, title } => self.found(FoundSession { native, cwd, title }),
                said => {
                    let opened = matches!(said, RuntimeEvent::Opened { .. });
                    self.routes.route(said);
                    if opened {
                        // Some agents say only then what there is to choose from.
                        self.show_capabilities(self.dialect.capabilities());
                    }
                }
            }
        }
        for fetch in std::mem::take(&mut self.step.fetches) {
            // Not refused on the spot: a dialect that asks again at once would never come to an end.
            if let Err(fetch) = self.fetches.push(fetch) {
                self.refused.push_back(fetch.id);
            }
        }
    }

    fn got_ready(&mut self, agent: Option<String>) {
        self.failures = 0;
        if !std::mem::replace(&mut self.ready, true) && std::mem::replace(&mut self.was_ready, true) {
            self.report_status("attached", None);
        }
        let capabilities = self.dialect.capabilities();
        self.show(|info| {
            info.state = RuntimeState::Ready;
            info.problem = None;
            info.capabilities = Some(capabilities);
            if agent.is_some() {
                info.agent = agent;
            }
        });
    }

    fn found(&mut self, found: FoundSession) {
        if self.routes.knows(&found.native) {
            return;
        }
        if !self.offers.push(found) {
            self.show(|info| info.problem = Some(too_many()));
        }
    }

    /// Sends off what was said, and does what can be done now.
    fn send(&mut self) {
        while self.ready && self.over.is_none() {
            let Some(order) = self.held.pop_front() else { break };
            self.order(order);
        }
        for key in self.routes.abandoned_requests() {
            self.step_quietly(|dialect, out| {
                dialect.command(RuntimeCommand::Answer { key, decision: Decision::Withdrawn }, out);
            });
        }
        let (from, to) = (self.lent, self.heard);
        for (inlet, batch) in self.routes.take() {
            self.out.push(inlet, RuntimeMessage::Said(batch, Some(self.acks.track(from, to, false))));
        }
        self.lent = to;
    }
}

/// What the connection has to say next. Cancellation safe.
async fn progress(line: &mut ConnectionState, reading: bool) -> AttachedEvent {
    match line {
        ConnectionState::Connecting(connecting) => AttachedEvent::Connected(connecting.await),
        ConnectionState::Open(wire, _) => AttachedEvent::Heard(wire.next(reading).await),
        ConnectionState::Resting(_) => std::future::pending().await,
    }
}
