//! Tests over the routes of all features.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Map, Value, json};

use super::agents::resumable::RESUMABLE;
use super::frontends::gemini;
use super::router::routes::GET;
use super::router::schemas::{CURSOR, ID, schemas_with_rules};
use super::router::{BodyRule, Policy, asyncapi};
use super::sessions::TITLE_MAX;
use super::{openapi, routes};

/// The routes that a document names, each with its method where one stands before it.
fn named_routes(document: &str) -> Vec<(Option<&str>, &str)> {
    let mut named = Vec::new();
    let mut before = "";
    for word in document.split([' ', '\n', '`', '"', '(', ')', ',']).filter(|word| !word.is_empty()) {
        let path = word.strip_prefix("$U").unwrap_or(word);
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches(['.', ':', ';']);
        if path.starts_with('/') {
            let is_method = before.len() > 2 && before.bytes().all(|letter| letter.is_ascii_uppercase());
            named.push((is_method.then_some(before), path));
        }
        before = word;
    }
    named
}

/// Returns whether a document's path, with values or other names in place of the parameters, is the route's.
fn is_path_of(route: &str, path: &str) -> bool {
    let (route, path): (Vec<&str>, Vec<&str>) = (route.split('/').collect(), path.split('/').collect());
    let same = |(route, path): (&&str, &&str)| route == path || (route.starts_with('{') && !path.is_empty());
    route.len() == path.len() && route.iter().zip(&path).all(same)
}

#[test]
fn documents_name_only_routes_that_exist() {
    let (table, ports) = (routes(), gemini::routes(true, true));
    let own_port = ports.iter().map(|route| (&route.method, route.path.as_ref()));
    let routes: Vec<_> = table.iter().map(|route| (&route.method, route.path.as_ref())).chain(own_port).collect();
    let exists = |method: Option<&str>, path: &str| {
        let of_method = |known: &Method| method.is_none_or(|method| method == known.as_str());
        routes.iter().any(|(known, route)| of_method(known) && is_path_of(route, path))
    };
    let documents = [
        ("docs/http.md", include_str!("../docs/http.md"), 8),
        ("docs/protocol.md", include_str!("../docs/protocol.md"), 80),
    ];
    for (name, document, min) in documents {
        let named = named_routes(document);
        assert!(named.len() >= min, "{name}: {named:?}");
        let unknown: Vec<_> = named.into_iter().filter(|(method, path)| !exists(*method, path)).collect();
        assert!(unknown.is_empty(), "{name} names routes that do not exist: {unknown:?}");
    }
    assert!(!exists(Some("PUT"), "/v1/sessions") && !exists(None, "/v1/sessions/s_1/nothing"));
}

#[test]
fn route_that_changes_something_has_an_effect_or_is_known_to_have_none() {
    // What these routes do allows an agent nothing, takes rights or agents away, or is judged where it is read: an answer, a press
    // on a surface, the grant of a new device, what is typed in a terminal.
    let none = [
        "DELETE /v1/me",
        "POST /v1/signin",
        "DELETE /v1/runtimes/{id}",
        "POST /v1/runtimes/{id}/restart",
        "POST /v1/sessions",
        "PATCH /v1/sessions/{id}",
        "POST /v1/sessions/{id}/prompt",
        "POST /v1/sessions/{id}/cancel",
        "POST /v1/sessions/{id}/restart",
        "POST /v1/sessions/{id}/surfaces",
        "PATCH /v1/sessions/{id}/surfaces/{surface}",
        "DELETE /v1/sessions/{id}/surfaces/{surface}",
        "POST /v1/sessions/{id}/surfaces/{surface}/action",
        "POST /v1/sessions/{id}/asks",
        "POST /mcp/{id}",
        "POST /v1/sessions/{id}/changes/review",
        "POST /v1/requests/{id}/answer",
        "POST /v1/devices",
        "PATCH /v1/devices/{id}",
        "DELETE /v1/devices/{id}",
        "DELETE /v1/local-browsers",
        "POST /v1/codes",
        "POST /v1/sessions/{id}/shares",
        "POST /v1/pairings",
        "POST /v1/pairings/{id}/confirm",
        "DELETE /v1/pairings/{id}",
        "DELETE /v1/listeners/tls",
        "DELETE /v1/listeners/proxy",
        "PUT /v1/push",
        "DELETE /v1/push",
        "PATCH /v1/push/settings",
        "POST /v1/push/test",
        "POST /ag-ui/{id}",
        "POST /acp",
        "POST /acp/{runtime_id}",
        "DELETE /acp",
        "DELETE /acp/{runtime_id}",
        "POST /v1/pair",
        "POST /v1/pair/look",
        "POST /v1/pair/wait",
    ];
    let table = routes();
    let changes = table.iter().filter(|route| route.method != GET && route.effect.is_none());
    let found: BTreeSet<String> = changes.map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(
        found,
        none.map(str::to_owned).into(),
        "decide in `sessions::effects` whether a new route has the effect of a command"
    );
}

