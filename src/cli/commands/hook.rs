//! `plexus hook AGENT`: the program that an agent's own terminal runs at its hooks. It passes the hook's input to the gateway's link
//! socket, and exits with the gateway's result; it makes no decision.
//!
//! The terminal must not be affected: the program starts no threads, prints nothing, and exits with 0 on any failure. (Exit code 2 would
//! block the tool that the hook is about.) So its arguments are not parsed by clap, and every wait has a short limit, except the wait for
//! people, which the agent does in parallel with its own dialog.
//!
//! Other agents read the settings of Claude Code, and run its hooks. They wait for hooks that Claude Code does not wait for, so `plexus
//! hook claude` acts only for Claude Code itself.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use plexus::runtimes::link::{LINK_SOCKET, MESSAGE_MAX};
use plexus_dialects::link::{HelperExit, HelperHello, HelperRole, LINK_VERSION};
use plexus_holder::process_identity::Process;
use plexus_protocol::TerminalId;
use plexus_terminal::host::VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde::Deserialize;

use crate::cli::home::Home;
use crate::cli::random::random_id;

/// Time for a gateway to read a message; a slower one does not get it.
const SEND_TIMEOUT: Duration = Duration::from_millis(100);
/// Pause before another attempt to reach a gateway.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Time between two checks whether the terminal of a waiting helper is alive.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Maximum length of the gateway's reply, in bytes.
const EXIT_MAX: u64 = 1 << 20;
/// Time for the agent to write the complete input of a hook; a slower input is not reported.
const INPUT_TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes of the input per read.
const INPUT_STEP: usize = 64 << 10;

/// Variables that Claude Code sets for the hooks of its terminal, besides `CLAUDE_PID`. If one has another value, a hook does nothing.
const CLAUDE_IN_TERMINAL: [(&str, &str); 2] = [("CLAUDECODE", "1"), ("CLAUDE_CODE_ENTRYPOINT", "cli")];
/// Maximum number of ancestors of a hook among which the process of Claude Code is searched; if it is further up, the hook does nothing.
const ANCESTORS_MAX: usize = 32;

/// Shells that may run a hook, and the maximum number of them that are skipped.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];
const SHELLS_MAX: usize = 4;

/// Options with which Gemini CLI does not run in a terminal.
const NOT_IN_A_TERMINAL: [&str; 4] = ["--acp", "--experimental-acp", "-p", "--prompt"];

/// Runs the hook with the arguments after `hook`.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let exit = parse(args).and_then(|options| options.run()).unwrap_or_default();
    let printed = std::io::stdout().write_all(exit.stdout.as_bytes());
    let printed = printed.and_then(|()| std::io::stderr().write_all(exit.stderr.as_bytes()));
    if printed.is_err() { ExitCode::SUCCESS } else { ExitCode::from(exit.code) }
}

struct Options {
    agent: String,
    inbox: bool,
    home: Option<PathBuf>,
}

/// Parses the arguments. Unknown ones are ignored: settings may have been written by a later version.
fn parse(args: &[OsString]) -> Option<Options> {
    let mut args = args.iter();
    let agent = args.next()?.to_str()?.to_owned();
    let (mut inbox, mut home) = (false, None);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--inbox") => inbox = true,
            Some("--home") => home = args.next().map(PathBuf::from),
            _ => {}
        }
    }
    Some(Options { agent, inbox, home })
}

