//! `plexus hold --socket PATH`: owns a runtime's stdio and serves it to gateways, one at a time, over a Unix socket. One file because it
//! is one loop.
//!
//! - One thread, one `poll`, no blocking call: neither a gateway nor the runtime can hold up the other.
//! - Output is kept until a gateway acknowledges it; when the spool is full the runtime's stdout is not read any more, and the runtime
//!   waits. Its stderr is always read, and its end kept.
//! - A gateway is connected once it has sent `Hello`; the connection of the previous gateway is then closed, after its complete messages
//!   were handled.
//! - When the runtime ends, its process tree is ended; the gateway gets all output, then `Exited`, and says `Bye`; the holder ends. Without
//!   a gateway, the remaining messages are written to `PATH` with the extension `end`.
//! - A holder whose socket was removed cannot be found by a gateway: it ends its process tree and itself.

mod peers;

use peers::{Gateway, UnknownPeer};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::wire::{self, Decoder, FromHolder, OLDEST, OUT_HEAD, STDIN_MAX, ToHolder, VERSION, Welcome};
use bytes::{Buf, Bytes};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Mode;
use rustix::process::Signal;

use super::process_tree::{CommandOutcome, ProcessTree};
use super::spool::{SavedStates, Spool, StderrTail};
use super::{
    ABANDONED, CANNOT_START, GRACE, KILL_INTERVAL, KILL_WAIT, LEFTOVER_GRACE, NOT_FOUND, PARENT_POLL_INTERVAL, Parent,
    detach_stdio, fail, signals,
};

/// Maximum time that the holder waits for the rest of the output once the process tree has ended and another process holds the pipe.
const LINGER: Duration = Duration::from_secs(1);

/// Maximum number of bytes read from a dead runtime's pipe: the kernel's buffer size. More can only come from another process. They are
/// read even if the spool is full.
const DEAD_PIPE_MAX: usize = 1024 * 1024;

/// Maximum time that a gateway may read no byte of the remaining messages, and not send `Bye`, until it counts as lost.
const BYE_WAIT: Duration = Duration::from_secs(10);

/// Time for which the last messages are held in memory for the first gateway to connect.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// Maximum time for a peer to send `Hello`.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of peers that have not sent `Hello`; more wait in the backlog.
const UNKNOWN_PEERS_MAX: usize = 8;

/// Interval at which a holder without a gateway checks that its socket still exists.
const SOCKET_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after a failed write of the last messages (a full disk) or a failed accept (no descriptors).
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Number of records of output in one write.
const BATCH: usize = 32;

/// Maximum number of bytes queued for a gateway before further messages wait.
const MESSAGES_MAX: usize = 64 * 1024;

/// Maximum number of bytes of input that are read before the gateway gets a report of it.
const TAKEN_INTERVAL: u64 = 256 * 1024;

/// Maximum number of reads from a replaced gateway: more than its socket can hold.
const REPLACED_READS_MAX: usize = 64;

/// The command line of the holder.
pub struct HolderOptions {
    /// The path of the socket.
    pub socket: PathBuf,
    /// Maximum number of bytes of retained output.
    pub spool_max: usize,
    /// The process that the holder must not outlive.
    pub parent: Option<u32>,
    /// The program, then its arguments.
    pub cmd: Vec<OsString>,
}

