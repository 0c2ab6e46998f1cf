//! The messages between the holder of a terminal and its attachments, over a Unix socket: a length (`u32`, little
//! endian, of the rest), a letter for the kind, and the content. Pure.
//!
//! An attachment first sends a [`Hello`] and gets a [`TerminalWelcome`]. The hello has the versions that the attachment
//! supports, and the holder chooses one.

use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::TerminalSize;
use crate::screen_match::ScreenSection;
use plexus_protocol::{TerminalId, Timestamp};

/// The version of the messages.
pub const VERSION: u8 = 1;

/// Maximum length of the input in one message, in bytes; longer input is sent in several.
pub const INPUT_MAX: usize = 64 << 10;

/// Maximum length of a message to a holder, in bytes.
const TO_MAX: usize = INPUT_MAX + 1;

/// Maximum length of a message of a holder, in bytes: a snapshot of the largest screen, each cell of its own color.
const FROM_MAX: usize = 32 << 20;

/// Number of bytes of the length.
const HEAD: usize = 4;

/// Maximum length of a text of a [`TerminalInfo`], in characters; the rest is left out.
const TEXT_MAX: usize = 400;

/// Maximum number of arguments of a [`TerminalInfo`]; further ones are left out.
const ARGUMENTS_MAX: usize = 64;

/// The permissions of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentRole {
    /// Requests the description; the connection then ends.
    Info,
    /// Sees the screen.
    Watch,
    /// Sees the screen and types.
    Type,
    /// A terminal of a user, which sees the screen, types, and is the owner from now on.
    Terminal,
    /// Types keys if the screen shows the dialog or line for them; it does not see the screen itself.
    TypeIf,
    /// Ends the program; the connection then ends.
    Kill,
}

/// The first message of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest supported version.
    pub oldest: u8,
    /// The newest supported version.
    pub newest: u8,
    /// The requested role.
    pub role: AttachmentRole,
    /// The size of the attachment, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
    /// `true` for the terminal that started the program: it shows the output from the first byte, on its existing
    /// content, without a snapshot.
    #[serde(default)]
    pub first: bool,
}

impl Hello {
    /// Makes a hello of this version.
    pub fn new(role: AttachmentRole, size: Option<TerminalSize>) -> Self {
        Self { oldest: VERSION, newest: VERSION, role, size, first: false }
    }
}

/// The end of a program: an exit code, a signal, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalExit {
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The description of a shared terminal. All text in it is safe to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalInfo {
    /// The identifier.
    pub terminal_id: TerminalId,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder in which it was started.
    pub cwd: String,
    /// The title that the program set; empty if it set none.
    pub title: String,
    /// The program's process id.
    pub pid: u32,
    /// The time when it was started.
    pub started_at: Timestamp,
    /// The size.
    pub size: TerminalSize,
    /// The number of screens that show it now; each window or page is one.
    pub attached: usize,
    /// The end of the program; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exited: Option<TerminalExit>,
}

impl TerminalInfo {
    /// Returns the description with every text cut and safe to print, whoever wrote it.
    #[must_use]
    pub fn printable(mut self) -> Self {
        let clean = |text: &str| plexus_protocol::text::line(text, TEXT_MAX);
        self.command.truncate(ARGUMENTS_MAX);
        self.command = self.command.iter().map(|text| clean(text)).collect();
        (self.cwd, self.title) = (clean(&self.cwd), clean(&self.title));
        self
    }
}

/// The holder's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalWelcome {
    /// The version of the following messages.
    pub version: u8,
    /// The terminal that it holds.
    pub terminal: TerminalInfo,
}

/// The status of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentStatus {
    /// The terminal's size.
    pub size: TerminalSize,
    /// `true` if this attachment is the owner.
    pub owner: bool,
    /// `true` if the attachment gets the unfiltered output, as only the owner's terminal does; otherwise it gets the output for viewers.
    pub raw: bool,
}

