//! A request that changes while it is open, on every frontend: each client gets the new text, and no client can allow the old.
//!
//! Raw messages: each wire is read as it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::front::{Front, LONG};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

struct Client {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    /// Messages that came before the one waited for.
    kept: Vec<Value>,
}

impl Client {
    async fn new(front: &Front, path: &str, hello: Value) -> Self {
        let mut request = format!("ws://{}{path}", front.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", front.admin).parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut client = Self { socket, kept: Vec::new() };
        assert!(client.call("initialize", hello).await["result"].is_object());
        client
    }

    /// A client of the UI protocol that follows this session.
    async fn ui(front: &Front, session: &str) -> Self {
        let hello = json!({ "protocol_version": "0", "ui_capabilities": { "supports_confirm": true } });
        let mut client = Self::new(front, "/v1/ws", hello).await;
        assert!(
            client.call("session.attach", json!({ "session_id": session, "from": "now" })).await["result"].is_object()
        );
        client
    }

    /// An editor that takes part in this session.
    async fn editor(front: &Front, session: &str) -> Self {
        let can = json!({ "_meta": { "plexus": { "events": true } } });
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": can });
        let mut client = Self::new(front, "/acp", hello).await;
        let load = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
        client.say(json!({ "jsonrpc": "2.0", "id": "load", "method": "session/load", "params": load })).await;
        client
    }

    async fn say(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next wanted message; others are kept.
    async fn hear(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at);
        }
        let heard = async {
            loop {
                if let Message::Text(text) = self.socket.next().await.expect("closed").unwrap() {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if wanted(&message) {
                        return message;
                    }
                    self.kept.push(message);
                }
            }
        };
        tokio::time::timeout(LONG, heard).await.expect("it did not come")
    }

    async fn method(&mut self, method: &str) -> Value {
        self.hear(|message| message["method"] == method).await
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.say(json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params })).await;
        self.hear(|message| message["id"] == method).await
    }
}

/// A session that asks whether it may run `ls`, and the request.
async fn asked(front: &Front) -> (String, Value) {
    let session = front.session("fake").await;
    let prompt = json!({ "text": "ask ls" });
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), prompt).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let request = front.open_request(&session).await;
    assert_eq!((&request["subject"]["argv"], &request["risk"]), (&json!(["ls"]), &json!("low")), "{request}");
    (session, request)
}

/// Changes the command of the open request.
async fn changes(front: &Front, session: &str) -> Value {
    let mut agent = Client::ui(front, session).await;
    let told = agent.call("tool.ask", json!({ "session_id": session, "command": "sudo make install" })).await;
    assert!(told["result"].is_object(), "{told}");
    let deadline = std::time::Instant::now() + LONG;
    loop {
        let request = front.open_request(session).await;
        if request["revision"] == 1 {
            return request;
        }
        assert!(std::time::Instant::now() < deadline, "{request}");
    }
}

/// Checks that a request has the new text everywhere and is marked as changed.
fn reads_anew(request: &Value, before: &Value) {
    assert_eq!(
        (&request["subject"]["argv"], &request["risk"]),
        (&json!(["sudo make install"]), &json!("danger")),
        "{request}"
    );
    assert_eq!((&request["changed"], &request["request_id"]), (&json!(true), &before["request_id"]), "{request}");
    assert_ne!(request["digest"], before["digest"]);
}

async fn is_open(front: &Front, request: &Value) -> bool {
    let path = format!("/v1/requests/{}", request["request_id"].as_str().unwrap());
    front.admin("GET", &path, Value::Null).await.json()["state"] == "open"
}

#[tokio::test]
async fn changed_request_over_http_needs_the_new_digest() {
    let front = Front::new().await;
    let (session, before) = asked(&front).await;
    let after = changes(&front, &session).await;
    reads_anew(&after, &before);
    let path = format!("/v1/requests/{}", before["request_id"].as_str().unwrap());
    reads_anew(&front.admin("GET", &path, Value::Null).await.json(), &before);
    let page = front.admin("GET", &format!("/v1/sessions/{session}/events?after="), Value::Null).await.json();
    let told = page["events"].as_array().unwrap().iter().find(|event| event["kind"] == "request_updated");
    reads_anew(&told.unwrap()["event"], &before);
    let snapshot = front.admin("GET", &format!("/v1/sessions/{session}/snapshot"), Value::Null).await.json();
    reads_anew(&snapshot["requests"][0], &before);

    let answer = async |answer: Value| front.admin("POST", &format!("{path}/answer"), answer).await;
    for stale in
        [json!({ "ok": true, "digest": before["digest"] }), json!({ "option_id": "yes" }), json!({ "ok": true })]
    {
        let reply = answer(stale.clone()).await;
        assert_eq!((reply.status, reply.code().as_str()), (409, "stale_digest"), "{stale}");
    }
    assert!(is_open(&front, &before).await);
    assert_eq!(answer(json!({ "ok": true, "digest": after["digest"] })).await.status, 200);
}

