//! What a device may do and for how long, over real sockets: levels of risk on every surface, links to a session, and what
//! is open when a device ends.
//!
//! Raw messages: what a device may do that has no right to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::front::{Front, LONG};
use futures_util::{SinkExt as _, StreamExt as _};
use plexus::auth::{Admin, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

async fn socket(front: &Front, path: &str, headers: &[(&'static str, &str)]) -> Socket {
    let mut request = format!("ws://{}{path}", front.address).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    tokio_tungstenite::connect_async(request).await.unwrap().0
}

async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

/// The next wanted message.
async fn hear(socket: &mut Socket, wanted: impl Fn(&Value) -> bool) -> Value {
    let heard = async {
        loop {
            if let Message::Text(text) = socket.next().await.expect("closed").unwrap() {
                let message: Value = serde_json::from_str(&text).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
        }
    };
    tokio::time::timeout(LONG, heard).await.expect("it did not come")
}

/// The code of a close.
async fn closed(socket: &mut Socket) -> u16 {
    let heard = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(close)))) => return close.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(LONG, heard).await.expect("it stays open")
}

async fn ask(front: &Front, session: &str, line: &str) -> Value {
    let prompt = json!({ "text": format!("ask {line}") });
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), prompt).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    front.open_request(session).await
}

#[tokio::test]
async fn risk_level_of_a_device_holds_on_every_frontend() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let limited = json!({ "scopes": ["watch", "prompt", "approve"], "approve_up_to": "low" });
    let token = front.token(limited).await;
    let bearer = format!("Bearer {token}");
    let request = ask(&front, &session, "rm -rf /").await;
    let id = request["request_id"].as_str().unwrap().to_owned();
    assert_eq!(request["risk"], "danger");
    let open = async || front.admin("GET", &format!("/v1/requests/{id}"), Value::Null).await.json()["state"] == "open";

    // HTTP.
    for answer in [json!({ "ok": true }), json!({ "option_id": "yes" })] {
        let reply = front.call(&token, "POST", &format!("/v1/requests/{id}/answer"), answer).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "risk_too_high"));
        assert_eq!(reply.json()["risk"], "danger");
    }
    // The refusal has the reasons and the devices that may answer.
    let told = front.call(&token, "POST", &format!("/v1/requests/{id}/answer"), json!({ "ok": true })).await.json();
    assert_eq!((&told["approve_up_to"], &told["devices"]), (&json!("low"), &json!([])), "{told}");
    assert_eq!(told["risk_reasons"], request["risk_reasons"]);
    let why = request["risk_reasons"][0].as_str().unwrap();
    let said = format!(
        "too risky for this device: this is danger ({why}), and the limit of this device is low. Deny here, or allow at your \
         computer"
    );
    assert!(told["detail"].as_str().unwrap().starts_with(&said), "{told}");
    // The native WebSocket: by method, and by a response.
    let mut ws = socket(&front, "/v1/ws", &[("authorization", &bearer)]).await;
    let can = json!({ "supports_confirm": true });
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocol_version": "0", "ui_capabilities": can } })).await;
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach", "params": { "session_id": session, "from": "now" } })).await;
    let hello = hear(&mut ws, |message| message["method"] == "gateway.hello").await;
    assert_eq!(hello["params"]["you"]["approve_up_to"], "low");
    let answer = json!({ "request_id": id, "ok": true });
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 3, "method": "ui.request.answer", "params": answer })).await;
    let reply = hear(&mut ws, |message| message["id"] == 3).await;
    assert_eq!((&reply["error"]["code"], &reply["error"]["data"]["code"]), (&json!(-32019), &json!("risk_too_high")));
    assert!(reply["error"]["message"].as_str().unwrap().starts_with(&said), "{reply}");
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": true } })).await;
    let told = hear(&mut ws, |message| message["method"] == "gateway.error").await;
    assert_eq!(told["params"]["error"]["data"]["code"], "risk_too_high");
    assert!(told["params"]["error"]["message"].as_str().unwrap().starts_with(&said), "{told}");
    // Methods that act without asking.
    let params = json!({ "session_id": session, "mode_id": "yolo" });
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 4, "method": "session.set_mode", "params": params })).await;
    let reply = hear(&mut ws, |message| message["id"] == 4).await;
    assert_eq!(reply["error"]["data"]["code"], "risk_too_high", "{reply}");
    // ACP.
    let mut acp = socket(&front, "/acp", &[("authorization", &bearer)]).await;
    let can = json!({ "_meta": { "plexus": { "events": true } } });
    say(&mut acp, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1, "clientCapabilities": can } })).await;
    say(&mut acp, json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": { "sessionId": session, "cwd": "/", "mcpServers": [] } })).await;
    let asked = hear(&mut acp, |message| message["method"] == "session/request_permission").await;
    let offered: Vec<&Value> = asked["params"]["options"].as_array().unwrap().iter().map(|o| &o["optionId"]).collect();
    assert_eq!(offered, ["no", "plexus:later"], "what it may not choose is not offered");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    say(&mut acp, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome })).await;
    let told = hear(&mut acp, |message| message["method"] == "_plexus/answer_refused").await;
    assert_eq!(told["params"]["error"]["data"]["code"], "risk_too_high", "{told}");
    assert!(told["params"]["error"]["message"].as_str().unwrap().starts_with(&said), "{told}");
    // AG-UI.
    let resume = json!([{ "interruptId": id, "status": "resolved", "payload": { "optionId": "yes" } }]);
    let body = json!({
        "threadId": session, "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {},
        "resume": resume,
    });
    let reply = front.call(&token, "POST", &format!("/ag-ui/{session}"), body).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "risk_too_high"), "{reply:?}");
    assert!(reply.json()["detail"].as_str().unwrap().starts_with(&said), "{reply:?}");
    assert!(open().await, "it waits for somebody who may");
    let reply = front.admin("POST", &format!("/v1/requests/{id}/answer"), json!({ "option_id": "no" })).await;
    assert_eq!(reply.status, 200, "{reply:?}");

    let request = ask(&front, &session, "ls").await;
    assert_eq!(request["risk"], "low");
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    assert_eq!(front.call(&token, "POST", &path, json!({ "option_id": "yes" })).await.status, 200);
}

