//! The machine does not sleep while an agent works or waits: a program in the place of `systemd-inhibit` records its starts and ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, demo};
use serde_json::json;

/// A gateway whose `systemd-inhibit` is this shell script.
struct Machine {
    gateway: Gateway,
    record: PathBuf,
}

impl Machine {
    async fn start(config: &str, script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (bin, record) = (dir.path().join("bin"), dir.path().join("record"));
        std::fs::create_dir(&bin).unwrap();
        let program = bin.join("systemd-inhibit");
        std::fs::write(&program, format!("#!/bin/sh\nrecord={}\n{script}\n", record.display())).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let gateway = Gateway::start_with(dir, &format!("{config}{}", demo()), &[("PATH", &path)]).await;
        Self { gateway, record }
    }

    fn recorded(&self) -> Vec<String> {
        std::fs::read_to_string(&self.record).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    async fn until(&self, reached: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let recorded = self.recorded();
            if reached(&recorded) {
                return recorded;
            }
            assert!(Instant::now() < deadline, "{recorded:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the state and the detail of the check.
    async fn check(&self) -> (String, String) {
        let (status, report) = self.gateway.get("/v1/doctor?only=awake").await;
        assert_eq!(status, 200, "{report}");
        let check = &report["checks"][0];
        (check["state"].as_str().unwrap().to_owned(), check["detail"].as_str().unwrap().to_owned())
    }
}

/// Records the process and its arguments, then runs what it was given.
const INHIBITS: &str = "echo \"$$ $*\" >> $record; for last; do :; done; exec sleep $last";

#[tokio::test]
async fn sleep_is_prevented_while_an_agent_waits_and_no_longer() {
    let machine = Machine::start("", INHIBITS).await;
    assert_eq!(machine.check().await, ("ok".into(), "this machine may sleep: no agent works or waits".into()));
    let session = machine.gateway.session("demo").await;
    let run = machine.gateway.prompt(&session, "ask").await;
    let request = machine.gateway.open_request(&session).await;
    let recorded = machine.until(|recorded| !recorded.is_empty()).await;
    assert!(recorded[0].contains("--what=sleep:idle") && recorded[0].ends_with("sleep 120"), "{recorded:?}");
    let pid = recorded[0].split(' ').next().unwrap().parse().unwrap();
    assert!(alive(pid), "{recorded:?}");
    assert!(machine.check().await.1.starts_with("this machine does not sleep"), "{:?}", machine.check().await);

    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    assert_eq!(machine.gateway.post(&path, json!({ "option_id": "reject_once" })).await.0, 200);
    machine.gateway.until_ended(&session, &run).await;
    machine.until(|_| !alive(pid)).await;
    assert_eq!(machine.recorded().len(), 1);
    assert!(machine.check().await.1.starts_with("this machine may sleep"));
}

#[tokio::test]
async fn sleep_that_cannot_be_prevented_is_reported_with_the_reason() {
    let machine = Machine::start("", "echo \"$*\" >> $record; echo 'Access denied' >&2; exit 1").await;
    let session = machine.gateway.session("demo").await;
    machine.gateway.prompt(&session, "hang").await;
    // A service without a login session may still be permitted to prevent the sleep of an idle machine.
    let recorded = machine.until(|recorded| recorded.len() == 2).await;
    assert!(recorded[1].contains("--what=idle "), "{recorded:?}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (state, detail) = machine.check().await;
        if state == "warn" {
            assert_eq!(detail, "this machine may sleep while agents work: Access denied");
            return;
        }
        assert!(Instant::now() < deadline, "{state} {detail}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn sleep_is_not_prevented_if_switched_off() {
    let machine = Machine::start("keep_awake = false\n", INHIBITS).await;
    let session = machine.gateway.session("demo").await;
    machine.gateway.prompt(&session, "sleep 6000").await;
    machine.gateway.prompt(&session, "echo done").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(machine.recorded(), Vec::<String>::new());
    assert_eq!(machine.check().await.1, "off: this machine may sleep while agents work");
}
