//! Rows of the route table: features make theirs with [`route`], and [`build`] makes a router of them behind the guard. The guard, the
//! default-deny tests and `openapi.json` are made from the same rows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use axum::extract::{RawPathParams, Request};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::Method;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use utoipa::ToSchema;

use super::Problem;
use super::described::{Docs, Parameter, ResponseDocs};
use super::guard::{self, BodyRule, Call, Gate, Policy, Route};
use super::schemas::Shape;
use plexus_protocol::Scope;
use plexus_risk::Effect;

/// Maximum size of the body of most requests, in bytes; a longer one is refused with 413 before it is read.
const BODY: usize = 1 << 20;
/// Maximum size of the body of a prompt, in bytes: prompts carry images.
const PROMPT: usize = 16 << 20;
/// Maximum size of the body of a call that draws, in bytes: the maximum data of one call, and its components.
const SURFACE: usize = 2 << 20;

/// The compression level for dynamic responses: most of the gain for little time.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(4);

/// The method `GET`; such a route answers `HEAD` too.
pub const GET: Method = Method::GET;
/// The method `POST`.
pub const POST: Method = Method::POST;
/// The method `PUT`.
pub const PUT: Method = Method::PUT;
/// The method `PATCH`.
pub const PATCH: Method = Method::PATCH;
/// The method `DELETE`.
pub const DELETE: Method = Method::DELETE;

/// The policy of routes for devices with the scope `watch`.
pub const WATCH: Policy = Policy::Needs(Scope::Watch);
/// The policy of routes for devices with the scope `prompt`.
pub const PROMPTS: Policy = Policy::Needs(Scope::Prompt);
/// The policy of routes for devices with the scope `approve`.
pub const APPROVE: Policy = Policy::Needs(Scope::Approve);
/// The policy of routes for devices with the scope `admin`.
pub const ADMIN: Policy = Policy::Needs(Scope::Admin);
/// The policy of routes for devices with the scope `ui`.
pub const DRAWS: Policy = Policy::Needs(Scope::Ui);

/// The body rule of routes without a body.
pub const NOTHING: BodyRule = BodyRule::Nothing;
/// The body rule of most routes with a JSON body.
pub const JSON: BodyRule = BodyRule::Json(BODY);
/// Like [`JSON`], with an optional body.
pub const OPTIONAL_JSON: BodyRule = BodyRule::Optional(BODY);
/// The body rule of routes that accept a prompt.
pub const PROMPT_BODY: BodyRule = BodyRule::Json(PROMPT);
/// The body rule of routes that draw.
pub const SURFACE_BODY: BodyRule = BodyRule::Json(SURFACE);
/// The body rule of routes that accept unauthenticated requests.
pub const UNAUTHENTICATED: BodyRule = BodyRule::Json(super::listen::UNAUTHENTICATED_BODY);

/// Makes a row. Every argument is needed: a route without a policy does not compile. `run` gets the state of the feature.
pub fn route<S, F>(
    method: Method,
    path: impl Into<Cow<'static, str>>,
    policy: Policy,
    body: BodyRule,
    summary: &'static str,
    run: impl Fn(S, Call) -> F + Send + Sync + 'static,
) -> Route<S>
where
    S: Clone + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let run = move |state: &S, call| -> guard::Responding {
        let handler = run(state.clone(), call);
        Box::pin(async move { handler.await.unwrap_or_else(Problem::into_response) })
    };
    let run = Arc::new(run);
    Route { method, path: path.into(), policy, body, secret: false, summary, effect: None, docs: Docs::default(), run }
}

/// Marks a row whose responses carry a token or a code.
pub fn secret<S>(row: Route<S>) -> Route<S> {
    Route { secret: true, ..row }
}

/// Converts the rows of a feature to rows of a gateway whose state `T` contains the state of the feature.
pub fn feature<S: 'static, T: 'static>(rows: Vec<Route<S>>, state: fn(&T) -> &S) -> Vec<Route<T>> {
    let with_state = |row: Route<S>| {
        let Route { method, path, policy, body, secret, summary, effect, docs, run } = row;
        let run = Arc::new(move |all: &T, call| run(state(all), call));
        Route { method, path, policy, body, secret, summary, effect, docs, run }
    };
    rows.into_iter().map(with_state).collect()
}

