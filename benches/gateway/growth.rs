//! Growth: the cost of one long text, many sessions, many prompts and a long log. The floor of each row is the cost of the smallest
//! size, scaled: linear cost stays at 1, other cost grows with the size.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Size;
use super::clients::{Look, Wire};
use super::gateway::{Gateway, Role};
use super::process::peak_memory;
use super::table::{Row, Target};

const MIB: usize = 1 << 20;
/// Timeout of each step.
const PATIENCE: Duration = Duration::from_secs(600);

/// Greatest factor that counts as linear: times on a busy machine vary.
const LINEAR: f64 = 1.5;

/// Rounds of one text.
const ROUNDS: usize = 3;

/// The row of a size `times` the smallest, whose cost was `first`.
fn grown(name: String, unit: &'static str, (first, times): (f64, f64), value: f64) -> Row {
    let target = if times > 1.0 { Target::Times(LINEAR) } else { Target::Told };
    Row { name, unit, floor: Some(first * times), plexus: value, target }
}

/// Peak memory and time of one text, by size and kind of event.
pub(crate) fn text(size: Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let sizes: &[usize] = if size.scale(2, 2) == 1 { &[1, 4] } else { &[1, 4, 16, 60] };
    for (way, sizes) in [("stream 1", sizes), ("tool", sizes), ("edit", sizes), ("prompt", &[1, 2, 4, 7][..])] {
        let mut first: Option<(f64, f64)> = None;
        for &mib in sizes {
            // The minimum of several rounds: other load can double a round of milliseconds.
            let (mut memory, mut took) = (f64::MAX, f64::MAX);
            for _ in 0..ROUNDS {
                let round = one_text(way, mib * MIB)?;
                (memory, took) = (memory.min(round.0), took.min(round.1));
            }
            let first = *first.get_or_insert((memory, took));
            let (name, times) = (if way == "stream 1" { "agent's text" } else { way }, mib as f64);
            rows.push(grown(format!("{name} of {mib} MiB, peak memory more"), "MiB", (first.0, times), memory));
            rows.push(grown(format!("{name} of {mib} MiB, until it is kept"), "ms", (first.1, times), took));
        }
    }
    Ok(rows)
}

/// Additional peak memory (MiB), and milliseconds until the log has the text.
fn one_text(way: &str, bytes: usize) -> Result<(f64, f64)> {
    let mut gateway = Gateway::start()?;
    let pid = gateway.process.id();
    let session = gateway.session()?;
    let mut client = gateway.client(Wire::WebSocket, &session, Role::Watches)?;
    let before = peak_memory(pid)?;
    let kind = match way {
        "stream 1" => "agent_message_chunk",
        "prompt" => "user_message_chunk",
        _ => "tool_call",
    };
    let began;
    if way == "prompt" {
        let text = "the quick brown fox jumps over the lazy dog ".repeat(bytes / 44);
        began = Instant::now();
        gateway.call("POST", &format!("/v1/sessions/{session}/prompt"), &json!({ "text": text }))?;
        gateway.control.hear("prompted")?;
    } else {
        gateway.prompt(&session)?;
        began = Instant::now();
        // Half of an edit is the old text, half the new.
        gateway.control.say(&format!("{way} {}", if way == "edit" { bytes / 2 } else { bytes }))?;
    }
    let wanted = format!("\"kind\":\"{kind}\"");
    client.next(|frame| {
        let head = &frame[..frame.len().min(1 << 10)];
        super::gateway::find_text(head, &wanted).then_some(())
    })?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    Ok(((peak_memory(pid)? - before) as f64 / MIB as f64, took))
}

/// Sessions of an agent that lists 300 models.
pub(crate) fn sessions(size: Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut first: Option<(f64, f64, usize)> = None;
    for count in [size.scale(250, 10), size.scale(500, 10), size.scale(1000, 10), size.scale(2000, 10)] {
        let mut gateway = Gateway::start()?;
        let pid = gateway.process.id();
        gateway.session()?;
        let home = gateway.home().with_file_name("many-models");
        std::fs::create_dir_all(&home)?;
        let before = peak_memory(pid)?;
        let began = Instant::now();
        for _ in 0..count {
            gateway.call("POST", "/v1/sessions", &json!({ "runtime_id": "bench", "cwd": home }))?;
        }
        let took = began.elapsed().as_secs_f64() * 1e3;
        let memory = (peak_memory(pid)? - before) as f64 / MIB as f64;
        let first = *first.get_or_insert((memory, took, count));
        let times = count as f64 / first.2 as f64;
        let name = |what| format!("{count} sessions of an agent with 300 models, {what}");
        rows.push(grown(name("peak memory more"), "MiB", (first.0, times), memory));
        rows.push(grown(name("to open"), "ms", (first.1, times), took));
    }
    Ok(rows)
}

