//! `plexus hold --socket PATH`, one file because it is one loop: owns a runtime's stdio and serves it to gateways, one at
//! a time, over a Unix socket; gateways come and go.
//!
//! - One thread, one `poll`, nothing that blocks: neither a gateway nor the runtime can keep it from the other.
//! - Output is kept until a gateway acknowledges it; when the spool is full the runtime's stdout is not read any more, and
//!   the runtime waits. Its stderr is always read, and its end kept.
//! - A gateway counts from its `Hello` on; the one before is then hung up on, after what it had said in full is done.
//! - When the runtime ends its family is ended; the gateway gets all output, then `Exited`, and says `Bye`; the holder
//!   ends. With no gateway there, what it would have got goes into `PATH` with the extension `end`.
//! - A holder whose socket was removed can be found by nobody: it ends its family and itself.

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

use super::process_group::{CommandFate, ProcessGroup};
use super::spool::{SavedStates, Spool, StderrTail};
use super::{
    ABANDONED, CANNOT_START, GRACE, KILL_WAIT, LEFTOVER_GRACE, NOT_FOUND, PARENT_EVERY, Parent, STRIKE_EVERY,
    detach_stdio, fail, signals,
};

/// How long is waited for the rest of the output when the family is gone. Then somebody else holds the pipe.
const LINGER: Duration = Duration::from_secs(1);

/// How much of a dead runtime's pipe is read, in bytes: what the kernel can hold. More can only come from somebody else.
/// It is read even if the spool is full.
const LEFT_MAX: usize = 1024 * 1024;

/// How long a gateway may take no byte of the end, and not say goodbye to it, until it counts as lost.
const BYE_WAIT: Duration = Duration::from_secs(10);

/// How long the end is kept in memory for the gateway that started us and has not come yet.
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// How long somebody who connected may say nothing.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Connections that have not said anything yet; more wait at the door.
const GUESTS_MAX: usize = 8;

/// How often a holder without a gateway looks whether it can still be found.
const SEEN_EVERY: Duration = Duration::from_secs(5);

/// When an end that could not be written (a full disk) is tried again, and nobody could be let in (no descriptors).
const AGAIN: Duration = Duration::from_secs(5);

/// Pieces of output in one write.
const BATCH: usize = 32;

/// With more than this on its way to a gateway, in bytes, no more news is put there.
const NEWS_MAX: usize = 64 * 1024;

/// A gateway is told how much input was taken at least this often, in bytes.
const TAKEN_EVERY: u64 = 256 * 1024;

/// Reads of what a replaced gateway said: what its socket can hold, and more.
const LAST_READS: usize = 64;

/// What the holder was told to do.
pub struct HolderOrders {
    /// Where to listen.
    pub socket: PathBuf,
    /// How much output is kept, in bytes.
    pub spool_max: usize,
    /// Whom not to outlive.
    pub parent: Option<u32>,
    /// The program, then its arguments.
    pub cmd: Vec<OsString>,
}

