//! Following events over the native WebSocket: attaches, and comes back with its cursor for ever. And single calls.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use plexus_protocol::Cursor;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message};

use plexus_client::liveness::{CountedSocket, LivenessSocket, Patience};

use super::client::Client;
use super::{CommandFailure, NOT_PERMITTED};

/// Longest message taken, in bytes: an event can be as long as a runtime's longest line, and is wrapped.
const MESSAGE_MAX: usize = 1 << 30;
/// How long connecting and the first answers may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The first pause before coming back; it doubles.
pub(super) const BACKOFF: Duration = Duration::from_millis(200);
/// The longest pause before coming back.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// What was heard and not yet taken, in messages; then the socket is not read, and the gateway waits.
const AHEAD: usize = 256;
/// Items of a page, where the latest of a session is looked for …
const LATEST_PAGE: usize = 500;
/// … and bytes that are read for that; a run that is longer is told from somewhere in it.
const LATEST_BYTES: usize = 8 << 20;
/// Close codes after which coming back is no use: the token was revoked, or may not do this.
pub(super) const DO_NOT_COME_BACK: [u16; 2] = [4001, 4003];

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// The oldest event kept.
    Start,
    /// What happens from now on.
    Now,
    /// After this cursor.
    After(String),
    /// With the latest runs: so many of them, or as many as have so many items (chunks of a message are one).
    Latest { runs: usize, items: usize },
}

/// An event, as far as the commands read it, and its text as it came.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) raw: Box<RawValue>,
    pub(crate) session_id: String,
    pub(crate) run_id: String,
    pub(crate) cursor: String,
    pub(crate) kind: String,
    pub(crate) event: Value,
    pub(crate) runtime_id: String,
    pub(crate) dialect: String,
    /// What the runtime itself said, if that was asked for.
    pub(crate) native: Option<Box<RawValue>>,
}

impl Envelope {
    /// Reads an envelope; `None` if it is none.
    pub(crate) fn read(raw: Box<RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wire {
            session_id: String,
            #[serde(default)]
            run_id: String,
            cursor: String,
            kind: String,
            #[serde(default)]
            event: Value,
            #[serde(default)]
            meta: Meta,
            native: Option<Box<RawValue>>,
        }
        #[derive(Default, Deserialize)]
        struct Meta {
            #[serde(default)]
            runtime_id: String,
            #[serde(default)]
            dialect: String,
        }
        let Wire { session_id, run_id, cursor, kind, event, meta, native } = serde_json::from_str(raw.get()).ok()?;
        let Meta { runtime_id, dialect } = meta;
        Some(Self { raw, session_id, run_id, cursor, kind, event, runtime_id, dialect, native })
    }
}

/// What a follower hears.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// The gateway's greeting after every attach.
    Hello(Value),
    /// What replaces the events that are no longer kept.
    Snapshot(Value),
    /// There is more before what is told, and it was not asked for.
    Older,
    /// An event.
    Event(Box<Envelope>),
    /// Everything from before is told; what follows is new.
    Live,
    /// A session stands differently.
    Session(Value),
    /// The connection is lost; it comes back by itself.
    Lost(String),
}

/// Follows a session, or all (`*`), in a task of its own; the receiver's end ends it. An error is the last thing heard.
pub(crate) fn follow(
    client: Client,
    session: String,
    begin: StreamStart,
) -> mpsc::Receiver<anyhow::Result<StreamEvent>> {
    start(client, session, begin, "canonical")
}

/// As [`follow`], each event with what the runtime itself said.
pub(crate) fn follow_native(
    client: Client,
    session: String,
    begin: StreamStart,
) -> mpsc::Receiver<anyhow::Result<StreamEvent>> {
    start(client, session, begin, "native")
}

