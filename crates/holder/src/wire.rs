//! The messages between a gateway and the holder of a runtime, over a Unix socket or in the file that a holder leaves. One file for both
//! directions and the decoder.
//!
//! A message is a frame: `u32` length of the payload, `u8` kind, `u32` CRC-32 of the payload, payload. Numbers are big endian. The
//! gateway begins with [`ToHolder::Hello`] and its range of versions; the holder responds with [`FromHolder::Welcome`] in the newest
//! common version, from [`OLDEST`] to [`VERSION`]. Version 2 adds [`ToHolder::Step`] and the holder's instance in `Welcome`. A frame is
//! handled once it is complete and its checksum is right: a partial message of a dead peer is ignored.
//!
//! Offsets count the bytes of the runtime's stdout from its start, and never decrease.

use std::time::{Duration, SystemTime};

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The newest version of the protocol. A peer without a common version is refused with a reason.
pub const VERSION: u8 = 2;

/// The oldest supported version: that of release 0.1.0.
pub const OLDEST: u8 = 1;

/// Maximum length of the instance id in `Welcome`, in bytes.
pub const INSTANCE_MAX: usize = 64;

/// Maximum length of a payload, in bytes; a peer that announces a longer one is disconnected. Large enough for a prompt with images, and
/// for all the state that a holder retains.
pub const FRAME_MAX: usize = 256 * 1024 * 1024;

/// Maximum size of the output in one [`FromHolder::Out`], in bytes.
pub const RECORD_MAX: usize = 64 * 1024;

/// Maximum size of the state that a holder retains, in bytes over all blobs. A gateway accounts for its state and waits before it reaches
/// this limit; one that does not is disconnected, without harm to the runtime.
pub const STATE_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of blobs of state that a holder retains; a gateway that sends more is disconnected.
pub const BLOBS_MAX: usize = 65_536;

/// Maximum size of the input queued in a holder for its runtime, in bytes (plus one message); a gateway that sends more without waiting
/// for [`FromHolder::Taken`] is disconnected.
pub const STDIN_MAX: usize = 8 * 1024 * 1024;

/// Number of bytes of a runtime's stderr that a holder retains; older text is dropped.
pub const STDERR_KEPT: usize = 64 * 1024;

/// Length of a frame's head, in bytes.
pub const HEAD: usize = 4 + 1 + 4;

/// Length of the head of an [`FromHolder::Out`] frame, in bytes: the frame's own, and the offset.
pub const OUT_HEAD: usize = HEAD + 8;

/// Buffer size of one read, in bytes. Messages of one read share its memory.
const READ: usize = 64 * 1024;

/// Minimum free capacity of a buffer for a read, in bytes; with less, the read gets a new buffer.
const FREE_MIN: usize = 4 * 1024;

/// The reason why a stream cannot be decoded any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A payload of this many bytes was announced.
    #[error("a message of {0} bytes; the maximum is {FRAME_MAX}")]
    TooLong(usize),
    /// The checksum of a payload is wrong.
    #[error("a message with a wrong checksum")]
    Checksum,
    /// A message has an unknown kind.
    #[error("a message of unknown kind {0}")]
    Unknown(u8),
    /// A message is too short or too long for its kind.
    #[error("a malformed message of kind {0}")]
    Malformed(u8),
}

