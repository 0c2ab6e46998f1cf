//! `plexus hold -- CMD`, one file because it is one small program: a parent that ties a runtime and
//! all of its descendants to the gateway.
//!
//! A gateway that is killed with `kill -9` cannot clean up after itself, and agents start shells in
//! groups and sessions of their own, so killing the agent's process group is not enough. The holder
//! stands between them:
//!
//! - It leads a process group of its own, so a terminal's Ctrl-C or hang-up never reaches the agent.
//! - On Linux it is a child subreaper: whatever the agent starts stays below it in the process
//!   tree, `setsid` and double forks included, and it reaps the orphans it inherits.
//! - CMD gets the holder's own stdin, stdout and stderr. The holder lets go of them, copies nothing,
//!   and never keeps a pipe open: end of file travels both ways.
//! - When the gateway dies, or the holder gets SIGTERM, the family gets SIGTERM and after [`GRACE`]
//!   SIGKILL. When CMD ends by itself the rest of its family follows, after [`LEFTOVER_GRACE`].
//! - It then ends as CMD did: same exit code, or death by the same signal.
//!
//! To stop a runtime, send SIGTERM to the holder alone (not to its group: CMD would be told twice)
//! and allow it [`GRACE`] plus [`KILL_WAIT`]. SIGKILL for the holder is the last resort, since
//! descendants that left its group then have nobody who knows them.
//!
//! Elsewhere than on Linux there are no subreapers: descendants are found by `ps`, and one that both
//! left the group and lost its parent before the end came is not found.
#![expect(clippy::disallowed_methods, reason = "the holder ends as its child ended, whatever else it was about to do")]

pub mod event_loop;
mod process_group;
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

use self::process_group::{CommandFate, ProcessGroup};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/// How long the family has to end by itself after SIGTERM when the gateway died or asked for the
/// end. What is left then is killed, with whatever it had not saved.
pub const GRACE: Duration = Duration::from_secs(1);

/// The same for what CMD left behind when it ended by itself. Shorter: nobody works any more, and
/// the gateway learns of the end only after it.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// How long killed processes may take to vanish. One stuck in the kernel (a dead network disk) may
/// take for ever; the holder then leaves, and the kill stays pending on it.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// How often a killed family is looked at again for members born meanwhile.
const STRIKE_EVERY: Duration = Duration::from_millis(if cfg!(target_os = "linux") { 20 } else { 100 });

/// How often the parent is looked at where the kernel cannot tell us: its death is noticed this late.
const PARENT_EVERY: Duration = Duration::from_millis(200);

/// Exit code when CMD does not exist, as shells have it.
const NOT_FOUND: i32 = 127;

/// Exit code when CMD exists and cannot be started, as shells have it.
const CANNOT_START: i32 = 126;

/// Exit code when the gateway was gone before CMD was started.
const ABANDONED: i32 = 1;

/// Runs `cmd` (the program, then its arguments) and ends as it ended; never returns.
///
/// `parent` is the pid of the gateway. Given it, a gateway that died before this line ran is noticed
/// too, and nothing is started (exit code 1); without it that instant is a blind spot.
///
/// Exits 127 if the program is not found and 126 if it cannot be started, after saying so on stderr.
/// Call it from a process with no other threads and no children.
pub fn run(cmd: Vec<OsString>, parent: Option<u32>) -> ! {
    let Some((program, args)) = cmd.split_first() else {
        fail(CANNOT_START, "no command given");
    };
    let name = program.display();
    // Parent first: the shorter the way here, the smaller the blind spot of a caller without a pid.
    let watch = Parent::new();
    if parent.is_some_and(|pid| Some(pid) != watch.pid.map(|p| p.as_raw_pid().unsigned_abs())) || watch.gone() {
        fail(ABANDONED, &format!("did not start {name}: the gateway is gone"));
    }
    if rustix::process::getpgrp() != rustix::process::getpid()
        && let Err(why) = rustix::process::setsid()
    {
        fail(CANNOT_START, &format!("cannot start {name}: no process group of its own: {why}"));
    }
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        // The group can still be ended, so go on; but say what is weaker now.
        say(&format!("processes that detach from {name} will not be found: {why}"));
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
        // Not fatal, and now it is CMD's stderr too: the gateway sees the line and a late end of file.
        say(&format!("cannot let go of stdio: {why}"));
    }
    let mut holder = Holder { wake, term, family: ProcessGroup { main, fate: None } };
    let grace = holder.watch(&watch);
    holder.end_family(grace);
    holder.end_likewise()
}

struct Holder {
    /// Readable when a signal came.
    wake: UnixStream,
    /// SIGTERM came.
    term: Arc<AtomicBool>,
    family: ProcessGroup,
}

