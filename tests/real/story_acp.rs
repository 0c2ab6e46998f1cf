//! Editors that attach by ACP over a WebSocket: with the official SDK, and with a raw client. One file: the stories share the
//! raw client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::{BTreeMap, VecDeque};

use agent_client_protocol_schema::v1;
use common::agents;
use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, demo, exe, position, runtime, said};
use common::moments::rounds;
use futures_util::{SinkExt as _, StreamExt as _};
use plexus_client::FollowStart;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A raw client that keeps all messages.
struct Editor {
    socket: Socket,
    next: u64,
    /// Responses that came during another wait.
    responses: BTreeMap<u64, Value>,
    /// All other messages, in order.
    told: VecDeque<Value>,
    /// Every message as received.
    texts: Vec<String>,
}

impl Editor {
    async fn connect(gateway: &Gateway, path: &str) -> Self {
        Self::connect_as(gateway, path, &gateway.token).await
    }

    async fn connect_as(gateway: &Gateway, path: &str, token: &str) -> Self {
        let mut request = format!("{}{path}", gateway.url.replace("http", "ws")).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        Self { socket, next: 0, responses: BTreeMap::new(), told: VecDeque::new(), texts: Vec::new() }
    }

    /// An initialized client with these capabilities.
    async fn hello(gateway: &Gateway, path: &str, capabilities: Value) -> Self {
        let mut editor = Self::connect(gateway, path).await;
        editor.initialize(capabilities).await;
        editor
    }

    async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": 1, "clientInfo": { "name": "editor", "version": "1" },
            "clientCapabilities": capabilities,
        });
        self.call("initialize", params).await.unwrap()
    }

    async fn say(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn hear(&mut self) -> Value {
        // Pings must not extend the wait.
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let frame = tokio::time::timeout_at(deadline, self.socket.next()).await;
            let frame = frame.unwrap_or_else(|_| panic!("nothing came; told: {:?}", self.told.iter().rev().take(3)));
            match frame.expect("the connection ended").unwrap() {
                Message::Text(text) => {
                    self.texts.push(text.to_string());
                    return serde_json::from_str(&text).unwrap();
                }
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    async fn take(&mut self) {
        let message = self.hear().await;
        published(&message);
        match message["id"].as_u64().filter(|_| message.get("method").is_none()) {
            Some(id) => {
                assert!(self.responses.insert(id, message).is_none(), "two responses to {id}");
            }
            None => self.told.push_back(message),
        }
    }

    async fn response(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(mut message) = self.responses.remove(&id) {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
            self.take().await;
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        let outcome = self.response(id).await;
        if let Ok(result) = &outcome {
            published_result(method, result);
        }
        outcome
    }

    /// The next message with this method; earlier ones are dropped.
    async fn until(&mut self, method: &str) -> Value {
        loop {
            while let Some(message) = self.told.pop_front() {
                if message["method"] == method {
                    return message;
                }
            }
            self.take().await;
        }
    }

    async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }

    async fn choose(&mut self, question: &Value, kind: &str) {
        let options = question["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } });
        self.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome })).await;
    }

    fn updates(&self) -> impl Iterator<Item = &Value> {
        self.told.iter().filter(|message| message["method"] == "session/update").map(|message| &message["params"])
    }

    /// The agent's whole text so far.
    fn text(&self) -> String {
        let chunks = self.updates().filter(|params| params["update"]["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|params| params["update"]["content"]["text"].as_str()).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        self.updates().filter_map(|params| params["update"]["sessionUpdate"].as_str()).collect()
    }
}

/// A page of the log with raw bodies.
#[derive(serde::Deserialize)]
struct Kept<'a> {
    #[serde(borrow)]
    events: Vec<Happened<'a>>,
}

#[derive(serde::Deserialize)]
struct Happened<'a> {
    #[serde(borrow)]
    event: &'a RawValue,
}

/// A raw update.
#[derive(serde::Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    params: Updated<'a>,
}