impl Options {
    /// Runs the hook; `None` if it has no output and no effect.
    fn run(self) -> Option<HelperExit> {
        let claude = match self.agent.as_str() {
            "claude" => true,
            "gemini" => false,
            _ => return None,
        };
        let pid = if claude { claude_process() } else { calling_process() }?;
        if !claude && !in_terminal(pid.pid()) {
            return None;
        }
        let home = self.home.as_deref().map_or_else(Home::find, |dir| Ok(Home::at(dir))).ok()?;
        if !may_have_gateway(home.dir()) {
            return None;
        }
        let input = read_input(&std::io::stdin(), INPUT_TIME)?;
        let role = self.role(&input)?;
        let hello = HelperHello {
            link: LINK_VERSION,
            agent: self.agent,
            role,
            id: random_id().ok()?,
            pid: pid.pid(),
            terminal: std::env::var(VARIABLE).ok().filter(|id| id.parse::<TerminalId>().is_ok()),
        };
        let mut message = serde_json::to_vec(&hello).ok()?;
        message.push(b'\n');
        message.extend(input.into_iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
        message.push(b'\n');
        let socket = home.dir().join(LINK_SOCKET);
        if role == HelperRole::Event {
            send_message(&socket, &message)?;
            return None;
        }
        while pid.alive() {
            if let Some(exit) = send_message(&socket, &message).and_then(|stream| wait(&stream, pid)) {
                return Some(exit);
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
        None
    }

    fn role(&self, input: &[u8]) -> Option<HelperRole> {
        #[derive(Deserialize)]
        struct Event {
            hook_event_name: String,
        }
        let event: Event = serde_json::from_slice(input).ok()?;
        Some(match event.hook_event_name.as_str() {
            _ if self.inbox => HelperRole::Inbox,
            "PermissionRequest" if self.agent == "claude" => HelperRole::Question,
            _ => HelperRole::Event,
        })
    }
}

/// The process of the terminal of Claude Code that runs this hook; `None` if another program runs it. If a program runs Claude Code, that
/// program shows the session: possibly a gateway of Plexus. `CLAUDE_PID` has to name an ancestor, since an environment is inherited.
fn claude_process() -> Option<Process> {
    let is_set = |(name, value): &(&str, &str)| std::env::var(name).is_ok_and(|actual| actual == *value);
    let claude_pid: u32 = std::env::var("CLAUDE_PID").ok()?.parse().ok()?;
    if !CLAUDE_IN_TERMINAL.iter().all(is_set) || !is_ancestor(claude_pid) {
        return None;
    }
    Process::find(claude_pid)
}

/// Returns `true` if a process is an ancestor of this one.
fn is_ancestor(pid: u32) -> bool {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid().unsigned_abs());
    let above = std::iter::successors(parent, |pid| name_and_parent(*pid).map(|(_, parent)| parent));
    // Process 0 is the kernel's.
    above.take(ANCESTORS_MAX).take_while(|above| *above > 0).any(|above| above == pid)
}

/// Returns `true` if a gateway of this user may run in a home folder, now or later. In the folder of another user, no gateway ever
/// responds.
fn may_have_gateway(home: &Path) -> bool {
    match std::fs::metadata(home) {
        Ok(folder) => folder.uid() == rustix::process::geteuid().as_raw(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The complete input of a hook; `None` if it exceeds [`MESSAGE_MAX`] bytes or takes longer than `time`.
fn read_input(input: &impl AsFd, time: Duration) -> Option<Vec<u8>> {
    let until = Instant::now() + time;
    let (mut all, mut step) = (Vec::new(), vec![0; INPUT_STEP]);
    loop {
        let remaining = until.checked_duration_since(Instant::now())?;
        let remaining =
            Timespec { tv_sec: i64::try_from(remaining.as_secs()).ok()?, tv_nsec: remaining.subsec_nanos().into() };
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&remaining)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        match rustix::io::read(input, &mut step[..]) {
            Ok(0) => return Some(all),
            Ok(count) if all.len() + count > MESSAGE_MAX => return None,
            Ok(count) => all.extend_from_slice(&step[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
}

/// Returns `true` if a Gemini CLI is used in a terminal: not in another program, which would show its session itself, and not for a single
/// prompt.
fn in_terminal(pid: u32) -> bool {
    let (args, attached) = if cfg!(target_os = "linux") {
        let args = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let args = args.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap_or_default();
        (args, input.starts_with("/dev/pts") || input.starts_with("/dev/tty"))
    } else {
        let ps = std::process::Command::new("ps").args(["-o", "tty=,args=", "-p", &pid.to_string()]).output();
        let line = ps.map(|ps| String::from_utf8_lossy(&ps.stdout).trim().to_owned()).unwrap_or_default();
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let attached = args.first().is_some_and(|tty| !tty.starts_with('?'));
        (args, attached)
    };
    attached && !args.iter().any(|word| NOT_IN_A_TERMINAL.contains(&word.split('=').next().unwrap_or_default()))
}

/// The first ancestor of this process that is not a shell, since hooks are run by shells.
fn calling_process() -> Option<Process> {
    let mut pid = rustix::process::getppid()?.as_raw_pid().unsigned_abs();
    for _ in 0..SHELLS_MAX {
        let (name, parent) = name_and_parent(pid)?;
        if !SHELLS.contains(&name.as_str()) {
            break;
        }
        pid = parent;
    }
    Process::find(pid)
}

/// The name of a process, and the pid of its parent.
fn name_and_parent(pid: u32) -> Option<(String, u32)> {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        return Some((name.to_owned(), rest.split_ascii_whitespace().nth(1)?.parse().ok()?));
    }
    let ps = std::process::Command::new("ps").args(["-o", "ppid=,comm=", "-p", &pid.to_string()]).output().ok()?;
    let line = String::from_utf8(ps.stdout).ok()?;
    let (parent, name) = line.trim().split_once(' ')?;
    Some((name.trim().rsplit('/').next()?.to_owned(), parent.parse().ok()?))
}

/// Sends a message to the gateway, if one accepts it at once.
fn send_message(socket: &Path, message: &[u8]) -> Option<UnixStream> {
    // The connection does not block: a hanging gateway would delay the hook once its queue of connections is full.
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).ok()?;
    rustix::io::ioctl_fionbio(&fd, true).ok()?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(socket).ok()?).ok()?;
    let mut stream = UnixStream::from(fd);
    stream.set_nonblocking(false).ok()?;
    stream.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
    let started = Instant::now();
    for part in message.chunks(64 << 10) {
        stream.write_all(part).ok()?;
        if started.elapsed() > SEND_TIMEOUT * 10 {
            return None;
        }
    }
    Some(stream)
}

/// Waits for the exit; `None` if the gateway disconnects.
fn wait(stream: &UnixStream, terminal: Process) -> Option<HelperExit> {
    stream.set_read_timeout(Some(CHECK_EVERY)).ok()?;
    let (mut reader, mut line) = (BufReader::new(stream.take(EXIT_MAX)), Vec::new());
    loop {
        match reader.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => return serde_json::from_slice(&line).ok(),
            Ok(_) => return None,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                if !terminal.alive() {
                    return Some(HelperExit::default());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_of_a_hook_is_bounded_in_bytes_and_time() {
        let input = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            read_input(&file, Duration::from_secs(60))
        };
        assert_eq!(input(b"").as_deref(), Some(&b""[..]));
        let long = vec![b'x'; INPUT_STEP * 3 + 1];
        assert_eq!(input(&long), Some(long));
        assert_eq!(input(&vec![b'x'; MESSAGE_MAX + 1]), None);
        // A writer that writes a part and then nothing.
        let (reader, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(b"{").unwrap();
        let start = Instant::now();
        assert_eq!(read_input(&reader, Duration::from_millis(50)), None);
        assert!(start.elapsed() < Duration::from_secs(30));
        drop(writer);
        assert_eq!(read_input(&reader, Duration::from_secs(60)).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn hook_looks_for_no_gateway_in_the_folder_of_another_user() {
        let dir = tempfile::tempdir().unwrap();
        assert!(may_have_gateway(dir.path()) && may_have_gateway(&dir.path().join("later")));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(dir.path(), Some(65_534), None).unwrap();
            assert!(!may_have_gateway(dir.path()));
        } else {
            assert!(!may_have_gateway(Path::new("/")));
        }
    }

    #[test]
    fn ancestors_of_a_process_are_found() {
        assert!(is_ancestor(rustix::process::getppid().unwrap().as_raw_pid().unsigned_abs()));
        assert!(!is_ancestor(std::process::id()) && !is_ancestor(0) && !is_ancestor(u32::MAX));
    }
}
