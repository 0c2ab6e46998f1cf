//! Real servers on loopback, a made-up dialect of one word and its arguments a message. One file: every test stands on the
//! same few lines of harness.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, accept_hdr_async};

use super::*;
use plexus_client::liveness::LivenessTimeouts;
use plexus_dialects::{
    EventDraft, HttpBase, HttpReply, HttpRequest, OpenedAs, Outbox, RunEnd, RuntimeCommand, RuntimeEvent, SessionLimit,
};
use plexus_protocol::{Capabilities, Kind, RunStatus, RuntimeId, RuntimeState, Ticket};
use plexus_sessions::{RuntimeExit, RuntimeMessage, RuntimeOrder, SessionSender};

/// A condition that is waited for holds long before this, or never.
const SOON: Duration = Duration::from_secs(30);

struct Words(SessionLimit);

impl Dialect for Words {
    fn open(&mut self, out: &mut Outbox) {
        out.frames.push("hello\n".into());
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let text = String::from_utf8_lossy(&frame).into_owned();
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        out.events.push(match words[..] {
            ["ready"] => RuntimeEvent::Ready { agent: Some("words 1".into()) },
            ["failed"] => RuntimeEvent::Failed { message: "sign in first".into() },
            ["panic"] => panic!("words"),
            ["found", native] => RuntimeEvent::Found { native: native.into(), cwd: Some("/f".into()), title: None },
            ["opened", ticket, native] => RuntimeEvent::Opened {
                ticket: Ticket(ticket.parse().unwrap()),
                native: native.into(),
                drafts: Vec::new(),
                how: OpenedAs::New,
            },
            ["ended", ticket] => RuntimeEvent::Ended {
                native: "?".into(),
                ticket: Ticket(ticket.parse().unwrap()),
                end: RunEnd { status: RunStatus::Completed, stop_reason: None, message: None, native: None },
            },
            ["fetch", id, base, rest] => {
                let (method, path) = rest.split_once(' ').unwrap();
                out.fetches.push(HttpRequest {
                    id: id.parse().unwrap(),
                    base: if base == "remote" { HttpBase::Remote } else { HttpBase::Connect },
                    method: if method == "GET" { "GET" } else { "POST" },
                    path: path.into(),
                    body: (method == "POST").then(|| "{\"a\":1}".into()),
                    decides: method == "DECIDE",
                    session: path.strip_prefix("/of/").and_then(|path| Some(path.split_once('/')?.0.into())),
                });
                return;
            }
            _ => event(frame),
        });
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let frame = match command {
            RuntimeCommand::Open { ticket, .. } => format!("open {}\n", ticket.0),
            RuntimeCommand::Prompt { ticket, .. } => format!("prompt {}\n", ticket.0),
            RuntimeCommand::Call { method, .. } => format!("call {method}\n"),
            RuntimeCommand::Cancel { .. } => {
                let (base, path) = (HttpBase::Connect, "/cancel".into());
                return out.fetches.push(HttpRequest {
                    id: 99,
                    base,
                    method: "POST",
                    path,
                    body: None,
                    decides: true,
                    session: None,
                });
            }
            RuntimeCommand::Answer { .. } => return,
        };
        out.frames.push(frame.into());
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        out.events.push(event("dialect: lost".into()));
    }

    fn events_path(&self) -> &'static str {
        "/events"
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        out.events.push(event(match reply {
            Ok(reply) => format!("reply {id} {} {}", reply.status, String::from_utf8_lossy(&reply.body)).into(),
            Err(reason) => format!("no reply {id}: {reason}").into(),
        }));
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["command", "ws", "unix", "http"]
    }

    fn sessions(&self) -> SessionLimit {
        self.0
    }
}

fn event(frame: Bytes) -> RuntimeEvent {
    RuntimeEvent::Event {
        native: None,
        draft: EventDraft { native: Some(frame), ..EventDraft::new(Kind::AgentMessageChunk, &"") },
    }
}

fn door(change: impl FnOnce(&mut RuntimeSettings)) -> Runtimes {
    let mut settings = RuntimeSettings::new("/nowhere/plexus".into(), "/nowhere/holders".into());
    settings.pause_min = Duration::from_millis(10);
    settings.pause_max = Duration::from_millis(40);
    settings.linger = Duration::from_millis(300);
    change(&mut settings);
    let make = |name: &str| -> Option<MakeDialect> {
        match name {
            "words" => Some(|_| Box::new(Words(SessionLimit::Many))),
            "word" => Some(|_| Box::new(Words(SessionLimit::One))),
            other => crate::dialects::find(other),
        }
    };
    Runtimes { make, ..Runtimes::new(settings) }
}

