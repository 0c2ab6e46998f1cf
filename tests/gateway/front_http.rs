//! The HTTP frontend over real sockets. One file: all tests use the same client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::sync::Arc;

use common::front::{self, Front, LONG};
use common::moments::until_so;
use plexus::sessions::{CommitEntry, CommitRows};
use plexus_protocol::Origin;
use plexus_store::RequestRow;
use serde_json::{Value, json};

async fn prompt(front: &Front, session: &str, text: &str) -> Value {
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": text })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()
}

/// Long polls until an event of this kind; returns all events and the cursor after them.
async fn follow(front: &Front, path: &str, mut after: String, kind: &str) -> (Vec<Value>, String) {
    let mut all: Vec<Value> = Vec::new();
    let read = async {
        while !all.iter().any(|event| event["kind"] == kind) {
            let page = front.admin("GET", &format!("{path}?wait=20&after={after}"), Value::Null).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            assert_eq!(page["resume"], "ok");
            all.extend(page["events"].as_array().unwrap().iter().cloned());
            after = page["next"].as_str().unwrap().to_owned();
        }
    };
    tokio::time::timeout(LONG, read).await.unwrap_or_else(|_| panic!("no {kind} came"));
    (all, after)
}

fn text(events: &[Value]) -> String {
    let said = events.iter().filter(|event| event["kind"] == "agent_message_chunk");
    said.map(|event| event["event"]["content"]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn prompt_is_read_back_by_pages_polls_and_snapshot() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/events");
    let accepted = prompt(&front, &session, "hello there").await;
    assert_eq!(accepted["queued"], false);
    let (events, next) = follow(&front, &path, String::new(), "run_ended").await;
    assert_eq!(text(&events), "hello there");
    let of_run: Vec<_> = events.iter().filter(|event| event["run_id"] == accepted["run_id"]).collect();
    for (n, event) in of_run.iter().enumerate() {
        assert_eq!(event["seq"], n);
        assert_eq!(event["meta"], json!({ "runtime_id": "fake", "dialect": "acp" }));
        assert_eq!(event["session_id"], *session);
    }
    // One at a time, the same events with the same cursors.
    let (mut after, mut single) = (String::new(), Vec::new());
    while single.len() < events.len() {
        let page = front
            .admin("GET", &format!("/v1/events?limit=1&after={after}&session={session}"), Value::Null)
            .await
            .json();
        assert_eq!(page["events"].as_array().unwrap().len(), 1);
        single.push(page["events"][0].clone());
        after = page["next"].as_str().unwrap().into();
    }
    assert_eq!(single, events);
    let end = front.admin("GET", &format!("{path}?after={next}"), Value::Null).await.json();
    assert_eq!((&end["events"], &end["next"]), (&json!([]), &json!(next)));
    let snapshot = front.admin("GET", &format!("/v1/sessions/{session}/snapshot"), Value::Null).await.json();
    assert!(snapshot["messages"].as_array().unwrap().iter().any(|message| message["text"] == "hello there"));
    assert_eq!(snapshot["cursor"], *next);
    let shown = front.admin("GET", &format!("/v1/sessions/{session}"), Value::Null).await.json();
    assert_eq!((&shown["state"], &shown["session_id"]), (&json!("idle"), &json!(session)));
    let hits = front.admin("GET", "/v1/search?q=hello&limit=5", Value::Null).await;
    assert_eq!(hits.status, 200);
    assert!(hits.json()["hits"].as_array().unwrap().iter().all(|hit| hit["session_id"] == *session));
}

#[tokio::test]
async fn cursor_too_old_brings_a_snapshot_and_a_bad_one_is_refused() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    prompt(&front, &session, "hello").await;
    let path = format!("/v1/sessions/{session}/events");
    let (_, next) = follow(&front, &path, String::new(), "run_ended").await;
    let (epoch, _) = next.split_once(':').unwrap();
    for (cursor, verdict) in [("other:1".to_owned(), "reset"), (format!("{epoch}:99999999"), "ahead")] {
        // The response is immediate: lost events cannot be waited for.
        let page = front.admin("GET", &format!("{path}?wait=60&after={cursor}"), Value::Null).await.json();
        assert_eq!((&page["resume"], &page["events"]), (&json!(verdict), &json!([])));
        assert_eq!(page["snapshot"]["cursor"], page["next"]);
        assert_eq!(page["snapshot"]["session"]["session_id"], *session);
        let page = front.admin("GET", &format!("/v1/events?after={cursor}"), Value::Null).await.json();
        assert_eq!(page["snapshots"][0]["session"]["session_id"], *session);
        let again = front.admin("GET", &format!("{path}?after={}", page["next"].as_str().unwrap()), Value::Null).await;
        assert_eq!(again.json()["resume"], "ok");
    }
    for bad in ["x", "-1", "k3f9:", "k3f9:-1", "a:b", "1", "%00", "k3f9:99999999999999999999"] {
        let reply = front.admin("GET", &format!("{path}?after={bad}"), Value::Null).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_cursor"), "{bad}");
    }
    for bad in ["limit=x", "limit=-1", "wait=x", "wait=1.5"] {
        let reply = front.admin("GET", &format!("{path}?{bad}"), Value::Null).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_query"), "{bad}");
    }
    let now = front.admin("GET", &format!("{path}?after=now"), Value::Null).await.json();
    assert_eq!((&now["events"], &now["next"]), (&json!([]), &now["head"]));
}