/// Starts the program, prints `ready` to stdout, and serves until the program has ended and its last messages are delivered or stored;
/// never returns.
///
/// Exits 127 if the program is not found and 126 if it or the socket cannot be opened, with a message on stderr, and 1 if `parent` is no
/// longer the parent; else 0, regardless of the program's end. Call it from a process with no other threads and no children.
pub fn run(options: HolderOptions) -> ! {
    let Some((program, args)) = options.cmd.split_first() else {
        fail(CANNOT_START, "no command given");
    };
    let name = program.display();
    let fail_start = |what: &str, why: &dyn std::fmt::Display| -> ! {
        fail(CANNOT_START, &format!("cannot start {name}: {what}: {why}"))
    };
    let parent = options.parent.map(|pid| {
        let watch = Parent::new();
        if Some(pid) != watch.pid.map(|p| p.as_raw_pid().unsigned_abs()) || watch.is_dead() {
            fail(ABANDONED, &format!("did not start {name}: the gateway is gone"));
        }
        watch
    });
    let mut random = [0; 10];
    if let Err(why) = getrandom::fill(&mut random) {
        fail_start("the system provides no random numbers", &why);
    }
    let instance = format!("i_{}", data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase());
    let mut errors = String::new();
    match detach() {
        Ok(()) => {}
        Err(DetachError::NoSession(why)) => fail_start("no session of its own", &why),
        #[cfg(target_os = "linux")]
        Err(DetachError::NoReaper(why)) => {
            errors.push_str(&format!("plexus hold: processes that detach from {name} will not be found: {why}\n"));
        }
    }
    let (wake, term) = match signals() {
        Ok(pair) => pair,
        Err(why) => fail_start("no signal handlers", &why),
    };
    let null = match OpenOptions::new().read(true).write(true).open("/dev/null") {
        Ok(null) => null,
        Err(why) => fail_start("/dev/null", &why),
    };
    let socket = match std::path::absolute(&options.socket) {
        Ok(socket) => socket,
        Err(why) => fail_start(&options.socket.display().to_string(), &why),
    };
    let listener = match listen(&socket) {
        Ok(listener) => listener,
        Err(why) => fail_start(&socket.display().to_string(), &why),
    };
    let spawned =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(why) => {
            let _ = std::fs::remove_file(&socket);
            let code = if why.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_START };
            fail(code, &format!("cannot start {name}: {why}"));
        }
    };
    let mut holder = HolderLoop {
        socket,
        instance,
        listener,
        wake,
        term,
        outlives: parent.is_none(),
        parent,
        orphaned: false,
        tree: ProcessTree { main: child.id(), outcome: None },
        phase: Phase::Running,
        stdin: child.stdin.take(),
        stdin_broken: false,
        stdin_ends: false,
        input: VecDeque::new(),
        put: 0,
        taken: 0,
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        dead_pipe_rest: DEAD_PIPE_MAX,
        spool: Spool::new(options.spool_max),
        full_since: None,
        tail: StderrTail::default(),
        deposits: SavedStates::default(),
        started_at: SystemTime::now(),
        gateway: None,
        unknown_peers: Vec::new(),
        had_gateway: false,
        accept_after: None,
        write_end_after: None,
        next_socket_check: Instant::now(),
        ended_at: None,
        buf: vec![0; 64 * 1024],
    };
    holder.set_nonblocking();
    // The working directory may be removed now.
    let _ = rustix::process::chdir("/");
    let _ = io::stdout().write_all(b"ready\n").and_then(|()| io::stdout().flush());
    if let Err(why) = detach_stdio(&null) {
        errors.push_str(&format!("plexus hold: cannot detach from stdio: {why}\n"));
    }
    holder.tail.add(errors.as_bytes());
    holder.serve();
    std::process::exit(0)
}

/// The reason why the holder could not detach from the process that started it.
enum DetachError {
    NoSession(rustix::io::Errno),
    #[cfg(target_os = "linux")]
    NoReaper(rustix::io::Errno),
}

/// Starts a session, and makes the holder the subreaper of its descendants.
fn detach() -> Result<(), DetachError> {
    // A group leader (started from a shell, say) cannot start a session, but has a group of its own already.
    if rustix::process::getpgrp() != rustix::process::getpid() {
        rustix::process::setsid().map_err(DetachError::NoSession)?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(DetachError::NoReaper)?;
    Ok(())
}

/// Listens at `path`, in a folder that only the own user can enter.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let Some(dir) = path.parent() else { return Err(io::Error::other("it has no folder")) };
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = std::fs::metadata(dir)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return Err(io::Error::other("its folder must be accessible to its owner only: use chown and chmod 700"));
    }
    // Bound under a temporary name first: a socket that does not listen yet would look dead.
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let mask = rustix::process::umask(Mode::from_bits_retain(0o177));
    let listener = UnixListener::bind(&new);
    rustix::process::umask(mask);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    std::fs::rename(&new, path)?;
    Ok(listener)
}

/// The state of the runtime's end.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    /// Stdin is closed; at `until` the process tree gets SIGTERM, and `term` to end.
    Stdin {
        until: Instant,
        term: Duration,
    },
    /// The process tree got SIGTERM; at `until` it is killed.
    Term {
        until: Instant,
    },
    /// The process tree was killed, next at `next_kill`; processes that remain at `until` are stuck in the kernel.
    Kill {
        until: Instant,
        next_kill: Instant,
    },
    /// The process tree has ended; reading stops at `until`.
    TreeEnded {
        until: Instant,
    },
    /// All output was read; the holder ends once it is delivered or stored.
    Ended,
}

