//! Sentences that a person types in `plexus run` while requests open, change and close answer nothing; and an agent with misleading labels
//! never names an answer, on any screen. With the agent `tests/agents/asks.mjs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;

use common::gateway::{Gateway, exe, runtime, said};
use common::moments::until_so;
use common::terminal::Terminal;
use serde_json::{Value, json};

/// Sentences that are typed into one terminal.
const SENTENCES: usize = 200;

/// The agent's program.
fn program() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/asks.mjs").display().to_string()
}

fn terminal(gateway: &Gateway, size: (u16, u16), args: &[&str]) -> Terminal {
    let home = gateway.home.display().to_string();
    let command: Vec<&str> = [exe()].into_iter().chain(args.iter().copied()).collect();
    Terminal::open(None, size, &[("PLEXUS_HOME", &home), ("NO_COLOR", "1")], &command)
}

/// Sentences that begin with each character of a keyboard, and with each verb and its key.
fn sentences() -> Vec<String> {
    let firsts = ('!'..='~').filter(|c| *c != '>').map(String::from);
    let words = ["Deny", "deny", "Allow once", "Always allow", "Answer", "Skip", "A d a", "1 2"].map(str::to_owned);
    let rests = ["dd a test", "es, always", " a d A e 1 x"];
    let all = firsts.chain(words).flat_map(|first| rests.map(|rest| format!("{first}{rest}")));
    all.take(SENTENCES).collect()
}

