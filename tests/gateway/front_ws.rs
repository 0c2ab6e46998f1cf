//! The native WebSocket over real sockets. One file: all tests use the same client, which can also break the protocol.
//!
//! First the UI protocol, then RFC 6455 with deliberate violations.
//!
//! Raw sockets: frames are counted, cut and broken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::VecDeque;
use std::time::Duration;

use common::front::{self, Front, LONG};
use common::letter::assert_letter;
use plexus::router::{GateLimits, ListenLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// A client that can break the protocol.
struct Ws {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Messages that came before the one waited for.
    kept: VecDeque<Value>,
    next_id: u64,
}

#[derive(Debug, PartialEq)]
enum Got {
    Text(Value),
    Pong(Vec<u8>),
    Ping,
    Close(u16, String),
    Eof,
}

fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x12, 0x34, 0x56, 0x78];
    let mut out = vec![head];
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend((len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
            out.extend((len as u64).to_be_bytes());
        }
    }
    out.extend(mask);
    out.extend(payload.iter().enumerate().map(|(n, byte)| byte ^ mask[n % 4]));
    out
}

fn handshake(front: &Front, token: &str, more: &str) -> String {
    format!(
        "GET /v1/ws HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: keep-alive, Upgrade\r\n\
         upgrade: WebSocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
        front.address
    )
}

impl Ws {
    async fn open(front: &Front, token: &str) -> Self {
        Self::over(TcpStream::connect(front.address).await.unwrap(), front, token, &[]).await
    }

    /// `early` comes in the same packet as the handshake.
    async fn over(mut stream: TcpStream, front: &Front, token: &str, early: &[u8]) -> Self {
        let mut first = handshake(front, token, "sec-websocket-protocol: other, plexus.v1\r\n").into_bytes();
        first.extend_from_slice(early);
        stream.write_all(&first).await.unwrap();
        let mut bytes = Vec::new();
        let head = loop {
            let n = tokio::time::timeout(LONG, stream.read_buf(&mut bytes)).await.unwrap().unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&bytes));
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8(bytes.drain(..end + 4).collect()).unwrap().to_ascii_lowercase();
            }
        };
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(head.contains("sec-websocket-protocol: plexus.v1\r\n"), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "no compression: {head}");
        Self { stream, bytes, kept: VecDeque::new(), next_id: 0 }
    }

    /// An initialized client that can show confirmations.
    async fn ready(front: &Front, token: &str) -> Self {
        let mut ws = Self::open(front, token).await;
        let params = json!({
            "protocol_version": "0",
            "client": { "name": "test", "version": "0" },
            "ui_capabilities": { "supports_confirm": true },
        });
        let result = ws.call("initialize", params).await.unwrap();
        assert_eq!(result["server"]["name"], "plexus");
        ws
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn text(&mut self, text: &str) {
        self.raw(&frame(0x81, text.as_bytes())).await;
    }

    async fn got(&mut self) -> Got {
        tokio::time::timeout(LONG, self.frame()).await.expect("silence")
    }

    async fn frame(&mut self) -> Got {
        loop {
            if let Some((head, payload)) = self.take() {
                return match head {
                    0x81 => Got::Text(serde_json::from_slice(&payload).unwrap()),
                    0x88 => {
                        let code = u16::from_be_bytes(payload[..2].try_into().unwrap());
                        Got::Close(code, String::from_utf8(payload[2..].to_vec()).unwrap())
                    }
                    0x89 => Got::Ping,
                    0x8a => Got::Pong(payload),
                    other => panic!("a frame that begins with {other:#x}"),
                };
            }
            match self.stream.read_buf(&mut self.bytes).await {
                Ok(0) => {
                    assert!(self.bytes.is_empty(), "the end came within a frame");
                    return Got::Eof;
                }
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let bytes = &self.bytes;
        let (from, len) = match *bytes.get(1)? {
            126 => (4, u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap()) as usize),
            127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()) as usize),
            len => (2, usize::from(len)),
        };
        let payload = bytes.get(from..from + len)?.to_vec();
        let head = bytes[0];
        self.bytes.drain(..from + len);
        Some((head, payload))
    }

    /// The next message that `wanted` accepts; others are kept.
    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            match self.got().await {
                Got::Text(message) if wanted(&message) => return message,
                Got::Text(message) => self.kept.push_back(message),
                Got::Ping | Got::Pong(_) => {}
                other => panic!("{other:?}; before it came {:?}", self.kept),
            }
        }
    }

    async fn notice(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await["params"].clone()
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.text(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await;
        let mut reply = self.find(|message| message["id"] == id && message.get("method").is_none()).await;
        match reply.get("error") {
            Some(_) => Err(reply["error"].take()),
            None => Ok(reply["result"].take()),
        }
    }

    /// All events up to and with one of this kind.
    async fn events_to(&mut self, kind: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let event = self.notice("agent.event").await;
            let last = event["kind"] == kind;
            all.push(event);
            if last {
                return all;
            }
        }
    }

    /// The close code and reason; the connection must end after it.
    async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.got().await {
                Got::Close(code, reason) => {
                    let _ = self.stream.write_all(&frame(0x88, &code.to_be_bytes())).await;
                    assert_eq!(self.got().await, Got::Eof);
                    return (code, reason);
                }
                Got::Eof => panic!("the end came without a close frame"),
                _ => {}
            }
        }
    }
}