struct HolderLoop {
    socket: PathBuf,
    /// The random id of the process that was started.
    instance: String,
    listener: UnixListener,
    /// Readable when a signal has arrived.
    wake: UnixStream,
    /// `true` if SIGTERM has arrived.
    term: Arc<AtomicBool>,
    parent: Option<Parent>,
    /// `true` if the parent has ended.
    orphaned: bool,
    /// `true` if undelivered messages are stored in a file at the end.
    outlives: bool,
    tree: ProcessTree,
    phase: Phase,
    stdin: Option<ChildStdin>,
    /// `true` if the runtime closed its stdin.
    stdin_broken: bool,
    /// `true` if stdin has to be closed after the queued input.
    stdin_ends: bool,
    input: VecDeque<Bytes>,
    /// Number of bytes of input received.
    put: u64,
    /// Number of bytes of input that no longer wait.
    taken: u64,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Number of bytes still to be read from stdout once the process tree has ended.
    dead_pipe_rest: usize,
    spool: Spool,
    full_since: Option<SystemTime>,
    tail: StderrTail,
    deposits: SavedStates,
    started_at: SystemTime,
    gateway: Option<Gateway>,
    unknown_peers: Vec<UnknownPeer>,
    had_gateway: bool,
    /// Time before which there is no accept, because the last one failed.
    accept_after: Option<Instant>,
    /// Time before which there is no write of the last messages, because the last one failed.
    write_end_after: Option<Instant>,
    /// The time of the next check that the socket still exists.
    next_socket_check: Instant,
    ended_at: Option<Instant>,
    /// The read buffer.
    buf: Vec<u8>,
}

/// The result of `poll`.
#[derive(Default)]
struct Ready {
    signals: bool,
    parent: bool,
    listener_ready: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    /// The gateway's stream is readable.
    gateway: bool,
    /// The gateway's stream is writable.
    writable: bool,
    /// One bit for each readable unknown peer.
    unknown_peers: u32,
}

impl HolderLoop {
    /// Runs the loop until there is no more work.
    fn serve(&mut self) {
        self.next_socket_check = Instant::now() + SOCKET_CHECK_INTERVAL;
        loop {
            let now = Instant::now();
            self.advance(now);
            self.flush(now);
            if self.done(now) {
                return;
            }
            let ready = self.wait(now);
            let now = Instant::now();
            if ready.signals {
                let mut drain = [0; 64];
                while matches!((&self.wake).read(&mut drain), Ok(n) if n > 0) {}
                self.tree.reap();
            }
            self.orphaned |= match &self.parent {
                Some(parent) if ready.parent || parent.fd.is_none() => parent.is_dead(),
                _ => false,
            };
            // Stderr first: an error message precedes the end that it explains.
            if ready.stderr {
                self.read_stderr();
            }
            if ready.stdout {
                self.read_stdout();
            }
            if ready.stdin {
                self.write_stdin();
            }
            if ready.writable
                && let Some(gateway) = &mut self.gateway
            {
                gateway.blocked = false;
            }
            if ready.gateway {
                self.read_gateway(now);
            }
            self.read_unknown_peers(ready.unknown_peers, now);
            if ready.listener_ready {
                self.accept_peers(now);
            }
        }
    }

    /// Makes the holder's ends of the pipes non-blocking.
    fn set_nonblocking(&mut self) {
        let fds = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        let set = fds.into_iter().flatten().map(|fd| rustix::io::ioctl_fionbio(fd, true));
        if let Some(Err(why)) = set.into_iter().find(Result::is_err) {
            // A holder whose pipes block is still better than none.
            self.tail.add(format!("plexus hold: its pipes block: {why}\n").as_bytes());
        }
    }

    // === the runtime's end ===

