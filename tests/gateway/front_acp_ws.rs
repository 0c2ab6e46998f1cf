//! ACP over a WebSocket: invalid messages, and agents' calls of client tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::front::{Front, LONG};
use common::moments::{Moments, rounds};
use futures_util::{SinkExt as _, StreamExt as _};
use plexus::frontends::acp::ForwardedCalls;
use plexus::sessions::{ClientCall, ClientCallReply, Clients as _, SessionOwner};
use plexus_protocol::{DeviceId, SessionId};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

struct Client(tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>);

impl Client {
    async fn over(front: &Front, path: &str, header: (&'static str, String)) -> Self {
        let mut request = format!("ws://{}{path}", front.address).into_client_request().unwrap();
        request.headers_mut().insert(header.0, header.1.parse().unwrap());
        Self(tokio_tungstenite::connect_async(request).await.unwrap().0)
    }

    async fn new(front: &Front) -> Self {
        Self::over(front, "/acp", ("authorization", format!("Bearer {}", front.admin))).await
    }

    async fn hello(front: &Front, capabilities: Value) -> Self {
        let mut client = Self::new(front).await;
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        client.say(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params })).await;
        assert_eq!(client.hear().await["result"]["protocolVersion"], 1);
        client
    }

    async fn say(&mut self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn write(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    async fn text(&mut self) -> String {
        loop {
            match tokio::time::timeout(LONG, self.0.next()).await.unwrap().unwrap().unwrap() {
                Message::Text(text) => return text.to_string(),
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// The next message that fits; others are dropped.
    async fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.hear().await;
            if fits(&message) {
                return message;
            }
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params })).await;
        self.find(|message| message["id"] == method).await
    }

    async fn closed(&mut self) -> u16 {
        loop {
            match tokio::time::timeout(LONG, self.0.next()).await.unwrap() {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn acp_ws_invalid_message_is_answered_and_the_next_served() {
    let front = Front::new().await;
    let mut client = Client::new(&front).await;
    client.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {} })).await;
    let early = client.hear().await;
    assert_eq!((&early["error"]["code"], &early["error"]["data"]["code"]), (&json!(-32600), &json!("not_initialized")));
    // Before `initialize` these are ignored.
    client.say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s_1" } })).await;
    client.say(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    let mut client = Client::hello(&front, json!({})).await;
    for (text, code, id) in [
        ("", -32700, json!(null)),
        ("{", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"session/list"}]"#, -32600, json!(null)),
        ("1", -32600, json!(null)),
        ("null", -32600, json!(null)),
        (r#"{"id":2,"method":"session/list"}"#, -32600, json!(2)),
        (r#"{"jsonrpc":"1.0","id":2,"method":"session/list"}"#, -32600, json!(2)),
        (r#"{"jsonrpc":"2.0","id":3}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"session/list"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"session/list"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":true,"method":"session/list"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}"#, -32600, json!(4)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"nonsense"}"#, -32601, json!(5)),
        (r#"{"jsonrpc":"2.0","id":6,"method":"_plexus/event","params":{}}"#, -32601, json!(6)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"_vendor/x","params":{}}"#, -32601, json!(7)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"session/new","params":[]}"#, -32602, json!(8)),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}"#,
            -32602,
            json!(9),
        ),
        (
            r#"{"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"s_none","cwd":"/","mcpServers":[]}}"#,
            -32002,
            json!(10),
        ),
        (
            r#"{"jsonrpc":"2.0","id":11,"method":"session/load","params":{"sessionId":"../x","cwd":"/","mcpServers":[]}}"#,
            -32602,
            json!(11),
        ),
        (
            r#"{"jsonrpc":"2.0","id":12,"method":"session/prompt","params":{"sessionId":"s_none","prompt":[{"type":"text","text":"x"}]}}"#,
            -32002,
            json!(12),
        ),
        (r#"{"jsonrpc":"2.0","id":13,"method":"session/close","params":{"sessionId":"s_none"}}"#, -32002, json!(13)),
        (r#"{"jsonrpc":"2.0","id":14,"method":"session/set_mode","params":{"modeId":"x"}}"#, -32602, json!(14)),
        (r#"{"jsonrpc":"2.0","id":15,"method":"authenticate","params":{"methodId":"x"}}"#, -32602, json!(15)),
        (r#"{"jsonrpc":"2.0","id":16,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#, -32002, json!(16)),
    ] {
        client.write(text).await;
        let answer = client.hear().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{text}: {answer}");
    }
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    client.write(&deep).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    let long = json!({ "jsonrpc": "2.0", "id": "x".repeat(2000), "method": "session/list" });
    client.say(&long).await;
    assert_eq!(client.hear().await["id"], json!(null));
    // Responses without a request.
    for id in [json!(1), json!(null), json!("q_none"), json!("c_1"), json!("not a name"), json!(1.5)] {
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": { "outcome": "cancelled" } } })).await;
        client.say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "no" } })).await;
    }
    client.say(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 99 } })).await;
    client.say(&json!({ "jsonrpc": "2.0", "method": "nonsense" })).await;
    assert_eq!(client.call("session/list", json!({})).await["result"]["sessions"], json!([]));
}

#[tokio::test]
async fn acp_ws_response_repeats_the_exact_text_of_the_request_id() {
    let front = Front::new().await;
    let mut client = Client::hello(&front, json!({})).await;
    for id in ["1", "-7", "1.5", "1.0", "1e3", "null", "\"\"", "\"a \\u00e9\"", "123456789012345678901234567890"] {
        // The same id while the first is still answered: each request has its response.
        for _ in 0..2 {
            client.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{}}}}"#)).await;
        }
        for _ in 0..2 {
            let text = client.text().await;
            assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{text}");
        }
    }
    // The ends of two prompts with one id could not be told apart.
    let session = front.session("fake").await;
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "hang" }] });
    let prompt = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params });
    client.say(&prompt).await;
    client.say(&prompt).await;
    let refused = client.find(|message| message["id"] == 7).await;
    assert_eq!(refused["error"]["data"]["code"], "id_in_use");
    // A client that leaves gets the responses to its prompts.
    client.say(&json!({ "jsonrpc": "2.0", "id": 8, "method": "session/close", "params": params })).await;
    assert_eq!(client.find(|message| message["id"] == 7).await["error"]["code"], -32800);
    assert!(client.find(|message| message["id"] == 8).await["result"].is_object());
}

