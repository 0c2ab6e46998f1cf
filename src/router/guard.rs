//! The checks between a parsed request and its handler, in this order: Host, Origin and Sec-Fetch-Site, the bearer or the
//! cookie, the route, the method, the content type, the size, the time a body takes, the depth of its JSON. Last,
//! [`Call::json`] checks the shape of the body.
//!
//! `outer` does the first three on every request, `admit` the others on the route found. An unknown path is refused like a
//! route that needs a bearer, so that unauthenticated clients do not learn which paths exist.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, SEC_WEBSOCKET_PROTOCOL, TRANSFER_ENCODING, UPGRADE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tower_http::compression::Predicate;

use super::cookies::{self, CookieCheck};
use super::described::Docs;
use super::error::Problem;
use super::headers::only;
use super::listen::{ConnHandle, UNAUTHENTICATED_BODY};
use super::peer;
use super::public_address::PublicAddresses;
use plexus_auth::{Auth, Caller, Denied};
use plexus_ledger::{Account, CLIENT_FOOTPRINT, Charge, Charged, Ledger, LedgerFull};
use plexus_metrics::metrics;
use plexus_metrics::spans;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::object::Objects;
use plexus_protocol::{RuntimeId, Scope};
use plexus_risk::Effect;
use plexus_sessions::check_effect;
use tracing::Instrument as _;

/// The path of the native WebSocket.
pub const WS_PATH: &str = "/v1/ws";
/// The subprotocol of the native WebSocket.
pub const WS_PROTOCOL: &str = "plexus.v1";
/// Prefix of the subprotocol that carries the bearer, since a browser's `WebSocket` cannot set headers. Valid only in a
/// WebSocket handshake.
pub const WS_BEARER: &str = "plexus.bearer.";
/// Maximum nesting depth of JSON: no message of the protocol needs more, and parsers and clients may not support it.
pub const DEPTH: usize = 64;
/// Maximum number of bytes read of the rest of a body that is refused for its length.
const DRAIN: usize = 64 << 20;
/// Maximum time for which that rest is read.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Maximum time for the body of an unauthenticated request.
const STRANGER_TIME: Duration = Duration::from_secs(5);
/// Minimum growth of a body's buffer, in bytes.
const BODY_STEP: usize = 16 << 10;
/// Size from which on responses are charged, in bytes; smaller ones fit hyper's buffer of a connection, which is bounded.
const SMALL: usize = 16 << 10;
/// Size beyond which responses are compressed for clients that accept it, in bytes.
const COMPRESSED: u64 = 1 << 10;
/// Number of bytes of a body after which the time [`GateLimits::body`] is granted again.
pub(super) const BODY_STRIDE: usize = 1 << 20;

/// The Content-Security-Policy of the page: it may load, frame and connect only to this gateway, and run only scripts of its own files.
/// The Trusted Types policies that may make markup or script addresses from text are named: Lit's templates, DOMPurify's output, the
/// page's service worker and its worker.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src data: blob:; connect-src 'self'; frame-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types lit-html dompurify plexus plexus-worker";

/// The access policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// All clients: the response contains nothing private.
    Public,
    /// Devices with this scope; the handler then checks a permit for its target.
    Needs(Scope),
    /// Devices with the scope `watch`; and, if [`Gate::same_user`] is set, local processes of this user in a WebSocket handshake
    /// without a token that is not from a browser.
    WatchOrSameUser,
}

/// The body that a route accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule {
    /// No body; a body is refused.
    Nothing,
    /// JSON of at most this many bytes; a request without a body is refused, since an empty one would be read as `{}`.
    Json(usize),
    /// No body, which is read as `{}`, or JSON of at most this many bytes.
    Optional(usize),
}

/// A route, made by [`route`](super::routes::route). `S` is the state that its handler gets.
pub struct Route<S: 'static> {
    /// The method.
    pub method: Method,
    /// The path, parameters as `{name}`.
    pub path: Cow<'static, str>,
    /// The access policy.
    pub policy: Policy,
    /// The rule for the body.
    pub body: BodyRule,
    /// `true` if responses carry a token, a code, or an equivalent. They are never compressed: an attacker who controls text beside
    /// a secret could learn the secret from the length (BREACH).
    pub secret: bool,
    /// The summary for readers of the documentation.
    pub summary: &'static str,
    /// The minimum effect of the route, if it is that of an approved command; a device's risk limit applies to it.
    pub effect: Option<Effect>,
    /// The documentation for `openapi.json`.
    pub docs: Docs,
    /// The handler.
    pub run: Handler<S>,
}

