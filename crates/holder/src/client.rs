//! The gateway's side of holders: starts them, finds those of an earlier gateway, and exchanges messages with them. One file for the
//! connection; the folder of sockets is beside it.
//!
//! A holder (`plexus hold --socket PATH`) owns a runtime's stdio and lets the runtime outlive the gateway. All holders share one folder,
//! with at most two files each: the socket `<runtime>.<8 letters>.sock`, and, once the runtime has ended without a connected gateway,
//! `<runtime>.<8 letters>.end`, which holds the unsent messages.

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

/// Maximum time for a holder to start its program. It takes milliseconds, more on a busy machine.
const READY_WAIT: Duration = Duration::from_secs(30);

/// Maximum time for a holder to respond; one that does not is stopped, or stuck in the kernel.
const WELCOME_WAIT: Duration = Duration::from_secs(10);

/// Maximum number of bytes queued for a holder; beyond it the connection is dropped and made again.
const QUEUE_MAX: usize = 2 * wire::STATE_MAX;

/// Size of state beside the newest whole state that a holder retains before the gateway waits for acknowledgements, in bytes: see
/// [`HolderClient::has_much_state`]. Far below [`wire::STATE_MAX`], so that writes before the wait fit.
const DEPOSITS_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of bytes of input queued in the gateway for a runtime that does not read; beyond it the runtime is stuck.
const BLOCKED_MAX: usize = 64 * 1024 * 1024;

/// Maximum time for sending queued messages after the client was dropped.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time beyond the sum of its timeouts for a holder to stop its runtime: killed processes may take a while to end.
const STOP_SLACK: Duration = Duration::from_secs(20);
/// Interval at which [`stop`] checks whether the holder has ended.
const REMOVED_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of bytes read of a failed holder's stderr.
const STDERR_READ_MAX: u64 = 16 * 1024;

/// Maximum length of the path of a socket, in bytes: the smallest `sun_path` of the supported systems.
const PATH_MAX: usize = 103;

/// Age from which on a file under a temporary name counts as left over from a crash and is removed.
const TEMPORARY_AGE: Duration = Duration::from_secs(60);

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The arguments, without the program's name.
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
}

/// The reason why input for a runtime was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Too much input is queued.
    Full,
    /// The runtime or the gateway closed the runtime's stdin.
    Closed,
}

/// A connection to a holder, or the file that a holder left.
pub struct HolderClient {
    path: PathBuf,
    pid: u32,
    /// The protocol version of the holder.
    version: u8,
    instance: String,
    /// The runtime and the holder as processes; `None` for a file.
    processes: Option<Processes>,
    decoder: Decoder,
    source: Source,
    /// The offset of the next output.
    next: u64,
    /// The offset before which output was delivered over an earlier connection.
    delivered_to: u64,
    /// `true` if the last message was delivered.
    ended: bool,
}

/// A runtime and its holder as processes.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    /// The runtime.
    pub runtime: Process,
    /// The holder, if it is alive.
    pub holder: Option<Process>,
}

enum Source {
    Live { read: OwnedReadHalf, connection: Arc<HolderConnection> },
    File,
}

/// A message from a holder.
#[derive(Debug, PartialEq, Eq)]
pub enum HolderMessage {
    /// Output of the runtime. Every byte is delivered once for each connection, except acknowledged ones.
    Out {
        /// The offset of the first byte.
        offset: u64,
        /// The output; never empty.
        bytes: Bytes,
    },
    /// Stderr of the runtime.
    Err(Bytes),
    /// The holder's spool of unacknowledged output has been full since then; the runtime has to wait.
    Full(SystemTime),
    /// The spool has free space again.
    HasSpace,
    /// The runtime's stdin is broken.
    StdinBroken,
    /// The runtime closed its stdout and still runs; all of its output was delivered.
    StdoutClosed,
    /// The runtime ended, and all its output was delivered. The last message. It is answered with [`HolderClient::bye`] once everything
    /// is stored.
    Exited {
        /// The exit code, if it exited.
        code: Option<i32>,
        /// The signal that killed it, if any. Both are `None` if the system did not report either.
        signal: Option<i32>,
    },
    /// The connection is lost, with the reason. The last message. The runtime may still be alive.
    Lost(String),
}

