//! One file: a table or a test for each message of the runtime and each special case, in the order of a session's life.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json as j};

use super::super::rig::{Rig, choose, json, raw, spec};
use super::super::{
    AgentRequest, DEPTH_MAX, EventDraft, OpenedAs, RequestSubject, ResumeTarget, RunEnd, RuntimeCommand, RuntimeEvent,
    SessionLimit,
};
use super::{ASKS_MAX, BUSY_TRIES, CALLS_MAX, QUIET_AFTER_CANCEL, QUIET_AFTER_FINAL, SESSION};
use plexus_protocol::{Capability, Choice, Decision, Kind, RequestType, RunStatus, Ticket};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0","server":{"name":"codelia-runtime","version":"0.1.0"}}}"#;

/// Makes a ready connection with an open session; the next request id is "2".
fn session() -> Rig {
    let mut rig = Rig::new(&spec("codelia"));
    rig.feed(HELLO);
    assert!(matches!(rig.one(), RuntimeEvent::Ready { agent: Some(agent) } if agent == "codelia-runtime 0.1.0"));
    rig.sent();
    rig.open(1);
    let events = rig.one();
    assert!(matches!(&events, RuntimeEvent::Opened { native, .. } if native.as_str() == SESSION), "{events:?}");
    assert!(rig.sent().is_empty(), "opening needs no message");
    rig
}

/// Makes a run `r` of ticket 7; the next request id is "3".
fn running() -> Rig {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.feed(r#"{"id":"2","result":{"run_id":"r"}}"#);
    assert!(rig.take_events().is_empty());
    rig.sent();
    rig
}

fn event(seq: i64, event: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"agent.event","params":{{"run_id":"r","seq":{seq},"event":{event}}}}}"#)
}

fn status(run: &str, status: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"run.status","params":{{"run_id":"{run}","status":"{status}","message":"m"}}}}"#
    )
}

fn ask(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ui.{method}.request","params":{params}}}"#)
}

fn text(body: &[u8]) -> Value {
    json(body)["content"]["text"].clone()
}

#[test]
fn codelia_initializes_once_with_every_capability() {
    let mut rig = Rig::new(&spec("codelia"));
    let hello = rig.sent();
    assert_eq!(hello.len(), 1);
    assert_eq!((&hello[0]["id"], &hello[0]["method"]), (&j!("1"), &j!("initialize")));
    let params = &hello[0]["params"];
    assert_eq!(params["protocol_version"], "0");
    for able in ["supports_confirm", "supports_prompt", "supports_pick", "supports_permission_preflight_events"] {
        assert_eq!(params["ui_capabilities"][able], true, "{able}");
    }
    assert_eq!(
        (&params["ui_capabilities"]["supports_markdown"], &params["ui_capabilities"]["supports_images"]),
        (&j!(true), &j!(false))
    );
    assert_eq!(rig.dialect.sessions(), SessionLimit::One);
}

#[test]
fn codelia_capabilities_are_those_of_the_server() {
    let can = |more: Value| {
        let mut rig = Rig::new(&spec("codelia"));
        let mut result = j!({ "protocol_version": "0" });
        if !more.is_null() {
            result["server_capabilities"] = more;
        }
        rig.feed(j!({ "id": "1", "result": result }).to_string());
        assert!(matches!(rig.one(), RuntimeEvent::Ready { .. }));
        let saved = rig.dialect.save().unwrap();
        let mut next = Rig::new(&spec("codelia"));
        assert!(next.dialect.restore(&saved));
        assert_eq!(next.dialect.capabilities(), rig.dialect.capabilities());
        let own = |one: &Capability| one.ui_name().is_some();
        rig.dialect.capabilities().iter().filter(own).map(Capability::as_str).collect::<Vec<_>>()
    };
    assert_eq!(can(Value::Null), ["cancel", "requests"]);
    let events = j!({ "supports_run_cancel": false, "supports_mcp_list": true, "supports_theme_set": "yes", "supports_more": true });
    assert_eq!(can(events), ["mcp_list"]);
    assert_eq!(can(j!({ "supports_run_cancel": true, "supports_shell_exec": true })), ["cancel", "shell_exec"]);
}

