//! An endpoint as a transport: its connections, one after the other, and the HTTP requests to it.
//!
//! A lost connection is made again for as long as the endpoint is in use; the dialect is the same across all of them. The endpoint
//! belongs to another program: it is never started, stopped or waited for.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use super::RuntimeSettings;
use super::driver::{Admission, CloseReason, Driver, Gates, Intake, StepCause, Transport, never};
use super::endpoint::{self, EndpointConnection, EndpointTarget, Fetching};
use super::endpoint_event::EndpointEvent;
use super::fetch_queue::{FetchQueue, WAITING_MAX};
use super::meter::ReplyCharge;
use super::recorder::Recording;
use super::sse::SseItem;
use plexus_dialects::{
    Dialect, EventDraft, HttpBase, HttpReply, HttpRequest, RuntimeCommand, RuntimeEvent, SessionLimit,
};
use plexus_protocol::{Connect, Kind, RuntimeSpec, RuntimeState, RuntimeStatusBody};
use plexus_sessions::{DriverEnd, RuntimeExit, RuntimeOrder};

/// Maximum number of orders that wait until the endpoint is ready; then its queue fills, and when that is full too, the endpoint counts
/// as stuck and is left.
const ORDERS_MAX: usize = 256;

/// Drives an endpoint until it is left for good.
pub(super) async fn drive(
    spec: RuntimeSpec,
    target: EndpointTarget,
    dialect: Box<dyn Dialect>,
    end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    leave: Arc<Notify>,
) {
    let address = match &spec.connect {
        Connect::Endpoint(address) => address.clone(),
        Connect::Command(_) => String::new(),
    };
    let dialect = Recording::begin(&settings, &spec, 1).wrap(dialect);
    let mut driver = Driver::new(spec, dialect, end, settings, leave, endpoint::READ);
    let mut endpoint = EndpointTransport {
        address,
        connection: dial(&target, &driver),
        target,
        timer: Box::pin(sleep_until(never())),
        due: None,
        fetches: FetchQueue::default(),
        fetching: FuturesUnordered::new(),
        deciding: FuturesUnordered::new(),
        refused: VecDeque::new(),
        was_ready: false,
        failures: 0,
        closed: None,
    };
    driver.run(&mut endpoint).await;
    endpoint.leave(driver).await;
}

/// The connections to an endpoint, and the requests to it beside them.
pub(super) struct EndpointTransport {
    /// The endpoint, as the user wrote it.
    address: String,
    target: EndpointTarget,
    connection: ConnectionState,
    /// The timer for the connection's deadline, as of this turn.
    timer: Pin<Box<Sleep>>,
    due: Option<Instant>,
    /// Requests that wait for their turn or are in progress.
    fetches: FetchQueue,
    /// The replies to the requests in progress, without decisions.
    fetching: FuturesUnordered<Fetching>,
    /// The replies to the decisions in progress, which are handled even while events wait for delivery.
    deciding: FuturesUnordered<Fetching>,
    /// Requests that did not fit the queue.
    refused: VecDeque<u64>,
    /// `true` if the endpoint has been ready before.
    was_ready: bool,
    /// Number of consecutive connections that never got ready.
    failures: u32,
    /// The reason why the endpoint is left for good, if it is.
    closed: Option<CloseReason>,
}

/// The connection.
enum ConnectionState {
    Connecting(Pin<Box<dyn Future<Output = Result<EndpointConnection, ConnectFailure>> + Send>>),
    /// The connection is open; the dialect's handshake has ended.
    Open(EndpointConnection, Instant),
    /// The next connection is made at this time.
    Resting(Instant),
}

/// The reason why there is no connection, and the replies to the dialect's probes of the address.
pub(super) struct ConnectFailure {
    reason: String,
    probed: Vec<Result<HttpReply, String>>,
}

/// Makes a request that probes the address.
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

pub(super) enum ConnectionEvent {
    /// The connection's deadline has passed.
    Due,
    Fetched(u64, Result<(HttpReply, ReplyCharge), String>),
    /// A request was refused because it did not fit the queue.
    Refused,
    Connected(Result<EndpointConnection, ConnectFailure>),
    Received(Vec<EndpointEvent>),
}

