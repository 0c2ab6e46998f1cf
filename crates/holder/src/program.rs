//! `plexus hold -- CMD`: a parent that ties a runtime and all of its descendants to the gateway. One file because it is one small
//! program.
//!
//! A gateway that is killed with `kill -9` cannot clean up after itself, and agents start shells in
//! groups and sessions of their own, so killing the agent's process group is not enough. The holder
//! is between them:
//!
//! - It leads a process group of its own, so a terminal's Ctrl-C or hang-up never reaches the agent.
//! - On Linux it is a child subreaper: whatever the agent starts stays below it in the process
//!   tree, `setsid` and double forks included, and it reaps the orphans it inherits.
//! - CMD gets the holder's own stdin, stdout and stderr. The holder closes its copies, so that end of file travels both ways.
//! - When the gateway dies, or the holder gets SIGTERM, the process tree gets SIGTERM and after [`GRACE`] SIGKILL. When CMD ends by itself,
//!   the rest of its tree is ended with [`LEFTOVER_GRACE`].
//! - The holder then ends as CMD did: same exit code, or death by the same signal.
//!
//! To stop a runtime, send SIGTERM to the holder alone (not to its group: CMD would get it twice) and allow it [`GRACE`] plus
//! [`KILL_WAIT`]. SIGKILL for the holder is the last resort, since nobody can then find descendants that left its group.
//!
//! Only Linux has subreapers. Elsewhere descendants are found by `ps`, and one that both left the group and lost its parent is not found.
#![expect(clippy::disallowed_methods, reason = "the holder ends as its child ended, whatever else it was about to do")]

pub mod event_loop;
mod process_tree;
mod spool;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::process_tree::{CommandOutcome, ProcessTree};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// Time for the process tree to end after SIGTERM when the gateway died or requested the end. Remaining processes are killed and lose
/// unsaved data.
pub const GRACE: Duration = Duration::from_secs(1);

/// Time for processes that CMD left behind to end after CMD ended by itself. Shorter, since the gateway learns of the end only
/// afterwards.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// Maximum time for killed processes to end. One that is stuck in the kernel (a dead network disk) may never end; the holder then ends,
/// and the kill stays pending.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// Interval at which a killed process tree is checked for new members.
const KILL_INTERVAL: Duration = Duration::from_millis(if cfg!(target_os = "linux") { 20 } else { 100 });

/// Interval at which the parent is polled where the kernel cannot report its death.
const PARENT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Exit code when CMD does not exist, as in shells.
const NOT_FOUND: i32 = 127;

/// Exit code when CMD exists but cannot be started, as in shells.
const CANNOT_START: i32 = 126;

/// Exit code when the gateway had ended before CMD was started.
const ABANDONED: i32 = 1;

/// Runs `cmd` (the program, then its arguments) and ends as it ended; never returns.
///
/// `parent` is the pid of the gateway. With it, the death of a gateway before this call is detected, too, and nothing is started (exit
/// code 1); without it that death is not detected.
///
/// Exits 127 if the program is not found and 126 if it cannot be started, with a message on stderr.
/// Call it from a process with no other threads and no children.
pub fn run(cmd: Vec<OsString>, parent: Option<u32>) -> ! {
    let Some((program, args)) = cmd.split_first() else {
        fail(CANNOT_START, "no command given");
    };
    let name = program.display();
    // The parent first: without a pid, the death of a parent before this line would not be detected.
    let watch = Parent::new();
    if parent.is_some_and(|pid| Some(pid) != watch.pid.map(|p| p.as_raw_pid().unsigned_abs())) || watch.is_dead() {
        fail(ABANDONED, &format!("did not start {name}: the gateway is gone"));
    }
    if rustix::process::getpgrp() != rustix::process::getpid()
        && let Err(why) = rustix::process::setsid()
    {
        fail(CANNOT_START, &format!("cannot start {name}: no process group of its own: {why}"));
    }
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        // The process group can still be ended, so continue; but report that detached processes are not found.
        print_error(&format!("processes that detach from {name} will not be found: {why}"));
    }
    let (wake, term) = match signals() {
        Ok(pair) => pair,
        Err(why) => fail(CANNOT_START, &format!("cannot start {name}: no signal handlers: {why}")),
    };
    let null = match OpenOptions::new().read(true).write(true).open("/dev/null") {
        Ok(null) => null,
        Err(why) => fail(CANNOT_START, &format!("cannot start {name}: /dev/null: {why}")),
    };
    let main = match Command::new(program).args(args).spawn() {
        Ok(child) => child.id(),
        Err(why) => {
            let code = if why.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_START };
            fail(code, &format!("cannot start {name}: {why}"));
        }
    };
    if let Err(why) = detach_stdio(&null) {
        // Not fatal. Stderr is now also CMD's: the gateway reads the line and a late end of file.
        print_error(&format!("cannot detach from stdio: {why}"));
    }
    let mut holder = Holder { wake, term, tree: ProcessTree { main, outcome: None } };
    let grace = holder.watch(&watch);
    holder.end_tree(grace);
    holder.exit_as_command()
}

