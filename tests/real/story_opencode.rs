//! A running `opencode serve`, attached by its address: the gateway is one of its clients. The test's own HTTP client plays
//! OpenCode's TUI.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use crate::common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, PATIENCE, assert_whole, said};
use common::moments::{Moments, kills};
use futures_util::future::join_all;
use plexus_client::FollowStart;
use serde_json::{Value, json};

/// The server, its model, and another client of it.
struct Server {
    child: Child,
    port: u16,
    command: Vec<String>,
    env: Vec<(String, String)>,
    password: Option<&'static str>,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
    _model: FakeModel,
    http: reqwest::Client,
}

impl Server {
    async fn start(password: Option<&'static str>) -> Self {
        let (install, model) =
            tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let setup = agents::opencode(&install, home.path(), model.port());
        let config = home.path().join("opencode.json");
        let text = std::fs::read_to_string(&config).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json["permission"]["question"] = "allow".into();
        std::fs::write(&config, json.to_string()).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let command = vec![setup.command[0].clone(), "serve".into(), "--port".into(), port.to_string()];
        let mut env = setup.env;
        env.push(("OPENCODE_ENABLE_QUESTION_TOOL".into(), "1".into()));
        if let Some(password) = password {
            env.push(("OPENCODE_SERVER_PASSWORD".into(), password.into()));
        }
        let child = run(&command, &env, work.path());
        // While it starts it may accept a connection and never answer.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let server = Self { child, port, command, env, password, work, _home: home, _model: model, http };
        server.up().await;
        server
    }

