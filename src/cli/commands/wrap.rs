//! `plexus wrap AGENT [ARGS…]`: starts an agent in this terminal, with its session in Plexus.
//!
//! The command supports agents that can write the events of their terminal to a file and take input from another one, if options on their command
//! line name these files. The agent is a child in the same terminal, with the same process group: it draws and reads as without the
//! wrapper. In addition, this process is a tunnel to the gateway: it reports that the file has grown, and appends the lines that the
//! gateway requests. Without a gateway it looks for one twice a second, and prints nothing. On any failure, the agent runs as if it had
//! been started directly.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use plexus::runtimes::link::{LINK_SOCKET, MESSAGE_MAX};
use plexus_dialects::link::{HelperHello, HelperRole, LINK_VERSION};
use plexus_linked::AgentVersion;
use plexus_protocol::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout};

use crate::cli::failure::{FAILURE, USAGE};
use crate::cli::home::Home;
use crate::cli::output::clean;
use crate::cli::programs::which;
use crate::cli::random::random_id;

/// Pause before another attempt to reach a gateway.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Time between two checks whether the output has grown.
const POLL: Duration = Duration::from_millis(50);
/// Time without output after which the checks are rarer.
const QUIET_AFTER: Duration = Duration::from_secs(5);
/// Time between two checks while there is no output.
const QUIET_POLL: Duration = Duration::from_millis(250);
/// Time for a gateway to read a line; the connection of a slower one is closed.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Time at the end for a gateway to read the output, before the output is removed.
const FINAL_READ_TIME: Duration = Duration::from_millis(500);
/// Maximum number of written answers that are remembered, so that none is written twice.
const WRITTEN_MAX: usize = 256;
/// Maximum size of a `package.json` that is read for a version, in bytes.
const PACKAGE_MAX: u64 = 1 << 20;

/// The folder of the files, in the state folder.
const WRAPPED: &str = "wrapped";
const OUTPUT: &str = "output.jsonl";
const INPUT: &str = "input.jsonl";
const LOCK: &str = "lock";

/// An agent that can be wrapped.
struct WrappedAgent {
    /// The name on the command line and on the link socket.
    name: &'static str,
    program: &'static str,
    /// The package of the program, which contains its version.
    package: &'static str,
    /// The oldest version that is wrapped.
    min_version: AgentVersion,
    /// The options that name the files for its output and its input.
    output: &'static str,
    input: &'static str,
    /// Options with which the agent shows no terminal of its own, or uses other files.
    without_terminal: &'static [&'static str],
    /// The folder of the agent's chats: a variable that names the agent's folder, that folder below the home folder, and a folder in it.
    chats: (&'static str, &'static str, &'static str),
}

/// Every agent that can be wrapped.
const AGENTS: &[WrappedAgent] = &[WrappedAgent {
    name: "qwen",
    program: "qwen",
    package: "@qwen-code/qwen-code",
    min_version: AgentVersion::new(0, 24, 4),
    output: "--json-file",
    input: "--input-file",
    without_terminal: &[
        "-p",
        "--prompt",
        "--acp",
        "-h",
        "--help",
        "-v",
        "--version",
        "-l",
        "--list-extensions",
        "--json-file",
        "--json-fd",
        "--input-file",
    ],
    chats: ("QWEN_HOME", ".qwen", "projects"),
}];

/// Start an agent in this terminal as usual, with its session in Plexus
#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// The agent (`qwen`) and its own arguments: all of them, even `--help`, are passed to the agent
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT [ARGS]")]
    args: Vec<OsString>,
}

pub(crate) fn run(args: &WrapArgs) -> ExitCode {
    wrap(&args.args)
}