fn said(events: &[Value]) -> String {
    let chunks = events.iter().filter(|event| event["kind"] == "agent_message_chunk");
    chunks.map(|event| event["event"]["content"]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn ws_run_is_started_followed_and_read_again() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut ws = Ws::ready(&front, &front.admin).await;
    let sessions = ws.call("session.list", json!({})).await.unwrap();
    assert_eq!(sessions["sessions"][0]["session_id"], *session);
    assert_eq!(ws.call("runtime.list", json!({})).await.unwrap()["runtimes"][0]["runtime_id"], "fake");

    let attached = ws.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    assert_eq!((&attached["attached"], &attached["resume"]), (&json!(true), &json!("ok")));
    let hello = ws.notice("gateway.hello").await;
    assert_eq!(hello["session_id"], *session);
    assert_eq!(hello["sessions"][0]["session_id"], *session);
    assert_eq!(hello["you"]["scopes"], json!(["watch", "prompt", "approve", "admin", "type"]));
    assert_eq!(ws.notice("gateway.live").await["head"], hello["head"]);

    let run = ws.call("run.start", json!({ "input": { "type": "text", "text": "hello there" } })).await.unwrap();
    let events = ws.events_to("run_ended").await;
    assert_eq!(said(&events), "hello there");
    let of_run: Vec<_> = events.iter().filter(|event| event["run_id"] == run["run_id"]).collect();
    assert!(of_run.iter().enumerate().all(|(n, event)| event["seq"] == n), "{of_run:?}");
    assert_eq!(ws.notice("run.status").await["status"], "running");
    let done = ws.find(|message| message["method"] == "run.status" && message["params"]["status"] == "completed").await;
    assert_eq!(done["params"]["run_id"], run["run_id"]);
    assert_eq!(ws.notice("session.updated").await["session"]["session_id"], *session);

    let history = ws.call("session.history", json!({ "session_id": session, "after": hello["head"] })).await.unwrap();
    assert_eq!(history["events"].as_array().unwrap(), &events);

    // Another client resumes in the middle, with the cursor of any event.
    let mut other = Ws::ready(&front, &front.admin).await;
    let params = json!({ "session_id": "*", "after": events[1]["cursor"], "projection": "native" });
    other.call("session.attach", params).await.unwrap();
    let again = other.events_to("run_ended").await;
    assert_eq!(again.len(), events.len() - 2);
    assert_eq!(again.last().unwrap()["cursor"], events.last().unwrap()["cursor"]);
    assert_eq!(ws.call("session.detach", json!({ "session_id": session })).await.unwrap()["detached"], true);
}

#[tokio::test]
async fn ws_session_rename_and_archive_reach_every_client() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let (mut one, mut two) = (Ws::ready(&front, &front.admin).await, Ws::ready(&front, &front.admin).await);
    two.call("session.attach", json!({ "session_id": "*", "from": "now" })).await.unwrap();
    let renamed = one.call("session.rename", json!({ "session_id": session, "title": "Mine" })).await.unwrap();
    assert_eq!(renamed["title"], "Mine");
    assert_eq!(two.notice("session.updated").await["session"]["title"], "Mine");
    one.call("session.archive", json!({ "session_id": session })).await.unwrap();
    assert_eq!(two.notice("session.updated").await["session"]["archived"], true);
    assert_eq!(one.call("session.list", json!({})).await.unwrap()["sessions"][0]["archived"], true);
    one.call("session.archive", json!({ "session_id": session, "archived": false })).await.unwrap();
    assert_eq!(two.notice("session.updated").await["session"]["archived"], false);
    let refused = one.call("session.rename", json!({ "session_id": session, "title": "" })).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "invalid");
    let refused = one.call("session.archive", json!({ "session_id": "s_nothing" })).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "session_not_found");
}

#[tokio::test]
async fn ws_deletions_reach_the_clients_that_could_see_them() {
    let front = Front::new().await;
    let (session, other) = (front.session("fake").await, front.session("fake").await);
    let mut one = Ws::ready(&front, &front.admin).await;
    let blind = front.token(json!({ "scopes": ["watch"], "sessions": [other] })).await;
    let mut two = Ws::ready(&front, &blind).await;
    for gone in [&session, &other] {
        assert_eq!(front.admin("DELETE", &format!("/v1/sessions/{gone}"), Value::Null).await.status, 204);
        assert_eq!(one.notice("session.deleted").await["session_id"], **gone);
    }
    assert_eq!(two.notice("session.deleted").await["session_id"], other, "and not of the first");
    assert_eq!(front.admin("DELETE", "/v1/runtimes/fake", Value::Null).await.status, 204);
    assert_eq!(one.notice("runtime.removed").await["runtime_id"], "fake");
}

#[tokio::test]
async fn ws_cursor_of_another_epoch_gets_a_snapshot_first() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut ws = Ws::ready(&front, &front.admin).await;
    ws.call("session.attach", json!({ "session_id": session })).await.unwrap();
    ws.call("run.start", json!({ "session_id": session, "text": "first words" })).await.unwrap();
    ws.events_to("run_ended").await;
    let mut late = Ws::ready(&front, &front.admin).await;
    for (cursor, verdict) in
        [("otherlife:3".to_owned(), "reset"), (format!("{}:99999999", front.core.epoch()), "ahead")]
    {
        let result = late.call("session.attach", json!({ "session_id": session, "after": cursor })).await.unwrap();
        assert_eq!(result["resume"], verdict);
        assert_eq!(late.notice("gateway.hello").await["resume"], verdict);
        let snapshot = late.notice("gateway.snapshot").await;
        assert_eq!(snapshot["cursor"], result["cursor"]);
        assert!(snapshot["snapshots"][0]["messages"].to_string().contains("first words"), "{snapshot}");
        late.notice("gateway.live").await;
    }
    ws.call("run.start", json!({ "session_id": session, "text": "second words" })).await.unwrap();
    assert_eq!(said(&late.events_to("run_ended").await), "second words");
    for bad in ["nonsense", "a:b", ":1"] {
        let error = late.call("session.attach", json!({ "session_id": session, "after": bad })).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("bad_cursor")));
    }
}

