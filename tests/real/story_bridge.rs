//! Repeated prompts that run once, and editors behind `plexus bridge acp`: both with a gateway that dies in between.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, assert_whole, exe, held_runtime, said};
use common::letter::assert_letter;
use common::moments::{Moments, rounds};

/// The demo agent, which outlives its gateways.
fn held() -> String {
    held_runtime("demo", &[exe(), "agent", "demo"], "")
}

/// Prompts over HTTP with a key; `None` if the gateway died before it answered.
async fn prompt_once(gateway: &Gateway, session: &str, text: &str, key: &str) -> Option<(u16, Value)> {
    let request = gateway.request("POST", &format!("/v1/sessions/{session}/prompt")).header("Idempotency-Key", key);
    let answer = request.json(&json!({ "text": text })).send().await.ok()?;
    Some((answer.status().as_u16(), answer.json().await.ok()?))
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

/// Waits for a run; returns the newest.
async fn last_run(gateway: &Gateway, session: &str) -> String {
    let (mut after, mut run) = (String::new(), None);
    loop {
        let wait = if run.is_none() { 5 } else { 0 };
        let (_, page) = gateway.get(&format!("/v1/sessions/{session}/events?after={after}&wait={wait}")).await;
        let events = page["events"].as_array().unwrap();
        let begun = events.iter().rfind(|event| event["kind"] == "run_started");
        run = begun.map(|event| event["run_id"].as_str().unwrap().to_owned()).or(run);
        match run {
            Some(run) if events.len() < 100 => return run,
            _ => after = page["next"].as_str().unwrap().to_owned(),
        }
    }
}

#[tokio::test]
async fn bridge_keyed_prompt_runs_once_across_gateway_deaths() {
    let mut gateway = Gateway::start(&held()).await;
    let session = gateway.session("demo").await;
    let (status, first) = prompt_once(&gateway, &session, "stream 60 20", "k1").await.unwrap();
    assert_eq!((status, &first["queued"]), (202, &json!(false)));
    let (_, waits) = prompt_once(&gateway, &session, "echo second", "k2").await.unwrap();
    assert_eq!(waits["queued"], true);
    gateway.kill();
    gateway.again().await;
    // One goes on in its agent, the other is still queued.
    for (text, key, run) in [("stream 60 20", "k1", &first), ("echo second", "k2", &waits)] {
        let (status, again) = prompt_once(&gateway, &session, text, key).await.unwrap();
        assert_eq!((status, &again["run_id"]), (202, &run["run_id"]), "{again}");
    }
    let (status, problem) = prompt_once(&gateway, &session, "another", "k1").await.unwrap();
    assert_eq!((status, &problem["code"]), (422, &json!("idempotency_key_reused")));
    let (status, problem) = prompt_once(&gateway, &session, "x", &"k".repeat(129)).await.unwrap();
    assert_eq!((status, &problem["code"]), (400, &json!("bad_idempotency_key")));
    let events = gateway.until_ended(&session, waits["run_id"].as_str().unwrap()).await;
    assert_whole(&events);
    assert_eq!((count(&events, "run_started"), count(&events, "run_ended")), (2, 2));
    gateway.kill();
    gateway.again().await;
    // The ended prompt is known, over the other transport too, where keys belong to the same device.
    let mut ws = gateway.ws().await;
    let again = json!({ "session_id": session, "text": "stream 60 20", "idempotency_key": "k1" });
    let again = ws.call("run.start", again).await.unwrap();
    assert_eq!((&again["run_id"], &again["ended"]["status"]), (&first["run_id"], &json!("completed")));
    assert_eq!(again["ended"]["stop_reason"], "end_turn");
    let long = json!({ "session_id": session, "text": "x", "idempotency_key": "k".repeat(129) });
    assert_eq!(ws.call("run.start", long).await.unwrap_err()["data"]["code"], "bad_idempotency_key");
    let fresh = json!({ "session_id": session, "text": "echo third", "idempotency_key": "k3" });
    let third = ws.call("run.start", fresh).await.unwrap();
    assert_ne!(third["run_id"], first["run_id"]);
    let events = gateway.until_ended(&session, third["run_id"].as_str().unwrap()).await;
    assert_eq!(count(&events, "run_started"), 3);
}

#[tokio::test]
async fn bridge_prompt_without_a_response_is_repeated_and_run_once() {
    let mut gateway = Gateway::start(&held()).await;
    let session = gateway.session("demo").await;
    for (round, pause) in [0u64, 1, 2, 4, 8, 16].into_iter().enumerate() {
        let (text, key) = (format!("echo round {round}"), format!("round-{round}"));
        let request =
            gateway.request("POST", &format!("/v1/sessions/{session}/prompt")).header("Idempotency-Key", &key);
        let asked = tokio::spawn(request.json(&json!({ "text": text })).send());
        // A random pause before the kill.
        tokio::time::sleep(Duration::from_millis(pause)).await;
        gateway.kill();
        let _ = asked.await.unwrap();
        gateway.again().await;
        let (status, accepted) = prompt_once(&gateway, &session, &text, &key).await.unwrap();
        assert_eq!(status, 202, "{accepted}");
        let run = accepted["run_id"].as_str().unwrap().to_owned();
        let events = gateway.until_ended(&session, &run).await;
        assert_whole(&events);
        assert_eq!(count(&events, "run_started"), round + 1, "round {round}: once");
        assert!(said(&events, Some(&run)).contains(&format!("round {round}")));
    }
}

#[tokio::test]
async fn bridge_key_is_known_when_the_agent_is_gone() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let (_, first) = prompt_once(&gateway, &session, "hang", "k1").await.unwrap();
    gateway.kill();
    gateway.again().await;
    let (status, again) = prompt_once(&gateway, &session, "hang", "k1").await.unwrap();
    assert_eq!((status, &again["run_id"]), (202, &first["run_id"]));
    assert_eq!(again["ended"]["status"], "error", "its agent went with the gateway: {again}");
}

