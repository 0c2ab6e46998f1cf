//! The route table. The router, the guard, the default-deny test and `openapi.json` are made from it. A runtime's own port has
//! a small table of its own behind the same guard.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::LazyLock;

use axum::extract::{RawPathParams, Request};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures_util::future::BoxFuture;
use http::Method;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use utoipa::ToSchema;

use super::described::{self as docs, Docs, Given, Parameter};
use super::guard::{self, BodyRule, Call, Gate, Policy, Route, WS_PATH};
use super::history::Page;
use super::listing::{Runtimes, Sessions};
use super::notify::api::Push;
use super::schemas::{AcpMessage, Shape};
use super::{
    AppState, PortState, Problem, acp, admin, agent_tools, agents, agui, asyncapi, changes, devices, doctor, export,
    folders, http as api, linking, listeners, mcp, mirror, new_session, notify, openapi, public_address, remote,
    resumable, surfaces, terminals, usage, web, worktrees,
};
use plexus_auth::{OneTimeCode, PairingView, PhoneTicket};
use plexus_protocol::schema::JsonObject;
use plexus_protocol::{Answer, Receipt, RuntimeInfo, Scope, SessionInfo};
use plexus_risk::Effect;
use plexus_sessions::{
    AcceptedPrompt, Acted, AskView, CeilingSettings, CeilingsView, ChangeDiff, ChangesView, Drawn, KeptPatch,
    ResumablePage, Snapshot, UndoneChange,
};

/// Longest body of most requests, in bytes; a longer one is refused with 413 before it is read.
const BODY: usize = 1 << 20;
/// Longest body of a prompt, in bytes: prompts carry images.
const PROMPT: usize = 16 << 20;
/// Longest body of a call that draws, in bytes: the most data of one call, and its components.
const SURFACE: usize = 2 << 20;

/// The level for dynamic responses: most of the gain for little time.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(4);

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PUT: Method = Method::PUT;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

const WATCH: Policy = Policy::Needs(Scope::Watch);
const PROMPTS: Policy = Policy::Needs(Scope::Prompt);
const APPROVE: Policy = Policy::Needs(Scope::Approve);
const ADMIN: Policy = Policy::Needs(Scope::Admin);
const DRAWS: Policy = Policy::Needs(Scope::Ui);

const NOTHING: BodyRule = BodyRule::Nothing;
const JSON: BodyRule = BodyRule::Json(BODY);
/// The body of an unauthenticated request.
const PROOF: BodyRule = BodyRule::Json(super::listen::STRANGER_BODY);

/// A row of a table. Every argument is needed: a route without a policy does not compile.
fn route<S>(
    method: Method,
    path: impl Into<Cow<'static, str>>,
    policy: Policy,
    body: BodyRule,
    summary: &'static str,
    run: fn(S, Call) -> BoxFuture<'static, Response>,
) -> Route<S> {
    Route { method, path: path.into(), policy, body, secret: false, summary, effect: None, docs: Docs::default(), run }
}

/// A row whose responses carry a token or a code.
fn secret<S>(line: Route<S>) -> Route<S> {
    Route { secret: true, ..line }
}

impl<S> Route<S> {
    /// The route has at least this effect of an approved command; a handler may find a greater one.
    fn effect(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }

    /// The body is `T` as JSON.
    fn takes<T: ToSchema>(mut self) -> Self {
        self.docs.takes = Some(Shape::of::<T>());
        self
    }

    /// The response is `T` as JSON.
    fn gives<T: ToSchema>(self, status: u16) -> Self {
        self.given(Given { status, json: Some(Shape::of::<T>()), media: &[] })
    }

    /// The response is `T` as JSON, or one of other media types.
    fn gives_or<T: ToSchema>(self, status: u16, media: &'static [&'static str]) -> Self {
        self.given(Given { status, json: Some(Shape::of::<T>()), media })
    }

    /// The response has one of these media types.
    fn text(self, status: u16, media: &'static [&'static str]) -> Self {
        self.given(Given { status, json: None, media })
    }

    /// The response has no body.
    fn empty(self, status: u16) -> Self {
        self.text(status, &[])
    }

    /// Adds parameters.
    fn with(mut self, parameters: &[&'static Parameter]) -> Self {
        self.docs.parameters.extend(parameters);
        self
    }

    fn given(mut self, given: Given) -> Self {
        self.docs.gives.push(given);
        self
    }
}

/// A handler's outcome as a response.
fn answer(handler: impl Future<Output = Result<Response, Problem>> + Send + 'static) -> BoxFuture<'static, Response> {
    Box::pin(async move { handler.await.unwrap_or_else(Problem::into_response) })
}

/// All routes.
pub fn table() -> &'static [Route<AppState>] {
    static TABLE: LazyLock<Vec<Route<AppState>>> = LazyLock::new(make);
    &TABLE
}

fn make() -> Vec<Route<AppState>> {
    let mut all = [runtime_routes(), session_routes(), device_routes(), protocol_routes()].concat();
    // The page's files are the same for everyone and contain no session data.
    let file = |path| route(GET, path, Policy::Public, NOTHING, "A file of the page", |_, c| answer(web::file(c)));
    all.extend(web::paths().map(file));
    all
}

