//! The back door: starts agent programs and connects to running ones, carries what they say to the sessions and what the sessions want to them, and
//! sees to it that none outlives its use.
//!
//! One task, the driver, lives as long as a runtime may be started again. It never waits for the runtime to read, nor
//! with its hands full: while a session has no room for what was said, nothing more is read from the runtime, which then
//! waits itself; orders, deadlines and the end of the process are still attended to.

mod address;
mod attached;
#[cfg(test)]
mod attached_tests;
mod desk;
mod desk_files;
mod desk_terminal;
#[cfg(test)]
mod desk_tests;
mod driver;
mod endpoint;
pub mod held;
mod lines;
mod outgoing;
pub mod presets;
mod process;
mod routes;
mod sse;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use self::driver::{Birth, Kept, Survivor};
use self::endpoint::Reach;
use self::held::{Held, News};
use crate::dialects::{self, Dialect, Make};
use crate::model::{Connect, RuntimeId, RuntimeInfo, RuntimeSpec};
use crate::sessions::{Adopted, Launcher, Left, Link, LinkEnd, ToClients};

pub use presets::{Preset, PresetError, preset, presets};

/// Longest line of a runtime that is passed on, in bytes; of a longer one the first MiB is kept and the rest counted.
const LINE_MAX: usize = 64 * 1024 * 1024;

/// What a holder keeps for a gateway that does not take it, beside the longest line, in bytes (16 MiB). With more the
/// runtime waits.
const SPOOL_MORE: usize = 16 * 1024 * 1024;

/// What may wait for a runtime's stdin, in bytes (and one frame); with more the runtime is stuck, and stopped.
const WRITE_MAX: usize = 8 * 1024 * 1024;

/// How long a runtime has to end by itself after its stdin was closed; then it gets SIGTERM.
const STOP_STDIN: Duration = Duration::from_secs(2);

/// How long its holder has after SIGTERM, before holder and group are killed. The holder gives the family one second,
/// then kills it and waits up to five for the kernel; killed earlier, it could leave somebody behind.
const STOP_TERM: Duration = Duration::from_secs(7);

/// How long a killed process may take to vanish; one that the kernel does not let go is then given up, and said to be.
const STOP_KILL: Duration = Duration::from_secs(5);

/// How long is waited for the rest of the output when the process is gone, for the process when its output is, and for
/// either when it takes no input any more. Then somebody else holds the pipe, or it hangs: it is not waited for.
const LINGER: Duration = Duration::from_secs(1);

/// How long a handshake may take: agents need ten seconds on a busy machine, and more when they fetch something first.
/// A runtime that takes longer is stopped.
const HANDSHAKE: Duration = Duration::from_secs(120);

/// The pause before the first restart; it doubles with each early death …
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// … up to this.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A runtime that was ready for this long was healthy: its next death is the first.
const HEALTHY: Duration = Duration::from_secs(60);

/// After this many early deaths in a row it is not started again.
const GIVE_UP: u32 = 5;

/// How long an endpoint may take to take a connection …
const CONNECT: Duration = Duration::from_secs(5);

/// … and then to answer for the first time. One that is starting takes connections and answers none; it is tried again.
const ANSWER: Duration = Duration::from_secs(10);

/// How long the reply to one HTTP request may take; the dialect then hears that there was none. Work is not waited for in
/// a reply: dialects ask for it and hear of it in events.
const FETCH: Duration = Duration::from_secs(120);