/// A pending response.
pub type Responding = BoxFuture<'static, Response>;

/// A handler: it gets the state of its feature, and the checked request.
pub type Handler<S> = Arc<dyn Fn(&S, Call) -> Responding + Send + Sync>;

/// A request that passed every check of its route.
#[derive(Debug)]
pub struct Call {
    /// The caller; `None` only on public routes.
    pub caller: Option<Caller>,
    /// The CSRF value for changes, if the caller is a browser with a cookie.
    pub csrf: Option<String>,
    /// The path's parameters, decoded.
    pub params: Vec<(String, String)>,
    /// The request's head.
    pub parts: Parts,
    /// The whole body.
    pub body: Bytes,
    /// The account of this request.
    pub account: Account,
    /// The charge for the body. A handler that stores data of the body stores this with it.
    pub charge: Charge,
    /// The turn of long work.
    pub long_work: LongWork,
}

impl Call {
    /// Returns the caller.
    ///
    /// # Errors
    /// 401 on a public route: a handler that needs a caller there is a bug, and fails closed.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(Problem::unauthorized)
    }

    /// Returns a parameter of the path as an identifier. Invalid text gives the problem `missing`.
    ///
    /// # Errors
    /// `missing`.
    pub fn id<T: std::str::FromStr>(&self, missing: impl FnOnce() -> Problem) -> Result<T, Problem> {
        self.params.first().and_then(|(_, text)| text.parse().ok()).ok_or_else(missing)
    }

    /// Returns the body as `T`; an absent optional body as `{}`. An array is never read as an object, at any depth.
    ///
    /// # Errors
    /// 400 `bad_json` if the body is not JSON; 422 `bad_body` with the place if it does not match `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        self.long_work.run(body.len(), || parsed(body))
    }
}

/// Parses a body as JSON.
fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut parser = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(Objects(&mut parser)).map_err(|error| {
        let at = error.path().to_string();
        let cause = error.into_inner();
        match cause.classify() {
            serde_json::error::Category::Data if at == "." => bad_body(&cause),
            serde_json::error::Category::Data => bad_body(format_args!("at `{at}`: {cause}"))
                .with(ProblemMembers { path: Some(at), ..ProblemMembers::default() }),
            _ => bad_json(&cause),
        }
    })?;
    parser.end().map_err(|error| bad_json(&error))?;
    Ok(value)
}

fn bad_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_json", format!("the body is not JSON: {error}"))
}

fn bad_body(error: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_body", format!("the body does not fit: {error}"))
}

/// The host names and origins of the gateway. Those of loopback stay; the others can change while the gateway runs.
#[derive(Debug, Default)]
pub struct Hosts {
    bound: Vec<SocketAddr>,
    names: ArcSwap<HostNames>,
}

/// The host names and origins at a time.
#[derive(Clone, Debug, Default)]
struct HostNames {
    hosts: HashSet<String>,
    origins: HashSet<String>,
}

impl Hosts {
    /// Makes the set of the loopback names with each bound port, each bound address itself, and `public` names (`https://plexus.example`,
    /// or `host:port` for plain HTTP). Any other name is refused, against DNS rebinding.
    pub fn new(bound: &[SocketAddr], public: &[String]) -> Self {
        let hosts = Self { bound: bound.to_vec(), names: ArcSwap::default() };
        hosts.set_public(public);
        hosts
    }

    /// Replaces the `public` names.
    pub fn set_public(&self, public: &[String]) {
        self.names.store(Arc::new(HostNames::new(&self.bound, public)));
    }

    fn has(&self, host: &str) -> bool {
        self.names.load().hosts.contains(host)
    }

    fn has_origin(&self, origin: &str) -> bool {
        self.names.load().origins.contains(origin)
    }
}

