//! Tests of the proxy by tables, and against a simulated gateway that fails at any moment. One file for one test bench.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::proxy::{AcpProxy, ProxyOutput};
use super::{LINE_MAX, Line, next_line};

fn sent(lines: &mut VecDeque<String>) -> Vec<Value> {
    lines.drain(..).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

/// A proxy, and its output.
struct Bench {
    proxy: AcpProxy,
    out: ProxyOutput,
}

impl Bench {
    fn new(join: Option<&str>, runtime: Option<&str>) -> Self {
        let proxy = AcpProxy::new("b".into(), join.map(Into::into), runtime.map(Into::into));
        let mut bench = Self { proxy, out: ProxyOutput::default() };
        bench.proxy.connected(&mut bench.out);
        bench
    }

    /// A proxy in a session, with empty output.
    fn in_session() -> Self {
        let mut bench = Self::new(None, None);
        bench.editor(json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}));
        bench.gateway(json!({"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}));
        let new = json!({"cwd":"/w","mcpServers":[]});
        bench.editor(json!({"jsonrpc":"2.0","id":1,"method":"session/new","params":new}));
        bench.gateway(json!({"jsonrpc":"2.0","id":1,"result":{"sessionId":"s_1"}}));
        bench.out = ProxyOutput::default();
        bench
    }

    fn editor(&mut self, message: Value) -> Vec<Value> {
        self.proxy.editor(&message.to_string(), &mut self.out);
        sent(&mut self.out.gateway)
    }

    fn gateway(&mut self, message: Value) -> Vec<Value> {
        self.proxy.gateway(&message.to_string(), &mut self.out);
        sent(&mut self.out.editor)
    }

    fn chunk(&mut self, cursor: &str) -> Vec<Value> {
        self.gateway(json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s_1",
            "update":{"sessionUpdate":"agent_message_chunk"},"_meta":{"plexus":{"cursor":cursor}}}}))
    }

    fn prompt(&mut self, id: u64) -> Value {
        let params = json!({"sessionId":"s_1","prompt":[{"type":"text","text":"x"}]});
        self.editor(json!({"jsonrpc":"2.0","id":id,"method":"session/prompt","params":params})).remove(0)
    }

    fn ask(&mut self, id: &str) -> Vec<Value> {
        self.gateway(json!({"jsonrpc":"2.0","id":id,"method":"session/request_permission","params":
            {"sessionId":"s_1","options":[],"_meta":{"plexus":{"request_id":id.split('#').next(),"cursor":"e:9"}}}}))
    }

    fn down(&mut self) -> Vec<Value> {
        self.proxy.disconnected(&mut self.out);
        sent(&mut self.out.editor)
    }

    /// Reconnects; the gateway accepts every rejoin. Returns the requests that it got.
    fn reconnect(&mut self) -> Vec<Value> {
        self.proxy.connected(&mut self.out);
        let hello = sent(&mut self.out.gateway).remove(0);
        assert_eq!((&hello["method"], &hello["params"]["protocolVersion"]), (&json!("initialize"), &json!(1)));
        assert!(!self.proxy.is_ready(), "the editor waits");
        self.gateway(json!({"jsonrpc":"2.0","id":hello["id"],"result":{}}));
        let resume = sent(&mut self.out.gateway).remove(0);
        assert_eq!(resume["method"], "session/resume");
        assert!(!self.proxy.is_ready());
        assert!(self.gateway(json!({"jsonrpc":"2.0","id":resume["id"],"result":{}})).is_empty(), "swallowed");
        assert!(self.proxy.is_ready());
        std::iter::once(resume).chain(sent(&mut self.out.gateway)).collect()
    }
}

#[test]
fn acp_bridge_passes_messages_through_unchanged() {
    let mut bench = Bench::in_session();
    let line = r#"{ "jsonrpc":"2.0", "method":"_agent/thing","params":{"n":1.50,"z":[1e3],"a":"\u00e9"} }"#;
    bench.proxy.editor(line, &mut bench.out);
    assert_eq!(bench.out.gateway.pop_front().as_deref(), Some(line));
    let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"z":9007199254740993,"a":1.10}}"#;
    bench.proxy.gateway(line, &mut bench.out);
    assert_eq!(bench.out.editor.pop_front().as_deref(), Some(line));
    // A message of several lines becomes one line for an editor.
    bench.proxy.gateway("{\"jsonrpc\":\"2.0\",\n\"method\":\"x\"}", &mut bench.out);
    assert_eq!(bench.out.editor.pop_front().as_deref(), Some("{\"jsonrpc\":\"2.0\", \"method\":\"x\"}"));
    // Parameters of a request stay unchanged, too.
    let line = r#"{"jsonrpc":"2.0","id":"q","method":"session/set_mode","params":{"sessionId":"s_1","x":1.0}}"#;
    bench.proxy.editor(line, &mut bench.out);
    assert_eq!(bench.out.gateway.pop_front().as_deref(), Some(line));
}

