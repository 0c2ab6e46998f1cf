//! `openapi.json`, from the route table and the wire types. One file: the shapes that clients read, and the table that says
//! where each is used, are checked against each other and against the model.
//!
//! The shapes below are the model's types as clients see them; a test holds the fields of the two equal.

use std::sync::LazyLock;

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value, json};
use utoipa::{OpenApi, ToSchema};

use super::guard::{BodyRule, Policy, Route};
use super::{AppState, Problem, agui, http as api, routes};

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($fields:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(ToSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct $name { $($fields)* }
    )*};
}

shapes! {
    /// A session.
    Session {
        session_id: String,
        runtime_id: String,
        dialect: String,
        #[schema(required = true)]
        native_id: Option<String>,
        #[schema(required = true)]
        title: Option<String>,
        cwd: String,
        /// `idle`, `running`, `waiting` or `exited`.
        state: String,
        run_id: Option<String>,
        open_requests: u64,
        requests: Option<Vec<String>>,
        queue: Option<Vec<Queued>>,
        created_at: String,
        /// When a run last began.
        prompted_at: Option<String>,
        updated_at: String,
    }
    /// A JSON-RPC message of ACP: a request, a notification or a response.
    AcpMessage {
        /// `2.0`
        jsonrpc: String,
        #[schema(value_type = Object)]
        id: Option<Value>,
        method: Option<String>,
        #[schema(value_type = Object)]
        params: Option<Value>,
        #[schema(value_type = Object)]
        result: Option<Value>,
        #[schema(value_type = Object)]
        error: Option<Value>,
    }
    /// A prompt that waits for its turn.
    Queued {
        run_id: String,
        text: String,
        by: Resolver,
    }
    /// A runtime.
    Runtime {
        runtime_id: String,
        dialect: String,
        /// `starting`, `ready`, `restarting` or `exited`.
        state: String,
        /// `{"command":[..]}` or `{"endpoint":".."}`.
        #[schema(value_type = Object)]
        connect: Value,
        cwd: String,
        agent: Option<String>,
        pid: Option<u32>,
        generation: u64,
        problem: Option<String>,
        stderr_tail: Option<String>,
        updated_at: String,
    }
    /// A question from a runtime to people.
    Request {
        request_id: String,
        session_id: String,
        run_id: String,
        runtime_id: String,
        generation: u64,
        /// `confirm`, `prompt`, `pick`, `permission` or `elicitation`.
        r#type: String,
        /// `open`, `answered`, `expired`, `withdrawn` or `orphaned`.
        state: String,
        /// The agent's words.
        title: String,
        /// The agent's words.
        message: Option<String>,
        /// The gateway's rendering of exactly what is asked, safe to show.
        display: String,
        warnings: Vec<String>,
        /// SHA-256 (hex) of the canonical request; send it with the answer.
        digest: String,
        options: Vec<Offer>,
        items: Option<Vec<Item>>,
        multi: Option<bool>,
        default_value: Option<String>,
        multiline: Option<bool>,
        secret: Option<bool>,
        danger: Option<bool>,
        allow_reason: bool,
        allow_remember: bool,
        tool_call_id: Option<String>,
        #[schema(value_type = Option<Object>)]
        native: Option<Value>,
        expires_at: Option<String>,
        opened_at: String,
        receipt: Option<Receipt>,
    }
    /// One of the answers offered.
    Offer {
        id: String,
        label: String,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or `other`.
        kind: String,
    }
    /// One of the things to pick from.
    Item {
        id: String,
        label: String,
        detail: Option<String>,
    }
    /// An answer: exactly one of `option_id`, `ok`, `value`, `ids`.
    Answer {
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        reason: Option<String>,
        remember: Option<bool>,
        digest: Option<String>,
    }
    /// The durable record of what became of a request, and who won.
    Receipt {
        request_id: String,
        state: String,
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        reason: Option<String>,
        resolved_by: Resolver,
        at: String,
        cursor: Option<String>,
        won: bool,
    }
    /// Who decided.
    Resolver {
        device_id: String,
        name: String,
    }
    /// An event.
    Envelope {
        session_id: String,
        run_id: String,
        /// Its number within the run, from 0 without a gap.
        seq: u64,
        cursor: String,
        at: String,
        kind: String,
        /// The canonical body.
        #[schema(value_type = Object)]
        event: Value,
        meta: Meta,
    }
    /// Where an event comes from.
    Meta {
        runtime_id: String,
        dialect: String,
    }
    /// What a newcomer must see of a session.
    Snapshot {
        session: Session,
        cursor: String,
        #[schema(value_type = Vec<Object>)]
        messages: Vec<Value>,
        #[schema(value_type = Vec<Object>)]
        tools: Vec<Value>,
        #[schema(value_type = Object)]
        latest: Value,
        requests: Vec<Request>,
        #[schema(value_type = Vec<Object>)]
        surfaces: Vec<Value>,
        trimmed: bool,
    }
    /// A page of events. With a `resume` other than `ok`, the snapshot comes in place of what was lost; read on from `next`.
    Page {
        events: Vec<Envelope>,
        next: String,
        head: String,
        /// `ok`, `gap`, `reset` or `ahead`.
        resume: String,
        snapshot: Option<Snapshot>,
        snapshots: Option<Vec<Snapshot>>,
    }
    /// An enrolled device.
    Device {
        device_id: String,
        name: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        created_at: String,
        last_seen_at: Option<String>,
        local: bool,
    }
    /// A device, and its token, which is shown this once.
    NewToken {
        device_id: String,
        name: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        created_at: String,
        token: String,
    }
    /// Who the bearer is.
    Me {
        device_id: String,
        name: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        #[schema(value_type = Option<Object>)]
        gateway: Option<Value>,
    }
    /// A one-time code.
    Code {
        code: String,
        expires_at: String,
    }
    /// A prompt that was taken.
    Accepted {
        run_id: String,
        queued: bool,
        ahead: u64,
        /// Where the prompt came before under the same `Idempotency-Key` and its run is over.
        ended: Option<Ended>,
    }
    /// How a run ended.
    Ended {
        status: String,
        stop_reason: Option<String>,
        message: Option<String>,
    }
    /// A run.
    Run {
        run_id: String,
    }
    /// All of them.
    Sessions {
        sessions: Vec<Session>,
    }
    /// All of them.
    Runtimes {
        runtimes: Vec<Runtime>,
    }
    /// All of them.
    Requests {
        requests: Vec<Request>,
    }
    /// All of them.
    Devices {
        devices: Vec<Device>,
    }
    /// Passages found.
    Hits {
        hits: Vec<Hit>,
    }
    /// A passage found.
    Hit {
        session_id: String,
        cursor: String,
        role: String,
        /// Matches stand between U+0002 and U+0003.
        snippet: String,
    }
    /// Whether the log takes writes.
    Ready {
        ready: bool,
        head: String,
    }
    /// RFC 9457: why something was not done. `code` is stable.
    ProblemDetails {
        r#type: String,
        title: String,
        status: u16,
        detail: String,
        code: String,
    }
}