/// Starts the program, says `ready` on stdout, and serves until it has ended and somebody knows; never returns.
///
/// Exits 127 if the program is not found and 126 if it or the socket cannot be had, after saying so on stderr, and 1 if
/// the parent named is not ours any more; else 0, however the program ended.
/// Call it from a process with no other threads and no children.
pub fn run(orders: HolderOrders) -> ! {
    let Some((program, args)) = orders.cmd.split_first() else {
        fail(CANNOT_START, "no command given");
    };
    let name = program.display();
    let cannot = |what: &str, why: &dyn std::fmt::Display| -> ! {
        fail(CANNOT_START, &format!("cannot start {name}: {what}: {why}"))
    };
    let parent = orders.parent.map(|pid| {
        let watch = Parent::new();
        if Some(pid) != watch.pid.map(|p| p.as_raw_pid().unsigned_abs()) || watch.gone() {
            fail(ABANDONED, &format!("did not start {name}: the gateway is gone"));
        }
        watch
    });
    let mut random = [0; 10];
    if let Err(why) = getrandom::fill(&mut random) {
        cannot("the system provides no random numbers", &why);
    }
    let instance = format!("i_{}", data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase());
    let mut complaints = String::new();
    match apart() {
        Ok(()) => {}
        Err(Apart::NoSession(why)) => cannot("no session of its own", &why),
        #[cfg(target_os = "linux")]
        Err(Apart::NoReaper(why)) => {
            complaints.push_str(&format!("plexus hold: processes that detach from {name} will not be found: {why}\n"));
        }
    }
    let (wake, term) = match signals() {
        Ok(pair) => pair,
        Err(why) => cannot("no signal handlers", &why),
    };
    let null = match OpenOptions::new().read(true).write(true).open("/dev/null") {
        Ok(null) => null,
        Err(why) => cannot("/dev/null", &why),
    };
    let socket = match std::path::absolute(&orders.socket) {
        Ok(socket) => socket,
        Err(why) => cannot(&orders.socket.display().to_string(), &why),
    };
    let listener = match listen(&socket) {
        Ok(listener) => listener,
        Err(why) => cannot(&socket.display().to_string(), &why),
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
    let mut keeper = HolderLoop {
        socket,
        instance,
        listener,
        wake,
        term,
        outlives: parent.is_none(),
        parent,
        orphaned: false,
        family: ProcessGroup { main: child.id(), fate: None },
        phase: Phase::Running,
        stdin: child.stdin.take(),
        stdin_broken: false,
        stdin_ends: false,
        input: VecDeque::new(),
        put: 0,
        taken: 0,
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        left: LEFT_MAX,
        spool: Spool::new(orders.spool_max),
        full_since: None,
        tail: StderrTail::default(),
        deposits: SavedStates::default(),
        started_at: SystemTime::now(),
        gateway: None,
        guests: Vec::new(),
        had_gateway: false,
        shut: None,
        not_before: None,
        look: Instant::now(),
        ended_at: None,
        buf: vec![0; 64 * 1024],
    };
    keeper.pipes();
    // The folder that the program was started in can now go away.
    let _ = rustix::process::chdir("/");
    let _ = io::stdout().write_all(b"ready\n").and_then(|()| io::stdout().flush());
    if let Err(why) = detach_stdio(&null) {
        complaints.push_str(&format!("plexus hold: cannot let go of stdio: {why}\n"));
    }
    keeper.tail.add(complaints.as_bytes());
    keeper.serve();
    std::process::exit(0)
}

/// What keeps the holder from standing apart from who started it.
enum Apart {
    NoSession(rustix::io::Errno),
    #[cfg(target_os = "linux")]
    NoReaper(rustix::io::Errno),
}

/// Gives the holder a session of its own, and makes it the parent of whatever its program leaves behind.
fn apart() -> Result<(), Apart> {
    // A leader of a group (started from a shell, say) gets no session, and has a group of its own already.
    if rustix::process::getpgrp() != rustix::process::getpid() {
        rustix::process::setsid().map_err(Apart::NoSession)?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Apart::NoReaper)?;
    Ok(())
}

/// Listens at `path`, which nobody but our own user can reach.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let Some(dir) = path.parent() else { return Err(io::Error::other("it has no folder")) };
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = std::fs::metadata(dir)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return Err(io::Error::other("its folder must be accessible to its owner only: use chown and chmod 700"));
    }
    // Under another name first: whoever finds a socket that does not listen yet would take it for a dead one.
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

/// How far the runtime is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    /// Its stdin is closed; at `until` its family is asked to end, and has `term` for it.
    Stdin {
        until: Instant,
        term: Duration,
    },
    /// Its family was asked to end; at `until` it is killed.
    Term {
        until: Instant,
    },
    /// Its family is killed, again at `strike`; what is left at `until` is stuck in the kernel.
    Kill {
        until: Instant,
        strike: Instant,
    },
    /// Its family is gone; at `until` nothing is read any more.
    Over {
        until: Instant,
    },
    /// All was read, and the holder ends once somebody has it.
    Ended,
}

