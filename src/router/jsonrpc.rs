//! JSON-RPC 2.0 with clients: messages, errors with their codes, responses.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Problem;
use super::frames::ws_text;
use plexus_protocol::api::problem::{RpcFailure, RpcFailureData};
use plexus_protocol::codes::ONE_SESSION;
use plexus_sessions::SessionError;

/// One received message.
#[derive(Deserialize)]
pub struct Incoming<'a> {
    /// The version of the protocol.
    #[serde(borrow, default)]
    pub jsonrpc: Option<Cow<'a, str>>,
    /// The identifier; `null` is an identifier.
    #[serde(borrow, default, deserialize_with = "given")]
    pub id: Option<&'a RawValue>,
    /// The method of a request or notification.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// The parameters of the method.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result of a response.
    #[serde(borrow, default, deserialize_with = "given")]
    pub result: Option<&'a RawValue>,
    /// The error of a response.
    #[serde(borrow, default, deserialize_with = "given")]
    pub error: Option<&'a RawValue>,
}

/// Distinguishes `null` from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The error of a method, to which the gateway's own errors are converted.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RpcError(pub(super) RpcFailure);

impl RpcError {
    /// Creates an error with a code of JSON-RPC, a stable name and a text for users.
    pub fn new(code: i64, name: &'static str, message: impl Into<String>) -> Self {
        let data = RpcFailureData { code: name.into(), more: Box::default() };
        Self(RpcFailure { code, message: message.into(), data })
    }

    /// Makes the error of invalid parameters.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, "invalid_params", message)
    }

    /// Makes the error of an unknown method.
    pub fn no_method(method: &str) -> Self {
        Self::new(-32601, "method_not_found", format!("there is no method {method}"))
    }
}

impl Deref for RpcError {
    type Target = RpcFailure;

    fn deref(&self) -> &RpcFailure {
        &self.0
    }
}

impl From<Problem> for RpcFailureData {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code.into(), more: problem.more }
    }
}

impl From<Problem> for RpcError {
    fn from(mut problem: Problem) -> Self {
        let code = match problem.code {
            "queue_full" | "over_limit" => -32001,
            "run_not_found" => -32002,
            "session_not_found" => -32004,
            "already_resolved" => -32010,
            "scope_missing" => -32011,
            "expired" | "withdrawn" | "orphaned" | "closed" => -32012,
            "stale_digest" => -32013,
            "runtime_gone" => -32014,
            "runtime_not_found" => -32015,
            "request_not_found" => -32016,
            "storage" => -32017,
            "stopping" => -32018,
            "risk_too_high" => -32019,
            "runtime_silent" => -32020,
            "one_session" => ONE_SESSION,
            "internal" => -32603,
            _ => -32602,
        };
        let message = std::mem::take(&mut problem.detail);
        Self(RpcFailure { code, message, data: problem.into() })
    }
}

impl From<SessionError> for RpcError {
    fn from(refusal: SessionError) -> Self {
        let own = match &refusal {
            SessionError::RuntimeRefused { code, .. } => Some(*code),
            _ => None,
        };
        let Self(failure) = Self::from(Problem::from(refusal));
        // The runtime's own code is better: it is meant for clients of this protocol.
        Self(RpcFailure { code: own.unwrap_or(failure.code), ..failure })
    }
}

impl From<plexus_auth::Denied> for RpcError {
    fn from(denied: plexus_auth::Denied) -> Self {
        Problem::from(denied).into()
    }
}

/// The outcome of a method.
pub type RpcResult = Result<Box<RawValue>, RpcError>;

/// Serializes the result of a method.
pub fn result(value: &impl Serialize) -> RpcResult {
    to_raw_value(value).map_err(|error| RpcError::new(-32603, "internal", error.to_string()))
}

/// Returns a response as JSON text; `id` is the client's text.
pub fn response_json(id: &str, outcome: Result<&RawValue, &impl Serialize>) -> Vec<u8> {
    let mut json = Vec::with_capacity(128);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    json.extend_from_slice(id.as_bytes());
    match outcome {
        Ok(result) => {
            json.extend_from_slice(br#","result":"#);
            json.extend_from_slice(result.get().as_bytes());
        }
        Err(failure) => {
            json.extend_from_slice(br#","error":"#);
            json.extend_from_slice(serde_json::to_string(failure).unwrap_or_else(|_| "null".into()).as_bytes());
        }
    }
    json.push(b'}');
    json
}

/// Returns a response as a frame.
pub fn response(id: &str, outcome: &RpcResult) -> Vec<u8> {
    let json = response_json(id, outcome.as_deref());
    let mut frame = Vec::with_capacity(json.len() + 10);
    ws_text(&mut frame, &json);
    frame
}
