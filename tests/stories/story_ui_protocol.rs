//! The specification of the UI protocol, end to end: a runtime that knows nothing else (tests/agents/plain_runtime.mjs), and clients that know
//! nothing else, on `/v1/ws` and on `plexus bridge codelia`, beside a phone with the default limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use common::gateway::{Gateway, PATIENCE, Ws, exe};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A gateway with the runtime, whose only session the configuration opens.
async fn gateway() -> Gateway {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/plain_runtime.mjs");
    let runtime = common::gateway::runtime("plain", &["node", program.to_str().unwrap()], "session = true\n");
    let gateway = Gateway::start(&runtime.replace("dialect = \"acp\"", "dialect = \"codelia\"")).await;
    session(&gateway).await;
    gateway
}

/// The runtime's only session, once it is open.
async fn session(gateway: &Gateway) -> String {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let (_, body) = gateway.get("/v1/sessions").await;
        if let Some(id) = body["sessions"][0]["session_id"].as_str() {
            return id.to_owned();
        }
        assert!(std::time::Instant::now() < deadline, "no session: {body}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The token of a device as `plexus pair` makes it by default: it answers up to elevated risk.
async fn phone(gateway: &Gateway) -> String {
    let device = json!({ "name": "phone", "scopes": ["watch", "prompt", "approve"], "approve_up_to": "elevated" });
    let (status, device) = gateway.post("/v1/devices", device).await;
    assert!(status < 300, "{device}");
    device["token"].as_str().unwrap().to_owned()
}

/// Answers over HTTP as a device.
async fn answer_as(gateway: &Gateway, token: &str, request: &Value, answer: Value) -> (u16, Value) {
    let url = format!("{}/v1/requests/{}/answer", gateway.url, request["request_id"].as_str().unwrap());
    let response = reqwest::Client::new().post(url).bearer_auth(token).json(&answer).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// A client of the specification.
enum Ui {
    Ws(Ws),
    Bridge { _child: Child, stdin: ChildStdin, lines: Lines<BufReader<ChildStdout>> },
}

/// A client with what it was sent.
struct Client {
    ui: Ui,
    next: u64,
    told: Vec<Value>,
}

impl Client {
    async fn ws(gateway: &Gateway) -> Self {
        let ui = Ui::Ws(gateway.ws_plain("/v1/ws").await);
        Self::open(ui, json!({ "ui_protocol": "0" })).await
    }

    async fn bridge(gateway: &Gateway) -> Self {
        let mut child = Command::new(exe())
            .args(["bridge", "codelia", "--runtime", "plain"])
            .env("PLEXUS_HOME", &gateway.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self::open(Ui::Bridge { _child: child, stdin, lines: BufReader::new(stdout).lines() }, json!({})).await
    }

    /// Both clients, by name.
    async fn both(gateway: &Gateway) -> [(&'static str, Self); 2] {
        [("ws", Self::ws(gateway).await), ("bridge", Self::bridge(gateway).await)]
    }

    async fn open(ui: Ui, more: Value) -> Self {
        let mut client = Self { ui, next: 0, told: Vec::new() };
        let mut hello = json!({
            "protocol_version": "0", "client": { "name": "codelia-tui", "version": "0.0.0" },
            "ui_capabilities": { "supports_confirm": true, "supports_prompt": true, "supports_pick": true },
        });
        hello.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(client.call("initialize", hello).await["result"]["protocol_version"], "0");
        client
    }

    async fn say(&mut self, message: &Value) {
        match &mut self.ui {
            Ui::Ws(ws) => ws.send(message).await,
            Ui::Bridge { stdin, .. } => {
                stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                stdin.flush().await.unwrap();
            }
        }
    }

    /// The next message; all are kept in `told`.
    async fn next(&mut self) -> Value {
        let message: Value = match &mut self.ui {
            Ui::Ws(ws) => ws.next().await.expect("the connection closed"),
            Ui::Bridge { lines, .. } => {
                let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
                let line = line.unwrap_or_else(|_| panic!("nothing came; before: {:?}", self.told)).unwrap();
                serde_json::from_str(&line.expect("the bridge ended")).unwrap()
            }
        };
        assert_eq!(message["jsonrpc"], "2.0");
        self.told.push(message.clone());
        message
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            if fits(&message) {
                return message;
            }
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next.to_string();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.until(|message| message["id"] == *id && message.get("method").is_none()).await
    }

    /// Starts a run without a session, as the specification's first example does.
    async fn start(&mut self, text: &str) -> String {
        let started = self.call("run.start", json!({ "input": { "type": "text", "text": text } })).await;
        started["result"]["run_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    async fn run(&mut self, steps: Value) -> String {
        self.start(&steps.to_string()).await
    }

    async fn asked(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == *method).await
    }

    async fn answer(&mut self, asked: &Value, result: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
    }

    async fn completed(&mut self, run: &str) {
        let over = |message: &Value| message["params"]["run_id"] == *run && message["params"]["status"] == "completed";
        if !self.told.iter().any(over) {
            self.until(over).await;
        }
    }

    /// The params of the agent events so far, taken.
    fn events(&mut self) -> Vec<Value> {
        let told = std::mem::take(&mut self.told);
        told.into_iter().filter(|message| message["method"] == "agent.event").map(|mut m| m["params"].take()).collect()
    }

    /// The events of one run: a client that joins a session may also get those of earlier runs.
    fn events_of(&mut self, run: &str) -> Vec<Value> {
        self.events().into_iter().filter(|params| params["run_id"] == run).collect()
    }

    /// The session of this client, as `session.list` has it, and its history: the reply, and the events before it.
    async fn history(&mut self, more: Value) -> (Value, Vec<Value>) {
        let listed = self.call("session.list", json!({})).await;
        let mut params = json!({ "session_id": listed["result"]["sessions"][0]["session_id"] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.told.clear();
        let reply = self.call("session.history", params).await["result"].clone();
        (reply, self.events())
    }
}

fn texts(events: &[Value], kind: &str) -> Vec<String> {
    let of_kind = events.iter().filter(|event| event["event"]["type"] == kind);
    of_kind.map(|event| event["event"]["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn ui_protocol_examples_of_the_specification_run_on_every_screen() {
    let gateway = gateway().await;
    let phone = phone(&gateway).await;
    for (name, mut client) in Client::both(&gateway).await {
        for by_phone in [false, true] {
            let run = client.start("List TypeScript files").await;
            let asked = client.asked("ui.confirm.request").await;
            let mut params = asked["params"].clone();
            let wanted = json!({
                "run_id": run, "title": "Run command?", "message": "rg -n \"AgentEvent\" -S packages",
            });
            assert_eq!(params, wanted, "{name}: as the runtime sent it");
            params["run_id"].take();
            let open = gateway.open_request(&session(&gateway).await).await;
            assert_eq!((&open["title"], &open["message"]), (&params["title"], &params["message"]), "{open}");
            assert_eq!((&open["subject"]["type"], &open["risk"]), (&json!("command"), &json!("low")), "{open}");
            if by_phone {
                let (status, receipt) = answer_as(&gateway, &phone, &open, json!({ "ok": true })).await;
                assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
            } else {
                client.answer(&asked, json!({ "ok": true })).await;
            }
            client.completed(&run).await;
            let events = client.events_of(&run);
            let first = &events[0];
            assert_eq!(
                (&first["seq"], &first["event"]),
                (&json!(0), &json!({ "type": "reasoning", "content": "...", "timestamp": 1_730_000_000_000_u64 }))
            );
            assert_eq!(texts(&events, "text"), [r#"{"ok":true}"#], "{name}: what the runtime got");
            assert_eq!(texts(&events, "final"), ["done"]);
        }
    }
}

#[tokio::test]
async fn ui_protocol_confirm_is_answered_by_a_phone_with_the_default_limit() {
    let gateway = gateway().await;
    let phone = phone(&gateway).await;
    let session = session(&gateway).await;
    let mut client = Client::ws(&gateway).await;
    for (params, risk, status) in [
        (json!({ "title": "Continue?", "message": "Run the unit tests?" }), "elevated", 200),
        (json!({ "title": "Continue?", "message": "Publish it", "danger_level": "normal" }), "elevated", 200),
        (json!({ "title": "Run command?", "message": "touch a.txt" }), "elevated", 200),
        (json!({ "title": "Continue?", "message": "x", "danger_level": "danger" }), "danger", 403),
        (json!({ "title": "Run command?", "message": "rm -rf build", "danger_level": "normal" }), "danger", 403),
        (json!({ "title": "Clean up?", "message": "I will run rm -rf build now" }), "danger", 403),
    ] {
        let run = client.run(json!([["ask", "ui.confirm.request", params]])).await;
        let asked = client.asked("ui.confirm.request").await;
        let open = gateway.open_request(&session).await;
        assert_eq!((&open["title"], &open["message"]), (&params["title"], &params["message"]));
        assert_eq!((&open["risk"], open.get("danger_level")), (&json!(risk), params.get("danger_level")), "{open}");
        assert_eq!(asked["params"].get("danger_level"), params.get("danger_level"), "the runtime's own word");
        let display = open["display"].as_str().unwrap();
        assert!(display.contains(params["message"].as_str().unwrap()) && !display.contains("cannot be read"), "{open}");
        let (got, body) = answer_as(&gateway, &phone, &open, json!({ "ok": true })).await;
        assert_eq!(got, status, "{params}: {body}");
        if status == 403 {
            client.answer(&asked, json!({ "ok": false })).await;
        }
        client.completed(&run).await;
    }
    // The open tool call of the run is what the question is about.
    let call = json!({ "type": "tool_call", "tool": "bash", "args": { "command": "ls" }, "tool_call_id": "t" });
    let question =
        json!({ "title": "Continue?", "message": "The next step", "confirm_label": "Go", "allow_remember": true });
    client.run(json!([["event", call], ["ask", "ui.confirm.request", question]])).await;
    let asked = client.asked("ui.confirm.request").await;
    let open = gateway.open_request(&session).await;
    assert_eq!((&open["subject"]["argv"], &open["tool_call_id"]), (&json!(["ls"]), &json!("t")), "{open}");
    assert_eq!(asked["params"]["confirm_label"], "Allow once “Go”", "the label stands beside the verb");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("ls"), "a screen that cuts shows what would run: {message}");
    assert!(message.ends_with("\n\nThe next step"), "{message}");
}

#[tokio::test]
async fn ui_protocol_events_keep_their_numbers_live_and_replayed() {
    let gateway = gateway().await;
    let (mut numbers, mut kinds) = (BTreeMap::new(), Vec::new());
    let mut note = |name: &str, events: Vec<Value>| {
        for event in events {
            let key = (event["run_id"].to_string(), event["event"].to_string());
            let known = numbers.entry(key).or_insert_with(|| event["seq"].clone()).clone();
            assert_eq!(known, event["seq"], "{name}: {event}");
            kinds.push(event["event"]["type"].as_str().unwrap().to_owned());
        }
    };
    let mut clients = Client::both(&gateway).await;
    for n in 0..2 {
        for (name, client) in &mut clients {
            let words = |at: i32| json!({ "type": "text", "content": format!("{name} {n} {at}") });
            let run =
                client.run(json!([["event", words(0)], ["event", words(1)], ["skip", 2], ["event", words(2)]])).await;
            client.completed(&run).await;
            let live = client.events();
            let own: Vec<&Value> = live.iter().filter(|event| event["run_id"] == *run).collect();
            assert!(own.iter().enumerate().all(|(at, event)| event["seq"] == at), "{name}: {own:?}");
            note(name, live);
        }
    }
    for (name, client) in &mut clients {
        let (whole, events) = client.history(json!({})).await;
        assert_eq!(whole, json!({ "runs": 4, "events_sent": events.len(), "truncated": false }), "{name}");
        for n in 0..2 {
            for of in ["ws", "bridge"] {
                for at in 0..3 {
                    let text = format!("{of} {n} {at}");
                    assert_eq!(
                        texts(&events, "text").iter().filter(|told| **told == text).count(),
                        1,
                        "{name}: {text}"
                    );
                }
            }
        }
        assert_eq!(texts(&events, "final").len(), 4, "{name}: each turn is completed");
        note(name, events.clone());
        let (_, again) = client.history(json!({})).await;
        assert_eq!(again, events, "{name}: a second replay is the same");
        let (cut, few) = client.history(json!({ "max_events": 3 })).await;
        assert_eq!((few.len(), &cut), (3, &json!({ "runs": 1, "events_sent": 3, "truncated": true })), "{name}");
        assert_eq!(few[..], events[events.len() - 3..], "{name}: the latest, with their numbers");
        let (runs, two) = client.history(json!({ "max_runs": 2 })).await;
        assert_eq!((&runs["runs"], &runs["truncated"]), (&json!(2), &json!(true)), "{name}");
        note(name, two);
    }
    assert!(kinds.iter().any(|kind| kind == "hidden_user_message"));
}

#[tokio::test]
async fn ui_protocol_final_completes_a_turn_of_text_alone() {
    let gateway = gateway().await;
    for (name, mut client) in Client::both(&gateway).await {
        let run = client.run(json!([["event", { "type": "text", "content": "the answer" }]])).await;
        client.completed(&run).await;
        let events = client.events_of(&run);
        assert_eq!(texts(&events, "final"), ["the answer"], "{name}");
        assert!(events.last().unwrap()["event"]["timestamp"].is_u64(), "{name}: {events:?}");
    }
}

#[tokio::test]
async fn ui_protocol_answer_that_does_not_fit_is_reported_and_asked_again() {
    let gateway = gateway().await;
    let confirm = json!({ "title": "Go on?", "message": "The next step" });
    let pick = json!({ "title": "Which?", "items": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] });
    for (name, mut client) in Client::both(&gateway).await {
        for (method, params, wrong, right) in [
            ("ui.confirm.request", &confirm, json!({ "ok": "yes" }), json!({ "ok": true })),
            ("ui.confirm.request", &confirm, json!({}), json!({ "ok": false })),
            ("ui.pick.request", &pick, json!({ "ids": ["zz"] }), json!({ "ids": ["b"] })),
        ] {
            let run = client.run(json!([["ask", method, params]])).await;
            let asked = client.asked(method).await;
            client.told.clear();
            client.answer(&asked, wrong.clone()).await;
            let again = client.asked(method).await;
            assert_eq!(again["params"], asked["params"], "{name}: {wrong}");
            let said = |message: &Value| {
                let words = message["params"]["message"].as_str().unwrap_or_default();
                message["method"] == "run.status" && words.starts_with("your answer was not accepted")
            };
            assert!(client.told.iter().any(said), "{name}: {wrong}: {:?}", client.told);
            client.answer(&again, right.clone()).await;
            client.completed(&run).await;
            assert_eq!(texts(&client.events(), "text"), [right.to_string()], "{name}");
        }
    }
}

#[tokio::test]
async fn ui_protocol_unknown_members_pass_in_both_directions() {
    let gateway = gateway().await;
    for (name, mut client) in Client::both(&gateway).await {
        let steps = json!([
            ["event", { "type": "text", "content": "x", "new": 1 }, { "meta": { "m": 1 }, "newer": [1.5] }],
            ["notify", "run.status", { "status": "running", "message": "half done", "newer": true }],
            ["ask", "ui.confirm.request", { "title": "T", "message": "Go on?", "newer": { "a": 1 } }],
            ["params"],
        ]);
        let params = json!({ "input": { "type": "text", "text": steps.to_string() }, "newer": { "b": 2 } });
        let run = client.call("run.start", params).await["result"]["run_id"].as_str().unwrap().to_owned();
        let asked = client.asked("ui.confirm.request").await;
        assert_eq!(asked["params"]["newer"], json!({ "a": 1 }), "{name}");
        client.answer(&asked, json!({ "ok": true })).await;
        client.completed(&run).await;
        let half = |message: &&Value| message["params"]["message"] == "half done";
        let status = client.told.iter().find(half).unwrap_or_else(|| panic!("{name}: {:?}", client.told)).clone();
        assert_eq!(
            status["params"],
            json!({ "run_id": run, "status": "running", "message": "half done", "newer": true })
        );
        let events = client.events_of(&run);
        assert_eq!((&events[0]["meta"], &events[0]["newer"]), (&json!({ "m": 1 }), &json!([1.5])), "{name}");
        assert_eq!(events[0]["event"], json!({ "type": "text", "content": "x", "new": 1 }));
        let got: Value = serde_json::from_str(texts(&events, "text").last().unwrap()).unwrap();
        assert_eq!(got["newer"], json!({ "b": 2 }), "{name}: {got}");
    }
}

#[tokio::test]
async fn ui_protocol_question_answered_elsewhere_is_followed_by_the_next_one() {
    let gateway = gateway().await;
    let (phone, session) = (phone(&gateway).await, session(&gateway).await);
    for (name, mut client) in Client::both(&gateway).await {
        let confirm = |title: &str| json!(["ask", "ui.confirm.request", { "title": title, "message": "Go on?" }]);
        let run = client.run(json!([confirm("first"), confirm("second")])).await;
        let first = client.asked("ui.confirm.request").await;
        let open = gateway.open_request(&session).await;
        assert_eq!(answer_as(&gateway, &phone, &open, json!({ "ok": true })).await.0, 200);
        let second = client.asked("ui.confirm.request").await;
        assert_eq!(
            (&first["params"]["title"], &second["params"]["title"]),
            (&json!("first"), &json!("second")),
            "{name}"
        );
        // A late answer to the first decides nothing.
        client.answer(&first, json!({ "ok": false })).await;
        client.answer(&second, json!({ "ok": true })).await;
        client.completed(&run).await;
        assert_eq!(texts(&client.events_of(&run), "text"), [r#"{"ok":true}"#, r#"{"ok":true}"#], "{name}");
    }
}

#[tokio::test]
async fn ui_protocol_version_in_the_reply_is_the_one_that_is_spoken() {
    let gateway = gateway().await;
    let mut ws = gateway.ws_plain("/v1/ws").await;
    let hello = json!({ "protocol_version": "99", "ui_protocol": "0", "client": { "name": "x", "version": "1" } });
    assert_eq!(ws.call("initialize", hello).await.unwrap()["protocol_version"], "0");
}
