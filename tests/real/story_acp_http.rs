//! ACP over Streamable HTTP, with the clients that people use: the official TypeScript and Rust SDKs, and acp-http-client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::acp_http::{Message, Raw};
use common::cast::Player;
use common::gateway::{Gateway, said};
use common::moments::rounds;
use serde_json::{Value, json};

/// A small random generator, so that a failure can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The agent's text in the log.
async fn logged_text(gateway: &Gateway, session: &str) -> String {
    said(&gateway.events(session).await, None)
}

/// The open request, even if it came with the history.
async fn asked(player: &mut Player) -> Value {
    let known = |id: &Value| player.saw.iter().any(|(_, saw)| saw["resolved"] == *id);
    let open = player.saw.iter().find(|(_, saw)| saw.get("asked").is_some() && !known(&saw["id"]));
    match open {
        Some((_, open)) => open.clone(),
        None => player.until("asked").await,
    }
}

/// One session with several clients of this kind.
async fn play_session(kind: &str) {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Player::enter(kind, &gateway, &session).await;
    let mut other = Player::enter(kind, &gateway, &session).await;
    // Text, with prompts from two clients.
    one.prompt("stream 40").await;
    one.until("ended").await;
    other.until("user").await;
    other.until("ended").await;
    assert_eq!(one.text(), logged_text(&gateway, &session).await, "{kind}");
    assert_eq!(other.text(), one.text(), "{kind}");
    // A request answered by this client, and one answered by another.
    for (allow, here) in [(true, true), (false, false)] {
        one.prompt("ask").await;
        let question = one.until("asked").await;
        assert_eq!(other.until("asked").await, question, "{kind}");
        if here {
            one.answer(allow).await
        } else {
            other.answer(allow).await
        }
        for player in [&mut one, &mut other] {
            let resolved = player.until("resolved").await;
            assert_eq!((&resolved["resolved"], &resolved["allow"]), (&question["id"], &json!(allow)), "{kind}");
            assert!(resolved["by"].is_string(), "{kind}: {resolved}");
            player.until("ended").await;
        }
    }
    // Cancelled by another client.
    one.prompt("echo begun ;; hang").await;
    one.until("text").await;
    other.until("text").await;
    other.cancel().await;
    assert_eq!(one.until("ended").await["ended"], "cancelled", "{kind}");
    other.until("ended").await;
    // A late joiner, during an open request.
    one.prompt("ask").await;
    one.until("asked").await;
    let mut late = Player::enter(kind, &gateway, &session).await;
    assert_eq!(late.text(), logged_text(&gateway, &session).await, "{kind}: all of the past is there at once");
    asked(&mut late).await;
    late.answer(true).await;
    let ends = |player: &Player| player.saw.iter().filter(|(_, saw)| saw.get("ended").is_some()).count();
    while ends(&late) < 5 {
        late.until("ended").await;
    }
    for player in [&mut one, &mut other] {
        player.until("ended").await;
        assert_eq!(player.text(), logged_text(&gateway, &session).await, "{kind}");
    }
    assert_eq!(late.text(), one.text(), "{kind}");
    assert_eq!((ends(&one), ends(&other), ends(&late)), (5, 5, 5), "{kind}: every end is told once");
    // Cut in the middle and reconnected: no gap, no repeat, and requests opened meanwhile arrive.
    let runs = 5;
    for round in 0..runs {
        other.prompt("stream 200 1 ;; ask ;; stream 20").await;
        one.until("text").await;
        one.cut().await;
        if round % 2 == 0 {
            other.until("asked").await;
        }
        one.resume().await;
        asked(&mut one).await;
        one.answer(round % 2 == 0).await;
        while ends(&one) < 6 + round {
            one.until("ended").await;
        }
        while ends(&other) < 6 + round {
            other.until("ended").await;
        }
    }
    assert_eq!(one.text(), logged_text(&gateway, &session).await, "{kind}: after {runs} cuts");
    assert_eq!(other.text(), one.text(), "{kind}");
    for player in [one, other, late] {
        player.quit().await;
    }
}

#[tokio::test]
async fn acp_http_official_typescript_sdk() {
    play_session("acp-http").await;
}

#[tokio::test]
async fn acp_http_official_rust_sdk() {
    play_session("acp-rust").await;
}

#[tokio::test]
async fn acp_http_client() {
    play_session("acp-http-client").await;
}

#[tokio::test]
async fn acp_http_clients_of_all_kinds_outlive_the_gateway() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut players = Vec::new();
    for kind in ["acp-http", "acp-rust"] {
        players.push(Player::enter(kind, &gateway, &session).await);
    }
    players[0].prompt("stream 300 2").await;
    for player in &mut players {
        player.until("text").await;
    }
    gateway.kill();
    for player in &mut players {
        player.until("dropped").await;
    }
    gateway.again().await;
    for player in &mut players {
        player.resume().await;
    }
    players[1].prompt("echo once more").await;
    for player in &mut players {
        while !player.text().ends_with("once more") {
            player.until("text").await;
        }
    }
    for player in players {
        assert_eq!(player.text(), logged_text(&gateway, &session).await, "{}", player.kind);
        player.quit().await;
    }
}