#[derive(serde::Deserialize)]
struct Updated<'a> {
    #[serde(borrow)]
    update: &'a RawValue,
}

fn parses<T: serde::de::DeserializeOwned>(value: &Value) {
    serde_json::from_value::<T>(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
}

/// Fails unless a message of the gateway matches the published protocol.
fn published(message: &Value) {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("session/update") => {
            let kind = params["update"]["sessionUpdate"].as_str().unwrap();
            // From RFD #533, only for clients that joined by `session/attach`.
            if !["permission_resolved", "client_disconnected"].contains(&kind) {
                parses::<v1::SessionNotification>(params);
            }
        }
        Some("session/request_permission") => parses::<v1::RequestPermissionRequest>(params),
        Some("fs/read_text_file") => parses::<v1::ReadTextFileRequest>(params),
        Some("fs/write_text_file") => parses::<v1::WriteTextFileRequest>(params),
        Some("elicitation/create") => parses::<v1::CreateElicitationRequest>(params),
        Some("$/cancel_request") => assert!(params["requestId"].is_string()),
        Some("_plexus/event") => assert!(params["cursor"].is_string()),
        Some(other) => panic!("{other} was not to be expected"),
        None => assert_eq!(message["jsonrpc"], "2.0"),
    }
}

fn published_result(method: &str, result: &Value) {
    match method {
        "initialize" => parses::<v1::InitializeResponse>(result),
        "session/list" => parses::<v1::ListSessionsResponse>(result),
        "session/new" => parses::<v1::NewSessionResponse>(result),
        "session/load" => parses::<v1::LoadSessionResponse>(result),
        "session/resume" => parses::<v1::ResumeSessionResponse>(result),
        "session/close" => parses::<v1::CloseSessionResponse>(result),
        "session/prompt" => parses::<v1::PromptResponse>(result),
        _ => {}
    }
}

fn load(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })
}

fn after(session: &str, cursor: &Value) -> Value {
    json!({ "sessionId": session, "cwd": "/", "_meta": { "plexus": { "after": cursor } } })
}

#[tokio::test]
async fn acp_prompt_response_comes_after_every_update_of_the_run() {
    let gateway = Gateway::demo().await;
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    let new = editor.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await.unwrap();
    let session = new["sessionId"].as_str().unwrap().to_owned();
    assert!(session.starts_with("s_"), "the gateway's own name: {new}");
    let id = editor.prompt(&session, "stream 20 ;; think ;; plan").await;
    let done = editor.response(id).await.unwrap();
    assert_eq!(done["stopReason"], "end_turn");
    let run = done["_meta"]["plexus"]["run_id"].as_str().unwrap().to_owned();
    let events = gateway.until_ended(&session, &run).await;
    assert!(!editor.text().is_empty());
    assert_eq!(editor.text(), said(&events, Some(&run)), "all of the text was there before the response");
    assert!(!editor.kinds().contains(&"user_message_chunk"), "an editor draws its user's prompt itself");
    assert!(
        editor.told.iter().all(|told| told["method"] == "session/update"),
        "nothing that a strict client chokes on"
    );
    // The bodies are those of the log, which are the agent's own, byte for byte.
    let log = gateway.request("GET", &format!("/v1/sessions/{session}/events?limit=1000")).send().await.unwrap();
    let log = log.text().await.unwrap();
    let log: Kept<'_> = serde_json::from_str(&log).unwrap();
    let kept: Vec<&str> = log.events.iter().map(|event| event.event.get()).collect();
    let said: Vec<Said<'_>> = editor.texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    assert!(said.len() > 20);
    for said in said {
        assert!(kept.contains(&said.params.update.get()), "{}", said.params.update);
    }
    // Each has its position.
    let all: Vec<&Value> = events.iter().filter(|event| event["run_id"] == run.as_str()).collect();
    for params in editor.updates().filter(|params| params["_meta"]["plexus"]["run_id"] == run.as_str()) {
        let place = &params["_meta"]["plexus"]["cursor"];
        let event = all.iter().find(|event| event["cursor"] == *place).unwrap();
        assert_eq!(params["update"], event["event"]);
        assert_eq!(params["sessionId"], session.as_str());
    }
}

