//! Helpers of the HTTP handlers: path and query parameters, access checks, responses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use plexus_protocol::{RequestId, RuntimeId, RuntimeInfo, Scope, SessionId, SessionInfo};
use serde::Serialize;

use super::guard::Call;
use super::{Core, Problem};
use plexus_auth::{Caller, Permit, Right, Target};
use plexus_risk::Effect;
use plexus_sessions::{Filter, KEY_MAX, check_effect};

/// Maximum wait of a long poll, in seconds; a longer one is reduced to it.
const WAIT_MAX: u64 = 60;

/// The result of a handler.
pub type RouteResult = Result<Response, Problem>;

/// Returns a JSON response.
pub fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> RouteResult {
    let text = serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "a response could not be serialized");
        Problem::internal()
    })?;
    Ok(body(status, "application/json", text))
}

/// Returns a response with this content type and body.
pub fn body(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Returns the response 204.
pub fn no_content() -> RouteResult {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Returns the response 201, with the address of the created object.
pub fn created<T: Serialize + ?Sized>(place: &str, value: &T) -> RouteResult {
    let mut response = json(StatusCode::CREATED, value)?;
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Returns the problem 404 with this code.
pub fn no_such(code: &'static str, what: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, code, format!("there is no such {what}"))
}

/// Checks that an action is within the risk limit of the caller's device.
pub fn within_limit(call: &Call, effect: Effect) -> Result<(), Problem> {
    Ok(check_effect(call.caller()?.device(), effect)?)
}

/// Returns whether the caller has any right to `target`; if not, the response is as if it did not exist.
pub fn has_any_right(caller: &Caller, target: Target<'_>) -> bool {
    Scope::ALL.into_iter().chain([Scope::Ui]).any(|scope| caller.device().grant.covers(scope, target))
}

/// Returns the session of the path, and a permit for it.
pub fn session_of<S: Right>(state: &Core, call: &Call) -> Result<(Arc<SessionInfo>, Permit<S>), Problem> {
    let missing = || no_such("session_not_found", "session");
    session_for(state, call.caller()?, &call.id(missing)?)
}

/// Returns the named session, and a permit for it.
pub fn session_for<S: Right>(
    state: &Core,
    caller: &Caller,
    id: &SessionId,
) -> Result<(Arc<SessionInfo>, Permit<S>), Problem> {
    let missing = || no_such("session_not_found", "session");
    let session = state.directory.session(id).ok_or_else(missing)?;
    let target = Target::Session(&session.session_id, &session.runtime_id);
    if !has_any_right(caller, target) {
        return Err(missing());
    }
    let permit = caller.permit(target)?;
    Ok((session, permit))
}

/// Returns the runtime of the path, and a permit for it.
pub fn runtime_of<S: Right>(state: &Core, call: &Call) -> Result<(RuntimeId, Permit<S>), Problem> {
    let id = call.id(|| no_such("runtime_not_found", "runtime"))?;
    let (_, permit) = runtime_for(state, call.caller()?, &id)?;
    Ok((id, permit))
}

/// Returns the named runtime, and a permit for it.
pub fn runtime_for<S: Right>(
    state: &Core,
    caller: &Caller,
    id: &RuntimeId,
) -> Result<(Arc<RuntimeInfo>, Permit<S>), Problem> {
    let missing = || no_such("runtime_not_found", "runtime");
    let runtime = state.directory.runtime(id).ok_or_else(missing)?;
    if !has_any_right(caller, Target::Runtime(id)) {
        return Err(missing());
    }
    let permit = caller.permit(Target::Runtime(id))?;
    Ok((runtime, permit))
}

/// Returns the request of the path, and a permit for its session.
pub async fn request_of<S: Right>(state: &Core, call: &Call) -> Result<(RequestId, Permit<S>), Problem> {
    let missing = || no_such("request_not_found", "request");
    let id: RequestId = call.id(missing)?;
    let (session, runtime) = state.directory.requests().target(&id).await?.ok_or_else(missing)?;
    let target = Target::Session(&session, &runtime);
    let caller = call.caller()?;
    if !has_any_right(caller, target) {
        return Err(missing());
    }
    Ok((id, caller.permit(target)?))
}

/// Returns the filter for the events that the caller may see, of all or of these sessions.
pub fn filter_for(caller: &Caller, sessions: Option<BTreeSet<SessionId>>) -> Filter {
    let grant = (!caller.sees_all()).then(|| Arc::new(caller.device().grant.clone()));
    Filter { sessions, grant }
}

/// Returns a permit for the gateway as a whole.
pub fn gateway<S: Right>(call: &Call) -> Result<Permit<S>, Problem> {
    Ok(call.caller()?.permit(Target::Gateway)?)
}

/// The query's parameters, decoded. Unknown ones are ignored; none of them authenticates anything.
pub struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    /// Returns the query of a request.
    pub fn from_call(call: &Call) -> Self {
        Self::parse(call.parts.uri.query().unwrap_or_default())
    }

    /// Parses the text of a query.
    pub fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns the first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns the values of a parameter; one parameter may have several, separated by commas.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.0.iter().filter(move |(other, _)| other == name);
        values.flat_map(|(_, value)| value.split(',')).filter(|value| !value.is_empty())
    }

    /// Returns the value of a parameter as a number, or `default`.
    pub fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, Problem> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().map_err(|_| bad_query(format!("`{name}` is not a whole number in range")))
    }
}

/// Returns the time that the client is ready to wait.
pub fn waits(query: &QueryParameters) -> Result<Duration, Problem> {
    Ok(poll_wait(Some(query.number("wait", 0)?)))
}

/// Returns the wait of a long poll, reduced to `WAIT_MAX`.
pub fn poll_wait(seconds: Option<u64>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(0).min(WAIT_MAX))
}

/// Returns one parameter of the query, decoded.
pub fn parameter(call: &Call, name: &str) -> Option<String> {
    QueryParameters::from_call(call).get(name).map(Into::into)
}

/// Returns whether the client has the content of `tag` (RFC 9110, 13.1.2: weak comparison, a list, or `*`).
pub fn etag_matches(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

/// Returns the problem of an invalid query.
pub fn bad_query(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail)
}

/// Returns the idempotency key of the request, if it has one.
pub fn idempotency_key(call: &Call) -> Result<Option<String>, Problem> {
    let mut keys = call.parts.headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let valid = !key.is_empty() && key.len() <= KEY_MAX && key.as_bytes().iter().all(u8::is_ascii_graphic);
    match key.to_str() {
        Ok(key) if valid && keys.next().is_none() => Ok(Some(key.into())),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_idempotency_key",
            format!("Idempotency-Key must be 1 to {KEY_MAX} visible ASCII characters, and given once"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_matches_in_a_list_weak_or_by_star() {
        for (line, known) in
            [("\"a\"", true), ("W/\"a\"", true), ("\"b\", \"a\"", true), ("*", true), ("\"a-br\"", false), ("a", false)]
        {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(line).unwrap())]);
            assert_eq!(etag_matches(&headers, "\"a\""), known, "{line}");
        }
    }
}
