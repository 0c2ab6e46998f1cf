//! Two hundred clients join at random instants, by three transports, some changing transport half way: nobody misses an
//! event, nobody gets one twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::gateway::{Gateway, assert_whole, position};
use serde_json::{Value, json};

const CLIENTS: usize = 200;
const EVENTS: usize = 100_000;

/// A small generator, so that a failure can be repeated with its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Checks what a client got on its way, one event at a time: nothing is kept but where it stands.
struct Follower {
    next_seq: std::collections::HashMap<String, u64>,
    cursor: String,
    last: u64,
    over: bool,
}

impl Follower {
    fn take(&mut self, event: &Value, run: &str) {
        let next = self.next_seq.entry(event["run_id"].as_str().unwrap().to_owned()).or_insert(0);
        assert_eq!(event["seq"], *next, "a gap or a repeat: {event}");
        *next += 1;
        assert!(position(&event["cursor"]) > self.last);
        self.last = position(&event["cursor"]);
        self.cursor = event["cursor"].as_str().unwrap().to_owned();
        self.over |= event["kind"] == "run_ended" && event["run_id"] == run;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_joiners_miss_nothing_and_see_nothing_twice() {
    let gateway = Arc::new(Gateway::demo().await);
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, &format!("flood {EVENTS} 64")).await;
    let done = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let (gateway, session, run, done) = (Arc::clone(&gateway), session.clone(), run.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut dice = Dice(n as u64 + 1);
                tokio::time::sleep(Duration::from_millis(dice.roll(1500))).await;
                let mut follower =
                    Follower { next_seq: Default::default(), cursor: String::new(), last: 0, over: false };
                let mut transport = n % 3;
                while !follower.over {
                    // Three in four stay to the end; the others leave after a while and come back another way.
                    let leaves = dice.roll(4) == 0;
                    let mut left = if leaves { 1 + dice.roll(EVENTS as u64 / 4) } else { u64::MAX };
                    follow(&gateway, &session, &run, transport, &mut follower, &mut left).await;
                    transport = (transport + 1) % 3;
                }
                done.fetch_add(1, Ordering::SeqCst);
                follower.next_seq[&run]
            })
        })
        .collect();
    for client in clients {
        let seen = client.await.unwrap();
        assert!(seen as usize >= EVENTS, "{seen}");
    }
    assert_eq!(done.load(Ordering::SeqCst), CLIENTS);
    assert_whole(&gateway.events(&session).await);
}

async fn follow(
    gateway: &Gateway,
    session: &str,
    run: &str,
    transport: usize,
    follower: &mut Follower,
    left: &mut u64,
) {
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
            while *left > 0 && !follower.over {
                follower.take(&ws.event().await.expect("the connection closed"), run);
                *left -= 1;
            }
        }
        1 => {
            let path = format!("/v1/sessions/{session}/events");
            let last = (!follower.cursor.is_empty()).then(|| follower.cursor.clone());
            let mut sse = gateway.sse(&path, last.as_deref()).await;
            let hello = sse.next().await.unwrap();
            assert_eq!((hello.event.as_str(), &hello.data["resume"]), ("hello", &json!("ok")));
            while *left > 0 && !follower.over {
                let sent = sse.next().await.expect("the stream ended");
                if sent.data.get("seq").is_some() {
                    assert_eq!(sent.id.as_deref(), sent.data["cursor"].as_str());
                    follower.take(&sent.data, run);
                    *left -= 1;
                }
            }
        }
        _ => {
            while *left > 0 && !follower.over {
                let path = format!("/v1/sessions/{session}/events?after={}&wait=10&limit=2000", follower.cursor);
                let (status, page) = gateway.get(&path).await;
                assert_eq!(status, 200, "{page}");
                for event in page["events"].as_array().unwrap() {
                    follower.take(event, run);
                    *left = left.saturating_sub(1);
                }
                // A page may be cut short: the cursor that counts is the one it names.
                follower.cursor = page["next"].as_str().unwrap().to_owned();
            }
        }
    }
}
