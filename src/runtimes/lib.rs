//! Runtimes: starts agent programs, connects to endpoints, carries events from them to sessions and orders from sessions to them, and
//! ends every program that is no longer in use.
//!
//! Each runtime has a task of its own, the `driver`, which lives as long as the runtime may be started again.

mod address;
mod client_files;
mod client_terminal;
mod client_tools;
#[cfg(test)]
mod client_tools_tests;
pub mod daemon_socket;
pub mod dialects;
mod driver;
mod endpoint;
mod endpoint_event;
#[cfg(test)]
mod endpoint_tests;
mod endpoint_transport;
mod failure;
mod fetch_queue;
mod found_sessions;
mod holder_reconnect;
mod holder_remains;
mod line_reader;
pub mod link;
mod meter;
pub mod presets;
mod process;
mod process_transport;
mod recorder;
mod recording_masks;
#[cfg(test)]
mod released_tests;
mod saved_steps;
mod session_outbox;
mod session_routes;
mod sse;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use self::endpoint::EndpointTarget;
use self::holder_remains::{HolderRemains, clear};
use self::process_transport::{StartMode, SurvivingProcess};
use plexus_client::liveness::LivenessTimeouts;
use plexus_dialects::{Dialect, MakeDialect};
use plexus_holder::{HolderClient, client as holder_client};
use plexus_metrics::spans;
use plexus_protocol::{Connect, RuntimeId, RuntimeInfo, RuntimeSpec};
use plexus_sessions::{ClientRouter, DriverEnd, Launcher, OrphanedRuntime, ReattachedSession, RuntimeLink};

pub use presets::{Preset, PresetError, preset, presets};
pub use process::program_of;

/// Maximum length of a line of a runtime that is passed on whole, in bytes; of a longer one the first MiB is retained and the rest
/// counted.
const LINE_MAX: usize = 64 * 1024 * 1024;

/// Maximum size of the output that a holder retains for a gateway that does not read it, beside the longest line, in bytes (16 MiB). With
/// more the runtime waits.
const SPOOL_MORE: usize = 16 * 1024 * 1024;

/// Maximum size of the input that may wait in a holder for a runtime's stdin, in bytes (and one frame); with more, orders wait.
const WRITE_MAX: usize = 8 * 1024 * 1024;

/// Time for a runtime to end by itself after its stdin was closed; then it gets SIGTERM.
const STOP_STDIN: Duration = Duration::from_secs(2);

/// Time for its holder after SIGTERM, before holder and group are killed. The holder gives the family one second, then kills it and waits
/// up to five for the kernel; if the holder were killed earlier, a process could remain.
const STOP_TERM: Duration = Duration::from_secs(7);

/// Maximum time for a killed process to end; then the gateway stops waiting for it, and reports that.
const STOP_KILL: Duration = Duration::from_secs(5);

/// Maximum wait for the rest of the output after the process has ended, for the process after its output has ended, and for either when
/// it accepts no more input. After it, another process holds the pipe, or the process hangs.
const LINGER: Duration = Duration::from_secs(1);

/// Maximum time that an event stream may be silent while its server is alive: OpenCode sends a heartbeat every 10 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// Maximum time that a starting gateway waits for the holders that it finds, all at once. They take milliseconds.
const ANSWER_SOON: Duration = Duration::from_secs(3);

/// Maximum time that a runtime may read none of its input while more than [`WRITE_MAX`] waits for it. Then it counts as stuck, and is
/// stopped. Only time without progress counts: a runtime that reads is not stopped, regardless of the waiting input.
const STUCK: Duration = Duration::from_secs(60);

/// Maximum time for a handshake: agents need ten seconds on a busy machine, and more when they download something first. A runtime that
/// takes longer is stopped.
const HANDSHAKE: Duration = Duration::from_secs(120);

/// Pause before the first restart; it doubles with each early exit.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// Maximum pause before a restart.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Time after which a ready runtime counts as healthy: its next exit is the first early one.
const HEALTHY: Duration = Duration::from_secs(60);

