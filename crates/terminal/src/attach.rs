//! Attachments of the user's own terminal, as if the program ran in this window.
//!
//! As the owner, the terminal gets the program's output byte for byte, and its answers and the typed input are sent to
//! the program. Otherwise the screen is drawn from the output for viewers, as much of it as fits. The terminal is
//! restored on every exit.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

pub use crate::detach::{BadKeys, DetachKeys};

use crate::crop::Crop;
use crate::detach::{DetachFinder, SECOND_KEY_WAIT, Typed};
use crate::folder::{self, NewTerminal, TerminalError};
use crate::model::{Model, TerminalSize};
use crate::modes::ModeTracker;
use crate::outer::{self, RawTerminal};
use crate::wire::{AttachmentRole, AttachmentStatus, FromHost, Hello, INPUT_MAX, MessageDecoder, TerminalExit, ToHost};
use plexus_protocol::TerminalId;

/// Maximum number of typed bytes that wait for the program; above it the terminal is not read.
const TYPED_QUEUE: usize = 64 << 10;

/// Number of bytes read from the holder at once.
const READ: usize = 64 << 10;

/// The end of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachEnd {
    /// The program ended.
    Exited(TerminalExit),
    /// The keys to detach were typed.
    Detached,
    /// A signal ended this process, or its window was closed.
    Signal(i32),
    /// The holder has ended or refused; with the reason.
    Lost(String),
}

/// The reason why the attachment failed.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The terminal cannot be used.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// The user's own terminal cannot be used.
    #[error("this window's terminal: {0}")]
    Own(#[from] io::Error),
}

/// Starts a program and attaches this window to it. Returns the identifier of the terminal and the end of the attachment.
///
/// # Errors
/// Returns an [`AttachError`]; then the window's terminal is restored.
pub fn start(
    dir: &Path,
    exe: &Path,
    command: &[std::ffi::OsString],
    keys: DetachKeys,
) -> Result<(TerminalId, AttachEnd), AttachError> {
    let raw = RawTerminal::enter()?;
    let size = outer::size().unwrap_or(TerminalSize::DEFAULT);
    let mut typed = Vec::new();
    let cursor = match outer::cursor(&mut typed)? {
        // The window is larger than the limits.
        Some((row, column)) if row <= size.rows && column <= size.cols => (row, column),
        _ => {
            // If a terminal does not report its cursor, its content is scrolled up.
            write(&scroll_off(size))?;
            (1, 1)
        }
    };
    let id = folder::start(dir, &NewTerminal { exe, command, size, cursor: Some(cursor) })?;
    let end = session(
        dir,
        &id,
        &raw,
        Hello { first: true, ..Hello::new(AttachmentRole::Terminal, Some(size)) },
        keys,
        typed,
    )?;
    Ok((id, end))
}

/// Attaches this window to a terminal: as its owner, or only to `watch`.
///
/// # Errors
/// Returns an [`AttachError`]; then the window's terminal is restored.
pub fn attach(dir: &Path, id: &TerminalId, watch: bool, keys: DetachKeys) -> Result<AttachEnd, AttachError> {
    // The existence of the terminal is checked before the screen changes.
    folder::info(dir, id)?;
    let raw = RawTerminal::enter()?;
    let size = outer::size().unwrap_or(TerminalSize::DEFAULT);
    write(&scroll_off(size))?;
    let role = if watch { AttachmentRole::Watch } else { AttachmentRole::Terminal };
    session(dir, id, &raw, Hello::new(role, Some(size)), keys, Vec::new())
}

/// Returns output that scrolls the content of the screen up, so that it is retained.
fn scroll_off(size: TerminalSize) -> Vec<u8> {
    format!("\x1b[{};1H{}\x1b[H", size.rows, "\n".repeat(usize::from(size.rows))).into_bytes()
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The state that the two threads of an attachment share.
struct Shared<'a> {
    stream: UnixStream,
    raw: &'a RawTerminal,
    /// The end, if this side caused it.
    end: OnceLock<AttachEnd>,
    /// `true` if the screen is drawn from the output for viewers.
    cropped: AtomicBool,
    /// `true` if the other thread has to end.
    done: AtomicBool,
    /// Wakes the thread that reads typed input.
    wake: UnixStream,
    signals: Signals,
}