impl HostNames {
    fn new(bound: &[SocketAddr], public: &[String]) -> Self {
        let mut all = Self::default();
        for address in bound {
            let port = address.port();
            let own = (!address.ip().is_unspecified()).then(|| SocketAddr::new(address.ip(), port).to_string());
            let own = own.map(|text| text.rsplit_once(':').map_or(text.clone(), |(host, _)| host.to_owned()));
            for name in ["127.0.0.1", "localhost", "[::1]"].into_iter().chain(own.as_deref()) {
                all.add("http", &format!("{name}:{port}"));
            }
        }
        for name in public {
            let name = name.trim_end_matches('/').to_ascii_lowercase();
            match name.split_once("://") {
                Some((scheme, authority)) => all.add(scheme, authority),
                None => all.add("http", &name),
            }
        }
        all
    }

    /// Adds a host and its origin. Browsers omit the default port in the Host header and in the origin.
    fn add(&mut self, scheme: &str, authority: &str) {
        let default = if scheme == "https" { ":443" } else { ":80" };
        let bare = authority.strip_suffix(default).unwrap_or(authority);
        self.origins.insert(format!("{scheme}://{bare}"));
        self.hosts.insert(bare.into());
        self.hosts.insert(authority.into());
        if !bare.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with(':') {
            self.hosts.insert(format!("{bare}{default}"));
        }
    }
}

/// The state of the guard.
#[derive(Clone)]
pub struct Gate {
    /// The devices.
    pub auth: Auth,
    /// The gateway's host names and origins.
    pub hosts: Arc<Hosts>,
    /// The trusted proxies, among others.
    pub public_addresses: Arc<PublicAddresses>,
    /// The runtime that processes of this user may watch without a token, on routes with [`Policy::WatchOrSameUser`]. `None`: a
    /// token is always needed.
    pub same_user: Option<RuntimeId>,
    /// The limits.
    pub limits: GateLimits,
    /// The accounts for bodies and responses.
    pub ledger: Ledger,
    /// The turn of long work.
    pub long_work: LongWork,
}

/// The guard's limits. Tests use shorter times than the defaults.
#[derive(Clone, Copy, Debug)]
pub struct GateLimits {
    /// Maximum time for a body; granted again for every further MiB.
    pub body: Duration,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self { body: Duration::from_secs(15) }
    }
}

/// The header with the name of a local program, for display.
const PROGRAM_HEADER: &str = "plexus-program";

/// The result of checking the bearer or the cookie, for [`admit`].
#[derive(Clone)]
enum Proof {
    /// The caller, and the CSRF value if the caller sent a cookie.
    Given(Caller, Option<String>),
    Absent,
    Wrong,
    /// A cookie for a change, without a valid CSRF header.
    Forged,
}

/// Runs the checks of every request, regardless of its route: Host, Origin and Sec-Fetch-Site, bearer or cookie.
pub(super) async fn outer(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let coding = check_coding(request.headers());
    let known = coding.and_then(|()| check_host(&gate.hosts, &request));
    if let Err(problem) = known.and_then(|()| check_origin(&gate.hosts, &request)) {
        return problem.close().into_response();
    }
    let proof = prove(&gate.auth, &request);
    let peer = connected(request.extensions());
    let client = Client(gate.public_addresses.client(peer, request.headers()));
    request.extensions_mut().insert(proof);
    request.extensions_mut().insert(client);
    next.run(request).await
}

/// Refuses transfer codings other than `chunked`, since the body would be misread (RFC 9112, 6.1).
fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let codings = || headers.get_all(TRANSFER_ENCODING).iter();
    let names = codings().flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let names: Vec<&[u8]> = names.filter(|word| !word.is_empty()).collect();
    match names.as_slice() {
        [] if codings().next().is_none() => Ok(()),
        [one] if one.eq_ignore_ascii_case(b"chunked") => Ok(()),
        some if some.iter().all(|one| one.eq_ignore_ascii_case(b"chunked")) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            "the transfer coding `chunked` may be given only once",
        )),
        _ => Err(Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "transfer_coding",
            "the only supported transfer coding is `chunked`",
        )),
    }
}

fn check_host(hosts: &Hosts, request: &Request) -> Result<(), Problem> {
    let wrong = || {
        Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "this gateway does not accept that host name: use the address it printed, or add the name to \
             `public_hosts`",
        )
    };
    let host = only(request.headers(), &HOST).ok().flatten().ok_or_else(wrong)?.to_ascii_lowercase();
    let uri = request.uri();
    let absolute = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(&host))
        && uri.scheme_str().is_none_or(|scheme| scheme == "http");
    if absolute && hosts.has(&host) { Ok(()) } else { Err(wrong()) }
}

