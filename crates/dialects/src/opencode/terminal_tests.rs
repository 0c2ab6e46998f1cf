//! Tests of the dialect with messages of the plugin from OpenCode 1.18.33, shortened.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::link::{HelperHello, HelperRole, LINK_VERSION, LinkRequest};
use super::super::rig::{Rig, choose, json as parsed, spec};
use super::super::{CarriedState, RequestKey, ResumeTarget, RuntimeCommand, RuntimeEvent};
use super::terminal::ABSENT_MAX;
use plexus_protocol::{Choice, Ticket};

/// The dialect, with terminals that reply in the same way.
struct Bench {
    rig: Rig,
    replies: BTreeMap<String, String>,
    /// The requests that terminals made.
    made: Vec<String>,
    /// `true` if the process of the terminals is alive.
    lives: bool,
    /// `true` if replies have yet to come.
    slow: bool,
}

impl Bench {
    fn new() -> Self {
        let (rig, replies) = (Rig::new(&spec("opencode-terminal")), BTreeMap::new());
        let mut bench = Self { rig, replies, made: Vec::new(), lives: true, slow: false };
        bench.set("GET /global/health", json!({ "version": "1.18.33" }));
        bench.set("GET /config/providers", json!({ "providers": [], "default": {} }));
        bench.set("GET /session", json!([{ "id": "s", "directory": "/w" }, { "id": "old", "directory": "/other" }]));
        bench.set("GET /session/status", json!({}));
        bench.set("GET /permission", json!([]));
        bench.set("GET /question", json!([]));
        bench.set("GET /session/s", json!({ "id": "s", "directory": "/w", "title": "T" }));
        bench.set("GET /session/s/message", json!([]));
        bench.set("POST /permission/p1/reply", json!(true));
        bench.set("POST /session/s/abort", json!(true));
        assert_eq!(bench.take_reports(), ["ready"]);
        bench
    }

    fn set(&mut self, what: &str, body: Value) {
        self.replies.insert(what.into(), body.to_string());
    }

    fn say(&mut self, connection: u64, id: &str, event: Value) {
        let (agent, role, id) = ("opencode".into(), HelperRole::Tunnel, id.into());
        let hello = HelperHello { link: LINK_VERSION, agent, role, id, pid: 7, terminal: None };
        let events = json!({ "hello": hello, "event": event });
        self.rig.feed(json!({ "connection": connection, "started": 9, "said": events }).to_string());
        self.serve();
    }

    fn connect(&mut self, connection: u64, id: &str) {
        self.say(connection, id, json!({ "type": "plexus.hello", "directory": "/w" }));
    }

    fn disconnect(&mut self, connection: u64) {
        self.rig.feed(json!({ "connection": connection, "started": 9 }).to_string());
        self.serve();
    }

    fn event(&mut self, connection: u64, id: &str, kind: &str, mut properties: Value) {
        properties["sessionID"] = "s".into();
        self.say(connection, id, json!({ "id": "evt_1", "type": kind, "properties": properties }));
    }

    fn works(&mut self, connection: u64, id: &str) {
        self.event(connection, id, "session.status", json!({ "status": { "type": "busy" } }));
    }

    fn text(&mut self, message: &str, text: &str) -> Value {
        let info = json!({ "id": message, "role": "assistant", "sessionID": "s", "time": { "created": 1 } });
        let part = json!({ "id": format!("{message}p"), "messageID": message, "type": "text", "text": text,
            "time": { "start": 1 } });
        json!([{ "info": info, "parts": [part] }])
    }