#[tokio::test]
async fn acp_session_reports_its_settings_and_changes_them() {
    let gateway = Gateway::demo().await;
    let mut one = Editor::hello(&gateway, "/acp", json!({})).await;
    let new = one.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await.unwrap();
    let session = new["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(new["modes"]["currentModeId"], "ask");
    assert_eq!(new["modes"]["availableModes"].as_array().unwrap().len(), 2);
    let mut two = Editor::hello(&gateway, "/acp", json!({})).await;
    two.call("session/resume", load(&session)).await.unwrap();
    one.call("session/set_mode", json!({ "sessionId": session, "modeId": "auto" })).await.unwrap();
    loop {
        let update = two.until("session/update").await["params"]["update"].clone();
        if update["sessionUpdate"] == "current_mode_update" {
            assert_eq!(update["currentModeId"], "auto", "the others hear of it");
            break;
        }
    }
    let mut three = Editor::hello(&gateway, "/acp", json!({})).await;
    let loaded = three.call("session/load", load(&session)).await.unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "auto");
    assert_eq!(loaded["modes"]["availableModes"], new["modes"]["availableModes"]);
    // The agent's refusal keeps its code.
    let error = one.call("session/set_mode", json!({ "sessionId": session, "modeId": "nonsense" })).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
}

#[tokio::test]
async fn acp_load_sends_the_whole_session_before_its_response() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "stream 30").await;
    let events = gateway.until_ended(&session, &run).await;
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    let loaded = editor.call("session/load", load(&session)).await.unwrap();
    assert_eq!(editor.text(), said(&events, Some(&run)));
    assert!(editor.kinds().contains(&"user_message_chunk"), "a replay has the prompts");
    assert_eq!(loaded["_meta"]["plexus"]["runtime_id"], "demo");
    // A resume brings no history.
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    editor.call("session/resume", load(&session)).await.unwrap();
    assert_eq!(editor.updates().count(), 0);
    let id = editor.prompt(&session, "echo hi").await;
    editor.response(id).await.unwrap();
    assert_eq!(editor.text(), "hi");
}

#[tokio::test]
async fn acp_request_reaches_all_clients_and_the_first_answer_withdraws_it() {
    let gateway = Gateway::demo().await;
    let events = json!({ "_meta": { "plexus": { "events": true } } });
    let mut one = Editor::hello(&gateway, "/acp", json!({})).await;
    let new = one.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await.unwrap();
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let mut two = Editor::hello(&gateway, "/acp", events).await;
    two.call("session/attach", json!({ "sessionId": session })).await.unwrap();
    let id = one.prompt(&session, "ask").await;
    let (first, second) =
        (one.until("session/request_permission").await, two.until("session/request_permission").await);
    assert_eq!(first["id"], second["id"], "the same for every client");
    assert_eq!(first["params"]["sessionId"], session.as_str());
    assert_eq!(first["params"]["toolCall"], second["params"]["toolCall"]);
    assert!(first["params"]["_meta"]["plexus"]["digest"].is_string());
    two.choose(&second, "allow_once").await;
    let back = one.until("$/cancel_request").await;
    assert_eq!(back["params"]["requestId"], first["id"], "the loser is told to put its question away");
    assert_eq!(one.response(id).await.unwrap()["stopReason"], "end_turn");
    assert!(one.text().contains("allow"), "{}", one.text());
    // A client that attached learns who answered; the request is not withdrawn from the one that answered.
    let resolved = loop {
        let told = two.until("session/update").await;
        if told["params"]["update"]["sessionUpdate"] == "permission_resolved" {
            break told["params"]["update"].clone();
        }
        assert_ne!(told["method"], "$/cancel_request");
    };
    assert_eq!(resolved["outcome"]["kind"], "selected");
    assert!(resolved["chosenOptionId"].is_string());
    // A late answer has no effect.
    one.choose(&first, "reject_once").await;
    let id = one.prompt(&session, "echo still here").await;
    one.response(id).await.unwrap();
    let (_, request) = gateway.get(&format!("/v1/requests/{}", first["id"].as_str().unwrap())).await;
    assert_eq!(request["receipt"]["ok"], true);
}

