//! The folder with the sockets of shared terminals: listening in it, finding them, and starting one. Blocks; only small files are read.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::Mode;

use crate::model::TerminalSize;
use crate::wire::{AttachmentRole, FromHost, Hello, MessageDecoder, TerminalInfo, ToHost, VERSION};
use plexus_protocol::TerminalId;
use plexus_protocol::text::printable;

/// The folder in the state folder.
pub const TERMINALS: &str = "terminals";

/// Maximum number of terminals that are listed; further ones are left out.
pub const LISTED_MAX: usize = 256;

/// Time that a holder may take to describe its terminal; a slower one is left out of lists.
const INFO_WAIT: Duration = Duration::from_secs(2);

/// Maximum length of the path of a socket, in bytes: the smallest `sun_path` of the supported systems.
const PATH_MAX: usize = 103;

/// Maximum number of bytes read of the error output of a failed holder.
const STDERR_MAX: u64 = 16 << 10;

/// Age from which a socket under a temporary name counts as left by a crash, and is removed.
const TEMPORARY_AGE: Duration = Duration::from_secs(60);

/// The reason why a terminal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// No terminal has this identifier.
    #[error("there is no terminal {0}: `plexus term` lists the existing ones")]
    NotFound(String),
    /// The terminal is not safe to connect to, or does not answer.
    #[error("{path}: {why}", path = .path.display())]
    Unusable {
        /// The socket.
        path: PathBuf,
        /// The problem and the fix.
        why: String,
    },
    /// The terminal could not be started.
    #[error("{message}")]
    NotStarted {
        /// The shells' code for the failure: 127 if there is no such program, 126 if it cannot be started.
        code: u8,
        /// The problem.
        message: String,
    },
}

impl TerminalError {
    fn unusable(path: &Path, why: impl ToString) -> Self {
        Self::Unusable { path: path.to_owned(), why: why.to_string() }
    }
}

/// Returns the socket of a terminal.
pub fn socket(dir: &Path, id: &TerminalId) -> PathBuf {
    dir.join(format!("{id}.sock"))
}

/// Makes a new identifier.
///
/// # Errors
/// Returns the error of the system if it provides no random numbers.
pub fn new_id() -> io::Result<TerminalId> {
    let mut random = [0; 5];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(TerminalId::trusted(format!("t_{}", data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase())))
}

/// Listens at `path`, in a folder that only this user can enter, by a socket that only this user can use.
///
/// # Errors
/// Returns an error if the folder cannot be made, is open to others, or the path is too long.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let Some(dir) = path.parent() else { return Err(io::Error::other("it has no folder")) };
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = std::fs::metadata(dir)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return Err(io::Error::other("its folder must be accessible to its owner only: use chown and chmod 700"));
    }
    let length = path.as_os_str().len();
    if length > PATH_MAX {
        let fix = "set PLEXUS_HOME to a shorter path";
        return Err(io::Error::other(format!("the path is {length} bytes long, and {PATH_MAX} are possible: {fix}")));
    }
    // The socket gets a temporary name first: one that does not listen yet would look dead.
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

/// Connects to the holder at `path`, which has to be a process of this user.
///
/// # Errors
/// Returns a [`TerminalError`].
pub(crate) fn connect(path: &Path, id: &str) -> Result<UnixStream, TerminalError> {
    let stream = UnixStream::connect(path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => TerminalError::NotFound(id.to_owned()),
        _ => TerminalError::unusable(path, why),
    })?;
    match peer_uid(&stream) {
        Ok(uid) if uid == rustix::process::geteuid().as_raw() => Ok(stream),
        Ok(_) => Err(TerminalError::unusable(path, "it belongs to another user; remove it")),
        Err(why) => Err(TerminalError::unusable(path, why)),
    }
}

/// Returns the user of the process at the other end.
#[cfg(target_os = "linux")]
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Returns this user for the process at the other end: it could enter a folder that is closed to all other users.
#[cfg(not(target_os = "linux"))]
fn peer_uid(_: &UnixStream) -> io::Result<u32> {
    Ok(rustix::process::geteuid().as_raw())
}

