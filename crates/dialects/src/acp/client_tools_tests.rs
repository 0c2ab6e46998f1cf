//! Files and terminals: the questions to the user, the actions, and the responses to the agent.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use serde_json::{Value, json as j};

use super::super::rig::{choose, json, spec};
use super::super::{
    AgentRequest, ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork, CommandEnd, Dialect, FolderClaim,
    Outbox, RequestSubject, RuntimeCommand, RuntimeEvent, find,
};
use plexus_protocol::{Choice, Decision, DeviceId, Kind, Resolver, RuntimeSpec, Serve, Ticket};

/// A connection whose agent may use everything, with session `s` in `/w`.
struct Bench {
    dialect: Box<dyn Dialect>,
    out: Outbox,
}

fn fresh() -> Box<dyn Dialect> {
    find("acp").unwrap()(&RuntimeSpec { serve: Serve { fs: true, terminal: true }, ..spec("acp") })
}

fn editor() -> Resolver {
    Resolver { device_id: DeviceId::trusted("d_editor"), name: "editor".into() }
}

fn served(json: &str) -> ClientToolResult {
    ClientToolResult::Served { by: editor(), outcome: Ok(json.into()) }
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self { dialect: fresh(), out: Outbox::default() };
        bench.dialect.open(&mut bench.out);
        let hello = bench.sent();
        let can = &hello["params"]["clientCapabilities"];
        assert_eq!(can["fs"], j!({ "readTextFile": true, "writeTextFile": true }));
        assert_eq!(can["terminal"], true);
        bench.feed(r#"{"id":0,"result":{"protocolVersion":1}}"#);
        let open = RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers: Vec::new() };
        bench.dialect.command(open, &mut bench.out);
        bench.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
        bench.out = Outbox::default();
        bench
    }

    fn feed(&mut self, line: &str) {
        self.dialect.feed(Bytes::copy_from_slice(line.as_bytes()), &mut self.out);
    }

    fn request(&mut self, id: u64, method: &str, mut params: Value) {
        params["sessionId"] = j!("s");
        self.feed(&j!({ "id": id, "method": method, "params": params }).to_string());
        // The session has no client that would do anything.
        if let Some(ClientToolCall { id, work: ClientToolWork::Errand { .. }, .. }) = self.out.client_tools.last() {
            let id = *id;
            self.out.client_tools.pop();
            self.done(id, Err(ClientToolError::NoClient));
        }
    }

    /// Sends a request like [`request`](Self::request), in a session that has a client.
    fn ask_client(&mut self, id: u64, method: &str, mut params: Value) -> (u64, String, Value) {
        params["sessionId"] = j!("s");
        self.feed(&j!({ "id": id, "method": method, "params": params }).to_string());
        self.errand()
    }

    fn chore(&mut self) -> ClientToolCall {
        assert_eq!(self.out.client_tools.len(), 1, "{:?}", self.out);
        self.out.client_tools.remove(0)
    }

    /// Returns the client tool call of a client.
    fn errand(&mut self) -> (u64, String, Value) {
        assert_eq!(self.out.client_tools.len(), 1, "{:?}", self.out);
        match self.out.client_tools.remove(0) {
            ClientToolCall { id, work: ClientToolWork::Errand { native, method, params }, .. }
                if native.as_str() == "s" =>
            {
                (id, method, serde_json::from_str(&params).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    fn done(&mut self, id: u64, done: Result<ClientToolResult, ClientToolError>) {
        self.dialect.done(id, done, &mut self.out);
    }

    fn answer(&mut self, key: &str, decision: Decision) {
        let key = self.dialect.asks().into_iter().find(|open| open.id() == key).unwrap();
        self.dialect.command(RuntimeCommand::Answer { key, decision }, &mut self.out);
    }

    fn ask(&mut self) -> Box<AgentRequest> {
        match self.out.events.pop() {
            Some(RuntimeEvent::Asked { ask, native: Some(_) }) => ask,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the log entry of a client tool call.
    fn kept(&mut self) -> Value {
        match self.out.events.remove(0) {
            RuntimeEvent::Event { native: Some(_), draft } => {
                assert_eq!(draft.kind, Kind::ClientServed);
                json(&draft.body)
            }
            other => panic!("{other:?}"),
        }
    }

    fn sent(&mut self) -> Value {
        assert_eq!(self.out.frames.len(), 1, "{:?}", self.out);
        json(&self.out.frames.remove(0))
    }

    fn idle(&self) -> bool {
        self.out.frames.is_empty() && self.out.client_tools.is_empty() && self.out.events.is_empty()
    }

    /// Makes a bench with a running command in terminal `term-0`.
    fn running() -> Self {
        let mut bench = Self::new();
        bench.request(9, "terminal/create", j!({ "command": "make" }));
        bench.ask();
        bench.answer("9", choose("allow", Choice::AllowOnce));
        let chore = bench.chore();
        bench.done(chore.id, Ok(ClientToolResult::Done));
        assert_eq!(bench.sent()["result"], j!({ "terminalId": "term-0" }));
        bench
    }
}

#[test]
fn acp_client_tools_read_a_file_in_the_session_folder() {
    let mut bench = Bench::new();
    bench.request(3, "fs/read_text_file", j!({ "path": "/w/a", "line": 2, "limit": 5 }));
    let ClientToolCall { id, folder, work } = bench.chore();
    assert_eq!(
        (folder.as_str(), work),
        ("/w", ClientToolWork::Read { path: "/w/a".into(), line: Some(2), limit: Some(5) })
    );
    bench.done(id, Ok(ClientToolResult::Text("text\n".into())));
    assert_eq!(bench.sent(), j!({ "jsonrpc": "2.0", "id": 3, "result": { "content": "text\n" } }));
    bench.done(id, Ok(ClientToolResult::Done));
    assert!(bench.idle(), "told once");
}

#[test]
fn acp_client_tools_go_to_the_client_first_with_its_own_terminals() {
    let mut bench = Bench::new();
    let (id, method, params) = bench.ask_client(3, "fs/read_text_file", j!({ "path": "/w/a", "line": 2 }));
    assert_eq!(method, "fs/read_text_file");
    assert_eq!(params, j!({ "sessionId": "s", "path": "/w/a", "line": 2 }));
    bench.done(id, Ok(served(r#"{"content":"unsaved","_meta":{"x":1}}"#)));
    assert_eq!(bench.sent()["result"], j!({ "content": "unsaved", "_meta": { "x": 1 } }), "untouched");
    let by = j!({ "device_id": "d_editor", "name": "editor" });
    let kept = j!({ "method": "fs/read_text_file", "by": by, "status": "done", "path": "/w/a", "bytes": 37 });
    assert_eq!(bench.kept(), kept, "who did it, and not what the file holds");

    let (id, ..) = bench.ask_client(4, "fs/write_text_file", j!({ "path": "/w/a", "content": "b" }));
    bench.done(id, Ok(ClientToolResult::Served { by: editor(), outcome: Err((-32000, "no".into())) }));
    assert_eq!(bench.sent()["error"], j!({ "code": -32000, "message": "no" }));
    let kept = bench.kept();
    assert_eq!((&kept["status"], &kept["code"], &kept["message"]), (&j!("failed"), &j!(-32000), &j!("no")));
    assert!(bench.idle(), "a client's no is a no: the gateway does not do it in its place");

    let long = "x".repeat(10_000);
    let (id, ..) = bench.ask_client(5, "terminal/create", j!({ "command": "make", "args": ["-j", long] }));
    bench.done(id, Ok(served(r#"{"terminalId":"term-0"}"#)));
    assert_eq!(bench.sent()["result"], j!({ "terminalId": "client-term-0" }));
    let kept = bench.kept();
    let command = kept["command"].as_str().unwrap();
    assert!(command.starts_with("make -j xx") && command.len() < 1100, "{command}");
    let (id, _, params) = bench.ask_client(6, "terminal/output", j!({ "terminalId": "client-term-0" }));
    assert_eq!(params["terminalId"], "term-0", "by the client's own name");
    bench.done(id, Err(ClientToolError::NoClient));
    assert_eq!(bench.sent()["error"]["code"], -32602, "its client left: nobody else's terminal is taken for it");

    let mut bench = Bench::running();
    bench.feed(
        &j!({ "id": 7, "method": "terminal/kill", "params": { "sessionId": "s", "terminalId": "term-0" } }).to_string(),
    );
    assert_eq!(bench.chore().work, ClientToolWork::Kill { terminal: 0 }, "ours, whoever came since");
}

#[test]
fn acp_client_tools_report_a_missing_file_as_agents_expect() {
    let mut bench = Bench::new();
    bench.request(3, "fs/read_text_file", j!({ "path": "/w/new" }));
    let id = bench.chore().id;
    bench.done(id, Err(ClientToolError::Missing("/w/new".into())));
    let error = bench.sent()["error"].clone();
    assert_eq!(error["code"], -32002);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Resource not found") && message.contains("ENOENT"), "{message}");
}

#[test]
fn acp_client_tools_write_only_after_people_saw_the_change_and_allowed_it() {
    for before in [Some("old"), None] {
        let mut bench = Bench::new();
        bench.request(3, "fs/write_text_file", j!({ "path": "/w/a", "content": "new" }));
        let chore = bench.chore();
        assert!(matches!(chore.work, ClientToolWork::Read { line: None, limit: None, .. }));
        let found =
            before.map_or(Err(ClientToolError::Missing(String::new())), |text| Ok(ClientToolResult::Text(text.into())));
        bench.done(chore.id, found);
        let ask = bench.ask();
        let before = before.map(String::from);
        assert_eq!(ask.subject, RequestSubject::Edits(vec![("/w/a".into(), before.clone(), "new".into())]));
        assert!(bench.idle());
        bench.answer("3", choose("allow", Choice::AllowOnce));
        let chore = bench.chore();
        assert_eq!(chore.work, ClientToolWork::Write { path: "/w/a".into(), before, text: "new".into() });
        assert!(bench.idle(), "told when it is done");
        bench.done(chore.id, Ok(ClientToolResult::Done));
        assert_eq!(bench.sent(), j!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    }
}

#[test]
fn acp_client_tools_answer_a_denied_call_with_an_error() {
    let ask = |bench: &mut Bench, method: &str| {
        bench.request(3, method, j!({ "path": "/w/a", "content": "new", "command": "make" }));
        if method == "fs/write_text_file" {
            let id = bench.chore().id;
            bench.done(id, Ok(ClientToolResult::Text(String::new())));
        }
        bench.ask();
    };
    for method in ["fs/write_text_file", "terminal/create"] {
        for (decision, code) in [
            (choose("reject", Choice::RejectOnce), -32603),
            (choose("junk", Choice::AllowOnce), -32603),
            (Decision::Expired, -32603),
            (Decision::Withdrawn, -32800),
        ] {
            let mut bench = Bench::new();
            ask(&mut bench, method);
            bench.answer("3", decision);
            assert_eq!(bench.sent()["error"]["code"], code);
            assert!(bench.idle());
        }
        let mut bench = Bench::new();
        ask(&mut bench, method);
        bench.feed(r#"{"method":"$/cancel_request","params":{"requestId":3}}"#);
        assert_eq!(bench.sent()["error"]["code"], -32800);
        assert!(matches!(bench.out.events.pop(), Some(RuntimeEvent::TakenBack { .. })));
    }
}

#[test]
fn acp_client_tools_can_allow_all_writes_of_a_session() {
    let mut bench = Bench::new();
    for n in 0..2 {
        bench.request(n, "fs/write_text_file", j!({ "path": "/w/a", "content": "new" }));
        let id = bench.chore().id;
        bench.done(id, Err(ClientToolError::Missing(String::new())));
        if n == 0 {
            bench.ask();
            bench.answer("0", choose("allow_session", Choice::AllowAlways));
        }
        assert!(matches!(bench.chore().work, ClientToolWork::Write { .. }) && bench.idle());
    }
}

#[test]
fn acp_client_tools_show_a_command_with_its_environment_and_folder() {
    let of = |params: Value| {
        let mut bench = Bench::new();
        bench.request(3, "terminal/create", params);
        let shown = bench.ask().subject;
        bench.answer("3", choose("allow", Choice::AllowOnce));
        (shown, bench.chore().work)
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (shown, work) = of(j!({ "command": "make all | tee x" }));
    assert_eq!(
        shown,
        RequestSubject::Command { argv: words(&["make all | tee x"]), cwd: Some(FolderClaim::Field("/w".into())) }
    );
    let argv = words(&["make all | tee x"]);
    assert_eq!(work, ClientToolWork::Run { terminal: 0, argv, env: vec![], cwd: None, keep: None });
    let env = j!([{ "name": "LD_PRELOAD", "value": "/tmp/x.so" }]);
    let (shown, work) =
        of(j!({ "command": "make", "args": ["all"], "cwd": "/w/sub", "env": env, "outputByteLimit": 10 }));
    let argv = words(&["env", "LD_PRELOAD=/tmp/x.so", "make", "all"]);
    assert_eq!(shown, RequestSubject::Command { argv, cwd: Some(FolderClaim::Field("/w/sub".into())) });
    let env = vec![("LD_PRELOAD".into(), "/tmp/x.so".into())];
    let (argv, cwd) = (words(&["make", "all"]), Some("/w/sub".into()));
    assert_eq!(work, ClientToolWork::Run { terminal: 0, argv, env, cwd, keep: Some(10) });
    let (shown, _) = of(j!({ "command": "a b", "env": [{ "name": "A", "value": "1" }] }));
    assert_eq!(
        shown,
        RequestSubject::Command {
            argv: words(&["env", "A=1", "sh", "-c", "a b"]),
            cwd: Some(FolderClaim::Field("/w".into()))
        }
    );
}

#[test]
fn acp_client_tools_serve_the_life_of_a_terminal() {
    let end = || CommandEnd { code: Some(2), signal: None };
    for (method, work, done, result) in [
        (
            "terminal/output",
            ClientToolWork::Output { terminal: 0 },
            ClientToolResult::Output { text: "x".into(), cut: true, end: None },
            j!({ "output": "x", "truncated": true, "exitStatus": null }),
        ),
        (
            "terminal/output",
            ClientToolWork::Output { terminal: 0 },
            ClientToolResult::Output { text: String::new(), cut: false, end: Some(end()) },
            j!({ "output": "", "truncated": false, "exitStatus": { "exitCode": 2, "signal": null } }),
        ),
        (
            "terminal/wait_for_exit",
            ClientToolWork::Wait { terminal: 0 },
            ClientToolResult::Ended(end()),
            j!({ "exitCode": 2, "signal": null }),
        ),
        ("terminal/kill", ClientToolWork::Kill { terminal: 0 }, ClientToolResult::Done, j!({})),
        ("terminal/release", ClientToolWork::Release { terminal: 0 }, ClientToolResult::Done, j!({})),
    ] {
        let mut bench = Bench::running();
        bench.request(4, method, j!({ "terminalId": "term-0" }));
        let chore = bench.chore();
        assert_eq!(chore.work, work);
        bench.done(chore.id, Ok(done));
        assert_eq!(bench.sent()["result"], result, "{method}");
        bench.request(5, method, j!({ "terminalId": "term-0" }));
        if method == "terminal/release" {
            assert_eq!(bench.sent()["error"]["code"], -32602, "gone");
        } else {
            bench.chore();
        }
    }
}

#[test]
fn acp_client_tools_refuse_terminals_and_files_of_other_sessions() {
    let mut bench = Bench::running();
    for params in [
        r#"{"sessionId":"s","terminalId":"term-1"}"#,
        r#"{"sessionId":"s","terminalId":"0"}"#,
        r#"{"sessionId":"s"}"#,
        r#"{"sessionId":"t","terminalId":"term-0"}"#,
        "7",
    ] {
        bench.feed(&format!(r#"{{"id":4,"method":"terminal/output","params":{params}}}"#));
        assert_eq!(bench.sent()["error"]["code"], -32602, "{params}");
        assert!(bench.out.client_tools.is_empty());
    }
    // The same terminal, from another session.
    bench.out = Outbox::default();
    let open = RuntimeCommand::Open { ticket: Ticket(2), cwd: "/x".into(), resume: None, mcp_servers: Vec::new() };
    bench.dialect.command(open, &mut bench.out);
    bench.feed(r#"{"id":2,"result":{"sessionId":"t"}}"#);
    bench.out = Outbox::default();
    bench.feed(r#"{"id":4,"method":"terminal/kill","params":{"sessionId":"t","terminalId":"term-0"}}"#);
    assert_eq!(bench.sent()["error"]["code"], -32602);
}

#[test]
fn acp_client_tools_calls_can_be_cancelled_by_the_agent() {
    let mut bench = Bench::running();
    bench.request(4, "terminal/wait_for_exit", j!({ "terminalId": "term-0" }));
    let id = bench.chore().id;
    bench.feed(r#"{"method":"$/cancel_request","params":{"requestId":4}}"#);
    assert_eq!(bench.sent()["error"]["code"], -32800);
    bench.done(id, Ok(ClientToolResult::Ended(CommandEnd::default())));
    assert!(bench.idle(), "answered once");
    // A terminal that nobody will ever hear of is not left running.
    bench.request(5, "terminal/create", j!({ "command": "sleep 9" }));
    bench.ask();
    bench.answer("5", choose("allow", Choice::AllowOnce));
    bench.chore();
    bench.feed(r#"{"method":"$/cancel_request","params":{"requestId":5}}"#);
    assert_eq!(bench.chore().work, ClientToolWork::Release { terminal: 1 });
}

#[test]
fn acp_client_tools_refuse_calls_past_their_bounds() {
    let mut bench = Bench::new();
    for id in 0..200 {
        bench.request(id, "fs/read_text_file", j!({ "path": "/w/a" }));
    }
    assert_eq!((bench.out.client_tools.len(), bench.out.frames.len()), (64, 136));
    assert_eq!(json(&bench.out.frames[0])["error"]["code"], -32603);
}

#[test]
fn acp_client_tools_calls_of_an_older_gateway_are_given_up_with_an_error() {
    let mut bench = Bench::running();
    bench.request(4, "terminal/wait_for_exit", j!({ "terminalId": "term-0" }));
    bench.request(5, "terminal/create", j!({ "command": "make" }));
    bench.ask();
    let saved = bench.dialect.save().unwrap();
    let mut bench = Bench { dialect: fresh(), out: Outbox::default() };
    assert!(bench.dialect.restore(&saved));
    bench.dialect.wake(&mut bench.out);
    let error = bench.sent();
    assert_eq!((&error["id"], &error["error"]["code"]), (&j!(4), &j!(-32603)));
    bench.dialect.wake(&mut bench.out);
    assert!(bench.idle());
    // A question still stands, and a new terminal does not get the name of an old one.
    bench.answer("5", choose("allow", Choice::AllowOnce));
    assert!(matches!(bench.chore().work, ClientToolWork::Run { terminal: 1, .. }));
}