/// An AG-UI run with answers to interrupts.
fn resumed(session: &str, run: &str, resume: Value) -> Value {
    json!({
        "threadId": session, "runId": run, "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {},
        "resume": resume,
    })
}

#[tokio::test]
async fn limited_device_denies_on_every_frontend() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let token = front.token(json!({ "scopes": ["watch", "prompt", "approve"], "approve_up_to": "low" })).await;
    let bearer = format!("Bearer {token}");
    let mut ws = socket(&front, "/v1/ws", &[("authorization", &bearer)]).await;
    let can = json!({ "supports_confirm": true });
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocol_version": "0", "ui_capabilities": can } })).await;
    say(&mut ws, json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach", "params": { "session_id": session, "from": "now" } })).await;
    let mut acp = socket(&front, "/acp", &[("authorization", &bearer)]).await;
    say(&mut acp, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1, "clientCapabilities": {} } })).await;
    say(&mut acp, json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": { "sessionId": session, "cwd": "/", "mcpServers": [] } })).await;
    hear(&mut acp, |message| message["id"] == 2).await;
    let post = async |path: &str, body: Value| front.call(&token, "POST", path, body).await;
    for way in ["http option", "http ok", "method", "response", "acp", "ag-ui", "ag-ui cancelled", "cancel of the run"]
    {
        let request = ask(&front, &session, "rm -rf /").await;
        let id = request["request_id"].as_str().unwrap().to_owned();
        let answer = format!("/v1/requests/{id}/answer");
        match way {
            "http option" => assert_eq!(post(&answer, json!({ "option_id": "no" })).await.status, 200),
            "http ok" => assert_eq!(post(&answer, json!({ "ok": false })).await.status, 200),
            "method" => {
                let params = json!({ "request_id": id, "ok": false });
                say(&mut ws, json!({ "jsonrpc": "2.0", "id": 3, "method": "ui.request.answer", "params": params }))
                    .await;
                assert_eq!(hear(&mut ws, |message| message["id"] == 3).await["result"]["won"], true);
            }
            "response" => say(&mut ws, json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": false } })).await,
            "acp" => {
                let asked = hear(&mut acp, |message| message["id"] == *id && message.get("method").is_some()).await;
                let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "no" } });
                say(&mut acp, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome })).await;
            }
            "ag-ui" | "ag-ui cancelled" => {
                let no = match way {
                    "ag-ui" => json!({ "interruptId": id, "status": "resolved", "payload": { "optionId": "no" } }),
                    _ => json!({ "interruptId": id, "status": "cancelled" }),
                };
                let reply = post(&format!("/ag-ui/{session}"), resumed(&session, &id, json!([no]))).await;
                assert_eq!(reply.status, 200, "{way}: {reply:?}");
            }
            _ => assert_eq!(post(&format!("/v1/sessions/{session}/cancel"), json!({})).await.status, 202),
        }
        let path = format!("/v1/requests/{id}");
        let closed = async {
            loop {
                let request = front.admin("GET", &path, Value::Null).await.json();
                if request["state"] != "open" {
                    return request;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let request = tokio::time::timeout(LONG, closed).await.unwrap_or_else(|_| panic!("{way}: still open"));
        let wanted = if way == "cancel of the run" { json!("withdrawn") } else { json!("answered") };
        assert_eq!(request["state"], wanted, "{way}: {request}");
        assert_ne!(request["receipt"]["ok"], true, "{way}: {request}");
    }
}

#[tokio::test]
async fn request_left_for_the_desk_stays_open_and_is_not_asked_again() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let token = front.token(json!({ "scopes": ["watch", "prompt", "approve"], "approve_up_to": "elevated" })).await;
    let bearer = format!("Bearer {token}");
    let request = ask(&front, &session, "rm -rf /").await;
    let id = request["request_id"].as_str().unwrap();
    let state = async || front.admin("GET", &format!("/v1/requests/{id}"), Value::Null).await.json()["state"].clone();
    for events in [false, true] {
        let mut acp = socket(&front, "/acp", &[("authorization", &bearer)]).await;
        let can = json!({ "_meta": { "plexus": { "events": events } } });
        say(&mut acp, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1, "clientCapabilities": can } })).await;
        say(&mut acp, json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": { "sessionId": session, "cwd": "/", "mcpServers": [] } })).await;
        let asked = hear(&mut acp, |message| message["method"] == "session/request_permission").await;
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "plexus:later" } });
        say(&mut acp, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome })).await;
        let told = hear(&mut acp, |message| message["params"]["update"]["toolCallId"] == id).await;
        assert_eq!(told["params"]["update"]["status"], "pending");
        let words = told["params"]["update"].to_string();
        assert!(words.contains("Waits for your computer") && words.contains("rm -rf /"), "{words}");
        assert_eq!(state().await, "open");
        // A reply to a later call comes without another dialog before it.
        say(&mut acp, json!({ "jsonrpc": "2.0", "id": 3, "method": "session/list", "params": {} })).await;
        let next =
            hear(&mut acp, |message| message["id"] == 3 || message["method"] == "session/request_permission").await;
        assert_eq!(next["id"], 3);
        // A client that was never asked about it is not affected.
        if !events {
            continue;
        }
        // AG-UI: the run goes on without the interrupt, until it is answered at the desk.
        let later = json!([{ "interruptId": id, "status": "resolved", "payload": { "decideAtDesk": true } }]);
        let path = format!("/ag-ui/{session}");
        let stream = front.call(&token, "POST", &path, resumed(&session, "later", later));
        let desk = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(state().await, "open");
            front.admin("POST", &format!("/v1/requests/{id}/answer"), json!({ "option_id": "yes" })).await
        };
        let (stream, decided) = tokio::join!(stream, desk);
        assert_eq!((stream.status, decided.status), (200, 200), "{stream:?}");
        assert!(stream.body.contains("\"deferred\":true"), "{}", stream.body);
        assert!(!stream.body.contains("\"interrupt\""), "{}", stream.body);
        let ended = hear(&mut acp, |message| message["params"]["update"]["toolCallId"] == id).await;
        assert_eq!(ended["params"]["update"]["status"], "completed");
    }
}

