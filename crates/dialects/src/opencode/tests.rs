//! Tests of the dialect with a small simulated server, and properties over arbitrary input. One file for one bench.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::rig::{Rig, choose, json as parsed, raw, spec};
use super::super::{
    CarriedState, HttpRequest, McpServer, OpenedAs, RequestKey, ResumeTarget, RuntimeCommand, RuntimeEvent, ToolCallRef,
};
use plexus_protocol::{CallDigest, Choice, Decision, Kind, RuntimeSpec, Ticket};

const PAGE: &str = "<!doctype html><html></html>";

/// A connection, with its server's replies: by method and path without the query.
struct Stage {
    rig: Rig,
    replies: BTreeMap<String, (u16, String)>,
    made: Vec<(String, Value)>,
    events: u64,
}

impl Stage {
    fn new() -> Self {
        let spec = RuntimeSpec { cwd: "/w".into(), ..spec("opencode") };
        let rig = Rig::new(&spec);
        let mut stage = Self { rig, replies: BTreeMap::new(), made: Vec::new(), events: 0 };
        stage.set("GET /global/health", 200, json!({ "healthy": true, "version": "1.18.33" }));
        stage.set(
            "GET /config/providers",
            200,
            json!({ "providers": [{ "id": "p", "models": { "m": { "id": "m", "name": "M", "limit": { "context": 1000 } } } }],
                    "default": { "p": "m" } }),
        );
        stage.set("GET /experimental/session", 200, json!([]));
        stage.set("GET /session/status", 200, json!({}));
        stage.set("GET /permission", 200, json!([]));
        stage.set("GET /question", 200, json!([]));
        stage.set("POST /session", 200, json!({ "id": "s", "directory": "/w", "title": "New" }));
        stage.set("GET /session/s", 200, json!({ "id": "s", "directory": "/w", "title": "New" }));
        stage.set("GET /session/s/message", 200, json!([]));
        stage.set("POST /session/s/abort", 200, json!(true));
        stage.replies.insert("POST /session/s/prompt_async".into(), (204, String::new()));
        stage
    }

    /// Makes a ready connection with the session `s` open.
    fn open() -> Self {
        let mut stage = Self::new();
        stage.serve();
        assert!(matches!(stage.rig.one(), RuntimeEvent::Ready { agent: Some(agent) } if agent == "OpenCode 1.18.33"));
        stage.listens();
        stage.rig.open(1);
        stage.serve();
        assert!(matches!(stage.rig.one(), RuntimeEvent::Opened { how: OpenedAs::New, .. }));
        stage.made.clear();
        stage
    }

    /// Sends the first event, after which everything is read again.
    fn listens(&mut self) {
        self.event("server.heartbeat", json!({}));
        self.rig.wake();
        self.serve();
    }

    fn set(&mut self, what: &str, status: u16, body: Value) {
        self.replies.insert(what.into(), (status, body.to_string()));
    }

    fn serve_one(&mut self, fetch: &HttpRequest) {
        let path = fetch.path.split('?').next().unwrap();
        let what = format!("{} {path}", fetch.method);
        let body = fetch.body.as_ref().map_or(Value::Null, |body| parsed(body));
        self.made.push((format!("{} {}", fetch.method, fetch.path), body));
        let (status, body) = self.replies.get(&what).cloned().unwrap_or((200, PAGE.into()));
        self.rig.reply(fetch, Some((status, &body)));
    }

    /// Replies to all requests, and to those that follow from them.
    fn serve(&mut self) {
        while let Some(fetch) = self.rig.fetches.pop_front() {
            self.serve_one(&fetch);
        }
    }

    fn event(&mut self, type_name: &str, mut properties: Value) {
        self.events += 1;
        if properties.get("sessionID").is_none() {
            properties["sessionID"] = "s".into();
        }
        let payload = json!({ "id": format!("evt_{}", self.events), "type": type_name, "properties": properties });
        self.rig.feed(json!({ "directory": "/w", "project": "global", "payload": payload }).to_string());
    }

    fn user(&mut self, message: &str, text: &str) {
        self.event("message.updated", json!({ "info": { "id": message, "role": "user", "sessionID": "s" } }));
        let part = json!({ "id": format!("{message}p"), "messageID": message, "type": "text", "text": text });
        self.event("message.part.updated", json!({ "part": part }));
    }

    fn assistant(&mut self, message: &str, complete: bool) {
        let mut info = json!({ "id": message, "role": "assistant", "sessionID": "s", "time": { "created": 1 },
            "providerID": "p", "modelID": "m" });
        if complete {
            info["time"]["completed"] = 2.into();
            info["finish"] = "stop".into();
        }
        self.event("message.updated", json!({ "info": info }));
    }

    fn text(&mut self, message: &str, part: &str, text: &str, over: bool) {
        let mut time = json!({ "start": 1 });
        if over {
            time["end"] = 2.into();
        }
        let part = json!({ "id": part, "messageID": message, "type": "text", "text": text, "time": time });
        self.event("message.part.updated", json!({ "part": part }));
    }

    fn delta(&mut self, message: &str, part: &str, delta: &str) {
        let piece = json!({ "messageID": message, "partID": part, "field": "text", "delta": delta });
        self.event("message.part.delta", piece);
    }

    fn status(&mut self, type_name: &str) {
        self.event("session.status", json!({ "status": { "type": type_name } }));
        if type_name == "idle" {
            self.event("session.idle", json!({}));
        }
    }

    fn permission(&mut self, id: &str) {
        self.event("permission.asked", asks(id));
    }

    /// Makes a bench with a running prompt of the gateway.
    fn at_work() -> Self {
        let mut stage = Self::open();
        stage.rig.prompt(7, "s", "do it");
        stage.serve();
        stage.user("m1", "do it");
        stage.status("busy");
        stage.assistant("m2", false);
        assert!(stage.rig.take_events().is_empty(), "our own words are told by the gateway");
        stage
    }

    /// Opens `s` with the state that another gateway process stored.
    fn go_on(&mut self, before: &Self, prompt: Option<u64>, asks: &[&str]) {
        let carried = CarriedState {
            checkpoint: before.rig.checkpoint.clone().unwrap(),
            prompt: prompt.map(Ticket),
            content: vec![json!({ "type": "text", "text": "do it" }).to_string()],
            asks: asks.iter().map(|key| RequestKey::unique(*key)).collect(),
        };
        let resume = Some(ResumeTarget { native: "s".into(), known: true, carried: Some(Box::new(carried)) });
        self.rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
    }

    fn reported(&mut self) -> Vec<String> {
        self.rig.take_events().iter().map(describe).collect()
    }
}

fn asks(id: &str) -> Value {
    json!({ "id": id, "sessionID": "s", "permission": "bash", "patterns": ["touch x"], "metadata": { "command": "touch x" },
        "always": ["touch *"], "tool": { "messageID": "m2", "callID": "c1" } })
}

fn describe(events: &RuntimeEvent) -> String {
    match events {
        RuntimeEvent::Event { draft, .. } => {
            let body = parsed(&draft.body);
            let text = body["content"]["text"].as_str().or(body["code"].as_str()).or(body["status"].as_str());
            format!("{} {}", draft.kind.as_str(), text.unwrap_or_default()).trim().to_owned()
        }
        RuntimeEvent::Reviewed { review, .. } => format!("reviewed {}", review.allowed),
        RuntimeEvent::Ready { .. } => "ready".into(),
        RuntimeEvent::Failed { message } => format!("failed {message}"),
        RuntimeEvent::Closed { .. } => "closed".into(),
        RuntimeEvent::Checkpoint { native, .. } => format!("checkpoint {native}"),
        RuntimeEvent::Opened { how, .. } => format!("opened {how:?}"),
        RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
        RuntimeEvent::Asked { ask, .. } => format!("asked {}", ask.key.id()),
        RuntimeEvent::AskChanged { ask, .. } => format!("changed {}", ask.key.id()),
        RuntimeEvent::TakenBack { key, elsewhere, .. } => match elsewhere {
            Some(e) => format!("taken back {} by {} {:?}", key.id(), e.by, e.option_id),
            None => format!("taken back {}", key.id()),
        },
        RuntimeEvent::AnswerLost { key, elsewhere: e, .. } => {
            format!("answer lost {} to {} {:?}", key.id(), e.by, e.option_id)
        }
        RuntimeEvent::Began { .. } => "began".into(),
        RuntimeEvent::Done { end, .. } => format!("done {:?}", end.status),
        RuntimeEvent::Ended { ticket, end, .. } => {
            format!("ended {} {:?} {}", ticket.0, end.status, end.message.as_deref().unwrap_or_default()).trim().into()
        }
        RuntimeEvent::Found { native, title, .. } => {
            format!("found {} {}", native.as_str(), title.as_deref().unwrap_or("-"))
        }
        RuntimeEvent::Spent { report, .. } => {
            format!("spent {:?} {:?}", report.step.counts().map(Option::unwrap_or_default), report.step.cost_in("USD"))
        }
        RuntimeEvent::Replied { reply, .. } => format!("replied {}", reply.is_ok()),
    }
}

fn resume(stage: &mut Stage, known: bool) {
    let resume = Some(ResumeTarget::new("s".into(), known));
    stage.rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
}

fn message(id: &str, role: &str, complete: bool, parts: Value) -> Value {
    let mut time = json!({ "created": 1 });
    if complete {
        time["completed"] = 2.into();
    }
    json!({ "info": { "id": id, "role": role, "sessionID": "s", "time": time }, "parts": parts })
}

