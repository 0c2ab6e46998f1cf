//! One connection to the gateway: the handshake, close codes, sequential calls, and the pauses between attempts.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use plexus_protocol::codes::close;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tungstenite::Message;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;

use crate::liveness::{CountedSocket, LivenessSocket, LivenessTimeouts};
use crate::{Address, Error};

/// Timeout of a closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The path of the native WebSocket.
pub(crate) const NATIVE: &str = "/v1/ws";
/// Maximum length of a received message, in bytes: an event wraps a line of a runtime, which may be that long.
const MESSAGE_MAX: usize = 1 << 30;
/// Timeout of connecting and of the first replies; after it, the connection counts as lost.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// The first pause before a reconnect; it doubles.
const BACKOFF: Duration = Duration::from_millis(200);
/// The maximum pause before a reconnect.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The connection for calls, which are sent one after another. It follows no session.
pub(crate) struct CallConnection {
    socket: LivenessSocket,
    next: u64,
}

impl CallConnection {
    /// Connects and calls `initialize`.
    ///
    /// # Errors
    /// The errors of [`Client::call`](crate::Client::call), except [`Error::Lost`], since no call was sent yet.
    pub(crate) async fn open(address: &Address, timeouts: LivenessTimeouts) -> Result<Self, Error> {
        let mut connection = Self { socket: connect(address, NATIVE, timeouts).await?, next: 0 };
        connection.ask("initialize", &hello()).await.map_err(|error| match error {
            Error::Lost(reason) => Error::Unreached(reason),
            error => error,
        })?;
        Ok(connection)
    }

    /// Closes the connection; waits at most [`CLOSE_TIMEOUT`] for the closing handshake.
    pub(crate) async fn close(mut self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.socket.close()).await;
    }

    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Result<Box<RawValue>, Error> {
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
        let lost = |reason: tungstenite::Error| Error::Lost(reason.to_string());
        let sent = tokio::time::timeout(TIMEOUT, self.socket.send(Message::text(message.to_string()))).await;
        sent.map_err(|_| Error::Lost("the gateway no longer reads from this connection".into()))?.map_err(lost)?;
        loop {
            let text = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => return Err(closed(frame.as_ref())),
                Some(Ok(_)) => continue,
                Some(Err(reason)) => return Err(lost(reason)),
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

/// A JSON-RPC error.
#[derive(Deserialize)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Value,
}

pub(crate) fn hello() -> Value {
    // Requests arrive as events and are answered by `ui.request.answer`.
    let client = json!({ "name": "plexus", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocol_version": "0", "client": client, "ui_capabilities": {} })
}

/// The pauses between attempts to connect: each twice as long as the previous one, up to five seconds.
#[derive(Clone, Copy, Debug)]
pub struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(BACKOFF)
    }
}

impl Backoff {
    /// Returns the next pause: a random duration between half and all of the current pause, which then doubles.
    pub fn pause(&mut self) -> Duration {
        let pause = jittered(self.0);
        self.0 = (self.0 * 2).min(BACKOFF_MAX);
        pause
    }
}

/// Returns a random duration between half of the pause and all of it, so that clients that were disconnected together do not reconnect
/// together.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0];
    // Without randomness all clients pause equally long, which still works.
    let _ = getrandom::fill(&mut random);
    pause / 2 + pause.mul_f32(f32::from(random[0]) / 512.0)
}

/// Interprets a closed connection: [`Error::Refused`] if a reconnect is useless, else [`Error::Lost`].
pub fn closed(frame: Option<&tungstenite::protocol::CloseFrame>) -> Error {
    let Some(frame) = frame else { return Error::Lost("closed".into()) };
    let code = u16::from(frame.code);
    if close::is_final(code) {
        return Error::Refused(format!("the gateway closed the connection permanently: {}", frame.reason));
    }
    Error::Lost(format!("closed with code {code} {}", frame.reason))
}

/// Connects to a WebSocket of the gateway, with the token in the handshake.
pub(crate) async fn connect(
    address: &Address,
    path: &str,
    timeouts: LivenessTimeouts,
) -> Result<LivenessSocket, Error> {
    let dial = async {
        let lost = |reason: std::io::Error| Error::Unreached(reason.to_string());
        let bad = || Error::Address(address.url.clone());
        let authority = address.url.trim_end_matches('/').strip_prefix("http://").ok_or_else(bad)?;
        let mut request = format!("ws://{authority}{path}").into_client_request().map_err(|_| bad())?;
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
            Ok((stream, _)) => Ok(LivenessSocket::new(stream, timeouts)),
            Err(tungstenite::Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => {
                Err(Error::Refused(format!("the gateway answered {}", answer.status())))
            }
            Err(reason) => Err(Error::Unreached(reason.to_string())),
        }
    };
    let slow = |_| Error::Unreached("the gateway does not respond".into());
    tokio::time::timeout(TIMEOUT, dial).await.map_err(slow)?
}
