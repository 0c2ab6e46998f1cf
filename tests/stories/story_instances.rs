//! A session goes on only in the process that it knows. Holders that are slow, duplicated, or hang.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, exe, held_runtime};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn demo() -> String {
    held_runtime("demo", &[exe(), "agent", "demo"], "")
}

/// Waits until the only runtime has this state.
async fn runtime(gateway: &Gateway, state: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, body) = gateway.get("/v1/runtimes").await;
        assert_eq!(body["runtimes"].as_array().unwrap().len(), 1, "{body}");
        let runtime = body["runtimes"][0].clone();
        if runtime["state"] == state {
            return runtime;
        }
        assert!(Instant::now() < deadline, "{runtime}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn pid(runtime: &Value) -> u32 {
    u32::try_from(runtime["pid"].as_u64().unwrap_or_else(|| panic!("{runtime}"))).unwrap()
}

fn holder_of(agent: u32) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
    Pid::from_raw(stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()).unwrap()
}

fn sockets(gateway: &Gateway) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(gateway.home.join("holders")).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "sock"))
        .collect()
}

async fn exits(gateway: &Gateway, session: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
        if info["state"] == "exited" {
            return;
        }
        assert!(Instant::now() < deadline, "{info}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn dies(pid: u32) {
    let deadline = Instant::now() + PATIENCE;
    while alive(pid) {
        assert!(Instant::now() < deadline, "{pid} lives on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_agent_is_ended_and_the_one_of_its_sessions_kept() {
    // The files have random names, so the order varies; the outcome must not.
    for _ in 0..4 {
        let mut gateway = Gateway::start(&demo()).await;
        let session = gateway.session("demo").await;
        let first = pid(&runtime(&gateway, "ready").await);
        // The first agent's socket is replaced by a folder for a while; without any file the holder would end itself.
        gateway.kill();
        let socket = sockets(&gateway).remove(0);
        let aside = gateway.home.join("aside");
        std::fs::rename(&socket, &aside).unwrap();
        std::fs::create_dir(&socket).unwrap();
        gateway.again().await;
        let second = pid(&runtime(&gateway, "ready").await);
        assert_ne!(first, second);
        let run = gateway.prompt(&session, "ask ;; say on").await;
        let request = gateway.open_request(&session).await;
        gateway.kill();
        std::fs::remove_dir(&socket).unwrap();
        std::fs::rename(&aside, &socket).unwrap();
        assert!(alive(first) && alive(second));
        gateway.again().await;
        assert_eq!(pid(&runtime(&gateway, "ready").await), second);
        dies(first).await;
        let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
        assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
        assert_whole(&gateway.until_ended(&session, &run).await);
        assert!(gateway.stderr().contains("of several processes of one runtime this one is stopped"));
        let (_, lines) = gateway.get("/v1/runtimes/demo/logs").await;
        assert!(lines.to_string().contains("to which no session belongs"), "{lines}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_holder_is_waited_for_reported_and_never_doubled() {
    let mut gateway = Gateway::start(&demo()).await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask ;; stream 3 1").await;
    let request = gateway.open_request(&session).await;
    let agent = pid(&runtime(&gateway, "ready").await);
    let holder = holder_of(agent);
    gateway.kill();
    kill_process(holder, Signal::STOP).unwrap();
    gateway.again().await;
    // The configuration has the runtime too, but starts no second one.
    let waiting = runtime(&gateway, "starting").await;
    let problem = waiting["problem"].as_str().unwrap();
    assert!(problem.contains("has not answered") && problem.contains("plexus stop demo"), "{problem}");
    let (status, body) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo" })).await;
    assert_eq!((status, &body["code"]), (409, &json!("runtime_gone")), "at once: {body}");
    assert_eq!(sockets(&gateway).len(), 1);
    kill_process(holder, Signal::CONT).unwrap();
    let found = runtime(&gateway, "ready").await;
    assert_eq!((pid(&found), found.get("problem")), (agent, None));
    let again = gateway.open_request(&session).await;
    assert_eq!(again["request_id"], request["request_id"]);
    assert_eq!(gateway.choose(&again, &Gateway::option(&again, "allow_once")).await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert_whole(&events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_an_agent_whose_holder_never_answered() {
    let mut gateway = Gateway::start(&demo()).await;
    let session = gateway.session("demo").await;
    let agent = pid(&runtime(&gateway, "ready").await);
    gateway.kill();
    kill_process(holder_of(agent), Signal::STOP).unwrap();
    gateway.again().await;
    runtime(&gateway, "starting").await;
    let (status, body) = gateway.delete("/v1/runtimes/demo").await;
    assert!(status == 200 || status == 204, "{status} {body}");
    dies(agent).await;
    exits(&gateway, &session).await;
    assert!(sockets(&gateway).iter().all(|socket| std::os::unix::net::UnixStream::connect(socket).is_err()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_whose_agent_is_gone_is_taken_by_no_other() {
    let mut gateway = Gateway::start(&demo()).await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    let first = runtime(&gateway, "ready").await;
    let holder = holder_of(pid(&first));
    // Another agent of the same name and generation replaces the first; the session does not know it.
    gateway.kill();
    let socket = sockets(&gateway).remove(0);
    let aside = gateway.home.join("aside");
    std::fs::rename(&socket, &aside).unwrap();
    std::fs::create_dir(&socket).unwrap();
    let home = gateway.home.clone();
    let database: Vec<PathBuf> = std::fs::read_dir(&home)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("plexus.db")))
        .collect();
    for file in &database {
        std::fs::rename(file, file.with_extension(format!("{}x", file.extension().unwrap().display()))).unwrap();
    }
    gateway.again().await;
    gateway.session("demo").await;
    let second = runtime(&gateway, "ready").await;
    assert_eq!((&first["generation"], first["instance"] != second["instance"]), (&second["generation"], true));
    gateway.kill();
    for entry in std::fs::read_dir(&home).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| {
            name.to_string_lossy().starts_with("plexus.db") && !name.to_string_lossy().ends_with('x')
        }) {
            std::fs::remove_file(path).unwrap();
        }
    }
    for file in &database {
        std::fs::rename(file.with_extension(format!("{}x", file.extension().unwrap().display())), file).unwrap();
    }
    // Without the file of its end, which the session would get.
    kill_process(holder, Signal::KILL).unwrap();
    kill_process(Pid::from_raw(pid(&first).cast_signed()).unwrap(), Signal::KILL).unwrap();
    gateway.again().await;
    runtime(&gateway, "ready").await;
    exits(&gateway, &session).await;
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(events.iter().filter(|event| event["event"]["status"] == "reattached").count(), 0);
}