#[test]
fn acp_bridge_gives_a_prompt_a_key_and_keeps_its_other_fields() {
    let mut bench = Bench::in_session();
    let prompt = bench.prompt(2);
    assert_eq!((&prompt["id"], &prompt["params"]["_meta"]["plexus"]["key"]), (&json!(2), &json!("b.1")));
    let params = json!({"sessionId":"s_1","prompt":[],"_meta":{"own":1,"plexus":{"key":"mine","x":2}}});
    let prompt = bench.editor(json!({"jsonrpc":"2.0","id":3,"method":"session/prompt","params":params}));
    assert_eq!(prompt[0]["params"], params, "an editor's own key stands");
}

#[test]
fn acp_bridge_joins_the_named_session_once() {
    let mut bench = Bench::new(Some("s_9"), Some("gemini"));
    let new = |id: u64| json!({"jsonrpc":"2.0","id":id,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}});
    let asked = bench.editor(new(1)).remove(0);
    assert_eq!(asked["params"]["_meta"], json!({"plexus":{"session_id":"s_9"}}));
    // It failed: the next one may join.
    bench.gateway(json!({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}));
    assert_eq!(bench.editor(new(2))[0]["params"]["_meta"]["plexus"]["session_id"], "s_9");
    bench.gateway(json!({"jsonrpc":"2.0","id":2,"result":{"sessionId":"s_9"}}));
    assert_eq!(bench.editor(new(3))[0]["params"]["_meta"], json!({"plexus":{"runtime_id":"gemini"}}));
}

#[test]
fn acp_bridge_sends_unanswered_calls_once_after_a_reconnect() {
    let mut bench = Bench::in_session();
    let prompt = bench.prompt(2);
    bench.chunk("e:5");
    bench.chunk("e:6");
    assert!(bench.down().is_empty(), "the prompt still waits");
    let sent_lines = bench.reconnect();
    assert_eq!(sent_lines[0]["params"]["_meta"]["plexus"]["after"], "e:6");
    assert_eq!((&sent_lines[0]["params"]["cwd"], &sent_lines[0]["params"]["sessionId"]), (&json!("/w"), &json!("s_1")));
    assert_eq!(sent_lines[1..], [prompt], "under the same key and id");
    let end = json!({"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}});
    assert_eq!(bench.gateway(end.clone()), [end]);
    bench.down();
    assert_eq!(bench.reconnect().len(), 1, "nothing waits any more");
}

#[test]
fn acp_bridge_does_not_echo_the_editors_prompt() {
    let mut bench = Bench::in_session();
    bench.prompt(2);
    let echo = |key: &str| {
        json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s_1",
        "update":{"sessionUpdate":"user_message_chunk","_meta":{"plexus":{"key":key}}},"_meta":{"plexus":{"cursor":"e:4"}}}})
    };
    bench.down();
    bench.reconnect();
    assert!(bench.gateway(echo("b.1")).is_empty());
    assert_eq!(bench.gateway(echo("b.2")).len(), 1, "another's words");
    bench.down();
    assert_eq!(bench.reconnect()[0]["params"]["_meta"]["plexus"]["after"], "e:4", "what is left out counts as seen");
}

#[test]
fn acp_bridge_repeats_a_cancel_with_the_prompt_key() {
    for (method, params) in
        [("session/cancel", json!({"sessionId":"s_1"})), ("$/cancel_request", json!({"requestId":2}))]
    {
        let mut bench = Bench::in_session();
        bench.prompt(2);
        bench.editor(json!({"jsonrpc":"2.0","method":method,"params":params}));
        bench.down();
        let sent_lines = bench.reconnect();
        assert_eq!(sent_lines[1]["method"], "session/prompt");
        let cancel = json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}});
        assert_eq!(sent_lines[2..], [cancel]);
    }
}