#[test]
fn codelia_failed_handshake_states_the_reason() {
    for (reply, part) in [
        (r#"{"id":"1","result":{"protocol_version":"1"}}"#, "protocol 1"),
        (r#"{"id":"1","result":{}}"#, "does not follow the UI protocol"),
        (r#"{"id":"1","error":{"code":-32000,"message":"boom","data":{"error":"no key"}}}"#, "boom: no key"),
    ] {
        let mut rig = Rig::new(&spec("codelia"));
        rig.feed(reply);
        assert!(matches!(rig.one(), RuntimeEvent::Failed { message } if message.contains(part)), "{reply}");
        rig.open(1);
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { .. }));
    }
}

#[test]
fn codelia_process_has_one_session() {
    let mut rig = session();
    rig.open(2);
    assert!(matches!(rig.one(), RuntimeEvent::NotOpened { ticket: Ticket(2), .. }));
}

#[test]
fn codelia_accepts_string_ids() {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    assert_eq!(rig.sent()[0]["id"], "2");
    rig.feed(r#"{"id":2,"result":{"run_id":"r"}}"#);
    assert_eq!(rig.event().kind, Kind::Raw, "a number is not ours");
}

#[test]
fn codelia_prompt_is_text_or_parts() {
    let block = |json: Value| raw(&json.to_string());
    let text = |t: &str| block(j!({ "type": "text", "text": t }));
    let image = block(j!({ "type": "image", "data": "QQ==", "mimeType": "image/png" }));
    let link = block(j!({ "type": "resource_link", "uri": "file:///a", "name": "a" }));
    for (content, input) in [
        (vec![text("a"), link, text("b")], j!({ "type": "text", "text": "a\nfile:///a\nb" })),
        (
            vec![text("a"), image],
            j!({ "type": "parts", "parts": [
                { "type": "text", "text": "a" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,QQ==", "media_type": "image/png" } },
            ]}),
        ),
    ] {
        let mut rig = session();
        rig.tell(RuntimeCommand::Prompt { ticket: Ticket(7), native: SESSION.into(), content });
        let sent = rig.sent();
        assert_eq!((&sent[0]["method"], &sent[0]["params"]["input"]), (&j!("run.start"), &input));
        assert_eq!(sent[0]["params"]["ui_context"], j!({ "cwd": "/w" }));
    }
    for junk in [j!({ "type": "audio", "data": "", "mimeType": "x" }), j!({ "type": "text" }), j!(7)] {
        let mut rig = session();
        rig.tell(RuntimeCommand::Prompt { ticket: Ticket(7), native: SESSION.into(), content: vec![block(junk)] });
        assert_eq!(rig.end().1.status, RunStatus::Error);
        assert!(rig.sent().is_empty());
    }
}

#[test]
fn codelia_carries_the_metadata_of_prompts_and_events() {
    let mut rig = session();
    let ui = r#"{"active_file":{"path":"a.rs"},"extensions":{"n":1.50}}"#;
    let text = raw(&format!(
        r#"{{"type":"text","text":"hi","_meta":{{"plexus":{{"ui_context":{ui},"meta":{{"trace":7}}}}}}}}"#
    ));
    let link =
        raw(r#"{"type":"resource_link","uri":"file:///w/a.rs","name":"a.rs","_meta":{"plexus":{"of":"ui_context"}}}"#);
    rig.tell(RuntimeCommand::Prompt { ticket: Ticket(7), native: SESSION.into(), content: vec![text, link] });
    let params = rig.sent().remove(0)["params"].clone();
    assert_eq!(params["input"], j!({ "type": "text", "text": "hi" }), "the context is not said twice");
    assert_eq!(
        params["ui_context"],
        j!({ "cwd": "/w", "active_file": { "path": "a.rs" }, "extensions": { "n": 1.5 } })
    );
    assert_eq!(params["meta"], j!({ "trace": 7 }));
    rig.feed(r#"{"id":"2","result":{"run_id":"r"}}"#);
    rig.feed(r#"{"method":"agent.event","params":{"run_id":"r","seq":0,"event":{"type":"text","content":"x"},"meta":{"m":1}}}"#);
    let body = json(&rig.event().body);
    assert_eq!((&body["content"]["text"], &body["_meta"]["codelia"]["meta"]), (&j!("x"), &j!({ "m": 1 })));
    let reason = Some("changed my mind".to_owned());
    rig.tell(RuntimeCommand::Cancel { ticket: Some(Ticket(7)), native: SESSION.into(), reason });
    assert_eq!(rig.sent()[0]["params"], j!({ "run_id": "r", "reason": "changed my mind" }));
}

#[test]
fn codelia_run_status_ends_the_run_without_a_final() {
    for (word, ended) in
        [("completed", RunStatus::Completed), ("error", RunStatus::Error), ("cancelled", RunStatus::Cancelled)]
    {
        let mut rig = running();
        for kept in ["running", "awaiting_ui"] {
            rig.feed(status("r", kept));
            let draft = rig.event();
            assert_eq!((draft.kind, &json(&draft.body)["params"]["status"]), (Kind::Hook, &j!(kept)));
        }
        rig.feed(status("other", word));
        assert_eq!(rig.event().kind, Kind::Hook, "another run's end is not ours");
        rig.feed(status("r", word));
        let (ticket, end) = rig.end();
        assert_eq!((ticket, end.status, end.message.as_deref()), (7, ended, Some("m")));
    }
}

#[test]
fn codelia_run_may_end_before_its_start_is_answered() {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.feed(status("r", "completed"));
    assert_eq!(rig.event().kind, Kind::Hook);
    rig.feed(r#"{"id":"2","result":{"run_id":"r"}}"#);
    assert_eq!(rig.end().1.status, RunStatus::Completed);
}

#[test]
fn codelia_retries_a_busy_start_for_half_a_second() {
    let busy = |id: u32| format!(r#"{{"id":"{id}","error":{{"code":-32001,"message":"runtime busy"}}}}"#);
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.sent();
    rig.feed(busy(2));
    assert!(rig.take_events().is_empty() && rig.sent().is_empty() && rig.wakes == 1);
    rig.wake();
    let sent = rig.sent();
    assert_eq!((&sent[0]["id"], &sent[0]["method"]), (&j!("3"), &j!("run.start")));
    rig.wake();
    assert!(rig.sent().is_empty(), "once a wait");
    for id in 3..2 + BUSY_TRIES {
        rig.feed(busy(id));
        rig.wake();
    }
    assert!(rig.take_events().is_empty());
    rig.feed(busy(2 + BUSY_TRIES));
    let (ticket, end) = rig.end();
    assert_eq!((ticket, end.status, end.message.as_deref()), (7, RunStatus::Error, Some("runtime busy")));
    rig.prompt(8, SESSION, "again");
    rig.feed(busy(3 + BUSY_TRIES));
    rig.cancel(8, SESSION);
    assert_eq!(rig.end().1.status, RunStatus::Cancelled, "cancelled while it waits");
    rig.sent();
    rig.wake();
    assert!(rig.sent().is_empty());
}

#[test]
fn codelia_early_cancel_names_its_run() {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.sent();
    rig.cancel(7, SESSION);
    assert!(rig.sent().is_empty(), "absent params would crash the process");
    rig.feed(r#"{"id":"2","result":{"run_id":"r"}}"#);
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]), (&j!("run.cancel"), &j!({ "run_id": "r" })));
    rig.feed(r#"{"id":"3","result":{"ok":true}}"#);
    assert!(rig.take_events().is_empty(), "the end comes as run.status");
    rig.cancel(6, SESSION);
    assert!(rig.sent().is_empty(), "not this run's ticket");
    rig.feed(status("r", "cancelled"));
    assert_eq!(rig.end().1.status, RunStatus::Cancelled);
}

#[test]
fn codelia_reports_a_refused_cancel() {
    let mut rig = running();
    rig.cancel(7, SESSION);
    rig.feed(r#"{"id":"3","error":{"code":-32000,"message":"boom"}}"#);
    assert_eq!(rig.event().kind, Kind::Error);
    rig.cancel(7, SESSION);
    rig.feed(r#"{"id":"4","error":{"code":-32002,"message":"run not found"}}"#);
    assert_eq!(rig.end().1.status, RunStatus::Cancelled, "no status will follow");
    let mut rig = running();
    rig.cancel(7, SESSION);
    rig.feed(status("r", "completed"));
    rig.end();
    rig.feed(r#"{"id":"3","error":{"code":-32002,"message":"run not found"}}"#);
    assert!(rig.take_events().is_empty(), "it ended while the cancel was on its way");
}

#[test]
fn codelia_translates_agent_events() {
    let mut rig = running();
    rig.feed(event(0, r#"{"type":"reasoning","content":"hm"}"#));
    let draft = rig.event();
    assert_eq!((draft.kind, text(&draft.body)), (Kind::AgentThoughtChunk, j!("hm")));
    rig.feed(event(1, r#"{"type":"tool_call","tool":"bash","args":{"command":"ls"},"tool_call_id":"t"}"#));
    let draft = rig.event();
    assert_eq!(
        json(&draft.body),
        j!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "bash", "kind": "execute", "status": "in_progress", "rawInput": { "command": "ls" } })
    );
    assert!(!draft.tool.unwrap().ended);
    rig.feed(event(2, r#"{"type":"permission.preview","tool":"bash","diff":"-a\n+b","file_path":"/x"}"#));
    let draft = rig.event();
    assert_eq!((draft.kind, draft.tool.unwrap().id.as_str()), (Kind::ToolCallUpdate, "t"));
    assert_eq!(json(&draft.body)["content"][0]["content"]["text"], "-a\n+b");
    for (seq, failed, word) in [(3, "", "completed"), (4, r#","is_error":true"#, "failed")] {
        rig.feed(event(
            seq,
            &format!(r#"{{"type":"tool_result","tool":"bash","result":"out","tool_call_id":"t"{failed}}}"#),
        ));
        let draft = rig.event();
        let body = json(&draft.body);
        assert_eq!((&body["status"], &body["rawOutput"]), (&j!(word), &j!("out")));
        assert!(draft.tool.unwrap().ended);
    }
    for (seq, type_name) in (5..).zip([
        "step_start",
        "step_complete",
        "llm.retry",
        "compaction_start",
        "compaction_complete",
        "hidden_user_message",
    ]) {
        let body = format!(r#"{{"type":"{type_name}","x":1}}"#);
        rig.feed(event(seq, &body));
        let draft = rig.event();
        assert_eq!((draft.kind, &draft.body[..]), (Kind::Hook, body.as_bytes()));
    }
    for (seq, junk) in
        (11..).zip([r#"{"type":"new"}"#, r#"{"type":"text"}"#, r#"{"type":"tool_call","tool":"x"}"#, "[]"])
    {
        rig.feed(event(seq, junk));
        assert_eq!(rig.event().kind, Kind::Raw, "{junk}");
    }
}

#[test]
fn codelia_reports_a_repeated_final_once() {
    for (texts, last, trace) in [
        (&[][..], "all", Some("all")),
        (&["all"], "all", None),
        (&["all"], "all\n", None),
        (&["a", "b"], "ab", None),
        (&["a", "b"], "b", None),
        (&["a"], "ab", Some("b")),
        (&["a"], "other", Some("other")),
        (&["step 2"], "2", Some("2")),
        (&["a"], "", None),
    ] {
        let mut rig = running();
        for (seq, text) in (0..).zip(texts) {
            rig.feed(event(seq, &j!({ "type": "text", "content": text }).to_string()));
            rig.event();
        }
        rig.feed(event(texts.len() as i64, &j!({ "type": "final", "content": last }).to_string()));
        let draft = rig.event();
        assert!(draft.native.is_some());
        match trace {
            Some(trace) => {
                assert_eq!((draft.kind, text(&draft.body)), (Kind::AgentMessageChunk, j!(trace)), "{texts:?} {last}")
            }
            None => assert_eq!(draft.kind, Kind::Hook, "{texts:?} {last}"),
        }
    }
}

#[test]
fn codelia_final_after_a_tool_is_a_text_of_its_own() {
    let mut rig = running();
    rig.feed(event(0, r#"{"type":"text","content":"I"}"#));
    rig.feed(event(1, r#"{"type":"tool_call","tool":"x","tool_call_id":"t"}"#));
    rig.take_events();
    rig.feed(event(2, r#"{"type":"final","content":"It is done"}"#));
    assert_eq!(text(&rig.event().body), "It is done");
}

#[test]
fn codelia_drops_a_duplicate_number_and_reports_a_gap() {
    let mut rig = running();
    rig.feed(event(0, r#"{"type":"text","content":"a"}"#));
    rig.event();
    rig.feed(event(0, r#"{"type":"text","content":"a"}"#));
    assert!(rig.take_events().is_empty());
    rig.feed(event(3, r#"{"type":"text","content":"d"}"#));
    let events = rig.take_events();
    assert!(
        matches!(&events[..], [RuntimeEvent::Event { draft: gap, .. }, RuntimeEvent::Event { draft, .. }]
            if gap.kind == Kind::Error && json(&gap.body)["code"] == "runtime_gap" && draft.kind == Kind::AgentMessageChunk),
        "{events:?}"
    );
    rig.feed(event(4, r#"{"type":"text","content":"e"}"#));
    rig.event();
    // Hidden messages are not numbered.
    for _ in 0..2 {
        rig.feed(event(-1, r#"{"type":"hidden_user_message","content":"x"}"#));
        assert_eq!(rig.event().kind, Kind::Hook);
    }
}

#[test]
fn codelia_keeps_context_and_diagnostics() {
    let mut rig = running();
    rig.feed(r#"{"method":"run.context","params":{"run_id":"r","context_left_percent":61.5}}"#);
    let draft = rig.event();
    assert_eq!((draft.kind, &json(&draft.body)["contextLeftPercent"]), (Kind::UsageUpdate, &j!(61.5)));
    for method in ["run.diagnostics", "client.tool.cancel"] {
        rig.feed(format!(r#"{{"method":"{method}","params":{{"run_id":"r"}}}}"#));
        let draft = rig.event();
        assert_eq!((draft.kind, &json(&draft.body)["type"]), (Kind::Hook, &j!(method)));
    }
    rig.feed(r#"{"method":"run.new","params":{}}"#);
    assert_eq!(rig.event().kind, Kind::Raw);
}

#[test]
fn codelia_confirm_offers_every_decision() {
    let reason = |id: &str, kind, reason: &str| Decision::Option { id: id.into(), kind, reason: Some(reason.into()) };
    for (decision, result) in [
        (choose("allow", Choice::AllowOnce), j!({ "ok": true })),
        (choose("allow_always", Choice::AllowAlways), j!({ "ok": true, "remember": true })),
        (choose("deny", Choice::RejectOnce), j!({ "ok": false })),
        (choose("deny_always", Choice::RejectAlways), j!({ "ok": false, "remember": true })),
        (choose("deny_always", Choice::AllowAlways), j!({ "ok": false })),
        (reason("deny", Choice::RejectOnce, "use rm -i"), j!({ "ok": false, "reason": "use rm -i" })),
        (reason("deny", Choice::RejectOnce, ""), j!({ "ok": false })),
        (choose("deny", Choice::AllowOnce), j!({ "ok": false })),
        (choose("nonsense", Choice::AllowOnce), j!({ "ok": false })),
        (Decision::Expired, j!({ "ok": false, "reason": "expired, not a user decision" })),
        (Decision::Withdrawn, j!({ "ok": false })),
        (Decision::Value(Some("yes".into())), j!({ "ok": false })),
    ] {
        let mut rig = running();
        rig.feed(ask("\"ui_1\"", "confirm", r#"{"run_id":"r","title":"Run?","message":"ls","danger_level":"danger","allow_remember":true,"allow_reason":true,"confirm_label":"Run"}"#));
        let asked = rig.ask();
        assert_eq!(
            (asked.kind, asked.title.as_str(), asked.message.as_deref(), &asked.subject),
            (
                RequestType::Confirm,
                "Run?",
                Some("ls"),
                &RequestSubject::Confirm { title: "Run?".into(), message: "ls".into() }
            )
        );
        assert_eq!(asked.danger_level.as_deref(), Some("danger"));
        assert!(asked.allow_reason && asked.allow_remember);
        let options: Vec<_> = asked.options.iter().map(|o| (o.id.as_str(), o.label.as_str())).collect();
        assert_eq!(
            options,
            [
                ("allow", "Run"),
                ("allow_always", "Run, and remember it for this project"),
                ("deny", "Cancel"),
                ("deny_always", "Cancel, and remember it for this project"),
            ]
        );
        rig.answer("\"ui_1\"", decision.clone());
        assert_eq!(rig.sent(), [j!({ "jsonrpc": "2.0", "id": "ui_1", "result": result })], "{decision:?}");
        rig.answer("\"ui_1\"", choose("allow", Choice::AllowOnce));
        assert!(rig.sent().is_empty(), "a key answered once is forgotten");
    }
}

#[test]
fn codelia_confirm_without_remember_does_not_offer_it() {
    let mut rig = running();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"title":"T","message":"M"}"#));
    let asked = rig.ask();
    assert!(!asked.allow_remember && !asked.allow_reason && asked.options.len() == 2);
}

#[test]
fn codelia_confirm_is_about_the_open_tool_call_of_its_run() {
    let call = |n: i64, id: &str, args: &str| {
        event(n, &format!(r#"{{"type":"tool_call","tool":"bash","args":{args},"tool_call_id":"{id}"}}"#))
    };
    let confirm = |id: &str, message: &str| {
        ask(
            &format!("\"{id}\""),
            "confirm",
            &format!(r#"{{"run_id":"r","title":"Run command?","message":"{message}"}}"#),
        )
    };
    let command = |line: &str| RequestSubject::Command { argv: vec![line.into()], cwd: None };
    let mut rig = running();
    rig.feed(call(0, "t", r#"{"command":"cargo test --all"}"#));
    rig.feed(call(1, "u", r#"{"command":"ls"}"#));
    rig.take_events();
    // Its text repeats the input of a call.
    for (message, id, line) in [("ls", "u", "ls"), ("May I run cargo test --all?", "t", "cargo test --all")] {
        rig.feed(confirm(message, message));
        let asked = rig.ask();
        assert_eq!((asked.tool_call_id.as_deref(), asked.subject), (Some(id), command(line)), "{message}");
        assert!(asked.first_mention.is_none());
    }
    let other = rig_ask(&mut rig, confirm("a", "Publish it?"));
    assert_eq!(other.tool_call_id, None, "it repeats no call");
    // The call was announced right before it.
    rig.feed(call(2, "v", r#"{"command":"make"}"#));
    rig.take_events();
    let next = rig_ask(&mut rig, confirm("b", "Continue?"));
    assert_eq!((next.tool_call_id.as_deref(), next.message.as_deref()), (Some("v"), Some("Continue?")));
    assert_eq!(rig_ask(&mut rig, confirm("c", "Continue?")).tool_call_id, None, "one question for each announcement");
    // A finished call, and one of another run, are not what it is about.
    rig.feed(event(3, r#"{"type":"tool_result","tool":"bash","result":"","tool_call_id":"t"}"#));
    rig.take_events();
    let late = rig_ask(&mut rig, confirm("d", "cargo test --all"));
    assert_eq!(late.tool_call_id, None);
    let other = r#"{"run_id":"another","title":"Run command?","message":"make"}"#;
    assert_eq!(rig_ask(&mut rig, ask("\"e\"", "confirm", other)).tool_call_id, None);
}

fn rig_ask(rig: &mut Rig, frame: String) -> AgentRequest {
    rig.feed(frame);
    *rig.ask()
}

#[test]
fn codelia_confirm_names_the_tool_call_prepared_before_it() {
    let mut rig = running();
    rig.feed(event(0, r#"{"type":"tool_call","tool":"bash","args":{"command":"rm x"},"tool_call_id":"t"}"#));
    rig.feed(event(1, r#"{"type":"permission.ready","tool":"bash","tool_call_id":"t"}"#));
    rig.take_events();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"title":"Run?","message":"a harmless thing"}"#));
    let asked = rig.ask();
    assert_eq!(asked.tool_call_id.as_deref(), Some("t"));
    assert_eq!(
        asked.subject,
        RequestSubject::Command { argv: vec!["rm x".into()], cwd: None },
        "what runs, not what is said"
    );
    assert!(asked.first_mention.is_none());
    rig.feed(ask("\"ui_2\"", "confirm", r#"{"title":"T","message":"M"}"#));
    assert_eq!(rig.ask().tool_call_id, None, "for the next confirm only");
    rig.feed(event(2, r#"{"type":"permission.ready","tool":"write","tool_call_id":"u"}"#));
    rig.take_events();
    rig.feed(ask("\"ui_3\"", "confirm", r#"{"title":"T","message":"M"}"#));
    let draft = rig.ask().first_mention.unwrap();
    assert_eq!((draft.kind, &json(&draft.body)["toolCallId"]), (Kind::ToolCall, &j!("u")));
}

#[test]
fn codelia_asks_prompts_and_picks_with_or_without_a_run() {
    let mut rig = session();
    for (decision, value) in [
        (Decision::Value(Some("x".into())), j!("x")),
        (Decision::Value(None), j!(null)),
        (Decision::Expired, j!(null)),
        (Decision::Withdrawn, j!(null)),
    ] {
        rig.feed(ask(
            "\"ui_1\"",
            "prompt",
            r#"{"title":"T","message":"M","default_value":"d","multiline":true,"secret":true}"#,
        ));
        let asked = rig.ask();
        assert_eq!((asked.kind, asked.default_value.as_deref()), (RequestType::Prompt, Some("d")));
        assert!(asked.multiline && asked.secret && asked.options.is_empty());
        rig.answer("\"ui_1\"", decision);
        assert_eq!(rig.sent()[0]["result"], j!({ "value": value }));
    }
    for (decision, ids) in [(Decision::Ids(vec!["a".into()]), j!(["a"])), (Decision::Expired, j!([]))] {
        rig.feed(ask("null", "pick", r#"{"title":"T","items":[{"id":"a","label":"A","detail":"D"}],"multi":true}"#));
        let asked = rig.ask();
        assert!(asked.kind == RequestType::Pick && asked.multi && asked.items[0].detail.as_deref() == Some("D"));
        rig.answer("null", decision);
        let sent = rig.sent();
        assert_eq!((&sent[0]["result"], &sent[0]["id"]), (&j!({ "ids": ids }), &j!(null)));
    }
}

#[test]
fn codelia_denies_questions_that_cannot_be_asked() {
    let mut rig = running();
    for (method, result) in [("confirm", j!(false)), ("prompt", j!(null)), ("pick", j!(null))] {
        rig.feed(ask("\"u\"", method, "7"));
        assert_eq!(rig.event().kind, Kind::Raw);
        let sent = rig.sent();
        assert_eq!(sent[0]["result"].get("ok").cloned().unwrap_or_default(), result, "{method}");
        assert!(sent[0].get("error").is_none());
    }
    for id in 0..ASKS_MAX {
        rig.feed(ask(&id.to_string(), "confirm", r#"{"title":"T","message":"M"}"#));
    }
    rig.take_events();
    rig.feed(ask("\"more\"", "confirm", r#"{"title":"T","message":"M"}"#));
    assert_eq!(rig.event().kind, Kind::Error);
    assert_eq!(rig.sent()[0]["result"]["ok"], false);
    rig.feed(ask("0", "confirm", r#"{"title":"T","message":"M"}"#));
    assert_eq!(rig.event().kind, Kind::Raw, "still open");
    assert!(rig.sent().is_empty());
}

#[test]
fn codelia_answers_a_client_tool_call_at_once() {
    let mut rig = running();
    for (params, name) in [(r#"{"run_id":"r","name":"tui_x"}"#, "tui_x"), ("7", "a tool"), ("null", "a tool")] {
        rig.feed(format!(r#"{{"id":"ui_9","method":"client.tool.call","params":{params}}}"#));
        let draft = rig.event();
        assert_eq!((draft.kind, &json(&draft.body)["type"]), (Kind::Hook, &j!("client.tool.call")));
        let sent = rig.sent().remove(0);
        let error = format!("{name} is not available: no client of this gateway offers tools");
        assert_eq!((&sent["id"], &sent["result"]), (&j!("ui_9"), &j!({ "ok": false, "error": error })));
    }
    let long = "é".repeat(1000);
    rig.feed(format!(r#"{{"id":"ui_9","method":"client.tool.call","params":{{"name":"{long}"}}}}"#));
    rig.event();
    assert!(rig.sent()[0]["result"]["error"].as_str().unwrap().len() < 300);
    rig.feed(r#"{"id":"ui_10","method":"ui.clipboard.read"}"#);
    assert_eq!(rig.event().kind, Kind::Raw);
    assert_eq!(rig.sent()[0]["error"]["code"], -32601);
}

#[test]
fn codelia_calls_always_pass_an_object_as_params() {
    let mut rig = session();
    for (id, (method, params, sent)) in (2..).zip([
        ("model.list", None, j!({})),
        ("model.set", Some(r#"{"name":"m"}"#), j!({ "scope": "session", "name": "m" })),
        ("model.set", Some("{ }"), j!({ "scope": "session" })),
        ("model.set", None, j!({ "scope": "session" })),
        ("model.set", Some(r#"{"name":"m","scope":"config"}"#), j!({ "name": "m", "scope": "config" })),
        ("mcp.list", Some("null"), j!({})),
        ("x.new", Some("{\r\n\"a\":1}"), j!({ "a": 1 })),
    ]) {
        rig.call(SESSION, method, params);
        let frame = rig.sent().remove(0);
        assert_eq!((&frame["method"], &frame["params"], &frame["id"]), (&j!(method), &sent, &j!(id.to_string())));
        rig.feed(format!(r#"{{"id":"{id}","result":{{"b":1.50}}}}"#));
        let events = rig.one();
        assert!(matches!(events, RuntimeEvent::Replied { reply: Ok(raw), .. } if raw.get() == r#"{"b":1.50}"#));
    }
    for (method, params, code) in [
        ("initialize", Some("{}"), -32601),
        ("run.start", Some("{}"), -32601),
        ("run.cancel", Some(r#"{"run_id":"r"}"#), -32601),
        ("session.history", Some("{}"), -32601),
        ("nodot", None, -32601),
        ("ui.confirm.request", None, -32601),
        ("model.list", Some("[]"), -32602),
    ] {
        rig.call(SESSION, method, params);
        assert_eq!(rig.replied().unwrap_err().code, code, "{method}");
        assert!(rig.sent().is_empty(), "{method}");
    }
    rig.call(SESSION, "ui.context.update", Some(r#"{"cwd":"/x"}"#));
    assert_eq!(rig.sent(), [j!({ "jsonrpc": "2.0", "method": "ui.context.update", "params": { "cwd": "/x" } })]);
    assert!(rig.replied().is_ok(), "the runtime takes it as a notification only");
    let params = Some(raw("{}"));
    rig.tell(RuntimeCommand::Call { ticket: Ticket(1), native: None, method: "x.y".into(), params, notify: true });
    assert_eq!(rig.event().kind, Kind::Error, "it would be dropped in silence");
}

#[test]
fn codelia_keeps_junk_on_stdout_and_skips_blank_lines() {
    let mut rig = session();
    let deep = format!(r#"{{"method":"agent.event","params":{}{}}}"#, "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    for junk in [&b"Listening on 3000"[..], b"[]", b"\xff", b"{}", deep.as_bytes(), br#"{"method":"agent.event"}"#] {
        rig.feed(Bytes::copy_from_slice(junk));
        let draft = rig.event();
        assert_eq!((draft.kind, draft.native.as_deref()), (Kind::Raw, Some(junk)));
    }
    rig.feed(" \r");
    assert!(rig.take_events().is_empty() && rig.sent().is_empty());
}

/// Returns all events and frames, for a comparison.
fn trace(rig: &mut Rig) -> String {
    format!("{:?} {:?}", rig.take_events(), rig.sent())
}

#[test]
fn codelia_refuses_calls_that_would_crash_the_runtime() {
    let mut rig = session();
    for method in ["initialize", "run.cancel", "run.start", "session.history"] {
        for params in [None, Some("null"), Some("[]"), Some("7"), Some("{}"), Some(r#"{"run_id":null}"#)] {
            for notify in [false, true] {
                let params = params.map(raw);
                let method = method.to_owned();
                rig.tell(RuntimeCommand::Call { ticket: Ticket(9), native: None, method, params, notify });
                assert_eq!(rig.take_events().len(), 1, "it is refused, and said so");
                assert!(rig.sent().is_empty());
            }
        }
    }
}

#[test]
fn codelia_bounds_unanswered_calls() {
    let mut rig = session();
    for _ in 0..CALLS_MAX {
        rig.call(SESSION, "shell.wait", None);
    }
    assert!(rig.take_events().is_empty());
    rig.call(SESSION, "shell.wait", None);
    assert_eq!(rig.replied().unwrap_err().code, -32001);
    rig.sent();
    rig.feed(r#"{"id":"2","result":{}}"#);
    rig.replied().unwrap();
    rig.call(SESSION, "shell.wait", None);
    assert_eq!(rig.sent().len(), 1, "there is room again");
}

#[test]
fn codelia_denies_an_open_confirm_before_it_sends_a_cancel() {
    let mut rig = running();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"run_id":"r","title":"T","message":"M"}"#));
    rig.ask();
    rig.cancel(7, SESSION);
    let sent = rig.sent();
    assert_eq!(sent[0], j!({ "jsonrpc": "2.0", "id": "ui_1", "result": { "ok": false } }));
    assert_eq!((sent.len(), &sent[1]["method"]), (2, &j!("run.cancel")));
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { key, elsewhere: None, .. } if key.id() == "\"ui_1\""));
    rig.answer("\"ui_1\"", choose("allow", Choice::AllowOnce));
    assert!(rig.sent().is_empty(), "a yes that comes later does not run the command");
    rig.feed(ask("\"ui_2\"", "confirm", r#"{"run_id":"r","title":"T","message":"M"}"#));
    rig.ask();
    rig.answer("\"ui_2\"", Decision::Withdrawn);
    assert_eq!(rig.sent()[0]["result"], j!({ "ok": false }), "one that was on its way is denied by its session");
    rig.feed(status("r", "cancelled"));
    assert_eq!(rig.end().1.status, RunStatus::Cancelled);
}

#[test]
fn codelia_pick_without_a_run_may_delay_the_start() {
    for cancelled in [false, true] {
        let mut rig = session();
        rig.prompt(7, SESSION, "hi");
        rig.sent();
        rig.feed(ask("\"ui_1\"", "pick", r#"{"title":"Approval mode","items":[{"id":"full","label":"Full"}]}"#));
        assert_eq!(rig.ask().items.len(), 1);
        for _ in 0..100 {
            rig.wake();
        }
        assert!(rig.wakes == 0 && rig.sent().is_empty() && rig.take_events().is_empty(), "nothing is due");
        if cancelled {
            rig.cancel(7, SESSION);
            assert_eq!(rig.sent(), [j!({ "jsonrpc": "2.0", "id": "ui_1", "result": { "ids": [] } })]);
            rig.take_events();
        } else {
            rig.answer("\"ui_1\"", Decision::Ids(vec!["full".into()]));
            assert_eq!(rig.sent()[0]["result"], j!({ "ids": ["full"] }));
        }
        rig.feed(r#"{"id":"2","result":{"run_id":"r"}}"#);
        assert_eq!(rig.sent().len(), usize::from(cancelled), "the cancel goes out as soon as the run has a name");
        rig.feed(status("r", "completed"));
        let (ticket, end) = rig.end();
        let expected = if cancelled { RunStatus::Cancelled } else { RunStatus::Completed };
        assert_eq!((ticket, end.status), (7, expected));
    }
}

#[test]
fn codelia_cancel_of_a_finished_run_ends_it() {
    for (result, ended) in [
        (r#"{"ok":true}"#, None),
        (r#"{"ok":true,"status":"running"}"#, None),
        (r#"{"ok":false}"#, Some(RunStatus::Completed)),
        (r#"{"ok":false,"status":"completed"}"#, Some(RunStatus::Completed)),
        (r#"{"ok":true,"status":"cancelled"}"#, Some(RunStatus::Cancelled)),
    ] {
        let mut rig = running();
        rig.cancel(7, SESSION);
        rig.feed(format!(r#"{{"id":"3","result":{result}}}"#));
        match ended {
            Some(ended) => assert_eq!(rig.end().1.status, ended, "{result}"),
            None => assert!(rig.take_events().is_empty(), "{result}"),
        }
    }
    let mut rig = running();
    rig.cancel(7, SESSION);
    rig.feed(r#"{"id":"3","result":{"ok":false,"status":"running"}}"#);
    assert_eq!(rig.event().kind, Kind::Error);
}

/// Passes units of silence while wakes are requested; returns how many.
fn pass_silence(rig: &mut Rig) -> u32 {
    let mut whiles = 0;
    while std::mem::take(&mut rig.wakes) > 0 {
        assert_eq!(rig.wakes, 0);
        rig.wake();
        whiles += 1;
        assert!(whiles < 1000, "for ever");
    }
    whiles
}

#[test]
fn codelia_final_completes_a_run_without_a_status() {
    for early in [false, true] {
        let mut rig = session();
        rig.prompt(7, SESSION, "hi");
        let (begun, last) =
            (r#"{"id":"2","result":{"run_id":"r"}}"#, event(0, r#"{"type":"final","content":"hello"}"#));
        for frame in if early { [last.as_str(), begun] } else { [begun, last.as_str()] } {
            rig.feed(frame.to_owned());
        }
        assert!(matches!(rig.one(), RuntimeEvent::Event { .. }), "a status may still come");
        assert_eq!(pass_silence(&mut rig), QUIET_AFTER_FINAL);
        let (ticket, end) = rig.end();
        assert_eq!((ticket, end.status, end.message), (7, RunStatus::Completed, None));
        assert_eq!(rig.wakes, 0);
        // Messages of the last run do not end the next one.
        rig.prompt(8, SESSION, "and");
        rig.feed(event(1, r#"{"type":"final","content":"hello"}"#));
        rig.feed(r#"{"id":"3","result":{"run_id":"next"}}"#);
        rig.take_events();
        assert_eq!((pass_silence(&mut rig), rig.take_events().len()), (0, 0));
    }
}

#[test]
fn codelia_reused_run_name_ends_both_runs() {
    for early in [false, true] {
        let mut rig = session();
        for (ticket, call) in [(7, 2), (8, 3), (9, 4)] {
            rig.prompt(ticket, SESSION, "hi");
            let begun = format!(r#"{{"id":"{call}","result":{{"run_id":"r"}}}}"#);
            let text = event(0, r#"{"type":"text","content":"a"}"#);
            let last = event(1, r#"{"type":"final","content":"hello"}"#);
            let frames = if early { [text.clone(), last, begun] } else { [begun, text.clone(), last] };
            for frame in frames {
                rig.feed(frame);
            }
            assert_eq!(rig.take_events().len(), 2, "each run's words are told");
            rig.feed(text);
            assert!(rig.take_events().is_empty(), "a repeat is not");
            assert_eq!(pass_silence(&mut rig), QUIET_AFTER_FINAL);
            assert_eq!(rig.end().0, ticket);
        }
    }
}

#[test]
fn codelia_run_with_an_open_request_or_a_due_status_goes_on() {
    let mut rig = running();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"run_id":"r","title":"T","message":"M"}"#));
    rig.feed(event(0, r#"{"type":"final","content":"hello"}"#));
    rig.take_events();
    assert_eq!(pass_silence(&mut rig), 0, "it waits for people");
    rig.answer("\"ui_1\"", choose("allow", Choice::AllowOnce));
    assert_eq!(pass_silence(&mut rig), QUIET_AFTER_FINAL);
    assert_eq!(rig.end().1.status, RunStatus::Completed);
    let mut rig = running();
    rig.feed(status("r", "running"));
    rig.feed(event(0, r#"{"type":"final","content":"hello"}"#));
    rig.take_events();
    for _ in 0..QUIET_AFTER_FINAL {
        rig.wake();
    }
    assert!(rig.take_events().is_empty(), "one that tells its status is given more time");
    rig.feed(status("r", "error"));
    assert_eq!(rig.end().1.status, RunStatus::Error, "and has the last word");
}

#[test]
fn codelia_unanswered_cancel_ends_the_run() {
    for reply in [None, Some(r#"{"ok":true}"#), Some(r#"{"ok":true,"status":"running"}"#)] {
        let mut rig = running();
        rig.cancel(7, SESSION);
        if let Some(reply) = reply {
            rig.feed(format!(r#"{{"id":"3","result":{reply}}}"#));
        }
        assert!(rig.take_events().is_empty(), "the end may be told");
        assert_eq!(pass_silence(&mut rig), QUIET_AFTER_CANCEL);
        let (ticket, end) = rig.end();
        assert_eq!((ticket, end.status), (7, RunStatus::Cancelled), "{reply:?}");
    }
    // A run whose cancel was refused goes on, however silent.
    for refused in [r#""result":{"ok":false,"status":"running"}"#, r#""error":{"code":-32000,"message":"boom"}"#] {
        let mut rig = running();
        rig.cancel(7, SESSION);
        rig.feed(format!(r#"{{"id":"3",{refused}}}"#));
        rig.take_events();
        pass_silence(&mut rig);
        assert!(rig.take_events().is_empty(), "{refused}");
    }
}

#[test]
fn codelia_late_start_of_a_cancelled_run_is_stopped() {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.cancel(7, SESSION);
    pass_silence(&mut rig);
    assert_eq!(rig.end().1.status, RunStatus::Cancelled);
    rig.prompt(8, SESSION, "and");
    rig.sent();
    rig.feed(r#"{"id":"2","result":{"run_id":"old"}}"#);
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]), (&j!("run.cancel"), &j!({ "run_id": "old" })));
    rig.feed(r#"{"id":"3","result":{"run_id":"new"}}"#);
    rig.feed(status("old", "cancelled"));
    assert_eq!(rig.event().kind, Kind::Hook);
    rig.feed(status("new", "completed"));
    assert_eq!(
        rig.end(),
        (
            8,
            RunEnd {
                status: RunStatus::Completed,
                stop_reason: None,
                message: Some("m".into()),
                native: Some(Bytes::from(status("new", "completed")))
            }
        )
    );
}

#[test]
fn codelia_confirm_after_another_event_names_no_tool_call() {
    for between in [
        event(2, r#"{"type":"step_start"}"#),
        event(2, r#"{"type":"tool_result","tool":"x","tool_call_id":"y"}"#),
        status("r", "completed"),
    ] {
        let mut rig = running();
        rig.feed(event(0, r#"{"type":"tool_call","tool":"bash","args":{"command":"ls"},"tool_call_id":"t"}"#));
        rig.feed(event(1, r#"{"type":"permission.ready","tool":"bash","tool_call_id":"t"}"#));
        rig.feed(between);
        rig.take_events();
        rig.feed(ask("\"ui_1\"", "confirm", r#"{"title":"Log out?","message":"M"}"#));
        assert_eq!(rig.ask().tool_call_id, None);
    }
    let mut rig = running();
    rig.feed(event(0, r#"{"type":"permission.ready","tool":"bash","tool_call_id":"t"}"#));
    // A repeated event does not count as one between.
    rig.feed(event(0, r#"{"type":"permission.ready","tool":"bash","tool_call_id":"t"}"#));
    rig.take_events();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"run_id":"other","title":"T","message":"M"}"#));
    assert_eq!(rig.ask().tool_call_id, None, "another run's");
}

#[test]
fn codelia_forgets_large_arguments_and_shows_the_message() {
    let mut rig = running();
    let big = "x".repeat(3 << 20);
    for (seq, id) in [(0, "a"), (1, "b")] {
        let call = j!({ "type": "tool_call", "tool": "write", "args": { "content": big }, "tool_call_id": id });
        rig.feed(event(seq, &call.to_string()));
    }
    assert!(rig.dialect.save().unwrap().len() < 5 << 20, "what is remembered is bounded");
    rig.feed(event(2, r#"{"type":"permission.ready","tool":"write","tool_call_id":"b"}"#));
    rig.take_events();
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"title":"T","message":"M"}"#));
    assert!(matches!(rig.ask().subject, RequestSubject::Tool { name, .. } if name == "write"), "the latest is known");
}

#[test]
fn codelia_returns_question_ids_unchanged() {
    for id in ["\"ui_1\"", "7", "-0", "1.50", "1e400", "null", "true", "[1]", "{\"a\":1}", r#""\ud800 \u0000""#] {
        let mut rig = running();
        let mut frames = Vec::new();
        rig.feed(ask(id, "confirm", r#"{"title":"T","message":"M"}"#));
        let key = rig.ask().key;
        assert_eq!(key.id(), id);
        let mut out = super::super::Outbox::default();
        rig.dialect.command(RuntimeCommand::Answer { key, decision: choose("allow", Choice::AllowOnce) }, &mut out);
        frames.append(&mut out.frames);
        let line = String::from_utf8(frames.remove(0).to_vec()).unwrap();
        assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"ok\":true}}}}\n"));
    }
}

fn resume(rig: &mut Rig, native: &str, known: bool) {
    let resume = Some(ResumeTarget::new(native.into(), known));
    rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
}

/// Makes a ready connection that resumes a conversation; the next request id is "3".
fn resuming(known: bool) -> Rig {
    let mut rig = Rig::new(&spec("codelia"));
    rig.feed(HELLO);
    rig.take_events();
    rig.sent();
    resume(&mut rig, "s1", known);
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["scope"]), (&j!("session.list"), &j!("all")));
    assert!(rig.take_events().is_empty());
    rig
}

const LISTED: &str = r#"{"id":"2","result":{"sessions":[{"session_id":"s0"},{"session_id":"s1","updated_at":"x"}]}}"#;

#[test]
fn codelia_known_conversation_resumes_without_its_history() {
    for reply in [LISTED, r#"{"id":"2","error":{"code":-32006,"message":"list failed"}}"#] {
        let mut rig = resuming(true);
        rig.feed(reply);
        let events = rig.one();
        assert!(
            matches!(&events, RuntimeEvent::Opened { native, how: OpenedAs::Resumed, .. } if native.as_str() == "s1"),
            "{events:?}"
        );
        assert!(rig.sent().is_empty(), "the log has its past");
        rig.prompt(7, "s1", "hi");
        assert_eq!(rig.sent()[0]["params"]["session_id"], "s1");
        rig.feed(r#"{"id":"3","result":{"run_id":"r"}}"#);
        rig.feed(status("r", "completed"));
        assert!(matches!(rig.one(), RuntimeEvent::Ended { native, .. } if native.as_str() == "s1"));
        rig.prompt(8, "s1", "more");
        assert_eq!(rig.sent()[0]["params"].get("session_id"), None, "it is the process's own by now");
    }
}

#[test]
fn codelia_missing_conversation_is_replaced_or_refused() {
    let none = r#"{"id":"2","result":{"sessions":[]}}"#;
    let mut rig = resuming(true);
    rig.feed(none);
    assert!(matches!(rig.one(), RuntimeEvent::Opened { native, how: OpenedAs::New, .. } if native.as_str() == SESSION));
    let mut rig = resuming(false);
    rig.feed(none);
    assert!(matches!(rig.one(), RuntimeEvent::NotOpened { ticket: Ticket(1), error } if error.code == -32004));
    rig.open(2);
    assert!(matches!(rig.one(), RuntimeEvent::Opened { how: OpenedAs::New, .. }), "the process is free");
    // A session that was never named is gone with its process.
    let mut rig = Rig::new(&spec("codelia"));
    rig.feed(HELLO);
    rig.take_events();
    resume(&mut rig, SESSION, true);
    assert!(matches!(rig.one(), RuntimeEvent::Opened { how: OpenedAs::New, .. }));
    let mut rig = resuming(true);
    rig.open(2);
    assert!(matches!(rig.one(), RuntimeEvent::NotOpened { ticket: Ticket(2), .. }), "one at a time");
}

#[test]
fn codelia_reports_a_conversation_lost_at_its_first_prompt() {
    for (known, code) in [(true, -32004), (true, -32005), (false, -32004)] {
        let mut rig = resuming(known);
        rig.feed(LISTED);
        if !known {
            rig.feed(r#"{"id":"3","result":{"runs":0,"events_sent":0}}"#);
        }
        rig.take_events();
        rig.sent();
        rig.prompt(7, "s1", "hi");
        let id = rig.sent()[0]["id"].clone();
        rig.feed(format!(r#"{{"id":{id},"error":{{"code":{code},"message":"session load failed"}}}}"#));
        if known {
            let draft = rig.event();
            assert_eq!((draft.kind, &json(&draft.body)["code"]), (Kind::Error, &j!("conversation_lost")));
            let sent = rig.sent();
            assert_eq!((&sent[0]["method"], sent[0]["params"].get("session_id")), (&j!("run.start"), None));
        } else {
            assert_eq!(rig.end().1.status, RunStatus::Error);
        }
    }
}

/// Returns the opened session's history.
fn opened(rig: &mut Rig) -> Vec<EventDraft> {
    match rig.one() {
        RuntimeEvent::Opened { drafts, native, how: OpenedAs::Resumed, .. } if native.as_str() == "s1" => drafts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn codelia_history_absent_from_the_log_comes_with_the_session() {
    let mut rig = resuming(false);
    rig.feed(LISTED);
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["session_id"]), (&j!("session.history"), &j!("s1")));
    for (seq, body) in [
        (-1, r#"{"type":"hidden_user_message","content":"do it"}"#),
        (
            -1,
            r#"{"type":"hidden_user_message","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]}"#,
        ),
        (4, r#"{"type":"text","content":"done"}"#),
        (9, r#"{"type":"final","content":"done"}"#),
        (10, r#"{"type":"permission.ready","tool":"bash","tool_call_id":"t"}"#),
    ] {
        rig.feed(event(seq, body));
    }
    assert!(rig.take_events().is_empty(), "not opened before all of it is told");
    rig.open(2);
    assert!(matches!(rig.one(), RuntimeEvent::NotOpened { ticket: Ticket(2), .. }), "one at a time");
    rig.feed(r#"{"id":"3","result":{"runs":1,"events_sent":5,"truncated":true}}"#);
    let past: Vec<_> = opened(&mut rig).iter().map(|draft| (draft.kind, text(&draft.body))).collect();
    assert_eq!(
        past,
        [
            (Kind::UserMessageChunk, j!("do it")),
            (Kind::UserMessageChunk, j!("a\nb")),
            (Kind::AgentMessageChunk, j!("done")),
            (Kind::Hook, j!(null)),
            (Kind::Hook, j!(null)),
            (Kind::Error, j!(null)),
        ],
        "the same words once, no hole: it tells a part, and says that it does"
    );
    rig.prompt(7, "s1", "next");
    assert_eq!(rig.sent()[0]["params"]["session_id"], "s1");
    rig.feed(ask("\"ui_1\"", "confirm", r#"{"title":"T","message":"M"}"#));
    assert_eq!(rig.ask().tool_call_id, None, "the past asks nothing");
    rig.feed(event(0, r#"{"type":"text","content":"done"}"#));
    assert_eq!(rig.event().kind, Kind::AgentMessageChunk, "numbers of the past count for nothing");
}

#[test]
fn codelia_large_history_streams_and_delays_prompts() {
    let mut rig = resuming(false);
    rig.feed(LISTED);
    rig.sent();
    let big = j!({ "type": "text", "content": "x".repeat(5 << 20) }).to_string();
    rig.feed(event(0, &big));
    assert!(rig.take_events().is_empty());
    rig.feed(event(1, &big));
    assert_eq!(opened(&mut rig).len(), 2);
    rig.prompt(7, "s1", "next");
    rig.feed(event(2, r#"{"type":"text","content":"done"}"#));
    assert_eq!(rig.event().kind, Kind::AgentMessageChunk);
    assert!(rig.sent().is_empty() && rig.wakes == 0, "it waits until the past is told");
    rig.feed(r#"{"id":"3","result":{"runs":1}}"#);
    assert_eq!(rig.sent()[0]["params"]["session_id"], "s1", "now it begins, in that conversation");
}

#[test]
fn codelia_unreadable_history_is_reported_and_delays_nothing() {
    let mut rig = resuming(false);
    rig.feed(LISTED);
    rig.sent();
    rig.feed(r#"{"id":"3","error":{"code":-32005,"message":"load failed"}}"#);
    let past = opened(&mut rig);
    assert_eq!(json(&past[0].body)["code"], "history_failed");
    rig.prompt(8, "s1", "b");
    assert_eq!(rig.sent()[0]["method"], "run.start");
}

#[test]
fn codelia_busy_start_is_retried_after_a_takeover() {
    let mut rig = session();
    rig.prompt(7, SESSION, "hi");
    rig.feed(r#"{"id":"2","error":{"code":-32001,"message":"busy"}}"#);
    rig.sent();
    let saved = rig.dialect.save().unwrap();
    let mut next = Rig::new(&spec("codelia"));
    next.sent();
    assert!(!next.dialect.restore(b"junk") && !next.dialect.restore(br#"{"form":2}"#));
    assert!(next.dialect.restore(&saved));
    assert_eq!(next.dialect.prompts(), [Ticket(7)]);
    // The new gateway has no pending wake: the next event requests one.
    next.feed(status("old", "completed"));
    assert_eq!(next.wakes, 1);
    next.wake();
    assert_eq!(next.sent()[0]["method"], "run.start");
}

#[test]
fn codelia_keeps_replies_to_calls_of_an_earlier_gateway() {
    let mut rig = session();
    rig.call(SESSION, "model.list", None);
    let saved = rig.dialect.save().unwrap();
    let mut next = Rig::new(&spec("codelia"));
    assert!(next.dialect.restore(&saved));
    next.feed(r#"{"id":"2","result":{}}"#);
    assert_eq!(next.event().kind, Kind::Raw);
}

/// A step of the test.
#[derive(Clone, Debug)]
enum Step {
    Feed(String),
    Prompt(u64),
    Cancel(u64),
    Answer(String, Decision),
    Wake,
}

fn step() -> impl Strategy<Value = Step> {
    let run = prop_oneof![Just("r"), Just("q")];
    let events = prop_oneof![
        Just(r#"{"type":"text","content":"a"}"#),
        Just(r#"{"type":"final","content":"a"}"#),
        Just(r#"{"type":"tool_call","tool":"bash","args":{"command":"ls"},"tool_call_id":"t"}"#),
        Just(r#"{"type":"tool_result","tool":"bash","result":"x","tool_call_id":"t"}"#),
        Just(r#"{"type":"permission.ready","tool":"bash"}"#),
        Just(r#"{"type":"hidden_user_message","content":"u"}"#),
    ];
    let statuses = prop_oneof![Just("running"), Just("completed"), Just("cancelled"), Just("error")];
    let replies = prop_oneof![
        Just(r#""result":{"run_id":"r"}"#),
        Just(r#""result":{"run_id":"q"}"#),
        Just(r#""result":{"ok":false}"#),
        Just(r#""result":{"sessions":[{"session_id":"s1"}]}"#),
        Just(r#""error":{"code":-32001,"message":"busy"}"#),
        Just(r#""error":{"code":-32002,"message":"no run"}"#),
        Just(r#""error":{"code":-32004,"message":"no session"}"#),
    ];
    let key = prop_oneof![Just("\"ui_1\""), Just("2"), Just("null")];
    let asks = prop_oneof![Just("confirm"), Just("prompt"), Just("pick")];
    prop_oneof![
        4 => (run.clone(), -1i64..6, events).prop_map(|(run, seq, event)| Step::Feed(format!(
            r#"{{"method":"agent.event","params":{{"run_id":"{run}","seq":{seq},"event":{event}}}}}"#
        ))),
        2 => (run, statuses).prop_map(|(run, word)| Step::Feed(status(run, word))),
        4 => (1u32..12, replies).prop_map(|(id, reply)| Step::Feed(format!(r#"{{"id":"{id}",{reply}}}"#))),
        2 => (key.clone(), asks).prop_map(|(key, method)| Step::Feed(ask(key, method, r#"{"title":"T","message":"M","items":[]}"#))),
        1 => (1u64..4).prop_map(Step::Prompt),
        1 => (1u64..4).prop_map(Step::Cancel),
        1 => (key, prop_oneof![Just(Decision::Withdrawn), Just(choose("allow", Choice::AllowOnce))])
            .prop_map(|(key, decision)| Step::Answer(key.into(), decision)),
        1 => Just(Step::Wake),
    ]
}

fn take(rig: &mut Rig, step: &Step, native: &str) {
    match step {
        Step::Feed(line) => rig.feed(line.clone()),
        Step::Prompt(ticket) => rig.prompt(*ticket, native, "hi"),
        Step::Cancel(ticket) => rig.cancel(*ticket, native),
        Step::Answer(key, decision) => rig.answer(key, decision.clone()),
        Step::Wake => rig.wake(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn codelia_takeover_at_any_point_changes_nothing(
        steps in proptest::collection::vec(step(), 1..40),
        at in 0usize..40,
        kind in 0usize..3,
    ) {
        let mut rig = match kind {
            0 => session(),
            1 => resuming(true),
            _ => resuming(false),
        };
        if kind > 0 {
            rig.feed(LISTED);
        }
        if kind > 1 {
            // Until the history is complete there is no session to take over.
            rig.feed(r#"{"id":"3","result":{}}"#);
        }
        rig.take_events();
        let native = if kind == 0 { SESSION } else { "s1" };
        let at = at.min(steps.len());
        for step in &steps[..at] {
            take(&mut rig, step, native);
        }
        trace(&mut rig);
        let saved = rig.dialect.save().unwrap();
        let mut next = Rig::new(&spec("codelia"));
        trace(&mut next);
        prop_assert!(next.dialect.restore(&saved));
        prop_assert_eq!(next.dialect.asks(), rig.dialect.asks());
        prop_assert_eq!(next.dialect.prompts(), rig.dialect.prompts());
        for step in &steps[at..] {
            take(&mut rig, step, native);
            take(&mut next, step, native);
            prop_assert_eq!(trace(&mut next), trace(&mut rig));
        }
        let (a, b): (Value, Value) = (json(&next.dialect.save().unwrap()), json(&rig.dialect.save().unwrap()));
        prop_assert_eq!(a, b);
    }
}

#[test]
fn codelia_reused_question_id_is_another_question_after_a_restart() {
    let mut rig = running();
    rig.feed(ask("5", "confirm", r#"{"title":"T"}"#));
    let first = rig.ask().key;
    rig.tell(RuntimeCommand::Answer { key: first.clone(), decision: choose("allow", Choice::AllowOnce) });
    rig.sent();
    rig.feed(ask("5", "confirm", r#"{"title":"U"}"#));
    let second = rig.ask().key;
    assert_eq!((first.id(), second.id(), first == second), ("5", "5", false));
    let saved = rig.dialect.save().unwrap();
    let mut next = super::make(&spec("codelia"));
    assert!(next.restore(&saved));
    rig.dialect = next;
    rig.tell(RuntimeCommand::Answer { key: first, decision: choose("allow", Choice::AllowOnce) });
    assert!(rig.sent().is_empty(), "it was given to another question");
    rig.tell(RuntimeCommand::Answer { key: second.clone(), decision: choose("deny", Choice::RejectOnce) });
    assert_eq!(rig.sent()[0]["result"]["ok"], false);
    rig.feed(ask("5", "confirm", r#"{"title":"V"}"#));
    assert!(rig.ask().key > second, "numbers go on");
}
