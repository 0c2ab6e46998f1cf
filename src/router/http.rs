//! The HTTP frontend: JSON in, JSON out; events in pages and by long poll. Each handler checks access, acts, and responds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::described::QUERY_MAX;
use super::guard::Call;
use super::history::{self, Asked, PageEnd};
use super::listing::{Runtimes, listing};
use super::reply::{
    Outcome, Query, bad_query, body, created, filter_for, gateway, idempotency_key, json, no_content, no_such,
    request_of, runtime_for, session_for, session_of, waits, within_limit,
};
use super::schemas::ContentBlock;
use super::stop::stopping;
use super::wire::SESSIONS_MAX;
use super::{AppState, ForwardedWish, Problem, sse, ws};
use plexus_auth::{Admin, Approve, Caller, Prompt, Watch};
use plexus_ledger::Account;
use plexus_metrics::{OTHERS, Standing, Subscriber, metrics};
use plexus_protocol::schema::JsonObject;
use plexus_protocol::{
    Answer, Connect, Cursor, Origin, Request, RequestState, RestartPolicy, Risk, RunId, RunStatus, RuntimeId,
    RuntimeSpec, RuntimeState, Serve, SessionId, SessionState, text_block,
};
use plexus_risk::Effect;
use plexus_sessions::{
    CommitEntry, FILE_QUERY_MAX, Filter, FoundFiles, LISTED, LogPlace, PageLimit, ResumeVerdict, SessionError,
    StartAfter, WINDOW,
};

/// Default number of events on a page.
const PAGE: usize = 500;
/// Most events on a page; a larger limit is cut to it.
const PAGE_MAX: usize = 5000;
/// Default number of passages that a search returns.
const HITS: usize = 20;
/// Most passages that a search returns.
const HITS_MAX: usize = 100;
/// Default number of files that a query for files returns.
const FILES: usize = 20;
/// Most names tried for a runtime without one: `gemini`, `gemini-2` …
const NAMES: usize = 1000;
/// Time for the log to accept a write in the readiness check.
const READY_WAIT: Duration = Duration::from_secs(2);

// === runtimes ===

pub(super) async fn runtimes(state: AppState, call: Call) -> Outcome {
    let grant = &call.caller()?.device().grant;
    // A device limited to some sessions sees their runtimes.
    let of_sessions: Option<BTreeSet<RuntimeId>> = grant.sessions.as_ref().map(|some| {
        some.iter().filter_map(|id| state.directory.session(id)).map(|session| session.runtime_id.clone()).collect()
    });
    let sees = |id: &RuntimeId| {
        grant.runtimes.as_ref().is_none_or(|some| some.contains(id))
            && of_sessions.as_ref().is_none_or(|some| some.contains(id))
    };
    let mut all: Vec<_> = state.directory.runtimes().into_iter().filter(|runtime| sees(&runtime.runtime_id)).collect();
    if of_sessions.is_some() {
        all.iter_mut().for_each(|runtime| *runtime = Arc::new(runtime.from_outside()));
    }
    json(StatusCode::OK, &Runtimes { runtimes: all })
}

pub(super) async fn runtime(state: AppState, call: Call) -> Outcome {
    let id = call.id(|| no_such("runtime_not_found", "runtime"))?;
    let (runtime, _) = runtime_for::<Watch>(&state, call.caller()?, &id)?;
    json(StatusCode::OK, &*runtime)
}

