//! `plexus bridge acp`: presents the running gateway as an agent to an editor. This file does the I/O: lines on stdin and stdout, the
//! gateway's `/acp` WebSocket, and reconnects; `AcpProxy` decides what to forward.

use std::io::Write as _;
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tungstenite::Message;

use plexus_client::liveness::LivenessSocket;
use plexus_client::{Backoff, Client, Error, closed};
use plexus_protocol::text::clean;
use plexus_protocol::{RuntimeId, SessionId};

use proxy::{AcpProxy, ProxyOutput};

mod proxy;
#[cfg(test)]
mod tests;

/// The path of the gateway's ACP WebSocket.
const PATH: &str = "/acp";
/// Maximum length of an editor's line, in bytes: the gateway's limit minus the bridge's additions. A longer line is answered with an error.
const LINE_MAX: usize = (16 << 20) - (4 << 10);
/// Number of bytes stored of a longer line, to find its id.
const PREFIX_MAX: usize = 4 << 10;
/// Maximum number of lines read ahead; at this many the editor is not read.
const LINES_QUEUED: usize = 64;
/// Maximum number of messages queued for the editor; at this many the gateway is not read.
const MESSAGES_QUEUED: usize = 64;
/// Timeout of closing the connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A line of the editor.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// The beginning of a line longer than [`LINE_MAX`].
    TooLong(Vec<u8>),
}

/// Serves the editor on stdin and stdout until it closes stdin. Its first new session joins `session`, further ones are opened in
/// `runtime`, if given.
///
/// # Errors
/// The gateway was not reached, or refuses this client ([`plexus_client::Error`]); or the system provides no random numbers.
pub async fn serve(client: Client, session: Option<SessionId>, runtime: Option<RuntimeId>) -> anyhow::Result<()> {
    let (mut lines, editor_closed) = reader();
    // A connection must send `initialize` soon, so connect only once the editor has sent it.
    let Some(first_line) = lines.recv().await else { return Ok(()) };
    let socket = client.socket(PATH).await?;
    let (editor, writing) = writer();
    let proxy = AcpProxy::new(name()?, session.map(|id| id.to_string()), runtime.map(|id| id.to_string()));
    let mut bridge = Bridge {
        client,
        proxy,
        out: ProxyOutput::default(),
        first_line: Some(first_line),
        lines,
        editor_closed,
        editor,
    };
    let outcome = bridge.run(socket).await;
    // Queued messages are still written; an editor that does not read them has exited.
    drop(bridge);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, writing).await;
    outcome
}

/// Makes a unique name of this bridge.
fn name() -> anyhow::Result<String> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random)
        .map_err(|reason| anyhow::anyhow!("the system provides no random numbers: {reason}"))?;
    Ok(format!("bridge-{}", data_encoding::HEXLOWER.encode(&random)))
}

/// Reads the editor's lines; reports the end of stdin at once, even if lines are queued.
fn reader() -> (mpsc::Receiver<Line>, watch::Receiver<bool>) {
    let (tx, rx) = mpsc::channel(LINES_QUEUED);
    let (editor_closed_tx, editor_closed) = watch::channel(false);
    tokio::spawn(async move {
        let mut stdin = BufReader::new(tokio::io::stdin());
        // An error of stdin counts as its end.
        while let Ok(Some(line)) = next_line(&mut stdin, LINE_MAX).await {
            if tx.send(line).await.is_err() {
                return;
            }
        }
        editor_closed_tx.send_replace(true);
    });
    (rx, editor_closed)
}

/// Reads the next line that is not empty, without its line feed; `None` at the end of the stream.
async fn next_line(input: &mut (impl tokio::io::AsyncBufRead + Unpin), limit: usize) -> std::io::Result<Option<Line>> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let buffer = input.fill_buf().await?;
        let (consumed, ended) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        let text = buffer.get(..consumed).unwrap_or_default();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if !too_long {
            line.extend_from_slice(text);
        }
        if line.len() > limit {
            too_long = true;
            line.truncate(PREFIX_MAX);
            line.shrink_to_fit();
        }
        input.consume(consumed);
        if !ended {
            continue;
        }
        if too_long {
            return Ok(Some(Line::TooLong(line)));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Line::Whole(line)));
        }
        if consumed == 0 {
            return Ok(None);
        }
        line.clear();
    }
}

/// Writes to the editor. The channel closes when the editor has exited.
fn writer() -> (mpsc::Sender<String>, JoinHandle<()>) {
    let (tx, mut rx) = mpsc::channel::<String>(1);
    let writing = tokio::spawn(async move {
        let mut stdout = tokio::io::stdout();
        while let Some(mut line) = rx.recv().await {
            line.push('\n');
            if stdout.write_all(line.as_bytes()).await.is_err() || stdout.flush().await.is_err() {
                return;
            }
        }
    });
    (tx, writing)
}

/// The reason why a connection ended.
enum End {
    /// The editor has exited.
    Left,
    /// The connection to the gateway was lost, for this reason.
    Lost(String),
}

struct Bridge {
    client: Client,
    proxy: AcpProxy,
    out: ProxyOutput,
    /// The editor's first line, which was read before there was a connection.
    first_line: Option<Line>,
    lines: mpsc::Receiver<Line>,
    editor_closed: watch::Receiver<bool>,
    editor: mpsc::Sender<String>,
}