impl<S> Route<S> {
    /// Sets the minimum effect of an approved command that the route has; a handler may determine a greater one.
    #[must_use]
    pub fn effect(self, effect: Effect) -> Self {
        Self { effect: Some(effect), ..self }
    }

    /// Documents that the body is `T` as JSON.
    #[must_use]
    pub fn request<T: ToSchema>(mut self) -> Self {
        self.docs.request = Some(Shape::of::<T>());
        self
    }

    /// Documents a response that is `T` as JSON.
    #[must_use]
    pub fn response<T: ToSchema>(self, status: u16) -> Self {
        self.responds(ResponseDocs { status, json: Some(Shape::of::<T>()), media: &[] })
    }

    /// Documents a response that is `T` as JSON, or one of other media types.
    #[must_use]
    pub fn response_or<T: ToSchema>(self, status: u16, media: &'static [&'static str]) -> Self {
        self.responds(ResponseDocs { status, json: Some(Shape::of::<T>()), media })
    }

    /// Documents a response of one of these media types.
    #[must_use]
    pub fn text(self, status: u16, media: &'static [&'static str]) -> Self {
        self.responds(ResponseDocs { status, json: None, media })
    }

    /// Documents a response without a body.
    #[must_use]
    pub fn empty(self, status: u16) -> Self {
        self.text(status, &[])
    }

    /// Documents parameters.
    #[must_use]
    pub fn with(mut self, parameters: &[&'static Parameter]) -> Self {
        self.docs.parameters.extend(parameters);
        self
    }

    fn responds(mut self, response: ResponseDocs) -> Self {
        self.docs.responses.push(response);
        self
    }
}

/// Returns the routes of one path, and the handler that serves them.
struct ServedPath<S: 'static> {
    gate: Gate,
    routes: Vec<Route<S>>,
    /// The value of the header `Allow`.
    allow: String,
    state: Arc<S>,
}

/// Makes a router of rows. The guard is around every route, and around unknown paths.
pub fn build<S: Send + Sync + 'static>(gate: &Gate, rows: Vec<Route<S>>, state: S) -> axum::Router {
    let state = Arc::new(state);
    let mut paths: BTreeMap<String, Vec<Route<S>>> = BTreeMap::new();
    for route in rows {
        paths.entry(route.path.to_string()).or_default().push(route);
    }
    let mut router = axum::Router::new();
    for (path, routes) in paths {
        let allow = allow(&routes);
        let served = Arc::new(ServedPath { gate: gate.clone(), routes, allow, state: Arc::clone(&state) });
        // One handler for all methods: axum's own method check would reveal them in `Allow` without authentication.
        let methods = any(move |params: RawPathParams, request: Request| async move {
            let ServedPath { gate, routes, allow, state } = &*served;
            let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
            let Some(route) = routes.iter().find(|route| route.method == *method) else {
                return guard::other_method(gate, &request.into_parts().0, allow).into_response();
            };
            let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            guard::admit(gate, route, state, params, request).await
        });
        router = router.route(&path, methods);
    }
    let at_no_path = gate.clone();
    router
        .fallback(move |request: Request| async move { guard::unknown_path(&at_no_path, &request.into_parts().0) })
        .layer(from_fn_with_state(gate.clone(), guard::outer))
        .layer(CatchPanicLayer::custom(guard::panicked))
        .layer(CompressionLayer::new().quality(COMPRESSION).compress_when(guard::Compressible))
        .layer(from_fn(guard::finish))
}

fn allow<S>(routes: &[Route<S>]) -> String {
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
            long_work: Default::default(),
        }
    }

    #[tokio::test]
    async fn handler_panic_is_a_problem_and_the_next_request_is_served() {
        let row = route(GET, "/{what}", Policy::Public, NOTHING, "", |(), call: Call| async move {
            assert_ne!(call.params[0].1, "panic", "secret cause");
            Ok(Response::new(Body::empty()))
        });
        let home = tempfile::tempdir().unwrap();
        let app = build(&gate(home.path()), vec![row], ());
        for (path, status) in [("/panic", StatusCode::INTERNAL_SERVER_ERROR), ("/fine", StatusCode::OK)] {
            let request = http::Request::get(path).header("host", "127.0.0.1:1").body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            assert!(response.headers().contains_key("content-security-policy"));
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            assert!(!String::from_utf8_lossy(&body).contains("secret cause"), "the cause is not for strangers");
        }
    }
}