/// A runtime to start: a `preset`, or a `dialect` with a `command` or an endpoint to `connect` to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartRuntime {
    /// A preset's name, in place of `dialect` and `command`.
    preset: Option<String>,
    /// The dialect that the runtime speaks.
    dialect: Option<String>,
    /// The program and its arguments.
    #[schema(min_items = 1)]
    command: Option<Vec<String>>,
    /// An endpoint: `ws://…`, `unix:…`, `http://…`.
    #[schema(min_length = 1)]
    connect: Option<String>,
    /// The folder to run in, absolute.
    #[schema(value_type = Option<String>, pattern = "^/")]
    pub(super) cwd: Option<PathBuf>,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables to pass through from the gateway's own environment.
    #[serde(default)]
    pass_env: Vec<String>,
    /// The runtime's name; made from the program's if absent.
    pub(super) id: Option<RuntimeId>,
    /// `never`, `on-failure` or `always`.
    restart: Option<RestartPolicy>,
    /// The ACP authentication method to use without asking.
    auth_method: Option<String>,
    /// `_meta` to send with every ACP `session/new`.
    #[schema(value_type = Option<JsonObject>)]
    session_meta: Option<Box<RawValue>>,
    /// Whether a program outlives the gateway; true if absent.
    outlive: Option<bool>,
    /// Whether its agents get the tools to draw surfaces; true if absent.
    ui: Option<bool>,
    /// The password or token of an endpoint. Never shown again.
    secret: Option<String>,
    /// The address at which a Gemini UI takes prompts, besides its mirror.
    remote: Option<String>,
    /// The client tools that the gateway offers an ACP agent: `{fs, terminal}`.
    serve: Option<Serve>,
}

impl StartRuntime {
    /// The effect of starting it.
    pub(super) fn effect(&self) -> Effect {
        let named = self.command.is_some() || !self.env.is_empty();
        if named { Effect::RunProgram } else { Effect::StartAgent }
    }
}

pub(super) async fn start_runtime(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let wanted: StartRuntime = call.json()?;
    within_limit(&call, wanted.effect())?;
    let named = wanted.id.is_some();
    let mut spec = start_spec(&state, wanted)?;
    if !named {
        spec.id = free_name(&state, spec.id);
    }
    let runtime = state.directory.start_runtime(&permit, spec).await?;
    created(&format!("/v1/runtimes/{}", runtime.runtime_id), &*runtime)
}

/// The settings of the runtime that is wanted; its name may be taken.
pub(super) fn start_spec(state: &AppState, wanted: StartRuntime) -> Result<RuntimeSpec, Problem> {
    if let Some(cwd) = wanted.cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        return Err(Problem::invalid(format!("`cwd` must be an absolute path, not {cwd:?}")));
    }
    // Without `..`: a new member does not compile until it has an effect.
    let StartRuntime {
        preset,
        dialect,
        command,
        connect,
        cwd,
        env,
        pass_env,
        id,
        restart,
        auth_method,
        session_meta,
        outlive,
        ui,
        secret,
        remote,
        serve,
    } = wanted;
    let wish = ForwardedWish { id, cwd, env };
    let spec = match preset {
        Some(_) if dialect.is_some() || command.is_some() || connect.is_some() => {
            return Err(Problem::invalid("a `preset` defines `dialect`, `command` and `connect`: leave them out"));
        }
        Some(preset) => (state.presets)(&preset, &wish).map_err(Problem::invalid)?,
        None => spec_of(dialect, command, connect, wish)?,
    };
    Ok(RuntimeSpec {
        pass_env: spec.pass_env.into_iter().chain(pass_env).collect(),
        restart: restart.unwrap_or(spec.restart),
        auth_method: auth_method.or(spec.auth_method),
        session_meta: session_meta.or(spec.session_meta),
        outlive: outlive.unwrap_or(spec.outlive),
        ui: ui.unwrap_or(spec.ui),
        secret: secret.or(spec.secret),
        remote: remote.or(spec.remote),
        serve: serve.unwrap_or(spec.serve),
        ..spec
    })
}

fn spec_of(
    dialect: Option<String>,
    command: Option<Vec<String>>,
    connect: Option<String>,
    wish: ForwardedWish,
) -> Result<RuntimeSpec, Problem> {
    let dialect = dialect.ok_or_else(|| Problem::invalid("give a `preset`, or a `dialect`"))?;
    let connect = match (command, connect) {
        (Some(command), None) if command.first().is_some_and(|program| !program.is_empty()) => {
            Connect::Command(command)
        }
        (None, Some(endpoint)) if !endpoint.is_empty() => Connect::Endpoint(endpoint),
        _ => {
            return Err(Problem::invalid(
                "give either `command`, a program and its arguments, or `connect`, an endpoint",
            ));
        }
    };
    let program = match &connect {
        Connect::Command(command) => command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default(),
        Connect::Endpoint(_) => &dialect,
    };
    let id = wish.id.or_else(|| program.parse().ok()).unwrap_or_else(|| RuntimeId::trusted("runtime"));
    let cwd = wish.cwd.ok_or_else(|| Problem::invalid("give `cwd`, the folder to run in"))?;
    Ok(RuntimeSpec { env: wish.env, ..RuntimeSpec::new(id, &dialect, connect, cwd) })
}

