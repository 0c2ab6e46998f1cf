//! Conversations that are opened again: the methods, and the treatment of the replayed past.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json as j};

use super::super::rig::{Rig, json, raw, spec};
use super::super::{EventDraft, McpServer, OpenedAs, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{Kind, RunStatus, RuntimeSpec, Ticket};

fn ready(agent: &str, can: Value) -> Rig {
    ready_with(&spec("acp"), agent, can)
}

fn ready_with(spec: &RuntimeSpec, agent: &str, can: Value) -> Rig {
    let mut rig = Rig::new(spec);
    let result = j!({ "protocolVersion": 1, "agentInfo": { "name": agent }, "agentCapabilities": can });
    rig.feed(j!({ "id": 0, "result": result }).to_string());
    assert!(matches!(rig.one(), RuntimeEvent::Ready { .. }));
    rig.sent();
    rig
}

fn open(rig: &mut Rig, known: bool) {
    let resume = Some(ResumeTarget::new("s".into(), known));
    rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume, mcp_servers: Vec::new() });
}

fn update(kind: &str, more: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","toolCallId":"t"{more}}}}}}}"#
    )
}

fn opened(rig: &mut Rig) -> (String, OpenedAs, Vec<EventDraft>) {
    match rig.one() {
        RuntimeEvent::Opened { ticket: Ticket(1), native, drafts, how } => (native.as_str().to_owned(), how, drafts),
        other => panic!("{other:?}"),
    }
}

fn codes(drafts: &[EventDraft]) -> Vec<Value> {
    drafts.iter().map(|draft| json(&draft.body)["code"].clone()).collect()
}

const LOAD: &str = r#"{"loadSession":true}"#;
const RESUME: &str = r#"{"sessionCapabilities":{"resume":{}}}"#;
const BOTH: &str = r#"{"loadSession":true,"sessionCapabilities":{"resume":{}}}"#;

/// Makes an agent that loads and is requested to open `s` again, with request id 1.
fn loading(known: bool) -> Rig {
    let mut rig = ready("a", json(LOAD.as_bytes()));
    open(&mut rig, known);
    assert_eq!(rig.sent()[0]["method"], "session/load");
    rig
}

#[test]
fn acp_quirk_fast_agent_runs_commands_in_the_folder_of_its_process() {
    for (agent, fixed) in [("fast-agent-acp", true), ("gemini-cli", false)] {
        assert_eq!(ready(agent, j!({})).dialect.fixed_folder(), fixed, "{agent}");
    }
}

#[test]
fn acp_quirk_fast_agent_is_never_told_to_resume() {
    let mut rig = ready("fast-agent-acp", json(BOTH.as_bytes()));
    open(&mut rig, true);
    assert_eq!(rig.sent()[0]["method"], "session/load");
}

