//! Access from other machines: `plexus tls init`, the real binary, and clients that trust only its CA.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, demo};
use common::secure::{self, Client, code, hello, plexus, running};
use futures_util::{SinkExt as _, StreamExt as _};
use plexus::router::{Authority, ListenLimits, Tls, TlsLimits, serve_tls};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

const TLS: &str = "[tls]\nlisten = \"127.0.0.1:0\"\n";

async fn served() -> (Gateway, Client) {
    let gateway = secure::gateway(&format!("{TLS}{}", demo())).await;
    let client = Client::of(&gateway);
    (gateway, client)
}

#[tokio::test]
async fn tls_serves_page_api_and_streams_over_both_http_versions() {
    let (gateway, client) = served().await;
    let page = client.http1("GET", "/", &[], "").await;
    assert_eq!(page.status, 200);
    let bearer = format!("Bearer {}", gateway.token);
    assert_eq!(client.http1("GET", "/v1/me", &[("authorization", &bearer)], "").await.json()["device_id"], "d_local");
    assert_eq!(client.http1("GET", "/v1/me", &[], "").await.status, 401, "TLS proves nothing about who asks");

    let mut h2 = client.http2().await;
    let (status, head, body) = h2.ask("GET", "/", &[], None).await;
    assert_eq!((status, body), (200, page.body));
    assert!(head.contains_key("content-security-policy") && !head.contains_key("connection"));
    assert!(!head.contains_key("strict-transport-security"), "it would hold for every port of the name");
    let (status, _, me) = h2.ask("GET", "/v1/me", &[("cookie", "a=1"), ("cookie", "b=2")], None).await;
    assert_eq!(status, 200, "{me}");

    // A stream of events on one stream, and a run, a long poll and a page on others of the same connection.
    let session = gateway.session("demo").await;
    let path = format!("/v1/sessions/{session}/events");
    let mut stream = h2.send("GET", &path, &[("accept", "text/event-stream")], None).await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    secure::until(stream.body_mut(), "event: live").await;
    let prompt = json!({ "text": "stream 3 ;; echo by two" });
    let (status, _, run) = h2.ask("POST", &format!("/v1/sessions/{session}/prompt"), &[], Some(&prompt)).await;
    assert_eq!(status, 202, "{run}");
    let run: Value = serde_json::from_str(&run).unwrap();
    let events = secure::until(stream.body_mut(), "event: run_ended").await;
    assert!(events.contains("by two"), "{events}");
    let kept = gateway.until_ended(&session, run["run_id"].as_str().unwrap()).await;
    let ids = events.lines().filter_map(|line| line.strip_prefix("id: ")).count();
    assert!(ids > 3 && ids <= kept.len(), "{ids} of {}", kept.len());
    let next = kept.last().unwrap()["cursor"].as_str().unwrap().to_owned();
    let poll = format!("{path}?after={next}&wait=50");
    let mut other = client.http2().await;
    let polling = tokio::spawn(async move { other.ask("GET", &poll, &[], None).await });
    gateway.prompt(&session, "echo news").await;
    let (status, _, page) = polling.await.unwrap();
    assert!(status == 200 && page.contains("\"events\":[{"), "{page}");

    // A large body passes, and one too large is refused without affecting the connection.
    let long = json!({ "text": "x".repeat(3 << 20) });
    let (status, _, answer) = h2.ask("POST", &format!("/v1/sessions/{session}/prompt"), &[], Some(&long)).await;
    assert_eq!(status, 202, "{answer}");
    let long = json!({ "name": "x".repeat(2 << 20) });
    let refused = h2.send("POST", "/v1/codes", &[], Some(&long)).await;
    assert!(refused.is_err() || refused.is_ok_and(|response| response.status() == 413));
    assert_eq!(client.http2().await.ask("GET", "/healthz", &[], None).await.0, 200);
}