/// A message from a gateway to a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHolder {
    /// The first message: this connection replaces an older one.
    Hello {
        /// The oldest version that the gateway supports.
        version: u8,
        /// The newest version that the gateway supports. If absent, the same as `version`.
        newest: u8,
    },
    /// Bytes for the runtime's stdin, and the state after them: both are accepted or none.
    Stdin {
        /// The offset at which the output that the state covers ends.
        offset: u64,
        /// The state for the next gateway; opaque.
        state: Bytes,
        /// The bytes for stdin.
        bytes: Bytes,
    },
    /// Bytes for the runtime's stdin, and a step that adds to the previous state: both are accepted or none. Steps are retained in order,
    /// as long as their state. Version 2.
    Step {
        /// The offset at which the output that the gateway had processed ends.
        offset: u64,
        /// The step; opaque.
        entry: Bytes,
        /// The bytes for stdin; may be empty.
        bytes: Bytes,
    },
    /// State without input.
    State {
        /// The offset at which the output that the state covers ends.
        offset: u64,
        /// The state for the next gateway; opaque.
        state: Bytes,
    },
    /// The gateway has stored all output before `offset`. The holder drops it, and all state older than the newest that covers no more
    /// output.
    Ack {
        /// The first byte of output that is still needed.
        offset: u64,
    },
    /// Closes the runtime's stdin after the earlier input.
    CloseStdin,
    /// Stops the runtime: its stdin is closed, then its process tree gets SIGTERM, then SIGKILL.
    Stop {
        /// Time between closing stdin and SIGTERM. Whole milliseconds, at most 49 days.
        stdin: Duration,
        /// Time between SIGTERM and SIGKILL. Whole milliseconds, at most 49 days.
        term: Duration,
    },
    /// Kills the runtime's process tree.
    Kill,
    /// The gateway has stored everything, including [`FromHolder::Exited`]: the holder may end.
    Bye,
}

/// A message from a holder to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHolder {
    /// The response to [`ToHolder::Hello`]: the holder's state, except the output, which follows from [`Welcome::acked`] on.
    Welcome(Welcome),
    /// Output, at most [`RECORD_MAX`] bytes; each byte is sent once for each connection, in order.
    Out {
        /// The offset of the first byte.
        offset: u64,
        /// The output.
        bytes: Bytes,
    },
    /// More stderr. For a gateway that does not read, only the last [`STDERR_KEPT`] bytes are retained.
    Err {
        /// The text.
        bytes: Bytes,
    },
    /// The spool of unacknowledged output is full; the runtime's stdout is no longer read.
    Full {
        /// The time since which the spool is full, to the millisecond.
        since: SystemTime,
    },
    /// The runtime's stdout is read again.
    HasSpace,
    /// The amount of input that the runtime has read, or that was discarded because its stdin is closed.
    Taken {
        /// Number of bytes since the runtime was started.
        total: u64,
    },
    /// The runtime's stdin is broken.
    StdinBroken,
    /// The runtime closed its stdout and still runs; all of its output was sent before this.
    StdoutClosed,
    /// The runtime and its process tree ended, and all of its output was sent before this.
    Exited {
        /// The exit code, if it exited.
        code: Option<i32>,
        /// The signal that killed it, if any. Both are `None` if the system did not report either.
        signal: Option<i32>,
    },
    /// The holder closes the connection.
    Bye {
        /// The reason.
        reason: String,
    },
}

/// The state of a holder, without the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol version of this connection.
    pub version: u8,
    /// A random id of the process, made when it was started. `None` in version 1.
    pub instance: Option<String>,
    /// The runtime's process id.
    pub pid: u32,
    /// The time when the runtime was started, to the millisecond.
    pub started_at: SystemTime,
    /// The offset before which output was acknowledged and dropped; output is sent from here on.
    pub acked: u64,
    /// The end offset of the output so far.
    pub end: u64,
    /// Number of bytes of input received for the runtime since its start.
    pub put: u64,
    /// Number of bytes of input that no longer wait.
    pub taken: u64,
    /// The time since which the spool is full, to the millisecond.
    pub full_since: Option<SystemTime>,
    /// `true` if the runtime's stdin is closed, by either side.
    pub stdin_closed: bool,
    /// The saved states and steps that are still needed, oldest first, each with the end of the output that it covers.
    pub blobs: Vec<(u64, Bytes)>,
    /// The end of the runtime's stderr.
    pub stderr: Bytes,
}