/// The name, or the first free one of `NAME-2` …
pub(super) fn free_name(state: &AppState, id: RuntimeId) -> RuntimeId {
    let others = (2..NAMES).filter_map(|n| format!("{id}-{n}").parse().ok());
    let mut free = std::iter::once(id.clone()).chain(others).filter(|name| state.directory.runtime(name).is_none());
    free.next().unwrap_or(id)
}

pub(super) async fn stop_runtime(state: AppState, call: Call) -> Outcome {
    let id = call.id(|| no_such("runtime_not_found", "runtime"))?;
    let (_, permit) = runtime_for::<Admin>(&state, call.caller()?, &id)?;
    state.directory.stop_runtime(&permit, &id).await?;
    no_content()
}

// === sessions ===

pub(super) async fn sessions(state: AppState, call: Call) -> Outcome {
    let caller = call.caller()?;
    let archived = match Query::of(&call).get("archived") {
        None | Some("false") => Some(false),
        Some("true") => Some(true),
        Some("all") => None,
        Some(_) => return Err(bad_query("`archived` must be true, false or all".into())),
    };
    let query = Query::of(&call);
    let limit = query.number("limit", SESSIONS_MAX)?;
    state.directory.renew_projects(None).await;
    json(StatusCode::OK, &listing(&state, caller, archived, limit, query.get("cursor"))?)
}

pub(super) async fn session(state: AppState, call: Call) -> Outcome {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    state.directory.renew_projects(Some(&session.session_id)).await;
    let (session, _) = session_of::<Watch>(&state, &call)?;
    json(StatusCode::OK, &*session)
}

/// Files of a session's folder.
#[derive(Serialize, ToSchema)]
pub(super) struct Files {
    /// The files whose paths fit, best first.
    files: Vec<FileMatch>,
    /// Whether the folder has more files than were looked at.
    truncated: bool,
}

/// A file of a session's folder.
#[derive(Serialize, ToSchema)]
pub(super) struct FileMatch {
    /// Its path below the session's folder. It may have any characters: escape control characters to show it.
    path: String,
}

pub(super) async fn files(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let (sought, limit) = files_wanted(&call)?;
    let found = state.directory.files(&permit, &session.session_id, sought, limit).await?;
    json(StatusCode::OK, &Files::from(found))
}

/// Which files are wanted, and how many at most.
pub(super) fn files_wanted(call: &Call) -> Result<(String, usize), Problem> {
    let query = Query::of(call);
    let limit = query.number("limit", FILES)?;
    let sought = query.get("query").unwrap_or_default();
    if sought.chars().count() > FILE_QUERY_MAX {
        return Err(bad_query(format!("`query` may have at most {FILE_QUERY_MAX} characters")));
    }
    Ok((sought.to_owned(), limit))
}

impl From<FoundFiles> for Files {
    fn from(found: FoundFiles) -> Self {
        let files = found.paths.into_iter().map(|path| FileMatch { path }).collect();
        Self { files, truncated: found.truncated }
    }
}

/// Changes to a session; absent members stay unchanged.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditSession {
    /// The new title; the agent no longer changes it.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    title: Option<String>,
    /// Whether the session is archived.
    archived: Option<bool>,
}

pub(super) async fn edit_session(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let EditSession { title, archived } = call.json()?;
    json(StatusCode::OK, &*state.directory.edit_session(&permit, &session.session_id, title, archived).await?)
}

pub(super) async fn forget_session(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Admin>(&state, &call)?;
    state.directory.forget_session(&permit, &session.session_id).await?;
    no_content()
}

/// A prompt: `text` or `content`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPrompt {
    /// The prompt as plain text.
    text: Option<String>,
    /// ACP content blocks.
    #[schema(value_type = Option<Vec<ContentBlock>>, min_items = 1, max_items = 256)]
    content: Option<Vec<Box<RawValue>>>,
}

