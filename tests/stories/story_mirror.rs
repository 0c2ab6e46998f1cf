//! A running Gemini UI, attached through its mirror and remote control: the real gateway, and a UI that follows the two
//! specifications to the letter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, assert_whole, said};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running UI with its ports.
struct Ui {
    _child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    mirror: u16,
    remote: Option<u16>,
    http: reqwest::Client,
}

impl Ui {
    async fn start() -> Self {
        Self::with(&[], true).await
    }

    async fn with(args: &[&str], remote: bool) -> Self {
        let mut command = Command::new("node");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/gemini_ui.mjs"))
            .args(["--ui-port", "0"])
            .args(args);
        if remote {
            command.env("GEMINI_CLI_REMOTE_PORT", "0");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("node starts");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut ui = Self {
            _child: child,
            stdin,
            stdout: BufReader::new(stdout).lines(),
            mirror: 0,
            remote: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        let ready = ui.line().await;
        let port = |which: &str| ready["ready"][which].as_u64().map(|port| u16::try_from(port).unwrap());
        (ui.mirror, ui.remote) = (port("ui").unwrap(), port("remote"));
        ui
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.stdout.next_line()).await.expect("the UI answers");
        serde_json::from_str(&line.unwrap().expect("the UI lives")).unwrap()
    }

    /// Does an action of a person at the UI, or causes a failure.
    async fn act(&mut self, what: Value) -> Value {
        self.stdin.write_all(format!("{what}\n").as_bytes()).await.unwrap();
        self.line().await["done"].clone()
    }

    async fn types(&mut self, text: &str) {
        self.act(json!({ "do": "type", "text": text })).await;
    }

    async fn selects(&mut self, id: &str, selection: &str) {
        self.act(json!({ "do": "select", "id": id, "selection": selection })).await;
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.remote.unwrap())
    }

    async fn history(&self) -> Value {
        self.http.get(self.url("/history?limit=10")).send().await.unwrap().json().await.unwrap()
    }

    /// The runtime in the gateway's configuration.
    fn config(&self) -> String {
        let remote = self.remote.map(|port| format!("remote = \"http://127.0.0.1:{port}\"\n")).unwrap_or_default();
        format!(
            "[[runtime]]\nid = \"ui\"\ndialect = \"gemini-mirror\"\nconnect = \"ws://127.0.0.1:{}/\"\n{remote}",
            self.mirror
        )
    }

    /// A gateway attached to the UI, and the session that it found.
    async fn watched(&self) -> (Gateway, String) {
        let gateway = Gateway::start(&self.config()).await;
        let session = found(&gateway).await;
        (gateway, session)
    }
}