#[tokio::test]
async fn changed_request_over_websocket_gets_a_new_identifier() {
    let front = Front::new().await;
    let (session, before) = asked(&front).await;
    let mut ui = Client::ui(&front, &session).await;
    let first = ui.method("ui.confirm.request").await;
    assert_eq!(first["params"]["message"].as_str().unwrap().lines().next(), Some("ls"), "{first}");
    let after = changes(&front, &session).await;
    let told = ui.hear(|message| message["params"]["kind"] == "request_updated").await;
    reads_anew(&told["params"]["event"], &before);
    let again = ui.method("ui.confirm.request").await;
    assert!(again["params"]["message"].as_str().unwrap().contains("sudo make install"), "{again}");
    assert_ne!(again["id"], first["id"]);

    // The panel opened before: its answer is to the old text.
    ui.say(json!({ "jsonrpc": "2.0", "id": first["id"], "result": { "ok": true } })).await;
    let refused = ui.method("gateway.error").await;
    assert_eq!(refused["params"]["error"]["data"]["code"], "stale_digest", "{refused}");
    for stale in [json!({ "digest": before["digest"] }), json!({})] {
        let mut stale = stale.clone();
        (stale["request_id"], stale["ok"]) = (before["request_id"].clone(), json!(true));
        let refused = ui.call("ui.request.answer", stale).await;
        assert_eq!(refused["error"]["data"]["code"], "stale_digest", "{refused}");
    }
    assert!(is_open(&front, &after).await);
    // A client that joins now gets the new text once.
    let mut late = Client::ui(&front, &session).await;
    assert_eq!(late.method("ui.confirm.request").await["id"], again["id"]);
    ui.say(json!({ "jsonrpc": "2.0", "id": again["id"], "result": { "ok": true } })).await;
    let resolved = late.method("ui.request.resolved").await;
    assert_eq!((&resolved["params"]["state"], &resolved["params"]["option_id"]), (&json!("answered"), &json!("yes")));
}

#[tokio::test]
async fn changed_request_in_an_editor_replaces_the_old_question() {
    let front = Front::new().await;
    let (session, before) = asked(&front).await;
    let mut editor = Client::editor(&front, &session).await;
    let first = editor.method("session/request_permission").await;
    assert!(first["params"].to_string().contains("ls"), "{first}");
    changes(&front, &session).await;
    let taken = editor.method("$/cancel_request").await;
    assert_eq!(taken["params"]["requestId"], first["id"], "{taken}");
    let again = editor.method("session/request_permission").await;
    assert!(again["params"].to_string().contains("sudo make install"), "{again}");
    assert_ne!(again["id"], first["id"]);

    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    editor.say(json!({ "jsonrpc": "2.0", "id": first["id"], "result": yes })).await;
    // Calls are served in order: once the next one is answered, this one was handled.
    editor.call("session/list", json!({})).await;
    assert!(is_open(&front, &before).await, "a yes to the older words allows nothing");
    editor.say(json!({ "jsonrpc": "2.0", "id": again["id"], "result": yes })).await;
    let deadline = std::time::Instant::now() + LONG;
    while is_open(&front, &before).await {
        assert!(std::time::Instant::now() < deadline, "it is not answered");
    }
}

#[tokio::test]
async fn changed_request_over_ag_ui_ignores_a_resume_of_the_old_words() {
    let front = Front::new().await;
    let (session, before) = asked(&front).await;
    let body = |more: Value| {
        let mut body = json!({
            "threadId": session, "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let path = format!("/ag-ui/{session}");
    let interrupts = async || {
        let reply = front.admin("POST", &path, body(json!({}))).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let events = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
        events.last().unwrap()["outcome"]["interrupts"].clone()
    };
    let shown = interrupts().await;
    assert!(shown[0].to_string().contains("\"ls\""), "{shown}");
    let after = changes(&front, &session).await;
    let shown = interrupts().await;
    assert!(shown[0].to_string().contains("sudo make install"), "{shown}");
    let resume = async |payload: Value| {
        let entry = json!([{ "interruptId": before["request_id"], "status": "resolved", "payload": payload }]);
        front.admin("POST", &path, body(json!({ "resume": entry }))).await
    };
    for stale in [json!({ "approved": true }), json!({ "approved": true, "digest": before["digest"] })] {
        let reply = resume(stale.clone()).await;
        assert_eq!((reply.status, reply.code().as_str()), (409, "stale_digest"), "{stale} {reply:?}");
    }
    assert!(is_open(&front, &before).await);
    let reply = resume(json!({ "approved": true, "digest": after["digest"] })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(!is_open(&front, &before).await);
}