struct HolderLoop {
    socket: PathBuf,
    /// Names the process that was started.
    instance: String,
    listener: UnixListener,
    /// Readable when a signal came.
    wake: UnixStream,
    /// SIGTERM came.
    term: Arc<AtomicBool>,
    parent: Option<Parent>,
    /// The parent is gone.
    orphaned: bool,
    /// What it has when it ends is left for the next gateway.
    outlives: bool,
    family: ProcessGroup,
    phase: Phase,
    stdin: Option<ChildStdin>,
    /// The runtime closed it.
    stdin_broken: bool,
    /// It is to be closed after what waits.
    stdin_ends: bool,
    input: VecDeque<Bytes>,
    /// Input that came, in bytes …
    put: u64,
    /// … and what of that waits no more.
    taken: u64,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Bytes of stdout still to be read when the family is gone.
    left: usize,
    spool: Spool,
    full_since: Option<SystemTime>,
    tail: StderrTail,
    deposits: SavedStates,
    started_at: SystemTime,
    gateway: Option<Gateway>,
    guests: Vec<UnknownPeer>,
    had_gateway: bool,
    /// Nobody is let in before this: it could not be done.
    shut: Option<Instant>,
    /// The end is not written before this: it could not be done.
    not_before: Option<Instant>,
    /// When to look whether we can still be found.
    look: Instant,
    ended_at: Option<Instant>,
    /// For reads.
    buf: Vec<u8>,
}

/// What `poll` found.
#[derive(Default)]
struct Ready {
    signals: bool,
    parent: bool,
    door: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    /// The gateway has something to say …
    gateway: bool,
    /// … or takes more.
    room: bool,
    /// A bit for each.
    guests: u32,
}

