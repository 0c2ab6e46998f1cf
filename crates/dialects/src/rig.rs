//! A connection for tests, and its output.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::acp::schema_tests::SchemaCheck;
use super::{
    AgentRequest, Dialect, EventDraft, HttpReply, HttpRequest, Outbox, RequestKey, RunEnd, RuntimeCommand,
    RuntimeError, RuntimeEvent, find,
};
use plexus_protocol::{Choice, Connect, Decision, NativeId, RuntimeId, RuntimeSpec, Spending, Ticket};

/// A connection, and its output.
pub struct Rig {
    /// The state of the connection.
    pub dialect: Box<dyn Dialect>,
    /// The events since the last call of [`said`](Self::said).
    pub events: Vec<RuntimeEvent>,
    /// The frames since the last call of [`sent`](Self::sent).
    pub sent: Vec<Value>,
    /// The requests that were not answered yet.
    pub fetches: VecDeque<HttpRequest>,
    /// The number of steps that requested a wake-up.
    pub wakes: usize,
    /// The last checkpoint.
    pub checkpoint: Option<String>,
    /// The check of messages against ACP's schema, for that dialect.
    schema: Option<SchemaCheck>,
}

/// Makes a runtime with this dialect.
pub fn spec(dialect: &str) -> RuntimeSpec {
    RuntimeSpec::new(RuntimeId::trusted("test"), dialect, Connect::Command(vec!["agent".into()]), "/w")
}

/// Returns the sum of the reported steps.
pub fn spent(events: &[RuntimeEvent]) -> Spending {
    let mut sum = Spending::default();
    for event in events {
        if let RuntimeEvent::Spent { report, .. } = event {
            sum.add(&report.step);
        }
    }
    sum
}

/// Returns raw JSON of a text.
pub fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

/// Returns the value of a JSON text.
pub fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Returns the decision for an option.
pub fn choose(id: &str, kind: Choice) -> Decision {
    Decision::Option { id: id.into(), kind, reason: None }
}

impl Rig {
    /// Makes a connection of a dialect of this crate.
    pub fn new(spec: &RuntimeSpec) -> Self {
        let schema = (spec.dialect == "acp").then(SchemaCheck::default);
        Self::open_dialect(find(&spec.dialect).unwrap()(spec), schema)
    }

    /// Makes a connection of another dialect.
    pub fn with(dialect: Box<dyn Dialect>) -> Self {
        Self::open_dialect(dialect, None)
    }

    fn open_dialect(dialect: Box<dyn Dialect>, schema: Option<SchemaCheck>) -> Self {
        let mut rig = Self {
            dialect,
            events: Vec::new(),
            sent: Vec::new(),
            fetches: VecDeque::new(),
            wakes: 0,
            checkpoint: None,
            schema,
        };
        rig.step(|dialect, out| dialect.open(out));
        rig
    }

