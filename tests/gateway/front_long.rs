//! Requests that are too long to be sent whole: truncated in events, fetched whole by their id, and allowed only by a client that
//! has read all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Instant;

use common::front::Front;
use plexus_protocol::SHOWN_MAX;
use serde_json::{Value, json};

async fn asked(front: &Front, what: &str) -> (String, Value) {
    let session = front.session("fake").await;
    let prompt = json!({ "text": format!("ask {what}") });
    assert_eq!(front.admin("POST", &format!("/v1/sessions/{session}/prompt"), prompt).await.status, 202);
    let request = front.open_request(&session).await;
    (session, request)
}

fn part(request: &Value, whole: usize) {
    assert_eq!((&request["display_truncated"], &request["display_bytes"]), (&json!(true), &json!(whole)), "its size");
    assert!(request["display"].as_str().unwrap().len() <= SHOWN_MAX);
    assert_eq!(request["digest"], Value::Null, "nobody has read it");
}

#[tokio::test]
async fn huge_command_is_sent_in_part_and_allowed_by_who_read_it_whole() {
    let front = Front::new().await;
    let (session, brief) = asked(&front, "long 1048576").await;
    let path = format!("/v1/requests/{}", brief["request_id"].as_str().unwrap());
    let whole = front.admin("GET", &path, Value::Null).await.json();
    let display = whole["display"].as_str().unwrap();
    assert!(display.len() > 1 << 20 && display.contains("sudo rm -rf /srv\nin "), "{}", display.len());
    assert_eq!(whole["display_truncated"], Value::Null);
    // The risk is that of the whole, even if the sent part is harmless.
    part(&brief, display.len());
    assert!(!brief["display"].as_str().unwrap().contains("sudo"));
    for request in [&brief, &whole] {
        assert_eq!(request["risk"], "danger");
        assert!(request["risk_reasons"].to_string().contains("sudo"), "{}", request["risk_reasons"]);
    }
    let page = front.admin("GET", &format!("/v1/sessions/{session}/events?after="), Value::Null).await.json();
    let told = page["events"].as_array().unwrap().iter().find(|event| event["kind"] == "request_opened").unwrap();
    part(&told["event"], display.len());
    let snapshot = front.admin("GET", &format!("/v1/sessions/{session}/snapshot"), Value::Null).await;
    assert!(snapshot.body.len() < 4 * SHOWN_MAX, "{}", snapshot.body.len());
    part(&snapshot.json()["requests"][0], display.len());

    let answer = async |answer: Value| front.admin("POST", &format!("{path}/answer"), answer).await;
    for unread in [json!({ "ok": true }), json!({ "option_id": "yes" })] {
        let reply = answer(unread).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "digest_required"));
    }
    assert_eq!(answer(json!({ "ok": true, "digest": "0".repeat(64) })).await.code(), "stale_digest");
    assert_eq!(answer(json!({ "ok": true, "digest": whole["digest"] })).await.status, 200);
    // Denying needs no digest.
    let (_, brief) = asked(&front, "long 1048576").await;
    let path = format!("/v1/requests/{}/answer", brief["request_id"].as_str().unwrap());
    assert_eq!(front.admin("POST", &path, json!({ "option_id": "no" })).await.status, 200);
}

#[tokio::test]
async fn huge_edit_is_shown_cut_and_marked_as_cut() {
    let front = Front::new().await;
    for bytes in [1 << 20, 60 << 20] {
        let before = Instant::now();
        let (_, brief) = asked(&front, &format!("edit {bytes}")).await;
        let took = before.elapsed();
        let path = format!("/v1/requests/{}", brief["request_id"].as_str().unwrap());
        let whole = front.admin("GET", &path, Value::Null).await;
        // For measuring: `cargo test --test gateway front_long -- --nocapture`.
        println!("an edit of {bytes} bytes: asked after {took:?}, {} bytes whole", whole.body.len());
        let whole = whole.json();
        let display = whole["display"].as_str().unwrap();
        part(&brief, display.len());
        assert!(display.len() <= (512 << 10) + 4096, "{}", display.len());
        assert!(display.contains("cut here"), "{}", &display[display.len() - 200..]);
        let lines = json!(bytes / 2 / 8 + 1);
        let file = &whole["subject"]["files"][0];
        assert_eq!((&file["added"], &file["removed"]), (&lines, &lines), "all of it is counted");
        assert!(whole["risk"] == "elevated" || whole["risk"] == "danger", "{}", whole["risk"]);
        assert!(
            whole["risk_reasons"].to_string().contains("is too long to be shown completely"),
            "{}",
            whole["risk_reasons"]
        );
        assert!(whole["warnings"].to_string().contains("some of the changes are left out"));
        let path = format!("{path}/answer");
        assert_eq!(front.admin("POST", &path, json!({ "ok": true })).await.code(), "digest_required");
        assert_eq!(front.admin("POST", &path, json!({ "ok": true, "digest": whole["digest"] })).await.status, 200);
    }
}