/// Maximum number of consecutive early exits; then the runtime is not started again.
const GIVE_UP: u32 = 5;

/// Maximum time for an endpoint to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum time for an endpoint's first response on it. A starting endpoint accepts connections and does not respond; it is tried again.
const ANSWER: Duration = Duration::from_secs(10);

/// Maximum time for the reply to one HTTP request; after it the dialect gets a failure. Replies do not wait for work: dialects request it
/// and get its results in events.
const FETCH: Duration = Duration::from_secs(120);

/// Maximum time without progress of a reply that changes nothing at the endpoint: others wait behind it.
const READ: Duration = Duration::from_secs(20);

/// Maximum time for sending decisions when an endpoint is left.
const DECIDED: Duration = Duration::from_secs(5);

/// The variable that names the folder of recordings.
const RECORD: &str = "PLEXUS_RECORD";

/// The settings of all runtimes: paths, limits and timeouts. The defaults are for production, the fields for tests.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// The `plexus` program: every runtime is started as `plexus hold --socket PATH -- PROGRAM ARGS`.
    pub hold_exe: PathBuf,
    /// The folder of the holders' sockets, where the next gateway finds them.
    pub holders: PathBuf,
    /// The gateway's own folder: nothing in it is read, written or worked in for an agent.
    pub private: Option<PathBuf>,
    /// The environment from which runtimes get their allowed variables.
    pub env: Arc<BTreeMap<OsString, OsString>>,
    /// Maximum length of a line that is passed on, in bytes. 64 MiB.
    pub line_max: usize,
    /// Maximum size of the output that a holder retains beside the longest line, in bytes. 16 MiB.
    pub spool_more: usize,
    /// Maximum size of the input that may wait for a runtime's stdin, in bytes. 8 MiB.
    pub write_max: usize,
    /// Time from the end of stdin to SIGTERM. 2 s.
    pub stop_stdin: Duration,
    /// Time from SIGTERM to SIGKILL. 7 s.
    pub stop_term: Duration,
    /// Time from SIGKILL until the gateway stops waiting for the process. 5 s.
    pub stop_kill: Duration,
    /// Maximum time for the rest of the output, or the end of a process that closed its pipes. 1 s.
    pub linger: Duration,
    /// Maximum time for a holder to respond when a gateway starts; a slower one is awaited while everything else continues. 3 s.
    pub answer_soon: Duration,
    /// Maximum time for a runtime to read some of its input, while too much waits. 60 s.
    pub stuck: Duration,
    /// Maximum time for the handshake. 120 s.
    pub handshake: Duration,
    /// Pause before the first restart. 0.5 s.
    pub pause_min: Duration,
    /// Maximum pause before a restart. 30 s.
    pub pause_max: Duration,
    /// Minimum time that a runtime must have been ready for its exit not to count as early. 60 s.
    pub healthy: Duration,
    /// Maximum number of consecutive early exits. 5.
    pub give_up: u32,
    /// Maximum time for an endpoint to accept a connection. 5 s.
    pub connect: Duration,
    /// Maximum time for an endpoint's first response on it. 10 s.
    pub answer: Duration,
    /// Maximum time for the reply to one HTTP request. 120 s.
    pub fetch: Duration,
    /// Maximum time for the next piece of a reply to a `GET`. 20 s.
    pub read: Duration,
    /// Time of silence after which an endpoint is probed, and maximum time for its response. 5 s each.
    pub liveness: LivenessTimeouts,
    /// Maximum time that an endpoint's event stream may be silent while the endpoint itself is alive: it sends something every ten
    /// seconds, so the stream is broken. 45 s.
    pub silence: Duration,
    /// Maximum time for sending answers and cancels when an endpoint is left. 5 s.
    pub decided: Duration,
    /// The folder of recordings, if the messages of runtimes are recorded. `PLEXUS_RECORD` of this process.
    pub record: Option<PathBuf>,
    /// The accounts of the memory that the gateway holds for agents.
    pub ledger: plexus_ledger::Ledger,
    /// The channel from runtimes to the clients that perform tool calls for agents.
    pub clients: ClientRouter,
    /// The helpers in agents' own terminals.
    pub links: link::LinkHub,
}

