//! The gateway's side of holders: starts them, finds those that an earlier gateway left, and talks to them. One file:
//! the connection, and the folder it is found in.
//!
//! A holder (`plexus hold --socket PATH`) owns a runtime's stdio and lets it outlive the gateway. Everything lies in one
//! folder, two files a holder at most: `<runtime>.<8 letters>.sock`, where it listens, and, once its runtime has ended
//! with nobody there to hear it, `<runtime>.<8 letters>.end`, which is what it would have said.

mod connection;
mod folder;

use connection::{HolderConnection, Message, pump};
use folder::socket;
pub use folder::{FoundHolder, find_holders, stop};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, Bytes};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::process_identity::Process;
use crate::wire::{Decoder, FromHolder, OLDEST, ToHolder, VERSION, Welcome};
use crate::{exit, wire};
use plexus_protocol::text::printable;
use plexus_protocol::{RuntimeId, RuntimeSpec};

/// How long a holder has to start its program. It takes milliseconds, more on a busy machine.
const READY_WAIT: Duration = Duration::from_secs(30);

/// How long a holder has to answer; one that does not is stuck in the kernel, or stopped.
const WELCOME_WAIT: Duration = Duration::from_secs(10);

/// What may wait to be sent to a holder, in bytes; with more the connection is given up, and made again.
const QUEUE_MAX: usize = 2 * wire::STATE_MAX;

/// State that a holder keeps beside the newest whole one, in bytes, before the gateway waits until some of it is needed
/// no more: see [`HolderClient::heavy`]. Far below [`wire::STATE_MAX`], so that what is written before the wait has room.
const DEPOSITS_MAX: usize = 16 * 1024 * 1024;

/// Input that waits in the gateway for a runtime that takes none, in bytes; with more the runtime is stuck.
const GATED_MAX: usize = 64 * 1024 * 1024;

/// How long what was said last still has to be sent when nobody uses the connection any more.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How much longer than it should a holder may take to stop its runtime, before it is given up: killed processes may take
/// a while to vanish.
const STOP_SLACK: Duration = Duration::from_secs(20);
/// How often [`stop`] looks whether the holder is gone.
const GONE_LOOK: Duration = Duration::from_millis(5);

/// How much of a failed holder's stderr is read, in bytes.
const REASON_MAX: u64 = 16 * 1024;

/// Longest path of a socket, in bytes: what the strictest of the systems has room for (`sun_path`).
const PATH_MAX: usize = 103;

/// How old a file must be that a holder writes or binds under a passing name, before it is litter.
const LITTER_AGE: Duration = Duration::from_secs(60);

/// A program to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
}

/// Why a frame for a runtime's stdin was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Too much waits already.
    Full,
    /// The runtime closed its stdin, or we did.
    Closed,
}

/// A connection to a holder, or what a holder left.
pub struct HolderClient {
    path: PathBuf,
    pid: u32,
    /// The version that the holder speaks.
    version: u8,
    instance: String,
    /// The runtime and the holder, as the system knows them; none for what a holder left.
    processes: Option<Processes>,
    decoder: Decoder,
    source: Source,
    /// Where the next output stands.
    next: u64,
    /// What stands before this was told over an earlier connection.
    told: u64,
    /// The last news was told.
    over: bool,
}

/// A runtime and its holder, as the system knows them.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    /// The runtime's own.
    pub runtime: Process,
    /// The holder's, if it lives.
    pub holder: Option<Process>,
}

enum Source {
    Live { read: OwnedReadHalf, way: Arc<HolderConnection> },
    File,
}

