//! Tests of the translation in both directions, as tables and as a property. One file, for both use the same rig and events.

use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::{
    Capabilities, Capability, Connect, RequestId, RuntimeId, RuntimeInfo, RuntimeSpec, SessionId, Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::events::{EventTranslator, Extras, UiMessage, unified};
use super::state::{BridgeAction, BridgeState, BridgeTarget, CallPurpose, NoReply, RpcError, Session};
use plexus_client::{ClientEvent, ReceivedEvent};

/// An event; the members that the gateway always sends are added to its body.
fn envelope(dialect: &str, run: &str, kind: &str, event: &Value, native: Option<&str>) -> EventEnvelope {
    let mut event = event.clone();
    let always = match kind {
        "run_started" | "run_status" | "run_ended" => json!({ "run_id": run, "status": "running" }),
        "runtime_status" => json!({ "runtime_id": "a" }),
        "error" => json!({ "code": "failed" }),
        "request_resolved" => json!({ "session_id": "s_1", "at": "2026-01-01T00:00:00Z" }),
        _ => json!({}),
    };
    if let (Some(body), Value::Object(always)) = (event.as_object_mut(), always) {
        for (name, value) in always {
            body.entry(name).or_insert(value);
        }
    }
    let mut wire = json!({
        "session_id": "s_1", "run_id": run, "seq": 0, "cursor": "e:1", "at": "2026-01-02T03:04:05.678Z", "kind": kind, "event": event,
        "meta": { "runtime_id": "a", "dialect": dialect },
    })
    .to_string();
    if let Some(native) = native {
        wire.pop();
        wire.push_str(&format!(",\"native\":{native}}}"));
    }
    serde_json::from_str(&wire).unwrap()
}

fn received(envelope: EventEnvelope) -> ClientEvent {
    let raw = serde_json::value::to_raw_value(&envelope).unwrap();
    ClientEvent::Event(Box::new(ReceivedEvent { envelope, raw }))
}

fn acp(run: &str, kind: &str, event: &Value) -> ClientEvent {
    received(envelope("acp", run, kind, event, None))
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
    json!({ "request_id": id, "state": state, "ok": ok, "resolved_by": { "device_id": "d", "name": "phone" },
        "at": "2026-01-01T00:00:00Z" })
}

fn session(id: &str, runtime: &str, state: &str, cwd: &str) -> Value {
    json!({
        "session_id": id, "runtime_id": runtime, "dialect": "acp", "title": "t", "cwd": cwd, "state": state, "open_requests": 1,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
    })
}

fn runtime(id: &str, state: &str) -> Value {
    let spec = RuntimeSpec::new(RuntimeId::trusted(id), "acp", Connect::Command(vec!["agent".into()]), "/");
    let mut runtime = json!(RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::from_millis(0)));
    runtime["state"] = state.into();
    runtime
}

fn refused(code: i64, message: &str, data: Value) -> Result<Value, NoReply> {
    Err(NoReply::Refused(RpcError { code, message: message.into(), data: Some(data).filter(|data| !data.is_null()) }))
}

/// A bridge state, and its actions.
struct Rig {
    state: BridgeState,
    actions: Vec<BridgeAction>,
}

impl Rig {
    fn bare() -> Self {
        let target = BridgeTarget {
            session: None,
            runtime: None,
            capabilities: None,
            cwd: "/here".into(),
            notice: None,
            key: "k".into(),
        };
        let mut rig = Self { state: BridgeState::new(target), actions: Vec::new() };
        let panels = json!({
            "supports_confirm": true, "supports_prompt": true, "supports_pick": true,
            "supports_permission_preflight_events": true, "supports_gateway_events": true,
        });
        rig.line(&json!({ "id": "0", "method": "initialize", "params": { "ui_capabilities": panels } }));
        rig.sent();
        rig
    }

    /// Follows `s_1`; its history is replayed.
    fn live() -> Self {
        let mut rig = Self::bare();
        rig.line(&json!({ "id": "h", "method": "session.history", "params": { "session_id": "s_1" } }));
        rig.feed(ClientEvent::Live);
        rig.sent();
        rig
    }

    fn line(&mut self, line: &Value) {
        self.state.line(&line.to_string(), &mut self.actions);
    }

    fn feed(&mut self, event: ClientEvent) {
        self.state.on_event(event, &mut self.actions);
    }

    fn on_outcome(&mut self, purpose: CallPurpose, outcome: Result<Value, NoReply>) {
        let outcome = outcome.map(|result| serde_json::value::to_raw_value(&result).unwrap());
        self.state.on_outcome(purpose, outcome, &mut self.actions);
    }

    /// The messages sent to the terminal UI since.
    fn sent(&mut self) -> Vec<Value> {
        let mut sent = Vec::new();
        self.actions.retain(|order| match order {
            BridgeAction::Send(line) => {
                assert!(!line.contains('\n'), "a message a line: {line}");
                sent.push(serde_json::from_str(line).unwrap());
                false
            }
            _ => true,
        });
        sent
    }

    /// The agent events sent since, without those for the debug view.
    fn events(&mut self) -> Vec<Value> {
        let events = self.sent().into_iter().map(|sent| sent["params"]["event"].clone());
        events
            .filter(|event| event["type"].as_str().is_some_and(|type_name| !type_name.starts_with("plexus.")))
            .collect()
    }

