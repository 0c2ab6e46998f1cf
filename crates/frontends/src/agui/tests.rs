//! One model of a client, and what is checked against it: whatever a log brings, what comes out keeps the rules of
//! `verifyEvents` of `@ag-ui/client`, says every byte of the text, and says it again from any place in the log.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::events::is_gateway_id;
use super::events::{AgUiEvent, ClientView};
use super::input::{self, ResumeEntry, RunAgentInput, Status};
use super::translate::{Outcome, Translator};
use super::{beginning, named};
use plexus_protocol::{
    Choice, Event, Kind, Offer, Origin, Position, Request, RequestId, RequestState, RequestType, RunId, RuntimeId,
    SessionId, SessionInfo, SessionState, Timestamp,
};

// === the rules of the verifier ===

/// The state of `verifyEvents` with its checks, and the events as a client reads them, for the comparison.
#[derive(Default)]
struct Verifier {
    first: bool,
    running: bool,
    over: bool,
    texts: HashSet<String>,
    spans: HashSet<String>,
    thoughts: HashSet<String>,
    calls: HashSet<String>,
    activities: HashSet<String>,
    /// Messages: role and text.
    said: BTreeMap<String, (String, String)>,
    results: HashSet<String>,
    state: Value,
}

impl Verifier {
    fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        let id = || event["messageId"].as_str().unwrap().to_owned();
        let call = || event["toolCallId"].as_str().unwrap().to_owned();
        assert!(self.first || kind == "RUN_STARTED", "the first event is RUN_STARTED, not {event}");
        assert!(!self.over || kind == "RUN_STARTED", "after the end of a run: {event}");
        assert!(self.running || kind == "RUN_STARTED", "outside of a run: {event}");
        self.first = true;
        match kind {
            "RUN_STARTED" => {
                assert!(!self.running, "a run within a run: {event}");
                (self.running, self.over) = (true, false);
            }
            "RUN_FINISHED" | "RUN_ERROR" => {
                for open in [&self.texts, &self.spans, &self.thoughts, &self.calls] {
                    assert!(open.is_empty(), "still open at the end of a run: {open:?}");
                }
                if event["outcome"]["type"] == "interrupt" {
                    let all = event["outcome"]["interrupts"].as_array().unwrap();
                    assert!(!all.is_empty(), "an interrupt without a question");
                    assert!(all.iter().all(|one| one["responseSchema"].is_object() && one["reason"].is_string()));
                }
                (self.running, self.over) = (false, true);
            }
            "TEXT_MESSAGE_START" => {
                assert!(self.texts.insert(id()), "started twice: {event}");
                self.said.entry(id()).or_insert((event["role"].as_str().unwrap().into(), String::new()));
            }
            "TEXT_MESSAGE_CONTENT" => {
                assert!(self.texts.contains(&id()), "not started: {event}");
                self.said.get_mut(&id()).unwrap().1.push_str(event["delta"].as_str().unwrap());
            }
            "TEXT_MESSAGE_END" => assert!(self.texts.remove(&id()), "not started: {event}"),
            "REASONING_START" => assert!(self.spans.insert(id()), "started twice: {event}"),
            "REASONING_END" => assert!(self.spans.remove(&id()), "not started: {event}"),
            "REASONING_MESSAGE_START" => {
                assert_eq!(event["role"], "reasoning");
                assert!(self.thoughts.insert(id()), "started twice: {event}");
                self.said.entry(id()).or_insert(("reasoning".into(), String::new()));
            }
            "REASONING_MESSAGE_CONTENT" => {
                assert!(self.thoughts.contains(&id()), "not started: {event}");
                self.said.get_mut(&id()).unwrap().1.push_str(event["delta"].as_str().unwrap());
            }
            "REASONING_MESSAGE_END" => assert!(self.thoughts.remove(&id()), "not started: {event}"),
            "TOOL_CALL_START" => {
                assert!(event["toolCallName"].is_string() && event["parentMessageId"].is_string());
                assert!(self.calls.insert(call()), "started twice: {event}");
            }
            "TOOL_CALL_ARGS" => {
                assert!(self.calls.contains(&call()), "not started: {event}");
                assert!(!event["delta"].as_str().unwrap().is_empty());
            }
            "TOOL_CALL_END" => assert!(self.calls.remove(&call()), "not started: {event}"),
            "TOOL_CALL_RESULT" => {
                assert!(!self.calls.contains(&call()), "a result of a call that is still being made: {event}");
                assert!(self.results.insert(id()), "a second result: {event}");
            }
            "ACTIVITY_SNAPSHOT" => {
                assert!(event["content"].is_object());
                self.activities.insert(id());
            }
            "ACTIVITY_DELTA" => {
                assert!(self.activities.contains(&id()), "of an activity that was never shown: {event}");
                assert!(
                    event["patch"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .all(|step| step["path"].as_str().unwrap().starts_with('/'))
                );
            }
            "MESSAGES_SNAPSHOT" => {
                self.said.clear();
                for message in event["messages"].as_array().unwrap() {
                    let id = message["id"].as_str().unwrap().to_owned();
                    let role = message["role"].as_str().unwrap();
                    if let Some(text) = message["content"].as_str().filter(|_| role != "tool") {
                        self.said.insert(id.clone(), (role.into(), text.into()));
                    }
                    if role == "activity" {
                        self.activities.insert(id);
                    } else if role == "tool" {
                        self.results.insert(id);
                    }
                }
            }
            "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
            "STATE_DELTA" => {
                for step in event["delta"].as_array().unwrap() {
                    let path = step["path"].as_str().unwrap();
                    let (parent, key) = path.rsplit_once('/').unwrap();
                    let parent = self.state.pointer_mut(parent).and_then(Value::as_object_mut);
                    let parent = parent.unwrap_or_else(|| panic!("{step} has no place"));
                    match step["op"].as_str().unwrap() {
                        "add" => assert!(step.get("value").is_some()),
                        "remove" => assert!(parent.contains_key(key), "{step} has no place"),
                        other => panic!("{other}"),
                    }
                    if step["op"] == "add" {
                        parent.insert(key.into(), step["value"].clone());
                    } else {
                        parent.remove(key);
                    }
                }
            }
            "RAW" => assert!(event["event"] != Value::Null && event["source"].is_string()),
            "CUSTOM" => assert!(event["name"].is_string() && event.get("value").is_some()),
            other => panic!("the protocol has no {other}"),
        }
    }