impl Holder {
    /// Waits for CMD's end, the parent's end or SIGTERM; says how long the family may take to end.
    fn watch(&mut self, parent: &Parent) -> Duration {
        let every = if parent.fd.is_some() { None } else { Some(PARENT_EVERY) };
        loop {
            self.family.reap();
            if self.family.fate.is_some() {
                return LEFTOVER_GRACE;
            }
            if self.term.load(Ordering::SeqCst) || parent.gone() {
                return GRACE;
            }
            self.nap(parent.fd.as_ref(), every);
        }
    }

    /// Asks every descendant to end, waits up to `grace`, then kills what is left and reaps it.
    fn end_family(&mut self, grace: Duration) {
        if self.family.alone() {
            return;
        }
        if !self.family.ask() {
            let _ = rustix::process::kill_current_process_group(Signal::TERM);
        }
        let until = Instant::now() + grace;
        while !self.family.alone() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // On Linux every end that counts arrives as SIGCHLD, and the wait is not cut up.
            self.nap(None, Some(if cfg!(target_os = "linux") { left } else { left.min(STRIKE_EVERY) }));
        }
        let until = Instant::now() + KILL_WAIT;
        while !self.family.alone() && Instant::now() < until {
            if !self.family.strike(Signal::KILL) {
                // Nobody can be named, so the group goes as a whole and we with it.
                let _ = rustix::process::kill_current_process_group(Signal::KILL);
            }
            self.nap(None, Some(STRIKE_EVERY));
        }
    }

    /// Ends this process the way CMD ended.
    fn end_likewise(&self) -> ! {
        let signal = match self.family.fate {
            Some(CommandFate::Code(code)) => std::process::exit(code),
            Some(CommandFate::Signal(signal)) => signal,
            // Killed, and not gone yet: that is how it will end.
            None => Signal::KILL.as_raw(),
        };
        // The core dump, if any, is CMD's; ours would only hide it.
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // The first knows how to undo our own handlers, the second knows real-time signals too.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        let _ = signal_hook::low_level::raise(signal);
        // Only for a signal that does not kill: the shells' number for it.
        std::process::exit(128 + signal)
    }

    /// Sleeps until a signal, something on `fd`, or the timeout.
    fn nap(&mut self, fd: Option<&OwnedFd>, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let woken = match fd {
            Some(fd) => {
                let mut fds = [wake, PollFd::new(fd, PollFlags::IN)];
                rustix::event::poll(&mut fds, timeout.as_ref())
            }
            None => rustix::event::poll(&mut [wake], timeout.as_ref()),
        };
        if let Err(why) = woken
            && why != rustix::io::Errno::INTR
        {
            // Out of kernel memory, say: look around now and then instead of spinning.
            std::thread::sleep(STRIKE_EVERY);
        }
        let mut drain = [0; 64];
        while matches!((&self.wake).read(&mut drain), Ok(n) if n > 0) {}
    }
}

/// The process that started us, watched for its end.
struct Parent {
    pid: Option<Pid>,
    /// Readable once it has ended. `None` where the kernel has no such thing.
    fd: Option<OwnedFd>,
}

impl Parent {
    fn new() -> Self {
        let pid = rustix::process::getppid();
        #[cfg(target_os = "linux")]
        let fd = pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
        #[cfg(not(target_os = "linux"))]
        let fd = None;
        // If it died before the pidfd was open, `gone` sees that our parent is another one now.
        Self { pid, fd }
    }

    fn gone(&self) -> bool {
        if rustix::process::getppid() != self.pid {
            return true;
        }
        let Some(fd) = &self.fd else { return false };
        // It may be dead, but not yet replaced as our parent.
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0)
    }
}

/// Catches what concerns us. Handlers, unlike ignored signals, are not inherited by CMD.
///
/// SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are caught to be survived: sent to the group they
/// are meant for CMD, and the holder must not die while CMD decides.
fn signals() -> io::Result<(UnixStream, Arc<AtomicBool>)> {
    let (wake, ring) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let term = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, Arc::clone(&term))?;
    for signal in [SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2] {
        signal_hook::low_level::pipe::register(signal, ring.try_clone()?)?;
    }
    Ok((wake, term))
}

/// Replaces our stdin, stdout and stderr, so that only CMD has its ends of the gateway's pipes.
fn detach_stdio(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

fn say(what: &str) {
    // Whoever would read it may be gone.
    let _ = writeln!(io::stderr(), "plexus hold: {what}");
}

fn fail(code: i32, what: &str) -> ! {
    say(what);
    std::process::exit(code)
}