    /// Acts on timeouts, signals and ended processes.
    fn advance(&mut self, now: Instant) {
        let terminated = self.term.swap(false, Ordering::SeqCst);
        let orphaned = self.orphaned;
        match self.phase {
            Phase::Running | Phase::Stdin { .. } if self.tree.outcome.is_some() => {
                if self.tree.is_empty() {
                    self.finish_tree(now)
                } else {
                    self.terminate(now + LEFTOVER_GRACE)
                }
            }
            Phase::Running | Phase::Stdin { .. } if terminated || orphaned => self.terminate(now + GRACE),
            Phase::Stdin { until, term } if until <= now => self.terminate(now + term),
            Phase::Term { until } => {
                if self.tree.is_empty() {
                    self.finish_tree(now);
                } else if until <= now {
                    self.kill(now);
                } else if terminated || orphaned {
                    self.phase = Phase::Term { until: until.min(now + GRACE) };
                }
            }
            Phase::Kill { until, next_kill } => {
                if self.tree.is_empty() || until <= now {
                    self.finish_tree(now);
                } else if next_kill <= now {
                    self.kill_tree();
                    self.phase = Phase::Kill { until, next_kill: now + KILL_INTERVAL };
                }
            }
            Phase::TreeEnded { until } if until <= now || (self.stdout.is_none() && self.stderr.is_none()) => {
                (self.stdout, self.stderr) = (None, None);
                self.phase = Phase::Ended;
                self.ended_at = Some(now);
                if let Some(gateway) = &mut self.gateway {
                    gateway.last_progress = now;
                }
            }
            _ => {}
        }
        if self.gateway.is_none() && self.outlives && self.next_socket_check <= now {
            self.next_socket_check = now + SOCKET_CHECK_INTERVAL;
            if matches!(self.phase, Phase::Running) && !self.socket_exists() {
                self.terminate(now + GRACE);
            }
        }
    }

    /// Returns whether the socket still exists.
    fn socket_exists(&self) -> bool {
        !matches!(std::fs::symlink_metadata(&self.socket), Err(why) if why.kind() == io::ErrorKind::NotFound)
    }

    fn terminate(&mut self, until: Instant) {
        if !self.tree.terminate() {
            // The descendants are unknown: signal at least the program itself, which is not reaped yet.
            self.signal_main(Signal::TERM);
        }
        self.phase = Phase::Term { until };
    }

    fn kill(&mut self, now: Instant) {
        self.kill_tree();
        self.phase = Phase::Kill { until: now + KILL_WAIT, next_kill: now + KILL_INTERVAL };
    }

    fn kill_tree(&self) {
        if !self.tree.signal_all(Signal::KILL) {
            self.signal_main(Signal::KILL);
        }
    }