#[tokio::test]
async fn http_2_stream_that_is_reset_is_released() {
    let (gateway, client) = served().await;
    let mut h2 = client.http2().await;
    let gauge = || async {
        let text = gateway.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
        let line =
            text.lines().find(|line| line.starts_with("plexus_connections ")).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = h2.send("GET", "/v1/events", &[("accept", "text/event-stream")], None).await.unwrap();
        secure::until(stream.body_mut(), "event: hello").await;
        streams.push(stream);
    }
    assert!(gauge().await >= 21, "each is counted");
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while gauge().await > 5 {
        assert!(Instant::now() < deadline, "streams that nobody reads are kept: {}", gauge().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(h2.ask("GET", "/healthz", &[], None).await.0, 200, "the connection goes on");
}

#[tokio::test]
async fn http_2_websocket_request_is_refused_with_a_hint() {
    let (gateway, client) = served().await;
    let mut ws = client.ws(Some(&client.origin())).await.unwrap();
    ws.send(Message::text(hello().to_string())).await.unwrap();
    let answer = ws.next().await.unwrap().unwrap().into_text().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["result"]["you"]["device_id"], "d_local", "{answer}");
    // More than all buffers hold, in both directions.
    let session = gateway.session("demo").await;
    let attach = json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach", "params": { "session_id": session } });
    ws.send(Message::text(attach.to_string())).await.unwrap();
    let text = "y".repeat(4 << 20);
    let prompt = json!({ "jsonrpc": "2.0", "id": 3, "method": "run.start",
        "params": { "session_id": session, "input": { "type": "text", "text": format!("echo {text}") } } });
    ws.send(Message::text(prompt.to_string())).await.unwrap();
    let mut said = 0;
    while said < text.len() {
        let message = tokio::time::timeout(PATIENCE, ws.next()).await.expect("nothing came").unwrap().unwrap();
        let Message::Text(message) = message else { continue };
        let message: Value = serde_json::from_str(&message).unwrap();
        let event = &message["params"];
        if event["kind"] == "agent_message_chunk" {
            said += event["event"]["content"]["text"].as_str().unwrap().matches('y').count();
        }
    }
    // The close is echoed, and then TLS ends.
    ws.close(None).await.unwrap();
    let end = async {
        loop {
            match ws.next().await {
                Some(Ok(_)) => {}
                other => return other,
            }
        }
    };
    let end = tokio::time::timeout(PATIENCE, end).await.expect("it stays open");
    assert!(matches!(end, None | Some(Err(WsError::ConnectionClosed))), "{end:?}");

    let mut h2 = client.http2().await;
    let (status, _, body) = h2.ask("GET", "/v1/ws", &[], None).await;
    assert_eq!((status, code(&body).as_str()), (426, "bad_handshake"));
    let connect =
        http::Request::connect(client.origin().trim_start_matches("https://")).body(Default::default()).unwrap();
    let refused = h2.sender.send_request(connect).await.unwrap();
    assert_eq!(refused.status(), 501);
}

/// Bytes that all clients' connections make the gateway hold.
async fn held(gateway: &Gateway) -> u64 {
    let text = gateway.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("plexus_ledger_bytes{account=\"clients\"} "));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// Takes a little at a time, so that it is slow and not gone, while much comes; then all until `end` is there.
async fn slowly(stream: &mut (impl tokio::io::AsyncRead + Unpin), gateway: &Gateway, end: &str) -> Vec<u8> {
    let (mut all, mut chunk) = (Vec::new(), vec![0; 16 << 10]);
    for n in 0..200 {
        let n = if n < 100 { 64 } else { 512 };
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut chunk[..n])).await.expect("nothing comes").unwrap();
        all.extend_from_slice(&chunk[..read]);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let held = held(gateway).await;
    assert!(held < 1 << 20, "{held}");
    while !all.ends_with(end.as_bytes())
        && !String::from_utf8_lossy(&all[all.len().saturating_sub(4096)..]).contains(end)
    {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut chunk)).await.expect("nothing comes").unwrap();
        assert!(read > 0, "hung up after {}", all.len());
        all.extend_from_slice(&chunk[..read]);
    }
    all
}

#[tokio::test]
async fn tls_reader_that_is_slow_costs_little_and_misses_nothing() {
    let (gateway, client) = served().await;
    let session = gateway.session("demo").await;
    let mut stream = client.connect_narrow().await;
    let head = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: localhost:{}\r\nauthorization: Bearer {}\r\n\
         accept: text/event-stream\r\n\r\n",
        client.address.port(),
        gateway.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let run = gateway.prompt(&session, "flood 10000 200").await;
    let all = slowly(&mut stream, &gateway, "event: run_ended").await;
    let all = String::from_utf8(all).unwrap();
    let ids: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let kept = gateway.until_ended(&session, &run).await;
    assert!(kept.len() >= 10_000, "{}", kept.len());
    let kept: Vec<&str> = kept.iter().map(|event| event["cursor"].as_str().unwrap()).collect();
    assert!(ids == kept, "{} of {}", ids.len(), kept.len());
}

#[tokio::test]
async fn http_2_client_with_many_streams_of_events_gets_all_of_each() {
    const STREAMS: usize = 60;
    let (gateway, client) = served().await;
    let session = gateway.session("demo").await;
    let mut h2 = client.http2().await;
    let mut streams = Vec::new();
    for n in 0..STREAMS {
        // By session and by everything, with and without a start.
        let path = match n % 3 {
            0 => format!("/v1/sessions/{session}/events"),
            1 => format!("/v1/sessions/{session}/events?after=now"),
            _ => "/v1/events?after=now".into(),
        };
        let mut stream = h2.send("GET", &path, &[("accept", "text/event-stream")], None).await.unwrap();
        secure::until(stream.body_mut(), "event: live").await;
        // All are read at once: they share the connection's window.
        let reading = async move { secure::until(stream.body_mut(), "event: run_ended").await };
        streams.push(tokio::spawn(reading));
    }
    let prompt = json!({ "text": "flood 500 100" });
    let path = format!("/v1/sessions/{session}/prompt");
    let (status, _, run) = h2.ask("POST", &path, &[], Some(&prompt)).await;
    assert_eq!(status, 202, "requests go on beside the streams: {run}");
    let run: Value = serde_json::from_str(&run).unwrap();
    let run = run["run_id"].as_str().unwrap().to_owned();
    let kept = gateway.until_ended(&session, &run).await;
    let chunks = kept.iter().filter(|event| event["kind"] == "agent_message_chunk").count();
    assert!(chunks >= 500, "{chunks}");
    for stream in streams {
        let text = stream.await.unwrap();
        assert_eq!(text.matches("event: agent_message_chunk").count(), chunks);
    }
    assert!(held(&gateway).await < 1 << 20);
    assert_eq!(h2.ask("GET", "/healthz", &[], None).await.0, 200);
}

