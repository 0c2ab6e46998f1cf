//! Tests of the dialect with a double of OpenCode 2, made from the schema of its repository. One file: the double and its tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::super::rig::{Rig, choose, json as parsed, spec};
use super::super::super::{
    CarriedState, OpenedAs, RequestKey, RequestSubject, ResumeTarget, RuntimeCommand, RuntimeEvent,
};
use plexus_protocol::{Choice, Decision, RunStatus, RuntimeSpec, Ticket};

const PAGE: &str = "<!doctype html><html></html>";

/// One session of the double.
#[derive(Default)]
struct Session {
    log: Vec<Value>,
    running: bool,
    inbox: Vec<(String, String)>,
    permissions: Vec<Value>,
    forms: Vec<Value>,
}

/// A connection, with its server: a log for each session, and a stream without replay.
struct Stage {
    rig: Rig,
    connected: bool,
    sessions: BTreeMap<String, Session>,
    /// Events of the stream that were not fed yet.
    stream: Vec<String>,
    made: Vec<(String, Value)>,
    /// Replies in place of the double's own: by method and path.
    odd: BTreeMap<String, (u16, String)>,
    /// `true` if the route of the log is that of the first releases.
    older: bool,
    /// All events that the gateway got, except checkpoints.
    received: Vec<RuntimeEvent>,
}

impl Stage {
    fn new() -> Self {
        let spec = RuntimeSpec { cwd: "/w".into(), ..spec("opencode2") };
        let rig = Rig::new(&spec);
        Self {
            rig,
            connected: true,
            sessions: BTreeMap::from([("ses_1".to_owned(), Session::default())]),
            stream: Vec::new(),
            made: Vec::new(),
            odd: BTreeMap::new(),
            older: false,
            received: Vec::new(),
        }
    }

    /// Makes a ready connection with the session `ses_1` open.
    fn open() -> Self {
        let mut stage = Self::new();
        stage.serve();
        let events = stage.events();
        assert!(
            matches!(&events[..], [RuntimeEvent::Ready { agent: Some(agent) }] if agent == "OpenCode 2.2.7"),
            "{events:?}"
        );
        stage.rig.open(1);
        stage.serve();
        let events = stage.events();
        assert!(matches!(&events[0], RuntimeEvent::Opened { how: OpenedAs::New, .. }), "{events:?}");
        stage.made.clear();
        stage
    }

    fn session(&mut self) -> &mut Session {
        self.sessions.get_mut("ses_1").unwrap()
    }

    /// Adds an event to the log, which is also on the stream.
    fn durable(&mut self, kind: &str, mut data: Value) {
        data["sessionID"] = "ses_1".into();
        let session = self.session();
        let seq = session.log.len();
        let event = json!({ "id": format!("evt_{seq}"), "created": 1, "type": kind, "data": data,
            "durable": { "aggregateID": "ses_1", "seq": seq, "version": 1 } });
        session.log.push(event.clone());
        self.push(&event);
    }

    /// Adds an event to the stream only.
    fn live(&mut self, kind: &str, mut data: Value) {
        if kind != "form.created" {
            data["sessionID"] = "ses_1".into();
        }
        self.push(&json!({ "id": "evt_live", "created": 1, "type": kind, "data": data }));
    }

    fn push(&mut self, event: &Value) {
        if self.connected {
            self.stream.push(event.to_string());
        }
    }

    /// Feeds the stream's events.
    fn feed_stream(&mut self) {
        for event in std::mem::take(&mut self.stream) {
            self.rig.feed(event);
        }
    }

    /// Replies to one request.
    fn serve_one(&mut self) -> bool {
        let Some(fetch) = self.rig.fetches.pop_front() else { return false };
        let (path, query) = fetch.path.split_once('?').unwrap_or((&fetch.path, ""));
        let body = fetch.body.as_ref().map_or(Value::Null, |body| parsed(body));
        let what = format!("{} {path}", fetch.method);
        self.made.push((what.clone(), body.clone()));
        let (status, text) =
            self.odd.get(&what).cloned().unwrap_or_else(|| self.answer(fetch.method, path, query, &body));
        self.rig.reply(&fetch, Some((status, &text)));
        true
    }

    /// Replies to all requests, and to those that follow from them.
    fn serve(&mut self) {
        self.feed_stream();
        while self.serve_one() {
            self.feed_stream();
        }
    }

