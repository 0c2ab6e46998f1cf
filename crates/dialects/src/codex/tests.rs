//! One file: a table or a test for each message of Codex and each special case, in the order of a session's life.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json as j};

use super::super::rig::{Rig, choose, json, raw, spec};
use super::super::{
    DEPTH_MAX, Dialect, FolderClaim, OpenedAs, Outbox, RequestSubject, ResumeTarget, RuntimeCommand, RuntimeEvent,
};
use super::*;
use plexus_protocol::{Choice, Decision, Kind, RequestType};

const HELLO: &str =
    r#"{"id":0,"result":{"userAgent":"plexus/0.169.0 (Debian 12.0.0; x86_64) unknown (plexus; 0.1.0)"}}"#;

fn remote() -> RuntimeSpec {
    RuntimeSpec { connect: Connect::Endpoint("ws://127.0.0.1:9/".into()), ..spec("codex") }
}

fn hello(spec: &RuntimeSpec) -> Rig {
    let mut rig = Rig::new(spec);
    rig.feed(HELLO);
    assert!(matches!(rig.one(), RuntimeEvent::Ready { agent: Some(agent) } if agent == "codex 0.169.0"));
    rig
}

fn reply(rig: &mut Rig, id: u64, result: Value) {
    rig.feed(j!({ "id": id, "result": result }).to_string());
}

fn notify(rig: &mut Rig, method: &str, mut params: Value) {
    params["threadId"] = "t".into();
    rig.feed(j!({ "method": method, "params": params }).to_string());
}

fn thread(id: &str) -> Value {
    j!({ "id": id, "cwd": "/w", "preview": "", "name": null, "parentThreadId": null, "status": { "type": "idle" }, "turns": [] })
}

/// Makes a ready connection with thread `t`; the next request id is 2.
fn session() -> Rig {
    let mut rig = hello(&spec("codex"));
    rig.open(1);
    reply(&mut rig, 1, j!({ "thread": thread("t"), "model": "m", "modelProvider": "p" }));
    assert!(matches!(rig.one(), RuntimeEvent::Opened { ticket: Ticket(1), how: OpenedAs::New, .. }));
    notify(&mut rig, "thread/started", j!({ "thread": thread("t") }));
    assert!(rig.take_events().is_empty(), "our own thread is no news");
    rig.sent();
    rig
}

fn turn(id: &str, status: &str, items: Value) -> Value {
    j!({ "id": id, "status": status, "items": items, "error": null })
}

/// Sends the prompt of ticket 5, which starts turn `u` under the request id `id`.
fn prompted(rig: &mut Rig, id: u64) {
    rig.prompt(5, "t", "hi");
    let sent = rig.sent();
    assert_eq!((&sent[0]["id"], &sent[0]["method"]), (&j!(id), &j!("turn/start")));
    assert!(sent[0].get("jsonrpc").is_none());
    assert_eq!(sent[0]["params"]["clientUserMessageId"], "plexus-5");
    assert_eq!(sent[0]["params"]["input"], j!([{ "type": "text", "text": "hi", "text_elements": [] }]));
    reply(rig, id, j!({ "turn": turn("u", "inProgress", j!([])) }));
    notify(rig, "turn/started", j!({ "turn": turn("u", "inProgress", j!([])) }));
    assert!(rig.take_events().is_empty());
}

fn item(rig: &mut Rig, method: &str, item: Value) {
    notify(rig, &format!("item/{method}"), j!({ "turnId": "u", "item": item }));
}

fn delta(rig: &mut Rig, id: &str, text: &str) {
    notify(rig, "item/agentMessage/delta", j!({ "turnId": "u", "itemId": id, "delta": text }));
}

fn message(id: &str, text: &str) -> Value {
    j!({ "type": "agentMessage", "id": id, "text": text })
}

fn shell(status: &str) -> Value {
    j!({ "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/w", "status": status, "aggregatedOutput": null, "exitCode": null })
}

/// Returns the text of all events of this kind, and the number of other events.
fn text_of(events: &[RuntimeEvent], kind: Kind) -> String {
    let mut text = String::new();
    for events in events {
        if let RuntimeEvent::Event { draft, .. } = events
            && draft.kind == kind
        {
            text.push_str(json(&draft.body)["content"]["text"].as_str().unwrap());
        }
    }
    text
}

fn kinds(events: &[RuntimeEvent]) -> Vec<String> {
    let name = |event: &RuntimeEvent| match event {
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Error => {
            json(&draft.body)["code"].as_str().unwrap().to_owned()
        }
        RuntimeEvent::Event { draft, .. } => draft.kind.as_str().to_owned(),
        RuntimeEvent::Ended { ticket, end, .. } => format!("ended {} {:?}", ticket.0, end.status),
        RuntimeEvent::Done { end, .. } => format!("done {:?}", end.status),
        RuntimeEvent::Began { .. } => "began".into(),
        RuntimeEvent::Opened { how, drafts, .. } => {
            format!("opened {how:?} {}", drafts.iter().map(|draft| draft.kind.as_str()).collect::<Vec<_>>().join(","))
        }
        RuntimeEvent::TakenBack { elsewhere, .. } => format!("taken back {}", elsewhere.is_some()),
        RuntimeEvent::Asked { ask, .. } => format!("asked {}", ask.key.id()),
        RuntimeEvent::Found { native, title, .. } => format!("found {native} {}", title.clone().unwrap_or_default()),
        other => format!("{other:?}"),
    };
    events.iter().map(name).collect()
}

fn end_turn(rig: &mut Rig, status: &str) {
    notify(rig, "turn/completed", j!({ "turn": turn("u", status, j!([])) }));
}

#[test]
fn codex_initialize_asks_for_the_decisions_of_a_question() {
    let mut rig = Rig::new(&spec("codex"));
    let first = rig.sent().remove(0);
    assert_eq!((&first["id"], &first["method"]), (&j!(0), &j!("initialize")));
    assert!(first.get("jsonrpc").is_none());
    assert_eq!(first["params"]["capabilities"]["experimentalApi"], true);
    rig.feed(HELLO);
    assert_eq!(rig.sent(), [j!({ "method": "initialized" })]);
    for (reply, part) in [
        (r#"{"id":0,"error":{"code":-1,"message":"boom","data":"no key"}}"#, "boom: no key"),
        (r#"{"id":0,"result":{}}"#, "not that of a Codex"),
    ] {
        let mut rig = Rig::new(&spec("codex"));
        rig.feed(reply);
        assert!(matches!(rig.one(), RuntimeEvent::Failed { message } if message.contains(part)));
        rig.open(1);
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { .. }), "of no use afterwards");
    }
}

#[test]
fn codex_reports_text_once() {
    let mut rig = session();
    prompted(&mut rig, 2);
    item(
        &mut rig,
        "started",
        j!({ "type": "userMessage", "id": "m", "clientId": "plexus-5", "content": [{ "type": "text", "text": "hi" }] }),
    );
    item(
        &mut rig,
        "completed",
        j!({ "type": "userMessage", "id": "m", "clientId": "plexus-5", "content": [{ "type": "text", "text": "hi" }] }),
    );
    assert!(rig.take_events().is_empty(), "our own words are not repeated");
    item(&mut rig, "started", message("a", ""));
    delta(&mut rig, "a", "one ");
    delta(&mut rig, "a", "two");
    item(&mut rig, "completed", message("a", "one two"));
    item(&mut rig, "completed", message("a", "one two"));
    item(&mut rig, "completed", message("b", "no pieces"));
    item(&mut rig, "started", message("c", ""));
    delta(&mut rig, "c", "be");
    item(&mut rig, "completed", message("c", "beginning"));
    item(&mut rig, "started", message("d", ""));
    delta(&mut rig, "d", "other words");
    item(&mut rig, "completed", message("d", "than these"));
    let events = rig.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "one twono piecesbeginningother words");
    assert!(events.iter().all(|event| matches!(event, RuntimeEvent::Event { draft, .. } if draft.native.is_some())));
    notify(
        &mut rig,
        "turn/completed",
        j!({ "turn": turn("u", "completed", j!([message("a", "one two"), message("z", "last")])) }),
    );
    let events = rig.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "last");
    assert_eq!(kinds(&events), ["agent_message_chunk", "ended 5 Completed"]);
}

#[test]
fn codex_reused_item_names_in_two_turns_are_two_items() {
    for name in ["u", "v"] {
        let mut rig = session();
        for (ticket, id, turn_id) in [(5, 2, "u"), (6, 3, name)] {
            rig.prompt(ticket, "t", "hi");
            rig.sent();
            let at_work = || j!({ "turn": turn(turn_id, "inProgress", j!([])) });
            reply(&mut rig, id, at_work());
            notify(&mut rig, "turn/started", at_work());
            for (what, events) in [
                ("started", shell("inProgress")),
                ("completed", shell("completed")),
                ("completed", message("a", "one")),
                ("completed", message("a", "one")),
            ] {
                notify(&mut rig, &format!("item/{what}"), j!({ "turnId": turn_id, "item": events }));
            }
            notify(&mut rig, "turn/completed", j!({ "turn": turn(turn_id, "completed", j!([])) }));
            let ended = format!("ended {ticket} Completed");
            let reported = ["tool_call", "tool_call_update", "agent_message_chunk", ended.as_str()];
            assert_eq!(kinds(&rig.take_events()), reported, "prompt {ticket} as turn {turn_id}");
        }
    }
}

#[test]
fn codex_thoughts_come_in_parts() {
    let mut rig = session();
    prompted(&mut rig, 2);
    item(&mut rig, "started", j!({ "type": "reasoning", "id": "r", "summary": [], "content": [] }));
    for (index, text) in [(0, "one"), (1, "two"), (1, "!")] {
        notify(&mut rig, "item/reasoning/summaryPartAdded", j!({ "itemId": "r", "summaryIndex": index }));
        notify(
            &mut rig,
            "item/reasoning/summaryTextDelta",
            j!({ "itemId": "r", "delta": text, "summaryIndex": index }),
        );
    }
    item(
        &mut rig,
        "completed",
        j!({ "type": "reasoning", "id": "r", "summary": ["one", "two!", "three"], "content": [] }),
    );
    assert_eq!(text_of(&rig.take_events(), Kind::AgentThoughtChunk), "one\n\ntwo!\n\nthree");
}

#[test]
fn codex_turn_end_has_its_stop_reason() {
    for (status, expected) in
        [("completed", RunStatus::Completed), ("interrupted", RunStatus::Cancelled), ("failed", RunStatus::Error)]
    {
        let mut rig = session();
        prompted(&mut rig, 2);
        let error =
            j!({ "error": { "message": "busy", "additionalDetails": "very" }, "turnId": "u", "willRetry": true });
        notify(&mut rig, "error", error);
        let event = json(&rig.event().body);
        assert_eq!((&event["message"], &event["will_retry"]), (&j!("busy: very"), &j!(true)));
        notify(&mut rig, "error", j!({ "error": { "message": "gone" }, "turnId": "u", "willRetry": false }));
        end_turn(&mut rig, status);
        let (ticket, end) = rig.end();
        assert_eq!((ticket, end.status, end.stop_reason.as_deref()), (5, expected, Some(status)));
        assert_eq!(end.message.as_deref(), (expected == RunStatus::Error).then_some("gone"));
    }
}

