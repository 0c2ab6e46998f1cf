//! One file: an agent at one end of the server, a gateway that misbehaves at the other.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::gateway::token_file;
use super::{CALLS_MAX, CallDigest, CallTimes, McpOptions, serve_on};
use fake_gateway::{FakeGateway, Trick};

mod fake_gateway;

/// Time that anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Times of most tests.
const TIMES: CallTimes = CallTimes {
    call: Duration::from_secs(10),
    progress: Duration::from_millis(200),
    token_grace: Duration::from_millis(800),
    session_check: Duration::from_millis(50),
};

/// An agent that starts the server.
struct Agent {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<anyhow::Result<()>>,
    next: u64,
    /// Notifications read meanwhile.
    notes: Vec<Value>,
}

impl Agent {
    /// An agent that has said `initialize`.
    async fn start(gateway: &FakeGateway, times: CallTimes) -> Self {
        let mut agent = Self::silent(gateway, times);
        let hello = agent.ask("initialize", initialize("2025-06-18")).await;
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        agent
    }

    fn silent(gateway: &FakeGateway, times: CallTimes) -> Self {
        Self::sharing(gateway, times, None)
    }

    /// An agent that has the server under this name for other sessions too.
    fn sharing(gateway: &FakeGateway, times: CallTimes, shared: Option<&str>) -> Self {
        let shared = shared.map(str::to_owned);
        let (near, far) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(far);
        let home = gateway.home.path().to_owned();
        let options = McpOptions { session: gateway.session.clone(), home, find: gateway.find(), shared };
        let server = tokio::spawn(serve_on(options, input, output, times));
        let (output, input) = tokio::io::split(near);
        Self { input, output: BufReader::new(output).lines(), server, next: 0, notes: Vec::new() }
    }

    async fn write(&mut self, line: &[u8]) {
        self.input.write_all(line).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    async fn read(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await.expect("no message").unwrap();
        serde_json::from_str(&line.expect("the server ended")).unwrap()
    }

    /// Sends a request; returns its id.
    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// The response to the request of this id.
    async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            if message["id"] == id {
                return message;
            }
            assert!(message.get("method").is_some(), "{message}");
            self.notes.push(message);
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.response(id).await
    }

    /// Calls a tool; returns the line of its result, and whether it is an error.
    async fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let response = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        outcome(&response)
    }

    async fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments).await;
        assert!(!is_error, "{text}");
        text
    }

    async fn error(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments).await;
        assert!(is_error, "{text}");
        text
    }

    /// Closes stdin and waits for the server's end.
    async fn leave(mut self) {
        self.input.shutdown().await.unwrap();
        timeout(PATIENCE, self.server).await.expect("the server did not end").unwrap().unwrap();
    }
}

fn initialize(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

fn outcome(response: &Value) -> (String, bool) {
    let result = &response["result"];
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{response}");
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(!text.contains('\n'), "{text}");
    (text, result["isError"] == true)
}

fn shown(surface: &str) -> Value {
    json!({ "surface": surface, "components": [{ "id": "root", "component": "Text", "text": "x" }] })
}

fn form() -> Value {
    json!({
        "components": [{ "id": "root", "component": "Button", "child": "t" }, { "id": "t", "component": "Text" }],
        "submit": ["root"],
        "question": "Go on?",
    })
}

#[tokio::test]
async fn tools_send_what_the_contract_says_and_answer_in_a_line() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    let show = json!({ "surface": "build", "title": "Build", "components": [{ "id": "root", "component": "Text", "text": "x" }],
        "data": { "x": 1 }, "pin": true });
    assert_eq!(agent.ok("ui_show", show.clone()).await, "shown rev 1");
    let update = json!({ "surface": "build", "data": [{ "path": "/x", "value": 2 }, { "path": "/l", "append": [1] }], "title": "B",
        "expect_rev": 1 });
    assert_eq!(agent.ok("ui_update", update).await, "rev 2");
    assert_eq!(
        agent.ok("ui_update", json!({ "surface": "build", "title": "C", "expect_rev": 1 })).await,
        "stale, now 2"
    );
    assert_eq!(agent.ok("ui_pin", json!({ "surface": "build" })).await, "pinned rev 3");
    assert_eq!(agent.ok("ui_pin", json!({ "surface": "build", "pinned": false })).await, "unpinned rev 4");
    let html =
        json!({ "surface": "page", "html": "<p>", "text": "a page", "actions": ["go"], "height": 200, "pin": false });
    assert_eq!(agent.ok("ui_html", html.clone()).await, "shown rev 1");
    assert_eq!(agent.ok("ui_close", json!({ "surface": "build" })).await, "closed rev 5");
    let missing = agent.error("ui_close", json!({ "surface": "build" })).await;
    assert_eq!(missing, "there is no surface of this name; ui_show makes one");
    let done = gateway.done();
    let calls: Vec<_> = done.iter().map(|done| (done.method.as_str(), done.path.as_str(), done.body.clone())).collect();
    let build = "/v1/sessions/s_test/surfaces/build";
    let update = json!({ "data": [{ "path": "/x", "value": 2 }, { "path": "/l", "append": [1] }], "title": "B", "expect_rev": 1 });
    assert_eq!(
        calls,
        [
            ("POST", "/v1/sessions/s_test/surfaces", show),
            ("PATCH", build, update),
            ("PATCH", build, json!({ "pinned": true })),
            ("PATCH", build, json!({ "pinned": false })),
            ("POST", "/v1/sessions/s_test/surfaces", html),
            ("DELETE", build, Value::Null),
        ]
    );
    let keys: std::collections::BTreeSet<_> = done.iter().map(|done| done.key.clone().unwrap()).collect();
    assert_eq!(keys.len(), done.len(), "a key for each call");
    agent.leave().await;
}

