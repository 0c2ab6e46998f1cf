//! `plexus term-hold`: the process that holds a pseudo-terminal, follows its screen, and serves it to attachments over a Unix
//! socket. It outlives the window that it was started in, and every gateway.
//!
//! - One task decides; a task for each connection reads, another one writes. No attachment can hold up the program or another one,
//!   except the owner's terminal: the output waits for it, up to [`OWNER_WAIT`] without any progress.
//! - Input waits at its source until the program reads; none is dropped, except a key at a dialog that was answered just now
//!   (`type_if`).
//! - When the program has ended, all attachments are informed; the holder ends when they have left, or
//!   [`EXIT_RETENTION`] later if there was none.
//! - A holder whose socket was removed cannot be found: without an attachment it hangs up, as a terminal does whose window is closed.

mod connection;
mod outgoing;
mod pty;
mod type_if;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use self::connection::Connection;
use self::outgoing::Outgoing;
use self::pty::{NotSpawned, Pty};
pub use self::type_if::TYPE_IF_WAIT;
use self::type_if::{AnsweredDialog, CHECK_INTERVAL, PendingKeys, Typing};
use crate::folder;
use crate::model::{HISTORY_LINES, Model, TerminalSize};
use crate::wire::{
    AttachmentRole, AttachmentStatus, FromHost, Hello, TerminalExit, TerminalInfo, TerminalWelcome, ToHost,
    TypeIfOutcome, VERSION,
};
use plexus_protocol::{TerminalId, Timestamp};

/// The variable that has the shared terminal of a program.
pub const VARIABLE: &str = pty::VARIABLE;

/// Maximum number of attachments at a time; further ones are refused.
const ATTACHMENTS_MAX: usize = 64;

/// Maximum number of events of connections that wait to be handled; a connection waits for capacity.
const EVENTS: usize = 64;

/// Maximum number of bytes that may wait for the owner's terminal; above it the program has to wait.
const OWNER_QUEUE: usize = 256 << 10;

/// Time that the program waits for an owner's terminal that accepts no output; then the owner is treated like every viewer.
pub const OWNER_WAIT: Duration = Duration::from_secs(2);

/// Time that the output waits for the terminal that started the program.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// Time between two changes of the size. Windows that are dragged report many, of which only the last one matters.
const RESIZE_INTERVAL: Duration = Duration::from_millis(30);

/// Time for which output of processes that a program left behind is still read.
const LINGER: Duration = Duration::from_millis(300);

/// Time for which the end of a program is retained for the first attachment.
pub const EXIT_RETENTION: Duration = Duration::from_secs(600);

/// Time for an attachment to disconnect after it was informed of the end.
const LEAVE_WAIT: Duration = Duration::from_secs(10);

/// Time for a program to end after the hang-up; then it is killed.
pub const KILL_GRACE: Duration = Duration::from_secs(3);

/// Interval at which a holder without attachments checks its socket.
const SOCKET_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of bytes of output that are handled at once.
const BATCH: usize = 64 << 10;

/// The command line of the holder.
#[derive(Debug)]
pub struct HostOptions {
    /// The terminal's identifier.
    pub id: TerminalId,
    /// The path of the socket.
    pub socket: PathBuf,
    /// The first size.
    pub size: TerminalSize,
    /// The position of the cursor of the terminal that starts the program, for which its output waits.
    pub cursor: Option<(u16, u16)>,
    /// The program, then its arguments.
    pub cmd: Vec<OsString>,
}

/// Starts the program, prints `ready` to stdout, and serves until the program has ended and its end was reported or
/// retained for long enough.
///
/// Returns 127 if the program is not found and 126 if it or the socket cannot be used, with a message on stderr;
/// otherwise 0, however the program ended. It must be called from a process without other threads and children.
pub fn run(options: HostOptions) -> ExitCode {
    match prepare(options) {
        Ok((runtime, host, listener)) => {
            runtime.block_on(host.serve(listener));
            ExitCode::SUCCESS
        }
        Err(NotSpawned(code, why)) => {
            // The reader may have ended.
            let _ = writeln!(io::stderr(), "plexus term-hold: {why}");
            ExitCode::from(code)
        }
    }
}