    fn answer(&mut self, method: &str, path: &str, query: &str, body: &Value) -> (u16, String) {
        let data = |data: Value| (200, json!({ "data": data }).to_string());
        let info = |id: &str| json!({ "id": id, "title": "New", "location": { "directory": "/w" } });
        match path {
            "/api/health" => return (200, json!({ "healthy": true, "version": "2.2.7" }).to_string()),
            "/api/session/active" => {
                let active = self.sessions.iter().filter(|(_, session)| session.running);
                return data(active.map(|(id, _)| (id.clone(), json!({ "type": "running" }))).collect());
            }
            "/api/model" => {
                let model = json!({ "id": "m", "providerID": "p", "name": "M", "limit": { "context": 1000 } });
                return data(json!([model]));
            }
            "/api/session" => return data(info("ses_1")),
            _ => {}
        }
        let log = if self.older { "/api/session/ses_1/log" } else { "/api/experimental/session/ses_1/log" };
        if path == log {
            let from = query.strip_prefix("after=").map_or(0, |after| after.parse::<usize>().unwrap() + 1);
            let session = self.session();
            let mut text = String::from(": hello\n\n");
            for event in session.log.iter().skip(from) {
                text.push_str(&format!("event: message\ndata: {event}\n\n"));
            }
            let mut end = json!({ "type": "log.synced", "aggregateID": "ses_1" });
            if let Some(seq) = session.log.len().checked_sub(1) {
                end["seq"] = seq.into();
            }
            text.push_str(&format!("data: {end}\n\n"));
            return (200, text);
        }
        let Some(rest) = path.strip_prefix("/api/session/ses_1") else { return (200, PAGE.into()) };
        match (method, rest) {
            ("GET", "") => data(info("ses_1")),
            ("GET", "/permission") => data(self.session().permissions.clone().into()),
            ("GET", "/form") => data(self.session().forms.clone().into()),
            ("POST", "/prompt") => {
                let (id, text) = (body["id"].as_str().unwrap().to_owned(), body["text"].as_str().unwrap().to_owned());
                self.enqueue(&id, &text);
                data(json!({ "id": id, "type": "user" }))
            }
            ("POST", "/interrupt") => {
                let running = self.session().running;
                if running {
                    self.end("interrupted", json!({ "reason": "user" }));
                }
                (200, json!({ "interrupted": running }).to_string())
            }
            ("POST", "/model") => {
                self.durable("session.model.selected", json!({ "model": body["model"] }));
                (204, String::new())
            }
            ("DELETE", rest) if rest.starts_with("/inbox/") => {
                let id = rest.strip_prefix("/inbox/").unwrap().to_owned();
                self.session().inbox.retain(|(known, _)| *known != id);
                (204, String::new())
            }
            ("POST" | "DELETE", rest) => {
                let id = rest.split('/').nth(2).unwrap().to_owned();
                let session = self.session();
                let count = session.permissions.len() + session.forms.len();
                session.permissions.retain(|asked| asked["id"] != id.as_str());
                session.forms.retain(|asked| asked["id"] != id.as_str());
                match session.permissions.len() + session.forms.len() < count {
                    true => (204, String::new()),
                    false => (404, json!({ "_tag": "PermissionNotFoundError", "message": "gone" }).to_string()),
                }
            }
            _ => (404, String::new()),
        }
    }

    fn enqueue(&mut self, id: &str, text: &str) {
        self.session().inbox.push((id.to_owned(), text.to_owned()));
        let item = json!({ "type": "user", "delivery": "queue", "payload": { "text": text } });
        self.durable("session.inbox.enqueued", json!({ "inboxID": id, "item": item }));
    }

    /// Begins with the next item of the inbox.
    fn begin(&mut self) {
        self.session().running = true;
        self.durable("session.execution.started", json!({}));
        for (id, _) in std::mem::take(&mut self.session().inbox) {
            self.durable("session.inbox.delivered", json!({ "inboxID": id }));
        }
    }

    fn end(&mut self, how: &str, data: Value) {
        self.session().running = false;
        self.durable(&format!("session.execution.{how}"), data);
    }

    fn text(&mut self, message: &str, pieces: &[&str]) {
        let at = json!({ "assistantMessageID": message, "ordinal": 0 });
        let with = |name: &str, value: &str| {
            let mut data = at.clone();
            data[name] = value.into();
            data
        };
        self.durable("session.text.started", at.clone());
        for piece in pieces {
            self.live("session.text.delta", with("delta", piece));
        }
        self.durable("session.text.ended", with("text", &pieces.concat()));
    }

    /// Returns the events since the last call, except checkpoints.
    fn events(&mut self) -> Vec<RuntimeEvent> {
        self.rig.take_events()
    }

    fn store_checkpoints(&mut self) {
        let events = self.events();
        self.received.extend(events);
    }

    fn disconnect(&mut self) {
        self.connected = false;
        self.stream.clear();
        self.rig.lose();
        // Pending reads get no reply any more; the double has still executed the other requests.
        while let Some(fetch) = self.rig.fetches.pop_front() {
            self.rig.reply(&fetch, None);
        }
    }

