//! Tests of the dialect with a simulated UI: the messages of the mirror, and the requests to the remote control.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::RequestSubject;
use super::super::rig::{raw, spec};
use super::*;
use plexus_protocol::{Choice, Kind, RuntimeSpec};

struct Ui {
    dialect: Box<dyn Dialect>,
    event: Vec<RuntimeEvent>,
    fetches: Vec<HttpRequest>,
    wakes: bool,
}

impl Ui {
    fn new(remote: bool) -> Self {
        let remote = remote.then(|| "http://127.0.0.1:1".to_owned());
        let spec = RuntimeSpec { remote, ..spec("gemini-mirror") };
        Self { dialect: make(&spec), event: Vec::new(), fetches: Vec::new(), wakes: false }
    }

    /// Makes a connected and open session, whose history was read.
    fn open(remote: bool) -> Self {
        let mut ui = Self::new(remote);
        ui.step(|dialect, out| dialect.open(out));
        assert_eq!(ui.words(), ["ready", "found ui"]);
        ui.resume(false);
        assert_eq!(ui.words()[0], "opened ui");
        if remote {
            ui.history(json!([]));
        }
        ui.words();
        ui
    }

    fn step(&mut self, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        let mut out = Outbox::default();
        step(&mut *self.dialect, &mut out);
        assert!(out.frames.is_empty(), "the mirror takes nothing");
        for event in &out.events {
            if let RuntimeEvent::Event { draft, native } = event {
                assert_eq!(native.as_ref().map(|native| native.as_str()), Some("ui"));
                let body: Value = serde_json::from_slice(&draft.body).unwrap();
                assert!(body.is_object() && !draft.body.contains(&b'\n'), "{draft:?}");
            }
        }
        self.event.extend(out.events);
        self.fetches.extend(out.fetches);
        self.wakes = out.wake_after.is_some();
    }

    fn resume(&mut self, known: bool) {
        let resume = Some(ResumeTarget::new("ui".into(), known));
        self.step(|dialect, out| {
            dialect.command(
                RuntimeCommand::Open { ticket: Ticket(1), cwd: "/".into(), resume, mcp_servers: Vec::new() },
                out,
            )
        });
    }

    fn feed(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        self.step(|dialect, out| dialect.feed(bytes, out));
    }

    fn mirror_sends(&mut self, type_name: &str, data: Value) {
        self.feed(format!("{}\0", json!({ "type": type_name, "data": data })));
    }

    fn prompt(&mut self, ticket: u64, text: &str) {
        let content = vec![raw(&json!({ "type": "text", "text": text }).to_string())];
        let command = RuntimeCommand::Prompt { ticket: Ticket(ticket), native: "ui".into(), content };
        self.step(|dialect, out| dialect.command(command, out));
    }

    fn cancel(&mut self, ticket: Option<u64>) {
        let command = RuntimeCommand::Cancel { ticket: ticket.map(Ticket), native: "ui".into(), reason: None };
        self.step(|dialect, out| dialect.command(command, out));
    }

    fn reconnect(&mut self) {
        self.step(|dialect, out| dialect.lost("it went away", out));
        self.step(|dialect, out| dialect.open(out));
        self.event.retain(|event| !matches!(event, RuntimeEvent::Ready { .. } | RuntimeEvent::Found { .. }));
    }

    /// Returns the pending request, as a line.
    fn asked(&mut self) -> (u64, String) {
        assert_eq!(self.fetches.len(), 1, "{:?}", self.fetches);
        let fetch = self.fetches.remove(0);
        assert_eq!(fetch.base, HttpBase::Remote);
        let body = fetch.body.map(|body| format!(" {}", String::from_utf8_lossy(&body))).unwrap_or_default();
        (fetch.id, format!("{} {}{body}", fetch.method, fetch.path))
    }

    fn reply(&mut self, reply: Result<(u16, &str), &str>) -> String {
        let (id, line) = self.asked();
        let reply = reply.map(|(status, body)| HttpReply { status, body: Bytes::copy_from_slice(body.as_bytes()) });
        self.step(|dialect, out| dialect.reply(id, reply.map_err(Into::into), out));
        line
    }