fn prepare(
    options: HostOptions,
) -> Result<(tokio::runtime::Runtime, Host, std::os::unix::net::UnixListener), NotSpawned> {
    let failed = |what: &str, why: &dyn std::fmt::Display| NotSpawned(126, format!("{what}: {why}"));
    // A group leader (for example started from a shell) cannot start a session, but has a group of its own already.
    if rustix::process::getpgrp() != rustix::process::getpid() {
        rustix::process::setsid().map_err(|why| failed("no session of its own", &why))?;
    }
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(|why| failed("/dev/null", &why))?;
    let socket = std::path::absolute(&options.socket).map_err(|why| failed("the socket", &why))?;
    let listener = folder::listen(&socket).map_err(|why| failed(&socket.display().to_string(), &why))?;
    let cwd = std::env::current_dir().unwrap_or_default().display().to_string();
    let pty =
        Pty::spawn(&options.id, &options.cmd, options.size).inspect_err(|_| drop(std::fs::remove_file(&socket)))?;
    let command = options.cmd.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let info = TerminalInfo {
        terminal_id: options.id,
        command,
        cwd,
        title: String::new(),
        pid: pty.pid,
        started_at: Timestamp::from(SystemTime::now()),
        size: options.size,
        attached: 0,
        exited: None,
    };
    let mut model = Model::new(options.size, HISTORY_LINES);
    if let Some((row, column)) = options.cursor {
        model.feed(format!("\x1b[{row};{column}H").as_bytes());
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| failed("no runtime", &why))?;
    let host = Host::new(info.printable(), socket, model, pty, options.cursor.is_some());
    // The folder may be removed now.
    let _ = rustix::process::chdir("/");
    let _ = io::stdout().write_all(b"ready\n").and_then(|()| io::stdout().flush());
    let _ = rustix::stdio::dup2_stdin(&null);
    let _ = rustix::stdio::dup2_stdout(&null);
    let _ = rustix::stdio::dup2_stderr(&null);
    Ok((runtime, host, listener))
}

/// The events of connections.
#[derive(Debug)]
enum Event {
    /// A connection sent its hello.
    Joined(Hello, Connection),
    /// An attachment sent a message.
    Message(u64, ToHost),
    /// An attachment has received the messages from before it fell behind.
    CaughtUp(u64),
    /// A connection ended.
    Disconnected(u64),
}

/// An attachment.
struct Attached {
    role: AttachmentRole,
    /// The size of its window.
    size: Option<TerminalSize>,
    /// The last status that was sent to it.
    status: Option<AttachmentStatus>,
    outgoing: Arc<Outgoing>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

struct Host {
    info: TerminalInfo,
    socket: PathBuf,
    model: Model,
    pty: Pty,
    attached: BTreeMap<u64, Attached>,
    next_id: u64,
    /// The attachments that claimed to be the owner, in this order. The last one that is still attached is the owner.
    claims: Vec<u64>,
    /// The time until which output waits for the terminal that started the program.
    first_until: Option<Instant>,
    /// The time when the size was set last.
    resized_at: Instant,
    /// The time when the program wrote last.
    last_output: Instant,
    /// The typing of users.
    typing: Typing,
    /// Keys that wait until the screen shows the dialog or line for them.
    pending_keys: Vec<PendingKeys>,
    /// The dialog that they answered, until it disappears from the screen.
    answered_dialog: Option<AnsweredDialog>,
    /// `true` once the output is read to its end, or not read any more; from then on only attachments count.
    finished: bool,
    /// `true` if the output of the pseudo-terminal ended.
    output_ended: bool,
    /// The time until which output is still read after the program's end.
    linger_until: Option<Instant>,
    /// The time when the program is killed.
    kill_at: Option<Instant>,
    /// The time when the holder ends.
    end_at: Option<Instant>,
    /// `true` if any attachment was informed of the end.
    end_reported: bool,
    events: mpsc::Sender<Event>,
    event_queue: mpsc::Receiver<Event>,
    /// Notified when an attachment has received a message.
    message_taken: Arc<Notify>,
}

impl Host {
    fn new(info: TerminalInfo, socket: PathBuf, model: Model, pty: Pty, waits: bool) -> Self {
        let (events, event_queue) = mpsc::channel(EVENTS);
        Self {
            info,
            socket,
            model,
            pty,
            attached: BTreeMap::new(),
            next_id: 0,
            claims: Vec::new(),
            first_until: waits.then(|| Instant::now() + FIRST_WAIT),
            resized_at: Instant::now(),
            last_output: Instant::now(),
            typing: Typing::default(),
            pending_keys: Vec::new(),
            answered_dialog: None,
            finished: false,
            output_ended: false,
            linger_until: None,
            kill_at: None,
            end_at: None,
            end_reported: false,
            events,
            event_queue,
            message_taken: Arc::new(Notify::new()),
        }
    }