#[tokio::test]
async fn acp_request_is_withdrawn_by_another_answer_or_a_cancel() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    editor.call("session/load", load(&session)).await.unwrap();
    let id = editor.prompt(&session, "ask").await;
    let question = editor.until("session/request_permission").await;
    // Closing the dialog decides nothing for the others.
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    editor.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome })).await;
    let request = gateway.open_request(&session).await;
    gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!(editor.until("$/cancel_request").await["params"]["requestId"], question["id"]);
    assert_eq!(editor.response(id).await.unwrap()["stopReason"], "end_turn");

    let id = editor.prompt(&session, "ask ;; hang").await;
    let question = editor.until("session/request_permission").await;
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(editor.until("$/cancel_request").await["params"]["requestId"], question["id"]);
    assert_eq!(editor.response(id).await.unwrap()["stopReason"], "cancelled");
    // By the id of its prompt too, even at once.
    let id = editor.prompt(&session, "echo begun ;; hang").await;
    editor.notify("$/cancel_request", json!({ "requestId": id })).await;
    assert_eq!(editor.response(id).await.unwrap()["stopReason"], "cancelled");
}

#[tokio::test]
async fn acp_cancel_withdraws_only_what_its_client_waits_for() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Editor::hello(&gateway, "/acp", json!({})).await;
    let mut two = Editor::hello(&gateway, "/acp", json!({ "_meta": { "plexus": { "events": true } } })).await;
    one.call("session/load", load(&session)).await.unwrap();
    two.call("session/load", load(&session)).await.unwrap();
    let running = one.prompt(&session, "ask").await;
    let question = one.until("session/request_permission").await;
    let queued = two.prompt(&session, "echo never").await;
    while two.until("_plexus/event").await["params"]["event"]["status"] != "queued" {}
    two.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(two.response(queued).await.unwrap()["stopReason"], "cancelled");
    one.choose(&question, "allow_once").await;
    assert_eq!(one.response(running).await.unwrap()["stopReason"], "end_turn");
}

#[tokio::test]
async fn acp_client_that_joins_is_asked_open_requests_once() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    gateway.until_ended(&session, &run).await;
    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    for (method, params, asked) in [
        ("session/load", load(&session), true),
        ("session/resume", load(&session), true),
        ("session/attach", json!({ "sessionId": session }), true),
        ("session/attach", json!({ "sessionId": session, "historyPolicy": "pending_only" }), true),
        ("session/attach", json!({ "sessionId": session, "historyPolicy": "none" }), false),
    ] {
        let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
        let answer = editor.call(method, params.clone()).await.unwrap();
        if method == "session/attach" {
            let policy = params.get("historyPolicy").cloned().unwrap_or_else(|| json!("full"));
            assert_eq!(answer["historyPolicy"], policy);
            assert_eq!(answer["sessionId"], session.as_str());
            assert!(answer["connectedClients"].as_array().unwrap().iter().any(|c| c["clientId"] == answer["clientId"]));
        }
        let past = method == "session/load" || params == json!({ "sessionId": session });
        assert_eq!(editor.updates().count() > 0, past, "{params}");
        // Everything that is sent because of the join comes before this.
        editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "nonsense" })).await.unwrap_err();
        let questions: Vec<&Value> =
            editor.told.iter().filter(|told| told["method"] == "session/request_permission").collect();
        match asked {
            true => {
                assert_eq!(questions.len(), 1, "{method} {params}");
                assert_eq!(questions[0]["id"], request["request_id"]);
            }
            false => assert!(questions.is_empty()),
        }
    }
    gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    gateway.until_ended(&session, &run).await;
}