// === editors ===

/// A raw editor whose agent is a bridge.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    next: u64,
    /// Messages not read by the test yet.
    told: VecDeque<Value>,
    /// The agent's whole text.
    text: String,
}

impl Editor {
    fn start(gateway: &Gateway, more: &[&str]) -> Self {
        let mut child = Command::new(exe())
            .args(["bridge", "acp"])
            .args(more)
            .env("PLEXUS_HOME", &gateway.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Self { child, stdin, lines, next: 0, told: VecDeque::new(), text: String::new() }
    }

    /// An initialized editor.
    async fn hello(gateway: &Gateway, more: &[&str]) -> Self {
        let mut editor = Self::start(gateway, more);
        let hello = editor.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        assert_eq!(hello["result"]["protocolVersion"], 1, "{hello}");
        editor
    }

    async fn say(&mut self, message: Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// The next message that fits; earlier ones are kept.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.told.iter().position(&fits) {
            return self.told.remove(place).unwrap();
        }
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.as_mut().unwrap().next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("nothing came; before: {:?}", self.told)).unwrap();
            let message: Value = serde_json::from_str(&line.expect("the bridge ended")).unwrap();
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                self.text.push_str(update["content"]["text"].as_str().unwrap());
            }
            if fits(&message) {
                return message;
            }
            self.told.push_back(message);
        }
    }

    async fn response(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.response(id).await
    }

    async fn open(&mut self) -> String {
        let opened = self.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await;
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }

    /// The next request.
    async fn question(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission").await
    }

    async fn choose(&mut self, question: &Value, kind: &str) {
        let options = question["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
        self.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "outcome": outcome } })).await;
    }

    /// Waits for the bridge's end; returns its status and stderr.
    async fn ended(&mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        let all = async {
            self.child.stderr.as_mut().unwrap().read_to_string(&mut stderr).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = tokio::time::timeout(PATIENCE, all).await.expect("the bridge did not end");
        (status, stderr)
    }
}

fn is_chunk(message: &Value) -> bool {
    message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
}