/// What the back door needs to know, and how patient it is. The defaults are for use, the fields for tests.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The `plexus` program: every runtime is started as `plexus hold --socket PATH -- PROGRAM ARGS`.
    pub hold_exe: PathBuf,
    /// The folder of the holders' sockets, where the next gateway finds them.
    pub holders: PathBuf,
    /// The environment that runtimes get their allowed variables from.
    pub env: Arc<BTreeMap<OsString, OsString>>,
    /// Longest line passed on, in bytes. 64 MiB.
    pub line_max: usize,
    /// What a holder keeps beside the longest line, in bytes. 16 MiB.
    pub spool_more: usize,
    /// What may wait for a runtime's stdin, in bytes. 8 MiB.
    pub write_max: usize,
    /// From the end of stdin to SIGTERM. 2 s.
    pub stop_stdin: Duration,
    /// From SIGTERM to SIGKILL. 7 s.
    pub stop_term: Duration,
    /// From SIGKILL to giving up on the process. 5 s.
    pub stop_kill: Duration,
    /// For the rest of the output, or the end of a process that shut its pipes. 1 s.
    pub linger: Duration,
    /// For the handshake. 120 s.
    pub handshake: Duration,
    /// The first pause before a restart. 0.5 s.
    pub pause_min: Duration,
    /// The longest. 30 s.
    pub pause_max: Duration,
    /// How long a runtime must have been ready for its death not to count as early. 60 s.
    pub healthy: Duration,
    /// Early deaths in a row before it is left dead. 5.
    pub give_up: u32,
    /// For an endpoint to take a connection. 5 s.
    pub connect: Duration,
    /// For an endpoint's first answer on it. 10 s.
    pub answer: Duration,
    /// For the reply to one HTTP request. 120 s.
    pub fetch: Duration,
    /// How runtimes reach the clients that do for agents what these ask their client.
    pub clients: ToClients,
}

impl Settings {
    /// The settings for use, with this process's environment.
    pub fn new(hold_exe: PathBuf, holders: PathBuf) -> Self {
        Self {
            hold_exe,
            holders,
            env: Arc::new(std::env::vars_os().collect()),
            line_max: LINE_MAX,
            spool_more: SPOOL_MORE,
            write_max: WRITE_MAX,
            stop_stdin: STOP_STDIN,
            stop_term: STOP_TERM,
            stop_kill: STOP_KILL,
            linger: LINGER,
            handshake: HANDSHAKE,
            pause_min: PAUSE_MIN,
            pause_max: PAUSE_MAX,
            healthy: HEALTHY,
            give_up: GIVE_UP,
            connect: CONNECT,
            answer: ANSWER,
            fetch: FETCH,
            clients: ToClients::default(),
        }
    }

    /// The longest that a stop can take.
    fn stop(&self) -> Duration {
        self.stop_stdin + self.stop_term + self.stop_kill + 2 * self.linger
    }
}

/// Every driver there is.
pub struct Runtimes {
    settings: Arc<Settings>,
    drivers: Mutex<Drivers>,
    left: Mutex<HashMap<RuntimeId, (RuntimeSpec, Survivor)>>,
    make: fn(&str) -> Option<Make>,
}

#[derive(Default)]
struct Drivers {
    closed: bool,
    running: Vec<Running>,
}