/// Runs the command with the arguments after `wrap`: the agent's name, and its own arguments.
pub(super) fn wrap(args: &[OsString]) -> ExitCode {
    let Some((name, args)) = args.split_first() else { return ExitCode::from(USAGE) };
    let Some(agent) = AGENTS.iter().find(|agent| name == agent.name) else {
        let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        let name = clean(&name.to_string_lossy());
        return fail(USAGE, &format!("{name:?} cannot be wrapped: use one of {}", known.join(", ")));
    };
    let Some(program) = which(agent.program) else {
        return fail(FAILURE, &format!("{} is not on PATH: `plexus doctor` shows how to install it", agent.program));
    };
    if agent.shows_terminal(args) {
        if let Some(version) = version(&program, agent.package).filter(|version| *version < agent.min_version) {
            let reason = format!("{version} is older than {}: its session is not in Plexus", agent.min_version);
            let _ = writeln!(std::io::stderr(), "plexus wrap: {} {reason}", agent.program);
        } else if let Some(files) = Home::find().ok().and_then(|home| Files::make(&home)) {
            return agent.run(&program, args, &files);
        }
    }
    let error = std::process::Command::new(&program).args(args).exec();
    fail(FAILURE, &format!("cannot start {}: {error}", program.display()))
}

fn fail(code: u8, error: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "plexus wrap: {error}");
    ExitCode::from(code)
}

/// The version of a program, from its package; `None` if it cannot be determined.
fn version(program: &Path, name: &str) -> Option<AgentVersion> {
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let real = program.canonicalize().ok()?;
    real.ancestors().skip(1).find_map(|folder| {
        let path = folder.join("package.json");
        std::fs::metadata(&path).ok().filter(|metadata| metadata.is_file() && metadata.len() <= PACKAGE_MAX)?;
        let package: Package = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        (package.name == name).then(|| AgentVersion::find(&package.version)).flatten()
    })
}

impl WrappedAgent {
    /// Returns `true` if the agent shows its terminal with these arguments. A first argument that is not an option is a command, or a
    /// prompt that it answers once.
    fn shows_terminal(&self, args: &[OsString]) -> bool {
        let is = |arg: &OsString, word: &str| {
            arg.as_bytes()
                .strip_prefix(word.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'='))
        };
        let own_args = args.iter().take_while(|arg| *arg != "--");
        let without_terminal = own_args.into_iter().any(|arg| self.without_terminal.iter().any(|word| is(arg, word)));
        let switch = args.first().is_none_or(|first| first.as_bytes().starts_with(b"-"));
        switch && !without_terminal && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// Runs the agent with these files.
    fn run(&self, program: &Path, args: &[OsString], files: &Files) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = match runtime {
            Ok(runtime) => runtime.block_on(self.run_with_tunnel(program, args, files)),
            Err(error) => Err(error),
        };
        match ended {
            Ok(status) => {
                let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or_default();
                ExitCode::from(u8::try_from(code & 0xff).unwrap_or(FAILURE))
            }
            Err(error) => fail(FAILURE, &format!("cannot start {}: {error}", program.display())),
        }
    }

    async fn run_with_tunnel(&self, program: &Path, args: &[OsString], files: &Files) -> std::io::Result<ExitStatus> {
        // The terminal's keys belong to the agent. A handler, unlike ignoring the signals, leaves the agent's own handling unchanged.
        let mut keys = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
        let mut ends = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let mut child = tokio::process::Command::new(program)
            .args([OsStr::new(self.output), files.output.as_os_str(), OsStr::new(self.input), files.input.as_os_str()])
            .args(args)
            .spawn()?;
        let pid = child.id().unwrap_or_default();
        let tunnel = Tunnel {
            socket: files.socket.clone(),
            hello: self.hello(pid),
            hello_event: self.hello_event(files),
            files,
            submits: Cell::new(0),
            ended: tokio::sync::watch::channel(false).0,
        };
        let mut serving = std::pin::pin!(tunnel.run());
        let forward_signal = |signal| {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, signal);
            }
        };
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = &mut serving => return child.wait().await,
                _ = keys.0.recv() => {}
                _ = keys.1.recv() => {}
                _ = ends.0.recv() => forward_signal(Signal::TERM),
                _ = ends.1.recv() => forward_signal(Signal::HUP),
            }
        };
        tunnel.ended.send_replace(true);
        let _ = timeout(FINAL_READ_TIME, serving).await;
        Ok(status)
    }

    fn hello(&self, pid: u32) -> HelperHello {
        let (link, agent, role) = (LINK_VERSION, self.name.to_owned(), HelperRole::Tunnel);
        // The identifier is a name and not secret, so the process id is sufficient, too.
        let id = random_id().unwrap_or_else(|_| pid.to_string());
        HelperHello { link, agent, role, id, pid, terminal: None }
    }

    /// The first event, with the paths that the dialect needs.
    fn hello_event(&self, files: &Files) -> Value {
        let (variable, below_home, chats) = self.chats;
        let configured = std::env::var_os(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let folder = configured.or_else(|| std::env::home_dir().map(|home| home.join(below_home)));
        let projects = folder.filter(|folder| folder.is_absolute()).map(|folder| folder.join(chats));
        let projects = projects.as_deref().and_then(Path::to_str).unwrap_or_default().to_owned();
        let since = Timestamp::from(std::time::SystemTime::now()).to_string();
        json!({ "type": "hello", "output": files.output.to_str(), "projects": projects, "since": since })
    }
}

