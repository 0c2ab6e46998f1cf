//! An agent's process: found, started behind its holder with a small environment, listened to, signalled.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::presets;
use crate::model::RuntimeSpec;

/// How much of what a runtime writes to stderr is kept, in bytes; older text is forgotten.
const STDERR_KEPT: usize = 64 * 1024;

/// How much of it is shown, in bytes before escaping.
const STDERR_SHOWN: usize = 4 * 1024;

/// Frames that wait for a runtime's stdin; with more the runtime is stuck, and stopped.
const WRITE_FRAMES: usize = 4096;

/// Frames up to this many bytes together go out in one write.
const WRITE_MERGED: usize = 64 * 1024;

/// Variables that every runtime gets from the gateway's own environment: what a program needs to find its files, its
/// language, its terminal and its way to the network. A name ending in `*` stands for all that begin so.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TZ",
    "XDG_*",
    // Agents push with git, as their user does.
    "SSH_AUTH_SOCK",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// The gateway's own variables (its token, its home): no runtime ever gets one.
pub(super) const OWN: &str = "PLEXUS_";

/// Whether `name` is `pattern`, or begins with what stands before its `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// The whole environment of a runtime, from the gateway's own and its spec.
pub(super) fn environment(own: &BTreeMap<OsString, OsString>, spec: &RuntimeSpec) -> BTreeMap<OsString, OsString> {
    let passed = |name: &str| {
        ALLOWED.iter().any(|pattern| matches(pattern, name)) || spec.pass_env.iter().any(|p| matches(p, name))
    };
    let mut env: BTreeMap<OsString, OsString> = own
        .iter()
        .filter(|(name, _)| name.to_str().is_some_and(passed))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
    env.retain(|name, _| !name.as_encoded_bytes().starts_with(OWN.as_bytes()));
    env
}

/// Where `program` is, as a shell in `cwd` would find it.
///
/// # Errors
/// In words, with how to install it if that is known.
pub(super) fn find(program: &str, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let at = cwd.join(program);
        return match runnable(&at) {
            true => Ok(at),
            false if at.exists() => Err(format!("{} is not executable", at.display())),
            false => Err(format!("{} does not exist", at.display())),
        };
    }
    let dirs = path.map(std::env::split_paths).into_iter().flatten();
    let found = dirs.map(|dir| cwd.join(dir).join(program)).find(|at| runnable(at));
    found.ok_or_else(|| match presets::install_of(program) {
        Some(install) => format!("`{program}` is not on PATH: {install}"),
        None => format!("`{program}` is not on PATH"),
    })
}

fn runnable(at: &Path) -> bool {
    at.is_file() && rustix::fs::access(at, rustix::fs::Access::EXEC_OK).is_ok()
}

/// A process that was started: the holder, and its pipes.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts the runtime's program behind `hold`, the gateway's own program.
///
/// # Errors
/// In words: no such folder, no such program, no more processes.
pub(super) async fn start(
    spec: &RuntimeSpec,
    argv: &[String],
    hold: &Path,
    own: Arc<BTreeMap<OsString, OsString>>,
) -> Result<Started, String> {
    let Some((program, args)) = argv.split_first() else { return Err("its command is empty".into()) };
    let env = environment(&own, spec);
    let (name, cwd, path) = (program.clone(), spec.cwd.clone(), env.get(OsStr::new("PATH")).cloned());
    // Folders may lie on slow disks.
    let found = tokio::task::spawn_blocking(move || {
        if !cwd.is_dir() {
            return Err(format!("the folder {} does not exist", cwd.display()));
        }
        find(&name, path.as_deref(), &cwd)
    });
    let program = found.await.map_err(|error| error.to_string())??;
    // A child that is dropped is not killed: its holder sees the gateway end and takes the whole family along, which a
    // killed holder could not.
    let mut child = Command::new(hold)
        .args(["hold", "--parent", &std::process::id().to_string(), "--"])
        .arg(&program)
        .args(args)
        .current_dir(&spec.cwd)
        .env_clear()
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{}: {error}", hold.display()))?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Started { child, stdin, stdout, stderr }),
        _ => Err("its pipes are missing".into()),
    }
}