pub(super) async fn prompt(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let key = idempotency_key(&call)?;
    let NewPrompt { text, content } = call.json()?;
    let content = match (text, content) {
        (Some(text), None) if !text.trim().is_empty() => vec![text_block(&text)],
        (None, Some(content)) if !content.is_empty() => content,
        (None, None) | (Some(_), Some(_)) => return Err(Problem::invalid("give either `text` or `content`")),
        _ => return Err(Problem::invalid("the prompt is empty")),
    };
    let accepted = state.directory.prompt_once(&permit, &session.session_id, content, key).await?;
    json(StatusCode::ACCEPTED, &accepted)
}

/// The run to cancel; the current one if absent.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRun {
    /// The run.
    run_id: Option<RunId>,
    /// The reason, for people and for runtimes that take one.
    reason: Option<String>,
}

/// A run.
#[derive(Serialize, ToSchema)]
pub(super) struct Run {
    /// The run.
    run_id: RunId,
}

pub(super) async fn cancel(state: AppState, call: Call) -> Outcome {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let CancelRun { run_id, reason } = call.json()?;
    let run = state.directory.cancel_because(&permit, &session.session_id, run_id, reason).await?;
    json(StatusCode::ACCEPTED, &Run { run_id: run })
}

pub(super) async fn snapshot(state: AppState, call: Call) -> Outcome {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let most = Query::of(&call).number("max_bytes", WINDOW)?;
    json(StatusCode::OK, &state.directory.snapshot_within(&session.session_id, most).await?)
}

// === events ===

pub(super) async fn session_events(state: AppState, call: Call) -> Outcome {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let only = BTreeSet::from([session.session_id.clone()]);
    follow(state, call, Some(only)).await
}

pub(super) async fn events(state: AppState, call: Call) -> Outcome {
    let mut only = BTreeSet::new();
    for text in Query::of(&call).all("session") {
        let id: SessionId = text.parse().map_err(|_| no_such("session_not_found", "session"))?;
        let (session, _) = session_for::<Watch>(&state, call.caller()?, &id)?;
        only.insert(session.session_id.clone());
    }
    follow(state, call, (!only.is_empty()).then_some(only)).await
}

fn after(text: Option<&str>) -> Result<StartAfter, Problem> {
    match text {
        None | Some("") => Ok(StartAfter::Oldest),
        Some("now") => Ok(StartAfter::Now),
        Some(text) => text.parse().map(StartAfter::Cursor).map_err(Problem::bad_cursor),
    }
}

/// Whether the client asks for server-sent events: the media type anywhere in `Accept` is enough.
fn wants_stream(call: &Call) -> bool {
    let lines = call.parts.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|one| one.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")))
}

async fn follow(state: AppState, call: Call, only: Option<BTreeSet<SessionId>>) -> Outcome {
    let caller = call.caller()?.clone();
    let query = Query::of(&call);
    let one = only.as_ref().filter(|only| only.len() == 1).and_then(|only| only.first()).cloned();
    let filter = filter_for(&caller, only);
    if wants_stream(&call) {
        if ["before", "merge", "max_bytes", "max_output"].iter().any(|name| query.get(name).is_some()) {
            return Err(bad_query(
                "`before`, `merge`, `max_bytes` and `max_output` are for pages, not for a stream".into(),
            ));
        }
        let last = call.parts.headers.get("last-event-id").map(|last| last.to_str().unwrap_or("-"));
        let after = after(last.filter(|last| !last.is_empty()).or_else(|| query.get("after")))?;
        return Ok(sse::serve(state, caller, call.parts, filter, after).await);
    }
    sse::projection(call.parts.uri.query())?;
    let asked = Asked::read(query.get("after"), query.get("before"))?;
    let merge = merges(&query)?;
    let bytes = query.get("max_bytes").map(|_| query.number("max_bytes", 0)).transpose()?;
    let output = query.get("max_output").map(|_| query.number("max_output", 0)).transpose()?;
    let limit = history::limit(query.number("limit", PAGE)?.clamp(1, PAGE_MAX), bytes, merge, output);
    let wait = waits(&query)?;
    match asked {
        Asked::Before(before) => {
            let one = one.ok_or_else(|| bad_query("`before` works within one session: name the session".into()))?;
            page_before(&state, &call.account, &one, before, limit).await
        }
        Asked::After(after, part) => {
            let whole = merge || bytes.is_some();
            page(state, caller, call.account, filter, &after, part, limit, whole, wait, one).await
        }
    }
}