/// The agent's files, in a folder of their own; it is removed at the end.
struct Files {
    folder: PathBuf,
    output: PathBuf,
    input: PathBuf,
    socket: PathBuf,
    /// The lock, which is held while this process lives.
    _lock: std::fs::File,
}

impl Files {
    /// Creates the files, and removes those of processes that have ended. `None` if that fails: the agent is started without them.
    fn make(home: &Home) -> Option<Self> {
        home.create().ok()?;
        let all = home.dir().join(WRAPPED);
        let private = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
        match private(&all) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => remove_left_over(&all),
        }
        let folder = all.join(random_id().ok()?);
        private(&folder).ok()?;
        let new = |name: &str| {
            let path = folder.join(name);
            let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            // Paths are passed as text.
            file.ok().zip(path.to_str().map(|_| path.clone()))
        };
        let files = || {
            let (lock, _) = new(LOCK)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
            let ((_, output), (_, input)) = (new(OUTPUT)?, new(INPUT)?);
            Some((lock, output, input))
        };
        let Some((lock, output, input)) = files() else {
            let _ = std::fs::remove_dir_all(&folder);
            return None;
        };
        Some(Self { folder: folder.clone(), output, input, socket: home.dir().join(LINK_SOCKET), _lock: lock })
    }

    /// Appends a line for the agent.
    fn append(&self, line: &RawValue) -> std::io::Result<()> {
        let mut bytes = line.get().replace(['\n', '\r'], " ").into_bytes();
        bytes.push(b'\n');
        std::fs::OpenOptions::new().append(true).open(&self.input)?.write_all(&bytes)
    }

    /// The length of the output, in bytes.
    fn length(&self) -> u64 {
        std::fs::metadata(&self.output).map_or(0, |metadata| metadata.len())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of processes that were killed: their locks are free.
fn remove_left_over(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let folder = entry.path();
        let lock = std::fs::OpenOptions::new().write(true).open(folder.join(LOCK));
        let Ok(lock) = lock else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The connection to the gateway, which reports new output.
struct Tunnel<'a> {
    socket: PathBuf,
    hello: HelperHello,
    hello_event: Value,
    files: &'a Files,
    /// The number of prompts that were written.
    submits: Cell<u64>,
    /// `true` once the agent has ended.
    ended: tokio::sync::watch::Sender<bool>,
}

/// A line of the gateway: a request, or the end of the tunnel.
#[derive(Deserialize)]
struct GatewayLine<'a> {
    #[serde(borrow)]
    request: Option<GatewayRequest<'a>>,
}

/// A request of the gateway.
#[derive(Deserialize)]
struct GatewayRequest<'a> {
    id: u64,
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// A line to append for the agent.
#[derive(Deserialize)]
struct InputLine<'a> {
    /// The name of the answer, which is written only once.
    once: Option<String>,
    /// The number of prompts that were written before this one.
    submit: Option<u64>,
    #[serde(borrow)]
    line: &'a RawValue,
}

