//! The cost of a hook for a linked terminal: the time from the start of `plexus hook claude` to its end.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Size;
use super::gateway::{Gateway, program};
use super::table::{Row, Target, median};

/// A hook while no gateway runs, while one runs, and while one hangs; the floor is a program that does nothing.
pub(crate) fn hook(size: Size) -> Result<Vec<Row>> {
    let rounds = size.scale(200, 4);
    let gateway = Gateway::start()?;
    let nowhere = tempfile::tempdir()?;
    let transcript = nowhere.path().join("t.jsonl");
    std::fs::write(&transcript, "")?;
    let event = json!({
        "session_id": "bench", "transcript_path": transcript, "cwd": "/tmp", "hook_event_name": "MessageDisplay",
        "message_id": "m", "index": 0, "delta": "a line of text\n", "final": true,
    })
    .to_string();
    let run = |command: &mut Command| -> Result<f64> {
        let begin = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // The floor does not read it.
            let _ = stdin.write_all(event.as_bytes());
        }
        ensure!(child.wait()?.success(), "a hook failed");
        Ok(begin.elapsed().as_secs_f64() * 1000.0)
    };
    let hook = |home: &std::path::Path| {
        let mut command = Command::new(program());
        command.args(["hook", "claude"]).env("PLEXUS_HOME", home);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_ENTRYPOINT", "cli");
        command.env("CLAUDE_PID", std::process::id().to_string());
        command
    };
    let (mut floor, mut none, mut some, mut hangs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(run(&mut Command::new("true"))?);
        none.push(run(&mut hook(nowhere.path()))?);
        some.push(run(&mut hook(&gateway.home()))?);
    }
    let pid = i32::try_from(gateway.process.id()).ok().and_then(Pid::from_raw).context("a pid")?;
    kill_process(pid, Signal::STOP)?;
    for _ in 0..rounds {
        hangs.push(run(&mut hook(&gateway.home()))?);
    }
    kill_process(pid, Signal::CONT)?;
    let floor = median(&mut floor);
    let row = |name: &str, times: &mut [f64]| Row {
        name: name.into(),
        unit: "ms",
        floor: Some(floor),
        plexus: median(times),
        target: Target::AtMost(10.0),
    };
    Ok(vec![
        row("a hook of a terminal, no gateway", &mut none),
        row("a hook of a terminal", &mut some),
        row("a hook of a terminal, the gateway hangs", &mut hangs),
    ])
}
