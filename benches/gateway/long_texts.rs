//! Long texts against the real binary, each kind by itself and all at once: the table in docs/limits.md.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::Size;
use super::gateway::Gateway;
use super::process::{memory, peak_memory};
use super::table::{Row, Target};

const MIB: usize = 1 << 20;
/// Runtimes of a gateway. Five of them have no control socket and follow their prompt.
const AGENTS: usize = 6;
/// Time from the last byte to the first measurement.
const SOON: Duration = Duration::from_secs(5);
/// Time from the last byte to the second measurement, when memory must have been given back.
const LATE: Duration = Duration::from_secs(30);

/// A gateway with six agents, and a session of each.
pub(crate) struct Scene {
    gateway: Gateway,
    sessions: Vec<String>,
    size: Size,
}

/// Bytes of a text in MiB; a thousandth of them in a smoke test.
fn mib(size: Size, count: usize) -> usize {
    size.scale(count * MIB, 1000)
}

impl Scene {
    fn start(size: Size) -> Result<Self> {
        let mut gateway = Gateway::start()?;
        let mut sessions = vec![gateway.session()?];
        for n in 1..AGENTS {
            let id = format!("agent-{n}");
            let command = json!([std::env::current_exe()?, "role-agent", gateway.control.path]);
            let runtime = json!({ "id": id, "dialect": "acp", "command": command, "cwd": gateway.home() });
            gateway.call("POST", "/v1/runtimes", &runtime)?;
            let session = gateway.call("POST", "/v1/sessions", &json!({ "runtime_id": id }))?;
            sessions.push(session["session_id"].as_str().context("no session")?.to_owned());
        }
        Ok(Self { gateway, sessions, size })
    }

    /// Starts a run in which an agent follows a command of the bench.
    fn prompt(&self, agent: usize, command: &str) -> Result<()> {
        let prompt = json!({ "text": format!("do: {command}") });
        self.gateway.call("POST", &format!("/v1/sessions/{}/prompt", self.sessions[agent]), &prompt).map(drop)
    }

    /// Runs a command of an agent to its end.
    fn write(&self, agent: usize, command: &str) -> Result<()> {
        self.prompt(agent, command)?;
        self.until_idle(agent)
    }