#[tokio::test]
async fn ws_first_answer_wins_and_every_client_learns_who() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut ws = Ws::ready(&front, &front.admin).await;
        ws.call("session.attach", json!({ "session_id": session })).await.unwrap();
        all.push(ws);
    }
    all[0].call("run.start", json!({ "session_id": session, "text": "ask" })).await.unwrap();
    let mut asked = Vec::new();
    for ws in &mut all {
        asked.push(ws.find(|message| message["method"] == "ui.confirm.request").await);
    }
    let id = asked[0]["id"].as_str().unwrap().to_owned();
    assert!(asked.iter().all(|request| request == &asked[0]));
    assert_eq!(asked[0]["params"]["request_id"], *id);
    assert_eq!(asked[0]["params"]["danger_level"], "normal");
    assert!(asked[0]["params"]["message"].is_string());

    // A client that joins late at `now` gets the open request once.
    let mut late = Ws::ready(&front, &front.admin).await;
    late.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    assert_eq!(late.notice("gateway.hello").await["requests"][0]["request_id"], *id);
    assert_eq!(late.find(|message| message["method"] == "ui.confirm.request").await["id"], *id);

    // An answer that does not fit is refused, and the request stays open.
    let bad = all[0].call("ui.request.answer", json!({ "request_id": id, "option_id": "perhaps" })).await.unwrap_err();
    assert_eq!((&bad["code"], &bad["data"]["code"]), (&json!(-32602), &json!("option_not_offered")));
    all[0].text(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": "yes" } }).to_string()).await;
    assert_eq!(all[0].notice("gateway.error").await["request_id"], *id);

    all[0].text(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": true } }).to_string()).await;
    let lost = loop {
        // An answer by response has no reply; asking until it is resolved names the winner.
        match all[1].call("ui.request.answer", json!({ "request_id": id, "option_id": "maybe" })).await.unwrap_err() {
            error if error["code"] == -32602 => {}
            error => break error,
        }
    };
    assert_eq!((&lost["code"], &lost["data"]["code"]), (&json!(-32010), &json!("already_resolved")));
    assert_eq!(lost["data"]["resolved_by"]["name"], "this machine");
    // A client that loses by response learns it from the common notification.
    all[2].text(&json!({ "jsonrpc": "2.0", "id": id, "result": { "ok": false } }).to_string()).await;
    for ws in &mut all {
        let resolved = ws.notice("ui.request.resolved").await;
        assert_eq!((&resolved["request_id"], &resolved["option_id"]), (&json!(id), &json!("yes")));
        assert_eq!(resolved["state"], "answered");
        ws.events_to("run_ended").await;
        assert!(!ws.kept.iter().any(|message| message["method"] == "gateway.error"));
    }
    let unknown = late.call("ui.request.answer", json!({ "request_id": "q_nothing", "ok": true })).await.unwrap_err();
    assert_eq!(unknown["data"]["code"], "request_not_found");
    late.text(&json!({ "jsonrpc": "2.0", "id": "q_nothing", "result": { "ok": true } }).to_string()).await;
    assert_eq!(late.notice("gateway.error").await["error"]["data"]["code"], "request_not_found");
}

/// By the specification, error -32003 means that the user cancelled, and `reason` and `remember` are optional wishes.
#[tokio::test]
async fn ws_cancel_counts_as_denial_and_unoffered_options_are_refused() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut ws = Ws::ready(&front, &front.admin).await;
    ws.call("session.attach", json!({ "session_id": session })).await.unwrap();
    for (said, allowed) in [
        (json!({ "error": { "code": -32003, "message": "user cancelled" } }), false),
        (json!({ "result": { "ok": false, "remember": true, "reason": "no" } }), false),
        (json!({ "result": { "ok": true, "reason": "yes" } }), true),
    ] {
        ws.call("run.start", json!({ "session_id": session, "text": "ask" })).await.unwrap();
        let id = ws.find(|message| message["method"] == "ui.confirm.request").await["id"].clone();
        // Any other error leaves the request open and is reported as no answer.
        let other = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "method not found" } });
        ws.text(&other.to_string()).await;
        assert_eq!(ws.notice("gateway.error").await["request_id"], id);
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        answer.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        ws.text(&answer.to_string()).await;
        let resolved = ws.notice("ui.request.resolved").await;
        assert_eq!((&resolved["state"], &resolved["ok"]), (&json!("answered"), &json!(allowed)), "{said}");
        ws.events_to("run_ended").await;
    }
}

/// The AgentEvents of a run up to its end, numbered from 0; messages of users are before them, with negative numbers.
async fn told(ws: &mut Ws, run: &Value) -> (Vec<Value>, Value) {
    let ended = |message: &Value| {
        let status = message["params"]["status"].as_str();
        message["method"] == "run.status"
            && message["params"]["run_id"] == *run
            && matches!(status, Some("completed" | "error" | "cancelled"))
    };
    let end = ws.find(ended).await["params"]["status"].clone();
    let kept = std::mem::take(&mut ws.kept);
    kept.iter().for_each(assert_letter);
    let events =
        kept.iter().filter(|message| message["method"] == "agent.event" && message["params"]["run_id"] == *run);
    let events: Vec<Value> = events.map(|message| message["params"].clone()).collect();
    let of_agent = events.iter().filter(|event| event["event"]["type"] != "hidden_user_message");
    assert!(of_agent.enumerate().all(|(n, event)| event["seq"] == n), "{events:?}");
    (events.into_iter().map(|event| event["event"].clone()).collect(), end)
}