/// The signals of this process.
struct Signals {
    /// A pipe that is readable when a signal came.
    pipe: UnixStream,
    window: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    ends: Vec<(i32, Arc<AtomicBool>)>,
}

impl Signals {
    fn register() -> io::Result<(Self, UnixStream)> {
        let (pipe, notify) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let flag = |signal: i32, ends: bool| -> io::Result<Arc<AtomicBool>> {
            let flag = Arc::new(AtomicBool::new(false));
            if ends {
                // This is registered before the flag is set: the second signal ends the process even if its terminal blocks.
                signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
            }
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, notify.try_clone()?)?;
            Ok(flag)
        };
        let mut ends = Vec::new();
        for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
            ends.push((signal, flag(signal, true)?));
        }
        Ok((Self { pipe, window: flag(SIGWINCH, false)?, resumed: flag(SIGCONT, false)?, ends }, notify))
    }
}

/// Wakes the other thread when it is dropped.
struct EndTyping<'a>(&'a Shared<'a>);

impl Drop for EndTyping<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::SeqCst);
        let _ = (&self.0.wake).write_all(&[0]);
    }
}

/// Ends the connection when it is dropped.
struct EndShowing<'a>(&'a Shared<'a>);

impl Drop for EndShowing<'_> {
    fn drop(&mut self) {
        let _ = self.0.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn session(
    dir: &Path,
    id: &TerminalId,
    raw: &RawTerminal,
    hello: Hello,
    keys: DetachKeys,
    typed: Vec<u8>,
) -> Result<AttachEnd, AttachError> {
    let path = folder::socket(dir, id);
    let stream = folder::connect(&path, id.as_str())?;
    let (_, decoder) = folder::greet(&stream, &path, hello.clone())?;
    let (signals, wake) = Signals::register()?;
    let shared = Shared {
        stream,
        raw,
        end: OnceLock::new(),
        cropped: AtomicBool::new(false),
        done: AtomicBool::new(false),
        wake,
        signals,
    };
    let types = hello.role == AttachmentRole::Terminal;
    let screen = Mutex::new(AttachedScreen { tracker: ModeTracker::default(), crop: None, left: false });
    let end = std::thread::scope(|scope| {
        let typing = EndTyping(&shared);
        scope.spawn(|| {
            let _showing = EndShowing(&shared);
            let end = type_to(&shared, types, keys, typed);
            if let Some(end) = end {
                let _ = shared.end.set(end);
            }
        });
        let end = show(&shared, &mut screen.lock(), decoder, types);
        drop(typing);
        end
    });
    let end = shared.end.get().cloned().unwrap_or(end);
    screen.into_inner().leave(&end);
    Ok(end)
}

/// The content of this window.
struct AttachedScreen {
    /// The modes that forwarded output set on the terminal.
    tracker: ModeTracker,
    /// The screen, if it is drawn.
    crop: Option<(Model, Crop)>,
    /// `true` once the terminal was restored.
    left: bool,
}

impl Drop for AttachedScreen {
    /// Restores the terminal after a panic.
    fn drop(&mut self) {
        if !self.left {
            let _ = write(self.undo().as_bytes());
        }
    }
}

impl AttachedScreen {
    /// Returns the output that restores the terminal as it was before anything was shown.
    fn undo(&self) -> String {
        if self.crop.is_some() {
            return "\x1b[?1l\x1b>\x1b[?2004l\x1b[?25h\x1b[0m".into();
        }
        let broken_off = if self.tracker.in_sequence() { "\x18" } else { "" };
        format!("{broken_off}{}", self.tracker.modes.undo())
    }

    /// Restores the terminal, with a line about the end.
    fn leave(mut self, end: &AttachEnd) {
        let undo = self.undo();
        let rows = outer::size().unwrap_or(TerminalSize::DEFAULT).rows;
        let last = match end {
            AttachEnd::Exited(_) if self.crop.is_none() => undo,
            _ if self.crop.is_none() && self.tracker.modes.is_alternate() => format!("{undo}\r\n"),
            _ => format!("{undo}\x1b[{rows};1H\r\n"),
        };
        // A closed window accepts no output.
        let _ = write(last.as_bytes());
        self.left = true;
    }

    fn set_status(&mut self, status: AttachmentStatus, types: bool) -> io::Result<()> {
        if status.raw == self.crop.is_none() && status.raw {
            return Ok(());
        }
        write(self.undo().as_bytes())?;
        let window = outer::size().unwrap_or(TerminalSize::DEFAULT);
        self.tracker = ModeTracker::default();
        self.crop = (!status.raw).then(|| (Model::new(status.size, 0), Crop::new(window, types)));
        Ok(())
    }

    fn snapshot(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.crop {
            Some((model, _)) => {
                *model = Model::new(model.size(), 0);
                model.feed(bytes);
                Ok(())
            }
            None => {
                let empty = format!("{}\x1b[0m\x1b[H\x1b[J", self.undo());
                self.tracker = ModeTracker::default();
                write(empty.as_bytes())?;
                self.output(bytes)
            }
        }
    }

    fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.crop {
            Some((model, _)) => {
                model.feed(bytes);
                Ok(())
            }
            None => {
                // Forwarded output may have changed modes even if only a part of it was written.
                let written = write(bytes);
                self.tracker.push(bytes);
                written
            }
        }
    }

    /// Draws changes, if the screen is drawn.
    fn draw(&mut self) -> io::Result<()> {
        match &mut self.crop {
            Some((model, crop)) => write(crop.draw(model.screen()).as_bytes()),
            None => Ok(()),
        }
    }
}