    /// Serves until the end.
    async fn serve(mut self, listener: std::os::unix::net::UnixListener) {
        let listener = tokio::net::UnixListener::from_std(listener);
        let (Ok(listener), Ok(mut term), Ok(mut hangup)) =
            (listener, signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        else {
            // No client can attach: the program ends as with a broken terminal.
            self.pty.signal(Signal::HUP);
            return drop(std::fs::remove_file(&self.socket));
        };
        let accepting = tokio::spawn(connection::accept(listener, self.events.clone()));
        let message_taken = Arc::clone(&self.message_taken);
        let mut next_socket_check = Instant::now() + SOCKET_INTERVAL;
        while !self.is_done() {
            let now = Instant::now();
            let held_until = self.owner_holds(now);
            let reads = !self.output_ended && !self.finished && self.first_until.is_none() && held_until.is_none();
            let checks_screen = !self.pending_keys.is_empty() || self.answered_dialog.is_some();
            let check_at = checks_screen.then(|| now + CHECK_INTERVAL);
            let wake = [
                self.first_until,
                held_until,
                check_at,
                self.resize_due(),
                self.linger_until,
                self.kill_at,
                self.end_at,
            ]
            .into_iter()
            .flatten()
            .fold(next_socket_check, Instant::min);
            tokio::select! {
                event = self.event_queue.recv() => {
                    if let Some(event) = event {
                        self.event(event);
                    }
                }
                output = self.pty.output.recv(), if reads => match output {
                    Some(output) => self.output(output),
                    None => self.output_ended = true,
                },
                exit = &mut self.pty.exit, if self.info.exited.is_none() => {
                    self.info.exited = Some(exit.unwrap_or(TerminalExit { code: None, signal: None }));
                    self.linger_until = Some(Instant::now() + LINGER);
                }
                () = message_taken.notified(), if held_until.is_some() => {}
                _ = term.recv() => self.hang_up(),
                _ = hangup.recv() => {}
                () = sleep_until(wake) => {}
            }
            let now = Instant::now();
            if !reads && !self.output_ended {
                // Unread output is still handled.
                self.linger_until = self.linger_until.map(|_| now + LINGER);
            }
            if now >= next_socket_check {
                next_socket_check = now + SOCKET_INTERVAL;
                if self.attached.is_empty() && self.socket.symlink_metadata().is_err() {
                    self.hang_up();
                    self.end_at = self.end_at.or(Some(now + KILL_GRACE + LEAVE_WAIT));
                }
            }
            self.due(now);
        }
        accepting.abort();
        let _ = std::fs::remove_file(&self.socket);
    }

    /// Returns whether there is no work left.
    fn is_done(&self) -> bool {
        let ended = self.end_at.is_some_and(|end| Instant::now() >= end);
        self.finished && (ended || self.end_reported && self.attached.is_empty()) || ended && self.attached.is_empty()
    }

    /// Does the work that is due now.
    fn due(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if is_due(self.first_until) {
            self.first_until = None;
        }
        if is_due(self.resize_due()) {
            self.settle();
        }
        self.type_if(now);
        if is_due(self.kill_at) {
            self.kill_at = None;
            if self.info.exited.is_none() {
                self.pty.signal(Signal::KILL);
            }
        }
        if self.info.exited.is_some() && !self.finished && (self.output_ended || is_due(self.linger_until)) {
            self.finish();
        }
    }

    /// Types keys whose moment has come, and reports the outcome to the attachments.
    fn type_if(&mut self, now: Instant) {
        let Self { pending_keys, answered_dialog, model, pty, typing, attached, .. } = self;
        answered_dialog.take_if(|dialog| !dialog.check(model, typing, now));
        let (last_output, ended) = (self.last_output, self.finished || self.info.exited.is_some());
        pending_keys.retain_mut(|pending| {
            let Some(asked) = attached.get(&pending.attachment) else { return false };
            let outcome = if ended {
                Some(TypeIfOutcome { typed: false, refused: Some("its program has ended".into()) })
            } else {
                pending.check(model, (last_output, pty.output.is_empty()), typing, &pty.input, now)
            };
            if let Some(outcome) = &outcome {
                if outcome.typed {
                    *answered_dialog = pending.answered(now).or(answered_dialog.take());
                }
                asked.outgoing.push(&FromHost::TypeIf(outcome.clone()));
                asked.outgoing.close();
            }
            outcome.is_none()
        });
    }

    /// Informs all attachments of the end, once all output was read.
    fn finish(&mut self) {
        (self.finished, self.linger_until, self.kill_at) = (true, None, None);
        let ids: Vec<u64> = self.attached.keys().copied().collect();
        ids.into_iter().for_each(|id| self.report_end(id));
        self.end_at = Some(Instant::now() + if self.attached.is_empty() { EXIT_RETENTION } else { LEAVE_WAIT });
    }

    /// Informs an attachment of the end. One that is behind is informed after its snapshot.
    fn report_end(&mut self, id: u64) {
        let (Some(attached), Some(exited)) = (self.attached.get(&id), self.info.exited) else { return };
        if attached.outgoing.push(&FromHost::Exited(exited)) {
            attached.outgoing.close();
        }
        self.end_reported = true;
    }

    /// Ends the program as a closed window does, and kills it later.
    fn hang_up(&mut self) {
        if self.info.exited.is_none() && self.kill_at.is_none() {
            self.pty.signal(Signal::HUP);
            self.kill_at = Some(Instant::now() + KILL_GRACE);
        }
    }

    fn owner(&self) -> Option<u64> {
        self.claims.iter().rev().copied().find(|id| self.attached.contains_key(id))
    }

    /// Returns the owner, if it is a terminal that gets the unfiltered output.
    fn raw_owner(&self) -> Option<&Attached> {
        let owner = self.attached.get(&self.owner()?)?;
        (owner.role == AttachmentRole::Terminal).then_some(owner)
    }

    /// Returns the time until which the program waits for the owner's terminal.
    fn owner_holds(&self, now: Instant) -> Option<Instant> {
        let owner = self.raw_owner()?;
        let (bytes, progress) = owner.outgoing.waiting();
        if bytes < OWNER_QUEUE || owner.outgoing.is_behind() {
            return None;
        }
        let until = progress + OWNER_WAIT;
        if now >= until {
            owner.outgoing.fall_behind();
            return None;
        }
        Some(until)
    }

    /// Handles output of the program, with all further output that is available.
    fn output(&mut self, first: Bytes) {
        let output = match self.pty.output.try_recv() {
            Err(_) => first,
            Ok(next) => {
                let mut all = BytesMut::from(&first[..]);
                all.extend_from_slice(&next);
                while all.len() < BATCH
                    && let Ok(next) = self.pty.output.try_recv()
                {
                    all.extend_from_slice(&next);
                }
                all.freeze()
            }
        };
        if self.linger_until.is_some() {
            self.linger_until = Some(Instant::now() + LINGER);
        }
        self.last_output = Instant::now();
        // The owner's terminal is first: its output does not wait for the model.
        let answered = self.raw_owner().is_some_and(|owner| owner.outgoing.push(&FromHost::Output(output.clone())));
        let fed = self.model.feed(&output);
        if !answered {
            for query in fed.queries {
                // A program that does not read its answers gets none.
                let _ = self.pty.input.try_send(self.model.answer(query).into_bytes().into());
            }
        }
        let raw = self.raw_owner().and(self.owner());
        let viewers = Bytes::from(fed.viewers);
        for (id, attached) in &self.attached {
            if Some(*id) == raw || !attached.role.sees() {
                continue;
            }
            if fed.lost {
                attached.outgoing.fall_behind();
            } else if !viewers.is_empty() {
                attached.outgoing.push(&FromHost::Output(viewers.clone()));
            }
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Joined(hello, connection) => self.join(hello, connection),
            Event::Message(id, message) => self.message(id, message),
            Event::CaughtUp(id) => {
                let Some(attached) = self.attached.get_mut(&id) else { return };
                attached.outgoing.catch_up();
                attached.status = None;
                self.settle();
                if self.finished {
                    self.report_end(id);
                }
            }
            Event::Disconnected(id) => {
                if let Some(attached) = self.attached.remove(&id) {
                    attached.tasks.iter().for_each(tokio::task::JoinHandle::abort);
                }
                self.claims.retain(|claim| *claim != id);
                self.settle();
            }
        }
    }

    fn message(&mut self, id: u64, message: ToHost) {
        let Some(attached) = self.attached.get_mut(&id) else { return };
        match message {
            ToHost::Resize(size) => {
                attached.size = size.within_limits().or(attached.size);
                // A window that shows a part of the screen shows another part now.
                self.settle();
            }
            ToHost::Own(size) if attached.role.types() => {
                attached.size = size.within_limits().or(attached.size);
                self.claims.retain(|claim| *claim != id);
                self.claims.push(id);
                self.settle();
            }
            ToHost::Refresh => attached.outgoing.fall_behind(),
            ToHost::TypeIf(request) if attached.role == AttachmentRole::TypeIf => {
                // Each attachment has one at a time: a new request replaces an earlier one.
                self.pending_keys.retain(|pending| pending.attachment != id);
                self.pending_keys.push(PendingKeys::new(id, request, Instant::now()));
            }
            ToHost::Own(_) | ToHost::Input(_) | ToHost::Hello(_) | ToHost::TypeIf(_) => {}
        }
    }

    fn join(&mut self, hello: Hello, connection: Connection) {
        let attached = self.attached.values().filter(|attached| attached.role.sees()).count();
        let mut terminal = self.info.clone();
        (terminal.attached, terminal.title) = (attached, self.model.modes().title().to_owned());
        terminal.size = self.model.size();
        let welcome = FromHost::Welcome(Box::new(TerminalWelcome { version: VERSION, terminal }));
        let refusal = if !(hello.oldest..=hello.newest).contains(&VERSION) {
            Some(format!("it speaks version {VERSION}: use the plexus that started it"))
        } else if hello.role.sees() && attached >= ATTACHMENTS_MAX {
            Some(format!("{ATTACHMENTS_MAX} screens show it already, and more are not possible: close some"))
        } else {
            None
        };
        let id = self.next_id;
        self.next_id += 1;
        let outgoing = Outgoing::new();
        let types = hello.role.types().then(|| (self.pty.input.clone(), self.typing.clone()));
        let tasks =
            connection.serve(id, Arc::clone(&outgoing), types, self.events.clone(), Arc::clone(&self.message_taken));
        let size = hello.size.and_then(TerminalSize::within_limits);
        let mut attached = Attached { role: hello.role, size, status: None, outgoing, tasks };
        if let Some(why) = refusal {
            attached.outgoing.push(&FromHost::Bye(why));
            return attached.outgoing.close();
        }
        attached.outgoing.push(&welcome);
        match hello.role {
            AttachmentRole::Info => return attached.outgoing.close(),
            AttachmentRole::Kill => self.hang_up(),
            AttachmentRole::Terminal => self.claims.push(id),
            AttachmentRole::Watch | AttachmentRole::Type | AttachmentRole::TypeIf => {}
        }
        if hello.first && self.first_until.take().is_some() {
            // The screen of the window is that of the model: the output follows from the first byte.
            let status = AttachmentStatus { size: self.model.size(), owner: true, raw: true };
            attached.outgoing.push(&FromHost::Status(status));
            attached.status = Some(status);
        }
        self.attached.insert(id, attached);
        self.settle();
        if self.finished {
            self.report_end(id);
            self.end_at = Some(Instant::now() + LEAVE_WAIT);
        }
    }

    /// Returns the time when a change of the size is due; `None` if there is none.
    fn resize_due(&self) -> Option<Instant> {
        let size = self.owner().and_then(|owner| self.attached.get(&owner)?.size);
        let changes = size.is_some_and(|size| size != self.model.size()) && !self.finished;
        changes.then(|| self.resized_at + RESIZE_INTERVAL)
    }

    /// Updates the size and the attachments for the current owner.
    fn settle(&mut self) {
        let now = Instant::now();
        if self.resize_due().is_some_and(|at| now >= at)
            && let Some(size) = self.owner().and_then(|owner| self.attached.get(&owner)?.size)
        {
            self.resized_at = now;
            self.pty.resize(size);
            self.model.set_size(size);
        }
        let owner = self.owner();
        let size = self.model.size();
        let mut snapshot: Option<Bytes> = None;
        for (id, attached) in self.attached.iter_mut().filter(|(_, attached)| attached.role.sees()) {
            let is_owner = Some(*id) == owner;
            let status =
                AttachmentStatus { size, owner: is_owner, raw: is_owner && attached.role == AttachmentRole::Terminal };
            let before = attached.status.replace(status);
            if before == Some(status) || attached.outgoing.is_behind() {
                continue;
            }
            attached.outgoing.push(&FromHost::Status(status));
            // The owner's terminal changes its size by itself, as its program does.
            if status.raw && before.is_some_and(|before| before.raw) {
                continue;
            }
            let snapshot = snapshot.get_or_insert_with(|| self.model.snapshot().into());
            attached.outgoing.push(&FromHost::Snapshot(snapshot.clone()));
            let tail = self.model.tail();
            if status.raw && !tail.is_empty() {
                attached.outgoing.push(&FromHost::Output(tail.into()));
            }
        }
    }
}

impl AttachmentRole {
    /// Returns whether the role gets the screen.
    fn sees(self) -> bool {
        matches!(self, Self::Watch | Self::Type | Self::Terminal)
    }

    /// Returns whether the role may type.
    fn types(self) -> bool {
        matches!(self, Self::Type | Self::Terminal)
    }
}