/// Threads that send prompts at once.
const SENDERS: usize = 16;

/// One prompt in each of many sessions of one agent, all at once, until all have ended.
pub(crate) fn prompts(size: Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut first: Option<(f64, f64, usize)> = None;
    for count in [size.scale(125, 10), size.scale(250, 10), size.scale(500, 10), size.scale(1000, 10)] {
        let mut gateway = Gateway::start()?;
        let pid = gateway.process.id();
        let mut sessions = vec![gateway.session()?];
        for _ in 1..count {
            sessions.push(gateway.session()?);
        }
        let mut client = gateway.client(Wire::WebSocket, "*", Role::Watches)?;
        let before = peak_memory(pid)?;
        let began = Instant::now();
        std::thread::scope(|scope| {
            let send = |some: &[String]| {
                some.iter().try_for_each(|session| {
                    let path = format!("/v1/sessions/{session}/prompt");
                    gateway.call("POST", &path, &json!({ "text": "at once" })).map(drop)
                })
            };
            let senders: Vec<_> =
                sessions.chunks(count.div_ceil(SENDERS)).map(|some| scope.spawn(move || send(some))).collect();
            let mut ended = 0;
            client.next(|frame| {
                ended += usize::from(super::gateway::find_text(frame, "\"kind\":\"run_ended\""));
                (ended == count).then_some(())
            })?;
            senders.into_iter().try_for_each(|sender| sender.join().map_err(|_| anyhow::anyhow!("a sender died"))?)
        })?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        let memory = (peak_memory(pid)? - before) as f64 / MIB as f64;
        let first = *first.get_or_insert((memory, took, count));
        let times = count as f64 / first.2 as f64;
        rows.push(grown(format!("{count} prompts at once, peak memory more"), "MiB", (first.0, times), memory));
        rows.push(grown(format!("{count} prompts at once, until all runs ended"), "ms", (first.1, times), took));
    }
    Ok(rows)
}

/// A long log: starting, listing, attaching and replaying.
pub(crate) fn stored(size: Size) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut first: Option<([f64; 4], usize)> = None;
    for (sessions, events) in [(500, 100_000), (5000, 1_000_000)] {
        let (sessions, events) = (size.scale(sessions, 50), size.scale(events, 50));
        let mut gateway = Gateway::start()?;
        let busy = gateway.session()?;
        for _ in 1..sessions {
            gateway.call("POST", "/v1/sessions", &json!({ "runtime_id": "bench" }))?;
        }
        let mut crowd = gateway.crowd(Wire::WebSocket, &busy, 1, Look::Chunks)?;
        gateway.prompt(&busy)?;
        crowd.begin();
        gateway.control.say(&format!("stream {events} 64"))?;
        crowd.until(events as u64)?;
        gateway.control.say("end")?;
        drop(crowd);
        let gateway = Gateway::start_in(gateway.stop()?)?;
        let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
        let started = gateway.started_in.as_secs_f64() * 1e3;
        let began = Instant::now();
        let (mut listed, mut cursor) = (0, String::new());
        loop {
            let list: Value = serde_json::from_str(&gateway.text(&format!("/v1/sessions?cursor={cursor}"))?)?;
            listed += list["sessions"].as_array().context("no list")?.len();
            let Some(next) = list["next"].as_str() else { break };
            next.clone_into(&mut cursor);
        }
        ensure!(listed >= sessions, "{listed} of {sessions} sessions are listed");
        let listed = ms(began);
        let began = Instant::now();
        gateway.client(Wire::WebSocket, &busy, Role::Watches)?;
        let attached = ms(began);
        let began = Instant::now();
        let (mut after, mut seen) = (String::new(), 0);
        while seen < events {
            let page: Value =
                serde_json::from_str(&gateway.text(&format!("/v1/sessions/{busy}/events?limit=5000&after={after}"))?)?;
            let page_events = page["events"].as_array().context("no page")?.len();
            ensure!(page_events > 0 && began.elapsed() < PATIENCE, "the replay ended after {seen}");
            seen += page_events;
            page["next"].as_str().context("no cursor")?.clone_into(&mut after);
        }
        let all = [started, listed, attached, ms(began)];
        let first = *first.get_or_insert((all, events));
        let times = events as f64 / first.1 as f64;
        for (n, what) in ["start", "list", "attach", "replay by pages"].into_iter().enumerate() {
            let name = format!("{sessions} sessions and {events} events stored: {what}");
            rows.push(grown(name, "ms", (first.0[n], times), all[n]));
        }
    }
    Ok(rows)
}