#[test]
fn codex_tools_open_and_close() {
    let diff = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-x\n+y\n";
    let patch = |path: &str, kind: Value, diff: &str| j!({ "path": path, "kind": kind, "diff": diff });
    for (item_, kind, title, content) in [
        (shell("completed"), j!("execute"), "ls", Value::Null),
        (
            j!({ "type": "fileChange", "id": "c", "status": "completed", "changes": [
                patch("/a", j!({ "type": "add" }), "new\n"), patch("/b", j!({ "type": "update", "move_path": null }), diff) ] }),
            j!("edit"),
            "Edit /a, /b",
            j!([
                { "type": "diff", "path": "/a", "oldText": null, "newText": "new\n" },
                { "type": "diff", "path": "/b", "oldText": "a\nb\n", "newText": "a\nc\n" },
                { "type": "diff", "path": "/b", "oldText": "x\n", "newText": "y\n" },
            ]),
        ),
        (
            j!({ "type": "mcpToolCall", "id": "c", "server": "s", "tool": "t", "arguments": { "k": 1 }, "status": "completed",
                 "result": { "content": [{ "type": "text", "text": "out" }] } }),
            Value::Null,
            "s.t",
            j!([{ "type": "content", "content": { "type": "text", "text": "out" } }]),
        ),
        (j!({ "type": "webSearch", "id": "c", "query": "q" }), j!("fetch"), "Search the web: q", Value::Null),
    ] {
        let mut rig = session();
        prompted(&mut rig, 2);
        let mut begun = item_.clone();
        begun["status"] = "inProgress".into();
        item(&mut rig, "started", begun.clone());
        let call = rig.event();
        assert_eq!((call.kind, call.tool.unwrap().ended), (Kind::ToolCall, false));
        let body = json(&call.body);
        assert_eq!((&body["kind"], &body["title"], &body["status"]), (&kind, &j!(title), &j!("in_progress")));
        item(&mut rig, "started", begun);
        assert!(rig.take_events().is_empty());
        item(&mut rig, "completed", item_.clone());
        let update = rig.event();
        assert_eq!((update.kind, update.tool.unwrap().ended), (Kind::ToolCallUpdate, true));
        assert_eq!(json(&update.body)["content"], content);
        assert_eq!(json(&update.body)["status"], "completed");
        // An unknown item: one event has all of it.
        let mut rig = session();
        prompted(&mut rig, 2);
        let mut declined = item_;
        declined["status"] = "declined".into();
        item(&mut rig, "completed", declined);
        let call = rig.event();
        assert_eq!((call.kind, call.tool.unwrap().ended), (Kind::ToolCall, true));
        assert_eq!(json(&call.body)["status"], "failed");
    }
}

#[test]
fn codex_other_notifications_become_events() {
    for (method, params, kind, part) in [
        ("turn/plan/updated", j!({ "plan": [{ "step": "s", "status": "inProgress" }] }), Kind::Plan, "in_progress"),
        (
            "thread/tokenUsage/updated",
            j!({ "tokenUsage": { "total": { "totalTokens": 9 }, "last": { "totalTokens": 4 }, "modelContextWindow": 8 } }),
            Kind::UsageUpdate,
            r#""size":8"#,
        ),
        ("thread/name/updated", j!({ "threadName": "N" }), Kind::SessionInfoUpdate, r#""title":"N""#),
        ("warning", j!({ "message": "careful" }), Kind::Error, "careful"),
        ("configWarning", j!({ "summary": "odd", "details": "file" }), Kind::Error, r"odd\nfile"),
        ("thread/goal/cleared", j!({}), Kind::Hook, "thread/goal/cleared"),
        ("item/new/thing", j!({}), Kind::Raw, "unknown notification"),
        ("item/agentMessage/delta", j!({}), Kind::Raw, "incomplete notification"),
        ("item/completed", j!({ "item": { "type": "new", "id": "x" } }), Kind::Raw, "unknown type"),
        (
            "item/completed",
            j!({ "item": { "type": "contextCompaction", "id": "x" } }),
            Kind::Hook,
            "item/contextCompaction",
        ),
        ("item/completed", j!({ "item": { "type": "plan", "id": "x", "text": "do" } }), Kind::AgentMessageChunk, "do"),
        ("item/commandExecution/outputDelta", j!({ "itemId": "c", "delta": "out" }), Kind::ToolCallUpdate, "out"),
        ("item/mcpToolCall/progress", j!({ "itemId": "c", "message": "half" }), Kind::ToolCallUpdate, "half"),
        (
            "item/fileChange/patchUpdated",
            j!({ "itemId": "c", "changes": [{ "path": "/a", "kind": { "type": "delete" }, "diff": "old" }] }),
            Kind::ToolCallUpdate,
            r#""oldText":"old""#,
        ),
    ] {
        let mut rig = session();
        prompted(&mut rig, 2);
        if kind == Kind::ToolCallUpdate {
            item(&mut rig, "started", shell("inProgress"));
            rig.take_events();
        }
        notify(&mut rig, method, params);
        let event = rig.event();
        assert_eq!(event.kind, kind, "{method}");
        assert!(std::str::from_utf8(&event.body).unwrap().contains(part), "{method}: {:?}", event.body);
        assert!(event.native.is_some());
    }
    let mut rig = session();
    notify(&mut rig, "thread/status/changed", j!({ "status": { "type": "idle" } }));
    assert!(rig.take_events().is_empty());
    notify(&mut rig, "thread/status/changed", j!({ "status": { "type": "systemError" } }));
    assert_eq!(kinds(&rig.take_events()), ["system_error"]);
    prompted(&mut rig, 2);
    notify(&mut rig, "thread/status/changed", j!({ "status": { "type": "systemError" } }));
    assert!(rig.take_events().is_empty(), "the end of the turn says it");
}

fn ask(rig: &mut Rig, id: u64, method: &str, mut params: Value) {
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    rig.feed(j!({ "id": id, "method": method, "params": params }).to_string());
}

const COMMAND: &str = "item/commandExecution/requestApproval";

fn review(rig: &mut Rig, status: &str, action: Value) -> Vec<RuntimeEvent> {
    notify(
        rig,
        "item/autoApprovalReview/completed",
        j!({ "turnId": "u", "reviewId": "v", "targetItemId": "c", "startedAtMs": 1, "completedAtMs": 2, "decisionSource": "agent",
            "review": { "status": status, "riskLevel": "low", "rationale": "it only lists" }, "action": action }),
    );
    rig.take_events()
}

#[test]
fn codex_review_of_its_own_is_reported_with_the_decision() {
    let command = || j!({ "type": "command", "command": "ls", "cwd": "/w", "source": "shell" });
    for (status, decided) in [("approved", Some(true)), ("denied", Some(false)), ("timedOut", None)] {
        let mut rig = session();
        assert_eq!(rig.dialect.reviewer(), None);
        let events = review(&mut rig, status, command());
        match (events.as_slice(), decided) {
            ([RuntimeEvent::Reviewed { native, ask, review }], Some(allowed)) => {
                assert_eq!((native.as_str(), review.by.as_str(), review.allowed), ("t", "Codex's reviewer", allowed));
                assert_eq!(review.reason.as_deref(), Some("it only lists"));
                let cwd = Some(FolderClaim::Field("/w".into()));
                assert_eq!(ask.subject, RequestSubject::Command { argv: vec!["ls".into()], cwd });
                assert_eq!((ask.tool_call_id.as_deref(), ask.observe_only), (Some("c"), true));
                assert_eq!(rig.dialect.reviewer(), Some("Codex's reviewer"));
            }
            ([RuntimeEvent::Event { draft, .. }], None) => assert_eq!(draft.kind, Kind::Hook),
            (events, _) => panic!("{status}: {events:?}"),
        }
        assert!(rig.sent().is_empty(), "it is no question to us");
    }
    // Another action than a command is shown as the server describes it.
    let events = review(&mut session(), "approved", j!({ "type": "networkAccess", "host": "a.example", "port": 443 }));
    let [RuntimeEvent::Reviewed { ask, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert!(
        matches!(&ask.subject, RequestSubject::Tool { name, arguments } if name == "networkAccess" && arguments.contains("a.example"))
    );
}

#[test]
fn codex_reviewer_is_known_from_the_opening_of_a_thread() {
    for (reviewer, known) in [("user", None), ("auto_review", Some("Codex's reviewer"))] {
        let mut rig = hello(&spec("codex"));
        rig.open(1);
        reply(&mut rig, 1, j!({ "thread": thread("t"), "model": "m", "approvalsReviewer": reviewer }));
        assert_eq!(rig.dialect.reviewer(), known, "{reviewer}");
    }
}

#[test]
fn codex_questions_beyond_the_share_wait_unanswered() {
    let mut rig = session();
    let asked_ids = |rig: &mut Rig| -> Vec<String> {
        let events = rig.take_events();
        let ids = events.iter().filter_map(|event| match event {
            RuntimeEvent::Asked { ask, .. } => Some(ask.key.id().to_owned()),
            _ => None,
        });
        ids.collect()
    };
    for id in 100..400 {
        let mut question = command();
        question["itemId"] = format!("c{id}").into();
        ask(&mut rig, id, COMMAND, question);
    }
    let mut open = asked_ids(&mut rig);
    let shown = open.len();
    assert!(shown < 300 && rig.dialect.held() > 0 && rig.sent().is_empty());
    // Another client answers one that people have not seen.
    notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 399 }));
    assert!(rig.take_events().is_empty());
    let mut answered = 0;
    while let Some(id) = open.pop() {
        rig.answer(&id, choose("accept", Choice::AllowOnce));
        let sent = rig.sent();
        assert_eq!((sent.len(), &sent[0]["result"]["decision"]), (1, &j!("accept")));
        answered += 1;
        open.extend(asked_ids(&mut rig));
    }
    assert_eq!((answered, rig.dialect.held()), (299, 0));
}

fn command() -> Value {
    j!({ "itemId": "c", "command": "ls", "cwd": "/w", "reason": "why", "availableDecisions": [
        "accept", { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["ls"] } }, "cancel" ] })
}

