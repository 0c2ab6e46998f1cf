//! The translation, both ways, as tables and as a property: one file, for both need the same desk and the same events.

use plexus_protocol::{Capabilities, Capability};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::events::{EventTranslator, Extras, UiMessage, unified};
use super::state::NoReply;
use super::state::{BridgeAction, BridgeState, BridgeTarget, CallPurpose};
use plexus_client::{ClientEvent, Envelope};

fn envelope(dialect: &str, run: &str, kind: &str, event: &Value, native: Option<&str>) -> Envelope {
    let mut wire = json!({
        "session_id": "s_1", "run_id": run, "seq": 0, "cursor": "e:1", "at": "2026-01-02T03:04:05.678Z", "kind": kind, "event": event,
        "meta": { "runtime_id": "a", "dialect": dialect },
    })
    .to_string();
    if let Some(native) = native {
        wire.pop();
        wire.push_str(&format!(",\"native\":{native}}}"));
    }
    Envelope::read(serde_json::value::RawValue::from_string(wire).unwrap()).unwrap()
}

fn acp(run: &str, kind: &str, event: &Value) -> ClientEvent {
    ClientEvent::Event(Box::new(envelope("acp", run, kind, event, None)))
}

fn chunk(text: &str) -> Value {
    json!({ "content": { "type": "text", "text": text } })
}

fn request(id: &str, kind: &str, options: &[(&str, &str)], more: Value) -> Value {
    let options: Vec<Value> =
        options.iter().map(|(id, kind)| json!({ "id": id, "label": format!("Do {id}"), "kind": kind })).collect();
    let mut request = json!({
        "request_id": id, "session_id": "s_1", "run_id": "r_1", "runtime_id": "a", "generation": 1, "type": kind,
        "state": "open", "title": format!("title of {id}"), "display": "ls", "warnings": [], "digest": "d",
        "options": options, "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z",
    });
    for (name, value) in more.as_object().unwrap() {
        request[name.as_str()] = value.clone();
    }
    request
}

const YES_NO: &[(&str, &str)] = &[("y", "allow_once"), ("a", "allow_always"), ("n", "reject_once")];

fn resolved(id: &str, state: &str, ok: bool) -> Value {
    json!({ "request_id": id, "state": state, "ok": ok, "resolved_by": { "device_id": "d", "name": "phone" } })
}

/// A desk, and what it has to say.
struct Rig {
    desk: BridgeState,
    orders: Vec<BridgeAction>,
}

impl Rig {
    fn bare() -> Self {
        let aim = BridgeTarget {
            session: None,
            runtime: None,
            capabilities: None,
            cwd: "/here".into(),
            notice: None,
            key: "k".into(),
        };
        let mut rig = Self { desk: BridgeState::new(aim), orders: Vec::new() };
        let panels = json!({
            "supports_confirm": true, "supports_prompt": true, "supports_pick": true,
            "supports_permission_preflight_events": true, "supports_gateway_events": true,
        });
        rig.line(&json!({ "id": "0", "method": "initialize", "params": { "ui_capabilities": panels } }));
        rig.said();
        rig
    }

    /// Follows `s_1`, whose past is told.
    fn live() -> Self {
        let mut rig = Self::bare();
        rig.line(&json!({ "id": "h", "method": "session.history", "params": { "session_id": "s_1" } }));
        rig.hear(ClientEvent::Live);
        rig.said();
        rig
    }

    fn line(&mut self, line: &Value) {
        self.desk.line(&line.to_string(), &mut self.orders);
    }

    fn hear(&mut self, heard: ClientEvent) {
        self.desk.on_event(heard, &mut self.orders);
    }

    fn called(&mut self, why: CallPurpose, outcome: Result<Value, NoReply>) {
        self.desk.called(why, outcome, &mut self.orders);
    }

    /// What was said to the terminal UI since.
    fn said(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        self.orders.retain(|order| match order {
            BridgeAction::Say(line) => {
                assert!(!line.contains('\n'), "a message a line: {line}");
                said.push(serde_json::from_str(line).unwrap());
                false
            }
            _ => true,
        });
        said
    }

    /// The agent events said since, without those that are for the debug view.
    fn events(&mut self) -> Vec<Value> {
        let events = self.said().into_iter().map(|said| said["params"]["event"].clone());
        events.filter(|event| event["type"].as_str().is_some_and(|sort| !sort.starts_with("plexus."))).collect()
    }

    /// The calls made since.
    fn calls(&mut self) -> Vec<(CallPurpose, String, Value)> {
        let mut calls = Vec::new();
        for order in std::mem::take(&mut self.orders) {
            match order {
                BridgeAction::Call { why, method, params, .. } => calls.push((*why, method, params)),
                other => self.orders.push(other),
            }
        }
        calls
    }

    fn answer(&mut self, id: &str, result: Value) {
        self.line(&json!({ "id": id, "result": result }));
    }
}