// Kinds of messages on the wire. Those from the holder have the high bit set.
const HELLO: u8 = 1;
const STDIN: u8 = 2;
const STATE: u8 = 3;
const ACK: u8 = 4;
const CLOSE_STDIN: u8 = 5;
const STOP: u8 = 6;
const KILL: u8 = 7;
const BYE_HOLDER: u8 = 8;
const STEP: u8 = 9;
const WELCOME: u8 = 0x81;
const OUT: u8 = 0x82;
const ERR: u8 = 0x83;
const FULL: u8 = 0x84;
const HAS_SPACE: u8 = 0x85;
const TAKEN: u8 = 0x86;
const STDIN_BROKEN: u8 = 0x87;
const STDOUT_CLOSED: u8 = 0x8A;
const EXITED: u8 = 0x88;
const BYE_GATEWAY: u8 = 0x89;

// === writing ===

/// Returns the head of a frame with this payload length and checksum.
fn head(kind: u8, len: usize, crc: u32) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let mut out = &mut head[..];
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    out.put_u8(kind);
    out.put_u32(crc);
    head
}

/// Appends a frame.
fn frame(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.reserve(HEAD + payload.len());
    out.extend_from_slice(&head(kind, payload.len(), crc32fast::hash(payload)));
    out.extend_from_slice(payload);
}

/// Returns the checksum of an [`FromHolder::Out`] payload's offset, to be continued with [`out_crc_more`].
pub fn out_crc(offset: u64) -> u32 {
    crc32fast::hash(&offset.to_be_bytes())
}

/// Continues the checksum `crc` over more bytes.
pub fn out_crc_more(crc: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the head of an [`FromHolder::Out`] frame: `len` bytes (at most [`RECORD_MAX`]) from `offset` on, with `crc` from [`out_crc`]
/// and [`out_crc_more`]. The bytes follow without being copied.
pub fn out_head(offset: u64, len: usize, crc: u32) -> [u8; OUT_HEAD] {
    let mut out = [0; OUT_HEAD];
    out[..HEAD].copy_from_slice(&head(OUT, 8 + len, crc));
    out[HEAD..].copy_from_slice(&offset.to_be_bytes());
    out
}

/// Returns the head of a [`ToHolder::Stdin`] frame; state and bytes follow uncopied. `None` if the frame is longer than [`FRAME_MAX`].
pub fn stdin_head(offset: u64, state: &[u8], bytes: &[u8]) -> Option<Bytes> {
    two_part_head(STDIN, offset, state, bytes)
}

/// Like [`stdin_head`], for a [`ToHolder::Step`].
pub fn step_head(offset: u64, entry: &[u8], bytes: &[u8]) -> Option<Bytes> {
    two_part_head(STEP, offset, entry, bytes)
}

fn two_part_head(kind: u8, offset: u64, state: &[u8], bytes: &[u8]) -> Option<Bytes> {
    let len = 8 + 4 + state.len() + bytes.len();
    if len > FRAME_MAX {
        return None;
    }
    let mut out = BytesMut::with_capacity(HEAD + 8 + 4);
    out.put_bytes(0, HEAD);
    out.put_u64(offset);
    out.put_u32(u32::try_from(state.len()).ok()?);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&out[HEAD..]);
    hasher.update(state);
    hasher.update(bytes);
    out[..HEAD].copy_from_slice(&head(kind, len, hasher.finalize()));
    Some(out.freeze())
}

/// Returns the head of a [`ToHolder::State`] frame; the state follows uncopied. `None` if the frame is longer than [`FRAME_MAX`].
pub fn state_head(offset: u64, state: &[u8]) -> Option<Bytes> {
    let len = 8 + state.len();
    if len > FRAME_MAX {
        return None;
    }
    let mut out = BytesMut::with_capacity(HEAD + 8);
    out.put_slice(&head(STATE, len, out_crc_more(out_crc(offset), state)));
    out.put_u64(offset);
    Some(out.freeze())
}

