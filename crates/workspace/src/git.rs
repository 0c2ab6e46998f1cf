//! Child processes of git, with limits of memory, processor time, time and output.
//!
//! A child runs in a process group of its own, which is killed as a whole at the deadline. Its environment is empty
//! except for the variables that this module sets, so no configuration of the user or of the system is read.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{Result, WorkspaceError, disk};

/// Address space of a child in KiB; a child that needs more fails, and so does the call.
const MEMORY_KIB: u64 = 512 << 10;
/// Niceness added to a child, so that scans yield to agents.
const NICE: i32 = 10;
/// Maximum number of bytes of the error output in an error text; further ones are dropped.
const ERROR_TEXT_MAX: usize = 600;
/// Maximum number of bytes of the error output that are read; further ones are dropped.
const STDERR_MAX: usize = 64 << 10;
/// Time for a killed child to end; for one that hangs longer in the system, a thread waits.
const REAP: Duration = Duration::from_secs(1);
/// Number of bytes that are read from a pipe at a time.
const PIECE: usize = 64 << 10;

/// Variables of every child.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("HOME", "/nonexistent"),
    // Each allocator arena reserves 64 MiB of address space for each thread.
    ("MALLOC_ARENA_MAX", "1"),
];

/// Sets the limits and becomes git. A system that lacks a limit runs git without that limit.
const LIMITED: &str = r#"ulimit -c 0; ulimit -v "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; shift 2; exec "$@""#;

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Seconds until the child is killed, and seconds of processor time for it.
    pub(crate) seconds: u64,
    /// Maximum number of bytes of output; above it the child is killed, and the output counts as cut.
    pub(crate) output: usize,
}

/// The output of a child.
#[derive(Debug, Default)]
pub(crate) struct GitOutput {
    pub(crate) success: bool,
    pub(crate) stdout: Vec<u8>,
    /// `true` if the child had more output than the limit.
    pub(crate) cut: bool,
    pub(crate) stderr: Vec<u8>,
}

impl GitOutput {
    /// Returns the output as one line of text.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(self.stdout.trim_ascii()).into_owned()
    }

    /// Returns the error output on one line.
    pub(crate) fn error_text(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let text: String = lines.join("; ").chars().filter(|c| !c.is_control()).take(ERROR_TEXT_MAX).collect();
        if text.is_empty() { "git was stopped at a limit, or failed without a word".into() } else { text }
    }

    /// Returns the complete output of a child that succeeded.
    pub(crate) fn checked(self, action: &'static str) -> Result<Self> {
        if self.cut {
            return Err(WorkspaceError::Git { action, text: "the output is too long".into() });
        }
        if self.success { Ok(self) } else { Err(WorkspaceError::Git { action, text: self.error_text() }) }
    }
}

/// A way to run git: the program, the folder, and the settings before the command.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
    folder: PathBuf,
    before: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// A locked file that a child holds open as its input, so that the lock lives as long as the child.
    lock: Option<Arc<File>>,
}

impl Git {
    /// Finds the program and runs it in `folder`.
    pub(crate) fn within(folder: &Path) -> Result<Self> {
        let (program, folder) = (program()?, folder.to_owned());
        Ok(Self { program, folder, before: Vec::new(), environment: Vec::new(), lock: None })
    }

