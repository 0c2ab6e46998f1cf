//! The HTTP frontend: JSON in, JSON out; events in pages and by long poll. Each handler checks access, acts, and responds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

use super::described as docs;
use super::described::QUERY_MAX;
use super::guard::{Call, Route, WS_PATH};
use super::history::{self, HistoryRange};
use super::listing::listing;
use super::reply::{
    QueryParameters, RouteResult, bad_query, etag_matches, filter_for, idempotency_key, json, no_content, no_such,
    request_of, runtime_for, session_for, session_of, waits,
};
use super::routes::{
    ADMIN, APPROVE, DELETE, GET, JSON, NOTHING, OPTIONAL_JSON, PATCH, POST, PROMPT_BODY, PROMPTS, WATCH, route,
};
use super::stop::stopping;
use super::wire::SESSIONS_MAX;
use super::{Core, Problem, sse, ws};
use plexus_auth::{Admin, Approve, Caller, Prompt, Watch};
use plexus_ledger::Account;
use plexus_metrics::Subscriber;
use plexus_protocol::api::folders::{FileMatch, Files};
use plexus_protocol::api::history::{Page, PageEnd, ResumeVerdict};
use plexus_protocol::api::runtimes::RuntimeList;
use plexus_protocol::api::sessions::{
    AcceptedPrompt, CancelRun, EditSession, Hit, Hits, NewPrompt, RequestsPage, RunReference, SessionsPage,
};
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::{
    Answer, Cursor, Receipt, RequestState, RuntimeId, RuntimeInfo, SessionId, SessionInfo, text_block,
};
use plexus_risk::Effect;
use plexus_sessions::{FILE_QUERY_MAX, Filter, FoundFiles, LISTED, LogPosition, PageLimit, StartAfter, WINDOW};

/// Default number of events on a page.
const PAGE: usize = 500;
/// Maximum number of events on a page; a larger limit is reduced to it.
const PAGE_MAX: usize = 5000;
/// Maximum time to wait for further events of a page, in milliseconds.
const GATHER_MAX: u64 = 1000;
/// Default number of passages that a search returns.
const HITS: usize = 20;
/// Maximum number of passages that a search returns.
const HITS_MAX: usize = 100;
/// Default number of files that a query for files returns.
const FILES: usize = 20;

// === runtimes ===

