//! The contract that every dialect must hold for any input, and a bench that checks it.
//!
//! Used by the property tests in `tests/gateway/decoders.rs` and by the fuzz targets; it needs nothing but the library.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use plexus_dialects::{
    Dialect, EventDraft, HttpBase, HttpReply, Outbox, RequestKey, ResumeTarget, RuntimeCommand, RuntimeEvent,
};
use plexus_protocol::{Choice, Connect, Decision, MONEY_MAX, NativeId, RuntimeId, RuntimeSpec, TOKENS_MAX, Ticket};
use serde_json::value::RawValue;

/// Maximum number of open requests of a dialect: above every bound that a dialect sets itself.
pub const OPEN_MAX: usize = 1024;
/// Maximum number of the gateway's calls that wait for a response; beyond it, the oldest is never answered.
const WAITING_MAX: usize = 64;

/// The successful responses of a dialect's runtime: the method (or the path of a fetch), and the result.
type Results = &'static [(&'static str, &'static str)];

/// The data of a dialect that a test needs to get past its handshake.
struct Manners {
    dialect: &'static str,
    connect: &'static str,
    /// An existing session, for opening one again.
    session: &'static str,
    results: Results,
    /// Messages of the runtime; `@` is an identifier.
    words: &'static [&'static str],
}

