//! Server-sent events. hyper writes the head. Over a plain connection this frontend then writes finished chunks to the socket itself,
//! while hyper waits on a body that never yields and so still detects when the client disconnects; over TLS the events are the response's
//! body.

use plexus_protocol::api::history::ResumeVerdict;
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, Version};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::client_link::{ClientLink, EventFeed, Leave, NewSubscription, StreamStart};
use super::fanout::Flow;
use super::frames::{Projection, sse_lines, sse_notify};
use super::listen::ConnHandle;
use super::rpc::{hello, snapshots};
use super::stop::stopping;
use super::{Core, Problem};
use plexus_auth::Caller;
use plexus_metrics::metrics;
use plexus_sessions::{Filter, StartAfter};

/// Time between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Minimum time until clients should reconnect, in milliseconds; up to [`RETRY_SPREAD`] is added, so that they do not all reconnect at
/// once.
const RETRY: u16 = 1000;
/// Maximum of the random addition to [`RETRY`], in milliseconds.
const RETRY_SPREAD: u16 = 2000;
/// Maximum time for the rest of an event once the gateway stops; then the connection is closed within it.
const CLOSING: Duration = Duration::from_secs(2);

/// Serves a stream. `parts` holds the [`ConnHandle`].
pub(super) async fn serve(state: Core, caller: Caller, parts: Parts, filter: Filter, after: StartAfter) -> Response {
    let handle = match handle(&parts) {
        Ok(handle) => handle,
        Err(problem) => return problem.into_response(),
    };
    let projection = match projection(parts.uri.query()) {
        Ok(projection) => projection,
        Err(problem) => return problem.into_response(),
    };
    let framing = StreamStart::framing(handle);
    let feed = EventFeed::open(&state.fans, handle.raw.is_some(), framing, filter.clone(), projection);
    let log = state.directory.log();
    let attach = log.attach(&filter, &after);
    let mut text = Vec::new();
    sse_lines(&mut text, &format!("retry: {}", retry()));
    sse_notify(&mut text, None, "hello", &hello(&state, &caller, &filter, &attach, None));
    let mut position = attach.after;
    if attach.resume != ResumeVerdict::Ok {
        match state.directory.snapshots().latest(&filter).await {
            Ok(many) => {
                position = many.at;
                let cursor = log.cursor(many.at);
                let snapshots = snapshots(None, cursor.clone(), many);
                sse_notify(&mut text, Some(&cursor), "snapshot", &snapshots);
            }
            Err(refusal) => return Problem::from(refusal).into_response(),
        }
    }
    let one = filter.sessions.as_ref().filter(|some| some.len() == 1).and_then(|some| some.first());
    let subscription = NewSubscription {
        name: one.map_or("*", |session| session.as_str()).into(),
        feed,
        answers: false,
        after: position,
        live_at: attach.head.max(position),
        // Without replayed events, the client has not received a position yet.
        live_id: after == StartAfter::Now,
    };
    begin(state, caller, handle, text, Some(subscription), Box::new(NoEvents))
}

/// Events that a stream sends in addition to those of the log.
pub trait ExtraEvents: Send {
    /// Returns the next events, whole ones ([`sse_event`](super::frames::sse_event)); waits until there are some. Polled only while
    /// nothing waits to be written, so that a client that does not read costs a cursor. `None` ends the stream. Must be cancellation
    /// safe.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>>;
}

/// A source without events.
struct NoEvents;

impl ExtraEvents for NoEvents {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }
}

/// Serves a stream of these events; `first` is the initial text. `parts` holds the [`ConnHandle`].
pub fn stream(state: Core, caller: Caller, parts: &Parts, first: Vec<u8>, extra: Box<dyn ExtraEvents>) -> Response {
    match handle(parts) {
        Ok(handle) => begin(state, caller, handle, first, None, extra),
        Err(problem) => problem.into_response(),
    }
}

/// Returns the connection of a request for a stream.
fn handle(parts: &Parts) -> Result<&ConnHandle, Problem> {
    let Some(handle) = parts.extensions.get::<ConnHandle>() else {
        tracing::error!("an event stream was requested over a connection of another listener");
        return Err(Problem::internal());
    };
    if parts.version != Version::HTTP_11 {
        let detail = "an event stream needs HTTP/1.1";
        return Err(Problem::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "http_version", detail).close());
    }
    Ok(handle)
}