/// The caller, runtimes, and the gateway's state.
#[rustfmt::skip] // a route: who does it and how, then what it takes and gives
fn runtime_routes() -> Vec<Route<AppState>> {
    vec![
        secret(route(GET, "/v1/me", WATCH, NOTHING, "The calling device", |s, c| answer(devices::me(s, c))))
            .gives::<devices::Me<'_>>(200),
        route(DELETE, "/v1/me", WATCH, NOTHING, "Sign out: remove the calling device", |s, c| answer(devices::sign_out(s, c)))
            .empty(204),
        secret(route(POST, "/v1/signin", WATCH, JSON, "Sign in a browser with a device's token; sets a cookie", |s, c| answer(devices::sign_in(s, c))))
            .takes::<devices::SignIn>().gives::<devices::NewToken<'_>>(200),
        route(GET, "/v1/runtimes", WATCH, NOTHING, "Runtimes", |s, c| answer(api::runtimes(s, c)))
            .gives::<Runtimes>(200),
        route(POST, "/v1/runtimes", ADMIN, JSON, "Start a runtime", |s, c| answer(api::start_runtime(s, c)))
            .takes::<api::StartRuntime>().gives::<RuntimeInfo>(201).effect(Effect::StartAgent),
        route(GET, "/v1/runtimes/{id}", WATCH, NOTHING, "One runtime", |s, c| answer(api::runtime(s, c)))
            .gives::<RuntimeInfo>(200),
        route(DELETE, "/v1/runtimes/{id}", ADMIN, NOTHING, "Stop a runtime", |s, c| answer(api::stop_runtime(s, c)))
            .empty(204),
        route(POST, "/v1/runtimes/{id}/restart", ADMIN, NOTHING, "Restart a runtime", |s, c| answer(admin::restart_runtime(s, c)))
            .gives::<RuntimeInfo>(200),
        route(GET, "/v1/runtimes/{id}/logs", ADMIN, NOTHING, "The recent stderr output of a runtime", |s, c| answer(admin::logs(s, c)))
            .gives::<admin::Logs>(200),
        route(GET, "/v1/runtimes/{id}/resumable", WATCH, NOTHING, "Conversations stored by a runtime that can be resumed", |s, c| answer(resumable::list(s, c)))
            .gives::<ResumablePage>(200).with(&[&docs::RESUMABLE_LIMIT, &docs::RESUMABLE_CURSOR]),
        route(GET, "/v1/terminals", WATCH, NOTHING, "Shared terminals; none for a device that is limited to some runtimes or sessions", |s, c| answer(terminals::list(s, c)))
            .gives::<terminals::Terminals>(200),
        route(GET, "/v1/agents", ADMIN, NOTHING, "The agents that the gateway knows how to start: which are installed, and how to install the others", |s, c| answer(agents::list(s, c)))
            .gives::<agents::Agents>(200),
        route(GET, "/v1/folders", PROMPTS, NOTHING, "Folders that sessions used; for administrators also the folders below a path", |s, c| answer(folders::list(s, c)))
            .gives::<folders::Folders>(200).with(&[&docs::FOLDERS_UNDER, &docs::FOLDERS_PREFIX]),
        route(GET, "/v1/folders/files", ADMIN, NOTHING, "Files of a folder whose paths fit, best first", |s, c| answer(folders::files(s, c)))
            .gives::<api::Files>(200).with(&[&docs::FILES_UNDER, &docs::FILES_SOUGHT, &docs::FILES_LIMIT]),
        route(GET, "/v1/worktrees", ADMIN, NOTHING, "The git worktrees that were made for sessions, and what is in each only", |s, c| answer(worktrees::list(s, c)))
            .gives::<worktrees::ListedWorktrees>(200),
        route(POST, "/v1/worktrees/remove", ADMIN, JSON, "Remove a worktree that no session works in; what would be lost must have been shown", |s, c| answer(worktrees::remove(s, c)))
            .takes::<worktrees::RemoveWorktree>().empty(204).effect(Effect::ChangeWorktree),
        route(GET, "/v1/doctor", ADMIN, NOTHING, "Health checks: what works, what does not, and the fix", |s, c| answer(doctor::serve(s, c)))
            .gives::<doctor::Checks>(200),
        route(POST, "/v1/clock/confirm", ADMIN, NOTHING, "Trust the clock of the gateway's machine although it made a step", |s, c| answer(doctor::confirm_clock(s, c)))
            .gives::<doctor::Check>(200).effect(Effect::TrustClock),
        route(GET, "/v1/link", ADMIN, NOTHING, "Agents with terminals of their own: whether they are linked, and what linking changes", |s, c| answer(linking::list(s, c)))
            .gives::<linking::AgentLinks>(200),
        route(POST, "/v1/link/{agent}", ADMIN, JSON, "Link or unlink an agent: exactly the changes that were shown", |s, c| answer(linking::change(s, c)))
            .takes::<linking::LinkWish>().gives::<linking::AgentLinks>(200).effect(Effect::ChangeSettings),
    ]
}

