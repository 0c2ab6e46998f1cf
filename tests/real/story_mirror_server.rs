//! A runtime served as a Gemini UI: to the letter, against the guard, with a screen that reconnects, and with two gateways in a
//! row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Command;
use std::time::Instant;

use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, assert_whole, demo, exe, runtime, said};
use common::moments::rounds;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// The demo runtime with one port for both.
fn served(more: &str) -> String {
    runtime("demo", &[exe(), "agent", "demo"], &format!("ui_port = 0\nremote_port = 0\n{more}"))
}

/// The port of the demo runtime's mirror, and of its remote control.
fn ports(gateway: &Gateway) -> (u16, u16) {
    let json: Value = serde_json::from_slice(&std::fs::read(gateway.home.join("gateway.json")).unwrap()).unwrap();
    let port = |key: &str| u16::try_from(json["ports"]["demo"][key].as_u64().unwrap_or(0)).unwrap();
    (port("ui_port"), port("remote_port"))
}

/// A client of the mirror.
struct Screen(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Screen {
    /// Opens the mirror with these headers; the status if it is refused.
    async fn try_open(port: u16, query: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://127.0.0.1:{port}/{query}").into_client_request().unwrap();
        for (name, value) in headers {
            let name: reqwest::header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(WsError::Http(answer)) => Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    async fn open(gateway: &Gateway, query: &str) -> Self {
        let bearer = format!("Bearer {}", gateway.token);
        Self::try_open(ports(gateway).0, query, &[("authorization", &bearer)]).await.unwrap()
    }

    async fn frame(&mut self) -> Option<Message> {
        loop {
            match tokio::time::timeout(PATIENCE, self.0.next()).await.expect("nothing came") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next message, which must be as specified: a text frame with `type` and `data`, and a NUL.
    async fn next(&mut self) -> Value {
        let frame = self.frame().await.expect("the mirror closed");
        let Message::Text(text) = frame else { panic!("{frame:?}") };
        serde_json::from_str(text.strip_suffix('\0').expect("a NUL ends it")).unwrap()
    }

    /// Messages until the agent is idle.
    async fn until_idle(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while all.last().is_none_or(|message: &Value| message["type"] != "idle") {
            all.push(self.next().await);
        }
        all
    }

    /// The close code.
    async fn closed(&mut self) -> u16 {
        loop {
            match self.frame().await {
                Some(Message::Close(close)) => return close.map_or(0, |close| close.code.into()),
                Some(_) => {}
                None => panic!("no goodbye"),
            }
        }
    }
}

/// The text of the model in these messages.
fn output(messages: &[Value]) -> String {
    let of = messages.iter().filter(|message| message["type"] == "model_output");
    of.map(|message| message["data"]["text"].as_str().unwrap()).collect()
}

/// POST /message; the status and the answer.
async fn post(gateway: &Gateway, message: &str) -> (u16, Value) {
    let url = format!("http://127.0.0.1:{}/message", ports(gateway).1);
    let request = gateway.http.post(url).bearer_auth(&gateway.token).json(&json!({ "message": message }));
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// GET /history; the status and the answer.
async fn history(gateway: &Gateway, query: &str) -> (u16, Value) {
    let url = format!("http://127.0.0.1:{}/history{query}", ports(gateway).1);
    let answer = gateway.http.get(url).bearer_auth(&gateway.token).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_is_served_to_the_letter() {
    let gateway = Gateway::start(&served("")).await;
    let session = gateway.session("demo").await;
    let mut screen = Screen::open(&gateway, "").await;
    // Messages of a client are ignored, JSON or not.
    for text in ["hello", "{\"type\":\"idle\"}\0", "{", ""] {
        screen.0.send(Message::text(text)).await.unwrap();
    }
    let (status, body) = post(&gateway, "echo h\u{e9}llo \u{1f600}").await;
    assert_eq!((status, body["queued"].as_bool()), (200, Some(false)), "{body}");
    let all = screen.until_idle().await;
    for message in &all {
        let members: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert_eq!(members, ["type", "data"], "and nothing else");
    }
    assert_eq!(all[0], json!({ "type": "user_message", "data": { "text": "echo h\u{e9}llo \u{1f600}" } }));
    assert_eq!(all.last().unwrap(), &json!({ "type": "idle", "data": {} }));
    assert!(output(&all).contains("h\u{e9}llo \u{1f600}"));

    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    let all = screen.until_idle().await;
    let sorts: Vec<&str> = all.iter().map(|message| message["type"].as_str().unwrap()).collect();
    let expected = [
        "user_message",
        "tool_call",
        "permission_dialog",
        "permission_selection",
        "tool_output",
        "model_output",
        "idle",
    ];
    assert_eq!(sorts, expected, "{all:#?}");
    let call = &all[1]["data"];
    assert_eq!(call["args"]["command"], call["name"], "{call}");
    let id = &request["request_id"];
    let dialog = json!({ "id": id, "type": "command_run", "options": ["Allow once", "Allow always", "Reject"] });
    assert_eq!(all[2]["data"], dialog);
    assert_eq!(all[3]["data"], json!({ "id": id, "selection": "Allow once" }));
    assert_eq!(all[4]["data"]["callId"], call["callId"]);

    // The same text as the log has, and the history.
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(output(&all), said(&events, Some(&run)));
    let (status, turns) = history(&gateway, "").await;
    assert_eq!((status, &turns[0]), (200, &json!({ "role": "user", "text": "echo h\u{e9}llo \u{1f600}" })));
    let model: String = turns
        .as_array()
        .unwrap()
        .iter()
        .filter(|turn| turn["role"] == "model")
        .map(|turn| turn["text"].as_str().unwrap())
        .collect();
    assert_eq!(model, said(&events, None));
    let (_, last) = history(&gateway, "?limit=1").await;
    assert_eq!(last.as_array().unwrap(), &turns.as_array().unwrap()[turns.as_array().unwrap().len() - 1..]);
    assert_eq!(history(&gateway, "?limit=256").await.1, turns);

    // A new client gets new messages, and the open request.
    gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let mut late = Screen::open(&gateway, "").await;
    let dialog = late.next().await;
    assert_eq!((&dialog["type"], &dialog["data"]["id"]), (&json!("permission_dialog"), &request["request_id"]));
    gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!(late.next().await["data"]["selection"], "Reject");
    assert_eq!(late.until_idle().await.last().unwrap()["type"], "idle");

    // A binary frame is refused; the gateway closes with its code when it stops.
    late.0.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(late.closed().await, 1003);
    let mut gateway = gateway;
    let (stopped, code) = tokio::join!(gateway.stop(), async {
        screen.until_idle().await;
        screen.closed().await
    });
    assert!(stopped.success());
    assert_eq!(code, 1001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_screen_prompts_watches_and_reconnects() {
    let gateway = Gateway::start(&served("")).await;
    let session = gateway.session("demo").await;
    let mut one = Player::enter("mirror", &gateway, &session).await;
    one.prompt("stream 20 1").await;
    assert_eq!(one.until("user").await["user"], "stream 20 1");
    one.until("ended").await;
    for (option, allow) in [("allow_once", true), ("reject_once", false)] {
        one.prompt("ask").await;
        let asked = one.until("asked").await;
        let request = gateway.open_request(&session).await;
        assert_eq!((&asked["id"], &asked["asked"]), (&request["request_id"], &json!("command_run")));
        gateway.choose(&request, &Gateway::option(&request, option)).await;
        let resolved = one.until("resolved").await;
        assert_eq!((&resolved["resolved"], resolved["allow"].as_bool()), (&asked["id"], Some(allow)));
        one.until("ended").await;
    }
    one.prompt("hang").await;
    one.until("user").await;
    let (status, _) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert_eq!(status, 202);
    one.until("ended").await;
    let run = gateway.prompt(&session, "stream 400 2").await;
    one.until("text").await;
    let mut late = Player::enter("mirror", &gateway, &session).await;
    for _ in 0..10 {
        for player in [&mut one, &mut late] {
            player.cut().await;
            player.resume().await;
        }
    }
    gateway.until_ended(&session, &run).await;
    let events = gateway.events(&session).await;
    assert_whole(&events);
    for player in [&mut one, &mut late] {
        let ends = |player: &Player| player.saw.iter().filter(|(_, saw)| saw.get("ended").is_some()).count();
        while ends(player) < 5 {
            player.until("ended").await;
        }
        assert_eq!(player.text(), said(&events, None));
        assert_eq!(ends(player), 5, "each end once");
        let users: Vec<&str> = player.saw.iter().filter_map(|(_, saw)| saw["user"].as_str()).collect();
        assert_eq!(users, ["stream 20 1", "ask", "ask", "hang", "stream 400 2"]);
    }
    one.quit().await;
    late.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_screen_cut_repeatedly_has_the_whole_log() {
    let gateway = Gateway::start(&served("")).await;
    let session = gateway.session("demo").await;
    let mut screen = Player::enter("mirror", &gateway, &session).await;
    // Far longer than needed; it is cancelled in the end.
    let run = gateway.prompt(&session, "stream 1000000 1").await;
    for cut in 0..rounds("cuts", 25, 100) {
        // After another length each time.
        for _ in 0..=cut * 7 % 19 {
            screen.until("text").await;
        }
        screen.cut().await;
        screen.resume().await;
    }
    gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    screen.until("ended").await;
    let events = gateway.until_ended(&session, &run).await;
    assert_whole(&events);
    let texts: Vec<&str> = screen.saw.iter().filter_map(|(_, saw)| saw["text"].as_str()).collect();
    assert_eq!(texts.concat(), said(&events, None));
    let chunks = events.iter().filter(|event| event["kind"] == "agent_message_chunk").count();
    assert_eq!(texts.len(), chunks, "each once");
    screen.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_of_a_mirror_shows_the_same() {
    let first = Gateway::start(&served("")).await;
    let session = first.session("demo").await;
    let run = first.prompt(&session, "echo before").await;
    first.until_ended(&session, &run).await;
    let (port, remote) = ports(&first);
    assert_eq!(port, remote, "one listener serves both");
    let second = Gateway::start(&format!(
        "[[runtime]]\nid = \"far\"\ndialect = \"gemini-mirror\"\nconnect = \"ws://127.0.0.1:{port}/\"\n\
         remote = \"http://127.0.0.1:{port}\"\nsecret = \"{}\"\nui_port = 0\nremote_port = 0\n",
        first.token
    ))
    .await;
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        let (_, body) = second.get("/v1/sessions").await;
        if let Some(session) = body["sessions"].get(0) {
            break session["session_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{:?}", second.get("/v1/runtimes").await);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    // The history comes first.
    while said(&second.events(&found).await, None) != said(&first.events(&session).await, None) {
        assert!(Instant::now() < deadline, "{:#?}", second.events(&found).await);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // Prompted at the second gateway, run by the agent of the first.
    let far = second.prompt(&found, "stream 50 1").await;
    let events = second.until_ended(&found, &far).await;
    assert_whole(&events);
    let here = first.events(&session).await;
    assert_eq!(said(&events, None), said(&here, None), "the past, and what was said now");
    let end = events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == far.as_str()).unwrap();
    assert_eq!(end["event"]["status"], "completed", "{end}");
    let users = |events: &[Value]| -> Vec<String> {
        let of = events.iter().filter(|event| event["kind"] == "user_message_chunk");
        of.map(|event| event["event"]["content"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(users(&events), ["echo before", "stream 50 1"]);
    // A request of the first, seen at the second, answered at the first.
    let run = first.prompt(&session, "ask").await;
    let seen = second.open_request(&found).await;
    assert_eq!((seen["observe_only"].as_bool(), seen["type"].as_str()), (Some(true), Some("permission")), "{seen}");
    let request = first.open_request(&session).await;
    first.choose(&request, &Gateway::option(&request, "reject_once")).await;
    let here = first.until_ended(&session, &run).await;
    let ended = |events: &[Value]| events.iter().filter(|event| event["kind"] == "run_ended").count();
    let events = loop {
        let events = second.events(&found).await;
        if ended(&events) == 2 {
            break events;
        }
        assert!(Instant::now() < deadline + PATIENCE, "{events:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let resolved = &events.iter().find(|event| event["kind"] == "request_resolved").unwrap()["event"];
    assert_eq!(resolved["option_id"], "Reject", "{resolved}");
    assert_eq!(said(&events, None), said(&here, None));
    assert_eq!(users(&events), users(&here));
    // The second's mirror equals the first's.
    let chain = |gateway: &Gateway, id: &str| -> u16 {
        let json: Value = serde_json::from_slice(&std::fs::read(gateway.home.join("gateway.json")).unwrap()).unwrap();
        u16::try_from(json["ports"][id]["ui_port"].as_u64().unwrap()).unwrap()
    };
    let bearer = format!("Bearer {}", second.token);
    let headers = [("authorization", bearer.as_str())];
    let mut third = Screen::try_open(chain(&second, "far"), "", &headers).await.unwrap();
    let mut direct = Screen::open(&first, "").await;
    let (status, _) = post(&first, "stream 30 1").await;
    assert_eq!(status, 200);
    let (a, b) = (direct.until_idle().await, third.until_idle().await);
    assert_eq!(a, b, "message by message");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_serves_the_session_last_opened_or_prompted() {
    let gateway = Gateway::start(&served("")).await;
    for path in ["history", "message"] {
        let (status, body) = if path == "history" { history(&gateway, "").await } else { post(&gateway, "hi").await };
        assert_eq!((status, body["code"].as_str()), (503, Some("not_ready")), "{path}: {body}");
    }
    let old = gateway.session("demo").await;
    let mut screen = Screen::open(&gateway, "").await;
    let new = gateway.session("demo").await;
    let run_of = |body: &Value| body["run_id"].as_str().unwrap().to_owned();
    let run = run_of(&post(&gateway, "echo to the new").await.1);
    gateway.until_ended(&new, &run).await;
    assert!(output(&screen.until_idle().await).contains("to the new"));
    let run = gateway.prompt(&old, "echo to the old").await;
    gateway.until_ended(&old, &run).await;
    assert!(output(&screen.until_idle().await).contains("to the old"));
    let run = run_of(&post(&gateway, "echo again").await.1);
    gateway.until_ended(&old, &run).await;
    let (_, turns) = history(&gateway, "").await;
    assert_eq!(turns[0]["text"], "echo to the old");
    assert_eq!(output(&screen.until_idle().await), said(&gateway.events(&old).await, Some(&run)));
    // One session is deleted; the other remains.
    gateway.delete(&format!("/v1/sessions/{old}")).await;
    assert_eq!(history(&gateway, "").await.1[0]["text"], "echo to the new");
    // The runtime is deleted, and all sessions with it.
    gateway.delete("/v1/runtimes/demo").await;
    let deadline = Instant::now() + PATIENCE;
    while gateway.get(&format!("/v1/sessions/{new}")).await.1["state"] != "exited" {
        assert!(Instant::now() < deadline, "the session goes on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(history(&gateway, "").await.0, 503);
    assert_eq!(post(&gateway, "hi").await.0, 503);
}

/// A raw request on a new connection; returns the status and the response.
async fn raw(port: u16, text: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = stream.write_all(text.as_bytes()).await;
    let mut all = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("it stays open");
    let text = String::from_utf8_lossy(&all).into_owned();
    (text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), text)
}

const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Checks that the main listener's guard applies: each case is refused with and without a valid token.
async fn assert_guarded(gateway: &Gateway, port: u16, neighbours: bool) {
    let token = &gateway.token;
    let bearer = format!("authorization: Bearer {token}\r\n");
    let main = gateway.url.rsplit(':').next().unwrap();
    let host = format!("host: 127.0.0.1:{port}\r\n");
    let send = async |method: &str, path: &str, headers: String, body: &str| {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let close = if headers.contains("upgrade: ") { "" } else { "connection: close\r\n" };
        raw(port, &format!("{method} {path} HTTP/1.1\r\n{close}{headers}{length}\r\n{body}")).await
    };
    let doors = [
        ("GET", "/", UPGRADE, ""),
        ("GET", "/history", "", ""),
        ("POST", "/message", "content-type: application/json\r\n", "{\"message\":\"hi\"}"),
    ];
    for (method, path, more, body) in doors {
        for (name, head, expected) in [
            ("another name", format!("host: evil.example:{port}\r\n{bearer}"), 421),
            ("the main door's name", format!("host: 127.0.0.1:{main}\r\n{bearer}"), 421),
            ("no name", bearer.clone(), 400),
            ("another site", format!("{host}origin: https://evil.example\r\n{bearer}"), 403),
            ("the main door's page", format!("{host}origin: http://127.0.0.1:{main}\r\n{bearer}"), 403),
            ("a sandboxed page", format!("{host}origin: null\r\n{bearer}"), 403),
            ("fetched by a site", format!("{host}sec-fetch-site: cross-site\r\n{bearer}"), 403),
            ("a wrong token", format!("{host}authorization: Bearer plx_wrong\r\n"), 401),
            ("two tokens", format!("{host}{bearer}{bearer}"), 401),
            ("a page of our own without a token", format!("{host}origin: http://127.0.0.1:{port}\r\n"), 401),
            ("a browser without a token", format!("{host}sec-fetch-site: same-origin\r\n"), 401),
            ("a cookie", format!("{host}origin: http://127.0.0.1:{port}\r\ncookie: token={token}\r\n"), 401),
        ] {
            let (status, text) = send(method, path, format!("{head}{more}"), body).await;
            assert!(status == expected || (name == "no name" && status == 421), "{path} {name}: {text}");
            assert!(!text.contains(token.as_str()), "{path} {name}");
        }
        let open = neighbours && path == "/";
        if !open {
            let (status, text) = send(method, path, format!("{host}{more}"), body).await;
            assert_eq!(status, 401, "{path} without a token: {text}");
            for query in ["token", "access_token", "bearer", "after=&authorization"] {
                let (status, text) =
                    send(method, &format!("{path}?{query}={token}"), format!("{host}{more}"), body).await;
                assert_eq!(status, 401, "{path} {query}: {text}");
            }
        }
        for other in ["PUT", "DELETE", "OPTIONS"] {
            assert_eq!(send(other, path, host.clone(), "").await.0, 401, "{other} {path}");
            assert_eq!(send(other, path, format!("{host}{bearer}"), "").await.0, 405, "{other} {path}");
        }
    }
    // A token in the query is always refused.
    let (status, text) = send("GET", &format!("/?token={token}"), format!("{host}{bearer}{UPGRADE}"), "").await;
    assert_eq!(status, 400, "{text}");
    assert!(!text.contains(token.as_str()));
    for path in ["/v1/sessions", "/nothing", "/history/", "//history", "/message/x", "/healthz", "/index.html"] {
        assert_eq!(send("GET", path, host.clone(), "").await.0, 401, "{path}");
        assert_eq!(send("GET", path, format!("{host}{bearer}"), "").await.0, 404, "{path}");
    }
    assert_eq!(send("GET", "/", format!("{host}{bearer}"), "").await.0, 426, "no handshake");
    let json = format!("{host}{bearer}content-type: application/json\r\n");
    for (head, body, expected) in [
        (&json, "{", 400),
        (&json, "hello", 400),
        (&json, "[]", 422),
        (&json, "{}", 422),
        (&json, "{\"message\":7}", 422),
        (&json, "{\"message\":null}", 422),
        (&json, "{\"message\":\" \\n\"}", 422),
        (&format!("{host}{bearer}content-type: text/plain\r\n"), "{\"message\":\"x\"}", 415),
        (&format!("{host}{bearer}"), "{\"message\":\"x\"}", 415),
    ] {
        let (status, text) = send("POST", "/message", head.clone(), body).await;
        assert_eq!(status, expected, "{body}: {text}");
    }
    let huge = format!("POST /message HTTP/1.1\r\nconnection: close\r\n{json}content-length: {}\r\n\r\n{{", 17 << 20);
    assert_eq!(raw(port, &huge).await.0, 413);
    for query in ["limit=0", "limit=-1", "limit=x", "limit=", "limit=1e3", "limit=18446744073709551616"] {
        let (status, text) = send("GET", &format!("/history?{query}"), format!("{host}{bearer}"), "").await;
        assert!(status == 400 && text.contains("bad_query"), "{query}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_stands_behind_every_guard() {
    let gateway = Gateway::start(&served("")).await;
    gateway.session("demo").await;
    let port = ports(&gateway).0;
    assert_guarded(&gateway, port, false).await;
    // A browser's way, and everybody else's.
    let protocol = format!("plexus.v1, plexus.bearer.{}", gateway.token);
    let own = format!("http://127.0.0.1:{port}");
    let page = [("sec-websocket-protocol", protocol.as_str()), ("origin", own.as_str())];
    assert!(Screen::try_open(port, "", &page).await.is_ok());
    // A cursor of another epoch is refused.
    let bearer = format!("Bearer {}", gateway.token);
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(Screen::try_open(port, "?after=zzzz:1", &headers).await.err(), Some(410));
    assert_eq!(Screen::try_open(port, "?after=junk", &headers).await.err(), Some(400));
    assert!(Screen::try_open(port, "?after=", &headers).await.is_ok());

    // Grants apply here too, and a revocation closes at once.
    let enrol = async |grant: Value| {
        let (status, body) = gateway.post("/v1/devices", grant).await;
        assert_eq!(status, 201, "{body}");
        (format!("Bearer {}", body["token"].as_str().unwrap()), body["device_id"].as_str().unwrap().to_owned())
    };
    let status = async |method: &str, path: &str, bearer: &str| {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = gateway.http.request(method, format!("http://127.0.0.1:{port}{path}"));
        let request = request.header("authorization", bearer);
        let request = if path == "/message" { request.json(&json!({ "message": "hi" })) } else { request };
        request.send().await.unwrap().status().as_u16()
    };
    let (watcher, id) = enrol(json!({ "name": "w", "scopes": ["watch"] })).await;
    assert_eq!((status("POST", "/message", &watcher).await, status("GET", "/history", &watcher).await), (403, 200));
    let mut screen = Screen::try_open(port, "", &[("authorization", &watcher)]).await.unwrap();
    let (prompter, _) = enrol(json!({ "name": "p", "scopes": ["prompt"] })).await;
    assert_eq!(Screen::try_open(port, "", &[("authorization", &prompter)]).await.err(), Some(403));
    assert_eq!((status("POST", "/message", &prompter).await, status("GET", "/history", &prompter).await), (200, 403));
    let (other, _) = enrol(json!({ "name": "o", "scopes": ["watch", "prompt"], "runtimes": ["another"] })).await;
    assert_eq!(Screen::try_open(port, "", &[("authorization", &other)]).await.err(), Some(403));
    assert_eq!((status("POST", "/message", &other).await, status("GET", "/history", &other).await), (503, 503));
    gateway.delete(&format!("/v1/devices/{id}")).await;
    assert_eq!(screen.closed().await, 4001);
    assert_eq!(Screen::try_open(port, "", &[("authorization", &watcher)]).await.err(), Some(401));
}

/// A handshake by a process of another user; `None` if the test may not change its user.
#[cfg(target_os = "linux")]
fn handshake_of_another_user(port: u16) -> Option<String> {
    let asks = ["--silent", "--max-time", "20", "-i", "-N", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket"];
    let with = ["-H", "Sec-WebSocket-Version: 13", "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "12345", "--regid", "12345", "--clear-groups", "curl", "-q"]);
    let output = command.args(asks).args(with).arg(format!("http://127.0.0.1:{port}/")).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.starts_with("HTTP/").then_some(text)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_without_a_token_serves_this_user_only_if_configured() {
    let gateway = Gateway::start(&served("ui_port_without_token_for_this_user = true")).await;
    let session = gateway.session("demo").await;
    let port = ports(&gateway).0;
    let mut screen = Screen::try_open(port, "", &[]).await.expect("a process of this user");
    gateway.prompt(&session, "echo seen").await;
    assert!(output(&screen.until_idle().await).contains("seen"));
    let again = Screen::try_open(port, "?after=", &[]).await.unwrap().until_idle().await;
    assert!(output(&again).contains("seen"));
    // All other checks still apply, also to pages of any origin.
    assert_guarded(&gateway, port, true).await;
    assert_eq!(Screen::try_open(port, &format!("?token={}", gateway.token), &[]).await.err(), Some(400));
    for header in [("origin", format!("http://127.0.0.1:{port}")), ("sec-fetch-mode", "websocket".into())] {
        assert_eq!(Screen::try_open(port, "", &[(header.0, &header.1)]).await.err(), Some(401), "{header:?}");
    }
    assert_eq!(Screen::try_open(port, "", &[("authorization", "Bearer plx_wrong")]).await.err(), Some(401));
    // The headers of a handshake open only the mirror.
    let (status, _) = raw(port, &format!("GET /history HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{UPGRADE}\r\n")).await;
    assert_eq!(status, 401);
    match handshake_of_another_user(port) {
        Some(answer) => assert!(answer.starts_with("HTTP/1.1 401"), "{answer}"),
        None => eprintln!("this test may not become another user; who owns a connection is tested in router/peer.rs"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_client_that_does_not_read_costs_a_cursor_loses_nothing() {
    let gateway = Gateway::start(&served("")).await;
    let session = gateway.session("demo").await;
    let port = ports(&gateway).0;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let stream = socket.connect(format!("127.0.0.1:{port}").parse().unwrap()).await.unwrap();
    let mut request = format!("ws://127.0.0.1:{port}/").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", gateway.token).parse().unwrap());
    let (socket, _) = tokio_tungstenite::client_async(request, MaybeTlsStream::Plain(stream)).await.unwrap();
    let mut slow = Screen(socket);
    let mut quick = Screen::open(&gateway, "").await;
    // More than all the buffers between the two hold.
    let run = gateway.prompt(&session, "flood 3000 4000").await;
    let all = quick.until_idle().await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(output(&all), said(&events, Some(&run)));
    assert_eq!(slow.until_idle().await, all, "byte for byte, at its own pace");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_port_that_is_taken_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plexus.toml");
    let home = dir.path().join("home");
    let config = runtime("demo", &[exe(), "agent", "demo"], &format!("remote_port = {port}\n"));
    std::fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{config}")).unwrap();
    let mut command = Command::new(exe());
    let output = command.args(["serve", "-c"]).arg(&file).env("PLEXUS_HOME", &home).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen on 127.0.0.1:{port} for the runtime demo")), "{stderr}");
    assert!(stderr.contains("set another remote_port"), "{stderr}");
    assert!(!home.join("gateway.json").exists(), "nothing is left behind");
    // There is no such port unless configured.
    let gateway = Gateway::start(&demo()).await;
    assert_eq!(ports(&gateway), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_reports_a_queued_prompt_and_a_deleted_runtime() {
    let gateway = Gateway::start(&served("")).await;
    let session = gateway.session("demo").await;
    let port = ports(&gateway).0;
    let mut screen = Screen::open(&gateway, "").await;
    let user = |text: &str| json!({ "type": "user_message", "data": { "text": text } });
    assert_eq!(post(&gateway, "hang").await.1["queued"], false);
    assert_eq!(screen.next().await, user("hang"));
    for text in ["echo the second", "echo the third"] {
        assert_eq!(post(&gateway, text).await.1["queued"], true);
        // The current run goes on, and the queued prompt is listed.
        loop {
            let message = screen.next().await;
            assert_ne!(message["type"], "idle", "{message}");
            if message["type"] == "user_message" {
                assert_eq!(message, user(text));
                break;
            }
        }
    }
    let said = |turns: &Value| -> Vec<String> {
        let turns = turns.as_array().unwrap().iter().filter(|turn| turn["role"] == "user");
        turns.map(|turn| turn["text"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["hang", "echo the second", "echo the third"];
    assert_eq!(said(&history(&gateway, "").await.1), all);
    for limit in 1..=2 {
        let (_, turns) = history(&gateway, &format!("?limit={limit}")).await;
        assert_eq!(
            (said(&turns), turns.as_array().unwrap().len()),
            (all[3 - limit..].iter().map(|one| (*one).to_owned()).collect(), limit)
        );
    }
    gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    let mut told = Vec::new();
    for _ in all {
        told.extend(screen.until_idle().await);
    }
    assert!(told.iter().all(|message| message["type"] != "user_message"), "told once: {told:?}");
    assert_eq!(output(&told).matches("the second").count(), 1, "{told:?}");
    assert_eq!(said(&history(&gateway, "").await.1), all);

    let (status, _) = gateway.delete("/v1/runtimes/demo").await;
    assert!(status < 300, "{status}");
    assert_eq!(screen.closed().await, 1001);
    let bearer = format!("Bearer {}", gateway.token);
    let refused = Screen::try_open(port, "", &[("authorization", &bearer)]).await;
    assert_eq!(refused.map(|_| ()).unwrap_err(), 503);
}
