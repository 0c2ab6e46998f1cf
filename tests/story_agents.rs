//! Real agents (Gemini CLI, OpenCode, codex-acp from npm) against a loopback model, through the real gateway: streamed
//! text, approvals by whoever is first, rejects, cancels, late joiners.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::{Gateway, assert_whole, runtime, said};
use futures_util::future::join_all;
use serde_json::{Value, json};

struct Stage {
    gateway: Gateway,
    session: String,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
    _model: FakeModel,
}

/// A gateway with one real agent attached, and a session in a folder of its own.
async fn stage(id: &str, setup: fn(&Path, &Path, u16) -> AgentSetup) -> Stage {
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    // Not below /tmp's root by a name that an agent could call temporary: codex warns of that.
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let setup = setup(&install, home.path(), model.port());
    let env: serde_json::Map<String, Value> = setup.env.into_iter().map(|(k, v)| (k, v.into())).collect();
    let env = env.iter().map(|(k, v)| format!("{k} = {v}")).collect::<Vec<_>>().join(", ");
    let auth = setup.auth_method.map(|method| format!("auth_method = {}\n", json!(method))).unwrap_or_default();
    let more = format!("{auth}cwd = {}\nenv = {{ {env} }}", json!(work.path()));
    let command: Vec<&str> = setup.command.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&runtime(id, &command, &more)).await;
    let session = gateway.session(id).await;
    Stage { gateway, session, work, _home: home, _model: model }
}

/// The words of `FAKE:long N`, as the model says them.
fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

async fn streamed_text_is_the_same_for_everybody(stage: &Stage) {
    let Stage { gateway, session, .. } = stage;
    let mut ws = gateway.ws().await;
    ws.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    let mut sse = gateway.sse(&format!("/v1/sessions/{session}/events?after=now"), None).await;
    assert_eq!(sse.next().await.unwrap().event, "hello");
    let run = gateway.prompt(session, "FAKE:long 300 1").await;
    let (by_ws, by_sse, by_poll) =
        tokio::join!(ws.until_ended(&run), sse.until_ended(&run), gateway.until_ended(session, &run));
    let of_run = |events: &[Value]| -> Vec<Value> {
        events.iter().filter(|event| event["run_id"] == run.as_str()).cloned().collect()
    };
    assert_eq!(said(&by_ws, Some(&run)), long(300));
    assert_eq!(of_run(&by_ws), of_run(&by_sse));
    assert_eq!(of_run(&by_ws), of_run(&by_poll));
    assert_whole(&by_poll);
}

async fn three_answer_at_once_and_the_agent_runs_it_once(stage: &Stage) {
    let Stage { gateway, session, work, .. } = stage;
    let log = work.path().join("ran");
    let run = gateway.prompt(session, &format!("FAKE:shell echo ran >> {}", log.display())).await;
    let request = gateway.open_request(session).await;
    assert!(request["display"].as_str().unwrap().contains("echo ran >>"), "{request}");
    let option = Gateway::option(&request, "allow_once");
    let outcomes = join_all((0..3).map(|_| gateway.choose(&request, &option))).await;
    let won: Vec<_> = outcomes.iter().filter(|(status, _)| *status == 200).collect();
    assert_eq!(won.len(), 1, "{outcomes:?}");
    for (status, lost) in outcomes.iter().filter(|(status, _)| *status != 200) {
        assert_eq!((*status, &lost["cursor"]), (409, &won[0].1["cursor"]), "{lost}");
    }
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n", "it ran once");
    let resolved = events.iter().filter(|event| event["kind"] == "request_resolved").count();
    assert_eq!(resolved, 1);
    assert_eq!(events.last().unwrap()["event"]["status"], "completed", "{:?}", events.last());
}