fn text_part(id: &str, message: &str, text: &str, over: bool) -> Value {
    let time = if over { json!({ "start": 1, "end": 2 }) } else { json!({ "start": 1 }) };
    json!({ "id": id, "messageID": message, "type": "text", "text": text, "time": time })
}

#[test]
fn opencode_hello_reads_everything_and_names_the_client() {
    let mut stage = Stage::new();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
    let made: Vec<&str> = stage.made.iter().map(|(what, _)| what.as_str()).collect();
    assert!(made.contains(&"GET /session/status") && made.contains(&"GET /permission?directory=%2Fw"), "{made:?}");
}

#[test]
fn opencode_missing_password_is_explained() {
    let mut stage = Stage::new();
    stage.set("GET /global/health", 401, json!({ "_tag": "UnauthorizedError" }));
    stage.serve();
    let RuntimeEvent::Failed { message } = stage.rig.one() else { panic!("not failed") };
    assert!(message.contains("secret") && message.contains("OPENCODE_SERVER_PASSWORD"), "{message}");
}

#[test]
fn opencode_repeats_a_failed_read() {
    let mut stage = Stage::new();
    let fetch = stage.rig.fetches.pop_front().unwrap();
    stage.rig.reply(&fetch, None);
    stage.serve();
    assert!(stage.reported().is_empty(), "not ready yet");
    assert_eq!(stage.rig.wakes, 2, "one for each connection, and one for this");
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
}

#[test]
fn opencode_prompt_streams_and_ends() {
    let mut stage = Stage::at_work();
    assert_eq!(stage.made[0].0, "POST /session/s/prompt_async?directory=%2Fw");
    assert_eq!(stage.made[0].1, json!({ "parts": [{ "type": "text", "text": "do it" }] }));
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "Hel");
    stage.delta("m2", "t", "lo ");
    stage.text("m2", "t", "Hello you", true);
    stage.assistant("m2", true);
    stage.status("idle");
    let reported = stage.reported();
    assert_eq!(
        reported,
        ["agent_message_chunk Hel", "agent_message_chunk lo", "agent_message_chunk you", "ended 7 Completed"]
    );
    stage.event("message.updated", json!({ "info": { "id": "m1", "role": "user", "sessionID": "s", "summary": {} } }));
    assert!(stage.reported().is_empty(), "what comes after the end is no news");
}

#[test]
fn opencode_message_completed_before_its_parts_is_whole() {
    let mut stage = Stage::at_work();
    stage.assistant("m2", true);
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "Hello ");
    stage.text("m2", "t", "Hello you", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["agent_message_chunk Hello", "agent_message_chunk you", "ended 7 Completed"]);
}

/// Replies overtake the stream, which may be thousands of events behind: a read that shows the end of the work has the rest of it.
#[test]
fn opencode_read_that_is_ahead_of_the_stream_loses_nothing() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    // Whether it arrived is not known, so that everything is read again soon.
    let fetch = stage.rig.fetches.pop_front().unwrap();
    stage.rig.reply(&fetch, None);
    stage.user("m1", "do it");
    stage.status("busy");
    stage.assistant("m2", false);
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "Hel");
    let part =
        json!({ "id": "t", "messageID": "m2", "type": "text", "text": "Hello you", "time": { "start": 1, "end": 2 } });
    let asked = json!({ "id": "m1p", "messageID": "m1", "type": "text", "text": "do it" });
    let info = json!({ "id": "m2", "role": "assistant", "sessionID": "s", "time": { "created": 1, "completed": 2 },
        "providerID": "p", "modelID": "m", "finish": "stop" });
    let messages = json!([
        { "info": { "id": "m1", "role": "user", "sessionID": "s" }, "parts": [asked] },
        { "info": info, "parts": [part] },
    ]);
    stage.set("GET /session/s/message", 200, messages);
    stage.rig.wake();
    let mut late = Vec::new();
    while let Some(fetch) = stage.rig.fetches.pop_front() {
        match fetch.path.contains("/message") {
            true => late.push(fetch),
            false => stage.serve_one(&fetch),
        }
    }
    assert!(!late.is_empty());
    stage.delta("m2", "t", "lo ");
    late.iter().for_each(|fetch| stage.serve_one(fetch));
    stage.serve();
    let whole = ["agent_message_chunk Hel", "agent_message_chunk lo", "agent_message_chunk you", "ended 7 Completed"];
    assert_eq!(stage.reported(), whole);
    // The stream, later.
    stage.delta("m2", "t", "you");
    stage.text("m2", "t", "Hello you", true);
    stage.assistant("m2", true);
    stage.status("idle");
    assert!(stage.reported().is_empty(), "once");
}

#[test]
fn opencode_idle_of_earlier_work_does_not_end_a_prompt() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    stage.serve();
    stage.status("idle");
    assert!(stage.reported().is_empty());
    stage.user("m1", "do it");
    stage.status("busy");
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 7 Completed"]);

    // Aborted work while the model was asked again: busy and idle are reported once more.
    stage.rig.prompt(8, "s", "and this");
    stage.serve();
    stage.user("m3", "and this");
    stage.status("retry");
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["error retry"]);
    stage.status("busy");
    stage.assistant("m4", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 8 Completed"]);
}

/// Idle is reported twice. A prompt sent after the first may be reported before the second.
#[test]
fn opencode_second_idle_of_earlier_work_does_not_end_a_prompt() {
    let mut stage = Stage::at_work();
    stage.event("session.status", json!({ "status": { "type": "idle" } }));
    assert_eq!(stage.reported(), ["ended 7 Completed"]);
    stage.rig.prompt(8, "s", "and this");
    stage.serve();
    stage.user("m3", "and this");
    stage.event("session.status", json!({ "status": { "type": "idle" } }));
    assert!(stage.reported().is_empty());
    stage.rig.wake();
    stage.rig.wake();
    assert!(stage.reported().is_empty(), "on a machine under load it takes its time to begin");
    stage.status("busy");
    stage.event("session.idle", json!({}));
    stage.rig.wake();
    assert!(stage.reported().is_empty(), "it works, and what it told by its status it may tell again later");
    stage.assistant("m4", false);
    stage.text("m4", "t", "second", true);
    stage.assistant("m4", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["agent_message_chunk second", "ended 8 Completed"]);

    // A prompt that never begins ends, later.
    stage.rig.prompt(9, "s", "nothing");
    stage.serve();
    stage.user("m5", "nothing");
    stage.status("idle");
    for _ in 0..super::UNBEGUN_MAX {
        assert!(stage.reported().is_empty());
        stage.rig.wake();
    }
    assert!(stage.reported().is_empty());
    stage.rig.wake();
    assert_eq!(stage.reported(), ["ended 9 Completed"]);
}

#[test]
fn opencode_reports_work_of_another_client_with_its_prompt() {
    let mut stage = Stage::open();
    stage.user("m1", "by another");
    assert!(stage.reported().is_empty(), "whether work follows is not known yet");
    stage.status("busy");
    stage.assistant("m2", false);
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "yes");
    stage.text("m2", "t", "yes", true);
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(
        stage.reported(),
        ["began", "user_message_chunk by another", "agent_message_chunk yes", "done Completed"]
    );
}

#[test]
fn opencode_reports_text_outside_of_work() {
    let mut stage = Stage::open();
    stage.user("m1", "only said");
    stage.rig.wake();
    assert_eq!(stage.reported(), ["user_message_chunk only said"]);
}

#[test]
fn opencode_reports_a_tool_from_start_to_end() {
    let mut stage = Stage::at_work();
    let tool = |state: Value| json!({ "part": { "id": "x", "messageID": "m2", "type": "tool", "tool": "bash", "callID": "c1", "state": state } });
    let input = json!({ "command": "touch x" });
    stage.event("message.part.updated", tool(json!({ "status": "pending", "input": {} })));
    stage.event("message.part.updated", tool(json!({ "status": "running", "input": input })));
    stage.event("message.part.updated", tool(json!({ "status": "running", "input": input })));
    let done = json!({ "status": "completed", "input": input, "output": "fine", "title": "touch x",
        "metadata": { "filediff": { "file": "/w/x", "before": "a", "after": "b" } } });
    stage.event("message.part.updated", tool(done));
    let events = stage.rig.take_events();
    assert_eq!(
        events.iter().map(describe).collect::<Vec<_>>(),
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed"]
    );
    let RuntimeEvent::Event { draft, .. } = &events[2] else { panic!() };
    assert!(draft.tool.as_ref().unwrap().ended);
    let body = parsed(&draft.body);
    assert_eq!(body["content"][0], json!({ "type": "diff", "path": "/w/x", "oldText": "a", "newText": "b" }));
    assert_eq!(body["content"][1]["content"]["text"], "fine");
}

#[test]
fn opencode_permission_is_answered_by_its_route() {
    let mut stage = Stage::at_work();
    stage.set("POST /permission/per_1/reply", 200, json!(true));
    stage.permission("per_1");
    let ask = stage.rig.ask();
    assert!(ask.allow_reason);
    let options: Vec<_> = ask.options.iter().map(|option| (option.id.as_str(), option.kind)).collect();
    assert_eq!(options, [("once", Choice::AllowOnce), ("always", Choice::AllowAlways), ("reject", Choice::RejectOnce)]);
    let reason = Some("not today".to_owned());
    stage.rig.answer("per_1", Decision::Option { id: "reject".into(), kind: Choice::RejectOnce, reason });
    // The stream reports our own answer before its reply.
    stage.event("permission.replied", json!({ "requestID": "per_1", "reply": "reject" }));
    stage.serve();
    assert_eq!(stage.reported(), Vec::<String>::new());
    let (what, body) = stage.made.last().unwrap();
    assert_eq!(what, "POST /permission/per_1/reply?directory=%2Fw");
    assert_eq!(*body, json!({ "reply": "reject", "message": "not today" }));
}

