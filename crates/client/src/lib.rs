//! A client of the gateway's native WebSocket, for programs in Rust. One file, to be read at once by whoever uses it: follow
//! sessions for ever, prompt, answer; and single calls over HTTP ([`Client::http`]).
//!
//! [`Client::attach`] follows a session, or all, in a task of its own, and comes back with its cursor whenever the connection
//! is lost: what it tells is in order, without a gap and without a repeat. Everything else is a call. It needs nothing of
//! the gateway but its nouns ([`plexus_protocol`]); DESIGN.md 3.3 and docs/protocol.md describe what it speaks.
//!
//! ```no_run
//! use plexus_client::{Client, ClientEvent, FollowStart};
//!
//! # async fn example(url: &str, token: &str) -> Result<(), plexus_client::Error> {
//! let client = Client::new(url, token);
//! let mut all = client.attach(None, FollowStart::Now);
//! while let Some(heard) = all.next().await {
//!     if let ClientEvent::Event(event) = heard? {
//!         println!("{} {}", event.session_id, event.kind);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod liveness;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;

use crate::liveness::{CountedSocket, LivenessSocket, Patience};
use plexus_protocol::{
    Answer, Receipt, Request, RequestId, RunId, RuntimeId, RuntimeInfo, SessionId, SessionInfo, Timestamp,
};

/// Longest message taken, in bytes: an event can be as long as a runtime's longest line, and is wrapped.
const MESSAGE_MAX: usize = 1 << 30;
/// How long connecting and the first answers may take; then the connection counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first pause before coming back; it doubles.
const BACKOFF: Duration = Duration::from_millis(200);
/// The longest pause before coming back.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// How long an HTTP call may take; starting an agent is the slowest thing asked for.
const CALL: Duration = Duration::from_secs(180);
/// What was heard and not yet taken, in messages; then the socket is not read, and the gateway waits.
const AHEAD: usize = 256;
/// Close codes after which coming back is no use: the token was revoked, or may not do this.
const DO_NOT_COME_BACK: [u16; 2] = [4001, 4003];

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none of a gateway's.
    #[error("{0} is no http:// address")]
    Address(String),
    /// The token is no use: unknown, revoked, or without the scope. Coming back as you are is no use either.
    #[error("{0}")]
    Refused(String),
    /// The gateway was not reached. Nothing was asked of it.
    #[error("the gateway was not reached: {0}")]
    Unreached(String),
    /// The connection was lost. What was asked may or may not have been done.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The gateway said no. `data.code` is stable (docs/protocol.md).
    #[error("{message}")]
    Rpc {
        /// JSON-RPC's code.
        code: i64,
        /// In words.
        message: String,
        /// `code`, and what there is beside it.
        data: Value,
    },
    /// An answer does not fit: the gateway is of another version.
    #[error("the gateway's answer makes no sense: {0}")]
    Answer(#[from] serde_json::Error),
}

/// Where the gateway is, and what proves who you are.
#[derive(Clone)]
pub struct Address {
    /// `http://host:port`. Plain: a gateway elsewhere is reached through a tunnel.
    pub url: String,
    /// The token of an enrolled device.
    pub token: String,
    /// Which program this is, for people to read: the gateway names it beside what it does on this machine.
    pub program: Option<String>,
}

/// Finds the gateway; asked again before every connection, for one that was started again may listen elsewhere.
pub type LocateGateway = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Address, Error>> + Send>> + Send + Sync>;

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowStart {
    /// The oldest event kept.
    Start,
    /// What happens from now on.
    Now,
    /// After this cursor.
    After(String),
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
    /// What the runtime itself said, where that was asked for ([`Client::attach_native`]).
    pub native: Option<Box<RawValue>>,
}

impl Envelope {
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

/// A prompt that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PromptAccepted {
    /// The run it is, or will be.
    pub run_id: RunId,
    /// Whether it waits for its turn.
    pub queued: bool,
    /// How many runs are before it.
    pub ahead: u64,
}