impl HolderLoop {
    /// The loop, until nothing is left to do.
    fn serve(&mut self) {
        self.look = Instant::now() + SEEN_EVERY;
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
                self.family.reap();
            }
            self.orphaned |= match &self.parent {
                Some(parent) if ready.parent || parent.fd.is_none() => parent.gone(),
                _ => false,
            };
            // What it wrote of an error stands before the error.
            if ready.stderr {
                self.read_stderr();
            }
            if ready.stdout {
                self.read_stdout();
            }
            if ready.stdin {
                self.feed();
            }
            if ready.room
                && let Some(gateway) = &mut self.gateway
            {
                gateway.blocked = false;
            }
            if ready.gateway {
                self.read_gateway(now);
            }
            self.read_unknown_peers(ready.guests, now);
            if ready.door {
                self.accept_peers(now);
            }
        }
    }

    /// Makes the pipes' ends that are ours ones that never block.
    fn pipes(&mut self) {
        let fds = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        let set = fds.into_iter().flatten().map(|fd| rustix::io::ioctl_fionbio(fd, true));
        if let Some(Err(why)) = set.into_iter().find(Result::is_err) {
            // It cannot be, and a holder that waits for its runtime is still better than none.
            self.tail.add(format!("plexus hold: its pipes block: {why}\n").as_bytes());
        }
    }

    // === the runtime's end ===

    /// Does what is due.
    fn advance(&mut self, now: Instant) {
        let told = self.term.swap(false, Ordering::SeqCst);
        let orphaned = self.orphaned;
        match self.phase {
            Phase::Running | Phase::Stdin { .. } if self.family.fate.is_some() => {
                if self.family.alone() {
                    self.over(now)
                } else {
                    self.ask(now + LEFTOVER_GRACE)
                }
            }
            Phase::Running | Phase::Stdin { .. } if told || orphaned => self.ask(now + GRACE),
            Phase::Stdin { until, term } if until <= now => self.ask(now + term),
            Phase::Term { until } => {
                if self.family.alone() {
                    self.over(now);
                } else if until <= now {
                    self.kill(now);
                } else if told || orphaned {
                    self.phase = Phase::Term { until: until.min(now + GRACE) };
                }
            }
            Phase::Kill { until, strike } => {
                if self.family.alone() || until <= now {
                    self.over(now);
                } else if strike <= now {
                    self.strike();
                    self.phase = Phase::Kill { until, strike: now + STRIKE_EVERY };
                }
            }
            Phase::Over { until } if until <= now || (self.stdout.is_none() && self.stderr.is_none()) => {
                (self.stdout, self.stderr) = (None, None);
                self.phase = Phase::Ended;
                self.ended_at = Some(now);
                if let Some(gateway) = &mut self.gateway {
                    gateway.moved = now;
                }
            }
            _ => {}
        }
        if self.gateway.is_none() && self.outlives && self.look <= now {
            self.look = now + SEEN_EVERY;
            if matches!(self.phase, Phase::Running) && !self.findable() {
                self.ask(now + GRACE);
            }
        }
    }

    /// Whether our socket is still there.
    fn findable(&self) -> bool {
        !matches!(std::fs::symlink_metadata(&self.socket), Err(why) if why.kind() == io::ErrorKind::NotFound)
    }

    fn ask(&mut self, until: Instant) {
        if !self.family.ask() {
            // Nobody can be named: at least the program itself, which is not reaped yet.
            self.strike_main(Signal::TERM);
        }
        self.phase = Phase::Term { until };
    }

    fn kill(&mut self, now: Instant) {
        self.strike();
        self.phase = Phase::Kill { until: now + KILL_WAIT, strike: now + STRIKE_EVERY };
    }

    fn strike(&self) {
        if !self.family.strike(Signal::KILL) {
            self.strike_main(Signal::KILL);
        }
    }

    fn strike_main(&self, signal: Signal) {
        if self.family.fate.is_none()
            && let Some(pid) = i32::try_from(self.family.main).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn over(&mut self, now: Instant) {
        self.stdin = None;
        self.discard_input();
        // Its pipes may have ended before it, and then nothing more wakes us.
        let all = self.stdout.is_none() && self.stderr.is_none();
        self.phase = Phase::Over { until: if all { now } else { now + LINGER } };
    }

    /// Whether the holder may go.
    fn done(&mut self, now: Instant) -> bool {
        let Some(ended_at) = self.ended_at else { return false };
        if let Some(gateway) = &self.gateway {
            if now < gateway.moved + BYE_WAIT {
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
        if self.not_before.is_some_and(|at| now < at) {
            return false;
        }
        // Somebody may be at the door.
        self.accept_peers(now);
        if !self.guests.is_empty() {
            return false;
        }
        if self.outlives
            && let Err(why) = self.leave()
            && why.kind() != io::ErrorKind::NotFound
        {
            self.tail.add(format!("plexus hold: cannot leave the end behind: {why}\n").as_bytes());
            self.not_before = Some(now + AGAIN);
            return false;
        }
        let _ = std::fs::remove_file(&self.socket);
        true
    }

    /// Writes down what nobody is there to hear.
    fn leave(&self) -> io::Result<()> {
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
        let mut said = Vec::new();
        FromHolder::Welcome(self.welcome(VERSION)).encode(&mut said);
        file.write_all(&said)?;
        for piece in self.spool.from(self.spool.acked()) {
            file.write_all(&wire::out_head(piece.offset, piece.bytes.len(), piece.crc))?;
            file.write_all(piece.bytes)?;
        }
        said.clear();
        self.exited().encode(&mut said);
        file.write_all(&said)?;
        file.flush()?;
        File::sync_all(file.get_ref())
    }

    fn exited(&self) -> FromHolder {
        match self.family.fate {
            Some(CommandFate::Code(code)) => FromHolder::Exited { code: Some(code), signal: None },
            Some(CommandFate::Signal(signal)) => FromHolder::Exited { code: None, signal: Some(signal) },
            None => FromHolder::Exited { code: None, signal: None },
        }
    }

    fn welcome(&self, version: u8) -> Welcome {
        Welcome {
            version,
            instance: (version >= 2).then(|| self.instance.clone()),
            pid: self.family.main,
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

    /// Whether stdout is to be read.
    fn reading(&mut self) -> bool {
        if matches!(self.phase, Phase::Over { .. }) {
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
        let over = matches!(self.phase, Phase::Over { .. });
        let most = if over { self.left } else { self.spool.room() };
        // What was not sent to anybody may still grow.
        let sent = self.gateway.as_ref().map_or(self.spool.acked(), |gateway| gateway.sent);
        match self.spool.read(stdout, most, sent) {
            Ok(0) => self.stdout = None,
            Ok(read) if over => {
                self.left -= read.min(self.left);
                if self.left == 0 {
                    self.stdout = None;
                }
            }
            Ok(_) => {}
            Err(why) if passing(&why) => {}
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
            Err(why) if passing(&why) => {}
            Err(_) => self.stderr = None,
        }
    }

    /// Gives the runtime what it takes of its input.
    fn feed(&mut self) {
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

    /// Input that nobody takes any more.
    fn discard_input(&mut self) {
        self.input.clear();
        self.taken = self.put;
    }

    // === gateways ===

    /// Puts news on its way that the gateway has not heard yet.
    fn queue_news(&mut self) {
        let idle = self.input.is_empty();
        let ended = matches!(self.phase, Phase::Ended);
        let exited = self.exited();
        let Some(gateway) = &mut self.gateway else { return };
        if gateway.news.len() - gateway.written > NEWS_MAX {
            return;
        }
        if gateway.full_told != self.full_since.is_some() {
            gateway.full_told = self.full_since.is_some();
            match self.full_since {
                Some(since) => FromHolder::Full { since }.encode(&mut gateway.news),
                None => FromHolder::Room.encode(&mut gateway.news),
            }
        }
        let untold = self.taken - gateway.taken_told;
        if untold >= TAKEN_EVERY || (untold > 0 && idle) {
            gateway.taken_told = self.taken;
            FromHolder::Taken { total: self.taken }.encode(&mut gateway.news);
        }
        if self.stdin_broken && !gateway.broken_told {
            gateway.broken_told = true;
            FromHolder::StdinBroken.encode(&mut gateway.news);
        }
        if gateway.err_sent < self.tail.end() {
            let bytes = self.tail.from(gateway.err_sent);
            gateway.err_sent = self.tail.end();
            FromHolder::Err { bytes }.encode(&mut gateway.news);
        }
        let closed = self.stdout.is_none() && matches!(self.phase, Phase::Running);
        if closed && !gateway.closed_told && gateway.sent == self.spool.end() {
            gateway.closed_told = true;
            FromHolder::StdoutClosed.encode(&mut gateway.news);
        }
        if ended && !gateway.exited_told && gateway.sent == self.spool.end() {
            gateway.exited_told = true;
            exited.encode(&mut gateway.news);
        }
    }

    /// Writes to the gateway what it takes.
    fn flush(&mut self, now: Instant) {
        // What is full by now is told at once.
        self.reading();
        loop {
            self.queue_news();
            let Some(gateway) = &mut self.gateway else { return };
            if gateway.deaf || gateway.blocked {
                return;
            }
            let mut heads = [[0; OUT_HEAD]; BATCH];
            let mut slices = [IoSlice::new(&[]); 2 * BATCH + 1];
            let news = &gateway.news[gateway.written..];
            slices[0] = IoSlice::new(news);
            let (mut count, mut total) = (1, news.len());
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
                    gateway.moved = now;
                    let rest = gateway.wrote(&self.spool, written);
                    if written < total {
                        gateway.blocked = true;
                        gateway.news.extend_from_slice(&rest);
                        return;
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    gateway.blocked = true;
                    return;
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    gateway.deaf = true;
                    return;
                }
            }
        }
    }

    // === waiting ===

    /// When something is due next.
    fn due(&self, now: Instant) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running | Phase::Ended => None,
            Phase::Stdin { until, .. } | Phase::Over { until } => Some(until),
            // Elsewhere than on Linux nobody tells when the last one of the family ends.
            Phase::Term { until } if cfg!(target_os = "linux") => Some(until),
            Phase::Term { until } => Some(until.min(now + STRIKE_EVERY)),
            Phase::Kill { until, strike } => Some(until.min(strike)),
        };
        let parent = self.parent.as_ref().filter(|parent| parent.fd.is_none()).map(|_| now + PARENT_EVERY);
        let look = (self.gateway.is_none() && self.outlives).then_some(self.look);
        let end = self.ended_at.map(|at| match &self.gateway {
            Some(gateway) => gateway.moved + BYE_WAIT,
            None if self.had_gateway => now,
            None => at + FIRST_WAIT,
        });
        // With somebody at the door, the door comes first.
        let end = end.filter(|_| self.gateway.is_some() || self.guests.is_empty());
        let end = end.map(|at| at.max(self.not_before.unwrap_or(at)));
        let again = self.shut.filter(|at| *at > now);
        let guests = self.guests.iter().map(|guest| guest.until);
        [phase, parent, look, end, again].into_iter().flatten().chain(guests).min()
    }

    /// Sleeps until something is ready or due.
    fn wait(&mut self, now: Instant) -> Ready {
        let reading = self.reading();
        let due = self.due(now).map(|at| at.saturating_duration_since(now));
        let timeout = due.and_then(|due| Timespec::try_from(due).ok());
        let door = self.guests.len() < GUESTS_MAX && self.shut.is_none_or(|at| at <= now);
        let parent = self.parent.as_ref().and_then(|parent| parent.fd.as_ref()).filter(|_| !self.orphaned);
        let (mut fds, mut whose) = (Vec::with_capacity(FDS_MAX), Vec::with_capacity(FDS_MAX));
        let mut add = |who, fd| {
            whose.push(who);
            fds.push(fd);
        };
        // What is not wanted is left out: poll tells of a hang-up even if it was not asked.
        add(PolledDescriptor::Signals, PollFd::new(&self.wake, PollFlags::IN));
        if let Some(stdout) = self.stdout.as_ref().filter(|_| reading) {
            add(PolledDescriptor::Stdout, PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(gateway) = &self.gateway {
            let room = if gateway.blocked && !gateway.deaf { PollFlags::OUT } else { PollFlags::empty() };
            add(PolledDescriptor::Gateway, PollFd::new(&gateway.stream, PollFlags::IN | room));
        }
        if let Some(stderr) = &self.stderr {
            add(PolledDescriptor::Stderr, PollFd::new(stderr, PollFlags::IN));
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| !self.input.is_empty()) {
            add(PolledDescriptor::Stdin, PollFd::new(stdin, PollFlags::OUT));
        }
        if door {
            add(PolledDescriptor::Door, PollFd::new(&self.listener, PollFlags::IN));
        }
        if let Some(parent) = parent {
            add(PolledDescriptor::Parent, PollFd::new(parent, PollFlags::IN));
        }
        for (place, guest) in self.guests.iter().enumerate() {
            add(PolledDescriptor::Guest(place), PollFd::new(&guest.stream, PollFlags::IN));
        }
        let mut ready = Ready::default();
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => ready.signals = true,
            // Out of kernel memory, say: look around now and then instead of spinning.
            Err(_) => std::thread::sleep(STRIKE_EVERY),
        }
        for (fd, who) in fds.iter().zip(whose).filter(|(fd, _)| !fd.revents().is_empty()) {
            match who {
                PolledDescriptor::Signals => ready.signals = true,
                PolledDescriptor::Parent => ready.parent = true,
                PolledDescriptor::Door => ready.door = true,
                PolledDescriptor::Stdin => ready.stdin = true,
                PolledDescriptor::Stdout => ready.stdout = true,
                PolledDescriptor::Stderr => ready.stderr = true,
                PolledDescriptor::Gateway => {
                    ready.room = fd.revents().contains(PollFlags::OUT);
                    ready.gateway = fd.revents() != PollFlags::OUT;
                }
                PolledDescriptor::Guest(place) => ready.guests |= 1 << place,
            }
        }
        ready
    }
}

/// Most descriptors that are waited for: signals, three pipes, the gateway, the door, the parent, and the guests.
const FDS_MAX: usize = 7 + GUESTS_MAX;

/// Whose descriptor it is.
enum PolledDescriptor {
    Signals,
    Parent,
    Door,
    Stdin,
    Stdout,
    Stderr,
    Gateway,
    Guest(usize),
}

/// What came of a read.
enum ReadOutcome {
    Something,
    Nothing,
    End,
}

/// Reads once.
fn read_into(mut stream: &UnixStream, decoder: &mut Decoder, buf: &mut [u8]) -> ReadOutcome {
    match stream.read(buf) {
        Ok(0) => ReadOutcome::End,
        Ok(read) => {
            decoder.room().extend_from_slice(&buf[..read]);
            ReadOutcome::Something
        }
        Err(why) if passing(&why) => ReadOutcome::Nothing,
        Err(_) => ReadOutcome::End,
    }
}

/// Nothing is wrong: try again later.
fn passing(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