/// Sessions, events, requests.
#[rustfmt::skip] // a route: who does it and how, then what it takes and gives
fn session_routes() -> Vec<Route<AppState>> {
    vec![
        route(GET, "/v1/sessions", WATCH, NOTHING, "Sessions", |s, c| answer(api::sessions(s, c)))
            .gives::<Sessions>(200).with(&[&docs::ARCHIVED, &docs::SESSIONS_LIMIT, &docs::SESSIONS_CURSOR]),
        route(POST, "/v1/sessions", PROMPTS, JSON, "Open a session", |s, c| answer(new_session::open(s, c)))
            .takes::<new_session::NewSession>().gives::<SessionInfo>(201).with(&[&docs::SESSION_KEY]),
        route(GET, "/v1/sessions/{id}", WATCH, NOTHING, "One session", |s, c| answer(api::session(s, c)))
            .gives::<SessionInfo>(200),
        route(PATCH, "/v1/sessions/{id}", PROMPTS, JSON, "Rename or archive a session", |s, c| answer(api::edit_session(s, c)))
            .takes::<api::EditSession>().gives::<SessionInfo>(200),
        route(DELETE, "/v1/sessions/{id}", ADMIN, NOTHING, "End a session and delete all its data", |s, c| answer(api::forget_session(s, c)))
            .empty(204).effect(Effect::DeleteSession),
        route(POST, "/v1/sessions/{id}/prompt", PROMPTS, BodyRule::Json(PROMPT), "Start a run, or queue it", |s, c| answer(api::prompt(s, c)))
            .takes::<api::NewPrompt>().gives::<AcceptedPrompt>(202).with(&[&docs::PROMPT_KEY]),
        route(POST, "/v1/sessions/{id}/cancel", PROMPTS, BodyRule::Optional(BODY), "Cancel the current run, or the named one", |s, c| answer(api::cancel(s, c)))
            .takes::<api::CancelRun>().gives::<api::Run>(202),
        route(POST, "/v1/sessions/{id}/restart", PROMPTS, BodyRule::Optional(BODY), "Send a run's prompt again; the run is cancelled first", |s, c| answer(admin::restart_run(s, c)))
            .takes::<admin::RestartRun>().gives::<AcceptedPrompt>(202).with(&[&docs::RESTART_KEY]),
        route(GET, "/v1/sessions/{id}/events", WATCH, NOTHING, "Events of a session: as a page, by long polling, or as a stream", |s, c| answer(api::session_events(s, c)))
            .gives_or::<Page<'_>>(200, &["text/event-stream"]).with(docs::EVENTS),
        route(GET, "/v1/sessions/{id}/snapshot", WATCH, NOTHING, "The state of a session for a client that joins", |s, c| answer(api::snapshot(s, c)))
            .gives::<Snapshot>(200).with(&[&docs::SNAPSHOT_BYTES]),
        route(GET, "/v1/sessions/{id}/surfaces", WATCH, NOTHING, "The surfaces that a session's agent draws", |s, c| answer(surfaces::list(s, c)))
            .gives::<surfaces::Surfaces>(200),
        route(POST, "/v1/sessions/{id}/surfaces", DRAWS, BodyRule::Json(SURFACE), "Show a surface, or replace the one of its name", |s, c| answer(surfaces::show(s, c)))
            .takes::<surfaces::NewSurface>().gives::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(PATCH, "/v1/sessions/{id}/surfaces/{surface}", DRAWS, BodyRule::Json(SURFACE), "Change a part of a surface, or pin it", |s, c| answer(surfaces::update(s, c)))
            .takes::<surfaces::SurfaceUpdate>().gives::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(DELETE, "/v1/sessions/{id}/surfaces/{surface}", DRAWS, NOTHING, "Take a surface down", |s, c| answer(surfaces::close(s, c)))
            .gives::<Drawn>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(POST, "/v1/sessions/{id}/surfaces/{surface}/action", WATCH, JSON, "Press something on a surface: it answers the surface's question, or the agent gets it as a prompt", |s, c| answer(surfaces::act(s, c)))
            .takes::<surfaces::SurfaceAction>().gives::<Acted>(200),
        route(POST, "/v1/sessions/{id}/asks", DRAWS, BodyRule::Json(SURFACE), "Ask by a surface: a request that people answer on it, or like any other", |s, c| answer(surfaces::ask(s, c)))
            .takes::<surfaces::NewAsk>().gives::<AskView>(200).with(&[&docs::DRAW_KEY, &docs::DRAW_CALL]),
        route(GET, "/v1/sessions/{id}/asks/{ask}", DRAWS, NOTHING, "What became of a question by a surface", |s, c| answer(surfaces::ask_outcome(s, c)))
            .gives::<AskView>(200).with(&[&docs::ASK_WAIT]),
        route(POST, "/mcp/{id}", DRAWS, BodyRule::Json(SURFACE), "MCP for a session's agent (Streamable HTTP without sessions): tools that draw and ask", |s, c| answer(mcp::serve(s, c)))
            .takes::<JsonObject>().gives::<JsonObject>(200).empty(202),
        route(GET, "/v1/surfaces", WATCH, NOTHING, "The pinned surfaces of all sessions, without what is on them", |s, c| answer(surfaces::pinned(s, c)))
            .gives::<surfaces::PinnedSurfaces>(200),
        route(GET, "/v1/sessions/{id}/export", WATCH, NOTHING, "Export a session as a file", |s, c| answer(export::serve(s, c)))
            .text(200, &["application/x-ndjson", "text/markdown", "text/html"]).with(&[&docs::FORMAT]),
        route(GET, "/v1/sessions/{id}/mcp", PROMPTS, NOTHING, "The MCP servers of a session's agent", |s, c| answer(agent_tools::mcp(s, c)))
            .gives::<agent_tools::McpServers>(200).with(&[&docs::MCP_SCOPE]),
        route(GET, "/v1/sessions/{id}/skills", PROMPTS, NOTHING, "The skills of a session's agent", |s, c| answer(agent_tools::skills(s, c)))
            .gives::<agent_tools::Skills>(200),
        route(GET, "/v1/sessions/{id}/files", PROMPTS, NOTHING, "Files of a session's folder whose paths fit, best first", |s, c| answer(api::files(s, c)))
            .gives::<api::Files>(200).with(&[&docs::FILES_SOUGHT, &docs::FILES_LIMIT]),
        route(GET, "/v1/sessions/{id}/changes", WATCH, NOTHING, "Files that changed since a session's first prompt, or in one run", |s, c| answer(changes::list(s, c)))
            .gives::<ChangesView>(200).with(&[&docs::CHANGES_RUN]),
        route(GET, "/v1/sessions/{id}/changes/file", WATCH, NOTHING, "The diff of a changed file", |s, c| answer(changes::file(s, c)))
            .gives::<ChangeDiff>(200).with(&[&docs::CHANGES_FILE, &docs::CHANGES_RUN]),
        route(GET, "/v1/sessions/{id}/changes/patch", WATCH, NOTHING, "A patch of what changed, for `git apply`", |s, c| answer(changes::patch(s, c)))
            .text(200, &["text/x-diff"]).with(&[&docs::CHANGES_PATH, &docs::CHANGES_RUN]),
        route(POST, "/v1/sessions/{id}/changes/undo", APPROVE, JSON, "Undo a change of a file, or a hunk of it", |s, c| answer(changes::undo(s, c)))
            .takes::<changes::UndoChange>().gives::<UndoneChange>(200).effect(Effect::ChangeFiles),
        route(GET, "/v1/sessions/{id}/changes/undone", WATCH, NOTHING, "What was undone and can be brought back", |s, c| answer(changes::undone(s, c)))
            .gives::<changes::UndoneChanges>(200),
        route(POST, "/v1/sessions/{id}/changes/redo", APPROVE, JSON, "Bring back what was undone", |s, c| answer(changes::redo(s, c)))
            .takes::<changes::RedoChange>().gives::<KeptPatch>(200).effect(Effect::ChangeFiles),
        route(POST, "/v1/sessions/{id}/changes/review", PROMPTS, JSON, "Comments on changed lines: one prompt is made of them", |s, c| answer(changes::review(s, c)))
            .takes::<changes::ChangesReview>().gives::<AcceptedPrompt>(202).with(&[&docs::PROMPT_KEY]),
        route(GET, "/v1/events", WATCH, NOTHING, "Events of all or some sessions: as a page, by long polling, or as a stream", |s, c| answer(api::events(s, c)))
            .gives_or::<Page<'_>>(200, &["text/event-stream"]).with(&[&docs::SESSIONS_NAMED]).with(docs::EVENTS),
        route(GET, "/v1/requests", WATCH, NOTHING, "Requests", |s, c| answer(api::requests(s, c)))
            .gives::<api::Requests<'_>>(200).with(&[&docs::REQUEST_STATE, &docs::SESSION_NAMED, &docs::REQUESTS_LIMIT, &docs::REQUESTS_BEFORE]),
        route(GET, "/v1/requests/{id}", WATCH, NOTHING, "One request", |s, c| answer(api::request(s, c)))
            .gives::<plexus_protocol::Request>(200),
        route(POST, "/v1/requests/{id}/answer", APPROVE, JSON, "Answer a request; the first answer wins", |s, c| answer(api::answer(s, c)))
            .takes::<Answer>().gives::<Receipt>(200).with(&[&docs::ANSWER_KEY]),
        route(GET, "/v1/search", WATCH, NOTHING, "Search for messages with all of the words", |s, c| answer(api::search(s, c)))
            .gives::<api::Hits>(200).with(&[&docs::WORDS_SOUGHT, &docs::HITS_LIMIT]),
        route(GET, "/v1/usage", WATCH, NOTHING, "What agents spent: tokens and money, by day, runtime, project, session or run", |s, c| answer(usage::usage(s, c)))
            .gives::<usage::UsageSums>(200).with(docs::USAGE),
        route(GET, "/v1/usage/ceilings", ADMIN, NOTHING, "The ceilings of what agents spend, and what was spent today", |s, c| answer(usage::ceilings(s, c)))
            .gives::<CeilingsView>(200),
        route(PUT, "/v1/usage/ceilings", ADMIN, JSON, "Set the ceilings of what agents spend, in place of those set before; they are remembered", |s, c| answer(usage::set_ceilings(s, c)))
            .takes::<CeilingSettings>().gives::<CeilingsView>(200).effect(Effect::RaiseCeiling),
    ]
}