impl Transport for EndpointTransport {
    type Event = ConnectionEvent;

    async fn next(&mut self, intake: Intake) -> ConnectionEvent {
        let due = self.due;
        if let Some(at) = due
            && self.timer.deadline() != at
        {
            self.timer.as_mut().reset(at);
        }
        tokio::select! {
            biased;
            () = self.timer.as_mut(), if due.is_some() => ConnectionEvent::Due,
            Some((id, reply)) = self.deciding.next() => ConnectionEvent::Fetched(id, reply),
            Some((id, reply)) = self.fetching.next(), if intake.idle => ConnectionEvent::Fetched(id, reply),
            event = progress(&mut self.connection, intake.idle && intake.capacity) => event,
            () = std::future::ready(()), if !self.refused.is_empty() => ConnectionEvent::Refused,
        }
    }

    /// Sends nothing without a connection: the dialect knows that, and repeats everything later.
    fn send(&mut self, driver: &mut Driver, _cause: &StepCause) {
        let (frames, fetches) = (std::mem::take(&mut driver.step.frames), std::mem::take(&mut driver.step.fetches));
        if self.closed.is_some() {
            return;
        }
        for frame in frames {
            if let ConnectionState::Open(connection, _) = &mut self.connection {
                connection.send(frame);
            }
        }
        for fetch in fetches {
            // Not refused at once: a dialect that repeats the request at once would never end.
            if let Err(fetch) = self.fetches.push(fetch) {
                self.refused.push_back(fetch.id);
            }
        }
    }

    fn close(&mut self, driver: &mut Driver, reason: CloseReason) {
        driver.closing = true;
        self.closed.get_or_insert(reason);
    }

    fn prepare(&mut self, driver: &mut Driver) -> Option<Gates> {
        if self.closed.is_some() {
            return None;
        }
        self.due = match &self.connection {
            ConnectionState::Open(_, handshake) if driver.ready.is_none() => Some(*handshake),
            ConnectionState::Resting(until) => Some(*until),
            ConnectionState::Connecting(_) | ConnectionState::Open(..) => None,
        };
        while let Some(fetch) = self.fetches.next() {
            let to = if fetch.decides { &self.deciding } else { &self.fetching };
            to.push(self.fetch(fetch));
        }
        let held = if let ConnectionState::Open(connection, _) = &self.connection { connection.held() } else { 0 };
        Some(Gates { orders: driver.waiting.len() < ORDERS_MAX, leave: true, wake: true, reads: true, held })
    }

    fn handle(&mut self, driver: &mut Driver, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Due => match &self.connection {
                ConnectionState::Resting(_) => self.connection = dial(&self.target, driver),
                ConnectionState::Open(..) => {
                    let reason = format!("it did not finish its handshake within {:?}", driver.settings.handshake);
                    self.lost(driver, &reason);
                }
                ConnectionState::Connecting(_) => {}
            },
            ConnectionEvent::Fetched(id, reply) => {
                if self.fetches.finish(id, reply.is_ok()) {
                    self.replied(driver, id, reply);
                }
            }
            ConnectionEvent::Refused => {
                if let Some(id) = self.refused.pop_front() {
                    let reason = format!("{WAITING_MAX} requests are already waiting");
                    driver.step(self, StepCause::Other, |dialect, out| dialect.reply(id, Err(reason), out));
                }
            }
            ConnectionEvent::Connected(Ok(connection)) => {
                self.connection = ConnectionState::Open(connection, Instant::now() + driver.settings.handshake);
                driver.step(self, StepCause::Other, |dialect, out| dialect.open(out));
            }
            ConnectionEvent::Connected(Err(ConnectFailure { reason, probed })) => {
                let mistake = if probed.is_empty() { None } else { driver.dialect.mistaken(&probed) };
                self.unreached(driver, mistake.unwrap_or(&reason));
            }
            ConnectionEvent::Received(events) => self.receive(driver, events),
        }
    }

    fn ready(&mut self, driver: &mut Driver, _agent: Option<&str>) {
        self.failures = 0;
        if driver.ready.is_none() && std::mem::replace(&mut self.was_ready, true) {
            report_status(driver, "attached", None);
        }
    }

    fn admit(&self, driver: &Driver, order: &RuntimeOrder) -> Admission {
        if order.sender.is_closed() {
            return Admission::Dropped;
        }
        let opens = matches!(order.command, RuntimeCommand::Open { .. });
        if opens && driver.dialect.sessions() == SessionLimit::One && driver.routes.has_open_sessions() {
            return Admission::OneSession;
        }
        Admission::Admitted
    }
}