    fn history(&mut self, turns: Value) {
        assert_eq!(self.reply(Ok((200, &turns.to_string()))), "GET /history?limit=256");
    }

    fn tick(&mut self, times: u32) {
        for _ in 0..times {
            assert!(self.wakes, "nothing waits");
            self.step(|dialect, out| dialect.wake(out));
        }
    }

    /// Returns the events since the last call, in short form.
    fn words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.event).iter().map(word).collect()
    }
}

fn word(event: &RuntimeEvent) -> String {
    let end = |end: &RunEnd| {
        let message = end.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("{:?}{message}", end.status)
    };
    match event {
        RuntimeEvent::Ready { .. } => "ready".into(),
        RuntimeEvent::Found { native, .. } => format!("found {native}"),
        RuntimeEvent::Opened { native, .. } => format!("opened {native}"),
        RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
        RuntimeEvent::Began { by, .. } => format!("began by {by}"),
        RuntimeEvent::Done { end: how, .. } => format!("done {}", end(how)),
        RuntimeEvent::Ended { ticket, end: how, .. } => format!("ended {} {}", ticket.0, end(how)),
        RuntimeEvent::Asked { ask, .. } => format!("asked {}: {}", ask.key.id(), ask.title),
        RuntimeEvent::TakenBack { key, elsewhere, .. } => {
            let elsewhere = elsewhere.as_ref().unwrap();
            format!("taken back {}: {} chose {:?}", key.id(), elsewhere.by, elsewhere.option_id)
        }
        RuntimeEvent::Event { draft, .. } => {
            let body: Value = serde_json::from_slice(&draft.body).unwrap();
            match draft.kind {
                Kind::UserMessageChunk => format!("user {}", body["content"]["text"].as_str().unwrap()),
                Kind::AgentMessageChunk => format!("model {}", body["content"]["text"].as_str().unwrap()),
                Kind::Error => format!("{}: {}", body["code"].as_str().unwrap(), body["message"].as_str().unwrap()),
                Kind::Raw => format!("raw: {}", body["reason"].as_str().unwrap()),
                kind => format!("{} {}", kind.as_str(), String::from_utf8_lossy(&draft.body)),
            }
        }
        other => format!("{other:?}"),
    }
}

const BEGAN: &str = "began by a user of the Gemini UI";

#[test]
fn mirror_translates_all_events_and_keeps_their_bytes() {
    let mut ui = Ui::open(true);
    ui.mirror_sends("user_message", json!({ "text": "Write a python script" }));
    ui.mirror_sends("model_output", json!({ "text": "Here is the " }));
    let shell = json!({ "callId": "call_1", "name": "run_shell_command", "args": { "command": "echo hello" } });
    ui.mirror_sends("tool_call", shell);
    ui.mirror_sends(
        "permission_dialog",
        json!({ "id": "req_1", "type": "command_run", "options": ["Allow", "Deny", "Always Allow"] }),
    );
    let Some(RuntimeEvent::Asked { ask, .. }) = ui.event.last() else { panic!() };
    assert!(ask.observe_only);
    assert_eq!(ask.tool_call_id.as_deref(), Some("call_1"));
    assert_eq!(ask.subject, RequestSubject::Command { argv: vec!["echo hello".into()], cwd: None });
    let kinds: Vec<_> = ask.options.iter().map(|offer| (offer.id.as_str(), offer.kind)).collect();
    assert_eq!(
        kinds,
        [("Allow", Choice::AllowOnce), ("Deny", Choice::RejectOnce), ("Always Allow", Choice::AllowAlways)]
    );
    ui.mirror_sends("permission_selection", json!({ "id": "req_1", "selection": "Allow" }));
    ui.mirror_sends("tool_output", json!({ "callId": "call_1", "output": "hello " }));
    ui.feed("{\"type\":\"hook\",\n\"data\":{\"hookName\":\"on_session_start\",\n\"eventName\":\"hook_end\",\"success\":true}}\0");
    let Some(RuntimeEvent::Event { draft, .. }) = ui.event.last() else { panic!() };
    assert!(draft.native.as_ref().unwrap().starts_with(b"{\"type\":\"hook\",\n"), "verbatim");
    ui.feed("{\"type\":\"idle\",\"data\":{}}\0");
    let Some(RuntimeEvent::Done { end, .. }) = ui.event.last() else { panic!() };
    assert_eq!(
        (end.stop_reason.as_deref(), end.native.as_deref()),
        (Some("idle"), Some(&b"{\"type\":\"idle\",\"data\":{}}"[..]))
    );
    ui.mirror_sends("surprise", json!({ "a": 1 }));
    ui.feed("no json\0");
    ui.mirror_sends("model_output", json!({ "txt": 1 }));
    let call = r#"tool_call {"sessionUpdate":"tool_call","toolCallId":"call_1","title":"run_shell_command","kind":"execute","status":"in_progress","rawInput":{"command":"echo hello"}}"#;
    let output = r#"tool_call_update {"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"hello "}}],"rawOutput":"hello "}"#;
    let unknown = "raw: a mirror event that is unknown or malformed";
    assert_eq!(
        ui.words(),
        [
            BEGAN,
            "user Write a python script",
            "model Here is the ",
            call,
            "asked \"req_1\": The Gemini UI asks to run a command",
            "taken back \"req_1\": a user of the Gemini UI chose Some(\"Allow\")",
            output,
            r#"hook {"hookName":"on_session_start","eventName":"hook_end","success":true}"#,
            "done Completed",
            unknown,
            "raw: a message that could not be parsed",
            unknown,
        ]
    );
}

