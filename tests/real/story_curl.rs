//! Common clients of the event stream: this machine's curl, and the `eventsource` package.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::cast::Player;
use common::gateway::{Gateway, assert_whole, said};
use common::moments::rounds;

fn ends(player: &Player) -> usize {
    player.saw.iter().filter(|(_, saw)| saw.get("ended").is_some()).count()
}

/// Waits until the player has seen the end of `count` runs.
async fn until_ends(player: &mut Player, count: usize) {
    while ends(player) < count {
        player.until("ended").await;
    }
}

fn what(player: &Player, member: &str) -> Vec<String> {
    player.saw.iter().filter_map(|(_, saw)| saw[member].as_str().map(ToOwned::to_owned)).collect()
}

async fn plays_every_part(kind: &str) {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut one = Player::enter(kind, &gateway, &session).await;
    one.prompt("stream 20 1").await;
    assert_eq!(one.until("user").await["user"], "stream 20 1");
    assert_eq!(one.until("ended").await["ended"], "end_turn");

    // A request answered here, and one answered by another client.
    one.prompt("ask").await;
    let asked = one.until("asked").await;
    one.answer(true).await;
    let resolved = one.until("resolved").await;
    assert_eq!((&resolved["resolved"], resolved["allow"].as_bool()), (&asked["id"], Some(true)));
    assert_eq!(resolved["by"], "this machine");
    one.until("ended").await;
    one.prompt("ask").await;
    let asked = one.until("asked").await;
    let request = gateway.open_request(&session).await;
    let (status, _) = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!(status, 200);
    let resolved = one.until("resolved").await;
    assert_eq!((&resolved["resolved"], resolved["allow"].as_bool()), (&asked["id"], Some(false)));
    one.until("ended").await;

    one.prompt("hang").await;
    one.until("user").await;
    one.cancel().await;
    assert_eq!(one.until("ended").await["ended"], "cancelled");

    // In the middle, one joins late, and one is cut off and reconnects.
    let run = gateway.prompt(&session, "stream 400 2").await;
    one.until("text").await;
    let mut late = Player::enter(kind, &gateway, &session).await;
    late.cut().await;
    one.cut().await;
    late.resume().await;
    one.resume().await;
    gateway.until_ended(&session, &run).await;
    for player in [&mut one, &mut late] {
        until_ends(player, 5).await;
        let events = gateway.events(&session).await;
        assert_whole(&events);
        assert_eq!(player.text(), said(&events, None));
        assert_eq!(ends(player), 5, "each end once");
        assert_eq!(what(player, "user"), ["stream 20 1", "ask", "ask", "hang", "stream 400 2"]);
        assert_eq!((what(player, "asked").len(), what(player, "resolved").len()), (2, 2));
    }

    // A request that was open before a client joined.
    let run = gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    let mut third = Player::enter(kind, &gateway, &session).await;
    third.answer(true).await;
    for player in [&mut one, &mut late] {
        assert_eq!(player.until("resolved").await["allow"], true);
    }
    gateway.until_ended(&session, &run).await;
    until_ends(&mut third, 6).await;
    for player in [one, late, third] {
        player.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_plays_every_part() {
    plays_every_part("curl").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eventsource_package_plays_every_part() {
    plays_every_part("eventsource").await;
}

/// A small random generator, so that a failure can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_cut_repeatedly_has_the_whole_log() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut curl = Player::enter("curl", &gateway, &session).await;
    let mut dice = Dice(0x5eed);
    // Far longer than needed; it is cancelled in the end.
    curl.prompt("stream 1000000 1").await;
    for _ in 0..rounds("cuts", 25, 100) {
        for _ in 0..=dice.roll(20) {
            curl.until("text").await;
        }
        curl.cut().await;
        curl.resume().await;
    }
    curl.cancel().await;
    assert_eq!(curl.until("ended").await["ended"], "cancelled");
    let events = gateway.events(&session).await;
    assert_whole(&events);
    let texts = what(&curl, "text");
    assert_eq!(texts.concat(), said(&events, None));
    let chunks = events.iter().filter(|event| event["kind"] == "agent_message_chunk").count();
    assert_eq!((texts.len(), ends(&curl)), (chunks, 1), "each once");
    // The token is not in the list of processes.
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&words).contains(&gateway.token), "{entry:?}");
    }
    curl.quit().await;
}
