//! The real binary on a port of its own, and clients that keep the state of real ones.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use plexus_client::{Client, ClientEvent, Follow, FollowStart};
use plexus_protocol::SessionId;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

/// Maximum waiting time; only a failing test reaches it.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Time that a run may take, whatever it says: less than until the test is ended from outside, without a word of why.
const RUN_MAX: Duration = Duration::from_secs(240);

/// The program under test.
pub fn exe() -> &'static str {
    env!("CARGO_BIN_EXE_plexus")
}

/// The demo runtime, attached as `demo`.
pub fn demo() -> String {
    runtime("demo", &[exe(), "agent", "demo"], "")
}

/// The configuration of a runtime that ends with the gateway.
pub fn runtime(id: &str, command: &[&str], more: &str) -> String {
    held_runtime(id, command, &format!("outlive = false\n{more}"))
}

/// The configuration of a runtime that outlives the gateway.
pub fn held_runtime(id: &str, command: &[&str], more: &str) -> String {
    format!("[[runtime]]\nid = {}\ndialect = \"acp\"\ncommand = {}\n{more}\n", json!(id), json!(command))
}

/// Ends all runtimes that a gateway in this home left running.
pub fn end_runtimes(home: &Path) {
    for found in plexus_holder::client::find_holders(&home.join(plexus::HOLDERS)) {
        let _ = plexus_holder::client::stop(&found.path, Duration::ZERO, Duration::from_millis(100));
    }
}

/// A running gateway with a home of its own; killed when dropped.
pub struct Gateway {
    child: Child,
    env: Vec<(String, String)>,
    pub home: PathBuf,
    _dir: tempfile::TempDir,
    pub url: String,
    pub token: String,
    /// For requests that the client of the gateway does not make: other tokens, other headers.
    pub http: reqwest::Client,
    client: Client,
}

impl Gateway {
    /// A gateway with the demo runtime.
    pub async fn demo() -> Self {
        Self::start(&demo()).await
    }

    /// A gateway with this configuration (`listen` is set to a free port).
    pub async fn start(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_in(dir, config).await
    }

    /// A gateway whose state is in `dir/home`.
    pub async fn start_in(dir: tempfile::TempDir, config: &str) -> Self {
        Self::start_with(dir, config, &[]).await
    }

    /// Starts like [`start_in`](Self::start_in), with these variables.
    pub async fn start_with(dir: tempfile::TempDir, config: &str, env: &[(&str, &str)]) -> Self {
        let home = dir.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(dir.path().join("plexus.toml"), format!("listen = \"127.0.0.1:0\"\n{config}")).unwrap();
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let child = spawn(dir.path(), &home, &env);
        let (url, token, client) = (String::new(), String::new(), Client::new("", ""));
        let mut gateway = Self { child, env, home, _dir: dir, url, token, http: http(), client };
        gateway.ready().await;
        gateway
    }