/// Devices, pairing by the computer, notifications.
#[rustfmt::skip] // a route: who does it and how, then what it takes and gives
fn device_routes() -> Vec<Route<AppState>> {
    vec![
        route(GET, "/v1/devices", ADMIN, NOTHING, "Enrolled devices", |s, c| answer(devices::devices(s, c)))
            .gives::<devices::Devices>(200),
        secret(route(POST, "/v1/devices", ADMIN, JSON, "Enrol a device", |s, c| answer(devices::enrol(s, c))))
            .takes::<devices::NewDevice>().gives::<devices::NewToken<'_>>(201),
        route(PATCH, "/v1/devices/{id}", ADMIN, JSON, "Rename a device, or allow it to answer from notifications", |s, c| answer(devices::alter(s, c)))
            .takes::<devices::NewName>().gives::<devices::Identity<'_>>(200),
        route(DELETE, "/v1/devices/{id}", ADMIN, NOTHING, "Revoke a device immediately", |s, c| answer(devices::revoke(s, c)))
            .empty(204),
        route(DELETE, "/v1/local-browsers", ADMIN, NOTHING, "Sign out all browsers of this user on this machine", |s, c| answer(devices::revoke_local_browsers(s, c)))
            .gives::<devices::RevokedDevices>(200),
        secret(route(POST, "/v1/codes", ADMIN, JSON, "Create a one-time code that enrols a device", |s, c| answer(devices::mint_code(s, c))))
            .takes::<devices::NewCode>().gives::<OneTimeCode>(201),
        secret(route(POST, "/v1/sessions/{id}/shares", ADMIN, BodyRule::Optional(BODY), "Create a read-only link to a session", |s, c| answer(devices::share(s, c))))
            .takes::<devices::NewShare>().gives::<devices::Share<'_>>(201),
        secret(route(POST, "/v1/pairings", ADMIN, JSON, "Start a pairing: a short code for one device", |s, c| answer(devices::begin_pairing(s, c))))
            .takes::<devices::NewPairing>().gives::<devices::Begun>(201),
        secret(route(GET, "/v1/pairings/{id}", ADMIN, NOTHING, "The state of a pairing", |s, c| answer(devices::pairing(s, c))))
            .gives::<PairingView>(200).with(&[&docs::PAIRING_WAIT, &docs::PAIRING_KNOWN]),
        secret(route(POST, "/v1/pairings/{id}/confirm", ADMIN, JSON, "Confirm that the device shows this number", |s, c| answer(devices::confirm(s, c))))
            .takes::<devices::Confirm>().gives::<PairingView>(200),
        route(DELETE, "/v1/pairings/{id}", ADMIN, NOTHING, "Refuse a pairing", |s, c| answer(devices::refuse(s, c)))
            .empty(204),
        route(GET, "/v1/listeners", ADMIN, NOTHING, "How other machines reach the gateway", |s, c| answer(listeners::list(s, c)))
            .gives::<listeners::PublicAccess>(200),
        route(PUT, "/v1/listeners/tls", ADMIN, JSON, "Add a TLS listener now, with the certificate of `plexus tls init`; it is remembered", |s, c| answer(listeners::add_tls(s, c)))
            .takes::<listeners::NewTlsListener>().gives::<listeners::PublicAccess>(200).effect(Effect::OpenNetwork),
        route(DELETE, "/v1/listeners/tls", ADMIN, NOTHING, "Remove the TLS listener that was added", |s, c| answer(listeners::remove_tls(s, c)))
            .empty(204),
        route(PUT, "/v1/listeners/proxy", ADMIN, JSON, "Accept what a proxy on this machine forwards under an origin; it is remembered", |s, c| answer(listeners::add_proxy(s, c)))
            .takes::<listeners::NewProxy>().gives::<listeners::PublicAccess>(200).effect(Effect::OpenNetwork),
        route(DELETE, "/v1/listeners/proxy", ADMIN, NOTHING, "Remove the proxy that was added", |s, c| answer(listeners::remove_proxy(s, c)))
            .empty(204),
        route(GET, "/v1/push", WATCH, NOTHING, "The key to subscribe with, and the calling device's settings", |s, c| answer(notify::api::show(s, c)))
            .gives::<Push<'_>>(200),
        route(PUT, "/v1/push", WATCH, JSON, "Subscribe this device to notifications", |s, c| answer(notify::api::subscribe(s, c)))
            .takes::<notify::api::Subscribe>().gives::<Push<'_>>(200),
        route(DELETE, "/v1/push", WATCH, NOTHING, "End this device's subscription", |s, c| answer(notify::api::unsubscribe(s, c)))
            .empty(204),
        route(PATCH, "/v1/push/settings", WATCH, JSON, "Choose the events and quiet hours of this device", |s, c| answer(notify::api::choose(s, c)))
            .takes::<notify::api::PushChoice>().gives::<Push<'_>>(200),
        route(POST, "/v1/push/test", WATCH, BodyRule::Optional(BODY), "Send this device a notification now", |s, c| answer(notify::api::test(s, c)))
            .takes::<notify::api::PushTry>().gives::<notify::api::PushTried>(200),
    ]
}

