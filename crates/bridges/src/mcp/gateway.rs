//! Calls of the gateway, which may be restarting: each is repeated, with one key, until it gets a reply or its time is over.

use std::future::Future;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plexus_client::{Address, ApiError, Backoff, Client, Error};
use plexus_protocol::SessionId;
use plexus_protocol::text::line;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::McpOptions;

/// The folder of the tokens in the state folder, with a file for each session.
const TOKENS: &str = "ui";
/// Maximum length of a token, in bytes.
const TOKEN_MAX: u64 = 4 << 10;
/// The maximum pause before a call is repeated, so that a restarted gateway is used soon.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Maximum length of an error for the model, in characters.
const DETAIL_MAX: usize = 1000;

/// A function that finds the URL of the running gateway, or returns the reason why there is none; it is called before each connection,
/// since a restarted gateway may listen elsewhere. It must make sure that the program at that URL is the gateway, because the session's
/// token is sent to it.
pub type FindGateway = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// The reason why a call failed.
#[derive(Debug, PartialEq, Eq)]
pub enum CallError {
    /// The gateway refused the call, or the token could not be read.
    Refused {
        /// The reason and the fix.
        detail: String,
        /// The surface's revision, if the call expected another one.
        stale: Option<u64>,
    },
    /// There was no reply in time.
    TimedOut {
        /// The last reason.
        reason: String,
        /// `true` if the gateway may have executed the call.
        was_sent: bool,
    },
    /// The agent has exited.
    AgentClosed,
}

impl CallError {
    /// Makes a refusal from a problem of the gateway; `status` is that of its response.
    fn refused(problem: &ApiError) -> Self {
        let stale = problem.data.rev.filter(|_| problem.code == "stale_surface");
        Self::Refused { detail: detail(problem), stale }
    }
}

/// A call: its request, and the time that it is retried.
#[derive(Clone, Copy, Debug)]
pub struct GatewayCall<'a> {
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'a str,
    /// The path below the session's path, with its query.
    pub path: &'a str,
    /// The body.
    pub body: Option<&'a Value>,
    /// The idempotency key.
    pub key: Option<&'a str>,
    /// The time by which the gateway has to reply.
    pub deadline: Instant,
}

/// The transport of the tools' calls to the gateway, for one session.
pub trait Carrier: Send + Sync + 'static {
    /// Makes a call; returns the body of the response.
    ///
    /// # Errors
    /// [`CallError`].
    fn call(&self, call: GatewayCall<'_>) -> impl Future<Output = Result<Value, CallError>> + Send;
}

/// The gateway, for one session.
pub(super) struct Gateway {
    client: Client,
    session: SessionId,
    agent_closed: watch::Receiver<bool>,
    /// The time that a call is retried with a refused token, or for a session that is not open.
    token_grace: Duration,
}

impl Gateway {
    pub(super) fn new(options: McpOptions, agent_closed: watch::Receiver<bool>, token_grace: Duration) -> Self {
        let McpOptions { session, home, find, shared: _ } = options;
        let file: Arc<Path> = token_file(&home, &session).into();
        let client = Client::locating(Arc::new(move || {
            let (file, find) = (Arc::clone(&file), Arc::clone(&find));
            Box::pin(async move {
                let url = find().await.map_err(Error::Unreached)?;
                // The token is read each time: a restarted gateway may have written another one.
                let token = token(&file).map_err(Error::Refused)?;
                Ok(Address { url, token, program: Some("plexus mcp".into()) })
            })
        }));
        Self { client, session, agent_closed, token_grace }
    }
}

impl Carrier for Gateway {
    /// Repeats a call until there is a reply.
    async fn call(&self, call: GatewayCall<'_>) -> Result<Value, CallError> {
        let path = format!("/v1/sessions/{}{}", self.session, call.path);
        let mut backoff = Backoff::default();
        let mut unauthorized_since = None;
        let (mut reason, mut was_sent) = (String::new(), false);
        let mut agent_closed = self.agent_closed.clone();
        loop {
            let reply = tokio::select! {
                reply = self.client.http(call.method, &path, call.body, call.key) => reply,
                () = tokio::time::sleep_until(call.deadline) => {
                    let no_response = || "it does not respond".to_owned();
                    return Err(CallError::TimedOut { reason: if reason.is_empty() { no_response() } else { reason }, was_sent: true });
                }
                // A call that was sent still waits for its reply: the agent may have written its last calls and closed stdin. The deadline
                // of the service's end limits the wait.
                _ = agent_closed.wait_for(|closed| *closed), if call.method == "GET" => return Err(CallError::AgentClosed),
            };
            let mut pause = backoff.pause().min(PAUSE_MAX);
            let refused = match reply {
                Ok(reply) if reply.is_ok() => return Ok(reply.json()),
                Ok(reply) => match (reply.status, reply.retry_after, reply.refusal()) {
                    (401, ..) => {
                        Some("the gateway does not accept this session's token: the session may have ended".into())
                    }
                    // A refusal that waiting cannot resolve specifies no time.
                    (429, Some(after), problem) => {
                        reason = detail(&problem);
                        pause = after.max(pause);
                        None
                    }
                    (409, _, problem) if problem.code == "runtime_gone" => Some(detail(&problem)),
                    // The gateway is starting or stopping.
                    (502..=504, _, problem) => {
                        reason = detail(&problem);
                        None
                    }
                    (_, _, problem) => return Err(CallError::refused(&problem)),
                },
                Err(Error::Refused(reason)) => Some(reason),
                Err(error) => {
                    was_sent |= !matches!(error, Error::Unreached(_) | Error::Address(_));
                    reason = line(&error.to_string(), DETAIL_MAX);
                    None
                }
            };
            if let Some(detail) = refused {
                if unauthorized_since.get_or_insert_with(Instant::now).elapsed() >= self.token_grace {
                    return Err(CallError::Refused { detail, stale: None });
                }
                reason = detail;
            } else {
                unauthorized_since = None;
            }
            if Instant::now() + pause >= call.deadline {
                return Err(CallError::TimedOut { reason, was_sent });
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = agent_closed.wait_for(|closed| *closed) => return Err(CallError::AgentClosed),
            }
        }
    }
}

/// Returns the instruction of a problem for the model.
fn detail(problem: &ApiError) -> String {
    line(&problem.message, DETAIL_MAX)
}

/// Reads the session's token.
///
/// # Errors
/// The reason and the fix: the file does not exist, or other users could have read or written it.
fn token(file: &Path) -> Result<String, String> {
    let path = file.display();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(file, flags, Mode::empty()) {
        Ok(opened) => std::fs::File::from(opened),
        Err(rustix::io::Errno::NOENT) => return Err("this session has no token: it may have ended".into()),
        Err(rustix::io::Errno::LOOP) => return Err(format!("{path} is a link: the gateway writes a plain file")),
        Err(reason) => return Err(format!("cannot read {path}: {reason}")),
    };
    let about = opened.metadata().map_err(|reason| format!("cannot read {path}: {reason}"))?;
    if !about.is_file() {
        return Err(format!("{path} is not a plain file"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{path} belongs to another user"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(format!("others can read {path}: its mode must be 0600"));
    }
    let mut text = String::new();
    opened.take(TOKEN_MAX).read_to_string(&mut text).map_err(|reason| format!("cannot read {path}: {reason}"))?;
    let text = text.trim();
    let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then(|| text.to_owned()).ok_or_else(|| format!("{path} has no token"))
}

/// The file of a session's token.
pub(super) fn token_file(home: &Path, session: &SessionId) -> PathBuf {
    home.join(TOKENS).join(session.as_str())
}