    async fn ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the gateway exited at once: {status}; its stderr: {}", self.stderr());
            }
            let json = std::fs::read(self.home.join("gateway.json")).ok();
            let json = json.and_then(|json| serde_json::from_slice::<Value>(&json).ok());
            if let Some(json) = json.filter(|json| json["pid"] == self.child.id()) {
                self.url = json["url"].as_str().unwrap().trim_end_matches('/').to_owned();
                self.token = std::fs::read_to_string(self.home.join("token")).unwrap().trim().to_owned();
                self.client = Client::new(&self.url, &self.token);
                if self.client.http("GET", "/healthz", None, None).await.is_ok() {
                    return;
                }
            }
            assert!(Instant::now() < deadline, "the gateway did not start; its stderr: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The gateway's stderr so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.home.join("../stderr")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the gateway with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn stop(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the gateway did not stop");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Restarts the gateway in the same home.
    pub async fn again(&mut self) {
        self.child = spawn(self.home.parent().unwrap(), &self.home, &self.env);
        self.ready().await;
    }

    /// A request with the administrator's token.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token)
    }

    /// GET, as status and JSON.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, None).await
    }

    /// POST of JSON, as status and JSON.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, Some(&body)).await
    }

    /// PATCH of JSON, as status and JSON.
    pub async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("PATCH", path, Some(&body)).await
    }

    /// PUT, as status and JSON.
    pub async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("PUT", path, Some(&body)).await
    }

    /// DELETE, as status and JSON.
    pub async fn delete(&self, path: &str) -> (u16, Value) {
        self.call("DELETE", path, None).await
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let reply = self.client.http(method, path, body, None).await;
        let reply = reply.unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        (reply.status, serde_json::from_str(&reply.text).unwrap_or(Value::String(reply.text)))
    }

    /// Follows a session; the follower is there when this returns.
    pub async fn follow(&self, session: &str, begin: FollowStart) -> Watcher {
        let session: SessionId = session.parse().unwrap();
        let mut watcher = Watcher(self.client.attach(Some(&session), begin));
        while !matches!(watcher.next().await, ClientEvent::Hello(_)) {}
        watcher
    }

    /// Opens a session and returns its identifier.
    pub async fn session(&self, runtime: &str) -> String {
        let (status, body) = self.post("/v1/sessions", json!({ "runtime_id": runtime })).await;
        assert!(status == 200 || status == 201, "{status} {body}");
        body["session_id"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    /// Sends a prompt and returns its run.
    pub async fn prompt(&self, session: &str, text: &str) -> String {
        let (status, body) = self.post(&format!("/v1/sessions/{session}/prompt"), json!({ "text": text })).await;
        assert_eq!(status, 202, "{body}");
        body["run_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a request of the session is open, and returns it.
    pub async fn open_request(&self, session: &str) -> Value {
        self.open_requests(session, 1).await.remove(0)
    }

    /// Waits until `count` requests of the session are open, and returns them.
    pub async fn open_requests(&self, session: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, body) = self.get("/v1/requests?state=open").await;
            let mut all: Vec<Value> = body["requests"].as_array().unwrap().clone();
            all.retain(|request| request["session_id"] == session);
            if all.len() >= count {
                return all;
            }
            assert!(Instant::now() < deadline, "no request opened");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Answers a request with one of its options.
    pub async fn choose(&self, request: &Value, option: &str) -> (u16, Value) {
        let id = request["request_id"].as_str().unwrap();
        self.post(&format!("/v1/requests/{id}/answer"), json!({ "option_id": option })).await
    }

    /// The option of this kind.
    pub fn option(request: &Value, kind: &str) -> String {
        let options = request["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind);
        option.unwrap_or_else(|| panic!("no {kind} in {request}"))["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the run has ended and returns all events of the session so far, read page by page.
    pub async fn until_ended(&self, session: &str, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut after = String::new();
        let mut deadline = Instant::now() + PATIENCE;
        let end = Instant::now() + RUN_MAX;
        loop {
            let (status, page) =
                self.get(&format!("/v1/sessions/{session}/events?after={after}&wait=5&limit=1000")).await;
            assert_eq!(status, 200, "{page}");
            let some = page["events"].as_array().unwrap();
            if !some.is_empty() {
                // The deadline starts anew with each event, since a busy machine is slow.
                deadline = Instant::now() + PATIENCE;
            }
            events.extend(some.iter().cloned());
            after = page["next"].as_str().unwrap().to_owned();
            if events.iter().any(|event| event["kind"] == "run_ended" && event["run_id"] == run) {
                return events;
            }
            let last: Vec<_> = events.iter().rev().take(5).collect();
            assert!(Instant::now() < deadline.min(end), "{run} did not end; the last of {}: {last:?}", events.len());
        }
    }

    /// All events of a session.
    pub async fn events(&self, session: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut after = String::new();
        loop {
            let (status, page) = self.get(&format!("/v1/sessions/{session}/events?after={after}&limit=5000")).await;
            assert_eq!(status, 200, "{page}");
            let some = page["events"].as_array().unwrap();
            events.extend(some.iter().cloned());
            after = page["next"].as_str().unwrap().to_owned();
            if some.is_empty() {
                return events;
            }
        }
    }

    /// An initialized WebSocket client, for tests of the wire itself; [`follow`](Self::follow) is for those that only watch.
    pub async fn ws(&self) -> Ws {
        let token = self.token.clone();
        self.ws_as(&token).await
    }

    /// A WebSocket client with this token.
    pub async fn ws_as(&self, token: &str) -> Ws {
        let mut ws = self.ws_silent("/v1/ws", token).await;
        let hello = json!({ "protocol_version": "0", "client": { "name": "story", "version": "1" },
            "ui_capabilities": { "supports_confirm": true, "supports_prompt": true, "supports_pick": true } });
        ws.call("initialize", hello).await.unwrap();
        ws
    }

    /// A WebSocket client that is not initialized.
    pub async fn ws_plain(&self, path: &str) -> Ws {
        self.ws_silent(path, &self.token).await
    }

    /// Connects in the same way, with this token.
    pub async fn ws_at(&self, path: &str, token: &str) -> Ws {
        self.ws_silent(path, token).await
    }

    async fn ws_silent(&self, path: &str, token: &str) -> Ws {
        let url = format!("{}{path}", self.url.replace("http://", "ws://"));
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("Authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        Ws { socket, next_id: 0, heard: VecDeque::new() }
    }

    /// An SSE client.
    pub async fn sse(&self, path: &str, last: Option<&str>) -> Sse {
        let mut request = self.request("GET", path).header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Sse::new(response)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_runtimes(&self.home);
        if std::thread::panicking() {
            eprintln!("--- the gateway's stderr\n{}", self.stderr());
        }
    }
}

fn spawn(dir: &Path, home: &Path, env: &[(String, String)]) -> Child {
    let stderr = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("stderr")).unwrap();
    Command::new(exe())
        .args(["serve", "-c"])
        .arg(dir.join("plexus.toml"))
        .env("PLEXUS_HOME", home)
        .env("NO_COLOR", "1")
        // A daemon that runs on this machine is none of the test's.
        .env("CODEX_HOME", dir.join("codex"))
        .envs(env.iter().cloned())
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap()
}

/// An HTTP client that closes idle connections before the gateway's five seconds: on a busy machine a request could otherwise
/// use a connection that is just being closed.
fn http() -> reqwest::Client {
    // Reading back a conversation may take an agent more than a minute.
    let client = reqwest::Client::builder().no_proxy().read_timeout(3 * PATIENCE);
    client.pool_idle_timeout(Duration::from_secs(2)).build().unwrap()
}

/// A follower of a session whose connection is never lost.
pub struct Watcher(Follow);

impl Watcher {
    async fn next(&mut self) -> ClientEvent {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("nothing came");
        match next.expect("the follower ended").unwrap() {
            ClientEvent::Lost(why) => panic!("the connection was lost: {why}"),
            next => next,
        }
    }

    /// Events until the run has ended, that one included.
    pub async fn until_ended(&mut self, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let ClientEvent::Event(event) = self.next().await else { continue };
            events.push(serde_json::from_str(event.raw.get()).unwrap());
            if event.envelope.kind == "run_ended" && event.envelope.run_id.as_str() == run {
                return events;
            }
        }
    }
}

/// A native WebSocket client, message by message.
pub struct Ws {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    next_id: u64,
    heard: VecDeque<Value>,
}

impl Ws {
    /// Sends a call and waits for its reply; other messages are kept.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = format!("c{}", self.next_id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.read().await.expect("the connection closed before the reply");
            if message["id"] == id.as_str() && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.heard.push_back(message);
        }
    }

    /// Sends one message.
    pub async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Sends one frame of any kind.
    pub async fn send_frame(&mut self, message: Message) -> Result<(), WsError> {
        self.socket.send(message).await
    }

    /// The next message other than replies; `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<Value> {
        match self.heard.pop_front() {
            Some(message) => Some(message),
            None => self.read().await,
        }
    }

    /// The next frame without pings, which do not extend the wait.
    pub async fn frame(&mut self) -> Option<Result<Message, WsError>> {
        let news = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    other => return other,
                }
            }
        };
        tokio::time::timeout(PATIENCE, news).await.expect("nothing came")
    }

    async fn read(&mut self) -> Option<Value> {
        Some(serde_json::from_str(&self.text().await?).unwrap())
    }

    /// The next text frame, replies included; `None` when the connection is closed.
    pub async fn text(&mut self) -> Option<tokio_tungstenite::tungstenite::Utf8Bytes> {
        loop {
            match self.frame().await? {
                Ok(Message::Text(text)) => return Some(text),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The parameters of the next message with this method.
    pub async fn until(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.expect("the connection closed");
            if message["method"] == method {
                return message["params"].clone();
            }
        }
    }

    /// The next event's envelope; `None` when the connection is closed.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            let message = self.next().await?;
            if message["method"] == "agent.event" {
                return Some(message["params"].clone());
            }
        }
    }

    /// Events up to and with the end of the run.
    pub async fn until_ended(&mut self, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await.expect("the connection closed");
            let over = event["kind"] == "run_ended" && event["run_id"] == run;
            events.push(event);
            if over {
                return events;
            }
        }
    }
}

