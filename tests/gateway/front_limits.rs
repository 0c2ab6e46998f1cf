//! The memory that peers can make the gateway hold: each abuse over real sockets, with small limits.
//!
//! Raw sockets: they misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::front::{Front, LONG};
use plexus::ledger::{Class, LedgerLimits as Accounts};
use plexus::router::{GateLimits, ListenLimits, Policy};
use plexus::routes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MIB: usize = 1 << 20;

fn used(front: &Front, class: Class) -> usize {
    front.core.ledger.sums()[class as usize].used
}

/// Polls until a condition holds.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let wait = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

async fn connect(front: &Front, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(front.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Reads until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut all)).await.expect("the connection stays open");
    String::from_utf8_lossy(&all).into_owned()
}

/// The head of a POST with a body of `length` bytes.
fn post(front: &Front, path: &str, token: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n",
        front.address
    )
}

async fn web_socket(front: &Front, token: &str) -> TcpStream {
    let head = format!(
        "GET /v1/ws HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        front.address
    );
    let mut stream = connect(front, &head).await;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        assert!(tokio::time::timeout(LONG, stream.read_buf(&mut bytes)).await.unwrap().unwrap() > 0);
    }
    stream
}

/// A client's text frame, masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    let mut out = head(text.len());
    out.extend_from_slice(text.as_bytes());
    out
}

/// The head of such a frame.
fn head(length: usize) -> Vec<u8> {
    let mut out = vec![0x81, 0x80 | 127];
    out.extend((length as u64).to_be_bytes());
    out.extend([0; 4]);
    out
}

/// The close code of a server.
async fn close_code(stream: &mut TcpStream) -> u16 {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the connection stays open");
    let mut at = 0;
    while at + 2 <= bytes.len() {
        let (length, start) = match bytes[at + 1] {
            126 => (usize::from(u16::from_be_bytes(bytes[at + 2..at + 4].try_into().unwrap())), at + 4),
            127 => (u64::from_be_bytes(bytes[at + 2..at + 10].try_into().unwrap()) as usize, at + 10),
            length => (usize::from(length), at + 2),
        };
        if bytes[at] == 0x88 {
            return u16::from_be_bytes(bytes[start..start + 2].try_into().unwrap());
        }
        at = start + length;
    }
    panic!("no close: {:?}", String::from_utf8_lossy(&bytes));
}

async fn say(front: &Front, session: &str, bytes: usize) {
    let body = json!({ "text": "x".repeat(bytes) });
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), body).await;
    assert_eq!(reply.status, 202, "{reply:?}");
}

#[tokio::test]
async fn unauthenticated_requests_take_at_most_four_kibibytes() {
    let front = Front::new().await;
    let big = format!("{{\"code\":\"{}\"}}", "x".repeat(8 << 10));
    for route in routes().iter().filter(|route| route.method != http::Method::GET) {
        let path = route.path.replace("{id}", "x").replace("{runtime_id}", "x");
        let reply = front.send(route.method.as_str(), &path, &[("content-type", "application/json")], &big).await;
        let expected = if route.policy == Policy::Public { (413, "too_large") } else { (401, "unauthorized") };
        assert_eq!((reply.status, reply.code().as_str()), expected, "{} {path}", route.method);
    }
    // Also without a length.
    let chunked = format!(
        "POST /v1/pair HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2000\r\n{}",
        front.address,
        " ".repeat(0x2000)
    );
    assert!(front.raw(chunked.as_bytes()).await.starts_with("HTTP/1.1 413"));
    // And with a deadline.
    let reply = front
        .send("POST", "/v1/pair", &[("content-type", "application/json")], "{\"code\":\"x\",\"name\":\"y\"}")
        .await;
    assert_eq!(reply.status, 401, "{reply:?}");
}