#[tokio::test]
async fn questions_are_answered_or_waited_for() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    let mut ask = form();
    ask["wait_s"] = json!(0);
    assert_eq!(agent.ok("ui_ask", ask).await, "waiting q_1: call ui_wait");
    let answer = json!({ "component": "ok", "event": "submit", "context": { "a": "x\ny" }, "inputs": { "/a": true } });
    let id =
        agent.request("tools/call", json!({ "name": "ui_wait", "arguments": { "ask_id": "q_1", "wait_s": 8 } })).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    gateway.answer("q_1", "answered", json!({ "answer": answer, "by": "Phone" }));
    let (text, is_error) = outcome(&agent.response(id).await);
    assert!(!is_error);
    let (json, by) = text.strip_prefix("answered ").unwrap().rsplit_once(" by ").unwrap();
    assert_eq!((serde_json::from_str::<Value>(json).unwrap(), by), (answer, "Phone"));
    agent.ok("ui_show", shown("form")).await;
    let id = agent
        .request("tools/call", json!({ "name": "ui_ask", "arguments": { "surface": "form", "submit": "ok" } }))
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    gateway.answer("q_2", "withdrawn", json!({}));
    assert!(outcome(&agent.response(id).await).0.starts_with("withdrawn"));
    assert_eq!(gateway.done().last().unwrap().body, json!({ "surface": "form", "submit": ["ok"] }));
    gateway.answer("q_2", "answered", json!({ "answer": null, "by": "Phone" }));
    assert_eq!(agent.ok("ui_wait", json!({ "ask_id": "q_2" })).await, "declined by Phone");
    gateway.answer("q_2", "orphaned", json!({}));
    assert!(agent.ok("ui_wait", json!({ "ask_id": "q_2" })).await.starts_with("withdrawn"));
    gateway.answer("q_2", "expired", json!({}));
    assert!(agent.ok("ui_wait", json!({ "ask_id": "q_2" })).await.starts_with("expired"));
    assert_eq!(agent.error("ui_wait", json!({ "ask_id": "q_9" })).await, "there is no such question");
    for (wrong, words) in [
        (json!({ "submit": ["ok"] }), "give either"),
        (json!({ "surface": "form", "components": [], "submit": ["ok"] }), "give either"),
        (json!({ "surface": "form", "submit": [] }), "`submit` must name"),
    ] {
        assert!(agent.error("ui_ask", wrong).await.contains(words), "{words}");
    }
    assert!(agent.error("ui_update", json!({ "surface": "form" })).await.contains("give `data`"));
    agent.leave().await;
}

