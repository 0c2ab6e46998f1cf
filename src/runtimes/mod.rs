//! The back door: programs that agents are, their processes, and one driver for each.

mod driver;
mod lines;
pub mod presets;
mod process;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::dialects;
use crate::model::{Connect, RuntimeInfo, RuntimeSpec, RuntimeState};
use crate::sessions::{Launcher, Link};

/// What holds for every runtime. The defaults are what is served with; tests use shorter times.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The plexus program: `EXE hold --parent PID -- CMD` keeps an agent from outliving the gateway.
    pub exe: PathBuf,
    /// Longest line of an agent, in bytes; of a longer one the beginning is kept as a `raw` event, the rest is skipped.
    pub line_max: usize,
    /// How long the handshake may take; agents take up to ten seconds on a busy machine.
    pub handshake: Duration,
    /// How long an agent has to end after its stdin was closed, before it is sent TERM.
    pub after_eof: Duration,
    /// How long the holder has to end the whole family after TERM, before it is killed itself.
    pub after_term: Duration,
    /// The first pause before a restart; it doubles each time.
    pub backoff: Duration,
    /// The longest pause before a restart.
    pub backoff_max: Duration,
    /// A runtime that lived so long was healthy: the pauses begin anew.
    pub healthy: Duration,
    /// Deaths in a row after which a runtime is not started again.
    pub give_up: u32,
}

impl Settings {
    /// The defaults, with this plexus program.
    pub fn new(exe: PathBuf) -> Self {
        Self {
            exe,
            line_max: 64 << 20,
            handshake: Duration::from_secs(120),
            after_eof: Duration::from_secs(2),
            after_term: Duration::from_secs(7),
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            healthy: Duration::from_secs(60),
            give_up: 5,
        }
    }
}

/// Every runtime's driver.
pub struct Runtimes {
    settings: Arc<Settings>,
    drivers: Mutex<Drivers>,
}

#[derive(Default)]
struct Drivers {
    tasks: JoinSet<()>,
    links: Vec<Link>,
    closed: bool,
}

impl Runtimes {
    /// No runtimes yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), drivers: Mutex::default() }
    }

    /// Stops every runtime and waits until all of them are gone. Nothing can be started afterwards.
    pub async fn shutdown(&self) {
        let mut drivers = {
            let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
            drivers.closed = true;
            drivers.links.iter().for_each(Link::stop);
            std::mem::take(&mut drivers.tasks)
        };
        while drivers.join_next().await.is_some() {}
    }
}

impl Launcher for Runtimes {
    fn launch(&self, spec: RuntimeSpec) -> Result<Link, String> {
        let make = dialects::find(&spec.dialect).ok_or_else(|| {
            let known: Vec<&str> = dialects::TABLE.iter().map(|(name, _)| *name).collect();
            format!("no dialect is called {:?}; known: {}", spec.dialect, known.join(", "))
        })?;
        match &spec.connect {
            Connect::Command(command) if command.is_empty() => return Err("the command is empty".into()),
            Connect::Command(_) => {}
            Connect::Endpoint(to) => {
                return Err(format!("cannot connect to {to}: runtimes are started by `command` in this version"));
            }
        }
        let (link, end) = Link::new(RuntimeInfo {
            runtime_id: spec.id.clone(),
            dialect: spec.dialect.clone(),
            state: RuntimeState::Starting,
            connect: spec.connect.clone(),
            cwd: spec.cwd.display().to_string(),
            agent: None,
            pid: None,
            generation: 0,
            problem: None,
            stderr_tail: String::new(),
            updated_at: std::time::SystemTime::now().into(),
        });
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if drivers.closed {
            return Err("the gateway is stopping".into());
        }
        while drivers.tasks.try_join_next().is_some() {}
        drivers.links.retain(|link| link.info().state != RuntimeState::Exited);
        drivers.links.push(link.clone());
        drivers.tasks.spawn(driver::drive(spec, make, end, Arc::clone(&self.settings)));
        Ok(link)
    }
}
