//! Memory of an idle subscriber, and of one that never reads.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Size;
use super::clients::{Look, Wire};
use super::gateway::{Gateway, Role, disk_use};
use super::process::{own_memory, raise_file_limit};
use super::table::{Row, Target, median};

/// Bytes of text in an event of the stream to a client that never reads.
const BIG: usize = 64 << 10;
/// Events of one run of the stream: the events of an unfinished run are never removed.
const RUN: usize = 512;

/// User memory of an idle, attached WebSocket subscriber; checks that all of them still get events.
pub(crate) fn idle(size: Size) -> Result<Vec<Row>> {
    let clients = size.scale(10_000, 20);
    raise_file_limit(clients as u64 + 500)?;
    let mut gateway = Gateway::start()?;
    let session = gateway.session()?;
    let pid = gateway.process.id();
    // One-time costs of the first subscribers do not count.
    let first = gateway.crowd(Wire::WebSocket, &session, 100, Look::Chunks)?;
    let before = own_memory(pid)?;
    let mut crowd = gateway.crowd(Wire::WebSocket, &session, clients, Look::Chunks)?;
    std::thread::sleep(Duration::from_millis(500));
    crowd.settle()?;
    let after = own_memory(pid)?;
    gateway.prompt(&session)?;
    crowd.begin();
    gateway.control.say("stream 3 256")?;
    crowd.until(3)?;
    gateway.control.say("end")?;
    crowd.settle()?;
    let heard = own_memory(pid)?;
    drop(first);
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / clients as f64 / 1024.0;
    let row = |name: String, plexus, target| Row { name, unit: "KiB", floor: None, plexus, target };
    Ok(vec![
        row(format!("memory of an idle WebSocket subscriber, {clients} of them"), each(after), Target::AtMost(8.0)),
        row("the same, after they all have heard something".into(), each(heard), Target::Told),
    ])
}

/// Peak private memory of a gateway while one client reads the stream, and optionally another does not.
fn flow(events: usize, sleeper: bool) -> Result<(u64, u64)> {
    let mut gateway = Gateway::start()?;
    let session = gateway.session()?;
    let pid = gateway.process.id();
    let mut crowd = gateway.crowd(Wire::WebSocket, &session, 1, Look::Chunks)?;
    let asleep = sleeper.then(|| gateway.client(Wire::WebSocket, &session, Role::Watches)).transpose()?;
    // Warm-up, until buffers and arenas have their size.
    let mut most = Vec::new();
    for run in 0..=events.div_ceil(RUN) {
        gateway.prompt(&session)?;
        crowd.settle_for(Duration::from_millis(20))?;
        crowd.begin();
        let now = if run == 0 { RUN.min(events) } else { RUN.min(events - (run - 1) * RUN) };
        gateway.control.say(&format!("stream {now} {BIG}"))?;
        crowd.until(now as u64)?;
        gateway.control.say("end")?;
        if run > 0 {
            most.push(own_memory(pid)? as f64);
        }
    }
    let disk = disk_use(&gateway.home());
    if let Some(client) = asleep {
        // It is still connected, or was disconnected with a reason; in either case it read nothing.
        client.socket.set_nonblocking(true)?;
        let mut byte = [0];
        let there = client.socket.peek(&mut byte);
        ensure!(there.is_ok(), "the client that never reads has nothing to read: {there:?}");
    }
    eprintln!(
        "    {}: own memory {:.1} to {:.1} MiB, {} MiB on the disk",
        if sleeper { "one never reads" } else { "all read" },
        most.iter().copied().fold(f64::INFINITY, f64::min) / 1048576.0,
        most.iter().copied().fold(0.0, f64::max) / 1048576.0,
        disk >> 20
    );
    Ok((median(&mut most) as u64, disk))
}

/// The cost of a client that never reads while 1 GiB is streamed.
pub(crate) fn sleeper(size: Size) -> Result<Vec<Row>> {
    let events = size.scale((1 << 30) / BIG, 20);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..size.scale(3, 3) {
        without.push(flow(events, false)?.0 as f64);
        with.push(flow(events, true)?.0 as f64);
    }
    let mib = |values: &mut [f64]| median(values) / 1048576.0;
    let (without, with) = (mib(&mut without), mib(&mut with));
    Ok(vec![Row {
        name: format!("memory more for a client that never reads, {} MiB flow", (events * BIG) >> 20),
        unit: "MiB",
        floor: None,
        plexus: with - without,
        target: Target::AtMost(1.0),
    }])
}