/// Returns the routes of the native HTTP API for runtimes, sessions, events and requests.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/runtimes", WATCH, NOTHING, "Runtimes", runtimes)
            .response::<RuntimeList>(200),
        route(GET, "/v1/runtimes/{id}", WATCH, NOTHING, "One runtime", runtime)
            .response::<RuntimeInfo>(200),
        route(DELETE, "/v1/runtimes/{id}", ADMIN, NOTHING, "Stop a runtime", stop_runtime)
            .empty(204),
        route(GET, "/v1/sessions", WATCH, NOTHING, "Sessions", sessions)
            .response::<SessionsPage>(200).with(&[&docs::ARCHIVED, &docs::SESSIONS_LIMIT, &docs::SESSIONS_CURSOR]),
        route(GET, "/v1/sessions/{id}", WATCH, NOTHING, "One session", session)
            .response::<SessionInfo>(200),
        route(PATCH, "/v1/sessions/{id}", PROMPTS, JSON, "Rename or archive a session", edit_session)
            .request::<EditSession>().response::<SessionInfo>(200),
        route(DELETE, "/v1/sessions/{id}", ADMIN, NOTHING, "End a session and delete all its data", forget_session)
            .empty(204).effect(Effect::DeleteSession),
        route(POST, "/v1/sessions/{id}/prompt", PROMPTS, PROMPT_BODY, "Start a run, or queue it", prompt)
            .request::<NewPrompt>().response::<AcceptedPrompt>(202).with(&[&docs::PROMPT_KEY]),
        route(POST, "/v1/sessions/{id}/cancel", PROMPTS, OPTIONAL_JSON, "Cancel the current run, or the named one", cancel)
            .request::<CancelRun>().response::<RunReference>(202),
        route(GET, "/v1/sessions/{id}/events", WATCH, NOTHING, "Events of a session: as a page, by long polling, or as a stream", session_events)
            .response_or::<Page>(200, &["text/event-stream"]).with(docs::EVENTS),
        route(GET, "/v1/sessions/{id}/snapshot", WATCH, NOTHING, "The state of a session for a client that joins", snapshot)
            .response::<Snapshot>(200).with(&[&docs::SNAPSHOT_BYTES]),
        route(GET, "/v1/sessions/{id}/files", PROMPTS, NOTHING, "Files of a session's folder whose paths fit, best first", files)
            .response::<Files>(200).with(&[&docs::FILES_QUERY, &docs::FILES_LIMIT]),
        route(GET, "/v1/events", WATCH, NOTHING, "Events of all or some sessions: as a page, by long polling, or as a stream", events)
            .response_or::<Page>(200, &["text/event-stream"]).with(&[&docs::SESSIONS_NAMED]).with(docs::EVENTS),
        route(GET, "/v1/requests", WATCH, NOTHING, "Requests", requests)
            .response::<RequestsPage>(200).with(&[&docs::REQUEST_STATE, &docs::SESSION_NAMED, &docs::REQUESTS_LIMIT, &docs::REQUESTS_BEFORE]),
        route(GET, "/v1/requests/{id}", WATCH, NOTHING, "One request", request)
            .response::<plexus_protocol::Request>(200),
        route(POST, "/v1/requests/{id}/answer", APPROVE, JSON, "Answer a request; the first answer wins", answer)
            .request::<Answer>().response::<Receipt>(200).with(&[&docs::ANSWER_KEY]),
        route(GET, "/v1/search", WATCH, NOTHING, "Search for messages with all of the words", search)
            .response::<Hits>(200).with(&[&docs::SEARCH_TEXT, &docs::HITS_LIMIT]),
        route(GET, WS_PATH, WATCH, NOTHING, "The native WebSocket", ws)
            .empty(101).with(docs::HANDSHAKE),
    ]
}

pub(super) async fn runtimes(state: Core, call: Call) -> RouteResult {
    let grant = &call.caller()?.device().grant;
    // A device limited to some sessions sees their runtimes.
    let session_runtimes: Option<BTreeSet<RuntimeId>> = grant.sessions.as_ref().map(|some| {
        some.iter().filter_map(|id| state.directory.session(id)).map(|session| session.runtime_id.clone()).collect()
    });
    let sees = |id: &RuntimeId| {
        grant.runtimes.as_ref().is_none_or(|some| some.contains(id))
            && session_runtimes.as_ref().is_none_or(|some| some.contains(id))
    };
    let mut all: Vec<_> = state.directory.runtimes().into_iter().filter(|runtime| sees(&runtime.runtime_id)).collect();
    if session_runtimes.is_some() {
        all.iter_mut().for_each(|runtime| *runtime = Arc::new(runtime.redacted()));
    }
    json(StatusCode::OK, &RuntimeList { runtimes: all.into() })
}

pub(super) async fn runtime(state: Core, call: Call) -> RouteResult {
    let id = call.id(|| no_such("runtime_not_found", "runtime"))?;
    let (runtime, _) = runtime_for::<Watch>(&state, call.caller()?, &id)?;
    json(StatusCode::OK, &*runtime)
}

pub(super) async fn stop_runtime(state: Core, call: Call) -> RouteResult {
    let id = call.id(|| no_such("runtime_not_found", "runtime"))?;
    let (_, permit) = runtime_for::<Admin>(&state, call.caller()?, &id)?;
    state.directory.stop_runtime(&permit, &id).await?;
    no_content()
}

// === sessions ===

