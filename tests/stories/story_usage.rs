//! The usage of agents: summed up, stored across kills and deletions, and shown only to those permitted to see it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Command;

use common::gateway::{Gateway, end_runtimes, exe, held_runtime};
use serde_json::{Value, json};

/// A prompt of 400 bytes, which the demo agent answers with as much: about a hundred tokens each way.
fn prompt() -> String {
    let told = " ;; usage";
    format!("echo {}{told}", "x".repeat(400 - "echo ".len() - told.len()))
}

async fn usage(gateway: &Gateway, query: &str) -> Value {
    let (status, sums) = gateway.get(&format!("/v1/usage?{query}")).await;
    assert_eq!(status, 200, "{query}: {sums}");
    sums
}

/// The names in the rows of a response, each with its tokens read.
fn rows(sums: &Value, name: &str) -> Vec<(String, u64)> {
    let rows = sums["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[name].as_str().unwrap().to_owned(), row["usage"]["input_tokens"].as_u64().unwrap())).collect()
}

fn cli(gateway: &Gateway, args: &[&str]) -> String {
    let out = Command::new(exe()).arg("usage").args(args).env("PLEXUS_HOME", &gateway.home).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[tokio::test]
async fn usage_is_added_up_once_over_kills_of_the_gateway() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let empty = usage(&gateway, "").await;
    assert_eq!((&empty["rows"], &empty["total"], &empty["by"]), (&json!([]), &json!({}), &json!("day")));
    assert!(cli(&gateway, &[]).contains("no usage was reported"));
    let (one, two) = (gateway.session("demo").await, gateway.session("demo").await);
    let mut runs = Vec::new();
    for n in 0..3 {
        let run = gateway.prompt(&one, &prompt()).await;
        let events = gateway.until_ended(&one, &run).await;
        let end = events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == run).unwrap();
        let spent = &end["event"]["usage"];
        assert_eq!(spent["input_tokens"], 100, "{end}");
        assert!(spent["costs"][0]["amount"].as_f64().unwrap() > 0.0 && spent["costs"][0]["currency"] == "USD", "{end}");
        runs.push(run);
        if n == 1 {
            gateway.kill();
            gateway.again().await;
        }
    }
    let silent = gateway.prompt(&two, "echo nothing is told of this").await;
    let events = gateway.until_ended(&two, &silent).await;
    assert!(events.iter().all(|event| event["event"].get("usage").is_none()), "what is not told is absent");
    let told = gateway.prompt(&two, &prompt()).await;
    gateway.until_ended(&two, &told).await;

    let days = usage(&gateway, "by=day&utc_offset=60").await;
    assert_eq!(days["total"]["input_tokens"], 400);
    assert_eq!(rows(&days, "day").iter().map(|(_, tokens)| tokens).sum::<u64>(), 400);
    let sessions = usage(&gateway, "by=session").await;
    assert_eq!(rows(&sessions, "session_id"), [(one.clone(), 300), (two.clone(), 100)]);
    let of_one = usage(&gateway, &format!("by=run&session_id={one}")).await;
    let mut named: Vec<String> = rows(&of_one, "run_id").into_iter().map(|(run, _)| run).collect();
    named.sort();
    runs.sort();
    assert_eq!(named, runs);
    assert_eq!(rows(&usage(&gateway, "by=runtime&runtime_id=demo").await, "runtime_id"), [("demo".to_owned(), 400)]);
    assert_eq!(usage(&gateway, "runtime_id=none").await["rows"], json!([]));
    // A session's cost is told as a sum: its runs' parts add up to the last.
    let events = gateway.events(&one).await;
    let last = events.iter().rfind(|event| event["kind"] == "usage_update").unwrap();
    let (sum, told) = (&of_one["total"]["costs"][0]["amount"], &last["event"]["cost"]["amount"]);
    assert!((sum.as_f64().unwrap() - told.as_f64().unwrap()).abs() < 1e-8, "{sum} is not {told}");

    let table = cli(&gateway, &["--by", "session", "--since", "7d"]);
    assert!(table.contains(&one) && table.contains("300") && table.contains("USD"), "{table}");
    let json: Value = serde_json::from_str(&cli(&gateway, &["--by", "run", "--session", &two, "--json"])).unwrap();
    assert_eq!(rows(&json, "run_id").len(), 1);

    assert_eq!(gateway.delete(&format!("/v1/sessions/{one}")).await.0, 204);
    assert_eq!(usage(&gateway, "by=session").await["total"]["input_tokens"], 100);
    assert_eq!(gateway.get(&format!("/v1/usage?session_id={one}")).await.0, 404);
    end_runtimes(&gateway.home);
}

