//! Tests of the dialect with messages of the extension from Copilot 1.0.102, shortened.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::CopilotQuestion;
use super::terminal::ABSENT_MAX;
use crate::bench;
use plexus_dialects::link::{HelperHello, HelperRole, LINK_VERSION, LinkRequest};
use plexus_dialects::rig::{Rig, choose, json as parsed, raw, spent};
use plexus_dialects::{RequestKey, RequestSubject, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{Choice, Decision, Ticket};

/// The dialect, with terminals that reply in the same way.
struct Bench {
    rig: Rig,
    /// The events that Copilot stores.
    log: Vec<Value>,
    state: Value,
    replies: BTreeMap<String, String>,
    /// The requests to the extension, except reads.
    made: Vec<String>,
    /// `true` if the process of the terminals is alive.
    lives: bool,
}

impl Bench {
    fn new() -> Self {
        let state = json!({ "processing": false, "pending": [], "questions": [] });
        let (log, made, replies) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut bench = Self { rig: bench::rig("copilot-terminal"), log, state, replies, made, lives: true };
        bench.replies.insert("POST /send".into(), json!({ "messageId": "ours" }).to_string());
        bench.replies.insert("POST /permission/p1".into(), json!({ "success": true }).to_string());
        bench.replies.insert("POST /question/f1".into(), json!({ "success": true }).to_string());
        bench.replies.insert("POST /abort".into(), json!({ "success": true }).to_string());
        assert_eq!(bench.take_reports(), ["ready"]);
        bench
    }

    fn say(&mut self, connection: u64, session: &str, event: &Value) {
        let (agent, role, id) = ("copilot".into(), HelperRole::Tunnel, format!("tunnel of {session}"));
        let hello = HelperHello { link: LINK_VERSION, agent, role, id, pid: 7, terminal: None };
        let events = json!({ "hello": hello, "event": event });
        self.rig.feed(json!({ "connection": connection, "started": 9, "said": events }).to_string());
        self.serve();
    }

    fn connect(&mut self, connection: u64, session: &str) {
        self.say(connection, session, &json!({ "type": "plexus.hello", "session": session, "cwd": "/w" }));
    }

    fn disconnect(&mut self, connection: u64) {
        self.rig.feed(json!({ "connection": connection, "started": 9 }).to_string());
        self.serve();
    }

    /// Adds an event that Copilot stores.
    fn kept(&mut self, type_name: &str, data: Value) -> Value {
        let id = format!("e{}", self.log.len());
        let event = json!({ "type": type_name, "data": data, "id": id, "parentId": null });
        self.log.push(event.clone());
        event
    }

    /// Reports an event of the session.
    fn happens(&mut self, type_name: &str, data: Value) {
        let event = self.kept(type_name, data);
        self.say(1, "s", &event);
    }

    /// Reports an event that Copilot does not store.
    fn passes(&mut self, type_name: &str, data: Value) {
        self.say(
            1,
            "s",
            &json!({ "type": type_name, "data": data, "ephemeral": true, "id": "passing", "parentId": null }),
        );
    }

    /// Returns a page of the log: the cursor is an index in it. Without one the whole log is read at once.
    fn page(&self, cursor: Option<&str>) -> String {
        const PAGE: usize = 3;
        if cursor.is_none() {
            return json!({ "events": self.log, "cursor": self.log.len().to_string(), "state": self.state })
                .to_string();
        }
        let from = cursor.map_or(0, |hex| {
            let text = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
            String::from_utf8(text).unwrap().parse::<usize>().unwrap()
        });
        let to = self.log.len().min(from + PAGE);
        let more = to < self.log.len();
        let mut page = json!({ "events": &self.log[from..to], "cursor": to.to_string(), "more": more });
        if !more {
            page["state"] = self.state.clone();
        }
        page.to_string()
    }

    /// Answers every request of the dialect, as the link endpoint does.
    fn serve(&mut self) {
        while let Some((fetch, request)) = bench::next_request(&mut self.rig) {
            match request {
                LinkRequest::Process(7, 9) if self.lives => self.rig.reply(&fetch, Some((200, ""))),
                LinkRequest::Tunnel(1.., path) if path.starts_with("/events") => {
                    let page = self.page(path.strip_prefix("/events/"));
                    self.rig.reply(&fetch, Some((200, &page)));
                }
                LinkRequest::Tunnel(1.., path) => {
                    let body = fetch.body.as_deref().map_or(String::new(), |body| String::from_utf8_lossy(body).into());
                    self.made.push(format!("{path} {body}"));
                    match self.replies.get(&format!("{} {path}", fetch.method)).cloned() {
                        Some(body) => self.rig.reply(&fetch, Some((200, &body))),
                        None => self.rig.reply(&fetch, None),
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

    /// Makes a session that the gateway has opened.
    fn opened() -> Self {
        let mut bench = Self::new();
        bench.connect(1, "s");
        assert_eq!(bench.take_reports(), ["found s in /w"]);
        bench.open(ResumeTarget::new("s".into(), false));
        assert_eq!(bench.take_reports(), ["opened s"]);
        bench
    }

    /// Makes an opened session in which the user has sent a prompt.
    fn at_work() -> Self {
        let mut bench = Self::opened();
        bench.happens("user.message", json!({ "content": "do it", "messageId": "m1", "delivery": "idle" }));
        bench.state["processing"] = true.into();
        assert_eq!(bench.take_reports(), ["began by the terminal", "do it"]);
        bench
    }

    fn open(&mut self, resume: ResumeTarget) {
        bench::open(&mut self.rig, resume);
        self.serve();
    }

    /// Makes another gateway process that opens the sessions of this one.
    fn next_gateway(&self, asks: &[&str], prompt: Option<&str>) -> Self {
        let resume = bench::left_by(&self.rig, "s", asks, prompt.map(|text| (5, text)));
        let mut next = Self::new();
        (next.lives, next.log, next.state) = (self.lives, self.log.clone(), self.state.clone());
        next.replies.clone_from(&self.replies);
        next.open(resume);
        next
    }

    fn take_reports(&mut self) -> Vec<String> {
        self.rig.take_events().iter().filter_map(describe).collect()
    }

    fn answer(&mut self, key: &str, decision: Decision) {
        self.rig.answer(key, decision);
        self.serve();
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
        RuntimeEvent::Ended { end, .. } => format!("ended: {:?} {}", end.status, end.message.as_deref().unwrap_or("-")),
        RuntimeEvent::Done { end, .. } => format!("done: {:?} {}", end.status, end.message.as_deref().unwrap_or("-")),
        RuntimeEvent::Replied { reply, .. } => format!("replied: {}", reply.as_ref().unwrap_err().message),
        RuntimeEvent::Event { draft, .. } => {
            let body = parsed(&draft.body);
            let text = body["content"]["text"].as_str().or(body["title"].as_str());
            text.or(body["message"].as_str()).or(body["status"].as_str())?.to_owned()
        }
        _ => return None,
    })
}

fn permission() -> Value {
    let prompt = json!({ "kind": "commands", "fullCommandText": "touch x", "intention": "Make x", "toolCallId": "c1",
        "commandIdentifiers": ["touch"], "canOfferSessionApproval": true });
    json!({ "requestId": "p1", "promptRequest": prompt, "permissionRequest": { "kind": "shell" } })
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "colour": { "type": "string", "enum": ["Red", "Blue"] } } });
    json!({ "requestId": "f1", "message": "Which?", "requestedSchema": schema, "toolCallId": "c2" })
}

fn pending(bench: &mut Bench) {
    bench.state["pending"] = json!([{ "requestId": "p1", "request": permission()["promptRequest"] }]);
}

fn completed(source: &str) -> Value {
    json!({ "requestId": "p1", "result": { "kind": "approved" }, "decisionSource": source })
}

fn once() -> Decision {
    choose("approve-once", Choice::AllowOnce)
}

#[test]
fn copilot_terminal_shows_a_turn() {
    let mut bench = Bench::at_work();
    bench.passes("assistant.reasoning_delta", json!({ "reasoningId": "r", "deltaContent": "hm " }));
    bench.passes("assistant.message_start", json!({ "messageId": "a" }));
    bench.passes("assistant.message_delta", json!({ "messageId": "a", "deltaContent": "one " }));
    bench.happens("assistant.message", json!({ "messageId": "a", "content": "one two", "reasoningText": "hm hm" }));
    bench.happens(
        "tool.execution_start",
        json!({ "toolCallId": "c", "toolName": "bash", "arguments": { "command": "ls" } }),
    );
    let end = json!({ "toolCallId": "c", "success": true, "result": { "content": "x" } });
    bench.happens("tool.execution_complete", end);
    bench.passes("session.title_changed", json!({ "title": "\nA title\nmore" }));
    bench.passes("session.idle", json!({}));
    let reports = ["hm ", "one ", "hm", "two", "ls", "completed", "A title", "done: Completed -"];
    assert_eq!(bench.take_reports(), reports);
    // A subagent's affairs are its own.
    bench.happens("assistant.message", json!({ "messageId": "b", "content": "x", "parentToolCallId": "c" }));
    assert_eq!(bench.take_reports(), [""; 0]);
    // A failed turn, and a stopped one.
    bench.happens("user.message", json!({ "content": "again" }));
    bench.happens("session.error", json!({ "errorType": "query", "message": "500" }));
    bench.passes("session.idle", json!({}));
    assert_eq!(bench.take_reports(), ["began by the terminal", "again", "done: Error 500"]);
    bench.happens("user.message", json!({ "content": "again" }));
    bench.happens("user.message", json!({ "content": "and this", "delivery": "steering" }));
    bench.happens("abort", json!({ "reason": "user_initiated" }));
    bench.passes("session.idle", json!({ "aborted": true }));
    assert_eq!(bench.take_reports(), ["began by the terminal", "again", "and this", "done: Cancelled -"]);
}

#[test]
fn copilot_terminal_reports_each_event_once_wherever_a_gateway_is_lost() {
    let mut bench = Bench::at_work();
    for n in 0..40 {
        bench.happens("assistant.message", json!({ "messageId": format!("a{n}"), "content": format!("text {n}") }));
    }
    assert_eq!(bench.take_reports().len(), 40);
    // The tunnel is lost, and comes back: nothing is doubled, what was missed is there.
    bench.disconnect(1);
    bench.kept("assistant.message", json!({ "messageId": "b", "content": "missed" }));
    bench.connect(1, "s");
    assert_eq!(bench.take_reports(), ["missed"]);
    // So it is with another gateway; text that streams goes on.
    bench.passes("assistant.message_start", json!({ "messageId": "c" }));
    bench.passes("assistant.message_delta", json!({ "messageId": "c", "deltaContent": "one " }));
    assert_eq!(bench.take_reports(), ["one "]);
    bench.state["partial"] = json!({ "messageId": "c", "text": "one two " });
    let mut next = bench.next_gateway(&[], None);
    next.connect(1, "s");
    assert_eq!(next.take_reports(), ["opened s", "two "]);
    next.passes("assistant.message_delta", json!({ "messageId": "c", "deltaContent": "three" }));
    next.happens("assistant.message", json!({ "messageId": "c", "content": "one two three" }));
    next.passes("session.idle", json!({}));
    assert_eq!(next.take_reports(), ["three", "done: Completed -"]);
    // The end of the turn was missed.
    bench.kept("assistant.message", json!({ "messageId": "c", "content": "one two" }));
    (bench.state["processing"], bench.state["partial"]) = (false.into(), Value::Null);
    let mut next = bench.next_gateway(&[], None);
    next.connect(1, "s");
    assert_eq!(next.take_reports(), ["opened s", "two", "done: Completed -"]);
}

#[test]
fn copilot_terminal_shows_the_past_without_its_turns() {
    let mut bench = Bench::new();
    bench.kept("user.message", json!({ "content": "long ago" }));
    bench.kept("permission.requested", permission());
    bench.kept("permission.completed", completed("human_response"));
    bench.kept("assistant.message", json!({ "messageId": "a", "content": "it was done" }));
    bench.connect(1, "s");
    bench.open(ResumeTarget::new("s".into(), false));
    assert_eq!(bench.take_reports(), ["found s in /w", "opened s", "long ago", "it was done"]);
    let mut again = Bench::new();
    again.log.clone_from(&bench.log);
    again.connect(1, "s");
    again.open(ResumeTarget::new("s".into(), true));
    let reports = again.take_reports();
    assert_eq!(reports[..2], ["found s in /w", "opened s"]);
    assert!(reports[2].contains("may be missing") && reports.len() == 3, "{reports:?}");
}

#[test]
fn copilot_terminal_answers_are_those_of_the_first() {
    // Elsewhere first: its completion names nobody.
    let mut bench = Bench::at_work();
    bench.happens("permission.requested", permission());
    assert_eq!(bench.take_reports(), ["asked p1"]);
    bench.answer("p1", once());
    assert_eq!(bench.made, [r#"/permission/p1 {"kind":"approve-once"}"#]);
    bench.happens("permission.completed", json!({ "requestId": "p1", "result": { "kind": "approved" } }));
    assert_eq!(bench.take_reports(), [""; 0]);
    // The terminal first.
    let mut bench = Bench::at_work();
    bench.happens("permission.requested", permission());
    bench.happens("permission.completed", completed("human_response"));
    assert_eq!(bench.take_reports(), ["asked p1", "taken back p1 by Some(\"the terminal\")"]);
    // Both at once.
    for refused_first in [true, false] {
        let mut bench = Bench::at_work();
        bench.happens("permission.requested", permission());
        bench.replies.insert("POST /permission/p1".into(), json!({ "success": false }).to_string());
        if refused_first {
            bench.answer("p1", once());
            bench.happens("permission.completed", completed("human_response"));
        } else {
            bench.rig.answer("p1", once());
            let done = bench.kept("permission.completed", completed("human_response"));
            let fetch = bench.rig.fetches.pop_front().unwrap();
            bench.say(1, "s", &done);
            bench.rig.reply(&fetch, Some((200, r#"{"success":false}"#)));
        }
        assert_eq!(bench.take_reports(), ["asked p1", "lost p1 to the terminal"], "{refused_first}");
    }
    // It was withdrawn.
    let mut bench = Bench::at_work();
    bench.happens("permission.requested", permission());
    bench.happens("permission.completed", json!({ "requestId": "p1", "result": { "kind": "cancelled" } }));
    assert_eq!(bench.take_reports(), ["asked p1", "taken back p1 by None"]);
}

#[test]
fn copilot_terminal_forms_are_answered_by_their_ids() {
    let mut bench = Bench::at_work();
    bench.passes("elicitation.requested", form());
    bench.answer("f1", Decision::Ids(vec!["Blue".into()]));
    assert_eq!(bench.made, [r#"/question/f1 {"action":"accept","content":{"colour":"Blue"}}"#]);
    bench.passes("elicitation.completed", json!({ "requestId": "f1", "action": "accept" }));
    assert_eq!(bench.take_reports(), ["asked f1"]);
    // The terminal was first: only the reply says so.
    bench.passes("elicitation.requested", form());
    bench.rig.answer("f1", Decision::Ids(vec!["Blue".into()]));
    let fetch = bench.rig.fetches.pop_front().unwrap();
    bench.passes("elicitation.completed", json!({ "requestId": "f1", "action": "accept" }));
    bench.rig.reply(&fetch, Some((200, r#"{"success":false}"#)));
    assert_eq!(bench.take_reports(), ["asked f1", "lost f1 to the terminal"]);
    bench.passes("elicitation.requested", form());
    bench.passes("elicitation.completed", json!({ "requestId": "f1", "action": "accept" }));
    assert_eq!(bench.take_reports(), ["asked f1", "taken back f1 by Some(\"the terminal\")"]);
}

#[test]
fn copilot_terminal_questions_go_on_in_the_next_gateway() {
    let mut bench = Bench::at_work();
    bench.happens("permission.requested", permission());
    bench.passes("elicitation.requested", form());
    pending(&mut bench);
    bench.state["questions"] = json!([form()]);
    // The decision comes before the tunnel is back.
    let mut next = bench.next_gateway(&["p1", "f1"], None);
    next.answer("p1", once());
    assert_eq!(next.made, [""; 0]);
    next.connect(1, "s");
    assert_eq!(next.made, [r#"/permission/p1 {"kind":"approve-once"}"#]);
    next.answer("f1", Decision::Ids(vec!["Red".into()]));
    assert_eq!(
        (next.made.len(), next.take_reports()),
        (2, vec!["opened s".into()]),
        "they are known: nobody is asked again"
    );
    // What was asked and decided meanwhile.
    bench.state["questions"] = json!([]);
    let mut next = bench.next_gateway(&["f1"], None);
    next.kept("permission.completed", completed("human_response"));
    next.state["pending"] = json!([{ "requestId": "p2", "request": permission()["promptRequest"] }]);
    next.connect(1, "s");
    assert_eq!(next.take_reports(), ["opened s", "asked p2", "taken back f1 by Some(\"the terminal\")"]);
}

#[test]
fn copilot_terminal_prompts_wait_until_it_is_idle() {
    let mut bench = Bench::at_work();
    bench.rig.prompt(5, "s", "from elsewhere");
    bench.serve();
    assert_eq!(bench.made, [""; 0]);
    bench.passes("session.idle", json!({}));
    assert_eq!(bench.made, [r#"/send {"prompt":"from elsewhere"}"#]);
    bench.happens("user.message", json!({ "content": "from elsewhere", "messageId": "ours" }));
    bench.happens("assistant.message", json!({ "messageId": "a", "content": "yes" }));
    bench.rig.cancel(5, "s");
    bench.serve();
    bench.passes("session.idle", json!({ "aborted": true }));
    assert_eq!(bench.made[1..], ["/abort {}"]);
    assert_eq!(bench.take_reports(), ["done: Completed -", "yes", "ended: Cancelled -"]);
    // One that an earlier gateway sent, or not.
    for arrived in [true, false] {
        bench.state["processing"] = arrived.into();
        let mut next = bench.next_gateway(&[], Some("once more"));
        if arrived {
            next.kept("user.message", json!({ "content": "once more", "messageId": "x" }));
        }
        next.connect(1, "s");
        next.wake(20);
        assert_eq!(next.made.len(), usize::from(!arrived), "{:?}", next.made);
        next.passes("session.idle", json!({}));
        let ended = next.take_reports().contains(&"ended: Completed -".to_owned());
        assert_eq!(ended, arrived);
    }
}

#[test]
fn copilot_terminal_ends_with_its_process_or_when_it_stays_away() {
    let mut bench = Bench::at_work();
    bench.rig.feed(r#"{"connection":0,"ended":7}"#);
    assert_eq!(bench.take_reports(), ["done: Cancelled -", "closed s: its terminal was closed"]);
    let mut bench = Bench::opened();
    bench.disconnect(1);
    bench.wake(ABSENT_MAX);
    assert_eq!(bench.take_reports(), [""; 0]);
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["closed s: its terminal no longer answers"]);
    // Another session in it.
    let mut bench = Bench::opened();
    bench.disconnect(1);
    bench.connect(2, "t");
    assert_eq!(bench.take_reports(), ["closed s: another session began in its terminal", "found t in /w"]);
    // It ended while no gateway ran.
    let mut bench = Bench::opened();
    bench.lives = false;
    assert_eq!(bench.next_gateway(&[], None).take_reports(), ["opened s", "closed s: its terminal was closed"]);
    // What no gateway has seen is not there.
    let mut bench = Bench::new();
    bench.open(ResumeTarget::new("x".into(), true));
    assert!(bench.take_reports()[0].starts_with("not opened: the terminal of this session is not open"));
}

#[test]
fn copilot_terminal_reads_hostile_events() {
    let mut bench = Bench::at_work();
    for (type_name, data) in [
        ("user.message", json!([])),
        ("permission.requested", json!({ "requestId": "p/../x", "promptRequest": { "kind": "commands" } })),
        ("permission.requested", json!({ "requestId": "p9" })),
        ("assistant.message", Value::Null),
        ("tool.execution_start", json!({ "toolCallId": 3 })),
        ("elicitation.requested", json!({ "requestId": 1 })),
        ("assistant.message", json!({ "messageId": "x".repeat(1000), "content": "x" })),
        ("permission.requested", json!({ "requestId": "big", "promptRequest": { "kind": "x".repeat(17 << 20) } })),
        ("nobody.knows", json!("x")),
    ] {
        bench.happens(type_name, data);
    }
    bench.say(1, "s", &json!("no event"));
    let asked = bench.take_reports().into_iter().filter(|reports| reports.starts_with("asked")).count();
    assert_eq!(asked, 0);
    // Events that come before what was missed is read are few; the rest is read.
    let mut bench = Bench::new();
    bench.connect(1, "s");
    let open = RuntimeCommand::Open {
        ticket: Ticket(1),
        cwd: "/w".into(),
        resume: Some(ResumeTarget::new("s".into(), false)),
        mcp_servers: Vec::new(),
    };
    bench.rig.tell(open);
    let read = bench.rig.fetches.pop_front().unwrap();
    for n in 0..2000 {
        let message = json!({ "messageId": format!("a{n}"), "content": format!("text {n}") });
        bench.happens("assistant.message", message);
    }
    let page = json!({ "events": [], "cursor": "0", "state": { "processing": true } }).to_string();
    bench.rig.reply(&read, Some((200, &page)));
    bench.serve();
    let reports = bench.take_reports();
    let once = |n: usize| reports.iter().filter(|reports| **reports == format!("text {n}")).count() == 1;
    assert!((0..2000).all(once), "each is told once");
}

fn question(prompt: &Value) -> plexus_dialects::AgentRequest {
    CopilotQuestion::Permission { prompt: raw(&prompt.to_string()) }.request(&RequestKey::unique("p"))
}

#[test]
fn copilot_questions_show_exactly_what_is_asked() {
    let ask = question(&permission()["promptRequest"]);
    assert_eq!(ask.subject, RequestSubject::Command { argv: vec!["touch x".into()], cwd: None });
    assert_eq!((ask.title.as_str(), ask.message.as_deref()), ("touch x", Some("Make x")));
    let ids: Vec<&str> = ask.options.iter().map(|offer| offer.id.as_str()).collect();
    assert_eq!((ids, ask.allow_reason), (vec!["approve-once", "approve-for-session", "reject"], true));
    let write =
        json!({ "kind": "write", "fileName": "/w/a", "diff": "+x", "intention": "", "canOfferSessionApproval": false });
    let ask = question(&write);
    assert_eq!(ask.subject, RequestSubject::Diff { path: "/w/a".into(), diff: "+x".into() });
    assert_eq!(ask.options.len(), 2);
    let fetch = json!({ "kind": "url", "url": "https://x/", "redirectedFrom": "https://y/" });
    assert!(
        matches!(question(&fetch).subject, RequestSubject::Fetch { url, more } if url == "https://x/" && more.contains("y"))
    );
    let tool = json!({ "kind": "mcp", "serverName": "s", "toolName": "t", "args": { "a": 1 } });
    assert!(matches!(question(&tool).subject, RequestSubject::Tool { name, .. } if name == "s/t"));
    let bypass = json!({ "kind": "commands", "fullCommandText": "ls", "requestSandboxBypass": true });
    assert!(question(&bypass).message.unwrap().contains("outside of the sandbox"));
    // What is about Copilot's own extensions, and what nobody knows, is only shown.
    for only in [
        json!({ "kind": "extension-permission-access", "extensionName": "x" }),
        json!({ "kind": "commands" }),
        json!({ "kind": "later" }),
        json!([]),
    ] {
        let ask = question(&only);
        assert!(ask.observe_only && ask.options.is_empty(), "{only}");
        assert!(matches!(ask.subject, RequestSubject::Unreadable { .. }), "{only}");
    }
}

#[test]
fn copilot_terminal_tells_the_tokens_of_each_call() {
    let mut bench = Bench::at_work();
    let usage = json!({ "model": "m", "inputTokens": 9, "outputTokens": 2, "cacheReadTokens": 4, "cost": 1 });
    bench.passes("assistant.usage", usage);
    bench.passes("assistant.usage", json!({ "model": "m", "inputTokens": 1, "cacheReadTokens": 4 }));
    assert_eq!(spent(&bench.rig.events).counts(), [Some(14), Some(2), Some(8), None, None]);
}

#[test]
fn copilot_answers_are_copilots() {
    let asked = CopilotQuestion::Permission { prompt: raw(&permission()["promptRequest"].to_string()) };
    let sent = |decision: &Decision| asked.answer(decision).unwrap();
    assert_eq!(sent(&once()), Some(json!({ "kind": "approve-once" })));
    let approval = json!({ "kind": "commands", "commandIdentifiers": ["touch"] });
    let always = choose("approve-for-session", Choice::AllowAlways);
    assert_eq!(sent(&always), Some(json!({ "kind": "approve-for-session", "approval": approval })));
    let reason = Some("not now".to_owned());
    let no = Decision::Option { id: "reject".into(), kind: Choice::RejectOnce, reason };
    assert_eq!(sent(&no), Some(json!({ "kind": "reject", "feedback": "not now" })));
    for nothing in [Decision::Expired, Decision::Withdrawn, choose("x", Choice::AllowOnce)] {
        assert_eq!(sent(&nothing), None, "the terminal decides");
    }
    let asked = CopilotQuestion::Form { data: raw(&form().to_string()) };
    assert!(asked.answer(&Decision::Ids(vec!["Green".into()])).is_err());
    assert_eq!(asked.answer(&Decision::Ids(Vec::new())).unwrap(), Some(json!({ "action": "cancel" })));
    assert_eq!(asked.answer(&Decision::Expired).unwrap(), None);
    assert_eq!(asked.request(&RequestKey::unique("f")).tool_call_id.as_deref(), Some("c2"));
}