impl RuntimeSettings {
    /// Returns the settings for production, with this process's environment.
    pub fn new(hold_exe: PathBuf, holders: PathBuf) -> Self {
        Self {
            hold_exe,
            holders,
            private: None,
            env: Arc::new(std::env::vars_os().collect()),
            line_max: LINE_MAX,
            spool_more: SPOOL_MORE,
            write_max: WRITE_MAX,
            stop_stdin: STOP_STDIN,
            stop_term: STOP_TERM,
            stop_kill: STOP_KILL,
            linger: LINGER,
            answer_soon: ANSWER_SOON,
            stuck: STUCK,
            handshake: HANDSHAKE,
            pause_min: PAUSE_MIN,
            pause_max: PAUSE_MAX,
            healthy: HEALTHY,
            give_up: GIVE_UP,
            connect: CONNECT,
            answer: ANSWER,
            fetch: FETCH,
            read: READ,
            liveness: LivenessTimeouts::default(),
            silence: SILENCE,
            decided: DECIDED,
            record: std::env::var_os(RECORD).filter(|dir| !dir.is_empty()).map(PathBuf::from),
            ledger: plexus_ledger::Ledger::default(),
            clients: ClientRouter::default(),
            links: link::LinkHub::default(),
        }
    }

    /// Returns the maximum time of a stop.
    fn stop(&self) -> Duration {
        self.stop_stdin + self.stop_term + self.stop_kill + 2 * self.linger
    }
}

/// All drivers.
pub struct Runtimes {
    settings: Arc<RuntimeSettings>,
    drivers: Mutex<Drivers>,
    left: Mutex<HashMap<usize, HolderRemains>>,
    make: fn(&str) -> Option<MakeDialect>,
}

#[derive(Default)]
struct Drivers {
    closed: bool,
    running: Vec<RunningDriver>,
}

/// A driver that runs.
struct RunningDriver {
    leave: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Runtimes {
    /// Makes a value without runtimes.
    pub fn new(settings: RuntimeSettings) -> Self {
        Self::with_dialects(settings, dialects::find)
    }

    /// Like [`new`](Self::new), with other dialects than the usual ones.
    pub fn with_dialects(settings: RuntimeSettings, make: fn(&str) -> Option<MakeDialect>) -> Self {
        Self { settings: Arc::new(settings), drivers: Mutex::default(), left: Mutex::default(), make }
    }

    /// Leaves every runtime that outlives the gateway to the next one, stops the others like [`RuntimeLink::stop`], all at once, and
    /// waits for that; starts no more runtimes. It takes no longer than a stop can take (15 s); the holders of remaining processes end
    /// them when the gateway ends. Not cancellation safe: call it once, to its end.
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
        recorder::written().await;
    }

    fn drivers(&self) -> MutexGuard<'_, Drivers> {
        self.drivers.lock()
    }

    fn left_ones(&self) -> MutexGuard<'_, HashMap<usize, HolderRemains>> {
        self.left.lock()
    }

    /// Starts a driver by `drive`, which gets the signal that the gateway stops, or a value with it.
    fn start(
        &self,
        info: RuntimeInfo,
        drive: impl FnOnce(DriverEnd, Arc<Notify>) -> (Arc<Notify>, JoinHandle<()>),
    ) -> Result<RuntimeLink, String> {
        let mut drivers = self.drivers();
        if drivers.closed {
            return Err("the gateway is stopping".into());
        }
        let (link, end) = RuntimeLink::new(info);
        let (leave, task) = drive(end, Arc::default());
        drivers.running.retain(|running| !running.task.is_finished());
        drivers.running.push(RunningDriver { leave, task });
        Ok(link)
    }
}

