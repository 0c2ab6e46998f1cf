//! `plexus bridge acp`: an editor's agent that is the running gateway. Here is the I/O: lines on stdin and stdout, the
//! gateway's `/acp` WebSocket, and coming back to it; what passes between them is the proxy's.

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

/// Where the gateway speaks ACP.
const PATH: &str = "/acp";
/// Longest line of an editor's, in bytes: what the gateway takes in one message, less what the bridge adds to it. A longer
/// one is answered with an error.
const LINE_MAX: usize = (16 << 20) - (4 << 10);
/// What is kept of a longer line, to find its id.
const BEGINNING: usize = 4 << 10;
/// Lines of the editor's that were read ahead; then it is not read, and waits.
const AHEAD: usize = 64;
/// Messages for the editor that wait to be written; then the gateway is not read, and waits.
const BACKLOG: usize = 64;
/// How long a goodbye to the gateway may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// What the editor sent.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// Longer than [`LINE_MAX`]; what it begins with.
    TooLong(Vec<u8>),
}

/// Serves the editor on stdin and stdout until it leaves: its first new session is `session`, its others are opened in
/// `runtime`, where they are given.
///
/// # Errors
/// The gateway was not reached, or does not want this client any more ([`plexus_client::Error`]); no randomness.
pub async fn serve(client: Client, session: Option<SessionId>, runtime: Option<RuntimeId>) -> anyhow::Result<()> {
    let (mut lines, gone) = reader();
    // Who connects must say hello soon: not before the editor does.
    let Some(first) = lines.recv().await else { return Ok(()) };
    let socket = client.socket(PATH).await?;
    let (editor, writing) = writer();
    let passing = AcpProxy::new(name()?, session.map(|id| id.to_string()), runtime.map(|id| id.to_string()));
    let mut pipe = Pipe { client, passing, out: ProxyOutput::default(), first: Some(first), lines, gone, editor };
    let outcome = pipe.run(socket).await;
    // What was said to the editor is on its way out; if it does not read, it is gone.
    drop(pipe);
    let _ = tokio::time::timeout(GOODBYE, writing).await;
    outcome
}

/// A name that no other bridge has.
fn name() -> anyhow::Result<String> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|why| anyhow::anyhow!("the system provides no random numbers: {why}"))?;
    Ok(format!("bridge-{}", data_encoding::HEXLOWER.encode(&random)))
}

/// Reads the editor's lines; tells at once when it has left, even if lines wait.
fn reader() -> (mpsc::Receiver<Line>, watch::Receiver<bool>) {
    let (tx, rx) = mpsc::channel(AHEAD);
    let (gone_tx, gone) = watch::channel(false);
    tokio::spawn(async move {
        let mut stdin = BufReader::new(tokio::io::stdin());
        // An error of stdin is its end: there is nobody to hear of it.
        while let Ok(Some(line)) = next_line(&mut stdin, LINE_MAX).await {
            if tx.send(line).await.is_err() {
                return;
            }
        }
        gone_tx.send_replace(true);
    });
    (rx, gone)
}

/// The next line that is not empty, without its end; `None` at the end of the stream.
async fn next_line(input: &mut (impl tokio::io::AsyncBufRead + Unpin), most: usize) -> std::io::Result<Option<Line>> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let some = input.fill_buf().await?;
        let (taken, ended) = match memchr::memchr(b'\n', some) {
            Some(at) => (at + 1, true),
            None => (some.len(), some.is_empty()),
        };
        let text = some.get(..taken).unwrap_or_default();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if !too_long {
            line.extend_from_slice(text);
        }
        if line.len() > most {
            too_long = true;
            line.truncate(BEGINNING);
            line.shrink_to_fit();
        }
        input.consume(taken);
        if !ended {
            continue;
        }
        if too_long {
            return Ok(Some(Line::TooLong(line)));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Line::Whole(line)));
        }
        if taken == 0 {
            return Ok(None);
        }
        line.clear();
    }
}

/// Writes to the editor. Its channel closes when the editor is gone.
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

/// How a connection ended.
enum End {
    /// The editor is gone.
    Left,
    /// The gateway is gone; why.
    Lost(String),
}