/// An SSE client.
pub struct Sse {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were returned.
    taken: usize,
}

/// One server-sent event.
#[derive(Clone, Debug)]
pub struct Sent {
    pub id: Option<String>,
    pub event: String,
    pub data: Value,
}

impl Sse {
    fn new(response: reqwest::Response) -> Self {
        Self { body: Box::pin(response.bytes_stream()), buffer: Vec::new(), taken: 0 }
    }

    /// The next block of lines, comments included. `None` when the stream has ended.
    pub async fn block(&mut self) -> Option<String> {
        let mut looked = self.taken;
        loop {
            if let Some(at) = self.buffer[looked..].windows(2).position(|pair| pair == b"\n\n") {
                let end = looked + at + 2;
                let block = String::from_utf8(self.buffer[self.taken..end].to_vec()).unwrap();
                self.taken = end;
                return Some(block);
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            looked = self.buffer.len().saturating_sub(1);
            let more = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("nothing came")?;
            self.buffer.extend_from_slice(&more.ok()?);
        }
    }

    /// The next event, without comments. `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Sent> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned);
            if let (Some(event), Some(data)) = (field("event: "), field("data: ")) {
                return Some(Sent { id: field("id: "), event, data: serde_json::from_str(&data).unwrap() });
            }
        }
    }

    /// Envelopes up to and with the end of the run.
    pub async fn until_ended(&mut self, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let sent = self.next().await.expect("the stream ended");
            if sent.data.get("seq").is_none() {
                continue;
            }
            let over = sent.event == "run_ended" && sent.data["run_id"] == run;
            events.push(sent.data);
            if over {
                return events;
            }
        }
    }
}

