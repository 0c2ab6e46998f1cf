//! Surfaces over HTTP: for `plexus mcp`, which draws for an agent, and for scripts. Devices that may watch can read them.

use std::time::Duration;

use http::StatusCode;

use super::described as docs;
use super::guard::{Call, Route};
use super::reply::{QueryParameters, RouteResult, bad_query, filter_for, idempotency_key, json, no_such, session_of};
use super::routes::{DELETE, DRAWS, GET, JSON, NOTHING, PATCH, POST, SURFACE_BODY, WATCH, route};
use super::stop::stopping;
use super::{Core, Problem};
use plexus_auth::{Permit, Ui, Watch};
use plexus_protocol::api::surfaces::{
    Acted, AskView, Drawn, NewAsk, NewSurface, PinnedSurfaces, SurfaceAction, SurfaceUpdate, Surfaces,
};
use plexus_protocol::{BadDigest, RequestId, SessionId};
use plexus_sessions::{AskCall, SessionError, SurfaceCall, SurfacePermits};
use plexus_surfaces::{Html, Show, Update};

/// Maximum wait for an answer, in seconds: below the shortest time after which an agent abandons a tool call.
const ASK_WAIT_MAX: u64 = 45;

/// Returns the routes of surfaces.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/sessions/{id}/surfaces", WATCH, NOTHING, "The surfaces that a session's agent draws", list)
            .response::<Surfaces>(200),
        route(POST, "/v1/sessions/{id}/surfaces", DRAWS, SURFACE_BODY, "Show a surface, or replace the one of its name", show)
            .request::<NewSurface>().response::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(PATCH, "/v1/sessions/{id}/surfaces/{surface}", DRAWS, SURFACE_BODY, "Change a part of a surface, or pin it", update)
            .request::<SurfaceUpdate>().response::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(DELETE, "/v1/sessions/{id}/surfaces/{surface}", DRAWS, NOTHING, "Take a surface down", close)
            .response::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(POST, "/v1/sessions/{id}/surfaces/{surface}/action", WATCH, JSON, "Press something on a surface: it answers the surface's question, or the agent gets it as a prompt", act)
            .request::<SurfaceAction>().response::<Acted>(200),
        route(POST, "/v1/sessions/{id}/asks", DRAWS, SURFACE_BODY, "Ask by a surface: a request that users answer on it, or like any other", ask)
            .request::<NewAsk>().response::<AskView>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(GET, "/v1/sessions/{id}/asks/{ask}", DRAWS, NOTHING, "What became of a question by a surface", ask_outcome)
            .response::<AskView>(200).with(&[&docs::ASK_WAIT]),
        route(GET, "/v1/surfaces", WATCH, NOTHING, "The pinned surfaces of all sessions, without what is on them", pinned)
            .response::<PinnedSurfaces>(200),
    ]
}

pub(super) async fn list(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    json(StatusCode::OK, &Surfaces { surfaces: state.directory.surfaces().list(&session.session_id).await? })
}

pub(super) async fn pinned(state: Core, call: Call) -> RouteResult {
    let surfaces = state.directory.surfaces().pinned(&filter_for(call.caller()?, None)).await?;
    json(StatusCode::OK, &PinnedSurfaces { surfaces: surfaces.into() })
}

/// Converts a new surface to the call.
///
/// # Errors
/// A text with the fix: members of components and of a page are mixed, or one is missing.
pub fn surface_call(new: NewSurface) -> Result<SurfaceCall, &'static str> {
    let NewSurface { surface, title, catalog, components, data, html, text, actions, height, pin } = new;
    match (components, html) {
        (Some(components), None) if text.is_none() && actions.is_none() && height.is_none() => {
            Ok(SurfaceCall::Show(Show { surface, title, catalog, components, data, pin }))
        }
        (None, Some(html)) if catalog.is_none() && data.is_none() => {
            let text = text.ok_or("a page needs `text`: the text that is displayed where no page can be")?;
            Ok(SurfaceCall::Html(Html { surface, title, html, text, actions, height, pin }))
        }
        _ => Err("give either `components` (with `data`, `catalog`) or `html` (with `text`, `actions`, `height`)"),
    }
}

pub(super) async fn show(state: Core, call: Call) -> RouteResult {
    let drawing = surface_call(call.json()?).map_err(Problem::invalid)?;
    draw(state, call, drawing).await
}

