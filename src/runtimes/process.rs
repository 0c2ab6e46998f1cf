//! One start of an agent's program: pipes, environment, stderr, and an end that leaves nothing behind.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc, watch};

use super::Settings;
use crate::model::RuntimeSpec;
use crate::sessions::Exit;

/// Frames that wait for the agent's stdin; when it is full the agent is stuck.
const FRAMES: usize = 1024;
/// Bytes that wait for the agent's stdin; past it the agent is stuck.
const FRAME_BYTES: usize = 32 << 20;
/// Bytes of stderr that are kept.
const STDERR_KEPT: usize = 64 << 10;
/// Bytes of stderr that are shown.
const STDERR_SHOWN: usize = 4 << 10;

/// Variables that an agent gets from the gateway's own environment; everything else must be named by its owner.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TZ",
    "PWD",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];
/// And those whose names begin like this.
const ALLOWED_FAMILIES: &[&str] = &["LC_", "XDG_"];

/// A running agent.
pub(super) struct Process {
    /// The holder's process; the agent is its child.
    pub(super) pid: u32,
    frames: mpsc::Sender<Bytes>,
    waiting: Arc<std::sync::atomic::AtomicUsize>,
    stderr: Arc<Stderr>,
    ask: Arc<Ask>,
    exit: watch::Receiver<Option<Exit>>,
}

/// How the driver asks for an end.
#[derive(Default)]
struct Ask {
    now: Notify,
    reason: Mutex<Option<String>>,
}

/// The agent does not read its stdin.
#[derive(Debug)]
pub(super) struct Stuck;

/// The environment that an agent gets, from that of the gateway.
pub(super) fn environment(
    spec: &RuntimeSpec,
    ours: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let passes = |name: &str| {
        // Nothing of the gateway's own, whoever asks for it.
        !name.starts_with("PLEXUS_")
            && (ALLOWED.contains(&name)
                || ALLOWED_FAMILIES.iter().any(|family| name.starts_with(family))
                || spec.pass_env.iter().any(|wanted| match wanted.strip_suffix('*') {
                    Some(family) => name.starts_with(family),
                    None => name == wanted,
                }))
    };
    let mut env: BTreeMap<String, String> = ours.filter(|(name, _)| passes(name)).collect();
    env.extend(spec.env.iter().filter(|(name, _)| !name.starts_with("PLEXUS_")).map(|(k, v)| (k.clone(), v.clone())));
    env
}

/// The program's file: as named if it has a slash (from `cwd`), else the first on `path`.
pub(super) fn resolve(program: &str, cwd: &Path, path: &str) -> Option<PathBuf> {
    let runs = |file: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|file| runs(file));
    }
    path.split(':').map(|dir| Path::new(dir).join(program)).find(|file| runs(file))
}

impl Process {
    /// Starts the agent and hands over its stdout. `stop` ends it for good.
    ///
    /// # Errors
    /// In words, with the fix.
    pub(super) fn start(
        spec: &RuntimeSpec,
        command: &[String],
        settings: &Settings,
        stop: Arc<Notify>,
    ) -> Result<(Self, ChildStdout), String> {
        let [program, args @ ..] = command else { return Err("the command is empty".into()) };
        if !spec.cwd.is_dir() {
            return Err(format!("the folder {} does not exist", spec.cwd.display()));
        }
        let env = environment(spec, std::env::vars());
        let path = env.get("PATH").map_or("", String::as_str);
        let file = resolve(program, &spec.cwd, path).ok_or_else(|| match super::presets::hint(program) {
            Some(install) => format!("`{program}` is not installed, or not on PATH: {install}"),
            None => format!("`{program}` is not a program, or not on PATH"),
        })?;
        let mut child = Command::new(&settings.exe)
            .arg("hold")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--")
            .arg(file)
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(&spec.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C in the gateway's terminal is not for the agent.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", settings.exe.display()))?;
        let pid = child.id().unwrap_or_default();
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the agent has no pipes".into());
        };
        let (frames, frames_rx) = mpsc::channel(FRAMES);
        let waiting = Arc::default();
        let closing = Arc::new(Notify::new());
        tokio::spawn(write(stdin, frames_rx, Arc::clone(&waiting), Arc::clone(&closing)));
        let kept = Arc::new(Stderr::default());
        let reading = tokio::spawn(read_stderr(stderr, Arc::clone(&kept)));
        let ask = Arc::new(Ask::default());
        let (exit_tx, exit) = watch::channel(None);
        let (asked, tail, times) = (Arc::clone(&ask), Arc::clone(&kept), settings.clone());
        tokio::spawn(async move {
            let (status, stopped) = end(child, &stop, &asked.now, &closing, &times).await;
            // The last words are often the reason; a grandchild that keeps the pipe open must not keep us.
            let _ = tokio::time::timeout(Duration::from_millis(500), reading).await;
            let reason = asked.reason.lock().unwrap_or_else(PoisonError::into_inner).take();
            let reason = reason.or_else(|| stopped.then(|| "it was stopped".into()));
            exit_tx.send_replace(Some(exit_of(status, reason, stopped, tail.shown())));
        });
        Ok((Self { pid, frames, waiting, stderr: kept, ask, exit }, stdout))
    }

