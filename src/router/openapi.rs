//! `openapi.json`, from the route table and the [`schemas`](super::schemas): which route takes and gives which.

use std::sync::LazyLock;

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::guard::{BodyRule, Policy, Route};
use super::schemas::{self, CURSOR, ID, RESUMABLE};
use super::{AppState, Problem, reply as api};

/// What a route takes and gives, by the names of shapes; `""` is no JSON.
struct Shape {
    takes: &'static str,
    gives: &'static str,
    status: u16,
    query: &'static [(&'static str, &'static str)],
}

const EVENTS: &[(&str, &str)] = &[
    ("after", "A cursor; absent or empty: from the oldest kept; `now`: only what comes"),
    ("limit", "Events at most (500, 5000 at most)"),
    ("wait", "Seconds to wait if there are none yet (0, 60 at most)"),
    ("before", "A cursor: the newest events of one session before it; empty or `now`: the newest of all"),
    ("merge", "true: the chunks of a message, and the updates of a tool call, come as one item (false)"),
    (
        "max_bytes",
        "Bytes of events at most, about, on a page that is merged or read backwards (1 MiB, which is the most)",
    ),
];
const PAIRING: &[(&str, &str)] = &[
    ("wait", "Seconds to wait for it to be another than `known` (0, 60 at most)"),
    ("known", "What you know it to be: `waiting`, or `joined` (waiting)"),
];
const ALL_EVENTS: &[(&str, &str)] = &[
    ("session", "Only this session; may be given several times"),
    EVENTS[0],
    EVENTS[1],
    EVENTS[2],
    EVENTS[3],
    EVENTS[4],
    EVENTS[5],
];