impl Bridge {
    /// Runs until the editor exits.
    ///
    /// # Errors
    /// The gateway refuses this client.
    async fn run(&mut self, mut socket: LivenessSocket) -> anyhow::Result<()> {
        loop {
            let reason = match self.connected(socket).await? {
                End::Left => return Ok(()),
                End::Lost(reason) => reason,
            };
            self.proxy.disconnected(&mut self.out);
            self.out.log.push(format!("the connection to the gateway was lost ({reason}); reconnecting"));
            self.log();
            match self.reconnect().await? {
                Some(again) => socket = again,
                None => return Ok(()),
            }
            self.out.log.push("the gateway is back".into());
        }
    }

    /// Runs one connection; returns the reason why it ended.
    async fn connected(&mut self, socket: LivenessSocket) -> anyhow::Result<End> {
        let (sink, mut from_gateway) = socket.split();
        let (gateway, messages) = mpsc::channel(1);
        let sender = tokio::spawn(write_messages(sink, messages));
        self.proxy.connected(&mut self.out);
        let end = loop {
            self.log();
            let out = &mut self.out;
            let first_line = &mut self.first_line;
            let lines = &mut self.lines;
            let line = async {
                match first_line.take() {
                    Some(first_line) => Some(first_line),
                    None => lines.recv().await,
                }
            };
            tokio::select! {
                room = self.editor.reserve(), if !out.editor.is_empty() => match (room, out.editor.pop_front()) {
                    (Ok(room), Some(line)) => room.send(line),
                    (Ok(_), None) => {}
                    (Err(_), _) => break End::Left,
                },
                room = gateway.reserve(), if !out.gateway.is_empty() => match (room, out.gateway.pop_front()) {
                    (Ok(room), Some(message)) => room.send(message),
                    (Ok(_), None) => {}
                    (Err(_), _) => break End::Lost("nothing is listening there".into()),
                },
                message = from_gateway.next(), if out.editor.len() < MESSAGES_QUEUED => match message {
                    Some(Ok(Message::Text(text))) => self.proxy.gateway(&text, out),
                    Some(Ok(Message::Close(frame))) => match closed(frame.as_ref()) {
                        Error::Lost(reason) => break End::Lost(reason),
                        error => return Err(error.into()),
                    },
                    Some(Ok(_)) => {}
                    Some(Err(reason)) => break End::Lost(reason.to_string()),
                    None => break End::Lost("closed".into()),
                },
                line = line, if self.proxy.is_ready() && out.gateway.is_empty() => match line {
                    Some(line) => forward(&mut self.proxy, line, out),
                    None => break End::Left,
                },
                _ = self.editor_closed.wait_for(|closed| *closed), if !self.proxy.is_ready() => break End::Left,
                () = self.editor.closed() => break End::Left,
            }
        };
        if let End::Left = end {
            // The editor's last messages are still sent: a cancellation, an answer.
            let last = async {
                while let Some(message) = self.out.gateway.pop_front() {
                    if gateway.send(message).await.is_err() {
                        return;
                    }
                }
                drop(gateway);
                let _ = sender.await;
                // Waits for the gateway's closing handshake.
                while let Some(Ok(_)) = from_gateway.next().await {}
            };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, last).await;
        } else {
            sender.abort();
        }
        Ok(end)
    }

    /// Waits for the gateway; `None` if the editor has exited.
    async fn reconnect(&mut self) -> anyhow::Result<Option<LivenessSocket>> {
        let mut backoff = Backoff::default();
        loop {
            let sleep = tokio::time::sleep(backoff.pause());
            tokio::pin!(sleep);
            loop {
                let editor = &mut self.out.editor;
                tokio::select! {
                    room = self.editor.reserve(), if !editor.is_empty() => match (room, editor.pop_front()) {
                        (Ok(room), Some(line)) => room.send(line),
                        (Ok(_), None) => {}
                        (Err(_), _) => return Ok(None),
                    },
                    _ = self.editor_closed.wait_for(|closed| *closed) => return Ok(None),
                    () = self.editor.closed() => return Ok(None),
                    () = &mut sleep => break,
                }
            }
            match self.client.socket(PATH).await {
                Ok(socket) => return Ok(Some(socket)),
                Err(Error::Unreached(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes the log to stderr; an editor shows it in its own log.
    fn log(&mut self) {
        for message in self.out.log.drain(..) {
            let _ = writeln!(std::io::stderr(), "plexus: {}", clean(&message));
        }
    }
}

fn forward(proxy: &mut AcpProxy, line: Line, out: &mut ProxyOutput) {
    match line {
        Line::Whole(line) => match String::from_utf8(line) {
            Ok(line) => proxy.editor(&line, out),
            Err(reason) => AcpProxy::invalid_utf8(reason.as_bytes(), out),
        },
        Line::TooLong(beginning) => AcpProxy::too_long(&beginning, LINE_MAX, out),
    }
}

/// Writes to the gateway until the channel closes; then closes the connection.
async fn write_messages(mut sink: SplitSink<LivenessSocket, Message>, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        if sink.send(Message::text(message)).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}
