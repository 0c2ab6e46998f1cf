//! ACP over Streamable HTTP (RFD "Streamable HTTP & WebSocket Transport", and the behaviour of the official SDKs): POST for the
//! client's messages, one GET for the connection's stream and one for each session's, DELETE at the end.
//!
//! The RFD requires HTTP/2, which comes with TLS; over HTTP/1.1 each stream needs a socket of its own.
//!
//! Beyond the RFD: every event of a stream has an `id`, and `Last-Event-ID` resumes exactly after it. On a session's stream it is
//! the cursor of the log, or `<cursor>+<n>` for a response that is not in the log; on the connection's, a number. One position of
//! the log may be several messages, of which the last has the `id`; a cut between them repeats the first ones.
//!
//! Clients older than the RFD's headers (acp-http-client) use one path and one stream for everything, and ignore response
//! headers. They name their connection themselves by `?connection=NAME` in all requests.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::connections::{Connection, no_connection, no_session};
use super::outgoing::Stream;
use super::stream_queue::Start;
use super::{AcpState, Peer, runtime_param};
use plexus_auth::Caller;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::object;
use plexus_protocol::{Cursor, Position, RequestId, SessionId};
use plexus_router::frames::sse_lines;
use plexus_router::guard::Call;
use plexus_router::{Core, Problem, sse};
use plexus_sessions::{Filter, StartAfter};

/// The header with the connection's identifier.
const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");
/// The header with the session.
const SESSION: HeaderName = HeaderName::from_static("acp-session-id");
/// The header with the event id to resume after.
const LAST: HeaderName = HeaderName::from_static("last-event-id");

/// Methods that need the session's header, regardless of their params.
const OF_A_SESSION: [&str; 12] = [
    "session/attach",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/detach",
    "session/fork",
    "session/load",
    "session/prompt",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];

/// Maximum length of the name that a client may give its connection, in bytes.
const NAME_MAX: usize = 64;

fn bad(code: &'static str, message: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, code, message)
}

/// Returns a header that may occur once, as text.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => match one.to_str() {
            Ok(text) if !text.is_empty() => Ok(Some(text)),
            _ => Err(bad("bad_header", format!("`{name}` is empty or not valid text"))),
        },
        (Some(_), Some(_)) => Err(bad("bad_header", format!("`{name}` may be given only once"))),
    }
}

/// Returns the connection's name in the query: 1 to 64 letters, digits, `_` and `-`.
fn connection_name(parts: &Parts) -> Result<Option<String>, Problem> {
    let query = parts.uri.query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "connection");
    let Some((_, name)) = names.next() else { return Ok(None) };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if names.next().is_some() || name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_allowed) {
        let message = format!("`connection` must be 1 to {NAME_MAX} letters, digits, `_` or `-`");
        return Err(bad("bad_connection", message));
    }
    Ok(Some(name.into_owned()))
}

/// Returns the connection that a request names.
fn find_connection(state: &AcpState, caller: &Caller, parts: &Parts) -> Result<Arc<Connection>, Problem> {
    if let Some(id) = header(&parts.headers, &CONNECTION)? {
        return state.connections.find(caller, id).ok_or_else(no_connection);
    }
    match connection_name(parts)? {
        Some(name) => state.connections.named(caller, &name).ok_or_else(no_connection),
        None => Err(bad("connection_missing", "send the `Acp-Connection-Id` from the response to `initialize`")),
    }
}

/// The members of a message that decide its handling.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Distinguishes `null` from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Head<'_> {
    /// Returns the session in the message's params.
    fn session(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct SessionParam {
            #[serde(rename = "sessionId")]
            session: Option<Value>,
        }
        let params: SessionParam = object::from_str(self.params?.get()).ok()?;
        params.session?.as_str().map(ToOwned::to_owned)
    }
}

