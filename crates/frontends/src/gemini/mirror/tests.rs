//! The events of the mirror for each event of the log.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use plexus_protocol::{Origin, Timestamp};

/// Events of sessions, as the log would have them, and a screen that they come to.
struct Scene {
    screen: Screen,
    out: Out,
    position: u64,
}

impl Scene {
    fn new() -> Self {
        Self { screen: Screen::default(), out: Out { frames: Vec::new(), cursors: None }, position: 0 }
    }

    fn event_in(&mut self, session: &str, run: &str, kind: Kind, body: &Value) -> &mut Self {
        self.position += 1;
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted(session),
            runtime_id: RuntimeId::trusted("r"),
            dialect: "acp".into(),
        });
        let run_id = if run == "0" { initial_run_id(&origin) } else { RunId::trusted(run) };
        let event = Event {
            position: Position(self.position),
            origin,
            run_id,
            seq: 0,
            at: Timestamp::default(),
            kind,
            body: body.to_string().into(),
            native: None,
        };
        self.screen.event(&event, &mut self.out);
        self
    }

    fn event(&mut self, kind: Kind, body: &Value) -> &mut Self {
        self.event_in("s_1", "r_1", kind, body)
    }

    fn started(&mut self) -> &mut Self {
        self.event(Kind::RunStarted, &json!({}))
    }

    /// Returns the messages since the last call: one message a frame, each with its NUL.
    fn take_events(&mut self) -> Vec<Value> {
        self.screen.flush_user_message(&mut self.out);
        let frames = std::mem::take(&mut self.out.frames);
        let mut rest = &frames[..];
        let mut said = Vec::new();
        while let [0x81, len, ..] = rest {
            let (head, len) = match len {
                126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
                127 => panic!("no message here is so long"),
                len => (2, usize::from(*len)),
            };
            let text = std::str::from_utf8(&rest[head..head + len]).unwrap();
            let text = text.strip_suffix('\0').expect("a NUL ends it");
            assert!(!text.contains('\0'));
            said.push(serde_json::from_str(text).unwrap());
            rest = &rest[head + len..];
        }
        assert!(rest.is_empty());
        said
    }
}

fn message(type_name: &str, data: &Value) -> Value {
    json!({ "type": type_name, "data": data })
}

fn chunk(text: &str) -> Value {
    json!({ "content": { "type": "text", "text": text } })
}