#[tokio::test]
async fn wait_ends_in_time_and_reports_progress() {
    let gateway = FakeGateway::start().await;
    // None is due just when the wait ends, a second before the call has to: it could be written after the response.
    let times = CallTimes { call: Duration::from_secs(3), progress: Duration::from_millis(700), ..TIMES };
    let mut agent = Agent::start(&gateway, times).await;
    let begin = Instant::now();
    let params = json!({ "name": "ui_ask", "arguments": form(), "_meta": { "progressToken": "t7" } });
    let id = agent.request("tools/call", params).await;
    let response = agent.response(id).await;
    assert_eq!(outcome(&response), ("waiting q_1: call ui_wait".into(), false));
    assert!(begin.elapsed() < times.call, "{:?}", begin.elapsed());
    assert!(!agent.notes.is_empty(), "it reports that it waits");
    let mut before = 0.0;
    for note in std::mem::take(&mut agent.notes) {
        assert_eq!(
            (&note["method"], &note["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("t7"))
        );
        let progress = note["params"]["progress"].as_f64().unwrap();
        assert!(progress > before);
        before = progress;
    }
    // None without a token; the gateway is gone in the middle.
    let mut gateway = gateway;
    let id = agent.request("tools/call", json!({ "name": "ui_wait", "arguments": { "ask_id": "q_1" } })).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.kill().await;
    let begin = Instant::now();
    let (text, is_error) = outcome(&agent.response(id).await);
    assert!(text.starts_with("waiting q_1: call ui_wait (the gateway is not running") && !is_error, "{text}");
    assert!(begin.elapsed() <= times.call && agent.notes.is_empty(), "{:?}", agent.notes);
    agent.leave().await;
}

#[tokio::test]
async fn wait_goes_on_over_a_restart() {
    let mut gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    let id = agent.request("tools/call", json!({ "name": "ui_ask", "arguments": form() })).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.kill().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    gateway.answer("q_1", "answered", json!({ "answer": { "component": "root" }, "by": "Phone" }));
    gateway.run().await;
    assert_eq!(outcome(&agent.response(id).await).0, r#"answered {"component":"root"} by Phone"#);
    assert_eq!(gateway.done().len(), 1, "asked once");
    agent.leave().await;
}

#[tokio::test]
async fn restarts_lose_double_and_reorder_nothing() {
    let mut gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, CallTimes { call: Duration::from_secs(15), ..TIMES }).await;
    for surface in ["a", "b"] {
        agent.ok("ui_show", shown(surface)).await;
    }
    for at in 0..60 {
        gateway.trick(match at % 5 {
            0 => Trick::Lose,
            2 => Trick::Drop,
            3 => Trick::Delay(Duration::from_millis(20)),
            4 => Trick::Refuse(503, None, json!({ "code": "stopping", "detail": "it stops" })),
            _ => Trick::Delay(Duration::ZERO),
        });
    }
    let mut ids = Vec::new();
    for at in 0..24 {
        let surface = ["a", "b"][at % 2];
        let arguments = json!({ "surface": surface, "data": [{ "path": "/at", "value": at }] });
        ids.push(agent.request("tools/call", json!({ "name": "ui_update", "arguments": arguments })).await);
    }
    let kills = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(350)).await;
            gateway.kill().await;
            tokio::time::sleep(Duration::from_millis(250)).await;
            gateway.run().await;
        }
        gateway.state.lock().unwrap().tricks.clear();
    };
    let read = async {
        let mut lines = std::collections::BTreeMap::new();
        while lines.len() < ids.len() {
            let message = agent.read().await;
            lines.insert(message["id"].as_u64().unwrap(), outcome(&message));
        }
        lines
    };
    let (lines, ()) = tokio::join!(read, kills);
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(lines[id], (format!("rev {}", 2 + at / 2), false), "{at}");
    }
    let done = gateway.done();
    for surface in [0, 1] {
        let ats: Vec<u64> = done.iter().filter_map(|done| done.body["data"][0]["value"].as_u64()).collect();
        let ats: Vec<u64> = ats.into_iter().filter(|at| at % 2 == surface).collect();
        assert_eq!(ats, (0..24).filter(|at| at % 2 == surface).collect::<Vec<_>>());
    }
    assert!(gateway.heard().len() > done.len(), "calls were repeated");
    agent.leave().await;
}