    /// Answers every request of the dialect, as the link endpoint does.
    fn serve(&mut self) {
        if self.slow {
            return;
        }
        while let Some(fetch) = self.rig.fetches.pop_front() {
            match LinkRequest::read(&fetch.path).unwrap() {
                LinkRequest::Process(7, 9) if self.lives => self.rig.reply(&fetch, Some((200, ""))),
                LinkRequest::Tunnel(1.., path) => {
                    let what = format!("{} {}", fetch.method, path.split('?').next().unwrap());
                    self.made.push(format!("{} {path}", fetch.method));
                    match self.replies.get(&what).cloned() {
                        Some(body) => self.rig.reply(&fetch, Some((200, &body))),
                        None => self.rig.reply(&fetch, Some((404, r#"{"_tag":"PermissionNotFoundError"}"#))),
                    }
                }
                _ => self.rig.reply(&fetch, Some((404, ""))),
            }
        }
    }

    fn wake(&mut self, times: u32) {
        for _ in 0..times {
            self.rig.wake();
            self.serve();
        }
    }

    fn open(&mut self, resume: ResumeTarget) {
        let (ticket, cwd, resume) = (Ticket(1), "/w".into(), Some(resume));
        self.rig.tell(RuntimeCommand::Open { ticket, cwd, resume, mcp_servers: Vec::new() });
        self.serve();
    }

    /// Makes a working session that the gateway has opened.
    fn at_work() -> Self {
        let mut bench = Self::new();
        bench.connect(1, "a");
        bench.set("GET /session/status", json!({ "s": { "type": "busy" } }));
        bench.works(1, "a");
        assert_eq!(bench.take_reports(), ["found s in /w"]);
        bench.open(ResumeTarget::new("s".into(), false));
        assert_eq!(bench.take_reports(), ["opened s", "began by the terminal"]);
        bench
    }

    /// Makes another gateway process that opens the sessions of this one.
    fn next_gateway(&self, asks: &[&str]) -> Self {
        let asks = asks.iter().map(|id| RequestKey::unique(*id)).collect();
        let checkpoint = self.rig.checkpoint.clone().unwrap();
        let carried = CarriedState { checkpoint, prompt: None, content: Vec::new(), asks };
        let mut next = Self { lives: self.lives, replies: self.replies.clone(), ..Self::new() };
        next.open(ResumeTarget { native: "s".into(), known: true, carried: Some(Box::new(carried)) });
        next
    }

    fn take_reports(&mut self) -> Vec<String> {
        self.rig.take_events().iter().filter_map(describe).collect()
    }
}

fn describe(event: &RuntimeEvent) -> Option<String> {
    Some(match event {
        RuntimeEvent::Ready { .. } => "ready".into(),
        RuntimeEvent::Found { native, cwd, .. } => format!("found {native} in {}", cwd.as_deref().unwrap_or_default()),
        RuntimeEvent::Opened { native, .. } => format!("opened {native}"),
        RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
        RuntimeEvent::Began { by, .. } => format!("began by {by}"),
        RuntimeEvent::Closed { native, reason } => format!("closed {native}: {reason}"),
        RuntimeEvent::Asked { ask, .. } => format!("asked {}", ask.key.id()),
        RuntimeEvent::TakenBack { key, elsewhere, .. } => {
            format!("taken back {} by {:?}", key.id(), elsewhere.as_ref().map(|e| e.by.as_str()))
        }
        RuntimeEvent::AnswerLost { key, elsewhere, .. } => format!("lost {} to {}", key.id(), elsewhere.by),
        RuntimeEvent::Ended { end, .. } => format!("ended: {}", end.message.as_deref().unwrap_or_default()),
        RuntimeEvent::Replied { reply, .. } => format!("replied: {}", reply.as_ref().unwrap_err().message),
        RuntimeEvent::Event { draft, .. } => parsed(&draft.body)["content"]["text"].as_str()?.to_owned(),
        _ => return None,
    })
}

fn permission(id: &str) -> Value {
    json!({ "id": id, "permission": "bash", "patterns": ["touch x"], "metadata": { "command": "touch x" }, "always": [] })
}

#[test]
fn opencode_terminal_shows_only_what_works_and_reads_only_its_folder() {
    let mut bench = Bench::new();
    bench.connect(1, "a");
    bench.wake(10);
    assert!(bench.take_reports().is_empty(), "sessions that are only listed are not shown");
    assert!(bench.made.len() > 4);
    for path in &bench.made {
        assert!(path.ends_with("directory=%2Fw") || path == "GET /global/health", "{path}");
    }
    bench.works(1, "a");
    assert_eq!(bench.take_reports(), ["found s in /w"]);
}

fn created(parent: Value) -> Value {
    json!({ "info": { "id": "s", "directory": "/w", "title": "New session", "parentID": parent } })
}

#[test]
fn opencode_terminal_finds_a_session_once_it_is_created() {
    for slow in [false, true] {
        let mut bench = Bench::new();
        bench.slow = slow;
        bench.connect(1, "a");
        bench.event(1, "a", "session.created", created(json!("parent")));
        assert!(bench.take_reports().is_empty(), "a subagent's session that does not work yet");
        bench.event(1, "a", "session.created", created(Value::Null));
        bench.slow = false;
        bench.serve();
        assert_eq!(bench.take_reports(), ["found s in /w"]);
        bench.works(1, "a");
        assert!(bench.take_reports().is_empty(), "it was found already");
    }
}

#[test]
fn opencode_terminal_opens_a_session_that_was_created_without_a_read() {
    let events = json!({ "info": { "id": "m0", "role": "user", "sessionID": "s", "time": { "created": 1 } } });
    let part = json!({ "part": { "id": "p0", "messageID": "m0", "sessionID": "s", "type": "text", "text": "hello" } });
    for late in [false, true] {
        let mut bench = Bench::new();
        bench.connect(1, "a");
        bench.event(1, "a", "session.created", created(Value::Null));
        assert_eq!(bench.take_reports(), ["found s in /w"]);
        if late {
            // It is opened when something was said already: that is read.
            bench.event(1, "a", "message.updated", events.clone());
        }
        bench.slow = true;
        bench.open(ResumeTarget::new("s".into(), false));
        assert_eq!(bench.take_reports().is_empty(), late);
        if late {
            continue;
        }
        bench.event(1, "a", "message.updated", events.clone());
        bench.event(1, "a", "message.part.updated", part.clone());
        assert!(bench.take_reports().is_empty(), "whether work follows is not known yet");
        bench.works(1, "a");
        assert_eq!(bench.take_reports(), ["began by the terminal", "hello"]);
    }
}

#[test]
fn opencode_terminal_finds_a_session_that_worked_and_ended_during_a_read() {
    let mut bench = Bench::new();
    bench.slow = true;
    bench.connect(1, "a");
    bench.works(1, "a");
    bench.event(1, "a", "session.status", json!({ "status": { "type": "idle" } }));
    assert!(bench.take_reports().is_empty(), "the read is under way");
    bench.slow = false;
    bench.serve();
    assert_eq!(bench.take_reports(), ["found s in /w"]);
}

#[test]
fn opencode_terminal_finds_a_session_that_worked_before_the_gateway_came() {
    let mut bench = Bench::new();
    let hello = |sessions: Value| json!({ "type": "plexus.hello", "directory": "/w", "sessions": sessions });
    bench.say(1, "a", hello(json!(["s", "deleted"])));
    assert_eq!(bench.take_reports(), ["found s in /w"]);
    let mut bench = Bench::at_work();
    bench.disconnect(1);
    bench.say(2, "a", hello(json!(["s"])));
    assert!(bench.take_reports().is_empty(), "it is open already");
    // It went on in another terminal: the first one does not take it back.
    let mut bench = Bench::at_work();
    bench.set("GET /session/status", json!({}));
    bench.say(2, "b", hello(json!(["s"])));
    assert!(bench.take_reports().is_empty());
}

#[test]
fn opencode_terminal_goes_on_when_its_tunnel_comes_back() {
    let mut bench = Bench::at_work();
    let messages = bench.text("m1", "one ");
    bench.set("GET /session/s/message", messages);
    bench.disconnect(1);
    bench.wake(ABSENT_MAX - 1);
    bench.connect(2, "a");
    assert_eq!(bench.take_reports(), ["one "], "what was missed");
    let messages = bench.text("m1", "one two");
    bench.set("GET /session/s/message", messages);
    // A second connection under the same name: the first is hung up on.
    bench.connect(3, "a");
    assert_eq!(bench.rig.sent()[0]["connection"], 2);
    bench.disconnect(2);
    assert_eq!(bench.take_reports(), ["two"]);
}

#[test]
fn opencode_terminal_ends_with_its_process_or_when_it_stays_away() {
    let mut bench = Bench::at_work();
    bench.disconnect(1);
    bench.wake(ABSENT_MAX);
    assert!(bench.take_reports().is_empty());
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["closed s: its terminal no longer answers"]);
    let mut bench = Bench::at_work();
    bench.rig.feed(json!({ "connection": 0, "ended": 7 }).to_string());
    assert_eq!(bench.take_reports(), ["closed s: its terminal was closed"]);
    bench.rig.prompt(5, "s", "late");
    assert_eq!(bench.take_reports(), ["ended: its terminal is not open"]);
}

#[test]
fn opencode_terminal_answers_are_those_of_the_first() {
    let mut bench = Bench::at_work();
    bench.event(1, "a", "permission.asked", permission("p1"));
    assert_eq!(bench.take_reports(), ["asked p1"]);
    bench.made.clear();
    bench.rig.answer("p1", choose("once", Choice::AllowOnce));
    bench.serve();
    assert_eq!(bench.made, ["POST /permission/p1/reply?directory=%2Fw"]);
    // At the terminal.
    bench.event(1, "a", "permission.asked", permission("p2"));
    bench.event(1, "a", "permission.replied", json!({ "requestID": "p2", "reply": "once" }));
    assert_eq!(bench.take_reports(), ["asked p2", "taken back p2 by Some(\"the terminal\")"]);
    // At the terminal, while ours is under way.
    bench.event(1, "a", "permission.asked", permission("p3"));
    bench.rig.answer("p3", choose("reject", Choice::RejectOnce));
    bench.event(1, "a", "permission.replied", json!({ "requestID": "p3", "reply": "once" }));
    assert_eq!(bench.take_reports(), ["asked p3", "lost p3 to the terminal"]);
}

#[test]
fn opencode_terminal_goes_on_in_the_next_gateway() {
    let mut bench = Bench::at_work();
    bench.event(1, "a", "permission.asked", permission("p1"));
    bench.take_reports();
    let mut next = bench.next_gateway(&["p1"]);
    assert!(next.take_reports().is_empty(), "the tunnel is not there yet");
    next.wake(2);
    let mut asked = permission("p1");
    asked["sessionID"] = "s".into();
    next.set("GET /permission", json!([asked]));
    next.connect(1, "a");
    assert_eq!(next.take_reports(), ["opened s", "began by the terminal"]);
    assert_eq!(next.rig.dialect.asks().len(), 1);
    // A tunnel that is lost while the session is being opened.
    let mut next = bench.next_gateway(&[]);
    next.rig.feed(
        json!({ "connection": 1, "started": 9, "said": {
            "hello": { "link": 1, "agent": "opencode", "role": "tunnel", "id": "a", "pid": 7 },
            "event": { "type": "plexus.hello", "directory": "/w" } } })
        .to_string(),
    );
    next.rig.fetches.clear();
    next.disconnect(1);
    next.connect(2, "a");
    assert_eq!(next.take_reports(), ["opened s", "began by the terminal"]);
}

#[test]
fn opencode_terminal_that_is_gone_does_not_go_on() {
    let gone = "not opened: the terminal of this session is not open: run `opencode --continue` in its folder, and it \
        goes on here with its next prompt";
    let mut bench = Bench::at_work();
    let mut next = bench.next_gateway(&[]);
    next.wake(ABSENT_MAX + 1);
    assert_eq!(next.take_reports(), [gone]);
    bench.lives = false;
    let mut next = bench.next_gateway(&[]);
    assert_eq!(next.take_reports(), [gone]);
}

#[test]
fn opencode_terminal_session_moves_to_the_terminal_that_works_on_it() {
    let mut bench = Bench::at_work();
    bench.connect(2, "b");
    bench.works(2, "b");
    assert_eq!(bench.take_reports(), ["closed s: it continues in another terminal"]);
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["found s in /w"]);
    bench.open(ResumeTarget::new("s".into(), true));
    assert_eq!(bench.take_reports()[0], "opened s");
    bench.disconnect(1);
    bench.wake(ABSENT_MAX + 1);
    assert!(bench.take_reports().is_empty(), "the other terminal has it");
}

#[test]
fn opencode_terminal_refuses_what_only_its_person_can_do() {
    let mut bench = Bench::at_work();
    bench.rig.open(9);
    assert!(bench.take_reports()[0].starts_with("not opened: a terminal is started by hand: run `opencode`"));
    bench.made.clear();
    bench.rig.call("s", "session.share", None);
    assert!(bench.take_reports()[0].contains("session.share: a terminal supports only"));
    bench.serve();
    assert!(bench.made.is_empty());
    // What says no hello is hung up on: it connects again.
    bench.works(5, "c");
    assert_eq!(bench.rig.sent()[0]["connection"], 5);
}
