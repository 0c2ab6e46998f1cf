//! Following a session, or all: attach, and come back with the cursor whenever the connection is lost.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use plexus_protocol::transcript::EntryBody;
use plexus_protocol::{Cursor, Kind, Position, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tungstenite::Message;

use crate::connection::{Backoff, CallConnection, Failure, NATIVE, closed, connect, hello};
use crate::liveness::Patience;
use crate::{Address, Error, LocateGateway};

/// What was heard and not yet taken, in messages; then the socket is not read, and the gateway waits.
const AHEAD: usize = 256;
/// Items of a page, where the latest of a session is looked for …
const LATEST_PAGE: usize = 500;
/// … and bytes that are read for that; a run that is longer is told from somewhere in it.
const LATEST_BYTES: usize = 8 << 20;

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowStart {
    /// The oldest event kept.
    Start,
    /// What happens from now on.
    Now,
    /// After this cursor.
    After(String),
    /// With the latest runs of a session, at most.
    Latest {
        /// So many runs …
        runs: usize,
        /// … or as many as have so many items; the chunks of a message are one.
        items: usize,
    },
}

/// An event, and its text as it came.
#[derive(Debug)]
pub struct Envelope {
    /// The whole of it.
    pub raw: Box<RawValue>,
    /// The conversation.
    pub session_id: String,
    /// The run.
    pub run_id: String,
    /// Its place: begin [`After`](FollowStart::After) it another time.
    pub cursor: String,
    /// When the gateway heard of it.
    pub at: Option<Timestamp>,
    /// What sort of event.
    pub kind: String,
    /// The canonical body.
    pub event: Value,
    /// The runtime it comes from.
    pub runtime_id: String,
    /// The dialect that runtime speaks.
    pub dialect: String,
    /// What the runtime itself said, where that was asked for ([`Client::attach_native`](crate::Client::attach_native)).
    pub native: Option<Box<RawValue>>,
}

impl Envelope {
    /// The event as a transcript reads it; `None` for a kind that only a newer gateway has.
    pub fn entry(&self) -> Option<EntryBody> {
        Some(EntryBody::read(Kind::from_name(&self.kind)?, self.event.clone()))
    }

    /// Its place in the log.
    pub fn position(&self) -> Position {
        Position(self.cursor.rsplit_once(':').and_then(|(_, position)| position.parse().ok()).unwrap_or_default())
    }

    /// Reads an envelope; `None` if it is none.
    pub fn read(raw: Box<RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wire {
            session_id: String,
            #[serde(default)]
            run_id: String,
            cursor: String,
            at: Option<Timestamp>,
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
        let Wire { session_id, run_id, cursor, at, kind, event, meta, native } =
            serde_json::from_str(raw.get()).ok()?;
        let Meta { runtime_id, dialect } = meta;
        Some(Self { raw, session_id, run_id, cursor, at, kind, event, runtime_id, dialect, native })
    }
}

/// What a follower hears.
#[derive(Debug)]
pub enum ClientEvent {
    /// The gateway's greeting after every attach.
    Hello(Value),
    /// What replaces the events that are no longer kept.
    Snapshot(Value),
    /// There is more before what is told, and it was not asked for ([`FollowStart::Latest`]).
    Older,
    /// An event.
    Event(Box<Envelope>),
    /// Everything from before is told; what follows is new.
    Live,
    /// A session stands differently.
    Session(Value),
    /// A runtime stands differently.
    Runtime(Value),
    /// A session was forgotten: its identifier.
    SessionGone(String),
    /// A runtime was stopped for good: its name.
    RuntimeGone(String),
    /// Others look at a session, or no longer.
    Presence(Value),
    /// The connection is lost; it comes back by itself.
    Lost(String),
}

/// A session that is followed, or all. Dropping it ends it.
pub struct Follow {
    rx: mpsc::Receiver<Result<ClientEvent, Error>>,
}

impl Follow {
    /// Follows `session` (`*`: all) in a task of its own.
    pub(crate) fn start(
        locate: LocateGateway,
        session: String,
        begin: FollowStart,
        projection: &'static str,
        patience: Patience,
    ) -> Self {
        let (tx, rx) = mpsc::channel(AHEAD);
        let pause = Backoff::default();
        tokio::spawn(Follower { locate, session, begin, projection, tx, pause, patience }.run());
        Self { rx }
    }
}

impl Follow {
    /// What comes next. An error is the last thing heard; then `None`. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<ClientEvent, Error>> {
        self.rx.recv().await
    }

    /// What is there already, if anything is.
    pub fn ready(&mut self) -> Option<Result<ClientEvent, Error>> {
        self.rx.try_recv().ok()
    }
}

struct Follower {
    locate: LocateGateway,
    session: String,
    begin: FollowStart,
    projection: &'static str,
    tx: mpsc::Sender<Result<ClientEvent, Error>>,
    pause: Backoff,
    patience: Patience,
}

/// Why there is no coming back.
enum FollowEnd {
    /// Nobody listens any more.
    Nobody,
    Failed(Error),
}

impl From<Error> for FollowEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

#[derive(Deserialize)]
struct Rpc {
    method: Option<String>,
    params: Option<Box<RawValue>>,
    error: Option<Failure>,
}

impl Follower {
    async fn run(mut self) {
        // The first time nobody knows where it is, somebody should hear of it; later it may be starting again. Where it was is not
        // tried without its proof: something else may listen there.
        let mut found = false;
        loop {
            let once = match (self.locate)().await {
                Ok(address) => {
                    found = true;
                    self.once(&address).await
                }
                Err(error) if !found => Err(FollowEnd::Failed(error)),
                Err(error) => Ok(error.to_string()),
            };
            let lost = match once {
                Ok(lost) => lost,
                Err(FollowEnd::Nobody) => return,
                Err(FollowEnd::Failed(error)) => {
                    let _ = self.tx.send(Err(error)).await;
                    return;
                }
            };
            if self.tx.send(Ok(ClientEvent::Lost(lost))).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(self.pause.pause()) => {}
                () = self.tx.closed() => return,
            }
        }
    }

    /// One connection's life; says why it was lost.
    async fn once(&mut self, address: &Address) -> Result<String, FollowEnd> {
        let mut ws = match connect(address, NATIVE, self.patience).await {
            Ok(ws) => ws,
            Err(Error::Unreached(why)) => return Ok(why),
            Err(error) => return Err(error.into()),
        };
        if let FollowStart::Latest { runs, items } = self.begin {
            match latest(address, self.patience, &self.session, runs, items).await {
                Ok(Some(after)) => {
                    self.begin = FollowStart::After(after);
                    self.tx.send(Ok(ClientEvent::Older)).await.map_err(|_| FollowEnd::Nobody)?;
                }
                Ok(None) => self.begin = FollowStart::Start,
                Err(Error::Unreached(why) | Error::Lost(why)) => return Ok(why),
                Err(error) => return Err(error.into()),
            }
        }
        let mut attach = json!({ "session_id": self.session, "projection": self.projection });
        match &self.begin {
            FollowStart::Start | FollowStart::Latest { .. } => attach["from"] = "start".into(),
            FollowStart::Now => attach["from"] = "now".into(),
            FollowStart::After(cursor) => attach["after"] = cursor.as_str().into(),
        }
        for (id, method, params) in [("1", "initialize", hello()), ("2", "session.attach", attach)] {
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
                    return Err(FollowEnd::Nobody);
                }
            };
            let text = match next {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => match closed(frame.as_ref()) {
                    Error::Lost(why) => return Ok(why),
                    error => return Err(error.into()),
                },
                Some(Ok(_)) => continue,
                Some(Err(why)) => return Ok(why.to_string()),
                None => return Ok("closed".into()),
            };
            let Ok(rpc) = serde_json::from_str::<Rpc>(&text) else { continue };
            if let Some(heard) = self.understand(rpc)? {
                self.tx.send(Ok(heard)).await.map_err(|_| FollowEnd::Nobody)?;
            }
        }
    }

    fn understand(&mut self, rpc: Rpc) -> Result<Option<ClientEvent>, FollowEnd> {
        let Some(method) = rpc.method.as_deref() else {
            return match rpc.error {
                Some(Failure { code, message, data }) => Err(FollowEnd::Failed(Error::Rpc { code, message, data })),
                None => Ok(None),
            };
        };
        let Some(params) = rpc.params else { return Ok(None) };
        let value = || serde_json::from_str::<Value>(params.get()).unwrap_or_default();
        Ok(match method {
            "agent.event" => {
                let Some(envelope) = Envelope::read(params) else { return Ok(None) };
                self.begin = FollowStart::After(envelope.cursor.clone());
                self.pause = Backoff::default();
                Some(ClientEvent::Event(Box::new(envelope)))
            }
            "gateway.hello" => Some(ClientEvent::Hello(value())),
            "gateway.snapshot" => {
                let snapshot = value();
                self.at(&snapshot["cursor"]);
                Some(ClientEvent::Snapshot(snapshot))
            }
            "gateway.live" => {
                self.at(&value()["head"]);
                self.pause = Backoff::default();
                Some(ClientEvent::Live)
            }
            "session.updated" => Some(ClientEvent::Session(value()["session"].take())),
            "runtime.updated" => Some(ClientEvent::Runtime(value()["runtime"].take())),
            "session.deleted" => Some(ClientEvent::SessionGone(said(&value()["session_id"]))),
            "runtime.removed" => Some(ClientEvent::RuntimeGone(said(&value()["runtime_id"]))),
            "presence.changed" => Some(ClientEvent::Presence(value())),
            _ => None,
        })
    }

    fn at(&mut self, cursor: &Value) {
        if let Some(cursor) = cursor.as_str() {
            self.begin = FollowStart::After(cursor.into());
        }
    }
}

fn said(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// After which cursor the latest of a session begins, read from its end a page at a time; `None`: with its first event. It
/// begins with a run, unless that has more than [`LATEST_BYTES`].
async fn latest(
    address: &Address,
    patience: Patience,
    session: &str,
    runs: usize,
    items: usize,
) -> Result<Option<String>, Error> {
    let mut connection = CallConnection::open(address, patience).await?;
    let (mut before, mut begun, mut seen, mut bytes) = ("now".to_owned(), 0, 0, 0);
    loop {
        let params = json!({ "session_id": session, "before": before, "limit": LATEST_PAGE, "merge": true });
        let reply = connection.ask("session.history", &params).await?;
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