fn spec(at: &str) -> RuntimeSpec {
    RuntimeSpec::new(RuntimeId::trusted("t"), "words", Connect::Endpoint(at.into()), "/")
}

struct Session {
    sender: SessionSender,
    received: mpsc::Receiver<RuntimeMessage>,
}

impl Session {
    fn open(link: &RuntimeLink, ticket: u64) -> Self {
        let (sender, received) = SessionSender::new();
        let this = Self { sender, received };
        this.order(
            link,
            RuntimeCommand::Open { ticket: Ticket(ticket), cwd: "/".into(), resume: None, mcp_servers: Vec::new() },
        );
        this
    }

    fn order(&self, link: &RuntimeLink, command: RuntimeCommand) {
        link.order(RuntimeOrder { command, sender: self.sender.clone(), generation: 1, answered_at: None }).unwrap();
    }

    fn prompt(&self, link: &RuntimeLink, ticket: u64) {
        self.order(link, RuntimeCommand::Prompt { ticket: Ticket(ticket), native: "A".into(), content: Vec::new() });
    }

    async fn batch(&mut self) -> RuntimeMessage {
        tokio::time::timeout(SOON, self.received.recv()).await.unwrap().unwrap()
    }

    /// Everything up to a line that begins so.
    async fn until(&mut self, line: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.iter().any(|received: &String| received.starts_with(line)) {
            match self.batch().await {
                RuntimeMessage::Events(said, _) => all.extend(said.iter().map(word)),
                other => panic!("{other:?} after {all:?}"),
            }
        }
        all
    }

    /// Waits for the end of the runtime.
    async fn end(&mut self) -> RuntimeExit {
        loop {
            if let RuntimeMessage::Exited(exit) = self.batch().await {
                return exit;
            }
        }
    }
}

fn word(said: &RuntimeEvent) -> String {
    match said {
        RuntimeEvent::Opened { native, .. } => format!("<opened {native}>"),
        RuntimeEvent::NotOpened { error, .. } => format!("<not opened: {}>", error.message),
        RuntimeEvent::Ended { ticket, .. } => format!("<ended {}>", ticket.0),
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::RuntimeStatus => {
            let body: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
            format!("<{}>", body["status"].as_str().unwrap())
        }
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Raw => {
            let body: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
            format!("<raw {}>", body["reason"].as_str().unwrap())
        }
        RuntimeEvent::Event { draft, .. } => String::from_utf8_lossy(draft.native.as_ref().unwrap()).into_owned(),
        other => format!("{other:?}"),
    }
}

async fn info_with(link: &RuntimeLink, want: impl Fn(&RuntimeInfo) -> bool) -> Arc<RuntimeInfo> {
    let mut info = link.watch();
    let found = tokio::time::timeout(SOON, info.wait_for(|info| want(info))).await;
    Arc::clone(&found.unwrap_or_else(|_| panic!("still {:?}", link.info())).unwrap())
}

async fn state(link: &RuntimeLink, want: RuntimeState) -> Arc<RuntimeInfo> {
    info_with(link, |info| info.state == want).await
}