pub(super) async fn sessions(state: Core, call: Call) -> RouteResult {
    let caller = call.caller()?;
    let archived = match QueryParameters::from_call(&call).get("archived") {
        None | Some("false") => Some(false),
        Some("true") => Some(true),
        Some("all") => None,
        Some(_) => return Err(bad_query("`archived` must be true, false or all".into())),
    };
    let query = QueryParameters::from_call(&call);
    let limit = query.number("limit", SESSIONS_MAX)?;
    state.directory.renew_projects(None).await;
    json(StatusCode::OK, &listing(&state, caller, archived, limit, query.get("cursor"))?)
}

pub(super) async fn session(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    state.directory.renew_projects(Some(&session.session_id)).await;
    let (session, _) = session_of::<Watch>(&state, &call)?;
    json(StatusCode::OK, &*session)
}

/// Lists the files of a session's folder, for prompts that name them.
pub(super) async fn files(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let (query, limit) = files_requested(&call)?;
    let found = state.directory.files().in_session(&permit, &session.session_id, query, limit).await?;
    json(StatusCode::OK, &files_found(found))
}

/// Returns the query for files of a request, and their maximum number.
pub fn files_requested(call: &Call) -> Result<(String, usize), Problem> {
    let parameters = QueryParameters::from_call(call);
    let limit = parameters.number("limit", FILES)?;
    let query = parameters.get("query").unwrap_or_default();
    if query.chars().count() > FILE_QUERY_MAX {
        return Err(bad_query(format!("`query` may have at most {FILE_QUERY_MAX} characters")));
    }
    Ok((query.to_owned(), limit))
}

/// Returns found files in the form that clients get.
pub fn files_found(found: FoundFiles) -> Files {
    let files = found.paths.into_iter().map(|path| FileMatch { path }).collect();
    Files { files, truncated: found.truncated }
}

pub(super) async fn edit_session(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let EditSession { title, archived } = call.json()?;
    json(StatusCode::OK, &*state.directory.edit_session(&permit, &session.session_id, title, archived).await?)
}

pub(super) async fn forget_session(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Admin>(&state, &call)?;
    state.directory.delete_session(&permit, &session.session_id).await?;
    no_content()
}