#[tokio::test]
async fn calls_wait_for_a_gateway_that_starts_late() {
    let mut gateway = FakeGateway::stopped();
    let mut agent = Agent::start(&gateway, TIMES).await;
    // What needs no gateway is answered at once.
    assert_eq!(agent.ask("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().len(), 7);
    let id = agent.request("tools/call", json!({ "name": "ui_show", "arguments": shown("a") })).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
    gateway.run().await;
    assert_eq!(outcome(&agent.response(id).await).0, "shown rev 1");
    agent.leave().await;
}

#[tokio::test]
async fn gateway_that_stays_down_is_an_honest_error() {
    let mut gateway = FakeGateway::stopped();
    let times = CallTimes { call: Duration::from_secs(1), ..TIMES };
    let mut agent = Agent::start(&gateway, times).await;
    let begin = Instant::now();
    let params = |name: &str| json!({ "name": "ui_show", "arguments": shown(name) });
    let ids = [agent.request("tools/call", params("a")).await, agent.request("tools/call", params("a")).await];
    for id in ids {
        let (text, is_error) = outcome(&agent.response(id).await);
        assert!(is_error && text.contains("not carried out") || text.contains("was not sent"), "{text}");
    }
    assert!(begin.elapsed() < times.call * 2, "both waited together: {:?}", begin.elapsed());
    gateway.run().await;
    // A gateway that takes the call and says nothing.
    gateway.trick(Trick::Delay(PATIENCE));
    let text = agent.error("ui_show", shown("a")).await;
    assert!(text.contains("may or may not"), "{text}");
    gateway.kill().await;
    agent.leave().await;
}

#[tokio::test]
async fn token_is_read_again_after_a_refusal() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    agent.ok("ui_show", shown("a")).await;
    gateway.trick(Trick::Refuse(401, None, json!({})));
    assert_eq!(agent.ok("ui_show", shown("a")).await, "shown rev 2");
    gateway.new_token("token-2");
    assert_eq!(agent.ok("ui_show", shown("a")).await, "shown rev 3");
    // The gateway takes another one, and writes it a moment later.
    gateway.state.lock().unwrap().token = "token-3".into();
    let id = agent.request("tools/call", json!({ "name": "ui_show", "arguments": shown("a") })).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    gateway.new_token("token-3");
    assert_eq!(outcome(&agent.response(id).await).0, "shown rev 4");
    gateway.state.lock().unwrap().token = "other".into();
    let text = agent.error("ui_show", shown("a")).await;
    assert!(text.contains("does not accept this session's token"), "{text}");
    agent.leave().await;
}

#[tokio::test]
async fn token_file_that_others_can_read_or_link_is_refused() {
    let gateway = FakeGateway::start().await;
    let file = super::gateway::token_file(gateway.home.path(), &gateway.session);
    for (at, words) in
        ["mode must be 0600", "mode must be 0600", "is a link", "not a plain file", "no token", "has no token"]
            .iter()
            .enumerate()
    {
        let mut agent = Agent::start(&gateway, TIMES).await;
        match at {
            0 => gateway.write_token("token-1", 0o640),
            1 => gateway.write_token("token-1", 0o604),
            2 => {
                let other = gateway.home.path().join("other");
                std::fs::rename(&file, &other).unwrap();
                std::os::unix::fs::symlink(other, &file).unwrap();
            }
            3 => {
                std::fs::remove_file(&file).unwrap();
                std::fs::create_dir(&file).unwrap();
            }
            4 => std::fs::remove_dir(&file).unwrap(),
            _ => gateway.write_token("two words", 0o600),
        }
        let text = agent.error("ui_show", shown("a")).await;
        assert!(text.contains(words), "{text}");
        agent.leave().await;
    }
    assert!(gateway.heard().is_empty(), "no token was sent");
}

#[tokio::test]
async fn refusals_reach_the_model_and_slow_down_is_obeyed() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    gateway.trick(Trick::Refuse(
        400,
        None,
        json!({ "code": "bad_surface", "detail": "component x: no such\nprop; use y" }),
    ));
    assert_eq!(agent.error("ui_show", shown("a")).await, "component x: no such prop; use y");
    gateway.trick(Trick::Refuse(413, None, json!({ "code": "surface_too_large" })));
    assert_eq!(agent.error("ui_show", shown("a")).await, "surface_too_large");
    gateway.trick(Trick::Refuse(500, None, Value::Null));
    assert_eq!(agent.error("ui_show", shown("a")).await, "the gateway answered with status 500");
    gateway.trick(Trick::Refuse(409, None, json!({ "code": "too_many_surfaces", "detail": "close one", "rev": 3 })));
    assert_eq!(agent.error("ui_show", shown("a")).await, "close one");
    gateway.trick(Trick::Refuse(429, None, json!({ "code": "over_limit", "detail": "full: close a surface" })));
    assert_eq!(agent.error("ui_show", shown("a")).await, "full: close a surface");
    let begin = Instant::now();
    gateway.trick(Trick::Refuse(429, Some(1), json!({ "code": "slow_down", "detail": "slower" })));
    assert_eq!(agent.ok("ui_show", shown("a")).await, "shown rev 1");
    assert!(begin.elapsed() >= Duration::from_secs(1));
    gateway.trick(Trick::Refuse(429, Some(3600), json!({ "code": "slow_down", "detail": "slower" })));
    assert!(agent.error("ui_show", shown("a")).await.contains("slower"));
    let keys: Vec<_> = gateway.heard().iter().map(|done| done.key.clone()).collect();
    assert_eq!(keys[5], keys[6], "the same call again");
    agent.leave().await;
}