/// Connects; if that fails, probes the address for the dialect.
fn dial(target: &EndpointTarget, driver: &Driver) -> ConnectionState {
    let (target, events, probes) = (target.clone(), driver.dialect.events_path(), driver.dialect.probes());
    ConnectionState::Connecting(Box::pin(async move {
        let reason = match target.clone().connect(events).await {
            Ok(connection) => return Ok(connection),
            Err(reason) => reason,
        };
        let mut probed = Vec::with_capacity(probes.len());
        for path in probes {
            probed.push(target.clone().fetch(probe(path), false).await.map(|(reply, _charge)| reply));
        }
        Err(ConnectFailure { reason, probed })
    }))
}

/// Waits for the next event of the connection. Cancellation safe.
async fn progress(connection: &mut ConnectionState, reading: bool) -> ConnectionEvent {
    match connection {
        ConnectionState::Connecting(connecting) => ConnectionEvent::Connected(connecting.await),
        ConnectionState::Open(connection, _) => ConnectionEvent::Received(connection.next(reading).await),
        ConnectionState::Resting(_) => std::future::pending().await,
    }
}

/// Notifies every open session of the state of the connection.
fn report_status(driver: &mut Driver, status: &'static str, message: Option<&str>) {
    if driver.routes.has_sessions() {
        let message = message.map(str::to_owned);
        let body = RuntimeStatusBody { message, ..RuntimeStatusBody::new(&driver.spec.id, status) };
        let draft = EventDraft::new(Kind::RuntimeStatus, &body);
        driver.routes.route(RuntimeEvent::Event { native: None, draft });
    }
}

impl EndpointTransport {
    // === requests ===

    fn fetch(&self, fetch: HttpRequest) -> Fetching {
        let (target, id, remote) = (self.target.clone(), fetch.id, fetch.base == HttpBase::Remote);
        Box::pin(async move { (id, target.fetch(fetch, remote).await) })
    }

    fn replied(&mut self, driver: &mut Driver, id: u64, reply: Result<(HttpReply, ReplyCharge), String>) {
        // The meter charges the reply once its events are on their way.
        let (reply, _charge) =
            reply.map_or_else(|reason| (Err(reason), None), |(reply, charge)| (Ok(reply), Some(charge)));
        driver.offset += reply.as_ref().map_or(0, |reply| reply.body.len() as u64);
        driver.step(self, StepCause::Other, |dialect, out| dialect.reply(id, reply, out));
    }

    /// Sends earlier decisions before the endpoint is left: their receipts state that they were sent.
    async fn send_decisions(&mut self, driver: &mut Driver) {
        for order in std::mem::take(&mut driver.waiting) {
            match order.command {
                RuntimeCommand::Answer { .. } | RuntimeCommand::Cancel { .. } if driver.ready.is_some() => {
                    driver.command(self, order.command);
                }
                _ => driver.waiting.push_back(order),
            }
        }
        for fetch in std::mem::take(&mut self.fetches).into_decisions() {
            self.deciding.push(self.fetch(fetch));
        }
        let all = async {
            while let Some((id, reply)) = self.deciding.next().await {
                if let Err(reason) = reply {
                    tracing::warn!(request = id, why = %reason, "an answer may not have been delivered");
                }
            }
        };
        if tokio::time::timeout(driver.settings.decided, all).await.is_err() {
            tracing::warn!("answers may not have been delivered: the endpoint does not respond");
        }
    }