fn check_origin(hosts: &Hosts, request: &Request) -> Result<(), Problem> {
    let foreign =
        || Problem::new(StatusCode::FORBIDDEN, "foreign_origin", "pages of other sites may not use this gateway");
    let origin = only(request.headers(), &ORIGIN).map_err(|()| foreign())?;
    if origin.is_some_and(|origin| !hosts.has_origin(origin)) {
        return Err(foreign());
    }
    let fetch = |name| only(request.headers(), &HeaderName::from_static(name)).map_err(|()| foreign());
    match fetch("sec-fetch-site")? {
        None | Some("same-origin" | "none") => Ok(()),
        // A link on another site may open the page, which contains no data by itself.
        Some("cross-site" | "same-site")
            if request.method() == Method::GET
                && request.uri().path() == "/"
                && fetch("sec-fetch-mode")? == Some("navigate")
                && fetch("sec-fetch-dest")? == Some("document") =>
        {
            Ok(())
        }
        Some(_) => Err(foreign()),
    }
}

/// Authenticates by the bearer in the single Authorization header or in the subprotocols of a WebSocket, else by the cookie. Never by a
/// query or a body, which are written to logs and histories.
fn prove(auth: &Auth, request: &Request) -> Proof {
    let headers = request.headers();
    let header = headers.get_all(AUTHORIZATION).iter().count();
    let mut offered: Vec<&str> = Vec::new();
    if only(headers, &UPGRADE).ok().flatten().is_some_and(|to| to.eq_ignore_ascii_case("websocket")) {
        let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
        offered.extend(lines.flat_map(|line| line.split(',')).filter_map(|one| one.trim().strip_prefix(WS_BEARER)));
    }
    let token = match (header, offered.as_slice()) {
        (0, []) => {
            return match cookies::prove(auth, request) {
                CookieCheck::Nothing => Proof::Absent,
                CookieCheck::Wrong => Proof::Wrong,
                CookieCheck::Forged => Proof::Forged,
                CookieCheck::Device(caller, csrf) => Proof::Given(caller, Some(csrf)),
            };
        }
        (0, [token]) => Some(*token),
        (1, []) => only(headers, &AUTHORIZATION).ok().flatten().and_then(bearer),
        // Two bearers: parsers could differ in which one counts.
        _ => None,
    };
    match token.and_then(|token| auth.check(token)) {
        Some(caller) => Proof::Given(acting(caller, headers), None),
        None => Proof::Wrong,
    }
}

/// Returns the caller, named after its program.
fn acting(caller: Caller, headers: &HeaderMap) -> Caller {
    match only(headers, &HeaderName::from_static(PROGRAM_HEADER)) {
        Ok(Some(program)) => caller.with_program(program),
        _ => caller,
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Returns the address of the other end of the connection.
fn connected(extensions: &http::Extensions) -> IpAddr {
    let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    extensions.get::<ConnHandle>().map_or(unspecified, |handle| handle.peer.ip())
}

/// The client's address, as reported by a trusted proxy if the connection is from one.
#[derive(Clone, Copy)]
struct Client(IpAddr);

/// Returns the client's address of a request; for counting only, never for trust.
pub fn peer(parts: &Parts) -> IpAddr {
    parts.extensions.get::<Client>().map_or_else(|| connected(&parts.extensions), |client| client.0)
}

/// Returns the authenticated caller, or the problem. Wrong credentials are not logged.
fn enter(gate: &Gate, parts: &Parts) -> Result<Caller, Problem> {
    match parts.extensions.get::<Proof>() {
        Some(Proof::Given(caller, _)) => Ok(caller.clone()),
        Some(Proof::Forged) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "csrf_missing",
            "send `Plexus-CSRF` with the `csrf` value from `GET /v1/me`: a cookie alone is not enough for changes",
        )),
        Some(Proof::Wrong) => Err(failed(&gate.auth, parts).unwrap_or_else(Problem::unauthorized)),
        Some(Proof::Absent) | None => Err(Problem::unauthorized()),
    }
}