#[tokio::test]
async fn acp_observer_sees_everything_and_may_do_nothing() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut watcher = Editor::hello(&gateway, "/acp", json!({})).await;
    watcher.call("session/attach", json!({ "sessionId": session, "role": "observer" })).await.unwrap();
    let run = gateway.prompt(&session, "stream 5 ;; ask").await;
    let request = gateway.open_request(&session).await;
    for (method, params) in [
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "echo x" }] })),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "x" })),
        ("session/cancel", json!({ "sessionId": session })),
    ] {
        let error = watcher.call(method, params).await.unwrap_err();
        assert_eq!(error["data"]["code"], "observer", "{method}");
    }
    let option = Gateway::option(&request, "allow_once");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
    watcher.say(&json!({ "jsonrpc": "2.0", "id": request["request_id"], "result": outcome })).await;
    watcher.call("session/list", json!({})).await.unwrap();
    assert_eq!(gateway.open_request(&session).await["request_id"], request["request_id"], "it is open still");
    gateway.choose(&request, &option).await;
    let events = gateway.until_ended(&session, &run).await;
    while watcher.text() != said(&events, Some(&run)) {
        watcher.take().await;
    }
    assert!(watcher.told.iter().all(|told| told["method"] == "session/update"), "it is asked nothing");
    assert!(watcher.kinds().contains(&"permission_resolved"));
}

#[tokio::test]
async fn acp_client_that_joins_mid_message_gets_the_same_bytes() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Editor::hello(&gateway, "/acp", json!({})).await;
    one.call("session/load", load(&session)).await.unwrap();
    let mut native = gateway.follow(&session, FollowStart::Now).await;
    let id = one.prompt(&session, "stream 400 2").await;
    one.until("session/update").await;
    let before = one.told.clone();
    let mut two = Editor::hello(&gateway, "/acp", json!({ "_meta": { "plexus": { "events": true } } })).await;
    two.call("session/load", load(&session)).await.unwrap();
    let done = one.response(id).await.unwrap();
    let run = done["_meta"]["plexus"]["run_id"].as_str().unwrap().to_owned();
    let mut whole = gateway.until_ended(&session, &run).await;
    whole.retain(|event| event["run_id"] == run.as_str());
    while !two.told.iter().any(|told| told["params"]["kind"] == "run_ended") {
        two.take().await;
    }
    let text = said(&whole, Some(&run));
    assert_eq!(two.text(), text);
    assert!(text.ends_with(&one.text()) && before.len() < 400);
    assert_eq!(said(&native.until_ended(&run).await, Some(&run)), text);
}

#[tokio::test]
async fn acp_client_cut_at_random_moments_has_the_whole_log() {
    let total = rounds("cuts", 25, 100);
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "stream 3000 1 ;; ask ;; stream 200").await;
    let mut seed = 20_251_121_u64;
    let mut dice = |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    let events = json!({ "_meta": { "plexus": { "events": true } } });
    let (mut has, mut asked, mut cursor): (Vec<Value>, u32, Option<Value>) = (Vec::new(), 0, None);
    let mut cuts = 0;
    let mut over = false;
    while !over {
        let mut editor = Editor::hello(&gateway, "/acp", events.clone()).await;
        match &cursor {
            None => editor.ask("session/load", load(&session)).await,
            Some(cursor) => editor.ask("session/resume", after(&session, cursor)).await,
        };
        // In the middle of the history, of the response, or of new events.
        let mut left = if cuts < total { dice(60) } else { u64::MAX };
        while left > 0 && !over {
            left -= 1;
            let message = editor.hear().await;
            match message["method"].as_str() {
                Some("session/update") => {
                    cursor = Some(message["params"]["_meta"]["plexus"]["cursor"].clone());
                    has.push(message["params"]["update"].clone());
                }
                Some("_plexus/event") => {
                    cursor = Some(message["params"]["cursor"].clone());
                    let kind = message["params"]["kind"].as_str().unwrap();
                    over |= kind == "run_ended";
                    if !kind.contains("message") {
                        has.push(message["params"]["event"].clone());
                    }
                }
                Some("session/request_permission") => {
                    asked += 1;
                    match cuts >= total {
                        true => editor.choose(&message, "allow_once").await,
                        // No more events come until the request is answered.
                        false => left = 0,
                    }
                }
                _ => {}
            }
        }
        if !over {
            cuts += 1;
            drop(editor);
        }
    }
    assert!(cuts >= total, "{cuts} cuts");
    let log = gateway.until_ended(&session, &run).await;
    let log: Vec<Value> = log.iter().map(|event| event["event"].clone()).collect();
    assert!(asked >= 1);
    assert_eq!(has.len(), log.len());
    assert_eq!(has, log, "no gap and no repeat");
}