#[test]
fn mirror_splits_and_joins_messages() {
    let mut ui = Ui::open(true);
    let stream: String = [json!({ "text": "a" }), json!({ "text": "b" })]
        .iter()
        .map(|data| format!("{}\0", json!({ "type": "model_output", "data": data })))
        .collect();
    let (one, two) = stream.split_at(stream.len() - 7);
    ui.feed(one.to_owned());
    assert_eq!(ui.words(), [BEGAN, "model a"]);
    ui.feed(two.to_owned());
    assert_eq!(ui.words(), ["model b"]);
    ui.feed("{\"half");
    ui.reconnect();
    assert_eq!(ui.words(), ["raw: the connection was lost in the middle of a message"]);
}

#[test]
fn mirror_reports_history_once_and_before_later_events() {
    let mut ui = Ui::new(true);
    ui.step(|dialect, out| dialect.open(out));
    ui.words();
    // Before the gateway has opened it, and before the history is known.
    ui.mirror_sends("user_message", json!({ "text": "two" }));
    ui.resume(false);
    ui.mirror_sends("model_output", json!({ "text": "2" }));
    assert_eq!(ui.words(), ["opened ui"]);
    // Not ready, three times.
    for _ in 0..3 {
        assert_eq!(ui.reply(Ok((503, ""))), "GET /history?limit=256");
        ui.tick(1);
    }
    ui.history(json!([
        { "role": "user", "text": "one" }, { "role": "model", "text": "1" }, { "role": "user", "text": "two" }
    ]));
    assert_eq!(ui.words(), ["user one", "model 1", BEGAN, "user two", "model 2"]);
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), ["done Completed"]);
    assert!(!ui.wakes);
}