    fn text(&self, role: &str) -> String {
        // By position: identifiers are of the form `m_<position>`, or a client's own.
        let mut all: Vec<_> = self.said.iter().filter(|(_, (whose, _))| whose == role).collect();
        all.sort_by_key(|(id, _)| id.strip_prefix("m_").and_then(|n| n.parse::<u64>().ok()));
        all.into_iter().map(|(_, (_, text))| text.as_str()).collect()
    }
}

// === logs ===

fn event(position: u64, run: &str, kind: Kind, body: impl Into<Vec<u8>>) -> Event {
    Event {
        position: Position(position),
        origin: Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("agent"),
            dialect: "acp".into(),
        }),
        run_id: RunId::trusted(run),
        seq: position,
        at: Timestamp::from_millis(1_763_717_400_125),
        kind,
        body: body.into().into(),
        native: None,
    }
}

fn request(id: &str, kind: RequestType) -> Request {
    Request {
        request_id: RequestId::trusted(id),
        session_id: SessionId::trusted("s_1"),
        run_id: RunId::trusted("r_1"),
        runtime_id: RuntimeId::trusted("agent"),
        generation: 1,
        kind,
        state: RequestState::Open,
        title: "rm".into(),
        message: None,
        subject: plexus_protocol::About::Unreadable,
        display: "rm -rf build".into(),
        display_truncated: false,
        display_bytes: None,
        risk_reasons: vec![],
        revision: 0,
        changed: false,
        warnings: Vec::new(),
        risk: plexus_protocol::Risk::Elevated,
        digest: "d".into(),
        options: vec![
            Offer { id: "yes".into(), label: "Allow".into(), kind: Choice::AllowOnce, for_session: false },
            Offer { id: "no".into(), label: "Reject".into(), kind: Choice::RejectOnce, for_session: false },
        ],
        items: Vec::new(),
        multi: false,
        default_value: None,
        multiline: false,
        secret: false,
        danger: false,
        danger_level: None,
        allow_reason: false,
        allow_remember: false,
        observe_only: false,
        editable: None,
        tool_call_id: Some("t1".into()),
        native: None,
        expires_at: None,
        opened_at: Timestamp::from_millis(0),
        receipt: None,
    }
}