#[rustfmt::skip] // a route a line
fn shape(route: &Route<AppState>) -> Option<Shape> {
    let (takes, gives, status, query): (_, _, _, &'static [_]) = match (route.method.as_str(), &*route.path) {
        ("GET", "/v1/me") => ("", "Me", 200, &[]),
        ("GET", "/v1/runtimes") => ("", "Runtimes", 200, &[]),
        ("POST", "/v1/runtimes") => ("StartRuntime", "Runtime", 201, &[]),
        ("GET", "/v1/runtimes/{id}") => ("", "Runtime", 200, &[]),
        ("GET", "/v1/sessions") => ("", "Sessions", 200, &[("archived", "true: only those put away; all: those, too; false if absent"), ("limit", "Sessions at most (1000, which is the most)"), ("cursor", "`next` of the page before")]),
        ("POST", "/v1/sessions") => ("NewSession", "Session", 201, &[]),
        ("GET", "/v1/sessions/{id}") => ("", "Session", 200, &[]),
        ("PATCH", "/v1/sessions/{id}") => ("EditSession", "Session", 200, &[]),
        ("POST", "/v1/sessions/{id}/prompt") => ("NewPrompt", "Accepted", 202, &[]),
        ("POST", "/v1/sessions/{id}/cancel") => ("CancelRun", "Run", 202, &[]),
        ("POST", "/v1/sessions/{id}/restart") => ("RestartRun", "Accepted", 202, &[]),
        ("POST", "/v1/runtimes/{id}/restart") => ("", "Runtime", 200, &[]),
        ("GET", "/v1/runtimes/{id}/logs") => ("", "Logs", 200, &[]),
        ("GET", "/v1/runtimes/{id}/resumable") => ("", "ResumablePage", 200, &[("limit", "Conversations at most (100, 1000 at most)"), ("cursor", "`next` of the page before")]),
        ("GET", "/v1/doctor") => ("", "Checks", 200, &[]),
        ("GET", "/v1/sessions/{id}/events") => ("", "Page", 200, EVENTS),
        ("GET", "/v1/sessions/{id}/snapshot") => ("", "Snapshot", 200, &[("max_bytes", "Bytes of messages and tools at most, about (256 KiB, which is the most)")]),
        ("GET", "/v1/sessions/{id}/export") => ("", "", 200, &[("format", "ndjson (the events, one a line), md or html; ndjson if absent")]),
        ("GET", "/v1/sessions/{id}/mcp") => ("", "McpServers", 200, &[("scope", "loaded, or configured: also those that are not in use; loaded if absent")]),
        ("GET", "/v1/sessions/{id}/skills") => ("", "Skills", 200, &[]),
        ("GET", "/v1/events") => ("", "Page", 200, ALL_EVENTS),
        ("GET", "/v1/requests") => ("", "Requests", 200, &[("state", "open, answered, expired, withdrawn, orphaned or all"), ("session", "Only this session's"), ("limit", "So many at most, up to 1000"), ("before", "Only those before the `next` of a page")]),
        ("GET", "/v1/requests/{id}") => ("", "Request", 200, &[]),
        ("POST", "/v1/requests/{id}/answer") => ("Answer", "Receipt", 200, &[]),
        ("GET", "/v1/search") => ("", "Hits", 200, &[("q", "Words to look for"), ("limit", "Passages at most (20, 100 at most)")]),
        ("GET", "/v1/devices") => ("", "Devices", 200, &[]),
        ("POST", "/v1/devices") => ("NewDevice", "NewToken", 201, &[]),
        ("PATCH", "/v1/devices/{id}") => ("NewName", "Me", 200, &[]),
        ("POST", "/v1/sessions/{id}/shares") => ("NewShare", "Share", 201, &[]),
        ("POST", "/v1/pairings") => ("NewPairing", "Begun", 201, &[]),
        ("GET", "/v1/pairings/{id}") => ("", "Pairing", 200, PAIRING),
        ("POST", "/v1/pairings/{id}/confirm") => ("Confirm", "Pairing", 200, &[]),
        ("POST", "/v1/pair/look") => ("Look", "Invitation", 200, &[]),
        ("POST", "/v1/pair/wait") => ("Fetch", "NewToken", 200, &[]),
        ("POST", "/v1/codes") => ("NewCode", "Code", 201, &[]),
        ("POST", "/v1/pair") => ("Pair", "NewToken", 200, &[]),
        ("POST", "/v1/signin") => ("SignIn", "NewToken", 200, &[]),
        ("GET", "/v1/push") => ("", "Push", 200, &[]),
        ("PUT", "/v1/push") => ("Subscribe", "Push", 200, &[]),
        ("PATCH", "/v1/push/settings") => ("PushChoice", "Push", 200, &[]),
        ("POST", "/v1/push/test") => ("PushTry", "PushTried", 200, &[]),
        ("POST", "/ag-ui/{id}") => ("RunAgentInput", "", 200, &[]),
        ("GET", "/readyz") => ("", "Ready", 200, &[]),
        ("POST", "/acp" | "/acp/{runtime_id}") => ("AcpMessage", "", 202, &[]),
        ("DELETE", "/acp" | "/acp/{runtime_id}") => ("", "", 202, &[]),
        ("DELETE", _) => ("", "", 204, &[]),
        ("GET", super::guard::WS_PATH | "/acp" | "/acp/{runtime_id}") => ("", "", 101, &[]),
        ("GET", "/healthz") => ("", "", 200, &[("challenge", "32 to 128 letters and digits: the answer has their HMAC-SHA256 by the secret in the gateway's own file")]),
        ("GET", "/metrics" | "/openapi.json" | "/asyncapi.json" | "/ca.crt" | "/ca.mobileconfig") => ("", "", 200, &[]),
        _ => return None,
    };
    Some(Shape { takes, gives, status, query })
}

fn reference(name: &str) -> Value {
    json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
}