#[tokio::test]
async fn unauthenticated_idle_connections_cost_little_and_block_nobody() {
    let room = 8;
    let front = Front::holding(Accounts { strangers: room * (36 << 10), ..Accounts::default() }).await;
    let mut waiting = Vec::new();
    for _ in 0..4 * room {
        waiting.push(connect(&front, "POST /v1/pair HTTP/1.1\r\n").await);
        assert!(used(&front, Class::Strangers) <= room * (36 << 10));
    }
    assert_eq!(front.admin("GET", "/v1/me", Value::Null).await.status, 200);
    // The oldest are cut off; the newest are still there.
    assert_eq!(rest(&mut waiting[0]).await, "");
    let last = waiting.last_mut().unwrap();
    let body = "{\"code\":\"x\",\"name\":\"y\"}";
    let more = format!(
        "host: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        front.address,
        body.len()
    );
    last.write_all(more.as_bytes()).await.unwrap();
    assert!(rest(last).await.starts_with("HTTP/1.1 401"), "it was heard");
}

#[tokio::test]
async fn endless_bodies_are_refused_above_their_devices_share() {
    let front = Front::holding(Accounts { device: 8 * MIB, ..Accounts::default() }).await;
    let (session, token) = (front.session("fake").await, front.token(json!({ "scopes": ["watch", "prompt"] })).await);
    let path = format!("/v1/sessions/{session}/prompt");
    let mut open = Vec::new();
    let mut refused = 0;
    for path in ["/acp", &path, "/acp", &format!("/ag-ui/{session}")].into_iter().cycle().take(12) {
        let mut stream = connect(&front, &post(&front, path, &token, 15 * MIB)).await;
        // The body may be refused in the middle.
        let _ = stream.write_all(&vec![b' '; MIB]).await;
        open.push(stream);
    }
    until("the first were read", || used(&front, Class::Device) > 3 * MIB).await;
    for stream in &mut open {
        let mut start = [0; 12];
        let answered = tokio::time::timeout(Duration::from_millis(300), stream.read_exact(&mut start)).await;
        if answered.is_ok_and(|read| read.is_ok()) {
            assert_eq!(&start, b"HTTP/1.1 429");
            refused += 1;
        }
        assert!(used(&front, Class::Device) <= 8 * MIB);
    }
    assert!((6..12).contains(&refused), "{refused} of 12 were refused");
    // Another device is not affected.
    say(&front, &session, 100_000).await;
    drop(open);
    until("all is given back", || used(&front, Class::Gateway) == used(&front, Class::Strangers)).await;
    let reply = front.call(&token, "POST", &path, json!({ "text": "x".repeat(2 * MIB) })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
}

#[tokio::test]
async fn endless_frames_close_their_socket_above_their_devices_share() {
    let front = Front::holding(Accounts { device: 4 * MIB, ..Accounts::default() }).await;
    let token = front.token(json!({ "scopes": ["watch"] })).await;
    let mut open = Vec::new();
    for n in 0..8 {
        let mut socket = web_socket(&front, &token).await;
        // Half of them in one frame, half in fragments.
        let whole = if n % 2 == 0 { 15 * MIB } else { MIB };
        let mut begin = head(whole);
        begin[0] = if n % 2 == 0 { 0x81 } else { 0x01 };
        socket.write_all(&begin).await.unwrap();
        let _ = socket.write_all(&vec![b' '; MIB]).await;
        open.push(socket);
        assert!(used(&front, Class::Device) <= 4 * MIB);
    }
    until("the first were read", || used(&front, Class::Device) > 2 * MIB).await;
    let mut own = web_socket(&front, &front.admin).await;
    own.write_all(&frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)).await.unwrap();
    let mut answer = [0; 2];
    tokio::time::timeout(LONG, own.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer[0], 0x81, "another device is none the worse");
    let mut closed = 0;
    for socket in &mut open {
        let mut start = [0; 4];
        if tokio::time::timeout(Duration::from_millis(300), socket.read_exact(&mut start))
            .await
            .is_ok_and(|read| read.is_ok())
        {
            assert_eq!((start[0], u16::from_be_bytes([start[2], start[3]])), (0x88, 1013));
            closed += 1;
        }
    }
    assert!(closed >= 4, "{closed} of 8 were closed");
    drop(open);
    until("all is given back", || used(&front, Class::Device) == 0).await;
}

