//! The routes of the published descriptions.

use std::sync::{Arc, OnceLock};

use http::StatusCode;
use serde_json::Value;

use super::guard::{Call, Policy, Route};
use super::reply::{RouteResult, json};
use super::routes::{GET, NOTHING, route};
pub use super::{asyncapi::description as asyncapi, openapi::description as openapi};
use plexus_protocol::schema::JsonObject;

/// The published descriptions of a gateway; each is made by the first request for it. Cheap to clone.
#[derive(Clone)]
pub struct Descriptions {
    version: &'static str,
    /// Makes `openapi.json` of a gateway of this version.
    make_openapi: fn(&str) -> Value,
    made: Arc<MadeDescriptions>,
}

#[derive(Default)]
struct MadeDescriptions {
    openapi: OnceLock<Value>,
    asyncapi: OnceLock<Value>,
}

impl Descriptions {
    /// Creates the descriptions of a gateway of this version. `make_openapi` makes `openapi.json` of all routes.
    pub fn new(version: &'static str, make_openapi: fn(&str) -> Value) -> Self {
        Self { version, make_openapi, made: Arc::default() }
    }
}

/// Returns the routes of the descriptions.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Descriptions>> {
    vec![
        // Public: the same for every gateway of this version, and tools fetch it before they have a token.
        route(GET, "/openapi.json", Policy::Public, NOTHING, "This description", serve_openapi)
            .response::<JsonObject>(200),
        route(GET, "/asyncapi.json", Policy::Public, NOTHING, "The native WebSocket's description", serve_asyncapi)
            .response::<JsonObject>(200),
    ]
}

async fn serve_openapi(state: Descriptions, _: Call) -> RouteResult {
    json(StatusCode::OK, state.made.openapi.get_or_init(|| (state.make_openapi)(state.version)))
}

async fn serve_asyncapi(state: Descriptions, _: Call) -> RouteResult {
    json(StatusCode::OK, state.made.asyncapi.get_or_init(|| asyncapi(state.version)))
}