#[test]
fn codex_command_approval_offers_the_decisions_of_codex() {
    let amended = j!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["ls"] } });
    for (decision, sent) in [
        (choose("accept", Choice::AllowOnce), j!("accept")),
        (choose("acceptWithExecpolicyAmendment", Choice::AllowAlways), amended),
        (choose("cancel", Choice::RejectOnce), j!("cancel")),
        (choose("acceptForSession", Choice::AllowAlways), j!("cancel")),
        (Decision::Withdrawn, j!("cancel")),
        (Decision::Expired, j!("cancel")),
    ] {
        let mut rig = session();
        prompted(&mut rig, 2);
        ask(&mut rig, 7, COMMAND, command());
        let asked = rig.ask();
        let offers: Vec<_> = asked.options.iter().map(|offer| (offer.id.as_str(), offer.kind)).collect();
        assert_eq!(
            offers,
            [
                ("accept", Choice::AllowOnce),
                ("acceptWithExecpolicyAmendment", Choice::AllowAlways),
                ("cancel", Choice::RejectOnce)
            ]
        );
        assert_eq!(
            asked.subject,
            RequestSubject::Command { argv: vec!["ls".into()], cwd: Some(FolderClaim::Field("/w".into())) }
        );
        assert_eq!((asked.message.as_deref(), asked.tool_call_id.as_deref()), (Some("why"), Some("c")));
        assert!(asked.first_mention.is_some(), "no item told of it");
        assert_eq!(rig.dialect.asks().iter().map(RequestKey::id).collect::<Vec<_>>(), ["7"]);
        rig.answer("7", decision);
        assert_eq!(rig.sent(), [j!({ "id": 7, "result": { "decision": sent } })]);
        assert!(rig.dialect.asks().is_empty());
        rig.answer("7", choose("accept", Choice::AllowOnce));
        assert!(rig.sent().is_empty(), "once");
        notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 7 }));
        end_turn(&mut rig, "completed");
        assert_eq!(kinds(&rig.take_events()), ["ended 5 Completed"], "our own answer is nobody else's");
    }
}

#[test]
fn codex_other_questions_offer_their_options() {
    let rule = |action: &str| j!({ "applyNetworkPolicyAmendment": { "network_policy_amendment": { "host": "h", "action": action } } });
    let network = j!({ "command": "curl h", "networkApprovalContext": { "host": "h", "protocol": "https" },
        "availableDecisions": ["accept", rule("allow"), rule("deny"), "newWord", { "newObject": {} }] });
    let permissions = j!({ "permissions": { "network": { "enabled": true }, "fileSystem": null } });
    let granted = j!({ "network": { "enabled": true } });
    for (method, params, offers, choice, answer) in [
        (
            COMMAND,
            j!({ "command": "ls" }),
            "accept acceptForSession decline cancel",
            "decline",
            j!({ "decision": "decline" }),
        ),
        (
            COMMAND,
            network,
            "accept applyNetworkPolicyAmendment applyNetworkPolicyAmendment:2 newWord newObject",
            "applyNetworkPolicyAmendment:2",
            j!({ "decision": rule("deny") }),
        ),
        (
            "item/fileChange/requestApproval",
            j!({ "itemId": "f" }),
            "accept acceptForSession decline cancel",
            "acceptForSession",
            j!({ "decision": "acceptForSession" }),
        ),
        (
            "item/permissions/requestApproval",
            permissions.clone(),
            "allow allow_session deny",
            "allow_session",
            j!({ "permissions": granted, "scope": "session" }),
        ),
        (
            "item/permissions/requestApproval",
            permissions,
            "allow allow_session deny",
            "",
            j!({ "permissions": {}, "scope": "turn" }),
        ),
        (
            "execCommandApproval",
            j!({ "callId": "c", "command": ["ls", "-l"], "cwd": "/w" }),
            "approved approved_for_session denied abort",
            "denied",
            j!({ "decision": { "denied": { "rejection": "declined by the user" } } }),
        ),
        (
            "applyPatchApproval",
            j!({ "callId": "c", "fileChanges": { "/a": { "type": "add", "content": "x" } } }),
            "approved approved_for_session denied abort",
            "",
            j!({ "decision": "abort" }),
        ),
        (
            "mcpServer/elicitation/request",
            j!({ "mode": "form", "serverName": "s", "message": "run it?", "requestedSchema": { "type": "object", "properties": {} },
                "_meta": { "persist": ["session", "always"] } }),
            "accept session always decline cancel",
            "always",
            j!({ "action": "accept", "content": {}, "_meta": { "persist": "always" } }),
        ),
        (
            "mcpServer/elicitation/request",
            j!({ "mode": "url", "serverName": "s", "message": "open", "url": "https://x", "elicitationId": "e" }),
            "accept decline cancel",
            "",
            j!({ "action": "cancel", "content": null, "_meta": null }),
        ),
    ] {
        let mut rig = session();
        prompted(&mut rig, 2);
        ask(&mut rig, 3, method, params);
        let asked = rig.ask();
        let ids: Vec<_> = asked.options.iter().map(|offer| offer.id.as_str()).collect();
        assert_eq!(ids.join(" "), offers, "{method}");
        let decision = if choice.is_empty() { Decision::Expired } else { choose(choice, Choice::Other) };
        rig.answer("3", decision);
        assert_eq!(rig.sent(), [j!({ "id": 3, "result": answer })], "{method}");
    }
}

#[test]
fn codex_file_change_shows_its_diff() {
    let mut rig = session();
    prompted(&mut rig, 2);
    let change = j!({ "type": "fileChange", "id": "f", "status": "inProgress",
        "changes": [{ "path": "/a", "kind": { "type": "add" }, "diff": "new\n" }] });
    item(&mut rig, "started", change);
    rig.take_events();
    ask(&mut rig, 3, "item/fileChange/requestApproval", j!({ "itemId": "f" }));
    let asked = rig.ask();
    assert_eq!(asked.subject, RequestSubject::Edits(vec![("/a".into(), None, "new\n".into())]));
    assert!(asked.first_mention.is_none());
    ask(&mut rig, 4, "item/fileChange/requestApproval", j!({ "itemId": "f", "grantRoot": "/" }));
    assert!(
        matches!(rig.ask().subject, RequestSubject::Unreadable { raw: text, .. } if text.contains("grantRoot") && text.contains("/a"))
    );
    ask(&mut rig, 5, COMMAND, j!({ "kind": "writeStdin", "command": "y", "availableDecisions": ["accept"] }));
    assert!(
        matches!(rig.ask().subject, RequestSubject::Unreadable { raw: text, .. } if text.contains("writeStdin")),
        "no command of its own"
    );
}

#[test]
fn codex_asks_questions_one_by_one() {
    let questions = j!({ "itemId": "q", "questions": [
        { "id": "a", "header": "H", "question": "which?", "isOther": true, "isSecret": false,
          "options": [{ "label": "x", "description": "dx" }, { "label": "y", "description": "dy" }] },
        { "id": "b", "header": "", "question": "name?", "isOther": false, "isSecret": true, "options": null } ] });
    let mut rig = session();
    prompted(&mut rig, 2);
    ask(&mut rig, 3, "item/tool/requestUserInput", questions.clone());
    let first = rig.ask();
    assert_eq!((first.kind, first.items.len(), first.message.as_deref()), (RequestType::Pick, 3, Some("H: which?")));
    rig.answer("3", Decision::Ids(vec![first.items[2].id.clone()]));
    let free = rig.ask();
    assert_eq!((free.kind, free.key.id()), (RequestType::Prompt, "3"));
    assert!(rig.sent().is_empty());
    rig.answer("3", Decision::Value(Some("z".into())));
    let second = rig.ask();
    assert_eq!((second.kind, second.secret), (RequestType::Prompt, true));
    rig.answer("3", Decision::Value(Some("n".into())));
    let answers = j!({ "answers": { "a": { "answers": ["z"] }, "b": { "answers": ["n"] } } });
    assert_eq!(rig.sent(), [j!({ "id": 3, "result": answers })]);

    ask(&mut rig, 4, "item/tool/requestUserInput", questions);
    rig.ask();
    rig.answer("4", Decision::Ids(vec!["x".into()]));
    rig.ask();
    notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 4 }));
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { key, elsewhere: Some(_), .. } if key.id() == "4"));
    rig.answer("4", Decision::Withdrawn);
    assert!(rig.sent().is_empty());
}

#[test]
fn codex_form_is_filled_in_field_by_field() {
    let schema = j!({ "type": "object", "required": ["n", "on"], "properties": {
        "n": { "type": "integer", "title": "How many" }, "on": { "type": "boolean" },
        "tags": { "type": "array", "items": { "type": "string", "enum": ["p", "q"] } }, "w": { "type": "string" } } });
    let mut rig = session();
    prompted(&mut rig, 2);
    let form = j!({ "mode": "form", "serverName": "s", "message": "fill", "requestedSchema": schema });
    ask(&mut rig, 3, "mcpServer/elicitation/request", form);
    assert_eq!(rig.ask().kind, RequestType::Elicitation);
    rig.answer("3", choose("accept", Choice::AllowOnce));
    assert_eq!(rig.ask().message.as_deref(), Some("How many"));
    rig.answer("3", Decision::Value(Some("many".into())));
    assert_eq!(rig.ask().message.as_deref(), Some("How many"), "no number: asked again");
    rig.answer("3", Decision::Value(Some(" 4 ".into())));
    assert_eq!(rig.ask().kind, RequestType::Pick);
    rig.answer("3", Decision::Ids(vec!["true".into()]));
    assert!(rig.ask().multi);
    rig.answer("3", Decision::Ids(vec!["p".into(), "q".into()]));
    rig.ask();
    rig.answer("3", Decision::Value(Some(String::new())));
    let content = j!({ "n": 4, "on": true, "tags": ["p", "q"] });
    assert_eq!(rig.sent(), [j!({ "id": 3, "result": { "action": "accept", "content": content, "_meta": null } })]);
}

#[test]
fn codex_denies_unaskable_questions_where_it_is_the_only_client() {
    for (method, params, result) in [
        (COMMAND, j!({ "availableDecisions": [] }), j!({ "decision": "cancel" })),
        ("item/permissions/requestApproval", j!({}), j!({ "permissions": {}, "scope": "turn" })),
        ("item/tool/requestUserInput", j!({ "questions": [] }), j!({ "answers": {} })),
        (
            "mcpServer/elicitation/request",
            j!({ "mode": "openai/userVerification", "message": "m" }),
            j!({ "action": "cancel", "content": null, "_meta": null }),
        ),
        ("item/tool/call", j!({ "tool": "x" }), j!({ "contentItems": [], "success": false })),
        ("execCommandApproval", j!({ "command": 7 }), j!({ "decision": "abort" })),
    ] {
        let mut rig = session();
        ask(&mut rig, 3, method, params.clone());
        assert_eq!(rig.event().kind, Kind::Raw);
        assert_eq!(rig.sent(), [j!({ "id": 3, "result": result })], "{method}");
        let mut rig = shared();
        ask(&mut rig, 3, method, params);
        assert_eq!(rig.event().kind, Kind::Raw);
        assert!(rig.sent().is_empty(), "{method}: another client may know it");
    }
    let mut rig = session();
    ask(&mut rig, 3, "attestation/generate", j!({}));
    assert_eq!(rig.sent()[0]["error"]["code"], -32601);
}

#[test]
fn codex_answer_of_another_client_closes_the_question() {
    let mut rig = session();
    prompted(&mut rig, 2);
    ask(&mut rig, 7, COMMAND, command());
    rig.ask();
    notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 7 }));
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { elsewhere: Some(by), .. } if by.by == OTHER));
    rig.answer("7", choose("accept", Choice::AllowOnce));
    assert!(rig.sent().is_empty());
    ask(&mut rig, 8, COMMAND, command());
    rig.ask();
    end_turn(&mut rig, "interrupted");
    assert_eq!(kinds(&rig.take_events()), ["taken back false", "ended 5 Cancelled"]);
    notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 8 }));
    assert!(rig.take_events().is_empty());
}

