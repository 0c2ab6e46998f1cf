//! Many clients join at random instants over three transports, some changing it half way: no client misses an event or gets one
//! twice.
//!
//! Raw messages: three transports with one cursor, and millions of events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use common::gateway::{Gateway, assert_whole};
use common::moments::rounds;
use serde_json::json;

/// A small random generator, so that a failure can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The members of an event that are checked; all clients together read millions.
#[derive(serde::Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    seq: u64,
    #[serde(borrow)]
    cursor: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// Checks a client's events one at a time and keeps only the position.
#[derive(Default)]
struct Follower {
    next_seq: HashMap<String, u64>,
    cursor: String,
    last: u64,
    taken: u64,
    /// `true` if the client has seen everything from the beginning.
    from_start: bool,
    over: bool,
}

impl Follower {
    fn take(&mut self, event: &Seen<'_>, run: &str) {
        let position: u64 = event.cursor.split_once(':').unwrap().1.parse().unwrap();
        assert!(position > self.last, "positions rise");
        match self.next_seq.get_mut(event.run_id.as_ref()) {
            Some(next) => {
                assert_eq!(event.seq, *next, "a gap or a repeat at {}", event.cursor);
                *next += 1;
            }
            None => {
                assert!(event.seq == 0 || !self.from_start);
                self.next_seq.insert(event.run_id.clone().into_owned(), event.seq + 1);
            }
        }
        self.last = position;
        self.taken += 1;
        self.cursor.clear();
        self.cursor.push_str(&event.cursor);
        self.over |= event.kind == "run_ended" && event.run_id == run;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joiners_miss_nothing_and_see_nothing_twice() {
    let joiners = rounds("clients that join", 60, 200);
    let total = rounds("events for each", 20_000, 100_000);
    let gateway = Arc::new(Gateway::demo().await);
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, &format!("flood {total} 64")).await;
    let clients: Vec<_> = (0..joiners)
        .map(|n| {
            let (gateway, session, run) = (Arc::clone(&gateway), session.clone(), run.clone());
            tokio::spawn(async move {
                let mut dice = Dice(n as u64 + 1);
                tokio::time::sleep(Duration::from_millis(dice.roll(1500))).await;
                let mut follower = Follower { from_start: n % 3 == 0, ..Follower::default() };
                if !follower.from_start {
                    // From a position in the middle, like a client that reconnects.
                    let (_, page) = gateway.get(&format!("/v1/sessions/{session}/events?after=now")).await;
                    let (epoch, head) = page["head"].as_str().unwrap().split_once(':').unwrap();
                    let head: u64 = head.parse().unwrap();
                    follower.last = head - dice.roll(head.min(2000));
                    follower.cursor = format!("{epoch}:{}", follower.last);
                }
                let mut transport = (n / 3) % 3;
                while !follower.over {
                    // Some stay to the end; others leave after a while and return over another transport.
                    let leaves = if dice.roll(2) == 0 { 1 + dice.roll(total / 3) } else { u64::MAX };
                    let until = follower.taken.saturating_add(leaves);
                    follow(&gateway, &session, &run, transport, &mut follower, until).await;
                    transport = (transport + 1) % 3;
                }
                (follower.from_start, follower.next_seq[&run])
            })
        })
        .collect();
    let mut ends = std::collections::BTreeSet::new();
    for client in clients {
        ends.insert(client.await.unwrap().1);
    }
    assert_eq!(ends.len(), 1, "all end at the same event: {ends:?}");
    assert!(*ends.first().unwrap() > total);
    assert_whole(&gateway.events(&session).await);
}

const AGENT_EVENT: &str = r#"{"jsonrpc":"2.0","method":"agent.event","params":"#;

async fn follow(gateway: &Gateway, session: &str, run: &str, transport: usize, follower: &mut Follower, until: u64) {
    match transport {
        0 => {
            let mut ws = gateway.ws().await;
            let attach = if follower.cursor.is_empty() {
                json!({ "session_id": session, "from": "start" })
            } else {
                json!({ "session_id": session, "after": follower.cursor })
            };
            ws.call("session.attach", attach).await.unwrap();
            let hello = ws.until("gateway.hello").await;
            assert_eq!(hello["resume"], "ok", "{hello}");
            while follower.taken < until && !follower.over {
                let text = ws.text().await.expect("the connection closed");
                if let Some(event) = text.strip_prefix(AGENT_EVENT) {
                    follower.take(&serde_json::from_str(&event[..event.len() - 1]).unwrap(), run);
                }
            }
        }
        1 => {
            let path = format!("/v1/sessions/{session}/events");
            let last = (!follower.cursor.is_empty()).then(|| follower.cursor.clone());
            let mut sse = gateway.sse(&path, last.as_deref()).await;
            let hello = sse.next().await.unwrap();
            assert_eq!((hello.event.as_str(), &hello.data["resume"]), ("hello", &json!("ok")));
            while follower.taken < until && !follower.over {
                let block = sse.block().await.expect("the stream ended");
                let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let (Some(id), Some(data)) = (line("id: "), line("data: ")) else { continue };
                if let Ok(event) = serde_json::from_str::<Seen<'_>>(data) {
                    assert_eq!(id, event.cursor);
                    follower.take(&event, run);
                }
            }
        }
        _ => {
            #[derive(serde::Deserialize)]
            struct Page<'a> {
                #[serde(borrow)]
                events: Vec<Seen<'a>>,
                next: String,
            }
            while follower.taken < until && !follower.over {
                let path = format!("/v1/sessions/{session}/events?after={}&wait=10&limit=2000", follower.cursor);
                let response = gateway.request("GET", &path).send().await.unwrap();
                assert_eq!(response.status(), 200);
                let text = response.text().await.unwrap();
                let page: Page<'_> = serde_json::from_str(&text).unwrap();
                page.events.iter().for_each(|event| follower.take(event, run));
                // A page may end past its last event, so its own cursor counts.
                follower.cursor = page.next;
            }
        }
    }
}