fn session() -> SessionInfo {
    SessionInfo {
        session_id: SessionId::trusted("s_1"),
        runtime_id: RuntimeId::trusted("agent"),
        dialect: "acp".into(),
        native_id: None,
        title: None,
        cwd: "/".into(),
        project: None,
        state: SessionState::Idle,
        run_id: None,
        doing: None,
        archived: false,
        open_requests: 0,
        requests: Vec::new(),
        queue: Vec::new(),
        created_at: Timestamp::from_millis(0),
        prompted_at: None,
        updated_at: Timestamp::from_millis(0),
        message_count: None,
        last_user_message: None,
        linked: false,
        restartable: false,
    }
}

/// Returns the events of a log: well-formed and not, in any order.
fn happening() -> impl Strategy<Value = (Kind, String)> {
    let name = prop::sample::select(vec!["t1", "t2", "m_1", "__proto__", "a/b~c"]);
    let text = prop::sample::select(vec!["", "a", "ü\u{1F600}", "two\nlines", "\"}"]);
    let status = prop::sample::select(vec!["pending", "in_progress", "completed", "failed", "odd"]);
    let chunks = (
        prop::sample::select(vec![Kind::AgentMessageChunk, Kind::AgentThoughtChunk, Kind::UserMessageChunk]),
        text.clone(),
        prop::option::of(name.clone()),
    );
    let chunk = chunks.prop_map(|(kind, text, id)| {
        let mut body = json!({ "sessionUpdate": kind.as_str(), "content": { "type": "text", "text": text } });
        if let Some(id) = id {
            body["messageId"] = id.into();
        }
        (kind, body.to_string())
    });
    let tools = (prop::bool::ANY, name.clone(), prop::option::of(status), prop::bool::ANY, prop::bool::ANY);
    let tool = tools.prop_map(|(first, id, status, input, odd)| {
        let mut body = json!({ "toolCallId": id, "title": "x", "content": [{ "type": "content", "content": { "type": "text", "text": "out" } }] });
        if let Some(status) = status {
            body["status"] = status.into();
        }
        if input {
            body["rawInput"] = json!({ "a": 1 });
        }
        if odd {
            body["__proto__"] = json!({ "x": 1 });
            body["a/b"] = json!(1);
        }
        (if first { Kind::ToolCall } else { Kind::ToolCallUpdate }, body.to_string())
    });
    let ids = prop::sample::select(vec!["q_1", "q_2", "q_3"]);
    let asked =
        (ids.clone(), prop::sample::select(vec![RequestType::Permission, RequestType::Prompt, RequestType::Pick]));
    let asked = asked.prop_map(|(id, kind)| (Kind::RequestOpened, serde_json::to_string(&request(id, kind)).unwrap()));
    let resolved =
        ids.prop_map(|id| (Kind::RequestResolved, json!({ "request_id": id, "state": "answered" }).to_string()));
    let runs = prop::sample::select(vec![
        (Kind::RunStarted, json!({ "status": "running" })),
        (Kind::RunStatus, json!({ "status": "queued" })),
        (Kind::RunStatus, json!({ "status": "awaiting_ui" })),
        (Kind::RunEnded, json!({ "status": "completed", "stop_reason": "end_turn" })),
        (Kind::RunEnded, json!({ "status": "cancelled" })),
        (Kind::RunEnded, json!({ "status": "error", "message": "it broke" })),
    ]);
    let runs = runs.prop_map(|(kind, body)| (kind, body.to_string()));
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    let others = (
        kinds,
        prop::sample::select(vec!["{}", "[]", "null", "7", "{\"entries\":[]}", "{\"surface_id\":\"x\"}", "no json"]),
    );
    let other = others.prop_map(|(kind, body)| (kind, body.to_owned()));
    let image = Just((Kind::AgentMessageChunk, json!({ "content": { "type": "image", "data": "QQ==" } }).to_string()));
    let surface = prop_oneof![
        Just(surface_whole("Text", "x")),
        (2u64..6, "[a-z]{1,3}").prop_map(|(rev, text)| surface_change(rev, &text)),
    ];
    let surface = surface.prop_map(|body| (Kind::SurfaceUpdated, body));
    prop_oneof![6 => chunk, 4 => tool, 2 => asked, 2 => resolved, 3 => runs, 2 => other, 1 => image, 2 => surface]
}

fn log() -> impl Strategy<Value = Vec<Event>> {
    let runs = prop::sample::select(vec!["r_0", "r_1", "r_2"]);
    prop::collection::vec((happening(), runs), 0..60).prop_map(|all| {
        let all = all.into_iter().enumerate();
        all.map(|(n, ((kind, body), run))| event(n as u64 + 1, run, kind, body)).collect()
    })
}