#[test]
fn acp_bridge_refuses_to_repeat_calls_that_are_not_idempotent() {
    for (method, again) in [
        ("session/list", true),
        ("session/load", true),
        ("session/set_mode", true),
        ("session/set_config_option", true),
        ("session/new", false),
        ("session/fork", false),
        ("_agent/anything", false),
    ] {
        let mut bench = Bench::in_session();
        let params = json!({"cwd":"/w","x":"y"});
        let asked = bench.editor(json!({"jsonrpc":"2.0","id":"r","method":method,"params":params}));
        let refused = bench.down();
        let sent_lines = bench.reconnect();
        if again {
            assert!(refused.is_empty() && sent_lines[1..] == asked, "{method}");
        } else {
            assert_eq!(
                (&refused[0]["id"], &refused[0]["error"]["data"]["code"]),
                (&json!("r"), &json!("gateway_gone"))
            );
            assert_eq!(sent_lines.len(), 1, "{method}");
        }
    }
}

#[test]
fn acp_bridge_resumes_an_interrupted_load() {
    let mut bench = Bench::in_session();
    let params = json!({"sessionId":"s_2","cwd":"/w","mcpServers":[]});
    bench.editor(json!({"jsonrpc":"2.0","id":7,"method":"session/load","params":params}));
    bench.gateway(json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s_2","update":{},
        "_meta":{"plexus":{"cursor":"e:3"}}}}));
    bench.down();
    let sent_lines = bench.reconnect();
    assert_eq!((&sent_lines[1]["id"], &sent_lines[1]["method"]), (&json!(7), &json!("session/resume")));
    assert_eq!(sent_lines[1]["params"]["_meta"]["plexus"]["after"], "e:3");
    let end = json!({"jsonrpc":"2.0","id":7,"result":{"modes":null}});
    assert_eq!(bench.gateway(end.clone()), [end]);
    bench.down();
    bench.proxy.connected(&mut bench.out);
    let hello = sent(&mut bench.out.gateway).remove(0);
    bench.gateway(json!({"jsonrpc":"2.0","id":hello["id"],"result":{}}));
    assert_eq!(sent(&mut bench.out.gateway).len(), 2, "it comes back into both");
}

#[test]
fn acp_bridge_shows_a_question_once_and_sends_one_answer() {
    let mut bench = Bench::in_session();
    assert_eq!(bench.ask("q_open").len(), 1);
    assert_eq!(bench.ask("q_said").len(), 1);
    assert_eq!(bench.ask("q_gone").len(), 1);
    let answer = json!({"jsonrpc":"2.0","id":"q_said","result":{"outcome":{"outcome":"selected","optionId":"y"}}});
    assert_eq!(bench.editor(answer.clone()), std::slice::from_ref(&answer));
    bench.down();
    // Another client has answered one meanwhile.
    bench.proxy.connected(&mut bench.out);
    let hello = sent(&mut bench.out.gateway).remove(0);
    bench.gateway(json!({"jsonrpc":"2.0","id":hello["id"],"result":{}}));
    let retract = json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q_gone"}});
    assert_eq!(bench.gateway(retract.clone()), std::slice::from_ref(&retract));
    assert!(bench.gateway(retract).is_empty(), "once");
    let unknown = json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q_never"}});
    assert!(bench.gateway(unknown).is_empty());
    sent(&mut bench.out.gateway);
    assert!(bench.ask("q_open").is_empty(), "it is before the editor already");
    assert!(bench.ask("q_said").is_empty(), "the editor has said it");
    assert_eq!(sent(&mut bench.out.gateway), [answer]);
    // An answer to a cancelled question is dropped.
    assert!(bench.editor(json!({"jsonrpc":"2.0","id":"q_gone","error":{"code":-32800,"message":"x"}})).is_empty());
    let answer = json!({"jsonrpc":"2.0","id":"q_open","result":{}});
    assert_eq!(bench.editor(answer.clone()), [answer]);
}

#[test]
fn acp_bridge_replaces_a_changed_question_at_the_editor() {
    let mut bench = Bench::in_session();
    assert_eq!(bench.ask("q_1").len(), 1);
    let retract = json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q_1"}});
    assert_eq!(bench.gateway(retract.clone()), [retract]);
    let again = bench.ask("q_1#1");
    assert_eq!(again[0]["id"], "q_1#1");
    // An answer to the earlier question is dropped; one to the new question counts.
    let yes = |id: &str| json!({"jsonrpc":"2.0","id":id,"result":{"outcome":{"outcome":"selected","optionId":"y"}}});
    assert!(bench.editor(yes("q_1")).is_empty());
    assert_eq!(bench.editor(yes("q_1#1")), [yes("q_1#1")]);
    // A changed question outlives its connection, too.
    bench.down();
    bench.reconnect();
    assert!(bench.ask("q_1#1").is_empty());
    assert_eq!(sent(&mut bench.out.gateway), [yes("q_1#1")], "the answer was lost, and is sent again");
}