#[test]
fn opencode_routes_depend_on_the_generation() {
    for (missing, status) in [(PAGE.to_owned(), 200), ("Not Found".to_owned(), 404)] {
        let mut stage = Stage::at_work();
        stage.replies.insert("POST /permission/per_1/reply".into(), (status, missing));
        stage.set("POST /session/s/permissions/per_1", 200, json!(true));
        stage.permission("per_1");
        stage.rig.take_events();
        stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
        stage.serve();
        assert!(stage.reported().is_empty());
        assert_eq!(stage.made.last().unwrap().1, json!({ "response": "once" }));
    }
    let mut stage = Stage::at_work();
    stage.replies.insert("POST /api/session/s/permission/per_1/reply".into(), (204, String::new()));
    let asked = json!({ "id": "per_1", "action": "bash", "resources": ["touch x"], "save": ["touch *"],
        "source": { "type": "tool", "messageID": "m2", "callID": "c1" } });
    stage.event("permission.v2.asked", asked);
    assert_eq!(stage.rig.ask().tool_call_id.as_deref(), Some("c1"));
    stage.rig.answer("per_1", choose("always", Choice::AllowAlways));
    stage.serve();
    assert!(stage.reported().is_empty());
    assert_eq!(stage.made.last().unwrap().1, json!({ "reply": "always" }));
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.rig.take_events();
    stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
    stage.serve();
    assert_eq!(stage.reported(), ["error answer_not_taken"], "no route at all is said aloud");
}

#[test]
fn opencode_first_answer_wins() {
    let mut stage = Stage::at_work();
    stage.set("POST /permission/per_1/reply", 404, json!({ "_tag": "PermissionNotFoundError", "requestID": "per_1" }));
    stage.permission("per_1");
    stage.permission("per_2");
    assert_eq!(stage.reported(), ["asked per_1", "asked per_2"]);
    stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
    stage.event("permission.replied", json!({ "requestID": "per_1", "reply": "reject" }));
    stage.serve();
    stage.event("permission.replied", json!({ "requestID": "per_2", "reply": "always" }));
    assert_eq!(
        stage.reported(),
        [
            "answer lost per_1 to another client of OpenCode Some(\"reject\")",
            "taken back per_2 by another client of OpenCode Some(\"always\")"
        ]
    );
    stage.permission("per_2");
    assert!(stage.reported().is_empty(), "what is over is not asked again");
}

#[test]
fn opencode_stream_names_the_client_that_answered_first() {
    let late = json!({ "_tag": "PermissionNotFoundError", "requestID": "per_1" });
    for reported in [true, false] {
        let mut stage = Stage::at_work();
        stage.set("POST /permission/per_1/reply", 404, late.clone());
        stage.permission("per_1");
        stage.rig.take_events();
        stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
        stage.serve();
        assert!(stage.reported().is_empty(), "the refusal is here before the news");
        if reported {
            stage.event("permission.replied", json!({ "requestID": "per_1", "reply": "always" }));
            assert_eq!(stage.reported(), ["answer lost per_1 to another client of OpenCode Some(\"always\")"]);
        } else {
            // That one was already under way; the next is its own.
            stage.rig.wake();
            assert!(stage.reported().is_empty());
            stage.rig.wake();
            assert_eq!(stage.reported(), ["answer lost per_1 to nobody: OpenCode no longer waits for it None"]);
        }
    }
}

#[test]
fn opencode_side_effects_of_our_answer_are_not_another_clients() {
    let mut stage = Stage::at_work();
    stage.set("POST /permission/per_1/reply", 200, json!(true));
    stage.permission("per_1");
    stage.permission("per_2");
    stage.rig.take_events();
    stage.rig.answer("per_1", choose("reject", Choice::RejectOnce));
    stage.event("permission.replied", json!({ "requestID": "per_1", "reply": "reject" }));
    stage.event("permission.replied", json!({ "requestID": "per_2", "reply": "reject" }));
    stage.serve();
    assert_eq!(stage.reported(), ["taken back per_2 by OpenCode, by the answer to another question Some(\"reject\")"]);
}

#[test]
fn opencode_cancel_ends_when_the_server_is_idle() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.rig.take_events();
    stage.rig.cancel(7, "s");
    stage.serve();
    assert_eq!(stage.made.last().unwrap().0, "POST /session/s/abort?directory=%2Fw");
    stage.event(
        "session.error",
        json!({ "error": { "name": "MessageAbortedError", "data": { "message": "Aborted" } } }),
    );
    stage.status("idle");
    // It is reported twice; only the second is true.
    assert!(stage.reported().is_empty());
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["taken back per_1", "ended 7 Cancelled"]);
    // It is still listed.
    stage.set("GET /permission", 200, json!([asks("per_1")]));
    stage.rig.lose();
    stage.rig.connect();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
}

#[test]
fn opencode_late_cancel_keeps_the_stop_reason_of_the_run() {
    let mut stage = Stage::at_work();
    stage.rig.cancel(7, "s");
    stage.serve();
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 7 Completed"]);
}

#[test]
fn opencode_turn_ended_by_a_withdrawn_question_is_cancelled() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.set("POST /permission/per_1/reply", 200, json!(true));
    stage.rig.take_events();
    stage.rig.answer("per_1", Decision::Withdrawn);
    stage.rig.cancel(7, "s");
    stage.serve();
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 7 Cancelled"]);
}

#[test]
fn opencode_prompt_stopped_before_its_start_is_cancelled() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    stage.serve();
    stage.rig.cancel(7, "s");
    stage.serve();
    stage.rig.wake();
    assert_eq!(stage.reported(), ["ended 7 Cancelled"]);
}

/// Lists `all` as a server with pages, or without.
fn list_pages(stage: &mut Stage, all: &[Value], pages: bool) {
    while let Some(fetch) = stage.rig.fetches.pop_front() {
        let Some(query) = fetch.path.strip_prefix("/experimental/session?limit=") else {
            stage.serve_one(&fetch);
            continue;
        };
        let (limit, before) = query.split_once("&cursor=").unwrap_or((query, "9999999"));
        let (limit, before): (usize, u64) = (limit.parse().unwrap(), before.parse().unwrap());
        let fits = |info: &&Value| !pages || info["time"]["updated"].as_u64().unwrap() < before;
        let page: Vec<&Value> = all.iter().filter(fits).take(limit).collect();
        stage.set("GET /experimental/session", 200, json!(page));
        stage.serve_one(&fetch);
    }
}

#[test]
fn opencode_lists_the_sessions_of_every_folder() {
    for pages in [true, false] {
        let mut stage = Stage::new();
        // Most are of one millisecond, so that a page ends in the middle of it.
        let all: Vec<Value> = (0..730)
            .map(|n| {
                json!({ "id": format!("s{n}"), "directory": format!("/w{}", n % 40), "title": format!("T{n}"),
                    "time": { "updated": if n < 300 { 5000 - n } else { 7 } } })
            })
            .collect();
        // A question in the last of them.
        stage.set("GET /session/status", 200, json!({ "s729": { "type": "busy" } }));
        list_pages(&mut stage, &all, pages);
        assert_eq!(stage.reported(), ["ready", "found s729 T729"]);
        for n in 0..40 {
            let path = format!("GET /question?directory=%2Fw{n}");
            assert_eq!(stage.made.iter().filter(|(made, _)| *made == path).count(), 1, "{path}");
        }
    }
}

#[test]
fn opencode_reports_folders_beyond_the_limit() {
    let mut stage = Stage::new();
    let all: Vec<Value> = (0..super::FOLDERS_MAX + 1)
        .map(|n| json!({ "id": format!("s{n}"), "directory": format!("/w{n}"), "time": { "updated": 5000 - n } }))
        .collect();
    list_pages(&mut stage, &all, true);
    assert_eq!(stage.reported(), ["error not_all", "ready"]);
    assert!(!stage.made.iter().any(|(made, _)| made.ends_with(&format!("%2Fw{}", super::FOLDERS_MAX))));
}

#[test]
fn opencode_unsupported_generation_is_named() {
    let stage = Stage::new();
    let page = || Ok(super::HttpReply { status: 200, body: PAGE.into() });
    let json = || Ok(super::HttpReply { status: 200, body: "{\"healthy\":true}".into() });
    let words = |health, next| stage.rig.dialect.mistaken(&[health, next]);
    assert!(words(page(), json()).unwrap().starts_with("this server is OpenCode 2, "));
    assert_eq!(words(json(), json()), None, "OpenCode 1 has both");
    assert_eq!(words(page(), page()), None, "or neither");
    assert_eq!(words(Err("refused".into()), json()), None);
}