    fn signal_main(&self, signal: Signal) {
        if self.tree.outcome.is_none()
            && let Some(pid) = i32::try_from(self.tree.main).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn finish_tree(&mut self, now: Instant) {
        self.stdin = None;
        self.discard_input();
        // If the pipes have ended already, no event follows.
        let all = self.stdout.is_none() && self.stderr.is_none();
        self.phase = Phase::TreeEnded { until: if all { now } else { now + LINGER } };
    }

    /// Returns whether the holder may end.
    fn done(&mut self, now: Instant) -> bool {
        let Some(ended_at) = self.ended_at else { return false };
        if let Some(gateway) = &self.gateway {
            if now < gateway.last_progress + BYE_WAIT {
                return false;
            }
            self.gateway = None;
        }
        if self.orphaned {
            let _ = std::fs::remove_file(&self.socket);
            return true;
        }
        if !self.had_gateway && now < ended_at + FIRST_WAIT {
            return false;
        }
        if self.write_end_after.is_some_and(|at| now < at) {
            return false;
        }
        // A peer may be in the backlog.
        self.accept_peers(now);
        if !self.unknown_peers.is_empty() {
            return false;
        }
        if self.outlives
            && let Err(why) = self.write_end_file()
            && why.kind() != io::ErrorKind::NotFound
        {
            self.tail.add(format!("plexus hold: cannot leave the end behind: {why}\n").as_bytes());
            self.write_end_after = Some(now + RETRY_PAUSE);
            return false;
        }
        let _ = std::fs::remove_file(&self.socket);
        true
    }

    /// Writes the undelivered messages to a file.
    fn write_end_file(&self) -> io::Result<()> {
        let part = self.socket.with_extension("part");
        let written = self.write_end(&part).and_then(|()| std::fs::rename(&part, self.socket.with_extension("end")));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written
    }

    fn write_end(&self, at: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(at)?;
        let mut file = BufWriter::new(file);
        let mut message = Vec::new();
        FromHolder::Welcome(self.welcome(VERSION)).encode(&mut message);
        file.write_all(&message)?;
        for piece in self.spool.from(self.spool.acked()) {
            file.write_all(&wire::out_head(piece.offset, piece.bytes.len(), piece.crc))?;
            file.write_all(piece.bytes)?;
        }
        message.clear();
        self.exited().encode(&mut message);
        file.write_all(&message)?;
        file.flush()?;
        File::sync_all(file.get_ref())
    }

    fn exited(&self) -> FromHolder {
        match self.tree.outcome {
            Some(CommandOutcome::Code(code)) => FromHolder::Exited { code: Some(code), signal: None },
            Some(CommandOutcome::Signal(signal)) => FromHolder::Exited { code: None, signal: Some(signal) },
            None => FromHolder::Exited { code: None, signal: None },
        }
    }

    fn welcome(&self, version: u8) -> Welcome {
        Welcome {
            version,
            instance: (version >= 2).then(|| self.instance.clone()),
            pid: self.tree.main,
            started_at: self.started_at,
            acked: self.spool.acked(),
            end: self.spool.end(),
            put: self.put,
            taken: self.taken,
            full_since: self.full_since,
            stdin_closed: self.stdin.is_none() || self.stdin_ends,
            blobs: self.deposits.all(),
            stderr: self.tail.from(0),
        }
    }

    // === the runtime's pipes ===

    /// Returns whether stdout has to be read.
    fn should_read_stdout(&mut self) -> bool {
        if matches!(self.phase, Phase::TreeEnded { .. }) {
            return self.stdout.is_some();
        }
        match (self.spool.full(), self.full_since) {
            (true, None) => self.full_since = Some(SystemTime::now()),
            (false, Some(_)) => self.full_since = None,
            _ => {}
        }
        self.stdout.is_some() && self.full_since.is_none()
    }

    fn read_stdout(&mut self) {
        let Some(stdout) = &self.stdout else { return };
        let finish_tree = matches!(self.phase, Phase::TreeEnded { .. });
        let limit = if finish_tree { self.dead_pipe_rest } else { self.spool.free_bytes() };
        // A record that was not sent yet may still grow.
        let sent = self.gateway.as_ref().map_or(self.spool.acked(), |gateway| gateway.sent);
        match self.spool.read(stdout, limit, sent) {
            Ok(0) => self.stdout = None,
            Ok(read) if finish_tree => {
                self.dead_pipe_rest -= read.min(self.dead_pipe_rest);
                if self.dead_pipe_rest == 0 {
                    self.stdout = None;
                }
            }
            Ok(_) => {}
            Err(why) if is_temporary(&why) => {}
            Err(why) => {
                self.stdout = None;
                self.tail.add(format!("plexus hold: its stdout cannot be read: {why}\n").as_bytes());
            }
        }
    }

    fn read_stderr(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        match stderr.read(&mut self.buf) {
            Ok(0) => self.stderr = None,
            Ok(read) => self.tail.add(&self.buf[..read]),
            Err(why) if is_temporary(&why) => {}
            Err(_) => self.stderr = None,
        }
    }

    /// Writes queued input to the runtime.
    fn write_stdin(&mut self) {
        while let Some(stdin) = &mut self.stdin
            && !self.input.is_empty()
        {
            let mut slices = [IoSlice::new(&[]); BATCH];
            let count = self.input.len().min(BATCH);
            slices.iter_mut().zip(&self.input).for_each(|(slice, bytes)| *slice = IoSlice::new(bytes));
            match stdin.write_vectored(&slices[..count]) {
                Ok(mut written) => {
                    self.taken += written as u64;
                    while let Some(first) = self.input.front_mut()
                        && written > 0
                    {
                        let part = first.len().min(written);
                        first.advance(part);
                        written -= part;
                        if first.is_empty() {
                            self.input.pop_front();
                        }
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.stdin = None;
                    self.stdin_broken = true;
                    self.discard_input();
                }
            }
        }
        if self.stdin_ends && self.input.is_empty() {
            self.stdin = None;
        }
    }

    /// Discards input that will not be read.
    fn discard_input(&mut self) {
        self.input.clear();
        self.taken = self.put;
    }

    // === gateways ===

    /// Queues the messages that the gateway has not received yet.
    fn queue_messages(&mut self) {
        let idle = self.input.is_empty();
        let ended = matches!(self.phase, Phase::Ended);
        let exited = self.exited();
        let Some(gateway) = &mut self.gateway else { return };
        if gateway.messages.len() - gateway.written > MESSAGES_MAX {
            return;
        }
        if gateway.full_sent != self.full_since.is_some() {
            gateway.full_sent = self.full_since.is_some();
            match self.full_since {
                Some(since) => FromHolder::Full { since }.encode(&mut gateway.messages),
                None => FromHolder::HasSpace.encode(&mut gateway.messages),
            }
        }
        let unsent = self.taken - gateway.taken_sent;
        if unsent >= TAKEN_INTERVAL || (unsent > 0 && idle) {
            gateway.taken_sent = self.taken;
            FromHolder::Taken { total: self.taken }.encode(&mut gateway.messages);
        }
        if self.stdin_broken && !gateway.broken_sent {
            gateway.broken_sent = true;
            FromHolder::StdinBroken.encode(&mut gateway.messages);
        }
        if gateway.err_sent < self.tail.end() {
            let bytes = self.tail.from(gateway.err_sent);
            gateway.err_sent = self.tail.end();
            FromHolder::Err { bytes }.encode(&mut gateway.messages);
        }
        let closed = self.stdout.is_none() && matches!(self.phase, Phase::Running);
        if closed && !gateway.closed_sent && gateway.sent == self.spool.end() {
            gateway.closed_sent = true;
            FromHolder::StdoutClosed.encode(&mut gateway.messages);
        }
        if ended && !gateway.exited_sent && gateway.sent == self.spool.end() {
            gateway.exited_sent = true;
            exited.encode(&mut gateway.messages);
        }
    }

    /// Writes as much to the gateway as it accepts.
    fn flush(&mut self, now: Instant) {
        // Updates `full_since`, so that a full spool is reported at once.
        self.should_read_stdout();
        loop {
            self.queue_messages();
            let Some(gateway) = &mut self.gateway else { return };
            if gateway.write_failed || gateway.blocked {
                return;
            }
            let mut heads = [[0; OUT_HEAD]; BATCH];
            let mut slices = [IoSlice::new(&[]); 2 * BATCH + 1];
            let messages = &gateway.messages[gateway.written..];
            slices[0] = IoSlice::new(messages);
            let (mut count, mut total) = (1, messages.len());
            for (piece, head) in self.spool.from(gateway.sent).zip(&mut heads) {
                *head = wire::out_head(piece.offset, piece.bytes.len(), piece.crc);
                slices[count] = IoSlice::new(head);
                slices[count + 1] = IoSlice::new(piece.bytes);
                count += 2;
                total += OUT_HEAD + piece.bytes.len();
            }
            if total == 0 {
                return;
            }
            match (&gateway.stream).write_vectored(&slices[..count]) {
                Ok(written) => {
                    gateway.last_progress = now;
                    let rest = gateway.record_written(&self.spool, written);
                    if written < total {
                        gateway.blocked = true;
                        gateway.messages.extend_from_slice(&rest);
                        return;
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    gateway.blocked = true;
                    return;
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    gateway.write_failed = true;
                    return;
                }
            }
        }
    }

    // === waiting ===

    /// Returns the next timeout.
    fn due(&self, now: Instant) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running | Phase::Ended => None,
            Phase::Stdin { until, .. } | Phase::TreeEnded { until } => Some(until),
            // Only Linux reports the end of the last descendant.
            Phase::Term { until } if cfg!(target_os = "linux") => Some(until),
            Phase::Term { until } => Some(until.min(now + KILL_INTERVAL)),
            Phase::Kill { until, next_kill } => Some(until.min(next_kill)),
        };
        let parent = self.parent.as_ref().filter(|parent| parent.fd.is_none()).map(|_| now + PARENT_POLL_INTERVAL);
        let next_socket_check = (self.gateway.is_none() && self.outlives).then_some(self.next_socket_check);
        let end = self.ended_at.map(|at| match &self.gateway {
            Some(gateway) => gateway.last_progress + BYE_WAIT,
            None if self.had_gateway => now,
            None => at + FIRST_WAIT,
        });
        // A peer in the backlog is served first.
        let end = end.filter(|_| self.gateway.is_some() || self.unknown_peers.is_empty());
        let end = end.map(|at| at.max(self.write_end_after.unwrap_or(at)));
        let accept_retry = self.accept_after.filter(|at| *at > now);
        let unknown_peers = self.unknown_peers.iter().map(|peer| peer.until);
        [phase, parent, next_socket_check, end, accept_retry].into_iter().flatten().chain(unknown_peers).min()
    }

    /// Sleeps until a descriptor is ready or a timeout passes.
    fn wait(&mut self, now: Instant) -> Ready {
        let should_read_stdout = self.should_read_stdout();
        let due = self.due(now).map(|at| at.saturating_duration_since(now));
        let timeout = due.and_then(|due| Timespec::try_from(due).ok());
        let listener_ready =
            self.unknown_peers.len() < UNKNOWN_PEERS_MAX && self.accept_after.is_none_or(|at| at <= now);
        let parent = self.parent.as_ref().and_then(|parent| parent.fd.as_ref()).filter(|_| !self.orphaned);
        let (mut fds, mut owners) = (Vec::with_capacity(FDS_MAX), Vec::with_capacity(FDS_MAX));
        let mut add = |owner, fd| {
            owners.push(owner);
            fds.push(fd);
        };
        // Descriptors without interest are left out: poll always reports a hang-up.
        add(PolledDescriptor::Signals, PollFd::new(&self.wake, PollFlags::IN));
        if let Some(stdout) = self.stdout.as_ref().filter(|_| should_read_stdout) {
            add(PolledDescriptor::Stdout, PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(gateway) = &self.gateway {
            let writes = if gateway.blocked && !gateway.write_failed { PollFlags::OUT } else { PollFlags::empty() };
            add(PolledDescriptor::Gateway, PollFd::new(&gateway.stream, PollFlags::IN | writes));
        }
        if let Some(stderr) = &self.stderr {
            add(PolledDescriptor::Stderr, PollFd::new(stderr, PollFlags::IN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| !self.input.is_empty()) {
            add(PolledDescriptor::Stdin, PollFd::new(stdin, PollFlags::OUT));
        }
        if listener_ready {
            add(PolledDescriptor::Listener, PollFd::new(&self.listener, PollFlags::IN));
        }
        if let Some(parent) = parent {
            add(PolledDescriptor::Parent, PollFd::new(parent, PollFlags::IN));
        }
        for (index, peer) in self.unknown_peers.iter().enumerate() {
            add(PolledDescriptor::UnknownPeer(index), PollFd::new(&peer.stream, PollFlags::IN));
        }
        let mut ready = Ready::default();
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => ready.signals = true,
            // An error such as missing kernel memory: sleep instead of spinning.
            Err(_) => std::thread::sleep(KILL_INTERVAL),
        }
        for (fd, owner) in fds.iter().zip(owners).filter(|(fd, _)| !fd.revents().is_empty()) {
            match owner {
                PolledDescriptor::Signals => ready.signals = true,
                PolledDescriptor::Parent => ready.parent = true,
                PolledDescriptor::Listener => ready.listener_ready = true,
                PolledDescriptor::Stdin => ready.stdin = true,
                PolledDescriptor::Stdout => ready.stdout = true,
                PolledDescriptor::Stderr => ready.stderr = true,
                PolledDescriptor::Gateway => {
                    ready.writable = fd.revents().contains(PollFlags::OUT);
                    ready.gateway = fd.revents() != PollFlags::OUT;
                }
                PolledDescriptor::UnknownPeer(index) => ready.unknown_peers |= 1 << index,
            }
        }
        ready
    }
}

/// Maximum number of polled descriptors: signals, three pipes, the gateway, the listener, the parent, and the unknown peers.
const FDS_MAX: usize = 7 + UNKNOWN_PEERS_MAX;

/// The owner of a polled descriptor.
enum PolledDescriptor {
    Signals,
    Parent,
    Listener,
    Stdin,
    Stdout,
    Stderr,
    Gateway,
    UnknownPeer(usize),
}

/// The result of a read.
enum ReadOutcome {
    Progress,
    Nothing,
    End,
}

/// Reads once.
fn read_into(mut stream: &UnixStream, decoder: &mut Decoder, buf: &mut [u8]) -> ReadOutcome {
    match stream.read(buf) {
        Ok(0) => ReadOutcome::End,
        Ok(read) => {
            decoder.buffer().extend_from_slice(&buf[..read]);
            ReadOutcome::Progress
        }
        Err(why) if is_temporary(&why) => ReadOutcome::Nothing,
        Err(_) => ReadOutcome::End,
    }
}

/// Returns whether the error is temporary.
fn is_temporary(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