#[test]
fn route_table_has_no_duplicates() {
    let mut seen = BTreeSet::new();
    for route in routes() {
        assert!(seen.insert((route.method.to_string(), route.path.clone())), "{} {}", route.method, route.path);
    }
}

#[test]
fn routes_but_the_page_files_are_described_with_their_policy() {
    let all = openapi("1.2.3");
    assert_eq!(all["info"]["version"], "1.2.3");
    let mut described = 0;
    for route in routes().iter().filter(|route| route.summary != "A file of the page") {
        let operation = &all["paths"][&*route.path][route.method.as_str().to_ascii_lowercase()];
        let security = match route.policy {
            Policy::Public => json!([]),
            Policy::WatchOrSameUser => panic!("only a port of its own opens to neighbours"),
            Policy::Needs(scope) => json!([{ "bearer": [scope.as_str()] }]),
        };
        assert_eq!(operation["security"], security, "{} {}", route.method, route.path);
        assert_eq!(operation["requestBody"].is_object(), route.body != BodyRule::Nothing, "{}", route.path);
        assert!(!route.docs.responses.is_empty(), "{} {} documents its responses", route.method, route.path);
        described += 1;
    }
    assert!(described > 25);
}

#[test]
fn description_references_all_resolve() {
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
    for all in [openapi("0"), asyncapi("0")] {
        walk(&all, &all);
    }
}

/// The schemas of both descriptions.
fn all_schemas() -> Map<String, Value> {
    let of = |document: Value| document["components"]["schemas"].as_object().unwrap().clone();
    let mut all = of(openapi("0"));
    all.extend(of(asyncapi("0")));
    all
}

#[test]
fn schema_rules_name_existing_schemas() {
    let all = all_schemas();
    for name in schemas_with_rules() {
        assert!(all.contains_key(name), "there is no schema {name}");
    }
}

#[test]
fn schemas_of_one_name_are_equal() {
    let (openapi, asyncapi) = (openapi("0"), asyncapi("0"));
    for (name, schema) in openapi["components"]["schemas"].as_object().unwrap() {
        if let Some(other) = asyncapi["components"]["schemas"].get(name) {
            assert_eq!(schema, other, "{name}");
        }
    }
}

#[test]
fn schema_members_of_one_name_may_differ() {
    let all = all_schemas();
    let of = |shape: &str, member: &str| all[shape]["properties"][member].clone();
    assert_eq!(of("RunAgentInput", "resume")["items"]["$ref"], "#/components/schemas/ResumeEntry");
    assert_eq!(of("Hello", "resume")["$ref"], "#/components/schemas/Resume");
    assert_eq!(of("Requests", "next")["pattern"], "^[0-9]{1,20}$", "a number, not a cursor");
    assert_ne!(of("Sessions", "next")["pattern"], CURSOR);
    assert_eq!(of("ResumablePage", "next")["pattern"], RESUMABLE);
    assert_eq!(all["Cursor"]["pattern"], CURSOR);
    assert_eq!(all["SessionId"]["pattern"], ID);
    for shape in ["EditSession", "SessionRename"] {
        assert_eq!(of(shape, "title")["maxLength"], TITLE_MAX, "{shape}");
    }
}

#[test]
fn sent_members_are_absent_and_never_null() {
    let all = all_schemas();
    assert_eq!(all["Session"]["properties"]["run_id"]["$ref"], "#/components/schemas/RunId");
    assert_eq!(all["Session"]["properties"]["title"]["type"], json!(["string", "null"]), "null where there is none");
    assert_eq!(all["NewSession"]["properties"]["cwd"]["type"], json!(["string", "null"]), "clients may say null");
}