/// Sends a hello and reads the answer.
pub(crate) fn greet(
    stream: &UnixStream,
    path: &Path,
    hello: Hello,
) -> Result<(TerminalInfo, MessageDecoder), TerminalError> {
    let unusable = |why: &dyn std::fmt::Display| TerminalError::unusable(path, why);
    let not_found = || TerminalError::NotFound(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    stream.set_read_timeout(Some(INFO_WAIT)).map_err(|why| unusable(&why))?;
    (&*stream).write_all(&ToHost::Hello(hello).to_bytes()).map_err(|_| not_found())?;
    let mut decoder = MessageDecoder::from_host();
    let mut buffer = vec![0; 16 << 10];
    loop {
        if let Some(message) = decoder.message().map_err(|why| unusable(&why))? {
            return match FromHost::read(message).map_err(|why| unusable(&why))? {
                FromHost::Welcome(welcome) if welcome.version == VERSION => {
                    stream.set_read_timeout(None).map_err(|why| unusable(&why))?;
                    Ok((welcome.terminal, decoder))
                }
                FromHost::Welcome(_) => Err(unusable(&"it speaks another version: use the plexus that started it")),
                FromHost::Bye(why) => Err(unusable(&why)),
                _ => Err(unusable(&"it does not start with the expected message")),
            };
        }
        match (&*stream).read(&mut buffer) {
            // The holder ends at this moment.
            Ok(0) => return Err(not_found()),
            Err(why) if why.kind() == io::ErrorKind::ConnectionReset => return Err(not_found()),
            Ok(read) => decoder.buffer().extend_from_slice(&buffer[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Err(unusable(&"it does not answer")),
            Err(why) => return Err(unusable(&why)),
        }
    }
}

/// Lists the terminals in the folder, the oldest first. Removes sockets without a listener. A missing folder counts as empty.
pub fn list(dir: &Path) -> Vec<TerminalInfo> {
    let ids = identifiers(dir);
    // Each has a thread of its own: one that does not answer delays the list once.
    let mut all: Vec<TerminalInfo> = std::thread::scope(|scope| {
        let threads: Vec<_> = ids.iter().map(|id| scope.spawn(|| info(dir, id).ok())).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    });
    all.sort_by(|a, b| (a.started_at, &a.terminal_id).cmp(&(b.started_at, &b.terminal_id)));
    all
}

/// Returns the description of a terminal.
///
/// # Errors
/// Returns a [`TerminalError`].
pub fn info(dir: &Path, id: &TerminalId) -> Result<TerminalInfo, TerminalError> {
    let path = socket(dir, id);
    let stream = connect(&path, id.as_str())?;
    greet(&stream, &path, Hello::new(AttachmentRole::Info, None)).map(|(info, _)| info)
}

/// Returns the identifiers of the terminals whose sockets are in the folder.
fn identifiers(dir: &Path) -> Vec<TerminalId> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut ids: Vec<TerminalId> = entries.filter_map(|entry| identifier(&entry.ok()?.path())).collect();
    ids.sort();
    ids.truncate(LISTED_MAX);
    ids
}

fn identifier(path: &Path) -> Option<TerminalId> {
    match path.extension()?.to_str()? {
        "sock" => {}
        "new" => {
            let age = std::fs::symlink_metadata(path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
            if age > TEMPORARY_AGE {
                let _ = std::fs::remove_file(path);
            }
            return None;
        }
        _ => return None,
    }
    if let Err(why) = probe(path) {
        // Only a socket without a listener gives this error.
        if why.kind() == io::ErrorKind::ConnectionRefused {
            let _ = std::fs::remove_file(path);
        }
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}

/// Connects without a message.
fn probe(path: &Path) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&socket2::SockAddr::unix(path)?) {
        // The backlog is full, so there is a listener.
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}

/// A terminal to start.
#[derive(Debug)]
pub struct NewTerminal<'a> {
    /// The program of the holder, which is this one.
    pub exe: &'a Path,
    /// The program to run, and its arguments.
    pub command: &'a [OsString],
    /// The size.
    pub size: TerminalSize,
    /// The position of the cursor of the terminal that starts the program (line and column, from 1), if that terminal waits to attach.
    pub cursor: Option<(u16, u16)>,
}

/// Starts a program in a terminal of its own, in the current folder and with this process's environment. The holder is
/// not a child that has to be waited for.
///
/// # Errors
/// Returns [`TerminalError::NotStarted`].
pub fn start(dir: &Path, new: &NewTerminal<'_>) -> Result<TerminalId, TerminalError> {
    let failed = |code, message: String| TerminalError::NotStarted { code, message };
    let id = new_id().map_err(|why| failed(126, format!("the system provides no random numbers: {why}")))?;
    let TerminalSize { rows, cols } = new.size;
    let mut command = Command::new(new.exe);
    command.args(["term-hold", "--id", id.as_str(), "--size", &format!("{rows}x{cols}"), "--socket"]);
    command.arg(socket(dir, &id));
    if let Some((row, column)) = new.cursor {
        command.args(["--cursor", &format!("{row}x{column}")]);
    }
    command.arg("--").args(new.command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| failed(126, format!("{}: {why}", new.exe.display())))?;
    let mut line = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // The holder closes stdout once the program runs, or the holder ends.
        let _ = stdout.take(STDERR_MAX).read_to_end(&mut line);
    }
    if line == b"ready\n" {
        return Ok(id);
    }
    let mut text = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(STDERR_MAX).read_to_end(&mut text);
    }
    let code = child.wait().ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    let text = printable(&text);
    let text = text.trim().trim_start_matches("plexus term-hold: ");
    let message = if text.is_empty() { "the holder of the terminal ended before it was ready" } else { text };
    Err(failed(code.filter(|code| *code != 0).unwrap_or(126), message.to_owned()))
}
