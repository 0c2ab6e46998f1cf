//! Finds everything that can be attached: agents on PATH, servers named by the user or an agent, holders of an earlier gateway.
//!
//! No port is probed unless the configuration or the user's environment names it. A server on an unannounced port is not found.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plexus::config::{Config, ConfigContext, NativeConfig};
use plexus::runtimes::daemon_socket::{self, UnsafeSocket};
use plexus::runtimes::{RuntimeSettings, Runtimes, presets};
use plexus::sessions::Launcher as _;
use plexus::shared_daemon::connects_to;
use plexus_linked::UnknownVersion;
use plexus_protocol::api::operation::Verdict;
use plexus_protocol::{CODEX_TERMINAL, Connect, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState, Timestamp};
use serde::Serialize;

use super::home::CONFIG_FILE;
use super::output::{age, line};
use super::programs::{is_program, which};

/// Time for a program to print its version; a slower one is killed with its process group. Programs on Node.js take some seconds on a busy
/// machine.
pub(super) const VERSION_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for a program to print its version if only the version permits linking it; a slower one is killed with its process group, and
/// refused. On a busy machine or from a cold disk, programs take longer than [`VERSION_TIMEOUT`].
pub(super) const LINK_VERSION_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for an agent to finish its handshake; a slower one is stopped and reported.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a line of a problem, in characters.
const PROBLEM_MAX: usize = 300;

/// An agent that the gateway knows how to start.
#[derive(Debug, Serialize)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) dialect: &'static str,
    pub(super) program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<PathBuf>,
    /// The version that the program printed, if it was requested and printed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// The reason why the program cannot run: it failed to report its version, or only a file that is not executable has its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) install: Option<&'static str>,
    /// The result of starting the agent, if that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<StartProbe>,
}

/// The result of starting a runtime, up to the end of its handshake.
#[derive(Debug, Serialize)]
pub(super) struct StartProbe {
    pub(super) ok: bool,
    pub(super) ms: u64,
    /// The agent's own name and version, or the reason why it does not start.
    #[serde(rename = "said")]
    pub(super) message: String,
}

/// A server that the configuration or the environment names.
#[derive(Debug, Serialize)]
pub(super) struct Server {
    /// The name of the runtime or of the variable.
    pub(super) name: String,
    pub(super) dialect: String,
    pub(super) at: String,
    /// The source of the address: the file, or the environment.
    pub(super) from: String,
    /// `true` if a program listens at the address.
    pub(super) listens: bool,
    /// The reason why the server cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<StartProbe>,
}

