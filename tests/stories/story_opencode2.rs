//! OpenCode 2, attached by its address: a fake of its server made from the schema in its repository, since no registry has a
//! package of it. The test's own HTTP client plays OpenCode's other clients.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use crate::common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::story_record::{assert_replayed, recordings, replay};
use common::gateway::{Gateway, PATIENCE, assert_whole, said};
use common::moments::{Moments, kills};
use serde_json::{Value, json};

const PASSWORD: &str = "open sesame";

/// The fake server, and another client of it.
struct Server {
    child: Child,
    port: u16,
    work: tempfile::TempDir,
    http: reqwest::Client,
}

impl Server {
    async fn start() -> Self {
        let work = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = run(port, work.path());
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let server = Self { child, port, work, http };
        server.up().await;
        server
    }

    async fn up(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.send("GET", "/api/health", Value::Null).await.0 != 200 {
            assert!(Instant::now() < deadline, "the double did not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn again(&mut self) {
        self.child = run(self.port, self.work.path());
        self.up().await;
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.http.request(method.parse().unwrap(), url).basic_auth("opencode", Some(PASSWORD));
        let Ok(response) = request.json(&body).send().await else { return (0, Value::Null) };
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default())
    }

    async fn prompt(&self, native: &str, text: &str) {
        let (status, body) = self.send("POST", &format!("/api/session/{native}/prompt"), json!({ "text": text })).await;
        assert_eq!(status, 200, "{body}");
    }

    fn config(&self, dialect: &str, secret: &str) -> String {
        format!(
            "[[runtime]]\nid = \"oc\"\ndialect = \"{dialect}\"\nconnect = \"http://127.0.0.1:{}\"\ncwd = {}\nsecret = {}\n",
            self.port,
            json!(self.work.path()),
            json!(secret),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(port: u16, work: &Path) -> Child {
    let double = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/opencode2.mjs");
    Command::new("node")
        .arg(double)
        .args(["--port", &port.to_string(), "--password", PASSWORD, "--state"])
        .arg(work.join("state.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn slow(words: usize) -> String {
    (0..words).map(|word| format!("word-{word} ")).collect()
}

async fn native(gateway: &Gateway, session: &str) -> String {
    gateway.get(&format!("/v1/sessions/{session}")).await.1["native_id"].as_str().unwrap().to_owned()
}

/// The end of a run: its status and message.
fn end_of(events: &[Value], run: &str) -> (String, String) {
    let ended = events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == run).unwrap();
    let word = |name: &str| ended["event"][name].as_str().unwrap_or_default().to_owned();
    (word("status"), word("message"))
}

/// Waits until the session's events satisfy `wanted`; returns them.
async fn until(gateway: &Gateway, session: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        if events.iter().any(&wanted) {
            return events;
        }
        assert!(Instant::now() < deadline, "it did not happen: {:?}", events.iter().rev().take(3).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode2_prompts_requests_and_other_clients() {
    let server = Server::start().await;
    let gateway = Gateway::start(&server.config("opencode2", PASSWORD)).await;
    let session = &gateway.session("oc").await;
    let native = native(&gateway, session).await;

    let run = gateway.prompt(session, "slow 30").await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)), slow(30));
    assert_eq!(end_of(&events, &run).0, "completed");
    assert!(events.iter().filter(|event| event["kind"] == "agent_message_chunk").count() > 10, "it streams");

    // A permission shows the command; allowing runs it, and denying does not.
    for (option, file) in [("once", "yes"), ("reject", "no")] {
        let run = gateway.prompt(session, &format!("run touch {file}")).await;
        let asked = gateway.open_request(session).await;
        assert!(asked["display"].as_str().unwrap().contains(&format!("touch {file}")), "{asked}");
        assert_eq!(gateway.choose(&asked, option).await.0, 200);
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(server.work.path().join(file).exists(), option == "once");
        assert_whole(&events);
    }

    // A form.
    let run = gateway.prompt(session, "ask").await;
    let asked = gateway.open_request(session).await;
    let id = asked["request_id"].as_str().unwrap();
    let (_, whole) = gateway.get(&format!("/v1/requests/{id}")).await;
    let question = whole["subject"]["questions"][0]["id"].as_str().unwrap_or_else(|| panic!("{whole}")).to_owned();
    let answer = json!({ "answers": { question: ["green"] } });
    let (status, body) = gateway.post(&format!("/v1/requests/{id}/answer"), answer).await;
    assert_eq!(status, 200, "{body}");
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)), r#"You said {"colour":"green"}."#);

    // A cancel with an open request, and a failure with its own message.
    let run = gateway.prompt(session, "run touch stopped").await;
    gateway.open_request(session).await;
    gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end_of(&events, &run).0, "cancelled");
    assert!(!server.work.path().join("stopped").exists());
    let run = gateway.prompt(session, "fail").await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(end_of(&events, &run), ("error".into(), "the key is wrong".into()));

    // A prompt of another client is a run of its own; its answers are reported.
    server.prompt(&native, "run touch theirs").await;
    let asked = gateway.open_request(session).await;
    let permission = asked["native"]["id"].as_str().unwrap();
    let path = format!("/api/session/{native}/permission/{permission}/reply");
    assert_eq!(server.send("POST", &path, json!({ "reply": "once" })).await.0, 204);
    let resolved =
        |event: &Value| event["kind"] == "request_resolved" && event["event"]["request_id"] == asked["request_id"];
    let events = until(&gateway, session, resolved).await;
    let event = events.iter().find(|event| resolved(event)).unwrap();
    assert_eq!(event["event"]["resolved_by"]["name"], "another client of OpenCode", "{event}");
    assert!(events.iter().any(|event| event["event"]["by"]["name"] == "another client of OpenCode"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode2_events_are_reported_once_across_kills() {
    let (mut server, mut moments) = (Server::start().await, Moments::new());
    let mut gateway = Gateway::start(&server.config("opencode2", PASSWORD)).await;
    let session = &gateway.session("oc").await;
    let native = native(&gateway, session).await;
    for round in 0..kills() {
        // The gateway is killed in the middle of work; meanwhile another client prompts.
        let run = gateway.prompt(session, "slow 40").await;
        moments.pass(500).await;
        gateway.kill();
        let theirs = format!("theirs-{round}.");
        server.prompt(&native, &format!("say {theirs}")).await;
        moments.pass(500).await;
        gateway.again().await;
        let events = gateway.until_ended(session, &run).await;
        let (status, why) = end_of(&events, &run);
        let text = said(&events, Some(&run));
        match status.as_str() {
            "completed" => assert!(text.starts_with(&slow(40)), "round {round}: {text}"),
            _ => {
                assert!(why.contains("before OpenCode accepted the prompt") && text.is_empty(), "round {round}: {why}")
            }
        }
        let told = |event: &Value| event["event"]["content"]["text"] == theirs.as_str();
        until(&gateway, session, |event| event["kind"] == "agent_message_chunk" && told(event)).await;

        // An open request and its answer survive it.
        let run = gateway.prompt(session, &format!("run echo ran >> {round}")).await;
        let asked = gateway.open_request(session).await;
        gateway.kill();
        gateway.again().await;
        let (status, body) = gateway.choose(&asked, "once").await;
        assert_eq!(status, 200, "round {round}: {body}");
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(end_of(&events, &run).0, "completed", "round {round}");
        assert_eq!(std::fs::read_to_string(server.work.path().join(round.to_string())).unwrap(), "ran\n");

        // The server is killed in the middle of a run: the run ends, and the next one runs.
        let run = gateway.prompt(session, "slow 40").await;
        moments.pass(500).await;
        server.kill();
        moments.pass(200).await;
        server.again().await;
        let events = gateway.until_ended(session, &run).await;
        let text = said(&events, Some(&run));
        assert!(slow(40).starts_with(&text), "round {round}: in order, and once: {text}");
        let run = gateway.prompt(session, &format!("say after-{round}.")).await;
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(said(&events, Some(&run)), format!("after-{round}."), "{:?}", end_of(&events, &run));
    }
    let events = gateway.events(session).await;
    assert_whole(&events);
    let text = said(&events, None);
    for words in (0..kills()).flat_map(|round| [format!("theirs-{round}."), format!("after-{round}.")]) {
        assert_eq!(text.matches(&words).count(), 1, "{words}");
    }
    eprintln!("{} kills of the gateway and {} of OpenCode 2", 2 * kills(), kills());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode2_wrong_dialect_or_password_says_what_to_set() {
    let server = Server::start().await;
    for (dialect, secret, words) in
        [("opencode", PASSWORD, "set the runtime's `dialect` to \"opencode2\""), ("opencode2", "shut sesame", "secret")]
    {
        let gateway = Gateway::start(&server.config(dialect, secret)).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, list) = gateway.get("/v1/runtimes").await;
            let problem = list["runtimes"][0]["problem"].as_str().unwrap_or_default();
            if problem.contains(words) {
                break;
            }
            assert!(Instant::now() < deadline, "{list}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn opencode2_recording_omits_the_secret_and_replays() {
    let server = Server::start().await;
    let (dir, records) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = [("PLEXUS_RECORD", records.path().to_str().unwrap())];
    let mut gateway = Gateway::start_with(dir, &server.config("opencode2", PASSWORD), &record).await;
    let session = gateway.session("oc").await;
    let run = gateway.prompt(&session, &format!("text the password is {PASSWORD}")).await;
    gateway.until_ended(&session, &run).await;
    let events = gateway.events(&session).await;
    gateway.stop().await;

    let recorded = recordings(records.path());
    let [(file, text)] = &recorded[..] else { panic!("{recorded:?}") };
    assert!(!text.contains(PASSWORD) && text.contains("the password is •••1"), "{text}");
    let replayed = replay(file);
    assert_replayed(&replayed, &events, |text| text.replace(PASSWORD, "•••1"));
    assert!(replayed.iter().any(|line| line["dir"] == "reply"), "its HTTP replies are there");
}