/// Other protocols, the device's side of pairing, and public routes.
#[rustfmt::skip] // a route: who does it and how, then what it takes and gives
fn protocol_routes() -> Vec<Route<AppState>> {
    vec![
        // The scope `watch` is enough to listen; a prompt or an answer in the body needs its own scope.
        route(POST, "/ag-ui/{id}", WATCH, BodyRule::Json(PROMPT), "Run a session over AG-UI: prompt, answer, read events", |s, c| answer(agui::run(s, c)))
            .takes::<agui::RunAgentInput>().empty(200),
        route(GET, WS_PATH, WATCH, NOTHING, "The native WebSocket", |s, c| answer(api::ws(s, c)))
            .empty(101).with(docs::HANDSHAKE),
        // Watching needs the scope `watch`; what is typed needs `type`.
        route(GET, "/v1/terminals/{id}/ws", WATCH, NOTHING, "A shared terminal over a WebSocket: its screen, then its output", |s, c| answer(terminals::ws(s, c)))
            .empty(101).with(docs::HANDSHAKE),
        route(GET, "/acp", WATCH, NOTHING, "ACP over a WebSocket: one agent over all runtimes", |s, c| answer(acp::get(s, c)))
            .empty(101).with(docs::ACP),
        route(GET, "/acp/{runtime_id}", WATCH, NOTHING, "ACP over a WebSocket, for one runtime", |s, c| answer(acp::get(s, c)))
            .empty(101).with(docs::ACP),
        route(POST, "/acp", WATCH, BodyRule::Json(PROMPT), "ACP over HTTP: a message", |s, c| answer(acp::http::post(s, c)))
            .takes::<AcpMessage>().empty(202).with(docs::ACP),
        route(POST, "/acp/{runtime_id}", WATCH, BodyRule::Json(PROMPT), "ACP over HTTP, for one runtime: a message", |s, c| answer(acp::http::post(s, c)))
            .takes::<AcpMessage>().empty(202).with(docs::ACP),
        route(DELETE, "/acp", WATCH, NOTHING, "ACP over HTTP: end a connection", |s, c| answer(acp::http::delete(s, c)))
            .empty(202).with(docs::ACP),
        route(DELETE, "/acp/{runtime_id}", WATCH, NOTHING, "ACP over HTTP, for one runtime: end a connection", |s, c| answer(acp::http::delete(s, c)))
            .empty(202).with(docs::ACP),
        // The code authenticates the request.
        secret(route(POST, "/v1/pair", Policy::Public, PROOF, "Exchange a one-time code for a device's token or cookie", |s, c| answer(devices::pair(s, c))))
            .takes::<devices::Pair>().gives::<devices::NewToken<'_>>(200).gives::<PhoneTicket>(202),
        secret(route(POST, "/v1/pair/look", Policy::Public, PROOF, "What a short code grants", |s, c| answer(devices::look(s, c))))
            .takes::<devices::Look>().gives::<devices::Invitation>(200),
        // The ticket authenticates the request.
        secret(route(POST, "/v1/pair/wait", Policy::Public, PROOF, "The result of joining with a short code", |s, c| answer(devices::fetch(s, c))))
            .takes::<devices::Fetch>().gives::<devices::NewToken<'_>>(200).gives::<devices::Patience>(202),
        // For supervisors and load balancers: only whether the gateway runs.
        route(GET, "/healthz", Policy::Public, NOTHING, "Whether the gateway is running; with a challenge, the proof of its identity", |s, c| answer(api::healthz(s, c)))
            .text(200, &["text/plain"]).with(&[&docs::CHALLENGE]),
        route(GET, "/readyz", Policy::Public, NOTHING, "Whether the log can be written", |s, _| answer(api::readyz(s)))
            .gives::<api::Ready>(200),
        route(GET, "/metrics", WATCH, NOTHING, "Metrics for Prometheus", |s, c| answer(api::metrics_text(s, c)))
            .text(200, &["text/plain"]),
        // The certificate that a phone has to trust; every TLS handshake shows it.
        route(GET, "/ca.crt", Policy::Public, NOTHING, "The certificate of this gateway's private CA, if it has one", |s, _| answer(public_address::certificate(s)))
            .text(200, &["application/x-x509-ca-cert"]),
        route(GET, "/ca.mobileconfig", Policy::Public, NOTHING, "The same, as a profile for iOS", |s, _| answer(public_address::profile(s)))
            .text(200, &["application/x-apple-aspen-config"]),
        route(GET, "/ca", Policy::Public, NOTHING, "How a phone comes to trust the certificate, if there is a CA", |s, _| answer(public_address::guide(s)))
            .text(200, &["text/html"]),
        // Public: the same for every gateway of this version, and tools fetch it before they have a token.
        route(GET, "/openapi.json", Policy::Public, NOTHING, "This description", |s: AppState, _| answer(openapi::serve(s.version, table())))
            .gives::<JsonObject>(200),
        route(GET, "/asyncapi.json", Policy::Public, NOTHING, "The native WebSocket's description", |s: AppState, _| answer(asyncapi::serve(s.version)))
            .gives::<JsonObject>(200),
    ]
}