/// Whether the client asks for merged events.
fn merges(query: &Query) -> Result<bool, Problem> {
    match query.get("merge") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(bad_query("`merge` must be true or false".into())),
    }
}

/// A page read backwards. A cursor of another epoch brings a snapshot instead.
async fn page_before(
    state: &AppState,
    account: &Account,
    session: &SessionId,
    before: Option<(Cursor, u32)>,
    limit: PageLimit,
) -> Outcome {
    let log = state.directory.log();
    let (resume, to) = history::ends(log, before);
    if resume != ResumeVerdict::Ok {
        return instead(state, &Filter::session(session.clone()), resume, Some(session)).await;
    }
    // Room for the events and for the output made of them. An event longer than a page needs more room and is read again.
    let mut asked = 2 * limit.bytes;
    let (page, room) = loop {
        let mut room = account.charge(asked.min(account.most()))?;
        let page = log.page_before(session, to, limit, &mut room).await?;
        if history::stays(&mut room, asked, page.bytes) {
            break (page, room);
        }
        asked = page.bytes;
    };
    let text = history::json(log, &page.items, &history::back_end(log, &page))?;
    drop(page);
    Ok(history::whole(text, room))
}

/// The snapshot in place of events that cannot be replayed.
async fn instead(state: &AppState, filter: &Filter, resume: ResumeVerdict, one: Option<&SessionId>) -> Outcome {
    let log = state.directory.log();
    let end = match one {
        Some(session) => {
            let snapshot = state.directory.snapshot(session).await?;
            let at = snapshot.cursor.position;
            PageEnd { snapshot: Some(snapshot), ..PageEnd::new(log, LogPlace::after(at)) }
        }
        None => {
            let many = state.directory.snapshots(filter).await?;
            let omitted = Some(many.omitted).filter(|omitted| *omitted > 0);
            let end = PageEnd::new(log, LogPlace::after(many.at));
            PageEnd { snapshots: Some(many.snapshots), omitted, ..end }
        }
    };
    let end = PageEnd { resume, ..end };
    Ok(history::response(history::json(log, &[], &end)?.into()))
}

#[allow(clippy::too_many_arguments)] // each is a part of what was asked for
async fn page(
    state: AppState,
    caller: Caller,
    account: Account,
    filter: Filter,
    after: &StartAfter,
    part: u32,
    limit: PageLimit,
    whole: bool,
    wait: Duration,
    one: Option<SessionId>,
) -> Outcome {
    let log = state.directory.log().clone();
    let (moved, mut revoked, mut stop) = (log.watch_for(&filter), state.auth.revocations(), state.stop.clone());
    let attach = log.attach(&filter, after);
    if attach.resume != ResumeVerdict::Ok {
        return instead(&state, &filter, attach.resume, one.as_ref()).await;
    }
    let counted = (!wait.is_zero()).then(|| (Subscriber::Poll.count(), state.auth.online(&caller)));
    let until = tokio::time::Instant::now() + wait;
    let mut next = history::place(attach.after, part);
    let slice = if whole { limit } else { history::first_slice(limit.items) };
    let mut asked = 2 * slice.bytes;
    let (page, room) = loop {
        // Room for the events and for the output made of them.
        let mut room = account.charge(asked.min(account.most()))?;
        let page = log.page_after(&filter, next, slice, &mut room).await?;
        if !history::stays(&mut room, asked, page.bytes) {
            asked = page.bytes;
            continue;
        }
        next = page.to;
        if !page.items.is_empty() || *stop.borrow() || tokio::time::Instant::now() >= until {
            break (page, room);
        }
        drop(room);
        tokio::select! {
            () = moved.changed() => {}
            _ = revoked.changed() => if !state.auth.is_enrolled(&caller) { return Err(Problem::unauthorized()) },
            () = stopping(&mut stop) => {}
            () = tokio::time::sleep_until(until) => {}
        }
    };
    drop(counted);
    if whole {
        let text = history::json(&log, &page.items, &PageEnd::new(&log, page.to))?;
        drop(page);
        return Ok(history::whole(text, room));
    }
    history::forth(state, caller, account, filter, (page, room), limit.items)
}

