//! Ordinary clients in a burst, and misbehaving ones: others are not affected, memory is bounded, an event reports it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::gateway::{Gateway, PATIENCE, assert_whole, demo, exe, runtime, said};
use plexus_client::FollowStart;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// The text of the demo agent's `stream N`.
fn stream(n: usize) -> String {
    let width = n.to_string().len().max(4);
    (1..=n).map(|k| format!("chunk-{k:0width$} ")).collect()
}

/// A typical reader of server-sent events: the standard library, line by line.
const PYTHON: &str = r#"
import json, sys, urllib.request
url, token, run = sys.argv[1:4]
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token, "Accept": "text/event-stream"})
text = ""
with urllib.request.urlopen(request) as stream:
    for line in stream:
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            if event.get("kind") == "agent_message_chunk" and event["run_id"] == run:
                text += event["event"]["content"]["text"]
            if event.get("kind") == "run_ended" and event["run_id"] == run:
                break
sys.stdout.write(text)
"#;

/// Private memory of a process (no mapped files), in KiB.
fn memory(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_every_byte_of_a_burst() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let first = gateway.prompt(&session, "hang").await;
    let run = gateway.prompt(&session, "flood 5000").await;
    let path = format!("/v1/sessions/{session}/events");
    let pythons: Vec<_> = (0..4)
        .map(|_| {
            let url = format!("{}{path}", gateway.url);
            Command::new("python3")
                .args(["-c", PYTHON, &url, &gateway.token, &run])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut ws = gateway.follow(&session, FollowStart::Start).await;
        let mut sse = gateway.sse(&path, None).await;
        let (for_ws, for_sse) = (run.clone(), run.clone());
        clients.push(tokio::spawn(async move { ws.until_ended(&for_ws).await }));
        clients.push(tokio::spawn(async move { sse.until_ended(&for_sse).await }));
    }
    // All are connected; the burst begins.
    let (status, _) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({ "run_id": first })).await;
    assert!(status < 300);
    let whole = said(&gateway.until_ended(&session, &run).await, Some(&run));
    assert!(whole.len() >= 5000 * 8, "{}", whole.len());
    for client in clients {
        let events = client.await.unwrap();
        assert_whole(&events);
        assert!(said(&events, Some(&run)) == whole, "a client missed a byte");
    }
    for mut python in pythons {
        let mut text = String::new();
        python.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(python.wait().unwrap().success());
        assert!(text == whole, "a plain reader missed a byte: {} of {}", text.len(), whole.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_never_reads_costs_little_and_harms_nobody() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut deaf = gateway.ws().await;
    let attached =
        deaf.call("session.attach", json!({ "session_id": session, "from": "now" })).await.expect("it may watch");
    let mut cursor = attached["cursor"].clone();
    let run = gateway.prompt(&session, "flood 2000 1024").await;
    gateway.until_ended(&session, &run).await;
    let before = memory(gateway.pid());
    // Far more than any socket's buffers hold.
    let run = gateway.prompt(&session, "flood 100000 2048").await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(events.iter().filter(|event| event["kind"] == "agent_message_chunk").count() % 100, 0);
    let grown = memory(gateway.pid()).saturating_sub(before);
    println!("200 MB flowed past a client that does not read: the gateway grew by {grown} KiB");
    assert!(grown < 64 << 10, "{grown} KiB");
    // The client reads again and gets everything in order; if it was closed meanwhile, it reconnects with its cursor.
    let mut events: Vec<Value> = Vec::new();
    while !events.last().is_some_and(|event| event["kind"] == "run_ended" && event["run_id"] == run) {
        if let Some(event) = deaf.event().await {
            cursor = event["cursor"].clone();
            events.push(event);
        } else {
            deaf = gateway.ws().await;
            deaf.call("session.attach", json!({ "session_id": session, "after": cursor })).await.unwrap();
        }
    }
    assert_whole_tail(&events);
}

fn assert_whole_tail(events: &[Value]) {
    let runs: std::collections::BTreeSet<&str> = events.iter().map(|event| event["run_id"].as_str().unwrap()).collect();
    for run in runs {
        let seqs: Vec<u64> = events.iter().filter(|e| e["run_id"] == run).map(|e| e["seq"].as_u64().unwrap()).collect();
        assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap or a repeat in {run}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_sends_garbage_is_closed_with_the_right_code() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut good = gateway.ws().await;
    good.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
    // Not JSON, a batch, a number: an error each, and the connection lives.
    let mut bad = gateway.ws().await;
    for (garbage, code) in
        [("{nonsense", -32700), ("[]", -32600), ("[{}]", -32600), ("7", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, 0)]
    {
        bad.send_frame(Message::text(garbage)).await.unwrap();
        if code != 0 {
            let reply = bad.next().await.unwrap();
            assert_eq!(reply["error"]["code"], code, "{garbage}: {reply}");
        }
    }
    assert!(bad.call("session.list", json!({})).await.is_ok());
    for (method, params, code) in [
        ("session.attach", json!({ "session_id": "s_nobody" }), -32602),
        ("session.attach", json!({ "session_id": session, "after": "nonsense" }), -32602),
        ("ui.request.answer", json!({ "request_id": "q_nothing", "ok": true }), -32602),
        ("no.such", json!({}), -32601),
    ] {
        let error = bad.call(method, params).await.unwrap_err();
        let given = error["code"].as_i64().unwrap();
        assert!(given == code || (-32099..=-32000).contains(&given), "{method}: {error}");
    }
    bad.send_frame(Message::binary(vec![1, 2, 3])).await.unwrap();
    let close = loop {
        match bad.frame().await {
            Some(Ok(Message::Close(close))) => break close,
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(u16::from(close.unwrap().code), 1003, "only text is spoken here");
    let run = gateway.prompt(&session, "echo fine").await;
    assert_eq!(said(&good.until_ended(&run).await, Some(&run)), "fine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtimes_that_flood_or_die_do_not_affect_another() {
    let demo2 = runtime("flooding", &[exe(), "agent", "demo"], "");
    let demo3 = runtime("dying", &[exe(), "agent", "demo"], "");
    let gateway = Gateway::start(&format!("{}{demo2}{demo3}", demo())).await;
    let (calm, flooding, dying) =
        (gateway.session("demo").await, gateway.session("flooding").await, gateway.session("dying").await);
    let flood = gateway.prompt(&flooding, "flood 300000").await;
    let crash = gateway.prompt(&dying, "ask2 ;; hang").await;
    let open = gateway.open_requests(&dying, 2).await;
    let run = gateway.prompt(&calm, "stream 50 1").await;
    let events = gateway.until_ended(&calm, &run).await;
    assert_eq!(said(&events, Some(&run)), stream(50));
    let mut watching = gateway.ws().await;
    watching.call("session.attach", json!({ "session_id": dying, "from": "start" })).await.unwrap();
    // The run of the dying one is cancelled, and it is asked to crash in the middle of a line.
    gateway.post(&format!("/v1/sessions/{dying}/cancel"), json!({})).await;
    watching.until_ended(&crash).await;
    let crash = gateway.prompt(&dying, "ask ;; crash").await;
    let request = gateway.open_request(&dying).await;
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!(status, 200, "{receipt}");
    let events = watching.until_ended(&crash).await;
    let end = events.last().unwrap();
    assert_eq!(end["event"]["status"], "error", "{end}");
    assert!(events.iter().any(|event| event["kind"] == "raw"), "the half line is kept");
    let exit = watching.event().await.unwrap();
    assert_eq!((&exit["kind"], &exit["event"]["status"]), (&json!("runtime_status"), &json!("exited")));
    assert_eq!(exit["event"]["code"], 3, "{exit}");
    for request in open {
        let (_, request) = gateway.get(&format!("/v1/requests/{}", request["request_id"].as_str().unwrap())).await;
        assert_eq!(request["state"], "withdrawn");
    }
    let (status, problem) = gateway.post(&format!("/v1/sessions/{dying}/prompt"), json!({ "text": "x" })).await;
    assert_eq!((status, &problem["code"]), (409, &json!("runtime_gone")), "{problem}");
    // Its runtime can be started again, and everybody is told so.
    let told = problem["detail"].as_str().unwrap();
    assert!(told.contains("restart its runtime"), "{problem}");
    let (_, snapshot) = gateway.get(&format!("/v1/sessions/{dying}/snapshot")).await;
    assert_eq!(snapshot["session"]["restartable"], true, "{snapshot}");
    let events = gateway.until_ended(&flooding, &flood).await;
    assert_whole(&events);
    assert!(events.iter().filter(|event| event["kind"] == "agent_message_chunk").count() >= 300_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_of_a_hundred_mebibytes_is_cut_and_the_stream_goes_on() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let before = memory(gateway.pid());
    let run = gateway.prompt(&session, "line 104857600 ;; echo still here").await;
    let deadline = std::time::Instant::now() + 2 * PATIENCE;
    let events = loop {
        let events = gateway.until_ended(&session, &run).await;
        if !events.is_empty() {
            break events;
        }
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let raw = events.iter().find(|event| event["kind"] == "raw").expect("an event says what happened");
    assert!(raw["event"]["reason"].as_str().unwrap().contains("limit"), "{}", raw["event"]["reason"]);
    assert_eq!(said(&events, Some(&run)), "still here");
    let grown = memory(gateway.pid()).saturating_sub(before);
    assert!(grown < 160 << 10, "{grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn junk_from_an_agent_is_kept_and_shown() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "junk").await;
    let events = gateway.until_ended(&session, &run).await;
    let raw: Vec<&Value> = events.iter().filter(|event| event["kind"] == "raw").collect();
    assert!(raw.len() >= 3, "{raw:?}");
    assert!(raw.iter().any(|event| event["event"]["text"].is_string()), "what is no JSON is kept as text");
    assert!(raw.iter().any(|event| event["event"]["message"]["method"].is_string()), "unknown methods are kept whole");
    assert_whole(&events);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn memory_is_given_back_by_an_idle_gateway() {
    let gateway = Gateway::demo().await;
    let all = std::fs::read_dir(format!("/proc/{}/task", gateway.pid())).unwrap();
    let names = all.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.iter().any(|name| name.starts_with("jemalloc")), "{names:?}");
}