#[tokio::test]
async fn tls_connections_of_a_device_end_when_it_is_revoked() {
    let (gateway, client) = served().await;
    let (_, code) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt"] })).await;
    let (status, paired) = gateway.post("/v1/pair", json!({ "code": code["code"], "name": "phone" })).await;
    assert!(status < 300, "{paired}");
    let mut phone = client.clone();
    phone.token = paired["token"].as_str().unwrap().to_owned();
    let mut ws = phone.ws(None).await.unwrap();
    ws.send(Message::text(hello().to_string())).await.unwrap();
    ws.next().await.unwrap().unwrap();
    let attach = json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach", "params": { "session_id": "*" } });
    ws.send(Message::text(attach.to_string())).await.unwrap();
    let mut h2 = phone.http2().await;
    let mut stream = h2.send("GET", "/v1/events", &[("accept", "text/event-stream")], None).await.unwrap();
    secure::until(stream.body_mut(), "event: live").await;
    let id = paired["device_id"].as_str().unwrap();
    assert_eq!(gateway.delete(&format!("/v1/devices/{id}")).await.0, 204);
    let closed = async {
        loop {
            if let Message::Close(frame) = ws.next().await.expect("it said nothing").unwrap() {
                return frame.unwrap();
            }
        }
    };
    let closed = tokio::time::timeout(PATIENCE, closed).await.expect("it stays open");
    assert_eq!((u16::from(closed.code), closed.reason.as_str()), (4001, "this device was revoked"));
    let rest = tokio::time::timeout(PATIENCE, http_body_util::BodyExt::collect(stream.into_body())).await;
    assert!(rest.expect("the stream stays open").is_ok(), "it ends as one that is whole");
    assert_eq!(h2.ask("GET", "/v1/me", &[], None).await.0, 401);
}

#[tokio::test]
async fn tls_websocket_reader_that_is_slow_costs_little_and_misses_nothing() {
    let (gateway, client) = served().await;
    let session = gateway.session("demo").await;
    let stream = client.connect_narrow().await;
    let mut ws = client.ws_over(stream, None).await.unwrap();
    ws.send(Message::text(hello().to_string())).await.unwrap();
    let attach = json!({ "jsonrpc": "2.0", "id": 2, "method": "session.attach",
        "params": { "session_id": session, "from": "start" } });
    ws.send(Message::text(attach.to_string())).await.unwrap();
    let run = gateway.prompt(&session, "flood 10000 200").await;
    let (mut cursors, mut slow) = (Vec::new(), 200);
    loop {
        let message = tokio::time::timeout(PATIENCE, ws.next()).await.expect("nothing comes").unwrap().unwrap();
        let Message::Text(message) = message else { continue };
        let message: Value = serde_json::from_str(&message).unwrap();
        if message["method"] == "agent.event" {
            cursors.push(message["params"]["cursor"].clone());
        }
        if message["params"]["kind"] == "run_ended" {
            break;
        }
        if slow > 0 {
            slow -= 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
            if slow == 0 {
                assert!(held(&gateway).await < 1 << 20);
            }
        }
    }
    let kept = gateway.until_ended(&session, &run).await;
    assert!(kept.len() >= 10_000, "{}", kept.len());
    let kept: Vec<Value> = kept.iter().map(|event| event["cursor"].clone()).collect();
    assert!(cursors == kept, "{} of {}", cursors.len(), kept.len());
}

#[tokio::test]
async fn tls_refuses_other_names_and_other_sites() {
    let (gateway, client) = served().await;
    let port = client.address.port();
    let plain = gateway.url.trim_start_matches("http://").to_owned();
    let own = [format!("localhost:{port}"), format!("127.0.0.1:{port}")];
    for host in &own {
        assert_eq!(client.http1("GET", "/healthz", &[("host", host)], "").await.status, 200, "{host}");
    }
    for host in ["evil.example", "localhost", "localhost:1", &format!("evil.example:{port}"), "192.168.0.1", ""] {
        let reply = client.http1("GET", "/healthz", &[("host", host)], "").await;
        assert!([400, 421].contains(&reply.status), "{host}: {reply:?}");
    }
    let forged = [("host", "evil.example"), ("x-forwarded-host", own[0].as_str()), ("forwarded", "host=localhost")];
    assert_eq!(client.http1("GET", "/healthz", &forged, "").await.code(), "wrong_host");
    let bearer = format!("Bearer {}", gateway.token);
    let good = client.origin();
    for (origin, status) in [
        (good.as_str(), 200),
        (&format!("http://localhost:{port}"), 403),
        ("https://localhost", 403),
        ("https://evil.example", 403),
        ("null", 403),
        (&format!("https://{plain}"), 403),
    ] {
        let headers = [("origin", origin), ("authorization", &bearer)];
        assert_eq!(client.http1("GET", "/v1/me", &headers, "").await.status, status, "{origin}");
        let mut h2 = client.http2().await;
        assert_eq!(h2.ask("GET", "/v1/me", &[("origin", origin)], None).await.0, status, "{origin} by HTTP/2");
        assert_eq!(client.ws(Some(origin)).await.is_ok(), status == 200, "{origin}, a WebSocket");
    }
    let mut h2 = client.http2().await;
    h2.origin = format!("https://evil.example:{port}");
    let (status, _, body) = h2.ask("GET", "/healthz", &[], None).await;
    assert_eq!((status, code(&body).as_str()), (421, "wrong_host"));
    h2.origin = client.origin();
    let (status, _, body) = h2.ask("GET", "/healthz", &[("host", "127.0.0.1:1")], None).await;
    assert_eq!((status, code(&body).as_str()), (421, "wrong_host"), "two names are none");
    assert_eq!(h2.ask("GET", "/healthz", &[("host", &own[0])], None).await.0, 200, "the same name twice");
}