    fn connect(&mut self) {
        self.connected = true;
        self.rig.connect();
    }

    /// Makes another gateway process take over, with the state that the last one stored.
    fn another_gateway(&mut self, prompt: Option<(u64, &str)>, asks: &[&str]) {
        self.take_over(prompt, asks);
        self.serve();
    }

    /// Takes over like [`another_gateway`](Self::another_gateway); requests that read the session get no reply yet.
    fn take_over(&mut self, prompt: Option<(u64, &str)>, asks: &[&str]) {
        self.store_checkpoints();
        let checkpoint = self.rig.checkpoint.clone().unwrap();
        self.stream.clear();
        let spec = RuntimeSpec { cwd: "/w".into(), ..spec("opencode2") };
        self.rig = Rig::new(&spec);
        self.connected = true;
        self.serve();
        let block = |text: &str| json!({ "type": "text", "text": text }).to_string();
        let carried = CarriedState {
            checkpoint,
            prompt: prompt.map(|(ticket, _)| Ticket(ticket)),
            content: prompt.iter().map(|(_, text)| block(text)).collect(),
            asks: asks.iter().map(|id| RequestKey::unique(*id)).collect(),
        };
        let resume = ResumeTarget { carried: Some(Box::new(carried)), ..ResumeTarget::new("ses_1".into(), true) };
        self.rig.tell(RuntimeCommand::Open {
            ticket: Ticket(100),
            cwd: "/w".into(),
            resume: Some(resume),
            mcp_servers: Vec::new(),
        });
    }
}

/// Returns the agent's text among these events.
fn words(events: &[RuntimeEvent]) -> String {
    let mut all = String::new();
    for events in events {
        if let RuntimeEvent::Event { draft, .. } = events
            && draft.kind == plexus_protocol::Kind::AgentMessageChunk
        {
            all.push_str(parsed(&draft.body)["content"]["text"].as_str().unwrap());
        }
    }
    all
}

/// Returns events in short form.
fn short(events: &[RuntimeEvent]) -> Vec<String> {
    events
        .iter()
        .map(|events| match events {
            RuntimeEvent::Event { draft, .. } => {
                let body = parsed(&draft.body);
                let text = body["content"]["text"].as_str().or(body["code"].as_str()).or(body["status"].as_str());
                format!("{} {}", draft.kind.as_str(), text.or(body["title"].as_str()).unwrap_or_default())
            }
            RuntimeEvent::Asked { ask, .. } => format!("asked {}", ask.key.id()),
            RuntimeEvent::TakenBack { key, elsewhere, .. } => {
                format!("taken back {} {}", key.id(), elsewhere.as_ref().map_or("", |elsewhere| &elsewhere.by))
            }
            RuntimeEvent::AnswerLost { key, .. } => format!("lost {}", key.id()),
            RuntimeEvent::Spent { report, .. } => {
                format!(
                    "spent {:?} {:?}",
                    report.step.counts().map(Option::unwrap_or_default),
                    report.step.cost_in("USD")
                )
            }
            RuntimeEvent::Ended { ticket, end, .. } => format!("ended {} {:?}", ticket.0, end.status),
            RuntimeEvent::Began { .. } => "began".into(),
            RuntimeEvent::Done { end, .. } => format!("done {:?}", end.status),
            RuntimeEvent::Ready { .. } => "ready".into(),
            RuntimeEvent::Opened { .. } => "opened".into(),
            RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
            RuntimeEvent::Found { native, .. } => format!("found {}", native.as_str()),
            other => format!("{other:?}"),
        })
        .filter(|short| !short.starts_with("config_option_update"))
        .collect()
}

#[test]
fn opencode2_prompt_streams_runs_tools_and_ends() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    let (what, body) = stage.made[0].clone();
    assert_eq!((what.as_str(), &body["text"]), ("POST /api/session/ses_1/prompt", &json!("hello")));
    assert!(body["id"].as_str().unwrap().starts_with("msg_"));
    stage.begin();
    stage.durable("session.step.started", json!({ "assistantMessageID": "msg_a" }));
    stage.text("msg_a", &["On", " it."]);
    stage.durable("session.tool.input.started", json!({ "assistantMessageID": "msg_a", "id": "c1", "name": "shell" }));
    let called = json!({ "assistantMessageID": "msg_a", "id": "c1", "input": { "command": "ls -la" } });
    stage.durable("session.tool.called", called);
    let done = json!({ "assistantMessageID": "msg_a", "id": "c1", "content": [{ "type": "text", "text": "total 0" }],
        "metadata": { "exit": 0 } });
    stage.durable("session.tool.success", done);
    let step = json!({ "assistantMessageID": "msg_a", "finish": "stop", "cost": 0.5,
        "tokens": { "input": 10, "output": 5, "reasoning": 0, "cache": { "read": 1, "write": 0 } } });
    stage.durable("session.step.ended", step);
    stage.end("succeeded", json!({}));
    stage.serve();
    let events = stage.events();
    let expected = [
        "agent_message_chunk On",
        "agent_message_chunk  it.",
        "tool_call pending",
        "tool_call_update in_progress",
        "tool_call_update completed",
        "usage_update ",
        "spent [11, 5, 1, 0, 0] Some(0.5)",
        "ended 7 Completed",
    ];
    assert_eq!(short(&events), expected);
    let RuntimeEvent::Event { draft, .. } = &events[3] else { panic!() };
    let body = parsed(&draft.body);
    assert_eq!((&body["title"], &body["rawInput"]), (&json!("ls -la"), &json!({ "command": "ls -la" })));
}

