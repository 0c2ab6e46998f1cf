//! Stored conversations of a runtime through the real gateway: listed over HTTP and by `plexus`, and resumed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Stdio;

use common::gateway::{Gateway, exe, runtime, said};
use serde_json::{Value, json};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/past.mjs");

fn keeper(id: &str, args: &[&str]) -> String {
    let command: Vec<&str> = ["node", AGENT].iter().chain(args).copied().collect();
    runtime(id, &command, "")
}

/// All conversations of the runtime `past`, two at a time.
async fn whole(gateway: &Gateway) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), Some(String::new()));
    while let Some(cursor) = next {
        let (_, page) = gateway.get(&format!("/v1/runtimes/past/resumable?limit=2&cursor={cursor}")).await;
        all.extend(page["resumable"].as_array().unwrap().iter().cloned());
        next = page["next"].as_str().map(str::to_owned);
    }
    all
}

/// Runs `plexus` to its end; returns the exit code and the output.
async fn plexus(gateway: &Gateway, args: &[&str]) -> (i32, String) {
    let mut command = tokio::process::Command::new(exe());
    command.args(args).env("PLEXUS_HOME", &gateway.home).stdin(Stdio::null());
    let output = command.output().await.unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

#[tokio::test]
async fn old_conversation_is_found_and_resumed_by_http() {
    let gateway = Gateway::start(&keeper("past", &["7", "3"])).await;
    let (status, page) = gateway.get("/v1/runtimes/past/resumable?limit=2").await;
    assert_eq!(status, 200, "{page}");
    let first = &page["resumable"][0];
    assert_eq!((&first["native_id"], &first["title"]), (&json!("c0"), &json!("Parser for dates 0")));
    assert_eq!(first["updated_at"], "2026-11-20T12:00:00.000Z");
    assert!(first["cwd"].as_str().unwrap().starts_with('/') && first.get("session_id").is_none(), "{page}");
    let names: Vec<_> = whole(&gateway).await.iter().map(|one| one["native_id"].clone()).collect();
    assert_eq!(names, (0..7).map(|n| json!(format!("c{n}"))).collect::<Vec<_>>());

    let (status, session) = gateway.post("/v1/sessions", json!({ "runtime_id": "past", "native_id": "c4" })).await;
    assert_eq!(status, 201, "{session}");
    let id = session["session_id"].as_str().unwrap();
    let run = gateway.prompt(id, "on we go").await;
    assert_eq!(said(&gateway.until_ended(id, &run).await, Some(&run)), "Still c4.");
    let mut all = whole(&gateway).await;
    all.retain(|one| one.get("session_id").is_some());
    let open: Vec<_> = all.iter().map(|one| (one["native_id"].clone(), one["session_id"].clone())).collect();
    assert_eq!(open, [(json!("c4"), json!(id))]);

    for (path, status, code) in [
        ("past/resumable?cursor=nonsense", 400, "bad_query"),
        ("past/resumable?limit=x", 400, "bad_query"),
        ("none/resumable", 404, "runtime_not_found"),
    ] {
        let (was, body) = gateway.get(&format!("/v1/runtimes/{path}")).await;
        assert_eq!((was, body["code"].as_str()), (status, Some(code)), "{body}");
    }
}

#[tokio::test]
async fn old_conversation_is_found_and_resumed_in_a_terminal() {
    let gateway = Gateway::start(&(keeper("past", &["12"]) + &keeper("empty", &["0"]))).await;
    let (code, text) = plexus(&gateway, &["ls", "--resumable", "past"]).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("CONVERSATION") && text.contains("Parser for dates 0") && text.contains("c11"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "what an agent wrote is harmless: {text:?}");
    let (code, text) = plexus(&gateway, &["ls", "--resumable", "past", "--json"]).await;
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, all["resumable"].as_array().unwrap().len()), (0, 12));
    let (code, text) = plexus(&gateway, &["ls", "--resumable", "empty"]).await;
    assert!(code == 0 && text.contains("has no conversation"), "{text}");

    let (code, text) = plexus(&gateway, &["resume", "past", "c11", "--prompt", "on we go"]).await;
    assert!(code == 0 && text.contains("Still c11."), "{text}");
    let (code, text) = plexus(&gateway, &["resume", "past", "c1"]).await;
    assert_eq!(code, 0, "a whole name is no beginning of others: {text}");
    let (code, text) = plexus(&gateway, &["resume", "past", "x"]).await;
    assert!(code == 1 && text.contains("no conversation x") && text.contains("plexus ls --resumable past"), "{text}");
    let (code, text) = plexus(&gateway, &["resume", "past", "c"]).await;
    assert!(code == 1 && text.contains("beginning of 12 conversations"), "{text}");
}

#[tokio::test]
async fn runtime_that_lists_no_conversations_says_why() {
    let config = runtime("plain", &["node", &AGENT.replace("past", "same_id"), "/dev/null"], "");
    let gateway = Gateway::start(&config).await;
    let (status, problem) = gateway.get("/v1/runtimes/plain/resumable").await;
    assert_eq!((status, problem["code"].as_str()), (409, Some("listing_unsupported")), "{problem}");
    let (code, text) = plexus(&gateway, &["ls", "--resumable", "plain"]).await;
    assert!(code == 1 && text.contains("does not list them"), "{text}");
}
