//! One client of each kind on one live session: the same text, and each of them answers once while the others hear of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use common::agents;
use common::cast::Player;
use common::gateway::{Gateway, said};
use futures_util::future::join_all;
use sha2::{Digest as _, Sha256};

/// One of each kind that can answer.
const KINDS: &[&str] = &["acp-ws", "acp-http", "bridge", "codelia-tui", "ag-ui", "curl", "native-ts"];
/// One of each kind that can only watch.
const WATCHERS: &[&str] = &["mirror", "eventsource"];

fn hash(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_seven_kinds_answer_in_turn_on_one_session() {
    let config = format!("{}ui_port = 0\nremote_port = 0\n", common::gateway::demo());
    let gateway = &Gateway::start(&config).await;
    let session = &gateway.session("demo").await;
    tokio::task::spawn_blocking(agents::clients_dir).await.unwrap();
    let enter = |kind: &&'static str| Player::enter(kind, gateway, session);
    let mut players = join_all(KINDS.iter().chain(WATCHERS).map(enter)).await;
    let mut slowest = BTreeMap::new();
    // What the log says of when, on the clock of what the clients say.
    let (began, clock) = (Instant::now(), SystemTime::now());
    for turn in 0..KINDS.len() {
        // Whoever answers next prompts before: everybody's prompts are everybody's.
        players[turn].prompt("stream 60 1 ;; ask ;; stream 40 1").await;
        for player in &mut players {
            player.until("asked").await;
        }
        players[turn].answer(true).await;
        let winner = players[turn].kind.clone();
        let mut heard = Vec::new();
        for player in &mut players {
            let told = player.until("resolved").await;
            assert!(told["allow"] != false, "{}: {winner} allowed it: {told}", player.kind);
            if player.kind != winner {
                let at = player.saw.iter().rfind(|(_, saw)| saw.get("resolved").is_some()).unwrap().0;
                heard.push((player.kind.clone(), at));
                if player.kind == "codelia-tui" {
                    // It asks nothing more before its user has seen who answered.
                    player.note().await;
                }
            }
        }
        for player in &mut players {
            player.until("ended").await;
        }
        let events = gateway.events(session).await;
        let resolved = events.iter().rfind(|event| event["kind"] == "request_resolved").unwrap();
        let at: jiff::Timestamp = resolved["at"].as_str().unwrap().parse().unwrap();
        let decided = began + SystemTime::try_from(at).unwrap().duration_since(clock).unwrap();
        for (kind, at) in heard {
            let took = at.saturating_duration_since(decided);
            let most: &mut Duration = slowest.entry(kind).or_default();
            *most = took.max(*most);
        }
    }
    let log = said(&gateway.events(session).await, None);
    assert!(log.len() > 7 * 100 * 10, "{}", log.len());
    for player in &players {
        assert_eq!(hash(&player.text()), hash(&log), "{}: {} bytes of {}", player.kind, player.text().len(), log.len());
    }
    println!("from the decision to when each of the others had said who made it, at most: {slowest:?}");
    for player in players {
        player.quit().await;
    }
}