#[test]
fn opencode2_permission_is_about_the_call_that_waits_for_it() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    stage.durable("session.tool.input.started", json!({ "assistantMessageID": "msg_a", "id": "c1", "name": "shell" }));
    let input = json!({ "command": "rm -rf x", "workdir": "/w" });
    stage.durable("session.tool.called", json!({ "assistantMessageID": "msg_a", "id": "c1", "input": input }));
    let asked = json!({ "id": "per_1", "action": "shell", "resources": ["rm *"], "save": ["rm *"],
        "source": { "type": "tool", "messageID": "msg_a", "id": "c1" } });
    stage.session().permissions.push(asked.clone());
    stage.live("permission.asked", asked);
    stage.serve();
    let events = stage.events();
    let Some(RuntimeEvent::Asked { ask, .. }) = events.last() else { panic!("{events:?}") };
    assert!(
        matches!(&ask.subject, RequestSubject::Command { argv, cwd: Some(cwd) } if argv == &["rm -rf x"] && cwd.path() == "/w"),
        "{:?}",
        ask.subject
    );
    assert_eq!(ask.tool_call_id.as_deref(), Some("c1"));
    stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
    stage.serve();
    let reply = stage.made.last().unwrap();
    assert_eq!(reply.0, "POST /api/session/ses_1/permission/per_1/reply");
    assert_eq!(reply.1, json!({ "reply": "once" }));

    // Another client answers first.
    let asked = json!({ "id": "per_2", "action": "edit", "resources": ["a.txt"] });
    stage.live("permission.asked", asked);
    stage.feed_stream();
    stage.live("permission.replied", json!({ "requestID": "per_2", "reply": "reject" }));
    stage.feed_stream();
    assert_eq!(short(&stage.events()), ["asked per_2", "taken back per_2 another client of OpenCode"]);

    // And just before us.
    stage.live("permission.asked", json!({ "id": "per_3", "action": "edit", "resources": ["a.txt"] }));
    stage.feed_stream();
    stage.rig.answer("per_3", choose("once", Choice::AllowOnce));
    stage.live("permission.replied", json!({ "requestID": "per_3", "reply": "always" }));
    stage.serve();
    assert_eq!(short(&stage.events()), ["asked per_3", "lost per_3"]);
}

#[test]
fn opencode2_permission_without_its_call_shows_the_whole_request() {
    let mut stage = Stage::open();
    stage.live("permission.asked", json!({ "id": "per_1", "action": "bash", "resources": ["rm -rf *"] }));
    stage.feed_stream();
    let ask = stage.rig.ask();
    assert!(matches!(&ask.subject, RequestSubject::Unreadable { raw, .. } if raw.contains("rm -rf *")), "{ask:?}");
}