fn start(
    client: Client,
    session: String,
    begin: StreamStart,
    projection: &'static str,
) -> mpsc::Receiver<anyhow::Result<StreamEvent>> {
    let (tx, rx) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let mut follower = Follower { client, session, begin, projection, tx, pause: BACKOFF };
        loop {
            let lost = match follower.once().await {
                Ok(lost) => lost,
                Err(StreamEnd::Nobody) => return,
                Err(StreamEnd::Failed(error)) => {
                    let _ = follower.tx.send(Err(error)).await;
                    return;
                }
            };
            if follower.tx.send(Ok(StreamEvent::Lost(lost))).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(follower.pause) => {}
                () = follower.tx.closed() => return,
            }
            follower.pause = (follower.pause * 2).min(BACKOFF_MAX);
            // A gateway that was started again may listen elsewhere.
            if let Ok(running) = follower.client.home.running().await
                && let Ok(client) = Client::to(follower.client.home.clone(), running)
            {
                follower.client = client;
            }
        }
    });
    rx
}

struct Follower {
    client: Client,
    session: String,
    begin: StreamStart,
    projection: &'static str,
    tx: mpsc::Sender<anyhow::Result<StreamEvent>>,
    pause: Duration,
}

/// Why there is no coming back.
enum StreamEnd {
    /// Nobody listens any more.
    Nobody,
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for StreamEnd {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

#[derive(Deserialize)]
struct Rpc {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    error: Option<Value>,
}

impl Follower {
    /// One connection's life; says why it was lost.
    async fn once(&mut self) -> Result<String, StreamEnd> {
        let mut ws = match tokio::time::timeout(PATIENCE, connect(&self.client, "/v1/ws")).await {
            Ok(Ok(ws)) => ws,
            Ok(Err(Connect::Lost(why))) => return Ok(why),
            Ok(Err(Connect::Failed(error))) => return Err(error.into()),
            Err(_) => return Ok("the gateway does not answer".into()),
        };
        if let StreamStart::Latest { runs, items } = self.begin {
            match latest(&self.client, &self.session, runs, items).await {
                Ok(Some(after)) => {
                    self.begin = StreamStart::After(after);
                    self.tx.send(Ok(StreamEvent::Older)).await.map_err(|_| StreamEnd::Nobody)?;
                }
                Ok(None) => self.begin = StreamStart::Start,
                Err(NoReply::Refused(error)) => return Err(following(&error)),
                Err(NoReply::NotSent(why) | NoReply::Lost(why)) => return Ok(why),
            }
        }
        let mut attach = json!({ "session_id": self.session, "projection": self.projection });
        match &self.begin {
            StreamStart::Start | StreamStart::Latest { .. } => attach["from"] = "start".into(),
            StreamStart::Now => attach["from"] = "now".into(),
            StreamStart::After(cursor) => attach["after"] = cursor.as_str().into(),
        }
        let client = json!({ "name": "plexus", "version": env!("CARGO_PKG_VERSION") });
        // Requests are read from the events; answering is done over HTTP.
        let hello = json!({ "protocol_version": "0", "client": client, "ui_capabilities": {} });
        for (id, method, params) in [("1", "initialize", hello), ("2", "session.attach", attach)] {
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            if let Err(why) = ws.send(Message::text(message.to_string())).await {
                return Ok(why.to_string());
            }
        }
        loop {
            let next = tokio::select! {
                next = ws.next() => next,
                () = self.tx.closed() => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), ws.close()).await;
                    return Err(StreamEnd::Nobody);
                }
            };
            let text = match next {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(Some(frame)))) => {
                    let code = u16::from(frame.code);
                    if DO_NOT_COME_BACK.contains(&code) {
                        let message = format!("the gateway closed the connection for good: {}", frame.reason);
                        return Err(StreamEnd::Failed(CommandFailure::new(NOT_PERMITTED, message).into()));
                    }
                    return Ok(format!("closed with code {code} {}", frame.reason));
                }
                Some(Ok(_)) => continue,
                Some(Err(why)) => return Ok(why.to_string()),
                None => return Ok("closed".into()),
            };
            let Ok(rpc) = serde_json::from_str::<Rpc>(&text) else { continue };
            if let Some(heard) = self.understand(rpc)? {
                self.tx.send(Ok(heard)).await.map_err(|_| StreamEnd::Nobody)?;
            }
        }
    }

    fn understand(&mut self, rpc: Rpc) -> Result<Option<StreamEvent>, StreamEnd> {
        let Some(method) = rpc.method.as_deref() else {
            if let Some(error) = rpc.error {
                if rpc.id != Some(json!("1")) {
                    return Err(following(&error));
                }
                let words = error["message"].as_str().unwrap_or("the gateway refused");
                return Err(StreamEnd::Failed(CommandFailure::plain(format!("saying hello: {words}"))));
            }
            return Ok(None);
        };
        let Some(params) = rpc.params else { return Ok(None) };
        let value = || serde_json::from_str::<Value>(params.get()).unwrap_or_default();
        Ok(match method {
            "agent.event" => {
                let Some(envelope) = Envelope::read(params) else { return Ok(None) };
                self.begin = StreamStart::After(envelope.cursor.clone());
                self.pause = BACKOFF;
                Some(StreamEvent::Event(Box::new(envelope)))
            }
            "gateway.hello" => Some(StreamEvent::Hello(value())),
            "gateway.snapshot" => {
                let snapshot = value();
                self.at(&snapshot["cursor"]);
                Some(StreamEvent::Snapshot(snapshot))
            }
            "gateway.live" => {
                self.at(&value()["head"]);
                self.pause = BACKOFF;
                Some(StreamEvent::Live)
            }
            "session.updated" => Some(StreamEvent::Session(value()["session"].take())),
            _ => None,
        })
    }

    fn at(&mut self, cursor: &Value) {
        if let Some(cursor) = cursor.as_str() {
            self.begin = StreamStart::After(cursor.into());
        }
    }
}