fn begin(
    state: Core,
    caller: Caller,
    handle: &ConnHandle,
    first: Vec<u8>,
    subscription: Option<NewSubscription>,
    mut extra: Box<dyn ExtraEvents>,
) -> Response {
    let account = state.account(&caller);
    let framing = StreamStart::framing(handle);
    let (body, start) = StreamStart::new(handle, &state.fans, &account);
    let serve = async move {
        let Some(link) = start.begin(&state.fans, account).await else { return };
        let leave = Leave(link.clone());
        match subscription {
            Some(subscription) => {
                let mut hello = Vec::with_capacity(first.len() + 16);
                framing.sse(&mut hello, |out| out.extend_from_slice(&first));
                link.subscribe(subscription, &hello);
            }
            None => link.push_sse(|out| out.extend_from_slice(&first)),
        }
        drop(first);
        let clean = run(&state, &caller, &link, &mut *extra).await;
        drop(leave);
        if !clean || !finish(&link).await {
            // In the middle of an event, the response can only be aborted.
            link.cut();
        }
        // If the response is complete, hyper writes its end now.
        drop(link);
    };
    tokio::spawn(serve.in_current_span());
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Returns the projection that a query requests.
pub(super) fn projection(query: Option<&str>) -> Result<Projection, Problem> {
    let given = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "projection");
    match given.as_ref().map(|(_, value)| value.as_ref()) {
        None | Some("canonical") => Ok(Projection::Canonical),
        Some("native") => Ok(Projection::Native),
        Some(_) => Err(Problem::invalid("`projection` must be `canonical` or `native`")),
    }
}

fn retry() -> u16 {
    let mut random = [0; 2];
    // Without randomness all clients reconnect after the same time: worse, but not wrong.
    let _ = getrandom::fill(&mut random);
    RETRY + u16::from_ne_bytes(random) % (RETRY_SPREAD + 1)
}

/// Serves until the stream ends. Returns whether it may end properly: if not, the client has disconnected or the connection has failed.
async fn run(state: &Core, caller: &Caller, link: &ClientLink, extra: &mut dyn ExtraEvents) -> bool {
    let mut revocations = state.auth.revocations();
    revocations.mark_changed();
    let mut stop = state.stop.clone();
    let _online = state.auth.online(caller);
    let mut beat_at = Instant::now() + HEARTBEAT;
    let mut disconnected = std::pin::pin!(link.disconnected());
    loop {
        let flow = link.flush().await;
        // If the frames exceed the account, the client reconnects with its cursor.
        if flow == Flow::Dead || link.is_over_limit() {
            return false;
        }
        let wake_at = if flow == Flow::Blocked { link.stalls_at() } else { beat_at };
        tokio::select! {
            () = &mut disconnected => return false,
            () = link.wait(flow) => {}
            next = extra.next(), if flow == Flow::Done => match next {
                Some(text) => link.push_sse(|out| out.extend_from_slice(&text)),
                None => return true,
            },
            changed = revocations.changed() => {
                if changed.is_err() || !state.auth.is_enrolled(caller) {
                    return true;
                }
            }
            () = stopping(&mut stop) => return true,
            () = tokio::time::sleep_until(wake_at) => {
                if flow == Flow::Blocked {
                    if link.stalls_at() <= Instant::now() {
                        metrics().stalled.inc();
                        return false;
                    }
                } else {
                    beat_at = Instant::now() + HEARTBEAT;
                    let log = state.directory.log();
                    let head = log.cursor(log.head());
                    link.push_sse(|out| sse_lines(out, &format!(": head {head}")));
                }
            }
        }
    }
}

/// Writes the rest of a partly written frame. Returns whether it was written.
async fn finish(link: &ClientLink) -> bool {
    let out = async {
        loop {
            let flow = link.flush().await;
            match flow {
                Flow::Done => return true,
                Flow::Dead => return false,
                Flow::Blocked | Flow::Cold => {}
            }
            tokio::select! {
                () = link.disconnected() => return false,
                () = link.wait(flow) => {}
            }
        }
    };
    tokio::time::timeout(CLOSING, out).await.unwrap_or(false)
}
