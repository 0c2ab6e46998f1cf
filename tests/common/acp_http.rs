//! ACP over HTTP by hand, for what no library would send.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// Maximum waiting time; only a failing test reaches it.
const LONG: Duration = Duration::from_secs(60);

/// A connection, initialized by [`begin`](Self::begin).
pub struct Raw {
    pub url: String,
    pub token: String,
    pub id: String,
    pub http: reqwest::Client,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub retry_after: Option<String>,
    pub connection: Option<String>,
    pub body: Value,
}

impl Raw {
    /// A client that is not initialized.
    pub fn stranger(url: &str, token: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { url: format!("{url}/acp"), token: token.into(), id: String::new(), http }
    }

    /// A client that takes the gateway's own events.
    pub async fn begin(url: &str, token: &str) -> Self {
        let mut raw = Self::stranger(url, token);
        let reply = raw.initialize().await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.body["id"], "hello");
        raw.id = reply.connection.unwrap();
        raw
    }

    pub async fn initialize(&self) -> Reply {
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": { "plexus": { "events": true } } },
            "clientInfo": { "name": "raw", "version": "1" } });
        self.send("POST", &[], Some(request(json!("hello"), "initialize", hello))).await
    }

    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: Option<Value>) -> Reply {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, &self.url).bearer_auth(&self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let text = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (retry_after, connection) = (text("retry-after"), text("acp-connection-id"));
        let status = response.status().as_u16();
        let body = response.text().await.unwrap();
        let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
        Reply { status, retry_after, connection, body }
    }

    /// Posts a message, with the session's header if given.
    pub async fn post(&self, session: Option<&str>, message: Value) -> Reply {
        let mut headers = vec![("acp-connection-id", self.id.as_str())];
        headers.extend(session.map(|session| ("acp-session-id", session)));
        self.send("POST", &headers, Some(message)).await
    }

    /// Posts a request that must be accepted.
    pub async fn ask(&self, session: Option<&str>, id: &str, method: &str, params: Value) {
        let reply = self.post(session, request(json!(id), method, params)).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// A stream.
    pub async fn stream(&self, session: Option<&str>, last: Option<&str>) -> Stream {
        let response = self.open(session, last).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        Stream::of(response)
    }

    /// The response to a GET.
    pub async fn open(&self, session: Option<&str>, last: Option<&str>) -> reqwest::Response {
        let mut get = self.http.get(&self.url).bearer_auth(&self.token).header("accept", "text/event-stream");
        get = get.header("acp-connection-id", &self.id);
        if let Some(session) = session {
            get = get.header("acp-session-id", session);
        }
        if let Some(last) = last {
            get = get.header("last-event-id", last);
        }
        get.send().await.unwrap()
    }

    /// Joins a session, from its beginning or after a cursor, and reads its stream up to the response.
    pub async fn attach(&self, session: &str, after: Option<&str>) -> (Stream, Vec<Message>) {
        let mut stream = self.stream(Some(session), None).await;
        let (method, meta) = match after {
            None => ("session/load", json!({})),
            Some(after) => ("session/resume", json!({ "plexus": { "after": after } })),
        };
        let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [], "_meta": meta });
        self.ask(Some(session), "attach", method, params).await;
        let mut past = Vec::new();
        loop {
            let message = stream.next().await.expect("the stream ended");
            if message.json["id"] == "attach" {
                assert!(message.json.get("result").is_some(), "{message:?}");
                past.push(message);
                return (stream, past);
            }
            past.push(message);
        }
    }
}

pub fn request(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// One message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: Option<String>,
    pub json: Value,
}

impl Message {
    /// The agent's text.
    pub fn text(&self) -> &str {
        let update = &self.json["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" { update["content"]["text"].as_str().unwrap() } else { "" }
    }

    /// The envelope of a `_plexus/event`.
    pub fn event(&self) -> Option<&Value> {
        (self.json["method"] == "_plexus/event").then(|| &self.json["params"])
    }
}

/// An open stream; dropping it cuts the connection.
pub struct Stream {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: Vec<u8>,
}

impl Stream {
    pub fn of(response: reqwest::Response) -> Self {
        Self { body: Box::pin(response.bytes_stream()), buffer: Vec::new() }
    }

    /// The next message, without comments. `None` when the stream has ended or was cut.
    pub async fn next(&mut self) -> Option<Message> {
        // Heartbeats must not extend the wait.
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            while let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block = String::from_utf8(self.buffer.drain(..at + 2).collect()).unwrap();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned);
                assert_eq!(field("event: "), None, "{block}");
                if let Some(data) = field("data: ") {
                    return Some(Message { id: field("id: "), json: serde_json::from_str(&data).unwrap() });
                }
            }
            let more = tokio::time::timeout_at(deadline, self.body.next()).await.expect("nothing came")?;
            self.buffer.extend_from_slice(&more.ok()?);
        }
    }

    /// Messages up to and with the response with this id.
    pub async fn until(&mut self, id: &str) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("the stream ended before {id}: {all:?}"));
            let over = message.json["id"] == id && message.json.get("method").is_none();
            all.push(message);
            if over {
                return all;
            }
        }
    }
}
