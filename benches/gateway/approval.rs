//! The round trip of an approval: the agent's request, the client, the answer, the agent's stdin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Size;
use super::clients::{Client, Look, Wire};
use super::floor::Floor;
use super::gateway::{Gateway, Role, find_text};
use super::process::{scratch, scratch_in_memory};
use super::table::{Row, Target, median, percentile};

/// Measured rounds, after one warm-up round.
const ROUNDS: usize = 3;
/// Bytes of a floor's request frame.
const ASK_FRAME: usize = 700;
/// Timeout for the watchers to get an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause before each request, as in real use. Without it both ends are still warm from the last request.
const ASLEEP: Duration = Duration::from_millis(5);

/// Answers the next request.
fn answer(client: &mut Client) -> Result<()> {
    let request = client.next(|frame| {
        if !find_text(frame, "\"kind\":\"request_opened\"") {
            return None;
        }
        let message: Value = serde_json::from_slice(frame).ok()?;
        message["params"]["event"]["request_id"].as_str().map(ToOwned::to_owned)
    })?;
    let params = json!({ "request_id": request, "option_id": "allow" });
    client.say(&json!({ "jsonrpc": "2.0", "id": request, "method": "ui.request.answer", "params": params }).to_string())
}

/// Waits for the reply to [`answer`], which must say that it won.
fn receipt(client: &mut Client) -> Result<()> {
    let reply = client.next(|frame| {
        let message: Value = serde_json::from_slice(frame).ok()?;
        (message.get("method").is_none() && message.get("id").is_some()).then_some(message)
    })?;
    ensure!(reply["result"]["won"] == true, "the answer did not win: {reply}");
    Ok(())
}

/// One run of requests at a gateway; the times in nanoseconds. `before` runs before each request.
fn ours(
    gateway: &mut Gateway,
    session: &str,
    client: &mut Client,
    count: u64,
    mut before: impl FnMut() -> Result<()>,
) -> Result<Vec<u64>> {
    gateway.prompt(session)?;
    gateway.control.say(&format!("ask {count}"))?;
    let mut samples = Vec::new();
    for _ in 0..count {
        before()?;
        gateway.control.token()?;
        answer(client)?;
        samples.push(gateway.control.hear("took")?);
        receipt(client)?;
    }
    before()?;
    gateway.control.say("end")?;
    Ok(samples)
}

/// Measures the same with a bare loop between the agent's relay and the client's socket.
fn bare(floor: &mut Floor, client: &mut Client, count: u64, pause: Duration) -> Result<Vec<u64>> {
    floor.control.say(&format!("ask {count}"))?;
    let mut samples = Vec::new();
    for _ in 0..count {
        std::thread::sleep(pause);
        floor.control.token()?;
        client.next(|_| Some(()))?;
        client.say(r#"{"jsonrpc":"2.0","id":"q","method":"ui.request.answer","params":{"option_id":"allow"}}"#)?;
        samples.push(floor.control.hear("took")?);
    }
    Ok(samples)
}

/// With one client: state in memory, where a sync costs nothing, and on disk; after a pause, and without.
pub(crate) fn approval(size: Size) -> Result<Vec<Row>> {
    let count = size.scale(400, 20) as u64;
    let mut places = Vec::new();
    if let Some(dir) = scratch_in_memory() {
        places.push(("state in memory", dir));
    }
    places.push(("state on the disk", scratch()?));
    let mut rows = Vec::new();
    for (place, dir) in places {
        let mut floor = Floor::start(Wire::WebSocket, 1, ASK_FRAME, Some(dir.path()))?;
        let socket = std::net::TcpStream::connect(floor.addr)?;
        socket.set_nodelay(true)?;
        let mut floor_client = Client::new(socket, Wire::WebSocket, Vec::new());
        floor.ready()?;
        let mut gateway = Gateway::start_in(dir)?;
        let session = gateway.session()?;
        let mut client = gateway.client(Wire::WebSocket, &session, Role::Answers)?;
        for (pace, pause) in [("", ASLEEP), (" at once after the last", Duration::ZERO)] {
            let (mut floors, mut rounds) = (Vec::new(), Vec::new());
            for round in 0..=ROUNDS {
                let mut of_ours = ours(&mut gateway, &session, &mut client, count, || {
                    std::thread::sleep(pause);
                    Ok(())
                })?;
                let mut of_floor = bare(&mut floor, &mut floor_client, count, pause)?;
                if round > 0 {
                    rounds.push(percentile(&mut of_ours, 0.5) / 1000.0);
                    floors.push(percentile(&mut of_floor, 0.5) / 1000.0);
                }
            }
            eprintln!("    rounds, {place}{pace}: floor {floors:.1?}, plexus {rounds:.1?}");
            rows.push(Row {
                name: format!("approval round trip{pace}, {place}, p50"),
                unit: "us",
                floor: Some(median(&mut floors)),
                plexus: median(&mut rounds),
                target: Target::Times(3.0),
            });
        }
    }
    Ok(rows)
}

/// With many watchers.
pub(crate) fn approval_watched(size: Size) -> Result<Vec<Row>> {
    let (count, watchers) = (size.scale(200, 10) as u64, size.scale(1000, 10));
    let (dir, place) = match scratch_in_memory() {
        Some(dir) => (dir, "state in memory"),
        None => (scratch()?, "state on the disk"),
    };
    let mut gateway = Gateway::start_in(dir)?;
    let session = gateway.session()?;
    let mut crowd = gateway.crowd(Wire::WebSocket, &session, watchers, Look::Kind("request_resolved"))?;
    let mut client = gateway.client(Wire::WebSocket, &session, Role::Answers)?;
    // The next target of the watchers' thread, and its progress.
    let (wanted, seen, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let mut samples = std::thread::scope(|scope| -> Result<Vec<u64>> {
        let watching = scope.spawn(|| -> Result<()> {
            crowd.begin();
            let mut next = 1;
            while !over.load(Ordering::Acquire) {
                if wanted.load(Ordering::Acquire) < next {
                    // Watchers read everything at once.
                    crowd.settle_for(Duration::from_millis(1))?;
                    continue;
                }
                crowd.until(next)?;
                seen.store(next, Ordering::Release);
                next += 1;
            }
            Ok(())
        });
        let mut answered = None;
        let outcome = ours(&mut gateway, &session, &mut client, count, || {
            let before = answered.map_or(0, |answered| answered + 1);
            answered = Some(before);
            wanted.store(before, Ordering::Release);
            let deadline = Instant::now() + PATIENCE;
            while seen.load(Ordering::Acquire) < before && !watching.is_finished() {
                ensure!(Instant::now() < deadline, "the watchers did not all see the answer");
                std::thread::sleep(Duration::from_micros(500));
            }
            std::thread::sleep(ASLEEP);
            Ok(())
        });
        over.store(true, Ordering::Release);
        watching.join().ok().context("the watchers' thread panicked")??;
        outcome
    })?;
    eprintln!(
        "    p90 {:.1} us, p99 {:.1} us",
        percentile(&mut samples, 0.9) / 1000.0,
        percentile(&mut samples, 0.99) / 1000.0
    );
    Ok(vec![Row {
        name: format!("approval round trip, {watchers} watch, {place}, p50"),
        unit: "us",
        floor: None,
        plexus: percentile(&mut samples, 0.5) / 1000.0,
        target: Target::AtMost(1000.0),
    }])
}