/// A request's body, as the log has it.
fn request(more: Value) -> Value {
    let mut request = json!({
        "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "r", "generation": 1,
        "type": "permission", "state": "open", "title": "t", "display": "d", "warnings": [], "digest": "x",
        "options": [
            { "id": "a", "label": "Allow", "kind": "allow_once" },
            { "id": "d", "label": "Deny", "kind": "reject_once" },
            { "id": "e", "label": "Allow", "kind": "allow_always" },
        ],
        "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00.000Z",
    });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

#[test]
fn mirror_kinds_have_a_message_or_none() {
    let by = json!({ "plexus": { "by": { "device_id": "d_1", "name": "phone" } } });
    let with = |text: &str| json!({ "content": { "type": "text", "text": text }, "_meta": by });
    let shell = json!({ "toolCallId": "c1", "title": "ls -l", "kind": "execute", "status": "pending", "rawInput": { "z": 1.50, "a": "x" } });
    let image = json!({ "content": { "type": "image", "data": "", "mimeType": "image/png" } });
    let text_of = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let done = |more: Value| {
        let mut body = json!({ "toolCallId": "c1", "status": "completed" });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let output = |output: Value| message("tool_output", &json!({ "callId": "c1", "output": output }));
    let cases: Vec<(Kind, Value, Vec<Value>)> = vec![
        (Kind::UserMessageChunk, with("hé\0"), vec![message("user_message", &json!({ "text": "hé\0" }))]),
        (
            Kind::UserMessageChunk,
            json!({ "content": { "type": "resource_link", "uri": "file:///a b", "name": "a" } }),
            vec![message("user_message", &json!({ "text": "@/a b" }))],
        ),
        (Kind::UserMessageChunk, image.clone(), vec![message("user_message", &json!({ "text": "[image]" }))]),
        (
            Kind::AgentMessageChunk,
            chunk("Here \"is\" \n"),
            vec![message("model_output", &json!({ "text": "Here \"is\" \n" }))],
        ),
        (Kind::AgentMessageChunk, chunk(""), vec![]),
        (Kind::AgentMessageChunk, image, vec![]),
        (Kind::AgentMessageChunk, json!({}), vec![]),
        (Kind::AgentThoughtChunk, chunk("hm"), vec![]),
        (
            Kind::ToolCall,
            shell,
            vec![message("tool_call", &json!({ "callId": "c1", "name": "ls -l", "args": { "z": 1.50, "a": "x" } }))],
        ),
        (
            Kind::ToolCall,
            json!({ "toolCallId": "c2", "kind": "read", "rawInput": null }),
            vec![message("tool_call", &json!({ "callId": "c2", "name": "read", "args": {} }))],
        ),
        (
            Kind::ToolCall,
            json!({ "toolCallId": "c1", "title": "t", "status": "completed", "rawOutput": "o" }),
            vec![message("tool_call", &json!({ "callId": "c1", "name": "t", "args": {} })), output(json!("o"))],
        ),
        (Kind::ToolCall, json!({ "title": "no identifier" }), vec![]),
        (Kind::ToolCallUpdate, json!({ "toolCallId": "c1", "status": "in_progress", "rawOutput": "so far" }), vec![]),
        (Kind::ToolCallUpdate, done(json!({ "rawOutput": "hello " })), vec![output(json!("hello "))]),
        (
            Kind::ToolCallUpdate,
            done(json!({ "rawOutput": { "n": 1 }, "content": text_of("one") })),
            vec![output(json!("one"))],
        ),
        (Kind::ToolCallUpdate, done(json!({ "rawOutput": { "n": 1 } })), vec![output(json!({ "n": 1 }))]),
        (
            Kind::ToolCallUpdate,
            done(json!({ "content": [{ "type": "diff", "path": "/a", "oldText": "", "newText": "x" }] })),
            vec![output(json!("/a"))],
        ),
        (Kind::ToolCallUpdate, json!({ "toolCallId": "c1", "status": "failed" }), vec![output(json!(""))]),
        (Kind::RunStarted, json!({}), vec![]),
        (Kind::RunStatus, json!({ "status": "awaiting_ui" }), vec![]),
        (Kind::RunEnded, json!({ "status": "completed" }), vec![message("idle", &json!({}))]),
        (Kind::RunEnded, json!({ "status": "error" }), vec![message("idle", &json!({}))]),
        (
            Kind::RequestOpened,
            request(json!({})),
            vec![message(
                "permission_dialog",
                &json!({ "id": "q_1", "type": "permission", "options": ["Allow", "Deny", "Allow (e)"] }),
            )],
        ),
        (Kind::RequestOpened, json!({ "request_id": "q_1" }), vec![]),
        (
            Kind::RequestResolved,
            json!({ "request_id": "q_9", "state": "answered", "option_id": "yes" }),
            vec![message("permission_selection", &json!({ "id": "q_9", "selection": "yes" }))],
        ),
        (
            Kind::Hook,
            json!({ "hookName": "on_session_start", "eventName": "hook_end", "success": true }),
            vec![message("hook", &json!({ "hookName": "on_session_start", "eventName": "hook_end", "success": true }))],
        ),
        (
            Kind::Hook,
            json!({ "type": "hook/completed", "params": {} }),
            vec![message("hook", &json!({ "hookName": "hook/completed", "eventName": "hook_end", "success": true }))],
        ),
        (
            Kind::Hook,
            json!({ "type": "hook/started", "params": { "run": { "eventName": "preToolUse", "status": "running" } } }),
            vec![message("hook", &json!({ "hookName": "preToolUse", "eventName": "hook_start" }))],
        ),
        (
            Kind::Hook,
            json!({ "type": "hook/completed", "params": { "run": { "eventName": "preToolUse", "status": "failed" } } }),
            vec![message("hook", &json!({ "hookName": "preToolUse", "eventName": "hook_end", "success": false }))],
        ),
        (
            Kind::Hook,
            json!({ "hookName": "h", "eventName": "hook_start", "success": true }),
            vec![message("hook", &json!({ "hookName": "h", "eventName": "hook_start" }))],
        ),
        // What else a runtime does is no hook.
        (Kind::Hook, json!({ "type": "run.status", "params": {} }), vec![]),
        (Kind::Hook, json!({ "type": "final", "content": "x" }), vec![]),
        (Kind::Hook, json!({ "type": "thread/goal/cleared" }), vec![]),
        (Kind::Plan, json!({ "entries": [] }), vec![]),
        (Kind::UsageUpdate, json!({}), vec![]),
        (Kind::CurrentModeUpdate, json!({}), vec![]),
        (Kind::RuntimeStatus, json!({}), vec![]),
        (Kind::Error, json!({ "code": "x", "message": "y" }), vec![]),
        (Kind::Raw, json!({}), vec![]),
    ];
    for (kind, body, expected) in cases {
        let mut scene = Scene::new();
        assert!(scene.started().take_events().is_empty());
        assert_eq!(scene.event(kind, &body).take_events(), expected, "{kind:?} {body}");
    }
}

#[test]
fn mirror_tool_arguments_pass_unchanged() {
    let mut scene = Scene::new();
    scene.started();
    let body = r#"{"toolCallId":"c","title":"t","rawInput":{"b":1.50,"a":12345678901234567890123}}"#;
    let event = Event {
        position: Position(9),
        origin: Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("r"),
            dialect: "acp".into(),
        }),
        run_id: RunId::trusted("r_1"),
        seq: 0,
        at: Timestamp::default(),
        kind: Kind::ToolCall,
        body: body.into(),
        native: None,
    };
    scene.screen.event(&event, &mut scene.out);
    let frames = String::from_utf8_lossy(&scene.out.frames).into_owned();
    assert!(frames.contains(r#""args":{"b":1.50,"a":12345678901234567890123}}"#), "{frames}");
}

#[test]
fn mirror_user_message_comes_whole_and_first() {
    let mut scene = Scene::new();
    let block = |text: &str| json!({ "content": { "type": "text", "text": text }, "_meta": { "plexus": {} } });
    scene.started();
    scene.event(Kind::UserMessageChunk, &block("look at"));
    assert!(scene.out.frames.is_empty(), "there may be more of it");
    scene.event(
        Kind::UserMessageChunk,
        &json!({ "content": { "type": "resource_link", "uri": "file:///x" }, "_meta": { "plexus": {} } }),
    );
    scene.event(Kind::AgentMessageChunk, &chunk("yes"));
    assert_eq!(
        scene.take_events(),
        [
            message("user_message", &json!({ "text": "look at\n@/x" })),
            message("model_output", &json!({ "text": "yes" }))
        ]
    );
    // An agent that tells what was said gives pieces of one text.
    scene.event(Kind::UserMessageChunk, &chunk("one ")).event(Kind::UserMessageChunk, &chunk("two"));
    assert_eq!(scene.take_events(), [message("user_message", &json!({ "text": "one two" }))]);
}

#[test]
fn mirror_request_is_a_command_a_file_or_other() {
    let of_call = |kind: &str| json!({ "native": { "toolCall": { "toolCallId": "c", "kind": kind } } });
    for (more, type_name) in [
        (of_call("execute"), "command_run"),
        (of_call("edit"), "file_access"),
        (of_call("read"), "file_access"),
        (of_call("fetch"), "permission"),
        (json!({ "native": { "id": "1", "type": "file_access", "options": [] } }), "file_access"),
        (json!({ "native": { "id": "1", "type": "command_run", "options": [] } }), "command_run"),
        (json!({ "native": { "id": "1", "type": "anything", "options": [] } }), "permission"),
        (json!({ "tool_call_id": "c1" }), "command_run"),
        (json!({ "type": "confirm" }), "confirm"),
        (json!({ "type": "elicitation", "options": [] }), "elicitation"),
    ] {
        let mut scene = Scene::new();
        scene
            .started()
            .event(Kind::ToolCall, &json!({ "toolCallId": "c1", "title": "ls", "kind": "execute" }))
            .take_events();
        let said = scene.event(Kind::RequestOpened, &request(more.clone())).take_events();
        assert_eq!(said[0]["data"]["type"], type_name, "{more}");
    }
}

#[test]
fn mirror_answer_names_the_option_and_other_ends_their_state() {
    for (resolved, selection) in [
        (json!({ "state": "answered", "option_id": "a", "ok": true }), "Allow"),
        (json!({ "state": "answered", "option_id": "e", "ok": true }), "Allow (e)"),
        (json!({ "state": "withdrawn", "option_id": "d", "reason": "answered elsewhere" }), "Deny"),
        (json!({ "state": "answered", "ids": ["i1", "i2"] }), "One, Two"),
        (json!({ "state": "answered", "ids": [] }), "answered"),
        (json!({ "state": "answered", "value": "words" }), "answered"),
        (json!({ "state": "withdrawn" }), "withdrawn"),
        (json!({ "state": "expired" }), "expired"),
        (json!({ "state": "orphaned" }), "orphaned"),
    ] {
        let mut scene = Scene::new();
        let items = json!({ "items": [{ "id": "i1", "label": "One" }, { "id": "i2", "label": "Two" }] });
        let said = scene.started().event(Kind::RequestOpened, &request(items)).take_events();
        assert_eq!(said[0]["data"]["options"], json!(["Allow", "Deny", "Allow (e)", "One", "Two"]));
        let mut body = resolved.clone();
        body["request_id"] = json!("q_1");
        let said = scene.event(Kind::RequestResolved, &body).take_events();
        assert_eq!(
            said,
            [message("permission_selection", &json!({ "id": "q_1", "selection": selection }))],
            "{resolved}"
        );
    }
}

#[test]
fn mirror_request_is_drawn_again_when_it_changes_not_when_it_ended() {
    let mut scene = Scene::new();
    scene
        .started()
        .event(Kind::ToolCall, &json!({ "toolCallId": "c1", "title": "ls", "kind": "execute" }))
        .take_events();
    let first = scene.event(Kind::RequestOpened, &request(json!({ "display": "ls" }))).take_events();
    let options = json!([{ "id": "a", "label": "Allow make install", "kind": "allow_once" }]);
    let changed = request(json!({ "display": "make install", "revision": 1, "changed": true, "options": options }));
    let again = scene.event(Kind::RequestUpdated, &changed).take_events();
    assert_eq!((again.len(), &again[0]["type"]), (1, &first[0]["type"]), "{again:?}");
    assert_eq!(again[0]["data"]["id"], first[0]["data"]["id"]);
    assert_eq!(again[0]["data"]["options"], json!(["Allow make install"]));
    scene.event(Kind::RequestResolved, &json!({ "request_id": "q_1", "state": "withdrawn" })).take_events();
    assert!(scene.event(Kind::RequestUpdated, &changed).take_events().is_empty());
}

#[test]
fn mirror_screen_follows_the_run_that_starts() {
    let mut scene = Scene::new();
    scene.started().event(Kind::AgentMessageChunk, &chunk("a1"));
    scene.event_in("s_2", "r_2", Kind::AgentMessageChunk, &chunk("unseen"));
    scene.event_in("s_2", "r_2", Kind::RequestOpened, &request(json!({ "session_id": "s_2" })));
    assert_eq!(scene.take_events(), [message("model_output", &json!({ "text": "a1" }))]);
    // Somebody prompts the other one.
    scene.event_in("s_2", "r_3", Kind::RunStarted, &json!({}));
    scene.event_in("s_2", "r_3", Kind::UserMessageChunk, &chunk("go"));
    scene.event(Kind::AgentMessageChunk, &chunk("unseen")).event(Kind::RunEnded, &json!({}));
    scene.event_in("s_2", "r_3", Kind::RunEnded, &json!({}));
    let (idle, go) = (message("idle", &json!({})), message("user_message", &json!({ "text": "go" })));
    assert_eq!(scene.take_events(), [idle.clone(), go, idle.clone()]);
    // And back, with nothing under way.
    scene.event_in("s_1", "r_4", Kind::RunStarted, &json!({}));
    scene.event_in("s_1", "r_4", Kind::RunEnded, &json!({}));
    assert_eq!(scene.take_events(), [idle]);
}

#[test]
fn mirror_queued_prompt_cancelled_ends_no_run() {
    let mut scene = Scene::new();
    scene.started();
    scene.event_in("s_1", "r_queued", Kind::RunEnded, &json!({ "status": "cancelled" }));
    assert!(scene.take_events().is_empty());
    scene.event(Kind::RunEnded, &json!({}));
    scene.event_in("s_1", "r_queued", Kind::RunEnded, &json!({ "status": "cancelled" }));
    assert_eq!(scene.take_events(), [message("idle", &json!({}))], "once");
    scene.event_in("s_1", "0", Kind::UserMessageChunk, &chunk("before"));
    scene.event_in("s_1", "0", Kind::AgentMessageChunk, &chunk("then"));
    let idle = message("idle", &json!({}));
    let (user, model) =
        (message("user_message", &json!({ "text": "before" })), message("model_output", &json!({ "text": "then" })));
    assert_eq!(scene.take_events(), [user, idle.clone(), model, idle]);
}

#[test]
fn cursors_come_to_those_who_ask_and_only_with_what_is_told_whole() {
    let mut scene = Scene::new();
    scene.out.cursors = Some("e:0".parse().unwrap());
    scene.started().event(Kind::UserMessageChunk, &chunk("hi"));
    scene.event(Kind::ToolCall, &json!({ "toolCallId": "c", "title": "t", "status": "completed" }));
    scene.event(Kind::RunEnded, &json!({}));
    let said = scene.take_events();
    let cursors: Vec<&str> = said.iter().map(|message| message["cursor"].as_str().unwrap()).collect();
    assert_eq!(cursors, ["e:2", "e:2", "e:3", "e:4"], "a tool call and its output are one event");
    // Coming back after one of them.
    let mut back = Scene::new();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_1"),
        runtime_id: RuntimeId::trusted("r"),
        dialect: "acp".into(),
    });
    let seen = |run: RunId, kind| Event {
        position: Position(1),
        origin: Arc::clone(&origin),
        run_id: run,
        seq: 0,
        at: Timestamp::default(),
        kind,
        body: "{}".into(),
        native: None,
    };
    for (run, kind, running) in [
        (RunId::trusted("r_1"), Kind::UserMessageChunk, true),
        (RunId::trusted("r_1"), Kind::RunEnded, false),
        (initial_run_id(&origin), Kind::AgentMessageChunk, false),
    ] {
        back.screen.restore(&seen(run, kind));
        assert_eq!(back.screen.running.is_some(), running, "{kind:?}");
        assert_eq!(back.screen.session.as_ref().map(SessionId::as_str), Some("s_1"));
    }
}

