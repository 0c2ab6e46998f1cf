//! The time from the start of the process to its first reply.

use anyhow::{Result, ensure};

use super::Size;
use super::clients::{Look, Wire};
use super::gateway::Gateway;
use super::table::{Row, Target, median};

/// Sessions of the stored events.
const SESSIONS: usize = 20;
/// Measured starts.
const STARTS: usize = 5;

/// With many events stored, after a clean stop and after `kill -9`; the floor is an empty home.
pub(crate) fn start(size: Size) -> Result<Vec<Row>> {
    let events = size.scale(100_000, 20);
    let mut empty = Vec::new();
    for _ in 0..STARTS {
        empty.push(Gateway::start()?.started_in.as_secs_f64() * 1000.0);
    }
    let mut gateway = Gateway::start()?;
    for _ in 0..SESSIONS {
        let session = gateway.session()?;
        let mut crowd = gateway.crowd(Wire::WebSocket, &session, 1, Look::Chunks)?;
        gateway.prompt(&session)?;
        gateway.control.say(&format!("stream {} 256", events / SESSIONS))?;
        crowd.until((events / SESSIONS) as u64)?;
        gateway.control.say("end")?;
        crowd.settle()?;
    }
    let mut dir = gateway.stop()?;
    let (mut clean, mut killed) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let gateway = Gateway::start_in(dir)?;
        clean.push(gateway.started_in.as_secs_f64() * 1000.0);
        let gateway = Gateway::start_in(gateway.kill())?;
        killed.push(gateway.started_in.as_secs_f64() * 1000.0);
        dir = gateway.stop()?;
    }
    ensure!(clean.len() == STARTS, "not every start was timed");
    eprintln!("    starts: empty {empty:.1?}, clean {clean:.1?}, killed {killed:.1?}");
    let floor = median(&mut empty);
    let row =
        |name: String, plexus| Row { name, unit: "ms", floor: Some(floor), plexus, target: Target::AtMost(150.0) };
    Ok(vec![
        row(format!("start to serving, {events} events stored"), median(&mut clean)),
        row("the same, after kill -9".into(), median(&mut killed)),
    ])
}