impl Tunnel<'_> {
    /// Runs until the agent has ended and the gateway, if there is one, has read its output.
    async fn run(&self) {
        let (mut ended, mut written_ids) = (self.ended.subscribe(), VecDeque::new());
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket).await {
                let uid = rustix::process::geteuid().as_raw();
                if stream.peer_cred().is_ok_and(|peer| peer.uid() == uid) {
                    let _ = self.serve(stream, &mut written_ids).await;
                }
            }
            if *ended.borrow() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_PAUSE) => {}
                _ = ended.wait_for(|ended| *ended) => return,
            }
        }
    }

    /// Serves a gateway until it disconnects.
    async fn serve(&self, mut stream: UnixStream, written_ids: &mut VecDeque<String>) -> std::io::Result<()> {
        let (read, mut write) = stream.split();
        let mut hello_event = self.hello_event.clone();
        hello_event["submits"] = self.submits.get().into();
        send_line(&mut write, &serde_json::to_value(&self.hello)?).await?;
        send_line(&mut write, &json!({ "event": hello_event })).await?;
        let (mut ended, mut end_sent) = (self.ended.subscribe(), false);
        let (mut length, mut grown) = (self.files.length(), Instant::now());
        let (mut read, mut line) = (BufReader::new(read), Vec::new());
        loop {
            let poll = if grown.elapsed() < QUIET_AFTER { POLL } else { QUIET_POLL };
            // A partial line stays in the buffer when another event comes first.
            let limit = (MESSAGE_MAX - line.len()) as u64;
            tokio::select! {
                read_bytes = async { (&mut read).take(limit).read_until(b'\n', &mut line).await } => {
                    if read_bytes? == 0 || !line.ends_with(b"\n") {
                        return Ok(());
                    }
                    let reply = self.handle_line(&line, written_ids);
                    line.clear();
                    let Some(reply) = reply else { return Ok(()) };
                    send_line(&mut write, &reply).await?;
                }
                _ = ended.wait_for(|ended| *ended), if !end_sent => {
                    end_sent = true;
                    send_line(&mut write, &json!({ "event": { "type": "ended" } })).await?;
                }
                () = tokio::time::sleep(poll) => {
                    let now = self.files.length();
                    if now != length {
                        (length, grown) = (now, Instant::now());
                        send_line(&mut write, &json!({ "event": { "type": "grown" } })).await?;
                    }
                }
            }
        }
    }

    /// The reply to a line of the gateway; `None` at the end.
    fn handle_line(&self, line: &[u8], written_ids: &mut VecDeque<String>) -> Option<Value> {
        let GatewayRequest { id, method, path, body } = serde_json::from_slice::<GatewayLine<'_>>(line).ok()?.request?;
        let result = match (method.as_ref(), path.as_ref(), body) {
            ("POST", "/input", Some(body)) => self.write(body, written_ids),
            _ => Err("a terminal accepts only input".to_owned()),
        };
        Some(match result {
            Ok(()) => json!({ "reply": { "id": id, "status": 200 } }),
            Err(error) => json!({ "reply": { "id": id, "error": error } }),
        })
    }

    /// Writes a prompt or an answer, but only once.
    fn write(&self, body: &RawValue, written_ids: &mut VecDeque<String>) -> Result<(), String> {
        #[derive(Deserialize)]
        struct InputKind {
            #[serde(rename = "type")]
            kind: String,
        }
        let InputLine { once, submit, line } =
            serde_json::from_str(body.get()).map_err(|error| format!("it is not a line of input: {error}"))?;
        let InputKind { kind } =
            serde_json::from_str(line.get()).map_err(|error| format!("it is not a line of input: {error}"))?;
        let append = || self.files.append(line).map_err(|error| format!("the input cannot be written: {error}"));
        match (kind.as_str(), once, submit) {
            ("submit", None, Some(earlier_submits)) => {
                if earlier_submits >= self.submits.get() {
                    append()?;
                    self.submits.set(earlier_submits + 1);
                }
                Ok(())
            }
            ("confirmation_response", Some(name), None) => {
                if !written_ids.contains(&name) {
                    append()?;
                    if written_ids.len() >= WRITTEN_MAX {
                        written_ids.pop_front();
                    }
                    written_ids.push_back(name);
                }
                Ok(())
            }
            _ => Err("a terminal accepts only prompts and answers".into()),
        }
    }
}

/// Writes a line of JSON to the gateway.
async fn send_line(write: &mut (impl tokio::io::AsyncWrite + Unpin), message: &Value) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    timeout(SEND_TIMEOUT, write.write_all(&line)).await?
}