#[tokio::test]
async fn long_poll_ends_on_events_timeout_revocation_and_shutdown() {
    if !common::alone("front_http::long_poll_ends_on_events_timeout_revocation_and_shutdown") {
        return; // what is counted is the whole process's
    }
    let front = Front::new().await;
    let session = front.session("fake").await;
    let reply = front.admin("POST", "/v1/devices", json!({ "name": "phone", "scopes": ["watch"] })).await.json();
    let (token, device) = (reply["token"].as_str().unwrap(), reply["device_id"].as_str().unwrap());
    let path = format!("/v1/sessions/{session}/events?after=now&wait=60");

    let (page, _) = tokio::join!(front.call(token, "GET", &path, Value::Null), async {
        // Before or after the poll began to wait; if before, `now` is past the event and the poll waits for the next one.
        for _ in 0..200 {
            prompt(&front, &session, "news").await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            if front.core.directory.sessions()[0].queue.is_empty() {
                break;
            }
        }
        follow(&front, "/v1/events", String::new(), "run_ended").await;
        prompt(&front, &session, "news").await;
    });
    assert!(!page.json()["events"].as_array().unwrap().is_empty());

    let quiet = format!("/v1/events?session={}&after=now&wait=1", front.session("quiet").await);
    let page = front.admin("GET", &quiet, Value::Null).await;
    assert_eq!(page.status, 200, "an empty page when the time is over");

    let quiet = quiet.replace("wait=1", "wait=60");
    let (page, gone) = tokio::join!(front.call(token, "GET", &quiet, Value::Null), async {
        front.admin("DELETE", &format!("/v1/devices/{device}"), Value::Null).await
    });
    assert_eq!((page.status, gone.status), (401, 204));
    assert_eq!(front.call(token, "GET", "/v1/me", Value::Null).await.status, 401);

    let (page, ()) = tokio::join!(front.admin("GET", &quiet, Value::Null), async {
        // The request is at least connected, and so in time for the drain.
        let polls = async || plexus::metrics::metrics().subscribers.with_label_values(&["poll"]).get() > 0;
        until_so("the poll is there", polls).await;
        front.stop.send(true).unwrap();
    });
    assert_eq!(page.status, 200, "{page:?}");
    tokio::time::timeout(LONG, front.served).await.expect("serving ends").unwrap();
}

#[tokio::test]
async fn answer_first_wins_same_key_repeats_and_losers_learn_the_winner() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let phone = front.token(json!({ "scopes": ["approve"] })).await;
    prompt(&front, &session, "ask").await;
    let request = front.open_request(&session).await;
    let (id, digest) = (request["request_id"].as_str().unwrap(), request["digest"].as_str().unwrap());
    let path = format!("/v1/requests/{id}/answer");
    let bearer = format!("Bearer {phone}");
    let answer = async |key: Option<&str>, body: Value| {
        let mut headers = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        front.send("POST", &path, &headers, &body.to_string()).await
    };
    let refused = answer(None, json!({ "option_id": "yes", "digest": "0".repeat(64) })).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "stale_digest"));
    let refused = answer(None, json!({ "option_id": "maybe" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "option_not_offered"));
    for key in ["", "a b", "é", &"k".repeat(129)] {
        let refused = answer(Some(key), json!({ "option_id": "yes" })).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad_idempotency_key"), "{key}");
    }
    let won = answer(Some("k1"), json!({ "option_id": "yes", "digest": digest })).await;
    assert_eq!(won.status, 200, "{won:?}");
    assert_eq!((&won.json()["won"], &won.json()["option_id"]), (&json!(true), &json!("yes")));
    let again = answer(Some("k1"), json!({ "option_id": "yes", "digest": digest })).await;
    assert_eq!((again.status, again.json()), (200, won.json()));
    for key in [Some("k2"), None] {
        let lost = answer(key, json!({ "option_id": "no" })).await;
        assert_eq!((lost.status, lost.code().as_str()), (409, "already_resolved"));
        let lost = lost.json();
        for field in ["request_id", "state", "option_id", "resolved_by", "at", "cursor"] {
            assert_eq!(lost[field], won.json()[field], "{field}");
        }
        assert_eq!(lost["won"], false);
    }
    let shown = front.admin("GET", &format!("/v1/requests/{id}"), Value::Null).await.json();
    assert_eq!((&shown["state"], &shown["receipt"]["resolved_by"]["name"]), (&json!("answered"), &json!("test")));
    let missing = front.admin("POST", "/v1/requests/q_none/answer", json!({ "option_id": "yes" })).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "request_not_found"));
}

#[tokio::test]
async fn cancelled_request_is_reported_gone() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let run = prompt(&front, &session, "ask").await["run_id"].clone();
    let id = front.open_request(&session).await["request_id"].as_str().unwrap().to_owned();
    let cancelled = front.admin("POST", &format!("/v1/sessions/{session}/cancel"), json!({ "run_id": run })).await;
    assert_eq!((cancelled.status, &cancelled.json()["run_id"]), (202, &run));
    let late = front.admin("POST", &format!("/v1/requests/{id}/answer"), json!({ "option_id": "yes" })).await;
    assert_eq!((late.status, late.code().as_str()), (410, "withdrawn"));
    assert_eq!(late.json()["won"], false);
    follow(&front, &format!("/v1/sessions/{session}/events"), String::new(), "run_ended").await;
    let idle = front.admin("POST", &format!("/v1/sessions/{session}/cancel"), Value::Null).await;
    assert_eq!((idle.status, idle.code().as_str()), (404, "run_not_found"));
}

#[tokio::test]
async fn prompt_needs_text_or_content() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/prompt");
    for bad in [
        json!({}),
        json!({ "text": "" }),
        json!({ "text": " \n" }),
        json!({ "content": [] }),
        json!({ "content": ["x"] }),
        json!({ "content": [{}] }),
        json!({ "content": [{ "type": 7 }] }),
        json!({ "text": "x", "content": [{ "type": "text", "text": "x" }] }),
        json!({ "text": 7 }),
        json!({ "txt": "x" }),
        json!({ "content": vec![json!({ "type": "text", "text": "x" }); 257] }),
    ] {
        assert_eq!(front.admin("POST", &path, bad.clone()).await.status, 422, "{bad}");
    }
    let reply = front.admin("POST", &path, json!({ "content": [{ "type": "text", "text": "blocks" }] })).await;
    assert_eq!(reply.status, 202);
    let missing = front.admin("POST", "/v1/sessions/s_none/prompt", json!({ "text": "x" })).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "session_not_found"));
}