impl ToHolder {
    /// Appends the message as a frame. Appends nothing if its payload would be longer than [`FRAME_MAX`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, newest } => frame(out, HELLO, &[*version, *newest]),
            Self::Step { offset, entry, bytes } => {
                let Some(head) = step_head(*offset, entry, bytes) else { return };
                [&head, entry, bytes].iter().for_each(|part| out.extend_from_slice(part));
            }
            Self::Stdin { offset, state, bytes } => {
                let Some(head) = stdin_head(*offset, state, bytes) else { return };
                [&head, state, bytes].iter().for_each(|part| out.extend_from_slice(part));
            }
            Self::State { offset, state } => {
                let Some(head) = state_head(*offset, state) else { return };
                [&head, state].iter().for_each(|part| out.extend_from_slice(part));
            }
            Self::Ack { offset } => frame(out, ACK, &offset.to_be_bytes()),
            Self::CloseStdin => frame(out, CLOSE_STDIN, &[]),
            Self::Stop { stdin, term } => {
                let mut payload = [0; 8];
                let mut rest = &mut payload[..];
                rest.put_u32(millis(*stdin));
                rest.put_u32(millis(*term));
                frame(out, STOP, &payload);
            }
            Self::Kill => frame(out, KILL, &[]),
            Self::Bye => frame(out, BYE_HOLDER, &[]),
        }
    }

    /// Returns the message as a frame of its own.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode(&mut out);
        out.into()
    }

    /// Parses a frame from [`Decoder::frame`].
    ///
    /// # Errors
    /// [`Broken::Unknown`] and [`Broken::Malformed`].
    pub fn parse((kind, payload): (u8, Bytes)) -> Result<Self, Broken> {
        let mut from = Fields { kind, rest: payload };
        let message = match kind {
            HELLO => {
                let version = from.u8()?;
                let newest = from.u8().unwrap_or(version);
                // Later versions may add fields to `Hello`.
                from.rest.clear();
                Self::Hello { version, newest }
            }
            STEP => {
                let (offset, len) = (from.u64()?, from.u32()?);
                Self::Step { offset, entry: from.bytes(len)?, bytes: from.all() }
            }
            STDIN => {
                let (offset, len) = (from.u64()?, from.u32()?);
                Self::Stdin { offset, state: from.bytes(len)?, bytes: from.all() }
            }
            STATE => Self::State { offset: from.u64()?, state: from.all() },
            ACK => Self::Ack { offset: from.u64()? },
            CLOSE_STDIN => Self::CloseStdin,
            STOP => Self::Stop {
                stdin: Duration::from_millis(from.u32()?.into()),
                term: Duration::from_millis(from.u32()?.into()),
            },
            KILL => Self::Kill,
            BYE_HOLDER => Self::Bye,
            _ => return Err(Broken::Unknown(kind)),
        };
        from.end(message)
    }
}