#[tokio::test]
async fn usage_of_other_sessions_is_not_shown_to_a_limited_device() {
    let gateway = Gateway::demo().await;
    let (mine, other) = (gateway.session("demo").await, gateway.session("demo").await);
    for session in [&mine, &other] {
        let run = gateway.prompt(session, &prompt()).await;
        gateway.until_ended(session, &run).await;
    }
    let body = json!({ "name": "limited", "scopes": ["watch"], "sessions": [mine] });
    let (status, device) = gateway.post("/v1/devices", body).await;
    assert_eq!(status, 201, "{device}");
    let get = |path: String| {
        let token = device["token"].as_str().unwrap().to_owned();
        let request = reqwest::Client::new().get(format!("{}{path}", gateway.url)).bearer_auth(token);
        async move {
            let reply = request.send().await.unwrap();
            (reply.status().as_u16(), reply.json::<Value>().await.unwrap_or_default())
        }
    };
    for by in ["day", "runtime", "project", "session", "run"] {
        let (status, sums) = get(format!("/v1/usage?by={by}")).await;
        assert_eq!((status, &sums["total"]["input_tokens"]), (200, &json!(100)), "{by}: {sums}");
        assert!(!sums.to_string().contains(&other), "{by}: {sums}");
    }
    assert_eq!(get(format!("/v1/usage?session_id={other}")).await.0, 404);
    assert_eq!(get(format!("/v1/usage?session_id={mine}")).await.0, 200);
    assert_eq!(usage(&gateway, "").await["total"]["input_tokens"], 200);
}

/// Sets ceilings.
async fn limit(gateway: &Gateway, ceilings: Value) {
    let (status, set) = gateway.put("/v1/usage/ceilings", ceilings).await;
    assert_eq!(status, 200, "{set}");
}

/// Prompts; returns whether the prompt has to wait.
async fn send(gateway: &Gateway, session: &str) -> (String, bool) {
    let (status, accepted) = gateway.post(&format!("/v1/sessions/{session}/prompt"), json!({ "text": prompt() })).await;
    assert_eq!(status, 202, "{accepted}");
    (accepted["run_id"].as_str().unwrap().to_owned(), accepted["queued"] == true)
}

/// The reasons that the queued prompts of a session wait.
async fn queued(gateway: &Gateway, session: &str) -> Vec<Value> {
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    info["queue"].as_array().into_iter().flatten().map(|one| one["ceiling"].clone()).collect()
}

/// Waits until as many prompts of a session are queued.
async fn until_queued(gateway: &Gateway, session: &str, count: usize) {
    for _ in 0..600 {
        if queued(gateway, session).await.len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("not {count} in the queue: {:?}", queued(gateway, session).await);
}

#[tokio::test]
async fn usage_ceiling_of_a_session_holds_prompts_until_somebody_answers() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let (one, two) = (gateway.session("demo").await, gateway.session("demo").await);
    assert!(cli(&gateway, &["ceiling", "session", "300", "tokens"]).contains("each session: 300 tokens"));
    for n in 0..2 {
        let (run, waits) = send(&gateway, &one).await;
        assert!(!waits, "{n}");
        gateway.until_ended(&one, &run).await;
    }
    let request = gateway.open_request(&one).await;
    assert_eq!(request["display"], "This session has spent 392 of 300 tokens. Go on?");
    assert_eq!((&request["risk"], &request["type"]), (&json!("elevated"), &json!("permission")));
    // Prompts are accepted and wait, each says for what, and can be removed. Another session is free.
    let (held, waits) = send(&gateway, &one).await;
    let (removed, _) = send(&gateway, &one).await;
    assert!(waits);
    assert_eq!(queued(&gateway, &one).await, [json!("session"), json!("session")]);
    let body = json!({ "run_id": removed });
    assert_eq!(gateway.post(&format!("/v1/sessions/{one}/cancel"), body).await.0, 202);
    let (run, waits) = send(&gateway, &two).await;
    assert!(!waits);
    gateway.until_ended(&two, &run).await;
    // Killed and back: one question, and the prompt still waits.
    gateway.kill();
    gateway.again().await;
    let open = gateway.open_requests(&one, 1).await;
    assert_eq!(open[0]["request_id"], request["request_id"]);
    assert_eq!(queued(&gateway, &one).await, [json!("session")]);
    // Sixty-four answers at once: one counts, and what waits runs once.
    let answers = (0..64).map(|_| gateway.choose(&open[0], "go_on"));
    let outcomes = futures_util::future::join_all(answers).await;
    let won = outcomes.iter().filter(|(status, receipt)| *status == 200 && receipt["won"] == true).count();
    assert_eq!(won, 1, "{outcomes:?}");
    let events = gateway.until_ended(&one, &held).await;
    assert_eq!(events.iter().filter(|e| e["kind"] == "run_started" && e["run_id"] == held).count(), 1);
    let said = |event: &&Value| event["kind"] == "run_status" && event["run_id"] == held;
    let message = events.iter().find(said).unwrap()["event"]["message"].clone();
    assert_eq!(message, "waits: the ceiling of this session is reached");
    gateway.kill();
    gateway.again().await;
    let (run, waits) = send(&gateway, &one).await;
    assert!(!waits, "the answer survives a restart");
    gateway.until_ended(&one, &run).await;
    // 392 + 300 are allowed. Stop keeps what waits; the next prompt asks again; without a ceiling it goes on.
    let request = gateway.open_request(&one).await;
    assert_eq!(request["display"], "This session has spent 784 of 692 tokens. Go on?");
    let (first, _) = send(&gateway, &one).await;
    assert_eq!(gateway.choose(&request, "stop").await.0, 200);
    assert_eq!(queued(&gateway, &one).await, [json!("session")]);
    let (second, _) = send(&gateway, &one).await;
    gateway.open_request(&one).await;
    assert!(
        cli(&gateway, &["ceiling", "session", "none", "--session", &one]).contains(&format!("session {one}: none"))
    );
    gateway.until_ended(&one, &first).await;
    gateway.until_ended(&one, &second).await;
    let (_, requests) = gateway.get("/v1/requests?state=open").await;
    assert_eq!(requests["requests"], json!([]));
    end_runtimes(&gateway.home);
}