#[test]
fn opencode2_form_is_asked_in_its_order_and_answered_by_field() {
    let mut stage = Stage::open();
    let form = json!({ "id": "frm_1", "sessionID": "ses_1", "title": "Two things", "fields": [
        { "key": "where", "type": "string", "title": "Where?", "custom": true, "required": true,
          "options": [{ "value": "here", "label": "Here" }, { "value": "there", "label": "There" }] },
        { "key": "again", "type": "boolean", "title": "Again?" },
    ] });
    stage.session().forms.push(form.clone());
    stage.live("form.created", json!({ "form": form }));
    stage.feed_stream();
    let ask = stage.rig.ask();
    let RequestSubject::Questions { questions, .. } = &ask.subject else { panic!("{:?}", ask.subject) };
    let named: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(named, ["where", "again"]);
    assert!(questions[0].free_text && questions[0].options.len() == 2);
    let answers = [("where".to_owned(), vec!["elsewhere".to_owned()]), ("again".to_owned(), vec!["true".to_owned()])];
    stage.rig.answer("frm_1", Decision::Answers(answers.into_iter().collect()));
    stage.serve();
    let (what, body) = stage.made.last().unwrap();
    assert_eq!(what, "POST /api/session/ses_1/form/frm_1/reply");
    assert_eq!(*body, json!({ "answer": { "where": "elsewhere", "again": true } }));

    // A dismissed one, by the route of either generation.
    let form = json!({ "id": "frm_2", "sessionID": "ses_1", "fields": [{ "key": "name", "type": "string" }] });
    stage.live("form.created", json!({ "form": form }));
    stage.feed_stream();
    stage.rig.ask();
    stage.odd.insert("DELETE /api/session/ses_1/form/frm_2".into(), (404, String::new()));
    stage.odd.insert("POST /api/session/ses_1/form/frm_2/cancel".into(), (204, String::new()));
    stage.rig.answer("frm_2", Decision::Value(None));
    stage.serve();
    assert_eq!(stage.made.last().unwrap().0, "POST /api/session/ses_1/form/frm_2/cancel");
    assert!(stage.rig.dialect.asks().is_empty() && stage.events().is_empty());

    // An answer that OpenCode refuses is asked for once more.
    let form = json!({ "id": "frm_3", "sessionID": "ses_1", "fields": [{ "key": "name", "type": "string" }] });
    stage.live("form.created", json!({ "form": form }));
    stage.feed_stream();
    stage.rig.ask();
    let reason = json!({ "_tag": "FormInvalidAnswerError", "message": "no such name" }).to_string();
    stage.odd.insert("POST /api/session/ses_1/form/frm_3/reply".into(), (400, reason));
    stage.rig.answer("frm_3", Decision::Value(Some("x".into())));
    stage.serve();
    let again = stage.rig.ask();
    assert!(again.title.contains("no such name"), "{}", again.title);
}

#[test]
fn opencode2_cancel_interrupts_or_takes_the_prompt_out_of_the_inbox() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    stage.feed_stream();
    stage.rig.cancel(7, "ses_1");
    stage.serve();
    assert_eq!(short(&stage.events()), ["ended 7 Cancelled"]);

    // Before it began.
    stage.rig.prompt(8, "ses_1", "again");
    stage.serve();
    stage.rig.cancel(8, "ses_1");
    stage.serve();
    assert_eq!(short(&stage.events()), ["ended 8 Cancelled"]);
    assert!(stage.session().inbox.is_empty());
    assert!(stage.made.last().unwrap().0.starts_with("DELETE /api/session/ses_1/inbox/msg_"));

    // A given-up prompt is withdrawn, too, and that does not end a later one.
    stage.rig.prompt(9, "ses_1", "never begun");
    stage.serve();
    stage.disconnect();
    stage.connect();
    stage.serve();
    while stage.rig.dialect.prompts() == [Ticket(9)] {
        stage.rig.wake();
        if stage.rig.dialect.prompts().is_empty() {
            break;
        }
        stage.serve();
    }
    stage.rig.prompt(10, "ses_1", "the next");
    stage.serve();
    assert_eq!(short(&stage.events()), ["ready", "ended 9 Error"]);
    assert_eq!(stage.rig.dialect.prompts(), [Ticket(10)]);
}

#[test]
fn opencode2_failure_has_its_message() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    let error = json!({ "type": "provider.auth", "message": "the key is wrong" });
    stage.durable("session.step.failed", json!({ "assistantMessageID": "msg_a", "error": error }));
    stage.end("failed", json!({ "error": error }));
    stage.serve();
    let (ticket, end) = stage.rig.end();
    assert_eq!((ticket, end.status, end.message.as_deref()), (7, RunStatus::Error, Some("the key is wrong")));

    // And a refused prompt.
    let reason = json!({ "_tag": "InvalidRequestError", "message": "no text" }).to_string();
    stage.odd.insert("POST /api/session/ses_1/prompt".into(), (400, reason));
    stage.rig.prompt(8, "ses_1", "");
    stage.serve();
    let (_, end) = stage.rig.end();
    assert!(end.message.unwrap().contains("no text"));
}

#[test]
fn opencode2_work_of_another_client_is_a_run() {
    let mut stage = Stage::open();
    stage.enqueue("msg_theirs", "from the terminal");
    stage.begin();
    stage.text("msg_a", &["Hi."]);
    stage.end("succeeded", json!({}));
    stage.serve();
    let expected = ["began", "user_message_chunk from the terminal", "agent_message_chunk Hi.", "done Completed"];
    assert_eq!(short(&stage.events()), expected);
}

