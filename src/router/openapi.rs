//! `openapi.json`, from the route table and the [`schemas`](super::schemas) of its bodies.

use http::StatusCode;
use plexus_protocol::api::problem::ProblemDetails;
use serde_json::{Map, Value, json};

use super::described::{ResponseDocs, in_path};
use super::guard::{BodyRule, Policy, Route};
use super::schemas::{self, Shape};

fn content(shape: Shape) -> Value {
    json!({ "application/json": { "schema": shape.reference() } })
}

fn response(docs: &ResponseDocs) -> Value {
    let status = StatusCode::from_u16(docs.status).ok().and_then(|status| status.canonical_reason());
    let mut media = docs.json.map_or_else(|| json!({}), content);
    for kind in docs.media {
        media[kind] = json!({ "schema": { "type": "string" } });
    }
    let mut response = json!({ "description": status.unwrap_or_default() });
    if media.as_object().is_some_and(|media| !media.is_empty()) {
        response["content"] = media;
    }
    response
}

fn operation<S>(route: &Route<S>) -> Value {
    let problem = Shape::of::<ProblemDetails>().reference();
    let mut responses = Map::new();
    for docs in &route.docs.responses {
        responses.insert(docs.status.to_string(), response(docs));
    }
    responses.insert(
        "default".into(),
        json!({
            "description": "What went wrong, with a stable `code`",
            "content": { "application/problem+json": { "schema": problem } },
        }),
    );
    let own = route.docs.parameters.iter().map(|parameter| parameter.described());
    let parameters: Vec<Value> = in_path(&route.path).chain(own).collect();
    let mut operation = json!({ "summary": route.summary, "parameters": parameters, "responses": responses });
    operation["security"] = match route.policy {
        Policy::Public => json!([]),
        Policy::WatchOrSameUser => json!([{}, { "bearer": ["watch"] }]),
        // OpenAPI 3.1 lets any scheme name its roles.
        Policy::Needs(scope) => json!([{ "bearer": [scope.as_str()] }]),
    };
    if let Some(request) = route.docs.request {
        operation["requestBody"] =
            json!({ "required": matches!(route.body, BodyRule::Json(_)), "content": content(request) });
    }
    operation
}

/// Makes `openapi.json` of these routes, for a gateway of this version.
pub fn description<S>(version: &str, routes: &[Route<S>]) -> Value {
    let mut paths = Map::new();
    // The page's files are not part of the API.
    let described: Vec<&Route<S>> = routes.iter().filter(|route| !route.docs.responses.is_empty()).collect();
    for route in &described {
        let path = paths.entry(&*route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    let requests: Vec<Shape> = described.iter().filter_map(|route| route.docs.request).collect();
    let responses = described.iter().flat_map(|route| &route.docs.responses).filter_map(|docs| docs.json);
    let responses: Vec<Shape> = responses.chain([Shape::of::<ProblemDetails>()]).collect();
    let about = "One gateway between coding agents and screens. `GET /v1/ws` is the native WebSocket protocol, \
        described by `/asyncapi.json`; the event routes respond to `Accept: text/event-stream` with a stream. A page \
        of the gateway may use a cookie instead of the token; then every change also needs `Plexus-CSRF`.";
    let bearer = json!({ "type": "http", "scheme": "bearer", "description": "The token of an enrolled device" });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Plexus",
            "version": version,
            "description": about,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas::schemas(&requests, &responses), "securitySchemes": { "bearer": bearer } },
    })
}