#[tokio::test]
async fn acp_client_that_reads_late_blocks_nobody_and_gets_everything() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut slow = Editor::hello(&gateway, "/acp", json!({})).await;
    slow.call("session/load", load(&session)).await.unwrap();
    let id = slow.prompt(&session, "flood 30000 64").await;
    // It reads nothing more until the others have the whole run.
    let mut quick = Editor::hello(&gateway, "/acp", json!({ "_meta": { "plexus": { "events": true } } })).await;
    quick.ask("session/load", load(&session)).await;
    while !quick.told.back().is_some_and(|told| told["params"]["kind"] == "run_ended") {
        quick.take().await;
    }
    assert_eq!(slow.response(id).await.unwrap()["stopReason"], "end_turn");
    let log = gateway.events(&session).await;
    let said = log.iter().filter(|event| event["kind"] == "agent_message_chunk");
    let text: String = said.filter_map(|event| event["event"]["content"]["text"].as_str()).collect();
    assert_eq!(quick.text(), slow.text());
    assert_eq!(slow.text(), text);
    assert!(text.len() > 1 << 20, "{}", text.len());
}

#[tokio::test]
async fn acp_cursor_too_old_is_an_error_that_names_the_oldest() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    for (cursor, resume) in [("zzzz:5", "reset"), ("HEAD", "ahead")] {
        let (_, snapshot) = gateway.get(&format!("/v1/sessions/{session}/snapshot")).await;
        let head = snapshot["cursor"].as_str().unwrap();
        let ahead = format!("{}:{}", head.split_once(':').unwrap().0, position(&snapshot["cursor"]) + 1000);
        let cursor = if cursor == "HEAD" { ahead } else { cursor.to_owned() };
        let error = editor.call("session/resume", after(&session, &json!(cursor))).await.unwrap_err();
        assert_eq!(error["data"]["code"], "bad_cursor");
        assert_eq!(error["data"]["resume"], resume);
        assert!(error["data"]["oldest"].is_string());
    }
    let error = editor.call("session/resume", after(&session, &json!("junk"))).await.unwrap_err();
    assert_eq!(error["data"]["code"], "bad_cursor");
}