    /// Ends the driver: notifies sessions, and delivers the events on their way.
    async fn leave(mut self, mut driver: Driver) {
        let reason = self.closed.take().unwrap_or(CloseReason::Stopped);
        let left = matches!(reason, CloseReason::Leaving | CloseReason::Released);
        let stopped = !matches!(reason, CloseReason::Failed(_) | CloseReason::Released);
        let reason = reason.into_message();
        // Decisions among the orders are still sent.
        driver.closing = false;
        driver.close_orders().await;
        if stopped {
            self.send_decisions(&mut driver).await;
        }
        driver.show(|info| {
            info.state = RuntimeState::Exited;
            info.problem = Some(reason.clone());
        });
        driver.report_end(
            &RuntimeExit { reason: Some(reason.clone()), stopped, left, ..RuntimeExit::default() },
            &reason,
        );
        let (linger, out) = (driver.settings.linger, &mut driver.out);
        let goodbye = async move {
            if let ConnectionState::Open(connection, _) = self.connection {
                connection.close(linger).await;
            }
        };
        tokio::join!(goodbye, out.deliver());
    }

    // === the connection ===

    /// Handles a failure to reach the endpoint.
    fn unreached(&mut self, driver: &Driver, reason: &str) {
        let address = &self.address;
        let problem = if self.was_ready {
            format!("lost the connection to {address}; reconnecting: {reason}")
        } else {
            format!("cannot connect to {address}: {reason}; retrying")
        };
        self.show_problem(driver, problem);
        self.pause_before_reconnect(driver);
    }

    /// Handles the loss of the connection.
    fn lost(&mut self, driver: &mut Driver, reason: &str) {
        let problem = format!("lost the connection to {}: {reason}; reconnecting", self.address);
        if driver.ready.take().is_some() {
            report_status(driver, "lost", Some(&problem));
        }
        self.show_problem(driver, problem);
        self.pause_before_reconnect(driver);
        if self.closed.is_none() {
            driver.step_quietly(self, StepCause::Other, |dialect, out| dialect.lost(reason, out));
        }
        driver.flush(self);
    }

    fn pause_before_reconnect(&mut self, driver: &Driver) {
        let settings = &driver.settings;
        let pause = settings.pause_min.saturating_mul(1 << self.failures.min(16)).min(settings.pause_max);
        self.failures += 1;
        self.connection = ConnectionState::Resting(Instant::now() + pause);
    }

    fn show_problem(&self, driver: &Driver, problem: String) {
        driver.note(&problem);
        let state = if self.was_ready { RuntimeState::Restarting } else { RuntimeState::Starting };
        let same = {
            let info = driver.end.info.borrow();
            info.state == state && info.problem.as_ref() == Some(&problem)
        };
        if !same {
            driver.show(|info| {
                info.state = state;
                info.problem = Some(problem);
            });
        }
    }

    /// Passes on the events that were received together, and then the loss of the connection, if any.
    fn receive(&mut self, driver: &mut Driver, events: Vec<EndpointEvent>) {
        let mut lost = None;
        for event in events {
            match event {
                EndpointEvent::Frame(SseItem::Data(frame)) if self.closed.is_none() => {
                    driver.record_contact();
                    driver.offset += frame.len() as u64;
                    driver.step_quietly(self, StepCause::Frame, |dialect, out| dialect.feed(frame, out));
                }
                EndpointEvent::Frame(SseItem::Data(_)) => {}
                EndpointEvent::Frame(SseItem::Cut { head, dropped }) => {
                    let max = driver.settings.line_max;
                    driver.raw(head, &format!("message over the limit of {max} bytes; {dropped} bytes dropped"));
                }
                EndpointEvent::Lost(reason) => lost = Some(reason),
            }
        }
        driver.flush(self);
        if let Some(reason) = lost {
            self.lost(driver, &reason);
        }
    }
}