#[test]
fn codex_cancel_waits_for_the_turn_id() {
    let mut rig = session();
    rig.prompt(5, "t", "hi");
    rig.sent();
    rig.cancel(5, "t");
    assert!(rig.sent().is_empty());
    reply(&mut rig, 2, j!({ "turn": turn("u", "inProgress", j!([])) }));
    let sent = rig.sent();
    assert_eq!(sent[0]["method"], "turn/interrupt");
    assert_eq!(sent[0]["params"], j!({ "threadId": "t", "turnId": "u" }));
    rig.feed(r#"{"id":3,"error":{"code":-32600,"message":"no active turn"}}"#);
    assert_eq!(kinds(&rig.take_events()), ["cancel_refused"]);
    end_turn(&mut rig, "interrupted");
    rig.take_events();
    rig.cancel(5, "t");
    assert!(rig.sent().is_empty(), "over");
}

#[test]
fn codex_turn_may_begin_and_end_before_the_start_is_answered() {
    for (name, expected) in [("u", "ended 5 Completed"), ("v", "")] {
        let mut rig = session();
        rig.prompt(5, "t", "hi");
        notify(&mut rig, "turn/started", j!({ "turn": turn("u", "inProgress", j!([])) }));
        end_turn(&mut rig, "completed");
        assert!(rig.take_events().is_empty());
        reply(&mut rig, 2, j!({ "turn": turn(name, "inProgress", j!([])) }));
        assert_eq!(kinds(&rig.take_events()).concat(), expected);
        assert_eq!(rig.dialect.prompts().len(), usize::from(expected.is_empty()));
    }
}

#[test]
fn codex_early_end_keeps_its_frame_through_a_takeover() {
    let mut rig = session();
    rig.prompt(5, "t", "hi");
    notify(&mut rig, "turn/started", j!({ "turn": turn("u", "inProgress", j!([])) }));
    end_turn(&mut rig, "completed");
    let saved = rig.dialect.save().unwrap();
    rig.dialect = make(&spec("codex"));
    assert!(rig.dialect.restore(&saved));
    reply(&mut rig, 2, j!({ "turn": turn("u", "inProgress", j!([])) }));
    let RuntimeEvent::Ended { end, .. } = rig.one() else { panic!("the run did not end") };
    let frame = end.native.expect("the frame of its end");
    assert!(std::str::from_utf8(&frame).unwrap().contains("turn/completed"));
}

#[test]
fn codex_refused_prompt_ends_the_run() {
    let mut rig = session();
    rig.prompt(5, "t", "hi");
    rig.feed(r#"{"id":2,"error":{"code":-32600,"message":"thread not found"}}"#);
    assert!(matches!(rig.one(), RuntimeEvent::Ended { end, .. } if end.message.as_deref() == Some("thread not found")));
    rig.sent();
    rig.prompt(6, "elsewhere", "hi");
    assert!(matches!(rig.one(), RuntimeEvent::Ended { .. }));
    prompted(&mut rig, 3);
    rig.prompt(6, "t", "more");
    assert!(matches!(rig.one(), RuntimeEvent::Ended { ticket: Ticket(6), .. }));
}

#[test]
fn codex_retries_an_overloaded_server() {
    let mut rig = session();
    rig.prompt(5, "t", "hi");
    let first = rig.sent();
    for _ in 0..TRIES {
        rig.feed(r#"{"id":2,"error":{"code":-32001,"message":"Server overloaded; retry later."}}"#);
        assert!(rig.take_events().is_empty() && rig.sent().is_empty());
        assert!(rig.wakes > 0);
        rig.wake();
        assert_eq!(rig.sent(), first);
    }
    rig.feed(r#"{"id":2,"error":{"code":-32001,"message":"Server overloaded; retry later."}}"#);
    assert!(matches!(rig.one(), RuntimeEvent::Ended { .. }), "not for ever");
}

// ---- other clients --------------------------------------------------------------------------------------------------

/// Makes an endpoint with thread `t` resumed; the next request id is 3.
fn shared() -> Rig {
    joined(j!([]), true)
}

/// Makes an endpoint that opened thread `t` with these turns, newest first.
fn joined(turns: Value, known: bool) -> Rig {
    let mut rig = hello(&remote());
    assert_eq!(rig.sent()[2]["method"], "thread/loaded/list");
    resume(&mut rig, known);
    let page = j!({ "data": turns, "nextCursor": null });
    reply(&mut rig, 2, j!({ "thread": thread("t"), "model": "m", "modelProvider": "p", "initialTurnsPage": page }));
    rig.sent();
    if turns == j!([]) {
        rig.take_events();
    }
    rig
}

fn resume(rig: &mut Rig, known: bool) {
    let resume = Some(ResumeTarget::new("t".into(), known));
    rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["threadId"]), (&j!("thread/resume"), &j!("t")));
}

fn disconnect(rig: &mut Rig) {
    let mut out = Outbox::default();
    rig.dialect.lost("gone", &mut out);
    rig.events.extend(out.events);
}

/// Reconnects; thread `t` now has these turns, newest first.
fn reconnect(rig: &mut Rig, hello: u64, status: Value, turns: Value) {
    let mut out = Outbox::default();
    rig.dialect.open(&mut out);
    reply(rig, hello, j!({ "userAgent": "plexus/0.169.0 x" }));
    assert!(matches!(rig.one(), RuntimeEvent::Ready { .. }));
    rig.sent();
    let mut head = thread("t");
    head["status"] = status;
    let page = j!({ "data": turns, "nextCursor": null });
    reply(rig, hello + 1, j!({ "thread": head, "initialTurnsPage": page }));
}

fn active(flags: Value) -> Value {
    j!({ "type": "active", "activeFlags": flags })
}

#[test]
fn codex_reports_turns_of_other_clients() {
    let mut rig = shared();
    notify(&mut rig, "turn/started", j!({ "turn": turn("u", "inProgress", j!([])) }));
    assert!(matches!(rig.one(), RuntimeEvent::Began { by, .. } if by == OTHER));
    item(
        &mut rig,
        "completed",
        j!({ "type": "userMessage", "id": "m", "clientId": null, "content": [{ "type": "text", "text": "yo" }] }),
    );
    assert_eq!(text_of(&rig.take_events(), Kind::UserMessageChunk), "yo");
    rig.tell(RuntimeCommand::Cancel { ticket: None, native: "t".into(), reason: None });
    assert_eq!(rig.sent()[0]["params"]["turnId"], "u");
    end_turn(&mut rig, "interrupted");
    assert_eq!(kinds(&rig.take_events()), ["done Cancelled"]);
    // A prompt into another client's turn joins it.
    notify(&mut rig, "turn/started", j!({ "turn": turn("u", "inProgress", j!([])) }));
    rig.prompt(5, "t", "hi");
    reply(&mut rig, 4, j!({ "turn": turn("u", "inProgress", j!([])) }));
    end_turn(&mut rig, "completed");
    assert_eq!(kinds(&rig.take_events()), ["began", "done Completed", "ended 5 Completed"]);
    // Another client's message in our turn.
    rig.prompt(6, "t", "hi");
    reply(&mut rig, 5, j!({ "turn": turn("u", "inProgress", j!([])) }));
    for (id, client) in [("m1", j!("plexus-6")), ("m2", Value::Null)] {
        item(
            &mut rig,
            "completed",
            j!({ "type": "userMessage", "id": id, "clientId": client, "content": [{ "type": "text", "text": id }] }),
        );
    }
    assert_eq!(text_of(&rig.take_events(), Kind::UserMessageChunk), "m2");
}

#[test]
fn codex_does_not_report_threads_that_cannot_be_joined() {
    let hidden = |id: &str| {
        let mut thread = thread(id);
        thread["preview"] = "name this conversation".into();
        thread["status"] = active(j!([]));
        match id {
            "ephemeral" => thread["ephemeral"] = true.into(),
            "naming" => thread["threadSource"] = "thread_title".into(),
            _ => thread["source"] = j!({ "subAgent": "review" }),
        }
        thread
    };
    for id in ["ephemeral", "naming", "review"] {
        let mut rig = hello(&remote());
        rig.sent();
        rig.feed(j!({ "method": "thread/started", "params": { "thread": hidden(id) } }).to_string());
        let status = j!({ "threadId": id, "status": { "type": "active", "activeFlags": [] } });
        rig.feed(j!({ "method": "thread/status/changed", "params": status }).to_string());
        assert!(rig.take_events().is_empty() && rig.sent().is_empty(), "{id}: heard from its beginning");

        let mut rig = hello(&remote());
        rig.sent();
        reply(&mut rig, 1, j!({ "data": [id], "nextCursor": null }));
        reply(&mut rig, 2, j!({ "thread": hidden(id) }));
        rig.sent();
        rig.feed(j!({ "method": "thread/status/changed", "params": status }).to_string());
        assert!(rig.take_events().is_empty() && rig.sent().is_empty(), "{id}: found in the list");
    }
    // A helper of a helper, or of an attached thread, works for that.
    let mut rig = session();
    let mut helper = hidden("review");
    helper["attachedToThreadId"] = "t".into();
    rig.feed(j!({ "method": "thread/started", "params": { "thread": helper } }).to_string());
    rig.feed(j!({ "id": 1, "method": COMMAND, "params": { "threadId": "review", "command": "ls" } }).to_string());
    assert!(matches!(rig.one(), RuntimeEvent::Asked { native: Some(native), .. } if native.as_str() == "t"));
}

#[test]
fn codex_discovers_threads_of_others_once() {
    let mut rig = hello(&remote());
    rig.sent();
    reply(&mut rig, 1, j!({ "data": ["x", "y"], "nextCursor": null }));
    let sent = rig.sent();
    assert_eq!(sent[0]["params"], j!({ "threadId": "x", "includeTurns": false }));
    let mut x = thread("x");
    x["preview"] = "first words\nmore".into();
    reply(&mut rig, 2, j!({ "thread": x }));
    assert_eq!(kinds(&rig.take_events()), ["found x first words"]);
    let mut y = thread("y");
    y["parentThreadId"] = "t".into();
    reply(&mut rig, 3, j!({ "thread": y }));
    rig.feed(j!({ "method": "thread/started", "params": { "thread": thread("x") } }).to_string());
    assert!(rig.take_events().is_empty(), "a helper agent's, and one told of");
    let started = |id: &str| {
        let mut thread = thread(id);
        thread["preview"] = "said".into();
        j!({ "method": "thread/started", "params": { "thread": thread } }).to_string()
    };
    rig.feed(started("z"));
    assert_eq!(kinds(&rig.take_events()), ["found z said"]);
    // One that is gone again when it is opened is reported again when it is active.
    rig.sent();
    let status = j!({ "threadId": "n", "status": { "type": "active", "activeFlags": [] } });
    for id in [4, 7] {
        rig.feed(j!({ "method": "thread/status/changed", "params": status }).to_string());
        assert_eq!(rig.sent()[0]["method"], "thread/read");
        let mut young = thread("n");
        young["status"] = active(j!([]));
        reply(&mut rig, id, j!({ "thread": young }));
        assert_eq!(kinds(&rig.take_events()), ["found n "]);
        let resume = Some(ResumeTarget::new("n".into(), false));
        rig.tell(RuntimeCommand::Open { ticket: Ticket(9), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
        let error = j!({ "code": -32600, "message": "no rollout found" });
        rig.feed(j!({ "id": id + 1, "error": error }).to_string());
        rig.feed(j!({ "id": id + 2, "error": error }).to_string());
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { .. }));
        rig.sent();
    }
    // What is closed would be loaded again to be opened.
    let closed = j!({ "threadId": "n", "status": { "type": "notLoaded" } });
    rig.feed(j!({ "method": "thread/status/changed", "params": closed }).to_string());
    assert!(rig.sent().is_empty() && rig.take_events().is_empty());
    // The reply shows whose a thread is that started meanwhile.
    rig.open(1);
    for id in ["t", "w"] {
        rig.feed(started(id));
    }
    assert!(rig.take_events().is_empty());
    reply(&mut rig, 10, j!({ "thread": thread("t") }));
    assert_eq!(kinds(&rig.take_events()), ["opened New ", "found w said"]);
    // A helper's question is asked in the thread that it works for.
    rig.feed(
        j!({ "id": 1, "method": COMMAND, "params": { "threadId": "y", "turnId": "k", "command": "ls" } }).to_string(),
    );
    assert!(matches!(rig.one(), RuntimeEvent::Asked { native: Some(native), .. } if native.as_str() == "t"));
    // A question of a thread that is not open is sent again when it is opened.
    rig.sent();
    rig.feed(
        j!({ "id": 2, "method": COMMAND, "params": { "threadId": "q", "turnId": "k", "command": "ls" } }).to_string(),
    );
    assert_eq!(rig.sent()[0]["method"], "thread/read");
    assert!(rig.take_events().is_empty());
}

#[test]
fn codex_history_is_reported_only_if_the_log_lacks_it() {
    let user =
        j!({ "type": "userMessage", "id": "m", "clientId": null, "content": [{ "type": "text", "text": "yo" }] });
    let mut done = shell("completed");
    done["id"] = "d".into();
    let turns = || {
        j!([
            turn("u", "inProgress", j!([message("b", "early"), shell("inProgress")])),
            turn("o", "completed", j!([user, message("a", "said"), done])),
        ])
    };
    let mut rig = joined(turns(), false);
    let events = rig.take_events();
    assert_eq!(
        kinds(&events),
        [
            "opened Resumed user_message_chunk,agent_message_chunk,tool_call",
            "session_info_update",
            "began",
            "agent_message_chunk",
            "tool_call"
        ]
    );
    // Saved by a gateway without checkpoints: missed events are reported as missing.
    let mut rig2 = joined(turns(), true);
    assert_eq!(kinds(&rig2.take_events()), ["opened Resumed error", "began", "tool_call"]);
    for rig in [&mut rig, &mut rig2] {
        item(rig, "completed", shell("completed"));
        item(rig, "completed", message("b", "early"));
        end_turn(rig, "completed");
        assert_eq!(kinds(&rig.take_events()), ["tool_call_update", "done Completed"]);
    }
}

#[test]
fn codex_lost_thread_is_replaced_only_if_the_log_has_it() {
    let error = r#"{"id":2,"error":{"code":-32600,"message":"no rollout found"}}"#;
    let mut rig = hello(&remote());
    rig.sent();
    resume(&mut rig, true);
    rig.feed(error);
    assert_eq!(rig.sent()[0]["method"], "thread/start");
    reply(&mut rig, 3, j!({ "thread": thread("n") }));
    assert_eq!(kinds(&rig.take_events()), ["opened New "]);
    // It may be one in which nobody has written; it is not.
    let closed = j!({ "type": "notLoaded" });
    for reply in [
        j!({ "error": { "code": -32600, "message": "thread not found" } }),
        j!({ "result": { "thread": thread("t") } }),
    ] {
        let mut rig = hello(&remote());
        rig.sent();
        resume(&mut rig, false);
        rig.feed(error);
        assert_eq!(rig.sent()[0]["method"], "thread/read");
        let mut reply = reply;
        reply["id"] = 3.into();
        if reply.get("result").is_some() {
            reply["result"]["thread"]["status"] = closed.clone();
        }
        rig.feed(reply.to_string());
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.message == "no rollout found"));
        assert!(rig.sent().is_empty());
    }
}

