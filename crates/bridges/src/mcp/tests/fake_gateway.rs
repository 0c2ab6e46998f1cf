//! A gateway that speaks the HTTP of the tools, and can be killed and started again in the middle of a call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plexus_protocol::SessionId;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::super::FindGateway;
use super::super::gateway::token_file;

/// The handling of the next call.
#[derive(Clone, Debug)]
pub(crate) enum Trick {
    /// The call is carried out, and the connection is closed without a reply.
    Lose,
    /// The call is not carried out, and the connection is closed without a reply.
    Drop,
    /// The call is refused: status, `Retry-After`, problem.
    Refuse(u16, Option<u64>, Value),
    /// The call is carried out after this time.
    Delay(Duration),
}

/// A call that was carried out.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) key: Option<String>,
}

/// The state that outlives a kill.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) token: String,
    pub(crate) tricks: VecDeque<Trick>,
    /// All calls, with those that were refused or repeated.
    pub(crate) heard: Vec<Done>,
    /// The effects.
    pub(crate) done: Vec<Done>,
    pub(crate) surfaces: BTreeMap<String, u64>,
    pub(crate) asks: BTreeMap<String, Value>,
    answers: HashMap<String, (u16, Value)>,
}

pub(crate) struct FakeGateway {
    pub(crate) home: tempfile::TempDir,
    pub(crate) session: SessionId,
    pub(crate) state: Arc<Mutex<State>>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl FakeGateway {
    /// A gateway that runs.
    pub(crate) async fn start() -> Self {
        let mut gateway = Self::stopped();
        gateway.run().await;
        gateway
    }

    /// A gateway that does not run yet.
    pub(crate) fn stopped() -> Self {
        let home = tempfile::tempdir().unwrap();
        let session: SessionId = "s_test".parse().unwrap();
        let gateway = Self { home, session, state: Arc::default(), serving: None };
        std::fs::create_dir(gateway.home.path().join("ui")).unwrap();
        gateway.new_token("token-1");
        gateway
    }

    /// Takes only this token from now on, and writes it to the file.
    pub(crate) fn new_token(&self, token: &str) {
        self.state.lock().unwrap().token = token.into();
        self.write_token(token, 0o600);
    }

    pub(crate) fn write_token(&self, token: &str, mode: u32) {
        let file = token_file(self.home.path(), &self.session);
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, format!("{token}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    }

    /// Listens on a new port.
    pub(crate) async fn run(&mut self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::fs::write(self.home.path().join("gateway.json"), json!({ "url": url }).to_string()).unwrap();
        let state = Arc::clone(&self.state);
        self.serving = Some(tokio::spawn(async move {
            // Dropped with the task: all connections end with it.
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, Arc::clone(&state)));
            }
        }));
    }

    /// Ends it with all its connections.
    pub(crate) async fn kill(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.abort();
        let _ = serving.await;
    }

    pub(crate) fn find(&self) -> FindGateway {
        let file = self.home.path().join("gateway.json");
        Arc::new(move || {
            let text = std::fs::read(&file);
            Box::pin(async move {
                let value: Value = serde_json::from_slice(&text.map_err(|reason| reason.to_string())?).unwrap();
                Ok(value["url"].as_str().unwrap().to_owned())
            })
        })
    }

    pub(crate) fn trick(&self, trick: Trick) {
        self.state.lock().unwrap().tricks.push_back(trick);
    }

    pub(crate) fn done(&self) -> Vec<Done> {
        self.state.lock().unwrap().done.clone()
    }

    pub(crate) fn heard(&self) -> Vec<Done> {
        self.state.lock().unwrap().heard.clone()
    }