#[tokio::test]
async fn bridge_editor_does_all_it_does_with_an_agent() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "stream 5").await).await;
    // A late joiner gets the history.
    let mut player = Player::enter("bridge", &gateway, &session).await;
    assert_eq!(player.text(), said(&gateway.events(&session).await, None));
    player.prompt("stream 20").await;
    assert_eq!(player.until("ended").await["ended"], "end_turn");
    // A request that it answers, and one that another client answers.
    player.prompt("ask").await;
    player.until("asked").await;
    player.answer(true).await;
    assert_eq!(player.until("resolved").await["by"], "player (local)");
    player.until("ended").await;
    player.prompt("ask").await;
    let asked = player.until("asked").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(asked["id"], request["request_id"]);
    gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!(player.until("resolved").await["resolved"], request["request_id"]);
    player.until("ended").await;
    // It gets runs of other clients.
    let run = gateway.prompt(&session, "echo from elsewhere").await;
    assert_eq!(player.until("user").await["user"], "echo from elsewhere");
    player.until("ended").await;
    gateway.until_ended(&session, &run).await;
    player.prompt("hang").await;
    player.cancel().await;
    assert_eq!(player.until("ended").await["ended"], "cancelled");
    // Killed in the middle of a stream, and restarted.
    player.prompt("stream 200 5").await;
    player.until("text").await;
    player.cut().await;
    player.resume().await;
    player.until("ended").await;
    assert_eq!(player.text(), said(&gateway.events(&session).await, None));
    player.quit().await;
}

#[tokio::test]
async fn bridge_hides_a_gateway_death_in_the_middle_of_a_stream() {
    let mut gateway = Gateway::start(&held()).await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    let prompt = editor.prompt(&session, "stream 400 10").await;
    for _ in 0..4 {
        for _ in 0..10 {
            editor.until(is_chunk).await;
        }
        gateway.kill();
        gateway.again().await;
    }
    let end = editor.response(prompt).await;
    assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    let events = gateway.events(&session).await;
    assert_whole(&events);
    assert_eq!(count(&events, "run_started"), 1, "run once");
    assert_eq!(editor.text, said(&events, None), "all that was said, once");
    assert!(!editor.told.iter().any(|message| message["params"]["update"]["sessionUpdate"] == "user_message_chunk"));
    // It goes on.
    let prompt = editor.prompt(&session, "echo more").await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    drop(editor.stdin.take());
    let (status, stderr) = editor.ended().await;
    assert_eq!(status.code(), Some(0));
    let (gone, back) = (
        stderr.matches("the connection to the gateway was lost").count(),
        stderr.matches("the gateway is back").count(),
    );
    assert!(gone == back && gone > 0 && stderr.lines().count() == gone + back, "{stderr}");
}

#[tokio::test]
async fn bridge_agent_that_dies_ends_the_prompt_and_serves_the_next() {
    let mut gateway = Gateway::demo().await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    let prompt = editor.prompt(&session, "stream 1 ;; hang").await;
    editor.until(is_chunk).await;
    gateway.kill();
    gateway.again().await;
    let failed = editor.response(prompt).await;
    let words = failed["error"]["message"].as_str().unwrap_or_else(|| panic!("{failed}"));
    assert!(words.contains("the agent"), "{words}");
    let prompt = editor.prompt(&session, "echo again").await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    let events = gateway.events(&session).await;
    assert_eq!((count(&events, "run_started"), editor.text), (2, said(&events, None)));
}

#[tokio::test]
async fn bridge_request_outlives_the_gateway_and_is_shown_once() {
    let mut gateway = Gateway::start(&held()).await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    // Answered by the editor while there is no gateway.
    let prompt = editor.prompt(&session, "ask").await;
    let question = editor.question().await;
    gateway.kill();
    editor.choose(&question, "allow_once").await;
    gateway.again().await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    // Answered by another client before the bridge reconnects.
    let prompt = editor.prompt(&session, "ask").await;
    let question = editor.question().await;
    gateway.kill();
    gateway.again().await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["request_id"], question["id"]);
    gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    let taken_back = editor.until(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    editor.say(json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32800, "message": "x" } })).await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    // Still open when the bridge reconnects, and answered then.
    let prompt = editor.prompt(&session, "ask").await;
    let question = editor.question().await;
    gateway.kill();
    gateway.again().await;
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(listed["result"]["sessions"].as_array().unwrap().len(), 1, "it is back");
    editor.choose(&question, "allow_once").await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    assert!(!editor.told.iter().any(|message| message["method"] == "session/request_permission"), "shown once");
    let events = gateway.events(&session).await;
    assert_whole(&events);
    assert_eq!(editor.text, said(&events, None));
    assert_eq!((count(&events, "run_started"), count(&events, "request_resolved")), (3, 3));
}

