//! A client of the gateway in Rust, which the command line, the terminal UI and the bridges use. It follows sessions, sends prompts and
//! answers, and makes single HTTP calls ([`Client::http`]).
//!
//! [`Client::attach`] follows a session, or all, in a task of its own, and resumes with its cursor whenever the connection is lost: its
//! events are in order, without gaps and repeats. All other operations are calls. The client shares only the types of [`plexus_protocol`]
//! with the gateway; docs/protocol.md describes the protocol.
//!
//! ```no_run
//! use plexus_client::{Client, ClientEvent, FollowStart};
//!
//! # async fn example(url: &str, token: &str) -> Result<(), plexus_client::Error> {
//! let client = Client::new(url, token);
//! let mut all = client.attach(None, FollowStart::Now);
//! while let Some(event) = all.next().await {
//!     if let ClientEvent::Event(event) = event? {
//!         println!("{} {}", event.envelope.session_id, event.envelope.kind);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod calls;
mod connection;
mod follow;
pub mod liveness;
mod requests;

pub use connection::{Backoff, closed};
pub use follow::{ClientEvent, Follow, FollowStart, ReceivedEvent};
pub use requests::Requests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::calls::{ApiCall, ApiRequest};
use crate::connection::{CallConnection, TIMEOUT};
use crate::liveness::{LivenessSocket, LivenessTimeouts};
use plexus_protocol::api::history::Page;
use plexus_protocol::api::problem::{ProblemDetails, ProblemMembers};
use plexus_protocol::api::rpc::{
    CancelParams, Cancelled, History, HistoryParams, ListSessions, Projection, SessionNew, StartRun,
};
use plexus_protocol::api::runtimes::RuntimeList;
use plexus_protocol::api::sessions::{AcceptedPrompt, SessionsPage};
use plexus_protocol::{Answer, Receipt, RequestId, RunId, RuntimeId, RuntimeInfo, SessionId, SessionInfo};

/// Timeout of an HTTP call; starting an agent is the slowest one.
const CALL_TIMEOUT: Duration = Duration::from_secs(180);
/// Time that an idle connection is kept open: less than on the gateway's side, so that no call is sent on a connection that is being
/// closed.
const IDLE: Duration = Duration::from_secs(2);
/// Timeout of an HTTP download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// The error of a failed call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not a gateway's URL.
    #[error("{0} is not an http:// address")]
    Address(String),
    /// The token is unknown or revoked, or does not have the scope. A retry with the same token is useless.
    #[error("{0}")]
    Refused(String),
    /// The gateway could not be reached. Nothing was sent.
    #[error("the gateway could not be reached: {0}")]
    Unreached(String),
    /// The connection was lost. The call may or may not have been executed.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The gateway refused the call. `data.code` is stable (docs/protocol.md).
    #[error("{message}")]
    Rpc {
        /// The JSON-RPC error code.
        code: i64,
        /// The message.
        message: String,
        /// `code` and further members.
        data: Value,
    },
    /// The gateway refused a call over HTTP.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The reply has an unknown form: the gateway has a different version.
    #[error("the gateway's response could not be understood: {0}")]
    Answer(#[from] serde_json::Error),
}

/// A refusal of the gateway, over HTTP.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The stable code (docs/protocol.md); empty if the response was not the gateway's.
    pub code: String,
    /// The readable text: what happened, and the fix if there is one.
    pub message: String,
    /// Further members, depending on `code`.
    pub data: Box<ProblemMembers>,
    /// The time to wait before the next call, if the gateway specifies one.
    pub retry_after: Option<Duration>,
}

/// The gateway's address and the client's token.
#[derive(Clone)]
pub struct Address {
    /// `http://host:port`. The connection is not encrypted: use a tunnel to reach a remote gateway.
    pub url: String,
    /// The token of an enrolled device.
    pub token: String,
    /// The name of this program, which the gateway shows beside the program's actions on this machine.
    pub program: Option<String>,
}

/// A function that finds the gateway; it is called before every connection, since a restarted gateway may listen elsewhere.
pub type LocateGateway = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Address, Error>> + Send>> + Send + Sync>;

/// The parameters of `ui.request.answer`, with all members that an answer may have.
#[derive(Serialize)]
struct AnswerOnce<'a> {
    request_id: &'a RequestId,
    idempotency_key: &'a str,
    #[serde(flatten)]
    answer: &'a Answer,
}