#[tokio::test]
async fn calls_are_limited_and_cancelled_ones_end() {
    let mut gateway = FakeGateway::stopped();
    let mut agent = Agent::start(&gateway, TIMES).await;
    let mut ids = Vec::new();
    for at in 0..CALLS_MAX {
        let params = json!({ "name": "ui_show", "arguments": shown(&format!("s{at}")) });
        ids.push(agent.request("tools/call", params).await);
    }
    let text = agent.error("ui_show", shown("more")).await;
    assert!(text.contains("wait for one of them"), "{text}");
    for id in &ids[..60] {
        let params = json!({ "requestId": id, "reason": "enough" });
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }
    assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
    gateway.run().await;
    let mut left: std::collections::BTreeSet<u64> = ids[60..].iter().copied().collect();
    while !left.is_empty() {
        let message = agent.read().await;
        assert!(left.remove(&message["id"].as_u64().unwrap()), "{message}");
    }
    assert_eq!(agent.ok("ui_show", shown("more")).await, "shown rev 1");
    assert_eq!(gateway.done().len(), 5, "cancelled calls were not sent");
    agent.leave().await;
}

#[tokio::test]
async fn malformed_input_is_answered_or_ignored_and_the_server_goes_on() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    for ignored in [
        "\n\n",
        "not json\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\n",
        "[]\n",
        "7\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/made_up\",\"params\":{\"x\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n",
    ] {
        agent.write(ignored.as_bytes()).await;
    }
    agent.write(b"\xff\xfe{}\n").await;
    agent.write(b"{\"jsonrpc\":\"1.0\",\"id\":70,\"method\":\"ping\"}\n").await;
    assert_eq!(agent.response(70).await["error"]["code"], -32600);
    for (method, params, code) in [
        ("tools/call", json!({ "name": "rm", "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "ui_show", "arguments": [1] }), -32602),
        ("tools/call", json!({}), -32602),
        ("resources/made_up", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "debug" }), -32601),
    ] {
        assert_eq!(agent.ask(method, params).await["error"]["code"], code, "{method}");
    }
    // Too long, with the id at either end as agents write it.
    let filling = "x".repeat(super::stdio::LINE_MAX);
    agent
        .write(format!(r#"{{"jsonrpc":"2.0","id":80,"method":"tools/call","params":{{"x":"{filling}"}}}}"#).as_bytes())
        .await;
    agent.write(b"\n").await;
    assert!(agent.response(80).await["error"]["message"].as_str().unwrap().contains("longer than"));
    agent
        .write(format!(r#"{{"method":"tools/call","params":{{"x":"{filling}"}},"jsonrpc":"2.0","id":81}}"#).as_bytes())
        .await;
    agent.write(b"\n").await;
    assert_eq!(agent.response(81).await["error"]["code"], -32600);
    // Large, and within the limit.
    let mut large = shown("large");
    large["data"] = json!({ "text": "y".repeat(4 << 20) });
    assert_eq!(agent.ok("ui_show", large).await, "shown rev 1");
    assert_eq!(gateway.done().len(), 1);
    agent.leave().await;
}

#[tokio::test]
async fn versions_are_negotiated_and_other_openings_are_survived() {
    let gateway = FakeGateway::stopped();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut agent = Agent::silent(&gateway, TIMES);
        // Before `initialize`: a probe of a later version, a ping, notifications.
        let modern = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
        assert_eq!(agent.ask("server/discover", modern).await["error"]["code"], -32601);
        agent
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
            .await;
        assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
        let hello = agent.ask("initialize", initialize(asked)).await;
        let result = &hello["result"];
        assert_eq!(result["protocolVersion"], given, "{asked}");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        assert_eq!(result["serverInfo"]["name"], "plexus");
        assert!(result["instructions"].as_str().unwrap().contains("ui_show"));
        agent.leave().await;
    }
    // Agents that leave at once, or never say anything that MCP knows.
    Agent::silent(&gateway, TIMES).leave().await;
    let mut agent = Agent::silent(&gateway, TIMES);
    agent.write(b"hello\n").await;
    agent.leave().await;
}

#[tokio::test]
async fn end_of_stdin_ends_waits_and_finishes_what_was_sent() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    let begin = Instant::now();
    agent.request("tools/call", json!({ "name": "ui_ask", "arguments": form() })).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    gateway.trick(Trick::Delay(Duration::from_millis(300)));
    for at in 0..3 {
        let arguments = json!({ "surface": "a", "title": at.to_string(), "components": [] });
        agent.request("tools/call", json!({ "name": "ui_show", "arguments": arguments })).await;
    }
    agent.leave().await;
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    let titles: Vec<_> = gateway.done().iter().map(|done| done.body["title"].clone()).collect();
    assert_eq!(titles, [Value::Null, json!("0"), json!("1"), json!("2")]);
    // A gateway that is down keeps no server.
    let gateway = FakeGateway::stopped();
    let mut agent = Agent::start(&gateway, TIMES).await;
    agent.request("tools/call", json!({ "name": "ui_show", "arguments": shown("a") })).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begin = Instant::now();
    agent.leave().await;
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn agent_that_does_not_read_is_not_read() {
    let gateway = FakeGateway::start().await;
    let mut agent = Agent::start(&gateway, TIMES).await;
    let ping = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" }));
    let flood = async {
        for _ in 0..5000 {
            agent.input.write_all(ping.as_bytes()).await.unwrap();
        }
    };
    assert!(timeout(Duration::from_secs(1), flood).await.is_err(), "it stops reading");
    for _ in 0..100 {
        let line = timeout(PATIENCE, agent.output.next_line()).await.unwrap().unwrap().unwrap();
        assert!(line.contains("ui_show"));
    }
    agent.server.abort();
}

#[tokio::test]
async fn shared_server_names_the_calls_that_draw_and_ends_after_its_session() {
    let gateway = FakeGateway::start().await;
    let times = CallTimes { session_check: Duration::from_millis(500), ..TIMES };
    let mut agent = Agent::sharing(&gateway, times, Some("plexus_abcd2345"));
    agent.ask("initialize", initialize("2025-06-18")).await;
    agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    agent.ok("ui_show", shown("form")).await;
    agent.ok("ui_ask", json!({ "surface": "form", "submit": "ok", "wait_s": 0 })).await;
    let named = |tool: &str, arguments: Value| {
        CallDigest::new(&format!("plexus_abcd2345_{tool}"), arguments.as_object().unwrap()).to_string()
    };
    // What the model gave, and not what became of it.
    let digests =
        [named("ui_show", shown("form")), named("ui_ask", json!({ "surface": "form", "submit": "ok", "wait_s": 0 }))];
    let calls: Vec<_> =
        gateway.heard().into_iter().filter(|call| call.method == "POST").map(|call| call.path).collect();
    let [show, ask] = digests.map(|digest| format!("?call={digest}"));
    assert_eq!(calls, [format!("/v1/sessions/s_test/surfaces{show}"), format!("/v1/sessions/s_test/asks{ask}")]);
    // A moment without a token is no end.
    let token = token_file(gateway.home.path(), &gateway.session);
    let hidden = token.with_extension("hidden");
    std::fs::rename(&token, &hidden).unwrap();
    std::fs::rename(&hidden, &token).unwrap();
    tokio::time::sleep(4 * times.session_check).await;
    assert_eq!(agent.ok("ui_pin", json!({ "surface": "form" })).await, "pinned rev 2");
    std::fs::remove_file(&token).unwrap();
    timeout(PATIENCE, agent.server).await.expect("it ends").unwrap().unwrap();
}
