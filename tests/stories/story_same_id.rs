//! An agent reuses a JSON-RPC id, and the gateway is killed after the decision on the second request under it, before the agent
//! got it: the agent gets that decision, and never the one on the first.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, held_runtime};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// More bytes than a socket holds, so that later data waits in the gateway while the agent does not read.
const FILLS_A_SOCKET: usize = 4 << 20;

fn parent_of(pid: u64) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    Pid::from_raw(parent).unwrap()
}

/// The open request other than `last`.
async fn asked(gateway: &Gateway, session: &str, last: &Value) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let request = gateway.open_request(session).await;
        if request["request_id"] != last["request_id"] {
            return request;
        }
        assert!(Instant::now() < deadline, "{request}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn play(first: &str, second: &str) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("heard");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/same_id.mjs");
    let command = ["node", script.to_str().unwrap(), log.to_str().unwrap()];
    let mut gateway = Gateway::start(&held_runtime("same", &command, "")).await;
    let (session, other) = (gateway.session("same").await, gateway.session("same").await);
    let run = gateway.prompt(&session, "ask").await;
    let one = gateway.open_request(&session).await;
    assert_eq!(gateway.choose(&one, first).await.0, 200);
    let two = asked(&gateway, &session, &one).await;
    let (_, runtimes) = gateway.get("/v1/runtimes").await;
    let agent = runtimes["runtimes"][0]["pid"].as_u64().unwrap();
    // The agent does not read any more: the decision is stored, but not delivered.
    let holder = parent_of(agent);
    kill_process(holder, Signal::STOP).unwrap();
    gateway.prompt(&other, &"x".repeat(FILLS_A_SOCKET)).await;
    let (status, receipt) = gateway.choose(&two, second).await;
    assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
    gateway.kill();
    kill_process(holder, Signal::CONT).unwrap();
    assert!(alive(u32::try_from(agent).unwrap()), "the agent does not notice");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), format!("q1 {first}\n"), "it has not heard of the second");
    gateway.again().await;
    assert_whole(&gateway.until_ended(&session, &run).await);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), format!("q1 {first}\nq2 {second}\n"));
    assert!(gateway.stop().await.success());
    common::gateway::end_runtimes(&gateway.home);
}

#[tokio::test]
async fn same_id_allowed_and_then_rejected() {
    play("yes", "no").await;
}

#[tokio::test]
async fn same_id_rejected_and_then_allowed() {
    play("no", "yes").await;
}