    /// Adds arguments before the command.
    pub(crate) fn before<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.before.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    pub(crate) fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes children without input hold a locked file.
    pub(crate) fn holding(mut self, lock: Arc<File>) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Runs a command and returns its output. Blocks until the child ends or `limits` end it.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, limits: Limits, args: &[S], input: Option<&[u8]>) -> Result<GitOutput> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", LIMITED, "sh", &MEMORY_KIB.to_string(), &limits.seconds.to_string()]);
        command.arg(&self.program).args(&self.before).args(args).current_dir(&self.folder).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(ENVIRONMENT.iter().copied()).envs(self.environment.iter().map(|(name, value)| (name, value)));
        let held = match (&self.lock, input) {
            (_, Some(_)) => Stdio::piped(),
            (Some(lock), None) => Stdio::from(lock.try_clone().map_err(disk("holding the lock of the store"))?),
            (None, None) => Stdio::null(),
        };
        command.stdin(held).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|why| match self.folder.is_dir() {
            true => WorkspaceError::GitMissing(why.to_string()),
            false => WorkspaceError::Disk { action: "entering the folder", text: why.to_string() },
        })?;
        let group = Pid::from_child(&child);
        // If this is refused, the child has the priority of the gateway.
        let _ = rustix::process::setpriority_process(Some(group), NICE);
        let deadline = Instant::now() + Duration::from_secs(limits.seconds);
        let exchanged = exchange(&mut child, input.unwrap_or_default(), limits.output, deadline);
        let ended = match &exchanged {
            Ok(output) if !output.cut => wait_until(&mut child, deadline),
            _ => None,
        };
        if ended.is_none() {
            let _ = kill_process_group(group, Signal::KILL);
            if wait_until(&mut child, Instant::now() + REAP).is_none() {
                std::thread::spawn(move || child.wait());
            }
        }
        let mut output = exchanged.map_err(disk("talking to git"))?;
        if ended.is_none() && !output.cut {
            return Err(WorkspaceError::Slow(limits.seconds));
        }
        output.success = ended == Some(true);
        Ok(output)
    }
}

/// Finds git in the absolute folders of `PATH`: a relative one would name a program of the folder in which git runs.
fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
    found.find(|git| git.is_file()).ok_or_else(|| WorkspaceError::GitMissing("it is not on the PATH".into()))
}

/// Waits for the end of a child. Returns whether it succeeded, or `None` at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<bool> {
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Err(_) => return Some(false),
            Ok(None) if Instant::now() >= deadline => return None,
            Ok(None) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Writes the input and reads both outputs to their ends, to the limit of the output, or to the deadline.
fn exchange(child: &mut Child, input: &[u8], max: usize, deadline: Instant) -> std::io::Result<GitOutput> {
    let mut output = GitOutput::default();
    let (mut out, mut err, mut to) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
    let mut left = input;
    for fd in [out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd), to.as_ref().map(AsFd::as_fd)] {
        fd.map_or(Ok(()), |fd: BorrowedFd<'_>| rustix::io::ioctl_fionbio(fd, true))?;
    }
    let mut piece = vec![0; PIECE];
    loop {
        if left.is_empty() {
            to = None;
        }
        let mut polled = Vec::with_capacity(3);
        polled.extend(out.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        polled.extend(err.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        polled.extend(to.as_ref().map(|fd| PollFd::new(fd, PollFlags::OUT)));
        let now = Instant::now();
        if polled.is_empty() || now >= deadline {
            return Ok(output);
        }
        let wait = deadline - now;
        let wait = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut polled, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(polled);
        if !drain(&mut out, &mut piece, &mut output.stdout, max)? {
            output.cut = true;
            return Ok(output);
        }
        // The rest of an error text that is too long is read and dropped.
        if !drain(&mut err, &mut piece, &mut output.stderr, STDERR_MAX)? {
            output.stderr.truncate(STDERR_MAX / 2);
        }
        if let Some(pipe) = &mut to {
            match pipe.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // The child ended before it read everything; its status shows the reason.
                Err(_) => to = None,
            }
        }
    }
}

/// Reads the available bytes of a pipe. Returns `false` once `kept` has more than `max` bytes; drops the pipe at its end.
fn drain<R: Read>(pipe: &mut Option<R>, piece: &mut [u8], kept: &mut Vec<u8>, max: usize) -> std::io::Result<bool> {
    while let Some(from) = pipe {
        match from.read(piece) {
            Ok(0) => *pipe = None,
            Ok(read) => kept.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
        if kept.len() > max {
            kept.truncate(max);
            return Ok(false);
        }
    }
    Ok(true)
}