/// The first handshake message of a client that supports only this version.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = version.to_vec();
    hello.extend([7; 32]);
    // No session; ECDHE-ECDSA and ECDHE-RSA with AES; no compression; the curve P-256 and its signatures.
    hello.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x09, 1, 0]);
    let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3];
    hello.extend([0, extensions.len() as u8]);
    hello.extend(extensions);
    let mut handshake = vec![1, 0, 0, hello.len() as u8];
    handshake.extend(hello);
    let mut record = vec![0x16, 3, 1, 0, handshake.len() as u8];
    record.extend(handshake);
    record
}

#[tokio::test]
async fn tls_handshake_refuses_plain_old_and_untrusting_clients() {
    let (gateway, client) = served().await;
    let mut plain = client.tcp().await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, plain.read_to_string(&mut answer)).await.expect("it stays open").unwrap();
    let answer = common::front::parse(&answer);
    assert_eq!((answer.status, answer.code().as_str()), (400, "needs_tls"));

    for (version, alert) in [([3, 1], true), ([3, 2], true), ([3, 3], false)] {
        let mut old = client.tcp().await.unwrap();
        old.write_all(&client_hello(version)).await.unwrap();
        let mut first = [0; 7];
        tokio::time::timeout(PATIENCE, old.read_exact(&mut first)).await.expect("no answer").unwrap();
        // An alert: fatal, protocol_version.
        assert_eq!(first[0] == 0x15 && first[5..] == [2, 70], alert, "{version:?}: {first:?}");
    }
    let other = secure::gateway(TLS).await;
    let stranger = Client::new(&other.home.join("tls/ca.crt"), client.address, "");
    assert!(stranger.connect("localhost", &["h2"]).await.is_err(), "another CA's is not trusted");
    assert!(client.connect("example.org", &["h2"]).await.is_err(), "nor under another name");
    assert!(client.connect("localhost", &["spdy/1"]).await.is_err(), "a protocol that is not spoken");
    assert!(client.connect("localhost", &[]).await.is_ok(), "no word of a protocol is HTTP/1.1");
    // curl negotiates the version by itself.
    let curl = std::process::Command::new("curl")
        .args(["-sS", "--max-time", "30", "--cacert"])
        .arg(gateway.home.join("tls/ca.crt"))
        .args(["-w", " %{http_version}", &format!("{}/healthz", client.origin())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&curl.stdout).into_owned();
    assert!(said.starts_with("ok") && (said.ends_with(" 2") || said.ends_with(" 1.1")), "{curl:?}");
}

/// Frames of HTTP/2 by hand.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn http_2_has_its_bounds() {
    let (_gateway, client) = served().await;
    let mut stream = client.connect("localhost", &["h2"]).await.unwrap();
    let mut all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    all.extend(frame(4, 0, 0, &[]));
    // GET / over HTTPS without a token, reset at once, a thousand times.
    for n in 0..1000 {
        all.extend(frame(1, 5, 2 * n + 1, &[0x82, 0x87, 0x84]));
        all.extend(frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]));
    }
    let _ = stream.write_all(&all).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "a rapid reset is borne");
    let (mut at, mut settings, mut goodbye) = (0, Vec::new(), None);
    while answer.len() >= at + 9 {
        let length = u32::from_be_bytes([0, answer[at], answer[at + 1], answer[at + 2]]) as usize;
        let payload = &answer[(at + 9).min(answer.len())..(at + 9 + length).min(answer.len())];
        match answer[at + 3] {
            4 => settings.extend(payload.chunks(6).map(<[u8]>::to_vec)),
            7 => goodbye = payload.get(4..8).map(<[u8]>::to_vec),
            _ => {}
        }
        at += 9 + length;
    }
    assert_eq!(goodbye, Some(vec![0, 0, 0, 11]), "calm down, it says");
    assert!(settings.iter().any(|one| one[..] == [0, 3, 0, 0, 0, 64]), "64 streams at once: {settings:?}");
    assert!(settings.iter().any(|one| one[..] == [0, 6, 0, 0, 64, 0]), "heads of 16 KiB: {settings:?}");
    let mut h2 = client.http2().await;
    let long = "x".repeat(20 << 10);
    let refused = h2.send("GET", "/healthz", &[("x-long", &long)], None).await;
    assert!(refused.is_err() || refused.is_ok_and(|response| response.status() == 431));
    assert_eq!(client.http2().await.ask("GET", "/healthz", &[], None).await.0, 200);
}