/// Converts the changes of a surface to the call.
///
/// # Errors
/// A text with the fix: `pinned` is given alone.
pub fn update_call(update: SurfaceUpdate, surface: String) -> Result<SurfaceCall, &'static str> {
    let SurfaceUpdate { components, data, title, pinned, expect_rev } = update;
    match pinned {
        None => Ok(SurfaceCall::Update(Update { surface, components, data, expect_rev, title })),
        Some(pinned) if components.is_empty() && data.is_empty() && title.is_none() && expect_rev.is_none() => {
            Ok(SurfaceCall::Pin { surface, pinned })
        }
        Some(_) => Err("`pinned` is changed by itself: send it without other members"),
    }
}

pub(super) async fn update(state: Core, call: Call) -> RouteResult {
    let drawing = update_call(call.json()?, name(&call)?).map_err(Problem::invalid)?;
    draw(state, call, drawing).await
}

pub(super) async fn close(state: Core, call: Call) -> RouteResult {
    let surface = name(&call)?;
    draw(state, call, SurfaceCall::Close { surface }).await
}

pub(super) async fn act(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let (surface, action) = (name(&call)?, call.json::<SurfaceAction>()?);
    let by = SurfacePermits::new(call.caller()?, &session.session_id, &session.runtime_id)?;
    json(StatusCode::OK, &state.directory.surfaces().act(by, &session.session_id, surface, action).await?)
}

/// Converts a new question to the call.
///
/// # Errors
/// A text with the fix: members of a new surface without its components.
pub fn ask_call(new: NewAsk) -> Result<AskCall, &'static str> {
    let NewAsk { surface, title, components, data, submit, question } = new;
    let surface = surface.unwrap_or_else(|| "ask".to_owned());
    let show = match components {
        Some(components) => Some(Show { surface: surface.clone(), title, components, data, ..Show::default() }),
        None if title.is_none() && data.is_none() => None,
        None => return Err("`title` and `data` are those of a new surface: give `components` too"),
    };
    Ok(AskCall { surface, show, submit, question })
}

pub(super) async fn ask(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    let (key, bytes) = (idempotency_key(&call)?, call.body.len());
    let ask = ask_call(call.json()?).map_err(Problem::invalid)?;
    is_of_this_agent(&state, &call, &session.session_id).await?;
    json(StatusCode::OK, &state.directory.surfaces().ask(&permit, &session.session_id, ask, bytes, key).await?)
}

pub(super) async fn ask_outcome(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    let missing = || no_such("request_not_found", "request");
    let ask = call.params.get(1).and_then(|(_, text)| text.parse::<RequestId>().ok()).ok_or_else(missing)?;
    let wait = QueryParameters::from_call(&call).number("wait", 0)?;
    json(StatusCode::OK, &wait_for_ask(&state, &permit, &session.session_id, &ask, wait).await?)
}

/// Returns the outcome of a question, at the latest after `wait` seconds or `ASK_WAIT_MAX`.
///
/// # Errors
/// The errors of [`ask_outcome`](plexus_sessions::DirectorySurfaces::ask_outcome); [`SessionError::Stopping`].
pub async fn wait_for_ask(
    state: &Core,
    permit: &Permit<Ui>,
    session: &SessionId,
    ask: &RequestId,
    wait: u64,
) -> Result<AskView, SessionError> {
    let mut stop = state.stop.clone();
    let wait = Duration::from_secs(wait.min(ASK_WAIT_MAX));
    tokio::select! {
        outcome = state.directory.surfaces().ask_outcome(permit, session, ask, wait) => outcome,
        () = stopping(&mut stop) => Err(SessionError::Stopping),
    }
}

/// Returns the name of the surface in the path.
fn name(call: &Call) -> Result<String, Problem> {
    call.params
        .iter()
        .find(|(name, _)| name == "surface")
        .map(|(_, text)| text.clone())
        .ok_or_else(|| Problem::invalid("the path names no surface"))
}

/// Checks that the session's own agent makes the call, if the caller requires it: `plexus mcp --shared`.
async fn is_of_this_agent(state: &Core, call: &Call, session: &SessionId) -> Result<(), Problem> {
    let Some(digest) = QueryParameters::from_call(call).get("call").map(str::to_owned) else { return Ok(()) };
    let digest = digest.parse().map_err(|error: BadDigest| bad_query(error.to_string()))?;
    Ok(state.directory.surfaces().calls_tool(session, &digest).await?)
}

async fn draw(state: Core, call: Call, drawing: SurfaceCall) -> RouteResult {
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    is_of_this_agent(&state, &call, &session.session_id).await?;
    let (key, bytes) = (idempotency_key(&call)?, call.body.len());
    let drawn: Drawn = state.directory.surfaces().draw(&permit, &session.session_id, drawing, bytes, key).await?;
    json(StatusCode::OK, &drawn)
}