/// Asks the holder to end its family; it then ends itself. A child that was reaped is left alone, whoever has its
/// number now.
pub(super) fn terminate(child: &Child) {
    if let Some(pid) = pid(child) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Kills the holder and its whole group.
pub(super) fn kill(child: &Child) {
    if let Some(pid) = pid(child) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// The process, unless it was reaped.
fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

/// How a process ended: its exit code, or the name of the signal that killed it.
pub(super) fn ended(status: ExitStatus) -> (Option<i32>, Option<String>) {
    use std::os::unix::process::ExitStatusExt;
    (status.code(), status.signal().map(signal_name))
}

fn signal_name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = known.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("signal {number}"))
}

// === stdin ===

/// A runtime's stdin: frames wait here, so that nobody waits for the runtime.
pub(super) struct Writer {
    /// `None` once closed.
    frames: Option<mpsc::Sender<Bytes>>,
    queued: Arc<AtomicUsize>,
    max: usize,
    task: JoinHandle<std::io::Result<()>>,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// Too much waits already.
    Full,
    /// The runtime closed its stdin, or we did.
    Closed,
}

impl Writer {
    /// Starts writing to `stdin`; at most `max` bytes and one frame wait.
    pub(super) fn new(stdin: ChildStdin, max: usize) -> Self {
        let (frames, rx) = mpsc::channel(WRITE_FRAMES);
        let queued = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(write(stdin, rx, Arc::clone(&queued)));
        Self { frames: Some(frames), queued, max, task }
    }

    /// Takes a frame, at once.
    pub(super) fn put(&self, frame: Bytes) -> Result<(), Unwritten> {
        let Some(frames) = &self.frames else { return Err(Unwritten::Closed) };
        // A frame of any size is fine while little waits: only what piles up says that nobody reads.
        if self.queued.load(Ordering::Relaxed) >= self.max {
            return Err(Unwritten::Full);
        }
        let weight = frame.len();
        self.queued.fetch_add(weight, Ordering::Relaxed);
        frames.try_send(frame).map_err(|refused| {
            self.queued.fetch_sub(weight, Ordering::Relaxed);
            match refused {
                mpsc::error::TrySendError::Full(_) => Unwritten::Full,
                mpsc::error::TrySendError::Closed(_) => Unwritten::Closed,
            }
        })
    }

    /// Closes stdin once everything taken is written.
    pub(super) fn close(&mut self) {
        self.frames = None;
    }

