//! Many clients, one request: the first answer wins, the agent gets one answer, and every client learns the winner.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::sync::Arc;

use common::gateway::{Gateway, assert_whole, exe, runtime, said};
use common::moments::rounds;
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc};

const CLIENTS: usize = 64;
/// A demo agent whose input is also written to a file.
fn overheard(dir: &std::path::Path) -> (String, std::path::PathBuf) {
    let heard = dir.join("heard");
    let line = format!("exec tee -a {} | {} agent demo", heard.display(), exe());
    (runtime("demo", &["sh", "-c", &line], ""), heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_sixty_four_answers_one_wins() {
    let total = rounds("races of 64 clients", 100, 1000);
    let dir = tempfile::tempdir().unwrap();
    let (config, heard) = overheard(dir.path());
    let gateway = Gateway::start(&config).await;
    let session = gateway.session("demo").await;

    // Every client waits for the request and for all others, then answers; half over WebSocket, half over HTTP.
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let (told, mut outcomes) = mpsc::channel::<(usize, usize, Result<Value, Value>)>(CLIENTS * 2);
    for client in 0..CLIENTS {
        let mut ws = gateway.ws().await;
        ws.call("session.attach", json!({ "session_id": session, "from": "now" })).await.unwrap();
        let (barrier, told) = (Arc::clone(&barrier), told.clone());
        let http = gateway.http.clone();
        let (url, token) = (gateway.url.clone(), gateway.token.clone());
        tokio::spawn(async move {
            for round in 0..total {
                let request = ws.until("ui.confirm.request").await;
                let id = request["request_id"].as_str().unwrap().to_owned();
                let kind = if client % 3 == 0 { "reject_once" } else { "allow_once" };
                let option = Gateway::option(&request, kind);
                barrier.wait().await;
                let outcome = if client % 2 == 0 {
                    let answer = json!({ "request_id": id, "option_id": option, "digest": request["digest"] });
                    ws.call("ui.request.answer", answer).await.map_err(|error| {
                        assert_eq!(error["code"], -32010, "{error}");
                        error["data"].clone()
                    })
                } else {
                    let url = format!("{url}/v1/requests/{id}/answer");
                    let body = json!({ "option_id": option, "digest": request["digest"] });
                    let response = http.post(url).bearer_auth(&token).json(&body).send().await.unwrap();
                    let status = response.status().as_u16();
                    let receipt: Value = response.json().await.unwrap();
                    assert!(status == 200 || status == 409, "{status} {receipt}");
                    if status == 200 { Ok(receipt) } else { Err(receipt) }
                };
                let resolved = ws.until("ui.request.resolved").await;
                assert_eq!(resolved["request_id"], id.as_str());
                told.send((round, client, outcome)).await.unwrap();
            }
        });
    }
    let mut runs = Vec::new();
    for round in 0..total {
        runs.push(gateway.prompt(&session, "ask").await);
        let mut receipts = Vec::new();
        for _ in 0..CLIENTS {
            let (of, _, outcome) = outcomes.recv().await.unwrap();
            assert_eq!(of, round);
            receipts.push(outcome);
        }
        let won: Vec<&Value> = receipts.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "exactly one wins");
        assert_eq!((&won[0]["won"], &won[0]["state"]), (&json!(true), &json!("answered")));
        for lost in receipts.iter().filter_map(|outcome| outcome.as_ref().err()) {
            for field in ["request_id", "state", "option_id", "ok", "resolved_by", "at", "cursor"] {
                assert_eq!(lost[field], won[0][field], "every loser is told of the same winner: {lost}");
            }
            assert_eq!(lost["won"], false);
        }
    }
    let events = gateway.until_ended(&session, runs.last().unwrap()).await;
    assert_whole(&events);
    let resolved = events.iter().filter(|event| event["kind"] == "request_resolved").count();
    assert_eq!(resolved, total, "one `answered` each");
    let heard = std::fs::read_to_string(heard).unwrap();
    let answers = heard.lines().filter(|line| line.contains("\"outcome\"")).count();
    assert_eq!(answers, total, "one line to the runtime each");
    assert!(said(&events, Some(&runs[0])).len() > 2, "the agent goes on with what was decided");
    let (_, metrics) = gateway.get("/metrics").await;
    let counted = format!("plexus_double_answers_total {}", total * (CLIENTS - 1));
    assert!(metrics.as_str().unwrap().contains(&counted), "{metrics}");
}

#[tokio::test]
async fn races_same_key_gets_the_same_receipt_even_after_a_restart() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    let body = json!({ "option_id": Gateway::option(&request, "allow_once") });
    let answer = async |gateway: &Gateway, key: &str| {
        let response = gateway.request("POST", &path).header("Idempotency-Key", key).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, first) = answer(&gateway, "k-1").await;
    assert_eq!((status, &first["won"]), (200, &json!(true)), "{first}");
    let (status, again) = answer(&gateway, "k-1").await;
    assert_eq!((status, &again), (200, &first), "the same key, the same receipt");
    let (status, other) = answer(&gateway, "k-2").await;
    assert_eq!((status, &other["won"]), (409, &json!(false)));
    gateway.until_ended(&session, &run).await;
    gateway.kill();
    gateway.again().await;
    let (status, again) = answer(&gateway, "k-1").await;
    assert_eq!((status, &again), (200, &first), "keys survive a restart");
    let (status, _) = answer(&gateway, "k-2").await;
    assert_eq!(status, 409);
}