#[test]
fn opencode_error_of_a_run_ends_it() {
    let mut stage = Stage::at_work();
    stage.event("session.status", json!({ "status": { "type": "retry", "attempt": 1, "message": "busy", "next": 5 } }));
    stage.event(
        "session.error",
        json!({ "error": { "name": "APIError", "data": { "message": "Bad Request", "statusCode": 400,
            "responseBody": "{\"error\":{\"message\":\"no credit\"}}" } } }),
    );
    stage.status("idle");
    assert_eq!(stage.reported(), ["error retry", "ended 7 Error Bad Request: no credit"]);
    stage.replies.insert(
        "POST /session/s/prompt_async".into(),
        (404, r#"{"name":"NotFoundError","data":{"message":"gone"}}"#.into()),
    );
    stage.rig.prompt(8, "s", "again");
    stage.serve();
    assert_eq!(stage.reported(), ["ended 8 Error OpenCode did not accept the prompt: gone"]);
}

#[test]
fn opencode_questions_are_answered_together() {
    let mut stage = Stage::at_work();
    stage.set("POST /question/q/reply", 200, json!(true));
    stage.set("POST /question/q/reject", 200, json!(true));
    let asked = |id: &str| {
        let option = |label: &str| json!({ "label": label, "description": "" });
        json!({ "id": id, "questions": [
            { "question": "Which?", "header": "W", "options": [option("A"), option("B")] },
            { "question": "What else?", "header": "E", "options": [option("C"), option("D")], "multiple": true },
        ] })
    };
    stage.event("question.asked", asked("q"));
    assert_eq!(stage.reported(), ["asked q#0", "asked q#1"]);
    stage.rig.answer("q#1", Decision::Ids(vec!["C".into(), "D".into()]));
    assert!(stage.rig.fetches.is_empty(), "the other one is missing");
    stage.rig.answer("q#0", Decision::Ids(vec!["B".into()]));
    stage.serve();
    assert_eq!(stage.made.last().unwrap().1, json!({ "answers": [["B"], ["C", "D"]] }));
    assert!(stage.reported().is_empty());
    stage.set("POST /question/r/reject", 200, json!(true));
    stage.event("question.asked", asked("r"));
    stage.rig.take_events();
    stage.rig.answer("r#0", Decision::Ids(Vec::new()));
    stage.serve();
    assert_eq!(stage.reported(), ["taken back r#1"], "one refusal is a refusal of all");
    stage.event("question.asked", asked("o"));
    stage.event("question.replied", json!({ "requestID": "o", "answers": [["A"], ["C"]] }));
    assert_eq!(stage.reported().len(), 4);
}

#[test]
fn opencode_discovers_a_busy_session_and_reports_its_history_once() {
    let mut stage = Stage::new();
    stage.set(
        "GET /experimental/session",
        200,
        json!([{ "id": "s", "directory": "/w", "title": "T", "time": { "updated": 1 } }]),
    );
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /permission", 200, json!([asks("per_old"), asks("per_1")]));
    let mut old = asks("per_old");
    old["tool"]["messageID"] = "m0".into();
    stage.set("GET /permission", 200, json!([old, asks("per_1")]));
    let past = json!([
        message("m", "user", false, json!([text_part("mp", "m", "before", true)])),
        message("m0", "assistant", true, json!([text_part("t0", "m0", "told", true)])),
        message("m1", "user", false, json!([text_part("m1p", "m1", "now", true)])),
        message("m2", "assistant", false, json!([text_part("t", "m2", "", false)])),
    ]);
    stage.set("GET /session/s/message", 200, past);
    stage.serve();
    assert_eq!(stage.reported(), ["ready", "found s T"]);
    // Events before it is open are queued, and not lost.
    stage.delta("m2", "t", "middle ");
    stage.text("m2", "t2", "", false);
    stage.delta("m2", "t2", "whole");
    assert!(stage.reported().is_empty());
    resume(&mut stage, false);
    stage.serve();
    let reported = stage.reported();
    assert_eq!(
        reported,
        [
            "opened Resumed",
            "user_message_chunk before",
            "agent_message_chunk told",
            "began",
            "user_message_chunk now",
            "error gap",
            "agent_message_chunk whole",
            "asked per_1",
        ]
    );
    stage.text("m2", "t", "start middle end", true);
    stage.text("m2", "t2", "whole", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["agent_message_chunk start middle end", "taken back per_1", "done Completed"]);
}

#[test]
fn opencode_discovers_a_session_that_starts_work_later() {
    let mut stage = Stage::new();
    stage.serve();
    stage.rig.take_events();
    stage.event("session.created", json!({ "info": { "id": "s", "title": "T" } }));
    assert!(stage.reported().is_empty());
    stage.status("busy");
    assert_eq!(stage.reported(), ["found s -"]);
    stage.status("busy");
    assert!(stage.reported().is_empty(), "once");
}

#[test]
fn opencode_known_history_is_not_repeated() {
    let mut stage = Stage::new();
    let past = json!([
        message("m1", "user", false, json!([text_part("m1p", "m1", "before", true)])),
        message("m2", "assistant", true, json!([text_part("t", "m2", "told", true)])),
    ]);
    stage.set("GET /session/s/message", 200, past);
    stage.serve();
    stage.rig.take_events();
    resume(&mut stage, true);
    stage.serve();
    // What came between its last commit and now cannot be known.
    assert_eq!(stage.reported(), ["opened Resumed", "error gap"]);
    stage.user("m3", "another");
    stage.status("busy");
    assert_eq!(stage.reported(), ["began", "user_message_chunk another"]);
}

#[test]
fn opencode_reopens_a_conversation_whose_session_was_deleted() {
    let mut stage = Stage::open();
    let past = json!([
        message("m1", "user", false, json!([text_part("m1p", "m1", "before", true)])),
        message("m2", "assistant", true, json!([text_part("t", "m2", "told", true)])),
    ]);
    stage.set("GET /session/s/message", 200, past);
    resume(&mut stage, false);
    resume(&mut stage, false);
    let RuntimeEvent::NotOpened { error, .. } = stage.rig.one() else { panic!("opened twice at once") };
    assert!(error.message.contains("being opened already"), "{error:?}");
    stage.serve();
    assert_eq!(stage.reported()[0], "opened Resumed");
    stage.rig.prompt(7, "s", "do it");
    stage.serve();
    stage.user("m3", "do it");
    stage.status("busy");
    stage.assistant("m4", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 7 Completed"]);
}

/// Makes another gateway process for the same server, with the state that the first one stored.
fn another(stage: &Stage, prompt: Option<u64>, asks: &[&str]) -> Stage {
    let mut next = Stage::new();
    next.replies = stage.replies.clone();
    next.serve();
    next.rig.take_events();
    next.go_on(stage, prompt, asks);
    next
}

#[test]
fn opencode_restart_reports_missed_text_once() {
    let mut stage = Stage::at_work();
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "one ");
    let first = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let answer = message("m2", "assistant", true, json!([text_part("t", "m2", "one two", true)]));
    let more = message("m3", "user", false, json!([text_part("m3p", "m3", "and that", true)]));
    let last = message("m4", "assistant", true, json!([text_part("t4", "m4", "done", true)]));
    stage.set("GET /session/s/message", 200, json!([first, answer, more, last]));
    let mut next = another(&stage, Some(7), &[]);
    next.serve();
    assert_eq!(
        next.reported(),
        [
            "opened Resumed",
            "agent_message_chunk two",
            "user_message_chunk and that",
            "agent_message_chunk done",
            "ended 7 Completed"
        ]
    );
    // Nor by the gateway after that; runs that began meanwhile have their start and end.
    let newer = message("m5", "user", false, json!([text_part("m5p", "m5", "again", true)]));
    let answer2 = message("m6", "assistant", true, json!([text_part("t6", "m6", "yes", true)]));
    next.set("GET /session/s/message", 200, json!([first, answer, more, last, newer, answer2]));
    let mut third = another(&next, None, &[]);
    third.serve();
    let reported = ["opened Resumed", "began", "user_message_chunk again", "agent_message_chunk yes", "done Completed"];
    assert_eq!(third.reported(), reported);
    let mut fourth = another(&third, None, &[]);
    fourth.serve();
    assert_eq!(fourth.reported(), ["opened Resumed"]);
    // Reverted, and continued differently.
    let other = message("m7", "user", false, json!([text_part("m7p", "m7", "else", true)]));
    fourth.set("GET /session/s/message", 200, json!([first, answer, other]));
    let mut fifth = another(&fourth, None, &[]);
    fifth.serve();
    let reported = ["opened Resumed", "error taken_back", "began", "user_message_chunk else"];
    assert_eq!(fifth.reported(), reported, "the reply may be about to come");
    fifth.rig.wake();
    fifth.serve();
    assert_eq!(fifth.reported(), ["done Completed"]);
    let mut sixth = another(&fifth, None, &[]);
    sixth.serve();
    assert_eq!(sixth.reported(), ["opened Resumed"], "that is said once, too");
}

/// Returns two exchanges, and `more`.
fn exchanges(more: &[Value]) -> Vec<Value> {
    let mut all = vec![
        message("m1", "user", false, json!([text_part("m1p", "m1", "one", true)])),
        message("m2", "assistant", true, json!([text_part("t2", "m2", "first", true)])),
        message("m3", "user", false, json!([text_part("m3p", "m3", "two", true)])),
        message("m4", "assistant", true, json!([text_part("t4", "m4", "second", true)])),
    ];
    all.extend(more.iter().cloned());
    all
}

/// Makes a bench with two reported exchanges.
fn exchanged() -> Stage {
    let mut stage = Stage::open();
    stage.set("GET /session/s/message", 200, json!(exchanges(&[])));
    stage.rig.lose();
    stage.rig.connect();
    stage.serve();
    stage.listens();
    assert_eq!(stage.reported().last().unwrap(), "done Completed");
    stage
}

impl Stage {
    /// Reverts the conversation to this message, or not at all; `reported` is `true` if the stream reports it.
    fn reverts(&mut self, to: Option<&str>, reported: bool) {
        let mut info = json!({ "id": "s", "directory": "/w", "title": "New", "time": { "updated": 1 } });
        if let Some(to) = to {
            info["revert"] = json!({ "messageID": to });
        }
        self.set("GET /session/s", 200, info.clone());
        self.set("GET /experimental/session", 200, json!([info]));
        if reported {
            self.event("session.updated", json!({ "info": info }));
        }
    }

    fn reconnected(&mut self) -> Vec<String> {
        self.rig.lose();
        self.rig.connect();
        self.serve();
        self.listens();
        self.reported()
    }
}

/// Starts a gateway process, and returns it with everything that it reads.
fn restarted(stage: &Stage) -> (Stage, Vec<String>) {
    let mut next = another(stage, None, &[]);
    next.serve();
    next.listens();
    let reported = next.reported();
    (next, reported)
}

#[test]
fn opencode_reports_a_revert_and_its_undo_once() {
    let mut stage = exchanged();
    stage.reverts(Some("m3"), true);
    let events = stage.rig.take_events();
    assert_eq!(events.iter().map(describe).collect::<Vec<_>>(), ["error taken_back"]);
    let RuntimeEvent::Event { draft, .. } = &events[0] else { panic!() };
    assert!(parsed(&draft.body)["message"].as_str().unwrap().contains("the last 2 of the messages"));
    stage.reverts(Some("m3"), true);
    assert!(stage.reported().is_empty());
    // Neither a reconnect nor a new gateway repeats it.
    assert_eq!(stage.reconnected(), ["ready"]);
    let (mut next, reported) = restarted(&stage);
    assert_eq!(reported, ["opened Resumed"]);
    next.reverts(None, true);
    assert_eq!(next.reported(), ["error given_back"]);
    assert_eq!(next.reconnected(), ["ready"]);
    assert_eq!(restarted(&next).1, ["opened Resumed"]);
    // Both without a connection: no change. Only one of them: a change.
    next.reverts(Some("m3"), false);
    assert_eq!(next.reconnected(), ["ready", "error taken_back"]);
    next.reverts(None, false);
    let (mut last, reported) = restarted(&next);
    assert_eq!(reported, ["opened Resumed", "error given_back"]);
    last.reverts(Some("m3"), false);
    assert_eq!(restarted(&last).1, ["opened Resumed", "error taken_back"]);
}

#[test]
fn opencode_revert_is_final_with_the_next_prompt() {
    let other = [
        message("m5", "user", false, json!([text_part("m5p", "m5", "else", true)])),
        message("m6", "assistant", true, json!([text_part("t6", "m6", "third", true)])),
    ];
    let all: Vec<Value> = exchanges(&[])[..2].iter().chain(&other).cloned().collect();
    let news = ["began", "user_message_chunk else", "agent_message_chunk third", "done Completed"];
    // While the gateway is connected.
    let mut stage = exchanged();
    stage.reverts(Some("m3"), true);
    assert_eq!(stage.reported(), ["error taken_back"]);
    stage.event("message.removed", json!({ "messageID": "m3" }));
    stage.event("message.removed", json!({ "messageID": "m4" }));
    stage.reverts(None, true);
    assert!(stage.reported().is_empty(), "it is not given back");
    stage.user("m5", "else");
    stage.status("busy");
    stage.assistant("m6", false);
    stage.text("m6", "t6", "third", true);
    stage.assistant("m6", true);
    stage.status("idle");
    assert_eq!(stage.reported(), news);
    stage.set("GET /session/s/message", 200, json!(all));
    assert_eq!(stage.reconnected(), ["ready"]);
    assert_eq!(restarted(&stage).1, ["opened Resumed"]);
    // While it is not: on the next connection, and in the next gateway, whether or not the first half was reported.
    for known in [true, false] {
        for restart in [true, false] {
            let mut stage = exchanged();
            if known {
                stage.reverts(Some("m3"), true);
                assert_eq!(stage.reported(), ["error taken_back"]);
            }
            stage.reverts(None, false);
            stage.set("GET /session/s/message", 200, json!(all));
            let reported = if restart { restarted(&stage).1 } else { stage.reconnected() };
            let first = if restart { "opened Resumed" } else { "ready" };
            let taken = ["error taken_back"];
            let wanted: Vec<&str> =
                [first].into_iter().chain(taken.into_iter().filter(|_| !known)).chain(news).collect();
            assert_eq!(reported, wanted, "known {known}, restart {restart}");
        }
    }
}

#[test]
fn opencode_reports_a_removed_message() {
    let mut stage = exchanged();
    stage.event("message.removed", json!({ "messageID": "m4" }));
    stage.event("message.removed", json!({ "messageID": "m4" }));
    assert_eq!(stage.reported(), ["error taken_back"]);
    stage.set("GET /session/s/message", 200, json!(exchanges(&[])[..3]));
    assert_eq!(stage.reconnected(), ["ready"]);
    // A message that is removed while everything is read.
    let mut stage = exchanged();
    stage.rig.lose();
    stage.rig.connect();
    while let Some(fetch) = stage.rig.fetches.pop_front() {
        if fetch.path.contains("/message") {
            stage.event("message.removed", json!({ "messageID": "m4" }));
        }
        stage.serve_one(&fetch);
    }
    assert_eq!(stage.reported(), ["ready"]);
    stage.set("GET /session/s/message", 200, json!(exchanges(&[])[..3]));
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["error taken_back"]);
}