/// The thread that Codex 0.169's terminal UI starts to name a conversation, as it was recorded.
const NAMING: &str = r#"{"id":"01a213d9-5b97-7362-9087-5cc4555d65dd","environments":[],"extra":null,"sessionId":"01a213d9-5b97-7362-9087-5cc4555d65dd","forkedFromId":null,"attachedToThreadId":null,"parentThreadId":null,"preview":"","ephemeral":true,"section":null,"sectionEnteredAt":null,"projectId":null,"historyMode":"paginated","modelProvider":"fake","model":"gpt-5.5","reasoningEffort":null,"createdAt":1795629341,"updatedAt":1795629341,"recencyAt":1795629341,"status":{"type":"idle"},"path":null,"cwd":"/w","cliVersion":"0.169.0","originator":"codex-tui","source":"vscode","canAcceptDirectInput":true,"threadSource":"thread_title","agentNickname":null,"agentRole":null,"gitInfo":null,"name":null,"daybreakEnabled":null,"turns":[]}"#;

/// The thread of a terminal in which nobody has written, as it was recorded.
const TERMINAL: &str = r#"{"id":"t","environments":[{"environmentId":"local","cwd":"/w","runtimeWorkspaceRoots":["/w"]}],"extra":null,"sessionId":"t","forkedFromId":null,"attachedToThreadId":null,"parentThreadId":null,"preview":"","ephemeral":false,"section":null,"sectionEnteredAt":null,"projectId":null,"historyMode":"paginated","modelProvider":"fake","model":"gpt-5.5","reasoningEffort":null,"createdAt":1795629336,"updatedAt":1795629336,"recencyAt":1795629336,"status":{"type":"idle"},"path":"/c/sessions/2026/11/25/rollout-2026-11-25T17-55-36-t.jsonl","cwd":"/w","cliVersion":"0.169.0","originator":"codex-tui","source":"vscode","canAcceptDirectInput":true,"threadSource":"user","agentNickname":null,"agentRole":null,"gitInfo":null,"name":null,"daybreakEnabled":null,"turns":[]}"#;

fn recorded(thread: &str) -> Value {
    serde_json::from_str(thread).unwrap()
}

const UNWRITTEN: &str = r#"{"code":-32600,"message":"no rollout found for thread id t"}"#;