    /// The calls made since.
    fn calls(&mut self) -> Vec<(CallPurpose, String, Value)> {
        let mut calls = Vec::new();
        for order in std::mem::take(&mut self.actions) {
            match order {
                BridgeAction::Call { purpose, method, params, .. } => calls.push((*purpose, method, params)),
                other => self.actions.push(other),
            }
        }
        calls
    }

    fn answer(&mut self, id: &str, result: Value) {
        self.line(&json!({ "id": id, "result": result }));
    }
}

#[test]
fn codelia_bridge_translates_every_event_kind() {
    let mut translator = EventTranslator::default();
    translator.extras(Extras { terminal: true, gateway: true });
    let mut translate_one = |kind: &str, event: Value| -> Vec<Value> {
        let translate_one = translator.translate(&envelope("acp", "r_1", kind, &event, None), false);
        translate_one
            .into_iter()
            .filter_map(|translate_one| match translate_one {
                UiMessage::Event { event, .. } => Some(serde_json::from_str(&event).unwrap()),
                UiMessage::Status { status, message, .. } => Some(json!({ "status": status, "message": message })),
                UiMessage::Notify { method, params } => {
                    Some(json!({ "notify": method, "params": serde_json::from_str::<Value>(&params).unwrap() }))
                }
                UiMessage::Log(_) | UiMessage::RequestOpened(_) | UiMessage::RequestResolved(_) => None,
            })
            .collect()
    };
    let begun = translate_one("run_started", json!({ "by": { "device_id": "d", "name": "phone" } }));
    assert_eq!(begun[0]["args"], "phone prompts:");
    assert_eq!(begun[1]["status"], "running");
    assert_eq!(
        translate_one("user_message_chunk", chunk("hi")),
        [json!({ "type": "hidden_user_message", "content": "hi" })]
    );
    assert!(translate_one("agent_thought_chunk", chunk("hm ")).is_empty(), "put together");
    assert!(translate_one("agent_thought_chunk", chunk("so")).is_empty());
    assert_eq!(translate_one("agent_message_chunk", chunk("a ")), [json!({ "type": "reasoning", "content": "hm so" })]);
    assert_eq!(
        translate_one("agent_message_chunk", chunk("b\n\nc")),
        [json!({ "type": "text", "content": "a b\n\n" })]
    );
    let call =
        json!({ "toolCallId": "t", "title": "List", "kind": "execute", "rawInput": { "command": ["ls", "-l"] } });
    let called = translate_one("tool_call", call);
    assert_eq!(called[0], json!({ "type": "text", "content": "c" }));
    assert_eq!((&called[1]["tool"], &called[1]["args"]), (&json!("bash"), &json!({ "command": "ls -l" })));
    let done = json!({ "toolCallId": "t", "status": "failed", "content": [{ "type": "content", "content": { "type": "text", "text": "no" } }] });
    let over = translate_one("tool_call_update", done);
    assert_eq!(
        (&over[0]["type"], &over[0]["result"], &over[0]["is_error"]),
        (&json!("tool_result"), &json!("no"), &json!(true))
    );
    let edit = json!({ "type": "diff", "path": "/w/a.txt", "oldText": "1\n2\n", "newText": "1\n3\n" });
    let edited = translate_one(
        "tool_call",
        json!({ "toolCallId": "e", "kind": "edit", "status": "completed", "content": [edit] }),
    );
    assert_eq!((&edited[0]["tool"], &edited[0]["args"]["file_path"]), (&json!("edit"), &json!("/w/a.txt")));
    let result: Value = serde_json::from_str(edited[1]["result"].as_str().unwrap()).unwrap();
    assert_eq!(result["diff"], "--- a/w/a.txt\n+++ b/w/a.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
    let plan =
        translate_one("plan", json!({ "entries": [{ "content": "x", "status": "completed" }, { "content": "y" }] }));
    assert_eq!(plan[1]["result"], "Todo plan:\n1. [x] x\n2. [ ] y");
    assert_eq!(
        translate_one("usage_update", json!({ "used": 25, "size": 100 }))[0]["params"]["context_left_percent"],
        75
    );
    assert_eq!(translate_one("run_status", json!({ "status": "awaiting_ui" }))[0]["status"], "awaiting_ui");
    assert_eq!(translate_one("error", json!({ "message": "m" }))[0]["args"], "error: m");
    let long = translate_one("error", json!({ "message": "é words ".repeat(40) }));
    assert!(long.len() > 2 && long.iter().all(|line| line["args"].as_str().unwrap().chars().count() <= 150));
    assert_eq!(
        translate_one("runtime_status", json!({ "status": "exited", "message": "bye" }))[0]["args"],
        "the agent: exited: bye"
    );
    assert_eq!(translate_one("raw", json!({}))[0]["type"], "plexus.raw", "drawn in its debug view");
    let ended = translate_one("run_ended", json!({ "status": "completed" }));
    assert_eq!(ended[0], json!({ "type": "final", "content": "c" }), "which it does not draw again");
    assert_eq!(ended[1]["status"], "completed");
    translate_one("run_started", json!({}));
    assert_eq!(
        translate_one("run_ended", json!({ "status": "cancelled" })),
        [json!({ "status": "cancelled", "message": null })]
    );
}

#[test]
fn codelia_bridge_shows_a_surface_again_after_a_run_that_changed_it() {
    let whole = json!({ "surface": "b", "rev": 1, "title": "Bu\u{1b}ild", "pinned": false, "messages": [
        { "version": "v0.9", "createSurface": { "surfaceId": "b", "catalogId": "plexus:catalog/1" } },
        { "version": "v0.9", "updateComponents": { "surfaceId": "b", "components": [
            { "id": "root", "component": "Progress", "label": "Build", "value": { "path": "/n" } }] } },
        { "version": "v0.9", "updateDataModel": { "surfaceId": "b", "path": "/", "value": { "n": 0.5 } } }] });
    let change = |rev: u64, n: f64| {
        json!({ "surface": "b", "rev": rev, "base": rev - 1, "messages": [
            { "version": "v0.9", "updateDataModel": { "surfaceId": "b", "path": "/n", "value": n } }] })
    };
    let mut rig = Rig::live();
    rig.feed(acp("r_1", "run_started", &json!({})));
    rig.events();
    rig.feed(acp("r_1", "surface_updated", &whole));
    let shown = rig.events();
    assert_eq!((&shown[0]["type"], &shown[0]["tool"]), (&json!("tool_call"), &json!("Surface: Bu\\u{1b}ild")));
    assert_eq!(shown[1]["result"], "Build [██████████░░░░░░░░░░] 50%");
    assert_eq!(shown[0]["tool_call_id"], shown[1]["tool_call_id"]);
    // Ten changes a second would be ten blocks: the state at the end is what counts.
    rig.feed(acp("r_1", "surface_updated", &change(2, 0.75)));
    rig.feed(acp("r_1", "surface_updated", &change(3, 1.0)));
    assert!(rig.events().is_empty());
    rig.feed(acp("r_1", "run_ended", &json!({ "status": "completed" })));
    let ended = rig.events();
    assert_eq!(ended[1]["result"], "Build [████████████████████] 100%");
    assert_eq!(ended[2]["type"], "final");
    rig.feed(acp("r_2", "run_started", &json!({})));
    rig.feed(acp("r_2", "run_ended", &json!({ "status": "completed" })));
    assert!(rig.events().iter().all(|event| event["type"] != "tool_result"), "it did not change again");
}

#[test]
fn codelia_bridge_passes_native_events_and_sends_one_final() {
    let mut translator = EventTranslator::default();
    let mut finals = 0;
    translator.translate(&envelope("codelia", "r_1", "run_started", &json!({}), None), false);
    for own in [
        r#"{"type":"text",  "content":"\u00e9\/","new":[1.50,1e3]}"#,
        r#"{"type":"unheard of","x":null}"#,
        r#"{"content":"over","type":"final"}"#,
    ] {
        let native = format!(r#"{{"method":"agent.event","params":{{"run_id":"7","seq":3,"event":{own}}}}}"#);
        let translate_one = translator.translate(&envelope("codelia", "r_1", "hook", &json!({}), Some(&native)), false);
        let [UiMessage::Event { run, event, .. }] = &translate_one[..] else { panic!("{translate_one:?}") };
        assert_eq!((run.as_str(), event.as_str()), ("r_1", own));
        finals += usize::from(own.contains("final"));
    }
    translator.translate(&envelope("codelia", "r_1", "run_status", &json!({ "status": "running" }), None), false);
    let translate_one =
        translator.translate(&envelope("codelia", "r_1", "run_ended", &json!({ "status": "completed" }), None), false);
    finals += translate_one.iter().filter(|translate_one| matches!(translate_one, UiMessage::Event { .. })).count();
    assert_eq!(finals, 1);
    // From a runtime of another dialect the same bytes mean nothing.
    let native = r#"{"method":"agent.event","params":{"event":{"type":"final"}}}"#;
    assert!(
        translator
            .translate(&envelope("acp", "r_2", "agent_message_chunk", &chunk("x"), Some(native)), false)
            .is_empty()
    );
}

#[test]
fn codelia_bridge_splits_a_message_at_paragraphs_outside_code() {
    let text = "One.\n\n```\na\n\nb\n```\n\n- x\n- y\n\nlast";
    let mut rig = Rig::live();
    for piece in text.as_bytes().chunks(3) {
        rig.feed(acp("r_1", "agent_message_chunk", &chunk(std::str::from_utf8(piece).unwrap())));
    }
    rig.feed(acp("r_1", "run_ended", &json!({})));
    let pieces: Vec<Value> = rig.events().iter().map(|event| event["content"].clone()).collect();
    assert_eq!(pieces, ["One.\n\n", "```\na\n\nb\n```\n\n", "- x\n- y\n\n", "last"]);
    let long = "It goes on. ".repeat(200);
    rig.feed(acp("r_1", "agent_message_chunk", &chunk(&long)));
    assert_eq!(rig.events().len(), 1, "a long paragraph is told up to its last sentence");
    rig.feed(acp("r_1", "agent_message_chunk", &chunk(&"x".repeat(100_000))));
    assert!(rig.events().iter().map(|event| event["content"].as_str().unwrap().len()).sum::<usize>() > 60_000);
}

#[test]
fn codelia_bridge_diffs_match_diff() {
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
fn codelia_bridge_panel_has_the_options_and_subject_of_its_request() {
    let shown = |request: Value| {
        let mut rig = Rig::live();
        rig.feed(acp("r_1", "request_opened", &request));
        rig.sent()
            .into_iter()
            .rfind(|sent| sent["method"].as_str().is_some_and(|method| method.starts_with("ui.")))
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
    assert_eq!(params["confirm_label"], "Allow once “Do y”");
    assert_eq!(params["cancel_label"], "Deny “Do n”");
    assert_eq!((&params["danger_level"], &params["allow_remember"]), (&json!("normal"), &json!(false)));
    let more = json!({ "allow_remember": true, "allow_reason": true, "warnings": ["w"], "message": "harmless" });
    let full = shown(request("q", "confirm", YES_NO, more));
    let params = &full["params"];
    assert_eq!(
        params["message"], "ls\n\nRemember (don't ask again):\n- Always allow “Do a”\nWarning: w",
        "never the agent's own words for it"
    );
    assert_eq!((&params["danger_level"], &params["allow_reason"]), (&json!("danger"), &json!(true)));
    // Two kinds of "always" are not one, and a question without yes and no is a pick.
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
fn codelia_bridge_translates_answers() {
    let all = json!({ "allow_remember": true, "allow_reason": true });
    for (kind, options, sent, answer) in [
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
        rig.feed(acp("r_1", "request_opened", &request("q", kind, options, all.clone())));
        rig.answer("q", sent.clone());
        let [(CallPurpose::Answer { .. }, method, params)] = &rig.calls()[..] else { panic!("{sent}") };
        let mut wanted = answer;
        for (name, value) in [("request_id", "q"), ("digest", "d"), ("idempotency_key", "codelia-k-q")] {
            wanted[name] = value.into();
        }
        assert_eq!((method.as_str(), params), ("ui.request.answer", &wanted), "{sent}");
    }
    // Without a denial to send, closing the panel decides nothing: it is shown again.
    let mut rig = Rig::live();
    rig.feed(acp("r_1", "request_opened", &request("q", "permission", &[("z", "other")], json!({}))));
    rig.sent();
    rig.answer("q", json!({ "ids": [] }));
    assert!(rig.calls().is_empty());
    assert_eq!(rig.sent().last().unwrap()["id"], "q");
}

#[test]
fn codelia_bridge_rereads_a_changed_question_and_answers_its_new_digest() {
    let changed = |id: &str| {
        let mut all = request(id, "confirm", YES_NO, json!({ "revision": 1, "changed": true }));
        (all["display"], all["digest"]) = (json!("make install"), json!("d1"));
        all
    };
    let mut rig = Rig::live();
    for id in ["q1", "q2"] {
        rig.feed(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.sent();
    // A waiting question is shown in its latest form.
    rig.feed(acp("r_1", "request_updated", &changed("q2")));
    rig.feed(acp("r_1", "request_updated", &changed("q1")));
    // The key under way was for the earlier panel.
    rig.answer("q1", json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    let last = |rig: &mut Rig| rig.sent().into_iter().rfind(|sent| sent["method"] == "ui.confirm.request").unwrap();
    let word = last(&mut rig);
    assert_eq!(word["params"]["title"], "The request has changed: title of q1: read it again");
    rig.answer(word["id"].as_str().unwrap(), json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    let retry = last(&mut rig);
    assert!(retry["params"]["message"].as_str().unwrap().contains("make install"), "{retry}");
    rig.answer(retry["id"].as_str().unwrap(), json!({ "ok": true }));
    let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!() };
    assert_eq!((&params["request_id"], &params["digest"]), (&json!("q1"), &json!("d1")));
    rig.feed(acp("r_1", "request_resolved", &resolved("q1", "answered", true)));
    let next = last(&mut rig);
    assert!(next["params"]["message"].as_str().unwrap().contains("make install"), "{next}");
}

#[test]
fn codelia_bridge_carries_metadata_of_prompt_event_and_cancel() {
    let mut rig = Rig::live();
    let (metadata, meta) = (json!({ "active_file": { "path": "a.rs" } }), json!({ "trace": 7 }));
    let start = json!({ "input": { "type": "text", "text": "hi" }, "ui_context": metadata, "meta": meta });
    rig.line(&json!({ "id": "1", "method": "run.start", "params": start }));
    let (_, _, params) = rig.calls().remove(0);
    assert_eq!((&params["ui_context"], &params["meta"]), (&metadata, &meta));
    rig.line(&json!({ "id": "2", "method": "run.cancel", "params": { "run_id": "r_1", "reason": "enough" } }));
    let (_, _, params) = rig.calls().remove(0);
    assert_eq!((&params["run_id"], &params["reason"]), (&json!("r_1"), &json!("enough")));
    let native = r#"{"method":"agent.event","params":{"run_id":"7","seq":3,"event":{"type":"text","content":"x"},"meta":{"m":1}}}"#;
    rig.feed(received(envelope("codelia", "r_1", "agent_message_chunk", &json!({}), Some(native))));
    assert_eq!(rig.sent()[0]["params"]["meta"], json!({ "m": 1 }));
}

#[test]
fn codelia_bridge_sends_a_standard_client_only_standard_messages() {
    let mut rig = Rig::bare();
    let ui = json!({ "supports_confirm": true, "supports_markdown": true });
    rig.line(
        &json!({ "id": "0", "method": "initialize", "params": { "protocol_version": "0", "ui_capabilities": ui } }),
    );
    rig.line(&json!({ "id": "h", "method": "session.history", "params": { "session_id": "s_1" } }));
    rig.feed(ClientEvent::Live);
    rig.sent();
    rig.feed(acp("r_1", "run_started", &json!({ "by": { "name": "phone" } })));
    for kind in plexus_protocol::Kind::ALL {
        let body = json!({
            "message": "words", "status": "attached", "toolCallId": "t", "kind": "edit", "rawInput": { "path": "a" },
            "content": [{ "type": "diff", "path": "a", "oldText": "1", "newText": "2" }], "currentModeId": "ask",
        });
        if !kind.as_str().starts_with("run_") {
            rig.feed(acp("r_1", kind.as_str(), &body));
        }
    }
    let more = json!({ "tool_call_id": "t" });
    rig.feed(acp("r_1", "request_opened", &request("q", "permission", YES_NO, more)));
    rig.feed(acp("r_1", "request_resolved", &resolved("q", "answered", true)));
    let diagnostics = r#"{"method":"run.diagnostics","params":{"run_id":"7","usage":{}}}"#;
    rig.feed(received(envelope("codelia", "r_1", "raw", &json!({}), Some(diagnostics))));
    rig.feed(acp("r_1", "run_ended", &json!({ "status": "completed" })));
    let sent = rig.sent();
    let mut notes = 0;
    for message in &sent {
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
    assert!(notes >= 2, "what the gateway has to say stands with the run's status: {sent:?}");
    // Between runs no message fits a notice.
    rig.actions.clear();
    rig.feed(acp("r_0", "runtime_status", &json!({ "status": "exited", "message": "bye" })));
    assert!(matches!(&rig.actions[..], [BridgeAction::Log(line)] if line.contains("bye")), "{:?}", rig.actions);
}

#[test]
fn codelia_bridge_cancel_replies_with_the_state_of_the_run() {
    let mut rig = Rig::live();
    let cancel = |rig: &mut Rig, run: &str| {
        rig.line(&json!({ "id": "c", "method": "run.cancel", "params": { "run_id": run } }));
        let (purpose, method, _) = rig.calls().remove(0);
        assert_eq!(method, "run.cancel");
        purpose
    };
    let none = || refused(-32002, "run not found", Value::Null);
    for (run, ending) in [("r_1", "completed"), ("r_2", "cancelled"), ("r_3", "error")] {
        rig.feed(acp(run, "run_started", &json!({})));
        let purpose = cancel(&mut rig, run);
        rig.sent();
        rig.on_outcome(purpose, Ok(json!({ "ok": true, "run_id": run, "status": "running" })));
        assert_eq!(rig.sent()[0]["result"], json!({ "ok": true, "status": "running" }));
        let purpose = cancel(&mut rig, run);
        rig.on_outcome(purpose, none());
        assert_eq!(rig.sent()[0]["result"], json!({ "ok": false }), "it ends in this very moment");
        rig.feed(acp(run, "run_ended", &json!({ "status": ending })));
        rig.sent();
        let purpose = cancel(&mut rig, run);
        rig.on_outcome(purpose, none());
        assert_eq!(rig.sent()[0]["result"], json!({ "ok": false, "status": ending }));
    }
    let purpose = cancel(&mut rig, "r_unheard_of");
    rig.on_outcome(purpose, none());
    assert_eq!(rig.sent()[0]["error"]["code"], -32002);
    rig.line(&json!({ "id": "c", "method": "run.cancel", "params": {} }));
    assert_eq!(rig.sent()[0]["error"]["code"], -32602);
}

#[test]
fn codelia_bridge_offers_the_capabilities_of_the_runtime() {
    let hello = |capabilities: Option<Capabilities>| {
        let target = BridgeTarget {
            session: None,
            runtime: None,
            capabilities,
            cwd: "/here".into(),
            notice: None,
            key: "k".into(),
        };
        let mut rig = Rig { state: BridgeState::new(target), actions: Vec::new() };
        rig.line(&json!({ "id": "1", "method": "initialize", "params": {} }));
        let sent = rig.sent()[0]["result"]["server_capabilities"].clone();
        let can = sent.as_object().unwrap().iter().filter(|(_, can)| **can == true).map(|(name, _)| name.clone());
        (sent.as_object().unwrap().len(), can.collect::<std::collections::BTreeSet<_>>())
    };
    let own = "supports_permission_preflight_events";
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    assert_eq!(hello(None), (13, set(&[own, "supports_run_cancel", "supports_ui_requests"])));
    assert_eq!(hello(Some(Capabilities::default())), (13, set(&[own])));
    let can = Capabilities::default().with(Capability::ShellExec, true).with(Capability::Load, true);
    assert_eq!(hello(Some(can)), (13, set(&[own, "supports_shell_exec"])));
}

#[test]
fn codelia_bridge_is_silent_before_initialize() {
    let target = BridgeTarget {
        session: Some(Session {
            id: SessionId::trusted("s_1"),
            runtime: Some(RuntimeId::trusted("a")),
            dialect: "acp".into(),
        }),
        runtime: None,
        capabilities: None,
        cwd: "/here".into(),
        notice: None,
        key: "k".into(),
    };
    let mut rig = Rig { state: BridgeState::new(target), actions: Vec::new() };
    for method in ["run.start", "session.list", "session.history", "model.list"] {
        rig.line(&json!({ "id": "1", "method": method, "params": { "session_id": "s_1" } }));
        let sent = rig.sent();
        assert_eq!((sent.len(), &sent[0]["error"]["code"]), (1, &json!(-32600)), "{method}");
    }
    rig.line(&json!({ "method": "ui.context.update", "params": {} }));
    assert!(rig.actions.is_empty());
    rig.line(&json!({ "id": "2", "method": "initialize", "params": { "protocol_version": "0" } }));
    assert_eq!(rig.sent()[0]["result"]["protocol_version"], "0");
}

#[test]
fn codelia_bridge_treats_an_error_as_a_denial_and_shows_the_next_question() {
    let cancelled = json!({ "code": -32003, "message": "user cancelled" });
    let mut rig = Rig::live();
    let items = json!({ "items": [{ "id": "i", "label": "I" }] });
    for (id, kind, options, more) in
        [("q1", "confirm", YES_NO, json!({})), ("q2", "prompt", &[][..], json!({})), ("q3", "pick", &[][..], items)]
    {
        rig.feed(acp("r_1", "request_opened", &request(id, kind, options, more)));
    }
    for (id, member, value) in [("q1", "option_id", json!("n")), ("q2", "value", json!(null)), ("q3", "ids", json!([]))]
    {
        assert_eq!(rig.state.current_id(), Some(id));
        rig.line(&json!({ "id": id, "error": cancelled }));
        let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!("{id}") };
        assert_eq!((&params["request_id"], &params[member]), (&json!(id), &value));
    }
    // A question that cannot be shown is left to others, and does not block the next one.
    for id in ["q4", "q5"] {
        rig.feed(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.line(&json!({ "id": "q4", "error": { "code": -32601, "message": "method not found" } }));
    assert!(rig.calls().is_empty() && rig.state.current_id() == Some("q5"));
}

#[test]
fn codelia_bridge_remembers_a_denial_where_remember_is_offered() {
    let never = &[("y", "allow_once"), ("a", "allow_always"), ("n", "reject_once"), ("x", "reject_always")][..];
    let remembers = json!({ "allow_remember": true });
    for (options, more, ok, chosen) in [
        (never, remembers.clone(), false, "x"),
        (never, remembers, true, "a"),
        (YES_NO, json!({}), false, "n"),
        (YES_NO, json!({}), true, "y"),
    ] {
        let mut rig = Rig::live();
        rig.feed(acp("r_1", "request_opened", &request("q1", "confirm", options, more)));
        rig.answer("q1", json!({ "ok": ok, "remember": true, "reason": "so" }));
        let [(CallPurpose::Answer { .. }, _, params)] = &rig.calls()[..] else { panic!() };
        assert_eq!((&params["option_id"], &params["reason"]), (&json!(chosen), &json!(null)), "{ok}");
    }
}

#[test]
fn codelia_bridge_first_prompt_joins_the_only_session_of_the_runtime() {
    let mut rig = Rig::bare();
    rig.line(&json!({ "id": "1", "method": "run.start", "params": { "input": { "type": "text", "text": "hi" } } }));
    let (purpose, _, _) = rig.calls().remove(0);
    rig.on_outcome(purpose, Ok(json!({ "runtimes": [runtime("ui", "ready")] })));
    let (purpose, method, _) = rig.calls().remove(0);
    assert_eq!(method, "session.new");
    rig.on_outcome(
        purpose,
        refused(plexus_protocol::codes::ONE_SESSION, "one session", json!({ "code": "one_session" })),
    );
    let (join, method, _) = rig.calls().remove(0);
    assert_eq!(method, "session.list");
    let list = json!({ "sessions": [session("s_1", "other", "idle", "/here"), session("s_2", "ui", "exited", "/here"), session("s_3", "ui", "idle", "/here")] });
    rig.on_outcome(join, Ok(list));
    assert!(
        rig.actions
            .iter()
            .any(|order| matches!(order, BridgeAction::Follow { session, .. } if session.as_str() == "s_3"))
    );
    rig.actions.clear();
    rig.feed(ClientEvent::Live);
    let (_, method, params) = rig.calls().remove(0);
    assert_eq!((method.as_str(), &params["session_id"]), ("run.start", &json!("s_3")));
}

#[test]
fn codelia_bridge_replaces_a_closed_panel_and_delays_the_next() {
    let mut rig = Rig::live();
    for id in ["q1", "q2", "q3"] {
        rig.feed(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    assert_eq!(rig.state.current_id(), Some("q1"));
    rig.feed(acp("r_1", "request_resolved", &resolved("q1", "answered", true)));
    assert_eq!(rig.state.current_id(), Some("plexus_word_1"));
    let title = rig.sent().last().unwrap()["params"]["title"].clone();
    assert_eq!(title, "Answered elsewhere: allowed by phone: title of q1");
    // A waiting question is closed before it was shown.
    rig.feed(acp("r_1", "request_resolved", &resolved("q2", "withdrawn", false)));
    assert_eq!(rig.state.current_id(), Some("plexus_word_1"));
    // The key under way was for the replaced panel.
    rig.answer("q1", json!({ "ok": true }));
    assert!(rig.calls().is_empty() && rig.state.current_id() == Some("plexus_word_1"));
    rig.answer("plexus_word_1", json!({ "ok": true }));
    assert!(rig.calls().is_empty());
    assert_eq!(rig.state.current_id(), Some("q3"));
    // The answer came too late: nothing is asked again, and the winner is named.
    rig.answer("q3", json!({ "ok": false }));
    rig.feed(acp("r_1", "request_resolved", &resolved("q3", "answered", true)));
    rig.sent();
    let mut receipt = resolved("q3", "answered", true);
    receipt["at"] = "2026-01-01T00:00:00Z".into();
    rig.on_outcome(CallPurpose::Answer { request: RequestId::trusted("q3") }, refused(-32010, "m", receipt));
    assert_eq!(rig.events()[0]["args"], "your answer was not accepted: already allowed by phone");
    assert_eq!(rig.state.current_id(), None);
    // The answer was refused, but the question is open: it is asked again.
    rig.feed(acp("r_1", "request_opened", &request("q4", "confirm", YES_NO, json!({}))));
    rig.answer("q4", json!({ "ok": true }));
    rig.on_outcome(CallPurpose::Answer { request: RequestId::trusted("q4") }, refused(-32011, "m", Value::Null));
    assert_eq!(rig.state.current_id(), Some("q4"));
    // After a reconnect it is not asked again.
    rig.sent();
    rig.feed(acp("r_1", "request_opened", &request("q4", "confirm", YES_NO, json!({}))));
    assert!(rig.sent().iter().all(|sent| sent["id"] != "q4"));
}

#[test]
fn codelia_bridge_replays_a_bounded_history_before_the_reply() {
    let mut rig = Rig::bare();
    let history = json!({ "session_id": "s_1", "max_events": 4, "max_runs": 2 });
    rig.line(&json!({ "id": "h", "method": "session.history", "params": history }));
    for run in ["r_1", "r_2", "r_3"] {
        rig.feed(acp(run, "run_started", &json!({})));
        rig.feed(acp(run, "user_message_chunk", &chunk("p")));
        rig.feed(acp(run, "agent_message_chunk", &chunk(run)));
        rig.feed(acp(run, "request_opened", &request(&format!("q_{run}"), "confirm", YES_NO, json!({}))));
        if run != "r_3" {
            rig.feed(acp(run, "request_resolved", &resolved(&format!("q_{run}"), "answered", true)));
            rig.feed(acp(run, "run_ended", &json!({ "status": "completed" })));
        }
    }
    assert!(rig.sent().is_empty());
    rig.feed(ClientEvent::Live);
    let sent = rig.sent();
    let translate_one: Vec<&Value> = sent.iter().map(|sent| &sent["params"]["event"]["content"]).take(4).collect();
    assert_eq!(translate_one, ["r_2", "r_2", "p", "r_3"], "the last four");
    let at = sent.iter().position(|sent| sent["id"] == "h").unwrap();
    assert_eq!(sent[at]["result"], json!({ "runs": 2, "events_sent": 4, "truncated": true }));
    assert_eq!(sent[at + 1]["params"]["status"], "running", "how the run stands now");
    assert_eq!(sent[at + 2]["id"], "q_r_3", "what is open is asked, once all is told");
    assert_eq!(sent.iter().filter(|sent| sent["method"] == "run.status").count(), 1);
}

#[test]
fn codelia_bridge_first_prompt_opens_a_session_and_is_not_echoed() {
    let mut rig = Rig::bare();
    rig.line(&json!({ "id": "1", "method": "run.start", "params": { "input": { "type": "text", "text": "hi" } } }));
    let (purpose, method, _) = rig.calls().remove(0);
    assert_eq!(method, "runtime.list");
    rig.on_outcome(purpose, Ok(json!({ "runtimes": [runtime("x", "exited"), runtime("y", "ready")] })));
    let (purpose, _, params) = rig.calls().remove(0);
    assert_eq!(params, json!({ "runtime_id": "y", "cwd": "/here" }));
    rig.on_outcome(purpose, Ok(session("s_1", "y", "idle", "/here")));
    assert!(matches!(&rig.actions[..], [BridgeAction::Follow { session, .. }] if session.as_str() == "s_1"));
    rig.actions.clear();
    rig.feed(ClientEvent::Live);
    let (purpose, method, params) = rig.calls().remove(0);
    assert_eq!(
        (method.as_str(), &params["session_id"], &params["input"]["text"]),
        ("run.start", &json!("s_1"), &json!("hi"))
    );
    assert!(!rig.state.can_take_events(), "nothing is heard before its run has a name");
    rig.sent();
    rig.on_outcome(purpose, Ok(json!({ "run_id": "r_1", "queued": 0 })));
    assert!(rig.state.can_take_events());
    assert_eq!(rig.sent()[0]["result"], json!({ "run_id": "r_1" }));
    rig.feed(acp("r_1", "user_message_chunk", &chunk("hi")));
    assert!(rig.sent().is_empty());
    rig.feed(acp("r_2", "user_message_chunk", &chunk("other")));
    assert_eq!(rig.events()[0]["content"], "other");
    // The end of a queued run is not the end of the current one.
    rig.feed(acp("r_2", "run_started", &json!({})));
    rig.sent();
    rig.feed(acp("r_9", "run_ended", &json!({ "status": "cancelled" })));
    let sent = rig.sent();
    assert_eq!((&sent[0]["params"]["run_id"], &sent[1]["params"]["status"]), (&json!("r_9"), &json!("running")));
    assert_eq!(sent[1]["params"]["run_id"], "r_2");
}

#[test]
fn codelia_bridge_lists_models_and_sessions() {
    let mut rig = Rig::live();
    rig.line(&json!({ "id": "1", "method": "model.list", "params": { "provider": "openai" } }));
    let (purpose, _, params) = rig.calls().remove(0);
    assert_eq!(params["session_id"], "s_1");
    rig.on_outcome(purpose, refused(-32601, "not offer a choice", Value::Null));
    assert_eq!(rig.sent()[0]["result"]["models"], json!([]), "none, which is no error");
    // The terminal UI takes the text before a slash for a provider.
    for (models, name) in [(json!(["p/m", "n"]), "p/m"), (json!(["m", "p/m"]), "m"), (json!(["m"]), "m")] {
        rig.line(
            &json!({ "id": "2", "method": "model.set", "params": { "provider": "p", "name": "m", "scope": "config" } }),
        );
        let (purpose, method, _) = rig.calls().remove(0);
        assert_eq!(method, "model.list");
        rig.on_outcome(purpose, Ok(json!({ "models": models })));
        let (purpose, method, params) = rig.calls().remove(0);
        assert_eq!(
            (method.as_str(), &params["name"], &params["scope"]),
            ("model.set", &json!(name), &json!("session"))
        );
        rig.on_outcome(purpose, Ok(json!({ "provider": "p", "name": name })));
        assert_eq!(rig.sent()[0]["result"]["source"], "session");
    }
    let session = |id, cwd| session(id, "a", "waiting", cwd);
    let all = json!({ "sessions": [session("s_3", "/here"), session("s_2", "/there"), session("s_1", "/here")] });
    for (scope, ids) in [("all", vec!["s_3", "s_2"]), ("current_workspace", vec!["s_3", "s_1"])] {
        rig.line(&json!({ "id": "3", "method": "session.list", "params": { "scope": scope, "limit": 2 } }));
        let (purpose, ..) = rig.calls().remove(0);
        rig.on_outcome(purpose, Ok(all.clone()));
        let listed = rig.sent()[0]["result"]["sessions"].clone();
        let rows: Vec<&str> =
            listed.as_array().unwrap().iter().map(|row| row["session_id"].as_str().unwrap()).collect();
        assert_eq!(rows, ids);
        assert_eq!(listed[0]["last_user_message"], "a (asks): t");
    }
}

#[test]
fn codelia_bridge_takes_its_state_from_the_snapshot_after_a_gap() {
    let mut rig = Rig::live();
    rig.feed(acp("r_1", "run_started", &json!({})));
    rig.feed(acp("r_1", "agent_message_chunk", &chunk("half")));
    for id in ["q1", "q2"] {
        rig.feed(acp("r_1", "request_opened", &request(id, "confirm", YES_NO, json!({}))));
    }
    rig.feed(ClientEvent::Lost("gone".into()));
    rig.sent();
    let open = json!([request("q3", "confirm", YES_NO, json!({}))]);
    let run =
        json!({ "run_id": "r_2", "session_id": "s_1", "status": "running", "started_at": "2026-01-01T00:00:00Z" });
    let you = json!({ "device_id": "d", "name": "laptop", "scopes": [] });
    let hello = json!({ "resume": "reset", "epoch": "e", "oldest": "e:0", "head": "e:9", "sessions": [], "runs": [run],
        "requests": open, "you": you });
    rig.feed(ClientEvent::Hello(serde_json::from_value(hello).unwrap()));
    let sent = rig.sent();
    let status = sent.iter().find(|sent| sent["method"] == "run.status").unwrap();
    assert_eq!((&status["params"]["run_id"], &status["params"]["status"]), (&json!("r_1"), &json!("error")));
    assert_eq!(rig.state.current_id(), Some("plexus_word_1"), "what is not open any more is not asked any more");
    rig.answer("plexus_word_1", json!({ "ok": false }));
    assert_eq!(rig.state.current_id(), Some("q3"));
    assert!(rig.calls().is_empty());
}

/// A step of the test.
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
    fn codelia_bridge_shows_each_event_once_and_one_question_at_a_time(steps in proptest::collection::vec(step(), 1..60)) {
        let mut rig = Rig::live();
        let (mut text, mut translate_one) = (String::new(), String::new());
        let (mut standing, mut over) = (None::<String>, Vec::<String>::new());
        let mut finals = std::collections::BTreeMap::<String, usize>::new();
        let mut ends = finals.clone();
        let steps = steps.into_iter().chain([Step::Json("r_1", "error", json!({}))]);
        for step in steps {
            match step {
                Step::Event(run, kind, words) => {
                    text.push_str(&words);
                    rig.feed(acp(run, kind, &chunk(&words)));
                }
                // Text comes as above.
                Step::Json(_, "agent_message_chunk", _) => {}
                Step::Json(run, kind, body) => rig.feed(acp(run, kind, &body)),
                Step::Opened(n) => rig.feed(acp("r_1", "request_opened", &request(&format!("q{n}"), "confirm", YES_NO, json!({})))),
                Step::Resolved(n) => {
                    let id = format!("q{n}");
                    rig.feed(acp("r_1", "request_resolved", &resolved(&id, "answered", true)));
                    over.push(id);
                }
                Step::Answer => {
                    if let Some(id) = standing.take() {
                        rig.answer(&id, json!({ "ok": true }));
                        let calls = rig.calls();
                        prop_assert_eq!(calls.len(), usize::from(!id.starts_with("plexus_word_")));
                        for (purpose, ..) in calls {
                            rig.on_outcome(purpose, Ok(json!({})));
                        }
                    }
                }
                Step::Live => rig.feed(ClientEvent::Live),
                Step::Lost => rig.feed(ClientEvent::Lost("x".into())),
                Step::Junk(line) => rig.state.line(&line, &mut rig.actions),
            }
            for sent in rig.sent() {
                let event = &sent["params"]["event"];
                match sent["method"].as_str() {
                    Some("agent.event") if event["type"] == "text" => translate_one.push_str(event["content"].as_str().unwrap()),
                    Some("agent.event") if event["type"] == "final" => {
                        *finals.entry(sent["params"]["run_id"].to_string()).or_default() += 1;
                    }
                    Some("run.status") if sent["params"]["status"] == "completed" => {
                        *ends.entry(sent["params"]["run_id"].to_string()).or_default() += 1;
                    }
                    Some("ui.confirm.request") => {
                        let id = sent["id"].as_str().unwrap().to_owned();
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
        prop_assert_eq!(translate_one, text);
        for (run, count) in finals {
            prop_assert!(ends.get(&run).is_some_and(|ends| count <= *ends), "a final is the end's, once");
        }
    }
}