/// The session cannot be followed.
fn following(error: &Value) -> StreamEnd {
    let words = error["message"].as_str().unwrap_or("the gateway refused");
    StreamEnd::Failed(CommandFailure::plain(format!("following: {words}")))
}

/// After which cursor the latest of a session begins, read from its end a page at a time; `None`: with its first event. It
/// begins with a run, unless that has more than [`LATEST_BYTES`].
async fn latest(client: &Client, session: &str, runs: usize, items: usize) -> Result<Option<String>, NoReply> {
    let (mut before, mut begun, mut seen, mut bytes) = ("now".to_owned(), 0, 0, 0);
    loop {
        let params = json!({ "session_id": session, "before": before, "limit": LATEST_PAGE, "merge": true });
        let reply = call(client, "session.history", &params).await?;
        bytes += reply.get().len();
        let page: Value = serde_json::from_str(reply.get()).unwrap_or_default();
        let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        for event in events.iter().rev() {
            // Kinds that are told as one event each, or as more.
            let told = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"];
            seen += usize::from(told.iter().any(|kind| event["kind"] == *kind));
            if event["kind"] != "run_started" {
                continue;
            }
            begun += 1;
            if begun >= runs.max(1) || seen >= items {
                // What stands before it, if anything does, belongs to older runs.
                return Ok(event["cursor"].as_str().and_then(cursor_before));
            }
        }
        let Some(previous) = page["previous"].as_str() else { return Ok(None) };
        if bytes >= LATEST_BYTES {
            return Ok(cursor_before(previous));
        }
        previous.clone_into(&mut before);
    }
}

/// The cursor after which the event at this one is the first, or the event that a part of this name is of.
fn cursor_before(cursor: &str) -> Option<String> {
    let cursor = cursor.split_once('+').map_or(cursor, |(cursor, _)| cursor);
    let mut cursor: Cursor = cursor.parse().ok()?;
    cursor.position.0 = cursor.position.0.checked_sub(1)?;
    Some(cursor.to_string())
}

/// Why there is no connection.
pub(super) enum Connect {
    /// It may be there later.
    Lost(String),
    /// Trying again is no use.
    Failed(anyhow::Error),
}

