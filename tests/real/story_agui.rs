//! AG-UI on sessions of the demo agent, with the real `@ag-ui/client` (its schemas and verifier) and with plain POSTs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;

use common::agents::{self, AgentSetup, FakeModel};
use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, position, said};
use common::moments::rounds;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// A body with only its ids.
fn input(run: &str) -> Value {
    json!({ "threadId": "t", "runId": run, "messages": [], "tools": [], "context": [], "state": {}, "forwardedProps": {} })
}

fn prompt(run: &str, message: &str, text: &str) -> Value {
    let mut input = input(run);
    input["messages"] = json!([{ "id": message, "role": "user", "content": text }]);
    input
}

fn resume(run: &str, entries: Value) -> Value {
    let mut input = input(run);
    input["resume"] = entries;
    input
}

fn with(mut input: Value, plexus: Value) -> Value {
    input["forwardedProps"]["plexus"] = plexus;
    input
}

/// The response of a POST, read event by event.
struct Stream {
    body: Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: Vec<u8>,
}

impl Stream {
    /// The next event, its cursor beside it as `id`; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block = String::from_utf8(self.buffer.drain(..end + 2).collect()).unwrap();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let Some(data) = field("data: ") else { continue };
                let mut event: Value = serde_json::from_str(data).unwrap();
                if let Some(id) = field("id: ") {
                    assert_eq!(event["metadata"]["plexus"]["cursor"], id, "the cursor is said twice, the same");
                    event["id"] = id.into();
                }
                return Some(event);
            }
            let more = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("nothing came")?;
            self.buffer.extend_from_slice(&more.ok()?);
        }
    }

    async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no {kind} came"));
            if event["type"] == kind {
                return event;
            }
        }
    }
}

async fn send(gateway: &Gateway, session: &str, body: &Value, last: Option<&str>) -> reqwest::Response {
    let mut request = gateway.request("POST", &format!("/ag-ui/{session}")).header("Accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("Last-Event-ID", last);
    }
    request.json(body).send().await.unwrap()
}

async fn open(gateway: &Gateway, session: &str, body: &Value, last: Option<&str>) -> Stream {
    let response = send(gateway, session, body, last).await;
    let status = response.status();
    if status != 200 {
        panic!("{status} {}", response.text().await.unwrap());
    }
    Stream { body: Box::pin(response.bytes_stream()), buffer: Vec::new() }
}

async fn refused(gateway: &Gateway, session: &str, body: &Value) -> (u16, Value) {
    let response = send(gateway, session, body, None).await;
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{status}");
    (status, response.json().await.unwrap())
}

/// A client's conversation as `HttpAgent` folds it, text only.
#[derive(Default)]
struct Messages(Vec<(String, String, String)>);

impl Messages {
    fn take(&mut self, event: &Value) {
        let id = event["messageId"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "MESSAGES_SNAPSHOT" => {
                let all = event["messages"].as_array().unwrap().iter();
                let all = all.filter(|message| message["role"] == "assistant" || message["role"] == "user");
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                self.0 = all
                    .map(|message| (text(&message["id"]), text(&message["role"]), text(&message["content"])))
                    .collect();
            }
            "TEXT_MESSAGE_START" if !self.0.iter().any(|(known, ..)| known == id) => {
                self.0.push((id.into(), event["role"].as_str().unwrap().into(), String::new()));
            }
            "TEXT_MESSAGE_CONTENT" => {
                let message = self.0.iter_mut().find(|(known, ..)| known == id).unwrap();
                message.2.push_str(event["delta"].as_str().unwrap());
            }
            _ => {}
        }
    }

    fn text(&self, role: &str) -> String {
        self.0.iter().filter(|(_, whose, _)| whose == role).map(|(.., text)| text.as_str()).collect()
    }
}

fn messages(events: &[Value]) -> Messages {
    let mut messages = Messages::default();
    events.iter().for_each(|event| messages.take(event));
    messages
}