#[tokio::test]
async fn tls_half_open_handshakes_end_and_are_bounded_by_address() {
    let dir = tempfile::tempdir().unwrap();
    assert!(plexus(dir.path(), &["tls", "init", "--name", "localhost"]).status.success());
    let folder = dir.path().join("tls");
    let tls = Tls::open(&folder.join("server.crt"), &folder.join("server.key")).unwrap();
    let app = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok" }));
    let limits = TlsLimits {
        http: ListenLimits { connections: 8, ..ListenLimits::default() },
        per_address: 4,
        handshake: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        ..TlsLimits::default()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let proxy: IpAddr = [127, 0, 0, 9].into();
    tokio::spawn(serve_tls(listener, tls, app, limits, move |ip| ip == proxy, stopped));
    let client = Client::new(&folder.join("ca.crt"), address, "");
    let whole = |mut stream: tokio::net::TcpStream| async move {
        let mut all = Vec::new();
        // A reset ends the connection too.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("it is held");
    };
    // No data, a partial handshake, and endless plain HTTP: all are closed.
    for begin in [&b""[..], &[0x16, 3, 1, 1, 0, 1], b"GET / HTTP/1.1\r\n"] {
        let mut stream = client.from([127, 0, 0, 2]).tcp().await.unwrap();
        stream.write_all(begin).await.unwrap();
        whole(stream).await;
    }
    // Each address has a share of its own.
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut h2 = client.from([127, 0, 0, 3]).http2().await;
        h2.ask("GET", "/healthz", &[], None).await;
        held.push(client.from([127, 0, 0, 9]).tcp().await.unwrap());
    }
    drop(held);
    // An idle connection is closed, and its share is free again.
    let deadline = Instant::now() + PATIENCE;
    for n in 0..12 {
        let source = client.from([127, 0, 0, 3]);
        while source.connect("localhost", &["http/1.1"]).await.is_err() {
            assert!(Instant::now() < deadline, "no place became free: {n}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let mut silent = client.from([127, 0, 0, 4]).connect("localhost", &["h2"]).await.unwrap();
    let mut all = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut all)).await.expect("an idle connection is held");
}

#[tokio::test]
async fn http_2_requests_are_bounded_by_address() {
    let dir = tempfile::tempdir().unwrap();
    assert!(plexus(dir.path(), &["tls", "init", "--name", "localhost"]).status.success());
    let folder = dir.path().join("tls");
    let tls = Tls::open(&folder.join("server.crt"), &folder.join("server.key")).unwrap();
    let app = axum::Router::new()
        .route("/healthz", axum::routing::get(|| async { "ok" }))
        .route("/hang", axum::routing::get(std::future::pending::<&str>));
    let limits = TlsLimits { streams_per_address: 3, ..TlsLimits::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&folder.join("ca.crt"), listener.local_addr().unwrap(), "");
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    tokio::spawn(serve_tls(listener, tls, app, limits, |_| false, stopped));
    let mut hanging = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut h2 = client.from([127, 0, 0, 3]).http2().await;
        hanging.spawn(async move { h2.ask("GET", "/hang", &[], None).await });
    }
    let mut h2 = client.from([127, 0, 0, 3]).http2().await;
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        let (status, head, body) = h2.ask("GET", "/healthz", &[], None).await;
        if status != 200 {
            assert!(head.contains_key("retry-after"));
            break (status, code(&body));
        }
        assert!(Instant::now() < deadline, "a fourth is served");
    };
    assert_eq!(refused, (503, "busy".into()));
    assert_eq!(client.from([127, 0, 0, 4]).http2().await.ask("GET", "/healthz", &[], None).await.0, 200);
    hanging.shutdown().await;
    while h2.ask("GET", "/healthz", &[], None).await.0 != 200 {
        assert!(Instant::now() < deadline, "no place became free");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn connections_are_bounded_by_address() {
    let dir = tempfile::tempdir().unwrap();
    assert!(plexus(dir.path(), &["tls", "init", "--name", "localhost"]).status.success());
    let folder = dir.path().join("tls");
    let tls = Tls::open(&folder.join("server.crt"), &folder.join("server.key")).unwrap();
    let app = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok" }));
    // No connection ends by itself here.
    let limits = TlsLimits { per_address: 4, handshake: PATIENCE, idle: PATIENCE, ..TlsLimits::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&folder.join("ca.crt"), listener.local_addr().unwrap(), "");
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let proxy: IpAddr = [127, 0, 0, 9].into();
    tokio::spawn(serve_tls(listener, tls, app, limits, move |ip| ip == proxy, stopped));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(client.from([127, 0, 0, 3]).connect("localhost", &["h2"]).await.unwrap());
    }
    assert!(client.from([127, 0, 0, 3]).connect("localhost", &["h2"]).await.is_err(), "a fifth");
    assert!(client.from([127, 0, 0, 4]).connect("localhost", &["h2"]).await.is_ok(), "another address");
    for _ in 0..8 {
        held.push(client.from([127, 0, 0, 9]).connect("localhost", &["h2"]).await.expect("a proxy brings many"));
    }
}