#[tokio::test]
async fn acp_sessions_are_listed_in_pages_for_all_or_one_runtime() {
    let gateway = Gateway::start(&format!("{}{}", demo(), runtime("other", &[exe(), "agent", "demo"], ""))).await;
    let mut all = Vec::new();
    for n in 0..60 {
        all.push(gateway.session(if n % 2 == 0 { "demo" } else { "other" }).await);
    }
    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    let first = editor.call("session/list", json!({})).await.unwrap();
    let second = editor.call("session/list", json!({ "cursor": first["nextCursor"] })).await.unwrap();
    assert!(second.get("nextCursor").is_none());
    let pages = [&first, &second].into_iter().flat_map(|page| page["sessions"].as_array().unwrap());
    let mut listed: Vec<String> = pages.map(|one| one["sessionId"].as_str().unwrap().to_owned()).collect();
    listed.sort();
    all.sort();
    assert_eq!(listed, all, "each once");
    editor.call("session/list", json!({ "cursor": "nonsense" })).await.unwrap_err();
    let none = editor.call("session/list", json!({ "cwd": "/nowhere" })).await.unwrap();
    assert_eq!(none["sessions"], json!([]));

    let mut editor = Editor::hello(&gateway, "/acp/other", json!({})).await;
    let listed = editor.call("session/list", json!({})).await.unwrap();
    assert!(listed["sessions"].as_array().unwrap().iter().all(|one| one["_meta"]["plexus"]["runtime_id"] == "other"));
    let new = editor.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await.unwrap();
    assert_eq!(new["_meta"]["plexus"]["runtime_id"], "other");
    let foreign = gateway.session("demo").await;
    let error = editor.call("session/load", load(&foreign)).await.unwrap_err();
    assert_eq!(error["data"]["code"], "session_not_found");

    let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
    let choice = json!({ "plexus": { "runtime_id": "other" } });
    let new = editor.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [], "_meta": choice })).await.unwrap();
    assert_eq!(new["_meta"]["plexus"]["runtime_id"], "other");
    let here = editor.call("session/list", json!({ "cwd": "/tmp" })).await.unwrap();
    assert_eq!(here["sessions"].as_array().unwrap().len(), 2);
    // `session/close` leaves the session, which goes on.
    editor.call("session/close", json!({ "sessionId": new["sessionId"] })).await.unwrap();
    let run = gateway.prompt(new["sessionId"].as_str().unwrap(), "echo on").await;
    gateway.until_ended(new["sessionId"].as_str().unwrap(), &run).await;
    assert_eq!(editor.call("session/list", json!({ "cwd": "/tmp" })).await.unwrap(), {
        assert_eq!(editor.updates().filter(|p| p["update"]["sessionUpdate"] == "agent_message_chunk").count(), 0);
        editor.call("session/list", json!({ "cwd": "/tmp" })).await.unwrap()
    });
}

#[tokio::test]
async fn acp_client_that_leaves_is_reported_to_the_others() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Editor::hello(&gateway, "/acp", json!({})).await;
    one.call("session/attach", json!({ "sessionId": session })).await.unwrap();
    let mut two = Editor::hello(&gateway, "/acp", json!({})).await;
    let attached = two.call("session/attach", json!({ "sessionId": session })).await.unwrap();
    assert_eq!((attached["connectedClients"].as_array().unwrap().len(), &attached["role"]), (2, &json!("controller")));
    drop(two);
    loop {
        let told = one.until("session/update").await;
        if told["params"]["update"]["sessionUpdate"] == "client_disconnected" {
            assert_eq!(told["params"]["update"]["clientId"], attached["clientId"]);
            assert_eq!(told["params"]["update"]["client"]["role"], "controller");
            break;
        }
    }
}

