//! The floor: a process that does what the gateway must do and nothing else. It reads an agent's lines and writes
//! finished frames to sockets: no tag, no log, no store, no late joiner, no slow client. For approvals it also does what the gateway
//! promises there: a second process owns the agent's pipes, and an answer is on the disk before the agent has it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::event::{PollFd, PollFlags, poll};

use super::agent::Control;
use super::clients::Wire;
use super::process::Kill;

/// Bytes of one read: the capacity of a pipe.
const READ: usize = 64 << 10;
/// Bytes of prepared frames.
const READY: usize = 256 << 10;
/// The line that answers a permission request, whatever its id: the agent has one open at a time.
const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow\"}}}\n";

/// A frame of this length on the wire, head included.
pub(crate) fn frame(wire: Wire, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    match wire {
        Wire::WebSocket => {
            let head = if length - 2 < 126 {
                2
            } else if length - 4 < 1 << 16 {
                4
            } else {
                10
            };
            let payload = (length - head) as u64;
            frame.push(0x81);
            match head {
                2 => frame.push(u8::try_from(payload).unwrap_or_default()),
                4 => {
                    frame.push(126);
                    frame.extend_from_slice(&u16::try_from(payload).unwrap_or_default().to_be_bytes());
                }
                _ => {
                    frame.push(127);
                    frame.extend_from_slice(&payload.to_be_bytes());
                }
            }
        }
        Wire::Sse => {
            // A chunk's length counts neither its own digits nor the two line ends.
            let digits = (1..=8).find(|digits| format!("{:x}", length - digits - 4).len() <= *digits).unwrap_or(8);
            frame.extend_from_slice(format!("{:0digits$x}\r\n", length - digits - 4).as_bytes());
        }
    }
    let tail: &[u8] = if wire == Wire::Sse { b"\r\n" } else { b"" };
    frame.resize(length - tail.len(), b'x');
    frame.extend_from_slice(tail);
    frame
}

// ------------------------------------------------------------------------------------ in the bench

/// A floor process with its agent.
pub(crate) struct Floor {
    pub(crate) control: Control,
    pub(crate) process: Kill,
    pub(crate) addr: SocketAddr,
    told: BufReader<std::process::ChildStderr>,
    _agent: Kill,
    _relay: Option<Kill>,
    _dir: tempfile::TempDir,
}

impl Floor {
    /// Starts one that will write frames of `length` bytes to `sockets` clients; or, with a folder, one that answers permission
    /// requests: another process stands between it and the agent, and each answer is on the disk of that folder before the
    /// agent hears of it, as the gateway's holder and log have it.
    pub(crate) fn start(wire: Wire, sockets: usize, length: usize, approvals_in: Option<&Path>) -> Result<Self> {
        let dir = super::process::scratch()?;
        let exe = std::env::current_exe()?;
        let mut control = Control::listen(dir.path())?;
        let (agent_in, to_agent) = std::io::pipe()?;
        let (from_agent, agent_out) = std::io::pipe()?;
        let agent = Command::new(&exe)
            .args(["role-agent-prompted".as_ref(), control.path.as_os_str()])
            .stdin(agent_in)
            .stdout(agent_out)
            .spawn()?;
        let agent = Kill(agent);
        let mut floor = Command::new(&exe);
        floor.stderr(Stdio::piped());
        let mut relay = None;
        if let Some(place) = approvals_in {
            let (near, far) = UnixStream::pair()?;
            let mut role = Command::new(&exe);
            role.arg("role-floor-relay").stdin(from_agent).stdout(to_agent).stderr(OwnedFd::from(far));
            relay = Some(Kill(role.spawn()?));
            floor.args(["role-floor-approvals", wire.name(), &length.to_string()]).arg(place.join("floor"));
            floor.stdin(OwnedFd::from(near.try_clone()?)).stdout(OwnedFd::from(near));
        } else {
            floor.args(["role-floor", wire.name(), &sockets.to_string(), &length.to_string()]);
            floor.stdin(from_agent).stdout(to_agent);
        }
        let mut floor = floor.spawn()?;
        let mut told = BufReader::new(floor.stderr.take().context("its stderr is a pipe")?);
        let process = Kill(floor);
        let mut port = String::new();
        told.read_line(&mut port)?;
        let port: u16 = port.trim().parse().with_context(|| format!("the floor said {port:?}"))?;
        control.accept()?;
        control.hear("prompted")?;
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Self { control, process, addr, told, _agent: agent, _relay: relay, _dir: dir })
    }

    /// Waits until it has accepted all its clients.
    pub(crate) fn ready(&mut self) -> Result<()> {
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the floor said {line:?}");
        Ok(())
    }
}

// ------------------------------------------------------------------------------------ the process

fn clients(sockets: usize) -> Result<Vec<TcpStream>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut told = std::io::stderr();
    told.write_all(format!("{}\n", listener.local_addr()?.port()).as_bytes())?;
    let all: Vec<TcpStream> = (0..sockets).map(|_| Ok(listener.accept()?.0)).collect::<Result<_>>()?;
    for socket in &all {
        socket.set_nodelay(true)?;
    }
    told.write_all(b"ready\n")?;
    Ok(all)
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Fan-out: one write per socket for all lines of one read.
pub(crate) fn run(wire: Wire, sockets: usize, length: usize) -> Result<()> {
    let mut sockets = clients(sockets)?;
    let frame = frame(wire, length);
    let most = (READY / frame.len()).max(1);
    let frames = frame.repeat(most);
    let mut agent = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    let mut buffer = vec![0; READ];
    loop {
        let read = agent.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let mut left = lines(&buffer[..read]);
        while left > 0 {
            let some = left.min(most);
            for socket in &mut sockets {
                socket.write_all(&frames[..some * frame.len()])?;
            }
            left -= some;
        }
    }
}

/// Approvals: the agent's line to the client, the client's answer to the disk and to the agent.
pub(crate) fn run_approvals(wire: Wire, length: usize, file: &Path) -> Result<()> {
    let mut client = clients(1)?.remove(0);
    let frame = frame(wire, length);
    let mut agent = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    let mut answers = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut log = File::create(file)?;
    let mut buffer = vec![0; READ];
    loop {
        let mut ready = [PollFd::new(&agent, PollFlags::IN), PollFd::new(&client, PollFlags::IN)];
        poll(&mut ready, None)?;
        let (line, answer) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if line {
            let read = agent.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            for _ in 0..lines(&buffer[..read]) {
                client.write_all(&frame)?;
            }
        }
        if answer {
            let read = client.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            log.write_all(&buffer[..read])?;
            log.sync_data()?;
            answers.write_all(ANSWER)?;
        }
    }
}

/// The process between an agent (stdin and stdout) and a floor (a socket as stderr): passes on what comes.
pub(crate) fn run_relay() -> Result<()> {
    let mut from_agent = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    let mut to_agent = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut floor = UnixStream::from(rustix::io::dup(rustix::stdio::stderr())?);
    let mut buffer = vec![0; READ];
    loop {
        let mut ready = [PollFd::new(&from_agent, PollFlags::IN), PollFd::new(&floor, PollFlags::IN)];
        poll(&mut ready, None)?;
        let (out, back) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if out {
            let read = from_agent.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            floor.write_all(&buffer[..read])?;
        }
        if back {
            let read = floor.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            to_agent.write_all(&buffer[..read])?;
        }
    }
}