#[test]
fn acp_open_resumes_by_the_method_that_the_agent_has() {
    for (can, known, method) in [
        (BOTH, true, "session/resume"),
        (BOTH, false, "session/load"),
        (LOAD, true, "session/load"),
        (LOAD, false, "session/load"),
        (RESUME, true, "session/resume"),
        (RESUME, false, "session/resume"),
        (r#"{"loadSession":false,"sessionCapabilities":{"resume":null}}"#, true, "session/new"),
        ("{}", true, "session/new"),
        ("7", true, "session/new"),
    ] {
        let mut rig = ready("a", json(can.as_bytes()));
        open(&mut rig, known);
        let sent = rig.sent();
        assert_eq!(sent[0]["method"], method, "{can} {known}");
        let new = method == "session/new";
        let named = if new { Value::Null } else { j!("s") };
        assert_eq!((&sent[0]["params"]["cwd"], &sent[0]["params"]["sessionId"]), (&j!("/w"), &named));
        rig.feed(r#"{"id":1,"result":{"sessionId":"n"}}"#);
        let (native, how, drafts) = opened(&mut rig);
        let want = if new { ("n", OpenedAs::New) } else { ("s", OpenedAs::Resumed) };
        assert_eq!((native.as_str(), how), want, "{can} {known}");
        let reports = match (new, known, method) {
            (true, ..) => vec![j!("not_resumed")],
            (_, false, "session/resume") => vec![j!("past_unknown")],
            _ => vec![],
        };
        assert_eq!(codes(&drafts), reports, "{can} {known}");
    }
}

#[test]
fn acp_open_never_replaces_an_unknown_conversation_by_a_new_one() {
    let mut rig = ready("a", j!({}));
    open(&mut rig, false);
    assert!(
        matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.message.contains("cannot reopen a conversation"))
    );
    let mut rig = loading(false);
    rig.feed(r#"{"id":1,"error":{"code":-32602,"message":"not found"}}"#);
    assert!(
        matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.code == -32602 && error.message.contains("not found"))
    );
    assert!(rig.sent().is_empty());
}

#[test]
fn acp_open_replaces_a_lost_known_conversation_and_says_so() {
    let mut rig = loading(true);
    rig.feed(r#"{"id":1,"error":{"code":-32603,"message":"Invalid session identifier"}}"#);
    assert!(rig.take_events().is_empty());
    assert_eq!(rig.sent()[0]["method"], "session/new");
    rig.feed(r#"{"id":2,"result":{"sessionId":"n"}}"#);
    let (native, how, drafts) = opened(&mut rig);
    assert_eq!((native.as_str(), how), ("n", OpenedAs::New));
    assert!(json(&drafts[0].body)["message"].as_str().unwrap().contains("Invalid session identifier"));
    // The old name is as good as any other again.
    rig.feed(update("plan", ""));
    assert!(json(&rig.event().body)["_meta"].is_null());
}

#[test]
fn acp_open_sends_session_meta_with_every_method() {
    for (can, method) in [("{}", "session/new"), (LOAD, "session/load"), (RESUME, "session/resume")] {
        let meta = Some(raw(r#"{"claudeCode":{}}"#));
        let mut rig = ready_with(&RuntimeSpec { session_meta: meta, ..spec("acp") }, "a", json(can.as_bytes()));
        open(&mut rig, true);
        let sent = rig.sent();
        assert_eq!((&sent[0]["method"], &sent[0]["params"]["_meta"]), (&j!(method), &j!({ "claudeCode": {} })));
        assert_eq!(sent[0]["params"]["mcpServers"], j!([]));
    }
}

#[test]
fn acp_replay_of_a_known_past_is_left_out_but_not_the_current_settings() {
    let mut rig = loading(true);
    for kind in Kind::ALL.iter().filter(|kind| kind.is_acp()) {
        rig.feed(update(kind.as_str(), ""));
    }
    let kept: Vec<_> = rig
        .take_events()
        .iter()
        .map(|event| match event {
            RuntimeEvent::Event { draft, .. } => draft.kind,
            other => panic!("{other:?}"),
        })
        .collect();
    let state = [
        Kind::AvailableCommandsUpdate,
        Kind::CurrentModeUpdate,
        Kind::ConfigOptionUpdate,
        Kind::SessionInfoUpdate,
        Kind::UsageUpdate,
    ];
    assert_eq!(kept, state);
    rig.feed(update("odd", ""));
    assert_eq!(rig.event().kind, Kind::Raw, "what is not understood is shown twice rather than never");
}

#[test]
fn acp_replay_of_an_unknown_past_is_shown_and_marked() {
    let mut rig = loading(false);
    for (more, meta) in [
        ("", j!({ "plexus": { "replay": true } })),
        (r#","_meta":{"a":1.50,"plexus":7}"#, j!({ "plexus": { "replay": true }, "a": 1.5 })),
        (r#","_meta":null"#, j!({ "plexus": { "replay": true } })),
    ] {
        rig.feed(update("user_message_chunk", more));
        let body = json(&rig.event().body);
        assert_eq!(body, j!({ "sessionUpdate": "user_message_chunk", "toolCallId": "t", "_meta": meta }));
    }
    rig.feed(update("tool_call", "\n,\"n\":1.50"));
    let draft = rig.event();
    assert_eq!(
        &draft.body[..],
        br#"{"sessionUpdate":"tool_call","toolCallId":"t","n":1.50,"_meta":{"plexus":{"replay":true}}}"#
    );
    assert!(draft.tool.is_some());
    rig.feed(r#"{"id":1,"result":null}"#);
    assert_eq!(opened(&mut rig).1, OpenedAs::Resumed);
}

#[test]
fn acp_replay_after_the_reply_is_no_part_of_the_run() {
    for known in [true, false] {
        let mut rig = loading(known);
        rig.feed(r#"{"id":1,"result":{}}"#);
        opened(&mut rig);
        rig.prompt(7, "s", "hi");
        assert!(rig.sent().is_empty(), "held while the agent may replay");
        assert_eq!(rig.dialect.prompts(), [Ticket(7)]);
        for _ in 0..3 {
            rig.feed(update("agent_message_chunk", ""));
            let events = rig.take_events();
            assert_eq!(events.len(), usize::from(!known));
            rig.wake();
            assert!(rig.sent().is_empty(), "it replayed a moment ago");
        }
        rig.wake();
        let sent = rig.sent();
        assert_eq!((sent.len(), &sent[0]["method"]), (1, &j!("session/prompt")));
        rig.feed(update("agent_message_chunk", ""));
        assert!(json(&rig.event().body)["_meta"].is_null(), "the run's own");
        rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
        assert_eq!(rig.end().0, 7);
    }
}

#[test]
fn acp_replay_that_comes_late_is_waited_for() {
    let mut rig = loading(true);
    rig.feed(r#"{"id":1,"result":{}}"#);
    opened(&mut rig);
    let woken = rig.wakes;
    rig.wake();
    rig.wake();
    assert_eq!(rig.wakes, woken + 1, "it is quiet: no more to wait for");
    rig.feed(update("plan", ""));
    assert!(rig.take_events().is_empty());
    rig.prompt(7, "s", "hi");
    assert!(rig.sent().is_empty() && rig.wakes == woken + 2);
    rig.wake();
    rig.wake();
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn acp_replay_that_is_over_delays_no_prompt() {
    let mut rig = loading(true);
    rig.feed(r#"{"id":1,"result":{}}"#);
    opened(&mut rig);
    rig.wake();
    rig.wake();
    rig.prompt(7, "s", "hi");
    assert_eq!(rig.sent()[0]["method"], "session/prompt");
}

#[test]
fn acp_replay_without_end_delays_a_prompt_for_a_bounded_time() {
    let mut rig = loading(true);
    rig.feed(r#"{"id":1,"result":{}}"#);
    rig.prompt(7, "s", "hi");
    let mut ticks = 0;
    while rig.sent().is_empty() {
        rig.feed(update("agent_message_chunk", ""));
        rig.wake();
        ticks += 1;
        assert!(ticks < 1000);
    }
}

#[test]
fn acp_replay_prompt_that_waits_can_be_cancelled() {
    let mut rig = loading(true);
    rig.feed(r#"{"id":1,"result":{}}"#);
    opened(&mut rig);
    rig.prompt(7, "s", "hi");
    rig.cancel(7, "s");
    let (ticket, end) = rig.end();
    assert_eq!((ticket, end.status), (7, RunStatus::Cancelled));
    rig.wake();
    rig.wake();
    assert!(rig.sent().is_empty() && rig.dialect.prompts().is_empty());
}

#[test]
fn acp_quirk_gemini_loads_no_conversation_in_the_minute_of_its_creation() {
    let mut rig = ready("gemini-cli", json(LOAD.as_bytes()));
    open(&mut rig, true);
    let reason = json(&rig.event().body);
    assert!(reason["message"].as_str().unwrap().contains("Gemini"), "{reason}");
    assert!(rig.sent().is_empty());
    let mut ticks = 0;
    while rig.sent.is_empty() {
        assert_eq!(rig.wakes, ticks + 1, "it asks to be woken, once a tick");
        rig.wake();
        ticks += 1;
    }
    assert!((61..=70).contains(&ticks), "more than a minute: {ticks}");
    assert_eq!(rig.sent()[0]["method"], "session/load");
    // A new one need not wait.
    let mut rig = ready("gemini-cli", json(LOAD.as_bytes()));
    rig.open(1);
    assert_eq!(rig.sent()[0]["method"], "session/new");
}

#[test]
fn acp_quirk_gemini_replay_is_waited_for_after_the_response() {
    // The past of a loaded conversation, and a prompt that is there at once.
    let loaded = |before: bool| {
        let mut rig = ready("gemini-cli", json(LOAD.as_bytes()));
        open(&mut rig, true);
        rig.take_events();
        while rig.sent.is_empty() {
            rig.wake();
        }
        rig.sent();
        if before {
            rig.feed(update("agent_message_chunk", ""));
        }
        rig.feed(r#"{"id":1,"result":{}}"#);
        opened(&mut rig);
        rig.prompt(7, "s", "hi");
        rig
    };
    let held = |rig: &mut Rig| {
        let mut ticks = 0;
        while rig.sent.is_empty() {
            rig.wake();
            ticks += 1;
        }
        ticks
    };
    let mut rig = loaded(false);
    for _ in 0..19 {
        rig.wake();
    }
    assert!(rig.sent().is_empty(), "the replay has yet to begin");
    rig.feed(update("agent_message_chunk", ""));
    assert!(rig.take_events().is_empty());
    assert_eq!(held(&mut rig), 2, "it began, and is quiet");
    assert_eq!(held(&mut loaded(false)), 20, "no replay comes");
    assert_eq!(held(&mut loaded(true)), 2, "it began before the response");
}

#[test]
fn acp_open_never_loads_a_conversation_with_a_run() {
    let mut rig = ready("a", json(BOTH.as_bytes()));
    rig.prompt(7, "s", "hi");
    rig.sent();
    for known in [true, false] {
        open(&mut rig, known);
        assert!(matches!(rig.one(), RuntimeEvent::NotOpened { error, .. } if error.message.contains("is running")));
        assert!(rig.sent().is_empty());
    }
}

#[test]
fn acp_open_signs_in_before_it_resumes() {
    let mut rig = Rig::new(&spec("acp"));
    let methods = j!([{ "id": "env", "name": "E", "type": "env_var" }]);
    let result = j!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true }, "authMethods": methods });
    rig.feed(j!({ "id": 0, "result": result }).to_string());
    rig.take_events();
    open(&mut rig, true);
    rig.sent();
    rig.feed(r#"{"id":1,"error":{"code":-32000,"message":"sign in"}}"#);
    assert_eq!(rig.sent()[0]["method"], "authenticate");
    rig.feed(r#"{"id":2,"result":{}}"#);
    let sent = rig.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["sessionId"]), (&j!("session/load"), &j!("s")));
}

#[test]
fn acp_lost_connection_ends_what_waited_on_it() {
    let mut rig = ready("a", j!({}));
    rig.open(1);
    rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    rig.prompt(7, "s", "hi");
    rig.open(8);
    rig.call("s", "_x", None);
    let options = r#"[{"optionId":"y","name":"Y","kind":"allow_once"}]"#;
    rig.feed(format!(
        r#"{{"id":5,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{}},"options":{options}}}}}"#
    ));
    rig.ask();
    rig.sent();
    rig.lose();
    let events = rig.take_events();
    assert!(matches!(&events[0], RuntimeEvent::Ended { ticket: Ticket(7), end, .. } if end.status == RunStatus::Error));
    assert!(
        matches!(&events[1], RuntimeEvent::NotOpened { ticket: Ticket(8), error } if error.message.contains("gone"))
    );
    assert!(matches!(&events[2], RuntimeEvent::Replied { ticket: Ticket(99), reply: Err(_) }));
    assert!(matches!(&events[3], RuntimeEvent::TakenBack { native: Some(_), key, .. } if key.id() == "5"));
    assert!(rig.dialect.asks().is_empty() && rig.dialect.prompts().is_empty());
    rig.prompt(9, "s", "hi");
    assert_eq!(rig.end().0, 9, "not sent into the void");
    assert!(rig.sent().is_empty());
}

#[test]
fn acp_lost_connection_is_followed_by_reopened_sessions() {
    for (can, method) in [(LOAD, Some("session/load")), (BOTH, Some("session/resume")), ("{}", None)] {
        let mut rig = ready("a", json(can.as_bytes()));
        rig.open(1);
        rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
        rig.take_events();
        rig.sent();
        rig.lose();
        assert!(rig.take_events().is_empty());
        rig.connect();
        assert_eq!(rig.sent()[0]["id"], 2, "old replies are for nobody");
        let result = j!({ "protocolVersion": 1, "agentCapabilities": json(can.as_bytes()) });
        rig.feed(j!({ "id": 2, "result": result }).to_string());
        let events = rig.take_events();
        assert!(matches!(&events[0], RuntimeEvent::Ready { .. }));
        let Some(method) = method else {
            assert!(
                matches!(&events[1], RuntimeEvent::Event { draft, .. } if json(&draft.body)["code"] == "session_lost")
            );
            continue;
        };
        let sent = rig.sent();
        assert_eq!((&sent[0]["method"], &sent[0]["params"]["sessionId"]), (&j!(method), &j!("s")));
        rig.feed(r#"{"id":3,"result":{"modes":{"currentModeId":"ask"}}}"#);
        assert_eq!(rig.event().kind, Kind::CurrentModeUpdate);
        // A replay is of what is known.
        rig.feed(update("agent_message_chunk", ""));
        assert_eq!(rig.take_events().len(), usize::from(method == "session/resume"));
    }
}

fn can(rig: &Rig) -> Vec<&'static str> {
    rig.dialect.capabilities().iter().map(plexus_protocol::Capability::as_str).collect()
}

#[test]
fn acp_capabilities_come_from_the_handshake_and_from_sessions() {
    let events = j!({
        "loadSession": true, "sessionCapabilities": { "list": {}, "fork": false }, "auth": { "logout": {} },
        "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
        "mcpCapabilities": { "http": true }, "_meta": { "plexus": { "edits": true } },
    });
    let mut rig = ready("a", events);
    let known = ["load", "list", "logout", "cancel", "requests", "edits", "images", "embedded_context", "mcp_http"];
    assert_eq!(can(&rig), known);
    assert_eq!(can(&ready("a", j!({}))), ["cancel", "requests"]);
    // Modes and models come with a session, and stay known over a restart of the gateway.
    rig.open(1);
    let id = rig.sent()[0]["id"].clone();
    let result = j!({
        "sessionId": "n1", "modes": { "currentModeId": "ask", "availableModes": [] },
        "models": { "currentModelId": "m", "availableModels": [{ "modelId": "m" }] },
    });
    rig.feed(j!({ "id": id, "result": result }).to_string());
    assert!(can(&rig).contains(&"modes") && can(&rig).contains(&"models"));
    let saved = rig.dialect.save().unwrap();
    let mut next = ready("a", j!({}));
    assert!(next.dialect.restore(&saved));
    assert_eq!(can(&next), can(&rig));
}

fn own_server() -> McpServer {
    McpServer::Own {
        name: "plexus_k3f9".into(),
        command: "/bin/plexus".into(),
        args: vec!["mcp".into()],
        env: [("PLEXUS_HOME".to_owned(), "/home".to_owned())].into(),
    }
}

/// Opens a session of this agent with the gateway's own server, and one that a client named.
fn with_servers(agent: &str) -> (Rig, Value) {
    let mut rig = ready(agent, j!({}));
    let given = McpServer::Given(raw(r#"{"name":"mine","command":"/bin/mine","args":[],"env":[]}"#));
    let mcp_servers = vec![own_server(), given];
    rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers });
    let sent = rig.sent().remove(0);
    rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
    opened(&mut rig);
    (rig, sent["params"].clone())
}

#[test]
fn acp_open_names_the_mcp_servers_of_the_session() {
    let (_, params) = with_servers("a");
    let own = j!({ "name": "plexus_k3f9", "command": "/bin/plexus", "args": ["mcp"],
        "env": [{ "name": "PLEXUS_HOME", "value": "/home" }] });
    let given = j!({ "name": "mine", "command": "/bin/mine", "args": [], "env": [] });
    assert_eq!((&params["mcpServers"], &params["_meta"]), (&j!([own, given]), &j!(null)));
}

#[test]
fn acp_quirk_gateways_own_tools_are_allowed_at_the_opening() {
    let (_, params) = with_servers("@agentclientprotocol/claude-agent-acp");
    assert_eq!(params["_meta"], j!({ "claudeCode": { "options": { "allowedTools": ["mcp__plexus_k3f9"] } } }));
    let meta = Some(raw(r#"{"claudeCode":{"options":{"allowedTools":["Read"],"model":"m"}},"x":1}"#));
    let spec = RuntimeSpec { session_meta: meta, ..spec("acp") };
    let mut rig = ready_with(&spec, "@agentclientprotocol/claude-agent-acp", j!({}));
    let mcp_servers = vec![own_server()];
    rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers });
    let allowed =
        j!({ "claudeCode": { "options": { "allowedTools": ["Read", "mcp__plexus_k3f9"], "model": "m" } }, "x": 1 });
    assert_eq!(rig.sent()[0]["params"]["_meta"], allowed);
}

#[test]
fn acp_quirk_new_conversations_leave_the_mode_without_requests() {
    const CLAUDE: &str = "@agentclientprotocol/claude-agent-acp";
    let opened_in = |agent, mode: &str| {
        let mut rig = ready(agent, j!({}));
        rig.tell(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers: Vec::new() });
        rig.sent();
        let modes = j!({ "currentModeId": mode, "availableModes": [] });
        rig.feed(j!({ "id": 1, "result": { "sessionId": "s", "modes": modes } }).to_string());
        rig
    };
    for (agent, mode) in [(CLAUDE, "default"), (CLAUDE, "plan"), ("another", "auto")] {
        let mut rig = opened_in(agent, mode);
        assert_eq!(opened(&mut rig).1, OpenedAs::New, "{agent} {mode}");
        assert!(rig.sent().is_empty(), "{agent} {mode}");
    }

    let mut rig = opened_in(CLAUDE, "auto");
    assert!(rig.take_events().is_empty(), "no prompt is possible before the mode is set");
    let sent = rig.sent();
    assert_eq!(sent[0]["method"], "session/set_mode");
    assert_eq!(sent[0]["params"], j!({ "sessionId": "s", "modeId": "default" }));
    rig.feed(j!({ "id": 2, "result": {} }).to_string());
    let [RuntimeEvent::Opened { native, .. }, RuntimeEvent::Event { native: Some(named), draft }] =
        &rig.take_events()[..]
    else {
        panic!("the conversation is open, and its mode is reported");
    };
    assert_eq!((native, draft.kind), (named, Kind::CurrentModeUpdate));
    assert_eq!(json(&draft.body)["currentModeId"], "default");

    let mut rig = opened_in(CLAUDE, "auto");
    rig.feed(j!({ "id": 2, "error": { "code": -32603, "message": "no such mode" } }).to_string());
    let RuntimeEvent::NotOpened { ticket: Ticket(1), error } = rig.one() else { panic!("nobody would be asked") };
    assert!(error.message.contains("does not ask") && error.message.contains("no such mode"), "{error:?}");
}

#[test]
fn acp_quirk_calls_of_the_gateways_own_tools_are_allowed() {
    let offer = |id: &str, kind: &str| j!({ "optionId": id, "name": id, "kind": kind });
    let gemini = [offer("proceed_always_server", "allow_always"), offer("proceed_once", "allow_once")];
    let plain = [offer("yes", "allow_once"), offer("no", "reject_once")];
    for (agent, call, options, allowed) in [
        ("gemini-cli", j!({ "toolCallId": "mcp_plexus_k3f9_ui_show-1" }), &gemini, Some("proceed_once")),
        ("gemini-cli", j!({ "toolCallId": "mcp_mine_ui_show-1" }), &gemini, None),
        ("gemini-cli", j!({ "toolCallId": "x", "title": "mcp_plexus_k3f9_ui_show" }), &gemini, None),
        ("gemini-cli", j!({ "toolCallId": "mcp_plexus_k3f9_ui_show-1" }), &plain, None),
        ("qwen-code", j!({ "toolCallId": "x", "_meta": { "serverId": "plexus_k3f9" } }), &plain, Some("yes")),
        ("qwen-code", j!({ "toolCallId": "announced" }), &plain, Some("yes")),
        ("qwen-code", j!({ "toolCallId": "x", "_meta": { "serverId": "mine" } }), &plain, None),
        ("qwen-code", j!({ "toolCallId": "x", "title": "plexus_k3f9" }), &plain, None),
        ("another", j!({ "toolCallId": "x", "_meta": { "serverId": "plexus_k3f9" } }), &plain, None),
    ] {
        let (mut rig, _) = with_servers(agent);
        let reports = j!({ "sessionUpdate": "tool_call", "toolCallId": "announced", "title": "t", "_meta": { "serverId": "plexus_k3f9" } });
        let reports = j!({ "method": "session/update", "params": { "sessionId": "s", "update": reports } });
        rig.feed(reports.to_string());
        rig.take_events();
        let params = j!({ "sessionId": "s", "toolCall": call, "options": options });
        rig.feed(j!({ "id": 9, "method": "session/request_permission", "params": params }).to_string());
        let (events, sent) = (rig.take_events(), rig.sent());
        match allowed {
            Some(option) => {
                let outcome = j!({ "outcome": "selected", "optionId": option });
                assert_eq!(sent[0]["result"]["outcome"], outcome, "{agent} {call}");
                let bodies = events.iter().map(|event| match event {
                    RuntimeEvent::Event { draft, .. } => String::from_utf8_lossy(&draft.body).into_owned(),
                    other => panic!("{agent} {call}: {other:?}"),
                });
                assert!(bodies.collect::<String>().contains("need no approval"), "the rule is in the log");
            }
            None => {
                assert!(sent.is_empty(), "{agent} {call}: {sent:?}");
                let asked = events.iter().any(|event| matches!(event, RuntimeEvent::Asked { .. }));
                assert!(asked, "{agent} {call}: people are asked");
            }
        }
    }
}