/// The routes of a runtime's own port: of the mirror, the remote control, or both.
pub fn port_table(ui: bool, remote: bool) -> &'static [Route<PortState>] {
    static TABLES: LazyLock<[Vec<Route<PortState>>; 4]> =
        LazyLock::new(|| [(false, false), (true, false), (false, true), (true, true)].map(make_port));
    &TABLES[usize::from(ui) + 2 * usize::from(remote)]
}

#[rustfmt::skip] // a route a line
fn make_port((ui, remote): (bool, bool)) -> Vec<Route<PortState>> {
    let mut all = Vec::new();
    if ui {
        all.push(route(GET, "/", Policy::WatchOrSameUser, NOTHING, "The Gemini UI mirror", |s, c| answer(mirror::serve(s, c))));
    }
    if remote {
        all.push(route(POST, "/message", PROMPTS, BodyRule::Json(PROMPT), "Start a run in the runtime's current session, or queue it", |s, c| answer(remote::message(s, c))));
        all.push(route(GET, "/history", WATCH, NOTHING, "The messages of the runtime's current session", |s, c| answer(remote::history(s, c))));
    }
    all
}

/// A router for the table. The guard is around every route, and around unknown paths.
pub fn build<S: Clone + Send + Sync + 'static>(gate: &Gate, table: &'static [Route<S>], state: &S) -> axum::Router {
    let mut paths: BTreeMap<&str, Vec<&'static Route<S>>> = BTreeMap::new();
    for route in table {
        paths.entry(&route.path).or_default().push(route);
    }
    let mut router = axum::Router::new();
    for (path, routes) in paths {
        let allow = allow(&routes);
        let (gate, state) = (gate.clone(), state.clone());
        // One handler for all methods: axum's own method check would reveal them in `Allow` without authentication.
        let methods = any(move |params: RawPathParams, request: Request| async move {
            let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
            let Some(route) = routes.iter().find(|route| route.method == *method) else {
                return guard::other_method(&gate, &request.into_parts().0, &allow).into_response();
            };
            let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            guard::admit(&gate, route, state, params, request).await
        });
        router = router.route(path, methods);
    }
    let at_no_path = gate.clone();
    router
        .fallback(move |request: Request| async move { guard::nowhere(&at_no_path, &request.into_parts().0) })
        .layer(from_fn_with_state(gate.clone(), guard::outer))
        .layer(CatchPanicLayer::custom(guard::panicked))
        .layer(CompressionLayer::new().quality(COMPRESSION).compress_when(guard::Compressible))
        .layer(from_fn(guard::finish))
}