#[tokio::test]
async fn control_frames_and_small_messages_leave_no_charge() {
    let front = Front::new().await;
    let mut socket = web_socket(&front, &front.admin).await;
    socket.write_all(&frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)).await.unwrap();
    let mut ping = vec![0x89, 0x80 | 125, 0, 0, 0, 0];
    ping.extend([b'p'; 125]);
    let mut answers = Vec::new();
    for _ in 0..2000 {
        socket.write_all(&ping).await.unwrap();
        let _ = socket.try_read_buf(&mut answers);
    }
    until("they are all read", || used(&front, Class::Device) <= 8 << 10).await;
    // A long message, with pings between its fragments, is charged while it comes, and not after.
    let text = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"runtime.list","params":{{"x":"{}"}}}}"#, "x".repeat(MIB));
    let (first, second) = text.split_at(text.len() / 2);
    let mut one = head(first.len());
    one[0] = 0x01;
    let mut two = head(second.len());
    two[0] = 0x80;
    socket.write_all(&[&one, first.as_bytes(), &ping[..], &ping[..]].concat()).await.unwrap();
    until("half of it is charged", || used(&front, Class::Device) >= first.len() - (8 << 10)).await;
    socket.write_all(&[&two, second.as_bytes()].concat()).await.unwrap();
    until("it is whole", || used(&front, Class::Device) <= 8 << 10).await;
}

#[tokio::test]
async fn message_that_takes_too_long_is_not_waited_for() {
    let gate = GateLimits { body: Duration::from_millis(200) };
    let front = Front::with(ListenLimits::default(), gate).await;
    let mut socket = web_socket(&front, &front.admin).await;
    socket.write_all(&frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)).await.unwrap();
    socket.write_all(&head(1000)).await.unwrap();
    assert_eq!(close_code(&mut socket).await, 1008);
}

#[tokio::test]
async fn unread_histories_wait_for_each_other() {
    let front = Front::holding(Accounts { connection: 6 * MIB, ..Accounts::default() }).await;
    let session = front.session("fake").await;
    // A page has some of the events, and nearly as many bytes as allowed.
    for _ in 0..4 {
        say(&front, &session, 60_000).await;
    }
    let mut socket = web_socket(&front, &front.admin).await;
    socket.write_all(&frame(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)).await.unwrap();
    for n in 1..=60 {
        let ask =
            json!({ "jsonrpc": "2.0", "id": n, "method": "session.history", "params": { "session_id": session } });
        socket.write_all(&frame(&ask.to_string())).await.unwrap();
    }
    until("some are read", || used(&front, Class::Connection) >= MIB / 4).await;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(used(&front, Class::Connection) <= 6 * MIB);
    }
    // A client that reads gets all of them.
    let (mut bytes, mut answered) = (Vec::new(), 0);
    while answered < 61 {
        let n = tokio::time::timeout(LONG, socket.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert!(n > 0, "after {answered}");
        while bytes.len() >= 10 {
            let (length, start) = match bytes[1] {
                126 => (usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), 4),
                127 => (u64::from_be_bytes(bytes[2..10].try_into().unwrap()) as usize, 10),
                length => (usize::from(length), 2),
            };
            if bytes.len() < start + length {
                break;
            }
            assert_eq!(bytes[0], 0x81);
            bytes.drain(..start + length);
            answered += 1;
        }
    }
    until("all is given back", || used(&front, Class::Device) == 0).await;
}

