//! Many sessions and prompts at once, with an agent that has many models: nothing is lost, no session is considered dead, and a
//! gateway killed in the middle goes on with all of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, held_runtime, said};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};

/// The configuration of the agent with this many models.
fn config(models: usize, more: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/models_agent.py");
    let env = format!("env = {{ MODELS = \"{models}\"{more} }}");
    held_runtime("many", &["python3", script.to_str().unwrap()], &env)
}

/// Waits until the only runtime is ready.
async fn runtime(gateway: &Gateway) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, body) = gateway.get("/v1/runtimes").await;
        assert_eq!(body["runtimes"].as_array().unwrap().len(), 1, "{body}");
        let runtime = body["runtimes"][0].clone();
        if runtime["state"] == "ready" {
            return runtime;
        }
        assert!(Instant::now() < deadline, "{runtime}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn pid(runtime: &Value) -> u32 {
    u32::try_from(runtime["pid"].as_u64().unwrap()).unwrap()
}

async fn states(gateway: &Gateway) -> Vec<String> {
    let mut states = Vec::new();
    let mut path = "/v1/sessions".to_owned();
    loop {
        let (status, body) = gateway.get(&path).await;
        assert_eq!(status, 200, "{body}");
        let page = body["sessions"].as_array().unwrap();
        states.extend(page.iter().map(|one| one["state"].as_str().unwrap().to_owned()));
        match body["next"].as_str() {
            Some(next) => path = format!("/v1/sessions?cursor={next}"),
            None => return states,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_sixty_prompts_to_an_agent_with_300_models() {
    let mut gateway = Gateway::start(&config(300, "")).await;
    let before = runtime(&gateway).await;
    let sessions: Vec<String> =
        stream::iter(0..60).map(|_| gateway.session("many")).buffer_unordered(16).collect().await;
    for round in 0..5 {
        let text = format!("round {round}");
        let runs: Vec<(String, String)> = stream::iter(&sessions)
            .map(async |session| (session.clone(), gateway.prompt(session, &text).await))
            .buffer_unordered(60)
            .collect()
            .await;
        for (session, run) in &runs {
            let events = gateway.until_ended(session, run).await;
            assert_eq!(said(&events, Some(run)), text);
        }
    }
    assert_eq!(states(&gateway).await, vec!["idle"; 60]);
    gateway.kill();
    gateway.again().await;
    let after = runtime(&gateway).await;
    assert_eq!((&after["pid"], &after["instance"]), (&before["pid"], &before["instance"]));
    assert_eq!(states(&gateway).await, vec!["idle"; 60]);
    for session in &sessions {
        let run = gateway.prompt(session, "again").await;
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(said(&events, Some(&run)), "again");
        assert_whole(&events);
    }
    gateway.delete("/v1/runtimes/many").await;
    assert!(!alive(pid(&after)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_1700_sessions_opens_and_survives_a_kill() {
    const MANY: usize = 1700;
    let mut gateway = Gateway::start(&config(300, "")).await;
    let before = runtime(&gateway).await;
    let opened: Vec<(u16, Value)> = stream::iter(0..MANY)
        .map(|_| gateway.post("/v1/sessions", json!({ "runtime_id": "many" })))
        .buffer_unordered(256)
        .collect()
        .await;
    for (status, body) in &opened {
        assert!(*status == 200 || *status == 201, "{status} {body}");
    }
    assert_eq!(states(&gateway).await, vec!["idle"; MANY]);
    gateway.kill();
    assert!(alive(pid(&before)), "the agent does not notice");
    gateway.again().await;
    let after = runtime(&gateway).await;
    assert_eq!((&after["pid"], after.get("problem")), (&before["pid"], None));
    assert_eq!(states(&gateway).await, vec!["idle"; MANY]);
    let last = opened.last().unwrap().1["session_id"].as_str().unwrap();
    let run = gateway.prompt(last, "still there").await;
    assert_eq!(said(&gateway.until_ended(last, &run).await, Some(&run)), "still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_256_open_requests_is_cancelled_and_the_agent_lives() {
    let gateway = Gateway::start(&config(0, "")).await;
    let before = runtime(&gateway).await;
    let session = gateway.session("many").await;
    let run = gateway.prompt(&session, "ask 256").await;
    gateway.open_requests(&session, 256).await;
    let (status, body) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert!(status == 200 || status == 202, "{status} {body}");
    gateway.until_ended(&session, &run).await;
    let again = gateway.prompt(&session, "and on").await;
    assert_eq!(said(&gateway.until_ended(&session, &again).await, Some(&again)), "and on");
    assert_eq!(runtime(&gateway).await["pid"], before["pid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_a_thousand_prompts_runs_all() {
    let gateway = Arc::new(Gateway::start(&config(0, "")).await);
    let before = runtime(&gateway).await;
    let sessions: Vec<String> =
        stream::iter(0..200).map(|_| gateway.session("many")).buffer_unordered(32).collect().await;
    let runs: Vec<(String, String)> = stream::iter(0..1000)
        .map(|n| {
            let (gateway, session) = (&gateway, &sessions[n % sessions.len()]);
            async move { (session.clone(), gateway.prompt(session, &format!("prompt {n}")).await) }
        })
        .buffer_unordered(1000)
        .collect()
        .await;
    assert_eq!(runs.len(), 1000);
    for (session, run) in &runs {
        gateway.until_ended(session, run).await;
    }
    assert_eq!(runtime(&gateway).await["pid"], before["pid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folder_longer_than_any_path_is_refused() {
    let gateway = Gateway::start(&config(0, "")).await;
    runtime(&gateway).await;
    let cwd = format!("/{}", "x".repeat(900_000));
    let (status, body) = gateway.post("/v1/sessions", json!({ "runtime_id": "many", "cwd": cwd })).await;
    assert_eq!((status, &body["code"]), (422, &json!("invalid")), "{body}");
    let (status, body) =
        gateway.post("/v1/sessions", json!({ "runtime_id": "many", "native_id": "x".repeat(900_000) })).await;
    assert_eq!((status, &body["code"]), (422, &json!("invalid")), "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_opens_of_one_conversation_ask_the_agent_once() {
    let dir = tempfile::tempdir().unwrap();
    let calls = dir.path().join("calls");
    let gateway = Gateway::start(&config(3, &format!(", CALLS = {}", json!(calls)))).await;
    runtime(&gateway).await;
    let open = json!({ "runtime_id": "many", "native_id": "past-1" });
    let opened: Vec<(u16, Value)> =
        stream::iter(0..12).map(|_| gateway.post("/v1/sessions", open.clone())).buffer_unordered(12).collect().await;
    for (status, body) in &opened {
        assert!(*status == 200 || *status == 201, "{status} {body}");
        assert_eq!(body["session_id"], opened[0].1["session_id"]);
    }
    let calls = std::fs::read_to_string(calls).unwrap();
    let asked = calls.lines().filter(|call| matches!(*call, "session/load" | "session/resume" | "session/new")).count();
    assert_eq!(asked, 1, "{calls}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_never_open_hold_back_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let never = dir.path().join("never");
    let gateway = Gateway::start(&config(0, &format!(", NEVER = {}", json!(never)))).await;
    let before = runtime(&gateway).await;
    let mut sessions = Vec::new();
    for n in 0..20 {
        // More of one kind than are opened at a time.
        let cwd = dir.path().join(if n % 2 == 0 { format!("stuck-{n}") } else { format!("fine-{n}") });
        std::fs::create_dir(&cwd).unwrap();
        let (_, body) = gateway.post("/v1/sessions", json!({ "runtime_id": "many", "cwd": cwd })).await;
        sessions.push(body["session_id"].as_str().unwrap().to_owned());
    }
    std::fs::write(&never, "").unwrap();
    let restart = gateway.request("POST", "/v1/runtimes/many/restart").send().await.unwrap();
    assert!(restart.status().is_success(), "{restart:?}");
    let deadline = Instant::now() + PATIENCE;
    // Until the new agent is ready, the sessions are as the old one left them.
    while runtime(&gateway).await["pid"] == before["pid"]
        || states(&gateway).await.iter().filter(|state| *state == "idle").count() < 10
    {
        assert!(Instant::now() < deadline, "{:?}", states(&gateway).await);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for session in sessions.iter().skip(1).step_by(2) {
        let run = gateway.prompt(session, "hi").await;
        gateway.until_ended(session, &run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_that_stopped_answering_is_reported_silent() {
    let dir = tempfile::tempdir().unwrap();
    let (never, cwd) = (dir.path().join("never"), dir.path().join("stuck"));
    std::fs::create_dir(&cwd).unwrap();
    let mut gateway = Gateway::start(&config(0, &format!(", NEVER = {}", json!(never)))).await;
    runtime(&gateway).await;
    std::fs::write(&never, "").unwrap();
    gateway.kill();
    gateway.again().await;
    runtime(&gateway).await;
    let (status, body) = gateway.post("/v1/sessions", json!({ "runtime_id": "many", "cwd": cwd })).await;
    assert_eq!((status, &body["code"]), (504, &json!("runtime_silent")), "{body}");
    // Others are opened meanwhile.
    gateway.session("many").await;
}