// === requests ===

/// A page of requests, newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct Requests<'a> {
    /// The requests; long texts in them are cut.
    requests: Vec<Cow<'a, Request>>,
    /// The `before` of the next page; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{1,20}$")]
    next: Option<String>,
}

pub(super) async fn requests(state: AppState, call: Call) -> Outcome {
    let query = Query::of(&call);
    let wanted = match query.get("state") {
        None | Some("all") => None,
        Some("open") => Some(RequestState::Open),
        Some("answered") => Some(RequestState::Answered),
        Some("expired") => Some(RequestState::Expired),
        Some("withdrawn") => Some(RequestState::Withdrawn),
        Some("orphaned") => Some(RequestState::Orphaned),
        Some(_) => {
            return Err(bad_query("`state` must be open, answered, expired, withdrawn, orphaned or all".into()));
        }
    };
    let caller = call.caller()?;
    let session = match query.get("session") {
        None => None,
        Some(text) => {
            let id: SessionId = text.parse().map_err(|_| no_such("session_not_found", "session"))?;
            Some(session_for::<Watch>(&state, caller, &id)?.0.session_id.clone())
        }
    };
    let number = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(bad_query(format!("`{name}` must be a whole number"))),
        },
    };
    let limit = number("limit")?.map_or(LISTED, |limit| usize::try_from(limit).unwrap_or(LISTED));
    let filter = filter_for(caller, None);
    let (requests, next) =
        state.directory.requests(&filter, wanted, session.as_ref(), number("before")?, limit).await?;
    let requests = requests.iter().map(Request::brief).collect();
    json(StatusCode::OK, &Requests { requests, next: next.map(|next| next.to_string()) })
}

pub(super) async fn request(state: AppState, call: Call) -> Outcome {
    let (id, _) = request_of::<Watch>(&state, &call).await?;
    let request = state.directory.request(&id).await?;
    json(StatusCode::OK, &request.ok_or_else(|| no_such("request_not_found", "request"))?)
}

pub(super) async fn answer(state: AppState, call: Call) -> Outcome {
    let (id, permit) = request_of::<Approve>(&state, &call).await?;
    let key = idempotency_key(&call)?;
    let answer: Answer = call.json()?;
    json(StatusCode::OK, &state.answer(&permit, &id, answer, key).await?)
}

// === search ===

/// Passages found.
#[derive(Serialize, ToSchema)]
pub(super) struct Hits {
    /// The best passages.
    hits: Vec<Hit>,
}

/// A passage found.
#[derive(Serialize, ToSchema)]
struct Hit {
    /// The session of the passage.
    session_id: SessionId,
    /// The event where the passage ends.
    cursor: Cursor,
    /// The role of the author.
    role: String,
    /// The passage around the match; matches stand between U+0002 and U+0003.
    snippet: String,
}

pub(super) async fn search(state: AppState, call: Call) -> Outcome {
    let query = Query::of(&call);
    let text = query.get("q").filter(|text| !text.trim().is_empty() && text.chars().count() <= QUERY_MAX);
    let text =
        text.ok_or_else(|| bad_query(format!("`q` must be 1 to {QUERY_MAX} characters: the words to search for")))?;
    let limit = query.number("limit", HITS)?.clamp(1, HITS_MAX);
    let caller = call.caller()?;
    // A limited device gets fewer of the best passages, and never text of other sessions.
    let hits = state.directory.search(text.into(), if caller.sees_all() { limit } else { HITS_MAX }).await?;
    let sees = |id: &SessionId| {
        state.directory.session(id).is_some_and(|session| caller.sees(&session.session_id, &session.runtime_id))
    };
    let hits = hits
        .into_iter()
        .filter(|hit| sees(&hit.session_id))
        .take(limit)
        .map(|hit| {
            let cursor = state.directory.log().cursor(hit.position);
            Hit { session_id: hit.session_id, cursor, role: hit.role, snippet: hit.snippet }
        })
        .collect();
    json(StatusCode::OK, &Hits { hits })
}