/// The text of the agent's messages in these events (of one run, if named).
pub fn said(events: &[Value], run: Option<&str>) -> String {
    let of_run = events.iter().filter(|event| run.is_none_or(|run| event["run_id"] == run));
    of_run
        .filter(|event| event["kind"] == "agent_message_chunk")
        .filter_map(|event| event["event"]["content"]["text"].as_str())
        .collect()
}

/// The position in a cursor.
pub fn position(cursor: &Value) -> u64 {
    cursor.as_str().unwrap().split_once(':').unwrap().1.parse().unwrap()
}

/// Fails unless the numbers of each run are 0, 1, 2 … and the positions rise.
pub fn assert_whole(events: &[Value]) {
    let mut next = std::collections::HashMap::new();
    let mut last = 0;
    for event in events {
        let expected = next.entry(event["run_id"].as_str().unwrap()).or_insert(0);
        assert_eq!(event["seq"], *expected, "a gap or a repeat at {event}");
        *expected += 1;
        let position = position(&event["cursor"]);
        assert!(position > last, "positions rise: {event}");
        last = position;
    }
}

/// Returns whether a process is alive; a zombie is not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

/// The descendants of a process.
pub fn family(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut all, mut next) = (Vec::new(), vec![root]);
    while let Some(pid) = next.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            all.push(*child);
            next.push(*child);
        }
    }
    all
}