/// The text of events, without snapshots.
fn streamed(events: &[Value]) -> String {
    let mut users = Vec::new();
    let mut text = String::new();
    for event in events {
        if event["type"] == "TEXT_MESSAGE_START" && event["role"] == "user" {
            users.push(event["messageId"].clone());
        } else if event["type"] == "TEXT_MESSAGE_CONTENT" && !users.contains(&event["messageId"]) {
            text.push_str(event["delta"].as_str().unwrap());
        }
    }
    text
}

fn custom<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let found = events.iter().find(|event| event["type"] == "CUSTOM" && event["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name} in {events:?}"))["value"]
}

fn interrupts(events: &[Value]) -> Vec<Value> {
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]["type"]), (&json!("RUN_FINISHED"), &json!("interrupt")), "{last}");
    last["outcome"]["interrupts"].as_array().unwrap().clone()
}

fn resolved(interrupts: &[Value], approved: bool) -> Value {
    let one = |interrupt: &Value| json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": approved } });
    interrupts.iter().map(one).collect()
}

async fn runs(gateway: &Gateway, session: &str) -> usize {
    gateway.events(session).await.iter().filter(|event| event["kind"] == "run_started").count()
}

// === a run ===

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_prompt_streams_and_ends_with_its_outcome() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut body = prompt("a1", "u1", "stream 20 ;; think ;; plan ;; diff");
    body["tools"] = json!([{ "name": "x", "description": "y" }]);
    let events = open(&gateway, &session, &body, None).await.rest().await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]);
    assert_eq!((&events[0]["threadId"], &events[0]["runId"]), (&json!("t"), &json!("a1")));
    assert_eq!(
        events[1]["messages"],
        json!([{ "id": "u1", "role": "user", "content": body["messages"][0]["content"] }])
    );
    assert_eq!(events[2]["snapshot"]["session"]["session_id"], *session);
    assert_eq!(custom(&events, "plexus.ignored")["ignored"], json!(["tools"]));
    for kind in ["REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "ACTIVITY_DELTA", "STATE_DELTA"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let plans = events.iter().filter(|event| event["type"] == "STATE_DELTA" && event["delta"][0]["path"] == "/plan");
    assert!(plans.count() > 1);
    let last = events.last().unwrap();
    assert_eq!((&last["outcome"]["type"], &last["result"]["stop_reason"]), (&json!("success"), &json!("end_turn")));
    let log = gateway.events(&session).await;
    assert_eq!(streamed(&events), said(&log, None));
    let positions: Vec<u64> =
        events.iter().filter(|event| event.get("id").is_some()).map(|event| position(&event["id"])).collect();
    assert!(positions.is_sorted(), "{positions:?}");

    // A client that joins now gets it whole at once, and nothing is started.
    let again = open(&gateway, &session, &input("a2"), None).await.rest().await;
    assert_eq!(messages(&again).text("assistant"), said(&log, None));
    assert_eq!(messages(&again).text("user"), "stream 20 ;; think ;; plan ;; diff");
    assert_eq!(again.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(runs(&gateway, &session).await, 1);

    // Clients send the whole history with the next message: only the new part is prompted.
    let mut history = again[1]["messages"].as_array().unwrap().clone();
    history.retain(|message| message["role"] != "activity");
    history.push(json!({ "id": "u2", "role": "user", "content": "echo two" }));
    let mut body = input("a3");
    body["messages"] = history.into();
    body["state"] = again[2]["snapshot"].clone();
    let events = open(&gateway, &session, &body, None).await.rest().await;
    assert_eq!(streamed(&events).trim(), "two");
    assert!(!events.iter().any(|event| event["name"] == "plexus.ignored"), "the state was ours");
    let mut stale = prompt("a4", "u2", "echo two");
    stale["messages"].as_array_mut().unwrap().insert(0, json!({ "id": "u1", "role": "user", "content": "x" }));
    open(&gateway, &session, &stale, None).await.rest().await;
    assert_eq!(runs(&gateway, &session).await, 2, "the session has both messages");

    // An id that was used for another text is refused by name, in any conversation of the client.
    let reused = serde_json::to_vec(&prompt("a5", "u2", "echo three")).unwrap();
    let post = gateway.request("POST", &format!("/ag-ui/{session}")).header("content-type", "application/json");
    let refused = post.body(reused).send().await.unwrap();
    assert_eq!(refused.status(), 422);
    let problem: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(problem["code"], "message_id_reused", "{problem}");
    assert_eq!(runs(&gateway, &session).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_retried_post_runs_once() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let body = prompt("once", "u1", "stream 30 1");
    let all = futures_util::future::join_all(
        (0..8).map(|_| async { open(&gateway, &session, &body, None).await.rest().await }),
    );
    let all = all.await;
    let log = gateway.events(&session).await;
    assert_eq!(runs(&gateway, &session).await, 1);
    for events in &all {
        assert_eq!(streamed(events), said(&log, None), "each has the run from its beginning");
        assert_eq!(events.last().unwrap()["result"]["stop_reason"], "end_turn");
    }
    let late = open(&gateway, &session, &body, None).await.rest().await;
    assert_eq!(streamed(&late), said(&log, None), "also when it is long over");
    assert_eq!(messages(&late).text("user"), "stream 30 1");
    assert_eq!(runs(&gateway, &session).await, 1);

    // Also while it is queued, and with any run id of the client.
    let mut hangs = open(&gateway, &session, &prompt("h", "u2", "hang"), None).await;
    hangs.until("STATE_SNAPSHOT").await;
    let mut waiting = Vec::new();
    for run in ["w", "w", "other"] {
        let mut stream = open(&gateway, &session, &prompt(run, "u3", "echo waited"), None).await;
        let told = stream.until("CUSTOM").await;
        assert_eq!((&told["name"], &told["value"]["queued"]), (&json!("plexus.prompt"), &json!(true)));
        waiting.push((told["value"]["run_id"].clone(), stream));
    }
    let (_, shown) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(shown["queue"].as_array().unwrap().len(), 1);
    let cancel = with(input("c"), json!({ "cancel": shown["run_id"] }));
    drop(open(&gateway, &session, &cancel, None).await);
    let first = waiting[0].0.clone();
    for (run, stream) in waiting {
        assert_eq!(run, first);
        let events = stream.rest().await;
        assert_eq!(streamed(&events).trim(), "waited");
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    }
    assert_eq!(runs(&gateway, &session).await, 3);

    // It is in the log, and so known after a crash.
    gateway.kill();
    gateway.again().await;
    let late = open(&gateway, &session, &prompt("once", "u1", "stream 30 1"), None).await.rest().await;
    assert_eq!(streamed(&late), streamed(&all[0]));
    assert_eq!(runs(&gateway, &session).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_random_cuts_lose_and_repeat_nothing() {
    let total = rounds("cuts", 25, 100);
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let body = prompt("cut", "u1", "stream 400 2 ;; think ;; diff ;; stream 100 1");
    let mut seed = 7_u64;
    let mut roll = |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    let mut cursor: Option<String> = None;
    let (mut text, mut cuts, mut ended, mut kept) = (String::new(), 0, false, Messages::default());
    let mut users = Vec::new();
    while !ended {
        // By the header or by the body.
        let by_body = cursor.as_ref().filter(|_| roll(2) == 0);
        let post = by_body.map_or(body.clone(), |cursor| with(body.clone(), json!({ "cursor": cursor })));
        let header = if by_body.is_some() { None } else { cursor.as_deref() };
        let mut stream = open(&gateway, &session, &post, header).await;
        let snapshot = stream.until("STATE_SNAPSHOT").await;
        assert!(cursor.is_none() || snapshot["id"] == *cursor.as_ref().unwrap(), "it begins where the client was");
        let mut left = if cuts < total { roll(8) } else { u64::MAX };
        // Events after the last cursor come again.
        let mut pending = String::new();
        while left > 0 {
            let Some(event) = stream.next().await else { break };
            kept.take(&event);
            if event["type"] == "TEXT_MESSAGE_START" && event["role"] == "user" {
                users.push(event["messageId"].clone());
            }
            if event["type"] == "TEXT_MESSAGE_CONTENT" && !users.contains(&event["messageId"]) {
                pending.push_str(event["delta"].as_str().unwrap());
            }
            if let Some(id) = event["id"].as_str() {
                text.push_str(&std::mem::take(&mut pending));
                cursor = Some(id.to_owned());
            }
            ended |= event["type"] == "RUN_FINISHED";
            left = left.saturating_sub(1);
        }
        cuts += 1;
    }
    assert!(cuts >= total, "{cuts} cuts");
    let log = gateway.events(&session).await;
    assert_eq!(text, said(&log, None));
    assert_eq!(kept.text("assistant"), said(&log, None), "and so has a client that keeps messages");
    assert_eq!(runs(&gateway, &session).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_cursor_of_another_epoch_begins_with_what_there_is() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    open(&gateway, &session, &prompt("a", "u", "echo hello"), None).await.rest().await;
    let events = open(&gateway, &session, &input("b"), Some("zzzz:5")).await.rest().await;
    assert_eq!(custom(&events, "plexus.resume_from")["resume"], "reset");
    assert_eq!(messages(&events).text("assistant").trim(), "hello");
}

// === questions ===

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_approval_is_an_interrupt_and_is_resumed() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let first = open(&gateway, &session, &prompt("a1", "u1", "echo before ;; ask"), None).await.rest().await;
    let asked = interrupts(&first);
    assert_eq!((asked.len(), &asked[0]["reason"]), (1, &json!("tool_call")));
    let started = first.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
    assert_eq!(asked[0]["toolCallId"], started["toolCallId"]);
    assert!(asked[0]["responseSchema"]["properties"]["optionId"]["enum"].as_array().unwrap().len() == 3);
    assert_eq!(asked[0]["metadata"]["plexus"]["request_id"], asked[0]["id"]);
    // A client that joins meanwhile gets the same.
    let meanwhile = open(&gateway, &session, &input("x"), None).await.rest().await;
    assert_eq!(interrupts(&meanwhile)[0]["id"], asked[0]["id"]);
    assert_eq!(meanwhile[2]["snapshot"]["requests"].as_object().unwrap().len(), 1);

    let body = resume("a2", resolved(&asked, true));
    let second = open(&gateway, &session, &body, None).await.rest().await;
    let outcome = &custom(&second, "plexus.resume")["interrupts"][0];
    assert_eq!((&outcome["won"], &outcome["ok"]), (&json!(true), &json!(true)));
    assert_eq!(second.last().unwrap()["outcome"]["type"], "success");
    let log = gateway.events(&session).await;
    assert_eq!(streamed(&first) + &streamed(&second), said(&log, None));
    assert!(streamed(&second).contains("allowed"));

    // A repeat decides nothing and shows the same rest; so does a late client.
    let again = open(&gateway, &session, &body, None).await.rest().await;
    assert_eq!(streamed(&again), streamed(&second));
    assert_eq!(custom(&again, "plexus.resume")["interrupts"][0]["won"], true);
    let late = open(&gateway, &session, &resume("other", resolved(&asked, false)), None).await.rest().await;
    assert_eq!(streamed(&late), streamed(&second));
    let outcome = &custom(&late, "plexus.resume")["interrupts"][0];
    assert_eq!((&outcome["won"], &outcome["ok"]), (&json!(false), &json!(true)));
    assert_eq!(late.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_two_approvals_are_one_interrupt_and_need_one_resume() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let first = open(&gateway, &session, &prompt("a1", "u1", "ask2"), None).await.rest().await;
    // The second may open just after the first was sent; then a new POST sees both.
    assert!(!interrupts(&first).is_empty());
    gateway.open_requests(&session, 2).await;
    let asked = interrupts(&open(&gateway, &session, &input("look"), None).await.rest().await);
    assert_eq!(asked.len(), 2);
    let (status, problem) = refused(&gateway, &session, &resume("a2", resolved(&asked[..1], true))).await;
    assert_eq!((status, &problem["code"]), (409, &json!("resume_partial")));
    assert_eq!(problem["missing"], json!([asked[1]["id"]]));
    let mut both = resolved(&asked, true);
    both[1]["payload"] = json!({ "optionId": "nonsense" });
    let (status, problem) = refused(&gateway, &session, &resume("a3", both)).await;
    assert_eq!((status, &problem["code"]), (422, &json!("option_not_offered")));
    assert_eq!(gateway.open_requests(&session, 2).await.len(), 2, "nothing was decided");
    let mut both = resolved(&asked, true);
    both[1] = json!({ "interruptId": asked[1]["id"], "status": "cancelled" });
    let second = open(&gateway, &session, &resume("a4", both), None).await.rest().await;
    assert!(streamed(&second).contains("allowed") && streamed(&second).contains("rejected"));

    // With `partial`, some may stay open.
    open(&gateway, &session, &prompt("b1", "u2", "ask2"), None).await.rest().await;
    gateway.open_requests(&session, 2).await;
    let asked = interrupts(&open(&gateway, &session, &input("look again"), None).await.rest().await);
    let part = with(resume("b2", resolved(&asked[1..], true)), json!({ "partial": true }));
    let second = open(&gateway, &session, &part, None).await.rest().await;
    let left = interrupts(&second);
    assert_eq!((left.len(), &left[0]["id"]), (1, &asked[0]["id"]));
    let third = open(&gateway, &session, &resume("b3", resolved(&left, true)), None).await.rest().await;
    assert_eq!(third.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_approval_by_another_client_lets_the_run_go_on() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut follower = open(&gateway, &session, &with(input("f"), json!({ "follow": true })), None).await;
    let idle = follower.until("RUN_FINISHED").await;
    assert_eq!(idle["outcome"]["type"], "success", "nothing runs");
    let first = open(&gateway, &session, &prompt("a1", "u1", "ask"), None).await.rest().await;
    let run = custom(&first, "plexus.prompt")["run_id"].as_str().unwrap().to_owned();
    let asked = interrupts(&first);
    // Events between runs come in AG-UI runs of their own.
    while follower.until("RUN_STARTED").await["runId"] != format!("{run}#1") {}
    assert_eq!(follower.until("RUN_FINISHED").await["outcome"]["interrupts"][0]["id"], asked[0]["id"]);
    let request = gateway.open_request(&session).await;
    let (status, _) = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!(status, 200);
    let started = follower.until("RUN_STARTED").await;
    assert_eq!(started["runId"], format!("{run}#2"), "unprompted");
    assert_eq!(follower.until("RUN_FINISHED").await["outcome"]["type"], "success");
    let second = open(&gateway, &session, &resume("a2", resolved(&asked, true)), None).await.rest().await;
    let outcome = &custom(&second, "plexus.resume")["interrupts"][0];
    assert_eq!((&outcome["won"], &outcome["ok"]), (&json!(false), &json!(false)));
    assert!(outcome["resolved_by"]["name"].is_string());
    assert_eq!(streamed(&first) + &streamed(&second), said(&gateway.events(&session).await, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_interrupt_is_not_delayed_by_a_busy_session() {
    let gateway = Gateway::demo().await;
    let (busy, session) = (gateway.session("demo").await, gateway.session("demo").await);
    gateway.prompt(&busy, "stream 100000 1").await;
    for n in 0..5 {
        let body = prompt(&format!("a{n}"), &format!("u{n}"), "ask");
        let asked = interrupts(&open(&gateway, &session, &body, None).await.rest().await);
        let idle = open(&gateway, &busy, &input("x"), None).await;
        drop(idle);
        let body = resume(&format!("b{n}"), resolved(&asked, true));
        let events = open(&gateway, &session, &body, None).await.rest().await;
        assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    }
    let events = open(&gateway, &busy, &with(input("c"), json!({ "cancel": true })), None).await.rest().await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_cancel_ends_the_run_and_its_requests() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut stream = open(&gateway, &session, &prompt("a1", "u1", "hang"), None).await;
    stream.until("STATE_SNAPSHOT").await;
    // A client that disconnects does not cancel the run.
    drop(stream);
    let (_, shown) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(shown["state"], "running");
    let events = open(&gateway, &session, &with(input("a2"), json!({ "cancel": true })), None).await.rest().await;
    assert!(custom(&events, "plexus.cancel")["run_id"].is_string());
    assert_eq!(events.last().unwrap()["outcome"]["type"], "cancelled");
    // A repeated cancel of an ended run stops no other run.
    let mut stream = open(&gateway, &session, &prompt("a3", "u3", "hang"), None).await;
    stream.until("STATE_SNAPSHOT").await;
    let run = &custom(&events, "plexus.cancel")["run_id"];
    let mut stale = open(&gateway, &session, &with(input("a4"), json!({ "cancel": run })), None).await;
    let told = stale.until("CUSTOM").await;
    assert_eq!((&told["name"], &told["value"]["run_id"]), (&json!("plexus.cancel"), &Value::Null));
    let (_, shown) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(shown["state"], "running");
    let run = shown["run_id"].clone();
    let events = open(&gateway, &session, &with(input("a5"), json!({ "cancel": run })), None).await.rest().await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "cancelled");
    // A client may cancel instead of answering.
    let asked = interrupts(&open(&gateway, &session, &prompt("b1", "u2", "ask"), None).await.rest().await);
    let declined = json!([{ "interruptId": asked[0]["id"], "status": "cancelled" }]);
    let body = with(resume("b2", declined.clone()), json!({ "cancel": true }));
    let events = open(&gateway, &session, &body, None).await.rest().await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "cancelled");
    let (status, problem) = refused(&gateway, &session, &resume("b3", resolved(&asked, true))).await;
    assert_eq!((status, &problem["code"]), (410, &json!("withdrawn")));
    let events = open(&gateway, &session, &resume("b4", declined), None).await.rest().await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "whoever gives up may go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_failed_run_is_a_run_error() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let events = open(&gateway, &session, &prompt("a1", "u1", "echo x ;; crash"), None).await.rest().await;
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("run_failed")));
    assert!(!last["message"].as_str().unwrap().is_empty());
}

// === the real client ===

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_two_pages_see_the_same_and_the_first_answer_wins() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Player::enter("ag-ui", &gateway, &session).await;
    let mut two = Player::enter("ag-ui", &gateway, &session).await;
    one.prompt("stream 50 1 ;; think ;; plan ;; ask ;; diff ;; ask2").await;
    for questions in [1, 2] {
        let mut asked = Vec::new();
        for _ in 0..questions {
            let (here, there) = (one.until("asked").await, two.until("asked").await);
            assert_eq!(here, there);
            asked.push(here);
        }
        for question in asked {
            two.answer(true).await;
            for page in [&mut one, &mut two] {
                let end = page.until("resolved").await;
                assert_eq!((&end["resolved"], &end["allow"]), (&question["id"], &json!(true)));
                assert_eq!(end["by"], "this machine");
            }
        }
    }
    for page in [&mut one, &mut two] {
        assert_eq!(page.until("ended").await["ended"], "end_turn");
        assert_eq!(page.text(), said(&gateway.events(&session).await, None));
    }
    one.prompt("hang").await;
    two.until("user").await;
    two.cancel().await;
    assert_eq!(one.until("ended").await["ended"], "cancelled");
    assert_eq!(two.until("ended").await["ended"], "cancelled");
    one.quit().await;
    two.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_page_joins_mid_message_and_resumes_after_cuts() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut early = Player::enter("ag-ui", &gateway, &session).await;
    // The run ends when all requests are answered.
    gateway.prompt(&session, "stream 100000 3").await;
    early.until("text").await;
    let mut late = Player::enter("ag-ui", &gateway, &session).await;
    for _ in 0..10 {
        late.until("text").await;
        late.cut().await;
        late.resume().await;
    }
    late.cancel().await;
    assert_eq!(late.until("ended").await["ended"], "cancelled");
    assert_eq!(early.until("ended").await["ended"], "cancelled");
    let run = gateway.prompt(&session, "ask").await;
    late.until("asked").await;
    early.until("asked").await;
    early.cut().await;
    late.answer(false).await;
    assert_eq!(late.until("ended").await["ended"], "end_turn");
    early.resume().await;
    assert_eq!(early.until("ended").await["ended"], "end_turn", "also what happened while it was away");
    let log = gateway.until_ended(&session, &run).await;
    for page in [&early, &late] {
        assert_eq!(page.text(), said(&log, None));
    }
    early.quit().await;
    late.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_generic_page_prompts_and_answers() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "echo before ;; diff").await;
    gateway.until_ended(&session, &run).await;
    let mut page = Player::enter("ag-ui-plain", &gateway, &session).await;
    for (prompt, allow) in [("stream 20 ;; ask ;; think ;; plan", true), ("echo again ;; ask ;; diff", false)] {
        page.prompt(prompt).await;
        let asked = page.until("asked").await;
        page.answer(allow).await;
        let end = page.until("resolved").await;
        assert_eq!((&end["resolved"], &end["allow"]), (&asked["id"], &json!(allow)));
        assert_eq!(page.until("ended").await["ended"], "end_turn");
        assert_eq!(page.text(), said(&gateway.events(&session).await, None));
    }
    let users: Vec<&str> = page.saw.iter().filter_map(|(_, saw)| saw["user"].as_str()).collect();
    assert_eq!(users, ["echo before ;; diff", "stream 20 ;; ask ;; think ;; plan", "echo again ;; ask ;; diff"]);
    assert_eq!(runs(&gateway, &session).await, 3);
    page.quit().await;
}

type Setup = fn(&Path, &Path, u16) -> AgentSetup;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_real_agents_take_prompts_and_ask_the_page() {
    let agents: [(&str, &str, Setup); 5] = [
        ("gemini", "acp", agents::gemini),
        ("opencode", "acp", agents::opencode),
        ("codex-acp", "acp", agents::codex_acp),
        ("codex-app", "codex", agents::codex_app),
        ("claude", "acp", agents::claude),
    ];
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    let gateway = Gateway::start("").await;
    for (id, dialect, setup) in agents {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let setup = setup(&install, home.path(), model.port());
        let env: BTreeMap<&String, &String> = setup.env.iter().map(|(name, value)| (name, value)).collect();
        let body = json!({ "id": id, "dialect": dialect, "command": setup.command, "cwd": work.path(), "env": env,
            "auth_method": setup.auth_method, "session_meta": setup.session_meta });
        let (status, body) = gateway.post("/v1/runtimes", body).await;
        assert_eq!(status, 201, "{body}");
        let session = gateway.session(id).await;
        let mut page = Player::enter("ag-ui-plain", &gateway, &session).await;
        page.prompt("FAKE:text words of a page").await;
        // Codex's own server calls it `completed`.
        assert!(["end_turn", "completed"].contains(&page.until("ended").await["ended"].as_str().unwrap()), "{id}");
        let file = work.path().join("made");
        page.prompt(&format!("FAKE:shell touch {}", file.display())).await;
        page.until("asked").await;
        page.answer(true).await;
        assert_eq!(page.until("resolved").await["allow"], true, "{id}");
        page.until("ended").await;
        assert!(file.exists(), "{id}: what was allowed was done");
        let text = page.text();
        assert!(text.contains("words of a page"), "{id}: {text}");
        assert_eq!(text, said(&gateway.events(&session).await, None), "{id}");
        page.quit().await;
        let (status, body) = gateway.delete(&format!("/v1/runtimes/{id}")).await;
        assert!(status < 300, "{body}");
    }
}

// === who may, and what fits ===

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_watch_only_device_listens_and_no_more() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let asked = interrupts(&open(&gateway, &session, &prompt("a1", "u1", "ask"), None).await.rest().await);
    let post = async |scopes: Value, body: Value| {
        let (_, device) = gateway.post("/v1/devices", json!({ "name": "x", "scopes": scopes })).await;
        let request = gateway.http.post(format!("{}/ag-ui/{session}", gateway.url));
        let response = request.bearer_auth(device["token"].as_str().unwrap()).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (status, text) = post(json!(["watch"]), input("w")).await;
    assert!(status == 200 && text.contains("\"interrupt\""), "{status} {text}");
    for (scopes, body, missing) in [
        (json!(["watch"]), prompt("p", "u9", "echo x"), "prompt"),
        (json!(["watch"]), with(input("c"), json!({ "cancel": true })), "prompt"),
        (json!(["watch", "prompt"]), resume("r", resolved(&asked, true)), "approve"),
        (json!(["prompt"]), input("n"), "watch"),
    ] {
        let (status, text) = post(scopes, body).await;
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &problem["code"], &problem["scope"]), (403, &json!("scope_missing"), &json!(missing)));
    }
    assert_eq!(gateway.open_requests(&session, 1).await.len(), 1, "nothing was decided");
    let request = gateway.http.post(format!("{}/ag-ui/{session}", gateway.url));
    assert_eq!(request.json(&input("x")).send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agui_invalid_input_is_refused_with_its_code_and_no_effect() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let path = format!("/ag-ui/{session}");
    let mut long = BTreeMap::new();
    long.insert("id", "x".repeat(300));
    let entry = |id: &str| json!([{ "interruptId": id, "status": "resolved", "payload": true }]);
    let twice = json!([{ "interruptId": "q", "status": "cancelled" }, { "interruptId": "q", "status": "cancelled" }]);
    let edit = |field: &str, value: Value| {
        let mut body = input("r");
        body[field] = value;
        body
    };
    for (body, status, code) in [
        (json!([]), 422, "bad_body"),
        (json!({}), 422, "bad_body"),
        (edit("messages", json!("x")), 422, "bad_body"),
        (edit("messages", json!([{ "role": "user" }])), 422, "bad_body"),
        (edit("runId", json!(7)), 422, "bad_body"),
        (edit("runId", json!("")), 422, "invalid"),
        (edit("threadId", json!("x".repeat(300))), 422, "invalid"),
        (edit("messages", json!([{ "id": long["id"], "role": "user", "content": "x" }])), 422, "invalid"),
        (edit("messages", json!([{ "id": "u", "role": "user", "content": 7 }])), 422, "invalid"),
        (edit("messages", json!([{ "id": "u", "role": "user", "content": " " }])), 422, "invalid"),
        (
            edit("messages", json!([{ "id": "u", "role": "user", "content": [{ "type": "odd" }] }])),
            422,
            "part_not_carried",
        ),
        (edit("resume", json!([{ "interruptId": "q", "status": "maybe" }])), 422, "bad_body"),
        (edit("resume", entry("q_nothing")), 404, "interrupt_not_found"),
        (edit("resume", entry("not an id!")), 404, "interrupt_not_found"),
        (edit("resume", twice), 422, "resume_twice"),
        (with(input("r"), json!({ "curser": "x" })), 422, "invalid"),
        (with(input("r"), json!({ "cursor": "no cursor" })), 400, "bad_cursor"),
    ] {
        let (got, problem) = gateway.post(&path, body.clone()).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{body} {problem}");
    }
    let (status, problem) = gateway.post("/ag-ui/s_nothing", input("r")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("session_not_found")));
    let post = || gateway.request("POST", &path).header("Content-Type", "application/json");
    for (request, status, code) in [
        (post().body("{no json"), 400, "bad_json"),
        (post().body("[".repeat(100)), 400, "too_deep"),
        (post().body(" ".repeat(17 << 20)), 413, "too_large"),
        (post().header("Accept", "application/json").body(input("r").to_string()), 406, "not_acceptable"),
        (gateway.request("POST", &path).body("{}"), 415, "not_json"),
        (gateway.request("GET", &path), 405, "method_not_allowed"),
    ] {
        let response = request.send().await.unwrap();
        let got = response.status().as_u16();
        let problem: Value = response.json().await.unwrap();
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{problem}");
    }
    // An interrupt of another session is unknown here.
    let other = gateway.session("demo").await;
    let asked = interrupts(&open(&gateway, &other, &prompt("o", "u", "ask"), None).await.rest().await);
    let (status, problem) = gateway.post(&path, resume("r", resolved(&asked, true))).await;
    assert_eq!((status, &problem["code"]), (404, &json!("interrupt_not_found")));
    assert_eq!(gateway.open_requests(&other, 1).await.len(), 1);
    assert_eq!(runs(&gateway, &session).await, 0);
}