/// Returns a JSON-RPC error as the direct response to a POST.
fn refused(code: i64, message: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let mut response = json_response(error.to_string().into_bytes());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

fn json_response(json: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(json));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn name(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Handles `POST /acp` and `POST /acp/{runtime_id}`: one message of the client. `initialize` gets a direct response; everything else a
/// response on a stream.
///
/// # Errors
/// 400 for an invalid message or header; 404 for a connection that is unknown or belongs to another device; 429 and 503 at the
/// bounds of [`connections`](super::connections).
pub(crate) async fn post(state: AcpState, mut call: Call) -> Result<Response, Problem> {
    let charge = std::mem::replace(&mut call.charge, call.account.nothing());
    let caller = call.caller()?.clone();
    let runtime = runtime_param(&state.core, &caller, &call)?;
    let headers = &call.parts.headers;
    let text = std::str::from_utf8(&call.body).map_err(|_| bad("bad_json", "the body is not UTF-8"))?;
    if let Err(error) = serde_json::from_str::<&RawValue>(text) {
        return Err(bad("bad_json", format!("the body is not JSON: {error}")));
    }
    if text.trim_start().starts_with('[') {
        return Ok(refused(-32600, "send one message per request: batches are not supported"));
    }
    let head: Head<'_> = match object::from_str(text) {
        Ok(head) => head,
        Err(error) => return Ok(refused(-32600, &format!("not a JSON-RPC message: {error}"))),
    };
    if head.method.as_deref() == Some("initialize") {
        if header(headers, &CONNECTION)?.is_some() {
            return Err(bad(
                "initialized",
                "this connection is already initialized: send `initialize` without its header to start another",
            ));
        }
        if head.id.is_none_or(|id| id.get() == "null") {
            return Err(bad("bad_message", "`initialize` is a request: it needs an `id`"));
        }
        let mut peer = Peer::new(state.clone(), caller.clone(), runtime);
        let sent = match peer.message(text) {
            Some(reply) => reply.await,
            None => Vec::new(),
        };
        let Some(message) = sent.into_iter().next() else {
            return Ok(refused(-32600, "not a JSON-RPC request"));
        };
        let mut response = json_response(message.json);
        // A refused `initialize` adds no connection.
        if peer.initialized() {
            let connection = state.connections.enter(&state.core, &caller, peer, connection_name(&call.parts)?)?;
            name(&mut response, CONNECTION, connection.id());
        }
        return Ok(response);
    }
    let connection = find_connection(&state, &caller, &call.parts)?;
    let session = header(headers, &SESSION)?;
    if let Some(method) = &head.method {
        let named = head.session();
        let one_stream = connection.is_named();
        if !one_stream && session.is_none() && (named.is_some() || OF_A_SESSION.contains(&method.as_ref())) {
            return Err(bad("session_missing", "send `Acp-Session-Id` with messages that belong to a session"));
        }
        if let (Some(session), Some(named)) = (session, &named)
            && session != named
        {
            return Err(mismatch());
        }
    } else if let (Some(session), Some(id)) = (session, head.id) {
        // For a response, the request that it answers gives the session.
        let request = serde_json::from_str::<RequestId>(id.get()).ok();
        if let Some(request) = request
            && let Some((owner, runtime)) = state.core.directory.requests().target(&request).await?
            && caller.sees(&owner, &runtime)
            && owner.as_str() != session
        {
            return Err(mismatch());
        }
    }
    connection.message(text, head.method.is_some() && head.id.is_some(), charge)?;
    Ok(accepted())
}

fn mismatch() -> Problem {
    bad("session_mismatch", "`Acp-Session-Id` and the message name two sessions")
}

/// Handles a `GET` without an upgrade: opens the connection's stream, or with `Acp-Session-Id` that session's. It replaces an open one.
///
/// # Errors
/// 406 unless the client accepts `text/event-stream`; 400 and 404 as for [`post`]; 409 if `Last-Event-ID` cannot be resumed:
/// the client must load the session again.
pub(super) async fn get(state: AcpState, caller: Caller, parts: &Parts) -> Result<Response, Problem> {
    let lines = parts.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let stream =
        |one: &str| one.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"));
    if !lines.flat_map(|line| line.split(',')).any(stream) {
        let message =
            "this route responds with a stream: accept `text/event-stream`, or request an upgrade to `websocket`";
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message));
    }
    let connection = match connection_name(parts)? {
        // Such a client opens its stream at the same time as it initializes.
        Some(name) => state.connections.expected(&caller, &name).await.ok_or_else(no_connection)?,
        None => find_connection(&state, &caller, parts)?,
    };
    if parts.method == Method::HEAD {
        // A HEAD request must not open a stream.
        return Ok(Response::new(Body::empty()));
    }
    let session: Option<SessionId> = match header(&parts.headers, &SESSION)? {
        _ if connection.is_named() => None,
        Some(text) => Some(text.parse().map_err(|_| no_session())?),
        None => None,
    };
    let info = session.as_ref().and_then(|session| state.core.directory.session(session));
    let known = info.is_some_and(|info| caller.sees(&info.session_id, &info.runtime_id));
    let start = match header(&parts.headers, &LAST)? {
        None => Start::Flushed,
        // A session that the client may not see is treated as unknown.
        Some(_) if session.is_some() && !known => return Err(no_session()),
        Some(last) => start(&state.core, session.as_ref(), last)?,
    };
    let mut first = Vec::new();
    sse_lines(&mut first, ": open");
    let numbered = connection.stream(session.clone(), known)?;
    let stream = Stream::new(Arc::clone(&connection), session.clone(), numbered, start);
    let mut response = sse::stream(state.core, caller, parts, first, Box::new(stream));
    name(&mut response, CONNECTION, connection.id());
    if let Some(session) = session {
        name(&mut response, SESSION, session.as_str());
    }
    Ok(response)
}