#[tokio::test]
async fn acp_ws_invalid_frames_close_with_their_code() {
    let front = Front::new().await;
    let mut client = Client::hello(&front, json!({})).await;
    client.0.send(Message::binary(&b"{}"[..])).await.unwrap();
    assert_eq!(client.closed().await, 1003);
    let mut client = Client::hello(&front, json!({})).await;
    let huge = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(17 << 20) });
    let _ = client.0.send(Message::text(huge.to_string())).await;
    assert_eq!(client.closed().await, 1009);
}

#[tokio::test]
async fn acp_ws_bearer_is_a_header_or_subprotocol_and_scopes_count() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    let protocols = format!("plexus.v1, plexus.bearer.{watcher}");
    let mut client = Client::over(&front, "/acp/fake", ("sec-websocket-protocol", protocols)).await;
    assert!(client.call("initialize", json!({ "protocolVersion": 1 })).await["result"].is_object());
    let loaded = client.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    assert!(loaded["result"].is_object(), "{loaded}");
    for (method, params) in [
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] })),
        ("session/new", json!({ "cwd": "/", "mcpServers": [] })),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "x" })),
    ] {
        assert_eq!(client.call(method, params).await["error"]["data"]["code"], "scope_missing", "{method}");
    }
    // A device limited to one runtime does not learn of others.
    front.session("other").await;
    let narrow = front.token(json!({ "scopes": ["watch", "prompt"], "runtimes": ["other"] })).await;
    let mut client = Client::over(&front, "/acp", ("authorization", format!("Bearer {narrow}"))).await;
    client.call("initialize", json!({ "protocolVersion": 1 })).await;
    let error = client.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    assert_eq!(error["error"]["data"]["code"], "session_not_found");
    let listed = client.call("session/list", json!({})).await["result"]["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let head = [("authorization", format!("Bearer {narrow}"))];
    let head: Vec<(&str, &str)> = head.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(front.send("GET", "/acp/fake", &head, "").await.status, 404);
    assert_eq!(front.send("GET", "/acp", &[], "").await.status, 401);
}

/// The agent's side of one session.
struct Agent {
    calls: ForwardedCalls,
    session: SessionId,
    owner: SessionOwner,
}

impl Agent {
    fn ask(&self, method: &str) -> tokio::task::JoinHandle<Option<ClientCallReply>> {
        let params = to_raw_value(&json!({ "sessionId": "the agent's own", "path": "/x" })).unwrap();
        let errand = ClientCall {
            session: self.session.clone(),
            runtime: "fake".parse().unwrap(),
            owner: self.owner.clone(),
            method: method.to_owned(),
            params,
        };
        tokio::spawn(self.calls.ask(errand))
    }
}

/// A device with these scopes, and its token.
async fn device(front: &Front, scopes: &[&str]) -> (DeviceId, String) {
    let reply = front.admin("POST", "/v1/devices", json!({ "name": "test", "scopes": scopes })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let body = reply.json();
    (body["device_id"].as_str().unwrap().parse().unwrap(), body["token"].as_str().unwrap().to_owned())
}

async fn editor(front: &Front, token: &str) -> Client {
    editor_of("an editor", front, token).await
}

/// An editor with a name.
async fn editor_of(name: &str, front: &Front, token: &str) -> Client {
    let mut client = Client::over(front, "/acp", ("authorization", format!("Bearer {token}"))).await;
    let can = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true });
    client
        .call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": can, "clientInfo": { "name": name, "version": "1" } }),
        )
        .await;
    client
}