#[tokio::test]
async fn bridge_request_answered_while_it_reconnects_is_always_taken_back() {
    let mut gateway = Gateway::start(&held()).await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    let mut moments = Moments::new();
    for round in 0..rounds("answers while the bridge reconnects", 3, 1000) {
        let prompt = editor.prompt(&session, "ask").await;
        let question = editor.question().await;
        gateway.kill();
        gateway.again().await;
        let request = gateway.open_request(&session).await;
        moments.pass(200).await;
        gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
        let taken_back = editor.until(|message| message["method"] == "$/cancel_request").await;
        assert_eq!(taken_back["params"]["requestId"], question["id"], "round {round}");
        assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn", "round {round}");
        let again = editor.told.iter().any(|message| message["method"] == "session/request_permission");
        assert!(!again, "round {round}: shown once");
        editor.told.clear();
    }
}

#[tokio::test]
async fn bridge_cancel_that_was_lost_is_repeated() {
    let mut gateway = Gateway::start(&held()).await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    let prompt = editor.prompt(&session, "stream 1 ;; hang").await;
    editor.until(is_chunk).await;
    gateway.kill();
    editor.say(json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })).await;
    gateway.again().await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn bridge_editor_that_leaves_keeps_the_agent_at_work() {
    let gateway = Gateway::demo().await;
    let mut session = String::new();
    for how in ["stdin closes", "stdout breaks", "killed"] {
        let mut editor = Editor::hello(&gateway, &[]).await;
        session = editor.open().await;
        editor.prompt(&session, "stream 60 10").await;
        editor.until(is_chunk).await;
        match how {
            "stdin closes" => drop(editor.stdin.take()),
            "stdout breaks" => drop(editor.lines.take()),
            _ => editor.child.start_kill().unwrap(),
        }
        let (status, stderr) = editor.ended().await;
        assert_eq!(status.code(), (how != "killed").then_some(0), "{how}: {stderr}");
        assert_eq!(stderr, "", "{how}");
        let events = gateway.until_ended(&session, &last_run(&gateway, &session).await).await;
        assert_eq!(said(&events, None).matches("chunk-").count(), 60, "{how}: the agent went on");
    }
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(info["state"], "idle");
}

#[tokio::test]
async fn bridge_editor_that_does_not_read_blocks_nobody_loses_nothing() {
    let gateway = Gateway::demo().await;
    let mut editor = Editor::hello(&gateway, &[]).await;
    let session = editor.open().await;
    let prompt = editor.prompt(&session, "flood 20000 200").await;
    // More than all pipes and sockets between them hold.
    let events = gateway.until_ended(&session, &last_run(&gateway, &session).await).await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    assert!(editor.text.len() >= 4_000_000, "{}", editor.text.len());
    assert!(editor.text == said(&events, None), "all that was said, once");
}

#[tokio::test]
async fn bridge_named_session_is_joined_and_its_history_shown() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "stream 4").await).await;
    let run = gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    let mut editor = Editor::hello(&gateway, &["--session", "last"]).await;
    let opened = editor.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await;
    assert_eq!(opened["result"]["sessionId"], session.as_str(), "{opened}");
    assert!(opened["result"]["modes"].is_object() && editor.told.is_empty(), "first its name, then what was said");
    let question = editor.question().await;
    assert_eq!(editor.text, said(&gateway.events(&session).await, None));
    let users = editor.told.iter().filter(|told| told["params"]["update"]["sessionUpdate"] == "user_message_chunk");
    assert_eq!(users.count(), 2, "what others said, too");
    editor.choose(&question, "allow_once").await;
    gateway.until_ended(&session, &run).await;
    let prompt = editor.prompt(&session, "echo hello").await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
    assert_ne!(editor.open().await, session, "the next one is new");
    assert_eq!(editor.text, said(&gateway.events(&session).await, None));
}

