//! A client of the gateway, for programs in Rust, and the one that the command line, the terminal UI and the bridges use: follow
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

mod connection;
mod follow;
pub mod liveness;
mod requests;

pub use connection::{Backoff, closed};
pub use follow::{ClientEvent, Envelope, Follow, FollowStart};
pub use requests::Requests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::connection::{CallConnection, PATIENCE};
use crate::liveness::{LivenessSocket, Patience};
use plexus_protocol::{Answer, Receipt, RequestId, RunId, RuntimeId, RuntimeInfo, SessionId, SessionInfo};

/// How long an HTTP call may take; starting an agent is the slowest thing asked for.
const CALL: Duration = Duration::from_secs(180);
/// How long a connection without a call is kept: less than the gateway keeps it, so that no call goes out on one that is being closed.
const IDLE: Duration = Duration::from_secs(2);
/// How long an HTTP answer that is read piece by piece may take.
const DOWNLOAD: Duration = Duration::from_secs(6 * 3600);

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

/// What a download came to.
pub enum Download {
    /// A success: its body.
    Pieces(Pieces),
    /// A problem.
    Refused(GatewayReply),
}

/// The body of an answer, as it comes.
pub struct Pieces(reqwest::Response);

impl Pieces {
    /// The next piece; `None` at the end. Cancellation safe.
    ///
    /// # Errors
    /// [`Error::Lost`]: it was broken off; what came is not the whole.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, Error> {
        self.0.chunk().await.map_err(broken)
    }
}

/// The connection was lost under an HTTP call.
fn broken(why: reqwest::Error) -> Error {
    Error::Lost(if why.is_timeout() { "it took too long".to_owned() } else { why.without_url().to_string() })
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
        Follow::start(Arc::clone(&self.locate), session, begin, projection, self.patience)
    }

    /// A connection to a WebSocket of the gateway (`/acp`), for whoever speaks another protocol over it.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unreached`] may be tried again.
    pub async fn socket(&self, path: &str) -> Result<LivenessSocket, Error> {
        connection::connect(&(self.locate)().await?, path, self.patience).await
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
            None => CallConnection::open(&(self.locate)().await?, self.patience).await?,
        };
        let answer = line.ask(method, &params).await;
        if !matches!(answer, Err(Error::Lost(_) | Error::Refused(_))) {
            *slot = Some(line);
        }
        drop(slot);
        Ok(serde_json::from_str(answer?.get())?)
    }

    /// As [`call`](Self::call), over a connection of its own for as long as the answer takes: calls of clones do not wait for it. The
    /// result as it came.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call_alone(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let mut connection = CallConnection::open(&(self.locate)().await?, self.patience).await?;
        let result = connection.ask(method, params).await;
        connection.close().await;
        result
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
        let answer = self.send(method, path, body, key, CALL).await?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(broken)?;
        Ok(GatewayReply { status, text })
    }

    /// A GET over HTTP whose answer may have any length, and is read piece by piece.
    ///
    /// # Errors
    /// As [`http`](Self::http).
    pub async fn download(&self, path: &str) -> Result<Download, Error> {
        let answer = self.send("GET", path, None, None, DOWNLOAD).await?;
        if answer.status().is_success() {
            return Ok(Download::Pieces(Pieces(answer)));
        }
        let status = answer.status().as_u16();
        Ok(Download::Refused(GatewayReply { status, text: answer.text().await.map_err(broken)? }))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        most: Duration,
    ) -> Result<reqwest::Response, Error> {
        let address = (self.locate)().await?;
        let client = match self.http.get() {
            Some(client) => client,
            None => {
                let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
                let made = builder.connect_timeout(PATIENCE).pool_idle_timeout(IDLE).build();
                let made = made.map_err(|why| Error::Unreached(why.to_string()))?;
                self.http.get_or_init(|| made)
            }
        };
        let bad = |_| Error::Address(format!("{method} {path}"));
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(bad)?;
        let url = format!("{}{path}", address.url.trim_end_matches('/'));
        let mut request = client.request(method, url).bearer_auth(&address.token).timeout(most);
        if let Some(program) = &address.program {
            request = request.header("Plexus-Program", program);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        request.send().await.map_err(|why| {
            if why.is_connect() { Error::Unreached("nobody answers at its address".into()) } else { broken(why) }
        })
    }

    /// As [`call`](Self::call), for what may be asked twice.
    async fn again<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Error> {
        let mut backoff = Backoff::default();
        loop {
            match self.call(method, params.clone()).await {
                Err(Error::Lost(_) | Error::Unreached(_)) => tokio::time::sleep(backoff.pause()).await,
                other => return other,
            }
        }
    }
}