/// A page of a session's past.
#[derive(Debug, Deserialize)]
pub struct PastPage {
    /// The events, in the order of the log; each is what [`Envelope::read`] takes.
    pub events: Vec<Box<RawValue>>,
    /// The cursor for the page before this one; none at the beginning.
    pub previous: Option<String>,
    /// The cursor for what comes after it.
    pub next: String,
    /// The log's end.
    pub head: String,
}

/// A client. Cheap to clone; clones share one connection for calls. Every follower has one of its own.
#[derive(Clone)]
pub struct Client {
    locate: LocateGateway,
    line: Arc<Mutex<Option<CallConnection>>>,
    http: Arc<OnceLock<reqwest::Client>>,
    patience: Patience,
}

/// What the gateway answered over HTTP: a success, or a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayReply {
    /// The status.
    pub status: u16,
    /// The body.
    pub text: String,
}

impl GatewayReply {
    /// Whether it is a success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// The connection that calls go over, one after the other. It follows nothing.
struct CallConnection {
    socket: LivenessSocket,
    next: u64,
}

impl Client {
    /// A client of the gateway at `url` (`http://host:port`). Nothing is connected yet.
    pub fn new(url: &str, token: &str) -> Self {
        let address = Address { url: url.to_owned(), token: token.to_owned(), program: None };
        Self::locating(Arc::new(move || {
            let address = address.clone();
            Box::pin(async move { Ok(address) })
        }))
    }

    /// A client of the gateway that `locate` finds.
    pub fn locating(locate: LocateGateway) -> Self {
        Self { locate, line: Arc::default(), http: Arc::default(), patience: Patience::default() }
    }

    /// The same, which gives up sooner or later on a gateway that says nothing.
    #[must_use]
    pub fn patient(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Follows a session, or all (`None`), in a task of its own until the [`Follow`] is dropped.
    pub fn attach(&self, session: Option<&SessionId>, begin: FollowStart) -> Follow {
        self.follow(session, begin, "canonical")
    }

    /// As [`attach`](Self::attach), each event with what the runtime itself said.
    pub fn attach_native(&self, session: Option<&SessionId>, begin: FollowStart) -> Follow {
        self.follow(session, begin, "native")
    }

    fn follow(&self, session: Option<&SessionId>, begin: FollowStart, projection: &'static str) -> Follow {
        let session = session.map_or_else(|| "*".to_owned(), ToString::to_string);
        let (tx, rx) = mpsc::channel(AHEAD);
        let (locate, patience) = (Arc::clone(&self.locate), self.patience);
        let follower = Follower { locate, session, begin, projection, tx, pause: BACKOFF, patience };
        tokio::spawn(follower.run());
        Follow { rx }
    }

    /// The runtimes.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn runtimes(&self) -> Result<Vec<RuntimeInfo>, Error> {
        #[derive(Deserialize)]
        struct List {
            runtimes: Vec<RuntimeInfo>,
        }
        Ok(self.again::<List>("runtime.list", json!({})).await?.runtimes)
    }

    /// The sessions.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        #[derive(Deserialize)]
        struct List {
            sessions: Vec<SessionInfo>,
            next: Option<String>,
        }
        let (mut all, mut known, mut cursor) = (Vec::new(), std::collections::HashSet::new(), None);
        loop {
            let List { sessions, next } = self.again("session.list", json!({ "cursor": cursor })).await?;
            // What had news meanwhile comes twice.
            all.extend(sessions.into_iter().filter(|session| known.insert(session.session_id.clone())));
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// The page of a session's past before a cursor, or with `None` its newest: with `merge`, the chunks of a message and the
    /// updates of a tool call are one event each. Go on with [`PastPage::previous`].
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn past(&self, session: &SessionId, before: Option<&str>, merge: bool) -> Result<PastPage, Error> {
        let before = before.unwrap_or("now");
        self.again("session.history", json!({ "session_id": session, "before": before, "merge": merge })).await
    }

    /// Opens a session; in the runtime's own folder unless `cwd` names one.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn new_session(&self, runtime: &RuntimeId, cwd: Option<&str>) -> Result<SessionInfo, Error> {
        self.call("session.new", json!({ "runtime_id": runtime, "cwd": cwd })).await
    }