/// Returns the start position of a `Last-Event-ID`.
fn start(core: &Core, session: Option<&SessionId>, last: &str) -> Result<Start, Problem> {
    let wrong = || bad("bad_cursor", "`Last-Event-ID` does not belong to this stream");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let Some(session) = session else {
        return Ok(Start::After { position: None, number: Some(number(last)?) });
    };
    let (cursor, number) = match last.split_once('+') {
        Some((cursor, text)) => (cursor, Some(number(text)?)),
        None => (last, None),
    };
    if cursor.is_empty() {
        return Ok(Start::After { position: None, number });
    }
    let cursor: Cursor = cursor.parse().map_err(|_| wrong())?;
    Ok(Start::After { position: Some(resumed(core, session, cursor)?), number })
}

fn resumed(core: &Core, session: &SessionId, cursor: Cursor) -> Result<Position, Problem> {
    let log = core.directory.log();
    let attach = log.attach(&Filter::session(session.clone()), &StartAfter::Cursor(cursor));
    let code = match attach.resume {
        ResumeVerdict::Ok => return Ok(attach.after),
        ResumeVerdict::Gap => "resume_gap",
        ResumeVerdict::Reset | ResumeVerdict::Unknown => "resume_reset",
        ResumeVerdict::Ahead => "resume_ahead",
    };
    let message = "the log no longer has the events after that: load the session again";
    let oldest = log.cursor(attach.oldest);
    Err(Problem::new(StatusCode::CONFLICT, code, message)
        .with(ProblemMembers { oldest: Some(oldest), ..ProblemMembers::default() }))
}

/// Handles `DELETE`: ends the connection and its streams; sessions continue.
///
/// # Errors
/// The errors of [`post`].
pub(crate) async fn delete(state: AcpState, call: Call) -> Result<Response, Problem> {
    let caller = call.caller()?;
    let connection = find_connection(&state, caller, &call.parts)?;
    state.connections.end(&connection);
    Ok(accepted())
}