#[test]
fn opencode_message_begun_during_a_reread_is_not_reverted() {
    let mut stage = exchanged();
    stage.rig.lose();
    stage.rig.connect();
    while let Some(fetch) = stage.rig.fetches.pop_front() {
        if fetch.path.contains("/message") {
            stage.user("m5", "three");
            stage.status("busy");
        }
        stage.serve_one(&fetch);
    }
    assert_eq!(stage.reported(), ["ready", "began", "user_message_chunk three"]);
}

#[test]
fn opencode_reports_a_compaction_once_without_its_pruning() {
    let compacted = [
        message("m5", "user", false, json!([{ "id": "c5", "messageID": "m5", "type": "compaction", "auto": false }])),
        message("m6", "assistant", true, json!([text_part("t6", "m6", "in short", true)])),
    ];
    let mut stage = exchanged();
    stage.set("GET /session/s/message", 200, json!(exchanges(&compacted)));
    let (mut next, reported) = restarted(&stage);
    assert_eq!(reported, ["opened Resumed", "began", "agent_message_chunk in short", "done Completed"]);
    assert_eq!(next.reconnected(), ["ready"]);
    // A tool's old output, before everything that is read, is pruned.
    let state =
        json!({ "status": "completed", "input": {}, "output": "", "time": { "start": 1, "end": 2, "compacted": 3 } });
    let tool = json!({ "id": "x", "messageID": "m0", "type": "tool", "tool": "bash", "callID": "c", "state": state });
    next.event("message.part.updated", json!({ "part": tool }));
    assert!(next.reported().is_empty());
    assert_eq!(restarted(&next).1, ["opened Resumed"]);
}

#[test]
fn opencode_fork_is_a_conversation_of_its_own() {
    let mut stage = exchanged();
    // Its messages are reported while they are copied, before it works on anything.
    for events in exchanges(&[]) {
        let id = events["info"]["id"].as_str().unwrap().replace('m', "f");
        let info = json!({ "id": id, "sessionID": "f", "role": events["info"]["role"] });
        stage.event("message.updated", json!({ "sessionID": "f", "info": info }));
        let mut part = events["parts"][0].clone();
        (part["messageID"], part["id"]) = (id.clone().into(), format!("{id}p").into());
        stage.event("message.part.updated", json!({ "sessionID": "f", "part": part }));
    }
    assert!(stage.reported().is_empty());
    assert_eq!(stage.reconnected(), ["ready"]);
    assert_eq!(restarted(&stage).1, ["opened Resumed"]);
    stage.event("session.status", json!({ "sessionID": "f", "status": { "type": "busy" } }));
    assert_eq!(stage.reported(), ["found f -"]);
}

#[test]
fn opencode_restart_looks_for_a_prompt_under_way() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    let mut next = another(&stage, Some(7), &[]);
    next.serve();
    let lost = "ended 7 Error the connection was lost before OpenCode accepted the prompt";
    assert_eq!(next.reported(), ["opened Resumed", lost]);
    // Nor where another client's prompt arrived, whatever the gateway had stored by then.
    let mut early = Stage::open();
    let theirs = message("m1", "user", false, json!([text_part("m1p", "m1", "theirs", true)]));
    let reply = message("m2", "assistant", true, json!([text_part("t", "m2", "yes", true)]));
    early.set("GET /session/s/message", 200, json!([theirs, reply]));
    let mut next = another(&early, Some(7), &[]);
    next.serve();
    assert_eq!(
        next.reported(),
        ["opened Resumed", lost, "began", "user_message_chunk theirs", "agent_message_chunk yes", "done Completed"],
        "it is not taken for ours"
    );
    // It arrived, and runs; the next gateway reports it.
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let answer = message("m2", "assistant", false, json!([text_part("t", "m2", "so ", false)]));
    stage.set("GET /session/s/message", 200, json!([mine, answer]));
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    let mut next = another(&stage, Some(7), &[]);
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed", "agent_message_chunk so"]);
    next.text("m2", "t", "so it is", true);
    next.assistant("m2", true);
    next.status("idle");
    assert_eq!(next.reported(), ["agent_message_chunk it is", "ended 7 Completed"]);
    // It was aborted there meanwhile: OpenCode's stop reason decides.
    let mut stopped = message("m2", "assistant", true, json!([text_part("t", "m2", "so ", true)]));
    stopped["info"]["error"] = json!({ "name": "MessageAbortedError", "data": { "message": "Aborted" } });
    stage.set("GET /session/s/message", 200, json!([mine, stopped]));
    stage.set("GET /session/status", 200, json!({}));
    let mut next = another(&stage, Some(7), &[]);
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed", "agent_message_chunk so", "ended 7 Cancelled"]);
}