impl FromHolder {
    /// Appends the message as a frame. Appends nothing if its payload would be longer than [`FRAME_MAX`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Welcome(welcome) => welcome.encode(out),
            Self::Out { offset, bytes } => {
                let crc = out_crc_more(out_crc(*offset), bytes);
                out.extend_from_slice(&out_head(*offset, bytes.len(), crc));
                out.extend_from_slice(bytes);
            }
            Self::Err { bytes } => frame(out, ERR, bytes),
            Self::Full { since } => frame(out, FULL, &since_epoch(*since).to_be_bytes()),
            Self::HasSpace => frame(out, HAS_SPACE, &[]),
            Self::Taken { total } => frame(out, TAKEN, &total.to_be_bytes()),
            Self::StdinBroken => frame(out, STDIN_BROKEN, &[]),
            Self::StdoutClosed => frame(out, STDOUT_CLOSED, &[]),
            Self::Exited { code, signal } => {
                let (how, number) = match (code, signal) {
                    (Some(code), _) => (1, *code),
                    (None, Some(signal)) => (2, *signal),
                    (None, None) => (0, 0),
                };
                let mut payload = [how; 5];
                payload[1..].copy_from_slice(&number.to_be_bytes());
                frame(out, EXITED, &payload);
            }
            Self::Bye { reason } => frame(out, BYE_GATEWAY, reason.as_bytes()),
        }
    }

    /// Parses a frame from [`Decoder::frame`].
    ///
    /// # Errors
    /// [`Broken::Unknown`] and [`Broken::Malformed`].
    pub fn parse((kind, payload): (u8, Bytes)) -> Result<Self, Broken> {
        let mut from = Fields { kind, rest: payload };
        let message = match kind {
            WELCOME => return Welcome::parse(from).map(Self::Welcome),
            OUT => Self::Out { offset: from.u64()?, bytes: from.all() },
            ERR => Self::Err { bytes: from.all() },
            FULL => Self::Full { since: from.time()? },
            HAS_SPACE => Self::HasSpace,
            TAKEN => Self::Taken { total: from.u64()? },
            STDIN_BROKEN => Self::StdinBroken,
            STDOUT_CLOSED => Self::StdoutClosed,
            EXITED => {
                let (how, number) = (from.u8()?, from.u32()?.cast_signed());
                Self::Exited { code: (how == 1).then_some(number), signal: (how == 2).then_some(number) }
            }
            BYE_GATEWAY => Self::Bye { reason: String::from_utf8_lossy(&from.all()).into_owned() },
            _ => return Err(Broken::Unknown(kind)),
        };
        from.end(message)
    }
}

impl Welcome {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        payload.put_u8(self.version);
        payload.put_u32(self.pid);
        payload.put_u64(since_epoch(self.started_at));
        [self.acked, self.end, self.put, self.taken].iter().for_each(|number| payload.put_u64(*number));
        payload.put_u8(self.full_since.is_some().into());
        payload.put_u64(self.full_since.map_or(0, since_epoch));
        payload.put_u8(self.stdin_closed.into());
        payload.put_u32(u32::try_from(self.blobs.len()).unwrap_or(u32::MAX));
        for (offset, blob) in &self.blobs {
            payload.put_u64(*offset);
            payload.put_u32(u32::try_from(blob.len()).unwrap_or(u32::MAX));
            payload.put_slice(blob);
        }
        if self.version >= 2 {
            let instance = self.instance.as_deref().unwrap_or_default();
            let len = instance.floor_char_boundary(INSTANCE_MAX);
            payload.put_u8(u8::try_from(len).unwrap_or_default());
            payload.put_slice(&instance.as_bytes()[..len]);
        }
        payload.put_slice(&self.stderr);
        if payload.len() <= FRAME_MAX {
            frame(out, WELCOME, &payload);
        }
    }

    fn parse(mut from: Fields) -> Result<Self, Broken> {
        let version = from.u8()?;
        if !(OLDEST..=VERSION).contains(&version) {
            // Only the version of an unsupported `Welcome` is read, so that it can be reported.
            return Ok(Self::with_version(version));
        }
        let mut welcome = Self {
            version,
            instance: None,
            pid: from.u32()?,
            started_at: from.time()?,
            acked: from.u64()?,
            end: from.u64()?,
            put: from.u64()?,
            taken: from.u64()?,
            full_since: {
                let (full, since) = (from.flag()?, from.time()?);
                full.then_some(since)
            },
            stdin_closed: from.flag()?,
            blobs: Vec::new(),
            stderr: Bytes::new(),
        };
        for _ in 0..from.u32()? {
            let (offset, len) = (from.u64()?, from.u32()?);
            welcome.blobs.push((offset, from.bytes(len)?));
        }
        if version >= 2 {
            let len = from.u8()?;
            let instance = from.bytes(len.into())?;
            let instance = std::str::from_utf8(&instance).map_err(|_| from.malformed())?;
            welcome.instance = (!instance.is_empty()).then(|| instance.to_owned());
        }
        welcome.stderr = from.all();
        Ok(welcome)
    }

    /// Makes an empty `Welcome`.
    fn with_version(version: u8) -> Self {
        Self {
            version,
            instance: None,
            pid: 0,
            started_at: SystemTime::UNIX_EPOCH,
            acked: 0,
            end: 0,
            put: 0,
            taken: 0,
            full_since: None,
            stdin_closed: false,
            blobs: Vec::new(),
            stderr: Bytes::new(),
        }
    }
}

