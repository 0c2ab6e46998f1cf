//! The demo agent over stdio, one file: every command and every message, parsed by the published ACP types.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use agent_client_protocol_schema::v1;
use serde_json::{Value, json};

/// Maximum number of unread lines; the agent waits when a test falls behind.
const LINES: usize = 1 << 17;

/// Maximum waiting time; only a lost message reaches it.
const LOST: Duration = Duration::from_secs(60);

struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Agent {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plexus"))
            .args(["agent", "demo"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tx, lines) = sync_channel(LINES);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).unwrap_or(0) > 0 {
                if tx.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines, next: 100 }
    }

    /// An agent with one session, its first notification read.
    fn ready() -> (Self, String) {
        let mut agent = Self::start();
        let session = agent.new_session();
        (agent, session)
    }

    fn new_session(&mut self) -> String {
        let id = self.request("session/new", json!({"cwd": "/tmp", "mcpServers": []}));
        let result = self.result(&id);
        let parsed: v1::NewSessionResponse = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(parsed.modes.unwrap().available_modes.len(), 2);
        assert_eq!(result["modes"]["currentModeId"], "ask");
        let update = self.recv();
        assert_eq!(update["params"]["update"]["sessionUpdate"], "available_commands_update");
        let kind = typed(&update);
        assert!(matches!(kind, v1::SessionUpdate::AvailableCommandsUpdate(c) if c.available_commands.len() >= 16));
        result["sessionId"].as_str().unwrap().to_owned()
    }

    fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    fn cancel(&mut self, session: &str) {
        self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(LOST).expect("a line from the agent")
    }

    fn recv(&self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    fn result(&self, id: &Value) -> Value {
        let message = self.recv();
        assert_eq!(&message["id"], id, "{message}");
        assert!(message["error"].is_null(), "{message}");
        message["result"].clone()
    }

    fn error(&self, id: &Value) -> i64 {
        let message = self.recv();
        assert_eq!(&message["id"], id, "{message}");
        message["error"]["code"].as_i64().expect("an error")
    }

    /// Every update until the answer to `id`, and its stop reason.
    fn until(&self, id: &Value) -> (Vec<Value>, String) {
        let mut updates = Vec::new();
        loop {
            let message = self.recv();
            if &message["id"] == id && message.get("method").is_none() {
                let parsed: v1::PromptResponse = serde_json::from_value(message["result"].clone()).unwrap();
                return (updates, serde_json::to_value(parsed.stop_reason).unwrap().as_str().unwrap().to_owned());
            }
            typed(&message);
            updates.push(message["params"]["update"].clone());
        }
    }

    /// Runs a prompt to its end.
    fn play(&mut self, session: &str, text: &str) -> Vec<Value> {
        let id = self.prompt(session, text);
        let (updates, reason) = self.until(&id);
        assert_eq!(reason, "end_turn");
        updates
    }

    /// A `tool_call` and the permission request that follows it: the request's id and params.
    fn permission(&self) -> (Value, Value) {
        let call = self.recv();
        assert!(matches!(typed(&call), v1::SessionUpdate::ToolCall(_)), "{call}");
        let request = self.recv();
        assert_eq!(request["method"], "session/request_permission");
        let params = request["params"].clone();
        let _: v1::RequestPermissionRequest = serde_json::from_value(params.clone()).unwrap();
        assert_eq!(params["toolCall"]["toolCallId"], call["params"]["update"]["toolCallId"]);
        (request["id"].clone(), params)
    }

    fn decide(&mut self, id: &Value, outcome: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }

    /// Closes stdin; the exit code and what was on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.ended()
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn typed(message: &Value) -> v1::SessionUpdate {
    assert_eq!(message["method"], "session/update", "{message}");
    let parsed: v1::SessionNotification = serde_json::from_value(message["params"].clone()).expect("an ACP update");
    parsed.update
}

fn text(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|u| u["sessionUpdate"] == "agent_message_chunk");
    chunks.map(|u| u["content"]["text"].as_str().unwrap()).collect()
}

fn selected(option: &str) -> Value {
    json!({"outcome": "selected", "optionId": option})
}

