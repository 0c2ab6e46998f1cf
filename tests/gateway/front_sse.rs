//! Server-sent events over real sockets, read by a plain client.
//!
//! Raw sockets: the bytes of the stream are what is tested.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::front::{Front, LONG};
use plexus::router::{GateLimits, ListenLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One event, as an `EventSource` would dispatch it.
#[derive(Debug, Default, Clone, PartialEq)]
struct Event {
    id: Option<String>,
    name: String,
    data: String,
    retry: Option<u64>,
    comment: Option<String>,
}

impl Event {
    fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

struct Stream {
    stream: TcpStream,
    bytes: Vec<u8>,
    text: String,
    over: bool,
}

impl Stream {
    async fn open(front: &Front, token: &str, path: &str, more: &str) -> Self {
        let mut stream = TcpStream::connect(front.address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\naccept: text/event-stream\r\n{more}\r\n",
            front.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut this = Self { stream, bytes: Vec::new(), text: String::new(), over: false };
        loop {
            assert!(this.fill().await, "{}", String::from_utf8_lossy(&this.bytes));
            if let Some(end) = this.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(this.bytes.drain(..end + 4).collect()).unwrap().to_ascii_lowercase();
                assert!(head.starts_with("http/1.1 200"), "{head}{}", String::from_utf8_lossy(&this.bytes));
                assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
                assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
                return this;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let read = tokio::time::timeout(LONG, self.stream.read_buf(&mut self.bytes)).await.expect("silence");
        read.unwrap() > 0
    }

    /// The next block of the stream; `None` at its regular end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => event.id = Some(id.into()),
                        Some(("event", name)) => event.name = name.into(),
                        Some(("data", data)) => event.data = data.into(),
                        Some(("retry", retry)) => event.retry = retry.parse().ok(),
                        Some(("", comment)) => event.comment = Some(comment.into()),
                        _ => assert!(line.is_empty(), "{line:?}"),
                    }
                }
                return Some(event);
            }
            if self.over {
                return None;
            }
            while !self.unchunk() {
                assert!(self.fill().await, "the connection broke off");
            }
        }
    }

    /// Decodes one chunk.
    fn unchunk(&mut self) -> bool {
        let Some(line) = self.bytes.windows(2).position(|two| two == b"\r\n") else { return false };
        let len = usize::from_str_radix(std::str::from_utf8(&self.bytes[..line]).unwrap(), 16).unwrap();
        if self.bytes.len() < line + 4 + len {
            return false;
        }
        assert_eq!(&self.bytes[line + 2 + len..line + 4 + len], b"\r\n");
        self.text.push_str(std::str::from_utf8(&self.bytes[line + 2..line + 2 + len]).unwrap());
        self.bytes.drain(..line + 4 + len);
        self.over = len == 0;
        true
    }

    /// All events up to and with one of this name.
    async fn to(&mut self, name: &str) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let event = self.next().await.expect("the stream ended");
            let last = event.name == name;
            all.push(event);
            if last {
                return all;
            }
        }
    }
}

async fn prompt(front: &Front, session: &str, text: &str) {
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": text })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
}

#[tokio::test]
async fn sse_sends_hello_replay_live_and_then_new_events() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/events");
    prompt(&front, &session, "before").await;
    let mut first = Stream::open(&front, &front.admin, &path, "").await;
    let retry = first.next().await.unwrap();
    assert!((1000..=3000).contains(&retry.retry.unwrap()), "{retry:?}");
    let hello = first.next().await.unwrap();
    assert_eq!((hello.name.as_str(), &hello.id), ("hello", &None));
    assert_eq!(hello.json()["resume"], "ok");
    assert_eq!(hello.json()["sessions"][0]["session_id"], *session);
    assert_eq!(hello.json()["you"]["name"], "this machine");
    let mut all = first.to("run_ended").await;
    prompt(&front, &session, "after").await;
    all.extend(first.to("run_ended").await);
    assert_eq!(all.iter().filter(|event| event.name == "live").count(), 1);
    all.retain(|event| event.name != "live");
    for event in &all {
        let json = event.json();
        assert_eq!((json["cursor"].as_str(), json["kind"].as_str()), (event.id.as_deref(), Some(&*event.name)));
    }
    // Again from the start and from the middle; the header takes precedence over the query.
    let mut again = Stream::open(&front, &front.admin, &format!("/v1/events?session={session}"), "").await;
    let mut same = again.to("run_ended").await;
    same.extend(again.to("run_ended").await);
    same.retain(|event| event.id.is_some());
    assert_eq!(same, all);
    let middle = all[2].id.clone().unwrap();
    let header = format!("last-event-id: {middle}\r\n");
    let mut resumed = Stream::open(&front, &front.admin, &format!("{path}?after=now"), &header).await;
    let mut rest = resumed.to("run_ended").await;
    rest.extend(resumed.to("run_ended").await);
    rest.retain(|event| event.id.is_some());
    assert_eq!(rest, all[3..]);
    // Only new events: `live` has the cursor for a client that is cut off before the first.
    let mut now = Stream::open(&front, &front.admin, &format!("{path}?after=now"), "").await;
    let live = now.to("live").await.pop().unwrap();
    assert_eq!(live.id.as_deref(), live.json()["head"].as_str());
    assert_eq!(live.id, all.last().unwrap().id);
    prompt(&front, &session, "much later").await;
    let later = now.to("run_ended").await;
    assert!(later.iter().all(|event| all.iter().all(|old| old.id != event.id)));
}

