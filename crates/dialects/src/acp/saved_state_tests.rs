//! Connections that another gateway process takes over continue without a difference.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use proptest::prelude::*;

use super::super::rig::{choose, raw, spec};
use super::super::{Dialect, Outbox, RequestKey, ResumeTarget, RuntimeCommand, find};
use plexus_protocol::{Choice, Decision, NativeId, RuntimeSpec, Ticket};

/// An event of a connection.
#[derive(Clone, Debug)]
enum Step {
    Hear(String),
    Open(u64, Option<(u8, bool)>),
    Prompt(u64, u8),
    Cancel(u8),
    Answer(u8, Decision),
    Call(u64, u8, usize),
    Wake,
}

const CALLS: [(&str, Option<&str>); 5] = [
    ("model.list", None),
    ("model.set", Some(r#"{"name":"m2"}"#)),
    ("session/set_mode", Some(r#"{"modeId":"ask"}"#)),
    ("session/list", None),
    ("_x", Some("{}")),
];

fn native(n: u8) -> NativeId {
    format!("s{n}").as_str().into()
}

fn fresh() -> Box<dyn Dialect> {
    let meta = Some(raw(r#"{"m":1}"#));
    find("acp").unwrap()(&RuntimeSpec { auth_method: Some("key".into()), session_meta: meta, ..spec("acp") })
}

fn perform(dialect: &mut dyn Dialect, step: Step, out: &mut Outbox) {
    match step {
        Step::Hear(line) => dialect.feed(Bytes::from(line), out),
        Step::Open(ticket, resume) => {
            let resume = resume.map(|(n, known)| ResumeTarget::new(native(n), known));
            dialect.command(
                RuntimeCommand::Open { ticket: Ticket(ticket), cwd: "/w".into(), resume, mcp_servers: Vec::new() },
                out,
            );
        }
        Step::Prompt(ticket, n) => {
            let content = vec![raw(r#"{"type":"text","text":"hi"}"#)];
            dialect.command(RuntimeCommand::Prompt { ticket: Ticket(ticket), native: native(n), content }, out);
        }
        Step::Cancel(n) => {
            dialect.command(RuntimeCommand::Cancel { ticket: None, native: native(n), reason: None }, out)
        }
        Step::Answer(n, decision) => {
            let open = dialect.asks().into_iter().find(|key| key.id() == n.to_string());
            let key = open.unwrap_or_else(|| RequestKey::unique(n.to_string()));
            dialect.command(RuntimeCommand::Answer { key, decision }, out);
        }
        Step::Call(ticket, n, call) => {
            let (method, params) = CALLS[call];
            let (ticket, method, params) = (Ticket(ticket), method.into(), params.map(raw));
            dialect
                .command(RuntimeCommand::Call { ticket, native: Some(native(n)), method, params, notify: false }, out);
        }
        Step::Wake => dialect.wake(out),
    }
}

fn reports(out: &Outbox) -> String {
    format!("{:?} {:?} {:?}", out.events, out.frames, out.wake_after)
}

fn standing(dialect: &dyn Dialect) -> (Vec<RequestKey>, Vec<Ticket>) {
    let (mut asks, mut prompts) = (dialect.asks(), dialect.prompts());
    asks.sort_unstable();
    prompts.sort_unstable();
    (asks, prompts)
}

/// Returns JSON without an order, as sets have none.
fn sorted(value: &serde_json::Value) -> String {
    let mut parts: Vec<String> = match value {
        serde_json::Value::Object(all) => all.iter().map(|(key, value)| format!("{key}: {}", sorted(value))).collect(),
        serde_json::Value::Array(all) => all.iter().map(sorted).collect(),
        plain => return plain.to_string(),
    };
    parts.sort();
    format!("{{{}}}", parts.join(", "))
}

/// Generates replies to requests of the gateway that are probably pending, updates, questions, withdrawals and junk.
fn line() -> impl Strategy<Value = String> {
    let opened = r#"{"sessionId":"s1","modes":{"currentModeId":"ask"},"models":{"currentModelId":"m1","availableModels":[{"modelId":"m1"},{"modelId":"m2"}]}}"#;
    let result = prop::sample::select(vec![
        r#""result":{}"#.to_owned(),
        r#""result":null"#.into(),
        format!(r#""result":{opened}"#),
        r#""result":{"stopReason":"end_turn"}"#.into(),
        r#""error":{"code":-32000,"message":"sign in"}"#.into(),
        r#""error":{"code":-32603,"message":"boom"}"#.into(),
    ]);
    let reply = (0u8..12, result).prop_map(|(id, result)| format!(r#"{{"id":{id},{result}}}"#));
    let kind = prop::sample::select(vec!["agent_message_chunk", "tool_call", "tool_call_update", "plan", "odd"]);
    let status = prop::sample::select(vec!["pending", "completed"]);
    let update = (0u8..3, kind, 0u8..3, status).prop_map(|(s, kind, tool, status)| {
        format!(r#"{{"method":"session/update","params":{{"sessionId":"s{s}","update":{{"sessionUpdate":"{kind}","toolCallId":"t{tool}","status":"{status}"}}}}}}"#)
    });
    let ask = (0u8..4, 0u8..3, 0u8..3).prop_map(|(id, s, tool)| {
        format!(r#"{{"id":{id},"method":"session/request_permission","params":{{"sessionId":"s{s}","toolCall":{{"toolCallId":"t{tool}"}},"options":[{{"optionId":"y","name":"Y","kind":"allow_once"}}]}}}}"#)
    });
    let url = (0u8..4).prop_map(|id| {
        format!(r#"{{"id":{id},"method":"elicitation/create","params":{{"mode":"url","message":"m","url":"https://x","elicitationId":"e{id}"}}}}"#)
    });
    let back = (0u8..4).prop_map(|id| format!(r#"{{"method":"$/cancel_request","params":{{"requestId":{id}}}}}"#));
    prop_oneof![5 => reply, 4 => update, 3 => ask, 1 => url, 1 => back, 1 => Just("junk".to_owned())]
}

fn step() -> impl Strategy<Value = Step> {
    let decision = prop::sample::select(vec![
        choose("y", Choice::AllowOnce),
        choose("accept", Choice::AllowOnce),
        Decision::Value(Some("v".into())),
        Decision::Ids(vec!["key".into()]),
        Decision::Withdrawn,
    ]);
    prop_oneof![
        6 => line().prop_map(Step::Hear),
        2 => (1u64..50, prop::option::of((0u8..3, any::<bool>()))).prop_map(|(t, r)| Step::Open(t, r)),
        2 => (1u64..50, 0u8..3).prop_map(|(t, n)| Step::Prompt(t, n)),
        1 => (0u8..3).prop_map(Step::Cancel),
        2 => (0u8..4, decision).prop_map(|(n, d)| Step::Answer(n, d)),
        1 => (1u64..50, 0u8..3, 0usize..CALLS.len()).prop_map(|(t, n, c)| Step::Call(t, n, c)),
        1 => Just(Step::Wake),
    ]
}

fn hello(agent: &str, can: &str) -> Step {
    Step::Hear(format!(
        r#"{{"id":0,"result":{{"protocolVersion":1,"agentInfo":{{"name":"{agent}"}},"agentCapabilities":{can},"authMethods":[{{"id":"web","name":"W"}},{{"id":"env","name":"E","type":"env_var"}}]}}}}"#
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// One connection continues; the other is saved and taken over before every step.
    #[test]
    fn acp_saved_state_taken_over_at_any_point_goes_on_the_same(
        agent in prop::sample::select(vec!["gemini-cli", "other"]),
        can in prop::sample::select(vec![
            "{}",
            r#"{"loadSession":true}"#,
            r#"{"loadSession":true,"sessionCapabilities":{"resume":{},"list":{}}}"#,
            r#"{"sessionCapabilities":{"resume":{}}}"#,
        ]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (mut whole, mut torn) = (fresh(), fresh());
        let (mut a, mut b) = (Outbox::default(), Outbox::default());
        whole.open(&mut a);
        torn.open(&mut b);
        for step in [hello(agent, can)].into_iter().chain(steps) {
            let saved = torn.save().unwrap();
            torn = fresh();
            prop_assert!(torn.restore(&saved));
            let (mut a, mut b) = (Outbox::default(), Outbox::default());
            perform(&mut *whole, step.clone(), &mut a);
            perform(&mut *torn, step.clone(), &mut b);
            prop_assert_eq!(reports(&a), reports(&b), "{:?}", step);
            prop_assert_eq!(standing(&*whole), standing(&*torn), "{:?}", step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// A state and the commands and lines since lead to the connection's present state, and to its frames: so a driver
    /// need not save the whole state with each frame.
    #[test]
    fn acp_saved_state_is_deterministic(
        before in prop::collection::vec(step(), 0..20),
        after in prop::collection::vec(step(), 1..20),
    ) {
        let (mut whole, mut out) = (fresh(), Outbox::default());
        whole.open(&mut out);
        for step in [hello("other", r#"{"loadSession":true}"#)].into_iter().chain(before) {
            perform(&mut *whole, step, &mut out);
        }
        let mut again = fresh();
        prop_assert!(again.restore(&whole.save().unwrap()));
        // A wake is no such step.
        for step in after.into_iter().filter(|step| !matches!(step, Step::Wake)) {
            let (mut a, mut b) = (Outbox::default(), Outbox::default());
            perform(&mut *whole, step.clone(), &mut a);
            perform(&mut *again, step.clone(), &mut b);
            prop_assert_eq!(&a.frames, &b.frames, "{:?}", step);
        }
        let value = |dialect: &dyn Dialect| sorted(&serde_json::from_slice(&dialect.save().unwrap()).unwrap());
        prop_assert_eq!(value(&*whole), value(&*again));
    }
}

#[test]
fn acp_saved_state_that_is_damaged_is_refused() {
    let saved = fresh().save().unwrap();
    let text = String::from_utf8(saved.clone()).unwrap();
    assert!(fresh().restore(&saved));
    for junk in [
        "",
        "{}",
        "null",
        &text[..text.len() - 1],
        &text.replace(r#""acp":2"#, r#""acp":3"#),
        &text.replace(r#""next":0,"#, ""),
    ] {
        let mut dialect = fresh();
        assert!(!dialect.restore(junk.as_bytes()), "{junk}");
        // It can still be opened.
        let mut out = Outbox::default();
        dialect.open(&mut out);
        assert_eq!(out.frames.len(), 1);
    }
}

#[test]
fn acp_saved_state_has_equal_model_lists_once() {
    let models: Vec<_> = (0..300)
        .map(|n| serde_json::json!({ "modelId": format!("vendor/model-{n}"), "name": format!("M {n}") }))
        .collect();
    let saved_with = |sessions: u64| {
        let (mut dialect, mut out) = (fresh(), Outbox::default());
        dialect.open(&mut out);
        perform(&mut *dialect, hello("other", "{}"), &mut out);
        perform(&mut *dialect, Step::Hear(r#"{"id":1,"result":{}}"#.into()), &mut out);
        for n in 0..sessions {
            perform(&mut *dialect, Step::Open(n + 1, None), &mut out);
            let frame: serde_json::Value = serde_json::from_slice(out.frames.last().unwrap()).unwrap();
            let models = serde_json::json!({ "currentModelId": "m", "availableModels": models });
            let reply =
                serde_json::json!({ "id": frame["id"], "result": { "sessionId": format!("s{n}"), "models": models } });
            perform(&mut *dialect, Step::Hear(reply.to_string()), &mut out);
        }
        dialect.save().unwrap()
    };
    let (one, sixty) = (saved_with(1), saved_with(60));
    assert!(one.len() > 300 * 20, "the list is there");
    assert!(sixty.len() < one.len() + 60 * 100, "{} and {}", one.len(), sixty.len());
    // And is everybody's again.
    let mut dialect = fresh();
    assert!(dialect.restore(&sixty));
    assert_eq!(dialect.save().unwrap(), sixty);
    let mut out = Outbox::default();
    let call = RuntimeCommand::Call {
        ticket: Ticket(99),
        native: Some("s59".into()),
        method: "model.list".into(),
        params: None,
        notify: false,
    };
    dialect.command(call, &mut out);
    assert!(reports(&out).contains("vendor/model-299"));
}

#[test]
fn acp_saved_state_holds_no_secrets_and_no_settings() {
    let text = String::from_utf8(fresh().save().unwrap()).unwrap();
    assert!(!text.contains("session_meta") && !text.contains("auth_method"), "{text}");
}