#[derive(OpenApi)]
#[openapi(components(schemas(
    Accepted,
    AcpMessage,
    Answer,
    api::CancelRun,
    Code,
    Device,
    Devices,
    Ended,
    Envelope,
    Hit,
    Hits,
    Item,
    Me,
    Meta,
    api::NewCode,
    api::NewDevice,
    api::NewName,
    api::NewPrompt,
    api::NewSession,
    NewToken,
    Offer,
    Page,
    api::Pair,
    ProblemDetails,
    Queued,
    Ready,
    Receipt,
    Request,
    Requests,
    Resolver,
    agui::ResumeEntry,
    Run,
    agui::RunAgentInput,
    Runtime,
    Runtimes,
    Session,
    Sessions,
    Snapshot,
    api::StartRuntime,
)))]
struct Shapes;

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
];
const ALL_EVENTS: &[(&str, &str)] =
    &[("session", "Only this session; may be given several times"), EVENTS[0], EVENTS[1], EVENTS[2]];

#[rustfmt::skip] // a route a line
fn shape(route: &Route<AppState>) -> Option<Shape> {
    let (takes, gives, status, query): (_, _, _, &'static [_]) = match (route.method.as_str(), &*route.path) {
        ("GET", "/v1/me") => ("", "Me", 200, &[]),
        ("GET", "/v1/runtimes") => ("", "Runtimes", 200, &[]),
        ("POST", "/v1/runtimes") => ("StartRuntime", "Runtime", 201, &[]),
        ("GET", "/v1/runtimes/{id}") => ("", "Runtime", 200, &[]),
        ("GET", "/v1/sessions") => ("", "Sessions", 200, &[]),
        ("POST", "/v1/sessions") => ("NewSession", "Session", 201, &[]),
        ("GET", "/v1/sessions/{id}") => ("", "Session", 200, &[]),
        ("POST", "/v1/sessions/{id}/prompt") => ("NewPrompt", "Accepted", 202, &[]),
        ("POST", "/v1/sessions/{id}/cancel") => ("CancelRun", "Run", 202, &[]),
        ("GET", "/v1/sessions/{id}/events") => ("", "Page", 200, EVENTS),
        ("GET", "/v1/sessions/{id}/snapshot") => ("", "Snapshot", 200, &[]),
        ("GET", "/v1/events") => ("", "Page", 200, ALL_EVENTS),
        ("GET", "/v1/requests") => ("", "Requests", 200, &[("state", "open, answered, expired, withdrawn, orphaned or all"), ("session", "Only this session's")]),
        ("GET", "/v1/requests/{id}") => ("", "Request", 200, &[]),
        ("POST", "/v1/requests/{id}/answer") => ("Answer", "Receipt", 200, &[]),
        ("GET", "/v1/search") => ("", "Hits", 200, &[("q", "Words to look for"), ("limit", "Passages at most (20, 100 at most)")]),
        ("GET", "/v1/devices") => ("", "Devices", 200, &[]),
        ("POST", "/v1/devices") => ("NewDevice", "NewToken", 201, &[]),
        ("PATCH", "/v1/devices/{id}") => ("NewName", "Me", 200, &[]),
        ("POST", "/v1/codes") => ("NewCode", "Code", 201, &[]),
        ("POST", "/v1/pair") => ("Pair", "NewToken", 200, &[]),
        ("POST", "/ag-ui/{id}") => ("RunAgentInput", "", 200, &[]),
        ("GET", "/readyz") => ("", "Ready", 200, &[]),
        ("POST", "/acp" | "/acp/{runtime_id}") => ("AcpMessage", "", 202, &[]),
        ("DELETE", "/acp" | "/acp/{runtime_id}") => ("", "", 202, &[]),
        ("DELETE", _) => ("", "", 204, &[]),
        ("GET", super::guard::WS_PATH | "/acp" | "/acp/{runtime_id}") => ("", "", 101, &[]),
        ("GET", "/healthz" | "/metrics" | "/openapi.json") => ("", "", 200, &[]),
        _ => return None,
    };
    Some(Shape { takes, gives, status, query })
}