#[tokio::test]
async fn runtimes_start_by_preset_or_command_and_get_free_names() {
    let front = Front::new().await;
    let start = async |body: Value| front.admin("POST", "/v1/runtimes", body).await;
    assert_eq!(start(json!({ "preset": "fake" })).await.json()["runtime_id"], "fake");
    let second = start(json!({ "preset": "fake" })).await;
    assert_eq!(
        (&second.json()["runtime_id"], second.header("location")),
        (&json!("fake-2"), Some("/v1/runtimes/fake-2"))
    );
    let third = start(json!({ "dialect": "acp", "command": ["/usr/bin/agent", "--acp"], "cwd": "/tmp" })).await;
    assert_eq!(third.json()["runtime_id"], "agent");
    let taken = start(json!({ "preset": "fake", "id": "fake" })).await;
    assert_eq!((taken.status, taken.code().as_str()), (409, "runtime_exists"));
    for bad in [
        json!({}),
        json!({ "preset": "nonsense" }),
        json!({ "preset": "fake", "command": ["x"] }),
        json!({ "dialect": "acp", "cwd": "/" }),
        json!({ "dialect": "acp", "command": [], "cwd": "/" }),
        json!({ "dialect": "acp", "command": [""], "cwd": "/" }),
        json!({ "dialect": "acp", "command": ["x"], "connect": "ws://x", "cwd": "/" }),
        json!({ "dialect": "acp", "command": ["x"] }),
        json!({ "dialect": "acp", "command": ["x"], "cwd": "relative" }),
        json!({ "dialect": "acp", "command": ["x"], "cwd": "/", "id": "../x" }),
    ] {
        assert_eq!(start(bad.clone()).await.status, 422, "{bad}");
    }
    let all = front.admin("GET", "/v1/runtimes", Value::Null).await.json();
    assert_eq!(all["runtimes"].as_array().unwrap().len(), 3);
    assert_eq!(front.admin("DELETE", "/v1/runtimes/fake-2", Value::Null).await.status, 204);
    assert_eq!(front.admin("GET", "/v1/runtimes/fake-2", Value::Null).await.status, 404);
}