impl HolderClient {
    /// Starts `program` in the folder of `spec` behind a new holder in the folder `dir`, which is created if necessary; and connects to
    /// the holder.
    ///
    /// The holder retains up to `spool_max` bytes of unacknowledged output. Unless `outlive` is set, the holder ends with this process
    /// and leaves no file.
    ///
    /// Not cancellation safe: the runtime may be left behind.
    ///
    /// # Errors
    /// A message: no more processes, a path too long for a socket, or the holder's own error.
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
        // Not in a process group of its own: a group leader cannot start a session, which the holder does.
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
        match timeout(READY_WAIT, wait_until_ready(&mut child)).await {
            Ok(wait_until_ready) => wait_until_ready?,
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

    /// Connects to the holder at `path`, or opens the file that it left. A gateway that was connected to the holder loses its connection.
    ///
    /// # Errors
    /// [`HolderNotFound`].
    pub async fn find(path: &Path) -> Result<(Self, Welcome), HolderNotFound> {
        Self::find_within(path, WELCOME_WAIT).await
    }

    /// Like [`find`](Self::find), with a timeout for the holder's response.
    pub async fn find_within(path: &Path, wait: Duration) -> Result<(Self, Welcome), HolderNotFound> {
        let end_file = path.with_extension("end");
        if path != end_file {
            let result = match timeout(wait, Self::connect(path)).await {
                Ok(result) => result,
                Err(_) => Err(HolderNotFound::NoResponse(format!("{} does not answer", path.display()))),
            };
            match result {
                Ok(found) => return Ok(found),
                // The runtime may have ended between the two attempts.
                Err(why) if !tokio::fs::try_exists(&end_file).await.unwrap_or(false) => return Err(why),
                Err(_) => {}
            }
        }
        let unusable = |why: &dyn std::fmt::Display| HolderNotFound::Unusable(format!("{}: {why}", end_file.display()));
        let all = tokio::fs::read(&end_file).await.map_err(|why| unusable(&why))?;
        let mut decoder = Decoder::from_bytes(all.into());
        let welcome = match decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose()) {
            Ok(Some(FromHolder::Welcome(welcome))) => check_version(welcome).map_err(|why| unusable(&why))?,
            Ok(_) => return Err(unusable(&"it does not start with the expected message")),
            Err(why) => return Err(unusable(&why)),
        };
        Ok((Self::new(end_file, &welcome, decoder, Source::File, None), welcome))
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
            delivered_to: 0,
            ended: false,
        }
    }

    async fn connect(path: &Path) -> Result<(Self, Welcome), HolderNotFound> {
        let unusable = |why: &dyn std::fmt::Display| HolderNotFound::Unusable(format!("{}: {why}", path.display()));
        let lost = |why: &dyn std::fmt::Display| HolderNotFound::NoResponse(format!("{}: {why}", path.display()));
        let stream = UnixStream::connect(path).await.map_err(|why| match why.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                HolderNotFound::Ended(format!("{}: {why}", path.display()))
            }
            _ => lost(&why),
        })?;
        let peer = stream.peer_cred().map_err(|why| lost(&why))?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            return Err(unusable(&"it belongs to another user"));
        }
        let (mut read, write) = stream.into_split();
        let connection = Arc::new(HolderConnection::new(write));
        connection.send(&mut connection.queue(), [ToHolder::Hello { version: OLDEST, newest: VERSION }.to_bytes()]);
        let mut decoder = Decoder::default();
        let welcome = loop {
            match decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose()) {
                Ok(Some(FromHolder::Welcome(welcome))) => {
                    break check_version(welcome).map_err(|why| unusable(&why))?;
                }
                Ok(Some(FromHolder::Bye { reason: why })) => return Err(unusable(&why)),
                Ok(Some(_)) => return Err(unusable(&"it does not start with the expected message")),
                Ok(None) => {}
                Err(why) => return Err(unusable(&why)),
            }
            match read.read_buf(decoder.buffer()).await {
                Ok(1..) => {}
                Ok(0) => return Err(lost(&"it hung up")),
                Err(why) => return Err(lost(&why)),
            }
        };
        {
            let mut queue = connection.queue();
            (queue.put, queue.taken) = (welcome.put, welcome.taken);
            queue.acked = welcome.acked;
            queue.closed = welcome.stdin_closed;
            for (offset, blob) in &welcome.blobs {
                queue.deposits.push(*offset, blob.len(), false);
            }
        }
        tokio::spawn(pump(Arc::clone(&connection)));
        let holder = peer.pid().and_then(|pid| u32::try_from(pid).ok()).and_then(Process::find);
        let processes = Process::find(welcome.pid).map(|runtime| Processes { runtime, holder });
        Ok((Self::new(path.to_owned(), &welcome, decoder, Source::Live { read, connection }, processes), welcome))
    }

    /// Returns the process that listens at `path`; `None` if there is none, or the system does not report it.
    pub async fn listener(path: &Path) -> Option<Process> {
        let peer = UnixStream::connect(path).await.ok()?.peer_cred().ok()?;
        let is_own_user = peer.uid() == rustix::process::geteuid().as_raw();
        peer.pid().filter(|_| is_own_user).and_then(|pid| u32::try_from(pid).ok()).and_then(Process::find)
    }

    /// Continues after `old`, a lost connection to the same holder, without delivering output twice. Returns the input that was lost with
    /// the connection, which the caller has to [put](Self::put) again with a whole state.
    pub fn continue_from(&mut self, old: &Self, welcome: &Welcome) -> Bytes {
        self.delivered_to = old.next;
        let (Some(connection), Some(old_connection)) = (self.connection(), old.connection()) else {
            return Bytes::new();
        };
        let (mut queue, old_connection) = (connection.queue(), old_connection.queue());
        queue.write_max = old_connection.write_max;
        let lost = old_connection.unconfirmed.iter().filter(|(end, _)| *end > welcome.put);
        lost.map(|(_, frame)| &frame[..]).collect::<Vec<_>>().concat().into()
    }

    /// Returns every holder in the folder, and every file that one left: the name of its runtime and a path for [`Self::find`], in order.
    /// Removes sockets without a listener, and leftovers of crashes. Replaces no gateway's connection. A missing folder counts as empty.
    pub async fn all(dir: &Path) -> Vec<(String, PathBuf)> {
        let dir = dir.to_owned();
        let found = tokio::task::spawn_blocking(move || find_holders(&dir)).await;
        found.unwrap_or_default().into_iter().map(|found| (found.runtime, found.path)).collect()
    }

    /// Waits for the next message. Cancellation safe. Never returns after [`HolderMessage::Exited`] or [`HolderMessage::Lost`].
    pub async fn next(&mut self) -> HolderMessage {
        loop {
            if self.ended {
                std::future::pending::<()>().await;
            }
            let message = self.decoder.frame().and_then(|frame| frame.map(FromHolder::parse).transpose());
            let translate = match message {
                Ok(Some(message)) => self.translate(message),
                Err(why) => Some(HolderMessage::Lost(format!("its holder sent {why}"))),
                Ok(None) => match &mut self.source {
                    Source::File => Some(HolderMessage::Lost(format!("{} is incomplete", self.path.display()))),
                    Source::Live { read, connection } => {
                        let buffer = self.decoder.buffer();
                        tokio::select! {
                            biased;
                            read = read.read_buf(buffer) => match read {
                                Ok(1..) => None,
                                Ok(0) => Some(HolderMessage::Lost("its holder closed the connection".into())),
                                Err(why) => Some(HolderMessage::Lost(format!("its holder is gone: {why}"))),
                            },
                            () = connection.stuck.notified() => Some(HolderMessage::Lost("its holder does not listen".into())),
                        }
                    }
                },
            };
            if let Some(translate) = translate {
                match translate {
                    HolderMessage::Exited { .. } => {
                        self.ended = true;
                        self.close();
                    }
                    HolderMessage::Lost(_) => {
                        self.ended = true;
                        match self.connection() {
                            Some(connection) => connection.queue().fail(),
                            None => self.close(),
                        }
                    }
                    _ => {}
                }
                return translate;
            }
        }
    }

    fn translate(&mut self, message: FromHolder) -> Option<HolderMessage> {
        match message {
            FromHolder::Out { offset, bytes } => {
                let acked = self.connection().map_or(0, |connection| connection.queue().acked);
                // The holder leaves out output that was acknowledged before it was sent.
                let in_order = offset == self.next || (offset > self.next && offset <= acked);
                match offset.checked_add(bytes.len() as u64) {
                    Some(end) if in_order && !bytes.is_empty() => {
                        self.next = end;
                        let check_version =
                            usize::try_from(self.delivered_to.saturating_sub(offset)).unwrap_or(usize::MAX);
                        if check_version >= bytes.len() {
                            return None;
                        }
                        Some(HolderMessage::Out {
                            offset: offset + check_version as u64,
                            bytes: bytes.slice(check_version..),
                        })
                    }
                    _ => Some(HolderMessage::Lost(format!(
                        "its holder sent {} bytes from {offset} on, and {} comes next",
                        bytes.len(),
                        self.next
                    ))),
                }
            }
            FromHolder::Err { bytes } => Some(HolderMessage::Err(bytes)),
            FromHolder::Full { since } => Some(HolderMessage::Full(since)),
            FromHolder::HasSpace => Some(HolderMessage::HasSpace),
            FromHolder::Taken { total } => {
                if let Some(connection) = self.connection() {
                    connection.record_taken(total);
                }
                None
            }
            FromHolder::StdoutClosed => Some(HolderMessage::StdoutClosed),
            FromHolder::StdinBroken => {
                self.close();
                Some(HolderMessage::StdinBroken)
            }
            FromHolder::Exited { code, signal } => Some(HolderMessage::Exited { code, signal }),
            FromHolder::Bye { reason: why } => {
                Some(HolderMessage::Lost(format!("its holder closed the connection: {why}")))
            }
            FromHolder::Welcome(_) => Some(HolderMessage::Lost("its holder was started again".into())),
        }
    }

    fn connection(&self) -> Option<&Arc<HolderConnection>> {
        match &self.source {
            Source::Live { connection, .. } => Some(connection),
            Source::File => None,
        }
    }

    /// Makes [`Self::put`] refuse further input.
    fn close(&self) {
        if let Some(connection) = self.connection() {
            connection.queue().closed = true;
        }
    }

    /// Sets how many bytes of input may wait for the runtime before [`Self::put`] queues them in the gateway. Maximum and default are
    /// [`wire::STDIN_MAX`].
    pub fn set_write_max(&self, max: usize) {
        if let Some(connection) = self.connection() {
            connection.queue().write_max = max.min(wire::STDIN_MAX) as u64;
        }
    }

    /// Sends input to the runtime, together with the state after that input, which covers the output before `offset`. It is sent at once,
    /// unless the runtime is [stalled](Self::stalled): then it is queued until it fits. On a lost connection it is retained for the next
    /// one: see [`Self::continue_from`].
    ///
    /// # Errors
    /// [`WriteError::Full`] if 64 MiB are queued (while nothing is queued, a frame of up to 256 MiB is accepted), and
    /// [`WriteError::Closed`] if the runtime's stdin is closed. Then neither input nor state is accepted.
    pub fn put(&self, offset: u64, state: Bytes, frame: Bytes) -> Result<(), WriteError> {
        let head = wire::stdin_head(offset, &state, &frame);
        self.send_input(offset, head, state, frame, false)
    }

    /// Like [`put`](Self::put), with a step that is added to the last state; only for holders that [accept steps](Self::takes_steps). The
    /// frame may be empty.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn step(&self, offset: u64, entry: Bytes, frame: Bytes) -> Result<(), WriteError> {
        let head = wire::step_head(offset, &entry, &frame);
        self.send_input(offset, head, entry, frame, true)
    }

    fn send_input(
        &self,
        offset: u64,
        head: Option<Bytes>,
        state: Bytes,
        frame: Bytes,
        step: bool,
    ) -> Result<(), WriteError> {
        let (Some(connection), Some(head)) = (self.connection(), head) else { return Err(WriteError::Closed) };
        let mut queue = connection.queue();
        if queue.closed {
            return Err(WriteError::Closed);
        }
        if queue.blocked_bytes > 0 && queue.blocked_bytes + frame.len() > BLOCKED_MAX {
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
        connection.send_or_block(&mut queue, message);
        Ok(())
    }

    /// Returns whether the holder accepts [steps](Self::step).
    pub fn takes_steps(&self) -> bool {
        self.version >= 2
    }

    /// Returns the id of the process: the holder's random name for it, or, with holders of version 1, one made of pid and start time.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns whether the holder's version has no instance ids.
    pub fn is_nameless(&self) -> bool {
        self.version < 2
    }

    /// Returns the time since which the runtime has read none of its input while more than the limit is queued; `None` otherwise.
    pub fn stalled(&self) -> Option<Instant> {
        let queue = self.connection()?.queue();
        (!queue.blocked.is_empty()).then_some(queue.last_progress)
    }

    /// Returns whether the holder has so much state that no more should be sent before some of it is acknowledged.
    pub fn has_much_state(&self) -> bool {
        self.connection().is_some_and(|connection| connection.queue().deposits.has_much_state())
    }

    /// Returns the processes of runtime and holder; `None` for a file, or if the runtime has ended.
    pub fn processes(&self) -> Option<Processes> {
        self.processes
    }

    /// Returns whether a holder is connected, as opposed to its file.
    pub fn is_live(&self) -> bool {
        self.connection().is_some()
    }

    /// Sends state that covers the output before `offset`; lost with the connection.
    pub fn state(&self, offset: u64, state: Bytes) {
        let Some(connection) = self.connection() else { return };
        match wire::state_head(offset, &state) {
            Some(head) => {
                let mut queue = connection.queue();
                queue.deposits.push(offset, state.len(), false);
                let acked = queue.acked;
                queue.deposits.prune(acked);
                connection.send_or_block(&mut queue, Message { input: 0, pieces: [head, state, Bytes::new()] });
            }
            None => connection.stuck.notify_one(),
        }
    }

    /// Acknowledges all output before `offset`, so that the holder may drop it. Sent in order with other messages.
    pub fn ack(&self, offset: u64) {
        let Some(connection) = self.connection() else { return };
        let mut queue = connection.queue();
        if offset <= queue.acked {
            return;
        }
        queue.acked = offset;
        queue.deposits.prune(offset);
        let ack = ToHolder::Ack { offset }.to_bytes();
        if !queue.blocked.is_empty() {
            // The state for this offset is queued, too.
            return connection
                .send_or_block(&mut queue, Message { input: 0, pieces: [ack, Bytes::new(), Bytes::new()] });
        }
        // If the last queued message is an acknowledgement, this one replaces it.
        if queue.ack_last
            && queue.pieces.len() > 1
            && let Some(last) = queue.pieces.back_mut()
        {
            *last = ack;
            return;
        }
        connection.send(&mut queue, [ack]);
        queue.ack_last = true;
    }

    /// Closes the runtime's stdin after the queued input.
    #[cfg(test)]
    pub fn close_stdin(&self) {
        self.send_message(&ToHolder::CloseStdin);
        self.close();
    }

    /// Stops the runtime: closes its stdin; after `stdin` its process tree gets SIGTERM, after another `term` SIGKILL. The end is
    /// reported as [`HolderMessage::Exited`].
    pub fn stop(&self, stdin: Duration, term: Duration) {
        self.send_message(&ToHolder::Stop { stdin, term });
        self.close();
    }

    /// Kills the runtime's process tree. The end is reported as [`HolderMessage::Exited`].
    pub fn kill(&self) {
        self.send_message(&ToHolder::Kill);
        self.close();
    }

    /// Releases the holder once everything is stored, including [`HolderMessage::Exited`]: it ends, or its file is removed.
    pub fn bye(&self) {
        match self.connection() {
            Some(_) => self.send_message(&ToHolder::Bye),
            // Removes one directory entry: no slower than `put`.
            None => drop(std::fs::remove_file(&self.path)),
        }
    }

    fn send_message(&self, message: &ToHolder) {
        if let Some(connection) = self.connection() {
            connection.send(&mut connection.queue(), [message.to_bytes()]);
        }
    }

    /// Returns the runtime's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the holder's socket, or the file that it left.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HolderClient {
    fn drop(&mut self) {
        if let Some(connection) = self.connection() {
            connection.queue().dropped = true;
            connection.wake.notify_one();
        }
    }
}