/// A parameter's schema, by its name; pages of requests go back by a number, not by a cursor.
fn parameter_schema(path: &str, name: &str) -> Value {
    let name = if (path, name) == ("/v1/requests", "before") { "limit" } else { name };
    match name {
        "after" | "before" => {
            let cursor = CURSOR.trim_matches(['^', '$']);
            json!({ "type": "string", "pattern": format!("^(|now|{cursor}(\\+[0-9]{{1,9}})?)$") })
        }
        "cursor" if path == "/v1/runtimes/{id}/resumable" => {
            json!({ "type": "string", "pattern": format!("^({})?$", RESUMABLE.trim_matches(['^', '$'])) })
        }
        "cursor" => {
            json!({ "type": "string", "pattern": "^([0-9]{1,15}\\.[0-9]{1,15}\\.-?[0-9]{1,15}\\.[A-Za-z0-9_.:-]{1,128})?$" })
        }
        "merge" => json!({ "type": "string", "enum": ["true", "false"] }),
        "Last-Event-ID" => json!({ "type": "string" }),
        // Several may stand in one, with commas.
        "session" => json!({ "type": "string", "pattern": "^([A-Za-z0-9_.:-]{1,128})?(,([A-Za-z0-9_.:-]{1,128})?)*$" }),
        "limit" | "wait" | "max_bytes" => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        "state" => json!({ "type": "string", "enum": ["open", "answered", "expired", "withdrawn", "orphaned", "all"] }),
        "q" => {
            json!({ "type": "string", "minLength": 1, "maxLength": super::http::QUERY_MAX, "pattern": schemas::WORDS })
        }
        "archived" => json!({ "type": "string", "enum": ["true", "false", "all"] }),
        "scope" => json!({ "type": "string", "enum": ["loaded", "configured"] }),
        "format" => json!({ "type": "string", "enum": ["ndjson", "md", "html"] }),
        "projection" => json!({ "type": "string", "enum": ["canonical", "native"] }),
        "challenge" => json!({ "type": "string", "pattern": "^[A-Za-z0-9]{32,128}$" }),
        "known" => json!({ "type": "string", "enum": ["waiting", "joined"] }),
        "Idempotency-Key" => json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
        // Path parameters.
        _ => json!({ "type": "string", "pattern": ID }),
    }
}

fn parameter(path: &str, name: &str, place: &str, required: bool, description: &str) -> Value {
    let schema = parameter_schema(path, name);
    json!({ "name": name, "in": place, "required": required, "description": description, "schema": schema })
}

/// What comes of it, by media type, where it is not one JSON shape alone.
fn media(route: &Route<AppState>) -> Option<Value> {
    let text = json!({ "schema": { "type": "string" } });
    Some(match &*route.path {
        "/healthz" | "/metrics" => json!({ "text/plain": text }),
        "/ca.crt" => json!({ "application/x-x509-ca-cert": text }),
        "/ca.mobileconfig" => json!({ "application/x-apple-aspen-config": text }),
        "/v1/sessions/{id}/export" => {
            json!({ "application/x-ndjson": text, "text/markdown": text, "text/html": text })
        }
        "/openapi.json" | "/asyncapi.json" => json!({ "application/json": { "schema": { "type": "object" } } }),
        // What stands in its events, `asyncapi.json` describes.
        "/v1/events" | "/v1/sessions/{id}/events" => {
            let mut page = reference("Page");
            page["text/event-stream"] = text;
            page
        }
        _ => return None,
    })
}

/// What a handshake of RFC 6455 says, beside what every request does.
fn handshake() -> [Value; 4] {
    let header =
        |name: &str, schema: Value| json!({ "name": name, "in": "header", "required": true, "schema": schema });
    [
        header("Connection", json!({ "type": "string", "enum": ["Upgrade"] })),
        header("Upgrade", json!({ "type": "string", "enum": ["websocket"] })),
        header("Sec-WebSocket-Version", json!({ "type": "string", "enum": ["13"] })),
        // Sixteen bytes in base64.
        header("Sec-WebSocket-Key", json!({ "type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$" })),
    ]
}

