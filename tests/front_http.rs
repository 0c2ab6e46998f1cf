//! The HTTP surface, over real sockets: what a client can do, and what it is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::front::{Front, LONG};
use serde_json::{Value, json};

async fn prompt(front: &Front, session: &str, text: &str) -> Value {
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": text })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()
}

/// Long polls until an event of this kind has come; all that came, and the cursor after it.
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
async fn a_prompt_is_read_back_by_pages_by_polls_and_by_snapshot() {
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
async fn a_cursor_that_cannot_be_resumed_brings_a_snapshot_and_a_bad_one_is_refused() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    prompt(&front, &session, "hello").await;
    let path = format!("/v1/sessions/{session}/events");
    let (_, next) = follow(&front, &path, String::new(), "run_ended").await;
    let (epoch, _) = next.split_once(':').unwrap();
    for (cursor, verdict) in [("other:1".to_owned(), "reset"), (format!("{epoch}:99999999"), "ahead")] {
        // No wait: what was lost cannot be waited for.
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
async fn a_long_poll_ends_with_news_with_its_time_with_a_revocation_and_with_the_gateway() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let reply = front.admin("POST", "/v1/devices", json!({ "name": "phone", "scopes": ["watch"] })).await.json();
    let (token, device) = (reply["token"].as_str().unwrap(), reply["device_id"].as_str().unwrap());
    let path = format!("/v1/sessions/{session}/events?after=now&wait=60");

    let (page, _) = tokio::join!(front.call(token, "GET", &path, Value::Null), async {
        // Before or after the poll began to wait; if before, `now` is past it and the next one is waited for.
        for _ in 0..200 {
            prompt(&front, &session, "news").await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            if front.state.directory.sessions()[0].queue.is_empty() {
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
        // Connected at the least: the request is then in time for the drain.
        while plexus::metrics::metrics().subscribers.with_label_values(&["poll"]).get() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        front.stop.send(true).unwrap();
    });
    assert_eq!(page.status, 200, "{page:?}");
    tokio::time::timeout(LONG, front.served).await.expect("serving ends").unwrap();
}

#[tokio::test]
async fn the_first_answer_wins_the_same_key_is_the_same_answer_and_losers_learn_who_won() {
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
async fn a_cancelled_request_is_gone_and_says_so() {
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
async fn a_prompt_is_text_or_content_and_never_nothing() {
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
async fn runtimes_start_by_preset_or_by_command_and_names_are_found_for_them() {
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
async fn a_device_is_paired_renamed_and_revoked() {
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
    let rows = front.state.directory.log().store().devices().unwrap();
    assert!(rows.len() == 1 && !String::from_utf8_lossy(&rows[0]).contains(token), "kept, without its token");
    assert_eq!(front.admin("DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(front.admin("DELETE", &path, Value::Null).await.code(), "device_not_found");
    assert_eq!(front.call(token, "GET", "/v1/me", Value::Null).await.status, 401);
    assert!(front.state.directory.log().store().devices().unwrap().is_empty());
    assert_eq!(front.admin("DELETE", "/v1/devices/d_local", Value::Null).await.status, 409);
}

#[tokio::test]
async fn the_gateway_says_how_it_is_and_what_it_can() {
    let front = Front::new().await;
    let health = front.send("GET", "/healthz", &[], "").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let ready = front.send("GET", "/readyz", &[], "").await;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &json!(true)));
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
async fn a_session_is_named_and_put_away_also_when_its_runtime_is_gone() {
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

    // Without its runtime, and while its task is on the way out, too.
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
    let row = front.state.directory.log().store().sessions().unwrap();
    let row = row.into_iter().find(|entry| entry.row.session_id.as_str() == session).unwrap().row.state;
    assert!(String::from_utf8(row).unwrap().contains("after 2"), "kept for the next gateway");
    // It comes back with its runtime, and its name with it.
    front.session("fake").await;
    prompt(&front, &session, "hello").await;
    assert_eq!(front.admin("GET", &path, Value::Null).await.json()["title"], "after 2");
}

#[tokio::test]
async fn a_forgotten_session_is_no_more() {
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