#[tokio::test]
async fn action_above_the_limit_is_refused_on_every_route() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let all = json!(["watch", "prompt", "approve", "admin"]);
    let mut devices = Vec::new();
    for limit in ["low", "elevated", "danger"] {
        devices.push((limit, front.token(json!({ "scopes": all, "approve_up_to": limit })).await));
    }
    devices.push(("none", front.token(json!({ "scopes": all })).await));
    let level = |name: &str| ["low", "elevated", "danger", "none"].iter().position(|level| *level == name).unwrap();
    let device = |scopes: Value, limit: Option<&str>| match limit {
        Some(limit) => json!({ "scopes": scopes, "approve_up_to": limit }),
        None => json!({ "scopes": scopes }),
    };
    let named = |mut grant: Value| {
        grant["name"] = json!("new");
        grant
    };
    let changes = format!("/v1/sessions/{session}/changes");
    let (undo, redo) = (format!("{changes}/undo"), format!("{changes}/redo"));
    let (gone, acts, cancel) = ("/v1/sessions/s_gone", json!(["approve"]), format!("/v1/sessions/{session}/cancel"));
    let title = format!("/v1/sessions/{session}");
    let rows: Vec<(&str, &str, Value, &str)> = vec![
        ("POST", undo.as_str(), json!({ "path": "a", "digest": "d" }), "elevated"),
        ("POST", redo.as_str(), json!({ "patch_id": "p" }), "elevated"),
        ("POST", "/v1/worktrees/remove", json!({ "path": "/nowhere" }), "elevated"),
        ("POST", "/v1/worktrees/remove", json!({ "path": "/nowhere", "lost": "d" }), "danger"),
        ("POST", "/v1/worktrees/remove", json!({ "path": "/nowhere", "delete_branch": true }), "danger"),
        (
            "POST",
            "/v1/sessions",
            json!({ "runtime_id": "fake", "cwd": "/nowhere", "worktree": { "branch": "b" } }),
            "elevated",
        ),
        ("DELETE", gone, Value::Null, "elevated"),
        ("POST", "/v1/link/nobody", json!({ "action": "link", "digest": "d" }), "elevated"),
        ("POST", "/v1/runtimes", json!({ "preset": "nobody" }), "elevated"),
        ("POST", "/v1/runtimes", json!({ "preset": "nobody", "env": { "LD_PRELOAD": "/x" } }), "danger"),
        ("POST", "/v1/runtimes", json!({ "dialect": "nobody", "command": ["/nowhere"] }), "danger"),
        (
            "POST",
            "/v1/sessions",
            json!({ "cwd": "/", "start": { "dialect": "codelia", "command": ["/nowhere"] } }),
            "danger",
        ),
        ("PUT", "/v1/usage/ceilings", json!({ "nonsense": 1 }), "elevated"),
        ("PUT", "/v1/listeners/tls", json!({ "listen": "nonsense" }), "elevated"),
        ("PUT", "/v1/listeners/proxy", json!({ "public_url": "nonsense" }), "elevated"),
        ("POST", "/v1/devices", named(device(acts.clone(), None)), "danger"),
        ("POST", "/v1/devices", named(device(acts.clone(), Some("elevated"))), "elevated"),
        ("POST", "/v1/devices", named(device(json!(["admin"]), Some("low"))), "low"),
        ("POST", "/v1/devices", named(device(json!(["watch", "prompt"]), None)), "low"),
        ("POST", "/v1/codes", device(acts.clone(), None), "danger"),
        ("POST", "/v1/codes", device(acts.clone(), Some("elevated")), "elevated"),
        ("POST", "/v1/pairings", device(acts.clone(), None), "danger"),
        ("POST", "/v1/pairings", device(acts, Some("elevated")), "elevated"),
        // What allows nothing has no limit.
        ("POST", cancel.as_str(), json!({}), "low"),
        ("PATCH", title.as_str(), json!({ "title": "mine" }), "low"),
        ("POST", "/v1/runtimes/nobody/restart", Value::Null, "low"),
    ];
    for (limit, token) in &devices {
        for (method, path, body, risk) in &rows {
            let reply = front.call(token, method, path, body.clone()).await;
            let refused = reply.status == 403 && reply.code() == "risk_too_high";
            assert_eq!(refused, level(limit) < level(risk), "{limit}: {method} {path} {body}: {reply:?}");
            if refused {
                let told = reply.json();
                // The route's own effect may be refused before that of its body is read.
                let refused_at = level(told["risk"].as_str().unwrap());
                assert!(refused_at > level(limit) && refused_at <= level(risk), "{told}");
                assert_eq!(told["approve_up_to"], *limit, "{told}");
                assert!(told["detail"].as_str().unwrap().contains("Do it at your computer"), "{told}");
            }
        }
    }
    // A device that types runs anything: there is no such device with a limit.
    let types = named(device(json!(["watch", "type"]), Some("elevated")));
    let reply = front.admin("POST", "/v1/devices", types).await;
    assert!(reply.status == 422 && reply.json()["detail"].as_str().unwrap().contains("approve_up_to"), "{reply:?}");
}