const MANNERS: &[Manners] = &[
    Manners {
        dialect: "acp",
        connect: "",
        session: "s",
        results: &[
            ("initialize", r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}"#),
            ("session/new", r#"{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[]}}"#),
            ("session/load", "{}"),
            ("session/prompt", r#"{"stopReason":"end_turn"}"#),
        ],
        words: &[
            r#"{"jsonrpc":"2.0","id":@,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","rawInput":{"command":"ls"}},"options":[{"optionId":"a","name":"Yes","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","status":"pending"}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"new_kind"}}}"#,
            r#"{"jsonrpc":"2.0","id":@,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}"#,
            r#"{"jsonrpc":"2.0","id":@,"method":"elicitation/create","params":{"sessionId":"s","message":"m"}}"#,
            r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":@}}"#,
        ],
    },
    Manners {
        dialect: "codelia",
        connect: "",
        session: "s",
        results: &[
            ("initialize", r#"{"protocol_version":"0","server":{"name":"x","version":"1"}}"#),
            ("run.start", r#"{"run_id":"r"}"#),
            ("run.cancel", r#"{"ok":true}"#),
            ("session.list", r#"{"sessions":[{"session_id":"s"}]}"#),
            ("session.history", r#"{"runs":1,"events_sent":1}"#),
        ],
        words: &[
            r#"{"jsonrpc":"2.0","id":@,"method":"ui.confirm.request","params":{"run_id":"r","title":"T","message":"M","allow_remember":true}}"#,
            r#"{"jsonrpc":"2.0","id":@,"method":"ui.pick.request","params":{"title":"T","items":[{"id":"a","label":"A"}]}}"#,
            r#"{"jsonrpc":"2.0","id":@,"method":"ui.prompt.request","params":{"title":"T","message":"M"}}"#,
            r#"{"jsonrpc":"2.0","id":@,"method":"client.tool.call","params":{"run_id":"r","name":"n"}}"#,
            r#"{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"r","seq":0,"event":{"type":"tool_call","tool":"bash","args":{"command":"ls"},"tool_call_id":"t"}}}"#,
            r#"{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"r","seq":3,"event":{"type":"permission.ready","tool":"bash","tool_call_id":"t"}}}"#,
            r#"{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"r","seq":4,"event":{"type":"final","content":"x"}}}"#,
            r#"{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"o","seq":-1,"event":{"type":"hidden_user_message","content":[{"text":"x"}]}}}"#,
            r#"{"jsonrpc":"2.0","method":"run.status","params":{"run_id":"r","status":"completed"}}"#,
            r#"{"jsonrpc":"2.0","method":"run.context","params":{"run_id":"r","context_left_percent":1e2}}"#,
            r#"{"jsonrpc":"2.0","method":"run.diagnostics","params":{"run_id":"r"}}"#,
        ],
    },
    Manners {
        dialect: "codex",
        connect: "",
        session: "s",
        results: &[
            ("initialize", r#"{"userAgent":"plexus/0.169.0 (x)"}"#),
            ("thread/start", r#"{"thread":{"id":"s","cwd":"/w"},"model":"m"}"#),
            (
                "thread/resume",
                r#"{"thread":{"id":"s","status":{"type":"active","activeFlags":["waitingOnApproval"]}},"initialTurnsPage":{"data":[{"id":"u","status":"inProgress","items":[{"type":"agentMessage","id":"a","text":"x"}]},{"id":"o","status":"completed","items":[{"type":"userMessage","id":"m","content":[{"type":"text","text":"y"}]}]}],"nextCursor":null}}"#,
            ),
            ("thread/loaded/list", r#"{"data":["s","z"],"nextCursor":null}"#),
            ("thread/read", r#"{"thread":{"id":"z","cwd":"/w"}}"#),
            ("turn/start", r#"{"turn":{"id":"u","status":"inProgress","items":[]}}"#),
            ("model/list", r#"{"data":[{"model":"m","displayName":"M"}]}"#),
        ],
        words: &[
            r#"{"id":@,"method":"item/commandExecution/requestApproval","params":{"threadId":"s","turnId":"u","itemId":"c","command":"ls","cwd":"/w","availableDecisions":["a",{"r":{}},"cancel"]}}"#,
            r#"{"id":@,"method":"item/fileChange/requestApproval","params":{"threadId":"s","turnId":"u","itemId":"f"}}"#,
            r#"{"id":@,"method":"item/permissions/requestApproval","params":{"threadId":"s","turnId":"u","permissions":{"network":{"enabled":true}}}}"#,
            r#"{"id":@,"method":"item/tool/requestUserInput","params":{"threadId":"s","turnId":"u","questions":[{"id":"q","question":"?","options":[{"label":"a"}]}]}}"#,
            r#"{"id":@,"method":"mcpServer/elicitation/request","params":{"threadId":"s","serverName":"n","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}"#,
            r#"{"id":@,"method":"execCommandApproval","params":{"conversationId":"s","callId":"c","command":["ls"],"cwd":"/w"}}"#,
            r#"{"id":@,"method":"item/tool/call","params":{"threadId":"s","tool":"t"}}"#,
            r#"{"method":"serverRequest/resolved","params":{"threadId":"s","requestId":@}}"#,
            r#"{"method":"turn/started","params":{"threadId":"s","turn":{"id":"u","status":"inProgress","items":[]}}}"#,
            r#"{"method":"turn/completed","params":{"threadId":"s","turn":{"id":"u","status":"completed","items":[{"type":"agentMessage","id":"a","text":"xy"}]}}}"#,
            r#"{"method":"item/started","params":{"threadId":"s","turnId":"u","item":{"type":"commandExecution","id":"c","command":"ls","cwd":"/w","status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"s","turnId":"u","item":{"type":"fileChange","id":"f","status":"completed","changes":[{"path":"/a","kind":{"type":"update","move_path":null},"diff":"@@ -1 +1 @@\n-a\n+b\n"}]}}}"#,
            r#"{"method":"item/agentMessage/delta","params":{"threadId":"s","turnId":"u","itemId":"a","delta":"x"}}"#,
            r#"{"method":"item/reasoning/summaryTextDelta","params":{"threadId":"s","turnId":"u","itemId":"r","delta":"x","summaryIndex":1}}"#,
            r#"{"method":"item/completed","params":{"threadId":"s","turnId":"u","item":{"type":"reasoning","id":"r","summary":["x"],"content":["y"]}}}"#,
            r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"s","tokenUsage":{"total":{"totalTokens":1},"last":{"totalTokens":1},"modelContextWindow":2}}}"#,
            r#"{"method":"turn/plan/updated","params":{"threadId":"s","plan":[{"step":"a","status":"pending"}]}}"#,
            r#"{"method":"error","params":{"threadId":"s","turnId":"u","willRetry":true,"error":{"message":"m"}}}"#,
            r#"{"method":"thread/started","params":{"thread":{"id":"z","cwd":"/w","parentThreadId":null}}}"#,
        ],
    },
    Manners {
        dialect: "opencode",
        connect: "http://127.0.0.1:1",
        session: "s",
        results: &[
            ("/global/health", r#"{"healthy":true,"version":"1.18.33"}"#),
            ("/config/providers", r#"{"providers":[],"default":{}}"#),
            ("/experimental/session", "[]"),
            ("/permission", "[]"),
            ("/question", "[]"),
            ("/session", r#"{"id":"s","directory":"/w","title":"New"}"#),
            ("/session/s", r#"{"id":"s","directory":"/w","title":"New"}"#),
            ("/session/s/message", "[]"),
            ("/session/s/abort", "true"),
        ],
        words: &[
            r#"{"directory":"/w","payload":{"id":"e1","type":"permission.asked","properties":{"id":"per_@","sessionID":"s","permission":"bash","patterns":["ls"],"metadata":{"command":"ls"},"always":[],"tool":{"messageID":"m","callID":"c"}}}}"#,
            r#"{"directory":"/w","payload":{"id":"e2","type":"permission.replied","properties":{"sessionID":"s","requestID":"per_1","reply":"once"}}}"#,
            r#"{"directory":"/w","payload":{"id":"e3","type":"message.updated","properties":{"sessionID":"s","info":{"id":"m","role":"assistant","sessionID":"s","time":{"created":1}}}}}"#,
            r#"{"directory":"/w","payload":{"id":"e4","type":"message.part.updated","properties":{"sessionID":"s","part":{"id":"p","messageID":"m","type":"text","text":"x","time":{"start":1}}}}}"#,
            r#"{"directory":"/w","payload":{"id":"e5","type":"message.part.delta","properties":{"sessionID":"s","messageID":"m","partID":"p","field":"text","delta":"x"}}}"#,
            r#"{"directory":"/w","payload":{"id":"e6","type":"session.status","properties":{"sessionID":"s","status":{"type":"idle"}}}}"#,
            r#"{"directory":"/w","payload":{"id":"e7","type":"session.idle","properties":{"sessionID":"s"}}}"#,
            r#"{"directory":"/w","payload":{"id":"e8","type":"new.thing","properties":{"sessionID":"s"}}}"#,
        ],
    },
    Manners {
        dialect: "opencode2",
        connect: "http://127.0.0.1:1",
        session: "ses_1",
        results: &[
            ("/api/health", r#"{"healthy":true,"version":"2.2.7"}"#),
            ("/api/session/active", r#"{"data":{}}"#),
            ("/api/model", r#"{"data":[]}"#),
            ("/api/session", r#"{"data":{"id":"ses_1","title":"New","location":{"directory":"/w"}}}"#),
            ("/api/session/ses_1", r#"{"data":{"id":"ses_1","title":"New","location":{"directory":"/w"}}}"#),
            ("/api/session/ses_1/permission", r#"{"data":[]}"#),
            ("/api/session/ses_1/form", r#"{"data":[]}"#),
            ("/api/session/ses_1/interrupt", r#"{"interrupted":true}"#),
            ("/api/session/ses_1/prompt", r#"{"data":{"id":"msg_1","type":"user"}}"#),
            ("/api/experimental/session/ses_1/log", "data: {\"type\":\"log.synced\",\"aggregateID\":\"ses_1\"}\n\n"),
        ],
        words: &[
            r#"{"id":"e1","type":"permission.asked","data":{"id":"per_@","sessionID":"ses_1","action":"bash","resources":["ls"],"source":{"type":"tool","messageID":"m","id":"c"}}}"#,
            r#"{"id":"e2","type":"permission.replied","data":{"sessionID":"ses_1","requestID":"per_1","reply":"once"}}"#,
            r#"{"id":"e3","type":"form.created","data":{"form":{"id":"frm_@","sessionID":"ses_1","title":"t","fields":[{"key":"k","type":"string","options":[{"value":"a","label":"A"}],"custom":true}]}}}"#,
            r#"{"id":"e4","type":"session.execution.started","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1"}}"#,
            r#"{"id":"e5","type":"session.inbox.enqueued","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","inboxID":"msg_2","item":{"type":"user","payload":{"text":"x"}}}}"#,
            r#"{"id":"e6","type":"session.inbox.delivered","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","inboxID":"msg_2"}}"#,
            r#"{"id":"e7","type":"session.text.started","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","assistantMessageID":"m","ordinal":0}}"#,
            r#"{"id":"e8","type":"session.text.delta","data":{"sessionID":"ses_1","assistantMessageID":"m","ordinal":0,"delta":"x"}}"#,
            r#"{"id":"e9","type":"session.text.ended","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","assistantMessageID":"m","ordinal":0,"text":"xy"}}"#,
            r#"{"id":"e10","type":"session.tool.called","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","assistantMessageID":"m","id":"c","input":{"command":"ls"}}}"#,
            r#"{"id":"e11","type":"session.execution.succeeded","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1"}}"#,
            r#"{"id":"e12","type":"session.execution.interrupted","durable":{"aggregateID":"ses_1","seq":@,"version":1},"data":{"sessionID":"ses_1","reason":"shutdown"}}"#,
        ],
    },
    Manners {
        dialect: "gemini-mirror",
        connect: "ws://127.0.0.1:1/",
        session: "ui",
        results: &[],
        words: &[
            "{\"type\":\"permission_dialog\",\"data\":{\"id\":\"p@\",\"type\":\"command_run\",\"options\":[\"Allow\",\"Deny\"]}}\0",
            "{\"type\":\"permission_selection\",\"data\":{\"id\":\"p1\",\"selection\":\"y\"}}\0",
            "{\"type\":\"user_message\",\"data\":{\"text\":\"x\"}}\0",
            "{\"type\":\"model_output\",\"data\":{\"text\":\"x\"}}\0",
            "{\"type\":\"tool_call\",\"data\":{\"callId\":\"c\",\"name\":\"n\",\"args\":{}}}\0",
            "{\"type\":\"tool_output\",\"data\":{\"callId\":\"c\",\"output\":\"x\"}}\0",
            "{\"type\":\"idle\",\"data\":{}}\0",
            "{\"type\":\"hook\",\"data\":{}}\0",
        ],
    },
];

/// Identifiers of every sort, as JSON.
pub const IDS: &[&str] = &[
    "\"x\"",
    "0",
    "-1",
    "1.5",
    "1e400",
    "99999999999999999999999999",
    "null",
    "true",
    "[1]",
    "{\"a\":1}",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\"",
];

/// Messages that the runtime of this dialect may send; `@` is an identifier.
pub fn words(dialect: &str) -> &'static [&'static str] {
    manners(dialect).map_or(&[], |manners| manners.words)
}

/// Returns whether more is known of this dialect than its name.
pub fn known(dialect: &str) -> bool {
    manners(dialect).is_some()
}

fn manners(dialect: &str) -> Option<&'static Manners> {
    MANNERS.iter().find(|manners| manners.dialect == dialect)
}

/// One step.
#[derive(Clone, Debug)]
pub enum Op {
    /// The runtime sends bytes.
    Feed(Vec<u8>),
    /// The runtime answers the nth waiting call, correctly (`Ok`) or with this.
    Respond(usize, Result<(), Vec<u8>>),
    Open,
    Resume(bool),
    Prompt,
    Cancel,
    /// The nth open request is answered, by the nth kind of decision.
    Answer(usize, u8),
    Call(u8),
    Wake,
    /// The connection is lost and made again; not for programs.
    Lost,
    /// Another gateway takes over.
    TakeOver,
}

impl Op {
    /// The step of a line of fuzz input: its first byte chooses the step, or the line is sent by the runtime.
    pub fn of(line: &[u8]) -> Self {
        let Some((first, rest)) = line.split_first() else { return Self::Wake };
        let n = usize::from(rest.first().copied().unwrap_or_default());
        match first {
            1 => Self::Open,
            2 => Self::Resume(n % 2 == 0),
            3 => Self::Prompt,
            4 => Self::Cancel,
            5 => Self::Answer(n, rest.get(1).copied().unwrap_or_default()),
            6 => Self::Call(rest.first().copied().unwrap_or_default()),
            7 => Self::Wake,
            8 => Self::Lost,
            11 => Self::TakeOver,
            12 => Self::Respond(n, Ok(())),
            14 => Self::Respond(n, Err(rest.get(1..).unwrap_or_default().to_vec())),
            _ => Self::Feed(line.to_vec()),
        }
    }
}

/// A call of the gateway that waits for the runtime.
enum Waits {
    Call { id: String, method: String },
    Fetch { id: u64, path: String },
}

/// A dialect, and the responses that it owes.
pub struct Bench {
    name: String,
    dialect: Box<dyn Dialect>,
    endpoint: bool,
    waits: VecDeque<Waits>,
    /// All fetches.
    fetches: BTreeSet<u64>,
    /// The open requests, and whether people can answer them here.
    open: BTreeMap<RequestKey, bool>,
    /// The session that each was asked in.
    asked_in: BTreeMap<RequestKey, Option<NativeId>>,
    /// Responses owed: opens, prompts, calls.
    opens: BTreeSet<Ticket>,
    prompts: BTreeSet<Ticket>,
    calls: BTreeSet<Ticket>,
    natives: Vec<NativeId>,
    ticket: u64,
    /// `true` if the handshake is over.
    pub ready: bool,
    /// `true` if a session was opened.
    opened: bool,
    /// The number of events.
    pub told: usize,
    /// The frames of the last step.
    pub sent: Vec<String>,
}

fn spec(name: &str) -> RuntimeSpec {
    let connect = match manners(name).map_or("", |manners| manners.connect) {
        "" => Connect::Command(vec!["x".into()]),
        at => Connect::Endpoint(at.into()),
    };
    RuntimeSpec::new(RuntimeId::trusted("bench"), name, connect, "/w")
}

fn make(name: &str, spec: &RuntimeSpec) -> Box<dyn Dialect> {
    plexus_dialects::find(name).or_else(|| plexus_linked::find(name)).expect("in a table")(spec)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

impl Bench {
    /// A new connection.
    pub fn new(name: &str) -> Self {
        let spec = spec(name);
        let mut bench = Self {
            name: name.into(),
            dialect: make(name, &spec),
            endpoint: matches!(spec.connect, Connect::Endpoint(_)),
            waits: VecDeque::new(),
            fetches: BTreeSet::new(),
            open: BTreeMap::new(),
            asked_in: BTreeMap::new(),
            opens: BTreeSet::new(),
            prompts: BTreeSet::new(),
            calls: BTreeSet::new(),
            natives: Vec::new(),
            ticket: 0,
            ready: false,
            opened: false,
            told: 0,
            sent: Vec::new(),
        };
        bench.step(|dialect, out| dialect.open(out));
        bench
    }

    /// A connection after the handshake with a session, if [`MANNERS`] has the dialect.
    pub fn ready(name: &str) -> Self {
        let mut bench = Self::new(name);
        bench.answer_all();
        assert!(bench.ready || !known(name), "{name} does not get through its handshake");
        bench.take(&Op::Open);
        bench.answer_all();
        if !bench.opened {
            // The dialect may open only sessions of its own.
            bench.take(&Op::Resume(false));
            bench.answer_all();
        }
        assert!(bench.opened || !known(name), "{name} opens no session");
        bench
    }

    /// Answers all waiting calls correctly.
    fn answer_all(&mut self) {
        for _ in 0..WAITING_MAX {
            if self.waits.is_empty() {
                break;
            }
            self.take(&Op::Respond(0, Ok(())));
        }
    }

    /// Runs the steps of these bytes, a line at a time.
    pub fn run(&mut self, data: &[u8]) {
        data.split(|byte| *byte == b'\n').for_each(|line| self.take(&Op::of(line)));
    }

    pub fn take(&mut self, op: &Op) {
        let native = self.natives.last().cloned().unwrap_or_else(|| "s".into());
        match op {
            Op::Feed(frame) => {
                let frame = Bytes::copy_from_slice(frame);
                self.step(|dialect, out| dialect.feed(frame, out));
            }
            Op::Respond(n, how) => self.respond(*n, how),
            Op::Open => {
                let ticket = self.ticket();
                self.opens.insert(ticket);
                self.command(RuntimeCommand::Open { ticket, cwd: "/w".into(), resume: None, mcp_servers: Vec::new() });
            }
            Op::Resume(known) => {
                let ticket = self.ticket();
                self.opens.insert(ticket);
                let native: NativeId = manners(&self.name).map_or("s", |manners| manners.session).into();
                let resume = Some(ResumeTarget::new(native.clone(), *known));
                self.command(RuntimeCommand::Open { ticket, cwd: "/w".into(), resume, mcp_servers: Vec::new() });
                // The gateway opens what it has not open, so it has closed that session's questions: a dialect may let go of them.
                let (asks, asked_in) = (self.dialect.asks(), &self.asked_in);
                self.open.retain(|key, _| asks.contains(key) || asked_in.get(key) != Some(&Some(native.clone())));
            }
            Op::Prompt => {
                let ticket = self.ticket();
                self.prompts.insert(ticket);
                let content = vec![raw(r#"{"type":"text","text":"hi"}"#)];
                self.command(RuntimeCommand::Prompt { ticket, native, content });
            }
            Op::Cancel => {
                let ticket = self.prompts.last().copied();
                self.command(RuntimeCommand::Cancel { ticket, native, reason: None });
            }
            Op::Answer(n, sort) => self.answer(*n, *sort),
            Op::Call(n) => self.call(*n, native),
            Op::Wake => self.step(|dialect, out| dialect.wake(out)),
            Op::Lost if self.endpoint => {
                self.waits.clear();
                self.step(|dialect, out| dialect.lost("the bench", out));
                self.step(|dialect, out| dialect.open(out));
            }
            Op::Lost => {}
            Op::TakeOver => self.take_over(),
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.ticket += 1;
        Ticket(self.ticket)
    }

    fn command(&mut self, command: RuntimeCommand) {
        self.step(|dialect, out| dialect.command(command, out));
    }

    fn respond(&mut self, n: usize, how: &Result<(), Vec<u8>>) {
        if self.waits.is_empty() {
            return;
        }
        let Some(waiting) = self.waits.remove(n % self.waits.len()) else { return };
        let results = manners(&self.name).map_or(&[][..], |manners| manners.results);
        let result = |name: &str| results.iter().find(|(known, _)| *known == name).map_or("{}", |(_, result)| *result);
        match waiting {
            Waits::Call { id, method } => {
                let mut frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"#).into_bytes();
                match how {
                    Ok(()) => frame.extend(format!(r#""result":{}}}"#, result(&method)).into_bytes()),
                    Err(junk) => frame.extend(junk),
                }
                self.take(&Op::Feed(frame));
            }
            Waits::Fetch { id, path } => {
                let path = path.split('?').next().unwrap_or_default();
                let reply = match how {
                    Ok(()) => Ok(HttpReply { status: 200, body: Bytes::from_static(result(path).as_bytes()) }),
                    Err(junk) if junk.is_empty() => Err("the bench".to_owned()),
                    Err(junk) => Ok(HttpReply { status: 200 + u16::from(junk[0]), body: junk[1..].to_vec().into() }),
                };
                self.step(|dialect, out| dialect.reply(id, reply, out));
            }
        }
    }

    fn answer(&mut self, n: usize, sort: u8) {
        let Some((key, can)) = self.open.iter().nth(n % self.open.len().max(1)).map(|(k, c)| (k.clone(), *c)) else {
            return;
        };
        let option = |id: &str, kind| Decision::Option { id: id.into(), kind, reason: Some("why".into()) };
        let decision = match sort % 7 {
            0 => option("a", Choice::AllowOnce),
            1 => option("allow", Choice::AllowOnce),
            2 => option("r", Choice::RejectOnce),
            3 => Decision::Value(Some("v".into())),
            4 => Decision::Ids(vec!["a".into()]),
            5 => Decision::Expired,
            _ => Decision::Withdrawn,
        };
        self.open.remove(&key);
        let before = self.waits.len() + self.sent.len();
        self.command(RuntimeCommand::Answer { key: key.clone(), decision: decision.clone() });
        // A runtime that asks before its handshake may stay without an answer.
        if can && self.ready && !self.endpoint {
            assert_eq!(self.sent.len(), 1, "{}: one answer to {key:?} ({before} waited)", self.name);
            // A line of white space is no message.
            let bare = |text: &str| text.replace([' ', '\r', '\t'], "");
            let named = format!("\"id\":{}", bare(key.id()));
            assert!(bare(&self.sent[0]).contains(&named), "{}: the identifier comes back: {}", self.name, self.sent[0]);
            assert!(!self.sent[0].contains("\"error\":{\"code\""), "{}: an error is no answer", self.name);
        }
        if self.open.contains_key(&key) {
            // The answer does not fit, and the dialect asks again.
            return;
        }
        let waited = self.waits.len();
        self.command(RuntimeCommand::Answer { key, decision });
        assert!(self.sent.is_empty() && self.waits.len() == waited, "{}: answered twice", self.name);
    }

    fn call(&mut self, n: u8, native: NativeId) {
        let methods = ["model.list", "model.set", "session.x", "_x.y", "run.cancel", "initialize", "", "shell.exec"];
        let params = [None, Some("null"), Some("{}"), Some("[]"), Some(r#"{"name":"m","sessionId":"z"}"#)];
        let method = methods[usize::from(n) % methods.len()].to_owned();
        let params = params[usize::from(n / 8) % params.len()].map(raw);
        let (ticket, notify) = (self.ticket(), n >= 128);
        if !notify {
            self.calls.insert(ticket);
        }
        self.command(RuntimeCommand::Call { ticket, native: Some(native), method, params, notify });
    }

    fn take_over(&mut self) {
        let Some(saved) = self.dialect.save() else { return };
        let mut next = make(&self.name, &spec(&self.name));
        assert!(next.restore(&saved), "{}: its own state is taken over", self.name);
        let keys = |dialect: &dyn Dialect| dialect.asks().into_iter().collect::<BTreeSet<_>>();
        assert_eq!(keys(&*next), keys(&*self.dialect), "{}: the same questions are open", self.name);
        let prompts = |dialect: &dyn Dialect| dialect.prompts().into_iter().collect::<BTreeSet<_>>();
        assert_eq!(prompts(&*next), prompts(&*self.dialect), "{}: the same prompts are", self.name);
        self.dialect = next;
    }

    /// One step, and the checks after it.
    fn step(&mut self, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        let mut out = Outbox::default();
        step(&mut *self.dialect, &mut out);
        self.sent.clear();
        for said in out.events {
            self.hear(said);
        }
        for frame in out.frames {
            let line = frame.strip_suffix(b"\n").expect("a frame has its end");
            assert!(!line.iter().any(|b| matches!(b, b'\r' | b'\n')), "{}: one line: {frame:?}", self.name);
            let line = std::str::from_utf8(line).expect("UTF-8");
            #[derive(serde::Deserialize)]
            struct Sent<'a> {
                #[serde(borrow)]
                id: Option<&'a RawValue>,
                method: Option<String>,
            }
            let sent: Sent<'_> =
                serde_json::from_str(line).unwrap_or_else(|why| panic!("{}: {why}: {line}", self.name));
            if let (Some(id), Some(method)) = (sent.id, sent.method) {
                self.wait(Waits::Call { id: id.get().into(), method });
            }
            self.sent.push(line.to_owned());
        }
        for fetch in out.fetches {
            assert!(self.fetches.insert(fetch.id), "{}: fetch {} comes twice", self.name, fetch.id);
            assert!(matches!(fetch.method, "GET" | "POST" | "PUT" | "PATCH" | "DELETE"), "{}", fetch.method);
            assert!(fetch.path.starts_with('/') && !fetch.path.contains([' ', '\r', '\n', '#']), "{}", fetch.path);
            assert!(matches!(fetch.base, HttpBase::Connect | HttpBase::Remote));
            if let Some(body) = &fetch.body {
                serde_json::from_slice::<&RawValue>(body).expect("JSON");
            }
            self.wait(Waits::Fetch { id: fetch.id, path: fetch.path });
        }
        assert!(self.open.len() <= OPEN_MAX && self.dialect.asks().len() <= OPEN_MAX, "{}: bounded", self.name);
    }

    fn wait(&mut self, waits: Waits) {
        if self.waits.len() >= WAITING_MAX {
            self.waits.pop_front();
        }
        self.waits.push_back(waits);
    }

    fn hear(&mut self, said: RuntimeEvent) {
        let name = self.name.clone();
        match said {
            RuntimeEvent::Ready { .. } => self.ready = true,
            RuntimeEvent::Failed { message } => assert!(!message.is_empty()),
            RuntimeEvent::Opened { ticket, native, drafts, .. } => {
                assert!(self.opens.remove(&ticket), "{name}: opened twice, or for nobody");
                drafts.iter().for_each(|draft| self.event(draft));
                self.opened = true;
                self.natives.push(native);
            }
            RuntimeEvent::NotOpened { ticket, .. } => {
                assert!(self.opens.remove(&ticket), "{name}: refused twice, or to nobody");
            }
            RuntimeEvent::Event { draft, .. } => self.event(&draft),
            RuntimeEvent::Asked { native, ask } => {
                self.asked_in.insert(ask.key.clone(), native);
                ask.first_mention.iter().for_each(|draft| self.event(draft));
                let twice = self.open.insert(ask.key.clone(), !ask.observe_only);
                assert!(twice.is_none(), "{name}: {:?} is asked while it is open", ask.key);
            }
            RuntimeEvent::AskChanged { ask, .. } => {
                assert!(ask.first_mention.is_none(), "{name}: a tool call is mentioned twice");
                assert!(self.open.contains_key(&ask.key), "{name}: {:?} changes and is not open", ask.key);
            }
            RuntimeEvent::Reviewed { ask, .. } => assert!(ask.observe_only, "{name}: nobody is asked"),
            RuntimeEvent::TakenBack { key, .. } | RuntimeEvent::AnswerLost { key, .. } => {
                self.open.remove(&key);
            }
            RuntimeEvent::Ended { ticket, .. } => {
                assert!(self.prompts.remove(&ticket), "{name}: ended twice, or for nobody");
            }
            RuntimeEvent::Replied { ticket, .. } => {
                assert!(self.calls.remove(&ticket), "{name}: replied twice, or to nobody");
            }
            RuntimeEvent::Found { native, .. } => self.natives.push(native),
            RuntimeEvent::Closed { .. }
            | RuntimeEvent::Began { .. }
            | RuntimeEvent::Done { .. }
            | RuntimeEvent::Checkpoint { .. } => {}
            RuntimeEvent::Spent { report, .. } => {
                // Whatever an agent says, no figure is more than one sum may hold.
                for spending in [&report.step, &report.total] {
                    assert!(spending.counts().iter().flatten().all(|count| *count <= 4 * TOKENS_MAX), "{report:?}");
                    assert!(spending.costs.iter().all(|cost| (0.0..=MONEY_MAX).contains(&cost.amount)), "{report:?}");
                }
            }
        }
    }

    fn event(&mut self, draft: &EventDraft) {
        self.told += 1;
        let name = &self.name;
        assert!(!draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')), "{name}: one line: {draft:?}");
        let body: &RawValue =
            serde_json::from_slice(&draft.body).unwrap_or_else(|why| panic!("{name}: not JSON ({why}): {draft:?}"));
        assert!(body.get().starts_with('{'), "{name}: an object: {draft:?}");
    }

    /// The number of open requests.
    pub fn open_asks(&self) -> usize {
        self.open.len()
    }

    /// Returns whether the dialect's `asks` agree with the open requests, if it can be taken over.
    pub fn asks_agree(&self) -> bool {
        self.dialect.save().is_none()
            || self.dialect.asks().into_iter().collect::<BTreeSet<_>>() == self.open.keys().cloned().collect()
    }
}