    /// Prompts. Sent once: after [`Error::Lost`] the events tell whether it was taken.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn prompt(&self, session: &SessionId, text: &str) -> Result<PromptAccepted, Error> {
        self.call("run.start", json!({ "session_id": session, "text": text })).await
    }

    /// Stops the run under way, or the one named; returns which.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn cancel(&self, session: &SessionId, run: Option<&RunId>) -> Result<RunId, Error> {
        #[derive(Deserialize)]
        struct Cancelled {
            run_id: RunId,
        }
        Ok(self.call::<Cancelled>("run.cancel", json!({ "session_id": session, "run_id": run })).await?.run_id)
    }

    /// Answers a request. That somebody else was first, or that it is closed, is no error: the receipt says so (`won`, `state`).
    /// Under one `key` (1 to 128 visible ASCII characters) it is asked again after a lost connection and counts once.
    ///
    /// # Errors
    /// As [`call`](Self::call); never [`Error::Lost`]: it comes back until it is answered.
    pub async fn answer(&self, request: &RequestId, answer: &Answer, key: &str) -> Result<Receipt, Error> {
        let mut params = serde_json::to_value(answer)?;
        params["request_id"] = json!(request);
        params["idempotency_key"] = key.into();
        match self.again("ui.request.answer", params).await {
            // The members of the receipt stand beside the problem's code.
            Err(Error::Rpc { code: -32010 | -32012, data, .. }) if data.get("resolved_by").is_some() => {
                Ok(serde_json::from_value(data)?)
            }
            other => other,
        }
    }

    /// Any method; those that the gateway does not know go to the session's runtime. Not cancellation safe: dropped before its
    /// end, it may or may not have been done.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Error> {
        let mut slot = self.line.lock().await;
        // Taken out, so that a call that is dropped half-way leaves no answer behind for the next one.
        let mut line = match slot.take() {
            Some(line) => line,
            None => {
                let address = (self.locate)().await?;
                let mut line = CallConnection { socket: connect(&address, self.patience).await?, next: 0 };
                line.ask("initialize", &hello()).await.map_err(|error| match error {
                    Error::Lost(why) => Error::Unreached(why),
                    error => error,
                })?;
                line
            }
        };
        let answer = line.ask(method, &params).await;
        if !matches!(answer, Err(Error::Lost(_) | Error::Refused(_))) {
            *slot = Some(line);
        }
        drop(slot);
        Ok(serde_json::from_str(answer?.get())?)
    }

    /// One call over HTTP (docs/protocol.md has the routes), beside whatever else is under way. A refusal is a [`GatewayReply`], too.
    /// With a `key` (1 to 128 visible ASCII characters) it may be sent again after a lost connection and counts once.
    ///
    /// # Errors
    /// [`Error`]: the gateway was not reached, or the connection lost before the answer was whole.
    pub async fn http(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<GatewayReply, Error> {
        let address = (self.locate)().await?;
        let client = match self.http.get() {
            Some(client) => client,
            None => {
                let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
                let made = builder.connect_timeout(PATIENCE).timeout(CALL).build();
                let made = made.map_err(|why| Error::Unreached(why.to_string()))?;
                self.http.get_or_init(|| made)
            }
        };
        let bad = |_| Error::Address(format!("{method} {path}"));
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(bad)?;
        let url = format!("{}{path}", address.url.trim_end_matches('/'));
        let mut request = client.request(method, url).bearer_auth(&address.token);
        if let Some(program) = &address.program {
            request = request.header("Plexus-Program", program);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let gone = |why: reqwest::Error| {
            let words = if why.is_timeout() { "it took too long".to_owned() } else { why.without_url().to_string() };
            Error::Lost(words)
        };
        let answer = request.send().await.map_err(|why| {
            if why.is_connect() { Error::Unreached("nobody answers at its address".into()) } else { gone(why) }
        })?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(gone)?;
        Ok(GatewayReply { status, text })
    }

    /// As [`call`](Self::call), for what may be asked twice.
    async fn again<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Error> {
        let mut pause = BACKOFF;
        loop {
            match self.call(method, params.clone()).await {
                Err(Error::Lost(_) | Error::Unreached(_)) => tokio::time::sleep(jittered(pause)).await,
                other => return other,
            }
            pause = (pause * 2).min(BACKOFF_MAX);
        }
    }
}

impl CallConnection {
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        #[derive(Deserialize)]
        struct Reply {
            id: Option<Value>,
            method: Option<String>,
            result: Option<Box<RawValue>>,
            error: Option<Failure>,
        }
        self.next += 1;
        let id = json!(self.next);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let lost = |why: tungstenite::Error| Error::Lost(why.to_string());
        let sent = tokio::time::timeout(PATIENCE, self.socket.send(Message::text(message.to_string()))).await;
        sent.map_err(|_| Error::Lost("the gateway takes nothing any more".into()))?.map_err(lost)?;
        loop {
            let text = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => return Err(closed(frame.as_ref())),
                Some(Ok(_)) => continue,
                Some(Err(why)) => return Err(lost(why)),
                None => return Err(Error::Lost("closed".into())),
            };
            let Ok(reply) = serde_json::from_str::<Reply>(&text) else { continue };
            if reply.method.is_some() || reply.id.as_ref() != Some(&id) {
                continue;
            }
            if let Some(Failure { code, message, data }) = reply.error {
                return Err(Error::Rpc { code, message, data });
            }
            return reply.result.ok_or_else(|| Error::Lost("an answer without a result".into()));
        }
    }
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
    message: String,
    #[serde(default)]
    data: Value,
}

