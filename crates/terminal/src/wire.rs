//! The messages between the holder of a terminal and its attachments, over a Unix socket: a length (`u32`, little endian, of what
//! follows), a letter for the kind, and the content. Pure.
//!
//! An attachment says [`Hello`] first and gets a [`TerminalWelcome`]. Hello has the versions that it speaks, and the holder chooses.

use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::TerminalSize;
use crate::screen_match::ScreenSection;
use plexus_protocol::{TerminalId, Timestamp};

/// The version of the messages.
pub const VERSION: u8 = 1;

/// Longest input in one message, in bytes; longer input is sent in several.
pub const INPUT_MAX: usize = 64 << 10;

/// Longest message to a holder, in bytes.
const TO_MAX: usize = INPUT_MAX + 1;

/// Longest message of a holder, in bytes: a snapshot of the largest screen, each cell of its own colour.
const FROM_MAX: usize = 32 << 20;

/// Bytes of the length.
const HEAD: usize = 4;

/// Longest text of a [`TerminalInfo`], in characters; the rest is left out.
const TEXT_MAX: usize = 400;

/// Most arguments of a [`TerminalInfo`]; further ones are left out.
const ARGUMENTS_MAX: usize = 64;

/// The permissions of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentRole {
    /// Ask what it is; the connection then ends.
    Info,
    /// See the screen.
    Watch,
    /// See it and type.
    Type,
    /// A person's terminal: it sees, types, and is the owner from now on.
    Terminal,
    /// Type keys where the screen shows what they are for; it does not see the screen itself.
    TypeIf,
    /// End the program; the connection then ends.
    Kill,
}

/// The first message of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version that it speaks.
    pub oldest: u8,
    /// The newest.
    pub newest: u8,
    /// The requested role.
    pub role: AttachmentRole,
    /// The size, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
    /// `true` if it shows the program's output from the first byte on, on the screen as it is: the terminal that started it. No snapshot
    /// is then needed.
    #[serde(default)]
    pub first: bool,
}

impl Hello {
    /// Of this version.
    pub fn new(role: AttachmentRole, size: Option<TerminalSize>) -> Self {
        Self { oldest: VERSION, newest: VERSION, role, size, first: false }
    }
}

/// The end of a program: by one of the two, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalExit {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The description of a shared terminal. All text in it is safe to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalInfo {
    /// The identifier.
    pub terminal_id: TerminalId,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that it was started in.
    pub cwd: String,
    /// The title that the program gave it; empty if it gave none.
    pub title: String,
    /// The program's process id.
    pub pid: u32,
    /// The time when it was started.
    pub started_at: Timestamp,
    /// The size.
    pub size: TerminalSize,
    /// Screens that show it now, each window or page one.
    pub attached: usize,
    /// The end of the program; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exited: Option<TerminalExit>,
}

impl TerminalInfo {
    /// The same, with every text cut and safe to print, whoever wrote it.
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
    /// The version that is spoken.
    pub version: u8,
    /// The terminal that it holds.
    pub terminal: TerminalInfo,
}

/// The standing of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentStanding {
    /// The terminal's size.
    pub size: TerminalSize,
    /// `true` if this attachment is the owner.
    pub owner: bool,
    /// `true` if it gets the output as it comes, which only the owner's terminal does; else what viewers get.
    pub raw: bool,
}

/// Keys to type, and what the screen has to show for that. It is looked at when it has come to rest and nobody types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeIf {
    /// The last sections of the screen.
    pub shows: Vec<ScreenSection>,
    /// The keys.
    pub keys: String,
    /// Further keys, once the program has taken these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<ThenKeys>,
    /// `true` if the keys answer a dialog: then answers of people that come a moment later are left out.
    #[serde(default)]
    pub answers: bool,
}

/// Keys that follow others, and what the screen has to show for that. They are typed again where the screen goes on showing it.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A message of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// The first.
    Hello(Hello),
    /// Keys.
    Input(Bytes),
    /// The window has another size now.
    Resize(TerminalSize),
    /// The attachment wants to be the owner, with this size.
    Own(TerminalSize),
    /// The attachment needs a snapshot.
    Refresh,
    /// Keys that are typed if the screen shows what they are for.
    TypeIf(TypeIf),
}

