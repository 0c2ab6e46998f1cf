//! `kill -9` at each write of an answer. Afterwards the request is answered or orphaned, never open; a client that got a winning
//! receipt was right; and the agent got the answer only if it is on the disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, exe, family, runtime};
use serde_json::{Value, json};

/// The system calls by which SQLite writes to the disk.
const TO_DISK: &str = "pwrite64,pwritev,fdatasync,fsync";
/// The system calls that write to sockets, pipes and sleeping threads.
const TO_PEERS: &str = "write,writev,sendto,sendmsg";
/// Maximum number of writes of one answer; more would mean that the end was never reached.
const WRITES: u32 = 80;

/// Lines of `strace` that are kept; it reports that it has attached in the first few.
const LINES: usize = 64;
/// Time for `strace` to detach before it is killed.
const LET_GO: Duration = Duration::from_secs(1);

/// `strace`, attached to a gateway; detached when dropped.
struct Tracer(Child);

impl Tracer {
    /// Attaches to all threads of the process, which is killed as it enters the `nth` of these system calls (each thread counts
    /// its own). `Err` has the reason if this machine does not permit it.
    fn attach(pid: u32, calls: &str, nth: u32) -> Result<Self, String> {
        let started = Command::new("strace")
            .args(["-f", "-p", &pid.to_string(), "-o", "/dev/null"])
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:signal=KILL:when={nth}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut tracer = Self(started.map_err(|error| format!("strace does not start: {error}"))?);
        let stderr = BufReader::new(tracer.0.stderr.take().unwrap());
        let (told, lines) = mpsc::sync_channel(LINES);
        // Reads to the end, so that strace never blocks.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Only the first lines are needed.
                let _ = told.try_send(line);
            }
        });
        let mut all = String::new();
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(" attached") {
                return Ok(tracer);
            }
            all += &line;
        }
        Err(format!("strace did not attach: {all}"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // By SIGTERM, upon which it lets go of what it traces. It may have missed the end of a thread that died with
        // its process, and then waits for it without end: SIGKILL, which the kernel takes as letting go too.
        let deadline = Instant::now() + LET_GO;
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Polls until a condition holds.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The number of answers that the agents got so far.
fn heard(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains("\"outcome\"")).count()
}

/// The outcomes of the answers.
#[derive(Debug, Default)]
struct Tally {
    killed: u32,
    answered: u32,
    orphaned: u32,
    /// Answered, and the client got the receipt before the kill.
    told: u32,
}

/// Kills the gateway at the first of these calls after an answer was sent, at the second, and so on until it survives.
async fn killed_at_each(calls: &str) -> Option<Tally> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("heard");
    let line = format!("exec tee -a {} | {} agent demo", file.display(), exe());
    let mut gateway = Gateway::start(&runtime("demo", &["sh", "-c", &line], "")).await;
    let mut tally = Tally::default();
    for nth in 1..=WRITES {
        let session = gateway.session("demo").await;
        let run = gateway.prompt(&session, "ask ;; echo after").await;
        let request = gateway.open_request(&session).await;
        let id = request["request_id"].as_str().unwrap().to_owned();
        let option = Gateway::option(&request, if nth % 2 == 0 { "allow_once" } else { "reject_once" });
        let path = format!("/v1/requests/{id}/answer");
        let key = format!("key-{nth}");
        let body = json!({ "option_id": option, "digest": request["digest"] });
        let (before, pids) = (heard(&file), family(gateway.pid()));
        assert!(pids.len() >= 3, "the shell, tee and the agent: {pids:?}");

        let tracer = match Tracer::attach(gateway.pid(), calls, nth) {
            Ok(tracer) => tracer,
            Err(why) => {
                assert_eq!(nth, 1, "it could be attached before: {why}");
                println!("not tested here: {why}");
                return None;
            }
        };
        let sent = gateway.request("POST", &path).header("Idempotency-Key", &key).json(&body).send().await;
        let told: Option<Value> = match sent {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                response.json().await.ok()
            }
            Err(_) => None,
        };
        let pid = gateway.pid();
        let mut through = false;
        until("the agent hears the answer, or the gateway is dead", || {
            through = heard(&file) > before;
            through || !alive(pid)
        })
        .await;
        drop(tracer);
        // A dying process still looks alive, but does not reply.
        let lives = gateway.http.get(format!("{}/healthz", gateway.url)).send().await.is_ok();
        if let Some(told) = told.as_ref().filter(|_| through && lives) {
            // An answer has fewer writes than this: the gateway survived.
            let events = gateway.until_ended(&session, &run).await;
            assert_whole(&events);
            assert_eq!(told["won"], true);
            println!("{calls}: an answer gets through before write {nth} of a thread: {tally:?}");
            return Some(tally);
        }

        // Dead, or about to be: a write that came after the answer was heard may have been the one.
        until("a gateway that did not reply is dead", || !alive(pid)).await;
        gateway.kill();
        tally.killed += 1;
        until("a process outlived the gateway", || !pids.iter().any(|pid| alive(*pid))).await;
        let heard_now = heard(&file) - before;
        assert!(heard_now <= 1, "one answer, heard {heard_now} times");
        gateway.again().await;
        let (status, now) = gateway.get(&format!("/v1/requests/{id}")).await;
        assert_eq!(status, 200, "{now}");
        let again = gateway.request("POST", &path).header("Idempotency-Key", &key).json(&body).send().await.unwrap();
        let (status, again) = (again.status().as_u16(), again.json::<Value>().await.unwrap());
        match now["state"].as_str().unwrap() {
            "answered" => {
                tally.answered += 1;
                assert_eq!(now["receipt"]["option_id"], option.as_str(), "{now}");
                assert!(now["receipt"]["resolved_by"]["device_id"].is_string(), "{now}");
                assert_eq!((status, &again["won"]), (200, &json!(true)), "the key still wins: {again}");
                if let Some(told) = &told {
                    tally.told += 1;
                    assert_eq!(&again, told, "the receipt is what the client was told");
                }
                let (status, late) = gateway.choose(&request, &option).await;
                assert_eq!((status, &late["won"], &late["option_id"]), (409, &json!(false), &json!(option)), "{late}");
            }
            "orphaned" => {
                tally.orphaned += 1;
                assert!(told.is_none(), "the client was told that it won: {told:?}");
                assert_eq!(heard_now, 0, "the agent heard an answer that is not on the disk");
                assert_eq!((status, &again["state"]), (410, &json!("orphaned")), "{again}");
            }
            other => panic!("killed at write {nth} of {calls}, the request is {other}: {now}"),
        }
        let events = gateway.events(&session).await;
        assert_whole(&events);
        let resolved: Vec<&Value> = events.iter().filter(|event| event["kind"] == "request_resolved").collect();
        assert_eq!(resolved.len(), 1, "one end of one question");
        assert_eq!(resolved[0]["event"]["state"], now["state"], "the log and the row say the same");
        let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!((&info["state"], &info["open_requests"]), (&json!("exited"), &json!(0)), "{info}");
        let (_, open) = gateway.get("/v1/requests?state=open").await;
        assert_eq!(open["requests"], json!([]));
    }
    panic!("an answer has more than {WRITES} writes of {calls}: {tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_survives_a_kill_at_each_write_to_the_disk() {
    let Some(tally) = killed_at_each(TO_DISK).await else { return };
    assert!(tally.killed >= 2, "a page and its fsync at least: {tally:?}");
    assert!(tally.orphaned >= 1, "before the first write nothing is kept: {tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_survives_a_kill_at_each_write_to_a_peer() {
    let Some(tally) = killed_at_each(TO_PEERS).await else { return };
    assert!(tally.killed >= 1, "the reply is a write: {tally:?}");
    assert_eq!(tally.killed, tally.answered + tally.orphaned, "{tally:?}");
}
