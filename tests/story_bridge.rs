//! Prompts that are said twice and run once, and editors that speak to the gateway through `plexus bridge acp`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use serde_json::{Value, json};

use common::gateway::{Gateway, assert_whole, exe, held_runtime, said};

/// The demo agent, which outlives its gateways.
fn held() -> String {
    held_runtime("demo", &[exe(), "agent", "demo"], "")
}

/// Prompts over HTTP under a key; `None` if the gateway did not live to answer.
async fn prompt_once(gateway: &Gateway, session: &str, text: &str, key: &str) -> Option<(u16, Value)> {
    let request = gateway.request("POST", &format!("/v1/sessions/{session}/prompt")).header("Idempotency-Key", key);
    let answer = request.json(&json!({ "text": text })).send().await.ok()?;
    Some((answer.status().as_u16(), answer.json().await.ok()?))
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

#[tokio::test]
async fn a_prompt_under_a_key_is_run_once_whatever_becomes_of_the_gateway() {
    let mut gateway = Gateway::start(&held()).await;
    let session = gateway.session("demo").await;
    let (status, first) = prompt_once(&gateway, &session, "stream 60 20", "k1").await.unwrap();
    assert_eq!((status, &first["queued"]), (202, &json!(false)));
    let (_, waits) = prompt_once(&gateway, &session, "echo second", "k2").await.unwrap();
    assert_eq!(waits["queued"], true);
    gateway.kill();
    gateway.again().await;
    // One goes on in its agent, the other still waits.
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
    // Over, and known: on the other transport too, which has keys of the same device.
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
async fn a_prompt_that_nobody_heard_the_answer_of_is_said_again_and_run_once() {
    let mut gateway = Gateway::start(&held()).await;
    let session = gateway.session("demo").await;
    for (round, pause) in [0u64, 1, 2, 4, 8, 16].into_iter().enumerate() {
        let (text, key) = (format!("echo round {round}"), format!("round-{round}"));
        let request =
            gateway.request("POST", &format!("/v1/sessions/{session}/prompt")).header("Idempotency-Key", &key);
        let asked = tokio::spawn(request.json(&json!({ "text": text })).send());
        // Not to wait for anything: to kill it at one instant or another.
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
async fn a_key_is_known_when_the_agent_is_gone() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let (_, first) = prompt_once(&gateway, &session, "hang", "k1").await.unwrap();
    gateway.kill();
    gateway.again().await;
    let (status, again) = prompt_once(&gateway, &session, "hang", "k1").await.unwrap();
    assert_eq!((status, &again["run_id"]), (202, &first["run_id"]));
    assert_eq!(again["ended"]["status"], "error", "its agent went with the gateway: {again}");
}
