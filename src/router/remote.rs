//! The remote control of a Gemini UI (`GEMINI_CLI_REMOTE_PORT`) as a server, for any runtime: `POST /message` and
//! `GET /history` of its current session.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::guard::Call;
use super::http as api;
use super::mirror::current;
use super::{PortState, Problem};
use crate::auth::{Permit, Prompt, Right, Target, Watch};
use crate::model::SessionInfo;
use crate::sessions::Refusal;

fn not_ready(why: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", why).retry_after(1)
}

/// The session that is meant, and a permit for it.
fn meant<S: Right>(port: &PortState, call: &Call) -> Result<(Arc<SessionInfo>, Permit<S>), Problem> {
    let caller = call.caller()?;
    let session = current::<S>(&port.app, &port.runtime, caller).ok_or_else(|| {
        let words = "no session of this runtime is ready: open one, or set session = true in its configuration";
        not_ready(words)
    })?;
    let permit = caller.permit(Target::Session(&session.session_id, &session.runtime_id))?;
    Ok((session, permit))
}

/// What to say: members of others that we do not know are none of our business.
#[derive(Deserialize)]
struct Message {
    message: String,
}

/// `POST /message {"message"}`: as if somebody had typed it.
///
/// # Errors
/// 503 `not_ready`; 422 for a message of nothing; and what a prompt is refused with.
pub(super) async fn message(port: PortState, call: Call) -> Result<Response, Problem> {
    let Message { message } = call.json()?;
    if message.trim().is_empty() {
        return Err(Problem::invalid("the message is empty"));
    }
    let block = serde_json::value::to_raw_value(&json!({ "type": "text", "text": message }));
    let block = block.map_err(|error| Problem::invalid(error.to_string()))?;
    let (session, permit) = meant::<Prompt>(&port, &call)?;
    match port.app.directory.prompt(&permit, &session.session_id, vec![block]).await {
        Ok(accepted) => api::json(StatusCode::OK, &accepted),
        // It went in this very moment.
        Err(refusal @ Refusal::RuntimeGone(_)) => Err(not_ready(&refusal.to_string())),
        Err(refusal) => Err(refusal.into()),
    }
}

/// One message of the history.
#[derive(Debug, PartialEq, Serialize)]
struct Turn<'a> {
    role: &'static str,
    text: &'a str,
}

/// `GET /history?limit=N`: what people and the agent said, oldest first; the last N, or all that is kept. Thoughts, tools
/// and what is no text are left out.
///
/// # Errors
/// 400 for a limit that is no whole number above 0; 503 `not_ready`.
pub(super) async fn history(port: PortState, call: Call) -> Result<Response, Problem> {
    let limit = limit(call.parts.uri.query())?;
    let (session, _) = meant::<Watch>(&port, &call)?;
    let snapshot = port.app.directory.snapshot(&session.session_id).await?;
    let said = snapshot.messages.iter().filter_map(|message| {
        let role = match message.role {
            "user" => "user",
            "agent" => "model",
            _ => return None,
        };
        (!message.text.is_empty()).then_some(Turn { role, text: &message.text })
    });
    let turns: Vec<Turn<'_>> = said.collect();
    api::json(StatusCode::OK, &turns[turns.len().saturating_sub(limit)..])
}

fn limit(query: Option<&str>) -> Result<usize, Problem> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match pairs.find(|(name, _)| name == "limit") {
        None => Ok(usize::MAX),
        Some((_, text)) => text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| {
            let words = "`limit` is a whole number above 0: how many of the last messages are wanted";
            Problem::new(StatusCode::BAD_REQUEST, "bad_query", words)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_messages() {
        for (query, expected) in [
            (None, Some(usize::MAX)),
            (Some(""), Some(usize::MAX)),
            (Some("limit=1"), Some(1)),
            (Some("x=y&limit=256"), Some(256)),
            (Some("limit="), None),
            (Some("limit=0"), None),
            (Some("limit=-1"), None),
            (Some("limit=x"), None),
            (Some("limit=1.5"), None),
            (Some("limit=99999999999999999999999"), None),
        ] {
            assert_eq!(limit(query).ok(), expected, "{query:?}");
        }
    }
}
