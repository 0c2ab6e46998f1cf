//! Errors for clients: RFC 9457 problems with stable codes, from one table.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use plexus_auth::{AuthError, Denied, PairingFault};
use plexus_ledger::{Class, LedgerFull};

use plexus_protocol::api::problem::{ProblemDetails, ProblemMembers};
use plexus_protocol::{Receipt, RequestState};
use plexus_sessions::SessionError;
use plexus_store::StoreError;
use plexus_surfaces::{ActionError, SurfaceError};

/// The content type of every error.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// An RFC 9457 problem. `code` is stable: clients act on it and not on the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// The stable code.
    pub code: &'static str,
    /// The text for users: the problem, and the fix if there is one.
    pub detail: String,
    /// Further members at the top level.
    pub more: Box<ProblemMembers>,
    allow: Option<Box<str>>,
    retry_after: Option<u32>,
    close: bool,
}

impl Problem {
    /// Makes a problem.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { status, code, detail, more: Box::default(), allow: None, retry_after: None, close: false }
    }

    /// Makes the problem of a missing or wrong bearer; clients do not learn which.
    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "send the token of an enrolled device as `Authorization: Bearer …`",
        )
    }

    /// Makes the problem of an unknown path.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no route at this path")
    }

    /// Makes the problem of a path that accepts only other methods.
    pub fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("this path supports only {allow}");
        Self { allow: Some(allow.into()), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail) }
    }

    /// Makes the problem of a request that parses but is not valid.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    /// Makes the problem of a text that is not a cursor.
    pub fn bad_cursor(error: plexus_protocol::BadCursor) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_cursor", error.to_string())
    }

    /// Makes the problem of an internal error; only the log has the cause.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "an internal error occurred; see the gateway's log. The requested action may or may not have been done",
        )
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Returns whether the same request may succeed a little later.
    pub fn is_worth_repeating(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS && self.retry_after.is_some()
    }

    /// Closes the connection after the response, because the rest of the request is not read.
    #[must_use]
    pub fn close(self) -> Self {
        Self { close: true, ..self }
    }

    /// Adds members.
    #[must_use]
    pub fn with(mut self, more: ProblemMembers) -> Self {
        *self.more = more;
        self
    }

    /// Adds the AG-UI interrupt.
    #[must_use]
    pub fn with_interrupt(mut self, id: &str) -> Self {
        self.more.interrupt_id = Some(id.to_owned());
        self
    }

    /// Adds the winner's receipt at the top level, with `won` false.
    fn with_receipt(self, receipt: Receipt) -> Self {
        self.with(ProblemMembers { receipt: Some(Receipt { won: false, ..receipt }), ..ProblemMembers::default() })
    }

    /// Returns the problem as JSON, for HTTP and WebSocket clients.
    pub fn to_json(&self) -> Value {
        let details = ProblemDetails {
            kind: format!("urn:plexus:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error").into(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.into(),
            more: self.more.clone(),
        };
        // Every member is text, a number or JSON already.
        serde_json::to_value(details).unwrap_or_default()
    }
}

/// Makes the problem of a refused drawing. The detail is for a model: it contains the fix.
fn surface_problem(error: &SurfaceError) -> Problem {
    let (status, code) = match error {
        SurfaceError::Unknown { .. } => (StatusCode::NOT_FOUND, "surface_not_found"),
        SurfaceError::Stale { .. } => (StatusCode::CONFLICT, "stale_surface"),
        SurfaceError::Limit { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "surface_too_large"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "bad_surface"),
    };
    let rev = if let SurfaceError::Stale { now } = error { Some(*now) } else { None };
    Problem::new(status, code, error.to_string()).with(ProblemMembers { rev, ..ProblemMembers::default() })
}

/// Makes the problem of a refused press.
fn action_problem(error: &ActionError) -> Problem {
    let (status, code) = match error {
        ActionError::Surface(_) => (StatusCode::NOT_FOUND, "surface_not_found"),
        ActionError::Stale { .. } => (StatusCode::CONFLICT, "stale_surface"),
        ActionError::Check { .. } | ActionError::Input { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "input_unfit"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "bad_action"),
    };
    let rev = if let ActionError::Stale { now } = error { Some(*now) } else { None };
    Problem::new(status, code, error.to_string()).with(ProblemMembers { rev, ..ProblemMembers::default() })
}