fn allow<S>(routes: &[&Route<S>]) -> String {
    let mut names: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{GateLimits, Hosts};
    use plexus_auth::Auth;

    fn gate(home: &std::path::Path) -> Gate {
        let auth = Auth::open(home, &[], std::sync::Arc::new(|_| Box::pin(std::future::ready(Ok(()))))).unwrap();
        let hosts = Hosts::new(&["127.0.0.1:1".parse().unwrap()], &[]);
        Gate {
            auth,
            hosts: std::sync::Arc::new(hosts),
            public_addresses: Default::default(),
            same_user: None,
            limits: GateLimits::default(),
            ledger: Default::default(),
        }
    }

    #[tokio::test]
    async fn handler_panic_is_a_problem_and_the_next_request_is_served() {
        let table: &'static [Route<()>] = Vec::leak(vec![Route {
            method: GET,
            path: "/{what}".into(),
            policy: Policy::Public,
            body: NOTHING,
            secret: false,
            summary: "",
            effect: None,
            docs: Docs::default(),
            run: |(), call| {
                Box::pin(async move {
                    assert_ne!(call.params[0].1, "panic", "secret cause");
                    Response::new(Body::empty())
                })
            },
        }]);
        let home = tempfile::tempdir().unwrap();
        let app = build(&gate(home.path()), table, &());
        for (path, status) in [("/panic", StatusCode::INTERNAL_SERVER_ERROR), ("/fine", StatusCode::OK)] {
            let request = http::Request::get(path).header("host", "127.0.0.1:1").body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            assert!(response.headers().contains_key("content-security-policy"));
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            assert!(!String::from_utf8_lossy(&body).contains("secret cause"), "the cause is not for strangers");
        }
    }

    /// The routes that a document names, each with its method where one stands before it.
    fn named_routes(document: &str) -> Vec<(Option<&str>, &str)> {
        let mut named = Vec::new();
        let mut before = "";
        for word in document.split([' ', '\n', '`', '"', '(', ')', ',']).filter(|word| !word.is_empty()) {
            let path = word.strip_prefix("$U").unwrap_or(word);
            let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches(['.', ':', ';']);
            if path.starts_with('/') {
                let is_method = before.len() > 2 && before.bytes().all(|letter| letter.is_ascii_uppercase());
                named.push((is_method.then_some(before), path));
            }
            before = word;
        }
        named
    }

    /// Whether a document's path, with values or other names in place of the parameters, is the route's.
    fn is_path_of(route: &str, path: &str) -> bool {
        let (route, path): (Vec<&str>, Vec<&str>) = (route.split('/').collect(), path.split('/').collect());
        let same = |(route, path): (&&str, &&str)| route == path || (route.starts_with('{') && !path.is_empty());
        route.len() == path.len() && route.iter().zip(&path).all(same)
    }

    #[test]
    fn documents_name_only_routes_that_exist() {
        let own_port = port_table(true, true).iter().map(|route| (&route.method, route.path.as_ref()));
        let routes: Vec<_> = table().iter().map(|route| (&route.method, route.path.as_ref())).chain(own_port).collect();
        let exists = |method: Option<&str>, path: &str| {
            let of_method = |known: &Method| method.is_none_or(|method| method == known.as_str());
            routes.iter().any(|(known, route)| of_method(known) && is_path_of(route, path))
        };
        let documents = [
            ("docs/http.md", include_str!("../../docs/http.md"), 8),
            ("docs/protocol.md", include_str!("../../docs/protocol.md"), 80),
        ];
        for (name, document, least) in documents {
            let named = named_routes(document);
            assert!(named.len() >= least, "{name}: {named:?}");
            let gone: Vec<_> = named.into_iter().filter(|(method, path)| !exists(*method, path)).collect();
            assert!(gone.is_empty(), "{name} names routes that do not exist: {gone:?}");
        }
        assert!(!exists(Some("PUT"), "/v1/sessions") && !exists(None, "/v1/sessions/s_1/nothing"));
    }

    #[test]
    fn route_that_changes_something_has_an_effect_or_is_known_to_have_none() {
        // What these routes do allows an agent nothing, takes rights or agents away, or is judged where it is read: an answer, a press
        // on a surface, the grant of a new device, what is typed in a terminal.
        let none = [
            "DELETE /v1/me",
            "POST /v1/signin",
            "DELETE /v1/runtimes/{id}",
            "POST /v1/runtimes/{id}/restart",
            "POST /v1/sessions",
            "PATCH /v1/sessions/{id}",
            "POST /v1/sessions/{id}/prompt",
            "POST /v1/sessions/{id}/cancel",
            "POST /v1/sessions/{id}/restart",
            "POST /v1/sessions/{id}/surfaces",
            "PATCH /v1/sessions/{id}/surfaces/{surface}",
            "DELETE /v1/sessions/{id}/surfaces/{surface}",
            "POST /v1/sessions/{id}/surfaces/{surface}/action",
            "POST /v1/sessions/{id}/asks",
            "POST /mcp/{id}",
            "POST /v1/sessions/{id}/changes/review",
            "POST /v1/requests/{id}/answer",
            "POST /v1/devices",
            "PATCH /v1/devices/{id}",
            "DELETE /v1/devices/{id}",
            "DELETE /v1/local-browsers",
            "POST /v1/codes",
            "POST /v1/sessions/{id}/shares",
            "POST /v1/pairings",
            "POST /v1/pairings/{id}/confirm",
            "DELETE /v1/pairings/{id}",
            "DELETE /v1/listeners/tls",
            "DELETE /v1/listeners/proxy",
            "PUT /v1/push",
            "DELETE /v1/push",
            "PATCH /v1/push/settings",
            "POST /v1/push/test",
            "POST /ag-ui/{id}",
            "POST /acp",
            "POST /acp/{runtime_id}",
            "DELETE /acp",
            "DELETE /acp/{runtime_id}",
            "POST /v1/pair",
            "POST /v1/pair/look",
            "POST /v1/pair/wait",
        ];
        let changes = table().iter().filter(|route| route.method != GET && route.effect.is_none());
        let found: Vec<String> = changes.map(|route| format!("{} {}", route.method, route.path)).collect();
        assert_eq!(found, none, "decide in `sessions::effects` whether a new route has the effect of a command");
    }

    #[test]
    fn route_table_has_no_duplicates() {
        let mut seen = std::collections::BTreeSet::new();
        for route in table() {
            assert!(seen.insert((route.method.to_string(), route.path.clone())), "{} {}", route.method, route.path);
        }
    }
}