#[tokio::test]
async fn device_is_paired_renamed_and_revoked() {
    let front = Front::new().await;
    let code = front.admin("POST", "/v1/codes", json!({ "scopes": ["watch", "approve"], "ttl": 30 })).await;
    assert_eq!(code.status, 201);
    let body = json!({ "code": code.json()["code"], "name": "phone" }).to_string();
    let pair = async || front.send("POST", "/v1/pair", &[("content-type", "application/json")], &body).await;
    let paired = pair().await;
    assert_eq!((paired.status, &paired.json()["scopes"]), (200, &json!(["watch", "approve"])));
    let again = pair().await;
    assert_eq!((again.status, again.code().as_str()), (401, "bad_code"));
    let (token, id) = (paired.json()["token"].clone(), paired.json()["device_id"].clone());
    let (token, id) = (token.as_str().unwrap(), id.as_str().unwrap());
    let me = front.call(token, "GET", "/v1/me", Value::Null).await.json();
    assert_eq!((&me["device_id"], &me["name"]), (&json!(id), &json!("phone")));
    let path = format!("/v1/devices/{id}");
    assert_eq!(front.admin("PATCH", &path, json!({ "name": "old phone" })).await.json()["name"], "old phone");
    let all = front.admin("GET", "/v1/devices", Value::Null).await;
    assert_eq!(all.json()["devices"][1]["name"], "old phone");
    assert!(!all.body.contains(token) && !all.body.contains("sha256"));
    let rows = front.core.directory.log().store().devices().unwrap();
    assert!(rows.len() == 1 && !String::from_utf8_lossy(&rows[0]).contains(token), "kept, without its token");
    assert_eq!(front.admin("DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(front.admin("DELETE", &path, Value::Null).await.code(), "device_not_found");
    assert_eq!(front.call(token, "GET", "/v1/me", Value::Null).await.status, 401);
    assert!(front.core.directory.log().store().devices().unwrap().is_empty());
    assert_eq!(front.admin("DELETE", "/v1/devices/d_local", Value::Null).await.status, 409);
}

#[tokio::test]
async fn gateway_reports_its_health_and_capabilities() {
    let front = Front::new().await;
    let health = front.send("GET", "/healthz", &[], "").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let ready = front.send("GET", "/readyz", &[], "").await;
    assert_eq!(
        (ready.status, ready.json()),
        (200, json!({ "ready": true })),
        "strangers do not learn where the log ends"
    );
    let metrics = front.admin("GET", "/metrics", Value::Null).await;
    assert!(metrics.body.contains("plexus_connections ") && metrics.body.contains("plexus_http_requests_total"));
    let description = front.send("GET", "/openapi.json", &[], "").await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(description["paths"]["/v1/sessions/{id}/prompt"]["post"].is_object());
    let page = front.send("GET", "/", &[], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let tag = page.header("etag").unwrap().to_owned();
    let known = front.send("GET", "/", &[("if-none-match", &tag)], "").await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    let head = front.send("HEAD", "/healthz", &[], "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    front.stop.send(true).unwrap();
}

#[tokio::test]
async fn page_files_come_compressed_and_are_cached_by_name() {
    let front = Front::new().await;
    let get = async |method: &str, path: &str, more: &[(&str, &str)]| {
        let reply = front.send(method, path, more, "").await;
        let header = |name: &str| reply.header(name).unwrap_or("").to_owned();
        let (coding, kept, tag) = (header("content-encoding"), header("cache-control"), header("etag"));
        (reply.status, coding, kept, tag, header("vary"), header("content-length"))
    };
    let page = front.send("GET", "/", &[], "").await;
    assert_eq!((page.header("cache-control"), page.header("vary")), (Some("no-cache"), Some("accept-encoding")));
    let script =
        page.body.split('"').find(|part| part.starts_with("/assets/index-")).expect("the page names its script");
    let script = script.to_owned();
    let kept = "public, max-age=31536000, immutable";

    // Each form has its own tag and length, and varies by encoding; HEAD has the same headers.
    let mut tags = std::collections::HashSet::new();
    for (accept, coding) in [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("identity", ""),
        ("br;q=0.2, gzip", "gzip"),
        ("br;q=0, gzip;q=0", ""),
    ] {
        let asked = [("accept-encoding", accept)];
        let got = get("GET", &script, &asked).await;
        assert_eq!(
            (got.0, got.1.as_str(), got.2.as_str(), got.4.as_str()),
            (200, coding, kept, "accept-encoding"),
            "{accept}"
        );
        let head = get("HEAD", &script, &asked).await;
        assert_eq!(head, got, "{accept}");
        tags.insert((coding, got.3.clone()));
        let known = get("GET", &script, &[asked[0], ("if-none-match", &format!("\"other\", W/{}", got.3))]).await;
        assert_eq!(
            (known.0, known.1.as_str(), known.2.as_str(), &known.3, known.4.as_str()),
            (304, "", kept, &got.3, "accept-encoding")
        );
        let other = get("GET", &script, &[asked[0], ("if-none-match", "\"other\"")]).await;
        assert_eq!(other, got);
    }
    assert_eq!(tags.len(), 3, "a form, a tag: {tags:?}");
    // A compressed file has no path of its own, and a script of another version is not found.
    for path in [format!("{script}.br"), format!("{script}.gz"), "/assets/index-AAAAAAAA.js".into()] {
        let gone = front.admin("GET", &path, Value::Null).await;
        assert_eq!((gone.status, gone.header("cache-control")), (404, Some("no-store")), "{path}");
    }
    front.stop.send(true).unwrap();
}

#[tokio::test]
async fn session_is_renamed_and_archived_without_its_runtime() {
    let front = Front::new().await;
    let (session, other) = (front.session("fake").await, front.session("fake").await);
    let path = format!("/v1/sessions/{session}");
    let listed = async |query: &str| -> Vec<String> {
        let all = front.admin("GET", &format!("/v1/sessions{query}"), Value::Null).await;
        assert_eq!(all.status, 200, "{all:?}");
        let ids = all.json()["sessions"].as_array().unwrap().clone();
        ids.iter().map(|one| one["session_id"].as_str().unwrap().to_owned()).collect()
    };
    let edited = front.admin("PATCH", &path, json!({ "title": "  Mine  " })).await;
    assert_eq!((edited.status, &edited.json()["title"]), (200, &json!("Mine")));
    assert_eq!(front.admin("PATCH", &path, json!({})).await.json()["title"], "Mine", "what is absent stays");
    for bad in [
        json!({ "title": " " }),
        json!({ "title": "x".repeat(201) }),
        json!({ "archived": "yes" }),
        json!({ "name": "x" }),
    ] {
        assert_eq!(front.admin("PATCH", &path, bad.clone()).await.status, 422, "{bad}");
    }
    assert_eq!(front.admin("PATCH", &path, json!({ "archived": true })).await.json()["archived"], true);
    assert_eq!(listed("").await, [other.as_str()]);
    assert_eq!(listed("?archived=false").await, [other.as_str()]);
    assert_eq!(listed("?archived=true").await, [session.as_str()]);
    assert_eq!(listed("?archived=all").await.len(), 2);
    assert_eq!(front.admin("GET", "/v1/sessions?archived=x", Value::Null).await.code(), "bad_query");

    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    let refused = front.call(&watcher, "PATCH", &path, json!({ "title": "x" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "scope_missing"));
    let elsewhere = front.token(json!({ "scopes": ["watch", "prompt"], "sessions": [other] })).await;
    assert_eq!(front.call(&elsewhere, "PATCH", &path, json!({ "title": "x" })).await.code(), "session_not_found");

    // Also without its runtime, and while its task is ending.
    let (stopped, renamed) = tokio::join!(
        front.admin("DELETE", "/v1/runtimes/fake", Value::Null),
        front.admin("PATCH", &path, json!({ "title": "crossing" }))
    );
    assert_eq!((stopped.status, renamed.status, &renamed.json()["title"]), (204, 200, &json!("crossing")));
    for n in 0..3 {
        let title = format!("after {n}");
        let edited = front.admin("PATCH", &path, json!({ "title": title, "archived": false })).await.json();
        assert_eq!((&edited["title"], &edited["archived"]), (&json!(title), &json!(false)));
    }
    let (events, _) = follow(&front, &format!("{path}/events"), String::new(), "session_info_update").await;
    let zero: Vec<_> = events.iter().filter(|event| event["run_id"].as_str().unwrap().starts_with("r_0_")).collect();
    assert!(zero.iter().enumerate().all(|(n, event)| event["seq"] == n), "{zero:?}");
    let titles: Vec<_> = zero.iter().filter(|event| event["kind"] == "session_info_update").collect();
    assert_eq!(titles.last().unwrap()["event"]["title"], "after 2");
    let row = front.core.directory.log().store().sessions().unwrap();
    let row = row.into_iter().find(|entry| entry.row.session_id.as_str() == session).unwrap().row.state;
    assert!(String::from_utf8(row).unwrap().contains("after 2"), "kept for the next gateway");
    // The session comes back with its runtime and keeps its name.
    front.session("fake").await;
    prompt(&front, &session, "hello").await;
    assert_eq!(front.admin("GET", &path, Value::Null).await.json()["title"], "after 2");
}

#[tokio::test]
async fn run_is_repeated_with_the_same_prompt() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}");
    let restart = async |body: Value, key: &str| {
        let bearer = format!("Bearer {}", front.admin);
        let mut headers = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        if !key.is_empty() {
            headers.push(("idempotency-key", key));
        }
        front.send("POST", &format!("{path}/restart"), &headers, &body.to_string()).await
    };
    assert_eq!(restart(json!({}), "").await.code(), "run_not_found", "nothing was asked yet");
    let hanging = prompt(&front, &session, "hang").await["run_id"].clone();
    let waiting = prompt(&front, &session, "waits for its turn").await["run_id"].clone();
    let refused = restart(json!({ "run_id": waiting }), "").await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"));
    let again = restart(json!({}), "k1").await;
    assert_eq!((again.status, &again.json()["ahead"]), (202, &json!(1)));
    let second = again.json()["run_id"].clone();
    // The same key again, also with an explicit run.
    assert_eq!(restart(json!({ "run_id": hanging }), "k1").await.json()["run_id"], second);
    let (events, _) = follow(&front, &format!("{path}/events"), String::new(), "run_ended").await;
    let ended = events.iter().find(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!((&ended["run_id"], &ended["event"]["status"]), (&hanging, &json!("cancelled")));
    let asked = async |run: &Value| {
        let page = front.admin("GET", &format!("{path}/events?limit=5000"), Value::Null).await.json();
        let all = page["events"].as_array().unwrap().clone();
        let said = all.into_iter().filter(|event| event["run_id"] == *run && event["kind"] == "user_message_chunk");
        said.map(|event| event["event"]["content"].clone()).collect::<Vec<_>>()
    };
    until_so("the second run has its words", async || !asked(&second).await.is_empty()).await;
    assert_eq!(asked(&second).await, asked(&hanging).await);
    // The run hangs again and is cancelled; the queued one runs, and can be repeated after its end.
    front.admin("POST", &format!("{path}/cancel"), json!({ "run_id": second })).await;
    let idle = async || front.admin("GET", &path, Value::Null).await.json()["state"] == "idle";
    until_so("the session is idle", idle).await;
    let last = restart(Value::Null, "").await;
    assert_eq!(last.status, 422, "null is no body: {last:?}");
    let last = restart(json!({}), "").await.json()["run_id"].clone();
    until_so("the last run has its words", async || !asked(&last).await.is_empty()).await;
    assert_eq!(asked(&last).await, asked(&waiting).await, "the last run's words");
    // By its id too, although its first event is `queued`.
    let named = restart(json!({ "run_id": waiting }), "").await;
    assert_eq!(named.status, 202, "{named:?}");
    assert_eq!(restart(json!({ "run_id": "r_nothing" }), "").await.code(), "run_not_found");
    let zero = format!("r_0_{}", session.trim_start_matches("s_"));
    assert_eq!(restart(json!({ "run_id": zero }), "").await.code(), "prompt_not_kept");
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    assert_eq!(front.call(&watcher, "POST", &format!("{path}/restart"), json!({})).await.code(), "scope_missing");
}

#[tokio::test]
async fn runtime_restarts_and_its_sessions_go_on() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}");
    prompt(&front, &session, "hang").await;
    let (one, two) = tokio::join!(
        front.admin("POST", "/v1/runtimes/fake/restart", Value::Null),
        front.admin("POST", "/v1/runtimes/fake/restart", Value::Null)
    );
    assert_eq!((one.status, two.status), (200, 200), "one after the other");
    let open = async {
        loop {
            if front.admin("GET", &path, Value::Null).await.json()["state"] == "idle" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, open).await.expect("the session was not opened again");
    let (events, _) = follow(&front, &format!("{path}/events"), String::new(), "run_ended").await;
    assert!(events.iter().any(|event| event["event"]["status"] == "cancelled"), "what it ran is over");
    prompt(&front, &session, "hello").await;
    let logs = front.admin("GET", "/v1/runtimes/fake/logs", Value::Null).await;
    assert_eq!((logs.status, logs.json()), (200, json!({ "lines": [] })));
    for (method, path) in [("POST", "/v1/runtimes/nothing/restart"), ("GET", "/v1/runtimes/nothing/logs")] {
        assert_eq!(front.admin(method, path, Value::Null).await.code(), "runtime_not_found");
        let prompter = front.token(json!({ "scopes": ["watch", "prompt", "approve"] })).await;
        let refused = front.call(&prompter, method, &path.replace("nothing", "fake"), Value::Null).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "scope_missing"));
    }
}

#[tokio::test]
async fn session_exports_in_three_formats() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let evil = "<script>alert(1)</script>\u{202e}";
    prompt(&front, &session, evil).await;
    let path = format!("/v1/sessions/{session}");
    let (_, next) = follow(&front, &format!("{path}/events"), String::new(), "run_ended").await;
    let export = async |format: &str| front.admin("GET", &format!("{path}/export?format={format}"), Value::Null).await;
    // The body is chunked, with the lengths between the pieces.
    let text = |reply: &front::Reply| {
        assert_eq!((reply.status, reply.header("transfer-encoding")), (200, Some("chunked")), "{reply:?}");
        let (mut rest, mut text) = (reply.body.as_str(), String::new());
        while let Some((length, more)) = rest.split_once("\r\n") {
            let length = usize::from_str_radix(length, 16).unwrap();
            text += &more[..length];
            rest = &more[length + 2..];
        }
        text
    };
    let ndjson = export("ndjson").await;
    let lines: Vec<Value> = text(&ndjson).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let page = front.admin("GET", &format!("{path}/events?limit=5000"), Value::Null).await.json();
    assert_eq!((json!(lines), &json!(next)), (page["events"].clone(), &page["next"]), "the events, as they are");
    let file = |reply: &front::Reply, ending: &str| {
        let want = format!("attachment; filename=\"{session}.{ending}\"");
        assert_eq!(reply.header("content-disposition"), Some(want.as_str()));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    };
    file(&ndjson, "ndjson");
    let html = export("html").await;
    file(&html, "html");
    assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(html.header("content-security-policy").unwrap().starts_with("sandbox; default-src 'none'"), "{html:?}");
    let page = text(&html);
    assert!(page.ends_with("</html>\n") && !page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains('\u{202e}') && page.contains("\\u{202e}"), "{page}");
    let md = export("md").await;
    file(&md, "md");
    assert!(text(&md).contains("> \\<script>alert(1)\\</script>\\u{202e}"), "{}", text(&md));
    assert_eq!(export("pdf").await.code(), "bad_query");
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    assert_eq!(front.call(&watcher, "GET", &format!("{path}/export"), Value::Null).await.status, 200);
    let other = front.token(json!({ "scopes": ["watch"], "sessions": ["s_other"] })).await;
    assert_eq!(front.call(&other, "GET", &format!("{path}/export"), Value::Null).await.code(), "session_not_found");
}