#[test]
fn handshake_and_sessions() {
    let mut agent = Agent::start();
    let id = agent.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let parsed: v1::InitializeResponse = serde_json::from_value(agent.result(&id)).unwrap();
    assert_eq!(serde_json::to_value(parsed.protocol_version).unwrap(), 1);
    assert!(parsed.agent_capabilities.load_session);
    assert!(parsed.agent_capabilities.session_capabilities.list.is_some());
    assert_eq!(parsed.agent_info.unwrap().name, "plexus-demo");

    let id = agent.request("authenticate", json!({"methodId": "any"}));
    assert_eq!(agent.result(&id), json!({}));
    let one = agent.new_session();
    let two = agent.new_session();
    assert_ne!(one, two);

    let id = agent.request("session/load", json!({"sessionId": "from-before", "cwd": "/", "mcpServers": []}));
    let loaded = agent.result(&id);
    let _: v1::LoadSessionResponse = serde_json::from_value(loaded.clone()).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "ask");
    assert_eq!(agent.recv()["params"]["update"]["sessionUpdate"], "available_commands_update");
    assert_eq!(text(&agent.play("from-before", "echo loaded")), "loaded");

    let id = agent.request("session/list", json!({}));
    let list = agent.result(&id);
    let parsed: v1::ListSessionsResponse = serde_json::from_value(list).unwrap();
    assert_eq!(parsed.sessions.len(), 3);

    let id = agent.request("session/set_mode", json!({"sessionId": one, "modeId": "auto"}));
    assert_eq!(agent.result(&id), json!({}));
    assert_eq!(agent.recv()["params"]["update"]["currentModeId"], "auto");
    let id = agent.request("session/set_mode", json!({"sessionId": one, "modeId": "never"}));
    assert_eq!(agent.error(&id), -32602);
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn bad_input_is_answered_and_the_demo_goes_on() {
    let (mut agent, session) = Agent::ready();
    for (bytes, code) in [
        (&b"{nonsense\n"[..], -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b"7\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"method\":5}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\"}\n", -32600),
    ] {
        agent.raw(bytes);
        assert_eq!(agent.error(&Value::Null), code, "{}", String::from_utf8_lossy(bytes));
    }
    // Ids of any type come back unchanged.
    for id in [json!("a"), json!(1.5), Value::Null, json!(-3)] {
        agent.send(&json!({"jsonrpc": "2.0", "id": id, "method": "no/such"}));
        assert_eq!(agent.error(&id), -32601);
        agent.send(&json!({"jsonrpc": "1.0", "id": id, "method": "initialize"}));
        assert_eq!(agent.error(&id), -32600);
    }
    for (method, params, code) in [
        ("initialize", json!({}), -32602),
        ("session/new", json!({"cwd": 1, "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": "/"}), -32602),
        ("session/load", json!({"sessionId": "x"}), -32602),
        ("session/prompt", json!({"sessionId": "nobody", "prompt": []}), -32002),
        ("session/prompt", json!({"sessionId": session}), -32602),
        ("session/set_mode", json!({"sessionId": "nobody", "modeId": "ask"}), -32002),
        ("session/cancel", json!({"sessionId": session}), -32601),
    ] {
        let id = agent.request(method, params);
        assert_eq!(agent.error(&id), code, "{method}");
    }
    agent.send(&json!({"jsonrpc": "2.0", "method": "session/cancel"}));
    agent.send(&json!({"jsonrpc": "2.0", "method": "made/up", "params": 5}));
    agent.raw(b"\n   \n");
    assert_eq!(text(&agent.play(&session, "echo alive")), "alive");
    let (code, stderr) = agent.end();
    assert_eq!(code, Some(0));
    assert!(stderr.contains("session/cancel without a sessionId"), "{stderr}");
}

#[test]
fn endless_line_is_refused_and_the_next_is_served() {
    let (mut agent, session) = Agent::ready();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        agent.raw(&block);
    }
    agent.raw(b"\n");
    assert_eq!(agent.error(&Value::Null), -32600);
    assert_eq!(text(&agent.play(&session, "echo alive")), "alive");
}

