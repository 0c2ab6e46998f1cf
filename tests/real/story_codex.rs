//! Codex's app-server with a loopback model through the real gateway, started by it on stdio or shared with another client over a
//! WebSocket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::{Gateway, PATIENCE, assert_whole, said};
use common::moments::{Moments, kills};
use futures_util::{SinkExt, StreamExt};
use plexus_client::FollowStart;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// A model known to Codex, for which it has the tool that edits files; all models are the loopback one.
const MODEL: [&str; 2] = ["-c", "model=\"gpt-5.5\""];

struct Stage {
    setup: AgentSetup,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
    _model: FakeModel,
}

async fn stage() -> Stage {
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut setup = agents::codex_app(&install, home.path(), model.port());
    setup.command.extend(MODEL.map(str::to_owned));
    Stage { setup, work, _home: home, _model: model }
}

fn config(stage: &Stage, reach: &str) -> String {
    let env: Vec<String> = stage.setup.env.iter().map(|(k, v)| format!("{k} = {}", json!(v))).collect();
    let cwd = json!(stage.work.path());
    format!("[[runtime]]\nid = \"codex\"\ndialect = \"codex\"\n{reach}\ncwd = {cwd}\nenv = {{ {} }}\n", env.join(", "))
}

/// The model's text for `FAKE:long N`.
fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

fn of_run<'a>(events: &'a [Value], run: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["run_id"] == run).collect()
}

/// The status of a run's end.
fn end(events: &[Value], run: &str) -> String {
    let ended = of_run(events, run).into_iter().find(|event| event["kind"] == "run_ended").unwrap();
    ended["event"]["status"].as_str().unwrap().to_owned()
}

/// Waits until the session's events satisfy `found`; returns them.
async fn until(gateway: &Gateway, session: &str, found: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        if found(&events) {
            return events;
        }
        assert!(Instant::now() < deadline, "it did not happen: {events:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn text_is_told_once_and_whole(gateway: &Gateway, session: &str) {
    let mut ws = gateway.follow(session, FollowStart::Now).await;
    let run = gateway.prompt(session, "FAKE:long 300 1").await;
    let (live, polled) = tokio::join!(ws.until_ended(&run), gateway.until_ended(session, &run));
    assert_eq!(said(&live, Some(&run)), long(300));
    assert_eq!(said(&polled, Some(&run)), long(300));
    let heard = of_run(&polled, &run).iter().filter(|event| event["kind"] == "user_message_chunk").count();
    assert!(heard <= 1, "the prompt is not repeated");
    assert!(of_run(&polled, &run).iter().any(|event| event["kind"] == "usage_update"));
    let thought = gateway.prompt(session, "FAKE:think 3").await;
    let events = gateway.until_ended(session, &thought).await;
    let thoughts = of_run(&events, &thought).iter().filter(|event| event["kind"] == "agent_thought_chunk").count();
    assert_eq!(thoughts, 3);
}

async fn an_approval_runs_it_once_and_a_decline_does_not(gateway: &Gateway, session: &str, work: &Path) {
    let log = work.join("ran");
    let run = gateway.prompt(session, &format!("FAKE:shell echo ran >> {}", log.display())).await;
    let request = gateway.open_request(session).await;
    assert!(request["display"].as_str().unwrap().contains("echo ran >>"), "{request}");
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!(status, 200, "{receipt}");
    let events = gateway.until_ended(session, &run).await;
    assert_eq!((end(&events, &run).as_str(), std::fs::read_to_string(&log).unwrap().as_str()), ("completed", "ran\n"));
    let tools = |events: &[Value], run: &str| -> Vec<String> {
        let of_tool = |event: &&&Value| event["kind"].as_str().unwrap().starts_with("tool_call");
        let events = of_run(events, run);
        events.iter().filter(of_tool).filter_map(|event| Some(event["event"]["status"].as_str()?.to_owned())).collect()
    };
    assert_eq!(tools(&events, &run).last().unwrap(), "completed");

    let file = work.join("declined");
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
    let request = gateway.open_request(session).await;
    gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(tools(&events, &run).last().unwrap(), "failed");
    assert!(!file.exists());
}

async fn a_change_to_a_file_is_shown_before_it_is_made(gateway: &Gateway, session: &str, work: &Path) {
    for (option, name) in [("accept", "yes.txt"), ("decline", "no.txt")] {
        let run = gateway.prompt(session, &format!("FAKE:write {name} hello there")).await;
        let request = gateway.open_request(session).await;
        assert!(request["display"].as_str().unwrap().contains("hello there"), "{request}");
        gateway.choose(&request, option).await;
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(end(&events, &run), "completed", "a declined change does not end the turn");
        assert_eq!(work.join(name).exists(), option == "accept");
    }
}

async fn a_cancel_withdraws_the_question_and_ends_the_run(gateway: &Gateway, session: &str, work: &Path) {
    let file = work.join("cancelled");
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
    let request = gateway.open_request(session).await;
    let (status, body) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert!(status == 200 || status == 202, "{status} {body}");
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end(&events, &run), "cancelled");
    let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &late["state"]), (410, &json!("withdrawn")), "{late}");
    assert!(!file.exists());
}