fn reference(name: &str) -> Value {
    json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
}

fn parameter(name: &str, place: &str, description: &str) -> Value {
    json!({
        "name": name, "in": place, "required": place == "path", "description": description, "schema": { "type": "string" },
    })
}

fn operation(route: &Route<AppState>, shape: &Shape) -> Value {
    let problem = json!({
        "description": "What went wrong, with a stable `code`",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/ProblemDetails" } } },
    });
    let status =
        StatusCode::from_u16(shape.status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let mut done = json!({ "description": status });
    if !shape.gives.is_empty() {
        done["content"] = reference(shape.gives);
    }
    let mut responses = Map::new();
    responses.insert(shape.status.to_string(), done);
    responses.insert("default".into(), problem);
    let mut parameters: Vec<Value> = shape.query.iter().map(|(name, words)| parameter(name, "query", words)).collect();
    for name in ["id", "runtime_id"] {
        if route.path.contains(&format!("{{{name}}}")) {
            parameters.insert(0, parameter(name, "path", "Which one"));
        }
    }
    if route.path.starts_with("/acp") {
        parameters.push(parameter("Acp-Connection-Id", "header", "As the response to `initialize` gave it"));
        parameters.push(parameter("Acp-Session-Id", "header", "With what belongs to a session"));
    }
    let keyed = match shape.takes {
        "Answer" => Some("The same key brings the same receipt again: 1 to 128 visible ASCII characters"),
        "NewPrompt" => Some("The same prompt under the same key is run once: 1 to 128 visible ASCII characters"),
        _ => None,
    };
    if let Some(words) = keyed {
        parameters.push(parameter("Idempotency-Key", "header", words));
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

fn description(version: &str) -> Value {
    let mut all = serde_json::to_value(Shapes::openapi()).unwrap_or_default();
    all["info"] = json!({
        "title": "Plexus",
        "version": version,
        "description": "One gateway between coding agents and screens. `GET /v1/ws` speaks the native WebSocket protocol; \
                        the events routes answer `Accept: text/event-stream` with a stream.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    all["components"]["securitySchemes"] =
        json!({ "bearer": { "type": "http", "scheme": "bearer", "description": "The token of an enrolled device" } });
    let mut paths = Map::new();
    for route in routes::table() {
        if let Some(shape) = shape(route) {
            let path = paths.entry(&*route.path).or_insert_with(|| json!({}));
            path[route.method.as_str().to_ascii_lowercase()] = operation(route, &shape);
        }
    }
    all["paths"] = Value::Object(paths);
    all
}

/// Serves the description.
pub(super) async fn serve(version: &'static str) -> Result<Response, Problem> {
    // One gateway has one version; the first to ask makes the text.
    static TEXT: LazyLock<std::sync::OnceLock<Value>> = LazyLock::new(Default::default);
    api::json(StatusCode::OK, TEXT.get_or_init(|| description(version)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model;

    fn fields(schema: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
        let all = schema["properties"].as_object().unwrap().keys().cloned().collect();
        let required = schema["required"].as_array().into_iter().flatten();
        (all, required.map(|name| name.as_str().unwrap().to_owned()).collect())
    }

    /// `full` has every field, `bare` only those that are always there.
    fn same(name: &str, full: &Value, bare: &Value) {
        let all = description("0");
        let (known, required) = fields(&all["components"]["schemas"][name]);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(full), known, "{name}: every field is described");
        assert_eq!(keys(bare), required, "{name}: what is required is always there");
    }

    fn again<T: serde::Serialize + serde::de::DeserializeOwned>(json: Value) -> Value {
        serde_json::to_value(serde_json::from_value::<T>(json).unwrap()).unwrap()
    }

    #[test]
    fn the_shapes_are_the_models_own() {
        let at = "2025-11-21T09:30:00.125Z";
        let bare = json!({
            "request_id": "q", "state": "answered", "resolved_by": { "device_id": "d", "name": "n" }, "at": at, "won": true,
        });
        let mut full = bare.clone();
        full.as_object_mut().unwrap().extend(
            json!({ "option_id": "o", "ok": true, "value": "v", "ids": [], "reason": "r", "cursor": "e:1" })
                .as_object()
                .unwrap()
                .clone(),
        );
        same("Receipt", &again::<model::Receipt>(full.clone()), &again::<model::Receipt>(bare));
        let receipt = full;

        let bare = json!({
            "session_id": "s", "runtime_id": "r", "dialect": "acp", "native_id": null, "title": null, "cwd": "/",
            "state": "idle", "open_requests": 0, "created_at": at, "updated_at": at,
        });
        let mut full = bare.clone();
        full["run_id"] = json!("r");
        full["prompted_at"] = json!(at);
        full["requests"] = json!(["q"]);
        full["queue"] = json!([{ "run_id": "r", "text": "t", "by": { "device_id": "d", "name": "n" } }]);
        same("Session", &again::<model::SessionInfo>(full.clone()), &again::<model::SessionInfo>(bare));
        same("Queued", &full["queue"][0], &full["queue"][0]);

        let bare = json!({
            "runtime_id": "r", "dialect": "acp", "state": "ready", "connect": { "command": ["x"] }, "cwd": "/",
            "generation": 1, "updated_at": at,
        });
        let mut full = bare.clone();
        full["agent"] = json!("a 1");
        full["pid"] = json!(1);
        full["problem"] = json!("p");
        full["stderr_tail"] = json!("e");
        same("Runtime", &again::<model::RuntimeInfo>(full), &again::<model::RuntimeInfo>(bare));

        let bare = json!({
            "request_id": "q", "session_id": "s", "run_id": "r", "runtime_id": "g", "generation": 1, "type": "pick",
            "state": "open", "title": "t", "display": "d", "warnings": [], "digest": "x", "options": [],
            "allow_reason": false, "allow_remember": false, "opened_at": at,
        });
        let mut full = bare.clone();
        full.as_object_mut().unwrap().extend(
            json!({
                "message": "m", "items": [{ "id": "i", "label": "l", "detail": "d" }], "multi": true, "default_value": "v",
                "multiline": true, "secret": true, "danger": true, "tool_call_id": "c", "expires_at": at, "receipt": receipt,
            })
            .as_object()
            .unwrap()
            .clone(),
        );
        let mut request: model::Request = serde_json::from_value(full).unwrap();
        request.native = Some(serde_json::value::to_raw_value(&json!({})).unwrap());
        same("Request", &serde_json::to_value(request).unwrap(), &again::<model::Request>(bare));

        let answer = json!({
            "option_id": "o", "ok": true, "value": "v", "ids": [], "reason": "r", "remember": true, "digest": "x",
        });
        same("Answer", &again::<model::Answer>(answer), &json!({}));
        let problem = Problem::not_found().to_json();
        same("ProblemDetails", &problem, &problem);
    }

    #[test]
    fn every_route_but_the_pages_files_is_described_with_its_policy() {
        let all = description("1.2.3");
        assert_eq!(all["info"]["version"], "1.2.3");
        let mut described = 0;
        for route in routes::table().iter().filter(|route| route.summary != "A file of the page") {
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
        let all = description("0");
        walk(&all, &all);
    }
}