/// Converts a duration to whole milliseconds, saturating.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Converts a time to whole milliseconds since 1970; earlier times count as 1970.
fn since_epoch(time: SystemTime) -> u64 {
    let elapsed = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

// === reading ===

/// Reads the fields of a payload in order.
struct Fields {
    kind: u8,
    rest: Bytes,
}

impl Fields {
    fn malformed(&self) -> Broken {
        Broken::Malformed(self.kind)
    }

    fn u8(&mut self) -> Result<u8, Broken> {
        self.rest.try_get_u8().map_err(|_| self.malformed())
    }

    fn u32(&mut self) -> Result<u32, Broken> {
        self.rest.try_get_u32().map_err(|_| self.malformed())
    }

    fn u64(&mut self) -> Result<u64, Broken> {
        self.rest.try_get_u64().map_err(|_| self.malformed())
    }

    fn flag(&mut self) -> Result<bool, Broken> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    fn time(&mut self) -> Result<SystemTime, Broken> {
        let elapsed = Duration::from_millis(self.u64()?);
        SystemTime::UNIX_EPOCH.checked_add(elapsed).ok_or_else(|| self.malformed())
    }

    fn bytes(&mut self, len: u32) -> Result<Bytes, Broken> {
        match usize::try_from(len) {
            Ok(len) if len <= self.rest.len() => Ok(self.rest.split_to(len)),
            _ => Err(self.malformed()),
        }
    }

    fn all(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    /// Checks that nothing is left.
    fn end<T>(self, message: T) -> Result<T, Broken> {
        if self.rest.is_empty() { Ok(message) } else { Err(self.malformed()) }
    }
}

/// Splits a stream into frames. Holds at most one frame of [`FRAME_MAX`] and one read, and never reserves memory for more than twice the
/// received bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    buf: BytesMut,
}

impl Decoder {
    /// Makes a decoder of given bytes, such as a whole file.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self { buf: bytes.into() }
    }

    /// Returns the buffer to read into; earlier bytes stay.
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buf.capacity() - self.buf.len() < FREE_MIN {
            self.buf.reserve(READ);
        }
        &mut self.buf
    }

    /// Returns the next complete frame: its kind, and its payload without a copy. `None` if more must be read first.
    ///
    /// # Errors
    /// [`Broken::TooLong`] and [`Broken::Checksum`]; after an error the stream is unusable.
    pub fn frame(&mut self) -> Result<Option<(u8, Bytes)>, Broken> {
        let Some(mut head) = self.buf.get(..HEAD) else { return Ok(None) };
        let (len, kind, crc) = (head.get_u32(), head.get_u8(), head.get_u32());
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > FRAME_MAX {
            return Err(Broken::TooLong(len));
        }
        if self.buf.len() < HEAD + len {
            return Ok(None);
        }
        self.buf.advance(HEAD);
        let payload = self.buf.split_to(len).freeze();
        if crc32fast::hash(&payload) != crc {
            return Err(Broken::Checksum);
        }
        Ok(Some((kind, payload)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from)
    }

    fn time() -> impl Strategy<Value = SystemTime> {
        (0u64..1 << 42).prop_map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
    }

    fn to_holder() -> impl Strategy<Value = ToHolder> {
        let wait = || any::<u32>().prop_map(|ms| Duration::from_millis(ms.into()));
        prop_oneof![
            (any::<u8>(), any::<u8>()).prop_map(|(version, newest)| ToHolder::Hello { version, newest }),
            (any::<u64>(), bytes(), bytes()).prop_map(|(offset, entry, bytes)| ToHolder::Step { offset, entry, bytes }),
            (any::<u64>(), bytes(), bytes()).prop_map(|(offset, state, bytes)| ToHolder::Stdin {
                offset,
                state,
                bytes
            }),
            (any::<u64>(), bytes()).prop_map(|(offset, state)| ToHolder::State { offset, state }),
            any::<u64>().prop_map(|offset| ToHolder::Ack { offset }),
            Just(ToHolder::CloseStdin),
            (wait(), wait()).prop_map(|(stdin, term)| ToHolder::Stop { stdin, term }),
            Just(ToHolder::Kill),
            Just(ToHolder::Bye),
        ]
    }

    fn welcome() -> impl Strategy<Value = Welcome> {
        let numbers = (any::<u32>(), time(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
        let blobs = proptest::collection::vec((any::<u64>(), bytes()), 0..4);
        let version = (OLDEST..=VERSION, proptest::option::of("[a-z0-9_]{1,40}"));
        (version, numbers, proptest::option::of(time()), any::<bool>(), blobs, bytes()).prop_map(
            |(
                (version, instance),
                (pid, started_at, acked, end, put, taken),
                full_since,
                stdin_closed,
                blobs,
                stderr,
            )| Welcome {
                version,
                instance: instance.filter(|_| version >= 2),
                pid,
                started_at,
                acked,
                end,
                put,
                taken,
                full_since,
                stdin_closed,
                blobs,
                stderr,
            },
        )
    }

    fn from_holder() -> impl Strategy<Value = FromHolder> {
        prop_oneof![
            welcome().prop_map(FromHolder::Welcome),
            (any::<u64>(), bytes()).prop_map(|(offset, bytes)| FromHolder::Out { offset, bytes }),
            bytes().prop_map(|bytes| FromHolder::Err { bytes }),
            time().prop_map(|since| FromHolder::Full { since }),
            Just(FromHolder::HasSpace),
            any::<u64>().prop_map(|total| FromHolder::Taken { total }),
            Just(FromHolder::StdinBroken),
            Just(FromHolder::StdoutClosed),
            any::<i32>().prop_map(|code| FromHolder::Exited { code: Some(code), signal: None }),
            any::<i32>().prop_map(|signal| FromHolder::Exited { code: None, signal: Some(signal) }),
            Just(FromHolder::Exited { code: None, signal: None }),
            ".*".prop_map(|reason| FromHolder::Bye { reason }),
        ]
    }

    /// Decodes a stream that arrives in these pieces, until an error.
    fn decoded<T>(pieces: &[&[u8]], parse: fn((u8, Bytes)) -> Result<T, Broken>) -> (Vec<T>, Option<Broken>) {
        let (mut decoder, mut all) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.buffer().extend_from_slice(piece);
            loop {
                match decoder.frame().and_then(|frame| frame.map(parse).transpose()) {
                    Ok(Some(message)) => all.push(message),
                    Ok(None) => break,
                    Err(reason) => return (all, Some(reason)),
                }
            }
        }
        (all, None)
    }

    fn cut(stream: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(stream.len()));
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
    }

    proptest! {
        #[test]
        fn wire_messages_round_trip_however_they_are_split(
            up in proptest::collection::vec(to_holder(), 0..6),
            down in proptest::collection::vec(from_holder(), 0..6),
            cuts in proptest::collection::vec(0usize..600, 0..8),
        ) {
            let (mut to, mut from) = (Vec::new(), Vec::new());
            up.iter().for_each(|message| message.encode(&mut to));
            down.iter().for_each(|message| message.encode(&mut from));
            prop_assert_eq!(decoded(&cut(&to, cuts.clone()), ToHolder::parse), (up, None));
            prop_assert_eq!(decoded(&cut(&from, cuts), FromHolder::parse), (down, None));
        }

        #[test]
        fn wire_partial_message_is_incomplete(message in to_holder(), place in any::<prop::sample::Index>()) {
            let stream_bytes = message.to_bytes();
            let half = &stream_bytes[..place.index(stream_bytes.len())];
            prop_assert_eq!(decoded(&[half], ToHolder::parse), (vec![], None));
        }

        #[test]
        fn wire_checksum_detects_a_changed_payload(
            message in from_holder(), place in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let mut stream = Vec::new();
            message.encode(&mut stream);
            prop_assume!(stream.len() > HEAD);
            let place = HEAD + place.index(stream.len() - HEAD);
            stream[place] ^= 1 << bit;
            prop_assert_eq!(decoded(&[&stream], FromHolder::parse), (vec![], Some(Broken::Checksum)));
        }

        #[test]
        fn wire_survives_any_bytes(
            stream in proptest::collection::vec(any::<u8>(), 0..300),
            kind in any::<u8>(),
            cuts in proptest::collection::vec(0usize..300, 0..4),
        ) {
            let _ = decoded(&cut(&stream, cuts), ToHolder::parse);
            // With a right checksum, decoding gets further.
            let mut framed = Vec::new();
            frame(&mut framed, kind, &stream);
            let (up, _) = decoded(&[&framed], ToHolder::parse);
            let (down, _) = decoded(&[&framed], FromHolder::parse);
            // Every parsed message encodes to the same bytes, except fields of later versions.
            for message in up.iter().filter(|message| !matches!(message, ToHolder::Hello { .. })) {
                prop_assert_eq!(&message.to_bytes()[..], &framed[..]);
            }
            prop_assert!(down.len() <= 1);
        }
    }

    #[test]
    fn wire_refuses_a_long_message_by_its_header() {
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&head(STDIN, FRAME_MAX + 1, 0));
        assert_eq!(decoder.frame(), Err(Broken::TooLong(FRAME_MAX + 1)));
        // A frame just below the limit reserves no memory before it arrives.
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&head(STDIN, FRAME_MAX, 0));
        assert_eq!(decoder.frame(), Ok(None));
        assert!(decoder.buffer().capacity() < 4 * READ);
        let long = Bytes::from(vec![0; FRAME_MAX]);
        assert!(stdin_head(0, &long, &long).is_none() && state_head(0, &long).is_none());
        assert!(ToHolder::State { offset: 0, state: long }.to_bytes().is_empty());
    }

    #[test]
    fn wire_hello_of_another_version_has_only_its_version() {
        let mut stream = Vec::new();
        frame(&mut stream, WELCOME, &[9, 1, 2, 3]);
        let (got, broken) = decoded(&[&stream], FromHolder::parse);
        assert!(matches!(&got[..], [FromHolder::Welcome(Welcome { version: 9, .. })]) && broken.is_none());
        let mut stream = Vec::new();
        frame(&mut stream, HELLO, b"\x09more");
        assert_eq!(decoded(&[&stream], ToHolder::parse), (vec![ToHolder::Hello { version: 9, newest: b'm' }], None));
        let mut stream = Vec::new();
        frame(&mut stream, HELLO, &[1]);
        assert_eq!(decoded(&[&stream], ToHolder::parse), (vec![ToHolder::Hello { version: 1, newest: 1 }], None));
    }

    #[test]
    fn wire_output_is_sent_without_a_copy() {
        let (mut stream_bytes, mut parts) = (Vec::new(), Vec::new());
        FromHolder::Out { offset: 7, bytes: Bytes::from_static(b"output") }.encode(&mut stream_bytes);
        let crc = out_crc_more(out_crc_more(out_crc(7), b"out"), b"put");
        parts.extend_from_slice(&out_head(7, 6, crc));
        parts.extend_from_slice(b"output");
        assert_eq!(stream_bytes, parts);
    }
}