/// What a holder told.
#[derive(Debug, PartialEq, Eq)]
pub enum HolderNews {
    /// Output of the runtime. No byte comes twice over one connection, none is left out but what was acknowledged.
    Out {
        /// Where its first byte stands.
        offset: u64,
        /// Never empty.
        bytes: Bytes,
    },
    /// More of its stderr.
    Err(Bytes),
    /// The holder is full of output that was not acknowledged, since then; the runtime will wait.
    Full(SystemTime),
    /// It has room again.
    Room,
    /// The runtime does not take its stdin any more.
    StdinBroken,
    /// The runtime closed its stdout, all of its output was told, and it lives on.
    StdoutClosed,
    /// The runtime ended, and all its output was told. Nothing follows. To be answered with [`HolderClient::bye`], once all of
    /// it is safe.
    Exited {
        /// Its exit code …
        code: Option<i32>,
        /// … or the signal that killed it. Neither, if the system could not say.
        signal: Option<i32>,
    },
    /// The connection is lost, and why. Nothing follows. The runtime may still live.
    Gone(String),
}

impl HolderClient {
    /// Starts `program` in the folder of `spec`, behind a holder in the folder `dir`, which is made if
    /// need be; and connects to it.
    ///
    /// The holder keeps up to `spool_max` bytes of output that is not acknowledged. If it is not to `outlive` this
    /// process, it ends with it, and leaves nothing.
    ///
    /// Not cancellation safe: the runtime may be left behind.
    ///
    /// # Errors
    /// In words: no more processes, a path too long for a socket, what the holder said.
    pub async fn start(
        spec: &RuntimeSpec,
        program: &Program,
        hold_exe: &Path,
        dir: &Path,
        spool_max: usize,
        outlive: bool,
    ) -> Result<(Self, Welcome), String> {
        let socket = socket(dir, &spec.id)?;
        let mut command = Command::new(hold_exe);
        command.args(["hold", "--spool-max", &spool_max.to_string(), "--socket"]).arg(&socket);
        if !outlive {
            command.args(["--parent", &std::process::id().to_string()]);
        }
        // No group of its own: a leader of a group cannot get a session of its own, and the holder wants one.
        let mut child = command
            .arg("--")
            .arg(&program.path)
            .args(&program.args)
            .current_dir(&spec.cwd)
            .env_clear()
            .envs(&program.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", hold_exe.display()))?;
        match timeout(READY_WAIT, ready(&mut child)).await {
            Ok(ready) => ready?,
            Err(_) => {
                if let Some(pid) =
                    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw)
                {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                }
                return Err(format!("its holder did not start it within {READY_WAIT:?}"));
            }
        }
        Self::find(&socket).await.map_err(|why| why.to_string())
    }

    /// Connects to the holder at `path`, or opens what it left there when its runtime ended. A gateway that was connected
    /// to it loses it.
    ///
    /// # Errors
    /// [`HolderNotFound`].
    pub async fn find(path: &Path) -> Result<(Self, Welcome), HolderNotFound> {
        Self::find_within(path, WELCOME_WAIT).await
    }

