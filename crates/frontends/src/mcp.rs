//! MCP over HTTP: the tools of `plexus mcp`, for an agent that can reach the gateway and is not started with a program of the gateway.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use plexus_bridges::mcp::{self, CallError, Carrier, PROTOCOL_VERSIONS};
use plexus_protocol::SessionId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use plexus_auth::{Permit, Ui};
use plexus_protocol::schema::JsonObject;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, body, no_such, session_of};
use plexus_router::routes::{DRAWS, POST, SURFACE_BODY, route};
use plexus_router::surfaces::{ask_call, surface_call, update_call, wait_for_ask};
use plexus_router::{Core, Problem};
use plexus_sessions::SurfaceCall;

/// Time that a call waits before it is repeated, if the session is drawn in too fast.
const PAUSE: Duration = Duration::from_millis(200);

/// Returns the routes of MCP.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(POST, "/mcp/{id}", DRAWS, SURFACE_BODY, "MCP for a session's agent (Streamable HTTP without sessions): tools that draw and ask", serve)
            .request::<JsonObject>().response::<JsonObject>(200).empty(202),
    ]
}

/// Responds to one message of MCP. Stateless: there is no `Mcp-Session-Id` and no stream, so `GET` is refused with 405.
pub(super) async fn serve(state: Core, call: Call) -> RouteResult {
    // An object, and not the array of a batch, which MCP no longer has.
    call.json::<OneMessage>()?;
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    version_known(&call.parts.headers)?;
    let carrier = SessionCalls { state, session: session.session_id.clone(), permit };
    Ok(match mcp::respond(carrier, &call.body).await {
        Some(reply) => body(StatusCode::OK, "application/json", reply),
        // A notification, or a response to a request that was never made.
        None => {
            let mut accepted = Response::default();
            *accepted.status_mut() = StatusCode::ACCEPTED;
            accepted
        }
    })
}

/// A message, of which only the form is checked.
#[derive(Deserialize)]
struct OneMessage {}

/// Refuses an unknown version, as the specification requires. Without the header any version is accepted.
fn version_known(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(version) = headers.get("mcp-protocol-version") else { return Ok(()) };
    if version.to_str().is_ok_and(|version| PROTOCOL_VERSIONS.contains(&version)) {
        return Ok(());
    }
    let known = PROTOCOL_VERSIONS.join(", ");
    Err(Problem::new(StatusCode::BAD_REQUEST, "invalid", format!("MCP-Protocol-Version is none of {known}")))
}

/// The session that an agent draws in.
struct SessionCalls {
    state: Core,
    session: SessionId,
    permit: Permit<Ui>,
}

impl Carrier for SessionCalls {
    async fn call(&self, call: mcp::GatewayCall<'_>) -> Result<Value, CallError> {
        loop {
            let outcome = tokio::time::timeout_at(call.deadline, self.call_once(&call)).await;
            match outcome {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(problem)) if problem.is_worth_repeating() && Instant::now() + PAUSE < call.deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Err(Problem { detail, more, .. })) => return Err(CallError::Refused { detail, stale: more.rev }),
                Err(_) => return Err(CallError::TimedOut { reason: "it does not respond".into(), was_sent: true }),
            }
        }
    }
}

impl SessionCalls {
    /// Carries out a call, with the effect of the same request over HTTP.
    async fn call_once(&self, call: &mcp::GatewayCall<'_>) -> Result<Value, Problem> {
        let (path, query) = call.path.split_once('?').unwrap_or((call.path, ""));
        let mut names = path.trim_start_matches('/').splitn(2, '/');
        match (call.method, names.next(), names.next()) {
            ("POST", Some("surfaces"), None) => {
                let drawing = surface_call(read(call)?).map_err(Problem::invalid)?;
                self.draw(call, drawing).await
            }
            ("PATCH", Some("surfaces"), Some(name)) => {
                let drawing = update_call(read(call)?, name.to_owned()).map_err(Problem::invalid)?;
                self.draw(call, drawing).await
            }
            ("DELETE", Some("surfaces"), Some(name)) => {
                self.draw(call, SurfaceCall::Close { surface: name.to_owned() }).await
            }
            ("POST", Some("asks"), None) => {
                let ask = ask_call(read(call)?).map_err(Problem::invalid)?;
                let (bytes, key) = (bytes(call), call.key.map(str::to_owned));
                written(&self.state.directory.surfaces().ask(&self.permit, &self.session, ask, bytes, key).await?)
            }
            ("GET", Some("asks"), Some(ask)) => {
                let ask = ask.parse().map_err(|_| no_such("request_not_found", "request"))?;
                let wait = query.strip_prefix("wait=").and_then(|wait| wait.parse().ok()).unwrap_or_default();
                written(&wait_for_ask(&self.state, &self.permit, &self.session, &ask, wait).await?)
            }
            _ => Err(no_such("not_found", "call")),
        }
    }

    async fn draw(&self, call: &mcp::GatewayCall<'_>, drawing: SurfaceCall) -> Result<Value, Problem> {
        let (bytes, key) = (bytes(call), call.key.map(str::to_owned));
        written(&self.state.directory.surfaces().draw(&self.permit, &self.session, drawing, bytes, key).await?)
    }
}

/// Returns the length of a call's body, in bytes.
fn bytes(call: &mcp::GatewayCall<'_>) -> usize {
    call.body.map_or(0, |body| body.to_string().len())
}

fn read<T: DeserializeOwned>(call: &mcp::GatewayCall<'_>) -> Result<T, Problem> {
    T::deserialize(call.body.unwrap_or(&Value::Null)).map_err(|error| Problem::invalid(error.to_string()))
}

fn written<T: Serialize>(value: &T) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(|_| Problem::internal())
}
