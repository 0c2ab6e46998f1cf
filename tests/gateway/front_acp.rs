//! Edge cases of ACP over HTTP: messages that no library would send, and clients that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::acp_http::{Raw, Stream, notification, request};
use common::front::{Front, LONG};
use plexus::frontends::acp::Connections;
use plexus::router::fanout::STALL;
use plexus::router::{GateLimits, ListenLimits};
use serde_json::{Value, json};

async fn begin(front: &Front) -> Raw {
    Raw::begin(&format!("http://{}", front.address), &front.admin).await
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn acp_http_refuses_what_does_not_belong_with_its_code() {
    let front = Front::new().await;
    let session = front.session("one").await;
    let raw = begin(&front).await;
    let bearer = format!("Bearer {}", front.admin);
    let auth = ("authorization", bearer.as_str());
    let here = ("acp-connection-id", raw.id.as_str());
    let of = ("acp-session-id", session.as_str());
    let json = ("content-type", "application/json");
    let stream = ("accept", "text/event-stream");
    let hello = request(json!(1), "initialize", json!({ "protocolVersion": 1 })).to_string();
    let list = request(json!(1), "session/list", json!({})).to_string();
    let work = request(json!(1), "session/prompt", prompt(&session, "x")).to_string();
    let bare = request(json!(1), "session/prompt", json!({})).to_string();
    let unnamed = r#"{"jsonrpc":"2.0","id":null,"method":"initialize","params":{}}"#;
    let huge = format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{}"}}"#, "x".repeat(16 << 20));
    let deep = format!(r#"{{"params":{}{}}}"#, "[".repeat(80), "]".repeat(80));
    type Case<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str, u16, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("no token", "POST", "/acp", vec![json], &hello, 401, "unauthorized"),
        ("no connection", "POST", "/acp", vec![auth, json], &list, 400, "connection_missing"),
        (
            "unknown connection",
            "POST",
            "/acp",
            vec![auth, json, ("acp-connection-id", "x")],
            &list,
            404,
            "connection_not_found",
        ),
        ("two connections", "POST", "/acp", vec![auth, json, here, here], &list, 400, "bad_header"),
        ("no connection's name", "POST", "/acp", vec![auth, json, ("acp-connection-id", "")], &list, 400, "bad_header"),
        ("a second hello", "POST", "/acp", vec![auth, json, here], &hello, 400, "initialized"),
        ("hello without an id", "POST", "/acp", vec![auth, json], unnamed, 400, "bad_message"),
        ("no JSON by its type", "POST", "/acp", vec![auth, ("content-type", "text/plain")], &hello, 415, "not_json"),
        ("no JSON", "POST", "/acp", vec![auth, json, here], "{", 400, "bad_json"),
        ("nothing", "POST", "/acp", vec![auth, json, here], "", 400, "body_missing"),
        ("deep JSON", "POST", "/acp", vec![auth, json, here], &deep, 400, "too_deep"),
        ("a huge message", "POST", "/acp", vec![auth, json, here], &huge, 413, "too_large"),
        ("no session", "POST", "/acp", vec![auth, json, here], &work, 400, "session_missing"),
        ("no session at all", "POST", "/acp", vec![auth, json, here], &bare, 400, "session_missing"),
        (
            "two sessions",
            "POST",
            "/acp",
            vec![auth, json, here, ("acp-session-id", "s_2")],
            &work,
            400,
            "session_mismatch",
        ),
        ("no runtime", "POST", "/acp/none", vec![auth, json], &hello, 404, "runtime_not_found"),
        ("no stream wanted", "GET", "/acp", vec![auth, here], "", 406, "not_acceptable"),
        (
            "another kind of stream",
            "GET",
            "/acp",
            vec![auth, here, ("accept", "application/json")],
            "",
            406,
            "not_acceptable",
        ),
        ("a stream of nothing", "GET", "/acp", vec![auth, stream], "", 400, "connection_missing"),
        (
            "a stream of nobody",
            "GET",
            "/acp",
            vec![auth, stream, ("acp-connection-id", "x")],
            "",
            404,
            "connection_not_found",
        ),
        (
            "no session's name",
            "GET",
            "/acp",
            vec![auth, stream, here, ("acp-session-id", "a b")],
            "",
            404,
            "session_not_found",
        ),
        ("no cursor", "GET", "/acp", vec![auth, stream, here, of, ("last-event-id", "x")], "", 400, "bad_cursor"),
        ("no number", "GET", "/acp", vec![auth, stream, here, ("last-event-id", "a:1")], "", 400, "bad_cursor"),
        (
            "another log",
            "GET",
            "/acp",
            vec![auth, stream, here, of, ("last-event-id", "other:1")],
            "",
            409,
            "resume_reset",
        ),
        ("the end of nothing", "DELETE", "/acp", vec![auth], "", 400, "connection_missing"),
        (
            "the end of nobody",
            "DELETE",
            "/acp",
            vec![auth, ("acp-connection-id", "x")],
            "",
            404,
            "connection_not_found",
        ),
        ("another method", "PUT", "/acp", vec![auth], "", 405, "method_not_allowed"),
    ];
    for (what, method, path, headers, body, status, code) in cases {
        let reply = front.send(method, path, &headers, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{what}: {reply:?}");
    }
    // Batches, and JSON that is no message, get a JSON-RPC error.
    for body in [format!("[{list}]"), "[]".into(), "7".into(), r#"{"jsonrpc":"2.0","method":7}"#.into()] {
        let reply = front.send("POST", "/acp", &[auth, json, here], &body).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
        assert!(reply.head.contains("content-type: application/json"), "{reply:?}");
        assert_eq!((&reply.json()["id"], &reply.json()["error"]["code"]), (&Value::Null, &json!(-32600)), "{body}");
    }
    // A response to a request of another session.
    let other = front.session("one").await;
    front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": "ask" })).await;
    let asked = front.open_request(&session).await;
    let answer =
        json!({ "jsonrpc": "2.0", "id": asked["request_id"], "result": { "outcome": { "outcome": "cancelled" } } });
    let reply = raw.post(Some(&other), answer).await;
    assert_eq!((reply.status, reply.body["code"].as_str()), (400, Some("session_mismatch")), "{reply:?}");
    // The connection still works.
    let mut stream = raw.stream(None, None).await;
    raw.ask(None, "still", "session/list", json!({})).await;
    assert!(stream.until("still").await.last().unwrap().json["result"]["sessions"].is_array());
}

#[tokio::test]
async fn acp_http_returns_ids_unchanged_and_accepts_unasked_responses() {
    let front = Front::new().await;
    let raw = begin(&front).await;
    let mut stream = raw.stream(None, None).await;
    for id in [json!("text"), json!(""), json!(0), json!(-1), json!(1.5), json!(9_007_199_254_740_993_u64)] {
        assert_eq!(raw.post(None, request(id.clone(), "session/list", json!({}))).await.status, 202);
        let came = stream.next().await.unwrap();
        assert_eq!((&came.json["id"], came.json["result"].is_object()), (&id, true), "{came:?}");
    }
    // The same id twice, one after the other and at once: all are answered.
    for _ in 0..2 {
        raw.ask(None, "twice", "session/list", json!({})).await;
    }
    stream.until("twice").await;
    stream.until("twice").await;
    for nothing in [json!("q_none"), json!(7), json!(null), json!({}), json!([])] {
        let reply = raw.post(None, json!({ "jsonrpc": "2.0", "id": nothing, "result": {} })).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    assert_eq!(raw.post(None, notification("no/such", json!({}))).await.status, 202);
    raw.ask(None, "unknown", "no/such", json!({})).await;
    let came = stream.until("unknown").await;
    assert_eq!(came.last().unwrap().json["error"]["code"], -32601);
}

#[tokio::test]
async fn acp_http_client_without_a_stream_is_told_and_loses_nothing() {
    let front = Front::new().await;
    let raw = begin(&front).await;
    let mut taken = 0;
    let refused = loop {
        let reply = raw.post(None, request(json!(taken), "session/list", json!({}))).await;
        if reply.status != 202 {
            break reply;
        }
        taken += 1;
        assert!(taken < 10_000, "there is no end to it");
    };
    assert_eq!((refused.status, refused.body["code"].as_str()), (429, Some("stream_not_open")), "{refused:?}");
    assert!(refused.retry_after.is_some());
    // Notifications are accepted anyway: a cancel must always get through.
    assert_eq!(raw.post(None, notification("no/such", json!({}))).await.status, 202);
    let mut stream = raw.stream(None, None).await;
    for id in 0..taken {
        assert_eq!(stream.next().await.unwrap().json["id"], id);
    }
    raw.ask(None, "again", "session/list", json!({})).await;
    stream.until("again").await;
}

#[tokio::test]
async fn acp_http_stream_repeats_what_the_client_does_not_have() {
    let front = Front::new().await;
    let raw = begin(&front).await;
    let mut stream = raw.stream(None, None).await;
    let mut seen = Vec::new();
    for id in ["a", "b", "c"] {
        raw.ask(None, id, "session/list", json!({})).await;
        seen.extend(stream.until(id).await);
    }
    drop(stream);
    raw.ask(None, "d", "session/list", json!({})).await;
    let last = seen[0].id.clone();
    let mut stream = raw.stream(None, last.as_deref()).await;
    let again = stream.until("d").await;
    let ids: Vec<_> = again.iter().map(|message| message.json["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["b", "c", "d"]);
    assert_eq!(again[..2], seen[1..]);
}

#[tokio::test]
async fn acp_http_newest_stream_replaces_the_one_before() {
    let front = Front::new().await;
    let session = front.session("one").await;
    let raw = begin(&front).await;
    let mut own = raw.stream(None, None).await;
    let (mut first, _) = raw.attach(&session, None).await;
    let mut own_again = raw.stream(None, None).await;
    assert_eq!(own.next().await, None, "the one before ends properly");
    let mut second = raw.stream(Some(&session), None).await;
    assert_eq!(first.next().await, None);
    raw.ask(None, "list", "session/list", json!({})).await;
    own_again.until("list").await;
    raw.ask(Some(&session), "work", "session/prompt", prompt(&session, "hello")).await;
    let said: String = second.until("work").await.iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(said, "hello");
}

#[tokio::test]
async fn acp_http_session_loaded_again_is_sent_whole() {
    let front = Front::new().await;
    let session = front.session("one").await;
    let raw = begin(&front).await;
    let (mut stream, _) = raw.attach(&session, None).await;
    raw.ask(Some(&session), "work", "session/prompt", prompt(&session, "hello")).await;
    let last = stream.until("work").await.last().unwrap().id.clone();
    for last in [None, last.as_deref()] {
        drop(stream);
        // The stream first: messages written to a broken stream are lost to it.
        stream = raw.stream(Some(&session), last).await;
        let load = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
        raw.ask(Some(&session), "again", "session/load", load).await;
        let said: String = stream.until("again").await.iter().map(|message| message.text().to_owned()).collect();
        assert_eq!(said, "hello", "{last:?}");
    }
}

#[tokio::test]
async fn acp_http_connection_belongs_to_its_device_and_ends_with_it() {
    let front = Front::new().await;
    let session = front.session("one").await;
    let grant = json!({ "scopes": ["watch", "prompt"] });
    let (mine, other) = (front.token(grant.clone()).await, front.token(grant).await);
    let url = format!("http://{}", front.address);
    let raw = Raw::begin(&url, &mine).await;
    let mut own = raw.stream(None, None).await;
    let (mut stream, _) = raw.attach(&session, None).await;
    let stranger = Raw { token: other, ..Raw::stranger(&url, "") };
    let here = [("acp-connection-id", raw.id.as_str())];
    let list = request(json!(1), "session/list", json!({}));
    assert_eq!(stranger.send("POST", &here, Some(list)).await.body["code"], "connection_not_found");
    assert_eq!(stranger.send("DELETE", &here, None).await.body["code"], "connection_not_found");
    let theirs = Raw { id: raw.id.clone(), ..stranger };
    assert_eq!(theirs.open(None, None).await.status(), 404);

    let devices = front.admin("GET", "/v1/devices", Value::Null).await.json();
    let me = reqwest::Client::builder().no_proxy().build().unwrap();
    let me: Value = me.get(format!("{url}/v1/me")).bearer_auth(&mine).send().await.unwrap().json().await.unwrap();
    let id = me["device_id"].as_str().unwrap_or_else(|| panic!("{me} {devices}"));
    assert_eq!(front.admin("DELETE", &format!("/v1/devices/{id}"), Value::Null).await.status, 204);
    assert_eq!(own.next().await, None);
    while stream.next().await.is_some() {}
    let list = request(json!(1), "session/list", json!({}));
    assert_eq!(raw.post(None, list).await.status, 401);
}

#[tokio::test]
async fn acp_http_connection_end_ends_its_streams_and_no_session() {
    let front = Front::new().await;
    let session = front.session("one").await;
    let raw = begin(&front).await;
    let mut own = raw.stream(None, None).await;
    let (mut stream, _) = raw.attach(&session, None).await;
    let here = [("acp-connection-id", raw.id.as_str())];
    assert_eq!(raw.send("DELETE", &here, None).await.status, 202);
    assert_eq!((own.next().await, stream.next().await), (None, None));
    assert_eq!(raw.send("DELETE", &here, None).await.status, 404);
    let list = request(json!(1), "session/list", json!({}));
    assert_eq!(raw.post(None, list).await.body["code"], "connection_not_found");
    assert_eq!(front.admin("GET", &format!("/v1/sessions/{session}"), Value::Null).await.status, 200);
}

#[tokio::test]
async fn acp_http_connections_of_a_device_are_bounded_idle_ones_yield() {
    let front = Front::new().await;
    let mut all = Vec::new();
    for _ in 0..32 {
        all.push(begin(&front).await);
    }
    // The first has no stream, so it is replaced. The second is in use.
    let _second = all[1].stream(None, None).await;
    all.push(begin(&front).await);
    let list = || request(json!("list"), "session/list", json!({}));
    assert_eq!(all[0].post(None, list()).await.status, 404);
    assert_eq!(all[1].post(None, list()).await.status, 202);
    let mut streams: Vec<Stream> = Vec::new();
    for raw in &all[2..] {
        streams.push(raw.stream(None, None).await);
    }
    let refused = Raw::stranger(&format!("http://{}", front.address), &front.admin).initialize().await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (429, Some("too_many_connections")), "{refused:?}");
    assert!(refused.retry_after.is_some() && refused.connection.is_none());
    // Another device is not affected.
    let other = front.token(json!({ "scopes": ["watch"] })).await;
    Raw::begin(&format!("http://{}", front.address), &other).await;
}

#[tokio::test]
async fn acp_http_streams_of_unknown_sessions_are_bounded() {
    let front = Front::new().await;
    let raw = begin(&front).await;
    let mut streams = Vec::new();
    for n in 0..16 {
        streams.push(raw.stream(Some(&format!("s_{n}")), None).await);
    }
    assert_eq!(raw.open(Some("s_more"), None).await.status(), 404);
    // A stream opened ahead reports that there is no session.
    let load = json!({ "sessionId": "s_3", "cwd": "/", "mcpServers": [] });
    raw.ask(Some("s_3"), "load", "session/load", load).await;
    assert!(streams[3].until("load").await.last().unwrap().json["error"].is_object());
    streams.pop();
    let opened = async {
        while raw.open(Some("s_more"), None).await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, opened).await.expect("a stream that was closed makes room");
}

#[tokio::test]
async fn acp_http_streams_end_properly_when_the_gateway_stops() {
    let front = Front::new().await;
    let raw = begin(&front).await;
    let mut own = raw.stream(None, None).await;
    front.stop.send_replace(true);
    assert_eq!(own.next().await, None);
}

#[tokio::test]
async fn acp_http_connection_ends_when_unused_and_not_with_a_stream() {
    let limits = ListenLimits { drain: Duration::from_millis(500), ..ListenLimits::default() };
    let connections = Connections::with_idle_time(Duration::from_millis(100));
    let front = Front::lasting(limits, GateLimits::default(), STALL, connections).await;
    let used = begin(&front).await;
    let mut stream = used.stream(None, None).await;
    let idle = begin(&front).await;
    let ended = async {
        // Each check counts as a use, so the connection ends between two of them.
        for wait in 1.. {
            tokio::time::sleep(Duration::from_millis(100 * wait)).await;
            if idle.post(None, request(json!("list"), "session/list", json!({}))).await.status == 404 {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("it does not end");
    used.ask(None, "list", "session/list", json!({})).await;
    stream.until("list").await;
}

#[tokio::test]
async fn acp_http_client_that_does_not_read_is_cut_and_loses_nothing() {
    let limits = ListenLimits { drain: Duration::from_millis(500), ..ListenLimits::default() };
    let front = Front::patient(limits, GateLimits::default(), Duration::from_millis(300)).await;
    let session = front.session("one").await;
    let (lazy, busy) = (begin(&front).await, begin(&front).await);
    let (mut unread, mut seen) = lazy.attach(&session, None).await;
    let (mut read, _) = busy.attach(&session, None).await;
    let stalled = async || {
        let metrics = front.admin("GET", "/metrics", Value::Null).await.body;
        let count = metrics.lines().find_map(|line| line.strip_prefix("plexus_clients_stalled_total "));
        count.unwrap_or_else(|| panic!("{metrics}")).parse::<f64>().unwrap()
    };
    let before = stalled().await;
    let mut all = String::new();
    for n in 0..6 {
        let text = format!("{n}").repeat(1 << 20);
        busy.ask(Some(&session), "work", "session/prompt", prompt(&session, &text)).await;
        let said: String = read.until("work").await.iter().map(|message| message.text().to_owned()).collect();
        assert!(said == text, "who reads is not concerned");
        all += &text;
    }
    let given_up = async {
        while stalled().await <= before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, given_up).await.expect("it is not given up");
    let mut undone = Vec::new();
    let said = |seen: &[common::acp_http::Message]| seen.iter().map(|one| one.text().len()).sum::<usize>();
    let mut cut = 0;
    while said(&seen) < all.len() {
        let Some(message) = unread.next().await else {
            cut += 1;
            undone.clear();
            let last = seen.iter().rev().find_map(|message| message.id.clone());
            unread = lazy.stream(Some(&session), last.as_deref()).await;
            continue;
        };
        let done = message.id.is_some();
        undone.push(message);
        if done {
            seen.append(&mut undone);
        }
    }
    assert!(cut > 0);
    assert!(seen.iter().map(|message| message.text()).collect::<String>() == all);
}

#[tokio::test]
async fn acp_http_connection_named_by_its_client_has_one_stream() {
    let front = Front::new().await;
    let (one, two) = (front.session("one").await, front.session("two").await);
    let plain = Raw::stranger(&format!("http://{}", front.address), &front.admin);
    let mine = Raw { url: format!("{}?connection=my-1", plain.url), ..plain };
    let stream = [("accept", "text/event-stream")];
    // The stream is opened before `initialize`, and waits for it.
    let get = mine.http.get(&mine.url).bearer_auth(&mine.token).header(stream[0].0, stream[0].1).send();
    let (opened, hello) = tokio::join!(get, mine.initialize());
    let opened = opened.unwrap();
    assert_eq!((opened.status().as_u16(), hello.status), (200, 200), "{hello:?}");
    let id = hello.connection.unwrap();
    let mut all = Stream::of(opened);
    let post = async |id: &str, method: &str, params: Value| {
        let reply = mine.send("POST", &[], Some(request(json!(id), method, params))).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    };
    for session in [&one, &two] {
        post("load", "session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await;
        all.until("load").await;
    }
    post("list", "session/list", json!({})).await;
    all.until("list").await;
    for (session, text) in [(&one, "first"), (&two, "second"), (&one, "third")] {
        post("work", "session/prompt", prompt(session, text)).await;
        let messages = all.until("work").await;
        let said: String = messages.iter().map(|message| message.text().to_owned()).collect();
        assert_eq!(said, text);
        let of = |message: &common::acp_http::Message| message.json["params"]["sessionId"] == **session;
        assert!(messages.iter().filter(|message| message.json["method"] == "session/update").all(of));
    }
    // Messages while no stream is open come with the next one.
    drop(all);
    post("work", "session/prompt", prompt(&two, "fourth")).await;
    let mut all = Stream::of(
        mine.http.get(&mine.url).bearer_auth(&mine.token).header("accept", "text/event-stream").send().await.unwrap(),
    );
    let said: String = all.until("work").await.iter().map(|message| message.text().to_owned()).collect();
    assert!(said.ends_with("fourth"), "{said}");
    // There is one connection of that name; it belongs to that device, and is also found by its identifier.
    let again = mine.initialize().await;
    assert_ne!(again.connection.as_deref(), Some(id.as_str()));
    while all.next().await.is_some() {}
    let list = request(json!(1), "session/list", json!({}));
    let by_id = Raw {
        url: format!("http://{}/acp", front.address),
        id: again.connection.unwrap(),
        token: mine.token.clone(),
        http: mine.http.clone(),
    };
    assert_eq!(by_id.post(None, list.clone()).await.status, 202);
    let mut all = by_id.stream(Some(&one), None).await;
    by_id.ask(None, "here", "session/list", json!({})).await;
    all.until("here").await;
    let other = Raw {
        token: front.token(json!({ "scopes": ["watch"] })).await,
        url: mine.url.clone(),
        id: String::new(),
        http: mine.http.clone(),
    };
    assert_eq!(other.send("POST", &[], Some(list.clone())).await.body["code"], "connection_not_found");
    for wrong in ["", "a%20b", "a/b", &"x".repeat(65), "a&connection=b"] {
        let wrong = Raw {
            url: format!("http://{}/acp?connection={wrong}", front.address),
            token: mine.token.clone(),
            id: String::new(),
            http: mine.http.clone(),
        };
        assert_eq!(wrong.initialize().await.body["code"], "bad_connection", "{}", wrong.url);
        assert_eq!(wrong.send("POST", &[], Some(list.clone())).await.body["code"], "bad_connection", "{}", wrong.url);
    }
    assert_eq!(mine.send("DELETE", &[], None).await.status, 202);
    assert_eq!(mine.send("DELETE", &[], None).await.status, 404);
}

#[tokio::test]
async fn acp_http_connections_of_all_devices_are_bounded() {
    let front = Front::new().await;
    let url = format!("http://{}", front.address);
    for _ in 0..8 {
        let token = front.token(json!({ "scopes": ["watch"] })).await;
        let raw = Raw::stranger(&url, &token);
        for _ in 0..32 {
            assert_eq!(raw.initialize().await.status, 200);
        }
    }
    let refused = Raw::stranger(&url, &front.admin).initialize().await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (503, Some("too_many_connections")), "{refused:?}");
    assert!(refused.retry_after.is_some());
}