/// A session that is followed, or all. Dropping it ends it.
pub struct Follow {
    rx: mpsc::Receiver<Result<ClientEvent, Error>>,
}

impl Follow {
    /// What comes next. An error is the last thing heard; then `None`. Cancellation safe.
    pub async fn next(&mut self) -> Option<Result<ClientEvent, Error>> {
        self.rx.recv().await
    }
}

/// The requests that are open in what a [`Follow`] follows. Pure: give it everything that is heard.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<RequestId, Request>,
    live: bool,
    /// What was open by the last greeting: until live, only these are.
    greeted: BTreeMap<RequestId, Request>,
}

impl Requests {
    /// Those that are open, by their identifiers.
    pub fn open(&self) -> &BTreeMap<RequestId, Request> {
        &self.open
    }

    /// Takes in what was heard; true if the set is another now.
    pub fn apply(&mut self, heard: &ClientEvent) -> bool {
        let before = self.open.len();
        match heard {
            ClientEvent::Hello(hello) => {
                let open: Vec<Request> = serde_json::from_value(hello["requests"].clone()).unwrap_or_default();
                self.greeted = open.into_iter().map(|request| (request.request_id.clone(), request)).collect();
                self.live = false;
                let changed = self.greeted.keys().ne(self.open.keys());
                self.open.clone_from(&self.greeted);
                return changed;
            }
            ClientEvent::Live => self.live = true,
            // What a replay shows as opened and is still open was in the greeting.
            ClientEvent::Event(event) if event.kind == "request_opened" && self.live => {
                if let Ok(request) = serde_json::from_value::<Request>(event.event.clone()) {
                    return self.open.insert(request.request_id.clone(), request).is_none();
                }
            }
            ClientEvent::Event(event) if event.kind == "request_resolved" => {
                if let Some(id) = event.event["request_id"].as_str().and_then(|id| id.parse::<RequestId>().ok()) {
                    self.open.remove(&id);
                }
            }
            _ => {}
        }
        self.open.len() != before
    }
}