/// A driver at work.
struct Running {
    leave: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Runtimes {
    /// A back door without runtimes.
    pub fn new(settings: Settings) -> Self {
        Self::speaking(settings, dialects::find)
    }

    /// A back door whose runtimes speak other dialects than the usual ones.
    pub fn speaking(settings: Settings, make: fn(&str) -> Option<Make>) -> Self {
        Self { settings: Arc::new(settings), drivers: Mutex::default(), left: Mutex::default(), make }
    }

    /// Leaves every runtime that outlives the gateway to the next one, stops the others as [`Link::stop`] says, all at
    /// once, and waits until that is done; starts none any more. It takes no longer than a stop can take (15 s); what is
    /// left even then, its holder ends when the gateway ends. Not cancellation safe: call it once, to its end.
    pub async fn shutdown(&self) {
        let running = {
            let mut drivers = self.drivers();
            drivers.closed = true;
            std::mem::take(&mut drivers.running)
        };
        running.iter().for_each(|running| running.leave.notify_one());
        let until = tokio::time::Instant::now() + self.settings.stop();
        for mut running in running {
            if tokio::time::timeout_at(until, &mut running.task).await.is_err() {
                running.task.abort();
            }
        }
    }

    fn drivers(&self) -> MutexGuard<'_, Drivers> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left_ones(&self) -> MutexGuard<'_, HashMap<RuntimeId, (RuntimeSpec, Survivor)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a driver by `drive`, which is given what tells it that the gateway stops, or names something that does.
    fn start(
        &self,
        info: RuntimeInfo,
        drive: impl FnOnce(LinkEnd, Arc<Notify>) -> (Arc<Notify>, JoinHandle<()>),
    ) -> Result<Link, String> {
        let mut drivers = self.drivers();
        if drivers.closed {
            return Err("the gateway is stopping".into());
        }
        let (link, end) = Link::new(info);
        let (leave, task) = drive(end, Arc::default());
        drivers.running.retain(|running| !running.task.is_finished());
        drivers.running.push(Running { leave, task });
        Ok(link)
    }

    /// Looks for what earlier gateways left. Holders that nothing can be made of are stopped.
    async fn look(&self) -> Vec<Left> {
        for path in Held::all(&self.settings.holders).await {
            let (held, welcome) = match Held::find(&path).await {
                Ok(found) => found,
                Err(why) => {
                    tracing::warn!(%why, "a holder was left alone");
                    continue;
                }
            };
            let kept = welcome.blobs.last().and_then(|(_, blob)| Some(Kept::read(blob)?.0));
            let Some(kept) = kept.filter(|kept| (self.make)(&kept.spec.dialect).is_some()) else {
                tracing::warn!(path = %path.display(), "a holder without a state that this version can read is stopped");
                self.end(held);
                continue;
            };
            let survivor = Survivor { held, welcome, generation: kept.generation, sessions: Vec::new() };
            let older = self.left_ones().insert(kept.spec.id.clone(), (kept.spec, survivor));
            if let Some((spec, older)) = older {
                tracing::warn!(runtime_id = %spec.id, "of two runtimes with one name one is stopped");
                self.end(older.held);
            }
        }
        let left = self.left_ones();
        left.values().map(|(spec, left)| Left { spec: spec.clone(), generation: left.generation }).collect()
    }

    /// Ends a runtime that nobody can go on with.
    fn end(&self, mut held: Held) {
        let (stdin, term, most) = (self.settings.stop_stdin, self.settings.stop_term, self.settings.stop());
        tokio::spawn(async move {
            held.stop(stdin, term);
            let gone = async { while !matches!(held.next().await, News::Exited { .. } | News::Gone(_)) {} };
            let _ = tokio::time::timeout(most, gone).await;
            held.bye();
        });
    }
}

/// Stops a runtime that a gateway left, while none runs: `None` if there is none of this name in the folder. Blocks until
/// it has ended.
///
/// # Errors
/// In words: it does not answer, or does not end.
pub fn stop_left(holders: &Path, runtime: &str) -> Option<Result<(), String>> {
    let mut outcome = None;
    for found in held::look(holders).into_iter().filter(|found| found.runtime == runtime && !found.left) {
        match held::stop(&found.path, STOP_STDIN, STOP_TERM) {
            Ok(()) => outcome = outcome.or(Some(Ok(()))),
            Err(why) => outcome = Some(Err(why)),
        }
    }
    outcome
}

fn info(spec: &RuntimeSpec, generation: u64) -> Result<RuntimeInfo, String> {
    let cwd = spec.cwd.to_str().ok_or_else(|| format!("cwd {} is not UTF-8", spec.cwd.display()))?.to_owned();
    Ok(RuntimeInfo::starting(spec, cwd, generation, SystemTime::now().into()))
}

impl Launcher for Runtimes {
    /// Must be called within a tokio runtime. Nothing is waited for: a program that is missing shows in [`Link::info`].
    fn launch(&self, mut spec: RuntimeSpec) -> Result<Link, String> {
        check(&spec)?;
        let make = (self.make)(&spec.dialect).ok_or_else(|| unknown_dialect(&spec.dialect))?;
        let attached = reach(&spec, make, &self.settings)?;
        spec.cwd = std::path::absolute(&spec.cwd).map_err(|error| format!("cwd {}: {error}", spec.cwd.display()))?;
        let (info, settings) = (info(&spec, 1)?, Arc::clone(&self.settings));
        self.start(info, |end, leave| match attached {
            // Left is let go: an endpoint has its own life.
            Some((reach, dialect)) => {
                let stop = Arc::clone(&end.stop);
                (stop, tokio::spawn(attached::drive(spec, reach, dialect, end, settings)))
            }
            None => {
                let drive = driver::drive(spec, make, end, settings, Arc::clone(&leave), Birth::New);
                (leave, tokio::spawn(drive))
            }
        })
    }