async fn problem(link: &RuntimeLink, words: &str) -> Arc<RuntimeInfo> {
    info_with(link, |info| info.problem.as_ref().is_some_and(|problem| problem.contains(words))).await
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// The server's end of a WebSocket.
struct Peer<S>(WebSocketStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    async fn hear(&mut self) -> String {
        loop {
            match tokio::time::timeout(SOON, self.0.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return "<closed>".into(),
                Some(Ok(_)) => {}
            }
        }
    }

    async fn greet(&mut self) {
        assert_eq!(self.hear().await, "hello");
        self.say("ready").await;
    }

    /// Greets, and opens session A when it is asked for.
    async fn greet_and_open(&mut self) {
        self.greet().await;
        assert_eq!(self.hear().await, "open 1");
        self.say("opened 1 A").await;
    }
}

async fn accept(listener: &TcpListener) -> Peer<TcpStream> {
    let stream = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap().0;
    Peer(accept_async(stream).await.unwrap())
}

// === WebSocket ===

#[tokio::test]
async fn endpoint_exchanges_frames_and_orders_wait_until_it_is_ready() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut peer = accept(&listener).await;
    assert_eq!(link.info().state, RuntimeState::Starting);
    peer.greet().await;
    assert_eq!(peer.hear().await, "open 1", "one message, without the line's end");
    peer.say("opened 1 A").await;
    session.until("<opened A>").await;
    let info = state(&link, RuntimeState::Ready).await;
    assert_eq!((info.agent.as_deref(), info.generation, &info.problem), (Some("words 1"), 1, &None));
    session.prompt(&link, 7);
    assert_eq!(peer.hear().await, "prompt 7");
    for text in ["x", "y\nz", "ended 7"] {
        peer.say(text).await;
    }
    peer.0.send(Message::binary(&b"\xff"[..])).await.unwrap();
    assert_eq!(session.until("\u{fffd}").await, ["x", "y\nz", "<ended 7>", "\u{fffd}"]);
    link.stop();
    let exit = session.end().await;
    assert_eq!((exit.stopped, exit.reason.as_deref()), (true, Some("it was stopped")));
    assert_eq!(peer.hear().await, "<closed>");
    state(&link, RuntimeState::Exited).await;
    door.shutdown().await;
}

#[tokio::test]
async fn endpoint_reconnects_and_the_same_dialect_goes_on() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut peer = accept(&listener).await;
    peer.greet_and_open().await;
    peer.say("last words").await;
    session.until("last words").await;
    drop(peer);
    let info = state(&link, RuntimeState::Restarting).await;
    let reason = info.problem.clone().unwrap();
    assert!(
        reason.starts_with(&format!("lost the connection to ws://{at}/: ")) && reason.ends_with("; reconnecting"),
        "{reason}"
    );
    // What is wanted meanwhile waits.
    session.prompt(&link, 7);
    let second = Session::open(&link, 2);
    let mut peer = accept(&listener).await;
    peer.greet().await;
    assert_eq!((peer.hear().await, peer.hear().await), ("prompt 7".into(), "open 2".into()));
    assert_eq!(session.until("<attached>").await, ["<lost>", "dialect: lost", "<attached>"]);
    let info = state(&link, RuntimeState::Ready).await;
    assert_eq!((info.generation, &info.problem), (1, &None));
    peer.say("opened 2 B").await;
    peer.say("ended 7").await;
    session.until("<ended 7>").await;
    drop(second);
    link.stop();
    assert!(session.end().await.stopped);
}

#[tokio::test]
async fn endpoint_that_is_not_there_yet_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let door = door(|_| {});
    let link = door.launch(spec(&format!("unix:{}", path.display()))).unwrap();
    let mut session = Session::open(&link, 1);
    let info = problem(&link, "cannot connect to unix:/").await;
    assert_eq!(info.state, RuntimeState::Starting);
    let listener = UnixListener::bind(&path).unwrap();
    let stream = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap().0;
    let mut peer = Peer(accept_async(stream).await.unwrap());
    peer.greet().await;
    assert_eq!(peer.hear().await, "open 1");
    peer.say("opened 1 A").await;
    session.until("<opened A>").await;
}

#[tokio::test]
async fn endpoint_that_never_answers_is_given_up_and_tried_again() {
    let (listener, at) = listener().await;
    let door = door(|settings| {
        settings.answer = Duration::from_millis(50);
        settings.handshake = Duration::from_millis(50);
    });
    for (url, what) in [(format!("ws://{at}/"), "did not answer"), (format!("http://{at}"), "did not answer")] {
        let mut spec = spec(&url);
        spec.id = RuntimeId::trusted(&url[..2]);
        let link = door.launch(spec).unwrap();
        // It takes the connection and says nothing, twice.
        let silent = (listener.accept().await.unwrap(), listener.accept().await.unwrap());
        problem(&link, what).await;
        link.stop();
        state(&link, RuntimeState::Exited).await;
        drop(silent);
    }
    // One that upgrades, and then does not finish the handshake of its dialect.
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut first = accept(&listener).await;
    assert_eq!(first.hear().await, "hello");
    problem(&link, "handshake within").await;
    let mut second = accept(&listener).await;
    second.greet().await;
    state(&link, RuntimeState::Ready).await;
}

