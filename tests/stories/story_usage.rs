//! What agents spend: added up, kept over kills and deletions, and shown to whom it concerns.
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

/// What the rows of an answer name, each with its tokens read.
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
    assert!(cli(&gateway, &[]).contains("nothing was told"));
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