async fn two_questions_at_once_and_two_prompts_at_once(gateway: &Gateway, session: &str, work: &Path) {
    let (a, b) = (work.join("a"), work.join("b"));
    let run = gateway.prompt(session, &format!("FAKE:shell2 touch {} | touch {}", a.display(), b.display())).await;
    for request in gateway.open_requests(session, 2).await {
        gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    }
    let second = gateway.prompt(session, "FAKE:text second").await;
    let events = gateway.until_ended(session, &second).await;
    assert!(a.exists() && b.exists());
    assert!(said(&events, Some(&run)).starts_with("All done. "), "the first is not steered by the second");
    assert_eq!(said(&events, Some(&second)), "second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_started_by_the_gateway() {
    let stage = stage().await;
    let reach = format!("command = {}", json!(stage.setup.command));
    let mut gateway = Gateway::start(&config(&stage, &reach)).await;
    let session = &gateway.session("codex").await;
    let work = stage.work.path();
    text_is_told_once_and_whole(&gateway, session).await;
    an_approval_runs_it_once_and_a_decline_does_not(&gateway, session, work).await;
    a_change_to_a_file_is_shown_before_it_is_made(&gateway, session, work).await;
    a_cancel_withdraws_the_question_and_ends_the_run(&gateway, session, work).await;
    two_questions_at_once_and_two_prompts_at_once(&gateway, session, work).await;
    let events = gateway.events(session).await;
    assert_whole(&events);
    let raw: Vec<&Value> = events.iter().filter(|event| event["kind"] == "raw").collect();
    assert!(raw.is_empty(), "all that Codex says is understood: {raw:#?}");
    let mut ws = gateway.ws().await;
    let models = ws.call("model.list", json!({ "session_id": session })).await.unwrap();
    assert_eq!(models["current"], "gpt-5.5", "{models}");
    assert!(models["models"].as_array().unwrap().contains(&json!("gpt-5.5")));
    assert!(gateway.stop().await.success());
}

// ---- shared with another client -------------------------------------------------------------------------------------

/// A running app-server that many clients share; killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(stage: &Stage, listen: &str) -> Self {
        let (program, args) = stage.setup.command.split_first().unwrap();
        let mut child = Command::new(program)
            .args(args)
            .args(["--listen", listen])
            .envs(stage.setup.env.iter().cloned())
            .current_dir(stage.work.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut url = None;
        let mut line = String::new();
        while url.is_none() && stderr.read_line(&mut line).unwrap() > 0 {
            url = line.find("ws://").map(|at| line[at..].trim().to_owned());
            line.clear();
        }
        // Keeps reading, so that the server can go on writing.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Self { child, url: url.expect("codex says where it listens") }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Another client of the app-server, like Codex's own terminal UI.
struct Peer {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    next: u64,
    heard: Vec<Value>,
}

impl Peer {
    async fn connect(url: &str) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let mut peer = Self { socket, next: 0, heard: Vec::new() };
        let client = json!({ "name": "peer", "title": "Peer", "version": "1" });
        peer.call("initialize", json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } })).await;
        peer.send(json!({ "method": "initialized" })).await;
        peer
    }

    async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let next = async {
            loop {
                if let Message::Text(text) = self.socket.next().await.unwrap().unwrap() {
                    return serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("the app-server says something")
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.heard.push(message);
        }
    }

    /// The next unread message with this method.
    async fn until(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
            self.heard.push(message);
        }
    }
}