pub(super) async fn prompt(state: Core, call: Call) -> RouteResult {
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

pub(super) async fn cancel(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let CancelRun { run_id, reason } = call.json()?;
    let run = state.directory.cancel_because(&permit, &session.session_id, run_id, reason).await?;
    json(StatusCode::ACCEPTED, &RunReference { run_id: run })
}

pub(super) async fn snapshot(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let max = QueryParameters::from_call(&call).number("max_bytes", WINDOW)?;
    json(StatusCode::OK, &state.directory.snapshots().within(&session.session_id, max).await?)
}

// === events ===

pub(super) async fn session_events(state: Core, call: Call) -> RouteResult {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let only = BTreeSet::from([session.session_id.clone()]);
    follow(state, call, Some(only)).await
}

pub(super) async fn events(state: Core, call: Call) -> RouteResult {
    let mut only = BTreeSet::new();
    for text in QueryParameters::from_call(&call).all("session") {
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

/// Returns whether the client requests server-sent events: the media type anywhere in `Accept` is enough.
fn accepts_stream(call: &Call) -> bool {
    let lines = call.parts.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|one| one.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")))
}

async fn follow(state: Core, call: Call, only: Option<BTreeSet<SessionId>>) -> RouteResult {
    let caller = call.caller()?.clone();
    let query = QueryParameters::from_call(&call);
    let one = only.as_ref().filter(|only| only.len() == 1).and_then(|only| only.first()).cloned();
    let filter = filter_for(&caller, only);
    if accepts_stream(&call) {
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
    let range = HistoryRange::read(query.get("after"), query.get("before"))?;
    let merge = merges(&query)?;
    let bytes = query.get("max_bytes").map(|_| query.number("max_bytes", 0)).transpose()?;
    let output = query.get("max_output").map(|_| query.number("max_output", 0)).transpose()?;
    let limit = history::limit(query.number("limit", PAGE)?.clamp(1, PAGE_MAX), bytes, merge, output);
    match range {
        HistoryRange::Before(before) => {
            let one = one.ok_or_else(|| bad_query("`before` works within one session: name the session".into()))?;
            page_before(&state, &call.account, &one, before, limit).await
        }
        HistoryRange::After(after, part) => {
            let gather = Duration::from_millis(query.number("gather", 0)?.min(GATHER_MAX));
            let form = PageForm { limit, whole: merge || bytes.is_some(), wait: waits(&query)?, gather, part, one };
            page(state, caller, call.account, filter, &after, form, &call.parts.headers).await
        }
    }
}

/// Returns whether the client requests merged events.
fn merges(query: &QueryParameters) -> Result<bool, Problem> {
    match query.get("merge") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(bad_query("`merge` must be true or false".into())),
    }
}

/// Returns a page read backwards. For a cursor of another epoch it returns a snapshot instead.
async fn page_before(
    state: &Core,
    account: &Account,
    session: &SessionId,
    before: Option<(Cursor, u32)>,
    limit: PageLimit,
) -> RouteResult {
    let log = state.directory.log();
    let (resume, to) = history::ends(log, before);
    if resume != ResumeVerdict::Ok {
        return snapshot_page(state, &Filter::session(session.clone()), resume, Some(session)).await;
    }
    // Charges the events and the output made of them. An event longer than a page needs a larger charge and is read again.
    let mut charged = 2 * limit.bytes;
    let (page, charge) = loop {
        let mut charge = account.charge(charged.min(account.max()))?;
        let page = log.page_before(session, to, limit, &mut charge).await?;
        if history::fits_charge(&mut charge, charged, page.bytes) {
            break (page, charge);
        }
        charged = page.bytes;
    };
    let text = history::json(log, &page.items, &history::back_end(log, &page))?;
    drop(page);
    Ok(history::whole(text, charge))
}

/// Returns the snapshot in place of events that cannot be replayed.
async fn snapshot_page(state: &Core, filter: &Filter, resume: ResumeVerdict, one: Option<&SessionId>) -> RouteResult {
    let log = state.directory.log();
    let end = match one {
        Some(session) => {
            let snapshot = state.directory.snapshots().get(session).await?;
            let at = snapshot.cursor.position;
            PageEnd { snapshot: Some(snapshot), ..history::page_end(log, LogPosition::after(at)) }
        }
        None => {
            let many = state.directory.snapshots().latest(filter).await?;
            let omitted = Some(many.omitted).filter(|omitted| *omitted > 0);
            let end = history::page_end(log, LogPosition::after(many.at));
            PageEnd { snapshots: Some(many.snapshots), omitted, ..end }
        }
    };
    let end = PageEnd { resume, ..end };
    Ok(history::response(history::json(log, &[], &end)?.into()))
}

/// The form of a page after a cursor.
struct PageForm {
    limit: PageLimit,
    /// `true` if the page is completed before it is sent.
    whole: bool,
    /// Time to wait for the first event.
    wait: Duration,
    /// Time to wait for further events after the first, at the end of the log.
    gather: Duration,
    /// The part of a long text to begin with.
    part: u32,
    /// The session, if the page is of one.
    one: Option<SessionId>,
}

async fn page(
    state: Core,
    caller: Caller,
    account: Account,
    filter: Filter,
    after: &StartAfter,
    PageForm { limit, whole, wait, mut gather, part, one }: PageForm,
    request: &HeaderMap,
) -> RouteResult {
    let log = state.directory.log().clone();
    let (moved, mut revoked, mut stop) = (log.watch_for(&filter), state.auth.revocations(), state.stop.clone());
    let attach = log.attach(&filter, after);
    if attach.resume != ResumeVerdict::Ok {
        return snapshot_page(&state, &filter, attach.resume, one.as_ref()).await;
    }
    let counted = (!wait.is_zero()).then(|| (Subscriber::Poll.count(), state.auth.online(&caller)));
    let until = tokio::time::Instant::now() + wait;
    let mut next = history::position_after(attach.after, part);
    let slice = if whole { limit } else { history::first_slice(limit.items) };
    let mut charged = 2 * slice.bytes;
    let (page, charge) = loop {
        // Charges the events and the output made of them.
        let mut charge = account.charge(charged.min(account.max()))?;
        let page = log.page_after(&filter, next, slice, &mut charge).await?;
        if !history::fits_charge(&mut charge, charged, page.bytes) {
            charged = page.bytes;
            continue;
        }
        if !page.items.is_empty() && !page.more && !gather.is_zero() {
            // The same events are read again, with those that follow soon: a client reads fewer pages.
            drop((page, charge));
            tokio::select! {
                () = tokio::time::sleep(std::mem::take(&mut gather)) => {}
                () = stopping(&mut stop) => gather = Duration::ZERO,
                _ = revoked.changed() => if !state.auth.is_enrolled(&caller) { return Err(Problem::unauthorized()) },
            }
            continue;
        }
        next = page.to;
        if !page.items.is_empty() || *stop.borrow() || tokio::time::Instant::now() >= until {
            break (page, charge);
        }
        drop(charge);
        tokio::select! {
            () = moved.changed() => {}
            _ = revoked.changed() => if !state.auth.is_enrolled(&caller) { return Err(Problem::unauthorized()) },
            () = stopping(&mut stop) => {}
            () = tokio::time::sleep_until(until) => {}
        }
    };
    drop(counted);
    // A plain page that ends with its first slice, or a whole one; of further slices it is unknown how many events there are.
    let complete = one.is_some() && page.more && (whole || page.items.len() >= limit.items);
    let etag = complete.then(|| history::etag(&log, page.to));
    if let Some(etag) = etag.as_deref().filter(|etag| etag_matches(request, etag)) {
        return Ok(history::complete(history::not_modified(), etag, request));
    }
    let response = if whole {
        let text = history::json(&log, &page.items, &history::page_end(&log, page.to))?;
        drop(page);
        history::whole(text, charge)
    } else {
        history::forth(state, caller, account, filter, (page, charge), limit.items)?
    };
    Ok(match etag {
        Some(etag) => history::complete(response, &etag, request),
        None => response,
    })
}

// === requests ===

pub(super) async fn requests(state: Core, call: Call) -> RouteResult {
    let query = QueryParameters::from_call(&call);
    let requested = match query.get("state") {
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
        state.directory.requests().list(&filter, requested, session.as_ref(), number("before")?, limit).await?;
    json(
        StatusCode::OK,
        &RequestsPage {
            requests: requests.into_iter().map(Arc::new).collect(),
            next: next.map(|next| next.to_string()),
        },
    )
}

pub(super) async fn request(state: Core, call: Call) -> RouteResult {
    let (id, _) = request_of::<Watch>(&state, &call).await?;
    let request = state.directory.requests().get(&id).await?;
    json(StatusCode::OK, &request.ok_or_else(|| no_such("request_not_found", "request"))?)
}

pub(super) async fn answer(state: Core, call: Call) -> RouteResult {
    let (id, permit) = request_of::<Approve>(&state, &call).await?;
    let key = idempotency_key(&call)?;
    let answer: Answer = call.json()?;
    json(StatusCode::OK, &state.answer(&permit, &id, answer, key).await?)
}

// === search ===

pub(super) async fn search(state: Core, call: Call) -> RouteResult {
    let query = QueryParameters::from_call(&call);
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

pub(super) async fn ws(state: Core, call: Call) -> RouteResult {
    let caller = call.caller()?.clone();
    Ok(ws::serve(state, caller, call.parts).await)
}