#[tokio::test]
async fn deleted_session_is_gone() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    prompt(&front, &session, "hello").await;
    let path = format!("/v1/sessions/{session}");
    follow(&front, &format!("{path}/events"), String::new(), "run_ended").await;
    assert_eq!(front.admin("DELETE", &path, Value::Null).await.status, 204);
    for path in [path.clone(), format!("{path}/events"), format!("{path}/snapshot")] {
        assert_eq!(front.admin("GET", &path, Value::Null).await.code(), "session_not_found", "{path}");
    }
}

#[tokio::test]
async fn deleting_sessions_fails_no_other_client_and_is_final() {
    let front = Arc::new(Front::new().await);
    let stays = front.session("fake").await;
    let mut gone = Vec::new();
    for n in 0..12 {
        let session = front.session("fake").await;
        prompt(&front, &session, if n % 2 == 0 { "hang" } else { "some words to be found" }).await;
        gone.push(session);
    }
    let log = front.core.directory.log().clone();
    // All at once: deletions, prompts in deleted sessions, and work in a session that stays.
    let mut all = tokio::task::JoinSet::new();
    for session in gone.clone() {
        for deletes in [true, false] {
            let (front, path) = (Arc::clone(&front), format!("/v1/sessions/{session}"));
            all.spawn(async move {
                if deletes {
                    assert_eq!(front.admin("DELETE", &path, Value::Null).await.status, 204);
                    return;
                }
                for _ in 0..10 {
                    let path = format!("{path}/prompt");
                    let reply = front.admin("POST", &path, json!({ "text": "hang" })).await;
                    assert!(matches!(reply.status, 200..=299 | 404 | 409), "{reply:?}");
                }
            });
        }
    }
    for n in 0..60 {
        let path = format!("/v1/sessions/{stays}/prompt");
        let reply = front.admin("POST", &path, json!({ "text": format!("word{n}") })).await;
        assert!(reply.status < 300 || reply.code() == "queue_full", "{reply:?}");
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
    for session in &gone {
        let path = format!("/v1/sessions/{session}");
        assert_eq!(front.admin("GET", &path, Value::Null).await.code(), "session_not_found");
        let prompted = front.admin("POST", &format!("{path}/prompt"), json!({ "text": "hi" })).await;
        assert_eq!(prompted.code(), "session_not_found");
    }
    let listed = front.admin("GET", "/v1/sessions", Value::Null).await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    // The state for the next gateway.
    let kept = log.store().sessions().unwrap();
    assert_eq!(kept.iter().map(|entry| entry.row.session_id.as_str()).collect::<Vec<_>>(), [stays.as_str()]);
    assert!(log.store().search("found", 9).unwrap().is_empty());
}

#[tokio::test]
async fn requests_are_filtered_by_grant_before_the_list_is_cut() {
    let front = Front::new().await;
    let (mine, other) = (front.session("mine").await, front.session("other").await);
    for session in [&mine, &other] {
        prompt(&front, session, "ask").await;
        front.open_request(session).await;
    }
    // More requests of the other session than a page has, all newer.
    let log = front.core.directory.log();
    let id = front.open_request(&other).await["request_id"].as_str().unwrap().to_owned();
    let like = log.store().request(&id.parse().unwrap()).unwrap().unwrap();
    let rows: Vec<_> = (0..2500)
        .map(|n| {
            let copy = format!("q_{n:026}");
            let body = String::from_utf8(like.body.clone()).unwrap().replace(&id, &copy);
            RequestRow { request_id: copy.parse().unwrap(), body: body.into_bytes(), ..like.clone() }
        })
        .collect();
    let origin =
        Origin { session_id: other.parse().unwrap(), runtime_id: "other".parse().unwrap(), dialect: "acp".into() };
    let rows = move |_| CommitRows { requests: rows, ..CommitRows::default() };
    let entry = CommitEntry {
        origin: Arc::new(origin),
        events: Vec::new(),
        rows: Some(Box::new(rows)),
        on_stored: None,
        received: None,
        sync: false,
    };
    log.commit(entry).await.unwrap();

    let phone = front.token(json!({ "scopes": ["watch", "approve"], "sessions": [mine] })).await;
    let seen = front.call(&phone, "GET", "/v1/requests", Value::Null).await.json();
    assert_eq!(seen["requests"].as_array().unwrap().len(), 1, "{seen}");
    assert_eq!((&seen["requests"][0]["session_id"], &seen["next"]), (&json!(mine), &Value::Null));

    let (mut path, mut all) = ("/v1/requests?state=open".to_owned(), Vec::new());
    loop {
        let page = front.admin("GET", &path, Value::Null).await.json();
        let some = page["requests"].as_array().unwrap();
        assert!((1..=1000).contains(&some.len()));
        all.extend(some.iter().map(|request| request["request_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/requests?state=open&before={next}");
    }
    assert_eq!((all.len(), all.iter().collect::<std::collections::BTreeSet<_>>().len()), (2502, 2502));
    let few = front.admin("GET", "/v1/requests?limit=3", Value::Null).await.json();
    assert_eq!((few["requests"].as_array().unwrap().len(), few["next"].is_string()), (3, true));
    for bad in ["limit=x", "before=-1", "before=k:1"] {
        assert_eq!(front.admin("GET", &format!("/v1/requests?{bad}"), Value::Null).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn answer_key_belongs_to_one_device_and_one_answer() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let grant = json!({ "scopes": ["watch", "approve"] });
    let (desk, phone) = (front.token(grant.clone()).await, front.token(grant).await);
    let answer = async |token: &str, request: &Value, option: &str, key: &str| {
        let bearer = format!("Bearer {token}");
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
        let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
        front.send("POST", &path, &headers, &json!({ "option_id": option }).to_string()).await
    };
    for (mine, theirs) in [("allow_once", "reject_once"), ("reject_once", "allow_once")] {
        let run = prompt(&front, &session, "ask").await["run_id"].clone();
        let request = front.open_request(&session).await;
        let option = |kind: &str| {
            let options = request["options"].as_array().unwrap();
            options.iter().find(|option| option["kind"] == kind).unwrap()["id"].as_str().unwrap().to_owned()
        };
        let (mine, theirs) = (option(mine), option(theirs));
        let won = answer(&desk, &request, &mine, "key").await;
        assert_eq!((won.status, &won.json()["won"]), (200, &json!(true)), "{won:?}");
        let again = answer(&desk, &request, &mine, "key").await;
        assert_eq!((again.status, again.json()), (200, won.json()), "the same once more");
        for said in [&mine, &theirs] {
            let lost = answer(&phone, &request, said, "key").await;
            assert_eq!((lost.status, lost.code().as_str()), (409, "already_resolved"), "{lost:?}");
            assert_eq!((&lost.json()["won"], &lost.json()["option_id"]), (&json!(false), &json!(mine)), "{lost:?}");
        }
        let other = answer(&desk, &request, &theirs, "key").await;
        assert_eq!((other.status, other.code().as_str()), (422, "idempotency_key_reused"), "{other:?}");
        let late = answer(&desk, &request, &mine, "another").await;
        assert_eq!((late.status, &late.json()["won"]), (409, &json!(false)), "{late:?}");
        for key in ["two words", &"k".repeat(129)] {
            assert_eq!(answer(&desk, &request, &mine, key).await.code(), "bad_idempotency_key", "{key:?}");
        }
        let path = format!("/v1/sessions/{session}");
        let over = async || front.admin("GET", &path, Value::Null).await.json()["run_id"] != run;
        until_so("the run is over", over).await;
    }
}

#[tokio::test]
async fn folder_outside_of_the_runtimes_needs_an_administrator() {
    let front = Front::new().await;
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(own.path().join("inside")).unwrap();
    std::os::unix::fs::symlink(dir.path(), own.path().join("out")).unwrap();
    let spec = json!({ "id": "narrow", "dialect": "acp", "command": ["fake"], "cwd": own.path() });
    assert_eq!(front.admin("POST", "/v1/runtimes", spec).await.status, 201);
    let prompter = front.token(json!({ "scopes": ["watch", "prompt", "approve"] })).await;
    let open = async |token: &str, cwd: Value| {
        front.call(token, "POST", "/v1/sessions", json!({ "runtime_id": "narrow", "cwd": cwd })).await
    };
    for cwd in [json!(own.path()), json!(own.path().join("inside"))] {
        assert_eq!(open(&prompter, cwd.clone()).await.status, 201, "{cwd}");
    }
    for cwd in [
        json!("/"),
        json!("/etc"),
        json!(dir.path()),
        json!(own.path().join("out")),
        json!(own.path().join("inside/../..")),
        json!(own.path().join("none/../..")),
    ] {
        let refused = open(&prompter, cwd.clone()).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "folder_not_allowed"), "{cwd} {refused:?}");
    }
    assert_eq!(open(&front.admin, json!(dir.path())).await.status, 201);
    // A folder that does not exist is refused.
    std::fs::write(own.path().join("file"), "x").unwrap();
    for token in [&prompter, &front.admin] {
        for cwd in [own.path().join("none"), own.path().join("file"), own.path().join("file/below")] {
            let refused = open(token, json!(cwd)).await;
            assert_eq!((refused.status, refused.code().as_str()), (422, "invalid"), "{cwd:?} {refused:?}");
        }
        let refused = open(token, json!(format!("{}/a\0b", own.path().display()))).await;
        assert!(matches!(refused.status, 403 | 422), "{refused:?}");
    }
}

/// Reads a session backwards, page by page, to its beginning.
async fn back(front: &Front, path: &str, query: &str) -> Vec<Value> {
    let (mut pages, mut before) = (Vec::new(), String::from("now"));
    loop {
        let page =
            front.admin("GET", &format!("{path}?before={}{query}", before.replace('+', "%2B")), Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        let Value::Array(events) = page["events"].clone() else { panic!("{page}") };
        pages.push(events);
        match page["previous"].as_str() {
            Some(previous) => previous.clone_into(&mut before),
            None => break,
        }
        assert!(pages.len() < 2000, "it does not end");
    }
    pages.into_iter().rev().flatten().collect()
}

#[tokio::test]
async fn session_history_is_read_backwards_and_merged() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/events");
    let mut after = String::new();
    // The last message is longer than a part of a text.
    let long = "ab\u{e9}\n\"\u{1f600}".repeat(60_000);
    for words in ["hello there", "again", &long] {
        prompt(&front, &session, words).await;
        (_, after) = follow(&front, &path, after, "run_ended").await;
    }
    let (plain, _) = follow(&front, &path, String::new(), "run_ended").await;
    let plain = {
        let page = front.admin("GET", &format!("{path}?limit=5000"), Value::Null).await.json();
        assert!(page["events"].as_array().unwrap().len() >= plain.len());
        page["events"].as_array().unwrap().clone()
    };
    for limit in [1, 3, 500] {
        assert_eq!(back(&front, &path, &format!("&limit={limit}")).await, plain, "{limit}");
    }
    for query in ["&merge=true&limit=1", "&merge=true&max_bytes=1", "&merge=true"] {
        let items = back(&front, &path, query).await;
        assert_eq!(text(&items), text(&plain), "{query}");
        let last = |items: &[Value]| items.last().unwrap()["cursor"].clone();
        assert_eq!(last(&items), last(&plain), "{query}");
    }
    let items = back(&front, &path, "&merge=true").await;
    let said: Vec<_> = items.iter().filter(|item| item["kind"] == "agent_message_chunk").collect();
    let first = said[0];
    assert_eq!((&first["merged"], &first["event"]["content"]["text"]), (&json!(2), &json!("hello there")));
    assert_eq!(first["seq_last"].as_u64().unwrap(), first["seq"].as_u64().unwrap() + 1);
    let chunks: Vec<_> = plain.iter().filter(|event| event["kind"] == "agent_message_chunk").take(2).collect();
    assert_eq!((&first["cursor_first"], &first["cursor"]), (&chunks[0]["cursor"], &chunks[1]["cursor"]));
    assert_eq!((&first["at"], &first["at_last"]), (&chunks[0]["at"], &chunks[1]["at"]));
    // Forwards, and from the middle of the long text.
    let (mut forth, mut next) = (Vec::new(), String::new());
    loop {
        let query = format!("{path}?merge=true&max_bytes=70000&after={}", next.replace('+', "%2B"));
        let page = front.admin("GET", &query, Value::Null).await;
        assert!(page.body.len() < 400_000, "{}", page.body.len());
        let page = page.json();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        forth.extend(events.iter().cloned());
        page["next"].as_str().unwrap().clone_into(&mut next);
    }
    assert_eq!(text(&forth), text(&plain));
    assert!(forth.iter().any(|item| item["cut"]["after"].as_u64() > Some(0)), "the long one is cut");
}

#[tokio::test]
async fn history_read_backwards_is_of_one_session_and_no_stream() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/events");
    for query in [
        "/v1/events?before=now".to_owned(),
        format!("{path}?before=now&after=now"),
        format!("{path}?merge=yes"),
        format!("{path}?max_bytes=x"),
    ] {
        let reply = front.admin("GET", &query, Value::Null).await;
        assert_eq!((reply.status, reply.code()), (400, "bad_query".into()), "{query}");
    }
    for bad in ["x", "k3f9:1%2Bx", "k3f9:1%2B"] {
        let reply = front.admin("GET", &format!("{path}?before={bad}"), Value::Null).await;
        assert_eq!((reply.status, reply.code()), (400, "bad_cursor".into()), "{bad}");
    }
    let page = front.admin("GET", &format!("{path}?before=another:5"), Value::Null).await.json();
    assert_eq!((&page["resume"], &page["snapshot"]["session"]["session_id"]), (&json!("reset"), &json!(session)));
    let page = front.admin("GET", &format!("/v1/events?before=now&session={session}"), Value::Null).await;
    assert_eq!(page.status, 200);
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_none_is_missed() {
    let front = Front::new().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(front.session("fake").await);
    }
    let whole = front.admin("GET", "/v1/sessions", Value::Null).await.json();
    assert_eq!((whole["sessions"].as_array().unwrap().len(), whole.get("next")), (7, None));
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    for page in 0.. {
        let list = front.admin("GET", &format!("/v1/sessions?limit=2&cursor={cursor}"), Value::Null).await.json();
        listed.extend(
            list["sessions"].as_array().unwrap().iter().map(|one| one["session_id"].as_str().unwrap().to_owned()),
        );
        if page == 1 {
            // A session that is not listed yet is updated and moves to the front.
            let late = made.iter().find(|id| !listed.contains(id)).unwrap();
            prompt(&front, late, "news").await;
            follow(&front, &format!("/v1/sessions/{late}/events"), String::new(), "run_ended").await;
        }
        match list["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert!(made.iter().all(|id| listed.contains(id)), "{made:?} {listed:?}");
    let (newest, omitted) = front.core.directory.newest(2, |_| true);
    assert_eq!((newest.len(), omitted), (2, 5));
    let refused = front.admin("GET", "/v1/sessions?cursor=x", Value::Null).await;
    assert_eq!((refused.status, refused.code()), (400, "bad_query".into()));
}

#[tokio::test]
async fn field_that_does_not_fit_is_refused_before_the_agent_gets_it() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let prompt = json!({ "text": "ask field" });
    assert_eq!(front.admin("POST", &format!("/v1/sessions/{session}/prompt"), prompt).await.status, 202);
    let request = front.open_request(&session).await;
    let question = &request["subject"]["questions"][0];
    let fits = json!({ "number": "integer", "least": 1.0, "most": 9.0 });
    assert_eq!((&question["id"], &question["field"], &question["fits"]), (&json!("answer"), &json!("count"), &fits));
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    for (answer, code) in [
        (json!({ "value": "many" }), "answer_unfit"),
        (json!({ "value": "0" }), "answer_unfit"),
        (json!({ "value": "3.5" }), "answer_unfit"),
        (json!({ "value": "" }), "answer_unfit"),
        (json!({ "answers": { "answer": ["10"] } }), "answer_unfit"),
        (json!({ "answers": { "answer": [" "] } }), "answer_missing"),
    ] {
        let reply = front.admin("POST", &path, answer.clone()).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, code), "{answer}");
        assert_eq!(reply.json()["field"], "count", "{answer}");
    }
    assert_eq!(front.open_request(&session).await["request_id"], request["request_id"], "it is asked still");
    let reply = front.admin("POST", &path, json!({ "value": "7" })).await;
    assert_eq!((reply.status, &reply.json()["value"]), (200, &json!("7")));
}
