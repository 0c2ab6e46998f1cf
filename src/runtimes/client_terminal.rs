//! A terminal of an agent: one command behind a holder, the end of its output, and its exit.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::{client_files as files, process};
use plexus_dialects::{ClientToolError, ClientToolResult, CommandEnd};

/// Maximum size of the retained output of a command, in bytes, regardless of the agent's limit; older output is dropped.
const OUTPUT_MAX: usize = 1024 * 1024;

/// Maximum time for a holder to end a command's family before the holder itself is killed. It gives the family one second, and then five
/// seconds for killed processes to end.
const KILL_AFTER: Duration = Duration::from_secs(8);

/// Time for which output is still read after a command has ended: another process may hold its pipe.
const LINGER: Duration = Duration::from_millis(500);

/// The command to run.
pub(super) struct TerminalStart {
    pub(super) hold: PathBuf,
    pub(super) base: Arc<BTreeMap<OsString, OsString>>,
    pub(super) scope: files::FileScope,
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) keep: Option<u64>,
}

/// A running command, which ends when the value is dropped.
pub(super) struct Terminal {
    shared: Arc<Shared>,
    /// The task of the command; `None` once released.
    task: Option<JoinHandle<()>>,
}

struct Shared {
    output: Mutex<Output>,
    end: watch::Sender<Option<CommandEnd>>,
    kill: Notify,
}

impl Shared {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock()
    }
}

/// The last bytes of a command's output.
struct Output {
    bytes: VecDeque<u8>,
    keep: usize,
    cut: bool,
}

impl Output {
    fn push(&mut self, more: &[u8]) {
        self.bytes.extend(more);
        let old = self.bytes.len().saturating_sub(self.keep);
        if old > 0 {
            self.cut = true;
            self.bytes.drain(..old);
        }
    }

    /// Returns the output as text, starting at a character boundary.
    fn text(&self) -> String {
        let partial = self.bytes.iter().take(3).take_while(|byte| self.cut && **byte & 0xc0 == 0x80).count();
        let bytes: Vec<u8> = self.bytes.iter().skip(partial).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Terminal {
    /// Starts a command; the second value reports when it runs, or why it does not.
    pub(super) fn start(
        start: TerminalStart,
    ) -> (Self, impl Future<Output = Result<ClientToolResult, ClientToolError>> + Send + 'static) {
        let keep = start.keep.and_then(|keep| usize::try_from(keep).ok()).unwrap_or(OUTPUT_MAX).min(OUTPUT_MAX);
        let output = Mutex::new(Output { bytes: VecDeque::new(), keep, cut: false });
        let shared = Arc::new(Shared { output, end: watch::Sender::new(None), kill: Notify::new() });
        let (report, reported) = oneshot::channel();
        let task = tokio::spawn(run(start, Arc::clone(&shared), report));
        let started = async move {
            let released = Err(ClientToolError::Refused("it was released before it ran".into()));
            reported.await.unwrap_or(released).map(|()| ClientToolResult::Done)
        };
        (Self { shared, task: Some(task) }, started)
    }

    /// Returns the output, and the end of the command if it has ended.
    pub(super) fn output(&self) -> ClientToolResult {
        let output = self.shared.output();
        ClientToolResult::Output { text: output.text(), cut: output.cut, end: self.shared.end.borrow().clone() }
    }

    /// Waits for the end of the command.
    pub(super) fn ended(&self) -> impl Future<Output = CommandEnd> + Send + 'static {
        let mut end = self.shared.end.subscribe();
        async move { end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone()).unwrap_or_default() }
    }

    /// Ends the command and its family.
    pub(super) fn kill(&self) {
        self.shared.kill.notify_one();
    }

    /// Releases the command; if it still runs, it is ended in the background.
    pub(super) fn release(mut self) {
        self.kill();
        self.task = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// A holder; when dropped, it gets the signal to end its family, and does so by itself.
struct Family(Child);

impl Family {
    fn pid(&self) -> Option<Pid> {
        self.0.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
    }

    /// Requests the holder to end its family.
    fn terminate(&self) {
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Kills the holder and its whole group.
    fn kill(&self) {
        if let Some(pid) = self.pid() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.terminate();
    }
}

async fn run(start: TerminalStart, shared: Arc<Shared>, tell: oneshot::Sender<Result<(), ClientToolError>>) {
    let (mut family, mut pipe) = match spawn(start).await {
        Ok(spawned) => spawned,
        Err(error) => {
            shared.end.send_replace(Some(CommandEnd::default()));
            let _ = tell.send(Err(error));
            return;
        }
    };
    // If the caller no longer waits, the command is released soon.
    let _ = tell.send(Ok(()));
    let (mut buf, mut open, mut status) = (vec![0; 8 * 1024], true, None);
    // The time to kill, or once the command has ended, the time to stop reading.
    let mut until: Option<Instant> = None;
    while status.is_none() || open {
        let timer = sleep_until(until.unwrap_or_else(Instant::now));
        tokio::select! {
            read = pipe.read(&mut buf), if open => match read {
                Ok(read @ 1..) => shared.output().push(&buf[..read]),
                _ => open = false,
            },
            ended = family.0.wait(), if status.is_none() => {
                status = Some(ended.ok());
                until = Some(Instant::now() + LINGER);
            }
            () = shared.kill.notified(), if status.is_none() => {
                family.terminate();
                until.get_or_insert_with(|| Instant::now() + KILL_AFTER);
            }
            () = timer, if until.is_some() => match status {
                Some(_) => break,
                None => {
                    family.kill();
                    until = None;
                }
            },
        }
    }
    let (code, signal) = status.flatten().map_or((None, None), plexus_holder::exit::ended);
    shared.end.send_replace(Some(CommandEnd { code, signal }));
}

async fn spawn(start: TerminalStart) -> Result<(Family, pipe::Receiver), ClientToolError> {
    let TerminalStart { hold, base, scope, argv, env, cwd, .. } = start;
    let cwd = spawn_blocking(move || files::inside(&scope, cwd.as_deref().unwrap_or(&scope.folder))).await;
    let cwd = cwd.unwrap_or_else(|error| Err(ClientToolError::Refused(error.to_string())))?;
    let refused = |error: std::io::Error| ClientToolError::Refused(format!("it cannot be started: {error}"));
    // One pipe for both streams, so that their order is retained.
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| refused(e.into()))?;
    let again = theirs.try_clone().map_err(refused)?;
    let mut command = Command::new(&hold);
    command.args(["hold", "--parent", &std::process::id().to_string(), "--"]);
    match argv.as_slice() {
        [line] => command.args(["sh", "-c", line]),
        words => command.args(words),
    };
    command.current_dir(&cwd).env_clear().envs(base.iter());
    // The gateway's own variables reach no agent, and no agent sets them for a program of the gateway.
    command.envs(env.into_iter().filter(|(name, _)| !name.starts_with(process::OWN)));
    command.env("PWD", Path::new(&cwd));
    command.stdin(Stdio::null()).stdout(theirs).stderr(again).process_group(0);
    let child = command.spawn().map_err(refused)?;
    // From here on the process does not outlive the gateway, even after an error.
    let family = Family(child);
    drop(command);
    let pipe = pipe::Receiver::from_owned_fd(ours).map_err(refused)?;
    Ok((family, pipe))
}
