//! The load: many clients in one thread, which read, count and check with as little work as possible, because they share the
//! machine with the measured process.
//!
//! Raw sockets: this is the load generator, for the gateway and for the floor.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::epoll;

use super::agent::now;

/// Timeout for all clients to get the expected frames.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of one read from a socket.
const READ: usize = 256 << 10;
/// Maximum number of sockets of one poll result.
const EVENTS: usize = 256;

/// The framing of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// RFC 6455, from a server: unmasked.
    WebSocket,
    /// HTTP chunks with one event each.
    Sse,
}

impl Wire {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::Sse => "sse",
        }
    }

    /// Length of the head and of the whole frame that begins here; `None` if the head is incomplete.
    fn frame(self, bytes: &[u8]) -> Result<Option<(usize, usize)>> {
        match self {
            Self::WebSocket => {
                let Some(&short) = bytes.get(1) else { return Ok(None) };
                let (head, payload) = match short {
                    126 => match bytes.get(2..4) {
                        Some(long) => (4, usize::from(u16::from_be_bytes(long.try_into()?))),
                        None => return Ok(None),
                    },
                    127 => match bytes.get(2..10) {
                        Some(long) => (10, usize::try_from(u64::from_be_bytes(long.try_into()?))?),
                        None => return Ok(None),
                    },
                    short => (2, usize::from(short)),
                };
                Ok(Some((head, head + payload)))
            }
            Self::Sse => {
                let near = &bytes[..bytes.len().min(18)];
                let Some(end) = near.iter().position(|byte| *byte == b'\n') else {
                    ensure!(near.len() < 18, "not an HTTP chunk: {:?}", String::from_utf8_lossy(near));
                    return Ok(None);
                };
                let digits = std::str::from_utf8(&near[..end])?.trim_end();
                let payload = usize::from_str_radix(digits, 16).context("not an HTTP chunk")?;
                Ok(Some((end + 1, end + 1 + payload + 2)))
            }
        }
    }
}

/// The frames that a client counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// All frames, for a floor.
    Frames,
    /// Envelopes of message chunks, whose `seq` must increase by one.
    Chunks,
    /// Envelopes of this kind.
    Kind(&'static str),
}

const SEQ: &[u8] = b"\"seq\":";
const KIND: &[u8] = b"\"kind\":\"";
const CHUNK: &str = "agent_message_chunk";

/// The index of `needle` in `bytes`; the guess is tried first.
fn find(bytes: &[u8], needle: &[u8], guess: usize) -> Option<usize> {
    if bytes.get(guess..).is_some_and(|rest| rest.starts_with(needle)) {
        return Some(guess);
    }
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// One connection.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    wire: Wire,
    /// The incomplete last frame.
    carry: Vec<u8>,
    /// Frames counted in this round.
    count: u64,
    /// Bytes of those frames, with their heads.
    bytes: u64,
    last_seq: Option<u64>,
    seq_at: usize,
    kind_at: usize,
}

impl Client {
    pub(crate) fn new(socket: TcpStream, wire: Wire, carry: Vec<u8>) -> Self {
        Self { socket, wire, carry, count: 0, bytes: 0, last_seq: None, seq_at: 0, kind_at: 0 }
    }

    /// A floor's client.
    fn plain(addr: SocketAddr, wire: Wire) -> Result<Self> {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        Ok(Self::new(socket, wire, Vec::new()))
    }

