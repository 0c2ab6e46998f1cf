//! HTTP/2, behind TLS only. A request reaches the same service as one of HTTP/1.1, with its head in the form of HTTP/1.1, so that there
//! is one way through the guard; hyper writes the response.

use crate::stop::stopping;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use super::address_shares::{AddressSlot, Addresses, Source};
use super::tls_limits::TlsLimits;
use super::unauthenticated::UnauthenticatedConnection;
use super::{ByteStream, ConnHandle, HEADERS, ListenApp, Slot};
use crate::Problem;

/// Maximum number of concurrent streams of one connection; a client delays further requests until one ends.
const STREAMS: u32 = 64;
/// Maximum size of the head of a request, in bytes, as RFC 9113 counts them; a longer one gets the response 431.
const HEAD: u32 = 16 << 10;
/// Maximum number of unread bytes of a stream: also the part of a prompt that is in transit at once.
const STREAM_WINDOW: u32 = 64 << 10;
/// Maximum number of unread bytes of all streams of a connection.
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Number of bytes of a response that hyper buffers before the stream's client reads some; a stream of events then waits at its cursor.
const SEND: usize = 16 << 10;
/// Maximum number of streams that a client opened and reset before they were handled; with more the connection is closed (rapid reset).
const RESETS: usize = 20;
/// Maximum number of streams that the gateway resets because of the client's errors; with more the connection is closed.
const MISTAKES: usize = 128;
/// Time between pings, and maximum time for the response: a dead client is detected after both.
const PING: Duration = Duration::from_secs(20);
/// Time between two checks of an idle connection.
const IDLE_CHECK_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of concurrent requests over HTTP/2 in all connections; further ones wait.
const ALL_STREAMS: usize = 4096;

/// The state that all HTTP/2 connections share.
pub(super) struct Http2Shared {
    pub(super) limits: TlsLimits,
    streams: Arc<Semaphore>,
    pub(super) stop: watch::Receiver<bool>,
    streams_by_address: Arc<Addresses>,
}

impl Http2Shared {
    pub(super) fn new(limits: TlsLimits, stop: watch::Receiver<bool>) -> Self {
        Self { limits, streams: Arc::new(Semaphore::new(ALL_STREAMS)), stop, streams_by_address: Arc::default() }
    }
}

/// Serves a connection until it ends, is idle for too long, or the gateway stops.
pub(super) async fn serve<I, A>(io: I, from: Source, app: A, shared: &Arc<Http2Shared>)
where
    I: ByteStream + 'static,
    A: ListenApp,
{
    let mut stop = shared.stop.clone();
    let busy = Arc::new(AtomicUsize::new(0));
    let requests = Arc::new(AtomicUsize::new(0));
    let service = {
        let (shared, busy, requests) = (Arc::clone(shared), Arc::clone(&busy), Arc::clone(&requests));
        hyper::service::service_fn(move |request| {
            requests.fetch_add(1, Ordering::Relaxed);
            exchange(request, from, app.clone(), Arc::clone(&shared), Busy::new(&busy))
        })
    };
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(MISTAKES)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    let (mut idle_since, mut seen) = (tokio::time::Instant::now(), 0);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = stopping(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                // The code that accepted the connection closes it if it takes too long.
                break connection.await;
            }
            () = tokio::time::sleep(IDLE_CHECK_EVERY.min(shared.limits.idle)) => {
                let now = requests.load(Ordering::Relaxed);
                if busy.load(Ordering::Relaxed) > 0 || now != seen {
                    (idle_since, seen) = (tokio::time::Instant::now(), now);
                } else if idle_since.elapsed() >= shared.limits.idle {
                    connection.as_mut().graceful_shutdown();
                    let _ = tokio::time::timeout(shared.limits.handshake, connection).await;
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of HTTP/2 ended early");
    }
}

/// Counts an open stream until it is dropped.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The error of a stream that is reset because a new connection needed its place among the unauthenticated ones.
#[derive(Debug, thiserror::Error)]
#[error("an unauthenticated request was replaced by another")]
struct Replaced;

/// Handles one request and its response.
async fn exchange<A: ListenApp>(
    request: Request<Incoming>,
    from: Source,
    app: A,
    shared: Arc<Http2Shared>,
    busy: Busy,
) -> Result<Response<Body>, Replaced> {
    if request.method() == Method::CONNECT {
        let detail = "CONNECT is not supported; for WebSockets use HTTP/1.1: connect without `h2` in ALPN";
        return Ok(Problem::new(StatusCode::NOT_IMPLEMENTED, "no_tunnel", detail).into_response());
    }
    let Some(address_slot) = from.enter(&shared.streams_by_address, shared.limits.streams_per_address) else {
        let detail = "too many requests of this address are in progress: wait until one ends";
        return Ok(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).retry_after(1).into_response());
    };
    let Ok(permit) = Arc::clone(&shared.streams).acquire_owned().await else {
        return Ok(Problem::internal().into_response());
    };
    let slot = Slot::new(permit);
    let stranger = Arc::new(shared.limits.http.strangers.admit(from.peer.ip()).await);
    let mut request = plain(request);
    if request.headers().len() > HEADERS {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(refused);
    }
    request.extensions_mut().insert(ConnHandle { peer: from.peer, stranger: Arc::clone(&stranger), raw: None });
    let head = request.method() == Method::HEAD;
    let mut response = tokio::select! {
        answer = tower::ServiceExt::oneshot(app, request) => match answer {
            Ok(response) => response,
            Err(never) => match never {},
        },
        () = stranger.cut() => return Err(Replaced),
    };
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")] {
        response.headers_mut().remove(name);
    }
    *response.version_mut() = Version::HTTP_2;
    if head {
        // Otherwise hyper would write it.
        *response.body_mut() = Body::empty();
    }
    Ok(response.map(|body| {
        Body::new(Passing { body, _stranger: stranger, _slot: slot, _busy: busy, _address_slot: address_slot })
    }))
}

/// Converts the request to the form of HTTP/1.1.
fn plain(request: Request<Incoming>) -> Request<Incoming> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
    if let Some(authority) = authority.filter(|authority| parts.headers.get(HOST) != Some(authority)) {
        // Beside a different Host it is a second one, and the guard refuses two.
        parts.headers.append(HOST, authority);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    parts.headers.remove(TE);
    if !body.is_end_stream() && !parts.headers.contains_key(CONTENT_LENGTH) {
        // A body without a declared length.
        parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    // RFC 9113 8.2.3: a browser may send each cookie in a header of its own.
    let cookies: Vec<&[u8]> = parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        parts.headers.insert(COOKIE, joined);
    }
    parts.version = Version::HTTP_11;
    Request::from_parts(parts, body)
}

/// A response's body, with the values that must live as long as the body.
struct Passing {
    body: Body,
    _stranger: Arc<UnauthenticatedConnection>,
    _slot: Slot,
    _busy: Busy,
    _address_slot: AddressSlot,
}

impl hyper::body::Body for Passing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