/// Stops a runtime that a gateway left, while no gateway runs: `None` if the folder has none of this name. Blocks until it has ended.
///
/// # Errors
/// A text for users: the runtime does not respond, or does not end.
pub fn stop_left(holders: &Path, runtime: &str) -> Option<Result<(), String>> {
    let mut outcome = None;
    for found in
        holder_client::find_holders(holders).into_iter().filter(|found| found.runtime == runtime && !found.left)
    {
        match holder_client::stop(&found.path, STOP_STDIN, STOP_TERM) {
            Ok(()) => outcome = outcome.or(Some(Ok(()))),
            Err(reason) => outcome = Some(Err(reason)),
        }
    }
    outcome
}

fn info(spec: &RuntimeSpec, generation: u64) -> Result<RuntimeInfo, String> {
    let cwd = spec.cwd.to_str().ok_or_else(|| format!("cwd {} is not UTF-8", spec.cwd.display()))?.to_owned();
    Ok(RuntimeInfo::starting(spec, cwd, generation, SystemTime::now().into()))
}

impl Launcher for Runtimes {
    fn private_folder(&self) -> Option<PathBuf> {
        self.settings.private.clone()
    }

    /// Launches a runtime. Must be called within a tokio runtime. Returns without waiting: [`RuntimeLink::info`] reports a missing
    /// program.
    fn launch(&self, mut spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        check(&spec)?;
        let make = (self.make)(&spec.dialect).ok_or_else(|| unknown_dialect(&spec.dialect))?;
        let attached = reach(&spec, make, &self.settings)?;
        spec.cwd = std::path::absolute(&spec.cwd).map_err(|error| format!("cwd {}: {error}", spec.cwd.display()))?;
        let (info, settings) = (info(&spec, 1)?, Arc::clone(&self.settings));
        self.start(info, |end, leave| match attached {
            // Leaving an endpoint only disconnects from it: it continues by itself.
            Some((reach, dialect)) => {
                let span = spans::runtime(&spec.id);
                let drive = endpoint_transport::drive(spec, reach, dialect, end, settings, Arc::clone(&leave));
                (leave, tokio::spawn(drive.instrument(span)))
            }
            None => {
                let span = spans::runtime(&spec.id);
                let drive = process_transport::drive(spec, make, end, settings, Arc::clone(&leave), StartMode::New);
                (leave, tokio::spawn(drive.instrument(span)))
            }
        })
    }

    fn check_start<'a>(
        &'a self,
        spec: &'a RuntimeSpec,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            match &spec.connect {
                Connect::Command(argv) => process::program(spec, argv, &self.settings.env).await.map(drop),
                Connect::Endpoint(_) => Ok(()),
            }
        })
    }

    fn clients(&self) -> ClientRouter {
        self.settings.clients.clone()
    }

    fn left(&self) -> Pin<Box<dyn Future<Output = Vec<OrphanedRuntime>> + Send + '_>> {
        Box::pin(self.scan())
    }

    fn reattach(&self, left: &OrphanedRuntime, sessions: Vec<ReattachedSession>) -> Result<RuntimeLink, String> {
        let not_found = || format!("there is no runtime {} to take over", left.id);
        let remains = self.left_ones().remove(&left.index).ok_or_else(not_found)?;
        let settings = Arc::clone(&self.settings);
        match remains {
            HolderRemains::Survivor(survivor) => {
                let (spec, survivor) = *survivor;
                let make = (self.make)(&spec.dialect).ok_or_else(|| unknown_dialect(&spec.dialect))?;
                let info = info(&spec, survivor.generation)?;
                let mode = StartMode::Found(Box::new(SurvivingProcess { sessions, ..survivor }));
                self.start(info, |end, leave| {
                    let span = spans::runtime(&spec.id);
                    let drive = process_transport::drive(spec, make, end, settings, Arc::clone(&leave), mode);
                    (leave, tokio::spawn(drive.instrument(span)))
                })
                .map(RuntimeLink::found_again)
            }
            HolderRemains::Late(path) => {
                let problem = format!(
                    "its holder has not answered since the gateway started: it is waited for, and no other is started;                      `plexus stop {}` ends it",
                    left.id
                );
                let info = RuntimeInfo::unknown(left.id.clone(), problem, SystemTime::now().into());
                let late = process_transport::Late { path, find: self.make, sessions };
                self.start(info, |end, leave| {
                    let drive = process_transport::drive_late(late, end, settings, Arc::clone(&leave));
                    (leave, tokio::spawn(drive.instrument(spans::runtime(&left.id))))
                })
                .map(RuntimeLink::found_again)
            }
            HolderRemains::Unusable => Err(not_found()),
        }
    }

    fn dismiss(&self, left: &OrphanedRuntime) {
        let settings = Arc::clone(&self.settings);
        match self.left_ones().remove(&left.index) {
            Some(HolderRemains::Survivor(survivor)) => self.end(survivor.1.holder),
            Some(HolderRemains::Late(path)) => {
                let work = async move { clear(&path, &settings).await };
                drop(tokio::spawn(work.instrument(spans::runtime(&left.id))));
            }
            Some(HolderRemains::Unusable) | None => {}
        }
    }

    fn clear<'a>(&'a self, id: &'a RuntimeId) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            // Holders that were found at the start and left alone are released: they accept the next connection.
            for (name, path) in HolderClient::all(&self.settings.holders).await {
                if name == id.as_str() && path.extension().is_some_and(|end| end == "sock") {
                    clear(&path, &self.settings).await;
                }
            }
        })
    }
}