/// The session that the gateway found by itself.
async fn found(gateway: &Gateway) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, body) = gateway.get("/v1/sessions").await;
        let sessions = body["sessions"].as_array().unwrap();
        if let Some(session) = sessions.iter().find(|session| session["state"] != "exited") {
            assert_eq!((session["native_id"].as_str(), session["runtime_id"].as_str()), (Some("ui"), Some("ui")));
            assert_eq!(sessions.len(), 1, "found once: {body}");
            return session["session_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "no session was found: {body} {:?}", gateway.get("/v1/runtimes").await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the session's events satisfy `enough`; returns them.
async fn once(gateway: &Gateway, session: &str, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        if enough(&events) {
            assert_whole(&events);
            return events;
        }
        assert!(Instant::now() < deadline, "it did not come: {events:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ended(events: &[Value]) -> usize {
    events.iter().filter(|event| event["kind"] == "run_ended").count()
}

/// The prompts, in order.
fn asked(events: &[Value]) -> Vec<&str> {
    let chunks = events.iter().filter(|event| event["kind"] == "user_message_chunk");
    chunks.map(|event| event["event"]["content"]["text"].as_str().unwrap()).collect()
}

/// The kinds of the events of the run that `event` belongs to, repeats left out.
fn kinds<'a>(events: &'a [Value], run: &Value) -> Vec<&'a str> {
    let of_run = events.iter().filter(|event| event["run_id"] == *run);
    let mut kinds: Vec<&str> = of_run.map(|event| event["kind"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

/// The run that ended last.
fn last_run(events: &[Value]) -> Value {
    events.iter().rfind(|event| event["kind"] == "run_ended").unwrap()["run_id"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_ui_input_arrives_in_order_and_format() {
    let mut ui = Ui::start().await;
    let (gateway, session) = ui.watched().await;
    // The mirror itself, as its specification tests it.
    let url = format!("ws://127.0.0.1:{}/", ui.mirror);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    ui.types("Write a script").await;
    let mut sorts = Vec::new();
    while sorts.last().is_none_or(|sort| sort != "idle") {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        let text = message.into_text().unwrap();
        let json: Value = serde_json::from_str(text.strip_suffix('\0').expect("a NUL ends it")).unwrap();
        sorts.push(json["type"].as_str().unwrap().to_owned());
    }
    sorts.dedup();
    assert_eq!(sorts, ["user_message", "model_output", "idle"]);
    // The events that the gateway made of it.
    let events = once(&gateway, &session, |events| ended(events) == 1).await;
    let run = last_run(&events);
    assert_eq!(kinds(&events, &run), ["run_started", "user_message_chunk", "agent_message_chunk", "run_ended"]);
    assert_eq!(asked(&events), ["Write a script"]);
    assert_eq!(said(&events, run.as_str()), "You said: Write a script");
    let started = events.iter().find(|event| event["kind"] == "run_started").unwrap();
    assert!(started["event"]["by"]["name"].as_str().unwrap().contains("the Gemini UI"), "{started}");
    ui.types("hook").await;
    let events = once(&gateway, &session, |events| ended(events) == 2).await;
    let hooks: Vec<&Value> =
        events.iter().filter(|event| event["kind"] == "hook").map(|event| &event["event"]).collect();
    assert_eq!(
        hooks,
        [
            &json!({ "hookName": "on_session_start", "eventName": "hook_start" }),
            &json!({ "hookName": "on_session_start", "eventName": "hook_end", "success": true })
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_posts_of_others_are_in_the_history_and_arrive() {
    let ui = Ui::start().await;
    let (gateway, session) = ui.watched().await;
    let answer = ui.http.post(ui.url("/message")).json(&json!({ "message": "Hello Gemini" })).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let events = once(&gateway, &session, |events| ended(events) == 1).await;
    assert_eq!(asked(&events), ["Hello Gemini"]);
    let expected =
        json!([{ "role": "user", "text": "Hello Gemini" }, { "role": "model", "text": "You said: Hello Gemini" }]);
    assert_eq!(ui.history().await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_prompt_waits_until_the_ui_is_ready_and_is_shown_once() {
    let mut ui = Ui::with(&["--unregistered"], true).await;
    let (gateway, session) = ui.watched().await;
    let run = gateway.prompt(&session, "list files").await;
    // The UI is not ready: the prompt is queued.
    once(&gateway, &session, |events| asked(events) == ["list files"]).await;
    assert_eq!(gateway.get(&format!("/v1/sessions/{session}")).await.1["state"], "running");
    ui.act(json!({ "do": "register", "on": true })).await;
    let events = gateway.until_ended(&session, &run).await;
    assert_whole(&events);
    assert_eq!(asked(&events), ["list files"], "shown once");
    assert_eq!(said(&events, Some(&run)), "You said: list files");
    let end = events.iter().find(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "completed", "{end}");
    assert_eq!(ui.history().await[0], json!({ "role": "user", "text": "list files" }));
    // While a person works at the UI, prompts are queued.
    ui.types("hold").await;
    once(&gateway, &session, |events| said(events, None).ends_with("one ")).await;
    let run = gateway.prompt(&session, "next").await;
    ui.act(json!({ "do": "go" })).await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(asked(&gateway.events(&session).await), ["list files", "hold", "next"]);
    assert_eq!(said(&events, Some(&run)), "You said: next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_request_is_seen_here_and_answered_there() {
    let mut ui = Ui::start().await;
    let (gateway, session) = ui.watched().await;
    ui.types("run rm -rf build").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["observe_only"], true, "{request}");
    assert_eq!(request["type"], "permission");
    assert!(request["display"].as_str().unwrap().contains("rm -rf build"), "{request}");
    let labels: Vec<&str> =
        request["options"].as_array().unwrap().iter().map(|o| o["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Allow", "Deny", "Always Allow"]);
    let (status, refusal) = gateway.choose(&request, "Allow").await;
    assert_eq!((status, refusal["code"].as_str()), (409, Some("observe_only")), "{refusal}");
    ui.selects("req_1", "Allow").await;
    let events = once(&gateway, &session, |events| ended(events) == 1).await;
    let resolved = &events.iter().find(|event| event["kind"] == "request_resolved").unwrap()["event"];
    assert_eq!(
        (resolved["state"].as_str(), resolved["option_id"].as_str()),
        (Some("withdrawn"), Some("Allow")),
        "{resolved}"
    );
    assert_eq!(resolved["reason"], "answered elsewhere");
    let by = resolved["resolved_by"]["name"].as_str().unwrap();
    assert!(by.contains("the Gemini UI"), "{resolved}");
    let id = request["request_id"].as_str().unwrap();
    assert_eq!(gateway.get(&format!("/v1/requests/{id}")).await.1["state"], "withdrawn");
    let tool = events.iter().rfind(|event| event["kind"] == "tool_call_update").unwrap();
    assert_eq!(
        (tool["event"]["status"].as_str(), tool["event"]["rawOutput"].as_str()),
        (Some("completed"), Some("done "))
    );
    assert!(said(&events, None).ends_with("They chose Allow."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_messages_may_be_split_over_frames() {
    let mut ui = Ui::start().await;
    let (gateway, session) = ui.watched().await;
    for (n, how) in ["merged", "halves", "whole"].into_iter().enumerate() {
        ui.act(json!({ "do": "framing", "how": how })).await;
        ui.types("h\u{e9}llo w\u{f6}rld again").await;
        let events = once(&gateway, &session, |events| ended(events) == n + 1).await;
        let run = last_run(&events);
        assert_eq!(said(&events, run.as_str()), "You said: h\u{e9}llo w\u{f6}rld again", "{how}");
    }
    ui.act(json!({ "do": "send", "text": "{\"type\":\"new_thing\",\"data\":{\"a\":1}}\0no json\0" })).await;
    let raw = |events: &[Value]| events.iter().filter(|event| event["kind"] == "raw").count();
    let events = once(&gateway, &session, |events| raw(events) == 2).await;
    let unknown = events.iter().find(|event| event["kind"] == "raw").unwrap();
    assert_eq!(unknown["event"]["message"]["data"]["a"], 1, "kept: {unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_fills_a_lost_connection_without_repeats() {
    let mut ui = Ui::start().await;
    ui.types("before").await;
    let (gateway, session) = ui.watched().await;
    let events = once(&gateway, &session, |events| said(events, None) == "You said: before").await;
    assert_eq!(asked(&events), ["before"], "what was said before is told");
    ui.types("hold").await;
    once(&gateway, &session, |events| said(events, None).ends_with("one ")).await;
    ui.act(json!({ "do": "mirror", "on": false })).await;
    once(&gateway, &session, |events| events.iter().any(|event| event["event"]["status"] == "lost")).await;
    // Without a gateway the UI goes on.
    ui.act(json!({ "do": "go" })).await;
    ui.types("meanwhile").await;
    ui.act(json!({ "do": "mirror", "on": true })).await;
    let text = "You said: beforeone two threeYou said: meanwhile";
    let events = once(&gateway, &session, |events| said(events, None) == text).await;
    assert_eq!(asked(&events), ["before", "hold", "meanwhile"]);
    assert_eq!(ended(&events), 1, "the run under way is over: its follow-up was seen");
    let gap = events.iter().find(|event| event["event"]["code"] == "gap").expect("the gap is told");
    assert!(gap["event"]["message"].as_str().unwrap().contains("taken from its history"), "{gap}");
    // The session goes on.
    ui.types("after").await;
    let events = once(&gateway, &session, |events| ended(events) == 2).await;
    assert_eq!(said(&events, last_run(&events).as_str()), "You said: after");
    assert_eq!(gateway.get("/v1/runtimes").await.1["runtimes"][0]["generation"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_session_of_the_configuration_is_the_same_after_restarts() {
    let mut ui = Ui::start().await;
    let mut gateway = Gateway::start(&format!("{}session = true\n", ui.config())).await;
    let session = found(&gateway).await;
    ui.types("said once").await;
    once(&gateway, &session, |events| ended(events) == 1).await;
    for round in 0..4 {
        if round % 2 == 0 {
            assert!(gateway.stop().await.success());
        } else {
            gateway.kill();
        }
        gateway.again().await;
        assert_eq!(found(&gateway).await, session, "found once");
        ui.types(&format!("and then {round}")).await;
        let events = once(&gateway, &session, |events| ended(events) == 2 + round).await;
        assert_eq!(said(&events, None).matches("said once").count(), 1, "nothing is copied");
        let (_, body) = gateway.get("/v1/sessions").await;
        assert_eq!(body["sessions"].as_array().unwrap().len(), 1, "{body}");
    }
    assert!(gateway.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_session_is_found_again_after_a_restart_and_the_ui_lives() {
    let mut ui = Ui::start().await;
    let (mut gateway, session) = ui.watched().await;
    ui.types("one").await;
    once(&gateway, &session, |events| ended(events) == 1).await;
    assert!(gateway.stop().await.success());
    ui.types("unheard").await;
    gateway.again().await;
    assert_eq!(found(&gateway).await, session);
    ui.types("two").await;
    let events = once(&gateway, &session, |events| ended(events) == 2).await;
    assert_eq!(asked(&events), ["one", "two"], "nothing is told twice");
    assert!(events.iter().any(|event| event["event"]["code"] == "gap"), "what is missing is said to be");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_without_a_remote_control_is_watched_only() {
    let mut ui = Ui::with(&[], false).await;
    let (gateway, session) = ui.watched().await;
    ui.types("hello").await;
    once(&gateway, &session, |events| ended(events) == 1).await;
    let run = gateway.prompt(&session, "hi").await;
    let events = gateway.until_ended(&session, &run).await;
    let end =
        &events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == run.as_str()).unwrap()["event"];
    assert_eq!(end["status"], "error");
    assert!(end["message"].as_str().unwrap().contains("remote = \"http://127.0.0.1:PORT\""), "{end}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_stop_leaves_the_ui_alone() {
    let mut ui = Ui::start().await;
    let (gateway, session) = ui.watched().await;
    let (status, body) = gateway.delete("/v1/runtimes/ui").await;
    assert!(status < 300, "{status} {body}");
    let deadline = Instant::now() + PATIENCE;
    while gateway.get(&format!("/v1/sessions/{session}")).await.1["state"] != "exited" {
        assert!(Instant::now() < deadline, "the session goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    while ui.act(json!({ "do": "watched" })).await["clients"] != 0 {
        assert!(Instant::now() < deadline, "the gateway still watches");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ui.types("still here").await;
    assert_eq!(ui.history().await[0]["text"], "still here");
}