/// An endpoint that greets, opens session A and answers pings, until it is stopped: then it holds the connection, and reads
/// and says nothing.
fn lively(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    open: bool,
) -> (tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut peer = Peer(accept_async(stream).await.unwrap());
        if open {
            peer.greet_and_open().await;
        } else {
            peer.greet().await;
        }
        tokio::select! {
            _ = stopped => {}
            line = peer.hear() => panic!("{line}"),
        }
        std::future::pending::<()>().await;
    });
    (stop, task)
}

/// Short, but long enough for a busy machine to answer.
fn impatient(settings: &mut RuntimeSettings) {
    settings.liveness = LivenessTimeouts { quiet: Duration::from_millis(100), answer: Duration::from_secs(2) };
}

#[tokio::test]
async fn endpoint_that_is_stopped_is_not_ready_until_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let (tcp, at) = listener().await;
    let unix = UnixListener::bind(&path).unwrap();
    let door = door(impatient);
    for url in [format!("ws://{at}/"), format!("unix:{}", path.display())] {
        let link = door.launch(RuntimeSpec { id: RuntimeId::trusted(&url[..2]), ..spec(&url) }).unwrap();
        let mut session = Session::open(&link, 1);
        let accepted = async || {
            let stream: Box<dyn endpoint::Duplex> = match url.starts_with("unix") {
                true => Box::new(unix.accept().await.unwrap().0) as _,
                false => Box::new(tcp.accept().await.unwrap().0) as _,
            };
            stream
        };
        let (stop, first) = lively(tokio::time::timeout(SOON, accepted()).await.unwrap(), true);
        session.until("<opened A>").await;
        // It says nothing, and answers: it stays.
        tokio::time::sleep(5 * Duration::from_millis(100)).await;
        assert_eq!(link.info().state, RuntimeState::Ready);
        stop.send(()).unwrap();
        problem(&link, "it stopped responding").await;
        let (_stop, second) = lively(tokio::time::timeout(SOON, accepted()).await.unwrap(), false);
        state(&link, RuntimeState::Ready).await;
        session.until("<attached>").await;
        link.stop();
        session.end().await;
        first.abort();
        second.abort();
    }
}

#[tokio::test]
async fn endpoint_event_stream_is_lost_unless_its_server_lives() {
    let (listener, at) = listener().await;
    let door = door(|settings| {
        impatient(settings);
        settings.silence = Duration::from_secs(600);
    });
    let link = door.launch(spec(&format!("http://{at}"))).unwrap();
    let mut first = request(&listener).await;
    first.stream().await;
    first.say("data: ready\n\n").await;
    state(&link, RuntimeState::Ready).await;
    // Another request is answered: the server lives.
    for _ in 0..3 {
        request(&listener).await.stream().await;
    }
    assert_eq!(link.info().state, RuntimeState::Ready);
    // One is not.
    let unanswered = request(&listener).await;
    problem(&link, "it stopped responding").await;
    drop(unanswered);
    let mut second = request(&listener).await;
    second.stream().await;
    second.say("data: ready\n\n").await;
    state(&link, RuntimeState::Ready).await;
    drop(first);
    link.stop();
    state(&link, RuntimeState::Exited).await;
}

#[tokio::test]
async fn endpoint_event_stream_that_is_cut_while_its_server_lives_is_lost() {
    let (listener, at) = listener().await;
    let door = door(|settings| {
        impatient(settings);
        settings.silence = Duration::from_millis(200);
    });
    let link = door.launch(spec(&format!("http://{at}"))).unwrap();
    let mut first = request(&listener).await;
    first.stream().await;
    first.say("data: ready\n\n").await;
    let lives = tokio::spawn(async move {
        loop {
            request(&listener).await.stream().await;
        }
    });
    problem(&link, "its event stream has been silent for 200ms").await;
    drop(first);
    lives.abort();
}