fn operation(route: &Route<AppState>, shape: &Shape) -> Value {
    let problem = json!({
        "description": "What went wrong, with a stable `code`",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/ProblemDetails" } } },
    });
    let status =
        StatusCode::from_u16(shape.status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let mut done = json!({ "description": status });
    if let Some(content) = media(route).or_else(|| (!shape.gives.is_empty()).then(|| reference(shape.gives))) {
        done["content"] = content;
    }
    let mut responses = Map::new();
    responses.insert(shape.status.to_string(), done);
    if matches!(shape.takes, "Pair" | "Fetch") {
        let name = if shape.takes == "Pair" { "Ticket" } else { "Patience" };
        let words = "The computer is to confirm";
        responses.insert("202".into(), json!({ "description": words, "content": reference(name) }));
    }
    responses.insert("default".into(), problem);
    let mut parameters: Vec<Value> = Vec::new();
    let of =
        |name: &str, place: &str, required: bool, words: &str| parameter(&route.path, name, place, required, words);
    for (_, rest) in route.path.match_indices('{').map(|(at, _)| route.path.split_at(at + 1)) {
        let name = rest.split('}').next().unwrap_or_default();
        parameters.push(of(name, "path", true, "Which one"));
    }
    parameters.extend(shape.query.iter().map(|(name, words)| of(name, "query", *name == "q", words)));
    if shape.query.iter().any(|(name, _)| *name == "after") {
        let words = "For `text/event-stream`: beside each event what the runtime itself said";
        parameters.push(of("projection", "query", false, words));
        parameters.push(of("Last-Event-ID", "header", false, "For `text/event-stream`: beats `after`"));
    }
    if route.path.starts_with("/acp") {
        let words = "As the response to `initialize` gave it";
        parameters.push(of("Acp-Connection-Id", "header", false, words));
        parameters.push(of("Acp-Session-Id", "header", false, "With what belongs to a session"));
    }
    let keyed = match shape.takes {
        "Answer" => Some("The same key brings the same receipt again: 1 to 128 visible ASCII characters"),
        "RestartRun" => Some("The same under the same key is done once: 1 to 128 visible ASCII characters"),
        "NewPrompt" => Some("The same prompt under the same key is run once: 1 to 128 visible ASCII characters"),
        _ => None,
    };
    if let Some(words) = keyed {
        parameters.push(of("Idempotency-Key", "header", false, words));
    }
    if route.path == super::guard::WS_PATH {
        parameters.extend(handshake());
    }
    let mut operation = json!({ "summary": route.summary, "parameters": parameters, "responses": responses });
    operation["security"] = match route.policy {
        Policy::Public => json!([]),
        Policy::Neighbours => json!([{}, { "bearer": ["watch"] }]),
        // OpenAPI 3.1 lets any scheme name its roles.
        Policy::Needs(scope) => json!([{ "bearer": [scope.as_str()] }]),
    };
    if !shape.takes.is_empty() {
        operation["requestBody"] =
            json!({ "required": matches!(route.body, BodyRule::Json(_)), "content": reference(shape.takes) });
    }
    operation
}

fn description(version: &str, table: &[Route<AppState>]) -> Value {
    let mut paths = Map::new();
    for route in table {
        if let Some(shape) = shape(route) {
            let path = paths.entry(&*route.path).or_insert_with(|| json!({}));
            path[route.method.as_str().to_ascii_lowercase()] = operation(route, &shape);
        }
    }
    let about = "One gateway between coding agents and screens. `GET /v1/ws` speaks the native WebSocket protocol, which \
                 `/asyncapi.json` describes; the events routes answer `Accept: text/event-stream` with a stream. A page of the \
                 gateway may have a cookie in place of the token; then `Plexus-CSRF` comes with whatever changes something.";
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
        "components": { "schemas": schemas::schemas(), "securitySchemes": { "bearer": bearer } },
    })
}

/// Serves the description.
pub(super) async fn serve(version: &'static str, table: &[Route<AppState>]) -> Result<Response, Problem> {
    // One gateway has one version; the first to ask makes the text.
    static TEXT: LazyLock<std::sync::OnceLock<Value>> = LazyLock::new(Default::default);
    api::json(StatusCode::OK, TEXT.get_or_init(|| description(version, table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_but_the_pages_files_is_described_with_its_policy() {
        let all = description("1.2.3", super::super::routes::table());
        assert_eq!(all["info"]["version"], "1.2.3");
        let mut described = 0;
        for route in super::super::routes::table().iter().filter(|route| route.summary != "A file of the page") {
            let operation = &all["paths"][&*route.path][route.method.as_str().to_ascii_lowercase()];
            let security = match route.policy {
                Policy::Public => json!([]),
                Policy::Neighbours => panic!("only a port of its own opens to neighbours"),
                Policy::Needs(scope) => json!([{ "bearer": [scope.as_str()] }]),
            };
            assert_eq!(operation["security"], security, "{} {}", route.method, route.path);
            assert_eq!(operation["requestBody"].is_object(), route.body != BodyRule::Nothing, "{}", route.path);
            described += 1;
        }
        assert!(described > 25);
    }

    #[test]
    fn no_reference_leads_nowhere() {
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