#[tokio::test]
async fn ws_capabilities_are_those_of_the_visible_runtimes() {
    let front = Front::new().await;
    let mine = front.session("fake").await;
    let of_mine = front.token(json!({ "scopes": ["watch"], "runtimes": ["fake"] })).await;
    let can = async |token: &str, letter: bool| {
        let mut params = json!({ "protocol_version": "0" });
        if letter {
            params["ui_protocol"] = json!("0");
        }
        let mut ws = Ws::open(&front, token).await;
        ws.call("initialize", params).await.unwrap()["server_capabilities"].clone()
    };
    let lists = |there: bool| {
        json!({
            "supports_run_cancel": true, "supports_ui_requests": true, "supports_mcp_list": there, "supports_skills_list": false,
        })
    };
    assert_eq!((can(&front.admin, false).await, can(&front.admin, true).await), (lists(false), lists(false)), "{mine}");
    front.session("lister").await;
    assert_eq!((can(&front.admin, false).await, can(&front.admin, true).await), (lists(true), lists(true)));
    assert_eq!(can(&of_mine, true).await, lists(false));
    let body = front.admin("GET", "/v1/runtimes", Value::Null).await.json();
    let of = |id: &str| {
        let runtimes = body["runtimes"].as_array().unwrap();
        runtimes.iter().find(|one| one["runtime_id"] == id).unwrap()["capabilities"].clone()
    };
    assert_eq!((of("fake"), of("lister")), (json!(["cancel", "requests"]), json!(["cancel", "requests", "mcp_list"])));
}