    async fn up(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.get("/global/health").await.0 != 200 {
            assert!(Instant::now() < deadline, "opencode serve did not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn again(&mut self) {
        self.child = run(&self.command, &self.env, self.work.path());
        self.up().await;
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let request = match self.password {
            Some(password) => request.basic_auth("opencode", Some(password)),
            None => request,
        };
        let Ok(response) = request.query(&[("directory", self.work.path().to_str().unwrap())]).send().await else {
            return (0, Value::Null);
        };
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_default();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(self.http.get(format!("http://127.0.0.1:{}{path}", self.port))).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(self.http.post(format!("http://127.0.0.1:{}{path}", self.port)).json(&body)).await
    }

    async fn session(&self) -> String {
        self.post("/session", json!({})).await.1["id"].as_str().unwrap().to_owned()
    }

    async fn prompt(&self, native: &str, text: &str) {
        let body = json!({ "parts": [{ "type": "text", "text": text }] });
        assert_eq!(self.post(&format!("/session/{native}/prompt_async"), body).await.0, 204);
    }

    /// Waits until the server lists a permission of the session other than these.
    async fn permission(&self, native: &str, other_than: &[String]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, list) = self.get("/permission").await;
            let id = list.as_array().into_iter().flatten().find_map(|permission| {
                let id = permission["id"].as_str()?.to_owned();
                (permission["sessionID"] == native && !other_than.contains(&id)).then_some(id)
            });
            match id {
                Some(id) => return id,
                None => assert!(Instant::now() < deadline, "no permission was asked"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn reply(&self, permission: &str, reply: &str) -> u16 {
        self.post(&format!("/permission/{permission}/reply"), json!({ "reply": reply })).await.0
    }

    fn config(&self) -> String {
        let secret = self.password.map(|password| format!("secret = {}\n", json!(password))).unwrap_or_default();
        format!(
            "[[runtime]]\nid = \"oc\"\ndialect = \"opencode\"\nconnect = \"http://127.0.0.1:{}\"\ncwd = {}\n{secret}",
            self.port,
            json!(self.work.path())
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(command: &[String], env: &[(String, String)], cwd: &Path) -> Child {
    Command::new(&command[0])
        .args(&command[1..])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(env.iter().map(|(key, value)| (key, value)))
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

async fn native(gateway: &Gateway, session: &str) -> String {
    gateway.get(&format!("/v1/sessions/{session}")).await.1["native_id"].as_str().unwrap().to_owned()
}

/// Waits until the gateway shows a session with this native identifier.
async fn shown(gateway: &Gateway, native: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, list) = gateway.get("/v1/sessions").await;
        let of = |session: &&Value| session["native_id"] == native;
        if let Some(session) = list["sessions"].as_array().unwrap().iter().find(of) {
            return session["session_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{native} is not shown: {list}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the session's events satisfy `wanted`; returns them.
async fn until(gateway: &Gateway, session: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        if events.iter().any(&wanted) {
            return events;
        }
        let resolved = of_kind(&events, "request_resolved");
        let last: Vec<_> = resolved.into_iter().rev().take(2).chain(events.iter().rev().take(3)).collect();
        assert!(Instant::now() < deadline, "it did not happen: {last:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

fn last_end(events: &[Value]) -> String {
    of_kind(events, "run_ended").last().unwrap()["event"]["status"].as_str().unwrap().to_owned()
}

async fn request(gateway: &Gateway, id: &Value) -> Value {
    gateway.get(&format!("/v1/requests/{}", id.as_str().unwrap())).await.1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_actions_through_the_gateway() {
    let server = Server::start(None).await;
    let mut gateway = Gateway::start(&server.config()).await;
    let session = gateway.session("oc").await;
    let work = server.work.path();

    // The stream, byte for byte.
    let mut ws = gateway.follow(&session, FollowStart::Now).await;
    let run = gateway.prompt(&session, "FAKE:long 300 1").await;
    let (by_ws, by_poll) = tokio::join!(ws.until_ended(&run), gateway.until_ended(&session, &run));
    assert_eq!(said(&by_ws, Some(&run)), long(300));
    assert_eq!(said(&by_poll, Some(&run)), long(300));
    assert!(of_kind(&by_poll, "agent_message_chunk").len() > 50, "it streams");
    let users = of_kind(&by_poll, "user_message_chunk");
    assert_eq!(users.len(), 1, "a prompt is told once: {users:?}");
    assert_eq!(last_end(&by_poll), "completed");

    // Allowed.
    let run = gateway.prompt(&session, "FAKE:shell touch yes").await;
    let asked = gateway.open_request(&session).await;
    assert!(asked["display"].as_str().unwrap().contains("touch yes"), "{asked}");
    let (status, receipt) = gateway.choose(&asked, "once").await;
    assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
    gateway.until_ended(&session, &run).await;
    assert!(work.join("yes").exists());
    assert_eq!(request(&gateway, &asked["request_id"]).await["state"], "answered");

    // Denied: the turn ends.
    let run = gateway.prompt(&session, "FAKE:shell touch no").await;
    let asked = gateway.open_request(&session).await;
    assert_eq!(gateway.choose(&asked, "reject").await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert!(!work.join("no").exists());
    assert!(!said(&events, Some(&run)).contains("All done"), "without a reason the turn ends");

    // Denied with a reason: the agent reads it and goes on.
    let run = gateway.prompt(&session, "FAKE:shell touch why").await;
    let asked = gateway.open_request(&session).await;
    let id = asked["request_id"].as_str().unwrap();
    let answer = json!({ "option_id": "reject", "reason": "not on a Saturday" });
    assert_eq!(gateway.post(&format!("/v1/requests/{id}/answer"), answer).await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert!(said(&events, Some(&run)).contains("not on a Saturday"), "{}", said(&events, Some(&run)));
    assert!(!work.join("why").exists());

    // Cancelled with an open request.
    let run = gateway.prompt(&session, "FAKE:shell touch stopped").await;
    let asked = gateway.open_request(&session).await;
    gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(last_end(&events), "cancelled");
    let (status, late) = gateway.choose(&asked, "once").await;
    assert_eq!((status, &late["state"]), (410, &json!("withdrawn")), "{late}");
    assert!(!work.join("stopped").exists());

    // A request with options.
    let tool = r#"{"questions":[{"question":"Which?","header":"Pick","options":[{"label":"red","description":"r"},{"label":"blue","description":"b"}]}]}"#;
    let run = gateway.prompt(&session, &format!("FAKE:tool question {tool}")).await;
    let asked = gateway.open_request(&session).await;
    assert_eq!(asked["type"], "pick", "{asked}");
    let id = asked["request_id"].as_str().unwrap();
    assert_eq!(gateway.post(&format!("/v1/requests/{id}/answer"), json!({ "ids": ["blue"] })).await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert!(said(&events, Some(&run)).contains("blue"), "{}", said(&events, Some(&run)));

    // Two prompts at once are two runs.
    let one = gateway.prompt(&session, "FAKE:long 60 5").await;
    let two = gateway.prompt(&session, "FAKE:text second").await;
    let events = gateway.until_ended(&session, &two).await;
    assert_eq!(said(&events, Some(&one)), long(60));
    assert_eq!(said(&events, Some(&two)).trim(), "second");
    assert_whole(&gateway.events(&session).await);
    let problems = gateway.events(&session).await;
    assert!(of_kind(&problems, "error").is_empty(), "{:?}", of_kind(&problems, "error"));
    assert!(gateway.stop().await.success());
    assert_eq!(server.get("/global/health").await.0, 200, "what was attached to is left running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_actions_past_the_gateway() {
    let server = Server::start(None).await;
    let gateway = Gateway::start(&server.config()).await;
    let session = gateway.session("oc").await;
    let native = native(&gateway, &session).await;
    let work = server.work.path();
    let mut seen = Vec::new();

    // Another client answers first.
    let run = gateway.prompt(&session, "FAKE:shell touch elsewhere").await;
    let asked = gateway.open_request(&session).await;
    seen.push(server.permission(&native, &seen).await);
    assert_eq!(server.reply(seen.last().unwrap(), "once").await, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert!(work.join("elsewhere").exists());
    let resolved = of_kind(&events, "request_resolved");
    assert_eq!(resolved.len(), 1, "{resolved:?}");
    let event = &resolved[0]["event"];
    assert_eq!(event["resolved_by"]["name"], "another client of OpenCode", "{event}");
    assert_eq!((&event["state"], &event["option_id"]), (&json!("withdrawn"), &json!("once")), "{event}");
    let (status, late) = gateway.choose(&asked, "reject").await;
    assert_ne!(status, 200, "{late}");

    // Eight answers at once, four through the gateway and four directly: one wins, and the command runs once.
    let log = work.join("race");
    for round in 0..3 {
        let run = gateway.prompt(&session, &format!("FAKE:shell echo ran >> {}", log.display())).await;
        let asked = gateway.open_request(&session).await;
        seen.push(server.permission(&native, &seen).await);
        let permission = seen.last().unwrap();
        let through = join_all((0..4).map(|_| gateway.choose(&asked, "once")));
        let past = join_all((0..4).map(|_| server.reply(permission, "once")));
        let (through, past) = tokio::join!(through, past);
        let events = gateway.until_ended(&session, &run).await;
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n".repeat(round + 1), "it ran once");
        let past = past.iter().filter(|status| **status == 200).count();
        let accepted = through.iter().filter(|(status, _)| *status == 200).count();
        assert!(accepted <= 1 && past <= 1, "{through:?} {past}");
        // The final outcome is what OpenCode did; it may accept both of two simultaneous answers.
        let id = &asked["request_id"];
        let fits = |by: &Value| if *by == "elsewhere" { past == 1 } else { accepted == 1 };
        let wanted = |event: &Value| {
            event["kind"] == "request_resolved"
                && event["event"]["request_id"] == *id
                && fits(&event["event"]["resolved_by"]["device_id"])
        };
        until(&gateway, &session, wanted).await;
        let last = request(&gateway, id).await;
        let by = &last["receipt"]["resolved_by"]["device_id"];
        assert!(fits(by), "{last} {past} {accepted}");
        assert_eq!(last["receipt"]["option_id"], "once", "{last}");
        assert_eq!(last_end(&events), "completed");
    }

    // A prompt of another client is a run with its text.
    server.prompt(&native, "FAKE:text by the other one").await;
    let wanted = |event: &Value| event["kind"] == "run_ended" && event["event"]["status"] == "completed";
    let before = of_kind(&gateway.events(&session).await, "run_ended").len();
    let deadline = Instant::now() + PATIENCE;
    let events = loop {
        let events = until(&gateway, &session, wanted).await;
        if of_kind(&events, "run_ended").len() > before {
            break events;
        }
        assert!(Instant::now() < deadline, "no run was shown");
    };
    let run = of_kind(&events, "run_ended").last().unwrap()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(said(&events, Some(&run)).trim(), "by the other one");
    let of_run: Vec<&Value> = events.iter().filter(|event| event["run_id"] == run.as_str()).collect();
    assert_eq!(of_run[0]["kind"], "run_started");
    assert_eq!(of_run[0]["event"]["by"]["name"], "another client of OpenCode", "{}", of_run[0]);
    assert_eq!(of_run[1]["kind"], "user_message_chunk", "{}", of_run[1]);
    assert_eq!(of_run[1]["event"]["content"]["text"], "FAKE:text by the other one");

    // Another client cancels the gateway's run.
    let run = gateway.prompt(&session, "FAKE:shell touch aborted").await;
    let asked = gateway.open_request(&session).await;
    assert_eq!(server.post(&format!("/session/{native}/abort"), json!({})).await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(last_end(&events), "cancelled");
    assert_eq!(request(&gateway, &asked["request_id"]).await["state"], "withdrawn");
    // The next run is not ended by events of the aborted one.
    let run = gateway.prompt(&session, "FAKE:long 20 2").await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(said(&events, Some(&run)), long(20));
    assert_whole(&gateway.events(&session).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_gateway_that_comes_late_and_one_that_waits() {
    let mut server = Server::start(Some("open sesame")).await;
    // Busy, with a permission open, and a stale one of an aborted turn before it.
    let native = server.session().await;
    server.prompt(&native, "FAKE:shell touch aborted").await;
    let stale = server.permission(&native, &[]).await;
    server.post(&format!("/session/{native}/abort"), json!({})).await;
    let deadline = Instant::now() + PATIENCE;
    while server.get("/session/status").await.1 != json!({}) {
        assert!(Instant::now() < deadline);
    }
    server.prompt(&native, "FAKE:shell touch late").await;
    let fresh = server.permission(&native, std::slice::from_ref(&stale)).await;

    let gateway = Gateway::start(&server.config()).await;
    let session = shown(&gateway, &native).await;
    let asked = gateway.open_requests(&session, 1).await;
    assert_eq!(asked.len(), 1, "only what somebody waits for is asked: {asked:?}");
    assert_eq!(asked[0]["native"]["id"], fresh.as_str(), "{}", asked[0]);
    assert_eq!(gateway.choose(&asked[0], "once").await.0, 200);
    let events = until(&gateway, &session, |event| event["kind"] == "run_ended").await;
    assert_eq!(last_end(&events), "completed");
    assert!(server.work.path().join("late").exists());
    assert!(said(&events, None).contains("All done"), "{}", said(&events, None));
    let users: Vec<_> = of_kind(&events, "user_message_chunk");
    assert_eq!(users.len(), 2, "the past, and what was going on: {users:?}");

    // In the middle of a message: the gap is reported, and filled in the end.
    let other = server.session().await;
    server.prompt(&other, "FAKE:long 150 10").await;
    let late = shown(&gateway, &other).await;
    let events = until(&gateway, &late, |event| event["kind"] == "run_ended").await;
    assert_eq!(said(&events, None), long(150));

    // The server restarts in the middle of a run.
    let run = gateway.prompt(&session, "FAKE:shell touch never").await;
    let asked = gateway.open_request(&session).await;
    server.kill();
    until(&gateway, &session, |event| event["event"]["status"] == "lost").await;
    server.again().await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(last_end(&events), "error", "{:?}", events.last());
    assert_eq!(request(&gateway, &asked["request_id"]).await["state"], "withdrawn");
    let run = gateway.prompt(&session, "FAKE:text back again").await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(said(&events, Some(&run)).trim(), "back again");
    assert_whole(&gateway.events(&session).await);
}

/// Waits until this is the last message of a conversation.
async fn replied(server: &Server, native: &str, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, messages) = server.get(&format!("/session/{native}/message")).await;
        let last = messages.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let done = last["info"]["role"] == "assistant" && last["info"]["time"]["completed"].is_number();
        if done && last["parts"].to_string().contains(words) {
            return idle(server).await;
        }
        assert!(Instant::now() < deadline, "no reply: {last}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until OpenCode is idle.
async fn idle(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while server.get("/session/status").await.1 != json!({}) {
        assert!(Instant::now() < deadline, "OpenCode is still at work");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the session is in this state.
async fn state(gateway: &Gateway, session: &str, wanted: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, shown) = gateway.get(&format!("/v1/sessions/{session}")).await;
        if shown["state"] == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "not {wanted}: {shown}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_events_while_the_gateway_is_away_appear_once() {
    let server = Server::start(None).await;
    let mut gateway = Gateway::start(&server.config()).await;
    let session = &gateway.session("oc").await;
    let first = gateway.prompt(session, "FAKE:text first").await;
    gateway.until_ended(session, &first).await;
    let native = native(&gateway, session).await;
    for (round, killed) in [(0, true), (1, false)] {
        // The gateway's run goes on without it, and another client's run begins and ends.
        let run = gateway.prompt(session, "FAKE:long 150 10").await;
        until(&gateway, session, |event| event["run_id"] == run.as_str() && event["kind"] == "agent_message_chunk")
            .await;
        if killed {
            gateway.kill();
        } else {
            assert!(gateway.stop().await.success());
        }
        idle(&server).await;
        let words = format!("theirs-{round}");
        server.prompt(&native, &format!("FAKE:text {words}")).await;
        replied(&server, &native, &words).await;
        gateway.again().await;
        // It appears without another message.
        state(&gateway, session, "idle").await;
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(last_end(&events), "completed");
        let all = said(&events, None);
        assert_eq!(all.matches(&long(150)).count(), round + 1, "{all}");
        assert_eq!((all.matches(&words).count(), all.matches("first").count()), (1, 1), "once: {all}");
        assert!(!events.iter().any(|event| event["event"]["code"] == "gap"), "all of it: {events:#?}");

        // An open request is the same one.
        let run = gateway.prompt(session, &format!("FAKE:shell touch asked-{round}")).await;
        let asked = gateway.open_request(session).await;
        if killed {
            gateway.kill();
        } else {
            assert!(gateway.stop().await.success());
        }
        gateway.again().await;
        state(&gateway, session, "waiting").await;
        assert_eq!(gateway.open_request(session).await["request_id"], asked["request_id"]);
        assert_eq!(gateway.choose(&asked, "once").await.0, 200);
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(last_end(&events), "completed");
        assert!(server.work.path().join(format!("asked-{round}")).exists());
        assert_whole(&events);
    }
    let (_, sessions) = gateway.get("/v1/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
}

/// The end of a run: its status and message.
fn end_of(events: &[Value], run: &str) -> (String, String) {
    let ended = of_kind(events, "run_ended").into_iter().find(|event| event["run_id"] == run).unwrap();
    let word = |name: &str| ended["event"][name].as_str().unwrap_or_default().to_owned();
    (word("status"), word("message"))
}

/// A message as stored by OpenCode.
struct Kept {
    id: String,
    user: bool,
    /// The prompt that it replies to.
    parent: String,
    text: String,
    complete: bool,
}

async fn kept(server: &Server, native: &str) -> Vec<Kept> {
    let (_, messages) = server.get(&format!("/session/{native}/message")).await;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |message: &Value| Kept {
        id: word(&message["info"]["id"]),
        user: message["info"]["role"] == "user",
        parent: word(&message["info"]["parentID"]),
        text: of_type(&message["parts"], "text").map(|part| word(&part["text"])).collect(),
        complete: message["info"]["time"]["completed"].is_number(),
    };
    messages.as_array().unwrap().iter().map(read).collect()
}

fn of_type<'a>(parts: &'a Value, sort: &'a str) -> impl Iterator<Item = &'a Value> {
    parts.as_array().into_iter().flatten().filter(move |part| part["type"] == sort)
}

/// A difference between the events and OpenCode's stored messages, if any: each message must appear once and complete. OpenCode
/// stores nothing of a message in whose middle it was killed; its events stay.
fn told_otherwise(events: &[Value], kept: &[Kept]) -> Option<String> {
    let told = |kind: &str, id: &str| -> Vec<&str> {
        let of = of_kind(events, kind).into_iter().filter(|event| event["event"]["messageId"] == id);
        of.filter_map(|event| event["event"]["content"]["text"].as_str()).collect()
    };
    kept.iter().find_map(|message| {
        let right = match message {
            Kept { user: true, id, text, .. } if text.contains("theirs-") => told("user_message_chunk", id) == [text],
            Kept { user: true, .. } => true,
            Kept { complete: true, id, text, .. } => told("agent_message_chunk", id).concat() == *text,
            Kept { id, .. } => long(60).starts_with(&told("agent_message_chunk", id).concat()),
        };
        let shown = || [told("user_message_chunk", &message.id), told("agent_message_chunk", &message.id)].concat();
        (!right).then(|| format!("{} is kept as {:?} and told as {:?}", message.id, message.text, shown()))
    })
}

/// Waits until OpenCode has this prompt of another client, and has replied to the last message.
async fn worked_off(server: &Server, native: &str, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let kept = kept(server, native).await;
        let there = kept.iter().any(|message| message.user && message.text.contains(words));
        if there && kept.last().is_some_and(|last| !last.user && last.complete) {
            return idle(server).await;
        }
        assert!(Instant::now() < deadline, "no reply to {words}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until OpenCode is idle and all stored messages are in the log.
async fn all_told(gateway: &Gateway, (session, native): (&str, &str), server: &Server) -> (Vec<Value>, Vec<Kept>) {
    idle(server).await;
    let kept = kept(server, native).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        state(gateway, session, "idle").await;
        let events = gateway.events(session).await;
        let Some(wrong) = told_otherwise(&events, &kept) else { return (events, kept) };
        assert!(Instant::now() < deadline, "{wrong}: {:#?}", events.iter().rev().take(20).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The gateway is killed during a run, or right after an answer; meanwhile another client prompts.
async fn the_gateway_dies(
    round: u64,
    moments: &mut Moments,
    gateway: &mut Gateway,
    (session, native): (&str, &str),
    server: &Server,
) {
    let file = server.work.path().join(format!("ran-{round}"));
    let answers = round % 2 == 1;
    let had = kept(server, native).await.len();
    let run = if answers {
        let run = gateway.prompt(session, &format!("FAKE:shell echo ran >> {}", file.display())).await;
        let asked = gateway.open_request(session).await;
        let (status, receipt) = gateway.choose(&asked, "once").await;
        assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
        moments.pass(20).await;
        run
    } else {
        let run = gateway.prompt(session, "FAKE:long 60 10").await;
        moments.pass(900).await;
        run
    };
    gateway.kill();
    let words = format!("theirs-{round}.");
    let before = moments.below(2) == 0;
    if before {
        server.prompt(native, &format!("FAKE:text {words}")).await;
    }
    if before && !answers {
        worked_off(server, native, &words).await;
    }
    gateway.again().await;
    gateway.until_ended(session, &run).await;
    if !before {
        server.prompt(native, &format!("FAKE:text {words}")).await;
    }
    worked_off(server, native, &words).await;
    let (events, kept) = all_told(gateway, (session, native), server).await;
    let (text, kept) = (said(&events, Some(&run)), &kept[had..]);
    let ours = kept.iter().find(|message| message.user && !message.text.contains(&words));
    let replied = ours.is_some_and(|ours| kept.iter().any(|message| message.parent == ours.id));
    match (end_of(&events, &run), ours) {
        ((status, _), Some(_)) if status == "completed" => {
            // Two prompts that arrive before OpenCode starts have one reply, to the last of them.
            assert!(replied || before, "round {round}: {text}");
            if !answers {
                assert_eq!(text.matches(&long(60)).count(), usize::from(replied), "round {round}: {text}");
            }
        }
        // Killed before the prompt was sent: nothing was run, and the end says so.
        ((_, why), None) if why.contains("before OpenCode accepted the prompt") => {
            assert_eq!(text, "", "round {round}")
        }
        (end, _) => panic!("round {round}: {end:?} {text} {:#?}", events.iter().rev().take(20).collect::<Vec<_>>()),
    }
    if answers {
        let ran = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(ran, "ran\n", "round {round}: an answer that was given is carried, once");
    }
}

/// The server is killed during a run: its output is there once, the run ends, and the next one runs.
async fn the_server_dies(round: u64, moments: &mut Moments, gateway: &Gateway, session: &str, server: &mut Server) {
    let run = gateway.prompt(session, "FAKE:long 60 10").await;
    moments.pass(900).await;
    server.kill();
    moments.pass(200).await;
    server.again().await;
    let events = gateway.until_ended(session, &run).await;
    let text = said(&events, Some(&run));
    assert!(long(60).starts_with(&text), "round {round}: in order, and once: {text}");
    let words = format!("after-{round}.");
    let run = gateway.prompt(session, &format!("FAKE:text {words}")).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end_of(&events, &run).0, "completed", "round {round}: {:?}", events.last());
    assert_eq!(said(&events, Some(&run)).trim(), words, "round {round}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_on_either_side_lose_and_repeat_nothing() {
    let (mut server, mut moments) = (Server::start(None).await, Moments::new());
    let mut gateway = Gateway::start(&server.config()).await;
    let session = &gateway.session("oc").await;
    let native = native(&gateway, session).await;
    for round in 0..kills() {
        the_gateway_dies(round, &mut moments, &mut gateway, (session, &native), &server).await;
        the_server_dies(round, &mut moments, &gateway, session, &mut server).await;
    }
    let (events, _) = all_told(&gateway, (session, &native), &server).await;
    assert_whole(&events);
    let gaps = events.iter().filter(|event| event["event"]["code"] == "gap").count();
    eprintln!("{} kills of the gateway and as many of OpenCode; {gaps} gaps said", kills());
}

/// Waits until the notes about the history are these, in order.
async fn past_said(gateway: &Gateway, session: &str, wanted: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        let codes: Vec<&str> = events.iter().filter_map(|event| event["event"]["code"].as_str()).collect();
        if codes == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "said {codes:?}, wanted {wanted:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_revert_fork_and_compaction_are_reported_once() {
    let server = Server::start(None).await;
    let mut gateway = Gateway::start(&server.config()).await;
    let session = &gateway.session("oc").await;
    let native = &native(&gateway, session).await;
    for word in ["first.", "second.", "third."] {
        let run = gateway.prompt(session, &format!("FAKE:text {word}")).await;
        gateway.until_ended(session, &run).await;
    }
    idle(&server).await;
    let third = kept(&server, native).await[4].id.clone();
    let (back, undo) = (format!("/session/{native}/revert"), format!("/session/{native}/unrevert"));
    assert_eq!(server.post(&back, json!({ "messageID": third })).await.0, 200);
    past_said(&gateway, session, &["taken_back"]).await;
    assert_eq!(server.post(&undo, json!({})).await.0, 200);
    past_said(&gateway, session, &["taken_back", "given_back"]).await;

    // Without a gateway: reverted, and later made final by a prompt.
    gateway.kill();
    assert_eq!(server.post(&back, json!({ "messageID": third })).await.0, 200);
    gateway.again().await;
    let said = ["taken_back", "given_back", "taken_back"];
    past_said(&gateway, session, &said).await;
    gateway.kill();
    server.prompt(native, "FAKE:text theirs-other.").await;
    replied(&server, native, "theirs-other.").await;
    gateway.again().await;
    let (_, now) = all_told(&gateway, (session, native), &server).await;
    assert_eq!(now.len(), 6, "the third exchange is gone");
    past_said(&gateway, session, &said).await;

    // A compaction, without a gateway and with one.
    let model = json!({ "providerID": "fake", "modelID": "fake-model" });
    for away in [true, false] {
        let had = kept(&server, native).await.len();
        if away {
            gateway.kill();
        }
        assert_eq!(server.post(&format!("/session/{native}/summarize"), model.clone()).await.0, 200);
        let deadline = Instant::now() + PATIENCE;
        while kept(&server, native).await.get(had + 1).is_none_or(|summary| !summary.complete) {
            assert!(Instant::now() < deadline, "nothing was compacted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if away {
            gateway.again().await;
        }
        all_told(&gateway, (session, native), &server).await;
    }
    past_said(&gateway, session, &said).await;

    // A fork has the whole history once, and changes nothing here.
    let before = said_of(&gateway, session).await;
    let (status, fork) = server.post(&format!("/session/{native}/fork"), json!({})).await;
    assert_eq!(status, 200, "{fork}");
    let fork = fork["id"].as_str().unwrap();
    server.prompt(fork, "FAKE:text theirs-forked.").await;
    let forked = &shown(&gateway, fork).await;
    replied(&server, fork, "theirs-forked.").await;
    all_told(&gateway, (forked, fork), &server).await;
    let of_fork = said_of(&gateway, forked).await;
    assert!(of_fork.contains("first.") && !of_fork.contains("third."), "{of_fork}");

    // None of it is repeated.
    gateway.kill();
    gateway.again().await;
    all_told(&gateway, (forked, fork), &server).await;
    let (events, _) = all_told(&gateway, (session, native), &server).await;
    assert_whole(&events);
    past_said(&gateway, session, &said).await;
    assert_eq!((said_of(&gateway, session).await, said_of(&gateway, forked).await), (before, of_fork));
}

/// The agent's whole text in a session.
async fn said_of(gateway: &Gateway, session: &str) -> String {
    said(&gateway.events(session).await, None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_wrong_password_says_what_to_do() {
    let server = Server::start(Some("open sesame")).await;
    let config = server.config().replace("open sesame", "shut sesame");
    let gateway = Gateway::start(&config).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, list) = gateway.get("/v1/runtimes").await;
        let problem = list["runtimes"][0]["problem"].as_str().unwrap_or_default().to_owned();
        if problem.contains("secret") {
            assert!(!problem.contains("sesame"), "{problem}");
            return;
        }
        assert!(Instant::now() < deadline, "{list}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
