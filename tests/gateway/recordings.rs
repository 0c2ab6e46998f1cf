//! The dialects against recordings of real agents: played back, and with random damage. One file: the same recordings are used for both.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;

use agent_client_protocol_schema::v1;
use bytes::Bytes;
use plexus_dialects::recording::{self, Direction, Player, RecordingEntry};
use plexus_dialects::{Dialect, Outbox, RequestKey, RuntimeCommand, RuntimeEvent, find};
use plexus_protocol::{Choice, Connect, Decision, Kind, NativeId, RuntimeId, RuntimeSpec, Ticket};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// The open request with this id.
fn open_under(dialect: &dyn Dialect, id: &str) -> RequestKey {
    let open = dialect.asks().into_iter().find(|key| key.id() == id);
    open.unwrap_or_else(|| panic!("no question {id} waits"))
}

fn spec(dialect: &str) -> RuntimeSpec {
    let connect = Connect::Command(vec!["agent".into()]);
    RuntimeSpec::new(RuntimeId::trusted("test"), dialect, connect, "/home/user/project")
}

fn made(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    find(&spec.dialect).unwrap()(spec)
}

/// A recording with line numbers.
fn recording(name: &str) -> Vec<(usize, RecordingEntry)> {
    let path = format!("{}/tests/recordings/{name}.ndjson", env!("CARGO_MANIFEST_DIR"));
    recording::read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The agent's lines of a recording.
fn said_by_the_agent(name: &str) -> Vec<String> {
    let entries = recording(name).into_iter().map(|(_, entry)| entry);
    entries.filter(|entry| entry.dir == Direction::Out).map(|entry| entry.line).collect()
}

/// Plays a recording. The dialect must send what was recorded, except where `may_differ` accepts a line and its replacement.
/// Returns the events as `say` prints them, the same folded, and the dialect.
fn play(
    name: &str,
    mut say: impl FnMut(RuntimeEvent) -> Option<String>,
    sent: impl Fn(&Value),
    may_differ: impl Fn(&str, Option<&str>) -> bool,
) -> (String, Player) {
    let entries = recording(name);
    let head = recording::head(&entries).unwrap().unwrap();
    let mut player = Player::new(find(&head.spec.dialect).unwrap(), head.spec);
    let mut lines = Vec::<(String, usize)>::new();
    for (at, entry) in &entries {
        let played = player.play(entry).unwrap_or_else(|why| panic!("line {at}: {why}"));
        assert!(played.calls.is_empty(), "line {at}: {:?}", played.calls);
        for order in played.orders.iter().filter(|order| order.starts_with('{')) {
            sent(&serde_json::from_str(order).unwrap());
        }
        if let Some(ours) = &played.instead {
            assert!(may_differ(&entry.line, ours.as_deref()), "line {at}: {} was sent, not {}", entry.line, {
                ours.as_deref().unwrap_or("anything")
            });
        }
        for said in played.events.into_iter().filter_map(&mut say) {
            match lines.last_mut() {
                Some((last, times)) if *last == said => *times += 1,
                _ => lines.push((said, 1)),
            }
        }
    }
    assert_eq!(player.unmatched(), Vec::<String>::new(), "more was sent than worked");
    (lines.iter().map(|(line, times)| format!("{times:>3} {line}\n")).collect(), player)
}

/// A message without the text of refusals, which may change; everything else must equal the recording.
fn comparable(mut message: Value) -> Value {
    if let Some(error) = message.get_mut("error") {
        error["message"] = Value::Null;
    }
    message
}

fn parses<T: DeserializeOwned>(value: &Value) {
    if let Err(e) = serde_json::from_value::<T>(value.clone()) {
        panic!("{e}: {value}");
    }
}

/// Checks that a sent message matches the published schema.
fn is_acp(frame: &Value) {
    let params = &frame["params"];
    match frame.get("method").and_then(Value::as_str) {
        Some("initialize") => parses::<v1::InitializeRequest>(params),
        Some("authenticate") => parses::<v1::AuthenticateRequest>(params),
        Some("session/new") => parses::<v1::NewSessionRequest>(params),
        Some("session/prompt") => parses::<v1::PromptRequest>(params),
        Some("session/cancel") => parses::<v1::CancelNotification>(params),
        Some("session/set_mode") => parses::<v1::SetSessionModeRequest>(params),
        Some("session/set_config_option") => parses::<v1::SetSessionConfigOptionRequest>(params),
        Some("session/set_model") => assert!(params["modelId"].is_string()), // no longer in the schema
        Some(other) => panic!("not known to be ACP: {other}"),
        None if frame.get("error").is_some() => parses::<v1::Error>(&frame["error"]),
        None if frame["result"].get("action").is_some() => parses::<v1::CreateElicitationResponse>(&frame["result"]),
        None => parses::<v1::RequestPermissionResponse>(&frame["result"]),
    }
    if frame.get("id").is_some() {
        parses::<v1::RequestId>(&frame["id"]);
    }
    assert_eq!(frame["jsonrpc"], "2.0");
}

/// Returns whether a sent message is equivalent to the recorded one for the agent.
fn is_as_good(recorded: &str, ours: Option<&str>) -> bool {
    let Some(ours) = ours else { return false };
    let (mut ours, recorded) = (parsed(ours), parsed(recorded));
    if ours["method"] == "initialize" {
        ours["params"]["clientInfo"]["version"] = recorded["params"]["clientInfo"]["version"].clone();
        // Recorded before forms were supported.
        if let Some(can) = ours["params"]["clientCapabilities"].as_object_mut() {
            can.remove("elicitation");
        }
    }
    comparable(ours) == comparable(recorded)
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Plays a recording of ACP. Returns the events and the agent's text.
fn play_acp(name: &str) -> (String, String) {
    let mut text = String::new();
    let say = |said: RuntimeEvent| {
        Some(match said {
            RuntimeEvent::Ready { agent } => format!("ready {}", agent.unwrap_or_default()),
            RuntimeEvent::Opened { drafts, .. } => {
                for draft in &drafts {
                    update_is_acp(&draft.body);
                }
                let kinds: Vec<_> = drafts.iter().map(|draft| draft.kind.as_str()).collect();
                format!("opened with {}", kinds.join(", "))
            }
            RuntimeEvent::Event { draft, native } => {
                assert!(native.is_some());
                let frame = draft.native.as_ref().unwrap();
                if draft.kind.is_acp() {
                    assert!(frame.as_ptr_range().contains(&draft.body.as_ptr()), "a part of its frame");
                    update_is_acp(&draft.body);
                }
                if draft.kind == Kind::AgentMessageChunk {
                    let body: Value = serde_json::from_slice(&draft.body).unwrap();
                    text.push_str(body["content"]["text"].as_str().unwrap());
                }
                let over = draft.tool.map(|tool| if tool.ended { " over" } else { " open" });
                format!("event {}{}", draft.kind.as_str(), over.unwrap_or_default())
            }
            RuntimeEvent::Asked { ask, .. } => {
                if let Some(mention) = &ask.first_mention {
                    update_is_acp(&mention.body);
                }
                let options: Vec<_> = ask.options.iter().map(|o| format!("{}={:?}", o.id, o.kind)).collect();
                let first = if ask.first_mention.is_some() { ", first mention" } else { "" };
                format!("asked {:?} {}{first}", ask.subject, options.join(" "))
            }
            RuntimeEvent::Ended { end, .. } => format!("ended {:?} {:?}", end.status, end.stop_reason),
            other => format!("{other:?}"),
        })
    };
    let (said, _) = play(name, say, is_acp, is_as_good);
    (said, text)
}

fn update_is_acp(body: &[u8]) {
    parses::<v1::SessionUpdate>(&serde_json::from_slice(body).unwrap());
}

/// The agent's text, taken from the recording independently of the dialect.
fn streamed(name: &str) -> String {
    let mut text = String::new();
    for line in said_by_the_agent(name) {
        let message = parsed(&line);
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            text.push_str(update["content"]["text"].as_str().unwrap());
        }
    }
    text
}

#[test]
fn gemini() {
    let (said, text) = play_acp("gemini");
    assert_eq!(text, streamed("gemini"));
    insta::assert_snapshot!(said);
}

#[test]
fn opencode() {
    let (said, text) = play_acp("opencode");
    assert_eq!(text, streamed("opencode"));
    insta::assert_snapshot!(said);
}

#[test]
fn codex_acp() {
    let (said, text) = play_acp("codex-acp");
    assert_eq!(text, streamed("codex-acp"));
    insta::assert_snapshot!(said);
}

#[test]
fn vibe() {
    let (said, text) = play_acp("vibe");
    assert_eq!(text, streamed("vibe"));
    insta::assert_snapshot!(said);
}

#[test]
fn kimi() {
    let (said, text) = play_acp("kimi");
    assert_eq!(text, streamed("kimi"));
    insta::assert_snapshot!(said);
}

/// Plays the recording of `opencode serve`. Returns the events and the agent's text.
fn play_served(name: &str) -> (String, String) {
    let (mut text, mut native) = (String::new(), NativeId::from(""));
    let say = |said: RuntimeEvent| {
        Some(match said {
            RuntimeEvent::Ready { agent } => format!("ready {}", agent.unwrap_or_default()),
            RuntimeEvent::Opened { how, drafts, native: opened, .. } => {
                drafts.iter().for_each(|draft| update_is_acp(&draft.body));
                native = opened;
                format!("opened {how:?}")
            }
            RuntimeEvent::Event { draft, .. } => {
                if draft.kind.is_acp() {
                    update_is_acp(&draft.body);
                }
                if draft.kind == Kind::AgentMessageChunk {
                    let body: Value = serde_json::from_slice(&draft.body).unwrap();
                    text.push_str(body["content"]["text"].as_str().unwrap());
                }
                let over = draft.tool.map(|tool| if tool.ended { " over" } else { " open" });
                format!("event {}{}", draft.kind.as_str(), over.unwrap_or_default())
            }
            RuntimeEvent::Asked { ask, .. } => {
                let options: Vec<_> = ask.options.iter().map(|o| format!("{}={:?}", o.id, o.kind)).collect();
                format!("asked {:?} {}", ask.subject, options.join(" "))
            }
            // The checkpoint for another gateway has tests of its own.
            RuntimeEvent::Checkpoint { .. } => return None,
            RuntimeEvent::Spent { report, .. } => {
                format!("spent {} of {}", serde_json::json!(report.step), serde_json::json!(report.total))
            }
            RuntimeEvent::TakenBack { elsewhere, .. } => format!("taken back {elsewhere:?}"),
            RuntimeEvent::Ended { end, .. } => format!("ended {:?} {:?}", end.status, end.stop_reason),
            other => format!("{other:?}"),
        })
    };
    // The recording has reads that the dialect does not make.
    let read_besides = |line: &str, ours: Option<&str>| line.starts_with("GET ") && ours.is_none();
    let (said, _) = play(name, say, |_| {}, read_besides);
    let entries = recording(name);
    let replies = entries.iter().rev().filter(|(_, entry)| entry.dir == Direction::Reply);
    let mut messages =
        replies.filter_map(|(_, entry)| entry.line.strip_prefix("200 ").filter(|body| body.contains("\"parts\"")));
    // A late reader gets the same text.
    assert_eq!(read_late(native, messages.next().unwrap()), text);
    (said, text)
}

/// The agent's text for a connection that opens the session at the end.
fn read_late(native: NativeId, messages: &str) -> String {
    let mut dialect = made(&spec("opencode"));
    let mut out = Outbox::default();
    dialect.open(&mut out);
    let mut requests = VecDeque::from(out.fetches);
    let (mut text, mut resumed) = (String::new(), false);
    loop {
        let Some(fetch) = requests.pop_front() else {
            if std::mem::replace(&mut resumed, true) {
                return text;
            }
            let mut out = Outbox::default();
            let resume = Some(plexus_dialects::ResumeTarget::new(native.clone(), false));
            dialect.command(
                RuntimeCommand::Open {
                    ticket: Ticket(1),
                    cwd: "/home/user/project".into(),
                    resume,
                    mcp_servers: Vec::new(),
                },
                &mut out,
            );
            requests.extend(out.fetches);
            continue;
        };
        let body = match fetch.path.split('?').next().unwrap() {
            path if path.ends_with("/message") => messages.to_owned(),
            path if path.ends_with(native.as_str()) => format!(r#"{{"id":"{}"}}"#, native.as_str()),
            "/session/status" => "{}".into(),
            _ => "[]".into(),
        };
        let mut out = Outbox::default();
        dialect.reply(fetch.id, Ok(plexus_dialects::HttpReply { status: 200, body: body.into() }), &mut out);
        requests.extend(out.fetches);
        for said in out.events {
            if let RuntimeEvent::Event { draft, .. } = said
                && draft.kind == Kind::AgentMessageChunk
            {
                let body: Value = serde_json::from_slice(&draft.body).unwrap();
                text.push_str(body["content"]["text"].as_str().unwrap());
            }
        }
    }
}

#[test]
fn opencode_serve() {
    let (said, _) = play_served("opencode_serve");
    insta::assert_snapshot!(said);
}

/// Plays a recording of Codex's app-server, as [`play_acp`] does for ACP.
fn play_codex(name: &str) -> (String, String) {
    let mut text = String::new();
    let say = |said: RuntimeEvent| {
        Some(match said {
            RuntimeEvent::Event { draft, .. } => {
                assert!(draft.native.is_some());
                if draft.kind.is_acp() {
                    update_is_acp(&draft.body);
                }
                let body: Value = serde_json::from_slice(&draft.body).unwrap();
                if draft.kind == Kind::AgentMessageChunk {
                    text.push_str(body["content"]["text"].as_str().unwrap());
                }
                let over = draft.tool.map(|tool| if tool.ended { " over" } else { " open" });
                let status = body["status"].as_str().unwrap_or_default();
                format!("event {}{} {status}", draft.kind.as_str(), over.unwrap_or_default())
            }
            RuntimeEvent::Asked { ask, .. } => {
                assert!(ask.first_mention.is_none(), "the item comes first");
                let options: Vec<_> = ask.options.iter().map(|o| format!("{}={:?}", o.id, o.kind)).collect();
                format!("asked {:?} {}", ask.subject, options.join(" "))
            }
            RuntimeEvent::Ended { end, .. } => format!("ended {:?} {:?}", end.status, end.message),
            RuntimeEvent::Opened { how, drafts, .. } => format!("opened {how:?} with {}", drafts.len()),
            other => format!("{other:?}"),
        })
    };
    let no_version = |frame: &Value| assert!(frame.get("jsonrpc").is_none());
    let (said, player) = play(name, say, no_version, is_as_good);
    assert!(player.dialect().asks().is_empty() && player.dialect().prompts().is_empty());
    (said, text)
}

#[test]
fn codex_app() {
    let (said, text) = play_codex("codex_app");
    let mut streamed = String::new();
    for line in said_by_the_agent("codex_app") {
        let message = parsed(&line);
        if message["method"] == "item/agentMessage/delta" {
            streamed.push_str(message["params"]["delta"].as_str().unwrap());
        }
    }
    assert_eq!(text, streamed, "the whole that follows the pieces is not told a second time");
    insta::assert_snapshot!(said);
}

/// A connection with a session, ready for requests.
fn connected(dialect: &str) -> Box<dyn Dialect> {
    let mut made = made(&spec(dialect));
    let mut out = Outbox::default();
    made.open(&mut out);
    let hello = match dialect {
        "acp" => r#"{"id":0,"result":{"protocolVersion":1}}"#,
        "codex" => r#"{"id":0,"result":{"userAgent":"plexus/1 x"}}"#,
        _ => r#"{"id":"1","result":{"protocol_version":"0"}}"#,
    };
    made.feed(Bytes::from_static(hello.as_bytes()), &mut out);
    made.command(
        RuntimeCommand::Open { ticket: Ticket(1), cwd: "/w".into(), resume: None, mcp_servers: Vec::new() },
        &mut out,
    );
    made.feed(Bytes::from_static(br#"{"id":1,"result":{"sessionId":"s","thread":{"id":"s"}}}"#), &mut out);
    made
}

/// Feeds a frame and checks that the output holds the contract of events and frames.
fn fed(dialect: &mut dyn Dialect, frame: &[u8]) -> Outbox {
    let mut out = Outbox::default();
    dialect.feed(Bytes::copy_from_slice(frame), &mut out);
    for said in &out.events {
        if let RuntimeEvent::Event { draft, .. } = said {
            assert!(!draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')), "{draft:?}");
            assert!(
                draft.body.starts_with(b"{") && serde_json::from_slice::<&RawValue>(&draft.body).is_ok(),
                "{draft:?}"
            );
            assert!(plexus_dialects::depth(&draft.body) <= plexus_dialects::DEPTH_MAX);
        }
    }
    for frame in &out.frames {
        let (end, line) = frame.split_last().unwrap();
        assert!(*end == b'\n' && !line.contains(&b'\n'));
        assert!(serde_json::from_slice::<&RawValue>(line).is_ok(), "{frame:?}");
    }
    out
}

fn json_id() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|id| id.to_string()),
        any::<String>().prop_map(|id| serde_json::to_string(&id).unwrap()),
        (any::<i32>(), 0u32..1000).prop_map(|(whole, part)| format!("{whole}.{part:03}")),
        Just("null".to_owned()),
    ]
}

proptest! {
    #[test]
    fn transcript_of_any_bytes_is_reported_or_empty(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for dialect in ["acp", "codelia", "codex"] {
            let out = fed(&mut *connected(dialect), &bytes);
            let blank = bytes.iter().all(u8::is_ascii_whitespace);
            prop_assert_eq!(blank, out.events.is_empty() && out.frames.is_empty());
        }
    }

    #[test]
    fn transcripts_that_are_damaged_never_panic(
        which in 0usize..4, line in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut lines = recording(["gemini", "opencode", "codex-acp", "codex_app"][which]);
        // Lines of the gateway's commands are not output of the agent.
        lines.retain(|(_, line)| !line.line.is_empty());
        let mut frame = line.get(&lines).1.line.clone().into_bytes();
        let cut = cut.index(frame.len());
        frame.splice(cut..(cut + bytes.len()).min(frame.len()), bytes);
        for dialect in ["acp", "codelia", "codex"] {
            fed(&mut *connected(dialect), &frame);
        }
    }

    #[test]
    fn request_id_of_any_shape_comes_back_unchanged(id in json_id()) {
        let permission = format!(
            r#"{{"id":{id},"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{}},"options":[{{"optionId":"y"}}]}}}}"#
        );
        let confirm = format!(r#"{{"id":{id},"method":"ui.confirm.request","params":{{"title":"T"}}}}"#);
        let approval = format!(
            r#"{{"id":{id},"method":"item/fileChange/requestApproval","params":{{"threadId":"s","turnId":"u","itemId":"i"}}}}"#
        );
        for (dialect, ask) in [("acp", permission), ("codelia", confirm), ("codex", approval)] {
            let dialect_name = dialect;
            let mut dialect = connected(dialect);
            let out = fed(&mut *dialect, ask.as_bytes());
            let [RuntimeEvent::Asked { ask, .. }] = &out.events[..] else { panic!("{:?}", out.events) };
            let mut out = Outbox::default();
            dialect.command(RuntimeCommand::Answer { key: ask.key.clone(), decision: Decision::Withdrawn }, &mut out);
            let version = if dialect_name == "codex" { "" } else { r#""jsonrpc":"2.0","# };
            let start = format!(r#"{{{version}"id":{id},"result":"#);
            prop_assert!(out.frames[0].starts_with(start.as_bytes()), "{:?}", out.frames[0]);
        }
    }
}

#[test]
fn event_bodies_nest_no_deeper_than_the_limit() {
    for depth in plexus_dialects::DEPTH_MAX - 4..plexus_dialects::DEPTH_MAX + 4 {
        let nest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for frame in [format!(r#"{{"x":{nest}}}"#), format!(r#"{{"method":"run.diagnostics","params":{nest}}}"#), nest]
        {
            for dialect in ["acp", "codelia", "codex"] {
                assert_eq!(fed(&mut *connected(dialect), frame.as_bytes()).events.len(), 1);
            }
        }
    }
}

#[test]
fn sent_frames_match_the_published_schema() {
    let mut dialect = connected("acp");
    let mut frames = Vec::new();
    let mut out = Outbox::default();
    dialect.open(&mut out);
    let native = NativeId::from("s");
    let call = |method: &str, params: &str| RuntimeCommand::Call {
        ticket: Ticket(3),
        native: Some(native.clone()),
        method: method.into(),
        params: Some(RawValue::from_string(params.into()).unwrap()),
        notify: false,
    };
    dialect.command(call("session/set_mode", r#"{"modeId":"m"}"#), &mut out);
    dialect.command(call("session/set_config_option", r#"{"configId":"c","value":"v"}"#), &mut out);
    dialect.command(RuntimeCommand::Cancel { ticket: Some(Ticket(2)), native: native.clone(), reason: None }, &mut out);
    for (id, decision) in [
        ("1", Decision::Option { id: "accept".into(), kind: Choice::AllowOnce, reason: None }),
        ("2", Decision::Option { id: "decline".into(), kind: Choice::RejectOnce, reason: None }),
        ("3", Decision::Expired),
    ] {
        let ask = format!(
            r#"{{"id":{id},"method":"elicitation/create","params":{{"mode":"form","message":"m","requestedSchema":{{}}}}}}"#
        );
        dialect.feed(Bytes::from(ask), &mut out);
        let key = open_under(dialect.as_ref(), id);
        dialect.command(RuntimeCommand::Answer { key, decision }, &mut out);
    }
    dialect.feed(Bytes::from_static(br#"{"id":4,"method":"fs/read_text_file","params":{}}"#), &mut out);
    frames.extend(out.frames);
    assert_eq!(frames.len(), 8);
    for frame in frames {
        is_acp(&serde_json::from_slice(&frame).unwrap());
    }
}