#[tokio::test]
async fn ws_ui_protocol_0_is_spoken_to_the_letter() {
    let front = Front::new().await;
    // Another session of the same runtime is not the client's.
    front.session("fake").await;
    let mut ws = Ws::open(&front, &front.admin).await;
    let params = json!({ "protocol_version": "0", "client": { "name": "seed", "version": "0" }, "ui_protocol": "0" });
    let hello = ws.call("initialize", params).await.unwrap();
    let members: Vec<&str> = hello.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        (members, &hello["protocol_version"]),
        (vec!["protocol_version", "server", "server_capabilities"], &json!("0"))
    );

    let input =
        |text: &str| json!({ "input": { "type": "text", "text": text }, "ui_context": { "cwd": "/" }, "meta": {} });
    let first = ws.call("run.start", input("hello there")).await.unwrap();
    assert_eq!(first.as_object().unwrap().len(), 1);
    let first = first["run_id"].clone();
    let (events, end) = told(&mut ws, &first).await;
    let text: String =
        events.iter().filter(|event| event["type"] == "text").map(|event| event["content"].as_str().unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((text.as_str(), &end), ("hello there", &json!("completed")));
    assert_eq!((&last["type"], &last["content"]), (&json!("final"), &json!("hello there")));

    // Cancelling an ended run, an unknown one, and a running one.
    let over = ws.call("run.cancel", json!({ "run_id": first })).await.unwrap();
    assert_eq!(over, json!({ "ok": false, "status": "completed" }));
    assert_eq!(ws.call("run.cancel", json!({ "run_id": "r_nothing" })).await.unwrap_err()["code"], -32002);
    let hangs = ws.call("run.start", input("hang")).await.unwrap()["run_id"].clone();
    let cancelled = ws.call("run.cancel", json!({ "run_id": hangs, "reason": "enough" })).await.unwrap();
    assert_eq!(cancelled, json!({ "ok": true, "status": "running" }));
    assert_eq!(told(&mut ws, &hangs).await.1, "cancelled");

    // A request, answered by a response.
    let asks = ws.call("run.start", input("ask")).await.unwrap()["run_id"].clone();
    let asked = ws.find(|message| message["method"] == "ui.confirm.request").await;
    assert_letter(&asked);
    assert!(
        asked["id"].is_string()
            && asked["params"]["confirm_label"].is_string()
            && asked["params"]["cancel_label"].is_string()
    );
    ws.text(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "ok": true } }).to_string()).await;
    assert_eq!(told(&mut ws, &asks).await.1, "completed");

    let listed = ws.call("session.list", json!({})).await.unwrap();
    let one = &listed["sessions"][0];
    assert_eq!((&one["last_user_message"], one["updated_at"].is_string()), (&json!("ask"), true), "{listed}");
    // Three prompts with a response only to the first: the others produced no event.
    assert_eq!(one["message_count"], 4, "{listed}");
    let known = ["session_id", "updated_at", "run_id", "message_count", "last_user_message"];
    for row in listed["sessions"].as_array().unwrap() {
        assert!(row.as_object().unwrap().keys().all(|member| known.contains(&member.as_str())), "{row}");
    }
    assert!(ws.call("session.list", json!({ "limit": 0 })).await.unwrap()["sessions"].as_array().unwrap().is_empty());

    // Another client: the requested part of the history comes before the reply.
    let session = one["session_id"].clone();
    let mut other = Ws::open(&front, &front.admin).await;
    other.call("initialize", json!({ "protocol_version": "0", "ui_protocol": "0" })).await.unwrap();
    for (wants, runs, truncated) in
        [(json!({}), 3, false), (json!({ "max_runs": 1 }), 1, true), (json!({ "max_events": 1 }), 1, true)]
    {
        let mut params = wants.clone();
        params["session_id"] = session.clone();
        let past = other.call("session.history", params).await.unwrap();
        assert_eq!((&past["runs"], &past["truncated"]), (&json!(runs), &json!(truncated)), "{wants}: {past}");
        let told = std::mem::take(&mut other.kept);
        told.iter().for_each(assert_letter);
        assert_eq!(
            told.iter().filter(|message| message["method"] == "agent.event").count(),
            past["events_sent"].as_u64().unwrap() as usize
        );
        assert!(told.iter().all(|message| message["method"] == "agent.event"), "{told:?}");
    }
    // From then on both get the events.
    let next = ws.call("run.start", input("once more")).await.unwrap()["run_id"].clone();
    for client in [&mut ws, &mut other] {
        assert_eq!(told(client, &next).await.1, "completed");
    }
    for method in ["session.attach", "runtime.list", "ui.request.answer"] {
        assert_eq!(ws.call(method, json!({ "session_id": session })).await.unwrap_err()["code"], -32601, "{method}");
    }
    assert_eq!(
        ws.call("run.start", json!({ "session_id": "s_none", "input": { "type": "text", "text": "x" } }))
            .await
            .unwrap_err()["code"],
        -32004
    );
    let mut new = Ws::open(&front, &front.admin).await;
    assert_eq!(new.call("initialize", json!({ "ui_protocol": "9" })).await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn ws_ui_protocol_context_is_whole_percents_and_reaches_the_runtime() {
    let front = Front::new().await;
    front.session("fake").await;
    let mut ws = Ws::open(&front, &front.admin).await;
    ws.call("initialize", json!({ "protocol_version": "0", "ui_protocol": "0" })).await.unwrap();
    let input = |text: &str| json!({ "input": { "type": "text", "text": text } });
    let run = ws.call("run.start", input("context 61.7 0 100 -3 1e9 0.4")).await.unwrap()["run_id"].clone();
    let over = |message: &Value| message["params"]["run_id"] == run && message["params"]["status"] == "completed";
    ws.find(over).await;
    let left_told = ws.kept.iter().filter(|message| message["method"] == "run.context");
    let contexts: Vec<Value> = left_told.map(|message| message["params"].clone()).collect();
    let left: Vec<u64> = contexts.iter().map(|params| params["context_left_percent"].as_u64().unwrap()).collect();
    assert_eq!(left, [61, 0, 100, 0, 100, 0], "{contexts:?}");
    ws.kept.iter().for_each(assert_letter);
    ws.kept.clear();

    // A notification is forwarded unchanged, even with members that the specification does not have.
    let shown = json!({
        "cwd": "/w", "active_file": { "path": "a.rs", "language_id": "rust" },
        "selection": { "path": "a.rs", "range": { "start": { "line": 0, "column": 1 }, "end": { "line": 2, "column": 3 } } },
        "extensions": { "x": [1.50] }, "new": null,
    });
    ws.text(&json!({ "jsonrpc": "2.0", "method": "ui.context.update", "params": shown }).to_string()).await;
    // A later call on the same path has arrived once its reply is there.
    let left = ws.call("tool.left", json!({})).await.unwrap_err();
    assert_eq!((&left["code"], &left["message"]), (&json!(-32003), &json!("the runtime refused: user cancelled")));
    let run = ws.call("run.start", input("calls")).await.unwrap()["run_id"].clone();
    let (events, _) = told(&mut ws, &run).await;
    let calls: Value = serde_json::from_str(events.last().unwrap()["content"].as_str().unwrap()).unwrap();
    assert_eq!(calls, json!([{ "method": "ui.context.update", "params": shown }]));
}

#[tokio::test]
async fn ws_device_does_only_what_it_was_granted() {
    let front = Front::new().await;
    let (mine, other) = (front.session("fake").await, front.session("other").await);
    let token = front.token(json!({ "scopes": ["watch"], "sessions": [mine] })).await;
    let mut ws = Ws::ready(&front, &token).await;
    let sessions = ws.call("session.list", json!({})).await.unwrap();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    for (method, params, code) in [
        ("session.attach", json!({ "session_id": other }), "session_not_found"),
        ("session.history", json!({ "session_id": other }), "session_not_found"),
        ("run.start", json!({ "session_id": mine, "text": "x" }), "scope_missing"),
        ("run.start", json!({ "session_id": other, "text": "x" }), "session_not_found"),
        ("run.cancel", json!({ "session_id": mine }), "scope_missing"),
        ("session.new", json!({ "runtime_id": "fake" }), "scope_missing"),
        ("model.set", json!({ "session_id": mine, "name": "x" }), "scope_missing"),
    ] {
        let error = ws.call(method, params).await.unwrap_err();
        assert_eq!(error["data"]["code"], code, "{method}: {error}");
    }
    ws.call("session.attach", json!({ "session_id": "*" })).await.unwrap();
    assert_eq!(ws.notice("gateway.hello").await["sessions"].as_array().unwrap().len(), 1);
    let mut admin = Ws::ready(&front, &front.admin).await;
    for session in [&other, &mine] {
        admin.call("run.start", json!({ "session_id": session, "text": "secret of it" })).await.unwrap();
    }
    admin.call("run.start", json!({ "session_id": mine, "text": "ask" })).await.unwrap();
    let request = ws.find(|message| message["method"] == "ui.confirm.request").await["id"].clone();
    assert!(ws.kept.iter().all(|message| message["params"]["session_id"] != *other), "it saw what it may not");
    let error = ws.call("ui.request.answer", json!({ "request_id": request, "ok": true })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32011), &json!("scope_missing")));
    assert_eq!(front.open_request(&mine).await["request_id"], request);
}