    fn until_idle(&self, agent: usize) -> Result<()> {
        let path = format!("/v1/sessions/{}", self.sessions[agent]);
        let deadline = std::time::Instant::now() + Duration::from_secs(120);
        loop {
            let session: serde_json::Value = serde_json::from_str(&self.gateway.text(&path)?)?;
            if session["state"] == "idle" {
                return Ok(());
            }
            anyhow::ensure!(std::time::Instant::now() < deadline, "the run does not end: {session}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends `count` requests at once and reads the responses.
    ///
    /// # Errors
    /// The gateway refused all of them; it may refuse any.
    fn at_once(&self, count: usize, request: impl Fn() -> Result<String> + Sync) -> Result<()> {
        let ends = std::thread::scope(|scope| {
            let requests: Vec<_> = (0..count).map(|_| scope.spawn(|| request().is_ok())).collect();
            requests.into_iter().map(|request| request.join().unwrap_or(false)).collect::<Vec<_>>()
        });
        anyhow::ensure!(ends.contains(&true), "the gateway refused all {count} requests");
        Ok(())
    }

    fn read(&self, agent: usize, what: &str) -> Result<String> {
        self.gateway.text(&format!("/v1/sessions/{}/{what}", self.sessions[agent]))
    }

    fn line(&self) -> Result<()> {
        self.write(0, &format!("stream 1 {}", mib(self.size, 63)))
    }

    fn lines(&self) -> Result<()> {
        for agent in 0..AGENTS {
            self.prompt(agent, &format!("stream 2 {}", mib(self.size, 60)))?;
        }
        (0..AGENTS).try_for_each(|agent| self.until_idle(agent))
    }

    fn snapshot(&self) -> Result<()> {
        self.read(0, "snapshot").map(drop)
    }

    fn export(&self) -> Result<()> {
        self.at_once(1, || self.read(0, "export?format=md"))
    }

    fn exports(&self) -> Result<()> {
        self.at_once(6, || self.read(0, "export?format=md"))
    }

    fn readers(&self) -> Result<()> {
        self.at_once(20, || self.read(1, "events?limit=5000"))
    }

    fn prompts(&self) -> Result<()> {
        let text = format!("at once {}", "x".repeat(mib(self.size, 7)));
        let path = format!("/v1/sessions/{}/prompt", self.sessions[2]);
        self.at_once(60, || self.gateway.call("POST", &path, &json!({ "text": text })).map(|answer| answer.to_string()))
    }

    fn plan(&self) -> Result<()> {
        self.write(3, &format!("plan {}", mib(self.size, 60)))
    }

    fn event(&self) -> Result<()> {
        self.write(1, &format!("stream 1 {}", mib(self.size, 20)))
    }

    fn line_and_event(&self) -> Result<()> {
        self.line()?;
        self.event()
    }

    fn all(&self) -> Result<()> {
        std::thread::scope(|scope| {
            let agents = scope.spawn(|| {
                self.plan()?;
                self.lines()
            });
            // One request, which the gateway may refuse.
            scope.spawn(|| self.snapshot());
            let clients: [fn(&Self) -> Result<()>; 3] = [Self::exports, Self::readers, Self::prompts];
            let clients = clients.map(|act| scope.spawn(move || act(self)));
            for thread in [agents].into_iter().chain(clients) {
                thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            }
            Ok(())
        })
    }
}

/// One kind of long texts.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The row's name on the command line.
    pub(crate) key: &'static str,
    name: &'static str,
    /// Preparation; its memory is part of the peak.
    prepare: fn(&Scene) -> Result<()>,
    act: fn(&Scene) -> Result<()>,
}

/// Every kind; the last is all others at once.
pub(crate) const KINDS: [Kind; 8] = [
    Kind { key: "line", name: "one line of 63 MiB", prepare: nothing, act: Scene::line },
    Kind { key: "snapshot", name: "its snapshot", prepare: Scene::line, act: Scene::snapshot },
    Kind { key: "export", name: "its Markdown export", prepare: Scene::line, act: Scene::export },
    Kind { key: "readers", name: "20 readers of an event of 20 MiB", prepare: Scene::event, act: Scene::readers },
    Kind { key: "lines", name: "12 lines of 60 MiB from six agents", prepare: nothing, act: Scene::lines },
    Kind { key: "prompts", name: "60 prompts of 7 MiB", prepare: nothing, act: Scene::prompts },
    Kind { key: "plan", name: "a plan of 60 MiB", prepare: nothing, act: Scene::plan },
    Kind { key: "all", name: "all of them at once, with six exports", prepare: Scene::line_and_event, act: Scene::all },
];

fn nothing(_: &Scene) -> Result<()> {
    Ok(())
}

/// Measures one kind, against a gateway of its own.
pub(crate) fn long_texts(size: Size, kind: Kind) -> Result<Vec<Row>> {
    let scene = Scene::start(size)?;
    (kind.prepare)(&scene)?;
    (kind.act)(&scene)?;
    let pid = scene.gateway.process.id();
    std::thread::sleep(if size.is_quick() { Duration::ZERO } else { SOON });
    let (peak, soon) = (peak_memory(pid)?, memory(pid)?);
    std::thread::sleep(if size.is_quick() { Duration::ZERO } else { LATE - SOON });
    let late = memory(pid)?;
    let row = |when: &str, bytes: u64, target| Row {
        name: format!("{}: {when}", kind.name),
        unit: "MiB",
        floor: None,
        plexus: bytes as f64 / MIB as f64,
        target,
    };
    Ok(vec![
        row("peak", peak, Target::AtMost(512.0)),
        row("5 s later", soon, Target::Told),
        row("30 s later", late, Target::AtMost(150.0)),
    ])
}