/// Makes an endpoint with a terminal in which nobody has written: its session is open, and the next request id is 4.
fn unwritten() -> Rig {
    let mut rig = hello(&remote());
    rig.sent();
    rig.feed(j!({ "method": "thread/started", "params": { "thread": recorded(TERMINAL) } }).to_string());
    rig.feed(j!({ "method": "thread/started", "params": { "thread": recorded(NAMING) } }).to_string());
    assert_eq!(kinds(&rig.take_events()), ["found t "], "of the two, the terminal's");
    resume(&mut rig, false);
    rig.feed(format!(r#"{{"id":2,"error":{UNWRITTEN}}}"#));
    assert_eq!(rig.sent()[0]["method"], "thread/read");
    reply(&mut rig, 3, j!({ "thread": recorded(TERMINAL), "readState": null }));
    assert_eq!(kinds(&rig.take_events()), ["opened Resumed "]);
    assert!(rig.sent().is_empty(), "it is not joined yet");
    rig
}

/// Makes the thread active and joins it under this request id; then it has these turns.
fn written(rig: &mut Rig, id: u64, turns: Value) {
    notify(rig, "thread/status/changed", j!({ "status": active(j!([])) }));
    let sent = rig.sent();
    assert_eq!((&sent[0]["id"], &sent[0]["method"]), (&j!(id), &j!("thread/resume")));
    let mut head = recorded(TERMINAL);
    head["status"] = active(j!([]));
    let page = j!({ "data": turns, "nextCursor": null });
    reply(rig, id, j!({ "thread": head, "model": "m", "modelProvider": "p", "initialTurnsPage": page }));
}

#[test]
fn codex_terminal_is_open_before_its_first_message_and_joined_with_it() {
    let mut rig = unwritten();
    written(&mut rig, 4, j!([turn("u", "inProgress", j!([]))]));
    assert_eq!(kinds(&rig.take_events()), ["began"]);
    let user =
        j!({ "type": "userMessage", "id": "m", "clientId": "c", "content": [{ "type": "text", "text": "yo\nmore" }] });
    item(&mut rig, "started", user.clone());
    item(&mut rig, "completed", user);
    item(&mut rig, "started", message("a", ""));
    delta(&mut rig, "a", "two");
    item(&mut rig, "completed", message("a", "two"));
    end_turn(&mut rig, "completed");
    let events = rig.take_events();
    let expected = ["session_info_update", "user_message_chunk", "agent_message_chunk", "done Completed"];
    assert_eq!(kinds(&events), expected, "nothing of it is missing");
    assert!(matches!(&events[0], RuntimeEvent::Event { draft, .. } if draft.title.as_deref() == Some("yo")));
    // Its message may be there when it is joined.
    let mut late = unwritten();
    written(
        &mut late,
        4,
        j!([turn(
            "u",
            "inProgress",
            j!([{ "type": "userMessage", "id": "m", "content": [{ "type": "text", "text": "yo" }] }])
        )]),
    );
    assert_eq!(kinds(&late.take_events()), ["began", "session_info_update", "user_message_chunk"]);
    // From now on it is as any other: it is not joined again, and a reconnect reads it.
    notify(&mut rig, "thread/status/changed", j!({ "status": active(j!([])) }));
    assert!(rig.sent().is_empty());
    disconnect(&mut rig);
    reconnect(&mut rig, 5, j!({ "type": "idle" }), j!([turn("u", "completed", j!([message("a", "two")]))]));
    assert!(rig.take_events().is_empty());
}

#[test]
fn codex_terminal_takes_its_first_prompt_from_here() {
    let mut rig = unwritten();
    prompted(&mut rig, 4);
    written(&mut rig, 5, j!([turn("u", "inProgress", j!([]))]));
    assert!(rig.take_events().is_empty(), "it is our run");
    let user =
        j!({ "type": "userMessage", "id": "m", "clientId": "plexus-5", "content": [{ "type": "text", "text": "hi" }] });
    item(&mut rig, "completed", user);
    item(&mut rig, "started", message("a", ""));
    delta(&mut rig, "a", "yes");
    end_turn(&mut rig, "completed");
    assert_eq!(kinds(&rig.take_events()), ["agent_message_chunk", "ended 5 Completed"]);
}

#[test]
fn codex_terminal_is_joined_again_while_its_first_message_is_not_on_disk() {
    let mut rig = unwritten();
    notify(&mut rig, "thread/status/changed", j!({ "status": active(j!([])) }));
    let mut id = 4;
    while let Some(sent) = rig.sent().first() {
        assert_eq!((&sent["id"], &sent["method"]), (&j!(id), &j!("thread/resume")));
        notify(&mut rig, "thread/status/changed", j!({ "status": active(j!(["waitingOnApproval"])) }));
        assert!(rig.sent().is_empty(), "one request at a time");
        rig.feed(format!(r#"{{"id":{id},"error":{UNWRITTEN}}}"#));
        assert!(rig.sent().is_empty(), "not at once");
        rig.wake();
        id += 1;
    }
    assert_eq!(id, 14, "not for ever");
    assert!(rig.take_events().is_empty(), "nothing is lost yet");
    written(&mut rig, 14, j!([turn("u", "inProgress", j!([]))]));
    assert_eq!(kinds(&rig.take_events()), ["began"]);
    // Our own prompt does not wait for ever.
    let mut rig = unwritten();
    prompted(&mut rig, 4);
    notify(&mut rig, "thread/status/changed", j!({ "status": active(j!([])) }));
    for id in 5..15 {
        assert_eq!(rig.sent()[0]["id"], id);
        rig.feed(format!(r#"{{"id":{id},"error":{UNWRITTEN}}}"#));
        rig.wake();
    }
    assert_eq!(kinds(&rig.take_events()), ["not_resumed", "ended 5 Error"]);
}

#[test]
fn codex_terminal_without_a_message_survives_gateways_and_connections() {
    let mut rig = unwritten();
    // A connection.
    disconnect(&mut rig);
    let mut out = Outbox::default();
    rig.dialect.open(&mut out);
    reply(&mut rig, 4, j!({ "userAgent": "plexus/0.169.0 x" }));
    rig.take_events();
    let methods: Vec<_> = rig.sent().iter().map(|sent| sent["method"].as_str().unwrap().to_owned()).collect();
    assert_eq!(methods, ["initialized", "thread/read", "thread/loaded/list"]);
    let mut head = recorded(TERMINAL);
    head["status"] = active(j!([]));
    reply(&mut rig, 5, j!({ "thread": head }));
    assert_eq!(rig.sent()[0]["method"], "thread/resume", "somebody wrote meanwhile");
    // A gateway.
    let rig = unwritten();
    for there in [true, false] {
        let checkpoint = rig.checkpoint.clone().unwrap();
        let carried = CarriedState { checkpoint, prompt: Some(Ticket(7)), content: Vec::new(), asks: Vec::new() };
        let mut next = hello(&remote());
        next.sent();
        let resume = ResumeTarget { carried: Some(Box::new(carried)), ..ResumeTarget::new("t".into(), true) };
        let open =
            RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: Some(resume), mcp_servers: Vec::new() };
        next.tell(open);
        next.sent();
        next.feed(format!(r#"{{"id":2,"error":{UNWRITTEN}}}"#));
        assert_eq!(next.sent()[0]["method"], "thread/read", "no other conversation is begun in its place");
        if there {
            reply(&mut next, 3, j!({ "thread": recorded(TERMINAL) }));
            assert_eq!(kinds(&next.take_events()), ["opened Resumed ", "ended 7 Error"], "the prompt never arrived");
        } else {
            next.feed(format!(r#"{{"id":3,"error":{UNWRITTEN}}}"#));
            assert!(matches!(next.one(), RuntimeEvent::NotOpened { .. }));
        }
    }
}

#[test]
fn codex_message_with_a_missing_start_is_a_gap_then_the_whole_text() {
    let mut rig = joined(j!([turn("u", "inProgress", j!([]))]), false);
    rig.take_events();
    delta(&mut rig, "a", "two ");
    delta(&mut rig, "a", "three");
    assert_eq!(kinds(&rig.take_events()), ["gap"]);
    item(&mut rig, "completed", message("a", "one two three"));
    assert_eq!(text_of(&rig.take_events(), Kind::AgentMessageChunk), "one two three");
    // No text is held back for ever.
    delta(&mut rig, "b", "half");
    rig.take_events();
    end_turn(&mut rig, "interrupted");
    let events = rig.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "half");
    assert_eq!(kinds(&events), ["agent_message_chunk", "done Cancelled"]);
}

#[test]
fn codex_reconnect_reports_missed_events_once() {
    let mut rig = shared();
    prompted(&mut rig, 3);
    item(&mut rig, "started", message("a", ""));
    delta(&mut rig, "a", "one ");
    rig.take_events();
    disconnect(&mut rig);
    assert!(rig.take_events().is_empty() && rig.dialect.prompts() == [Ticket(5)]);
    reconnect(&mut rig, 4, active(j!([])), j!([turn("u", "inProgress", j!([]))]));
    delta(&mut rig, "a", "three");
    assert_eq!(kinds(&rig.take_events()), ["gap"]);
    item(&mut rig, "completed", message("a", "one two three"));
    assert_eq!(text_of(&rig.take_events(), Kind::AgentMessageChunk), "two three");
    item(&mut rig, "started", message("b", ""));
    delta(&mut rig, "b", "be");
    rig.take_events();
    disconnect(&mut rig);
    // Both ended meanwhile, and another client was active afterwards.
    let ours = turn("u", "completed", j!([message("a", "one two three"), message("b", "begun")]));
    let other = turn("v", "failed", j!([message("c", "theirs")]));
    reconnect(&mut rig, 7, j!({ "type": "idle" }), j!([other, ours]));
    let events = rig.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "guntheirs");
    assert_eq!(
        kinds(&events),
        ["agent_message_chunk", "ended 5 Completed", "began", "agent_message_chunk", "done Error"]
    );
    disconnect(&mut rig);
    let other = turn("v", "failed", j!([message("c", "theirs")]));
    reconnect(&mut rig, 10, j!({ "type": "idle" }), j!([other]));
    assert!(rig.take_events().is_empty(), "nothing new");
}

#[test]
fn codex_looks_for_a_prompt_sent_when_the_connection_broke() {
    let user = |client: &str| j!({ "type": "userMessage", "id": "m", "clientId": client, "content": [] });
    for (turns, expected) in [
        (j!([turn("u", "inProgress", j!([user("plexus-5")]))]), ""),
        (
            j!([turn("u", "completed", j!([user("plexus-5"), message("a", "x")]))]),
            "agent_message_chunk ended 5 Completed",
        ),
        (j!([]), "ended 5 Error"),
        (j!([turn("w", "completed", j!([]))]), "began done Completed ended 5 Error"),
        (j!([turn("w", "inProgress", j!([]))]), "began ended 5 Error"),
    ] {
        let mut rig = shared();
        rig.prompt(5, "t", "hi");
        disconnect(&mut rig);
        reconnect(&mut rig, 4, j!({ "type": "idle" }), turns.clone());
        assert_eq!(kinds(&rig.take_events()).join(" "), expected, "{turns}");
        assert_eq!(rig.dialect.prompts().len(), usize::from(expected.is_empty()));
    }
}

/// Makes another gateway process that resumes thread `t` with these turns, newest first; `prompt` and `asks` are pending in the session.
fn carried(rig: &Rig, prompt: Option<u64>, asks: &[RequestKey], status: Value, turns: Value, more: bool) -> Rig {
    let state = rig.checkpoint.clone().unwrap();
    let carried =
        CarriedState { checkpoint: state, prompt: prompt.map(Ticket), content: Vec::new(), asks: asks.to_vec() };
    let mut next = hello(&remote());
    next.sent();
    let resume = ResumeTarget { carried: Some(Box::new(carried)), ..ResumeTarget::new("t".into(), true) };
    next.tell(RuntimeCommand::Open {
        ticket: Ticket(1),
        cwd: "/w".into(),
        resume: Some(resume),
        mcp_servers: Vec::new(),
    });
    next.sent();
    let mut head = thread("t");
    head["status"] = status;
    let page = j!({ "data": turns, "nextCursor": if more { j!("older") } else { Value::Null } });
    reply(&mut next, 2, j!({ "thread": head, "initialTurnsPage": page }));
    assert!(matches!(next.events.remove(0), RuntimeEvent::Opened { how: OpenedAs::Resumed, .. }));
    next
}

fn idle() -> Value {
    j!({ "type": "idle" })
}

#[test]
fn codex_restart_reports_missed_events_once() {
    let mut rig = shared();
    prompted(&mut rig, 3);
    item(&mut rig, "started", message("a", ""));
    delta(&mut rig, "a", "one ");
    item(&mut rig, "started", shell("inProgress"));
    rig.take_events();
    let ours = |status: &str, end: &str| {
        let mut tool = shell(end);
        tool["exitCode"] = 0.into();
        turn("u", status, j!([message("a", "one two"), tool, message("b", "three")]))
    };
    // Wherever it is cut: the reports of both gateways together are the whole text, once.
    let other = || turn("v", "completed", j!([message("c", "theirs")]));
    let mut next = carried(&rig, Some(5), &[], idle(), j!([other(), ours("completed", "completed")]), false);
    let events = next.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "twothreetheirs");
    assert_eq!(
        kinds(&events),
        [
            "agent_message_chunk",
            "tool_call_update",
            "agent_message_chunk",
            "ended 5 Completed",
            "began",
            "agent_message_chunk",
            "done Completed"
        ]
    );
    let again = carried(&next, None, &[], idle(), j!([other(), ours("completed", "completed")]), false);
    assert!(again.events.is_empty(), "all is told: {:?}", kinds(&again.events));
    // It still runs: it continues as the same run of the same prompt.
    let mut next = carried(&rig, Some(5), &[], active(j!([])), j!([turn("u", "inProgress", j!([]))]), false);
    assert!(next.take_events().is_empty() && next.dialect.prompts() == [Ticket(5)]);
    item(&mut next, "completed", message("a", "one two"));
    item(&mut next, "completed", shell("completed"));
    end_turn(&mut next, "interrupted");
    let events = next.take_events();
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "two");
    assert_eq!(kinds(&events), ["agent_message_chunk", "tool_call_update", "ended 5 Cancelled"]);
    // Its session was closed meanwhile: it is a foreign run, and the prompt has no ticket.
    let next = carried(&rig, None, &[], idle(), j!([ours("completed", "completed")]), false);
    let events = kinds(&next.events);
    assert_eq!((events.first().unwrap().as_str(), events.last().unwrap().as_str()), ("began", "done Completed"));
}

#[test]
fn codex_rereads_a_turn_that_is_briefly_interrupted() {
    let ours = |status: &str| turn("u", status, j!([message("a", "done")]));
    let read = |rig: &mut Rig, status: &str| {
        rig.wake();
        let sent = rig.sent();
        assert_eq!(sent[0]["method"], "thread/resume");
        let page = j!({ "data": [ours(status)], "nextCursor": null });
        reply(rig, sent[0]["id"].as_u64().unwrap(), j!({ "thread": thread("t"), "initialTurnsPage": page }));
    };
    let start = || {
        let mut rig = shared();
        prompted(&mut rig, 3);
        let mut next = carried(&rig, Some(5), &[], idle(), j!([ours("interrupted")]), false);
        assert_eq!(
            kinds(&next.take_events()),
            ["agent_message_chunk"],
            "what it said is told, its end is not believed yet"
        );
        next
    };
    let mut next = start();
    read(&mut next, "interrupted");
    assert!(next.take_events().is_empty());
    read(&mut next, "completed");
    assert_eq!(kinds(&next.take_events()), ["ended 5 Completed"]);
    next.wake();
    assert!(next.sent().is_empty());
    // Its end may be received meanwhile.
    let mut next = start();
    end_turn(&mut next, "completed");
    assert_eq!(kinds(&next.take_events()), ["ended 5 Completed"]);
    // It stays interrupted.
    let mut next = start();
    for _ in 1..DOUBTS_MAX {
        read(&mut next, "interrupted");
        assert!(next.take_events().is_empty());
    }
    read(&mut next, "interrupted");
    assert_eq!(kinds(&next.take_events()), ["ended 5 Cancelled"]);
}

#[test]
fn codex_restart_looks_for_a_prompt_under_way() {
    let user = |client: &str| j!({ "type": "userMessage", "id": "m", "clientId": client, "content": [] });
    for (turns, expected) in [
        (
            j!([turn("u", "completed", j!([user("plexus-5"), message("a", "x")]))]),
            "agent_message_chunk ended 5 Completed",
        ),
        (j!([turn("u", "inProgress", j!([user("plexus-5")]))]), ""),
        (j!([]), "ended 5 Error"),
        (j!([turn("w", "completed", j!([]))]), "began done Completed ended 5 Error"),
    ] {
        // Whether or not the checkpoint has the prompt.
        let before = shared();
        let mut after = shared();
        after.prompt(5, "t", "hi");
        for rig in [&before, &after] {
            let next = carried(rig, Some(5), &[], idle(), turns.clone(), false);
            assert_eq!(kinds(&next.events).join(" "), expected, "{turns}");
            assert_eq!(next.dialect.prompts().len(), usize::from(expected.is_empty()));
        }
    }
}

#[test]
fn codex_reports_reverted_turns_and_repeats_no_others() {
    let all = |ids: &[&str]| {
        let turns = ids.iter().rev().map(|id| turn(id, "completed", j!([message(&format!("m-{id}"), id)])));
        Value::Array(turns.collect())
    };
    let mut rig = joined(all(&["a", "b", "c", "d"]), false);
    rig.take_events();
    // The connection was lost: in the same gateway, and in another one.
    disconnect(&mut rig);
    reconnect(&mut rig, 3, idle(), all(&["a", "b", "e"]));
    let events = rig.take_events();
    assert_eq!(kinds(&events), ["taken_back", "began", "agent_message_chunk", "done Completed"]);
    assert_eq!(text_of(&events, Kind::AgentMessageChunk), "e");
    let RuntimeEvent::Event { draft, .. } = &events[0] else { panic!("{events:?}") };
    assert!(json(&draft.body)["message"].as_str().unwrap().contains("last 2 of the turns"));
    let next = carried(&rig, None, &[], idle(), all(&["a"]), false);
    assert_eq!(kinds(&next.events), ["taken_back"]);
    let next = carried(&next, None, &[], idle(), all(&["a", "f"]), false);
    assert_eq!(text_of(&next.events, Kind::AgentMessageChunk), "f");
    // Compacted, it has one more turn; the others are there.
    let next = carried(&next, None, &[], idle(), all(&["a", "f", "g"]), false);
    assert_eq!(text_of(&next.events, Kind::AgentMessageChunk), "g");
    // More turns than the server returns: those between are reported as missing.
    let next = carried(&next, None, &[], idle(), all(&["x", "y"]), true);
    assert_eq!(kinds(&next.events)[0], "gap");
    assert_eq!(text_of(&next.events, Kind::AgentMessageChunk), "xy");
}

#[test]
fn codex_does_not_repeat_a_conversation_longer_than_its_memory() {
    let mut rig = shared();
    let ids: Vec<String> = (0..REPORTED_MAX + 50).map(|n| format!("turn-{n}")).collect();
    let done = |id: &String| turn(id, "completed", j!([message(&format!("m-{id}"), id)]));
    for id in &ids {
        notify(&mut rig, "turn/started", j!({ "turn": turn(id, "inProgress", j!([])) }));
        item(&mut rig, "completed", message(&format!("m-{id}"), id));
        notify(&mut rig, "turn/completed", j!({ "turn": done(id) }));
    }
    rig.take_events();
    let newest: Vec<Value> = ids.iter().rev().take(100).map(done).collect();
    let next = carried(&rig, None, &[], idle(), Value::Array(newest), true);
    assert!(next.events.is_empty(), "{:?}", kinds(&next.events));
}

#[test]
fn codex_oversized_checkpoint_becomes_a_gap() {
    let mut rig = shared();
    prompted(&mut rig, 3);
    for n in 0..2000 {
        delta(&mut rig, &format!("an item with a name that is rather long, number {n}"), "x");
    }
    rig.take_events();
    assert!(rig.checkpoint.as_ref().unwrap().len() < 16 * 1024);
    let whole = turn("u", "completed", j!([message("m", "much")]));
    let next = carried(&rig, Some(5), &[], idle(), j!([whole]), false);
    assert_eq!(kinds(&next.events), ["gap", "ended 5 Completed"]);
}

#[test]
fn codex_questions_and_answers_survive_a_restart() {
    let start = || {
        let mut rig = shared();
        prompted(&mut rig, 3);
        for id in [7, 8] {
            ask(&mut rig, id, COMMAND, command());
            rig.ask();
        }
        rig
    };
    let waiting = || active(j!(["waitingOnApproval"]));
    let running = || j!([turn("u", "inProgress", j!([]))]);
    let mut rig = start();
    let keys = rig.dialect.asks();
    rig.answer("8", choose("accept", Choice::AllowOnce));
    rig.sent();
    // One is open, one was answered and the answer may be lost.
    let mut next = carried(&rig, Some(5), &keys, waiting(), running(), false);
    assert!(next.take_events().is_empty());
    ask(&mut next, 7, COMMAND, command());
    assert!(next.take_events().is_empty() && next.sent().is_empty(), "it is the same question");
    ask(&mut next, 8, COMMAND, command());
    assert_eq!(next.sent()[0]["result"]["decision"], "accept", "it is answered as it was");
    // A new one is another question.
    ask(&mut next, 9, COMMAND, j!({ "turnId": "u", "itemId": "z", "command": "ls", "cwd": "/w" }));
    let key = next.ask().key;
    assert!(keys.iter().all(|known| *known != key && !known.means(&key)));
    // Answered before the new gateway got it again.
    let mut next = carried(&start(), Some(5), &keys, waiting(), running(), false);
    next.tell(RuntimeCommand::Answer { key: keys[0].clone(), decision: choose("accept", Choice::AllowOnce) });
    assert!(next.sent().is_empty());
    ask(&mut next, 7, COMMAND, command());
    assert_eq!(next.sent()[0]["result"]["decision"], "accept");
    // Closed meanwhile; and one that the session has but the checkpoint has not.
    let next = carried(&start(), Some(5), &keys, active(j!([])), running(), false);
    assert_eq!(kinds(&next.events), ["taken back true", "taken back true"]);
    let strange = [RequestKey::nth("99", 99)];
    let mut next = carried(&start(), Some(5), &strange, waiting(), running(), false);
    assert_eq!(kinds(&next.take_events()), ["taken back false"]);
    ask(&mut next, 7, COMMAND, command());
    assert_eq!(next.ask().key.id(), "7", "the session has not got it: it is asked again");
}

#[test]
fn codex_questions_not_repeated_after_a_reconnect_are_closed() {
    let waiting = || active(j!(["waitingOnApproval"]));
    let running = || j!([turn("u", "inProgress", j!([]))]);
    let start = || {
        let mut rig = shared();
        prompted(&mut rig, 3);
        for id in [7, 8] {
            ask(&mut rig, id, COMMAND, command());
            rig.ask();
        }
        rig
    };
    let mut rig = start();
    rig.answer("8", choose("accept", Choice::AllowOnce));
    rig.sent();
    disconnect(&mut rig);
    reconnect(&mut rig, 4, waiting(), running());
    assert!(rig.take_events().is_empty());
    ask(&mut rig, 7, COMMAND, command());
    assert!(rig.take_events().is_empty() && rig.sent().is_empty(), "it still waits");
    ask(&mut rig, 8, COMMAND, command());
    assert_eq!(rig.sent()[0]["result"]["decision"], "accept", "the answer that was lost on its way");
    for _ in 0..SETTLE {
        rig.wake();
    }
    assert!(rig.take_events().is_empty());
    assert_eq!(rig.dialect.asks().iter().map(RequestKey::id).collect::<Vec<_>>(), ["7"]);

    let mut rig = start();
    disconnect(&mut rig);
    rig.answer("8", choose("accept", Choice::AllowOnce));
    assert!(rig.sent().is_empty());
    reconnect(&mut rig, 4, waiting(), running());
    ask(&mut rig, 8, COMMAND, command());
    assert_eq!(rig.sent()[0]["result"]["decision"], "accept", "answered while nobody could hear it");
    for _ in 1..SETTLE {
        rig.wake();
    }
    assert!(rig.take_events().is_empty());
    rig.wake();
    assert_eq!(kinds(&rig.take_events()), ["taken back false"]);

    let mut rig = start();
    disconnect(&mut rig);
    reconnect(&mut rig, 4, active(j!([])), running());
    assert_eq!(kinds(&rig.take_events()), ["taken back true", "taken back true"], "somebody answered");

    let mut rig = start();
    disconnect(&mut rig);
    let mut out = Outbox::default();
    rig.dialect.open(&mut out);
    reply(&mut rig, 4, j!({ "userAgent": "plexus/0.169.0 x" }));
    rig.take_events();
    rig.feed(r#"{"id":5,"error":{"code":-32600,"message":"no rollout found"}}"#);
    assert_eq!(kinds(&rig.take_events()), ["not_resumed", "taken back false", "taken back false", "ended 5 Error"]);
}

#[test]
fn codex_pending_calls_and_opens_survive_a_reconnect() {
    let mut rig = shared();
    rig.call("t", "thread/list", None);
    rig.open(2);
    disconnect(&mut rig);
    assert!(rig.replied().is_err());
    let mut out = Outbox::default();
    rig.dialect.open(&mut out);
    rig.sent();
    reply(&mut rig, 5, j!({ "userAgent": "plexus/0.169.0 x" }));
    let methods: Vec<_> = rig.sent().iter().map(|sent| sent["method"].as_str().unwrap().to_owned()).collect();
    assert_eq!(methods, ["initialized", "thread/resume", "thread/start", "thread/loaded/list"]);
}

#[test]
fn codex_passes_only_known_harmless_calls() {
    let mut rig = session();
    rig.call("t", "thread/read", Some(r#"{"includeTurns":true}"#));
    let sent = rig.sent();
    assert_eq!(sent[0]["params"], j!({ "threadId": "t", "includeTurns": true }));
    reply(&mut rig, 2, j!({ "thread": {} }));
    assert_eq!(rig.replied().unwrap(), j!({ "thread": {} }));
    for (method, params, code) in [
        ("thread/read", Some(r#"{"threadId":"x"}"#), -32602),
        ("thread/read", Some("[]"), -32602),
        ("turn/steer", None, -32602),
        ("turn/start", None, -32601),
        ("command/exec", None, -32601),
        ("config/value/write", None, -32601),
        ("nope.nope", None, -32601),
    ] {
        rig.call("t", method, params);
        assert_eq!(rig.replied().unwrap_err().code, code, "{method}");
        assert!(rig.sent().is_empty());
    }
    rig.call("t", "thread.list", None);
    assert_eq!(rig.sent()[0]["params"], j!({}));
    prompted(&mut rig, 4);
    rig.call("t", "turn/steer", Some(r#"{"input":[]}"#));
    assert_eq!(rig.sent()[0]["params"], j!({ "threadId": "t", "expectedTurnId": "u", "input": [] }));
}

#[test]
fn codex_models_have_the_ui_protocols_form() {
    let mut rig = session();
    rig.call("t", "model.list", None);
    assert_eq!(rig.sent()[0]["method"], "model/list");
    reply(&mut rig, 2, j!({ "data": [{ "id": "a", "model": "m", "displayName": "M" }], "nextCursor": null }));
    let list = j!({ "provider": "p", "models": ["m"], "details": { "m": { "name": "M" } }, "current": "m" });
    assert_eq!(rig.replied().unwrap(), list);
    rig.call("t", "model.set", Some(r#"{"name":"n"}"#));
    assert_eq!(rig.sent()[0]["params"], j!({ "threadId": "t", "model": "n" }));
    reply(&mut rig, 3, j!({}));
    assert_eq!(rig.replied().unwrap(), j!({ "provider": "p", "name": "n" }));
    notify(&mut rig, "thread/settings/updated", j!({ "threadSettings": { "model": "n" } }));
    assert_eq!(rig.event().kind, Kind::Hook);
    rig.call("t", "model.list", None);
    reply(&mut rig, 4, j!({ "data": [] }));
    assert_eq!(rig.replied().unwrap()["current"], "n");
}

#[test]
fn codex_prompts_carry_text_links_and_images() {
    let block = |json: Value| raw(&json.to_string());
    let input = items::input(&[
        block(j!({ "type": "resource_link", "uri": "file:///a", "name": "a" })),
        block(j!({ "type": "image", "data": "QQ==", "mimeType": "image/png" })),
        block(j!({ "type": "resource", "resource": { "uri": "u", "text": "x" } })),
    ]);
    assert_eq!(
        j!(input.unwrap()),
        j!([
            { "type": "text", "text": "file:///a", "text_elements": [] },
            { "type": "image", "url": "data:image/png;base64,QQ==" },
            { "type": "text", "text": "u\nx", "text_elements": [] },
        ])
    );
    for bad in [j!({ "type": "new" }), j!([]), j!({ "type": "resource", "resource": { "uri": "u" } })] {
        assert!(items::input(&[block(bad)]).is_err());
    }
}

#[test]
fn codex_keeps_damaged_frames() {
    let nest = format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    for frame in ["garbage", "[]", "{}", r#"{"id":99,"result":{}}"#, r#"{"method":"turn/started"}"#, &nest] {
        let mut rig = session();
        rig.feed(frame.to_owned());
        assert_eq!(rig.event().kind, Kind::Raw, "{frame}");
    }
    let mut rig = session();
    rig.feed(format!(r#"{{"id":3,"method":"{COMMAND}","params":{nest}}}"#));
    assert_eq!(rig.sent()[0]["result"]["decision"], "cancel");
}

// ---- another gateway goes on ----------------------------------------------------------------------------------------

#[derive(Clone, Debug)]
enum Move {
    Feed(String),
    Open(bool),
    Prompt,
    Cancel,
    Answer(u8, bool),
    Call,
    Wake,
    Lose,
    Reconnect,
}

fn play(dialect: &mut dyn Dialect, step: &Move) -> String {
    let mut out = Outbox::default();
    let native = NativeId::from("t");
    match step {
        Move::Feed(frame) => dialect.feed(Bytes::from(frame.clone()), &mut out),
        Move::Open(known) => {
            let resume = Some(ResumeTarget::new(native, *known));
            dialect.command(
                RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() },
                &mut out,
            );
        }
        Move::Prompt => {
            let content = vec![raw(r#"{"type":"text","text":"hi"}"#)];
            dialect.command(RuntimeCommand::Prompt { ticket: Ticket(5), native, content }, &mut out);
        }
        Move::Cancel => dialect.command(RuntimeCommand::Cancel { ticket: None, native, reason: None }, &mut out),
        Move::Answer(id, yes) => {
            let open = dialect.asks().into_iter().find(|key| key.id() == id.to_string());
            let key = open.unwrap_or_else(|| RequestKey::unique(id.to_string()));
            let decision = if *yes { choose("accept", Choice::AllowOnce) } else { Decision::Expired };
            dialect.command(RuntimeCommand::Answer { key, decision }, &mut out);
        }
        Move::Call => {
            let (ticket, method) = (Ticket(9), "model.list".into());
            dialect.command(
                RuntimeCommand::Call { ticket, native: Some(native), method, params: None, notify: false },
                &mut out,
            );
        }
        Move::Wake => dialect.wake(&mut out),
        Move::Lose => dialect.lost("gone", &mut out),
        Move::Reconnect => dialect.open(&mut out),
    }
    for frame in &out.frames {
        let (end, line) = frame.split_last().unwrap();
        assert!(*end == b'\n' && !line.iter().any(|b| matches!(b, b'\r' | b'\n')));
        json(line);
    }
    for events in &out.events {
        let drafts = match events {
            RuntimeEvent::Event { draft, .. } => std::slice::from_ref(draft),
            RuntimeEvent::Opened { drafts, .. } => drafts,
            _ => &[],
        };
        for draft in drafts {
            assert!(json(&draft.body).is_object() && !draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')));
        }
    }
    format!("{out:?} {:?} {:?}", dialect.asks(), dialect.prompts())
}

fn feeds() -> impl Strategy<Value = Move> {
    let turns =
        (prop::sample::select(vec!["u", "v", "w"]), prop::sample::select(vec!["inProgress", "completed", "failed"]));
    let item = prop_oneof![
        Just(message("a", "one two")),
        Just(shell("inProgress")),
        Just(shell("completed")),
        Just(j!({ "type": "userMessage", "id": "m", "clientId": "plexus-5", "content": [] })),
        Just(j!({ "type": "reasoning", "id": "r", "summary": ["x"], "content": [] })),
    ];
    let note = |method: &str, mut params: Value| {
        params["threadId"] = "t".into();
        j!({ "method": method, "params": params }).to_string()
    };
    prop_oneof![
        (turns.clone(), any::<bool>()).prop_map(move |((id, status), begins)| {
            let (method, status) = if begins { ("turn/started", "inProgress") } else { ("turn/completed", status) };
            note(method, j!({ "turn": turn(id, status, j!([])) }))
        }),
        (item, any::<bool>()).prop_map(move |(item, over)| {
            note(if over { "item/completed" } else { "item/started" }, j!({ "item": item }))
        }),
        prop::sample::select(vec!["one ", "two"])
            .prop_map(move |text| note("item/agentMessage/delta", j!({ "itemId": "a", "delta": text }))),
        (0u8..3).prop_map(move |id| note("serverRequest/resolved", j!({ "requestId": id }))),
        (0u8..3, prop::sample::select(vec!["u", "v"])).prop_map(|(id, turn)| {
            let mut params = command();
            (params["threadId"], params["turnId"]) = ("t".into(), turn.into());
            j!({ "id": id, "method": COMMAND, "params": params }).to_string()
        }),
        (0u64..12, turns.clone(), any::<bool>()).prop_map(|(id, (name, status), more)| {
            let turns = if more { j!([turn(name, status, j!([message("a", "one two")]))]) } else { j!([]) };
            let result = j!({ "userAgent": "plexus/1 x", "thread": thread("t"), "turn": turn(name, status, j!([])),
                "data": ["t", "x"], "initialTurnsPage": { "data": turns, "nextCursor": null } });
            j!({ "id": id, "result": result }).to_string()
        }),
        (0u64..12, prop::sample::select(vec![-32001, -32600]))
            .prop_map(|(id, code)| j!({ "id": id, "error": { "code": code, "message": "no" } }).to_string()),
    ]
    .prop_map(Move::Feed)
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => feeds(),
        1 => any::<bool>().prop_map(Move::Open),
        2 => Just(Move::Prompt),
        1 => Just(Move::Cancel),
        1 => (0u8..3, any::<bool>()).prop_map(|(id, yes)| Move::Answer(id, yes)),
        1 => Just(Move::Call),
        1 => Just(Move::Wake),
        1 => Just(Move::Lose),
        1 => Just(Move::Reconnect),
    ]
}

proptest! {
    #[test]
    fn codex_takeover_continues_the_run(
        alone in any::<bool>(), moves in prop::collection::vec(moves(), 0..40), cut in any::<prop::sample::Index>(),
    ) {
        let spec = if alone { spec("codex") } else { remote() };
        let mut one = make(&spec);
        let start = [Move::Reconnect, Move::Feed(HELLO.into()), Move::Open(false)];
        for step in &start {
            play(&mut *one, step);
        }
        let opened = j!({ "id": if alone { 1 } else { 2 }, "result": { "thread": thread("t") } }).to_string();
        play(&mut *one, &Move::Feed(opened));
        let cut = if moves.is_empty() { 0 } else { cut.index(moves.len()) };
        for step in &moves[..cut] {
            play(&mut *one, step);
        }
        let mut other = make(&spec);
        prop_assert!(other.restore(&one.save().unwrap()));
        for step in &moves[cut..] {
            prop_assert_eq!(play(&mut *one, step), play(&mut *other, step));
        }
        prop_assert_eq!(one.save(), other.save());
    }

    #[test]
    fn codex_does_not_take_over_an_invalid_state(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut dialect = make(&spec("codex"));
        let before = dialect.save();
        prop_assert!(!dialect.restore(&bytes));
        prop_assert_eq!(dialect.save(), before);
    }
}

#[test]
fn codex_reused_question_id_is_another_question_after_a_restart() {
    let approval = |item: &str| j!({ "turnId": "u", "itemId": item, "command": "ls", "cwd": "/w" });
    let mut rig = session();
    prompted(&mut rig, 2);
    ask(&mut rig, 7, "item/commandExecution/requestApproval", approval("c"));
    let first = rig.ask().key;
    rig.tell(RuntimeCommand::Answer { key: first.clone(), decision: choose("accept", Choice::AllowOnce) });
    notify(&mut rig, "serverRequest/resolved", j!({ "requestId": 7 }));
    rig.sent();
    rig.take_events();
    ask(&mut rig, 7, "item/commandExecution/requestApproval", approval("d"));
    let second = rig.ask().key;
    assert_eq!((first.id(), second.id(), first == second), ("7", "7", false));
    let saved = rig.dialect.save().unwrap();
    let mut next = make(&spec("codex"));
    assert!(next.restore(&saved));
    rig.dialect = next;
    rig.tell(RuntimeCommand::Answer { key: first, decision: choose("accept", Choice::AllowOnce) });
    assert!(rig.sent().is_empty(), "it was given to another question");
    assert_eq!(rig.dialect.asks(), std::slice::from_ref(&second));
    rig.tell(RuntimeCommand::Answer { key: second, decision: choose("cancel", Choice::RejectOnce) });
    assert_eq!(rig.sent()[0]["result"]["decision"], "cancel");
}