#[test]
fn every_kind_is_told_in_the_words_of_the_terminal_ui() {
    let mut teller = EventTranslator::default();
    teller.extras(Extras { terminal: true, gateway: true });
    let mut told = |kind: &str, event: Value| -> Vec<Value> {
        let told = teller.translate(&envelope("acp", "r_1", kind, &event, None), false);
        told.into_iter()
            .filter_map(|told| match told {
                UiMessage::Event { event, .. } => Some(serde_json::from_str(&event).unwrap()),
                UiMessage::Status { status, message, .. } => Some(json!({ "status": status, "message": message })),
                UiMessage::Notify { method, params } => {
                    Some(json!({ "notify": method, "params": serde_json::from_str::<Value>(&params).unwrap() }))
                }
                UiMessage::Log(_) | UiMessage::Asked(_) | UiMessage::Resolved(_) => None,
            })
            .collect()
    };
    let begun = told("run_started", json!({ "by": { "device_id": "d", "name": "phone" } }));
    assert_eq!(begun[0]["args"], "phone prompts:");
    assert_eq!(begun[1]["status"], "running");
    assert_eq!(told("user_message_chunk", chunk("hi")), [json!({ "type": "hidden_user_message", "content": "hi" })]);
    assert!(told("agent_thought_chunk", chunk("hm ")).is_empty(), "put together");
    assert!(told("agent_thought_chunk", chunk("so")).is_empty());
    assert_eq!(told("agent_message_chunk", chunk("a ")), [json!({ "type": "reasoning", "content": "hm so" })]);
    assert_eq!(told("agent_message_chunk", chunk("b\n\nc")), [json!({ "type": "text", "content": "a b\n\n" })]);
    let call =
        json!({ "toolCallId": "t", "title": "List", "kind": "execute", "rawInput": { "command": ["ls", "-l"] } });
    let called = told("tool_call", call);
    assert_eq!(called[0], json!({ "type": "text", "content": "c" }));
    assert_eq!((&called[1]["tool"], &called[1]["args"]), (&json!("bash"), &json!({ "command": "ls -l" })));
    let done = json!({ "toolCallId": "t", "status": "failed", "content": [{ "type": "content", "content": { "type": "text", "text": "no" } }] });
    let over = told("tool_call_update", done);
    assert_eq!(
        (&over[0]["type"], &over[0]["result"], &over[0]["is_error"]),
        (&json!("tool_result"), &json!("no"), &json!(true))
    );
    let edit = json!({ "type": "diff", "path": "/w/a.txt", "oldText": "1\n2\n", "newText": "1\n3\n" });
    let edited =
        told("tool_call", json!({ "toolCallId": "e", "kind": "edit", "status": "completed", "content": [edit] }));
    assert_eq!((&edited[0]["tool"], &edited[0]["args"]["file_path"]), (&json!("edit"), &json!("/w/a.txt")));
    let result: Value = serde_json::from_str(edited[1]["result"].as_str().unwrap()).unwrap();
    assert_eq!(result["diff"], "--- a/w/a.txt\n+++ b/w/a.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
    let plan = told("plan", json!({ "entries": [{ "content": "x", "status": "completed" }, { "content": "y" }] }));
    assert_eq!(plan[1]["result"], "Todo plan:\n1. [x] x\n2. [ ] y");
    assert_eq!(told("usage_update", json!({ "used": 25, "size": 100 }))[0]["params"]["context_left_percent"], 75);
    assert_eq!(told("run_status", json!({ "status": "awaiting_ui" }))[0]["status"], "awaiting_ui");
    assert_eq!(told("error", json!({ "message": "m" }))[0]["args"], "error: m");
    let long = told("error", json!({ "message": "é words ".repeat(40) }));
    assert!(long.len() > 2 && long.iter().all(|line| line["args"].as_str().unwrap().chars().count() <= 150));
    assert_eq!(
        told("runtime_status", json!({ "status": "exited", "message": "bye" }))[0]["args"],
        "the agent: exited: bye"
    );
    assert_eq!(told("raw", json!({}))[0]["type"], "plexus.raw", "drawn in its debug view");
    let ended = told("run_ended", json!({ "status": "completed" }));
    assert_eq!(ended[0], json!({ "type": "final", "content": "c" }), "which it does not draw again");
    assert_eq!(ended[1]["status"], "completed");
    told("run_started", json!({}));
    assert_eq!(
        told("run_ended", json!({ "status": "cancelled" })),
        [json!({ "status": "cancelled", "message": null })]
    );
}

#[test]
fn a_runtimes_own_events_are_passed_as_they_are_and_its_final_is_the_only_one() {
    let mut teller = EventTranslator::default();
    let mut finals = 0;
    teller.translate(&envelope("codelia", "r_1", "run_started", &json!({}), None), false);
    for own in [
        r#"{"type":"text",  "content":"\u00e9\/","new":[1.50,1e3]}"#,
        r#"{"type":"unheard of","x":null}"#,
        r#"{"content":"over","type":"final"}"#,
    ] {
        let native = format!(r#"{{"method":"agent.event","params":{{"run_id":"7","seq":3,"event":{own}}}}}"#);
        let told = teller.translate(&envelope("codelia", "r_1", "hook", &json!({}), Some(&native)), false);
        let [UiMessage::Event { run, event, .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((run.as_str(), event.as_str()), ("r_1", own));
        finals += usize::from(own.contains("final"));
    }
    teller.translate(&envelope("codelia", "r_1", "run_status", &json!({ "status": "running" }), None), false);
    let told =
        teller.translate(&envelope("codelia", "r_1", "run_ended", &json!({ "status": "completed" }), None), false);
    finals += told.iter().filter(|told| matches!(told, UiMessage::Event { .. })).count();
    assert_eq!(finals, 1);
    // The same bytes from a runtime of another kind are that kind's own, and mean nothing here.
    let native = r#"{"method":"agent.event","params":{"event":{"type":"final"}}}"#;
    assert!(
        teller.translate(&envelope("acp", "r_2", "agent_message_chunk", &chunk("x"), Some(native)), false).is_empty()
    );
}

#[test]
fn a_message_is_cut_at_its_paragraphs_and_not_within_code() {
    let text = "One.\n\n```\na\n\nb\n```\n\n- x\n- y\n\nlast";
    let mut rig = Rig::live();
    for piece in text.as_bytes().chunks(3) {
        rig.hear(acp("r_1", "agent_message_chunk", &chunk(std::str::from_utf8(piece).unwrap())));
    }
    rig.hear(acp("r_1", "run_ended", &json!({})));
    let pieces: Vec<Value> = rig.events().iter().map(|event| event["content"].clone()).collect();
    assert_eq!(pieces, ["One.\n\n", "```\na\n\nb\n```\n\n", "- x\n- y\n\n", "last"]);
    let long = "It goes on. ".repeat(200);
    rig.hear(acp("r_1", "agent_message_chunk", &chunk(&long)));
    assert_eq!(rig.events().len(), 1, "a long paragraph is told up to its last sentence");
    rig.hear(acp("r_1", "agent_message_chunk", &chunk(&"x".repeat(100_000))));
    assert!(rig.events().iter().map(|event| event["content"].as_str().unwrap().len()).sum::<usize>() > 60_000);
}

#[test]
fn diffs_are_what_diff_would_read() {
    for (old, new, hunk) in [
        ("", "a\n", "@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
        ("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n", "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+x\n 6\n"),
        ("a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n"),
    ] {
        assert_eq!(unified("f", old, new), format!("--- a/f\n+++ b/f\n{hunk}"), "{old:?} {new:?}");
    }
    assert_eq!(unified("f", "a\n", "a\n"), "");
}

#[test]
fn a_panel_offers_what_the_request_does_and_says_what_it_is_about() {
    let shown = |request: Value| {
        let mut rig = Rig::live();
        rig.hear(acp("r_1", "request_opened", &request));
        rig.said()
            .into_iter()
            .rfind(|said| said["method"].as_str().is_some_and(|method| method.starts_with("ui.")))
            .unwrap()
    };
    let plain = shown(request(
        "q",
        "permission",
        &YES_NO[..1].iter().chain(&YES_NO[2..]).copied().collect::<Vec<_>>(),
        json!({}),
    ));
    let params = &plain["params"];
    assert_eq!((&plain["method"], &params["message"]), (&json!("ui.confirm.request"), &json!("ls")));
    assert_eq!((&params["confirm_label"], &params["cancel_label"]), (&json!("Do y"), &json!("Do n")));
    assert_eq!((&params["danger_level"], &params["allow_remember"]), (&json!("normal"), &json!(false)));
    let more = json!({ "allow_remember": true, "allow_reason": true, "warnings": ["w"], "message": "harmless" });
    let full = shown(request("q", "confirm", YES_NO, more));
    let params = &full["params"];
    assert_eq!(
        params["message"], "ls\n\nRemember (don't ask again):\n- Do a\nWarning: w",
        "never the agent's own words for it"
    );
    assert_eq!((&params["danger_level"], &params["allow_reason"]), (&json!("danger"), &json!(true)));
    // Two kinds of "always" are not one, and what has no yes and no is a choice.
    let twice = [&[("b", "allow_always")], YES_NO].concat();
    assert_eq!(
        shown(request("q", "permission", &twice, json!({ "allow_remember": true })))["params"]["allow_remember"],
        false
    );
    let choice = shown(request("q", "permission", &[("x", "other"), ("z", "allow_always")], json!({})));
    assert_eq!((&choice["method"], &choice["params"]["items"][1]["id"]), (&json!("ui.pick.request"), &json!("z")));
    let prompt = shown(request("q", "prompt", &[], json!({ "default_value": "v", "secret": true, "message": "m" })));
    assert_eq!((&prompt["params"]["default_value"], &prompt["params"]["secret"]), (&json!("v"), &json!(true)));
}

#[test]
fn answers_are_said_as_the_gateway_wants_them() {
    let all = json!({ "allow_remember": true, "allow_reason": true });
    for (kind, options, said, answer) in [
        ("confirm", YES_NO, json!({ "ok": true, "remember": false, "reason": null }), json!({ "option_id": "y" })),
        ("confirm", YES_NO, json!({ "ok": true, "remember": true, "reason": null }), json!({ "option_id": "a" })),
        ("confirm", YES_NO, json!({ "ok": false, "reason": "why" }), json!({ "option_id": "n", "reason": "why" })),
        ("permission", &[("z", "other")], json!({ "ids": ["z"] }), json!({ "option_id": "z" })),
        ("permission", &[("z", "other"), ("n", "reject_always")], json!({ "ids": [] }), json!({ "option_id": "n" })),
        ("prompt", &[], json!({ "value": "v" }), json!({ "value": "v" })),
        ("prompt", &[], json!({ "value": null }), json!({ "value": null })),
        ("pick", &[], json!({ "ids": ["1", "2"] }), json!({ "ids": ["1", "2"] })),
    ] {
        let mut rig = Rig::live();
        rig.hear(acp("r_1", "request_opened", &request("q", kind, options, all.clone())));
        rig.answer("q", said.clone());
        let [(CallPurpose::Answer { .. }, method, params)] = &rig.calls()[..] else { panic!("{said}") };
        let mut wanted = answer;
        for (name, value) in [("request_id", "q"), ("digest", "d"), ("idempotency_key", "codelia-k-q")] {
            wanted[name] = value.into();
        }
        assert_eq!((method.as_str(), params), ("ui.request.answer", &wanted), "{said}");
    }
    // Without a no, leaving decides nothing: it is asked again.
    let mut rig = Rig::live();
    rig.hear(acp("r_1", "request_opened", &request("q", "permission", &[("z", "other")], json!({}))));
    rig.said();
    rig.answer("q", json!({ "ids": [] }));
    assert!(rig.calls().is_empty());
    assert_eq!(rig.said().last().unwrap()["id"], "q");
}

#[test]
fn a_question_that_changes_is_read_again_and_answered_with_its_new_digest() {
    let changed = |id: &str| {
        let mut all = request(id, "confirm", YES_NO, json!({ "revision": 1, "changed": true }));
        (all["display"], all["digest"]) = (json!("make install"), json!("d1"));
        all
    };
    let mut rig = Rig::live();
    for id in ["q1", "q2"] {
        rig.hear(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.said();
    // One that waits behind another is shown as it reads then.
    rig.hear(acp("r_1", "request_updated", &changed("q2")));
    rig.hear(acp("r_1", "request_updated", &changed("q1")));
    // The key that was on its way was for the panel before.
    rig.answer("q1", json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    let last = |rig: &mut Rig| rig.said().into_iter().rfind(|said| said["method"] == "ui.confirm.request").unwrap();
    let word = last(&mut rig);
    assert_eq!(word["params"]["title"], "The request has changed: title of q1: read it again");
    rig.answer(word["id"].as_str().unwrap(), json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    let again = last(&mut rig);
    assert!(again["params"]["message"].as_str().unwrap().contains("make install"), "{again}");
    rig.answer(again["id"].as_str().unwrap(), json!({ "ok": true }));
    let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!() };
    assert_eq!((&params["request_id"], &params["digest"]), (&json!("q1"), &json!("d1")));
    rig.hear(acp("r_1", "request_resolved", &resolved("q1", "answered", true)));
    let next = last(&mut rig);
    assert!(next["params"]["message"].as_str().unwrap().contains("make install"), "{next}");
}

#[test]
fn what_is_said_around_a_prompt_an_event_and_a_cancel_is_carried() {
    let mut rig = Rig::live();
    let (around, meta) = (json!({ "active_file": { "path": "a.rs" } }), json!({ "trace": 7 }));
    let start = json!({ "input": { "type": "text", "text": "hi" }, "ui_context": around, "meta": meta });
    rig.line(&json!({ "id": "1", "method": "run.start", "params": start }));
    let (_, _, params) = rig.calls().remove(0);
    assert_eq!((&params["ui_context"], &params["meta"]), (&around, &meta));
    rig.line(&json!({ "id": "2", "method": "run.cancel", "params": { "run_id": "r_1", "reason": "enough" } }));
    let (_, _, params) = rig.calls().remove(0);
    assert_eq!((&params["run_id"], &params["reason"]), (&json!("r_1"), &json!("enough")));
    let native = r#"{"method":"agent.event","params":{"run_id":"7","seq":3,"event":{"type":"text","content":"x"},"meta":{"m":1}}}"#;
    rig.hear(ClientEvent::Event(Box::new(envelope("codelia", "r_1", "agent_message_chunk", &json!({}), Some(native)))));
    assert_eq!(rig.said()[0]["params"]["meta"], json!({ "m": 1 }));
}

#[test]
fn a_client_of_the_specification_hears_its_words_and_no_others() {
    let mut rig = Rig::bare();
    let ui = json!({ "supports_confirm": true, "supports_markdown": true });
    rig.line(
        &json!({ "id": "0", "method": "initialize", "params": { "protocol_version": "0", "ui_capabilities": ui } }),
    );
    rig.line(&json!({ "id": "h", "method": "session.history", "params": { "session_id": "s_1" } }));
    rig.hear(ClientEvent::Live);
    rig.said();
    rig.hear(acp("r_1", "run_started", &json!({ "by": { "name": "phone" } })));
    for kind in plexus_protocol::Kind::ALL {
        let body = json!({
            "message": "words", "status": "attached", "toolCallId": "t", "kind": "edit", "rawInput": { "path": "a" },
            "content": [{ "type": "diff", "path": "a", "oldText": "1", "newText": "2" }], "currentModeId": "ask",
        });
        if !kind.as_str().starts_with("run_") {
            rig.hear(acp("r_1", kind.as_str(), &body));
        }
    }
    let more = json!({ "tool_call_id": "t" });
    rig.hear(acp("r_1", "request_opened", &request("q", "permission", YES_NO, more)));
    rig.hear(acp("r_1", "request_resolved", &resolved("q", "answered", true)));
    let diagnostics = r#"{"method":"run.diagnostics","params":{"run_id":"7","usage":{}}}"#;
    rig.hear(ClientEvent::Event(Box::new(envelope("codelia", "r_1", "raw", &json!({}), Some(diagnostics)))));
    rig.hear(acp("r_1", "run_ended", &json!({ "status": "completed" })));
    let said = rig.said();
    let mut notes = 0;
    for message in &said {
        let event = &message["params"]["event"];
        match message["method"].as_str() {
            Some("agent.event") => {
                let known = ["text", "reasoning", "final", "hidden_user_message", "tool_call", "tool_result"];
                assert!(known.contains(&event["type"].as_str().unwrap()), "{message}");
                let call = event["type"] == "tool_call" || event["type"] == "tool_result";
                assert!(!call || (event["tool_call_id"].is_string() && event["tool"] != "plexus"), "{message}");
            }
            Some("run.status") => notes += usize::from(message["params"]["message"].is_string()),
            Some("run.context" | "ui.confirm.request") => {}
            other => panic!("{other:?} is none of its methods: {message}"),
        }
    }
    assert!(notes >= 2, "what the gateway has to say stands with the run's status: {said:?}");
    // Between runs there is no word for it.
    rig.orders.clear();
    rig.hear(acp("", "runtime_status", &json!({ "status": "exited", "message": "bye" })));
    assert!(matches!(&rig.orders[..], [BridgeAction::Log(line)] if line.contains("bye")), "{:?}", rig.orders);
}

#[test]
fn a_cancel_says_how_the_run_stands() {
    let mut rig = Rig::live();
    let cancel = |rig: &mut Rig, run: &str| {
        rig.line(&json!({ "id": "c", "method": "run.cancel", "params": { "run_id": run } }));
        let (why, method, _) = rig.calls().remove(0);
        assert_eq!(method, "run.cancel");
        why
    };
    let none = || Err(NoReply::Refused(json!({ "code": -32002, "message": "run not found" })));
    for (run, ending) in [("r_1", "completed"), ("r_2", "cancelled"), ("r_3", "error")] {
        rig.hear(acp(run, "run_started", &json!({})));
        let why = cancel(&mut rig, run);
        rig.said();
        rig.called(why, Ok(json!({ "ok": true, "run_id": run, "status": "running" })));
        assert_eq!(rig.said()[0]["result"], json!({ "ok": true, "status": "running" }));
        let why = cancel(&mut rig, run);
        rig.called(why, none());
        assert_eq!(rig.said()[0]["result"], json!({ "ok": false }), "it ends in this very moment");
        rig.hear(acp(run, "run_ended", &json!({ "status": ending })));
        rig.said();
        let why = cancel(&mut rig, run);
        rig.called(why, none());
        assert_eq!(rig.said()[0]["result"], json!({ "ok": false, "status": ending }));
    }
    let why = cancel(&mut rig, "r_unheard_of");
    rig.called(why, none());
    assert_eq!(rig.said()[0]["error"]["code"], -32002);
    rig.line(&json!({ "id": "c", "method": "run.cancel", "params": {} }));
    assert_eq!(rig.said()[0]["error"]["code"], -32602);
}

#[test]
fn what_the_server_can_is_what_the_runtime_can() {
    let hello = |capabilities: Option<Capabilities>| {
        let aim = BridgeTarget {
            session: None,
            runtime: None,
            capabilities,
            cwd: "/here".into(),
            notice: None,
            key: "k".into(),
        };
        let mut rig = Rig { desk: BridgeState::new(aim), orders: Vec::new() };
        rig.line(&json!({ "id": "1", "method": "initialize", "params": {} }));
        let said = rig.said()[0]["result"]["server_capabilities"].clone();
        let can = said.as_object().unwrap().iter().filter(|(_, can)| **can == true).map(|(name, _)| name.clone());
        (said.as_object().unwrap().len(), can.collect::<std::collections::BTreeSet<_>>())
    };
    let own = "supports_permission_preflight_events";
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    assert_eq!(hello(None), (13, set(&[own, "supports_run_cancel", "supports_ui_requests"])));
    assert_eq!(hello(Some(Capabilities::default())), (13, set(&[own])));
    let can = Capabilities::default().with(Capability::ShellExec, true).with(Capability::Load, true);
    assert_eq!(hello(Some(can)), (13, set(&[own, "supports_shell_exec"])));
}

#[test]
fn nothing_is_answered_or_shown_before_initialize() {
    let aim = BridgeTarget {
        session: Some(("s_1".into(), "a".into(), "acp".into())),
        runtime: None,
        capabilities: None,
        cwd: "/here".into(),
        notice: None,
        key: "k".into(),
    };
    let mut rig = Rig { desk: BridgeState::new(aim), orders: Vec::new() };
    for method in ["run.start", "session.list", "session.history", "model.list"] {
        rig.line(&json!({ "id": "1", "method": method, "params": { "session_id": "s_1" } }));
        let said = rig.said();
        assert_eq!((said.len(), &said[0]["error"]["code"]), (1, &json!(-32600)), "{method}");
    }
    rig.line(&json!({ "method": "ui.context.update", "params": {} }));
    assert!(rig.orders.is_empty());
    rig.line(&json!({ "id": "2", "method": "initialize", "params": { "protocol_version": "0" } }));
    assert_eq!(rig.said()[0]["result"]["protocol_version"], "0");
}

#[test]
fn an_error_in_place_of_an_answer_is_a_no_or_none_and_the_next_question_is_shown() {
    let cancelled = json!({ "code": -32003, "message": "user cancelled" });
    let mut rig = Rig::live();
    let items = json!({ "items": [{ "id": "i", "label": "I" }] });
    for (id, kind, options, more) in
        [("q1", "confirm", YES_NO, json!({})), ("q2", "prompt", &[][..], json!({})), ("q3", "pick", &[][..], items)]
    {
        rig.hear(acp("r_1", "request_opened", &request(id, kind, options, more)));
    }
    for (id, member, value) in [("q1", "option_id", json!("n")), ("q2", "value", json!(null)), ("q3", "ids", json!([]))]
    {
        assert_eq!(rig.desk.shows(), Some(id));
        rig.line(&json!({ "id": id, "error": cancelled }));
        let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!("{id}") };
        assert_eq!((&params["request_id"], &params[member]), (&json!(id), &value));
    }
    // What it cannot show waits for others, and no further question waits for it.
    for id in ["q4", "q5"] {
        rig.hear(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.line(&json!({ "id": "q4", "error": { "code": -32601, "message": "method not found" } }));
    assert!(rig.calls().is_empty() && rig.desk.shows() == Some("q5"));
}

#[test]
fn remember_counts_where_it_was_offered_for_a_no_as_well() {
    let never = &[("y", "allow_once"), ("a", "allow_always"), ("n", "reject_once"), ("x", "reject_always")][..];
    let remembers = json!({ "allow_remember": true });
    for (options, more, ok, chosen) in [
        (never, remembers.clone(), false, "x"),
        (never, remembers, true, "a"),
        (YES_NO, json!({}), false, "n"),
        (YES_NO, json!({}), true, "y"),
    ] {
        let mut rig = Rig::live();
        rig.hear(acp("r_1", "request_opened", &request("q1", "confirm", options, more)));
        rig.answer("q1", json!({ "ok": ok, "remember": true, "reason": "so" }));
        let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!() };
        assert_eq!((&params["option_id"], &params["reason"]), (&json!(chosen), &json!(null)), "{ok}");
    }
}

#[test]
fn the_first_prompt_joins_the_one_session_of_a_runtime_that_has_no_other() {
    let mut rig = Rig::bare();
    rig.line(&json!({ "id": "1", "method": "run.start", "params": { "input": { "type": "text", "text": "hi" } } }));
    let (why, _, _) = rig.calls().remove(0);
    rig.called(why, Ok(json!({ "runtimes": [{ "runtime_id": "ui", "state": "ready" }] })));
    let (why, method, _) = rig.calls().remove(0);
    assert_eq!(method, "session.new");
    let full = json!({ "code": -32021, "message": "one session" });
    rig.called(why.clone(), Err(NoReply::Refused(full.clone())));
    let (join, method, _) = rig.calls().remove(0);
    assert_eq!(method, "session.list");
    let session =
        |id: &str, runtime: &str, state: &str| json!({ "session_id": id, "runtime_id": runtime, "state": state });
    let list = json!({ "sessions": [session("s_1", "other", "idle"), session("s_2", "ui", "exited"), session("s_3", "ui", "idle")] });
    rig.called(join, Ok(list));
    assert!(rig.orders.iter().any(|order| matches!(order, BridgeAction::Follow { session, .. } if session == "s_3")));
    rig.orders.clear();
    rig.hear(ClientEvent::Live);
    let (_, method, params) = rig.calls().remove(0);
    assert_eq!((method.as_str(), &params["session_id"]), ("run.start", &json!("s_3")));
}

#[test]
fn a_panel_whose_question_is_over_is_replaced_and_the_next_one_waits_until_it_is_read() {
    let mut rig = Rig::live();
    for id in ["q1", "q2", "q3"] {
        rig.hear(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    assert_eq!(rig.desk.shows(), Some("q1"));
    rig.hear(acp("r_1", "request_resolved", &resolved("q1", "answered", true)));
    assert_eq!(rig.desk.shows(), Some("plexus_word_1"));
    let title = rig.said().last().unwrap()["params"]["title"].clone();
    assert_eq!(title, "Answered elsewhere: allowed by phone: title of q1");
    // One that waits is over before it was shown.
    rig.hear(acp("r_1", "request_resolved", &resolved("q2", "withdrawn", false)));
    assert_eq!(rig.desk.shows(), Some("plexus_word_1"));
    // The key for the panel that is gone was on its way.
    rig.answer("q1", json!({ "ok": true }));
    assert!(rig.calls().is_empty() && rig.desk.shows() == Some("plexus_word_1"));
    rig.answer("plexus_word_1", json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    assert_eq!(rig.desk.shows(), Some("q3"));
    // Too late by a moment: nothing is asked again, and it is said who won.
    rig.answer("q3", json!({ "ok": false }));
    rig.hear(acp("r_1", "request_resolved", &resolved("q3", "answered", true)));
    rig.said();
    let lost = json!({ "code": -32010, "message": "m", "data": { "ok": true, "resolved_by": { "name": "phone" } } });
    rig.called(CallPurpose::Answer { request: "q3".into() }, Err(NoReply::Refused(lost)));
    assert_eq!(rig.events()[0]["args"], "your answer was not accepted: already allowed by phone");
    assert_eq!(rig.desk.shows(), None);
    // Not taken, but not over: it is asked again.
    rig.hear(acp("r_1", "request_opened", &request("q4", "confirm", YES_NO, json!({}))));
    rig.answer("q4", json!({ "ok": true }));
    rig.called(
        CallPurpose::Answer { request: "q4".into() },
        Err(NoReply::Refused(json!({ "code": -32011, "message": "m" }))),
    );
    assert_eq!(rig.desk.shows(), Some("q4"));
    // Told again after a lost connection, it is not asked again.
    rig.said();
    rig.hear(acp("r_1", "request_opened", &request("q4", "confirm", YES_NO, json!({}))));
    assert!(rig.said().iter().all(|said| said["id"] != "q4"));
}

#[test]
fn the_past_comes_before_its_answer_without_its_questions_and_not_all_of_it() {
    let mut rig = Rig::bare();
    let history = json!({ "session_id": "s_1", "max_events": 4, "max_runs": 2 });
    rig.line(&json!({ "id": "h", "method": "session.history", "params": history }));
    for run in ["r_1", "r_2", "r_3"] {
        rig.hear(acp(run, "run_started", &json!({})));
        rig.hear(acp(run, "user_message_chunk", &chunk("p")));
        rig.hear(acp(run, "agent_message_chunk", &chunk(run)));
        rig.hear(acp(run, "request_opened", &request(&format!("q_{run}"), "confirm", YES_NO, json!({}))));
        if run != "r_3" {
            rig.hear(acp(run, "request_resolved", &resolved(&format!("q_{run}"), "answered", true)));
            rig.hear(acp(run, "run_ended", &json!({ "status": "completed" })));
        }
    }
    assert!(rig.said().is_empty());
    rig.hear(ClientEvent::Live);
    let said = rig.said();
    let told: Vec<&Value> = said.iter().map(|said| &said["params"]["event"]["content"]).take(4).collect();
    assert_eq!(told, ["r_2", "r_2", "p", "r_3"], "the last four");
    let at = said.iter().position(|said| said["id"] == "h").unwrap();
    assert_eq!(said[at]["result"], json!({ "runs": 2, "events_sent": 4, "truncated": true }));
    assert_eq!(said[at + 1]["params"]["status"], "running", "how the run stands now");
    assert_eq!(said[at + 2]["id"], "q_r_3", "what is open is asked, once all is told");
    assert_eq!(said.iter().filter(|said| said["method"] == "run.status").count(), 1);
}

#[test]
fn the_first_prompt_opens_a_session_and_its_own_words_are_not_told_back() {
    let mut rig = Rig::bare();
    rig.line(&json!({ "id": "1", "method": "run.start", "params": { "input": { "type": "text", "text": "hi" } } }));
    let (why, method, _) = rig.calls().remove(0);
    assert_eq!(method, "runtime.list");
    rig.called(
        why,
        Ok(json!({ "runtimes": [{ "runtime_id": "x", "state": "exited" }, { "runtime_id": "y", "state": "ready" }] })),
    );
    let (why, _, params) = rig.calls().remove(0);
    assert_eq!(params, json!({ "runtime_id": "y", "cwd": "/here" }));
    rig.called(why, Ok(json!({ "session_id": "s_1" })));
    assert!(matches!(&rig.orders[..], [BridgeAction::Follow { session, .. }] if session == "s_1"));
    rig.orders.clear();
    rig.hear(ClientEvent::Live);
    let (why, method, params) = rig.calls().remove(0);
    assert_eq!(
        (method.as_str(), &params["session_id"], &params["input"]["text"]),
        ("run.start", &json!("s_1"), &json!("hi"))
    );
    assert!(!rig.desk.listens(), "nothing is heard before its run has a name");
    rig.said();
    rig.called(why, Ok(json!({ "run_id": "r_1", "queued": 0 })));
    assert!(rig.desk.listens());
    assert_eq!(rig.said()[0]["result"], json!({ "run_id": "r_1" }));
    rig.hear(acp("r_1", "user_message_chunk", &chunk("hi")));
    assert!(rig.said().is_empty());
    rig.hear(acp("r_2", "user_message_chunk", &chunk("other")));
    assert_eq!(rig.events()[0]["content"], "other");
    // The end of a run that waited is not the end of the one that is on.
    rig.hear(acp("r_2", "run_started", &json!({})));
    rig.said();
    rig.hear(acp("r_9", "run_ended", &json!({ "status": "cancelled" })));
    let said = rig.said();
    assert_eq!((&said[0]["params"]["run_id"], &said[1]["params"]["status"]), (&json!("r_9"), &json!("running")));
    assert_eq!(said[1]["params"]["run_id"], "r_2");
}

#[test]
fn models_and_sessions_are_listed_as_it_reads_them() {
    let mut rig = Rig::live();
    rig.line(&json!({ "id": "1", "method": "model.list", "params": { "provider": "openai" } }));
    let (why, _, params) = rig.calls().remove(0);
    assert_eq!(params["session_id"], "s_1");
    rig.called(why, Err(NoReply::Refused(json!({ "code": -32601, "message": "not offer a choice" }))));
    assert_eq!(rig.said()[0]["result"]["models"], json!([]), "none, which is no error");
    // It takes what stands before a slash for a provider.
    for (models, name) in [(json!(["p/m", "n"]), "p/m"), (json!(["m", "p/m"]), "m"), (json!(["m"]), "m")] {
        rig.line(
            &json!({ "id": "2", "method": "model.set", "params": { "provider": "p", "name": "m", "scope": "config" } }),
        );
        let (why, method, _) = rig.calls().remove(0);
        assert_eq!(method, "model.list");
        rig.called(why, Ok(json!({ "models": models })));
        let (why, method, params) = rig.calls().remove(0);
        assert_eq!(
            (method.as_str(), &params["name"], &params["scope"]),
            ("model.set", &json!(name), &json!("session"))
        );
        rig.called(why, Ok(json!({ "provider": "p", "name": name })));
        assert_eq!(rig.said()[0]["result"]["source"], "session");
    }
    let session = |id: &str, cwd: &str, at: &str| json!({ "session_id": id, "runtime_id": "a", "title": "t", "cwd": cwd, "updated_at": at, "open_requests": 1 });
    let all = json!({ "sessions": [session("s_3", "/here", "3"), session("s_2", "/there", "2"), session("s_1", "/here", "1")] });
    for (scope, ids) in [("all", vec!["s_3", "s_2"]), ("current_workspace", vec!["s_3", "s_1"])] {
        rig.line(&json!({ "id": "3", "method": "session.list", "params": { "scope": scope, "limit": 2 } }));
        let (why, ..) = rig.calls().remove(0);
        rig.called(why, Ok(all.clone()));
        let listed = rig.said()[0]["result"]["sessions"].clone();
        let rows: Vec<&str> =
            listed.as_array().unwrap().iter().map(|row| row["session_id"].as_str().unwrap()).collect();
        assert_eq!(rows, ids);
        assert_eq!(listed[0]["last_user_message"], "a (asks): t");
    }
}

#[test]
fn after_a_gap_it_stands_as_the_greeting_says() {
    let mut rig = Rig::live();
    rig.hear(acp("r_1", "run_started", &json!({})));
    rig.hear(acp("r_1", "agent_message_chunk", &chunk("half")));
    for id in ["q1", "q2"] {
        rig.hear(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.hear(ClientEvent::Lost("gone".into()));
    rig.said();
    let open = json!([request("q3", "confirm", YES_NO, json!({}))]);
    let hello = json!({ "resume": "reset", "runs": [{ "run_id": "r_2", "status": "running" }], "requests": open });
    rig.hear(ClientEvent::Hello(hello));
    let said = rig.said();
    let status = said.iter().find(|said| said["method"] == "run.status").unwrap();
    assert_eq!((&status["params"]["run_id"], &status["params"]["status"]), (&json!("r_1"), &json!("error")));
    assert_eq!(rig.desk.shows(), Some("plexus_word_1"), "what is not open any more is not asked any more");
    rig.answer("plexus_word_1", json!({ "ok": false }));
    assert_eq!(rig.desk.shows(), Some("q3"));
    assert!(rig.calls().is_empty());
}

/// One thing that may happen.
#[derive(Clone, Debug)]
enum Step {
    Event(&'static str, &'static str, String),
    Json(&'static str, &'static str, Value),
    Opened(u8),
    Resolved(u8),
    Answer,
    Live,
    Lost,
    Junk(String),
}

fn step() -> impl Strategy<Value = Step> {
    let run = prop_oneof![Just("r_1"), Just("r_2")];
    let kind = proptest::sample::select(
        plexus_protocol::Kind::ALL
            .iter()
            .map(|kind| kind.as_str())
            .filter(|kind| !kind.contains("request"))
            .collect::<Vec<_>>(),
    );
    let body = proptest::sample::select(vec![
        json!({}),
        json!([]),
        json!(null),
        json!({ "status": "completed", "toolCallId": "t", "content": [{ "type": "diff", "newText": "a" }, 7] }),
        json!({ "toolCallId": "t", "kind": "execute", "rawInput": "x", "rawOutput": { "a": 1 } }),
        json!({ "status": "cancelled", "message": "m", "entries": [1, { "content": "c" }], "used": 3, "size": 0 }),
        json!({ "status": "awaiting_ui", "by": { "name": "n" }, "contextLeftPercent": -1e300 }),
    ]);
    prop_oneof![
        6 => (run.clone(), "[a-z`\\n. |é]{0,12}").prop_map(|(run, text)| Step::Event(run, "agent_message_chunk", text)),
        3 => (run, kind, body).prop_map(|(run, kind, body)| Step::Json(run, kind, body)),
        2 => (0u8..5).prop_map(Step::Opened),
        2 => (0u8..5).prop_map(Step::Resolved),
        3 => Just(Step::Answer),
        1 => Just(Step::Live),
        1 => Just(Step::Lost),
        1 => ".{0,20}".prop_map(Step::Junk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn whatever_happens_every_word_is_told_once_and_one_question_is_asked_at_a_time(steps in proptest::collection::vec(step(), 1..60)) {
        let mut rig = Rig::live();
        let (mut text, mut told) = (String::new(), String::new());
        let (mut standing, mut over) = (None::<String>, Vec::<String>::new());
        let mut finals = std::collections::BTreeMap::<String, usize>::new();
        let mut ends = finals.clone();
        let steps = steps.into_iter().chain([Step::Json("r_1", "error", json!({}))]);
        for step in steps {
            match step {
                Step::Event(run, kind, words) => {
                    text.push_str(&words);
                    rig.hear(acp(run, kind, &chunk(&words)));
                }
                // Text comes as above.
                Step::Json(_, "agent_message_chunk", _) => {}
                Step::Json(run, kind, body) => rig.hear(acp(run, kind, &body)),
                Step::Opened(n) => rig.hear(acp("r_1", "request_opened", &request(&format!("q{n}"), "confirm", YES_NO, json!({})))),
                Step::Resolved(n) => {
                    let id = format!("q{n}");
                    rig.hear(acp("r_1", "request_resolved", &resolved(&id, "answered", true)));
                    over.push(id);
                }
                Step::Answer => {
                    if let Some(id) = standing.take() {
                        rig.answer(&id, json!({ "ok": true }));
                        let calls = rig.calls();
                        prop_assert_eq!(calls.len(), usize::from(!id.starts_with("plexus_word_")));
                        for (why, ..) in calls {
                            rig.called(why, Ok(json!({})));
                        }
                    }
                }
                Step::Live => rig.hear(ClientEvent::Live),
                Step::Lost => rig.hear(ClientEvent::Lost("x".into())),
                Step::Junk(line) => rig.desk.line(&line, &mut rig.orders),
            }
            for said in rig.said() {
                let event = &said["params"]["event"];
                match said["method"].as_str() {
                    Some("agent.event") if event["type"] == "text" => told.push_str(event["content"].as_str().unwrap()),
                    Some("agent.event") if event["type"] == "final" => {
                        *finals.entry(said["params"]["run_id"].to_string()).or_default() += 1;
                    }
                    Some("run.status") if said["params"]["status"] == "completed" => {
                        *ends.entry(said["params"]["run_id"].to_string()).or_default() += 1;
                    }
                    Some("ui.confirm.request") => {
                        let id = said["id"].as_str().unwrap().to_owned();
                        match &standing {
                            None => prop_assert!(id.starts_with('q')),
                            Some(before) => prop_assert!(id.starts_with("plexus_word_") && before.starts_with('q'), "{before} {id}"),
                        }
                        standing = Some(id);
                    }
                    _ => {}
                }
            }
        }
        prop_assert_eq!(told, text);
        for (run, count) in finals {
            prop_assert!(ends.get(&run).is_some_and(|ends| count <= *ends), "a final is the end's, once");
        }
    }
}