/// A holder of an earlier gateway, or the file that it wrote at its end.
#[derive(Debug, Serialize)]
pub(super) struct Holder {
    pub(super) runtime_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<i32>,
    pub(super) since: Timestamp,
    pub(super) state: HolderState,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HolderState {
    /// The holder runs with its runtime.
    Running,
    /// The runtime has ended; its last output is stored.
    Ended,
    /// No holder listens: only its file remains.
    Stale,
}

impl Holder {
    /// Formats the state as text: "held by process 12 for 3 min".
    pub(super) fn description(&self) -> String {
        let since = age(self.since);
        match (self.state, self.pid) {
            (HolderState::Running, Some(pid)) => format!("held by process {pid} for {since}"),
            (HolderState::Running, None) => format!("held for {since}"),
            (HolderState::Ended, _) => format!("ended {since} ago; its last output is stored"),
            (HolderState::Stale, _) => "no longer running; its file remains".into(),
        }
    }
}

// === agents ===

/// Checks every preset, installed or not: its version; with `start`, also whether it starts.
pub(super) async fn agents(exe: &Path, home: &Path, start: bool) -> Vec<Agent> {
    // All run at once, since some take seconds.
    let versions = presets::presets().iter().map(|preset| async {
        let spec = presets::preset(preset.name, exe, |var| std::env::var(var).ok()).ok()?;
        let Connect::Command(command) = &spec.connect else { return None };
        let path = which(command.first()?).filter(|path| path != exe && !preset.version_args.is_empty())?;
        Some(probe(&path, preset.version_args, VERSION_TIMEOUT).await)
    });
    let versions = futures_util::future::join_all(versions).await;
    let mut all = Vec::new();
    for (preset, version) in presets::presets().iter().zip(versions) {
        let (version, problem) = match version {
            Some(Ok(version)) => (Some(version), None),
            Some(Err(reason)) if reason.is_broken() => (None, Some(reason.to_string())),
            Some(Err(_)) | None => (None, None),
        };
        let spec = presets::preset(preset.name, exe, |var| std::env::var(var).ok());
        let Ok(spec) = spec else { continue };
        let Connect::Command(command) = &spec.connect else { continue };
        let program = command.first().cloned().unwrap_or_default();
        let path = which(&program);
        let problem = match &path {
            Some(_) => problem,
            None => not_executable(&program).map(|file| format!("{} is not executable", file.display())),
        };
        let start = match &path {
            Some(_) if start => Some(try_start(spec, exe, home).await),
            _ => None,
        };
        let (name, dialect, install) = (preset.name, preset.dialect, preset.install);
        all.push(Agent { name, dialect, program, path, version, problem, install, start });
    }
    all
}

/// The absolute folders of PATH in which agents are now, or Node.js or git, which they need.
pub(super) fn agent_folders(exe: &Path) -> Vec<PathBuf> {
    let specs = presets::presets().iter().filter_map(|preset| presets::preset(preset.name, exe, |_| None).ok());
    let mut programs: Vec<String> = specs
        .filter_map(|spec| match spec.connect {
            Connect::Command(command) => command.into_iter().next(),
            Connect::Endpoint(_) => None,
        })
        .filter(|program| !program.contains('/'))
        .collect();
    programs.extend(["node".to_owned(), "git".to_owned()]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    folders.filter(|dir| programs.iter().any(|program| is_program(&dir.join(program)))).collect()
}

/// A file on PATH that has the program's name but may not be run.
fn not_executable(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// The reason why a program did not report its version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VersionProblem {
    /// The system could not start it: it is not a program, or its interpreter is missing.
    NotStarted(String),
    /// The program printed nothing and failed, with this exit code, or by a signal.
    Failed(Option<i32>),
    /// The program printed nothing.
    NoOutput,
    /// The program was killed after this time.
    Slow(Duration),
}

impl VersionProblem {
    /// Returns `true` if the program cannot run at all. Some programs do not know `--version`, and some take long on a busy machine.
    fn is_broken(&self) -> bool {
        // 126 and 127: a shell script whose program cannot be started.
        matches!(self, Self::NotStarted(_) | Self::Failed(None | Some(126 | 127)))
    }
}

impl std::fmt::Display for VersionProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted(reason) => write!(f, "cannot be started: {reason}"),
            Self::Failed(Some(code)) => write!(f, "does not report its version: it ended with exit code {code}"),
            Self::Failed(None) => f.write_str("does not report its version: it was ended by a signal"),
            Self::NoOutput => f.write_str("does not report its version"),
            Self::Slow(time) => write!(f, "did not report its version within {} s", time.as_secs()),
        }
    }
}

/// The first line that `PROGRAM ARGS` prints; otherwise the reason, as text.
pub(super) async fn version(program: &Path, args: &[&str]) -> Result<String, String> {
    probe(program, args, VERSION_TIMEOUT).await.map_err(|error| error.to_string())
}

/// The first line that `PROGRAM --version` prints within `time`.
pub(super) async fn version_within(program: &Path, time: Duration) -> Result<String, UnknownVersion> {
    probe(program, &["--version"], time).await.map_err(|reason| match reason {
        VersionProblem::Slow(time) => UnknownVersion::Slow(time),
        reason => UnknownVersion::Unreported(reason.to_string()),
    })
}

/// The first line that `PROGRAM ARGS` prints. A program that takes longer than `time` is killed.
async fn probe(program: &Path, args: &[&str], time: Duration) -> Result<String, VersionProblem> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    // Without it, Gemini CLI starts itself a second time, to get more memory.
    command.env("GEMINI_CLI_NO_RELAUNCH", "true");
    let child = command.process_group(0).spawn().map_err(|reason| {
        // The system reports "no such file" in both cases.
        let missing = reason.kind() == std::io::ErrorKind::NotFound && program.is_file();
        VersionProblem::NotStarted(if missing { "its interpreter is missing".into() } else { reason.to_string() })
    })?;
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
    match tokio::time::timeout(time, child.wait_with_output()).await {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            match first {
                Some(first) => Ok(line(first, 100)),
                None if output.status.success() => Err(VersionProblem::NoOutput),
                None => Err(VersionProblem::Failed(output.status.code())),
            }
        }
        Ok(Err(reason)) => Err(VersionProblem::NotStarted(reason.to_string())),
        Err(_) => {
            // Its child processes would keep running.
            let _ = group.map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
            Err(VersionProblem::Slow(time))
        }
    }
}