fn json_of(event: &AgUiEvent) -> Value {
    serde_json::to_value(event).unwrap()
}

/// Returns the text in the log.
fn text(log: &[Event], kind: Kind) -> String {
    let of_kind = log.iter().filter(|event| event.kind == kind);
    let bodies = of_kind.filter_map(|event| serde_json::from_slice::<Value>(&event.body).ok());
    bodies.filter_map(|body| body["content"]["text"].as_str().map(ToOwned::to_owned)).collect()
}

/// A client that comes at `from`, and is told the rest; interrupts wherever `cut` says.
fn listen(log: &[Event], from: usize, cut: &HashSet<usize>) -> (Verifier, Vec<Value>) {
    let mut translator = Translator::new("thread");
    let mut view = ClientView::default();
    view.state.extend(beginning(&session()));
    log[..from].iter().for_each(|event| translator.fold(event, &mut view));
    translator.listen(Vec::new());
    let mut out = Vec::new();
    translator.begin("first", &mut out);
    out.push(AgUiEvent::MessagesSnapshot { messages: view.messages(usize::MAX) });
    out.push(AgUiEvent::StateSnapshot { snapshot: Value::Object(view.state) });
    for (n, event) in log.iter().enumerate().skip(from) {
        let mut said = Vec::new();
        translator.end_between_runs(event, &mut out);
        translator.event(event, &mut said);
        if !said.is_empty() && !translator.active() {
            translator.ensure_run(event, &mut out);
        }
        out.append(&mut said);
        if cut.contains(&n) {
            let ended = translator.ended().cloned();
            let outcome =
                if translator.is_waiting() { Outcome::Interrupt } else { ended.map_or(Outcome::Idle, Outcome::Ended) };
            translator.finish(&outcome, &mut out);
        }
    }
    translator.finish(&Outcome::Idle, &mut out);
    let all: Vec<Value> = out.iter().map(json_of).collect();
    let mut verifier = Verifier::default();
    all.iter().for_each(|event| verifier.take(event));
    (verifier, all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn agui_events_are_legal_and_whole_for_any_log(
        log in log(), from in 0usize..60, cuts in prop::collection::hash_set(0usize..60, 0..8),
    ) {
        let (all, _) = listen(&log, 0, &HashSet::new());
        let (late, _) = listen(&log, from.min(log.len()), &cuts);
        // Messages that go by the agent's names may be taken up again: bytes and order within each are what counts.
        prop_assert_eq!(&all.said, &late.said, "one who comes later has the same messages");
        prop_assert_eq!(&all.state, &late.state, "and the same state");
        for (role, kind) in [("assistant", Kind::AgentMessageChunk), ("reasoning", Kind::AgentThoughtChunk), ("user", Kind::UserMessageChunk)] {
            let mut ours: Vec<char> = all.text(role).chars().collect();
            let mut theirs: Vec<char> = text(&log, kind).chars().collect();
            ours.sort_unstable();
            theirs.sort_unstable();
            prop_assert_eq!(ours, theirs, "every byte of {}", role);
        }
    }
}

/// A surface `s` that shows `/n`, and what changes it.
fn surface_whole(kind: &str, text: &str) -> String {
    json!({ "surface": "s", "rev": 1, "title": "Build", "pinned": true, "messages": [
        { "version": "v0.9", "createSurface": { "surfaceId": "s", "catalogId": "plexus:catalog/1" } },
        { "version": "v0.9", "updateComponents": { "surfaceId": "s", "components": [
            { "id": "root", "component": kind, "text": { "path": "/n" } }] } },
        { "version": "v0.9", "updateDataModel": { "surfaceId": "s", "path": "/", "value": { "n": text } } }] })
    .to_string()
}

fn surface_change(rev: u64, text: &str) -> String {
    json!({ "surface": "s", "rev": rev, "base": rev - 1, "messages": [
        { "version": "v0.9", "updateDataModel": { "surfaceId": "s", "path": "/n", "value": text } }] })
    .to_string()
}

#[test]
fn agui_surface_is_a_whole_a2ui_activity_after_each_change() {
    let closed = json!({ "surface": "s", "rev": 3, "base": 2, "closed": true, "messages": [
        { "version": "v0.9", "deleteSurface": { "surfaceId": "s" } }] });
    let log = [
        event(1, "r_1", Kind::SurfaceUpdated, surface_whole("Text", "one")),
        event(2, "r_1", Kind::SurfaceUpdated, surface_change(2, "two")),
        event(3, "r_1", Kind::SurfaceUpdated, closed.to_string()),
        event(4, "r_1", Kind::SurfaceUpdated, surface_change(9, "after what was not seen")),
    ];
    let (_, all) = listen(&log, 0, &HashSet::new());
    let sent: Vec<&Value> = all.iter().filter(|event| event["type"] == "ACTIVITY_SNAPSHOT").collect();
    assert_eq!(sent.len(), 3);
    for (event, text) in sent.iter().zip(["one", "two"]) {
        assert_eq!((&event["messageId"], &event["activityType"]), (&json!("s_1"), &json!("a2ui-surface")));
        assert_eq!((&event["content"]["text"], &event["replace"]), (&json!(text), &json!(true)));
        let operations = &event["content"]["a2ui_operations"];
        assert_eq!(operations[0]["createSurface"]["catalogId"], plexus_surfaces::BASIC_CATALOG);
        assert_eq!(operations[1]["updateComponents"]["components"][0]["component"], "Text");
        assert_eq!(operations[2]["updateDataModel"]["value"]["n"], text);
    }
    assert_eq!(sent[1]["content"]["plexus"]["rev"], 2);
    assert_eq!(sent[2]["content"]["a2ui_operations"][0]["deleteSurface"]["surfaceId"], "s");
    assert!(all.iter().any(|event| event["name"] == "plexus.surface_updated"), "a change without its state");
    // Who comes later has the state in the snapshot.
    let (_, late) = listen(&log, 2, &HashSet::new());
    let messages = late.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    assert_eq!(messages["messages"][0]["content"]["text"], "two");
    // Own components keep their catalogue, and what is large is sent as text.
    let log = [event(1, "r_1", Kind::SurfaceUpdated, surface_whole("Markdown", "m"))];
    let (_, all) = listen(&log, 0, &HashSet::new());
    let sent = all.iter().find(|event| event["type"] == "ACTIVITY_SNAPSHOT").unwrap();
    assert_eq!(sent["content"]["a2ui_operations"][0]["createSurface"]["catalogId"], "plexus:catalog/1");
    for many in [1, 15] {
        let mut whole: Value = serde_json::from_str(&surface_whole("Text", "still told")).unwrap();
        whole["messages"][2]["updateDataModel"]["value"]["more"] = json!(vec!["x".repeat(200_000); many]);
        let (_, all) = listen(&[event(1, "r_1", Kind::SurfaceUpdated, whole.to_string())], 0, &HashSet::new());
        let sent = all.iter().find(|event| event["type"] == "ACTIVITY_SNAPSHOT").unwrap();
        assert_eq!(sent["content"]["a2ui_operations"], json!([]), "{many}");
        assert_eq!(sent["content"]["text"], "still told");
    }
}

#[test]
fn agui_drops_no_event_silently() {
    for kind in Kind::ALL {
        for body in ["no json", "{}", "[]", r#"{"x":1}"#] {
            let mut out = Vec::new();
            Translator::new("t").event(&event(1, "r_1", *kind, body), &mut out);
            assert!(!out.is_empty(), "{kind:?} {body}");
        }
    }
}

#[test]
fn agui_text_equals_the_logs_text() {
    let bodies = ["one ", "two ", "ünd", " drei"];
    let mut log = vec![event(1, "r_1", Kind::RunStarted, r#"{"status":"running"}"#)];
    for (n, text) in bodies.iter().enumerate() {
        let body = json!({ "content": { "type": "text", "text": text } }).to_string();
        log.push(event(n as u64 + 2, "r_1", Kind::AgentMessageChunk, body));
        if n == 1 {
            log.push(event(20, "r_1", Kind::ToolCall, r#"{"toolCallId":"x","status":"completed"}"#));
        }
    }
    for from in 0..log.len() {
        assert_eq!(listen(&log, from, &HashSet::new()).0.text("assistant"), bodies.concat());
    }
}

#[test]
fn long_text_comes_in_pieces_and_a_huge_event_is_announced() {
    let long = "ü".repeat(3 << 20);
    let body = json!({ "content": { "type": "text", "text": long } }).to_string();
    let (verifier, all) = listen(&[event(1, "r_1", Kind::AgentMessageChunk, body)], 0, &HashSet::new());
    assert_eq!(verifier.text("assistant"), long);
    assert!(all.iter().all(|event| event.to_string().len() < 2 << 20));
    let body = json!({ "toolCallId": "x", "rawInput": "y".repeat(9 << 20) }).to_string();
    let (_, all) = listen(&[event(1, "r_1", Kind::ToolCall, body)], 0, &HashSet::new());
    let told = all.iter().find(|event| event["name"] == "plexus.too_large").unwrap();
    assert_eq!(told["value"]["kind"], "tool_call");
}

#[test]
fn interrupt_names_the_tool_call_and_the_possible_answers() {
    let call = json!({ "toolCallId": "t1", "kind": "execute", "title": "rm", "rawInput": { "command": "rm" } });
    let log = [
        event(1, "r_1", Kind::RunStarted, r#"{"status":"running"}"#),
        event(2, "r_1", Kind::ToolCall, call.to_string()),
        event(3, "r_1", Kind::RequestOpened, serde_json::to_string(&request("q_1", RequestType::Permission)).unwrap()),
    ];
    let (verifier, all) = listen(&log, 0, &HashSet::from([2]));
    let outcome = &all.last().unwrap()["outcome"];
    let interrupt = &outcome["interrupts"][0];
    assert_eq!((&outcome["type"], &interrupt["id"]), (&json!("interrupt"), &json!("q_1")));
    assert_eq!((&interrupt["reason"], &interrupt["toolCallId"]), (&json!("tool_call"), &json!("t_2")));
    assert_eq!(interrupt["message"], "rm -rf build");
    assert_eq!(interrupt["responseSchema"]["properties"]["optionId"]["enum"], json!(["yes", "no"]));
    assert_eq!(verifier.state["requests"]["q_1"]["display"], "rm -rf build");
}

// === what comes in ===

fn entry(payload: Value) -> ResumeEntry {
    ResumeEntry { interrupt_id: "q_1".into(), status: Status::Resolved, payload }
}

#[test]
fn payloads_become_answers_and_contradictions_are_refused() {
    let permission = request("q_1", RequestType::Permission);
    let answer = |payload| input::answer(&permission, &entry(payload)).map_err(|problem| problem.code);
    assert_eq!(answer(json!({ "approved": true })).unwrap().ok, Some(true));
    assert_eq!(answer(json!(false)).unwrap().ok, Some(false));
    assert_eq!(answer(json!("yes")).unwrap().option_id.as_deref(), Some("yes"));
    let both = answer(json!({ "approved": true, "optionId": "yes", "digest": "d" })).unwrap();
    assert_eq!((both.option_id.as_deref(), both.ok, both.digest.as_deref()), (Some("yes"), None, Some("d")));
    for bad in [
        json!({ "approved": false, "optionId": "yes" }),
        json!({ "approved": true, "editedArgs": { "command": "ls" } }),
        json!({ "approved": "yes" }),
        json!(7),
        json!([]),
        Value::Null,
    ] {
        assert_eq!(answer(bad.clone()), Err("bad_payload"), "{bad}");
    }
    let declined = ResumeEntry { status: Status::Cancelled, ..entry(Value::Null) };
    assert_eq!(input::answer(&permission, &declined).unwrap().option_id.as_deref(), Some("no"));
    let mut no_way_out = permission.clone();
    no_way_out.options.pop();
    assert_eq!(input::answer(&no_way_out, &declined).unwrap_err().code, "option_not_offered");
    let prompt = request("q_1", RequestType::Prompt);
    assert_eq!(input::answer(&prompt, &entry(json!("text"))).unwrap().value, Some(Some("text".into())));
    assert_eq!(input::answer(&prompt, &declined).unwrap().value, Some(None));
    let pick = request("q_1", RequestType::Pick);
    assert_eq!(input::answer(&pick, &entry(json!({ "ids": ["a"] }))).unwrap().ids, Some(vec!["a".to_owned()]));
}

#[test]
fn late_answer_stands_or_is_refused_with_the_reason() {
    let of = |state| Request { state, ..request("q_1", RequestType::Permission) };
    let resolved = entry(json!(true));
    let cancelled = ResumeEntry { status: Status::Cancelled, ..entry(Value::Null) };
    assert_eq!(input::late(&resolved, &of(RequestState::Answered)), None);
    for (state, code) in [
        (RequestState::Expired, "expired"),
        (RequestState::Withdrawn, "withdrawn"),
        (RequestState::Orphaned, "orphaned"),
    ] {
        assert_eq!(input::late(&resolved, &of(state)).unwrap().code, code);
        assert_eq!(input::late(&cancelled, &of(state)), None, "whoever gives up may go on");
    }
}

fn run_input(messages: Value) -> RunAgentInput {
    serde_json::from_value(json!({ "threadId": "t", "runId": "a", "messages": messages })).unwrap()
}

#[test]
fn prompt_is_what_the_session_does_not_have_yet() {
    let input = run_input(json!([
        { "id": "u1", "role": "user", "content": "old" },
        { "id": "m_4", "role": "assistant", "content": "said" },
        { "id": "u2", "role": "user", "content": "known" },
        { "id": "u3", "role": "user", "content": "new" },
        { "id": "u4", "role": "user", "content": [{ "type": "text", "text": "and " }, { "type": "text", "text": "more" }] },
    ]));
    let known = HashSet::from(["u2".to_owned()]);
    let new = input.new_messages(|name| known.contains(name));
    assert_eq!(new.iter().map(|message| message.text()).collect::<Vec<_>>(), ["new", "and more"]);
    let blocks = input::blocks(&new).unwrap();
    let first: Value = serde_json::from_str(blocks[0].get()).unwrap();
    assert_eq!(first, json!({ "type": "text", "text": "new", "_meta": { "plexus": { "message_id": "u3" } } }));
    assert!(
        run_input(json!([{ "id": "m_7", "role": "user", "content": "x" }]))
            .new_messages(|name| known.contains(name))
            .is_empty(),
        "it is ours"
    );
    assert!(
        is_gateway_id("m_12")
            && !is_gateway_id("m_")
            && !is_gateway_id("u1")
            && !is_gateway_id("m_1x")
            && !is_gateway_id("ü")
    );
}

#[test]
fn prompt_parts_are_carried_or_refused() {
    let of = |part: Value| {
        let input = run_input(json!([{ "id": "u", "role": "user", "content": [part] }]));
        let blocks = input::blocks(&input.new_messages(|_| false)).map_err(|problem| problem.code)?;
        Ok::<Value, &str>(serde_json::from_str(blocks[0].get()).unwrap())
    };
    let data = |mime: &str| json!({ "type": "data", "value": "QQ==", "mimeType": mime });
    assert_eq!(of(json!({ "type": "image", "source": data("image/png") })).unwrap()["type"], "image");
    assert_eq!(of(json!({ "type": "audio", "source": data("audio/wav") })).unwrap()["data"], "QQ==");
    assert_eq!(
        of(json!({ "type": "document", "source": data("application/pdf") })).unwrap()["resource"]["blob"],
        "QQ=="
    );
    assert_eq!(of(json!({ "type": "binary", "mimeType": "image/png", "data": "QQ==" })).unwrap()["type"], "image");
    let link = json!({ "type": "document", "source": { "type": "url", "value": "https://x.example/a.pdf" } });
    assert_eq!(of(link).unwrap()["name"], "a.pdf");
    assert_eq!(of(json!({ "type": "image", "source": { "type": "file", "value": "f" } })), Err("part_not_carried"));
    assert_eq!(of(json!({ "type": "hologram" })), Err("part_not_carried"));
    assert_eq!(of(json!({ "type": "text" })), Err("invalid"));
    assert_eq!(of(json!({ "type": "text", "text": " " })), Err("invalid"));
}

#[test]
fn input_that_is_not_carried_is_named() {
    let input = json!({
        "threadId": "t", "runId": "a", "messages": [], "tools": [{ "name": "x", "description": "" }],
        "context": [{ "description": "page", "value": "x" }], "state": { "mine": 1 },
        "forwardedProps": { "plexus": { "follow": true }, "model": "x" },
    });
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    assert!(input.check().unwrap().follow);
    assert_eq!(input.ignored(), ["tools", "context", "state", "forwardedProps"]);
    let back =
        json!({ "threadId": "t", "runId": "a", "messages": [], "state": { "session": {} }, "forwardedProps": {} });
    let back: RunAgentInput = serde_json::from_value(back).unwrap();
    assert!(back.ignored().is_empty(), "the state that we gave may come back");
    for kind in ["plan", "current_mode_update", "usage_update", "runtime_status"] {
        assert!(beginning(&session()).contains_key(named(kind).unwrap()));
    }
}

#[tokio::test]
async fn log_is_read_once_and_then_only_new_events() {
    use plexus_sessions::{CommitEntry, CommitRows, Log, NewEvent};
    use plexus_store::{MemoryStore, SessionRow, Trim};
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_known"),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    });
    let said = async |run: &str, name: &str| {
        let body = json!({
            "content": { "type": "text", "text": "x", "_meta": { "plexus": { "message_id": name } } },
            "_meta": { "plexus": { "by": { "device_id": "d_1", "name": "phone" } } },
        });
        let event = NewEvent {
            run_id: RunId::trusted(run),
            seq: 0,
            at: Timestamp::default(),
            kind: Kind::UserMessageChunk,
            body: body.to_string().into(),
            native: None,
        };
        let row = SessionRow {
            session_id: origin.session_id.clone(),
            runtime_id: origin.runtime_id.clone(),
            dialect: "acp".into(),
            state: b"{}".to_vec(),
            as_of: Position::START,
            spare_from: None,
        };
        let rows = move |_| CommitRows { sessions: vec![row], ..CommitRows::default() };
        let entry = CommitEntry {
            origin: Arc::clone(&origin),
            events: vec![event],
            rows: Some(Box::new(rows)),
            on_stored: None,
            received: None,
            sync: false,
        };
        log.commit(entry).await.unwrap();
    };
    let session = SessionInfo { session_id: origin.session_id.clone(), ..session() };
    let device: plexus_protocol::DeviceId = "d_1".parse().unwrap();
    let message = |id: &str, text: &str| -> input::Message {
        serde_json::from_value(json!({ "id": id, "role": "user", "content": text })).unwrap()
    };
    let shared = super::AgUiShared::default();
    let known = async |last: &str| {
        super::Known::read(&shared, &log, &session, &device, Some(&message(last, "x"))).await.unwrap()
    };
    said("r_1", "u1").await;
    assert_eq!(known("u1").await.last_run, Some(RunId::trusted("r_1")));
    // What was read is not read again: it is known though the log has it no more.
    let trim = Trim { session_id: origin.session_id.clone(), through: log.head(), base: None };
    assert_eq!(log.trim(vec![trim]).await.unwrap(), 1);
    said("r_2", "u2").await;
    let both = known("u2").await;
    assert_eq!(both.last_run, Some(RunId::trusted("r_2")));
    assert_eq!(known("u1").await.last_run, Some(RunId::trusted("r_1")));
    assert_eq!(both.index.lock().await.read_to, log.head());
    let other: plexus_protocol::DeviceId = "d_2".parse().unwrap();
    for (device, text, reused) in [(&other, "x", false), (&other, "y", true), (&device, "y", true)] {
        let known = super::Known::read(&shared, &log, &session, device, Some(&message("u2", text))).await.unwrap();
        assert!(known.last_run.is_none() && known.is_reused == reused, "another device's, or another text: {text}");
    }
    // A message of several parts is known by all of them.
    said("r_2", "u2").await;
    let parts = json!({ "id": "u2", "role": "user", "content": [{ "type": "text", "text": "x" }, { "type": "text", "text": "x" }] });
    let parts: input::Message = serde_json::from_value(parts).unwrap();
    let known = super::Known::read(&shared, &log, &session, &device, Some(&parts)).await.unwrap();
    assert_eq!((known.last_run, known.is_reused), (Some(RunId::trusted("r_2")), false));
}

#[test]
fn agui_run_after_events_between_runs_is_an_agui_run_of_its_own() {
    let mut translator = Translator::new("thread");
    translator.listen(Vec::new());
    let mut out = Vec::new();
    let status = json!({ "status": "attached", "runtime_id": "demo" });
    let started = json!({ "run_id": "r_1", "status": "running" });
    for event in [
        event(1, "r_0_1", Kind::RuntimeStatus, status.to_string()),
        event(2, "r_1", Kind::RunStarted, started.to_string()),
    ] {
        let mut said = Vec::new();
        translator.end_between_runs(&event, &mut out);
        translator.event(&event, &mut said);
        if !said.is_empty() {
            translator.ensure_run(&event, &mut out);
        }
        out.append(&mut said);
    }
    let runs: Vec<Value> = out.iter().map(json_of).filter(|event| !event["runId"].is_null()).collect();
    let runs: Vec<_> =
        runs.iter().map(|event| (event["type"].as_str().unwrap(), event["runId"].as_str().unwrap())).collect();
    assert_eq!(runs, [("RUN_STARTED", "r_0_1@1"), ("RUN_FINISHED", "r_0_1@1"), ("RUN_STARTED", "r_1#1")]);
}
