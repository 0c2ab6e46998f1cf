//! Surfaces: CPU time of the server per delivered change of a surface that is updated ten times a second, beside a message chunk at
//! the same pace.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::Size;
use super::clients::{Crowd, Look, Wire};
use super::fan::{AFTERMATH, Bare};
use super::gateway::Gateway;
use super::process::Cpu;
use super::table::{Row, Target, median};

/// Time between two updates: a little more than a tenth of a second, so that none is merged with the one before.
const PACE: Duration = Duration::from_millis(105);
/// Bytes of text that each update appends.
const TEXT: usize = 256;
const ROUNDS: usize = 3;

/// Server CPU per delivery, in microseconds: `send` causes one frame for each client at every beat.
fn round(
    pid: u32,
    crowd: &mut Crowd,
    (updates, clients): (u64, usize),
    mut send: impl FnMut(u64) -> Result<()>,
) -> Result<f64> {
    crowd.begin();
    let before = Cpu::of(pid)?;
    let begin = Instant::now();
    for update in 1..=updates {
        std::thread::sleep((PACE * u32::try_from(update)?).saturating_sub(begin.elapsed()));
        send(update)?;
        crowd.until(update)?;
    }
    std::thread::sleep(AFTERMATH);
    let used = Cpu::of(pid)?.since(&before);
    Ok(used as f64 / (updates * clients as u64) as f64 / 1000.0)
}

/// CPU per delivery of a surface's changes and of message chunks, ten a second each, by WebSocket.
pub(crate) fn watched(size: Size, clients: usize) -> Result<Vec<Row>> {
    let clients = size.scale(clients, 10);
    let beats = (size.scale(50, 10) as u64, clients);
    let mut gateway = Gateway::start()?;
    let session = gateway.session()?;
    let pid = gateway.process.id();
    let path = format!("/v1/sessions/{session}/surfaces");
    let table = json!({ "surface": "log", "title": "Log", "data": { "rows": [] }, "components": [
        { "id": "root", "component": "Table", "columns": [{ "key": "text", "label": "Line" }], "rows": { "path": "/rows" } },
    ] });
    gateway.call("POST", &path, &table)?;
    let mut crowd = gateway.crowd(Wire::WebSocket, &session, clients, Look::Kind("surface_updated"))?;
    let update = json!({ "data": [{ "path": "/rows", "append": [{ "text": "x".repeat(TEXT) }] }] });
    // On a connection that is kept, as by `plexus mcp`; the gateway closes one that is idle between two rounds.
    let draws = |gateway: &Gateway, crowd: &mut Crowd, beats| {
        let mut kept = gateway.connection()?;
        let path = format!("{path}/log");
        round(pid, crowd, beats, |_| gateway.call_on(&mut kept, "PATCH", &path, &update).map(drop))
    };
    draws(&gateway, &mut crowd, (5, clients))?;
    let length = crowd.frame_length()?;

    let mut bare = Bare::new(Wire::WebSocket, clients, length)?;
    let floor_id = bare.floor.process.id();
    let (mut floors, mut surfaces, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        crowd.look_for(Look::Kind("surface_updated"));
        surfaces.push(draws(&gateway, &mut crowd, beats)?);

        gateway.prompt(&session)?;
        crowd.settle()?;
        crowd.look_for(Look::Chunks);
        gateway.control.say(&format!("step {} {TEXT}", beats.0))?;
        chunks.push(round(pid, &mut crowd, beats, |_| {
            gateway.control.token()?;
            gateway.control.hear("at").map(drop)
        })?);
        gateway.control.say("end")?;
        crowd.settle()?;

        let Bare { floor, crowd } = &mut bare;
        floor.control.say(&format!("step {} {TEXT}", beats.0))?;
        floors.push(round(floor_id, crowd, beats, |_| {
            floor.control.token()?;
            floor.control.hear("at").map(drop)
        })?);
    }
    eprintln!("    rounds: floor {floors:.3?}, surface {surfaces:.3?}, chunks {chunks:.3?}; {length} bytes a frame");
    let floor = median(&mut floors);
    let row = |what: &str, mut rounds: Vec<f64>, target| Row {
        name: format!("CPU a delivery, ws x {clients}, {what} 10 times a second"),
        unit: "us",
        floor: Some(floor),
        plexus: median(&mut rounds),
        target,
    };
    Ok(vec![row("a message chunk", chunks, Target::Told), row("a surface updated", surfaces, Target::Times(1.2))])
}