    /// As [`find`](Self::find), with this long for the holder to answer.
    pub async fn find_within(path: &Path, wait: Duration) -> Result<(Self, Welcome), HolderNotFound> {
        let left = path.with_extension("end");
        if path != left {
            let tried = match timeout(wait, Self::connect(path)).await {
                Ok(tried) => tried,
                Err(_) => Err(HolderNotFound::Silent(format!("{} does not answer", path.display()))),
            };
            match tried {
                Ok(found) => return Ok(found),
                // Its runtime may have ended between two looks.
                Err(why) if !tokio::fs::try_exists(&left).await.unwrap_or(false) => return Err(why),
                Err(_) => {}
            }
        }
        let what = |why: &dyn std::fmt::Display| HolderNotFound::Unusable(format!("{}: {why}", left.display()));
        let all = tokio::fs::read(&left).await.map_err(|why| what(&why))?;
        let mut decoder = Decoder::of(all.into());
        let welcome = match decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose()) {
            Ok(Some(FromHolder::Welcome(welcome))) => known(welcome).map_err(|why| what(&why))?,
            Ok(_) => return Err(what(&"it does not start with the expected message")),
            Err(why) => return Err(what(&why)),
        };
        Ok((Self::new(left, &welcome, decoder, Source::File, None), welcome))
    }

    fn new(path: PathBuf, welcome: &Welcome, decoder: Decoder, source: Source, processes: Option<Processes>) -> Self {
        Self {
            path,
            pid: welcome.pid,
            version: welcome.version,
            instance: instance(welcome),
            processes,
            decoder,
            source,
            next: welcome.acked,
            told: 0,
            over: false,
        }
    }

    async fn connect(path: &Path) -> Result<(Self, Welcome), HolderNotFound> {
        let what = |why: &dyn std::fmt::Display| HolderNotFound::Unusable(format!("{}: {why}", path.display()));
        let lost = |why: &dyn std::fmt::Display| HolderNotFound::Silent(format!("{}: {why}", path.display()));
        let stream = UnixStream::connect(path).await.map_err(|why| match why.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                HolderNotFound::Nobody(format!("{}: {why}", path.display()))
            }
            _ => lost(&why),
        })?;
        let peer = stream.peer_cred().map_err(|why| lost(&why))?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(what(&"it belongs to somebody else"));
        }
        let (mut read, write) = stream.into_split();
        let way = Arc::new(HolderConnection::new(write));
        way.send(&mut way.queue(), [ToHolder::Hello { version: OLDEST, newest: VERSION }.to_bytes()]);
        let mut decoder = Decoder::default();
        let welcome = loop {
            match decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose()) {
                Ok(Some(FromHolder::Welcome(welcome))) => break known(welcome).map_err(|why| what(&why))?,
                Ok(Some(FromHolder::Bye { why })) => return Err(what(&why)),
                Ok(Some(_)) => return Err(what(&"it does not start with the expected message")),
                Ok(None) => {}
                Err(why) => return Err(what(&why)),
            }
            match read.read_buf(decoder.room()).await {
                Ok(1..) => {}
                Ok(0) => return Err(lost(&"it hung up")),
                Err(why) => return Err(lost(&why)),
            }
        };
        {
            let mut queue = way.queue();
            (queue.put, queue.taken) = (welcome.put, welcome.taken);
            queue.acked = welcome.acked;
            queue.closed = welcome.stdin_closed;
            for (offset, blob) in &welcome.blobs {
                queue.deposits.push(*offset, blob.len(), false);
            }
        }
        tokio::spawn(pump(Arc::clone(&way)));
        let holder = peer.pid().and_then(|pid| u32::try_from(pid).ok()).and_then(Process::find);
        let processes = Process::find(welcome.pid).map(|runtime| Processes { runtime, holder });
        Ok((Self::new(path.to_owned(), &welcome, decoder, Source::Live { read, way }, processes), welcome))
    }

    /// Who listens at `path`; `None` if nobody does, or the system does not say.
    pub async fn listener(path: &Path) -> Option<Process> {
        let peer = UnixStream::connect(path).await.ok()?.peer_cred().ok()?;
        let ours = peer.uid() == rustix::process::geteuid().as_raw();
        peer.pid().filter(|_| ours).and_then(|pid| u32::try_from(pid).ok()).and_then(Process::find)
    }

    /// Goes on where `old`, a lost connection to the same holder, ended: what that told is not told again. Returns the
    /// input that was lost with it, which is to be [put](Self::put) again with a whole state.
    pub fn continue_from(&mut self, old: &Self, welcome: &Welcome) -> Bytes {
        self.told = old.next;
        let (Some(way), Some(was)) = (self.way(), old.way()) else { return Bytes::new() };
        let (mut queue, was) = (way.queue(), was.queue());
        queue.write_max = was.write_max;
        let lost = was.unconfirmed.iter().filter(|(end, _)| *end > welcome.put);
        lost.map(|(_, frame)| &frame[..]).collect::<Vec<_>>().concat().into()
    }

    /// Every holder in the folder, and everything that one left: the name of its runtime and a path for [`Self::find`], in
    /// order. A socket that nobody listens at is removed, as is litter. Connects to nobody in a way that counts. A folder
    /// that is not there is empty.
    pub async fn all(dir: &Path) -> Vec<(String, PathBuf)> {
        let dir = dir.to_owned();
        let found = tokio::task::spawn_blocking(move || find_holders(&dir)).await;
        found.unwrap_or_default().into_iter().map(|found| (found.runtime, found.path)).collect()
    }

    /// Waits for news. Cancellation safe. After [`HolderNews::Exited`] or [`HolderNews::Gone`] it waits for ever.
    pub async fn next(&mut self) -> HolderNews {
        loop {
            if self.over {
                std::future::pending::<()>().await;
            }
            let message = self.decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose());
            let news = match message {
                Ok(Some(message)) => self.news(message),
                Err(why) => Some(HolderNews::Gone(format!("its holder sent {why}"))),
                Ok(None) => match &mut self.source {
                    Source::File => Some(HolderNews::Gone(format!("{} is incomplete", self.path.display()))),
                    Source::Live { read, way } => {
                        let room = self.decoder.room();
                        tokio::select! {
                            biased;
                            read = read.read_buf(room) => match read {
                                Ok(1..) => None,
                                Ok(0) => Some(HolderNews::Gone("its holder hung up".into())),
                                Err(why) => Some(HolderNews::Gone(format!("its holder is gone: {why}"))),
                            },
                            () = way.stuck.notified() => Some(HolderNews::Gone("its holder does not listen".into())),
                        }
                    }
                },
            };
            if let Some(news) = news {
                match news {
                    HolderNews::Exited { .. } => {
                        self.over = true;
                        self.close();
                    }
                    HolderNews::Gone(_) => {
                        self.over = true;
                        match self.way() {
                            Some(way) => way.queue().fail(),
                            None => self.close(),
                        }
                    }
                    _ => {}
                }
                return news;
            }
        }
    }

    fn news(&mut self, message: FromHolder) -> Option<HolderNews> {
        match message {
            FromHolder::Out { offset, bytes } => {
                let acked = self.way().map_or(0, |way| way.queue().acked);
                // What was acknowledged before it was told is left out by the holder.
                let right = offset == self.next || (offset > self.next && offset <= acked);
                match offset.checked_add(bytes.len() as u64) {
                    Some(end) if right && !bytes.is_empty() => {
                        self.next = end;
                        let known = usize::try_from(self.told.saturating_sub(offset)).unwrap_or(usize::MAX);
                        if known >= bytes.len() {
                            return None;
                        }
                        Some(HolderNews::Out { offset: offset + known as u64, bytes: bytes.slice(known..) })
                    }
                    _ => Some(HolderNews::Gone(format!(
                        "its holder sent {} bytes from {offset} on, and {} comes next",
                        bytes.len(),
                        self.next
                    ))),
                }
            }
            FromHolder::Err { bytes } => Some(HolderNews::Err(bytes)),
            FromHolder::Full { since } => Some(HolderNews::Full(since)),
            FromHolder::Room => Some(HolderNews::Room),
            FromHolder::Taken { total } => {
                if let Some(way) = self.way() {
                    way.took(total);
                }
                None
            }
            FromHolder::StdoutClosed => Some(HolderNews::StdoutClosed),
            FromHolder::StdinBroken => {
                self.close();
                Some(HolderNews::StdinBroken)
            }
            FromHolder::Exited { code, signal } => Some(HolderNews::Exited { code, signal }),
            FromHolder::Bye { why } => Some(HolderNews::Gone(format!("its holder hung up: {why}"))),
            FromHolder::Welcome(_) => Some(HolderNews::Gone("its holder was started again".into())),
        }
    }

    fn way(&self) -> Option<&Arc<HolderConnection>> {
        match &self.source {
            Source::Live { way, .. } => Some(way),
            Source::File => None,
        }
    }

    /// From now on [`Self::put`] says that nothing can be written.
    fn close(&self) {
        if let Some(way) = self.way() {
            way.queue().closed = true;
        }
    }

    /// Changes how much input may wait for the runtime, in bytes, before [`Self::put`] refuses more. At most, and unless
    /// told, [`wire::STDIN_MAX`].
    pub fn set_write_max(&self, max: usize) {
        if let Some(way) = self.way() {
            way.queue().write_max = max.min(wire::STDIN_MAX) as u64;
        }
    }

    /// Gives a frame to the runtime, and with it the state that goes with having done so, which knows of the output
    /// before `offset`. At once, unless more input waits than it should ([`Self::stalled`]): then once there is room, and
    /// before what is given after it. On a connection that was lost it is kept for the next: see [`Self::continue_from`].
    ///
    /// # Errors
    /// [`WriteError::Full`] if 64 MiB wait (a frame of any size up to 256 MiB is fine while nothing waits), and
    /// [`WriteError::Closed`] if the runtime's stdin is closed. Then neither is done.
    pub fn put(&self, offset: u64, state: Bytes, frame: Bytes) -> Result<(), WriteError> {
        let head = wire::stdin_head(offset, &state, &frame);
        self.give(offset, head, state, frame, false)
    }

    /// As [`put`](Self::put), with what is to be added to the last state that was given; for holders that
    /// [can](Self::takes_steps). The frame may be empty.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn step(&self, offset: u64, entry: Bytes, frame: Bytes) -> Result<(), WriteError> {
        let head = wire::step_head(offset, &entry, &frame);
        self.give(offset, head, entry, frame, true)
    }

    fn give(&self, offset: u64, head: Option<Bytes>, state: Bytes, frame: Bytes, step: bool) -> Result<(), WriteError> {
        let (Some(way), Some(head)) = (self.way(), head) else { return Err(WriteError::Closed) };
        let mut queue = way.queue();
        if queue.closed {
            return Err(WriteError::Closed);
        }
        if queue.gated_bytes > 0 && queue.gated_bytes + frame.len() > GATED_MAX {
            return Err(WriteError::Full);
        }
        queue.put += frame.len() as u64;
        if !frame.is_empty() {
            let end = queue.put;
            queue.unconfirmed.push_back((end, frame.clone()));
        }
        queue.deposits.push(offset, state.len(), step);
        let acked = queue.acked;
        queue.deposits.prune(acked);
        let message = Message { input: frame.len(), pieces: [head, state, frame] };
        way.pass(&mut queue, message);
        Ok(())
    }

    /// Whether its holder takes [steps](Self::step).
    pub fn takes_steps(&self) -> bool {
        self.version >= 2
    }

    /// Names the process: the holder's random name for it, or, with holders that give none, what it is known by.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Whether its holder is of a release that names no instance.
    pub fn is_nameless(&self) -> bool {
        self.version < 2
    }

    /// Since when the runtime has taken none of its input while more waits than should; `None` while there is room.
    pub fn stalled(&self) -> Option<Instant> {
        let queue = self.way()?.queue();
        (!queue.gated.is_empty()).then_some(queue.moved)
    }

    /// Whether the holder keeps so much state that nothing should be added to it before some is needed no more.
    pub fn heavy(&self) -> bool {
        self.way().is_some_and(|way| way.queue().deposits.heavy())
    }

    /// The runtime and its holder; `None` for what a holder left, or if the runtime has ended.
    pub fn processes(&self) -> Option<Processes> {
        self.processes
    }

    /// Whether somebody is at the other end; else it is what a holder left.
    pub fn is_live(&self) -> bool {
        self.way().is_some()
    }

    /// Deposits state that knows of the output before `offset`; lost with the connection.
    pub fn state(&self, offset: u64, state: Bytes) {
        let Some(way) = self.way() else { return };
        match wire::state_head(offset, &state) {
            Some(head) => {
                let mut queue = way.queue();
                queue.deposits.push(offset, state.len(), false);
                let acked = queue.acked;
                queue.deposits.prune(acked);
                way.pass(&mut queue, Message { input: 0, pieces: [head, state, Bytes::new()] });
            }
            None => way.stuck.notify_one(),
        }
    }

    /// All output before `offset` is safe: the holder may forget it. Sent after what was sent before.
    pub fn ack(&self, offset: u64) {
        let Some(way) = self.way() else { return };
        let mut queue = way.queue();
        if offset <= queue.acked {
            return;
        }
        queue.acked = offset;
        queue.deposits.prune(offset);
        let ack = ToHolder::Ack { offset }.to_bytes();
        if !queue.gated.is_empty() {
            // The state that it goes with waits, too.
            return way.pass(&mut queue, Message { input: 0, pieces: [ack, Bytes::new(), Bytes::new()] });
        }
        // While the last thing that waits is an acknowledgement itself, this one stands for both.
        if queue.ack_last
            && queue.pieces.len() > 1
            && let Some(last) = queue.pieces.back_mut()
        {
            *last = ack;
            return;
        }
        way.send(&mut queue, [ack]);
        queue.ack_last = true;
    }

    /// The runtime's stdin ends, after what was put before.
    #[cfg(test)]
    pub fn close_stdin(&self) {
        self.say(&ToHolder::CloseStdin);
        self.close();
    }

    /// The runtime ends: its stdin is closed; after `stdin` its family gets SIGTERM, after another `term` SIGKILL. Its
    /// end is told as [`HolderNews::Exited`].
    pub fn stop(&self, stdin: Duration, term: Duration) {
        self.say(&ToHolder::Stop { stdin, term });
        self.close();
    }

    /// The runtime's family is killed. Its end is told as [`HolderNews::Exited`].
    pub fn kill(&self) {
        self.say(&ToHolder::Kill);
        self.close();
    }

    /// Everything is safe, the end of the runtime included: the holder ends, or what it left is removed.
    pub fn bye(&self) {
        match self.way() {
            Some(_) => self.say(&ToHolder::Bye),
            // One entry of a folder: no slower than what `put` does.
            None => drop(std::fs::remove_file(&self.path)),
        }
    }

    fn say(&self, message: &ToHolder) {
        if let Some(way) = self.way() {
            way.send(&mut way.queue(), [message.to_bytes()]);
        }
    }

    /// The runtime's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where the holder listens, or the file it left.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HolderClient {
    fn drop(&mut self) {
        if let Some(way) = self.way() {
            way.queue().dropped = true;
            way.more.notify_one();
        }
    }
}

