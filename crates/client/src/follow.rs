//! Follows a session, or all: attaches, and resumes with the cursor whenever the connection is lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::api::rpc::{AttachParams, History, HistoryParams, Projection};
use plexus_protocol::api::stream::{
    Live, PresenceChanged, RuntimeRemoved, RuntimeUpdated, SessionDeleted, SessionUpdated, StreamHello, StreamSnapshots,
};
use plexus_protocol::{BadId, Cursor, RuntimeId, RuntimeInfo, SessionId, SessionInfo};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tungstenite::Message;

use crate::connection::{Backoff, CallConnection, Failure, NATIVE, closed, connect, hello};
use crate::liveness::LivenessTimeouts;
use crate::{Address, Error, LocateGateway};

/// Maximum number of received messages in the queue; at this many the socket is no longer read.
const QUEUE_MAX: usize = 256;
/// Number of items of a page in the search for the latest runs of a session.
const LATEST_PAGE: usize = 500;
/// Maximum number of bytes that are read to find the latest runs; a longer run is followed from a position in its middle.
const LATEST_BYTES: usize = 8 << 20;

/// The position at which to start following.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowStart {
    /// The oldest stored event.
    Start,
    /// The next event.
    Now,
    /// The position after this cursor.
    After(String),
    /// The beginning of the latest runs of a session.
    Latest {
        /// The maximum number of runs.
        runs: usize,
        /// The number of items after which no older run is added; the chunks of a message count as one item.
        items: usize,
    },
}

/// An event, and its JSON as received.
#[derive(Debug)]
pub struct ReceivedEvent {
    /// The event.
    pub envelope: EventEnvelope,
    /// The whole envelope as received, with the members that only a newer gateway has.
    pub raw: Box<RawValue>,
}

impl ReceivedEvent {
    /// Reads an envelope; `None` if the JSON is not one.
    pub fn read(raw: Box<RawValue>) -> Option<Self> {
        Some(Self { envelope: serde_json::from_str(raw.get()).ok()?, raw })
    }
}

/// An event that a follower receives.
#[derive(Debug)]
pub enum ClientEvent {
    /// The gateway's `hello`, after every attach.
    Hello(Box<StreamHello>),
    /// Snapshots that replace the events that are no longer stored.
    Snapshot(StreamSnapshots),
    /// A note that older events exist and were not requested ([`FollowStart::Latest`]).
    Older,
    /// An event of the log.
    Event(Box<ReceivedEvent>),
    /// The end of the stored events; later ones are new.
    Live,
    /// The new state of a session.
    Session(Arc<SessionInfo>),
    /// The new state of a runtime.
    Runtime(Arc<RuntimeInfo>),
    /// The id of a session that was deleted.
    SessionDeleted(SessionId),
    /// The name of a runtime that was removed.
    RuntimeRemoved(RuntimeId),
    /// The new viewers of a session.
    Presence(PresenceChanged),
    /// The loss of the connection, with the reason; the follower reconnects by itself.
    Lost(String),
}

/// A subscription to a session, or to all. Dropping it ends the subscription.
pub struct Follow {
    rx: mpsc::Receiver<Result<ClientEvent, Error>>,
}

impl Follow {
    /// Follows `session` (`*` for all) in a task of its own.
    pub(crate) fn start(
        locate: LocateGateway,
        session: String,
        begin: FollowStart,
        projection: Projection,
        timeouts: LivenessTimeouts,
    ) -> Self {
        let (tx, rx) = mpsc::channel(QUEUE_MAX);
        let pause = Backoff::default();
        tokio::spawn(Follower { locate, session, begin, projection, tx, pause, timeouts }.run());
        Self { rx }
    }
}

impl Follow {
    /// Returns the next event; after an error, `None`. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<ClientEvent, Error>> {
        self.rx.recv().await
    }

    /// Returns the next event, if one has already arrived.
    pub fn ready(&mut self) -> Option<Result<ClientEvent, Error>> {
        self.rx.try_recv().ok()
    }
}

struct Follower {
    locate: LocateGateway,
    session: String,
    begin: FollowStart,
    projection: Projection,
    tx: mpsc::Sender<Result<ClientEvent, Error>>,
    pause: Backoff,
    timeouts: LivenessTimeouts,
}