#[tokio::test]
async fn agents_method_that_acts_without_asking_needs_a_device_without_limit() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    for limit in ["low", "elevated"] {
        let scopes = json!(["watch", "prompt", "approve", "admin"]);
        let bearer = format!("Bearer {}", front.token(json!({ "scopes": scopes, "approve_up_to": limit })).await);
        let mut ws = socket(&front, "/v1/ws", &[("authorization", &bearer)]).await;
        let mut acp = socket(&front, "/acp", &[("authorization", &bearer)]).await;
        let params = json!({ "protocol_version": "0", "protocolVersion": 1 });
        for socket in [&mut ws, &mut acp] {
            say(socket, json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        }
        for (n, method) in
            ["session.set_mode", "session.set_config_option", "shell.exec", "nobody.knows"].into_iter().enumerate()
        {
            let params = json!({ "session_id": session, "mode_id": "yolo", "config_id": "mode", "value": "yolo" });
            say(&mut ws, json!({ "jsonrpc": "2.0", "id": n + 1, "method": method, "params": params })).await;
            let reply = hear(&mut ws, |message| message["id"] == n + 1).await;
            assert_eq!(reply["error"]["data"]["code"], "risk_too_high", "{limit} {method}: {reply}");
            let Some(own) = method.strip_prefix("session.") else { continue };
            let params = json!({ "sessionId": session, "modeId": "yolo", "configId": "mode", "value": "yolo" });
            let method = format!("session/{own}");
            say(&mut acp, json!({ "jsonrpc": "2.0", "id": n + 1, "method": method, "params": params })).await;
            let reply = hear(&mut acp, |message| message["id"] == n + 1).await;
            assert_eq!(reply["error"]["data"]["code"], "risk_too_high", "{limit} {method}: {reply}");
        }
    }
}