/// Shows the messages of the holder until they end.
fn show(shared: &Shared<'_>, screen: &mut AttachedScreen, mut decoder: MessageDecoder, types: bool) -> AttachEnd {
    let lost = |why: &dyn std::fmt::Display| AttachEnd::Lost(why.to_string());
    let mut buffer = vec![0; READ];
    loop {
        loop {
            let message = match decoder.message().and_then(|message| message.map(FromHost::read).transpose()) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(why) => return lost(&why),
            };
            let done = match message {
                FromHost::Status(status) => {
                    shared.cropped.store(!status.raw, Ordering::SeqCst);
                    screen.set_status(status, types)
                }
                FromHost::Snapshot(bytes) => screen.snapshot(&bytes),
                FromHost::Output(bytes) => screen.output(&bytes),
                FromHost::Exited(exit) => {
                    let _ = screen.draw();
                    return AttachEnd::Exited(exit);
                }
                FromHost::Bye(why) => return AttachEnd::Lost(why),
                FromHost::Welcome(_) | FromHost::TypeIf(_) => Ok(()),
            };
            if done.is_err() {
                // The window was closed.
                return AttachEnd::Signal(SIGHUP);
            }
        }
        if screen.draw().is_err() {
            return AttachEnd::Signal(SIGHUP);
        }
        match (&shared.stream).read(&mut buffer) {
            Ok(0) => return AttachEnd::Lost("the holder of the terminal has ended".into()),
            Ok(read) => decoder.buffer().extend_from_slice(&buffer[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return lost(&why),
        }
    }
}

/// Sends typed input and changes of the window, until this side ends it. Waits only for its descriptors.
fn type_to(shared: &Shared<'_>, types: bool, keys: DetachKeys, typed: Vec<u8>) -> Option<AttachEnd> {
    let mut finder = DetachFinder::new(keys);
    let mut queue: Vec<u8> = Vec::new();
    let mut second_key_until: Option<Instant> = None;
    let mut buffer = vec![0; 16 << 10];
    if types {
        enqueue(&mut queue, &typed);
    }
    loop {
        if shared.done.load(Ordering::SeqCst) {
            return None;
        }
        if let Some(end) = signalled(shared, &mut queue) {
            return Some(end);
        }
        if second_key_until.is_some_and(|until| Instant::now() >= until) {
            second_key_until = None;
            let rest = finder.give_up();
            if types {
                enqueue(&mut queue, &rest);
            }
        }
        let ready = match wait(shared, &queue, second_key_until) {
            Ok(ready) => ready,
            Err(_) => return Some(AttachEnd::Signal(SIGHUP)),
        };
        if ready.pipe {
            outer::drain(&shared.signals.pipe);
        }
        if ready.writable && send(shared, &mut queue).is_err() {
            // The last message of the holder has the reason.
            return None;
        }
        if !ready.typed {
            continue;
        }
        let read = match outer::read(&mut buffer) {
            Ok(0) => return Some(AttachEnd::Signal(SIGHUP)),
            Ok(read) => &buffer[..read],
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Some(AttachEnd::Signal(SIGHUP)),
        };
        // For viewers these keys have no other use.
        if !types && matches!(read, b"q" | b"\x03") {
            return Some(AttachEnd::Detached);
        }
        match finder.push(read) {
            Typed::Detach => return Some(AttachEnd::Detached),
            Typed::Wait => {}
            Typed::Pass(bytes) if types => enqueue(&mut queue, &bytes),
            Typed::Pass(_) => {}
        }
        second_key_until = finder.waits().then(|| Instant::now() + SECOND_KEY_WAIT);
    }
}

fn enqueue(queue: &mut Vec<u8>, typed: &[u8]) {
    for piece in typed.chunks(INPUT_MAX) {
        queue.extend_from_slice(&ToHost::Input(bytes::Bytes::copy_from_slice(piece)).to_bytes());
    }
}

/// Handles the received signals.
fn signalled(shared: &Shared<'_>, queue: &mut Vec<u8>) -> Option<AttachEnd> {
    let Signals { window, resumed, ends, .. } = &shared.signals;
    if let Some((signal, _)) = ends.iter().find(|(_, came)| came.load(Ordering::SeqCst)) {
        return Some(AttachEnd::Signal(*signal));
    }
    let resumed = resumed.swap(false, Ordering::SeqCst);
    if resumed {
        let _ = shared.raw.again();
    }
    if window.swap(false, Ordering::SeqCst) | resumed {
        if let Some(size) = outer::size() {
            queue.extend_from_slice(&ToHost::Resize(size).to_bytes());
        }
        if resumed || shared.cropped.load(Ordering::SeqCst) {
            queue.extend_from_slice(&ToHost::Refresh.to_bytes());
        }
    }
    None
}

/// The operations that do not block now.
struct Ready {
    pipe: bool,
    typed: bool,
    writable: bool,
}

fn wait(shared: &Shared<'_>, queue: &[u8], until: Option<Instant>) -> io::Result<Ready> {
    let stdin = io::stdin();
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let reads = if queue.len() < TYPED_QUEUE { PollFlags::IN } else { PollFlags::empty() };
    let writes = if queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
    let mut fds = [
        PollFd::new(&shared.signals.pipe, PollFlags::IN),
        PollFd::new(&stdin, reads),
        PollFd::new(&shared.stream, writes),
    ];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Ready { pipe: true, typed: false, writable: false }),
        Err(why) => return Err(why.into()),
    }
    let [pipe, typed, writable] = &fds;
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    Ok(Ready {
        pipe: is_ready(pipe),
        typed: is_ready(typed) && (!reads.is_empty() || typed.revents().contains(PollFlags::HUP)),
        writable: is_ready(writable) && !queue.is_empty(),
    })
}