/// The reason why the follower stops.
enum FollowEnd {
    /// The [`Follow`] was dropped.
    Dropped,
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
        // A gateway that cannot be located is an error the first time; later it may be restarting. The last known address is not tried
        // without `locate`: another program may listen there.
        let mut located = false;
        loop {
            let run_connection = match (self.locate)().await {
                Ok(address) => {
                    located = true;
                    self.run_connection(&address).await
                }
                Err(error) if !located => Err(FollowEnd::Failed(error)),
                Err(error) => Ok(error.to_string()),
            };
            let lost = match run_connection {
                Ok(lost) => lost,
                Err(FollowEnd::Dropped) => return,
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

    /// Runs one connection; returns why it was lost.
    async fn run_connection(&mut self, address: &Address) -> Result<String, FollowEnd> {
        let mut ws = match connect(address, NATIVE, self.timeouts).await {
            Ok(ws) => ws,
            Err(Error::Unreached(reason)) => return Ok(reason),
            Err(error) => return Err(error.into()),
        };
        if let FollowStart::Latest { runs, items } = self.begin {
            match latest(address, self.timeouts, &self.session, runs, items).await {
                Ok(Some(after)) => {
                    self.begin = FollowStart::After(after);
                    self.tx.send(Ok(ClientEvent::Older)).await.map_err(|_| FollowEnd::Dropped)?;
                }
                Ok(None) => self.begin = FollowStart::Start,
                Err(Error::Unreached(reason) | Error::Lost(reason)) => return Ok(reason),
                Err(error) => return Err(error.into()),
            }
        }
        let (from, after) = match &self.begin {
            FollowStart::Start | FollowStart::Latest { .. } => (Some("start".to_owned()), None),
            FollowStart::Now => (Some("now".to_owned()), None),
            FollowStart::After(cursor) => (None, Some(cursor.clone())),
        };
        let session_id = self.session.clone();
        let attach = AttachParams { session_id, after, from, projection: self.projection };
        let attach = serde_json::to_value(attach).map_err(Error::from)?;
        for (id, method, params) in [("1", "initialize", hello()), ("2", "session.attach", attach)] {
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            if let Err(reason) = ws.send(Message::text(message.to_string())).await {
                return Ok(reason.to_string());
            }
        }
        loop {
            let next = tokio::select! {
                next = ws.next() => next,
                () = self.tx.closed() => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), ws.close()).await;
                    return Err(FollowEnd::Dropped);
                }
            };
            let text = match next {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => match closed(frame.as_ref()) {
                    Error::Lost(reason) => return Ok(reason),
                    error => return Err(error.into()),
                },
                Some(Ok(_)) => continue,
                Some(Err(reason)) => return Ok(reason.to_string()),
                None => return Ok("closed".into()),
            };
            let Ok(rpc) = serde_json::from_str::<Rpc>(&text) else { continue };
            if let Some(event) = self.client_event(rpc)? {
                self.tx.send(Ok(event)).await.map_err(|_| FollowEnd::Dropped)?;
            }
        }
    }

    fn client_event(&mut self, rpc: Rpc) -> Result<Option<ClientEvent>, FollowEnd> {
        let Some(method) = rpc.method.as_deref() else {
            return match rpc.error {
                Some(Failure { code, message, data }) => Err(FollowEnd::Failed(Error::Rpc { code, message, data })),
                None => Ok(None),
            };
        };
        let Some(params) = rpc.params else { return Ok(None) };
        Ok(match method {
            "agent.event" => {
                let Some(event) = ReceivedEvent::read(params) else { return Ok(None) };
                self.begin = FollowStart::After(event.envelope.cursor.to_string());
                self.pause = Backoff::default();
                Some(ClientEvent::Event(Box::new(event)))
            }
            // Later events build on these two messages, so following fails if one cannot be read.
            "gateway.hello" => Some(ClientEvent::Hello(serde_json::from_str(params.get()).map_err(Error::from)?)),
            "gateway.snapshot" => {
                let snapshots: StreamSnapshots = serde_json::from_str(params.get()).map_err(Error::from)?;
                self.begin = FollowStart::After(snapshots.cursor.to_string());
                Some(ClientEvent::Snapshot(snapshots))
            }
            "gateway.live" => {
                if let Some(Live { head, .. }) = read(&params) {
                    self.begin = FollowStart::After(head.to_string());
                }
                self.pause = Backoff::default();
                Some(ClientEvent::Live)
            }
            "session.updated" => read(&params).map(|SessionUpdated { session }| ClientEvent::Session(session)),
            "runtime.updated" => read(&params).map(|RuntimeUpdated { runtime }| ClientEvent::Runtime(runtime)),
            "session.deleted" => {
                read(&params).map(|SessionDeleted { session_id }| ClientEvent::SessionDeleted(session_id))
            }
            "runtime.removed" => {
                read(&params).map(|RuntimeRemoved { runtime_id }| ClientEvent::RuntimeRemoved(runtime_id))
            }
            "presence.changed" => read(&params).map(ClientEvent::Presence),
            _ => None,
        })
    }
}

/// Reads the parameters of a notification; `None` if they are invalid.
fn read<T: DeserializeOwned>(params: &RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}

/// Returns the cursor before the latest runs of a session, found by reading backwards page by page; `None` for the start of the log. It is
/// the start of a run, unless that run has more than [`LATEST_BYTES`].
async fn latest(
    address: &Address,
    timeouts: LivenessTimeouts,
    session: &str,
    runs: usize,
    items: usize,
) -> Result<Option<String>, Error> {
    let mut connection = CallConnection::open(address, timeouts).await?;
    let session_id = Some(session.parse().map_err(|reason: BadId| Error::Address(reason.to_string()))?);
    let mut params = HistoryParams { session_id, limit: Some(LATEST_PAGE), merge: true, ..HistoryParams::default() };
    params.before = Some("now".to_owned());
    let (mut started, mut seen, mut bytes) = (0, 0, 0);
    loop {
        let reply = connection.ask("session.history", &serde_json::to_value(&params)?).await?;
        bytes += reply.get().len();
        let History { events, end } = serde_json::from_str(reply.get())?;
        for event in events.iter().rev() {
            // Kinds that count as one item per message or tool call (merged by `merge`).
            let item_kinds = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"];
            seen += usize::from(item_kinds.contains(&event.kind.as_str()));
            if event.kind != "run_started" {
                continue;
            }
            started += 1;
            if started >= runs.max(1) || seen >= items {
                // Older runs precede this event.
                return Ok(cursor_before(&event.cursor.to_string()));
            }
        }
        let Some(previous) = end.end.previous else { return Ok(None) };
        if bytes >= LATEST_BYTES {
            return Ok(cursor_before(&previous));
        }
        params.before = Some(previous);
    }
}

/// Returns the cursor of the position before a cursor. A cursor `<epoch>:<position>+<part>` names a part of an event.
fn cursor_before(cursor: &str) -> Option<String> {
    let cursor = cursor.split_once('+').map_or(cursor, |(cursor, _)| cursor);
    let mut cursor: Cursor = cursor.parse().ok()?;
    cursor.position.0 = cursor.position.0.checked_sub(1)?;
    Some(cursor.to_string())
}