// === others ===

pub(super) async fn ws(state: AppState, call: Call) -> Outcome {
    let caller = call.caller()?.clone();
    Ok(ws::serve(state, caller, call.parts).await)
}

pub(super) async fn healthz(state: AppState, call: Call) -> Outcome {
    let text = match Query::of(&call).get("challenge") {
        None => "ok\n".to_owned(),
        Some(challenge) => {
            let words = "a challenge must be 32 to 128 ASCII letters and digits";
            let proof = state.proof.answer(challenge);
            let proof = proof.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "bad_challenge", words))?;
            format!("ok {proof}\n")
        }
    };
    Ok(body(StatusCode::OK, "text/plain; charset=utf-8", text))
}

/// The result of the readiness check.
#[derive(Serialize, ToSchema)]
pub(super) struct Ready {
    /// Always true: the log accepts writes.
    ready: bool,
}

/// Asks the log's writer for an empty commit, which shows that the writer runs and that the store accepts a transaction. The response says
/// nothing else, since it is for everybody.
pub(super) async fn readyz(state: AppState) -> Outcome {
    let log = state.directory.log();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_none"),
        runtime_id: RuntimeId::trusted("none"),
        dialect: "none".into(),
    });
    let nothing = CommitEntry { origin, events: Vec::new(), rows: None, kept: None, heard: None, sync: false };
    let not_ready = |detail: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail);
    if *state.stop.borrow() {
        return Err(SessionError::Stopping.into());
    }
    match tokio::time::timeout(READY_WAIT, log.commit(nothing)).await {
        Ok(Ok(_)) => json(StatusCode::OK, &Ready { ready: true }),
        Ok(Err(error)) => Err(not_ready(format!("the log cannot be written: {error}"))),
        Err(_) => Err(not_ready("the log cannot be written: its writer does not respond".into())),
    }
}

pub(super) async fn metrics_text(state: AppState, call: Call) -> Outcome {
    gateway::<Watch>(&call)?;
    let text = metrics().text() + &standing(&state).text() + &state.ledger.text();
    Ok(body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

/// Gauges of the current state.
fn standing(state: &AppState) -> Standing {
    let (standing, all) = (Standing::default(), metrics());
    for word in RuntimeState::ALL.map(RuntimeState::as_str) {
        standing.runtimes.with_label_values(&[word]).set(0);
    }
    for runtime in state.directory.runtimes() {
        standing.runtimes.with_label_values(&[runtime.state.as_str()]).inc();
        // A runtime without sessions is 0, not absent.
        let label = all.runtime_label(runtime.runtime_id.as_str());
        for word in SessionState::ALL.map(SessionState::as_str) {
            standing.sessions.with_label_values(&[label, word]).set(0);
        }
        for word in RunStatus::UNFINISHED.map(RunStatus::as_str) {
            standing.runs.with_label_values(&[label, word]).set(0);
        }
        for word in Risk::ALL.map(Risk::as_str) {
            standing.requests.with_label_values(&[label, word]).set(0);
        }
    }
    let mut runtime_of = BTreeMap::new();
    for session in state.directory.sessions() {
        let label = all.runtime_label(session.runtime_id.as_str());
        standing.sessions.with_label_values(&[label, session.state.as_str()]).inc();
        if session.run_id.is_some() || session.open_requests > 0 || !session.queue.is_empty() {
            runtime_of.insert(session.session_id.clone(), Arc::clone(&session));
        }
    }
    let label = |id: &SessionId| runtime_of.get(id).map_or(OTHERS, |one| all.runtime_label(one.runtime_id.as_str()));
    for run in state.directory.runs(&Filter::all()) {
        standing.runs.with_label_values(&[label(&run.session_id), run.status.as_str()]).inc();
    }
    for request in state.directory.open_requests(&Filter::all()) {
        standing.requests.with_label_values(&[label(&request.session_id), request.risk.as_str()]).inc();
    }
    standing
}