async fn thread_of(gateway: &Gateway, session: &str) -> String {
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    info["native_id"].as_str().unwrap_or_else(|| panic!("{info}")).to_owned()
}

/// The session that the configuration opens.
async fn opened(gateway: &Gateway) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, sessions) = gateway.get("/v1/sessions").await;
        if let Some(session) = sessions["sessions"].get(0) {
            return session["session_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{sessions}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Waits until the other client got the end of a turn that it did not begin.
async fn turn_over(peer: &mut Peer) {
    peer.until("turn/completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_events_while_the_gateway_is_away_appear_once() {
    let stage = stage().await;
    let server = Server::start(&stage, "ws://127.0.0.1:0");
    // The configuration opens one session, however often the gateway starts.
    let reach = format!("connect = {}\nsession = true", json!(server.url));
    let mut gateway = Gateway::start(&config(&stage, &reach)).await;
    let session = &opened(&gateway).await;
    let first = gateway.prompt(session, "FAKE:text first").await;
    gateway.until_ended(session, &first).await;
    let thread = thread_of(&gateway, session).await;
    let mut peer = Peer::connect(&server.url).await;
    peer.call("thread/resume", json!({ "threadId": thread, "excludeTurns": true })).await;
    for (round, killed) in [(0, true), (1, false)] {
        // The gateway's run goes on without it, and another client's run begins and ends.
        let run = gateway.prompt(session, "FAKE:long 150 10").await;
        until(&gateway, session, |events| !said(events, Some(&run)).is_empty()).await;
        if killed {
            gateway.kill();
        } else {
            assert!(gateway.stop().await.success());
        }
        turn_over(&mut peer).await;
        let words = format!("theirs-{round}");
        let input = json!([{ "type": "text", "text": format!("FAKE:text {words}"), "text_elements": [] }]);
        peer.call("turn/start", json!({ "threadId": thread, "input": input })).await;
        turn_over(&mut peer).await;
        gateway.again().await;
        let events = gateway.until_ended(session, &run).await;
        assert_eq!((end(&events, &run).as_str(), said(&events, Some(&run))), ("completed", long(150)));
        let events = until(&gateway, session, |events| said(events, None).contains(&words)).await;
        assert_eq!(said(&events, None).matches(&words).count(), 1, "once");
        assert_eq!(said(&events, None).matches("first").count(), 1, "once");
        assert!(!events.iter().any(|event| event["event"]["code"] == "gap"), "all of it: {events:#?}");

        // An open request is the same one.
        let file = stage.work.path().join(format!("asked-{round}"));
        let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
        let request = gateway.open_request(session).await;
        if killed {
            gateway.kill();
        } else {
            assert!(gateway.stop().await.success());
        }
        gateway.again().await;
        let deadline = Instant::now() + PATIENCE;
        while gateway.get(&format!("/v1/sessions/{session}")).await.1["state"] != "waiting" {
            assert!(Instant::now() < deadline, "{:?}", gateway.get(&format!("/v1/sessions/{session}")).await);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(gateway.open_request(session).await["request_id"], request["request_id"]);
        let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
        assert_eq!(status, 200, "{receipt}");
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(end(&events, &run), "completed");
        assert!(file.exists());
        assert_whole(&events);
        turn_over(&mut peer).await;
    }
    let (_, sessions) = gateway.get("/v1/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "one session, whoever opened it: {sessions}");
    assert!(gateway.stop().await.success());
}

const APPROVAL: &str = "item/commandExecution/requestApproval";

async fn their_answer_is_told_as_theirs(gateway: &Gateway, session: &str, peer: &mut Peer, work: &Path) {
    let file = work.join("theirs");
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
    gateway.open_request(session).await;
    let asked = peer.until(APPROVAL).await;
    peer.send(json!({ "id": asked["id"], "result": { "decision": "accept" } })).await;
    peer.until("serverRequest/resolved").await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end(&events, &run), "completed");
    assert!(file.exists());
    let resolved: Vec<_> =
        of_run(&events, &run).into_iter().filter(|event| event["kind"] == "request_resolved").collect();
    assert_eq!(resolved.len(), 1, "{resolved:#?}");
    let body = &resolved[0]["event"];
    assert_eq!(
        (&body["state"], &body["resolved_by"]["device_id"]),
        (&json!("withdrawn"), &json!("elsewhere")),
        "{body}"
    );

    // The other way round: the gateway's answer wins, and the other one has no effect.
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", work.join("ours").display())).await;
    let request = gateway.open_request(session).await;
    let asked = peer.until(APPROVAL).await;
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
    peer.until("serverRequest/resolved").await;
    peer.send(json!({ "id": asked["id"], "result": { "decision": "cancel" } })).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end(&events, &run), "completed");
}

async fn their_turn_is_a_run(gateway: &Gateway, session: &str, thread: &str, peer: &mut Peer) {
    let input = json!([{ "type": "text", "text": "FAKE:long 40 5", "text_elements": [] }]);
    peer.call("turn/start", json!({ "threadId": thread, "input": input })).await;
    let first = |events: &[Value]| {
        let chunk = |event: &&Value| {
            event["kind"] == "user_message_chunk" && event["event"]["content"]["text"] == "FAKE:long 40 5"
        };
        events.iter().find(chunk).map(|event| event["run_id"].as_str().unwrap().to_owned())
    };
    let events = until(gateway, session, |events| first(events).is_some()).await;
    let run = first(&events).unwrap();
    // Prompts wait for it.
    let ours = gateway.prompt(session, "FAKE:text ours").await;
    let events = gateway.until_ended(session, &ours).await;
    assert_eq!((end(&events, &run).as_str(), said(&events, Some(&run))), ("completed", long(40)));
    assert_eq!(said(&events, Some(&ours)), "ours");
    let started = of_run(&events, &run).into_iter().find(|event| event["kind"] == "run_started").unwrap();
    assert_eq!(started["event"]["by"]["device_id"], "elsewhere", "{started}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_shared_with_another_client() {
    let stage = stage().await;
    let mut server = Server::start(&stage, "ws://127.0.0.1:0");
    let mut gateway = Gateway::start(&config(&stage, &format!("connect = {}", json!(server.url)))).await;
    let session = &gateway.session("codex").await;
    let work = stage.work.path();
    text_is_told_once_and_whole(&gateway, session).await;
    let thread = thread_of(&gateway, session).await;
    let mut peer = Peer::connect(&server.url).await;
    peer.call("thread/resume", json!({ "threadId": thread, "excludeTurns": true })).await;
    their_answer_is_told_as_theirs(&gateway, session, &mut peer, work).await;
    their_turn_is_a_run(&gateway, session, &thread, &mut peer).await;

    // A conversation of another client is found and read from its beginning.
    let theirs = peer.call("thread/start", json!({ "cwd": work })).await["thread"]["id"].as_str().unwrap().to_owned();
    let input = json!([{ "type": "text", "text": "FAKE:text found", "text_elements": [] }]);
    peer.call("turn/start", json!({ "threadId": theirs, "input": input })).await;
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        let (_, sessions) = gateway.get("/v1/sessions").await;
        let found =
            sessions["sessions"].as_array().unwrap().iter().find(|one| one["native_id"] == theirs.as_str()).cloned();
        if let Some(found) = found {
            break found["session_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{sessions}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let events = until(&gateway, &found, |events| said(events, None).contains("found")).await;
    assert_eq!(said(&events, None), "found", "once");
    let (_, page) = gateway.get("/v1/runtimes/codex/resumable").await;
    let kept = |native: &str| page["resumable"].as_array().unwrap().iter().find(|one| one["native_id"] == native);
    for (native, id) in [(&thread, session), (&theirs, &found)] {
        let one = kept(native).unwrap_or_else(|| panic!("{native}: {page}"));
        assert!(one["session_id"] == *id && one["title"].is_string() && one["cwd"] == json!(work), "{one}");
    }
    let (status, mcp) = gateway.get(&format!("/v1/sessions/{session}/mcp")).await;
    assert!(status == 200 && mcp["servers"].is_array(), "{mcp}");
    let (status, skills) = gateway.get(&format!("/v1/sessions/{session}/skills")).await;
    let named = |skill: &Value| skill["name"].is_string() && skill["path"].as_str().unwrap().ends_with("/SKILL.md");
    assert!(status == 200 && skills["skills"].as_array().unwrap().iter().all(named), "{skills}");

    // The other client leaves in the middle of a turn, which has no effect.
    let run = gateway.prompt(session, "FAKE:long 60 5").await;
    drop(peer);
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)), long(60));

    // The server restarts: the conversation goes on.
    let url = server.url.clone();
    server.kill();
    let server = Server::start(&stage, &url);
    let deadline = Instant::now() + PATIENCE;
    let run = loop {
        let run = gateway.prompt(session, "FAKE:text again").await;
        let events = gateway.until_ended(session, &run).await;
        if end(&events, &run) == "completed" {
            break run;
        }
        assert!(Instant::now() < deadline, "{:#?}", of_run(&events, &run));
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(thread_of(&gateway, session).await, thread);
    let events = gateway.events(session).await;
    assert_eq!(said(&events, Some(&run)), "again");
    assert_whole(&events);
    drop(server);
    assert!(gateway.stop().await.success());
}

// ---- kills ----------------------------------------------------------------------------------------------------------

/// The message of a run's end.
fn last_word(events: &[Value], run: &str) -> String {
    let ended = of_run(events, run).into_iter().find(|event| event["kind"] == "run_ended").unwrap();
    ended["event"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Another client runs a turn of its own in the thread.
async fn their_turn(url: &str, thread: &str, words: &str) {
    let mut peer = Peer::connect(url).await;
    peer.call("thread/resume", json!({ "threadId": thread, "excludeTurns": true })).await;
    // A turn that begins during another one would interrupt it.
    let deadline = Instant::now() + PATIENCE;
    while peer.call("thread/read", json!({ "threadId": thread })).await["thread"]["status"]["type"] != "idle" {
        assert!(Instant::now() < deadline, "the thread is never idle");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let input = json!([{ "type": "text", "text": format!("FAKE:text {words}"), "text_elements": [] }]);
    let turn = peer.call("turn/start", json!({ "threadId": thread, "input": input })).await["turn"]["id"].clone();
    while peer.until("turn/completed").await["params"]["turn"]["id"] != turn {}
}

/// The gateway is killed during a run, or right after an answer; meanwhile another client runs a turn.
async fn the_gateway_dies(
    round: u64,
    moments: &mut Moments,
    gateway: &mut Gateway,
    (session, thread): (&str, &str),
    server: &Server,
    work: &Path,
) {
    let file = work.join(format!("ran-{round}"));
    let answers = round % 2 == 1;
    let run = if answers {
        let run = gateway.prompt(session, &format!("FAKE:shell echo ran >> {}", file.display())).await;
        let request = gateway.open_request(session).await;
        let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
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
    // A turn that waits for an answer does not end without the gateway.
    let before = !answers && moments.below(2) == 0;
    if before {
        their_turn(&server.url, thread, &words).await;
    }
    gateway.again().await;
    let events = gateway.until_ended(session, &run).await;
    match (end(&events, &run).as_str(), answers) {
        ("completed", true) => {}
        ("completed", false) => {
            assert_eq!(said(&events, Some(&run)), long(60), "round {round}");
        }
        // Killed before the prompt was sent: nothing was run, and the end says so.
        ("error", _) if last_word(&events, &run).contains("before it accepted the prompt") => {
            assert_eq!(said(&events, Some(&run)), "", "round {round}");
        }
        other => panic!("round {round}: {other:?} {:#?}", of_run(&events, &run)),
    }
    if answers {
        let ran = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(ran, "ran\n", "round {round}: an answer that was given is carried, once");
    }
    if !before {
        their_turn(&server.url, thread, &words).await;
    }
    let events = until(gateway, session, |events| said(events, None).contains(&words)).await;
    assert_eq!(said(&events, None).matches(&words).count(), 1, "round {round}");
}

/// The server is killed during a run: its output is there once, the run ends, and the next one runs.
async fn the_server_dies(
    round: u64,
    moments: &mut Moments,
    gateway: &Gateway,
    session: &str,
    server: &mut Server,
    (stage, said_once): (&Stage, &mut Vec<String>),
) {
    let run = gateway.prompt(session, "FAKE:long 60 10").await;
    moments.pass(900).await;
    server.kill();
    let url = server.url.clone();
    moments.pass(200).await;
    *server = Server::start(stage, &url);
    let events = gateway.until_ended(session, &run).await;
    let text = said(&events, Some(&run));
    assert!(long(60).starts_with(&text), "round {round}: in order, and once: {text}");
    let deadline = Instant::now() + PATIENCE;
    for attempt in 0.. {
        let words = format!("after-{round}-{attempt}.");
        let run = gateway.prompt(session, &format!("FAKE:text {words}")).await;
        let events = gateway.until_ended(session, &run).await;
        let text = said(&events, Some(&run));
        said_once.push(words.clone());
        if end(&events, &run) == "completed" {
            assert_eq!(text, words, "round {round}");
            break;
        }
        println!("round {round}: {} {} {text:?}", end(&events, &run), last_word(&events, &run));
        assert!(Instant::now() < deadline, "round {round}: {:#?}", of_run(&events, &run));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_on_either_side_lose_and_repeat_nothing() {
    let (stage, mut moments) = (stage().await, Moments::new());
    let mut server = Server::start(&stage, "ws://127.0.0.1:0");
    let reach = format!("connect = {}\nsession = true", json!(server.url));
    let mut gateway = Gateway::start(&config(&stage, &reach)).await;
    let session = &opened(&gateway).await;
    let first = gateway.prompt(session, "FAKE:text first").await;
    gateway.until_ended(session, &first).await;
    let thread = thread_of(&gateway, session).await;
    let mut said_once = Vec::new();
    for round in 0..kills() {
        let work = stage.work.path();
        the_gateway_dies(round, &mut moments, &mut gateway, (session, &thread), &server, work).await;
        the_server_dies(round, &mut moments, &gateway, session, &mut server, (&stage, &mut said_once)).await;
        assert_eq!(thread_of(&gateway, session).await, thread, "round {round}: it is the same conversation");
    }
    let events = gateway.events(session).await;
    assert_whole(&events);
    let text = said(&events, None);
    for words in (0..kills()).map(|round| format!("theirs-{round}.")) {
        assert_eq!(text.matches(&words).count(), 1, "{words}");
    }
    for words in said_once {
        assert!(text.matches(&words).count() <= 1, "{words}");
    }
    println!("{} kills of the gateway and as many of Codex", kills());
    assert!(gateway.stop().await.success());
}
