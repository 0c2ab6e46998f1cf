//! Fan-out: CPU time of the server per delivered event, and the latency of delivery.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Size;
use super::agent::Control;
use super::clients::{Crowd, Look, Wire};
use super::floor::Floor;
use super::gateway::Gateway;
use super::process::Cpu;
use super::table::{Row, Target, median, percentile};

/// Bytes of text in an event.
const TEXT: usize = 256;
/// Measured rounds, after one warm-up round; gateway and floor alternate.
const ROUNDS: usize = 5;
/// Pause before CPU time is read: work after the delivery (log, bookkeeping) counts, too.
pub(super) const AFTERMATH: Duration = Duration::from_millis(50);

/// The speed at which the runtime writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regime {
    /// At the maximum speed that the pipe accepts.
    Pipelined,
    /// At most this many lines that some client does not have yet.
    InFlight(u64),
}

/// The next line once all clients have the last.
pub(crate) const LOCKSTEP: Regime = Regime::InFlight(1);

impl Regime {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Pipelined => "pipelined".into(),
            LOCKSTEP => "lockstep".into(),
            Self::InFlight(lines) => format!("{lines} in flight"),
        }
    }
}

/// A gateway with a session and its watchers.
struct Watched {
    gateway: Gateway,
    session: String,
    crowd: Crowd,
}

impl Watched {
    fn new(wire: Wire, clients: usize) -> Result<Self> {
        let mut gateway = Gateway::start()?;
        let session = gateway.session()?;
        let crowd = gateway.crowd(wire, &session, clients, Look::Chunks)?;
        Ok(Self { gateway, session, crowd })
    }

    /// One run around `work`; the run's own events are read before and after.
    fn run<T>(&mut self, work: impl FnOnce(u32, &mut Control, &mut Crowd) -> Result<T>) -> Result<T> {
        self.gateway.prompt(&self.session)?;
        self.crowd.settle()?;
        let done = work(self.gateway.process.id(), &mut self.gateway.control, &mut self.crowd)?;
        self.gateway.control.say("end")?;
        self.crowd.settle()?;
        Ok(done)
    }
}

/// A floor and its clients.
pub(super) struct Bare {
    pub(super) floor: Floor,
    pub(super) crowd: Crowd,
}

impl Bare {
    pub(super) fn new(wire: Wire, clients: usize, length: usize) -> Result<Self> {
        let mut floor = Floor::start(wire, clients, length, None)?;
        let crowd = Crowd::plain(floor.addr, wire, clients)?;
        floor.ready()?;
        Ok(Self { floor, crowd })
    }
}

/// Server CPU per delivery, in nanoseconds.
fn round(pid: u32, control: &mut Control, crowd: &mut Crowd, regime: Regime, events: u64, clients: u64) -> Result<f64> {
    crowd.begin();
    let before = Cpu::of(pid)?;
    match regime {
        Regime::Pipelined => {
            control.say(&format!("stream {events} {TEXT}"))?;
            crowd.until(events)?;
        }
        Regime::InFlight(lines) => {
            control.say(&format!("step {events} {TEXT}"))?;
            for _ in 0..lines.min(events) {
                control.token()?;
            }
            for seen in 1..=events {
                crowd.at_least(seen)?;
                control.hear("at")?;
                if seen + lines <= events {
                    control.token()?;
                }
            }
            crowd.until(events)?;
        }
    }
    std::thread::sleep(AFTERMATH);
    let used = Cpu::of(pid)?.since(&before);
    Ok(used as f64 / (events * clients) as f64)
}

/// CPU per delivery, by number of clients.
pub(crate) fn fan_out(size: Size, wire: Wire, clients: usize, regime: Regime) -> Result<Vec<Row>> {
    let clients = size.scale(clients, 10);
    let deliveries = match regime {
        Regime::Pipelined => size.scale(3_000_000, 100),
        Regime::InFlight(_) => size.scale(400_000, 100),
    };
    let (events, many) = ((deliveries / clients).max(20) as u64, clients as u64);
    let mut watched = Watched::new(wire, clients)?;
    watched.run(|pid, control, crowd| round(pid, control, crowd, regime, events.min(500), many))?;
    let length = watched.crowd.frame_length()?;
    let mut bare = Bare::new(wire, clients, length)?;
    let floor_id = bare.floor.process.id();
    round(floor_id, &mut bare.floor.control, &mut bare.crowd, regime, events.min(500), many)?;
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(watched.run(|pid, control, crowd| round(pid, control, crowd, regime, events, many))? / 1000.0);
        floors.push(round(floor_id, &mut bare.floor.control, &mut bare.crowd, regime, events, many)? / 1000.0);
    }
    eprintln!("    rounds: floor {floors:.3?}, plexus {ours:.3?}; {length} bytes a frame, {events} events");
    Ok(vec![Row {
        name: format!("CPU a delivery, {} x {clients}, {}", wire.name(), regime.name()),
        unit: "us",
        floor: Some(median(&mut floors)),
        plexus: median(&mut ours),
        target: Target::Times(1.2),
    }])
}

/// Nanoseconds from the agent's write to each client's read, one event in flight.
fn samples(control: &mut Control, crowd: &mut Crowd, events: u64, clients: u64) -> Result<Vec<u64>> {
    crowd.begin();
    control.say(&format!("step {events} {TEXT}"))?;
    let mut samples = Vec::new();
    for sent in 1..=events {
        crowd.arrivals = Some(Vec::new());
        control.token()?;
        crowd.until(sent)?;
        let at = control.hear("at")?;
        let arrivals = crowd.arrivals.take().unwrap_or_default();
        ensure!(arrivals.len() as u64 == clients, "{} arrivals at {clients} clients", arrivals.len());
        samples.extend(arrivals.into_iter().map(|arrival| arrival.saturating_sub(at)));
    }
    Ok(samples)
}

/// From the agent's line to the client's socket.
pub(crate) fn latency(size: Size, clients: usize) -> Result<Vec<Row>> {
    let (events, many) = (size.scale(4000, 20) as u64, clients as u64);
    let wire = Wire::WebSocket;
    let mut watched = Watched::new(wire, clients)?;
    watched.run(|_, control, crowd| samples(control, crowd, events.min(500), many))?;
    let length = watched.crowd.frame_length()?;
    let mut bare = Bare::new(wire, clients, length)?;
    samples(&mut bare.floor.control, &mut bare.crowd, events.min(500), many)?;
    let mut all: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let mut ours = watched.run(|_, control, crowd| samples(control, crowd, events, many))?;
        let mut floor = samples(&mut bare.floor.control, &mut bare.crowd, events, many)?;
        for (at, share) in [(0, 0.5), (2, 0.99)] {
            all[at].push(percentile(&mut floor, share) / 1000.0);
            all[at + 1].push(percentile(&mut ours, share) / 1000.0);
        }
    }
    eprintln!("    rounds: floor p50 {:.1?} p99 {:.1?}, plexus p50 {:.1?} p99 {:.1?}", all[0], all[2], all[1], all[3]);
    let [floor_p50, ours_p50, floor_p99, ours_p99] = all.map(|mut rounds| median(&mut rounds));
    let row = |name: &str, floor, plexus, most| Row {
        name: format!("agent's line to {clients} WebSocket{}, {name}", if clients == 1 { "" } else { "s" }),
        unit: "us",
        floor: Some(floor),
        plexus,
        target: Target::Times(most),
    };
    Ok(vec![row("p50", floor_p50, ours_p50, 2.0), row("p99", floor_p99, ours_p99, 4.0)])
}