#[tokio::test]
async fn endpoint_secret_goes_into_the_header_and_a_refusal_names_it() {
    use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(RuntimeSpec { secret: Some("s3cret".into()), ..spec(&format!("ws://{at}/p?q=1")) }).unwrap();
    let stream = listener.accept().await.unwrap().0;
    let mut seen = String::new();
    #[expect(clippy::result_large_err, reason = "the signature is the library's")]
    let refuse = |request: &Request, _: Response| -> Result<Response, ErrorResponse> {
        let header = |name| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
        seen = format!("{} {} {}", request.uri(), header("authorization"), header("host"));
        assert!(request.headers().get("origin").is_none());
        Err(http::Response::builder().status(401).body(Some("who are you".into())).unwrap())
    };
    assert!(accept_hdr_async(stream, refuse).await.is_err());
    assert_eq!(seen, format!("/p?q=1 Bearer s3cret {at}"));
    let reason = problem(&link, "401").await.problem.clone().unwrap();
    assert!(reason.contains("check the runtime's secret: who are you") && !reason.contains("s3cret"), "{reason}");
}

#[tokio::test]
async fn endpoint_message_over_the_limit_is_reported_and_reconnects() {
    let (listener, at) = listener().await;
    let door = door(|settings| settings.line_max = 1000);
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut peer = accept(&listener).await;
    peer.greet_and_open().await;
    peer.say(&"x".repeat(1000)).await;
    peer.say(&"x".repeat(1001)).await;
    let raw = "<raw message over the limit of 1000 bytes; 1001 bytes dropped>";
    let lines = session.until(raw).await;
    assert_eq!(lines[1].len(), 1000);
    let mut peer = accept(&listener).await;
    peer.greet().await;
    peer.say("after").await;
    session.until("after").await;
}

#[tokio::test]
async fn endpoint_that_fails_or_breaks_the_dialect_is_left() {
    for (word, reason) in [("failed", "sign in first"), ("panic", "a bug")] {
        let (listener, at) = listener().await;
        let door = door(|_| {});
        let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
        let mut session = Session::open(&link, 1);
        let mut peer = accept(&listener).await;
        peer.greet_and_open().await;
        session.until("<opened A>").await;
        peer.say(word).await;
        let exit = session.end().await;
        assert!(!exit.stopped && exit.reason.unwrap().contains(reason));
        let info = state(&link, RuntimeState::Exited).await;
        assert!(info.problem.as_ref().unwrap().contains(reason));
    }
}

#[tokio::test]
async fn endpoint_conversations_are_offered_unless_they_are_open() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut found = link.take_found().unwrap();
    assert!(link.clone().take_found().is_none());
    let mut session = Session::open(&link, 1);
    let mut peer = accept(&listener).await;
    peer.greet_and_open().await;
    session.until("<opened A>").await;
    for text in ["found A", "found B", "done"] {
        peer.say(text).await;
    }
    session.until("done").await;
    let told = found.try_recv().unwrap();
    assert_eq!((told.native.as_str(), told.cwd.as_deref()), ("B", Some("/f")));
    assert!(found.try_recv().is_err());
    // Each comes, however many there are.
    let all = 3 * plexus_sessions::FOUND;
    for n in 0..all {
        peer.say(&format!("found N{n}")).await;
    }
    peer.say("done").await;
    session.until("done").await;
    for n in 0..all {
        let told = tokio::time::timeout(SOON, found.recv()).await.unwrap().unwrap();
        assert_eq!(told.native.as_str(), format!("N{n}"));
    }
    assert!(link.info().problem.is_none(), "{:?}", link.info().problem);
}

#[tokio::test]
async fn endpoint_of_one_session_takes_no_second() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(RuntimeSpec { dialect: "word".into(), ..spec(&format!("ws://{at}/")) }).unwrap();
    let _first = Session::open(&link, 1);
    let mut second = Session::open(&link, 2);
    accept(&listener).await.greet().await;
    second.until("<not opened: this runtime supports only one session").await;
}

#[tokio::test]
async fn endpoint_waits_for_a_session_that_does_not_read_and_loses_nothing() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(spec(&format!("ws://{at}/"))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut peer = accept(&listener).await;
    peer.greet_and_open().await;
    session.until("<opened A>").await;
    let (sent, mut count) = tokio::sync::watch::channel(0usize);
    let pad = "x".repeat(64 * 1024);
    let flood = tokio::spawn(async move {
        for n in 0..2000 {
            peer.say(&format!("{n} {pad}")).await;
            sent.send_replace(n);
        }
        peer
    });
    // It stands still somewhere before the end: what is in the mailbox, and in the socket.
    let stuck = async {
        loop {
            let before = *count.borrow_and_update();
            if tokio::time::timeout(Duration::from_millis(500), count.changed()).await.is_err() {
                return before;
            }
        }
    };
    let before = tokio::time::timeout(SOON, stuck).await.unwrap();
    assert!(before < 1900, "it sent {before} messages to a session that read nothing");
    // Orders are attended to all the same.
    session.prompt(&link, 3);
    let mut n = 0;
    while n < 2000 {
        let RuntimeMessage::Events(said, _) = session.batch().await else { panic!("gone") };
        for said in &said {
            assert!(word(said).starts_with(&format!("{n} ")));
            n += 1;
        }
    }
    assert_eq!(flood.await.unwrap().hear().await, "prompt 3");
}

