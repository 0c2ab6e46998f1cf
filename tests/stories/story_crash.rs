//! `kill -9` at random instants: everything that a client saw is in the log, cursors resume, requests are `orphaned`, and no
//! process is left.
//!
//! Raw messages: what was on its way when the gateway died is read to its end, and nothing comes back by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, demo, exe, family, held_runtime};
use common::moments::rounds;
use serde_json::{Value, json};

async fn all_gone(pids: &[u32]) {
    let deadline = Instant::now() + PATIENCE;
    while let Some(pid) = pids.iter().find(|pid| alive(**pid)) {
        assert!(Instant::now() < deadline, "process {pid} outlived the gateway");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_any_instant_loses_nothing_seen() {
    let total = rounds("kills", 20, 200);
    let mut gateway = Gateway::start(&demo()).await;
    let mut cursor = String::new();
    let mut known: BTreeMap<u64, Value> = BTreeMap::new();
    let mut orphaned = 0;
    for round in 0..total {
        let session = gateway.session("demo").await;
        // A client that follows from its cursor before the last crash.
        let mut ws = gateway.ws().await;
        let attach = if cursor.is_empty() {
            json!({ "session_id": "*", "from": "start" })
        } else {
            json!({ "session_id": "*", "after": cursor })
        };
        ws.call("session.attach", attach).await.unwrap();
        let hello = ws.until("gateway.hello").await;
        assert_eq!(hello["resume"], "ok", "a cursor survives a crash: {hello}");
        let script = if round % 2 == 0 { "stream 100000 0" } else { "ask2 ;; stream 1000 1" };
        gateway.prompt(&session, script).await;
        // An instant between the first event and some thousands later; every second one with an answer on its way.
        let instant = Duration::from_micros((round * 7919) % 120_000);
        let mut open = Vec::new();
        if round % 2 == 1 {
            open = gateway.open_requests(&session, 2).await;
            let request = open[0].clone();
            let (url, token, http) = (gateway.url.clone(), gateway.token.clone(), gateway.http.clone());
            tokio::spawn(async move {
                let url = format!("{url}/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
                let body = json!({ "option_id": Gateway::option(&request, "allow_once") });
                let _ = http.post(url).bearer_auth(token).json(&body).send().await;
            });
        }
        let until = Instant::now() + if round % 2 == 1 { instant / 20 } else { instant };
        let mut seen = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout_at(until.into(), ws.event()).await {
            seen.push(event);
        }
        let pids = family(gateway.pid());
        gateway.kill();
        // What was on its way is still a thing that a client saw.
        while let Some(event) = ws.event().await {
            seen.push(event);
        }
        assert_whole_from(&seen, &mut known);
        if let Some(last) = seen.last() {
            cursor = last["cursor"].as_str().unwrap().to_owned();
        }
        all_gone(&pids).await;
        gateway.again().await;
        let events = gateway.events(&session).await;
        assert_whole(&events);
        let kept: BTreeMap<&str, &Value> =
            events.iter().map(|event| (event["cursor"].as_str().unwrap(), event)).collect();
        for event in seen.iter().filter(|event| event["session_id"] == session.as_str()) {
            let there = kept.get(event["cursor"].as_str().unwrap());
            assert_eq!(there, Some(&event), "an event that a client saw is not in the log");
        }
        assert_eq!(events.last().unwrap()["kind"], "runtime_status", "the session says how it ended");
        let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!((&info["state"], &info["open_requests"]), (&json!("exited"), &json!(0)), "{info}");
        for request in open {
            let id = request["request_id"].as_str().unwrap();
            let (status, request) = gateway.get(&format!("/v1/requests/{id}")).await;
            assert_eq!(status, 200);
            let state = request["state"].as_str().unwrap();
            assert!(state == "orphaned" || state == "answered", "{request}");
            if state == "orphaned" {
                orphaned += 1;
                let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
                assert_eq!((status, &late["state"]), (410, &json!("orphaned")), "{late}");
            }
        }
    }
    assert!(orphaned >= total / 2, "{orphaned}: every second round leaves a request open at least");
    let pids = family(gateway.pid());
    assert!(gateway.stop().await.success());
    all_gone(&pids).await;
}

/// Each event comes once, or identically again after a resume; never another one at its position.
fn assert_whole_from(seen: &[Value], known: &mut BTreeMap<u64, Value>) {
    for event in seen {
        let position = common::gateway::position(&event["cursor"]);
        assert!(known.insert(position, event.clone()).is_none(), "seen twice: {event}");
    }
}

#[tokio::test]
async fn serve_names_the_runtimes_that_outlived_an_earlier_gateway() {
    let mut gateway = Gateway::start(&held_runtime("kept", &[exe(), "agent", "demo"], "")).await;
    gateway.session("kept").await;
    gateway.kill();
    // It is in no configuration any more, as after `plexus run`.
    let home = gateway.home.clone();
    let mut serve = Command::new(exe())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("PLEXUS_HOME", &home)
        .env("CODEX_HOME", home.join("codex"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines();
    // The program's end ends the lines, too.
    let named = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("  runtimes"));
    serve.kill().unwrap();
    serve.wait().unwrap();
    assert_eq!(named.as_deref(), Some("  runtimes  kept"));
}
