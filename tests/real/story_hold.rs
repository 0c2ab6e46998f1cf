//! The gateway is killed at random moments while holders keep real agents running. Every run completes, the log has no gap and no
//! repeat, and an approval is open again, is answered, and its command runs once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::Path;
use std::time::Duration;

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::{Gateway, PATIENCE, alive, assert_whole, exe, held_runtime, said};
use common::moments::rounds;
use serde_json::{Value, json};

/// The model's text for `FAKE:long N`.
fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

/// An instant of a round, the same in every run of the test.
fn instant(round: u64) -> Duration {
    Duration::from_millis((round * 7919 + 13) % 700)
}

async fn kill_and_come_back(gateway: &mut Gateway, agent: u32) {
    gateway.kill();
    assert!(alive(agent), "the agent does not notice");
    gateway.again().await;
}

/// Waits until the only runtime is ready.
async fn ready(gateway: &Gateway) -> Value {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let (_, body) = gateway.get("/v1/runtimes").await;
        let runtime = body["runtimes"][0].clone();
        if runtime["state"] == "ready" {
            return runtime;
        }
        assert!(std::time::Instant::now() < deadline, "{body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn play(id: &str, setup: fn(&Path, &Path, u16) -> AgentSetup) {
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    // Under each of three agents: fifty-one in full.
    let total = rounds("kills or more", 6, 17);
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let setup = setup(&install, home.path(), model.port());
    let env = setup.env.iter().map(|(k, v)| format!("{k} = {}", json!(v))).collect::<Vec<_>>().join(", ");
    let auth = setup.auth_method.map(|method| format!("auth_method = {}\n", json!(method))).unwrap_or_default();
    let more = format!("{auth}cwd = {}\nenv = {{ {env} }}", json!(work.path()));
    let command: Vec<&str> = setup.command.iter().map(String::as_str).collect();
    let mut gateway = Gateway::start(&held_runtime(id, &command, &more)).await;
    let session = gateway.session(id).await;
    let agent = u32::try_from(ready(&gateway).await["pid"].as_u64().unwrap()).unwrap();
    let ran = work.path().join("ran");
    let (mut with_approval, mut prompts) = (0, Vec::new());
    for round in 0..total {
        let streamed = gateway.prompt(&session, "FAKE:long 60 5").await;
        let asks = gateway.prompt(&session, &format!("FAKE:shell echo {round} >> {}", ran.display())).await;
        if round % 3 == 2 {
            // With the approval open.
            let request = gateway.open_request(&session).await;
            kill_and_come_back(&mut gateway, agent).await;
            let again = gateway.open_request(&session).await;
            assert_eq!(again["request_id"], request["request_id"], "it is the same request");
            with_approval += 1;
        } else {
            tokio::time::sleep(instant(round)).await;
            kill_and_come_back(&mut gateway, agent).await;
        }
        let request = gateway.open_request(&session).await;
        let option = Gateway::option(&request, "allow_once");
        let (status, receipt) = gateway.choose(&request, &option).await;
        assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
        if round % 4 == 3 {
            // With the answer on its way, or just there.
            kill_and_come_back(&mut gateway, agent).await;
        }
        gateway.until_ended(&session, &asks).await;
        prompts.push((streamed, asks));
    }
    let events = gateway.events(&session).await;
    assert_whole(&events);
    for (streamed, asks) in &prompts {
        assert_eq!(said(&events, Some(streamed)), long(60), "{streamed}");
        let ended = |run: &str| {
            let ends: Vec<_> = events.iter().filter(|e| e["kind"] == "run_ended" && e["run_id"] == run).collect();
            assert_eq!(ends.len(), 1, "{run} ended once");
            ends[0]["event"]["status"].clone()
        };
        assert_eq!((ended(streamed), ended(asks)), (json!("completed"), json!("completed")));
    }
    let lines: Vec<u64> = std::fs::read_to_string(&ran).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(lines, (0..total).collect::<Vec<_>>(), "each command ran once");
    // A notification of the agent's own (`_auth/status_update`) is kept as it came; anything else raw would be a broken line.
    let own =
        |event: &Value| event["event"]["message"]["method"].as_str().is_some_and(|method| method.starts_with('_'));
    let broken: Vec<_> = events.iter().filter(|event| event["kind"] == "raw" && !own(event)).collect();
    assert!(broken.is_empty(), "nothing came that made no sense: {broken:?}");
    // Holders end with their runtime.
    let (status, _) = gateway.delete(&format!("/v1/runtimes/{id}")).await;
    assert!(status == 200 || status == 204, "{status}");
    assert!(!alive(agent));
    // The holder ends by itself once all its output is acknowledged.
    let deadline = std::time::Instant::now() + PATIENCE;
    while std::fs::read_dir(gateway.home.join("holders")).unwrap().count() > 0 {
        assert!(std::time::Instant::now() < deadline, "something is left of the holder");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(gateway.stop().await.success());
    println!("{id}: {total} rounds, {with_approval} of them killed with an approval open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini() {
    play("gemini", agents::gemini).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode() {
    play("opencode", agents::opencode).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex() {
    play("codex", agents::codex_acp).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_keeps_output_while_there_is_no_gateway() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    let agent = u32::try_from(ready(&gateway).await["pid"].as_u64().unwrap()).unwrap();
    // The agent ends its run and itself without a gateway.
    let run = gateway.prompt(&session, "stream 2000 1 ;; crash").await;
    // A prompt that was accepted and not sent yet waits for the next gateway; this test needs it sent.
    let mut events = gateway.sse(&format!("/v1/sessions/{session}/events"), None).await;
    while events.next().await.unwrap().event != "agent_message_chunk" {}
    gateway.kill();
    let deadline = std::time::Instant::now() + PATIENCE;
    while alive(agent) {
        assert!(std::time::Instant::now() < deadline, "the agent did not get to its end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.again().await;
    let events = gateway.until_ended(&session, &run).await;
    assert_whole(&events);
    let chunks = events.iter().filter(|event| event["kind"] == "agent_message_chunk").count();
    assert!(chunks >= 2000, "{chunks} of 2000");
    let ended = events.iter().find(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(ended["event"]["status"], "error", "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_outlives_a_stopped_gateway_and_ends_with_plexus_stop() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    let agent = u32::try_from(ready(&gateway).await["pid"].as_u64().unwrap()).unwrap();
    let run = gateway.prompt(&session, "stream 10 1 ;; ask ;; stream 10 1").await;
    let request = gateway.open_request(&session).await;
    assert!(gateway.stop().await.success());
    assert!(alive(agent));
    gateway.again().await;
    let (status, _) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!(status, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert_whole(&events);
    assert_eq!(events.iter().filter(|event| event["event"]["status"] == "reattached").count(), 1);

    // A runtime can be stopped without a gateway too.
    assert!(gateway.stop().await.success());
    let stopped = std::process::Command::new(exe()).args(["stop", "demo"]).env("PLEXUS_HOME", &gateway.home).output();
    let stopped = stopped.unwrap();
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert!(!alive(agent));
    gateway.again().await;
    // The session gets the end of its agent, from the holder or from the file that it left.
    let ended = |event: &serde_json::Value| event["kind"] == "runtime_status" && event["event"]["status"] == "exited";
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !gateway.events(&session).await.iter().any(ended) {
        assert!(std::time::Instant::now() < deadline, "the session was not told that its agent ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The configuration started another agent; the conversation goes on there, if the agent supports it.
    while ready(&gateway).await["pid"] == agent {
        assert!(std::time::Instant::now() < deadline, "no other agent was started");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let run = gateway.prompt(&session, "echo still here").await;
    assert!(said(&gateway.until_ended(&session, &run).await, Some(&run)).contains("still here"));
}
