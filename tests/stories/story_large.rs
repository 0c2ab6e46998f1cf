//! Single values of tens of megabytes: the session stays open to every client, and is exported whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::gateway::Gateway;
use serde_json::{Value, json};

/// Length of the large value, in bytes.
const LARGE: usize = 20 << 20;

/// A session in which an agent sent these updates.
async fn session_with(gateway: &Gateway, updates: &[Value]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.ndjson");
    let lines: Vec<String> = updates.iter().map(Value::to_string).collect();
    std::fs::write(&script, lines.join("\n")).unwrap();
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, &format!("script {}", script.display())).await;
    gateway.until_ended(&session, &run).await;
    session
}

fn says(id: &str, text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": { "type": "text", "text": text } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_message_is_exported_in_every_form() {
    let gateway = Gateway::demo().await;
    let updates = [says("m1", &"word ".repeat(LARGE / 5)), says("m2", "the-last-words")];
    let session = session_with(&gateway, &updates).await;
    for format in ["ndjson", "md", "html"] {
        let path = format!("/v1/sessions/{session}/export?format={format}");
        let text = gateway.request("GET", &path).send().await.unwrap().text().await.unwrap();
        assert!(text.len() > LARGE && text.contains("the-last-words"), "{format}: {} bytes", text.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_plan_locks_nobody_out_of_its_session() {
    let gateway = Gateway::demo().await;
    let entry = |text: &str| json!({ "content": text, "priority": "medium", "status": "pending" });
    let plan = json!({ "sessionUpdate": "plan", "entries": [entry(&"x".repeat(LARGE))] });
    let session = session_with(&gateway, &[plan, says("m1", "the-last-words")]).await;
    let (status, snapshot) = gateway.get(&format!("/v1/sessions/{session}/snapshot?max_bytes=1000")).await;
    assert_eq!(status, 200, "{snapshot}");
    let text = snapshot.to_string();
    assert!(text.len() < 64 << 10 && text.contains("the-last-words"), "{} bytes", text.len());
    let left_out = &snapshot["latest"]["plan"]["_meta"]["plexus"];
    assert!(left_out["left_out"].as_u64().unwrap() >= LARGE as u64, "{left_out}");
    let plan = format!("/v1/sessions/{session}/events?before={}", snapshot["cursor"].as_str().unwrap());
    assert_eq!(gateway.request("GET", &plan).send().await.unwrap().status(), 200, "the event has all of it");
}
