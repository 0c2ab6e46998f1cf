//! A wall clock that is wrong (libfaketime in front of the gateway's own): nothing is deleted for it, and a day's ceiling counts on.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, end_runtimes, exe, held_runtime};
use common::moments::until_so;
use serde_json::{Value, json};

/// A gateway looks for old events after 20 seconds, and then each minute.
const ROUND: Duration = Duration::from_secs(25);

/// A gateway whose wall clock the test sets.
struct Machine {
    gateway: Gateway,
    offset: PathBuf,
    /// The start of the newest gateway.
    since: Instant,
}

impl Machine {
    async fn start(config: &str) -> Self {
        let library = ["/usr/lib", "/usr/lib64"].iter().find_map(|dir| {
            let folders = [
                Path::new(dir).join("faketime"),
                Path::new(dir).join(format!("{}-linux-gnu/faketime", std::env::consts::ARCH)),
            ];
            folders.into_iter().map(|folder| folder.join("libfaketime.so.1")).find(|library| library.is_file())
        });
        let library = library.expect("libfaketime is needed: `apt-get install faketime`").display().to_string();
        let dir = tempfile::tempdir().unwrap();
        let offset = dir.path().join("offset");
        std::fs::write(&offset, "+0\n").unwrap();
        let file = offset.display().to_string();
        let env = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", &file),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let gateway =
            Gateway::start_with(dir, &format!("{}{config}", held_runtime("demo", &[exe(), "agent", "demo"], "")), &env)
                .await;
        Self { gateway, offset, since: Instant::now() }
    }

    /// Sets the clock to this distance from the right time.
    fn set(&self, offset: &str) {
        let beside = self.offset.with_extension("new");
        std::fs::write(&beside, format!("{offset}\n")).unwrap();
        std::fs::rename(beside, &self.offset).unwrap();
    }

    async fn again(&mut self) {
        self.gateway.kill();
        self.gateway.again().await;
        self.since = Instant::now();
    }

    /// Waits until the gateway has looked for old events.
    async fn round(&self) {
        tokio::time::sleep(ROUND.saturating_sub(self.since.elapsed())).await;
    }

    /// Prompts for about a hundred tokens each way.
    async fn spend(&self, session: &str) {
        let run = self.gateway.prompt(session, &format!("echo {} ;; usage", "x".repeat(386))).await;
        self.gateway.until_ended(session, &run).await;
    }

    /// Tokens that were spent today.
    async fn today(&self) -> Value {
        self.gateway.get("/v1/usage/ceilings").await.1["today"]["input_tokens"].clone()
    }

    async fn clock(&self) -> Value {
        self.gateway.get("/v1/doctor?only=clock").await.1["checks"][0].clone()
    }
}

#[tokio::test]
async fn clock_that_is_wrong_deletes_nothing_and_today_stays_today() {
    let mut machine = Machine::start("").await;
    let session = machine.gateway.session("demo").await;
    machine.spend(&session).await;
    let one = machine.today().await.as_u64().unwrap();
    assert!(one > 0);
    assert_eq!(machine.clock().await["state"], "ok");
    let mut spent = one;
    for (offset, words) in [("+200d", "ahead"), ("+0", "back"), ("+4000d", "ahead"), ("-3h", "back")] {
        machine.set(offset);
        if offset.ends_with("000d") {
            // It jumps while no gateway runs.
            machine.again().await;
        }
        let clock = machine.clock().await;
        assert!(clock["state"] == "warn" && clock["detail"].as_str().unwrap().contains(words), "{offset}: {clock}");
        machine.spend(&session).await;
        spent += one;
        assert_eq!(machine.today().await, spent, "{offset}");
        machine.round().await;
    }
    let before = machine.gateway.events(&session).await;
    assert_eq!(before.iter().filter(|event| event["kind"] == "run_ended").count(), 5, "{before:?}");
    machine.set("+0");
    machine.again().await;
    assert_eq!(machine.gateway.events(&session).await, before);
    assert_eq!(machine.today().await, spent);
    let (_, found) = machine.gateway.get("/v1/search?q=xxx*").await;
    assert!(!found["hits"].as_array().unwrap_or_else(|| panic!("{found}")).is_empty());
    // A person knows better.
    let confirmed = machine.gateway.request("POST", "/v1/clock/confirm").send().await.unwrap();
    assert_eq!(confirmed.status(), 200);
    assert_eq!(confirmed.json::<Value>().await.unwrap()["state"], "ok");
    assert_eq!(machine.today().await, spent);
    end_runtimes(&machine.gateway.home);
}

#[tokio::test]
async fn deadline_of_a_request_passes_in_time_though_the_clock_was_set_back() {
    let mut machine = Machine::start("[requests]\nexpire_after = \"20s\"\n").await;
    let session = machine.gateway.session("demo").await;
    machine.gateway.prompt(&session, "ask").await;
    let request = machine.gateway.open_request(&session).await;
    machine.set("-3h");
    machine.again().await;
    let path = format!("/v1/requests/{}", request["request_id"].as_str().unwrap());
    until_so("the deadline", async || machine.gateway.get(&path).await.1["state"] != json!("open")).await;
    end_runtimes(&machine.gateway.home);
}