/// Keys to type, and the text that the screen has to show for them. The screen is read when it does not change and no user types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeIf {
    /// The last sections of the screen.
    pub shows: Vec<ScreenSection>,
    /// The keys.
    pub keys: String,
    /// Further keys, once the program has read these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<ThenKeys>,
    /// `true` if the keys answer a dialog: then answers of users a moment later are dropped.
    #[serde(default)]
    pub answers: bool,
}

/// Keys that follow others, and the text that the screen has to show for them. They are typed again while the screen still shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThenKeys {
    /// The last sections of the screen.
    pub shows: Vec<ScreenSection>,
    /// The keys.
    pub keys: String,
}

/// The outcome of a [`TypeIf`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeIfOutcome {
    /// `true` if keys were typed: all of them, or only the first ones if there is a reason below.
    pub typed: bool,
    /// The reason why nothing was typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A message of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// The first message.
    Hello(Hello),
    /// Typed keys.
    Input(Bytes),
    /// The window has another size.
    Resize(TerminalSize),
    /// The attachment wants to be the owner, with this size.
    Own(TerminalSize),
    /// The attachment needs a snapshot.
    Refresh,
    /// Keys that are typed if the screen shows the dialog or line for them.
    TypeIf(TypeIf),
}

/// A message of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// The first message.
    Welcome(Box<TerminalWelcome>),
    /// The status of the attachment from here on.
    Status(AttachmentStatus),
    /// The output that draws the screen on an empty terminal. It replaces all earlier output.
    Snapshot(Bytes),
    /// Output of the program.
    Output(Bytes),
    /// The outcome of keys.
    TypeIf(TypeIfOutcome),
    /// The program ended, and all its output was sent. This is the last message.
    Exited(TerminalExit),
    /// The connection ends, with the reason. This is the last message.
    Bye(String),
}

/// The received bytes are not a message. The connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// The message exceeds the maximum length.
    #[error("a message of {0} bytes, which is longer than any: another program's, or a damaged one")]
    TooLong(usize),
    /// The message has no kind, or an unknown one.
    #[error("a message of an unknown kind: use the plexus that started the terminal")]
    UnknownKind,
    /// The content does not fit the kind.
    #[error("a message that is not understood ({0}): use the plexus that started the terminal")]
    Content(String),
}

fn frame(kind: u8, content: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(HEAD + 1 + content.len());
    // A message is far shorter than 4 GiB: its sender limits it.
    out.extend_from_slice(&u32::try_from(content.len() + 1).unwrap_or(u32::MAX).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(content);
    out.into()
}

fn json(kind: u8, content: &impl Serialize) -> Bytes {
    // Writing these types never fails.
    frame(kind, &serde_json::to_vec(content).unwrap_or_default())
}

fn sized(kind: u8, size: TerminalSize) -> Bytes {
    let [a, b] = size.rows.to_le_bytes();
    let [c, d] = size.cols.to_le_bytes();
    frame(kind, &[a, b, c, d])
}

fn read_json<T: DeserializeOwned>(content: &[u8]) -> Result<T, BadMessage> {
    serde_json::from_slice(content).map_err(|why| BadMessage::Content(why.to_string()))
}

fn read_size(content: &[u8]) -> Result<TerminalSize, BadMessage> {
    match content {
        [a, b, c, d] => Ok(TerminalSize { rows: u16::from_le_bytes([*a, *b]), cols: u16::from_le_bytes([*c, *d]) }),
        _ => Err(BadMessage::Content(format!("a size of {} bytes", content.len()))),
    }
}

impl ToHost {
    /// Returns the message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Hello(hello) => json(b'H', hello),
            Self::Input(bytes) => frame(b'I', bytes),
            Self::Resize(size) => sized(b'R', *size),
            Self::Own(size) => sized(b'O', *size),
            Self::Refresh => frame(b'F', b""),
            Self::TypeIf(keys) => json(b'T', keys),
        }
    }

    /// Parses a message that [`MessageDecoder`] cut out.
    ///
    /// # Errors
    /// Returns the reason why it is not a message.
    pub fn read(mut message: Bytes) -> Result<Self, BadMessage> {
        let kind = *message.first().ok_or(BadMessage::UnknownKind)?;
        let content = message.split_off(1);
        Ok(match kind {
            b'H' => Self::Hello(read_json(&content)?),
            b'I' => Self::Input(content),
            b'R' => Self::Resize(read_size(&content)?),
            b'O' => Self::Own(read_size(&content)?),
            b'F' => Self::Refresh,
            b'T' => Self::TypeIf(read_json(&content)?),
            _ => return Err(BadMessage::UnknownKind),
        })
    }
}