/// Starts a runtime as the gateway would, up to the end of its handshake, and ends it with all its processes. It opens no session and calls
/// no model.
async fn try_start(spec: RuntimeSpec, exe: &Path, home: &Path) -> StartProbe {
    let start_time = std::time::Instant::now();
    // The holders are in a separate folder: a gateway that starts in the meantime must not take them over.
    let holders = home.join(format!("doctor-{}", std::process::id()));
    let settings =
        RuntimeSettings { handshake: START_TIMEOUT, ..RuntimeSettings::new(exe.to_owned(), holders.clone()) };
    let runtimes = Runtimes::new(settings);
    let spec = RuntimeSpec { outlive: false, restart: Default::default(), ..spec };
    let (ok, message) = match runtimes.launch(spec) {
        Err(reason) => (false, reason),
        Ok(link) => {
            let mut info = link.watch();
            let is_settled = |state| matches!(state, RuntimeState::Ready | RuntimeState::Exited);
            // The driver's own timeout is shorter.
            let settled = tokio::time::timeout(START_TIMEOUT * 2, info.wait_for(|info| is_settled(info.state))).await;
            drop(settled);
            let now = link.info();
            let outcome = match now.state {
                RuntimeState::Ready => (true, now.agent.clone().unwrap_or_else(|| "ready".into())),
                _ => {
                    let reason = now.problem.clone().unwrap_or_else(|| "is not ready".into());
                    let tail = now.stderr_tail.trim_end();
                    (false, if tail.is_empty() { reason } else { format!("{reason}; it wrote: {tail}") })
                }
            };
            link.stop();
            // The channel closes when its driver has ended.
            while info.changed().await.is_ok() {}
            outcome
        }
    };
    let ms = u64::try_from(start_time.elapsed().as_millis()).unwrap_or(u64::MAX);
    runtimes.shutdown().await;
    // A killed holder leaves its socket behind.
    let _ = std::fs::remove_dir_all(&holders);
    StartProbe { ok, ms, message: line(&message, PROBLEM_MAX) }
}

// === servers ===

/// The configuration that `plexus serve` would read, if there is one.
///
/// # Errors
/// The mistakes, each with its place and fix.
pub(super) fn config(given: Option<PathBuf>, home: &Path, exe: &Path) -> Result<Option<(PathBuf, Config)>, String> {
    let Some(file) = given.or_else(|| Some(home.join(CONFIG_FILE)).filter(|file| file.exists())) else {
        return Ok(None);
    };
    let context = ConfigContext::from_process(exe.to_owned()).map_err(|error| error.to_string())?;
    match Config::load(&file, &context) {
        Ok(config) => Ok(Some((file, config))),
        Err(reason) => Err(reason.to_string()),
    }
}

/// Every server that the configuration or the environment names.
pub(super) async fn servers(
    config: Option<(PathBuf, Config)>,
    env: impl Fn(&str) -> Option<String>,
    start: Option<(&Path, &Path)>,
) -> Vec<Server> {
    let mut all = Vec::new();
    if let Some((file, config)) = config {
        for runtime in config.runtimes {
            let Connect::Endpoint(at) = &runtime.spec.connect else { continue };
            let (name, dialect) = (runtime.spec.id.to_string(), runtime.spec.dialect.clone());
            let mut server = server(name, dialect, at.clone(), file.display().to_string()).await;
            if let (true, Some((exe, home))) = (server.listens, start) {
                let start = try_start(runtime.spec, exe, home).await;
                if !start.ok {
                    server.fix = Some("check that the address is that of such a server, and its `secret`".into());
                }
                server.start = Some(start);
            }
            all.push(server);
        }
    }
    for (variable, dialect) in [("OPENCODE_SERVER", "opencode"), (REMOTE_PORT, "gemini-mirror")] {
        let Some(value) = env(variable).filter(|value| !value.is_empty()) else { continue };
        let at = if variable == REMOTE_PORT { format!("http://127.0.0.1:{value}") } else { value };
        if all.iter().any(|known: &Server| known.at.trim_end_matches('/') == at.trim_end_matches('/')) {
            continue;
        }
        let name = variable.to_owned();
        // Other machines are not contacted: the variable may have any value.
        let mut found = if address(&at).is_ok_and(|to| to.is_local()) {
            server(name, dialect.into(), at, "the environment".into()).await
        } else {
            let problem = Some("is not an address on this machine: not tried".into());
            let (from, dialect) = ("the environment".into(), dialect.into());
            Server { name, dialect, at, from, listens: false, problem, fix: None, start: None }
        };
        if found.listens {
            found.fix = Some(match variable {
                REMOTE_PORT => format!(
                    "to attach it: a [[runtime]] with dialect = \"gemini-mirror\", connect = \"ws://127.0.0.1:UI_PORT/\" \
                     and remote = \"{}\"",
                    found.at
                ),
                _ => format!("to attach it: a [[runtime]] with dialect = \"{dialect}\" and connect = \"{}\"", found.at),
            });
        }
        all.push(found);
    }
    all
}

