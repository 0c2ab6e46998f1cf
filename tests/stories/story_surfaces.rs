//! Surfaces over restarts, and what an agent's token may do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt as _;

use common::gateway::{Gateway, end_runtimes, exe, held_runtime};
use serde_json::{Value, json};

fn board() -> Value {
    json!({
        "surface": "build", "title": "Build", "pin": true, "data": { "steps": [] },
        "components": [
            { "id": "root", "component": "Table", "columns": [{ "key": "step", "label": "Step" }], "rows": { "path": "/steps" } },
        ],
    })
}

async fn call(
    gateway: &Gateway,
    token: &str,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> (u16, Value) {
    let client = reqwest::Client::new();
    let mut request = client.request(method.parse().unwrap(), format!("{}{path}", gateway.url)).bearer_auth(token);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    let reply = request.send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap_or_default())
}

fn token_file(gateway: &Gateway, session: &str) -> std::path::PathBuf {
    gateway.home.join("ui").join(session)
}

#[tokio::test]
async fn surfaces_outlive_kills_of_the_gateway_and_no_call_is_doubled() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let token = std::fs::read_to_string(token_file(&gateway, &session)).unwrap();
    assert_eq!(call(&gateway, &token, "POST", &path, Some("k0"), &board()).await.0, 200);
    let rows = |n: usize| json!({ "data": [{ "path": "/steps", "append": [{ "step": format!("step {n}") }] }] });
    for n in 0..30 {
        let key = format!("k{}", n + 1);
        let (status, body) = call(&gateway, &token, "PATCH", &format!("{path}/build"), Some(&key), &rows(n)).await;
        assert_eq!(status, 200, "{body}");
        if n % 10 == 9 {
            gateway.kill();
            gateway.again().await;
            // The agent outlived the gateway, and so did its token.
            let (status, body) = call(&gateway, &token, "PATCH", &format!("{path}/build"), Some(&key), &rows(n)).await;
            assert_eq!((status, &body["rev"]), (200, &json!(n + 2)), "a repeated call: {body}");
        }
    }
    let (_, now) = gateway.get(&path).await;
    let data = &now["surfaces"][0]["messages"].as_array().unwrap().last().unwrap()["updateDataModel"]["value"];
    let steps: Vec<&str> = data["steps"].as_array().unwrap().iter().map(|row| row["step"].as_str().unwrap()).collect();
    assert_eq!(steps, (0..30).map(|n| format!("step {n}")).collect::<Vec<_>>());
    assert_eq!((&now["surfaces"][0]["rev"], &now["surfaces"][0]["pinned"]), (&json!(31), &json!(true)));
    end_runtimes(&gateway.home);
}

#[tokio::test]
async fn surfaces_press_repeated_after_a_kill_is_too_late() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let token = std::fs::read_to_string(token_file(&gateway, &session)).unwrap();
    let shown = json!({ "surface": "go", "components": [
        { "id": "root", "component": "Row", "children": ["now", "later"] },
        { "id": "now", "component": "Button", "child": "text", "action": { "event": { "name": "now" } } },
        { "id": "later", "component": "Button", "child": "text", "action": { "event": { "name": "later" } } },
        { "id": "text", "component": "Text", "text": "Go" },
    ] });
    assert_eq!(call(&gateway, &token, "POST", &path, None, &shown).await.0, 200);
    let press = |component: &str| json!({ "rev": 1, "component": component, "event": component });
    let act = format!("{path}/go/action");
    assert_eq!(gateway.post(&act, press("now")).await.0, 200);
    gateway.kill();
    gateway.again().await;
    // A screen that lost the response repeats it; the other button is as it was.
    let (status, reply) = gateway.post(&act, press("now")).await;
    assert_eq!((status, &reply["code"]), (409, &json!("stale_surface")), "{reply}");
    assert_eq!(gateway.post(&act, press("later")).await.0, 200);
    end_runtimes(&gateway.home);
}

#[tokio::test]
async fn surfaces_agent_token_draws_in_its_session_and_does_nothing_else() {
    let mut gateway = Gateway::demo().await;
    let (session, other) = (gateway.session("demo").await, gateway.session("demo").await);
    let file = token_file(&gateway, &session);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).unwrap();
    let mine = format!("/v1/sessions/{session}");
    assert_eq!(call(&gateway, &token, "POST", &format!("{mine}/surfaces"), None, &board()).await.0, 200);
    for (method, path, body) in [
        ("GET", format!("{mine}/surfaces"), Value::Null),
        ("GET", mine.clone(), Value::Null),
        ("GET", "/v1/sessions".into(), Value::Null),
        ("GET", format!("{mine}/events"), Value::Null),
        ("POST", format!("{mine}/prompt"), json!({ "text": "x" })),
        ("POST", format!("{mine}/surfaces/build/action"), json!({ "rev": 1, "component": "root", "event": "x" })),
        ("POST", format!("/v1/sessions/{other}/surfaces"), board()),
        ("POST", "/v1/codes".into(), json!({ "scopes": ["watch"] })),
        ("GET", "/v1/devices".into(), Value::Null),
        ("DELETE", mine.clone(), Value::Null),
    ] {
        let (status, reply) = call(&gateway, &token, method, &path, None, &body).await;
        assert!(status == 403 || status == 404, "{method} {path}: {status} {reply}");
    }
    gateway.delete(&mine).await;
    assert!(!file.exists(), "the token ends with its session");
    assert_eq!(call(&gateway, &token, "POST", &format!("{mine}/surfaces"), None, &board()).await.0, 401);
    let listed = gateway.get(&format!("/v1/sessions/{other}/surfaces")).await;
    assert_eq!(listed.1["surfaces"], json!([]));
    gateway.stop().await;
}
