//! serde reads an array as a struct, member by member in the order of the code. Every route and method refuses that, at any depth.
//!
//! Raw messages: no client sends these.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::front::{Front, LONG, Reply, parse};
use futures_util::{SinkExt as _, StreamExt as _};
use plexus::router::BodyRule;
use plexus::routes;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Arrays that serde could read as some struct.
fn arrays() -> [Value; 6] {
    [
        json!([]),
        json!([null, true]),
        json!([true, true]),
        json!(["x", "y"]),
        json!([null, null, true]),
        json!([["x"], {}]),
    ]
}

#[tokio::test]
async fn routes_take_no_array_for_their_body() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": "ask" })).await;
    let request = front.open_request(&session).await["request_id"].as_str().unwrap().to_owned();
    let mut checked = 0;
    for route in routes().iter().filter(|route| route.body != BodyRule::Nothing) {
        let id = match &*route.path {
            path if path.starts_with("/v1/requests") => &request,
            path if path.contains("sessions") || path.starts_with("/ag-ui") => &session,
            path if path.contains("runtimes") => "fake",
            _ => "d_local",
        };
        let path = route.path.replace("{id}", id).replace("{runtime_id}", "fake");
        checked += 1;
        for body in arrays() {
            let reply = front.admin(route.method.as_str(), &path, body.clone()).await;
            let refused = matches!(reply.status, 400 | 422) || (reply.status == 401 && path == "/v1/pair/wait");
            assert!(refused, "{} {path} takes {body}: {reply:?}", route.method);
        }
    }
    assert!(checked > 20, "{checked}");
    assert_eq!(front.open_request(&session).await["state"], "open", "nothing was decided");
}

/// The empty bodies of a request: neither header, a length of 0, and chunks without a byte.
const EMPTY_BODIES: [(&[(&str, &str)], &str); 3] = [
    (&[], ""),
    (&[("content-type", "application/json"), ("content-length", "0")], ""),
    (&[("content-type", "application/json"), ("transfer-encoding", "chunked")], "0\r\n\r\n"),
];

/// Sends a request whose head already contains the length of its body.
async fn send_framed(front: &Front, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\nhost: {}\r\n", front.address);
    text += &format!("authorization: Bearer {}\r\n", front.admin);
    headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    parse(&front.raw(format!("{text}\r\n{body}").as_bytes()).await)
}

#[tokio::test]
async fn routes_that_need_a_body_refuse_a_request_without_one() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ceilings = json!({ "day": { "tokens": 1000 } });
    let set = front.admin("PUT", "/v1/usage/ceilings", ceilings).await;
    assert_eq!(set.status, 200, "{set:?}");
    let mut checked = 0;
    for route in routes().iter().filter(|route| matches!(route.body, BodyRule::Json(_))) {
        let id = if route.path.contains("runtimes") { "fake" } else { &session };
        let path = route.path.replace("{id}", id).replace("{runtime_id}", "fake");
        checked += 1;
        for (headers, body) in EMPTY_BODIES {
            let reply = send_framed(&front, route.method.as_str(), &path, headers, body).await;
            let refused = (reply.status, reply.code());
            assert_eq!(refused, (400, "body_missing".to_owned()), "{} {path} {headers:?}: {reply:?}", route.method);
        }
    }
    assert!(checked > 20, "{checked}");
    let view = front.admin("GET", "/v1/usage/ceilings", Value::Null).await.json();
    assert_eq!(view["set"]["day"]["tokens"], 1000, "nothing was changed: {view}");
    let path = format!("/v1/sessions/{session}/shares");
    for (headers, body) in EMPTY_BODIES {
        let reply = send_framed(&front, "POST", &path, headers, body).await;
        assert_eq!(reply.status, 201, "a body that may be absent: {reply:?}");
    }
}