/// Counts a failed authentication; returns the problem if there were too many.
pub fn failed(auth: &Auth, parts: &Parts) -> Option<Problem> {
    let wait = auth.failed(peer(parts))?;
    let problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_failures",
        "this address sent too many wrong tokens or codes; a valid token is still accepted",
    );
    Some(problem.retry_after(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1)))
}

/// Runs the checks of one route, then its handler.
pub(super) async fn admit<S>(
    gate: &Gate,
    route: &Route<S>,
    state: &S,
    params: Vec<(String, String)>,
    request: Request,
) -> Response {
    match check(gate, route, params, request).await {
        Ok(call) => {
            // Responses of public routes are small, or static files of the page.
            let account = call.caller.is_some().then(|| call.account.clone());
            let response = (route.run)(state, call).await;
            let mut response = match account {
                Some(account) => charged(response, &account).await,
                None => response,
            };
            if route.secret {
                response.extensions_mut().insert(Secret);
            }
            response
        }
        Err(problem) => problem.into_response(),
    }
}

/// Marks a response that must not be compressed.
#[derive(Clone, Copy)]
struct Secret;

/// The condition of compression: the response is long enough, not an event stream (each event must be sent at once), not compressed
/// already, and not [`secret`](Route::secret).
#[derive(Clone, Copy)]
pub(super) struct Compressible;

impl Predicate for Compressible {
    fn should_compress<B: hyper::body::Body>(&self, response: &http::Response<B>) -> bool {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let text = kind.starts_with("text/")
            || kind.ends_with("json")
            || kind.ends_with("xml")
            || kind.ends_with("javascript");
        let long = response.body().size_hint().exact().is_none_or(|size| size > COMPRESSED);
        text && long && kind != "text/event-stream" && response.extensions().get::<Secret>().is_none()
    }
}

/// Marks a response whose bytes are charged already.
#[derive(Clone, Copy)]
pub(super) struct Counted;

/// Charges a complete response until the client has read its last byte or the connection is closed.
async fn charged(response: Response, account: &Account) -> Response {
    use hyper::body::Body as _;
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    if size < SMALL || response.extensions().get::<Counted>().is_some() {
        return response;
    }
    let charge = match account.charge(size) {
        Ok(charge) => charge,
        Err(over) => return Problem::from(over).into_response(),
    };
    let (parts, body) = response.into_parts();
    match body.collect().await {
        Ok(all) => Response::from_parts(parts, Bytes::from_owner(Charged::new(all.to_bytes(), charge)).into()),
        Err(_) => Problem::internal().into_response(),
    }
}

async fn check<S>(
    gate: &Gate,
    route: &Route<S>,
    params: Vec<(String, String)>,
    request: Request,
) -> Result<Call, Problem> {
    let (parts, body) = request.into_parts();
    let caller = match route.policy {
        Policy::Public => None,
        Policy::Needs(scope) => Some(holder(gate, &parts, scope).map_err(Problem::close)?),
        Policy::WatchOrSameUser => match same_user_caller(gate, &parts).await {
            Some(caller) => Some(caller),
            None => Some(holder(gate, &parts, Scope::Watch).map_err(Problem::close)?),
        },
    };
    if let (Some(caller), Some(effect)) = (&caller, route.effect) {
        check_effect(caller.device(), effect).map_err(|refusal| Problem::from(refusal).close())?;
    }
    let account = match &caller {
        Some(caller) => {
            if let Some(handle) = parts.extensions.get::<ConnHandle>() {
                handle.stranger.proved();
            }
            gate.ledger.connection(caller.device().device_id.as_str())
        }
        None => gate.ledger.strangers().clone(),
    };
    let known = caller.is_some();
    let (body, charge) =
        read_body(gate, route.body, known, &account, &parts.headers, body).await.map_err(Problem::close)?;
    let csrf = match parts.extensions.get::<Proof>() {
        Some(Proof::Given(_, csrf)) => csrf.clone(),
        _ => None,
    };
    Ok(Call { caller, csrf, params, parts, body, account, charge, long_work: gate.long_work.clone() })
}

/// Returns the caller, if its device has this scope.
fn holder(gate: &Gate, parts: &Parts, scope: Scope) -> Result<Caller, Problem> {
    let caller = enter(gate, parts)?;
    let device = caller.device();
    if device.grant.has(scope) { Ok(caller) } else { Err(Denied { scope, device: device.name.clone() }.into()) }
}