#[test]
fn acp_bridge_cancels_what_was_closed_while_it_was_away() {
    let mut bench = Bench::in_session();
    for id in ["q_open", "q_gone", "q_old#1"] {
        assert_eq!(bench.ask(id).len(), 1);
    }
    bench.down();
    bench.proxy.connected(&mut bench.out);
    let hello = sent(&mut bench.out.gateway).remove(0);
    bench.gateway(json!({"jsonrpc":"2.0","id":hello["id"],"result":{}}));
    let resume = sent(&mut bench.out.gateway).remove(0);
    let meta = json!({"plexus":{"cursor":"e:12","requests":["q_open","q_old#2","q_new"]}});
    let told = bench.gateway(json!({"jsonrpc":"2.0","id":resume["id"],"result":{"_meta":meta}}));
    let closed: Vec<&Value> = told.iter().map(|told| &told["params"]["requestId"]).collect();
    assert_eq!(closed, ["q_gone", "q_old#1"]);
    assert!(told.iter().all(|told| told["method"] == "$/cancel_request"));
}

#[test]
fn acp_bridge_drops_a_gateway_call_with_its_connection() {
    let mut bench = Bench::in_session();
    let ask = json!({"jsonrpc":"2.0","id":"c_1","method":"fs/read_text_file","params":{"sessionId":"s_1","path":"/x"}});
    let first = bench.gateway(ask.clone()).remove(0);
    assert_ne!(first["id"], "c_1");
    assert_eq!(bench.down(), [json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":first["id"]}})]);
    bench.reconnect();
    let second = bench.gateway(ask).remove(0);
    assert_ne!(first["id"], second["id"], "the next gateway counts anew");
    assert!(bench.editor(json!({"jsonrpc":"2.0","id":first["id"],"result":{"content":"old"}})).is_empty());
    let answer = bench.editor(json!({"jsonrpc":"2.0","id":second["id"],"result":{"content":"new"}}));
    assert_eq!(answer, [json!({"jsonrpc":"2.0","id":"c_1","result":{"content":"new"}})]);
}

#[test]
fn acp_bridge_reports_an_expired_cursor_and_continues_the_session() {
    let mut bench = Bench::in_session();
    bench.chunk("e:5");
    bench.ask("q_1");
    bench.down();
    bench.proxy.connected(&mut bench.out);
    let hello = sent(&mut bench.out.gateway).remove(0);
    bench.gateway(json!({"jsonrpc":"2.0","id":hello["id"],"result":{}}));
    let resume = sent(&mut bench.out.gateway).remove(0);
    let error = json!({"code":-32602,"message":"trimmed"});
    let sent_to = bench.gateway(json!({"jsonrpc":"2.0","id":resume["id"],"error":error}));
    assert_eq!(sent_to[0]["method"], "$/cancel_request", "whatever is open is asked anew");
    assert!(bench.out.log[0].contains("trimmed"));
    let resume = sent(&mut bench.out.gateway).remove(0);
    assert_eq!(resume["params"].get("_meta"), None);
    assert!(!bench.proxy.is_ready());
    bench.gateway(json!({"jsonrpc":"2.0","id":resume["id"],"result":{"_meta":{"plexus":{"cursor":"f:1"}}}}));
    assert!(bench.proxy.is_ready());
    assert_eq!(bench.ask("q_1").len(), 1);
}

#[test]
fn acp_bridge_answers_malformed_lines() {
    let mut bench = Bench::in_session();
    for (line, code) in
        [("{", -32700), ("[]", -32600), (r#"[1,"session/new"]"#, -32600), (r#"{"jsonrpc":"2.0"}"#, -32600)]
    {
        bench.proxy.editor(line, &mut bench.out);
        let sent_lines = sent(&mut bench.out.editor);
        assert_eq!((&sent_lines[0]["id"], &sent_lines[0]["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    for (beginning, id) in [
        (&br#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"a":"#[..], json!(7)),
        (br#"{"jsonrpc":"2.0", "id" : "a\"b" , "method":"x","params":""#, json!("a\"b")),
        (br#"{"params":{"id":3"#, Value::Null),
        (b"\xff", Value::Null),
    ] {
        AcpProxy::too_long(beginning, 5, &mut bench.out);
        assert_eq!(sent(&mut bench.out.editor)[0]["id"], id);
    }
    assert!(bench.out.gateway.is_empty());
    bench.prompt(2);
    assert!(bench.editor(json!({"jsonrpc":"2.0","id":2,"method":"session/list"})).is_empty());
    assert_eq!(sent(&mut bench.out.editor)[0]["error"]["data"]["code"], "busy", "one answer for an id");
}

#[tokio::test]
async fn acp_bridge_bounds_lines() {
    let mut text = b"one\r\n\n  \ntwo\n".to_vec();
    text.extend(vec![b'x'; LINE_MAX + 1]);
    text.extend(b"\nthree");
    let mut input = tokio::io::BufReader::with_capacity(64 << 10, &text[..]);
    let mut lines = Vec::new();
    while let Some(line) = next_line(&mut input, LINE_MAX).await.unwrap() {
        lines.push(line);
    }
    let whole = |text: &[u8]| Line::Whole(text.to_vec());
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0], &lines[1], &lines[3]), (&whole(b"one\r"), &whole(b"two"), &whole(b"three")));
    assert!(matches!(&lines[2], Line::TooLong(beginning) if beginning.len() == super::PREFIX_MAX));
}

// === a gateway in memory ===

/// A step of the simulation.
#[derive(Clone, Debug)]
enum Op {
    /// The editor prompts: the run sends so many chunks, and may ask a question in between.
    Prompt(u8, bool),
    Cancel,
    /// The agent does its next step.
    AgentStep,
    /// A message of the bridge arrives at the gateway.
    GatewayReceives,
    /// A message of the gateway arrives at the bridge.
    BridgeReceives,
    /// The editor answers the oldest question that it shows.
    Answer,
    /// Another client answers the oldest open question.
    AnswerElsewhere,
    /// The agent changes the oldest open question.
    Revise,
    Disconnect,
    Connect,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        2 => (0u8..4, any::<bool>()).prop_map(|(chunks, asks)| Op::Prompt(chunks, asks)),
        1 => Just(Op::Cancel),
        6 => Just(Op::AgentStep),
        8 => Just(Op::GatewayReceives),
        10 => Just(Op::BridgeReceives),
        2 => Just(Op::Answer),
        1 => Just(Op::AnswerElsewhere),
        1 => Just(Op::Revise),
        1 => Just(Op::Disconnect),
        3 => Just(Op::Connect),
    ];
    proptest::collection::vec(op, 0..160)
}

#[derive(Clone, Debug)]
enum Event {
    /// The echo of the prompt with this key.
    User(String),
    Text(String),
    Asked(String),
    /// The question has this revision now.
    Revised(String, u64),
    Resolved(String),
    Ended(usize, &'static str),
}

/// The id of a question at the editor.
fn named(id: &str, revision: u64) -> String {
    if revision == 0 { id.to_owned() } else { format!("{id}#{revision}") }
}

struct Run {
    key: String,
    chunks: u8,
    asks: bool,
    question: Option<String>,
    cancelled: bool,
    begun: bool,
    ended: Option<usize>,
}

/// The gateway's state of one connection.
#[derive(Default)]
struct Conn {
    /// The events before this index were sent; `None` if the connection is not in the session.
    sent_to: Option<usize>,
    live_at: usize,
    resumed: bool,
    reply_due: Option<Value>,
    prompts: Vec<(Value, usize)>,
    /// The questions that were sent, with their revision and whether they were answered on this connection.
    asked: Vec<(String, u64, bool)>,
}

#[derive(Default)]
struct World {
    /// `true` if the editor takes events: each then comes before what follows from it, with its cursor.
    events: bool,
    log: Vec<Event>,
    runs: Vec<Run>,
    /// The open questions with their revision.
    open: VecDeque<(String, u64)>,
    count: usize,
    conn: Option<Conn>,
    to_gateway: VecDeque<Value>,
    to_bridge: VecDeque<Value>,
    // The editor.
    text: String,
    waiting: BTreeMap<u64, String>,
    ends: BTreeMap<u64, usize>,
    shown: BTreeMap<String, usize>,
    before: VecDeque<String>,
    next: u64,
    plans: BTreeMap<String, (u8, bool)>,
}

fn ended(id: &Value, how: &str, at: usize) -> Value {
    let meta = json!({"plexus":{"cursor":format!("e:{at}")}});
    json!({"jsonrpc":"2.0","id":id,"result":{"stopReason":how,"_meta":meta}})
}

impl World {
    fn resolve(&mut self, id: &str) {
        if let Some(place) = self.open.iter().position(|(open, _)| open == id) {
            self.open.remove(place);
            self.log.push(Event::Resolved(id.into()));
        }
    }

    fn end(&mut self, n: usize, how: &'static str) {
        if let Some(question) = self.runs[n].question.clone() {
            self.resolve(&question);
        }
        self.log.push(Event::Ended(n, how));
        self.runs[n].ended = Some(self.log.len());
    }

    fn agent_step(&mut self) {
        let Some(n) = self.runs.iter().position(|run| run.ended.is_none()) else { return };
        if !self.runs[n].begun {
            self.runs[n].begun = true;
            return self.log.push(Event::User(self.runs[n].key.clone()));
        }
        if self.runs[n].cancelled {
            return self.end(n, "cancelled");
        }
        let run = &mut self.runs[n];
        if run.question.as_ref().is_some_and(|question| self.open.iter().any(|(open, _)| open == question)) {
            return;
        }
        self.count += 1;
        if run.asks && run.question.is_none() {
            let id = format!("q_{}", self.count);
            run.question = Some(id.clone());
            self.open.push_back((id.clone(), 0));
            self.log.push(Event::Asked(id));
        } else if run.chunks > 0 {
            run.chunks -= 1;
            self.log.push(Event::Text(format!("<{}>", self.count)));
        } else {
            self.end(n, "end_turn");
        }
    }

    /// The gateway handles one message of the bridge.
    fn gateway_receives(&mut self) {
        let (Some(message), Some(conn)) = (self.to_gateway.pop_front(), &mut self.conn) else { return };
        let (id, params) = (message["id"].clone(), &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => self.to_bridge.push_back(json!({"jsonrpc":"2.0","id":id,"result":{}})),
            Some("session/new") => {
                conn.sent_to = Some(0);
                self.to_bridge.push_back(json!({"jsonrpc":"2.0","id":id,"result":{"sessionId":"s_1",
                    "_meta":{"plexus":{"cursor":"e:0"}}}}));
            }
            Some("session/resume") => {
                let after = params["_meta"]["plexus"]["after"].as_str();
                conn.resumed = after.is_some();
                conn.live_at = self.log.len();
                conn.sent_to = Some(after.map_or(self.log.len(), |after| after[2..].parse().unwrap()));
                let cursor = format!("e:{}", self.log.len());
                conn.reply_due = Some(json!({"jsonrpc":"2.0","id":id,"result":{"_meta":{"plexus":{"cursor":cursor}}}}));
            }
            Some("session/prompt") => {
                let key = params["_meta"]["plexus"]["key"].as_str().unwrap();
                let known = self.runs.iter().position(|run| run.key == key);
                let n = known.unwrap_or_else(|| {
                    let (chunks, asks) = self.plans[params["prompt"][0]["text"].as_str().unwrap()];
                    let run = Run {
                        key: key.into(),
                        chunks,
                        asks,
                        question: None,
                        cancelled: false,
                        begun: false,
                        ended: None,
                    };
                    self.runs.push(run);
                    self.runs.len() - 1
                });
                match self.runs[n].ended {
                    Some(at) if conn.sent_to.is_some_and(|sent_to| at <= sent_to) => {
                        let Event::Ended(_, how) = self.log[at - 1] else { panic!() };
                        self.to_bridge.push_back(ended(&id, how, at));
                    }
                    _ => conn.prompts.push((id, n)),
                }
            }
            Some("session/cancel") => {
                for (_, n) in &conn.prompts {
                    self.runs[*n].cancelled = true;
                }
            }
            Some("$/cancel_request") => {
                for (_, n) in conn.prompts.iter().filter(|(id, _)| *id == params["requestId"]) {
                    self.runs[*n].cancelled = true;
                }
            }
            Some(other) => panic!("{other}"),
            None => {
                let id = id.as_str().unwrap();
                let (question, revision) = id.split_once('#').map_or((id, 0), |(id, n)| (id, n.parse().unwrap()));
                // An answer to the question as it is counts on any connection.
                if self.open.contains(&(question.to_owned(), revision)) {
                    let asked = conn.asked.iter_mut().filter(|(asked, ..)| asked == question);
                    asked.for_each(|(.., answered)| *answered = true);
                    self.resolve(question);
                }
            }
        }
    }

    /// The gateway sends its next message.
    fn gateway_sends(&mut self) {
        let Some(conn) = &mut self.conn else { return };
        let Some(sent_to) = conn.sent_to else { return };
        let ask = |id: &str, revision: u64, at: usize| {
            json!({"jsonrpc":"2.0","id":named(id, revision),"method":"session/request_permission","params":
                {"sessionId":"s_1","_meta":{"plexus":{"request_id":id,"cursor":format!("e:{at}")}}}})
        };
        let taken_back = |id: &str, revision: u64| json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":named(id, revision)}});
        if sent_to >= conn.live_at
            && let Some(mut reply_due) = conn.reply_due.take()
        {
            // The questions that are open now, which may be fewer or other ones than at `live_at`.
            let names: Vec<String> = self.open.iter().map(|(id, revision)| named(id, *revision)).collect();
            reply_due["result"]["_meta"]["plexus"]["requests"] = json!(names);
            self.to_bridge.push_back(reply_due);
            for (id, revision) in &self.open {
                conn.asked.push((id.clone(), *revision, false));
                self.to_bridge.push_back(ask(id, *revision, conn.live_at));
            }
            return;
        }
        let Some(event) = self.log.get(sent_to).cloned() else { return };
        let at = sent_to + 1;
        conn.sent_to = Some(at);
        let update = |update: Value| {
            json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s_1","update":update,
                "_meta":{"plexus":{"cursor":format!("e:{at}")}}}})
        };
        // An event of ACP's own kinds is its update.
        if self.events && !matches!(event, Event::User(_) | Event::Text(_)) {
            self.to_bridge.push_back(json!({"jsonrpc":"2.0","method":"_plexus/event","params":
                {"session_id":"s_1","cursor":format!("e:{at}")}}));
        }
        match event {
            Event::User(key) => {
                let own = at > conn.live_at && conn.prompts.iter().any(|(_, n)| self.runs[*n].key == key);
                if !own {
                    let meta = json!({"plexus":{"key":key}});
                    self.to_bridge.push_back(update(json!({"sessionUpdate":"user_message_chunk","_meta":meta})));
                }
            }
            Event::Text(chunks) => self.to_bridge.push_back(update(
                json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":chunks}}),
            )),
            Event::Asked(id) | Event::Revised(id, _) => {
                let to = if let Event::Revised(_, to) = &self.log[sent_to] { *to } else { 0 };
                if let Some(place) = conn.asked.iter().position(|(asked, shown, _)| *asked == id && *shown < to) {
                    self.to_bridge.push_back(taken_back(&id, conn.asked.remove(place).1));
                }
                let asked = conn.asked.iter().any(|(asked, ..)| *asked == id);
                let now = self.open.iter().find(|(open, _)| *open == id && at > conn.live_at && !asked);
                if let Some((_, revision)) = now {
                    conn.asked.push((id.clone(), *revision, false));
                    self.to_bridge.push_back(ask(&id, *revision, at));
                }
            }
            Event::Resolved(id) => match conn.asked.iter().find(|(asked, ..)| *asked == id) {
                Some((.., true)) => {}
                Some((_, revision, false)) => self.to_bridge.push_back(taken_back(&id, *revision)),
                None if conn.resumed => self.to_bridge.push_back(taken_back(&id, 0)),
                None => {}
            },
            Event::Ended(n, how) => {
                conn.prompts.retain(|(id, of)| {
                    if *of == n {
                        self.to_bridge.push_back(ended(id, how, at));
                    }
                    *of != n
                });
            }
        }
    }

    /// Asserts that the editor shows exactly the open questions.
    fn shows_what_is_open(&self) {
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        let open = self.open.iter().map(|(id, revision)| named(id, *revision)).collect();
        assert_eq!(sorted(self.before.iter().cloned().collect()), sorted(open), "dialogs, and open questions");
    }

    /// The editor handles the bridge's output.
    fn editor_reads(&mut self, out: &mut ProxyOutput) {
        self.to_gateway.extend(sent(&mut out.gateway));
        for message in sent(&mut out.editor) {
            match message["method"].as_str() {
                Some("_plexus/event") => {}
                Some("session/update") => {
                    assert_eq!(message["params"]["update"]["sessionUpdate"], "agent_message_chunk", "its own words");
                    self.text.push_str(message["params"]["update"]["content"]["text"].as_str().unwrap());
                }
                Some("session/request_permission") => {
                    let id = message["id"].as_str().unwrap().to_owned();
                    *self.shown.entry(id.clone()).or_default() += 1;
                    self.before.push_back(id);
                }
                Some("$/cancel_request") => {
                    let id = message["params"]["requestId"].as_str().unwrap();
                    assert!(self.before.contains(&id.to_owned()), "{id} was taken back, and is not there");
                    self.before.retain(|before| before != id);
                }
                Some(other) => panic!("{other}"),
                None => {
                    let id = message["id"].as_u64().unwrap();
                    assert!(message.get("error").is_none(), "{message}");
                    *self.ends.entry(id).or_default() += 1;
                    self.waiting.remove(&id);
                }
            }
        }
    }
}

fn play(events: bool, ops: Vec<Op>) {
    let (mut world, mut out) = (World { events, ..World::default() }, ProxyOutput::default());
    let mut proxy = AcpProxy::new("b".into(), None, None);
    world.conn = Some(Conn::default());
    proxy.connected(&mut out);
    proxy.editor(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#, &mut out);
    proxy.editor(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}"#, &mut out);
    world.next = 2;
    world.editor_reads(&mut out);
    for _ in 0..2 {
        world.gateway_receives();
        let message = world.to_bridge.pop_front().unwrap();
        proxy.gateway(&message.to_string(), &mut out);
    }
    world.editor_reads(&mut out);
    let mut prompts = 0;
    let mut step = |op: Op, world: &mut World, proxy: &mut AcpProxy, out: &mut ProxyOutput| {
        match op {
            Op::Prompt(chunks, asks) if proxy.is_ready() => {
                let (id, text) = (world.next, format!("plan {}", world.next));
                world.next += 1;
                prompts += 1;
                world.plans.insert(text.clone(), (chunks, asks));
                world.waiting.insert(id, text.clone());
                let params = json!({"sessionId":"s_1","prompt":[{"type":"text","text":text}]});
                let line = json!({"jsonrpc":"2.0","id":id,"method":"session/prompt","params":params});
                proxy.editor(&line.to_string(), out);
            }
            Op::Cancel if proxy.is_ready() => {
                proxy.editor(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s_1"}}"#, out);
            }
            Op::AgentStep => world.agent_step(),
            Op::GatewayReceives => world.gateway_receives(),
            Op::BridgeReceives => {
                if world.to_bridge.is_empty() {
                    world.gateway_sends();
                }
                if let Some(message) = world.to_bridge.pop_front() {
                    proxy.gateway(&message.to_string(), out);
                }
            }
            Op::Answer if proxy.is_ready() => {
                if let Some(id) = world.before.pop_front() {
                    proxy.editor(&json!({"jsonrpc":"2.0","id":id,"result":{}}).to_string(), out);
                }
            }
            Op::AnswerElsewhere => {
                if let Some((id, _)) = world.open.front().cloned() {
                    world.resolve(&id);
                }
            }
            Op::Revise => {
                if let Some((id, revision)) = world.open.front_mut() {
                    *revision += 1;
                    let revised = Event::Revised(id.clone(), *revision);
                    world.log.push(revised);
                }
            }
            Op::Disconnect if world.conn.is_some() => {
                world.conn = None;
                world.to_gateway.clear();
                world.to_bridge.clear();
                proxy.disconnected(out);
            }
            Op::Connect if world.conn.is_none() => {
                world.conn = Some(Conn::default());
                proxy.connected(out);
            }
            _ => {}
        }
        world.editor_reads(out);
    };
    for op in ops {
        step(op, &mut world, &mut proxy, &mut out);
    }
    // Nobody answers: the editor shows what is open, and nothing else.
    for _ in 0..1000 {
        for op in [Op::Connect, Op::GatewayReceives, Op::BridgeReceives, Op::AgentStep] {
            step(op, &mut world, &mut proxy, &mut out);
        }
    }
    world.shows_what_is_open();
    for _ in 0..2000 {
        for op in [Op::Connect, Op::GatewayReceives, Op::BridgeReceives, Op::Answer, Op::AgentStep] {
            step(op, &mut world, &mut proxy, &mut out);
        }
    }
    assert!(world.waiting.is_empty(), "prompts without an answer: {:?}", world.waiting);
    assert!(world.ends.values().all(|count| *count == 1), "answered twice: {:?}", world.ends);
    assert_eq!(world.runs.len(), prompts, "each prompt is one run");
    assert!(world.shown.values().all(|count| *count == 1), "shown twice: {:?}", world.shown);
    assert!(world.before.is_empty() && world.open.is_empty(), "{:?} {:?}", world.before, world.open);
    let sent_lines: String = world
        .log
        .iter()
        .filter_map(|event| if let Event::Text(chunks) = event { Some(chunks.as_str()) } else { None })
        .collect();
    assert_eq!(world.text, sent_lines, "all that was said, once, in order");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn acp_bridge_hides_gateway_restarts_from_the_editor(events in any::<bool>(), ops in ops()) {
        play(events, ops);
    }
}