#[test]
fn mirror_reports_an_unavailable_history() {
    let replies = [
        (Ok((503, "")), READY_TICKS, "it is not ready (503)"),
        (Err("refused"), CONNECT_TICKS, "refused"),
        (Ok((404, "")), 1, "it answered 404"),
        (Ok((200, "{}")), 1, "its history could not be parsed"),
    ];
    for (reply, times, reason) in replies {
        let mut ui = Ui::new(true);
        ui.step(|dialect, out| dialect.open(out));
        ui.resume(false);
        ui.mirror_sends("model_output", json!({ "text": "live" }));
        ui.words();
        for n in 0..times {
            if n > 0 {
                ui.tick(1);
            }
            assert_eq!(ui.words(), [""; 0]);
            ui.reply(reply);
        }
        assert_eq!(
            ui.words(),
            [
                format!("gap: some earlier messages of the UI are missing here: {reason}"),
                BEGAN.into(),
                "model live".into()
            ]
        );
    }
    // Too much is held meanwhile.
    let mut ui = Ui::new(true);
    ui.step(|dialect, out| dialect.open(out));
    ui.resume(false);
    for n in 0..=HELD_MAX {
        ui.mirror_sends("model_output", json!({ "text": n.to_string() }));
    }
    let words = ui.words();
    assert_eq!(words.len(), 3 + 1 + 1 + HELD_MAX + 1, "{:?}", &words[..5]);
    assert!(words[3].starts_with("gap: "));
}

#[test]
fn mirror_prompt_goes_through_the_remote_control_once() {
    let mut ui = Ui::open(true);
    ui.prompt(7, "list files");
    assert_eq!(ui.reply(Ok((503, ""))), r#"POST /message {"message":"list files"}"#);
    ui.tick(1);
    assert_eq!(ui.reply(Ok((200, "ok"))), r#"POST /message {"message":"list files"}"#);
    // An end of an earlier run does not end it.
    ui.mirror_sends("idle", json!({}));
    ui.mirror_sends("user_message", json!({ "text": "list files " }));
    ui.mirror_sends("model_output", json!({ "text": "a b" }));
    assert_eq!(ui.words(), ["model a b"]);
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), ["ended 7 Completed"]);
    assert!(!ui.wakes);
    // The mirror may be faster than the reply.
    ui.prompt(8, "more");
    ui.mirror_sends("user_message", json!({ "text": "more" }));
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), ["ended 8 Completed"]);
    ui.reply(Ok((200, "")));
    assert_eq!(ui.words(), [""; 0]);
}

#[test]
fn mirror_refused_prompt_ends_with_an_error() {
    let mut ui = Ui::open(false);
    ui.prompt(1, "hi");
    let words = ui.words();
    assert!(
        words[0].starts_with("ended 1 Error: the gateway can only watch this UI") && words[0].contains("remote ="),
        "{words:?}"
    );
    let mut ui = Ui::open(true);
    for _ in 0..READY_TICKS {
        ui.prompt_or_tick();
        ui.reply(Ok((503, "")));
    }
    assert_eq!(ui.words(), ["ended 9 Error: the UI was not ready to accept a message (503) in 60 attempts"]);
    for (reply, reason) in [
        (Ok((500, "")), "the UI did not accept the message: it answered 500"),
        (Err("reset"), "whether the UI accepted the message is unknown: reset"),
    ] {
        ui.prompt(2, "hi");
        ui.reply(reply);
        assert_eq!(ui.words(), [format!("ended 2 Error: {reason}")]);
    }
    // It was accepted and never shown.
    ui.prompt(3, "hi");
    ui.reply(Ok((200, "")));
    ui.tick(SILENT_TICKS);
    assert_eq!(ui.words(), ["ended 3 Error: the UI accepted the message but did not show it"]);
}

impl Ui {
    /// Prompts, or waits for the retry of the prompt.
    fn prompt_or_tick(&mut self) {
        if self.dialect.prompts().is_empty() { self.prompt(9, "hi") } else { self.tick(1) }
    }
}

#[test]
fn mirror_silence_ends_a_slash_command_but_no_turn() {
    let mut ui = Ui::open(true);
    ui.prompt(1, "/help");
    ui.reply(Ok((200, "")));
    ui.mirror_sends("user_message", json!({ "text": "/help" }));
    ui.tick(COMMAND_TICKS);
    assert_eq!(
        ui.words(),
        ["ended 1 Completed: considered ended: the UI sent nothing more, and did not report that it is idle"]
    );
    ui.mirror_sends("user_message", json!({ "text": "/init" }));
    ui.tick(COMMAND_TICKS - 1);
    ui.mirror_sends("model_output", json!({ "text": "working" }));
    assert!(!ui.wakes, "the model is at work: no silence ends it");
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), [BEGAN, "user /init", "model working", "done Completed"]);
}