/// The owner of a session that was opened in [`editor`]'s editor.
fn in_editor(device: &DeviceId) -> SessionOwner {
    SessionOwner { device: device.clone(), program: Some("an editor".into()) }
}

const ASKED: [&str; 7] = [
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
];

#[tokio::test]
async fn agent_calls_go_only_to_the_device_that_opened_the_session() {
    let front = Front::new().await;
    front.session("fake").await;
    let (owner, token) = device(&front, &["watch", "prompt", "approve"]).await;
    let mut desk = editor(&front, &token).await;
    let new = desk.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    let session: SessionId = new["result"]["sessionId"].as_str().unwrap().parse().unwrap();
    let calls = ForwardedCalls::new(front.acp.sessions.clone(), front.core.auth.clone());
    let agent = Agent { calls, session: session.clone(), owner: in_editor(&owner) };
    // Others join with the same capabilities as controllers: a read-only link, a device that may only prompt, another
    // machine's editor, this machine's administrator.
    let mut others = Vec::new();
    for scopes in [vec!["watch"], vec!["watch", "prompt"], vec!["watch", "prompt", "approve"]] {
        others.push(editor(&front, &device(&front, &scopes).await.1).await);
    }
    others.push(editor(&front, &front.admin).await);
    for other in &mut others {
        let attached = other.call("session/attach", json!({ "sessionId": session, "role": "controller" })).await;
        assert!(attached["result"].is_object(), "{attached}");
    }
    for method in ASKED {
        let asked = agent.ask(method);
        let question = desk.find(|message| message["method"] == method).await;
        assert_eq!(question["params"], json!({ "sessionId": session, "path": "/x" }));
        desk.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "it": method } })).await;
        let served = asked.await.unwrap().unwrap();
        assert_eq!(served.by.device_id, owner);
        assert_eq!(served.outcome.unwrap().get(), json!({ "it": method }).to_string());
    }
    // Its error is the agent's error.
    let asked = agent.ask("fs/read_text_file");
    let question = desk.find(|message| message["method"] == "fs/read_text_file").await;
    desk.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32002, "message": "no" } })).await;
    assert_eq!(asked.await.unwrap().unwrap().outcome.unwrap_err().code, -32002);
    // A call that is dropped is withdrawn.
    let asked = agent.ask("fs/read_text_file");
    let question = desk.find(|message| message["method"] == "fs/read_text_file").await;
    asked.abort();
    let back = desk.find(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(back["params"]["requestId"], question["id"]);
    // A silent client is not waited for forever.
    let patience = Duration::from_millis(50);
    let hasty =
        Agent { calls: agent.calls.clone().within(patience), session: session.clone(), owner: in_editor(&owner) };
    let error = hasty.ask("fs/read_text_file").await.unwrap().unwrap().outcome.unwrap_err();
    assert_eq!(error.code, -32001, "{error:?}");
    assert!(error.message.contains("did not answer"), "{error:?}");
    // The owner leaves: its open call has no answer, and no other client is asked.
    desk.find(|message| message["method"] == "$/cancel_request").await;
    let asked = agent.ask("fs/read_text_file");
    desk.find(|message| message["method"] == "fs/read_text_file").await;
    drop(desk);
    assert_eq!(asked.await.unwrap().unwrap().outcome.unwrap_err().code, -32603);
    for method in ASKED {
        assert!(agent.ask(method).await.unwrap().is_none(), "{method}");
    }
    // The owner comes back by any method: it serves the session again.
    let mut desk = editor(&front, &token).await;
    desk.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    let asked = agent.ask("fs/read_text_file");
    let question = desk.find(|message| message["method"] == "fs/read_text_file").await;
    desk.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": {} })).await;
    assert!(asked.await.unwrap().unwrap().outcome.is_ok());
    // Not as an observer.
    desk.call("session/attach", json!({ "sessionId": session, "role": "observer" })).await;
    assert!(agent.ask("fs/read_text_file").await.unwrap().is_none());
    desk.call("session/attach", json!({ "sessionId": session, "role": "controller" })).await;
    // The device's current grant counts, not that at joining.
    assert_eq!(front.admin("DELETE", &format!("/v1/devices/{owner}"), Value::Null).await.status, 204);
    assert!(agent.ask("fs/read_text_file").await.unwrap().is_none());
    for other in &mut others {
        other.say(&json!({ "jsonrpc": "2.0", "id": "last", "method": "session/list", "params": {} })).await;
        loop {
            let heard = other.hear().await;
            assert!(!heard["method"].as_str().is_some_and(|method| ASKED.contains(&method)), "{heard}");
            if heard["id"] == "last" {
                break;
            }
        }
    }
}