impl From<LedgerFull> for Problem {
    /// Makes 429 if the device itself filled the account; 503 if others did.
    fn from(full: LedgerFull) -> Self {
        let own = matches!(full.class, Class::Device | Class::Connection | Class::Session);
        let status = if own { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
        let detail = format!("{full}: read the pending output, or try again later");
        Self::new(status, "over_limit", detail).retry_after(1).with(account(&full))
    }
}

fn account(over: &LedgerFull) -> ProblemMembers {
    let (account, limit) = (Some(over.class.as_str().into()), Some(over.limit as u64));
    ProblemMembers { account, limit, ..ProblemMembers::default() }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"plexus\""));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::from_str(&allow).ok()) {
            headers.insert(ALLOW, allow);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let more = ProblemMembers { scope: Some(denied.scope), ..ProblemMembers::default() };
        Self::new(StatusCode::FORBIDDEN, "scope_missing", denied.to_string()).with(more)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage", error.to_string())
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let (status, code) = match &error {
            AuthError::BadCode => (StatusCode::UNAUTHORIZED, "bad_code"),
            AuthError::TooMany(wait) => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
                return Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", error.to_string())
                    .retry_after(seconds);
            }
            AuthError::Share(_) => (StatusCode::FORBIDDEN, "only_a_link"),
            AuthError::Pairing(fault) => match fault {
                PairingFault::Unknown => (StatusCode::NOT_FOUND, "pairing_not_found"),
                PairingFault::NotJoined => (StatusCode::CONFLICT, "not_joined"),
                PairingFault::WrongNumber => (StatusCode::CONFLICT, "wrong_number"),
                PairingFault::Confirmed => (StatusCode::CONFLICT, "pairing_confirmed"),
                PairingFault::Refused => (StatusCode::GONE, "pairing_refused"),
                PairingFault::Expired => (StatusCode::GONE, "pairing_expired"),
            },
            AuthError::NoDevice(_) => (StatusCode::NOT_FOUND, "device_not_found"),
            AuthError::Local(_) => (StatusCode::CONFLICT, "local_device"),
            AuthError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            AuthError::Storage(_) => (StatusCode::INSUFFICIENT_STORAGE, "storage"),
            // Logged only, since these errors name paths of this machine.
            AuthError::Unsafe(..)
            | AuthError::File(..)
            | AuthError::NoToken(_)
            | AuthError::Random(_)
            | AuthError::BadRow(_) => {
                tracing::error!(%error, "the devices could not be read or stored");
                return Self::internal();
            }
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<SessionError> for Problem {
    fn from(refusal: SessionError) -> Self {
        let detail = refusal.to_string();
        let plain = |status, code: &'static str| Self::new(status, code, detail.clone());
        match refusal {
            SessionError::NoSession(_) => plain(StatusCode::NOT_FOUND, "session_not_found"),
            SessionError::NoRuntime(_) => plain(StatusCode::NOT_FOUND, "runtime_not_found"),
            SessionError::NoRequest(_) => plain(StatusCode::NOT_FOUND, "request_not_found"),
            SessionError::NoRun => plain(StatusCode::NOT_FOUND, "run_not_found"),
            SessionError::PromptNotStored(_) => plain(StatusCode::CONFLICT, "prompt_not_kept"),
            SessionError::Denied(denied) => denied.into(),
            SessionError::AlreadyResolved(receipt) => {
                plain(StatusCode::CONFLICT, "already_resolved").with_receipt(*receipt)
            }
            SessionError::Closed(receipt) => {
                let code = match receipt.state {
                    RequestState::Expired => "expired",
                    RequestState::Withdrawn => "withdrawn",
                    RequestState::Orphaned => "orphaned",
                    RequestState::Open | RequestState::Answered => "closed",
                };
                plain(StatusCode::GONE, code).with_receipt(*receipt)
            }
            SessionError::RiskTooHigh(too) => plain(StatusCode::FORBIDDEN, "risk_too_high").with(ProblemMembers {
                risk: Some(too.risk),
                approve_up_to: Some(too.up_to),
                risk_reasons: Some(too.reasons),
                devices: Some(too.devices),
                ..ProblemMembers::default()
            }),
            SessionError::StaleDigest => plain(StatusCode::CONFLICT, "stale_digest"),
            SessionError::DigestRequired => plain(StatusCode::UNPROCESSABLE_ENTITY, "digest_required"),
            SessionError::ObserveOnly => plain(StatusCode::CONFLICT, "observe_only"),
            SessionError::BadAnswer { code, field, .. } => {
                let problem = plain(StatusCode::UNPROCESSABLE_ENTITY, code);
                match field {
                    Some(field) => problem.with(ProblemMembers { field: Some(field), ..ProblemMembers::default() }),
                    None => problem,
                }
            }
            SessionError::RuntimeUnavailable(_) => plain(StatusCode::CONFLICT, "runtime_gone"),
            SessionError::RuntimeSilent(_) => plain(StatusCode::GATEWAY_TIMEOUT, "runtime_silent"),
            SessionError::OneSession(_) => plain(StatusCode::CONFLICT, "one_session"),
            SessionError::RuntimeRefused { code, data, .. } => {
                let data = data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or(Value::Null);
                let (runtime_code, runtime_data) = (Some(code), Some(data));
                let more = ProblemMembers { runtime_code, runtime_data, ..ProblemMembers::default() };
                plain(StatusCode::BAD_GATEWAY, "runtime_refused").with(more)
            }
            SessionError::NotOffered { code, .. } => plain(StatusCode::UNPROCESSABLE_ENTITY, code),
            SessionError::ListingUnsupported { .. } => plain(StatusCode::CONFLICT, "listing_unsupported"),
            SessionError::OverLimit(over) => over.into(),
            // Waiting does not help: no `Retry-After`.
            SessionError::SurfacesFull(over) => plain(StatusCode::TOO_MANY_REQUESTS, "over_limit").with(account(&over)),
            SessionError::PromptTooLarge { limit, .. } => {
                let more = ProblemMembers { limit: Some(limit as u64), ..ProblemMembers::default() };
                plain(StatusCode::PAYLOAD_TOO_LARGE, "prompt_too_large").with(more)
            }
            SessionError::QueueFull(_) => plain(StatusCode::TOO_MANY_REQUESTS, "queue_full"),
            SessionError::BadKey => plain(StatusCode::BAD_REQUEST, "bad_idempotency_key"),
            SessionError::KeyReused => plain(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
            SessionError::RuntimeExists(_) => plain(StatusCode::CONFLICT, "runtime_exists"),
            SessionError::Surface(error) => surface_problem(&error),
            SessionError::Action(error) => action_problem(&error),
            SessionError::NoSuchCall => plain(StatusCode::FORBIDDEN, "other_session"),
            SessionError::DrawsTooFast(_) => plain(StatusCode::TOO_MANY_REQUESTS, "slow_down").retry_after(1),
            SessionError::Invalid(_) => plain(StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            SessionError::Folder(_) => plain(StatusCode::FORBIDDEN, "folder_not_allowed"),
            SessionError::Storage(_) => plain(StatusCode::INSUFFICIENT_STORAGE, "storage"),
            SessionError::Stopping => plain(StatusCode::SERVICE_UNAVAILABLE, "stopping").retry_after(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{DeviceId, RequestId, Resolver, Risk, RuntimeId, Scope, SessionId, Timestamp};
    use plexus_sessions::{Refused, TooRisky};

    fn receipt(state: RequestState) -> Box<Receipt> {
        let by = Resolver { device_id: DeviceId::trusted("d_2"), name: "phone".into() };
        Box::new(Receipt {
            option_id: Some("allow".into()),
            ok: Some(true),
            cursor: Some("e:7".parse().unwrap()),
            won: true,
            ..Receipt::new(RequestId::trusted("q_1"), state, by, Timestamp::from_millis(0))
        })
    }

    #[test]
    fn refusals_have_a_status_and_a_code() {
        let closed = |state| SessionError::Closed(receipt(state));
        let bad = SessionError::BadAnswer { code: "option_not_offered", message: String::new(), field: None };
        let (refused, risk, up_to) = (Refused::Acting, Risk::Danger, Risk::Low);
        let too = TooRisky { refused, risk, up_to, reasons: Vec::new(), devices: Vec::new() };
        let refused = SessionError::RuntimeRefused { code: -32000, message: String::new(), data: None };
        let denied = Denied { scope: Scope::Approve, device: "x".into() };
        for (refusal, status, code) in [
            (SessionError::NoSession(SessionId::trusted("s")), 404, "session_not_found"),
            (SessionError::NoRuntime(RuntimeId::trusted("r")), 404, "runtime_not_found"),
            (SessionError::NoRequest(RequestId::trusted("q")), 404, "request_not_found"),
            (SessionError::NoRun, 404, "run_not_found"),
            (SessionError::PromptNotStored("x"), 409, "prompt_not_kept"),
            (SessionError::Denied(denied), 403, "scope_missing"),
            (SessionError::AlreadyResolved(receipt(RequestState::Answered)), 409, "already_resolved"),
            (closed(RequestState::Expired), 410, "expired"),
            (closed(RequestState::Withdrawn), 410, "withdrawn"),
            (closed(RequestState::Orphaned), 410, "orphaned"),
            (SessionError::StaleDigest, 409, "stale_digest"),
            (SessionError::DigestRequired, 422, "digest_required"),
            (SessionError::RiskTooHigh(Box::new(too)), 403, "risk_too_high"),
            (SessionError::ObserveOnly, 409, "observe_only"),
            (bad, 422, "option_not_offered"),
            (SessionError::RuntimeUnavailable(String::new()), 409, "runtime_gone"),
            (SessionError::RuntimeSilent(1), 504, "runtime_silent"),
            (SessionError::OneSession("x".into()), 409, "one_session"),
            (refused, 502, "runtime_refused"),
            (
                SessionError::ListingUnsupported { runtime: RuntimeId::trusted("r"), list: "x", reason: "x" },
                409,
                "listing_unsupported",
            ),
            (SessionError::NotOffered { code: "mode_not_offered", message: String::new() }, 422, "mode_not_offered"),
            (SessionError::QueueFull(1), 429, "queue_full"),
            (SessionError::PromptTooLarge { bytes: 2, limit: 1 }, 413, "prompt_too_large"),
            (SessionError::BadKey, 400, "bad_idempotency_key"),
            (SessionError::KeyReused, 422, "idempotency_key_reused"),
            (SessionError::RuntimeExists(RuntimeId::trusted("r")), 409, "runtime_exists"),
            (SessionError::Surface(SurfaceError::Empty), 422, "bad_surface"),
            (SessionError::Surface(SurfaceError::Stale { now: 2 }), 409, "stale_surface"),
            (
                SessionError::Surface(SurfaceError::Unknown { surface: "x".into(), known: Vec::new() }),
                404,
                "surface_not_found",
            ),
            (SessionError::Action(ActionError::Stale { now: 2 }), 409, "stale_surface"),
            (SessionError::Action(ActionError::Component("x".into())), 422, "bad_action"),
            (SessionError::DrawsTooFast(1), 429, "slow_down"),
            (SessionError::NoSuchCall, 403, "other_session"),
            (SessionError::SurfacesFull(LedgerFull { class: Class::Session, limit: 1 }), 429, "over_limit"),
            (SessionError::Invalid(String::new()), 422, "invalid"),
            (SessionError::Folder(String::new()), 403, "folder_not_allowed"),
            (SessionError::Storage(String::new()), 507, "storage"),
            (SessionError::Stopping, 503, "stopping"),
        ] {
            let problem = Problem::from(refusal);
            assert_eq!((problem.status.as_u16(), problem.code), (status, code));
        }
        assert_eq!(Problem::from(StoreError::Full).status.as_u16(), 507);
        assert_eq!(Problem::from(AuthError::BadCode).status.as_u16(), 401);
    }

    #[test]
    fn losing_answer_gets_the_winners_receipt_at_the_top_level() {
        let json = Problem::from(SessionError::AlreadyResolved(receipt(RequestState::Answered))).to_json();
        assert_eq!(json["code"], "already_resolved");
        assert_eq!(json["won"], false);
        assert_eq!(json["resolved_by"]["name"], "phone");
        assert_eq!((&json["option_id"], &json["cursor"]), (&"allow".into(), &"e:7".into()));
        assert_eq!(json["status"], 409);
        assert_eq!(json["state"], "answered");
    }

    #[test]
    fn local_paths_stay_in_the_log() {
        let problem = Problem::from(AuthError::File("/home/me/secret".into(), "denied".into()));
        assert_eq!(problem, Problem::internal());
    }
}