#[test]
fn mirror_refuses_a_cancel_unless_the_prompt_is_unsent() {
    let mut ui = Ui::open(true);
    ui.cancel(None);
    assert_eq!(ui.words(), [""; 0]);
    ui.prompt(1, "hi");
    ui.reply(Ok((200, "")));
    ui.mirror_sends("user_message", json!({ "text": "hi" }));
    ui.cancel(Some(1));
    assert!(ui.words()[0].starts_with("cannot_cancel: "));
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), ["ended 1 Completed"]);
    ui.prompt(2, "hi");
    ui.reply(Ok((503, "")));
    ui.cancel(Some(2));
    assert_eq!(ui.words(), ["ended 2 Cancelled: the UI had not accepted it yet"]);
    assert!(!ui.wakes);
}

#[test]
fn mirror_fills_a_lost_connection_from_the_history() {
    let mut ui = Ui::open(true);
    ui.mirror_sends("user_message", json!({ "text": "go" }));
    ui.mirror_sends("model_output", json!({ "text": "one " }));
    ui.mirror_sends("permission_dialog", json!({ "id": 5, "type": "file_access", "options": ["Allow"] }));
    ui.words();
    ui.reconnect();
    ui.mirror_sends("model_output", json!({ "text": "four" }));
    ui.history(json!([{ "role": "user", "text": "go" }, { "role": "model", "text": "one two three four" }]));
    let gap = "gap: the connection to the UI was lost for a while: messages from that time are taken from its \
               history, which has no tool calls, requests or hooks";
    assert_eq!(ui.words(), [gap, "model two three ", "taken back 5: a user of the Gemini UI chose None", "model four"]);
    // The end was not missed: it comes. Lost again, it is missed; the next turn shows it.
    ui.reconnect();
    ui.history(json!([
        { "role": "user", "text": "go" }, { "role": "model", "text": "one two three four" },
        { "role": "user", "text": "next" }, { "role": "model", "text": "done" }
    ]));
    assert_eq!(
        ui.words(),
        [gap, "done Completed: its end was missed: the connection was lost", "user next", "model done"]
    );
    // Nothing happened: nothing is reported.
    ui.reconnect();
    ui.history(json!([
        { "role": "user", "text": "go" }, { "role": "model", "text": "one two three four" },
        { "role": "user", "text": "next" }, { "role": "model", "text": "done" }
    ]));
    assert_eq!(ui.words(), [""; 0]);
    assert!(!ui.wakes);
}

#[test]
fn mirror_silence_ends_a_run_whose_end_was_missed() {
    for remote in [true, false] {
        let mut ui = Ui::open(remote);
        ui.mirror_sends("user_message", json!({ "text": "go" }));
        ui.words();
        ui.reconnect();
        if remote {
            ui.history(json!([{ "role": "user", "text": "go" }]));
        }
        assert!(ui.words()[0].starts_with("gap: "));
        ui.tick(SILENT_TICKS - 1);
        ui.mirror_sends("hook", json!({ "hookName": "x", "eventName": "hook_start" }));
        ui.tick(SILENT_TICKS - 1);
        ui.words();
        ui.tick(1);
        assert_eq!(
            ui.words(),
            ["done Completed: considered ended: the UI sent nothing more, and did not report that it is idle"]
        );
    }
}

#[test]
fn mirror_finds_its_own_prompt_in_the_history() {
    let mut ui = Ui::open(true);
    ui.prompt(4, "hello");
    ui.reply(Ok((200, "")));
    ui.reconnect();
    ui.history(json!([{ "role": "user", "text": "hello" }, { "role": "model", "text": "hi" }]));
    assert_eq!(ui.words()[1..], ["model hi"]);
    ui.mirror_sends("idle", json!({}));
    assert_eq!(ui.words(), ["ended 4 Completed"]);
}