    /// Gives the agent a frame; never waits.
    ///
    /// # Errors
    /// [`Stuck`] if too much waits already. An agent whose stdin is closed takes everything: its end is told elsewhere.
    pub(super) fn send(&self, frame: Bytes) -> Result<(), Stuck> {
        use std::sync::atomic::Ordering::Relaxed;
        let length = frame.len();
        if self.waiting.fetch_add(length, Relaxed) > FRAME_BYTES {
            return Err(Stuck);
        }
        match self.frames.try_send(frame) {
            Err(mpsc::error::TrySendError::Full(_)) => Err(Stuck),
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// Asks for an end: stdin closed, TERM, KILL. The first reason stands.
    pub(super) fn stop(&self, reason: &str) {
        self.ask.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| reason.to_owned());
        self.ask.now.notify_one();
    }

    /// Waits for the end.
    pub(super) async fn ended(&mut self) -> Exit {
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.clone().unwrap_or_default(),
            Err(_) => Exit { reason: Some("its keeper is gone".into()), ..Exit::default() },
        }
    }

    /// The end of what it wrote to stderr, if it wrote anything since this was last asked.
    pub(super) fn stderr_news(&self) -> Option<String> {
        self.stderr.news.swap(false, std::sync::atomic::Ordering::Relaxed).then(|| self.stderr.shown())
    }
}

/// Waits for the end, or brings it about: stdin closed, TERM to the holder (which ends the whole family), KILL to its group.
async fn end(
    mut child: Child,
    stop: &Notify,
    ask: &Notify,
    closing: &Notify,
    settings: &Settings,
) -> (std::io::Result<ExitStatus>, bool) {
    let stopped = tokio::select! {
        status = child.wait() => return (status, false),
        () = stop.notified() => true,
        () = ask.notified() => false,
    };
    closing.notify_one();
    if let Ok(status) = tokio::time::timeout(settings.after_eof, child.wait()).await {
        return (status, stopped);
    }
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    // The holder alone: it passes the signal on to everything below it, and waits for it.
    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
    if let Ok(status) = tokio::time::timeout(settings.after_term, child.wait()).await {
        return (status, stopped);
    }
    let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    let _ = child.start_kill();
    (child.wait().await, stopped)
}

fn exit_of(status: std::io::Result<ExitStatus>, reason: Option<String>, stopped: bool, stderr_tail: String) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    let status = status.ok();
    Exit {
        code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()).map(signal_name),
        stderr_tail,
        reason,
        stopped,
    }
}

fn signal_name(number: i32) -> String {
    let names = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
    ];
    let known = names.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).into())
}

async fn write(
    mut stdin: ChildStdin,
    mut frames: mpsc::Receiver<Bytes>,
    waiting: Arc<std::sync::atomic::AtomicUsize>,
    closing: Arc<Notify>,
) {
    let mut writing = async || {
        while let Some(frame) = frames.recv().await {
            let length = frame.len();
            // An agent that closed its stdin is about to end; its exit says why.
            stdin.write_all(&frame).await?;
            waiting.fetch_sub(length, std::sync::atomic::Ordering::Relaxed);
        }
        std::io::Result::Ok(())
    };
    tokio::select! {
        _ = writing() => {}
        () = closing.notified() => {}
    }
}

/// The end of what the agent wrote to stderr.
#[derive(Default)]
struct Stderr {
    kept: Mutex<VecDeque<u8>>,
    news: std::sync::atomic::AtomicBool,
}

impl Stderr {
    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let over = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..over);
        self.news.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// For people: whole characters, controls made visible.
    fn shown(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let tail: Vec<u8> = kept.iter().skip(kept.len().saturating_sub(STDERR_SHOWN)).copied().collect();
        let text = String::from_utf8_lossy(&tail);
        let visible = |c: char| -> String {
            if c.is_control() && c != '\n' && c != '\t' { c.escape_default().collect() } else { c.into() }
        };
        text.chars().map(visible).collect()
    }
}

async fn read_stderr(mut stderr: tokio::process::ChildStderr, kept: Arc<Stderr>) {
    let mut buffer = [0u8; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        kept.keep(&buffer[..read]);
    }
}