/// Returns the caller for a local process of this user without a token, if the gate allows such a process to watch. Browsers always need
/// a token, since any page could make them connect.
async fn same_user_caller(gate: &Gate, parts: &Parts) -> Option<Caller> {
    let runtime = gate.same_user.as_ref()?;
    let headers = &parts.headers;
    let bare = matches!(parts.extensions.get::<Proof>(), Some(Proof::Absent))
        && parts.method == Method::GET
        && only(headers, &UPGRADE).ok().flatten().is_some_and(|to| to.eq_ignore_ascii_case("websocket"))
        && !headers.contains_key(ORIGIN)
        && !headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"));
    if !bare || !peer::is_own_user(parts.extensions.get::<ConnHandle>()?).await {
        return None;
    }
    Some(gate.auth.same_user_caller(runtime))
}

async fn read_body(
    gate: &Gate,
    rule: BodyRule,
    known: bool,
    account: &Account,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Charge), Problem> {
    let nothing = || Ok((Bytes::new(), account.nothing()));
    let bad = |detail: &str| Problem::new(StatusCode::BAD_REQUEST, "bad_request", detail);
    let chunked = headers.contains_key(TRANSFER_ENCODING);
    let length = only(headers, &CONTENT_LENGTH).map_err(|()| bad("more than one Content-Length"))?;
    // With both headers, hyper removes Content-Length, uses Transfer-Encoding and reads no further request.
    let length: u64 = length.map_or(Ok(0), str::parse).map_err(|_| bad("Content-Length is not a number"))?;
    let empty = !chunked && length == 0;
    let limit = match rule {
        BodyRule::Nothing if empty => return nothing(),
        BodyRule::Nothing => return Err(bad("this route does not accept a body")),
        BodyRule::Optional(_) if empty => return nothing(),
        BodyRule::Json(_) if empty => return Err(body_missing()),
        BodyRule::Optional(limit) | BodyRule::Json(limit) => limit,
    };
    let (limit, patience) = if known {
        (limit, gate.limits.body)
    } else {
        (limit.min(UNAUTHENTICATED_BODY), gate.limits.body.min(STRANGER_TIME))
    };
    check_type(headers)?;
    let too_large = || {
        let detail = format!("the body may have at most {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
            .with(ProblemMembers { limit: Some(limit as u64), ..ProblemMembers::default() })
    };
    let mut body = body;
    if length > limit as u64 {
        drain(body, known);
        return Err(too_large());
    }
    let began = tokio::time::Instant::now();
    let (mut all, mut charge) = (Vec::new(), account.nothing());
    loop {
        let strides = u32::try_from(all.len() / BODY_STRIDE).unwrap_or(u32::MAX);
        let until = began + patience.saturating_mul(strides.saturating_add(1));
        let frame = tokio::time::timeout_at(until, body.frame())
            .await
            .map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took too long"))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| bad("the body ended early"))?;
        if let Ok(data) = frame.into_data() {
            if all.len() + data.len() > limit {
                drain(body, known);
                return Err(too_large());
            }
            grow(&mut all, data.len(), limit, &mut charge)?;
            all.extend_from_slice(&data);
        }
    }
    // A chunked body shows only at its end that it is empty.
    if all.is_empty() && matches!(rule, BodyRule::Json(_)) {
        return Err(body_missing());
    }
    if gate.long_work.run(all.len(), || deeper_than(&all, DEPTH)) {
        let detail = format!("JSON may be nested at most {DEPTH} levels deep");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "too_deep", detail));
    }
    Ok((all.into(), charge))
}

/// Returns the problem of a request without a body on a route that needs one.
fn body_missing() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "body_missing", "this route needs a JSON body, and the request has none")
}