#[tokio::test]
async fn link_shows_one_session_until_it_expires() {
    let front = Front::new().await;
    let (shown, other) = (front.session("one").await, front.session("two").await);
    let path = format!("/v1/sessions/{shown}/shares");
    for hours in [json!(0), json!(721), json!(-1), json!("1")] {
        assert_eq!(front.admin("POST", &path, json!({ "hours": hours })).await.status, 422);
    }
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    assert_eq!(front.call(&watcher, "POST", &path, json!({})).await.status, 403);
    let reply = front.admin("POST", &path, Value::Null).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let share = reply.json();
    let token = share["token"].as_str().unwrap();
    assert_eq!(share["url"], format!("http://{}/#share={token}", front.address));
    let me = front.call(token, "GET", "/v1/me", Value::Null).await.json();
    assert_eq!((&me["kind"], &me["scopes"], &me["sessions"]), (&json!("share"), &json!(["watch"]), &json!([shown])));
    assert_eq!(me["gateway"]["name"], "Plexus", "nothing of the machine");
    let seen = front.call(token, "GET", "/v1/runtimes", Value::Null).await.json()["runtimes"].clone();
    assert_eq!((seen.as_array().unwrap().len(), &seen[0]["runtime_id"]), (1, &json!("one")));
    assert_eq!((&seen[0]["connect"], &seen[0]["cwd"]), (&json!({ "command": [] }), &json!("")));
    for hidden in ["pid", "instance", "problem", "stderr_tail"] {
        assert!(seen[0].get(hidden).is_none(), "{hidden}: {seen}");
    }
    assert_eq!(me["expires_at"], share["expires_at"]);
    for (method, path, body, status) in [
        ("GET", format!("/v1/sessions/{shown}"), Value::Null, 200),
        ("GET", format!("/v1/sessions/{shown}/snapshot"), Value::Null, 200),
        ("GET", format!("/v1/sessions/{other}"), Value::Null, 404),
        ("POST", format!("/v1/sessions/{shown}/prompt"), json!({ "text": "hi" }), 403),
        ("POST", format!("/v1/sessions/{shown}/shares"), Value::Null, 403),
        ("GET", "/v1/devices".into(), Value::Null, 403),
        // Other devices keep theirs.
        ("DELETE", "/v1/me".into(), Value::Null, 403),
    ] {
        let reply = front.call(token, method, &path, body).await;
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    let (bearer, own) = (format!("Bearer {token}"), format!("http://{}", front.address));
    let headers = [("authorization", bearer.as_str()), ("origin", &own), ("content-type", "application/json")];
    let reply = front.send("POST", "/v1/signin", &headers, r#"{"cookie":true}"#).await;
    assert_eq!(reply.code(), "only_a_link", "it becomes nothing that lasts longer");
    let listed = front.admin("GET", "/v1/devices", Value::Null).await.json();
    let listed = listed["devices"].as_array().unwrap().iter().find(|one| one["kind"] == "share").unwrap().clone();
    assert_eq!(
        front
            .admin("DELETE", &format!("/v1/devices/{}", listed["device_id"].as_str().unwrap()), Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(front.call(token, "GET", "/v1/me", Value::Null).await.status, 401);

    // An expired device is refused, and its connections are closed.
    let local = front.core.auth.check(&front.admin).unwrap();
    let permit = local.permit::<Admin>(Target::Gateway).unwrap();
    let short = Duration::from_millis(1500);
    let (_, token) = front.core.auth.share(&permit, shown.parse().unwrap(), "short", short).await.unwrap();
    let bearer = format!("Bearer {token}");
    let mut ws = socket(&front, "/v1/ws", &[("authorization", &bearer)]).await;
    assert_eq!(closed(&mut ws).await, 4001);
    assert_eq!(front.call(&token, "GET", "/v1/me", Value::Null).await.status, 401);
}

#[tokio::test]
async fn revocation_closes_everything_a_device_has_open() {
    let front = Front::new().await;
    let own = format!("http://{}", front.address);
    let code = front
        .admin("POST", "/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] }))
        .await
        .json()["code"]
        .clone();
    let body = json!({ "code": code, "name": "page", "cookie": true }).to_string();
    let headers = [("content-type", "application/json"), ("origin", own.as_str())];
    let paired = front.send("POST", "/v1/pair", &headers, &body).await;
    let cookie = paired.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let id = paired.json()["device_id"].as_str().unwrap().to_owned();
    let online = async || {
        let all = front.admin("GET", "/v1/devices", Value::Null).await.json();
        all["devices"].as_array().unwrap().iter().find(|one| one["device_id"] == *id).unwrap()["online"] == true
    };
    assert!(!online().await);

    let page = [("origin", own.as_str()), ("cookie", cookie.as_str())];
    let mut sockets = [socket(&front, "/v1/ws", &page).await, socket(&front, "/acp", &page).await];
    let mut streams = Vec::new();
    for (path, accept) in
        [("/v1/events?after=now", "text/event-stream"), ("/v1/events?after=now&wait=60", "application/json")]
    {
        let mut stream = TcpStream::connect(front.address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nsec-fetch-site: same-origin\r\ncookie: {cookie}\r\naccept: {accept}\r\n\r\n",
            front.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    let mut first = [0; 12];
    streams[0].read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let seen = async {
        while !online().await {
            tokio::time::sleep(Duration::from_millis(5)).await
        }
    };
    tokio::time::timeout(LONG, seen).await.expect("it has something open");

    assert_eq!(front.admin("DELETE", &format!("/v1/devices/{id}"), Value::Null).await.status, 204);
    for socket in &mut sockets {
        assert_eq!(closed(socket).await, 4001);
    }
    for mut stream in streams {
        let mut rest = Vec::new();
        let end = tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "it stays open: {}", String::from_utf8_lossy(&rest));
    }
}

#[tokio::test]
async fn watch_only_device_reads_where_a_request_can_be_answered() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let device = async |name: &str, more: Value| {
        let mut grant = json!({ "name": name, "scopes": ["watch", "approve"] });
        grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = front.admin("POST", "/v1/devices", grant).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["token"].as_str().unwrap().to_owned()
    };
    let phone = device("phone", json!({ "approve_up_to": "elevated" })).await;
    let watch = device("watch", json!({ "approve_up_to": "low" })).await;
    let guest = device("guest", json!({ "approve_up_to": "elevated", "sessions": [session] })).await;
    device("laptop", json!({})).await;
    device("tablet", json!({ "scopes": ["watch"] })).await;
    device("other", json!({ "runtimes": ["another"] })).await;

    let me = async |token: &str| front.call(token, "GET", "/v1/me", Value::Null).await.json();
    assert_eq!(me(&phone).await["answered_on"], json!({ "danger": ["laptop"] }), "before it is asked");
    assert_eq!(me(&watch).await["answered_on"], json!({ "elevated": ["phone", "laptop"], "danger": ["laptop"] }));
    assert_eq!(
        me(&guest).await["answered_on"],
        json!({ "danger": [] }),
        "whose devices there are is not told to guests"
    );

    let request = ask(&front, &session, "unreadable").await;
    assert_eq!((&request["risk"], &request["subject"]["type"]), (&json!("danger"), &json!("unreadable")), "{request}");
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    for (token, devices) in [(&phone, json!(["laptop"])), (&watch, json!(["laptop"])), (&guest, json!([]))] {
        let reply = front.call(token, "POST", &path, json!({ "option_id": "yes" })).await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "risk_too_high"));
        let told = reply.json();
        assert_eq!(told["devices"], devices, "{told}");
        let detail = told["detail"].as_str().unwrap();
        assert!(
            detail.contains("Plexus cannot tell what this would do: the agent did not send the tool's input"),
            "{detail}"
        );
        assert_eq!(detail.ends_with("on a device that may allow danger: laptop"), devices != json!([]), "{detail}");
    }
}