    /// Reads once and checks all complete frames. Returns the number of counted ones.
    fn read(&mut self, buffer: &mut [u8], look: Look) -> Result<u64> {
        let read = match self.socket.read(buffer) {
            Ok(0) => bail!("the server hung up"),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let before = self.count;
        let mut rest = &buffer[..read];
        while !self.carry.is_empty() && !rest.is_empty() {
            // Only the rest of the incomplete frame is copied.
            let wanted = match self.wire.frame(&self.carry)? {
                Some((_, length)) => length.saturating_sub(self.carry.len()).min(rest.len()),
                None => 1,
            };
            self.carry.extend_from_slice(&rest[..wanted]);
            rest = &rest[wanted..];
            if let Some((head, length)) = self.wire.frame(&self.carry)?
                && length == self.carry.len()
            {
                let carry = std::mem::take(&mut self.carry);
                self.look(&carry, head, look)?;
                self.carry = carry;
                self.carry.clear();
            }
        }
        while let Some((head, length)) = self.wire.frame(rest)? {
            let Some(frame) = rest.get(..length) else { break };
            self.look(frame, head, look)?;
            rest = &rest[length..];
        }
        self.carry.extend_from_slice(rest);
        Ok(self.count - before)
    }

    fn look(&mut self, frame: &[u8], head: usize, look: Look) -> Result<()> {
        if look == Look::Frames {
            self.count += 1;
            return Ok(());
        }
        let payload = &frame[head..];
        if self.wire == Wire::WebSocket {
            match frame[0] & 0x0f {
                8 => bail!("the gateway closed: {:?}", String::from_utf8_lossy(payload)),
                9 => return self.pong(payload),
                _ => {}
            }
            if !payload.starts_with(b"{\"jsonrpc\":\"2.0\",\"method\":\"agent.event\"") {
                return Ok(());
            }
        }
        let Some(seq_at) = find(payload, SEQ, self.seq_at) else { return Ok(()) };
        self.seq_at = seq_at;
        let digits = &payload[seq_at + SEQ.len()..];
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let Some(kind_at) = find(&digits[end..], KIND, self.kind_at) else { return Ok(()) };
        self.kind_at = kind_at;
        let kind = &digits[end + kind_at + KIND.len()..];
        let wanted = if let Look::Kind(kind) = look { kind } else { CHUNK };
        if !kind.starts_with(wanted.as_bytes()) || kind.get(wanted.len()) != Some(&b'"') {
            // Other kinds may come between two chunks, such as a status of a long run.
            let seq = std::str::from_utf8(&digits[..end])?.parse().ok();
            if look == Look::Chunks && self.last_seq.is_some() && seq == self.last_seq.map(|last| last + 1) {
                self.last_seq = seq;
            }
            return Ok(());
        }
        if look == Look::Chunks {
            let seq: u64 = std::str::from_utf8(&digits[..end])?.parse()?;
            ensure!(self.last_seq.is_none_or(|last| seq == last + 1), "seq {seq} after {:?}", self.last_seq);
            self.last_seq = Some(seq);
        }
        self.count += 1;
        self.bytes += frame.len() as u64;
        Ok(())
    }

    fn pong(&mut self, payload: &[u8]) -> Result<()> {
        // A mask of zeros leaves the payload as it is.
        let mut frame = vec![0x8a, 0x80 | u8::try_from(payload.len())?, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        Ok(self.socket.write_all(&frame)?)
    }

    /// Waits for the next frame and passes it to `take`; for a single client.
    pub(crate) fn next<T>(&mut self, mut take: impl FnMut(&[u8]) -> Option<T>) -> Result<T> {
        let mut buffer = [0; 16 << 10];
        loop {
            while let Some((head, length)) = self.wire.frame(&self.carry)?
                && self.carry.len() >= length
            {
                let frame: Vec<u8> = self.carry.drain(..length).collect();
                match frame[0] & 0x0f {
                    8 if self.wire == Wire::WebSocket => bail!("the gateway closed"),
                    9 if self.wire == Wire::WebSocket => self.pong(&frame[head..])?,
                    _ => {}
                }
                if let Some(found) = take(&frame[head..]) {
                    return Ok(found);
                }
            }
            let read = self.socket.read(&mut buffer)?;
            ensure!(read > 0, "the server hung up");
            self.carry.extend_from_slice(&buffer[..read]);
        }
    }

    /// Sends a text frame (masked with zeros).
    pub(crate) fn say(&mut self, text: &str) -> Result<()> {
        let mut frame = vec![0x81];
        match u16::try_from(text.len())? {
            short @ 0..=125 => frame.push(0x80 | u8::try_from(short)?),
            long => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&long.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        Ok(self.socket.write_all(&frame)?)
    }
}

/// Many clients.
pub(crate) struct Crowd {
    clients: Vec<Client>,
    epoll: OwnedFd,
    look: Look,
    /// The number of frames that each client must get.
    target: u64,
    /// The number of clients that have fewer.
    behind: usize,
    buffer: Vec<u8>,
    /// Arrival times of counted frames, if they are recorded.
    pub(crate) arrivals: Option<Vec<u64>>,
}

impl Crowd {
    pub(crate) fn new(clients: Vec<Client>, look: Look) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (at, client) in clients.iter().enumerate() {
            client.socket.set_nonblocking(true)?;
            epoll::add(&epoll, &client.socket, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
        }
        Ok(Self { clients, epoll, look, target: 0, behind: 0, buffer: vec![0; READ], arrivals: None })
    }

    /// Clients of a floor.
    pub(crate) fn plain(addr: SocketAddr, wire: Wire, count: usize) -> Result<Self> {
        let clients = (0..count).map(|_| Client::plain(addr, wire)).collect::<Result<_>>()?;
        Self::new(clients, Look::Frames)
    }

    /// Counts other frames from now on.
    pub(crate) fn look_for(&mut self, look: Look) {
        self.look = look;
    }

    /// Starts a new round: resets all counts.
    pub(crate) fn begin(&mut self) {
        for client in &mut self.clients {
            (client.count, client.bytes, client.last_seq) = (0, 0, None);
        }
        (self.target, self.behind) = (0, 0);
    }

    /// Reads until every client has this many frames.
    ///
    /// # Errors
    /// A client got too many frames, got them out of order, was disconnected, or timed out.
    pub(crate) fn until(&mut self, target: u64) -> Result<()> {
        self.at_least(target)?;
        let most = self.clients.iter().map(|client| client.count).max().unwrap_or(target);
        ensure!(most == target, "a client has {most}, of {target}");
        Ok(())
    }

    /// Reads until every client has so many, or more.
    ///
    /// # Errors
    /// A client got something out of order, or was cut off, or waits for too long.
    pub(crate) fn at_least(&mut self, target: u64) -> Result<()> {
        self.target = target;
        self.behind = self.clients.iter().filter(|client| client.count < target).count();
        let deadline = Instant::now() + PATIENCE;
        while self.behind > 0 {
            if !self.pump(Duration::from_secs(1))? && Instant::now() > deadline {
                let (at, client) = self.clients.iter().enumerate().min_by_key(|(_, c)| c.count).context("nobody")?;
                bail!("client {at} has {} of {target}, and so have {} others too few", client.count, self.behind - 1);
            }
        }
        Ok(())
    }

    /// Reads until the connection is quiet.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.settle_for(Duration::from_millis(100))
    }

    /// Reads until nothing came for this long.
    pub(crate) fn settle_for(&mut self, quiet: Duration) -> Result<()> {
        while self.pump(quiet)? {}
        Ok(())
    }

    /// Waits for data and reads it. Returns whether anything came.
    fn pump(&mut self, wait: Duration) -> Result<bool> {
        let mut ready = Vec::with_capacity(EVENTS);
        let timeout =
            rustix::event::Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &ready {
            let at = usize::try_from(event.data.u64())?;
            let client = &mut self.clients[at];
            let had = client.count;
            let counted = client.read(&mut self.buffer, self.look).with_context(|| format!("client {at}"))?;
            if counted > 0 {
                if let Some(arrivals) = &mut self.arrivals {
                    arrivals.push(now());
                }
                if had < self.target && client.count >= self.target {
                    self.behind -= 1;
                }
            }
        }
        Ok(!ready.is_empty())
    }

    /// Average bytes on the wire of a counted frame in this round.
    pub(crate) fn frame_length(&self) -> Result<usize> {
        let client = self.clients.first().context("nobody")?;
        ensure!(client.count > 0, "nothing came");
        Ok(usize::try_from(client.bytes / client.count)?)
    }
}