#[test]
fn opencode2_discovers_a_session_and_reports_it_from_its_log() {
    let mut stage = Stage::new();
    stage.enqueue("msg_theirs", "from the terminal");
    stage.begin();
    stage.stream.clear();
    stage.serve();
    assert_eq!(short(&stage.events()), ["ready", "found ses_1"]);
    let resume = ResumeTarget::new("ses_1".into(), false);
    stage.rig.tell(RuntimeCommand::Open {
        ticket: Ticket(1),
        cwd: "/w".into(),
        resume: Some(resume),
        mcp_servers: Vec::new(),
    });
    stage.serve();
    let progress = short(&stage.events());
    assert_eq!(progress, ["opened", "began", "user_message_chunk from the terminal"]);
    stage.text("msg_a", &["Hi."]);
    stage.end("succeeded", json!({}));
    stage.serve();
    assert_eq!(short(&stage.events()), ["agent_message_chunk Hi.", "done Completed"]);
}

#[test]
fn opencode2_reads_events_missing_in_the_stream_from_the_log() {
    for older in [false, true] {
        let mut stage = Stage::open();
        stage.older = older;
        stage.rig.prompt(7, "ses_1", "hello");
        stage.serve();
        stage.begin();
        stage.feed_stream();
        stage.text("msg_a", &["This", " went by."]);
        // The stream loses some, and continues.
        stage.stream.clear();
        stage.text("msg_b", &["And", " this", " did not."]);
        stage.end("succeeded", json!({}));
        stage.serve();
        let events = stage.events();
        assert_eq!(words(&events), "This went by.And this did not.");
        let last = ["agent_message_chunk And", "agent_message_chunk  this", "agent_message_chunk  did not."];
        assert_eq!(short(&events)[1..4], last, "it is told as it came");
        assert_eq!(short(&events).last().unwrap(), "ended 7 Completed");
    }
}

#[test]
fn opencode2_partial_text_continues_after_a_takeover() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    let at = |name: &str, value: &str| {
        let mut data = json!({ "assistantMessageID": "msg_a", "ordinal": 0 });
        data[name] = value.into();
        data
    };
    stage.durable("session.text.started", json!({ "assistantMessageID": "msg_a", "ordinal": 0 }));
    stage.live("session.text.delta", at("delta", "One, "));
    stage.serve();
    stage.disconnect();
    stage.live("session.text.delta", at("delta", "two, "));
    stage.connect();
    stage.serve();
    stage.live("session.text.delta", at("delta", "three."));
    stage.durable("session.text.ended", at("text", "One, two, three."));
    stage.end("succeeded", json!({}));
    stage.serve();
    let events = stage.events();
    assert_eq!(words(&events), "One, two, three.");
    assert_eq!(short(&events).iter().filter(|short| *short == "error gap").count(), 1, "{:?}", short(&events));
    assert_eq!(short(&events).last().unwrap(), "ended 7 Completed");
}

#[test]
fn opencode2_restarted_server_resumes_or_loses_its_work() {
    for goes_on in [true, false] {
        let mut stage = Stage::open();
        stage.rig.prompt(7, "ses_1", "hello");
        stage.serve();
        stage.begin();
        stage.end("interrupted", json!({ "reason": "shutdown" }));
        stage.serve();
        stage.disconnect();
        stage.connect();
        stage.serve();
        stage.rig.wake();
        stage.serve();
        assert_eq!(short(&stage.events()), ["ready"], "it is not over");
        if goes_on {
            stage.begin();
            stage.text("msg_a", &["Here I am."]);
            stage.end("succeeded", json!({}));
            stage.serve();
            assert_eq!(short(&stage.events()), ["agent_message_chunk Here I am.", "ended 7 Completed"]);
            continue;
        }
        for _ in 0..super::UNSURE {
            stage.rig.wake();
            stage.serve();
        }
        let (_, end) = stage.rig.end();
        assert_eq!(end.message.as_deref(), Some("OpenCode stopped in the middle of it"));
    }
}

#[test]
fn opencode2_silent_work_goes_on_after_a_lost_connection() {
    // It began after the list of active sessions was read first.
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    stage.serve();
    stage.disconnect();
    stage.connect();
    // Requests of different sessions overtake each other.
    stage.rig.fetches.make_contiguous().reverse();
    stage.serve();
    for _ in 0..2 * super::UNSURE {
        stage.rig.wake();
        stage.serve();
    }
    assert_eq!(short(&stage.events()), ["ready"]);
}