#[test]
fn mirror_query_has_a_cursor_and_never_a_token() {
    assert_eq!(after(None).unwrap(), None);
    assert_eq!(after(Some("")).unwrap(), None);
    assert_eq!(after(Some("after=")).unwrap(), Some(StartAfter::Oldest));
    assert_eq!(after(Some("after=now")).unwrap(), Some(StartAfter::Now));
    assert_eq!(after(Some("after=e:7")).unwrap(), Some(StartAfter::Cursor("e:7".parse().unwrap())));
    for bad in ["token=plx_x", "access_token=plx_x&after=", "after=x", "session=s_1"] {
        assert_eq!(after(Some(bad)).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[test]
fn mirror_partial_message_is_charged_and_split_without_room() {
    use plexus_ledger::{Ledger, LedgerLimits};
    let ledger = Ledger::new(LedgerLimits { connection: 8, ..LedgerLimits::default() });
    let account = ledger.connection("d_1");
    let mut scene = Scene::new();
    scene.screen.charge = Some(account.nothing());
    let piece = |text: &str| json!({ "content": { "type": "text", "text": text } });
    scene.started().event(Kind::UserMessageChunk, &piece("12345"));
    assert_eq!(account.used(), 5);
    scene.event(Kind::UserMessageChunk, &piece("678901")).event(Kind::UserMessageChunk, &piece("123456789"));
    assert_eq!(account.used(), 0, "what there is no room for is told at once");
    scene.event(Kind::UserMessageChunk, &piece("12"));
    let message = |text: &str| message("user_message", &json!({ "text": text }));
    assert_eq!(scene.take_events(), [message("12345"), message("678901"), message("123456789"), message("12")]);
    assert_eq!(account.used(), 0);
}