/// Checks a spec, without starting it.
fn check(spec: &RuntimeSpec) -> Result<(), String> {
    match &spec.connect {
        Connect::Command(argv) if argv.first().is_some_and(|program| !program.is_empty()) => {}
        Connect::Command(_) => return Err("command is empty: specify a program and its arguments".into()),
        Connect::Endpoint(_) => {}
    }
    for name in spec.env.keys().chain(&spec.pass_env) {
        if name.starts_with(process::OWN) {
            return Err(format!(
                "{name} belongs to the gateway and is never passed on: remove it from env and pass_env"
            ));
        }
        if name.is_empty() || name == "*" || name.contains(['=', '\0']) {
            return Err(format!("{name:?} is not the name of a variable"));
        }
    }
    let Connect::Command(argv) = &spec.connect else { return Ok(()) };
    if argv.iter().chain(spec.env.values()).any(|text| text.contains('\0')) {
        return Err("command and env must not contain NUL characters".into());
    }
    Ok(())
}

/// The address of an endpoint, and the state of its dialect.
type EndpointDriver = (EndpointTarget, Box<dyn Dialect>);

/// Returns the endpoint of a spec, if it can be reached at all; `None` for a program.
fn reach(spec: &RuntimeSpec, make: MakeDialect, settings: &RuntimeSettings) -> Result<Option<EndpointDriver>, String> {
    let dialect = make(spec);
    let name = &spec.dialect;
    let Connect::Endpoint(at) = &spec.connect else {
        let schemes = dialect.reached_by();
        return if schemes.contains(&"command") {
            Ok(None)
        } else {
            Err(format!("{name} is only for running endpoints: set connect = \"{}…\"", prefix(schemes)))
        };
    };
    let scheme = address::Address::parse(at)?.scheme();
    if !dialect.reached_by().contains(&scheme) {
        let schemes = dialect.reached_by().iter().map(|scheme| prefix(&[scheme])).collect::<Vec<_>>();
        return Err(format!("cannot connect to {at}: {name} needs {}", schemes.join(", ")));
    }
    if let Some(secret) = &spec.secret {
        endpoint::check_secret(secret)?;
    }
    Ok(Some((EndpointTarget::new(&spec.id, at, spec.remote.as_deref(), spec.secret.as_deref(), settings)?, dialect)))
}

/// Returns the beginning of an address with the first of these schemes.
fn prefix(schemes: &[&str]) -> String {
    match schemes.first() {
        Some(&"command") => "the pipes of a program (command = [PROGRAM, ARGS..])".into(),
        Some(&"unix") => "unix:/".into(),
        Some(scheme) => format!("{scheme}://"),
        None => String::new(),
    }
}

fn unknown_dialect(name: &str) -> String {
    format!("unknown dialect {name:?}: use one of {}", dialects::names().join(", "))
}