/// Sends as much as the holder accepts now.
fn send(shared: &Shared<'_>, queue: &mut Vec<u8>) -> io::Result<()> {
    match rustix::net::send(&shared.stream, queue, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(sent) => {
            queue.drain(..sent);
            Ok(())
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Ends a terminal's program, as a closed window does, and waits until it has ended; a program that does not end by itself is killed.
///
/// # Errors
/// Returns a [`TerminalError`].
pub fn kill(dir: &Path, id: &TerminalId) -> Result<Option<TerminalExit>, TerminalError> {
    let path = folder::socket(dir, id);
    let unusable = |why: &dyn std::fmt::Display| TerminalError::Unusable { path: path.clone(), why: why.to_string() };
    let stream = folder::connect(&path, id.as_str())?;
    let (_, mut decoder) = folder::greet(&stream, &path, Hello::new(AttachmentRole::Kill, None))?;
    let wait = crate::host::KILL_GRACE * 4;
    stream.set_read_timeout(Some(wait)).map_err(|why| unusable(&why))?;
    let mut buffer = vec![0; READ];
    loop {
        while let Some(message) = decoder.message().map_err(|why| unusable(&why))? {
            match FromHost::read(message).map_err(|why| unusable(&why))? {
                FromHost::Exited(exit) => return Ok(Some(exit)),
                FromHost::Bye(why) => return Err(unusable(&why)),
                _ => {}
            }
        }
        match (&stream).read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => decoder.buffer().extend_from_slice(&buffer[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                return Err(unusable(&format!("its program has not ended within {} s", wait.as_secs())));
            }
            Err(why) => return Err(unusable(&why)),
        }
    }
}
