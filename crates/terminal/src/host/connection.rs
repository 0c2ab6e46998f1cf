//! Connections to a holder: the check of their user, and the tasks that read and write them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::Event;
use super::outgoing::Outgoing;
use super::type_if::Typing;
use crate::wire::{BadMessage, Hello, MessageDecoder, ToHost};

/// Time that a connection may take to send its hello.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of connections without a hello; further ones wait in the backlog.
const UNKNOWN_MAX: usize = 16;

/// Pause after a failed accept (no descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// A connection that sent its hello.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    decoder: MessageDecoder,
}

/// Accepts connections of this user, forever.
pub(super) async fn accept(listener: UnixListener, events: mpsc::Sender<Event>) {
    let unknown = Arc::new(Semaphore::new(UNKNOWN_MAX));
    loop {
        let Ok(permit) = Arc::clone(&unknown).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // The folder and the socket are closed to others; this check holds if they were opened to them.
        let is_own_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
        if !is_own_user {
            continue;
        }
        let events = events.clone();
        tokio::spawn(async move {
            let mut connection = Connection { stream, decoder: MessageDecoder::to_host() };
            if let Ok(Some(hello)) = timeout(HELLO_WAIT, connection.hello()).await {
                drop(permit);
                let _ = events.send(Event::Joined(hello, connection)).await;
            }
        });
    }
}

impl Connection {
    /// Reads the hello; `None` if the first message is another one, or the connection ended.
    async fn hello(&mut self) -> Option<Hello> {
        loop {
            if let Some(message) = self.decoder.message().ok()? {
                return match ToHost::read(message).ok()? {
                    ToHost::Hello(hello) => Some(hello),
                    _ => None,
                };
            }
            if self.stream.read_buf(self.decoder.buffer()).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Serves the connection: typed input is sent to `input` (if it may type), all other messages to `events`.
    pub(super) fn serve(
        self,
        id: u64,
        outgoing: Arc<Outgoing>,
        input: Option<(mpsc::Sender<Bytes>, Typing)>,
        events: mpsc::Sender<Event>,
        message_taken: Arc<Notify>,
    ) -> [JoinHandle<()>; 2] {
        let (mut read, write) = self.stream.into_split();
        let mut decoder = self.decoder;
        let writing = tokio::spawn(outgoing.send(id, write, events.clone(), message_taken));
        let reading = tokio::spawn(async move {
            loop {
                match next(&mut decoder) {
                    Ok(Some(ToHost::Input(bytes))) => {
                        if let Some((input, typing)) = input.as_ref().filter(|_| !bytes.is_empty())
                            && typing.takes(&bytes, Instant::now())
                        {
                            // The sender waits for the program. The send fails if the program has ended.
                            let _ = input.send(bytes).await;
                        }
                    }
                    Ok(Some(message)) => {
                        if events.send(Event::Message(id, message)).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => match read.read_buf(decoder.buffer()).await {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => break,
                    },
                    Err(_) => break,
                }
            }
            let _ = events.send(Event::Disconnected(id)).await;
        });
        [reading, writing]
    }
}

fn next(decoder: &mut MessageDecoder) -> Result<Option<ToHost>, BadMessage> {
    decoder.message()?.map(ToHost::read).transpose()
}