#[tokio::test]
async fn unread_pages_are_refused_above_their_devices_share_and_time_out() {
    let accounts = Accounts { device: 2 * MIB, ..Accounts::default() };
    let front = Front::holding(accounts).await;
    let session = front.session("fake").await;
    // A page has many slices, and an event fits into one.
    for _ in 0..16 {
        say(&front, &session, 60_000).await;
    }
    let page = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        front.address, front.admin
    );
    let mut unread = Vec::new();
    for _ in 0..30 {
        // A small window, so that the page waits in the gateway.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(front.address).await.unwrap();
        // The kernel's buffers may take the first of them.
        stream.write_all(page.repeat(6).as_bytes()).await.unwrap();
        unread.push(stream);
        assert!(used(&front, Class::Device) <= 2 * MIB);
    }
    // The begun pages wait for room, and there is none for another slice.
    let mut full = 0;
    until("the device has its share", || {
        let used = used(&front, Class::Device);
        assert!(used <= 2 * MIB);
        full = if used > 2 * MIB - MIB / 4 { full + 1 } else { 0 };
        full > 60
    })
    .await;
    let reply = front.admin("GET", &format!("/v1/sessions/{session}/events"), Value::Null).await;
    assert_eq!((reply.status, reply.code().as_str()), (429, "over_limit"), "{reply:?}");
    assert_eq!((reply.header("retry-after"), &reply.json()["account"]), (Some("1"), &json!("device")));
    drop(unread);
    until("all is given back", || used(&front, Class::Device) == 0).await;
    // Not before: this response needs room too.
    let metrics = front.admin("GET", "/metrics", Value::Null).await.body;
    assert!(metrics.contains("plexus_ledger_limit_bytes{account=\"device\"} 2097152"), "{metrics}");
    let near = front.core.ledger.connection("d_local").charge(2 * MIB - MIB / 4).unwrap();
    let doctor = front.admin("GET", "/v1/doctor", Value::Null).await;
    assert!(doctor.body.contains("memory device d_local"), "{doctor:?}");
    drop(near);
    assert_eq!(front.admin("GET", &format!("/v1/sessions/{session}/events"), Value::Null).await.status, 200);
}

/// A connection with a small window, so that unread data waits in the gateway.
async fn narrow(front: &Front, text: &str) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(front.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn unread_exports_stay_within_their_devices_share_in_each_format() {
    for format in ["ndjson", "md", "html"] {
        let front = Front::holding(Accounts { device: 2 * MIB, ..Accounts::default() }).await;
        let session = front.session("fake").await;
        for _ in 0..16 {
            say(&front, &session, 60_000).await;
        }
        let path = format!("/v1/sessions/{session}/export?format={format}");
        let whole = front.admin("GET", &path, Value::Null).await;
        assert!(whole.status == 200 && whole.body.len() > 16 * 60_000, "{format}: {}", whole.body.len());
        let ask =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n", front.address, front.admin);
        let mut unread = Vec::new();
        for _ in 0..30 {
            // The kernel's buffers may take the first of them.
            unread.push(narrow(&front, &ask.repeat(6)).await);
        }
        let mut full = 0;
        until("the device has its share", || {
            let used = used(&front, Class::Device);
            assert!(used <= 2 * MIB, "{format}");
            full = if used > MIB { full + 1 } else { 0 };
            full > 60
        })
        .await;
        drop(unread);
        until("all is given back", || used(&front, Class::Device) == 0).await;
        let again = front.admin("GET", &path, Value::Null).await;
        assert!(again.status == 200 && again.body.len() >= whole.body.len(), "{format}: nothing is missing afterwards");
    }
}

#[tokio::test]
async fn event_longer_than_a_page_is_charged_whole_before_it_is_sent() {
    let front = Front::holding(Accounts { device: 24 * MIB, connection: 24 * MIB, ..Accounts::default() }).await;
    let session = front.session("fake").await;
    say(&front, &session, 7 * MIB).await;
    until("the agent has it", || used(&front, Class::Session) == 0).await;
    for path in ["events", "events?before=now&limit=1&merge=false", "export", "events?merge=true"] {
        let path = format!("/v1/sessions/{session}/{path}");
        let whole = front.admin("GET", &path, Value::Null).await;
        assert_eq!(whole.status, 200, "{path}: {}", whole.head);
        until("it is given back", || used(&front, Class::Device) == 0).await;
        // Another request holds the needed room: this one waits or is refused, and never exceeds the limit.
        let held = front.core.ledger.connection("d_local").charge(18 * MIB).unwrap();
        let ask =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n", front.address, front.admin);
        let unread: Vec<TcpStream> = vec![narrow(&front, &ask).await, narrow(&front, &ask).await];
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(used(&front, Class::Device) <= 24 * MIB, "{path}");
        }
        drop((unread, held));
        until("all is given back", || used(&front, Class::Device) == 0).await;
    }
}