/// A client. It is cheap to clone; clones share one connection for calls. Every [`Follow`] has a connection of its own.
#[derive(Clone)]
pub struct Client {
    locate: LocateGateway,
    connection: Arc<Mutex<Option<CallConnection>>>,
    http: Arc<OnceLock<reqwest::Client>>,
    timeouts: LivenessTimeouts,
}

/// A reply over HTTP: a success, or a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayReply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
    /// The time to wait before the next call, if the gateway specifies one.
    pub retry_after: Option<Duration>,
}

impl GatewayReply {
    async fn read_from(answer: reqwest::Response) -> Result<Self, Error> {
        let status = answer.status().as_u16();
        let seconds = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = seconds.map(Duration::from_secs);
        Ok(Self { status, retry_after, text: answer.text().await.map_err(lost)? })
    }

    /// Returns whether the status is a success.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Reads the response of a call: an `R` if it succeeded; `()` for a response without a body.
    ///
    /// # Errors
    /// [`Error::Api`] for a refusal, [`Error::Answer`] for a response that is not an `R`.
    pub fn read<R: DeserializeOwned>(&self) -> Result<R, Error> {
        if !self.is_ok() {
            return Err(Error::Api(self.refusal()));
        }
        Ok(serde_json::from_str(if self.text.is_empty() { "null" } else { &self.text })?)
    }

    /// Returns the refusal in a reply that is not a success. If the reply is not the gateway's, such as that of a proxy, only its status is
    /// known.
    pub fn refusal(&self) -> ApiError {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ProblemText {
            code: String,
            detail: Option<String>,
        }
        let (status, retry_after) = (self.status, self.retry_after);
        match serde_json::from_str::<ProblemDetails>(&self.text) {
            Ok(ProblemDetails { code, title, detail, more, .. }) => {
                let texts = [detail, title.into_owned(), code.clone().into_owned()];
                let message = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
                ApiError { status, code: code.into_owned(), message, data: more, retry_after }
            }
            // A member has a value that only a newer gateway has.
            Err(_) => {
                let ProblemText { code, detail } = serde_json::from_str(&self.text).unwrap_or_default();
                let message = detail.unwrap_or_else(|| format!("the gateway answered with status {status}"));
                ApiError { status, code, message, data: Box::default(), retry_after }
            }
        }
    }

    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// The outcome of a download.
pub enum Download {
    /// The body of a success.
    Pieces(Pieces),
    /// A problem.
    Refused(GatewayReply),
}

/// The body of a reply, read piece by piece.
pub struct Pieces(reqwest::Response);

impl Pieces {
    /// Returns the next piece; `None` at the end. Cancellation safe.
    ///
    /// # Errors
    /// [`Error::Lost`]: the connection was lost before the end of the body.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, Error> {
        self.0.chunk().await.map_err(lost)
    }
}

/// Makes the error of a connection that was lost during an HTTP call.
fn lost(reason: reqwest::Error) -> Error {
    Error::Lost(if reason.is_timeout() { "it took too long".to_owned() } else { reason.without_url().to_string() })
}

impl Client {
    /// Makes a client of the gateway at `url` (`http://host:port`), without connecting.
    pub fn new(url: &str, token: &str) -> Self {
        let address = Address { url: url.to_owned(), token: token.to_owned(), program: None };
        Self::locating(Arc::new(move || {
            let address = address.clone();
            Box::pin(async move { Ok(address) })
        }))
    }

    /// Makes a client of the gateway that `locate` finds.
    pub fn locating(locate: LocateGateway) -> Self {
        Self { locate, connection: Arc::default(), http: Arc::default(), timeouts: LivenessTimeouts::default() }
    }