#[tokio::test]
async fn ws_revocation_and_shutdown_close_at_once_with_their_codes() {
    let front = Front::new().await;
    let reply = front.admin("POST", "/v1/devices", json!({ "name": "phone", "scopes": ["watch"] })).await.json();
    let mut ws = Ws::ready(&front, reply["token"].as_str().unwrap()).await;
    let mut silent = Ws::open(&front, reply["token"].as_str().unwrap()).await;
    let mut admin = Ws::ready(&front, &front.admin).await;
    let path =
        format!("/v1/devices/{}", reply["device"]["device_id"].as_str().or(reply["device_id"].as_str()).unwrap());
    assert!(front.admin("DELETE", &path, Value::Null).await.status < 300);
    assert_eq!(ws.closed().await.0, 4001);
    assert_eq!(silent.closed().await.0, 4001);
    front.stop.send_replace(true);
    assert_eq!(admin.closed().await.0, 1001);
}

#[tokio::test]
async fn ws_presence_reaches_those_who_may_see_it() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let hidden = front.session("other").await;
    let look = |session: &str, focused: bool| json!({ "session_id": session, "focused": focused });
    let narrow = front.token(json!({ "scopes": ["watch"], "runtimes": ["fake"] })).await;
    let mut phone = Ws::ready(&front, &narrow).await;
    let mut desk = Ws::ready(&front, &front.admin).await;
    phone.call("session.attach", json!({ "session_id": "*", "from": "now" })).await.unwrap();

    desk.call("presence.update", look(&session, false)).await.unwrap();
    desk.call("presence.update", look(&hidden, true)).await.unwrap();
    desk.call("presence.update", look(&session, true)).await.unwrap();
    let told = phone.notice("presence.changed").await;
    let desk_looks = json!({ "session_id": session, "lookers": [{ "device_id": "d_local", "name": "this machine" }] });
    assert_eq!(told, desk_looks, "neither a socket nor a hidden session is news");

    // A client that joins later gets the current viewers; a device sees itself too.
    let mut late = Ws::ready(&front, &front.admin).await;
    late.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    assert_eq!(late.notice("presence.changed").await, desk_looks);
    phone.call("presence.update", look(&session, true)).await.unwrap();
    for ws in [&mut late, &mut phone] {
        let told = ws.notice("presence.changed").await;
        assert_eq!(told["lookers"].as_array().unwrap().len(), 2, "{told}");
    }

    // The viewer ends with the socket.
    drop(desk);
    let told = phone.notice("presence.changed").await;
    assert_eq!(told["lookers"][0]["name"], "test", "{told}");
    assert_eq!(told["lookers"].as_array().unwrap().len(), 1, "{told}");

    let refused = phone.call("presence.update", look(&hidden, true)).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "session_not_found");
    let refused = phone.call("presence.update", json!({ "session_id": session })).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "invalid_params");
}