#[tokio::test]
async fn acp_prompt_repeated_under_its_key_is_the_same_run() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let prompt = json!({
        "sessionId": session, "prompt": [{ "type": "text", "text": "echo once" }], "_meta": { "plexus": { "key": "k1" } },
    });
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut editor = Editor::hello(&gateway, "/acp", json!({})).await;
        let done = editor.call("session/prompt", prompt.clone()).await.unwrap();
        assert_eq!(done["stopReason"], "end_turn");
        runs.push(done["_meta"]["plexus"]["run_id"].clone());
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn acp_official_sdk_attaches_prompts_answers_and_reconnects() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "stream 10").await;
    gateway.until_ended(&session, &run).await;
    let mut one = Player::enter("acp-ws", &gateway, &session).await;
    let mut two = Player::enter("acp-ws", &gateway, &session).await;
    for player in [&one, &two] {
        assert!(player.saw.iter().any(|(_, saw)| saw["ended"] == "end_turn"), "the past has its ends");
    }
    one.prompt("ask").await;
    let asked = one.until("asked").await;
    assert_eq!(two.until("asked").await["id"], asked["id"]);
    two.answer(true).await;
    for player in [&mut one, &mut two] {
        let resolved = player.until("resolved").await;
        assert_eq!((&resolved["resolved"], &resolved["allow"]), (&asked["id"], &json!(true)));
        player.until("ended").await;
    }
    one.prompt("ask ;; hang").await;
    two.until("asked").await;
    two.cut().await;
    one.until("asked").await;
    one.cancel().await;
    assert_eq!(one.until("ended").await["ended"], "cancelled");
    let run = gateway.prompt(&session, "stream 200 1").await;
    one.until("text").await;
    two.resume().await;
    for player in [&mut one, &mut two] {
        while player.until("ended").await["ended"] != "end_turn" {}
    }
    gateway.until_ended(&session, &run).await;
    let events = gateway.events(&session).await;
    assert_eq!(one.text(), said(&events, None));
    assert_eq!(two.text(), said(&events, None));
    one.quit().await;
    two.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acp_agent_files_come_from_the_editor_or_else_the_gateway() {
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (install, model) =
        tokio::task::spawn_blocking(|| (agents::install_dir(), agents::FakeModel::start())).await.unwrap();
    let setup = agents::gemini(&install, home.path(), model.port());
    let env: Vec<String> = setup.env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let command: Vec<&str> = setup.command.iter().map(String::as_str).collect();
    let more = format!(
        "cwd = {}\nenv = {{ {} }}\nauth_method = \"gemini-api-key\"\nserve_fs = true\n",
        json!(work.path()),
        env.join(", ")
    );
    let gateway = Gateway::start(&runtime("gemini", &command, &more)).await;
    let file = work.path().join("note.txt");
    std::fs::write(&file, "what is on the disk").unwrap();
    let write = format!("FAKE:write {} what-the-agent-wrote", file.display());
    let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });

    // The editor that has the session open is asked, and no other client.
    let mut editor = Editor::hello(&gateway, "/acp", files.clone()).await;
    let new = json!({ "cwd": work.path(), "mcpServers": [] });
    let session = editor.call("session/new", new).await.unwrap()["sessionId"].as_str().unwrap().to_owned();
    let mut watcher = Editor::hello(&gateway, "/acp", files).await;
    watcher.call("session/attach", json!({ "sessionId": session })).await.unwrap();
    let prompt = editor.prompt(&session, &write).await;
    let mut wrote = None;
    while !editor.responses.contains_key(&prompt) {
        editor.take().await;
        while let Some(message) = editor.told.pop_front() {
            let result = match message["method"].as_str() {
                Some("session/request_permission") => {
                    editor.choose(&message, "allow_once").await;
                    continue;
                }
                Some("fs/read_text_file") => json!({ "content": "what is not saved yet" }),
                Some("fs/write_text_file") => {
                    wrote = Some(message["params"].clone());
                    json!({})
                }
                _ => continue,
            };
            editor.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
        }
    }
    let wrote = wrote.expect("the editor was asked to write");
    assert_eq!((&wrote["path"], &wrote["sessionId"]), (&json!(file), &json!(session)));
    assert!(wrote["content"].as_str().unwrap().contains("what-the-agent-wrote"), "{wrote}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "what is on the disk", "it is the editor's to save");
    assert!(watcher.texts.iter().all(|text| !text.contains("fs/")), "one client is asked");

    // Without an editor the gateway writes the file, after people allowed its content.
    drop((editor, watcher));
    let session = gateway.session("gemini").await;
    let run = gateway.prompt(&session, &write).await;
    let mut seen = std::collections::BTreeSet::new();
    let deadline = std::time::Instant::now() + PATIENCE;
    while !gateway.events(&session).await.iter().any(|event| event["kind"] == "run_ended" && event["run_id"] == run) {
        let (_, open) = gateway.get("/v1/requests?state=open").await;
        for request in open["requests"].as_array().unwrap() {
            if seen.insert(request["request_id"].to_string()) {
                gateway.choose(request, &Gateway::option(request, "allow_once")).await;
            }
        }
        assert!(std::time::Instant::now() < deadline, "the run does not end");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(seen.len(), 2, "the agent's own question, and the gateway's");
    assert!(std::fs::read_to_string(&file).unwrap().contains("what-the-agent-wrote"));
}