#[test]
fn streams_are_exact_and_steps_follow_each_other() {
    let (mut agent, session) = Agent::ready();
    let updates = agent.play(&session, "stream 3");
    assert_eq!(updates.len(), 3);
    assert_eq!(text(&updates), "chunk-0001 chunk-0002 chunk-0003 ");
    assert_eq!(
        text(&agent.play(&session, "echo a  b ;; stream 2 0 ;; /echo \u{1F600}\"\\")),
        "a  bchunk-0001 chunk-0002 \u{1F600}\"\\"
    );
    let updates = agent.play(&session, "stream 12000 0");
    assert_eq!(updates.len(), 12000);
    let expected: String = (1..=12000).map(|n| format!("chunk-{n:05} ")).collect();
    assert_eq!(text(&updates), expected);
    assert!(agent.play(&session, "stream 0 ;; sleep 1").is_empty());
}

#[test]
fn unknown_prompt_gets_the_tour() {
    let (mut agent, session) = Agent::ready();
    for prompt in ["hello", "", "stream of words", "crash course on Rust", "stream 1 2 3", "hang on"] {
        let said = text(&agent.play(&session, prompt));
        for name in [
            "stream", "echo", "think", "plan", "diff", "ask", "ask2", "form", "edit", "mode", "usage", "sleep", "hang",
            "flood", "line", "script", "junk", "stderr", "crash",
        ] {
            assert!(said.contains(&format!("- `{name}")), "{prompt}: no {name} in {said}");
        }
    }
}

#[test]
fn ask_obeys_each_option_and_closes_its_card() {
    let (mut agent, session) = Agent::ready();
    let mut tools = std::collections::HashSet::new();
    for (prompt, command, outcome, status, said) in [
        ("ask", "touch demo.txt", selected("allow_once"), "completed", "allowed (allow_once): touch demo.txt\n"),
        ("ask", "touch demo.txt", selected("allow_always"), "completed", "allowed (allow_always): touch demo.txt\n"),
        (
            "ask rm -rf  / # x ",
            "rm -rf  / # x ",
            selected("reject_once"),
            "failed",
            "rejected (reject_once): rm -rf  / # x \n",
        ),
        (
            "ask a\nb\u{202e}",
            "a\nb\u{202e}",
            selected("made-up"),
            "failed",
            "not allowed, because there is no option \"made-up\": a\nb\u{202e}\n",
        ),
    ] {
        let prompt = agent.prompt(&session, prompt);
        let (id, params) = agent.permission();
        assert_eq!(params["sessionId"], session.as_str());
        assert_eq!(params["toolCall"]["kind"], "execute");
        assert_eq!(params["toolCall"]["rawInput"]["command"], command);
        let kinds: Vec<_> = params["options"].as_array().unwrap().iter().map(|o| o["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        let tool = params["toolCall"]["toolCallId"].as_str().unwrap().to_owned();
        assert!(tools.insert(tool.clone()), "{tool} was used before");
        agent.decide(&id, outcome);
        let (updates, reason) = agent.until(&prompt);
        assert_eq!(reason, "end_turn");
        assert_eq!(updates[0]["toolCallId"], tool.as_str());
        assert_eq!(updates[0]["status"], status);
        assert_eq!(text(&updates), said);
    }
    // A JSON-RPC error is no decision, and the agent goes on.
    let prompt = agent.prompt(&session, "ask ;; echo on");
    let (id, _) = agent.permission();
    agent.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}));
    let (updates, _) = agent.until(&prompt);
    assert_eq!(updates[0]["status"], "failed");
    assert!(text(&updates).starts_with("not allowed, because the client failed"));
    assert!(text(&updates).ends_with("touch demo.txt\non"));
}

#[test]
fn first_answer_wins_and_unknown_answers_are_noted() {
    let (mut agent, session) = Agent::ready();
    let prompt = agent.prompt(&session, "ask");
    let (id, _) = agent.permission();
    agent.decide(&json!(999), selected("allow_once"));
    agent.decide(&json!("x"), selected("allow_once"));
    agent.decide(&id, selected("reject_once"));
    agent.decide(&id, selected("allow_once"));
    assert_eq!(text(&agent.until(&prompt).0), "rejected (reject_once): touch demo.txt\n");
    let stderr = agent.end().1;
    for id in ["999", "\"x\"", &id.to_string()] {
        assert!(stderr.contains(&format!("response to unknown request {id}\n")), "{stderr}");
    }
}