async fn a_reject_is_a_reject(stage: &Stage) {
    let Stage { gateway, session, work, .. } = stage;
    let file = work.path().join("rejected");
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
    let request = gateway.open_request(session).await;
    // codex-acp's only "no" also ends the turn; it calls it a reject all the same.
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!((status, &receipt["ok"]), (200, &json!(false)), "{receipt}");
    let events = gateway.until_ended(session, &run).await;
    assert!(!file.exists(), "a rejected command did not run");
    let of_run: Vec<&Value> = events.iter().filter(|event| event["run_id"] == run.as_str()).collect();
    // Whatever the agent left open is closed: the last word on every tool call is an end.
    let mut tools = std::collections::BTreeMap::new();
    for event in of_run.iter().filter(|event| event["kind"] == "tool_call" || event["kind"] == "tool_call_update") {
        if let Some(status) = event["event"]["status"].as_str() {
            tools.insert(event["event"]["toolCallId"].to_string(), status.to_owned());
        }
    }
    assert!(!tools.is_empty());
    assert!(tools.values().all(|status| status == "failed" || status == "completed"), "{tools:?}");
}

async fn a_cancel_with_the_question_open_ends_the_run(stage: &Stage) {
    let Stage { gateway, session, work, .. } = stage;
    let file = work.path().join("cancelled");
    let run = gateway.prompt(session, &format!("FAKE:shell touch {}", file.display())).await;
    let request = gateway.open_request(session).await;
    let (status, body) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert!(status == 200 || status == 202, "{status} {body}");
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(events.last().unwrap()["event"]["status"], "cancelled", "{:?}", events.last());
    assert!(!file.exists());
    let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &late["state"]), (410, &json!("withdrawn")), "{late}");
    // The session is not wedged: it takes the next prompt.
    let run = gateway.prompt(session, "FAKE:text still here").await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)).trim(), "still here");
}

async fn a_late_joiner_ends_with_the_same_text(stage: &Stage) {
    let Stage { gateway, session, .. } = stage;
    let run = gateway.prompt(session, "FAKE:long 400 5").await;
    // In the middle of the message.
    let mut after = String::new();
    let mut chunks = 0;
    while chunks < 50 {
        let (_, page) = gateway.get(&format!("/v1/sessions/{session}/events?after={after}&wait=5")).await;
        after = page["next"].as_str().unwrap().to_owned();
        let events = page["events"].as_array().unwrap();
        chunks += events
            .iter()
            .filter(|event| event["kind"] == "agent_message_chunk" && event["run_id"] == run.as_str())
            .count();
    }
    let (status, snapshot) = gateway.get(&format!("/v1/sessions/{session}/snapshot")).await;
    assert_eq!(status, 200, "{snapshot}");
    let messages = snapshot["messages"].as_array().unwrap();
    let so_far: String = messages
        .iter()
        .filter(|message| message["role"] == "agent" && message["run_id"] == run.as_str())
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert!(so_far.starts_with("chunk-0001 ") && long(400).starts_with(&so_far), "{so_far}");
    assert!(messages.last().unwrap()["partial"] == true || so_far == long(400));
    let mut late = gateway.ws().await;
    late.call("session.attach", json!({ "session_id": session, "after": snapshot["cursor"] })).await.unwrap();
    let rest = late.until_ended(&run).await;
    assert_eq!(so_far + &said(&rest, Some(&run)), long(400), "snapshot and what follows make the whole");
}

async fn two_prompts_at_once_are_two_runs(stage: &Stage) {
    let Stage { gateway, session, .. } = stage;
    let one = gateway.prompt(session, "FAKE:long 60 5").await;
    let two = gateway.prompt(session, "FAKE:text second").await;
    let events = gateway.until_ended(session, &two).await;
    assert_eq!(said(&events, Some(&one)), long(60), "the first is not cancelled by the second");
    assert_eq!(said(&events, Some(&two)).trim(), "second");
}

async fn play(id: &str, setup: fn(&Path, &Path, u16) -> AgentSetup) {
    let mut stage = stage(id, setup).await;
    streamed_text_is_the_same_for_everybody(&stage).await;
    three_answer_at_once_and_the_agent_runs_it_once(&stage).await;
    a_reject_is_a_reject(&stage).await;
    a_cancel_with_the_question_open_ends_the_run(&stage).await;
    a_late_joiner_ends_with_the_same_text(&stage).await;
    two_prompts_at_once_are_two_runs(&stage).await;
    assert_whole(&stage.gateway.events(&stage.session).await);
    assert!(stage.gateway.stop().await.success());
    println!("{id}: stream, approve, reject, cancel, late joiner, queue");
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
