//! One file: a table or a test for each message of an agent and each trap, in the order of a session's life.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use serde_json::{Value, json as j};

use super::super::rig::{Rig, choose, json, raw, spec};
use super::super::{DEPTH_MAX, FolderClaim, RequestSubject, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{Choice, Decision, Kind, RequestType, RunStatus, Ticket};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"2"}}}"#;

fn ready() -> Rig {
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(HELLO);
    assert!(matches!(rig.one(), RuntimeEvent::Ready { agent: Some(agent) } if agent == "a 2"));
    rig.sent();
    rig
}

/// Makes a ready connection with session `s`; the gateway's next id is 2.
fn opened(result: &str) -> Rig {
    let mut rig = ready();
    rig.open(1);
    rig.feed(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    assert!(matches!(rig.one(), RuntimeEvent::Opened { ticket: Ticket(1), .. }));
    rig.sent();
    rig
}

fn session() -> Rig {
    opened(r#"{"sessionId":"s"}"#)
}

fn session_that_can(can: Value) -> Rig {
    let mut rig = Rig::new(&spec("acp"));
    let result = j!({ "protocolVersion": 1, "agentCapabilities": { "sessionCapabilities": can } });
    rig.feed(j!({ "id": 0, "result": result }).to_string());
    rig.open(1);
    rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    rig.sent();
    rig
}

fn update(update: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

fn permission(id: &str, tool: &str) -> String {
    let options =
        r#"[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{tool},"options":{options}}}}}"#
    )
}

#[test]
fn acp_initialize_offers_no_files_and_no_terminal() {
    let mut rig = Rig::new(&spec("acp"));
    let hello = rig.sent().remove(0);
    assert_eq!((&hello["id"], &hello["method"]), (&j!(0), &j!("initialize")));
    assert_eq!(hello["params"]["protocolVersion"], 1);
    assert_eq!(hello["params"]["clientCapabilities"]["fs"], j!({ "readTextFile": false, "writeTextFile": false }));
    assert_eq!(hello["params"]["clientCapabilities"]["terminal"], false);
    assert_eq!(hello["params"]["clientCapabilities"]["elicitation"], j!({ "form": {}, "url": {} }));
    assert_eq!(hello["params"]["clientInfo"]["name"], "plexus");
}

#[test]
fn acp_initialize_failures_say_what_to_do() {
    for (reply, part) in [
        (r#"{"id":0,"result":{"protocolVersion":2}}"#, "version 2"),
        (r#"{"id":0,"result":{}}"#, "version none"),
        (r#"{"id":0,"result":null}"#, "not ACP"),
        (r#"{"id":0,"error":{"code":-32603,"message":"boom"}}"#, "boom"),
        (r#"{"id":0}"#, "neither"),
    ] {
        let mut rig = Rig::new(&spec("acp"));
        rig.feed(reply);
        assert!(matches!(rig.one(), RuntimeEvent::Failed { message } if message.contains(part)), "{reply}");
        rig.open(1);
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { .. }), "of no use afterwards");
    }
}

fn hello_with(methods: Value) -> String {
    j!({ "id": 0, "result": { "protocolVersion": 1, "authMethods": methods } }).to_string()
}

#[test]
fn acp_sign_in_uses_only_a_method_that_is_set_and_listed() {
    let methods = j!([{ "id": "key", "name": "Key" }, { "id": "tty", "name": "T", "type": "terminal" }]);
    for (set, tries) in [(None, false), (Some("key"), true), (Some("other"), false), (Some("tty"), false)] {
        let mut rig = Rig::new(&plexus_protocol::RuntimeSpec { auth_method: set.map(Into::into), ..spec("acp") });
        rig.sent();
        rig.feed(hello_with(methods.clone()));
        let sent = rig.sent();
        if tries {
            assert_eq!((&sent[0]["method"], &sent[0]["params"]), (&j!("authenticate"), &j!({ "methodId": "key" })));
            assert!(rig.take_events().is_empty());
            rig.feed(r#"{"id":1,"result":{}}"#);
        }
        assert!(matches!(rig.one(), RuntimeEvent::Ready { .. }), "{set:?}");
    }
}

#[test]
fn acp_sign_in_refused_names_the_offered_methods() {
    let mut rig = Rig::new(&plexus_protocol::RuntimeSpec { auth_method: Some("key".into()), ..spec("acp") });
    rig.feed(hello_with(j!([{ "id": "key", "name": "Key" }, { "id": "web", "name": "Web" }])));
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"bad key"}}"#);
    let RuntimeEvent::Failed { message } = rig.one() else { panic!() };
    for part in ["`key`", "bad key", "`web` (Web)", "auth_method"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn acp_sign_in_tries_the_only_env_method_once() {
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(hello_with(j!([{ "id": "web", "name": "W" }, { "id": "env", "name": "E", "type": "env_var" }])));
    rig.open(1);
    rig.take_events();
    rig.sent();
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"Authentication required"}}"#);
    assert_eq!(rig.sent()[0]["params"]["methodId"], "env");
    rig.feed(r#"{"id":2,"result":null}"#);
    assert_eq!(rig.sent()[0]["method"], "session/new");
    rig.feed(r#"{"id":3,"error":{"code":-32000,"message":"Authentication required"}}"#);
    assert!(rig.sent().is_empty(), "not a second time");
    let RuntimeEvent::NotOpened { error, .. } = rig.one() else { panic!() };
    assert!(error.code == -32000 && error.message.contains("`env`"), "{error:?}");
}

#[test]
fn acp_sign_in_by_two_env_methods_is_a_choice_for_people() {
    let mut rig = Rig::new(&spec("acp"));
    let env = |id| j!({ "id": id, "name": id, "type": "env_var" });
    rig.feed(hello_with(j!([env("a"), env("b")])));
    rig.open(1);
    rig.take_events();
    rig.sent();
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"Authentication required"}}"#);
    assert!(rig.sent().is_empty());
    assert!(matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.message.contains("`a` (a), `b` (b)")));
}

#[test]
fn acp_sign_in_is_asked_where_a_session_is_open() {
    let methods = j!([{ "id": "web", "name": "Web" }, { "id": "tty", "name": "T", "type": "terminal" }]);
    let refused = r#"{"id":ID,"error":{"code":-32000,"message":"Authentication required"}}"#;
    // The only session: nobody is there to be asked, so the error names the ways.
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(hello_with(methods.clone()));
    rig.take_events();
    rig.open(1);
    rig.feed(refused.replace("ID", "1"));
    let RuntimeEvent::NotOpened { error, .. } = rig.one() else { panic!() };
    assert_eq!(json(error.data.unwrap().get().as_bytes())["authMethods"][0], j!({ "id": "web", "name": "Web" }));
    // Another is open: the question goes there.
    rig.open(2);
    rig.feed(r#"{"id":2,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    for (ticket, id, decision) in [(3, 3, Decision::Ids(vec!["web".into()])), (4, 6, Decision::Withdrawn)] {
        rig.open(ticket);
        rig.feed(refused.replace("ID", &id.to_string()));
        rig.sent();
        let ask = rig.ask();
        assert_eq!((ask.kind, ask.items.len(), ask.items[0].id.as_str()), (RequestType::Pick, 1, "web"));
        assert!(serde_json::from_str::<Value>(ask.key.id()).is_err(), "no request of the agent's is named so");
        rig.answer(ask.key.id(), decision.clone());
        if decision == Decision::Withdrawn {
            assert!(matches!(rig.one(), RuntimeEvent::NotOpened { ticket: Ticket(4), .. }));
            continue;
        }
        assert_eq!(rig.sent()[0]["params"], j!({ "methodId": "web" }));
        rig.feed(r#"{"id":4,"result":{}}"#);
        assert_eq!(rig.sent()[0]["method"], "session/new");
        rig.feed(r#"{"id":5,"result":{"sessionId":"t"}}"#);
        assert!(matches!(rig.one(), RuntimeEvent::Opened { ticket: Ticket(3), .. }));
    }
}

#[test]
fn acp_sign_in_wanted_by_a_prompt_says_how() {
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(hello_with(j!([{ "id": "web", "name": "Web" }])));
    rig.take_events();
    rig.prompt(7, "s", "hi");
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"Expired"}}"#);
    let (_, end) = rig.end();
    assert!(end.status == RunStatus::Error && end.message.as_deref().unwrap().contains("`web` (Web)"), "{end:?}");
}

#[test]
fn acp_sessions_of_one_agent_do_not_mix() {
    let mut rig = session();
    rig.open(2);
    rig.feed(r#"{"id":2,"result":{"sessionId":"t"}}"#);
    rig.take_events();
    rig.prompt(7, "s", "hi");
    rig.prompt(8, "t", "ho");
    let sent = rig.sent();
    assert_eq!((&sent[1]["params"]["sessionId"], &sent[2]["params"]["sessionId"]), (&j!("s"), &j!("t")));
    // The same tool call and the same words, in two sessions.
    for native in ["s", "t"] {
        rig.feed(
            permission("9", r#"{"toolCallId":"c"}"#)
                .replace(r#""sessionId":"s""#, &format!(r#""sessionId":"{native}""#))
                .replace(r#""id":9"#, &format!(r#""id":"{native}""#)),
        );
        let events = rig.one();
        let RuntimeEvent::Asked { native: Some(named), ask } = events else { panic!("{events:?}") };
        assert!(named.as_str() == native && ask.first_mention.is_some());
    }
    rig.feed(r#"{"id":4,"result":{"stopReason":"end_turn"}}"#);
    let events = rig.one();
    assert!(
        matches!(&events, RuntimeEvent::Ended { native, ticket: Ticket(8), .. } if native.as_str() == "t"),
        "{events:?}"
    );
    rig.feed(r#"{"id":3,"result":{"stopReason":"refusal"}}"#);
    assert_eq!(rig.end().0, 7);
}

#[test]
fn acp_open_sends_session_meta_on_one_line() {
    let meta = Some(raw("{\n \"claudeCode\": {\"options\":{}}\r\n}"));
    let mut rig = Rig::new(&plexus_protocol::RuntimeSpec { session_meta: meta, ..spec("acp") });
    rig.feed(HELLO);
    rig.sent();
    rig.open(1);
    let params = j!({ "cwd": "/w", "mcpServers": [], "_meta": { "claudeCode": { "options": {} } } });
    assert_eq!(rig.sent()[0]["params"], params);
}

#[test]
fn acp_open_reports_modes_models_and_options() {
    let modes = r#""modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}"#;
    let models =
        r#""models":{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"One"},{"modelId":"m2"}]}"#;
    let options = r#""configOptions":[{"id":"o","name":"O","category":"model","type":"select","currentValue":"g2","options":[{"group":"g","name":"G","options":[{"value":"g1","name":"G1"},{"value":"g2","name":"G2"}]}]}]"#;
    let mut rig = ready();
    rig.open(1);
    rig.feed(format!(r#"{{"id":1,"result":{{"sessionId":"s",{modes},{models}}}}}"#));
    let RuntimeEvent::Opened { drafts, .. } = rig.one() else { panic!() };
    let bodies: Vec<_> = drafts.iter().map(|draft| json(&draft.body)).collect();
    assert_eq!(drafts.iter().map(|d| d.kind).collect::<Vec<_>>(), [Kind::CurrentModeUpdate, Kind::ConfigOptionUpdate]);
    assert_eq!((&bodies[0]["sessionUpdate"], &bodies[0]["currentModeId"]), (&j!("current_mode_update"), &j!("ask")));
    assert_eq!(bodies[0]["_meta"]["modes"]["availableModes"][0]["name"], "Ask");
    assert_eq!(bodies[1]["configOptions"][0]["currentValue"], "m1");
    assert_eq!(bodies[1]["configOptions"][0]["options"][1], j!({ "value": "m2", "name": "m2" }));
    rig.call("s", "model.list", None);
    let list = rig.replied().unwrap();
    assert_eq!((&list["models"], &list["current"], &list["provider"]), (&j!(["m1", "m2"]), &j!("m1"), &j!("a")));

    let mut rig = opened(&format!(r#"{{"sessionId":"s",{options}}}"#));
    rig.call("s", "model.list", None);
    assert_eq!(rig.replied().unwrap()["models"], j!(["g1", "g2"]));
}

#[test]
fn acp_models_are_set_by_the_method_that_the_agent_has() {
    let by_method =
        r#"{"sessionId":"s","models":{"currentModelId":"m1","availableModels":[{"modelId":"m1"},{"modelId":"m2"}]}}"#;
    let mut rig = opened(by_method);
    rig.call("s", "model.set", Some(r#"{"name":"m2"}"#));
    let sent = rig.sent();
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]),
        (&j!("session/set_model"), &j!({ "sessionId": "s", "modelId": "m2" }))
    );
    rig.feed(r#"{"id":2,"result":{}}"#);
    let events = rig.take_events();
    assert!(
        matches!(&events[0], RuntimeEvent::Event { draft, .. } if json(&draft.body)["configOptions"][0]["currentValue"] == "m2")
    );
    assert!(
        matches!(&events[1], RuntimeEvent::Replied { reply: Ok(raw), .. } if json(raw.get().as_bytes())["name"] == "m2")
    );
    rig.call("s", "model.set", Some(r#"{"name":"m9"}"#));
    assert_eq!(rig.replied().unwrap_err().code, -32602);

    let option = |value| {
        format!(
            r#"{{"sessionId":"s","configOptions":[{{"id":"mo","category":"model","currentValue":"{value}","options":[{{"value":"a"}},{{"value":"b"}}]}}]}}"#
        )
    };
    let mut rig = opened(&option("a"));
    rig.call("s", "model.set", Some(r#"{"name":"b"}"#));
    let sent = rig.sent();
    assert_eq!(sent[0]["method"], "session/set_config_option");
    assert_eq!(sent[0]["params"], j!({ "sessionId": "s", "configId": "mo", "value": "b" }));
    rig.feed(format!(r#"{{"id":2,"result":{}}}"#, option("b")));
    let events = rig.take_events();
    assert!(matches!(&events[0], RuntimeEvent::Event { draft, .. } if draft.kind == Kind::ConfigOptionUpdate));
    rig.call("s", "model.list", None);
    assert_eq!(rig.replied().unwrap()["current"], "b");
}

#[test]
fn acp_update_body_shares_the_memory_of_its_frame() {
    let mut rig = session();
    let body =
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hé \u202e"},"_meta":{"x":1.50}}"#;
    let frame = Bytes::from(update(body));
    rig.feed(frame.clone());
    let events = rig.one();
    let RuntimeEvent::Event { native: Some(native), draft } = events else { panic!("{events:?}") };
    assert_eq!((native.as_str(), draft.kind, &draft.body[..]), ("s", Kind::AgentMessageChunk, body.as_bytes()));
    assert_eq!(draft.native.unwrap().as_ptr(), frame.as_ptr());
    assert!(frame.as_ptr_range().contains(&draft.body.as_ptr()), "shares the frame's memory");
}

#[test]
fn acp_update_body_is_one_line() {
    let mut rig = session();
    rig.feed(update("{\"sessionUpdate\" :\r \"plan\",\r\"entries\": [ ]}"));
    assert_eq!(&rig.event().body[..], br#"{"sessionUpdate":"plan","entries":[]}"#);
}

#[test]
fn acp_update_with_escaped_names_is_read() {
    let mut rig = session();
    rig.feed(r#"{"params":{"update":{"sessionUpdate":"agent\u005fmessage_chunk"},"sessionId":"\u0073"},"method":"session\/update"}"#);
    let events = rig.one();
    assert!(
        matches!(events, RuntimeEvent::Event { native: Some(n), draft } if n.as_str() == "s" && draft.kind == Kind::AgentMessageChunk)
    );
}

#[test]
fn acp_update_of_every_kind_passes_and_unknown_ones_are_raw() {
    let mut rig = session();
    for kind in Kind::ALL.iter().filter(|kind| kind.is_acp()) {
        rig.feed(update(&format!(r#"{{"sessionUpdate":"{}","toolCallId":"t"}}"#, kind.as_str())));
        assert_eq!(rig.event().kind, *kind);
    }
    // An agent cannot forge the gateway's own kinds.
    for junk in ["compaction_update", "request_resolved", "run_ended", ""] {
        rig.feed(update(&format!(r#"{{"sessionUpdate":"{junk}"}}"#)));
        let events = rig.one();
        let RuntimeEvent::Event { native: Some(_), draft } = events else { panic!("{events:?}") };
        assert_eq!((draft.kind, &json(&draft.body)["reason"]), (Kind::Raw, &j!("unknown session update")), "{junk}");
    }
    for junk in
        [r#"{}"#, r#"["agent_message_chunk"]"#, r#"7"#, r#"{"sessionUpdate":7}"#, r#"{"sessionUpdate":"tool_call"}"#]
    {
        rig.feed(update(junk));
        assert_eq!(rig.event().kind, Kind::Raw, "{junk}");
    }
}

#[test]
fn acp_update_marks_tool_calls_and_titles() {
    let mut rig = session();
    for (status, over) in [("pending", false), ("in_progress", false), ("completed", true), ("failed", true)] {
        rig.feed(update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"{status}"}}"#)));
        let tool = rig.event().tool.unwrap();
        assert_eq!((tool.id.as_str(), tool.ended), ("t", over));
    }
    rig.feed(update(r#"{"sessionUpdate":"session_info_update","title":"T \"1\""}"#));
    assert_eq!(rig.event().title.as_deref(), Some("T \"1\""));
}

#[test]
fn acp_update_of_an_unopened_session_is_shown() {
    let mut rig = ready();
    rig.feed(update(r#"{"sessionUpdate":"plan"}"#));
    assert!(matches!(rig.one(), RuntimeEvent::Event { native: Some(native), .. } if native.as_str() == "s"));
}

#[test]
fn acp_run_ends_by_stop_reasons_and_errors() {
    for (reply, status, reason) in [
        (r#""result":{"stopReason":"end_turn"}"#, RunStatus::Completed, Some("end_turn")),
        (r#""result":{"stopReason":"max_tokens"}"#, RunStatus::Completed, Some("max_tokens")),
        (r#""result":{"stopReason":"max_turn_requests"}"#, RunStatus::Completed, Some("max_turn_requests")),
        (r#""result":{"stopReason":"refusal"}"#, RunStatus::Completed, Some("refusal")),
        (r#""result":{"stopReason":"cancelled"}"#, RunStatus::Cancelled, Some("cancelled")),
        (r#""result":{}"#, RunStatus::Completed, None),
        (r#""error":{"code":-32603,"message":"boom"}"#, RunStatus::Error, None),
        (r#""error":{"code":-32800,"message":"gone"}"#, RunStatus::Cancelled, None),
        (r#""error":"odd""#, RunStatus::Error, None),
    ] {
        let mut rig = session();
        rig.prompt(7, "s", "hi");
        let sent = rig.sent();
        assert_eq!(sent[0]["params"], j!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hi" }] }));
        rig.feed(format!(r#"{{"jsonrpc":"2.0",{reply},"id":2}}"#));
        let (ticket, end) = rig.end();
        assert_eq!((ticket, end.status, end.stop_reason.as_deref()), (7, status, reason), "{reply}");
        assert!(end.native.is_some());
    }
}

#[test]
fn acp_run_end_quotes_the_data_of_the_error() {
    let mut rig = session();
    rig.prompt(7, "s", "hi");
    rig.feed(r#"{"id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"Missing environment variable: X"}}}"#);
    assert_eq!(rig.end().1.message.as_deref(), Some("Internal error: Missing environment variable: X"));
    let mut rig = ready();
    rig.open(1);
    rig.feed(r#"{"id":1,"error":{"code":-32603,"message":"Internal error","data":"Error code: 400"}}"#);
    assert!(
        matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.message == "Internal error: Error code: 400")
    );
}

#[test]
fn acp_prompt_that_is_echoed_is_shown_once() {
    let chunk = |text: &str| {
        update(&j!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } }).to_string())
    };
    for pieces in [&["hi there"][..], &["hi", " there"], &["hi there\n"], &["hi ", "there"]] {
        let mut rig = session();
        rig.prompt(7, "s", "hi there");
        for piece in pieces {
            rig.feed(chunk(piece));
        }
        assert!(rig.take_events().is_empty(), "{pieces:?}");
        rig.feed(chunk("hi there"));
        assert_eq!(rig.event().kind, Kind::UserMessageChunk, "once");
    }
    // What is no echo is told, and an echo is one only while the prompt is worked on.
    let mut rig = session();
    rig.prompt(7, "s", "hi there");
    rig.feed(chunk("something else"));
    assert_eq!(rig.event().kind, Kind::UserMessageChunk);
    rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    rig.end();
    rig.prompt(8, "s", "again");
    rig.feed(r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    rig.end();
    rig.feed(chunk("again"));
    assert_eq!(rig.event().kind, Kind::UserMessageChunk);
}

#[test]
fn acp_sign_in_refused_names_the_variables_and_how_to_pass_them() {
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(hello_with(j!([
        { "id": "key", "name": "Use a key", "description": "Requires setting the `OPENAI_API_KEY` environment variable" },
        { "id": "env", "name": "E", "type": "env_var", "vars": [{ "name": "OTHER_KEY" }] },
        { "id": "env2", "name": "F", "type": "env_var", "vars": [{ "name": "OTHER_KEY" }] },
    ])));
    rig.take_events();
    rig.open(1);
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"Authentication required","data":"no key was found"}}"#);
    let RuntimeEvent::NotOpened { error, .. } = rig.one() else { panic!() };
    for part in ["no key was found", "`key` (Use a key)", "OPENAI_API_KEY, OTHER_KEY", "--pass-env OPENAI_API_KEY"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    let mut rig = session();
    rig.prompt(7, "s", "hi");
    rig.feed(r#"{"id":2,"error":{"code":-32000,"message":"Authentication required"}}"#);
    assert!(rig.end().1.message.is_some_and(|message| message.contains("--pass-env NAME")));
}

#[test]
fn acp_cancel_is_a_notification() {
    let mut rig = session();
    rig.cancel(7, "s");
    assert_eq!(rig.sent(), [j!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } })]);
}

#[test]
fn acp_cancel_with_a_request_open_is_no_ordinary_end() {
    let turn = |withdrawn: bool, cancelled: bool, reason: &str| {
        let mut rig = session();
        rig.prompt(7, "s", "hi"); // our id 2
        rig.feed(permission("5", r#"{"toolCallId":"t"}"#));
        rig.ask();
        rig.answer("5", if withdrawn { Decision::Withdrawn } else { choose("n", Choice::RejectOnce) });
        if cancelled {
            rig.cancel(7, "s");
        }
        rig.feed(j!({ "id": 2, "result": { "stopReason": reason } }).to_string());
        let end = rig.end().1;
        // It is forgotten with the turn.
        rig.prompt(8, "s", "again"); // our id 3
        rig.cancel(8, "s");
        rig.feed(r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
        assert_eq!(rig.end().1.status, RunStatus::Completed);
        (end.status, end.stop_reason)
    };
    assert_eq!(turn(true, true, "end_turn"), (RunStatus::Cancelled, Some("end_turn".into())));
    assert_eq!(turn(true, true, "cancelled").0, RunStatus::Cancelled);
    assert_eq!(turn(true, false, "end_turn").0, RunStatus::Completed, "the request expired");
    assert_eq!(turn(false, true, "end_turn").0, RunStatus::Completed, "the agent's own end");
    assert_eq!(turn(true, true, "max_tokens").0, RunStatus::Completed);
}

#[test]
fn acp_request_of_the_agent_is_not_taken_for_a_response() {
    let mut rig = session();
    rig.prompt(7, "s", "hi"); // our id 2
    rig.sent();
    rig.feed(permission("2", r#"{"toolCallId":"t"}"#));
    rig.ask();
    rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(rig.end().0, 7);
    rig.answer("2", choose("y", Choice::AllowOnce));
    assert_eq!(rig.sent()[0]["result"]["outcome"]["optionId"], "y");
}

#[test]
fn acp_request_ids_differ_by_type() {
    let mut rig = session();
    rig.prompt(7, "s", "hi");
    for id in ["\"2\"", "2.0", "null", "-2", "02e0", "99"] {
        rig.feed(format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
        assert_eq!(rig.event().kind, Kind::Raw, "{id}");
    }
    rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(rig.end().0, 7);
}

#[test]
fn acp_request_ids_come_back_unchanged() {
    for id in ["0", "-7", "1.5", "1.50", "null", "\"77a9-x\"", "\"\\u00e9\"", "12345678901234567890123"] {
        let mut rig = session();
        rig.feed(permission(id, r#"{"toolCallId":"t"}"#));
        let key = rig.ask().key;
        assert_eq!(key.id(), id);
        let mut out = super::super::Outbox::default();
        rig.dialect.command(RuntimeCommand::Answer { key, decision: Decision::Withdrawn }, &mut out);
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        assert!(out.frames[0].starts_with(start.as_bytes()), "{:?}", out.frames[0]);
    }
}

#[test]
fn acp_permission_request_is_carried_verbatim() {
    let mut rig = session();
    rig.feed(permission("0", r#"{"toolCallId":"t","title":"touch x","kind":"execute","content":[{"type":"content","content":{"type":"text","text":"why"}}],"rawInput":{"command":["/bin/sh","-c","touch x"],"cwd":"/w"}}"#));
    let ask = rig.ask();
    assert_eq!(
        (ask.kind, ask.title.as_str(), ask.message.as_deref()),
        (RequestType::Permission, "touch x", Some("why"))
    );
    let options: Vec<_> = ask.options.iter().map(|o| (o.id.as_str(), o.label.as_str(), o.kind)).collect();
    assert_eq!(options, [("y", "Yes", Choice::AllowOnce), ("n", "No", Choice::RejectOnce)]);
    let argv = ["/bin/sh", "-c", "touch x"].map(String::from).to_vec();
    assert_eq!(ask.subject, RequestSubject::Command { argv, cwd: Some(FolderClaim::Field("/w".into())) });
    assert!(!ask.allow_reason && !ask.allow_remember);
    assert_eq!(ask.tool_call_id.as_deref(), Some("t"));
    rig.answer("0", choose("n", Choice::RejectOnce));
    assert_eq!(
        rig.sent(),
        [j!({ "jsonrpc": "2.0", "id": 0, "result": { "outcome": { "outcome": "selected", "optionId": "n" } } })]
    );
}

#[test]
fn acp_permission_can_be_the_first_mention_of_its_tool_call() {
    let mut rig = session();
    rig.feed(permission("0", r#"{"toolCallId":"t","title":"touch x","status":"pending"}"#));
    let draft = rig.ask().first_mention.unwrap();
    assert_eq!(draft.kind, Kind::ToolCall);
    assert_eq!(
        json(&draft.body),
        j!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "touch x", "status": "pending" })
    );
    assert_eq!(draft.tool.map(|tool| (tool.id, tool.ended)), Some(("t".into(), false)));
    rig.feed(permission("1", r#"{"toolCallId":"t"}"#));
    assert!(rig.ask().first_mention.is_none(), "mentioned by the question before");
    rig.feed(update(r#"{"sessionUpdate":"tool_call","toolCallId":"u","title":"x"}"#));
    rig.event();
    rig.feed(permission("2", r#"{"toolCallId":"u"}"#));
    assert!(rig.ask().first_mention.is_none());
    rig.feed(permission("3", r#"{"toolCallId":"v","sessionUpdate":"run_ended"}"#));
    let draft = rig.ask().first_mention.unwrap();
    assert_eq!(json(&draft.body), j!({ "sessionUpdate": "tool_call", "toolCallId": "v", "title": "tool" }));
}

#[test]
fn acp_permission_gets_exactly_one_answer_and_never_an_error() {
    for decision in [
        choose("nonsense", Choice::AllowOnce),
        Decision::Expired,
        Decision::Withdrawn,
        Decision::Value(Some("y".into())),
        Decision::Ids(vec!["y".into()]),
    ] {
        let mut rig = session();
        rig.feed(permission("0", r#"{"toolCallId":"t"}"#));
        rig.answer("0", decision.clone());
        let cancelled = j!({ "jsonrpc": "2.0", "id": 0, "result": { "outcome": { "outcome": "cancelled" } } });
        assert_eq!(rig.sent(), [cancelled], "{decision:?}");
        rig.answer("0", choose("y", Choice::AllowOnce));
        assert!(rig.sent().is_empty(), "a key answered once is forgotten");
    }
}

#[test]
fn acp_permission_edit_reaches_only_an_agent_that_offered_it() {
    let asks = |meta: &str| {
        format!(
            r#"{{"id":3,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t"}},"options":[{{"optionId":"y","kind":"allow_once"}}],"_meta":{meta}}}}}"#
        )
    };
    let mut rig = session();
    rig.feed(asks(r#"{"plexus":{"editable":{"label":"Command","value":"ls"},"more":1},"other":2}"#));
    let editable = rig.ask().editable.clone().unwrap();
    assert_eq!((editable.label.as_str(), editable.value.as_str()), ("Command", "ls"));
    rig.answer("3", Decision::Edited { id: "y".into(), text: "ls -l".into(), reason: None });
    let want = j!({ "jsonrpc": "2.0", "id": 3, "result": {
        "outcome": { "outcome": "selected", "optionId": "y" }, "_meta": { "plexus": { "edited": "ls -l" } },
    } });
    assert_eq!(rig.sent(), [want]);
    for meta in ["7", "{}", r#"{"plexus":1}"#, r#"{"plexus":{"editable":{"label":1}}}"#, "null"] {
        let mut rig = session();
        rig.feed(asks(meta));
        assert!(rig.ask().editable.is_none(), "{meta}");
    }
}

#[test]
fn acp_permission_that_cannot_be_read_is_cancelled_and_logged() {
    for params in [
        "7",
        "{}",
        r#"{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}"#,
        r#"{"sessionId":"s","toolCall":"t","options":[{"optionId":"y"}]}"#,
        r#"{"sessionId":"s","toolCall":{},"options":[{"name":"y"}]}"#,
        r#"{"sessionId":"s","toolCall":{},"options":[{"optionId":"y","name":"No"},{"optionId":"y","name":"Yes"}]}"#,
    ] {
        let mut rig = session();
        rig.feed(format!(r#"{{"id":"q","method":"session/request_permission","params":{params}}}"#));
        assert_eq!(rig.event().kind, Kind::Raw, "{params}");
        assert_eq!(rig.sent()[0]["result"]["outcome"]["outcome"], "cancelled", "{params}");
    }
}

#[test]
fn acp_permission_options_of_unknown_kinds_stay() {
    let mut rig = session();
    rig.feed(r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{},"options":[{"optionId":"a","kind":"allow_maybe"},{"optionId":"b","kind":7},{"optionId":"c","name":"C"}]}}"#);
    let ask = rig.ask();
    assert!(ask.options.iter().all(|offer| offer.kind == Choice::Other));
    assert_eq!(ask.options[0].label, "a");
}

#[test]
fn acp_request_id_that_is_still_open_is_not_asked_twice() {
    let mut rig = session();
    rig.feed(permission("0", r#"{"toolCallId":"t"}"#));
    rig.ask();
    rig.feed(permission("0", r#"{"toolCallId":"u"}"#));
    assert_eq!(rig.event().kind, Kind::Raw);
    assert!(rig.sent().is_empty(), "the one answer answers both");
    rig.answer("0", Decision::Withdrawn);
    rig.sent();
    rig.feed(permission("0", r#"{"toolCallId":"u"}"#));
    rig.ask();
}

/// Some agents number their tool calls again with each prompt, and end some of them without a message.
#[test]
fn acp_tool_call_id_used_again_does_not_inherit_the_first_call() {
    let mut rig = session();
    let call = |input: &str| {
        update(&format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"t","kind":"execute","title":"run"{input}}}"#))
    };
    for (ticket, id, input, shown) in [(5, 2, r#","rawInput":{"command":"ls"}"#, true), (6, 3, "", false)] {
        rig.prompt(ticket, "s", "hi");
        assert_eq!(rig.sent()[0]["id"], id);
        rig.feed(call(input));
        assert_eq!(rig.event().kind, Kind::ToolCall, "each is told");
        rig.feed(permission(&ticket.to_string(), r#"{"toolCallId":"t"}"#));
        let ask = rig.ask();
        assert_eq!(format!("{:?}", ask.subject).contains("\"ls\""), shown, "{:?}", ask.subject);
        rig.answer(&ticket.to_string(), choose("y", Choice::AllowOnce));
        rig.sent();
        rig.feed(format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
        assert!(matches!(rig.one(), RuntimeEvent::Ended { ticket: ended, .. } if ended == Ticket(ticket)));
    }
}

/// Returns a permission request of a session.
fn asks_in(session: &str, id: usize) -> String {
    permission(&id.to_string(), r#"{"toolCallId":"t"}"#).replacen(
        r#""sessionId":"s""#,
        &format!(r#""sessionId":"{session}""#),
        1,
    )
}

/// Returns the ids of the requests that were opened.
fn asked_ids(rig: &mut Rig) -> Vec<String> {
    let events = rig.take_events();
    let ids = events.iter().filter_map(|event| match event {
        RuntimeEvent::Asked { ask, .. } => Some(ask.key.id().to_owned()),
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Error => panic!("{:?}", draft.body),
        _ => None,
    });
    ids.collect()
}

#[test]
fn acp_requests_of_one_session_leave_room_for_the_others() {
    let mut rig = session();
    for session in 0..4 {
        for n in 0..250 {
            rig.feed(asks_in(&format!("s{session}"), session * 250 + n));
        }
    }
    let first = asked_ids(&mut rig);
    for session in 0..4 {
        let of_session = |id: &&String| id.parse::<usize>().unwrap() / 250 == session;
        assert!(first.iter().filter(of_session).count() >= super::super::held::SHARE, "session {session}");
    }
    assert!(rig.sent().is_empty(), "the gateway answers nothing by itself");
    // The next gateway knows the ones that wait, and every question is asked once, in the order of its session.
    let saved = rig.dialect.save().unwrap();
    let mut again = session();
    assert!(again.dialect.restore(&saved));
    for rig in [&mut rig, &mut again] {
        let (mut open, mut all) = (first.clone(), first.clone());
        while let Some(id) = open.pop() {
            rig.answer(&id, choose("y", Choice::AllowOnce));
            let sent = rig.sent();
            assert_eq!((sent.len(), &sent[0]["result"]["outcome"]["optionId"]), (1, &j!("y")));
            let more = asked_ids(rig);
            all.extend_from_slice(&more);
            open.extend(more);
        }
        for session in 0..4 {
            let numbers = all.iter().map(|id| id.parse::<usize>().unwrap());
            let of_session: Vec<usize> = numbers.filter(|id| id / 250 == session).collect();
            assert!(of_session.is_sorted() && of_session.len() == 250, "{of_session:?}");
        }
        assert_eq!(rig.dialect.held(), 0);
    }
}

#[test]
fn acp_requests_of_many_sessions_are_all_opened() {
    let mut rig = session();
    for n in 0..300 {
        rig.feed(asks_in(&format!("s{n}"), n));
    }
    assert_eq!(asked_ids(&mut rig).len(), 300);
    assert_eq!((rig.sent().len(), rig.dialect.held()), (0, 0));
}

#[test]
fn acp_requests_that_wait_are_withdrawn_with_their_run() {
    let mut rig = session();
    let full = |rig: &mut Rig| {
        for id in 0..300 {
            rig.feed(asks_in("s", id));
        }
        asked_ids(rig)
    };
    let open = full(&mut rig).len();
    assert!(open < 300);
    // The agent takes one back that people have not seen.
    rig.feed(r#"{"method":"$/cancel_request","params":{"requestId":299}}"#);
    assert!(rig.take_events().is_empty());
    assert_eq!(rig.sent()[0], j!({ "jsonrpc": "2.0", "id": 299, "result": { "outcome": { "outcome": "cancelled" } } }));
    rig.tell(RuntimeCommand::Cancel { ticket: None, native: "s".into(), reason: None });
    let sent = rig.sent();
    let cancelled = sent.iter().filter(|sent| sent["result"]["outcome"]["outcome"] == "cancelled").count();
    assert_eq!((cancelled, rig.dialect.held()), (299 - open, 0));
    assert_eq!(sent.last().unwrap()["method"], "session/cancel");
}

#[test]
fn acp_cancel_request_withdraws_a_request() {
    let mut rig = session();
    rig.feed(permission("5", r#"{"toolCallId":"t"}"#));
    rig.ask();
    for junk in ["\"5\"", "6"] {
        rig.feed(format!(r#"{{"method":"$/cancel_request","params":{{"requestId":{junk}}}}}"#));
        assert_eq!(rig.event().kind, Kind::Raw, "{junk}");
    }
    rig.feed(r#"{"method":"$/cancel_request","params":{"requestId":5}}"#);
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { key, native: Some(_), .. } if key.id() == "5"));
    assert_eq!(rig.sent()[0]["result"]["outcome"]["outcome"], "cancelled");
    rig.answer("5", choose("y", Choice::AllowOnce));
    assert!(rig.sent().is_empty());
}

#[test]
fn acp_client_tools_not_served_are_refused_and_logged() {
    let mut rig = session();
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_x/y", "session/update"] {
        rig.feed(format!(r#"{{"id":"a","method":"{method}","params":{{"sessionId":"s"}}}}"#));
        assert!(
            matches!(rig.one(), RuntimeEvent::Event { native: Some(_), draft } if draft.kind == Kind::Raw),
            "{method}"
        );
        let sent = rig.sent();
        assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&j!("a"), &j!(-32601)), "{method}");
    }
}

#[test]
fn acp_notification_that_is_unknown_is_raw() {
    let mut rig = session();
    rig.feed(r#"{"jsonrpc":"2.0","method":"_auth/status_update","params":{"sessionId":"s","x":1}}"#);
    let draft = rig.event();
    assert_eq!((draft.kind, &json(&draft.body)["message"]["params"]["x"]), (Kind::Raw, &j!(1)));
}

#[test]
fn acp_junk_is_raw() {
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    let deep_update = update(&format!(r#"{{"sessionUpdate":"plan","x":{deep}}}"#));
    for junk in [
        &br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#[..],
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        br#"[{"jsonrpc":"2.0","method":"session/update","params":{}}]"#,
        b"Loaded cached credentials.",
        b"\xff\xfe{}",
        b"{}",
        b"7",
        br#"{"id":1,"id":2,"result":{}}"#,
        deep.as_bytes(),
        deep_update.as_bytes(),
    ] {
        let mut rig = session();
        rig.feed(Bytes::copy_from_slice(junk));
        let draft = rig.event();
        assert_eq!((draft.kind, draft.native.as_deref()), (Kind::Raw, Some(junk)), "{junk:?}");
        assert!(rig.sent().is_empty());
    }
}

#[test]
fn acp_depth_does_not_count_brackets_in_strings() {
    let mut rig = session();
    rig.feed(update(&format!(r#"{{"sessionUpdate":"plan","x":"{}"}}"#, "[{\\\"".repeat(DEPTH_MAX))));
    assert_eq!(rig.event().kind, Kind::Plan);
}

#[test]
fn acp_message_nested_too_deep_is_answered() {
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX * 100), "]".repeat(DEPTH_MAX * 100));
    let mut rig = session();
    rig.prompt(7, "s", "hi");
    rig.sent();
    rig.feed(permission("9", &format!(r#"{{"toolCallId":"t","rawInput":{deep}}}"#)));
    assert_eq!(rig.event().kind, Kind::Raw);
    assert_eq!(rig.sent()[0]["result"]["outcome"]["outcome"], "cancelled");
    rig.feed(format!(r#"{{"id":2,"result":{{"stopReason":"end_turn","_meta":{deep}}}}}"#));
    let events = rig.take_events();
    assert!(matches!(&events[1], RuntimeEvent::Ended { end, .. } if end.status == RunStatus::Error), "{events:?}");
}

#[test]
fn acp_blank_lines_are_ignored() {
    let mut rig = session();
    for blank in ["", " ", "\r", "\t \r"] {
        rig.feed(blank);
    }
    assert!(rig.take_events().is_empty() && rig.sent().is_empty());
}

#[test]
fn acp_calls_pass_in_their_own_session_only() {
    let mut rig = session_that_can(j!({ "list": {} }));
    for (method, params, sent) in [
        ("session/set_mode", Some(r#"{"modeId":"m"}"#), j!({ "sessionId": "s", "modeId": "m" })),
        ("session.set_mode", Some(r#"{ "sessionId" : "s","modeId":"m"}"#), j!({ "sessionId": "s", "modeId": "m" })),
        ("_vendor/x", None, j!({ "sessionId": "s" })),
        ("session/list", Some("{\n}"), j!({})),
    ] {
        rig.call("s", method, params);
        let frame = rig.sent().remove(0);
        assert_eq!((&frame["method"], &frame["params"]), (&j!(method.replace("session.", "session/")), &sent));
        assert!(rig.take_events().is_empty());
    }
    for (method, params, code) in [
        ("session/set_mode", Some(r#"{"sessionId":"other"}"#), -32602),
        ("session/set_mode", Some(r#"{"sessionId":"s","sessionId":"other"}"#), -32602),
        ("session/set_mode", Some(r#"{"sessionId":7}"#), -32602),
        ("_x", Some("[1]"), -32602),
        ("session/new", None, -32601),
        ("session.load", None, -32601),
        ("session/prompt", None, -32601),
        ("session/fork", None, -32601),
        ("session/close", None, -32601),
        ("session.delete", None, -32601),
        ("auth.logout", None, -32601),
        ("auth.login", Some(r#"{"method_id":"none"}"#), -32602),
        ("mcp.list", None, -32601),
        ("skills.list", None, -32601),
        ("model.list", None, -32601),
        ("model.set", Some(r#"{"name":"x"}"#), -32601),
        ("initialize", None, -32601),
        ("authenticate", None, -32601),
    ] {
        rig.call("s", method, params);
        assert_eq!(rig.replied().unwrap_err().code, code, "{method}");
        assert!(rig.sent().is_empty(), "{method}");
    }
}

#[test]
fn acp_calls_need_a_method_that_the_agent_offers() {
    let can = j!({ "list": {}, "fork": {}, "close": {}, "delete": {} });
    let mut rig = session_that_can(can);
    let list = r#"{"sessions":[{"sessionId":"x","cwd":"/w","_meta":{"n":1.50}}],"nextCursor":null}"#;
    rig.call("s", "session/list", None);
    rig.feed(format!(r#"{{"id":2,"result":{list}}}"#));
    assert!(matches!(rig.one(), RuntimeEvent::Replied { reply: Ok(raw), .. } if raw.get() == list), "untouched");
    rig.sent();
    rig.call("s", "session/fork", None);
    assert_eq!(rig.sent()[0]["params"], j!({ "sessionId": "s", "cwd": "/w", "mcpServers": [] }));
    rig.feed(r#"{"id":3,"result":{"sessionId":"forked"}}"#);
    assert_eq!(rig.replied().unwrap()["sessionId"], "forked");
    rig.call("s", "session/fork", Some(r#"{"cwd":"/x"}"#));
    assert_eq!(rig.sent()[0]["params"], j!({ "sessionId": "s", "cwd": "/x", "mcpServers": [] }));
    for (id, method) in [(5, "session/close"), (6, "session/delete")] {
        rig.call("s", method, None);
        assert_eq!(rig.sent()[0]["params"], j!({ "sessionId": "s" }));
        rig.feed(format!(r#"{{"id":{id},"result":{{}}}}"#));
        let events = rig.take_events();
        assert!(
            matches!(&events[0], RuntimeEvent::Event { draft, .. } if json(&draft.body)["code"] == "session_ended")
        );
        assert!(matches!(&events[1], RuntimeEvent::Replied { reply: Ok(_), .. }));
    }
    rig.call("s", "session/delete", Some(r#"{"sessionId":"other"}"#));
    assert_eq!(rig.replied().unwrap_err().code, -32602);
}

#[test]
fn acp_calls_sign_in_and_out() {
    let mut rig = Rig::new(&spec("acp"));
    let methods = j!([{ "id": "web", "name": "Web" }, { "id": "tty", "name": "T", "type": "terminal" }]);
    let can = j!({ "auth": { "logout": {} } });
    let result = j!({ "protocolVersion": 1, "authMethods": methods, "agentCapabilities": can });
    rig.feed(j!({ "id": 0, "result": result }).to_string());
    rig.open(1);
    rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    rig.sent();
    rig.call("s", "auth.login", Some(r#"{"method_id":"web"}"#));
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]), (&j!("authenticate"), &j!({ "methodId": "web" })));
    rig.feed(r#"{"id":2,"result":{}}"#);
    assert_eq!(rig.replied().unwrap(), j!({}));
    rig.call("s", "auth.login", Some(r#"{"method_id":"tty"}"#));
    assert!(rig.replied().unwrap_err().message.contains("`web` (Web)"), "a terminal cannot be had");
    rig.call("s", "auth.logout", None);
    assert_eq!(rig.sent()[0]["method"], "logout");
}

#[test]
fn acp_calls_that_set_a_mode_are_shown_to_everybody() {
    let mut rig = session();
    rig.call("s", "session/set_mode", Some(r#"{"modeId":"m"}"#));
    rig.feed(r#"{"id":2,"result":{}}"#);
    let events = rig.take_events();
    assert!(
        matches!(&events[0], RuntimeEvent::Event { draft, .. } if json(&draft.body)["currentModeId"] == "m"),
        "{events:?}"
    );
    assert!(matches!(&events[1], RuntimeEvent::Replied { reply: Ok(_), .. }));
    rig.call("s", "session/set_mode", Some(r#"{"modeId":"m"}"#));
    rig.feed(r#"{"id":3,"error":{"code":-32602,"message":"no","data":{"a":1}}}"#);
    let fault = rig.replied().unwrap_err();
    assert_eq!((fault.code, fault.data.unwrap().get()), (-32602, r#"{"a":1}"#));
}

#[test]
fn acp_calls_refused_as_notifications_are_logged() {
    let mut rig = session();
    let call = |method: &str| RuntimeCommand::Call {
        ticket: Ticket(1),
        native: Some("s".into()),
        method: method.into(),
        params: None,
        notify: true,
    };
    rig.tell(call("fs/x"));
    assert_eq!(rig.event().kind, Kind::Error);
    rig.tell(call("_x"));
    assert_eq!(rig.sent(), [j!({ "jsonrpc": "2.0", "method": "_x", "params": { "sessionId": "s" } })]);
}

#[test]
fn acp_request_id_used_again_names_another_request_even_over_a_restart() {
    let mut rig = session();
    rig.feed(permission("5", r#"{"toolCallId":"a"}"#));
    let first = rig.ask().key;
    rig.tell(RuntimeCommand::Answer { key: first.clone(), decision: choose("y", Choice::AllowOnce) });
    rig.sent();
    rig.feed(permission("5", r#"{"toolCallId":"b"}"#));
    let second = rig.ask().key;
    assert_eq!((first.id(), second.id(), first == second), ("5", "5", false));
    let saved = rig.dialect.save().unwrap();
    let mut next = super::make(&spec("acp"));
    assert!(next.restore(&saved));
    rig.dialect = next;
    rig.tell(RuntimeCommand::Answer { key: first, decision: choose("y", Choice::AllowOnce) });
    assert!(rig.sent().is_empty(), "it was given to another question");
    assert_eq!(rig.dialect.asks(), std::slice::from_ref(&second));
    rig.tell(RuntimeCommand::Answer { key: second.clone(), decision: choose("n", Choice::RejectOnce) });
    assert_eq!(rig.sent()[0]["result"]["outcome"]["optionId"], "n");
    rig.feed(permission("5", r#"{"toolCallId":"c"}"#));
    assert!(rig.ask().key > second, "numbers go on");
}

#[test]
fn acp_saved_state_with_bare_request_ids_is_taken_over() {
    let mut rig = session();
    rig.feed(permission("5", r#"{"toolCallId":"a"}"#));
    rig.take_events();
    let mut saved: Value = json(&rig.dialect.save().unwrap());
    saved["state"].as_object_mut().unwrap().remove("asked");
    let asked = saved["state"]["asks"].as_object_mut().unwrap();
    let (_, question) = asked.iter().next().map(|(key, value)| (key.clone(), value.clone())).unwrap();
    *asked = serde_json::Map::from_iter([("5".to_owned(), question)]);
    let mut next = super::make(&spec("acp"));
    assert!(next.restore(saved.to_string().as_bytes()));
    rig.dialect = next;
    assert!(rig.dialect.asks()[0].is_bare());
    rig.answer("5", choose("n", Choice::RejectOnce));
    assert_eq!(rig.sent()[0]["result"]["outcome"]["optionId"], "n");
    rig.feed(permission("5", r#"{"toolCallId":"b"}"#));
    assert!(!rig.ask().key.is_bare());
}