#[test]
fn opencode_work_that_ends_during_a_status_read_has_ended() {
    let mut stage = Stage::at_work();
    stage.rig.take_events();
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let answer = message("m2", "assistant", true, json!([text_part("t", "m2", "done", true)]));
    stage.set("GET /session/s/message", 200, json!([mine, answer]));
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    let mut next = another(&stage, Some(7), &[]);
    // The reply is older than the event that overtakes it.
    let resume = next.rig.fetches.pop_front().unwrap();
    next.serve_one(&resume);
    next.status("idle");
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed", "agent_message_chunk done", "ended 7 Completed"]);
    // Or the reply of the first read is: the session is unknown by then, and not found any more.
    let mut next = Stage::new();
    next.replies = stage.replies.clone();
    while let Some(fetch) = next.rig.fetches.pop_front() {
        if fetch.path.starts_with("/permission") {
            next.status("idle");
        }
        next.serve_one(&fetch);
    }
    assert_eq!(next.reported(), ["ready"]);
    // It was found busy, and is idle when it is opened.
    let mut next = Stage::new();
    next.replies = stage.replies.clone();
    next.serve();
    assert_eq!(next.reported(), ["ready", "found s -"]);
    next.set("GET /session/status", 200, json!({}));
    next.go_on(&stage, Some(7), &[]);
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed", "agent_message_chunk done", "ended 7 Completed"]);
}

#[test]
fn opencode_questions_and_answers_survive_a_restart() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.permission("per_2");
    stage.rig.take_events();
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let answer = message("m2", "assistant", false, json!([]));
    stage.set("GET /session/s/message", 200, json!([mine, answer]));
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /permission", 200, json!([asks("per_2"), asks("per_3")]));
    stage.set("POST /permission/per_2/reply", 200, json!(true));
    let mut next = another(&stage, Some(7), &["per_1", "per_2"]);
    next.serve();
    let reported = ["opened Resumed", "asked per_3", "taken back per_1 by another client of OpenCode None"];
    assert_eq!(next.reported(), reported, "what people have is not asked twice");
    next.rig.answer("per_2", choose("once", Choice::AllowOnce));
    next.serve();
    assert!(next.made.iter().any(|(made, _)| made.starts_with("POST /permission/per_2/reply")));
}

#[test]
fn opencode_answer_given_before_the_reread_is_sent_after_it() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.permission("per_2");
    stage.rig.take_events();
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    stage.set("GET /session/s/message", 200, json!([mine, message("m2", "assistant", false, json!([]))]));
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /permission", 200, json!([asks("per_2")]));
    stage.set("POST /permission/per_2/reply", 200, json!(true));
    let mut next = another(&stage, Some(7), &["per_1", "per_2"]);
    for key in ["per_1", "per_2"] {
        next.rig.answer(key, choose("once", Choice::AllowOnce));
    }
    // A second decision changes nothing.
    next.rig.answer("per_2", choose("reject", Choice::RejectOnce));
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed"], "what OpenCode no longer asks had its answer");
    let sent: Vec<_> = next.made.iter().filter(|(made, _)| made.starts_with("POST /permission/")).collect();
    assert!(matches!(&sent[..], [(made, body)] if made.contains("per_2") && body["reply"] == "once"), "{sent:?}");
}

#[test]
fn opencode_oversized_checkpoint_becomes_a_gap() {
    let mut stage = Stage::at_work();
    for n in 0..1600 {
        stage.text("m2", &format!("t{n}"), "x", false);
    }
    stage.rig.take_events();
    let kept = stage.rig.checkpoint.as_ref().unwrap().len();
    assert!(kept <= 64 * 1024, "{kept}");
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let answer = message("m2", "assistant", true, json!([text_part("t0", "m2", "xy", true)]));
    stage.set("GET /session/s/message", 200, json!([mine, answer]));
    let mut next = another(&stage, Some(7), &[]);
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed", "error gap", "ended 7 Completed"]);
}

#[test]
fn opencode_long_conversation_with_a_broken_reply_is_not_repeated() {
    let mut stage = Stage::open();
    let mut all = vec![
        message("m0001", "user", false, json!([text_part("p0001", "m0001", "do it", true)])),
        message("m0002", "assistant", false, json!([text_part("p0002", "m0002", "", false)])),
    ];
    for at in (3..400).step_by(2) {
        let (user, agent) = (format!("m{at:04}"), format!("m{:04}", at + 1));
        all.push(message(&user, "user", false, json!([text_part(&format!("p{user}"), &user, "on", true)])));
        all.push(message(&agent, "assistant", true, json!([text_part(&format!("p{agent}"), &agent, "yes", true)])));
    }
    stage.set("GET /session/s/message", 200, json!(all));
    stage.rig.lose();
    stage.rig.connect();
    stage.serve();
    assert!(stage.reported().len() > 200);
    let mut next = another(&stage, None, &[]);
    next.serve();
    assert_eq!(next.reported(), ["opened Resumed"]);
}

#[test]
fn opencode_missing_session_is_not_opened() {
    let mut stage = Stage::new();
    stage.set("GET /session/s", 404, json!({ "name": "NotFoundError", "data": { "message": "Session not found: s" } }));
    stage.serve();
    stage.rig.take_events();
    resume(&mut stage, false);
    stage.serve();
    assert_eq!(stage.reported(), ["not opened: OpenCode has no such session: Session not found: s"]);
}

#[test]
fn opencode_gap_is_followed_by_unreported_text_only() {
    let mut stage = Stage::at_work();
    stage.text("m2", "t", "", false);
    stage.delta("m2", "t", "one ");
    stage.permission("per_1");
    stage.permission("per_2");
    stage.rig.take_events();
    stage.rig.lose();
    stage.rig.connect();
    let past = |over: bool| {
        json!([
            message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)])),
            message(
                "m2",
                "assistant",
                over,
                json!([text_part("t", "m2", if over { "one two three" } else { "" }, over)])
            ),
        ])
    };
    stage.set("GET /session/s/message", 200, past(false));
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /permission", 200, json!([asks("per_2"), asks("per_3")]));
    stage.delta("m2", "t", "three");
    stage.serve();
    assert_eq!(
        stage.reported(),
        ["ready", "error gap", "taken back per_1 by another client of OpenCode None", "asked per_3"]
    );
    stage.text("m2", "t", "one two three", true);
    assert_eq!(stage.reported(), ["agent_message_chunk two three"]);
    // And once more, over by the time of the next connection.
    stage.rig.lose();
    stage.set("GET /session/status", 200, json!({}));
    stage.set("GET /permission", 200, json!([]));
    stage.set("GET /session/s/message", 200, past(true));
    stage.rig.connect();
    stage.serve();
    assert_eq!(stage.reported(), ["ready", "taken back per_2", "taken back per_3", "ended 7 Completed"]);
}

#[test]
fn opencode_reports_a_lost_prompt() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    let fetch = stage.rig.fetches.pop_front().unwrap();
    stage.rig.lose();
    stage.rig.connect();
    stage.rig.reply(&fetch, None);
    stage.serve();
    assert_eq!(stage.reported()[1..], ["ended 7 Error the connection was lost before OpenCode accepted the prompt"]);
    // A prompt that arrived after all goes on.
    stage.rig.prompt(8, "s", "do it");
    let fetch = stage.rig.fetches.pop_front().unwrap();
    stage.rig.lose();
    stage.rig.connect();
    stage.rig.reply(&fetch, None);
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    let past = json!([message("m9", "user", false, json!([text_part("m9p", "m9", "do it", true)]))]);
    stage.set("GET /session/s/message", 200, past);
    stage.serve();
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
    stage.assistant("ma", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["ended 8 Completed"]);
}

#[test]
fn opencode_restarted_server_has_ended_its_work() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.rig.take_events();
    stage.rig.lose();
    let past = json!([
        message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)])),
        message("m2", "assistant", false, json!([])),
    ]);
    stage.set("GET /session/s/message", 200, past);
    stage.rig.connect();
    stage.serve();
    assert_eq!(
        stage.reported(),
        ["ready", "taken back per_1"],
        "it may have begun since it was read that it is not busy"
    );
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["ended 7 Error OpenCode stopped in the middle of it"]);
}

#[test]
fn opencode_rereads_what_happened_before_the_stream_opened() {
    let mut stage = Stage::at_work();
    stage.rig.lose();
    let past = |reply: &str, over: bool| {
        let reply = json!([text_part("t", "m2", reply, over)]);
        json!([
            message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)])),
            message("m2", "assistant", over, reply)
        ])
    };
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /session/s/message", 200, past("", false));
    stage.rig.connect();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
    // Its text and its end are not sent.
    stage.set("GET /session/status", 200, json!({}));
    stage.set("GET /session/s/message", 200, past("done", true));
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["agent_message_chunk done", "ended 7 Completed"]);
    // Another client's prompt as well; the first event shows that nothing is missed from now on.
    let mut all = past("done", true);
    all.as_array_mut().unwrap().extend([
        message("m3", "user", false, json!([text_part("m3p", "m3", "and that", true)])),
        message("m4", "assistant", true, json!([text_part("t4", "m4", "yes", true)])),
    ]);
    stage.set("GET /session/s/message", 200, all);
    let looks = |stage: &Stage| stage.made.iter().filter(|(what, _)| what == "GET /global/health").count();
    let before = looks(&stage);
    stage.rig.wake();
    assert_eq!(looks(&stage), before, "no third look without cause");
    stage.listens();
    assert_eq!(stage.reported(), ["began", "user_message_chunk and that", "agent_message_chunk yes", "done Completed"]);
    stage.event("server.heartbeat", json!({}));
    stage.rig.wake();
    stage.serve();
    assert_eq!(looks(&stage), before + 1);
    assert!(stage.reported().is_empty());
}