#[tokio::test]
async fn acp_http_client_resumes_by_cursor_after_a_gateway_restart() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let raw = Raw::begin(&gateway.url, &gateway.token).await;
    let (mut stream, _) = raw.attach(&session, None).await;
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "stream 30" }] });
    raw.ask(Some(&session), "work", "session/prompt", params).await;
    let seen = stream.until("work").await;
    let last = seen.iter().rev().find_map(|message| message.id.clone()).unwrap();
    gateway.kill();
    while stream.next().await.is_some() {}
    gateway.again().await;
    let after = Raw { url: format!("{}/acp", gateway.url), ..raw };
    assert_eq!(after.open(Some(&session), Some(&last)).await.status(), 404);
    let list = common::acp_http::request(json!(1), "session/list", json!({}));
    assert_eq!(after.post(None, list).await.body["code"], "connection_not_found");
    let anew = Raw::begin(&gateway.url, &gateway.token).await;
    let (_, past) = anew.attach(&session, Some(&last)).await;
    assert!(past.iter().all(|message| message.text().is_empty()), "nothing is told again: {past:?}");
}

#[tokio::test]
async fn acp_http_stream_cut_repeatedly_equals_the_log() {
    let total = rounds("cuts", 25, 100);
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let raw = Raw::begin(&gateway.url, &gateway.token).await;
    let (mut stream, past) = raw.attach(&session, None).await;
    let seed = 0x5eed;
    let mut dice = Dice(seed);
    let mut last = past.last().unwrap().id.clone();
    // Messages after the last `id` come again.
    let (mut seen, mut undone): (Vec<Message>, Vec<Message>) = (past, Vec::new());
    let prompt = |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    raw.ask(Some(&session), "p", "session/prompt", prompt("flood 3000 ;; ask ;; flood 200")).await;
    let (mut cuts, mut others) = (0, 0);
    let (mut over, mut answered) = (false, false);
    while !over {
        if cuts < total && dice.roll(20) == 0 {
            cuts += 1;
            undone.clear();
            if cuts % 3 == 0 {
                // A response, which is not in the log, on either stream.
                others += 1;
                let params = json!({ "sessionId": session, "modeId": "none" });
                raw.ask(Some(&session), &format!("o{others}"), "session/set_mode", params).await;
            }
            drop(stream);
            stream = raw.stream(Some(&session), last.as_deref()).await;
            continue;
        }
        let message = stream.next().await.expect("the stream ended");
        if !answered && message.json["method"] == "session/request_permission" {
            answered = true;
            let option = &message.json["params"]["options"][0]["optionId"];
            let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
            let answer = json!({ "jsonrpc": "2.0", "id": message.json["id"], "result": outcome });
            assert_eq!(raw.post(Some(&session), answer).await.status, 202);
        }
        over = message.json["id"] == "p" && message.id.is_some();
        let id = message.id.clone();
        undone.push(message);
        if id.is_some() {
            last = id;
            seen.append(&mut undone);
        }
    }
    assert_eq!(cuts, total, "seed {seed:#x}");
    // All responses came once: on the session's stream, or on the connection's while that was closed.
    let mut own = raw.stream(None, None).await;
    raw.ask(None, "end", "session/list", json!({})).await;
    seen.extend(own.until("end").await);
    for n in 1..=others {
        let count = seen.iter().filter(|message| message.json["id"] == format!("o{n}")).count();
        assert_eq!(count, 1, "o{n} of {others}, seed {seed:#x}");
    }
    let log = gateway.events(&session).await;
    let text: String = seen.iter().map(Message::text).collect();
    assert_eq!(text, said(&log, None), "seed {seed:#x}");
    // So did all events: those of ACP's kinds as updates, the gateway's own as envelopes.
    let shown: Vec<&Value> = seen.iter().filter_map(Message::event).map(|event| &event["cursor"]).collect();
    let updates: Vec<&Value> = seen
        .iter()
        .filter(|message| message.json["method"] == "session/update")
        .map(|message| &message.json["params"]["_meta"]["plexus"]["cursor"])
        .collect();
    let own_kinds = ["run_started", "run_status", "run_ended", "request_opened", "request_resolved", "error", "raw"];
    for event in &log {
        let kind = event["kind"].as_str().unwrap();
        let times = |all: &[&Value]| all.iter().filter(|cursor| **cursor == &event["cursor"]).count();
        if own_kinds.contains(&kind) {
            assert_eq!(times(&shown), 1, "{event}");
        } else if kind.ends_with("_chunk") && kind != "user_message_chunk" {
            assert_eq!(times(&updates), 1, "{event}");
        }
    }
}