#[test]
fn opencode2_reports_a_lost_prompt() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.disconnect();
    stage.connect();
    stage.serve();
    let events = stage.events();
    let Some(RuntimeEvent::Ended { end, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(end.message.as_deref(), Some("the connection was lost before OpenCode accepted the prompt"));
}

#[test]
fn opencode2_lost_prompt_ends_before_work_of_another_client_is_reported() {
    for ended in [true, false] {
        let mut stage = Stage::open();
        // The gateway ends before the prompt is sent; another client prompts before the next gateway reads the log.
        stage.rig.prompt(7, "ses_1", "hello");
        stage.enqueue("msg_theirs", "from the terminal");
        stage.begin();
        stage.text("msg_a", &["Hi."]);
        if ended {
            stage.end("succeeded", json!({}));
        }
        stage.another_gateway(Some((7, "hello")), &[]);
        let mut expected =
            vec!["opened", "ended 7 Error", "began", "user_message_chunk from the terminal", "agent_message_chunk Hi."];
        expected.extend(ended.then_some("done Completed"));
        let events = short(&stage.events());
        let opened = events.iter().position(|event| event == "opened").unwrap();
        assert_eq!(events[opened..], expected);
    }
}

#[test]
fn opencode2_accepted_prompt_behind_work_of_another_client_is_not_lost() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    let id = stage.rig.fetches.iter().find_map(|fetch| parsed(fetch.body.as_ref()?)["id"].as_str().map(str::to_owned));
    stage.enqueue("msg_theirs", "from the terminal");
    stage.begin();
    // OpenCode accepted the prompt, but its reply did not reach the gateway.
    stage.enqueue(&id.unwrap(), "hello");
    stage.text("msg_a", &["Hi."]);
    stage.end("succeeded", json!({}));
    stage.another_gateway(Some((7, "hello")), &[]);
    assert!(!short(&stage.events()).iter().any(|event| event.starts_with("ended 7")));
    stage.begin();
    stage.end("succeeded", json!({}));
    stage.serve();
    assert_eq!(short(&stage.events()), ["ended 7 Completed"]);
}

#[test]
fn opencode2_takeover_continues_where_the_last_gateway_stopped() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "ses_1", "hello");
    stage.serve();
    stage.begin();
    stage.text("msg_a", &["Before."]);
    let asked = json!({ "id": "per_1", "sessionID": "ses_1", "action": "edit", "resources": ["a.txt"] });
    stage.session().permissions.push(asked.clone());
    stage.live("permission.asked", asked);
    stage.serve();
    stage.text("msg_b", &["While", " nobody", " listened."]);
    stage.another_gateway(Some((7, "hello")), &["per_1", "per_0"]);
    let events = stage.events();
    assert_eq!(words(&events), "While nobody listened.");
    assert_eq!(short(&events).last().unwrap(), "taken back per_0 another client of OpenCode");
    assert!(!short(&events).iter().any(|short| short.starts_with("asked")), "people have it already");
    stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
    stage.end("succeeded", json!({}));
    stage.serve();
    assert_eq!(short(&stage.events()), ["ended 7 Completed"]);
    assert!(stage.session().permissions.is_empty());
}

#[test]
fn opencode2_answer_given_before_the_reread_is_sent_after_it() {
    // Before each of the requests that read the session.
    for before in 0..12 {
        let mut stage = Stage::open();
        stage.rig.prompt(7, "ses_1", "hello");
        stage.serve();
        stage.begin();
        let asked = json!({ "id": "per_1", "sessionID": "ses_1", "action": "edit", "resources": ["a.txt"] });
        stage.session().permissions.push(asked.clone());
        stage.live("permission.asked", asked);
        stage.serve();
        stage.take_over(Some((7, "hello")), &["per_1", "per_0"]);
        for _ in 0..before {
            stage.serve_one();
        }
        for key in ["per_1", "per_0"] {
            stage.rig.answer(key, choose("once", Choice::AllowOnce));
        }
        stage.serve();
        assert!(stage.session().permissions.is_empty(), "before {before}");
        let replies = stage.made.iter().filter(|(made, _)| made.ends_with("/permission/per_1/reply")).count();
        assert_eq!(replies, 1, "before {before}");
    }
}

#[test]
fn opencode2_events_of_all_kinds_stand_in_order() {
    let mut stage = Stage::new();
    stage.odd.insert("GET /global/health".into(), (200, json!({ "healthy": true, "version": "1.18.33" }).to_string()));
    stage.serve();
    let events = stage.events();
    assert!(matches!(&events[0], RuntimeEvent::Failed { message } if message.contains("\"opencode\"")), "{events:?}");

    let mut stage = Stage::new();
    stage.odd.insert("GET /api/health".into(), (401, String::new()));
    stage.serve();
    let events = stage.events();
    assert!(
        matches!(&events[0], RuntimeEvent::Failed { message } if message.contains("OPENCODE_SERVER_PASSWORD")),
        "{events:?}"
    );
}