/// Waits until the holder reports that its program runs.
async fn wait_until_ready(child: &mut Child) -> Result<(), String> {
    let (Some(mut stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("its holder's pipes are missing".into());
    };
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        match stdout.read_buf(&mut line).await {
            Ok(1..) => {}
            Ok(0) => break,
            Err(why) => return Err(format!("its holder cannot be read from: {why}")),
        }
    }
    if line.starts_with(b"ready\n") {
        return Ok(());
    }
    let mut stderr_text = Vec::new();
    let _ = stderr.take(STDERR_READ_MAX).read_to_end(&mut stderr_text).await;
    let status =
        child.wait().await.map_err(|why| format!("its holder exited, and the exit status is unknown: {why}"))?;
    let stderr_text = printable(&stderr_text);
    let stderr_text = stderr_text.trim().trim_start_matches("plexus hold: ");
    match (stderr_text.is_empty(), exit::ended(status)) {
        (false, _) => Err(stderr_text.to_owned()),
        (true, (Some(code), _)) => Err(format!("its holder exited with code {code}")),
        (true, (None, signal)) => Err(format!("its holder was killed by {}", signal.unwrap_or_default())),
    }
}

/// Checks that the holder's version is supported.
fn check_version(welcome: Welcome) -> Result<Welcome, String> {
    match welcome.version {
        OLDEST..=VERSION => Ok(welcome),
        other => Err(format!(
            "it supports version {other}, and this gateway {OLDEST} to {VERSION}: use the plexus that started it"
        )),
    }
}

/// Returns the holder's id of its process. Holders of release 0.1.0 send none: the id is made of pid and start time.
fn instance(welcome: &Welcome) -> String {
    welcome.instance.clone().unwrap_or_else(|| {
        let started = welcome.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("p_{}_{}", welcome.pid, started.as_millis())
    })
}

/// The reason why there is no connection to a holder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HolderNotFound {
    /// No process listens at the path: the holder has ended.
    #[error("{0}")]
    Ended(String),
    /// The holder did not respond in time, or the connection was lost: a retry may succeed.
    #[error("{0}")]
    NoResponse(String),
    /// The holder belongs to another user, or its messages are not understood.
    #[error("{0}")]
    Unusable(String),
}

// === the folder ===

#[cfg(test)]
mod tests;