impl FromHost {
    /// Returns the message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Welcome(welcome) => json(b'W', welcome),
            Self::Status(status) => json(b'S', status),
            Self::Snapshot(bytes) => frame(b'N', bytes),
            Self::Output(bytes) => frame(b'P', bytes),
            Self::TypeIf(outcome) => json(b'T', outcome),
            Self::Exited(exit) => json(b'X', exit),
            Self::Bye(why) => frame(b'B', why.as_bytes()),
        }
    }

    /// Parses a message that [`MessageDecoder`] cut out.
    ///
    /// # Errors
    /// Returns the reason why it is not a message.
    pub fn read(mut message: Bytes) -> Result<Self, BadMessage> {
        let kind = *message.first().ok_or(BadMessage::UnknownKind)?;
        let content = message.split_off(1);
        Ok(match kind {
            b'W' => {
                let TerminalWelcome { version, terminal } = read_json(&content)?;
                Self::Welcome(Box::new(TerminalWelcome { version, terminal: terminal.printable() }))
            }
            b'S' => Self::Status(read_json(&content)?),
            b'N' => Self::Snapshot(content),
            b'P' => Self::Output(content),
            b'T' => Self::TypeIf(read_json(&content)?),
            b'X' => Self::Exited(read_json(&content)?),
            b'B' => Self::Bye(plexus_protocol::text::line(&String::from_utf8_lossy(&content), TEXT_MAX)),
            _ => return Err(BadMessage::UnknownKind),
        })
    }
}

/// Cuts a stream into messages.
#[derive(Debug)]
pub struct MessageDecoder {
    buffer: BytesMut,
    max: usize,
}

impl MessageDecoder {
    /// Makes a decoder of the messages of attachments.
    pub fn to_host() -> Self {
        Self { buffer: BytesMut::new(), max: TO_MAX }
    }

    /// Makes a decoder of the messages of a holder.
    pub fn from_host() -> Self {
        Self { buffer: BytesMut::new(), max: FROM_MAX }
    }