    /// Answers a question as a person.
    pub(crate) fn answer(&self, ask: &str, state: &str, more: Value) {
        let mut reply = json!({ "ask_id": ask, "state": state });
        for (name, value) in more.as_object().unwrap() {
            reply[name] = value.clone();
        }
        self.state.lock().unwrap().asks.insert(ask.into(), reply);
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut stream = BufReader::new(stream);
    while let Some((done, token)) = read(&mut stream).await {
        let trick = {
            let mut state = state.lock().unwrap();
            state.heard.push(done.clone());
            state.tricks.pop_front()
        };
        let mut retry_after = None;
        let (status, body) = match trick {
            Some(Trick::Drop) => return,
            Some(Trick::Refuse(status, after, problem)) => {
                retry_after = after;
                (status, problem)
            }
            Some(Trick::Lose) => {
                handle(&state, done, &token);
                return;
            }
            Some(Trick::Delay(time)) => {
                tokio::time::sleep(time).await;
                handle(&state, done, &token)
            }
            None => match done.path.split_once("?wait=") {
                Some((_, seconds)) => long_poll(&state, done.clone(), &token, seconds.parse().unwrap()).await,
                None => handle(&state, done, &token),
            },
        };
        let body = body.to_string();
        let after = retry_after.map(|after| format!("retry-after: {after}\r\n")).unwrap_or_default();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{after}\r\n", body.len());
        if stream.get_mut().write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A request: the call and its token.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(Done, String)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let mut found = lines.iter().filter_map(|line| line.split_once(": "));
        found.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = lines[0].split(' ');
    let done = Done {
        method: words.next()?.into(),
        path: words.next()?.into(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        key: header("idempotency-key"),
    };
    Some((done, header("authorization").unwrap_or_default()))
}

async fn long_poll(state: &Mutex<State>, done: Done, token: &str, seconds: u64) -> (u16, Value) {
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    loop {
        let reply = handle(state, done.clone(), token);
        if reply.1["state"] != "open" || tokio::time::Instant::now() >= end {
            return reply;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn handle(state: &Mutex<State>, done: Done, token: &str) -> (u16, Value) {
    let mut state = state.lock().unwrap();
    if token != format!("Bearer {}", state.token) {
        return (401, json!({ "code": "unauthorized", "detail": "who are you?" }));
    }
    if let Some(known) = done.key.as_ref().and_then(|key| state.answers.get(key)) {
        return known.clone();
    }
    let reply = carry_out(&mut state, &done);
    if let Some(key) = &done.key {
        state.answers.insert(key.clone(), reply.clone());
    }
    if done.method != "GET" && reply.0 == 200 {
        state.done.push(done);
    }
    reply
}

fn carry_out(state: &mut State, done: &Done) -> (u16, Value) {
    let path = done.path.strip_prefix("/v1/sessions/s_test/").expect(&done.path);
    let path = path.split('?').next().unwrap();
    let parts: Vec<&str> = path.split('/').collect();
    match (done.method.as_str(), parts.as_slice()) {
        ("POST", ["surfaces"]) => {
            let surface = done.body["surface"].as_str().unwrap().to_owned();
            let rev = state.surfaces.entry(surface.clone()).or_default();
            *rev += 1;
            (200, json!({ "surface": surface, "rev": *rev }))
        }
        ("PATCH" | "DELETE", ["surfaces", surface]) => {
            let Some(rev) = state.surfaces.get_mut(*surface) else {
                let detail = "there is no surface of this name; ui_show makes one";
                return (404, json!({ "code": "surface_not_found", "title": "Not found", "detail": detail }));
            };
            if done.body["expect_rev"].as_u64().is_some_and(|expected| expected != *rev) {
                return (409, json!({ "code": "stale_surface", "detail": "it has changed", "rev": *rev }));
            }
            *rev += 1;
            let rev = *rev;
            if done.method == "DELETE" {
                state.surfaces.remove(*surface);
            }
            (200, json!({ "surface": surface, "rev": rev }))
        }
        ("POST", ["asks"]) => {
            let id = format!("q_{}", state.asks.len() + 1);
            state.asks.insert(id.clone(), json!({ "ask_id": id, "state": "open" }));
            (200, json!({ "ask_id": id, "state": "open" }))
        }
        ("GET", ["asks", id]) => match state.asks.get(*id) {
            Some(ask) => (200, ask.clone()),
            None => (404, json!({ "code": "request_not_found", "detail": "there is no such question" })),
        },
        _ => panic!("{done:?}"),
    }
}
