//! Attachments of the gateway: for a page that shows a terminal, and for keys that answer an agent's question in one.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::folder::{self, TerminalError};
use crate::host::TYPE_IF_WAIT;
use crate::wire::{
    AttachmentRole, FromHost, Hello, INPUT_MAX, MessageDecoder, TerminalInfo, ToHost, TypeIf, TypeIfOutcome,
};
use plexus_protocol::TerminalId;

/// Time that input may wait for a program that does not read; then it is refused.
pub const INPUT_WAIT: Duration = Duration::from_secs(30);

/// The reason why input was refused.
#[derive(Debug, thiserror::Error)]
pub enum InputRefused {
    /// The program does not read.
    #[error("the program has read nothing for {} s: the input is lost", INPUT_WAIT.as_secs())]
    NotRead,
    /// The terminal no longer exists.
    #[error("the terminal has ended ({0})")]
    Ended(io::Error),
}

/// The gateway's reading side of a terminal.
#[derive(Debug)]
pub struct TerminalReader {
    read: OwnedReadHalf,
    decoder: MessageDecoder,
}

/// The gateway's writing side of a terminal. Cheap to clone; messages keep their order.
#[derive(Clone, Debug)]
pub struct TerminalWriter(Arc<Mutex<OwnedWriteHalf>>);

/// Attaches to a terminal.
///
/// # Errors
/// Returns a [`TerminalError`].
pub async fn attach(
    dir: &Path,
    id: &TerminalId,
    types: bool,
) -> Result<(TerminalInfo, TerminalReader, TerminalWriter), TerminalError> {
    let path = folder::socket(dir, id);
    let id = id.to_string();
    let role = if types { AttachmentRole::Type } else { AttachmentRole::Watch };
    let unusable = {
        let path = path.clone();
        move |why: &dyn std::fmt::Display| TerminalError::Unusable { path: path.clone(), why: why.to_string() }
    };
    // This blocks until the holder answers.
    let greeted = tokio::task::spawn_blocking(move || {
        let stream = folder::connect(&path, &id)?;
        let (info, decoder) = folder::greet(&stream, &path, Hello::new(role, None))?;
        Ok::<_, TerminalError>((stream, info, decoder))
    });
    let (stream, info, decoder) = greeted.await.map_err(|why| unusable(&why))??;
    stream.set_nonblocking(true).map_err(|why| unusable(&why))?;
    let (read, write) = UnixStream::from_std(stream).map_err(|why| unusable(&why))?.into_split();
    Ok((info, TerminalReader { read, decoder }, TerminalWriter(Arc::new(Mutex::new(write)))))
}

impl TerminalReader {
    /// Waits for the next message; a broken connection results in [`FromHost::Bye`]. `room` is called with the number
    /// of bytes of memory before they are read; if it refuses, the connection ends with its reason. Cancellation safe.
    pub async fn next(&mut self, mut room: impl FnMut(usize) -> Result<(), String>) -> FromHost {
        loop {
            match self.decoder.message().and_then(|message| message.map(FromHost::read).transpose()) {
                Ok(Some(message)) => return message,
                Ok(None) => {}
                Err(why) => return FromHost::Bye(why.to_string()),
            }
            if let Err(why) = room(self.decoder.needs()) {
                return FromHost::Bye(why);
            }
            match self.read.read_buf(self.decoder.buffer()).await {
                Ok(1..) => {}
                Ok(0) => return FromHost::Bye("the terminal has ended".into()),
                Err(why) => return FromHost::Bye(format!("the terminal has ended ({why})")),
            }
        }
    }
}

impl TerminalWriter {
    /// Sends typed input; waits until the program reads.
    ///
    /// # Errors
    /// Returns [`InputRefused`].
    pub async fn input(&self, bytes: Bytes) -> Result<(), InputRefused> {
        let mut write = self.0.lock().await;
        for offset in (0..bytes.len()).step_by(INPUT_MAX) {
            let piece = bytes.slice(offset..bytes.len().min(offset + INPUT_MAX));
            Self::write(&mut write, &ToHost::Input(piece)).await?;
        }
        Ok(())
    }

    /// Sends another message.
    ///
    /// # Errors
    /// Returns [`InputRefused`].
    pub async fn send(&self, message: &ToHost) -> Result<(), InputRefused> {
        Self::write(&mut *self.0.lock().await, message).await
    }

    async fn write(write: &mut OwnedWriteHalf, message: &ToHost) -> Result<(), InputRefused> {
        let written = timeout(INPUT_WAIT, write.write_all(&message.to_bytes())).await;
        match written {
            Ok(written) => written.map_err(InputRefused::Ended),
            Err(_) => {
                // A part of a message may have been sent: no other message can follow.
                let _ = write.shutdown().await;
                Err(InputRefused::NotRead)
            }
        }
    }
}

/// Time that a holder may take for [`type_if`]: it waits for the right moment, and then until the input is read.
const OUTCOME_WAIT: Duration = Duration::from_secs(5 * TYPE_IF_WAIT.as_secs() + 2);

/// Has the holder of a terminal type keys if its screen shows the dialog or line for them. Blocks for some seconds at most.
///
/// # Errors
/// Returns a [`TerminalError`]; for [`TerminalError::Unusable`] it is unknown whether the keys were typed.
pub fn type_if(dir: &Path, id: &TerminalId, wanted: TypeIf) -> Result<TypeIfOutcome, TerminalError> {
    let path = folder::socket(dir, id);
    let unusable = |why: &dyn std::fmt::Display| TerminalError::Unusable { path: path.clone(), why: why.to_string() };
    let stream = folder::connect(&path, id.as_str())?;
    let (_, mut decoder) = folder::greet(&stream, &path, Hello::new(AttachmentRole::TypeIf, None))?;
    let until = Instant::now() + OUTCOME_WAIT;
    stream.set_write_timeout(Some(OUTCOME_WAIT)).map_err(|why| unusable(&why))?;
    (&stream).write_all(&ToHost::TypeIf(wanted).to_bytes()).map_err(|why| unusable(&why))?;
    let mut buffer = vec![0; 4 << 10];
    loop {
        if let Some(message) = decoder.message().map_err(|why| unusable(&why))? {
            match FromHost::read(message).map_err(|why| unusable(&why))? {
                FromHost::TypeIf(outcome) => return Ok(outcome),
                FromHost::Exited(_) => return Err(TerminalError::NotFound(id.to_string())),
                FromHost::Bye(why) => return Err(unusable(&why)),
                _ => continue,
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(unusable(&"it does not answer"));
        }
        stream.set_read_timeout(Some(left)).map_err(|why| unusable(&why))?;
        match (&stream).read(&mut buffer) {
            Ok(0) => return Err(unusable(&"it closed the connection")),
            Ok(read) => decoder.buffer().extend_from_slice(&buffer[..read]),
            Err(why) if matches!(why.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(why) => return Err(unusable(&why)),
        }
    }
}