#[tokio::test]
async fn unread_response_is_released() {
    if !common::alone("front_limits::unread_response_is_released") {
        return; // what is counted is the whole process's
    }
    let limits = ListenLimits { stall: Duration::from_millis(300), ..ListenLimits::default() };
    let front = Front::with(limits, GateLimits::default()).await;
    let session = front.session("fake").await;
    for _ in 0..8 {
        say(&front, &session, 700_000).await;
    }
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(front.address).await.unwrap();
    let ask = |path: &str| {
        format!(
            "GET /v1/sessions/{session}/{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            front.address, front.admin
        )
    };
    stream.write_all(ask("events").repeat(12).as_bytes()).await.unwrap();
    until("slices wait, longer than usual", || used(&front, Class::Device) > MIB / 4).await;
    until("the connection is cut", || used(&front, Class::Device) == 0 && plexus::metrics::metrics().stalled.get() > 0)
        .await;
    // Another streamed response.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(front.address).await.unwrap();
    stream.write_all(ask("export?format=ndjson").repeat(12).as_bytes()).await.unwrap();
    let before = plexus::metrics::metrics().stalled.get();
    until("the connection is cut", || plexus::metrics::metrics().stalled.get() > before).await;
}

#[tokio::test]
async fn prompt_above_its_limit_is_refused_by_name_on_every_frontend() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let text = "x".repeat(9 * MIB);
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": text })).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "prompt_too_large"), "{:?}", reply.head);
    assert_eq!(reply.json()["limit"], 8 * MIB);
    let mut socket = web_socket(&front, &front.admin).await;
    socket.write_all(&frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)).await.unwrap();
    let start =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "run.start", "params": { "session_id": session, "text": text } });
    socket.write_all(&frame(&start.to_string())).await.unwrap();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("prompt_too_large") {
        assert!(tokio::time::timeout(LONG, socket.read_buf(&mut bytes)).await.unwrap().unwrap() > 0);
    }
    let events = front.admin("GET", &format!("/v1/sessions/{session}/events"), Value::Null).await.json();
    assert!(!events.to_string().contains("user_message_chunk"), "{events}");
    say(&front, &session, 7 * MIB).await;
}

#[tokio::test]
async fn queued_prompts_are_charged_to_their_session_until_sent() {
    let front = Front::holding(Accounts { session: 4 * MIB, ..Accounts::default() }).await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/prompt");
    front.admin("POST", &path, json!({ "text": "hang" })).await;
    let big = json!({ "text": "x".repeat(MIB) });
    for _ in 0..3 {
        assert_eq!(front.admin("POST", &path, big.clone()).await.status, 202);
    }
    assert!(used(&front, Class::Session) > 3 * MIB);
    let key = [("idempotency-key", "k1")];
    let bearer = format!("Bearer {}", front.admin);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), key[0]];
    let half = json!({ "text": "y".repeat(MIB / 2) }).to_string();
    let first = front.send("POST", &path, &headers, &half).await;
    assert_eq!(first.status, 202, "{first:?}");
    let reply = front.admin("POST", &path, big.clone()).await;
    assert_eq!((reply.status, reply.code().as_str()), (429, "over_limit"), "{reply:?}");
    assert_eq!(reply.json()["account"], "session");
    // A repeated prompt is recognised without room for it.
    let filled = front.core.ledger.session(&session, "fake").charge(4 * MIB - used(&front, Class::Session)).unwrap();
    let again = front.send("POST", &path, &headers, &half).await;
    assert_eq!((again.status, &again.json()["run_id"]), (202, &first.json()["run_id"]), "{again:?}");
    drop(filled);
    // Another session has a limit of its own.
    let other = front.session("fake").await;
    say(&front, &other, MIB).await;
    front.admin("POST", &format!("/v1/sessions/{session}/cancel"), json!({})).await;
    until("all were begun", || used(&front, Class::Session) == 0).await;
}