    /// Sets the time after which a silent gateway counts as dead.
    #[must_use]
    pub fn with_timeouts(self, timeouts: LivenessTimeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Follows a session, or all (`None`), in a task of its own until the [`Follow`] is dropped.
    pub fn attach(&self, session: Option<&SessionId>, begin: FollowStart) -> Follow {
        self.follow(session, begin, Projection::Canonical)
    }

    /// Follows like [`attach`](Self::attach), with the runtime's own message in each event.
    pub fn attach_native(&self, session: Option<&SessionId>, begin: FollowStart) -> Follow {
        self.follow(session, begin, Projection::Native)
    }

    fn follow(&self, session: Option<&SessionId>, begin: FollowStart, projection: Projection) -> Follow {
        let session = session.map_or_else(|| "*".to_owned(), ToString::to_string);
        Follow::start(Arc::clone(&self.locate), session, begin, projection, self.timeouts)
    }

    /// Connects to another WebSocket of the gateway (`/acp`).
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unreached`] a retry is safe.
    pub async fn socket(&self, path: &str) -> Result<LivenessSocket, Error> {
        connection::connect(&(self.locate)().await?, path, self.timeouts).await
    }

    /// Lists the runtimes.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn runtimes(&self) -> Result<Vec<RuntimeInfo>, Error> {
        let RuntimeList { runtimes } = self.call_idempotent("runtime.list", &serde_json::Map::new()).await?;
        Ok(runtimes.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// Lists the sessions.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let (mut all, mut known) = (Vec::new(), std::collections::HashSet::new());
        let mut params = ListSessions::default();
        loop {
            let SessionsPage { sessions, next } = self.call_idempotent("session.list", &params).await?;
            // Sessions that changed during the listing appear twice.
            let new = sessions.into_iter().filter(|session| known.insert(session.session_id.clone()));
            all.extend(new.map(Arc::unwrap_or_clone));
            match next {
                Some(next) => params.cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Returns a page of a session's history before a cursor; `None` for the newest page. With `merge`, the chunks of a message and the
    /// updates of a tool call are one event each. Continue with [`PageEnd::previous`](plexus_protocol::api::history::PageEnd::previous).
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn past(&self, session: &SessionId, before: Option<&str>, merge: bool) -> Result<Page, Error> {
        let (session_id, before) = (Some(session.clone()), Some(before.unwrap_or("now").to_owned()));
        let params = HistoryParams { session_id, before, merge, ..HistoryParams::default() };
        let History { events, end } = self.call_idempotent("session.history", &params).await?;
        Ok(Page { events, end: end.end })
    }

    /// Opens a session, in the runtime's folder unless `cwd` is given.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn new_session(&self, runtime: &RuntimeId, cwd: Option<&str>) -> Result<SessionInfo, Error> {
        let (runtime_id, cwd) = (runtime.clone(), cwd.map(str::to_owned));
        self.call("session.new", &SessionNew { runtime_id, cwd, title: None, native_id: None }).await
    }

    /// Sends a prompt once: after [`Error::Lost`] the events show whether it was accepted.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn prompt(&self, session: &SessionId, text: &str) -> Result<AcceptedPrompt, Error> {
        let (session_id, text) = (Some(session.clone()), Some(text.to_owned()));
        self.call("run.start", &StartRun { session_id, text, ..StartRun::default() }).await
    }

    /// Cancels the current run, or the named one; returns its id.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn cancel(&self, session: &SessionId, run: Option<&RunId>) -> Result<RunId, Error> {
        let params = CancelParams { session_id: Some(session.clone()), run_id: run.cloned(), reason: None };
        let Cancelled { run_id, .. } = self.call("run.cancel", &params).await?;
        Ok(run_id)
    }

    /// Answers a request. If another client was first, or the request is closed, the receipt reports it (`won`, `state`); that is not an
    /// error. With the idempotency `key` (1 to 128 visible ASCII characters) the answer is resent after a lost connection and counts once.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call), except [`Error::Lost`]: the answer is resent until it gets a reply.
    pub async fn answer(&self, request: &RequestId, answer: &Answer, key: &str) -> Result<Receipt, Error> {
        let params = AnswerOnce { request_id: request, idempotency_key: key, answer };
        match self.call_idempotent("ui.request.answer", &params).await {
            // The receipt's members are beside the error code.
            Err(Error::Rpc { code: code @ (-32010 | -32012), message, data }) => {
                Receipt::deserialize(&data).map_err(|_| Error::Rpc { code, message, data })
            }
            other => other,
        }
    }

    /// Calls any method; a method that the gateway does not know is forwarded to the session's runtime. Not cancellation safe: when dropped
    /// before its end, the call may or may not have been executed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call<T: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<T, Error> {
        let params = serde_json::to_value(params)?;
        let mut slot = self.connection.lock().await;
        // The connection is taken out, so that a dropped call leaves no reply behind for the next one.
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => CallConnection::open(&(self.locate)().await?, self.timeouts).await?,
        };
        let answer = connection.ask(method, &params).await;
        if !matches!(answer, Err(Error::Lost(_) | Error::Refused(_))) {
            *slot = Some(connection);
        }
        drop(slot);
        Ok(serde_json::from_str(answer?.get())?)
    }

    /// Calls a method like [`call`](Self::call), over a connection of its own, so that calls of clones do not wait for it. Returns the raw
    /// result.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call_alone(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
        let mut connection = CallConnection::open(&(self.locate)().await?, self.timeouts).await?;
        let result = connection.ask(method, params).await;
        connection.close().await;
        result
    }

    /// Makes a call of [`calls`], independent of other calls.
    ///
    /// # Errors
    /// [`Error::Api`]: the gateway refused the call. [`Error::Unreached`]: nothing was sent. [`Error::Lost`]: the call may or may not have
    /// been executed; with an idempotency key it may be resent. [`Error::Answer`]: the response is not an `R`.
    pub async fn run<R: DeserializeOwned>(&self, call: ApiCall<R>) -> Result<R, Error> {
        self.perform(&call.request).await?.read()
    }

    /// Sends a request over HTTP. A refusal is also returned as a [`GatewayReply`].
    ///
    /// # Errors
    /// The errors of [`http`](Self::http).
    pub async fn perform(&self, request: &ApiRequest) -> Result<GatewayReply, Error> {
        let ApiRequest { method, path, body, key } = request;
        let answer = self.send(method, path, body.clone(), key.as_deref(), CALL_TIMEOUT).await?;
        GatewayReply::read_from(answer).await
    }

    /// Makes one call over HTTP (docs/protocol.md has the routes), independent of other calls. A refusal is also returned as a
    /// [`GatewayReply`]. With the idempotency `key` (1 to 128 visible ASCII characters) the call may be resent and counts once.
    ///
    /// # Errors
    /// [`Error`]: the gateway was not reached, or the connection was lost before the complete reply.
    pub async fn http(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<GatewayReply, Error> {
        let answer = self.send(method, path, body.map(Value::to_string), key, CALL_TIMEOUT).await?;
        GatewayReply::read_from(answer).await
    }

    /// Makes a call whose response may have any length and is read piece by piece.
    ///
    /// # Errors
    /// The errors of [`http`](Self::http).
    pub async fn download(&self, call: &ApiCall<Pieces>) -> Result<Download, Error> {
        let ApiRequest { method, path, .. } = &call.request;
        let answer = self.send(method, path, None, None, DOWNLOAD_TIMEOUT).await?;
        if answer.status().is_success() {
            return Ok(Download::Pieces(Pieces(answer)));
        }
        Ok(Download::Refused(GatewayReply::read_from(answer).await?))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        key: Option<&str>,
        max: Duration,
    ) -> Result<reqwest::Response, Error> {
        let address = (self.locate)().await?;
        let client = match self.http.get() {
            Some(client) => client,
            None => {
                let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
                let made = builder.connect_timeout(TIMEOUT).pool_idle_timeout(IDLE).build();
                let made = made.map_err(|reason| Error::Unreached(reason.to_string()))?;
                self.http.get_or_init(|| made)
            }
        };
        let bad = |_| Error::Address(format!("{method} {path}"));
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(bad)?;
        let url = format!("{}{path}", address.url.trim_end_matches('/'));
        let mut request = client.request(method, url).bearer_auth(&address.token).timeout(max);
        if let Some(program) = &address.program {
            request = request.header("Plexus-Program", program);
        }
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        request.send().await.map_err(|reason| {
            if reason.is_connect() { Error::Unreached("nothing responds at its address".into()) } else { lost(reason) }
        })
    }

    /// Calls an idempotent method like [`call`](Self::call), and resends it after a lost connection.
    async fn call_idempotent<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T, Error> {
        let mut backoff = Backoff::default();
        loop {
            match self.call(method, params).await {
                Err(Error::Lost(_) | Error::Unreached(_)) => tokio::time::sleep(backoff.pause()).await,
                other => return other,
            }
        }
    }
}