/// The variable with the port on which a Gemini UI accepts prompts.
const REMOTE_PORT: &str = "GEMINI_CLI_REMOTE_PORT";

async fn server(name: String, dialect: String, at: String, from: String) -> Server {
    let problem = match address(&at) {
        Ok(to) => to.reach().await.err(),
        Err(reason) => Some(reason),
    };
    let fix = problem.as_ref().map(|_| {
        let port = at.rsplit(':').next().map(|port| port.trim_end_matches('/')).unwrap_or("PORT");
        let how = match dialect.as_str() {
            "codex" => format!("start it: codex app-server --listen {at}"),
            "opencode" | "opencode2" => format!("start it: opencode serve --port {port}"),
            "gemini-mirror" => format!("start it: gemini --ui-port {port}"),
            _ => "start the program that listens there".into(),
        };
        format!("{how}; or correct the address. The gateway retries automatically")
    });
    Server { name, dialect, at, from, listens: problem.is_none(), problem, fix, start: None }
}

/// An address to which a connection is possible.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// Parses the address of a server.
///
/// # Errors
/// The text is not an address that Plexus can connect to; the error is readable text.
fn address(at: &str) -> Result<Address, String> {
    if let Some(path) = at.strip_prefix("unix:") {
        return Ok(Address::Unix(path.strip_prefix("//").unwrap_or(path).into()));
    }
    let (rest, usual) = match (at.strip_prefix("ws://"), at.strip_prefix("http://")) {
        (Some(rest), _) | (None, Some(rest)) => (rest, 80),
        (None, None) => {
            return Err("is not an address that the gateway can connect to: use ws://, http:// or unix:".into());
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let uri: http::uri::Authority = authority.parse().map_err(|_| format!("has no host: {authority:?}"))?;
    Ok(Address::Tcp(uri.host().trim_matches(['[', ']']).to_owned(), uri.port_u16().unwrap_or(usual)))
}

impl Address {
    fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(host, _) => {
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }

    /// Connects and disconnects without sending anything.
    async fn reach(&self) -> Result<(), String> {
        let reached = async {
            match self {
                Self::Tcp(host, port) => tokio::net::TcpStream::connect((host.as_str(), *port)).await.map(drop),
                Self::Unix(path) => tokio::net::UnixStream::connect(path).await.map(drop),
            }
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, reached).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) if reason.kind() == std::io::ErrorKind::ConnectionRefused => {
                Err("nothing is listening there".into())
            }
            Ok(Err(reason)) => Err(reason.to_string()),
            Err(_) => Err(format!("did not answer within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }
}

// === terminals ===

/// The state of the daemon that Codex's own terminals share.
#[derive(Debug)]
pub(super) enum CodexTerminals {
    /// The configuration turns it off.
    Off,
    /// There is no home folder, and so no path.
    NoHome,
    /// The path does not exist.
    Absent(PathBuf),
    /// The path is a socket to which the gateway does not connect.
    Unsafe(UnsafeSocket),
    /// The path is a socket on which no program listens.
    NotListening(PathBuf),
    /// A daemon is running, but no gateway.
    NoGateway(PathBuf),
    /// A daemon is running that the gateway is not attached to; the reason, if the gateway tries to attach.
    NotAttached(PathBuf, Option<String>),
    /// A daemon is running, and the gateway is attached.
    Attached {
        socket: PathBuf,
        /// The daemon's name and version, as it reports them.
        agent: String,
        runtime: RuntimeId,
    },
}

/// The sessions that the gateway cannot reach, as part of a sentence.
const OUT_OF_REACH: &str = "sessions of `codex --no-daemon` cannot be reached";

impl CodexTerminals {
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::Unsafe(_) | Self::NotAttached(..) | Self::NoHome => Verdict::Warn,
            Self::Off | Self::Absent(_) | Self::NotListening(_) | Self::NoGateway(_) | Self::Attached { .. } => {
                Verdict::Ok
            }
        }
    }

    pub(super) fn description(&self) -> String {
        match self {
            Self::Off => "not attached: turned off in the configuration".into(),
            Self::NoHome => "neither CODEX_HOME nor HOME is set to an absolute path".into(),
            Self::Absent(path) => format!(
                "no daemon at {}; plain `codex` starts it, and it is attached within two seconds; {OUT_OF_REACH}",
                path.display()
            ),
            Self::Unsafe(reason) => format!("the daemon is not attached: {reason}"),
            Self::NotListening(path) => {
                format!("a daemon has left {}, and none listens; plain `codex` starts it again", path.display())
            }
            Self::NoGateway(path) => format!("a daemon listens at {}; a gateway attaches it", path.display()),
            Self::NotAttached(path, None) => format!("a daemon listens at {} and is not attached", path.display()),
            Self::NotAttached(path, Some(reason)) => {
                format!("a daemon listens at {} and is not attached: {reason}", path.display())
            }
            Self::Attached { socket, agent, runtime } => {
                format!("{agent} at {}, attached as {runtime}; {OUT_OF_REACH}", socket.display())
            }
        }
    }

    pub(super) fn fix(&self) -> Option<String> {
        let fix = match self {
            Self::Off => "to attach it: codex = true in [native]",
            Self::NoHome => "set HOME before starting the gateway",
            Self::NotAttached(_, None) => "wait two seconds; if the runtime was stopped, start the gateway again",
            Self::NotAttached(_, Some(_)) => {
                "the gateway retries automatically; `plexus stop` the runtime if it has ended"
            }
            Self::Absent(_) | Self::Unsafe(_) | Self::NotListening(_) | Self::NoGateway(_) | Self::Attached { .. } => {
                return None;
            }
        };
        Some(fix.into())
    }
}

/// Finds the daemon that Codex's own terminals share. `runtimes` are those of the gateway, if one is running.
pub(super) async fn codex_terminals(
    native: NativeConfig,
    runtimes: Option<&[Arc<RuntimeInfo>]>,
    env: impl Fn(&str) -> Option<OsString>,
) -> CodexTerminals {
    let Some(path) = daemon_socket::codex_socket(env) else { return CodexTerminals::NoHome };
    let socket = match daemon_socket::find(&path) {
        Ok(Some(socket)) => socket.path,
        Ok(None) if !native.codex => return CodexTerminals::Off,
        Ok(None) => return CodexTerminals::Absent(path),
        Err(_) if !native.codex => return CodexTerminals::Off,
        Err(reason) => return CodexTerminals::Unsafe(reason),
    };
    // A runtime of the configuration may be attached to it, too.
    let is_attached = |info: &&Arc<RuntimeInfo>| connects_to(info, &socket);
    if let Some(info) = runtimes.and_then(|runtimes| runtimes.iter().find(is_attached)) {
        let agent = info.agent.clone().unwrap_or_else(|| info.dialect.clone());
        return match info.state {
            RuntimeState::Ready => CodexTerminals::Attached { socket, agent, runtime: info.runtime_id.clone() },
            _ => CodexTerminals::NotAttached(socket, info.problem.clone()),
        };
    }
    if !native.codex {
        return CodexTerminals::Off;
    }
    if !daemon_socket::listens(&socket).await {
        return CodexTerminals::NotListening(path);
    }
    let Some(runtimes) = runtimes else { return CodexTerminals::NoGateway(socket) };
    let ended = runtimes.iter().find(|info| info.runtime_id.as_str() == CODEX_TERMINAL);
    CodexTerminals::NotAttached(socket, ended.and_then(|info| info.problem.clone()))
}

// === holders ===

/// The holders in the folder, by name. A connection without a message does not take over a holder.
pub(super) async fn holders(dir: &Path) -> Vec<Holder> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        // The names are `RUNTIME.abcdefgh.sock`, and `.end` for a holder that ended.
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let mut parts = name.rsplitn(3, '.');
        let (kind, _, Some(runtime_id)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Ok(meta) = entry.metadata() else { continue };
        if meta.uid() != rustix::process::geteuid().as_raw() {
            continue;
        }
        let (state, pid) = match kind {
            Some("sock") => match tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::UnixStream::connect(&path)).await {
                Ok(Ok(stream)) => (HolderState::Running, stream.peer_cred().ok().and_then(|peer| peer.pid())),
                Ok(Err(_)) => (HolderState::Stale, None),
                // The holder is running, but slow.
                Err(_) => (HolderState::Running, None),
            },
            Some("end") => (HolderState::Ended, None),
            _ => continue,
        };
        let since = meta.modified().unwrap_or_else(|_| SystemTime::now()).into();
        all.push(Holder { runtime_id: runtime_id.to_owned(), pid, since, state, path });
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_only_this_machine_is_local() {
        let tcp = |host: &str, port| Ok(Address::Tcp(host.into(), port));
        for (at, to, local) in [
            ("ws://127.0.0.1:9999/", tcp("127.0.0.1", 9999), true),
            ("http://localhost:4096", tcp("localhost", 4096), true),
            ("http://[::1]:80/x", tcp("::1", 80), true),
            ("http://u:p@127.0.0.1:1?x", tcp("127.0.0.1", 1), true),
            ("ws://localhost.example.org/", tcp("localhost.example.org", 80), false),
            ("http://127.0.0.1@example.org:4096/", tcp("example.org", 4096), false),
            ("unix:/run/x.sock", Ok(Address::Unix("/run/x.sock".into())), true),
            ("unix:///run/x.sock", Ok(Address::Unix("/run/x.sock".into())), true),
        ] {
            let found = address(at);
            assert_eq!(found, to, "{at}");
            assert_eq!(found.unwrap().is_local(), local, "{at}");
        }
        for at in ["", "ftp://x", "ws://", "http://a b/"] {
            assert!(address(at).is_err(), "{at}");
        }
    }

    #[tokio::test]
    async fn program_that_is_slow_to_print_its_version_is_ended_and_said_to_be_slow() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slow");
        std::fs::write(&path, "#!/bin/sh\nsleep 1\necho 1.2.3\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let limit = Duration::from_millis(20);
        assert_eq!(version_within(&path, limit).await, Err(UnknownVersion::Slow(limit)));
        assert_eq!(version_within(&path, LINK_VERSION_TIMEOUT).await.as_deref(), Ok("1.2.3"));
    }

    #[tokio::test]
    async fn missing_server_is_reported_with_the_fix() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let at = format!("ws://127.0.0.1:{port}/");
        let there = server("c".into(), "codex".into(), at.clone(), "f".into()).await;
        assert!(there.listens && there.problem.is_none() && there.fix.is_none());
        drop(listener);
        let unreachable = server("c".into(), "codex".into(), at.clone(), "f".into()).await;
        assert_eq!(unreachable.problem.as_deref(), Some("nothing is listening there"));
        assert!(unreachable.fix.unwrap().starts_with(&format!("start it: codex app-server --listen {at}")));
        let env = |name: &str| (name == "OPENCODE_SERVER").then(|| "http://10.0.0.1:4096".to_owned());
        let found = servers(None, env, None).await;
        assert_eq!(found.len(), 1);
        assert!(found[0].problem.as_deref().unwrap().contains("not tried"));
    }

    #[tokio::test]
    async fn holders_are_reported_from_the_files_they_left() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let listener = std::os::unix::net::UnixListener::bind(at("my.agent.abcdefgh.sock")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(at("old.abcdefgh.sock")).unwrap());
        for name in ["done.abcdefgh.end", "x.abcdefgh.tmp", "noise"] {
            std::fs::write(at(name), "").unwrap();
        }
        let found = holders(dir.path()).await;
        let found: Vec<_> = found.iter().map(|one| (one.runtime_id.as_str(), one.state, one.pid.is_some())).collect();
        assert_eq!(
            found,
            [
                ("done", HolderState::Ended, false),
                ("my.agent", HolderState::Running, cfg!(target_os = "linux")),
                ("old", HolderState::Stale, false)
            ]
        );
        drop(listener);
        assert!(holders(&at("none")).await.is_empty());
    }
}