#[tokio::test]
async fn run_answers_nothing_while_sentences_are_typed() {
    let gateway = Gateway::start("").await;
    let asks = json!({ "ask": ["make one", "make two"], "again": true }).to_string();
    let command = ["run", "--dialect", "acp", "--prompt", &asks, "--", "node", &program()];
    let run = terminal(&gateway, (100, 40), &command);
    run.until("the question", Terminal::text, |text| text.contains("as a line of its own")).await;
    let (_, listed) = gateway.get("/v1/sessions").await;
    let session = listed["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let all = sentences();
    assert_eq!(all.len(), SENTENCES);
    let mut denied = 0;
    for (n, sentence) in all.iter().enumerate() {
        // Meanwhile another client denies, whereupon the agent asks anew.
        if n % 10 == 5 {
            let open = gateway.open_requests(&session, 2).await;
            assert_eq!(gateway.choose(&open[n % 2], "reject_once").await.0, 200);
            denied += 1;
        }
        run.words(sentence);
        run.keys(&["Enter"]);
        // A question that has been shown for long is answered by a line, a new one by none.
        if n % 10 == 4 {
            tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        }
        if n % 20 == 19 {
            run.until(sentence, Terminal::text, |text| text.contains(sentence.as_str())).await;
        }
    }
    gateway.open_requests(&session, 2).await;
    let events = gateway.events(&session).await;
    let answered: Vec<&Value> = events.iter().filter(|event| event["kind"] == "request_resolved").collect();
    assert_eq!(answered.len(), denied, "{answered:?}");
    assert!(!said(&events, None).contains("allow"), "{}", said(&events, None));
    assert_eq!(events.iter().filter(|event| event["kind"] == "run_started").count(), 1, "no sentence was a prompt");
    // A key as a line of its own answers.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    run.words("a");
    run.keys(&["Enter"]);
    run.until("the answer", Terminal::all, |text| text.contains("allow_once")).await;
}

/// The words that the agent gives its options, and the verbs that they have.
const MISLEADING: [(&str, &str, &str); 3] = [
    ("allow_once", "Reject", "Allow once"),
    ("reject_once", "Allow just this once", "Deny"),
    ("allow_always", "Deny this, and stop asking", "Always allow"),
];

/// Asserts that each verb is shown, and that a label stands nowhere but quoted after its verb.
fn assert_verbs(screen: &str, text: &str, labels_shown: bool) {
    for (_, label, verb) in MISLEADING {
        assert!(text.contains(verb), "{screen}: no {verb:?} in:\n{text}");
        let whole: Vec<_> = text.match_indices(label).collect();
        assert!(!labels_shown || !whole.is_empty(), "{screen}: no {label:?} in:\n{text}");
        for (at, _) in whole {
            let before =
                text[..at].strip_suffix('“').unwrap_or_else(|| panic!("{screen}: {label:?} unquoted:\n{text}"));
            assert!(
                before.trim_end_matches([' ', '…']).ends_with(verb),
                "{screen}: {label:?} without its verb:\n{text}"
            );
        }
    }
}

#[tokio::test]
async fn misleading_labels_name_no_answer_on_any_screen() {
    let labels: serde_json::Map<String, Value> =
        MISLEADING.iter().map(|(id, label, _)| ((*id).into(), json!(label))).collect();
    let labels = json!(labels).to_string();
    let env = format!("env = {{ ASKS_LABELS = {} }}\n", json!(labels));
    let gateway = Gateway::start(&runtime("asks", &["node", &program()], &env)).await;
    let session = gateway.session("asks").await;
    let mut acp = gateway.ws_plain("/acp").await;
    acp.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await.unwrap();
    acp.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await.unwrap();
    let mut ui = gateway.ws_plain("/v1/ws").await;
    let hello = json!({ "protocol_version": "0", "ui_protocol": "0", "client": { "name": "ui", "version": "0" },
        "ui_capabilities": { "supports_confirm": true, "supports_prompt": true, "supports_pick": true } });
    ui.call("initialize", hello).await.unwrap();
    let attach = terminal(&gateway, (120, 30), &["attach", &session]);
    let text = json!({ "ask": ["make deploy"] }).to_string();
    ui.call("run.start", json!({ "session_id": session, "input": { "type": "text", "text": text } })).await.unwrap();
    let request = gateway.open_request(&session).await;

    // An ACP client, and one of the UI protocol.
    let asked = acp.until("session/request_permission").await;
    let names: Vec<&str> =
        asked["options"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_verbs("ACP", &names.join("\n"), true);
    for (id, _, verb) in MISLEADING {
        let option = asked["options"].as_array().unwrap().iter().find(|option| option["optionId"] == id).unwrap();
        assert!(option["name"].as_str().unwrap().starts_with(verb), "{option}");
    }
    let asked = ui.until("ui.confirm.request").await;
    assert_eq!(asked["confirm_label"], "Allow once “Reject”", "{asked}");
    assert_eq!(asked["cancel_label"], "Deny “Allow just this once”", "{asked}");

    // The terminals.
    attach.until("how to answer", Terminal::text, |text| text.contains("Esc, then a")).await;
    attach.keys(&["Escape"]);
    let text = attach.until("the card", Terminal::text, |text| text.contains("Allow once")).await;
    assert_verbs("attach", &text, false);
    assert!(text.contains("Allow once “Reject”"), "{text}");
    let listed = std::process::Command::new(exe()).arg("requests").env("PLEXUS_HOME", &gateway.home).output().unwrap();
    assert_verbs("requests", &String::from_utf8(listed.stdout).unwrap(), true);
    let more = json!({ "ask": ["make more"] }).to_string();
    let env = format!("ASKS_LABELS={labels}");
    let command =
        ["run", "--dialect", "acp", "--id", "more", "--env", &env, "--prompt", &more, "--", "node", &program()];
    let run = terminal(&gateway, (100, 40), &command);
    let text = run.until("the question", Terminal::text, |text| text.contains("as a line of its own")).await;
    assert_verbs("run", text.split("? more").nth(1).unwrap_or(&text), true);

    // A label that says the opposite of another option's verb names neither.
    let id = request["request_id"].as_str().unwrap();
    let answer = |option: &str| {
        let mut command = std::process::Command::new(exe());
        command.args(["answer", id, "--option", option]).env("PLEXUS_HOME", &gateway.home).output().unwrap()
    };
    let refused = answer("deny this");
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("Always allow"),
        "{refused:?}"
    );
    let denied = answer("deny");
    assert!(denied.status.success(), "{denied:?}");
    attach.until("the receipt", Terminal::text, |text| text.contains("Denied by")).await;
    let told = async || said(&gateway.events(&session).await, None).contains("make deploy: reject_once");
    until_so("the agent has the answer", told).await;
}