#[test]
fn ask2_waits_for_both_in_either_order() {
    let (mut agent, session) = Agent::ready();
    let prompt = agent.prompt(&session, "ask2");
    let (first, a) = agent.permission();
    let (second, b) = agent.permission();
    assert_ne!(first, second);
    assert_ne!(a["toolCall"]["toolCallId"], b["toolCall"]["toolCallId"]);
    agent.decide(&second, selected("allow_once"));
    // The other session works meanwhile, and this one sends nothing after one answer.
    let other = agent.new_session();
    assert_eq!(text(&agent.play(&other, "echo between")), "between");
    agent.decide(&first, selected("reject_once"));
    let (updates, reason) = agent.until(&prompt);
    assert_eq!(reason, "end_turn");
    assert_eq!(text(&updates), "rejected (reject_once): touch demo-1.txt\nallowed (allow_once): touch demo-2.txt\n");
}

#[test]
fn cancel_ends_every_waiting_prompt() {
    let (mut agent, session) = Agent::ready();
    // A cancel without a running prompt has no effect, now or later.
    agent.cancel(&session);
    assert_eq!(text(&agent.play(&session, "echo fine")), "fine");
    for prompt in ["hang", "sleep 3600000", "stream 1000000 1", "echo x ;; hang ;; echo never", "flood 100000000"] {
        let id = agent.prompt(&session, prompt);
        if prompt.starts_with("stream") || prompt.starts_with("flood") {
            assert!(agent.line().contains("chunk-"));
        }
        agent.cancel(&session);
        let (updates, reason) = agent.until(&id);
        assert_eq!(reason, "cancelled", "{prompt}");
        assert!(!text(&updates).contains("never"));
    }
    assert_eq!(text(&agent.play(&session, "echo fine")), "fine");
}

#[test]
fn cancelled_question_ends_the_prompt() {
    let (mut agent, session) = Agent::ready();
    // As in ACP: the cancel, then the client's answer to the open request.
    let prompt = agent.prompt(&session, "ask2 ;; echo never");
    let (first, _) = agent.permission();
    let (second, _) = agent.permission();
    agent.cancel(&session);
    agent.decide(&first, json!({"outcome": "cancelled"}));
    agent.decide(&second, selected("allow_once"));
    let (updates, reason) = agent.until(&prompt);
    assert_eq!(reason, "cancelled");
    assert_eq!(updates.len(), 2);
    assert!(updates.iter().all(|u| u["sessionUpdate"] == "tool_call_update" && u["status"] == "failed"));
    // The answer alone is enough too.
    let prompt = agent.prompt(&session, "ask ;; echo never");
    let (id, _) = agent.permission();
    agent.decide(&id, json!({"outcome": "cancelled"}));
    let (updates, reason) = agent.until(&prompt);
    assert_eq!((updates.len(), reason.as_str()), (1, "cancelled"));
}

#[test]
fn sessions_run_side_by_side_and_one_prompt_each() {
    let (mut agent, one) = Agent::ready();
    let two = agent.new_session();
    let hang = agent.prompt(&one, "hang");
    assert_eq!(text(&agent.play(&two, "stream 3 1")), "chunk-0001 chunk-0002 chunk-0003 ");
    let second = agent.prompt(&one, "echo no");
    assert_eq!(agent.error(&second), -32600);
    agent.cancel(&two);
    agent.cancel(&one);
    assert_eq!(agent.until(&hang).1, "cancelled");
}