#[tokio::test]
async fn acp_resume_takes_back_what_closes_at_any_moment() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut moments = Moments::new();
    for round in 0..rounds("requests answered while a client resumes", 150, 1000) {
        let prompt = json!({ "text": "ask ls" });
        let prompted = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), prompt).await;
        assert_eq!(prompted.status, 202, "{prompted:?}");
        let id = front.open_request(&session).await["request_id"].as_str().unwrap().to_owned();
        let log = front.core.directory.log();
        let after = log.cursor(log.head()).to_string();
        let events = json!({ "_meta": { "plexus": { "events": round % 2 == 1 } } });
        let mut client = Client::hello(&front, events).await;
        // Another client answers while this one, whose dialog is open since an earlier connection, comes back.
        let answered = async {
            let pause = std::time::Duration::from_micros(moments.below(3000));
            tokio::time::sleep(pause).await;
            front.admin("POST", &format!("/v1/requests/{id}/answer"), json!({ "option_id": "no" })).await
        };
        let taken_back = async {
            let meta = json!({ "plexus": { "after": after } });
            let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [], "_meta": meta });
            client.say(&json!({ "jsonrpc": "2.0", "id": "back", "method": "session/resume", "params": params })).await;
            let (mut open, mut cancelled) = (None, false);
            while open.is_none() || !cancelled {
                let message = client.hear().await;
                if message["id"] == "back" {
                    open = Some(message["result"]["_meta"]["plexus"]["requests"].clone());
                }
                cancelled |= message["method"] == "$/cancel_request" && message["params"]["requestId"] == id.as_str();
            }
            open
        };
        let (answered, open) = tokio::join!(answered, taken_back);
        assert_eq!(answered.status, 200, "{answered:?}");
        assert!(open == Some(json!([])) || open == Some(json!([id])), "round {round}: {open:?}");
    }
}

/// All programs of this machine are one device; each is known by the name of its connection.
#[tokio::test]
async fn agent_calls_go_to_the_editor_that_opened_the_session() {
    let front = Front::new().await;
    front.session("fake").await;
    let mut zed = editor_of("zed", &front, &front.admin).await;
    let new = zed.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    let session: SessionId = new["result"]["sessionId"].as_str().unwrap().parse().unwrap();
    let me = front.admin("GET", "/v1/me", Value::Null).await.json();
    let device: DeviceId = me["device_id"].as_str().unwrap().parse().unwrap();
    let agent = Agent {
        calls: ForwardedCalls::new(front.acp.sessions.clone(), front.core.auth.clone()),
        session: session.clone(),
        owner: SessionOwner { device, program: Some("zed".into()) },
    };
    let mut other = editor_of("helix", &front, &front.admin).await;
    other.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    // A name given only with a session does not identify a program.
    let posing = json!({ "sessionId": session, "role": "controller", "clientInfo": { "name": "zed", "version": "1" } });
    other.call("session/attach", posing).await;
    let asked = agent.ask("fs/read_text_file");
    let question = zed.find(|message| message["method"] == "fs/read_text_file").await;
    zed.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "content": "zed's" } })).await;
    assert_eq!(asked.await.unwrap().unwrap().outcome.unwrap().get(), r#"{"content":"zed's"}"#);
    // After its connection is cut, the other program is not asked, even when it joins again.
    zed.call("session/detach", json!({ "sessionId": session })).await;
    drop(zed);
    assert!(agent.ask("fs/read_text_file").await.unwrap().is_none());
    other.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    assert!(agent.ask("fs/read_text_file").await.unwrap().is_none());
    // The program reconnects.
    let mut zed = editor_of("zed", &front, &front.admin).await;
    zed.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
    let asked = agent.ask("fs/read_text_file");
    let question = zed.find(|message| message["method"] == "fs/read_text_file").await;
    zed.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "content": "zed's" } })).await;
    assert!(asked.await.unwrap().unwrap().outcome.is_ok());
}

#[tokio::test]
async fn agent_calls_never_go_to_a_device_without_approve() {
    let front = Front::new().await;
    front.session("fake").await;
    let (owner, token) = device(&front, &["watch", "prompt"]).await;
    let mut phone = editor(&front, &token).await;
    let new = phone.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    let session: SessionId = new["result"]["sessionId"].as_str().unwrap().parse().unwrap();
    let calls = ForwardedCalls::new(front.acp.sessions.clone(), front.core.auth.clone());
    let agent = Agent { calls, session, owner: in_editor(&owner) };
    for method in ASKED {
        assert!(agent.ask(method).await.unwrap().is_none(), "{method}");
    }
}
