//! The disk of the state is full: clients get an error, answers are taken, stored events can be read, agents' output waits, and with
//! free space everything goes on by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, assert_whole, demo, exe, held_runtime, said};
use common::moments::{Moments, rounds};
use serde_json::{Value, json};

/// The size of the disk, in bytes.
const DISK: usize = 24 << 20;
/// Free bytes at first: enough for the beginning of the flood, not for all of it.
const SPARE: usize = 1 << 20;
/// Chunks of the flood; stored, they take some megabytes.
const CHUNKS: usize = 30_000;
/// Prompts after which a full disk must have refused one: the database's files have less free space than that.
const PROMPTS: usize = 100;

/// Denials that are given while the disk is full.
const DENIALS: usize = 8;

/// A small disk in `dir/home`; when dropped, it is unmounted and `dir` removed.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// `None`, with the reason printed, if mounting is not permitted.
    fn mount(dir: &Path) -> Option<Self> {
        let home = dir.join("home");
        std::fs::create_dir_all(&home).unwrap();
        let size = format!("size={DISK},mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&home).output();
        match mounted {
            Ok(out) if out.status.success() => Some(Self { dir: dir.to_owned() }),
            Ok(out) => {
                let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
                println!("not tested here: a small disk cannot be mounted ({why})");
                None
            }
            Err(error) => {
                println!("not tested here: `mount` does not start ({error})");
                None
            }
        }
    }

    fn ballast(&self) -> PathBuf {
        self.dir.join("home/ballast")
    }

    /// Writes to the ballast until `spare` bytes are free.
    fn fill(&self, spare: usize) {
        let free = self.free().saturating_sub(spare);
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        let page = [7u8; 4096];
        for _ in 0..free.div_ceil(page.len()) + 1 {
            match file.write_all(&page) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("the ballast: {error}"),
            }
        }
    }

    /// Bytes that are free.
    fn free(&self) -> usize {
        let out = Command::new("df").args(["--output=avail", "-B1"]).arg(self.dir.join("home")).output().unwrap();
        String::from_utf8(out.stdout).unwrap().lines().last().unwrap().trim().parse().unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since an ending process may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(self.dir.join("home")).status();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Commits that failed so far.
async fn failures(gateway: &Gateway) -> u64 {
    let (_, metrics) = gateway.get("/metrics").await;
    let line = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix("plexus_store_failures_total "));
    line.expect("the counter of failed commits").trim().parse().unwrap()
}

