//! The usage that real agents report, with the loopback model: each of its replies is 100 tokens read and 10 written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::Gateway;
use serde_json::{Value, json};

fn config(name: &str, dialect: &str, setup: &AgentSetup, work: &Path) -> String {
    let env: Vec<String> = setup.env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let auth = setup.auth_method.as_ref().map(|method| format!("auth_method = {}\n", json!(method)));
    format!(
        "[[runtime]]\nid = \"{name}\"\ndialect = \"{dialect}\"\ncommand = {}\ncwd = {}\nenv = {{ {} }}\n{}",
        json!(setup.command),
        json!(work),
        env.join(", "),
        auth.unwrap_or_default()
    )
}

async fn calls_of(gateway: &Gateway, session: &str, prompt: &str) -> u64 {
    let run = gateway.prompt(session, prompt).await;
    let events = tokio::select! {
        events = gateway.until_ended(session, &run) => events,
        () = always_allow(gateway, session) => unreachable!(),
    };
    let end = events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == run).unwrap();
    let usage: &Value = &end["event"]["usage"];
    let (input, output) = (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap());
    assert_eq!((input % 100, output * 10), (0, input), "{end}");
    input / 100
}

async fn always_allow(gateway: &Gateway, session: &str) {
    loop {
        let request = gateway.open_request(session).await;
        gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    }
}

/// Two prompts, of which the second calls a tool: three model calls.
async fn tells(name: &str, dialect: &str, setup: fn(&Path, &Path, u16) -> AgentSetup) {
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let setup = setup(&install, home.path(), model.port());
    let gateway = Gateway::start(&config(name, dialect, &setup, work.path())).await;
    let session = gateway.session(name).await;
    assert_eq!(calls_of(&gateway, &session, "FAKE:text").await, 1);
    assert_eq!(calls_of(&gateway, &session, "FAKE:shell touch x").await, 2);
    let (_, sums) = gateway.get("/v1/usage?by=session").await;
    assert_eq!((&sums["total"]["input_tokens"], &sums["total"]["output_tokens"]), (&json!(300), &json!(30)), "{sums}");
    assert_eq!(sums["rows"][0]["session_id"], json!(session), "{sums}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_of_codex_is_what_its_model_told() {
    tells("codex", "codex", agents::codex_app).await;
}