// === HTTP ===

/// A server that answers one request a connection, by hand.
struct Http {
    stream: TcpStream,
    head: String,
    body: String,
}

async fn request(listener: &TcpListener) -> Http {
    let mut stream = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap().0;
    let mut bytes = Vec::new();
    let head = loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    Http { stream, head: head.0, body: head.1 }
}

impl Http {
    async fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn reply(mut self, status: u16, body: &str) {
        let length = body.len();
        self.say(&format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nlocation: /x\r\n\r\n{body}")).await;
    }

    async fn stream(&mut self) {
        assert!(self.head.starts_with("GET /events HTTP/1.1"), "{}", self.head);
        self.say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n").await;
    }
}

#[tokio::test]
async fn endpoint_event_stream_is_read_and_requests_are_made_in_order() {
    let (listener, at) = listener().await;
    let (other, remote) = self::listener().await;
    let door = door(|_| {});
    let spec = RuntimeSpec {
        secret: Some("pass".into()),
        remote: Some(format!("http://{remote}")),
        ..spec(&format!("http://localhost:{}/", at.port()))
    };
    let link = door.launch(spec).unwrap();
    let mut session = Session::open(&link, 1);
    let mut events = request(&listener).await;
    assert!(events.head.contains("authorization: Basic b3BlbmNvZGU6cGFzcw=="), "{}", events.head);
    events.stream().await;
    events.say(": hi\n\ndata: ready\n\n").await;
    state(&link, RuntimeState::Ready).await;
    events.say("data: opened 1 A\n\n").await;
    session.until("<opened A>").await;
    events.say("data: fetch 1 connect POST /a?b=c\n\ndata: fetch 2 connect GET /d\n\n").await;
    events.say("data: fetch 3 remote GET /e\n\n").await;
    let first = request(&listener).await;
    assert!(first.head.starts_with("POST /a?b=c HTTP/1.1"), "{}", first.head);
    assert!(first.head.contains("content-type: application/json") && first.head.contains("Basic"), "{}", first.head);
    assert_eq!(first.body, "{\"a\":1}");
    // The next is made when this one has its reply. A redirect is a reply.
    first.reply(302, "[1]").await;
    let second = request(&listener).await;
    assert!(second.head.starts_with("GET /d HTTP/1.1"));
    second.reply(503, "busy").await;
    let third = request(&other).await;
    assert!(third.head.starts_with("GET /e HTTP/1.1") && !third.head.contains("authorization"), "{}", third.head);
    third.reply(200, "[]").await;
    let lines = session.until("reply 3").await;
    assert_eq!(lines, ["reply 1 302 [1]", "reply 2 503 busy", "reply 3 200 []"]);
    drop(events);
    problem(&link, "lost the connection").await;
    let mut events = request(&listener).await;
    events.stream().await;
    events.say("data: ready\n\n").await;
    session.until("<attached>").await;
}

#[tokio::test]
async fn endpoint_of_the_next_generation_is_named() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let at = Connect::Endpoint(format!("http://{at}"));
    let link = door.launch(RuntimeSpec::new(RuntimeId::trusted("t"), "opencode", at, "/")).unwrap();
    for (path, body) in [
        ("/global/event", "<!doctype html>"),
        ("/global/health", "<!doctype html>"),
        ("/api/health", "{\"healthy\":true}"),
    ] {
        let received = request(&listener).await;
        assert!(received.head.starts_with(&format!("GET {path} ")), "{}", received.head);
        received.reply(200, body).await;
    }
    let info = problem(&link, "this server is OpenCode 2, ").await;
    assert_eq!(info.state, RuntimeState::Starting);
    // It may be exchanged for one that is understood.
    assert!(request(&listener).await.head.starts_with("GET /global/event "));
}