/// Waits until the count of failed commits is above `count`.
async fn fails_again(gateway: &Gateway, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    while failures(gateway).await <= count {
        assert!(Instant::now() < deadline, "nothing failed although the disk is full");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Checks that a response is the problem of a full disk.
fn assert_storage((status, problem): &(u16, Value)) {
    assert_eq!((*status, &problem["code"]), (507, &json!("storage")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("no space")), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_is_full_loses_nothing_and_heals() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(dir.path()) else { return };
    let mut gateway = Gateway::start_in(dir, &demo()).await;
    let (asking, flooding, other) =
        (gateway.session("demo").await, gateway.session("demo").await, gateway.session("demo").await);
    let mut ws = gateway.ws().await;
    ws.call("session.attach", json!({ "session_id": "*", "from": "start" })).await.unwrap();
    let asked = gateway.prompt(&asking, "ask ;; echo after").await;
    let request = gateway.open_request(&asking).await;
    let id = request["request_id"].as_str().unwrap().to_owned();
    let option = Gateway::option(&request, "allow_once");

    // Full: first for the flood, then to the last byte.
    disk.fill(SPARE);
    let flood = gateway.prompt(&flooding, &format!("flood {CHUNKS}")).await;
    fails_again(&gateway, 0).await;
    disk.fill(0);
    let mut prompts = vec![(asking.clone(), asked.clone()), (flooding.clone(), flood.clone())];
    let path = format!("/v1/sessions/{other}/prompt");
    // Free space in the database's files may be used first; then each prompt is refused.
    let mut refused = 0;
    for _ in 0..PROMPTS {
        let answer = gateway.post(&path, json!({ "text": "echo again" })).await;
        if answer.0 == 202 {
            prompts.push((other.clone(), answer.1["run_id"].as_str().unwrap().to_owned()));
            continue;
        }
        assert_storage(&answer);
        refused += 1;
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "a full disk takes no prompt");

    // The flooding session reports it too. An answer is taken: there is space for it.
    assert_storage(&gateway.post(&format!("/v1/sessions/{flooding}/prompt"), json!({ "text": "echo no" })).await);
    let (status, won) = gateway.choose(&request, &option).await;
    assert_eq!((status, &won["won"], &won["option_id"]), (200, &json!(true), &json!(option)), "{won}");
    let (status, taken) = gateway.get(&format!("/v1/requests/{id}")).await;
    assert_eq!((status, &taken["state"]), (200, &json!("answered")), "{taken}");
    let late = ws.call("ui.request.answer", json!({ "request_id": id, "option_id": option })).await.unwrap_err();
    assert_eq!(late["data"]["code"], "already_resolved", "{late}");

    // Reading works on every frontend.
    let (status, sessions) = gateway.get("/v1/sessions").await;
    assert_eq!((status, sessions["sessions"].as_array().unwrap().len()), (200, 3), "{sessions}");
    let (status, snapshot) = gateway.get(&format!("/v1/sessions/{asking}/snapshot")).await;
    assert_eq!(status, 200, "{snapshot}");
    let held = gateway.events(&flooding).await;
    assert_whole(&held);
    assert!(!held.iter().any(|event| event["kind"] == "run_ended"), "the flood waits");
    let shown = said(&held, Some(&flood)).len();
    let mut sse = gateway.sse(&format!("/v1/sessions/{flooding}/events"), None).await;
    assert_eq!(sse.next().await.unwrap().event, "hello");
    let mut replayed = Vec::new();
    while replayed.len() < held.len() {
        let sent = sse.next().await.unwrap();
        if sent.data.get("seq").is_some() {
            replayed.push(sent.data);
        }
    }
    assert_eq!(replayed, held, "the same by SSE as by pages");
    // The writer is still retrying.
    fails_again(&gateway, failures(&gateway).await).await;

    // With free space everything goes on without a restart.
    std::fs::remove_file(disk.ballast()).unwrap();
    let events = gateway.until_ended(&flooding, &flood).await;
    assert_whole(&events);
    assert_eq!(events[..held.len()], held[..], "what was shown stays as it was");
    let text = said(&events, Some(&flood));
    let chunks: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"] == "agent_message_chunk" && event["run_id"] == flood.as_str())
        .filter_map(|event| event["event"]["content"]["text"].as_str())
        .collect();
    assert_eq!(chunks.len(), CHUNKS, "every chunk once");
    for (n, chunk) in (1..).zip(&chunks) {
        let number = chunk.trim_start_matches("chunk-").trim_end_matches('x').trim().parse();
        assert_eq!(number, Ok(n), "in order: {chunk:?}");
    }
    assert!(shown < text.len(), "some of it was held back");
    let after = gateway.until_ended(&asking, &asked).await;
    assert!(said(&after, Some(&asked)).ends_with("after"), "{:?}", said(&after, Some(&asked)));
    let last = gateway.prompt(&other, "echo works").await;
    prompts.push((other.clone(), last.clone()));
    let after = gateway.until_ended(&other, &last).await;
    assert_eq!(said(&after, Some(&last)).trim(), "works");

    // Everything that was sent to a client, or accepted, survives a crash.
    let mut seen = ws.until_ended(&last).await;
    let mut sse_seen = replayed;
    sse_seen.extend(sse.until_ended(&flood).await);
    gateway.kill();
    while let Some(event) = ws.event().await {
        seen.push(event);
    }
    assert_whole(&seen);
    assert_eq!(sse_seen, events[..sse_seen.len()]);
    gateway.again().await;
    let mut kept = HashMap::new();
    for session in [&asking, &flooding, &other] {
        let events = gateway.events(session).await;
        assert_whole(&events);
        kept.extend(events.into_iter().map(|event| (event["cursor"].as_str().unwrap().to_owned(), event)));
    }
    for event in &seen {
        assert_eq!(kept.get(event["cursor"].as_str().unwrap()), Some(event), "a client saw what is not in the log");
    }
    for (session, run) in &prompts {
        let ended = kept.values().any(|event| {
            event["kind"] == "run_ended" && event["run_id"] == run.as_str() && event["session_id"] == session.as_str()
        });
        assert!(ended, "the accepted prompt {run} has no end");
    }
    let (_, answered) = gateway.get(&format!("/v1/requests/{id}")).await;
    assert_eq!((&answered["state"], &answered["receipt"]["option_id"]), (&json!("answered"), &json!(option)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_is_full_lets_the_gateway_start_and_takes_denials() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(dir.path()) else { return };
    let mut gateway = Gateway::start_in(dir, &held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let mut asked = Vec::new();
    for _ in 0..DENIALS {
        let session = gateway.session("demo").await;
        let run = gateway.prompt(&session, "ask rm -rf build ;; echo after").await;
        asked.push((gateway.open_request(&session).await, session, run));
    }
    let named = std::fs::read_to_string(gateway.home.join("gateway.json")).unwrap();
    disk.fill(0);
    gateway.kill();
    gateway.again().await;

    let now: Value = serde_json::from_slice(&std::fs::read(gateway.home.join("gateway.json")).unwrap()).unwrap();
    let before: Value = serde_json::from_str(&named).unwrap();
    assert_ne!(now["pid"], before["pid"], "the commands of this machine find the new gateway");
    let (_, refused) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo" })).await;
    assert_eq!(refused["code"], "storage", "the disk is still full: {refused}");
    for (request, ..) in &asked {
        let (status, denied) = gateway.choose(request, &Gateway::option(request, "reject_once")).await;
        assert_eq!((status, &denied["won"]), (200, &json!(true)), "{denied}");
    }
    // A second crash loses none of them.
    gateway.kill();
    gateway.again().await;
    for (request, ..) in &asked {
        let (_, kept) = gateway.get(&format!("/v1/requests/{}", request["request_id"].as_str().unwrap())).await;
        assert_eq!(kept["receipt"]["option_id"], Gateway::option(request, "reject_once"), "{kept}");
    }
    std::fs::remove_file(disk.ballast()).unwrap();
    for (_, session, run) in &asked {
        let events = gateway.until_ended(session, run).await;
        assert_whole(&events);
        let words = said(&events, Some(run));
        assert_eq!(words.matches("after").count(), 1, "{words:?}");
    }
}

/// One session that is flooded, one whose requests are answered, and prompts for a third, until the gateway is killed at a random moment
/// around which the disk becomes full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_that_fills_at_any_moment_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(dir.path()) else { return };
    let mut moments = Moments::new();
    let mut gateway = Gateway::start_in(dir, &held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    for _ in 0..rounds("full disks", 5, 100) {
        let (asking, other) = (gateway.session("demo").await, gateway.session("demo").await);
        let asked = gateway.prompt(&asking, "ask make deploy ;; echo after").await;
        let request = gateway.open_request(&asking).await;
        let flood = gateway.prompt(&other, "flood 3000").await;
        let spare = usize::try_from(moments.below(600)).unwrap() << 10;
        disk.fill(spare);
        moments.pass(200).await;
        let answer = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
        let queued = gateway.post(&format!("/v1/sessions/{other}/prompt"), json!({ "text": "echo more" })).await;
        moments.pass(100).await;
        gateway.kill();
        gateway.again().await;

        let id = request["request_id"].as_str().unwrap();
        let (_, kept) = gateway.get(&format!("/v1/requests/{id}")).await;
        match answer.0 {
            200 => assert_eq!(kept["state"], "answered", "{kept}"),
            507 => assert_eq!(kept["state"], "open", "{kept}"),
            _ => panic!("{answer:?}"),
        }
        std::fs::remove_file(disk.ballast()).unwrap();
        if answer.0 == 507 {
            let (status, won) = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
            assert_eq!(status, 200, "{won}");
        }
        let events = gateway.until_ended(&asking, &asked).await;
        assert_whole(&events);
        assert_eq!(said(&events, Some(&asked)).matches("after").count(), 1);
        let last = if queued.0 == 202 { queued.1["run_id"].as_str().unwrap().to_owned() } else { flood.clone() };
        let events = gateway.until_ended(&other, &last).await;
        assert_whole(&events);
        assert_eq!(said(&events, Some(&flood)).matches("chunk-").count(), 3000, "every chunk once");
        for session in [asking, other] {
            assert_eq!(gateway.delete(&format!("/v1/sessions/{session}")).await.0, 204);
        }
    }
}