/// A WebSocket to the gateway, as the local administrator.
pub(super) async fn connect(client: &Client, path: &str) -> Result<LivenessSocket, Connect> {
    let lost = |why: std::io::Error| Connect::Lost(why.to_string());
    let authority = client.url().strip_prefix("http://").context("the gateway's address is no http:// address");
    let authority = authority.map_err(Connect::Failed)?;
    let mut request =
        format!("ws://{authority}{path}").into_client_request().map_err(|why| Connect::Failed(why.into()))?;
    let token =
        format!("Bearer {}", client.token()).parse().context("the token file is damaged").map_err(Connect::Failed)?;
    request.headers_mut().insert("authorization", token);
    if let Ok(program) = super::client::program().parse() {
        request.headers_mut().insert("plexus-program", program);
    }
    let socket = TcpStream::connect(authority).await.map_err(lost)?;
    socket.set_nodelay(true).map_err(lost)?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
    match tokio_tungstenite::client_async_with_config(request, CountedSocket::new(socket), Some(config)).await {
        Ok((ws, _)) => Ok(LivenessSocket::new(ws, Patience::default())),
        Err(Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => {
            let message = format!("connecting: the gateway answered {}; is PLEXUS_HOME right?", answer.status());
            Err(Connect::Failed(CommandFailure::new(NOT_PERMITTED, message).into()))
        }
        Err(why) => Err(Connect::Lost(why.to_string())),
    }
}

/// Why a call came to nothing.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The gateway refused, or the runtime did: its JSON-RPC error.
    Refused(Value),
    /// Nothing was sent: it may be tried again.
    NotSent(String),
    /// It was sent, and the connection was lost before the reply.
    Lost(String),
}

/// One call over a connection of its own, for as long as the runtime takes to reply.
///
/// # Errors
/// [`NoReply`].
pub(crate) async fn call(client: &Client, method: &str, params: &Value) -> Result<Box<RawValue>, NoReply> {
    #[derive(Deserialize)]
    struct Reply {
        id: Option<String>,
        method: Option<String>,
        result: Option<Box<RawValue>>,
        error: Option<Value>,
    }
    let mut ws = match tokio::time::timeout(PATIENCE, connect(client, "/v1/ws")).await {
        Ok(Ok(ws)) => ws,
        Ok(Err(Connect::Lost(why))) => return Err(NoReply::NotSent(why)),
        Ok(Err(Connect::Failed(error))) => {
            return Err(NoReply::Refused(json!({ "code": -32603, "message": error.to_string() })));
        }
        Err(_) => return Err(NoReply::NotSent("the gateway does not answer".into())),
    };
    let own = json!({ "name": "plexus", "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "protocol_version": "0", "client": own, "ui_capabilities": {} });
    for (id, method, params) in [("1", "initialize", &hello), ("2", method, params)] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        ws.send(Message::text(message.to_string())).await.map_err(|why| NoReply::Lost(why.to_string()))?;
    }
    loop {
        let text = match ws.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(Some(frame)))) => {
                return Err(NoReply::Lost(format!("closed with code {} {}", u16::from(frame.code), frame.reason)));
            }
            Some(Ok(_)) => continue,
            Some(Err(why)) => return Err(NoReply::Lost(why.to_string())),
            None => return Err(NoReply::Lost("closed".into())),
        };
        let Ok(reply) = serde_json::from_str::<Reply>(&text) else { continue };
        match reply {
            Reply { method: Some(_), .. } => {}
            Reply { error: Some(error), .. } => return Err(NoReply::Refused(error)),
            Reply { id: Some(id), result, .. } if id == "2" => {
                // Nobody waits for the goodbye.
                let _ = tokio::time::timeout(Duration::from_millis(100), ws.close()).await;
                return Ok(result.unwrap_or_else(|| RawValue::NULL.to_owned()));
            }
            Reply { .. } => {}
        }
    }
}