#[tokio::test]
async fn sse_bad_cursor_gets_a_snapshot_with_a_good_one() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/events");
    prompt(&front, &session, "some words").await;
    let mut first = Stream::open(&front, &front.admin, &path, "").await;
    first.to("run_ended").await;
    for (cursor, verdict) in [("otherlife:2".to_owned(), "reset"), (format!("{}:4000000", front.core.epoch()), "ahead")]
    {
        let mut late = Stream::open(&front, &front.admin, &path, &format!("last-event-id: {cursor}\r\n")).await;
        let start = late.to("live").await;
        let names: Vec<_> = start.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["", "hello", "snapshot", "live"]);
        assert_eq!(start[1].json()["resume"], verdict);
        assert!(start[2].data.contains("some words"));
        assert_eq!(start[2].id.as_deref(), start[2].json()["cursor"].as_str());
    }
    let native = Stream::open(&front, &front.admin, &format!("{path}?projection=native"), "").await;
    drop(native);
    let auth = format!("Bearer {}", front.admin);
    let headers = [("authorization", auth.as_str()), ("accept", "text/event-stream")];
    assert_eq!(front.send("GET", &format!("{path}?projection=odd"), &headers, "").await.status, 422);
    assert_eq!(front.send("GET", &format!("{path}?after=odd"), &headers, "").await.status, 400);
}

#[tokio::test]
async fn sse_stream_ends_properly_on_revocation_and_shutdown() {
    let front = Front::new().await;
    let reply = front.admin("POST", "/v1/devices", json!({ "name": "phone", "scopes": ["watch"] })).await.json();
    let mut phone = Stream::open(&front, reply["token"].as_str().unwrap(), "/v1/events", "").await;
    phone.to("live").await;
    let mut own = Stream::open(&front, &front.admin, "/v1/events", "").await;
    own.to("live").await;
    let path =
        format!("/v1/devices/{}", reply["device"]["device_id"].as_str().or(reply["device_id"].as_str()).unwrap());
    assert!(front.admin("DELETE", &path, Value::Null).await.status < 300);
    assert_eq!(phone.next().await, None, "the last chunk");
    // The connection serves the next request, as after any response.
    phone
        .stream
        .write_all(format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", front.address).as_bytes())
        .await
        .unwrap();
    while !phone.bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(phone.fill().await);
    }
    assert!(phone.bytes.starts_with(b"HTTP/1.1 200"));
    front.stop.send_replace(true);
    assert_eq!(own.next().await, None, "the last chunk");
}

#[tokio::test]
async fn sse_client_that_leaves_is_noticed_without_events() {
    // One connection at a time: the next one is served once the gateway has noticed the end.
    let limits = ListenLimits { connections: 1, ..ListenLimits::default() };
    let front = Front::with(limits, GateLimits::default()).await;
    for _ in 0..3 {
        let mut stream = Stream::open(&front, &front.admin, "/v1/events", "").await;
        stream.to("live").await;
    }
}

#[tokio::test]
async fn agui_message_with_the_id_of_another_is_refused_by_name() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let post = async |thread: &str, text: &str| {
        let messages = json!([{ "id": "m1", "role": "user", "content": text }]);
        let body = json!({
            "threadId": thread, "runId": "r", "state": {}, "messages": messages, "tools": [], "context": [], "forwardedProps": {},
        });
        front.admin("POST", &format!("/ag-ui/{session}"), body).await
    };
    assert_eq!(post("one", "hello").await.status, 200);
    assert_eq!(post("one", "hello").await.status, 200, "a retry is shown its run");
    for thread in ["one", "after a reload"] {
        let refused = post(thread, "goodbye").await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "message_id_reused"), "{refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().contains("\"m1\""), "{refused:?}");
    }
    let snapshot = front.admin("GET", &format!("/v1/sessions/{session}/snapshot"), Value::Null).await.json();
    let prompts = snapshot["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    assert_eq!(prompts, 1, "{snapshot}");
}