struct Follower {
    locate: LocateGateway,
    session: String,
    begin: FollowStart,
    projection: &'static str,
    tx: mpsc::Sender<Result<ClientEvent, Error>>,
    pause: Duration,
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
        // The first time nobody knows where it is, somebody should hear of it; later it may be starting again.
        let mut known = None;
        loop {
            match (self.locate)().await {
                Ok(address) => known = Some(address),
                Err(error) if known.is_none() => {
                    let _ = self.tx.send(Err(error)).await;
                    return;
                }
                Err(_) => {}
            }
            let Some(address) = &known else { return };
            let lost = match self.once(address).await {
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
                () = tokio::time::sleep(jittered(self.pause)) => {}
                () = self.tx.closed() => return,
            }
            self.pause = (self.pause * 2).min(BACKOFF_MAX);
        }
    }

    /// One connection's life; says why it was lost.
    async fn once(&mut self, address: &Address) -> Result<String, FollowEnd> {
        let mut ws = match connect(address, self.patience).await {
            Ok(ws) => ws,
            Err(Error::Unreached(why)) => return Ok(why),
            Err(error) => return Err(error.into()),
        };
        let mut attach = json!({ "session_id": self.session, "projection": self.projection });
        match &self.begin {
            FollowStart::Start => attach["from"] = "start".into(),
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
                self.pause = BACKOFF;
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
                self.pause = BACKOFF;
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

fn hello() -> Value {
    // Requests are read from the events and answered by `ui.request.answer`.
    let client = json!({ "name": "plexus", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocol_version": "0", "client": client, "ui_capabilities": {} })
}

/// A random half to whole of it, so that those who were cut together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0];
    // Without randomness everybody comes back after the same time: worse, not wrong.
    let _ = getrandom::fill(&mut random);
    pause / 2 + pause.mul_f32(f32::from(random[0]) / 512.0)
}

fn closed(frame: Option<&tungstenite::protocol::CloseFrame>) -> Error {
    let Some(frame) = frame else { return Error::Lost("closed".into()) };
    let code = u16::from(frame.code);
    if DO_NOT_COME_BACK.contains(&code) {
        return Error::Refused(format!("the gateway closed the connection for good: {}", frame.reason));
    }
    Error::Lost(format!("closed with code {code} {}", frame.reason))
}

/// Connects, with the token in the handshake.
async fn connect(address: &Address, patience: Patience) -> Result<LivenessSocket, Error> {
    let dial = async {
        let lost = |why: std::io::Error| Error::Unreached(why.to_string());
        let bad = || Error::Address(address.url.clone());
        let authority = address.url.trim_end_matches('/').strip_prefix("http://").ok_or_else(bad)?;
        let mut request = format!("ws://{authority}/v1/ws").into_client_request().map_err(|_| bad())?;
        let token = format!("Bearer {}", address.token);
        let token = token.parse().map_err(|_| Error::Refused("the token is damaged".into()))?;
        request.headers_mut().insert("authorization", token);
        if let Some(program) = address.program.as_ref().and_then(|program| program.parse().ok()) {
            request.headers_mut().insert("plexus-program", program);
        }
        let socket = TcpStream::connect(authority).await.map_err(lost)?;
        socket.set_nodelay(true).map_err(lost)?;
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
        match tokio_tungstenite::client_async_with_config(request, CountedSocket::new(socket), Some(config)).await {
            Ok((stream, _)) => Ok(LivenessSocket::new(stream, patience)),
            Err(tungstenite::Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => {
                Err(Error::Refused(format!("the gateway answered {}", answer.status())))
            }
            Err(why) => Err(Error::Unreached(why.to_string())),
        }
    };
    let slow = |_| Error::Unreached("the gateway does not answer".into());
    tokio::time::timeout(PATIENCE, dial).await.map_err(slow)?
}