#[tokio::test]
async fn ws_invalid_messages_get_the_matching_error() {
    let front = Front::new().await;
    let mut ws = Ws::open(&front, &front.admin).await;
    for (text, code, id) in [
        ("", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"#, -32700, json!(null)),
        ("[1,", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"runtime.list"}]"#, -32600, json!(null)),
        ("1", -32600, json!(null)),
        ("\"x\"", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"runtime.list"}"#, -32600, json!(1)),
        (r#"{"id":1,"method":"runtime.list"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":"early","method":"runtime.list"}"#, -32600, json!("early")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}"#, -32602, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"ui_capabilities":{"supports_confirm":1}}}"#,
            -32602,
            json!(1),
        ),
    ] {
        ws.text(text).await;
        let reply = ws.find(|message| message.get("error").is_some()).await;
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &id), "{text}: {reply}");
        assert!(reply["error"]["data"]["code"].is_string(), "{reply}");
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    ws.text(&deep).await;
    assert_eq!(ws.find(|message| message.get("error").is_some()).await["error"]["code"], -32600);
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a.b","params":{{"x":{}1{}}}}}"#, "[".repeat(64), "]".repeat(64));
    ws.text(&deep).await;
    assert_eq!(ws.find(|message| message.get("error").is_some()).await["error"]["code"], -32600);

    ws.call("initialize", json!({})).await.unwrap();
    // Every type of id comes back unchanged.
    for id in [
        "1",
        "-7",
        "1.50",
        "1e3",
        "\"\"",
        "\"a\\u0041\"",
        "null",
        "true",
        "[1,{}]",
        "{\"a\":[]}",
        "123456789012345678901234567890",
    ] {
        ws.text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"runtime.list"}}"#)).await;
        let message = tokio::time::timeout(LONG, async {
            loop {
                if let Some((_, payload)) = ws.take() {
                    return String::from_utf8(payload).unwrap();
                }
                assert!(ws.stream.read_buf(&mut ws.bytes).await.unwrap() > 0);
            }
        });
        let message = message.await.unwrap();
        assert!(message.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)), "{message}");
    }
    for (method, params, code) in [
        ("nonsense", json!({}), -32601),
        ("no.such", json!({}), -32601),
        ("gateway.hello", json!({}), -32601),
        (".", json!({}), -32601),
        ("session.attach", json!({}), -32602),
        ("session.attach", json!({ "session_id": 7 }), -32602),
        ("session.attach", json!({ "session_id": "a b" }), -32602),
        ("session.attach", json!({ "session_id": "s_nothing" }), -32004),
        ("session.attach", json!({ "session_id": "*", "from": "here" }), -32602),
        ("session.attach", json!({ "session_id": "*", "projection": "odd" }), -32602),
        ("session.history", json!({}), -32602),
        ("session.new", json!({ "runtime_id": "nothing" }), -32015),
        ("run.start", json!({ "text": "x" }), -32602),
        ("run.start", json!({ "session_id": "s_nothing", "text": "x" }), -32004),
        ("run.cancel", json!({ "run_id": "r_nothing" }), -32002),
        ("model.list", json!({}), -32602),
        ("ui.request.answer", json!({ "ok": true }), -32602),
    ] {
        let error = ws.call(method, params.clone()).await.unwrap_err();
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    }
    // Notifications and stray errors get no response; the connection goes on.
    ws.text(r#"{"jsonrpc":"2.0","method":"no.such"}"#).await;
    ws.text(r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}"#).await;
    ws.text(r#"{"jsonrpc":"2.0","id":[5],"result":{}}"#).await;
    ws.call("runtime.list", json!({})).await.unwrap();
    assert!(ws.kept.is_empty(), "{:?}", ws.kept);
}

#[tokio::test]
async fn ws_subscription_is_to_all_or_by_name_but_not_both() {
    let front = Front::new().await;
    let (a, b) = (front.session("fake").await, front.session("fake").await);
    let mut ws = Ws::ready(&front, &front.admin).await;
    for session in [&a, &b, &a] {
        ws.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    }
    assert_eq!(ws.call("session.attach", json!({ "session_id": "*" })).await.unwrap_err()["code"], -32602);
    for session in [&a, &b] {
        ws.call("run.start", json!({ "session_id": session, "text": "words" })).await.unwrap();
    }
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let event = ws.notice("agent.event").await;
        if event["kind"] == "run_ended" {
            ended.push(event["session_id"].clone());
        }
    }
    assert_ne!(ended[0], ended[1], "attached again, and still once");
    for session in [&a, &b] {
        ws.call("session.detach", json!({ "session_id": session })).await.unwrap();
    }
    ws.call("session.attach", json!({ "session_id": "*" })).await.unwrap();
    assert_eq!(ws.call("session.attach", json!({ "session_id": a })).await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn ws_rfc_6455_violations_close_with_their_code() {
    let front = Front::new().await;
    let huge = |len: u64| [&[0x81, 0x80 | 127][..], &len.to_be_bytes(), &[1, 2, 3, 4]].concat();
    let unmasked = b"\x81\x02{}".to_vec();
    let two = |a: Vec<u8>, b: Vec<u8>| [a, b].concat();
    for (what, bytes, code) in [
        ("unmasked", unmasked, 1002),
        ("reserved bit", frame(0xc1, b"{}"), 1002),
        ("reserved opcode", frame(0x83, b"{}"), 1002),
        ("reserved control opcode", frame(0x8b, b""), 1002),
        ("fragmented ping", frame(0x09, b""), 1002),
        ("ping of 126 bytes", frame(0x89, &[0; 126]), 1002),
        ("continuation of nothing", frame(0x80, b"x"), 1002),
        ("text within text", two(frame(0x01, b"a"), frame(0x81, b"b")), 1002),
        ("close of one byte", frame(0x88, b"x"), 1002),
        ("close with code 1005", frame(0x88, &1005u16.to_be_bytes()), 1002),
        ("close reason not UTF-8", frame(0x88, b"\x03\xe8\xff"), 1007),
        ("text not UTF-8", frame(0x81, b"\xff\xfe"), 1007),
        ("text not UTF-8 over a border", two(frame(0x01, b"\xe2\x82"), frame(0x80, b"\x28")), 1007),
        ("a tebibyte", huge(1 << 40), 1009),
        ("the top bit of the length", huge(u64::MAX), 1009),
        ("one byte too many", huge((16 << 20) + 1), 1009),
        ("binary", frame(0x82, b"{}"), 1003),
    ] {
        let mut ws = Ws::open(&front, &front.admin).await;
        ws.raw(&bytes).await;
        assert_eq!(ws.closed().await.0, code, "{what}");
    }
    // Too large in fragments.
    let mut ws = Ws::open(&front, &front.admin).await;
    let mut head = 0x01;
    for _ in 0..17 {
        if ws.stream.write_all(&frame(head, &vec![b'x'; 1 << 20])).await.is_err() {
            break;
        }
        head = 0x00;
    }
    assert_eq!(ws.closed().await.0, 1009);
}

#[tokio::test]
async fn ws_rfc_6455_options_work() {
    let front = Front::new().await;
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    // The first frame in the same packet as the handshake.
    let stream = TcpStream::connect(front.address).await.unwrap();
    let mut ws = Ws::over(stream, &front, &front.admin, &frame(0x81, request)).await;
    assert_eq!(ws.find(|message| message["id"] == 1).await["result"]["protocol_version"], "0");
    // In fragments, a character cut in two, empty ones among them, a ping between.
    let request = r#"{"jsonrpc":"2.0","id":"é","method":"runtime.list"}"#.as_bytes();
    let cut = request.iter().position(|&byte| byte == 0xc3).unwrap() + 1;
    ws.raw(&frame(0x01, &request[..cut])).await;
    ws.raw(&frame(0x00, b"")).await;
    ws.raw(&frame(0x89, b"are you there")).await;
    ws.raw(&frame(0x80, &request[cut..])).await;
    assert_eq!(ws.got().await, Got::Pong(b"are you there".into()));
    assert_eq!(ws.find(|message| message["id"] == "é").await["result"], json!({ "runtimes": [] }));
    // Byte by byte.
    for byte in frame(0x81, br#"{"jsonrpc":"2.0","id":3,"method":"session.list"}"#) {
        ws.raw(&[byte]).await;
    }
    ws.find(|message| message["id"] == 3).await;
    // A thousand requests at once, answered in their order.
    let many: Vec<u8> = (100..1100)
        .flat_map(|id| frame(0x81, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session.list"}}"#).as_bytes()))
        .collect();
    ws.raw(&many).await;
    for id in 100..1100 {
        assert!(matches!(ws.got().await, Got::Text(reply) if reply["id"] == id));
    }
    // A prompt with an image of some megabytes, in one frame.
    let session = front.session("fake").await;
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(3 << 20) });
    let content = json!([{ "type": "text", "text": "look" }, image]);
    ws.call("run.start", json!({ "session_id": session, "content": content })).await.unwrap();
    // The closing handshake, begun by the client.
    ws.raw(&frame(0x88, b"\x03\xe8done")).await;
    let close = loop {
        match ws.got().await {
            Got::Close(code, reason) => break (code, reason),
            Got::Text(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(close, (1000, "done".into()));
    assert_eq!(ws.got().await, Got::Eof);
}

#[tokio::test]
async fn ws_invalid_handshakes_are_refused_with_the_reason() {
    let front = Front::new().await;
    let good = handshake(&front, &front.admin, "");
    let close = |text: String| text.replace("keep-alive, Upgrade", "close, Upgrade");
    for (from, to, status, header) in [
        ("sec-websocket-version: 13", "sec-websocket-version: 8", 426, Some(("sec-websocket-version", "13"))),
        ("sec-websocket-version: 13\r\n", "", 426, Some(("sec-websocket-version", "13"))),
        ("upgrade: WebSocket\r\n", "", 426, Some(("upgrade", "websocket"))),
        ("upgrade: WebSocket", "upgrade: h2c", 426, Some(("upgrade", "websocket"))),
        ("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", 400, None),
        ("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", 400, None),
        ("dGhlIHNhbXBsZSBub25jZQ==", "!", 400, None),
    ] {
        let text = close(good.replace(from, to));
        let reply = front::parse(&front.raw(text.as_bytes()).await);
        assert_eq!((reply.status, reply.code().as_str()), (status, "bad_handshake"), "{from} -> {to}");
        if let Some((name, value)) = header {
            assert_eq!(reply.header(name), Some(value));
        }
    }
}

#[tokio::test]
async fn ws_client_that_reads_nothing_is_closed_with_its_cursor() {
    if !common::alone("front_ws::ws_client_that_reads_nothing_is_closed_with_its_cursor") {
        return; // what is counted is the whole process's
    }
    let limits = ListenLimits { drain: Duration::from_millis(500), ..ListenLimits::default() };
    let front = Front::patient(limits, GateLimits::default(), Duration::from_millis(400)).await;
    let session = front.session("fake").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(front.address).await.unwrap();
    let mut lazy = Ws::over(stream, &front, &front.admin, &[]).await;
    lazy.call("initialize", json!({})).await.unwrap();
    lazy.call("session.attach", json!({ "session_id": session, "from": "start" })).await.unwrap();
    let mut quick = Ws::ready(&front, &front.admin).await;
    quick.call("session.attach", json!({ "session_id": session, "from": "start" })).await.unwrap();
    let stalled = plexus::metrics::metrics().stalled.get();
    // More than a kernel buffers for one socket.
    let wait = async {
        while plexus::metrics::metrics().stalled.get() == stalled {
            quick.call("run.start", json!({ "session_id": session, "text": "w".repeat(1 << 20) })).await.unwrap();
            quick.events_to("run_ended").await;
            quick.kept.clear();
        }
    };
    tokio::time::timeout(LONG * 3, wait).await.expect("it was never given up");

    // The received part is complete and in order, and its last cursor resumes.
    let mut last = Value::Null;
    let mut seen = Vec::new();
    let closed = loop {
        match tokio::time::timeout(LONG, lazy.stream.read_buf(&mut lazy.bytes)).await.expect("silence") {
            Ok(0) | Err(_) => break None,
            Ok(_) => {}
        }
        let mut closed = None;
        while let Some((head, payload)) = lazy.take() {
            if head == 0x88 {
                closed = Some(String::from_utf8(payload[2..].to_vec()).unwrap());
                assert_eq!(payload[..2], 4008u16.to_be_bytes());
            } else if let Ok(message) = serde_json::from_slice::<Value>(&payload)
                && message["method"] == "agent.event"
            {
                last = message["params"]["cursor"].clone();
                seen.push(last.clone());
            }
        }
        if closed.is_some() {
            break closed;
        }
    };
    if let Some(reason) = &closed {
        assert_eq!(last, json!(reason), "the close names the last event it got");
    }
    let mut again = Ws::ready(&front, &front.admin).await;
    again.call("session.attach", json!({ "session_id": session, "after": last })).await.unwrap();
    again.call("run.start", json!({ "session_id": session, "text": "the end" })).await.unwrap();
    loop {
        let events = again.events_to("run_ended").await;
        seen.extend(events.iter().map(|event| event["cursor"].clone()));
        if said(&events) == "the end" {
            break;
        }
    }
    let all = again.call("session.history", json!({ "session_id": session, "limit": 5000 })).await.unwrap();
    let first: Vec<_> = all["events"].as_array().unwrap().iter().map(|event| event["cursor"].clone()).collect();
    assert_eq!(seen[..first.len()], first[..], "no gap and no repeat");
    let place = |cursor: &Value| cursor.as_str().unwrap().rsplit_once(':').unwrap().1.parse::<u64>().unwrap();
    assert!(seen.windows(2).all(|two| place(&two[0]) < place(&two[1])));
}