struct Holder {
    /// Readable when a signal has arrived.
    wake: UnixStream,
    /// `true` if SIGTERM has arrived.
    term: Arc<AtomicBool>,
    tree: ProcessTree,
}

impl Holder {
    /// Waits for CMD's end, the parent's end or SIGTERM; returns how long the process tree may take to end.
    fn watch(&mut self, parent: &Parent) -> Duration {
        let poll_interval = if parent.fd.is_some() { None } else { Some(PARENT_POLL_INTERVAL) };
        loop {
            self.tree.reap();
            if self.tree.outcome.is_some() {
                return LEFTOVER_GRACE;
            }
            if self.term.load(Ordering::SeqCst) || parent.is_dead() {
                return GRACE;
            }
            self.wait_for_event(parent.fd.as_ref(), poll_interval);
        }
    }

    /// Sends SIGTERM to every descendant, waits up to `grace`, then kills and reaps the rest.
    fn end_tree(&mut self, grace: Duration) {
        if self.tree.is_empty() {
            return;
        }
        if !self.tree.terminate() {
            let _ = rustix::process::kill_current_process_group(Signal::TERM);
        }
        let until = Instant::now() + grace;
        while !self.tree.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // On Linux every relevant end arrives as SIGCHLD, so that the wait need not be split.
            self.wait_for_event(None, Some(if cfg!(target_os = "linux") { left } else { left.min(KILL_INTERVAL) }));
        }
        let until = Instant::now() + KILL_WAIT;
        while !self.tree.is_empty() && Instant::now() < until {
            if !self.tree.signal_all(Signal::KILL) {
                // The descendants are unknown, so the whole group is killed, this process included.
                let _ = rustix::process::kill_current_process_group(Signal::KILL);
            }
            self.wait_for_event(None, Some(KILL_INTERVAL));
        }
    }

    /// Ends this process the way CMD ended.
    fn exit_as_command(&self) -> ! {
        let signal = match self.tree.outcome {
            Some(CommandOutcome::Code(code)) => std::process::exit(code),
            Some(CommandOutcome::Signal(signal)) => signal,
            // CMD was killed, but has not ended yet: it will end by this signal.
            None => Signal::KILL.as_raw(),
        };
        // A core dump, if any, is CMD's; one of the holder would only hide it.
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // The first call removes the holder's own handlers, the second supports real-time signals, too.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        let _ = signal_hook::low_level::raise(signal);
        // Only reached for a signal that does not kill: the shells' exit code for it.
        std::process::exit(128 + signal)
    }

    /// Sleeps until a signal arrives, `fd` is readable, or the timeout passes.
    fn wait_for_event(&mut self, fd: Option<&OwnedFd>, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let is_ready = match fd {
            Some(fd) => {
                let mut fds = [wake, PollFd::new(fd, PollFlags::IN)];
                rustix::event::poll(&mut fds, timeout.as_ref())
            }
            None => rustix::event::poll(&mut [wake], timeout.as_ref()),
        };
        if let Err(why) = is_ready
            && why != rustix::io::Errno::INTR
        {
            // An error such as missing kernel memory: sleep instead of spinning.
            std::thread::sleep(KILL_INTERVAL);
        }
        let mut drain = [0; 64];
        while matches!((&self.wake).read(&mut drain), Ok(n) if n > 0) {}
    }
}

/// The process that started this one, watched for its end.
struct Parent {
    pid: Option<Pid>,
    /// The pidfd of the parent, readable once it has ended. `None` if the kernel has no pidfd.
    fd: Option<OwnedFd>,
}

impl Parent {
    fn new() -> Self {
        let pid = rustix::process::getppid();
        #[cfg(target_os = "linux")]
        let fd = pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
        #[cfg(not(target_os = "linux"))]
        let fd = None;
        // If the parent died before the pidfd was open, `is_dead` sees another parent.
        Self { pid, fd }
    }

    fn is_dead(&self) -> bool {
        if rustix::process::getppid() != self.pid {
            return true;
        }
        let Some(fd) = &self.fd else { return false };
        // The parent may be dead, but not yet replaced.
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0)
    }
}

/// Installs signal handlers. Handlers, unlike ignored signals, are not inherited by CMD.
///
/// SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are caught and ignored: sent to the group, they are meant for CMD, and the holder must
/// survive them.
fn signals() -> io::Result<(UnixStream, Arc<AtomicBool>)> {
    let (wake, notify_end) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let term = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, Arc::clone(&term))?;
    for signal in [SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2] {
        signal_hook::low_level::pipe::register(signal, notify_end.try_clone()?)?;
    }
    Ok((wake, term))
}

/// Replaces stdin, stdout and stderr by `/dev/null`, so that only CMD holds its ends of the gateway's pipes.
fn detach_stdio(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

fn print_error(what: &str) {
    // The reader may have ended.
    let _ = writeln!(io::stderr(), "plexus hold: {what}");
}

fn fail(code: i32, what: &str) -> ! {
    print_error(what);
    std::process::exit(code)
}