#[tokio::test]
async fn bridge_without_a_gateway_or_session_says_so_and_ends() {
    let mut gateway = Gateway::demo().await;
    for (more, code, words) in [
        (&["--session", "nothing"][..], 1, "there is no session nothing"),
        (&["--runtime", "nothing"], 1, "there is no runtime nothing"),
    ] {
        let (status, stderr) = Editor::start(&gateway, more).ended().await;
        assert_eq!(status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    gateway.stop().await;
    let mut editor = Editor::start(&gateway, &[]);
    let (status, stderr) = editor.ended().await;
    assert_eq!(status.code(), Some(69));
    assert!(stderr.starts_with("plexus: no gateway is running: ") && stderr.lines().count() == 1, "{stderr}");
    let mut stdout = editor.lines.take().unwrap();
    assert_eq!(stdout.next_line().await.unwrap(), None, "stdout is the protocol's alone");
}

#[tokio::test]
async fn bridge_answers_invalid_messages_and_goes_on() {
    let gateway = Gateway::demo().await;
    let mut editor = Editor::hello(&gateway, &["--runtime", "demo"]).await;
    editor.stdin.as_mut().unwrap().write_all(b"{ this is none\n\xff\xfe\n[]\n").await.unwrap();
    for code in [-32700, -32700, -32600] {
        let answer = editor.until(|message| message["id"].is_null() && message.get("error").is_some()).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let long = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "x".repeat(17 << 20) }] });
    // Members in the order of editors' libraries.
    let line = format!(r#"{{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{long}}}"#) + "\n";
    editor.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    let answer = editor.until(|message| message["id"] == "long").await;
    assert_eq!(answer["error"]["data"]["code"], "too_long");
    let session = editor.open().await;
    let prompt = editor.prompt(&session, "echo fine").await;
    assert_eq!(editor.response(prompt).await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn bridge_serves_acpx_as_its_agent() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut player = Player::enter("acpx", &gateway, &session).await;
    player.prompt("stream 30").await;
    assert_eq!(player.until("ended").await["ended"], "end_turn");
    player.prompt("ask").await;
    let asked = player.until("asked").await;
    player.answer(true).await;
    let resolved = player.until("resolved").await;
    assert_eq!((&resolved["resolved"], &resolved["allow"]), (&asked["id"], &json!(true)));
    player.until("ended").await;
    assert_eq!(player.text(), said(&gateway.events(&session).await, None));
    player.prompt("stream 1 ;; hang").await;
    player.until("text").await;
    player.cancel().await;
    assert_eq!(player.until("ended").await["ended"], "cancelled");
    // Killed in the middle of a run, which goes on; then restarted.
    player.prompt("stream 200 20").await;
    player.until("text").await;
    player.cut().await;
    player.resume().await;
    gateway.until_ended(&session, &last_run(&gateway, &session).await).await;
    player.prompt("echo back again").await;
    assert_eq!(player.until("user").await["user"], "echo back again");
    assert_eq!(player.until("text").await["text"], "back again");
    player.until("ended").await;
    player.quit().await;
    let events = gateway.events(&session).await;
    assert_whole(&events);
    assert_eq!((count(&events, "run_started"), count(&events, "run_ended")), (5, 5));
}

// === clients of the UI protocol ===

/// A client of the UI protocol's specification that knows nothing of Plexus, with a bridge as its runtime: NDJSON, text ids, and
/// no member or method that is not in the specification.
struct Ui {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next: u64,
    told: Vec<Value>,
}

impl Ui {
    async fn open(gateway: &Gateway) -> Self {
        let mut child = Command::new(exe())
            .args(["bridge", "codelia"])
            .env("PLEXUS_HOME", &gateway.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut ui = Self { _child: child, stdin, lines: BufReader::new(stdout).lines(), next: 0, told: Vec::new() };
        let shows = json!({ "supports_confirm": true, "supports_prompt": true, "supports_pick": true });
        let client = json!({ "name": "ui", "version": "1" });
        let hello = json!({ "protocol_version": "0", "client": client, "ui_capabilities": shows });
        assert_eq!(ui.call("initialize", hello).await["result"]["protocol_version"], "0");
        ui
    }

    async fn say(&mut self, message: Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.stdin.flush().await.unwrap();
    }

    /// The next message that fits; all are stored in `told`.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("nothing came; before: {:?}", self.told)).unwrap();
            let message: Value = serde_json::from_str(&line.expect("the bridge ended")).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            assert_letter(&message);
            self.told.push(message.clone());
            if fits(&message) {
                return message;
            }
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next.to_string();
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.until(|message| message["id"] == *id && message.get("method").is_none()).await
    }

    async fn prompt(&mut self, text: &str) -> String {
        let started = self.call("run.start", json!({ "input": { "type": "text", "text": text } })).await;
        assert_eq!(started["result"].as_object().map(|result| result.len()), Some(1), "{started}");
        started["result"]["run_id"].as_str().unwrap().to_owned()
    }

    async fn ended(&mut self, run: &str) -> Value {
        let over = ["completed", "error", "cancelled"];
        let ended = |message: &Value| {
            message["method"] == "run.status"
                && message["params"]["run_id"] == *run
                && over.iter().any(|word| message["params"]["status"] == *word)
        };
        if let Some(told) = self.told.iter().find(|message| ended(message)) {
            return told["params"]["status"].clone();
        }
        self.until(ended).await["params"]["status"].clone()
    }

    /// Takes the AgentEvents so far.
    fn events(&mut self) -> Vec<Value> {
        let told = std::mem::take(&mut self.told);
        told.into_iter().filter(|message| message["method"] == "agent.event").map(|mut m| m["params"].take()).collect()
    }
}

#[tokio::test]
async fn bridge_speaks_the_ui_protocol_to_the_letter() {
    let gateway = Gateway::demo().await;
    let mut ui = Ui::open(&gateway).await;
    let first = ui.prompt("think ;; stream 3").await;
    assert_eq!(ui.ended(&first).await, "completed");
    let events = ui.events();
    assert!(events.iter().enumerate().all(|(n, event)| event["seq"] == n && event["run_id"] == *first), "{events:?}");
    assert_eq!(events.last().unwrap()["event"]["type"], "final");
    // Cancelling an ended run, an unknown one, and a running one.
    let over = ui.call("run.cancel", json!({ "run_id": first })).await;
    assert_eq!(over["result"], json!({ "ok": false, "status": "completed" }));
    assert_eq!(ui.call("run.cancel", json!({ "run_id": "r_nothing" })).await["error"]["code"], -32002);
    let hangs = ui.prompt("hang").await;
    let cancelled = ui.call("run.cancel", json!({ "run_id": hangs, "reason": "enough" })).await;
    assert_eq!(cancelled["result"], json!({ "ok": true, "status": "running" }));
    assert_eq!(ui.ended(&hangs).await, "cancelled");
    // A request, answered by a response.
    let asks = ui.prompt("ask ;; diff").await;
    let asked = ui.until(|message| message["method"] == "ui.confirm.request").await;
    assert!(asked["id"].is_string(), "{asked}");
    ui.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "ok": true } })).await;
    assert_eq!(ui.ended(&asks).await, "completed");
    for n in 0..3 {
        let run = ui.prompt(&format!("echo number {n}")).await;
        assert_eq!(ui.ended(&run).await, "completed");
    }

    let listed = ui.call("session.list", json!({})).await;
    let sessions = listed["result"]["sessions"].as_array().unwrap();
    assert_eq!((listed["result"].as_object().unwrap().len(), sessions.len()), (1, 1), "{listed}");
    let known = ["session_id", "updated_at", "run_id", "message_count", "last_user_message"];
    assert!(sessions[0].as_object().unwrap().keys().all(|member| known.contains(&member.as_str())), "{listed}");
    assert_eq!(sessions[0]["last_user_message"], "echo number 2", "{listed}");
    let count = sessions[0]["message_count"].as_u64().unwrap();
    assert!(count >= 10, "six prompts, five answers and more: {listed}");
    let none = ui.call("session.list", json!({ "limit": 0 })).await;
    assert_eq!(none["result"], json!({ "sessions": [] }));
    let session = sessions[0]["session_id"].clone();

    // Another client: the requested part of the history comes before the reply, read from its end.
    let mut other = Ui::open(&gateway).await;
    for (wants, runs, truncated) in
        [(json!({}), 6, false), (json!({ "max_runs": 2 }), 2, true), (json!({ "max_events": 1 }), 1, true)]
    {
        let mut params = wants.clone();
        params["session_id"] = session.clone();
        other.told.clear();
        let past = other.call("session.history", params).await["result"].clone();
        let events = other.events();
        let of = events.iter().map(|event| event["run_id"].to_string()).collect::<std::collections::BTreeSet<_>>();
        assert_eq!((&past["runs"], of.len(), &past["truncated"]), (&json!(runs), runs, &json!(truncated)), "{wants}");
        assert_eq!(past["events_sent"], events.len(), "{wants}: {past}");
        assert_eq!(events.last().unwrap()["event"]["content"], "number 2", "{wants}: the latest are told");
    }
}