#[test]
fn opencode_work_begun_after_an_idle_status_goes_on() {
    let mut stage = Stage::open();
    stage.rig.prompt(7, "s", "do it");
    stage.serve();
    stage.rig.lose();
    // OpenCode has the prompt and begins a moment later: to work, to reply, to ask.
    let mine = message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)]));
    let reply = message("m2", "assistant", false, json!([]));
    stage.set("GET /session/s/message", 200, json!([mine, reply]));
    stage.set("GET /permission", 200, json!([asks("per_1")]));
    stage.rig.connect();
    stage.serve();
    assert_eq!(stage.reported(), ["ready"]);
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.rig.wake();
    stage.serve();
    assert_eq!(stage.reported(), ["asked per_1"]);
    stage.text("m2", "t", "done", true);
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["agent_message_chunk done", "taken back per_1", "ended 7 Completed"]);
}

#[test]
fn opencode_repeats_an_answer_that_may_be_lost() {
    let mut stage = Stage::at_work();
    stage.permission("per_1");
    stage.rig.take_events();
    stage.rig.answer("per_1", choose("once", Choice::AllowOnce));
    let fetch = stage.rig.fetches.pop_front().unwrap();
    stage.rig.lose();
    stage.rig.connect();
    stage.rig.reply(&fetch, None);
    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
    stage.set("GET /permission", 200, json!([asks("per_1")]));
    stage.set("POST /permission/per_1/reply", 200, json!(true));
    stage.made.clear();
    stage.serve();
    stage.rig.wake();
    stage.serve();
    let answers = stage.made.iter().filter(|(what, _)| what.starts_with("POST /permission/per_1/reply")).count();
    assert_eq!(answers, 1);
    assert_eq!(stage.reported(), ["ready"]);
}