    /// Waits until the runtime does not take its stdin any more. Never returns once it is closed by us.
    pub(super) async fn broken(&mut self) {
        if self.frames.is_some() && !self.task.is_finished() {
            let _ = (&mut self.task).await;
        }
        if self.frames.is_none() {
            std::future::pending::<()>().await;
        }
        // From now on `put` says so.
        self.frames = None;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write(mut stdin: ChildStdin, mut rx: mpsc::Receiver<Bytes>, queued: Arc<AtomicUsize>) -> std::io::Result<()> {
    let (mut batch, mut merged) = (Vec::new(), Vec::new());
    while rx.recv_many(&mut batch, 64).await > 0 {
        let weight: usize = batch.iter().map(Bytes::len).sum();
        if batch.len() == 1 || weight > WRITE_MERGED {
            for frame in &batch {
                stdin.write_all(frame).await?;
            }
        } else {
            merged.clear();
            batch.iter().for_each(|frame| merged.extend_from_slice(frame));
            stdin.write_all(&merged).await?;
        }
        stdin.flush().await?;
        queued.fetch_sub(weight, Ordering::Relaxed);
        batch.clear();
    }
    Ok(())
}

// === stderr ===

/// The end of what a runtime writes to stderr.
pub(super) struct Stderr {
    kept: Arc<Kept>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Kept {
    text: Mutex<VecDeque<u8>>,
    news: Notify,
}

impl Kept {
    fn text(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stderr {
    /// Reads `stderr` to its end.
    pub(super) fn new(mut stderr: ChildStderr) -> Self {
        let kept = Arc::<Kept>::default();
        let task = tokio::spawn({
            let kept = Arc::clone(&kept);
            async move {
                let mut buf = vec![0; 8 * 1024];
                while let Ok(read @ 1..) = stderr.read(&mut buf).await {
                    let mut text = kept.text();
                    text.extend(&buf[..read]);
                    let old = text.len().saturating_sub(STDERR_KEPT);
                    text.drain(..old);
                    drop(text);
                    kept.news.notify_one();
                }
            }
        });
        Self { kept, task }
    }

    /// Waits until there is more than the last time. Cancellation safe.
    pub(super) async fn news(&self) {
        self.kept.news.notified().await;
    }

    /// Waits for its end, at most `most`.
    pub(super) async fn end(&mut self, most: Duration) {
        if !self.task.is_finished() {
            let _ = tokio::time::timeout(most, &mut self.task).await;
        }
    }

    /// The last few lines, fit to be shown.
    pub(super) fn tail(&self) -> String {
        let text = self.kept.text();
        let skipped = text.len().saturating_sub(STDERR_SHOWN);
        let tail: Vec<u8> = text.iter().skip(skipped).copied().collect();
        drop(text);
        // Not from the middle of a character.
        let torn = tail.iter().take(3).take_while(|byte| skipped > 0 && **byte & 0xc0 == 0x80).count();
        shown(&tail[torn..])
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Text of a runtime's, fit to be shown in a terminal or a page: what is no UTF-8 is replaced, controls (but newline and
/// tab) and characters that change how others are shown are escaped.
pub(super) fn shown(text: &[u8]) -> String {
    use unicode_general_category::{GeneralCategory, get_general_category};
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let plain = matches!(c, '\n' | '\t')
            || !matches!(get_general_category(c), GeneralCategory::Control | GeneralCategory::Format);
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            _ if plain => out.push(c),
            _ => out.extend(c.escape_default()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_reach_a_runtime_and_never_the_gateways_own() {
        let own =
            ["PATH", "LC_ALL", "XDG_DATA_HOME", "LD_PRELOAD", "NODE_OPTIONS", "SECRET", "PLEXUS_TOKEN", "GEMINI_X"];
        let own = own.iter().map(|name| (name.into(), "own".into())).collect();
        let mut spec = crate::runtimes::tests::spec("true", &[]);
        spec.pass_env = ["GEMINI_*", "PLEXUS_TOKEN", "P*"].map(String::from).to_vec();
        spec.env = [("SET", "1"), ("PATH", "/x"), ("PLEXUS_HOME", "/h")].map(|(k, v)| (k.into(), v.into())).into();
        let env = environment(&own, &spec);
        let names: Vec<&str> = env.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(names, ["GEMINI_X", "LC_ALL", "PATH", "SET", "XDG_DATA_HOME"]);
        assert_eq!(env.get(OsStr::new("PATH")), Some(&"/x".into()));
    }

    #[test]
    fn programs_are_found_as_a_shell_would_and_missing_ones_come_with_the_fix() {
        let path = OsStr::new("/nonexistent:/usr/bin:/bin");
        assert!(find("sh", Some(path), Path::new("/")).unwrap().ends_with("sh"));
        assert!(find("bin/sh", None, Path::new("/")).is_ok());
        let missing = find("gemini", Some(OsStr::new("/nonexistent")), Path::new("/")).unwrap_err();
        assert_eq!(missing, "`gemini` is not on PATH: npm install -g @google/gemini-cli");
        assert_eq!(find("./etc/passwd", None, Path::new("/")).unwrap_err(), "/./etc/passwd is not executable");
        assert_eq!(find("/no/such", None, Path::new("/")).unwrap_err(), "/no/such does not exist");
    }

    #[test]
    fn stderr_cannot_paint_the_screen() {
        assert_eq!(shown(b"a\tb\r\nc\x1b[2J\r\x00\xff"), "a\tb\nc\\u{1b}[2J\\r\\u{0}\u{fffd}");
        assert_eq!(shown("x\u{202e}y é".as_bytes()), "x\\u{202e}y é");
    }
}