#[tokio::test]
async fn routes_take_no_array_for_an_object_inside() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let prompt = format!("/v1/sessions/{session}/prompt");
    let agui = format!("/ag-ui/{session}");
    let input = |more: Value| {
        let mut input = json!({ "threadId": "t", "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {} });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    for (path, body) in [
        ("/v1/runtimes", json!({ "dialect": "acp", "command": ["x"], "cwd": "/", "serve": [true, true] })),
        (&prompt, json!({ "content": [["text"]] })),
        (&prompt, json!({ "content": [["text", "hello"]] })),
        (&agui, input(json!({ "messages": [["m", "user", "hello"]] }))),
        (&agui, input(json!({ "resume": [["q", "resolved", true]] }))),
        (&agui, input(json!({ "forwardedProps": { "plexus": [null, true, true, true] } }))),
    ] {
        let reply = front.admin("POST", path, body.clone()).await;
        assert!(matches!(reply.status, 400 | 404 | 422), "{path} takes {body}: {reply:?}");
        assert_ne!(reply.code(), "interrupt_not_found", "{path} takes {body}: {reply:?}");
    }
    let push = json!({ "endpoint": "https://fcm.googleapis.com/x", "keys": ["BPk", "auth"] });
    let reply = front.admin("PUT", "/v1/push", push).await;
    assert_eq!(reply.status, 422, "{reply:?}");
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn socket(front: &Front, path: &str) -> Socket {
    let mut request = format!("ws://{}{path}", front.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", front.admin).parse().unwrap());
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

/// The response to a message.
async fn ask(socket: &mut Socket, message: &Value) -> Value {
    socket.send(Message::text(message.to_string())).await.unwrap();
    loop {
        let got = tokio::time::timeout(LONG, socket.next()).await.unwrap_or_else(|_| panic!("no answer to {message}"));
        let Message::Text(text) = got.unwrap().unwrap() else { continue };
        let got: Value = serde_json::from_str(&text).unwrap();
        if got.get("method").is_none() && (got["id"] == message["id"] || got["id"].is_null()) {
            return got;
        }
    }
}

/// Sends the messages one by one; returns the responses.
async fn asked(front: &Front, path: &str, messages: &[Value]) -> Vec<Value> {
    let mut socket = socket(front, path).await;
    let mut answers = Vec::new();
    for message in messages {
        answers.push(ask(&mut socket, message).await);
    }
    answers
}

#[tokio::test]
async fn native_websocket_methods_take_no_array() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": "ask" })).await;
    let request = front.open_request(&session).await["request_id"].as_str().unwrap().to_owned();
    let call = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let described = front.admin("GET", "/asyncapi.json", Value::Null).await.json();
    let methods: Vec<String> = described["operations"]
        .as_object()
        .unwrap()
        .values()
        .filter(|operation| operation["action"] == "receive" && operation["reply"].is_object())
        .filter_map(|operation| operation["messages"][0]["$ref"].as_str())
        .filter_map(|reference| reference.rsplit('/').next())
        .filter(|name| name.contains('.') && *name != "runtime.call")
        .map(ToOwned::to_owned)
        .collect();
    assert!(methods.len() >= 10, "{methods:?}");
    let mut messages = vec![call("initialize", json!({}))];
    for method in methods.iter().map(String::as_str).chain(["initialize"]) {
        // A method without params has nothing to misread.
        if !matches!(method, "runtime.list") {
            messages.extend(arrays().map(|params| call(method, params)));
        }
    }
    let of = |more: Value| {
        let mut params = json!({ "session_id": session });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    messages.extend([
        call("initialize", json!({ "ui_capabilities": [true] })),
        call("run.start", of(json!({ "input": ["text", "hello"] }))),
        call("run.start", of(json!({ "input": ["text", { "text": "hello" }] }))),
        call("run.start", of(json!({ "content": [["text"]] }))),
        call("run.start", of(json!({ "input": { "type": "parts", "parts": [["text", "hello"]] } }))),
    ]);
    let answers = asked(&front, "/v1/ws", &messages).await;
    for (message, answer) in messages.iter().zip(&answers).skip(1) {
        assert!(answer.get("error").is_some(), "{message}: {answer}");
    }
    for message in [json!(["2.0", 7, "runtime.list"]), json!([{ "jsonrpc": "2.0", "id": 7, "method": "runtime.list" }])]
    {
        let answer = asked(&front, "/v1/ws", &[call("initialize", json!({})), message]).await.pop().unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    // Answers to the question that the client was asked; what comes after them is heard, so they were as well.
    let mut socket = socket(&front, "/v1/ws").await;
    socket.send(Message::text(call("initialize", json!({})).to_string())).await.unwrap();
    for result in arrays() {
        let answer = json!({ "jsonrpc": "2.0", "id": request, "result": result });
        socket.send(Message::text(answer.to_string())).await.unwrap();
    }
    ask(&mut socket, &call("session.list", json!({}))).await;
    assert_eq!(front.open_request(&session).await["state"], "open", "nothing was decided");
}

#[tokio::test]
async fn acp_methods_take_no_array() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let call = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let hello = call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    let mut messages = vec![hello.clone()];
    for method in [
        "initialize",
        "session/list",
        "session/new",
        "session/load",
        "session/resume",
        "session/attach",
        "session/prompt",
        "session/set_config_option",
        "session/set_mode",
        "session/set_model",
        "session/delete",
        "session/close",
        "session/detach",
    ] {
        messages.extend(arrays().map(|params| call(method, params)));
    }
    messages.extend([
        call("session/prompt", json!({ "sessionId": session, "prompt": [["text"]] })),
        call("session/prompt", json!({ "sessionId": session, "prompt": [["text", "hello"]] })),
        call("session/new", json!({ "cwd": "/", "mcpServers": [], "_meta": { "plexus": ["fake"] } })),
    ]);
    let answers = asked(&front, "/acp/fake", &messages).await;
    for (message, answer) in messages.iter().zip(&answers).skip(1) {
        assert!(answer.get("error").is_some(), "{message}: {answer}");
    }
    for body in arrays() {
        let reply = front.admin("POST", "/acp", body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
}
