//! Following events over the native WebSocket: attaches, and comes back with its cursor for ever. And single calls.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message};

use super::client::Client;
use super::{Failure, NOT_PERMITTED};

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
/// Close codes after which coming back is no use: the token was revoked, or may not do this.
pub(super) const DO_NOT_COME_BACK: [u16; 2] = [4001, 4003];

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The oldest event kept.
    Start,
    /// What happens from now on.
    Now,
    /// After this cursor.
    After(String),
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
pub(crate) enum Heard {
    /// The gateway's greeting after every attach.
    Hello(Value),
    /// What replaces the events that are no longer kept.
    Snapshot(Value),
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
pub(crate) fn follow(client: Client, session: String, begin: Begin) -> mpsc::Receiver<anyhow::Result<Heard>> {
    start(client, session, begin, "canonical")
}

/// As [`follow`], each event with what the runtime itself said.
pub(crate) fn follow_native(client: Client, session: String, begin: Begin) -> mpsc::Receiver<anyhow::Result<Heard>> {
    start(client, session, begin, "native")
}

fn start(
    client: Client,
    session: String,
    begin: Begin,
    projection: &'static str,
) -> mpsc::Receiver<anyhow::Result<Heard>> {
    let (tx, rx) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        let mut follower = Follower { client, session, begin, projection, tx, pause: BACKOFF };
        loop {
            let lost = match follower.once().await {
                Ok(lost) => lost,
                Err(Stop::Nobody) => return,
                Err(Stop::Failed(error)) => {
                    let _ = follower.tx.send(Err(error)).await;
                    return;
                }
            };
            if follower.tx.send(Ok(Heard::Lost(lost))).await.is_err() {
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
    begin: Begin,
    projection: &'static str,
    tx: mpsc::Sender<anyhow::Result<Heard>>,
    pause: Duration,
}

/// Why there is no coming back.
enum Stop {
    /// Nobody listens any more.
    Nobody,
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
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
    async fn once(&mut self) -> Result<String, Stop> {
        let mut ws = match tokio::time::timeout(PATIENCE, connect(&self.client, "/v1/ws")).await {
            Ok(Ok(ws)) => ws,
            Ok(Err(Connect::Lost(why))) => return Ok(why),
            Ok(Err(Connect::Failed(error))) => return Err(error.into()),
            Err(_) => return Ok("the gateway does not answer".into()),
        };
        let mut attach = json!({ "session_id": self.session, "projection": self.projection });
        match &self.begin {
            Begin::Start => attach["from"] = "start".into(),
            Begin::Now => attach["from"] = "now".into(),
            Begin::After(cursor) => attach["after"] = cursor.as_str().into(),
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
                    let _ = tokio::time::timeout(Duration::from_secs(1), ws.close(None)).await;
                    return Err(Stop::Nobody);
                }
            };
            let text = match next {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(Some(frame)))) => {
                    let code = u16::from(frame.code);
                    if DO_NOT_COME_BACK.contains(&code) {
                        let message = format!("the gateway closed the connection for good: {}", frame.reason);
                        return Err(Stop::Failed(Failure::new(NOT_PERMITTED, message).into()));
                    }
                    return Ok(format!("closed with code {code} {}", frame.reason));
                }
                Some(Ok(_)) => continue,
                Some(Err(why)) => return Ok(why.to_string()),
                None => return Ok("closed".into()),
            };
            let Ok(rpc) = serde_json::from_str::<Rpc>(&text) else { continue };
            if let Some(heard) = self.understand(rpc)? {
                self.tx.send(Ok(heard)).await.map_err(|_| Stop::Nobody)?;
            }
        }
    }

    fn understand(&mut self, rpc: Rpc) -> Result<Option<Heard>, Stop> {
        let Some(method) = rpc.method.as_deref() else {
            if let Some(error) = rpc.error {
                let words = error["message"].as_str().unwrap_or("the gateway refused");
                let what = if rpc.id == Some(json!("1")) { "saying hello" } else { "following" };
                return Err(Stop::Failed(Failure::plain(format!("{what}: {words}"))));
            }
            return Ok(None);
        };
        let Some(params) = rpc.params else { return Ok(None) };
        let value = || serde_json::from_str::<Value>(params.get()).unwrap_or_default();
        Ok(match method {
            "agent.event" => {
                let Some(envelope) = Envelope::read(params) else { return Ok(None) };
                self.begin = Begin::After(envelope.cursor.clone());
                self.pause = BACKOFF;
                Some(Heard::Event(Box::new(envelope)))
            }
            "gateway.hello" => Some(Heard::Hello(value())),
            "gateway.snapshot" => {
                let snapshot = value();
                self.at(&snapshot["cursor"]);
                Some(Heard::Snapshot(snapshot))
            }
            "gateway.live" => {
                self.at(&value()["head"]);
                self.pause = BACKOFF;
                Some(Heard::Live)
            }
            "session.updated" => Some(Heard::Session(value()["session"].take())),
            _ => None,
        })
    }

    fn at(&mut self, cursor: &Value) {
        if let Some(cursor) = cursor.as_str() {
            self.begin = Begin::After(cursor.into());
        }
    }
}

/// Why there is no connection.
pub(super) enum Connect {
    /// It may be there later.
    Lost(String),
    /// Trying again is no use.
    Failed(anyhow::Error),
}

/// A WebSocket to the gateway, as the local administrator.
pub(super) async fn connect(client: &Client, path: &str) -> Result<WebSocketStream<TcpStream>, Connect> {
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
    match tokio_tungstenite::client_async_with_config(request, socket, Some(config)).await {
        Ok((ws, _)) => Ok(ws),
        Err(Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => {
            let message = format!("connecting: the gateway answered {}; is PLEXUS_HOME right?", answer.status());
            Err(Connect::Failed(Failure::new(NOT_PERMITTED, message).into()))
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
                let _ = tokio::time::timeout(Duration::from_millis(100), ws.close(None)).await;
                return Ok(result.unwrap_or_else(|| RawValue::NULL.to_owned()));
            }
            Reply { .. } => {}
        }
    }
}