#[test]
fn opencode2_lists_and_sets_models() {
    let mut stage = Stage::open();
    stage.rig.call("ses_1", "model.list", None);
    assert_eq!(stage.rig.replied().unwrap()["models"], json!(["p/m"]));
    stage.rig.call("ses_1", "model.set", Some(r#"{"name":"p/m"}"#));
    stage.serve();
    let events = stage.events();
    assert!(events.iter().any(|events| matches!(events, RuntimeEvent::Replied { reply: Ok(_), .. })), "{events:?}");
    stage.rig.call("ses_1", "model.set", Some(r#"{"name":"p/other"}"#));
    assert!(stage.rig.replied().unwrap_err().message.contains("no such model"));
}

#[test]
fn opencode2_lists_sessions() {
    let mut stage = Stage::open();
    for (params, path) in [
        (r#"{"limit":7}"#, "/api/session?order=desc&limit=7"),
        (r#"{"limit":7,"cursor":"a b"}"#, "/api/session?cursor=a%20b&limit=7"),
    ] {
        stage.rig.call("ses_1", "session.list", Some(params));
        assert_eq!(stage.rig.fetches.back().map(|fetch| fetch.path.as_str()), Some(path));
        stage.serve();
        let events = stage.events();
        assert!(events.iter().any(|events| matches!(events, RuntimeEvent::Replied { reply: Ok(_), .. })), "{events:?}");
    }
}

/// A step between two pieces of work.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A text begins.
    Start,
    /// The text grows.
    Delta,
    /// The text is complete.
    Finish,
    /// The stream loses its pending events.
    Drop,
    /// The stream's pending events arrive.
    Flow,
    /// One request is answered.
    Reply,
    Disconnect,
    Connect,
    /// Another gateway takes over.
    Restart,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// However the stream breaks and the gateway changes: each text is reported once, complete and in order.
    #[test]
    fn opencode2_reports_text_once_despite_disconnects(steps in prop::collection::vec(prop_oneof![
        3 => Just(Step::Start), 6 => Just(Step::Delta), 3 => Just(Step::Finish), 1 => Just(Step::Drop),
        6 => Just(Step::Flow), 4 => Just(Step::Reply), 1 => Just(Step::Disconnect), 1 => Just(Step::Connect),
        1 => Just(Step::Restart),
    ], 1..60)) {
        let mut stage = Stage::open();
        stage.rig.prompt(7, "ses_1", "hello");
        stage.serve();
        stage.begin();
        stage.serve();
        let (mut texts, mut under_way) = (Vec::<String>::new(), None::<String>);
        let at = |n: usize, name: &str, value: &str| {
            let mut data = json!({ "assistantMessageID": format!("msg_{n}"), "ordinal": 0 });
            data[name] = value.into();
            data
        };
        let mut grown = 0;
        for step in steps {
            match step {
                Step::Start if under_way.is_none() => {
                    let n = texts.len();
                    stage.durable("session.text.started", json!({ "assistantMessageID": format!("msg_{n}"), "ordinal": 0 }));
                    under_way = Some(String::new());
                }
                Step::Delta => if let Some(text) = &mut under_way {
                    grown += 1;
                    let piece = format!("<{grown}>");
                    text.push_str(&piece);
                    stage.live("session.text.delta", at(texts.len(), "delta", &piece));
                },
                Step::Finish => if let Some(text) = under_way.take() {
                    stage.durable("session.text.ended", at(texts.len(), "text", &text));
                    texts.push(text);
                },
                // An overflowing stream fails: a loss in its middle shows as a missing number.
                Step::Drop => {
                    stage.stream.clear();
                    stage.disconnect();
                }
                Step::Flow => stage.feed_stream(),
                Step::Reply => { stage.serve_one(); }
                Step::Disconnect if stage.connected => stage.disconnect(),
                Step::Connect if !stage.connected => stage.connect(),
                Step::Restart => stage.another_gateway(Some((7, "hello")), &[]),
                Step::Start | Step::Disconnect | Step::Connect => {}
            }
        }
        if !stage.connected {
            stage.connect();
        }
        stage.serve();
        if let Some(text) = under_way.take() {
            stage.durable("session.text.ended", at(texts.len(), "text", &text));
            texts.push(text);
        }
        stage.end("succeeded", json!({}));
        stage.serve();
        stage.store_checkpoints();
        prop_assert_eq!(words(&stage.received), texts.concat());
        let ends = stage.received.iter().filter(|events| matches!(events, RuntimeEvent::Ended { .. })).count();
        prop_assert_eq!(ends, 1);
    }

    /// Whatever a server sends, nothing panics and every requested session is opened or refused.
    #[test]
    fn opencode2_survives_any_bytes(kind in "[a-z.]{0,30}", text in ".{0,60}", seq in 0u64..5) {
        let mut stage = Stage::open();
        let data = json!({ "sessionID": "ses_1", "text": text, "id": text, "delta": text, "item": text });
        let event = json!({ "type": format!("session.{kind}"), "data": data,
            "durable": { "aggregateID": "ses_1", "seq": seq, "version": 1 } });
        stage.rig.feed(event.to_string());
        stage.rig.feed(text);
        stage.serve();
    }
}