struct Pipe {
    client: Client,
    passing: AcpProxy,
    out: ProxyOutput,
    /// What the editor said before there was a connection.
    first: Option<Line>,
    lines: mpsc::Receiver<Line>,
    gone: watch::Receiver<bool>,
    editor: mpsc::Sender<String>,
}

impl Pipe {
    /// Until the editor leaves.
    ///
    /// # Errors
    /// The gateway does not want us any more.
    async fn run(&mut self, mut socket: LivenessSocket) -> anyhow::Result<()> {
        loop {
            let why = match self.connected(socket).await? {
                End::Left => return Ok(()),
                End::Lost(why) => why,
            };
            self.passing.down(&mut self.out);
            self.out.aside.push(format!("the connection to the gateway was lost ({why}); waiting for it to come back"));
            self.aside();
            match self.apart().await? {
                Some(again) => socket = again,
                None => return Ok(()),
            }
            self.out.aside.push("the gateway is back".into());
        }
    }

    /// One connection's life.
    async fn connected(&mut self, socket: LivenessSocket) -> anyhow::Result<End> {
        let (sink, mut heard) = socket.split();
        let (gateway, told) = mpsc::channel(1);
        let telling = tokio::spawn(write_messages(sink, told));
        self.passing.up(&mut self.out);
        let end = loop {
            self.aside();
            let out = &mut self.out;
            let first = &mut self.first;
            let lines = &mut self.lines;
            let line = async {
                match first.take() {
                    Some(first) => Some(first),
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
                message = heard.next(), if out.editor.len() < BACKLOG => match message {
                    Some(Ok(Message::Text(text))) => self.passing.gateway(&text, out),
                    Some(Ok(Message::Close(frame))) => match closed(frame.as_ref()) {
                        Error::Lost(why) => break End::Lost(why),
                        error => return Err(error.into()),
                    },
                    Some(Ok(_)) => {}
                    Some(Err(why)) => break End::Lost(why.to_string()),
                    None => break End::Lost("closed".into()),
                },
                line = line, if self.passing.through() && out.gateway.is_empty() => match line {
                    Some(line) => take(&mut self.passing, line, out),
                    None => break End::Left,
                },
                _ = self.gone.wait_for(|gone| *gone), if !self.passing.through() => break End::Left,
                () = self.editor.closed() => break End::Left,
            }
        };
        if let End::Left = end {
            // The last words of an editor: a cancel, an answer.
            let last = async {
                while let Some(message) = self.out.gateway.pop_front() {
                    if gateway.send(message).await.is_err() {
                        return;
                    }
                }
                drop(gateway);
                let _ = telling.await;
                // The other side's goodbye.
                while let Some(Ok(_)) = heard.next().await {}
            };
            let _ = tokio::time::timeout(GOODBYE, last).await;
        } else {
            telling.abort();
        }
        Ok(end)
    }

    /// Waits for the gateway; `None`: the editor is gone.
    async fn apart(&mut self) -> anyhow::Result<Option<LivenessSocket>> {
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
                    _ = self.gone.wait_for(|gone| *gone) => return Ok(None),
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

    /// Tells whoever reads stderr; an editor shows it in its log.
    fn aside(&mut self) {
        for words in self.out.aside.drain(..) {
            let _ = writeln!(std::io::stderr(), "plexus: {}", clean(&words));
        }
    }
}

fn take(passing: &mut AcpProxy, line: Line, out: &mut ProxyOutput) {
    match line {
        Line::Whole(line) => match String::from_utf8(line) {
            Ok(line) => passing.editor(&line, out),
            Err(why) => AcpProxy::no_text(why.as_bytes(), out),
        },
        Line::TooLong(beginning) => AcpProxy::too_long(&beginning, LINE_MAX, out),
    }
}

/// Writes to the gateway until there is nothing more to say; then says goodbye.
async fn write_messages(mut sink: SplitSink<LivenessSocket, Message>, mut told: mpsc::Receiver<String>) {
    while let Some(message) = told.recv().await {
        if sink.send(Message::text(message)).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}
