//! The gateway against requests that schemathesis makes from `openapi.json`: fitting ones must be taken, others refused, and
//! every answer must be as described. What is left out, and why, stands in `tests/schemathesis/schemathesis.toml`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::gateway::Gateway;
use serde_json::json;

/// Requests that are made of each operation's description, besides those that its limits call for.
const EXAMPLES: &str = "15";
/// What they are made from.
const SEED: &str = "20";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis")
}

fn install() -> PathBuf {
    let out = Command::new("sh")
        .arg(folder().join("install.sh"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("sh starts");
    assert!(out.status.success(), "tests/schemathesis/install.sh failed; see above");
    PathBuf::from(String::from_utf8(out.stdout).unwrap().lines().last().unwrap())
}

/// Runs these phases on a gateway of its own: a wrong token or code counts against whoever sends it, and thirty in a minute
/// are too many.
async fn run(venv: &Path, arguments: &[&str]) {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    // Something to look at: a run that is over, one that asks, and one that waits.
    let over = gateway.prompt(&session, "diff ;; echo hello").await;
    gateway.until_ended(&session, &over).await;
    gateway.prompt(&session, "ask ;; hang").await;
    gateway.open_request(&session).await;
    gateway.prompt(&session, "echo later").await;
    // What it may stop: without the demo runtime the rest would find nothing.
    let spare = json!({ "preset": "demo", "id": "spare", "outlive": false, "cwd": gateway.home });
    let (status, runtime) = gateway.post("/v1/runtimes", spare).await;
    assert_eq!(status, 201, "{runtime}");
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(venv.join("bin/schemathesis"));
    command
        .arg("--config-file")
        .arg(folder().join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", gateway.url)])
        // This machine's own administrator: the one device that it cannot revoke under its own feet.
        .args(["-H", &format!("Authorization: Bearer {}", gateway.token)])
        .args(["--seed", SEED, "--max-examples", EXAMPLES, "--no-color", "--generation-database", "none"])
        .args(arguments)
        .current_dir(dir.path())
        .stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
    let summary = out.lines().filter(|line| line.contains("Tested:") || line.contains("generated"));
    println!("{}: {}", arguments.join(" "), summary.map(str::trim).collect::<Vec<_>>().join("; "));
    // It still serves, and nothing of it broke.
    assert_eq!(gateway.get("/readyz").await.0, 200);
    assert!(!gateway.stderr().contains("panicked"), "{}", gateway.stderr());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_operations_keep_to_their_description() {
    let venv = tokio::task::spawn_blocking(install).await.unwrap();
    let rest = &["--exclude-path", "/v1/pair"];
    for phase in ["coverage", "fuzzing"] {
        run(&venv, &[&["--phases", phase, "--include-method", "GET"], &rest[..]].concat()).await;
        run(&venv, &[&["--phases", phase, "--exclude-method", "GET"], &rest[..]].concat()).await;
    }
    run(&venv, &["--phases", "coverage,fuzzing", "--include-path", "/v1/pair"]).await;
}