async fn shown(client: &Client) -> Vec<u8> {
    let stream = client.connect("localhost", &["h2"]).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn certificate_change_is_picked_up_and_a_bad_one_ignored() {
    let (gateway, client) = served().await;
    let mut old = client.http2().await;
    let first = shown(&client).await;
    let changes = |from: Vec<u8>| {
        let client = client.clone();
        async move {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let now = shown(&client).await;
                if now != from {
                    return now;
                }
                assert!(Instant::now() < deadline, "the new certificate is not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    let renewed = plexus(&gateway.home, &["tls", "renew"]);
    assert!(renewed.status.success(), "{renewed:?}");
    let second = changes(first).await;
    assert_eq!(old.ask("GET", "/healthz", &[], None).await.0, 200, "what is open stays");
    std::fs::write(gateway.home.join("tls/server.crt"), "nonsense").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !gateway.stderr().contains("cannot be used") {
        assert!(Instant::now() < deadline, "nobody was told: {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(shown(&client).await, second, "the one before it is kept");
    // A key of another certificate is refused too.
    let other = tempfile::tempdir().unwrap();
    assert!(plexus(other.path(), &["tls", "init", "--name", "localhost"]).status.success());
    let (cert, key) = (other.path().join("tls/server.crt"), gateway.home.join("tls/server.key"));
    let Err(error) = Tls::open(&cert, &key) else { panic!("a stranger's key is taken") };
    assert!(error.to_string().contains("is not the key of"), "{error}");
    assert!(plexus(&gateway.home, &["tls", "renew"]).status.success());
    changes(second).await;
}

/// A certificate signed by the CA in this folder, with any name and lifetime.
fn signed(folder: &Path, name: &str, until: Option<(i32, u8, u8)>) -> (rcgen::Certificate, rcgen::KeyPair) {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    if let Some((year, month, day)) = until {
        params.not_after = rcgen::date_time_ymd(year, month, day);
    }
    signed_by_ca(folder, params)
}

/// A certificate signed by the CA in this folder.
fn signed_by_ca(folder: &Path, mut params: rcgen::CertificateParams) -> (rcgen::Certificate, rcgen::KeyPair) {
    let ca = rcgen::KeyPair::from_pem(&std::fs::read_to_string(folder.join("ca.key")).unwrap()).unwrap();
    let mut like = rcgen::CertificateParams::default();
    like.distinguished_name = rcgen::DistinguishedName::new();
    like.distinguished_name.push(rcgen::DnType::OrganizationName, "Plexus");
    like.distinguished_name.push(rcgen::DnType::CommonName, Authority::read(folder).unwrap().title);
    let issuer = rcgen::Issuer::new(like, ca);
    let key = rcgen::KeyPair::generate().unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.use_authority_key_identifier_extension = true;
    (params.signed_by(&key, &issuer).unwrap(), key)
}

/// A folder of `plexus tls init` with a certificate that expires in `days` days.
fn ending_in(days: i64, home: &Path) -> Vec<u8> {
    assert!(plexus(home, &["tls", "init", "--name", "localhost", "--name", "127.0.0.1"]).status.success());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let end = jiff::Timestamp::from_second(i64::try_from(now).unwrap() + days * 86_400).unwrap();
    let end = end.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
    let until = (end.year().into(), end.month().unsigned_abs(), end.day().unsigned_abs());
    let (cert, key) = signed(&home.join("tls"), "localhost", Some(until));
    std::fs::write(home.join("tls/server.crt"), cert.pem()).unwrap();
    std::fs::write(home.join("tls/server.key"), key.serialize_pem()).unwrap();
    cert.der().to_vec()
}

/// Waits until the gateway has logged this text.
async fn logged(gateway: &Gateway, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !gateway.stderr().contains(words) {
        assert!(Instant::now() < deadline, "no {words:?} in {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn certificate_of_our_ca_is_renewed_before_it_expires() {
    let dir = tempfile::tempdir().unwrap();
    let old = ending_in(20, &dir.path().join("home"));
    let gateway = Gateway::start_in(dir, TLS).await;
    logged(&gateway, "created a new one, valid until").await;
    let client = Client::of(&gateway);
    let deadline = Instant::now() + PATIENCE;
    while shown(&client).await == old {
        assert!(Instant::now() < deadline, "the next certificate is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Clients that trust the CA accept it.
    assert_eq!(client.http2().await.ask("GET", "/healthz", &[], None).await.0, 200);
    // The metric shows when it expires.
    let text = gateway.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let ends = text.lines().find_map(|line| line.strip_prefix("plexus_tls_certificate_expiry_timestamp_seconds "));
    let ends: i64 = ends.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!(ends > jiff::Timestamp::now().as_second() + 390 * 86_400, "{ends}");
}

#[tokio::test]
async fn certificate_from_elsewhere_is_warned_of_before_it_expires() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other");
    let old = ending_in(10, &other);
    let config = format!(
        "{TLS}cert = {:?}\nkey = {:?}\n",
        other.join("tls/server.crt").display().to_string(),
        other.join("tls/server.key").display().to_string()
    );
    let gateway = Gateway::start_in(dir, &config).await;
    logged(&gateway, "replace the file with a new one").await;
    let file = gateway.home.with_file_name("plexus.toml").display().to_string();
    let told = plexus(&gateway.home, &["doctor", "-c", &file]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("replace the file with a new one"), "{told}");
    let address = running(&gateway)["tls"].as_str().unwrap().parse().unwrap();
    let client = Client::new(&other.join("tls/ca.crt"), address, &gateway.token);
    assert_eq!(shown(&client).await, old, "it is not ours to change");
}

/// Returns whether a client that trusts the CA accepts its certificate for this name.
async fn trusted(folder: &Path, name: &'static str) -> Result<(), String> {
    let (cert, key) = signed(folder, name, None);
    let cert = cert.der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let server = Arc::new(server.with_no_client_auth().with_single_cert(vec![cert], key).unwrap());
    let client = Client::new(&folder.join("ca.crt"), ([127, 0, 0, 1], 1).into(), "").config(&[]);
    let (near, far) = tokio::io::duplex(64 << 10);
    let served = tokio::spawn(async move { tokio_rustls::TlsAcceptor::from(server).accept(far).await.map(drop) });
    let outcome = tokio_rustls::TlsConnector::from(client).connect(name.try_into().unwrap(), near).await;
    drop(served);
    outcome.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn ca_can_sign_for_its_own_names_only() {
    for (names, yes, no) in [
        (
            &["box.local", "192.0.2.7"][..],
            &["box.local", "192.0.2.7"][..],
            &["example.org", "local", "192.0.2.8", "::1"][..],
        ),
        (&["box.local"], &["box.local"], &["192.0.2.7", "::1", "xbox.local"]),
        (&["192.0.2.7", "2001:db8::7"], &["192.0.2.7", "2001:db8::7"], &["box.local", "192.0.2.6", "2001:db8::8"]),
        (&["192.0.2.7"], &["192.0.2.7"], &["box.local", "::1", "2001:db8::7"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut args = vec!["tls", "init"];
        args.extend(names.iter().flat_map(|name| ["--name", name]));
        let made = plexus(dir.path(), &args);
        assert!(made.status.success(), "{made:?}");
        let folder = dir.path().join("tls");
        for name in yes {
            trusted(&folder, name).await.unwrap_or_else(|why| panic!("{names:?} {name}: {why}"));
        }
        for name in no {
            let why = trusted(&folder, name).await.expect_err(name);
            assert!(why.contains("NameConstraintViolation"), "{names:?} {name}: {why}");
        }
    }
}

/// Returns whether OpenSSL accepts a certificate of the CA for this purpose; otherwise its error.
fn openssl_accepts(folder: &Path, params: rcgen::CertificateParams, purpose: &str) -> Result<(), String> {
    let (cert, _) = signed_by_ca(folder, params);
    let file = folder.join("made.crt");
    std::fs::write(&file, cert.pem()).unwrap();
    let args = ["verify", "-purpose", purpose, "-CAfile"];
    let verified = Command::new("openssl").args(args).arg(folder.join("ca.crt")).arg(&file).output().unwrap();
    let told = [verified.stdout, verified.stderr].concat();
    if verified.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&told).into_owned()) }
}

/// Every name that a certificate may have, but the one that the CA is for.
fn other_names() -> [(&'static str, rcgen::SanType); 4] {
    [
        ("a mail address", rcgen::SanType::Rfc822Name("ceo@example.org".try_into().unwrap())),
        ("a URI", rcgen::SanType::URI("https://example.org/".try_into().unwrap())),
        ("a URI of the host", rcgen::SanType::URI("https://box.local/".try_into().unwrap())),
        ("a host", rcgen::SanType::DnsName("example.org".try_into().unwrap())),
    ]
}

#[test]
fn ca_is_for_servers_and_neither_for_mail_nor_for_code() {
    let dir = tempfile::tempdir().unwrap();
    assert!(plexus(dir.path(), &["tls", "init", "--name", "box.local"]).status.success());
    let folder = dir.path().join("tls");
    let pem = std::fs::read(folder.join("ca.crt")).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
    let ca = pem.parse_x509().unwrap();
    let usage = ca.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth, "{usage:?}");
    let others = [usage.any, usage.client_auth, usage.code_signing, usage.email_protection, usage.ocsp_signing];
    assert!(!others.contains(&true) && !usage.time_stamping && usage.other.is_empty(), "{usage:?}");
    let constraints = ca.name_constraints().unwrap().unwrap();
    assert!(constraints.critical);
    let permitted = format!("{:?}", constraints.value.permitted_subtrees);
    for entry in [r#"DNSName("box.local")"#, r#"RFC822Name("plexus.invalid")"#, r#"URI("plexus.invalid")"#] {
        assert!(permitted.contains(entry), "{entry}: {permitted}");
    }
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("openssl is not installed: what it accepts was not tried");
        return;
    }
    let of = |name: rcgen::SanType| {
        let mut params = rcgen::CertificateParams::default();
        params.subject_alt_names = vec![name];
        params
    };
    let own = || of(rcgen::SanType::DnsName("box.local".try_into().unwrap()));
    openssl_accepts(&folder, own(), "sslserver").unwrap();
    for purpose in ["sslclient", "smimesign", "smimeencrypt"] {
        let why = openssl_accepts(&folder, own(), purpose).expect_err(purpose);
        assert!(why.contains("purpose"), "{purpose}: {why}");
    }
    for (what, name) in other_names() {
        let why = openssl_accepts(&folder, of(name), "sslserver").expect_err(what);
        assert!(why.contains("permitted subtree violation"), "{what}: {why}");
    }
}

#[tokio::test]
async fn tls_files_are_private_and_phones_accept_the_profile() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let made = plexus(&home, &["tls", "init", "--name", "Box.local", "--name", "192.0.2.7"]);
    assert!(made.status.success(), "{made:?}");
    let said = String::from_utf8(made.stdout).unwrap();
    assert!(
        said.contains("box.local") && said.contains("[tls]") && said.contains("Certificate Trust Settings"),
        "{said}"
    );
    let folder = home.join("tls");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    // Once made, it is not made again by accident.
    let ca = std::fs::read(folder.join("ca.crt")).unwrap();
    let again = plexus(&home, &["tls", "init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("plexus tls renew"), "{again:?}");
    let server = std::fs::read(folder.join("server.crt")).unwrap();
    assert!(plexus(&home, &["tls", "renew"]).status.success());
    assert_eq!(std::fs::read(folder.join("ca.crt")).unwrap(), ca);
    assert_ne!(std::fs::read(folder.join("server.crt")).unwrap(), server);
    assert!(plexus(&home, &["tls", "init", "--force", "--name", "box.local"]).status.success());
    assert_ne!(std::fs::read(folder.join("ca.crt")).unwrap(), ca);
    for wrong in ["*.example.org", "a b", "http://x", "", "-x", "1.2.3", "0.0.0.0", "x/y"] {
        let refused = plexus(&dir.path().join("other"), &["tls", "init", "--name", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {refused:?}");
    }
    // Without names it uses this machine's.
    let own = plexus(&dir.path().join("own"), &["tls", "init"]);
    assert!(own.status.success(), "{own:?}");
    assert!(!Authority::read(&dir.path().join("own/tls")).unwrap().names.is_empty());
    // The profile is a property list with the CA in it.
    let profile = std::fs::read_to_string(folder.join("ca.mobileconfig")).unwrap();
    let data = profile.split_once("<data>").unwrap().1.split_once("</data>").unwrap().0;
    let pem = std::fs::read_to_string(folder.join("ca.crt")).unwrap();
    let bare: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    assert_eq!(data, bare);
    let check =
        "import plistlib,sys; p=plistlib.load(open(sys.argv[1],'rb')); print(p['PayloadContent'][0]['PayloadType'])";
    let read =
        std::process::Command::new("python3").args(["-c", check]).arg(folder.join("ca.mobileconfig")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), "com.apple.security.root", "{read:?}");
}

#[tokio::test]
async fn ca_certificate_is_public_and_its_key_is_not() {
    let (gateway, client) = served().await;
    let ca = std::fs::read_to_string(gateway.home.join("tls/ca.crt")).unwrap();
    let reply = client.http1("GET", "/ca.crt", &[], "").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, ca.as_str()));
    assert_eq!(reply.header("content-type"), Some("application/x-x509-ca-cert"));
    let reply = client.http1("GET", "/ca.mobileconfig", &[], "").await;
    assert_eq!(reply.header("content-type"), Some("application/x-apple-aspen-config"));
    let plain = gateway.http.get(format!("{}/ca.crt", gateway.url)).send().await.unwrap();
    assert_eq!(plain.text().await.unwrap(), ca);
    for path in ["/ca.key", "/tls/ca.key", "/ca.json", "/server.key", "/ca.crt/", "/ca.crt/../ca.key"] {
        let reply = client.http1("GET", path, &[], "").await;
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
    }
    let without = Gateway::demo().await;
    let none = without.http.get(format!("{}/ca.crt", without.url)).send().await.unwrap();
    assert_eq!(none.status(), 404);
    assert_eq!(code(&none.text().await.unwrap()), "no_ca");
}

#[tokio::test]
async fn cli_uses_the_plain_listener() {
    let (gateway, client) = served().await;
    let running = running(&gateway);
    assert!(running["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{running}");
    assert_eq!(running["public_url"], client.origin());
    let ls = plexus(&gateway.home, &["ls", "--json"]);
    assert!(ls.status.success(), "{ls:?}");
    let ran = plexus(&gateway.home, &["run", "demo", "--prompt", "echo here"]);
    assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("here"), "{ran:?}");
    let open = plexus(&gateway.home, &["open", "--print"]);
    assert!(String::from_utf8_lossy(&open.stdout).trim().starts_with(&gateway.url), "{open:?}");
    // Plain HTTP beyond loopback is refused with the fix.
    let refused = plexus(&gateway.home, &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("plexus tls init"), "{refused:?}");
    // TLS without a certificate is refused with the fix.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("p.toml");
    std::fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{TLS}")).unwrap();
    let refused = plexus(&dir.path().join("home"), &["serve", "-c", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("plexus tls init"), "{refused:?}");
}