/// An endpoint of events that is ready, with session A open: the link, the session and the stream.
async fn ready_to_fetch(listener: &TcpListener, door: &Runtimes) -> (RuntimeLink, Session, Http) {
    let link = door.launch(spec(&format!("http://{}", listener.local_addr().unwrap()))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut events = request(listener).await;
    events.stream().await;
    events.say("data: ready\n\n").await;
    state(&link, RuntimeState::Ready).await;
    events.say("data: opened 1 A\n\n").await;
    session.until("<opened A>").await;
    (link, session, events)
}

#[tokio::test]
async fn endpoint_decision_waits_for_no_read_and_an_overtaken_read_is_repeated() {
    let (listener, _) = listener().await;
    let door = door(|_| {});
    let (_link, mut session, mut events) = ready_to_fetch(&listener, &door).await;
    events.say("data: fetch 1 connect GET /slow\n\n").await;
    let slow = request(&listener).await;
    events.say("data: fetch 2 connect GET /more\n\ndata: fetch 3 connect DECIDE /answer\n\n").await;
    let answer = request(&listener).await;
    assert!(answer.head.starts_with("POST /answer "), "{}", answer.head);
    answer.reply(200, "taken").await;
    assert_eq!(session.until("reply 3").await, ["reply 3 200 taken"]);
    // What it would tell may be of before the answer.
    slow.reply(200, "old").await;
    let again = request(&listener).await;
    assert!(again.head.starts_with("GET /slow "), "{}", again.head);
    again.reply(200, "new").await;
    request(&listener).await.reply(200, "more").await;
    assert_eq!(session.until("reply 2").await, ["reply 1 200 new", "reply 2 200 more"]);
    // What changes something is overtaken by nothing.
    events.say("data: fetch 4 connect POST /prompt\n\ndata: fetch 5 connect DECIDE /cancel\n\n").await;
    let prompt = request(&listener).await;
    assert!(prompt.head.starts_with("POST /prompt "), "{}", prompt.head);
    prompt.reply(200, "").await;
    let cancel = request(&listener).await;
    assert!(cancel.head.starts_with("POST /cancel "), "{}", cancel.head);
    cancel.reply(200, "").await;
    session.until("reply 5").await;
}

#[tokio::test]
async fn endpoint_request_that_hangs_holds_back_no_other_session() {
    let (listener, _) = listener().await;
    let door = door(|_| {});
    let (_link, mut session, mut events) = ready_to_fetch(&listener, &door).await;
    events.say("data: fetch 1 connect GET /of/A/messages\n\ndata: fetch 2 connect GET /of/A/more\n\n").await;
    let hangs = request(&listener).await;
    assert!(hangs.head.starts_with("GET /of/A/messages "), "{}", hangs.head);
    events.say("data: fetch 3 connect POST /of/B/prompt\n\ndata: fetch 4 connect DECIDE /of/C/answer\n\n").await;
    let mut others = vec![request(&listener).await, request(&listener).await];
    others.sort_by(|a, b| a.head.cmp(&b.head));
    assert!(others[0].head.starts_with("POST /of/B/prompt ") && others[1].head.starts_with("POST /of/C/answer "));
    // The answer is taken while the prompt hangs, too.
    others.remove(1).reply(200, "taken").await;
    assert_eq!(session.until("reply 4").await, ["reply 4 200 taken"]);
    others.remove(0).reply(200, "").await;
    session.until("reply 3").await;
    // A session's own are made in their order, and what is about the whole endpoint waits for all of them.
    events.say("data: fetch 5 connect GET /all\n\n").await;
    hangs.reply(200, "one").await;
    let more = request(&listener).await;
    assert!(more.head.starts_with("GET /of/A/more "), "{}", more.head);
    more.reply(200, "two").await;
    request(&listener).await.reply(200, "all").await;
    assert_eq!(session.until("reply 5").await, ["reply 1 200 one", "reply 2 200 two", "reply 5 200 all"]);
}

#[tokio::test]
async fn endpoint_decisions_are_sent_before_it_is_left() {
    let (listener, _) = listener().await;
    let door = door(|_| {});
    let (link, mut session, mut events) = ready_to_fetch(&listener, &door).await;
    events.say("data: fetch 1 connect POST /hangs\n\ndata: fetch 2 connect DECIDE /waits\n\n").await;
    let hangs = request(&listener).await;
    // Ordered and stopped in one breath: the stop is seen first.
    session.order(&link, RuntimeCommand::Cancel { native: "A".into(), ticket: None, reason: None });
    link.stop();
    let mut left = vec![request(&listener).await, request(&listener).await];
    left.sort_by(|a, b| a.head.cmp(&b.head));
    assert!(left[0].head.starts_with("POST /cancel ") && left[1].head.starts_with("POST /waits "));
    for one in left {
        one.reply(200, "").await;
    }
    assert!(session.end().await.stopped);
    drop(hangs);
}

#[tokio::test]
async fn endpoint_read_without_a_reply_is_given_up_soon() {
    let (listener, _) = listener().await;
    let door = door(|settings| settings.read = Duration::from_millis(100));
    let (_link, mut session, mut events) = ready_to_fetch(&listener, &door).await;
    events.say("data: fetch 1 connect GET /a\n\ndata: fetch 2 connect GET /b\n\n").await;
    let silent = request(&listener).await;
    let mut torn = request(&listener).await;
    torn.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    let lines = session.until("no reply 2").await;
    assert_eq!(lines, ["no reply 1: no response within 100ms", "no reply 2: no response within 100ms"]);
    drop((silent, torn));
}

#[tokio::test]
async fn endpoint_replies_that_do_not_come_or_are_too_long_are_reported() {
    let (listener, at) = listener().await;
    let door = door(|settings| {
        settings.line_max = 1000;
        settings.fetch = Duration::from_millis(100);
    });
    let link = door.launch(spec(&format!("http://{at}"))).unwrap();
    let mut session = Session::open(&link, 1);
    let mut events = request(&listener).await;
    events.stream().await;
    events.say("data: ready\n\n").await;
    state(&link, RuntimeState::Ready).await;
    events.say("data: opened 1 A\n\n").await;
    session.until("<opened A>").await;
    events.say("data: fetch 1 connect GET /a\n\ndata: fetch 2 connect GET /b\n\ndata: fetch 3 remote GET /c\n\n").await;
    request(&listener).await.reply(200, &"x".repeat(1001)).await;
    let silent = request(&listener).await;
    let lines = session.until("no reply 3").await;
    assert_eq!(
        lines,
        [
            "no reply 1: the response is over the limit of 1000 bytes",
            "no reply 2: no response within 100ms",
            "no reply 3: no remote is set for this runtime"
        ]
    );
    drop(silent);
    // An event over the limit is told, and the stream goes on.
    events.say(&format!("data: {}\n\ndata: after\n\n", "x".repeat(1500))).await;
    let lines = session.until("after").await;
    assert_eq!(lines[0], "<raw message over the limit of 1000 bytes; 500 bytes dropped>");
}

#[tokio::test]
async fn endpoint_without_an_event_stream_is_said_to_have_none() {
    let (listener, at) = listener().await;
    let door = door(|_| {});
    let link = door.launch(spec(&format!("http://{at}"))).unwrap();
    request(&listener).await.reply(401, "").await;
    problem(&link, "it answered 401; check the runtime's secret").await;
    let mut page = request(&listener).await;
    page.say("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n").await;
    problem(&link, "\"text/html\" instead of an event stream").await;
}

// === what is refused at once ===

#[tokio::test]
async fn endpoint_spec_that_cannot_work_is_refused_at_once() {
    let door = door(|_| {});
    let refused = |spec: RuntimeSpec| door.launch(spec).map(|_| ()).unwrap_err();
    assert!(refused(spec("ws://192.168.1.2:9/")).contains("ssh -L 9:127.0.0.1:9 192.168.1.2"));
    let remote = RuntimeSpec { remote: Some("http://example.org:1".into()), ..spec("ws://127.0.0.1:1/") };
    assert!(refused(remote).contains("ssh -L"));
    let remote = RuntimeSpec { remote: Some("ws://127.0.0.1:1/".into()), ..spec("ws://127.0.0.1:1/") };
    assert!(refused(remote).contains("http://"));
    let secret = RuntimeSpec { secret: Some("a\nb".into()), ..spec("ws://127.0.0.1:1/") };
    assert!(refused(secret).contains("secret"));
    let acp = RuntimeSpec { dialect: "acp".into(), ..spec("ws://127.0.0.1:1/") };
    assert!(refused(acp).contains("acp needs the pipes of a program"));
}