/// Waits until the holder says that its program runs.
async fn ready(child: &mut Child) -> Result<(), String> {
    let (Some(mut stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("its holder's pipes are missing".into());
    };
    let mut said = Vec::new();
    while !said.contains(&b'\n') {
        match stdout.read_buf(&mut said).await {
            Ok(1..) => {}
            Ok(0) => break,
            Err(why) => return Err(format!("its holder cannot be read from: {why}")),
        }
    }
    if said.starts_with(b"ready\n") {
        return Ok(());
    }
    let mut words = Vec::new();
    let _ = stderr.take(REASON_MAX).read_to_end(&mut words).await;
    let status =
        child.wait().await.map_err(|why| format!("its holder exited, and the exit status is unknown: {why}"))?;
    let words = printable(&words);
    let words = words.trim().trim_start_matches("plexus hold: ");
    match (words.is_empty(), exit::ended(status)) {
        (false, _) => Err(words.to_owned()),
        (true, (Some(code), _)) => Err(format!("its holder exited with code {code}")),
        (true, (None, signal)) => Err(format!("its holder was killed by {}", signal.unwrap_or_default())),
    }
}

/// A greeting of a version that is understood.
fn known(welcome: Welcome) -> Result<Welcome, String> {
    match welcome.version {
        OLDEST..=VERSION => Ok(welcome),
        other => Err(format!(
            "it speaks version {other}, and this gateway {OLDEST} to {VERSION}: use the plexus that started it"
        )),
    }
}

/// The holder's own name for its process. Holders of the release 0.1.0 give none: it is known by its number and start.
fn instance(welcome: &Welcome) -> String {
    welcome.instance.clone().unwrap_or_else(|| {
        let started = welcome.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("p_{}_{}", welcome.pid, started.as_millis())
    })
}

/// Why a holder was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HolderNotFound {
    /// Nobody listens there: the holder is gone.
    #[error("{0}")]
    Nobody(String),
    /// It did not answer in time, or the connection was lost: it may be tried again.
    #[error("{0}")]
    Silent(String),
    /// It is not ours, or cannot be understood.
    #[error("{0}")]
    Unusable(String),
}

// === the folder ===

#[cfg(test)]
mod tests;