/// Reads and discards the rest of a refused body while the refusal is sent. Otherwise the connection would be reset while the client
/// still writes, and the client might not read the refusal. Ends after [`DRAIN`] bytes or [`DRAIN_TIME`]. There is no waiting for
/// unauthenticated clients.
fn drain(mut body: Body, known: bool) {
    let rest = async move {
        let mut left = DRAIN;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    if known {
        tokio::spawn(tokio::time::timeout(DRAIN_TIME, rest));
    }
}

/// Maximum number of bytes that an async worker processes itself.
const LONG: usize = 256 << 10;

/// The turn of long work on clients' bytes. Such work is done outside the async workers, one piece at a time, so that other clients are
/// served meanwhile. Clones share the turn.
#[derive(Clone, Debug, Default)]
pub struct LongWork {
    turn: Arc<Mutex<()>>,
}

impl LongWork {
    /// Runs work on this many bytes of a client. Must not be nested.
    pub fn run<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        use tokio::runtime::{Handle, RuntimeFlavor};
        let is_multi_thread =
            || Handle::try_current().is_ok_and(|on| on.runtime_flavor() == RuntimeFlavor::MultiThread);
        if bytes <= LONG || !is_multi_thread() {
            return work();
        }
        tokio::task::block_in_place(|| {
            let _turn = self.turn.lock();
            work()
        })
    }
}

/// Reserves `more` bytes for a body of at most `limit`, after charging them.
fn grow(all: &mut Vec<u8>, more: usize, limit: usize, charge: &mut Charge) -> Result<(), LedgerFull> {
    let needed = all.len() + more;
    if needed > all.capacity() {
        let capacity = needed.max(all.capacity().saturating_mul(2)).max(BODY_STEP).min(limit).max(needed);
        charge.resize(capacity.saturating_mul(CLIENT_FOOTPRINT))?;
        all.reserve_exact(capacity - all.len());
    }
    Ok(())
}

/// Accepts only plain JSON, since other sites can send forms and text without a preflight.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let wrong = |detail: &str| Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail);
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(wrong("send the body without a Content-Encoding"));
    }
    let given = only(headers, &CONTENT_TYPE).ok().flatten().unwrap_or_default().to_ascii_lowercase();
    match given.split_once(';').map_or((given.as_str(), ""), |(kind, rest)| (kind.trim_end(), rest.trim())) {
        ("application/json", "" | "charset=utf-8") if !given.ends_with(';') => Ok(()),
        _ => Err(wrong("send JSON, with `Content-Type: application/json`")),
    }
}

/// Returns whether brackets are nested deeper than `limit`. Invalid JSON is left to the parser.
pub fn deeper_than(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut text, mut escaped) = (0usize, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            _ if text => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the response for an unknown path: 401 without a valid bearer, so that it does not reveal which paths exist; then 404.
pub(super) fn unknown_path(gate: &Gate, parts: &Parts) -> Problem {
    match enter(gate, parts) {
        Ok(_) => Problem::not_found(),
        Err(problem) => problem,
    }
    .close()
}

/// Returns the response for a known path with another method: like [`unknown_path`], but 405 with a valid bearer.
pub(super) fn other_method(gate: &Gate, parts: &Parts, allow: &str) -> Problem {
    match enter(gate, parts) {
        Ok(_) => Problem::method_not_allowed(allow),
        Err(problem) => problem,
    }
    .close()
}

/// Runs the outermost layer: counts, logs the route (never the path, a query, a header or a token), and adds the security headers to
/// every response.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let began = std::time::Instant::now();
    let route = route.as_ref().map_or("(none)", MatchedPath::as_str);
    // A client may send any word as the method.
    let verb = match &method {
        known if *known == Method::GET => "GET",
        known if *known == Method::POST => "POST",
        known if *known == Method::PUT => "PUT",
        known if *known == Method::PATCH => "PATCH",
        known if *known == Method::DELETE => "DELETE",
        known if *known == Method::HEAD => "HEAD",
        known if *known == Method::OPTIONS => "OPTIONS",
        _ => "other",
    };
    let span = spans::http(verb, route);
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    let class = ["1xx", "2xx", "3xx", "4xx", "5xx"].get(usize::from(status.as_u16() / 100).wrapping_sub(1)).copied();
    metrics().http.with_label_values(&[verb, route, class.unwrap_or("other")]).inc();
    metrics().http_duration.with_label_values(&[route]).observe(began.elapsed().as_secs_f64());
    let micros = began.elapsed().as_micros() as u64;
    span.in_scope(|| tracing::debug!(status = status.as_u16(), micros, "request"));
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // An existing policy is stricter: that of an exported file.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(CSP));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns the response after a panic in a handler.
pub(super) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic hook has logged the cause and the place.
    Problem::internal().into_response()
}

#[cfg(test)]
mod tests;