/// A message of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromHost {
    /// The first.
    Welcome(Box<TerminalWelcome>),
    /// The standing of the attachment from here on.
    Standing(AttachmentStanding),
    /// The output that draws the screen on an empty terminal. Everything before it is void.
    Snapshot(Bytes),
    /// Output.
    Output(Bytes),
    /// The outcome of keys.
    TypeIf(TypeIfOutcome),
    /// The program ended, and all its output was sent. The last message.
    Exited(TerminalExit),
    /// The connection ends, with the reason. The last message.
    Bye(String),
}

/// The read bytes are no message. The connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// The message is longer than any.
    #[error("a message of {0} bytes, which is longer than any: another program's, or a damaged one")]
    TooLong(usize),
    /// The message has no kind, or one that is not known.
    #[error("a message of an unknown kind: use the plexus that started the terminal")]
    UnknownKind,
    /// The content does not fit.
    #[error("a message that is not understood ({0}): use the plexus that started the terminal")]
    Content(String),
}

fn frame(kind: u8, content: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(HEAD + 1 + content.len());
    // A message is far shorter than 4 GiB: its maker cuts it.
    out.extend_from_slice(&u32::try_from(content.len() + 1).unwrap_or(u32::MAX).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(content);
    out.into()
}

fn json(kind: u8, content: &impl Serialize) -> Bytes {
    // Nothing here fails to be written.
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
    /// The message as it is sent.
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

    /// Reads a message that [`MessageDecoder`] cut out.
    ///
    /// # Errors
    /// It is none.
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
    /// The message as it is sent.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Welcome(welcome) => json(b'W', welcome),
            Self::Standing(standing) => json(b'S', standing),
            Self::Snapshot(bytes) => frame(b'N', bytes),
            Self::Output(bytes) => frame(b'P', bytes),
            Self::TypeIf(outcome) => json(b'T', outcome),
            Self::Exited(exit) => json(b'X', exit),
            Self::Bye(why) => frame(b'B', why.as_bytes()),
        }
    }

    /// Reads a message that [`MessageDecoder`] cut out.
    ///
    /// # Errors
    /// It is none.
    pub fn read(mut message: Bytes) -> Result<Self, BadMessage> {
        let kind = *message.first().ok_or(BadMessage::UnknownKind)?;
        let content = message.split_off(1);
        Ok(match kind {
            b'W' => {
                let TerminalWelcome { version, terminal } = read_json(&content)?;
                Self::Welcome(Box::new(TerminalWelcome { version, terminal: terminal.printable() }))
            }
            b'S' => Self::Standing(read_json(&content)?),
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
    /// For what attachments send.
    pub fn to_host() -> Self {
        Self { buffer: BytesMut::new(), max: TO_MAX }
    }

    /// For what a holder sends.
    pub fn from_host() -> Self {
        Self { buffer: BytesMut::new(), max: FROM_MAX }
    }

    /// Returns the buffer for the next bytes.
    pub fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(INPUT_MAX);
        &mut self.buffer
    }

    /// Bytes that it will hold once the message that has begun is whole, and a read more.
    pub fn needs(&self) -> usize {
        let head = self.buffer.first_chunk::<HEAD>();
        let length = head.map_or(0, |head| HEAD + (u32::from_le_bytes(*head) as usize).min(self.max));
        length.max(self.buffer.len()) + INPUT_MAX
    }

    /// The next whole message.
    ///
    /// # Errors
    /// It is too long.
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
            FromHost::Standing(AttachmentStanding { size: SIZE, owner: true, raw: false }),
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
                decoder.room().extend_from_slice(chunk);
                while let Some(message) = decoder.message().unwrap() {
                    read.push(ToHost::read(message).unwrap());
                }
            }
            assert_eq!(read, to_host());
        }
        let mut decoder = MessageDecoder::from_host();
        for message in from_host() {
            decoder.room().extend_from_slice(&message.to_bytes());
            assert_eq!(FromHost::read(decoder.message().unwrap().unwrap()).unwrap(), message);
        }
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        let mut decoder = MessageDecoder::to_host();
        decoder.room().extend_from_slice(&u32::MAX.to_le_bytes());
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
                decoder.room().extend_from_slice(&bytes);
                while let Ok(Some(message)) = decoder.message() {
                    let _ = ToHost::read(message.clone());
                    let _ = FromHost::read(message);
                }
            }
        }
    }
}