#[test]
fn mirror_known_session_does_not_repeat_its_history() {
    let mut ui = Ui::new(true);
    ui.step(|dialect, out| dialect.open(out));
    ui.resume(true);
    ui.words();
    let past = json!([{ "role": "user", "text": "one" }, { "role": "model", "text": "1" }]);
    ui.history(past.clone());
    assert_eq!(ui.words(), ["gap: messages of the UI from the time when the gateway was not running are missing here"]);
    ui.reconnect();
    ui.history(past);
    assert_eq!(ui.words(), [""; 0]);
    let mut other = Ui::new(true);
    let resume = Some(ResumeTarget::new("x".into(), false));
    other.step(|dialect, out| {
        dialect
            .command(RuntimeCommand::Open { ticket: Ticket(1), cwd: "/".into(), resume, mcp_servers: Vec::new() }, out)
    });
    assert_eq!(other.words(), ["not opened: the Gemini UI has one conversation, named \"ui\"; there is no \"x\""]);
}

proptest! {
    #[test]
    fn mirror_survives_any_bytes(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "\\{\"type\":\"(user_message|model_output|tool_call|tool_output|idle|permission_dialog|permission_selection|hook)\",\"data\":\\{(\"text\":\"[a-z/]{0,3}\"|\"id\":[0-9],\"options\":\\[\"A\"\\]|\"callId\":\"c\",\"name\":\"n\")?\\}\\}\0".prop_map(String::into_bytes),
        ], 0..30),
        lose in prop::collection::vec(any::<bool>(), 30),
    ) {
        let mut ui = Ui::open(true);
        for (piece, lose) in pieces.into_iter().zip(lose) {
            ui.feed(piece);
            if lose {
                ui.reconnect();
                ui.history(json!([{ "role": "user", "text": "a" }, { "role": "model", "text": "b" }]));
            }
        }
        // Every run that began ends once, before the next begins.
        let mut open = false;
        for event in &ui.event {
            match event {
                RuntimeEvent::Began { .. } => prop_assert!(!std::mem::replace(&mut open, true)),
                RuntimeEvent::Done { .. } => prop_assert!(std::mem::replace(&mut open, false)),
                _ => {}
            }
        }
    }
}

#[test]
fn mirror_withdraws_an_open_question_at_the_end() {
    let mut ui = Ui::open(true);
    ui.mirror_sends("permission_dialog", json!({ "id": "a", "type": "new_sort", "options": ["Go", "Go"] }));
    ui.mirror_sends("permission_dialog", json!({ "id": "a", "type": "file_access", "options": [] }));
    ui.mirror_sends("idle", json!({}));
    let event = std::mem::take(&mut ui.event);
    let RuntimeEvent::Asked { ask, .. } = &event[1] else { panic!("{event:?}") };
    assert_eq!((ask.title.as_str(), ask.options.len()), ("The Gemini UI asks for permission: new_sort", 1));
    assert!(word(&event[2]).starts_with("raw: "), "a name that is taken");
    assert!(
        matches!(&event[3], RuntimeEvent::TakenBack { elsewhere: None, .. })
            && matches!(&event[4], RuntimeEvent::Done { .. })
    );
    ui.mirror_sends("permission_selection", json!({ "id": "a", "selection": "Go" }));
    assert!(ui.words()[0].starts_with("raw: "), "it is open no more");
}

#[test]
fn mirror_reused_question_id_is_another_question() {
    let mut ui = Ui::open(false);
    let mut keys = Vec::new();
    for selection in ["Allow", "Deny"] {
        ui.mirror_sends("permission_dialog", json!({ "id": 5, "type": "command_run", "options": ["Allow", "Deny"] }));
        let Some(RuntimeEvent::Asked { ask, .. }) = ui.event.last() else { panic!("{:?}", ui.event) };
        keys.push(ask.key.clone());
        ui.mirror_sends("permission_selection", json!({ "id": 5, "selection": selection }));
        let Some(RuntimeEvent::TakenBack { key, .. }) = ui.event.last() else { panic!("{:?}", ui.event) };
        assert_eq!(Some(key), keys.last(), "what was selected goes to the one that was open");
    }
    assert_ne!(keys[0], keys[1]);
}