    /// Returns the buffer for the next bytes.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(INPUT_MAX);
        &mut self.buffer
    }

    /// Returns the number of bytes of memory that the next complete message and one more read take.
    pub fn needs(&self) -> usize {
        let head = self.buffer.first_chunk::<HEAD>();
        let length = head.map_or(0, |head| HEAD + (u32::from_le_bytes(*head) as usize).min(self.max));
        length.max(self.buffer.len()) + INPUT_MAX
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// Returns an error if it is too long.
    pub fn message(&mut self) -> Result<Option<Bytes>, BadMessage> {
        let Some((head, _)) = self.buffer.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > self.max {
            return Err(BadMessage::TooLong(length));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        let mut message = self.buffer.split_to(HEAD + length);
        Ok(Some(message.split_off(HEAD).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: TerminalSize = TerminalSize { rows: 24, cols: 500 };

    fn info() -> TerminalInfo {
        TerminalInfo {
            terminal_id: TerminalId::trusted("t_abc"),
            command: vec!["vim".into(), "a b".into()],
            cwd: "/home".into(),
            title: String::new(),
            pid: 7,
            started_at: Timestamp::default(),
            size: SIZE,
            attached: 1,
            exited: None,
        }
    }

    fn to_host() -> Vec<ToHost> {
        vec![
            ToHost::Hello(Hello { first: true, ..Hello::new(AttachmentRole::Terminal, Some(SIZE)) }),
            ToHost::Hello(Hello::new(AttachmentRole::Info, None)),
            ToHost::Input(Bytes::from_static(b"\x00\xff keys")),
            ToHost::Input(vec![b'x'; INPUT_MAX].into()),
            ToHost::Resize(SIZE),
            ToHost::Own(SIZE),
            ToHost::Refresh,
            ToHost::TypeIf(TypeIf {
                shows: vec![ScreenSection { holds: Some("a".into()), ..ScreenSection::default() }],
                keys: "\u{1b}".into(),
                then: Some(ThenKeys { shows: Vec::new(), keys: "\r".into() }),
                answers: true,
            }),
        ]
    }

    fn from_host() -> Vec<FromHost> {
        vec![
            FromHost::Welcome(Box::new(TerminalWelcome { version: 1, terminal: info() })),
            FromHost::Status(AttachmentStatus { size: SIZE, owner: true, raw: false }),
            FromHost::Snapshot(Bytes::from_static(b"\x1b[H")),
            FromHost::Output(Bytes::from_static(b"\xff")),
            FromHost::TypeIf(TypeIfOutcome { typed: false, refused: Some("no".into()) }),
            FromHost::Exited(TerminalExit { code: Some(3), signal: None }),
            FromHost::Bye("full".into()),
        ]
    }

    #[test]
    fn messages_arrive_as_they_were_sent_however_they_are_split() {
        let sent: Vec<u8> = to_host().iter().flat_map(|message| message.to_bytes().to_vec()).collect();
        for step in [1, 3, 4096, sent.len()] {
            let (mut decoder, mut read) = (MessageDecoder::to_host(), Vec::new());
            for chunk in sent.chunks(step) {
                decoder.buffer().extend_from_slice(chunk);
                while let Some(message) = decoder.message().unwrap() {
                    read.push(ToHost::read(message).unwrap());
                }
            }
            assert_eq!(read, to_host());
        }
        let mut decoder = MessageDecoder::from_host();
        for message in from_host() {
            decoder.buffer().extend_from_slice(&message.to_bytes());
            assert_eq!(FromHost::read(decoder.message().unwrap().unwrap()).unwrap(), message);
        }
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        let mut decoder = MessageDecoder::to_host();
        decoder.buffer().extend_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decoder.message(), Err(BadMessage::TooLong(u32::MAX as usize)));
        for bad in [&b""[..], b"?", b"R\x01", b"H{}", b"H", b"O\x01\x02\x03\x04\x05"] {
            assert!(ToHost::read(Bytes::copy_from_slice(bad)).is_err(), "{bad:?}");
        }
        for bad in [&b""[..], b"?", b"W{}", b"S", b"X["] {
            assert!(FromHost::read(Bytes::copy_from_slice(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn text_of_a_terminal_is_safe_to_print() {
        let hostile = TerminalInfo {
            command: vec!["a\x1b]0;x\x07".into(); 100],
            cwd: "/\u{202e}".into(),
            title: "t\n".repeat(500),
            ..info()
        };
        let welcome = FromHost::Welcome(Box::new(TerminalWelcome { version: 1, terminal: hostile })).to_bytes();
        let Ok(FromHost::Welcome(read)) = FromHost::read(welcome.slice(HEAD..)) else { panic!("a welcome") };
        let all = format!("{}{}{}", read.terminal.command.concat(), read.terminal.cwd, read.terminal.title);
        assert!(!all.chars().any(|c| c.is_control() || c == '\u{202e}'), "{all:?}");
        assert!(read.terminal.command.len() <= ARGUMENTS_MAX && read.terminal.title.chars().count() <= TEXT_MAX + 1);
    }

    proptest! {
        #[test]
        fn bytes_of_a_stranger_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for mut decoder in [MessageDecoder::to_host(), MessageDecoder::from_host()] {
                decoder.buffer().extend_from_slice(&bytes);
                while let Ok(Some(message)) = decoder.message() {
                    let _ = ToHost::read(message.clone());
                    let _ = FromHost::read(message);
                }
            }
        }
    }
}
