//! Surfaces over HTTP: for `plexus mcp`, which draws for an agent, and for scripts. Devices that may watch can read them.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::described as docs;
use super::guard::{Call, Route};
use super::reply::{QueryParameters, RouteResult, bad_query, filter_for, idempotency_key, json, no_such, session_of};
use super::routes::{DELETE, DRAWS, GET, JSON, NOTHING, PATCH, POST, SURFACE_BODY, WATCH, route};
use super::stop::stopping;
use super::{Core, Problem};
use plexus_auth::{Permit, Ui, Watch};
use plexus_protocol::api::surfaces::{Acted, AskView, Drawn, PinnedSurfaces, SurfaceAction, Surfaces};
use plexus_protocol::schema::JsonObject;
use plexus_protocol::{BadDigest, RequestId, SessionId};
use plexus_sessions::{AskCall, Presser, SessionError, SurfaceCall};
use plexus_surfaces::{DataChange, Html, Show, Update};

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

/// A surface to create: of `components`, or of one page, `html` with `text`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSurface {
    /// The name in the session: 1 to 64 of `A-Z a-z 0-9 _ . -`. A surface of that name is replaced.
    surface: String,
    /// The title.
    title: Option<String>,
    /// The catalogue of its components; Plexus's own if absent.
    catalog: Option<String>,
    /// The components, as in A2UI 0.9; one has the id `root`.
    #[schema(value_type = Option<Vec<JsonObject>>)]
    components: Option<Vec<Map<String, Value>>>,
    /// The data model.
    #[schema(value_type = Option<JsonObject>)]
    data: Option<Map<String, Value>>,
    /// A page of its own, in place of components.
    html: Option<String>,
    /// The text that is displayed where no page can be drawn.
    text: Option<String>,
    /// The actions that the page may send.
    actions: Option<Vec<String>>,
    /// The page's height in pixels.
    height: Option<u32>,
    /// `true` if the surface is pinned; unchanged if absent.
    pin: Option<bool>,
}

impl NewSurface {
    /// Converts the value to the call.
    ///
    /// # Errors
    /// A text with the fix: members of components and of a page are mixed, or one is missing.
    pub fn into_call(self) -> Result<SurfaceCall, &'static str> {
        let Self { surface, title, catalog, components, data, html, text, actions, height, pin } = self;
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
}

pub(super) async fn show(state: Core, call: Call) -> RouteResult {
    let drawing = call.json::<NewSurface>()?.into_call().map_err(Problem::invalid)?;
    draw(state, call, drawing).await
}

/// The changes of a surface.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SurfaceUpdate {
    /// Components that are new or replace those of the same id.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    components: Vec<Map<String, Value>>,
    /// Changes of the data model, in order: `path` with `value`, with `append`, or with neither to remove it.
    #[serde(default)]
    #[schema(value_type = Vec<JsonObject>)]
    data: Vec<DataChange>,
    /// A new title.
    title: Option<String>,
    /// `true` if the surface is pinned; given alone.
    pinned: Option<bool>,
    /// The required current revision of the surface.
    expect_rev: Option<u64>,
}

impl SurfaceUpdate {
    /// Converts the value to the call, for a surface.
    ///
    /// # Errors
    /// A text with the fix: `pinned` is given alone.
    pub fn into_call(self, surface: String) -> Result<SurfaceCall, &'static str> {
        let Self { components, data, title, pinned, expect_rev } = self;
        match pinned {
            None => Ok(SurfaceCall::Update(Update { surface, components, data, expect_rev, title })),
            Some(pinned) if components.is_empty() && data.is_empty() && title.is_none() && expect_rev.is_none() => {
                Ok(SurfaceCall::Pin { surface, pinned })
            }
            Some(_) => Err("`pinned` is changed by itself: send it without other members"),
        }
    }
}

pub(super) async fn update(state: Core, call: Call) -> RouteResult {
    let update = call.json::<SurfaceUpdate>()?;
    let drawing = update.into_call(name(&call)?).map_err(Problem::invalid)?;
    draw(state, call, drawing).await
}

pub(super) async fn close(state: Core, call: Call) -> RouteResult {
    let surface = name(&call)?;
    draw(state, call, SurfaceCall::Close { surface }).await
}

pub(super) async fn act(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let (surface, action) = (name(&call)?, call.json::<SurfaceAction>()?);
    let by = Presser::of(call.caller()?, &session.session_id, &session.runtime_id)?;
    json(StatusCode::OK, &state.directory.surfaces().act(by, &session.session_id, surface, action).await?)
}

/// A question by a surface: by an existing one, or by a new one with `components`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAsk {
    /// The surface; `ask` if absent.
    surface: Option<String>,
    /// The title of a new surface.
    title: Option<String>,
    /// The components of a new surface.
    #[schema(value_type = Option<Vec<JsonObject>>)]
    components: Option<Vec<Map<String, Value>>>,
    /// The data model of a new surface.
    #[schema(value_type = Option<JsonObject>)]
    data: Option<Map<String, Value>>,
    /// The buttons that answer, by their ids.
    submit: Vec<String>,
    /// The question, for the headline of the request.
    question: Option<String>,
}

impl NewAsk {
    /// Converts the value to the question.
    ///
    /// # Errors
    /// A text with the fix: members of a new surface without its components.
    pub fn into_call(self) -> Result<AskCall, &'static str> {
        let Self { surface, title, components, data, submit, question } = self;
        let surface = surface.unwrap_or_else(|| "ask".to_owned());
        let show = match components {
            Some(components) => Some(Show { surface: surface.clone(), title, components, data, ..Show::default() }),
            None if title.is_none() && data.is_none() => None,
            None => return Err("`title` and `data` are those of a new surface: give `components` too"),
        };
        Ok(AskCall { surface, show, submit, question })
    }
}

pub(super) async fn ask(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    let (key, bytes) = (idempotency_key(&call)?, call.body.len());
    let ask = call.json::<NewAsk>()?.into_call().map_err(Problem::invalid)?;
    is_of_this_agent(&state, &call, &session.session_id).await?;
    json(StatusCode::OK, &state.directory.surfaces().ask(&permit, &session.session_id, ask, bytes, key).await?)
}

pub(super) async fn ask_outcome(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Ui>(&state, &call)?;
    let missing = || no_such("request_not_found", "request");
    let ask = call.params.get(1).and_then(|(_, text)| text.parse::<RequestId>().ok()).ok_or_else(missing)?;
    let wait = QueryParameters::of(&call).number("wait", 0)?;
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
    let Some(digest) = QueryParameters::of(call).get("call").map(str::to_owned) else { return Ok(()) };
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