#[tokio::test]
async fn usage_ceiling_of_a_day_asks_once_for_all_sessions() {
    let config = held_runtime("demo", &[exe(), "agent", "demo"], "");
    let mut gateway = Gateway::start(&format!("{config}\n[ceilings]\nday = \"500 tokens\"\n")).await;
    let sessions = [gateway.session("demo").await, gateway.session("demo").await, gateway.session("demo").await];
    for session in &sessions {
        let (run, waits) = send(&gateway, session).await;
        assert!(!waits);
        gateway.until_ended(session, &run).await;
    }
    let open = gateway.open_requests(&sessions[2], 1).await;
    assert_eq!(open[0]["display"], "All sessions have spent 588 of 500 tokens today. Go on?");
    let mut held = Vec::new();
    for session in &sessions {
        let (run, waits) = send(&gateway, session).await;
        assert!(waits);
        assert_eq!(queued(&gateway, session).await, [json!("day")]);
        held.push(run);
    }
    gateway.kill();
    gateway.again().await;
    let (_, requests) = gateway.get("/v1/requests?state=open").await;
    assert_eq!(requests["requests"].as_array().unwrap().len(), 1, "one in all: {requests}");
    // A device that may only watch and prompt cannot raise it, one that may approve can.
    let (_, device) = gateway
        .post("/v1/devices", json!({ "name": "low", "scopes": ["watch", "prompt", "approve"], "approve_up_to": "low" }))
        .await;
    let answer = json!({ "option_id": "go_on", "digest": open[0]["digest"] });
    let id = open[0]["request_id"].as_str().unwrap();
    let by_low = |method: reqwest::Method, path: String| {
        reqwest::Client::new()
            .request(method, format!("{}{path}", gateway.url))
            .bearer_auth(device["token"].as_str().unwrap())
    };
    let refused =
        by_low(reqwest::Method::POST, format!("/v1/requests/{id}/answer")).json(&answer).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let refused = by_low(reqwest::Method::PUT, "/v1/usage/ceilings".into()).json(&json!({})).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(gateway.choose(&open[0], "go_on").await.0, 200);
    for (session, run) in sessions.iter().zip(&held) {
        gateway.until_ended(session, run).await;
    }
    // What was set wins over the configuration, and survives a restart; taken back, the configuration counts again.
    limit(&gateway, json!({ "day": {} })).await;
    let (_, view) = gateway.get("/v1/usage/ceilings").await;
    assert_eq!((&view["day"], &view["configured"]["day"]["tokens"]), (&json!({}), &json!(500)));
    gateway.kill();
    gateway.again().await;
    assert_eq!(gateway.get("/v1/usage/ceilings").await.1["day"], json!({}));
    assert!(cli(&gateway, &["ceiling", "day", "configured"]).contains("a day: 500 tokens (today: "));
    until_queued(&gateway, &sessions[0], 0).await;
    end_runtimes(&gateway.home);
}