    fn step(&mut self, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        let mut out = Outbox::default();
        step(&mut *self.dialect, &mut out);
        for frame in &out.frames {
            let (end, line) = frame.split_last().unwrap();
            assert!(*end == b'\n' && !line.iter().any(|b| matches!(b, b'\r' | b'\n')), "one line: {frame:?}");
            let sent = json(line);
            if let Some(schema) = &self.schema {
                schema.sends(&sent);
            }
            self.sent.push(sent);
        }
        for event in &out.events {
            if let RuntimeEvent::Event { draft, .. } = event {
                assert!(json(&draft.body).is_object(), "{draft:?}");
                assert!(!draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')), "one line: {draft:?}");
            }
        }
        for event in out.events {
            match event {
                RuntimeEvent::Checkpoint { state, .. } => self.checkpoint = Some(state),
                event => self.events.push(event),
            }
        }
        self.fetches.extend(out.fetches);
        self.wakes += usize::from(out.wake_after.is_some());
    }

    /// Feeds a frame of the runtime.
    pub fn feed(&mut self, frame: impl Into<Bytes>) {
        let frame = frame.into();
        if let Some(schema) = &mut self.schema {
            schema.received(&frame);
        }
        self.step(|dialect, out| dialect.feed(frame, out));
    }

    /// Sends a command.
    pub fn tell(&mut self, command: RuntimeCommand) {
        self.step(|dialect, out| dialect.command(command, out));
    }

    /// Wakes the dialect.
    pub fn wake(&mut self) {
        self.step(|dialect, out| dialect.wake(out));
    }

    /// Loses the connection.
    pub fn lose(&mut self) {
        self.step(|dialect, out| dialect.lost("gone", out));
    }

    /// Connects again.
    pub fn connect(&mut self) {
        self.step(|dialect, out| dialect.open(out));
    }

    /// Answers a request: status and body, or `None` for a failed request.
    pub fn reply(&mut self, fetch: &HttpRequest, reply: Option<(u16, &str)>) {
        let reply = match reply {
            Some((status, body)) => Ok(HttpReply { status, body: Bytes::copy_from_slice(body.as_bytes()) }),
            None => Err("no reply".to_owned()),
        };
        self.step(|dialect, out| dialect.reply(fetch.id, reply, out));
    }

    /// Opens a new session.
    pub fn open(&mut self, ticket: u64) {
        self.tell(RuntimeCommand::Open {
            ticket: Ticket(ticket),
            cwd: "/w".into(),
            resume: None,
            mcp_servers: Vec::new(),
        });
    }

    /// Sends a prompt of one text.
    pub fn prompt(&mut self, ticket: u64, native: &str, text: &str) {
        let block = raw(&serde_json::json!({ "type": "text", "text": text }).to_string());
        self.tell(RuntimeCommand::Prompt { ticket: Ticket(ticket), native: native.into(), content: vec![block] });
    }

    /// Cancels a prompt.
    pub fn cancel(&mut self, ticket: u64, native: &str) {
        self.tell(RuntimeCommand::Cancel { ticket: Some(Ticket(ticket)), native: native.into(), reason: None });
    }

    /// Answers the question with this key, or with this name of the runtime.
    pub fn answer(&mut self, key: &str, decision: Decision) {
        // Tests give the runtime's name of a pending question, or a whole key.
        let open = self.dialect.asks().into_iter().find(|open| open.id() == key);
        let key = open.unwrap_or_else(|| RequestKey::from(key.to_owned()));
        self.tell(RuntimeCommand::Answer { key, decision });
    }

    /// Calls a method of the runtime.
    pub fn call(&mut self, native: &str, method: &str, params: Option<&str>) {
        let (native, params) = (Some(NativeId::from(native)), params.map(raw));
        self.tell(RuntimeCommand::Call { ticket: Ticket(99), native, method: method.into(), params, notify: false });
    }

    /// Returns the frames sent since the last call.
    pub fn sent(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<RuntimeEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the only event since the last call.
    pub fn one(&mut self) -> RuntimeEvent {
        let mut event = self.take_events();
        assert_eq!(event.len(), 1, "{event:?}");
        event.remove(0)
    }

    /// Returns the only event since the last call, which is one of a session's log.
    pub fn event(&mut self) -> EventDraft {
        match self.one() {
            RuntimeEvent::Event { draft, .. } => draft,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the only event since the last call, which is a question.
    pub fn ask(&mut self) -> Box<AgentRequest> {
        match self.one() {
            RuntimeEvent::Asked { ask, .. } => ask,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the only event since the last call, which is the end of a prompt, with its ticket.
    pub fn end(&mut self) -> (u64, RunEnd) {
        match self.one() {
            RuntimeEvent::Ended { ticket, end, .. } => (ticket.0, end),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the only event since the last call, which is the reply to a call.
    pub fn replied(&mut self) -> Result<Value, RuntimeError> {
        match self.one() {
            RuntimeEvent::Replied { reply, .. } => reply.map(|raw| json(raw.get().as_bytes())),
            other => panic!("{other:?}"),
        }
    }
}