#[test]
fn opencode_lists_and_sets_models() {
    let mut stage = Stage::open();
    stage.rig.call("s", "model.list", None);
    let list = stage.rig.replied().unwrap();
    assert_eq!(
        list,
        json!({ "provider": "opencode", "models": ["p/m"], "details": { "p/m": { "name": "M" } }, "current": "p/m" })
    );
    stage.rig.call("s", "model.set", Some(r#"{"name":"p/other"}"#));
    assert!(stage.rig.replied().is_err());
    stage.rig.call("s", "model.set", Some(r#"{"name":"p/m"}"#));
    assert_eq!(stage.reported(), ["config_option_update", "replied true"]);
    stage.rig.prompt(7, "s", "do it");
    stage.serve();
    assert_eq!(stage.made.last().unwrap().1["model"], json!({ "providerID": "p", "modelID": "m" }));
    stage.set("GET /session/s/todo", 200, json!([]));
    stage.rig.call("s", "session.todo", None);
    stage.serve();
    assert_eq!(stage.rig.replied().unwrap(), json!([]));
    stage.rig.call("s", "session.delete", None);
    assert!(stage.rig.replied().is_err());
}

#[test]
fn opencode_carries_a_whole_prompt() {
    let mut stage = Stage::open();
    let content = [
        r#"{"type":"text","text":"see"}"#,
        r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#,
        r#"{"type":"resource_link","uri":"file:///w/x.rs","name":"x.rs"}"#,
        r#"{"type":"resource","resource":{"uri":"u","text":"inside"}}"#,
    ];
    let content = content.map(raw).to_vec();
    stage.rig.tell(RuntimeCommand::Prompt { ticket: Ticket(7), native: "s".into(), content });
    stage.serve();
    assert_eq!(
        stage.made.last().unwrap().1["parts"],
        json!([
            { "type": "text", "text": "see" },
            { "type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA" },
            { "type": "file", "mime": "text/plain", "filename": "x.rs", "url": "file:///w/x.rs" },
            { "type": "text", "text": "inside" },
        ])
    );
}

/// Ids of calls are chosen by the model: some restart with each message.
#[test]
fn opencode_reused_tool_call_id_is_two_tool_calls() {
    let mut stage = Stage::at_work();
    let tool = |part: &str, status: &str| {
        json!({ "part": { "id": part, "messageID": "m2", "type": "tool", "tool": "bash", "callID": "call_1",
            "state": { "status": status, "input": { "command": "ls" }, "output": part } } })
    };
    for part in ["x", "y"] {
        for status in ["running", "completed", "completed"] {
            stage.event("message.part.updated", tool(part, status));
        }
        assert_eq!(stage.reported().len(), 2, "its beginning and its end");
    }
    // Two questions about the two of them are two.
    stage.permission("per_1");
    stage.permission("per_1");
    stage.permission("per_2");
    assert_eq!(stage.reported(), ["asked per_1", "asked per_2"]);
    stage.assistant("m2", true);
    stage.status("idle");
    assert_eq!(stage.reported(), ["taken back per_1", "taken back per_2", "ended 7 Completed"]);
}

/// A checkpoint is written with each chunk: its cost grows neither with the conversation nor with its texts.
#[test]
fn opencode_checkpoint_does_not_grow_with_the_conversation() {
    let mut sizes = Vec::new();
    for exchanges in [4, 130, 200] {
        let mut stage = Stage::open();
        let text = "word ".repeat(if exchanges == 200 { 400 } else { 1 });
        let id = |at: usize, type_name: &str| format!("{type_name}_2092a68dc{at:06}MHuOprvzfUd");
        for at in 0..exchanges {
            let (user, agent) = (id(at * 2, "msg"), id(at * 2 + 1, "msg"));
            stage.user(&user, &text);
            stage.status("busy");
            stage.assistant(&agent, false);
            for part in 0..4 {
                let part = id(at * 4 + part, "prt");
                stage.text(&agent, &part, "", false);
                stage.text(&agent, &part, &text, true);
            }
            stage.assistant(&agent, true);
            stage.status("idle");
        }
        let (user, agent) = (id(9_000, "msg"), id(9_001, "msg"));
        stage.user(&user, "last");
        stage.status("busy");
        stage.assistant(&agent, false);
        stage.text(&agent, "last", "", false);
        stage.delta(&agent, "last", "a piece");
        let kept = stage.rig.checkpoint.as_ref().unwrap();
        let of = |name: &str| parsed(kept.as_bytes())["telling"][name].to_string().len();
        sizes.push((exchanges, kept.len(), of("before"), of("messages"), of("parts")));
        stage.rig.take_events();
    }
    // The ids of the last 256 messages are most of it; every longer conversation has as many.
    assert!(sizes[2].1 < 8 * 1024 && sizes[1].1.abs_diff(sizes[2].1) < 256, "{sizes:?}");
}

#[test]
fn opencode_reports_other_events() {
    let mut stage = Stage::at_work();
    stage.event("todo.updated", json!({ "todos": [{ "content": "a", "status": "in_progress", "priority": "high" }] }));
    stage.event("session.updated", json!({ "info": { "id": "s", "title": "Better" } }));
    stage.event("session.updated", json!({ "info": { "id": "s", "title": "Better" } }));
    let tokens = json!({ "input": 10, "output": 5, "reasoning": 2, "cache": { "read": 30, "write": 4 } });
    let finish = json!({ "id": "f", "messageID": "m2", "type": "step-finish", "tokens": tokens, "cost": 0.25 });
    stage.event("message.part.updated", json!({ "part": finish }));
    // Told again, it is not spent again.
    stage.event("message.part.updated", json!({ "part": finish }));
    stage.event("session.compacted", json!({}));
    let events = stage.rig.take_events();
    let reported: Vec<_> = events.iter().map(describe).collect();
    let spent = "spent [44, 7, 30, 4, 2] Some(0.25)";
    assert_eq!(reported, ["plan", "session_info_update", "usage_update", spent, "raw"]);
    let RuntimeEvent::Event { draft, .. } = &events[2] else { panic!() };
    assert_eq!(
        parsed(&draft.body),
        json!({ "sessionUpdate": "usage_update", "used": 51, "size": 1000,
        "cost": { "amount": 0.25, "currency": "USD" } })
    );
    stage.rig.feed(&b"{\"payload\":{\"type\":\"plugin.added\",\"properties\":{\"id\":\"x\"}}}"[..]);
    stage.rig.feed(&b"{\"payload\":{\"type\":\"sync\",\"syncEvent\":{}}}"[..]);
    assert!(stage.reported().is_empty(), "the server's own affairs, and the same again");
    stage.rig.feed(&b"{}"[..]);
    assert!(matches!(stage.rig.one(), RuntimeEvent::Event { native: None, draft } if draft.kind == Kind::Raw));
}

#[test]
fn opencode_deleted_session_ends_its_work() {
    let mut stage = Stage::at_work();
    stage.event("session.deleted", json!({ "info": { "id": "s" } }));
    assert_eq!(stage.reported(), ["ended 7 Error the session was deleted in OpenCode", "error session_deleted"]);
}

#[test]
fn opencode_accepts_nothing_while_disconnected() {
    let mut stage = Stage::open();
    stage.rig.lose();
    stage.rig.open(2);
    stage.rig.prompt(3, "s", "x");
    stage.rig.call("s", "model.list", None);
    assert_eq!(
        stage.reported(),
        ["not opened: OpenCode is not connected", "ended 3 Error OpenCode is not connected", "replied false"]
    );
}

/// Returns the reported text of one kind.
fn told_text(events: &[RuntimeEvent], kind: Kind) -> String {
    let text = |event: &RuntimeEvent| match event {
        RuntimeEvent::Event { draft, .. } if draft.kind == kind => {
            parsed(&draft.body)["content"]["text"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

proptest! {
    #[test]
    fn opencode_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // The rig checks that every body is one line of JSON.
        Stage::at_work().rig.feed(bytes);
    }

    #[test]
    fn opencode_survives_any_event(
        type_name in prop::sample::select(vec![
            "session.status", "session.idle", "session.error", "session.updated", "session.deleted", "message.updated",
            "message.part.updated", "message.part.delta", "permission.asked", "permission.updated", "permission.replied",
            "question.asked", "question.replied", "todo.updated", "nonsense",
        ]),
        names in prop::collection::vec(prop::sample::select(vec![
            "part", "info", "status", "error", "todos", "diff", "requestID", "reply", "delta", "messageID", "partID",
            "field", "id", "questions", "permission", "tool", "metadata",
        ]), 0..6),
        values in prop::collection::vec(prop::sample::select(vec![
            "null", "7", "\"t\"", "\"m2\"", "[]", "{}", "{\"id\":\"t\",\"messageID\":\"m2\",\"type\":\"text\",\"text\":\"x\\n\"}",
            "{\"id\":\"t\",\"messageID\":\"m2\",\"type\":\"tool\",\"callID\":\"c\",\"state\":{\"status\":7}}",
            "{\"type\":\"retry\"}", "{\"id\":\"m2\",\"role\":\"user\"}", "[{\"question\":\"q\"}]", "[[[]]]",
        ]), 6),
    ) {
        let mut properties = serde_json::Map::new();
        for (name, value) in names.iter().zip(&values) {
            properties.insert((*name).into(), serde_json::from_str(value).unwrap());
        }
        let mut stage = Stage::at_work();
        stage.event(type_name, Value::Object(properties));
        stage.serve();
        stage.status("idle");
    }

    #[test]
    fn opencode_survives_any_reply(body in prop_oneof![".{0,60}", Just("[{}]".to_owned()), Just("[[]]".to_owned()),
        Just("{\"s\":7}".to_owned()), Just("[{\"info\":{},\"parts\":{}}]".to_owned())], status in 100u16..600)
    {
        let mut stage = Stage::new();
        let keys: Vec<String> = stage.replies.keys().cloned().collect();
        for key in keys {
            stage.replies.insert(key, (status, body.clone()));
        }
        stage.serve();
        resume(&mut stage, false);
        stage.serve();
    }

    #[test]
    fn opencode_deltas_in_any_split_give_the_same_text(
        text in "\\PC{0,60}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        whole_at in prop::option::of(any::<prop::sample::Index>()), lost in any::<bool>(),
    ) {
        let mut stage = Stage::at_work();
        stage.text("m2", "t", "", false);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|&cut| text.is_char_boundary(cut)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let whole_at = whole_at.map(|index| index.index(pieces.len()));
        let mut so_far = String::new();
        for (number, piece) in pieces.iter().enumerate() {
            so_far.push_str(piece);
            if !piece.is_empty() {
                stage.delta("m2", "t", piece);
            }
            if whole_at == Some(number) {
                if lost {
                    stage.rig.lose();
                    stage.rig.connect();
                    stage.set("GET /session/status", 200, json!({ "s": { "type": "busy" } }));
                    stage.set("GET /session/s/message", 200, json!([
                        message("m1", "user", false, json!([text_part("m1p", "m1", "do it", true)])),
                        message("m2", "assistant", false, json!([text_part("t", "m2", "", false)])),
                    ]));
                    stage.serve();
                } else {
                    // Older servers send the full text so far.
                    stage.text("m2", "t", &so_far, false);
                }
            }
        }
        stage.text("m2", "t", &text, true);
        stage.text("m2", "t", &text, true);
        prop_assert_eq!(told_text(&stage.rig.take_events(), Kind::AgentMessageChunk), text);
    }
}

const OWN: &str = "plexus_abcd2345";

fn server() -> McpServer {
    McpServer::Own {
        name: OWN.into(),
        command: "/bin/plexus".into(),
        args: vec!["mcp".into(), "--session".into(), "s_1".into()],
        env: BTreeMap::from([("PLEXUS_HOME".into(), "/h".into())]),
    }
}

fn own_rules() -> Value {
    json!([
        { "permission": "plexus_*", "pattern": "*", "action": "deny" },
        { "permission": format!("{OWN}_*"), "pattern": "*", "action": "allow" },
    ])
}

/// Returns the requests about tools.
fn about_tools(made: &[(String, Value)]) -> Vec<(&str, &Value)> {
    let about = |(what, body): &&(String, Value)| what.contains("/mcp") || !body["permission"].is_null();
    made.iter().filter(about).map(|(what, body)| (what.as_str(), body)).collect()
}

#[test]
fn own_tools_are_given_to_a_session_and_denied_to_the_others() {
    let mut stage = Stage::new();
    stage.serve();
    stage.listens();
    stage.made.clear();
    stage.set("POST /mcp", 200, json!({ OWN: { "status": "connected" } }));
    let given = McpServer::Given(raw(r#"{"name":"theirs","command":"x","args":[],"env":[]}"#));
    let mcp_servers = vec![given, server()];
    stage.rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers });
    stage.serve();
    let config = json!({
        "type": "local", "enabled": true, "timeout": 120_000, "environment": { "PLEXUS_HOME": "/h" },
        "command": ["/bin/plexus", "mcp", "--session", "s_1", "--shared", OWN],
    });
    let permission = json!({ "permission": own_rules() });
    let added = json!({ "name": OWN, "config": config });
    assert_eq!(
        about_tools(&stage.made),
        [("POST /session?directory=%2Fw", &permission), ("POST /mcp?directory=%2Fw", &added)]
    );
    assert!(!stage.rig.events.iter().any(|event| format!("{event:?}").contains("no_tools")));
    // OpenCode restarts, and has no servers.
    stage.made.clear();
    stage.set("GET /mcp", 200, json!({}));
    stage.rig.lose();
    stage.rig.connect();
    // Before any prompt: requests about a session are made in their order.
    assert_eq!(stage.rig.fetches.back().unwrap().path, "/mcp?directory=%2Fw");
    stage.serve();
    assert_eq!(about_tools(&stage.made), [("POST /mcp?directory=%2Fw", &added)]);
    // One that works may have a call under way: its server is left alone if it is there.
    stage.rig.prompt(2, "s", "go");
    stage.serve();
    stage.made.clear();
    stage.set("GET /mcp", 200, json!({ OWN: { "status": "connected" } }));
    stage.rig.lose();
    stage.rig.connect();
    stage.serve();
    assert_eq!(about_tools(&stage.made), [("GET /mcp?directory=%2Fw", &Value::Null)]);
}

#[test]
fn own_tools_of_a_resumed_session_are_added_where_they_are_missing() {
    for (has, there, asks) in [
        (json!(null), json!({}), vec!["PATCH /session/s", "GET /mcp", "POST /mcp"]),
        (json!("odd"), json!({ OWN: { "status": "failed" } }), vec!["PATCH /session/s", "GET /mcp", "POST /mcp"]),
        (own_rules(), json!({ OWN: { "status": "connected" } }), vec!["GET /mcp"]),
    ] {
        let mut stage = Stage::new();
        stage.serve();
        stage.listens();
        stage.made.clear();
        stage.set("GET /session/s", 200, json!({ "id": "s", "directory": "/w", "permission": has }));
        stage.set("PATCH /session/s", 200, json!({ "id": "s" }));
        stage.set("GET /mcp", 200, there);
        stage.set("POST /mcp", 200, json!({ OWN: { "status": "failed", "error": "no such program" } }));
        let resume = Some(ResumeTarget::new("s".into(), true));
        stage.rig.tell(RuntimeCommand::Open {
            ticket: Ticket(1),
            cwd: "/w".into(),
            resume,
            mcp_servers: vec![server()],
        });
        stage.serve();
        let made: Vec<&str> =
            about_tools(&stage.made).iter().map(|(what, _)| what.split('?').next().unwrap()).collect();
        assert_eq!(made, asks);
        // Why an agent has no tools is said, and the session is open all the same.
        let events = format!("{:?}", stage.rig.events);
        assert!(events.contains("Opened"), "{events}");
        assert!(!events.contains("NotOpened"), "{events}");
    }
}

#[test]
fn own_tool_calls_are_named_while_they_run() {
    let mut stage = Stage::open();
    stage.rig.prompt(2, "s", "go");
    stage.serve();
    stage.assistant("m2", false);
    stage.rig.events.clear();
    let call = |tool: &str, state: Value| json!({ "part": { "id": format!("p_{tool}"), "messageID": "m2", "type": "tool", "callID": tool, "tool": tool, "state": state } });
    let (own, input) = (format!("{OWN}_ui_show"), json!({ "surface": "x" }));
    for tool in [own.as_str(), "bash"] {
        for (status, input) in [("pending", json!({})), ("running", input.clone()), ("completed", input.clone())] {
            stage.event("message.part.updated", call(tool, json!({ "status": status, "input": input, "output": "" })));
        }
    }
    let digest = CallDigest::new(&own, input.as_object().unwrap());
    let calls: Vec<_> = stage
        .rig
        .events
        .iter()
        .filter_map(|event| match event {
            RuntimeEvent::Event { draft, .. } => draft.tool.clone(),
            _ => None,
        })
        .collect();
    let named: Vec<_> = calls.iter().filter(|call| call.own.is_some()).collect();
    let running = ToolCallRef { id: own.clone(), ended: false, own: Some(digest) };
    assert_eq!(named, [&running], "{calls:?}");
}