    fn clients(&self) -> ToClients {
        self.settings.clients.clone()
    }

    fn left(&self) -> Pin<Box<dyn Future<Output = Vec<Left>> + Send + '_>> {
        Box::pin(self.look())
    }

    fn adopt(&self, id: &RuntimeId, sessions: Vec<Adopted>) -> Result<Link, String> {
        let left = self.left_ones().remove(id);
        let (spec, survivor) = left.ok_or_else(|| format!("there is no runtime {id} to take over"))?;
        let make = (self.make)(&spec.dialect).ok_or_else(|| unknown_dialect(&spec.dialect))?;
        let (info, settings) = (info(&spec, survivor.generation)?, Arc::clone(&self.settings));
        let birth = Birth::Found(Box::new(Survivor { sessions, ..survivor }));
        self.start(info, |end, leave| {
            let drive = driver::drive(spec, make, end, settings, Arc::clone(&leave), birth);
            (leave, tokio::spawn(drive))
        })
    }
}

/// What can be said against a spec without trying it.
fn check(spec: &RuntimeSpec) -> Result<(), String> {
    match &spec.connect {
        Connect::Command(argv) if argv.first().is_some_and(|program| !program.is_empty()) => {}
        Connect::Command(_) => return Err("command is empty: name a program and its arguments".into()),
        Connect::Endpoint(_) => {}
    }
    for name in spec.env.keys().chain(&spec.pass_env) {
        if name.starts_with(process::OWN) {
            return Err(format!("{name} is the gateway's own and never passed on: take it out of env and pass_env"));
        }
        if name.is_empty() || name == "*" || name.contains(['=', '\0']) {
            return Err(format!("{name:?} is not a variable's name"));
        }
    }
    let Connect::Command(argv) = &spec.connect else { return Ok(()) };
    if argv.iter().chain(spec.env.values()).any(|text| text.contains('\0')) {
        return Err("command and env must not contain NUL characters".into());
    }
    Ok(())
}

/// How an endpoint is reached, and the state of its dialect.
type Endpoint = (Reach, Box<dyn Dialect>);

/// The endpoint of a spec, if it can be reached at all; `None` for a program.
fn reach(spec: &RuntimeSpec, make: Make, settings: &Settings) -> Result<Option<Endpoint>, String> {
    let dialect = make(spec);
    let name = &spec.dialect;
    let Connect::Endpoint(at) = &spec.connect else {
        let schemes = dialect.reached_by();
        return if schemes.contains(&"command") {
            Ok(None)
        } else {
            Err(format!("{name} is spoken by running endpoints only: set connect = \"{}…\"", prefix(schemes)))
        };
    };
    let scheme = address::Address::parse(at)?.scheme();
    if !dialect.reached_by().contains(&scheme) {
        let ways = dialect.reached_by().iter().map(|way| prefix(&[way])).collect::<Vec<_>>();
        return Err(format!("cannot connect to {at}: {name} is spoken over {}", ways.join(", ")));
    }
    if let Some(secret) = &spec.secret {
        endpoint::check_secret(secret)?;
    }
    Ok(Some((Reach::new(at, spec.remote.as_deref(), spec.secret.as_deref(), settings)?, dialect)))
}

/// How an address of the first of these ways begins.
fn prefix(ways: &[&str]) -> String {
    match ways.first() {
        Some(&"command") => "the pipes of a program (command = [PROGRAM, ARGS..])".into(),
        Some(&"unix") => "unix:/".into(),
        Some(scheme) => format!("{scheme}://"),
        None => String::new(),
    }
}

fn unknown_dialect(name: &str) -> String {
    let known: Vec<&str> = dialects::TABLE.iter().map(|(name, _)| *name).collect();
    format!("unknown dialect {name:?}: use one of {}", known.join(", "))
}