#[test]
fn steps_emit_their_kind_of_update() {
    let (mut agent, session) = Agent::ready();
    let updates = agent.play(&session, "diff");
    assert_eq!(updates[0]["kind"], "edit");
    assert_eq!(updates[0]["content"][0]["type"], "diff");
    assert_eq!(updates[0]["content"][0]["path"], "/tmp/demo.txt");
    assert_eq!(updates[1]["toolCallId"], updates[0]["toolCallId"]);
    assert_eq!(updates[1]["status"], "completed");

    let updates = agent.play(&session, "plan");
    let plans: Vec<_> = updates.iter().filter(|u| u["sessionUpdate"] == "plan").collect();
    assert_eq!(plans.len(), 4);
    let done = |p: &Value| p["entries"].as_array().unwrap().iter().filter(|e| e["status"] == "completed").count();
    assert_eq!(plans.iter().map(|p| done(p)).collect::<Vec<_>>(), [0, 1, 2, 3]);

    let updates = agent.play(&session, "think");
    let kinds: Vec<_> = updates.iter().map(|u| u["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["agent_thought_chunk", "agent_thought_chunk", "agent_thought_chunk", "agent_message_chunk"]);

    let updates = agent.play(&session, "usage");
    assert!(matches!(updates[..], [ref u] if u["sessionUpdate"] == "usage_update" && u["used"].as_u64() > Some(0)));

    let updates = agent.play(&session, "mode");
    assert_eq!(updates[0]["currentModeId"], "auto");
    let updates = agent.play(&session, "mode");
    assert_eq!(updates[0]["currentModeId"], "ask");

    assert!(agent.play(&session, "stderr one two").is_empty());
    assert!(agent.end().1.contains("one two\n"));
}

#[test]
fn junk_prompt_emits_invalid_lines() {
    let (mut agent, session) = Agent::ready();
    let id = agent.prompt(&session, "junk");
    assert!(serde_json::from_str::<Value>(&agent.line()).is_err());
    assert_eq!(agent.recv()["method"], "demo/unknown");
    assert_eq!(agent.recv()["params"]["update"]["sessionUpdate"], "demo_unknown_kind");
    assert_eq!(text(&agent.until(&id).0), "Still here after the junk.\n");
}

#[test]
fn line_and_flood_have_the_sizes_asked_for() {
    let (mut agent, session) = Agent::ready();
    for size in [300, 65_536, 3_000_001] {
        let id = agent.prompt(&session, &format!("line {size}"));
        let line = agent.line();
        assert_eq!(line.len(), size + 1);
        typed(&serde_json::from_str(&line).unwrap());
        assert_eq!(agent.until(&id).1, "end_turn");
    }
    assert_eq!(agent.play(&session, "line 5")[0]["content"]["text"], "");
    assert!(text(&agent.play(&session, "line 99999999999")).contains("at most"));
    for (prompt, n, bytes) in [
        ("flood 20000", 20_000, 24),
        ("flood 100 1000", 100, 1000),
        ("flood 3 100000", 3, 100_000),
        ("flood 2 1", 2, 11),
    ] {
        let updates = agent.play(&session, prompt);
        assert_eq!(updates.len(), n);
        for (i, update) in updates.iter().enumerate() {
            let text = update["content"]["text"].as_str().unwrap();
            assert_eq!(text.len(), bytes);
            let number: String = text.chars().skip(6).take_while(char::is_ascii_digit).collect();
            assert_eq!(number.parse::<usize>().unwrap(), i + 1);
        }
    }
}

#[test]
fn stdin_is_served_while_nobody_reads_the_flood() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plexus"))
        .args(["agent", "demo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let load = json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": {"sessionId": "s", "cwd": "/"}});
    let flood = json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "flood 100000000000"}]}});
    write!(stdin, "{load}\n{flood}\n").unwrap();
    // Far more than a pipe holds: it can only be written if the agent reads.
    for id in 0..20_000 {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id + 10, "method": "no/such"})).unwrap();
    }
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}})).unwrap();
    let (mut errors, mut line) = (0, String::new());
    loop {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the agent ended");
        if line.contains("-32601") {
            errors += 1;
        } else if line.contains("stopReason") {
            break;
        }
    }
    assert_eq!(errors, 20_000);
    assert!(line.contains("cancelled"));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn crash_ends_in_the_middle_of_a_line() {
    let (mut agent, session) = Agent::ready();
    agent.prompt(&session, "stream 2 0 ;; crash ;; echo never");
    assert!(agent.line().contains("chunk-0001"));
    assert!(agent.line().contains("chunk-0002"));
    let half = agent.line();
    assert!(!half.ends_with('\n') && half.starts_with('{'), "{half}");
    assert!(agent.lines.recv_timeout(LOST).is_err());
    assert_eq!(agent.ended().0, Some(3));
}

#[test]
fn stdin_end_ends_the_demo_whatever_runs() {
    for prompt in ["hang", "ask", "sleep 3600000", "stream 1000000 1", "flood 100000000000"] {
        let (mut agent, session) = Agent::ready();
        agent.prompt(&session, prompt);
        assert_eq!(agent.end().0, Some(0), "{prompt}");
    }
}
