//! `openapi.json`, from the route table and the [`schemas`](super::schemas) of its bodies.

use std::sync::LazyLock;

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::described::{Given, in_path};
use super::error::ProblemDetails;
use super::guard::{BodyRule, Policy, Route};
use super::schemas::{self, Shape};
use super::{AppState, Problem, reply as api};

fn content(shape: Shape) -> Value {
    json!({ "application/json": { "schema": shape.reference() } })
}

fn answer(given: &Given) -> Value {
    let status = StatusCode::from_u16(given.status).ok().and_then(|status| status.canonical_reason());
    let mut media = given.json.map_or_else(|| json!({}), content);
    for kind in given.media {
        media[kind] = json!({ "schema": { "type": "string" } });
    }
    let mut answer = json!({ "description": status.unwrap_or_default() });
    if media.as_object().is_some_and(|media| !media.is_empty()) {
        answer["content"] = media;
    }
    answer
}

fn operation(route: &Route<AppState>) -> Value {
    let problem = Shape::of::<ProblemDetails<'_>>().reference();
    let mut responses = Map::new();
    for given in &route.docs.gives {
        responses.insert(given.status.to_string(), answer(given));
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
    if let Some(takes) = route.docs.takes {
        operation["requestBody"] =
            json!({ "required": matches!(route.body, BodyRule::Json(_)), "content": content(takes) });
    }
    operation
}

/// The description of the routes of a table.
pub(super) fn description(version: &str, table: &[Route<AppState>]) -> Value {
    let mut paths = Map::new();
    // The page's files are not part of the API.
    let described: Vec<&Route<AppState>> = table.iter().filter(|route| !route.docs.gives.is_empty()).collect();
    for route in &described {
        let path = paths.entry(&*route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    let taken: Vec<Shape> = described.iter().filter_map(|route| route.docs.takes).collect();
    let given = described.iter().flat_map(|route| &route.docs.gives).filter_map(|given| given.json);
    let given: Vec<Shape> = given.chain([Shape::of::<ProblemDetails<'_>>()]).collect();
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
        "components": { "schemas": schemas::schemas(&taken, &given), "securitySchemes": { "bearer": bearer } },
    })
}

/// Serves the description.
pub(super) async fn serve(version: &'static str, table: &[Route<AppState>]) -> Result<Response, Problem> {
    // The text is the same for the whole process; the first call makes it.
    static TEXT: LazyLock<std::sync::OnceLock<Value>> = LazyLock::new(Default::default);
    api::json(StatusCode::OK, TEXT.get_or_init(|| description(version, table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_but_the_page_files_are_described_with_their_policy() {
        let all = description("1.2.3", super::super::routes::table());
        assert_eq!(all["info"]["version"], "1.2.3");
        let mut described = 0;
        for route in super::super::routes::table().iter().filter(|route| route.summary != "A file of the page") {
            let operation = &all["paths"][&*route.path][route.method.as_str().to_ascii_lowercase()];
            let security = match route.policy {
                Policy::Public => json!([]),
                Policy::WatchOrSameUser => panic!("only a port of its own opens to neighbours"),
                Policy::Needs(scope) => json!([{ "bearer": [scope.as_str()] }]),
            };
            assert_eq!(operation["security"], security, "{} {}", route.method, route.path);
            assert_eq!(operation["requestBody"].is_object(), route.body != BodyRule::Nothing, "{}", route.path);
            assert!(!route.docs.gives.is_empty(), "{} {} says what it gives", route.method, route.path);
            described += 1;
        }
        assert!(described > 25);
    }

    #[test]
    fn references_all_resolve() {
        fn walk(value: &Value, all: &Value) {
            if let Some(to) = value.get("$ref").and_then(Value::as_str) {
                assert!(all.pointer(to.trim_start_matches('#')).is_some(), "{to}");
            }
            match value {
                Value::Object(fields) => fields.values().for_each(|value| walk(value, all)),
                Value::Array(values) => values.iter().for_each(|value| walk(value, all)),
                _ => {}
            }
        }
        let all = description("0", super::super::routes::table());
        walk(&all, &all);
    }
}
