//! JSON-RPC 2.0 with clients: messages, errors with their codes, responses.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::Problem;
use super::frames::ws_text;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::codes::ONE_SESSION;
use plexus_sessions::SessionError;

/// One received message.
#[derive(Deserialize)]
pub(super) struct Incoming<'a> {
    #[serde(borrow, default)]
    pub(super) jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub(super) error: Option<&'a RawValue>,
}

/// Distinguishes `null` from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A JSON-RPC error. `data.code` is stable, and the same as over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: FailureData,
}

/// The `data` of a JSON-RPC error: `code`, and the members that the problem has over HTTP.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailureData {
    pub(super) code: &'static str,
    #[serde(flatten)]
    pub(super) more: Box<ProblemMembers>,
}

impl Failure {
    pub(super) fn new(code: i64, name: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: FailureData { code: name, more: Box::default() } }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, "invalid_params", message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::new(-32601, "method_not_found", format!("there is no method {method}"))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
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
        Self { code, message: problem.detail, data: FailureData { code: problem.code, more: problem.more } }
    }
}

impl From<SessionError> for Failure {
    fn from(refusal: SessionError) -> Self {
        let own = match &refusal {
            SessionError::RuntimeRefused { code, .. } => Some(*code),
            _ => None,
        };
        let failure = Self::from(Problem::from(refusal));
        // The runtime's own code is better: it is meant for clients of this protocol.
        Self { code: own.unwrap_or(failure.code), ..failure }
    }
}

impl From<plexus_auth::Denied> for Failure {
    fn from(denied: plexus_auth::Denied) -> Self {
        Problem::from(denied).into()
    }
}

pub(super) type Outcome = Result<Box<RawValue>, Failure>;

pub(super) fn result(value: &impl Serialize) -> Outcome {
    to_raw_value(value).map_err(|error| Failure::new(-32603, "internal", error.to_string()))
}

/// A response as a frame.
pub(super) fn response(id: &str, outcome: &Outcome) -> Vec<u8> {
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
    let mut frame = Vec::with_capacity(json.len() + 10);
    ws_text(&mut frame, &json);
    frame
}
